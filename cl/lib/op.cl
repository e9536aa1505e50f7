// The operator of a reduction: OP(a, b) and its identity OP_IDENTITY, on the accumulator A.
//
// min and max of floats are NaN if either side is NaN, and order -0 below +0. If the device has no such instruction,
// the functions compare bits, because it may flush subnormals. As signed integers, bits are in the order of the floats,
// but those of two negative floats are in reverse order.

#if !defined(OP_SUM) && !defined(OP_PRODUCT) && !defined(OP_MIN) && !defined(OP_MAX) && !defined(OP_AND) && \
    !defined(OP_OR) && !defined(OP_XOR) && !defined(OPERATOR)
#define OP_SUM
#endif

// The host passes the extremes of integer accumulators, and their unsigned type: signed overflow is undefined, but
// unsigned integers wrap.
#ifndef A_UNSIGNED
#define A_UNSIGNED A
#define A_LOWEST 0
#define A_HIGHEST 0
#endif

#ifdef A_FLOAT
#define MULTIPLY(a, b) ((a) * (b))
#else
// 16-bit factors are promoted to int, whose product could overflow; in uint it wraps.
#define MULTIPLY(a, b) ((A)((A_UNSIGNED)(a) * 1u * (A_UNSIGNED)(b)))
#endif

// NAN_EXTREMES: one instruction returns min or max in this order, with NaN.
#if A_BYTES == 4 && INLINE_PTX && PTX_SM >= 80
#define NAN_EXTREMES
#endif
// EXTREMES_BUT_NAN: one instruction returns min or max in this order, but not NaN.
#if A_BYTES == 8 && INLINE_PTX
#define EXTREMES_BUT_NAN
#endif

// The host puts the user-defined operator before this text.
#if defined(OPERATOR)
#define OP_IDENTITY op_identity()
#define OP(a, b) op_combine(a, b)
#elif defined(OP_SUM)
#ifdef A_FLOAT
#define OP_IDENTITY ((A)-0.0f)
#else
#define OP_IDENTITY ((A)0)
#endif
#ifdef A_FLOAT
#define OP(a, b) ((a) + (b))
#else
#define OP(a, b) ((A)((A_UNSIGNED)(a) + (A_UNSIGNED)(b)))
#endif
#elif defined(OP_PRODUCT)
#define OP_IDENTITY ((A)1)
#define OP(a, b) MULTIPLY(a, b)
#elif defined(OP_MIN)
#ifdef A_FLOAT
#define OP_IDENTITY A_INFINITY
static inline A op_min(A a, A b)
{
#ifdef NAN_EXTREMES
    A least;
    __asm__("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
    return least;
#elif defined(EXTREMES_BUT_NAN)
    A least;
    __asm__("{ .reg .pred nan; .reg .f64 of; min.f64 of, %1, %2; setp.nan.f64 nan, %1, %2;"
            " selp.f64 %0, 0d7FF8000000000000, of, nan; }"
            : "=d"(least)
            : "d"(a), "d"(b));
    return least;
#else
    const A_BITS x = AS_BITS(a), y = AS_BITS(b);
    return a != a || b != b ? (A)NAN : FROM_BITS((x & y) < 0 ? max(x, y) : min(x, y));
#endif
}
#define OP(a, b) op_min(a, b)
#else
#define OP_IDENTITY ((A)A_HIGHEST)
#define OP(a, b) min((A)(a), (A)(b))
#endif
#elif defined(OP_MAX)
#ifdef A_FLOAT
#define OP_IDENTITY (-A_INFINITY)
static inline A op_max(A a, A b)
{
#ifdef NAN_EXTREMES
    A most;
    __asm__("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
#elif defined(EXTREMES_BUT_NAN)
    A most;
    __asm__("{ .reg .pred nan; .reg .f64 of; max.f64 of, %1, %2; setp.nan.f64 nan, %1, %2;"
            " selp.f64 %0, 0d7FF8000000000000, of, nan; }"
            : "=d"(most)
            : "d"(a), "d"(b));
    return most;
#else
    const A_BITS x = AS_BITS(a), y = AS_BITS(b);
    return a != a || b != b ? (A)NAN : FROM_BITS((x & y) < 0 ? min(x, y) : max(x, y));
#endif
}
#define OP(a, b) op_max(a, b)
#else
#define OP_IDENTITY ((A)A_LOWEST)
#define OP(a, b) max((A)(a), (A)(b))
#endif
#elif defined(OP_AND)
#define OP_IDENTITY ((A)~(A)0)
#define OP(a, b) ((A)((a) & (b)))
#elif defined(OP_OR)
#define OP_IDENTITY ((A)0)
#define OP(a, b) ((A)((a) | (b)))
#elif defined(OP_XOR)
#define OP_IDENTITY ((A)0)
#define OP(a, b) ((A)((a) ^ (b)))
#endif

// OP16: OP on vectors of 16 accumulators, if the host asks for them. TAKEN16(p): the accumulators of the elements from
// p on.
#ifdef VECTORS
#define A16 CAT(A, 16)
#define TAKEN16(p) CAT(convert_, A16)(vload16(0, p))
#if defined(OP_AND)
#define OP16(a, b) ((a) & (b))
#elif defined(OP_OR)
#define OP16(a, b) ((a) | (b))
#elif defined(OP_XOR)
#define OP16(a, b) ((a) ^ (b))
#elif defined(A_FLOAT)
#define AS_BITS16 CAT(as_, CAT(A_BITS, 16))
#if defined(OP_SUM)
#define OP16(a, b) ((a) + (b))
#elif defined(OP_PRODUCT)
#define OP16(a, b) ((a) * (b))
#else
#if defined(OP_MIN)
#define NEAR16 min
#define FAR16 max
#else
#define NEAR16 max
#define FAR16 min
#endif
static inline A16 op16(A16 a, A16 b)
{
    // `select` tests the highest bit of x & y, which is set if both floats are negative.
    const CAT(A_BITS, 16) x = AS_BITS16(a), y = AS_BITS16(b), ordered = select(NEAR16(x, y), FAR16(x, y), x & y);
    return select(CAT(as_, A16)(ordered), (A16)NAN, (a != a) | (b != b));
}
#define OP16(a, b) op16(a, b)
#endif
#elif defined(OP_MIN)
#define OP16(a, b) min(a, b)
#elif defined(OP_MAX)
#define OP16(a, b) max(a, b)
#else
// Unsigned integers wrap.
#define UNSIGNED16 CAT(as_, CAT(A_UNSIGNED, 16))
#ifdef OP_SUM
#define OP16(a, b) CAT(as_, A16)(UNSIGNED16(a) + UNSIGNED16(b))
#else
#define OP16(a, b) CAT(as_, A16)(UNSIGNED16(a) * UNSIGNED16(b))
#endif
#endif
#endif
