// Whether keys are equal, by their bits.
//
// KEY: an unsigned integer of KEY_BYTES bytes. INFINITY_BITS: those of the keys' infinity, if they are floats, which are equal as
// lib/floats.cl has it.
#ifndef OCLPRIM_EQUAL_CL
#define OCLPRIM_EQUAL_CL

#ifdef INFINITY_BITS
#include "lib/floats.cl"
#if KEY_BYTES == 8
FLOAT_RANK(rank_of_key, ulong, 64)
#else
FLOAT_RANK(rank_of_key, uint, 8 * KEY_BYTES)
#endif
#endif

static inline bool equal(KEY a, KEY b)
{
#ifdef INFINITY_BITS
    return rank_of_key(a, INFINITY_BITS) == rank_of_key(b, INFINITY_BITS);
#else
    return a == b;
#endif
}

#endif
