// Reduction along one axis: out[o] = x[o][0] op x[o][1] op ... op x[o][len - 1], for the line x[o] at output o.
//
//     aggregate of a chunk = tree(lane[0 .. LANES]),  lane[j] = x[j] op x[j + LANES] op ... within the chunk
//     out[o]               = the tree of the chunks' aggregates: 2i with 2i + 1, then their pairs, and so on
//
// Bytes: reads each element once, writes a result for each output.
//
//     axis_chunks:  for each part of each line: the tree of its chunks; several work-items share the lanes and chunks
//                   of a line
//     axis_columns: with WIDE, in place of axis_chunks: a work-item has the outputs of one vector, and loads vectors
//     axis_rows:    with FEW: lines of at most LANES elements; a work-item has the whole lines of one vector of outputs
//     axis_short:   with SHORT: lines of at most LANES contiguous elements
//     axis_parts:   the tree of the parts of each line
//
// A chunk is 16 rows of LANES lanes along the axis. The order depends on `len` alone. If there are few outputs, lines
// are cut into parts of `run` chunks, a power of two. For each bit that is set in the number of chunks so far, one
// aggregate waits for its right neighbour.
//
// A work-group has COLS outputs, or with FEW, COLS vectors of outputs. LT work-items share the lanes of a line, and
// SLOTS chunks are processed at a time. COLUMNS is set if neighbouring outputs are closer in memory than neighbouring
// lanes. Then neighbouring work-items have neighbouring outputs, else neighbouring lanes. On CPU drivers (WG is 1) one
// work-item has COLS outputs. With VECTORS it combines vectors of 16 neighbours. Most compilers vectorise by
// themselves, but not over the lanes of a short line.
#ifdef OPERATOR
#undef VECTORS
#endif
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/lines.cl"

#ifndef WG
#define WG 256
#define COLS 32
#define LT (WG / COLS)
#endif
// Neighbouring outputs of a work-item.
#ifdef WIDE
#define OUTS VEC
#else
#define OUTS 1
#endif
// LANES is less than 32 only if no line has more than LANES elements: further lanes would be empty.
#ifndef LANES
#define LANES 32
// Outputs of a work-item in axis_short.
#define BATCH 4
#endif
#define CHUNK_ROWS 16
#define CHUNK (LANES * CHUNK_ROWS)
#define ITEM_LANES (LANES / LT)
#define SLOTS (WG * OUTS / (LT * COLS))
// Work-items of an output.
#define SHARE (LT * SLOTS)
// Maximum number of aggregates that wait for their right neighbours: one for each bit of a chunk number.
#define DEPTH 34

#if WG == 1
#include "reduce_axis_cpu.cl"
#else
#include "reduce_axis_gpu.cl"
#ifdef WIDE
#include "reduce_axis_columns.cl"
#else
#include "reduce_axis_chunks.cl"
#endif
#ifdef FEW
#include "lib/outputs.cl"
#include "reduce_axis_rows.cl"
#endif
#ifdef SHORT
#include "reduce_axis_short.cl"
#endif
#endif

// Combines the `parts` aggregates of each output. `share` work-items have an output, and each takes `run` neighbours.
// Both are powers of two.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_parts(
    __global const A* restrict in, const OFFSET_T outputs, const OFFSET_T parts, const uint share, const OFFSET_T run,
    __global OUT* restrict out_base, const ulong out_offset)
{
    __local A tree[WG];
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
    if (WG > 1) {
        tree[item] = x;
        for (uint d = 1; d < share; d <<= 1) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if ((own & (2 * d - 1)) == 0) {
                x = OP(x, tree[item + d]);
                tree[item] = x;
            }
        }
    }
    if (own == 0 && output < outputs) {
        store_acc(out_base + out_offset + output, x);
    }
}
