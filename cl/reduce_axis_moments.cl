// The moments of each line along an axis: record o is of the `len` elements of the axis at output o.
//
// Of floats the order depends on `len` alone. A chunk is 16 rows of LANES lanes along the axis: lane j has the elements
// j, j + LANES, ... of its chunk. The lanes of a quad, four neighbours, join; then those of the same quad in all chunks, 2i
// and 2i + 1, then their pairs, and so on; then the quads, likewise. LANES is 32, or the least power of two from 4 on with
// which a line is one chunk.
//
// A work-group has `columns` outputs, and the items of each share its quads and its chunks: an item has a run of chunks. With
// `across` neighbouring items have neighbouring outputs, else neighbouring quads, whichever lie closer together in memory.
// Where outputs are few, or lines long, the axis is cut into parts of `run` chunks, a power of two, whose quads
// axis_moments_parts joins.
//
// ALIGNED: the host promises that four elements from a multiple of four on are aligned as a vector of them.
// Bytes: reads each element once, writes a record of 48 bytes an output.
#include "lib/types.cl"
#include "lib/lines.cl"
#include "lib/moments.cl"

#ifndef WG
#define WG 256
#endif
#ifndef LANES
#define LANES 32
#endif
// Rows of a chunk that lines have, a power of two: fewer than 16 with 4 lanes alone. Of integers, whose order is free, any.
#ifndef ROWS
#define ROWS 16
#endif
#define CHUNK (ROWS * LANES)
#define QUADS (LANES / 4)
#define UNROLL _Pragma("unroll")

// Chunks of an item are at most 512, parts of an item any number: of what is to be joined with later ones there is one for
// each bit that is set in how many there were.
#define CHUNKS_DEPTH 10
#define PARTS_DEPTH 34

#ifdef A_FLOAT
#define NOTHING {0, 0, 0, 0}
#else
#define NOTHING {0, 0, 0, 0, 0}
#endif

// Elements in the `width` lanes from `lane` on of those from `from` to `to`, where there are so many; `from` starts a chunk.
static inline OFFSET_T between(OFFSET_T from, OFFSET_T to, uint lane, uint width)
{
    return to > from ? in_lanes(to - from, LANES, lane, width) : 0;
}

// Adds what unit `number` has, of `left` elements in units of `unit` each. Of `values` values at once, of which `columns`
// at a time are of one quad: those of the first have `lane`.
static inline void push(
    Moments* carry, uint* depth, uint number, Moments* x, OFFSET_T unit, OFFSET_T left, uint lane, uint values,
    uint columns)
{
    const OFFSET_T end = min((OFFSET_T)(left - number * unit), unit) + number * unit;
#ifdef A_FLOAT
    uint width = 1;
    for (uint bits = number; (bits & 1) != 0; bits >>= 1) {
        --*depth;
        const OFFSET_T middle = (number + 1 - width) * unit;
        for (uint v = 0; v < values; v++) {
            const uint first = lane + v / columns * 4;
            Moments* a = &carry[*depth * values + v];
            join_moments(a, &x[v], width * unit / QUADS, between(middle, end, first, 4));
            x[v] = *a;
        }
        width *= 2;
    }
    for (uint v = 0; v < values; v++) {
        carry[*depth * values + v] = x[v];
    }
    ++*depth;
#else
    for (uint v = 0; v < values; v++) {
        if (number == 0) {
            carry[v] = x[v];
        } else {
            join_moments(&carry[v], &x[v], unit, end);
        }
    }
    *depth = 1;
#endif
}

// Joins all that `number` units left into the first `values` of `carry`.
static inline void fold(
    Moments* carry, uint depth, uint number, OFFSET_T unit, OFFSET_T left, uint lane, uint values, uint columns)
{
    const OFFSET_T end = min((OFFSET_T)(left - (number - 1) * unit), unit) + (number - 1) * unit;
    for (; depth > 1; depth--) {
        number -= number & -number;
        const OFFSET_T middle = number * unit;
        for (uint v = 0; v < values; v++) {
            const uint first = lane + v / columns * 4;
            Moments* a = &carry[(depth - 2) * values + v];
            const OFFSET_T n = (number & -number) * unit / QUADS;
            join_moments(a, &carry[(depth - 1) * values + v], n, between(middle, end, first, 4));
        }
    }
}

static inline void store_record(__global void* out, ulong offset, OFFSET_T output, OFFSET_T len, const Moments* m)
{
    __global ulong* words = (__global ulong*)out + offset + (ulong)output * 6;
    words[0] = len;
    store_moments(words + 1, m);
}

#if WG > 1

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

#define UNPACK(q, x)                                                                                                   \
    x[0] = to_acc((q).s0);                                                                                             \
    x[1] = to_acc((q).s1);                                                                                             \
    x[2] = to_acc((q).s2);                                                                                             \
    x[3] = to_acc((q).s3);

// Calls USE(k, x) for the lanes k of the item's quad and each of their elements x of the chunk.
#define IN_ROW(q, USE)                                                                                                 \
    do {                                                                                                               \
        A x[4];                                                                                                        \
        UNPACK(q, x)                                                                                                   \
        UNROLL                                                                                                         \
        for (uint k = 0; k < 4; k++) {                                                                                 \
            USE(k, x[k])                                                                                               \
        }                                                                                                              \
    } while (0)
#define IN_WHOLE(USE)                                                                                                  \
    UNROLL                                                                                                             \
    for (uint r = 0; r < ROWS; r++) {                                                                                  \
        IN_ROW(row[r], USE);                                                                                           \
    }
#define IN_PART(USE)                                                                                                   \
    _Pragma("unroll 4")                                                                                                \
    for (uint r = 0; r < rows; r++) {                                                                                  \
        IN_ROW(load_quad(in + (long)(r * LANES + lane) * stride, stride), USE);                                        \
    }                                                                                                                  \
    UNROLL                                                                                                             \
    for (uint k = 0; k < 4; k++) {                                                                                     \
        if (lane + k < more) {                                                                                         \
            USE(k, to_acc(in[(long)(rows * LANES + lane + k) * stride]))                                               \
        }                                                                                                              \
    }

// What the quad from `lane` on has of the `count` > 0 elements of a chunk that starts at `in`.
static inline void take(__global const T* in, const long stride, const uint lane, const uint count, Moments* m)
{
    const uint rows = count / LANES, more = count % LANES;
#ifdef A_FLOAT
    A mean[4] = {0, 0, 0, 0}, rest[4] = {0, 0, 0, 0}, m2[4] = {0, 0, 0, 0}, part[4];
    Moments of[4];
#define MEAN(k, x) mean[k] += x;
#define SPREAD(k, x)                                                                                                   \
    const A d = x - mean[k];                                                                                           \
    rest[k] += d;                                                                                                      \
    m2[k] += d * d;
// The lanes' means; of one whose sum is beyond the range by another way.
#define DIVIDE(PART)                                                                                                   \
    do {                                                                                                               \
        int far = 0;                                                                                                   \
        UNROLL                                                                                                         \
        for (uint k = 0; k < 4; k++) {                                                                                 \
            part[k] = PART;                                                                                            \
            mean[k] *= part[k];                                                                                        \
            far |= !IS_FINITE(mean[k]);                                                                                \
        }                                                                                                              \
        if (far) {                                                                                                     \
            UNROLL                                                                                                     \
            for (uint k = 0; k < 4; k++) {                                                                             \
                if (!IS_FINITE(mean[k])) {                                                                             \
                    mean[k] = far_mean(in, stride, count, LANES, lane + k, part[k]);                                   \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)
    if (count == CHUNK) {
        TQ row[ROWS];
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            row[r] = load_quad(in + (long)(r * LANES + lane) * stride, stride);
        }
        IN_WHOLE(MEAN)
        DIVIDE((A)(1.0f / ROWS));
        IN_WHOLE(SPREAD)
    } else {
        const A less = rows > 0 ? ratio(1, rows) : 0, all = ratio(1, rows + 1);
        IN_PART(MEAN)
        DIVIDE(lane + k < more ? all : less);
        IN_PART(SPREAD)
    }
    UNROLL
    for (uint k = 0; k < 4; k++) {
        lane_moments(&of[k], mean[k], rest[k], m2[k], part[k]);
        replace_far_squares(&of[k], part[k], in, stride, count, LANES, lane + k);
    }
    join_lanes(&of[0], &of[1], count, ROWS, LANES, lane, 1);
    join_lanes(&of[2], &of[3], count, ROWS, LANES, lane + 2, 1);
    join_lanes(&of[0], &of[2], count, ROWS, LANES, lane, 2);
    *m = of[0];
#else
    Sums sums = {0};
#define ADD(k, x) sums_add(&sums, x);
#define ADD_TWO(k, x)                                                                                                  \
    if (k % 2 == 0) {                                                                                                  \
        sums_add_two(&sums, x, (&x)[1]);                                                                               \
    }
    if (count == CHUNK) {
        TQ row[ROWS];
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            row[r] = load_quad(in + (long)(r * LANES + lane) * stride, stride);
        }
        IN_WHOLE(ADD_TWO)
    } else {
        IN_PART(ADD)
    }
    sums_moments(m, &sums);
#endif
}

// Joins what the `share` items of an output have, which are `distance` apart: item `own` has quad own % QUADS of the
// elements span * (own / QUADS) .. of `left`. It joins those of each quad, valid where `own` is below QUADS; with `whole` the
// quads too, valid where it is 0. All WG items call it, in uniform flow, with the same numbers but `own`.
INLINED void join_share(
    Moments* m, const uint own, const uint share, const uint distance, const ulong span, const OFFSET_T left,
    const uint whole, __local MOMENT_T* tree)
{
    const uint item = get_local_id(0);
    put_moments(tree, WG, item, m);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = QUADS; d < share; d *= 2) {
        if ((own / QUADS * QUADS) % (2 * d) == 0) {
            const ulong middle = (own + d) / QUADS * span, most = middle + d / QUADS * span;
            if (middle < left) {
                const OFFSET_T to = min(most, (ulong)left);
                Moments other;
                get_moments(tree, WG, item + d * distance, &other);
                join_moments(m, &other, d / QUADS * span / QUADS, between(middle, to, own % QUADS * 4, 4));
                put_moments(tree, WG, item, m);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const uint quads = whole ? QUADS : 1;
    for (uint d = 1; d < quads; d *= 2) {
        if (own < QUADS && own % (2 * d) == 0) {
            Moments other;
            get_moments(tree, WG, item + d * distance, &other);
            join_moments(m, &other, between(0, left, own * 4, d * 4), between(0, left, (own + d) * 4, d * 4));
            put_moments(tree, WG, item, m);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#else

// Outputs that are walked at once.
#ifndef COLS
#define COLS 1
#endif
// Integers need no quads.
#ifdef A_FLOAT
#define VALUES (QUADS * COLS)
#else
#define VALUES COLS
#endif

// Calls USE(v, x) for the lane and column v and each of their elements x of the chunk, by rows, so that no loop has a lane
// twice or an end that is none of LANES: with 4 lanes PoCL 3.1 and Intel's runtime get those wrong. The step between rows
// is volatile, since Intel's adds up the rows of a lane in another order where it knows how many there are.
#define ROW(base, THERE, USE)                                                                                          \
    if (COLS == 1 && stride == 1) {                                                                                    \
        for (uint k = 0; k < LANES; k++) {                                                                             \
            if (THERE) {                                                                                               \
                USE(k, to_acc(in[at[0] + base + k]))                                                                   \
            }                                                                                                          \
        }                                                                                                              \
    } else {                                                                                                           \
        for (uint k = 0; k < LANES; k++) {                                                                             \
            __global const T* row = in + (long)(base + k) * stride;                                                    \
            if ((THERE) && neighbours) {                                                                               \
                for (uint c = 0; c < COLS; c++) {                                                                      \
                    USE(k * COLS + c, to_acc(row[at[0] + c]))                                                          \
                }                                                                                                      \
            } else if (THERE) {                                                                                        \
                for (uint c = 0; c < COLS; c++) {                                                                      \
                    USE(k * COLS + c, to_acc(row[at[c]]))                                                              \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
#define EACH(USE)                                                                                                      \
    for (uint first = 0; first < rows * LANES; first += step) {                                                        \
        ROW(first, 1, USE)                                                                                             \
    }                                                                                                                  \
    if (more > 0) {                                                                                                    \
        ROW(rows * LANES, k < more, USE)                                                                               \
    }

// What the `count` > 0 elements of a chunk that starts at `in` have, of COLS lines, which may be `neighbours`.
static inline void take(
    __global const T* in, const long stride, const long* at, const uint neighbours, const uint count, Moments* m)
{
    const uint rows = count / LANES, more = count % LANES;
    volatile uint step = LANES;
#ifdef A_FLOAT
    A mean[LANES * COLS], rest[LANES * COLS], m2[LANES * COLS];
    for (uint v = 0; v < LANES * COLS; v++) {
        mean[v] = rest[v] = m2[v] = 0;
    }
#define MEAN(v, x) mean[v] += x;
    EACH(MEAN)
    const A less = rows > 0 ? ratio(1, rows) : 0, all = ratio(1, rows + 1);
    int far = 0;
    for (uint v = 0; v < LANES * COLS; v++) {
        mean[v] *= v / COLS < more ? all : less;
        far |= !IS_FINITE(mean[v]);
    }
    if (far) {
        for (uint v = 0; v < LANES * COLS; v++) {
            if (!IS_FINITE(mean[v])) {
                mean[v] = far_mean(in + at[v % COLS], stride, count, LANES, v / COLS, v / COLS < more ? all : less);
            }
        }
    }
#define SPREAD(v, x)                                                                                                   \
    const A d = x - mean[v];                                                                                           \
    rest[v] += d;                                                                                                      \
    m2[v] += d * d;
    EACH(SPREAD)
    for (uint quad = 0; quad < QUADS; quad++) {
        for (uint c = 0; c < COLS; c++) {
            Moments of[4];
            for (uint k = 0; k < 4; k++) {
                const uint lane = quad * 4 + k, v = lane * COLS + c;
                const A part = lane < more ? all : less;
                lane_moments(&of[k], mean[v], rest[v], m2[v], part);
                replace_far_squares(&of[k], part, in + at[c], stride, count, LANES, lane);
            }
            join_lanes(&of[0], &of[1], count, ROWS, LANES, quad * 4, 1);
            join_lanes(&of[2], &of[3], count, ROWS, LANES, quad * 4 + 2, 1);
            join_lanes(&of[0], &of[2], count, ROWS, LANES, quad * 4, 2);
            m[quad * COLS + c] = of[0];
        }
    }
#else
    Sums sums[COLS];
    for (uint c = 0; c < COLS; c++) {
        const Sums none = {0};
        sums[c] = none;
    }
#define ADD(v, x) sums_add(&sums[(v) % COLS], x);
    EACH(ADD)
    for (uint c = 0; c < COLS; c++) {
        sums_moments(&m[c], &sums[c]);
    }
#endif
}

// Joins the quads of `elements` elements into the first one of each of `columns` lines.
static inline void join_quads(Moments* m, OFFSET_T elements, uint columns)
{
#ifdef A_FLOAT
    for (uint d = 1; d < QUADS; d *= 2) {
        for (uint quad = 0; quad < QUADS; quad += 2 * d) {
            const OFFSET_T n = between(0, elements, quad * 4, d * 4);
            const OFFSET_T more = between(0, elements, (quad + d) * 4, d * 4);
            for (uint c = 0; c < columns; c++) {
                join_moments(&m[quad * columns + c], &m[(quad + d) * columns + c], n, more);
            }
        }
    }
#endif
}

#endif

// Group g has part g % parts of the outputs columns * (g / parts) .. of `outputs`. With one part it writes records, else
// the moments of quads.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_moments(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, const uint columns, const uint across,
    __global void* restrict out, const ulong out_offset)
{
    const OFFSET_T part = (OFFSET_T)get_group_id(0) % parts;
    const OFFSET_T first = (OFFSET_T)get_group_id(0) / parts * columns;
    const OFFSET_T chunks = len / CHUNK + (len % CHUNK != 0);
#if WG > 1
    __local MOMENT_T tree[MOMENT_WORDS * WG];
    const uint item = get_local_id(0), share = WG / columns;
    const uint column = across ? item % columns : item / share, own = across ? item / columns : item % share;
    const uint lane = own % QUADS * 4;
    const OFFSET_T output = first + column;
    // Items without an output do what the last one's do, and write nothing.
    __global const T* in = LINE(min(output, (OFFSET_T)(outputs - 1)));
    // Chunks of an item.
    const OFFSET_T each = run / (share / QUADS), start = part * run + own / QUADS * each;
    const uint number = start < chunks ? min(each, (OFFSET_T)(chunks - start)) : 0;
    const OFFSET_T left = number > 0 ? len - start * CHUNK : 0;
    Moments carry[CHUNKS_DEPTH] = {NOTHING};
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
#else
    const OFFSET_T start = part * run, end = chunks - start > run ? start + run : chunks;
    const OFFSET_T left = len - start * CHUNK;
    for (OFFSET_T block = first; block < outputs && block - first < columns; block += COLS) {
        const uint there = min((OFFSET_T)COLS, (OFFSET_T)(outputs - block));
        long at[COLS];
        uint neighbours = 1;
        for (uint c = 0; c < COLS; c++) {
            at[c] = place(block + min(c, there - 1), shape, strides, dims);
            neighbours &= at[c] == at[0] + c;
        }
        Moments carry[CHUNKS_DEPTH * VALUES];
        uint depth = 0;
        for (OFFSET_T chunk = start; chunk < end; chunk++) {
            const OFFSET_T base = chunk * CHUNK;
            Moments m[VALUES];
            take(
                in_base + in_offset + (long)base * stride, stride, at, neighbours,
                min((OFFSET_T)CHUNK, (OFFSET_T)(len - base)), m);
            push(carry, &depth, chunk - start, m, CHUNK, left, 0, VALUES, COLS);
        }
        fold(carry, depth, end - start, CHUNK, left, 0, VALUES, COLS);
        if (parts == 1) {
            join_quads(carry, len, COLS);
        }
        for (uint c = 0; c < there; c++) {
            if (parts == 1) {
                store_record(out, out_offset, block + c, len, &carry[c]);
            } else {
                __global Moments* to = (__global Moments*)out + ((ulong)(block + c) * parts + part) * (VALUES / COLS);
                for (uint quad = 0; quad < VALUES / COLS; quad++) {
                    to[quad] = carry[quad * COLS + c];
                }
            }
        }
    }
#endif
}

// Group g has the outputs columns * g ..: joins the moments that axis_moments left, of `unit` elements in each part but the
// last. An item has `each` parts, a power of two.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_moments_parts(
    __global const void* restrict from_base, const OFFSET_T outputs, const OFFSET_T len, const OFFSET_T unit,
    const OFFSET_T parts, const OFFSET_T each, const uint columns, __global void* restrict out, const ulong out_offset)
{
    __global const Moments* from = (__global const Moments*)from_base;
#if WG > 1
    __local MOMENT_T tree[MOMENT_WORDS * WG];
    const uint item = get_local_id(0), share = WG / columns, own = item % share, lane = own % QUADS * 4;
    const OFFSET_T output = (OFFSET_T)get_group_id(0) * columns + item / share;
    const OFFSET_T start = own / QUADS * each;
    const uint number = output < outputs && start < parts ? min(each, (OFFSET_T)(parts - start)) : 0;
    const OFFSET_T left = number > 0 ? len - start * unit : 0;
    Moments carry[PARTS_DEPTH] = {NOTHING};
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
#else
    const OFFSET_T output = get_group_id(0);
    Moments carry[PARTS_DEPTH * (VALUES / COLS)];
    uint depth = 0;
    for (OFFSET_T part = 0; part < parts; part++) {
        Moments m[VALUES / COLS];
        for (uint quad = 0; quad < VALUES / COLS; quad++) {
            m[quad] = from[((ulong)output * parts + part) * (VALUES / COLS) + quad];
        }
        push(carry, &depth, part, m, unit, len, 0, VALUES / COLS, 1);
    }
    fold(carry, depth, parts, unit, len, 0, VALUES / COLS, 1);
    join_quads(carry, len, 1);
    store_record(out, out_offset, output, len, &carry[0]);
#endif
}
