// Exact sum: the float nearest to x[0] + ... + x[n - 1] as a real number, ties to even. With DOT, the summands are the
// exact products of the two factors of each element of a source. So the result depends neither on the order of the
// summands nor on the way in which they are divided.
//
// Bytes: reads n elements once. Each work-group adds at most EXACT_WORDS words to one accumulator in global memory.
//
//     for each chunk of CHUNK elements of the work-item, read by ROWS loads of 16 bytes:
//         if the sum of the chunk fits in the registers: add it to them
//         else: deposit its elements, or what did not fit, in the work-group's accumulator in local memory
//               (lib/exact.cl)
//         after TABLE_CHUNKS chunks: resolve the carries of the accumulator
//     deposit the registers, add the accumulator to the one in global memory
//     last work-group: result = the accumulator, rounded with integers
//
// With REGISTERS the registers are an expansion of three f64, s[0] + s[1] + s[2], to which TwoSum adds a number without
// an error:
//
//     for j in 0 .. 3: (s[j], x) = (s[j] + x rounded, the error of this sum);   deposit x unless it is 0
//
// Sums of f32, and of narrower types, are first added up in one f64. Take the elements x of a chunk that are not 0. Let
// p be their precision, 2^e <= max |x| < 2^(e + 1) and 2^m <= min |x|. All partial sums are multiples of 2^(m - p + 1),
// and at most CHUNK * 2^(e + 1). They are exact if e + 1 + log2(CHUNK) - (m - p + 1) <= 53. This means
// e - m <= 53 - p - log2(CHUNK) = SPREAD. A product of two f32 is exact in one f64. A product of two f64 is the sum of
// two f64, by a fused multiply-add. Elements with exponent fields outside [FIELD_LEAST, FIELD_MOST] are deposited,
// since their errors could be subnormal, or their sums could overflow.
//
// A chunk of f64, of products of f32, or of f32 without REGISTERS, is added up in two or three parts. Let P be the
// precision of the sums, 53 or 24. Let s = e + log2(CHUNK), S = 1.5 * 2^s, and q = (S + x) - S, where both operations
// round. Then q is a multiple of 2^(s - P + 1), and x - q is at most 2^(s - P). Both are exact, and so are sums of
// CHUNK numbers q. For p-bit numbers, sums of the x - q are exact if e - m <= 2 P + 1 - p - 2 log2(CHUNK). Else the
// kernel may split each x - q again.
//
// Without REGISTERS, a work-item holds a window of the accumulator: a two's complement integer in units of 2^low.
// Numbers above the window move it up, and numbers below it are deposited.
//
// TwoSum: D. E. Knuth, The Art of Computer Programming 2, 4.2.2. Expansions with deposits: Collange et al., see
// lib/exact.cl.
#include "lib/types.cl"
#define REAL_BYTES A_BYTES
#include "lib/parts.cl"
#include "lib/subgroup.cl"
#ifndef WG
#define WG 256
#endif
#include "lib/exact.cl"
#include "lib/length.cl"
#ifdef ONE_PASS
#include "lib/ended.cl"
#define RESULT_PARAMS , __global RESULT *result_base, const ulong result_offset ENDED_PARAM
#else
#define RESULT_PARAMS
#endif
#ifdef SOURCE
#include "lib/source.cl"
#define INPUT_PARAMS(qualifier) SOURCE_PARAMS(qualifier)
#define INPUT_ARGS SOURCE_ARGS
#else
#define INPUT_PARAMS(qualifier) __global const T *qualifier in_base, const ulong in_offset
#define INPUT_ARGS in_base, in_offset
#endif

#ifndef DOT
#define DOT 0
#endif
// 16-byte loads of a chunk.
#ifndef ROWS
#define ROWS 4
#endif
#define CHUNK (ROWS * VEC)
#define TILE (WG * CHUNK)
#if CHUNK >= 512
#define LOG_CHUNK 9
#elif CHUNK >= 256
#define LOG_CHUNK 8
#elif CHUNK >= 128
#define LOG_CHUNK 7
#elif CHUNK >= 64
#define LOG_CHUNK 6
#elif CHUNK >= 32
#define LOG_CHUNK 5
#else
#define LOG_CHUNK 4
#endif

// CPU drivers have small work-groups. There unrolled loops would only take longer to compile, and several LANES let the
// compiler add in vectors. With larger work-groups, a loop with a large body keeps its numbers in registers: each
// iteration uses the first number, then moves the others down by one.
#if WG >= 32
#define UNROLLED _Pragma("unroll")
#define LANES 1
#define CURRENT(k) 0
#define MOVE_DOWN(x)                                                                                                   \
    UNROLLED                                                                                                           \
    for (uint i = 0; i + 1 < CHUNK; i++) {                                                                             \
        x[i] = x[i + 1];                                                                                               \
    }
#else
#define UNROLLED
#define LANES (CHUNK < 8 ? CHUNK : 8)
#define CURRENT(k) k
#define MOVE_DOWN(x)
#endif

// Words of the accumulator that a number changes.
#define PIECES (A_BYTES == 4 && !DOT ? 3 : 5)

// A word changes at most three times for each element: once for the element or twice for its product, and once for a
// window that moves.
#define TABLE_CHUNKS (MOST_ADDED / (3 * CHUNK * (WG / REPLICAS)))

#ifdef REGISTERS
#define PARTS 3
#else
#define WINDOW_WORDS (A_BYTES == 8 && DOT ? 3 : 2)
// The number of positions in a window, and of those above the number that opens it.
#define WINDOW (64 * (WINDOW_WORDS - 1))
#define ROOM_ABOVE 16
// A number below 2^53 is shifted by less than WINDOW bits: 1023 * 2^53 * 2^(WINDOW - 1) < 2^(64 * WINDOW_WORDS - 2).
#define MOST_IN_WINDOW 1023
#define WINDOW_CHUNKS (MOST_IN_WINDOW / (CHUNK * (A_BYTES == 8 && DOT ? 2 : 1)))
#endif

typedef struct {
#ifdef REGISTERS
    // Part j of lane l is part[j * LANES + l].
    double part[PARTS * LANES];
#else
    ulong word[WINDOW_WORDS];
    int low;
    // The number of chunks since the last deposit of the window.
    uint since;
#endif
    uint marks;
} Sum;

#ifdef REGISTERS

INLINED void open_sum(Sum* sum)
{
    sum->marks = 0;
    // -0 + x is x, also for x = -0.
    UNROLLED
    for (uint j = 0; j < PARTS * LANES; j++) {
        sum->part[j] = -0.0;
    }
}

// Adds x to the parts of a lane from `first` on, without an error. Returns the part of x that does not fit.
INLINED double expand(double* part, const uint lane, const uint first, double x)
{
    // Not a loop, so that the compilers of CPU drivers vectorise the loop over lanes.
    if (first == 0) {
        const double error = error_of(part[lane], x);
        part[lane] += x;
        x = error;
    }
    const double second = error_of(part[LANES + lane], x);
    part[LANES + lane] += x;
    const double third = error_of(part[2 * LANES + lane], second);
    part[2 * LANES + lane] += second;
    return third;
}

// Adds the sum of a chunk in two parts. `most` is the largest exponent field. See the header for the bound.
INLINED void expand_chunk(Sum* sum, EXACT_TABLE words, const double* x, const uint most)
{
    const double first = as_double((ulong)(most + LOG_CHUNK) << 52 | (ulong)1 << 51);
    double high[LANES], low[LANES];
    UNROLLED
    for (uint l = 0; l < LANES; l++) {
        high[l] = 0;
        low[l] = 0;
    }
    UNROLLED
    for (uint k = 0; k < CHUNK; k += LANES) {
        IN_VECTORS
        for (uint l = 0; l < LANES; l++) {
            const double q = (first + x[k + l]) - first;
            high[l] += q;
            low[l] += x[k + l] - q;
        }
    }
    UNROLLED
    for (uint l = 1; l < LANES; l++) {
        high[0] += high[l];
        low[0] += low[l];
    }
    const double rest = expand(sum->part, 0, 0, high[0]), rest_of_low = expand(sum->part, 0, 1, low[0]);
    if (rest != 0 || rest_of_low != 0) {
        deposit_double(words, rest);
        deposit_double(words, rest_of_low);
    }
}

INLINED void close_sum(Sum* sum, EXACT_TABLE words)
{
    for (uint l = 0; l < LANES; l++) {
        sum->marks |= as_ulong(sum->part[l]) != as_ulong(-0.0) ? EXACT_FINITE : 0;
    }
    UNROLLED
    for (uint j = 0; j < PARTS * LANES; j++) {
        deposit_double(words, sum->part[j]);
    }
}

INLINED void deposit_rest(EXACT_TABLE words, double* rest)
{
    ROLLED
    for (uint k = 0; k < CHUNK; k++) {
        if (rest[CURRENT(k)] != 0) {
            deposit_double(words, rest[CURRENT(k)]);
        }
        MOVE_DOWN(rest)
    }
}

// Deposits a number that must not be in the registers.
INLINED void add_part(Sum* sum, EXACT_TABLE words, const ulong size, const int position, const int negative)
{
    add_exact(words, size, position, negative, PIECES);
}

#else

INLINED void open_sum(Sum* sum)
{
    sum->marks = 0;
    sum->since = 0;
    // Below any number: the first one opens the window.
    sum->low = -0x8000;
    UNROLLED
    for (uint j = 0; j < WINDOW_WORDS; j++) {
        sum->word[j] = 0;
    }
}

// Deposits the window, and leaves it empty.
INLINED void close_sum(Sum* sum, EXACT_TABLE words)
{
    const int negative = (int)(sum->word[WINDOW_WORDS - 1] >> 63);
    ulong carry = (ulong)negative;
    UNROLLED
    for (uint j = 0; j < WINDOW_WORDS; j++) {
        const ulong word = (negative ? ~sum->word[j] : sum->word[j]) + carry;
        carry = carry && word == 0;
        add_exact(words, word, sum->low + 64 * (int)j, negative, 5);
        sum->word[j] = 0;
    }
    sum->since = 0;
}

// Moves the window so that `position` is in it.
INLINED void move_window(Sum* sum, EXACT_TABLE words, const int position)
{
    close_sum(sum, words);
    sum->low = max(position - (WINDOW - ROOM_ABOVE), 0);
#if A_BYTES == 8 && !DOT
    // Keeps the exponent of infinities above the window.
    sum->low = min(sum->low, NO_NUMBER - 1 - WINDOW + EXACT_ONE);
#endif
}

// Adds number * 2^off, where 0 <= off < WINDOW unless the number is 0.
INLINED void add_shifted(ulong* word, const long number, const uint off)
{
    const uint shift = off & 63;
    const ulong low = (ulong)number << shift, high = (ulong)(number >> 1 >> (63 - shift));
#if WINDOW_WORDS == 2
    word[0] += low;
    word[1] += high + (word[0] < low);
#else
    const int is_upper = off >= 64;
    const ulong first = is_upper ? 0 : low, second = is_upper ? low : high;
    const ulong third = is_upper ? high : (ulong)(number >> 63);
    word[0] += first;
    const ulong carry = word[0] < first, sum = second + carry;
    word[1] += sum;
    word[2] += third + (sum < carry) + (word[1] < sum);
#endif
}

INLINED void add_in_window(Sum* sum, const ulong size, const int off, const int negative)
{
    const long sign = -(long)negative;
    add_shifted(sum->word, ((long)size ^ sign) - sign, (uint)off);
}

// Adds a number to the window, or to the accumulator if the number is below the window. A number above the window moves
// it.
INLINED void add_part(Sum* sum, EXACT_TABLE words, const ulong size, const int position, const int negative)
{
    if (size == 0) {
        return;
    }
    if (position - sum->low >= WINDOW) {
        move_window(sum, words, position);
    }
    if (position < sum->low) {
        add_exact(words, size, position, negative, 5);
    } else {
        add_in_window(sum, size, position - sum->low, negative);
    }
}

#endif

#if !DOT

// Adds any number.
INLINED void add_number(Sum* sum, EXACT_TABLE words, const A x)
{
    const uint field = EXPONENT(x);
    sum->marks |= marks_of(x, field);
    if (field != NO_NUMBER) {
        add_part(sum, words, size_of(x, field), (int)position_of(field) + EXACT_ONE, is_negative(x));
    }
}

INLINED void add_elements(Sum* sum, EXACT_TABLE words, A* x, A* y)
{
    ROLLED
    for (uint k = 0; k < CHUNK; k++) {
        add_number(sum, words, x[CURRENT(k)]);
        MOVE_DOWN(x)
    }
}

// Deposits finite elements. `any` is 0 only if all of them are zeros, which change no word.
INLINED void deposit_elements(Sum* sum, EXACT_TABLE words, const A* x, const uint any)
{
    BITS other = 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        other |= AS_BITS_OF(x[k]) ^ SIGN;
    }
    sum->marks |= other != 0 ? EXACT_FINITE : 0;
    if (any == 0) {
        return;
    }
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const uint field = EXPONENT(x[k]);
        add_straight(words, REPLICAS, signed_size_of(x[k], field), position_of(field) + EXACT_ONE, PIECES);
    }
}

#else

// Adds the product of any two numbers.
INLINED void add_product(Sum* sum, EXACT_TABLE words, const A x, const A y)
{
    const int negative = is_negative(x) ^ is_negative(y);
    sum->marks |= marks_of_product(x, y);
    if (is_infinite_product(x, y)) {
        return;
    }
    const ulong a = size_of(x, EXPONENT(x)), b = size_of(y, EXPONENT(y)), low = a * b;
    const int position = position_of_product(x, y);
#if A_BYTES == 8
    // Splits a b into two numbers below 2^53: floor(a b / 2^53), and the rest. The higher one is first, as it may move
    // the window.
    const ulong high = mul_hi(a << 11, b);
    add_part(sum, words, high, position + 53, negative);
    add_part(sum, words, low & 0x1ffffffffffffful, position, negative);
#else
    add_part(sum, words, low, position, negative);
#endif
}

INLINED void add_elements(Sum* sum, EXACT_TABLE words, A* x, A* y)
{
    ROLLED
    for (uint k = 0; k < CHUNK; k++) {
        add_product(sum, words, x[CURRENT(k)], y[CURRENT(k)]);
        MOVE_DOWN(x)
        MOVE_DOWN(y)
    }
}

// Returns the mark of the products of finite numbers: 0 if all of them are -0.
INLINED uint marks_of_products(const A* x, const A* y)
{
    BITS other = 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        other |= unlike_minus_zero(x[k], y[k]);
    }
    return other != 0 ? EXACT_FINITE : 0;
}

// Deposits the products of finite numbers.
INLINED void deposit_products(Sum* sum, EXACT_TABLE words, const A* x, const A* y)
{
    ulong any = 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const uint x_field = EXPONENT(x[k]), y_field = EXPONENT(y[k]);
        const uint position = position_of(x_field) + position_of(y_field);
#if A_BYTES == 8
        const ulong a = size_of(x[k], x_field), b = size_of(y[k], y_field), high = mul_hi(a, b), low = a * b;
        any |= high | low;
        add_wide(words, REPLICAS, high, low, position, is_negative(x[k]) ^ is_negative(y[k]));
#else
        // One factor takes the sign of the product.
        const int sign = (int)(AS_BITS_OF(x[k]) ^ AS_BITS_OF(y[k])) >> 31;
        const int a = ((int)size_of(x[k], x_field) ^ sign) - sign, b = (int)size_of(y[k], y_field);
        const long product = (long)a * b;
        any |= (ulong)product;
        add_straight(words, REPLICAS, product, position, 4);
#endif
    }
    // The sum can be -0 only if all products are zeros.
    sum->marks |= any != 0 ? EXACT_FINITE : marks_of_products(x, y);
}

// Adds products of any numbers, of which some do not fit in the registers.
INLINED void add_far_products(Sum* sum, EXACT_TABLE words, A* x, A* y)
{
    int infinite = 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        infinite |= EXPONENT(x[k]) == NO_NUMBER || EXPONENT(y[k]) == NO_NUMBER;
    }
    if (infinite) {
        add_elements(sum, words, x, y);
    } else {
        deposit_products(sum, words, x, y);
    }
}

#endif

#if A_BYTES == 4 && !DOT

// The magnitudes of the largest element and of the smallest one that is not 0; for zeros alone, 0 and 0.
INLINED uint2 extremes(const A* x)
{
    uint most = 0, least = UINT_MAX;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const uint magnitude = MAGNITUDE(x[k]);
        most = max(most, magnitude);
        // 0 wraps to the largest number.
        least = min(least, magnitude - 1);
    }
    return (uint2)(least + 1, most);
}

#ifdef REGISTERS
#if defined(T_F16)
// All f16 are multiples of 2^-24 below 2^16. So sums of 2^13 of them are exact.
#define SPREAD 255
#elif defined(T_BF16)
#define SPREAD (53 - 8 - LOG_CHUNK)
#else
#define SPREAD (53 - 24 - LOG_CHUNK)
#endif
INLINED void take_chunk(Sum* sum, EXACT_TABLE words, A* x, A* y)
{
    const uint2 ends = extremes(x);
    const uint least = ends.s0 >> 24, most = ends.s1 >> 24;
    if (least >= 1 && most < NO_NUMBER && most - least <= SPREAD) {
        double lane[LANES];
        UNROLLED
        for (uint l = 0; l < LANES; l++) {
            lane[l] = 0;
        }
        UNROLLED
        for (uint k = 0; k < CHUNK; k += LANES) {
            IN_VECTORS
            for (uint l = 0; l < LANES; l++) {
                lane[l] += (double)x[k + l];
            }
        }
        double total = lane[0];
        for (uint l = 1; l < LANES; l++) {
            total += lane[l];
        }
        sum->marks |= EXACT_FINITE;
        total = expand(sum->part, 0, 0, total);
        if (total != 0) {
            deposit_double(words, total);
        }
    } else if (most < NO_NUMBER) {
        deposit_elements(sum, words, x, ends.s1);
    } else {
        add_elements(sum, words, x, y);
    }
}
#else
// The largest difference of exponents in a chunk that is added up in two parts, and in three parts. Three parts would
// be exact up to 50 - 3 * LOG_CHUNK. But if the difference is above 30 in one chunk of an input, it is in most chunks.
// Then depositing all of them is faster than a mix.
#define SPREAD_OF_TWO (25 - 2 * LOG_CHUNK)
#define SPREAD_OF_THREE (LOG_CHUNK > 6 ? 50 - 3 * LOG_CHUNK : 30)
// From this exponent field on, no part is subnormal.
#define FIELD_LEAST 24

static inline float power_of_two(const int exponent) { return as_float((uint)(127 + exponent) << 23); }

INLINED void take_chunk(Sum* sum, EXACT_TABLE words, A* x, A* y)
{
    const uint2 ends = extremes(x);
    const uint least = ends.s0 >> 24, most = ends.s1 >> 24, field = most + LOG_CHUNK, spread = most - least;
    // `high` can reach 2^(field - 126), which must be finite.
    if (least >= FIELD_LEAST && field + 1 < NO_NUMBER && spread <= SPREAD_OF_THREE) {
        const float first = as_float(field << 23 | 0x400000u);
        float high = 0, low = 0, lowest = 0;
        if (spread <= SPREAD_OF_TWO) {
            UNROLLED
            for (uint k = 0; k < CHUNK; k++) {
                const float q = (first + x[k]) - first;
                high += q;
                low += x[k] - q;
            }
        } else {
            const float second = as_float((field - 25 + LOG_CHUNK) << 23 | 0x400000u);
            UNROLLED
            for (uint k = 0; k < CHUNK; k++) {
                const float q = (first + x[k]) - first, rest = x[k] - q, r = (second + rest) - second;
                high += q;
                low += r;
                lowest += rest - r;
            }
        }
        // Multiplies by 2^-s, in two steps since 2^-s may be subnormal. Then the parts are multiples of 2^-23,
        // 2^(LOG_CHUNK - 48) and 2^(2 LOG_CHUNK - 73).
        const int s = (int)field - 127, s_low = s >> 1;
        const float scale = power_of_two(-s_low), scale2 = power_of_two(s_low - s);
        const long upper = (int)(high * scale * scale2 * power_of_two(23));
        const int lower = (int)(low * scale * scale2 * power_of_two(48 - LOG_CHUNK));
        const int last = (int)(lowest * scale * scale2 * power_of_two(73 - 2 * LOG_CHUNK));
        const long number = (upper << (25 - LOG_CHUNK)) + lower;
        const int position = s - EXACT_LEAST;
        add_part(sum, words, abs(number), position - (48 - LOG_CHUNK), number < 0);
        add_part(sum, words, abs(last), position - (73 - 2 * LOG_CHUNK), last < 0);
        sum->marks |= EXACT_FINITE;
    } else if (most < NO_NUMBER) {
        deposit_elements(sum, words, x, ends.s1);
    } else {
        add_elements(sum, words, x, y);
    }
}
#endif

#elif defined(REGISTERS) && A_BYTES == 4

INLINED void take_chunk(Sum* sum, EXACT_TABLE words, A* x, A* y)
{
    // The largest and the smallest upper half of a magnitude. The smallest is stored minus 1: a 0 wraps to the largest
    // number, so it is ignored.
    uint most = 0, least = UINT_MAX, least_factor = UINT_MAX, other = 0;
    double product[CHUNK];
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        least_factor = min(least_factor, min(MAGNITUDE(x[k]) - 1, MAGNITUDE(y[k]) - 1));
        product[k] = (double)x[k] * (double)y[k];
        const uint upper = (uint)(as_ulong(product[k]) >> 32);
        other |= ~upper;
        most = max(most, upper << 1);
        least = min(least, (upper << 1) - 1);
    }
    // The conversion of a subnormal factor may flush it.
    const int is_exact = least_factor >= ((uint)1 << 24) - 1 && most >> 21 != 0x7ff;
    if (is_exact && most == 0) {
        sum->marks |= other >> 31 ? EXACT_FINITE : 0;
        return;
    }
    most >>= 21;
    least = (least + 1) >> 21;
    // The products have p = 48 bits. See the header for the bound.
    if (!is_exact || most - least > 59 - 2 * LOG_CHUNK) {
        add_far_products(sum, words, x, y);
        return;
    }
    expand_chunk(sum, words, product, most);
}

#elif defined(REGISTERS)

// In this range of exponent fields, no error of an addition or of a product is subnormal, and no sum overflows.
#if DOT
#define FIELD_LEAST 600
#define FIELD_MOST 1400
static inline int is_far(const A x)
{
    return EXPONENT(x) - FIELD_LEAST > FIELD_MOST - FIELD_LEAST && MAGNITUDE(x) != 0;
}
#else
#define FIELD_LEAST 128
#define FIELD_MOST 1900
// Beyond this spread, most elements would not fit in the parts.
#define SPREAD_OF_PARTS 120
#endif

INLINED void take_chunk(Sum* sum, EXACT_TABLE words, A* x, A* y)
{
#if DOT
    int far = 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        far |= is_far(x[k]) | is_far(y[k]);
    }
    if (far) {
        add_far_products(sum, words, x, y);
        return;
    }
    double rest_of_errors[CHUNK];
#else
    // The largest and the smallest upper half of a magnitude. The smallest is stored minus 1: a 0 wraps to the largest
    // number, so it is ignored.
    uint most = 0, least = UINT_MAX, tiny = 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const uint upper = (uint)(as_ulong(x[k]) >> 32) << 1;
        most = max(most, upper);
        least = min(least, upper - 1);
        tiny |= upper == 0 ? (uint)as_ulong(x[k]) : 0;
    }
    const uint bits = most | tiny;
    most >>= 21;
    least = (least + 1) >> 21;
    if (tiny != 0 || least < FIELD_LEAST || most > FIELD_MOST || most - least > SPREAD_OF_PARTS) {
        if (most < NO_NUMBER) {
            deposit_elements(sum, words, x, bits);
        } else {
            add_elements(sum, words, x, y);
        }
        return;
    }
#endif
#if !DOT
    if (most - least <= 54 - 2 * LOG_CHUNK) {
        expand_chunk(sum, words, x, most);
        return;
    }
#endif
    double rest[CHUNK];
    ulong any = 0;
    UNROLLED
    for (uint start = 0; start < CHUNK; start += LANES) {
        IN_VECTORS
        for (uint l = 0; l < LANES; l++) {
            const uint k = start + l;
#if DOT
            const double number = x[k] * y[k];
#else
            const double number = x[k];
#endif
            rest[k] = expand(sum->part, l, 0, number);
            any |= as_ulong(rest[k]) << 1;
#if DOT
            // The error is not added to the first part: +0 would hide that all products are -0.
            rest_of_errors[k] = expand(sum->part, l, 1, fma(x[k], y[k], -number));
            any |= as_ulong(rest_of_errors[k]) << 1;
#endif
        }
    }
    if (any != 0) {
        deposit_rest(words, rest);
#if DOT
        deposit_rest(words, rest_of_errors);
#endif
    }
}

#elif !DOT

// Adds the elements to the window and returns 1, if the window can hold all of them. Else returns 0.
INLINED int add_chunk_in_window(Sum* sum, const A* x)
{
    ulong word[WINDOW_WORDS] = {sum->word[0], sum->word[1]};
    // The exponent field of numbers at the lowest position of the window.
    const int base = sum->low - EXACT_ONE + 1;
    uint far = 0, tiny = 0, other = 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const uint upper = (uint)(as_ulong(x[k]) >> 32), lower = (uint)as_ulong(x[k]);
        const uint field = upper >> 20 & 0x7ff, off = field - (uint)base, sign = (uint)((int)upper >> 31);
        far |= field == 0 ? 0 : off;
        tiny |= field == 0 ? upper << 1 | lower : 0;
        other |= (upper ^ 0x80000000u) | lower;
        const uint size = field == 0 ? 0 : (upper & 0xfffff) | 0x100000;
        const ulong number = (ulong)(size ^ sign) << 32 | (lower ^ sign);
        add_shifted(word, (long)(number - (ulong)(long)(int)sign), off);
    }
    if (far >= WINDOW || tiny != 0) {
        return 0;
    }
    sum->word[0] = word[0];
    sum->word[1] = word[1];
    sum->marks |= other != 0 ? EXACT_FINITE : 0;
    return 1;
}

INLINED void take_chunk(Sum* sum, EXACT_TABLE words, A* x, A* y)
{
    for (uint again = 0; !add_chunk_in_window(sum, x); again++) {
        uint most = 0, least = NO_NUMBER;
        UNROLLED
        for (uint k = 0; k < CHUNK; k++) {
            const uint field = EXPONENT(x[k]);
            most = max(most, field);
            least = MAGNITUDE(x[k]) == 0 ? least : min(least, field);
        }
        if (most == NO_NUMBER) {
            add_elements(sum, words, x, y);
            return;
        }
        if (again || least == 0 || most - least > WINDOW - ROOM_ABOVE) {
            deposit_elements(sum, words, x, 1);
            return;
        }
        move_window(sum, words, (int)most - 1 + EXACT_ONE);
    }
}

#else

#if A_BYTES == 8
// The upper half of a product begins 53 bits higher.
#define LAST_OFF (WINDOW - 53)
#else
#define LAST_OFF WINDOW
#endif

// Adds the products of finite numbers to the window and returns 1, if the window can hold all of them. Else returns 0.
INLINED int add_chunk_in_window(Sum* sum, const A* x, const A* y)
{
    int far = 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const int off = position_of_product(x[k], y[k]) - sum->low;
        far |= is_infinite_product(x[k], y[k]) | (!is_zero_product(x[k], y[k]) & ((uint)off >= LAST_OFF));
    }
    if (far) {
        return 0;
    }
    sum->marks |= marks_of_products(x, y);
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const uint x_field = EXPONENT(x[k]), y_field = EXPONENT(y[k]);
        const ulong a = size_of(x[k], x_field), b = size_of(y[k], y_field), product = a * b;
        const int off = position_of_product(x[k], y[k]) - sum->low;
        const int negative = is_negative(x[k]) ^ is_negative(y[k]);
#if A_BYTES == 8
        add_in_window(sum, product & 0x1ffffffffffffful, off, negative);
        add_in_window(sum, mul_hi(a << 11, b), off + 53, negative);
#else
        add_in_window(sum, product, off, negative);
#endif
    }
    return 1;
}

INLINED void take_chunk(Sum* sum, EXACT_TABLE words, A* x, A* y)
{
    for (uint again = 0; !add_chunk_in_window(sum, x, y); again++) {
        int least = 0x7fff, most = -1;
        UNROLLED
        for (uint k = 0; k < CHUNK; k++) {
            const int position = (int)(position_of(EXPONENT(x[k])) + position_of(EXPONENT(y[k])));
            const int is_zero = MAGNITUDE(x[k]) == 0 || MAGNITUDE(y[k]) == 0;
            least = is_zero ? least : min(least, position);
            most = is_zero ? most : max(most, position);
        }
        if (again || most - least > LAST_OFF - ROOM_ABOVE) {
            add_far_products(sum, words, x, y);
            return;
        }
        move_window(sum, words, most + (WINDOW - LAST_OFF));
    }
}

#endif

// *x = element i; with DOT, *x and *y are its factors. After the last element, the value is -0, which changes no sum.
INLINED void take_number(const OFFSET_T i, const OFFSET_T n, A* x, A* y, INPUT_PARAMS())
{
    if (i >= n) {
        *x = (A)-0.0f;
        *y = 0;
        return;
    }
#if DOT
    T factor, other;
    source_factors_at(i, &factor, &other, SOURCE_ARGS);
    *x = to_acc(factor);
    *y = to_acc(other);
#elif defined(SOURCE)
    *x = to_acc(source_at(i, SOURCE_ARGS));
#else
    *x = to_acc(in_base[in_offset + i]);
#endif
}

// x[0 .. CHUNK] = the work-item's elements of the tile at `base`; with DOT x and y are their factors.
INLINED void load_chunk(const OFFSET_T base, const OFFSET_T n, A* x, A* y, INPUT_PARAMS())
{
    // With one work-item, the work-group's rows are contiguous.
    const OFFSET_T first = base + get_local_id(0) * VEC;
    if (n - base >= TILE) {
#ifdef SOURCE
        T row[ROWS][VEC];
#if DOT
        T other[ROWS][VEC];
#endif
        UNROLLED
        for (uint r = 0; r < ROWS; r++) {
#if DOT
            load_source_factors(first + r * (WG * VEC), row[r], other[r], SOURCE_ARGS);
#else
            load_source(first + r * (WG * VEC), row[r], SOURCE_ARGS);
#endif
        }
        UNROLLED
        for (uint k = 0; k < CHUNK; k++) {
            x[k] = to_acc(row[k / VEC][k % VEC]);
#if DOT
            y[k] = to_acc(other[k / VEC][k % VEC]);
#endif
        }
#else
        TV row[ROWS];
        UNROLLED
        for (uint r = 0; r < ROWS; r++) {
            row[r] = load_vec(in_base + in_offset + first + r * (WG * VEC));
        }
        UNROLLED
        for (uint r = 0; r < ROWS; r++) {
            unpack(row[r], x + r * VEC);
        }
#endif
        return;
    }
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const OFFSET_T i = first + k / VEC * (WG * VEC) + k % VEC;
        take_number(i, n, x + k, y + k, INPUT_ARGS);
    }
}

// Work-group g takes the tiles g, g + groups, ...; with one work-item, contiguous tiles. `sums` is 0 before the launch,
// and has the accumulator and its marks (lib/exact.cl). With ONE_PASS and `round`, the work-group that finishes last
// rounds it.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void reduce_exact(
    INPUT_PARAMS(restrict), LENGTH_PARAMS, volatile __global int* sums, const uint round RESULT_PARAMS)
{
    __local int words[EXACT_WORDS * REPLICAS];
    __local int merged[EXACT_WORDS];
    __local uint marks[1];
#ifdef ONE_PASS
    __local int range[2];
    __local uint ended_scratch[1];
#endif
    TAKE_LENGTH
    END_IF_IDLE(n / TILE + (n % TILE != 0))
    for (uint i = get_local_id(0); i < EXACT_WORDS * REPLICAS; i += WG) {
        words[i] = 0;
    }
    if (get_local_id(0) == 0) {
        marks[0] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    EXACT_TABLE own = words + get_local_id(0) % REPLICAS;
    Sum sum;
    open_sum(&sum);
#ifdef LENGTH_T
    // The sum of no elements is +0.
    sum.marks = n == 0 ? EXACT_FINITE : 0;
#endif
    const OFFSET_T tiles = n / TILE + (n % TILE != 0);
#if WG == 1
    const OFFSET_T run = tiles / WORKING_GROUPS(tiles) + 1, step = 1;
    OFFSET_T tile = min(tiles, (OFFSET_T)get_group_id(0) * run);
    const OFFSET_T end = tile + min(run, tiles - tile);
#else
    const OFFSET_T step = WORKING_GROUPS(tiles), end = tiles;
    OFFSET_T tile = get_group_id(0);
#endif
    while (tile < end) {
        for (uint chunk = 0; chunk < TABLE_CHUNKS && tile < end; chunk++) {
            A x[CHUNK], y[CHUNK];
            load_chunk(tile * TILE, n, x, y, INPUT_ARGS);
            take_chunk(&sum, own, x, y);
#ifndef REGISTERS
            if (++sum.since == WINDOW_CHUNKS) {
                close_sum(&sum, own);
            }
#endif
            tile += step;
        }
        carry_exact(words, EXACT_WORDS * REPLICAS, REPLICAS);
    }
    close_sum(&sum, own);
    if (sum.marks != 0) {
        atomic_or(marks, sum.marks);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    publish_exact(words, merged, marks, sums);
#ifdef ONE_PASS
    if (round && ends_last(ended, WORKING_GROUPS(tiles), ended_scratch)) {
        store_exact(result_base + result_offset, sums, merged, range, 1);
    }
#endif
}

// Rounds the accumulator. One work-group.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void reduce_exact_round(
    volatile __global int* sums, __global RESULT* result_base, const ulong result_offset)
{
    __local int words[EXACT_WORDS];
    __local int range[2];
    store_exact(result_base + result_offset, sums, words, range, 1);
}
