// The lines of an array along an axis: output o reduces line o. Needs types.cl.

// The first parameters of a kernel over lines: the first element of line 0, and the stride along the axis. Then come
// the number of outputs and their dimensions, the last dimension first.
#define LINES                                                                                                          \
    __global const T *restrict in_base, const ulong in_offset, const long stride, const OFFSET_T outputs,              \
        const ulong8 shape, const long8 strides, const uint dims

// The first element of line o, in a function with the parameters LINES.
#define LINE(o) (in_base + in_offset + line_offset(o, shape, strides, dims))

// Takes one dimension off the index o: adds this dimension's part of the offset to *at, and returns the index in the
// remaining dimensions.
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
    if (dims == 1) {
        return at + (long)o * strides.s0;
    }
    o = take_dimension(o, shape.s0, strides.s0, &at);
    if (dims == 2) {
        return at + (long)o * strides.s1;
    }
    o = take_dimension(o, shape.s1, strides.s1, &at);
    if (dims == 3) {
        return at + (long)o * strides.s2;
    }
    o = take_dimension(o, shape.s2, strides.s2, &at);
    if (dims == 4) {
        return at + (long)o * strides.s3;
    }
    o = take_dimension(o, shape.s3, strides.s3, &at);
    if (dims == 5) {
        return at + (long)o * strides.s4;
    }
    o = take_dimension(o, shape.s4, strides.s4, &at);
    if (dims == 6) {
        return at + (long)o * strides.s5;
    }
    o = take_dimension(o, shape.s5, strides.s5, &at);
    if (dims == 7) {
        return at + (long)o * strides.s6;
    }
    o = take_dimension(o, shape.s6, strides.s6, &at);
    return at + (long)o * strides.s7;
}
