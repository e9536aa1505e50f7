// The first place of many that work-groups find, in 64 bits that are all ones before the first launch, without 64-bit
// atomics. A launch looks at places from `first` on, all between neighbouring multiples of 2^31; launches come in the order
// of their places.
#ifndef OCLPRIM_FIRST_CL
#define OCLPRIM_FIRST_CL

// No place of a launch.
#define NONE 0xffffffffu

// Notes place `at` of the launch, the first that an item met. Any item may call it.
static inline void note_first(__global uint* noted, ulong first, uint at)
{
    if (at != NONE) {
        const ulong place = first + at;
        // High words differ between launches alone, and an earlier launch's stays.
        const uint high = (uint)(place >> 32);
        if (atomic_min(noted + 1, high) >= high) {
            atomic_min(noted, (uint)place);
        }
    }
}

#endif
