// merge_tiles and merge_blocks by work-groups, in local memory.
//
//     merge_tiles:   load both parts; each work-item finds its split and merges ITEMS elements in registers; store
//     merge_blocks:  each work-item sorts its elements by odd-even transpositions; then log2(WG) merges in local memory

// Puts a work-item's elements into the tile.
INLINED void put_elements(__local T* tile, const T* x)
{
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        tile[get_local_id(0) * ITEMS + k] = x[k];
    }
}

__kernel GROUP void merge_tiles(
    RANGE_PARAMS, const uint shift, const uint tiles, __global const OFFSET_T* splits_base, const ulong splits_offset,
    __global T* to_base, const ulong to_offset VALUE_RANGES VALUE_RESULTS)
{
    __local T tile[TILE + 1];
    __local ushort sources[VALUE_BYTES > 0 ? TILE : 1];
    TAKE_RANGES
    const uint item = get_local_id(0);
    for (uint t = get_group_id(0); t < OWN_TILES; t += get_num_groups(0)) {
        const pair_t pair = find_pair(t, a_base + a_offset, n_a, b_base + b_offset, n_b, shift);
        const part_t part = find_part(pair.len_a, pair.len_b, pair.d, splits_base + splits_offset + t);
        const values_t values = find_values(&pair, &part, shift RANGES_AND_RESULTS);
        const uint count_a = part.count_a;
        T x[ITEMS];
        load_part(tile, x, pair.a, pair.b, &part);
        const uint own = min(item * ITEMS, part.count);
        const uint split = find_split_local(tile, count_a, tile + count_a, part.count - count_a, own);
        uint positions[ITEMS];
        merge_items(
            x, positions, sources + item * ITEMS, VALUE_BYTES > 0, tile, split, count_a, count_a + own - split,
            part.count);
        barrier(CLK_LOCAL_MEM_FENCE);
        put_elements(tile, x);
        barrier(CLK_LOCAL_MEM_FENCE);
        // The stores are not in functions, because clang 15 fully unrolls a loop in a function.
        __global T* to = to_base + to_offset + pair.first + pair.d;
        UNROLL_SOME
        for (uint k = 0; k < ITEMS; k++) {
            const uint i = k * WG + item;
            if (i < part.count) {
                to[i] = tile[i];
            }
        }
        if (VALUE_BYTES > 0) {
            UNROLL_SOME
            for (uint k = 0; k < ITEMS; k++) {
                const uint i = k * WG + item;
                if (i < part.count) {
                    const uint source = sources[i];
                    values.to[i] = *(source < count_a ? values.a + source : values.b + (source - count_a));
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Takes a work-item's elements from the tile, and their positions. Beyond the tile's `count` elements it repeats the
// work-item's largest element. The sort leaves these copies at the end.
INLINED void take_elements(T* x, uint* positions, __local const T* tile, const uint count)
{
    const uint item = get_local_id(0);
    uint largest = item * ITEMS;
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        const uint i = item * ITEMS + k;
        x[k] = tile[i];
        positions[k] = min(i, count - 1);
        if (i < count) {
            if (op_less(tile[largest], x[k])) {
                largest = i;
            }
        } else {
            x[k] = tile[largest];
            positions[k] = min(largest, count - 1);
        }
    }
}

// Puts elements k and k + 1 in order.
INLINED void exchange(T* x, uint* positions, const uint k)
{
    if (op_less(x[k + 1], x[k])) {
        const T other = x[k];
        x[k] = x[k + 1];
        x[k + 1] = other;
        const uint position = positions[k];
        positions[k] = positions[k + 1];
        positions[k + 1] = position;
    }
}

INLINED void put_positions(__local ushort* sources, const uint* positions)
{
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        sources[get_local_id(0) * ITEMS + k] = (ushort)positions[k];
    }
}

// Merges pairs of runs. A run has the elements of `lanes` work-items. `positions` keep the positions in the unsorted
// tile.
INLINED void merge_runs(
    T* x, uint* positions, __local const T* tile, __local const ushort* sources, const uint lanes, const uint count)
{
    const uint item = get_local_id(0), inner = item & (2 * lanes - 1), begin = min((item - inner) * ITEMS, count);
    const uint len_a = min(lanes * ITEMS, count - begin), len_b = min(lanes * ITEMS, count - begin - len_a);
    const uint own = min(inner * ITEMS, len_a + len_b);
    const uint split = find_split_local(tile + begin, len_a, tile + begin + len_a, len_b, own);
    const uint stop_a = begin + len_a;
    merge_items(
        x, positions, 0, false, tile, begin + split, stop_a, begin + len_a + own - split, stop_a + len_b);
    if (VALUE_BYTES > 0) {
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            positions[k] = sources[min(positions[k], TILE - 1u)];
        }
    }
}

__kernel GROUP void merge_blocks(
    __global const T* from_base, const ulong from_offset, const OFFSET_T n, const uint tiles, __global T* to_base,
    const ulong to_offset VALUE_SOURCES VALUE_RESULTS)
{
    __local T tile[TILE + 1];
    __local ushort sources[VALUE_BYTES > 0 ? TILE + 1 : 1];
    const uint item = get_local_id(0);
    for (uint t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        const OFFSET_T first = (OFFSET_T)t * TILE;
        const uint count = (uint)min((OFFSET_T)TILE, n - first);
        const part_t part = {0, 0, count, count};
        __global const T* from = from_base + from_offset + first;
        T x[ITEMS];
        uint positions[ITEMS];
        load_part(tile, x, from, from, &part);
        take_elements(x, positions, tile, count);
        // Odd-even transpositions. In a function they would take more registers, since clang 15 optimises a function
        // before it inlines it.
        UNROLL
        for (uint round = 0; round < ITEMS; round += 2) {
            UNROLL
            for (uint k = 0; k + 1 < ITEMS; k += 2) {
                exchange(x, positions, k);
            }
            UNROLL
            for (uint k = 1; k + 1 < ITEMS; k += 2) {
                exchange(x, positions, k);
            }
        }
        for (uint lanes = 1; lanes < WG; lanes *= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            put_elements(tile, x);
            if (VALUE_BYTES > 0) {
                put_positions(sources, positions);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            merge_runs(x, positions, tile, sources, lanes, count);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        put_elements(tile, x);
        if (VALUE_BYTES > 0) {
            put_positions(sources, positions);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL_SOME
        for (uint k = 0; k < ITEMS; k++) {
            const uint i = k * WG + item;
            if (i < count) {
                to_base[to_offset + first + i] = tile[i];
            }
        }
        if (VALUE_BYTES > 0) {
            __global const VALUE* values = SOURCES(first);
            __global VALUE* values_to = RESULTS(first);
            UNROLL_SOME
            for (uint k = 0; k < ITEMS; k++) {
                const uint i = k * WG + item;
                if (i < count) {
                    values_to[i] = values[sources[i]];
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
