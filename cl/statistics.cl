// Statistics in one pass over memory, and extremes with their places.
//
// A tile is TILE_ROWS rows of 256 x VEC lanes, as in reduce.cl; lane j has the elements j, j + LANES, ... of its tile.
// Sub-groups, grid and work-group size do not enter the result.
//
//   extremes  each work-group has the values of its tiles, and the first tile of each; the last launch looks there for the
//             first place. Likewise for the first NaN
//   integers  each work-group has the exact sums of its tiles
//   floats    a lane's moments; lanes, then tiles, join as a tree of neighbours
//
// With ONE_PASS, not of floats' moments, the work-group of the first launch that ends last does what the last launch would.
//
// With VECTORS the one item of a group, as on CPU drivers, compares 16 elements at a time, which compilers do not do by themselves.
// Without MOMENTS there are the extremes alone: the least where ENDS has bit 0, the largest where it has bit 1. Bytes: reads
// n elements once and up to three tiles again, writes a record a group, and n / TILE moments of floats.
#include "lib/types.cl"
#ifdef MOMENTS
#include "lib/moments.cl"
#else
typedef int Moments;
#endif

#ifdef ONE_PASS
#include "lib/subgroup.cl"
#include "lib/ended.cl"
#endif

#ifndef WG
#define WG 256
#endif
#ifndef ENDS
#define ENDS 3
#endif
#ifndef TILE_ROWS
#define TILE_ROWS 16
#endif
#define LANES (256 * VEC)
#define TILE (TILE_ROWS * LANES)
#define ITEM_LANES (LANES / WG)
#define ITEM_VECS (ITEM_LANES / VEC)
// Rows whose loads are in flight at once. Of integers' moments, whose sums take registers, fewer.
#if defined(MOMENTS) && !defined(A_FLOAT)
#define FLIGHT (TILE_ROWS / 2)
#else
#define FLIGHT TILE_ROWS
#endif
// Few lanes an item stay in registers where their loops are unrolled. With many, the code would be large: Intel's driver for CPUs
// took more than eight minutes to build the moments of 64 lanes.
#if ITEM_LANES <= 32
#define UNROLL _Pragma("unroll")
#define FOR_LANES(k, count) UNROLL for (uint k = 0; k < ITEM_LANES; k++) if (k < (count))
#else
#define UNROLL
#define FOR_LANES(k, count) for (uint k = 0; k < (count); k++)
#endif
#if defined(MOMENTS) && defined(A_FLOAT)
#define FLOAT_MOMENTS
#elif defined(MOMENTS)
#define INTEGER_MOMENTS
#endif
// Tiles whose lanes join at once: with one, most items would wait for the few that do.
#if defined(FLOAT_MOMENTS) && WG >= 32
#define BATCH (16 / A_BYTES)
#else
#define BATCH 1
#endif
// NVIDIA's compiler keeps to a limit of registers only where the size of work-groups is open.
#if defined(MOMENTS) && INLINE_PTX
#define KERNEL __kernel
#else
#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif
// Moments that one group joins.
#define FAN 1024
#define ITEM_MOMENTS (FAN / WG)

#ifdef A_FLOAT
#define W A_BITS
#define IS_NAN(x) ((x) != (x))
#else
// What holds every value of the type in 8 bytes: no record has padding.
#define W T_WORD
#ifndef T_WORD
#define T_WORD long
#endif
#ifndef A_LOWEST
#define A_LOWEST 0
#define A_HIGHEST 0
#endif
#define IS_NAN(x) 0
#endif

typedef struct {
    ulong nan;                     // elements that are NaN
    ulong low_at, high_at, nan_at; // tiles
    W low, high;                   // keys, NaN aside
#ifdef INTEGER_MOMENTS
    Moments sums;
#endif
} Record;

// Both; they may have any tiles.
static inline void merge(Record* a, const Record* b)
{
    if (b->nan != 0 && (a->nan == 0 || b->nan_at < a->nan_at)) {
        a->nan_at = b->nan_at;
    }
    a->nan += b->nan;
    if (b->low < a->low || (b->low == a->low && b->low_at < a->low_at)) {
        a->low = b->low;
        a->low_at = b->low_at;
    }
    if (b->high > a->high || (b->high == a->high && b->high_at < a->high_at)) {
        a->high = b->high;
        a->high_at = b->high_at;
    }
#ifdef INTEGER_MOMENTS
    join_moments(&a->sums, &b->sums, 0, 0);
#endif
}

#define RECORD_WORDS (sizeof(Record) / 4)
typedef union {
    Record record;
    uint words[RECORD_WORDS];
} Words;

INLINED void from_local(__local const uint* tree, uint i, Record* r)
{
    Words x;
    UNROLL
    for (uint w = 0; w < RECORD_WORDS; w++) {
        x.words[w] = tree[w * WG + i];
    }
    *r = x.record;
}

INLINED void to_local(__local uint* tree, uint i, const Record* r)
{
    Words x;
    x.record = *r;
    UNROLL
    for (uint w = 0; w < RECORD_WORDS; w++) {
        tree[w * WG + i] = x.words[w];
    }
}

// The records of the items merged, valid in all of them. All WG items call it, in uniform flow; `tree` may be reused after
// the caller's next barrier. Each word of all records lies together, and what is left moves to the front: neighbouring
// items use neighbouring banks.
INLINED void merge_group(Record* r, __local uint* tree)
{
#if WG > 1
    const uint item = get_local_id(0);
    to_local(tree, item, r);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint left = WG / 2; left > 0; left /= 2) {
        if (item < left) {
            Record b;
            from_local(tree, 2 * item, r);
            from_local(tree, 2 * item + 1, &b);
            merge(r, &b);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < left) {
            to_local(tree, item, r);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    from_local(tree, 0, r);
#endif
}

// The least or the largest so far and an element, where NaN does not count; and the key of what comes out. FLUSHED: the device
// takes subnormals for zeros, so that keys are compared, which cost more.
#if defined(A_FLOAT) && !defined(FLUSHED)
#define EXTREME_T A
#define LOWEST (-A_INFINITY)
#define HIGHEST A_INFINITY
#ifdef DEVICE_CPU
#define LESSER(a, x) ((x) < (a) ? (x) : (a))
#define LARGER(a, x) ((x) > (a) ? (x) : (a))
#else
#define LESSER(a, x) fmin(a, x)
#define LARGER(a, x) fmax(a, x)
#endif
#define EXTREME_KEY(a) key_of(a)
#elif defined(A_FLOAT)
#define EXTREME_T KEY_T
#define LOWEST key_of(-A_INFINITY)
#define HIGHEST key_of(A_INFINITY)
#define LESSER(a, x) (IS_NAN(x) ? (a) : min(a, key_of(x)))
#define LARGER(a, x) (IS_NAN(x) ? (a) : max(a, key_of(x)))
#define EXTREME_KEY(a) (a)
#else
#define EXTREME_T A
#define LOWEST ((A)A_LOWEST)
#define HIGHEST ((A)A_HIGHEST)
#define LESSER(a, x) min((A)(a), (A)(x))
#define LARGER(a, x) max((A)(a), (A)(x))
#define EXTREME_KEY(a) (a)
#endif

#ifdef VECTORS
#define A16 CAT(A, 16)
#endif

// No elements; in a tile, where they come after all others that are alike.
static inline Record none(ulong tile)
{
    Record r;
    r.nan = 0;
    r.low_at = r.high_at = r.nan_at = tile;
    r.low = EXTREME_KEY(HIGHEST);
    r.high = EXTREME_KEY(LOWEST);
#ifdef INTEGER_MOMENTS
    r.sums.sum0 = r.sums.sum1 = r.sums.squares0 = r.sums.squares1 = r.sums.squares2 = 0;
#endif
    return r;
}

#define FULL (elements == TILE)

#ifdef FLOAT_MOMENTS
// Adds the moments of up to `width` elements, from `first` of n on, to those of `width` before them: a power of two of tiles,
// which is exact as a float.
static inline void join_tiles(Moments* a, const Moments* b, ulong first, ulong width, ulong n)
{
    join_moments(a, b, width, first < n ? min(width, n - first) : 0);
}

// Moments in local memory.
#define SLOTS (BATCH * WG)
#endif

static inline void load_rows(__global const T* p, TV* row)
{
    UNROLL
    for (uint i = 0; i < FLIGHT; i++) {
        UNROLL
        for (uint v = 0; v < ITEM_VECS; v++) {
            row[i * ITEM_VECS + v] = load_vec(p + i * LANES + v * VEC);
        }
    }
}

#define EXTREMES(x) \
    do { \
        if (ENDS & 1) { \
            low = LESSER(low, x); \
        } \
        if (ENDS & 2) { \
            high = LARGER(high, x); \
        } \
    } while (0)

#ifdef FLOAT_MOMENTS
// 1 / n of the n elements in a lane of a tile; 0 without elements.
static inline A part_of_lane(uint elements, uint lane)
{
    const uint count = FULL ? TILE_ROWS : in_lanes(elements, LANES, lane, 1);
    return FULL ? (A)(1.0f / TILE_ROWS) : count > 0 ? ratio(1, count) : 0;
}
#endif

// What the item has of a tile of `elements` > 0 from `p` on.
// `moments` is written with FLOAT_MOMENTS.
static inline Record take(__global const T* p, uint elements, ulong tile, Moments* moments)
{
    const uint lane = get_local_id(0) * ITEM_LANES;
    EXTREME_T low = HIGHEST, high = LOWEST;
    int odd = 0;
    Record r = none(tile);
#ifdef FLOAT_MOMENTS
    A mean[ITEM_LANES], rest[ITEM_LANES], m2[ITEM_LANES];
    int far = 0;
    UNROLL
    for (uint k = 0; k < ITEM_LANES; k++) {
        mean[k] = rest[k] = m2[k] = 0;
    }
#elif defined(INTEGER_MOMENTS)
    Sums sums = {0};
#endif

#ifdef VECTORS
    if (FULL) {
        A16 lows = HIGHEST, highs = LOWEST;
#ifdef A_FLOAT
        CAT(A_BITS, 16) odds = 0;
#endif
        for (uint i = 0; i < TILE; i += 16) {
            const A16 x = CAT(convert_, A16)(vload16(0, p + i));
            lows = x < lows ? x : lows;
            highs = x > highs ? x : highs;
#ifdef A_FLOAT
            odds |= isunordered(x, x);
#endif
        }
        A each_low[16], each_high[16];
        vstore16(lows, 0, each_low);
        vstore16(highs, 0, each_high);
#ifdef A_FLOAT
        odd = any(odds);
#endif
        for (uint k = 0; k < 16; k++) {
            low = LESSER(low, each_low[k]);
            high = LARGER(high, each_high[k]);
        }
    } else
#elif WG >= 32
    if (FULL) {
        TV row[FLIGHT * ITEM_VECS];
        for (uint start = 0; start < TILE_ROWS; start += FLIGHT) {
            load_rows(p + lane + start * LANES, row);
            UNROLL
            for (uint i = 0; i < FLIGHT * ITEM_VECS; i++) {
                A x[VEC];
                unpack(row[i], x);
                UNROLL
                for (uint k = 0; k < VEC; k++) {
                    EXTREMES(x[k]);
#ifdef FLOAT_MOMENTS
                    mean[i % ITEM_VECS * VEC + k] += x[k];
#endif
                }
#if defined(A_FLOAT) && !defined(FLOAT_MOMENTS)
                UNROLL
                for (uint k = 0; k < VEC; k += 2) {
                    odd |= isunordered(x[k], x[k + 1]);
                }
#endif
#ifdef INTEGER_MOMENTS
                UNROLL
                for (uint k = 0; k < VEC; k += 2) {
                    sums_add_two(&sums, x[k], x[k + 1]);
                }
#endif
            }
        }
#ifdef FLOAT_MOMENTS
        UNROLL
        for (uint k = 0; k < ITEM_LANES; k++) {
            mean[k] *= (A)(1.0f / TILE_ROWS);
            far |= !IS_FINITE(mean[k]);
        }
        // The mean of a lane with a NaN is one.
        odd = far;
        if (far) {
            UNROLL
            for (uint k = 0; k < ITEM_LANES; k++) {
                if (!IS_FINITE(mean[k])) {
                    mean[k] = far_mean(p, 1, elements, LANES, lane + k, (A)(1.0f / TILE_ROWS));
                }
            }
        }
        UNROLL
        for (uint i = 0; i < TILE_ROWS * ITEM_VECS; i++) {
            A x[VEC];
            unpack(row[i], x);
            UNROLL
            for (uint k = 0; k < VEC; k++) {
                const uint at = i % ITEM_VECS * VEC + k;
                const A d = x[k] - mean[at];
                rest[at] += d;
                m2[at] += d * d;
            }
        }
#endif
    } else
#endif
    {
        const uint rows = (elements + LANES - 1) / LANES;
        for (uint i = 0; i < rows; i++) {
            // Contiguous elements, for the compilers of CPU drivers to vectorise.
            const uint first = lane + i * LANES;
            const uint count = first < elements ? min((uint)ITEM_LANES, elements - first) : 0;
            FOR_LANES(k, count) {
                const A x = to_acc(p[first + k]);
                EXTREMES(x);
                odd |= IS_NAN(x);
#ifdef FLOAT_MOMENTS
                mean[k] += x;
#elif defined(INTEGER_MOMENTS)
                sums_add(&sums, x);
#endif
            }
        }
#ifdef FLOAT_MOMENTS
        UNROLL
        for (uint k = 0; k < ITEM_LANES; k++) {
            mean[k] *= part_of_lane(elements, lane + k);
            far |= !IS_FINITE(mean[k]);
        }
        if (far) {
            UNROLL
            for (uint k = 0; k < ITEM_LANES; k++) {
                if (!IS_FINITE(mean[k])) {
                    const A part = ratio(1, in_lanes(elements, LANES, lane + k, 1));
                    mean[k] = far_mean(p, 1, elements, LANES, lane + k, part);
                }
            }
        }
        for (uint i = 0; i < rows; i++) {
            const uint first = lane + i * LANES;
            const uint count = first < elements ? min((uint)ITEM_LANES, elements - first) : 0;
            FOR_LANES(k, count) {
                const A d = to_acc(p[first + k]) - mean[k];
                rest[k] += d;
                m2[k] += d * d;
            }
        }
#endif
    }
    r.low = EXTREME_KEY(low);
    r.high = EXTREME_KEY(high);
    if (odd) {
        for (uint i = lane; i < elements; i += LANES) {
            for (uint k = 0; k < ITEM_LANES && i + k < elements; k++) {
                r.nan += IS_NAN(to_acc(p[i + k]));
            }
        }
    }
#ifdef FLOAT_MOMENTS
    Moments of[ITEM_LANES];
    // Not finite if an m2 is not: the only negative one is -infinity.
    A all = 0;
    UNROLL
    for (uint k = 0; k < ITEM_LANES; k++) {
        lane_moments(&of[k], mean[k], rest[k], m2[k], part_of_lane(elements, lane + k));
        all += of[k].m2;
    }
    if (!IS_FINITE(all)) {
        UNROLL
        for (uint k = 0; k < ITEM_LANES; k++) {
            const A part = part_of_lane(elements, lane + k);
            replace_far_squares(&of[k], part, p, 1, elements, LANES, lane + k);
        }
    }
    UNROLL
    for (uint width = 1; width < ITEM_LANES; width *= 2) {
        UNROLL
        for (uint k = 0; k < ITEM_LANES / (2 * width); k++) {
            of[k] = of[2 * k];
            join_lanes(&of[k], &of[2 * k + 1], elements, TILE_ROWS, LANES, lane + 2 * k * width, width);
        }
    }
    *moments = of[0];
#elif defined(INTEGER_MOMENTS)
    sums_moments(&r.sums, &sums);
#endif
    return r;
}

static inline uint elements_of(OFFSET_T tile, OFFSET_T n)
{
    return n - tile * TILE >= TILE ? TILE : n - tile * TILE;
}

#ifdef FLOAT_MOMENTS
// The moments of the FAN records of `span` elements each, from `start` on, of `count`; valid in item 0. All WG items call
// it, in uniform flow.
INLINED void join_group(
    __global const Moments* from, uint start, uint count, ulong span, ulong n, __local A* tree, Moments* m)
{
    const uint item = get_local_id(0), first = start + item * ITEM_MOMENTS;
    const uint taken = first < count ? min((uint)ITEM_MOMENTS, count - first) : 0;
    // Neighbours first: as many are kept as the number of those taken has bits set.
    Moments kept[12];
    uint depth = 0;
    for (uint i = 0; i < taken; i++) {
        kept[depth++] = from[first + i];
        uint width = 1;
        for (uint bits = i; (bits & 1) != 0; bits >>= 1) {
            depth--;
            join_tiles(&kept[depth - 1], &kept[depth], (first + i + 1 - width) * span, width * span, n);
            width *= 2;
        }
    }
    for (uint rest = taken; depth > 1; depth--) {
        const uint width = rest & -rest;
        rest -= width;
        join_tiles(&kept[depth - 2], &kept[depth - 1], (first + rest) * span, (rest & -rest) * span, n);
    }
    *m = taken > 0 ? kept[0] : from[0];
#if WG > 1
    put_moments(tree, SLOTS, item, m);
    barrier(CLK_LOCAL_MEM_FENCE);
    ulong width = ITEM_MOMENTS * span;
    for (uint left = WG / 2; left > 0; left /= 2) {
        if (item < left) {
            Moments b;
            get_moments(tree, SLOTS, 2 * item, m);
            get_moments(tree, SLOTS, 2 * item + 1, &b);
            join_tiles(m, &b, start * span + (2 * item + 1) * width, width, n);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < left) {
            put_moments(tree, SLOTS, item, m);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        width *= 2;
    }
#endif
}

// Group g joins the FAN moments from g x FAN on, of `count` from `from` on, into number g from `to` on.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void statistics_moments(
    __global void* moments, const ulong from, const uint count, const ulong span, const ulong n, const ulong to)
{
    __local A tree[3 * SLOTS];
    __global Moments* all = (__global Moments*)moments;
    Moments m;
    join_group(all + from, get_group_id(0) * FAN, count, span, n, tree, &m);
    if (get_local_id(0) == 0) {
        all[to + get_group_id(0)] = m;
    }
}
#endif

// The first place in a tile of a key, or of a NaN; valid in every item. All WG items call it, in uniform flow.
INLINED ulong find(__global const T* in, ulong tile, ulong n, int nan, KEY_T key, __local uint* place)
{
    const ulong first = tile * TILE;
    const uint elements = n - first >= TILE ? TILE : n - first, item = get_local_id(0);
    uint found = elements - 1;
    if (item == 0) {
        *place = found;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#define FIND(x, at) \
    do { \
        const A e = x; \
        if (nan ? IS_NAN(e) : key_of(e) == key) { \
            found = min(found, (uint)(at)); \
        } \
    } while (0)
#if WG >= 32
    if (FULL) {
        const uint lane = item * ITEM_LANES;
        TV row[FLIGHT * ITEM_VECS];
        for (uint start = 0; start < TILE_ROWS; start += FLIGHT) {
            load_rows(in + first + lane + start * LANES, row);
            UNROLL
            for (uint i = 0; i < FLIGHT * ITEM_VECS; i++) {
                A x[VEC];
                unpack(row[i], x);
                UNROLL
                for (uint k = 0; k < VEC; k++) {
                    FIND(x[k], (start + i / ITEM_VECS) * LANES + lane + i % ITEM_VECS * VEC + k);
                }
            }
        }
    } else
#endif
    {
        for (uint i = item; i < elements; i += WG) {
            FIND(to_acc(in[first + i]), i);
        }
    }
    if (found < elements - 1) {
        atomic_min(place, found);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    found = *place;
    barrier(CLK_LOCAL_MEM_FENCE);
    return first + found;
}

// The bits of an element or an accumulator, in a word.
static inline ulong element_bits(T x)
{
#if defined(T_FLOAT) && T_BYTES == 8
    return as_ulong(x);
#elif defined(T_FLOAT) && T_BYTES == 4
    return as_uint(x);
#else
    return (ulong)x;
#endif
}

// Merges the records of all groups, finds the extremes' places and writes the answer: with MOMENTS to 12 words of `out`, where
// those of floats are `m`, else the values to `out` and their places to `places_out`. All WG items call it, in uniform flow.
INLINED void give_answer(
    __global const T* in, const ulong n, __global const Record* records, const uint groups, const Moments* m,
    __global void* out, const ulong out_offset, __global ulong* places_out, const ulong places_offset,
    __local uint* tree, __local uint* place)
{
    const uint item = get_local_id(0);
    // After all tiles that there are.
    Record r = none(n);
    for (uint i = item; i < groups; i += WG) {
        const Record other = records[i];
        merge(&r, &other);
    }
    merge_group(&r, tree);
    const int nan = r.nan != 0;
#if ENDS & 1
    const ulong low_at = find(in, nan ? r.nan_at : r.low_at, n, nan, (KEY_T)r.low, place);
#endif
#if ENDS & 2
    const ulong high_at = find(in, nan ? r.nan_at : r.high_at, n, nan, (KEY_T)r.high, place);
#endif
    if (item != 0) {
        return;
    }
#ifdef MOMENTS
    __global ulong* words = (__global ulong*)out + out_offset;
    words[0] = n;
    words[1] = r.nan;
    words[2] = low_at;
    words[3] = high_at;
    words[4] = element_bits(in[low_at]);
    words[5] = element_bits(in[high_at]);
#ifdef A_FLOAT
    store_moments(words + 6, m);
#else
    store_moments(words + 6, &r.sums);
#endif
    words[11] = 0;
#else
    __global T* values = (__global T*)out + out_offset;
    __global ulong* places = places_out + places_offset;
#if ENDS & 1
    values[0] = in[low_at];
    places[0] = low_at;
#endif
#if ENDS & 2
    values[ENDS == 3] = in[high_at];
    places[ENDS == 3] = high_at;
#endif
#endif
}

#ifdef ONE_PASS
#define ENDING_PARAMS                                                                                                  \
    , const uint ends, __global void *out, const ulong out_offset, __global ulong *places_out,                         \
        const ulong places_offset ENDED_PARAM
#else
#define ENDING_PARAMS
#endif

// Group g takes the tiles g, g + groups, ...; their records merged become record g, and each tile has its moments. With
// ONE_PASS, where `ends` is not 0, the group that ends last gives the answer.
KERNEL void statistics_tiles(
    __global const T* restrict in_base, const ulong in_offset, const OFFSET_T n, __global void* records,
    __global void* moments, const ulong moments_offset ENDING_PARAMS)
{
    __local uint tree[RECORD_WORDS * WG];
#if defined(FLOAT_MOMENTS) && WG > 1
    __local A lanes[3 * SLOTS];
#endif
    __global const T* in = in_base + in_offset;
    const OFFSET_T tiles = n / TILE + (n % TILE != 0), groups = get_num_groups(0);
    const uint item = get_local_id(0);
    Record all = none(get_group_id(0));
    for (OFFSET_T base = get_group_id(0); base < tiles; base += BATCH * groups) {
        for (uint t = 0; t < BATCH; t++) {
            const OFFSET_T tile = base + t * groups;
            if (tile < tiles) {
                Moments m;
                const Record r = take(in + tile * TILE, elements_of(tile, n), tile, &m);
                merge(&all, &r);
#ifdef FLOAT_MOMENTS
#if WG > 1
                put_moments(lanes, SLOTS, t * WG + item, &m);
#else
                ((__global Moments*)moments)[moments_offset + tile] = m;
#endif
#endif
            }
        }
#if defined(FLOAT_MOMENTS) && WG > 1
        uint width = ITEM_LANES;
        UNROLL
        for (uint left = WG; left > 1;) {
            // Four neighbours become one, `next` of them a tile.
            const uint fan = left >= 4 ? 4 : 2, next = left / fan;
            const uint t = item / next, i = item % next;
            const OFFSET_T tile = base + t * groups;
            const int mine = t < BATCH && tile < tiles;
            Moments m;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (mine) {
                const uint elements = elements_of(tile, n), from = t * WG + i * fan, lane = i * fan * width;
                Moments b;
                get_moments(lanes, SLOTS, from, &m);
                get_moments(lanes, SLOTS, from + 1, &b);
                join_lanes(&m, &b, elements, TILE_ROWS, LANES, lane, width);
                if (fan == 4) {
                    Moments c;
                    get_moments(lanes, SLOTS, from + 2, &b);
                    get_moments(lanes, SLOTS, from + 3, &c);
                    join_lanes(&b, &c, elements, TILE_ROWS, LANES, lane + 2 * width, width);
                    join_lanes(&m, &b, elements, TILE_ROWS, LANES, lane, 2 * width);
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (mine && next > 1) {
                put_moments(lanes, SLOTS, t * WG + i, &m);
            } else if (mine) {
                ((__global Moments*)moments)[moments_offset + tile] = m;
            }
            left = next;
            width *= fan;
        }
#endif
    }
    merge_group(&all, tree);
    if (item == 0) {
        ((__global Record*)records)[get_group_id(0)] = all;
    }
#ifdef ONE_PASS
    __local uint place;
    if (ends && ends_last(ended, groups, &place)) {
        give_answer(
            in, n, (__global const Record*)records, groups, 0, out, out_offset, places_out, places_offset, tree, &place);
    }
#endif
}

// One group: joins the last `count` moments, of `span` elements each, and gives the answer.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void statistics_last(
    __global const T* restrict in_base, const ulong in_offset, const ulong n, __global const void* restrict records,
    const uint groups, __global const void* restrict moments, const ulong moments_offset, const uint count,
    const ulong span, __global void* restrict out, const ulong out_offset, __global ulong* restrict places_out,
    const ulong places_offset)
{
    __local uint tree[RECORD_WORDS * WG];
    __local uint place;
    Moments m;
#ifdef FLOAT_MOMENTS
    __local A joined[3 * SLOTS];
    join_group((__global const Moments*)moments + moments_offset, 0, count, span, n, joined, &m);
#endif
    give_answer(
        in_base + in_offset, n, (__global const Record*)records, groups, &m, out, out_offset, places_out, places_offset,
        tree, &place);
}
