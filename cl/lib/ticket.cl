// The tile of a work-group that waits for the tiles before it: of those, each has a work-group that has started.
//
// TAKE_TILE(state, taken, tiles): the tile, after a barrier. Elsewhere than on NVIDIA's GPUs it is told by a counter in front of
// `state`, which is 0 where there are several tiles; `taken` is a word of local memory. NVIDIA's GPUs start work-groups in their
// order. Nobody says that they must: what is not there in time is computed by who needs it, so that only time is at stake.
#ifndef OCLPRIM_TICKET_CL
#define OCLPRIM_TICKET_CL

#if SG_BACKEND == SG_PTX
#define TAKE_TILE(state, taken, tiles) ((void)(taken), (OFFSET_T)get_group_id(0))
#else
#define TAKE_TILE(state, taken, tiles) take_tile((volatile __global uint*)(state), taken, (tiles) > 1)
INLINED uint take_tile(volatile __global uint* counter, __local uint* taken, bool several)
{
    if (get_local_id(0) == 0) {
        *taken = several ? atomic_inc(counter) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return *taken;
}
#endif

#endif
