// Radix sort of keys, and of values with them, by digits of 8 bits from the least significant one on (as Merrill and
// Grimshaw 2011, Adinets and Merrill 2022). Stable.
//
// What is sorted by are bits [begin, end) of `ordered`, a number that rises with the key, or falls: `flip` and `always` make
// it so for each type and direction. Keys move as they are, so that equal ones keep their bits. A pass is one digit of it:
//
//     counts:   table[d][g] = group g's keys with digit d
//     passes:   once, after the first counts: which digits differ at all, and so which passes there are
//     offsets:  table[d][g] = its sum over the groups before g, totals[d] = that over all
//     scatter:  each key goes to its place: sum of totals before d, table[d][g], and its rank within the group
//
// Group g has tiles [g * tiles, (g + 1) * tiles) of TILE keys. On a GPU it ranks a tile at a time: items of a sub-group find
// those with the same digit, and each sub-group has a counter for every digit in local memory. The tile is put in order there,
// so that what goes to one digit is written side by side. On CPU drivers (DEVICE_CPU) a group is one item.
//
// A pass moves keys from one to another of `in`, `out` and `spare`, as its code says; it is left out, with code 0, where its
// digit is the same in all keys. Scratch has the rest, at multiples of 16 bytes. Bytes: a pass reads keys twice and writes
// them once; it reads and writes values once.
//
// With LOOK_BACK the digits of all passes are counted at once, and a group has one tile, for which it learns how many keys of
// each digit precede it from what the groups before it publish (lib/lookback.cl):
//
//     histograms:  counts[p][d] = the keys with digit d of pass p; then, by the group that ends last, which passes there are, and
//                  totals[p][d] = the keys before those
//     scatter:     each key goes to its place: totals[p][d], those of earlier tiles, and its rank within the tile
//
// Bytes: reads the keys once; a pass reads and writes them once, and the words of the look-back.
//
// With VALUES_ASIDE a tile's values come to local memory of their own past the registers (lib/aside.cl).
//
// With SEGMENTS it sorts those segments of the keys that are too long for cl/sort_segments.cl, each to the places where it is.
// Tiles are those of the segments then, which groups share by turns; each segment has a table and totals of its own.
#include "lib/types.cl"
#include "lib/subgroup.cl"
#include "lib/aside.cl"
#include "lib/ticket.cl"
#include "lib/ended.cl"
#include "lib/keys.cl"
#ifdef SEGMENTS
#include "lib/segments.cl"
#endif

// Values; 0 bytes: none.
#ifndef VALUE_BYTES
#define VALUE_BYTES 0
#endif
#if VALUE_BYTES > 0 && !defined(VALUE)
#define VALUE uint
#endif
#ifndef WG
#define WG 256
#endif
// Items of `offsets`.
#ifndef OFFSETS_WG
#define OFFSETS_WG WG
#endif
// Counts that an item of it takes at a time.
#define COUNTS 16
// Keys of an item in a tile.
#ifndef ITEMS
#define ITEMS 16
#endif
#define TILE (WG * ITEMS)
// The fewest lanes that a sub-group may have.
#ifndef LANES
#define LANES 32
#endif
// Replicas of the counters of `counts`.
#ifndef REPLICAS
#define REPLICAS 8
#endif

#define RADIX 256

// Codes: where a pass reads (AT_IN, AT_OUT, AT_SPARE), four times where it writes, ACTIVE, LAST, and with LOOK_BACK whether it is
// after an odd number of passes (ODD).
#define AT_IN 0
#define AT_OUT 1
#define AT_SPARE 2
#define ACTIVE 16
#define LAST 32
#define ODD 64
// By `min`: clang makes a switch of the two bits alone, which Oclgrind 21.10 takes for no bits.
#define PLACE(code, in, out, spare)                                                                                    \
    (min((uint)(code), (uint)AT_SPARE) == AT_IN ? (in) : min((uint)(code), (uint)AT_SPARE) == AT_OUT ? (out) : (spare))

#define DIGIT(key) digit_of_key(key, shift, mask, flip, always)

// The bits that are set in some numbers, and those that are in all.
#if KEY_BYTES == 16
#define SEEN ulong2
#else
#define SEEN ulong
#endif

// The code of a pass: the one given, if it is not 0, else what `passes` found.
#define LOOK_UP                                                                                                        \
    const uint code = given != 0 ? given : ((__global const uint*)(scratch + codes_at))[pass];                         \
    if (code == 0) {                                                                                                   \
        return;                                                                                                        \
    }

#define TABLE ((__global OFFSET_T*)(scratch + table_at))
#define TOTALS ((__global OFFSET_T*)(scratch + totals_at))

// A group has one part of the keys, from `first` to `end`, or with SEGMENTS any number of them. CELL: where the table has the
// part's count of a digit; TOTAL: where the total of one is; ORIGIN: where the first of all keys goes.
#ifdef SEGMENTS
#define SEGMENT_PARAMS                                                                                                 \
    , const ulong header_at, const ulong bounds_at, const ulong tiles_at, const ulong owners_at, const uint long_room
#define FOR_PARTS                                                                                                      \
    const uint parts = count_of((__global const uint*)(scratch + header_at), TILES);                                   \
    for (uint group = get_group_id(0); group < parts; group += get_num_groups(0))
#define FIND_PART                                                                                                      \
    const ulong segment = ((__global const uint*)(scratch + owners_at))[group];                                        \
    __global const OFFSET_T* bounds = (__global const OFFSET_T*)(scratch + bounds_at) + 2 * segment;                   \
    const uint first_tile = ((__global const uint*)(scratch + tiles_at))[2 * segment];                                 \
    const uint row_tiles = ((__global const uint*)(scratch + tiles_at))[2 * segment + 1];                              \
    const OFFSET_T share = (OFFSET_T)tiles * TILE, first = bounds[0] + (group - first_tile) * share;                   \
    const OFFSET_T end = first + min(share, bounds[1] - first);
#define CELL(d) ((ulong)first_tile * RADIX + (ulong)(d) * row_tiles + (group - first_tile))
#define TOTAL(d) (segment * RADIX + (d))
#define ORIGIN bounds[0]
#else
#define SEGMENT_PARAMS
#ifdef LOOK_BACK
#define FOR_PARTS                                                                                                      \
    __local uint taken[1];                                                                                             \
    const uint group = TAKE_TILE((volatile __global uint*)(scratch + table_at) + pass, taken, get_num_groups(0));
#else
#define FOR_PARTS const uint group = get_group_id(0);
#endif
#define FIND_PART                                                                                                      \
    const OFFSET_T share = (OFFSET_T)tiles * TILE, first = group * share;                                              \
    const OFFSET_T end = first + min(share, n - first);
#define CELL(d) ((ulong)(d) * get_num_groups(0) + group)
#define TOTAL(d) (d)
#define ORIGIN 0
#endif

// The codes of the passes, of which those in `active` are needed.
static inline void put_codes(__global uint* codes, uint active, const uint passes)
{
    // Keys that are all alike are moved once.
    active = active == 0 ? 1 : active;
    uint left = popcount(active), from = AT_IN, odd = 0;
    for (uint p = 0; p < passes; p++) {
        uint code = 0;
        if (active >> p & 1) {
            left--;
            const uint to = left % 2 == 0 ? AT_OUT : AT_SPARE;
            code = from | to << 2 | ACTIVE | (left == 0 ? LAST : 0) | odd;
            odd ^= ODD;
            from = to;
        }
        codes[p] = code;
    }
}

#ifdef DEVICE_CPU

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void sort_counts(
    __global const KEY* in_base, const ulong in_offset, __global const KEY* out_base, const ulong out_offset,
    __global uchar* scratch, const ulong spare_at, const ulong table_at, const ulong seen_at, const ulong codes_at,
    const OFFSET_T n, const uint tiles, const uint given, const uint pass, const uint shift,
    const uint mask, const WORD flip, const WORD always SEGMENT_PARAMS)
{
    LOOK_UP
    __global const KEY* from =
        PLACE(code & 3, in_base + in_offset, out_base + out_offset, (__global const KEY*)(scratch + spare_at));
    FOR_PARTS
    {
        FIND_PART
        OFFSET_T counts[RADIX];
        WORD any = (WORD)(0), all = ~(WORD)(0);
        for (uint d = 0; d < RADIX; d++) {
            counts[d] = 0;
        }
        for (OFFSET_T i = first; i < end; i++) {
            const WORD bits = ordered(from[i], flip, always);
            any |= bits;
            all &= bits;
            counts[digit_of(bits, shift, mask)]++;
        }
        for (uint d = 0; d < RADIX; d++) {
            TABLE[CELL(d)] = counts[d];
        }
        if (pass == 0) {
            __global SEEN* seen = (__global SEEN*)(scratch + seen_at) + 2 * (ulong)group;
            seen[0] = any;
            seen[1] = all;
        }
    }
}

#elif !defined(LOOK_BACK)

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void sort_counts(
    __global const KEY* in_base, const ulong in_offset, __global const KEY* out_base, const ulong out_offset,
    __global uchar* scratch, const ulong spare_at, const ulong table_at, const ulong seen_at, const ulong codes_at,
    const OFFSET_T n, const uint tiles, const uint given, const uint pass, const uint shift,
    const uint mask, const WORD flip, const WORD always SEGMENT_PARAMS)
{
    __local uint counts[RADIX * REPLICAS];
    __local uint seen[8];
    LOOK_UP
    __global const KEY* from =
        PLACE(code & 3, in_base + in_offset, out_base + out_offset, (__global const KEY*)(scratch + spare_at));
    FOR_PARTS
    {
        FIND_PART
        const uint item = get_local_id(0), replica = item % REPLICAS;
        for (uint i = item; i < RADIX * REPLICAS; i += WG) {
            counts[i] = 0;
        }
        if (item < 8) {
            seen[item] = item % 2 == 0 ? 0 : ~0u;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        WORD any = (WORD)(0), all = ~(WORD)(0);
#define COUNT(key)                                                                                                     \
    {                                                                                                                  \
        const WORD bits = ordered(key, flip, always);                                                                  \
        any |= bits;                                                                                                   \
        all &= bits;                                                                                                   \
        atomic_inc(counts + digit_of(bits, shift, mask) * REPLICAS + replica);                                         \
    }
        for (OFFSET_T base = first; base < end; base += TILE) {
            if (end - base > (ITEMS - 1) * WG + item) {
                KEY held[ITEMS];
                _Pragma("unroll")
                for (uint k = 0; k < ITEMS; k++) {
                    held[k] = from[base + k * WG + item];
                }
                _Pragma("unroll")
                for (uint k = 0; k < ITEMS; k++) {
                    COUNT(held[k])
                }
            } else {
                for (uint k = 0; k < ITEMS; k++) {
                    const OFFSET_T i = base + k * WG + item;
                    if (i < end) {
                        COUNT(from[i])
                    }
                }
            }
        }
        if (pass == 0) {
#if KEY_BYTES == 16
            const uint4 ones = as_uint4(any), zeros = as_uint4(all);
            atomic_or(seen, ones.x);
            atomic_and(seen + 1, zeros.x);
            atomic_or(seen + 2, ones.y);
            atomic_and(seen + 3, zeros.y);
            atomic_or(seen + 4, ones.z);
            atomic_and(seen + 5, zeros.z);
            atomic_or(seen + 6, ones.w);
            atomic_and(seen + 7, zeros.w);
#else
            atomic_or(seen, (uint)any);
            atomic_and(seen + 1, (uint)all);
#if KEY_BYTES == 8
            atomic_or(seen + 2, (uint)(any >> 32));
            atomic_and(seen + 3, (uint)(all >> 32));
#endif
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = item; d < RADIX; d += WG) {
            uint sum = 0;
            for (uint r = 0; r < REPLICAS; r++) {
                sum += counts[d * REPLICAS + r];
            }
            TABLE[CELL(d)] = sum;
        }
        if (pass == 0 && item == 0) {
            __global SEEN* pair = (__global SEEN*)(scratch + seen_at) + 2 * (ulong)group;
#if KEY_BYTES == 16
            pair[0] = as_ulong2((uint4)(seen[0], seen[2], seen[4], seen[6]));
            pair[1] = as_ulong2((uint4)(seen[1], seen[3], seen[5], seen[7]));
#else
            pair[0] = (ulong)seen[2] << 32 | seen[0];
            pair[1] = (ulong)seen[3] << 32 | seen[1];
#endif
        }
#ifdef SEGMENTS
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }
}

#endif

#ifndef LOOK_BACK
// One group. `groups` counted; pass p has bits [begin + 8 p, begin + 8 p + 8), as far as there are any below `end`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void sort_passes(
    __global uchar* scratch, const ulong seen_at, const ulong codes_at, const uint groups, const uint begin,
    const uint end SEGMENT_PARAMS)
{
    __local SEEN any[WG];
    __local SEEN all[WG];
    const uint item = get_local_id(0);
    __global const SEEN* seen = (__global const SEEN*)(scratch + seen_at);
    __global uint* codes = (__global uint*)(scratch + codes_at);
#ifdef SEGMENTS
    const uint there = count_of((__global const uint*)(scratch + header_at), TILES);
#else
    const uint there = groups;
#endif
    SEEN some = (SEEN)(0), every = ~(SEEN)(0);
    for (uint base = 0; base < there; base += WG) {
        if (base + item < there) {
            some |= seen[2 * (base + item)];
            every &= seen[2 * (base + item) + 1];
        }
    }
    any[item] = some;
    all[item] = every;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = WG / 2; d > 0; d /= 2) {
        if (item < d) {
            any[item] |= any[item + d];
            all[item] &= all[item + d];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        const SEEN differ = any[0] & ~all[0];
        uint active = 0;
        for (uint shift = begin, p = 0; shift < end; shift += 8, p++) {
#if KEY_BYTES == 16
            const uint digit = digit_of(differ, shift, (1u << min(8u, end - shift)) - 1);
#else
            const uint digit = (uint)(differ >> shift) & ((1u << min(8u, end - shift)) - 1);
#endif
            active |= digit != 0 ? 1u << p : 0;
        }
        put_codes(codes, active, (end - begin + 7) / 8);
    }
}

// Turns `len` counts into the sums of those before them; the sum of all. All items of `sort_offsets` call it; `sums` holds
// one for each.
INLINED OFFSET_T scan_row(__global OFFSET_T* row, const uint len, __local OFFSET_T* sums)
{
    const uint item = get_local_id(0);
    OFFSET_T before = 0;
    for (uint base = 0; base < len; base += OFFSETS_WG * COUNTS) {
        const uint begin = base + item * COUNTS;
        OFFSET_T counts[COUNTS];
        OFFSET_T sum = 0;
        for (uint k = 0; k < COUNTS; k++) {
            counts[k] = begin + k < len ? row[begin + k] : 0;
            sum += counts[k];
        }
        sums[item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = 1; d < OFFSETS_WG; d *= 2) {
            const OFFSET_T more = item >= d ? sums[item - d] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            sums[item] += more;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        OFFSET_T next = before + sums[item] - sum;
        for (uint k = 0; k < COUNTS; k++) {
            if (begin + k < len) {
                row[begin + k] = next;
            }
            next += counts[k];
        }
        before += sums[OFFSETS_WG - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return before;
}

// RADIX groups, one for each digit; of segments with few tiles one for each segment, by turns.
__kernel __attribute__((reqd_work_group_size(OFFSETS_WG, 1, 1))) void sort_offsets(
    __global uchar* scratch, const ulong table_at, const ulong totals_at, const ulong codes_at, const uint groups,
    const uint given, const uint pass SEGMENT_PARAMS)
{
    __local OFFSET_T sums[OFFSETS_WG];
    LOOK_UP
    const uint item = get_local_id(0), group = get_group_id(0);
#ifdef SEGMENTS
    __global const uint* header = (__global const uint*)(scratch + header_at);
    __global const uint* tiles = (__global const uint*)(scratch + tiles_at);
    const uint few = count_of(header, FEW), many = count_of(header, MANY);
    for (ulong segment = group; segment < few; segment += RADIX) {
        const uint row_tiles = tiles[2 * segment + 1];
        __global OFFSET_T* rows = TABLE + (ulong)tiles[2 * segment] * RADIX;
        for (uint d = item; d < RADIX; d += OFFSETS_WG) {
            OFFSET_T sum = 0;
            for (uint j = 0; j < row_tiles; j++) {
                const OFFSET_T count = rows[d * row_tiles + j];
                rows[d * row_tiles + j] = sum;
                sum += count;
            }
            TOTALS[TOTAL(d)] = sum;
        }
    }
    for (uint k = 0; k < many; k++) {
        const ulong segment = long_room - 1 - k;
        const uint row_tiles = tiles[2 * segment + 1];
        __global OFFSET_T* row = TABLE + (ulong)tiles[2 * segment] * RADIX + (ulong)group * row_tiles;
        const OFFSET_T sum = scan_row(row, row_tiles, sums);
        if (item == 0) {
            TOTALS[TOTAL(group)] = sum;
        }
    }
#else
    const OFFSET_T sum = scan_row(TABLE + (ulong)group * groups, groups, sums);
    if (item == 0) {
        TOTALS[group] = sum;
    }
#endif
}
#endif

#if VALUE_BYTES > 0
// Modes: the values are the keys' places in `in`; the sorted keys are not wanted.
#define PLACES 1
#define NO_KEYS 2
#define VALUE_PARAMS                                                                                                   \
    , __global const VALUE *values_in_base, const ulong values_in_offset, __global VALUE *values_out_base,             \
        const ulong values_out_offset, const ulong values_spare_at, const uint mode
#define VALUE_PLACES                                                                                                   \
    __global const VALUE* values_from = PLACE(                                                                         \
        code & 3, values_in_base + values_in_offset, values_out_base + values_out_offset,                              \
        (__global const VALUE*)(scratch + values_spare_at));                                                           \
    __global VALUE* values_to = PLACE(                                                                                 \
        code >> 2 & 3, (__global VALUE*)0, values_out_base + values_out_offset,                                        \
        (__global VALUE*)(scratch + values_spare_at));                                                                 \
    const int places_from = (mode & PLACES) != 0 && (code & 3) == AT_IN;                                               \
    const int keep_keys = (mode & NO_KEYS) == 0 || (code & LAST) == 0;
#else
#define VALUE_PARAMS
#define VALUE_PLACES
#endif

#ifdef LOOK_BACK
#define LOOK_PARAMS , const uint spins
#else
#define LOOK_PARAMS
#endif
#define SCATTER_PARAMS                                                                                                 \
    __global const KEY *in_base, const ulong in_offset, __global KEY *out_base, const ulong out_offset,                \
        __global uchar *scratch, const ulong spare_at, const ulong table_at, const ulong totals_at,                    \
        const ulong codes_at, const OFFSET_T n, const uint tiles, const uint given, const uint pass, const uint shift, \
        const uint mask, const WORD flip, const WORD always VALUE_PARAMS SEGMENT_PARAMS LOOK_PARAMS
#define SCATTER_PLACES                                                                                                 \
    __global const KEY* from =                                                                                         \
        PLACE(code & 3, in_base + in_offset, out_base + out_offset, (__global const KEY*)(scratch + spare_at));        \
    __global KEY* to =                                                                                                 \
        PLACE(code >> 2 & 3, (__global KEY*)0, out_base + out_offset, (__global KEY*)(scratch + spare_at));            \
    VALUE_PLACES

#ifdef DEVICE_CPU

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void sort_scatter(SCATTER_PARAMS)
{
    LOOK_UP
    SCATTER_PLACES
    FOR_PARTS
    {
        FIND_PART
        OFFSET_T next[RADIX];
        OFFSET_T sum = ORIGIN;
        for (uint d = 0; d < RADIX; d++) {
            next[d] = sum + TABLE[CELL(d)];
            sum += TOTALS[TOTAL(d)];
        }
        for (OFFSET_T i = first; i < end; i++) {
            const KEY key = from[i];
            const OFFSET_T place = next[DIGIT(key)]++;
#if VALUE_BYTES > 0
            if (keep_keys) {
                to[place] = key;
            }
            values_to[place] = places_from ? (VALUE)i : values_from[i];
#else
            to[place] = key;
#endif
        }
    }
}

#else

// Counters of a sub-group for each digit.
#define ROWS ((WG + LANES - 1) / LANES)
#if SG_BACKEND == SG_LOCAL
#define RANK_WORDS (2 * ROWS * RADIX)
// With barriers in them compilers for CPUs take long.
#define UNROLL
#elif LANES < 32
#define COUNTER ushort
#define RANK_WORDS (ROWS * RADIX / 2)
#else
#define COUNTER uint
#define RANK_WORDS (ROWS * RADIX)
#endif
#ifndef UNROLL
#define UNROLL _Pragma("unroll")
#endif
// Ballots are instructions on some GPUs, and many of them elsewhere.
#if SG_BACKEND == SG_PTX || SG_BACKEND == SG_AMDGCN
#define UNROLL_BALLOTS _Pragma("unroll")
#else
#define UNROLL_BALLOTS _Pragma("unroll 1")
#endif
// Local memory for these, and then for what a tile exchanges.
#if VALUE_BYTES > KEY_BYTES
#define TILE_WORDS (TILE * VALUE_BYTES / 4)
#else
#define TILE_WORDS (TILE * KEY_BYTES / 4)
#endif
#if RANK_WORDS > TILE_WORDS
#define POOL_WORDS RANK_WORDS
#else
#define POOL_WORDS TILE_WORDS
#endif

// Places in a tile, of which two share a word.
#define PLACE_OF(places, k) ((places)[(k) / 2] >> (k) % 2 * 16 & 0xffff)
#define ADD_PLACE(places, k, more) ((places)[(k) / 2] += (uint)(more) << (k) % 2 * 16)

// What was derived from x is not kept, nor x itself in parts: of each key that would be a register more.
#if INLINE_PTX
#define SETTLE(x) __asm__ volatile("" : "+r"(x))
#else
#define SETTLE(x)
#endif
#if INLINE_PTX && KEY_BYTES == 4
#define SETTLE_KEY(x) SETTLE(x)
#elif INLINE_PTX && KEY_BYTES == 8
#define SETTLE_KEY(x) __asm__ volatile("" : "+l"(x))
#else
#define SETTLE_KEY(x)
#endif

// Digits of an item.
#define OWN (RADIX / WG)

// x[0 .. RADIX] become the sums of those before them. All items, 16 at least, call it after a barrier; `sums` has 16 elements.
INLINED void scan_offsets(__local OFFSET_T* x, __local OFFSET_T* sums)
{
    const uint i = get_local_id(0);
    if (i < 16) {
        OFFSET_T sum = 0;
        for (uint k = 0; k < RADIX / 16; k++) {
            sum += x[i * (RADIX / 16) + k];
        }
        sums[i] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < 16) {
        OFFSET_T sum = 0;
        for (uint k = 0; k < 16; k++) {
            sum += k < i ? sums[k] : 0;
        }
        for (uint k = 0; k < RADIX / 16; k++) {
            const OFFSET_T more = x[i * (RADIX / 16) + k];
            x[i * (RADIX / 16) + k] = sum;
            sum += more;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

#ifdef LOOK_BACK

#define LOOK_CONTEXT                                                                                                   \
    __global const KEY *from, const OFFSET_T n, const uint shift, const uint mask, const WORD flip, const WORD always
#define LOOK_PASS from, n, shift, mask, flip, always
#include "lib/lookback.cl"

static __attribute__((noinline)) ulong look_missing(LOOK_CONTEXT, OFFSET_T tile, uint slot)
{
    const OFFSET_T first = tile * TILE, end = first + min((OFFSET_T)TILE, n - first);
    ulong count = 0;
    for (OFFSET_T i = first; i < end; i++) {
        count += DIGIT(from[i]) == slot;
    }
    return count;
}

// Where a tile's words are: behind the tickets of the passes.
#define TICKET_BYTES 64
#define LOOK_WORDS ((volatile __global LOOK_WORD*)(scratch + table_at + TICKET_BYTES))

// Passes at most, and replicas of their counters.
#define PASSES KEY_BYTES
#ifndef SPREAD
#define SPREAD 1
#endif
#if OFFSET_BYTES == 8
#define ADD_OFFSET(p, count) atom_add(p, (OFFSET_T)(count))
#else
#define ADD_OFFSET(p, count) atomic_add(p, count)
#endif

// The lowest `width` bits.
static inline ulong low_bits(uint width) { return width < 64 ? ((ulong)1 << width) - 1 : ~0ul; }

// The bits of a key that it is sorted by, as many as `mask` has; its digits are their bytes.
static inline WORD sorted_bits(KEY key, const uint begin, const WORD mask, const WORD flip, const WORD always)
{
    const WORD number = ordered(key, flip, always);
#if KEY_BYTES == 16
    const ulong more = begin == 0 ? 0 : begin < 64 ? number.y << (64 - begin) : 0;
    const ulong low = begin < 64 ? number.x >> begin | more : number.y >> (begin - 64);
    return (WORD)(low, begin < 64 ? number.y >> begin : 0) & mask;
#else
    return number >> begin & mask;
#endif
}

// Byte p of it.
#if KEY_BYTES == 16
#define BYTE_OF(bits, p) ((uint)(((p) < 8 ? (bits).x : (bits).y) >> (p) % 8 * 8) & 255)
#else
#define BYTE_OF(bits, p) ((uint)((bits) >> (p) * 8) & 255)
#endif

// Of floats the numbers of some keys would be made before the first of them is counted, and take twice the registers.
#ifdef FLOAT_KEYS
#define SETTLE_COUNTED(x) SETTLE_KEY(x)
#else
#define SETTLE_COUNTED(x)
#endif
// Counts the digits of an item's keys.
#define COUNT_KEYS(there)                                                                                              \
    _Pragma("unroll")                                                                                                  \
    for (uint k = 0; k < COUNTS; k++) {                                                                                \
        SETTLE_COUNTED(held[k]);                                                                                       \
        const WORD bits = sorted_bits(held[k], begin, sorted, flip, always);                                           \
        if (there) {                                                                                                   \
            _Pragma("unroll")                                                                                          \
            for (uint p = 0; p < PASSES; p++) {                                                                        \
                if (p < passes) {                                                                                      \
                    atomic_inc(counts + (p * RADIX + BYTE_OF(bits, p)) * SPREAD + spread);                             \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

// Of each pass the counts, which are 0 again afterwards, become the sums of those before them; and the codes of the passes. The
// items of one group call it.
INLINED void make_starts(
    volatile __global OFFSET_T* counters, __global OFFSET_T* totals, __global uint* codes, const OFFSET_T n,
    const uint passes, __local OFFSET_T* starts, __local OFFSET_T* offset_sums, __local uint* alike)
{
    const uint item = get_local_id(0);
    for (uint p = 0; p < passes; p++) {
        if (item == 0) {
            alike[p] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = item; d < RADIX; d += WG) {
            starts[d] = counters[p * RADIX + d];
            counters[p * RADIX + d] = 0;
            if (starts[d] == n) {
                alike[p] = 1;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        scan_offsets(starts, offset_sums);
        for (uint d = item; d < RADIX; d += WG) {
            totals[p * RADIX + d] = starts[d];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        uint active = 0;
        for (uint p = 0; p < passes; p++) {
            active |= alike[p] ? 0 : 1u << p;
        }
        put_codes(codes, active, passes);
    }
}

// Adds the keys with digit d of pass p to counter p * RADIX + d: pass p has bits [begin + 8 p, begin + 8 p + 8), as far as there
// are any below `bit_end`. Makes the words of `tiles` tiles 0. The group that ends last makes the starts. Counters are behind
// what ended.cl counts with, and like it 0 before and after.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void sort_histograms(
    __global const KEY* in_base, const ulong in_offset, __global uchar* scratch, const ulong table_at,
    const ulong totals_at, const ulong codes_at, __global uchar* ended_base, const ulong ended_at, const OFFSET_T n,
    const uint tiles, const uint begin, const uint bit_end, const WORD flip, const WORD always)
{
    __local uint counts[PASSES * RADIX * SPREAD];
    __local OFFSET_T starts[RADIX];
    __local OFFSET_T offset_sums[16];
    __local uint alike[PASSES];
    __local uint last[1];
    volatile __global OFFSET_T* counters = (volatile __global OFFSET_T*)(ended_base + ended_at + COUNTERS_AT);
    __global const KEY* from = in_base + in_offset;
    // Of no bits, too, there is a pass, which moves the keys.
    const uint item = get_local_id(0), spread = item % SPREAD, width = bit_end - begin, passes = max((width + 7) / 8, 1u);
#if KEY_BYTES == 16
    const WORD sorted = (WORD)(low_bits(width), low_bits(max(width, 64u) - 64));
#else
    const WORD sorted = (WORD)low_bits(width);
#endif
    // What passes look back at.
    __global uint4* words = (__global uint4*)(scratch + table_at);
    const ulong rows = (TICKET_BYTES + (ulong)tiles * (RADIX * LOOK_BYTES)) / 16;
    for (ulong i = get_global_id(0); i < rows; i += get_global_size(0)) {
        words[i] = (uint4)(0);
    }
    for (uint i = item; i < passes * RADIX * SPREAD; i += WG) {
        counts[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const OFFSET_T step = (OFFSET_T)get_num_groups(0) * (WG * COUNTS);
    for (OFFSET_T base = (OFFSET_T)get_group_id(0) * (WG * COUNTS); base < n; base += min(step, n - base)) {
        KEY held[COUNTS];
        _Pragma("unroll")
        for (uint k = 0; k < COUNTS; k++) {
            held[k] = from[min(base + k * WG + item, n - 1)];
        }
        if (n - base >= WG * COUNTS) {
            COUNT_KEYS(true)
        } else {
            COUNT_KEYS(base + k * WG + item < n)
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < passes * RADIX; i += WG) {
        uint sum = 0;
        for (uint r = 0; r < SPREAD; r++) {
            sum += counts[i * SPREAD + r];
        }
        if (sum != 0) {
            ADD_OFFSET(counters + i, sum);
        }
    }
    if (ends_last((volatile __global uint*)(ended_base + ended_at), get_num_groups(0), last)) {
        make_starts(counters, TOTALS, (__global uint*)(scratch + codes_at), n, passes, starts, offset_sums, alike);
    }
}

#endif

// The sum of x over the items before this one. All items call it; `sums` holds one for each sub-group.
INLINED uint sum_before(uint x, uint row, uint lane, uint lanes, __local uint* sums, __local uint* sg_scratch)
{
    uint sum = x;
    UNROLL
    for (uint d = 1; d < lanes; d *= 2) {
        const uint more = sg_shuffle_up_u32(sum, d, sg_scratch);
        sum += lane >= d ? more : 0;
    }
    if (lane == lanes - 1) {
        sums[row] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint before = sum - x;
    for (uint r = 0; r < row; r++) {
        before += sums[r];
    }
    return before;
}

// The keys of the tile at `base`, of which `len` are there, as the item takes them. Beyond the end are those of the highest digit,
// so that they stay there.
#define LOAD_KEYS(base, len)                                                                                           \
    UNROLL                                                                                                             \
    for (uint k = 0; k < ITEMS; k++) {                                                                                 \
        const uint i = mine + k * lanes;                                                                               \
        keys[k] = i < (len) ? from[(base) + i] : highest;                                                             \
    }

// The tiles of a part: one, where tiles look back.
#ifdef LOOK_BACK
#define FOR_TILES const OFFSET_T base = first;
#else
#define FOR_TILES for (OFFSET_T base = first; base < end; base += TILE)
#endif

// NVIDIA's compiler keeps to a limit of registers only where the size of work-groups is open.
#if SG_BACKEND == SG_PTX
__kernel void sort_scatter(SCATTER_PARAMS)
#else
__kernel SG_KERNEL __attribute__((reqd_work_group_size(WG, 1, 1))) void sort_scatter(SCATTER_PARAMS)
#endif
{
    __local uint4 pool[POOL_WORDS / 4];
    // Where a tile's keys of each digit go, less their places in the tile; before that, the sums of totals.
    __local OFFSET_T moves[RADIX];
#ifndef LOOK_BACK
    __local OFFSET_T offset_sums[16];
#endif
    __local uint sums[ROWS];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
#ifdef VALUES_ASIDE
    // The tile's values as they come.
    __local VALUE aside[TILE];
#endif
    LOOK_UP
    SCATTER_PLACES
#ifdef LOOK_BACK
    const uint turn = (code & ODD) != 0;
#endif
    FOR_PARTS
    {
        FIND_PART
        const uint item = get_local_id(0);
#if SG_BACKEND == SG_LOCAL
        __local uint* counts = (__local uint*)pool;
        volatile __local uint* masks = counts + ROWS * RADIX;
        const uint lanes = LANES, row = item / LANES, lane = item % LANES, bit = 1u << lane;
#else
        __local COUNTER* counts = (__local COUNTER*)pool;
        const uint lanes = sg_size(), row = sg_id(), lane = sg_lane();
#endif
        // The item's first key in a tile; the others follow `lanes` apart.
        const uint mine = row * lanes * ITEMS + lane;
#ifndef LOOK_BACK
        for (uint d = item; d < RADIX; d += WG) {
            moves[d] = TOTALS[TOTAL(d)];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        scan_offsets(moves, offset_sums);
        // Where the group's next key of each of the item's digits goes.
        OFFSET_T next[OWN];
        UNROLL
        for (uint o = 0; o < OWN; o++) {
            const uint d = item * OWN + o;
            next[o] = ORIGIN + moves[d] + TABLE[CELL(d)];
        }
#endif
        const KEY highest = highest_key(shift, mask, flip, always);
        KEY keys[ITEMS];
        LOAD_KEYS(first, (uint)min((OFFSET_T)TILE, end - first))
        FOR_TILES
        {
            const uint len = (uint)min((OFFSET_T)TILE, end - base);
#ifdef VALUES_ASIDE
            UNROLL
            for (uint k = 0; k < ITEMS; k++) {
                const uint i = mine + k * lanes;
                if (places_from) {
                    aside[i] = (VALUE)(base + i);
                } else if (i < len) {
                    COPY_ASIDE(VALUE_BYTES, aside + i, values_from + base + i);
                }
            }
#endif
            for (uint i = item; i < RANK_WORDS / 4; i += WG) {
                pool[i] = (uint4)(0);
            }
            // The rank among those of the sub-group with the same digit, then the place in the tile.
            uint places[(ITEMS + 1) / 2];
            UNROLL
            for (uint k = 0; k < (ITEMS + 1) / 2; k++) {
                places[k] = 0;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            UNROLL
            for (uint k = 0; k < ITEMS; k++) {
                const uint digit = DIGIT(keys[k]), slot = row * RADIX + digit;
#if SG_BACKEND == SG_LOCAL
                atomic_or(masks + slot, bit);
                barrier(CLK_LOCAL_MEM_FENCE);
                const uint same = masks[slot], before = counts[slot];
                barrier(CLK_LOCAL_MEM_FENCE);
                atomic_xor(masks + slot, bit);
                atomic_inc(counts + slot);
                const uint below = popcount(same & (bit - 1));
#else
                ulong same = ~0ul;
                UNROLL_BALLOTS
                for (uint b = 0; b < 8; b++) {
                    same &= sg_alike(digit & (1u << b), sg_scratch);
                }
                const uint below = sg_rank(same), before = counts[slot];
                sg_barrier();
                if (below == 0) {
                    counts[slot] = (COUNTER)(before + (uint)popcount(same));
                }
                sg_barrier();
#endif
                ADD_PLACE(places, k, before + below);
                SETTLE(places[k / 2]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            // Of each digit, the sub-groups' counts become the places of their first keys.
            uint all = 0;
#ifdef LOOK_BACK
            uint own[OWN], begins[OWN];
            delay(group, LOOK_WORDS);
#endif
            UNROLL
            for (uint o = 0; o < OWN; o++) {
#ifdef LOOK_BACK
                const uint earlier = all;
#endif
                UNROLL
                for (uint r = 0; r < ROWS; r++) {
                    all += r < WG / lanes ? counts[r * RADIX + item * OWN + o] : 0;
                }
#ifdef LOOK_BACK
                own[o] = all - earlier;
                if (!silent(group)) {
                    const ulong state = group == 0 ? LOOK_ALL : LOOK_OWN;
                    look_publish(LOOK_WORDS, (ulong)group * RADIX + item * OWN + o, state, own[o], turn);
                }
#endif
            }
            uint place = sum_before(all, row, lane, lanes, sums, sg_scratch);
            UNROLL
            for (uint o = 0; o < OWN; o++) {
#ifdef LOOK_BACK
                begins[o] = place;
#else
                moves[item * OWN + o] = next[o] - place;
#endif
                UNROLL
                for (uint r = 0; r < ROWS; r++) {
                    if (r < WG / lanes) {
                        const uint count = counts[r * RADIX + item * OWN + o];
                        counts[r * RADIX + item * OWN + o] = place;
                        place += count;
#ifndef LOOK_BACK
                        next[o] += count;
#endif
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            UNROLL
            for (uint k = 0; k < ITEMS; k++) {
                SETTLE_KEY(keys[k]);
                ADD_PLACE(places, k, counts[row * RADIX + DIGIT(keys[k])]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            __local KEY* tile = (__local KEY*)pool;
            UNROLL
            for (uint k = 0; k < ITEMS; k++) {
                tile[PLACE_OF(places, k)] = keys[k];
            }
#if VALUE_BYTES > 0 && !defined(VALUES_ASIDE)
            // On their way while the tile waits for others; not earlier, since they take the keys' registers.
            VALUE values[ITEMS];
            UNROLL
            for (uint k = 0; k < ITEMS; k++) {
                const uint i = min(mine + k * lanes, len - 1);
                values[k] = places_from ? (VALUE)(base + i) : values_from[base + i];
            }
#endif
#ifdef LOOK_BACK
            UNROLL
            for (uint o = 0; o < OWN; o++) {
                const uint d = item * OWN + o;
                const ulong before = look_back(LOOK_PASS, LOOK_WORDS, RADIX, d, group, spins, turn);
                if (group > 0) {
                    look_publish(LOOK_WORDS, (ulong)group * RADIX + d, LOOK_ALL, before + own[o], turn);
                }
                moves[d] = TOTALS[pass * RADIX + d] + (OFFSET_T)before - begins[o];
            }
#endif
            barrier(CLK_LOCAL_MEM_FENCE);
#ifndef LOOK_BACK
            // The next tile's are on their way while this one's go.
            if (base + TILE < end) {
                LOAD_KEYS(base + TILE, (uint)min((OFFSET_T)TILE, end - base - TILE))
            }
#endif
#if VALUE_BYTES > 0
            // Of the keys that the item moves, four in a word: the values go where they went.
            uint digits[(ITEMS + 3) / 4];
            UNROLL
            for (uint k = 0; k < (ITEMS + 3) / 4; k++) {
                digits[k] = 0;
            }
#define KEEP_DIGIT(k, digit) digits[(k) / 4] |= (digit) << (k) % 4 * 8;
#define KEEP_KEYS keep_keys
#else
#define KEEP_DIGIT(k, digit)
#define KEEP_KEYS true
#endif
#define PUT_KEYS(there)                                                                                                \
    UNROLL                                                                                                             \
    for (uint k = 0; k < ITEMS; k++) {                                                                                 \
        const uint i = k * WG + item;                                                                                  \
        const KEY key = tile[i];                                                                                       \
        const uint digit = DIGIT(key);                                                                                 \
        KEEP_DIGIT(k, digit)                                                                                           \
        if (there) {                                                                                                   \
            to[moves[digit] + i] = key;                                                                                \
        }                                                                                                              \
    }
            // Without a test for each, loads do not wait for one another.
            if (len == TILE && KEEP_KEYS) {
                PUT_KEYS(true)
            } else {
                PUT_KEYS(i < len && KEEP_KEYS)
            }
            barrier(CLK_LOCAL_MEM_FENCE);
#if VALUE_BYTES > 0
            __local VALUE* exchange = (__local VALUE*)pool;
#ifdef VALUES_ASIDE
            await_copies();
#endif
            UNROLL
            for (uint k = 0; k < ITEMS; k++) {
#ifdef VALUES_ASIDE
                exchange[PLACE_OF(places, k)] = aside[mine + k * lanes];
#else
                exchange[PLACE_OF(places, k)] = values[k];
#endif
            }
            barrier(CLK_LOCAL_MEM_FENCE);
#define PUT_VALUES(there)                                                                                              \
    UNROLL                                                                                                             \
    for (uint k = 0; k < ITEMS; k++) {                                                                                 \
        const uint i = k * WG + item;                                                                                  \
        if (there) {                                                                                                   \
            values_to[moves[digits[k / 4] >> k % 4 * 8 & 255] + i] = exchange[i];                                      \
        }                                                                                                              \
    }
            if (len == TILE) {
                PUT_VALUES(true)
            } else {
                PUT_VALUES(i < len)
            }
            barrier(CLK_LOCAL_MEM_FENCE);
#endif
        }
    }
}

#endif
