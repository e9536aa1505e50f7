// Segmented reduction on GPUs, by offsets: out[s] = x[offsets[s]] op ... op x[offsets[s + 1] - 1], in the order of the
// tree of lib/segment_nodes.cl.
//
// Bytes: reads n elements once and the offsets about twice; writes a result for each segment.
//
//     segments_prepare: the rank of each tile by binary search; out[s] = empty for empty segments that no tile finds
//     segments_tiles:   for each tile, by one work-group:
//         start to load the tile
//         mark where segments start: a bit for each element, from the offsets in the tile
//         combine each line from left to right, from the identity at each start
//         join the lines of each work-item, then the work-items' nodes; where a segment ends, keep its result
//         store the tile's node, or the open segment's result if there is one tile
//         store the results of the segments that start and end in the tile, and of empty ones
//     segments_nodes:   joins the tiles' nodes, level by level
#include "lib/segment_nodes.cl"
#include "lib/segment_offsets.cl"
#include "lib/segment_tiles.cl"

// Offsets that a work-item has in flight. H200, 2^28 f32 by a power law: 2,052 GB/s, instead of 1,775 with one.
#define IN_FLIGHT 4
// A run: offsets that segments_prepare looks through together. A crowded tile has more than TILE offsets, so these
// contain whole runs.
#define RUN (TILE / 4)

// Returns whether a tile has so many offsets, most of them equal, that searching them is faster than loading all.
static inline bool is_crowded(OFFSET_T low, OFFSET_T high) { return high - low > TILE; }

// Returns how many of the offsets are at most p. The first `low` offsets are, and the answer is close to `low`.
SELDOM OFFSET_T rank_from(__global const S* offsets, OFFSET_T low, OFFSET_T count, POS_T p)
{
    OFFSET_T step = 1;
    ROLLED
    while (count - low >= step && offsets[low + step - 1] <= p) {
        low += step;
        step *= 2;
    }
    return rank_within(offsets, low, low + min((OFFSET_T)(step - 1), (OFFSET_T)(count - low)), p);
}

// Stores `empty` for the empty segments after the last tile and in crowded tiles, by the work-groups after the first
// `searchers`. It looks through all runs of RUN offsets that span fewer than TILE elements, and through their
// neighbouring runs. It also looks through the first run, and the runs that end at n.
INLINED void store_empty(
    __global const S* offsets, OFFSET_T segments, POS_T n, uint searchers, __global OUT* out, const OUT empty)
{
    if (get_group_id(0) < searchers) {
        return;
    }
    const OFFSET_T groups = get_num_groups(0) - searchers;
    ROLLED
    for (OFFSET_T begin = (get_group_id(0) - searchers) * RUN; begin < segments; begin += groups * RUN) {
        // The ends of the previous run, of this run and of the next one.
        const POS_T before = offsets[begin < RUN ? 0 : begin - RUN], from = offsets[begin];
        const POS_T to = offsets[min(begin + RUN, segments)], after = offsets[min(begin + 2 * RUN, segments)];
        if (from - before < TILE || to - from < TILE || after - to < TILE || to >= n) {
            const OFFSET_T end = min((OFFSET_T)(begin + RUN), segments);
            ROLLED
            for (OFFSET_T i = begin + get_local_id(0); i < end; i += WG) {
                if (is_empty(offsets[i], offsets[i + 1], n)) {
                    out[i] = empty;
                }
            }
        }
    }
}

// Finds the rank of each tile, and stores the results of some empty segments; with COUNTED no segment is empty. A
// search is a chain of loads that wait for one another, so the work-groups that search do nothing else.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_prepare(
    OFFSETS_ARG offsets_base, const ulong offsets_offset, COUNT_PARAMS, const POS_T n, const OFFSET_T tiles,
    __global uchar* scratch, const ulong nodes, __global OUT* out_base, const ulong out_offset, const OUT empty)
{
    OFFSETS_ARG offsets = offsets_base + offsets_offset;
    const OFFSET_T count = offset_count(COUNT_ARGS), known = complete_offsets(offsets, count, COUNT_ARGS, n);
    const uint searchers = tiles / WG + 1;
    rank_tiles(offsets, known, n, tiles, searchers, TILE_RANKS(scratch, nodes));
    if (!COUNTED) {
        store_empty(offsets, count - 1, n, searchers, out_base + out_offset, empty);
    }
}

// Sets the bits of the elements that start a segment, by the offsets from `low` on, below `high`.
INLINED void mark_starts(
    __global const S* offsets, OFFSET_T low, OFFSET_T high, POS_T base, uint length, __local uint* starts)
{
    const uint item = get_local_id(0);
    if (is_crowded(low, high)) {
        // Each work-item looks for offsets among its elements.
        const uint first = item * ITEM_ELEMENTS, end = min(first + ITEM_ELEMENTS, length);
        OFFSET_T rank = base + first > 0 ? rank_from(offsets, low, high, base + first - 1) : low;
        ROLLED
        while (rank < high && offsets[rank] - base < end) {
            const uint position = (uint)(offsets[rank] - base);
            atomic_or(&starts[position / 32], 1u << position % 32);
            rank = rank_from(offsets, rank, high, base + position);
        }
    } else {
        for (OFFSET_T i = low + item; i < high; i += IN_FLIGHT * WG) {
            POS_T position[IN_FLIGHT];
            UNROLL
            for (uint h = 0; h < IN_FLIGHT; h++) {
                position[h] = offsets[min(i + h * WG, high - 1)] - base;
            }
            UNROLL
            for (uint h = 0; h < IN_FLIGHT; h++) {
                if (position[h] < length) {
                    atomic_or(&starts[position[h] / 32], 1u << position[h] % 32);
                }
            }
        }
    }
}

// Stores the results of segments that end in a crowded tile. Each work-item looks for their starts among its elements.
INLINED void store_crowded(
    __global const S* offsets, OFFSET_T low, OFFSET_T high, POS_T base, uint length, __local const A* results,
    __global OUT* out, OFFSET_T count)
{
    const uint first = (uint)get_local_id(0) * ITEM_ELEMENTS, end = min(first + ITEM_ELEMENTS, length);
    OFFSET_T rank = base + first > 0 ? rank_from(offsets, low, high, base + first - 1) : low;
    ROLLED
    while (rank < high && offsets[rank] - base < end) {
        rank = rank_from(offsets, rank, high, offsets[rank]);
        const POS_T next = rank < high ? (POS_T)offsets[rank] - base : 0;
        if (next > 0 && next <= length) {
            emit(out, count, rank, results[ELEMENT_SLOT((uint)next - 1)]);
        }
    }
}

// Stores the results of the segments that start and end in the tile, and of empty ones. The tile is not crowded.
INLINED void store_results(
    __global const S* offsets, OFFSET_T low, OFFSET_T high, POS_T base, uint length, __local const A* results,
    __global OUT* out, OFFSET_T count, const OUT empty)
{
    for (OFFSET_T i = low + (uint)get_local_id(0); i + 1 < high; i += IN_FLIGHT * WG) {
        POS_T position[IN_FLIGHT], next[IN_FLIGHT];
        UNROLL
        for (uint h = 0; h < IN_FLIGHT; h++) {
            const OFFSET_T at = min(i + h * WG, high - 2);
            position[h] = offsets[at] - base;
            next[h] = offsets[at + 1] - base;
        }
        UNROLL
        for (uint h = 0; h < IN_FLIGHT; h++) {
            if (i + h * WG + 1 >= high) {
                continue;
            }
            if (position[h] >= next[h]) {
                out[i + h * WG] = empty;
            } else if (next[h] < length) {
                emit(out, count, i + h * WG + 1, results[ELEMENT_SLOT((uint)next[h] - 1)]);
            }
        }
    }
}

// Work-group g takes tile g. With `last` there is one tile, and its open segment is complete.
KERNEL void segments_tiles(
    __global const T* restrict in_base, const ulong in_offset, const POS_T n,
    __global const S* restrict offsets_base, const ulong offsets_offset, const OUT empty, COUNT_PARAMS,
    __global uchar* scratch, const ulong nodes, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __local AV stage[ITEM_AVECS * WG];
    __local uint starts[TILE / 32], first_starts[WG];
    __local A prefixes[WG], suffixes[WG];
    __local A* results = (__local A*)stage;
    __global const S* offsets = offsets_base + offsets_offset;
    __global OUT* out = out_base + out_offset;
    const OFFSET_T count = offset_count(COUNT_ARGS), tile = get_group_id(0);
    const POS_T base = (POS_T)tile * TILE;
    const uint length = n - base >= TILE ? TILE : (uint)(n - base);
    __global const T* in = in_base + in_offset + base;
    TV row[ROW_VECS];
    TileNode node;

    // Loads are answered in their order: the ranks first, then the elements, which arrive while the starts of segments
    // are marked.
    const OFFSET_T low = TILE_RANKS(scratch, nodes)[tile], high = TILE_RANKS(scratch, nodes)[tile + 1];
    fetch_tile(in, length, stage, row);
    clear_starts(starts);
    mark_starts(offsets, low, high, base, length, starts);
    stage_tile(in, length, stage, row);
    reduce_lines(stage, starts, length, &node);
    join_items(results, &node, prefixes, suffixes, first_starts);
    finish_tile(&node, high, tile, scratch, nodes, out, count, last);
    if (is_crowded(low, high)) {
        store_crowded(offsets, low, high, base, length, results, out, count);
    } else {
        store_results(offsets, low, high, base, length, results, out, count, empty);
    }
}
