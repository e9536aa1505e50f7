// Extremes along one axis: for each line, the smallest element and its first index, the largest one, or both
// (ENDS is 2).
//
//     index[o] = the first i with key(x[o][i]) minimal,   value[o] = x[o][index[o]]
//
// Bytes: reads each element once, and one more for each output; writes an element and an index for each output.
//
//     axis_extremes:       for each part of each line: the smallest (key, index)
//     axis_extremes_parts: for each line: the smallest (key, index) of its parts
//
// NaN has the lowest key. With ARG_MAX, and for the second of two ENDS, keys are complemented, so that the largest
// element has the lowest key. Of equal keys the lowest index wins. This order of (key, index) is total, so any tree
// gives the same winner.
//
// A work-group has `columns` outputs. On GPUs each output has WG / columns work-items. `across` is set if neighbouring
// outputs are closer in memory than neighbouring elements. Then neighbouring work-items have neighbouring outputs, else
// neighbouring elements. If there are few outputs, lines are cut into parts of `run` elements.
#include "lib/types.cl"
#include "lib/lines.cl"

#ifndef WG
#define WG 256
// 1: the smallest, or with ARG_MAX the largest; 2: the smallest, then the largest.
#define ENDS 1
#endif

#include "lib/end_keys.cl"

// The winner so far, at each end. If no element had a key below KEY_HIGHEST, `at` is still `start`. Then all elements
// are equal, and the first one wins.
typedef struct {
    KEY_T key[ENDS];
    OFFSET_T at[ENDS];
} Best;

// The winner before any element.
static inline Best nothing_yet(const OFFSET_T start)
{
    Best best;
    for (uint e = 0; e < ENDS; e++) {
        best.key[e] = KEY_HIGHEST;
        best.at[e] = start;
    }
    return best;
}

// Element i of the line that starts at `in`.
#define ALONG(in, i) to_acc((in)[(long)(i) * stride])

// Writes the winner of part `part` of output `output`; `values` and `indices` are those of output 0.
static inline void store_best(
    const Best* best, __global const T* in, const long stride, const OFFSET_T output, const OFFSET_T outputs,
    const OFFSET_T part, const OFFSET_T parts, __global T* values, __global ulong* indices)
{
    for (uint e = 0; e < ENDS; e++) {
        const ulong slot = (ulong)e * outputs + output;
        indices[slot * parts + part] = best->at[e];
        if (parts == 1) {
            values[slot] = in[(long)best->at[e] * stride];
        }
    }
}

#if WG == 1
#include "reduce_axis_extremes_cpu.cl"
#else
#include "reduce_axis_extremes_gpu.cl"
#endif

// Work-group g has the outputs from columns * g on. `from` has the indices of the winners of their parts.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_extremes_parts(
    LINES, __global const ulong* restrict from, const OFFSET_T parts, const uint columns,
    __global T* restrict values_base, const ulong values_offset, __global ulong* restrict indices_base,
    const ulong indices_offset)
{
    __local KEY_T keys[ENDS * WG];
    __local OFFSET_T firsts[ENDS * WG];
    const uint item = get_local_id(0), share = WG / columns, own = item % share;
    const OFFSET_T output = (OFFSET_T)get_group_id(0) * columns + item / share;
    const OFFSET_T counted = min(output, (OFFSET_T)(outputs - 1));
    __global const T* in = LINE(counted);
    Best best = nothing_yet(0);
    for (uint e = 0; e < ENDS; e++) {
        __global const ulong* found = from + ((ulong)e * outputs + counted) * parts;
        for (OFFSET_T part = own; part < parts; part += share) {
            const OFFSET_T at = (OFFSET_T)found[part];
            const KEY_T key = key_at(ALONG(in, at), e);
            if (key < best.key[e]) {
                best.key[e] = key;
                best.at[e] = at;
            }
        }
    }
    best_of_share(&best, own, share, 1, keys, firsts);
    if (own == 0 && output < outputs) {
        store_best(
            &best, in, stride, output, outputs, 0, 1, values_base + values_offset, indices_base + indices_offset);
    }
}
