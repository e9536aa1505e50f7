// The order of floats: -0 equals 0, and every NaN is above infinity and equals every other one. Floats are compared as
// bits, so devices that flush subnormals give the same order.

// Defines NAME(bits, infinity), the rank of a float of WIDTH bits: the number of values below it. `bits` are the bits
// of the float, and `infinity` those of infinity, each of type WORD. The rank of -infinity is 0, that of zeros is
// `infinity`. Before `min` is applied, the value exceeds 2 * `infinity` for every NaN: for negative NaN it wraps
// around.
#define FLOAT_RANK(NAME, WORD, WIDTH)                                                                                  \
    static inline WORD NAME(const WORD bits, const WORD infinity)                                                      \
    {                                                                                                                  \
        const WORD negative = (WORD)0 - (bits >> ((WIDTH) - 1));                                                       \
        const WORD size = bits & (((WORD)1 << ((WIDTH) - 1)) - 1);                                                     \
        return min((WORD)((size ^ negative) - negative + infinity), (WORD)(2 * infinity + 1));                         \
    }
