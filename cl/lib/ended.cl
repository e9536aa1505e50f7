// Which of some work-groups ends last: it does what a further launch would, and reads what all of them have written.
//
// `ended` counts those that are done, and is 0 before and after each launch. The launches of one queue that is in order may share
// it. Needs subgroup.cl.
#ifndef OCLPRIM_ENDED_CL
#define OCLPRIM_ENDED_CL

#define ENDED_PARAM , volatile __global uint *ended

// Whether this one is the last of `groups`. All items call it once, in uniform flow, after all that they write for others.
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

#endif
