// Moments of segments: record s has the moments (lib/moments.cl) of the elements x[offsets[s]..offsets[s + 1]].
//
// Bytes: reads each element once from global memory, and two offsets for each segment; writes a record of 48 bytes for
// each segment.
//
// The order of floats in a segment is that in a line of as many elements (reduce_axis_moments.cl). A chunk has 16 rows
// of LANES lanes. A segment of up to 256 elements is one chunk of fewer lanes.
//
// A segment of more than `part` elements is long; `part` is CHUNK times a power of two. Its first part is its head. The
// input has a tile for each `part` elements. At most one long segment starts in a tile, since it ends in a later one.
// For the same reason, at most one of the further parts starts in a tile. So tiles number the parts, and no work-item
// lists them:
//
//     moments_heads  for each segment: its record or, if it is long, the quads of its head
//     moments_parts  for each tile: finds the further part that starts there, and writes its quads
//     moments_join   for each tile: finds the long segment that starts there, joins its parts, and writes its record
//
// TEAM work-items share a segment in moments_heads, and PARTS_TEAM a part in moments_parts. Each work-item has one quad
// after another. Offsets beyond the input count as its end. For any offsets, accesses stay in bounds, and each word has
// one writer.
#include "lib/types.cl"
#include "lib/moments.cl"

#ifndef WG
#define WG 256
#define TEAM 8
#define S uint
#endif
#define LANES 32
#define ROWS 16
#define CHUNK (ROWS * LANES)
#define QUADS (LANES / 4)
#define UNROLL _Pragma("unroll")
#define PARTS_TEAM (WG == 1 ? 1 : QUADS)
// The quads for which a work-group has local memory: QUADS for each of its segments.
#define SLOTS (WG / TEAM * QUADS)
#include "lib/moments_tree.cl"

#define TQ CAT(T, 4)
#define AQ CAT(A, 4)

// Returns the number of lanes of a segment's chunks.
static inline uint lanes_of(const OFFSET_T len)
{
    return len <= 4 * ROWS ? 4 : len <= 8 * ROWS ? 8 : len <= 16 * ROWS ? 16 : LANES;
}

static inline AQ acc_quad(const TQ q) { return (AQ)(to_acc(q.s0), to_acc(q.s1), to_acc(q.s2), to_acc(q.s3)); }

static inline AQ load_quad(__global const T* in) { return acc_quad(vload4(0, in)); }

#if WG > 1
// Loads the elements of a quad in ROWS whole rows.
INLINED void load_quads(TQ* held, __global const T* in, const uint lanes)
{
    if ((size_t)in % (4 * T_BYTES) == 0) {
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            held[r] = *(__global const TQ*)(in + r * lanes);
        }
    } else {
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            held[r] = vload4(0, in + r * lanes);
        }
    }
}
#endif

// Makes the moments of the quad from `lane` on, of the `count` > 0 elements of a chunk that starts at `in`.
static inline void take(__global const T* in, const uint lanes, const uint lane, const uint count, Moments* m)
{
    const uint rows = count / lanes, more = count % lanes;
    // Elements of the quad in the last row, if that row is not full.
    const uint left = more > lane ? min(more - lane, 4u) : 0;
    __global const T* last_row = in + rows * lanes + lane;
    AQ last = 0;
    if (left > 0) {
        last.s0 = to_acc(last_row[0]);
        last.s1 = left > 1 ? to_acc(last_row[1]) : (A)0;
        last.s2 = left > 2 ? to_acc(last_row[2]) : (A)0;
        last.s3 = left > 3 ? to_acc(last_row[3]) : (A)0;
    }
#ifdef A_FLOAT
    AQ mean = 0, rest = 0, m2 = 0, part = (AQ)((A)(1.0f / ROWS));
#if WG > 1
    // A whole chunk stays in registers for the second pass.
    const int whole = rows == ROWS;
    TQ held[ROWS];
    if (whole) {
        load_quads(held, in + lane, lanes);
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            mean += acc_quad(held[r]);
        }
    }
#else
    const int whole = 0;
#endif
    if (!whole) {
        IN_ORDER
        for (uint r = 0; r < rows; r++) {
            mean += load_quad(in + r * lanes + lane);
        }
        // A sum is never -0, so adding 0 does not change it.
        mean += last;
        const A less = rows > 0 ? part_of(rows) : (A)0, all = part_of(rows + 1);
        part = (AQ)(left > 0 ? all : less, left > 1 ? all : less, left > 2 ? all : less, left > 3 ? all : less);
    }
    mean *= part;
    if (!(IS_FINITE(mean.s0) && IS_FINITE(mean.s1) && IS_FINITE(mean.s2) && IS_FINITE(mean.s3))) {
        mean.s0 = IS_FINITE(mean.s0) ? mean.s0 : far_mean(in, 1, count, lanes, lane, part.s0);
        mean.s1 = IS_FINITE(mean.s1) ? mean.s1 : far_mean(in, 1, count, lanes, lane + 1, part.s1);
        mean.s2 = IS_FINITE(mean.s2) ? mean.s2 : far_mean(in, 1, count, lanes, lane + 2, part.s2);
        mean.s3 = IS_FINITE(mean.s3) ? mean.s3 : far_mean(in, 1, count, lanes, lane + 3, part.s3);
    }
#if WG > 1
    if (whole) {
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            const AQ d = acc_quad(held[r]) - mean;
            rest += d;
            m2 += d * d;
        }
    }
#endif
    if (!whole) {
        IN_ORDER
        for (uint r = 0; r < rows; r++) {
            const AQ d = load_quad(in + r * lanes + lane) - mean;
            rest += d;
            m2 += d * d;
        }
    }
    if (left > 0) {
        const AQ d =
            (AQ)(last.s0 - mean.s0, left > 1 ? last.s1 - mean.s1 : (A)0, left > 2 ? last.s2 - mean.s2 : (A)0,
                 left > 3 ? last.s3 - mean.s3 : (A)0);
        rest += d;
        m2 += d * d;
    }
    Moments of[4];
    lane_moments(&of[0], mean.s0, rest.s0, m2.s0, part.s0);
    lane_moments(&of[1], mean.s1, rest.s1, m2.s1, part.s1);
    lane_moments(&of[2], mean.s2, rest.s2, m2.s2, part.s2);
    lane_moments(&of[3], mean.s3, rest.s3, m2.s3, part.s3);
    replace_far_squares(&of[0], part.s0, in, 1, count, lanes, lane);
    replace_far_squares(&of[1], part.s1, in, 1, count, lanes, lane + 1);
    replace_far_squares(&of[2], part.s2, in, 1, count, lanes, lane + 2);
    replace_far_squares(&of[3], part.s3, in, 1, count, lanes, lane + 3);
    join_lanes(&of[0], &of[1], count, lanes, lane, 1);
    join_lanes(&of[2], &of[3], count, lanes, lane + 2, 1);
    join_lanes(&of[0], &of[2], count, lanes, lane, 2);
    *m = of[0];
#else
    Sums sums = {0};
    for (uint r = 0; r < rows; r++) {
        const AQ x = load_quad(in + r * lanes + lane);
        sums_add_two(&sums, x.s0, x.s1);
        sums_add_two(&sums, x.s2, x.s3);
    }
    sums_add_two(&sums, last.s0, last.s1);
    sums_add_two(&sums, last.s2, last.s3);
    sums_moments(m, &sums);
#endif
}

// Makes the moments of a quad of the `len` > 0 elements at `in`: all of a segment, or a part of a long one.
static inline void take_quad(__global const T* in, const OFFSET_T len, const uint quad, Moments* m)
{
    if (len <= CHUNK) {
        take(in, lanes_of(len), quad * 4, len, m);
        return;
    }
    Moments carry[CHUNKS_DEPTH];
    uint depth = 0;
    const uint number = len / CHUNK + (len % CHUNK != 0);
    for (uint i = 0; i < number; i++) {
        const OFFSET_T base = i * CHUNK;
        take(in + base, LANES, quad * 4, min((OFFSET_T)CHUNK, (OFFSET_T)(len - base)), m);
        push(carry, &depth, i, m, CHUNK, len, quad * 4, 1, 1);
    }
    fold(carry, depth, number, CHUNK, len, quad * 4, 1, 1);
    *m = carry[0];
}

// Joins quad `own` of a segment with the one `d` quads after it.
static inline void join_next(Moments* m, const Moments* next, const OFFSET_T len, const uint lanes, const uint own, const uint d)
{
    join_moments(m, next, in_lanes(len, lanes, own * 4, d * 4), in_lanes(len, lanes, (own + d) * 4, d * 4));
}

// Joins the quads of a segment into the first one.
static inline void join_all(Moments* all, const OFFSET_T len, const uint lanes)
{
    for (uint d = 1; d < lanes / 4; d *= 2) {
        for (uint quad = 0; quad < lanes / 4; quad += 2 * d) {
            join_next(&all[quad], &all[quad + d], len, lanes, quad, d);
        }
    }
}

// The elements of segment s. No element is beyond the end n of the input.
#define START(s) ((OFFSET_T)min((ulong)offsets[s], (ulong)n))
#define LENGTH(s) (START((s) + 1) > START(s) ? START((s) + 1) - START(s) : 0)

// Returns how many segments start before `end`.
static inline OFFSET_T starts_before(__global const S* offsets, const OFFSET_T segments, const OFFSET_T end)
{
    OFFSET_T low = 0, high = segments;
    while (low < high) {
        const OFFSET_T middle = low + (high - low) / 2;
        if (offsets[middle] < end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Returns the long segment that starts in a tile, plus 1; 0 if there is none.
static inline OFFSET_T long_segment_in(
    __global const S* offsets, const OFFSET_T segments, const OFFSET_T n, const OFFSET_T tile, const OFFSET_T part)
{
    const OFFSET_T found = starts_before(offsets, segments, (tile + 1) * part);
    return found > 0 && START(found - 1) >= tile * part && LENGTH(found - 1) > part ? found : 0;
}

#define SEGMENTS                                                                                                       \
    const OFFSET_T n, __global const S *restrict offsets, const ulong offsets_offset, const OFFSET_T segments,         \
        const OFFSET_T part, const OFFSET_T tiles

// `quads` has QUADS moments for each tile: first the heads, then the further parts.
#define QUADS_OF(further, tile) (quads + ((further) * (ulong)tiles + (tile)) * QUADS)

// A work-item of a team of one has `each` segments.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void moments_heads(
    __global const T* restrict in, const ulong in_offset, SEGMENTS, const OFFSET_T each,
    __global void* restrict quads_base, __global void* restrict out, const ulong out_offset)
{
    __global Moments* quads = (__global Moments*)quads_base;
    const Moments nothing = NOTHING;
    in += in_offset;
    offsets += offsets_offset;
#if TEAM == 1
    const OFFSET_T first = (OFFSET_T)get_global_id(0) * each;
    const OFFSET_T end = first < segments ? first + min(each, (OFFSET_T)(segments - first)) : first;
    for (OFFSET_T segment = first; segment < end; segment++) {
        const OFFSET_T start = START(segment), len = LENGTH(segment);
        Moments all[QUADS];
        all[0] = nothing;
        if (len > part) {
            if (long_segment_in(offsets, segments, n, start / part, part) == segment + 1) {
                for (uint quad = 0; quad < QUADS; quad++) {
                    take_quad(in + start, part, quad, &all[quad]);
                    QUADS_OF(0, start / part)[quad] = all[quad];
                }
            }
            continue;
        }
        for (uint quad = 0; len > 0 && quad < lanes_of(len) / 4; quad++) {
            take_quad(in + start, len, quad, &all[quad]);
        }
        join_all(all, len, lanes_of(len));
        store_record(out, out_offset, segment, len, &all[0]);
    }
#else
    // A work-item takes every TEAM-th quad of its segment.
    __local MOMENT_T tree[MOMENT_WORDS * SLOTS];
    const uint item = get_local_id(0), own = item % TEAM, slot = item / TEAM * QUADS;
    const OFFSET_T segment = (OFFSET_T)get_group_id(0) * (WG / TEAM) + item / TEAM;
    const OFFSET_T start = segment < segments ? START(segment) : 0, len = segment < segments ? LENGTH(segment) : 0;
    const uint lanes = lanes_of(len);
    const int whole = len <= part;
    const int starts_long = !whole && long_segment_in(offsets, segments, n, start / part, part) == segment + 1;
    const uint quads_here = starts_long ? QUADS : whole && len > 0 ? lanes / 4 : 0;
    ROLLED
    for (uint quad = own; quad < quads_here; quad += TEAM) {
        Moments m = nothing;
        take_quad(in + start, starts_long ? part : len, quad, &m);
        if (starts_long) {
            QUADS_OF(0, start / part)[quad] = m;
        }
        put_moments(tree, SLOTS, slot + quad, &m);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ROLLED
    for (uint d = 1; d < QUADS; d *= 2) {
        ROLLED
        for (uint quad = own; quad < quads_here; quad += TEAM) {
            if (quad % (2 * d) == 0 && quad + d < quads_here) {
                Moments m, next;
                get_moments(tree, SLOTS, slot + quad, &m);
                get_moments(tree, SLOTS, slot + quad + d, &next);
                join_next(&m, &next, len, lanes, quad, d);
                put_moments(tree, SLOTS, slot + quad, &m);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (own == 0 && segment < segments && whole) {
        Moments m = nothing;
        if (len > 0) {
            get_moments(tree, SLOTS, slot, &m);
        }
        store_record(out, out_offset, segment, len, &m);
    }
#endif
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void moments_parts(
    __global const T* restrict in, const ulong in_offset, SEGMENTS, __global void* restrict quads_base)
{
    __global Moments* quads = (__global Moments*)quads_base;
    const Moments nothing = NOTHING;
    in += in_offset;
    offsets += offsets_offset;
    const OFFSET_T tile = (OFFSET_T)get_group_id(0) * (WG / PARTS_TEAM) + get_local_id(0) / PARTS_TEAM;
    if (tile >= tiles) {
        return;
    }
    // The segment of the last element before the tile is the only one that can have a further part here.
    const OFFSET_T found = starts_before(offsets, segments, tile * part);
    OFFSET_T start = 0, len = 0;
    if (found > 0) {
        const OFFSET_T first = START(found - 1), all = LENGTH(found - 1);
        // The first multiple of `part` that reaches the tile.
        const OFFSET_T before = (tile * part - first + part - 1) / part * part;
        start = first + before;
        len = all > before ? min(part, (OFFSET_T)(all - before)) : 0;
    }
    for (uint quad = get_local_id(0) % PARTS_TEAM; quad < QUADS; quad += PARTS_TEAM) {
        Moments m = nothing;
        if (len > CHUNK) {
            take_quad(in + start, len, quad, &m);
        } else if (len > 0) {
            // The last part of a long segment keeps the lanes of the segment.
            take(in + start, LANES, quad * 4, len, &m);
        }
        QUADS_OF(1, tile)[quad] = m;
    }
}

#if WG > 1
#include "lib/moments_share.cl"
#endif

// Work-group g has the long segment that starts in tile g, if any.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void moments_join(
    SEGMENTS, __global const void* restrict quads_base, __global void* restrict out, const ulong out_offset)
{
    __global const Moments* quads = (__global const Moments*)quads_base;
    offsets += offsets_offset;
    const OFFSET_T tile = get_group_id(0), found = long_segment_in(offsets, segments, n, tile, part);
    // Most work-groups find no long segment.
    if (found == 0) {
        return;
    }
    const OFFSET_T len = LENGTH(found - 1), parts = len / part + (len % part != 0);
#if WG == 1
    Moments all[QUADS];
    for (uint quad = 0; quad < QUADS; quad++) {
        Moments carry[PARTS_DEPTH];
        uint depth = 0;
        for (OFFSET_T i = 0; i < parts; i++) {
            Moments m = QUADS_OF(i > 0, tile + i)[quad];
            push(carry, &depth, i, &m, part, len, quad * 4, 1, 1);
        }
        fold(carry, depth, parts, part, len, quad * 4, 1, 1);
        all[quad] = carry[0];
    }
    join_all(all, len, LANES);
    store_record(out, out_offset, found - 1, len, &all[0]);
#else
    __local MOMENT_T tree[MOMENT_WORDS * WG];
    const uint item = get_local_id(0), quad = item % QUADS, slots = WG / QUADS;
    // Parts of a work-item: a power of two.
    OFFSET_T each = 1;
    while (each * slots < parts) {
        each *= 2;
    }
    const OFFSET_T start = item / QUADS * each;
    const uint number = start < parts ? min(each, (OFFSET_T)(parts - start)) : 0;
    const OFFSET_T left = number > 0 ? len - start * part : 0;
    // Only the first entry is set: for few parts, setting all entries would take longer than joining the parts.
    Moments carry[PARTS_DEPTH], nothing = NOTHING;
    carry[0] = nothing;
    uint depth = 0;
    for (uint i = 0; i < number; i++) {
        Moments m = QUADS_OF(start + i > 0, tile + start + i)[quad];
        push(carry, &depth, i, &m, part, left, quad * 4, 1, 1);
    }
    if (number > 0) {
        fold(carry, depth, number, part, left, quad * 4, 1, 1);
    }
    Moments m = carry[0];
    join_share(&m, item, WG, 1, (ulong)each * part, len, 1, tree);
    if (item == 0) {
        store_record(out, out_offset, found - 1, len, &m);
    }
#endif
}
