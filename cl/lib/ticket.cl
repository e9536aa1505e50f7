// The tile of a work-group that waits for earlier tiles: each of those belongs to a work-group that has started.
//
// An atomic counter before the status words numbers the work-groups in the order in which they start. NVIDIA's GPUs start
// work-groups in the order of their ids, so they need no counter. No document guarantees that order, but only time depends on it:
// a work-group recomputes an aggregate that does not arrive. Needs types.cl and subgroup.cl.
#ifndef OCLPRIM_TICKET_CL
#define OCLPRIM_TICKET_CL

// All work-items call it; it contains a barrier. The counter at `state` is 0 before the launch; it is not used unless there are
// several tiles. `taken` is one word of local memory.
INLINED OFFSET_T take_tile(volatile __global void* state, __local uint* taken, bool several_tiles)
{
    if (SG_BACKEND == SG_PTX) {
        return get_group_id(0);
    }
    if (get_local_id(0) == 0) {
        *taken = several_tiles ? atomic_inc((volatile __global uint*)state) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return *taken;
}

#endif
