// Histograms of the channels of interleaved pixels, in one pass: counts[c][b] = #{i : slot(in[i * CHANNELS + c]) == b}
// for c < ACTIVE.
//
// Each channel has its own bins and its own tables, laid out as in histogram.cl. The kernel histogram_merge adds up the
// tables of a channel. The tables of channel c are contiguous, after those of the channels before it. One launch takes
// at most 2^31 samples.
//
// Bytes: reads the pixels once.
//
//     tables[c][g] = the samples of work-group g in channel c, counted in local memory
//     tables[c][g mod count] += the same with atomics, if GLOBAL_TABLES; the tables are zeroed before
//
// Built for T and MAP of lib/bins.cl. With MAP_EDGES, ACTIVE is 1. VECTOR: a pixel has the size and the alignment of a
// vector.
#include "lib/bins.cl"

#ifndef WG
#define WG 256
#define CHANNELS 3
#define ACTIVE 3
#endif
// Words of a work-group's tables in local memory.
#ifndef LOCAL_WORDS
#define LOCAL_WORDS 4096
#endif

// Component c of a vector of four.
#define AT(v, c) ((c) == 0 ? (v).s0 : (c) == 1 ? (v).s1 : (c) == 2 ? (v).s2 : (v).s3)

// CHANNEL_PARAMS: the parameters of lib/bins.cl, with four components each, one for a channel. Functions that use
// SLOT_IN have CHANNEL_SLOT_PARAMS.
#if MAP == MAP_EDGES
#define CHANNEL_PARAMS MAP_PARAMS
#define CHANNEL_SLOT_PARAMS SLOT_PARAMS
#define SLOT_IN(x, c) slot_of(x, AT(bins4, c) MAP_ARGS)
#elif MAP == MAP_IDS
#define CHANNEL_PARAMS
#define CHANNEL_SLOT_PARAMS
#define SLOT_IN(x, c) slot_of(x, AT(bins4, c))
#elif MAP == MAP_INTEGERS
#define CHANNEL_PARAMS \
    , const ulong4 lower, const ulong4 extent, const ulong4 reciprocal, const uint4 shift, const uint4 closed
#define CHANNEL_SLOT_PARAMS CHANNEL_PARAMS
#define SLOT_IN(x, c) \
    slot_of(x, AT(bins4, c), AT(lower, c), AT(extent, c), AT(reciprocal, c), AT(shift, c), AT(closed, c))
#else
#define A4 CAT(A, 4)
#define CHANNEL_PARAMS \
    , const A4 lower, const A4 upper, const A4 width, const A4 scale, const A4 slack, const uint4 closed
#define CHANNEL_SLOT_PARAMS CHANNEL_PARAMS
#define SLOT_IN(x, c) \
    slot_of(x, AT(bins4, c), AT(lower, c), AT(upper, c), AT(width, c), AT(scale, c), AT(slack, c), AT(closed, c))
#endif

// A pixel, or its first ACTIVE channels.
#if defined(VECTOR) && WG > 1
typedef union {
    CAT(T, CHANNELS) all;
    T one[CHANNELS];
} Pixel;

INLINED void load_pixel(Pixel* pixel, __global const T* in, const uint i)
{
    pixel->all = ((__global const CAT(T, CHANNELS)*)in)[i];
}
#else
typedef struct {
    T one[CHANNELS];
} Pixel;

INLINED void load_pixel(Pixel* pixel, __global const T* in, const uint i)
{
#pragma unroll
    for (uint c = 0; c < ACTIVE; c++) {
        pixel->one[c] = in[i * CHANNELS + c];
    }
}
#endif

// The tables of a work-group. Channel c begins at slot AT(first, c).
#ifdef GLOBAL_TABLES

#define TABLE_WORDS 1
typedef struct {
    uint4 first;
    volatile __global uint* tables;
    uint table_count;
    ulong table;
} Tables;

INLINED void open_tables(
    Tables* tables, __local uint* table, volatile __global uint* all, const uint table_count, const uint replica_bits,
    const uint4 bins4)
{
    tables->tables = all;
    tables->table_count = table_count;
    tables->table = get_group_id(0) % table_count;
}

INLINED void count_slot(const Tables* tables, const uint c, const uint bins, const uint slot)
{
    atomic_inc(
        tables->tables + ((ulong)AT(tables->first, c) * tables->table_count + tables->table * (bins + 3) + slot));
}

INLINED void store_tables(
    const Tables* tables, __local const uint* table, volatile __global uint* all, const uint table_count,
    const uint4 bins4)
{
}

#else

#define TABLE_WORDS LOCAL_WORDS
typedef struct {
    uint4 first;
    __local uint* table; // At the work-item's replica.
    uint replica_bits;
} Tables;

INLINED void open_tables(
    Tables* tables, __local uint* table, volatile __global uint* all, const uint table_count, const uint replica_bits,
    const uint4 bins4)
{
    tables->table = table + (get_local_id(0) & ((1u << replica_bits) - 1));
    tables->replica_bits = replica_bits;
    const uint slots = AT(tables->first, ACTIVE - 1) + AT(bins4, ACTIVE - 1) + 3;
    for (uint i = get_local_id(0); i < slots << replica_bits; i += WG) {
        table[i] = 0;
    }
}

INLINED void count_slot(const Tables* tables, const uint c, const uint bins, const uint slot)
{
    if (WG == 1) {
        tables->table[AT(tables->first, c) + slot]++;
    } else {
        atomic_inc(tables->table + ((AT(tables->first, c) + slot) << tables->replica_bits));
    }
}

// Sums the replicas and writes the sums to the work-group's tables.
INLINED void store_tables(
    const Tables* tables, __local const uint* table, volatile __global uint* all, const uint table_count,
    const uint4 bins4)
{
    const uint replica_bits = tables->replica_bits, replicas = 1u << replica_bits;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint c = 0; c < ACTIVE; c++) {
        const uint first = AT(tables->first, c), slots = AT(bins4, c) + 3;
        volatile __global uint* out = all + (ulong)first * table_count + (ulong)get_group_id(0) * slots;
        for (uint slot = get_local_id(0); slot < slots; slot += WG) {
            uint sum = 0;
            for (uint r = 0; r < replicas; r++) {
                sum += table[((first + slot) << replica_bits) + ((r + slot) & (replicas - 1))];
            }
            out[slot] = sum;
        }
    }
}

#endif

INLINED void count_pixel(const Tables* tables, const Pixel* pixel, const uint4 bins4 CHANNEL_SLOT_PARAMS)
{
#pragma unroll
    for (uint c = 0; c < ACTIVE; c++) {
        count_slot(tables, c, AT(bins4, c), SLOT_IN(pixel->one[c], c));
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_channels(
    __global const T* restrict in_base, const ulong in_offset, const uint pixels, const uint4 bins4,
    volatile __global uint* restrict tables_base, const uint table_count, const uint replica_bits CHANNEL_PARAMS)
{
    __global const T* in = in_base + in_offset;
    __local uint table[TABLE_WORDS];
    const uint bins = bins4.s0;
    Tables tables;
    tables.first = (uint4)(0, bins + 3, bins + bins4.s1 + 6, bins + bins4.s1 + bins4.s2 + 9);
    MAP_SETUP(get_local_id(0), WG)
    open_tables(&tables, table, tables_base, table_count, replica_bits, bins4);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (WG == 1) {
        const uint run = pixels / get_num_groups(0) + 1, begin = min(pixels, (uint)get_group_id(0) * run);
        const uint end = begin + min(run, pixels - begin);
        for (uint i = begin; i < end; i++) {
            Pixel pixel;
            load_pixel(&pixel, in, i);
            count_pixel(&tables, &pixel, bins4 MAP_ARGS);
        }
    } else {
        const uint step = get_num_groups(0) * WG;
        uint i = get_global_id(0);
        for (; i < pixels && pixels - i > 3 * step; i += 4 * step) {
            Pixel four[4];
#pragma unroll
            for (uint k = 0; k < 4; k++) {
                load_pixel(&four[k], in, i + k * step);
            }
#pragma unroll
            for (uint k = 0; k < 4; k++) {
                count_pixel(&tables, &four[k], bins4 MAP_ARGS);
            }
        }
        for (; i < pixels; i += step) {
            Pixel pixel;
            load_pixel(&pixel, in, i);
            count_pixel(&tables, &pixel, bins4 MAP_ARGS);
        }
    }
    store_tables(&tables, table, tables_base, table_count, bins4);
}
