// Select: the kernels that every variant needs beside those of the tiles.
//
//     select_spine        one level of the multi-level scan over the tiles' counts
//     select_run_ends     NON_TRIVIAL: turns the ends of runs into their lengths
//     select_last_runs    LENGTHS: the length of the last run that begins in each tile

#include "lib/select.cl"

#if !defined(LOOK_BACK) && !defined(UNORDERED)
KERNEL void select_spine(__global ulong* counts, const OFFSET_T first, const OFFSET_T count, const OFFSET_T above)
{
    scan_level(counts, first, count, above, get_global_id(0));
}
#endif

#if NON_TRIVIAL
// `lengths` holds the indices of the last elements of the runs, as far as there is room; `indices` holds those of the
// first.
KERNEL void select_run_ends(
    __global const ulong* count_base, const ulong count_offset, __global const PLACE* indices_base,
    const ulong indices_offset, __global PLACE* lengths_base, const ulong lengths_offset, const ulong room)
{
    const ulong runs = min(count_base[count_offset], room);
    __global const PLACE* indices = indices_base + indices_offset;
    __global PLACE* lengths = lengths_base + lengths_offset;
    if (WG == 1) {
        // Contiguous runs, so that the compilers of CPU drivers vectorise.
        const ulong share = (runs + get_global_size(0) - 1) / get_global_size(0), first = get_global_id(0) * share;
        for (ulong k = first; k < min(first + share, runs); k++) {
            lengths[k] += 1 - indices[k];
        }
    } else {
        for (ulong k = get_global_id(0); k < runs; k += get_global_size(0)) {
            lengths[k] += 1 - indices[k];
        }
    }
}
#elif LENGTHS
// A tile's last run ends where the first run of a later tile begins, or at n.
KERNEL void select_last_runs(
    __global const ulong* scratch, const ulong records_at, const OFFSET_T tiles, LENGTH_PARAMS,
    __global PLACE* lengths_base, const ulong lengths_offset, const ulong room)
{
    TAKE_LENGTH
    __global const ulong* records = scratch + records_at;
    for (OFFSET_T tile = get_global_id(0); tile < OWN_TILES; tile += get_global_size(0)) {
        const ulong heads = RECORD(records, tile)[0];
        if (heads == (tile == 0 ? 0ul : RECORD(records, tile - 1)[0]) || heads > room) {
            continue;
        }
        // The first tile with more than `heads` heads up to its end.
        OFFSET_T low = tile + 1, high = OWN_TILES;
        while (low < high) {
            const OFFSET_T middle = low + (high - low) / 2;
            if (RECORD(records, middle)[0] > heads) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        const ulong end = low < OWN_TILES ? RECORD(records, low)[1] : n;
        lengths_base[lengths_offset + heads - 1] = (PLACE)(end - RECORD(records, tile)[2]);
    }
}
#endif
