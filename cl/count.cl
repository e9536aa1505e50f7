// Counting: how many elements differ from a key in the bits of a mask.
//
// All that is counted comes down to that. Non-zero integers differ from 0 in some bit, floats in some bit other than the
// sign; what equals a value is the rest of what differs from it. So an element is its bits, and only its size counts.
//
// Bytes: reads n elements once, writes a count a group.
#ifdef ONE_PASS
#include "lib/subgroup.cl"
#include "lib/ended.cl"
#endif

#ifndef BYTES
#define BYTES 4
#endif
#ifndef WG
#define WG 256
#endif
#ifndef OFFSET_T
#define OFFSET_T uint
#endif

#define VEC (16 / BYTES)
#if BYTES == 1
#define T uchar
#define VLOAD vload16
#elif BYTES == 2
#define T ushort
#define VLOAD vload8
#elif BYTES == 4
#define T uint
#define VLOAD vload4
#else
#define T ulong
#define VLOAD vload2
#endif

static inline uint4 load_words(__global const T* p)
{
#ifdef ALIGNED
    return *(__global const uint4*)p;
#else
    return as_uint4(VLOAD(0, p));
#endif
}

// The elements in v that are not 0.
static inline uint non_zero(uint4 v)
{
#if BYTES <= 2
    // An element's high bit is set by a carry out of its other bits, or is set already.
    const uint high = BYTES == 1 ? 0x80808080u : 0x80008000u;
    v = (((v & ~high) + ~high) | v) & high;
    return popcount(v.x) + popcount(v.y) + popcount(v.z) + popcount(v.w);
#elif BYTES == 4
    return (v.x != 0) + (v.y != 0) + (v.z != 0) + (v.w != 0);
#else
    return ((v.x | v.y) != 0) + ((v.z | v.w) != 0);
#endif
}

// The sum over the work-group, valid in item 0. All WG items call it, in uniform flow.
static inline ulong group_sum(ulong x, __local ulong* parts)
{
    const uint item = get_local_id(0);
    parts[item] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = WG / 2; d > 0; d /= 2) {
        if (item < d) {
            parts[item] += parts[item + d];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return parts[0];
}

// The answer from the `groups` counts of elements that differ. ANSWER 0: their sum, 1: the rest of n, as ulong; 2: whether there
// are any, 3: whether all do, as uchar. All WG items call it, in uniform flow.
static inline void give_answer(
    __global const ulong* counts, const uint groups, const ulong n, const uint answer, __global void* out,
    const ulong out_offset, __local ulong* parts)
{
    ulong sum = 0;
    for (uint i = get_local_id(0); i < groups; i += WG) {
        sum += counts[i];
    }
    sum = group_sum(sum, parts);
    if (get_local_id(0) == 0) {
        if (answer < 2) {
            ((__global ulong*)out)[out_offset] = answer == 0 ? sum : n - sum;
        } else {
            ((__global uchar*)out)[out_offset] = answer == 2 ? sum != 0 : sum == n;
        }
    }
}

#ifdef ONE_PASS
#define ENDING_PARAMS                                                                                                  \
    , const uint ends, const uint answer, __global void *result, const ulong result_offset ENDED_PARAM
#else
#define ENDING_PARAMS
#endif

// Group g takes a contiguous run of `run` elements, a multiple of WG x VEC. `key` and `mask` hold theirs in every
// element of their 8 bytes. With ONE_PASS, where `ends` is not 0, the group that ends last gives the answer.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void count_runs(
    __global const T* restrict in_base, const ulong in_offset, const OFFSET_T n, const OFFSET_T run, const ulong key,
    const ulong mask, __global ulong* counts ENDING_PARAMS)
{
    __local ulong parts[WG];
    __global const T* in = in_base + in_offset;
    const OFFSET_T first = get_group_id(0) * run, end = n - first > run ? first + run : n;
    OFFSET_T count = 0;
#if WG >= 32
    const uint4 k = as_uint4((ulong2)(key)), m = as_uint4((ulong2)(mask));
    OFFSET_T i = first + get_local_id(0) * VEC;
    // Four vectors in flight.
    for (; i < end && end - i >= (3 * WG + 1) * VEC; i += 4 * WG * VEC) {
        const uint4 a = load_words(in + i), b = load_words(in + i + WG * VEC);
        const uint4 c = load_words(in + i + 2 * WG * VEC), d = load_words(in + i + 3 * WG * VEC);
        count += non_zero((a ^ k) & m) + non_zero((b ^ k) & m) + non_zero((c ^ k) & m) + non_zero((d ^ k) & m);
    }
    for (; i < end && end - i >= VEC; i += WG * VEC) {
        count += non_zero((load_words(in + i) ^ k) & m);
    }
    for (; i < end; i++) {
        count += ((in[i] ^ (T)key) & (T)mask) != 0;
    }
#else
    // Contiguous elements, for the compilers of CPU drivers to vectorise.
    const OFFSET_T share = run / WG, start = first + get_local_id(0) * share;
    const OFFSET_T stop = start < end ? start + min(share, end - start) : start;
    for (OFFSET_T i = start; i < stop; i++) {
        count += ((in[i] ^ (T)key) & (T)mask) != 0;
    }
#endif
    const ulong sum = group_sum(count, parts);
    if (get_local_id(0) == 0) {
        counts[get_group_id(0)] = sum;
    }
#ifdef ONE_PASS
    __local uint last[1];
    if (ends && ends_last(ended, get_num_groups(0), last)) {
        give_answer(counts, get_num_groups(0), n, answer, result, result_offset, parts);
    }
#endif
}

// One group.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void count_last(
    __global const ulong* counts, const uint groups, const ulong n, const uint answer, __global void* out,
    const ulong out_offset)
{
    __local ulong parts[WG];
    give_answer(counts, groups, n, answer, out, out_offset, parts);
}
