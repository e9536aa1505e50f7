// The smallest index that work-items of several launches note. It has 64 bits, but no 64-bit atomics are needed.
//
// All 64 bits are ones before the first launch. A launch notes indices from `first` on, which share their high 32 bits.
// Launches come in the order of their indices.

// No index.
#define NONE 0xffffffffu

// Notes index first + at, unless `at` is NONE. Any work-item may call it.
static inline void note_first(__global uint* noted, ulong first, uint at)
{
    if (at != NONE) {
        const ulong index = first + at;
        // The high word differs only between launches, and the word of an earlier launch is smaller, so it stays.
        const uint high = (uint)(index >> 32);
        if (atomic_min(noted + 1, high) >= high) {
            atomic_min(noted, (uint)index);
        }
    }
}
