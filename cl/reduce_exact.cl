// Exact sum: the float nearest to x[0] + ... + x[n - 1] as a real number, ties to even. With DOT, the summands are the
// exact products of the two factors of each element of a source. Neither order nor split matters.
//
// Bytes: reads n elements once. Each work-group adds at most EXACT_WORDS words to one accumulator in global memory.
//
//     for each chunk of CHUNK elements of the work-item, four 16-byte loads at a time:
//         if the sum of the chunk fits in the registers: add it to them
//         else: deposit its elements, or what did not fit, in the work-group's accumulator in local memory (lib/exact.cl)
//         after TABLE_CHUNKS chunks: resolve the carries of the accumulator
//     deposit the registers, add the accumulator to the one in global memory
//     last work-group: result = the accumulator, rounded with integers
//
// With REGISTERS the registers are an expansion of three f64, s[0] + s[1] + s[2], to which TwoSum adds a number without an error:
//
//     for j in 0 .. 3: (s[j], x) = (s[j] + x rounded, the error of this sum);   deposit x unless it is 0
//
// Sums of f32, and of narrower types, are first added up in one f64. Let 2^e <= max |x| < 2^(e + 1) and 2^m <= min |x| over the
// elements of a chunk that are not 0, and let p be their precision. All partial sums are multiples of 2^(m - p + 1), and at most
// CHUNK * 2^(e + 1). They are exact if e + 1 + log2(CHUNK) - (m - p + 1) <= 53, that is if e - m <= 53 - p - log2(CHUNK) = SPREAD.
// A product of two f32 is an f64; one of two f64 is the sum of two, by a fused multiply-add. Elements whose errors could be
// subnormal, or whose sums could overflow, are not in [FIELD_LEAST, FIELD_MOST], and are deposited.
//
// Without REGISTERS the registers are a window of the accumulator: DIGITS signed 64-bit integers. Integer k has the
// weight 2^(32 k), counted from position `low`. They need integers only. Larger numbers move the window up, and smaller
// ones are deposited.
//
// TwoSum: D. E. Knuth, The Art of Computer Programming 2, 4.2.2. Expansions with deposits: Collange et al., see lib/exact.cl.
#include "lib/types.cl"
#define REAL_BYTES A_BYTES
#include "lib/parts.cl"
#include "lib/subgroup.cl"
#ifndef WG
#define WG 256
#endif
#include "lib/exact.cl"
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

// Small work-groups are those of CPU drivers: unrolled loops would only make them compile longer, and lanes let them add in
// vectors. Elsewhere a loop with a large body keeps its numbers in registers: it takes the first one and moves the others.
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

// A word changes at most three times for each element: for the element or its product's two halves, for a window that moves, and
// for a window's highest digit.
#define TABLE_CHUNKS (MOST_ADDED / (3 * CHUNK * (WG / REPLICAS)))

#ifdef REGISTERS
#define PARTS 3
#else
// Positions that a window takes, and additions before its carries must be resolved.
#if A_BYTES == 4 && !DOT
// A number below 2^24 is shifted by at most 31 bits: 2^32 + 255 * 2^55 < 2^63.
#define DIGITS 3
#define WINDOW 64
#define MOST_IN_WINDOW 255
#define WINDOW_CHUNKS (MOST_IN_WINDOW / CHUNK)
#else
// A number below 2^53 changes a digit by at most 2^52: 2^32 + 2047 * 2^52 < 2^63.
#define DIGITS (A_BYTES == 8 && DOT ? 6 : 4)
#define WINDOW (32 * (DIGITS - 1))
#define MOST_IN_WINDOW 2047
#define WINDOW_CHUNKS (MOST_IN_WINDOW / (CHUNK * (A_BYTES == 8 && DOT ? 2 : 1)))
#endif
#endif

typedef struct {
#ifdef REGISTERS
    // Part j of lane l is part[j * LANES + l].
    double part[PARTS * LANES];
#else
    long digit[DIGITS];
    int low;
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
    // No loop, for the compilers of CPU drivers to vectorise the loop over lanes.
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

// A number that must not be in the registers.
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
    for (uint j = 0; j < DIGITS; j++) {
        sum->digit[j] = 0;
    }
}

// Moves the carry of each digit to the next one. The highest digit is deposited, so it cannot overflow.
INLINED void carry_window(Sum* sum, EXACT_TABLE words)
{
    UNROLLED
    for (uint j = 0; j + 1 < DIGITS; j++) {
        sum->digit[j + 1] += sum->digit[j] >> 32;
        sum->digit[j] &= 0xffffffff;
    }
    const long last = sum->digit[DIGITS - 1];
    add_exact(words, abs(last), sum->low + 32 * (DIGITS - 1), last < 0, 5);
    sum->digit[DIGITS - 1] = 0;
    sum->since = 0;
}

INLINED void close_sum(Sum* sum, EXACT_TABLE words)
{
    carry_window(sum, words);
    UNROLLED
    for (uint j = 0; j + 1 < DIGITS; j++) {
        add_exact(words, (ulong)sum->digit[j], sum->low + 32 * (int)j, 0, 3);
        sum->digit[j] = 0;
    }
}

// Adds size * 2^off in the window, or subtracts it: 0 <= off < WINDOW.
INLINED void add_in_window(Sum* sum, const ulong size, const int off, const int negative)
{
    const long sign = -(long)negative, number = ((long)size ^ sign) - sign;
    const uint shift = off & 31, k = (uint)off >> 5;
#if A_BYTES == 4 && !DOT
    const long shifted = number << shift;
    sum->digit[0] += k == 0 ? shifted : 0;
    sum->digit[1] += k == 0 ? 0 : shifted;
#else
    const long low = (uint)((ulong)number << shift), high = number >> (32 - shift);
    UNROLLED
    for (uint j = 0; j < DIGITS; j++) {
        sum->digit[j] += (k == j ? low : 0) + (k + 1 == j ? high : 0);
    }
#endif
}

// Adds a number to the window or, below it, to the accumulator. A number above the window moves it.
INLINED void add_part(Sum* sum, EXACT_TABLE words, const ulong size, const int position, const int negative)
{
    if (size == 0) {
        return;
    }
    if (position - sum->low >= WINDOW) {
        close_sum(sum, words);
        sum->low = max((position & ~31) - (WINDOW - 32), 0);
    }
    if (position < sum->low) {
        add_exact(words, size, position, negative, PIECES);
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

#else

// Adds the product of any two numbers.
INLINED void add_product(Sum* sum, EXACT_TABLE words, const A x, const A y)
{
    const uint x_field = EXPONENT(x), y_field = EXPONENT(y);
    const BITS x_size = MAGNITUDE(x), y_size = MAGNITUDE(y);
    const int negative = is_negative(x) ^ is_negative(y);
    if (x_field == NO_NUMBER || y_field == NO_NUMBER) {
        const int nan = x_size > INFINITE || y_size > INFINITE || x_size == 0 || y_size == 0;
        sum->marks |= nan ? EXACT_NAN : negative ? EXACT_MINUS : EXACT_PLUS;
        return;
    }
    sum->marks |= !negative || (x_size != 0 && y_size != 0) ? EXACT_FINITE : 0;
    const ulong a = size_of(x, x_field), b = size_of(y, y_field), low = a * b;
    const int position = (int)(position_of(x_field) + position_of(y_field));
#if A_BYTES == 8
    // Two numbers below 2^53. The higher one moves the window first.
    const ulong high = mul_hi(a, b) << 11 | low >> 53;
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

#endif

#if A_BYTES == 4 && !DOT

// The magnitudes of the largest element and of the smallest one that is not 0. Only zeros: 0 and 0.
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
// Beyond this spread, most elements would not fit in the parts.
#define SPREAD_OF_PARTS 100

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
    } else if (least >= 1 && most < NO_NUMBER && most - least <= SPREAD_OF_PARTS) {
        ROLLED
        for (uint k = 0; k < CHUNK; k++) {
            const double rest = expand(sum->part, k % LANES, 0, (double)x[CURRENT(k)]);
            if (rest != 0) {
                deposit_double(words, rest);
            }
            MOVE_DOWN(x)
        }
        sum->marks |= EXACT_FINITE;
    } else {
        add_elements(sum, words, x, y);
    }
}
#else
INLINED void take_chunk(Sum* sum, EXACT_TABLE words, A* x, A* y)
{
    const uint2 ends = extremes(x);
    const int least = (int)(ends.s0 >> 24), most = (int)(ends.s1 >> 24);
    // A normal float has position field - 1.
    const int low = sum->low - EXACT_ONE + 1;
    if (least >= max(low, 1) && most < min(low + WINDOW, NO_NUMBER)) {
        UNROLLED
        for (uint k = 0; k < CHUNK; k++) {
            const uint field = EXPONENT(x[k]);
            // 0 is 0 at any position.
            add_in_window(sum, size_of(x[k], field), ((int)field - low) & (WINDOW - 1), is_negative(x[k]));
        }
        sum->marks |= EXACT_FINITE;
    } else {
        add_elements(sum, words, x, y);
    }
}
#endif

#elif defined(REGISTERS)

// Exponent fields of f64 for which no error of an addition, and none of a product, is subnormal, and no sum overflows. The
// product of two f32 has no error; only subnormal ones are left out, since their conversion may flush them.
#if A_BYTES == 4
#define FIELD_LEAST 1
#define FIELD_MOST 254
#elif DOT
#define FIELD_LEAST 600
#define FIELD_MOST 1400
#else
#define FIELD_LEAST 128
#define FIELD_MOST 1900
#endif

static inline int is_far(const A x)
{
    return EXPONENT(x) - FIELD_LEAST > FIELD_MOST - FIELD_LEAST && MAGNITUDE(x) != 0;
}

INLINED void take_chunk(Sum* sum, EXACT_TABLE words, A* x, A* y)
{
    int far = 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        far |= is_far(x[k]);
#if DOT
        far |= is_far(y[k]);
#endif
    }
    if (far) {
        add_elements(sum, words, x, y);
        return;
    }
    double rest[CHUNK];
    ulong any = 0;
#if DOT && A_BYTES == 8
    double rest_of_errors[CHUNK];
#endif
    UNROLLED
    for (uint start = 0; start < CHUNK; start += LANES) {
        IN_VECTORS
        for (uint l = 0; l < LANES; l++) {
            const uint k = start + l;
#if DOT
            const double number = (double)x[k] * (double)y[k];
#else
            const double number = x[k];
#endif
            rest[k] = expand(sum->part, l, 0, number);
            any |= as_ulong(rest[k]) << 1;
#if DOT && A_BYTES == 8
            // The error is not added to the first part: +0 would hide that all products are -0.
            rest_of_errors[k] = expand(sum->part, l, 1, fma(x[k], y[k], -number));
            any |= as_ulong(rest_of_errors[k]) << 1;
#endif
        }
    }
    if (any != 0) {
        deposit_rest(words, rest);
#if DOT && A_BYTES == 8
        deposit_rest(words, rest_of_errors);
#endif
    }
}

#else

#if DOT && A_BYTES == 8
// The upper half of a product begins 53 bits higher.
#define LAST_OFF (WINDOW - 53)
#else
#define LAST_OFF WINDOW
#endif

INLINED void take_chunk(Sum* sum, EXACT_TABLE words, A* x, A* y)
{
    int far = 0;
    BITS other = 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const uint field = EXPONENT(x[k]);
        int position = (int)position_of(field), number = field != NO_NUMBER, zero = MAGNITUDE(x[k]) == 0;
        BITS sign = AS_BITS_OF(x[k]);
#if DOT
        const uint field2 = EXPONENT(y[k]);
        position += (int)position_of(field2);
        number &= field2 != NO_NUMBER;
        zero |= MAGNITUDE(y[k]) == 0;
        sign ^= AS_BITS_OF(y[k]);
        other |= zero ? ~sign & SIGN : 1;
#else
        position += EXACT_ONE;
        other |= sign ^ SIGN;
#endif
        far |= !number || (!zero && (uint)(position - sum->low) >= LAST_OFF);
    }
    if (far) {
        add_elements(sum, words, x, y);
        return;
    }
    sum->marks |= other != 0 ? EXACT_FINITE : 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const uint field = EXPONENT(x[k]);
        const ulong size = size_of(x[k], field);
        const int off = (int)position_of(field) - sum->low;
#if DOT
        const uint field2 = EXPONENT(y[k]);
        const ulong size2 = size_of(y[k], field2), product = size * size2;
        const int off2 = off + (int)position_of(field2), negative = is_negative(x[k]) ^ is_negative(y[k]);
#if A_BYTES == 8
        add_in_window(sum, product & 0x1ffffffffffffful, off2, negative);
        add_in_window(sum, mul_hi(size, size2) << 11 | product >> 53, off2 + 53, negative);
#else
        add_in_window(sum, product, off2, negative);
#endif
#else
        add_in_window(sum, size, off + EXACT_ONE, is_negative(x[k]));
#endif
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

// Work-group g takes the tiles g, g + groups, ...; with one work-item a run of tiles. `sums` is 0 before the launch, and has the
// accumulator and its marks (lib/exact.cl). With ONE_PASS and `round`, the work-group that finishes last rounds it.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void reduce_exact(
    INPUT_PARAMS(restrict), const OFFSET_T n, volatile __global int* sums, const uint round RESULT_PARAMS)
{
    __local int words[EXACT_WORDS * REPLICAS];
    __local int merged[EXACT_WORDS];
    __local uint marks[1];
#ifdef ONE_PASS
    __local int range[2];
    __local uint ended_scratch[1];
#endif
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
    const OFFSET_T tiles = n / TILE + (n % TILE != 0);
#if WG == 1
    const OFFSET_T run = tiles / get_num_groups(0) + 1, step = 1;
    OFFSET_T tile = min(tiles, (OFFSET_T)get_group_id(0) * run);
    const OFFSET_T end = tile + min(run, tiles - tile);
#else
    const OFFSET_T step = get_num_groups(0), end = tiles;
    OFFSET_T tile = get_group_id(0);
#endif
    while (tile < end) {
        for (uint chunk = 0; chunk < TABLE_CHUNKS && tile < end; chunk++) {
            A x[CHUNK], y[CHUNK];
            load_chunk(tile * TILE, n, x, y, INPUT_ARGS);
            take_chunk(&sum, own, x, y);
#ifndef REGISTERS
            if (++sum.since == WINDOW_CHUNKS) {
                carry_window(&sum, own);
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
    if (round && ends_last(ended, get_num_groups(0), ended_scratch)) {
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
