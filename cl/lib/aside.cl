// Copies from global to local memory that take no registers, where COPIES_ASIDE is defined.
//
// copy_aside(to, from): 16 bytes, both aligned to them. COPY_ASIDE(bytes, to, from): 4, 8 or 16, likewise. await_copies(): the
// item's own are there; others' after a barrier.
#ifndef OCLPRIM_ASIDE_CL
#define OCLPRIM_ASIDE_CL

#if INLINE_PTX && PTX_SM >= 80
#define COPIES_ASIDE
static inline __attribute__((always_inline)) void copy_aside(__local void* to, __global const void* from)
{
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint)(size_t)to), "l"(from) : "memory");
}
#define COPY_ASIDE(BYTES, to, from)                                                                                    \
    __asm__ volatile("cp.async.ca.shared.global [%0], [%1], " TEXT_OF(BYTES) ";" ::"r"((uint)(size_t)(to)), "l"(from)  \
                     : "memory")
#define TEXT_OF(x) TEXT_OF_(x)
#define TEXT_OF_(x) #x
static inline __attribute__((always_inline)) void await_copies(void) { __asm__ volatile("cp.async.wait_all;" ::: "memory"); }
#endif

#endif
