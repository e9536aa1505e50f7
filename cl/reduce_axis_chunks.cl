// axis_chunks: several work-items share a line (reduce_axis.cl).

#ifndef UNIT
#define UNIT 0
#endif
#ifndef COLUMNS
#define COLUMNS 0
#endif
// Rows are loaded as vectors.
#define VECTOR_ROWS (UNIT ? ITEM_LANES % VEC == 0 : 0)
#define ONE_VECTOR (UNIT ? ITEM_LANES == VEC : 0)
#define ROW_VECS (ITEM_LANES < VEC ? 1 : ITEM_LANES / VEC)

// Element i of the line that starts at `in`.
#define ALONG(in, i) TAKEN((in)[(long)(i) * stride])

// Combines ITEM_LANES lanes, from lane `first` on, with the elements of the chunk that starts at `base`.
static inline void take_chunk(
    __global const T* in, const long stride, const OFFSET_T base, const uint first, const OFFSET_T len, A* lane)
{
    if (len - base >= CHUNK) {
        if (VECTOR_ROWS) {
            TV row[CHUNK_ROWS * ROW_VECS];
            for (uint r = 0; r < CHUNK_ROWS; r++) {
                for (uint v = 0; v < ROW_VECS; v++) {
                    row[r * ROW_VECS + v] = load_vec(in + base + r * LANES + first + v * VEC);
                }
            }
            for (uint r = 0; r < CHUNK_ROWS; r++) {
                for (uint v = 0; v < ROW_VECS; v++) {
                    A x[VEC];
                    unpack(row[r * ROW_VECS + v], x);
                    for (uint k = 0; k < VEC; k++) {
                        lane[v * VEC + k] = OP(lane[v * VEC + k], x[k]);
                    }
                }
            }
        } else {
            for (uint r = 0; r < CHUNK_ROWS; r++) {
                for (uint k = 0; k < ITEM_LANES; k++) {
                    lane[k] = OP(lane[k], ALONG(in, base + r * LANES + first + k));
                }
            }
        }
    } else {
        for (OFFSET_T row = base; row < len; row += LANES) {
            // A missing element is replaced by the last one and ignored, so that no load waits for a branch.
            A x[ITEM_LANES];
            if (ONE_VECTOR && len - row >= first + VEC) {
                unpack(load_vec(in + row + first), x);
            } else {
                for (uint k = 0; k < ITEM_LANES; k++) {
                    x[k] = ALONG(in, min((OFFSET_T)(row + first + k), (OFFSET_T)(len - 1)));
                }
            }
            for (uint k = 0; k < ITEM_LANES; k++) {
                lane[k] = len - row > first + k ? OP(lane[k], x[k]) : lane[k];
            }
        }
    }
}

// The slot of a work-item's aggregate in the tree.
static inline uint tree_slot(const uint share, const uint column)
{
    return COLUMNS ? share * COLS + column : column * SHARE + share;
}

// Work-group g has part g % parts of the COLS outputs from COLS * (g / parts) on. With `last` there is one part, and
// results are stored as OUT.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_chunks(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, __global void* restrict out_base,
    const ulong out_offset, const uint last)
{
    __local A tree[WG];
    const uint item = get_local_id(0);
    const uint column = COLUMNS ? item % COLS : item / SHARE, share = COLUMNS ? item / COLS : item % SHARE;
    const OFFSET_T part = (OFFSET_T)get_group_id(0) % parts;
    const OFFSET_T output = (OFFSET_T)get_group_id(0) / parts * COLS + column;
    // Work-items without an output process the last one, and write nothing.
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
        if (SHARE > 1) {
            tree[tree_slot(share, column)] = lane[0];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint d = 1; d < SHARE; d <<= 1) {
                if (share % (2 * d) == 0) {
                    tree[tree_slot(share, column)] =
                        OP(tree[tree_slot(share, column)], tree[tree_slot(share + d, column)]);
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            if (share == 0) {
                push(carry, &carries, (round - start) / SLOTS, tree[tree_slot(0, column)]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        } else {
            push(carry, &carries, (round - start) / SLOTS, lane[0]);
        }
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
