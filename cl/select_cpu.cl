// Select for CPU drivers: a work-group is one work-item, and a tile is its share of the input.
//
// Bytes: reads n elements, twice if the order is kept; reads the values of selected elements; writes the outputs.
//
//     select_counts: for each tile: counts[m][tile] = number of the tile's elements of list m
//     select_spine:  exclusive prefixes of the counts (lib/spine.cl)
//     select_tiles:  for each tile:
//         at = output offsets from the prefixes
//         for each batch of the tile:
//             flag the batch: positions of the elements of each list
//             write the batch at `at`; at += number of elements of each list
//     select_unordered: one launch instead, where an atomic counter gives each batch its output offset
//
// The positions are stored without a branch, since flags are hard to predict (Ross, "Selection conditions in main
// memory", 2004).
#include "lib/select.cl"
#include "lib/select_finish.cl"

// Elements that the work-item flags before it moves them.
#define BATCH 1024

// OWN_SHARE: the maximum number of elements of a tile. START_OF: the index of its first element. With LENGTH_T the last
// tiles may be empty.
#ifdef LENGTH_T
#define OWN_SHARE ((n + tiles - 1) / tiles)
#define START_OF(tile) min(n, (OFFSET_T)((tile) * OWN_SHARE))
#else
#define OWN_SHARE share
#define START_OF(tile) ((OFFSET_T)((tile) * share))
#endif

// Finds for each list how many of the `len` elements from `base` on are in it, and their positions in the batch.
static inline void flag_batch(
    __global const T* x, OFFSET_T base, uint len, OFFSET_T n, ushort* positions, uint* count CAPTURED_PARAMS)
{
    for (uint c = 0; c < LISTS; c++) {
        count[c] = 0;
    }
    uint i = 0;
    // The loop leaves out element 0 of the input, so that no iteration tests for it.
    if (HEADS && base == 0) {
        positions[0] = 0;
        count[0] = list_of(x, 0, n CAPTURED_ARGS) == 0;
        i = 1;
    }
    IN_EIGHTS
    for (; i < len; i++) {
        const uint list = list_of_later(x, base + i, n CAPTURED_ARGS);
        // With CLASSES > 1 each element is in one list: the last list has the elements that the others leave.
        uint rest = i;
        for (uint c = 0; c + (CLASSES > 1) < LISTS; c++) {
            positions[c * BATCH + count[c]] = i;
            rest -= count[c];
            count[c] += list == c;
        }
        if (CLASSES > 1) {
            positions[(LISTS - 1) * BATCH + rest] = i;
        }
    }
    if (CLASSES > 1) {
        count[LISTS - 1] = len;
        for (uint c = 0; c + 1 < LISTS; c++) {
            count[LISTS - 1] -= count[c];
        }
    }
}

static inline void write_elements(
    __global const T* x, OFFSET_T base, const ushort* positions, uint count, ulong at, const Outputs* outputs)
{
    __global T* out = outputs->elements + outputs->elements_offset + at;
    const uint written = fitting(at, count, outputs->elements_room);
    IN_EIGHTS
    for (uint q = 0; q < written; q++) {
        out[q] = x[base + positions[q]];
    }
}

static inline void write_value(OFFSET_T i, ulong at, const Outputs* outputs)
{
    for (uint u = 0; u < VALUE_UNITS; u++) {
        outputs->values_out[outputs->values_out_offset + at * VALUE_UNITS + u] =
            outputs->values[outputs->values_offset + (ulong)i * VALUE_UNITS + u];
    }
}

static inline void write_values(
    OFFSET_T base, const ushort* positions, uint count, ulong at, const Outputs* outputs)
{
    const uint written = fitting(at, count, outputs->values_room);
    for (uint q = 0; q < written; q++) {
        write_value(base + positions[q], at + q, outputs);
    }
}

// Writes the elements or values backwards, from index `at - 1` down. The output of a partition has room for all of
// them.
static inline void write_backwards(
    __global const T* x, OFFSET_T base, const ushort* positions, uint count, ulong at, const Outputs* outputs)
{
    for (uint q = 0; q < count; q++) {
        if (MOVE) {
            outputs->elements[outputs->elements_offset + at - 1 - q] = x[base + positions[q]];
        } else {
            write_value(base + positions[q], at - 1 - q, outputs);
        }
    }
}

static inline void write_indices(
    OFFSET_T base, const ushort* positions, uint count, ulong at, __global PLACE* out_base, ulong out_offset,
    ulong room)
{
    const uint written = fitting(at, count, room);
    __global PLACE* out = out_base + out_offset + at;
    for (uint q = 0; q < written; q++) {
        out[q] = (PLACE)(base + positions[q]);
    }
}

// Writes the lengths of the runs that end at a head of this batch. The start of the run that ends at the tile's first
// head is not known here, so the record keeps its end. `last` is 1 + the index of the tile's last head so far, or 0.
static inline void write_lengths(
    OFFSET_T base, const ushort* positions, uint count, ulong at, OFFSET_T tile, ulong* last, const Outputs* outputs)
{
    if (count == 0) {
        return;
    }
    __global PLACE* lengths = outputs->lengths + outputs->lengths_offset;
    if (*last == 0) {
        RECORD(outputs->records + outputs->records_at, tile)[1] = (ulong)base + positions[0];
    } else if (at - 1 < outputs->lengths_room) {
        lengths[at - 1] = (PLACE)((ulong)base + positions[0] + 1 - *last);
    }
    const uint written = fitting(at, count - 1, outputs->lengths_room);
    for (uint q = 0; q < written; q++) {
        lengths[at + q] = (PLACE)(positions[q + 1] - positions[q]);
    }
    *last = (ulong)base + positions[count - 1] + 1;
}

// Writes the outputs of a batch, and moves `at` and `last` beyond it.
static inline void write_batch(
    __global const T* x, OFFSET_T base, OFFSET_T tile, const ushort* positions, const uint* count, ulong* at,
    ulong* last, const Outputs* outputs)
{
    for (uint c = 0; c < LISTS; c++) {
        const ushort* own = positions + c * BATCH;
        if (REVERSED && c == 1) {
            write_backwards(x, base, own, count[c], at[c], outputs);
            at[c] -= count[c];
            continue;
        }
        if (MOVE) {
            write_elements(x, base, own, count[c], at[c], outputs);
        }
        if (VALUES) {
            write_values(base, own, count[c], at[c], outputs);
        }
        if (NON_TRIVIAL && c == 1) {
            write_indices(base, own, count[c], at[c], outputs->lengths, outputs->lengths_offset, outputs->lengths_room);
        } else if (PLACES) {
            write_indices(base, own, count[c], at[c], outputs->indices, outputs->indices_offset, outputs->indices_room);
        }
        if (RECORDS) {
            write_lengths(base, own, count[c], at[c], tile, last, outputs);
        }
        at[c] += count[c];
    }
}

#ifdef UNORDERED

KERNEL void select_unordered(
    INPUT_PARAMS OUTPUT_PARAMS, __global ulong* count_base, const ulong count_offset, const OFFSET_T tiles,
    const OFFSET_T share)
{
    TAKE_LENGTH
    __global const T* x = in_base + in_offset;
    const Outputs outputs = {OUTPUT_ARGS};
    const OFFSET_T first = START_OF(get_group_id(0)), end = first + min(OWN_SHARE, n - first);
    for (OFFSET_T base = first; base < end; base += BATCH) {
        ushort positions[LISTS * BATCH];
        uint count[LISTS];
        ulong at[LISTS], last = 0;
        flag_batch(x, base, min((OFFSET_T)BATCH, end - base), n, positions, count CAPTURED_ARGS);
        at[0] = atom_add((volatile __global ulong*)(count_base + count_offset), (ulong)count[0]);
        write_batch(x, base, 0, positions, count, at, &last, &outputs);
    }
}

#else

// Stores counts[m * stride + t], how many elements of tile t are in list m.
KERNEL void select_counts(
    INPUT_PARAMS, __global ulong* counts, const ulong stride, const OFFSET_T tiles, const OFFSET_T share)
{
    TAKE_LENGTH
    __global const T* x = in_base + in_offset;
    const OFFSET_T tile = get_group_id(0), first = START_OF(tile), end = first + min(OWN_SHARE, n - first);
    OFFSET_T count[COUNTED];
    for (uint m = 0; m < COUNTED; m++) {
        count[m] = 0;
    }
    OFFSET_T i = first;
    if (HEADS && first == 0 && first < end) {
        count[0] = list_of(x, 0, n CAPTURED_ARGS) == 0;
        i = 1;
    }
    IN_VECTORS
    for (; i < end; i++) {
        const uint list = list_of_later(x, i, n CAPTURED_ARGS);
        for (uint m = 0; m < COUNTED; m++) {
            count[m] += list == m;
        }
    }
    for (uint m = 0; m < COUNTED; m++) {
        counts[m * stride + tile] = count[m];
    }
}

KERNEL void select_tiles(
    INPUT_PARAMS OUTPUT_PARAMS, __global ulong* count_base, const ulong count_offset, __global const ulong* counts,
    const ulong stride, const OFFSET_T tiles, const OFFSET_T share)
{
    TAKE_LENGTH
    __global const T* x = in_base + in_offset;
    const Outputs outputs = {OUTPUT_ARGS};
    const OFFSET_T tile = get_group_id(0), first = START_OF(tile), end = first + min(OWN_SHARE, n - first);
    ulong before[COUNTED], all[COUNTED], at[LISTS], last = 0;
    load_prefixes(counts, stride, tile, tiles, before, all);
    output_offsets(x, before, all, first, n, at);
    for (OFFSET_T base = first; base < end; base += BATCH) {
        ushort positions[LISTS * BATCH];
        uint count[LISTS];
        flag_batch(x, base, min((OFFSET_T)BATCH, end - base), n, positions, count CAPTURED_ARGS);
        write_batch(x, base, tile, positions, count, at, &last, &outputs);
    }
    if (RECORDS) {
        RECORD(outputs.records + outputs.records_at, tile)[0] = at[0];
        RECORD(outputs.records + outputs.records_at, tile)[2] = last - 1;
    }
    if (tile == tiles - 1) {
        store_counts(count_base + count_offset, before, all, at[0] - before[0]);
    }
}

#endif
