// Where segments start in a scan: a bit for each element of a tile.
//
//     BY_KEYS      where a key differs from the one before it
//     BY_FLAGS     where a byte is not 0
//     BY_OFFSETS   at offsets, of type S, which may repeat; RANK(t) .. RANK(t + 1) are those in tile t
//     BY_ROWS      at each multiple of `row`
//
// With REVERSE a segment starts with its last element, and the ranks fall. Whether the first element of all starts one makes no
// difference to a scan; nor do bits of elements that are missing.
//
// HEAD_PARAMS: parameters behind the others; HEAD_PASS: what to pass for them. Needs types.cl, TILE, and where things lie in the
// order of the scan: AT, RUN_AT and IN_RUN.
#ifndef OCLPRIM_HEADS_CL
#define OCLPRIM_HEADS_CL

#if defined(BY_KEYS) || defined(BY_FLAGS)

#ifndef KEY
#define KEY uchar
#define KEY_BYTES 1
#endif
#define HEAD_PARAMS , __global const KEY *keys_base, const ulong keys_offset
#define HEAD_PASS , keys_base, keys_offset
#ifdef BY_KEYS
#include "lib/equal.cl"
#endif

// A run's keys are one vector, or some of 16 bytes.
#if VEC * KEY_BYTES >= 16
#define PIECE (16 / KEY_BYTES)
#else
#define PIECE VEC
#endif
#if PIECE == 16
#define KEYV CAT(KEY, 16)
#define KEY_VLOAD vload16
#define KEY_VSTORE vstore16
#elif PIECE == 8
#define KEYV CAT(KEY, 8)
#define KEY_VLOAD vload8
#define KEY_VSTORE vstore8
#elif PIECE == 4
#define KEYV CAT(KEY, 4)
#define KEY_VLOAD vload4
#define KEY_VSTORE vstore4
#else
#define KEYV CAT(KEY, 2)
#define KEY_VLOAD vload2
#define KEY_VSTORE vstore2
#endif

// The bits of the run at `place` of the tile that starts at `base`. `whole`: none of the tile's elements is missing. Any item
// may call it.
static inline uint run_heads(const bool whole, OFFSET_T base, uint place, OFFSET_T n HEAD_PARAMS)
{
    __global const KEY* keys = keys_base + keys_offset;
    const OFFSET_T first = base + place;
    KEY run[VEC];
    if (whole) {
        __global const KEY* p = keys + RUN_AT(first, n);
        for (uint v = 0; v < VEC / PIECE; v++) {
#ifdef HEADS_ALIGNED
            KEY_VSTORE(((__global const KEYV*)p)[v], v, run);
#else
            KEY_VSTORE(KEY_VLOAD(v, p), v, run);
#endif
        }
    } else {
        for (uint j = 0; j < VEC; j++) {
            run[IN_RUN(j)] = keys[AT(min(first + j, n - 1), n)];
        }
    }
    uint heads = 0;
#if defined(BY_KEYS) || defined(REVERSE)
    KEY before = keys[AT(min(first > 0 ? first - 1 : 0, n - 1), n)];
    for (uint j = 0; j < VEC; j++) {
        const KEY key = run[IN_RUN(j)];
#ifdef BY_KEYS
        heads |= (uint)!equal(before, key) << j;
#else
        heads |= (uint)(before != 0) << j;
#endif
        before = key;
    }
#else
    for (uint j = 0; j < VEC; j++) {
        heads |= (uint)(run[j] != 0) << j;
    }
#endif
    return heads;
}

#elif defined(BY_ROWS)

#define HEAD_PARAMS , const OFFSET_T row
#define HEAD_PASS , row

// As above.
static inline uint run_heads(const bool whole, OFFSET_T base, uint place, OFFSET_T n HEAD_PARAMS)
{
    // The place of the tile's first head.
    const OFFSET_T rest = base % row, next = rest == 0 ? 0 : row - rest;
    if (row >= TILE) {
        const OFFSET_T at = next - place;
        return at < VEC ? 1u << (uint)at : 0;
    }
    const uint length = (uint)row;
    uint heads = 0, at = (place + length - (uint)next) % length;
    for (uint j = 0; j < VEC; j++) {
        heads |= (uint)(at == 0) << j;
        at = at + 1 == length ? 0 : at + 1;
    }
    return heads;
}

#elif defined(BY_OFFSETS)

#ifndef S
#define S uint
#endif
#define POS_T ulong
#include "lib/ranks.cl"

#define HEAD_PARAMS                                                                                                    \
    , __global const S *offsets_base, const ulong offsets_offset, __global const OFFSET_T *ranks_base,                 \
        const ulong ranks_at
#define HEAD_PASS , offsets_base, offsets_offset, ranks_base, ranks_at
#ifdef REVERSE
#define FIRST_RANK(tile) ranks_base[ranks_at + (tile) + 1]
#define END_RANK(tile) ranks_base[ranks_at + (tile)]
#else
#define FIRST_RANK(tile) ranks_base[ranks_at + (tile)]
#define END_RANK(tile) ranks_base[ranks_at + (tile) + 1]
#endif

// What is in ranks[t], of `count` offsets.
static inline OFFSET_T rank_of_tile(__global const S* offsets, OFFSET_T count, OFFSET_T t, OFFSET_T n)
{
    const ulong base = (ulong)t * TILE;
#ifdef REVERSE
    return base > n ? 0 : rank_within(offsets, 0, count, n - base);
#else
    return base == 0 ? 0 : rank_within(offsets, 0, count, base - 1);
#endif
}

// Whether element i starts a segment, if the offsets of its tile are those from `low` on, below `high`.
static inline bool starts(__global const S* offsets, OFFSET_T low, OFFSET_T high, OFFSET_T i, OFFSET_T n)
{
    const ulong p = AT(i, (ulong)n + 1);
    const OFFSET_T rank = rank_within(offsets, low, high, p);
    return rank > low && offsets[rank - 1] == p;
}

// As above, by a search for each element.
static inline uint run_heads(const bool whole, OFFSET_T base, uint place, OFFSET_T n HEAD_PARAMS)
{
    __global const S* offsets = offsets_base + offsets_offset;
    const OFFSET_T tile = base / TILE, low = FIRST_RANK(tile), high = END_RANK(tile);
    uint heads = 0;
    for (uint j = 0; j < VEC; j++) {
        heads |= (uint)starts(offsets, low, high, base + place + j, n) << j;
    }
    return heads;
}

// One item has bits of its own, several share them. AT_ONCE offsets are on their way to each: H200, 2^28 u32 by a power law, 867 us
// for 934 with one.
#if WG == 1
#define AT_ONCE 1
#define SHARED
#define SET_BIT(bits, at) ((bits)[(at) / 32] |= 1u << (at) % 32)
#else
#define AT_ONCE 4
#define SHARED __local
#define SET_BIT(bits, at) atomic_or((bits) + (at) / 32, 1u << (at) % 32)
#endif

// Puts the bits of a tile into `bits`, where all are 0. All items of the work-group call it, and wait for one another then.
// Many more offsets than elements are of segments of length 0, and are searched instead.
INLINED void mark_offsets(SHARED uint* bits, OFFSET_T tile, OFFSET_T n HEAD_PARAMS)
{
    __global const S* offsets = offsets_base + offsets_offset;
    const OFFSET_T low = FIRST_RANK(tile), high = END_RANK(tile);
    const ulong base = (ulong)tile * TILE;
    if (high - low <= 2 * TILE) {
        for (OFFSET_T rank = low + (OFFSET_T)get_local_id(0); rank < high; rank += AT_ONCE * WG) {
            S offset[AT_ONCE];
            _Pragma("unroll")
            for (uint h = 0; h < AT_ONCE; h++) {
                offset[h] = offsets[min(rank + h * WG, high - 1)];
            }
            _Pragma("unroll")
            for (uint h = 0; h < AT_ONCE; h++) {
                // Offsets that are in no order may be anywhere.
                const ulong at = AT((ulong)offset[h], (ulong)n + 1) - base;
                if (rank + h * WG < high && at < TILE) {
                    SET_BIT(bits, (uint)at);
                }
            }
        }
    } else {
        for (uint at = get_local_id(0); at < TILE; at += WG) {
            if (starts(offsets, low, high, base + at, n)) {
                SET_BIT(bits, at);
            }
        }
    }
}

#endif
#endif
