// Segmented reduction for CPU drivers: out[s] = x[offsets[s]] op ... op x[offsets[s + 1] - 1], in the order of the tree
// of lib/segment_nodes.cl.
//
// Bytes: reads n elements once and the offsets about twice; writes a result for each segment.
//
//     segments_prepare: the rank of each tile by binary search; out[s] = empty for empty segments
//     segments_tiles:   one work-item for each tile:
//         for each group of 64 elements:
//             bits = where segments start; ranks of the starts
//             combine each line from left to right, from the identity at each start
//             for each line: store the results of the segments within it; push its node
//             push the group's node
//         store the tile's node, or the open segment's result if there is one tile
//     segments_nodes:   one work-item joins the tiles' nodes
#include "lib/segment_nodes.cl"
#include "lib/segment_offsets.cl"

// Elements that are combined together, in whole lines: a bit for each.
#define GROUP 64
#define GROUP_LINES (GROUP / LINE)
#define LINE_BITS (~0ul >> (64 - LINE))
// The first element of each line.
#define LINE_FIRSTS (~0ul / LINE_BITS)

// Nodes that await their right neighbours: one for each set bit of the next node's number.
#define DEPTH 34
typedef struct {
    Node node[DEPTH];
    uint count;
} Stack;

// Returns the position of the lowest set bit.
static inline uint ctz64(ulong bits) { return (uint)popcount((bits & (0ul - bits)) - 1); }

static inline void join_last_two(Stack* stack, __global OUT* out, OFFSET_T count)
{
    const uint right = --stack->count;
    join(&stack->node[right - 1], &stack->node[right], out, count);
}

// Pushes node `number` of a level, and joins the pairs that it completes.
static inline void push(Stack* stack, ulong number, const Node* node, __global OUT* out, OFFSET_T count)
{
    stack->node[stack->count++] = *node;
    for (; number & 1; number >>= 1) {
        join_last_two(stack, out, count);
    }
}

// Joins all nodes to the first.
static inline void fold(Stack* stack, __global OUT* out, OFFSET_T count)
{
    while (stack->count > 1) {
        join_last_two(stack, out, count);
    }
}

// Replaces each element by the aggregate of its segment so far, within its line. Lines are independent of each other.
static inline void scan_lines(__global const T* in, ulong bits, A* sums)
{
    A tail[GROUP_LINES];
    for (uint k = 0; k < LINE; k++) {
        UNROLL
        for (uint b = 0; b < GROUP_LINES; b++) {
            const uint e = b * LINE + k;
            tail[b] = OP(k == 0 || (bits >> e & 1) ? OP_IDENTITY : tail[b], TAKEN(in[e]));
            sums[e] = tail[b];
        }
    }
}

// The same for the last elements of the input, fewer than a group.
static inline void scan_part(__global const T* in, ulong bits, uint length, A* sums)
{
    A tail = OP_IDENTITY;
    for (uint e = 0; e < length; e++) {
        tail = OP(e % LINE == 0 || (bits >> e & 1) ? OP_IDENTITY : tail, TAKEN(in[e]));
        sums[e] = tail;
    }
}

// Puts the aggregate of each line at its last element.
static inline void reduce_lines(__global const T* in, A* sums)
{
    A tail[GROUP_LINES];
    UNROLL
    for (uint b = 0; b < GROUP_LINES; b++) {
        tail[b] = OP_IDENTITY;
    }
    IN_ORDER
    for (uint k = 0; k < LINE; k++) {
        UNROLL
        for (uint b = 0; b < GROUP_LINES; b++) {
            tail[b] = OP(tail[b], TAKEN(in[b * LINE + k]));
        }
    }
    UNROLL
    for (uint b = 0; b < GROUP_LINES; b++) {
        sums[(b + 1) * LINE - 1] = tail[b];
    }
}

// Returns the bits of the elements from `p` on that start a segment, and moves `rank` beyond their offsets. ranks[e]
// becomes the number of offsets that are at most p + e.
static inline ulong mark_starts(
    __global const S* offsets, OFFSET_T count, POS_T p, uint length, OFFSET_T* rank, OFFSET_T* ranks)
{
    ulong bits = 0;
    for (; *rank < count; (*rank)++) {
        const POS_T e = (POS_T)offsets[*rank] - p;
        if (e >= length) {
            break;
        }
        bits |= 1ul << e;
        ranks[e] = *rank + 1;
    }
    return bits;
}

// Makes the node of the line at `begin`, and stores the results of the segments within it. Before the call, *rank is
// the rank of the segment that is open before the line. Afterwards it is that of the segment open at the line's end.
static inline void finish_line(
    const A* sums, ulong bits, uint begin, uint length, const OFFSET_T* ranks, OFFSET_T* rank, Node* node,
    __global OUT* out, OFFSET_T count)
{
    ulong own = bits >> begin & LINE_BITS;
    node->suffix = sums[min(begin + LINE, length) - 1];
    node->prefix = node->suffix;
    node->starts = own != 0;
    if (own != 0) {
        uint start = begin + ctz64(own);
        node->prefix = start == begin ? OP_IDENTITY : sums[start - 1];
        for (own &= own - 1; own != 0; own &= own - 1) {
            const uint next = begin + ctz64(own);
            emit(out, count, ranks[start], sums[next - 1]);
            start = next;
        }
        *rank = ranks[start];
    }
    node->rank = *rank;
}

// Stores `empty` as the result of each empty segment of the work-item's share.
static inline void store_empty(
    __global const S* offsets, OFFSET_T segments, POS_T n, __global OUT* out, const OUT empty)
{
    const OFFSET_T run = segments / (uint)get_num_groups(0) + 1;
    const OFFSET_T first = min(segments, (OFFSET_T)(get_group_id(0) * run));
    for (OFFSET_T i = first; i < segments && i - first < run; i++) {
        if (is_empty(offsets[i], offsets[i + 1], n)) {
            out[i] = empty;
        }
    }
}

// Finds the rank of each tile, and stores the results of empty segments. With COUNTED no segment is empty.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_prepare(
    OFFSETS_ARG offsets_base, const ulong offsets_offset, COUNT_PARAMS, const POS_T n, const OFFSET_T tiles,
    __global uchar* scratch, const ulong nodes, __global OUT* out_base, const ulong out_offset, const OUT empty)
{
    OFFSETS_ARG offsets = offsets_base + offsets_offset;
    const OFFSET_T count = offset_count(COUNT_ARGS), known = complete_offsets(offsets, count, COUNT_ARGS, n);
    rank_tiles(offsets, known, n, tiles, get_num_groups(0), TILE_RANKS(scratch, nodes));
    if (!COUNTED) {
        store_empty(offsets, count - 1, n, out_base + out_offset, empty);
    }
}

// Work-group g takes tile g.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_tiles(
    __global const T* restrict in_base, const ulong in_offset, const POS_T n,
    __global const S* restrict offsets_base, const ulong offsets_offset, COUNT_PARAMS, __global uchar* scratch,
    const ulong nodes, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __global const S* offsets = offsets_base + offsets_offset;
    __global OUT* out = out_base + out_offset;
    const OFFSET_T count = offset_count(COUNT_ARGS), tile = get_group_id(0);
    const POS_T base = (POS_T)tile * TILE, end = n - base > TILE ? base + TILE : n;
    OFFSET_T rank = TILE_RANKS(scratch, nodes)[tile], ranks[GROUP];
    A sums[GROUP];
    Stack tree;
    tree.count = 0;
    for (POS_T p = base; p < end; p += GROUP) {
        const uint length = (uint)min((POS_T)GROUP, (POS_T)(end - p));
        __global const T* in = in_base + in_offset + p;
        OFFSET_T open = rank;
        const ulong bits = mark_starts(offsets, count, p, length, &rank, ranks);
        if (length < GROUP) {
            scan_part(in, bits, length, sums);
        } else if (bits & ~LINE_FIRSTS) {
            scan_lines(in, bits, sums);
        } else {
            reduce_lines(in, sums);
        }
        Stack group;
        group.count = 0;
        for (uint begin = 0; begin < length; begin += LINE) {
            Node node;
            finish_line(sums, bits, begin, length, ranks, &open, &node, out, count);
            push(&group, begin / LINE, &node, out, count);
        }
        fold(&group, out, count);
        push(&tree, (p - base) / GROUP, &group.node[0], out, count);
    }
    fold(&tree, out, count);
    if (last) {
        emit(out, count, tree.node[0].rank, tree.node[0].suffix);
    } else {
        store_node(scratch, nodes, tile, &tree.node[0]);
    }
}

// Joins all `level` nodes from `from` on, by one work-item.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_nodes(
    __global uchar* scratch, const ulong nodes, const ulong from, const ulong level, const ulong to,
    COUNT_PARAMS, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __global OUT* out = out_base + out_offset;
    const OFFSET_T count = offset_count(COUNT_ARGS);
    Stack tree;
    tree.count = 0;
    for (ulong i = 0; i < level; i++) {
        const ulong at = from + i;
        const Node node = {
            PREFIXES(scratch, nodes)[at], SUFFIXES(scratch, nodes)[at], NODE_RANKS(scratch, nodes)[at],
            STARTS(scratch, nodes)[at]};
        push(&tree, i, &node, out, count);
    }
    fold(&tree, out, count);
    emit(out, count, tree.node[0].rank, tree.node[0].suffix);
}
