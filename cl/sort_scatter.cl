// sort_scatter on GPUs: to[below[d] + prefix[d] + rank] = key, for each key, with its digit d:
//
//     below[d]:   the number of keys with a lower digit
//     prefix[d]:  the number of keys with digit d in earlier tiles
//     rank:       the number of keys with digit d that come before this key in its tile
//
// With SEGMENTS only keys of the tile's segment count, and the index of the segment's first key is added. below[] comes
// from `totals`, whose contents differ:
//
//     with look-back:     totals[pass][d] is below[d], from sort_histograms
//     without look-back:  totals[d] is the number of keys with digit d, from sort_offsets. load_offsets() scans
//                         them for each part, which gives below[].
//
// Bytes: reads and writes keys and values once. With look-back a tile has RADIX status words. Tile 0 writes each once
// and reads none. Any other tile writes each twice, and for each digit reads LOOK_AHEAD words or more of earlier tiles.
//
//     for each tile:
//         load keys:                the keys of a work-item are one sub-group's width apart
//         rank keys:                by sub-group ballots, with SG_LOCAL by masks in local memory; a counter for
//                                   each digit and sub-group
//         publish:                  the tile's counts of all digits, with look-back
//         scan:                     counters become positions in the tile; position = counter + rank in the sub-group
//         scatter in local memory:  tile[position] = key
//         look back:                offsets[d] = below[d] + prefix[d] - position of the first key with digit d
//         scatter in global memory: to[offsets[d] + position] = tile[position]
//         values:                   likewise
//
// With VALUES_ASIDE, asynchronous copies bring a tile's values to local memory (lib/aside.cl) while its keys are
// ranked.
//
// With look-back, if a tile's count is still invalid after `spins` polls, the waiting work-item recomputes it from the
// tile's keys. The recomputed count is right, since a pass never writes the buffer that it reads.
//
// Adinets and Merrill 2022; CUB's AgentRadixSortOnesweep.

// Each sub-group has a row of RADIX counters. The width of sub-groups, sg_size(), is known only at run time, and there
// are WG / sg_size() rows in use. Local memory has ROWS rows, for the narrowest possible sub-groups: these have
// MIN_LANES lanes. So rows from WG / sg_size() on are unused. The size of a counter depends on the sub-group back end
// and on MIN_LANES, not on sg_size():
//
//     SG_LOCAL              32 bits, for atomics
//     else, MIN_LANES < 32  16 bits, to save local memory; enough, since a tile has fewer than 2^16 keys
//     else                  32 bits
#define ROWS ((WG + MIN_LANES - 1) / MIN_LANES)
#if SG_BACKEND == SG_LOCAL
#define COUNTER uint
// No unrolling: compilers for CPUs take long to unroll loops with barriers.
#define UNROLL
#elif MIN_LANES < 32
#define COUNTER ushort
#define UNROLL _Pragma("unroll")
#else
#define COUNTER uint
#define UNROLL _Pragma("unroll")
#endif
// A ballot is one instruction on some GPUs, and many instructions elsewhere.
#if SG_BACKEND == SG_PTX || SG_BACKEND == SG_AMDGCN
#define UNROLL_BALLOTS _Pragma("unroll")
#else
#define UNROLL_BALLOTS _Pragma("unroll 1")
#endif
// One array in local memory, `pool`, has three uses in turn. First it has the counters, followed with SG_LOCAL by a
// mask of lanes for each counter. Then it has the tile's keys, and at last the tile's values.
#define RANK_WORDS (SG_BACKEND == SG_LOCAL ? 2 * ROWS * RADIX : MIN_LANES < 32 ? ROWS * RADIX / 2 : ROWS * RADIX)
#define TILE_WORDS (TILE * (VALUE_BYTES > KEY_BYTES ? VALUE_BYTES : KEY_BYTES) / 4)
#define POOL_WORDS (RANK_WORDS > TILE_WORDS ? RANK_WORDS : TILE_WORDS)

// Digits of a work-item: item * OWN + o. If WG == RADIX, each work-item has one digit, so neighbours access
// neighbouring status words. Functions move a pointer to the work-item's first digit or key, so that their loops reach
// the others by constant offsets. With an index for each one, ptxas takes up to 15 registers more.
#define OWN (RADIX / WG)

// Position k of a work-item's keys in the tile; two positions share a word.
#define PAIRS ((ITEMS + 1) / 2)
#define POSITION(positions, k) ((positions)[(k) / 2] >> (k) % 2 * 16 & 0xffff)
#define ADD_POSITION(positions, k, more) ((positions)[(k) / 2] += (uint)(more) << (k) % 2 * 16)

// A work-item, its lane and sub-group, and the position of its first key in a tile; the others follow `lanes` apart.
typedef struct {
    uint item, lane, row, lanes, first;
} lane_t;

INLINED lane_t find_lane(void)
{
    lane_t me;
    me.item = get_local_id(0);
    me.lane = sg_lane();
    me.row = sg_id();
    me.lanes = sg_size();
    me.first = me.row * me.lanes * ITEMS + me.lane;
    return me;
}

// Loads the tile at `base`, which has `len` keys. Only the last tile of all keys, or of a segment, may have fewer than
// TILE. Then copies of `padding`, a key of the highest digit, come after its keys. So they get the positions from `len`
// on, which are not written. They are part of the tile's count of the highest digit, but no other tile uses this count.
// With look-back this count, or its inclusive prefix, may even overflow into the two highest bits of its status word.
// So at the end of a pass this word can have another state than that of a prefix (lib/status_word.cl).
INLINED void load_keys(
    KEY* keys, __global const KEY* from, const OFFSET_T base, const uint len, const KEY padding, const lane_t* me)
{
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        const uint i = me->first + k * me->lanes;
        keys[k] = i < len ? from[base + i] : padding;
    }
}

// Returns the rank of a key among the sub-group's keys with its digit. Keys of earlier calls come first, then those of
// lower lanes in this call. Adds the keys of this call to the counters.
INLINED uint rank_key(__local COUNTER* counts, const uint digit, const lane_t* me, __local uint* sg_scratch)
{
    const uint slot = me->row * RADIX + digit;
    if (SG_BACKEND == SG_LOCAL) {
        volatile __local uint* masks = (volatile __local uint*)counts + ROWS * RADIX;
        const uint bit = 1u << me->lane;
        atomic_or(masks + slot, bit);
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint same = masks[slot], before = counts[slot];
        barrier(CLK_LOCAL_MEM_FENCE);
        atomic_xor(masks + slot, bit);
        atomic_inc((volatile __local uint*)counts + slot);
        return before + popcount(same & (bit - 1));
    } else {
        ulong same = ~0ul;
        UNROLL_BALLOTS
        for (uint b = 0; b < 8; b++) {
            same &= sg_alike(digit & (1u << b), sg_scratch);
        }
        const uint below = sg_rank(same), before = counts[slot];
        sg_barrier();
        if (below == 0) {
            counts[slot] = (COUNTER)(before + (uint)popcount(same));
        }
        sg_barrier();
        return before + below;
    }
}

// Sets the position of each key to its rank among the sub-group's keys with the same digit. `pool` gets a counter for
// each digit and sub-group.
INLINED void rank_keys(
    uint* positions, const KEY* keys, const digit_t* digit, __local uint4* pool, const lane_t* me,
    __local uint* sg_scratch)
{
    ROLLED
    for (uint i = me->item; i < RANK_WORDS / 4; i += WG) {
        pool[i] = (uint4)(0);
    }
    UNROLL
    for (uint k = 0; k < PAIRS; k++) {
        positions[k] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        ADD_POSITION(positions, k, rank_key((__local COUNTER*)pool, digit_in(keys[k], digit), me, sg_scratch));
        OPAQUE_4(positions[k / 2]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Sets own[o] to the tile's count of the work-item's digit o; returns their sum.
INLINED uint sum_counts(uint* own, __local const COUNTER* counts, const lane_t* me)
{
    counts += me->item * OWN;
    uint all = 0;
    UNROLL
    for (uint o = 0; o < OWN; o++) {
        const uint earlier = all;
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            all += r < WG / me->lanes ? counts[r * RADIX + o] : 0;
        }
        own[o] = all - earlier;
    }
    return all;
}

// The sum of x over the work-items before this one. All work-items call it; `sums` has an element for each sub-group.
INLINED uint sum_before(const uint x, const lane_t* me, __local uint* sums, __local uint* sg_scratch)
{
    uint sum = x;
    UNROLL
    for (uint d = 1; d < me->lanes; d *= 2) {
        const uint more = sg_shuffle_up_u32(sum, d, sg_scratch);
        sum += me->lane >= d ? more : 0;
    }
    if (me->lane == me->lanes - 1) {
        sums[me->row] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint before = sum - x;
    UNROLL
    for (uint r = 0; r < ROWS; r++) {
        before += r < me->row ? sums[r] : 0;
    }
    return before;
}

// Turns the counters of the work-item's digits into the positions of their first keys. The tile's keys with digit o
// begin at position starts[o].
INLINED void scan_counts(uint* starts, __local COUNTER* counts, uint position, const lane_t* me)
{
    counts += me->item * OWN;
    UNROLL
    for (uint o = 0; o < OWN; o++) {
        starts[o] = position;
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            if (r < WG / me->lanes) {
                const uint count = counts[r * RADIX + o];
                counts[r * RADIX + o] = position;
                position += count;
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Adds to the rank of each key the position of the first key that has the same digit and sub-group. The sum is the
// key's position in the tile, where it is stored.
INLINED void scatter_keys_local(
    uint* positions, KEY* keys, const digit_t* digit, __local uint4* pool, const lane_t* me)
{
    __local const COUNTER* counts = (__local const COUNTER*)pool;
    __local KEY* tile = (__local KEY*)pool;
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        OPAQUE_KEY(keys[k]);
        ADD_POSITION(positions, k, counts[me->row * RADIX + digit_in(keys[k], digit)]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        tile[POSITION(positions, k)] = keys[k];
    }
}

// Writes the tile's `len` keys. If `whole`, writes all TILE keys without a test for each, so that the loads from local
// memory do not wait for one another. The digits of the keys stay in `digits`, four in a word, for the values. Without
// values, the loop for a tile that is not whole is not unrolled.
INLINED void scatter_keys(
    __global KEY* to, __local const KEY* tile, __local const OFFSET_T* offsets, const digit_t* digit, uint* digits,
    const bool whole, const uint len, const int keep, const lane_t* me)
{
    if (VALUE_BYTES == 0 && !whole) {
        ROLLED
        for (uint i = me->item; i < len; i += WG) {
            to[offsets[digit_in(tile[i], digit)] + i] = tile[i];
        }
        return;
    }
    tile += me->item;
    UNROLL
    for (uint k = 0; k < (ITEMS + 3) / 4; k++) {
        digits[k] = 0;
    }
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        const uint i = k * WG + me->item;
        const KEY key = tile[k * WG];
        const uint d = digit_in(key, digit);
        digits[k / 4] |= d << k % 4 * 8;
        if (whole || (i < len && keep)) {
            to[offsets[d] + i] = key;
        }
    }
}

#ifdef VALUES_ASIDE
#define VALUES_HELD 0
// Starts the copies of the values of the tile at `base` to local memory.
INLINED void copy_values(
    const values_t* values, const OFFSET_T base, const uint len, __local VALUE* aside, const lane_t* me)
{
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        const uint i = me->first + k * me->lanes;
        if (values->are_indices) {
            aside[i] = (VALUE)(base + i);
        } else if (i < len) {
            copy_async(VALUE_BYTES, aside + i, values->from + base + i);
        }
    }
}
INLINED void await_values(void) { await_copies(); }
#else
#define VALUES_ASIDE 0
// Values pass through registers.
#define VALUES_HELD (VALUE_BYTES > 0)
INLINED void copy_values(
    const values_t* values, const OFFSET_T base, const uint len, __local VALUE* aside, const lane_t* me)
{
}
INLINED void await_values(void) {}
#endif

// Loads the values of the tile at `base` to registers.
INLINED void load_values(VALUE* held, const values_t* values, const OFFSET_T base, const uint len, const lane_t* me)
{
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        const uint i = min(me->first + k * me->lanes, len - 1);
        held[k] = values->are_indices ? (VALUE)(base + i) : values->from[base + i];
    }
}

// Puts the values where their keys were put.
INLINED void scatter_values_local(
    __local VALUE* tile, const uint* positions, const VALUE* held, __local const VALUE* aside, const lane_t* me)
{
    aside += me->first;
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        tile[POSITION(positions, k)] = VALUES_ASIDE ? aside[k * me->lanes] : held[k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Writes the tile's `len` values; all TILE of them without a test for each, if `whole`.
INLINED void scatter_values(
    __global VALUE* to, __local const VALUE* tile, __local const OFFSET_T* offsets, const uint* digits,
    const bool whole, const uint len, const lane_t* me)
{
    tile += me->item;
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        const uint i = k * WG + me->item;
        if (whole || i < len) {
            to[offsets[digits[k / 4] >> k % 4 * 8 & 255] + i] = tile[k * WG];
        }
    }
}

// Sets next[o], for the work-item's digit o: the index to which the part's first key with that digit goes.
INLINED void load_offsets(
    OFFSET_T* next, __global const OFFSET_T* table, __global const OFFSET_T* totals, const part_t* part,
    __local OFFSET_T* offsets, __local OFFSET_T* offset_sums, const lane_t* me)
{
    for (uint d = me->item; d < RADIX; d += WG) {
        offsets[d] = totals[total_of(part, d)];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    scan_digits(offsets, offset_sums);
    UNROLL
    for (uint o = 0; o < OWN; o++) {
        const uint d = me->item * OWN + o;
        next[o] = part->origin + offsets[d] + table[cell_of(part, d)];
    }
}

// Computes `offsets`, and adds the tile's counts to next[].
INLINED void advance_offsets(
    OFFSET_T* next, const uint* own, const uint* starts, __local OFFSET_T* offsets, const lane_t* me)
{
    UNROLL
    for (uint o = 0; o < OWN; o++) {
        offsets[me->item * OWN + o] = next[o] - starts[o];
        next[o] += own[o];
    }
}

#if LOOK_BACK

#define LOOK_PARAMS , const uint spins
#define LOOK_CONTEXT                                                                                                   \
    __global const KEY *from, const OFFSET_T n, const uint shift, const uint mask, const WORD flip, const WORD always
#define LOOK_PASS from, n, shift, mask, flip, always
#include "lib/lookback.cl"

// Counts a tile's keys with one digit. It is called if the tile's work-group has not published this count in time.
static __attribute__((noinline)) ulong look_missing(LOOK_CONTEXT, OFFSET_T tile, uint slot)
{
    const digit_t digit = {shift, mask, flip, always};
    const OFFSET_T first = tile * TILE, end = first + min((OFFSET_T)TILE, n - first);
    ulong count = 0;
    ROLLED
    for (OFFSET_T i = first; i < end; i++) {
        count += digit_in(from[i], &digit) == slot;
    }
    return count;
}

// Publishes the tile's counts of the work-item's digits.
INLINED void publish_counts(
    volatile __global LOOK_WORD* words, const uint tile, const uint* own, const uint epoch, const lane_t* me)
{
    if (STALL == DELAY_PUBLISH) {
        // All digits are late, not only those of work-item 0.
        delay_publish(tile, words + (ulong)tile * RADIX);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    UNROLL
    for (uint o = 0; o < OWN; o++) {
        publish(words, RADIX, me->item * OWN + o, tile, tile == 0 ? STATUS_PREFIX : STATUS_AGGREGATE, own[o], epoch);
    }
}

// Takes the exclusive prefixes of the work-item's digits from earlier tiles, publishes the inclusive ones, and computes
// `offsets`.
INLINED void look_back_digits(
    LOOK_CONTEXT, volatile __global LOOK_WORD* words, const uint tile, const uint* own, const uint* starts,
    __global const OFFSET_T* totals, __local OFFSET_T* offsets, const uint spins, const uint epoch,
    const lane_t* me)
{
    UNROLL
    for (uint o = 0; o < OWN; o++) {
        const uint d = me->item * OWN + o;
        const ulong before = look_back(LOOK_PASS, words, RADIX, d, tile, spins, epoch);
        if (tile > 0) {
            publish(words, RADIX, d, tile, STATUS_PREFIX, before + own[o], epoch);
        }
        offsets[d] = totals[d] + (OFFSET_T)before - starts[o];
    }
}

#else
#define LOOK_PARAMS
#endif

// NVIDIA's compiler obeys a register limit only if the kernel does not fix its work-group size.
#if SG_BACKEND == SG_PTX
#define KERNEL __kernel
#else
#define KERNEL __kernel SG_KERNEL __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif

KERNEL void sort_scatter(
    __global const KEY* in_base, const ulong in_offset, __global KEY* out_base, const ulong out_offset,
    __global uchar* scratch, const ulong spare_at, const ulong table_at, const ulong totals_at, const ulong codes_at,
    LENGTH_PARAMS, const uint tiles, const uint given, const uint pass, const uint shift,
    const uint mask, const WORD flip, const WORD always VALUE_PARAMS SEGMENT_PARAMS LOOK_PARAMS)
{
    __local uint4 pool[POOL_WORDS / 4];
    // offsets[digit] + position in the tile = index in `to`.
    __local OFFSET_T offsets[RADIX];
    __local uint sums[ROWS];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    __local OFFSET_T offset_sums[16];
    __local VALUE aside[VALUES_ASIDE ? TILE : 1];
    __local uint taken[1];
    TAKE_LENGTH
    const uint code = pass_code(scratch, codes_at, given, pass), parts = count_parts(scratch, 0 SEGMENT_ARGS);
    if (code == 0) {
        return;
    }
    if (SEGMENTS && get_group_id(0) >= parts) {
        return;
    }
    const digit_t digit = {shift, mask, flip, always};
    __global const KEY* from = BUFFER(
        SOURCE(code), in_base + in_offset, out_base + out_offset, (__global const KEY*)(scratch + spare_at));
    __global KEY* to =
        BUFFER(TARGET(code), (__global KEY*)0, out_base + out_offset, (__global KEY*)(scratch + spare_at));
    const values_t values = route_values(scratch, code VALUE_ARGS);
    uint group = get_group_id(0);
    if (LOOK_BACK) {
        group = take_tile((volatile __global uint*)(scratch + table_at) + pass, taken, get_num_groups(0) > 1);
    }
    const lane_t me = find_lane();
    do {
        const part_t part = find_part(scratch, group, tiles, n SEGMENT_ARGS);
#ifdef LENGTH_T
        if (part.begin == part.end) {
            return;
        }
#endif
        OFFSET_T next[OWN];
        if (!LOOK_BACK) {
            load_offsets(
                next, (__global const OFFSET_T*)(scratch + table_at), (__global const OFFSET_T*)(scratch + totals_at),
                &part, offsets, offset_sums, &me);
        }
        const KEY padding = highest_key(shift, mask, flip, always);
        KEY keys[ITEMS];
        load_keys(keys, from, part.begin, (uint)min((OFFSET_T)TILE, part.end - part.begin), padding, &me);
        OFFSET_T base = part.begin;
        do {
            const uint len = (uint)min((OFFSET_T)TILE, part.end - base);
            copy_values(&values, base, len, aside, &me);
            uint positions[PAIRS], own[OWN], starts[OWN];
            rank_keys(positions, keys, &digit, pool, &me, sg_scratch);
            const uint all = sum_counts(own, (__local const COUNTER*)pool, &me);
#if LOOK_BACK
            volatile __global LOOK_WORD* words =
                (volatile __global LOOK_WORD*)(scratch + table_at + TILE_COUNTER_BYTES);
            const uint epoch = (code & ODD) != 0;
            publish_counts(words, group, own, epoch, &me);
#endif
            scan_counts(starts, (__local COUNTER*)pool, sum_before(all, &me, sums, sg_scratch), &me);
            scatter_keys_local(positions, keys, &digit, pool, &me);
            // These loads overlap with the look-back. If they came earlier, keys and values would need registers at the
            // same time.
            VALUE held[ITEMS];
            if (VALUES_HELD) {
                load_values(held, &values, base, len, &me);
            }
#if LOOK_BACK
            look_back_digits(
                LOOK_PASS, words, group, own, starts, (__global const OFFSET_T*)(scratch + totals_at) + pass * RADIX,
                offsets, spins, epoch, &me);
#else
            advance_offsets(next, own, starts, offsets, &me);
#endif
            barrier(CLK_LOCAL_MEM_FENCE);
            // The loads of the next tile overlap with the stores of this one.
            if (!LOOK_BACK && base + TILE < part.end) {
                load_keys(
                    keys, from, base + TILE, (uint)min((OFFSET_T)TILE, part.end - base - TILE), padding, &me);
            }
            uint digits[(ITEMS + 3) / 4];
            if (len == TILE && values.keep_keys) {
                scatter_keys(to, (__local const KEY*)pool, offsets, &digit, digits, true, len, true, &me);
            } else {
                scatter_keys(
                    to, (__local const KEY*)pool, offsets, &digit, digits, false, len, values.keep_keys, &me);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (VALUE_BYTES > 0) {
                await_values();
                scatter_values_local((__local VALUE*)pool, positions, held, aside, &me);
                if (len == TILE) {
                    scatter_values(values.to, (__local const VALUE*)pool, offsets, digits, true, len, &me);
                } else {
                    scatter_values(values.to, (__local const VALUE*)pool, offsets, digits, false, len, &me);
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            base += TILE;
            // With look-back, a part is one tile.
        } while (!LOOK_BACK && base < part.end);
        group += get_num_groups(0);
    } while (SEGMENTS && group < parts);
}
