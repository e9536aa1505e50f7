// Reverse: out[i] = in[n - 1 - i], or the same in place.
//
// An element is PARTS units, each the largest power of two of bytes that divides the element. Where it is one unit, whole
// words of 16 bytes are turned:
//
//     reverse_words       word w of the output, from byte `head` on, is the one that ends as far from the input's end; it
//                         straddles two aligned words, which are read whole, unless it is aligned itself
//     swap_words          in place: words from both ends, where both are aligned
//     reverse_elements, swap_elements              one by one: all other cases
//     reverse_runs, swap_runs                      one item a group, on `run` neighbours: for CPU drivers (DEVICE_CPU)
//
// The elements before and after the words are the edges, moved one by one. The host promises that every word read lies
// within the input, and that input and output do not overlap. Bytes: reads and writes n elements.
#include "lib/words.cl"

#ifndef UNIT
#define UNIT uint
#define UNIT_BYTES 4
#endif
#ifndef PARTS
#define PARTS 1
#endif

static inline void move_element(__global const UNIT* in, __global UNIT* out)
{
    for (uint p = 0; p < PARTS; p++) {
        out[p] = in[p];
    }
}

static inline void swap_element(__global UNIT* a, __global UNIT* b)
{
    for (uint p = 0; p < PARTS; p++) {
        const UNIT x = a[p];
        a[p] = b[p];
        b[p] = x;
    }
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
        move_element(in + (n - 1 - i) * PARTS, out + i * PARTS);
    }
}

// `run` is of pairs.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void swap_runs(
    __global UNIT* restrict x_base, const ulong offset, const ulong n, const ulong run)
{
    const ulong pairs = n / 2, first = get_group_id(0) * run, end = pairs - first > run ? first + run : pairs;
    __global UNIT* x = x_base + offset * PARTS;
    for (ulong i = first; i < end; i++) {
        swap_element(x + i * PARTS, x + (n - 1 - i) * PARTS);
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
    return as_uint4(as_uchar16(word).sfedcba9876543210);
#elif UNIT_BYTES == 2
    return as_uint4(as_ushort8(word).s76543210);
#elif UNIT_BYTES == 4
    return word.wzyx;
#elif UNIT_BYTES == 8
    return word.zwxy;
#else
    return word;
#endif
}

// An item takes two words, WG apart. `last` is the byte of the input at which the first word begins.
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

// The bytes before and after the words are as many. An item takes a pair of words; the middle one is its own pair.
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
        swap_element(x_base + offset + first, x_base + offset + n - 1 - first);
    }
}

#endif

// An item takes four elements, WG apart.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void reverse_elements(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const ulong n)
{
    __global const UNIT* in = in_base + in_offset * PARTS;
    __global UNIT* out = out_base + out_offset * PARTS;
    const ulong first = get_group_id(0) * (ulong)(4 * WG) + get_local_id(0);
    for (uint k = 0; k < 4; k++) {
        if (first + k * WG < n) {
            move_element(in + (n - 1 - first - k * WG) * PARTS, out + (first + k * WG) * PARTS);
        }
    }
}

// An item takes four pairs, WG apart.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void swap_elements(
    __global UNIT* restrict x_base, const ulong offset, const ulong n)
{
    __global UNIT* x = x_base + offset * PARTS;
    const ulong first = get_group_id(0) * (ulong)(4 * WG) + get_local_id(0);
    for (uint k = 0; k < 4; k++) {
        if (first + k * WG < n / 2) {
            swap_element(x + (first + k * WG) * PARTS, x + (n - 1 - first - k * WG) * PARTS);
        }
    }
}

#endif
