// Moments of elements, and joining them. Needs types.cl.
//
//     integers: sum x[i] in 128 bits, sum x[i]^2 in 192 bits; exact
//     floats:   mean, in two floats, and m2 = sum (x[i] - mean)^2
//
// Lane j of `lanes` has the elements j, j + lanes, ... A lane of floats is read twice: first for its mean, then for sum
// d and sum d^2 with d = x[i] - mean. These sums give a correction of the mean, and m2. Moments of n and of m elements
// with means a and b join as
//
//     mean = a + (b - a) * m / (n + m),   m2 = m2a + m2b + (b - a)^2 * n * m / (n + m)
//
// Source: Chan, Golub and LeVeque, 1979.
//
// No inlined function returns a struct, because Oclgrind refuses such functions.

// Returns how many of `elements` elements, which fill rows of `lanes`, are in the `width` lanes from `lane` on.
static inline OFFSET_T in_lanes(OFFSET_T elements, uint lanes, uint lane, uint width)
{
    const OFFSET_T rows = elements / lanes;
    const uint more = elements % lanes;
    return rows * width + (more > lane ? min(more - lane, width) : 0);
}

#ifdef A_FLOAT

// This does not use x - x, since the compiler of PoCL 6 fails on it.
#define IS_FINITE(x) (fabs(x) < A_INFINITY)

// If the sum of squared distances overflows, m2 is negative and the sum is -m2 / (DOWN * DOWN).
#define DOWN (A)(A_BYTES == 8 ? 0x1p-530 : 0x1p-82f)
typedef struct {
    A mean, rest, m2, unused; // The mean is mean + rest; m2 is the sum of squared distances to it.
} Moments;

static inline A scaled_down(A m2)
{
    return m2 < 0 ? -m2 : m2 * DOWN * DOWN;
}

// Returns part / all to about 23 bits or more. Divisions of floats differ between devices; those of integers and
// doubles do not.
SELDOM A ratio(ulong part, ulong all)
{
#if A_BYTES == 8
    return (double)part / (double)all;
#else
    uint shift = clz(part);
    ulong q = (part << shift) / all;
    const uint bits = 64 - clz(q);
    if (bits > 24) {
        q >>= bits - 24;
        shift -= bits - 24;
    }
    return (float)(uint)q * as_float((127 - shift) << 23);
#endif
}

// Returns ratio(1, all), for `all` from 1 to 256.
static inline A part_of(const uint all)
{
#if A_BYTES == 8
    return 1 / (double)all;
#else
    // Since `all` is at most 256, q has at least 24 bits.
    const uint q = 0x80000000u / all, more = 8 - clz(q);
    return (float)(q >> more) * as_float((127 - 31 + more) << 23);
#endif
}

// Returns mean, rest and m2 for joined(), if a sum overflows or is not finite. The means are a and b, and the sums of
// squares a2 and b2. The other arguments are variables of joined().
SELDOM CAT(A, 4) far_moments(A a, A b, A a2, A b2, A delta, A weight, A paired, A m, A r)
{
    if (IS_FINITE(a) && IS_FINITE(b)) {
        // The distance or the sum of squares overflows.
        const A down = IS_FINITE(m) ? delta * DOWN : b * DOWN - a * DOWN;
        const A m2 = -((scaled_down(a2) + scaled_down(b2)) + down * (down * paired));
        return (CAT(A, 4))(IS_FINITE(m) ? m : a + (b * weight - a * weight), IS_FINITE(m) ? r : 0, m2, 0);
    }
    // Infinities and NaN behave as in a sum.
    const A ends = a + b;
    return (CAT(A, 4))(ends, 0, ends - ends, 0);
}

// Joins the moments x of n elements and y of m others: returns mean, rest and m2 of all. If m is 0, returns x.
SELDOM CAT(A, 4) joined(const CAT(A, 4) x, const CAT(A, 4) y, OFFSET_T n, OFFSET_T m)
{
    if (m == 0) {
        return x;
    }
    const A a = x.x, b = y.x, weight = n == m ? (A)0.5f : ratio(m, (ulong)n + m), paired = (A)n * weight;
    // b - a, plus its rounding error.
    const A d = b - a, v = d - b;
    const A e = (b - (d - v)) - (a + v);
    const A delta = d + (e + (y.y - x.y));
    const A step = delta * weight;
    // a + step, and its rounding error.
    const A s = a + step, u = s - a;
    const A error = (a - (s - u)) + (step - u);
    const A tail = x.y + error;
    const A mean = s + tail, w = mean - s;
    const A rest = (s - (mean - w)) + (tail - w);
    const A m2 = (x.z + y.z) + delta * (delta * paired);
    if (IS_FINITE(mean) && x.z >= 0 && y.z >= 0 && IS_FINITE(m2)) {
        return (CAT(A, 4))(mean, rest, m2, 0);
    }
    return far_moments(a, b, x.z, y.z, delta, weight, paired, mean, rest);
}

// Adds the moments y of m elements to the moments x of n elements. If m is 0, x does not change.
static inline void join_moments(Moments* x, const Moments* y, OFFSET_T n, OFFSET_T m)
{
    const CAT(A, 4) a = (CAT(A, 4))(x->mean, x->rest, x->m2, 0), b = (CAT(A, 4))(y->mean, y->rest, y->m2, 0);
    const CAT(A, 4) all = joined(a, b, n, m);
    x->mean = all.x;
    x->rest = all.y;
    x->m2 = all.z;
}

// Joins b to a: a has the moments of the `width` lanes from `lane` on, b those of the next `width` lanes.
static inline void join_lanes(Moments* a, const Moments* b, uint elements, uint lanes, uint lane, uint width)
{
    join_moments(a, b, in_lanes(elements, lanes, lane, width), in_lanes(elements, lanes, lane + width, width));
}

// Returns the mean of a lane whose sum overflows. `part`, the weight of an element, is reduced a little, so that the
// mean is finite if the elements are. The second pass corrects that.
SELDOM A far_mean(__global const T* p, long stride, uint elements, uint lanes, uint lane, A part)
{
    A mean = 0;
    part *= (A)1 - (A)(A_BYTES == 8 ? 0x1p-48f : 0x1p-19f);
    ROLLED
    IN_ORDER
    for (uint i = lane; i < elements; i += lanes) {
        mean += to_acc(p[(long)i * stride]) * part;
    }
    return mean;
}

// Returns the sum of squared distances in a lane, with all elements multiplied by DOWN. It is for lanes in which a
// distance from the mean, or its square, overflows.
SELDOM A far_squares(__global const T* p, long stride, uint elements, uint lanes, uint lane, A mean, A part)
{
    const A down = mean * DOWN;
    A rest = 0, m2 = 0;
    ROLLED
    IN_ORDER
    for (uint i = lane; i < elements; i += lanes) {
        const A d = to_acc(p[(long)i * stride]) * DOWN - down;
        rest += d;
        m2 += d * d;
    }
    return fmax(m2 - rest * (rest * part), (A)0.0f);
}

// Makes the moments of a lane from the sums of the distances to its mean and of their squares. If m2 is not finite, the
// caller replaces it by replace_far_squares.
static inline void lane_moments(Moments* m, A mean, A rest, A m2, A part)
{
    const A off = rest * part, spread = m2 - rest * off;
    const int finite = IS_FINITE(mean);
    m->mean = mean;
    m->rest = finite && IS_FINITE(off) ? off : 0;
    m->unused = 0;
    // Rounding can make `spread` negative.
    m->m2 = !finite ? mean - mean : spread < 0 && spread > -A_INFINITY ? (A)0.0f : spread;
}

// Replaces the m2 of a lane if m2 overflows although the mean does not. The parameters that give the elements are those
// of far_mean.
static inline void replace_far_squares(
    Moments* m, A part, __global const T* p, long stride, uint elements, uint lanes, uint lane)
{
    if (IS_FINITE(m->mean) && !IS_FINITE(m->m2)) {
        m->m2 = -far_squares(p, stride, elements, lanes, lane, m->mean, part);
    }
}

#if A_BYTES == 8
#define WORD_OF(x) as_ulong(x)
#else
#define WORD_OF(x) ((ulong)as_uint(x))
#endif

static inline void store_moments(__global ulong* words, const Moments* m)
{
    words[0] = WORD_OF(m->mean);
    words[1] = WORD_OF(m->rest);
    words[2] = WORD_OF(m->m2);
    words[3] = words[4] = 0;
}

#define MOMENT_T A
#define MOMENT_WORDS 3

// Moments in local memory with `slots` slots: the same words of all slots are contiguous, so that neighbours use
// different banks.
INLINED void put_moments(__local A* tree, uint slots, uint slot, const Moments* m)
{
    tree[slot] = m->mean;
    tree[slots + slot] = m->rest;
    tree[2 * slots + slot] = m->m2;
}

INLINED void get_moments(__local const A* tree, uint slots, uint slot, Moments* m)
{
    m->mean = tree[slot];
    m->rest = tree[slots + slot];
    m->m2 = tree[2 * slots + slot];
    m->unused = 0;
}

#else

typedef struct {
    ulong sum0, sum1, squares0, squares1, squares2;
} Moments;

static inline void join_moments(Moments* a, const Moments* b, OFFSET_T n, OFFSET_T m)
{
    a->sum0 += b->sum0;
    a->sum1 += b->sum1 + (a->sum0 < b->sum0);
    a->squares0 += b->squares0;
    const ulong carry = a->squares0 < b->squares0;
    a->squares1 += b->squares1;
    const ulong carried = a->squares1 < b->squares1;
    a->squares1 += carry;
    a->squares2 += b->squares2 + carried + (a->squares1 < carry);
}

// Sums of up to 2^15 elements, or 2^16 of 8 bits, in as few bits as can hold them.
typedef struct {
#if T_BYTES <= 4
#if T_BYTES == 1
    int sum;
    uint squares;
#elif T_BYTES == 2
    int sum;
    ulong squares;
#else
    long sum;
    ulong squares, high; // Sums of the lower and of the upper halves of the squares.
#endif
#else
    ulong sum0, sum1, squares0, squares1, squares2;
#endif
} Sums;

static inline void sums_add(Sums* s, A x)
{
#if T_BYTES <= 2
    s->sum += x;
    s->squares += (uint)(int)x * (uint)(int)x;
#elif T_BYTES == 4
    const ulong square = (ulong)(long)x * (ulong)(long)x;
    s->sum += x;
    s->squares += (uint)square;
    s->high += square >> 32;
#else
    // Not abs: PoCL 5 miscompiles it for the lowest number.
    const ulong low = (ulong)x, size = x < 0 ? 0 - low : low;
    s->sum0 += low;
    s->sum1 += (x < 0 ? ~0ul : 0ul) + (s->sum0 < low);
    const ulong square0 = size * size, square1 = mul_hi(size, size);
    s->squares0 += square0;
    const ulong carry = s->squares0 < square0;
    s->squares1 += square1;
    const ulong carried = s->squares1 < square1;
    s->squares1 += carry;
    s->squares2 += carried + (s->squares1 < carry);
#endif
}

static inline void sums_add_two(Sums* s, A x, A y)
{
#if T_BYTES == 4
    // The sum of the squares of two signed words fits into 64 bits, which halves the number of additions below.
    if ((T)-1 < (T)0) {
        const ulong squares = (ulong)(long)x * (ulong)(long)x + (ulong)(long)y * (ulong)(long)y;
        s->sum += (long)x + (long)y;
        s->squares += (uint)squares;
        s->high += squares >> 32;
        return;
    }
#endif
    sums_add(s, x);
    sums_add(s, y);
}

static inline void sums_moments(Moments* m, const Sums* s)
{
#if T_BYTES <= 4
    m->sum0 = (ulong)(long)s->sum;
    m->sum1 = s->sum < 0 ? ~0ul : 0ul;
#if T_BYTES == 4
    m->squares0 = s->squares + (s->high << 32);
    m->squares1 = (s->high >> 32) + (m->squares0 < s->squares);
#else
    m->squares0 = s->squares;
    m->squares1 = 0;
#endif
    m->squares2 = 0;
#else
    m->sum0 = s->sum0;
    m->sum1 = s->sum1;
    m->squares0 = s->squares0;
    m->squares1 = s->squares1;
    m->squares2 = s->squares2;
#endif
}

static inline void store_moments(__global ulong* words, const Moments* m)
{
    words[0] = m->sum0;
    words[1] = m->sum1;
    words[2] = m->squares0;
    words[3] = m->squares1;
    words[4] = m->squares2;
}

#define MOMENT_T ulong
#define MOMENT_WORDS 5

INLINED void put_moments(__local ulong* tree, uint slots, uint slot, const Moments* m)
{
    tree[slot] = m->sum0;
    tree[slots + slot] = m->sum1;
    tree[2 * slots + slot] = m->squares0;
    tree[3 * slots + slot] = m->squares1;
    tree[4 * slots + slot] = m->squares2;
}

INLINED void get_moments(__local const ulong* tree, uint slots, uint slot, Moments* m)
{
    m->sum0 = tree[slot];
    m->sum1 = tree[slots + slot];
    m->squares0 = tree[2 * slots + slot];
    m->squares1 = tree[3 * slots + slot];
    m->squares2 = tree[4 * slots + slot];
}

#endif
