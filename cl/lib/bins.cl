// The slot of a sample: slot(x) = its bin, or bins + BELOW, bins + ABOVE or bins + NOT_A_NUMBER.
//
// SLOT(x) is the slot of x, of type IN. A kernel that uses SLOT has the parameter `const uint bins`, and MAP_PARAMS at
// the end. It begins with MAP_SETUP(item, items), which all work-items call. A barrier follows before the first SLOT. A
// function that uses SLOT has parameters `const uint bins SLOT_PARAMS`; callers pass `bins MAP_ARGS`.

#include "lib/types.cl"

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

// The type of the distance of two integers.
#if T_BYTES == 8
#define DISTANCE ulong
#else
#define DISTANCE uint
#endif

#if MAP == MAP_IDS

#define MAP_PARAMS
#define SLOT_PARAMS
#define MAP_ARGS
static inline uint slot_of(const T x, const uint bins SLOT_PARAMS)
{
    // A negative id wraps to a number above every bin.
    const DISTANCE id = (DISTANCE)x;
    return id < bins ? (uint)id : bins + (x < 0 ? BELOW : ABOVE);
}

#elif MAP == MAP_INTEGERS

// reciprocal = floor((2^64 - 1) / (extent >> shift)); shift leaves at most 40 bits of the extent.
#define MAP_PARAMS \
    , const ulong lower, const ulong extent, const ulong reciprocal, const uint shift, const uint closed
#define SLOT_PARAMS MAP_PARAMS
#define MAP_ARGS , lower, extent, reciprocal, shift, closed

// Returns true if bin * extent <= distance * bins, in 128 bits.
static inline int reached(const ulong bin, const ulong extent, const ulong distance, const ulong bins)
{
    const ulong high = mul_hi(bin, extent), wanted = mul_hi(distance, bins);
    return high < wanted || (high == wanted && bin * extent <= distance * bins);
}

// Bin: floor((x - lower) * bins / extent).
static inline uint slot_of(const T x, const uint bins SLOT_PARAMS)
{
    const DISTANCE distance = (DISTANCE)x - (DISTANCE)lower, whole = (DISTANCE)extent;
    if (x < (T)lower) {
        return bins + BELOW;
    }
    if (distance >= whole) {
        return distance == whole && closed ? bins - 1 : bins + ABOVE;
    }
    if (T_BYTES == 8 && shift != 0) {
        ulong bin = mul_hi((ulong)(distance >> shift) * bins, reciprocal);
        while (!reached(bin, extent, distance, bins)) {
            bin--;
        }
        while (reached(bin + 1, extent, distance, bins)) {
            bin++;
        }
        return (uint)bin;
    }
    // The reciprocal is rounded down, so the guess is right or one too low.
    const ulong product = (ulong)distance * bins, bin = mul_hi(product, reciprocal);
    return (uint)bin + (product - bin * extent >= extent);
}

#elif MAP == MAP_EDGES

// edges[0 .. bins + 1] do not decrease. Edges of integers are stored as distances from the first edge. `guide` divides
// the range into cells, whose numbers rise with x. guide[cell] has two counts of edges, which leave out the first and
// the last edge. Its low 24 bits count the edges in earlier cells. Its bits from 24 on count the edges in this cell, up
// to MANY. One entry follows that of the last cell. With EDGE_ROOM, edges and guide are copied to local memory.
// EDGE_ROOM is a power of two, at least four times the number of bins, and at least the number of cells. With
// EDGE_PAIRS, a cell with at most one edge needs one access.
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
// The second word of an entry has the 4 bytes of the cell's first edge, or of the next edge if the cell has none.
#define ENTRY uint2
#define NUMBER_OF(entry) entry.s0
// Stores word by word: Oclgrind reports undefined words in a vector that is put together.
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
#define SLOT_PARAMS                                                                                                    \
    , EDGE_SPACE const EDGE *edges, EDGE_SPACE const ENTRY *guide, const uint cells MAP_BOUNDS
#define MAP_ARGS , edges, guide, cells MAP_BOUND_ARGS

// Binary search: the bin is in [bin, bin + left].
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

INLINED uint slot_of(const T raw, const uint bins SLOT_PARAMS)
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
#define SLOT_PARAMS MAP_PARAMS
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

// Returns the slot of a sample outside the bins or close to an edge: the largest k with edge(k) <= x, searched from a
// guess.
SELDOM uint slot_near_edge(const A x, const A guess, const uint bins SLOT_PARAMS)
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

// If the guess is further than `slack` from every whole number, its bin is certain. Adding and subtracting ROUNDER
// rounds `middle` to a whole number; the lowest bits of `sum` are this number. If the guess is too far from the bins
// for this, or NaN, one of the comparisons is false.
static inline uint slot_of(const T raw, const uint bins SLOT_PARAMS)
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

// IN is the type of a sample in memory: T, or with MAPPED the argument type of the caller's function, which returns a
// T. The host puts that function before this text. VEC and TV are those of IN.
#ifdef MAPPED
#if defined(IN_F16)
#define WIDEN_IN(x) f16_to_float(x)
#elif defined(IN_BF16)
#define WIDEN_IN(x) bf16_to_float(x)
#else
#define WIDEN_IN(x) (x)
#endif
#define SLOT(x) slot_of((T)mapped(WIDEN_IN(x)), bins MAP_ARGS)
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
