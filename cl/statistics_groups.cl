// Statistics of groups: joins the moments, the extremes and the number of NaN of each group into one record.
//
// Bytes: reads 72 bytes and two values for each group; writes a record of 96 bytes.
//
// `moments` has 6 words for each group: the count, then the words of the sum and the variance. `values` and `indices`
// have the smallest elements of all groups, then the largest.

// VALUE: an unsigned integer with the bits of an element.
#ifndef VALUE
#define VALUE uint
#define WG 256
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void statistics_of_groups(
    __global const ulong* restrict moments, __global const VALUE* restrict values,
    __global const ulong* restrict indices, __global const ulong* restrict nans, const ulong groups,
    __global ulong* restrict out_base, const ulong out_offset)
{
    // Neighbouring work-items write neighbouring words.
    for (ulong i = get_global_id(0); i < 12 * groups; i += get_global_size(0)) {
        const ulong group = i / 12;
        const uint word = (uint)(i % 12);
        ulong x = 0;
        if (word == 0) {
            x = moments[6 * group];
        } else if (word == 1) {
            x = nans[group];
        } else if (word < 4) {
            x = indices[(word - 2) * groups + group];
        } else if (word < 6) {
            x = values[(word - 4) * groups + group];
        } else if (word < 11) {
            x = moments[6 * group + word - 5];
        }
        out_base[out_offset + i] = x;
    }
}
