// Exact sums by groups: out[g] = the float nearest to the sum of group g, ties to even; with MEAN, to that sum divided
// by the number of its elements. src/reduce/exact_groups/mod.rs has the algorithm, and reduce_exact.cl the proof for
// chunks.
//
// Bytes: reads each element once; reads the elements of groups that do not fit in the registers twice.
//
//     for WG / TEAM groups at a time, each with a team of TEAM work-items:
//         for each chunk of CHUNK elements of the work-item: add it to the partial, or mark that it does not fit
//         add the partials of the team, as a tree
//         first work-item of the team: round the partial, store the result
//         if some groups do not fit: for TABLES of them at a time
//             deposit their elements in accumulators in local memory (lib/exact.cl), resolve carries, round, store
//
// SEGMENTS: a group is in[offsets[g] .. offsets[g + 1]]; groups of more than `part` elements are listed, not summed.
// Without SEGMENTS a group is a line (lib/lines.cl). COLUMNS: neighbouring work-items have neighbouring groups; else
// they have neighbouring elements. PARTS: a team has a part of a group, and adds its accumulator to that of the group
// in global memory: `sums`.
// DOT: the summands are the exact products in[i] * other[i]; lines of `other` have their own strides. Excludes
// REGISTERS.
//
// The list of the parts of long segments: list[0] is the number of parts; then follow `room` owners and `room` firsts.
// firsts[p] is the index f of the first part in the segment of part p. For this segment, owners[f] is the index,
// owners[f + 1] the length, and sums[f] the accumulator.
#include "lib/types.cl"
#define REAL_BYTES A_BYTES
#include "lib/parts.cl"
#ifndef WG
#define WG 256
#define TEAM 8
#define TABLES 8
#define CHUNK 16
#define LOG_CHUNK 4
#endif
#define REPLICAS TABLES
#include "lib/exact.cl"
#ifndef SEGMENTS
#include "lib/lines.cl"
#endif

#ifndef DOT
#define DOT 0
#endif
#define TEAMS (WG / TEAM)
#ifndef COUNTED
#define COUNTED 0
#endif
#if WG >= 32
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED
#endif

// Words of the accumulator that a summand changes.
#define PIECES (!DOT ? (A_BYTES == 4 ? 3 : 5) : (A_BYTES == 4 ? 4 : 8))
// The position of a summand's lowest bit is its exponent minus LEAST. In the accumulator it is POSITION_OF_LEAST
// higher.
#if DOT
#define LEAST EXACT_LEAST
#define POSITION_OF_LEAST 0
#else
#define LEAST (EXACT_LEAST / 2)
#define POSITION_OF_LEAST EXACT_ONE
#endif
// A mark of a partial that lacks numbers.
#define MISFIT 16
// The number of elements of a group after which the carries of its accumulator must be resolved. Each element changes a
// word once.
#define TABLE_ELEMENTS MOST_ADDED

#ifndef REGISTERS
#if A_BYTES == 4 && !DOT
// A number below 2^24 is shifted by at most 31 bits: 2^32 + 255 * 2^55 < 2^63.
#define DIGITS 3
#define WINDOW 64
#define WINDOW_CHUNKS (255 / CHUNK)
#elif A_BYTES == 4 || !DOT
// A number below 2^53 changes a digit by at most 2^52: 2^32 + 2047 * 2^52 < 2^63.
#define DIGITS 5
#define WINDOW 96
#define WINDOW_CHUNKS (2047 / CHUNK)
#else
// A product is two numbers below 2^53, and the upper one has a position 53 higher.
#define UPPER 53
#define DIGITS 7
#define WINDOW (160 - UPPER)
#define WINDOW_CHUNKS (1023 / CHUNK)
#endif
// Positions of the window above the largest number of the first chunk.
#define ABOVE 15
#endif

typedef struct {
#ifdef REGISTERS
    double sum, error;
#else
    long digit[DIGITS];
    // The position of the window, and the chunks since the last carry.
    int low;
    uint since;
#endif
    uint marks;
} Partial;

#if !DOT

// The magnitudes of the largest element and of the smallest one that is not 0; for zeros alone, 0 and 0.
static inline void find_extremes(const A* x, BITS* least, BITS* most)
{
    BITS high = 0, low = 0;
    low--;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const BITS magnitude = MAGNITUDE(x[k]);
        high = max(high, magnitude);
        // 0 wraps to the largest number.
        low = min(low, (BITS)(magnitude - 1));
    }
    *least = low + 1;
    *most = high;
}

// Returns the mark of elements that are all 0.
static inline uint marks_of_zeros(const A* x)
{
    BITS other = 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        other |= AS_BITS_OF(x[k]) ^ SIGN;
    }
    return other != 0 ? EXACT_FINITE : 0;
}

// Returns 1 plus the position of the largest element, or more if it is infinite; 0 or 1 if all are 0.
static inline uint top_of(const A* x, const A* y)
{
    BITS low, high;
    find_extremes(x, &low, &high);
    return (uint)(high >> PRECISION);
}

#else

static inline uint top_of(const A* x, const A* y)
{
    uint top = 0;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        top = max(top, is_zero_product(x[k], y[k]) ? 0 : (uint)position_of_product(x[k], y[k]) + 1);
    }
    return top;
}

#endif

#ifdef REGISTERS

INLINED void open_partial(Partial* p, const uint top)
{
    p->sum = 0;
    p->error = 0;
    p->marks = 0;
}

// Adds x to the second number, `error`.
INLINED void add_error(Partial* p, const double x)
{
    const double rest = error_of(p->error, x);
    p->error += x;
    p->marks |= rest != 0 ? MISFIT : 0;
}

INLINED void add_double(Partial* p, const double x)
{
    const double error = error_of(p->sum, x);
    p->sum += x;
    add_error(p, error);
}

INLINED void add_each(Partial* p, const A* x)
{
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        add_double(p, (double)x[k]);
    }
}

#if A_BYTES == 4
#if defined(T_F16)
// All f16 are multiples of 2^-24 below 2^16. So sums of 2^13 of them are exact.
#define SPREAD 255
#elif defined(T_BF16)
#define SPREAD (53 - 8 - LOG_CHUNK)
#else
#define SPREAD (53 - 24 - LOG_CHUNK)
#endif
// Accumulators of a chunk, whose additions overlap.
#define CHAINS 4

INLINED void take_chunk(Partial* p, const A* x, const A* y)
{
    BITS low, high;
    find_extremes(x, &low, &high);
    if (high == 0) {
        p->marks |= marks_of_zeros(x);
        return;
    }
    const uint least = low >> 24, most = high >> 24;
    p->marks |= EXACT_FINITE;
    if (least < 1 || most >= NO_NUMBER) {
        p->marks |= MISFIT;
    } else if (most - least <= SPREAD) {
        double chain[CHAINS];
        UNROLLED
        for (uint k = 0; k < CHUNK; k++) {
            chain[k % CHAINS] = k < CHAINS ? (double)x[k] : chain[k % CHAINS] + (double)x[k];
        }
        add_double(p, (chain[0] + chain[1]) + (chain[2] + chain[3]));
    } else {
        add_each(p, x);
    }
}
#else
// Exponent fields of f64 for which no error of an addition is subnormal, and no sum overflows.
#define FIELD_LEAST 128
#define FIELD_MOST 1900

INLINED void take_chunk(Partial* p, const A* x, const A* y)
{
    BITS low, high;
    find_extremes(x, &low, &high);
    if (high == 0) {
        p->marks |= marks_of_zeros(x);
        return;
    }
    p->marks |= EXACT_FINITE;
    if ((low >> PRECISION) < FIELD_LEAST || (high >> PRECISION) > FIELD_MOST) {
        p->marks |= MISFIT;
    } else {
        add_each(p, x);
    }
}
#endif

// Adds the partial of another work-item.
INLINED void merge_partial(Partial* p, const Partial* other)
{
    add_double(p, other->sum);
    add_error(p, other->error);
}

#define EXCHANGED 2
#define EXCHANGED_TYPE double
INLINED void put_partial(__local double* to, const Partial* p)
{
    to[0] = p->sum;
    to[WG] = p->error;
}
INLINED void get_partial(__local const double* from, Partial* p)
{
    p->sum = from[0];
    p->error = from[WG];
}

// Returns whether `round_partial` can round the partial.
static inline int can_be_rounded(const Partial* p)
{
    return 1;
}

// Returns the bits of the float nearest to the partial, which is finite; with MEAN, to the partial divided by `count`.
static inline OUT_BITS round_partial(const Partial* p, const ulong count)
{
    const double sum = p->sum + p->error, error = error_of(p->sum, p->error);
    if (sum == 0) {
        return 0;
    }
    const ulong bits = as_ulong(sum);
    const int negative = (int)(bits >> 63);
#ifdef MEAN
    // The magnitude is (high * 2^64 + low) * 2^(exponent - 64), plus a fraction of this unit if `rest`.
    const ulong hidden = (ulong)1 << 52, error_bits = as_ulong(error);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1075;
    ulong high = (bits & (hidden - 1)) | hidden, low = 0, rest = 0;
    if (error != 0) {
        const ulong part = (error_bits & (hidden - 1)) | hidden;
        // At most 11, since the error is at most half of the last place of `sum`.
        const int shift = (int)(error_bits >> 52 & 0x7ff) - 1075 - (exponent - 64);
        low = shift >= 0 ? part << shift : shift > -64 ? part >> -shift : 0;
        rest = shift >= 0 ? 0 : shift > -64 ? part << (64 + shift) : 1;
        if ((error < 0) != negative) {
            low = -low - (rest != 0);
            high--;
        }
    }
    Division d;
    open_division(&d, count, exponent + 48);
    // The quotient has more than 64 bits, so the fraction matters only as a sticky bit.
    for (int place = 48; place >= 0; place -= 16) {
        divide_digit(&d, (uint)(high >> place) & 0xffff);
    }
    for (int place = 48; place >= 0; place -= 16) {
        divide_digit(&d, (uint)(low >> place) & 0xffff);
    }
    d.more |= rest != 0;
    const ulong rounded = nearest_quotient(&d);
#else
    ulong top = (bits | (ulong)1 << 52) << 11;
    int above = (int)(bits >> 52 & 0x7ff) - 1023 - OUT_LEAST;
    // The error is at most half of the last place of `sum`. So it matters only if `sum` is halfway between two numbers.
    if (error != 0 && (error < 0) == negative) {
        top |= 1;
    } else if (error != 0) {
        top--;
        // Below a power of two, the leading bit is one lower.
        above -= top >> 63 ? 0 : 1;
        top |= top >> 63 ? 0 : (ulong)1 << 63;
    }
    const ulong rounded = nearest_bits(top, above, OUT_PRECISION, OUT_INFINITY);
#endif
    return (OUT_BITS)(rounded | (ulong)negative << (8 * sizeof(OUT_BITS) - 1));
}

INLINED void deposit_partial(EXACT_TABLE words, const Partial* p)
{
    deposit_double(words, p->sum);
    deposit_double(words, p->error);
}

#else

// `top` is the largest `top_of` of the team's first chunks.
INLINED void open_partial(Partial* p, const uint top)
{
    UNROLLED
    for (uint j = 0; j < DIGITS; j++) {
        p->digit[j] = 0;
    }
    p->low = max((int)top - 1 - (WINDOW - 1 - ABOVE), 0);
    p->since = 0;
    p->marks = 0;
}

// Moves the carry of each digit to the next one. Numbers of the window change only the lower digits, so the highest
// digit has nothing but carries.
INLINED void carry_partial(Partial* p)
{
    UNROLLED
    for (uint j = 0; j + 1 < DIGITS; j++) {
        p->digit[j + 1] += p->digit[j] >> 32;
        p->digit[j] &= 0xffffffff;
    }
    p->since = 0;
}

// Adds size * 2^off in the window, or subtracts it: 0 <= off < WINDOW.
INLINED void add_in_window(Partial* p, const ulong size, const int off, const int negative)
{
    const long sign = -(long)negative, number = ((long)size ^ sign) - sign;
    const uint shift = off & 31, k = (uint)off >> 5;
#if DIGITS == 3
    const long shifted = number << shift;
    p->digit[0] += k == 0 ? shifted : 0;
    p->digit[1] += k == 0 ? 0 : shifted;
#else
    const long low = (uint)((ulong)number << shift), high = number >> (32 - shift);
    UNROLLED
    for (uint j = 0; j + 1 < DIGITS; j++) {
        p->digit[j] += (k == j ? low : 0) + (k + 1 == j ? high : 0);
    }
#endif
}

#if !DOT
INLINED void take_chunk(Partial* p, const A* x, const A* y)
{
    BITS low, high;
    find_extremes(x, &low, &high);
    if (high == 0) {
        p->marks |= marks_of_zeros(x);
        return;
    }
    const int least = (int)(low >> PRECISION), most = (int)(high >> PRECISION);
    p->marks |= EXACT_FINITE;
    // A normal float has position field - 1.
    if (least < p->low + 1 || most >= min(p->low + 1 + WINDOW, NO_NUMBER)) {
        p->marks |= MISFIT;
        return;
    }
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const uint field = EXPONENT(x[k]);
        const BITS size = size_of(x[k], field);
        // 0 is 0 at any position.
        const int off = size == 0 ? 0 : (int)field - 1 - p->low;
        add_in_window(p, size, off, is_negative(x[k]));
    }
    if (++p->since == WINDOW_CHUNKS) {
        carry_partial(p);
    }
}

#else

INLINED void take_chunk(Partial* p, const A* x, const A* y)
{
    BITS other = 0;
    int fits = 1;
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const int off = position_of_product(x[k], y[k]) - p->low;
        other |= unlike_minus_zero(x[k], y[k]);
        fits &= !is_infinite_product(x[k], y[k]) && (is_zero_product(x[k], y[k]) || (uint)off < WINDOW);
    }
    p->marks |= other != 0 ? EXACT_FINITE : 0;
    if (!fits) {
        p->marks |= MISFIT;
        return;
    }
    UNROLLED
    for (uint k = 0; k < CHUNK; k++) {
        const uint x_field = EXPONENT(x[k]), y_field = EXPONENT(y[k]);
        const ulong a = size_of(x[k], x_field), b = size_of(y[k], y_field), product = a * b;
        // 0 is 0 at any position.
        const int off = is_zero_product(x[k], y[k]) ? 0 : position_of_product(x[k], y[k]) - p->low;
        const int negative = is_negative(x[k]) ^ is_negative(y[k]);
#if A_BYTES == 8
        add_in_window(p, product & (((ulong)1 << UPPER) - 1), off, negative);
        add_in_window(p, mul_hi(a << 11, b), off + UPPER, negative);
#else
        add_in_window(p, product, off, negative);
#endif
    }
    if (++p->since == WINDOW_CHUNKS) {
        carry_partial(p);
    }
}

#endif

INLINED void merge_partial(Partial* p, const Partial* other)
{
    UNROLLED
    for (uint j = 0; j < DIGITS; j++) {
        p->digit[j] += other->digit[j];
    }
}

#define EXCHANGED DIGITS
#define EXCHANGED_TYPE long
INLINED void put_partial(__local long* to, const Partial* p)
{
    UNROLLED
    for (uint j = 0; j < DIGITS; j++) {
        to[j * WG] = p->digit[j];
    }
}
INLINED void get_partial(__local const long* from, Partial* p)
{
    UNROLLED
    for (uint j = 0; j < DIGITS; j++) {
        p->digit[j] = from[j * WG];
    }
}

// Returns whether `round_partial` can round the partial. It takes only 32 bits of the last digit, which
// collects carries and may have more.
static inline int can_be_rounded(const Partial* from)
{
    Partial p = *from;
    carry_partial(&p);
    return abs(p.digit[DIGITS - 1]) >> 32 == 0;
}

// Returns the bits of the float nearest to the partial, which is finite; with MEAN, to the partial divided by `count`.
static inline OUT_BITS round_partial(const Partial* from, const ulong count)
{
    Partial p = *from;
    carry_partial(&p);
    const int negative = p.digit[DIGITS - 1] < 0;
    if (negative) {
        UNROLLED
        for (uint j = 0; j < DIGITS; j++) {
            p.digit[j] = -p.digit[j];
        }
        carry_partial(&p);
    }
#ifdef MEAN
    ulong any = 0;
    Division d;
    open_division(&d, count, 32 * DIGITS - 16 + p.low + LEAST);
    UNROLLED
    for (int j = DIGITS - 1; j >= 0; j--) {
        const ulong digit = (ulong)p.digit[j];
        any |= digit;
        divide_digit(&d, (uint)(digit >> 16) & 0xffff);
        divide_digit(&d, (uint)digit & 0xffff);
    }
    if (any == 0) {
        return 0;
    }
    const ulong rounded = nearest_quotient(&d);
#else
    // The leading digit, the two below it, and the others.
    int lead = -1;
    ulong first = 0, second = 0, third = 0, others = 0;
    UNROLLED
    for (int j = DIGITS - 1; j >= 0; j--) {
        const ulong digit = (ulong)p.digit[j];
        if (lead < 0) {
            lead = digit != 0 ? j : -1;
            first = digit;
        } else if (lead == j + 1) {
            second = digit;
        } else if (lead == j + 2) {
            third = digit;
        } else {
            others |= digit;
        }
    }
    if (lead < 0) {
        return 0;
    }
    const uint zeros = (uint)clz((uint)first);
    const ulong top = (first << 32 | second) << zeros | third >> (32 - zeros);
    others |= third << zeros & 0xffffffff;
    const int above = 32 * lead + 31 - (int)zeros + p.low + LEAST - OUT_LEAST;
    const ulong rounded = nearest_bits(top | (others != 0), above, OUT_PRECISION, OUT_INFINITY);
#endif
    return (OUT_BITS)(rounded | (ulong)negative << (8 * sizeof(OUT_BITS) - 1));
}

INLINED void deposit_partial(EXACT_TABLE words, const Partial* from)
{
    Partial p = *from;
    carry_partial(&p);
    UNROLLED
    for (uint j = 0; j + 1 < DIGITS; j++) {
        add_exact(words, (ulong)p.digit[j], p.low + POSITION_OF_LEAST + 32 * (int)j, 0, 3);
    }
    const long last = p.digit[DIGITS - 1];
    add_exact(words, abs(last), p.low + POSITION_OF_LEAST + 32 * (DIGITS - 1), last < 0, 5);
}

#endif

// Extends `range` to the words that a summand at `position` may have changed, and to one more for a carry.
static inline void extend_range(int2* range, const int position)
{
    range->s0 = min(range->s0, position >> 4);
    range->s1 = max(range->s1, min((position >> 4) + PIECES + 1, EXACT_WORDS - 1));
}

#if !DOT
// Deposits any number, and returns its mark. Extends `range` to the words that it may have changed.
INLINED uint deposit_number(EXACT_TABLE words, const A x, const A y, int2* range)
{
    const uint field = EXPONENT(x);
    const BITS size = field == NO_NUMBER ? 0 : size_of(x, field);
    if (size != 0) {
        const int position = (int)position_of(field) + POSITION_OF_LEAST;
        extend_range(range, position);
        add_exact(words, size, position, is_negative(x), PIECES);
    }
    return marks_of(x, field);
}
#else
// As above, for the product of any two numbers.
INLINED uint deposit_number(EXACT_TABLE words, const A x, const A y, int2* range)
{
    if (is_infinite_product(x, y) || is_zero_product(x, y)) {
        return marks_of_product(x, y);
    }
    const int negative = is_negative(x) ^ is_negative(y);
    const ulong a = size_of(x, EXPONENT(x)), b = size_of(y, EXPONENT(y));
    const int position = position_of_product(x, y);
    extend_range(range, position);
#if A_BYTES == 8
    add_wide(words, REPLICAS, mul_hi(a, b), a * b, (uint)position, negative);
#else
    add_exact(words, a * b, position, negative, PIECES);
#endif
    return EXACT_FINITE;
}
#endif

// A group, or a part of one.
typedef struct {
    // The offset of the first element.
    long first;
    long stride;
#if DOT
    // Those of the other factors.
    long other_first, other_stride;
#endif
    OFFSET_T len;
    // The index of the group, and with PARTS that of its accumulator.
    OFFSET_T id, slot;
    // True if there is such a group.
    int there;
} Group;

// x[0 .. CHUNK] = the elements of lane `lane` of a round, which begins at element `from` of the group; `none` after the
// last one. p[0], p[stride], ... are the `len` elements of the group.
INLINED void load_chunk(
    __global const T* p, const long stride, const OFFSET_T len, const OFFSET_T from, const uint lane, const A none,
    A* x)
{
    if (len - from >= TEAM * CHUNK) {
        UNROLLED
        for (uint k = 0; k < CHUNK; k++) {
            x[k] = to_acc(p[(long)(from + lane + k * TEAM) * stride]);
        }
    } else {
        UNROLLED
        for (uint k = 0; k < CHUNK; k++) {
            const OFFSET_T i = from + lane + k * TEAM, last = len - 1;
            const A element = element_to_acc(p[(long)min(i, last) * stride]);
            x[k] = i <= last ? element : none;
        }
    }
}

static inline OFFSET_T rounds_of(const Group* group)
{
    return group->len / (TEAM * CHUNK) + (group->len % (TEAM * CHUNK) != 0);
}

#if !DOT
#define OTHER_PARAMS
#define OTHER_ARGS
#elif defined(SEGMENTS)
#define OTHER_PARAMS __global const T *restrict other_base, const ulong other_offset,
#define OTHER_ARGS other_base, other_offset,
#else
#define OTHER_PARAMS                                                                                                   \
    __global const T *restrict other_base, const ulong other_offset, const long other_stride, const long8 other_strides,
#define OTHER_ARGS other_base, other_offset, other_stride, other_strides,
#endif

#ifdef SEGMENTS
#if COUNTED
#define FOUND_PARAMS , __global const ulong *found_base, const ulong found_offset
#define FOUND_ARGS , found_base, found_offset
#define FOUND found_base[found_offset]
#else
#define FOUND_PARAMS
#define FOUND_ARGS
#define FOUND segments
#endif

#define GROUPS                                                                                                         \
    __global const T *restrict in_base, const ulong in_offset, OTHER_PARAMS const OFFSET_T n,                          \
        __global const S *offsets_base, const ulong offsets_offset, const OFFSET_T segments FOUND_PARAMS,              \
        const OFFSET_T part, __global ulong *list, const uint room
#define GROUPS_ARGS                                                                                                    \
    in_base, in_offset, OTHER_ARGS n, offsets_base, offsets_offset, segments FOUND_ARGS, part, list, room

static inline uint listed_parts(__global const ulong* list, const uint room)
{
    return min((uint)list[0], room);
}

static inline OFFSET_T count_blocks(GROUPS)
{
#ifdef PARTS
    return listed_parts(list, room);
#else
    const OFFSET_T groups = (OFFSET_T)min((ulong)segments, (ulong)FOUND);
    return groups / TEAMS + (groups % TEAMS != 0);
#endif
}

static inline Group find_group(const OFFSET_T block, const uint team, GROUPS)
{
    Group group;
#ifdef PARTS
    group.slot = (OFFSET_T)list[1 + room + block];
    group.id = (OFFSET_T)list[1 + group.slot];
    group.there = 1;
    const OFFSET_T skipped = (block - group.slot) * part;
#else
    group.slot = 0;
    group.id = block * TEAMS + team;
    group.there = (ulong)group.id < min((ulong)segments, (ulong)FOUND);
#endif
    group.stride = 1;
    group.len = 0;
    group.first = (long)in_offset;
    if (group.there) {
        __global const S* offsets = offsets_base + offsets_offset;
        // An offset beyond the input counts as its end. The last offset of counted segments may be missing.
        const OFFSET_T start = (OFFSET_T)min((ulong)offsets[group.id], (ulong)n);
        const int last = COUNTED && (ulong)group.id + 1 >= FOUND;
        const OFFSET_T end = last ? n : (OFFSET_T)min((ulong)offsets[group.id + 1], (ulong)n);
        group.len = end > start ? end - start : 0;
        group.first += (long)start;
    }
#if DOT
    group.other_first = group.first + (long)other_offset - (long)in_offset;
    group.other_stride = 1;
#endif
#ifdef PARTS
    group.first += (long)min(skipped, group.len);
#if DOT
    group.other_first += (long)min(skipped, group.len);
#endif
    group.len = min(group.len - min(skipped, group.len), part);
#endif
    return group;
}
#else
// A line has `parts` parts of `part` elements; there are `len` elements in all.
#define GROUPS LINES, OTHER_PARAMS const OFFSET_T len, const OFFSET_T part, const OFFSET_T parts
#define GROUPS_ARGS in_base, in_offset, stride, outputs, shape, strides, dims, OTHER_ARGS len, part, parts

static inline OFFSET_T count_blocks(GROUPS)
{
    return (outputs / TEAMS + (outputs % TEAMS != 0)) * parts;
}

static inline Group find_group(const OFFSET_T block, const uint team, GROUPS)
{
    Group group;
    const OFFSET_T skipped = block % parts * part;
    group.id = block / parts * TEAMS + team;
    group.slot = group.id;
    group.there = group.id < outputs;
    const OFFSET_T id = group.there ? group.id : 0;
#ifdef UNIT
    group.stride = 1;
#else
    group.stride = stride;
#endif
    group.len = group.there ? min(part, len - skipped) : 0;
    group.first = (long)in_offset + line_offset(id, shape, strides, dims) + (long)skipped * group.stride;
#if DOT
#ifdef UNIT
    group.other_stride = 1;
#else
    group.other_stride = other_stride;
#endif
    group.other_first = (long)other_offset + line_offset(id, shape, other_strides, dims);
    group.other_first += (long)skipped * group.other_stride;
#endif
    return group;
}
#endif

// Oclgrind cannot inline a function whose parameters are `restrict`.
#if DOT
#define OTHER_FACTORS , __global const T* other_base
#define OTHER_BASE , other_base
#else
#define OTHER_FACTORS
#define OTHER_BASE
#endif

// Loads the elements of a chunk, and with DOT their other factors. After the last element, they add -0.
INLINED void load_summands(
    __global const T* in_base OTHER_FACTORS, const Group* group, const OFFSET_T from, const uint lane, A* x, A* y)
{
    load_chunk(in_base + group->first, group->stride, group->len, from, lane, (A)-0.0f, x);
#if DOT
    load_chunk(other_base + group->other_first, group->other_stride, group->len, from, lane, 0, y);
#endif
}

// The bits of a sum that fits, from its marks and the float nearest to it.
static inline OUT_BITS bits_of_sum(const uint marks, const OUT_BITS finite)
{
    const OUT_BITS minus_zero = (OUT_BITS)((ulong)1 << (8 * sizeof(OUT_BITS) - 1));
    return marks == 0 ? minus_zero : finite;
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void exact_groups(
    GROUPS, volatile __global int* sums, __global OUT* out_base, const ulong out_offset)
{
    __local int words[EXACT_WORDS * TABLES];
    __local EXCHANGED_TYPE exchange[EXCHANGED * WG];
    volatile __local uint team_marks[TEAMS];
#ifndef REGISTERS
    volatile __local uint tops[TEAMS];
#endif
    __local uint slots[TEAMS];
    volatile __local uint misfits[1], longest[1];
    volatile __local uint table_marks[TABLES];
    volatile __local int lowest[TABLES], highest[TABLES];
#ifdef PARTS
    __local ulong places[TABLES];
#endif
    const uint item = get_local_id(0);
#ifdef COLUMNS
    const uint team = item % TEAMS, lane = item / TEAMS, next = TEAMS;
#else
    const uint team = item / TEAM, lane = item % TEAM, next = 1;
#endif
    const OFFSET_T blocks = count_blocks(GROUPS_ARGS);
#if WG == 1
    const OFFSET_T run = blocks / get_num_groups(0) + 1, step = 1;
    const OFFSET_T start = min(blocks, (OFFSET_T)get_group_id(0) * run);
    const OFFSET_T end = start + min(run, blocks - start);
#else
    const OFFSET_T start = get_group_id(0), end = blocks, step = get_num_groups(0);
#endif
    for (OFFSET_T block = start; block < end; block += step) {
        Group group = find_group(block, team, GROUPS_ARGS);
        if (item < TEAMS) {
            team_marks[item] = 0;
#ifndef REGISTERS
            tops[item] = 0;
#endif
        }
        if (item == 0) {
            misfits[0] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        int listed = 0;
#if defined(SEGMENTS) && !defined(PARTS)
        if (group.len > part) {
            listed = 1;
            if (lane == 0) {
                const uint parts = (uint)(group.len / part + (group.len % part != 0));
                slots[team] = atomic_add((volatile __global uint*)list, parts);
            }
        }
#endif
        Partial partial;
        A x[CHUNK], y[CHUNK];
        uint top = 0;
        const OFFSET_T own_rounds = listed ? 0 : rounds_of(&group);
#ifndef REGISTERS
        if (own_rounds > 0) {
            load_summands(in_base OTHER_BASE, &group, 0, lane, x, y);
            atomic_max(tops + team, top_of(x, y));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        top = tops[team];
#endif
        open_partial(&partial, top);
        for (OFFSET_T round = 0; round < own_rounds; round++) {
            load_summands(in_base OTHER_BASE, &group, round * (TEAM * CHUNK), lane, x, y);
            take_chunk(&partial, x, y);
        }
#ifndef REGISTERS
        carry_partial(&partial);
#endif
        for (uint width = TEAM / 2; width > 0; width /= 2) {
            if (lane >= width && lane < 2 * width) {
                put_partial(exchange + item, &partial);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane < width) {
                Partial other;
                get_partial(exchange + item + width * next, &other);
                merge_partial(&partial, &other);
            }
        }
#ifndef PARTS
        if (lane == 0 && !can_be_rounded(&partial)) {
            partial.marks |= MISFIT;
        }
#endif
        if (partial.marks != 0) {
            atomic_or(team_marks + team, partial.marks);
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        // Read before the branch: PoCL could lose a branch on `listed` that comes first after a barrier.
        const uint marks = team_marks[team];
#if defined(SEGMENTS) && !defined(PARTS)
        if (listed) {
            const uint parts = (uint)(group.len / part + (group.len % part != 0)), at = slots[team];
            if (at < room) {
                for (uint k = lane; k < min(parts, room - at); k += TEAM) {
                    list[1 + room + at + k] = at;
                }
                for (uint k = lane; k < EXACT_WORDS + 1; k += TEAM) {
                    sums[(ulong)at * (EXACT_WORDS + 1) + k] = 0;
                }
                // A listed segment has at least two parts, so its second owner has room for the length.
                if (lane == 0) {
                    list[1 + at] = group.id;
                    if (at + 1 < room) {
                        list[2 + at] = group.len;
                    }
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        if (lane == 0) {
            slots[team] = UINT_MAX;
            if (group.there && !listed) {
#ifdef PARTS
                slots[team] = atomic_inc(misfits);
#else
                if (marks & MISFIT) {
                    slots[team] = atomic_inc(misfits);
                } else {
                    const OUT_BITS finite = group.len == 0 ? OUT_OF_NONE : round_partial(&partial, group.len);
                    const OUT_BITS bits = group.len == 0 ? finite : bits_of_sum(marks, finite);
                    *(__global OUT_BITS*)(out_base + out_offset + group.id) = bits;
                }
#endif
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        // Uniform flow: all work-items read the same number.
        const uint count = misfits[0];
        for (uint first = 0; first < count; first += TABLES) {
            const uint table = slots[team] - first;
            const int mine = slots[team] != UINT_MAX && slots[team] >= first && table < TABLES;
            for (uint i = item; i < EXACT_WORDS * TABLES; i += WG) {
                words[i] = 0;
            }
            for (uint i = item; i < TABLES; i += WG) {
                table_marks[i] = 0;
                lowest[i] = EXACT_WORDS;
                highest[i] = -1;
            }
            if (item == 0) {
                longest[0] = 0;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            // With PARTS, a partial that fits is deposited as it is.
            const int again = mine && (marks & MISFIT);
            if (again && lane == 0) {
                atomic_max(longest, (uint)group.len);
            }
            EXACT_TABLE own = words + (mine ? table : 0);
            if (mine && !again && lane == 0) {
                deposit_partial(own, &partial);
                atomic_or(table_marks + table, marks);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            const uint all = longest[0];
            int2 range = (int2)(EXACT_WORDS, -1);
            uint found = 0;
            for (OFFSET_T from = 0; from < all; from += TABLE_ELEMENTS) {
                const OFFSET_T to = again ? min(group.len, from + TABLE_ELEMENTS) : 0;
                ROLLED
                for (OFFSET_T i = from + lane; i < to; i += TEAM) {
#if DOT
                    const A y = to_acc(other_base[group.other_first + (long)i * group.other_stride]);
#else
                    const A y = 0;
#endif
                    found |= deposit_number(own, to_acc(in_base[group.first + (long)i * group.stride]), y, &range);
                }
                carry_exact(words, EXACT_WORDS * TABLES, TABLES);
            }
            if (again && found != 0) {
                atomic_or(table_marks + table, found);
                atomic_min(lowest + table, range.s0);
                atomic_max(highest + table, range.s1);
            }
#ifdef PARTS
            if (mine && lane == 0) {
                places[table] = (ulong)group.slot * (EXACT_WORDS + 1);
            }
            carry_exact(words, EXACT_WORDS * TABLES, TABLES);
            carry_exact(words, EXACT_WORDS * TABLES, TABLES);
            const uint tables = min(count - first, (uint)TABLES);
            for (uint i = item; i < EXACT_WORDS * TABLES; i += WG) {
                if (i % TABLES < tables && words[i] != 0) {
                    atomic_add(sums + places[i % TABLES] + i / TABLES, words[i]);
                }
            }
            for (uint i = item; i < tables; i += WG) {
                if (table_marks[i] != 0) {
                    atomic_or(sums + places[i] + EXACT_WORDS, (int)table_marks[i]);
                }
            }
#else
            barrier(CLK_LOCAL_MEM_FENCE);
            if (mine && lane == 0) {
                store_exact_result(
                    out_base + out_offset + group.id, words + table, TABLES, lowest[table], highest[table],
                    table_marks[table], group.len);
            }
#endif
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}

#ifdef PARTS
// Returns the first accumulator in use from `slot` on, in steps of the number of work-groups.
static inline ulong next_sum(ulong slot, const ulong count, __global const ulong* list, const uint room)
{
#ifdef SEGMENTS
    while (slot < count && list[1 + room + slot] != slot) {
        slot += get_num_groups(0);
    }
#endif
    return slot;
}

// Rounds the accumulators in global memory: of listed segments, or of all lines. A work-group takes one at a time.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void exact_groups_round(
    volatile __global int* sums, const ulong groups, __global const ulong* list, const uint room, const ulong len,
    __global OUT* out_base, const ulong out_offset)
{
    __local int words[EXACT_WORDS];
    __local int range[2];
#ifdef SEGMENTS
    const ulong count = listed_parts(list, room);
#else
    const ulong count = groups;
#endif
    for (ulong slot = next_sum(get_group_id(0), count, list, room); slot < count;
         slot = next_sum(slot + get_num_groups(0), count, list, room)) {
#ifdef SEGMENTS
        const ulong id = list[1 + slot], count = slot + 1 < room ? list[2 + slot] : 1;
#else
        const ulong id = slot, count = len;
#endif
        store_exact(out_base + out_offset + id, sums + slot * (EXACT_WORDS + 1), words, range, count);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif
