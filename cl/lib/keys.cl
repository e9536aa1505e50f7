// Maps the bits of a key to a number that rises with the key, and back.
//
// KEY: an unsigned integer of KEY_BYTES bytes; for 16 bytes a vector of two integers, the low half first. WORD: the
// type of a key's number. The host computes `flip` and `always` for each type, order and direction.
//
// FLOAT_KEYS: the keys are floats in the order of lib/floats.cl, and `flip` has the bits of infinity. Keys that compare
// equal have one number, `ordered`: their rank (lib/floats.cl), to which SOME_BITS adds a bias. In descending order its
// bits are inverted. Each key also has a number of its own, `distinct`. In the order of these numbers, keys that
// compare equal are contiguous.
//
// Without FLOAT_KEYS, if the highest bit of a key is set, the bits of `flip` are inverted. Then the bits of `always`
// are inverted in every key. The result is the number. Floats without FLOAT_KEYS are in IEEE 754's total order: -0 is
// below 0, and NaN differ by their bits. So, ascending, a float with the sign bit has all its bits inverted; any other
// float has only its highest bit inverted. The host passes:
//
//     keys                     flip                        always, ascending    always, descending
//     unsigned integers        0                           0                    all bits
//     signed integers          0                           the highest bit      all other bits
//     floats, total order      all bits but the highest    the highest bit      all other bits
//     floats, FLOAT_KEYS       the bits of infinity        0                    all bits

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

// `rising(key, flip) ^ always` rises with the key, or falls if the host asks for the reverse order.
#define rising(key, flip) rank_of(key, flip)

// Ascending, -0 comes before 0, and NaN are ordered by their bits. The numbers of negative NaN wrap around, so they
// follow all others. Descending, `^ always` reverses all of this.
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

// Returns a key whose digit is the highest that any key has:
//
//     the digit has the number's highest bit:  the digit rises with the number. So the key with the highest number is
//                                              returned: NaN, or -infinity in descending order.
//     else:                                    a key whose number has all bits of the digit set is returned; `rank` is
//                                              the rank of this key.
static inline KEY highest_key(uint shift, uint mask, WORD flip, WORD always)
{
    const WORD digit = (WORD)mask << shift;
    if ((digit & HIGH_BIT) != 0) {
        return (KEY)(always == 0 ? HIGH_BIT - 1 : HIGH_BIT | flip);
    }
#ifdef SOME_BITS
    // The number HIGH_BIT - 1 has all bits below the highest, so also those of the digit. It is the number of:
    //
    //     ascending:   the largest key below 0, since zeros have HIGH_BIT; its rank is flip - 1
    //     descending:  zeros, since they have ~HIGH_BIT, which is HIGH_BIT - 1; their rank is flip
    const WORD rank = always == 0 ? flip - 1 : flip;
#else
    const WORD rank = always == 0 ? digit : (HIGH_BIT - 1) ^ digit;
#endif
    return (KEY)(rank < flip ? HIGH_BIT | (flip - rank) : rank - flip);
}

#else
#define KEYS_ARE_FLOATS 0

// `rising(key, flip) ^ always` rises with the key, or falls if the host asks for the reverse order.
static inline WORD rising(KEY key, WORD flip)
{
#if KEY_BYTES == 16
    // There are no floats of this size.
    return key;
#else
    const WORD bits = key;
    return bits ^ (((WORD)0 - (bits >> (8 * KEY_BYTES - 1))) & flip);
#endif
}

// The key with this number. rising() is its own inverse, since `flip` leaves the highest bit as it is.
static inline KEY key_of_ordered(WORD number, WORD flip, WORD always)
{
#if KEY_BYTES == 16
    return number ^ always;
#else
    return (KEY)rising((KEY)(number ^ always), flip);
#endif
}

#define distinct(key, flip, always) ((KEY)(rising(key, flip) ^ (always)))
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

// The number of a key. It rises with the key, or falls if the order is descending:
//
//                                ascending      descending
//     without FLOAT_KEYS         rising(key) ^ always, as above
//     FLOAT_KEYS                 rank           ~rank
//     FLOAT_KEYS, SOME_BITS      rank + bias    ~(rank + bias)
//
// SOME_BITS: the sort compares only some bits of a float's number. With the bias, the highest bit of the number shows
// whether the key is below zero:
//
//                                ascending                    descending
//     number of zeros            HIGH_BIT                     HIGH_BIT - 1
//     highest bit                0 only for keys below zero   1 only for keys below zero
//
// With FLOAT_KEYS `always` is 0 or has all bits. So the first expression below gives the last row of the first table
// above, in both columns.
static inline WORD ordered(KEY key, WORD flip, WORD always)
{
#if defined(FLOAT_KEYS) && defined(SOME_BITS)
    const WORD bias = HIGH_BIT - flip;
    return (rising(key, flip) ^ always) + ((bias ^ always) - always);
#else
    return rising(key, flip) ^ always;
#endif
}

// A digit of a key's number, for sort_scatter. Where possible, the number itself is not computed: rising() is shifted,
// and the direction is applied to the digit. `always >> shift` is the same for all keys. sort_counts and
// sort_histograms compute the number by ordered() instead.
static inline uint digit_of_key(KEY key, uint shift, uint mask, WORD flip, WORD always)
{
#if KEY_BYTES == 16 || defined(FLOAT_KEYS) && defined(SOME_BITS)
    return digit_of(ordered(key, flip, always), shift, mask);
#else
    return ((uint)(rising(key, flip) >> shift) ^ (uint)(always >> shift)) & mask;
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
