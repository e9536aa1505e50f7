// Reduction by a user-defined operator: partials[t] = x[t * TILE] op ... op x[t * TILE + TILE - 1]. The host repeats it
// on the partials, until one is left.
//
// Order: a tile is ROWS rows of LANES elements. Lane j combines the elements j, j + LANES, ... of its tile, from the
// identity on. Then neighbouring lanes are combined, as a tree. So the result depends only on the elements, n and the
// size of T.
//
// Bytes: reads n elements once; writes n / TILE partials.
//
//     for each tile, by one work-group:
//         each work-item: combine the rows of its LANES / WG lanes
//         combine the lanes of the work-item, neighbours first
//         combine the work-items' aggregates in local memory, neighbours first
//         store the tile's aggregate
#include "lib/user_op.cl"

#ifndef WG
#define WG 256
#define OFFSET_T uint
#endif

#include "lib/length.cl"

#define LANES 256
#define ITEM_LANES (LANES / WG)
#define ROWS                                                                                                           \
    (T_BYTES <= 1        ? 256                                                                                         \
         : T_BYTES <= 2  ? 128                                                                                         \
         : T_BYTES <= 4  ? 64                                                                                          \
         : T_BYTES <= 8  ? 32                                                                                          \
         : T_BYTES <= 16 ? 16                                                                                          \
         : T_BYTES <= 32 ? 8                                                                                           \
                         : 4)
#define TILE (ROWS * LANES)
// Rows that are loaded before the first of them is combined.
#define FLIGHT (ROWS < 16 ? ROWS : 16)

// Combines the rows of the last tile, which has `elements` elements.
INLINED void combine_part(__global const T* p, uint item, uint elements, T* lane)
{
    for (uint row = item * ITEM_LANES; row < elements; row += LANES) {
        for (uint k = 0; k < ITEM_LANES && row + k < elements; k++) {
            lane[k] = op_combine(lane[k], p[row + k]);
        }
    }
}

// Combines the work-item's lanes to lane[0], neighbours first.
INLINED void combine_lanes(T* lane)
{
    for (uint width = ITEM_LANES; width > 1; width /= 2) {
        for (uint k = 0; k < width / 2; k++) {
            lane[k] = op_combine(lane[2 * k], lane[2 * k + 1]);
        }
    }
}

// Combines the work-items' aggregates to tree[0], neighbours first. It ends with a barrier.
INLINED void combine_items(__local T* tree)
{
    const uint item = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < WG; d <<= 1) {
        const uint i = 2 * d * item;
        if (i + d < WG) {
            tree[i] = op_combine(tree[i], tree[i + d]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Work-group g stores the partials of tiles g, g + groups, ... The host starts no more work-groups than there are
// tiles.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void reduce_by_tiles(
    __global const T* restrict in_base, const ulong in_offset, LENGTH_PARAMS, __global T* restrict out_base,
    const ulong out_offset)
{
    __local T tree[WG];
    const uint item = get_local_id(0);
    TAKE_LENGTH
#ifdef LENGTH_T
    // Without elements the result is the identity. If only one partial is left, this launch copies it to the result.
    if (n == 0 || (n == 1 && log_each > 0)) {
        if (get_global_id(0) == 0) {
            if (n == 0) {
                out_base[out_offset] = op_identity();
            } else {
                out_base[out_offset] = in_base[in_offset];
            }
        }
        return;
    }
#endif
    const OFFSET_T tiles = n / TILE + (n % TILE != 0);
    END_IF_IDLE(tiles)
    for (OFFSET_T tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        const OFFSET_T first = tile * TILE;
        __global const T* p = in_base + in_offset + first;
        const uint elements = n - first >= TILE ? TILE : n - first;
        T lane[ITEM_LANES];
        for (uint k = 0; k < ITEM_LANES; k++) {
            lane[k] = op_identity();
        }
        // The loops are not in functions, where clang 15 would unroll them: then the gcd of u32 takes 72 registers of
        // sm_90 instead of 32.
        if (elements == TILE) {
            if (WG == LANES) {
                for (uint r = 0; r < ROWS; r += FLIGHT) {
                    T x[FLIGHT];
                    for (uint i = 0; i < FLIGHT; i++) {
                        x[i] = p[(r + i) * LANES + item];
                    }
                    for (uint i = 0; i < FLIGHT; i++) {
                        lane[0] = op_combine(lane[0], x[i]);
                    }
                }
            } else {
                // Contiguous elements, so that the compilers of CPU drivers vectorise.
                for (uint r = 0; r < ROWS; r++) {
                    __global const T* q = p + r * LANES + item * ITEM_LANES;
                    for (uint k = 0; k < ITEM_LANES; k++) {
                        lane[k] = op_combine(lane[k], q[k]);
                    }
                }
            }
        } else {
            combine_part(p, item, elements, lane);
        }
        combine_lanes(lane);
        tree[item] = lane[0];
        combine_items(tree);
        if (item == 0) {
            out_base[out_offset + tile] = tree[0];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Combines `n` pairs to check an operator's laws: out[i] = a[i] op b[i].
__kernel void combine_pairs(
    __global const T* restrict a, __global const T* restrict b, __global T* restrict out, const uint n)
{
    const uint i = get_global_id(0);
    if (i < n) {
        out[i] = op_combine(a[i], b[i]);
    }
}
