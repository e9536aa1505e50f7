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
// With ONE_PASS the work-groups of count_local may add their counts to one table, which the one that ends last gives out.
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
#ifdef ONE_PASS
#include "lib/subgroup.cl"
#include "lib/ended.cl"
#endif

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
#if VEC == 16
// Bytes by words, in whatever order: counts do not depend on it.
#define BODY uint4
#define TAKE_WORD(TAKE, w) TAKE((IN)(w)) TAKE((IN)((w) >> 8)) TAKE((IN)((w) >> 16)) TAKE((IN)((w) >> 24))
#define TAKE_VEC(TAKE, v) TAKE_WORD(TAKE, v.s0) TAKE_WORD(TAKE, v.s1) TAKE_WORD(TAKE, v.s2) TAKE_WORD(TAKE, v.s3)
#else
#define BODY TV
#if VEC == 8
#define TAKE_VEC(TAKE, v) TAKE4(TAKE, v) TAKE(v.s4) TAKE(v.s5) TAKE(v.s6) TAKE(v.s7)
#elif VEC == 4
#define TAKE_VEC TAKE4
#else
#define TAKE_VEC TAKE2
#endif
#endif
#define EACH_SAMPLE(TAKE)                                                                                              \
    {                                                                                                                  \
        const uint vecs = (n - head) / VEC, step = get_num_groups(0) * WG;                                             \
        __global const BODY* body = (__global const BODY*)(in + head);                                                 \
        uint v = get_global_id(0);                                                                                     \
        for (; v < vecs && vecs - v > 3 * step; v += 4 * step) {                                                       \
            const BODY a = body[v], b = body[v + step], c = body[v + 2 * step], d = body[v + 3 * step];                \
            TAKE_VEC(TAKE, a)                                                                                          \
            TAKE_VEC(TAKE, b)                                                                                          \
            TAKE_VEC(TAKE, c)                                                                                          \
            TAKE_VEC(TAKE, d)                                                                                          \
        }                                                                                                              \
        for (; v < vecs; v += step) {                                                                                  \
            const BODY a = body[v];                                                                                    \
            TAKE_VEC(TAKE, a)                                                                                          \
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
#ifndef REPLICA_BITS
#define REPLICA_BITS 0
#endif

// Group (g, r) counts the samples of g whose slots are in range r, `range` slots long, in 2^REPLICA_BITS replicas: item i
// uses replica i mod 2^REPLICA_BITS, which lie side by side, so that 32 of them are a bank each. range << REPLICA_BITS is
// at most LOCAL_WORDS. With RANGES there is more than one range.
//
// With BYTES samples of one byte are counted by their value, 256 << REPLICA_BITS being at most LOCAL_WORDS too, and each
// value's count goes to its slot at the end. There is one range then.
//
// With ONE_PASS, where `ends` is not 0, there is one range, and counts are added to words of `ended` from COUNTERS_AT on, which
// are 0 before and after. The group that ends last gives them out, as `merge` does: to ulong where `wide`, else to uint.
#ifdef ONE_PASS
#define ENDING_PARAMS                                                                                                  \
    , const uint ends, __global void *counts_base, const ulong counts_offset, const uint wide,                         \
        __global ulong *outside_base, const ulong outside_offset, const uint add ENDED_PARAM
#define GIVE(slot, count)                                                                                              \
    if (!ends) {                                                                                                       \
        out[slot] = count;                                                                                             \
    } else if ((count) != 0) {                                                                                         \
        atomic_add(totals + (slot), count);                                                                            \
    }
#else
#define ENDING_PARAMS
#define GIVE(slot, count) out[slot] = count;
#endif
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_local(
    __global const IN* restrict in_base, const ulong in_offset, const uint n, const uint head, const uint bins,
    __global uint* restrict tables, const uint range ENDING_PARAMS MAP_PARAMS)
{
    __local uint table[LOCAL_WORDS];
    __global const IN* in = in_base + in_offset;
    const uint slots = bins + 3, first = get_group_id(1) * range, len = min(range, slots - first);
    const uint item = get_local_id(0), replicas = 1u << REPLICA_BITS;
    MAP_SETUP(item, WG)
#ifdef BYTES
    __local uint counted[256];
    const uint rows = 256;
#else
    const uint rows = len;
#endif
    for (uint i = item; i < rows << REPLICA_BITS; i += WG) {
        table[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

#if WG == 1
#define ADD_LOCAL(row) table[row]++;
#else
    volatile __local uint* mine = table + (item & (replicas - 1));
#define ADD_LOCAL(row) atomic_inc(mine + ((row) << REPLICA_BITS));
#endif
#ifdef BYTES
#define TAKE_LOCAL(x) ADD_LOCAL((uint)(uchar)(x))
#elif defined(RANGES)
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
#ifdef ONE_PASS
    volatile __global uint* totals = ended + COUNTERS_AT / 4;
#endif
    for (uint row = item; row < rows; row += WG) {
        uint sum = 0;
        for (uint k = 0; k < replicas; k++) {
            // Each item starts at another replica: another bank.
            sum += table[(row << REPLICA_BITS) + ((k + row) & (replicas - 1))];
        }
#ifdef BYTES
        counted[row] = sum;
#else
        GIVE(row, sum)
#endif
    }
#ifdef BYTES
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint slot = item; slot < len; slot += WG) {
        table[slot] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint row = item; row < 256; row += WG) {
        if (counted[row] != 0) {
            atomic_add(table + SLOT((IN)row), counted[row]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint slot = item; slot < len; slot += WG) {
        GIVE(slot, table[slot])
    }
#endif
#ifdef ONE_PASS
    __local uint last;
    if (ends && ends_last(ended, get_num_groups(0), &last)) {
        __global ulong* outside = outside_base + outside_offset;
        for (uint slot = item; slot < slots; slot += WG) {
            const uint sum = atomic_xchg(totals + slot, 0);
            if (slot >= bins) {
                outside[slot - bins] = sum + (add ? outside[slot - bins] : 0);
            } else if (wide) {
                __global ulong* counts = (__global ulong*)counts_base + counts_offset;
                counts[slot] = sum + (add ? counts[slot] : 0);
            } else {
                __global uint* counts = (__global uint*)counts_base + counts_offset;
                counts[slot] = sum + (add ? counts[slot] : 0);
            }
        }
    }
#endif
}

#endif
#endif
