// Counts in local memory (histogram.cl).
//
// Work-group (g, r) counts the samples of g with slots in range r, of `range` slots: tables[g][slots of r]. Work-item i
// uses replica i mod REPLICAS. LOCAL_WORDS is at least REPLICAS times the slots of a range; with BYTES it is at least
// REPLICAS * VALUES.
//
// With ONE_PASS and if `ends` is not 0, there is one range. Counts are then added to the words of `ended` from byte
// COUNTERS_AT on, which are 0 before and after the launch. The work-group that finishes last writes them out as `merge`
// does: as ulong if `wide`, else as uint.
#ifdef ONE_PASS
#include "lib/subgroup.cl"
#include "lib/ended.cl"
#define MERGE_PARAMS                                                                                                   \
    , const uint ends, __global void *counts_base, const ulong counts_offset, const uint wide,                         \
        __global ulong *outside_base, const ulong outside_offset, const uint add ENDED_PARAM
#else
#define MERGE_PARAMS
#endif

// The count of a row of the table: the sum of its replicas.
INLINED uint sum_of_row(__local const uint* table, const uint row)
{
    uint sum = 0;
    IN_FOURS
    for (uint k = 0; k < REPLICAS; k++) {
        // Each work-item starts at another replica, and so in another bank.
        sum += table[(row << REPLICA_BITS) + ((k + row) & (REPLICAS - 1))];
    }
    return sum;
}

// Stores a count in the work-group's table or, if `ends` is not 0, adds it to the common table.
INLINED void put_count(
    __global uint* out, volatile __global uint* common, const uint ends, const uint slot, const uint count)
{
    if (!ends) {
        out[slot] = count;
    } else if (count != 0) {
        atomic_add(common + slot, count);
    }
}

// Writes the common table out, and clears it.
INLINED void write_common(
    volatile __global uint* common, __global void* counts_base, const ulong counts_offset, const uint wide,
    __global ulong* outside, const uint bins, const uint add)
{
    ROLLED
    for (uint slot = get_local_id(0); slot < bins + 3; slot += WG) {
        const uint sum = atomic_xchg(common + slot, 0);
        if (slot >= bins) {
            outside[slot - bins] = sum + (add ? outside[slot - bins] : 0);
        } else if (wide) {
            __global ulong* counts = (__global ulong*)counts_base + counts_offset;
            counts[slot] = sum + (add ? counts[slot] : 0);
        } else {
            __global uint* counts = (__global uint*)counts_base + counts_offset;
            counts[slot] = sum + (add ? counts[slot] : 0);
        }
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_local(
    __global const IN* restrict in_base, const ulong in_offset, LENGTH_PARAMS, const uint head, const uint bins,
    __global uint* restrict tables, const uint range MERGE_PARAMS MAP_PARAMS)
{
    __local uint table[LOCAL_WORDS];
    __local uint counted[BYTES ? VALUES : 1];
    const uint slots = bins + 3, first = get_group_id(1) * range, len = min(range, slots - first);
    const uint item = get_local_id(0), rows = BYTES ? VALUES : len;
    MAP_SETUP(item, WG)
    TAKE_LENGTH
#ifdef ONE_PASS
    __local uint last;
    volatile __global uint* common = ended + COUNTERS_AT / 4;
#else
    const uint ends = 0;
    volatile __global uint* common = 0;
#endif
    ROLLED
    for (uint i = item; i < rows << REPLICA_BITS; i += WG) {
        table[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    Counter counter;
    counter.table = table + (item & (REPLICAS - 1));
    counter.first = first;
    counter.len = len;
    count_samples(&counter, in_base + in_offset, n, HEAD, bins MAP_ARGS);
    barrier(CLK_LOCAL_MEM_FENCE);
    __global uint* out = tables + (ulong)get_group_id(0) * slots + first;
    ROLLED
    for (uint row = item; row < rows; row += WG) {
        const uint sum = sum_of_row(table, row);
        if (BYTES) {
            counted[row] = sum;
        } else {
            put_count(out, common, ends, row, sum);
        }
    }
    if (BYTES) {
        // Counts by value become counts by slot.
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint slot = item; slot < len; slot += WG) {
            table[slot] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint row = item; row < VALUES; row += WG) {
            if (counted[row] != 0) {
                atomic_add(table + SLOT((IN)row), counted[row]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint slot = item; slot < len; slot += WG) {
            put_count(out, common, ends, slot, table[slot]);
        }
    }
#ifdef ONE_PASS
    if (ends && ends_last(ended, get_num_groups(0), &last)) {
        write_common(common, counts_base, counts_offset, wide, outside_base + outside_offset, bins, add);
    }
#endif
}
