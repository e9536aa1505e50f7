// Keys by their bits, and the numbers that rise with them.
//
// KEY: an unsigned integer of KEY_BYTES bytes; of 16 bytes a vector of two, the low half first. WORD: the type of a key's
// number. The host computes `flip` and `always` for each type and direction.
//
// FLOAT_KEYS: the keys are floats in the order of lib/floats.cl, and `flip` has the bits of infinity. Several keys have one
// number `ordered`. Each key has a number `distinct` of its own, by which equal keys are contiguous.
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

#ifdef FLOAT_KEYS
#define KEYS_ARE_FLOATS 1

#include "lib/floats.cl"
FLOAT_RANK(rank_of, WORD, 8 * KEY_BYTES)

#define HIGH_BIT ((WORD)1 << (8 * KEY_BYTES - 1))

// A number that rises with the keys or, with `always`, falls. Zeros have the highest bit alone, or all others.
static inline WORD ordered(KEY key, WORD flip, WORD always)
{
    const WORD bias = HIGH_BIT - flip;
    return (rank_of(key, flip) ^ always) + ((bias ^ always) - always);
}

// -0 comes before 0, and NaN are ordered by their bits: the numbers of negative NaN wrap around, and follow the others.
static inline KEY distinct(KEY key, WORD flip, WORD always)
{
    const WORD bits = key, total = bits ^ (((WORD)0 - (bits >> (8 * KEY_BYTES - 1))) | HIGH_BIT);
    return (KEY)((total - (HIGH_BIT - 1 - flip)) ^ always);
}

// The key with this number.
static inline KEY key_of_distinct(KEY number, WORD flip, WORD always)
{
    const WORD total = (KEY)((number ^ always) + (HIGH_BIT - 1 - flip));
    return (KEY)(total ^ (((total >> (8 * KEY_BYTES - 1)) - 1) | HIGH_BIT));
}

// A key with the highest digit of all keys. The digit that has the highest bit rises with the number: NaN has it, or -infinity
// if `always`. Other digits have all bits set in the number of the largest value below 0, or in that of 0 if `always`.
static inline KEY highest_key(uint shift, uint mask, WORD flip, WORD always)
{
    if (((WORD)mask << shift & HIGH_BIT) != 0) {
        return (KEY)(always == 0 ? HIGH_BIT - 1 : HIGH_BIT | flip);
    }
    return (KEY)(always == 0 ? HIGH_BIT | 1 : 0);
}

#else
#define KEYS_ARE_FLOATS 0

// A number that rises with the keys or, with `always`, falls.
static inline WORD ordered(KEY key, WORD flip, WORD always)
{
#if KEY_BYTES == 16
    // There are no floats of this size.
    return key ^ always;
#else
    const WORD bits = key;
    return bits ^ (((WORD)0 - (bits >> (8 * KEY_BYTES - 1))) & flip) ^ always;
#endif
}

// The key with this number: `flip` leaves the highest bit as it is.
static inline KEY key_of_ordered(WORD number, WORD flip, WORD always)
{
#if KEY_BYTES == 16
    return number ^ always;
#else
    return (KEY)ordered((KEY)(number ^ always), flip, 0);
#endif
}

#define distinct(key, flip, always) ((KEY)ordered(key, flip, always))
#define key_of_distinct(number, flip, always) key_of_ordered(number, flip, always)
#define highest_key(shift, mask, flip, always) key_of_ordered(~(WORD)(0), flip, always)

#endif

// The bits of `mask`, at most 8, in the number from bit `shift` on.
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

// True if a is below b.
static inline int is_below(WORD a, WORD b)
{
#if KEY_BYTES == 16
    return a.y < b.y || (a.y == b.y && a.x < b.x);
#else
    return a < b;
#endif
}

#endif
