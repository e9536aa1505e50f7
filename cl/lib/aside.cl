// Asynchronous copies from global to local memory, without registers. COPIES_ASIDE is defined where they exist: on
// NVIDIA's GPUs with compute capability 8.0 and above.
//
//     copy_async_16(to, from)        copies 16 bytes, and bypasses the L1 cache
//     copy_async(bytes, to, from)    copies `bytes` bytes: 4, 8 or 16, a constant
//     await_copies()                 waits for the work-item's own copies; other work-items see them after a barrier
//
// Both pointers are aligned to the number of bytes. Needs subgroup.cl.

#if INLINE_PTX && PTX_SM >= 80
#define COPIES_ASIDE

SG_INLINE void copy_async_16(__local void* to, __global const void* from)
{
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint)(size_t)to), "l"(from) : "memory");
}

SG_INLINE void copy_async(const uint bytes, __local void* to, __global const void* from)
{
    if (bytes == 4) {
        __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((uint)(size_t)to), "l"(from) : "memory");
    } else if (bytes == 8) {
        __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((uint)(size_t)to), "l"(from) : "memory");
    } else {
        __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"((uint)(size_t)to), "l"(from) : "memory");
    }
}

SG_INLINE void await_copies(void) { __asm__ volatile("cp.async.wait_all;" ::: "memory"); }
#endif
