// Reduction by an operator of the user's: one partial result a tile, then the partials likewise, until one is left.
//
// The host puts the user's text in front: the element type T of T_BYTES bytes, op_combine(a, b), op_identity(). A tile is
// ROWS rows of 256 lanes. Lane j takes the elements j, j + 256, ... of its tile in order, from the identity on; the lanes
// then combine as a tree of neighbours. So the result is a function of n and the size of T alone.
//
// Bytes: reads n elements once, writes n / TILE partials.

#ifndef OPERATOR
#define T float
#define T_BYTES 4
static inline T op_combine(const T a, const T b) { return a + b; }
static inline T op_identity(void) { return 0; }
#endif
#ifndef WG
#define WG 256
#endif
#ifndef OFFSET_T
#define OFFSET_T uint
#endif

#define LANES 256
#define ITEM_LANES (LANES / WG)
#if T_BYTES <= 1
#define ROWS 256
#elif T_BYTES <= 2
#define ROWS 128
#elif T_BYTES <= 4
#define ROWS 64
#elif T_BYTES <= 8
#define ROWS 32
#elif T_BYTES <= 16
#define ROWS 16
#elif T_BYTES <= 32
#define ROWS 8
#else
#define ROWS 4
#endif
#define TILE (ROWS * LANES)
// Rows that are loaded before the first of them is combined.
#define FLIGHT (ROWS < 16 ? ROWS : 16)

// Group g writes the partial of tile g, g + groups, ... The host starts no more groups than there are tiles.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void reduce_by_tiles(
    __global const T* restrict in_base, const ulong in_offset, const OFFSET_T n, __global T* restrict out_base,
    const ulong out_offset)
{
    __local T tree[WG];
    const uint item = get_local_id(0);
    const OFFSET_T tiles = n / TILE + (n % TILE != 0);
    for (OFFSET_T tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        const OFFSET_T first = tile * TILE;
        __global const T* p = in_base + in_offset + first;
        const uint elements = n - first >= TILE ? TILE : n - first;
        T lane[ITEM_LANES];
        for (uint k = 0; k < ITEM_LANES; k++) {
            lane[k] = op_identity();
        }
        if (elements == TILE) {
#if WG == LANES
            for (uint r = 0; r < ROWS; r += FLIGHT) {
                T x[FLIGHT];
                for (uint i = 0; i < FLIGHT; i++) {
                    x[i] = p[(r + i) * LANES + item];
                }
                for (uint i = 0; i < FLIGHT; i++) {
                    lane[0] = op_combine(lane[0], x[i]);
                }
            }
#else
            // Contiguous elements, for the compilers of CPU drivers to vectorise.
            for (uint r = 0; r < ROWS; r++) {
                __global const T* q = p + r * LANES + item * ITEM_LANES;
                for (uint k = 0; k < ITEM_LANES; k++) {
                    lane[k] = op_combine(lane[k], q[k]);
                }
            }
#endif
        } else {
            for (uint row = item * ITEM_LANES; row < elements; row += LANES) {
                for (uint k = 0; k < ITEM_LANES && row + k < elements; k++) {
                    lane[k] = op_combine(lane[k], p[row + k]);
                }
            }
        }
        for (uint width = ITEM_LANES; width > 1; width /= 2) {
            for (uint k = 0; k < width / 2; k++) {
                lane[k] = op_combine(lane[2 * k], lane[2 * k + 1]);
            }
        }
        tree[item] = lane[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = 1; d < WG; d <<= 1) {
            const uint i = 2 * d * item;
            if (i + d < WG) {
                tree[i] = op_combine(tree[i], tree[i + d]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (item == 0) {
            out_base[out_offset + tile] = tree[0];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// For the check of an operator's laws: out[i] = a[i] op b[i], of `n` pairs.
__kernel void combine_pairs(
    __global const T* restrict a, __global const T* restrict b, __global T* restrict out, const uint n)
{
    const uint i = get_global_id(0);
    if (i < n) {
        out[i] = op_combine(a[i], b[i]);
    }
}
