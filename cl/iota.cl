// Iota: out[i] = start + i * step. Integers wrap. Floats are computed in A: i, the product and the sum are rounded to
// A. Then the sum is rounded to T; OUT is T. If the product overflows A, halves of the start and of the product are
// added, and the sum is doubled. The result can still be finite.
//
// Each work-item writes `run` contiguous elements. On GPUs these are 16 bytes, in one word if the output is `aligned`.
// The host starts just enough work-items. Bytes: writes n elements.
#include "lib/types.cl"

#ifndef WG
#define WG 256
#endif
#ifndef T_UNSIGNED
#define T_UNSIGNED uint
#endif

#ifdef T_FLOAT
static inline A value_at(const A i, const A start, const A step)
{
    const A product = i * step;
    return isinf(product) ? (start * (A)0.5f + i * (step * (A)0.5f)) * (A)2.0f : start + product;
}
#define VALUE(i) value_at((A)(i), start, step)
#else
// 16-bit factors are promoted to int, whose product could overflow; in uint it wraps.
#define VALUE(i) ((A)((T_UNSIGNED)start + (T_UNSIGNED)(i) * 1u * (T_UNSIGNED)step))
#endif

#if defined(T_F16)
#define PUT(x, k, value) vstore_half_rte(value, k, (half*)(x))
#elif defined(T_BF16)
#define PUT(x, k, value) (x)[k] = float_to_bf16(value)
#else
#define PUT(x, k, value) (x)[k] = value
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void iota(
    __global T* restrict out_base, const ulong out_offset, const OFFSET_T n, const OFFSET_T run, const A start,
    const A step, const uint aligned)
{
    __global T* out = out_base + out_offset;
    const OFFSET_T first = (OFFSET_T)get_global_id(0) * run;
    const OFFSET_T end = first < n ? first + min(run, n - first) : first;
#ifndef DEVICE_CPU
    if (aligned && end - first == VEC) {
        T x[VEC];
        for (uint k = 0; k < VEC; k++) {
            PUT(x, k, VALUE(first + k));
        }
        *(__global TV*)(out + first) = VLOAD(0, x);
        return;
    }
#endif
    for (OFFSET_T i = first; i < end; i++) {
        store_acc(out + i, VALUE(i));
    }
}
