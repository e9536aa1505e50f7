// The other kernels of histogram_weighted.cl: they initialise scratch, find the window's upper end, and merge the
// tables.

// Work-group g writes words [g * per, (g + 1) * per): BIAS_WORD to words [rest, rest_end), 0 to others.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_weights_zero(
    __global uint* restrict scratch, const ulong words, const ulong per, const ulong rest, const ulong rest_end)
{
    const ulong first = get_group_id(0) * per, end = first + min(per, words - first);
    for (ulong i = first + get_local_id(0); i < end; i += WG) {
        scratch[i] = i >= rest && i < rest_end ? BIAS_WORD : 0;
    }
}

#ifdef W_FLOAT

// Tables of windows are added up in 128 bits.
#define MERGED ulong2
#define ADD_MERGED(a, b) add_128(a, b)
#define ZERO_MERGED ((ulong2)(0, 0))

// Returns the sum of a slot in a table, sign-extended.
static inline ulong2 load_sum(__global const uint* words, const ulong slots)
{
    const ulong low = (ulong)words[slots] << 32 | words[0];
    if (LIMBS == 2) {
        return (ulong2)(low, (long)low < 0 ? ~(ulong)0 : 0);
    }
    return (ulong2)(low, (ulong)words[3 * slots] << 32 | words[2 * slots]);
}

// The larger of `most` and the exponent field of a finite weight.
static inline uint max_field(const uint most, const W w)
{
    const uint field = EXPONENT(real_of(w));
    return field == NO_NUMBER ? most : max(most, field);
}

// scratch[0] = the largest exponent field of the sampled weights: work-group g samples the first `looked` of
// [g * per, (g + 1) * per).
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_weights_max(
    __global const W* restrict weights_base, const ulong weights_offset, LENGTH_PARAMS, const OFFSET_T per,
    const OFFSET_T looked, volatile __global uint* restrict scratch)
{
    __local uint highest[1];
    TAKE_LENGTH
    __global const W* weights = weights_base + weights_offset;
    const OFFSET_T first = (OFFSET_T)get_group_id(0) * per;
    if (get_local_id(0) == 0) {
        highest[0] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint most = 0;
    if (first < n) {
        const OFFSET_T end = first + min(looked, n - first);
        OFFSET_T i = first + get_local_id(0);
        // Eight loads in flight.
        for (; WG > 1 && i + 7 * WG < end; i += 8 * WG) {
            W held[8];
#pragma unroll
            for (uint k = 0; k < 8; k++) {
                held[k] = weights[i + k * WG];
            }
#pragma unroll
            for (uint k = 0; k < 8; k++) {
                most = max_field(most, held[k]);
            }
        }
        for (; i < end; i += WG) {
            most = max_field(most, weights[i]);
        }
    }
    atomic_max(highest, most);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        atomic_max(scratch, highest[0]);
    }
}

// Bits [at, at + 32) of a signed number. `at` may be negative, or beyond the highest bit.
static inline uint word_at(const ulong2 x, const int at)
{
    const ulong sign = (long)x.y < 0 ? ~(ulong)0 : 0;
    if (at <= -32 || at >= 128) {
        return at < 0 ? 0 : (uint)sign;
    }
    if (at < 0) {
        return (uint)x.x << -at;
    }
    const uint shift = at & 63;
    const ulong low = at < 64 ? x.x : x.y, high = at < 64 ? x.y : sign;
    return (uint)(shift == 0 ? low : low >> shift | high << (64 - shift));
}

// Returns the float nearest to window * 2^q + rest, ties to even. The rest's words are `plane` apart; those in [lowest,
// end) were touched.
static inline REAL rounded(
    const ulong2 window, const uint q, __global const uint* rest, const uint plane, const uint lowest, const uint end)
{
    // The window takes 5 words at most, and the carry takes one more.
    const uint first = min(q / 32, lowest), last = min((uint)REST, max(q / 32 + 5, end) + 1);
    long carry = 0;
    uint digit = 0;
    for (uint k = first; k < last; k++) {
        const uint word = k >= lowest && k < end ? rest[(ulong)k * plane] : BIAS_WORD;
        carry += (long)word_at(window, 32 * (int)k - (int)q) + (long)word - (long)BIAS_WORD;
        digit = (uint)carry;
        carry >>= 32;
    }
    const int negative = (int)digit < 0;
    // A second pass, over the absolute value, finds the highest word that is not 0 and the two words below it. It also
    // finds whether lower bits are set.
    uint lead = 0, high = 0, middle = 0, low = 0, more = 0, one_below = 0, two_below = 0, others = 0;
    uint complement = negative ? 1 : 0;
    carry = 0;
    for (uint k = first; k < last; k++) {
        const uint word = k >= lowest && k < end ? rest[(ulong)k * plane] : BIAS_WORD;
        carry += (long)word_at(window, 32 * (int)k - (int)q) + (long)word - (long)BIAS_WORD;
        digit = (uint)carry;
        carry >>= 32;
        if (negative) {
            digit = ~digit + complement;
            complement = complement != 0 && digit == 0 ? 1 : 0;
        }
        if (digit != 0) {
            lead = k;
            high = digit;
            middle = one_below;
            low = two_below;
            more = others;
        }
        others |= two_below;
        two_below = one_below;
        one_below = digit;
    }
    if (high == 0) {
        return 0;
    }
    // `top`: the 64 leading bits; the last one is also set if any lower bit is set. `above`: the number of bits below
    // the leading one.
    const uint zeros = clz(high), above = 32 * lead + 31 - zeros;
    ulong top = (ulong)high << 32 | middle;
    top = zeros == 0 ? top : top << zeros | low >> (32 - zeros);
    top |= (low << zeros | more) != 0;
    const BITS bits = (BITS)nearest_bits(top, (int)above, PRECISION, (ulong)NO_NUMBER << (PRECISION - 1));
    return AS_REAL(bits | (BITS)negative << (8 * sizeof(BITS) - 1));
}
// Returns a sum in the caller's type.
static inline SUM finished(
    const ulong2 sum, __global const uint* scratch, const uint slot, const uint slots, const uint log_n)
{
    const uint marks = scratch[HEAD + slot];
    if (marks != 0) {
        return marks == MARK_PLUS ? INFINITY : marks == MARK_MINUS ? -INFINITY : NAN;
    }
    const uint end = scratch[2], lowest = end == 0 ? REST : REST - scratch[1];
    return rounded(sum, window_of(scratch[0], log_n), scratch + HEAD + slots + slot, slots, lowest, end);
}

#else

#define MERGED ulong
#define ADD_MERGED(a, b) ((a) + (b))
#define ZERO_MERGED 0

static inline ulong load_sum(__global const uint* words, const ulong slots)
{
    return (ulong)words[slots] << 32 | words[0];
}

static inline SUM finished(
    const ulong sum, __global const uint* scratch, const uint slot, const uint slots, const uint log_n)
{
    return (SUM)sum;
}

#endif

// With GROUPED, slot g * (own_bins + 3) + s is slot s of group g. The slots from `bins` on are not written.
#ifdef GROUPED
#define GROUP_PARAM , const uint own_bins
#else
#define GROUP_PARAM
#endif

// Work-group g merges the slots [g * per, (g + 1) * per), 2^column_bits of them at a time. Its work-items form rows of
// 2^column_bits. Row r adds up the tables r, r + rows, and so on.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_weights_merge(
    __global const uint* restrict scratch, const ulong table_word, const uint table_count, const uint bins,
    const uint low_slot, const uint slots, const uint log_n, const uint column_bits, const uint per,
    __global SUM* restrict sums_base, const ulong sums_offset, __global SUM* restrict outside_base,
    const ulong outside_offset, const uint add GROUP_PARAM)
{
    __local MERGED shared[WG];
    __global const uint* tables = scratch + table_word;
    __global SUM* sums = sums_base + sums_offset;
    __global SUM* outside = outside_base + outside_offset;
    const uint cols = 1u << column_bits, rows = WG >> column_bits;
    const uint item = get_local_id(0), col = item & (cols - 1), row = item >> column_bits;
    const uint first = get_group_id(0) * per, end = min(slots, first + per);
    for (uint base = first; base < end; base += cols) {
        const uint slot = base + col;
        MERGED sum = ZERO_MERGED;
        if (slot < end) {
            for (uint t = row; t < table_count; t += rows) {
                sum = ADD_MERGED(sum, load_sum(tables + (ulong)t * LIMBS * slots + slot, slots));
            }
        }
        if (WG > 1) {
            shared[item] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint d = rows / 2; d > 0; d /= 2) {
                if (row < d) {
                    shared[item] = ADD_MERGED(shared[item], shared[item + d * cols]);
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            sum = shared[item];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
#ifdef GROUPED
        if (row == 0 && slot < end && low_slot + slot < bins) {
#else
        if (row == 0 && slot < end) {
#endif
            const uint whole = low_slot + slot;
#ifdef GROUPED
            const uint group = whole / (own_bins + 3), own = whole % (own_bins + 3);
            __global SUM* out = own < own_bins ? sums + ((ulong)group * own_bins + own)
                                               : outside + ((ulong)group * 3 + own - own_bins);
#else
            __global SUM* out = whole < bins ? sums + whole : outside + (whole - bins);
#endif
            const SUM found = finished(sum, scratch, slot, slots, log_n);
            *out = add ? *out + found : found;
        }
    }
}
