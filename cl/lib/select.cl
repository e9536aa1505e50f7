// Select, the part that all variants share: the options, the outputs, the list of an element, and the offset of each
// list in the output.
//
// An element goes to one of LISTS lists, or to none:
//
//     CLASSES == 1    list 0 if FIRST(x), else none
//     CLASSES == 2    list 0 if FIRST(x), else list 1
//     CLASSES == 3    list 0 if FIRST(x), else list 1 if SECOND(x), else list 2
//     HEADS           list 0 if x[i] != x[i - 1]: a run of equal elements begins
//     NON_TRIVIAL     list 0 where a run of at least two elements begins, list 1 where it ends
//
// The lists are written one after another, each contiguously and in the input's order. With REVERSED, list 1 is an
// unstable tail: it is written backwards from the end of the output, so its start need not be known. Options choose
// what is written:
//
//     MOVE       the elements
//     VALUE      a value of VALUE_UNITS units for each element
//     PLACES     the indices of the elements, of type PLACE
//     LENGTHS    the lengths of the runs, of type PLACE; with NON_TRIVIAL first the indices of the runs' last
//                elements, which select_run_ends turns into lengths
//
// An output has room for a given number of items; further items are counted but not written.

// The multi-level scan (lib/spine.cl) adds counts.
#define A ulong
#define A_BYTES 8
#define A_UNSIGNED ulong
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"
#include "lib/spine.cl"
#include "lib/length.cl"

#ifndef CLASSES
#define CLASSES 1
#endif
#ifndef REVERSED
#define REVERSED 0
#endif
// The host puts the predicates before the file. Without them, an element is a flag. If the predicates capture values,
// the host also defines these values as parameters of the kernels and of the functions that evaluate the predicates.
#ifndef CAPTURED_PARAMS
#define CAPTURED_PARAMS
#define CAPTURED_ARGS
#define FIRST_CAPTURED
#define SECOND_CAPTURED
#endif
#ifdef PREDICATES
#define FIRST(x) first_kind(widen(x) FIRST_CAPTURED)
#else
#define FIRST(x) ((x) != 0)
#endif
#if defined(PREDICATES) && CLASSES == 3
#define SECOND(x) second_kind(widen(x) SECOND_CAPTURED)
#else
#define SECOND(x) ((x) != 1)
#endif

// MASKS: the number of bit masks that encode an element's list. COUNTED: the number of lists counted over all tiles.
#ifdef NON_TRIVIAL
#define HEADS 1
#define LISTS 2
#define MASKS 2
#define COUNTED 1
#else
#define NON_TRIVIAL 0
#define LISTS CLASSES
#define MASKS (CLASSES == 3 ? 2 : 1)
#define COUNTED MASKS
#endif
#ifndef HEADS
#define HEADS 0
#endif
// Tiles need the lengths of the counted lists over the whole input.
#define NEEDS_ALL (CLASSES > 1 && !REVERSED)

// With HEADS the host passes floats as unsigned integers, and the bits of infinity.
#define KEY T
#define KEY_BYTES T_BYTES
#include "lib/equal.cl"

// NVIDIA's compiler obeys a register limit only if the kernel does not fix its work-group size.
#if SG_BACKEND == SG_PTX
#define KERNEL __kernel
#else
#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif

// The kernels' parameters. OUTPUT_ARGS initialises `Outputs` from OUTPUT_PARAMS.
#define INPUT_PARAMS __global const T *in_base, const ulong in_offset, LENGTH_PARAMS CAPTURED_PARAMS
#ifdef MOVE
#define MOVE_PARAMS , __global T *out_base, const ulong out_offset, const ulong out_room
#define MOVE_ARGS out_base, out_offset, out_room
#else
#define MOVE 0
#define MOVE_PARAMS
#define MOVE_ARGS 0, 0, 0
#endif
#ifdef VALUE
#define VALUES 1
#define VALUE_PARAMS                                                                                                   \
    , __global const VALUE *values_base, const ulong values_offset, __global VALUE *values_out_base,                   \
        const ulong values_out_offset, const ulong values_room
#define VALUE_ARGS values_base, values_offset, values_out_base, values_out_offset, values_room
#else
#define VALUES 0
#define VALUE uchar
#define VALUE_UNITS 1
#define VALUE_PARAMS
#define VALUE_ARGS 0, 0, 0, 0, 0
#endif
#ifndef PLACE
#define PLACE uint
#endif
#ifdef PLACES
#define PLACES_PARAMS , __global PLACE *indices_base, const ulong indices_offset, const ulong indices_room
#define PLACES_ARGS indices_base, indices_offset, indices_room
#else
#define PLACES 0
#define PLACES_PARAMS
#define PLACES_ARGS 0, 0, 0
#endif
#ifdef LENGTHS
#define LENGTHS_PARAMS , __global PLACE *lengths_base, const ulong lengths_offset, const ulong lengths_room
#define LENGTHS_ARGS lengths_base, lengths_offset, lengths_room
#else
#define LENGTHS 0
#define LENGTHS_PARAMS
#define LENGTHS_ARGS 0, 0, 0
#endif
// A run may end in a later tile than the one in which it begins. So each tile writes a record for select_last_runs. It
// has the number of heads up to the tile's end and, if the tile has heads, the indices of the first and the last.
#define RECORD(records, tile) ((records) + 3 * (ulong)(tile))
#if LENGTHS && !NON_TRIVIAL
#define RECORDS 1
#define RECORDS_PARAMS , __global ulong *scratch, const ulong records_at
#define RECORDS_ARGS scratch, records_at
#else
#define RECORDS 0
#define RECORDS_PARAMS
#define RECORDS_ARGS 0, 0
#endif
#define OUTPUT_PARAMS MOVE_PARAMS VALUE_PARAMS PLACES_PARAMS LENGTHS_PARAMS RECORDS_PARAMS
#define OUTPUT_ARGS MOVE_ARGS, VALUE_ARGS, PLACES_ARGS, LENGTHS_ARGS, RECORDS_ARGS

// Vectors of a work-item in a tile, except on CPU drivers; even.
#ifndef ROWS
#define ROWS 4
#endif
#define TILE (WG * ROWS * VEC)

// Pointers to the outputs. Those of outputs that the options leave out are null.
typedef struct {
    __global T* elements;
    ulong elements_offset, elements_room;
    __global const VALUE* values;
    ulong values_offset;
    __global VALUE* values_out;
    ulong values_out_offset, values_room;
    __global PLACE* indices;
    ulong indices_offset, indices_room;
    __global PLACE* lengths;
    ulong lengths_offset, lengths_room;
    __global ulong* records;
    ulong records_at;
} Outputs;

// Returns the list of element i > 0, or LISTS if it is in none.
static inline uint list_of_later(__global const T* x, OFFSET_T i, OFFSET_T n CAPTURED_PARAMS)
{
    if (HEADS) {
        const bool continues = equal(x[i - 1], x[i]);
        if (NON_TRIVIAL) {
            const bool lasts = i + 1 < n && equal(x[i], x[i + 1]);
            return continues == lasts ? LISTS : continues ? 1 : 0;
        }
        return continues ? LISTS : 0;
    }
    if (CLASSES == 3) {
        const T value = x[i];
        return FIRST(value) ? 0 : SECOND(value) ? 1 : 2;
    }
    return FIRST(x[i]) ? 0 : 1;
}

// Returns the list of element i, or LISTS. At element 0 a run may begin, but no run of two can end.
static inline uint list_of(__global const T* x, OFFSET_T i, OFFSET_T n CAPTURED_PARAMS)
{
    if (HEADS && i == 0) {
        return !NON_TRIVIAL || (n > 1 && equal(x[0], x[1])) ? 0 : LISTS;
    }
    return list_of_later(x, i, n CAPTURED_ARGS);
}

// Returns how many of `count` items fit from offset `at` on.
static inline uint fitting(ulong at, uint count, ulong room)
{
    return at >= room ? 0 : (uint)min((ulong)count, room - at);
}

// Finds at[c], the output offset of the elements of list c of the tile that starts at `base`. Of list c, before[c]
// elements precede the tile, and the input has all[c]. With REVERSED, at[1] is the end of the tile's part of list 1.
static inline void output_offsets(
    __global const T* x, const ulong* before, const ulong* all, OFFSET_T base, OFFSET_T n, ulong* at)
{
    at[0] = before[0];
    if (NON_TRIVIAL) {
        // Each run that begins before the tile ends before it, except one that crosses the tile's start.
        at[1] = at[0] - (base > 0 && base < n && equal(x[base - 1], x[base]) ? 1 : 0);
    } else if (REVERSED) {
        at[1] = n - (base - before[0]);
    } else if (CLASSES == 2) {
        at[1] = all[0] + (base - before[0]);
    } else if (CLASSES == 3) {
        at[1] = all[0] + before[1];
        at[2] = all[0] + all[1] + (base - before[0] - before[1]);
    }
}

// OWN_TILES: the number of tiles of the n elements. With LENGTH_T the arguments `tiles` and `share` are those of the
// capacity. On CPU drivers all `tiles` tiles then share the n elements equally.
#if defined(LENGTH_T) && WG != 1
#define OWN_TILES (n / TILE + (n % TILE != 0))
#else
#define OWN_TILES tiles
#endif

// The entries of the multi-level scan: a count for each tile. With NEEDS_ALL there is one more, whose exclusive prefix
// is the sum of all.
#define SCANNED(tiles) ((tiles) + NEEDS_ALL)

// Loads the exclusive prefixes of a tile's counts, and the sums over all tiles if tiles need them.
static inline void load_prefixes(
    __global const ulong* counts, ulong stride, OFFSET_T tile, OFFSET_T tiles, ulong* before, ulong* all)
{
    for (uint m = 0; m < COUNTED; m++) {
        before[m] = exclusive_prefix(counts + m * stride, tile, SCANNED(tiles), 0);
        if (NEEDS_ALL) {
            all[m] = exclusive_prefix(counts + m * stride, tiles, SCANNED(tiles), 0);
        }
    }
}

// Stores the lengths of the counted lists. The last tile calls it; `last` is that tile's own count of list 0.
static inline void store_counts(__global ulong* count, const ulong* before, const ulong* all, ulong last)
{
    if (NEEDS_ALL) {
        for (uint m = 0; m < COUNTED; m++) {
            count[m] = all[m];
        }
    } else {
        *count = before[0] + last;
    }
}
