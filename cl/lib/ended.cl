// Last-block reduction: the work-group that finishes last reads what all work-groups wrote, which saves a launch.
//
// `ended` counts the work-groups that are done. It is 0 before and after each launch, so all launches of one in-order
// queue can share it. Needs subgroup.cl.

#define ENDED_PARAM , volatile __global uint *ended

// True in the last of `groups` work-groups. All work-items call it once, in uniform flow, after their last store for
// other work-groups. `scratch` is one word of local memory.
SG_INLINE bool ends_last(volatile __global uint* ended, uint groups, __local uint* scratch)
{
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        fence_device();
        const bool last = atomic_inc(ended) + 1 == groups;
        fence_device();
        if (last) {
            *ended = 0;
        }
        *scratch = last;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    return *scratch;
}
