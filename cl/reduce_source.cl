// Reduction of a source, in the tiles and the order of reduce.cl: result = x[0] op x[1] op ... op x[n - 1], where x[i] is computed.
//
// Bytes: reads the arrays of the source once, writes n / TILE partials, which reduce.cl combines.
//
//     for each tile t of the work-group:
//         for each row of the tile: lane[j] = lane[j] op x[row][j], for all lanes j of the work-item
//         partial[t] = the tree of neighbours over the lanes of the work-item, then over the work-group
//
// With FAST a work-group takes many tiles before the tree.
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"
#include "lib/workgroup.cl"
#include "lib/source.cl"

#ifndef FAST
#define FAST 0
#endif
#define TILE_ROWS 16
#define LANES (256 * VEC)
#define TILE (TILE_ROWS * LANES)
// Neighbouring lanes of a work-item.
#define ITEM_LANES (LANES / WG)
// Rows whose loads are in flight at once.
#define FLIGHT (TILE_ROWS / 2)

#if WG >= 32
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

// Work-group g writes the partials of the tiles g, g + groups, ...; with FAST one partial of all of them. With `last` there is one
// work-group, and it stores the result as OUT. The host starts at most as many work-groups as tiles.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void reduce_source(
    SOURCE_PARAMS(restrict), const OFFSET_T n, __global void* out_base, const ulong out_offset, const uint last)
{
    __local A tree[WG];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    const OFFSET_T tiles = n / TILE + (n % TILE != 0);
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
        } while (FAST && tile < tiles);
        for (uint width = ITEM_LANES; width > 1; width /= 2) {
            for (uint k = 0; k < width / 2; k++) {
                lane[k] = OP(lane[2 * k], lane[2 * k + 1]);
            }
        }
        const A aggregate = wg_reduce(lane[0], tree, sg_scratch);
        if (get_local_id(0) == 0) {
            if (last) {
                store_acc((__global OUT*)out_base + out_offset, aggregate);
            } else {
                ((__global A*)out_base)[out_offset + partial] = aggregate;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    } while (tile < tiles);
}
