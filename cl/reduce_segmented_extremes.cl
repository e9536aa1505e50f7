// Extremes of segments: for each segment, the smallest element and its first index, the largest one, or both (ENDS is
// 2).
//
//     index[s] = the first i with key(x[offsets[s] + i]) minimal,   value[s] = x[offsets[s] + index[s]]
//
// An empty segment has the index ~0 and the value `empty`. Of equal keys the lowest index wins, so the order of (key,
// index) is total, and no tree is fixed.
//
// Bytes: reads n elements and the offsets once. For each result, reads one more element and offset, and writes an
// element and an index.
//
// The offsets are merged with the indices 0 .. n - 1: an offset comes before the indices from it on. Each step of the
// merge takes an element or an offset. Tiles have equal numbers of steps, so their work is the same whatever the
// segments (Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", 2016). Offset r ends
// segment r - 1; offset 0 ends the elements before all segments.
//
//     segment_extremes_splits: the number of offsets before each tile, by binary search
//     segment_extremes:        for each tile: stores the results of segments that start and end in it, and its node
//     segment_extremes_nodes:  joins neighbouring nodes; stores the results of segments that end in a later node
//
// A node has the winner before its first offset, `prefix`, and the winner after its last offset, `suffix`. Without an
// offset, both are the winner of all its elements.
//
// Offsets may be in any order. The offset with number `rank` belongs to one step: the one after `rank` offsets and
// `offset` elements. A tile or a work-item that does not have this step ignores the offset. So no two store the same
// result, and no access is out of bounds.
#include "lib/types.cl"

#ifndef WG
#define WG 256
// 1: the smallest, or with ARG_MAX the largest; 2: the smallest, then the largest.
#define ENDS 1
// The type of an offset, and a type that holds offsets and indices.
#define S uint
#define POS_T uint
// Steps of a work-item.
#define STEPS 15
#endif
#define TILE (STEPS * WG)
#define UNROLL _Pragma("unroll")

#include "lib/end_keys.cl"

// COUNTED: other kernels have found the segments. Their number is in memory; results beyond `segments` are left out.
// The last offset, n, is not in memory.
#ifdef COUNTED
#define FOUND_PARAMS , __global const ulong *found_base, const ulong found_offset
#define FOUND found_base[found_offset]
#else
#define COUNTED 0
#define FOUND_PARAMS
#define FOUND ~0ul
#endif

// No index, or no offset.
#define NOWHERE (~(OFFSET_T)0)

// The winner at each end: its key and its index. The smallest (key, index) wins.
typedef struct {
    KEY_T key[ENDS];
    OFFSET_T at[ENDS];
} Best;

// `first` is the number of the first offset, or NOWHERE.
typedef struct {
    Best prefix, suffix;
    OFFSET_T first;
} Node;

// The winner of no elements.
static inline Best nothing_yet(void)
{
    Best best;
    UNROLL
    for (uint e = 0; e < ENDS; e++) {
        best.key[e] = KEY_HIGHEST;
        best.at[e] = NOWHERE;
    }
    return best;
}

// The node of no elements and no offsets.
static inline Node empty_node(void)
{
    const Node node = {nothing_yet(), nothing_yet(), NOWHERE};
    return node;
}

static inline void take_better(Best* best, const Best* other)
{
    UNROLL
    for (uint e = 0; e < ENDS; e++) {
        const KEY_T key = other->key[e];
        if (key < best->key[e] || (key == best->key[e] && other->at[e] < best->at[e])) {
            best->key[e] = key;
            best->at[e] = other->at[e];
        }
    }
}

// Joins a node and its right neighbour. Returns whether a segment starts in the left one and ends at the first offset
// of the right one; `across` becomes its winner.
static inline bool join(Node* left, const Node* right, Best* across)
{
    const bool starts = left->first != NOWHERE, ends = right->first != NOWHERE;
    *across = left->suffix;
    take_better(across, &right->prefix);
    if (!starts) {
        left->prefix = *across;
        left->first = right->first;
    }
    left->suffix = *across;
    if (ends) {
        left->suffix = right->suffix;
    }
    return starts && ends;
}

// The arguments that all kernels share. The results of the second end are `segments` further on. There are `count`
// offsets, of which the first `known` are in memory.
typedef struct {
    __global const T* in;
    __global const S* offsets;
    OFFSET_T n, segments, count, known;
    T empty[2];
    __global T* values;
    __global ulong* indices;
} Call;

#define CALL_PARAMS                                                                                                    \
    __global const T *in_base, const ulong in_offset, const OFFSET_T n, __global const S *offsets_base,                \
        const ulong offsets_offset, const OFFSET_T segments, const T first_empty, const T last_empty,                  \
        __global T *values_base, const ulong values_offset, __global ulong *indices_base,                              \
        const ulong indices_offset FOUND_PARAMS
#define CALL                                                                                                           \
    make_call(                                                                                                         \
        in_base + in_offset, n, offsets_base + offsets_offset, segments, first_empty, last_empty,                      \
        values_base + values_offset, indices_base + indices_offset, FOUND)

static inline Call make_call(
    __global const T* in, OFFSET_T n, __global const S* offsets, OFFSET_T segments, T first_empty, T last_empty,
    __global T* values, __global ulong* indices, ulong found)
{
    const OFFSET_T count = (OFFSET_T)min((ulong)segments, found) + 1;
    const Call call = {
        in, offsets, n, segments, count, found > segments ? count : (OFFSET_T)found, {first_empty, last_empty}, values,
        indices};
    return call;
}

// Returns an offset, or n if it is larger.
static inline OFFSET_T offset_at(const Call* call, OFFSET_T rank)
{
    return COUNTED && rank >= call->known ? call->n : (OFFSET_T)min((POS_T)call->offsets[rank], (POS_T)call->n);
}

// Stores the result of segment s at end e; `at` is the winner's index in the input.
static inline void store_result(const Call* call, OFFSET_T s, uint e, OFFSET_T at)
{
    const ulong slot = (ulong)e * call->segments + s;
    if (at == NOWHERE) {
        call->values[slot] = call->empty[e];
        call->indices[slot] = ~0ul;
    } else {
        call->values[slot] = call->in[at];
        call->indices[slot] = at - offset_at(call, s);
    }
}

// Stores the result of the segment that ends at an offset.
static inline void store_winner(const Call* call, OFFSET_T rank, const Best* best)
{
    if (rank > 0) {
        for (uint e = 0; e < ENDS; e++) {
            store_result(call, rank - 1, e, best->at[e]);
        }
    }
}

// `scratch` has an array of 8-byte words for each field of a node, each with room for `nodes` words. The splits follow.
#define KEYS(f) ((__global KEY_T*)((scratch) + 8 * (nodes) * (f)))
#define INDICES(f) ((__global OFFSET_T*)((scratch) + 8 * (nodes) * (f)))
#define FIRSTS INDICES(4 * ENDS)
#define SPLITS INDICES(4 * ENDS + 1)

static inline void store_node(__global uchar* scratch, ulong nodes, ulong i, const Node* node)
{
    for (uint e = 0; e < ENDS; e++) {
        KEYS(4 * e)[i] = node->prefix.key[e];
        INDICES(4 * e + 1)[i] = node->prefix.at[e];
        KEYS(4 * e + 2)[i] = node->suffix.key[e];
        INDICES(4 * e + 3)[i] = node->suffix.at[e];
    }
    FIRSTS[i] = node->first;
}

static inline Node load_node(__global uchar* scratch, ulong nodes, ulong i)
{
    Node node;
    for (uint e = 0; e < ENDS; e++) {
        node.prefix.key[e] = KEYS(4 * e)[i];
        node.prefix.at[e] = INDICES(4 * e + 1)[i];
        node.suffix.key[e] = KEYS(4 * e + 2)[i];
        node.suffix.at[e] = INDICES(4 * e + 3)[i];
    }
    node.first = FIRSTS[i];
    return node;
}

// Finds how many offsets are among the steps before each tile, and before the end of the last one.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segment_extremes_splits(
    CALL_PARAMS, __global uchar* scratch, const ulong nodes, const OFFSET_T tiles)
{
    const Call call = CALL;
    for (OFFSET_T t = get_global_id(0); t <= tiles; t += get_global_size(0)) {
        const OFFSET_T steps = min((OFFSET_T)(t * TILE), (OFFSET_T)(n + call.count));
        OFFSET_T low = steps > n ? steps - n : 0, high = min(steps, call.count);
        while (low < high) {
            const OFFSET_T middle = low + (high - low) / 2;
            if (offset_at(&call, middle) < steps - middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        SPLITS[t] = low;
    }
}

// A tile: the indices of its first element and of its first offset, and how many it has of each. Any splits give a
// range within the input and the offsets.
typedef struct {
    OFFSET_T base, low;
    uint elements, offsets;
} Tile;

static inline Tile tile_of(const Call* call, __global uchar* scratch, ulong nodes, OFFSET_T t)
{
    const OFFSET_T all = call->n + call->count, start = min((OFFSET_T)(t * TILE), all);
    const uint steps = (uint)min((OFFSET_T)TILE, (OFFSET_T)(all - start));
    const OFFSET_T low = SPLITS[t], high = SPLITS[t + 1], base = start - low;
    const uint offsets = high > low ? (uint)min((OFFSET_T)(high - low), (OFFSET_T)steps) : 0;
    const Tile tile = {base, low, (uint)min((OFFSET_T)(steps - offsets), (OFFSET_T)(call->n - base)), offsets};
    return tile;
}

#if WG == 1
#include "reduce_segmented_extremes_cpu.cl"
#else
#include "reduce_segmented_extremes_gpu.cl"
#endif

// A level has `level` nodes, from index `from` on. Each work-item joins `each` neighbours, and work-group g joins those
// of its work-items to the node at index to + g.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segment_extremes_nodes(
    CALL_PARAMS, __global uchar* scratch, const ulong nodes, const ulong from, const ulong level, const ulong each,
    const ulong to)
{
    __local Node shared[WG];
    const Call call = CALL;
    const uint item = get_local_id(0);
    const ulong first = min((ulong)get_global_id(0) * each, level), end = min(first + each, level);
    Node node = empty_node();
    Best across;
    for (ulong i = first; i < end; i++) {
        const Node right = load_node(scratch, nodes, from + i);
        if (join(&node, &right, &across)) {
            store_winner(&call, right.first, &across);
        }
    }
    shared[item] = node;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < WG; d <<= 1) {
        if ((item & (2 * d - 1)) == 0) {
            const Node right = shared[item + d];
            if (join(&node, &right, &across)) {
                store_winner(&call, right.first, &across);
            }
            shared[item] = node;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        store_node(scratch, nodes, to + get_group_id(0), &node);
    }
}
