// Returns a tile number to each work-group, so that the work-groups of all earlier tiles have started. If the tiles have several
// launches, those of a launch follow the tiles of the launch before.
//
// An atomic counter before the status words numbers the work-groups in the order in which they start. With SG_PTX, the
// id of the work-group is its number instead, after the work-groups of earlier launches. NVIDIA's GPUs start
// work-groups in the order of their ids, but no document guarantees that. If the order is broken, only time is lost: a
// work-group recomputes an aggregate that does not arrive. With SG_LOCAL, kernels use the counter on NVIDIA's GPUs, too.
// Needs types.cl and subgroup.cl.

// All work-items call it; it contains a barrier. The counter at `state` is 0 before the first launch; it is not used unless there are
// several tiles. `taken` is one word of local memory.
INLINED OFFSET_T take_tile(volatile __global void* state, __local uint* taken, bool several_tiles)
{
    if (SG_BACKEND == SG_PTX) {
        return get_global_offset(0) / WG + get_group_id(0);
    }
    if (get_local_id(0) == 0) {
        *taken = several_tiles ? atomic_inc((volatile __global uint*)state) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return *taken;
}
