// Merges of two sorted ranges, and merge sort: tiles are sorted in local memory, then pairs of runs are merged, twice as long
// each time. Stable: of equal elements those of the first range, and of the run before, come first.
//
//     merge_splits   the split of each tile of the result, by binary search in global memory
//     merge_tiles    each tile: its parts of both ranges to local memory, where each item finds its own split and merges
//                    ITEMS elements in registers; results go out through local memory
//     merge_blocks   sorts tiles: each item its own elements by odd-even transpositions, then log2(WG) merges
//
// What is merged: with shift == 0 the n_a elements of a with the n_b of b; else pairs of runs of a, which has n_a elements, b
// is not used, and 2^shift tiles make a pair. In both a tile is TILE elements of the result; the host starts no more groups
// than there are tiles. Values, of VALUE_BYTES bytes in PARTS units, go where their keys go: keys bring the places they come
// from, and values are read from there, near one another.
//
// With WG == 1, for CPU drivers and devices without local memory, one item merges or sorts a tile in global memory.
// Bytes: each pass reads and writes every element once.

#include "lib/merge.cl"

#ifndef VALUE_BYTES
#define VALUE_BYTES 0
#endif
#if VALUE_BYTES > 0
#ifndef PARTS
#define UNIT uint
#define PARTS (VALUE_BYTES / 4)
#endif
#if PARTS == 1
#define VALUE UNIT
#else
typedef struct {
    UNIT part[PARTS];
} value_t;
#define VALUE value_t
#endif
#endif

#define RANGES                                                                                                         \
    __global const T *a_base, const ulong a_offset, const OFFSET_T n_a, __global const T *b_base,                      \
        const ulong b_offset, const OFFSET_T n_b, const uint shift, const uint tiles

// The two ranges that tile t is of, and how many of their elements precede it.
#define LOCATE(t)                                                                                                      \
    const OFFSET_T pair = shift == 0 ? 0 : (OFFSET_T)((t) >> shift << shift) * TILE;                                   \
    const OFFSET_T run = shift == 0 ? n_a : (OFFSET_T)TILE << (shift - 1);                                             \
    const OFFSET_T len_a = min(run, n_a - pair), len_b = shift == 0 ? n_b : min(run, n_a - pair - len_a);              \
    const OFFSET_T d = (OFFSET_T)(t) * TILE - pair;                                                                    \
    __global const T* a = a_base + a_offset + pair;                                                                    \
    __global const T* b = shift == 0 ? b_base + b_offset : a + len_a;

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void merge_splits(
    RANGES, __global OFFSET_T* splits_base, const ulong splits_offset)
{
    for (uint t = get_global_id(0); t < tiles; t += get_global_size(0)) {
        LOCATE(t)
        FIND_SPLIT(OFFSET_T, split, a, len_a, b, len_b, d)
        splits_base[splits_offset + t] = split;
    }
}

#if VALUE_BYTES > 0
#define VALUE_RANGES                                                                                                   \
    , __global const VALUE *values_a_base, const ulong values_a_offset, __global const VALUE *values_b_base,           \
        const ulong values_b_offset
#define VALUE_RESULTS , __global VALUE *values_to_base, const ulong values_to_offset
#define VALUE_SPARE , __global VALUE *values_spare_base, const ulong values_spare_offset
#define LOCATE_VALUES                                                                                                  \
    __global const VALUE* values_a = values_a_base + values_a_offset + pair + begin_a;                                 \
    __global const VALUE* values_b =                                                                                   \
        (shift == 0 ? values_b_base + values_b_offset : values_a_base + values_a_offset + pair + len_a) + begin_b;     \
    __global VALUE* values_to = values_to_base + values_to_offset + pair + d;
#else
#define VALUE_RANGES
#define VALUE_RESULTS
#define VALUE_SPARE
#define LOCATE_VALUES
#endif

#if WG == 1

#if VALUE_BYTES > 0
#define MOVE_VALUE(to, from) to = from;
#else
#define MOVE_VALUE(to, from)
#endif

// The first count_a elements of a with the first count_b of b, or as many of either as are next.
#define MERGE_RUN(to, a, count_a, b, count_b, values_to, values_a, values_b)                                           \
    {                                                                                                                  \
        OFFSET_T at_a = 0, at_b = 0, done = 0;                                                                         \
        while (at_a < (count_a) && at_b < (count_b)) {                                                                 \
            if (op_less((b)[at_b], (a)[at_a])) {                                                                       \
                MOVE_VALUE((values_to)[done], (values_b)[at_b])                                                        \
                (to)[done++] = (b)[at_b++];                                                                            \
            } else {                                                                                                   \
                MOVE_VALUE((values_to)[done], (values_a)[at_a])                                                        \
                (to)[done++] = (a)[at_a++];                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        while (at_a < (count_a)) {                                                                                     \
            MOVE_VALUE((values_to)[done], (values_a)[at_a])                                                            \
            (to)[done++] = (a)[at_a++];                                                                                \
        }                                                                                                              \
        while (at_b < (count_b)) {                                                                                     \
            MOVE_VALUE((values_to)[done], (values_b)[at_b])                                                            \
            (to)[done++] = (b)[at_b++];                                                                                \
        }                                                                                                              \
    }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void merge_tiles(
    RANGES, __global const OFFSET_T* splits_base, const ulong splits_offset, __global T* to_base,
    const ulong to_offset VALUE_RANGES VALUE_RESULTS)
{
    for (uint t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        LOCATE(t)
        FIND_PART(splits_base[splits_offset + t], splits_base[splits_offset + t + 1])
        LOCATE_VALUES
        __global const T* first = a + begin_a;
        __global const T* second = b + begin_b;
        __global T* to = to_base + to_offset + pair + d;
        MERGE_RUN(to, first, count_a, second, part - count_a, values_to, values_a, values_b)
    }
}

// Elements that are sorted by insertion; ITEMS is a power of two times as many.
#define INSERTED 16

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void merge_blocks(
    __global const T* from_base, const ulong from_offset, const OFFSET_T n, const uint tiles, __global T* to_base,
    const ulong to_offset, __global T* spare_base, const ulong spare_offset
#if VALUE_BYTES > 0
    , __global const VALUE* values_base, const ulong values_offset
#endif
    VALUE_RESULTS VALUE_SPARE)
{
    uint levels = 0;
    while (INSERTED << levels < TILE) {
        levels++;
    }
    for (uint t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        const OFFSET_T first = (OFFSET_T)t * TILE;
        const uint len = (uint)min((OFFSET_T)TILE, n - first);
        __global const T* from = from_base + from_offset + first;
        // What is sorted so far is in x; after the last level in `to`.
        __global T* x = levels % 2 == 0 ? to_base + to_offset + first : spare_base + spare_offset + first;
        __global T* y = levels % 2 == 0 ? spare_base + spare_offset + first : to_base + to_offset + first;
#if VALUE_BYTES > 0
        __global VALUE* to_values = values_to_base + values_to_offset + first;
        __global VALUE* spare_values = values_spare_base + values_spare_offset + first;
        __global const VALUE* values = values_base + values_offset + first;
        __global VALUE* values_x = levels % 2 == 0 ? to_values : spare_values;
        __global VALUE* values_y = levels % 2 == 0 ? spare_values : to_values;
#endif
        for (uint i = 0; i < len; i++) {
            const T key = from[i];
            uint place = i;
            while (place % INSERTED > 0 && op_less(key, x[place - 1])) {
                x[place] = x[place - 1];
                MOVE_VALUE(values_x[place], values_x[place - 1])
                place--;
            }
            x[place] = key;
            MOVE_VALUE(values_x[place], values[i])
        }
        for (uint run = INSERTED; run < TILE; run *= 2) {
            for (uint at = 0; at < len; at += 2 * run) {
                const uint count_a = min(run, len - at), count_b = min(run, len - at - count_a);
                MERGE_RUN(
                    y + at, x + at, count_a, x + at + count_a, count_b, values_y + at, values_x + at,
                    values_x + at + count_a)
            }
            __global T* other = x;
            x = y;
            y = other;
#if VALUE_BYTES > 0
            __global VALUE* others = values_x;
            values_x = values_y;
            values_y = others;
#endif
        }
    }
}

#else

#if VALUE_BYTES > 0
#define NOTE_SOURCE(k, place) sources[item * ITEMS + k] = (ushort)(place);
#define NOTE_PLACE(k, place) places[k] = place;
#else
#define NOTE_SOURCE(k, place)
#define NOTE_PLACE(k, place)
#endif

__kernel GROUP void merge_tiles(
    RANGES, __global const OFFSET_T* splits_base, const ulong splits_offset, __global T* to_base,
    const ulong to_offset VALUE_RANGES VALUE_RESULTS)
{
    __local T tile[TILE + 1];
#if VALUE_BYTES > 0
    __local ushort sources[TILE];
#endif
    const uint item = get_local_id(0);
    for (uint t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        LOCATE(t)
        FIND_PART(splits_base[splits_offset + t], splits_base[splits_offset + t + 1])
        LOCATE_VALUES
        T x[ITEMS];
        LOAD_PART(tile, x)
        const uint own = min(item * ITEMS, part);
        FIND_SPLIT(uint, split, tile, count_a, (tile + count_a), (part - count_a), own)
        uint at_a = split, at_b = count_a + own - split;
        const uint stop_a = count_a, stop_b = part;
        MERGE_ITEMS(tile, x, NOTE_SOURCE)
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            tile[item * ITEMS + k] = x[k];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        __global T* to = to_base + to_offset + pair + d;
        UNROLL_SOME
        for (uint k = 0; k < ITEMS; k++) {
            const uint i = k * WG + item;
            if (i < part) {
                to[i] = tile[i];
            }
        }
#if VALUE_BYTES > 0
        UNROLL_SOME
        for (uint k = 0; k < ITEMS; k++) {
            const uint i = k * WG + item;
            if (i < part) {
                const uint source = sources[i];
                values_to[i] = *(source < count_a ? values_a + source : values_b + (source - count_a));
            }
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Puts two neighbours in order.
#define EXCHANGE(k)                                                                                                    \
    if (op_less(x[k + 1], x[k])) {                                                                                     \
        const T other = x[k];                                                                                          \
        x[k] = x[k + 1];                                                                                               \
        x[k + 1] = other;                                                                                              \
        const uint place = places[k];                                                                                  \
        places[k] = places[k + 1];                                                                                     \
        places[k + 1] = place;                                                                                         \
    }

__kernel GROUP void merge_blocks(
    __global const T* from_base, const ulong from_offset, const OFFSET_T n, const uint tiles, __global T* to_base,
    const ulong to_offset
#if VALUE_BYTES > 0
    , __global const VALUE* values_base, const ulong values_offset
#endif
    VALUE_RESULTS)
{
    __local T tile[TILE + 1];
#if VALUE_BYTES > 0
    __local ushort sources[TILE + 1];
#endif
    const uint item = get_local_id(0);
    for (uint t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        const OFFSET_T first = (OFFSET_T)t * TILE, begin_a = 0, begin_b = 0;
        const uint part = (uint)min((OFFSET_T)TILE, n - first), count_a = part;
        __global const T* a = from_base + from_offset + first;
        __global const T* b = a;
        T x[ITEMS];
        uint places[ITEMS];
        LOAD_PART(tile, x)
        // Beyond the end is the item's last element again, which stays there.
        uint last = item * ITEMS;
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            const uint i = item * ITEMS + k;
            x[k] = tile[i];
            places[k] = min(i, part - 1);
            if (i < part) {
                if (op_less(tile[last], x[k])) {
                    last = i;
                }
            } else {
                x[k] = tile[last];
                places[k] = min(last, part - 1);
            }
        }
        UNROLL
        for (uint round = 0; round < ITEMS; round += 2) {
            UNROLL
            for (uint k = 0; k + 1 < ITEMS; k += 2) {
                EXCHANGE(k)
            }
            UNROLL
            for (uint k = 1; k + 1 < ITEMS; k += 2) {
                EXCHANGE(k)
            }
        }
        for (uint lanes = 1; lanes < WG; lanes *= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            UNROLL
            for (uint k = 0; k < ITEMS; k++) {
                tile[item * ITEMS + k] = x[k];
#if VALUE_BYTES > 0
                sources[item * ITEMS + k] = (ushort)places[k];
#endif
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            // The pair of runs that the item merges, and its place in their result.
            const uint inner = item & (2 * lanes - 1), begin = min((item - inner) * ITEMS, part);
            const uint len_a = min(lanes * ITEMS, part - begin), len_b = min(lanes * ITEMS, part - begin - len_a);
            const uint own = min(inner * ITEMS, len_a + len_b);
            FIND_SPLIT(uint, split, (tile + begin), len_a, (tile + begin + len_a), len_b, own)
            uint at_a = begin + split, at_b = begin + len_a + own - split;
            const uint stop_a = begin + len_a, stop_b = stop_a + len_b;
            MERGE_ITEMS(tile, x, NOTE_PLACE)
#if VALUE_BYTES > 0
            UNROLL
            for (uint k = 0; k < ITEMS; k++) {
                places[k] = sources[min(places[k], TILE - 1u)];
            }
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            tile[item * ITEMS + k] = x[k];
#if VALUE_BYTES > 0
            sources[item * ITEMS + k] = (ushort)places[k];
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL_SOME
        for (uint k = 0; k < ITEMS; k++) {
            const uint i = k * WG + item;
            if (i < part) {
                to_base[to_offset + first + i] = tile[i];
            }
        }
#if VALUE_BYTES > 0
        UNROLL_SOME
        for (uint k = 0; k < ITEMS; k++) {
            const uint i = k * WG + item;
            if (i < part) {
                values_to_base[values_to_offset + first + i] = values_base[values_offset + first + sources[i]];
            }
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif
