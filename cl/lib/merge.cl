// Merge path (Green, McColl and Bader 2012): the first d elements of the merge of two sorted ranges a and b are the
// first `split` of a and the first d - split of b, where
//
//     split = min {s : s >= d - len_b, s >= 0, and s == min(d, len_a) or b[d - 1 - s] comes before a[s]}
//
// A binary search finds `split`. So tiles of the result have equal sizes whatever the data. Of equal elements those of
// a come first.
//
// The host defines the element type T of T_BYTES bytes, and op_less(x, y): x comes before y. If op_less is not a strict
// weak order, the results are unspecified, but loops end and accesses stay within bounds. The lengths bound each split,
// and a part takes no more elements than exist.
//
// A work-group of WG work-items has tiles of TILE elements. If WG == 1, the work-item merges a tile in global memory.

#include "lib/compiler.cl"

#ifndef OPERATOR
#define T uint
#define T_BYTES 4
static inline int op_less(const T a, const T b) { return a < b; }
#define OFFSET_T uint
#define WG 256
#define ITEMS 17
#endif
#define TILE (WG * ITEMS)
// NVIDIA's compiler obeys a register limit only if the kernel does not fix its work-group size.
#ifdef INLINE_PTX
#define GROUP
#else
#define GROUP __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif
#define UNROLL _Pragma("unroll")
// UNROLL_SOME: for loops that would take so many registers, if they were fully unrolled, that fewer work-groups could
// run at a time.
#define UNROLL_SOME _Pragma("unroll 4")

// NAME(a, len_a, b, len_b, d): the split at d, which is at most len_a + len_b. It uses `max`, because Oclgrind 21.10
// does not know the saturated subtraction that clang makes of a condition.
#define DEFINE_SPLIT(NAME, INDEX, SPACE)                                                                               \
    INLINED INDEX NAME(SPACE const T* a, const INDEX len_a, SPACE const T* b, const INDEX len_b, const INDEX d)        \
    {                                                                                                                  \
        INDEX split = max(d, len_b) - len_b;                                                                           \
        ROLLED                                                                                                         \
        for (INDEX high = min(d, len_a); split < high;) {                                                              \
            const INDEX mid = split + (high - split) / 2;                                                              \
            if (op_less(b[d - 1 - mid], a[mid])) {                                                                     \
                high = mid;                                                                                            \
            } else {                                                                                                   \
                split = mid + 1;                                                                                       \
            }                                                                                                          \
        }                                                                                                              \
        return split;                                                                                                  \
    }
DEFINE_SPLIT(find_split, OFFSET_T, __global)
DEFINE_SPLIT(find_split_local, uint, __local)

// NAME(range, len, x): the index of the first of `len` elements that does not come before x.
#define DEFINE_LOWER(NAME, INDEX, SPACE)                                                                               \
    INLINED INDEX NAME(SPACE const T* range, const INDEX len, const T x)                                               \
    {                                                                                                                  \
        INDEX found = 0;                                                                                               \
        ROLLED                                                                                                         \
        for (INDEX high = len; found < high;) {                                                                        \
            const INDEX mid = found + (high - found) / 2;                                                              \
            if (op_less(range[mid], x)) {                                                                              \
                found = mid + 1;                                                                                       \
            } else {                                                                                                   \
                high = mid;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        return found;                                                                                                  \
    }
DEFINE_LOWER(find_lower, OFFSET_T, __global)
DEFINE_LOWER(find_lower_local, uint, __local)

// The part that a tile merges: count_a elements of a from begin_a on, and count - count_a elements of b from begin_b
// on.
typedef struct {
    OFFSET_T begin_a, begin_b;
    uint count, count_a;
} part_t;

// The part of the tile whose result begins at d. splits[0] is the tile's split, and splits[1] is that of the next tile,
// if there is one.
INLINED part_t find_part(
    const OFFSET_T len_a, const OFFSET_T len_b, const OFFSET_T d, __global const OFFSET_T* splits)
{
    part_t part;
    part.count = (uint)min((OFFSET_T)TILE, len_a + len_b - d);
    part.begin_a = splits[0];
    part.begin_b = d - part.begin_a;
    const OFFSET_T end_a = len_a + len_b - d <= TILE ? len_a : splits[1];
    part.count_a = end_a < part.begin_a ? 0 : (uint)min(end_a - part.begin_a, (OFFSET_T)part.count);
    return part;
}

// Loads the part's elements to tile[0 .. TILE]. The part's last element fills the rest of the tile, and tile[TILE] has
// its first element. So every element that is read later has been written. x has ITEMS elements, and is free
// afterwards. All work-items call it.
INLINED void load_part(
    __local T* tile, T* x, __global const T* a, __global const T* b, const part_t* part)
{
    const uint item = get_local_id(0);
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        const uint i = min(k * WG + item, part->count - 1);
        x[k] = *(i < part->count_a ? a + (part->begin_a + i) : b + (part->begin_b + (i - part->count_a)));
    }
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        tile[k * WG + item] = x[k];
    }
    if (item == 0) {
        tile[TILE] = x[0];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// True if a merge takes its next element from the second range. at_a and at_b are the positions of the next elements
// x_a and x_b. The ranges end at stop_a and stop_b.
INLINED int takes_second(
    const uint at_a, const uint stop_a, const T x_a, const uint at_b, const uint stop_b, const T x_b)
{
    return (at_a >= stop_a) | ((at_b < stop_b) & (op_less(x_b, x_a) != 0));
}

// Merges ITEMS elements of tile[at_a .. stop_a] and tile[at_b .. stop_b] to x. Their positions in the tile go to
// `positions` and, if `notes`, to `sources`. A work-item that has no elements left reads beyond the ends of both
// ranges, but its ITEMS steps stay in the tile.
INLINED void merge_items(
    T* x, uint* positions, __local ushort* sources, const bool notes, __local const T* tile, uint at_a,
    const uint stop_a, uint at_b, const uint stop_b)
{
    T x_a = tile[at_a], x_b = tile[at_b];
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        const int second = takes_second(at_a, stop_a, x_a, at_b, stop_b, x_b);
        positions[k] = second ? at_b : at_a;
        if (notes) {
            sources[k] = (ushort)positions[k];
        }
        if (second) {
            x[k] = x_b;
        } else {
            x[k] = x_a;
        }
        at_a += second ? 0 : 1;
        at_b += second ? 1 : 0;
        const T next = tile[second ? at_b : at_a];
        if (second) {
            x_b = next;
        } else {
            x_a = next;
        }
    }
}
