// The copy ladder: the kernels of a well-known article on vectorised accesses, one kernel for each step. Each moves n
// elements of T. The host promises that the first element of each array is aligned for vectors.
//
// A vector of V elements is one access of V x T_BYTES bytes. Grid-stride kernels have a capped grid, whose work-items
// loop; the others have a work-item for each vector.
//
// Differences from the originals, which lost elements at most sizes:
// - the last n mod V elements are moved by a strided loop, not by work-item n / V, which may not exist;
// - there is always a work-group, so that n < V works;
// - counters have the type OFFSET_T, which is wide enough for n and one stride more.
#ifndef T
#define T uint
#endif
#ifndef OFFSET_T
#define OFFSET_T uint
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

__kernel void copy_scalar(__global const T* restrict in, __global T* restrict out, const OFFSET_T n)
{
    for (OFFSET_T i = get_global_id(0); i < n; i += get_global_size(0)) {
        out[i] = in[i];
    }
}

// The elements after the last whole vector.
static inline void copy_tail(__global const T* in, __global T* out, OFFSET_T first, OFFSET_T n)
{
    for (OFFSET_T i = first + get_global_id(0); i < n; i += get_global_size(0)) {
        out[i] = in[i];
    }
}

// copy_vector2, copy_vector4, ...: the loop of copy_scalar, over vectors.
#define COPY_VECTOR(V)                                                                                                 \
    __kernel void CAT(copy_vector, V)(                                                                                 \
        __global const T* restrict in, __global T* restrict out, const OFFSET_T n)                                     \
    {                                                                                                                  \
        __global const CAT(T, V)* in_vectors = (__global const CAT(T, V)*)in;                                          \
        __global CAT(T, V)* out_vectors = (__global CAT(T, V)*)out;                                                    \
        for (OFFSET_T i = get_global_id(0); i < n / V; i += get_global_size(0)) {                                      \
            out_vectors[i] = in_vectors[i];                                                                            \
        }                                                                                                              \
        copy_tail(in, out, n / V * V, n);                                                                              \
    }
COPY_VECTOR(2)
COPY_VECTOR(4)
COPY_VECTOR(8)
COPY_VECTOR(16)

// copy_item1, copy_item2, ...: a work-item for each vector, and no loop.
__kernel void copy_item1(__global const T* restrict in, __global T* restrict out, const OFFSET_T n)
{
    const OFFSET_T i = get_global_id(0);
    if (i < n) {
        out[i] = in[i];
    }
}

#define COPY_ITEM(V)                                                                                                   \
    __kernel void CAT(copy_item, V)(__global const T* restrict in, __global T* restrict out, const OFFSET_T n)         \
    {                                                                                                                  \
        __global const CAT(T, V)* in_vectors = (__global const CAT(T, V)*)in;                                          \
        __global CAT(T, V)* out_vectors = (__global CAT(T, V)*)out;                                                    \
        const OFFSET_T i = get_global_id(0);                                                                           \
        if (i < n / V) {                                                                                               \
            out_vectors[i] = in_vectors[i];                                                                            \
        }                                                                                                              \
        copy_tail(in, out, n / V * V, n);                                                                              \
    }
COPY_ITEM(2)
COPY_ITEM(4)
COPY_ITEM(8)
COPY_ITEM(16)
