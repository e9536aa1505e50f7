// axis_columns: like axis_chunks, but a work-item has VEC neighbouring outputs, and loads their elements as vectors
// (reduce_axis.cl).

#define WIDTH (COLS / VEC)
// Vectors whose loads are in flight at once.
#define HELD 8
#define ROWS_HELD (ITEM_LANES < HELD ? HELD / ITEM_LANES : 1)
#define UNROLL _Pragma("unroll")

// Combines ITEM_LANES lanes, from lane `first` on, with the vectors of the chunk that starts at `base`.
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
    ROLLED
    for (; r < rows; r++) {
        // A missing element is replaced by the last one and ignored, so that no load waits for a branch.
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
    __local A tree[WG * VEC];
    const uint item = get_local_id(0), share = item / WIDTH;
    const OFFSET_T part = (OFFSET_T)get_group_id(0) % parts;
    const OFFSET_T output = (OFFSET_T)get_group_id(0) / parts * COLS + item % WIDTH * VEC;
    // Work-items without outputs process the last ones, and write nothing.
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
        if (SHARE > 1) {
            // One component after the other, so that neighbours use different banks.
            UNROLL
            for (uint c = 0; c < VEC; c++) {
                tree[c * WG + item] = lane[c];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            ROLLED
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
        }
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
        ROLLED
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
