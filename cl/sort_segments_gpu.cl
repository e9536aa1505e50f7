// sort_segments_small by work-groups: a merge sort of a tile in local memory, which never moves a key to another
// segment.
//
//     load the segment-head flags and the keys of the tile
//     each work-item sorts its ITEMS keys by odd-even transpositions, but not across segment heads
//     for lists = 1, 2, 4, ...: a sorted list has the keys of `lists` work-items. Where two lists meet, merge the one
//         segment that is in both (merge path). All other keys stay in their places, so that most work-items are idle
//         once lists are longer than segments
//     store the keys, and the values by the keys' positions in the tile
//
// Merge path: Green, McColl and Bader 2012. Merging by segments: Baxter's segmented sort, 2013.

// Words of segment-head flags that work-items read; those beyond the tile are all ones.
#define HEAD_WORDS (TILE / 32 + 3)

// The first head from p on; there is one.
INLINED uint next_head(__local const uint* heads, const uint p)
{
    uint i = p / 32, word = heads[i] >> p % 32 << p % 32;
    while (word == 0) {
        word = heads[++i];
    }
    return 32 * i + lowest_bit(word);
}

// The last head up to p; there is one.
INLINED uint last_head(__local const uint* heads, const uint p)
{
    uint i = p / 32, word = heads[i] << (31 - p % 32) >> (31 - p % 32);
    while (word == 0) {
        word = heads[--i];
    }
    return 32 * i + 31 - clz(word);
}

// A tile has the numbers of the keys. For float keys it has the keys themselves, since several keys may have one
// number.
INLINED KEY to_tile(const KEY key, const order_t* order)
{
    return KEYS_ARE_FLOATS ? key : (KEY)ordered(key, order->flip, order->always);
}

INLINED KEY from_tile(const KEY held, const order_t* order)
{
    return KEYS_ARE_FLOATS ? held : key_of_distinct(held, order->flip, order->always);
}

// True if an element of the tile comes before another one.
INLINED int comes_before(const KEY a, const KEY b, const order_t* order)
{
    return KEYS_ARE_FLOATS ? is_below(number_of(a, order), number_of(b, order))
                           : is_below((a) & order->sorted_by, (b) & order->sorted_by);
}

// Loads the flags of the keys from `base` on. A listed segment of `len` keys is alone: all keys after it have flags.
INLINED void load_heads(
    __local uint* heads, __global const uint* all_heads, __global const ulong* ends, const uint windows,
    const OFFSET_T base, const uint len)
{
    for (uint i = get_local_id(0); i < HEAD_WORDS; i += WG) {
        uint word = ~0u;
        if (windows != 0) {
            // The array of flags has words up to the end of the last window's tile.
            word = i <= TILE / 32 ? heads_of(all_heads, base / 32 + i, ends[FIRST], ends[LAST_END]) : ~0u;
        } else if (32 * i < len) {
            word = (i == 0 ? 1u : 0u) | (len - 32 * i < 32 ? ~0u << (len - 32 * i) : 0u);
        }
        heads[i] = word;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// `begin` is the first head of a window. Returns the number of keys to sort from there on. The window's last segment is
// left out if it ends beyond the tile.
INLINED uint count_keys(__local const uint* heads, const uint begin)
{
    uint count = 0;
    if (begin < WINDOW) {
        const uint last = last_head(heads, WINDOW - 1), end = next_head(heads, last + 1);
        count = (end <= TILE ? end : last) - begin;
    }
    return count;
}

// Sorts a work-item's keys, and their positions `at`: even and odd pairs of neighbours are put in order alternately,
// but not across a head.
INLINED void sort_items(KEY* x, ushort* at, const uint flags, const order_t* order)
{
    UNROLL
    for (uint round = 0; round < ITEMS; round++) {
        UNROLL
        for (uint k = round % 2; k + 1 < ITEMS; k += 2) {
            const KEY a = x[k], b = x[k + 1];
            const int swap = comes_before(b, a, order) && (flags >> (k + 1) & 1) == 0;
            x[k] = swap ? b : a;
            x[k + 1] = swap ? a : b;
            if (VALUE_BYTES > 0) {
                const ushort moved = at[k];
                at[k] = swap ? at[k + 1] : moved;
                at[k + 1] = swap ? moved : at[k + 1];
            }
        }
    }
}

// Puts a work-item's keys into the tile, if they changed. All work-items call it.
INLINED void put_items(__local KEY* tile, __local ushort* tile_at, const KEY* x, const ushort* at, const int changed)
{
    const uint mine = get_local_id(0) * ITEMS;
    if (changed) {
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            tile[mine + k] = x[k];
            if (VALUE_BYTES > 0) {
                tile_at[mine + k] = at[k];
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Merges the keys [from, mid) and [mid, to) of the tile, but only at the work-item's own positions, which begin at
// `mine`.
INLINED void merge_items(
    KEY* x, ushort* at, __local const KEY* tile, __local const ushort* tile_at, const uint mine, const uint from,
    const uint mid, const uint to, const order_t* order)
{
    // Of the first d keys of the merged segment, `split` come from the first list.
    const uint d = min(max(mine, from), to) - from, len_a = mid - from, len_b = to - mid;
    // `max` is used because Oclgrind 21.10 does not know the saturated subtraction that clang makes of a condition.
    uint split = max(d, len_b) - len_b;
    for (uint high = min(d, len_a); split < high;) {
        const uint middle = split + (high - split) / 2;
        if (comes_before(tile[mid + d - 1 - middle], tile[from + middle], order)) {
            high = middle;
        } else {
            split = middle + 1;
        }
    }
    uint a = mine < from ? mine : from + split, b = mid + d - split;
    KEY x_a = tile[a], x_b = tile[b];
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        // Keys before the segment come from the first list, and keys after it from the second one.
        const int second = a >= mid || (a >= from && b < to && comes_before(x_b, x_a, order));
        x[k] = second ? x_b : x_a;
        if (VALUE_BYTES > 0) {
            at[k] = tile_at[second ? b : a];
        }
        a += second ? 0 : 1;
        b += second ? 1 : 0;
        const KEY next = tile[second ? b : a];
        x_a = second ? x_a : next;
        x_b = second ? next : x_b;
    }
}

__kernel GROUP void sort_segments_small(
    __global const KEY* in_base, const ulong in_offset, __global KEY* out_base, const ulong out_offset,
    __global uchar* scratch, const ulong spare_at, const ulong header_at, const ulong heads_at, const ulong listed_at,
    const OFFSET_T n, const uint windows, const WORD flip, const WORD always, const WORD sorted_by VALUE_PARAMS)
{
    // The keys of the tile, and the position that each had in the unsorted tile.
    __local KEY tile[TILE + 1];
    __local ushort tile_at[VALUE_BYTES > 0 ? TILE + 1 : 1];
    __local uint heads[HEAD_WORDS];
    // The start and the end of the segment that contains a work-item's first key and the key before it, if there is
    // such a segment.
    __local uint segment_begins[WG];
    __local uint segment_ends[WG];
    const order_t order = {flip, always, sorted_by};
    const uint item = get_local_id(0), mine = item * ITEMS;
    __global const KEY* in = in_base + in_offset;
    __global KEY* out = out_base + out_offset;
    __global const OFFSET_T* listed = (__global const OFFSET_T*)(scratch + listed_at);
    const uint jobs = windows != 0 ? windows : count_of((__global const uint*)(scratch + header_at), LISTED);
    for (uint job = get_group_id(0); job < jobs; job += get_num_groups(0)) {
        const OFFSET_T base = windows != 0 ? (OFFSET_T)job * WINDOW : listed[2 * (ulong)job];
        const uint len = windows != 0 ? 0 : (uint)(listed[2 * (ulong)job + 1] - base);
        load_heads(
            heads, (__global const uint*)(scratch + heads_at), (__global const ulong*)(scratch + header_at), windows,
            base, len);
        uint begin = 0, part = len;
        if (windows != 0) {
            begin = next_head(heads, 0);
            // All positions after the last key of the input are heads, so `part` excludes them.
            part = (uint)min((OFFSET_T)count_keys(heads, begin), n - min(n, base + begin));
        }
        KEY x[ITEMS];
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            const uint i = k * WG + item;
            x[k] = i < part ? to_tile(in[base + begin + i], &order) : (KEY)(0);
        }
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            tile[k * WG + item] = x[k];
        }
        if (item == 0) {
            tile[TILE] = (KEY)(0);
            tile_at[VALUE_BYTES > 0 ? TILE : 0] = 0;
        }
        const uint p = begin + min(mine, part);
        const int inside = mine > 0 && mine < part;
        segment_begins[item] = inside ? last_head(heads, p - 1) - begin : 0;
        segment_ends[item] = inside ? next_head(heads, p) - begin : 0;
        const uint flags = (uint)(((ulong)heads[p / 32 + 1] << 32 | heads[p / 32]) >> p % 32);
        barrier(CLK_LOCAL_MEM_FENCE);
        ushort at[ITEMS];
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            x[k] = tile[mine + k];
            at[k] = (ushort)(mine + k);
        }
        sort_items(x, at, flags, &order);
        int changed = 1;
        for (uint lists = 1; lists * ITEMS < part; lists *= 2) {
            put_items(tile, tile_at, x, at, changed);
            // Two lists meet at `mid`, each with the keys of `lists` work-items. [from, to) is the part of a segment
            // that is in both.
            const uint low = item & ~(2 * lists - 1), meet = low + lists, mid = meet * ITEMS;
            const uint from = max(segment_begins[meet], low * ITEMS);
            const uint to = min(segment_ends[meet], mid + lists * ITEMS);
            changed = from < mid && mid < to && mine < to && mine + ITEMS > from;
            if (changed) {
                merge_items(x, at, tile, tile_at, mine, from, mid, to, &order);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        put_items(tile, tile_at, x, at, changed);
        if ((MODE & NO_KEYS) == 0) {
            UNROLL
            for (uint k = 0; k < ITEMS; k++) {
                const uint i = k * WG + item;
                if (i < part) {
                    out[base + begin + i] = from_tile(tile[i], &order);
                }
            }
        }
        if (VALUE_BYTES > 0) {
            UNROLL
            for (uint k = 0; k < ITEMS; k++) {
                const uint i = k * WG + item;
                if (i < part) {
                    const OFFSET_T from = base + begin + tile_at[i];
                    VALUES_OUT[base + begin + i] = (MODE & INDICES) != 0 ? (VALUE)from : VALUES_IN[from];
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
