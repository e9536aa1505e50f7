// Exact scan of floats: the tiles whose prefixes need more than 64 bits. scan_exact.cl has the formula, the records and
// the list.
//
// Bytes: reads each element and writes each result of these tiles, and reads the records of their prefixes.
//
//     prefix of the tile = initial + its records at all levels
//     choose a window of 128 bits that holds the prefix and all sums of the tile
//     for each round of ROUND elements: scan them as integers of the window, round each prefix
//
// Window: let u = 2^low be its unit. The prefix of the tile is P = H u + f, with an integer H and 0 <= f < u. An
// element is h u + g, with 0 <= g < u. Let V = H + h + ... If M - 1 of these elements have g > 0, then
// V u <= prefix < (V + M) u. `low` is chosen so that V fits in 127 bits and a sign.
//
// - All g are 0: the prefix is V u + f, and f matters only as a sticky bit. So the result is certain if V has more bits
//   than OUT. Fewer bits remain only if the elements cancel nearly all of the prefix.
// - Else the tile is hard: its magnitudes differ by a factor of about 2^70 or more. Most prefixes are still far from a
//   tie: V u and V u + M u round to the same float, which is then the result.
//
// All other results are unsure. For these, the work-group adds the elements before them to the accumulator of the tile,
// and rounds it.
//
// References: those of scan_exact.cl.
#include "lib/types.cl"
#define REAL_BYTES A_BYTES
#include "lib/parts.cl"
#ifndef WG
#define WG 256
#define ITEMS 16
#define ROUNDS 1
#endif
#include "lib/exact.cl"
#include "lib/exact_scan.cl"

// Elements of a round.
#define ROUND (WG * ITEMS)
// Padded index in local memory: avoids bank conflicts between work-items.
#define AT(i) ((i) + (i) / ITEMS)

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

// extremes[0] = the least position of a bit that is set, extremes[1] = a position above all bits, in the tile that
// begins at element `first`. All work-items call it, in uniform flow; it begins and ends with a barrier.
INLINED void find_extremes(
    __global const T* in, const OFFSET_T n, const OFFSET_T first, volatile __local uint* extremes)
{
    uint least = UINT_MAX, most = 0;
    for (uint i = get_local_id(0); i < TILE; i += WG) {
        const A x = load_element(in, n, first + i);
        const uint field = EXPONENT(x), position = position_of(field);
        const ulong size = field == NO_NUMBER ? 0 : (ulong)size_of(x, field);
        if (size != 0) {
            least = min(least, position + 63 - (uint)clz(size & -size));
            most = max(most, position + PRECISION);
        }
    }
    if (get_local_id(0) == 0) {
        extremes[0] = UINT_MAX;
        extremes[1] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_min(extremes, least);
    atomic_max(extremes + 1, most);
    barrier(CLK_LOCAL_MEM_FENCE);
}

// The prefix of a tile in its window.
typedef struct {
    ulong high, low;
    int position;
    // True if the prefix has bits below the window.
    uint rest;
} Window;

// Finds the window, given an accumulator whose words outside of [lowest, highest] are 0. One work-item calls it.
static inline void open_window(
    __local Window* window, __local const int* words, const int lowest, const int highest, const uint most)
{
    const int bits = highest < 0 ? 0 : 16 * highest + 32 - (int)clz(abs(words[highest]) + 1) - EXACT_ONE;
    const int position = window_for(most, bits);
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
    // The carry out of the highest word is negative if the number is. Then all higher bits are ones.
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

// Returns the bits of the float nearest to the sum, to which `rest` adds a fraction of a unit. Sets *unsure if the
// fraction can change them.
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

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void scan_exact_wide_tiles(__global const T* in_base,
    const ulong in_offset, const OFFSET_T n, __global OUT* out_base, const ulong out_offset, const OFFSET_T outputs,
    __global const int* records, const OFFSET_T tiles, __global const uint* listed, const A initial,
    const uint inclusive)
{
    __local int words[EXACT_WORDS], copy[EXACT_WORDS];
    // The elements of a round, then the bits of their results.
    __local BITS stage[ROUND + WG];
    __local Exchange exchange;
    __local Window window;
    volatile __local uint extremes[2];
    volatile __local int range[2];
    __local uint pending[WG], marks[1];
    volatile __local uint any[1];
    const uint item = get_local_id(0);
    __global OUT_BITS* out = (__global OUT_BITS*)(out_base + out_offset);
#ifdef LISTED
    const OFFSET_T count = listed[0];
#else
    const OFFSET_T count = tiles;
#endif
    OFFSET_T index = get_group_id(0);
    do {
        // A work-group beyond the list takes an empty tile, so that all run through the barriers. It loads nothing that
        // another one stores.
        const int is_empty = index >= count;
        __global const T* in = is_empty ? (__global const T*)records : in_base + in_offset;
        const OFFSET_T length = is_empty ? 1 : n, results = is_empty ? 0 : outputs;
#ifdef LISTED
        const OFFSET_T tile = is_empty ? 0 : listed[1 + index], first = is_empty ? 1 : tile * TILE;
#else
        const OFFSET_T tile = index, first = tile * TILE;
#endif
        for (uint w = item; w < RECORD; w += WG) {
            const int word = prefix_word(records, tile, tiles, w);
            if (w < EXACT_WORDS) {
                words[w] = word;
            } else {
                marks[0] = (uint)word | marks_of(initial, EXPONENT(initial));
            }
        }
        if (item == 0) {
            range[0] = EXACT_WORDS;
            range[1] = -1;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == 0) {
            deposit(words, initial);
        }
        carry_exact(words, EXACT_WORDS, 1);
        carry_exact(words, EXACT_WORDS, 1);
        for (uint w = item; w < EXACT_WORDS; w += WG) {
            if (words[w] != 0) {
                atomic_min(range, (int)w);
                atomic_max(range + 1, (int)w);
            }
        }
        find_extremes(in, length, first, extremes);
        if (item == 0) {
            open_window(&window, words, range[0], range[1], extremes[1]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int position = window.position;
        const uint rest = window.rest, hard = extremes[0] < (uint)position;
        Sum start;
        start.high = window.high;
        start.low = window.low;
        start.marks = marks[0];
        // The prefix that the accumulator holds.
        Sum deposited = start;
        for (uint round = 0; round < ROUNDS; round++) {
            const OFFSET_T from = first + round * ROUND;
            for (uint k = item; k < ROUND; k += WG) {
                stage[AT(k)] = AS_BITS_OF(load_element(in, length, from + k));
            }
            if (item == 0) {
                any[0] = 0;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            Sum own = no_sum();
            uint ignored = 0;
            for (uint k = item * ITEMS; k < (item + 1) * ITEMS && !is_empty; k++) {
                own = sum_of(own, window_of(AS_REAL(stage[AT(k)]), position, &ignored));
            }
            scan_group(&exchange, own);
            Sum prefix = item > 0 ? sum_of(start, get_sum(&exchange, item - 1)) : start;
            const Sum end = sum_of(start, get_sum(&exchange, WG - 1));
            uint unsure = 0;
            for (uint k = 0; k < ITEMS && !is_empty; k++) {
                const uint at = AT(item * ITEMS + k);
                const Sum next = sum_of(prefix, window_of(AS_REAL(stage[at]), position, &ignored));
                uint is_unsure = 0;
                stage[at] = bits_of_prefix(inclusive ? next : prefix, position, rest, hard, &is_unsure);
                unsure |= is_unsure && from + item * ITEMS + k < results ? 1u << k : 0;
                prefix = next;
            }
            pending[item] = unsure;
            if (unsure != 0) {
                atomic_or(any, 1);
            }
            // In place, other work-items have read the elements that a work-item writes below.
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            // Uniform flow: all work-items read the same words.
            const uint some = any[0];
            if (hard || some) {
                uint done = 0;
                if (item == 0 && !hard) {
                    deposit_sum(words, difference(start, deposited), position);
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                for (uint owner = 0; owner < (some ? WG : 0); owner++) {
                    for (uint mask = pending[owner]; mask != 0; mask &= mask - 1) {
                        const uint k = owner * ITEMS + 31 - (uint)clz(mask & -mask), stop = k + inclusive;
                        for (uint e = done + item; e < stop; e += WG) {
                            deposit(words, load_element(in, length, from + e));
                        }
                        done = stop;
                        carry_exact(words, EXACT_WORDS, 1);
                        if (item == 0) {
                            range[0] = EXACT_WORDS;
                            range[1] = -1;
                        }
                        barrier(CLK_LOCAL_MEM_FENCE);
                        for (uint w = item; w < EXACT_WORDS; w += WG) {
                            copy[w] = words[w];
                            if (copy[w] != 0) {
                                atomic_min(range, (int)w);
                                atomic_max(range + 1, (int)w);
                            }
                        }
                        barrier(CLK_LOCAL_MEM_FENCE);
                        if (item == 0) {
                            stage[AT(k)] = round_exact(copy, 1, range[0], range[1], 1);
                        }
                    }
                }
                for (uint e = done + item; e < ROUND; e += WG) {
                    deposit(words, load_element(in, length, from + e));
                }
                deposited = end;
                barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            }
            for (uint k = item; k < ROUND; k += WG) {
                if (from + k < results) {
                    out[IN_INDEX(from + k, outputs)] = (OUT_BITS)stage[AT(k)];
                }
            }
            start = end;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        index += get_num_groups(0);
    } while (index < count);
}
