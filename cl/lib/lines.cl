// The lines of an array along an axis: output o reduces line o. Needs types.cl.

// The first parameters of a kernel over lines: the first element of line 0, the stride along the axis, the number of outputs, and
// their dimensions, the last one first.
#define LINES                                                                                                          \
    __global const T *restrict in_base, const ulong in_offset, const long stride, const OFFSET_T outputs,              \
        const ulong8 shape, const long8 strides, const uint dims

// The first element of line o, in a function with the parameters LINES.
#define LINE(o) (in_base + in_offset + line_offset(o, shape, strides, dims))

// Takes one dimension off the index o: adds its part of the offset to *at, and returns the index among the others.
static inline OFFSET_T take_dimension(OFFSET_T o, ulong extent, long stride, long* at)
{
    const OFFSET_T quotient = o / (OFFSET_T)extent;
    *at += (long)(o - quotient * (OFFSET_T)extent) * stride;
    return quotient;
}

// The offset of line o from line 0: the sum of index * stride over the `dims` dimensions.
static inline long line_offset(OFFSET_T o, const ulong8 shape, const long8 strides, const uint dims)
{
    long at = 0;
    ulong8 extents = shape;
    long8 steps = strides;
    // A loop, since divisions have much code. The next dimension moves to the front.
    ROLLED
    for (uint d = 1; d < dims; d++) {
        o = take_dimension(o, extents.s0, steps.s0, &at);
        extents = extents.s12345677;
        steps = steps.s12345677;
    }
    return at + (long)o * steps.s0;
}
