// Adjacent: out[0] = x[0]; out[i] = COMBINE(x[i], x[i - 1]) for i > 0. COMBINE is the difference, or the user-defined
// operator.
//
// Bytes: reads n elements once, since the element before a 16-byte vector is in the cache; writes n.
//
//     CPU: each work-group, one work-item, combines `run` contiguous elements
//     GPU: for each share of WG * HELD vectors, by one work-group:
//         load HELD vectors, and the element before each
//         combine each element with the one before it
//         store the vectors
#include "lib/types.cl"

#ifndef WG
#define WG 256
#endif
#ifndef T_UNSIGNED
#define T_UNSIGNED T
#endif

// The user-defined operator precedes the file. Integers are subtracted as unsigned integers, which wrap. Those of 8 and
// 16 bits are promoted to int, which holds every difference.
#if defined(OPERATOR)
#define COMBINE(a, b) op_combine(a, b)
#elif defined(T_FLOAT)
#define COMBINE(a, b) ((a) - (b))
#else
#define COMBINE(a, b) ((T)((T_UNSIGNED)(a) - (T_UNSIGNED)(b)))
#endif
// Vectors that a work-item has in flight; they are in registers if the loops over them are unrolled.
#define HELD 4
#define UNROLL _Pragma("unroll")
// Elements that a work-group combines together.
#define SHARE (WG * HELD * VEC)

// Stores the results of x[first .. end) by one work-item: contiguous elements, so that the compilers of CPU drivers
// vectorise.
static inline void combine_run(__global const T* x, OFFSET_T first, OFFSET_T end, __global T* out)
{
    if (first == 0) {
        out[0] = x[0];
    }
    for (OFFSET_T i = max(first, (OFFSET_T)1); i < end; i++) {
        store_acc(out + i, COMBINE(to_acc(x[i]), to_acc(x[i - 1])));
    }
}

// Stores the work-item's results of the last share, which is not full: from index `first` on, WG apart.
static inline void combine_rest(__global const T* x, OFFSET_T first, OFFSET_T n, __global T* out)
{
    for (OFFSET_T i = first; i < n; i += WG) {
        if (i == 0) {
            out[0] = x[0];
        } else {
            store_acc(out + i, COMBINE(to_acc(x[i]), to_acc(x[i - 1])));
        }
    }
}

static inline void store_vec(__global T* to, TV v)
{
#ifdef ALIGNED
    *(__global TV*)to = v;
#else
    VSTORE(v, 0, to);
#endif
}

// Stores the results of a vector at index `i`; `before` is the element before it.
static inline void combine_vector(__global const T* x, OFFSET_T i, TV raw, T before, __global T* out)
{
    A a[VEC], last = to_acc(before);
    T result[VEC];
    unpack(raw, a);
    UNROLL
    for (uint j = 0; j < VEC; j++) {
        result[j] = narrow_acc(COMBINE(a[j], last));
        last = a[j];
    }
    if (i == 0) {
        result[0] = x[0];
    }
    store_vec(out + i, VLOAD(0, result));
}

// Stores the results of HELD vectors, from index `first` on, WG vectors apart.
static inline void combine_vectors(__global const T* x, OFFSET_T first, __global T* out)
{
    TV raw[HELD];
    T before[HELD];
    UNROLL
    for (uint h = 0; h < HELD; h++) {
        const OFFSET_T i = first + h * WG * VEC;
        raw[h] = load_vec(x + i);
        before[h] = x[max(i, (OFFSET_T)1) - 1];
    }
    UNROLL
    for (uint h = 0; h < HELD; h++) {
        combine_vector(x, first + h * WG * VEC, raw[h], before[h], out);
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void adjacent(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global T* out_base, const ulong out_offset,
    const OFFSET_T run)
{
    __global const T* x = in_base + in_offset;
    __global T* out = out_base + out_offset;
    if (WG == 1) {
        const OFFSET_T first = get_group_id(0) * run;
        combine_run(x, first, first + min(run, n - first), out);
        return;
    }
    const uint item = get_local_id(0);
    for (OFFSET_T base = get_group_id(0) * SHARE; base < n; base += get_num_groups(0) * SHARE) {
        if (n - base >= SHARE) {
            combine_vectors(x, base + item * VEC, out);
        } else {
            combine_rest(x, base + item, n, out);
        }
    }
}
