// Equality of keys by their bits: equal(a, b).
//
// KEY is the type of a key, of KEY_BYTES bytes. A float key has the type of an unsigned integer, and INFINITY_BITS are
// the bits of infinity. Then all NaN are equal, and -0 equals +0 (lib/floats.cl).

#ifdef INFINITY_BITS
#include "lib/floats.cl"
#if KEY_BYTES == 8
FLOAT_RANK(rank_of_key, ulong, 64)
#else
FLOAT_RANK(rank_of_key, uint, 8 * KEY_BYTES)
#endif
static inline bool equal(KEY a, KEY b)
{
    return rank_of_key(a, INFINITY_BITS) == rank_of_key(b, INFINITY_BITS);
}
#else
static inline bool equal(KEY a, KEY b) { return a == b; }
#endif
