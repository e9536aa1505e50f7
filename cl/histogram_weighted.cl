// Weighted histograms: the sum of the weights in each bin, in integers, so that no order of adding them matters.
//
// Integer weights are added up modulo 2^64. Sums of floats are exact, and rounded once. A weight is size * 2^position in units of
// the type's least number. Most weights are whole multiples of 2^q within a window of 64 bits, for doubles of 128: these are
// added up in tables, as signed numbers. Others are added up in `rest`, in global memory, which has words for the whole range.
// Infinite and NaN weights leave marks beside their slot.
//
//     zero:  words of scratch = 0, or BIAS_WORD in the rest
//     max:   exponent = the largest exponent field of the finite weights that are looked at: the window's upper end
//     count: tables[g] = the sums of group g in local memory; or tables[g mod count] += them, with atomics, if GLOBAL_TABLES
//     merge: sums[bin] (+)= the sum over tables * 2^q + rest, outside[k] (+)= likewise
//
// The window has room for 2^log_n weights of a table (for doubles of all tables) below the largest field that was looked at. It
// decides the time and never the sum. All this is of `slots` slots from `low` on, which are all slots unless tables are global.
//
// A sum is LIMBS words, or in the rest REST, each in a plane of its own. Scratch: HEAD words, which are the exponent, REST less
// the lowest word of the rest that was touched, and the highest such word, plus 1; for floats a word of marks for each slot, and
// the rest; the tables. Built for W, the type of weights; SUM is the type of sums. Without WEIGHTS_ONLY for T and MAP of
// lib/bins.cl too, which the count alone needs.
// Bytes: reads samples and weights once.
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
// Words of the rest begin in their middle, so that sums around 0 carry and borrow little.
#define BIAS_WORD 0x80000000u

#if defined(W_FLOAT) && W_BYTES == 8
#define LIMBS 4
#define LIMIT 126
#define VALUE ulong2
#define ZERO_VALUE ((ulong2)(0, 0))
#define LIMB(v, k) ((uint)(((k) < 2 ? (v).x : (v).y) >> (32 * ((k) & 1))))
#define REST 68
#define REAL double
#define BITS ulong
#define AS_BITS_OF(x) as_ulong(x)
#define AS_REAL(x) as_double(x)
#define PRECISION 53
#define NO_NUMBER 0x7ff
#else
#define LIMBS 2
#define LIMIT 62
#define VALUE ulong
#define ZERO_VALUE 0
#define LIMB(v, k) ((uint)((v) >> (32 * (k))))
#define REST 11
#define REAL float
#define BITS uint
#define AS_BITS_OF(x) as_uint(x)
#define AS_REAL(x) as_float(x)
#define PRECISION 24
#define NO_NUMBER 0xff
#endif

#ifdef W_FLOAT
// Tables of windows are added up in 128 bits.
#define MERGED ulong2
#define ADD_MERGED(a, b) add_128(a, b)
#define ZERO_MERGED ((ulong2)(0, 0))
#else
#define MERGED ulong
#define ADD_MERGED(a, b) ((a) + (b))
#define ZERO_MERGED 0
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

#define EXPONENT(x) ((uint)(AS_BITS_OF(x) >> (PRECISION - 1)) & NO_NUMBER)

// The position of the lowest bit of a weight with this exponent field.
static inline uint position_of(const uint field)
{
    return max(field, 1u) - 1;
}

// q of the file's head comment, for a largest exponent field.
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

// Group g writes words [g * per, (g + 1) * per): BIAS_WORD to words [rest, rest_end), 0 to others.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_weights_zero(
    __global uint* restrict scratch, const ulong words, const ulong per, const ulong rest, const ulong rest_end)
{
    const ulong first = get_group_id(0) * per, end = first + min(per, words - first);
    for (ulong i = first + get_local_id(0); i < end; i += WG) {
        scratch[i] = i >= rest && i < rest_end ? BIAS_WORD : 0;
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

#ifdef W_FLOAT
// 32 bits of a signed number from bit `at` on, which can lie before or after it.
static inline uint word_at(const ulong2 x, const int at)
{
    const ulong sign = (long)x.y < 0 ? ~(ulong)0 : 0;
    if (at <= -32 || at >= 128) {
        return at < 0 ? 0 : (uint)sign;
    }
    if (at < 0) {
        return (uint)x.x << -at;
    }
    const uint shift = at & 63;
    const ulong low = at < 64 ? x.x : x.y, high = at < 64 ? x.y : sign;
    return (uint)(shift == 0 ? low : low >> shift | high << (64 - shift));
}

// The float nearest to window * 2^q + rest, ties to even. The rest's words are `plane` apart, of which those from `lowest` to
// below `end` were touched.
static inline REAL rounded(
    const ulong2 window, const uint q, __global const uint* rest, const uint plane, const uint lowest, const uint end)
{
    // The window takes 5 words at most, and one more has what is carried.
    const uint first = min(q / 32, lowest), last = min((uint)REST, max(q / 32 + 5, end) + 1);
    long carry = 0;
    uint digit = 0;
    for (uint k = first; k < last; k++) {
        const uint word = k >= lowest && k < end ? rest[(ulong)k * plane] : BIAS_WORD;
        carry += (long)word_at(window, 32 * (int)k - (int)q) + (long)word - (long)BIAS_WORD;
        digit = (uint)carry;
        carry >>= 32;
    }
    const int negative = (int)digit < 0;
    // Once more, of its size: the highest word that is not 0, the two below it, and whether there is more.
    uint lead = 0, high = 0, middle = 0, low = 0, more = 0, one_below = 0, two_below = 0, others = 0;
    uint complement = negative ? 1 : 0;
    carry = 0;
    for (uint k = first; k < last; k++) {
        const uint word = k >= lowest && k < end ? rest[(ulong)k * plane] : BIAS_WORD;
        carry += (long)word_at(window, 32 * (int)k - (int)q) + (long)word - (long)BIAS_WORD;
        digit = (uint)carry;
        carry >>= 32;
        if (negative) {
            digit = ~digit + complement;
            complement = complement != 0 && digit == 0 ? 1 : 0;
        }
        if (digit != 0) {
            lead = k;
            high = digit;
            middle = one_below;
            low = two_below;
            more = others;
        }
        others |= two_below;
        two_below = one_below;
        one_below = digit;
    }
    if (high == 0) {
        return 0;
    }
    // The 64 leading bits, of which the last one stands for all that follow, and the number of bits below the first one.
    const uint zeros = clz(high), above = 32 * lead + 31 - zeros;
    ulong top = (ulong)high << 32 | middle;
    top = zeros == 0 ? top : top << zeros | low >> (32 - zeros);
    top |= (low << zeros | more) != 0;
    BITS bits;
    if (above < PRECISION) {
        bits = (BITS)(top >> (63 - above));
    } else {
        const ulong whole = top >> (64 - PRECISION), part = top << PRECISION, half_unit = (ulong)1 << 63;
        const ulong up = part > half_unit || (part == half_unit && (whole & 1));
        // The first bit adds 1 to the exponent, and so does what is rounded up to the next power of two.
        const ulong sum = ((ulong)(above - (PRECISION - 1)) << (PRECISION - 1)) + whole + up;
        bits = (BITS)min(sum, (ulong)NO_NUMBER << (PRECISION - 1));
    }
    return AS_REAL(bits | (BITS)negative << (8 * sizeof(BITS) - 1));
}
#endif

// The value of a sum in the caller's type.
static inline SUM finished(
    const MERGED sum, __global const uint* scratch, const uint slot, const uint slots, const uint log_n)
{
#ifdef W_FLOAT
    const uint marks = scratch[HEAD + slot];
    if (marks != 0) {
        return marks == MARK_PLUS ? INFINITY : marks == MARK_MINUS ? -INFINITY : NAN;
    }
    const uint end = scratch[2], lowest = end == 0 ? REST : REST - scratch[1];
    return rounded(sum, window_of(scratch[0], log_n), scratch + HEAD + slots + slot, slots, lowest, end);
#else
    return (SUM)sum;
#endif
}

// Group g sums the slots [g * per, (g + 1) * per), 2^column_bits at a time; its rows of that many items share the tables.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_weights_merge(
    __global const uint* restrict scratch, const ulong table_word, const uint table_count, const uint bins,
    const uint low_slot, const uint slots, const uint log_n, const uint column_bits, const uint per,
    __global SUM* restrict sums_base, const ulong sums_offset, __global SUM* restrict outside_base,
    const ulong outside_offset, const uint add)
{
    __global const uint* tables = scratch + table_word;
    __global SUM* sums = sums_base + sums_offset;
    __global SUM* outside = outside_base + outside_offset;
    const uint cols = 1u << column_bits, rows = WG >> column_bits;
    const uint item = get_local_id(0), col = item & (cols - 1), row = item >> column_bits;
    const uint first = get_group_id(0) * per, end = min(slots, first + per);
#if WG > 1
    __local MERGED shared[WG];
#endif
    for (uint base = first; base < end; base += cols) {
        const uint slot = base + col;
        MERGED sum = ZERO_MERGED;
        if (slot < end) {
            for (uint t = row; t < table_count; t += rows) {
                __global const uint* words = tables + (ulong)t * LIMBS * slots + slot;
#if LIMBS == 2
                const ulong table = (ulong)words[slots] << 32 | words[0];
#ifdef W_FLOAT
                sum = add_128(sum, (ulong2)(table, (long)table < 0 ? ~(ulong)0 : 0));
#else
                sum += table;
#endif
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
                shared[item] = ADD_MERGED(shared[item], shared[item + d * cols]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        sum = shared[item];
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        if (row == 0 && slot < end) {
            const uint whole = low_slot + slot;
            __global SUM* out = whole < bins ? sums + whole : outside + (whole - bins);
            const SUM found = finished(sum, scratch, slot, slots, log_n);
            *out = add ? *out + found : found;
        }
    }
}

#else

#include "lib/bins.cl"

#ifdef W_FLOAT
// The size of a finite weight, in units of its position.
static inline BITS size_of(const REAL x, const uint field)
{
    const BITS first = (BITS)1 << (PRECISION - 1), fraction = AS_BITS_OF(x) & (first - 1);
    return field == 0 ? fraction : fraction | first;
}

// By its bit: a device may take subnormals for 0.
static inline int is_negative(const REAL x)
{
    return (int)(AS_BITS_OF(x) >> (8 * sizeof(BITS) - 1));
}

// Whether a weight is a whole number of 2^q; `value` is that number then. Its field is at most the window's.
INLINED int is_whole(const REAL x, const uint field, const uint q, VALUE* value)
{
    const BITS size = size_of(x, field);
    const int shift = (int)position_of(field) - (int)q;
    const uint below = (uint)min(max(-shift, 0), PRECISION), up = (uint)max(shift, 0);
    if ((size & (((BITS)1 << below) - 1)) != 0) {
        return 0;
    }
    const ulong left = (ulong)(size >> below);
#if LIMBS == 2
    const ulong v = left << up;
    *value = is_negative(x) ? -v : v;
#else
    const ulong high = up == 0 ? 0 : up < 64 ? left >> (64 - up) : left << (up - 64);
    const ulong2 v = (ulong2)(up < 64 ? left << up : 0, high);
    *value = is_negative(x) ? add_128((ulong2)(~v.x, ~v.y), (ulong2)(1, 0)) : v;
#endif
    return 1;
}

// Adds a weight to the words of its slot in the rest, which lie `plane` apart; touched.s0 is REST less the lowest word that was
// touched, touched.s1 the highest one, plus 1.
SELDOM uint2 add_to_rest(
    volatile __global uint* rest, const uint plane, const REAL x, const uint field, const uint2 touched)
{
    const ulong size = size_of(x, field);
    const uint position = position_of(field), shift = position & 31, first = position >> 5;
    const ulong moved = size << shift;
    const uint words[3] = { (uint)moved, (uint)(moved >> 32), shift == 0 ? 0 : (uint)(size >> (64 - shift)) };
    const int negative = is_negative(x);
    uint carry = 0, k = 0;
    for (; k < 3 || carry != 0; k++) {
        const uint part = k < 3 ? words[k] : 0, word = part + carry;
        carry = word < carry;
        if (word != 0) {
            volatile __global uint* at = rest + (ulong)(first + k) * plane;
            if (negative) {
                carry |= atomic_sub(at, word) < word;
            } else {
                const uint old = atomic_add(at, word);
                carry |= old + word < word;
            }
        }
    }
    return (uint2)(max(touched.s0, REST - first), max(touched.s1, min(first + k, (uint)REST)));
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
    const ulong weights_offset, const OFFSET_T n, const uint bins, const uint low_slot, const uint slots,
    const uint log_n, volatile __global uint* restrict scratch, const ulong table_word, const uint table_count,
    const uint replica_bits MAP_PARAMS)
{
    __global const T* in = in_base + in_offset;
    __global const W* weights = weights_base + weights_offset;
    volatile __global uint* out = scratch + table_word + (ulong)(get_group_id(0) % table_count) * LIMBS * slots;
    MAP_SETUP(get_local_id(0), WG)
#ifdef GLOBAL_TABLES
    const uint plane = slots;
    TABLE mine = out;
#define PLACE(slot) (mine + (slot))
#else
    __local uint table[LOCAL_WORDS];
    const uint item = get_local_id(0), plane = slots << replica_bits, replicas = 1u << replica_bits;
    for (uint i = item; i < LIMBS * plane; i += WG) {
        table[i] = 0;
    }
    TABLE mine = table + (item & (replicas - 1));
#define PLACE(slot) (mine + ((slot) << replica_bits))
#endif
    barrier(CLK_LOCAL_MEM_FENCE);

#ifdef GLOBAL_TABLES
#define IN_RANGE(slot) (slot < slots)
#else
#define IN_RANGE(slot) 1
#endif
#ifdef W_FLOAT
    const uint most = scratch[0], q = window_of(most, log_n);
    volatile __global uint* rest = scratch + HEAD + slots;
    uint2 touched = (uint2)(0, 0);
#define TAKE(s, w)                                                                                                     \
    {                                                                                                                  \
        const uint slot = SLOT(s) - low_slot;                                                                          \
        if (IN_RANGE(slot)) {                                                                                          \
            const REAL x = real_of(w);                                                                                 \
            const uint field = EXPONENT(x);                                                                            \
            VALUE value;                                                                                               \
            if (field <= most && is_whole(x, field, q, &value)) {                                                      \
                add_value(PLACE(slot), plane, value);                                                                  \
            } else if (field == NO_NUMBER) {                                                                           \
                atomic_or(scratch + HEAD + slot, mark_of(x));                                                          \
            } else {                                                                                                   \
                touched = add_to_rest(rest + slot, slots, x, field, touched);                                          \
            }                                                                                                          \
        }                                                                                                              \
    }
#else
#define TAKE(s, w)                                                                                                     \
    {                                                                                                                  \
        const uint slot = SLOT(s) - low_slot;                                                                          \
        if (IN_RANGE(slot)) {                                                                                          \
            add_value(PLACE(slot), plane, (ulong)(w));                                                                 \
        }                                                                                                              \
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
        SAMPLES four[4];
        WEIGHTS of_four[4];
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            four[k] = samples_at[u + k * step];
        }
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            of_four[k] = weights_at[u + k * step];
        }
        // Not written out: without optimisation each copy takes a work-item's memory, and a work-group's is on one stack.
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            TAKE_UNIT(four[k], of_four[k])
        }
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

#ifdef W_FLOAT
    if (touched.s1 != 0) {
        atomic_max(scratch + 1, touched.s0);
        atomic_max(scratch + 2, touched.s1);
    }
#endif
#ifndef GLOBAL_TABLES
    barrier(CLK_LOCAL_MEM_FENCE);
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
