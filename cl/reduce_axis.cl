// Reduction along one axis: out[o] combines the `len` elements of the axis at output o.
//
// The order depends on `len` alone. A chunk is 16 rows of 32 lanes along the axis: lane j takes the elements j, j + 32, ...
// of its chunk in order; the lanes combine as a tree of neighbours, and so do the chunks, 2i and 2i + 1, then
// their pairs, and so on.
//
// A work-group has COLS outputs, with FEW as many vectors of them, LT items that share the lanes of one, and SLOTS chunks
// at a time. With COLUMNS neighbouring items have neighbouring outputs, else neighbouring lanes, whichever lie closer
// together in memory. Where outputs are few, the axis is cut into parts of `run` chunks, a power of two, whose results
// axis_parts combines.
//
// Bytes: reads each element once, writes a result an output.
//
// With WIDE an item has the outputs of a vector, of which there are whole ones alone; with FEW likewise, where the axis has no
// more elements than lanes.
//
// With VECTORS neighbours are combined by 16, which the compilers of most CPU drivers do by themselves, if not the lanes of a short
// axis with one another.
#ifdef OPERATOR
#undef VECTORS
#endif
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/lines.cl"

#ifndef WG
#define WG 256
#endif
#ifndef COLS
#define COLS 32
#endif
#ifndef LT
#define LT (WG / COLS)
#endif
// Neighbouring outputs of an item.
#ifdef WIDE
#define OUTS VEC
#else
#define OUTS 1
#endif
// Fewer only where the axis has no more elements than that: the lanes left out are empty.
#ifndef LANES
#define LANES 32
#endif
// Outputs of an item whose axis is short.
#ifndef BATCH
#define BATCH 4
#endif
#define CHUNK_ROWS 16
#define CHUNK (LANES * CHUNK_ROWS)
#define ITEM_LANES (LANES / LT)
#define SLOTS (WG * OUTS / (LT * COLS))
// Items of an output.
#define SHARE (LT * SLOTS)
// Parts of the tree that await their right neighbours: one for each bit of the next chunk's number that is set.
#define DEPTH 34

#if WG > 1

static inline void push(A* carry, uint* carries, OFFSET_T number, A x)
{
    for (; number & 1; number >>= 1) {
        x = OP(carry[--*carries], x);
    }
    carry[(*carries)++] = x;
}

static inline A fold(const A* carry, uint carries)
{
    A x = carry[--carries];
    while (carries > 0) {
        x = OP(carry[--carries], x);
    }
    return x;
}

// Element i of the axis that starts at `in`.
#define ALONG(in, i) TAKEN((in)[(long)(i) * stride])

// Adds the elements of ITEM_LANES lanes, the first of which is `first`, of the chunk that starts at `base`.
static inline void take_chunk(
    __global const T* in, const long stride, const OFFSET_T base, const uint first, const OFFSET_T len, A* lane)
{
    if (len - base >= CHUNK) {
#if defined(UNIT) && ITEM_LANES % VEC == 0
        TV row[CHUNK_ROWS * (ITEM_LANES / VEC)];
        for (uint r = 0; r < CHUNK_ROWS; r++) {
            for (uint v = 0; v < ITEM_LANES / VEC; v++) {
                row[r * (ITEM_LANES / VEC) + v] = load_vec(in + base + r * LANES + first + v * VEC);
            }
        }
        for (uint r = 0; r < CHUNK_ROWS; r++) {
            for (uint v = 0; v < ITEM_LANES / VEC; v++) {
                A x[VEC];
                unpack(row[r * (ITEM_LANES / VEC) + v], x);
                for (uint k = 0; k < VEC; k++) {
                    lane[v * VEC + k] = OP(lane[v * VEC + k], x[k]);
                }
            }
        }
#else
        for (uint r = 0; r < CHUNK_ROWS; r++) {
            for (uint k = 0; k < ITEM_LANES; k++) {
                lane[k] = OP(lane[k], ALONG(in, base + r * LANES + first + k));
            }
        }
#endif
    } else {
        for (OFFSET_T row = base; row < len; row += LANES) {
            // What is not there is read elsewhere and left out, so that the loads do not wait for one another.
            A x[ITEM_LANES];
#if defined(UNIT) && ITEM_LANES == VEC
            if (len - row >= first + VEC) {
                unpack(load_vec(in + row + first), x);
            } else {
                for (uint k = 0; k < ITEM_LANES; k++) {
                    x[k] = ALONG(in, min((OFFSET_T)(row + first + k), (OFFSET_T)(len - 1)));
                }
            }
#else
            for (uint k = 0; k < ITEM_LANES; k++) {
                x[k] = ALONG(in, min((OFFSET_T)(row + first + k), (OFFSET_T)(len - 1)));
            }
#endif
            for (uint k = 0; k < ITEM_LANES; k++) {
                lane[k] = len - row > first + k ? OP(lane[k], x[k]) : lane[k];
            }
        }
    }
}

#ifndef WIDE
// Group g has part g % parts of the outputs COLS * (g / parts) .. of `outputs`. With `last` there is one part, and results
// are stored as OUT.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_chunks(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, __global void* restrict out_base,
    const ulong out_offset, const uint last)
{
#if SHARE > 1
    __local A tree[WG];
#endif
    const uint item = get_local_id(0);
#ifdef COLUMNS
#define TREE(share, column) tree[(share) * COLS + (column)]
    const uint column = item % COLS, share = item / COLS;
#else
#define TREE(share, column) tree[(column) * SHARE + (share)]
    const uint column = item / SHARE, share = item % SHARE;
#endif
    const OFFSET_T part = (OFFSET_T)get_group_id(0) % parts;
    const OFFSET_T output = (OFFSET_T)get_group_id(0) / parts * COLS + column;
    // Items without an output do what the last one's do, and write nothing.
    __global const T* in = LINE(min(output, (OFFSET_T)(outputs - 1)));
    const OFFSET_T chunks = len / CHUNK + (len % CHUNK != 0);
    const OFFSET_T start = part * run, end = chunks - start > run ? start + run : chunks;
    A carry[DEPTH];
    uint carries = 0;
    for (OFFSET_T round = start; round < end; round += SLOTS) {
        A lane[ITEM_LANES];
        for (uint k = 0; k < ITEM_LANES; k++) {
            lane[k] = OP_IDENTITY;
        }
        const OFFSET_T chunk = round + share / LT;
        if (chunk < end) {
            take_chunk(in, stride, chunk * CHUNK, share % LT * ITEM_LANES, len, lane);
        }
        for (uint width = ITEM_LANES; width > 1; width /= 2) {
            for (uint k = 0; k < width / 2; k++) {
                lane[k] = OP(lane[2 * k], lane[2 * k + 1]);
            }
        }
#if SHARE > 1
        TREE(share, column) = lane[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = 1; d < SHARE; d <<= 1) {
            if (share % (2 * d) == 0) {
                TREE(share, column) = OP(TREE(share, column), TREE(share + d, column));
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (share == 0) {
            push(carry, &carries, (round - start) / SLOTS, TREE(0, column));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#else
        push(carry, &carries, (round - start) / SLOTS, lane[0]);
#endif
    }
    if (share == 0 && output < outputs) {
        const A x = fold(carry, carries);
        if (last) {
            store_acc((__global OUT*)out_base + out_offset + output, x);
        } else {
            ((__global A*)out_base)[out_offset + (ulong)output * parts + part] = x;
        }
    }
}
#else
// The same for VEC neighbouring outputs of an item, whose elements are vectors.
#define WIDTH (COLS / VEC)
// Vectors whose loads are in flight at once.
#define HELD 8
#define ROWS_HELD (ITEM_LANES < HELD ? HELD / ITEM_LANES : 1)
#define UNROLL _Pragma("unroll")

// Adds the vectors of ITEM_LANES lanes, the first of which is `first`, of the chunk that starts at `base`.
static inline void take_vectors(
    __global const T* in, const long stride, const OFFSET_T base, const uint first, const OFFSET_T len, A* lane)
{
    const OFFSET_T rows = len - base >= CHUNK ? CHUNK_ROWS : (OFFSET_T)((len - base - 1) / LANES + 1);
    __global const T* from = in + (long)(base + first) * stride;
    OFFSET_T r = 0;
    for (; r + ROWS_HELD <= rows && len - base >= (r + ROWS_HELD) * LANES; r += ROWS_HELD) {
        TV held[ROWS_HELD * ITEM_LANES];
        UNROLL
        for (uint q = 0; q < ROWS_HELD * ITEM_LANES; q++) {
            held[q] = load_vec(from + (long)((r + q / ITEM_LANES) * LANES + q % ITEM_LANES) * stride);
        }
        UNROLL
        for (uint q = 0; q < ROWS_HELD * ITEM_LANES; q++) {
            A x[VEC];
            unpack(held[q], x);
            UNROLL
            for (uint c = 0; c < VEC; c++) {
                lane[q % ITEM_LANES * VEC + c] = OP(lane[q % ITEM_LANES * VEC + c], x[c]);
            }
        }
    }
    for (; r < rows; r++) {
        // What is not there is read elsewhere and left out, so that the loads do not wait for one another.
        TV held[ITEM_LANES];
        UNROLL
        for (uint k = 0; k < ITEM_LANES; k++) {
            held[k] = load_vec(in + (long)min((OFFSET_T)(base + r * LANES + first + k), (OFFSET_T)(len - 1)) * stride);
        }
        UNROLL
        for (uint k = 0; k < ITEM_LANES; k++) {
            A x[VEC];
            unpack(held[k], x);
            UNROLL
            for (uint c = 0; c < VEC; c++) {
                const A more = OP(lane[k * VEC + c], x[c]);
                lane[k * VEC + c] = len - base - r * LANES > first + k ? more : lane[k * VEC + c];
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_columns(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, __global void* restrict out_base,
    const ulong out_offset, const uint last)
{
#if SHARE > 1
    __local A tree[WG * VEC];
#endif
    const uint item = get_local_id(0), share = item / WIDTH;
    const OFFSET_T part = (OFFSET_T)get_group_id(0) % parts;
    const OFFSET_T output = (OFFSET_T)get_group_id(0) / parts * COLS + item % WIDTH * VEC;
    // Items without outputs do what the last ones' do, and write nothing.
    __global const T* in = LINE(min(output, (OFFSET_T)(outputs - VEC)));
    const OFFSET_T chunks = len / CHUNK + (len % CHUNK != 0);
    const OFFSET_T start = part * run, end = chunks - start > run ? start + run : chunks;
    A carry[VEC][DEPTH];
    uint carries = 0;
    for (OFFSET_T round = start; round < end; round += SLOTS) {
        A lane[ITEM_LANES * VEC];
        UNROLL
        for (uint k = 0; k < ITEM_LANES * VEC; k++) {
            lane[k] = OP_IDENTITY;
        }
        const OFFSET_T chunk = round + share / LT;
        if (chunk < end) {
            take_vectors(in, stride, chunk * CHUNK, share % LT * ITEM_LANES, len, lane);
        }
        UNROLL
        for (uint width = ITEM_LANES; width > 1; width /= 2) {
            UNROLL
            for (uint k = 0; k < width / 2; k++) {
                UNROLL
                for (uint c = 0; c < VEC; c++) {
                    lane[k * VEC + c] = OP(lane[2 * k * VEC + c], lane[(2 * k + 1) * VEC + c]);
                }
            }
        }
#if SHARE > 1
        // Of one component after the other, so that neighbours use different banks.
        UNROLL
        for (uint c = 0; c < VEC; c++) {
            tree[c * WG + item] = lane[c];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = 1; d < SHARE; d <<= 1) {
            if (share % (2 * d) == 0) {
                UNROLL
                for (uint c = 0; c < VEC; c++) {
                    lane[c] = OP(lane[c], tree[c * WG + item + d * WIDTH]);
                    tree[c * WG + item] = lane[c];
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
#endif
        if (share == 0) {
            uint pushed = carries;
            UNROLL
            for (uint c = 0; c < VEC; c++) {
                pushed = carries;
                push(carry[c], &pushed, (round - start) / SLOTS, lane[c]);
            }
            carries = pushed;
        }
    }
    if (share == 0 && output < outputs) {
        for (uint c = 0; c < VEC; c++) {
            const A x = fold(carry[c], carries);
            if (last) {
                store_acc((__global OUT*)out_base + out_offset + output + c, x);
            } else {
                ((__global A*)out_base)[out_offset + (ulong)(output + c) * parts + part] = x;
            }
        }
    }
}
#endif

#ifdef FEW
#include "lib/outputs.cl"
// The same for axes of at most LANES rows of whole vectors: an item has the outputs of one, and nobody else has any part of them.
#define OWN (VEC * A_BYTES > 16 ? 4 : 8)
#define HELD (LANES < OWN ? LANES : OWN)
#define UNROLL _Pragma("unroll")
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_rows(
    LINES, const OFFSET_T len, __global OUT* restrict out_base, const ulong out_offset)
{
    const OFFSET_T output = get_global_id(0) * VEC;
    if (output >= outputs) {
        return;
    }
    __global const T* in = LINE(output);
    A total[VEC * (LANES / HELD)];
    UNROLL
    for (uint part = 0; part < LANES / HELD; part++) {
        TV held[HELD];
        UNROLL
        for (uint k = 0; k < HELD; k++) {
            held[k] = load_vec(in + (long)min((OFFSET_T)(part * HELD + k), (OFFSET_T)(len - 1)) * stride);
        }
        A lane[HELD * VEC];
        UNROLL
        for (uint k = 0; k < HELD; k++) {
            A x[VEC];
            unpack(held[k], x);
            UNROLL
            for (uint c = 0; c < VEC; c++) {
                lane[k * VEC + c] = part * HELD + k < len ? OP(OP_IDENTITY, x[c]) : OP_IDENTITY;
            }
        }
        UNROLL
        for (uint width = HELD; width > 1; width /= 2) {
            UNROLL
            for (uint k = 0; k < width / 2; k++) {
                UNROLL
                for (uint c = 0; c < VEC; c++) {
                    lane[k * VEC + c] = OP(lane[2 * k * VEC + c], lane[(2 * k + 1) * VEC + c]);
                }
            }
        }
        UNROLL
        for (uint c = 0; c < VEC; c++) {
            total[part * VEC + c] = lane[c];
        }
    }
    UNROLL
    for (uint width = LANES / HELD; width > 1; width /= 2) {
        UNROLL
        for (uint k = 0; k < width / 2; k++) {
            UNROLL
            for (uint c = 0; c < VEC; c++) {
                total[k * VEC + c] = OP(total[2 * k * VEC + c], total[(2 * k + 1) * VEC + c]);
            }
        }
    }
    OUT run[VEC];
    UNROLL
    for (uint c = 0; c < VEC; c++) {
        run[c] = narrow_acc(total[c]);
    }
    store_run(out_base + out_offset + output, run);
}
#endif

#ifdef SHORT
// The same for axes of at most LANES neighbours: BATCH outputs a turn of items, each with a vector of each, all in flight.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_short(
    LINES, const OFFSET_T len, __global OUT* restrict out_base, const ulong out_offset)
{
    __local A tree[BATCH * WG];
    const uint item = get_local_id(0), share = item % LT, begin = share * VEC;
    const OFFSET_T first = (OFFSET_T)get_group_id(0) * (COLS * BATCH) + item / LT;
    A x[BATCH];
    if (begin + VEC <= len) {
        TV row[BATCH];
        for (uint b = 0; b < BATCH; b++) {
            row[b] = load_vec(LINE(min(first + b * COLS, (OFFSET_T)(outputs - 1))) + begin);
        }
        for (uint b = 0; b < BATCH; b++) {
            A lane[VEC];
            unpack(row[b], lane);
            for (uint k = 0; k < VEC; k++) {
                lane[k] = OP(OP_IDENTITY, lane[k]);
            }
            for (uint width = VEC; width > 1; width /= 2) {
                for (uint k = 0; k < width / 2; k++) {
                    lane[k] = OP(lane[2 * k], lane[2 * k + 1]);
                }
            }
            x[b] = lane[0];
        }
    } else {
        for (uint b = 0; b < BATCH; b++) {
            __global const T* in = LINE(min(first + b * COLS, (OFFSET_T)(outputs - 1)));
            A lane[VEC];
            for (uint k = 0; k < VEC; k++) {
                lane[k] = OP_IDENTITY;
                if (begin + k < len) {
                    lane[k] = OP(lane[k], TAKEN(in[begin + k]));
                }
            }
            for (uint width = VEC; width > 1; width /= 2) {
                for (uint k = 0; k < width / 2; k++) {
                    lane[k] = OP(lane[2 * k], lane[2 * k + 1]);
                }
            }
            x[b] = lane[0];
        }
    }
    for (uint d = 1; d < LT; d <<= 1) {
        // The right one of two neighbours hands over to the left one.
        const uint place = share & (2 * d - 1);
        if (place == d) {
            for (uint b = 0; b < BATCH; b++) {
                tree[b * WG + item] = x[b];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (place == 0) {
            for (uint b = 0; b < BATCH; b++) {
                x[b] = OP(x[b], tree[b * WG + item + d]);
            }
        }
    }
    if (share == 0) {
        for (uint b = 0; b < BATCH; b++) {
            if (first + b * COLS < outputs) {
                store_acc(out_base + out_offset + first + b * COLS, x[b]);
            }
        }
    }
}
#endif

#else

// The same for COLS outputs at once, by one item.
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

// Into the first COLS of `carry`.
static inline void fold(A* carry, uint carries)
{
    for (carries--; carries > 0; carries--) {
        for (uint c = 0; c < COLS; c++) {
            carry[(carries - 1) * COLS + c] = OP(carry[(carries - 1) * COLS + c], carry[carries * COLS + c]);
        }
    }
}

// Combines `count` neighbours with as many elements.
static inline void take_neighbours(A* to, __global const T* from, const uint count)
{
    uint c = 0;
#ifdef VECTORS
    for (; c + 16 <= count; c += 16) {
        vstore16(OP16(vload16(0, to + c), TAKEN16(from + c)), 0, to + c);
    }
#endif
    for (; c < count; c++) {
        to[c] = OP(to[c], TAKEN(from[c]));
    }
}

// The same with four rows, `step` apart, so that what they are combined with is read and written once.
static inline void take_four(A* to, __global const T* from, const long step, const uint count)
{
    uint c = 0;
#ifdef VECTORS
    for (; c + 16 <= count; c += 16) {
        A16 x = OP16(vload16(0, to + c), TAKEN16(from + c));
        x = OP16(x, TAKEN16(from + step + c));
        x = OP16(x, TAKEN16(from + 2 * step + c));
        vstore16(OP16(x, TAKEN16(from + 3 * step + c)), 0, to + c);
    }
#endif
    for (; c < count; c++) {
        A x = OP(to[c], TAKEN(from[c]));
        x = OP(x, TAKEN(from[step + c]));
        x = OP(x, TAKEN(from[2 * step + c]));
        to[c] = OP(x, TAKEN(from[3 * step + c]));
    }
}

// What the tree gives for the first four of `rows` lanes with an element each, or as many as there are.
static inline void take_short(A* to, __global const T* from, const long step, const uint rows, const uint count)
{
#define FIRST(r) OP(OP_IDENTITY, TAKEN(from[(r) * step + c]))
#define FIRST16(r) OP16((A16)OP_IDENTITY, TAKEN16(from + (r) * step + c))
    uint c = 0;
    if (rows >= 4) {
#ifdef VECTORS
        for (; c + 16 <= count; c += 16) {
            vstore16(OP16(OP16(FIRST16(0), FIRST16(1)), OP16(FIRST16(2), FIRST16(3))), 0, to + c);
        }
#endif
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
#undef FIRST16
}

#if COLS == 1 && defined(VECTORS)
// The tree of neighbours over the lanes of a vector, in each of them.
static inline A16 tree16(A16 x)
{
    x = OP16(x.s0022446688aaccee, x.s1133557799bbddff);
    x = OP16(x.s000044448888cccc, x.s22226666aaaaeeee);
    x = OP16(x.s0000000088888888, x.s44444444cccccccc);
    return OP16((A16)x.s0, (A16)x.s8);
}

// 16 lanes, if there are as many elements.
static inline A16 take_lanes(__global const T* from, const uint count)
{
    A lane[16];
    vstore16((A16)OP_IDENTITY, 0, lane);
    take_neighbours(lane, from, min(count, 16u));
    return vload16(0, lane);
}

// What a line of at most LANES neighbours comes to: lanes without elements change nothing.
static inline A take_line(__global const T* from, const uint count)
{
    A16 x = tree16(take_lanes(from, count));
    if (count > 16) {
        x = OP16(x, tree16(take_lanes(from + 16, count - 16)));
    }
    return x.s0;
}
#endif

// What axis_chunks has for block `block`: a part of COLS outputs.
static inline void take_block(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, __global void* restrict out_base,
    const ulong out_offset, const uint last, const OFFSET_T block)
{
    const OFFSET_T part = block % parts, first = block / parts * COLS;
    const uint there = (uint)min((OFFSET_T)COLS, (OFFSET_T)(outputs - first));
    const OFFSET_T chunks = len / CHUNK + (len % CHUNK != 0);
    const OFFSET_T start = part * run, end = chunks - start > run ? start + run : chunks;
    long at[COLS];
    uint neighbours = 1;
    for (uint c = 0; c < COLS; c++) {
        at[c] = place(first + min(c, there - 1), shape, strides, dims);
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
            // Of narrow rows, which may adjoin, one after the other is the faster: it is fetched ahead.
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

// Groups share the blocks of all outputs and parts, each some that lie side by side.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_chunks(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, __global void* restrict out_base,
    const ulong out_offset, const uint last)
{
    const OFFSET_T blocks = ((outputs - 1) / COLS + 1) * parts, own = (blocks - 1) / (OFFSET_T)get_num_groups(0) + 1;
    const OFFSET_T begin = (OFFSET_T)get_group_id(0) * own;
#if COLS == 1 && defined(VECTORS)
    if (len <= LANES && stride == 1) {
        for (OFFSET_T o = begin; o < blocks && o - begin < own; o++) {
            store_acc((__global OUT*)out_base + out_offset + o, take_line(LINE(o), len));
        }
        return;
    }
#endif
    for (OFFSET_T block = begin; block < blocks && block - begin < own; block++) {
        take_block(
            in_base, in_offset, stride, outputs, shape, strides, dims, len, run, parts, out_base, out_offset, last,
            block);
    }
}

#endif

// Combines the `parts` results of each output, which has `share` items of a group: each takes `run` neighbours. Both are powers of
// two.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_parts(
    __global const A* restrict in, const OFFSET_T outputs, const OFFSET_T parts, const uint share, const OFFSET_T run,
    __global OUT* restrict out_base, const ulong out_offset)
{
    const uint item = get_local_id(0), own = item % share;
    const OFFSET_T output = (OFFSET_T)get_group_id(0) * (WG / share) + item / share, first = own * run;
    A x = OP_IDENTITY;
    if (output < outputs && first < parts) {
        __global const A* from = in + (ulong)output * parts + first;
        const OFFSET_T count = min(run, (OFFSET_T)(parts - first));
        A carry[DEPTH];
        uint carries = 0;
        for (OFFSET_T part = 0; part < count; part++) {
            x = from[part];
            for (OFFSET_T number = part; number & 1; number >>= 1) {
                x = OP(carry[--carries], x);
            }
            carry[carries++] = x;
        }
        x = carry[--carries];
        while (carries > 0) {
            x = OP(carry[--carries], x);
        }
    }
#if WG > 1
    __local A tree[WG];
    tree[item] = x;
    for (uint d = 1; d < share; d <<= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if ((own & (2 * d - 1)) == 0) {
            x = OP(x, tree[item + d]);
            tree[item] = x;
        }
    }
#endif
    if (own == 0 && output < outputs) {
        store_acc(out_base + out_offset + output, x);
    }
}
