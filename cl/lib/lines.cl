// Where the lines along an axis start. Needs types.cl.

// What a kernel over lines is told first: the first element of output 0, the step along the axis, and the outputs with
// their dimensions, the last one first.
#define LINES                                                                                                          \
    __global const T *restrict in_base, const ulong in_offset, const long stride, const OFFSET_T outputs,              \
        const ulong8 shape, const long8 strides, const uint dims

// The first element of output o's line.
#define LINE(o) (in_base + in_offset + place(o, shape, strides, dims))

// The position of output o, counted from that of output 0.
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
