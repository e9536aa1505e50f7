// Iota: out[i] = start + i, wrapping.
//
// Each work-item writes `run` contiguous elements; on GPUs these are 16 bytes, in one word if the output is `aligned`. The
// host starts just enough items. Bytes: writes n elements.
#include "lib/types.cl"

#ifndef WG
#define WG 256
#endif
#ifndef T_UNSIGNED
#define T_UNSIGNED uint
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void iota(
    __global T* restrict out_base, const ulong out_offset, const OFFSET_T n, const OFFSET_T run, const T start,
    const uint aligned)
{
    __global T* out = out_base + out_offset;
    const OFFSET_T first = (OFFSET_T)get_global_id(0) * run;
    const OFFSET_T end = first < n ? first + min(run, n - first) : first;
#ifndef DEVICE_CPU
    if (aligned && end - first == VEC) {
        T x[VEC];
        for (uint k = 0; k < VEC; k++) {
            x[k] = (T)((T_UNSIGNED)start + (T_UNSIGNED)first + (T_UNSIGNED)k);
        }
        *(__global TV*)(out + first) = VLOAD(0, x);
        return;
    }
#endif
    for (OFFSET_T i = first; i < end; i++) {
        out[i] = (T)((T_UNSIGNED)start + (T_UNSIGNED)i);
    }
}
