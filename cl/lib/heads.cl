// Segment-head flags of a scan: bit i is set if element i of a tile starts a segment.
//
//     BY_KEYS      keys[i] != keys[i - 1]
//     BY_FLAGS     flags[i] != 0
//     BY_OFFSETS   i is one of the offsets, of type S, which may repeat; ranks[t] counts offsets (rank_of_tile)
//     BY_ROWS      i is a multiple of `row`
//     none         no flag is set
//
// With REVERSE the segments are the same, but the head of a segment is its last element in memory. So flags[i + 1]
// marks element i, where i is an index in memory, and the ranks fall from tile to tile. The flag of the scan's first
// element has no effect. Flags beyond its last element have none, either.
//
// HEAD_PARAMS: parameters after the others; HEAD_PASS: the arguments for them. Needs types.cl, TILE, REVERSE as 0 or 1,
// and the order of the scan: AT, VECTOR_AT and IN_VECTOR.

// SEARCHES_OFFSETS: 1 if the work-items of a tile find its flags together, by searching the offsets; else 0.

#if defined(BY_KEYS) || defined(BY_FLAGS)

#ifndef KEY
#define KEY uchar
#define KEY_BYTES 1
#endif
#define SEARCHES_OFFSETS 0
#define HEAD_PARAMS , __global const KEY *keys_base, const ulong keys_offset
#define HEAD_PASS , keys_base, keys_offset
#ifndef HEADS_ALIGNED
#define HEADS_ALIGNED 0
#endif
#ifdef BY_KEYS
#include "lib/equal.cl"
#endif

// The keys of a vector of elements: one vector of PIECE keys, or several of 16 bytes.
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

// True if an element is a segment head: `own` is its key or flag, `before` that of the element before it.
static inline bool is_head(KEY before, KEY own)
{
#ifdef BY_KEYS
    return !equal(before, own);
#else
    return (REVERSE ? before : own) != 0;
#endif
}

// The flags of the vector of elements at `position` of the tile that starts at `base`. `whole`: all of its elements
// exist.
static inline uint vector_heads(const bool whole, OFFSET_T base, uint position, OFFSET_T n HEAD_PARAMS)
{
    __global const KEY* keys = keys_base + keys_offset;
    const OFFSET_T first = base + position;
    KEY own[VEC];
    if (whole) {
        __global const KEY* p = keys + VECTOR_AT(first, n);
        for (uint v = 0; v < VEC / PIECE; v++) {
            KEY_VSTORE(HEADS_ALIGNED ? ((__global const KEYV*)p)[v] : KEY_VLOAD(v, p), v, own);
        }
    } else {
        for (uint j = 0; j < VEC; j++) {
            own[IN_VECTOR(j)] = keys[AT(min(first + j, n - 1), n)];
        }
    }
    uint heads = 0;
    KEY before = keys[AT(min(first > 0 ? first - 1 : 0, n - 1), n)];
    for (uint j = 0; j < VEC; j++) {
        heads |= (uint)is_head(before, own[IN_VECTOR(j)]) << j;
        before = own[IN_VECTOR(j)];
    }
    return heads;
}

#elif defined(BY_ROWS)

#define SEARCHES_OFFSETS 0
#define HEAD_PARAMS , const OFFSET_T row
#define HEAD_PASS , row

static inline uint vector_heads(const bool whole, OFFSET_T base, uint position, OFFSET_T n HEAD_PARAMS)
{
    // The position of the tile's first head.
    const OFFSET_T rest = base % row, next = rest == 0 ? 0 : row - rest;
    if (row >= TILE) {
        const OFFSET_T at = next - position;
        return at < VEC ? 1u << (uint)at : 0;
    }
    const uint length = (uint)row;
    uint heads = 0, at = (position + length - (uint)next) % length;
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

#define SEARCHES_OFFSETS 1
#define HEAD_PARAMS                                                                                                    \
    , __global const S *offsets_base, const ulong offsets_offset, __global const OFFSET_T *ranks_base,                 \
        const ulong ranks_at
#define HEAD_PASS , offsets_base, offsets_offset, ranks_base, ranks_at

// The offsets of a tile have ranks in [first_rank(), end_rank()).
static inline OFFSET_T first_rank(__global const OFFSET_T* ranks, OFFSET_T tile)
{
    return ranks[(ulong)tile + REVERSE];
}
static inline OFFSET_T end_rank(__global const OFFSET_T* ranks, OFFSET_T tile)
{
    return ranks[(ulong)tile + 1 - REVERSE];
}

// ranks[t], from `count` sorted offsets. An offset p makes one element of the scan a head. ranks[t] is a number of
// offsets:
//
//                        head           offsets that ranks[t] counts
//     without REVERSE    element p      p < t * TILE: those of earlier tiles
//     with REVERSE       element n - p  n - p >= t * TILE: those of tile t and of later tiles
//
// With REVERSE a segment ends before index p in memory. Its last element has index p - 1 there, and n - p in the scan.
static inline OFFSET_T rank_of_tile(__global const S* offsets, OFFSET_T count, OFFSET_T t, OFFSET_T n)
{
    const ulong base = (ulong)t * TILE;
    if (REVERSE) {
        return base > n ? 0 : rank_within(offsets, 0, count, n - base);
    }
    return base == 0 ? 0 : rank_within(offsets, 0, count, base - 1);
}

// True if element i is a segment head. The offsets of its tile have ranks in [low, high).
static inline bool is_head(__global const S* offsets, OFFSET_T low, OFFSET_T high, OFFSET_T i, OFFSET_T n)
{
    const ulong p = AT(i, (ulong)n + 1);
    const OFFSET_T rank = rank_within(offsets, low, high, p);
    return rank > low && offsets[rank - 1] == p;
}

// Searches the offsets for each element, however many there are. With BY_OFFSETS, only recompute_tile() of
// scan_look_back.cl calls vector_heads().
static inline uint vector_heads(const bool whole, OFFSET_T base, uint position, OFFSET_T n HEAD_PARAMS)
{
    __global const S* offsets = offsets_base + offsets_offset;
    __global const OFFSET_T* ranks = ranks_base + ranks_at;
    const OFFSET_T tile = base / TILE, low = first_rank(ranks, tile), high = end_rank(ranks, tile);
    uint heads = 0;
    for (uint j = 0; j < VEC; j++) {
        heads |= (uint)is_head(offsets, low, high, base + position + j, n) << j;
    }
    return heads;
}

// The flags of a tile. If WG == 1, one work-item has the tile, and the flags are in private memory. Else the flags are
// in local memory, and all work-items set them. IN_FLIGHT: offsets that a work-item loads at once. H200, 2^28 u32 in
// segments by a power law: 867 us; with one at a time 934 us.
#if WG == 1
#define IN_FLIGHT 1
#define FLAG_SPACE
#define SET_BIT(bits, at) ((bits)[(at) / 32] |= 1u << (at) % 32)
#else
#define IN_FLIGHT 4
#define FLAG_SPACE __local
#define SET_BIT(bits, at) atomic_or((bits) + (at) / 32, 1u << (at) % 32)
#endif

// Sets the flags of a tile in `bits`, which are 0 before. All work-items call it; the flags are there after the next
// barrier. Both ways end in SET_BIT, which is an atomic_or, or a plain `or` if WG == 1:
//
//     at most 2 * TILE offsets in the tile:  each offset sets the bit of its element
//     more offsets:                          each element searches the offsets, and sets its own bit if it is a head
//
// A tile has more than 2 * TILE offsets only if most segments are empty. recompute_tile() of scan_look_back.cl does not
// use this function. It always searches the offsets for each element.
INLINED void set_head_bits(FLAG_SPACE uint* bits, OFFSET_T tile, OFFSET_T n HEAD_PARAMS)
{
    __global const S* offsets = offsets_base + offsets_offset;
    __global const OFFSET_T* ranks = ranks_base + ranks_at;
    const OFFSET_T low = first_rank(ranks, tile), high = end_rank(ranks, tile);
    const ulong base = (ulong)tile * TILE;
    if (high - low <= 2 * TILE) {
        for (OFFSET_T rank = low + (OFFSET_T)get_local_id(0); rank < high; rank += IN_FLIGHT * WG) {
            S offset[IN_FLIGHT];
            _Pragma("unroll")
            for (uint h = 0; h < IN_FLIGHT; h++) {
                offset[h] = offsets[min(rank + h * WG, high - 1)];
            }
            _Pragma("unroll")
            for (uint h = 0; h < IN_FLIGHT; h++) {
                // Offsets that are not sorted may lie outside the tile.
                const ulong at = AT((ulong)offset[h], (ulong)n + 1) - base;
                if (rank + h * WG < high && at < TILE) {
                    SET_BIT(bits, (uint)at);
                }
            }
        }
    } else {
        for (uint at = get_local_id(0); at < TILE; at += WG) {
            if (is_head(offsets, low, high, base + at, n)) {
                SET_BIT(bits, at);
            }
        }
    }
}

#else

#define SEARCHES_OFFSETS 0
#define HEAD_PARAMS
#define HEAD_PASS

static inline uint vector_heads(const bool whole, OFFSET_T base, uint position, OFFSET_T n HEAD_PARAMS) { return 0; }

#endif
