// Histograms: tables of counters by work-groups, then their sum.
//
// A table has a slot for each bin, then three for samples below, above and NaN, so that every sample has a slot. One
// launch counts at most 2^31 samples, so that no 32-bit counter overflows and indices are 32 bits wide; the host sends
// longer inputs in rounds.
//
//     count_local:  group g of range r:  tables[g][slots of r] = its samples, counted in local memory
//     count_global: tables[g mod count][slot] += 1 for each of its samples, with atomics
//     merge:        counts[bin] (+)= sum over tables, outside[k] (+)= likewise
//
// Built in three ways: with ZERO; with MERGE for C, the type of the caller's counters; else for IN, the type of samples, and
// T and MAP of lib/bins.cl.
// Bytes: reads the samples once for each range of bins; writes and reads the tables.
#include "lib/types.cl"

#ifndef WG
#define WG 256
#endif

#ifdef MERGE

#ifndef C
#define C uint
#endif

// Group g sums the slots [g * per, (g + 1) * per), 2^column_bits at a time; its rows of that many items share the tables.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_merge(
    __global const uint* restrict tables_base, const ulong tables_offset, const uint table_count, const uint bins,
    const uint column_bits, const uint per, __global C* restrict counts_base, const ulong counts_offset,
    __global ulong* restrict outside_base, const ulong outside_offset, const uint add)
{
    __global const uint* tables = tables_base + tables_offset;
    __global C* counts = counts_base + counts_offset;
    __global ulong* outside = outside_base + outside_offset;
    const uint cols = 1u << column_bits, rows = WG >> column_bits;
    const uint item = get_local_id(0), col = item & (cols - 1), row = item >> column_bits, slots = bins + 3;
    const uint first = get_group_id(0) * per, end = min(slots, first + per);
#if WG > 1
    __local ulong sums[WG];
#endif
    for (uint base = first; base < end; base += cols) {
        const uint slot = base + col;
        ulong sum = 0;
        if (slot < end) {
            for (uint t = row; t < table_count; t += rows) {
                sum += tables[(ulong)t * slots + slot];
            }
        }
#if WG > 1
        sums[item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = rows / 2; d > 0; d /= 2) {
            if (row < d) {
                sums[item] += sums[item + d * cols];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        sum = sums[item];
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        if (row == 0 && slot < end) {
            if (slot < bins) {
                counts[slot] = (C)(sum + (add ? counts[slot] : 0));
            } else {
                outside[slot - bins] = sum + (add ? outside[slot - bins] : 0);
            }
        }
    }
}

#elif defined(ZERO)

// Group g zeroes words [g * per, (g + 1) * per) of the tables. Not a fill by the driver, which Oclgrind does not see as an
// initialisation.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_zero(
    __global uint* restrict tables, const uint words, const uint per)
{
    const uint first = get_group_id(0) * per, end = first + min(per, words - first);
    for (uint i = first + get_local_id(0); i < end; i += WG) {
        tables[i] = 0;
    }
}

#else

#include "lib/bins.cl"

// Calls TAKE for each sample of the launch once. `head` samples lie before the first 16-byte boundary. One item takes a
// contiguous run; many take vectors, several of them in flight, and the few samples round them one by one.
#if WG == 1
#define EACH_SAMPLE(TAKE)                                                                                              \
    {                                                                                                                  \
        const uint run = n / get_num_groups(0) + 1, first = min(n, (uint)get_group_id(0) * run);                       \
        const uint end = first + min(run, n - first);                                                                  \
        for (uint i = first; i < end; i++) {                                                                           \
            TAKE(in[i])                                                                                                \
        }                                                                                                              \
    }
#else
#define TAKE2(TAKE, v) TAKE(v.s0) TAKE(v.s1)
#define TAKE4(TAKE, v) TAKE2(TAKE, v) TAKE(v.s2) TAKE(v.s3)
#define TAKE8(TAKE, v) TAKE4(TAKE, v) TAKE(v.s4) TAKE(v.s5) TAKE(v.s6) TAKE(v.s7)
#define TAKE16(TAKE, v)                                                                                                \
    TAKE8(TAKE, v) TAKE(v.s8) TAKE(v.s9) TAKE(v.sa) TAKE(v.sb) TAKE(v.sc) TAKE(v.sd) TAKE(v.se) TAKE(v.sf)
#define LOAD(k) v + k * step < vecs ? body[v + k * step] : body[v]
#define TAKE_IF(TAKE_VEC, TAKE, k, x)                                                                                  \
    if (v + k * step < vecs) {                                                                                         \
        TAKE_VEC(TAKE, x)                                                                                              \
    }
#if VEC == 16
// Sixteen samples keep an item busy enough for two vectors to hide the latency.
#define TAKE_VECS(TAKE)                                                                                                \
    const TV a = body[v], b = LOAD(1);                                                                                 \
    TAKE16(TAKE, a)                                                                                                    \
    TAKE_IF(TAKE16, TAKE, 1, b)                                                                                        \
    v += 2 * step;
#else
#if VEC == 8
#define TAKE_VEC TAKE8
#elif VEC == 4
#define TAKE_VEC TAKE4
#else
#define TAKE_VEC TAKE2
#endif
#define TAKE_VECS(TAKE)                                                                                                \
    const TV a = body[v], b = LOAD(1), c = LOAD(2), d = LOAD(3);                                                       \
    TAKE_VEC(TAKE, a)                                                                                                  \
    TAKE_IF(TAKE_VEC, TAKE, 1, b)                                                                                      \
    TAKE_IF(TAKE_VEC, TAKE, 2, c)                                                                                      \
    TAKE_IF(TAKE_VEC, TAKE, 3, d)                                                                                      \
    v += 4 * step;
#endif
#define EACH_SAMPLE(TAKE)                                                                                              \
    {                                                                                                                  \
        const uint vecs = (n - head) / VEC, step = get_num_groups(0) * WG;                                             \
        __global const TV* body = (__global const TV*)(in + head);                                                     \
        for (uint v = get_global_id(0); v < vecs;) {                                                                   \
            TAKE_VECS(TAKE)                                                                                            \
        }                                                                                                              \
        for (uint i = get_global_id(0); i < n - vecs * VEC; i += step) {                                               \
            TAKE(in[i < head ? i : i + vecs * VEC])                                                                    \
        }                                                                                                              \
    }
#endif

#ifdef GLOBAL_TABLES

// tables[g mod table_count] += the samples of group g. With PRIVATE each group has one item and a table of its own. The
// tables are zeroed before.
#ifdef PRIVATE
#define ADD_GLOBAL(slot, count) table[slot] += count
#else
#define ADD_GLOBAL(slot, count) atomic_add(table + (slot), count)
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_global(
    __global const IN* restrict in_base, const ulong in_offset, const uint n, const uint head, const uint bins,
    volatile __global uint* restrict tables, const uint table_count MAP_PARAMS)
{
    // Many samples outside the bins must not all meet in three words of global memory.
    __local uint outside[3];
    __global const IN* in = in_base + in_offset;
    volatile __global uint* table = tables + (ulong)(get_group_id(0) % table_count) * (bins + 3);
    MAP_SETUP(get_local_id(0), WG)
    for (uint k = get_local_id(0); k < 3; k += WG) {
        outside[k] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    // Runs of one bin are added at once.
    uint held = 0, length = 0;
#define TAKE_GLOBAL(x)                                                                                                 \
    {                                                                                                                  \
        const uint slot = SLOT(x);                                                                                     \
        if (slot != held) {                                                                                            \
            if (length != 0) {                                                                                         \
                ADD_GLOBAL(held, length);                                                                              \
            }                                                                                                          \
            length = 0;                                                                                                \
            held = slot;                                                                                               \
        }                                                                                                              \
        if (slot < bins) {                                                                                             \
            length++;                                                                                                  \
        } else {                                                                                                       \
            atomic_inc(outside + (slot - bins));                                                                       \
        }                                                                                                              \
    }
    EACH_SAMPLE(TAKE_GLOBAL)
    if (length != 0) {
        ADD_GLOBAL(held, length);
    }

    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = get_local_id(0); k < 3; k += WG) {
        if (outside[k] != 0) {
            ADD_GLOBAL(bins + k, outside[k]);
        }
    }
}

#else

// Words of a group's table in local memory.
#ifndef LOCAL_WORDS
#define LOCAL_WORDS 1024
#endif

// Group (g, r) counts the samples of g whose slots are in range r, `range` slots long, in 2^replica_bits replicas: item i
// uses replica i mod 2^replica_bits, which lie side by side, so that 32 of them are a bank each. range << replica_bits is
// at most LOCAL_WORDS. With RANGES there is more than one range.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_local(
    __global const IN* restrict in_base, const ulong in_offset, const uint n, const uint head, const uint bins,
    __global uint* restrict tables, const uint range, const uint replica_bits MAP_PARAMS)
{
    __local uint table[LOCAL_WORDS];
    __global const IN* in = in_base + in_offset;
    const uint slots = bins + 3, first = get_group_id(1) * range, len = min(range, slots - first);
    const uint replicas = 1u << replica_bits;
    MAP_SETUP(get_local_id(0), WG)
    for (uint i = get_local_id(0); i < len << replica_bits; i += WG) {
        table[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

#if WG == 1
#define ADD_LOCAL(slot) table[slot]++;
#else
    const uint replica = get_local_id(0) & (replicas - 1);
#define ADD_LOCAL(slot) atomic_inc(table + (((slot) << replica_bits) + replica));
#endif
#ifdef RANGES
#define TAKE_LOCAL(x)                                                                                                  \
    {                                                                                                                  \
        const uint slot = SLOT(x) - first;                                                                             \
        if (slot < len) {                                                                                              \
            ADD_LOCAL(slot)                                                                                            \
        }                                                                                                              \
    }
#else
#define TAKE_LOCAL(x) ADD_LOCAL(SLOT(x))
#endif
    EACH_SAMPLE(TAKE_LOCAL)

    barrier(CLK_LOCAL_MEM_FENCE);
    __global uint* out = tables + (ulong)get_group_id(0) * slots + first;
    for (uint slot = get_local_id(0); slot < len; slot += WG) {
        uint sum = 0;
        for (uint k = 0; k < replicas; k++) {
            // Each item starts at another replica: another bank.
            sum += table[(slot << replica_bits) + ((k + slot) & (replicas - 1))];
        }
        out[slot] = sum;
    }
}

#endif
#endif
