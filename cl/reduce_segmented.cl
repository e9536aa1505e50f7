// Segmented reduction: segment s is the elements offsets[s] .. offsets[s + 1], and out[s] what combines them.
//
// The order is that of one binary tree over the positions of the input. Its leaves are blocks of BLOCK elements, 64 bytes,
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
#include "lib/subgroup.cl"

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
// Neighbouring blocks of an item: 1, 2 or 4; blocks of a tile, a power of two.
#ifndef ITEM_BLOCKS
#define ITEM_BLOCKS 4
#endif
#ifndef BLOCKS
#define BLOCKS (ITEM_BLOCKS * WG)
#endif
#define BLOCK_VECS 4
#define BLOCK (BLOCK_VECS * VEC)
#define TILE (BLOCKS * BLOCK)
#define UNROLL _Pragma("unroll")
// For functions with local memory, which PoCL 3.1 gets wrong in functions that it calls.
#define INLINED static inline __attribute__((always_inline))

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

// Offsets of a tile that are kept in local memory.
#define NEAR (2 * BLOCKS)

// Offset r of a tile whose offsets from rank `low` on are near, relative to its first position, or are all in memory.
#define OFFSET_AT(r) (is_near ? base + near[(r) - low] : (POS_T)offsets[r])

// rank_within and rank_from for such a tile.
INLINED OFFSET_T near_within(
    __global const S* offsets, __local const uint* near, uint is_near, POS_T base, OFFSET_T low, OFFSET_T from, OFFSET_T to,
    POS_T p)
{
    while (from < to) {
        const OFFSET_T middle = from + (to - from) / 2;
        if (OFFSET_AT(middle) <= p) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

INLINED OFFSET_T near_from(
    __global const S* offsets, __local const uint* near, uint is_near, POS_T base, OFFSET_T low, OFFSET_T from, OFFSET_T to,
    POS_T p)
{
    OFFSET_T step = 1;
    while (to - from >= step && OFFSET_AT(from + step - 1) <= p) {
        from += step;
        step *= 2;
    }
    return near_within(offsets, near, is_near, base, low, from, from + min((OFFSET_T)(step - 1), (OFFSET_T)(to - from)), p);
}

// Vectors of an item.
#define ITEM_VECS (ITEM_BLOCKS * BLOCK_VECS)
// The vector's place in `stage`, so that neither rows of vectors nor the vectors of neighbouring items meet in one bank.
#define STAGE(q) ((q) ^ ((q) / ITEM_VECS & 7))

// The vector at p, of which `count` elements are there.
static inline TV load_part(__global const T* p, uint count)
{
    T part[VEC];
    for (uint k = 0; k < VEC; k++) {
        part[k] = k < count ? p[k] : (T)0;
    }
    return VLOAD(0, part);
}

// Item i of group g has the blocks from ITEM_BLOCKS * i on of tile g. With `last` there is one tile, and its segments are
// complete.
__kernel SG_KERNEL __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_tiles(
    __global const T* restrict in_base, const ulong in_offset, const POS_T n,
    __global const S* restrict offsets_base, const ulong offsets_offset, const OFFSET_T count, __global uchar* scratch,
    const ulong nodes, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __local TV stage[ITEM_VECS * WG];
    __local uint near[NEAR];
    __local A heads[WG], tails[WG];
    __local OFFSET_T lasts[WG];
    __local uint flags[WG];
    __global const T* in = in_base + in_offset;
    __global const S* offsets = offsets_base + offsets_offset;
    __global OUT* out = out_base + out_offset;
    const uint item = get_local_id(0);
    const OFFSET_T tile = get_group_id(0);
    const POS_T base = (POS_T)tile * TILE;

    // The tile's elements come while its offsets are looked at.
    const uint whole = n - base >= TILE;
    TV row[ITEM_VECS];
    if (whole) {
        UNROLL
        for (uint v = 0; v < ITEM_VECS; v++) {
            row[v] = load_vec(in + base + (v * WG + item) * VEC);
        }
    }
    const OFFSET_T low = RANKS[tile], high = RANKS[tile + 1];
    const uint starts_tile = base > 0 && low > 0 && offsets[low - 1] == base;
    const uint is_near = low <= high && high - low <= NEAR;
    if (is_near) {
        for (uint i = item; i < (uint)(high - low); i += WG) {
            near[i] = (uint)(offsets[low + i] - base);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // How many offsets are before the item's first element, and what the next one is.
    const POS_T first = base + item * (ITEM_BLOCKS * BLOCK);
    OFFSET_T rank = low;
    if (item > 0) {
        rank = near_within(offsets, near, is_near, base, low, low, high, min(first, n) - 1);
    }
    POS_T next = rank < high ? OFFSET_AT(rank) : n;
    if (whole) {
        UNROLL
        for (uint v = 0; v < ITEM_VECS; v++) {
            stage[STAGE(v * WG + item)] = row[v];
        }
    } else {
        const uint there = (uint)(n - base);
        for (uint q = item; q < ITEM_VECS * WG; q += WG) {
            const uint from = min(q * VEC, there);
            stage[STAGE(q)] = load_part(in + base + from, there - from);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    // The item's blocks as nodes: `left` awaits the next block, `half` the next two.
    A head, tail;
    uint flagged;
#if ITEM_BLOCKS > 1
    A left_head, left_tail;
    OFFSET_T left_rank;
    uint left_flagged;
#endif
#if ITEM_BLOCKS > 2
    A half_head, half_tail;
    OFFSET_T half_rank;
    uint half_flagged;
#endif
    for (uint b = 0; b < ITEM_BLOCKS; b++) {
        const POS_T begin = first + b * BLOCK, end = begin < n ? min((POS_T)(begin + BLOCK), n) : begin;
        flagged = item == 0 && b == 0 && starts_tile;
        if (begin < n && next == begin && (item > 0 || b > 0)) {
            flagged = 1;
            rank = near_from(offsets, near, is_near, base, low, rank, high, begin);
            next = rank < high ? OFFSET_AT(rank) : n;
        }
        head = tail = OP_IDENTITY;
        const uint place = item * ITEM_VECS + b * BLOCK_VECS;
        if (next >= end && begin + BLOCK == end) {
            UNROLL
            for (uint v = 0; v < BLOCK_VECS; v++) {
                A x[VEC];
                unpack(stage[STAGE(place + v)], x);
                for (uint k = 0; k < VEC; k++) {
                    tail = OP(tail, x[k]);
                }
            }
        } else {
            for (POS_T p = begin; p < end; p++) {
                if (p == next && p > begin) {
                    if (flagged) {
                        emit(out, count, rank, tail);
                    } else {
                        head = tail;
                        flagged = 1;
                    }
                    tail = OP_IDENTITY;
                    rank = near_from(offsets, near, is_near, base, low, rank, high, p);
                    next = rank < high ? OFFSET_AT(rank) : n;
                }
                const uint k = (uint)(p - begin);
                tail = OP(tail, TAKEN(((__local const T*)(stage + STAGE(place + k / VEC)))[k % VEC]));
            }
        }
        head = flagged ? head : tail;
#if ITEM_BLOCKS > 1
        if (b % 2 == 1) {
            join(&left_head, &left_tail, &left_rank, &left_flagged, head, tail, rank, flagged, out, count);
        } else {
            left_head = head;
            left_tail = tail;
            left_rank = rank;
            left_flagged = flagged;
        }
#endif
#if ITEM_BLOCKS > 2
        if (b == 1) {
            half_head = left_head;
            half_tail = left_tail;
            half_rank = left_rank;
            half_flagged = left_flagged;
        }
#endif
    }
#if ITEM_BLOCKS > 2
    join(&half_head, &half_tail, &half_rank, &half_flagged, left_head, left_tail, left_rank, left_flagged, out, count);
    head = half_head;
    tail = half_tail;
    rank = half_rank;
    flagged = half_flagged;
#elif ITEM_BLOCKS > 1
    head = left_head;
    tail = left_tail;
    rank = left_rank;
    flagged = left_flagged;
#endif
    // The right one of two nodes hands itself over to the left one.
    for (uint d = 1; d < WG; d <<= 1) {
        const uint place = item & (2 * d - 1);
        if (place == d) {
            heads[item] = head;
            tails[item] = tail;
            lasts[item] = rank;
            flags[item] = flagged;
        }
#if SG_BACKEND == SG_PTX || SG_BACKEND == SG_AMDGCN
        if (d < sg_size()) {
            sg_barrier();
        } else {
            barrier(CLK_LOCAL_MEM_FENCE);
        }
#else
        // PoCL breaks where one of two barriers is chosen.
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        if (place == 0) {
            join(
                &head, &tail, &rank, &flagged, heads[item + d], tails[item + d], lasts[item + d], flags[item + d], out, count);
        }
    }
    if (item == 0) {
        if (last) {
            if (flagged) {
                emit(out, count, low, head);
            }
            emit(out, count, rank, tail);
        } else {
            HEADS[tile] = head;
            TAILS[tile] = tail;
            LASTS[tile] = rank;
            FLAGS[tile] = flagged;
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
        uint block = (uint)((p - base) / BLOCK);
        const POS_T end = min(stop, (POS_T)(base + (POS_T)(block + 1) * BLOCK));
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
