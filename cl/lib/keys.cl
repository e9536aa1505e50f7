// Keys by their bits, and the numbers that rise with them.
//
// KEY: an unsigned integer of KEY_BYTES bytes. WORD: what holds its bits. `flip` and `always` are the host's, for each type and
// direction.
#ifndef OCLPRIM_KEYS_CL
#define OCLPRIM_KEYS_CL

#ifndef KEY
#define KEY uint
#define KEY_BYTES 4
#endif
#if KEY_BYTES == 8
#define WORD ulong
#else
#define WORD uint
#endif

// What rises with the keys, or falls where the host has it so.
static inline WORD ordered(KEY key, WORD flip, WORD always)
{
    const WORD bits = key;
    return bits ^ (((WORD)0 - (bits >> (8 * KEY_BYTES - 1))) & flip) ^ always;
}

// The key of such a number: `flip` leaves the highest bit as it is.
static inline KEY key_of_ordered(WORD number, WORD flip, WORD always)
{
    return (KEY)ordered((KEY)(number ^ always), flip, 0);
}

#endif
