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
    for (ulong group = get_global_id(0); group < groups; group += get_global_size(0)) {
        __global const ulong* moment = moments + 6 * group;
        __global ulong* out = out_base + out_offset + 12 * group;
        out[0] = moment[0];
        out[1] = nans[group];
        for (uint end = 0; end < 2; end++) {
            out[2 + end] = indices[end * groups + group];
            out[4 + end] = values[end * groups + group];
        }
        for (uint word = 1; word < 6; word++) {
            out[5 + word] = moment[word];
        }
        out[11] = 0;
    }
}
