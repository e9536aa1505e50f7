// Gives each work-group the number of a tile, so that the work-groups of all earlier tiles have started before it. With
// IN_PARTS, a call may have several launches, and the tiles of a launch follow those of the launch before. On an
// H200, scans of segments would take 4 % longer with IN_PARTS; other scans and selections do not.
//
// An atomic counter, which lies before the status words, gives work-groups their numbers in the order in which they
// start. With SG_PTX, the number is the work-group's id instead, plus the number of tiles of earlier launches. NVIDIA's
// GPUs start work-groups in the order of their ids, but no document guarantees that. If the order is broken, only time
// is lost: a work-group recomputes an aggregate that does not arrive. With SG_LOCAL, kernels use the counter on
// NVIDIA's GPUs too. Needs types.cl and subgroup.cl.

#ifndef IN_PARTS
#define IN_PARTS 0
#endif

// All work-items call it; it contains a barrier. The counter at `state` is 0 before the first launch; it is not used
// unless there are several tiles. `taken` is one word of local memory.
INLINED OFFSET_T take_tile(volatile __global void* state, __local uint* taken, bool several_tiles)
{
    if (SG_BACKEND == SG_PTX) {
        return (IN_PARTS ? get_global_offset(0) / WG : 0) + get_group_id(0);
    }
    if (get_local_id(0) == 0) {
        *taken = several_tiles ? atomic_inc((volatile __global uint*)state) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return *taken;
}
