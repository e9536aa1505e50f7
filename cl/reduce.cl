// Reduction: one partial result a tile, then the partials likewise, until one is left.
//
// A tile is TILE_ROWS rows of 256 x VEC lanes. Lane j takes the elements j, j + LANES, ... of its tile in order; the
// lanes then combine as a tree of neighbours. So the result is a function of n and the type alone: the number of
// work-items that share the lanes (WG), the sub-group width and the grid do not enter. Missing elements of the last tile
// are the operator's identity. With DOT an element is the product of x[i] and y[i]. With FAST one work-group walks over many
// tiles before the tree, which reorders floats.
//
//     partial[t] = tree(lane[0..LANES]),  lane[j] = x[j] op x[j + LANES] op ... within tile t
//
// With ONE_PASS, and no more partials than a tile has, the work-group that ends last combines them, without a further launch.
//
// Bytes: reads n elements once, writes n / TILE partials.
//
// With VECTORS lanes are combined by 16, which the compilers of most CPU drivers do by themselves.
#if defined(OPERATOR) || defined(MAPPED) || defined(DOT)
#undef VECTORS
#endif
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"
#include "lib/workgroup.cl"
#ifdef ONE_PASS
#include "lib/ended.cl"
#endif

#ifndef TILE_ROWS
#define TILE_ROWS 16
#endif
#define LANES (256 * VEC)
#define TILE (TILE_ROWS * LANES)
// Neighbouring lanes of one work-item, a whole number of 16-byte vectors.
#define ITEM_LANES (LANES / WG)
#define ITEM_VECS (ITEM_LANES / VEC)

// Private arrays lie in registers where the loops over them are unrolled. CPU drivers would only take longer to compile.
#if WG >= 32
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

// Rows whose loads are in flight at once.
#define FLIGHT (TILE_ROWS / 2)
#ifdef DOT
// What a lane takes: of x[i], and with DOT of y[i].
#define ELEMENT(x, y, i) MULTIPLY(to_acc((x)[i]), to_acc((y)[i]))
#else
#define ELEMENT(x, y, i) TAKEN((x)[i])
#endif

// Sums of narrow integers, in any order and one lane: four bytes or two words of 16 bits in one instruction, into 32 bits,
// where a tile's fit.
#if defined(OP_SUM) && !defined(A_FLOAT) && T_BYTES <= 2 && !defined(DOT) && !defined(MAPPED) && INLINE_PTX && PTX_SM >= 61
#define PACKED
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
#define LANE(k) 0
#else
#define LANE(k) (k)
#endif

// `y` is read with DOT alone.
static inline void take_tile(__global const T* x, __global const T* y, OFFSET_T base, OFFSET_T n, A* lane)
{
    const OFFSET_T first = base + get_local_id(0) * ITEM_LANES;
    if (n - base >= TILE) {
#if WG >= 32
        // Few lanes an item: the rows of an item are in flight at once.
        for (uint start = 0; start < TILE_ROWS; start += FLIGHT) {
            TV row[FLIGHT * ITEM_VECS];
            for (uint r = 0; r < FLIGHT; r++) {
                for (uint v = 0; v < ITEM_VECS; v++) {
                    row[r * ITEM_VECS + v] = load_vec(x + first + (start + r) * LANES + v * VEC);
                }
            }
#ifdef PACKED
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
            lane[0] = OP(lane[0], (T)-1 < 0 ? (A)(int)sum : (A)sum);
#else
#ifdef DOT
            TV other[FLIGHT * ITEM_VECS];
            for (uint r = 0; r < FLIGHT; r++) {
                for (uint v = 0; v < ITEM_VECS; v++) {
                    other[r * ITEM_VECS + v] = load_vec(y + first + (start + r) * LANES + v * VEC);
                }
            }
#endif
            for (uint r = 0; r < FLIGHT; r++) {
                for (uint v = 0; v < ITEM_VECS; v++) {
                    A a[VEC];
                    unpack(row[r * ITEM_VECS + v], a);
#ifdef DOT
                    A b[VEC];
                    unpack(other[r * ITEM_VECS + v], b);
                    for (uint k = 0; k < VEC; k++) {
                        a[k] = MULTIPLY(a[k], b[k]);
                    }
#endif
                    for (uint k = 0; k < VEC; k++) {
                        lane[v * VEC + k] = OP(lane[v * VEC + k], a[k]);
                    }
                }
            }
#endif
        }
#elif defined(VECTORS)
        for (uint k = 0; k < ITEM_LANES; k += 16) {
            A16 own = vload16(0, lane + k);
            for (uint r = 0; r < TILE_ROWS; r++) {
                own = OP16(own, TAKEN16(x + first + r * LANES + k));
            }
            vstore16(own, 0, lane + k);
        }
#else
        // Many lanes an item: plain loops over contiguous elements, for the compilers of CPU drivers to vectorise.
        for (uint r = 0; r < TILE_ROWS; r++) {
            const OFFSET_T row = first + r * LANES;
            IN_VECTORS
            for (uint k = 0; k < ITEM_LANES; k++) {
                lane[k] = OP(lane[k], ELEMENT(x, y, row + k));
            }
        }
#endif
    } else {
        for (uint r = 0; r < TILE_ROWS; r++) {
            for (uint k = 0; k < ITEM_LANES; k++) {
                const OFFSET_T i = first + r * LANES + k;
                if (i < n) {
                    lane[LANE(k)] = OP(lane[LANE(k)], ELEMENT(x, y, i));
                }
            }
        }
    }
}

#ifdef ONE_PASS

// Neighbouring lanes of partials of one work-item, and where its k-th partial lies from its first on.
#define OWN_PARTIALS (256 * 16 / A_BYTES / WG)
#define PARTIAL_AT(k) ((k) / OWN_PARTIALS * (OWN_PARTIALS * WG) + (k) % OWN_PARTIALS)
// How many are in flight: whole rows.
#define USUALLY_HELD (A_BYTES == 8 ? 16 : 32)
#if TILE_ROWS * OWN_PARTIALS < USUALLY_HELD || OWN_PARTIALS > USUALLY_HELD
#define HELD (TILE_ROWS * OWN_PARTIALS)
#else
#define HELD USUALLY_HELD
#endif

// What `count` partials come to, which are one tile at most, in item 0. All items call it, in uniform flow.
SG_INLINE A combine_partials(__global const A* partials, OFFSET_T count, __local A* tree, __local uint* sg_scratch)
{
    const OFFSET_T first = get_local_id(0) * OWN_PARTIALS;
    A lane[OWN_PARTIALS];
    UNROLL
    for (uint k = 0; k < OWN_PARTIALS; k++) {
        lane[k] = OP_IDENTITY;
    }
    _Pragma("unroll 1")
    for (uint start = 0; start < TILE_ROWS * OWN_PARTIALS; start += HELD) {
        A held[HELD];
        UNROLL
        for (uint q = 0; q < HELD; q++) {
            const OFFSET_T i = first + PARTIAL_AT(start + q);
            held[q] = i < count ? partials[i] : OP_IDENTITY;
        }
        UNROLL
        for (uint q = 0; q < HELD; q++) {
            if (first + PARTIAL_AT(start + q) < count) {
                lane[q % OWN_PARTIALS] = OP(lane[q % OWN_PARTIALS], held[q]);
            }
        }
    }
    UNROLL
    for (uint width = OWN_PARTIALS; width > 1; width /= 2) {
        UNROLL
        for (uint k = 0; k < width / 2; k++) {
            lane[k] = OP(lane[2 * k], lane[2 * k + 1]);
        }
    }
    return wg_reduce(lane[0], tree, sg_scratch);
}

#define ENDING_PARAMS , __global OUT *result_base, const ulong result_offset ENDED_PARAM
#else
#define ENDING_PARAMS
#endif

// Group g writes the partial of tile g, g + groups, ...; with FAST one partial a group. With `last` there is one
// group, and the result is stored as OUT. With ONE_PASS, where `last` is 2, that is what the group that ends last stores at
// `result_base`. The host starts no more groups than there are tiles. Without DOT `in2_base` is not read, and is `in_base`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void reduce_tiles(
    __global const T* restrict in_base, const ulong in_offset, __global const T* restrict in2_base,
    const ulong in2_offset, const OFFSET_T n, __global void* out_base, const ulong out_offset,
    const uint last ENDING_PARAMS)
{
    __local A tree[WG];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    __global const T* x = in_base + in_offset;
    __global const T* y = in2_base + in2_offset;

    const OFFSET_T tiles = n / TILE + (n % TILE != 0);
    OFFSET_T tile = get_group_id(0);
    do {
        A lane[ITEM_LANES];
        for (uint k = 0; k < ITEM_LANES; k++) {
            lane[k] = OP_IDENTITY;
        }
#ifdef FAST
        const OFFSET_T slot = tile;
        for (; tile < tiles; tile += get_num_groups(0)) {
            take_tile(x, y, tile * TILE, n, lane);
        }
#else
        const OFFSET_T slot = tile;
        take_tile(x, y, tile * TILE, n, lane);
        tile += get_num_groups(0);
#endif
        for (uint width = ITEM_LANES; width > 1; width /= 2) {
            for (uint k = 0; k < width / 2; k++) {
                lane[k] = OP(lane[2 * k], lane[2 * k + 1]);
            }
        }
        const A total = wg_reduce(lane[0], tree, sg_scratch);
        if (get_local_id(0) == 0) {
            if (last == 1) {
                store_acc((__global OUT*)out_base + out_offset, total);
            } else {
                ((__global A*)out_base)[out_offset + slot] = total;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    } while (tile < tiles);
#ifdef ONE_PASS
    if (last == 2 && ends_last(ended, get_num_groups(0), sg_scratch)) {
#ifdef FAST
        const OFFSET_T count = get_num_groups(0);
#else
        const OFFSET_T count = tiles;
#endif
        const A total = combine_partials((__global A*)out_base + out_offset, count, tree, sg_scratch);
        if (get_local_id(0) == 0) {
            store_acc(result_base + result_offset, total);
        }
    }
#endif
}
