// The order of floats: -0 equals 0, and every NaN is above infinity and equals every other one. By their bits, so that a device
// may take subnormals for zeros.
#ifndef OCLPRIM_FLOATS_CL
#define OCLPRIM_FLOATS_CL

// Defines NAME(bits, infinity): how many values are below a float of WIDTH bits, which a WORD holds; `infinity` are infinity's
// bits. That of -infinity is 0, that of zeros `infinity`. Those of NaN of either sign are beyond twice `infinity` before the
// minimum is taken: those of negative ones wrap round.
#define FLOAT_RANK(NAME, WORD, WIDTH)                                                                                  \
    static inline WORD NAME(const WORD bits, const WORD infinity)                                                      \
    {                                                                                                                  \
        const WORD negative = (WORD)0 - (bits >> ((WIDTH) - 1));                                                       \
        const WORD size = bits & (((WORD)1 << ((WIDTH) - 1)) - 1);                                                     \
        return min((WORD)((size ^ negative) - negative + infinity), (WORD)(2 * infinity + 1));                         \
    }

#endif
