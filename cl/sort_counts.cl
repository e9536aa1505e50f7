// sort_counts on GPUs: table[d][g] = |{keys of part g with digit d}|.
//
// Bytes: reads the keys of a part once; writes RADIX counts for each part.
//
//     for the part g of the work-group; with SEGMENTS for each of its parts:
//         clear REPLICAS counters for each digit in local memory
//         for each key: counts[digit][work-item % REPLICAS] += 1
//         table[d][g] = sum of counts[d]
//         in pass 0: seen[g] = the bits set in some numbers of the part, and the bits set in all

INLINED void clear_counts(__local uint* counts, __local uint* seen)
{
    const uint item = get_local_id(0);
    for (uint i = item; i < RADIX * REPLICAS; i += WG) {
        counts[i] = 0;
    }
    if (item < 8) {
        seen[item] = item % 2 == 0 ? 0 : ~0u;
    }
}

INLINED void count_key(const KEY key, const digit_t* digit, __local uint* counts, WORD* any, WORD* all)
{
    const WORD bits = ordered(key, digit->flip, digit->always);
    *any |= bits;
    *all &= bits;
    atomic_inc(counts + digit_of(bits, digit->shift, digit->mask) * REPLICAS + get_local_id(0) % REPLICAS);
}

INLINED void count_keys(
    __global const KEY* from, const part_t* part, const digit_t* digit, __local uint* counts, WORD* any, WORD* all)
{
    const uint item = get_local_id(0);
    for (OFFSET_T base = part->begin; base < part->end; base += TILE) {
        if (part->end - base > (ITEMS - 1) * WG + item) {
            KEY held[ITEMS];
            _Pragma("unroll")
            for (uint k = 0; k < ITEMS; k++) {
                held[k] = from[base + k * WG + item];
            }
            _Pragma("unroll")
            for (uint k = 0; k < ITEMS; k++) {
                count_key(held[k], digit, counts, any, all);
            }
        } else {
            for (uint k = 0; k < ITEMS; k++) {
                const OFFSET_T i = base + k * WG + item;
                if (i < part->end) {
                    count_key(from[i], digit, counts, any, all);
                }
            }
        }
    }
}

// seen[2 * w] and seen[2 * w + 1]: word w of the bits that are set in some numbers, and in all.
INLINED void combine_bits(__local uint* seen, const WORD any, const WORD all)
{
    _Pragma("unroll")
    for (uint w = 0; w < (KEY_BYTES + 3) / 4; w++) {
        atomic_or(seen + 2 * w, word_of(any, w));
        atomic_and(seen + 2 * w + 1, word_of(all, w));
    }
}

INLINED void store_counts(__global OFFSET_T* table, const part_t* part, __local const uint* counts)
{
    for (uint d = get_local_id(0); d < RADIX; d += WG) {
        uint sum = 0;
        for (uint r = 0; r < REPLICAS; r++) {
            sum += counts[d * REPLICAS + r];
        }
        table[cell_of(part, d)] = sum;
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void sort_counts(
    __global const KEY* in_base, const ulong in_offset, __global const KEY* out_base, const ulong out_offset,
    __global uchar* scratch, const ulong spare_at, const ulong table_at, const ulong seen_at, const ulong codes_at,
    LENGTH_PARAMS, const uint tiles, const uint given, const uint pass, const uint shift,
    const uint mask, const WORD flip, const WORD always SEGMENT_PARAMS)
{
    __local uint counts[RADIX * REPLICAS];
    __local uint seen[8];
    TAKE_LENGTH
    const uint code = pass_code(scratch, codes_at, given, pass), parts = count_parts(scratch, 0 SEGMENT_ARGS);
    uint group = get_group_id(0);
    if (code == 0) {
        return;
    }
    if (SEGMENTS && group >= parts) {
        return;
    }
    const digit_t digit = {shift, mask, flip, always};
    __global const KEY* from = BUFFER(
        SOURCE(code), in_base + in_offset, out_base + out_offset, (__global const KEY*)(scratch + spare_at));
    do {
        const part_t part = find_part(scratch, group, tiles, n SEGMENT_ARGS);
        clear_counts(counts, seen);
        barrier(CLK_LOCAL_MEM_FENCE);
        WORD any = (WORD)(0), all = ~(WORD)(0);
        count_keys(from, &part, &digit, counts, &any, &all);
        if (pass == 0) {
            combine_bits(seen, any, all);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        store_counts((__global OFFSET_T*)(scratch + table_at), &part, counts);
        if (pass == 0 && get_local_id(0) == 0) {
            __global BIT_PAIR* pair = (__global BIT_PAIR*)(scratch + seen_at) + 2 * (ulong)group;
            pair[0] = joined(seen);
            pair[1] = joined(seen + 1);
        }
        if (SEGMENTS) {
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        group += get_num_groups(0);
    } while (SEGMENTS && group < parts);
}
