// sort_histograms, with look-back: totals[p][d] = |{keys whose digit in pass p is below d}|, and the codes of the
// passes.
//
// Pass p sorts by bits [begin + 8 p, min(begin + 8 p + 8, bit_end)).
// Bytes: reads the keys once; writes the status words of all tiles; adds RADIX counts for each pass and work-group.
//
//     clear the status words and the work-group's counters
//     for each key, for each pass p: counts[p][digit] += 1 in local memory
//     add the counts to those of all work-groups
//     in the work-group that finishes last:
//         for each pass p: totals[p] = exclusive prefix sum of the counts; clear them for the next launch
//         active[p] = not all keys have one digit

// Keys that a work-item loads at a time.
#define HELD 8
// The maximum number of passes, and the replicas of each counter in local memory.
#define PASSES KEY_BYTES
#ifndef SPREAD
#define SPREAD 1
#endif
#if OFFSET_BYTES == 8
#define ADD_OFFSET(p, count) atom_add(p, (OFFSET_T)(count))
#else
#define ADD_OFFSET(p, count) atomic_add(p, count)
#endif

static inline ulong low_bits(const uint width) { return width < 64 ? ((ulong)1 << width) - 1 : ~0ul; }

// mask_of(width): the lowest `width` bits. bits_from(number, begin): the number without its lowest `begin` bits.
// byte_of(bits, p): byte p.
#if KEY_BYTES == 16
static inline WORD mask_of(const uint width) { return (WORD)(low_bits(width), low_bits(max(width, 64u) - 64)); }
static inline WORD bits_from(const WORD number, const uint begin)
{
    const ulong more = begin == 0 ? 0 : begin < 64 ? number.y << (64 - begin) : 0;
    const ulong low = begin < 64 ? number.x >> begin | more : number.y >> (begin - 64);
    return (WORD)(low, begin < 64 ? number.y >> begin : 0);
}
static inline uint byte_of(const WORD bits, const uint p)
{
    return (uint)((p < 8 ? bits.x : bits.y) >> p % 8 * 8) & 255;
}
#else
static inline WORD mask_of(const uint width) { return (WORD)low_bits(width); }
static inline WORD bits_from(const WORD number, const uint begin) { return number >> begin; }
static inline uint byte_of(const WORD bits, const uint p) { return (uint)(bits >> p * 8) & 255; }
#endif

// Clears the tile counters, and the status words of all tiles.
INLINED void clear_status(__global uint4* words, const uint tiles)
{
    const ulong rows = (TILE_COUNTER_BYTES + (ulong)tiles * (RADIX * LOOK_BYTES)) / 16;
    ROLLED
    for (ulong i = get_global_id(0); i < rows; i += get_global_size(0)) {
        words[i] = (uint4)(0);
    }
}

// Counts the digits of a key.
INLINED void count_digits(
    const KEY key, const uint passes, const uint begin, const WORD mask, const WORD flip, const WORD always,
    __local uint* counts)
{
    const WORD bits = bits_from(ordered(key, flip, always), begin) & mask;
    _Pragma("unroll")
    for (uint p = 0; p < PASSES; p++) {
        if (p < passes) {
            atomic_inc(counts + (p * RADIX + byte_of(bits, p)) * SPREAD + get_local_id(0) % SPREAD);
        }
    }
}

// Adds a work-group's counts to those of all work-groups.
INLINED void add_counts(volatile __global OFFSET_T* counters, __local const uint* counts, const uint passes)
{
    ROLLED
    for (uint i = get_local_id(0); i < passes * RADIX; i += WG) {
        uint sum = 0;
        for (uint r = 0; r < SPREAD; r++) {
            sum += counts[i * SPREAD + r];
        }
        if (sum != 0) {
            ADD_OFFSET(counters + i, sum);
        }
    }
}

// Scans the counts of each pass to `totals`, clears them, and writes the codes of the passes. One work-group calls it.
INLINED void scan_histograms(
    volatile __global OFFSET_T* counters, __global OFFSET_T* totals, __global uint* codes, const OFFSET_T n,
    const uint passes, __local OFFSET_T* starts, __local OFFSET_T* offset_sums, __local uint* alike)
{
    const uint item = get_local_id(0);
    ROLLED
    for (uint p = 0; p < passes; p++) {
        if (item == 0) {
            alike[p] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        ROLLED
        for (uint d = item; d < RADIX; d += WG) {
            starts[d] = counters[p * RADIX + d];
            counters[p * RADIX + d] = 0;
            if (starts[d] == n) {
                alike[p] = 1;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        scan_digits(starts, offset_sums);
        ROLLED
        for (uint d = item; d < RADIX; d += WG) {
            totals[p * RADIX + d] = starts[d];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        uint active = 0;
        ROLLED
        for (uint p = 0; p < passes; p++) {
            active |= alike[p] ? 0 : 1u << p;
        }
        store_codes(codes, active, passes);
    }
}

// The global counters follow the counter of lib/ended.cl. Like that counter, they are 0 before and after each launch.
// `tiles` is the number of tiles of sort_scatter.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void sort_histograms(
    __global const KEY* in_base, const ulong in_offset, __global uchar* scratch, const ulong table_at,
    const ulong totals_at, const ulong codes_at, __global uchar* ended_base, const ulong ended_at, LENGTH_PARAMS,
    const uint tiles, const uint begin, const uint bit_end, const WORD flip, const WORD always)
{
    __local uint counts[PASSES * RADIX * SPREAD];
    __local OFFSET_T starts[RADIX];
    __local OFFSET_T offset_sums[16];
    __local uint alike[PASSES];
    __local uint last[1];
    TAKE_LENGTH
    volatile __global OFFSET_T* counters = (volatile __global OFFSET_T*)(ended_base + ended_at + COUNTERS_AT);
    __global const KEY* from = in_base + in_offset;
    // A sort by no bits has one pass, too, which copies the keys.
    const uint item = get_local_id(0), width = bit_end - begin, passes = max((width + 7) / 8, 1u);
    const WORD mask = mask_of(width);
    clear_status((__global uint4*)(scratch + table_at), tiles);
    ROLLED
    for (uint i = item; i < passes * RADIX * SPREAD; i += WG) {
        counts[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const OFFSET_T step = (OFFSET_T)get_num_groups(0) * (WG * HELD);
    ROLLED
    for (OFFSET_T base = (OFFSET_T)get_group_id(0) * (WG * HELD); base < n; base += min(step, n - base)) {
        if (n - base >= WG * HELD) {
            KEY keys[HELD];
            _Pragma("unroll")
            for (uint k = 0; k < HELD; k++) {
                keys[k] = from[base + k * WG + item];
            }
            _Pragma("unroll")
            for (uint k = 0; k < HELD; k++) {
                // Without this, the compiler computes the numbers of many float keys before it counts their digits,
                // which takes twice the registers.
                if (KEYS_ARE_FLOATS) {
                    OPAQUE_KEY(keys[k]);
                }
                count_digits(keys[k], passes, begin, mask, flip, always, counts);
            }
        } else {
            // Few keys, so this loop is not unrolled.
            ROLLED
            for (OFFSET_T i = base + item; i < n; i += WG) {
                count_digits(from[i], passes, begin, mask, flip, always, counts);
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    add_counts(counters, counts, passes);
    if (ends_last((volatile __global uint*)(ended_base + ended_at), get_num_groups(0), last)) {
        scan_histograms(
            counters, (__global OFFSET_T*)(scratch + totals_at), (__global uint*)(scratch + codes_at), n, passes,
            starts, offset_sums, alike);
    }
}
