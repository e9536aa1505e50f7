// Histogram of more bins than local memory has counters for: table[s] = #{i : slot(in[i]) == s}. One launch takes at
// most 2^31 samples.
//
// The samples are partitioned by ranges of 2^RANGE_BITS slots, as in the passes of a radix sort (Adinets and Merrill
// 2022). A sample is stored as a 16-bit number within its range. Then each range is counted in local memory.
//
// Bytes: reads the samples twice, writes and reads 2 bytes for each.
//
//     totals:  totals[r] = #{samples in range r}
//     offsets: starts, cursors = exclusive prefix sums of totals
//     scatter: for each tile: counts its samples by range; for each range r, reserves entries of `numbers` by advancing
//              cursors[r]; writes the samples' numbers there
//     count:   table[slot] += its samples; each work-group counts an equal share of `numbers`, range by range
//
// Scratch: the table; from word `head` on totals[RANGES], starts[RANGES + 1] and cursors[RANGES]; from word
// `numbers_at` on, a multiple of 4, `numbers`. The host zeroes table and totals. There are at most RANGES ranges;
// RANGES is at most WG.
#include "lib/bins.cl"

#ifndef WG
#define WG 256
// Work-items of `count`, whose table takes most of the local memory.
#define COUNT_WG 256
#define RANGES 256
#define RANGE_BITS 10
// Samples of a work-item in a tile.
#define ITEMS 8
#endif
#define TILE (WG * ITEMS)
// Replicas of the counters of `totals`.
#ifndef REPLICAS
#define REPLICAS 8
#endif

#define TOTALS(scratch, head) ((scratch) + (head))
#define STARTS(scratch, head) ((scratch) + (head) + RANGES)
#define CURSORS(scratch, head) ((scratch) + (head) + 2 * RANGES + 1)

// The slot of a sample beyond the end.
#define NO_SLOT 0xffffffffu

static inline uint range_of(const uint slot) { return slot >> RANGE_BITS; }

// Replaces counts[0 .. RANGES] by their exclusive prefix sums. All work-items call it, after a barrier; `sums` has WG
// words.
INLINED void scan_ranges(__local uint* counts, __local uint* sums)
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

// Loads the slots of the work-item's samples of the tile at `base`. Returns true if all of them are in one range; then
// the caller counts them at once.
INLINED int load_slots(
    uint* slots, __global const IN* in, const uint base, const uint n, const uint bins SLOT_PARAMS)
{
    const uint item = get_local_id(0);
    if (n - base > (ITEMS - 1) * WG + item) {
        IN held[ITEMS];
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            held[k] = in[base + k * WG + item];
        }
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            slots[k] = SLOT(held[k]);
        }
    } else {
        for (uint k = 0; k < ITEMS; k++) {
            const uint i = base + k * WG + item;
            slots[k] = i < n ? SLOT(in[i]) : NO_SLOT;
        }
    }
    int alike = slots[ITEMS - 1] != NO_SLOT;
#pragma unroll
    for (uint k = 1; k < ITEMS; k++) {
        alike &= range_of(slots[k]) == range_of(slots[0]);
    }
    return alike;
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
        uint slots[ITEMS];
        if (load_slots(slots, in, base, n, bins MAP_ARGS)) {
            atomic_add(counts + range_of(slots[0]) * REPLICAS + replica, (uint)ITEMS);
        } else {
            for (uint k = 0; k < ITEMS; k++) {
                if (slots[k] != NO_SLOT) {
                    atomic_inc(counts + range_of(slots[k]) * REPLICAS + replica);
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
            atomic_add(TOTALS(scratch, head) + r, sum);
        }
    }
}

// One work-group.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void partition_offsets(
    __global uint* restrict scratch, const uint head, const uint n)
{
    __local uint counts[RANGES];
    __local uint sums[WG];
    const uint item = get_local_id(0);
    if (item < RANGES) {
        counts[item] = TOTALS(scratch, head)[item];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    scan_ranges(counts, sums);
    if (item < RANGES) {
        STARTS(scratch, head)[item] = counts[item];
        CURSORS(scratch, head)[item] = counts[item];
    }
    if (item == 0) {
        STARTS(scratch, head)[RANGES] = n;
    }
}

// Counts the work-item's samples by range; rank[k] is the rank of sample k among the tile's samples of its range, which
// are in any order.
INLINED void rank_samples(uint* rank, const uint* slots, const int alike, __local uint* counts)
{
    if (alike) {
        const uint first = atomic_add(counts + range_of(slots[0]), (uint)ITEMS);
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            rank[k] = first + k;
        }
    } else {
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            rank[k] = slots[k] == NO_SLOT ? 0 : atomic_inc(counts + range_of(slots[k]));
        }
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void partition_scatter(
    __global const IN* restrict in_base, const ulong in_offset, const uint n, const uint bins,
    volatile __global uint* restrict scratch, const uint head, const uint numbers_at MAP_PARAMS)
{
    __global ushort* numbers = (__global ushort*)(scratch + numbers_at);
    __local uint counts[RANGES];
    // The difference between a sample's position in `numbers` and in the sorted tile.
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
        uint slots[ITEMS], rank[ITEMS];
        const int alike = load_slots(slots, in, base, n, bins MAP_ARGS);
        rank_samples(rank, slots, alike, counts);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < RANGES) {
            moves[item] = counts[item] == 0 ? 0 : atomic_add(CURSORS(scratch, head) + item, counts[item]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        scan_ranges(counts, sums);
        if (item < RANGES) {
            moves[item] -= counts[item];
        }
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            if (slots[k] != NO_SLOT) {
                sorted[counts[range_of(slots[k])] + rank[k]] = slots[k];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint len = min((uint)TILE, n - base);
        for (uint i = item; i < len; i += WG) {
            const uint slot = sorted[i];
            numbers[moves[range_of(slot)] + i] = (ushort)(slot & ((1u << RANGE_BITS) - 1));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Returns the last range that begins at `first` or before.
static inline uint find_range(__global const uint* starts, const uint first)
{
    uint range = 0, left = RANGES - 1;
    while (left > 0) {
        const uint half_left = (left + 1) / 2;
        const int reached = starts[range + half_left] <= first;
        range += reached ? half_left : 0;
        left = reached ? left - half_left : half_left - 1;
    }
    return range;
}

// Counts numbers [at, stop), eight at a time. Eight equal numbers are counted by one atomic operation.
INLINED void count_numbers(__local uint* counts, __global const ushort* numbers, const uint at, const uint stop)
{
    for (uint w = at / 8 + get_local_id(0); w < (stop + 7) / 8; w += COUNT_WG) {
        const uint low = w * 8;
        if (low >= at && low + 8 <= stop) {
            const ushort8 v = ((__global const ushort8*)numbers)[w];
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
}

// Work-group g counts numbers [g * per, (g + 1) * per); `per` is a multiple of 8, and `numbers` is 16-byte aligned.
__kernel __attribute__((reqd_work_group_size(COUNT_WG, 1, 1))) void partition_count(
    volatile __global uint* restrict scratch, const uint head, const uint numbers_at, const uint n, const uint per,
    const uint slots)
{
    __global const uint* starts = (__global const uint*)STARTS(scratch, head);
    __global const ushort* numbers = (__global const ushort*)(scratch + numbers_at);
    __local uint counts[1 << RANGE_BITS];
    const uint item = get_local_id(0), first = get_group_id(0) * per, end = first + min(per, n - first);
    uint range = find_range(starts, first);
    for (uint at = first; at < end;) {
        while (starts[range + 1] <= at) {
            range++;
        }
        const uint stop = min(end, starts[range + 1]), len = min(1u << RANGE_BITS, slots - (range << RANGE_BITS));
        for (uint i = item; i < len; i += COUNT_WG) {
            counts[i] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        count_numbers(counts, numbers, at, stop);
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
