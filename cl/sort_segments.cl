// Sorts of the segments of an array, each by itself. Stable.
//
//     mark:    a bit for each place where a segment begins; lists of those that are long
//     owners:  which segment each tile of the longest ones is of
//     small:   a work-group sorts all segments that begin in its window, of WINDOW keys, and end within TILE keys from its
//              begin on; launched once more, one listed segment after the other
//
// Others are longer than a tile: cl/sort.cl sorts them by digits. Keys outside of all segments count as segments of one key.
//
// `small` is a merge sort in local memory: an item sorts ITEMS neighbours, then lists are merged by pairs (merge path, Green,
// McColl and Bader 2012), WG at last to one. A segment is never merged with another one: where two lists meet, only the
// segment that is in both is merged, and all else stays in its place (as Baxter's segmented sort of 2013). So most items have
// nothing to do once lists are longer than segments. On CPU drivers (DEVICE_CPU) one item sorts a window, by merges in global
// memory.
//
// Bytes, where segments are short: keys and values are read once and written once; n / 8 are written, set and read for the
// bits.
#include "lib/types.cl"
#include "lib/keys.cl"
#include "lib/segments.cl"

// The type of the offsets.
#ifndef S
#define S uint
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
// Keys of an item, odd, so that neighbours are in different banks of local memory.
#ifndef ITEMS
#define ITEMS 15
#endif
#define TILE (WG * ITEMS)
// A multiple of 32 below TILE.
#ifndef WINDOW
#define WINDOW (TILE * 4 / 5 / 32 * 32)
#endif
#define UNROLL _Pragma("unroll")
// NVIDIA's compiler keeps to a limit of registers only where the size of work-groups is open.
#ifdef INLINE_PTX
#define GROUP
#else
#define GROUP __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif

// A tile has numbers that rise with the keys; or, where several keys have one number, the keys. BELOW: whether one of them is below
// another one, of whose numbers only the bits of `sorted_by` count.
#ifdef FLOAT_KEYS
#define TO_TILE(key) (key)
#define FROM_TILE(held) (held)
#define BELOW(a, b) is_below(ordered(a, flip, always) & sorted_by, ordered(b, flip, always) & sorted_by)
#else
#define TO_TILE(key) (KEY)ordered(key, flip, always)
#define FROM_TILE(held) key_of_ordered(held, flip, always)
#define BELOW(a, b) is_below((a) & sorted_by, (b) & sorted_by)
#endif

// `segments` of them between offsets[0 .. segments + 1]. Tiles of the long ones have `share` keys. The lists have room for as
// many as there can be, if no offset is beyond the next one.
__kernel GROUP void sort_segments_mark(
    __global const S* offsets_base, const ulong offsets_offset, const OFFSET_T segments, const OFFSET_T n,
    __global uchar* scratch, const ulong header_at, const ulong heads_at, const ulong listed_at, const ulong bounds_at,
    const ulong tiles_at, const ulong owners_at, const uint listed_room, const uint long_room, const uint tile_room,
    const uint share)
{
    __global const S* offsets = offsets_base + offsets_offset;
    volatile __global uint* header = (volatile __global uint*)(scratch + header_at);
    volatile __global uint* heads = (volatile __global uint*)(scratch + heads_at);
    __global OFFSET_T* listed = (__global OFFSET_T*)(scratch + listed_at);
    __global OFFSET_T* bounds = (__global OFFSET_T*)(scratch + bounds_at);
    __global uint* tiles = (__global uint*)(scratch + tiles_at);
    __global uint* owners = (__global uint*)(scratch + owners_at);
    if (get_global_id(0) == 0) {
        __global ulong* ends = (__global ulong*)(scratch + header_at);
        ends[FIRST] = min((ulong)offsets[0], (ulong)n);
        ends[LAST_END] = min((ulong)offsets[segments], (ulong)n);
    }
    for (OFFSET_T i = get_global_id(0); i < segments; i += get_global_size(0)) {
        const OFFSET_T begin = (OFFSET_T)min((ulong)offsets[i], (ulong)n);
        const OFFSET_T end = (OFFSET_T)min((ulong)offsets[i + 1], (ulong)n);
        if (begin > end) {
            atomic_or(header + BAD, 1u);
        }
        if (begin < end) {
            const OFFSET_T len = end - begin;
            atomic_or(heads + begin / 32, 1u << (uint)(begin % 32));
            if (begin % WINDOW + len > TILE) {
                if (len <= TILE) {
                    const uint slot = atomic_inc(header + LISTED);
                    if (slot < listed_room) {
                        listed[2 * (ulong)slot] = begin;
                        listed[2 * (ulong)slot + 1] = end;
                    }
                } else {
                    const uint count = (uint)((len - 1) / share) + 1;
                    const int few = count <= FEW_TILES;
                    const uint place = atomic_inc(header + (few ? FEW : MANY));
                    const uint first = atomic_add(header + TILES, count);
                    if (place < long_room) {
                        const uint slot = few ? place : long_room - 1 - place;
                        bounds[2 * (ulong)slot] = begin;
                        bounds[2 * (ulong)slot + 1] = end;
                        tiles[2 * (ulong)slot] = first;
                        tiles[2 * (ulong)slot + 1] = count;
                        for (uint j = 0; j < (few ? count : 0); j++) {
                            if (first < tile_room && j < tile_room - first) {
                                owners[first + j] = slot;
                            }
                        }
                    }
                }
            }
        }
    }
}

// Of segments with more tiles than FEW_TILES.
__kernel GROUP void sort_segments_owners(
    __global uchar* scratch, const ulong header_at, const ulong tiles_at, const ulong owners_at, const uint long_room)
{
    const uint many = count_of((__global const uint*)(scratch + header_at), MANY);
    __global const uint* tiles = (__global const uint*)(scratch + tiles_at);
    __global uint* owners = (__global uint*)(scratch + owners_at);
    for (uint k = get_group_id(0); k < many; k += get_num_groups(0)) {
        const uint slot = long_room - 1 - k;
        const uint first = tiles[2 * (ulong)slot], count = tiles[2 * (ulong)slot + 1];
        for (uint j = get_local_id(0); j < count; j += WG) {
            owners[first + j] = slot;
        }
    }
}

#if VALUE_BYTES > 0
// Modes: the values are the keys' places in `in`; the sorted keys are not wanted.
#define PLACES 1
#define NO_KEYS 2
#define VALUE_PARAMS                                                                                                   \
    , __global const VALUE *values_in_base, const ulong values_in_offset, __global VALUE *values_out_base,             \
        const ulong values_out_offset, const ulong values_spare_at, const uint mode
#else
#define VALUE_PARAMS
#endif
#define SMALL_PARAMS                                                                                                   \
    __global const KEY *in_base, const ulong in_offset, __global KEY *out_base, const ulong out_offset,                \
        __global uchar *scratch, const ulong spare_at, const ulong header_at, const ulong heads_at,                    \
        const ulong listed_at, const OFFSET_T n, const uint windows, const WORD flip, const WORD always,               \
        const WORD sorted_by VALUE_PARAMS

// The bits of word i, where there are segments and elsewhere.
static inline uint heads_of(__global const uint* heads, const ulong i, const ulong first, const ulong end)
{
    const ulong from = 32 * i;
    uint word = heads[i];
    if (from < first) {
        word |= first - from < 32 ? (1u << (uint)(first - from)) - 1 : ~0u;
    }
    if (from + 32 > end) {
        word |= from < end ? ~0u << (uint)(end - from) : ~0u;
    }
    return word;
}

static inline uint lowest_bit(const uint x)
{
    return 31 - clz(x & (0 - x));
}

#ifdef DEVICE_CPU

// Keys that are sorted by insertion.
#define RUN 16
#define NUMBER(key) (ordered(key, flip, always) & sorted_by)
#if VALUE_BYTES > 0
#define MOVE(to, i, from, j) (to)[i] = (from)[j]; values_##to[i] = values_##from[j];
#else
#define MOVE(to, i, from, j) (to)[i] = (from)[j];
#endif

// The first head from p on, or `stop`, whichever comes first.
static ulong next_head(__global const uint* heads, ulong p, const ulong stop, const ulong first, const ulong end)
{
    uint word = p < stop ? heads_of(heads, p / 32, first, end) >> (uint)(p % 32) << (uint)(p % 32) : 0;
    while (p < stop && word == 0) {
        p = p / 32 * 32 + 32;
        word = p < stop ? heads_of(heads, p / 32, first, end) : 0;
    }
    return p < stop ? min(p / 32 * 32 + lowest_bit(word), stop) : stop;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void sort_segments_small(SMALL_PARAMS)
{
    __global const KEY* in = in_base + in_offset;
    __global KEY* out = out_base + out_offset;
    __global KEY* spare = (__global KEY*)(scratch + spare_at);
#if VALUE_BYTES > 0
    __global const VALUE* values_in = values_in_base + values_in_offset;
    __global VALUE* values_out = values_out_base + values_out_offset;
    __global VALUE* values_spare = (__global VALUE*)(scratch + values_spare_at);
#endif
    __global const uint* header = (__global const uint*)(scratch + header_at);
    __global const ulong* ends = (__global const ulong*)(scratch + header_at);
    __global const uint* heads = (__global const uint*)(scratch + heads_at);
    __global const OFFSET_T* listed = (__global const OFFSET_T*)(scratch + listed_at);
    const uint jobs = windows != 0 ? windows : count_of(header, LISTED);
    for (uint job = get_group_id(0); job < jobs; job += get_num_groups(0)) {
        ulong begin, last, stop;
        if (windows != 0) {
            const ulong base = (ulong)job * WINDOW;
            last = min(base + WINDOW, (ulong)n);
            stop = base + TILE + 1;
            begin = next_head(heads, base, last, ends[FIRST], ends[LAST_END]);
        } else {
            begin = listed[2 * (ulong)job];
            stop = listed[2 * (ulong)job + 1];
            last = begin + 1;
        }
        while (begin < last) {
            const ulong end = windows != 0 ? next_head(heads, begin + 1, stop, ends[FIRST], ends[LAST_END]) : stop;
            if (windows != 0 && end == stop) {
                break;
            }
            uint odd = 0;
            for (ulong run = RUN; run < end - begin; run *= 2) {
                odd ^= 1;
            }
            __global KEY* to = odd ? spare : out;
#if VALUE_BYTES > 0
            __global VALUE* values_to = odd ? values_spare : values_out;
#endif
            for (ulong first = begin; first < end; first += RUN) {
                for (ulong i = first; i < min(first + RUN, end); i++) {
                    const KEY key = in[i];
                    ulong at = i;
                    for (; at > first && is_below(NUMBER(key), NUMBER(to[at - 1])); at--) {
                        MOVE(to, at, to, at - 1)
                    }
                    to[at] = key;
#if VALUE_BYTES > 0
                    values_to[at] = (mode & PLACES) != 0 ? (VALUE)i : values_in[i];
#endif
                }
            }
            for (ulong run = RUN; run < end - begin; run *= 2) {
                __global KEY* from = to;
                to = from == out ? spare : out;
#if VALUE_BYTES > 0
                __global VALUE* values_from = values_to;
                values_to = from == out ? values_spare : values_out;
#endif
                for (ulong first = begin; first < end; first += 2 * run) {
                    const ulong mid = min(first + run, end), behind = min(first + 2 * run, end);
                    ulong a = first, b = mid;
                    for (ulong i = first; i < behind; i++) {
                        if (a >= mid || (b < behind && is_below(NUMBER(from[b]), NUMBER(from[a])))) {
                            MOVE(to, i, from, b)
                            b++;
                        } else {
                            MOVE(to, i, from, a)
                            a++;
                        }
                    }
                }
            }
            begin = end;
        }
    }
}

#else

// Words of bits that items ask for; those beyond the tile are all ones.
#define HEAD_WORDS (TILE / 32 + 3)

// The first head from p on; there is one.
INLINED uint next_head(__local const uint* heads, const uint p)
{
    uint i = p / 32, word = heads[i] >> p % 32 << p % 32;
    while (word == 0) {
        word = heads[++i];
    }
    return 32 * i + lowest_bit(word);
}

// The last head up to p; there is one.
INLINED uint last_head(__local const uint* heads, const uint p)
{
    uint i = p / 32, word = heads[i] << (31 - p % 32) >> (31 - p % 32);
    while (word == 0) {
        word = heads[--i];
    }
    return 32 * i + 31 - clz(word);
}

__kernel GROUP void sort_segments_small(SMALL_PARAMS)
{
    // Keys or their numbers, and which key of the tile each is.
    __local KEY tile[TILE + 1];
#if VALUE_BYTES > 0
    __local ushort tile_at[TILE + 1];
#endif
    __local uint heads[HEAD_WORDS];
    // Where the segment begins and ends that reaches over an item's first key, if one does.
    __local uint from_before[WG];
    __local uint to_behind[WG];
    const uint item = get_local_id(0), mine = item * ITEMS;
    __global const KEY* in = in_base + in_offset;
    __global KEY* out = out_base + out_offset;
    __global const uint* header = (__global const uint*)(scratch + header_at);
    __global const ulong* ends = (__global const ulong*)(scratch + header_at);
    __global const uint* all_heads = (__global const uint*)(scratch + heads_at);
    __global const OFFSET_T* listed = (__global const OFFSET_T*)(scratch + listed_at);
#if VALUE_BYTES > 0
    __global const VALUE* values_in = values_in_base + values_in_offset;
    __global VALUE* values_out = values_out_base + values_out_offset;
#endif
    const uint jobs = windows != 0 ? windows : count_of(header, LISTED);
    for (uint job = get_group_id(0); job < jobs; job += get_num_groups(0)) {
        // Heads from `base` on; beyond the tile, and behind a listed segment, there is nothing else.
        const OFFSET_T base = windows != 0 ? (OFFSET_T)job * WINDOW : listed[2 * (ulong)job];
        const uint len = windows != 0 ? 0 : (uint)(listed[2 * (ulong)job + 1] - base);
        for (uint i = item; i < HEAD_WORDS; i += WG) {
            uint word = ~0u;
            if (windows != 0) {
                // Words are there up to the tile of the last window.
                word = i <= TILE / 32 ? heads_of(all_heads, base / 32 + i, ends[FIRST], ends[LAST_END]) : ~0u;
            } else if (32 * i < len) {
                word = (i == 0 ? 1u : 0u) | (len - 32 * i < 32 ? ~0u << (len - 32 * i) : 0u);
            }
            heads[i] = word;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        // What is sorted, from `base` on: of a window the segments from its first head on, without the last one that begins in it,
        // if that ends beyond the tile.
        uint begin = 0, part = len;
        if (windows != 0) {
            begin = next_head(heads, 0);
            part = 0;
            if (begin < WINDOW) {
                const uint last = last_head(heads, WINDOW - 1), end = next_head(heads, last + 1);
                part = (end <= TILE ? end : last) - begin;
            }
            // Behind the last key all are heads.
            part = (uint)min((OFFSET_T)part, n - min(n, base + begin));
        }
        KEY x[ITEMS];
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            const uint i = k * WG + item;
            x[k] = i < part ? TO_TILE(in[base + begin + i]) : (KEY)(0);
        }
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            tile[k * WG + item] = x[k];
        }
        if (item == 0) {
            tile[TILE] = (KEY)(0);
#if VALUE_BYTES > 0
            tile_at[TILE] = 0;
#endif
        }
        const uint p = begin + min(mine, part);
        const int inside = mine > 0 && mine < part;
        from_before[item] = inside ? last_head(heads, p - 1) - begin : 0;
        to_behind[item] = inside ? next_head(heads, p) - begin : 0;
        const uint flags = (uint)(((ulong)heads[p / 32 + 1] << 32 | heads[p / 32]) >> p % 32);
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            x[k] = tile[mine + k];
        }
#if VALUE_BYTES > 0
        ushort at[ITEMS];
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            at[k] = (ushort)(mine + k);
        }
#define SWAP_AT(k)                                                                                                     \
    const ushort moved = at[k];                                                                                        \
    at[k] = swap ? at[(k) + 1] : moved;                                                                                \
    at[(k) + 1] = swap ? moved : at[(k) + 1];
#define STORE_AT(k) tile_at[mine + (k)] = at[k];
#define TAKE_AT(k, place) at[k] = tile_at[place];
#else
#define SWAP_AT(k)
#define STORE_AT(k)
#define TAKE_AT(k, place)
#endif
        // Neighbours change places, by turns the even and the odd ones, but at a head.
        UNROLL
        for (uint turn = 0; turn < ITEMS; turn++) {
            UNROLL
            for (uint k = turn % 2; k + 1 < ITEMS; k += 2) {
                const KEY a = x[k], b = x[k + 1];
                const int swap = BELOW(b, a) && (flags >> (k + 1) & 1) == 0;
                x[k] = swap ? b : a;
                x[k + 1] = swap ? a : b;
                SWAP_AT(k)
            }
        }
        int changed = 1;
#define STORE_CHANGED                                                                                                  \
    if (changed) {                                                                                                     \
        UNROLL                                                                                                         \
        for (uint k = 0; k < ITEMS; k++) {                                                                             \
            tile[mine + k] = x[k];                                                                                     \
            STORE_AT(k)                                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);
        for (uint lists = 1; lists * ITEMS < part; lists *= 2) {
            STORE_CHANGED
            // Lists of so many items' keys meet at `mid`, where the segment in both is from `from` to `to`.
            const uint low = item & ~(2 * lists - 1), meet = low + lists, mid = meet * ITEMS;
            const uint from = max(from_before[meet], low * ITEMS), to = min(to_behind[meet], mid + lists * ITEMS);
            changed = from < mid && mid < to && mine < to && mine + ITEMS > from;
            if (changed) {
                // Of the segment's first d keys `split` are of the first list.
                const uint d = min(max(mine, from), to) - from, len_a = mid - from, len_b = to - mid;
                // By `max`: Oclgrind 21.10 does not know the saturated subtraction that clang makes of a condition.
                uint split = max(d, len_b) - len_b;
                for (uint high = min(d, len_a); split < high;) {
                    const uint middle = split + (high - split) / 2;
                    if (BELOW(tile[mid + d - 1 - middle], tile[from + middle])) {
                        high = middle;
                    } else {
                        split = middle + 1;
                    }
                }
                uint a = mine < from ? mine : from + split, b = mid + d - split;
                KEY x_a = tile[a], x_b = tile[b];
                UNROLL
                for (uint k = 0; k < ITEMS; k++) {
                    // Before the segment all are of the first list, behind it of the second one.
                    const int second = a >= mid || (a >= from && b < to && BELOW(x_b, x_a));
                    x[k] = second ? x_b : x_a;
                    TAKE_AT(k, second ? b : a)
                    a += second ? 0 : 1;
                    b += second ? 1 : 0;
                    const KEY next = tile[second ? b : a];
                    x_a = second ? x_a : next;
                    x_b = second ? next : x_b;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        STORE_CHANGED
#if VALUE_BYTES > 0
        if ((mode & NO_KEYS) == 0)
#endif
        {
            UNROLL
            for (uint k = 0; k < ITEMS; k++) {
                const uint i = k * WG + item;
                if (i < part) {
                    out[base + begin + i] = FROM_TILE(tile[i]);
                }
            }
        }
#if VALUE_BYTES > 0
        UNROLL
        for (uint k = 0; k < ITEMS; k++) {
            const uint i = k * WG + item;
            if (i < part) {
                const OFFSET_T place = base + begin + tile_at[i];
                values_out[base + begin + i] = (mode & PLACES) != 0 ? (VALUE)place : values_in[place];
            }
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif
