// sort_passes and sort_offsets: the passes that are needed, and the offset of each part's keys of each digit.
//
//     sort_passes:   active[p] = digit p differs among the keys
//     sort_offsets:  totals[d] = sum of table[d][g] over the parts g; table[d][g] = sum of table[d][h] over h < g
//
// sort_offsets has RADIX work-groups, d = 0 .. 255. Which rows a work-group scans depends on SEGMENTS:
//
//     without SEGMENTS:            work-group d scans row d
//     with SEGMENTS, many parts:   work-group d scans row d of each segment that has many parts
//     with SEGMENTS, few parts:    of these segments, work-group d has numbers d, d + RADIX, ..., and scans all
//                                  their rows; one work-item scans a whole row
//
// sort_offsets writes `totals` but does not scan it. sort_scatter does so, once for each part:
//
//     sort_scatter.cl:  the work-group, by scan_digits() of lib/radix.cl
//     sort_cpu.cl:      the one work-item, digit by digit
//
// Bytes: sort_passes reads the bits of each part; sort_offsets reads and writes the table once.

// One work-group reduces the bits of all parts. Pass p sorts by bits [begin + 8 p, min(begin + 8 p + 8, end)).
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void sort_passes(
    __global uchar* scratch, const ulong seen_at, const ulong codes_at, const uint groups, const uint begin,
    const uint end SEGMENT_PARAMS)
{
    __local BIT_PAIR any[WG];
    __local BIT_PAIR all[WG];
    const uint item = get_local_id(0), parts = count_parts(scratch, groups SEGMENT_ARGS);
    __global const BIT_PAIR* seen = (__global const BIT_PAIR*)(scratch + seen_at);
    BIT_PAIR some = (BIT_PAIR)(0), every = ~(BIT_PAIR)(0);
    for (uint base = 0; base < parts; base += WG) {
        if (base + item < parts) {
            some |= seen[2 * (base + item)];
            every &= seen[2 * (base + item) + 1];
        }
    }
    any[item] = some;
    all[item] = every;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = WG / 2; d > 0; d /= 2) {
        if (item < d) {
            any[item] |= any[item + d];
            all[item] &= all[item + d];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        const BIT_PAIR differ = any[0] & ~all[0];
        uint active = 0;
        for (uint shift = begin, p = 0; shift < end; shift += 8, p++) {
            active |= digit_of((WORD)differ, shift, (1u << min(8u, end - shift)) - 1) != 0 ? 1u << p : 0;
        }
        store_codes((__global uint*)(scratch + codes_at), active, (end - begin + 7) / 8);
    }
}

// Exclusive prefix sum of `len` counts, in place; returns their sum. All work-items of `sort_offsets` call it; `sums`
// has an element for each work-item.
INLINED OFFSET_T scan_row(__global OFFSET_T* row, const uint len, __local OFFSET_T* sums)
{
    const uint item = get_local_id(0);
    OFFSET_T before = 0;
    for (uint base = 0; base < len; base += OFFSETS_WG * COUNTS) {
        const uint begin = base + item * COUNTS;
        OFFSET_T counts[COUNTS];
        OFFSET_T sum = 0;
        for (uint k = 0; k < COUNTS; k++) {
            counts[k] = begin + k < len ? row[begin + k] : 0;
            sum += counts[k];
        }
        sums[item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = 1; d < OFFSETS_WG; d *= 2) {
            const OFFSET_T more = item >= d ? sums[item - d] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            sums[item] += more;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        OFFSET_T next = before + sums[item] - sum;
        for (uint k = 0; k < COUNTS; k++) {
            if (begin + k < len) {
                row[begin + k] = next;
            }
            next += counts[k];
        }
        before += sums[OFFSETS_WG - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return before;
}

#if SEGMENTS

// Scans the table of one segment with few parts: each work-item scans the rows of digits that are OFFSETS_WG apart.
INLINED void scan_table(__global OFFSET_T* rows, const uint parts, __global OFFSET_T* totals)
{
    for (uint d = get_local_id(0); d < RADIX; d += OFFSETS_WG) {
        OFFSET_T sum = 0;
        for (uint j = 0; j < parts; j++) {
            const OFFSET_T count = rows[d * parts + j];
            rows[d * parts + j] = sum;
            sum += count;
        }
        totals[d] = sum;
    }
}

// The RADIX work-groups divide the segments with few parts among them. Of a segment with many parts, each work-group
// scans the row of one digit.
INLINED void scan_rows(
    __global uchar* scratch, __global OFFSET_T* table, __global OFFSET_T* totals, const uint groups,
    __local OFFSET_T* sums SEGMENT_PARAMS)
{
    const uint group = get_group_id(0);
    __global const uint* header = (__global const uint*)(scratch + header_at);
    __global const uint* parts = (__global const uint*)(scratch + parts_at);
    const uint few = count_of(header, FEW), many = count_of(header, MANY);
    for (ulong segment = group; segment < few; segment += RADIX) {
        scan_table(table + (ulong)parts[2 * segment] * RADIX, parts[2 * segment + 1], totals + segment * RADIX);
    }
    for (uint k = 0; k < many; k++) {
        const ulong segment = long_room - 1 - k;
        const uint count = parts[2 * segment + 1];
        __global OFFSET_T* row = table + (ulong)parts[2 * segment] * RADIX + (ulong)group * count;
        const OFFSET_T sum = scan_row(row, count, sums);
        if (get_local_id(0) == 0) {
            totals[segment * RADIX + group] = sum;
        }
    }
}

#else

// RADIX work-groups: each scans the row of one digit.
INLINED void scan_rows(
    __global uchar* scratch, __global OFFSET_T* table, __global OFFSET_T* totals, const uint groups,
    __local OFFSET_T* sums)
{
    const uint group = get_group_id(0);
    const OFFSET_T sum = scan_row(table + (ulong)group * groups, groups, sums);
    if (get_local_id(0) == 0) {
        totals[group] = sum;
    }
}

#endif

__kernel __attribute__((reqd_work_group_size(OFFSETS_WG, 1, 1))) void sort_offsets(
    __global uchar* scratch, const ulong table_at, const ulong totals_at, const ulong codes_at, const uint groups,
    const uint given, const uint pass SEGMENT_PARAMS)
{
    __local OFFSET_T sums[OFFSETS_WG];
    if (pass_code(scratch, codes_at, given, pass) == 0) {
        return;
    }
    scan_rows(
        scratch, (__global OFFSET_T*)(scratch + table_at), (__global OFFSET_T*)(scratch + totals_at), groups,
        sums SEGMENT_ARGS);
}
