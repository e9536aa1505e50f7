// Segments given by offsets: the ranks of the tiles, and the check of the offsets.

#include "lib/segment_nodes.cl"
#include "lib/ranks.cl"

static inline bool is_empty(POS_T from, POS_T to, POS_T n) { return min(from, n) >= min(to, n); }

// Returns the number of known offsets. If other kernels found fewer than `room` segments, the last offset is missing:
// then one work-item stores n there. No rank depends on it, because n exceeds all indices.
static inline OFFSET_T complete_offsets(OFFSETS_ARG offsets, OFFSET_T count, OFFSET_T room, ulong found, POS_T n)
{
    const OFFSET_T known = found < room ? count - 1 : count;
    if (COUNTED && known < count && get_global_id(0) == 0) {
        ((__global S*)offsets)[known] = (S)n;
    }
    return known;
}

// Finds the ranks of the tiles by the first `searchers` work-groups.
static inline void rank_tiles(
    __global const S* offsets, OFFSET_T known, POS_T n, OFFSET_T tiles, uint searchers, __global OFFSET_T* ranks)
{
    if (get_group_id(0) < searchers) {
        ROLLED
        for (OFFSET_T t = get_global_id(0); t <= tiles; t += searchers * WG) {
            const POS_T start = t < tiles ? (POS_T)t * TILE : n;
            ranks[t] = start > 0 ? rank_within(offsets, 0, known, start - 1) : 0;
        }
    }
}

// Finds the least i with offsets[i] > offsets[i + 1] or offsets[i] > n, of `count` < 2^32 offsets. Before the launch,
// `bad` is larger than every i.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segments_check(
    __global const S* restrict offsets_base, const ulong offsets_offset, const OFFSET_T count, const POS_T n,
    volatile __global uint* bad)
{
    __global const S* offsets = offsets_base + offsets_offset;
    // A CPU's work-item takes contiguous offsets.
    const OFFSET_T run = count / (OFFSET_T)get_num_groups(0) + 1;
    const OFFSET_T first = WG == 1 ? min(count, (OFFSET_T)(get_group_id(0) * run)) : (OFFSET_T)get_global_id(0);
    const OFFSET_T end = WG == 1 ? min(count, (OFFSET_T)(first + run)) : count;
    const OFFSET_T step = WG == 1 ? 1 : (OFFSET_T)get_global_size(0);
    for (OFFSET_T i = first; i < end; i += step) {
        if (offsets[i] > n || (i + 1 < count && offsets[i] > offsets[i + 1])) {
            atomic_min(bad, (uint)i);
            break;
        }
    }
}
