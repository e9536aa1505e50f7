// Searches in a sorted range, and for the first place at which a range is not sorted.
//
//     search_bounds     for each needle the place of the first element that does not come before it (UPPER: that comes after
//                       it). An item has EACH needles at once, WG apart, so that as many loads are on their way. All go
//                       through the same steps, whatever they find: half of what is left each.
//     search_unsorted   the first element that comes before the one in front of it, to `found`: cl/lib/first.cl
//
// Where there are work-groups, each first takes PIVOTS elements of the range, evenly apart, to local memory, so that the
// first steps, which are the same for all, stay there. Bytes of search_bounds: reads each needle, and for each a cache line
// for each step beyond; writes each place. Of search_unsorted: reads all.

#include "lib/first.cl"
#include "lib/merge.cl"

#ifndef PLACE
#define PLACE uint
#endif
#ifndef EACH
#define EACH 4
#endif
#ifndef PIVOTS
#define PIVOTS 512
#endif

#ifdef UPPER
#define IS_BEFORE(x, needle) (!op_less(needle, x))
#else
#define IS_BEFORE(x, needle) op_less(x, needle)
#endif

// Adds to each of at[0 .. EACH] how many of `len` elements of `range` from there on are before its needle. Elements beyond
// `end` are after all.
#define HALVE(INDEX, at, range, len, end)                                                                              \
    for (INDEX left = (len); left > 0;) {                                                                              \
        const INDEX step = left - left / 2;                                                                            \
        UNROLL                                                                                                         \
        for (uint k = 0; k < EACH; k++) {                                                                              \
            const INDEX probe = at[k] + (step - 1);                                                                    \
            if (probe < (end) && IS_BEFORE((range)[probe], needles[k])) {                                              \
                at[k] += step;                                                                                         \
            }                                                                                                          \
        }                                                                                                              \
        left -= step;                                                                                                  \
    }

// Each group takes `share` times EACH * WG neighbouring needles.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void search_bounds(
    __global const T* range_base, const ulong range_offset, const OFFSET_T n, __global const T* needles_base,
    const ulong needles_offset, const OFFSET_T count, __global PLACE* restrict to_base, const ulong to_offset,
    const OFFSET_T share)
{
    __global const T* range = range_base + range_offset;
    const uint item = get_local_id(0);
#if WG > 1
    __local T pivots[PIVOTS];
    const OFFSET_T apart = n / PIVOTS + 1;
    const uint pivot_count = (uint)(n / apart);
    for (uint i = item; i < pivot_count; i += WG) {
        pivots[i] = range[apart * (i + 1) - 1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    const OFFSET_T begin = get_group_id(0) * share * (EACH * WG);
    const OFFSET_T end = begin + min(share * (EACH * WG), count - begin);
    for (OFFSET_T first = begin; first < end; first += EACH * WG) {
        const uint own = (uint)min((OFFSET_T)(EACH * WG), end - first);
        T needles[EACH];
        OFFSET_T at[EACH];
        UNROLL
        for (uint k = 0; k < EACH; k++) {
            needles[k] = needles_base[needles_offset + first + min(k * WG + item, own - 1)];
            at[k] = 0;
        }
#if WG > 1
        uint pivot[EACH];
        UNROLL
        for (uint k = 0; k < EACH; k++) {
            pivot[k] = 0;
        }
        HALVE(uint, pivot, pivots, pivot_count, pivot_count)
        UNROLL
        for (uint k = 0; k < EACH; k++) {
            at[k] = apart * pivot[k];
        }
        HALVE(OFFSET_T, at, range, apart - 1, n)
#else
        HALVE(OFFSET_T, at, range, n, n)
#endif
        UNROLL
        for (uint k = 0; k < EACH; k++) {
            if (k * WG + item < own) {
                to_base[to_offset + first + k * WG + item] = (PLACE)at[k];
            }
        }
    }
}

// `n` elements from `first` on, and the one in front of them; `first` is 1 at least. A group takes ITEMS * WG of them, then
// those `groups` times as far.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void search_unsorted(
    __global const T* range_base, const ulong range_offset, const ulong first, const uint n, __global uint* found_base,
    const ulong found_offset)
{
    __global const T* range = range_base + range_offset + first;
    const uint tiles = n / TILE + (n % TILE != 0);
    uint found = NONE;
    // Without ways out of the loops, which Intel's compiler for CPUs fails on.
    for (uint tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        const uint base = tile * TILE;
#if WG == 1
        for (uint i = base; i < min(n, base + TILE); i++) {
            found = min(found, op_less(range[i], range[(long)i - 1]) ? i : NONE);
        }
#else
        const uint item = get_local_id(0);
        T x[ITEMS], before[ITEMS];
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            const uint i = min(base + k * WG + item, n - 1);
            x[k] = range[i];
            before[k] = range[(long)i - 1];
        }
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            found = min(found, op_less(x[k], before[k]) ? min(base + k * WG + item, n - 1) : NONE);
        }
#endif
    }
    note_first(found_base + 2 * found_offset, first, found);
}
