// Copy: `bytes` bytes from any byte of one buffer to any byte of another, in 16-byte words.
//
// Memory moves fastest if each work-item moves aligned words of 16 bytes. The destination decides where words start.
// Its whole words, `words` of them from byte `head` on, are the body. The bytes before and after the body are the
// edges, moved one by one. If the source has the same alignment, a word of the body is one word of the source.
// Otherwise it straddles two words of the source, which are read whole and shifted together. Neighbouring work-items
// share these words through the L1 cache.
//
//     out: [head bytes | word 0 | word 1 | ... | tail bytes]      aligned at word 0
//     in:        [ a[0] | a[1] | a[2] ... ]                       aligned at a[0], `shift` bytes before the body
//
// The host promises that every word read lies within the source, and that source and destination do not overlap. Bytes:
// reads `bytes` once (words that are read twice come from the cache), writes `bytes`.
#include "lib/words.cl"

#ifndef OFFSET_T
#define OFFSET_T uint
#endif

#ifdef DEVICE_CPU

// One work-item moves `run` contiguous bytes, a multiple of 64; the last one moves the remaining bytes. CPUs load and
// store at any address, so there are no edges, and their compilers optimise a plain loop best.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void copy_runs(
    __global const uchar* restrict in_base, const ulong in_offset, __global uchar* restrict out_base,
    const ulong out_offset, const ulong bytes, const ulong run)
{
    const ulong first = get_group_id(0) * run;
    const ulong end = bytes - first > run ? first + run : bytes;
    __global const uchar* in = in_base + in_offset;
    __global uchar* out = out_base + out_offset;
    for (ulong i = first; i < end; i++) {
        out[i] = in[i];
    }
}

#else

#ifndef WG
#define WG 128
// Words of one work-item, WG apart; all are read before the first is written.
#define WORDS 1
#endif

// Copies the edges: the first `head` bytes and those after the body. All work-items of the grid call it.
static inline void copy_edges(__global const uchar* in, __global uchar* out, ulong bytes, uint head, ulong body)
{
    const ulong edge = bytes - body;
    for (ulong i = get_global_id(0); i < edge; i += get_global_size(0)) {
        const ulong at = i < head ? i : i + body;
        out[at] = in[at];
    }
}

// Source and destination have the same alignment: (in_offset + head) % 16 is 0.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void copy_words(
    __global const uchar* restrict in_base, const ulong in_offset, __global uchar* restrict out_base,
    const ulong out_offset, const ulong bytes, const uint head, const OFFSET_T words)
{
    __global const uint4* in = (__global const uint4*)(in_base + in_offset + head);
    __global uint4* out = (__global uint4*)(out_base + out_offset + head);
    const OFFSET_T first = (OFFSET_T)get_group_id(0) * (WG * WORDS) + get_local_id(0);
    uint4 word[WORDS];
    for (uint k = 0; k < WORDS; k++) {
        if (first + k * WG < words) {
            word[k] = in[first + k * WG];
        }
    }
    for (uint k = 0; k < WORDS; k++) {
        if (first + k * WG < words) {
            out[first + k * WG] = word[k];
        }
    }
    copy_edges(in_base + in_offset, out_base + out_offset, bytes, head, (ulong)words * 16);
}

// The source has another alignment than the destination: (in_offset + head) % 16 is not 0.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void copy_shifted(
    __global const uchar* restrict in_base, const ulong in_offset, __global uchar* restrict out_base,
    const ulong out_offset, const ulong bytes, const uint head, const OFFSET_T words)
{
    const uint shift = (uint)(in_offset + head) % 16;
    __global const uint4* in = (__global const uint4*)(in_base + (in_offset + head - shift));
    __global uint4* out = (__global uint4*)(out_base + out_offset + head);
    const OFFSET_T first = (OFFSET_T)get_group_id(0) * (WG * WORDS) + get_local_id(0);
    uint4 lo[WORDS], hi[WORDS];
    for (uint k = 0; k < WORDS; k++) {
        if (first + k * WG < words) {
            lo[k] = in[first + k * WG];
            hi[k] = in[first + k * WG + 1];
        }
    }
    for (uint k = 0; k < WORDS; k++) {
        if (first + k * WG < words) {
            out[first + k * WG] = funnel(lo[k], hi[k], shift);
        }
    }
    copy_edges(in_base + in_offset, out_base + out_offset, bytes, head, (ulong)words * 16);
}

#endif
