// The rows of a selection (topk.cl): options, layout of the scratch, sums over a work-group, tiles, and digits.
//
// On CPU drivers (WG is 1) a work-group is one work-item, and its private memory replaces local memory (SHARED).

#include "lib/types.cl"
#include "lib/keys.cl"
#include "lib/length.cl"

#ifndef WG
#define WG 256
// 16-byte words of a work-item in a tile.
#define ROWS 4
#define RADIX_BITS 11
// Replicas of the digit counters, against contention.
#define REPLICAS 2
#endif
// Bytes of an index; 0 if indices are not wanted.
#ifndef PLACE_BYTES
#define PLACE_BYTES 0
#define PLACE uint
#endif

#define RADIX (1 << RADIX_BITS)
#define WIDTH (8 * KEY_BYTES)
#define WORD_KEYS (16 / KEY_BYTES)

#if WG == 1
#define TILE 4096
#define SHARED
INLINED uint shared_add(uint* p, uint x)
{
    const uint old = *p;
    *p += x;
    return old;
}
#else
#define TILE (WG * ROWS * WORD_KEYS)
#define SHARED __local
INLINED uint shared_add(__local uint* p, uint x) { return atomic_add(p, x); }
#endif

#ifdef UNROLLED
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif
// PICK: the kernels find bounds of the threshold in a sample, and list the keys between them.
#ifndef PICK
#define PICK 0
#endif

// ONE_PASS: of the work-groups of a row, the one that finishes a launch last does the row's next step.
#ifdef ONE_PASS
#include "lib/subgroup.cl"
#include "lib/ended.cl"
#else
#define ONE_PASS 0
INLINED bool ends_last(volatile __global uint* ended, uint groups, SHARED uint* scratch) { return false; }
#endif

INLINED void sync_shared(void)
{
    if (WG > 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// After it, a work-item may overwrite global memory that others have read.
INLINED void sync_all(void)
{
    if (WG > 1) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

// Scratch

// The state of a row: ulong words at the start of its scratch.
#define PREFIX 0 // Digits of the threshold that are known: its number is PREFIX from bit SHIFT on.
#define SHIFT 1
#define NEED 2   // Rank of the threshold, counted from 1, among the keys with these digits.
#define FLAGS 3
#define LOW 4    // Bounds of the threshold, as numbers.
#define HIGH 5
#define LISTED 6 // Two uints: the number of listed keys, and 1 if the list has overflowed.
#define ENDED 7  // One uint: the counter of ended.cl.

// The flags of a row.
#define DONE 1     // The threshold is known.
#define HAS_LOW 2  // LOW is a bound.
#define HAS_HIGH 4 // HIGH is a bound.
#define IN_LIST 8  // The threshold is between the bounds, and all keys there are listed.
#define AT_LOW 16  // The threshold is LOW.
#define AT_HIGH 32 // The threshold is HIGH.

// A row. Positions count from the aligned 16-byte word that contains its first key, which is at position `pad`. So all
// words but the first and the last are loaded whole.
typedef struct {
    ulong index;
    __global const KEY* keys; // By position.
    uint pad;
    OFFSET_T end;
    WORD flip, always; // For lib/keys.cl.
    __global ulong* state;
    __global uint* histogram;
    __global uint4* classes;      // Of each part: its keys below LOW, at LOW, between the bounds, and at HIGH.
    __global uint2* tallies;      // Of each part: its keys below the threshold, and at it.
    __global uint* segment_counts; // Of each part: its segments in the list.
    __global uint2* segments;     // Of all parts: first listed key and length.
    __global KEY* listed_keys;
    __global OFFSET_T* listed_indices;
} Row;

// The parameters that all kernels share. Row i starts at in_base[in_offset + i * stride]; in_base is aligned to 16
// bytes. A part is a range of `share` positions, a multiple of TILE. region.s0 is the size of a row's scratch in bytes;
// s1 to s7 are the byte offsets of its regions, in the order of `Row`.
#define ROW_PARAMS                                                                                                     \
    __global const KEY *in_base, const ulong in_offset, LENGTH_PARAMS, const ulong stride,                             \
        __global uchar *scratch, const ulong8 region, const uint rows, const uint parts, const OFFSET_T share,         \
        const WORD flip, const WORD always

// Oclgrind refuses kernels with inlined functions that take or return a struct by value; so all take pointers.
INLINED void open_row(
    Row* row, __global const KEY* in_base, ulong in_offset, OFFSET_T len, ulong stride, __global uchar* scratch,
    ulong8 region, WORD flip, WORD always, ulong index)
{
    row->index = index;
    row->pad = (uint)((in_offset + index * stride) % WORD_KEYS);
    row->keys = in_base + (in_offset + index * stride - row->pad);
    row->end = len + row->pad;
    row->flip = flip;
    row->always = always;
    __global uchar* own = scratch + index * region.s0;
    row->state = (__global ulong*)own;
    row->histogram = (__global uint*)(own + region.s1);
    row->classes = (__global uint4*)(own + region.s2);
    row->tallies = (__global uint2*)(own + region.s3);
    row->segment_counts = (__global uint*)(own + region.s4);
    row->segments = (__global uint2*)(own + region.s5);
    row->listed_keys = (__global KEY*)(own + region.s6);
    row->listed_indices = (__global OFFSET_T*)(own + region.s7);
}

// Neighbouring work-groups take the same part of several rows: rows may be the same keys, searched for several ranks.
INLINED uint part_of_group(uint rows) { return (uint)get_group_id(0) / rows; }
INLINED ulong row_of_group(uint rows) { return (uint)get_group_id(0) % rows; }

// The end of the part that begins at position `begin`.
INLINED OFFSET_T end_of_part(const Row* row, OFFSET_T begin, OFFSET_T share)
{
    return begin < row->end ? begin + min(share, row->end - begin) : begin;
}

// The number that a key compares by: it rises with the keys, or falls if the largest are wanted.
INLINED WORD number_of(const Row* row, KEY key)
{
    return ordered(key, row->flip, row->always);
}

// Sums over the work-group

// Work-items are in CHUNKS chunks. Those of a chunk read the same words, so that two barriers are enough.
#define CHUNKS (WG < 16 ? WG : 16)
#define CHUNK_ITEMS (WG / CHUNKS)
#define SUMS (WG + CHUNKS)

// Returns the exclusive prefix of both sums over the work-items, and their totals. All work-items call it.
// (A scan by fewer work-items, which the others wait for, is miscompiled by PoCL 3.1.)
INLINED ulong2 exclusive_prefix(ulong2 x, SHARED ulong2* sums, SHARED ulong2* totals, ulong2* total)
{
    if (WG == 1) {
        *total = x;
        return (ulong2)(0);
    }
    const uint item = get_local_id(0), chunk = item / CHUNK_ITEMS, member = item % CHUNK_ITEMS;
    // Chunks begin in different banks.
    sums[item + chunk] = x;
    sync_shared();
    ulong2 before = (ulong2)(0), all = (ulong2)(0);
    IN_FOURS
    for (uint i = 0; i < CHUNK_ITEMS; i++) {
        const ulong2 other = sums[chunk * (CHUNK_ITEMS + 1) + i];
        before += i < member ? other : (ulong2)(0);
    }
    if (member == CHUNK_ITEMS - 1) {
        totals[chunk] = before + x;
    }
    sync_shared();
    IN_FOURS
    for (uint c = 0; c < CHUNKS; c++) {
        const ulong2 other = totals[c];
        before += c < chunk ? other : (ulong2)(0);
        all += other;
    }
    *total = all;
    return before;
}

// Returns count r of a word that packs several counts of a work-item, of 16 bits each.
INLINED ulong packed_count(ulong packed, uint r)
{
    return packed >> (16 * r) & 0xffff;
}

// Tiles

// A word of 16 bytes, and its keys.
typedef union {
    uint4 words;
    KEY keys[WORD_KEYS];
} KeyWord;

// The position of word `r` of the work-item in the tile at `base`.
INLINED OFFSET_T position_of(OFFSET_T base, uint r)
{
    return base + (r * WG + get_local_id(0)) * WORD_KEYS;
}

// Loads the word at position p key by key. Keys outside [begin, end) are 0.
SELDOM uint4 load_edge(__global const KEY* keys, OFFSET_T p, OFFSET_T begin, OFFSET_T end)
{
    KeyWord word;
    word.words = (uint4)(0);
    for (uint j = 0; j < WORD_KEYS; j++) {
        if (p + j >= begin && p + j < end) {
            word.keys[j] = keys[p + j];
        }
    }
    return word.words;
}

// Loads the word at position p; keys outside [begin, end) are 0. The host passes an aligned pointer.
INLINED uint4 load_word(__global const KEY* keys, OFFSET_T p, OFFSET_T begin, OFFSET_T end)
{
    if (p >= begin && p + WORD_KEYS <= end) {
        return *(__global const uint4*)(keys + p);
    }
    return load_edge(keys, p, begin, end);
}

INLINED void load_tile(KeyWord* held, __global const KEY* keys, OFFSET_T base, OFFSET_T begin, OFFSET_T end)
{
    UNROLL
    for (uint r = 0; r < ROWS; r++) {
        held[r].words = load_word(keys, position_of(base, r), begin, end);
    }
}

// Digits

// A digit: `bits` bits from bit `shift` on. Only keys whose higher digits are `prefix` are counted.
typedef struct {
    WORD prefix;
    uint shift, bits;
} Digit;

// Digits of a work-item.
#define OWN (RADIX / WG)

INLINED void clear_counts(SHARED uint* counts, uint digits)
{
    ROLLED
    for (uint i = get_local_id(0); i < digits * REPLICAS; i += WG) {
        counts[i] = 0;
    }
}

INLINED void count_digit(WORD number, const Digit* digit, SHARED uint* counts)
{
    const WORD high = number >> digit->shift;
    if (high >> digit->bits == digit->prefix) {
        shared_add(
            counts + ((uint)high & ((1u << digit->bits) - 1)) * REPLICAS + get_local_id(0) % REPLICAS, 1);
    }
}

// Counts the digits of a tile's keys at positions [begin, end). All work-items call it, between barriers.
INLINED void count_tile(
    const Row* row, __global const KEY* keys, OFFSET_T base, OFFSET_T begin, OFFSET_T end, const Digit* digit,
    SHARED uint* counts)
{
    if (WG == 1) {
        for (OFFSET_T p = max(base, begin), stop = base + min((OFFSET_T)TILE, end - base); p < stop; p++) {
            count_digit(number_of(row, keys[p]), digit, counts);
        }
        return;
    }
    if (base >= begin && base + TILE <= end) {
        KeyWord held[ROWS];
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            held[r].words = *(__global const uint4*)(keys + position_of(base, r));
        }
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                count_digit(number_of(row, held[r].keys[j]), digit, counts);
            }
        }
        return;
    }
    const uint from = base < begin ? (uint)(begin - base) : 0, to = (uint)min((OFFSET_T)TILE, end - base);
    IN_FOURS
    for (uint i = from + get_local_id(0); i < to; i += WG) {
        count_digit(number_of(row, keys[base + i]), digit, counts);
    }
}

// Finds the digit of the key of rank `need`, counted from 1. own[] has the number of keys with each of the work-item's
// own digits. All work-items call it. Then `found` has the digit, the number of keys with lower digits, and the number
// of keys with this digit.
INLINED void find_digit(
    const ulong* own, ulong need, SHARED ulong* found, SHARED ulong2* sums, SHARED ulong2* totals)
{
    ulong sum = 0;
    for (uint o = 0; o < OWN; o++) {
        sum += own[o];
    }
    ulong2 total;
    ulong before = exclusive_prefix((ulong2)(sum, 0), sums, totals, &total).x;
#ifdef LENGTH_T
    if (need == 0 && get_local_id(0) == 0) {
        found[0] = found[1] = found[2] = 0;
    }
#endif
    if (need > before && need <= before + sum) {
        uint o = 0;
        while (o + 1 < OWN && need > before + own[o]) {
            before += own[o];
            o++;
        }
        found[0] = get_local_id(0) * OWN + o;
        found[1] = before;
        found[2] = own[o];
    }
    sync_shared();
}

// Finds the key of rank `need` among the counted keys, and appends its digit to `prefix`. Then `need` becomes the key's
// rank among the keys with that digit. All work-items call it after a barrier; it ends with one.
INLINED void append_digit(
    const SHARED uint* counts, uint bits, WORD* prefix, ulong* need, SHARED ulong* found, SHARED ulong2* sums,
    SHARED ulong2* totals)
{
    ulong own[OWN];
    for (uint o = 0; o < OWN; o++) {
        own[o] = 0;
        for (uint r = 0; r < REPLICAS; r++) {
            own[o] += counts[(get_local_id(0) * OWN + o) * REPLICAS + r];
        }
    }
    find_digit(own, *need, found, sums, totals);
    *prefix = *prefix << bits | (WORD)found[0];
    *need -= found[1];
    sync_shared();
}

// With LENGTH_T there is one row, and the number of its keys is in memory (lib/length.cl). If it is below k, all keys are
// selected.
#ifdef LENGTH_T
#define AT_MOST_N(k) min(k, (ulong)n)
#else
#define AT_MOST_N(k) (k)
#endif

// Returns the rank of the wanted key of a row, counted from 1: k if `given` is 0, else ranks[given - 1 + row] + 1.
INLINED ulong rank_of_row(ulong k, __global const ulong* ranks, uint given, ulong row)
{
    return given ? ranks[given - 1 + row] + 1 : k;
}
