// Reduction of a source, in the tiles and the order of reduce.cl: result = x[0] op x[1] op ... op x[n - 1], where x[i]
// is computed.
//
// Bytes: reads the arrays of the source once, writes n / TILE partials. lib/tiles.cl has the geometry.
//
//     for each tile t of the work-group:
//         for each row of the tile: lane[j] = lane[j] op x[row][j], for all lanes j of the work-item
//         partial[t] = the tree of neighbours over the lanes of the work-item, then over the work-group
//     repeat on the partials until one is left
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"
#include "lib/workgroup.cl"
#include "lib/tiles.cl"
#include "lib/source.cl"

#if IN_REGISTERS
// A whole tile. The work-item's first element is x[first].
INLINED void take_rows(A* lane, const OFFSET_T first, SOURCE_PARAMS())
{
    for (uint start = 0; start < TILE_ROWS; start += FLIGHT) {
        T x[FLIGHT][ITEM_LANES];
        _Pragma("unroll")
        for (uint r = 0; r < FLIGHT; r++) {
            _Pragma("unroll")
            for (uint k = 0; k < ITEM_LANES; k += VEC) {
                load_source(first + (start + r) * LANES + k, x[r] + k, SOURCE_ARGS);
            }
        }
        _Pragma("unroll")
        for (uint r = 0; r < FLIGHT; r++) {
            _Pragma("unroll")
            for (uint k = 0; k < ITEM_LANES; k++) {
                lane[k] = OP(lane[k], to_acc(x[r][k]));
            }
        }
    }
}
#else
// A whole tile, in loops over contiguous elements for the compilers of CPU drivers.
INLINED void take_rows(A* lane, const OFFSET_T first, SOURCE_PARAMS())
{
    for (uint r = 0; r < TILE_ROWS; r++) {
        const OFFSET_T row = first + r * LANES;
        IN_VECTORS
        for (uint k = 0; k < ITEM_LANES; k++) {
            lane[k] = OP(lane[k], to_acc(source_at(row + k, SOURCE_ARGS)));
        }
    }
}
#endif

// Combines the work-item's lanes with its elements of the tile at `base`.
INLINED void take_tile(A* lane, const OFFSET_T base, const OFFSET_T n, SOURCE_PARAMS())
{
    const OFFSET_T first = base + get_local_id(0) * ITEM_LANES;
    if (n - base >= TILE) {
        take_rows(lane, first, SOURCE_ARGS);
        return;
    }
    for (uint r = 0; r < TILE_ROWS; r++) {
        for (uint k = 0; k < ITEM_LANES; k++) {
            const OFFSET_T i = first + r * LANES + k;
            if (i < n) {
                lane[k] = OP(lane[k], to_acc(source_at(i, SOURCE_ARGS)));
            }
        }
    }
}

// Work-group g writes the partials of the tiles g, g + groups, ...; with FAST one partial of all of them. The host
// starts at most as many work-groups as tiles.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void reduce_source(
    SOURCE_PARAMS(restrict), const OFFSET_T n, __global void* out_base, const ulong out_offset,
    const uint last RESULT_PARAMS)
{
    __local A tree[WG];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    OFFSET_T tile = get_group_id(0);
    do {
        A lane[ITEM_LANES];
        for (uint k = 0; k < ITEM_LANES; k++) {
            lane[k] = OP_IDENTITY;
        }
        const OFFSET_T partial = tile;
        do {
            take_tile(lane, tile * TILE, n, SOURCE_ARGS);
            tile += get_num_groups(0);
        } while (FAST && tile < tiles_of(n));
        store_aggregate(combine_lanes(lane, tree, sg_scratch), partial, out_base, out_offset, last);
        barrier(CLK_LOCAL_MEM_FENCE);
    } while (tile < tiles_of(n));
#ifdef ONE_PASS
    finish_last(n, out_base, out_offset, last, tree, sg_scratch, result_base, result_offset, ended);
#endif
}
