// Segmented reduction, the part that all variants share: the tree, its nodes, and their memory.
//
// One binary tree over the indices of the input gives the order. A leaf is a line of LINE elements, 64 bytes, combined
// from left to right. Above the leaves, neighbours are combined: lines 2i and 2i + 1, then their pairs, and so on. A
// segment's result is the value of this tree over the segment's elements alone. So the order depends only on where the
// segment starts and ends.
//
// At most two segments reach beyond a node: one from the left, and one to the right.
//
//     starts    a segment starts in the node
//     prefix    the aggregate of its elements before the first start; the identity if the first element is a start
//     suffix    the aggregate of its elements from the last start on
//     rank      the number of offsets <= its last index; segment rank - 1 is open at its end
//
// In a node without a start, prefix and suffix are the aggregate of all its elements. If both of two neighbouring nodes
// have a start, their join completes the segment between the starts. Except for the prefix, the join is the operator of
// segmented scans (Blelloch, "Prefix sums and their applications", 1990).
//
// Offsets may be in any order: no rank exceeds their number, elements are read by their index, and results are written
// by rank. So no access is out of bounds.

#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"

// The type of an offset, and a type that holds offsets and indices.
#ifndef S
#define S uint
#define POS_T uint
// Contiguous lines of a work-item: 1, 2 or 4; lines of a tile, a power of two.
#define ITEM_BLOCKS 4
#endif
#ifndef BLOCKS
#define BLOCKS (ITEM_BLOCKS * WG)
#endif
#define LINE_VECS 4
#define LINE (LINE_VECS * VEC)
#define TILE (BLOCKS * LINE)
#define UNROLL _Pragma("unroll")

// The kernels' parameters that give the number of offsets; COUNT_ARGS passes them to offset_count(). COUNTED: other
// kernels have found the segments, their number is in memory, and there is room for `room` offsets. The last offset, n,
// is not there yet.
#ifdef COUNTED
#define COUNT_PARAMS const OFFSET_T room, __global const ulong *found_base, const ulong found_offset
#define COUNT_ARGS room, found_base[found_offset]
#define OFFSETS_ARG __global S*
#else
#define COUNTED 0
#define COUNT_PARAMS const OFFSET_T room
#define COUNT_ARGS room, ~0ul
#define OFFSETS_ARG __global const S* restrict
#endif

// Returns the number of offsets: one more than segments.
static inline OFFSET_T offset_count(OFFSET_T room, ulong found) { return (OFFSET_T)min((ulong)(room - 1), found) + 1; }

typedef struct {
    A prefix, suffix;
    OFFSET_T rank;
    uint starts;
} Node;

// `scratch` has an array for each of the four fields of a Node, each with room for `nodes` values of 8 bytes. The ranks
// of the tiles follow.
#define PREFIXES(scratch, nodes) ((__global A*)(scratch))
#define SUFFIXES(scratch, nodes) ((__global A*)((scratch) + 8 * (nodes)))
#define NODE_RANKS(scratch, nodes) ((__global OFFSET_T*)((scratch) + 16 * (nodes)))
#define STARTS(scratch, nodes) ((__global uint*)((scratch) + 24 * (nodes)))
// How many offsets are before each tile, and before the end of the input.
#define TILE_RANKS(scratch, nodes) ((__global OFFSET_T*)((scratch) + 32 * (nodes)))

static inline void store_node(__global uchar* scratch, ulong nodes, ulong at, const Node* node)
{
    PREFIXES(scratch, nodes)[at] = node->prefix;
    SUFFIXES(scratch, nodes)[at] = node->suffix;
    NODE_RANKS(scratch, nodes)[at] = node->rank;
    STARTS(scratch, nodes)[at] = node->starts;
}

// Stores x as the result of segment rank - 1. Ranks 0 and `count` belong to no segment: they lie before the first
// offset and after the last one.
static inline void emit(__global OUT* out, OFFSET_T count, OFFSET_T rank, A x)
{
    if (rank >= 1 && rank < count) {
        store_acc(out + (rank - 1), x);
    }
}

// Joins a node and its right neighbour.
static inline void join(Node* left, const Node* right, __global OUT* out, OFFSET_T count)
{
    const A across = OP(left->suffix, right->prefix);
    if (right->starts) {
        if (left->starts) {
            emit(out, count, left->rank, across);
        } else {
            left->prefix = across;
        }
        left->suffix = right->suffix;
    } else {
        left->suffix = across;
        if (!left->starts) {
            left->prefix = across;
        }
    }
    left->starts |= right->starts;
    left->rank = right->rank;
}
