// Set operations on two sorted ranges a and b, with the multiplicities of C++'s std::set_*. Let m(x) and n(x) be the
// numbers of elements of a and b that are equal to x. The result has, of each x,
//
//     union: max(m, n)   intersection: min(m, n)   difference: max(m - n, 0)   symmetric difference: |m - n|
//
// Bytes: reads both ranges twice, writes the result once.
//
//     set_splits:   for each tile: its split of the merge, and where the equals of its first elements begin
//     set_tiles:    for each tile, in the order of the merge: count the kept elements
//     set_offsets:  exclusive prefix sums of the counts, and their sum
//     set_tiles:    once more: write the kept elements, but none beyond `capacity`
//
// The rank of an element is its index among its equals in its own range. It is matched if the other range has an equal
// element of the same rank. The union keeps all of a, and the unmatched elements of b. The intersection keeps the
// matched elements of a, and the difference the unmatched ones. The symmetric difference keeps the unmatched elements
// of both.
//
// If the merge takes an element of a, the next element of b is the first one that is not before it. So the match is
// `rank` elements after this element of b. If the merge takes an element of b, it has taken all equals in a before. So
// the match is `rank` elements before the last of these. A match outside of the tile is read from global memory.
//
// Merge path (Green, McColl and Bader 2012): lib/merge.cl. If WG == 1, one work-item walks through a tile in global
// memory.

#include "lib/merge.cl"

// Which elements are kept.
#ifndef SET_UNION
#define SET_UNION 0
#define SET_INTERSECTION 1
#define SET_DIFFERENCE 2
#define SET_SYMMETRIC 3
#endif
#ifndef SET
#define SET SET_UNION
#endif
#define WANTS_FIRST (SET != SET_UNION)
#define WANTS_SECOND (SET == SET_UNION || SET == SET_SYMMETRIC)

// Scratch has four numbers for each tile, in four arrays. The first is its split. EQUALS_A is the index at which the
// equals of its first element of a begin, and EQUALS_B the same for b. COUNTS is how many elements it keeps; after
// set_offsets, how many earlier tiles keep.
#define EQUALS_A(scratch, tiles) ((scratch) + (tiles))
#define EQUALS_B(scratch, tiles) ((scratch) + 2 * (ulong)(tiles))
#define COUNTS(scratch, tiles) ((scratch) + 3 * (ulong)(tiles))

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void set_splits(
    __global const T* a_base, const ulong a_offset, const OFFSET_T len_a, __global const T* b_base,
    const ulong b_offset, const OFFSET_T len_b, const uint tiles, __global OFFSET_T* scratch)
{
    __global const T* a = a_base + a_offset;
    __global const T* b = b_base + b_offset;
    for (uint t = get_global_id(0); t < tiles; t += get_global_size(0)) {
        const OFFSET_T d = (OFFSET_T)t * TILE, split = find_split(a, len_a, b, len_b, d);
        scratch[t] = split;
        const OFFSET_T split_b = d - split;
        OFFSET_T equals_a = split, equals_b = split_b;
        if (split < len_a) {
            equals_a = find_lower(a, split, a[split]);
        }
        if (split_b < len_b) {
            equals_b = find_lower(b, split_b, b[split_b]);
        }
        EQUALS_A(scratch, tiles)[t] = equals_a;
        EQUALS_B(scratch, tiles)[t] = equals_b;
    }
}

// The sum of x over the work-items before this one; *all becomes the sum over all work-items. All work-items call it,
// after a barrier.
INLINED OFFSET_T sum_before(OFFSET_T x, __local OFFSET_T* sums, OFFSET_T* all)
{
    if (WG == 1) {
        *all = x;
        return 0;
    }
    const uint item = get_local_id(0);
    sums[item] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint lanes = 1; lanes < WG; lanes *= 2) {
        const OFFSET_T more = item >= lanes ? sums[item - lanes] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[item] += more;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    *all = sums[WG - 1];
    return sums[item] - x;
}

// One work-group: exclusive prefix sums of the tiles' counts, in place; their sum goes to `total`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void set_offsets(
    const uint tiles, __global OFFSET_T* scratch, __global ulong* total_base, const ulong total_offset)
{
    __local OFFSET_T sums[WG];
    const uint item = get_local_id(0), share = tiles / WG + 1, begin = min(item * share, tiles);
    const uint end = min(begin + share, tiles);
    OFFSET_T sum = 0;
    for (uint t = begin; t < end; t++) {
        sum += COUNTS(scratch, tiles)[t];
    }
    OFFSET_T all;
    OFFSET_T before = sum_before(sum, sums, &all);
    for (uint t = begin; t < end; t++) {
        const OFFSET_T count = COUNTS(scratch, tiles)[t];
        COUNTS(scratch, tiles)[t] = before;
        before += count;
    }
    if (item == 0) {
        total_base[total_offset] = all;
    }
}

#if WG == 1
#include "set_cpu.cl"
#else
#include "set_gpu.cl"
#endif
