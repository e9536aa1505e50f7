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
//     scan_tiles:       reads n elements; writes the results
//
// ENDS: a reduction of segments. scan_tiles writes only the last result of each segment: that of segment s to out[s].
// With BY_OFFSETS, scan_ends runs first. It reads the offsets, and writes the identity for empty segments.
//
// One tile needs only scan_tiles, and with BY_OFFSETS scan_ranks before it. A scan may be in place, since a work-item
// stores the result of an index after the last load of that element.
//
// STAGED: neighbouring work-items load neighbouring words of a tile to local memory, and store results from there. Each
// lane has a row of its RUN elements there, and a gap after it. So the first elements of neighbouring lanes are in
// different banks. Without STAGED, a work-item reads the elements of its lanes from global memory; scan_tiles reads
// them twice.
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

#ifdef STAGED
// The largest word that divides an element. The gap after a row has GAP words: the alignment of elements, at least 4
// bytes.
#if T_BYTES % 4 == 0
#define STAGE_WORD uint
#define WORD_BYTES 4
#elif T_BYTES % 2 == 0
#define STAGE_WORD ushort
#define WORD_BYTES 2
#else
#define STAGE_WORD uchar
#define WORD_BYTES 1
#endif
// These words alias elements of any type.
typedef STAGE_WORD stage_word_t __attribute__((may_alias));
typedef struct {
    uchar first;
    T second;
} aligned_t;
#define ALIGNMENT (sizeof(aligned_t) - sizeof(T))
#define WORDS (T_BYTES / WORD_BYTES)
#define GAP (ALIGNMENT > 4 ? ALIGNMENT / WORD_BYTES : 4 / WORD_BYTES)
#define STAGE_WORDS (LANES * (RUN * WORDS + GAP))
#define STAGE_AT(position) ((position) * WORDS + (position) / RUN * GAP)
#define STAGED_ELEMENT(position) (*(__local T*)(stage + STAGE_AT(position)))
#define STAGE __local stage_word_t stage[STAGE_WORDS] __attribute__((aligned(64)));
#define STAGE_PARAM , __local stage_word_t* stage
#define STAGE_PASS , stage

// Returns the index in the stage of word i of a tile. i counts the words of the tile's `count` elements as they are in
// global memory.
INLINED uint staged_place(const uint i, const uint count)
{
    const uint element = i / WORDS;
    return STAGE_AT(REVERSE ? count - 1 - element : element) + i % WORDS;
}

// Loads the `count` elements of a tile; x is the first one in memory. All work-items call it. The elements are valid
// after the next barrier.
INLINED void load_stage(__global const T* x, const uint count STAGE_PARAM)
{
    __global const stage_word_t* words = (__global const stage_word_t*)x;
    if (count == TILE) {
        _Pragma("unroll 8")
        for (uint i = get_local_id(0); i < TILE * WORDS; i += WG) {
            stage[staged_place(i, TILE)] = words[i];
        }
    } else {
        for (uint i = get_local_id(0); i < count * WORDS; i += WG) {
            stage[staged_place(i, count)] = words[i];
        }
    }
}

// Stores the `count` results of a tile; x is the first one in memory. All work-items call it.
INLINED void store_stage(__global T* x, const uint count STAGE_PARAM)
{
    __global stage_word_t* words = (__global stage_word_t*)x;
    if (count == TILE) {
        _Pragma("unroll 8")
        for (uint i = get_local_id(0); i < TILE * WORDS; i += WG) {
            words[i] = stage[staged_place(i, TILE)];
        }
    } else {
        for (uint i = get_local_id(0); i < count * WORDS; i += WG) {
            words[i] = stage[staged_place(i, count)];
        }
    }
}

// The index in memory of the first element of a tile, which has `count` of the `len` elements.
#define STAGE_START(base, count, len) (REVERSE ? (len) - (base) - (count) : (base))
#define ELEMENT(k) STAGED_ELEMENT(lane * RUN + (k))
#define RESULT(k) STAGED_ELEMENT(lane * RUN + (k))
#else
#define STAGE
#define STAGE_PARAM
#define STAGE_PASS
#define ELEMENT(k) x[AT(first + (k), n)]
#define RESULT(k) out[AT(first + (k), OUTPUTS)]
#endif

// Returns the number of elements of the tile that starts at element `base` of the scan.
INLINED uint count_of(const OFFSET_T base, const OFFSET_T n)
{
    return base >= n ? 0 : (uint)min((OFFSET_T)TILE, (OFFSET_T)(n - base));
}

#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1)))

// With BY_OFFSETS, sets the segment-head flags of a tile. All work-items call it.
INLINED void find_heads(LANE_SPACE uint* bits, OFFSET_T tile, OFFSET_T n HEAD_PARAMS)
{
#ifdef BY_OFFSETS
    for (uint word = get_local_id(0); word < BITS_WORDS; word += WG) {
        bits[word] = 0;
    }
    LOCAL_BARRIER;
    set_head_bits(bits, tile, n HEAD_PASS);
    LOCAL_BARRIER;
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
// l in its group. Lanes without elements have the identity. A work-item keeps the segment-head flags of its lanes in
// `lane_heads`. All work-items call it; it ends with a barrier.
INLINED void scan_lanes(
    __global const T* x, OFFSET_T tile, OFFSET_T n, const uint group, LANE_SPACE Partial* lanes,
    LANE_SPACE uint* bits, LANE_SPACE uchar* lane_heads STAGE_PARAM HEAD_PARAMS)
{
    const uint item = get_local_id(0);
    const OFFSET_T base = tile * TILE;
#ifdef STAGED
    const uint elements = count_of(base, n);
    load_stage(x + STAGE_START(base, elements, n), elements STAGE_PASS);
    LOCAL_BARRIER;
#endif
    find_heads(bits, tile, n HEAD_PASS);
    for (uint lane = item; lane < LANES; lane += WG) {
        const OFFSET_T first = base + lane * RUN;
        Partial total = identity_partial();
        if (first < n) {
            const uint count = n - first < RUN ? n - first : RUN;
            const uint heads = heads_of_lane(bits, base, lane, count, n HEAD_PASS);
            lane_heads[lane] = (uchar)heads;
            total = partial(ELEMENT(0), heads & 1);
            for (uint k = 1; k < count; k++) {
                total = join(total, partial(ELEMENT(k), heads >> k & 1));
            }
        }
        STORE_PARTIAL(lanes[lane], total);
    }
    LOCAL_BARRIER;
    for (uint d = 1; d < group; d *= 2) {
        for (uint k = item; k < LANES / 2; k += WG) {
            const uint position = k & (d - 1), upper = 2 * (k - position) + d;
            const Partial low = LOAD_PARTIAL(lanes[upper - 1]), high = LOAD_PARTIAL(lanes[upper + position]);
            const Partial both = join(low, high);
            STORE_PARTIAL(lanes[upper + position], both);
        }
        LOCAL_BARRIER;
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
// Writes ranks[t] of lib/heads.cl among `count` offsets, for each tile of n elements and for the end. With ENDS,
// ends[t] follow: the numbers of offsets <= t * TILE. ends[0] is 0, and the one for the end is `count`.
KERNEL void scan_ranks(
    __global const S* offsets_base, const ulong offsets_offset, const OFFSET_T count, const OFFSET_T n,
    const OFFSET_T tiles, __global OFFSET_T* ranks_base, const ulong ranks_at)
{
    for (OFFSET_T t = get_global_id(0); t <= tiles; t += get_global_size(0)) {
        ranks_base[ranks_at + t] = rank_of_tile(offsets_base + offsets_offset, count, t, n);
#ifdef ENDS
        ranks_base[ranks_at + tiles + 1 + t] =
            t == 0 ? 0 : t == tiles ? count : rank_within(offsets_base + offsets_offset, 0, count, (ulong)t * TILE);
#endif
    }
}

#ifdef ENDS
// Writes the identity for each empty segment of an input of n elements.
KERNEL void scan_ends(
    const OFFSET_T n, __global const S* offsets_base, const ulong offsets_offset, __global T* out_base,
    const ulong out_offset, const OFFSET_T segments)
{
    __global const S* offsets = offsets_base + offsets_offset;
    for (OFFSET_T s = get_global_id(0); s < segments; s += get_global_size(0)) {
        if (min((ulong)offsets[s], (ulong)n) >= min((ulong)offsets[s + 1], (ulong)n)) {
            out_base[out_offset + s] = op_identity();
        }
    }
}
#endif
#endif

#ifdef ENDS
// If a segment ends before element `end`, writes its result. Element `end - 1` is in tile `tile`.
INLINED void write_end(
    __global T* out, const OFFSET_T tile, const OFFSET_T tiles, const ulong end, const T result,
    const OFFSET_T n HEAD_PARAMS)
{
#ifdef BY_ROWS
    if (end % row == 0) {
        out[end / row - 1] = result;
    }
#else
    __global const S* offsets = offsets_base + offsets_offset;
    __global const OFFSET_T* ends = ranks_base + ranks_at + tiles + 1;
    const OFFSET_T high = ends[tile + 1], i = rank_within(offsets, ends[tile], high, end - 1);
    if (i > 0 && i < high && min((ulong)offsets[i], (ulong)n) == end) {
        out[i - 1] = result;
    }
#endif
}

#ifdef STAGED
// Writes the last result of each segment that ends in the tile, which has `elements` elements. All work-items call it.
INLINED void write_ends(
    __global T* out, const OFFSET_T tile, const OFFSET_T tiles, const uint elements,
    const OFFSET_T n STAGE_PARAM HEAD_PARAMS)
{
    const ulong base = (ulong)tile * TILE;
#ifdef BY_ROWS
    for (ulong r = base / row + get_local_id(0); (r + 1) * row <= base + elements; r += WG) {
        out[r] = STAGED_ELEMENT((uint)((r + 1) * row - 1 - base));
    }
#else
    __global const S* offsets = offsets_base + offsets_offset;
    __global const OFFSET_T* ends = ranks_base + ranks_at + tiles + 1;
    const OFFSET_T low = ends[tile], high = ends[tile + 1];
    if (high - low <= 2 * TILE) {
        for (OFFSET_T i = low + (OFFSET_T)get_local_id(0); i < high; i += WG) {
            const ulong start = min((ulong)offsets[i > 0 ? i - 1 : 0], (ulong)n), end = min((ulong)offsets[i], (ulong)n);
            // Offsets that are not sorted may lie outside the tile.
            if (start < end && end - 1 - base < elements) {
                out[i - 1] = STAGED_ELEMENT((uint)(end - 1 - base));
            }
        }
    } else {
        // Most segments are empty, so each element searches for the segment that it ends.
        for (uint at = get_local_id(0); at < elements; at += WG) {
            write_end(out, tile, tiles, base + at + 1, STAGED_ELEMENT(at), n HEAD_PASS);
        }
    }
#endif
}
#endif
#endif

// Writes aggregates[t] for the whole tiles t < tiles.
KERNEL void scan_aggregates(
    __global const T* in_base, const ulong in_offset, LENGTH_PARAMS, __global Partial* aggregates,
    const OFFSET_T tiles HEAD_PARAMS)
{
    LANE_SPACE Partial lanes[LANES];
    LANE_SPACE uint bits[BITS_WORDS];
    LANE_SPACE uchar lane_heads[LANES];
    STAGE
    TAKE_LENGTH
    for (OFFSET_T tile = get_group_id(0); tile < WHOLE_TILES; tile += get_num_groups(0)) {
        scan_lanes(in_base + in_offset, tile, n, LANES / 2, lanes, bits, lane_heads STAGE_PASS HEAD_PASS);
        if (get_local_id(0) == 0) {
            const Partial low = LOAD_PARTIAL(lanes[LANES / 2 - 1]), high = LOAD_PARTIAL(lanes[LANES - 1]);
            const Partial total = join(low, high);
            STORE_PARTIAL(aggregates[tile], total);
        }
        LOCAL_BARRIER;
    }
}

// There are n results or, with ENDS, one for each segment. An exclusive scan without segments may have n + 1: the last
// one is `initial` op the aggregate of the whole input.
KERNEL void scan_tiles(
    __global const T* in_base, const ulong in_offset, LENGTH_PARAMS, __global T* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global const Partial* aggregates, const OFFSET_T tiles, const T initial,
    const uint inclusive HEAD_PARAMS)
{
    LANE_SPACE Partial lanes[LANES];
    LANE_SPACE uint bits[BITS_WORDS];
    LANE_SPACE uchar lane_heads[LANES];
    STAGE
    TAKE_LENGTH
    __global const T* x = in_base + in_offset;
    __global T* out = out_base + out_offset;
    for (OFFSET_T tile = get_group_id(0); tile < OWN_TILES; tile += get_num_groups(0)) {
        scan_lanes(x, tile, n, LANES, lanes, bits, lane_heads STAGE_PASS HEAD_PASS);
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
                const uint heads = lane_heads[lane];
                for (uint k = 0; k < count; k++) {
                    const T before = restart(initial, acc, heads >> k & 1);
                    acc = op_combine(before, ELEMENT(k));
#if defined(ENDS) && !defined(STAGED)
                    // A segment ends only before a head or after the last element of a lane.
                    if (k + 1 == count || heads >> (k + 1) & 1) {
                        write_end(out, tile, tiles, (ulong)first + k + 1, acc, n HEAD_PASS);
                    }
#else
                    RESULT(k) = inclusive ? acc : before;
#endif
                }
            }
#ifndef ENDS
            if (OUTPUTS > n && first <= n && n - first < RUN) {
                out[AT(n, OUTPUTS)] = acc;
            }
#endif
        }
        LOCAL_BARRIER;
#ifdef STAGED
        const uint elements = count_of(base, n);
#ifdef ENDS
        write_ends(out, tile, tiles, elements, n STAGE_PASS HEAD_PASS);
#else
        store_stage(out + STAGE_START(base, elements, OUTPUTS), elements STAGE_PASS);
#endif
        LOCAL_BARRIER;
#endif
    }
}
