// Exact scan of floats: each result is the float nearest to the real prefix sum, ties to even.
//
//     inclusive: out[i] = round(initial + x[0] + ... + x[i])
//     exclusive: out[i] = round(initial + x[0] + ... + x[i - 1]); also out[n], if there are n + 1 results
//
// With REVERSE i counts from the last element, in the input and in the output. In place, `out` is `x`.
//
// Bytes: reads each element twice and writes each result. A tile of TILE elements also writes and reads a record twice:
// an accumulator of lib/exact.cl and its marks, 164 bytes, or 1,076 for f64.
//
//     scan_exact_sums:  record[t] = exact sum of tile t, in 64-bit integers if they hold it, else in local memory
//     scan_exact_spine: record[t] = exclusive prefix of record[t] within a group of LEVEL records; a record of the next
//                       level has the sum of the group. One launch for each level.
//     scan_exact_tiles: prefix of the tile = initial + its records at all levels
//                       choose a unit; scan the elements as 64-bit integers; round each prefix
//                       if all results are certain: store them;   else: append t to the list
//     scan_exact_wide_tiles (scan_exact_wide.cl): the tiles of the list; all tiles if scan_exact_tiles is not used
//
// Narrow tile: its unit u = 2^low is such that the prefix of the tile and all its sums are below 2^62 u. Elements and
// prefix are converted to whole numbers of units, whose sum is V units. If all conversions are exact, each sum is V u.
// Else each conversion has an error below u. So the sum is between (V - M) u and (V + M) u, for M = TILE + EXACT_WORDS.
// If both ends round to the same float, it is the result. The conversion of an integer to a float rounds once; the
// product with u is exact or overflows, since u is a normal float. A tile is not narrow if an element is not finite, or
// if all summands of a prefix may be -0.
//
// So the data alone determine which kernel writes a tile. The results depend on neither the kernel nor the geometry.
//
// References: S. Sengupta et al., Scan primitives for GPU computing, 2007: reduce-then-scan. lib/exact.cl has those of
// the accumulator.
#include "lib/types.cl"
#define REAL_BYTES A_BYTES
#include "lib/parts.cl"
#include "lib/subgroup.cl"
#ifndef WG
#define WG 256
#endif
#include "lib/exact.cl"
#include "lib/exact_scan.cl"

// Elements of a work-item.
#define ITEMS (TILE / WG)
// Padded index in local memory: avoids bank conflicts between work-items.
#define AT(i) ((i) + (i) / ITEMS)
// Loads of a work-item that are in flight at a time.
#define BATCH 16

// CPU drivers have small work-groups. There unrolled loops would only take longer to compile.
#if WG >= 32
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED
#endif

// x[k] = element first + k * WG + item. Elements after the last one are -0, which changes no sum.
INLINED void load_tile(__global const T* in, const OFFSET_T n, const OFFSET_T first, A* x)
{
    const OFFSET_T own = first + get_local_id(0);
    if (first < n && n - first >= TILE) {
        UNROLLED
        for (uint k = 0; k < ITEMS; k++) {
            x[k] = element_to_acc(in[IN_INDEX(own + k * WG, n)]);
        }
    } else {
        UNROLLED
        for (uint k = 0; k < ITEMS; k++) {
            x[k] = load_element(in, n, own + k * WG);
        }
    }
}

static inline uint highest_field(const A* x)
{
    uint highest = 0;
    UNROLLED
    for (uint k = 0; k < ITEMS; k++) {
        highest = max(highest, EXPONENT(x[k]));
    }
    return highest;
}

// Sets *most, which is 0 before, to the maximum of `own` in the work-group. All work-items call it, in uniform flow,
// between barriers.
INLINED void take_most(uint own, volatile __local uint* most, __local uint* sg_scratch)
{
    for (uint d = 1; d < sg_size(); d <<= 1) {
        own = max(own, sg_shuffle_xor_u32(own, d, sg_scratch));
    }
    if (sg_lane() == 0) {
        atomic_max(most, own);
    }
}

// The position of a bit above all bits of the elements, given their highest exponent field.
static inline uint above_field(const uint field)
{
    return position_of(field) + PRECISION;
}

#if A_BYTES == 4
#define NARROW_BITS 62
// A unit is 2^(position + A_LEAST). At these positions, the unit and its inverse are normal floats.
#define LEAST_NARROW 23
#define MOST_NARROW 230

// The least position of a unit for elements whose exponent fields are at most `field`, and a prefix below 2^bits.
static inline int narrow_position(const uint field, const int bits)
{
    return max(max((int)above_field(field) + LOG_TILE, bits) + 1 - NARROW_BITS, LEAST_NARROW);
}

static inline float unit_of(const int position)
{
    return as_float((uint)(position + A_LEAST + 127) << 23);
}

static inline float inverse_unit_of(const int position)
{
    return as_float((uint)(127 - position - A_LEAST) << 23);
}

// A finite element in units, with an error below one. Sets bits of *cut if there is an error. It compares bits: -0 has
// no error, but a subnormal has one, and a device may flush it.
static inline long units_of(const float x, const float unit, const float inverse_unit, uint* cut)
{
    const float whole = rint(x * inverse_unit);
    *cut |= as_uint(whole * unit) ^ as_uint(x);
    return (long)whole;
}

// Word w of an accumulator whose value is `units` units.
static inline int word_of(const long units, const int position, const uint w)
{
    const int at = 16 * (int)w - EXACT_ONE - position;
    if (at <= -16 || at >= 64) {
        return 0;
    }
    const ulong size = abs(units);
    const int piece = (int)((at < 0 ? size << -at : size >> at) & 0xffff);
    return units < 0 ? -piece : piece;
}

// Returns the exclusive prefix of `own` over the work-items, and sets *total to the sum of all. All work-items call it,
// in uniform flow. It contains a barrier. `totals` may be used again after the caller's next barrier.
INLINED long scan_units(__local long* totals, __local uint* sg_scratch, const long own, long* total)
{
    const uint width = sg_size(), group = (uint)get_local_id(0) / width;
    long sum = own;
    for (uint d = 1; d < width; d <<= 1) {
        const long other = (long)sg_shuffle_up_u64((ulong)sum, d, sg_scratch);
        sum += sg_lane() >= d ? other : 0;
    }
    if (sg_lane() == width - 1) {
        totals[group] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    long before = 0, all = 0;
    for (uint g = 0; g < WG / width; g++) {
        before += g < group ? totals[g] : 0;
        all += totals[g];
    }
    *total = all;
    return before + sum - own;
}
// Adds a work-item's elements to its replica of the accumulator. `highest` is the highest exponent field of the tile.
// The returned marks of all work-items are together those of the tile. A tile adds less than TILE * 2^16 to a word.
INLINED uint deposit_elements(
    EXACT_TABLE table, const float* x, const uint highest, __global const T* in, const OFFSET_T n, const OFFSET_T first)
{
    uint other = 0, marks = 0;
    UNROLLED
    for (uint k = 0; k < ITEMS; k++) {
        const uint field = EXPONENT(x[k]);
        const long size = field == NO_NUMBER ? 0 : signed_size_of(x[k], field);
        other |= as_uint(x[k]) ^ SIGN;
        add_straight(table, SUM_REPLICAS, size, position_of(field) + EXACT_ONE, PIECES);
    }
    if (highest == NO_NUMBER) {
        // The elements are read again, since an index into x that is not constant would move x out of registers.
        ROLLED
        for (uint i = get_local_id(0); i < TILE; i += WG) {
            const A own = load_element(in, n, first + i);
            marks |= marks_of(own, EXPONENT(own));
        }
    } else {
        marks = other != 0 ? EXACT_FINITE : 0;
    }
    return marks;
}
#else

// Adds a tile's elements to an accumulator: those that are whole numbers of units of a window as 128-bit integers, the
// others one by one.
INLINED void deposit_tile(EXACT_TABLE words, volatile __local uint* marks, __global const T* in, const OFFSET_T n,
    const OFFSET_T first, const uint most)
{
    const int low = window_for(most, 0);
    Sum sum = no_sum();
    ROLLED
    for (uint i = get_local_id(0); i < TILE; i += WG) {
        const A x = load_element(in, n, first + i);
        uint rest = 0;
        Sum element = window_of(x, low, &rest);
        if (rest) {
            deposit(words, x);
            element.high = 0;
            element.low = 0;
        }
        sum = sum_of(sum, element);
    }
    deposit_sum(words, sum, low);
    if (sum.marks != 0) {
        atomic_or(marks, sum.marks);
    }
}
#endif

// Also empties the list of wide tiles.
__kernel SG_KERNEL __attribute__((reqd_work_group_size(WG, 1, 1))) void scan_exact_sums(__global const T* in_base,
    const ulong in_offset, const OFFSET_T n, __global int* records, const OFFSET_T tiles, __global uint* listed)
{
    __local int words[EXACT_WORDS];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    volatile __local uint most[1], marks[1];
#if A_BYTES == 4
    // All words are 0 before each tile.
    __local int table[EXACT_WORDS * SUM_REPLICAS];
    __local long totals[WG];
    volatile __local uint is_cut[1];
#endif
    const uint item = get_local_id(0);
    __global const T* in = in_base + in_offset;
    if (get_group_id(0) == 0 && item == 0) {
        listed[0] = 0;
    }
#if A_BYTES == 4
    for (uint i = item; i < EXACT_WORDS * SUM_REPLICAS; i += WG) {
        table[i] = 0;
    }
#endif
    // The loops over tiles in this file test their condition last, since each work-group has a tile. If they tested it
    // first, PoCL would take the barriers for conditional. It could then put a barrier of its own into an `if` that not
    // all work-items enter.
    OFFSET_T tile = get_group_id(0);
    do {
        const OFFSET_T first = tile * TILE;
        A x[ITEMS];
        load_tile(in, n, first, x);
        // If WG is 1, PoCL 6 cannot compile the loop of highest_field() after the barrier.
        const uint own_field = highest_field(x);
        if (item == 0) {
            most[0] = 0;
            marks[0] = 0;
#if A_BYTES == 4
            is_cut[0] = 0;
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        take_most(own_field, most, sg_scratch);
        for (uint w = item; w < EXACT_WORDS; w += WG) {
            words[w] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint field = most[0];
        __global int* record = records + (ulong)tile * RECORD;
#if A_BYTES == 4
        // If all exponents are 0, the elements may be -0, which needs the marks.
        const int position = narrow_position(field, 0);
        uint cut = field == 0 || field == NO_NUMBER || position > MOST_NARROW;
        long units = 0, total;
        if (!cut) {
            const float unit = unit_of(position), inverse_unit = inverse_unit_of(position);
            UNROLLED
            for (uint k = 0; k < ITEMS; k++) {
                units += units_of(x[k], unit, inverse_unit, &cut);
            }
        }
        if (cut) {
            atomic_or(is_cut, 1);
        }
        scan_units(totals, sg_scratch, units, &total);
        const int is_narrow = !is_cut[0];
        if (!is_narrow) {
            const uint own = deposit_elements(table + item % SUM_REPLICAS, x, field, in, n, first);
            if (own != 0) {
                atomic_or(marks, own);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!is_narrow) {
            merge_replicas(table, SUM_REPLICAS, words);
        }
#else
        deposit_tile(words, marks, in, n, first, above_field(field));
#endif
        carry_exact(words, EXACT_WORDS, 1);
        carry_exact(words, EXACT_WORDS, 1);
        for (uint w = item; w < EXACT_WORDS; w += WG) {
#if A_BYTES == 4
            record[w] = is_narrow ? word_of(total, position, w) : words[w];
#else
            record[w] = words[w];
#endif
        }
#if A_BYTES == 4
        for (uint i = item; i < EXACT_WORDS * SUM_REPLICAS && !is_narrow; i += WG) {
            table[i] = 0;
        }
        if (item == 0) {
            record[EXACT_WORDS] = is_narrow ? EXACT_FINITE : (int)marks[0];
        }
#else
        if (item == 0) {
            record[EXACT_WORDS] = (int)marks[0];
        }
#endif
        tile += get_num_groups(0);
    } while (tile < tiles);
}

// The records of a level begin at `first`. The last one may be unwritten: no exclusive prefix includes it. Those of the
// next level begin at `next`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void scan_exact_spine(
    __global int* records, const OFFSET_T first, const OFFSET_T count, const OFFSET_T next)
{
    __local int words[EXACT_WORDS];
    const OFFSET_T groups = count / LEVEL + (count % LEVEL != 0);
    OFFSET_T group = get_group_id(0);
    do {
        const uint members = (uint)min((OFFSET_T)LEVEL, count - group * LEVEL);
        // Without the last record of the level.
        const uint readable = members - (group + 1 == groups);
        __global int* record = records + (ulong)(first + group * LEVEL) * RECORD;
        __global int* above = records + (ulong)(next + group) * RECORD;
        for (uint w = get_local_id(0); w < RECORD; w += WG) {
            int prefix = 0;
            ROLLED
            for (uint m = 0; m < members; m += BATCH) {
                int own[BATCH];
                UNROLLED
                for (uint b = 0; b < BATCH; b++) {
                    own[b] = m + b < readable ? record[(m + b) * RECORD + w] : 0;
                }
                UNROLLED
                for (uint b = 0; b < BATCH; b++) {
                    if (m + b < members) {
                        record[(m + b) * RECORD + w] = prefix;
                    }
                    prefix = w == EXACT_WORDS ? prefix | own[b] : prefix + own[b];
                }
            }
            if (w < EXACT_WORDS) {
                words[w] = prefix;
            } else if (count > LEVEL) {
                above[w] = prefix;
            }
        }
        carry_exact(words, EXACT_WORDS, 1);
        carry_exact(words, EXACT_WORDS, 1);
        for (uint w = get_local_id(0); w < EXACT_WORDS && count > LEVEL; w += WG) {
            above[w] = words[w];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        group += get_num_groups(0);
    } while (group < groups);
}

#ifdef NARROW
// The most by which V differs from the sum, in units, if conversions had errors: one for each element and each word of
// the prefix.
#define SLACK (TILE + EXACT_WORDS)

// Returns `bits`: an accumulator's magnitude is below 2^bits times the least positive float. Its words above `highest`
// are 0.
static inline int bits_of_words(__local const int* words, const int highest)
{
    if (highest < 0) {
        return 0;
    }
    // Each lower word has a magnitude below 2^30. So together they are less than 2^15 units of words[highest - 1].
    const long top = ((long)words[highest] << 16) + (highest > 0 ? words[highest - 1] : 0);
    return 16 * (highest - 1) + 64 - (int)clz(abs(top) + 0x8000) - EXACT_ONE;
}

// The accumulator in units, with an error below one for each word. Sets bits of *cut if there is an error. The sum of
// all words fits in 64 bits, so partial sums may wrap.
static inline long units_of_words(
    __local const int* words, const int lowest, const int highest, const int position, uint* cut)
{
    ulong units = 0;
    ROLLED
    for (int k = lowest; k <= highest; k++) {
        const int at = 16 * k - EXACT_ONE - position;
        const int word = words[k];
        if (at < 0) {
            const int below = min(-at, 31);
            units += (ulong)(long)(word >> below);
            *cut |= (uint)(word ^ (word >> below << below)) | (-at > 31 ? (uint)word : 0);
        } else {
            units += at < 64 ? (ulong)(long)word << at : 0;
        }
    }
    return (long)units;
}

#if OUT_PRECISION == 24
#define ROUNDED float
#define BITS_OF_ROUNDED(x) as_uint(x)
static inline float rounded_units(const long units, const int position)
{
    return (float)units * unit_of(position);
}
#else
#define ROUNDED OUT_BITS
#define BITS_OF_ROUNDED(x) x
static inline OUT_BITS rounded_units(const long units, const int position)
{
    const ulong size = abs(units);
    if (size == 0) {
        return 0;
    }
    const uint zeros = (uint)clz(size);
    const int above = 63 - (int)zeros + position + A_LEAST - OUT_LEAST;
    const ulong bits = nearest_bits(size << zeros, above, OUT_PRECISION, OUT_INFINITY);
    return (OUT_BITS)(bits | (ulong)(units < 0) << (8 * sizeof(OUT_BITS) - 1));
}
#endif

__kernel SG_KERNEL __attribute__((reqd_work_group_size(WG, 1, 1))) void scan_exact_tiles(__global const T* in_base,
    const ulong in_offset, const OFFSET_T n, __global OUT* out_base, const ulong out_offset, const OFFSET_T outputs,
    __global const int* records, const OFFSET_T tiles, volatile __global uint* listed, const A initial,
    const uint inclusive)
{
    __local int words[EXACT_WORDS];
    // The elements of the tile, then the bits of their results.
    __local uint stage[TILE + WG];
    __local long totals[WG];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    volatile __local uint most[1], marks[1], is_cut[1], is_unsure[1];
    volatile __local int range[2];
    const uint item = get_local_id(0);
    __global const T* in = in_base + in_offset;
    __global OUT_BITS* out = (__global OUT_BITS*)(out_base + out_offset);
    const uint initial_field = EXPONENT(initial);
    const long initial_size = initial_field == NO_NUMBER ? 0 : (long)size_of(initial, initial_field);
    OFFSET_T tile = get_group_id(0);
    do {
        const OFFSET_T first = tile * TILE;
        A x[ITEMS];
        load_tile(in, n, first, x);
        // If WG is 1, PoCL 6 cannot compile the loop of highest_field() after the barrier.
        const uint own_field = highest_field(x);
        if (item == 0) {
            most[0] = 0;
            marks[0] = 0;
            is_cut[0] = 0;
            range[0] = EXACT_WORDS;
            range[1] = -1;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint w = item; w < RECORD; w += WG) {
            int word = prefix_word(records, tile, tiles, w);
            if (w < EXACT_WORDS) {
                word +=
                    word_of(is_negative(initial) ? -initial_size : initial_size, (int)position_of(initial_field), w);
                words[w] = word;
                if (word != 0) {
                    atomic_min(range, (int)w);
                    atomic_max(range + 1, (int)w);
                }
            } else {
                atomic_or(marks, (uint)word | marks_of(initial, initial_field));
            }
        }
        if (item == 0) {
            is_unsure[0] = 0;
            if (inclusive) {
                // All results have the tile's first element among their summands.
                atomic_or(marks, marks_of(x[0], EXPONENT(x[0])));
            }
        }
        take_most(own_field, most, sg_scratch);
        UNROLLED
        for (uint k = 0; k < ITEMS; k++) {
            stage[AT(k * WG + item)] = as_uint(x[k]);
        }
        // In place, a work-item beyond the last element has read the element that another one writes.
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        const int lowest = range[0], highest = range[1];
        const uint field = most[0];
        const int position = narrow_position(field, bits_of_words(words, highest));
        const int fits = field != NO_NUMBER && position <= MOST_NARROW && marks[0] == EXACT_FINITE;
        const float unit = unit_of(position), inverse_unit = inverse_unit_of(position);
        __local uint* elements = stage + AT(item * ITEMS);
        long sum = 0, prefix = 0, total;
        uint cut = 0;
        if (fits) {
            prefix = units_of_words(words, lowest, highest, position, &cut);
            UNROLLED
            for (uint k = 0; k < ITEMS; k++) {
                sum += units_of(as_float(elements[k]), unit, inverse_unit, &cut);
            }
            if (cut) {
                atomic_or(is_cut, 1);
            }
        }
        prefix += scan_units(totals, sg_scratch, sum, &total);
        if (fits) {
            const long slack = is_cut[0] ? SLACK : 0;
            uint unsure = 0;
            // Converts each element again: to keep 16 numbers of 64 bits in registers takes a third more time.
            UNROLLED
            for (uint k = 0; k < ITEMS; k++) {
                const long next = prefix + units_of(as_float(elements[k]), unit, inverse_unit, &cut);
                const long own = inclusive ? next : prefix;
                prefix = next;
                const ROUNDED least = rounded_units(own - slack, position);
                unsure |= least != rounded_units(own + slack, position);
                elements[k] = BITS_OF_ROUNDED(least);
            }
            if (unsure) {
                atomic_or(is_unsure, 1);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int is_done = fits && !is_unsure[0];
        if (is_done && first < outputs && outputs - first >= TILE) {
            UNROLLED
            for (uint k = 0; k < ITEMS; k++) {
                out[IN_INDEX(first + k * WG + item, outputs)] = (OUT_BITS)stage[AT(k * WG + item)];
            }
        } else if (is_done) {
            for (uint k = item; k < TILE; k += WG) {
                if (first + k < outputs) {
                    out[IN_INDEX(first + k, outputs)] = (OUT_BITS)stage[AT(k)];
                }
            }
        } else if (item == 0) {
            listed[1 + atomic_inc(listed)] = (uint)tile;
        }
        tile += get_num_groups(0);
    } while (tile < tiles);
}
#endif
