// axis_chunks on CPU drivers: one work-item has COLS outputs at once (reduce_axis.cl).

// Adds the aggregates x[0 .. COLS] of chunk `number`: joins them with each earlier aggregate that now has its right
// neighbour.
static inline void push(A* carry, uint* carries, OFFSET_T number, A* x)
{
    for (; number & 1; number >>= 1) {
        --*carries;
        for (uint c = 0; c < COLS; c++) {
            x[c] = OP(carry[*carries * COLS + c], x[c]);
        }
    }
    for (uint c = 0; c < COLS; c++) {
        carry[*carries * COLS + c] = x[c];
    }
    ++*carries;
}

// Joins the aggregates that are left into the first COLS of `carry`.
static inline void fold(A* carry, uint carries)
{
    for (carries--; carries > 0; carries--) {
        for (uint c = 0; c < COLS; c++) {
            carry[(carries - 1) * COLS + c] = OP(carry[(carries - 1) * COLS + c], carry[carries * COLS + c]);
        }
    }
}

// VECTORS: 16 neighbours at a time. The first three functions return how many they have combined.
#ifdef VECTORS
static inline uint take_neighbours_16(A* to, __global const T* from, const uint count)
{
    uint c = 0;
    for (; c + 16 <= count; c += 16) {
        vstore16(OP16(vload16(0, to + c), TAKEN16(from + c)), 0, to + c);
    }
    return c;
}
static inline uint take_four_16(A* to, __global const T* from, const long step, const uint count)
{
    uint c = 0;
    for (; c + 16 <= count; c += 16) {
        A16 x = OP16(vload16(0, to + c), TAKEN16(from + c));
        x = OP16(x, TAKEN16(from + step + c));
        x = OP16(x, TAKEN16(from + 2 * step + c));
        vstore16(OP16(x, TAKEN16(from + 3 * step + c)), 0, to + c);
    }
    return c;
}
#define FIRST16(r) OP16((A16)OP_IDENTITY, TAKEN16(from + (r) * step + c))
static inline uint take_short_16(A* to, __global const T* from, const long step, const uint count)
{
    uint c = 0;
    for (; c + 16 <= count; c += 16) {
        vstore16(OP16(OP16(FIRST16(0), FIRST16(1)), OP16(FIRST16(2), FIRST16(3))), 0, to + c);
    }
    return c;
}
#undef FIRST16
#define SHORT_LINES (COLS == 1)
// The tree of neighbours over the lanes of a vector. Every lane gets the result.
static inline A16 tree16(A16 x)
{
    x = OP16(x.s0022446688aaccee, x.s1133557799bbddff);
    x = OP16(x.s000044448888cccc, x.s22226666aaaaeeee);
    x = OP16(x.s0000000088888888, x.s44444444cccccccc);
    return OP16((A16)x.s0, (A16)x.s8);
}

// Returns 16 lanes: lane c has element c if c < count, else the identity.
static inline A16 take_lanes(__global const T* from, const uint count)
{
    A lane[16];
    vstore16((A16)OP_IDENTITY, 0, lane);
    uint c = take_neighbours_16(lane, from, min(count, 16u));
    for (; c < min(count, 16u); c++) {
        lane[c] = OP(lane[c], TAKEN(from[c]));
    }
    return vload16(0, lane);
}
// Returns the result of a line of at most LANES contiguous elements: lanes without elements change nothing.
static inline A take_line(__global const T* from, const uint count)
{
    A16 x = tree16(take_lanes(from, count));
    if (count > 16) {
        x = OP16(x, tree16(take_lanes(from + 16, count - 16)));
    }
    return x.s0;
}
#else
#define SHORT_LINES 0
static inline uint take_neighbours_16(A* to, __global const T* from, const uint count) { return 0; }
static inline uint take_four_16(A* to, __global const T* from, const long step, const uint count) { return 0; }
static inline uint take_short_16(A* to, __global const T* from, const long step, const uint count) { return 0; }
static inline A take_line(__global const T* from, const uint count) { return OP_IDENTITY; }
#endif

// Combines to[0 .. count] with as many contiguous elements.
static inline void take_neighbours(A* to, __global const T* from, const uint count)
{
    uint c = take_neighbours_16(to, from, count);
    for (; c < count; c++) {
        to[c] = OP(to[c], TAKEN(from[c]));
    }
}

// Combines to[0 .. count] with four rows, `step` apart, so that `to` is read and written once.
static inline void take_four(A* to, __global const T* from, const long step, const uint count)
{
    uint c = take_four_16(to, from, step, count);
    for (; c < count; c++) {
        A x = OP(to[c], TAKEN(from[c]));
        x = OP(x, TAKEN(from[step + c]));
        x = OP(x, TAKEN(from[2 * step + c]));
        to[c] = OP(x, TAKEN(from[3 * step + c]));
    }
}

// Sets to[0 .. count] to the tree of the first min(rows, 4) rows. In each column, a row is a lane with one element.
static inline void take_short(A* to, __global const T* from, const long step, const uint rows, const uint count)
{
#define FIRST(r) OP(OP_IDENTITY, TAKEN(from[(r) * step + c]))
    uint c = 0;
    if (rows >= 4) {
        c = take_short_16(to, from, step, count);
        for (; c < count; c++) {
            to[c] = OP(OP(FIRST(0), FIRST(1)), OP(FIRST(2), FIRST(3)));
        }
    } else {
        for (; c < count; c++) {
            const A left = rows > 1 ? OP(FIRST(0), FIRST(1)) : FIRST(0);
            to[c] = rows > 2 ? OP(left, FIRST(2)) : left;
        }
    }
#undef FIRST
}

// Processes tile `tile`: one part of COLS outputs.
static inline void take_part(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, __global void* restrict out_base,
    const ulong out_offset, const uint last, const OFFSET_T tile)
{
    const OFFSET_T part = tile % parts, first = tile / parts * COLS;
    const uint there = (uint)min((OFFSET_T)COLS, (OFFSET_T)(outputs - first));
    const OFFSET_T chunks = len / CHUNK + (len % CHUNK != 0);
    const OFFSET_T start = part * run, end = chunks - start > run ? start + run : chunks;
    long at[COLS];
    uint neighbours = 1;
    for (uint c = 0; c < COLS; c++) {
        at[c] = line_offset(first + min(c, there - 1), shape, strides, dims);
        neighbours &= c >= there || at[c] == at[0] + c;
    }
    A carry[DEPTH * COLS];
    uint carries = 0;
    if (COLS > 1 && neighbours && len <= LANES) {
        for (uint i = 0; i < len; i += 4) {
            A four[COLS];
            for (uint c = there; c < COLS; c++) {
                four[c] = OP_IDENTITY;
            }
            take_short(four, in_base + in_offset + (long)i * stride + at[0], stride, (uint)len - i, there);
            push(carry, &carries, i / 4, four);
        }
    }
    for (OFFSET_T chunk = carries > 0 ? end : start; chunk < end; chunk++) {
        A lane[LANES * COLS];
        for (uint k = 0; k < LANES * COLS; k++) {
            lane[k] = OP_IDENTITY;
        }
        const OFFSET_T base = chunk * CHUNK;
        const uint count = (uint)min((OFFSET_T)CHUNK, (OFFSET_T)(len - base));
        __global const T* in = in_base + in_offset + (long)base * stride;
        if (COLS == 1 && stride == 1) {
            uint i = 0;
            for (; i + LANES <= count; i += LANES) {
                take_neighbours(lane, in + at[0] + i, LANES);
            }
            take_neighbours(lane, in + at[0] + i, count - i);
        } else {
            uint i = 0;
            // Only for wide rows. Narrow rows may be contiguous, and are then faster one after another, since the
            // hardware prefetches them.
            if (COLS > 64 && neighbours && there == COLS) {
                for (; i + 4 * LANES <= count; i += 4 * LANES) {
                    for (uint k = 0; k < LANES; k++) {
                        take_four(lane + k * COLS, in + (long)(i + k) * stride + at[0], LANES * stride, COLS);
                    }
                }
            }
            for (; i < count; i++) {
                A* to = lane + i % LANES * COLS;
                __global const T* row = in + (long)i * stride;
                if (neighbours && there == COLS) {
                    take_neighbours(to, row + at[0], COLS);
                } else if (neighbours) {
                    take_neighbours(to, row + at[0], there);
                } else {
                    for (uint c = 0; c < COLS; c++) {
                        to[c] = OP(to[c], TAKEN(row[at[c]]));
                    }
                }
            }
        }
        for (uint width = LANES; width > 1; width /= 2) {
            for (uint k = 0; k < width / 2; k++) {
                for (uint c = 0; c < COLS; c++) {
                    lane[k * COLS + c] = OP(lane[2 * k * COLS + c], lane[(2 * k + 1) * COLS + c]);
                }
            }
        }
        push(carry, &carries, chunk - start, lane);
    }
    fold(carry, carries);
    for (uint c = 0; c < there; c++) {
        if (last) {
            store_acc((__global OUT*)out_base + out_offset + first + c, carry[c]);
        } else {
            ((__global A*)out_base)[out_offset + (ulong)(first + c) * parts + part] = carry[c];
        }
    }
}

// The tiles of all outputs and parts are divided among the work-groups. Each work-group has contiguous tiles.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_chunks(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, __global void* restrict out_base,
    const ulong out_offset, const uint last)
{
    const OFFSET_T tiles = ((outputs - 1) / COLS + 1) * parts, own = (tiles - 1) / (OFFSET_T)get_num_groups(0) + 1;
    const OFFSET_T begin = (OFFSET_T)get_group_id(0) * own;
    if (SHORT_LINES && len <= LANES && stride == 1) {
        for (OFFSET_T o = begin; o < tiles && o - begin < own; o++) {
            store_acc((__global OUT*)out_base + out_offset + o, take_line(LINE(o), len));
        }
        return;
    }
    for (OFFSET_T tile = begin; tile < tiles && tile - begin < own; tile++) {
        take_part(
            in_base, in_offset, stride, outputs, shape, strides, dims, len, run, parts, out_base, out_offset, last,
            tile);
    }
}
