// Merges the tables of a histogram (histogram.cl).

// The type of the caller's counters.
#ifndef C
#define C uint
#endif

// Work-group g merges the slots [g * per, (g + 1) * per), 2^column_bits of them at a time. Its work-items form rows of
// 2^column_bits. Row r adds up the tables r, r + rows, and so on. With `add`, the sums are added to the caller's
// counts.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_merge(
    __global const uint* restrict tables_base, const ulong tables_offset, const uint table_count, const uint bins,
    const uint column_bits, const uint per, __global C* restrict counts_base, const ulong counts_offset,
    __global ulong* restrict outside_base, const ulong outside_offset, const uint add)
{
    __local ulong sums[WG];
    __global const uint* tables = tables_base + tables_offset;
    __global C* counts = counts_base + counts_offset;
    __global ulong* outside = outside_base + outside_offset;
    const uint cols = 1u << column_bits, rows = WG >> column_bits;
    const uint item = get_local_id(0), col = item & (cols - 1), row = item >> column_bits, slots = bins + 3;
    const uint first = get_group_id(0) * per, end = min(slots, first + per);
    for (uint base = first; base < end; base += cols) {
        const uint slot = base + col;
        ulong sum = 0;
        if (slot < end) {
            for (uint t = row; t < table_count; t += rows) {
                sum += tables[(ulong)t * slots + slot];
            }
        }
        if (WG > 1) {
            sums[item] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint d = rows / 2; d > 0; d /= 2) {
                if (row < d) {
                    sums[item] += sums[item + d * cols];
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            sum = sums[item];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (row == 0 && slot < end) {
            if (slot < bins) {
                counts[slot] = (C)(sum + (add ? counts[slot] : 0));
            } else {
                outside[slot - bins] = sum + (add ? outside[slot - bins] : 0);
            }
        }
    }
}
