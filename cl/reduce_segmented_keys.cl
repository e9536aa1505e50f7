// Reduction by key on GPUs. For each run r of equal keys, with the indices b to e - 1: keys_out[r] = keys[b], and
// out[r] = x[b] op ... op x[e - 1] in the order of the tree of lib/segment_nodes.cl. count = the number of runs.
//
// Bytes: reads n keys and n elements once; writes a key and a result for each run.
//
//     segments_tiles: for each tile, by one work-group:
//         start to load the elements
//         load the keys; mark where runs start: a bit for each element
//         count the runs that start in the tile; publish the count
//         combine each line from left to right, from the identity at each start
//         join the lines of each work-item, then the work-items' nodes; where a run ends, keep its result
//         look back: how many runs start before the tile
//         store the tile's node, or the open run's result if there is one tile
//         store the keys of the runs that start in the tile, and the results of those that also end in it
//     segments_nodes: joins the tiles' nodes, level by level
//
// Sources: CUB's DeviceReduce::ReduceByKey; Merrill and Garland, "Single-pass parallel prefix scan with decoupled
// look-back", 2016.
#include "lib/segment_nodes.cl"
#include "lib/segment_tiles.cl"
#include "lib/equal.cl"
#include "lib/ticket.cl"

// Words of local memory to exchange counts: with shuffles one for each sub-group, else two for each work-item.
#define EXCHANGE (SHUFFLES ? WG / 32 + 1 : 2 * WG)
// Words that hold a bit for each element of a tile; the words of a work-item.
#define WORDS (TILE / 32)
#define ITEM_WORDS ((WORDS + WG - 1) / WG)
// Keys in 16 bytes; rows of such vectors in a tile, and those that a work-item has in flight.
#if KEY_BYTES == 1
#define KEY_VEC 16
#elif KEY_BYTES == 2
#define KEY_VEC 8
#elif KEY_BYTES == 4
#define KEY_VEC 4
#else
#define KEY_VEC 2
#endif
#define KEYV CAT(KEY, KEY_VEC)
#define KEY_ROWS (TILE / (WG * KEY_VEC))
#define HELD (KEY_ROWS < 4 ? KEY_ROWS : 4)
// Runs whose keys and results a work-item has in flight.
#define HELD_RUNS 4

#define LOOK_CONTEXT __global const KEY *keys, const OFFSET_T n
#define LOOK_PASS keys, n
#define LOOK_TURNS
#include "lib/lookback.cl"

static inline bool starts_run(__global const KEY* keys, OFFSET_T i) { return i == 0 || !equal(keys[i - 1], keys[i]); }

// Recomputes a tile's count, if its status word is still invalid after the last poll.
static __attribute__((noinline)) ulong look_missing(LOOK_CONTEXT, OFFSET_T tile, uint slot)
{
    const OFFSET_T first = tile * TILE, end = first + min((OFFSET_T)TILE, n - first);
    ulong count = 0;
    ROLLED
    for (OFFSET_T i = first; i < end; i++) {
        count += starts_run(keys, i);
    }
    return count;
}

// Loads the keys from position `e` on of the tile that starts at `base`.
static inline void load_keys(__global const KEY* keys, OFFSET_T base, uint e, KEY* own)
{
#ifdef ALIGNED
    const KEYV held = *(__global const KEYV*)(keys + base + e);
#else
    const KEYV held = CAT(vload, KEY_VEC)(0, keys + base + e);
#endif
    CAT(vstore, KEY_VEC)(held, 0, own);
}

// Returns the last key of the lane below. In lane 0, and without shuffles in every lane, it is `loaded`.
SG_INLINE KEY key_before(KEY last, KEY loaded, __local uint* sg_scratch)
{
    if (!SHUFFLES) {
        return loaded;
    }
    const KEY up = KEY_BYTES == 8 ? (KEY)sg_shuffle_up_u64(last, 1, sg_scratch)
                                  : (KEY)sg_shuffle_up_u32((uint)last, 1, sg_scratch);
    return sg_lane() == 0 ? loaded : up;
}

// Bit k of the result is set if own[k], at position e + k, starts a run.
static inline uint find_starts(const KEY* own, KEY before, OFFSET_T base, uint e, uint length)
{
    uint bits = base + e == 0 || !equal(before, own[0]);
    UNROLL
    for (uint k = 1; k < KEY_VEC; k++) {
        bits |= equal(own[k - 1], own[k]) ? 0 : 1u << k;
    }
    if (length < TILE) {
        bits &= e < length ? (1u << min(length - e, (uint)KEY_VEC)) - 1 : 0;
    }
    return bits;
}

// Puts the bits of the vector at position `e` into their word. Without shuffles, all words are 0 before.
SG_INLINE void put_starts(uint bits, uint e, __local uint* starts, __local uint* sg_scratch)
{
    uint word = bits << e % 32;
    if (SHUFFLES) {
        UNROLL
        for (uint d = 1; d < 32 / KEY_VEC; d *= 2) {
            word |= sg_shuffle_xor_u32(word, d, sg_scratch);
        }
        if (e % 32 == 0) {
            starts[e / 32] = word;
        }
    } else if (bits != 0) {
        atomic_or(&starts[e / 32], word);
    }
}

// Sets the bits of elements that start a run. All work-items call it, in uniform flow. Ends with a barrier.
INLINED void mark_starts(
    __global const KEY* keys, OFFSET_T base, OFFSET_T n, uint length, __local uint* starts, __local uint* sg_scratch)
{
    const uint item = get_local_id(0);
    if (!SHUFFLES) {
        clear_starts(starts);
    }
    for (uint v = 0; v < KEY_ROWS; v += HELD) {
        KEY before[HELD], own[HELD][KEY_VEC];
        if (length == TILE) {
            UNROLL
            for (uint h = 0; h < HELD; h++) {
                load_keys(keys, base, ((v + h) * WG + item) * KEY_VEC, own[h]);
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
            if (!SHUFFLES || sg_lane() == 0) {
                before[h] = keys[max(i, (OFFSET_T)1) - 1];
            }
        }
        UNROLL
        for (uint h = 0; h < HELD; h++) {
            const uint e = ((v + h) * WG + item) * KEY_VEC;
            const KEY left = key_before(own[h][KEY_VEC - 1], before[h], sg_scratch);
            put_starts(find_starts(own[h], left, base, e, length), e, starts, sg_scratch);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Scans one count of each work-item over the work-group. Returns the inclusive prefix; `all` becomes the sum.
INLINED uint scan_counts(uint own, uint* all, __local uint* exchange, __local uint* sg_scratch)
{
    const uint item = get_local_id(0);
    uint up_to = own;
    if (SHUFFLES) {
        const uint lanes = sg_size(), lane = sg_lane(), sub_group = item / lanes;
        for (uint d = 1; d < lanes; d *= 2) {
            const uint other = sg_shuffle_up_u32(up_to, d, sg_scratch);
            up_to += lane >= d ? other : 0;
        }
        if (lane == lanes - 1) {
            exchange[sub_group] = up_to;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        *all = 0;
        for (uint t = 0; t < WG / lanes; t++) {
            up_to += t < sub_group ? exchange[t] : 0;
            *all += exchange[t];
        }
    } else {
        uint from = 0;
        exchange[item] = own;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = 1; d < WG; d *= 2) {
            up_to += item >= d ? exchange[from + item - d] : 0;
            from = WG - from;
            exchange[from + item] = up_to;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        *all = exchange[from + WG - 1];
    }
    return up_to;
}

// Finds how many runs of the tile start before the elements of each word, and returns how many start in the tile. All
// work-items call it, in uniform flow. It does not end with a barrier.
INLINED uint rank_words(
    __local const uint* starts, __local uint* ranks, __local uint* exchange, __local uint* sg_scratch)
{
    const uint first = (uint)get_local_id(0) * ITEM_WORDS, end = min(first + ITEM_WORDS, (uint)WORDS);
    uint own = 0, all = 0;
    for (uint w = first; w < end; w++) {
        own += (uint)popcount(starts[w]);
    }
    uint rank = scan_counts(own, &all, exchange, sg_scratch) - own;
    for (uint w = first; w < end; w++) {
        ranks[w] = rank;
        rank += (uint)popcount(starts[w]);
    }
    return all;
}

// Lists the positions of the runs that start among the work-item's elements.
INLINED void list_starts(__local const uint* starts, __local const uint* ranks, __local ushort* positions)
{
    const uint first = (uint)get_local_id(0) * ITEM_ELEMENTS;
    for (uint w = first / 32; w < (first + ITEM_ELEMENTS + 31) / 32; w++) {
        const uint word = starts[w];
        uint rank = ranks[w] + (uint)popcount(word & ((1u << first % 32) - 1));
        uint bits = ITEM_ELEMENTS < 32 ? word & ((1u << ITEM_ELEMENTS % 32) - 1) << first % 32 : word;
        for (; bits != 0; bits &= bits - 1) {
            positions[rank++] = (ushort)(32 * w + ctz_of(bits));
        }
    }
}

// Work-item 0 stores in `preceding` how many runs start before the tile, and publishes the inclusive prefix. The last
// tile stores the number of all runs.
INLINED void look_back_runs(
    LOOK_CONTEXT, __global ulong* state, OFFSET_T tile, OFFSET_T tiles, uint total, uint spins, uint epoch,
    __global ulong* run_count, __local ulong* preceding, __local uint* sg_scratch)
{
    const uint item = get_local_id(0);
    if (item < (SHUFFLES ? sg_size() : 1)) {
        const ulong found = SHUFFLES ? look_back_together(LOOK_PASS, state + 2, 1, 0, tile, spins, epoch, sg_scratch)
                                     : look_back(LOOK_PASS, state + 2, 1, 0, tile, spins, epoch);
        if (item == 0) {
            if (tile > 0) {
                publish(state + 2, 1, 0, tile, STATUS_PREFIX, found + total, epoch);
            }
            if (tile == tiles - 1) {
                *run_count = found + total;
            }
            *preceding = found;
        }
    }
}

// Stores the keys of the `total` runs that start in the tile, and the results of those that also end in it. `low` is
// the number of runs before the tile.
INLINED void store_runs(
    __global const KEY* keys, OFFSET_T low, uint total, __local const ushort* positions, __local const A* results,
    __global KEY* keys_out, __global OUT* out, OFFSET_T count)
{
    for (uint q = get_local_id(0); q < total; q += HELD_RUNS * WG) {
        uint position[HELD_RUNS];
        KEY key[HELD_RUNS];
        UNROLL
        for (uint h = 0; h < HELD_RUNS; h++) {
            position[h] = positions[min(q + h * WG, total - 1)];
            key[h] = keys[position[h]];
        }
        UNROLL
        for (uint h = 0; h < HELD_RUNS; h++) {
            const uint run = q + h * WG;
            const OFFSET_T rank = low + run;
            if (run < total && rank + 1 < count) {
                keys_out[rank] = key[h];
            }
            // The result of the previous run, if that run started in the tile, too.
            if (run > 0 && run < total) {
                emit(out, count, rank, results[ELEMENT_SLOT(position[h] - 1)]);
            }
        }
    }
}

// `state` has 16 bytes for the atomic tile counter, then a status word for each tile. With `last` there is one tile,
// and its open run is complete.
KERNEL void segments_tiles(
    __global const T* restrict in_base, const ulong in_offset, const POS_T n, __global const KEY* keys_base,
    const ulong keys_offset, __global KEY* keys_out_base, const ulong keys_out_offset, __global ulong* count_base,
    const ulong count_offset, __global ulong* state, const OFFSET_T tiles, const uint spins, const uint epoch,
    COUNT_PARAMS, __global uchar* scratch, const ulong nodes, __global OUT* out_base, const ulong out_offset,
    const uint last)
{
    __local AV stage[ITEM_AVECS * WG];
    __local uint starts[WORDS], word_ranks[WORDS], first_starts[WG];
    __local A prefixes[WG], suffixes[WG];
    __local uint exchange[EXCHANGE], sg_scratch[SG_SCRATCH_WORDS], taken[1];
    __local ushort positions[TILE];
    __local ulong preceding[1];
    __local A* results = (__local A*)stage;
    __global const KEY* keys = keys_base + keys_offset;
    __global OUT* out = out_base + out_offset;
    const OFFSET_T count = offset_count(COUNT_ARGS), tile = take_tile(state, taken, tiles > 1);
    const POS_T base = (POS_T)tile * TILE;
    const uint length = n - base >= TILE ? TILE : (uint)(n - base);
    __global const T* in = in_base + in_offset + base;
    TV row[ROW_VECS];
    TileNode node;

    fetch_tile(in, length, stage, row);
    mark_starts(keys, base, n, length, starts, sg_scratch);
    const uint total = rank_words(starts, word_ranks, exchange, sg_scratch);
    // Work-item 0 publishes the count, and later the inclusive prefix. One tile has no status word.
    if (get_local_id(0) == 0 && tiles > 1) {
        publish(state + 2, 1, 0, tile, tile == 0 ? STATUS_PREFIX : STATUS_AGGREGATE, total, epoch);
    }
    stage_tile(in, length, stage, row);
    list_starts(starts, word_ranks, positions);
    reduce_lines(stage, starts, length, &node);
    join_items(results, &node, prefixes, suffixes, first_starts);
    look_back_runs(
        keys, n, state, tile, tiles, total, spins, epoch, count_base + count_offset, preceding, sg_scratch);
    // Work-item 0 alone reads `preceding` before the next barrier.
    const OFFSET_T high = get_local_id(0) == 0 ? (OFFSET_T)(*preceding + total) : 0;
    finish_tile(&node, high, tile, scratch, nodes, out, count, last);
    store_runs(
        keys + base, (OFFSET_T)*preceding, total, positions, results, keys_out_base + keys_out_offset, out, count);
}
