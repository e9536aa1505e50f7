// Sort of keys in their own memory: bitonic (Batcher 1968), for any n. Not stable, which shows of floats alone: -0 comes before 0,
// and NaN in an order of their bits.
//
// Blocks of 2^k keys are made of sorted halves, k from 1 on: first each key meets the one that is as far from the block's end as
// it is from its begin, then those 2^(k - 2), 2^(k - 3), ... 1 apart meet. The smaller one goes to the front each time, so
// that behind the last key may be as many of the largest as a power of two takes: they stay there, and are nowhere in memory.
//
//     tiles:     2^TILE_BITS keys in local memory: all of k = 1 .. TILE_BITS, or the last TILE_BITS distances of a larger k
//     exchange:  four distances of a larger k
//
// Both take four distances at a time, for which an item holds 16 keys. What is sorted is a number that rises with the keys;
// the first kernel makes it of them, the last one makes keys of it. Bytes: each launch reads and writes every key once. Of
// k > TILE_BITS there are (k - TILE_BITS) / 4 launches, rounded up, and one of tiles.
#include "lib/types.cl"
#include "lib/keys.cl"

#ifndef WG
#define WG 256
#endif
// 4 at least.
#ifndef TILE_BITS
#define TILE_BITS 12
#endif
#define TILE (1u << TILE_BITS)
// Keys of an item, and the bits of how many there are.
#define HELD 16
#define HELD_BITS 4

// What is made of the memory's keys, and of the numbers that are written.
#define FROM_KEYS 1
#define TO_KEYS 2

// Where there is no local memory, the one item has its 16 keys for itself.
#ifdef ALONE
#define HELD_IN __private
#else
#define HELD_IN __local
#endif

#define UNROLL _Pragma("unroll")

#if KEY_BYTES == 16
#define LARGEST (~(KEY)(0))
#else
#define LARGEST ((KEY)(~(WORD)0))
#endif

// The smaller one to the front.
#define MEET(i, j)                                                                                                     \
    {                                                                                                                  \
        const KEY a = x[i], b = x[j];                                                                                  \
        const int swap = is_below(b, a);                                                                               \
        x[i] = swap ? b : a;                                                                                           \
        x[j] = swap ? a : b;                                                                                           \
    }
#define MEET_APART(distance)                                                                                           \
    UNROLL                                                                                                             \
    for (uint m = 0; m < HELD / 2; m++) {                                                                              \
        const uint i = m / (distance) * 2 * (distance) + m % (distance);                                               \
        MEET(i, i + (distance))                                                                                        \
    }
// Those that are as far from the begin of a block of twice `half_block` as from its end.
#define MEET_TURNED(half_block)                                                                                        \
    UNROLL                                                                                                             \
    for (uint m = 0; m < HELD / 2; m++) {                                                                              \
        const uint i = m / (half_block) * 2 * (half_block), j = m % (half_block);                                      \
        MEET(i + j, i + 2 * (half_block) - 1 - j)                                                                      \
    }
// The last `count` distances of the item's keys, of which the largest is turned, if `turned`.
#define EXCHANGE(turned, count)                                                                                        \
    if (turned) {                                                                                                      \
        MEET_TURNED(8)                                                                                                 \
    } else if ((count) > 3) {                                                                                          \
        MEET_APART(8)                                                                                                  \
    }                                                                                                                  \
    if ((count) > 2) {                                                                                                 \
        MEET_APART(4)                                                                                                  \
    }                                                                                                                  \
    if ((count) > 1) {                                                                                                 \
        MEET_APART(2)                                                                                                  \
    }                                                                                                                  \
    if ((count) > 0) {                                                                                                 \
        MEET_APART(1)                                                                                                  \
    }

// The item's m-th key: they are 2^low_bits apart; the upper half begins as far from its end, if `turned`.
#define KEY_AT(INDEX, set, m, low_bits, turned)                                                                        \
    ((((set) >> (low_bits)) << ((low_bits) + HELD_BITS)) + ((INDEX)(m) << (low_bits)) +                                \
     ((turned) && (m) >= HELD / 2 ? ~(set) & (((INDEX)1 << (low_bits)) - 1)                                            \
                                  : (set) & (((INDEX)1 << (low_bits)) - 1)))

// `sets` of HELD keys each, `run` of them to an item, one to a group's item after the other.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void sort_in_place_exchange(
    __global KEY* keys_base, const ulong keys_offset, const OFFSET_T n, const OFFSET_T sets, const uint run,
    const uint low_bits, const uint turned)
{
    __global KEY* keys = keys_base + keys_offset;
    const OFFSET_T first = (OFFSET_T)get_group_id(0) * WG * run + get_local_id(0);
    for (uint r = 0; r < run; r++) {
        const OFFSET_T set = first + (OFFSET_T)r * WG;
        if (set < sets) {
            KEY x[HELD];
            UNROLL
            for (uint m = 0; m < HELD; m++) {
                const OFFSET_T i = KEY_AT(OFFSET_T, set, m, low_bits, turned);
                x[m] = i < n ? keys[i] : LARGEST;
            }
            EXCHANGE(turned, HELD_BITS)
            UNROLL
            for (uint m = 0; m < HELD; m++) {
                const OFFSET_T i = KEY_AT(OFFSET_T, set, m, low_bits, turned);
                if (i < n) {
                    keys[i] = x[m];
                }
            }
        }
    }
}

// Neighbours 16 apart are in different banks.
#define PADDED(i) ((i) + (i) / HELD)
// All items exchange in the tile.
#define EXCHANGE_TILE(low_bits, turned, count)                                                                         \
    for (uint set = item; set < TILE / HELD; set += WG) {                                                              \
        KEY x[HELD];                                                                                                   \
        UNROLL                                                                                                         \
        for (uint m = 0; m < HELD; m++) {                                                                              \
            x[m] = tile[PADDED(KEY_AT(uint, set, m, low_bits, turned))];                                               \
        }                                                                                                              \
        EXCHANGE(turned, count)                                                                                        \
        UNROLL                                                                                                         \
        for (uint m = 0; m < HELD; m++) {                                                                              \
            tile[PADDED(KEY_AT(uint, set, m, low_bits, turned))] = x[m];                                               \
        }                                                                                                              \
    }                                                                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);

// A group for each tile: sorts it, or does the distances within it of a larger block, if `merges`. Distances that `exchange` has
// done find nothing to do.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void sort_in_place_tiles(
    __global KEY* keys_base, const ulong keys_offset, const OFFSET_T n, const uint merges, const uint mode,
    const WORD flip, const WORD always)
{
    HELD_IN KEY tile[PADDED(TILE)];
    const uint item = get_local_id(0);
    const OFFSET_T base = (OFFSET_T)get_group_id(0) * TILE;
    __global KEY* keys = keys_base + keys_offset + base;
    const uint len = (uint)min((OFFSET_T)TILE, n - base);
    for (uint i = item; i < TILE; i += WG) {
        KEY number = LARGEST;
        if (i < len) {
            number = (mode & FROM_KEYS) != 0 ? distinct(keys[i], flip, always) : keys[i];
        }
        tile[PADDED(i)] = number;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (merges == 0) {
        // Of an item's own keys: blocks of 2, 4, 8 and 16.
        for (uint set = item; set < TILE / HELD; set += WG) {
            KEY x[HELD];
            UNROLL
            for (uint m = 0; m < HELD; m++) {
                x[m] = tile[PADDED(set * HELD + m)];
            }
            MEET_APART(1)
            MEET_TURNED(2)
            MEET_APART(1)
            MEET_TURNED(4)
            MEET_APART(2)
            MEET_APART(1)
            MEET_TURNED(8)
            MEET_APART(4)
            MEET_APART(2)
            MEET_APART(1)
            UNROLL
            for (uint m = 0; m < HELD; m++) {
                tile[PADDED(set * HELD + m)] = x[m];
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Of larger blocks, the distances of the highest four bits that are left each time.
    for (uint bits = merges == 0 ? HELD_BITS + 1 : TILE_BITS; bits <= TILE_BITS; bits++) {
        uint left = bits - HELD_BITS;
        const uint turned = merges == 0;
        EXCHANGE_TILE(left, turned, HELD_BITS)
        for (; left > 0; left -= min(left, (uint)HELD_BITS)) {
            // By `max`: Oclgrind 21.10 does not know the saturated subtraction that clang makes of a condition.
            const uint low_bits = max(left, (uint)HELD_BITS) - HELD_BITS;
            EXCHANGE_TILE(low_bits, 0, left - low_bits)
        }
    }
    for (uint i = item; i < len; i += WG) {
        const KEY number = tile[PADDED(i)];
        keys[i] = (mode & TO_KEYS) != 0 ? key_of_distinct(number, flip, always) : number;
    }
}
