// Segmented reduction on GPUs, for all ways to give segments: a work-group reduces its tile to a node
// (segment_nodes.cl), and nodes are joined.
//
// Work-item i has ITEM_BLOCKS lines of the tile, from line ITEM_BLOCKS * i on. Local memory holds the tile's elements,
// converted to accumulators. If a segment starts and ends in the tile, its result replaces its last element in local
// memory, until the work-group stores all results.

#include "lib/segment_nodes.cl"
#include "lib/aside.cl"

// Nodes that a work-item joins by itself, a power of two.
#ifndef NODE_FAN
#define NODE_FAN 4
#endif
// SHUFFLES: all kernels have one known sub-group width. Then lanes exchange values by shuffles, and synchronise without
// a work-group barrier.
#define SHUFFLES (SG_BACKEND == SG_PTX || SG_BACKEND == SG_AMDGCN)

// NVIDIA's compiler obeys a register limit only if the kernel does not fix its work-group size.
#if INLINE_PTX
#define KERNEL __kernel
#else
#define KERNEL __kernel SG_KERNEL __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif

// Vectors and elements of a work-item.
#define ITEM_VECS (ITEM_BLOCKS * LINE_VECS)
#define ITEM_ELEMENTS (ITEM_BLOCKS * LINE)
// AVEC: accumulators in 16 bytes. ITEM_AVECS, LINE_AVECS and PARTS: such vectors of a work-item, of a line, and of one
// vector of elements.
#define AVEC (16 / A_BYTES)
#if A_BYTES == 1
#define AV CAT(A, 16)
#define AVLOAD vload16
#define AVSTORE vstore16
#elif A_BYTES == 2
#define AV CAT(A, 8)
#define AVLOAD vload8
#define AVSTORE vstore8
#elif A_BYTES == 4
#define AV CAT(A, 4)
#define AVLOAD vload4
#define AVSTORE vstore4
#else
#define AV CAT(A, 2)
#define AVLOAD vload2
#define AVSTORE vstore2
#endif
#define ITEM_AVECS (ITEM_BLOCKS * LINE_AVECS)
#define LINE_AVECS (LINE / AVEC)
#define PARTS (VEC / AVEC)
// The slot in local memory of vector q of a tile, and of element e. A row has one vector of each work-item, as loaded.
// The vectors of a row are in different banks. So are the vectors that neighbouring work-items read at a time when they
// reduce their lines.
#define VECTOR_SLOT(q) ((q) ^ ((q) / ITEM_AVECS & 7))
#define ELEMENT_SLOT(e) (VECTOR_SLOT((e) / AVEC) * AVEC + (e) % AVEC)
// No segment starts.
#define NOWHERE 0xffffffffu

// Returns the slot of part k of the work-item's vector in row v. The formula is simpler if all rows are permuted alike.
static inline size_t row_slot(uint v, uint k)
{
    const size_t item = get_local_id(0);
    return WG % (8 * ITEM_VECS) == 0 ? v * (WG * PARTS) + VECTOR_SLOT(item * PARTS + k)
                                     : VECTOR_SLOT((v * WG + item) * PARTS + k);
}

// Returns the position of the lowest set bit.
static inline uint ctz_of(uint bits) { return (uint)popcount((bits & (0u - bits)) - 1); }

// Puts the work-item's vector of row v into local memory, as accumulators.
INLINED void put_vector(__local AV* stage, uint v, TV raw)
{
    A x[VEC];
    unpack(raw, x);
    UNROLL
    for (uint k = 0; k < PARTS; k++) {
        stage[row_slot(v, k)] = AVLOAD(k, x);
    }
}

// Elements that need no conversion to accumulators are copied to local memory without registers.
#if defined(COPIES_ASIDE) && defined(ALIGNED) && T_BYTES == A_BYTES && defined(T_FLOAT) == defined(A_FLOAT) && \
    !defined(MAPPED)
#define STAGED 1
INLINED void fetch_vector(__local AV* stage, TV* row, uint v, __global const T* from)
{
    copy_async_16(&stage[row_slot(v, 0)], from);
}
INLINED void await_vectors(__local AV* stage, const TV* row) { await_copies(); }
#else
#define STAGED 0
INLINED void fetch_vector(__local AV* stage, TV* row, uint v, __global const T* from) { row[v] = load_vec(from); }
INLINED void await_vectors(__local AV* stage, const TV* row)
{
    UNROLL
    for (uint v = 0; v < ITEM_VECS; v++) {
        put_vector(stage, v, row[v]);
    }
}
#endif
// Vectors of a work-item in registers.
#define ROW_VECS (STAGED ? 1 : ITEM_VECS)

// Returns the vector at p, of which `count` elements exist.
static inline TV load_part(__global const T* p, uint count)
{
    T part[VEC];
    for (uint k = 0; k < VEC; k++) {
        part[k] = k < count ? p[k] : (T)0;
    }
    return VLOAD(0, part);
}

// Starts to load a whole tile; `in` is its first element.
INLINED void fetch_tile(__global const T* in, uint length, __local AV* stage, TV* row)
{
    __global const T* own = in + (uint)get_local_id(0) * VEC;
    if (length == TILE) {
        UNROLL
        for (uint v = 0; v < ITEM_VECS; v++) {
            fetch_vector(stage, row, v, own + v * (WG * VEC));
        }
    }
}

// Completes the tile in local memory, or loads it if it is the last one and not whole. Ends with a barrier.
INLINED void stage_tile(__global const T* in, uint length, __local AV* stage, const TV* row)
{
    if (length == TILE) {
        await_vectors(stage, row);
    } else {
        _Pragma("unroll 1")
        for (uint v = 0; v < ITEM_VECS; v++) {
            const uint from = min((v * WG + (uint)get_local_id(0)) * VEC, length);
            put_vector(stage, v, load_part(in + from, length - from));
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Clears the bits of the elements that start a segment. Ends with a barrier.
INLINED void clear_starts(__local uint* starts)
{
    ROLLED
    for (uint k = get_local_id(0); k < TILE / 32; k += WG) {
        starts[k] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// A node within a tile; `start` is the position of its first start, or NOWHERE.
typedef struct {
    A prefix, suffix;
    uint start;
} TileNode;

// Joins a node and its right neighbour. The result of a segment between them goes to the slot of its last element.
INLINED void join_here(__local A* results, TileNode* left, A prefix, A suffix, uint start)
{
    const A across = OP(left->suffix, prefix);
    if (start != NOWHERE) {
        if (left->start != NOWHERE) {
            results[ELEMENT_SLOT(start - 1)] = across;
        } else {
            left->prefix = across;
            left->start = start;
        }
        left->suffix = suffix;
    } else {
        left->suffix = across;
        if (left->start == NOWHERE) {
            left->prefix = across;
        }
    }
}

// Replaces each element of a whole line, in the vectors from `own` on, by the aggregate of its segment so far; returns
// the last aggregate. Bit e of the two words is set if a segment starts at element e.
INLINED A scan_line(__local AV* stage, uint own, uint bits, uint more)
{
    A suffix = OP_IDENTITY;
    UNROLL
    for (uint v = 0; v < LINE_AVECS; v++) {
        A x[AVEC];
        AVSTORE(stage[VECTOR_SLOT(own + v)], 0, x);
        UNROLL
        for (uint k = 0; k < AVEC; k++) {
            const uint e = v * AVEC + k, starts_here = (e < 32 ? bits >> e : more >> (e - 32)) & 1;
            suffix = OP(starts_here ? OP_IDENTITY : suffix, x[k]);
            x[k] = suffix;
        }
        stage[VECTOR_SLOT(own + v)] = AVLOAD(0, x);
    }
    return suffix;
}

// As scan_line(), for a line at position `begin` of which only the first `present` elements exist. Only a tile that is
// not whole has such lines.
INLINED A scan_part(__local A* results, uint begin, uint bits, uint more, uint present)
{
    A suffix = OP_IDENTITY;
    ROLLED
    for (uint e = 0; e < present; e++) {
        const uint starts_here = (e < 32 ? bits >> e : more >> (e - 32)) & 1;
        suffix = OP(starts_here ? OP_IDENTITY : suffix, results[ELEMENT_SLOT(begin + e)]);
        results[ELEMENT_SLOT(begin + e)] = suffix;
    }
    return suffix;
}

// Makes the node of the line at position `begin`, in the vectors from `own` on. If a segment starts within the line,
// the aggregate of its segment so far replaces each element.
INLINED void reduce_line(
    __local AV* stage, __local const uint* starts, uint own, uint begin, uint length, TileNode* node)
{
    __local A* results = (__local A*)stage;
    // The line's bits: two words if it has 64 elements.
    uint bits = starts[begin / 32] >> begin % 32, more = 0;
    if (LINE > 32) {
        more = starts[begin / 32 + 1];
    } else if (LINE < 32) {
        bits &= (1u << LINE % 32) - 1;
    }
    A suffix = OP_IDENTITY;
    if (((bits & ~1u) | more) == 0 && begin + LINE <= length) {
        UNROLL
        for (uint v = 0; v < LINE_AVECS; v++) {
            A x[AVEC];
            AVSTORE(stage[VECTOR_SLOT(own + v)], 0, x);
            UNROLL
            for (uint k = 0; k < AVEC; k++) {
                suffix = OP(suffix, x[k]);
            }
        }
        node->start = bits ? begin : NOWHERE;
        node->prefix = bits ? OP_IDENTITY : suffix;
    } else {
        if (begin + LINE <= length) {
            suffix = scan_line(stage, own, bits, more);
        } else {
            suffix = scan_part(results, begin, bits, more, max(length, begin) - begin);
        }
        const uint start = bits ? begin + ctz_of(bits) : more ? begin + 32 + ctz_of(more) : NOWHERE;
        node->start = start;
        node->prefix = start == NOWHERE ? suffix : start == begin ? OP_IDENTITY : results[ELEMENT_SLOT(start - 1)];
    }
    node->suffix = suffix;
}

// Joins the work-item's lines, 1, 2 or 4 of them, to `node`.
INLINED void reduce_lines(__local AV* stage, __local const uint* starts, uint length, TileNode* node)
{
    __local A* results = (__local A*)stage;
    const uint item = get_local_id(0);
    // `even` awaits the next line, `pair` the next two.
    TileNode even, pair;
    for (uint b = 0; b < ITEM_BLOCKS; b++) {
        reduce_line(stage, starts, item * ITEM_AVECS + b * LINE_AVECS, item * ITEM_ELEMENTS + b * LINE, length, node);
        if (ITEM_BLOCKS > 1) {
            if (b % 2 == 1) {
                join_here(results, &even, node->prefix, node->suffix, node->start);
            } else {
                even = *node;
            }
        }
        if (ITEM_BLOCKS > 2) {
            if (b == 1) {
                pair = even;
            }
        }
    }
    if (ITEM_BLOCKS > 2) {
        join_here(results, &pair, even.prefix, even.suffix, even.start);
        *node = pair;
    } else if (ITEM_BLOCKS > 1) {
        *node = even;
    }
}

// Joins the work-items' nodes; work-item 0 gets the tile's node. The work-item of the right of two nodes writes its
// node to local memory, and that of the left one joins both.
INLINED void join_items(
    __local A* results, TileNode* node, __local A* prefixes, __local A* suffixes, __local uint* first_starts)
{
    const uint item = get_local_id(0);
    ROLLED
    for (uint d = 1; d < WG; d <<= 1) {
        const uint in_pair = item & (2 * d - 1);
        if (in_pair == d) {
            prefixes[item] = node->prefix;
            suffixes[item] = node->suffix;
            first_starts[item] = node->start;
        }
        if (SHUFFLES) {
            if (d < sg_size()) {
                sg_barrier();
            } else {
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        } else {
            // One barrier for all cases: PoCL fails on a choice between two barriers.
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (in_pair == 0) {
            join_here(results, node, prefixes[item + d], suffixes[item + d], first_starts[item + d]);
        }
    }
}

// Stores the tile's node, whose open segment has the rank `rank`. If it is the only tile, stores that segment's result
// instead. Only work-item 0 stores. Ends with a barrier.
INLINED void finish_tile(
    const TileNode* node, OFFSET_T rank, OFFSET_T tile, __global uchar* scratch, ulong nodes, __global OUT* out,
    OFFSET_T count, uint last)
{
    if (get_local_id(0) == 0) {
        if (last) {
            emit(out, count, rank, node->suffix);
        } else {
            const Node whole = {node->prefix, node->suffix, rank, node->start != NOWHERE};
            store_node(scratch, nodes, tile, &whole);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Loads a node, or a neutral one if the node does not exist.
static inline void load_node(__global uchar* scratch, ulong nodes, ulong at, bool exists, Node* node)
{
    node->prefix = exists ? PREFIXES(scratch, nodes)[at] : OP_IDENTITY;
    node->suffix = exists ? SUFFIXES(scratch, nodes)[at] : OP_IDENTITY;
    node->rank = NODE_RANKS(scratch, nodes)[at];
    node->starts = exists ? STARTS(scratch, nodes)[at] : 0;
}

// Puts the work-item's node into local memory.
INLINED void share_node(
    __local A* prefixes, __local A* suffixes, __local OFFSET_T* ranks, __local uint* starts, const Node* node)
{
    const uint item = get_local_id(0);
    prefixes[item] = node->prefix;
    suffixes[item] = node->suffix;
    ranks[item] = node->rank;
    starts[item] = node->starts;
}

// A level has `level` nodes, from index `from` on. Work-group g joins NODE_FAN * WG of them, from number
// NODE_FAN * WG * g on, to the node at index to + g. First each work-item joins NODE_FAN of them. With `last` there is
// one work-group, and the segment that is open at the end is complete.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_nodes(
    __global uchar* scratch, const ulong nodes, const ulong from, const ulong level, const ulong to,
    COUNT_PARAMS, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __local A prefixes[WG], suffixes[WG];
    __local OFFSET_T ranks[WG];
    __local uint starts[WG];
    __global OUT* out = out_base + out_offset;
    const OFFSET_T count = offset_count(COUNT_ARGS);
    const uint item = get_local_id(0);
    Node node[NODE_FAN];
    UNROLL
    for (uint i = 0; i < NODE_FAN; i++) {
        const ulong at = (ulong)get_global_id(0) * NODE_FAN + i;
        load_node(scratch, nodes, from + min(at, level - 1), at < level, &node[i]);
    }
    UNROLL
    for (uint d = 1; d < NODE_FAN; d <<= 1) {
        UNROLL
        for (uint i = 0; i < NODE_FAN; i += 2 * d) {
            join(&node[i], &node[i + d], out, count);
        }
    }
    share_node(prefixes, suffixes, ranks, starts, &node[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
    ROLLED
    for (uint d = 1; d < WG; d <<= 1) {
        if ((item & (2 * d - 1)) == 0) {
            const Node right = {prefixes[item + d], suffixes[item + d], ranks[item + d], starts[item + d]};
            join(&node[0], &right, out, count);
            share_node(prefixes, suffixes, ranks, starts, &node[0]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        if (last) {
            emit(out, count, node[0].rank, node[0].suffix);
        } else {
            store_node(scratch, nodes, to + get_group_id(0), &node[0]);
        }
    }
}
