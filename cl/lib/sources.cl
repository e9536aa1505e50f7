// A source whose elements are tuples, and an output for each component. The host replaces the include of this file by
// text with the same definitions.
//
//     SOURCE_PARAMS(restrict)            the first parameters of a kernel; of a function with an empty argument
//     OUTPUT_PARAMS(restrict)            the parameters after them: the outputs
//     SOURCE_ARGS, OUTPUT_ARGS           their names
//     transform_at(i, outputs, args)     writes the components of element i to index i of their outputs
//     SOURCE_VALUES(each)                variables for `each` groups of VEC elements
//     SOURCE_VALUES_AT(e)                the variables of group e
//     load_sources(i, values, args)      computes the VEC elements from index i on; i is a multiple of VEC
//     store_sources(i, values, outputs)  writes them to the outputs
//
// T is the largest type of a component. If a component is a struct, the host defines STRUCT, and leaves out the last
// four definitions. Needs types.cl.

#define SOURCE_PARAMS(qualifier)                                                                                       \
    __global const T *qualifier s0, const ulong o0, __global const T *qualifier s1, const ulong o1
#define SOURCE_ARGS s0, o0, s1, o1
#define OUTPUT_PARAMS(qualifier)                                                                                       \
    __global T *qualifier t0, const ulong q0, __global T *qualifier t1, const ulong q1
#define OUTPUT_ARGS t0, q0, t1, q1
#define SOURCE_VALUES(each) T y0[each][VEC]; T y1[each][VEC];
#define SOURCE_VALUES_AT(e) y0[e], y1[e]

INLINED void transform_at(const OFFSET_T i, OUTPUT_PARAMS(), SOURCE_PARAMS())
{
    t0[q0 + i] = s0[o0 + i];
    t1[q1 + i] = s1[o1 + i];
}

INLINED void load_sources(const OFFSET_T i, T* y0, T* y1, SOURCE_PARAMS())
{
    for (uint k = 0; k < VEC; k++) {
        y0[k] = s0[o0 + i + k];
        y1[k] = s1[o1 + i + k];
    }
}

INLINED void store_sources(const OFFSET_T i, T* y0, T* y1, OUTPUT_PARAMS())
{
    for (uint k = 0; k < VEC; k++) {
        t0[q0 + i + k] = y0[k];
        t1[q1 + i + k] = y1[k];
    }
}
