// Searches in a sorted range, and a test whether a range is sorted.
//
//     search_bounds:    to[i] = min {j : not op_less(range[j], needles[i])}
//                       with UPPER: min {j : op_less(needles[i], range[j])}
//     search_unsorted:  found = min {j > 0 : op_less(range[j], range[j - 1])}
//
// Bytes: search_bounds reads each needle, and a cache line for each of its steps beyond the pivots, and writes each
// index. search_unsorted reads all elements.
//
//     search_bounds:
//         unless WG == 1: load up to PIVOTS elements of the range, at equal distances, to local memory
//         for EACH needles of a work-item at a time:
//             binary search among the pivots, then among the elements between two pivots
//
// All needles take the same steps, whatever they find, so that the loads of a work-item's EACH needles overlap.

#include "lib/first.cl"
#include "lib/merge.cl"

// PLACE: the type of an index. EACH: needles of a work-item at a time.
#ifndef PLACE
#define PLACE uint
#define EACH 4
#define PIVOTS 512
#endif

#ifdef UPPER
#define IS_BEFORE(x, needle) (!op_less(needle, x))
#else
#define IS_BEFORE(x, needle) op_less(x, needle)
#endif

// NAME(at, needles, range, len, end): adds to each at[k] how many of the `len` elements of `range` from at[k] on come
// before needle k. Elements from `end` on count as coming after all needles.
#define DEFINE_HALVE(NAME, INDEX, SPACE)                                                                               \
    INLINED void NAME(INDEX* at, const T* needles, SPACE const T* range, const INDEX len, const INDEX end)             \
    {                                                                                                                  \
        ROLLED                                                                                                         \
        for (INDEX left = len; left > 0;) {                                                                            \
            const INDEX step = left - left / 2;                                                                        \
            UNROLL                                                                                                     \
            for (uint k = 0; k < EACH; k++) {                                                                          \
                const INDEX probe = at[k] + (step - 1);                                                                \
                if (probe < end && IS_BEFORE(range[probe], needles[k])) {                                              \
                    at[k] += step;                                                                                     \
                }                                                                                                      \
            }                                                                                                          \
            left -= step;                                                                                              \
        }                                                                                                              \
    }
DEFINE_HALVE(halve, OFFSET_T, __global)
DEFINE_HALVE(halve_local, uint, __local)

// Each work-group takes `share` times EACH * WG contiguous needles.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void search_bounds(
    __global const T* range_base, const ulong range_offset, const OFFSET_T n, __global const T* needles_base,
    const ulong needles_offset, const OFFSET_T count, __global PLACE* restrict to_base, const ulong to_offset,
    const OFFSET_T share)
{
    __global const T* range = range_base + range_offset;
    __local T pivots[WG > 1 ? PIVOTS : 1];
    const uint item = get_local_id(0);
    const OFFSET_T apart = n / PIVOTS + 1;
    const uint pivot_count = (uint)(n / apart);
    if (WG > 1) {
        ROLLED
        for (uint i = item; i < pivot_count; i += WG) {
            pivots[i] = range[apart * (i + 1) - 1];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const OFFSET_T begin = get_group_id(0) * share * (EACH * WG);
    const OFFSET_T end = begin + min(share * (EACH * WG), count - begin);
    ROLLED
    for (OFFSET_T first = begin; first < end; first += EACH * WG) {
        const uint own = (uint)min((OFFSET_T)(EACH * WG), end - first);
        T needles[EACH];
        OFFSET_T at[EACH];
        UNROLL
        for (uint k = 0; k < EACH; k++) {
            needles[k] = needles_base[needles_offset + first + min(k * WG + item, own - 1)];
            at[k] = 0;
        }
        if (WG > 1) {
            uint pivot[EACH];
            UNROLL
            for (uint k = 0; k < EACH; k++) {
                pivot[k] = 0;
            }
            halve_local(pivot, needles, pivots, pivot_count, pivot_count);
            UNROLL
            for (uint k = 0; k < EACH; k++) {
                at[k] = apart * pivot[k];
            }
        }
        halve(at, needles, range, WG > 1 ? apart - 1 : n, n);
        UNROLL
        for (uint k = 0; k < EACH; k++) {
            if (k * WG + item < own) {
                to_base[to_offset + first + k * WG + item] = (PLACE)at[k];
            }
        }
    }
}

// Tests `n` elements from `first` on; `first` is at least 1. Work-groups take tiles of TILE elements in turn.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void search_unsorted(
    __global const T* range_base, const ulong range_offset, const ulong first, const uint n, __global uint* found_base,
    const ulong found_offset)
{
    __global const T* range = range_base + range_offset + first;
    const uint tiles = n / TILE + (n % TILE != 0);
    uint found = NONE;
    // The loops have no early exits, because Intel's compiler for CPUs fails on these.
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
