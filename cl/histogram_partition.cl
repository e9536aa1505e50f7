// Histograms of more bins than local memory holds: samples are shared out by ranges of slots first, as 16-bit numbers within
// their range; then each range is counted in local memory (as radix sorts do; Adinets, Merrill 2022).
//
// A range has 2^RANGE_BITS slots. RANGES, at most WG, is what arrays have room for. Scratch holds a table of the slots; from
// word `head` on `totals`, the samples of each range, `starts`, where each range's samples begin, and the end of the last,
// and `cursors`, where the next sample of each goes; from word `numbers_at` on, a multiple of 4, `numbers`, the samples. The
// host zeroes table and totals.
//
//     totals:  totals[r] += the samples in range r
//     offsets: starts, cursors = sums of totals before each
//     scatter: numbers[starts[r] .. starts[r + 1]] = the samples of range r, in any order
//     count:   table[slot] += the samples there; group g counts an even share of `numbers`, range by range
//
// One launch takes at most 2^31 samples. Bytes: reads the samples twice, writes and reads 2 bytes for each.
#include "lib/bins.cl"

#ifndef WG
#define WG 256
#endif
// Items of the count, whose table takes most of the local memory.
#ifndef COUNT_WG
#define COUNT_WG 256
#endif
#ifndef RANGES
#define RANGES 256
#endif
#ifndef RANGE_BITS
#define RANGE_BITS 10
#endif
// Samples that an item shares out at a time.
#ifndef ITEMS
#define ITEMS 8
#endif
#define TILE (WG * ITEMS)
#define TOTALS (scratch + head)
#define STARTS (scratch + head + RANGES)
#define CURSORS (scratch + head + 2 * RANGES + 1)
// Replicas of the counters of `totals`.
#ifndef REPLICAS
#define REPLICAS 8
#endif

// counts[0 .. RANGES] become the sums of those before them. All items call it, after a barrier; `sums` has WG words.
static inline __attribute__((always_inline)) void scan_ranges(__local uint* counts, __local uint* sums)
{
    const uint item = get_local_id(0), count = item < RANGES ? counts[item] : 0;
    sums[item] = count;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < WG; d *= 2) {
        const uint more = item >= d ? sums[item - d] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[item] += more;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item < RANGES) {
        counts[item] = sums[item] - count;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// The slots of an item's samples in a tile; those beyond the end have no range.
#define NO_SLOT 0xffffffffu
#define READ_TILE(base)                                                                                                \
    IN held[ITEMS];                                                                                                    \
    uint slots[ITEMS];                                                                                                 \
    if (n - (base) > (ITEMS - 1) * WG + item) {                                                                        \
        _Pragma("unroll") for (uint k = 0; k < ITEMS; k++) { held[k] = in[(base) + k * WG + item]; }                   \
        _Pragma("unroll") for (uint k = 0; k < ITEMS; k++) { slots[k] = SLOT(held[k]); }                               \
    } else {                                                                                                           \
        for (uint k = 0; k < ITEMS; k++) {                                                                             \
            const uint i = (base) + k * WG + item;                                                                     \
            slots[k] = i < n ? SLOT(in[i]) : NO_SLOT;                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    /* Runs of one range are added at once. */                                                                         \
    int alike = slots[ITEMS - 1] != NO_SLOT;                                                                           \
    _Pragma("unroll") for (uint k = 1; k < ITEMS; k++) {                                                               \
        alike &= slots[k] >> RANGE_BITS == slots[0] >> RANGE_BITS;                                                     \
    }

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void partition_totals(
    __global const IN* restrict in_base, const ulong in_offset, const uint n, const uint bins,
    volatile __global uint* restrict scratch, const uint head MAP_PARAMS)
{
    __local uint counts[RANGES * REPLICAS];
    __global const IN* in = in_base + in_offset;
    const uint item = get_local_id(0);
    MAP_SETUP(item, WG)
    for (uint i = item; i < RANGES * REPLICAS; i += WG) {
        counts[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint replica = item % REPLICAS, step = get_num_groups(0) * TILE;
    for (uint base = get_group_id(0) * TILE; base < n; base += min(step, n - base)) {
        READ_TILE(base)
        if (alike) {
            atomic_add(counts + (slots[0] >> RANGE_BITS) * REPLICAS + replica, (uint)ITEMS);
        } else {
            for (uint k = 0; k < ITEMS; k++) {
                if (slots[k] != NO_SLOT) {
                    atomic_inc(counts + (slots[k] >> RANGE_BITS) * REPLICAS + replica);
                }
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint r = item; r < RANGES; r += WG) {
        uint sum = 0;
        for (uint k = 0; k < REPLICAS; k++) {
            sum += counts[r * REPLICAS + k];
        }
        if (sum != 0) {
            atomic_add(TOTALS + r, sum);
        }
    }
}

// One group.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void partition_offsets(
    __global uint* restrict scratch, const uint head, const uint n)
{
    __local uint counts[RANGES];
    __local uint sums[WG];
    const uint item = get_local_id(0);
    if (item < RANGES) {
        counts[item] = TOTALS[item];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    scan_ranges(counts, sums);
    if (item < RANGES) {
        STARTS[item] = counts[item];
        CURSORS[item] = counts[item];
    }
    if (item == 0) {
        STARTS[RANGES] = n;
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void partition_scatter(
    __global const IN* restrict in_base, const ulong in_offset, const uint n, const uint bins,
    volatile __global uint* restrict scratch, const uint head, const uint numbers_at MAP_PARAMS)
{
    __global ushort* numbers = (__global ushort*)(scratch + numbers_at);
    __local uint counts[RANGES];
    // What is added to a place in the tile to get the one in `numbers`.
    __local uint moves[RANGES];
    __local uint sums[WG];
    __local uint sorted[TILE];
    __global const IN* in = in_base + in_offset;
    const uint item = get_local_id(0), step = get_num_groups(0) * TILE;
    MAP_SETUP(item, WG)
    for (uint base = get_group_id(0) * TILE; base < n; base += min(step, n - base)) {
        if (item < RANGES) {
            counts[item] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        READ_TILE(base)
        uint place[ITEMS];
        if (alike) {
            const uint first = atomic_add(counts + (slots[0] >> RANGE_BITS), (uint)ITEMS);
#pragma unroll
            for (uint k = 0; k < ITEMS; k++) {
                place[k] = first + k;
            }
        } else {
#pragma unroll
            for (uint k = 0; k < ITEMS; k++) {
                place[k] = slots[k] == NO_SLOT ? 0 : atomic_inc(counts + (slots[k] >> RANGE_BITS));
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < RANGES) {
            moves[item] = counts[item] == 0 ? 0 : atomic_add(CURSORS + item, counts[item]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        scan_ranges(counts, sums);
        if (item < RANGES) {
            moves[item] -= counts[item];
        }
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            if (slots[k] != NO_SLOT) {
                sorted[counts[slots[k] >> RANGE_BITS] + place[k]] = slots[k];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint len = min((uint)TILE, n - base);
        for (uint i = item; i < len; i += WG) {
            const uint slot = sorted[i];
            numbers[moves[slot >> RANGE_BITS] + i] = (ushort)(slot & ((1u << RANGE_BITS) - 1));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Group g counts numbers [g * per, (g + 1) * per); `per` is a multiple of 8, and `numbers` is 16-byte aligned.
__kernel __attribute__((reqd_work_group_size(COUNT_WG, 1, 1))) void partition_count(
    volatile __global uint* restrict scratch, const uint head, const uint numbers_at, const uint n, const uint per,
    const uint slots)
{
    __global const uint* starts = (__global const uint*)STARTS;
    __global const ushort* numbers = (__global const ushort*)(scratch + numbers_at);
    __local uint counts[1 << RANGE_BITS];
    const uint item = get_local_id(0), first = get_group_id(0) * per, end = first + min(per, n - first);
    __global const ushort8* words = (__global const ushort8*)numbers;
    // The last range that begins at `first` or before.
    uint range = 0, left = RANGES - 1;
    while (left > 0) {
        const uint half_left = (left + 1) / 2;
        const int reached = starts[range + half_left] <= first;
        range += reached ? half_left : 0;
        left = reached ? left - half_left : half_left - 1;
    }
    for (uint at = first; at < end;) {
        while (starts[range + 1] <= at) {
            range++;
        }
        const uint stop = min(end, starts[range + 1]), len = min(1u << RANGE_BITS, slots - (range << RANGE_BITS));
        for (uint i = item; i < len; i += COUNT_WG) {
            counts[i] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint w = at / 8 + item; w < (stop + 7) / 8; w += COUNT_WG) {
            const uint low = w * 8;
            if (low >= at && low + 8 <= stop) {
                const ushort8 v = words[w];
                if (all(v == (ushort8)(v.s0))) {
                    atomic_add(counts + v.s0, 8u);
                } else {
                    atomic_inc(counts + v.s0);
                    atomic_inc(counts + v.s1);
                    atomic_inc(counts + v.s2);
                    atomic_inc(counts + v.s3);
                    atomic_inc(counts + v.s4);
                    atomic_inc(counts + v.s5);
                    atomic_inc(counts + v.s6);
                    atomic_inc(counts + v.s7);
                }
            } else {
                for (uint i = max(low, at); i < min(low + 8, stop); i++) {
                    atomic_inc(counts + numbers[i]);
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = item; i < len; i += COUNT_WG) {
            const uint count = counts[i];
            if (count != 0) {
                atomic_add(scratch + (range << RANGE_BITS) + i, count);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        at = stop;
    }
}
