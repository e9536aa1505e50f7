// The k smallest keys of each row, or the k-th smallest, by radix selection from the most significant digit on (as Zhang, Naruse,
// Li and Wang 2023), after one read that leaves few keys to select from. Of equal keys the first are taken.
//
// Keys are compared by `ordered`, which rises with them, or falls where the largest are wanted. The k smallest of a row are those
// below a threshold, and the first `need` of those at it:
//
//     start:    the state of each row; bounds (low, high) round the threshold, from keys picked here and there in the row
//     filter:   one read: counts what is below low, at low, between the two, and at high; lists what is between
//     settle:   the threshold is low or high, or among those listed; where neither, all keys are searched
//     count:    the digits of those keys, listed ones or all, that agree with the digits found so far
//     find:     the digit of the threshold; with the last one, or where all keys left are taken and none that is not listed can
//               have the same digits, the row is done
//     tally:    for each part of a row: how many keys are below the threshold, and at it
//     write:    the keys taken, in the order of the row, each behind those taken before it
//     order:    up to ORDER of them by their size; more are sorted elsewhere
//     values:   instead of the last three: the thresholds themselves, which are the k-th smallest keys; with FLOAT_KEYS it is after
//               tally, and the key is looked up, since several have its number
//     rows:     all of this by one group for each row, where rows are short, or many
//
// With ONE_PASS the group of a row that ends last finds after `count`, without a further launch.
//
// FEW: so many keys of a tile are listed by themselves, and tiles that list none have nothing to do for it; not where barriers must
// not depend on data.
//
// No group waits for another, and the host for none: what a step finds is in the row's state, and kernels that have nothing left
// to do do nothing.
//
// A row is searched in parts of `share` keys, a multiple of TILE, one for each group. Positions in a row are counted from the
// word of 16 bytes with its first key, `pad` keys before it, so that all but the first and the last word are loaded whole.
// Listed keys are in segments, in the order of their part; a part has a table of its segments. On CPU drivers (WG is 1) a group
// is one item, and what is local memory elsewhere is its own.
//
// Bytes: n keys read by filter, and k written; where bounds fail, by heavy ties or bad luck, once more for each digit, by tally
// and by write.
#include "lib/types.cl"
#include "lib/keys.cl"
#ifdef ONE_PASS
#include "lib/subgroup.cl"
#include "lib/ended.cl"
#endif

#ifndef WG
#define WG 256
#endif
// Words of 16 bytes of an item in a tile.
#ifndef ROWS
#define ROWS 4
#endif
#ifndef RADIX_BITS
#define RADIX_BITS 11
#endif
// Replicas of the counters of digits.
#ifndef REPLICAS
#define REPLICAS 2
#endif
// Keys that `start` picks.
#ifndef SAMPLE
#define SAMPLE 4096
#endif
// Keys of an item that `start` has in flight.
#if SAMPLE / WG < 16
#define PICKED (SAMPLE / WG)
#else
#define PICKED 16
#endif
#if SAMPLE % (PICKED * WG) != 0
#error "the items pick as many keys each"
#endif
// Keys that `order` puts in order.
#ifndef ORDER
#define ORDER 2048
#endif
// Bytes of a place: 0 where places are not wanted.
#ifndef PLACE_BYTES
#define PLACE_BYTES 0
#endif
#if PLACE_BYTES > 0 && !defined(PLACE)
#define PLACE uint
#endif

#define RADIX (1 << RADIX_BITS)
#define WIDTH (8 * KEY_BYTES)
#define WORD_KEYS (16 / KEY_BYTES)
// Listed keys that are written at a time, at least; those of an item that are taken from there at a time.
#define FLUSH 1024
#define LISTED_ROWS 4

#if WG == 1
#define TILE 4096
#define SHARED
#define MEET
#define MEET_AT_STATE
#define ADD(p, x) (*(p) += (x))
#define LIST FLUSH
#else
#define TILE (WG * ROWS * WORD_KEYS)
#define SHARED __local
#define MEET barrier(CLK_LOCAL_MEM_FENCE)
// After it an item may write what others read before.
#define MEET_AT_STATE barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define ADD(p, x) atomic_add(p, x)
#define LIST (FLUSH + TILE)
#endif
#ifdef UNROLLED
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

// Words of a row's state.
#define PREFIX 0
#define SHIFT 1
#define NEED 2
#define WAY 3
#define LOW 4
#define HIGH 5
// Two uints: how many keys are listed, and whether there was no room.
#define LISTED 6
// Two uints: how many groups of the row are done, as ended.cl counts them, and nothing.
#define ENDED 7

// What is known of a row. DONE: its threshold. HAS_LOW, HAS_HIGH: bounds. IN_LIST: the threshold is between them, AT_LOW or
// AT_HIGH: it is one of them.
#define DONE 1
#define HAS_LOW 2
#define HAS_HIGH 4
#define IN_LIST 8
#define AT_LOW 16
#define AT_HIGH 32

// What all kernels are told. Regions of a row's scratch, in bytes: its size, and where its histogram, its parts' classes (uint4),
// tallies (uint2), numbers of segments (uint) and segments (uint2), and listed keys and places are; its state is first.
#define ROW_PARAMS                                                                                                     \
    __global const KEY *in_base, const ulong in_offset, const OFFSET_T len, const ulong stride, __global uchar *scratch, \
        const ulong8 region, const uint rows, const uint parts, const OFFSET_T share, const WORD flip,                 \
        const WORD always

#define OWN_ROW const ulong row = get_group_id(0);
// Neighbouring groups take the same part of several rows, which may be one row searched for several keys.
#define OWN_PART const ulong row = get_group_id(0) % rows, part = get_group_id(0) / rows;

#define OF_ROW(offset) (scratch + row * region.s0 + (offset))
#define STATE ((__global ulong*)OF_ROW(0))
#define ENDED_OF_ROW ((volatile __global uint*)(STATE + ENDED))
#define HISTOGRAM ((__global uint*)OF_ROW(region.s1))
#define CLASSES ((__global uint4*)OF_ROW(region.s2))
#define TALLIES ((__global uint2*)OF_ROW(region.s3))
#define SEGMENT_COUNTS ((__global uint*)OF_ROW(region.s4))
#define SEGMENTS ((__global uint2*)OF_ROW(region.s5) + part * segments)
#define LISTED_KEYS ((__global KEY*)OF_ROW(region.s6))
#define LISTED_PLACES ((__global OFFSET_T*)OF_ROW(region.s7))

// The row's keys by position, and the position of its first one.
#define KEYS_OF_ROW                                                                                                    \
    const uint pad = (uint)((in_offset + row * stride) % WORD_KEYS);                                                   \
    __global const KEY* keys = in_base + (in_offset + row * stride - pad);
// The positions of the part.
#define RANGE_OF_PART                                                                                                  \
    const OFFSET_T all = len + pad, begin = (OFFSET_T)part * share;                                                    \
    const OFFSET_T end = begin < all ? begin + min(share, all - begin) : begin;

#define ORDERED(key) ordered(key, flip, always)

// Counters of keys in a row, of two words where a row can have 2^32.
#ifdef WIDE
#define COUNTER_WORDS 2
#define COUNTER(p) ((ulong)(p)[1] << 32 | (p)[0])
static inline void count_more(volatile __global uint* p, uint count)
{
    const uint old = atomic_add(p, count);
    if (old + count < old) {
        atomic_inc(p + 1);
    }
}
#else
#define COUNTER_WORDS 1
#define COUNTER(p) ((p)[0])
#define count_more(p, count) atomic_add(p, count)
#endif

// Blocks of items, and how many items each has.
#define BLOCKS (WG < 16 ? WG : 16)
#define BLOCK (WG / BLOCKS)
#define SUMS (WG + BLOCKS)

// The sums of both x over the items before this one, and over all. All items call it. Items of a block read the same words, so
// that none has to wait for another but twice. (Of some items that do it for all PoCL 3.1 loses the work.)
INLINED ulong2 sum_before(ulong2 x, SHARED ulong2* sums, SHARED ulong2* totals, ulong2* total)
{
#if WG == 1
    *total = x;
    return (ulong2)(0);
#else
    const uint item = get_local_id(0), block = item / BLOCK, place = item % BLOCK;
    // Blocks begin in different banks.
    sums[item + block] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    ulong2 before = (ulong2)(0), all = (ulong2)(0);
    for (uint i = 0; i < BLOCK; i++) {
        const ulong2 other = sums[block * (BLOCK + 1) + i];
        before += i < place ? other : (ulong2)(0);
    }
    if (place == BLOCK - 1) {
        totals[block] = before + x;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint b = 0; b < BLOCKS; b++) {
        const ulong2 other = totals[b];
        before += b < block ? other : (ulong2)(0);
        all += other;
    }
    *total = all;
    return before;
#endif
}

// Digits of an item.
#define OWN (RADIX / WG)

// Which of the digits has the key of rank `need`, from 1 on, where the item's own ones have `own` keys: the digit, the keys with
// lower ones, and those with it. All items call it; the three are in `found` after it.
INLINED void find_digit(
    const ulong* own, ulong need, SHARED ulong* found, SHARED ulong2* sums, SHARED ulong2* totals)
{
    ulong sum = 0;
    for (uint o = 0; o < OWN; o++) {
        sum += own[o];
    }
    ulong2 total;
    ulong before = sum_before((ulong2)(sum, 0), sums, totals, &total).x;
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
    MEET;
}

// A word of 16 bytes, and its keys.
typedef union {
    uint4 words;
    KEY keys[WORD_KEYS];
} KeyWord;

// The word at a position, of which what is not in [pad, end) is 0. The host has the pointer so that it is aligned.
static inline uint4 load_word(__global const KEY* keys, OFFSET_T p, OFFSET_T pad, OFFSET_T end)
{
    if (p >= pad && p + WORD_KEYS <= end) {
        return *(__global const uint4*)(keys + p);
    }
    KeyWord word;
    word.words = (uint4)(0);
    for (uint j = 0; j < WORD_KEYS; j++) {
        if (p + j >= pad && p + j < end) {
            word.keys[j] = keys[p + j];
        }
    }
    return word.words;
}

// The position of the item's word `r` in the tile at `base`.
#define POSITION(base, r) ((base) + ((r) * WG + get_local_id(0)) * WORD_KEYS)
#define LOAD_TILE(keys, base, pad, end)                                                                                \
    UNROLL                                                                                                             \
    for (uint r = 0; r < ROWS; r++) {                                                                                  \
        held[r].words = load_word(keys, POSITION(base, r), pad, end);                                                  \
    }

// Adds the digits of the keys of a tile, whose higher digits are `prefix`, to `counts`. Items that are not alone call it between
// barriers.
INLINED void count_tile(
    __global const KEY* keys, OFFSET_T base, OFFSET_T pad, OFFSET_T end, WORD prefix, uint shift, uint bits, WORD flip,
    WORD always, SHARED uint* counts)
{
#define COUNT(key)                                                                                                     \
    {                                                                                                                  \
        const WORD number = ORDERED(key) >> shift;                                                                     \
        if (number >> bits == prefix) {                                                                                \
            ADD(counts + ((uint)number & ((1u << bits) - 1)) * REPLICAS + get_local_id(0) % REPLICAS, 1);              \
        }                                                                                                              \
    }
#if WG == 1
    for (OFFSET_T p = max(base, pad), stop = base + min((OFFSET_T)TILE, end - base); p < stop; p++) {
        COUNT(keys[p])
    }
#else
    KeyWord held[ROWS];
    LOAD_TILE(keys, base, pad, end)
    if (base >= pad && base + TILE <= end) {
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                COUNT(held[r].keys[j])
            }
        }
    } else {
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                if (POSITION(base, r) + j >= pad && POSITION(base, r) + j < end) {
                    COUNT(held[r].keys[j])
                }
            }
        }
    }
#endif
}

// The keys with each of the item's own digits.
#define TAKE_COUNTS(own, counts)                                                                                       \
    for (uint o = 0; o < OWN; o++) {                                                                                   \
        own[o] = 0;                                                                                                    \
        for (uint r = 0; r < REPLICAS; r++) {                                                                          \
            own[o] += counts[(get_local_id(0) * OWN + o) * REPLICAS + r];                                              \
        }                                                                                                              \
    }

#define CLEAR(counts, digits)                                                                                          \
    for (uint i = get_local_id(0); i < (digits) * REPLICAS; i += WG) {                                                 \
        counts[i] = 0;                                                                                                 \
    }

// The number whose rank in the sample is `rank`, from 1 on. All items call it after a barrier.
INLINED WORD select_sample(
    const SHARED WORD* sample, uint rank, SHARED uint* counts, SHARED ulong* found, SHARED ulong2* sums,
    SHARED ulong2* totals)
{
    WORD prefix = 0;
    ulong need = rank;
    for (int left = WIDTH; left > 0; left -= RADIX_BITS) {
        const uint bits = min(left, RADIX_BITS), shift = left - bits;
        CLEAR(counts, RADIX)
        MEET;
        for (uint i = get_local_id(0); i < SAMPLE; i += WG) {
            const WORD number = sample[i] >> shift;
            if (number >> bits == prefix) {
                ADD(counts + ((uint)number & ((1u << bits) - 1)) * REPLICAS + get_local_id(0) % REPLICAS, 1);
            }
        }
        MEET;
        ulong own[OWN];
        TAKE_COUNTS(own, counts)
        find_digit(own, need, found, sums, totals);
        prefix = prefix << bits | (WORD)found[0];
        need -= found[1];
        MEET;
    }
    return prefix;
}

// Some bits from others (Appleby's MurmurHash3).
static inline uint mixed(uint x)
{
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

// The k of a row: the same for all, or one more than its number in `ranks`, if these are `given`: one more than that of row 0.
#define K_OF_ROW (given ? ranks[given - 1 + row] + 1 : k)

#ifdef ONE_PASS
#define PICKERS_PARAM , const uint pickers ENDED_PARAM
#else
#define PICKERS_PARAM
#endif

// The row's i-th key picked: one from each of equal pieces.
#define PICK(i) keys[pad + (i) * piece + ((ulong)mixed((i) + 1) * piece >> 32)]

// One group a row; or, with ONE_PASS, `pickers` groups for a single one, since the keys picked lie in pages far apart, for which
// one group waits: H200, 2^28 keys, 65,536 of them 372 us with one, 360 with 16. With `pick` there are bounds.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_start(
    ROW_PARAMS, const ulong k, __global const ulong* ranks, const uint given, const uint pick PICKERS_PARAM)
{
    SHARED WORD sample[SAMPLE];
    SHARED uint counts[RADIX * REPLICAS];
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[BLOCKS];
    SHARED ulong found[3];
#ifdef ONE_PASS
    const ulong row = pickers > 1 ? 0 : get_group_id(0);
#else
    OWN_ROW
#endif
    KEYS_OF_ROW
    const uint item = get_local_id(0);
    const ulong need = K_OF_ROW, piece = (ulong)len / SAMPLE;
#ifdef ONE_PASS
    if (pickers > 1) {
        for (uint i = get_global_id(0); i < SAMPLE; i += get_global_size(0)) {
            LISTED_KEYS[i] = PICK(i);
        }
        if (!ends_last(ended, pickers, counts)) {
            return;
        }
    }
#endif
    for (uint i = item; i < RADIX * COUNTER_WORDS; i += WG) {
        HISTOGRAM[i] = 0;
    }
    WORD low = 0, high = ~(WORD)0;
    uint way = 0;
    if (pick) {
        for (uint first = item; first < SAMPLE; first += PICKED * WG) {
            KEY held[PICKED];
            UNROLL
            for (uint r = 0; r < PICKED; r++) {
                const uint i = first + r * WG;
#ifdef ONE_PASS
                held[r] = pickers > 1 ? LISTED_KEYS[i] : PICK(i);
#else
                held[r] = PICK(i);
#endif
            }
            UNROLL
            for (uint r = 0; r < PICKED; r++) {
                sample[first + r * WG] = ORDERED(held[r]);
            }
        }
        MEET;
        // Of the keys picked about `middle` are among the k smallest, of which five standard deviations are not exceeded.
        const float middle = (float)need / (float)(ulong)len * SAMPLE;
        const float off = 5 * sqrt(middle * max(0.0f, 1 - middle / SAMPLE)) + 8;
        const float first = floor(middle - off), last = ceil(middle + off);
        way = (first >= 1 ? HAS_LOW : 0) | (last <= SAMPLE ? HAS_HIGH : 0);
        for (uint bound = first >= 1 ? 0 : 1; bound < 2; bound++) {
            const float rank = clamp(bound == 0 ? first : last, 1.0f, (float)SAMPLE);
            const WORD number = select_sample(sample, (uint)rank, counts, found, sums, totals);
            if (bound == 0) {
                low = number;
            } else if (way & HAS_HIGH) {
                high = number;
            }
        }
    }
    if (item == 0) {
        __global ulong* state = STATE;
        state[PREFIX] = 0;
        state[SHIFT] = 0;
        state[NEED] = need;
        state[WAY] = way;
        state[LOW] = low;
        state[HIGH] = high;
        state[LISTED] = 0;
        state[ENDED] = 0;
    }
}

// Writes the listed keys, if they are `least` or more, as a segment of the part, where there is room for `capacity` in all.
#define WRITE_LIST(least)                                                                                              \
    MEET;                                                                                                              \
    if (item == 0 && used >= (least)) {                                                                                \
        volatile __global uint* listed = (volatile __global uint*)(state + LISTED);                                    \
        start[0] = ~0u;                                                                                                \
        if (atomic_or(listed + 1, 0) == 0) {                                                                           \
            const uint next = atomic_add(listed, used);                                                                \
            if (next <= capacity && used <= capacity - next) {                                                         \
                start[0] = next;                                                                                       \
            } else {                                                                                                   \
                atomic_or(listed + 1, 1);                                                                              \
            }                                                                                                          \
        }                                                                                                              \
        SEGMENTS[segment] = (uint2)(start[0], used);                                                                   \
    }                                                                                                                  \
    MEET;                                                                                                              \
    if (used >= (least)) {                                                                                             \
        const uint first = start[0];                                                                                   \
        for (uint i = item; i < used && first != ~0u; i += WG) {                                                       \
            const OFFSET_T p = begin + list[i];                                                                        \
            LISTED_KEYS[first + i] = keys[p];                                                                          \
            PUT_PLACE(first + i, p - pad)                                                                              \
        }                                                                                                              \
        used = 0;                                                                                                      \
        segment++;                                                                                                     \
    }
#if PLACE_BYTES > 0
#define PUT_PLACE(i, place) LISTED_PLACES[i] = place;
#else
#define PUT_PLACE(i, place)
#endif

// A group for each part of each row.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_filter(
    ROW_PARAMS, const uint segments, const uint capacity)
{
    SHARED uint list[LIST];
#if WG > 1
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[BLOCKS];
#endif
    SHARED uint counted[3];
    SHARED uint start[1];
#ifdef FEW
    SHARED uint met[3];
    SHARED uint few[2 * FEW];
    uint turn = 0;
#endif
    OWN_PART
    KEYS_OF_ROW
    RANGE_OF_PART
    __global ulong* state = STATE;
    const uint way = (uint)state[WAY], item = get_local_id(0);
    const WORD low = (WORD)state[LOW], high = (WORD)state[HIGH];
    const int has_low = (way & HAS_LOW) != 0, has_high = (way & HAS_HIGH) != 0;
    // Listed keys in `list`, by their distance from the part's begin, and all of them; segments.
    uint used = 0, between = 0, segment = 0;
    uint below = 0, at_low = 0, at_high = 0;
    for (uint i = item; i < 3; i += WG) {
        counted[i] = 0;
#ifdef FEW
        met[i] = 0;
#endif
    }
    MEET;
#if WG > 1
    KeyWord held[ROWS];
    LOAD_TILE(keys, begin, pad, end)
#endif
    for (OFFSET_T base = begin; base < end; base += TILE) {
#if WG == 1
        for (OFFSET_T p = max(base, (OFFSET_T)pad), stop = base + min((OFFSET_T)TILE, end - base); p < stop; p++) {
            const WORD number = ORDERED(keys[p]);
            if (number <= high) {
                if (has_low && number <= low) {
                    below += number < low;
                    at_low += number == low;
                } else if (has_high && number == high) {
                    at_high++;
                } else {
                    list[used++] = (uint)(p - begin);
                    between++;
                    WRITE_LIST(FLUSH)
                }
            }
        }
#else
        const int whole = base >= pad && base + TILE <= end;
        // Which keys of each word are listed; how many, in 16 bits a word.
        uint chosen[ROWS];
        ulong packed = 0;
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            uint bits = 0;
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                const WORD number = ORDERED(held[r].keys[j]);
                const OFFSET_T p = POSITION(base, r) + j;
                if (number <= high && (whole || (p >= pad && p < end))) {
                    const int under = has_low && number <= low, over = !under && has_high && number == high;
                    below += under && number < low;
                    at_low += under && number == low;
                    at_high += over;
                    bits |= under || over ? 0 : 1u << j;
                }
            }
            chosen[r] = bits;
            packed |= (ulong)popcount(bits) << (16 * r);
        }
        // The next tile's are on their way while this one's are listed.
        if (end - base > TILE) {
            LOAD_TILE(keys, base + TILE, pad, end)
        }
#ifdef FEW
        // Mostly few are listed: they are met in any order, and each counts those before it. The counter of the tile before is
        // read no more, and that of the next one is 0.
        SHARED uint* own_few = few + turn % 2 * FEW;
        if (packed != 0) {
            UNROLL
            for (uint r = 0; r < ROWS; r++) {
                for (uint bits = chosen[r]; bits != 0; bits &= bits - 1) {
                    const uint place = atomic_inc(met + turn % 3);
                    if (place < FEW) {
                        own_few[place] = (uint)(POSITION(base, r) - begin) + 31 - clz(bits & -bits);
                    }
                }
            }
        }
        MEET;
        const uint listed = met[turn % 3];
        if (item == 0) {
            met[(turn + 2) % 3] = 0;
        }
        turn++;
        if (listed <= FEW) {
            if (item < listed) {
                const uint mine = own_few[item];
                uint to = used;
                for (uint q = 0; q < listed; q++) {
                    to += own_few[q] < mine;
                }
                list[to] = mine;
            }
            used += listed;
            between += listed;
            if (used >= FLUSH) {
                WRITE_LIST(FLUSH)
            }
            continue;
        }
#endif
        ulong2 total;
        const ulong before = sum_before((ulong2)(packed, 0), sums, totals, &total).x;
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            uint to = used + (uint)(before >> (16 * r) & 0xffff);
            for (uint bits = chosen[r]; bits != 0; bits &= bits - 1) {
                list[to++] = (uint)(POSITION(base, r) - begin) + 31 - clz(bits & -bits);
            }
            const uint more = (uint)(total.x >> (16 * r) & 0xffff);
            used += more;
            between += more;
        }
        WRITE_LIST(FLUSH)
#endif
    }
    WRITE_LIST(1)
    ADD(counted, below);
    ADD(counted + 1, at_low);
    ADD(counted + 2, at_high);
    MEET;
    if (item == 0) {
        CLASSES[part] = (uint4)(counted[0], counted[1], between, counted[2]);
        SEGMENT_COUNTS[part] = segment;
    }
}

// One group a row, after `filter`. At the end of that, by the group that ends last, it made that slower: 380 µs for 356 on an H200,
// k = 1,024 of 2^28.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_settle(ROW_PARAMS)
{
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[BLOCKS];
    OWN_ROW
    __global ulong* state = STATE;
    uint way = (uint)state[WAY];
    ulong2 lower = (ulong2)(0), upper = (ulong2)(0), all_lower, all_upper;
    for (uint i = get_local_id(0); i < parts; i += WG) {
        const uint4 counts = CLASSES[i];
        lower += convert_ulong2(counts.xy);
        upper += convert_ulong2(counts.zw);
    }
    sum_before(lower, sums, totals, &all_lower);
    sum_before(upper, sums, totals, &all_upper);
    MEET_AT_STATE;
    if (get_local_id(0) == 0) {
        const ulong below = all_lower.x, at_low = all_lower.y, at_high = all_upper.y;
        const ulong need = state[NEED], listed = below + at_low + all_upper.x;
        const int room = ((__global const uint*)(state + LISTED))[1] == 0;
        if (need > below && need <= below + at_low) {
            way |= DONE | AT_LOW;
            state[PREFIX] = state[LOW];
            state[NEED] = need - below;
        } else if (need > below + at_low && need <= listed && room) {
            way |= IN_LIST;
            state[NEED] = need - below - at_low;
        } else if (need > listed && need <= listed + at_high) {
            way |= DONE | AT_HIGH;
            state[PREFIX] = state[HIGH];
            state[NEED] = need - listed;
        }
        state[WAY] = way;
    }
}

// The digit of the threshold, from the histogram, which is 0 after it. With `exact` all digits are wanted, also where the row is
// known without. All items of one group of the row call it, after `count`.
INLINED void find(
    __global ulong* state, uint way, volatile __global uint* histogram, uint shift, uint bits, uint exact,
    SHARED ulong* found, SHARED ulong2* sums, SHARED ulong2* totals)
{
    const ulong need = state[NEED], prefix = state[PREFIX];
    ulong own[OWN];
    for (uint o = 0; o < OWN; o++) {
        own[o] = COUNTER(histogram + (get_local_id(0) * OWN + o) * COUNTER_WORDS);
    }
    find_digit(own, need, found, sums, totals);
    MEET_AT_STATE;
    for (uint i = get_local_id(0); i < RADIX * COUNTER_WORDS; i += WG) {
        histogram[i] = 0;
    }
    if (get_local_id(0) == 0 && (way & DONE) == 0) {
        state[PREFIX] = prefix << bits | found[0];
        state[SHIFT] = shift;
        state[NEED] = need - found[1];
        // Where `write` reads keys that are not listed, some may have the digits of the threshold so far.
        const int others = (way & IN_LIST) != 0 && (way & HAS_LOW) != 0;
        if (shift == 0 || (found[2] == need - found[1] && !exact && !others)) {
            state[WAY] = way | DONE;
        }
    }
}

#ifdef ONE_PASS
#define ENDING_PARAMS , const uint exact
#else
#define ENDING_PARAMS
#endif

// A group for each part of each row: the digit of `bits` bits above `shift`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_count(
    ROW_PARAMS, const uint shift, const uint bits ENDING_PARAMS)
{
    SHARED uint counts[RADIX * REPLICAS];
#ifdef ONE_PASS
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[BLOCKS];
    SHARED ulong found[3];
#endif
    OWN_PART
    KEYS_OF_ROW
    __global ulong* state = STATE;
    const uint way = (uint)state[WAY];
    const int listed = (way & IN_LIST) != 0;
    const OFFSET_T skipped = listed ? 0 : pad;
    const OFFSET_T all = (way & DONE) != 0 ? 0 : listed ? ((__global const uint*)(state + LISTED))[0] : len + pad;
    const WORD prefix = (WORD)state[PREFIX];
    __global const KEY* from = listed ? LISTED_KEYS : keys;
    // Groups without keys have nothing to clear and to add.
    const uint digits = part * TILE < all ? RADIX : 0;
    CLEAR(counts, digits)
    MEET;
    for (OFFSET_T base = part * TILE; base < all; base += parts * TILE) {
        count_tile(from, base, skipped, all, prefix, shift, bits, flip, always, counts);
    }
    MEET;
    for (uint d = get_local_id(0); d < digits; d += WG) {
        uint sum = 0;
        for (uint r = 0; r < REPLICAS; r++) {
            sum += counts[d * REPLICAS + r];
        }
        if (sum != 0) {
            count_more(HISTOGRAM + d * COUNTER_WORDS, sum);
        }
    }
#ifdef ONE_PASS
    // No group of the row writes `way` before all of them have read it.
    if ((way & DONE) == 0 && ends_last(ENDED_OF_ROW, parts, counts)) {
        find(state, way, HISTOGRAM, shift, bits, exact, found, sums, totals);
    }
#endif
}

#ifndef ONE_PASS
// One group a row, after `count`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_find(
    ROW_PARAMS, const uint shift, const uint bits, const uint exact)
{
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[BLOCKS];
    SHARED ulong found[3];
    OWN_ROW
    __global ulong* state = STATE;
    find(state, (uint)state[WAY], HISTOGRAM, shift, bits, exact, found, sums, totals);
}
#endif

// A group for each part of each row, which is done.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_tally(ROW_PARAMS, const uint segments)
{
    SHARED uint counted[2];
    OWN_PART
    KEYS_OF_ROW
    RANGE_OF_PART
    __global const ulong* state = STATE;
    const uint way = (uint)state[WAY], shift = (uint)state[SHIFT], item = get_local_id(0);
    const WORD prefix = (WORD)state[PREFIX];
    for (uint i = item; i < 2; i += WG) {
        counted[i] = 0;
    }
    MEET;
    uint below = 0, at = 0;
#define TALLY(key)                                                                                                     \
    {                                                                                                                  \
        const WORD number = ORDERED(key) >> shift;                                                                     \
        below += number < prefix;                                                                                      \
        at += number == prefix;                                                                                        \
    }
    if (way & (AT_LOW | AT_HIGH)) {
        if (item == 0) {
            const uint4 counts = CLASSES[part];
            below = way & AT_LOW ? counts.x : counts.x + counts.y + counts.z;
            at = way & AT_LOW ? counts.y : counts.w;
        }
    } else if (way & IN_LIST) {
        if (item == 0) {
            const uint4 counts = CLASSES[part];
            below = counts.x + counts.y;
        }
        __global const uint2* own = SEGMENTS;
        const uint count = SEGMENT_COUNTS[part];
        for (uint s = 0; s < count; s++) {
            const uint2 segment = own[s];
            for (uint i = item; i < segment.y; i += WG) {
                TALLY(LISTED_KEYS[segment.x + i])
            }
        }
    } else {
        for (OFFSET_T base = begin; base < end; base += TILE) {
#if WG == 1
            for (OFFSET_T p = max(base, (OFFSET_T)pad), stop = base + min((OFFSET_T)TILE, end - base); p < stop; p++) {
                TALLY(keys[p])
            }
#else
            KeyWord held[ROWS];
            LOAD_TILE(keys, base, pad, end)
            const int whole = base >= pad && base + TILE <= end;
            UNROLL
            for (uint r = 0; r < ROWS; r++) {
                UNROLL
                for (uint j = 0; j < WORD_KEYS; j++) {
                    const OFFSET_T p = POSITION(base, r) + j;
                    const WORD number = ORDERED(held[r].keys[j]) >> shift;
                    const int inside = whole || (p >= pad && p < end);
                    below += inside && number < prefix;
                    at += inside && number == prefix;
                }
            }
#endif
        }
    }
    ADD(counted, below);
    ADD(counted + 1, at);
    MEET;
    if (item == 0) {
        TALLIES[part] = (uint2)(counted[0], counted[1]);
    }
}

// Where what is taken goes: k keys for each row, and their places, to which `place_step` for each row and `place_base` are
// added.
#define OUT_PARAMS                                                                                                     \
    , const ulong k, __global KEY *out_base, const ulong out_offset, __global uchar *places_base,                      \
        const ulong places_offset, const ulong place_base, const ulong place_step
#define OUT_OF_ROW                                                                                                     \
    __global KEY* out = out_base + out_offset + row * k;                                                               \
    PLACES_OF_ROW
#if PLACE_BYTES > 0
#define PLACES_OF_ROW                                                                                                  \
    __global PLACE* places = (__global PLACE*)places_base + places_offset + row * k;                                   \
    const PLACE first_place = (PLACE)(place_base + row * place_step);
#define TAKE(to, key, place)                                                                                           \
    out[to] = key;                                                                                                     \
    places[to] = first_place + (PLACE)(place);
#else
#define PLACES_OF_ROW
#define TAKE(to, key, place) out[to] = key;
#endif

// A key of which `below` and `at` are before it.
#define PUT(key, place)                                                                                                \
    {                                                                                                                  \
        const WORD number = ORDERED(key) >> shift;                                                                     \
        if (number < prefix) {                                                                                         \
            TAKE(below + min(at, need), key, place)                                                                    \
            below++;                                                                                                   \
        } else if (number == prefix) {                                                                                 \
            if (at < need) {                                                                                           \
                TAKE(below + at, key, place)                                                                           \
            }                                                                                                          \
            at++;                                                                                                      \
        }                                                                                                              \
    }

// Writes what is taken of [begin, end), before which `below` and `at` keys are. All items call it.
INLINED void write_range(
    __global const KEY* keys, OFFSET_T begin, OFFSET_T end, uint pad, WORD prefix, uint shift, ulong need, ulong below,
    ulong at, WORD flip, WORD always, SHARED ulong2* sums, SHARED ulong2* totals, __global KEY* out
#if PLACE_BYTES > 0
    , __global PLACE* places, const PLACE first_place
#endif
)
{
    for (OFFSET_T base = begin; base < end; base += TILE) {
#if WG == 1
        for (OFFSET_T p = max(base, (OFFSET_T)pad), stop = base + min((OFFSET_T)TILE, end - base); p < stop; p++) {
            const KEY key = keys[p];
            PUT(key, p - pad)
        }
#else
        KeyWord held[ROWS];
        LOAD_TILE(keys, base, pad, end)
        // Of each word, how many are below the threshold and at it, in 16 bits.
        ulong2 packed = (ulong2)(0), total;
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            uint own_below = 0, own_at = 0;
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                const OFFSET_T p = POSITION(base, r) + j;
                const WORD number = ORDERED(held[r].keys[j]) >> shift;
                const int inside = p >= pad && p < end;
                own_below += inside && number < prefix;
                own_at += inside && number == prefix;
            }
            packed |= (ulong2)(own_below, own_at) << (ulong2)(16 * r);
        }
        const ulong2 before = sum_before(packed, sums, totals, &total);
        ulong row_below = below, row_at = at;
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            below = row_below + (before.x >> (16 * r) & 0xffff);
            at = row_at + (before.y >> (16 * r) & 0xffff);
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                const OFFSET_T p = POSITION(base, r) + j;
                if (p >= pad && p < end) {
                    PUT(held[r].keys[j], p - pad)
                }
            }
            row_below += total.x >> (16 * r) & 0xffff;
            row_at += total.y >> (16 * r) & 0xffff;
        }
        below = row_below;
        at = row_at;
#endif
    }
}
#if PLACE_BYTES > 0
#define WRITE_RANGE(begin, end, below, at)                                                                             \
    write_range(                                                                                                       \
        keys, begin, end, pad, prefix, shift, need, below, at, flip, always, sums, totals, out, places, first_place);
#else
#define WRITE_RANGE(begin, end, below, at)                                                                             \
    write_range(keys, begin, end, pad, prefix, shift, need, below, at, flip, always, sums, totals, out);
#endif

// A group for each part of each row, after `tally`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_write(ROW_PARAMS, const uint segments OUT_PARAMS)
{
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[BLOCKS];
    OWN_PART
    KEYS_OF_ROW
    RANGE_OF_PART
    OUT_OF_ROW
    __global const ulong* state = STATE;
    const uint way = (uint)state[WAY], shift = (uint)state[SHIFT], item = get_local_id(0);
    const WORD prefix = (WORD)state[PREFIX];
    const ulong need = state[NEED];
    ulong2 earlier = (ulong2)(0), all_earlier;
    for (uint i = item; i < part; i += WG) {
        earlier += convert_ulong2(TALLIES[i]);
    }
    sum_before(earlier, sums, totals, &all_earlier);
    ulong below = all_earlier.x, at = all_earlier.y;
    const uint2 own = TALLIES[part];
    const int any = own.x > 0 || (own.y > 0 && at < need);
    // What is below the lower bound is not in the list.
    const int listed = (way & IN_LIST) != 0 && (way & HAS_LOW) == 0;
    WRITE_RANGE(begin, any && !listed ? end : begin, below, at)
    const uint count = any && listed ? SEGMENT_COUNTS[part] : 0;
    for (uint s = 0; s < count; s++) {
        const uint2 segment = SEGMENTS[s];
#if PLACE_BYTES > 0
#define PLACE_OF(i) LISTED_PLACES[segment.x + (i)]
#else
#define PLACE_OF(i) 0
#endif
#if WG == 1
        for (uint i = 0; i < segment.y; i++) {
            const KEY key = LISTED_KEYS[segment.x + i];
            PUT(key, PLACE_OF(i))
        }
#else
        for (uint base = 0; base < segment.y; base += LISTED_ROWS * WG) {
            // Of each key of the item, whether it is below the threshold, or at it, in 16 bits.
            KEY held[LISTED_ROWS];
            ulong2 packed = (ulong2)(0), total;
            UNROLL
            for (uint r = 0; r < LISTED_ROWS; r++) {
                const uint i = base + r * WG + item;
                held[r] = i < segment.y ? LISTED_KEYS[segment.x + i] : 0;
            }
            UNROLL
            for (uint r = 0; r < LISTED_ROWS; r++) {
                const WORD number = ORDERED(held[r]) >> shift;
                const int there = base + r * WG + item < segment.y;
                packed |= (ulong2)(there && number < prefix, there && number == prefix) << (ulong2)(16 * r);
            }
            const ulong2 before = sum_before(packed, sums, totals, &total);
            ulong row_below = below, row_at = at;
            UNROLL
            for (uint r = 0; r < LISTED_ROWS; r++) {
                const uint i = base + r * WG + item;
                below = row_below + (before.x >> (16 * r) & 0xffff);
                at = row_at + (before.y >> (16 * r) & 0xffff);
                if (i < segment.y) {
                    PUT(held[r], PLACE_OF(i))
                }
                row_below += total.x >> (16 * r) & 0xffff;
                row_at += total.y >> (16 * r) & 0xffff;
            }
            below = row_below;
            at = row_at;
        }
#endif
    }
}

#ifdef FLOAT_KEYS

// Writes the key of [begin, end) at the threshold that is the `need`-th of these, from 1 on, if there is one. All items call it.
INLINED void pick(
    __global const KEY* keys, OFFSET_T begin, OFFSET_T end, uint pad, WORD threshold, ulong need, WORD flip, WORD always,
    SHARED ulong2* sums, SHARED ulong2* totals, __global KEY* out)
{
    ulong at = 0;
    for (OFFSET_T base = begin; base < end; base += TILE) {
#if WG == 1
        for (OFFSET_T p = max(base, (OFFSET_T)pad), stop = base + min((OFFSET_T)TILE, end - base); p < stop; p++) {
            at += ORDERED(keys[p]) == threshold;
            if (at == need) {
                *out = keys[p];
                need = 0;
            }
        }
#else
        KeyWord held[ROWS];
        LOAD_TILE(keys, base, pad, end)
        // Of each word, how many are at the threshold, in 16 bits.
        ulong packed = 0;
        ulong2 total;
#define IS_AT(r, j)                                                                                                        (POSITION(base, r) + j >= pad && POSITION(base, r) + j < end && ORDERED(held[r].keys[j]) == threshold)
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            uint own = 0;
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                own += IS_AT(r, j);
            }
            packed |= (ulong)own << (16 * r);
        }
        const ulong before = sum_before((ulong2)(packed, 0), sums, totals, &total).x;
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            ulong rank = at + (before >> (16 * r) & 0xffff);
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                const int is_at = IS_AT(r, j);
                rank += is_at;
                if (is_at && rank == need) {
                    *out = held[r].keys[j];
                }
            }
            at += total.x >> (16 * r) & 0xffff;
        }
#endif
    }
}

// A group for each part of each row, after `tally`: the part that has the key writes it.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_values(
    ROW_PARAMS, __global KEY* out_base, const ulong out_offset)
{
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[BLOCKS];
    OWN_PART
    KEYS_OF_ROW
    RANGE_OF_PART
    __global const ulong* state = STATE;
    ulong2 earlier = (ulong2)(0), all_earlier;
    for (uint i = get_local_id(0); i < part; i += WG) {
        earlier.y += TALLIES[i].y;
    }
    sum_before(earlier, sums, totals, &all_earlier);
    const ulong need = state[NEED], before = all_earlier.y;
    const int here = need > before && need <= before + TALLIES[part].y;
    pick(
        keys, begin, here ? end : begin, pad, (WORD)state[PREFIX], need - before, flip, always, sums, totals,
        out_base + out_offset + row);
}

#else

// An item for each row: its threshold.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_values(
    ROW_PARAMS, __global KEY* out_base, const ulong out_offset)
{
    const ulong row = get_global_id(0);
    if (row < rows) {
        out_base[out_offset + row] = key_of_ordered((WORD)STATE[PREFIX], flip, always);
    }
}

#endif

// One group a row does it all. With `ranks`, `out` gets the threshold.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_rows(
    ROW_PARAMS, __global const ulong* ranks, const uint given OUT_PARAMS)
{
    SHARED uint counts[RADIX * REPLICAS];
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[BLOCKS];
    SHARED ulong found[3];
    OWN_ROW
    KEYS_OF_ROW
    const OFFSET_T all = len + pad;
    const uint shift = 0;
    WORD prefix = 0;
    ulong need = K_OF_ROW;
    for (int left = WIDTH; left > 0; left -= RADIX_BITS) {
        const uint bits = min(left, RADIX_BITS);
        CLEAR(counts, RADIX)
        MEET;
        for (OFFSET_T base = 0; base < all; base += TILE) {
            count_tile(keys, base, pad, all, prefix, left - bits, bits, flip, always, counts);
        }
        MEET;
        ulong own[OWN];
        TAKE_COUNTS(own, counts)
        find_digit(own, need, found, sums, totals);
        prefix = prefix << bits | (WORD)found[0];
        need -= found[1];
        MEET;
    }
#ifdef FLOAT_KEYS
    pick(keys, 0, given ? all : 0, pad, prefix, need, flip, always, sums, totals, out_base + out_offset + row);
#else
    if (given && get_local_id(0) == 0) {
        out_base[out_offset + row] = key_of_ordered(prefix, flip, always);
    }
#endif
    OUT_OF_ROW
    WRITE_RANGE(0, given ? 0 : all, 0, 0)
}

// One group a row: k <= `most` keys, which are in the order of their row, and their places, from scratch to `out`. `most` is a
// power of two, ORDER at most.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_order(
    __global const uchar* scratch, const ulong keys_first, const ulong places_first, const uint k, const uint most,
    const WORD flip, const WORD always, __global KEY* out_base, const ulong out_offset, __global uchar* places_base,
    const ulong places_offset)
{
    SHARED WORD numbers[ORDER];
    SHARED uint order[ORDER];
    const uint item = get_local_id(0);
    const ulong first = (ulong)get_group_id(0) * k;
    __global const KEY* from = (__global const KEY*)scratch + keys_first + first;
    for (uint i = item; i < most; i += WG) {
        numbers[i] = i < k ? ORDERED(from[i]) : ~(WORD)0;
        order[i] = i;
    }
    MEET;
    // Batcher's bitonic sort of pairs, no two of which are equal.
    for (uint size = 2; size <= most; size *= 2) {
        for (uint far = size / 2; far > 0; far /= 2) {
            for (uint t = item; t < most / 2; t += WG) {
                const uint a = 2 * t - (t & (far - 1)), b = a + far;
                const WORD x = numbers[a], y = numbers[b];
                const uint i = order[a], j = order[b];
                const int above = x > y || (x == y && i > j);
                if (above == ((a & size) == 0)) {
                    numbers[a] = y;
                    numbers[b] = x;
                    order[a] = j;
                    order[b] = i;
                }
            }
            MEET;
        }
    }
    for (uint i = item; i < k; i += WG) {
        out_base[out_offset + first + i] = from[order[i]];
#if PLACE_BYTES > 0
        ((__global PLACE*)places_base)[places_offset + first + i] =
            ((__global const PLACE*)scratch)[places_first + first + order[i]];
#endif
    }
}
