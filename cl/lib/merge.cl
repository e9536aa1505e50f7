// Merge path (Green, McColl and Bader 2012): two sorted ranges are merged by parts of the result, each of which begins at a
// split: how many of the elements before it are of the first range. Splits are found by binary search, so that parts are
// equal whatever the data.
//
// The host puts the order in front: the element type T of T_BYTES bytes, and op_less(a, b), whether a comes before b. Where it
// is no strict weak order the results mean nothing, but every loop ends and every access is within: splits are between the
// bounds that lengths give, and a part never takes more than there is.
//
// A work-group of WG items has a tile of ITEMS elements each. With WG == 1 the item walks through the tile in global memory.
#ifndef OCLPRIM_MERGE_CL
#define OCLPRIM_MERGE_CL

#ifndef OPERATOR
#define T uint
#define T_BYTES 4
static inline int op_less(const T a, const T b) { return a < b; }
#endif
#ifndef OFFSET_T
#define OFFSET_T uint
#endif
#ifndef WG
#define WG 256
#endif
#ifndef ITEMS
#define ITEMS 17
#endif
#define TILE (WG * ITEMS)
// NVIDIA's compiler keeps to a limit of registers only where the size of work-groups is open.
#ifdef INLINE_PTX
#define GROUP
#else
#define GROUP __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif
#define UNROLL _Pragma("unroll")
// Where all at once would take the registers of other work-groups.
#define UNROLL_SOME _Pragma("unroll 4")
// For functions with barriers or local memory: PoCL 3.1 gets both wrong in functions that it calls.
#define INLINED static inline __attribute__((always_inline))

// split: how many of the first `d` elements are of `first`, which has `len_a` elements, the others being of `second`. Of equal
// ones those of `first` come first. The pointers may be to any memory; d is at most len_a + len_b. By `max`: Oclgrind 21.10
// does not know the saturated subtraction that clang makes of a condition.
#define FIND_SPLIT(INDEX, split, first, len_a, second, len_b, d)                                                       \
    INDEX split = max((INDEX)(d), (INDEX)(len_b)) - (INDEX)(len_b);                                                    \
    for (INDEX high = min((INDEX)(d), (INDEX)(len_a)); split < high;) {                                                \
        const INDEX mid = split + (high - split) / 2;                                                                  \
        if (op_less((second)[(d) - 1 - mid], (first)[mid])) {                                                          \
            high = mid;                                                                                                \
        } else {                                                                                                       \
            split = mid + 1;                                                                                           \
        }                                                                                                              \
    }

// found: where in the `len` elements of `range` the first is that does not come before `x`.
#define FIND_LOWER(INDEX, found, range, len, x)                                                                        \
    INDEX found = 0;                                                                                                   \
    for (INDEX high = (len); found < high;) {                                                                          \
        const INDEX mid = found + (high - found) / 2;                                                                  \
        if (op_less((range)[mid], x)) {                                                                                \
            found = mid + 1;                                                                                           \
        } else {                                                                                                       \
            high = mid;                                                                                                \
        }                                                                                                              \
    }

// What a tile merges: `part` elements from the d-th of a and b on, the first count_a from a[begin_a] on, the others from
// b[begin_b] on. `next` is the split behind the tile.
#define FIND_PART(begin, next)                                                                                         \
    const uint part = (uint)min((OFFSET_T)TILE, len_a + len_b - d);                                                    \
    const OFFSET_T begin_a = (begin), begin_b = d - begin_a;                                                           \
    const OFFSET_T end_a = len_a + len_b - d <= TILE ? len_a : (next);                                                 \
    const uint count_a = end_a < begin_a ? 0 : (uint)min(end_a - begin_a, (OFFSET_T)part);

#if WG > 1

// The tile's elements, in tile[0 .. TILE + 1]: beyond its end the last one again, so that all is written that is read. All
// items call it; x has ITEMS elements.
#define LOAD_PART(tile, x)                                                                                             \
    UNROLL                                                                                                             \
    for (uint k = 0; k < ITEMS; k++) {                                                                                 \
        const uint i = min(k * WG + item, part - 1);                                                                   \
        x[k] = *(i < count_a ? a + (begin_a + i) : b + (begin_b + (i - count_a)));                                     \
    }                                                                                                                  \
    UNROLL                                                                                                             \
    for (uint k = 0; k < ITEMS; k++) {                                                                                 \
        tile[k * WG + item] = x[k];                                                                                    \
    }                                                                                                                  \
    if (item == 0) {                                                                                                   \
        tile[TILE] = x[0];                                                                                             \
    }                                                                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);

// One step of an item's merge: whether the next element is of the second range, where its next is at_b, and ends at stop_b.
#define TAKES_SECOND(x_a, x_b) ((at_a >= stop_a) | ((at_b < stop_b) & (op_less(x_b, x_a) != 0)))

// Goes on in one of the ranges. Beyond both ends, as items do that have nothing left, ITEMS steps stay within the tile.
#define STEP(tile, second, x_a, x_b)                                                                                   \
    at_a += second ? 0 : 1;                                                                                            \
    at_b += second ? 1 : 0;                                                                                            \
    {                                                                                                                  \
        const T next = tile[second ? at_b : at_a];                                                                     \
        if (second) {                                                                                                  \
            x_b = next;                                                                                                \
        } else {                                                                                                       \
            x_a = next;                                                                                                \
        }                                                                                                              \
    }

// ITEMS elements from tile[at_a ..stop_a] and tile[at_b .. stop_b], to x; NOTE(k, place) is told where the k-th was.
#define MERGE_ITEMS(tile, x, NOTE)                                                                                     \
    {                                                                                                                  \
        T x_a = tile[at_a], x_b = tile[at_b];                                                                          \
        UNROLL                                                                                                         \
        for (uint k = 0; k < ITEMS; k++) {                                                                             \
            const int second = TAKES_SECOND(x_a, x_b);                                                                 \
            NOTE(k, second ? at_b : at_a)                                                                              \
            if (second) {                                                                                              \
                x[k] = x_b;                                                                                            \
            } else {                                                                                                   \
                x[k] = x_a;                                                                                            \
            }                                                                                                          \
            STEP(tile, second, x_a, x_b)                                                                               \
        }                                                                                                              \
    }

#endif

#endif
