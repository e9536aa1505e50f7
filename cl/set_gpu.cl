// set_tiles with one work-group for each tile, in local memory.

// True if x, an element of b whose rank is `rank`, is matched. The next element of a is at next_a.
INLINED int matches_in_a(
    const T x, const OFFSET_T next_a, const OFFSET_T rank, __local const T* tile, const part_t* part,
    __global const T* a)
{
    int matched = 0;
    if (WANTS_SECOND && next_a > rank) {
        const OFFSET_T match = next_a - 1 - rank;
        if (match >= part->begin_a) {
            matched = !op_less(tile[(uint)(match - part->begin_a)], x);
        } else {
            matched = !op_less(a[match], x);
        }
    }
    return matched;
}

// True if x, an element of a, is matched: element `match` of b equals it.
INLINED int matches_in_b(
    const T x, const OFFSET_T match, const OFFSET_T len_b, __local const T* tile, const part_t* part,
    __global const T* b)
{
    int matched = 0;
    if (WANTS_FIRST && match < len_b) {
        if (match - part->begin_b < part->count - part->count_a) {
            matched = !op_less(x, tile[part->count_a + (uint)(match - part->begin_b)]);
        } else {
            matched = !op_less(x, b[match]);
        }
    }
    return matched;
}

// Merges a work-item's ITEMS elements to x; bit k of the result is set if it keeps element k. The equals of the tile's
// first elements begin at equals_a and equals_b.
INLINED uint select_elements(
    T* x, __local const T* tile, const part_t* part, __global const T* a, __global const T* b, const OFFSET_T len_b,
    OFFSET_T equals_a, OFFSET_T equals_b)
{
    const uint item = get_local_id(0), count_a = part->count_a, stop_b = part->count;
    const uint before = min(item * ITEMS, stop_b), own = min((uint)ITEMS, stop_b - before);
    const uint split = find_split_local(tile, count_a, tile + count_a, stop_b - count_a, before);
    uint at_a = split, at_b = count_a + before - split;
    T x_a = tile[at_a], x_b = tile[at_b];
    // The equals of the next elements begin in the tile, or before it.
    const uint found_a = find_lower_local(tile, at_a, x_a);
    const uint found_b = find_lower_local(tile + count_a, at_b - count_a, x_b);
    equals_a = found_a == 0 ? equals_a : part->begin_a + found_a;
    equals_b = found_b == 0 ? equals_b : part->begin_b + found_b;
    uint keep = 0;
    UNROLL
    for (uint k = 0; k < ITEMS; k++) {
        const int second = takes_second(at_a, count_a, x_a, at_b, stop_b, x_b);
        if (second) {
            x[k] = x_b;
        } else {
            x[k] = x_a;
        }
        // The indices of the next elements in a and b.
        const OFFSET_T next_a = part->begin_a + at_a, next_b = part->begin_b + (at_b - count_a);
        int kept = 0;
        if (k < own) {
            if (second) {
                const int matched = matches_in_a(x[k], next_a, next_b - equals_b, tile, part, a);
                kept = WANTS_SECOND && !matched;
            } else {
                const int matched = matches_in_b(x[k], next_b + (next_a - equals_a), len_b, tile, part, b);
                kept = SET == SET_UNION || (SET == SET_INTERSECTION) == matched;
            }
        }
        // The bit is set without a branch, since PoCL 5 aborts on the branch for some types.
        keep |= (uint)kept << k;
        at_a += second ? 0 : 1;
        at_b += second ? 1 : 0;
        const T next = tile[second ? at_b : at_a];
        if (second) {
            x_b = next;
            equals_b = op_less(x[k], x_b) ? next_b + 1 : equals_b;
        } else {
            x_a = next;
            equals_a = op_less(x[k], x_a) ? next_a + 1 : equals_a;
        }
    }
    return keep;
}

__kernel GROUP void set_tiles(
    __global const T* a_base, const ulong a_offset, const OFFSET_T len_a, __global const T* b_base,
    const ulong b_offset, const OFFSET_T len_b, const uint tiles, __global OFFSET_T* scratch, __global T* to_base,
    const ulong to_offset, const OFFSET_T capacity, const uint writes)
{
    __local T tile[TILE + 1];
    __local OFFSET_T sums[WG];
    const uint item = get_local_id(0);
    __global const T* a = a_base + a_offset;
    __global const T* b = b_base + b_offset;
    __global T* to = to_base + to_offset;
    for (uint t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        const part_t part = find_part(len_a, len_b, (OFFSET_T)t * TILE, scratch + t);
        T x[ITEMS];
        load_part(tile, x, a, b, &part);
        const uint keep = select_elements(
            x, tile, &part, a, b, len_b, EQUALS_A(scratch, tiles)[t], EQUALS_B(scratch, tiles)[t]);
        OFFSET_T all;
        uint position = (uint)sum_before(popcount(keep), sums, &all);
        if (writes == 0 && item == 0) {
            COUNTS(scratch, tiles)[t] = all;
        }
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            if (keep >> k & 1) {
                tile[position++] = x[k];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        // No branch encloses these steps as a whole: PoCL 5 aborts on such a branch.
        const OFFSET_T first = writes == 0 ? 0 : COUNTS(scratch, tiles)[t], room = writes == 0 ? 0 : capacity;
        for (uint i = item; i < all; i += WG) {
            if (first + i < room) {
                to[first + i] = tile[i];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

