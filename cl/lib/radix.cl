// Shared parts of the kernels of sort.cl: options, digits, passes, parts of the keys, and values.
//
// Needs types.cl, subgroup.cl, keys.cl and length.cl.

// VALUE_BYTES == 0: there are no values.
#ifndef VALUE_BYTES
#define VALUE_BYTES 0
#define VALUE uint
#endif
// Keys of a work-item in a tile, and work-items of a work-group of `sort_offsets`.
#ifndef ITEMS
#define ITEMS 16
#define OFFSETS_WG WG
#endif
#define TILE (WG * ITEMS)
// Minimum lanes of a sub-group, and replicas of the counters of `sort_counts`.
#ifndef MIN_LANES
#define MIN_LANES 32
#define REPLICAS 8
#endif
#ifndef SEGMENTS
#define SEGMENTS 0
#endif
#ifndef LOOK_BACK
#define LOOK_BACK 0
#endif
// Elements that a work-item of `sort_offsets` loads at a time.
#define COUNTS 16

#define RADIX 256
// Bytes of the atomic tile counters, one for each pass, which precede the status words.
#define TILE_COUNTER_BYTES 64

// The digit of a pass: the bits of `mask` in a key's number from bit `shift` on. `flip` and `always` are those of
// lib/keys.cl.
typedef struct {
    uint shift, mask;
    WORD flip, always;
} digit_t;

INLINED uint digit_in(const KEY key, const digit_t* digit)
{
    return digit_of_key(key, digit->shift, digit->mask, digit->flip, digit->always);
}

// BIT_PAIR: one of the two sets of bits that sort_counts stores for a part: the bits set in some numbers, or those set
// in all. word_of(x, w): 32-bit word w of a number. joined(words): the set whose word w is words[2 * w].
#if KEY_BYTES == 16
#define BIT_PAIR ulong2
INLINED uint word_of(const WORD x, const uint w) { return (uint)((w < 2 ? x.x : x.y) >> w % 2 * 32); }
INLINED BIT_PAIR joined(__local const uint* words)
{
    return as_ulong2((uint4)(words[0], words[2], words[4], words[6]));
}
#else
#define BIT_PAIR ulong
INLINED uint word_of(const WORD x, const uint w) { return (uint)(x >> w * 32); }
INLINED BIT_PAIR joined(__local const uint* words) { return (ulong)words[2] << 32 | words[0]; }
#endif

// Makes x opaque to the compiler. Then the compiler keeps only x in a register, not parts of x or values derived from
// it. OPAQUE_KEY has an effect only on keys of 4 or 8 bytes.
#define OPAQUE_1(x)
#define OPAQUE_2(x)
#define OPAQUE_16(x)
#if INLINE_PTX
#define OPAQUE_4(x) __asm__ volatile("" : "+r"(x))
#define OPAQUE_8(x) __asm__ volatile("" : "+l"(x))
#else
#define OPAQUE_4(x)
#define OPAQUE_8(x)
#endif
#define OPAQUE_KEY(x) CAT(OPAQUE_, KEY_BYTES)(x)

// The code of a pass is source + 4 * target + flags, or 0 if the pass is skipped. Kernels of a skipped pass return at
// once.
//
//     source, target:  AT_IN, AT_OUT or AT_SPARE: the buffers that the pass reads and writes
//     ACTIVE:          the pass runs
//     LAST:            no pass after it runs
//     ODD:             an odd number of passes before it run
//
// A single pass always runs, and the host gives its code. Of several passes, the device skips each one whose digit is
// the same in all keys. If that holds for all passes, pass 0 runs. With several passes the host gives 0, and kernels
// read the code that the device computed (store_codes). The exception is sort_counts of pass 0, since the device
// computes the codes from its results. The host gives its code, and it runs even if pass 0 is then skipped.
#define AT_IN 0
#define AT_OUT 1
#define AT_SPARE 2
#define ACTIVE 16
#define LAST 32
#define ODD 64
#define SOURCE(code) ((code) & 3)
#define TARGET(code) ((code) >> 2 & 3)
// Without `min` clang would make a switch on a 2-bit integer, which Oclgrind 21.10 treats as an integer of no bits.
#define BUFFER(at, in, out, spare)                                                                                     \
    (min((uint)(at), (uint)AT_SPARE) == AT_IN ? (in) : min((uint)(at), (uint)AT_SPARE) == AT_OUT ? (out) : (spare))

// The code given by the host, if it is not 0, else the one that the device computed.
INLINED uint pass_code(__global const uchar* scratch, const ulong codes_at, const uint given, const uint pass)
{
    return given != 0 ? given : ((__global const uint*)(scratch + codes_at))[pass];
}

// Writes the codes of `passes` passes. Bit p of `active` is set if pass p is needed.
static inline void store_codes(__global uint* codes, uint active, const uint passes)
{
    // If all keys are alike, one pass moves them.
    active = active == 0 ? 1 : active;
    uint left = popcount(active), from = AT_IN, odd = 0;
    ROLLED
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

// A part: the keys [begin, end), which one work-group counts and scatters. A part has `tiles` tiles of TILE keys; the
// last part of a segment, or of all keys, may have fewer.
typedef struct {
    OFFSET_T begin, end;
    // Index of the segment's first key.
    OFFSET_T origin;
    // The number of parts of earlier segments, the number of parts of this segment, and the index of this part among
    // the latter.
    uint first;
    ulong count;
    uint index;
    // Index of the segment.
    ulong segment;
} part_t;

// The index in the table of the part's count of digit d, and that of the segment's total of d.
INLINED ulong cell_of(const part_t* part, const uint d)
{
    return (ulong)part->first * RADIX + (ulong)d * part->count + part->index;
}
INLINED ulong total_of(const part_t* part, const uint d) { return part->segment * RADIX + d; }

#if SEGMENTS
// Work-groups share the parts of all long segments: work-group g takes parts g, g + get_num_groups(0), ...
#define SEGMENT_PARAMS                                                                                                 \
    , const ulong header_at, const ulong bounds_at, const ulong parts_at, const ulong owners_at, const uint long_room
#define SEGMENT_ARGS , header_at, bounds_at, parts_at, owners_at, long_room

INLINED uint count_parts(__global const uchar* scratch, const uint groups SEGMENT_PARAMS)
{
    return count_of((__global const uint*)(scratch + header_at), PART_COUNT);
}

INLINED part_t find_part(
    __global const uchar* scratch, const uint group, const uint tiles, const OFFSET_T n SEGMENT_PARAMS)
{
    part_t part;
    part.segment = ((__global const uint*)(scratch + owners_at))[group];
    __global const OFFSET_T* bounds = (__global const OFFSET_T*)(scratch + bounds_at) + 2 * part.segment;
    __global const uint* parts = (__global const uint*)(scratch + parts_at) + 2 * part.segment;
    part.first = parts[0];
    part.count = parts[1];
    part.index = group - part.first;
    const OFFSET_T share = (OFFSET_T)tiles * TILE;
    part.origin = bounds[0];
    part.begin = bounds[0] + part.index * share;
    part.end = part.begin + min(share, bounds[1] - part.begin);
    return part;
}
#else
#define SEGMENT_PARAMS
#define SEGMENT_ARGS

INLINED uint count_parts(__global const uchar* scratch, const uint groups) { return groups; }

INLINED part_t find_part(__global const uchar* scratch, const uint group, const uint tiles, const OFFSET_T n)
{
    part_t part;
#ifdef LENGTH_T
    // The work-groups share the tiles of the n keys equally. The last parts may be empty.
    const OFFSET_T own = n / TILE + (n % TILE != 0), groups = get_num_groups(0);
    const OFFSET_T share = (own + groups - 1) / groups * TILE;
    part.begin = min(n, group * share);
#else
    const OFFSET_T share = (OFFSET_T)tiles * TILE;
    part.begin = group * share;
#endif
    part.end = part.begin + min(share, n - part.begin);
    part.origin = 0;
    part.first = 0;
    part.count = get_num_groups(0);
    part.index = group;
    part.segment = 0;
    return part;
}
#endif

// Bits of `mode`. INDICES: the values are the indices of the keys in `in`. NO_KEYS: the sorted keys are not an output.
#define INDICES 1
#define NO_KEYS 2

// The values of a pass. If `are_indices`, the value of key i is i. With NO_KEYS the last pass stores no keys.
typedef struct {
    __global const VALUE* from;
    __global VALUE* to;
    int are_indices;
    int keep_keys;
} values_t;

#if VALUE_BYTES > 0
#define VALUE_PARAMS                                                                                                   \
    , __global const VALUE *values_in_base, const ulong values_in_offset, __global VALUE *values_out_base,             \
        const ulong values_out_offset, const ulong values_spare_at, const uint mode
#define VALUE_ARGS , values_in_base, values_in_offset, values_out_base, values_out_offset, values_spare_at, mode

INLINED values_t route_values(__global uchar* scratch, const uint code VALUE_PARAMS)
{
    values_t values;
    values.from = BUFFER(
        SOURCE(code), values_in_base + values_in_offset, values_out_base + values_out_offset,
        (__global const VALUE*)(scratch + values_spare_at));
    values.to = BUFFER(
        TARGET(code), (__global VALUE*)0, values_out_base + values_out_offset,
        (__global VALUE*)(scratch + values_spare_at));
    values.are_indices = (mode & INDICES) != 0 && SOURCE(code) == AT_IN;
    values.keep_keys = (mode & NO_KEYS) == 0 || (code & LAST) == 0;
    return values;
}
#else
#define VALUE_PARAMS
#define VALUE_ARGS

INLINED values_t route_values(__global uchar* scratch, const uint code)
{
    values_t values;
    values.from = 0;
    values.to = 0;
    values.are_indices = 0;
    values.keep_keys = 1;
    return values;
}
#endif

// Exclusive prefix sum of the RADIX elements of x, in place. All work-items, 16 at least, call it after a barrier;
// `sums` has 16 elements.
INLINED void scan_digits(__local OFFSET_T* x, __local OFFSET_T* sums)
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
