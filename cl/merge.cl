// Stable merge of two sorted ranges, and merge sort:
//
//     merge(a, b)[i + |{b before a[i]}|] = a[i]
//     merge(a, b)[j + |{a not after b[j]}|] = b[j]
//
// Bytes: each pass reads and writes every element once.
//
//     sort:     merge_blocks sorts tiles; then each pass merges pairs of runs, which doubles their length
//     a merge:  merge_splits: the split of each tile of the result, by binary search in global memory
//               merge_tiles:  each tile is merged by its work-group (merge_gpu.cl), or by one work-item (merge_cpu.cl)
//
// With shift == 0 the n_a elements of a are merged with the n_b elements of b. Else pairs of runs of a are merged: a
// has n_a elements, b is not used, and 2^shift tiles make a pair. A tile is TILE elements of the result; the host
// starts at most one work-group for each tile. Values have VALUE_BYTES bytes in PARTS units. They follow their keys:
// each key keeps the position that it had in the unmerged tile, and its value is loaded from there.
//
// Merge path (Green, McColl and Bader 2012): lib/merge.cl. On CPU drivers, and on devices without local memory, WG is
// 1.

#include "lib/merge.cl"

#ifndef VALUE_BYTES
#define VALUE_BYTES 0
#define UNIT uint
#define PARTS 1
#endif
#if PARTS == 1
#define VALUE UNIT
#else
typedef struct {
    UNIT part[PARTS];
} value_t;
#define VALUE value_t
#endif

// The two ranges whose merge contains a tile. Their merge begins at element `first` of the result, and d of its
// elements precede the tile.
typedef struct {
    OFFSET_T first, len_a, len_b, d;
    __global const T* a;
    __global const T* b;
} pair_t;

INLINED pair_t find_pair(
    const uint tile, __global const T* a, const OFFSET_T n_a, __global const T* b, const OFFSET_T n_b, const uint shift)
{
    pair_t pair;
    pair.first = shift == 0 ? 0 : (OFFSET_T)(tile >> shift << shift) * TILE;
    const OFFSET_T run = shift == 0 ? n_a : (OFFSET_T)TILE << (shift - 1);
    pair.len_a = min(run, n_a - pair.first);
    pair.len_b = shift == 0 ? n_b : min(run, n_a - pair.first - pair.len_a);
    pair.d = (OFFSET_T)tile * TILE - pair.first;
    pair.a = a + pair.first;
    pair.b = shift == 0 ? b : pair.a + pair.len_a;
    return pair;
}

// The values of a part's elements, and of its result.
typedef struct {
    __global const VALUE* a;
    __global const VALUE* b;
    __global VALUE* to;
} values_t;

#if VALUE_BYTES > 0
#define VALUE_RANGES                                                                                                   \
    , __global const VALUE *values_a_base, const ulong values_a_offset, __global const VALUE *values_b_base,           \
        const ulong values_b_offset
#define VALUE_RESULTS , __global VALUE *values_to_base, const ulong values_to_offset
#define VALUE_SOURCES , __global const VALUE *values_base, const ulong values_offset
#define VALUE_SPARE , __global VALUE *values_spare_base, const ulong values_spare_offset
#define RANGES_AND_RESULTS                                                                                             \
    , values_a_base + values_a_offset, values_b_base + values_b_offset, values_to_base + values_to_offset
#define SOURCES(first) (values_base + values_offset + (first))
#define RESULTS(first) (values_to_base + values_to_offset + (first))
#define SPARE(first) (values_spare_base + values_spare_offset + (first))

INLINED values_t find_values(
    const pair_t* pair, const part_t* part, const uint shift, __global const VALUE* a, __global const VALUE* b,
    __global VALUE* to)
{
    values_t values;
    values.a = a + pair->first + part->begin_a;
    values.b = (shift == 0 ? b : a + pair->first + pair->len_a) + part->begin_b;
    values.to = to + pair->first + pair->d;
    return values;
}
#else
#define VALUE_RANGES
#define VALUE_RESULTS
#define VALUE_SOURCES
#define VALUE_SPARE
#define RANGES_AND_RESULTS
#define SOURCES(first) ((__global const VALUE*)0)
#define RESULTS(first) ((__global VALUE*)0)
#define SPARE(first) ((__global VALUE*)0)

INLINED values_t find_values(const pair_t* pair, const part_t* part, const uint shift)
{
    values_t values;
    values.a = 0;
    values.b = 0;
    values.to = 0;
    return values;
}
#endif

// With LENGTH_A, the length n_a of range a is a count in memory, of this type; n_a is at most `most_a`. LENGTH_B is the
// same for range b. `tiles` is the number of tiles of `most_a` and `most_b` elements.
#ifdef LENGTH_A
#define LENGTH_A_PARAMS , __global const LENGTH_A *length_a, const ulong length_a_offset
#define TAKE_A const OFFSET_T n_a = (OFFSET_T)min((ulong)most_a, (ulong)length_a[length_a_offset]);
#else
#define LENGTH_A_PARAMS
#define TAKE_A const OFFSET_T n_a = most_a;
#endif
#ifdef LENGTH_B
#define LENGTH_B_PARAMS , __global const LENGTH_B *length_b, const ulong length_b_offset
#define TAKE_B const OFFSET_T n_b = (OFFSET_T)min((ulong)most_b, (ulong)length_b[length_b_offset]);
#else
#define LENGTH_B_PARAMS
#define TAKE_B const OFFSET_T n_b = most_b;
#endif
#define RANGE_PARAMS                                                                                                   \
    __global const T *a_base, const ulong a_offset, const OFFSET_T most_a LENGTH_A_PARAMS, __global const T *b_base,   \
        const ulong b_offset, const OFFSET_T most_b LENGTH_B_PARAMS
#define TAKE_RANGES TAKE_A TAKE_B
#if defined(LENGTH_A) || defined(LENGTH_B)
// For a division and a remainder of one number, clang emits an instruction that Oclgrind 21.10 lacks, so this has only
// a division. The sum does not overflow: n_a + n_b is far below the limit of OFFSET_T.
#define OWN_TILES (uint)((n_a + n_b + (TILE - 1)) / TILE)
#else
#define OWN_TILES tiles
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void merge_splits(
    RANGE_PARAMS, const uint shift, const uint tiles, __global OFFSET_T* splits_base, const ulong splits_offset)
{
    TAKE_RANGES
    for (uint t = get_global_id(0); t < OWN_TILES; t += get_global_size(0)) {
        const pair_t pair = find_pair(t, a_base + a_offset, n_a, b_base + b_offset, n_b, shift);
        splits_base[splits_offset + t] = find_split(pair.a, pair.len_a, pair.b, pair.len_b, pair.d);
    }
}

#if WG == 1
#include "merge_cpu.cl"
#else
#include "merge_gpu.cl"
#endif
