// Counts samples into tables (histogram.cl). A launch calls count_sample once for each sample and each range of slots.
#include "lib/bins.cl"
#include "lib/length.cl"

// The number of samples before the first 16-byte boundary: `head`, or n if there are fewer.
#ifdef LENGTH_T
#define HEAD min(head, n)
#else
#define HEAD head
#endif

#ifdef GLOBAL_TABLES

// With PRIVATE each work-group has one work-item and a table of its own.
#ifndef PRIVATE
#define PRIVATE 0
#endif

// A run of samples with slot `held`, whose count is added at once. Samples outside the bins are counted in local
// memory, since atomics on only three words of global memory would collide.
typedef struct {
    volatile __global uint* table;
    __local uint* outside;
    uint held, length;
} Counter;

INLINED void add_global(volatile __global uint* table, const uint slot, const uint count)
{
    if (PRIVATE) {
        table[slot] += count;
    } else {
        atomic_add(table + slot, count);
    }
}

INLINED void flush_run(const Counter* counter)
{
    if (counter->length != 0) {
        add_global(counter->table, counter->held, counter->length);
    }
}

INLINED void count_sample(Counter* counter, const IN x, const uint bins SLOT_PARAMS)
{
    const uint slot = SLOT(x);
    if (slot != counter->held) {
        flush_run(counter);
        counter->length = 0;
        counter->held = slot;
    }
    if (slot < bins) {
        counter->length++;
    } else {
        atomic_inc(counter->outside + (slot - bins));
    }
}

#else

// Words of a work-group's table in local memory.
#ifndef LOCAL_WORDS
#define LOCAL_WORDS 1024
// The table has 2^REPLICA_BITS replicas; those of a slot are neighbours, so that 32 of them are in different banks.
#define REPLICA_BITS 0
#endif
#define REPLICAS (1u << REPLICA_BITS)
// With RANGES there is more than one range of slots.
#ifndef RANGES
#define RANGES 0
#endif
// With BYTES, samples of one byte are counted by value; at the end each value's count is added to its slot. There is
// one range.
#ifndef BYTES
#define BYTES 0
#endif
#define VALUES 256

// The work-item's replica, and the range of slots.
typedef struct {
    __local uint* table;
    uint first, len;
} Counter;

INLINED void add_local(const Counter* counter, const uint row)
{
    if (WG == 1) {
        counter->table[row]++;
    } else {
        atomic_inc(counter->table + (row << REPLICA_BITS));
    }
}

INLINED void count_sample(Counter* counter, const IN x, const uint bins SLOT_PARAMS)
{
    if (BYTES) {
        add_local(counter, (uint)(uchar)x);
    } else if (RANGES) {
        const uint slot = SLOT(x) - counter->first;
        if (slot < counter->len) {
            add_local(counter, slot);
        }
    } else {
        add_local(counter, SLOT(x));
    }
}

#endif

#include "lib/samples.cl"

INLINED void count_vector(Counter* counter, const Samples* samples, const uint bins SLOT_PARAMS)
{
#pragma unroll
    for (uint k = 0; k < VEC; k++) {
        const IN x = sample_of(samples, k);
        count_sample(counter, x, bins MAP_ARGS);
    }
}

// Counts a vector by a loop that is not unrolled: it loads one sample at a time.
INLINED void count_seldom(Counter* counter, __global const IN* samples, const uint bins SLOT_PARAMS)
{
    ROLLED
    for (uint k = 0; k < VEC; k++) {
        count_sample(counter, samples[k], bins MAP_ARGS);
    }
}

// Counts the n samples of the launch. If WG == 1, a work-item takes a contiguous run. Otherwise work-items take
// vectors, four of them in flight, and then the few samples around the vectors; `head` samples are before the first
// 16-byte boundary.
INLINED void count_samples(
    Counter* counter, __global const IN* in, const uint n, const uint head, const uint bins SLOT_PARAMS)
{
    if (WG == 1) {
        const uint run = n / get_num_groups(0) + 1, first = min(n, (uint)get_group_id(0) * run);
        const uint end = first + min(run, n - first);
        for (uint i = first; i < end; i++) {
            count_sample(counter, in[i], bins MAP_ARGS);
        }
        return;
    }
    const uint vecs = (n - head) / VEC, step = get_num_groups(0) * WG;
    __global const BODY* body = (__global const BODY*)(in + head);
    uint v = get_global_id(0);
    ROLLED
    for (; v < vecs && vecs - v > 3 * step; v += 4 * step) {
        Samples four[4];
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            four[k].all = body[v + k * step];
        }
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            count_vector(counter, &four[k], bins MAP_ARGS);
        }
    }
    ROLLED
    for (; v < vecs; v += step) {
        if (VEC == 16) {
            // For 16 samples the loop is unrolled: the build takes longer, but 16 loads one after another would cost
            // more.
            Samples samples;
            samples.all = body[v];
            count_vector(counter, &samples, bins MAP_ARGS);
        } else {
            count_seldom(counter, (__global const IN*)(body + v), bins MAP_ARGS);
        }
    }
    ROLLED
    for (uint i = get_global_id(0); i < n - vecs * VEC; i += step) {
        count_sample(counter, in[i < head ? i : i + vecs * VEC], bins MAP_ARGS);
    }
}

#ifdef GLOBAL_TABLES
#include "histogram_global.cl"
#else
#include "histogram_local.cl"
#endif
