// merge_tiles and merge_blocks with one work-item in each work-group, in global memory.

// Merges the first count_a elements of a with the first count_b of b.
INLINED void merge_run(
    __global T* to, __global const T* a, const OFFSET_T count_a, __global const T* b, const OFFSET_T count_b,
    __global VALUE* values_to, __global const VALUE* values_a, __global const VALUE* values_b)
{
    OFFSET_T at_a = 0, at_b = 0, done = 0;
    while (at_a < count_a && at_b < count_b) {
        if (op_less(b[at_b], a[at_a])) {
            if (VALUE_BYTES > 0) {
                values_to[done] = values_b[at_b];
            }
            to[done++] = b[at_b++];
        } else {
            if (VALUE_BYTES > 0) {
                values_to[done] = values_a[at_a];
            }
            to[done++] = a[at_a++];
        }
    }
    while (at_a < count_a) {
        if (VALUE_BYTES > 0) {
            values_to[done] = values_a[at_a];
        }
        to[done++] = a[at_a++];
    }
    while (at_b < count_b) {
        if (VALUE_BYTES > 0) {
            values_to[done] = values_b[at_b];
        }
        to[done++] = b[at_b++];
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void merge_tiles(
    RANGE_PARAMS, const uint shift, const uint tiles, __global const OFFSET_T* splits_base, const ulong splits_offset,
    __global T* to_base, const ulong to_offset VALUE_RANGES VALUE_RESULTS)
{
    TAKE_RANGES
    for (uint t = get_group_id(0); t < OWN_TILES; t += get_num_groups(0)) {
        const pair_t pair = find_pair(t, a_base + a_offset, n_a, b_base + b_offset, n_b, shift);
        const part_t part = find_part(pair.len_a, pair.len_b, pair.d, splits_base + splits_offset + t);
        const values_t values = find_values(&pair, &part, shift RANGES_AND_RESULTS);
        merge_run(
            to_base + to_offset + pair.first + pair.d, pair.a + part.begin_a, part.count_a, pair.b + part.begin_b,
            part.count - part.count_a, values.to, values.a, values.b);
    }
}

// Elements of a run that is sorted by insertion; ITEMS is a power of two times as many.
#define INSERTED 16

INLINED void insert_elements(
    __global T* x, __global VALUE* values_x, __global const T* from, __global const VALUE* values, const uint len)
{
    for (uint i = 0; i < len; i++) {
        const T key = from[i];
        uint position = i;
        while (position % INSERTED > 0 && op_less(key, x[position - 1])) {
            x[position] = x[position - 1];
            if (VALUE_BYTES > 0) {
                values_x[position] = values_x[position - 1];
            }
            position--;
        }
        x[position] = key;
        if (VALUE_BYTES > 0) {
            values_x[position] = values[i];
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void merge_blocks(
    __global const T* from_base, const ulong from_offset, const OFFSET_T n, const uint tiles, __global T* to_base,
    const ulong to_offset, __global T* spare_base, const ulong spare_offset VALUE_SOURCES VALUE_RESULTS VALUE_SPARE)
{
    uint levels = 0;
    while (INSERTED << levels < TILE) {
        levels++;
    }
    for (uint t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        const OFFSET_T first = (OFFSET_T)t * TILE;
        const uint len = (uint)min((OFFSET_T)TILE, n - first);
        // x has the sorted runs; after the last level it is `to`.
        __global T* x = levels % 2 == 0 ? to_base + to_offset + first : spare_base + spare_offset + first;
        __global T* y = levels % 2 == 0 ? spare_base + spare_offset + first : to_base + to_offset + first;
        __global VALUE* values_x = levels % 2 == 0 ? RESULTS(first) : SPARE(first);
        __global VALUE* values_y = levels % 2 == 0 ? SPARE(first) : RESULTS(first);
        insert_elements(x, values_x, from_base + from_offset + first, SOURCES(first), len);
        for (uint run = INSERTED; run < TILE; run *= 2) {
            for (uint at = 0; at < len; at += 2 * run) {
                const uint count_a = min(run, len - at), count_b = min(run, len - at - count_a);
                merge_run(
                    y + at, x + at, count_a, x + at + count_a, count_b, values_y + at, values_x + at,
                    values_x + at + count_a);
            }
            __global T* other = x;
            x = y;
            y = other;
            __global VALUE* other_values = values_x;
            values_x = values_y;
            values_y = other_values;
        }
    }
}
