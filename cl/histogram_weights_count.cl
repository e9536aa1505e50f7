// Adds the weights of samples to tables, marks and the rest (histogram_weighted.cl).
#include "lib/bins.cl"

#ifdef GLOBAL_TABLES
#define TABLE volatile __global uint*
#define IN_RANGE(slot, slots) ((slot) < (slots))
static inline uint add_word(TABLE p, const uint x) { return atomic_add(p, x); }
#elif WG == 1
#define IN_RANGE(slot, slots) 1
#define TABLE __local uint*
static inline uint add_word(TABLE p, const uint x)
{
    const uint old = *p;
    *p = old + x;
    return old;
}
#else
#define IN_RANGE(slot, slots) 1
#define TABLE volatile __local uint*
static inline uint add_word(TABLE p, const uint x) { return atomic_add(p, x); }
#endif

// Adds v to a sum, with carries from word to word.
static inline void add_value(TABLE sum, const uint plane, const VALUE v)
{
    uint carry = 0;
    for (uint k = 0; k < LIMBS; k++) {
        const uint limb = LIMB(v, k), word = limb + carry;
        carry = word < limb;
        if (word != 0) {
            const uint old = add_word(sum + k * plane, word);
            carry |= old + word < word;
        }
    }
}

// The destinations of a work-item's weights. The first word of slot s in `table` is at s << replica_bits; `most` and
// `q` define the window.
typedef struct {
    TABLE table;
    uint plane, slots, replica_bits, most, q;
    volatile __global uint* scratch;
    uint2 touched;
} Sums;

#ifdef W_FLOAT

// Numbers of a window, whose words in a table are `plane` apart.
#if LIMBS == 2
static inline ulong shifted(const ulong left, const uint up, const int negative)
{
    const ulong v = left << up;
    return negative ? -v : v;
}
static inline ulong add_words(const ulong sum, __local const uint* words, const uint plane)
{
    return sum + ((ulong)words[plane] << 32 | words[0]);
}
#else
static inline ulong2 shifted(const ulong left, const uint up, const int negative)
{
    const ulong high = up == 0 ? 0 : up < 64 ? left >> (64 - up) : left << (up - 64);
    const ulong2 v = (ulong2)(up < 64 ? left << up : 0, high);
    return negative ? add_128((ulong2)(~v.x, ~v.y), (ulong2)(1, 0)) : v;
}
static inline ulong2 add_words(const ulong2 sum, __local const uint* words, const uint plane)
{
    return add_128(
        sum, (ulong2)((ulong)words[plane] << 32 | words[0], (ulong)words[3 * plane] << 32 | words[2 * plane]));
}
#endif

// Returns 1 if a weight is a multiple of 2^q, and puts weight / 2^q into `value`. The caller has tested that the
// weight's exponent field is not above that of the window's upper end.
INLINED int is_whole(const REAL x, const uint field, const uint q, VALUE* value)
{
    const BITS size = size_of(x, field);
    const int shift = (int)position_of(field) - (int)q;
    const uint below = (uint)min(max(-shift, 0), PRECISION), up = (uint)max(shift, 0);
    if ((size & (((BITS)1 << below) - 1)) != 0) {
        return 0;
    }
    const ulong left = (ulong)(size >> below);
    *value = shifted(left, up, is_negative(x));
    return 1;
}

// Adds a weight to its slot in the rest, whose words are `plane` apart. Returns the new `touched`: REST minus the
// lowest touched word, and the highest touched word plus 1.
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
INLINED void open_window(Sums* sums, const uint log_n)
{
    sums->most = sums->scratch[0];
    sums->q = window_of(sums->most, log_n);
    sums->touched = (uint2)(0, 0);
}

// Adds a weight to a slot. Without GLOBAL_TABLES all slots are in the table.
INLINED void add_weight(Sums* sums, const uint slot, const W w)
{
    if (IN_RANGE(slot, sums->slots)) {
        const REAL x = real_of(w);
        const uint field = EXPONENT(x);
        VALUE value;
        if (field <= sums->most && is_whole(x, field, sums->q, &value)) {
            add_value(sums->table + (slot << sums->replica_bits), sums->plane, value);
        } else if (field == NO_NUMBER) {
            atomic_or(sums->scratch + HEAD + slot, mark_of(x));
        } else {
            volatile __global uint* rest = sums->scratch + HEAD + sums->slots + slot;
            sums->touched = add_to_rest(rest, sums->slots, x, field, sums->touched);
        }
    }
}

INLINED void store_touched(const Sums* sums)
{
    if (sums->touched.s1 != 0) {
        atomic_max(sums->scratch + 1, sums->touched.s0);
        atomic_max(sums->scratch + 2, sums->touched.s1);
    }
}

#else

static inline ulong add_words(const ulong sum, __local const uint* words, const uint plane)
{
    return sum + ((ulong)words[plane] << 32 | words[0]);
}

INLINED void open_window(Sums* sums, const uint log_n) {}

INLINED void add_weight(Sums* sums, const uint slot, const W w)
{
    if (IN_RANGE(slot, sums->slots)) {
        add_value(sums->table + (slot << sums->replica_bits), sums->plane, (ulong)w);
    }
}

INLINED void store_touched(const Sums* sums) {}

#endif

// Words of a work-group's table in local memory.
#ifndef LOCAL_WORDS
#define LOCAL_WORDS 1024
#endif

// Elements of one access; with ALIGNED both inputs start at a multiple of 16 bytes.
#if !defined(ALIGNED) || WG == 1
#define UNIT 1
#define SAMPLES T
#define WEIGHTS W
#else
#define UNIT (T_BYTES == 8 || W_BYTES == 8 ? 2 : 4)
#if T_BYTES == 8 || W_BYTES == 8
#define SAMPLES CAT(T, 2)
#define WEIGHTS CAT(W, 2)
#else
#define SAMPLES CAT(T, 4)
#define WEIGHTS CAT(W, 4)
#endif
#endif
typedef union {
    SAMPLES all;
    T one[UNIT];
} SampleUnit;
typedef union {
    WEIGHTS all;
    W one[UNIT];
} WeightUnit;

// Writes the sum of the replicas of each slot to `out`, as planes of `slots` words.
INLINED void store_table(
    __local const uint* table, const uint slots, const uint replica_bits, volatile __global uint* out)
{
    const uint plane = slots << replica_bits, replicas = 1u << replica_bits;
    for (uint slot = get_local_id(0); slot < slots; slot += WG) {
        VALUE sum = ZERO_VALUE;
        for (uint k = 0; k < replicas; k++) {
            // Each work-item starts at another replica, and so in another bank.
            sum = add_words(sum, table + (slot << replica_bits) + ((k + slot) & (replicas - 1)), plane);
        }
        for (uint k = 0; k < LIMBS; k++) {
            out[k * slots + slot] = LIMB(sum, k);
        }
    }
}

// With local tables work-item i uses replica i mod 2^replica_bits of each word.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_weights_count(
    __global const T* restrict in_base, const ulong in_offset, __global const W* restrict weights_base,
    const ulong weights_offset, LENGTH_PARAMS, const uint bins, const uint low_slot, const uint slots,
    const uint log_n, volatile __global uint* restrict scratch, const ulong table_word, const uint table_count,
    const uint replica_bits MAP_PARAMS)
{
    TAKE_LENGTH
    __global const T* in = in_base + in_offset;
    __global const W* weights = weights_base + weights_offset;
    volatile __global uint* out = scratch + table_word + (ulong)(get_group_id(0) % table_count) * LIMBS * slots;
    MAP_SETUP(get_local_id(0), WG)
    Sums sums;
    sums.scratch = scratch;
    sums.slots = slots;
#ifdef GLOBAL_TABLES
    sums.table = out;
    sums.plane = slots;
    sums.replica_bits = 0;
#else
    __local uint table[LOCAL_WORDS];
    sums.table = table + (get_local_id(0) & ((1u << replica_bits) - 1));
    sums.plane = slots << replica_bits;
    sums.replica_bits = replica_bits;
    for (uint i = get_local_id(0); i < LIMBS * sums.plane; i += WG) {
        table[i] = 0;
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    open_window(&sums, log_n);

    if (WG == 1) {
        const OFFSET_T run = n / get_num_groups(0) + 1, first = min(n, (OFFSET_T)get_group_id(0) * run);
        const OFFSET_T end = first + min(run, n - first);
        for (OFFSET_T i = first; i < end; i++) {
            add_weight(&sums, SLOT(in[i]) - low_slot, weights[i]);
        }
    } else {
        __global const SAMPLES* samples_at = (__global const SAMPLES*)in;
        __global const WEIGHTS* weights_at = (__global const WEIGHTS*)weights;
        const OFFSET_T units = n / UNIT, step = (OFFSET_T)get_num_groups(0) * WG;
        OFFSET_T u = get_global_id(0);
        for (; u < units && units - u > 3 * step; u += 4 * step) {
            SampleUnit four[4];
            WeightUnit of_four[4];
#pragma unroll
            for (uint k = 0; k < 4; k++) {
                four[k].all = samples_at[u + k * step];
            }
#pragma unroll
            for (uint k = 0; k < 4; k++) {
                of_four[k].all = weights_at[u + k * step];
            }
            // Loops, not copies of their body: without optimisation each copy would take private memory of its own, and
            // one stack holds the private memory of a whole work-group.
#pragma unroll
            for (uint k = 0; k < 4; k++) {
#pragma unroll
                for (uint j = 0; j < UNIT; j++) {
                    add_weight(&sums, SLOT(four[k].one[j]) - low_slot, of_four[k].one[j]);
                }
            }
        }
        for (; u < units; u += step) {
            SampleUnit a;
            WeightUnit of_a;
            a.all = samples_at[u];
            of_a.all = weights_at[u];
#pragma unroll
            for (uint j = 0; j < UNIT; j++) {
                add_weight(&sums, SLOT(a.one[j]) - low_slot, of_a.one[j]);
            }
        }
        for (OFFSET_T i = units * UNIT + get_global_id(0); i < n; i += step) {
            add_weight(&sums, SLOT(in[i]) - low_slot, weights[i]);
        }
    }

    store_touched(&sums);
#ifndef GLOBAL_TABLES
    barrier(CLK_LOCAL_MEM_FENCE);
    store_table(table, slots, replica_bits, out);
#endif
}
