// Keys by their bits, and the numbers that rise with them.
//
// KEY: an unsigned integer of KEY_BYTES bytes, of 16 two of 8, the low half first. WORD: what holds its bits. `flip` and
// `always` are the host's, for each type and direction.
#ifndef OCLPRIM_KEYS_CL
#define OCLPRIM_KEYS_CL

#ifndef KEY
#define KEY uint
#define KEY_BYTES 4
#endif
#if KEY_BYTES == 16
#define WORD ulong2
#elif KEY_BYTES == 8
#define WORD ulong
#else
#define WORD uint
#endif

// What rises with the keys, or falls where the host has it so.
static inline WORD ordered(KEY key, WORD flip, WORD always)
{
#if KEY_BYTES == 16
    // There are no floats of that size.
    return key ^ always;
#else
    const WORD bits = key;
    return bits ^ (((WORD)0 - (bits >> (8 * KEY_BYTES - 1))) & flip) ^ always;
#endif
}

// The key of such a number: `flip` leaves the highest bit as it is.
static inline KEY key_of_ordered(WORD number, WORD flip, WORD always)
{
#if KEY_BYTES == 16
    return number ^ always;
#else
    return (KEY)ordered((KEY)(number ^ always), flip, 0);
#endif
}

// The bits of a number from the one at `shift` on, as far as `mask` has them, which is of 8 bits at most.
static inline uint digit_of(WORD number, uint shift, uint mask)
{
#if KEY_BYTES == 16
    const ulong low = shift < 64 ? number.x >> shift : number.y >> (shift - 64);
    // The digit may begin in the low half and end in the high one.
    const ulong high = shift > 56 && shift < 64 ? number.y << (64 - shift) : 0;
    return (uint)(low | high) & mask;
#else
    return (uint)(number >> shift) & mask;
#endif
}

// Whether a number is below another one.
static inline int is_below(WORD a, WORD b)
{
#if KEY_BYTES == 16
    return a.y < b.y || (a.y == b.y && a.x < b.x);
#else
    return a < b;
#endif
}

#endif
