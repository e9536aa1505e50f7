// Kernels that test what a device and its driver do right.
//
// Each kernel writes words that the host can also compute. With -DTEST_SUBGROUPS, -DTEST_FP64, -DTEST_FP16,
// -DTEST_ATOMIC64 or -DLOCAL_BYTES=n the program has only those tests, so that a test that does not build spoils no
// other test. Without these macros, the program has the sub-group tests and the tests of what every device must have.
//
// Work-groups are one-dimensional, of WG work-items. Every polling loop ends after `spins` polls. The other sub-group
// tests run only if sg_width was right: with wrong lanes they would access memory out of bounds.
#include "lib/subgroup.cl"

#if !defined(TEST_SUBGROUPS) && !defined(TEST_FP64) && !defined(TEST_FP16) && !defined(TEST_ATOMIC64) && \
    !defined(LOCAL_BYTES)
#define TEST_BASE
#define TEST_SUBGROUPS
#endif

#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1)))

// The finaliser of MurmurHash3: distinct inputs give distinct outputs.
static inline uint mix(uint h)
{
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

#ifdef TEST_SUBGROUPS

// out[4g..] for global id g, and i = g % WG: the width w, lane i % w, sub-group i / w, number of sub-groups WG / w.
KERNEL SG_KERNEL void sg_width(__global uint* out)
{
    __global uint* o = out + 4 * get_global_id(0);
    o[0] = sg_size();
    o[1] = sg_lane();
    o[2] = sg_id();
    o[3] = sg_count();
}

// For k < w. Work-item j of the work-group has the value v(j) = mix(j). For work-item i, with base = i - lane:
//
//     out[4i]        v(base + (lane + k) % w)
//     out[4i + 1]    v(base + (lane ^ k)); the host skips it where lane ^ k >= w
//     out[4i + 2]    v(i - k), or v(i) where lane < k
//     out[4i + 3]    v(i + k), or v(i) where lane + k >= w
//
// `wide` has the same with v(j) = mix(j) << 32 | j.
KERNEL SG_KERNEL void sg_shuffles(__global uint* out, __global ulong* wide, uint k)
{
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    const uint i = get_local_id(0), v = mix(i), to = (sg_lane() + k) % sg_size();
    const ulong v64 = (ulong)v << 32 | i;
    out[4 * i] = sg_shuffle_u32(v, to, sg_scratch);
    out[4 * i + 1] = sg_shuffle_xor_u32(v, k, sg_scratch);
    out[4 * i + 2] = sg_shuffle_up_u32(v, k, sg_scratch);
    out[4 * i + 3] = sg_shuffle_down_u32(v, k, sg_scratch);
    wide[4 * i] = sg_shuffle_u64(v64, to, sg_scratch);
    wide[4 * i + 1] = sg_shuffle_xor_u64(v64, k, sg_scratch);
    wide[4 * i + 2] = sg_shuffle_up_u64(v64, k, sg_scratch);
    wide[4 * i + 3] = sg_shuffle_down_u64(v64, k, sg_scratch);
}

// Sub-group g votes with m, the low w bits of rotate_left(mask, g).
// out[4i..]: m, m != 0, m == all ones, the bits of m below the lane. w <= 64.
KERNEL SG_KERNEL void sg_votes(__global ulong* out, ulong mask)
{
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    __global ulong* o = out + 4 * get_local_id(0);
    const int pred = (int)(rotate(mask, (ulong)sg_id()) >> sg_lane() & 1);
    o[0] = sg_ballot(pred, sg_scratch);
    o[1] = sg_any(pred, sg_scratch) != 0;
    o[2] = sg_all(pred, sg_scratch) != 0;
    o[3] = sg_rank(o[0]);
}

// out[i]: the lanes of the work-item's sub-group whose `in` has the same low `bits` bits as the work-item's. w <= 64.
KERNEL SG_KERNEL void sg_matches(__global const uint* in, __global ulong* out, uint bits)
{
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    out[get_local_id(0)] = sg_match_u32(in[get_local_id(0)], bits, sg_scratch);
}

// Exchanges through local memory between the work-items of one sub-group. out[i]: v(base + (lane + 1) % w), v as above.
KERNEL SG_KERNEL void sg_barriers(__global uint* out)
{
    __local uint word[WG];
    const uint i = get_local_id(0), lane = sg_lane(), w = sg_size();
    word[i] = mix(i);
    sg_barrier();
    out[i] = word[i - lane + (lane + 1) % w];
}

#endif

// in: rows of a, b, c. out[3i..] for row i: a + b, a * b, a * b + c with two roundings. Some rows have subnormals.
#pragma OPENCL FP_CONTRACT OFF
#define ARITHMETIC(NAME, T)                                                                                            \
    __kernel void NAME(__global const T* in, __global T* out)                                                          \
    {                                                                                                                  \
        const uint i = 3 * (uint)get_global_id(0);                                                                     \
        const T a = in[i], b = in[i + 1], c = in[i + 2], product = a * b;                                              \
        out[i] = a + b;                                                                                                \
        out[i + 1] = product;                                                                                          \
        out[i + 2] = product + c;                                                                                      \
    }
#ifdef TEST_BASE
ARITHMETIC(arithmetic_f32, float)
#endif
#ifdef TEST_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
ARITHMETIC(arithmetic_f64, double)
#endif
#ifdef TEST_FP16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
ARITHMETIC(arithmetic_f16, half)
#endif

// Eight words that many work-items update with v. They are the count of updates, the sum, maximum, minimum, or, and,
// xor, and the count again by compare and exchange.
#define UPDATE(F, p, v)                                                                                                \
    {                                                                                                                  \
        F##_inc(p);                                                                                                    \
        F##_add(p + 1, v);                                                                                             \
        F##_max(p + 2, v);                                                                                             \
        F##_min(p + 3, v);                                                                                             \
        F##_or(p + 4, v);                                                                                              \
        F##_and(p + 5, v);                                                                                             \
        F##_xor(p + 6, v);                                                                                             \
        for (was = 0; (saw = F##_cmpxchg(p + 7, was, was + 1)) != was; was = saw) {}                                   \
    }
// `out` starts as 8 words for all work-groups and 8 for each: 0, 0, 0, ~0, 0, ~0, 0, 0. The first 8 are updated in
// global memory, those of a work-group in local memory, with v = VALUE(global id + 1).
#define ATOMICS(NAME, T, F, VALUE)                                                                                     \
    KERNEL void NAME(volatile __global T* out)                                                                         \
    {                                                                                                                  \
        volatile __local T group[8];                                                                                   \
        const uint l = get_local_id(0);                                                                                \
        volatile __global T* own = out + 8 * (1 + get_group_id(0));                                                    \
        const T v = VALUE((uint)get_global_id(0) + 1);                                                                 \
        T was, saw;                                                                                                    \
        for (uint i = l; i < 8; i += WG) group[i] = own[i];                                                            \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        UPDATE(F, group, v)                                                                                            \
        UPDATE(F, out, v)                                                                                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        for (uint i = l; i < 8; i += WG) own[i] = group[i];                                                            \
    }
#ifdef TEST_BASE
ATOMICS(atomics32, uint, atomic, mix)
#endif
#ifdef TEST_ATOMIC64
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#define MIX64(i) ((ulong)mix(i) << 32 | mix(~(i)))
ATOMICS(atomics64, ulong, atom, MIX64)
#endif

#ifdef LOCAL_BYTES
// Fills LOCAL_BYTES of local memory, which other work-items read back. Adds to:
//
//     out[0]    the number of words that came back wrong; expected: 0
//     out[1]    the number of words compared; expected: LOCAL_BYTES / 4 for each work-group
KERNEL void local_memory(__global uint* out, uint seed)
{
    __local uint word[LOCAL_BYTES / 4];
    const uint n = LOCAL_BYTES / 4, key = mix(seed + (uint)get_group_id(0));
    uint wrong = 0, compared = 0;
    for (uint i = get_local_id(0); i < n; i += WG) word[i] = mix(i ^ key);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < n; i += WG) {
        wrong += word[n - 1 - i] != mix((n - 1 - i) ^ key);
        compared++;
    }
    atomic_add(out, wrong);
    atomic_add(out + 1, compared);
}
#endif

#ifdef TEST_BASE

// x = in[i]; n times x = x * 1664525 + 1013904223. out[i] = x. The test is whether more than 65,535 rounds work.
__kernel void long_loop(__global const uint* in, __global uint* out, uint n)
{
    uint x = in[get_global_id(0)];
    for (uint i = 0; i < n; i++) x = x * 1664525u + 1013904223u;
    out[get_global_id(0)] = x;
}

#define PUBLISHED 0x80000000u
#define BROKEN 0xc0000000u

// Progress between work-groups, in the look-back pattern with flag and value in one word. Each work-group takes a
// number t from the atomic counter `ticket`. It polls until work-group t - 1 has published, then publishes that value
// plus one. Every eighth work-group is slow, so that others do wait. A work-group that polls in vain publishes BROKEN,
// and so does each later one that reads BROKEN. All memory is 0 before. Results:
//
//     status[t]    expected: PUBLISHED | (t + 1)
//     out[0]       the number of work-groups that polled in vain; expected: 0
//     out[1]       the most polls of a work-group
KERNEL void ticket_chain(__global uint* ticket, volatile __global uint* status, __global uint* out, uint spins)
{
    if (get_local_id(0) == 0) {
        const uint t = atomic_inc(ticket);
        uint before = t == 0 ? PUBLISHED : 0, turns = 0;
        while (before == 0 && turns < spins) {
            before = load_relaxed_u32(status + t - 1);
            turns++;
        }
        if (before == 0) atomic_inc(out);
        atomic_max(out + 1, turns);

        uint delay = before | 1;
        for (uint i = 0; i < 1000 && t % 8 == 0; i++) delay = mix(delay);
        // The condition always holds, since mix maps only 0 to 0. It keeps the compiler from removing the loop.
        if (delay != 0) store_relaxed_u32(status + t, before == 0 || before == BROKEN ? BROKEN : before + 1);
    }
}

// Fences between work-groups. Work-group t, by its number from `ticket`, first reads the data of work-group t - 1, so
// that a stale copy may lie in its cache. It stores WG words as ordinary data, and publishes a flag by the protocol of
// lib/subgroup.cl. Then it polls the flag of t - 1, and compares the data of t - 1. All memory is 0 before the first
// run, and `ticket` and `out` are 0 before each run; `epoch` is above 0 and new each time. Results:
//
//     out[0]    the number of words that differ; expected: 0
//     out[1]    the number of work-groups that polled in vain; expected: 0
//     out[2]    the number of words compared; expected: WG * (work-groups - 1)
//     out[3]    the number of words that were already there at the first read: the more there are, the less is tested
KERNEL void fence_chain(__global uint* ticket, __global uint* data, volatile __global uint* flag, __global uint* out,
                        uint epoch, uint spins)
{
    __local uint taken[1], seen[1];
    const uint l = get_local_id(0);
    if (l == 0) *taken = atomic_inc(ticket);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint t = *taken, own = t * WG + l, other = (t - 1) * WG + (l + 1) % WG;
    const uint early = t > 0 && data[other] == mix(other) + epoch;

    data[own] = mix(own) + epoch;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (l == 0) {
        fence_device();
        store_relaxed_u32(flag + t, epoch);

        // Once a work-group has polled in vain, the others poll only once.
        const uint limit = load_relaxed_u32(out + 1) == 0 ? spins : 1;
        uint word = 0, turns = 0;
        while (t > 0 && word != epoch && turns < limit) {
            word = load_relaxed_u32(flag + t - 1);
            turns++;
        }
        fence_device();
        if (t > 0 && word != epoch) atomic_inc(out + 1);
        *seen = t > 0 && word == epoch;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (*seen) {
        if (data[other] != mix(other) + epoch) atomic_inc(out);
        atomic_inc(out + 2);
    }
    if (early) atomic_inc(out + 3);
}

#endif
