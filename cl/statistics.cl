// Statistics in one pass over memory: a record for each tile, then records merged in pairs of neighbours, until one is
// left.
//
// A tile is TILE_ROWS rows of 256 x VEC lanes, as in reduce.cl; lane j has the elements j, j + LANES, ... of its tile.
// Sub-groups, grid and work-group size do not enter the result.
//
//   extremes  the tiles give values alone. The last launch knows the first tile that has the least one, and looks there
//             for its first place; likewise the largest, and the first NaN
//   floats    a lane's mean, corrected by the sum of what its elements are off it, and the sum of their squares; lanes,
//             then tiles, merge by Chan, Golub and LeVeque 1979, with the mean in two floats
//   integers  the exact sum in 128 bits, the exact sum of squares in 192
//
// Without MOMENTS there are the extremes alone. Bytes: reads n elements once, one tile twice more, writes n / TILE records.
#include "lib/types.cl"

#ifndef WG
#define WG 256
#endif
#ifndef TILE_ROWS
#define TILE_ROWS 16
#endif
#define LANES (256 * VEC)
#define TILE (TILE_ROWS * LANES)
#define ITEM_LANES (LANES / WG)
#define ITEM_VECS (ITEM_LANES / VEC)
// Few lanes an item stay in registers where their loops are unrolled; many are loops for CPU drivers' compilers.
#if WG >= 32
#define UNROLL _Pragma("unroll")
#define FOR_LANES(k, count) UNROLL for (uint k = 0; k < ITEM_LANES; k++) if (k < (count))
#else
#define UNROLL
#define FOR_LANES(k, count) for (uint k = 0; k < (count); k++)
#endif
// Records that one group merges.
#define FAN 1024
#define ITEM_RECORDS (FAN / WG)

#ifdef A_FLOAT
#define W A_BITS
#define IS_NAN(x) ((x) != (x))
// Not by x - x, on which the compiler of PoCL 6 gives up.
#define IS_FINITE(x) (fabs(x) < A_INFINITY)
#else
// What holds every value of the type in 8 bytes: no record has padding.
#define W T_WORD
#ifndef T_WORD
#define T_WORD long
#endif
#ifndef A_LOWEST
#define A_LOWEST 0
#define A_HIGHEST 0
#endif
#define IS_NAN(x) 0
#endif

typedef struct {
    ulong n, nan;                  // elements, and those that are NaN
    ulong low_at, high_at, nan_at; // tiles
    W low, high;                   // keys, NaN aside
#ifdef MOMENTS
#ifdef A_FLOAT
    A mean, rest, m2, unused; // the mean in two parts, the sum of squared distances to it
#else
    ulong sum0, sum1, squares0, squares1, squares2;
#endif
#endif
} Record;

#if defined(MOMENTS) && defined(A_FLOAT)
// part / all to some 23 bits or more. Devices divide floats as they like, integers and doubles exactly.
static inline A ratio(ulong part, ulong all)
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

// Adds to a mean and its sum of squares those of other elements: `weight` is their part of all, `paired` that times the
// elements that there were.
static inline void merge_moments(A* mean, A* rest, A* m2, A mean_b, A rest_b, A m2_b, A weight, A paired)
{
    const A a = *mean, b = mean_b;
    // b - a, its rounding error added.
    const A d = b - a, v = d - b;
    const A e = (b - (d - v)) - (a + v);
    const A delta = d + (e + (rest_b - *rest));
    const A step = delta * weight;
    // a + step, and its rounding error.
    const A s = a + step, u = s - a;
    const A error = (a - (s - u)) + (step - u);
    const A tail = *rest + error;
    const A m = s + tail, w = m - s;
    const A r = (s - (m - w)) + (tail - w);
    if (IS_FINITE(m)) {
        *mean = m;
        *rest = r;
        *m2 = (*m2 + m2_b) + delta * (delta * paired);
    } else {
        // The distance is beyond the range; or infinities and NaN, which add up as they do in a sum.
        const A ends = a + b;
        const int finite = IS_FINITE(a) && IS_FINITE(b);
        *mean = finite ? a + (b * weight - a * weight) : ends;
        *rest = 0;
        *m2 = finite ? A_INFINITY : ends - ends;
    }
}

// The mean of a lane whose sum is beyond the range: finite where its elements are, as a little less is taken than the part
// that each has. What its elements are off it makes up for that.
static inline A far_mean(__global const T* p, uint elements, uint lane, A part)
{
    A mean = 0;
    part *= (A)1 - (A)(A_BYTES == 8 ? 0x1p-48f : 0x1p-19f);
    for (uint i = lane; i < elements; i += LANES) {
        mean += to_acc(p[i]) * part;
    }
    return mean;
}
#endif

// a, then b, which has the later elements; b may be of none.
static inline void merge(Record* a, const Record* b)
{
    if (b->n == 0) {
        return;
    }
    if (b->nan != 0 && a->nan == 0) {
        a->nan_at = b->nan_at;
    }
    a->nan += b->nan;
    if (b->low < a->low) {
        a->low = b->low;
        a->low_at = b->low_at;
    }
    if (b->high > a->high) {
        a->high = b->high;
        a->high_at = b->high_at;
    }
#ifdef MOMENTS
#ifdef A_FLOAT
    // The first of two is of a power of two of tiles, or of part of one: exact as a float.
    const A weight = a->n == b->n ? (A)0.5f : ratio(b->n, a->n + b->n);
    merge_moments(&a->mean, &a->rest, &a->m2, b->mean, b->rest, b->m2, weight, (A)a->n * weight);
#else
    a->sum0 += b->sum0;
    a->sum1 += b->sum1 + (a->sum0 < b->sum0);
    a->squares0 += b->squares0;
    const ulong carry = a->squares0 < b->squares0;
    a->squares1 += b->squares1;
    const ulong carried = a->squares1 < b->squares1;
    a->squares1 += carry;
    a->squares2 += b->squares2 + carried + (a->squares1 < carry);
#endif
#endif
    a->n += b->n;
}

#define RECORD_WORDS (sizeof(Record) / 4)
typedef union {
    Record record;
    uint words[RECORD_WORDS];
} Words;

static inline Record from_local(__local const uint* tree, uint i)
{
    Words x;
    UNROLL
    for (uint w = 0; w < RECORD_WORDS; w++) {
        x.words[w] = tree[w * WG + i];
    }
    return x.record;
}

static inline void to_local(__local uint* tree, uint i, Record r)
{
    Words x;
    x.record = r;
    UNROLL
    for (uint w = 0; w < RECORD_WORDS; w++) {
        tree[w * WG + i] = x.words[w];
    }
}

// The records of the items merged, valid in all of them. All WG items call it, in uniform flow; `tree` may be reused after
// the caller's next barrier. Each word of all records lies together, and what is left moves to the front: neighbouring
// items use neighbouring banks.
static inline Record merge_group(Record r, __local uint* tree)
{
#if WG > 1
    const uint item = get_local_id(0);
    to_local(tree, item, r);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint left = WG / 2; left > 0; left /= 2) {
        if (item < left) {
            const Record b = from_local(tree, 2 * item + 1);
            r = from_local(tree, 2 * item);
            merge(&r, &b);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < left) {
            to_local(tree, item, r);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    r = from_local(tree, 0);
#endif
    return r;
}

#if defined(MOMENTS) && !defined(A_FLOAT)
// Sums of what an item has of a tile, in as few bits as hold them.
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
    ulong squares, high; // the squares' lower halves, and their upper ones
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
    // Not abs, which PoCL 5 gets wrong for the lowest number.
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
#endif

// The least or the largest so far and an element, where NaN does not count; and the key of what comes out. FLUSHED: the device
// takes subnormals for zeros, so that keys are compared, which cost more.
#if defined(A_FLOAT) && !defined(FLUSHED)
#define EXTREME_T A
#define LOWEST (-A_INFINITY)
#define HIGHEST A_INFINITY
#ifdef DEVICE_CPU
#define LESSER(a, x) ((x) < (a) ? (x) : (a))
#define LARGER(a, x) ((x) > (a) ? (x) : (a))
#else
#define LESSER(a, x) fmin(a, x)
#define LARGER(a, x) fmax(a, x)
#endif
#define EXTREME_KEY(a) key_of(a)
#elif defined(A_FLOAT)
#define EXTREME_T KEY_T
#define LOWEST key_of(-A_INFINITY)
#define HIGHEST key_of(A_INFINITY)
#define LESSER(a, x) (IS_NAN(x) ? (a) : min(a, key_of(x)))
#define LARGER(a, x) (IS_NAN(x) ? (a) : max(a, key_of(x)))
#define EXTREME_KEY(a) (a)
#else
#define EXTREME_T A
#define LOWEST ((A)A_LOWEST)
#define HIGHEST ((A)A_HIGHEST)
#define LESSER(a, x) min((A)(a), (A)(x))
#define LARGER(a, x) max((A)(a), (A)(x))
#define EXTREME_KEY(a) (a)
#endif

// Elements of the tile's first `elements` that are in the `width` lanes from `lane` on.
static inline uint in_lanes(uint elements, uint lane, uint width)
{
    const uint rows = elements / LANES, more = elements % LANES;
    return rows * width + (more > lane ? min(more - lane, width) : 0);
}

#define FULL (elements == TILE)

// What the item has of a tile of `elements` > 0 from `p` on.
static inline Record take(__global const T* p, uint elements, ulong tile)
{
    const uint lane = get_local_id(0) * ITEM_LANES;
    EXTREME_T low = HIGHEST, high = LOWEST;
    int odd = 0;
    Record r;
    r.n = in_lanes(elements, lane, ITEM_LANES);
    r.low_at = r.high_at = r.nan_at = tile;
    r.nan = 0;
#ifdef MOMENTS
#ifdef A_FLOAT
    A mean[ITEM_LANES], rest[ITEM_LANES], m2[ITEM_LANES];
    int far = 0;
    UNROLL
    for (uint k = 0; k < ITEM_LANES; k++) {
        mean[k] = rest[k] = m2[k] = 0;
    }
#else
    Sums sums = {0};
#endif
#endif

#if WG >= 32
    if (FULL) {
        // All rows of an item are in flight at once.
        TV row[TILE_ROWS * ITEM_VECS];
        UNROLL
        for (uint i = 0; i < TILE_ROWS; i++) {
            UNROLL
            for (uint v = 0; v < ITEM_VECS; v++) {
                row[i * ITEM_VECS + v] = load_vec(p + lane + i * LANES + v * VEC);
            }
        }
        UNROLL
        for (uint i = 0; i < TILE_ROWS; i++) {
            UNROLL
            for (uint v = 0; v < ITEM_VECS; v++) {
                A x[VEC];
                unpack(row[i * ITEM_VECS + v], x);
                UNROLL
                for (uint k = 0; k < VEC; k++) {
                    low = LESSER(low, x[k]);
                    high = LARGER(high, x[k]);
                    odd |= IS_NAN(x[k]);
#ifdef MOMENTS
#ifdef A_FLOAT
                    mean[v * VEC + k] += x[k];
#else
                    sums_add(&sums, x[k]);
#endif
#endif
                }
            }
        }
#if defined(MOMENTS) && defined(A_FLOAT)
        UNROLL
        for (uint k = 0; k < ITEM_LANES; k++) {
            mean[k] *= (A)(1.0f / TILE_ROWS);
            far |= !IS_FINITE(mean[k]);
        }
        if (far) {
            UNROLL
            for (uint k = 0; k < ITEM_LANES; k++) {
                if (!IS_FINITE(mean[k])) {
                    mean[k] = far_mean(p, elements, lane + k, (A)(1.0f / TILE_ROWS));
                }
            }
        }
        UNROLL
        for (uint i = 0; i < TILE_ROWS; i++) {
            UNROLL
            for (uint v = 0; v < ITEM_VECS; v++) {
                A x[VEC];
                unpack(row[i * ITEM_VECS + v], x);
                UNROLL
                for (uint k = 0; k < VEC; k++) {
                    const A d = x[k] - mean[v * VEC + k];
                    rest[v * VEC + k] += d;
                    m2[v * VEC + k] += d * d;
                }
            }
        }
#endif
    } else
#endif
    {
        const uint rows = (elements + LANES - 1) / LANES;
        for (uint i = 0; i < rows; i++) {
            // Contiguous elements, for the compilers of CPU drivers to vectorise.
            const uint first = lane + i * LANES;
            const uint count = first < elements ? min((uint)ITEM_LANES, elements - first) : 0;
            FOR_LANES(k, count) {
                const A x = to_acc(p[first + k]);
                low = LESSER(low, x);
                high = LARGER(high, x);
                odd |= IS_NAN(x);
#ifdef MOMENTS
#ifdef A_FLOAT
                mean[k] += x;
#else
                sums_add(&sums, x);
#endif
#endif
            }
        }
#if defined(MOMENTS) && defined(A_FLOAT)
        UNROLL
        for (uint k = 0; k < ITEM_LANES; k++) {
            const uint count = FULL ? TILE_ROWS : in_lanes(elements, lane + k, 1);
            mean[k] *= FULL ? (A)(1.0f / TILE_ROWS) : count > 0 ? ratio(1, count) : 0;
            far |= !IS_FINITE(mean[k]);
        }
        if (far) {
            UNROLL
            for (uint k = 0; k < ITEM_LANES; k++) {
                if (!IS_FINITE(mean[k])) {
                    mean[k] = far_mean(p, elements, lane + k, ratio(1, in_lanes(elements, lane + k, 1)));
                }
            }
        }
        for (uint i = 0; i < rows; i++) {
            const uint first = lane + i * LANES;
            const uint count = first < elements ? min((uint)ITEM_LANES, elements - first) : 0;
            FOR_LANES(k, count) {
                const A d = to_acc(p[first + k]) - mean[k];
                rest[k] += d;
                m2[k] += d * d;
            }
        }
#endif
    }
    r.low = EXTREME_KEY(low);
    r.high = EXTREME_KEY(high);
    if (odd) {
        for (uint i = lane; i < elements; i += LANES) {
            for (uint k = 0; k < ITEM_LANES && i + k < elements; k++) {
                r.nan += IS_NAN(to_acc(p[i + k]));
            }
        }
    }
#ifdef MOMENTS
#ifdef A_FLOAT
    UNROLL
    for (uint k = 0; k < ITEM_LANES; k++) {
        const uint count = FULL ? TILE_ROWS : in_lanes(elements, lane + k, 1);
        const A part = FULL ? (A)(1.0f / TILE_ROWS) : count > 0 ? ratio(1, count) : 0;
        // Elements, or their squares, can be too far from the mean for the range.
        const A off = rest[k] * part, spread = m2[k] - rest[k] * off;
        const int finite = IS_FINITE(mean[k]);
        m2[k] = !finite ? mean[k] - mean[k] : IS_FINITE(spread) ? spread : A_INFINITY;
        rest[k] = finite && IS_FINITE(off) ? off : 0;
    }
    UNROLL
    for (uint width = 1; width < ITEM_LANES; width *= 2) {
        UNROLL
        for (uint k = 0; k < ITEM_LANES / (2 * width); k++) {
            const uint a = 2 * k, b = 2 * k + 1;
            A weight = 0.5f, paired = (A)(TILE_ROWS / 2) * width;
            mean[k] = mean[a];
            rest[k] = rest[a];
            m2[k] = m2[a];
            if (!FULL) {
                const uint n = in_lanes(elements, lane + a * width, width);
                const uint m = in_lanes(elements, lane + b * width, width);
                if (m == 0) {
                    continue;
                }
                weight = n == m ? (A)0.5f : ratio(m, n + m);
                paired = (A)n * weight;
            }
            merge_moments(&mean[k], &rest[k], &m2[k], mean[b], rest[b], m2[b], weight, paired);
        }
    }
    r.mean = mean[0];
    r.rest = rest[0];
    r.m2 = m2[0];
    r.unused = 0;
#elif T_BYTES <= 4
    r.sum0 = (ulong)(long)sums.sum;
    r.sum1 = sums.sum < 0 ? ~0ul : 0ul;
#if T_BYTES == 4
    r.squares0 = sums.squares + (sums.high << 32);
    r.squares1 = (sums.high >> 32) + (r.squares0 < sums.squares);
#else
    r.squares0 = sums.squares;
    r.squares1 = 0;
#endif
    r.squares2 = 0;
#else
    r.sum0 = sums.sum0;
    r.sum1 = sums.sum1;
    r.squares0 = sums.squares0;
    r.squares1 = sums.squares1;
    r.squares2 = sums.squares2;
#endif
#endif
    return r;
}

// Group g writes the records of the tiles g, g + groups, ...
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void statistics_tiles(
    __global const T* restrict in_base, const ulong in_offset, const OFFSET_T n, __global void* restrict records)
{
    __local uint tree[RECORD_WORDS * WG];
    const OFFSET_T tiles = n / TILE + (n % TILE != 0);
    for (OFFSET_T tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        const OFFSET_T first = tile * TILE;
        const uint elements = n - first >= TILE ? TILE : n - first;
        const Record r = merge_group(take(in_base + in_offset + first, elements, tile), tree);
        if (get_local_id(0) == 0) {
            ((__global Record*)records)[tile] = r;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// The first place in a tile of a key, or of a NaN; valid in every item. All WG items call it, in uniform flow.
static inline ulong find(
    __global const T* in, ulong tile, ulong n, int nan, KEY_T key, __local uint* places)
{
    const ulong first = tile * TILE;
    const uint elements = n - first >= TILE ? TILE : n - first, item = get_local_id(0);
    uint place = TILE;
    for (uint i = item; i < elements; i += WG) {
        const A x = to_acc(in[first + i]);
        const int hit = nan ? IS_NAN(x) : key_of(x) == key;
        place = hit ? min(place, i) : place;
    }
    places[item] = place;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = WG / 2; d > 0; d /= 2) {
        if (item < d) {
            places[item] = min(places[item], places[item + d]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    place = places[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return first + min(place, elements - 1);
}

// The bits of an element or an accumulator, in a word.
static inline ulong element_bits(T x)
{
#if defined(T_FLOAT) && T_BYTES == 8
    return as_ulong(x);
#elif defined(T_FLOAT) && T_BYTES == 4
    return as_uint(x);
#else
    return (ulong)x;
#endif
}

#ifdef A_FLOAT
#if A_BYTES == 8
#define WORD_OF(x) as_ulong(x)
#else
#define WORD_OF(x) ((ulong)as_uint(x))
#endif
#endif

// Group g merges the FAN records from g x FAN on into record g of `merged`. With `last` there is one group, which finds
// the extremes' places and writes the answer: with MOMENTS to 12 words of `out`, else two values to `out`, and their
// places to `places_out`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void statistics_records(
    __global const T* restrict in_base, const ulong in_offset, const ulong n, __global const void* restrict records,
    const uint records_offset, const uint count, __global void* restrict merged, const uint merged_offset,
    const uint last, __global void* restrict out, const ulong out_offset, __global ulong* restrict places_out,
    const ulong places_offset)
{
    __local uint tree[RECORD_WORDS * WG];
    __local uint places[WG];
    __global const Record* from = (__global const Record*)records + records_offset;
    const uint first = get_group_id(0) * FAN + get_local_id(0) * ITEM_RECORDS;

    // Neighbours first: as many records are kept as the number of those taken has bits set.
    Record kept[12];
    uint depth = 0;
    for (uint i = 0; i < ITEM_RECORDS && first + i < count; i++) {
        kept[depth++] = from[first + i];
        for (uint bits = i; (bits & 1) != 0; bits >>= 1) {
            depth--;
            merge(&kept[depth - 1], &kept[depth]);
        }
    }
    for (; depth > 1; depth--) {
        merge(&kept[depth - 2], &kept[depth - 1]);
    }
    if (depth == 0) {
        kept[0] = from[0];
        kept[0].n = 0;
    }
    const Record r = merge_group(kept[0], tree);
    if (!last) {
        if (get_local_id(0) == 0) {
            ((__global Record*)merged)[merged_offset + get_group_id(0)] = r;
        }
        return;
    }
    __global const T* in = in_base + in_offset;
    const int nan = r.nan != 0;
    const ulong low_at = find(in, nan ? r.nan_at : r.low_at, n, nan, (KEY_T)r.low, places);
    const ulong high_at = nan ? low_at : find(in, r.high_at, n, 0, (KEY_T)r.high, places);
    if (get_local_id(0) != 0) {
        return;
    }
#ifdef MOMENTS
    __global ulong* words = (__global ulong*)out + out_offset;
    words[0] = r.n;
    words[1] = r.nan;
    words[2] = low_at;
    words[3] = high_at;
    words[4] = element_bits(in[low_at]);
    words[5] = element_bits(in[high_at]);
#ifdef A_FLOAT
    words[6] = WORD_OF(r.mean);
    words[7] = WORD_OF(r.rest);
    words[8] = WORD_OF(r.m2);
    words[9] = words[10] = 0;
#else
    words[6] = r.sum0;
    words[7] = r.sum1;
    words[8] = r.squares0;
    words[9] = r.squares1;
    words[10] = r.squares2;
#endif
    words[11] = 0;
#else
    __global T* values = (__global T*)out + out_offset;
    values[0] = in[low_at];
    values[1] = in[high_at];
    places_out[places_offset] = low_at;
    places_out[places_offset + 1] = high_at;
#endif
}
