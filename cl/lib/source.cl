// A source: an input whose elements are computed where they are read. If the source is an expression, the host replaces
// this file by text with the same definitions.
//
//     SOURCE_PARAMS(restrict)       the first parameters of a kernel; without the argument, those of a function
//     SOURCE_ARGS                   their names
//     source_at(i, args)            element i
//     load_source(i, x, args)       x[k] = element i + k, for the VEC elements of 16 bytes; i is a multiple of VEC
//
// Needs types.cl.

#define SOURCE_PARAMS(qualifier) __global const T *qualifier s0, const ulong o0
#define SOURCE_ARGS s0, o0

INLINED T source_at(const OFFSET_T i, SOURCE_PARAMS()) { return s0[o0 + i]; }

INLINED void load_source(const OFFSET_T i, T* x, SOURCE_PARAMS())
{
    for (uint k = 0; k < VEC; k++) {
        x[k] = source_at(i + k, SOURCE_ARGS);
    }
}
