// Zeroes the tables of a histogram: work-group g writes words [g * per, (g + 1) * per). The driver's fill is not used,
// because Oclgrind does not count it as an initialisation.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_zero(
    __global uint* restrict tables, const uint words, const uint per)
{
    const uint first = get_group_id(0) * per, end = first + min(per, words - first);
    for (uint i = first + get_local_id(0); i < end; i += WG) {
        tables[i] = 0;
    }
}
