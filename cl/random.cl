// Random numbers by counter: Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011).
//
// Block b of a stream is 16 bytes: the generator's four words for the counter (b, stream) and the key `seed`. Each of
// b, stream and seed has two words, the low one first. Element i is computed from bytes [i * DRAW, (i + 1) * DRAW) of
// the stream alone:
//
//     integers, all bits     its own bytes
//     floats in [0, 1)       u: the highest bits of its own bytes, as many as the type's precision, times a power of
//                            two
//     floats in a range      (lower + u * width) * scale, with the same u. A result that rounds to the upper bound is
//                            replaced by `last`, the value below it. The scale is 1. If the width overflows A, `lower`
//                            and `width` are halved, and the scale is 2
//     integers in a range    lower + floor(span * b / 2^w), where b is its own bytes, of w bits: 64, or 128 for
//                            types of 8 bytes
//
// Where the output's words of 16 bytes hold parts of two blocks, STRADDLE is set. On a GPU a work-item writes a word at
// a time. With STRADDLE, if DRAW is T_BYTES, work-items share blocks in local memory, so that most are computed once.
// On CPU drivers (WG is 1) a work-item writes `run` words. Bytes: writes n elements.
#include "lib/types.cl"
#include "lib/words.cl"

#ifndef WG
#define WG 256
// Bytes of a stream that an element takes.
#define DRAW T_BYTES
#endif

// Blocks for a word of the output.
#define BLOCKS (DRAW / T_BYTES)

static inline uint4 philox(ulong block, ulong stream, ulong seed)
{
    uint x = (uint)block, y = (uint)(block >> 32), z = (uint)stream, w = (uint)(stream >> 32);
    uint low = (uint)seed, high = (uint)(seed >> 32);
    _Pragma("unroll")
    for (uint round = 0; round < 10; round++) {
        const uint a = mul_hi(0xd2511f53u, x), b = mul_hi(0xcd9e8d57u, z);
        const uint c = 0xd2511f53u * x, d = 0xcd9e8d57u * z;
        x = b ^ y ^ low;
        y = d;
        z = a ^ w ^ high;
        w = c;
        low += 0x9e3779b9u;
        high += 0xbb67ae85u;
    }
    return (uint4)(x, y, z, w);
}

#ifdef T_FLOAT

#if T_BYTES == 8
#define BITS ulong
#define UNIT(bits) ((A)((bits) >> 11) * 0x1p-53)
#elif T_BYTES == 4
#define BITS uint
#define UNIT(bits) ((A)((bits) >> 8) * 0x1p-24f)
#elif defined(T_F16)
#define BITS ushort
#define UNIT(bits) ((A)((bits) >> 5) * 0x1p-11f)
#else
#define BITS ushort
#define UNIT(bits) ((A)((bits) >> 8) * 0x1p-8f)
#endif

#ifdef RANGE
#define RANGE_PARAMS , const A lower, const A width, const A scale, const A upper, const A last
#define RANGE_ARGS , lower, width, scale, upper, last
#else
#define RANGE_PARAMS
#define RANGE_ARGS
#endif

// A float from its bits.
static inline T made(BITS bits RANGE_PARAMS)
{
#ifdef RANGE
    const T x = narrow_acc((lower + UNIT(bits) * width) * scale);
    return widen(x) >= upper ? narrow_acc(last) : x;
#else
    return narrow_acc(UNIT(bits));
#endif
}

#else

#ifdef RANGE
#define RANGE_PARAMS , const ulong lower, const ulong span
#define RANGE_ARGS , lower, span
#else
#define RANGE_PARAMS
#define RANGE_ARGS
#endif

#endif

#if DRAW == T_BYTES

// The elements of a word of the output, from its 16 bytes of the stream.
static inline void make(uint4 bytes, T* x RANGE_PARAMS)
{
    union {
        uint4 bytes;
#ifdef T_FLOAT
        BITS bits[VEC];
#else
        T bits[VEC];
#endif
    } from;
    from.bytes = bytes;
    _Pragma("unroll")
    for (uint j = 0; j < VEC; j++) {
#ifdef T_FLOAT
        x[j] = made(from.bits[j] RANGE_ARGS);
#else
        x[j] = from.bits[j];
#endif
    }
}

#else

#ifdef STRADDLE
#define HALF(j) ((j) + 1)
#else
#define HALF(j) (j)
#endif

// The elements of a word of the output, from the blocks that begin with block `first`.
static inline void make_range(ulong first, ulong stream, ulong seed, T* x RANGE_PARAMS)
{
#if DRAW == 16
    _Pragma("unroll")
    for (uint j = 0; j < VEC; j++) {
        const ulong2 bits = as_ulong2(philox(first + j, stream, seed));
        // floor(span * b / 2^128), where b is the 128 random bits. A span of 0 stands for 2^64.
        const ulong high = bits.y * span, carried = mul_hi(bits.x, span);
        const ulong above = mul_hi(bits.y, span) + (high + carried < high ? 1 : 0);
        x[j] = (T)(lower + (span == 0 ? bits.y : above));
    }
#else
    ulong2 bits = as_ulong2(philox(first, stream, seed));
    _Pragma("unroll")
    for (uint j = 0; j < VEC; j++) {
        if (j > 0 && HALF(j) % 2 == 0) {
            bits = as_ulong2(philox(first + HALF(j) / 2, stream, seed));
        }
        x[j] = (T)(lower + mul_hi(HALF(j) % 2 == 0 ? bits.x : bits.y, span));
    }
#endif
}

#endif

// Stores word w of the output: VEC elements from w * VEC - pad on, without those outside the output.
static inline void put(__global T* out, const OFFSET_T n, const uint pad, const OFFSET_T word, const T* x)
{
    const OFFSET_T first = word * VEC;
    if (first >= pad && first + VEC <= n + pad) {
        *(__global TV*)(out + (first - pad)) = VLOAD(0, x);
    } else {
        for (uint j = 0; j < VEC; j++) {
            if (first + j >= pad && first + j - pad < n) {
                out[first + j - pad] = x[j];
            }
        }
    }
}

// Writes `words` words. The first one begins `pad` elements before the output, and takes bytes from byte `shift` of
// block `first` on. If DRAW > T_BYTES, it begins with a half of that block: the second half if STRADDLE is set, else
// the first.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void random_words(
    __global T* restrict out_base, const ulong out_offset, const OFFSET_T n, const uint pad, const OFFSET_T words,
    const OFFSET_T run, const ulong first, const uint shift, const ulong stream, const ulong seed RANGE_PARAMS)
{
    __global T* out = out_base + out_offset;
    T x[VEC];
#if DRAW == T_BYTES && defined(STRADDLE) && WG > 1
    // WG blocks give WG - 1 words.
    __local uint4 blocks[WG];
    const uint item = get_local_id(0);
    for (OFFSET_T base = get_group_id(0) * (WG - 1); base < words; base += get_num_groups(0) * (WG - 1)) {
        blocks[item] = philox(first + base + item, stream, seed);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < WG - 1 && base + item < words) {
            make(funnel(blocks[item], blocks[item + 1], shift), x RANGE_ARGS);
            put(out, n, pad, base + item, x);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
#if WG == 1
    const OFFSET_T begin = get_group_id(0) * run, end = begin + min(run, words - begin), step = 1;
#else
    const OFFSET_T begin = get_global_id(0), end = words, step = get_global_size(0);
#endif
#if DRAW == T_BYTES && defined(STRADDLE)
    uint4 low = philox(first + begin, stream, seed);
#endif
    for (OFFSET_T w = begin; w < end; w += step) {
#if DRAW > T_BYTES
        make_range(first + (ulong)w * BLOCKS, stream, seed, x RANGE_ARGS);
#elif defined(STRADDLE)
        const uint4 high = philox(first + w + 1, stream, seed);
        make(funnel(low, high, shift), x RANGE_ARGS);
        low = high;
#else
        make(philox(first + w, stream, seed), x RANGE_ARGS);
#endif
        put(out, n, pad, w, x);
    }
#endif
}
