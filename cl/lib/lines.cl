// Where the lines along an axis start. Needs types.cl.

// The position of output o, counted from that of output 0. The dimensions are those of the outputs, the last one first.
static inline long place(OFFSET_T o, const ulong8 shape, const long8 strides, const uint dims)
{
    long at = 0;
    OFFSET_T quotient;
#define DIMENSION(D, K)                                                                                                \
    if (dims == D) {                                                                                                   \
        return at + (long)o * strides.s##K;                                                                            \
    }                                                                                                                  \
    quotient = o / (OFFSET_T)shape.s##K;                                                                               \
    at += (long)(o - quotient * (OFFSET_T)shape.s##K) * strides.s##K;                                                  \
    o = quotient;
    DIMENSION(1, 0)
    DIMENSION(2, 1)
    DIMENSION(3, 2)
    DIMENSION(4, 3)
    DIMENSION(5, 4)
    DIMENSION(6, 5)
    DIMENSION(7, 6)
    return at + (long)o * strides.s7;
}
