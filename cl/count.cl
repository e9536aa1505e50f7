// Count: count = the number of i with ((x[i] ^ key) & mask) != 0, with elements as bits.
//
// Every counting operation has this form. For non-zero elements key is 0; for floats mask leaves out the sign. The
// number of elements equal to a value is n minus a count.
//
// Bytes: reads n elements once; writes one count for each work-group.
//
//     count_runs: for each run of contiguous elements, by one work-group:
//         each work-item counts its elements that differ; GPU: four 16-byte vectors in flight
//         counts[g] = the sum over the work-group
//         ONE_PASS: the last work-group stores the answer (a last-block reduction)
//     count_last: one work-group adds up counts, and stores the answer
#include "lib/compiler.cl"
#include "lib/subgroup.cl"
#include "lib/ended.cl"

#ifndef BYTES
#define BYTES 4
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

// Returns how many elements of v are not 0.
static inline uint non_zero(uint4 v)
{
    if (BYTES <= 2) {
        // The addition carries into the high bit of an element if any of its lower bits is set. `| v` keeps a high bit
        // that was set before.
        const uint high = BYTES == 1 ? 0x80808080u : 0x80008000u;
        v = (((v & ~high) + ~high) | v) & high;
        return popcount(v.x) + popcount(v.y) + popcount(v.z) + popcount(v.w);
    }
    if (BYTES == 4) {
        return (v.x != 0) + (v.y != 0) + (v.z != 0) + (v.w != 0);
    }
    return ((v.x | v.y) != 0) + ((v.z | v.w) != 0);
}

// Returns how many of the work-item's elements in x[first .. end) differ from `key` in the bits of `mask`. The
// work-item takes vectors, WG apart.
static inline OFFSET_T count_vectors(
    __global const T* x, OFFSET_T first, OFFSET_T end, const ulong key, const ulong mask)
{
    const uint4 k = as_uint4((ulong2)(key)), m = as_uint4((ulong2)(mask));
    OFFSET_T i = first + get_local_id(0) * VEC, count = 0;
    // Four vectors in flight.
    for (; i < end && end - i >= (3 * WG + 1) * VEC; i += 4 * WG * VEC) {
        const uint4 a = load_words(x + i), b = load_words(x + i + WG * VEC);
        const uint4 c = load_words(x + i + 2 * WG * VEC), d = load_words(x + i + 3 * WG * VEC);
        count += non_zero((a ^ k) & m) + non_zero((b ^ k) & m) + non_zero((c ^ k) & m) + non_zero((d ^ k) & m);
    }
    ROLLED
    for (; i < end && end - i >= VEC; i += WG * VEC) {
        count += non_zero((load_words(x + i) ^ k) & m);
    }
    ROLLED
    for (; i < end; i++) {
        count += ((x[i] ^ (T)key) & (T)mask) != 0;
    }
    return count;
}

// The same for a contiguous share of the work-item, in a loop that the compilers of CPU drivers vectorise.
static inline OFFSET_T count_share(
    __global const T* x, OFFSET_T first, OFFSET_T end, OFFSET_T share, const ulong key, const ulong mask)
{
    const OFFSET_T start = first + get_local_id(0) * share;
    const OFFSET_T stop = start < end ? start + min(share, end - start) : start;
    OFFSET_T count = 0;
    for (OFFSET_T i = start; i < stop; i++) {
        count += ((x[i] ^ (T)key) & (T)mask) != 0;
    }
    return count;
}

// Returns the sum over the work-group, valid in work-item 0. All WG work-items call it, in uniform flow.
static inline ulong group_sum(ulong x, __local ulong* parts)
{
    const uint item = get_local_id(0);
    parts[item] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    ROLLED
    for (uint d = WG / 2; d > 0; d /= 2) {
        if (item < d) {
            parts[item] += parts[item + d];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return parts[0];
}

// Stores the answer from the work-groups' counts. Answers 0 and 1 are ulong: the sum of the counts, or n minus the sum.
// Answers 2 and 3 are uchar: whether any element differs, or whether all do. All WG work-items call it, in uniform
// flow.
static inline void store_answer(
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

// The parameters of a last-block reduction. Without ONE_PASS there are none, and ENDING_ARGS has constants.
#ifdef ONE_PASS
#define ENDING_PARAMS                                                                                                  \
    , const uint ends, const uint answer, __global void *result, const ulong result_offset ENDED_PARAM
#define ENDING_ARGS ends, answer, result, result_offset, ended
#else
#define ONE_PASS 0
#define ENDING_PARAMS
#define ENDING_ARGS 0, 0, 0, 0, 0
#endif

// If `ends` is not 0, the work-group that finishes last stores the answer.
static inline void finish(
    __global const ulong* counts, const ulong n, const uint ends, const uint answer, __global void* result,
    const ulong result_offset, volatile __global uint* ended, __local ulong* parts, __local uint* last)
{
    if (ends && ends_last(ended, get_num_groups(0), last)) {
        store_answer(counts, get_num_groups(0), n, answer, result, result_offset, parts);
    }
}

// Work-group g takes `run` contiguous elements, a multiple of WG x VEC; g is numbered over all launches of a call. The
// 8 bytes of `key`, and those of `mask`, repeat the bytes for one element.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void count_runs(
    __global const T* restrict in_base, const ulong in_offset, const OFFSET_T n, const OFFSET_T run, const ulong key,
    const ulong mask, __global ulong* counts ENDING_PARAMS)
{
    __local ulong parts[WG];
    __local uint last[1];
    __global const T* x = in_base + in_offset;
    const OFFSET_T group = get_global_offset(0) / WG + get_group_id(0);
    const OFFSET_T first = group * run, end = n - first > run ? first + run : n;
    const OFFSET_T count =
        WG >= 32 ? count_vectors(x, first, end, key, mask) : count_share(x, first, end, run / WG, key, mask);
    const ulong sum = group_sum(count, parts);
    if (get_local_id(0) == 0) {
        counts[group] = sum;
    }
    if (ONE_PASS) {
        finish(counts, n, ENDING_ARGS, parts, last);
    }
}

// One work-group.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void count_last(
    __global const ulong* counts, const uint groups, const ulong n, const uint answer, __global void* out,
    const ulong out_offset)
{
    __local ulong parts[WG];
    store_answer(counts, groups, n, answer, out, out_offset, parts);
}
