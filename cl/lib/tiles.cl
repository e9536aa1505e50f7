// Tiles of a reduction: TILE_ROWS rows of LANES = 256 * VEC elements each. Column j of a tile belongs to lane j, and
// each work-item owns ITEM_LANES neighbouring lanes.
//
//     partial[t] = tree(lane[0 .. LANES]),  lane[j] = x[j] op x[j + LANES] op ... within tile t
//     result     = partial[0] op partial[1] op ..., likewise
//
// Work-group g takes the tiles g, g + groups, ... With FAST it combines all its tiles before it stores one partial.
// With ONE_PASS and at most a tile of partials, the work-group that finishes last combines them. With LENGTH_T
// (length.cl), `groups` leaves out work-groups without a tile. Needs op.cl and workgroup.cl.
#include "lib/length.cl"

#ifdef ONE_PASS
#include "lib/ended.cl"
#define RESULT_PARAMS , __global OUT *result_base, const ulong result_offset ENDED_PARAM
#else
#define RESULT_PARAMS
#endif

#ifndef FAST
#define FAST 0
#endif
#ifndef TILE_ROWS
#define TILE_ROWS 16
#endif
#define LANES (256 * VEC)
#define TILE (TILE_ROWS * LANES)
// Neighbouring lanes of a work-item.
#define ITEM_LANES (LANES / WG)
// Rows whose loads are in flight at once.
#define FLIGHT (TILE_ROWS / 2)

// A work-item of a small work-group, as on CPU drivers, has too many lanes for registers. With large work-groups,
// unrolled loops keep private arrays in registers. On CPU drivers unrolling would only make compiling longer.
#if WG >= 32
#define IN_REGISTERS 1
#define UNROLL _Pragma("unroll")
#else
#define IN_REGISTERS 0
#define UNROLL
#endif

static inline OFFSET_T tiles_of(OFFSET_T n) { return n / TILE + (n % TILE != 0); }

// The aggregate of n elements. The float sum of none is +0, and not the identity, which is -0.
#if defined(LENGTH_T) && defined(OP_SUM) && defined(A_FLOAT)
static inline A of_elements(OFFSET_T n, A aggregate) { return n == 0 ? (A)0 : aggregate; }
#define OF_ELEMENTS(n, aggregate) of_elements(n, aggregate)
#else
#define OF_ELEMENTS(n, aggregate) aggregate
#endif

// The aggregate of all lanes of the work-group, in work-item 0: a tree of neighbours. All work-items call it, in
// uniform flow.
SG_INLINE A combine_lanes(A* lane, __local A* tree, __local uint* sg_scratch)
{
    for (uint width = ITEM_LANES; width > 1; width /= 2) {
        for (uint k = 0; k < width / 2; k++) {
            lane[k] = OP(lane[2 * k], lane[2 * k + 1]);
        }
    }
    return wg_reduce(lane[0], tree, sg_scratch);
}

// Stores the aggregate of work-item 0 as a partial. With `last` 1 there is one work-group, and the aggregate is the
// result.
INLINED void store_aggregate(
    A aggregate, OFFSET_T partial, __global void* out_base, const ulong out_offset, const uint last)
{
    if (get_local_id(0) == 0) {
        if (last == 1) {
            store_acc((__global OUT*)out_base + out_offset, aggregate);
        } else {
            ((__global A*)out_base)[out_offset + partial] = aggregate;
        }
    }
}

#ifdef ONE_PASS

// OWN_PARTIALS: neighbouring lanes of a work-item, where partials are the elements. PARTIAL_AT(k): the offset of its
// k-th partial from its first one.
#define OWN_PARTIALS (256 * 16 / A_BYTES / WG)
#define PARTIAL_AT(k) ((k) / OWN_PARTIALS * (OWN_PARTIALS * WG) + (k) % OWN_PARTIALS)
// Partials in flight at a time: those of whole rows.
#define USUALLY_HELD 16
#define HELD \
    (TILE_ROWS * OWN_PARTIALS < USUALLY_HELD || OWN_PARTIALS > USUALLY_HELD ? TILE_ROWS * OWN_PARTIALS : USUALLY_HELD)

// Returns the result of `count` partials, at most a tile of them, in work-item 0. All work-items call it, in uniform
// flow.
SG_INLINE A combine_partials(__global const A* partials, OFFSET_T count, __local A* tree, __local uint* sg_scratch)
{
    const OFFSET_T first = get_local_id(0) * OWN_PARTIALS;
    A lane[OWN_PARTIALS];
    UNROLL
    for (uint k = 0; k < OWN_PARTIALS; k++) {
        lane[k] = OP_IDENTITY;
    }
    ROLLED
    for (uint start = 0; start < TILE_ROWS * OWN_PARTIALS; start += HELD) {
        A held[HELD];
        UNROLL
        for (uint q = 0; q < HELD; q++) {
            const OFFSET_T i = first + PARTIAL_AT(start + q);
            held[q] = i < count ? partials[i] : OP_IDENTITY;
        }
        UNROLL
        for (uint q = 0; q < HELD; q++) {
            // A user's operator may change an element's bits when it combines it with the identity.
#ifdef OPERATOR
            if (first + PARTIAL_AT(start + q) >= count) {
                continue;
            }
#endif
            lane[q % OWN_PARTIALS] = OP(lane[q % OWN_PARTIALS], held[q]);
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

// With `last` 2, the work-group that finishes last stores the result. All work-items call it once, in uniform flow.
SG_INLINE void finish_last(
    OFFSET_T n, __global const void* out_base, const ulong out_offset, const uint last, __local A* tree,
    __local uint* sg_scratch RESULT_PARAMS)
{
    if (last == 2 && ends_last(ended, WORKING_GROUPS(tiles_of(n)), sg_scratch)) {
        const OFFSET_T count = FAST ? WORKING_GROUPS(tiles_of(n)) : tiles_of(n);
        const A result =
            OF_ELEMENTS(n, combine_partials((__global const A*)out_base + out_offset, count, tree, sg_scratch));
        if (get_local_id(0) == 0) {
            store_acc(result_base + result_offset, result);
        }
    }
}
#endif
