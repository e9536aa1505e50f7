// Scan by a user-defined operator over structs. scan.cl defines the results, REVERSE and BY_*.
//
// Order: a lane is RUN contiguous elements, combined one after another. A tile has LANES lanes. Sklansky's tree scans
// their aggregates. The tree is the same for every work-group size. For element i of lane l of tile t:
//
//     inclusive: out[i] = ((prefix(t) op aggregate(lanes before l)) op x[first of l]) ... op x[i]
//     exclusive: the same without op x[i]
//
// prefix(t) is the tile's exclusive prefix (lib/spine.cl). So the order depends only on the index, n and the size of T.
//
// Global memory, for each kernel:
//
//     scan_ranks:       with BY_OFFSETS: the rank of each tile among the offsets (lib/heads.cl)
//     scan_aggregates:  reads the elements of all tiles but the last; writes the aggregates of these tiles
//     scan_spine:       for each level: reads the aggregates; writes prefixes in their place, and aggregates of groups
//     scan_tiles:       reads n elements twice, the second time from a cache; writes the results
//
//     scan_ends:        for a reduction of segments: reads the offsets and the last result of each; writes these
//
// One tile needs only scan_tiles, and with BY_OFFSETS scan_ranks before it. A scan may be in place, since a work-item
// stores the result of an index after the last load of that element.
#include "lib/user_op.cl"

#ifndef WG
#define WG 64
#define OFFSET_T uint
#endif
#ifndef REVERSE
#define REVERSE 0
#endif
#if defined(BY_KEYS) || defined(BY_FLAGS) || defined(BY_OFFSETS) || defined(BY_ROWS)
#define SEGMENTED 1
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

#define A T
#define OP(a, b) op_combine(a, b)
#define OP_IDENTITY op_identity()
#include "lib/spine.cl"
#include "lib/length.cl"

#define RUN 8
#define LANES (T_BYTES <= 16 ? 256 : T_BYTES <= 32 ? 128 : 64)
#define TILE (LANES * RUN)
#include "lib/scan_length.cl"

// The order of the scan, for lib/heads.cl. A vector there is the RUN elements of a lane.
#define VEC RUN
#define AT(i, len) (REVERSE ? (len) - 1 - (i) : (i))
#define VECTOR_AT(i, len) (REVERSE ? (len) - VEC - (i) : (i))
#define IN_VECTOR(j) (REVERSE ? VEC - 1 - (j) : (j))
#include "lib/heads.cl"

// The lanes of a tile are in local memory, or in private memory if a work-group is one work-item.
#if WG == 1
#define LANE_SPACE
#else
#define LANE_SPACE __local
#endif
#define BITS_WORDS (SEARCHES_OFFSETS ? TILE / 32 : 1)

#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1)))

// With BY_OFFSETS, sets the segment-head flags of a tile. All work-items call it.
INLINED void find_heads(LANE_SPACE uint* bits, OFFSET_T tile, OFFSET_T n HEAD_PARAMS)
{
#ifdef BY_OFFSETS
    for (uint word = get_local_id(0); word < BITS_WORDS; word += WG) {
        bits[word] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    set_head_bits(bits, tile, n HEAD_PASS);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

// The segment-head flags of the `count` elements of a lane. Higher bits are unspecified.
INLINED uint heads_of_lane(
    const LANE_SPACE uint* bits, OFFSET_T base, uint lane, uint count, OFFSET_T n HEAD_PARAMS)
{
#ifdef BY_OFFSETS
    return bits[lane * RUN / 32] >> lane * RUN % 32;
#else
    return vector_heads(count == RUN, base, lane * RUN, n HEAD_PASS);
#endif
}

// Scans the aggregates of a tile's lanes in each group of `group` lanes: lanes[l] becomes the inclusive prefix of lane
// l in its group. Lanes without elements have the identity. All work-items call it; it ends with a barrier.
INLINED void scan_lanes(
    __global const T* x, OFFSET_T tile, OFFSET_T n, const uint group, LANE_SPACE Partial* lanes,
    LANE_SPACE uint* bits HEAD_PARAMS)
{
    const uint item = get_local_id(0);
    const OFFSET_T base = tile * TILE;
    find_heads(bits, tile, n HEAD_PASS);
    for (uint lane = item; lane < LANES; lane += WG) {
        const OFFSET_T first = base + lane * RUN;
        Partial total = identity_partial();
        if (first < n) {
            const uint count = n - first < RUN ? n - first : RUN;
            const uint heads = heads_of_lane(bits, base, lane, count, n HEAD_PASS);
            total = partial(x[AT(first, n)], heads & 1);
            for (uint k = 1; k < count; k++) {
                total = join(total, partial(x[AT(first + k, n)], heads >> k & 1));
            }
        }
        STORE_PARTIAL(lanes[lane], total);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < group; d *= 2) {
        for (uint k = item; k < LANES / 2; k += WG) {
            const uint position = k & (d - 1), upper = 2 * (k - position) + d;
            const Partial low = LOAD_PARTIAL(lanes[upper - 1]), high = LOAD_PARTIAL(lanes[upper + position]);
            const Partial both = join(low, high);
            STORE_PARTIAL(lanes[upper + position], both);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Scans one level of the tile aggregates.
KERNEL void scan_spine(
    __global Partial* aggregates, const OFFSET_T first, const OFFSET_T count, const OFFSET_T above SPINE_PARAMS)
{
    TAKE_LENGTH
    scan_level(aggregates, first, SPINE_COUNT, above, get_global_id(0));
}

#ifdef BY_OFFSETS
// Writes ranks[t] of lib/heads.cl among `count` offsets, for each tile of n elements and for the end.
KERNEL void scan_ranks(
    __global const S* offsets_base, const ulong offsets_offset, const OFFSET_T count, const OFFSET_T n,
    const OFFSET_T tiles, __global OFFSET_T* ranks_base, const ulong ranks_at)
{
    for (OFFSET_T t = get_global_id(0); t <= tiles; t += get_global_size(0)) {
        ranks_base[ranks_at + t] = rank_of_tile(offsets_base + offsets_offset, count, t, n);
    }
}

// Writes the last result of each segment, of n results in all; the identity for an empty segment.
KERNEL void scan_ends(
    __global const T* scanned_base, const ulong scanned_offset, const OFFSET_T n, __global const S* offsets_base,
    const ulong offsets_offset, __global T* out_base, const ulong out_offset, const OFFSET_T segments)
{
    __global const S* offsets = offsets_base + offsets_offset;
    for (OFFSET_T s = get_global_id(0); s < segments; s += get_global_size(0)) {
        const ulong start = min((ulong)offsets[s], (ulong)n), end = min((ulong)offsets[s + 1], (ulong)n);
        if (start < end) {
            out_base[out_offset + s] = scanned_base[scanned_offset + end - 1];
        } else {
            out_base[out_offset + s] = op_identity();
        }
    }
}
#endif

// Writes aggregates[t] for the whole tiles t < tiles.
KERNEL void scan_aggregates(
    __global const T* in_base, const ulong in_offset, LENGTH_PARAMS, __global Partial* aggregates,
    const OFFSET_T tiles HEAD_PARAMS)
{
    LANE_SPACE Partial lanes[LANES];
    LANE_SPACE uint bits[BITS_WORDS];
    TAKE_LENGTH
    for (OFFSET_T tile = get_group_id(0); tile < WHOLE_TILES; tile += get_num_groups(0)) {
        scan_lanes(in_base + in_offset, tile, n, LANES / 2, lanes, bits HEAD_PASS);
        if (get_local_id(0) == 0) {
            const Partial low = LOAD_PARTIAL(lanes[LANES / 2 - 1]), high = LOAD_PARTIAL(lanes[LANES - 1]);
            const Partial total = join(low, high);
            STORE_PARTIAL(aggregates[tile], total);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// There are n results. An exclusive scan without segments may have n + 1: the last one is `initial` op the aggregate of
// the whole input.
KERNEL void scan_tiles(
    __global const T* in_base, const ulong in_offset, LENGTH_PARAMS, __global T* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global const Partial* aggregates, const OFFSET_T tiles, const T initial,
    const uint inclusive HEAD_PARAMS)
{
    LANE_SPACE Partial lanes[LANES];
    LANE_SPACE uint bits[BITS_WORDS];
    TAKE_LENGTH
    __global const T* x = in_base + in_offset;
    __global T* out = out_base + out_offset;
    for (OFFSET_T tile = get_group_id(0); tile < OWN_TILES; tile += get_num_groups(0)) {
        scan_lanes(x, tile, n, LANES, lanes, bits HEAD_PASS);
        const OFFSET_T base = tile * TILE;
        const T tile_prefix = exclusive_prefix(aggregates, tile, tiles, initial);
        for (uint lane = get_local_id(0); lane < LANES; lane += WG) {
            const OFFSET_T first = base + lane * RUN;
            T acc = tile_prefix;
            if (lane > 0) {
                const Partial before = LOAD_PARTIAL(lanes[lane - 1]);
                acc = extend(initial, tile_prefix, before);
            }
            if (first < n) {
                const uint count = n - first < RUN ? n - first : RUN;
                const uint heads = heads_of_lane(bits, base, lane, count, n HEAD_PASS);
                for (uint k = 0; k < count; k++) {
                    const T before = restart(initial, acc, heads >> k & 1);
                    acc = op_combine(before, x[AT(first + k, n)]);
                    out[AT(first + k, OUTPUTS)] = inclusive ? acc : before;
                }
            }
            if (OUTPUTS > n && first <= n && n - first < RUN) {
                out[AT(n, OUTPUTS)] = acc;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
