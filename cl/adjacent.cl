// Adjacent: what an element and the one before it come to, out[i] = COMBINE(x[i], x[i - 1]). The first element has none before
// it, and is copied.
//
// Bytes: reads n elements, writes n; the one before a 16-byte word is in the cache.
#include "lib/types.cl"

#ifndef WG
#define WG 256
#endif
#ifndef T_UNSIGNED
#define T_UNSIGNED T
#endif

// The user's operator comes in front of the file. Unsigned differences wrap; 16-bit ones are promoted, so that they fit.
#if defined(OPERATOR)
#define COMBINE(a, b) op_combine(a, b)
#elif defined(T_FLOAT)
#define COMBINE(a, b) ((a) - (b))
#else
#define COMBINE(a, b) ((T)((T_UNSIGNED)(a) - (T_UNSIGNED)(b)))
#endif
// Vectors that an item has in flight, in registers where the loops over them are unrolled.
#define HELD 4
#define UNROLL _Pragma("unroll")

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void adjacent(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global T* out_base, const ulong out_offset,
    const OFFSET_T run)
{
    __global const T* x = in_base + in_offset;
    __global T* out = out_base + out_offset;
#if WG == 1
    // Contiguous elements, for the compilers of CPU drivers to vectorise.
    const OFFSET_T first = get_group_id(0) * run, end = first + min(run, n - first);
    if (first == 0) {
        out[0] = x[0];
    }
    for (OFFSET_T i = max(first, (OFFSET_T)1); i < end; i++) {
        store_acc(out + i, COMBINE(to_acc(x[i]), to_acc(x[i - 1])));
    }
#else
    const OFFSET_T share = WG * HELD * VEC;
    for (OFFSET_T base = get_group_id(0) * share; base < n; base += get_num_groups(0) * share) {
        const OFFSET_T mine = base + (uint)get_local_id(0) * VEC;
        if (n - base >= share) {
            TV raw[HELD];
            T before[HELD];
            UNROLL
            for (uint h = 0; h < HELD; h++) {
                const OFFSET_T i = mine + h * WG * VEC;
                raw[h] = load_vec(x + i);
                before[h] = x[max(i, (OFFSET_T)1) - 1];
            }
            UNROLL
            for (uint h = 0; h < HELD; h++) {
                const OFFSET_T i = mine + h * WG * VEC;
                A a[VEC];
                T run_out[VEC];
                unpack(raw[h], a);
                A last = to_acc(before[h]);
                UNROLL
                for (uint j = 0; j < VEC; j++) {
                    run_out[j] = narrow_acc(COMBINE(a[j], last));
                    last = a[j];
                }
                if (i == 0) {
                    run_out[0] = x[0];
                }
#ifdef ALIGNED
                *(__global TV*)(out + i) = VLOAD(0, run_out);
#else
                VSTORE(VLOAD(0, run_out), 0, out + i);
#endif
            }
        } else {
            for (OFFSET_T i = base + (uint)get_local_id(0); i < n; i += WG) {
                if (i == 0) {
                    out[0] = x[0];
                } else {
                    store_acc(out + i, COMBINE(to_acc(x[i]), to_acc(x[i - 1])));
                }
            }
        }
    }
#endif
}
