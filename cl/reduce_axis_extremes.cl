// The least element of each line along an axis and its index, the largest one, or both.
//
// Keys are compared, which have NaN before all: of ARG_MAX, and of the second of two ENDS, the complements. Of equal keys
// the lowest index wins. That order is total over key and index, so no tree is fixed.
//
// A work-group has `columns` outputs, each of WG / columns items. With `across` neighbouring items have neighbouring
// outputs, else neighbouring elements, whichever lie closer together in memory. Where outputs are few, the axis is cut into
// parts of `run` elements, whose indices axis_extremes_parts compares.
//
// Bytes: reads each element once, and one more for each output; writes an element and an index an output.
#include "lib/types.cl"
#include "lib/lines.cl"

#ifndef WG
#define WG 256
#endif
// The least, or with ARG_MAX the largest; 2: the least, then the largest.
#ifndef ENDS
#define ENDS 1
#endif

#ifdef A_FLOAT
#define KEY_LOWEST A_BITS_LOWEST
#define KEY_HIGHEST A_BITS_HIGHEST
#else
#ifndef A_HIGHEST
#define A_HIGHEST 0
#endif
#define KEY_HIGHEST ((KEY_T)A_HIGHEST)
#endif

#if ENDS == 2
#define TURNED(key, e) ((e) == 0 ? (key) : (KEY_T)~(key))
#elif defined(ARG_MAX)
#define TURNED(key, e) ((KEY_T)~(key))
#else
#define TURNED(key, e) (key)
#endif

// What orders an element at an end: the least comes first. No float but NaN has the lowest key, none the highest.
static inline KEY_T key_at(const A x, const uint e)
{
#ifdef A_FLOAT
    return x != x ? KEY_LOWEST : TURNED(key_of(x), e);
#else
    return TURNED(x, e);
#endif
}

// The first element so far, at each end. Where `at` was never set, no element had a key below the highest, and the first
// one is as good as any.
typedef struct {
    KEY_T key[ENDS];
    OFFSET_T at[ENDS];
} Best;

static inline Best nothing_yet(const OFFSET_T start)
{
    Best best;
    for (uint e = 0; e < ENDS; e++) {
        best.key[e] = KEY_HIGHEST;
        best.at[e] = start;
    }
    return best;
}

// Element i of the line that starts at `in`.
#define ALONG(in, i) to_acc((in)[(long)(i) * stride])

#if WG > 1

// What is loaded stays in registers where the loops over it are unrolled.
#define UNROLL _Pragma("unroll")

// Looks at x[0..COUNT], of which the indices along the axis rise. Those that come first are rare, so only the least of all
// is found at once, and then which one it was.
#define CONSIDER(x, COUNT, INDEX)                                                                                      \
    UNROLL                                                                                                             \
    for (uint e = 0; e < ENDS; e++) {                                                                                  \
        KEY_T least = key_at((x)[0], e);                                                                               \
        UNROLL                                                                                                         \
        for (uint k = 1; k < (COUNT); k++) {                                                                           \
            least = min(least, key_at((x)[k], e));                                                                     \
        }                                                                                                              \
        if (least < best->key[e]) {                                                                                    \
            best->key[e] = least;                                                                                      \
            UNROLL                                                                                                     \
            for (uint k = (COUNT); k-- > 0;) {                                                                         \
                best->at[e] = key_at((x)[k], e) == least ? (OFFSET_T)(INDEX) : best->at[e];                            \
            }                                                                                                          \
        }                                                                                                              \
    }

// Loads of an item that are in flight at once: of 16 bytes, of an element.
#if T_BYTES >= 4
#define VECS 4
#else
#define VECS 2
#endif
#define SINGLES 8

// Every `share`-th 16 bytes of the elements start .. end of a line without gaps, from the item's own on.
static inline void walk_vectors(
    __global const T* in, const OFFSET_T start, const OFFSET_T end, const uint own, const uint share, Best* best)
{
    const OFFSET_T step = share * VEC;
    OFFSET_T i = start + own * VEC;
    for (; i < end && end - i >= (VECS - 1) * step + VEC; i += VECS * step) {
        TV v[VECS];
        UNROLL
        for (uint k = 0; k < VECS; k++) {
            v[k] = load_vec(in + i + k * step);
        }
        A x[VECS * VEC];
        UNROLL
        for (uint k = 0; k < VECS; k++) {
            unpack(v[k], x + k * VEC);
        }
        CONSIDER(x, VECS * VEC, i + k / VEC * step + k % VEC)
    }
    for (; i < end; i += step) {
        if (end - i >= VEC) {
            A x[VEC];
            unpack(load_vec(in + i), x);
            CONSIDER(x, VEC, i + k)
        } else {
            for (OFFSET_T rest = i; rest < end; rest++) {
                const A x[1] = {to_acc(in[rest])};
                CONSIDER(x, 1, rest)
            }
        }
    }
}

// Every `share`-th of the elements start .. end of a line, from the item's own on.
static inline void walk(
    __global const T* in, const long stride, const OFFSET_T start, const OFFSET_T end, const uint own, const uint share,
    Best* best)
{
    const OFFSET_T step = share;
    OFFSET_T i = start + own;
    for (; i < end && end - i > (SINGLES - 1) * step; i += SINGLES * step) {
        A x[SINGLES];
        UNROLL
        for (uint k = 0; k < SINGLES; k++) {
            x[k] = ALONG(in, i + k * step);
        }
        CONSIDER(x, SINGLES, i + k * step)
    }
    for (; i < end; i += step) {
        const A x[1] = {ALONG(in, i)};
        CONSIDER(x, 1, i)
    }
}

// The first of the bests of an output's items, which are `distance` apart, valid in the one whose `own` is 0. All WG items
// call it, in uniform flow; `share`, the same for all, is a power of two.
INLINED void best_of_share(
    Best* best, const uint own, const uint share, const uint distance, __local KEY_T* keys, __local OFFSET_T* found)
{
    const uint item = get_local_id(0);
    for (uint e = 0; e < ENDS; e++) {
        keys[e * WG + item] = best->key[e];
        found[e * WG + item] = best->at[e];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = share / 2; d > 0; d /= 2) {
        if (own < d) {
            for (uint e = 0; e < ENDS; e++) {
                const uint mine = e * WG + item, other = mine + d * distance;
                const KEY_T key = keys[other];
                const OFFSET_T at = found[other];
                if (key < best->key[e] || (key == best->key[e] && at < best->at[e])) {
                    keys[mine] = best->key[e] = key;
                    found[mine] = best->at[e] = at;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#else

// Outputs of an item at most.
#define COLS 64
// Elements of which the least is found at once.
#define BLOCK 256

// The elements start .. end of a line.
static inline void walk_blocks(
    __global const T* in, const long stride, const OFFSET_T start, const OFFSET_T end, Best* best)
{
    uint count;
    for (OFFSET_T i = start; i < end; i += count) {
        count = (uint)min((OFFSET_T)BLOCK, (OFFSET_T)(end - i));
        __global const T* block = in + (long)i * stride;
        for (uint e = 0; e < ENDS; e++) {
            KEY_T least = KEY_HIGHEST;
            for (uint k = 0; k < count; k++) {
                least = min(least, key_at(ALONG(block, k), e));
            }
            if (least < best->key[e]) {
                uint k = 0;
                while (key_at(ALONG(block, k), e) != least) {
                    k++;
                }
                best->key[e] = least;
                best->at[e] = i + k;
            }
        }
    }
}

#endif

// Writes what output `output` has of part `part`; `values` and `places` are where those of output 0 go.
static inline void store_best(
    const Best* best, __global const T* in, const long stride, const OFFSET_T output, const OFFSET_T outputs,
    const OFFSET_T part, const OFFSET_T parts, __global T* values, __global ulong* places)
{
    for (uint e = 0; e < ENDS; e++) {
        const ulong slot = (ulong)e * outputs + output;
        places[slot * parts + part] = best->at[e];
        if (parts == 1) {
            values[slot] = in[(long)best->at[e] * stride];
        }
    }
}

// Group g has part g % parts of the outputs columns * (g / parts) .. of `outputs`. With one part it writes elements and
// indices, those of the second end `outputs` further on; else to `places` alone each part's index, the parts of an output
// together.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_extremes(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, const uint columns, const uint across,
    __global T* restrict values_base, const ulong values_offset, __global ulong* restrict places_base,
    const ulong places_offset)
{
    __global T* values = values_base + values_offset;
    __global ulong* places = places_base + places_offset;
    const OFFSET_T part = (OFFSET_T)get_group_id(0) % parts;
    const OFFSET_T first = (OFFSET_T)get_group_id(0) / parts * columns;
    const OFFSET_T start = part * run, end = len - start > run ? start + run : len;
#if WG > 1
    __local KEY_T keys[ENDS * WG];
    __local OFFSET_T found[ENDS * WG];
    const uint item = get_local_id(0), share = WG / columns;
    const uint column = across ? item % columns : item / share, own = across ? item / columns : item % share;
    const OFFSET_T output = first + column;
    // Items without an output do what the last one's do, and write nothing.
    __global const T* in = LINE(min(output, (OFFSET_T)(outputs - 1)));
    Best best = nothing_yet(start);
    if (stride == 1) {
        walk_vectors(in, start, end, own, share, &best);
    } else {
        walk(in, stride, start, end, own, share, &best);
    }
    best_of_share(&best, own, share, across ? columns : 1, keys, found);
    if (own == 0 && output < outputs) {
        store_best(&best, in, stride, output, outputs, part, parts, values, places);
    }
#else
    const uint count = (uint)min((OFFSET_T)columns, (OFFSET_T)(outputs - first));
    if (!across) {
        for (uint c = 0; c < count; c++) {
            __global const T* in = LINE(first + c);
            Best best = nothing_yet(start);
            if (stride == 1) {
                walk_blocks(in, 1, start, end, &best);
            } else {
                walk_blocks(in, stride, start, end, &best);
            }
            store_best(&best, in, stride, first + c, outputs, part, parts, values, places);
        }
        return;
    }
    long at[COLS];
    uint neighbours = count == COLS;
    for (uint c = 0; c < COLS; c++) {
        at[c] = place(first + min(c, count - 1), shape, strides, dims);
        neighbours &= at[c] == at[0] + c;
    }
    KEY_T key[ENDS * COLS];
    OFFSET_T found[ENDS * COLS];
    for (uint c = 0; c < ENDS * COLS; c++) {
        key[c] = KEY_HIGHEST;
        found[c] = start;
    }
#define TAKE(c, x)                                                                                                     \
    const KEY_T next = key_at(to_acc(x), e);                                                                           \
    const int comes_before = next < key[e * COLS + c];                                                                 \
    key[e * COLS + c] = comes_before ? next : key[e * COLS + c];                                                       \
    found[e * COLS + c] = comes_before ? i : found[e * COLS + c];
    for (OFFSET_T i = start; i < end; i++) {
        __global const T* row = in_base + in_offset + (long)i * stride;
        for (uint e = 0; e < ENDS; e++) {
            if (neighbours) {
                for (uint c = 0; c < COLS; c++) {
                    TAKE(c, row[at[0] + c])
                }
            } else {
                for (uint c = 0; c < count; c++) {
                    TAKE(c, row[at[c]])
                }
            }
        }
    }
    for (uint c = 0; c < count; c++) {
        Best best;
        for (uint e = 0; e < ENDS; e++) {
            best.key[e] = key[e * COLS + c];
            best.at[e] = found[e * COLS + c];
        }
        store_best(&best, in_base + in_offset + at[c], stride, first + c, outputs, part, parts, values, places);
    }
#endif
}

// Group g has the outputs columns * g ..: the first of what their parts found, whose indices are in `from`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_extremes_parts(
    LINES, __global const ulong* restrict from, const OFFSET_T parts, const uint columns,
    __global T* restrict values_base, const ulong values_offset, __global ulong* restrict places_base,
    const ulong places_offset)
{
#if WG > 1
    __local KEY_T keys[ENDS * WG];
    __local OFFSET_T firsts[ENDS * WG];
#endif
    const uint item = get_local_id(0), share = WG / columns, own = item % share;
    const OFFSET_T output = (OFFSET_T)get_group_id(0) * columns + item / share;
    const OFFSET_T counted = min(output, (OFFSET_T)(outputs - 1));
    __global const T* in = LINE(counted);
    Best best = nothing_yet(0);
    for (uint e = 0; e < ENDS; e++) {
        __global const ulong* found = from + ((ulong)e * outputs + counted) * parts;
        for (OFFSET_T part = own; part < parts; part += share) {
            const OFFSET_T at = (OFFSET_T)found[part];
            const KEY_T key = key_at(ALONG(in, at), e);
            if (key < best.key[e]) {
                best.key[e] = key;
                best.at[e] = at;
            }
        }
    }
#if WG > 1
    best_of_share(&best, own, share, 1, keys, firsts);
#endif
    if (own == 0 && output < outputs) {
        store_best(&best, in, stride, output, outputs, 0, 1, values_base + values_offset, places_base + places_offset);
    }
}
