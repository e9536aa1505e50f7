// tables[g mod table_count] += the samples of work-group g (histogram.cl). The tables are zeroed before.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_global(
    __global const IN* restrict in_base, const ulong in_offset, LENGTH_PARAMS, const uint head, const uint bins,
    volatile __global uint* restrict tables, const uint table_count MAP_PARAMS)
{
    __local uint outside[3];
    MAP_SETUP(get_local_id(0), WG)
    TAKE_LENGTH
    for (uint k = get_local_id(0); k < 3; k += WG) {
        outside[k] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    Counter counter;
    counter.table = tables + (ulong)(get_group_id(0) % table_count) * (bins + 3);
    counter.outside = outside;
    counter.held = counter.length = 0;
    count_samples(&counter, in_base + in_offset, n, HEAD, bins MAP_ARGS);
    flush_run(&counter);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = get_local_id(0); k < 3; k += WG) {
        if (outside[k] != 0) {
            add_global(counter.table, bins + k, outside[k]);
        }
    }
}
