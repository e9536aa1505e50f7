// Element and accumulator types, and 16-byte loads of elements.
//
// T: an element in memory; ushort for f16 (with T_F16) and bf16 (with T_BF16).
// A: the accumulator: float for f16 and bf16, else T, unless the caller chose a wider one.
// OFFSET_T: uint below 2^31 elements, else ulong.
// ALIGNED: the host promises that the first element is aligned to 16 bytes.

#ifndef T
#define T float
#define T_BYTES 4
#define T_FLOAT
#endif
#ifndef A
#define A T
#define A_BYTES T_BYTES
#ifdef T_FLOAT
#define A_FLOAT
#endif
#endif
// OUT: the element type of a result; ushort with OUT_F16 or OUT_BF16.
#ifndef OUT
#define OUT T
#endif
#ifndef OFFSET_T
#define OFFSET_T uint
#endif

#ifdef HAS_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
// Sums must not depend on whether a compiler fuses a multiply into them.
#pragma OPENCL FP_CONTRACT OFF

#include "lib/compiler.cl"

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

// Before loops over elements on one work-item: some compilers of CPU drivers vectorise or unroll them only on request;
// the others do better by themselves. IN_VECTORS is not for loops that add floats to one sum, since it changes the
// order.
#ifdef EXPLICIT_VECTORS
#define IN_VECTORS _Pragma("clang loop vectorize_width(16)")
#define IN_EIGHTS _Pragma("clang loop unroll_count(8)")
#else
#define IN_VECTORS
#define IN_EIGHTS
#endif

// Elements in 16 bytes, and the vector type that holds them.
#define VEC (16 / T_BYTES)
#if T_BYTES == 1
#define TV CAT(T, 16)
#define VLOAD vload16
#define VSTORE vstore16
#elif T_BYTES == 2
#define TV CAT(T, 8)
#define VLOAD vload8
#define VSTORE vstore8
#elif T_BYTES == 4
#define TV CAT(T, 4)
#define VLOAD vload4
#define VSTORE vstore4
#else
#define TV CAT(T, 2)
#define VLOAD vload2
#define VSTORE vstore2
#endif

// Converts the bits of an f16 to a float; exact.
static inline float f16_to_float(const ushort x)
{
#ifdef DEVICE_CPU
    const uint sign = (x & 0x8000) << 16, exponent = x & 0x7c00, mantissa = x & 0x3ff;
    const float subnormal = (float)mantissa * 0x1p-24f;
    const uint normal = ((x & 0x7fff) << 13) + (112u << 23);
    const uint special = ((x & 0x7fff) << 13) | 0x7f800000u;
    return as_float(sign | (exponent == 0 ? as_uint(subnormal) : exponent == 0x7c00 ? special : normal));
#else
    // One instruction.
    return vload_half(0, (const half*)&x);
#endif
}

// Converts the bits of a bf16 to a float; exact.
static inline float bf16_to_float(const uint x)
{
    return as_float(x << 16);
}

// Returns the nearest bf16, ties to even.
static inline ushort float_to_bf16(const float x)
{
    const uint bits = as_uint(x);
    return (ushort)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40 : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

#ifdef HAS_FP64
// Converts a float to a double; exact. FLUSHED: the device flushes subnormals, so they are converted as integers.
static inline double float_to_double(const float x)
{
#ifdef FLUSHED
    const uint size = as_uint(x) & 0x7fffffffu;
    if (size < 0x800000) {
        const double small = (double)(int)size * 0x1p-149;
        return as_double(as_ulong(small) | (ulong)(as_uint(x) >> 31) << 63);
    }
#endif
    return x;
}
#endif

// X: the type to which elements are widened for computations.
#if defined(T_F16) || defined(T_BF16)
#define X float
#else
#define X T
#endif

// Converts an element to X; exact.
static inline X widen(T x)
{
#if defined(T_F16)
    return f16_to_float(x);
#elif defined(T_BF16)
    return bf16_to_float(x);
#else
    return x;
#endif
}

// Converts an element to its accumulator; exact if the host promises that A holds every T.
static inline A to_acc(T x)
{
#if defined(A_FLOAT) && A_BYTES == 8 && defined(T_FLOAT) && T_BYTES < 8
    return float_to_double(widen(x));
#else
    return (A)widen(x);
#endif
}

#ifdef A_FLOAT
#if A_BYTES == 8
#define A_BITS long
#define A_BITS_LOWEST LONG_MIN
#define A_BITS_HIGHEST LONG_MAX
#define AS_BITS(x) as_long(x)
#define FROM_BITS(x) as_double(x)
#define A_INFINITY ((double)INFINITY)
#else
#define A_BITS int
#define A_BITS_LOWEST INT_MIN
#define A_BITS_HIGHEST INT_MAX
#define AS_BITS(x) as_int(x)
#define FROM_BITS(x) as_float(x)
#define A_INFINITY INFINITY
#endif
#endif

// key_of(x): an integer in the order of accumulators, except NaN. For a float it is the bits; for a negative float, the
// lowest integer minus the bits. So -0 and +0 are both 0. Floats are not compared, since a device may flush subnormals.
#ifdef A_FLOAT
#define KEY_T A_BITS
static inline KEY_T key_of(A x)
{
    const A_BITS bits = AS_BITS(x);
    return bits < 0 ? A_BITS_LOWEST - bits : bits;
}
#else
#define KEY_T A
#define key_of(x) (x)
#endif

// TAKEN(x): the accumulator of an element x; with MAPPED, of mapped(x), the result of the caller's function. The host
// puts that function before this text.
#ifdef MAPPED
#define TAKEN(x) ((A)mapped(widen(x)))
#else
#define TAKEN(x) to_acc(x)
#endif

// Stores an accumulator as the nearest OUT, ties to even.
static inline void store_acc(__global OUT* p, A x)
{
#if defined(OUT_F16)
    vstore_half_rte(x, 0, (__global half*)p);
#elif defined(OUT_BF16)
    *p = float_to_bf16(x);
#else
    *p = (OUT)x;
#endif
}

// Returns the nearest OUT, ties to even.
static inline OUT narrow_acc(A x)
{
#if defined(OUT_F16)
    ushort bits;
    vstore_half_rte(x, 0, (half*)&bits);
    return bits;
#elif defined(OUT_BF16)
    const uint bits = as_uint(x);
    return (OUT)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40 : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
#else
    return (OUT)x;
#endif
}

static inline TV load_vec(__global const T* p)
{
#ifdef ALIGNED
    return *(__global const TV*)p;
#else
    return VLOAD(0, p);
#endif
}

// a[0 .. VEC] = TAKEN of the components of v.
static inline void unpack(TV v, A* a)
{
    a[0] = TAKEN(v.s0);
    a[1] = TAKEN(v.s1);
#if VEC >= 4
    a[2] = TAKEN(v.s2);
    a[3] = TAKEN(v.s3);
#endif
#if VEC >= 8
    a[4] = TAKEN(v.s4);
    a[5] = TAKEN(v.s5);
    a[6] = TAKEN(v.s6);
    a[7] = TAKEN(v.s7);
#endif
#if VEC >= 16
    a[8] = TAKEN(v.s8);
    a[9] = TAKEN(v.s9);
    a[10] = TAKEN(v.sa);
    a[11] = TAKEN(v.sb);
    a[12] = TAKEN(v.sc);
    a[13] = TAKEN(v.sd);
    a[14] = TAKEN(v.se);
    a[15] = TAKEN(v.sf);
#endif
}
