// The lines of an array along an axis: output o reduces line o. Needs types.cl.

// The first parameters of a kernel over lines: the first element of line 0, and the stride along the axis. Then come
// the number of outputs and their dimensions, the last dimension first.
#define LINES                                                                                                          \
    __global const T *restrict in_base, const ulong in_offset, const long stride, const OFFSET_T outputs,              \
        const ulong8 shape, const long8 strides, const uint dims

// The first element of line o, in a function with the parameters LINES.
#define LINE(o) (in_base + in_offset + line_offset(o, shape, strides, dims))

// The offset of line o from line 0: the sum of index * stride over the `dims` dimensions. A division has much code, so
// it exists once: each round of the loop rotates the vectors by one dimension.
static inline long line_offset(OFFSET_T o, ulong8 shape, long8 strides, const uint dims)
{
    long at = 0;
    ROLLED
    for (uint d = 1; d < dims; d++) {
        const OFFSET_T quotient = o / (OFFSET_T)shape.s0;
        at += (long)(o - quotient * (OFFSET_T)shape.s0) * strides.s0;
        o = quotient;
        shape = shape.s12345670;
        strides = strides.s12345670;
    }
    return at + (long)o * strides.s0;
}
