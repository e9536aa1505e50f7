// Reverse: out[i] = in[n - 1 - i], or the same in place.
//
// An element has PARTS units. The size of a unit is the largest power of two, up to 16 bytes, that divides the
// element's size. If an element is one unit, whole words of 16 bytes are reversed:
//
//     reverse_words               the words of the output begin at byte `head`. Word w mirrors the 16 bytes of the
//                                 input that end head + 16 * w bytes before its end. If these bytes straddle two
//                                 aligned words, both words are read whole
//     swap_words                  in place: words from both ends, where both are aligned
//     reverse_units, swap_units   unit by unit: all other cases
//     reverse_runs, swap_runs     a work-group is one work-item, which takes `run` neighbours: for CPU drivers
//
// The elements before and after the words are the edges, moved one by one. The host promises that every word read lies
// within the input, and that input and output do not overlap. Bytes: reads and writes n elements.
#include "lib/words.cl"

#ifndef UNIT
#define UNIT uint
#define UNIT_BYTES 4
#define PARTS 1
#endif

// Returns the index of the unit of the input that goes to unit i. In place, the two units change places.
static inline ulong mirrored(ulong i, ulong n)
{
    return PARTS == 1 ? n - 1 - i : (n - 1 - i / PARTS) * PARTS + i % PARTS;
}

#ifdef DEVICE_CPU

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void reverse_runs(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const ulong n, const ulong run)
{
    const ulong first = get_group_id(0) * run, end = n - first > run ? first + run : n;
    __global const UNIT* in = in_base + in_offset * PARTS;
    __global UNIT* out = out_base + out_offset * PARTS;
    for (ulong i = first; i < end; i++) {
        for (uint p = 0; p < PARTS; p++) {
            out[i * PARTS + p] = in[(n - 1 - i) * PARTS + p];
        }
    }
}

// `run` counts pairs.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void swap_runs(
    __global UNIT* restrict x_base, const ulong offset, const ulong n, const ulong run)
{
    const ulong pairs = n / 2, first = get_group_id(0) * run, end = pairs - first > run ? first + run : pairs;
    __global UNIT* x = x_base + offset * PARTS;
    for (ulong i = first; i < end; i++) {
        for (uint p = 0; p < PARTS; p++) {
            const UNIT a = x[i * PARTS + p];
            x[i * PARTS + p] = x[(n - 1 - i) * PARTS + p];
            x[(n - 1 - i) * PARTS + p] = a;
        }
    }
}

#else

#ifndef WG
#define WG 256
#endif

#if PARTS == 1

// The elements of a word in the other order.
static inline uint4 turned(uint4 word)
{
#if UNIT_BYTES == 1
    const uint4 x = word.wzyx;
    return (rotate(x, (uint4)(8)) & 0x00ff00ffu) | (rotate(x, (uint4)(24)) & 0xff00ff00u);
#elif UNIT_BYTES == 2
    return rotate(word.wzyx, (uint4)(16));
#elif UNIT_BYTES == 4
    return word.wzyx;
#elif UNIT_BYTES == 8
    return word.zwxy;
#else
    return word;
#endif
}

// A work-item takes two words, WG apart. `last` is the byte of the buffer at which the 16 bytes for word 0 begin.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void reverse_words(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const ulong n, const uint head, const ulong words)
{
    const ulong last = (in_offset + n) * UNIT_BYTES - head - 16;
    const uint shift = (uint)(last % 16);
    __global const uint4* in = (__global const uint4*)((__global const uchar*)in_base + (last - shift));
    __global uint4* out = (__global uint4*)((__global uchar*)out_base + (out_offset * UNIT_BYTES + head));
    const ulong first = get_group_id(0) * (ulong)(2 * WG) + get_local_id(0), second = first + WG;
    uint4 a, b;
    if (first < words) {
        a = *(in - first);
        a = shift > 0 ? funnel(a, *(in - first + 1), shift) : a;
    }
    if (second < words) {
        b = *(in - second);
        b = shift > 0 ? funnel(b, *(in - second + 1), shift) : b;
    }
    if (first < words) {
        out[first] = turned(a);
    }
    if (second < words) {
        out[second] = turned(b);
    }
    const ulong before = head / UNIT_BYTES, body = words * (16 / UNIT_BYTES);
    for (ulong e = get_global_id(0); e < n - body; e += get_global_size(0)) {
        const ulong i = e < before ? e : e + body;
        out_base[out_offset + i] = in_base[in_offset + n - 1 - i];
    }
}

// As many bytes come before the words as after them. A work-item swaps a pair of words. If there is a middle word, it
// is paired with itself.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void swap_words(
    __global UNIT* restrict x_base, const ulong offset, const ulong n, const uint head, const ulong words)
{
    __global uint4* x = (__global uint4*)((__global uchar*)x_base + (offset * UNIT_BYTES + head));
    const ulong first = get_global_id(0);
    if (first < (words + 1) / 2) {
        const uint4 a = x[first], b = x[words - 1 - first];
        x[first] = turned(b);
        x[words - 1 - first] = turned(a);
    }
    if (first < head / UNIT_BYTES) {
        const ulong low = offset + first, high = offset + n - 1 - first;
        const UNIT a = x_base[low];
        x_base[low] = x_base[high];
        x_base[high] = a;
    }
}

#endif

// A work-item takes four units, WG apart.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void reverse_units(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const ulong n)
{
    __global const UNIT* in = in_base + in_offset * PARTS;
    __global UNIT* out = out_base + out_offset * PARTS;
    const ulong units = n * PARTS, first = get_group_id(0) * (ulong)(4 * WG) + get_local_id(0);
    UNIT x[4];
    _Pragma("unroll")
    for (uint k = 0; k < 4; k++) {
        if (first + k * WG < units) {
            x[k] = in[mirrored(first + k * WG, n)];
        }
    }
    _Pragma("unroll")
    for (uint k = 0; k < 4; k++) {
        if (first + k * WG < units) {
            out[first + k * WG] = x[k];
        }
    }
}

// A work-item takes four pairs, WG apart.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void swap_units(
    __global UNIT* restrict x_base, const ulong offset, const ulong n)
{
    __global UNIT* x = x_base + offset * PARTS;
    const ulong pairs = n / 2 * PARTS, first = get_group_id(0) * (ulong)(4 * WG) + get_local_id(0);
    UNIT low[4], high[4];
    _Pragma("unroll")
    for (uint k = 0; k < 4; k++) {
        if (first + k * WG < pairs) {
            low[k] = x[first + k * WG];
            high[k] = x[mirrored(first + k * WG, n)];
        }
    }
    _Pragma("unroll")
    for (uint k = 0; k < 4; k++) {
        if (first + k * WG < pairs) {
            x[first + k * WG] = high[k];
            x[mirrored(first + k * WG, n)] = low[k];
        }
    }
}

#endif
