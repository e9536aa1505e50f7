// Moments along an axis for work-groups (reduce_axis_moments.cl): several work-items share a line.

#define TQ CAT(T, 4)

static inline TQ load_quad(__global const T* in, const long stride)
{
#if defined(UNIT) && defined(ALIGNED)
    return *(__global const TQ*)in;
#elif defined(UNIT)
    return vload4(0, in);
#else
    return (TQ)(in[0], in[stride], in[2 * stride], in[3 * stride]);
#endif
}

INLINED void unpack_quad(const TQ q, A* x)
{
    x[0] = to_acc(q.s0);
    x[1] = to_acc(q.s1);
    x[2] = to_acc(q.s2);
    x[3] = to_acc(q.s3);
}

INLINED void load_quads(TQ* row, __global const T* in, const long stride, const uint lane)
{
    UNROLL
    for (uint r = 0; r < ROWS; r++) {
        row[r] = load_quad(in + (long)(r * LANES + lane) * stride, stride);
    }
}

#ifdef A_FLOAT

// For each lane of a quad: the mean; then the sums of the distances to it, and of their squares. An element has weight
// part[k].
typedef struct {
    A mean[4], rest[4], m2[4], part[4];
} Quad;

INLINED void add_to_sum(Quad* quad, const uint k, const A x) { quad->mean[k] += x; }

INLINED void add_distance(Quad* quad, const uint k, const A x)
{
    const A d = x - quad->mean[k];
    quad->rest[k] += d;
    quad->m2[k] += d * d;
}

// Turns the lanes' sums into means. If a sum overflows, its mean is computed in another way.
INLINED void divide(Quad* quad, __global const T* in, const long stride, const uint lane, const uint count)
{
    int far = 0;
    UNROLL
    for (uint k = 0; k < 4; k++) {
        quad->mean[k] *= quad->part[k];
        far |= !IS_FINITE(quad->mean[k]);
    }
    if (!far) {
        return;
    }
    // Not unrolled, so that the code for a lane exists once. Inner loops find entry k, since arrays in registers cannot
    // have a variable index.
    ROLLED
    for (uint k = 0; k < 4; k++) {
        A mean = 0, part = 0;
        UNROLL
        for (uint i = 0; i < 4; i++) {
            mean = i == k ? quad->mean[i] : mean;
            part = i == k ? quad->part[i] : part;
        }
        if (!IS_FINITE(mean)) {
            mean = far_mean(in, stride, count, LANES, lane + k, part);
            UNROLL
            for (uint i = 0; i < 4; i++) {
                quad->mean[i] = i == k ? mean : quad->mean[i];
            }
        }
    }
}

// A whole chunk, which stays in registers for the second pass.
INLINED void take_whole(Quad* quad, __global const T* in, const long stride, const uint lane)
{
    TQ row[ROWS];
    load_quads(row, in, stride, lane);
    UNROLL
    for (uint r = 0; r < ROWS; r++) {
        A x[4];
        unpack_quad(row[r], x);
        UNROLL
        for (uint k = 0; k < 4; k++) {
            add_to_sum(quad, k, x[k]);
        }
    }
    UNROLL
    for (uint k = 0; k < 4; k++) {
        quad->part[k] = (A)(1.0f / ROWS);
    }
    divide(quad, in, stride, lane, CHUNK);
    UNROLL
    for (uint r = 0; r < ROWS; r++) {
        A x[4];
        unpack_quad(row[r], x);
        UNROLL
        for (uint k = 0; k < 4; k++) {
            add_distance(quad, k, x[k]);
        }
    }
}

// One pass over the first `count` elements of a chunk: adds to the sums or, with `second`, the distances.
INLINED void pass_part(
    Quad* quad, __global const T* in, const long stride, const uint lane, const uint count, const int second)
{
    const uint rows = count / LANES, more = count % LANES;
    _Pragma("unroll 4")
    for (uint r = 0; r < rows; r++) {
        A x[4];
        unpack_quad(load_quad(in + (long)(r * LANES + lane) * stride, stride), x);
        UNROLL
        for (uint k = 0; k < 4; k++) {
            if (second) {
                add_distance(quad, k, x[k]);
            } else {
                add_to_sum(quad, k, x[k]);
            }
        }
    }
    UNROLL
    for (uint k = 0; k < 4; k++) {
        if (lane + k < more) {
            const A x = to_acc(in[(long)(rows * LANES + lane + k) * stride]);
            if (second) {
                add_distance(quad, k, x);
            } else {
                add_to_sum(quad, k, x);
            }
        }
    }
}

// Makes the moments of the quad from `lane` on, of the `count` > 0 elements of a chunk that starts at `in`.
static inline void take(__global const T* in, const long stride, const uint lane, const uint count, Moments* m)
{
    Quad quad = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
    if (count == CHUNK) {
        take_whole(&quad, in, stride, lane);
    } else {
        const uint rows = count / LANES, more = count % LANES;
        const A less = rows > 0 ? part_of(rows) : 0, all = part_of(rows + 1);
        UNROLL
        for (uint k = 0; k < 4; k++) {
            quad.part[k] = lane + k < more ? all : less;
        }
        pass_part(&quad, in, stride, lane, count, 0);
        divide(&quad, in, stride, lane, count);
        pass_part(&quad, in, stride, lane, count, 1);
    }
    Moments of[4];
    UNROLL
    for (uint k = 0; k < 4; k++) {
        lane_moments(&of[k], quad.mean[k], quad.rest[k], quad.m2[k], quad.part[k]);
        replace_far_squares(&of[k], quad.part[k], in, stride, count, LANES, lane + k);
    }
    join_quad(of, count, lane);
    *m = of[0];
}

#else

// Makes the sums of the quad from `lane` on, of the `count` > 0 elements of a chunk that starts at `in`.
static inline void take(__global const T* in, const long stride, const uint lane, const uint count, Moments* m)
{
    const uint rows = count / LANES, more = count % LANES;
    Sums sums = {0};
    A x[4];
    if (count == CHUNK) {
        TQ row[ROWS];
        load_quads(row, in, stride, lane);
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            unpack_quad(row[r], x);
            sums_add_two(&sums, x[0], x[1]);
            sums_add_two(&sums, x[2], x[3]);
        }
    } else {
        _Pragma("unroll 4")
        for (uint r = 0; r < rows; r++) {
            unpack_quad(load_quad(in + (long)(r * LANES + lane) * stride, stride), x);
            UNROLL
            for (uint k = 0; k < 4; k++) {
                sums_add(&sums, x[k]);
            }
        }
        UNROLL
        for (uint k = 0; k < 4; k++) {
            if (lane + k < more) {
                sums_add(&sums, to_acc(in[(long)(rows * LANES + lane + k) * stride]));
            }
        }
    }
    sums_moments(m, &sums);
}

#endif

#include "lib/moments_share.cl"

// Work-group g has part g % parts of the `columns` outputs from columns * (g / parts) on. With one part it writes
// records, else the moments of quads.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_moments(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, const uint columns, const uint across,
    __global void* restrict out, const ulong out_offset)
{
    const OFFSET_T part = (OFFSET_T)get_group_id(0) % parts;
    const OFFSET_T first = (OFFSET_T)get_group_id(0) / parts * columns;
    const OFFSET_T chunks = len / CHUNK + (len % CHUNK != 0);
    __local MOMENT_T tree[MOMENT_WORDS * WG];
    const uint item = get_local_id(0), share = WG / columns;
    const uint column = across ? item % columns : item / share, own = across ? item / columns : item % share;
    const uint lane = own % QUADS * 4;
    const OFFSET_T output = first + column;
    // Work-items without an output process the last one, and write nothing.
    __global const T* in = LINE(min(output, (OFFSET_T)(outputs - 1)));
    // Chunks of a work-item.
    const OFFSET_T each = run / (share / QUADS), start = part * run + own / QUADS * each;
    const uint number = start < chunks ? min(each, (OFFSET_T)(chunks - start)) : 0;
    const OFFSET_T left = number > 0 ? len - start * CHUNK : 0;
    // Not all of it is set, since that takes longer than a join of few parts.
    Moments carry[CHUNKS_DEPTH], nothing = NOTHING;
    carry[0] = nothing;
    uint depth = 0;
    for (uint i = 0; i < number; i++) {
        const OFFSET_T base = (start + i) * CHUNK;
        Moments m;
        take(in + (long)base * stride, stride, lane, min((OFFSET_T)CHUNK, (OFFSET_T)(len - base)), &m);
        push(carry, &depth, i, &m, CHUNK, left, lane, 1, 1);
    }
    if (number > 0) {
        fold(carry, depth, number, CHUNK, left, lane, 1, 1);
    }
    Moments m = carry[0];
    const OFFSET_T before = part * run * CHUNK;
    join_share(&m, own, share, across ? columns : 1, (ulong)each * CHUNK, len - before, parts == 1, tree);
    if (output < outputs) {
        if (parts > 1 && own < QUADS) {
            ((__global Moments*)out)[((ulong)output * parts + part) * QUADS + own] = m;
        } else if (own == 0) {
            store_record(out, out_offset, output, len, &m);
        }
    }
}

// Work-group g has the outputs from columns * g on. It joins the moments from axis_moments: each part but the last has
// `unit` elements. A work-item has `each` parts, a power of two.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_moments_parts(
    __global const void* restrict from_base, const OFFSET_T outputs, const OFFSET_T len, const OFFSET_T unit,
    const OFFSET_T parts, const OFFSET_T each, const uint columns, __global void* restrict out, const ulong out_offset)
{
    __global const Moments* from = (__global const Moments*)from_base;
    __local MOMENT_T tree[MOMENT_WORDS * WG];
    const uint item = get_local_id(0), share = WG / columns, own = item % share, lane = own % QUADS * 4;
    const OFFSET_T output = (OFFSET_T)get_group_id(0) * columns + item / share;
    const OFFSET_T start = own / QUADS * each;
    const uint number = output < outputs && start < parts ? min(each, (OFFSET_T)(parts - start)) : 0;
    const OFFSET_T left = number > 0 ? len - start * unit : 0;
    // Not all of it is set, since that takes longer than a join of few parts.
    Moments carry[PARTS_DEPTH], nothing = NOTHING;
    carry[0] = nothing;
    uint depth = 0;
    for (uint i = 0; i < number; i++) {
        Moments m = from[((ulong)output * parts + start + i) * QUADS + own % QUADS];
        push(carry, &depth, i, &m, unit, left, lane, 1, 1);
    }
    if (number > 0) {
        fold(carry, depth, number, unit, left, lane, 1, 1);
    }
    Moments m = carry[0];
    join_share(&m, own, share, 1, (ulong)each * unit, len, 1, tree);
    if (own == 0 && output < outputs) {
        store_record(out, out_offset, output, len, &m);
    }
}
