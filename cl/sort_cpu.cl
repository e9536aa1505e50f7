// sort_counts and sort_scatter for CPUs, and for GPUs with little local memory. A work-group is one work-item, which
// takes the keys of its part one by one.

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void sort_counts(
    __global const KEY* in_base, const ulong in_offset, __global const KEY* out_base, const ulong out_offset,
    __global uchar* scratch, const ulong spare_at, const ulong table_at, const ulong seen_at, const ulong codes_at,
    LENGTH_PARAMS, const uint tiles, const uint given, const uint pass, const uint shift,
    const uint mask, const WORD flip, const WORD always SEGMENT_PARAMS)
{
    TAKE_LENGTH
    const uint code = pass_code(scratch, codes_at, given, pass), parts = count_parts(scratch, 0 SEGMENT_ARGS);
    uint group = get_group_id(0);
    if (code == 0) {
        return;
    }
    if (SEGMENTS && group >= parts) {
        return;
    }
    __global const KEY* from = BUFFER(
        SOURCE(code), in_base + in_offset, out_base + out_offset, (__global const KEY*)(scratch + spare_at));
    __global OFFSET_T* table = (__global OFFSET_T*)(scratch + table_at);
    do {
        const part_t part = find_part(scratch, group, tiles, n SEGMENT_ARGS);
        OFFSET_T counts[RADIX];
        WORD any = (WORD)(0), all = ~(WORD)(0);
        for (uint d = 0; d < RADIX; d++) {
            counts[d] = 0;
        }
        for (OFFSET_T i = part.begin; i < part.end; i++) {
            const WORD bits = ordered(from[i], flip, always);
            any |= bits;
            all &= bits;
            counts[digit_of(bits, shift, mask)]++;
        }
        for (uint d = 0; d < RADIX; d++) {
            table[cell_of(&part, d)] = counts[d];
        }
        if (pass == 0) {
            __global BIT_PAIR* seen = (__global BIT_PAIR*)(scratch + seen_at) + 2 * (ulong)group;
            seen[0] = any;
            seen[1] = all;
        }
        group += get_num_groups(0);
    } while (SEGMENTS && group < parts);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void sort_scatter(
    __global const KEY* in_base, const ulong in_offset, __global KEY* out_base, const ulong out_offset,
    __global uchar* scratch, const ulong spare_at, const ulong table_at, const ulong totals_at, const ulong codes_at,
    LENGTH_PARAMS, const uint tiles, const uint given, const uint pass, const uint shift,
    const uint mask, const WORD flip, const WORD always VALUE_PARAMS SEGMENT_PARAMS)
{
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
    __global KEY* to =
        BUFFER(TARGET(code), (__global KEY*)0, out_base + out_offset, (__global KEY*)(scratch + spare_at));
    __global const OFFSET_T* table = (__global const OFFSET_T*)(scratch + table_at);
    __global const OFFSET_T* totals = (__global const OFFSET_T*)(scratch + totals_at);
    const values_t values = route_values(scratch, code VALUE_ARGS);
    do {
        const part_t part = find_part(scratch, group, tiles, n SEGMENT_ARGS);
        // next[d] is the index to which the part's next key with digit d goes. The work-item scans `totals` itself.
        OFFSET_T next[RADIX];
        OFFSET_T sum = part.origin;
        for (uint d = 0; d < RADIX; d++) {
            next[d] = sum + table[cell_of(&part, d)];
            sum += totals[total_of(&part, d)];
        }
        for (OFFSET_T i = part.begin; i < part.end; i++) {
            const KEY key = from[i];
            const OFFSET_T index = next[digit_in(key, &digit)]++;
            if (values.keep_keys) {
                to[index] = key;
            }
            if (VALUE_BYTES > 0) {
                values.to[index] = values.are_indices ? (VALUE)i : values.from[i];
            }
        }
        group += get_num_groups(0);
    } while (SEGMENTS && group < parts);
}
