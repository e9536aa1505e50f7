// Moments along an axis on CPU drivers (reduce_axis_moments.cl): one work-item has COLS lines.

// Outputs that are processed at once.
#ifndef COLS
#define COLS 1
#endif
// Integers need no quads.
#ifdef A_FLOAT
#define VALUES (QUADS * COLS)
#else
#define VALUES COLS
#endif

// Calls USE(v, x) for each element x of the chunk, where v is lane * COLS + column. It goes row by row. Every loop ends
// at LANES and visits a lane only once, since PoCL 3.1 and Intel's runtime miscompile other loops with 4 lanes. The
// step between rows is volatile, since Intel's runtime reorders the additions of a lane if it knows the number of rows.
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

// Makes the moments of COLS lines, of the `count` > 0 elements of a chunk that starts at `in`. `neighbours`: in each
// row, the elements of the lines are contiguous.
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
            join_quad(of, count, quad * 4);
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

// Joins the quads of each line into its first quad, for `columns` lines of `elements` elements each.
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

// Work-group g has part g % parts of the `columns` outputs from columns * (g / parts) on. With one part it writes
// records, else the moments of quads.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_moments(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, const uint columns, const uint across,
    __global void* restrict out, const ulong out_offset)
{
    const OFFSET_T part = (OFFSET_T)get_group_id(0) % parts;
    const OFFSET_T first = (OFFSET_T)get_group_id(0) / parts * columns;
    const OFFSET_T chunks = len / CHUNK + (len % CHUNK != 0);
    const OFFSET_T start = part * run, end = chunks - start > run ? start + run : chunks;
    const OFFSET_T left = len - start * CHUNK;
    for (OFFSET_T output = first; output < outputs && output - first < columns; output += COLS) {
        const uint there = min((OFFSET_T)COLS, (OFFSET_T)(outputs - output));
        long at[COLS];
        uint neighbours = 1;
        for (uint c = 0; c < COLS; c++) {
            at[c] = line_offset(output + min(c, there - 1), shape, strides, dims);
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
                store_record(out, out_offset, output + c, len, &carry[c]);
            } else {
                __global Moments* to = (__global Moments*)out + ((ulong)(output + c) * parts + part) * (VALUES / COLS);
                for (uint quad = 0; quad < VALUES / COLS; quad++) {
                    to[quad] = carry[quad * COLS + c];
                }
            }
        }
    }
}

// Work-group g has output g. It joins the moments of all its parts from axis_moments; each part but the last has `unit`
// elements.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_moments_parts(
    __global const void* restrict from_base, const OFFSET_T outputs, const OFFSET_T len, const OFFSET_T unit,
    const OFFSET_T parts, const OFFSET_T each, const uint columns, __global void* restrict out, const ulong out_offset)
{
    __global const Moments* from = (__global const Moments*)from_base;
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
}
