// Weighted histogram: sums[b] = sum of weights[i] over all i with slot(in[i]) == b.
//
// Integer weights are added modulo 2^64. Sums of floats are exact, and rounded once. So no order of additions matters.
//
// Bytes: reads samples and weights once.
//
//     zero:  the accumulators of the rest = BIAS_WORD, other scratch = 0
//     max:   exponent = the largest exponent field of some of the finite weights; it gives the window's upper end
//     count: for each sample and its weight w:
//                if w is a multiple of 2^q in the window: table[slot] += w / 2^q
//                else if w is infinite or NaN:            marks[slot] |= its mark
//                else:                                    rest[slot] += w
//     merge: sums[bin] (+)= the sum over all tables * 2^q + rest
//            outside[k] (+)= likewise, for the three slots after the bins
//
// A finite float is size * 2^position times the smallest subnormal. The window is a signed integer of 64 bits, or of
// 128 for f64. Without overflow it holds the sum of 2^log_n weights whose exponent fields are at most `exponent`. A
// table gets at most 2^log_n weights. For f64, all tables together get at most that many. The rest covers the whole
// range of the type. So the exponent affects the time, but not the sum.
//
// Each work-group has its table in local memory. With GLOBAL_TABLES, work-group g adds to table g mod count by atomics.
// Such a launch counts only the `slots` slots from `low_slot` on.
//
// Scratch begins with HEAD words: the exponent; REST minus the lowest touched word of the rest; the highest touched
// word plus 1; one unused. Then for floats the marks of each slot and the rest; then the tables. A sum has LIMBS words
// in a table and REST words in the rest. The words k of all slots are contiguous: plane k.
//
// W is the type of weights and SUM that of sums. The count also needs T and MAP of lib/bins.cl.
#include "lib/types.cl"
#include "lib/length.cl"

#ifndef WG
#define WG 256
#define W float
#define W_BYTES 4
#define W_FLOAT
#endif
#ifndef SUM
#define SUM float
#endif

#define HEAD 4
// The initial value of a word of the rest, in the middle of its range, so that sums near 0 rarely carry or borrow.
#define BIAS_WORD 0x80000000u

#if defined(W_FLOAT) && W_BYTES == 8
#define LIMBS 4
#define LIMIT 126
#define VALUE ulong2
#define ZERO_VALUE ((ulong2)(0, 0))
#define LIMB(v, k) ((uint)(((k) < 2 ? (v).x : (v).y) >> (32 * ((k) & 1))))
#define REST 68
#define REAL_BYTES 8
#else
#define LIMBS 2
#define LIMIT 62
#define VALUE ulong
#define ZERO_VALUE 0
#define LIMB(v, k) ((uint)((v) >> (32 * (k))))
#define REST 11
#define REAL_BYTES 4
#endif
#include "lib/parts.cl"

// Marks of infinite and NaN weights.
#define MARK_NAN 1
#define MARK_PLUS 2
#define MARK_MINUS 4

static inline ulong2 add_128(const ulong2 a, const ulong2 b)
{
    const ulong low = a.x + b.x;
    return (ulong2)(low, a.y + b.y + (low < a.x));
}

#ifdef W_FLOAT
static inline REAL real_of(const W w)
{
#if defined(W_F16)
    return f16_to_float(w);
#elif defined(W_BF16)
    return bf16_to_float(w);
#else
    return w;
#endif
}

// The lowest bit q of the window, from the largest exponent field.
static inline uint window_of(const uint field, const uint log_n)
{
    return (uint)max((int)position_of(field) + PRECISION + (int)log_n - LIMIT, 0);
}

static inline uint mark_of(const REAL x)
{
    return x != x ? MARK_NAN : x > 0 ? MARK_PLUS : MARK_MINUS;
}
#endif

#ifdef WEIGHTS_ONLY
#include "histogram_weights_merge.cl"
#else
#include "histogram_weights_count.cl"
#endif
