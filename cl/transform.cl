// Transform: out[i] = element first + i of a source, for i < n.
//
// On GPUs each work-item writes EACH vectors of 16 bytes, WG vectors apart. If the output is `aligned`, a vector is one
// store. All loads come before the first store. On CPU drivers (DEVICE_CPU) a work-group is one work-item, which writes
// `run` contiguous elements. `first` is a multiple of 16 elements. Bytes: reads the arrays of the source once, writes n
// elements.
//
// STRUCT: the type of the elements, if they are structs. On GPUs each work-item then writes EACH structs, WG structs
// apart.
#ifdef STRUCT
#define ELEMENT STRUCT
#else
#define ELEMENT T
#endif
#include "lib/types.cl"
#include "lib/source.cl"
#include "lib/length.cl"

#ifndef WG
#define WG 256
#endif
#ifndef EACH
#define EACH 4
#endif

#ifdef DEVICE_CPU

// All work-groups share n elements. `run` is their share of the capacity.
#ifdef LENGTH_T
#define RUN (n / (OFFSET_T)get_num_groups(0) + 1)
#else
#define RUN run
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void transform(
    SOURCE_PARAMS(restrict), __global ELEMENT* restrict out_base, const ulong out_offset, const OFFSET_T first,
    LENGTH_PARAMS, const OFFSET_T run)
{
    TAKE_LENGTH
    END_IF_IDLE(n / RUN + 1)
    __global ELEMENT* out = out_base + out_offset;
    const OFFSET_T begin = (OFFSET_T)get_group_id(0) * RUN, end = n - begin > RUN ? begin + RUN : n;
    for (OFFSET_T i = begin; i < end; i++) {
        out[i] = source_at(first + i, SOURCE_ARGS);
    }
}

#elif defined(STRUCT)

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void transform(
    SOURCE_PARAMS(restrict), __global ELEMENT* restrict out_base, const ulong out_offset, const OFFSET_T first,
    LENGTH_PARAMS, const uint aligned)
{
    TAKE_LENGTH
    END_IF_IDLE(n / (WG * EACH) + 1)
    __global ELEMENT* out = out_base + out_offset;
    const OFFSET_T begin = (OFFSET_T)get_group_id(0) * (WG * EACH) + get_local_id(0);
    for (uint e = 0; e < EACH; e++) {
        const OFFSET_T i = begin + e * WG;
        if (begin < n && n - begin > e * WG) {
            out[i] = source_at(first + i, SOURCE_ARGS);
        }
    }
}

#else

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void transform(
    SOURCE_PARAMS(restrict), __global T* restrict out_base, const ulong out_offset, const OFFSET_T first,
    LENGTH_PARAMS, const uint aligned)
{
    TAKE_LENGTH
    END_IF_IDLE(n / (WG * EACH * VEC) + 1)
    __global T* out = out_base + out_offset;
    const OFFSET_T begin = (OFFSET_T)get_group_id(0) * (WG * EACH * VEC) + get_local_id(0) * VEC;
    T x[EACH][VEC];
    _Pragma("unroll")
    for (uint e = 0; e < EACH; e++) {
        const OFFSET_T i = begin + e * (WG * VEC);
        if (i < n && n - i >= VEC) {
            load_source(first + i, x[e], SOURCE_ARGS);
        }
    }
    _Pragma("unroll")
    for (uint e = 0; e < EACH; e++) {
        const OFFSET_T i = begin + e * (WG * VEC);
        if (i < n && n - i >= VEC) {
            if (aligned) {
                *(__global TV*)(out + i) = VLOAD(0, x[e]);
            } else {
                VSTORE(VLOAD(0, x[e]), 0, out + i);
            }
        } else {
            for (OFFSET_T k = i; k < n; k++) {
                out[k] = source_at(first + k, SOURCE_ARGS);
            }
        }
    }
}

#endif
