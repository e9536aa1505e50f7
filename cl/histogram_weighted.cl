// Weighted histograms: the sum of the weights in each bin, in integers, so that no order of adding them matters.
//
// Integer weights are added up modulo 2^64. A float weight w counts as round(w / 2^q), ties to even, in sums of 64 bits, for
// doubles of 128, with one q for all weights in the end: q = E + log_n - LIMIT, or the type's least exponent if that is
// larger, where every weight is below 2^E, E is the least of ..., -1, 3, 7, ... that is so, and there are at most 2^log_n
// weights. Infinite and NaN weights leave marks beside their slot.
//
//     zero:  words of scratch = 0
//     max:   exponent = the largest exponent field of a finite weight, or of those that are looked at
//     count: tables[g] = the sums of group g in local memory; or tables[g mod count] += them, with atomics, if GLOBAL_TABLES
//     count: the same again, if those looked at gave another q than all do
//     merge: sums[bin] (+)= the sum over tables * 2^q, outside[k] (+)= likewise
//
// A sum is LIMBS words, each in a plane of its own. Scratch: HEAD words, of which the first is the exponent, and the second
// that of all weights where few were looked at; for floats a word of marks for each slot; the tables. Built for W, the type of
// weights; SUM is the type of sums. Without WEIGHTS_ONLY for T and MAP of lib/bins.cl too, which the count alone needs.
// Bytes: reads samples and weights once; both twice where the count is repeated; weights of floats twice where tables are global.
#include "lib/types.cl"

#ifndef WG
#define WG 256
#endif
#ifndef W
#define W float
#define W_BYTES 4
#define W_FLOAT
#endif
#ifndef SUM
#define SUM float
#endif

#define HEAD 4

#if defined(W_FLOAT) && W_BYTES == 8
#define LIMBS 4
#define LIMIT 126
#define VALUE ulong2
#define ADD_VALUES(a, b) add_128(a, b)
#define ZERO_VALUE ((ulong2)(0, 0))
#define LIMB(v, k) ((uint)(((k) < 2 ? (v).x : (v).y) >> (32 * ((k) & 1))))
#define REAL double
#define LEAST (-1074)
#define EXPONENT(x) (uint)(as_ulong(x) >> 52 & 0x7ff)
#define NO_NUMBER 0x7ff
#define BIAS 1022
#define POWER(k) as_double((ulong)((k) + 1023) << 52)
#else
#define LIMBS 2
#define LIMIT 62
#define VALUE ulong
#define ADD_VALUES(a, b) ((a) + (b))
#define ZERO_VALUE 0
#define LIMB(v, k) ((uint)((v) >> (32 * (k))))
#define REAL float
#define LEAST (-149)
#define EXPONENT(x) (as_uint(x) >> 23 & 0xff)
#define NO_NUMBER 0xff
#define BIAS 126
#define POWER(k) as_float((uint)((k) + 127) << 23)
#endif

// Marks of weights that are no numbers.
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

// q of the file's head comment.
static inline int quantum(const uint exponent, const uint log_n)
{
    const int least = (int)exponent - BIAS;
    return max(least + ((3 - least) & 3) + (int)log_n - LIMIT, LEAST);
}

static inline uint mark_of(const REAL x)
{
    return x != x ? MARK_NAN : x > 0 ? MARK_PLUS : MARK_MINUS;
}
#endif

#ifdef WEIGHTS_ONLY

// Group g zeroes words [g * per, (g + 1) * per).
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_weights_zero(
    __global uint* restrict scratch, const ulong words, const ulong per)
{
    const ulong first = get_group_id(0) * per, end = first + min(per, words - first);
    for (ulong i = first + get_local_id(0); i < end; i += WG) {
        scratch[i] = 0;
    }
}

#ifdef W_FLOAT
// scratch[0] = the largest exponent field of a finite weight that is looked at: of [g * per, (g + 1) * per) group g looks at the
// first `looked`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_weights_max(
    __global const W* restrict weights_base, const ulong weights_offset, const OFFSET_T n, const OFFSET_T per,
    const OFFSET_T looked, volatile __global uint* restrict scratch)
{
    __local uint highest[1];
    __global const W* weights = weights_base + weights_offset;
    const OFFSET_T first = (OFFSET_T)get_group_id(0) * per;
    if (get_local_id(0) == 0) {
        highest[0] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint most = 0;
    if (first < n) {
        const OFFSET_T end = first + min(looked, n - first);
        OFFSET_T i = first + get_local_id(0);
#define HIGHER(w)                                                                                                      \
    {                                                                                                                  \
        const uint field = EXPONENT(real_of(w));                                                                       \
        most = field == NO_NUMBER ? most : max(most, field);                                                           \
    }
#if WG > 1
        for (; i + 7 * WG < end; i += 8 * WG) {
            const W a = weights[i], b = weights[i + WG], c = weights[i + 2 * WG], d = weights[i + 3 * WG];
            const W e = weights[i + 4 * WG], f = weights[i + 5 * WG], g = weights[i + 6 * WG], h = weights[i + 7 * WG];
            HIGHER(a) HIGHER(b) HIGHER(c) HIGHER(d) HIGHER(e) HIGHER(f) HIGHER(g) HIGHER(h)
        }
#endif
        for (; i < end; i += WG) {
            const W a = weights[i];
            HIGHER(a)
        }
    }
    atomic_max(highest, most);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        atomic_max(scratch, highest[0]);
    }
}
#endif

// The value of a sum in the caller's type.
static inline SUM finished(const VALUE sum, __global const uint* scratch, const uint slot, const uint log_n)
{
#ifdef W_FLOAT
    const uint marks = scratch[HEAD + slot];
    if (marks != 0) {
        return marks == MARK_PLUS ? INFINITY : marks == MARK_MINUS ? -INFINITY : NAN;
    }
    int power = quantum(max(scratch[0], scratch[1]), log_n);
#if LIMBS == 2
    REAL x = (REAL)(long)sum;
#else
    const int negative = (long)sum.y < 0;
    const ulong2 size = negative ? add_128((ulong2)(~sum.x, ~sum.y), (ulong2)(1, 0)) : sum;
    ulong top = size.x;
    if (size.y != 0) {
        // The 64 leading bits, the last of which stands for all that follow.
        const uint lead = clz(size.y), shift = 64 - lead;
        const ulong rest = lead == 0 ? size.x : size.x << lead;
        top = (lead == 0 ? size.y : size.y << lead | size.x >> shift) | (rest != 0);
        power += shift;
    }
    REAL x = (REAL)top;
    x = negative ? -x : x;
#endif
    const int part = power / 2;
    return x * POWER(part) * POWER(power - part);
#else
    return (SUM)sum;
#endif
}

// Group g sums the slots [g * per, (g + 1) * per), 2^column_bits at a time; its rows of that many items share the tables.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_weights_merge(
    __global const uint* restrict scratch, const ulong table_word, const uint table_count, const uint bins,
    const uint log_n, const uint column_bits, const uint per, __global SUM* restrict sums_base, const ulong sums_offset,
    __global SUM* restrict outside_base, const ulong outside_offset, const uint add)
{
    __global const uint* tables = scratch + table_word;
    __global SUM* sums = sums_base + sums_offset;
    __global SUM* outside = outside_base + outside_offset;
    const uint cols = 1u << column_bits, rows = WG >> column_bits;
    const uint item = get_local_id(0), col = item & (cols - 1), row = item >> column_bits, slots = bins + 3;
    const uint first = get_group_id(0) * per, end = min(slots, first + per);
#if WG > 1
    __local VALUE shared[WG];
#endif
    for (uint base = first; base < end; base += cols) {
        const uint slot = base + col;
        VALUE sum = ZERO_VALUE;
        if (slot < end) {
            for (uint t = row; t < table_count; t += rows) {
                __global const uint* words = tables + (ulong)t * LIMBS * slots + slot;
#if LIMBS == 2
                sum += (ulong)words[slots] << 32 | words[0];
#else
                sum = add_128(sum, (ulong2)((ulong)words[slots] << 32 | words[0],
                                            (ulong)words[3 * (ulong)slots] << 32 | words[2 * (ulong)slots]));
#endif
            }
        }
#if WG > 1
        shared[item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = rows / 2; d > 0; d /= 2) {
            if (row < d) {
                shared[item] = ADD_VALUES(shared[item], shared[item + d * cols]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        sum = shared[item];
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        if (row == 0 && slot < end) {
            __global SUM* out = slot < bins ? sums + slot : outside + (slot - bins);
            const SUM found = finished(sum, scratch, slot, log_n);
            *out = add ? *out + found : found;
        }
    }
}

#else

#include "lib/bins.cl"

#ifdef W_FLOAT
// round(x * down * up) as a sum; x is finite, and down * up a power of two. Of a weight that is larger than those looked at any
// number will do: it is counted again.
static inline VALUE whole(const REAL x, const REAL down, const REAL up)
{
#if LIMBS == 2
    return (ulong)convert_long_rte(x * down * up);
#else
    const REAL size = rint(fabs(x) * down * up), high = floor(size * 0x1p-64);
    const ulong2 v = (ulong2)((ulong)(size - high * 0x1p64), (ulong)high);
    return x < 0 ? add_128((ulong2)(~v.x, ~v.y), (ulong2)(1, 0)) : v;
#endif
}
#endif

#ifdef GLOBAL_TABLES
#define TABLE volatile __global uint*
#define ADD_WORD(p, x) atomic_add(p, x)
#elif WG == 1
#define TABLE __local uint*
static inline uint add_word(__local uint* p, const uint x)
{
    const uint old = *p;
    *p = old + x;
    return old;
}
#define ADD_WORD(p, x) add_word(p, x)
#else
#define TABLE volatile __local uint*
#define ADD_WORD(p, x) atomic_add(p, x)
#endif

// Adds v to the sum whose words lie `plane` apart.
static inline void add_value(TABLE sum, const uint plane, const VALUE v)
{
    const uint low = LIMB(v, 0);
    uint carry = 0;
    if (low != 0) {
        const uint old = ADD_WORD(sum, low);
        carry = old + low < low;
    }
#if LIMBS == 2
    const uint high = LIMB(v, 1) + carry;
    if (high != 0) {
        ADD_WORD(sum + plane, high);
    }
#else
    for (uint k = 1; k < LIMBS; k++) {
        const uint limb = LIMB(v, k), word = limb + carry;
        carry = word < limb;
        if (word != 0) {
            const uint old = ADD_WORD(sum + k * plane, word);
            carry |= old + word < word;
        }
    }
#endif
}

// Words of a group's table in local memory.
#ifndef LOCAL_WORDS
#define LOCAL_WORDS 1024
#endif

// Elements of one access; with ALIGNED both inputs start at 16 bytes.
#if !defined(ALIGNED) || WG == 1
#define UNIT 1
#elif T_BYTES == 8 || W_BYTES == 8
#define UNIT 2
#else
#define UNIT 4
#endif

// With local tables item i uses replica i mod 2^replica_bits of each word.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_weights_count(
    __global const T* restrict in_base, const ulong in_offset, __global const W* restrict weights_base,
    const ulong weights_offset, const OFFSET_T n, const uint bins, const uint log_n,
    volatile __global uint* restrict scratch, const ulong table_word, const uint table_count,
    const uint replica_bits, const uint again MAP_PARAMS)
{
#ifdef W_FLOAT
    if (again && quantum(scratch[1], log_n) <= quantum(scratch[0], log_n)) {
        return;
    }
    uint most = 0;
#endif
    __global const T* in = in_base + in_offset;
    __global const W* weights = weights_base + weights_offset;
    const uint slots = bins + 3;
    volatile __global uint* out = scratch + table_word + (ulong)(get_group_id(0) % table_count) * LIMBS * slots;
    MAP_SETUP(get_local_id(0), WG)
#ifdef GLOBAL_TABLES
    const uint plane = slots;
    TABLE mine = out;
#define PLACE(slot) (mine + (slot))
#else
    __local uint table[LOCAL_WORDS];
#ifdef W_FLOAT
    __local uint highest[1];
    if (get_local_id(0) == 0) {
        highest[0] = 0;
    }
#endif
    const uint item = get_local_id(0), plane = slots << replica_bits, replicas = 1u << replica_bits;
    for (uint i = item; i < LIMBS * plane; i += WG) {
        table[i] = 0;
    }
    TABLE mine = table + (item & (replicas - 1));
#define PLACE(slot) (mine + ((slot) << replica_bits))
#endif
    barrier(CLK_LOCAL_MEM_FENCE);

#ifdef W_FLOAT
    const int power = -quantum(scratch[again], log_n), part = power / 2;
    const REAL down = POWER(part), up = POWER(power - part);
#define TAKE(s, w)                                                                                                     \
    {                                                                                                                  \
        const uint slot = SLOT(s);                                                                                     \
        const REAL x = real_of(w);                                                                                     \
        const uint field = EXPONENT(x);                                                                                \
        if (field == NO_NUMBER) {                                                                                      \
            atomic_or(scratch + HEAD + slot, mark_of(x));                                                              \
        } else {                                                                                                       \
            most = max(most, field);                                                                                   \
            add_value(PLACE(slot), plane, whole(x, down, up));                                                         \
        }                                                                                                              \
    }
#else
#define TAKE(s, w)                                                                                                     \
    {                                                                                                                  \
        add_value(PLACE(SLOT(s)), plane, (ulong)(w));                                                                  \
    }
#endif

#if WG == 1
    const OFFSET_T run = n / get_num_groups(0) + 1, first = min(n, (OFFSET_T)get_group_id(0) * run);
    const OFFSET_T end = first + min(run, n - first);
    for (OFFSET_T i = first; i < end; i++) {
        TAKE(in[i], weights[i])
    }
#else
#if UNIT == 1
#define TAKE_UNIT TAKE
#define SAMPLES T
#define WEIGHTS W
#elif UNIT == 2
#define TAKE_UNIT(s, w) TAKE(s.s0, w.s0) TAKE(s.s1, w.s1)
#define SAMPLES CAT(T, 2)
#define WEIGHTS CAT(W, 2)
#else
#define TAKE_UNIT(s, w) TAKE(s.s0, w.s0) TAKE(s.s1, w.s1) TAKE(s.s2, w.s2) TAKE(s.s3, w.s3)
#define SAMPLES CAT(T, 4)
#define WEIGHTS CAT(W, 4)
#endif
    __global const SAMPLES* samples_at = (__global const SAMPLES*)in;
    __global const WEIGHTS* weights_at = (__global const WEIGHTS*)weights;
    const OFFSET_T units = n / UNIT, step = (OFFSET_T)get_num_groups(0) * WG;
    OFFSET_T u = get_global_id(0);
    for (; u < units && units - u > 3 * step; u += 4 * step) {
        const SAMPLES a = samples_at[u], b = samples_at[u + step];
        const SAMPLES c = samples_at[u + 2 * step], d = samples_at[u + 3 * step];
        const WEIGHTS wa = weights_at[u], wb = weights_at[u + step];
        const WEIGHTS wc = weights_at[u + 2 * step], wd = weights_at[u + 3 * step];
        TAKE_UNIT(a, wa)
        TAKE_UNIT(b, wb)
        TAKE_UNIT(c, wc)
        TAKE_UNIT(d, wd)
    }
    for (; u < units; u += step) {
        const SAMPLES a = samples_at[u];
        const WEIGHTS wa = weights_at[u];
        TAKE_UNIT(a, wa)
    }
    for (OFFSET_T i = units * UNIT + get_global_id(0); i < n; i += step) {
        TAKE(in[i], weights[i])
    }
#endif

#ifndef GLOBAL_TABLES
#ifdef W_FLOAT
    atomic_max(highest, most);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
#ifdef W_FLOAT
    // Known from the first count; in the second others read it.
    if (!again && item == 0) {
        atomic_max(scratch + 1, highest[0]);
    }
#endif
    for (uint slot = item; slot < slots; slot += WG) {
        VALUE sum = ZERO_VALUE;
        for (uint k = 0; k < replicas; k++) {
            // Each item starts at another replica: another bank.
            __local const uint* words = table + (slot << replica_bits) + ((k + slot) & (replicas - 1));
#if LIMBS == 2
            sum += (ulong)words[plane] << 32 | words[0];
#else
            sum = add_128(sum, (ulong2)((ulong)words[plane] << 32 | words[0],
                                        (ulong)words[3 * plane] << 32 | words[2 * plane]));
#endif
        }
        for (uint k = 0; k < LIMBS; k++) {
            out[k * slots + slot] = LIMB(sum, k);
        }
    }
#endif
}

#endif
