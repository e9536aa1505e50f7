// The slot of a sample: its bin, or one of three slots after the bins.
//
// SLOT(x) is the slot of x, an IN. A kernel has MAP_PARAMS at the end of its parameters, `const uint bins` among them, and
// MAP_SETUP(item, items) at its start, which all items of the work-group call; no SLOT before the barrier after it.
#ifndef OCLPRIM_BINS_CL
#define OCLPRIM_BINS_CL

#include "lib/types.cl"

// What is long and seldom needed: called where calls are sound and keep the rest short, else inlined, since PoCL 3.1 gives
// a function that is called other local memory than the kernel's.
#ifdef CALLS
#define SELDOM static __attribute__((noinline))
#else
#define SELDOM static inline __attribute__((always_inline))
#endif

#define BELOW 0
#define ABOVE 1
#define NOT_A_NUMBER 2

#define MAP_IDS 0      // integers: the sample is its bin
#define MAP_INTEGERS 1 // integers: even bins
#define MAP_FLOATS 2   // floats: even bins
#define MAP_EDGES 3    // bins between given edges
#ifndef MAP
#define MAP MAP_FLOATS
#endif

// The distance of two integers.
#if T_BYTES == 8
#define DISTANCE ulong
#else
#define DISTANCE uint
#endif

#if MAP == MAP_IDS

#define MAP_PARAMS
#define MAP_ARGS
static inline uint slot_of(const T x, const uint bins MAP_PARAMS)
{
    // Negative ids turn into numbers beyond every bin.
#if T_BYTES == 8
    const ulong id = (ulong)x;
#else
    const uint id = (uint)x;
#endif
    return id < bins ? (uint)id : bins + (x < 0 ? BELOW : ABOVE);
}

#elif MAP == MAP_INTEGERS

// reciprocal = floor((2^64 - 1) / (extent >> shift)), where shift leaves 40 bits of the extent.
#define MAP_PARAMS \
    , const ulong lower, const ulong extent, const ulong reciprocal, const uint shift, const uint closed
#define MAP_ARGS , lower, extent, reciprocal, shift, closed

// Whether bin * extent <= distance * bins, in 128 bits.
static inline int reached(const ulong bin, const ulong extent, const ulong distance, const ulong bins)
{
    const ulong high = mul_hi(bin, extent), wanted = mul_hi(distance, bins);
    return high < wanted || (high == wanted && bin * extent <= distance * bins);
}

// floor((x - lower) * bins / extent)
static inline uint slot_of(const T x, const uint bins MAP_PARAMS)
{
    const DISTANCE distance = (DISTANCE)x - (DISTANCE)lower, whole = (DISTANCE)extent;
    if (x < (T)lower) {
        return bins + BELOW;
    }
    if (distance >= whole) {
        return distance == whole && closed ? bins - 1 : bins + ABOVE;
    }
#if T_BYTES == 8
    if (shift != 0) {
        ulong bin = mul_hi((distance >> shift) * bins, reciprocal);
        while (!reached(bin, extent, distance, bins)) {
            bin--;
        }
        while (reached(bin + 1, extent, distance, bins)) {
            bin++;
        }
        return (uint)bin;
    }
#endif
    // The reciprocal is rounded down, so that the guess is right or one too low.
    const ulong product = (ulong)distance * bins, bin = mul_hi(product, reciprocal);
    return (uint)bin + (product - bin * extent >= extent);
}

#elif MAP == MAP_EDGES

// edges[0 .. bins + 1] rise or stay; those of integers are distances from the first. guide[cell] has, for the edges but the
// first and the last, how many lie in earlier cells, and from bit 24 on how many in this one, or MANY if there are more; one
// entry follows the cells. Cells rise with x. With EDGE_ROOM, a power of two of at least four times the bins and of at least
// the cells, both are copied to local memory; with EDGE_PAIRS cells with one edge or none need one access.
#ifdef T_FLOAT
#define EDGE A
#define AS_EDGE_BITS(x) as_uint(x)
#define EDGE_OF_BITS(x) as_float(x)
#define MAP_BOUNDS , const A lower, const A upper, const A anchor, const A scale, const uint closed
#define MAP_BOUND_ARGS , lower, upper, anchor, scale, closed
#else
#define EDGE DISTANCE
#define AS_EDGE_BITS(x) (x)
#define EDGE_OF_BITS(x) (x)
#define MAP_BOUNDS , const ulong lower, const ulong extent, const uint shift, const uint closed
#define MAP_BOUND_ARGS , lower, extent, shift, closed
#endif
#define MAP_PARAMS \
    , __global const EDGE* restrict edge_table, __global const uint* restrict guide_table, const uint cells MAP_BOUNDS
#define MANY 255

#ifdef EDGE_ROOM
#define EDGE_SPACE __local
#else
#define EDGE_SPACE __global
#endif

#ifdef EDGE_PAIRS
// Beside each entry the bits of its first edge, of 4 bytes, or of the next one if the cell has none.
#define ENTRY uint2
#define NUMBER_OF(entry) entry.s0
// By words: Oclgrind sees undefined ones in a vector that is put together.
#define SET_ENTRY(k)                                                                                                   \
    {                                                                                                                  \
        __local uint* words = (__local uint*)(guide + k);                                                              \
        words[0] = guide_table[k];                                                                                     \
        words[1] = AS_EDGE_BITS(edge_table[min((guide_table[k] & 0xffffff) + 1, bins)]);                               \
    }
#else
#define ENTRY uint
#define NUMBER_OF(entry) entry
#define SET_ENTRY(k) guide[k] = guide_table[k];
#endif

#ifdef EDGE_ROOM
#define MAP_SETUP(item, items)                                                                                         \
    __local EDGE edges[EDGE_ROOM / 4 + 1];                                                                             \
    __local ENTRY guide[EDGE_ROOM + 1];                                                                                \
    for (uint k = item; k <= bins; k += items) {                                                                       \
        edges[k] = edge_table[k];                                                                                      \
    }                                                                                                                  \
    for (uint k = item; k <= cells; k += items) {                                                                      \
        SET_ENTRY(k)                                                                                                   \
    }
#else
#define MAP_SETUP(item, items) __global const EDGE *edges = edge_table; __global const uint *guide = guide_table;
#endif
#define MAP_ARGS , edges, guide, cells MAP_BOUND_ARGS

// The bin is one of bin .. bin + left.
SELDOM uint search(
    const EDGE x, EDGE_SPACE const EDGE* edges, EDGE_SPACE const ENTRY* guide, const uint cell, uint bin, uint left)
{
    if (left == MANY) {
        left = (NUMBER_OF(guide[cell + 1]) & 0xffffff) - bin;
    }
    while (left > 0) {
        const uint step = (left + 1) / 2;
        const int reached = x >= edges[bin + step];
        bin += reached ? step : 0;
        left = reached ? left - step : step - 1;
    }
    return bin;
}

static inline __attribute__((always_inline)) uint slot_of(
    const T raw, const uint bins, EDGE_SPACE const EDGE* edges, EDGE_SPACE const ENTRY* guide,
    const uint cells MAP_BOUNDS)
{
#ifdef T_FLOAT
    const A x = to_acc(raw);
    if (!(x >= lower && x < upper)) {
        return x < lower ? bins + BELOW
               : x != x ? bins + NOT_A_NUMBER
                        : (x == upper && closed ? bins - 1 : bins + ABOVE);
    }
    const A guess = (x * (A)0.5f - anchor * (A)0.5f) * scale;
    const uint cell = (uint)fmin(fmax(guess, (A)0.0f), (A)(cells - 1));
#else
    const DISTANCE x = (DISTANCE)raw - (DISTANCE)lower, whole = (DISTANCE)extent;
    if (raw < (T)lower) {
        return bins + BELOW;
    }
    if (x >= whole) {
        return x == whole && closed ? bins - 1 : bins + ABOVE;
    }
    const uint cell = (uint)(x >> shift);
#endif
    const ENTRY entry = guide[cell];
    const uint bin = NUMBER_OF(entry) & 0xffffff, left = NUMBER_OF(entry) >> 24;
#ifdef EDGE_PAIRS
    if (left <= 1) {
        return bin + (x >= EDGE_OF_BITS(entry.s1));
    }
#endif
    return search(x, edges, guide, cell, bin, left);
}

#else

#define MAP_PARAMS \
    , const A lower, const A upper, const A width, const A scale, const A slack, const uint closed
#define MAP_ARGS , lower, upper, width, scale, slack, closed

#if A_BYTES == 8
#define WORD_OF_A ulong
#define AS_WORD(x) as_ulong(x)
#define ROUNDER 0x1.8p52
#else
#define WORD_OF_A uint
#define AS_WORD(x) as_uint(x)
#define ROUNDER 0x1.8p23f
#endif

static inline A edge(const uint k, const uint bins, const A lower, const A upper, const A width)
{
    return 2 * k < bins ? lower + (A)k * width : upper - (A)(bins - k) * width;
}

// The slot of what is outside or close to an edge: the largest k with edge(k) <= x, from a guess on.
SELDOM uint slot_near_edge(const A x, const A guess, const uint bins MAP_PARAMS)
{
    if (x < lower) {
        return bins + BELOW;
    }
    if (x >= upper) {
        return x == upper && closed ? bins - 1 : bins + ABOVE;
    }
    if (!(x >= lower)) {
        return bins + NOT_A_NUMBER;
    }
    uint k = min((uint)guess, bins - 1);
    while (x < edge(k, bins, lower, upper, width)) {
        k--;
    }
    while (k + 1 < bins && x >= edge(k + 1, bins, lower, upper, width)) {
        k++;
    }
    return k;
}

// A guess that is further than the slack from a whole number is certain. Adding and subtracting ROUNDER rounds to a whole
// number, whose lowest bits the sum has; guesses out of its reach fail one of the comparisons, as NaN does.
static inline uint slot_of(const T raw, const uint bins MAP_PARAMS)
{
    const A x = to_acc(raw);
    const A guess = (x * (A)0.5f - lower * (A)0.5f) * scale;
    const A middle = guess - (A)0.5f, sum = middle + ROUNDER;
    const WORD_OF_A k = AS_WORD(sum) - AS_WORD(ROUNDER);
    if (fabs(middle - (sum - ROUNDER)) < (A)0.5f - slack && k < bins) {
        return (uint)k;
    }
    return slot_near_edge(x, guess, bins MAP_ARGS);
}

#endif

#ifndef MAP_SETUP
#define MAP_SETUP(item, items)
#endif

// IN: a sample as it lies in memory, a T; with MAPPED what the caller's function takes, which the host puts in front of all
// and which gives the T. VEC and TV are those of IN.
#ifdef MAPPED
#if defined(IN_F16)
#define SLOT(x) slot_of((T)mapped(f16_to_float(x)), bins MAP_ARGS)
#elif defined(IN_BF16)
#define SLOT(x) slot_of((T)mapped(bf16_to_float(x)), bins MAP_ARGS)
#else
#define SLOT(x) slot_of((T)mapped(x), bins MAP_ARGS)
#endif
#undef VEC
#undef TV
#define VEC (16 / IN_BYTES)
#if IN_BYTES == 1
#define TV CAT(IN, 16)
#elif IN_BYTES == 2
#define TV CAT(IN, 8)
#elif IN_BYTES == 4
#define TV CAT(IN, 4)
#else
#define TV CAT(IN, 2)
#endif
#else
#define IN T
#define SLOT(x) slot_of(x, bins MAP_ARGS)
#endif

#endif
