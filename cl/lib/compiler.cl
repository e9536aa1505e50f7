// Functions and loops that compilers need to be told about.

// For functions with barriers or local memory: PoCL 3.1 miscompiles both in functions that are not inlined.
#define INLINED static inline __attribute__((always_inline))

// ROLLED is before loops that run rarely or once: NVIDIA's compiler unrolls them by itself, which can double the time
// of a kernel's build. IN_FOURS is before loops that seldom run, but whose loads should overlap. IN_ORDER is before
// loops that add floats: if Intel's driver for CPUs vectorises such a loop, it changes the order of the additions. Clang
// loses the first pragma of a loop that has both ROLLED and IN_ORDER.
#ifdef INLINE_PTX
#define ROLLED _Pragma("unroll 1")
#define IN_ORDER
#define IN_FOURS _Pragma("unroll 4")
#else
#define ROLLED
#define IN_FOURS
#define IN_ORDER _Pragma("clang loop vectorize(disable) interleave(disable)")
#endif

// SELDOM marks long functions that run seldom, or once for many elements. For NVIDIA's compiler they are not inlined,
// since each inlined copy takes long to compile. PoCL 3.1 needs them inlined, because there a called function gets
// other local memory than the kernel.
#ifdef INLINE_PTX
#define SELDOM static __attribute__((noinline))
#else
#define SELDOM INLINED
#endif
