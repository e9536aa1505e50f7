// Transform with several outputs: out_c[i] = component c of element i of a source, for i < n.
//
// A work-group writes `run` contiguous elements. On GPUs each work-item writes EACH groups of VEC elements, WG groups
// apart. A group has 16 bytes of the largest component, and fewer of smaller ones. All loads come before the first
// store. If a component is a struct (STRUCT), a work-item writes EACH elements, WG elements apart. On CPU drivers
// (DEVICE_CPU) a work-group is one work-item. Bytes: reads each array of the source once, writes n elements to each
// output.
#include "lib/types.cl"
#include "lib/sources.cl"

#ifndef WG
#define WG 256
#endif
#ifndef EACH
#define EACH 4
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void transform_several(
    SOURCE_PARAMS(restrict), OUTPUT_PARAMS(restrict), const OFFSET_T n, const OFFSET_T run)
{
    const OFFSET_T begin = (OFFSET_T)get_group_id(0) * run;
#ifdef DEVICE_CPU
    const OFFSET_T end = n - begin > run ? begin + run : n;
    for (OFFSET_T i = begin; i < end; i++) {
        transform_at(i, OUTPUT_ARGS, SOURCE_ARGS);
    }
#elif defined(STRUCT)
    for (uint e = 0; e < EACH; e++) {
        const OFFSET_T i = begin + get_local_id(0) + e * WG;
        if (i < n) {
            transform_at(i, OUTPUT_ARGS, SOURCE_ARGS);
        }
    }
#else
    const OFFSET_T first = begin + get_local_id(0) * VEC;
    SOURCE_VALUES(EACH)
    _Pragma("unroll")
    for (uint e = 0; e < EACH; e++) {
        const OFFSET_T i = first + e * (WG * VEC);
        if (i < n && n - i >= VEC) {
            load_sources(i, SOURCE_VALUES_AT(e), SOURCE_ARGS);
        }
    }
    _Pragma("unroll")
    for (uint e = 0; e < EACH; e++) {
        const OFFSET_T i = first + e * (WG * VEC);
        if (i < n && n - i >= VEC) {
            store_sources(i, SOURCE_VALUES_AT(e), OUTPUT_ARGS);
        } else {
            for (OFFSET_T k = i; k < n; k++) {
                transform_at(k, OUTPUT_ARGS, SOURCE_ARGS);
            }
        }
    }
#endif
}
