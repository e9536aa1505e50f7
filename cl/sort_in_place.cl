// Bitonic sort of keys in their own memory (Batcher 1968), for any n. It is not stable, which shows only with float
// keys. Ascending, -0 comes before 0, and NaN are ordered by their bits. Descending, 0 comes before -0, and the order
// of NaN is reversed, too.
//
//     for k = 1, 2, ...: for each block of 2^k keys:
//         compare keys i and 2^k - 1 - i; then keys that are 2^(k - 2), 2^(k - 3), ..., 1 apart
//
// Bytes: each launch reads and writes every key once. k = 1 .. TILE_BITS take one launch of sort_in_place_tiles in all.
// Each larger k takes ceil((k - TILE_BITS) / 4) launches of sort_in_place_exchange, then one of sort_in_place_tiles.
//
//     sort_in_place_tiles:     2^TILE_BITS keys in local memory: all of k = 1 .. TILE_BITS, or the last TILE_BITS
//                              distances of a larger k
//     sort_in_place_exchange:  four distances of a larger k
//
// Each comparison moves the smaller key to the lower index. So a last block that is not full behaves as if it were
// padded with largest keys, which never move and are never stored. Both kernels take four distances at a time, for
// which a work-item holds 16 keys. The sort compares numbers that rise with the keys. The first launch replaces the
// keys by their numbers, and the last launch replaces these by the keys.
#include "lib/types.cl"
#include "lib/keys.cl"

// The host chooses WG and TILE_BITS. TILE_BITS is at least 4.
#ifndef WG
#define WG 256
#define TILE_BITS 12
#endif
#define TILE (1u << TILE_BITS)
// Keys of a work-item, and the logarithm of their number.
#define HELD 16
#define HELD_BITS 4

// Modes: FROM_KEYS makes numbers of the keys in memory; TO_KEYS makes keys of the numbers that are written.
#define FROM_KEYS 1
#define TO_KEYS 2

// ALONE: for devices with too little local memory, the one work-item of a work-group holds its tile of 16 keys in
// private memory.
#ifdef ALONE
#define HELD_IN __private
#else
#define HELD_IN __local
#endif

#define UNROLL _Pragma("unroll")

#define LARGEST ((KEY)(~(WORD)(0)))

// Moves the smaller one of keys i and j to i.
INLINED void compare(KEY* x, const uint i, const uint j)
{
    const KEY a = x[i], b = x[j];
    const int swap = is_below(b, a);
    x[i] = swap ? b : a;
    x[j] = swap ? a : b;
}

// Compares the work-item's keys that are `distance` apart.
INLINED void compare_apart(KEY* x, const uint distance)
{
    UNROLL
    for (uint m = 0; m < HELD / 2; m++) {
        const uint i = m / distance * 2 * distance + m % distance;
        compare(x, i, i + distance);
    }
}

// In each block of 2 * half_block keys, compares each key of the first half with the key that is as far from the
// block's end.
INLINED void compare_mirrored(KEY* x, const uint half_block)
{
    UNROLL
    for (uint m = 0; m < HELD / 2; m++) {
        const uint i = m / half_block * 2 * half_block, j = m % half_block;
        compare(x, i + j, i + 2 * half_block - 1 - j);
    }
}

// Compares the work-item's 16 keys at the last `count` of the distances 8, 4, 2 and 1. If `turned`, the first
// comparison is mirrored, and `count` is 4.
INLINED void exchange(KEY* x, const uint turned, const uint count)
{
    if (turned) {
        compare_mirrored(x, 8);
    } else if (count > 3) {
        compare_apart(x, 8);
    }
    if (count > 2) {
        compare_apart(x, 4);
    }
    if (count > 1) {
        compare_apart(x, 2);
    }
    if (count > 0) {
        compare_apart(x, 1);
    }
}

// Sorts the work-item's keys: blocks of 2, 4, 8 and 16.
INLINED void sort_held(KEY* x)
{
    compare_apart(x, 1);
    compare_mirrored(x, 2);
    compare_apart(x, 1);
    compare_mirrored(x, 4);
    compare_apart(x, 2);
    compare_apart(x, 1);
    compare_mirrored(x, 8);
    compare_apart(x, 4);
    compare_apart(x, 2);
    compare_apart(x, 1);
}

// The index of key m of a set. The keys of a set are 2^low_bits apart. If `turned`, keys of the upper half are counted
// from the end of their range of 2^low_bits keys.
#define KEY_AT(INDEX, set, m, low_bits, turned)                                                                        \
    ((((set) >> (low_bits)) << ((low_bits) + HELD_BITS)) + ((INDEX)(m) << (low_bits)) +                                \
     ((turned) && (m) >= HELD / 2 ? ~(set) & (((INDEX)1 << (low_bits)) - 1)                                            \
                                  : (set) & (((INDEX)1 << (low_bits)) - 1)))

// Exchanges `sets` sets of HELD keys each. A work-item takes `run` of them, WG apart.
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
            exchange(x, turned, HELD_BITS);
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

// With the padding, keys that are 16 apart are in different banks.
#define PADDED(i) ((i) + (i) / HELD)

// Compares keys of the tile at `count` distances, of which 2^low_bits is the smallest. All work-items call it.
INLINED void exchange_tile(HELD_IN KEY* tile, const uint low_bits, const uint turned, const uint count)
{
    for (uint set = get_local_id(0); set < TILE / HELD; set += WG) {
        KEY x[HELD];
        UNROLL
        for (uint m = 0; m < HELD; m++) {
            x[m] = tile[PADDED(KEY_AT(uint, set, m, low_bits, turned))];
        }
        exchange(x, turned, count);
        UNROLL
        for (uint m = 0; m < HELD; m++) {
            tile[PADDED(KEY_AT(uint, set, m, low_bits, turned))] = x[m];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Sorts each 16 contiguous keys of the tile.
INLINED void sort_sets(HELD_IN KEY* tile)
{
    for (uint set = get_local_id(0); set < TILE / HELD; set += WG) {
        KEY x[HELD];
        UNROLL
        for (uint m = 0; m < HELD; m++) {
            x[m] = tile[PADDED(set * HELD + m)];
        }
        sort_held(x);
        UNROLL
        for (uint m = 0; m < HELD; m++) {
            tile[PADDED(set * HELD + m)] = x[m];
        }
    }
}

// If `merges` is 0, sorts a tile: k = 1 .. TILE_BITS. Else it ends a larger k: it compares keys 2^(TILE_BITS - 1), ...,
// 2, 1 apart. sort_in_place_exchange takes four distances at a time, so it may have compared at up to three of these
// before. Comparing them again swaps no keys.
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
        sort_sets(tile);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // For each block size, each exchange_tile() takes the largest four of the remaining distances.
    for (uint bits = merges == 0 ? HELD_BITS + 1 : TILE_BITS; bits <= TILE_BITS; bits++) {
        uint left = bits - HELD_BITS;
        const uint turned = merges == 0;
        exchange_tile(tile, left, turned, HELD_BITS);
        for (; left > 0; left -= min(left, (uint)HELD_BITS)) {
            // `max` is used because Oclgrind 21.10 does not know the saturated subtraction that clang makes of a
            // condition.
            const uint low_bits = max(left, (uint)HELD_BITS) - HELD_BITS;
            exchange_tile(tile, low_bits, 0, left - low_bits);
        }
    }
    for (uint i = item; i < len; i += WG) {
        const KEY number = tile[PADDED(i)];
        keys[i] = (mode & TO_KEYS) != 0 ? key_of_distinct(number, flip, always) : number;
    }
}
