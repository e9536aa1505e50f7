// Segmented reduction: segment s is the elements offsets[s] .. offsets[s + 1], and out[s] what combines them.
//
// The order is that of one binary tree over the positions of the input. Its leaves are blocks of ITEM elements, 64 bytes,
// which are combined from left to right; above them neighbours are combined, blocks 2i and 2i + 1, then their pairs,
// and so on. A segment's result is what the tree gives with all other elements left out. So it depends on where the segment
// starts and ends alone, and any aligned part of the tree can be computed by whoever has it.
//
// A part of the tree, a node, sees at most two segments that reach beyond it: one that came in from the left and one that
// goes on to the right.
//
//     flagged   a segment starts in it (at element 0 of the input: none, the first segment just is there)
//     head      what it has of the segment that came in, before the first start; the identity, if that is at its first element
//     tail      what it has of the segment that is open at its end
//     last      that segment's rank: how many offsets are at most the node's last position
//
// A node without a start has all it holds as head and as tail. Joining two neighbours, each with a start, closes the segment
// between them: its result is written. What starts and ends within a block is written at once.
//
// segments_prepare  writes the results of empty segments; finds the rank of each tile's first position
// segments_tiles    a tile to a work-group: its node, and the results of the segments within it
// segments_nodes    joins the tiles' nodes, until one is left, whose segments are then complete
// segments_check    finds the first offset that is beyond the next one, or beyond the input
//
// Whatever the offsets are, no rank is above their count, elements are read by their position, and results are
// written at ranks: nothing is read or written out of bounds.
//
// Bytes: reads n elements once, the offsets about twice; writes a result a segment.
#include "lib/types.cl"
#include "lib/op.cl"

#ifndef WG
#define WG 256
#endif
// The type of an offset, and one that holds offsets and positions.
#ifndef S
#define S uint
#endif
#ifndef POS_T
#define POS_T uint
#endif
// Blocks of a tile; a power of two.
#ifndef BLOCKS
#define BLOCKS WG
#endif
#define BLOCK_VECS 4
#define ITEM (BLOCK_VECS * VEC)
#define TILE (BLOCKS * ITEM)

// The arrays in scratch: `nodes` of each part of a node, then the ranks.
#define HEADS ((__global A*)scratch)
#define TAILS ((__global A*)(scratch + 8 * nodes))
#define LASTS ((__global OFFSET_T*)(scratch + 16 * nodes))
#define FLAGS ((__global uint*)(scratch + 24 * nodes))
#define RANKS ((__global OFFSET_T*)(scratch + 32 * nodes))

#include "lib/ranks.cl"

// How many of the offsets are at most p, where the first `low` are and the answer is near.
static inline OFFSET_T rank_from(__global const S* offsets, OFFSET_T low, OFFSET_T count, POS_T p)
{
    OFFSET_T step = 1;
    while (count - low >= step && offsets[low + step - 1] <= p) {
        low += step;
        step *= 2;
    }
    return rank_within(offsets, low, low + min((OFFSET_T)(step - 1), (OFFSET_T)(count - low)), p);
}

// The result of the segment of a rank, if there is one: before the first offset and behind the last are none.
static inline void emit(__global OUT* out, OFFSET_T count, OFFSET_T rank, A x)
{
    if (rank >= 1 && rank < count) {
        store_acc(out + (rank - 1), x);
    }
}

// A node and its right neighbour, r_..., become one.
static inline void join(
    A* head, A* tail, OFFSET_T* last, uint* flagged, A r_head, A r_tail, OFFSET_T r_last, uint r_flagged,
    __global OUT* out, OFFSET_T count)
{
    const A across = OP(*tail, r_head);
    if (r_flagged) {
        if (*flagged) {
            emit(out, count, *last, across);
        } else {
            *head = across;
        }
        *tail = r_tail;
    } else {
        *tail = across;
        if (!*flagged) {
            *head = across;
        }
    }
    *flagged |= r_flagged;
    *last = r_last;
}

// Writes `empty` for each of the `count` - 1 segments without elements, and RANKS[t] for t = 0 .. tiles.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_prepare(
    __global const S* restrict offsets_base, const ulong offsets_offset, const OFFSET_T count, const POS_T n,
    const OFFSET_T tiles, __global uchar* scratch, const ulong nodes, __global OUT* out_base, const ulong out_offset,
    const OUT empty)
{
    __global const S* offsets = offsets_base + offsets_offset;
    __global OUT* out = out_base + out_offset;
    const OFFSET_T work = max((OFFSET_T)(count - 1), (OFFSET_T)(tiles + 1));
#if WG == 1
    const OFFSET_T run = work / (OFFSET_T)get_num_groups(0) + 1;
    const OFFSET_T first = min(work, (OFFSET_T)(get_group_id(0) * run)), end = min(work, (OFFSET_T)(first + run)), step = 1;
#else
    const OFFSET_T first = get_global_id(0), end = work, step = get_global_size(0);
#endif
    for (OFFSET_T i = first; i < end; i += step) {
        if (i <= tiles) {
            RANKS[i] = rank_within(offsets, 0, count, (POS_T)i * TILE);
        }
        if (i < count - 1 && min((POS_T)offsets[i], n) >= min((POS_T)offsets[i + 1], n)) {
            out[i] = empty;
        }
    }
}

#if WG > 1

// The vector's place in `stage`, so that neither rows of vectors nor the 4 vectors of a block meet in one bank.
#define STAGE(q) ((q) ^ (((q) >> 3) & 3))

// The vector at p, of which `count` elements are there.
static inline TV load_part(__global const T* p, uint count)
{
    T part[VEC];
    for (uint k = 0; k < VEC; k++) {
        part[k] = k < count ? p[k] : (T)0;
    }
    return VLOAD(0, part);
}

// Item i of group g has block i of tile g. With `last` there is one tile, and its segments are complete.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_tiles(
    __global const T* restrict in_base, const ulong in_offset, const POS_T n,
    __global const S* restrict offsets_base, const ulong offsets_offset, const OFFSET_T count, __global uchar* scratch,
    const ulong nodes, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __local TV stage[BLOCK_VECS * WG];
    __local A heads[WG], tails[WG];
    __local OFFSET_T lasts[WG];
    __local uint flags[WG];
    __global const T* in = in_base + in_offset;
    __global const S* offsets = offsets_base + offsets_offset;
    __global OUT* out = out_base + out_offset;
    const uint item = get_local_id(0);
    const OFFSET_T tile = get_group_id(0);
    const POS_T base = (POS_T)tile * TILE;

    if (n - base >= TILE) {
        TV row[BLOCK_VECS];
        for (uint v = 0; v < BLOCK_VECS; v++) {
            row[v] = load_vec(in + base + (v * WG + item) * VEC);
        }
        for (uint v = 0; v < BLOCK_VECS; v++) {
            stage[STAGE(v * WG + item)] = row[v];
        }
    } else {
        for (uint v = 0; v < BLOCK_VECS; v++) {
            const uint q = (v * WG + item) * VEC;
            const uint there = (uint)(n - base);
            stage[STAGE(v * WG + item)] = load_part(in + base + min(q, there), there - min(q, there));
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const POS_T first = base + item * ITEM;
    const POS_T end = first < n ? min((POS_T)(first + ITEM), n) : first;
    OFFSET_T rank = rank_within(offsets, RANKS[tile], RANKS[tile + 1], min(first, (POS_T)(n - 1)));
    POS_T next = rank < count ? (POS_T)offsets[rank] : n;
    A head = OP_IDENTITY, tail = OP_IDENTITY;
    uint flagged = first > 0 && first < n && rank > 0 && offsets[rank - 1] == first;
    if (next >= end && first + ITEM == end) {
        for (uint v = 0; v < BLOCK_VECS; v++) {
            A x[VEC];
            unpack(stage[STAGE(item * BLOCK_VECS + v)], x);
            for (uint k = 0; k < VEC; k++) {
                tail = OP(tail, x[k]);
            }
        }
    } else {
        for (uint v = 0; v < BLOCK_VECS; v++) {
            A x[VEC];
            unpack(stage[STAGE(item * BLOCK_VECS + v)], x);
            for (uint k = 0; k < VEC; k++) {
                const POS_T p = first + v * VEC + k;
                if (p < end) {
                    if (p == next && p > first) {
                        if (flagged) {
                            emit(out, count, rank, tail);
                        } else {
                            head = tail;
                            flagged = 1;
                        }
                        tail = OP_IDENTITY;
                        rank = rank_from(offsets, rank, count, p);
                        next = rank < count ? (POS_T)offsets[rank] : n;
                    }
                    tail = OP(tail, x[k]);
                }
            }
        }
    }
    heads[item] = flagged ? head : tail;
    tails[item] = tail;
    lasts[item] = rank;
    flags[item] = flagged;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < WG; d <<= 1) {
        const uint i = 2 * d * item;
        if (i + d < WG) {
            A h = heads[i], t = tails[i];
            OFFSET_T l = lasts[i];
            uint f = flags[i];
            join(&h, &t, &l, &f, heads[i + d], tails[i + d], lasts[i + d], flags[i + d], out, count);
            heads[i] = h;
            tails[i] = t;
            lasts[i] = l;
            flags[i] = f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        if (last) {
            if (flags[0]) {
                emit(out, count, RANKS[0], heads[0]);
            }
            emit(out, count, lasts[0], tails[0]);
        } else {
            HEADS[tile] = heads[0];
            TAILS[tile] = tails[0];
            LASTS[tile] = lasts[0];
            FLAGS[tile] = flags[0];
        }
    }
}

// Group g joins the nodes from + WG * g .. of `level` nodes to node to + g. With `last` there is one group, and what is left
// is complete.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_nodes(
    __global uchar* scratch, const ulong nodes, const ulong from, const ulong level, const ulong to,
    const OFFSET_T count, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __local A heads[WG], tails[WG];
    __local OFFSET_T lasts[WG];
    __local uint flags[WG];
    __global OUT* out = out_base + out_offset;
    const uint item = get_local_id(0);
    const ulong node = get_global_id(0);
    // Nodes that are not there change nothing.
    const ulong source = from + min(node, level - 1);
    heads[item] = node < level ? HEADS[source] : OP_IDENTITY;
    tails[item] = node < level ? TAILS[source] : OP_IDENTITY;
    lasts[item] = LASTS[source];
    flags[item] = node < level ? FLAGS[source] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < WG; d <<= 1) {
        const uint i = 2 * d * item;
        if (i + d < WG) {
            A h = heads[i], t = tails[i];
            OFFSET_T l = lasts[i];
            uint f = flags[i];
            join(&h, &t, &l, &f, heads[i + d], tails[i + d], lasts[i + d], flags[i + d], out, count);
            heads[i] = h;
            tails[i] = t;
            lasts[i] = l;
            flags[i] = f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        if (last) {
            if (flags[0]) {
                emit(out, count, RANKS[0], heads[0]);
            }
            emit(out, count, lasts[0], tails[0]);
        } else {
            const ulong target = to + get_group_id(0);
            HEADS[target] = heads[0];
            TAILS[target] = tails[0];
            LASTS[target] = lasts[0];
            FLAGS[target] = flags[0];
        }
    }
}

#else

// Parts of a tree that await their right neighbours: a carry for each bit of the next leaf's number that is set.
#define DEPTH 34

// What the tree gives for the elements p .. stop of the tile from `base` on.
static inline A combine_run(__global const T* in, POS_T base, POS_T p, POS_T stop)
{
    A carry[DEPTH];
    uint carries = 0;
    A x = OP_IDENTITY;
    while (p < stop) {
        uint block = (uint)((p - base) / ITEM);
        const POS_T end = min(stop, (POS_T)(base + (POS_T)(block + 1) * ITEM));
        // Intel's CPU runtime adds up a plain loop's floats in another order.
        volatile A serial = OP_IDENTITY;
        for (; p < end; p++) {
            serial = OP(serial, TAKEN(in[p]));
        }
        x = serial;
        if (p == stop) {
            break;
        }
        // A left neighbour from before the run is left out.
        for (; (block & 1) && carries > 0; block >>= 1) {
            x = OP(carry[--carries], x);
        }
        carry[carries++] = x;
    }
    while (carries > 0) {
        x = OP(carry[--carries], x);
    }
    return x;
}

// The one item of group g walks through tile g.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_tiles(
    __global const T* restrict in_base, const ulong in_offset, const POS_T n,
    __global const S* restrict offsets_base, const ulong offsets_offset, const OFFSET_T count, __global uchar* scratch,
    const ulong nodes, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __global const T* in = in_base + in_offset;
    __global const S* offsets = offsets_base + offsets_offset;
    __global OUT* out = out_base + out_offset;
    const OFFSET_T tile = get_group_id(0);
    const POS_T base = (POS_T)tile * TILE, end = n - base > TILE ? base + TILE : n;
    OFFSET_T rank = RANKS[tile];
    uint flagged = base > 0 && rank > 0 && offsets[rank - 1] == base;
    A head = OP_IDENTITY, tail = OP_IDENTITY;
    for (POS_T p = base; p < end;) {
        const POS_T next = rank < count ? (POS_T)offsets[rank] : end;
        const POS_T stop = next > p && next < end ? next : end;
        tail = combine_run(in, base, p, stop);
        p = stop;
        if (p < end) {
            if (flagged) {
                emit(out, count, rank, tail);
            } else {
                head = tail;
                flagged = 1;
            }
            rank = rank_from(offsets, rank, count, p);
        }
    }
    if (!flagged) {
        head = tail;
    }
    if (last) {
        if (flagged) {
            emit(out, count, RANKS[0], head);
        }
        emit(out, count, rank, tail);
    } else {
        HEADS[tile] = head;
        TAILS[tile] = tail;
        LASTS[tile] = rank;
        FLAGS[tile] = flagged;
    }
}

// The one item joins all `level` nodes.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_nodes(
    __global uchar* scratch, const ulong nodes, const ulong from, const ulong level, const ulong to,
    const OFFSET_T count, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __global OUT* out = out_base + out_offset;
    A heads[DEPTH], tails[DEPTH];
    OFFSET_T lasts[DEPTH];
    uint flags[DEPTH];
    uint carries = 0;
    for (ulong node = 0; node < level; node++) {
        heads[carries] = HEADS[from + node];
        tails[carries] = TAILS[from + node];
        lasts[carries] = LASTS[from + node];
        flags[carries] = FLAGS[from + node];
        for (ulong left = node; left & 1; left >>= 1) {
            carries--;
            join(
                &heads[carries], &tails[carries], &lasts[carries], &flags[carries], heads[carries + 1], tails[carries + 1],
                lasts[carries + 1], flags[carries + 1], out, count);
        }
        carries++;
    }
    for (carries--; carries > 0;) {
        carries--;
        join(
            &heads[carries], &tails[carries], &lasts[carries], &flags[carries], heads[carries + 1], tails[carries + 1],
            lasts[carries + 1], flags[carries + 1], out, count);
    }
    if (flags[0]) {
        emit(out, count, RANKS[0], heads[0]);
    }
    emit(out, count, lasts[0], tails[0]);
}

#endif

// The least i with offsets[i] > offsets[i + 1] or offsets[i] > n, of `count` < 2^32 offsets; `bad` is above all before.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_check(
    __global const S* restrict offsets_base, const ulong offsets_offset, const OFFSET_T count, const POS_T n,
    volatile __global uint* bad)
{
    __global const S* offsets = offsets_base + offsets_offset;
#if WG == 1
    const OFFSET_T run = count / (OFFSET_T)get_num_groups(0) + 1;
    const OFFSET_T first = min(count, (OFFSET_T)(get_group_id(0) * run)), end = min(count, (OFFSET_T)(first + run)), step = 1;
#else
    const OFFSET_T first = get_global_id(0), end = count, step = get_global_size(0);
#endif
    for (OFFSET_T i = first; i < end; i += step) {
        if (offsets[i] > n || (i + 1 < count && offsets[i] > offsets[i + 1])) {
            atomic_min(bad, (uint)i);
            break;
        }
    }
}
