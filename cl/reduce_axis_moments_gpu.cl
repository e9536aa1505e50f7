// Moments along an axis for work-groups (reduce_axis_moments.cl): several work-items share a line.

#define TQ CAT(T, 4)

static inline TQ load_quad(__global const T* in, const long stride)
{
#if defined(UNIT) && defined(ALIGNED)
    return *(__global const TQ*)in;
#elif defined(UNIT)
    return vload4(0, in);
#else
    // Sums of addresses take fewer instructions than products.
    __global const T *second = in + stride, *third = second + stride;
    return (TQ)(*in, *second, *third, third[stride]);
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
    in += (long)lane * stride;
    UNROLL
    for (uint r = 0; r < ROWS; r++) {
        row[r] = load_quad(in, stride);
        in += LANES * stride;
    }
}

#ifdef A_FLOAT

// For each lane of a quad: its mean; `rest`, the sum of the distances to the mean; `m2`, the sum of their squares; and
// `part`, the weight of an element. In the first pass the mean is 0, so `rest` becomes the sum of the elements.
typedef struct {
    A mean[4], rest[4], m2[4], part[4];
} Quad;

INLINED void add_distance(Quad* quad, const uint k, const A x)
{
    const A d = x - quad->mean[k];
    quad->rest[k] += d;
    quad->m2[k] += d * d;
}

// Turns the lanes' sums into means. Returns whether all are finite.
INLINED bool divide(Quad* quad)
{
    bool finite = true;
    UNROLL
    for (uint k = 0; k < 4; k++) {
        quad->mean[k] = quad->rest[k] * quad->part[k];
        finite = finite && IS_FINITE(quad->mean[k]);
        quad->rest[k] = quad->m2[k] = 0;
    }
    return finite;
}

// Takes a whole chunk, which stays in registers for the second pass. Returns false if a sum is not finite: then the
// work-item takes the chunk again.
INLINED bool take_whole(Quad* quad, __global const T* in, const long stride, const uint lane)
{
    TQ row[ROWS];
    load_quads(row, in, stride, lane);
    UNROLL
    for (uint r = 0; r < ROWS; r++) {
        A x[4];
        unpack_quad(row[r], x);
        UNROLL
        for (uint k = 0; k < 4; k++) {
            quad->rest[k] += x[k];
        }
    }
    if (!divide(quad)) {
        return false;
    }
    UNROLL
    for (uint r = 0; r < ROWS; r++) {
        A x[4];
        unpack_quad(row[r], x);
        UNROLL
        for (uint k = 0; k < 4; k++) {
            add_distance(quad, k, x[k]);
        }
    }
    return true;
}

// Takes the first `count` elements of a chunk. Each round of the loop is a pass over memory; the second has the mean.
INLINED void take_part(Quad* quad, __global const T* in, const long stride, const uint lane, const uint count)
{
    const uint rows = count / LANES, more = count % LANES;
    UNROLL
    for (uint k = 0; k < 4; k++) {
        quad->mean[k] = quad->rest[k] = quad->m2[k] = 0;
    }
    ROLLED
    for (uint pass = 0; pass < 2; pass++) {
        _Pragma("unroll 4")
        for (uint r = 0; r < rows; r++) {
            A x[4];
            unpack_quad(load_quad(in + (long)(r * LANES + lane) * stride, stride), x);
            UNROLL
            for (uint k = 0; k < 4; k++) {
                add_distance(quad, k, x[k]);
            }
        }
        UNROLL
        for (uint k = 0; k < 4; k++) {
            if (lane + k < more) {
                add_distance(quad, k, to_acc(in[(long)(rows * LANES + lane + k) * stride]));
            }
        }
        if (pass == 0 && !divide(quad)) {
            UNROLL
            for (uint k = 0; k < 4; k++) {
                if (!IS_FINITE(quad->mean[k])) {
                    quad->mean[k] = far_mean(in, stride, count, LANES, lane + k, quad->part[k]);
                }
            }
        }
    }
}

// Makes the moments of the quad from `lane` on, of the `count` > 0 elements of a chunk that starts at `in`.
static inline void take(__global const T* in, const long stride, const uint lane, const uint count, Moments* m)
{
    const A whole = 1.0f / ROWS;
    Quad quad = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {whole, whole, whole, whole}};
    if (count != CHUNK) {
        const uint rows = count / LANES, more = count % LANES;
        const A less = rows > 0 ? part_of(rows) : 0, all = part_of(rows + 1);
        UNROLL
        for (uint k = 0; k < 4; k++) {
            quad.part[k] = lane + k < more ? all : less;
        }
    }
    if (count != CHUNK || !take_whole(&quad, in, stride, lane)) {
        take_part(&quad, in, stride, lane, count);
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
    // `columns` and WG are powers of two, so shifts and masks replace divisions.
    const uint item = get_local_id(0), shift = 31 - clz(columns), share = WG >> shift;
    const uint column = across ? item & (columns - 1) : item * columns / WG;
    const uint own = across ? item >> shift : item & (share - 1);
    const uint lane = own % QUADS * 4;
    const OFFSET_T output = first + column;
    // Work-items without an output process the last one, and write nothing.
    __global const T* in = LINE(min(output, (OFFSET_T)(outputs - 1)));
    // Chunks of a work-item.
    const OFFSET_T each = run >> (31 - clz(share / QUADS)), start = part * run + own / QUADS * each;
    const uint number = start < chunks ? min(each, (OFFSET_T)(chunks - start)) : 0;
    const OFFSET_T left = number > 0 ? len - start * CHUNK : 0;
    // Only the first entry is set: for few chunks, setting all entries would take longer than joining the chunks.
    Moments carry[CHUNKS_DEPTH];
    carry[0] = (Moments)NOTHING;
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
    // Only the first entry is set: for few parts, setting all entries would take longer than joining the parts.
    Moments carry[PARTS_DEPTH];
    carry[0] = (Moments)NOTHING;
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
