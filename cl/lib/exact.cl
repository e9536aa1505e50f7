// Exact accumulator: a fixed-point number that holds every sum of floats and of products of two floats (Kulisch 2013).
//
//     value = sum of words[k] * 2^(16 k) units, for k below EXACT_WORDS;   1 unit = 2^EXACT_LEAST
//
// The unit is the square of the least positive float of A. The highest word leaves room for 2^64 times the largest
// product. As a two's complement integer, the number has the bytes of the crate's ExactSum of the same type.
//
// The words are signed 32-bit integers with delayed carries, so atomic additions to them need no OpenCL extension. An
// addition changes a word by less than 2^16, in magnitude. After a carry a word is at most 2^16 + 1. So a word stays in
// range for MOST_ADDED additions, with room for a carry and for the half by which it is rounded:
//
//     2^16 + 1 + MOST_ADDED (2^16 - 1) + 2^16 < 2^31 - 1
//
// In local memory REPLICAS numbers share the additions: word k of replica r is words[k * REPLICAS + r].
//
// Needs types.cl, and parts.cl with the REAL of A. REGISTERS adds the functions that deposit f64.
//
// References: U. Kulisch, Computer Arithmetic and Validity, 2013. R. M. Neal, Fast exact summation using small and
// large superaccumulators, 2015, arXiv:1505.05571. S. Collange, D. Defour, S. Graillat, R. Iakymchuk, Numerical
// reproducibility for the parallel reduction on multi- and many-core architectures, Parallel Computing 49, 2015.

#if A_BYTES == 8
#define EXACT_WORDS 268
#define EXACT_LEAST (-2148)
#else
#define EXACT_WORDS 40
#define EXACT_LEAST (-298)
#endif
// The least positive float is 2^EXACT_ONE units.
#define EXACT_ONE (-EXACT_LEAST / 2)
#define MOST_ADDED 32766

#ifndef REPLICAS
#define REPLICAS 1
#endif

// The kinds of summands that occurred. Without any mark, all summands are -0.
#define EXACT_FINITE 1 // a finite number, except -0
#define EXACT_PLUS 2   // infinity
#define EXACT_MINUS 4  // -infinity
#define EXACT_NAN 8

#define SIGN ((BITS)1 << (8 * sizeof(BITS) - 1))
// The bits of a float without its sign, shifted to the upper end.
#define MAGNITUDE(x) ((BITS)(AS_BITS_OF(x) << 1))
#define INFINITE ((BITS)NO_NUMBER << PRECISION)

// Returns the mark of x, whose exponent field is `field`; 0 for -0.
INLINED uint marks_of(const A x, const uint field)
{
    if (field == NO_NUMBER) {
        return MAGNITUDE(x) != INFINITE ? EXACT_NAN : is_negative(x) ? EXACT_MINUS : EXACT_PLUS;
    }
    return AS_BITS_OF(x) != SIGN ? EXACT_FINITE : 0;
}

#if DOT
// The position of the product of finite numbers.
static inline int position_of_product(const A x, const A y)
{
    return (int)(position_of(EXPONENT(x)) + position_of(EXPONENT(y)));
}

static inline int is_zero_product(const A x, const A y) { return MAGNITUDE(x) == 0 || MAGNITUDE(y) == 0; }

// True if a factor is infinite or NaN.
static inline int is_infinite_product(const A x, const A y)
{
    return EXPONENT(x) == NO_NUMBER || EXPONENT(y) == NO_NUMBER;
}

// Returns 0 if the product of finite numbers is -0.
static inline BITS unlike_minus_zero(const A x, const A y)
{
    return is_zero_product(x, y) ? ~(AS_BITS_OF(x) ^ AS_BITS_OF(y)) & SIGN : 1;
}

// Returns the mark of any product; 0 for -0.
INLINED uint marks_of_product(const A x, const A y)
{
    if (is_infinite_product(x, y)) {
        const int is_nan = MAGNITUDE(x) > INFINITE || MAGNITUDE(y) > INFINITE || is_zero_product(x, y);
        return is_nan ? EXACT_NAN : is_negative(x) ^ is_negative(y) ? EXACT_MINUS : EXACT_PLUS;
    }
    return unlike_minus_zero(x, y) != 0 ? EXACT_FINITE : 0;
}
#endif

#if WG == 1
#define EXACT_TABLE __local int*
static inline void add_exact_word(EXACT_TABLE word, const int x) { *word += x; }
#else
#define EXACT_TABLE volatile __local int*
static inline void add_exact_word(EXACT_TABLE word, const int x) { atomic_add(word, x); }
#endif

// Adds size * 2^position units, or subtracts them. Bits below the unit must be 0. `pieces` words change: 3 hold a
// `size` of 32 bits, 5 hold one of 64 bits.
INLINED void add_exact(EXACT_TABLE words, ulong size, int position, const int negative, const uint pieces)
{
    size = position < 0 ? size >> min(-position, 63) : size;
    position = max(position, 0);
    const uint shift = position & 15;
    const ulong low = size << shift, high = size >> 1 >> (63 - shift);
    EXACT_TABLE word = words + (position >> 4) * REPLICAS;
    _Pragma("unroll")
    for (uint k = 0; k < pieces; k++) {
        const int piece = k < 4 ? (int)(low >> (16 * k) & 0xffff) : (int)high;
        if (piece != 0) {
            add_exact_word(word + k * REPLICAS, negative ? -piece : piece);
        }
    }
}

// Adds number * 2^position units, without branches. Only the highest piece can be negative. The magnitude has at most
// 32 bits for 3 pieces, 48 for 4, and 63 for 5. `stride` is the distance between neighbouring words.
INLINED void add_straight(
    EXACT_TABLE words, const uint stride, const long number, const uint position, const uint pieces)
{
    const uint shift = position & 15;
    const long low = (long)((ulong)number << shift);
    EXACT_TABLE word = words + (position >> 4) * stride;
    _Pragma("unroll")
    for (uint k = 0; k < pieces; k++) {
        const int piece = k == 4           ? (int)(number >> 1 >> (63 - shift))
                          : k + 1 == pieces ? (int)(low >> (16 * k))
                                            : (int)((ulong)low >> (16 * k) & 0xffff);
        add_exact_word(word + k * stride, piece);
    }
}

#if A_BYTES == 8
// As add_straight, for a number of 106 bits or fewer: (high * 2^64 + low) * 2^position units, or its negative. It
// changes 8 words.
INLINED void add_wide(
    EXACT_TABLE words, const uint stride, ulong high, ulong low, const uint position, const int negative)
{
    const uint shift = position & 15;
    high = high << shift | low >> 1 >> (63 - shift);
    low <<= shift;
    // Negates as -x = ~x + 1.
    const ulong sign = -(ulong)negative;
    low = (low ^ sign) - sign;
    high = (high ^ sign) + (negative && low == 0);
    EXACT_TABLE word = words + (position >> 4) * stride;
    _Pragma("unroll")
    for (uint k = 0; k < 8; k++) {
        const ulong bits = k < 4 ? low : high;
        const int piece = k < 7 ? (int)(bits >> (16 * (k & 3)) & 0xffff) : (int)((long)high >> 48);
        add_exact_word(word + k * stride, piece);
    }
}
#endif

// A finite float as a signed integer, in units of 2^position.
static inline long signed_size_of(const A x, const uint field)
{
#if A_BYTES == 4
    const int size = (int)size_of(x, field), sign = (int)AS_BITS_OF(x) >> 31;
#else
    const long size = (long)size_of(x, field), sign = (long)AS_BITS_OF(x) >> 63;
#endif
    return (size ^ sign) - sign;
}

#ifdef REGISTERS
// Returns the rounding error of a + b; it is exact.
static inline double error_of(const double a, const double b)
{
    const double now = a + b, added = now - a;
    return (a - (now - added)) + (b - added);
}

// Deposits x, which is 0 or a normal f64, and a whole number of units.
INLINED void deposit_double(EXACT_TABLE words, const double x)
{
    const ulong bits = as_ulong(x), fraction = bits & 0xffffffffffffful;
    const int field = (int)(bits >> 52) & 0x7ff;
    const ulong size = field == 0 ? 0 : fraction | 0x10000000000000ul;
    add_exact(words, size, field - 1075 - EXACT_LEAST, (int)(bits >> 63), 5);
}
#endif

// to_acc for an element that may be after the last one. For such elements, Mesa 25 converts bytes wrongly, or crashes
// if the load has a condition.
static inline A element_to_acc(const T x)
{
#if T_BYTES == 1
    const int bits = (int)(255u & (uint)x);
    return (A)(T_LOWEST != 0 ? (bits ^ 128) - 128 : bits);
#else
    return to_acc(x);
#endif
}

// The carry of a word, rounded so that the remainder of the word is in -2^15 .. 2^15. So a small negative number has
// few nonzero words.
static inline int carry_of(const int word) { return (word + 0x8000) >> 16; }

// Moves each word's carry to the next word, for `count` words that are `plane` apart. All work-items call it, in
// uniform flow; it begins and ends with a barrier.
INLINED void carry_exact(__local int* words, const uint count, const uint plane)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    // From the last words to the first ones, so that the words below still have their old values.
    for (uint end = (count + WG - 1) / WG * WG; end > 0; end -= WG) {
        const uint i = end - WG + get_local_id(0);
        int word = 0, below = 0;
        if (i < count) {
            word = words[i];
            below = i >= plane ? words[i - plane] : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < count) {
            words[i] = word - (int)((uint)carry_of(word) << 16) + carry_of(below);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#if defined(OUT_F16)
#define OUT_PRECISION 11
#define OUT_LEAST (-24)
#define OUT_INFINITY 0x7c00ul
#define OUT_BITS ushort
#elif defined(OUT_BF16)
#define OUT_PRECISION 8
#define OUT_LEAST (-133)
#define OUT_INFINITY 0x7f80ul
#define OUT_BITS ushort
#elif OUT_BYTES == 8
#define OUT_PRECISION 53
#define OUT_LEAST (-1074)
#define OUT_INFINITY 0x7ff0000000000000ul
#define OUT_BITS ulong
#else
#define OUT_PRECISION 24
#define OUT_LEAST (-149)
#define OUT_INFINITY 0x7f800000ul
#define OUT_BITS uint
#endif

#ifdef MEAN
// The result of a group without elements: NaN.
#define OUT_OF_NONE ((OUT_BITS)(OUT_INFINITY | (ulong)1 << (OUT_PRECISION - 2)))

// A long division by `divisor`, which is below 2^48, in digits of 16 bits.
typedef struct {
    ulong divisor, remainder;
    // `top` has the leading digits of the quotient, which are at least 49 bits once `next` is set. `next` is the digit
    // below them, and `more` is the OR of the rest.
    ulong top;
    uint next, more;
    int is_full;
    // The exponent of the lowest digit of `top`.
    int low;
} Division;

// Starts a division. Then call divide_digit for each digit of the dividend, the leading digit first; `first` is the
// exponent of that digit.
static inline void open_division(Division* d, const ulong divisor, const int first)
{
    d->divisor = divisor;
    d->remainder = 0;
    d->top = 0;
    d->next = 0;
    d->more = 0;
    d->is_full = 0;
    d->low = first + 16;
}

static inline void divide_digit(Division* d, const uint digit)
{
    const ulong part = d->remainder << 16 | digit;
    const uint quotient = (uint)(part / d->divisor);
    d->remainder = part % d->divisor;
    if (d->top >> 48 == 0) {
        d->top = d->top << 16 | quotient;
        d->low -= 16;
    } else if (!d->is_full) {
        d->next = quotient;
        d->is_full = 1;
    } else {
        d->more |= quotient;
    }
}

// Returns the bits of the OUT nearest to the quotient, which is not 0.
static inline ulong nearest_quotient(Division* d)
{
    while (!d->is_full) {
        divide_digit(d, 0);
    }
    const uint zeros = (uint)clz(d->top);
    const ulong top = d->top << zeros | d->next >> (16 - zeros);
    const uint more = d->more | (d->next << zeros & 0xffff) | (d->remainder != 0);
    const int above = d->low + 63 - (int)zeros - OUT_LEAST;
    return nearest_bits(top | (more != 0), above, OUT_PRECISION, OUT_INFINITY);
}
#else
#define OUT_OF_NONE ((OUT_BITS)0)
#endif

// Returns the bits of the OUT nearest to a number, ties to even; with MEAN, to the number divided by `count`. Word k of
// the number is words[k * plane]; words outside [lowest, highest] are 0. Afterwards the words hold the magnitude. One
// work-item calls it.
static inline OUT_BITS round_exact(
    __local int* words, const uint plane, const int lowest, const int highest, const ulong count)
{
    const int end = min(highest + 3, EXACT_WORDS);
    int carry = 0;
    for (int k = lowest; k < end; k++) {
        carry += words[k * plane];
        words[k * plane] = carry & 0xffff;
        carry >>= 16;
    }
    const int negative = carry < 0;
    int lead = -1;
    carry = negative;
    for (int k = lowest; k < end; k++) {
        carry += negative ? 0xffff - words[k * plane] : words[k * plane];
        words[k * plane] = carry & 0xffff;
        carry >>= 16;
        lead = words[k * plane] != 0 ? k : lead;
    }
    if (lead < 0) {
        return 0;
    }
#ifdef MEAN
    Division d;
    open_division(&d, count, 16 * lead + EXACT_LEAST);
    for (int k = lead; k >= lowest; k--) {
        divide_digit(&d, (uint)words[k * plane]);
    }
    const ulong bits = nearest_quotient(&d);
#else
    // The 64 leading bits; `more` collects the bits after them.
    ulong top = 0;
    for (int k = lead; k > lead - 4; k--) {
        top = top << 16 | (k >= lowest ? (uint)words[k * plane] : 0);
    }
    uint more = lead - 4 >= lowest ? (uint)words[(lead - 4) * plane] : 0;
    const uint zeros = (uint)clz(top);
    top = top << zeros | more >> (16 - zeros);
    more = more << zeros & 0xffff;
    for (int k = lowest; k < lead - 4; k++) {
        more |= (uint)words[k * plane];
    }
    const int above = 16 * lead + 15 - (int)zeros + EXACT_LEAST - OUT_LEAST;
    const ulong bits = nearest_bits(top | (more != 0), above, OUT_PRECISION, OUT_INFINITY);
#endif
    return (OUT_BITS)(bits | (ulong)negative << (8 * sizeof(OUT_BITS) - 1));
}

// merged = the sum of `stride` replicas, whose words are interleaved. A word without its carry is at most 2^15, and so
// is a carry. So sums of 2^14 replicas fit. Neighbouring work-items begin with different replicas, and so read from
// different banks. The caller has a barrier before the call, and another one before it reads `merged`.
INLINED void merge_replicas(__local const int* words, const uint stride, __local int* merged)
{
    for (uint i = get_local_id(0); i < EXACT_WORDS; i += WG) {
        int sum = 0;
        for (uint r = 0; r < stride; r++) {
            const uint replica = (r + i) % stride;
            const int word = words[i * stride + replica];
            sum += word - (int)((uint)carry_of(word) << 16);
            sum += i > 0 ? carry_of(words[(i - 1) * stride + replica]) : 0;
        }
        merged[i] = sum;
    }
}

// Adds a work-group's accumulator and marks to `sums` in global memory: EXACT_WORDS words, then one word of marks. All
// work-items call it, in uniform flow. `merged` has EXACT_WORDS words. Fewer than 2^15 work-groups may call it, since
// each changes a word by less than 2^16.
INLINED void publish_exact(
    __local int* words, __local int* merged, volatile __local uint* marks, volatile __global int* sums)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    merge_replicas(words, REPLICAS, merged);
    carry_exact(merged, EXACT_WORDS, 1);
    carry_exact(merged, EXACT_WORDS, 1);
    // This read follows the barrier, because PoCL 6 lost the condition of a loop directly after it, with
    // `take(&count)`.
    const uint all_marks = *marks;
    for (uint i = get_local_id(0); i < EXACT_WORDS; i += WG) {
        if (merged[i] != 0) {
            atomic_add(sums + i, merged[i]);
        }
    }
    if (get_local_id(0) == 0 && all_marks != 0) {
        atomic_or(sums + EXACT_WORDS, (int)all_marks);
    }
}

#ifdef EXACT_BYTES
// The sum as the bytes of ExactSum::to_bytes: four bytes, then EXACT_BYTES bytes of a two's complement integer.
#define RESULT uchar
#if defined(OUT_F16)
#define EXACT_TYPE 1
#define EXACT_BELOW 250
#elif defined(OUT_BF16)
#define EXACT_TYPE 2
#define EXACT_BELOW 32
#elif OUT_BYTES == 4
#define EXACT_TYPE 3
#define EXACT_BELOW 0
#else
#define EXACT_TYPE 4
#define EXACT_BELOW 0
#endif

// Stores the number in `words`; words below `lowest` are 0. The unit of the stored number is 2^EXACT_BELOW times that
// of the words. One work-item calls it.
static inline void store_exact_result(
    __global uchar* result, __local int* words, const uint plane, int lowest, int highest, uint marks,
    const ulong count)
{
    const uint infinities = marks & (EXACT_PLUS | EXACT_MINUS);
    uint kind = marks == 0 ? 1 : 2;
    if ((marks & EXACT_NAN) || infinities == (EXACT_PLUS | EXACT_MINUS)) {
        kind = 5;
    } else if (infinities != 0) {
        kind = infinities == EXACT_PLUS ? 3 : 4;
    }
    result[0] = 1;
    result[1] = EXACT_TYPE;
    result[2] = (uchar)kind;
    result[3] = 0;
    int carry = 0;
    for (int k = lowest; k < EXACT_WORDS; k++) {
        carry += words[k * plane];
        words[k * plane] = carry & 0xffff;
        carry >>= 16;
    }
    for (uint k = 0; k < EXACT_BYTES / 2; k++) {
        const uint first = k + EXACT_BELOW / 16, shift = EXACT_BELOW % 16;
        uint word = (uint)words[first * plane];
        if (shift != 0) {
            word = word >> shift | (uint)words[(first + 1) * plane] << (16 - shift);
        }
        word = kind == 2 ? word : 0;
        result[4 + 2 * k] = (uchar)word;
        result[5 + 2 * k] = (uchar)(word >> 8);
    }
}
#else
#define RESULT OUT

// Stores the float nearest to the number in `words`; with MEAN, to that number divided by `count`. Words outside
// [lowest, highest] are 0. The float is stored as an integer, since a store of a float may flush a subnormal. One
// work-item calls it.
static inline void store_exact_result(
    __global OUT* result, __local int* words, const uint plane, int lowest, int highest, uint marks, const ulong count)
{
    const uint infinities = marks & (EXACT_PLUS | EXACT_MINUS);
    OUT_BITS bits;
    if ((marks & EXACT_NAN) || infinities == (EXACT_PLUS | EXACT_MINUS)) {
        bits = (OUT_BITS)(OUT_INFINITY | (ulong)1 << (OUT_PRECISION - 2));
    } else if (infinities != 0) {
        bits = (OUT_BITS)(OUT_INFINITY | (ulong)(infinities == EXACT_MINUS) << (8 * sizeof(OUT_BITS) - 1));
    } else if (marks == 0) {
        bits = (OUT_BITS)((ulong)1 << (8 * sizeof(OUT_BITS) - 1));
    } else {
        bits = round_exact(words, plane, lowest, highest, count);
    }
    *(__global OUT_BITS*)result = bits;
}
#endif

// Stores the sum, or with MEAN the sum divided by `count`. Zeroes the number in global memory for the next launch.
// All work-items of one work-group call it, in uniform flow. `range` has two words.
INLINED void store_exact(
    __global RESULT* result, volatile __global int* sums, __local int* words, volatile __local int* range,
    const ulong count)
{
    if (get_local_id(0) == 0) {
        range[0] = EXACT_WORDS;
        range[1] = -1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < EXACT_WORDS; i += WG) {
        words[i] = atomic_xchg(sums + i, 0);
        if (words[i] != 0) {
            atomic_min(range, (int)i);
            atomic_max(range + 1, (int)i);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        const uint marks = (uint)atomic_xchg(sums + EXACT_WORDS, 0);
        store_exact_result(result, words, 1, range[0], range[1], marks, count);
    }
}
