// The histogram ladder counts bin numbers. Its steps are the kernels of an article.
//
// Tables have `bins` counters and one for samples outside the bins. The host zeroes counters that are added to, and
// promises n < 2^32.
//
// Differences from the originals:
// - samples outside the bins are counted, where the originals wrote out of bounds;
// - zeroing and flushing loop over the bins, so that there may be more bins than work-items;
// - the merging kernel finds its counters by the table's length, not by the work-group's.
#include "lib/types.cl"

#ifndef WG
#define WG 256
#endif
#ifndef MERGE_WG
#define MERGE_WG 256
#endif
#define RUNG(items) __kernel __attribute__((reqd_work_group_size(items, 1, 1)))

// The sample's bin, or `bins`. Negative samples turn into numbers beyond every bin.
static inline uint slot_of(const T x, const uint bins)
{
#if T_BYTES == 8
    return (uint)min((ulong)x, (ulong)bins);
#else
    return min((uint)x, bins);
#endif
}

RUNG(WG) void v1_global(__global const T* restrict in, const uint n, const uint bins, volatile __global uint* counts)
{
    const ulong i = get_global_id(0);
    if (i < n) {
        atomic_inc(counts + slot_of(in[i], bins));
    }
}

// The L2 cache evicts the counters' cache lines last.
#if INLINE_PTX && PTX_SM >= 80
RUNG(WG) void v1_persist(__global const T* restrict in, const uint n, const uint bins, volatile __global uint* counts)
{
    ulong policy;
    __asm__ volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    const ulong i = get_global_id(0);
    if (i < n) {
        __asm__ volatile("red.relaxed.gpu.global.add.L2::cache_hint.u32 [%0], %1, %2;" ::"l"(
                             counts + slot_of(in[i], bins)),
                         "r"(1), "l"(policy)
                         : "memory");
    }
}
#endif

// Built where a table fits local memory.
#ifdef LOCAL_SLOTS

// Counts the work-group's samples in `table`: i, i + (the grid's work-items), ...
static inline void count_local(__global const T* in, const uint n, const uint bins, __local uint* table)
{
    for (uint slot = get_local_id(0); slot <= bins; slot += WG) {
        table[slot] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) {
        atomic_inc(table + slot_of(in[i], bins));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

RUNG(WG) void v2_local(__global const T* restrict in, const uint n, const uint bins, volatile __global uint* counts)
{
    __local uint table[LOCAL_SLOTS];
    count_local(in, n, bins, table);
    for (uint slot = get_local_id(0); slot <= bins; slot += WG) {
        atomic_add(counts + slot, table[slot]);
    }
}

RUNG(WG) void v3_local(__global const T* restrict in, const uint n, const uint bins, __global uint* restrict tables)
{
    __local uint table[LOCAL_SLOTS];
    count_local(in, n, bins, table);
    for (uint slot = get_local_id(0); slot <= bins; slot += WG) {
        tables[(ulong)get_group_id(0) * (bins + 1) + slot] = table[slot];
    }
}

// Work-group s sums slot s of all tables. MERGE_WG is a power of two.
RUNG(MERGE_WG) void v3_merge(
    __global const uint* restrict tables, const uint table_count, const uint bins, __global uint* restrict counts)
{
    __local uint sums[MERGE_WG];
    const uint item = get_local_id(0), slot = get_group_id(0);
    uint sum = 0;
    for (uint t = item; t < table_count; t += MERGE_WG) {
        sum += tables[(ulong)t * (bins + 1) + slot];
    }
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = MERGE_WG / 2; d > 0; d /= 2) {
        if (item < d) {
            sums[item] += sums[item + d];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        counts[slot] = sums[0];
    }
}

#endif
