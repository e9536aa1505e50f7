// Whether keys are equal, by their bits, so that a device may take subnormals for zeros.
//
// KEY: an unsigned integer of KEY_BYTES bytes. INFINITY_BITS: those of the keys' infinity, if they are floats. These are equal
// as == has it.
#ifndef OCLPRIM_EQUAL_CL
#define OCLPRIM_EQUAL_CL

static inline bool equal(KEY a, KEY b)
{
#ifdef INFINITY_BITS
    // Those of a NaN are beyond infinity's; those of zeros are none but the sign.
    const KEY rest = (KEY)~((KEY)1 << (8 * KEY_BYTES - 1));
    return (a == b && (a & rest) <= (KEY)INFINITY_BITS) || ((a | b) & rest) == 0;
#else
    return a == b;
#endif
}

#endif
