// Exact scan of floats: each result is the float nearest to the real prefix sum, ties to even.
//
//     inclusive: out[i] = round(initial + x[0] + ... + x[i])
//     exclusive: out[i] = round(initial + x[0] + ... + x[i - 1]); also out[n], if there are n + 1 results
//
// With REVERSE i counts from the last element, in the input and in the output. In place, `out` is `x`.
//
// Bytes: each element is read twice from memory, once for its tile's sum and once for its prefix, and each result is
// written once. Each time, the work-group first finds the range of the tile, and then reads the tile again, from the
// cache. Each tile of TILE elements has a record, which is written and read twice. It is an accumulator of lib/exact.cl
// and its marks: 164 bytes, or 1,076 for f64.
//
//     scan_exact_sums:  find the range of tile t: its lowest and highest bits
//                       record[t] = exact sum of tile t: in units if the tile is narrow, else in a window
//                       and the accumulator
//     scan_exact_spine: record[t] = exclusive prefix of record[t] within a group of LEVEL records; a record of the next level has
//                       the sum of the group. One launch for each level.
//     scan_exact_tiles: prefix of the tile = initial + its records at all levels; find the range of the tile
//                       if the tile is narrow: choose a unit
//                       else: choose a window of 128 bits that holds the prefix and all sums of the tile
//                       for each round of ROUND elements: scan them as integers in units of the tile or of the
//                       window, and round each prefix
//
// Narrow tile, if A is f32: the prefix and all elements are whole numbers of units u = 2^low, and all sums are below
// 2^62 u. So the highest bit of an element is at most 2^48 times the lowest one. Sums are integers of 64 bits, exact in
// any order. A result is such an integer, converted to a float, times u. The conversion rounds once; the product is
// exact or overflows, since u is a normal float. All elements are finite. At least one summand of the prefix is not -0,
// so a sum of 0 is +0.
//
// Window, for all other tiles: let u = 2^low be its unit. The prefix of the tile is P = H u + f, with an integer H and
// 0 <= f < u. An element is h u + g, with 0 <= g < u. Let V = H + h + ... If M - 1 of these elements have g > 0, then
// V u <= prefix < (V + M) u. `low` is chosen so that V fits in 127 bits and a sign.
//
// - All g are 0: the prefix is V u + f, and f matters only as a sticky bit. So the result is certain if V has more bits than OUT.
//   Fewer bits remain only if the elements cancel nearly all of the prefix.
// - Else the tile is hard: its magnitudes differ by a factor of about 2^70 or more. Most prefixes are still far from a tie: V u and
//   V u + M u round to the same float, which is then the result.
//
// All other results are unsure. For these, the work-group adds the elements before them to the accumulator of the tile, and rounds it.
// So no result depends on the geometry.
//
// References: S. Sengupta et al., Scan primitives for GPU computing, 2007: reduce-then-scan. lib/exact.cl has those of the accumulator.
#include "lib/types.cl"
#define REAL_BYTES A_BYTES
#include "lib/parts.cl"
#include "lib/subgroup.cl"
#ifndef WG
#define WG 256
#define ITEMS 16
#define ROUNDS 1
#endif
#include "lib/exact.cl"

// Records in a group of a level.
#define LEVEL 64
// Elements of a round, and of a tile.
#define ROUND (WG * ITEMS)
#define TILE 4096
#define LOG_TILE 12
// Words of a record: the accumulator, and the marks.
#define RECORD (EXACT_WORDS + 1)
// The exponent of the least positive float of A. A bit's position is its exponent minus this one.
#define A_LEAST (EXACT_LEAST / 2)
// Accumulator words that one number can change.
#define PIECES (A_BYTES == 4 ? 3 : 5)
// Padded index in local memory: avoids bank conflicts between work-items.
#define AT(i) ((i) + (i) / ITEMS)

#ifdef REVERSE
#define IN_INDEX(i, n) ((n) - 1 - (i))
#else
#define IN_INDEX(i, n) (i)
#endif

// A two's complement number of 128 bits in units of the window, and the marks of its summands.
typedef struct {
    ulong high, low;
    uint marks;
} Sum;

static inline Sum sum_of(const Sum a, const Sum b)
{
    Sum sum;
    sum.low = a.low + b.low;
    sum.high = a.high + b.high + (sum.low < a.low);
    sum.marks = a.marks | b.marks;
    return sum;
}

static inline Sum difference(const Sum a, const Sum b)
{
    Sum sum;
    sum.low = a.low - b.low;
    sum.high = a.high - b.high - (a.low < b.low);
    sum.marks = 0;
    return sum;
}

static inline Sum no_sum(void)
{
    Sum sum;
    sum.high = 0;
    sum.low = 0;
    sum.marks = 0;
    return sum;
}

// An element in units of 2^low, rounded down. Sets *rest if bits are lost.
static inline Sum window_of(const A x, const int low, uint* rest)
{
    Sum sum = no_sum();
    const uint field = EXPONENT(x);
    sum.marks = marks_of(x, field);
    const ulong size = field == NO_NUMBER ? 0 : (ulong)size_of(x, field);
    const int shift = (int)position_of(field) - low;
    if (shift >= 64) {
        sum.high = size << (shift - 64);
    } else if (shift >= 0) {
        sum.low = size << shift;
        sum.high = size >> 1 >> (63 - shift);
    } else {
        sum.low = shift > -64 ? size >> -shift : 0;
        const int is_cut = (shift > -64 ? sum.low << -shift : 0) != size;
        *rest |= is_cut;
        // A negative number is rounded down, so its magnitude is rounded up.
        sum.low += is_cut && is_negative(x);
    }
    if (is_negative(x)) {
        const uint marks = sum.marks;
        sum = difference(no_sum(), sum);
        sum.marks = marks;
    }
    return sum;
}

static inline A load_element(__global const T* in, const OFFSET_T n, const OFFSET_T i)
{
    const A element = element_to_acc(in[IN_INDEX(min(i, n - 1), n)]);
    return i < n ? element : (A)-0.0f;
}

// Adds a finite number to an accumulator.
INLINED void deposit(EXACT_TABLE words, const A x)
{
    const uint field = EXPONENT(x);
    if (field != NO_NUMBER) {
        add_exact(words, size_of(x, field), (int)position_of(field) + EXACT_ONE, is_negative(x), PIECES);
    }
}

INLINED void deposit_sum(EXACT_TABLE words, Sum sum, const int low)
{
    const int negative = (int)(sum.high >> 63);
    sum = negative ? difference(no_sum(), sum) : sum;
    add_exact(words, sum.low, low + EXACT_ONE, negative, 5);
    add_exact(words, sum.high, low + EXACT_ONE + 64, negative, 5);
}

// The sums that the work-items exchange.
typedef struct {
    ulong high[WG], low[WG];
    uint marks[WG];
} Exchange;

INLINED Sum get_sum(__local const Exchange* exchange, const uint item)
{
    Sum sum;
    sum.high = exchange->high[item];
    sum.low = exchange->low[item];
    sum.marks = exchange->marks[item];
    return sum;
}

INLINED void put_sum(__local Exchange* exchange, const uint item, const Sum sum)
{
    exchange->high[item] = sum.high;
    exchange->low[item] = sum.low;
    exchange->marks[item] = sum.marks;
}

// Inclusive scan of the work-items' sums. All work-items call it, in uniform flow; it begins and ends with a
// barrier.
INLINED void scan_group(__local Exchange* exchange, Sum sum)
{
    const uint item = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    put_sum(exchange, item, sum);
    for (uint distance = 1; distance < WG; distance *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const Sum other = item >= distance ? get_sum(exchange, item - distance) : no_sum();
        barrier(CLK_LOCAL_MEM_FENCE);
        sum = sum_of(other, sum);
        put_sum(exchange, item, sum);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// The range of a tile. `least` is the least position of a set bit, and `most` is above all set bits. `marks` has
// EXACT_FINITE if a finite element is not -0, and SPECIAL if an element is not finite.
typedef struct {
    uint least, most, marks;
} Extremes;
#define SPECIAL 0x100

INLINED void reset_extremes(volatile __local Extremes* extremes)
{
    extremes->least = UINT_MAX;
    extremes->most = 0;
    extremes->marks = 0;
}

// x[k] = element from + k * WG + item. Elements after the last one are -0, which changes no sum.
INLINED void load_round(__global const T* in, const OFFSET_T n, const OFFSET_T from, A* x)
{
    const OFFSET_T first = from + get_local_id(0);
    if (from < n && n - from >= ROUND) {
        _Pragma("unroll")
        for (uint k = 0; k < ITEMS; k++) {
            x[k] = element_to_acc(in[IN_INDEX(first + k * WG, n)]);
        }
    } else {
        _Pragma("unroll")
        for (uint k = 0; k < ITEMS; k++) {
            x[k] = load_element(in, n, first + k * WG);
        }
    }
}

// Adds the tile that begins at element `first` to the range. All work-items call it, in uniform flow, between barriers.
INLINED void take_extremes(__global const T* in, const OFFSET_T n, const OFFSET_T first, volatile __local Extremes* extremes,
    __local uint* sg_scratch)
{
    uint least = UINT_MAX, most = 0, marks = 0;
    for (uint round = 0; round < ROUNDS; round++) {
        A x[ITEMS];
        load_round(in, n, first + round * ROUND, x);
        _Pragma("unroll")
        for (uint k = 0; k < ITEMS; k++) {
            const uint field = EXPONENT(x[k]), position = position_of(field);
            const BITS size = size_of(x[k], field);
            marks |= field == NO_NUMBER ? SPECIAL : AS_BITS_OF(x[k]) != SIGN ? EXACT_FINITE : 0;
            if (field != NO_NUMBER && size != 0) {
                least = min(least, position + (uint)(8 * sizeof(BITS) - 1) - (uint)clz(size & -size));
                most = max(most, position + PRECISION);
            }
        }
    }
    for (uint d = 1; d < sg_size(); d <<= 1) {
        least = min(least, sg_shuffle_xor_u32(least, d, sg_scratch));
        most = max(most, sg_shuffle_xor_u32(most, d, sg_scratch));
        marks |= sg_shuffle_xor_u32(marks, d, sg_scratch);
    }
    if (sg_lane() == 0) {
        atomic_min(&extremes->least, least);
        atomic_max(&extremes->most, most);
        atomic_or(&extremes->marks, marks);
    }
}

// The lowest position of a window for elements below 2^most and a prefix below 2^bits.
static inline int window_for(const uint most, const int bits)
{
    return max(max(most == 0 ? 0 : (int)most + LOG_TILE, bits) + 2 - 127, 0);
}

// Word w of the exclusive prefix of a tile: the sum over its records at all levels.
static inline int prefix_word(__global const int* records, OFFSET_T tile, const OFFSET_T tiles, const uint w)
{
    int sum = 0;
    OFFSET_T first = 0, count = tiles;
    while (count > 1) {
        const int word = records[(ulong)(first + tile) * RECORD + w];
        sum = w == EXACT_WORDS ? sum | word : sum + word;
        first += count;
        count = count / LEVEL + (count % LEVEL != 0);
        tile /= LEVEL;
    }
    return sum;
}

// The prefix of a tile in its window.
typedef struct {
    ulong high, low;
    int position;
    // True if the prefix has bits below the window.
    uint rest;
} Window;

// The magnitude of an accumulator is below 2^bits times the least positive float, if its words above `highest` are 0.
static inline int bits_of_words(__local const int* words, const int highest)
{
    if (highest < 0) {
        return 0;
    }
    // The words below these two are below 2^30, and together below 2^15 units of the lower one.
    const long top = ((long)words[highest] << 16) + (highest > 0 ? words[highest - 1] : 0);
    return 16 * (highest - 1) + 64 - (int)clz(abs(top) + 0x8000) - EXACT_ONE;
}

// Finds the window, given an accumulator whose words outside of [lowest, highest] are 0. One work-item calls it.
static inline void open_window(
    __local Window* window, __local const int* words, const int lowest, const int highest, const uint most)
{
    const int position = window_for(most, bits_of_words(words, highest));
    ulong high = 0, low = 0;
    uint rest = 0;
    int carry = 0;
    for (int k = lowest; k <= highest; k++) {
        carry += words[k];
        const uint digit = (uint)carry & 0xffff;
        carry >>= 16;
        const int at = 16 * k - EXACT_ONE - position;
        if (at <= -16) {
            rest |= digit;
        } else if (at < 0) {
            rest |= digit & ((1u << -at) - 1);
            low |= digit >> -at;
        } else if (at < 64) {
            low |= (ulong)digit << at;
            high |= (ulong)digit >> 1 >> (63 - at);
        } else if (at < 128) {
            high |= (ulong)digit << (at - 64);
        }
    }
    // The sign.
    const int at = 16 * (highest + 1) - EXACT_ONE - position;
    if (carry < 0) {
        low |= at < 0 ? ~(ulong)0 : at < 64 ? ~(ulong)0 << at : 0;
        high |= at < 64 ? ~(ulong)0 : at < 128 ? ~(ulong)0 << (at - 64) : 0;
    }
    window->high = high;
    window->low = low;
    window->position = position;
    window->rest = rest != 0;
}

// Returns the bits of the float nearest to the sum, plus a fraction of a unit if `rest`. Sets *unsure if the fraction can change
// them.
static inline OUT_BITS round_sum(const Sum sum, const int position, const uint rest, uint* unsure)
{
    ulong high = sum.high, low = sum.low;
    const int negative = (int)(high >> 63);
    if (negative) {
        // The magnitude, rounded down.
        high = ~high;
        low = ~low;
        low += !rest;
        high += !rest && low == 0;
    }
    if ((high | low) == 0) {
        *unsure |= rest;
        return 0;
    }
    const int is_wide = high != 0, zeros = (int)clz(is_wide ? high : low);
    const ulong top = is_wide ? high << zeros | low >> 1 >> (63 - zeros) : low << zeros;
    const ulong more = is_wide ? low << zeros : 0;
    const int bits = (is_wide ? 128 : 64) - zeros;
    *unsure |= rest && bits <= OUT_PRECISION;
    const int above = bits - 1 + position + A_LEAST - OUT_LEAST;
    const ulong rounded = nearest_bits(top | (more != 0 || rest), above, OUT_PRECISION, OUT_INFINITY);
    return (OUT_BITS)(rounded | (ulong)negative << (8 * sizeof(OUT_BITS) - 1));
}

// Returns the bits of a prefix. In a hard tile, the prefix exceeds `sum` by less than TILE + 1 units.
static inline OUT_BITS bits_of_prefix(
    const Sum sum, const int position, const uint rest, const uint hard, uint* unsure)
{
    const uint infinities = sum.marks & (EXACT_PLUS | EXACT_MINUS);
    const ulong sign = (ulong)1 << (8 * sizeof(OUT_BITS) - 1);
    if ((sum.marks & EXACT_NAN) || infinities == (EXACT_PLUS | EXACT_MINUS)) {
        return (OUT_BITS)(OUT_INFINITY | (ulong)1 << (OUT_PRECISION - 2));
    }
    if (infinities != 0) {
        return (OUT_BITS)(OUT_INFINITY | (infinities == EXACT_MINUS ? sign : 0));
    }
    if (sum.marks == 0) {
        return (OUT_BITS)sign;
    }
    if (!hard) {
        return round_sum(sum, position, rest, unsure);
    }
    Sum most = no_sum();
    most.low = TILE;
    most = sum_of(sum, most);
    uint ignored = 0;
    const OUT_BITS least = round_sum(sum, position, 0, &ignored);
    *unsure |= round_sum(most, position, 1, unsure) != least;
    return least;
}

// Narrow tiles: the prefix and all sums of the tile are whole numbers of units, below 2^62. Units, elements and results
// are normal floats, or 0. So the conversion of an element to units is exact, and that of a sum to a float is correctly
// rounded. A result may overflow to infinity.
#define NARROW_BITS 62
// A unit is 2^(position + A_LEAST). At positions from 23 to 275, the unit and its inverse are normal floats. A prefix that is a finite
// float needs a position of at most 217.
#define LEAST_NARROW 23
#define MOST_NARROW 230

// The least position of a unit for elements below 2^most and a prefix below 2^bits.
static inline int narrow_position(const uint most, const int bits)
{
    return max(max(most == 0 ? 0 : (int)most + LOG_TILE, bits) + 1 - NARROW_BITS, LEAST_NARROW);
}

// `least` is the least position of a bit of the elements and the prefix.
static inline int is_narrow(const int position, const uint least, const uint marks)
{
    return A_BYTES == 4 && position <= MOST_NARROW && least >= (uint)position && !(marks & SPECIAL);
}

static inline float unit_of(const int position) { return as_float((uint)(position + A_LEAST + 127) << 23); }

static inline float inverse_unit_of(const int position) { return as_float((uint)(127 - position - A_LEAST) << 23); }

static inline OUT_BITS bits_of_units(const long units, const int position)
{
#if OUT_PRECISION == 24
    return as_uint((float)units * unit_of(position));
#else
    Sum sum = no_sum();
    sum.low = (ulong)units;
    sum.high = units < 0 ? ~(ulong)0 : 0;
    uint ignored = 0;
    return round_sum(sum, position, 0, &ignored);
#endif
}

// The value of the accumulator, in units. The total fits in 64 bits, so partial sums may wrap.
static inline long units_of_words(__local const int* words, const int lowest, const int highest, const int position)
{
    ulong units = 0;
    for (int k = lowest; k <= highest; k++) {
        const int at = 16 * k - EXACT_ONE - position;
        const long word = words[k];
        units += at < 0 ? (ulong)(word >> -at) : at < 64 ? (ulong)word << at : 0;
    }
    return (long)units;
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
// in uniform flow; `totals` may be used again after the caller's next barrier.
INLINED long scan_units(__local long* totals, __local uint* sg_scratch, const long own, long* total)
{
    const uint item = get_local_id(0), width = sg_size(), group = item / width;
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

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void scan_exact_sums(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global int* records, const OFFSET_T tiles)
{
    __local int words[EXACT_WORDS];
    __local long totals[WG];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    volatile __local Extremes extremes;
    volatile __local uint marks[1];
    const uint item = get_local_id(0);
    __global const T* in = in_base + in_offset;
    // Each work-group has at least one tile, so the loops over tiles in this file test their condition last. If they
    // tested it first, PoCL would take the barriers as conditional. It could then put one of its own barriers into an
    // `if` that not all work-items enter.
    OFFSET_T tile = get_group_id(0);
    do {
        const OFFSET_T first = tile * TILE;
        __global int* record = records + (ulong)tile * RECORD;
        if (item == 0) {
            reset_extremes(&extremes);
            marks[0] = 0;
        }
        for (uint w = item; w < EXACT_WORDS; w += WG) {
            words[w] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        take_extremes(in, n, first, &extremes, sg_scratch);
        barrier(CLK_LOCAL_MEM_FENCE);
        const int position = narrow_position(extremes.most, 0);
        if (is_narrow(position, extremes.least, extremes.marks)) {
            const float scale = inverse_unit_of(position);
            long units = 0, total;
            for (uint round = 0; round < ROUNDS; round++) {
                A x[ITEMS];
                load_round(in, n, first + round * ROUND, x);
                _Pragma("unroll")
                for (uint k = 0; k < ITEMS; k++) {
                    units += (long)(x[k] * scale);
                }
            }
            scan_units(totals, sg_scratch, units, &total);
            for (uint w = item; w < EXACT_WORDS; w += WG) {
                record[w] = word_of(total, position, w);
            }
            if (item == 0) {
                record[EXACT_WORDS] = (int)extremes.marks;
            }
        } else {
            const int low = window_for(extremes.most, 0);
            Sum sum = no_sum();
            for (uint i = item; i < TILE; i += WG) {
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
            carry_exact(words, EXACT_WORDS, 1);
            carry_exact(words, EXACT_WORDS, 1);
            for (uint w = item; w < EXACT_WORDS; w += WG) {
                record[w] = words[w];
            }
            if (item == 0) {
                record[EXACT_WORDS] = (int)marks[0];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        tile += get_num_groups(0);
    } while (tile < tiles);
}

// The records of a level begin at `first`, and those of the next level at `next`. The last record of a level may be
// unwritten: no exclusive prefix includes it.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void scan_exact_spine(
    __global int* records, const OFFSET_T first, const OFFSET_T count, const OFFSET_T next)
{
    __local int words[EXACT_WORDS];
    const OFFSET_T groups = count / LEVEL + (count % LEVEL != 0);
    OFFSET_T group = get_group_id(0);
    do {
        const uint members = (uint)min((OFFSET_T)LEVEL, count - group * LEVEL);
        __global int* record = records + (ulong)(first + group * LEVEL) * RECORD;
        __global int* above = records + (ulong)(next + group) * RECORD;
        for (uint w = get_local_id(0); w < RECORD; w += WG) {
            int prefix = 0;
            for (uint m = 0; m < members; m++) {
                const int own = group * LEVEL + m + 1 < count ? record[m * RECORD + w] : 0;
                record[m * RECORD + w] = prefix;
                prefix = w == EXACT_WORDS ? prefix | own : prefix + own;
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

// A tile's prefix and elements in local memory.
typedef struct {
    int words[EXACT_WORDS], copy[EXACT_WORDS];
    // The elements of a round, then the bits of their results.
    BITS stage[ROUND + WG];
    Exchange exchange;
    Window window;
    Extremes extremes;
    int range[2];
    // The least position of a bit of the prefix.
    uint least;
    uint pending[WG], marks, any;
} Tile;

// Adds a word to the range of those that are not 0: range[0] .. range[1].
INLINED void take_range(volatile __local int* range, const uint w, const int word)
{
    if (word != 0) {
        atomic_min(range, (int)w);
        atomic_max(range + 1, (int)w);
    }
}

// The least position of a bit of word w, which is not 0.
static inline uint least_of_word(const uint w, const int word)
{
    return (uint)max(16 * (int)w + 31 - (int)clz(word & -word) - EXACT_ONE, 0);
}

INLINED void store_round(__local const Tile* tile, __global OUT_BITS* out, const OFFSET_T outputs, const OFFSET_T from)
{
    for (uint k = get_local_id(0); k < ROUND; k += WG) {
        if (from + k < outputs) {
            out[IN_INDEX(from + k, outputs)] = (OUT_BITS)tile->stage[AT(k)];
        }
    }
}

// Stores the results of a narrow tile, whose prefix is `start` units. All work-items call it, in uniform flow.
INLINED void scan_narrow(__local Tile* tile, __local uint* sg_scratch, __global const T* in, const OFFSET_T n,
    const OFFSET_T first, __global OUT_BITS* out, const OFFSET_T outputs, const uint inclusive, const int position, long start)
{
    const uint item = get_local_id(0);
    const float scale = inverse_unit_of(position);
    for (uint round = 0; round < ROUNDS; round++) {
        const OFFSET_T from = first + round * ROUND;
        A x[ITEMS];
        load_round(in, n, from, x);
        _Pragma("unroll")
        for (uint k = 0; k < ITEMS; k++) {
            tile->stage[AT(k * WG + item)] = AS_BITS_OF(x[k]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        __local BITS* elements = tile->stage + AT(item * ITEMS);
        long own = 0, total;
        _Pragma("unroll")
        for (uint k = 0; k < ITEMS; k++) {
            own += (long)(AS_REAL(elements[k]) * scale);
        }
        long prefix = start + scan_units((__local long*)tile->exchange.high, sg_scratch, own, &total);
        _Pragma("unroll")
        for (uint k = 0; k < ITEMS; k++) {
            const long next = prefix + (long)(AS_REAL(elements[k]) * scale);
            elements[k] = bits_of_units(inclusive ? next : prefix, position);
            prefix = next;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        store_round(tile, out, outputs, from);
        start += total;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// As scan_narrow, for any tile. `tile->words` holds its prefix.
INLINED void scan_wide(__local Tile* tile, __global const T* in, const OFFSET_T n, const OFFSET_T first,
    __global OUT_BITS* out, const OFFSET_T outputs, const uint inclusive)
{
    const uint item = get_local_id(0);
    carry_exact(tile->words, EXACT_WORDS, 1);
    if (item == 0) {
        tile->range[0] = EXACT_WORDS;
        tile->range[1] = -1;
    }
    carry_exact(tile->words, EXACT_WORDS, 1);
    for (uint w = item; w < EXACT_WORDS; w += WG) {
        take_range(tile->range, w, tile->words[w]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        open_window(&tile->window, tile->words, tile->range[0], tile->range[1], tile->extremes.most);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int position = tile->window.position;
    const uint rest = tile->window.rest, hard = tile->extremes.least < (uint)position;
    Sum start;
    start.high = tile->window.high;
    start.low = tile->window.low;
    start.marks = tile->marks;
    // The prefix that the accumulator holds.
    Sum deposited = start;
    for (uint round = 0; round < ROUNDS; round++) {
        const OFFSET_T from = first + round * ROUND;
        for (uint k = item; k < ROUND; k += WG) {
            tile->stage[AT(k)] = AS_BITS_OF(load_element(in, n, from + k));
        }
        if (item == 0) {
            tile->any = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        Sum own = no_sum();
        uint ignored = 0;
        for (uint k = item * ITEMS; k < (item + 1) * ITEMS; k++) {
            own = sum_of(own, window_of(AS_REAL(tile->stage[AT(k)]), position, &ignored));
        }
        scan_group(&tile->exchange, own);
        Sum prefix = item > 0 ? sum_of(start, get_sum(&tile->exchange, item - 1)) : start;
        const Sum end = sum_of(start, get_sum(&tile->exchange, WG - 1));
        uint unsure = 0;
        for (uint k = 0; k < ITEMS; k++) {
            const uint at = AT(item * ITEMS + k);
            const Sum next = sum_of(prefix, window_of(AS_REAL(tile->stage[at]), position, &ignored));
            uint is_unsure = 0;
            tile->stage[at] = bits_of_prefix(inclusive ? next : prefix, position, rest, hard, &is_unsure);
            unsure |= is_unsure && from + item * ITEMS + k < outputs ? 1u << k : 0;
            prefix = next;
        }
        tile->pending[item] = unsure;
        if (unsure != 0) {
            atomic_or(&tile->any, 1);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        // Uniform flow: all work-items read the same words.
        const uint some = tile->any;
        if (hard || some) {
            uint done = 0;
            if (item == 0 && !hard) {
                deposit_sum(tile->words, difference(start, deposited), position);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint owner = 0; owner < (some ? WG : 0); owner++) {
                for (uint mask = tile->pending[owner]; mask != 0; mask &= mask - 1) {
                    const uint k = owner * ITEMS + 31 - (uint)clz(mask & -mask), stop = k + inclusive;
                    for (uint e = done + item; e < stop; e += WG) {
                        deposit(tile->words, load_element(in, n, from + e));
                    }
                    done = stop;
                    carry_exact(tile->words, EXACT_WORDS, 1);
                    if (item == 0) {
                        tile->range[0] = EXACT_WORDS;
                        tile->range[1] = -1;
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                    for (uint w = item; w < EXACT_WORDS; w += WG) {
                        tile->copy[w] = tile->words[w];
                        take_range(tile->range, w, tile->copy[w]);
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                    if (item == 0) {
                        tile->stage[AT(k)] = round_exact(tile->copy, 1, tile->range[0], tile->range[1], 1);
                    }
                }
            }
            for (uint e = done + item; e < ROUND; e += WG) {
                deposit(tile->words, load_element(in, n, from + e));
            }
            deposited = end;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        store_round(tile, out, outputs, from);
        start = end;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void scan_exact_tiles(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global OUT* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global const int* records, const OFFSET_T tiles, const A initial, const uint inclusive)
{
    __local Tile local_tile;
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    __local Tile* tile = &local_tile;
    const uint item = get_local_id(0);
    __global const T* in = in_base + in_offset;
    __global OUT_BITS* out = (__global OUT_BITS*)(out_base + out_offset);
    const uint first_field = EXPONENT(initial);
    const long first_size = first_field == NO_NUMBER ? 0 : (long)size_of(initial, first_field);
    OFFSET_T index = get_group_id(0);
    do {
        const OFFSET_T first = index * TILE;
        if (item == 0) {
            reset_extremes(&tile->extremes);
            tile->range[0] = EXACT_WORDS;
            tile->range[1] = -1;
            tile->least = UINT_MAX;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint w = item; w < RECORD; w += WG) {
            int word = prefix_word(records, index, tiles, w);
            if (w < EXACT_WORDS) {
                word += word_of(is_negative(initial) ? -first_size : first_size, (int)position_of(first_field), w);
                tile->words[w] = word;
                take_range(tile->range, w, word);
                if (word != 0) {
                    atomic_min(&tile->least, least_of_word(w, word));
                }
            } else {
                tile->marks = (uint)word | marks_of(initial, first_field);
            }
        }
        take_extremes(in, n, first, &tile->extremes, sg_scratch);
        barrier(CLK_LOCAL_MEM_FENCE);
        const int lowest = tile->range[0], highest = tile->range[1];
        const uint least = min(tile->extremes.least, tile->least);
        const int position = narrow_position(tile->extremes.most, bits_of_words(tile->words, highest));
        if (is_narrow(position, least, tile->extremes.marks) && tile->marks == EXACT_FINITE) {
            const long start = units_of_words(tile->words, lowest, highest, position);
            scan_narrow(tile, sg_scratch, in, n, first, out, outputs, inclusive, position, start);
        } else {
            scan_wide(tile, in, n, first, out, outputs, inclusive);
        }
        index += get_num_groups(0);
    } while (index < tiles);
}
