// Scan on GPUs in one launch over the elements: decoupled look-back over the levels of lib/spine.cl, in the order of
// scan.cl.
//
//     take a tile; load it
//     publish its aggregate; with SHUFFLES compute it before the scan, since others wait for it
//     scan the tile
//     lane groups, all at the same time:
//         lane group l, for each level l: poll the entries of level l before the tile's entry, in its group of 32
//         helpers, with SHUFFLES: take over the last entries of level 1; poll the 32 tiles of one entry each
//     lane group l, for each level l: tree scan of these entries' aggregates: prefix l of the tile
//     if the tile is the last of its group of 32, of the group of that group, ...: publish the group's aggregate
//     exclusive prefix of the tile = ((initial ... op prefix 2) op prefix 1) op prefix 0
//     store the results
//
// Publishing: status words hold aggregates, never prefixes. A tile publishes its own aggregate without waiting. The
// last tile of a tile group also publishes the group's aggregate, after it has waited for its own prefixes. This holds
// for groups of groups, too. The last tile of all publishes nothing, since no tile comes after it.
//
// Helpers: the status word of a tile group comes late, since its last tile publishes it only after that tile's polls.
// With SHUFFLES lane groups without a level may be helpers. They compute the aggregates of the last tile groups before
// the tile's own, from status words of tiles. So the tile does not wait for the words of these tile groups:
//
//     helper h:      polls the 32 tiles of tile group tile / 32 - 1 - h
//     lane group 1:  polls the tile groups before those, and takes those from the helpers
//
// Example: of 1000 tiles, tile 330 is in tile group 10. There are two levels, so 8 - 2 = 6 helpers. They compute tile
// groups 9, 8, ..., 4, and lane group 1 polls tile groups 0 to 3.
//
// Recomputation: if an entry is still invalid after `spins` polls, the work-item that polls it recomputes the aggregate
// alone. An entry of level l has 32^l tiles. The work-item polls the word of each of these tiles once. If a word is
// invalid, it computes the tile's aggregate from the elements, and polls the word again. If the word is still invalid,
// it publishes this aggregate. It does not publish the recomputed aggregate of a group. Recomputing an entry of level l
// reads the elements of at most 32^l tiles. A work-item has 32 / LANES entries, and may have to recompute all of them.
//
// Polled entries: a lane group with a level polls at most 31. A helper polls 32. So with two levels a tile polls at
// most 31 + 25 + 6 * 32 = 248 with SHUFFLES, else 31 + 31. An entry is one status word, or two if A has 8 bytes.
// wait_for_entries() polls each until it is valid, but at most `spins` times. Recomputation adds one or two polls for
// each tile.
//
// Source: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016.
#define IN_PARTS !SEGMENTED
#include "lib/ticket.cl"
#define STATUS_VALUES

// The bits of a value in the payload of status words, and back.
#if !defined(A_FLOAT)
static inline ulong bits_of_value(A x) { return (ulong)(A_UNSIGNED)x; }
static inline A value_of_bits(ulong bits) { return (A)bits; }
#elif A_BYTES == 8
static inline ulong bits_of_value(A x) { return as_ulong(x); }
static inline A value_of_bits(ulong bits) { return as_double(bits); }
#else
static inline ulong bits_of_value(A x) { return as_uint(x); }
static inline A value_of_bits(ulong bits) { return as_float((uint)bits); }
#endif
#include "lib/status_word.cl"

// With SHUFFLES the aggregate of a tile is computed before its scan. H200, 2^28 elements: u32 686 -> 628 us, f32
// 693 -> 644 us, u64 1.39 -> 1.22 ms. If CHUNKS_KNOWN, reduce_in_order() computes it in the order of scan.cl, and gives
// the aggregates of the chunks, too. Else reduce_in_any_order() computes it, in any order. Without SHUFFLES scan_tile()
// returns it, in the order of scan.cl even with EXACT.
#define CHUNKS_KNOWN (!EXACT || SEGMENTED)
#if SHUFFLES

// The aggregate in any order, for EXACT; valid in work-item 0. `sums` has LANE_GROUPS entries. All work-items call it,
// in uniform flow.
INLINED Partial reduce_in_any_order(const TILE_SPACE TV* vectors, __local Partial* sums, __local uint* words)
{
    const uint item = get_local_id(0);
    A total = reduce_vector(vectors[own_entry(0, TILE_STRIDE)], 0);
    UNROLL
    for (uint k = 1; k < ITEM_VECTORS; k++) {
        total = OP(total, reduce_vector(vectors[own_entry(k, TILE_STRIDE)], 0));
    }
    UNROLL
    for (uint d = 1; d < LANES; d *= 2) {
        total = OP(total, shuffle_xor_acc(total, d, words));
    }
    if (item % LANES == 0) {
        STORE_PARTIAL(sums[item / LANES], partial(total, 0));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        UNROLL
        for (uint g = 1; g < LANE_GROUPS; g++) {
            total = OP(total, value_of(LOAD_PARTIAL(sums[g])));
        }
    }
    return partial(total, 0);
}

// Returns the tile's aggregate, in the order of scan.cl. Writes the aggregates of chunks to chunks[0..CHUNKS), and
// their prefixes after them. All work-items call it, in uniform flow.
INLINED Partial reduce_in_order(
    const TILE_SPACE TV* vectors, const uint* heads, __local Partial* chunks, __local A* exchange, __local uint* words)
{
    UNROLL
    for (uint r = 0; r < ROWS; r += BATCH) {
        A unused[BATCH * LANE_VECTORS];
        uint unused_heads[LANE_VECTORS];
        scan_rows(vectors, heads, r, unused, unused_heads, false, chunks, exchange, words);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scan_chunks(chunks, exchange, words);
}
#endif

// Appends partial k to a tree of neighbours, after partials 0 .. k - 1. Returns the aggregate of the largest balanced
// tree that ends with partial k. After 2^m pushes this is the aggregate of all partials. `stack` is a binary counter:
// if bit b of the number of pushes is set, stack[b] has the aggregate of 2^b contiguous partials.
//
//     pushes    stack[2]        stack[1]      stack[0]
//     6         x[0] .. x[3]    x[4], x[5]    unused
//     7         x[0] .. x[3]    x[4], x[5]    x[6]
//
// Push 8 joins x[7] with stack[0], stack[1] and stack[2], like a carry, and stores the aggregate of all in stack[3].
static inline Partial push(Partial* stack, uint k, Partial x)
{
    uint b = 0;
    ROLLED
    for (; k >> b & 1; b++) {
        x = join(stack[b], x);
    }
    stack[b] = x;
    return x;
}

// The aggregate of a tile: from its status word, or recomputed by one work-item, which then publishes it.
static inline Partial recompute_tile(
    ELEMENT_PARAMS, OFFSET_T n, volatile __global ulong* words, OFFSET_T tile, uint epoch HEAD_PARAMS)
{
    Partial stack[12], total = identity_partial();
    if (poll_status(words, tile, &total, epoch)) {
        return total;
    }
    ROLLED
    for (uint q = 0; q < TILE_VECTORS; q++) {
        const uint heads = vector_heads(true, tile * TILE, q * VEC, n HEAD_PASS);
        const A vector = reduce_vector(vector_at(tile * TILE + q * VEC, n, ELEMENTS), heads);
        total = push(stack, q, partial(vector, heads != 0));
    }
    // In place, the tile's own work-group may store results while this loop reads elements. The two sides order their
    // accesses by fences:
    //
    //     the tile's work-group:  store the status word;  fence;  store the results
    //     this work-item:         read the elements;      fence;  poll the status word
    //
    // So if the loop read a result, this poll finds a valid word, and its value replaces `total`. If the poll finds an
    // invalid word, the loop read elements alone, and `total` is right. Out of place this fence is not needed, but the
    // code does not test for that.
    fence_device();
    if (!poll_status(words, tile, &total, epoch)) {
        store_status(words, tile, total, epoch);
    }
    return total;
}

// The aggregate of entry `index` of a level, from the aggregates of its 32^level tiles: in each group of 32,
// prefix(31) op x[31].
static __attribute__((noinline)) Partial recompute_entry(
    ELEMENT_PARAMS, OFFSET_T n, volatile __global ulong* words, OFFSET_T index, uint level, uint epoch HEAD_PARAMS)
{
    Partial stack[LEVELS * 5], total = identity_partial();
    const OFFSET_T first = index << (5 * level), count = (OFFSET_T)1 << (5 * level);
    ROLLED
    for (OFFSET_T k = 0; k < count; k++) {
        total = recompute_tile(ELEMENTS, n, words, first + k, epoch HEAD_PASS);
        OFFSET_T q = k;
        uint l = 0;
        ROLLED
        for (; l < level && q % 32 == 31; l++) {
            Partial prefix = identity_partial();
            ROLLED
            for (uint b = 0; b < 5; b++) {
                prefix = join(stack[l * 5 + b], prefix);
            }
            total = join(prefix, total);
            q /= 32;
        }
        if (l < level) {
            push(stack + l * 5, q % 32, total);
        }
    }
    return total;
}

// The number of levels of lib/spine.cl whose entries a tile waits for: 1 for up to 32 tiles.
static inline uint levels_of(OFFSET_T tiles)
{
    uint levels = 1;
    ROLLED
    for (OFFSET_T above = (tiles - 1) / 32; above > 0; above /= 32) {
        levels++;
    }
    return levels;
}

// Entries of a group per lane.
#define LANE_ENTRIES (32 / LANES)

// The work of a lane group: it combines the aggregates of `count` entries of one level, from entry `first` on.
//
//     lane group l, for a level l:  the entries of level l before the tile's entry, in its group of 32
//     helper h:                     the 32 tiles of tile group tile / 32 - 1 - h, which are entries of level 0
//     other lane groups:            none
//
// Lane group 1 has `count` tile groups, and polls the first `polled` of them. The helpers compute the others: helper 0
// the last one, helper 1 the one before, and so on. Lane group 1 takes these aggregates in add_recent_groups().
typedef struct {
    bool has_level;
    bool is_helper;
    uint helper;       // h
    uint level;        // the level of its entries
    OFFSET_T words_at; // the status word of entry 0 of the level
    OFFSET_T first;    // its first entry
    uint count;        // the number of its entries
    uint polled;       // its first ones, whose status words it polls
} Work;

static inline Work work_of(uint lane_group, OFFSET_T tile, OFFSET_T tiles, uint levels)
{
    Work work;
    const uint helpers = SHUFFLES ? min(LANE_GROUPS - levels, (uint)(tile / 32 % 32)) : 0;
    work.has_level = lane_group < levels;
    work.helper = SHUFFLES ? lane_group - levels : 0;
    work.is_helper = SHUFFLES ? lane_group >= levels && work.helper < helpers : false;
    work.level = work.is_helper ? 0 : min(lane_group, levels);
    const OFFSET_T end = work.is_helper        ? tile / 32 * 32 - work.helper * 32
                         : lane_group < levels ? tile >> (5 * work.level)
                                               : 0;
    work.count = work.is_helper ? 32 : end % 32;
    work.first = end - work.count;
    work.polled = work.count - (lane_group == 1 ? helpers : 0);
    work.words_at = 0;
    OFFSET_T count = tiles;
    ROLLED
    for (uint l = 0; l < work.level; l++) {
        work.words_at += count;
        count = (count - 1) / 32 + 1;
    }
    return work;
}

// WORK_FIRST: the kernel computes `work` before it loads the tile. 2^28 elements, without -> with:
//
//     u64                      H100 1611 -> 1586 us, H200 1255 -> 1240 us
//     u32 at offsets           H200 859 -> 852 us
//     u32 by keys              H100 1206 -> 1222 us
//     u32 without segments     H200 629 -> 645 us
#if defined(BY_OFFSETS) || (A_BYTES == 8 && !SEGMENTED)
#define WORK_FIRST 1
#else
#define WORK_FIRST 0
#endif

static inline void choose(Partial x, CHOICE A* value, CHOICE uint* head)
{
    *value = value_of(x);
    if (SEGMENTED) {
        *head = head_of(x);
    }
}

// The aggregates of the lane's entries: from their status words or, after too many polls, recomputed. Entries that the
// lane does not poll get the identity.
INLINED void wait_for_entries(
    ELEMENT_PARAMS, OFFSET_T n, volatile __global ulong* status, const Work work, uint spins, uint epoch, A* value,
    uint* heads, __local A* exchange, __local uint* words HEAD_PARAMS)
{
    const uint lane = (uint)get_local_id(0) % LANES;
    for (uint k = 0; k < LANE_ENTRIES; k++) {
        CHOICE A* chosen = choose_value(value + k, exchange);
        CHOICE uint* chosen_head = choose_word(heads + k, words);
        const uint own = lane * LANE_ENTRIES + k;
        Partial found = identity_partial();
        choose(found, chosen, chosen_head);
        if (own < work.polled) {
            const OFFSET_T entry = work.first + own;
            bool valid = false;
            ROLLED
            for (uint poll = 0; poll < poll_limit(spins) && !valid; poll++) {
                valid = poll_status(status, work.words_at + entry, &found, epoch);
                if (valid) {
                    choose(found, chosen, chosen_head);
                }
            }
            if (!valid) {
                found = recompute_entry(ELEMENTS, n, status, entry, work.level, epoch HEAD_PASS);
                choose(found, chosen, chosen_head);
            }
        }
        value[k] = *chosen;
        heads[k] = SEGMENTED ? *chosen_head : 0;
    }
}

// Lane group 1 receives the aggregates that the helpers compute, by way of `recent`. Its last entry is from helper 0,
// the one before from helper 1, and so on. All work-items call it, in uniform flow.
INLINED void add_recent_groups(
    const Work work, A* value, uint* heads, __local Partial* recent, __local A* exchange, __local uint* words)
{
    const uint lane = (uint)get_local_id(0) % LANES, lane_group = (uint)get_local_id(0) / LANES;
    A total[LANE_ENTRIES], prefix[LANE_ENTRIES];
    uint total_heads[LANE_ENTRIES], prefix_heads[LANE_ENTRIES];
    UNROLL
    for (uint k = 0; k < LANE_ENTRIES; k++) {
        total[k] = value[k];
        total_heads[k] = heads[k];
        prefix_heads[k] = 0;
    }
    scan_lanes(1, LANE_ENTRIES, total, total_heads, prefix, prefix_heads, exchange, words);
    if (work.is_helper && lane == LANES - 1) {
        const Partial before_last = partial(prefix[LANE_ENTRIES - 1], prefix_heads[LANE_ENTRIES - 1]);
        const Partial group = join(before_last, partial(value[LANE_ENTRIES - 1], heads[LANE_ENTRIES - 1]));
        STORE_PARTIAL(recent[work.helper], group);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < LANE_ENTRIES; k++) {
        const uint own = lane * LANE_ENTRIES + k;
        if (lane_group == 1 && own >= work.polled && own < work.count) {
            const Partial group = LOAD_PARTIAL(recent[work.count - 1 - own]);
            value[k] = value_of(group);
            heads[k] = head_of(group);
        }
    }
}

// The tile's prefix of each level goes to level_prefix[level]. The last tile of a tile group publishes the group's
// aggregate here, before any result is stored, since others wait for it. `total` is the tile's aggregate. All
// work-items call it, in uniform flow.
//
// The aggregate of a tile group needs only the tile's prefix of level 0. But in two of three cases all lane groups
// reach a barrier after their last poll and before the publish. So the publish also waits for the polls of other levels
// and of helpers:
//
//     SHUFFLES:                 the barrier is in add_recent_groups()
//     no SHUFFLES, LANES > 1:   barriers are in scan_lanes()
//     no SHUFFLES, LANES == 1:  there is no barrier, so the publish waits for level 0 alone
//
// With two levels, lane group 1 polls all earlier tile groups; with SHUFFLES helpers take over the last six.
INLINED void scan_levels(
    const Work work, A* value, uint* heads, volatile __global ulong* status, Partial total, OFFSET_T tile,
    OFFSET_T tiles, uint epoch, __local Partial* level_prefix, __local A* exchange, __local uint* words)
{
    const uint lane = (uint)get_local_id(0) % LANES, lane_group = (uint)get_local_id(0) / LANES;
    A prefix[LANE_ENTRIES];
    uint prefix_heads[LANE_ENTRIES];
    for (uint k = 0; k < LANE_ENTRIES; k++) {
        prefix_heads[k] = 0;
    }
    scan_lanes(1, LANE_ENTRIES, value, heads, prefix, prefix_heads, exchange, words);
    const OFFSET_T groups = (tiles - 1) / 32 + 1;
    for (uint k = 0; k < LANE_ENTRIES; k++) {
        if (work.has_level && lane * LANE_ENTRIES + k == work.count) {
            const Partial own = partial(prefix[k], prefix_heads[k]);
            STORE_PARTIAL(level_prefix[lane_group], own);
            if (lane_group == 0 && work.count == 31 && tile / 32 + 1 < groups) {
                publish(status, tiles + tile / 32, join(own, total), tile, epoch);
            }
        }
    }
}

// Publishes the aggregates of the groups that end with `tile`, from level 2 on. Work-item 0 calls it. No barrier
// follows, so other work-items may store results before these publishes. In place this is safe: recompute_entry() reads
// no words of groups. It polls the words of tiles, and each tile publishes its own word before it stores a result.
static inline void publish_groups(
    volatile __global ulong* words, __local const Partial* level_prefix, Partial total, OFFSET_T tile, OFFSET_T tiles,
    uint epoch)
{
    const OFFSET_T groups = (tiles - 1) / 32 + 1;
    Partial group = join(LOAD_PARTIAL(level_prefix[0]), total);
    OFFSET_T q = tile / 32, at = tiles, count = groups;
    ROLLED
    for (uint level = 1; level + 1 < LEVELS && q % 32 == 31; level++) {
        group = join(LOAD_PARTIAL(level_prefix[level]), group);
        at += count;
        count = (count - 1) / 32 + 1;
        q /= 32;
        if (q + 1 < count) {
            publish(words, at + q, group, tile, epoch);
        }
    }
}

// `state` has 16 bytes for the atomic tile counter, then the status words of all levels. The host chooses its memory:
//
//     lib/ticket.cl uses the counter:  scratch, which the host clears before the first launch of a call
//     the queue is out-of-order:       likewise
//     the input arrives in parts:      likewise, and all launches of the call use the same words
//     more than 4 MiB are needed:      likewise
//     else:                            a buffer that the queue keeps for many launches, each with a new epoch
//
// The kept buffer is cleared when it is new, not between launches. Epochs begin with 1, so a cleared word is invalid.
// After epoch 2^20 - 1, or after a failed launch, the host starts again with a new buffer. The limit 2^20 - 1 is that
// of LOOK_TURNS, whose launches share the buffer and the epochs (lib/status_word.cl).
//
// There are n results. An exclusive scan without segments may have n + 1: the last one is `initial` op the aggregate of
// the whole input.
KERNEL SG_KERNEL void scan_look_back(
    INPUT_PARAMS, LENGTH_PARAMS, __global OUT* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global ulong* state, const OFFSET_T tiles, const A initial, const uint inclusive,
    const uint in_place, const uint spins, const uint epoch HEAD_PARAMS)
{
    __local Partial chunks[2 * CHUNKS];
    __local Partial level_prefix[LANE_GROUPS];
    __local Partial recent[SHUFFLES ? LANE_GROUPS : 1];
    __local A exchange[EXCHANGE];
    __local uint words[WORDS];
    __local uint bits[BITS_WORDS];
    __local uint taken[1];
    PREFIX_SPACE A prefix[ITEM_VECTORS * PREFIX_STRIDE];
    TILE_SPACE TV vectors[ITEM_VECTORS * TILE_STRIDE];
    TAKE_LENGTH
#ifndef SOURCE
    __global const T* x = in_base + in_offset;
#endif
    volatile __global ulong* status = state + 2;
    const uint item = get_local_id(0);
    const OFFSET_T tile = take_tile(state, taken, tiles > 1);
#ifdef LENGTH_T
    if (tile >= OWN_TILES) {
        return;
    }
#endif
    uint levels;
    Work work;
    if (WORK_FIRST) {
        levels = levels_of(tiles);
        work = work_of(item / LANES, tile, tiles, levels);
    }
    uint heads[HEAD_WORDS], prefix_heads[LANE_VECTORS];
    load_tile(ELEMENTS, tile, n, vectors, bits, words, heads HEAD_PASS);

    Partial total;
#if SHUFFLES
    total = CHUNKS_KNOWN ? reduce_in_order(vectors, heads, chunks, exchange, words)
                         : reduce_in_any_order(vectors, level_prefix, words);
#else
    total = scan_tile(vectors, heads, prefix, prefix_heads, false, chunks, exchange, words);
#endif
    if (item == 0 && tile + 1 < tiles) {
        publish(status, tile, total, tile, epoch);
        if (in_place) {
            // A work-group that reads results in place of elements sees this status word afterwards.
            fence_device();
        }
    }
    if (SHUFFLES) {
        const Partial scanned =
            scan_tile(vectors, heads, prefix, prefix_heads, CHUNKS_KNOWN, chunks, exchange, words);
        total = CHUNKS_KNOWN ? total : scanned;
    }

    if (!WORK_FIRST) {
        levels = levels_of(tiles);
        work = work_of(item / LANES, tile, tiles, levels);
    }
    A value[LANE_ENTRIES];
    uint value_heads[LANE_ENTRIES];
    wait_for_entries(ELEMENTS, n, status, work, spins, epoch, value, value_heads, exchange, words HEAD_PASS);
    if (SHUFFLES) {
        add_recent_groups(work, value, value_heads, recent, exchange, words);
    }
    scan_levels(work, value, value_heads, status, total, tile, tiles, epoch, level_prefix, exchange, words);
    if (item == 0 && tile + 1 < tiles && in_place) {
        publish_dropped(status, tile, total, tile, epoch);
    }
    // In place, the publish of the tile's aggregate comes before the results overwrite the input.
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

    A tile_prefix = initial;
    ROLLED
    for (uint l = levels; l > 0; l--) {
        tile_prefix = extend(initial, tile_prefix, LOAD_PARTIAL(level_prefix[l - 1]));
    }
    if (item == 0 && tile % 32 == 31) {
        publish_groups(status, level_prefix, total, tile, tiles, epoch);
    }
    store_tile(
        out_base + out_offset, tile * TILE, OUTPUTS, vectors, heads, prefix, prefix_heads, chunks, initial, tile_prefix,
        inclusive);
}
