// Union, intersection and difference of two sorted ranges, with as many of equal elements as C++'s std::set_* have.
//
// An element has a rank among the equals of its own range. It is matched if the other range has an equal one of that rank.
// The union is all of a, and what is not matched of b; the intersection what is matched of a; the difference what is not
// matched of a; the symmetric difference what is not matched of either. Of b ranks count from the first of its equals, too,
// so that of m equals in a and n in b the last n - m are not matched.
//
// Elements are looked at in the order in which they merge, by the tiles of merge path. When one of a is next, what is next
// of b is the first that is not before it, so that its match is as far behind that as its rank says; when one of b is next,
// all its equals of a have been taken, so that its match is as far before the last of those. Both may be outside of the tile,
// and are read from global memory then.
//
//     set_splits   for each tile the split, and where the equals of its first elements begin
//     set_tiles    how many of each tile are kept; in a second launch, once it is known where they go, these themselves
//     set_offsets  the sums of the counts before each tile, and the sum of all
//
// Nothing is written beyond `capacity` elements. With WG == 1 one item walks through a tile in global memory.
// Bytes: reads both ranges twice, writes the result once.

#include "lib/merge.cl"

// Which elements are kept.
#ifndef SET_UNION
#define SET_UNION 0
#define SET_INTERSECTION 1
#define SET_DIFFERENCE 2
#define SET_SYMMETRIC 3
#endif
#ifndef SET
#define SET SET_UNION
#endif
#define WANTS_FIRST (SET != SET_UNION)
#define WANTS_SECOND (SET == SET_UNION || SET == SET_SYMMETRIC)

#define RANGES                                                                                                         \
    __global const T *a_base, const ulong a_offset, const OFFSET_T len_a, __global const T *b_base,                    \
        const ulong b_offset, const OFFSET_T len_b, const uint tiles
#define LOCATE(t)                                                                                                      \
    __global const T* a = a_base + a_offset;                                                                           \
    __global const T* b = b_base + b_offset;                                                                           \
    const OFFSET_T d = (OFFSET_T)(t) * TILE;

// Of each tile: its split, where equals of its first elements begin, and how many are kept, or before it.
#define SPLITS scratch
#define EQUALS_A (scratch + tiles)
#define EQUALS_B (scratch + 2 * (ulong)tiles)
#define COUNTS (scratch + 3 * (ulong)tiles)

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void set_splits(RANGES, __global OFFSET_T* scratch)
{
    for (uint t = get_global_id(0); t < tiles; t += get_global_size(0)) {
        LOCATE(t)
        FIND_SPLIT(OFFSET_T, split, a, len_a, b, len_b, d)
        SPLITS[t] = split;
        const OFFSET_T split_b = d - split;
        OFFSET_T equals_a = split, equals_b = split_b;
        if (split < len_a) {
            FIND_LOWER(OFFSET_T, found, a, split, a[split])
            equals_a = found;
        }
        if (split_b < len_b) {
            FIND_LOWER(OFFSET_T, found, b, split_b, b[split_b])
            equals_b = found;
        }
        EQUALS_A[t] = equals_a;
        EQUALS_B[t] = equals_b;
    }
}

// The sum of x over the items before this one; that of all in *all. All items call it, after a barrier.
INLINED OFFSET_T sum_before(OFFSET_T x, __local OFFSET_T* sums, OFFSET_T* all)
{
#if WG == 1
    *all = x;
    return 0;
#else
    const uint item = get_local_id(0);
    sums[item] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint lanes = 1; lanes < WG; lanes *= 2) {
        const OFFSET_T more = item >= lanes ? sums[item - lanes] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[item] += more;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    *all = sums[WG - 1];
    return sums[item] - x;
#endif
}

// One group: sums of what is before each tile, and of all to `total`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void set_offsets(
    const uint tiles, __global OFFSET_T* scratch, __global ulong* total_base, const ulong total_offset)
{
    __local OFFSET_T sums[WG];
    const uint item = get_local_id(0), share = tiles / WG + 1, begin = min(item * share, tiles);
    const uint end = min(begin + share, tiles);
    OFFSET_T sum = 0;
    for (uint t = begin; t < end; t++) {
        sum += COUNTS[t];
    }
    OFFSET_T all;
    OFFSET_T before = sum_before(sum, sums, &all);
    for (uint t = begin; t < end; t++) {
        const OFFSET_T count = COUNTS[t];
        COUNTS[t] = before;
        before += count;
    }
    if (item == 0) {
        total_base[total_offset] = all;
    }
}

#if WG == 1

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void set_tiles(
    RANGES, __global OFFSET_T* scratch, __global T* to_base, const ulong to_offset, const OFFSET_T capacity,
    const uint writes)
{
    __global T* to = to_base + to_offset;
    for (uint t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        LOCATE(t)
        FIND_PART(SPLITS[t], SPLITS[t + 1])
        OFFSET_T at_a = begin_a, at_b = begin_b;
        const OFFSET_T stop_a = begin_a + count_a, stop_b = begin_b + (part - count_a);
        OFFSET_T equals_a = EQUALS_A[t], equals_b = EQUALS_B[t], count = 0, place = writes != 0 ? COUNTS[t] : 0;
        for (uint k = 0; k < part; k++) {
            const int second = at_a >= stop_a || (at_b < stop_b && op_less(b[at_b], a[at_a]));
            const T x = second ? b[at_b] : a[at_a];
            int matched = 0;
            if (second) {
                const OFFSET_T rank = at_b - equals_b;
                if (WANTS_SECOND && at_a > rank) {
                    matched = !op_less(a[at_a - 1 - rank], x);
                }
                at_b++;
                if (at_b < stop_b && op_less(x, b[at_b])) {
                    equals_b = at_b;
                }
            } else {
                const OFFSET_T match = at_b + (at_a - equals_a);
                if (WANTS_FIRST && match < len_b) {
                    matched = !op_less(x, b[match]);
                }
                at_a++;
                if (at_a < stop_a && op_less(x, a[at_a])) {
                    equals_a = at_a;
                }
            }
            if (second ? WANTS_SECOND && !matched : SET == SET_UNION || (SET == SET_INTERSECTION) == matched) {
                if (writes != 0 && place < capacity) {
                    to[place] = x;
                }
                place++;
                count++;
            }
        }
        if (writes == 0) {
            COUNTS[t] = count;
        }
    }
}

#else

__kernel GROUP void set_tiles(
    RANGES, __global OFFSET_T* scratch, __global T* to_base, const ulong to_offset, const OFFSET_T capacity,
    const uint writes)
{
    __local T tile[TILE + 1];
    __local OFFSET_T sums[WG];
    const uint item = get_local_id(0);
    __global T* to = to_base + to_offset;
    for (uint t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        LOCATE(t)
        FIND_PART(SPLITS[t], SPLITS[t + 1])
        T x[ITEMS];
        LOAD_PART(tile, x)
        const uint before = min(item * ITEMS, part), own = min((uint)ITEMS, part - before);
        FIND_SPLIT(uint, split, tile, count_a, (tile + count_a), (part - count_a), before)
        uint at_a = split, at_b = count_a + before - split;
        const uint stop_a = count_a, stop_b = part;
        T x_a = tile[at_a], x_b = tile[at_b];
        // Where the equals of both begin: in the tile, or before it.
        OFFSET_T equals_a = EQUALS_A[t], equals_b = EQUALS_B[t];
        FIND_LOWER(uint, found_a, tile, at_a, x_a)
        FIND_LOWER(uint, found_b, (tile + count_a), at_b - count_a, x_b)
        equals_a = found_a == 0 ? equals_a : begin_a + found_a;
        equals_b = found_b == 0 ? equals_b : begin_b + found_b;
        uint keep = 0;
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            const int second = TAKES_SECOND(x_a, x_b);
            if (second) {
                x[k] = x_b;
            } else {
                x[k] = x_a;
            }
            // What is next of both, in all.
            const OFFSET_T all_a = begin_a + at_a, all_b = begin_b + (at_b - count_a);
            int kept = 0;
            if (k < own) {
                int matched = 0;
                if (second) {
                    const OFFSET_T rank = all_b - equals_b;
                    if (WANTS_SECOND && all_a > rank) {
                        const OFFSET_T match = all_a - 1 - rank;
                        if (match >= begin_a) {
                            matched = !op_less(tile[(uint)(match - begin_a)], x[k]);
                        } else {
                            matched = !op_less(a[match], x[k]);
                        }
                    }
                    kept = WANTS_SECOND && !matched;
                } else {
                    const OFFSET_T match = all_b + (all_a - equals_a);
                    if (WANTS_FIRST && match < len_b) {
                        if (match - begin_b < part - count_a) {
                            matched = !op_less(x[k], tile[count_a + (uint)(match - begin_b)]);
                        } else {
                            matched = !op_less(x[k], b[match]);
                        }
                    }
                    kept = SET == SET_UNION || (SET == SET_INTERSECTION) == matched;
                }
            }
            keep |= kept ? 1u << k : 0;
            STEP(tile, second, x_a, x_b)
            if (second) {
                equals_b = op_less(x[k], x_b) ? all_b + 1 : equals_b;
            } else {
                equals_a = op_less(x[k], x_a) ? all_a + 1 : equals_a;
            }
        }
        OFFSET_T all;
        uint place = (uint)sum_before(popcount(keep), sums, &all);
        if (writes == 0 && item == 0) {
            COUNTS[t] = all;
        }
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            if (keep >> k & 1) {
                tile[place++] = x[k];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        // No branches round these steps as a whole: PoCL 5 aborts on them.
        const OFFSET_T first = writes == 0 ? 0 : COUNTS[t], room = writes == 0 ? 0 : capacity;
        for (uint i = item; i < all; i += WG) {
            if (first + i < room) {
                to[first + i] = tile[i];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif
