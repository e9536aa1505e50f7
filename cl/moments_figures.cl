// Means or variances from moments: out[g], a double, is the mean of group g or, with VARIANCE, its variance.
//
// Bytes: reads a record of 48 bytes for each group (lib/moments.cl), writes 8.
//
// The operations are those of src/reduce/moments.rs. So a device and the host compute the same bits from a record.
//
// WORDS_FLOAT, WORDS_DOUBLE: the elements are floats, and the words of their moments have this type. Without either,
// the elements are integers.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

#ifndef WG
#define WG 256
#define WORDS_FLOAT
#endif

#if defined(WORDS_FLOAT) || defined(WORDS_DOUBLE)

#ifdef WORDS_DOUBLE
#define AS_WORD(x) as_double(x)
#define UP 0x1p530
#else
#define AS_WORD(x) as_float((uint)(x))
#define UP 0x1p82
#endif

static inline double mean_of(__global const ulong* words, const double n)
{
    return (double)AS_WORD(words[0]) + (double)AS_WORD(words[1]);
}

static inline double variance_of(__global const ulong* words, const double n)
{
    const double m2 = AS_WORD(words[2]);
    return m2 < 0 ? -m2 / n * UP * UP : m2 / n;
}

#else

// Returns the double nearest to high * 2^64 + low, a signed integer of 128 bits.
static inline double double_of(ulong low, ulong high)
{
    const int negative = high >> 63 != 0;
    if (negative) {
        low = 0 - low;
        high = ~high + (low == 0);
    }
    double size = low;
    if (high != 0) {
        // The lowest bit is set if any bit after it is, so that one rounding suffices.
        const uint zeros = (uint)clz(high), bits = 64 - zeros;
        const ulong top = zeros == 0 ? high : high << zeros | low >> bits;
        size = ldexp((double)(top | ((low << zeros) != 0)), (int)bits);
    }
    return negative ? -size : size;
}

static inline double mean_of(__global const ulong* words, const double n)
{
    return double_of(words[0], words[1]) / n;
}

// Divides high * 2^64 + low, a signed integer, by n < 2^63. Stores the quotient, rounded down, and returns the
// remainder.
static inline ulong divide(const ulong low, const ulong high, const ulong n, ulong* quotient_low, ulong* quotient_high)
{
    // The quotient of a negative number x is -((-1 - x) / n) - 1.
    const ulong flip = high >> 63 != 0 ? ~0ul : 0, a = low ^ flip, b = high ^ flip;
    ulong rest = 0, q0 = 0, q1 = 0;
    for (uint bit = 128; bit-- > 0;) {
        rest = rest << 1 | ((bit < 64 ? a >> bit : b >> (bit - 64)) & 1);
        const ulong fits = rest >= n;
        rest -= fits ? n : 0;
        if (bit < 64) {
            q0 |= fits << bit;
        } else {
            q1 |= fits << (bit - 64);
        }
    }
    *quotient_low = q0 ^ flip;
    *quotient_high = q1 ^ flip;
    return flip != 0 ? n - 1 - rest : rest;
}

// Adds a * b to the words from `word` on, modulo 2^192.
static inline void add_product(ulong* words, const uint word, const ulong a, const ulong b)
{
    const ulong parts[2] = {a * b, mul_hi(a, b)};
    ulong carry = 0;
    for (uint i = word; i < 3; i++) {
        const ulong part = i - word < 2 ? parts[i - word] : 0, sum = words[i] + part;
        const ulong all = sum + carry;
        carry = (sum < part) + (all < carry);
        words[i] = all;
    }
}

static inline double variance_of(__global const ulong* words, const double n)
{
    const ulong count = (ulong)n, half_count = count / 2;
    // m is the integer nearest to the mean, and the sum of the elements is m n + r.
    const ulong low = words[0] + half_count, high = words[1] + (low < half_count);
    ulong m0, m1;
    const ulong after = divide(low, high, count, &m0, &m1);
    const long r = (long)after - (long)half_count;
    // `shifted`, the sum of squares minus m (sum + r), is the sum of (x - m)^2. s is sum + r.
    const ulong s0 = words[0] + (ulong)r, s1 = words[1] + (r < 0 ? ~0ul : 0ul) + (s0 < (ulong)r);
    const ulong m[3] = {m0, m1, (ulong)((long)m1 >> 63)}, s[3] = {s0, s1, (ulong)((long)s1 >> 63)};
    ulong product[3] = {0, 0, 0};
    for (uint i = 0; i < 3; i++) {
        for (uint j = 0; i + j < 3; j++) {
            add_product(product, i + j, m[i], s[j]);
        }
    }
    double about = 0;
    ulong borrow = 0, shifted[3];
    for (uint i = 0; i < 3; i++) {
        const ulong x = words[2 + i], less = x - product[i];
        shifted[i] = less - borrow;
        borrow = (x < product[i]) | (less < borrow);
    }
    for (uint i = 3; i-- > 0;) {
        about = about * 0x1p64 + (double)shifted[i];
    }
    return (about - (double)r * ((double)r / n)) / n;
}

#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void figures_of_moments(
    __global const ulong* restrict records, const ulong groups, __global double* restrict out)
{
    for (ulong group = get_global_id(0); group < groups; group += get_global_size(0)) {
        __global const ulong* record = records + 6 * group;
        const double n = record[0];
#ifdef VARIANCE
        out[group] = record[0] == 0 ? NAN : variance_of(record + 1, n);
#else
        out[group] = record[0] == 0 ? NAN : mean_of(record + 1, n);
#endif
    }
}
