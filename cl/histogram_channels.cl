// Histograms of the channels of interleaved pixels, in one pass: pixel i has CHANNELS samples, from in[i * CHANNELS] on,
// of which the first ACTIVE are counted, each in bins of its own.
//
// A group has a table for each channel, laid out as in histogram.cl, whose merge adds the tables of a channel up: those of
// channel c lie together, after those of the channels before it. One launch takes at most 2^31 samples.
//
//     tables[c][g] = the samples of group g in channel c, counted in local memory
//     tables[c][g mod count] += them, with atomics, if GLOBAL_TABLES; the tables are zeroed before
//
// Built for T and MAP of lib/bins.cl; MAP_EDGES takes one channel. VECTOR: pixels are aligned to their size, which is a
// vector's. Bytes: reads the pixels once.
#include "lib/bins.cl"

#ifndef WG
#define WG 256
#endif
#ifndef CHANNELS
#define CHANNELS 3
#endif
#ifndef ACTIVE
#define ACTIVE 3
#endif

// Four of each parameter, one a channel.
#if MAP == MAP_EDGES
#define CHANNEL_PARAMS MAP_PARAMS
#define SLOT_IN(x, c) slot_of(x, bins4.c MAP_ARGS)
#elif MAP == MAP_IDS
#define CHANNEL_PARAMS
#define SLOT_IN(x, c) slot_of(x, bins4.c)
#elif MAP == MAP_INTEGERS
#define CHANNEL_PARAMS \
    , const ulong4 lower, const ulong4 extent, const ulong4 reciprocal, const uint4 shift, const uint4 closed
#define SLOT_IN(x, c) slot_of(x, bins4.c, lower.c, extent.c, reciprocal.c, shift.c, closed.c)
#else
#define A4 CAT(A, 4)
#define CHANNEL_PARAMS \
    , const A4 lower, const A4 upper, const A4 width, const A4 scale, const A4 slack, const uint4 closed
#define SLOT_IN(x, c) slot_of(x, bins4.c, lower.c, upper.c, width.c, scale.c, slack.c, closed.c)
#endif

#if defined(VECTOR) && WG > 1
#define PIXEL CAT(T, CHANNELS)
#define SAMPLE(p, c, k) p.c
#else
#define SAMPLE(p, c, k) p[k]
#endif

#if ACTIVE == 1
#define EACH_CHANNEL(DO, p) DO(p, s0, 0)
#elif ACTIVE == 2
#define EACH_CHANNEL(DO, p) DO(p, s0, 0) DO(p, s1, 1)
#elif ACTIVE == 3
#define EACH_CHANNEL(DO, p) DO(p, s0, 0) DO(p, s1, 1) DO(p, s2, 2)
#else
#define EACH_CHANNEL(DO, p) DO(p, s0, 0) DO(p, s1, 1) DO(p, s2, 2) DO(p, s3, 3)
#endif

// Words of a group's tables in local memory.
#ifndef LOCAL_WORDS
#define LOCAL_WORDS 4096
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_channels(
    __global const T* restrict in_base, const ulong in_offset, const uint pixels, const uint4 bins4,
    volatile __global uint* restrict tables, const uint table_count, const uint replica_bits CHANNEL_PARAMS)
{
    __global const T* in = in_base + in_offset;
    // Where each channel's slots begin.
    const uint4 first = (uint4)(0, bins4.s0 + 3, bins4.s0 + bins4.s1 + 6, bins4.s0 + bins4.s1 + bins4.s2 + 9);
#if MAP == MAP_EDGES
#define bins bins4.s0
    MAP_SETUP(get_local_id(0), WG)
#undef bins
#endif
#ifdef GLOBAL_TABLES
    const ulong g = get_group_id(0) % table_count;
#define ADD(slot, c) atomic_inc(tables + ((ulong)first.c * table_count + g * (bins4.c + 3) + (slot)));
#else
    __local uint table[LOCAL_WORDS];
    const uint item = get_local_id(0), replicas = 1u << replica_bits;
#define LEN(p, c, k) slots += bins4.c + 3;
    uint slots = 0;
    EACH_CHANNEL(LEN, 0)
    for (uint i = item; i < slots << replica_bits; i += WG) {
        table[i] = 0;
    }
#if WG == 1
#define ADD(slot, c) table[first.c + (slot)]++;
#else
    const uint replica = item & (replicas - 1);
#define ADD(slot, c) atomic_inc(table + ((first.c + (slot)) << replica_bits) + replica);
#endif
#endif
    barrier(CLK_LOCAL_MEM_FENCE);

#define COUNT(p, c, k) ADD(SLOT_IN(SAMPLE(p, c, k), c), c)
#define TAKE(i)                                                                                                        \
    {                                                                                                                  \
        __global const T* pixel = in + (i) * CHANNELS;                                                                 \
        EACH_CHANNEL(COUNT, pixel)                                                                                     \
    }
#if WG == 1
    const uint run = pixels / get_num_groups(0) + 1, begin = min(pixels, (uint)get_group_id(0) * run);
    const uint end = begin + min(run, pixels - begin);
    for (uint i = begin; i < end; i++) {
        TAKE(i)
    }
#else
    const uint step = get_num_groups(0) * WG;
    uint i = get_global_id(0);
#ifdef VECTOR
    __global const PIXEL* all = (__global const PIXEL*)in;
    for (; i < pixels && pixels - i > 3 * step; i += 4 * step) {
        const PIXEL a = all[i], b = all[i + step], c = all[i + 2 * step], d = all[i + 3 * step];
        EACH_CHANNEL(COUNT, a)
        EACH_CHANNEL(COUNT, b)
        EACH_CHANNEL(COUNT, c)
        EACH_CHANNEL(COUNT, d)
    }
    for (; i < pixels; i += step) {
        const PIXEL a = all[i];
        EACH_CHANNEL(COUNT, a)
    }
#else
    for (; i < pixels && pixels - i > 3 * step; i += 4 * step) {
        T held[4][ACTIVE];
#pragma unroll
        for (uint k = 0; k < 4; k++) {
#pragma unroll
            for (uint c = 0; c < ACTIVE; c++) {
                held[k][c] = in[(i + k * step) * CHANNELS + c];
            }
        }
        EACH_CHANNEL(COUNT, held[0])
        EACH_CHANNEL(COUNT, held[1])
        EACH_CHANNEL(COUNT, held[2])
        EACH_CHANNEL(COUNT, held[3])
    }
    for (; i < pixels; i += step) {
        TAKE(i)
    }
#endif
#endif

#ifndef GLOBAL_TABLES
    barrier(CLK_LOCAL_MEM_FENCE);
#define STORE(p, c, k)                                                                                                 \
    {                                                                                                                  \
        volatile __global uint* out = tables + (ulong)first.c * table_count + (ulong)get_group_id(0) * (bins4.c + 3);  \
        for (uint slot = item; slot < bins4.c + 3; slot += WG) {                                                       \
            uint sum = 0;                                                                                              \
            for (uint r = 0; r < replicas; r++) {                                                                      \
                sum += table[((first.c + slot) << replica_bits) + ((r + slot) & (replicas - 1))];                      \
            }                                                                                                          \
            out[slot] = sum;                                                                                           \
        }                                                                                                              \
    }
    EACH_CHANNEL(STORE, 0)
#endif
}
