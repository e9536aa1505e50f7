// Quantiles of sorted groups: out[g * fractions + first + f] is the quantile q[f] of group g, a double. A launch has
// `count` <= 8 of the `fractions` fractions, from `first` on. The kernel gets these as an argument, since their upload
// would wait for the sort.
//
// A work-item computes a result from two keys of its group. It computes with integers (lib/double.cl), so the bits are
// the same on every device. If a group is empty or has a NaN, its quantiles are NaN.
//
//     position   at = (keys of the group - 1) * q, a double; its integer part is a rank, the rest a fraction
//     value      the key of the rank, or a value between it and the next one
//
// Bytes: for each result, reads two offsets and up to three keys, and writes 8 bytes. Offsets beyond the keys count as
// their end, so that reads stay in bounds for any offsets.
//
// KEY: an element as its bits. INFINITY_BITS and MANTISSA: keys are floats; their infinity, and the bits of their
// mantissa. KEY_SIGNED: the type of signed integers.
#include "lib/double.cl"

#ifndef KEY
#define KEY uint
#define KEY_BYTES 4
#define INFINITY_BITS 0x7f800000ul
#define MANTISSA 23
#define S uint
#define OFFSET_T uint
#define WG 64
#endif

// The values of `how`, as `Interpolation` of src/topk/quantile.
#define LINEAR 0
#define LOWER 1
#define HIGHER 2
#define NEAREST 3
#define MIDPOINT 4

#ifdef INFINITY_BITS

#define KEY_SIGN (1ul << (8 * KEY_BYTES - 1))
#define BIAS ((1 << (8 * KEY_BYTES - 2 - MANTISSA)) - 1)

static inline int is_nan_key(const KEY key)
{
    return (key & (KEY_SIGN - 1)) > INFINITY_BITS;
}

static inline ulong double_of_key(const KEY key)
{
    const ulong size = key & (KEY_SIGN - 1), sign = (key & KEY_SIGN) != 0 ? DOUBLE_SIGN : 0;
    const int field = (int)(size >> MANTISSA);
    const ulong digits = (size & ((1ul << MANTISSA) - 1)) | (ulong)(field != 0) << MANTISSA;
    return size == INFINITY_BITS ? sign | DOUBLE_INFINITY : double_of(sign, digits, max(field, 1) - BIAS - MANTISSA);
}

#elif defined(KEY_SIGNED)

static inline ulong double_of_key(const KEY key)
{
    const long x = (KEY_SIGNED)key;
    return double_of(x < 0 ? DOUBLE_SIGN : 0, x < 0 ? 0 - (ulong)x : (ulong)x, 0);
}

#else

static inline ulong double_of_key(const KEY key)
{
    return double_of(0, key, 0);
}

#endif

// Returns the value at the fraction `part` of the way from `low` to `high`, where low < high. Both may be infinite.
static inline ulong between(const ulong low, const ulong high, const ulong part)
{
    const int low_far = (low & ~DOUBLE_SIGN) == DOUBLE_INFINITY, high_far = (high & ~DOUBLE_SIGN) == DOUBLE_INFINITY;
    if (low_far || high_far) {
        return low_far && high_far ? DOUBLE_NAN : low_far ? low : high;
    }
    const ulong width = double_sum(high, low ^ DOUBLE_SIGN), rest = double_sum(DOUBLE_ONE, part ^ DOUBLE_SIGN);
    if (width == DOUBLE_INFINITY) {
        return double_sum(double_product(low, rest), double_product(high, part));
    }
    if (part >= DOUBLE_HALF) {
        return double_sum(high, double_product(width, rest) ^ DOUBLE_SIGN);
    }
    // The width is rounded. So a value whose part is below one half could otherwise exceed the middle.
    const ulong middle = double_sum(high, double_product(width, DOUBLE_HALF) ^ DOUBLE_SIGN);
    const ulong value = double_sum(low, double_product(width, part));
    return double_order(middle) < double_order(value) ? middle : value;
}

#if KEY_BYTES == 8 && !defined(INFINITY_BITS)

// As between(), for integers that doubles do not represent: low + (high - low) * part. The sum has 62 bits after
// the point, so it is rounded once if it is 1 or more.
static inline ulong between_integers(const KEY low, const KEY high, const ulong part)
{
    const ulong width = high - low, fraction = double_digits(part);
    const int scale = -double_exponent(part);
    // (high - low) * part * 2^scale, below 2^117.
    ulong above = mul_hi(width, fraction), below = width * fraction;
    if (low == 0) {
        return double_of_wide(0, above, below, -scale);
    }
    ulong rest = 0;
    if (scale <= 62) {
        const int up = 62 - scale;
        above = above << up | below >> 1 >> (63 - up);
        below <<= up;
    } else if (scale - 62 < 64) {
        const int down = scale - 62;
        rest = below & ((1ul << down) - 1);
        below = below >> down | above << 1 << (63 - down);
        above >>= down;
    } else if (scale - 62 < 128) {
        const int down = scale - 62 - 64;
        rest = below | (above & ((1ul << down) - 1));
        below = above >> down;
        above = 0;
    } else {
        rest = above | below;
        above = below = 0;
    }
    const ulong shifted = low << 62;
    below += shifted;
#ifdef KEY_SIGNED
    above += (ulong)((long)low >> 2) + (below < shifted);
#else
    above += (low >> 2) + (below < shifted);
#endif
    // The last bit represents all bits after it.
    below |= rest != 0;
    const int negative = above >> 63 != 0;
    if (negative) {
        below = 0 - below;
        above = ~above + (below == 0);
    }
    return double_of_wide(negative ? DOUBLE_SIGN : 0, above, below, -62);
}

#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void quantiles(
    __global const KEY* restrict sorted, const ulong sorted_offset, const ulong n, __global const S* restrict offsets,
    const ulong offsets_offset, const ulong8 q, const uint first, const uint count, const uint fractions, const uint how,
    const OFFSET_T results, __global ulong* restrict out_base, const ulong out_offset)
{
    const ulong fraction[8] = {q.s0, q.s1, q.s2, q.s3, q.s4, q.s5, q.s6, q.s7};
    sorted += sorted_offset;
    offsets += offsets_offset;
    for (OFFSET_T i = get_global_id(0); i < results; i += get_global_size(0)) {
        const OFFSET_T group = i / count;
        __global ulong* out = out_base + out_offset + (ulong)group * fractions + first + i % count;
        const ulong start = min((ulong)offsets[group], n), end = min((ulong)offsets[group + 1], n);
        if (start >= end) {
            *out = DOUBLE_NAN;
            continue;
        }
        __global const KEY* keys = sorted + start;
        const ulong last = end - start - 1;
#ifdef INFINITY_BITS
        // NaN are sorted after all numbers.
        if (is_nan_key(keys[last])) {
            *out = DOUBLE_NAN;
            continue;
        }
#endif
        const ulong at = double_product(double_of(0, last, 0), fraction[i % count] & ~DOUBLE_SIGN);
        const int point = -double_exponent(at);
        const ulong digits = double_digits(at);
        ulong whole = 0, part = at;
        if (point <= 0) {
            whole = digits << -point;
            part = 0;
        } else if (point < 53) {
            whole = digits >> point;
            part = double_of(0, digits & ((1ul << point) - 1), -point);
        }
        ulong low = whole, high = whole + (part != 0);
        if (how == NEAREST) {
            low += part > DOUBLE_HALF || (part == DOUBLE_HALF && (whole & 1) != 0);
        } else if (how == HIGHER) {
            low = high;
        } else if (how == MIDPOINT) {
            part = DOUBLE_HALF;
        }
        if (how != LINEAR && how != MIDPOINT) {
            part = 0;
        }
        // For many keys, rounding can push the position beyond the last rank.
        const KEY from = keys[min(low, last)], to = keys[min(high, last)];
        const ulong a = double_of_key(from), b = double_of_key(to);
#ifdef INFINITY_BITS
        const int equal = double_order(a) == double_order(b);
#else
        const int equal = from == to;
#endif
        if (equal || part == 0) {
            *out = a;
            continue;
        }
#if KEY_BYTES == 8 && !defined(INFINITY_BITS)
        // 2^53
        const ulong exact = 0x4340000000000000ul;
        if ((a & ~DOUBLE_SIGN) > exact || (b & ~DOUBLE_SIGN) > exact) {
            *out = between_integers(from, to, part);
            continue;
        }
#endif
        *out = between(a, b, part);
    }
}
