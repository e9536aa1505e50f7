// Reduction: result = x[0] op x[1] op ... op x[n - 1].
//
//     partial[t] = tree(lane[0 .. LANES]),  lane[j] = x[j] op x[j + LANES] op ... within tile t
//     result     = partial[0] op partial[1] op ..., likewise
//
// Bytes: reads n elements once, writes n / TILE partials.
//
//     for each tile t of the work-group:
//         for each row of the tile: lane[j] = lane[j] op x[row][j], for all lanes j of the work-item
//         partial[t] = the tree of neighbours over the lanes of the work-item, then over the work-group
//     repeat on the partials until one is left
//
// In the last tile the identity replaces missing elements. So the order depends on n and the type alone, and not on the
// work-group size, the sub-group width or the grid. With FAST a work-group takes many tiles before the tree, which
// reorders floats. With VECTORS the code combines 16 lanes at a time; the compilers of most CPU drivers do so by
// themselves. lib/tiles.cl has the geometry, and the reduction of the partials within the launch (ONE_PASS).
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"
#include "lib/workgroup.cl"
#include "lib/tiles.cl"

// 16-byte vectors of a row that a work-item owns.
#define ITEM_VECS (ITEM_LANES / VEC)

// Sums of narrow integers, in any order and in one lane. One instruction adds four bytes or two 16-bit words to a sum
// of 32 bits, which is wide enough for a tile.
#if defined(OP_SUM) && !defined(A_FLOAT) && T_BYTES <= 2 && INLINE_PTX && PTX_SM >= 61
#define PACKED 1
#if T_BYTES == 1
#define ADD_WORD "dp4a."
#define ONES 0x01010101u
#else
#define ADD_WORD "dp2a.lo."
#define ONES 0x0101u
#endif
static inline uint add_packed(uint words, uint sum)
{
    if ((T)-1 < 0) {
        __asm__(ADD_WORD "s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(words), "r"(ONES));
    } else {
        __asm__(ADD_WORD "u32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(words), "r"(ONES));
    }
    return sum;
}
static inline A sum_of_packed(uint sum) { return (T)-1 < 0 ? (A)(int)sum : (A)sum; }
#else
#define PACKED 0
static inline uint add_packed(uint words, uint sum) { return sum; }
static inline A sum_of_packed(uint sum) { return OP_IDENTITY; }
#endif

INLINED void load_rows(__global const T* p, TV* row)
{
    for (uint r = 0; r < FLIGHT; r++) {
        for (uint v = 0; v < ITEM_VECS; v++) {
            row[r * ITEM_VECS + v] = load_vec(p + r * LANES + v * VEC);
        }
    }
}

INLINED void add_packed_rows(const TV* row, A* lane)
{
    uint sum = 0;
    UNROLL
    for (uint q = 0; q < FLIGHT * ITEM_VECS; q++) {
        uint words[4];
        vstore4(as_uint4(row[q]), 0, words);
        UNROLL
        for (uint k = 0; k < 4; k++) {
            sum = add_packed(words[k], sum);
        }
    }
    lane[0] = OP(lane[0], sum_of_packed(sum));
}

INLINED void add_rows(const TV* row, A* lane)
{
    for (uint r = 0; r < FLIGHT; r++) {
        for (uint v = 0; v < ITEM_VECS; v++) {
            A a[VEC];
            unpack(row[r * ITEM_VECS + v], a);
            for (uint k = 0; k < VEC; k++) {
                lane[v * VEC + k] = OP(lane[v * VEC + k], a[k]);
            }
        }
    }
}

// A whole tile, FLIGHT rows at a time. The work-item's elements start at x.
INLINED void take_flights(__global const T* x, A* lane)
{
    for (uint start = 0; start < TILE_ROWS; start += FLIGHT) {
        TV row[FLIGHT * ITEM_VECS];
        load_rows(x + start * LANES, row);
        if (PACKED) {
            add_packed_rows(row, lane);
        } else {
            add_rows(row, lane);
        }
    }
}

// A whole tile, row by row.
INLINED void take_rows(__global const T* x, A* lane)
{
#ifdef VECTORS
    for (uint k = 0; k < ITEM_LANES; k += 16) {
        A16 own = vload16(0, lane + k);
        for (uint r = 0; r < TILE_ROWS; r++) {
            own = OP16(own, TAKEN16(x + r * LANES + k));
        }
        vstore16(own, 0, lane + k);
    }
#else
    // Loops over contiguous elements, for the compilers of CPU drivers to vectorise.
    for (uint r = 0; r < TILE_ROWS; r++) {
        const OFFSET_T row = r * LANES;
        IN_VECTORS
        for (uint k = 0; k < ITEM_LANES; k++) {
            lane[k] = OP(lane[k], to_acc(x[row + k]));
        }
    }
#endif
}

// Combines the work-item's lanes with its elements of the tile at `base`.
INLINED void take_tile(__global const T* x, OFFSET_T base, OFFSET_T n, A* lane)
{
    const OFFSET_T first = base + get_local_id(0) * ITEM_LANES;
    if (n - base >= TILE) {
        if (IN_REGISTERS) {
            take_flights(x + first, lane);
        } else {
            take_rows(x + first, lane);
        }
        return;
    }
    IN_FOURS
    for (uint r = 0; r < TILE_ROWS; r++) {
        for (uint k = 0; k < ITEM_LANES; k++) {
            const OFFSET_T i = first + r * LANES + k;
            if (i < n) {
                A* own = lane + (PACKED ? 0 : k);
                *own = OP(*own, to_acc(x[i]));
            }
        }
    }
}

// Work-group g writes the partials of the tiles g, g + groups, ...; with FAST one partial of all of them. The host
// starts at most as many work-groups as tiles.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void reduce_tiles(
    __global const T* restrict in_base, const ulong in_offset, LENGTH_PARAMS, __global void* out_base,
    const ulong out_offset, const uint last RESULT_PARAMS)
{
    __local A tree[WG];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    TAKE_LENGTH
    END_IF_IDLE(tiles_of(n))
    __global const T* x = in_base + in_offset;

    OFFSET_T tile = get_group_id(0);
    do {
        A lane[ITEM_LANES];
        for (uint k = 0; k < ITEM_LANES; k++) {
            lane[k] = OP_IDENTITY;
        }
        const OFFSET_T partial = tile;
        do {
            take_tile(x, tile * TILE, n, lane);
            tile += get_num_groups(0);
        } while (FAST && tile < tiles_of(n));
        store_aggregate(OF_ELEMENTS(n, combine_lanes(lane, tree, sg_scratch)), partial, out_base, out_offset, last);
        barrier(CLK_LOCAL_MEM_FENCE);
    } while (tile < tiles_of(n));
#ifdef ONE_PASS
    finish_last(n, out_base, out_offset, last, tree, sg_scratch, result_base, result_offset, ended);
#endif
}
