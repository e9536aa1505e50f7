// Attributes of functions, and pragmas before loops.

// For functions with barriers or local memory: PoCL 3.1 miscompiles both in functions that are not inlined.
#define INLINED static inline __attribute__((always_inline))

// ROLLED is before loops that seldom run, or run once. NVIDIA's compiler unrolls them by itself, which can double the
// time of a kernel's build. IN_FOURS is before loops that seldom run, but whose loads should overlap. IN_ORDER is
// before loops that add floats: Intel's driver for CPUs vectorises such loops, which changes the order of the
// additions. Clang loses the first of two pragmas before a loop, so ROLLED and IN_ORDER are never pragmas in one build.
#ifdef INLINE_PTX
#define ROLLED _Pragma("unroll 1")
#define IN_ORDER
#define IN_FOURS _Pragma("unroll 4")
#else
#define ROLLED
#define IN_FOURS
#define IN_ORDER _Pragma("clang loop vectorize(disable) interleave(disable)")
#endif

// SELDOM is before long functions that seldom run, or run once for many elements. NVIDIA's compiler does not inline
// them, since each inlined copy takes long to compile. PoCL 3.1 needs them inlined, because there a called function
// gets other local memory than the kernel.
#ifdef INLINE_PTX
#define SELDOM static __attribute__((noinline))
#else
#define SELDOM INLINED
#endif

// Waits for the other work-items of the work-group; local memory is then visible. A work-group of one work-item does not
// wait: PoCL 5 ends the process at some kernels with barriers, and this is its geometry.
#define LOCAL_BARRIER                                                                                                  \
    do {                                                                                                               \
        if (WG > 1) {                                                                                                  \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
        }                                                                                                              \
    } while (0)
