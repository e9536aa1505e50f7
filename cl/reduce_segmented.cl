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
//     flagged   a segment starts in it
//     head      what it has of the segment that came in, before the first start; the identity, if that is at its first element
//     tail      what it has of the segment that is open at its end
//     last      that segment's rank: how many offsets are at most the node's last position
//
// A node without a start has all it holds as head and as tail. Joining two neighbours, each with a start, closes the segment
// between them: its result is known.
//
// segments_prepare  finds how many offsets are before each tile; writes the results of empty segments that no tile does. With
//                   COUNTED there are no empty ones, and the end's offset is written instead, if there is room
// segments_tiles    a tile to a work-group: its node, and the results of the segments within it
// segments_nodes    joins the tiles' nodes, until one is left, whose segments are then complete
// segments_check    finds the first offset that is beyond the next one, or beyond the input
//
// KEYED: the segments are the runs of equal keys, of which a tile finds its own; those before it are counted by lib/lookback.cl.
// So there are no offsets, nothing to prepare, and runs' first keys and results are written side by side.
//
// Whatever the offsets are, no rank is above their count, elements are read by their position, and results are
// written at ranks: nothing is read or written out of bounds.
//
// Bytes: reads n elements once, the offsets about twice; writes a result a segment. KEYED: reads n keys and n elements, writes a
// key and a result a run.
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"
#include "lib/aside.cl"
#ifdef KEYED
#include "lib/equal.cl"
#include "lib/ticket.cl"
#endif

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
// Neighbouring nodes that an item joins by itself, a power of two.
#ifndef NODE_FAN
#define NODE_FAN 4
#endif
#define BLOCK_VECS 4
#define BLOCK (BLOCK_VECS * VEC)
#define TILE (BLOCKS * BLOCK)
#define UNROLL _Pragma("unroll")
// Offsets that an item has in flight. H200, 2^28 f32 by a power law: 2,052 GB/s for 1,775 with one.
#define AT_ONCE 4
// Very many offsets are at few places of a tile. RUN is so short that there are whole ones in any such tile.
#define CROWDED (high - low > TILE)
#define RUN (TILE / 4)

// How many offsets there are; or, where other kernels find the segments, their number and the end's, of `room` at most.
#ifdef COUNTED
#define COUNT_PARAMS const OFFSET_T room, __global const ulong *found_base, const ulong found_offset
#define FOUND (found_base[found_offset])
#define COUNT ((OFFSET_T)min((ulong)(room - 1), FOUND) + 1)
#else
#define COUNT_PARAMS const OFFSET_T room
#define COUNT room
#endif

// The arrays in scratch: `nodes` of each part of a node, then the ranks.
#define HEADS ((__global A*)scratch)
#define TAILS ((__global A*)(scratch + 8 * nodes))
#define LASTS ((__global OFFSET_T*)(scratch + 16 * nodes))
#define FLAGS ((__global uint*)(scratch + 24 * nodes))
#define RANKS ((__global OFFSET_T*)(scratch + 32 * nodes))

#ifndef KEYED
#include "lib/ranks.cl"
#endif

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

#ifndef KEYED
// Finds for t = 0 .. tiles RANKS[t]: how many offsets are before tile t, or before the end of the input. Writes `empty` for the
// segments without elements; where tiles do so (WG > 1), for those behind the last tile and in CROWDED ones, whose offsets are in
// runs of RUN, some of them with less than a tile's elements: it looks through those runs and their neighbours, and the first and
// the last one. A search is a chain of loads, so then the first groups do nothing else.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_prepare(
#ifdef COUNTED
    __global S* offsets_base,
#else
    __global const S* restrict offsets_base,
#endif
    const ulong offsets_offset, COUNT_PARAMS, const POS_T n, const OFFSET_T tiles, __global uchar* scratch, const ulong nodes,
    __global OUT* out_base, const ulong out_offset, const OUT empty)
{
    const OFFSET_T count = COUNT;
#ifdef COUNTED
    __global S* offsets = offsets_base + offsets_offset;
    // The end's offset is above all positions, so that nobody needs it here.
    const OFFSET_T known = FOUND < room ? count - 1 : count;
    if (known < count && get_global_id(0) == 0) {
        offsets[known] = (S)n;
    }
#else
    __global const S* offsets = offsets_base + offsets_offset;
    __global OUT* out = out_base + out_offset;
    const OFFSET_T known = count, segments = count - 1;
#endif
#if WG == 1
    const uint searchers = get_num_groups(0);
#else
    const uint searchers = tiles / WG + 1;
#endif
    if (get_group_id(0) < searchers) {
        for (OFFSET_T t = get_global_id(0); t <= tiles; t += searchers * WG) {
            const POS_T start = t < tiles ? (POS_T)t * TILE : n;
            RANKS[t] = start > 0 ? rank_within(offsets, 0, known, start - 1) : 0;
        }
    }
#ifndef COUNTED
#define IS_EMPTY(from, to) (min((POS_T)(from), n) >= min((POS_T)(to), n))
#if WG == 1
    const OFFSET_T run = segments / searchers + 1, first = min(segments, (OFFSET_T)(get_group_id(0) * run));
    for (OFFSET_T i = first; i < segments && i - first < run; i++) {
        if (IS_EMPTY(offsets[i], offsets[i + 1])) {
            out[i] = empty;
        }
    }
#else
    if (get_group_id(0) >= searchers) {
        const OFFSET_T groups = get_num_groups(0) - searchers;
        for (OFFSET_T begin = (get_group_id(0) - searchers) * RUN; begin < segments; begin += groups * RUN) {
            // The ends of the run before it, of itself and of the next one.
            const POS_T before = offsets[begin < RUN ? 0 : begin - RUN], from = offsets[begin];
            const POS_T to = offsets[min(begin + RUN, segments)], behind = offsets[min(begin + 2 * RUN, segments)];
            if (from - before < TILE || to - from < TILE || behind - to < TILE || to >= n) {
                const OFFSET_T end = min((OFFSET_T)(begin + RUN), segments);
                for (OFFSET_T i = begin + get_local_id(0); i < end; i += WG) {
                    if (IS_EMPTY(offsets[i], offsets[i + 1])) {
                        out[i] = empty;
                    }
                }
            }
        }
    }
#endif
#endif
}
#endif

#if WG > 1

// Vectors of an item, as they lie in memory.
#define ITEM_VECS (ITEM_BLOCKS * BLOCK_VECS)
// Accumulators in 16 bytes, those vectors of an item, and those of a block.
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
#define BLOCK_AVECS (BLOCK / AVEC)
#define ITEM_AVECS (ITEM_BLOCKS * BLOCK_AVECS)
// Where vector q of a tile lies, so that neither rows of vectors nor the vectors of neighbouring items meet in one bank; where
// element e does.
#define STAGE(q) ((q) ^ ((q) / ITEM_AVECS & 7))
#define PLACE(e) (STAGE((e) / AVEC) * AVEC + (e) % AVEC)
// The same of part k of vector v * WG + item, as it lies in memory; simpler where each row of vectors is swizzled alike.
#define PARTS (VEC / AVEC)
#if WG % (8 * ITEM_VECS) == 0
#define STAGE_ROW(v, k) ((v) * (WG * PARTS) + STAGE(get_local_id(0) * PARTS + (k)))
#else
#define STAGE_ROW(v, k) STAGE(((v) * WG + get_local_id(0)) * PARTS + (k))
#endif
// Elements that are accumulators already come to local memory past the registers.
#if defined(COPIES_ASIDE) && defined(ALIGNED) && T_BYTES == A_BYTES && defined(T_FLOAT) == defined(A_FLOAT) && !defined(MAPPED)
#define STAGED
#endif
// A place where no segment starts.
#define NOWHERE 0xffffffffu

// The place of the lowest bit that is set.
static inline uint ctz_of(uint bits) { return (uint)popcount((bits & (0u - bits)) - 1); }

// The vector at p, of which `count` elements are there.
static inline TV load_part(__global const T* p, uint count)
{
    T part[VEC];
    for (uint k = 0; k < VEC; k++) {
        part[k] = k < count ? p[k] : (T)0;
    }
    return VLOAD(0, part);
}

// The item's vector of row v goes to local memory, as accumulators.
INLINED void put_vector(__local AV* stage, uint v, TV raw)
{
    A x[VEC];
    unpack(raw, x);
    UNROLL
    for (uint k = 0; k < PARTS; k++) {
        stage[STAGE_ROW(v, k)] = AVLOAD(k, x);
    }
}

// Joins the node on the right to one, where `first` is the first place at which a segment starts. What ends between them goes
// to the last place of it.
INLINED void join_here(__local A* results, A* head, A* tail, uint* first, A r_head, A r_tail, uint r_first)
{
    const A across = OP(*tail, r_head);
    if (r_first != NOWHERE) {
        if (*first != NOWHERE) {
            results[PLACE(r_first - 1)] = across;
        } else {
            *head = across;
            *first = r_first;
        }
        *tail = r_tail;
    } else {
        *tail = across;
        if (*first == NOWHERE) {
            *head = across;
        }
    }
}

#ifdef KEYED

// Items exchange values by shuffles where sub-groups have one width.
#if SG_BACKEND == SG_PTX || SG_BACKEND == SG_AMDGCN
#define SHUFFLES
#define EXCHANGE (WG / 32 + 1)
#else
#define EXCHANGE (2 * WG)
#endif
// Words of a bit for each element of a tile; of an item, which has its neighbours', if there are as many.
#define WORDS (TILE / 32)
#define SHARE ((WORDS + WG - 1) / WG)
// Keys in 16 bytes; rows of such vectors in a tile, and those that an item has on their way at once.
#if KEY_BYTES == 1
#define KEY_VEC 16
#elif KEY_BYTES == 2
#define KEY_VEC 8
#elif KEY_BYTES == 4
#define KEY_VEC 4
#else
#define KEY_VEC 2
#endif
#define KEY_ROWS (TILE / (WG * KEY_VEC))
#define HELD (KEY_ROWS < 4 ? KEY_ROWS : 4)
// The same of runs whose keys and results are written.
#define HELD_RUNS 4
#define KEYV CAT(KEY, KEY_VEC)
#define ITEM_ELEMENTS (ITEM_BLOCKS * BLOCK)

#define LOOK_CONTEXT __global const KEY *keys, const OFFSET_T n
#define LOOK_PASS keys, n
#define LOOK_TURNS
#include "lib/lookback.cl"

// Whether a run begins at a place.
static inline bool is_head(__global const KEY* keys, OFFSET_T i) { return i == 0 || !equal(keys[i - 1], keys[i]); }

static __attribute__((noinline)) ulong look_missing(LOOK_CONTEXT, OFFSET_T tile, uint slot)
{
    const OFFSET_T first = tile * TILE, end = first + min((OFFSET_T)TILE, n - first);
    ulong count = 0;
    for (OFFSET_T i = first; i < end; i++) {
        count += is_head(keys, i);
    }
    return count;
}

// Sets the bits of elements that begin a run; without SHUFFLES `starts` has none before. All items call it, in uniform flow, and
// there is no barrier behind it.
INLINED void mark_heads(
    __global const KEY* keys, OFFSET_T base, OFFSET_T n, uint there, __local uint* starts, __local uint* sg_scratch)
{
    const uint item = get_local_id(0);
    for (uint v = 0; v < KEY_ROWS; v += HELD) {
        KEY before[HELD], own[HELD][KEY_VEC];
        if (there == TILE) {
            UNROLL
            for (uint h = 0; h < HELD; h++) {
                __global const KEY* from = keys + base + ((v + h) * WG + item) * KEY_VEC;
#ifdef ALIGNED
                const KEYV held = *(__global const KEYV*)from;
#else
                const KEYV held = CAT(vload, KEY_VEC)(0, from);
#endif
                CAT(vstore, KEY_VEC)(held, 0, own[h]);
            }
        } else {
            UNROLL
            for (uint h = 0; h < HELD; h++) {
                for (uint k = 0; k < KEY_VEC; k++) {
                    own[h][k] = keys[min(base + ((v + h) * WG + item) * KEY_VEC + k, n - 1)];
                }
            }
        }
        UNROLL
        for (uint h = 0; h < HELD; h++) {
            const OFFSET_T i = min(base + ((v + h) * WG + item) * KEY_VEC, n);
#ifdef SHUFFLES
            if (sg_lane() == 0)
#endif
            {
                before[h] = keys[max(i, (OFFSET_T)1) - 1];
            }
        }
        UNROLL
        for (uint h = 0; h < HELD; h++) {
            const uint e = ((v + h) * WG + item) * KEY_VEC;
#ifdef SHUFFLES
#if KEY_BYTES == 8
            const KEY up = (KEY)sg_shuffle_up_u64(own[h][KEY_VEC - 1], 1, sg_scratch);
#else
            const KEY up = (KEY)sg_shuffle_up_u32(own[h][KEY_VEC - 1], 1, sg_scratch);
#endif
            const KEY left = sg_lane() == 0 ? before[h] : up;
#else
            const KEY left = before[h];
#endif
            uint heads = base + e == 0 || !equal(left, own[h][0]);
            UNROLL
            for (uint k = 1; k < KEY_VEC; k++) {
                heads |= equal(own[h][k - 1], own[h][k]) ? 0 : 1u << k;
            }
            if (there < TILE) {
                heads &= e < there ? (1u << min(there - e, (uint)KEY_VEC)) - 1 : 0;
            }
            uint word = heads << e % 32;
#ifdef SHUFFLES
            UNROLL
            for (uint d = 1; d < 32 / KEY_VEC; d *= 2) {
                word |= sg_shuffle_xor_u32(word, d, sg_scratch);
            }
            if (e % 32 == 0) {
                starts[e / 32] = word;
            }
#else
            if (heads != 0) {
                atomic_or(&starts[e / 32], word);
            }
#endif
        }
    }
}

// Notes how many runs begin before the elements of each word, and tells how many do in all. All items call it, in uniform flow,
// after a barrier; there is none behind it.
INLINED uint rank_words(__local const uint* starts, __local uint* ranks, __local uint* exchange, __local uint* sg_scratch)
{
    const uint item = get_local_id(0);
    uint own = 0;
    for (uint w = item * SHARE; w < min((item + 1) * SHARE, (uint)WORDS); w++) {
        own += (uint)popcount(starts[w]);
    }
    uint up_to = own, all = 0;
#ifdef SHUFFLES
    const uint lanes = sg_size(), lane = sg_lane(), team = item / lanes;
    for (uint d = 1; d < lanes; d *= 2) {
        const uint more = sg_shuffle_up_u32(up_to, d, sg_scratch);
        up_to += lane >= d ? more : 0;
    }
    if (lane == lanes - 1) {
        exchange[team] = up_to;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint t = 0; t < WG / lanes; t++) {
        up_to += t < team ? exchange[t] : 0;
        all += exchange[t];
    }
#else
    uint from = 0;
    exchange[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < WG; d *= 2) {
        up_to += item >= d ? exchange[from + item - d] : 0;
        from = WG - from;
        exchange[from + item] = up_to;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    all = exchange[from + WG - 1];
#endif
    uint rank = up_to - own;
    for (uint w = item * SHARE; w < min((item + 1) * SHARE, (uint)WORDS); w++) {
        ranks[w] = rank;
        rank += (uint)popcount(starts[w]);
    }
    return all;
}

// Lists where the runs begin that do so among the item's elements, from `first` on.
INLINED void list_heads(uint first, __local const uint* starts, __local const uint* ranks, __local ushort* places)
{
    for (uint w = first / 32; w < (first + ITEM_ELEMENTS + 31) / 32; w++) {
        const uint word = starts[w];
        uint rank = ranks[w] + (uint)popcount(word & ((1u << first % 32) - 1));
#if ITEM_ELEMENTS < 32
        uint bits = word & ((1u << ITEM_ELEMENTS) - 1) << first % 32;
#else
        uint bits = word;
#endif
        for (; bits != 0; bits &= bits - 1) {
            places[rank++] = (ushort)(32 * w + ctz_of(bits));
        }
    }
}

#define SEGMENT_PARAMS                                                                                                 \
    __global const KEY *keys_base, const ulong keys_offset, __global KEY *keys_out_base, const ulong keys_out_offset,  \
        __global ulong *count_base, const ulong count_offset, __global ulong *state, const OFFSET_T tiles,             \
        const uint spins, const uint turn
#else
#define SEGMENT_PARAMS __global const S *restrict offsets_base, const ulong offsets_offset, const OUT empty

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
#endif

// NVIDIA's compiler keeps to a limit of registers only where the size of work-groups is open.
#if INLINE_PTX
#define KERNEL __kernel
#else
#define KERNEL __kernel SG_KERNEL __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif

// Item i of group g has the blocks from ITEM_BLOCKS * i on of tile g. A segment's result lies in place of its last element until
// all are known. With `last` there is one tile, and its segments are complete. KEYED: `state` is that of select_look_back.
KERNEL void segments_tiles(
    __global const T* restrict in_base, const ulong in_offset, const POS_T n, SEGMENT_PARAMS, COUNT_PARAMS,
    __global uchar* scratch, const ulong nodes, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __local AV stage[ITEM_AVECS * WG];
    // A bit for each element that a segment starts at.
    __local uint starts[TILE / 32];
    __local A heads[WG], tails[WG];
    __local uint opened[WG];
#ifdef KEYED
    __local uint word_ranks[WORDS], exchange[EXCHANGE], sg_scratch[SG_SCRATCH_WORDS], taken[1];
    __local ushort places[TILE];
    __local ulong preceding[1];
    __global const KEY* keys = keys_base + keys_offset;
    const OFFSET_T tile = TAKE_TILE(state, taken, tiles);
#else
    __global const S* offsets = offsets_base + offsets_offset;
    const OFFSET_T tile = get_group_id(0);
#endif
    __local A* results = (__local A*)stage;
    __global const T* in = in_base + in_offset;
    __global OUT* out = out_base + out_offset;
    const OFFSET_T count = COUNT;
    const uint item = get_local_id(0);
    const POS_T base = (POS_T)tile * TILE;
    const uint there = n - base >= TILE ? TILE : (uint)(n - base);

#ifndef KEYED
    // Where the tile's offsets are is asked for first, as answers come in turn; then its elements, which come while these are
    // looked at.
    const OFFSET_T low = RANKS[tile], high = RANKS[tile + 1];
#endif
    __global const T* own = in + base + item * VEC;
#ifndef STAGED
    TV row[ITEM_VECS];
#endif
    if (there == TILE) {
        UNROLL
        for (uint v = 0; v < ITEM_VECS; v++) {
#ifdef STAGED
            copy_aside(&stage[STAGE_ROW(v, 0)], own + v * (WG * VEC));
#else
            row[v] = load_vec(own + v * (WG * VEC));
#endif
        }
    }
#if !defined(KEYED) || !defined(SHUFFLES)
    for (uint k = item; k < TILE / 32; k += WG) {
        starts[k] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    const uint first = item * (ITEM_BLOCKS * BLOCK);
#ifdef KEYED
    mark_heads(keys, base, n, there, starts, sg_scratch);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint total = rank_words(starts, word_ranks, exchange, sg_scratch);
    // The item that publishes them anew later on.
    const bool speaks = tiles > 1 && !silent(tile);
    delay(tile, state);
    if (item == 0 && speaks) {
        look_publish(state + 2, tile, tile == 0 ? LOOK_ALL : LOOK_OWN, total, turn);
    }
#else
    const uint end = min(first + ITEM_BLOCKS * BLOCK, there);
    if (CROWDED) {
        // Each item looks for offsets among its elements.
        OFFSET_T rank = base + first > 0 ? rank_within(offsets, low, high, base + first - 1) : low;
        while (rank < high && offsets[rank] - base < end) {
            const uint place = (uint)(offsets[rank] - base);
            atomic_or(&starts[place / 32], 1u << place % 32);
            rank = rank_from(offsets, rank, high, base + place);
        }
    } else {
        for (OFFSET_T i = low + item; i < high; i += AT_ONCE * WG) {
            POS_T place[AT_ONCE];
            UNROLL
            for (uint h = 0; h < AT_ONCE; h++) {
                place[h] = offsets[min(i + h * WG, high - 1)] - base;
            }
            UNROLL
            for (uint h = 0; h < AT_ONCE; h++) {
                if (place[h] < there) {
                    atomic_or(&starts[place[h] / 32], 1u << place[h] % 32);
                }
            }
        }
    }
#endif
    if (there == TILE) {
#ifdef STAGED
        await_copies();
#else
        UNROLL
        for (uint v = 0; v < ITEM_VECS; v++) {
            put_vector(stage, v, row[v]);
        }
#endif
    } else {
        _Pragma("unroll 1")
        for (uint v = 0; v < ITEM_VECS; v++) {
            const uint from = min((v * WG + item) * VEC, there);
            put_vector(stage, v, load_part(in + base + from, there - from));
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#ifdef KEYED
    list_heads(first, starts, word_ranks, places);
#endif

    // The item's blocks as nodes: `left` awaits the next block, `half` the next two.
    A head, tail;
    uint opens;
#if ITEM_BLOCKS > 1
    A left_head, left_tail;
    uint left_opens;
#endif
#if ITEM_BLOCKS > 2
    A half_head, half_tail;
    uint half_opens;
#endif
    for (uint b = 0; b < ITEM_BLOCKS; b++) {
        const uint begin = first + b * BLOCK;
        // Bits of the block: of 64 elements two words.
        uint bits = starts[begin / 32] >> begin % 32;
        uint more = 0;
#if BLOCK > 32
        more = starts[begin / 32 + 1];
#elif BLOCK < 32
        bits &= (1u << BLOCK) - 1;
#endif
        tail = OP_IDENTITY;
        const uint own = item * ITEM_AVECS + b * BLOCK_AVECS;
        if (((bits & ~1u) | more) == 0 && begin + BLOCK <= there) {
            UNROLL
            for (uint v = 0; v < BLOCK_AVECS; v++) {
                A x[AVEC];
                AVSTORE(stage[STAGE(own + v)], 0, x);
                UNROLL
                for (uint k = 0; k < AVEC; k++) {
                    tail = OP(tail, x[k]);
                }
            }
            opens = bits ? begin : NOWHERE;
            head = bits ? OP_IDENTITY : tail;
        } else {
            // In place of each element what its segment comes to so far. A function of the caller's may not take any value.
            const uint present = begin < there ? min(there - begin, (uint)BLOCK) : 0;
            UNROLL
            for (uint v = 0; v < BLOCK_AVECS; v++) {
                A x[AVEC];
                AVSTORE(stage[STAGE(own + v)], 0, x);
                UNROLL
                for (uint k = 0; k < AVEC; k++) {
                    const uint e = v * AVEC + k, starts_here = (e < 32 ? bits >> e : more >> (e - 32)) & 1;
                    tail = e < present ? OP(starts_here ? OP_IDENTITY : tail, x[k]) : tail;
                    x[k] = tail;
                }
                stage[STAGE(own + v)] = AVLOAD(0, x);
            }
            opens = bits ? begin + ctz_of(bits) : more ? begin + 32 + ctz_of(more) : NOWHERE;
            head = opens == NOWHERE ? tail : opens == begin ? OP_IDENTITY : results[PLACE(opens - 1)];
        }
#if ITEM_BLOCKS > 1
        if (b % 2 == 1) {
            join_here(results, &left_head, &left_tail, &left_opens, head, tail, opens);
        } else {
            left_head = head;
            left_tail = tail;
            left_opens = opens;
        }
#endif
#if ITEM_BLOCKS > 2
        if (b == 1) {
            half_head = left_head;
            half_tail = left_tail;
            half_opens = left_opens;
        }
#endif
    }
#if ITEM_BLOCKS > 2
    join_here(results, &half_head, &half_tail, &half_opens, left_head, left_tail, left_opens);
    head = half_head;
    tail = half_tail;
    opens = half_opens;
#elif ITEM_BLOCKS > 1
    head = left_head;
    tail = left_tail;
    opens = left_opens;
#endif
    // The right one of two nodes hands itself over to the left one.
    for (uint d = 1; d < WG; d <<= 1) {
        const uint place = item & (2 * d - 1);
        if (place == d) {
            heads[item] = head;
            tails[item] = tail;
            opened[item] = opens;
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
            join_here(results, &head, &tail, &opens, heads[item + d], tails[item + d], opened[item + d]);
        }
    }
#ifdef KEYED
#ifdef SHUFFLES
    if (item < sg_size()) {
        const ulong found = look_back_together(keys, n, state + 2, 1, 0, tile, spins, turn, sg_scratch);
#else
    if (item == 0) {
        const ulong found = look_back(keys, n, state + 2, 1, 0, tile, spins, turn);
#endif
        if (item == 0) {
            if (tile > 0 && speaks) {
                look_publish(state + 2, tile, LOOK_ALL, found + total, turn);
            }
            if (tile == tiles - 1) {
                count_base[count_offset] = found + total;
            }
            *preceding = found;
        }
    }
    // Item 0 alone needs it before the next barrier.
    const OFFSET_T high = item == 0 ? (OFFSET_T)(*preceding + total) : 0;
#endif
    if (item == 0) {
        if (last) {
            emit(out, count, high, tail);
        } else {
            HEADS[tile] = head;
            TAILS[tile] = tail;
            LASTS[tile] = high;
            FLAGS[tile] = opens != NOWHERE;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    // What ended in the tile.
#ifdef KEYED
    const OFFSET_T low = (OFFSET_T)*preceding;
    __global KEY* keys_out = keys_out_base + keys_out_offset;
    for (uint q = item; q < total; q += HELD_RUNS * WG) {
        uint place[HELD_RUNS];
        KEY key[HELD_RUNS];
        UNROLL
        for (uint h = 0; h < HELD_RUNS; h++) {
            place[h] = places[min(q + h * WG, total - 1)];
            key[h] = keys[base + place[h]];
        }
        UNROLL
        for (uint h = 0; h < HELD_RUNS; h++) {
            const uint run = q + h * WG;
            const OFFSET_T rank = low + run;
            if (run < total && rank + 1 < count) {
                keys_out[rank] = key[h];
            }
            // What the run before it comes to, if that began in the tile, too.
            if (run > 0 && run < total) {
                emit(out, count, rank, results[PLACE(place[h] - 1)]);
            }
        }
    }
#else
    if (CROWDED) {
        OFFSET_T rank = base + first > 0 ? rank_within(offsets, low, high, base + first - 1) : low;
        while (rank < high && offsets[rank] - base < end) {
            rank = rank_from(offsets, rank, high, offsets[rank]);
            const POS_T next = rank < high ? (POS_T)offsets[rank] - base : 0;
            if (next > 0 && next <= there) {
                emit(out, count, rank, results[PLACE((uint)next - 1)]);
            }
        }
    } else {
        for (OFFSET_T i = low + item; i + 1 < high; i += AT_ONCE * WG) {
            POS_T place[AT_ONCE], next[AT_ONCE];
            UNROLL
            for (uint h = 0; h < AT_ONCE; h++) {
                const OFFSET_T at = min(i + h * WG, high - 2);
                place[h] = offsets[at] - base;
                next[h] = offsets[at + 1] - base;
            }
            UNROLL
            for (uint h = 0; h < AT_ONCE; h++) {
                if (i + h * WG + 1 >= high) {
                    continue;
                }
                if (place[h] >= next[h]) {
                    out[i + h * WG] = empty;
                } else if (next[h] < there) {
                    emit(out, count, i + h * WG + 1, results[PLACE((uint)next[h] - 1)]);
                }
            }
        }
    }
#endif
}

// A node of scratch, or one that changes nothing where there is none.
static inline void node_at(
    __global const uchar* scratch, ulong nodes, ulong source, bool there, A* head, A* tail, OFFSET_T* last, uint* flagged)
{
    *head = there ? HEADS[source] : OP_IDENTITY;
    *tail = there ? TAILS[source] : OP_IDENTITY;
    *last = LASTS[source];
    *flagged = there ? FLAGS[source] : 0;
}

// Group g joins the nodes from + NODE_FAN * WG * g .. of `level` nodes to node to + g, an item NODE_FAN of them first. With
// `last` there is one group, and what is left is complete.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_nodes(
    __global uchar* scratch, const ulong nodes, const ulong from, const ulong level, const ulong to,
    COUNT_PARAMS, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __local A heads[WG], tails[WG];
    __local OFFSET_T lasts[WG];
    __local uint flags[WG];
    __global OUT* out = out_base + out_offset;
    const OFFSET_T count = COUNT;
    const uint item = get_local_id(0);
    A h[NODE_FAN], t[NODE_FAN];
    OFFSET_T l[NODE_FAN];
    uint f[NODE_FAN];
    UNROLL
    for (uint i = 0; i < NODE_FAN; i++) {
        const ulong node = (ulong)get_global_id(0) * NODE_FAN + i;
        node_at(scratch, nodes, from + min(node, level - 1), node < level, &h[i], &t[i], &l[i], &f[i]);
    }
    UNROLL
    for (uint d = 1; d < NODE_FAN; d <<= 1) {
        UNROLL
        for (uint i = 0; i < NODE_FAN; i += 2 * d) {
            join(&h[i], &t[i], &l[i], &f[i], h[i + d], t[i + d], l[i + d], f[i + d], out, count);
        }
    }
    heads[item] = h[0];
    tails[item] = t[0];
    lasts[item] = l[0];
    flags[item] = f[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < WG; d <<= 1) {
        if ((item & (2 * d - 1)) == 0) {
            join(&h[0], &t[0], &l[0], &f[0], heads[item + d], tails[item + d], lasts[item + d], flags[item + d], out, count);
            heads[item] = h[0];
            tails[item] = t[0];
            lasts[item] = l[0];
            flags[item] = f[0];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        if (last) {
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

// Nodes that await their right neighbours: one for each bit of the next one's number that is set.
#define DEPTH 34
typedef struct {
    A head[DEPTH], tail[DEPTH];
    OFFSET_T last[DEPTH];
    uint flagged[DEPTH], count;
} Carries;

// Joins the last two.
static inline void join_last(Carries* c, __global OUT* out, OFFSET_T count)
{
    const uint left = --c->count - 1, right = c->count;
    join(
        &c->head[left], &c->tail[left], &c->last[left], &c->flagged[left], c->head[right], c->tail[right], c->last[right],
        c->flagged[right], out, count);
}

// The place of the lowest bit that is set.
static inline uint ctz64(ulong bits) { return (uint)popcount((bits & (0ul - bits)) - 1); }

static inline void push(
    Carries* c, ulong number, A head, A tail, OFFSET_T last, uint flagged, __global OUT* out, OFFSET_T count)
{
    c->head[c->count] = head;
    c->tail[c->count] = tail;
    c->last[c->count] = last;
    c->flagged[c->count++] = flagged;
    for (; number & 1; number >>= 1) {
        join_last(c, out, count);
    }
}

// All become one, the first.
static inline void fold(Carries* c, __global OUT* out, OFFSET_T count)
{
    while (c->count > 1) {
        join_last(c, out, count);
    }
}

// Elements that are looked at together, in whole blocks: a bit for each.
#define GROUP 64
#define GROUP_BLOCKS (GROUP / BLOCK)
#define BLOCK_BITS (~0ul >> (64 - BLOCK))
// The first element of each block.
#define BLOCK_FIRSTS (~0ul / BLOCK_BITS)

// What each element's segment comes to so far, within its block. Blocks do not wait for one another.
static inline void scan_blocks(__global const T* in, ulong bits, A* sums)
{
    A tail[GROUP_BLOCKS];
    for (uint k = 0; k < BLOCK; k++) {
        UNROLL
        for (uint b = 0; b < GROUP_BLOCKS; b++) {
            const uint e = b * BLOCK + k;
            tail[b] = OP(k == 0 || (bits >> e & 1) ? OP_IDENTITY : tail[b], TAKEN(in[e]));
            sums[e] = tail[b];
        }
    }
}

// The same of the last elements of the input.
static inline void scan_part(__global const T* in, ulong bits, uint there, A* sums)
{
    A tail = OP_IDENTITY;
    for (uint e = 0; e < there; e++) {
        tail = OP(e % BLOCK == 0 || (bits >> e & 1) ? OP_IDENTITY : tail, TAKEN(in[e]));
        sums[e] = tail;
    }
}

// The sum of each block.
static inline void sum_blocks(__global const T* in, A* sums)
{
    A tail[GROUP_BLOCKS];
    UNROLL
    for (uint b = 0; b < GROUP_BLOCKS; b++) {
        tail[b] = OP_IDENTITY;
    }
    IN_ORDER
    for (uint k = 0; k < BLOCK; k++) {
        UNROLL
        for (uint b = 0; b < GROUP_BLOCKS; b++) {
            tail[b] = OP(tail[b], TAKEN(in[b * BLOCK + k]));
        }
    }
    UNROLL
    for (uint b = 0; b < GROUP_BLOCKS; b++) {
        sums[(b + 1) * BLOCK - 1] = tail[b];
    }
}

// The one item of group g walks through tile g, a group of blocks at a time.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_tiles(
    __global const T* restrict in_base, const ulong in_offset, const POS_T n,
    __global const S* restrict offsets_base, const ulong offsets_offset, COUNT_PARAMS, __global uchar* scratch,
    const ulong nodes, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __global const S* offsets = offsets_base + offsets_offset;
    __global OUT* out = out_base + out_offset;
    const OFFSET_T count = COUNT;
    const OFFSET_T tile = get_group_id(0);
    const POS_T base = (POS_T)tile * TILE, end = n - base > TILE ? base + TILE : n;
    OFFSET_T rank = RANKS[tile];
    Carries tree;
    tree.count = 0;
    // Where segments start, of an element how many offsets are at most its place.
    OFFSET_T ranks[GROUP];
    A sums[GROUP];
    for (POS_T p = base; p < end; p += GROUP) {
        const uint there = (uint)min((POS_T)GROUP, (POS_T)(end - p));
        __global const T* in = in_base + in_offset + p;
        OFFSET_T before = rank;
        ulong bits = 0;
        for (; rank < count; rank++) {
            const POS_T e = (POS_T)offsets[rank] - p;
            if (e >= there) {
                break;
            }
            bits |= 1ul << e;
            ranks[e] = rank + 1;
        }
        if (there < GROUP) {
            scan_part(in, bits, there, sums);
        } else if (bits & ~BLOCK_FIRSTS) {
            scan_blocks(in, bits, sums);
        } else {
            sum_blocks(in, sums);
        }
        Carries group;
        group.count = 0;
        for (uint begin = 0; begin < there; begin += BLOCK) {
            const uint block_end = min(begin + BLOCK, there);
            const A tail = sums[block_end - 1];
            A head = tail;
            ulong own = bits >> begin & BLOCK_BITS;
            const uint flagged = own != 0;
            if (flagged) {
                uint start = begin + ctz64(own);
                head = start == begin ? OP_IDENTITY : sums[start - 1];
                // Segments within the block.
                for (own &= own - 1; own != 0; own &= own - 1) {
                    const uint next = begin + ctz64(own);
                    emit(out, count, ranks[start], sums[next - 1]);
                    start = next;
                }
                before = ranks[start];
            }
            push(&group, begin / BLOCK, head, tail, before, flagged, out, count);
        }
        fold(&group, out, count);
        push(
            &tree, (p - base) / GROUP, group.head[0], group.tail[0], group.last[0], group.flagged[0], out, count);
    }
    fold(&tree, out, count);
    if (last) {
        emit(out, count, tree.last[0], tree.tail[0]);
    } else {
        HEADS[tile] = tree.head[0];
        TAILS[tile] = tree.tail[0];
        LASTS[tile] = tree.last[0];
        FLAGS[tile] = tree.flagged[0];
    }
}

// The one item joins all `level` nodes.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_nodes(
    __global uchar* scratch, const ulong nodes, const ulong from, const ulong level, const ulong to,
    COUNT_PARAMS, __global OUT* out_base, const ulong out_offset, const uint last)
{
    __global OUT* out = out_base + out_offset;
    const OFFSET_T count = COUNT;
    Carries tree;
    tree.count = 0;
    for (ulong node = 0; node < level; node++) {
        const ulong at = from + node;
        push(&tree, node, HEADS[at], TAILS[at], LASTS[at], FLAGS[at], out, count);
    }
    fold(&tree, out, count);
    emit(out, count, tree.last[0], tree.tail[0]);
}

#endif

#ifndef KEYED
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
#endif
