// Extremes of x[0..n] with their first indices, the number of NaN, and the moments.
//
//     low = min x[i], high = max x[i], without NaN;  low_at, high_at = first index of each, or of a NaN if there is one
//     moments of integers: sum x[i], sum x[i]^2, exact;  of floats: mean, sum (x[i] - mean)^2
//
// Bytes: reads n elements once, and up to two tiles again; writes a record for each work-group, and the moments of each
// tile of floats.
//
// A tile is TILE_ROWS rows of LANES elements, as in reduce.cl: lane j has the elements j, j + LANES, ... of its tile.
// Moments of floats join as a tree of neighbours: lanes, then tiles. So no result depends on sub-groups, the grid or
// the work-group size.
//
//     statistics_tiles: for each tile of the work-group:
//         take:        extremes and sums of the work-item's lanes; the record names the first tile with each extreme
//         join_batch:  moments of floats: joins the lanes' moments to the tile's
//         merges the records of all work-items
//     statistics_moments (floats): joins the moments of FAN tiles
//     statistics_last:
//         merges the records of all work-groups; joins the last moments
//         searches the named tiles for the extremes' indices; writes the answer
//
// With ONE_PASS (not for moments of floats), the work-group of statistics_tiles that finishes last does the work of
// statistics_last. Without MOMENTS the answer is the extremes alone: the least if ENDS has bit 0, the largest if it has
// bit 1.
//
// With LENGTH_T (lib/length.cl) n is a count in memory. If it is 0, the indices are ~0, and the values are those of
// EMPTY_PARAMS.
#include "lib/types.cl"
#include "lib/length.cl"

#ifdef MOMENTS
#include "lib/moments.cl"
#else
#define MOMENTS 0
typedef int Moments;
static inline void store_moments(__global ulong* words, const Moments* m) {}
#endif

#ifdef ONE_PASS
#include "lib/subgroup.cl"
#include "lib/ended.cl"
#endif

#ifndef WG
#define WG 256
#define ENDS 3
#endif
#define WANTS_LOW (ENDS & 1)
#define WANTS_HIGH (ENDS & 2)
#ifndef TILE_ROWS
#define TILE_ROWS 16
#endif
// 16 elements at a time on a CPU driver's single work-item: compilers do not vectorise these loops by themselves.
#ifndef VECTORS
#define VECTORS 0
#endif

// The key of a float is an integer that rises with the float (key_of of lib/types.cl). W is the type of a key in a
// record. A record has no padding: W has 8 bytes, except for floats with ENDS == 3.
#ifdef A_FLOAT
#if ENDS == 3
#define W A_BITS
#else
#define W long
#endif
#define BITS CAT(u, A_BITS)
#define BITS_OF(x) ((BITS)AS_BITS(x))
#define IS_NAN(x) ((x) != (x))
#define UNORDERED(x, y) isunordered(x, y)
#define NANS16 CAT(A_BITS, 16)
#define FLOAT_MOMENTS MOMENTS
#define INTEGER_MOMENTS 0
#else
#ifndef T_WORD
#define T_WORD long
#endif
#ifndef A_LOWEST
#define A_LOWEST 0
#define A_HIGHEST 0
#endif
#define W T_WORD
#define BITS T_UNSIGNED
#define BITS_OF(x) ((BITS)(x))
#define IS_NAN(x) 0
#define UNORDERED(x, y) 0
#define NANS16 int16
#define FLOAT_MOMENTS 0
#define INTEGER_MOMENTS MOMENTS
#endif

#define LANES (256 * VEC)
#define TILE (TILE_ROWS * LANES)
#define ITEM_LANES (LANES / WG)
#define ITEM_VECS (ITEM_LANES / VEC)
// A work-item of a small work-group, as on CPU drivers, has too many lanes for registers.
#define IN_REGISTERS (WG >= 32)
// Rows whose loads are in flight at once; half as many for integers' moments, whose sums take registers.
#define FLIGHT (INTEGER_MOMENTS ? TILE_ROWS / 2 : TILE_ROWS)
// Fewer for the search of a tile: it runs once or twice, and has four instructions for each element in flight.
#define FIND_FLIGHT (TILE_ROWS / 2)
// Loops over up to 32 lanes are unrolled, so that the lanes stay in registers. With more, the code would be large:
// Intel's driver for CPUs took more than eight minutes to build the moments of 64 lanes.
#if ITEM_LANES <= 32
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif
#define LANE_LOOP(count) (ITEM_LANES <= 32 ? ITEM_LANES : (count))

// NVIDIA's compiler obeys a register limit only if the kernel does not fix its work-group size.
#if MOMENTS && INLINE_PTX
#define KERNEL __kernel
#else
#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif

// Extremes

// The smaller, or larger, of the extreme so far and an element; NaN does not count. FLUSHED: the device flushes
// subnormals, so keys are compared, which takes longer.
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

// Extremes of a work-item's part of a tile. `odd` is not 0 if there may be NaN.
typedef struct {
    EXTREME_T low, high;
    int odd;
} Extremes;

INLINED void add_element(Extremes* e, A x)
{
    if (WANTS_LOW) {
        e->low = LESSER(e->low, x);
    }
    if (WANTS_HIGH) {
        e->high = LARGER(e->high, x);
    }
}

// Records

// A record has no field that the answer does not need: a work-group merges its records in local memory, word by word.
typedef struct {
#ifdef A_FLOAT
    ulong nan, nan_at; // Number of NaN; first tile with one.
#endif
#if WANTS_LOW
    ulong low_at; // First tile with the extreme.
#endif
#if WANTS_HIGH
    ulong high_at;
#endif
#if WANTS_LOW
    W low; // Key of the extreme, without NaN.
#endif
#if WANTS_HIGH
    W high;
#endif
#if INTEGER_MOMENTS
    Moments sums;
#endif
} Record;

// RECORD_LOW and the like: a field, or 0 if records lack it.
#ifdef A_FLOAT
#define RECORD_NAN(r) (r).nan
#define RECORD_NAN_AT(r) (r).nan_at
#else
#define RECORD_NAN(r) 0
#define RECORD_NAN_AT(r) 0
#endif
#if WANTS_LOW
#define RECORD_LOW(r) (r).low
#define RECORD_LOW_AT(r) (r).low_at
#else
#define RECORD_LOW(r) 0
#define RECORD_LOW_AT(r) 0
#endif
#if WANTS_HIGH
#define RECORD_HIGH(r) (r).high
#define RECORD_HIGH_AT(r) (r).high_at
#else
#define RECORD_HIGH(r) 0
#define RECORD_HIGH_AT(r) 0
#endif

#if INTEGER_MOMENTS
static inline void clear_sums(Record* r)
{
    r->sums.sum0 = r->sums.sum1 = r->sums.squares0 = r->sums.squares1 = r->sums.squares2 = 0;
}
static inline void merge_sums(Record* a, const Record* b) { join_moments(&a->sums, &b->sums, 0, 0); }
static inline void put_sums(Record* r, const Sums* sums) { sums_moments(&r->sums, sums); }
static inline const Moments* moments_of(const Record* r, const Moments* m) { return &r->sums; }
#else
typedef int Sums;
static inline void sums_add(Sums* s, A x) {}
static inline void sums_add_two(Sums* s, A x, A y) {}
static inline void clear_sums(Record* r) {}
static inline void merge_sums(Record* a, const Record* b) {}
static inline void put_sums(Record* r, const Sums* sums) {}
static inline const Moments* moments_of(const Record* r, const Moments* m) { return m; }
#endif

// Makes a record without elements. It names `tile`, and loses to every other record that names an earlier tile.
INLINED void clear_record(Record* r, ulong tile)
{
#ifdef A_FLOAT
    r->nan = 0;
    r->nan_at = tile;
#endif
#if WANTS_LOW
    r->low_at = tile;
    r->low = EXTREME_KEY(HIGHEST);
#endif
#if WANTS_HIGH
    r->high_at = tile;
    r->high = EXTREME_KEY(LOWEST);
#endif
    clear_sums(r);
}

// Merges record b into a, in any order of tiles.
static inline void merge(Record* a, const Record* b)
{
#ifdef A_FLOAT
    if (b->nan != 0 && (a->nan == 0 || b->nan_at < a->nan_at)) {
        a->nan_at = b->nan_at;
    }
    a->nan += b->nan;
#endif
#if WANTS_LOW
    if (b->low < a->low || (b->low == a->low && b->low_at < a->low_at)) {
        a->low = b->low;
        a->low_at = b->low_at;
    }
#endif
#if WANTS_HIGH
    if (b->high > a->high || (b->high == a->high && b->high_at < a->high_at)) {
        a->high = b->high;
        a->high_at = b->high_at;
    }
#endif
    merge_sums(a, b);
}

#define RECORD_WORDS (sizeof(Record) / 4)
typedef union {
    Record record;
    uint words[RECORD_WORDS];
} Words;

// Local memory has word w of all records together, so that neighbouring work-items use neighbouring banks.
INLINED void from_local(__local const uint* tree, uint i, Record* r)
{
    Words x;
    UNROLL
    for (uint w = 0; w < RECORD_WORDS; w++) {
        x.words[w] = tree[w * WG + i];
    }
    *r = x.record;
}

INLINED void to_local(__local uint* tree, uint i, const Record* r)
{
    Words x;
    x.record = *r;
    UNROLL
    for (uint w = 0; w < RECORD_WORDS; w++) {
        tree[w * WG + i] = x.words[w];
    }
}

// Merges the records of all work-items; the result is valid in all of them. All call it, in uniform flow; `tree` may be
// reused after the caller's next barrier.
INLINED void merge_group(Record* r, __local uint* tree)
{
    if (WG == 1) {
        return;
    }
    const uint item = get_local_id(0);
    to_local(tree, item, r);
    barrier(CLK_LOCAL_MEM_FENCE);
    ROLLED
    for (uint left = WG / 2; left > 0; left /= 2) {
        if (item < left) {
            Record b;
            from_local(tree, 2 * item, r);
            from_local(tree, 2 * item + 1, &b);
            merge(r, &b);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < left) {
            to_local(tree, item, r);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    from_local(tree, 0, r);
}

// Tiles

static inline uint elements_of(OFFSET_T tile, OFFSET_T n)
{
    return n - tile * TILE >= TILE ? TILE : n - tile * TILE;
}

// Elements of row i of a tile that are in the work-item's lanes, from `lane` on.
static inline uint elements_of_row(uint elements, uint lane, uint i)
{
    const uint first = lane + i * LANES;
    return first < elements ? min((uint)ITEM_LANES, elements - first) : 0;
}

// Loads the first `rows` rows, a constant at each call. The bound is another constant, because compilers unroll the loop
// before they know `rows`. Otherwise `row` would be in memory, not in registers.
INLINED void load_rows(__global const T* p, TV* row, const uint rows)
{
    UNROLL
    for (uint i = 0; i < TILE_ROWS; i++) {
        UNROLL
        for (uint v = 0; v < ITEM_VECS && i < rows; v++) {
            row[i * ITEM_VECS + v] = load_vec(p + i * LANES + v * VEC);
        }
    }
}

// take_elements adds the work-item's part of a tile to the extremes, and to the sums or the moments.
#if FLOAT_MOMENTS
#include "statistics_floats.cl"
#else
#include "statistics_exact.cl"
#endif

// Makes the work-item's record of a tile of `elements` > 0 from `p` on, and its moments if they are of floats.
INLINED void take(__global const T* p, uint elements, ulong tile, Record* r, Moments* moments)
{
    clear_record(r, tile);
    Extremes e;
    e.low = HIGHEST;
    e.high = LOWEST;
    e.odd = 0;
    take_elements(p, elements, &e, r, moments);
#if WANTS_LOW
    r->low = EXTREME_KEY(e.low);
#endif
#if WANTS_HIGH
    r->high = EXTREME_KEY(e.high);
#endif
#ifdef A_FLOAT
    if (e.odd) {
        for (uint i = get_local_id(0) * ITEM_LANES; i < elements; i += LANES) {
            for (uint k = 0; k < ITEM_LANES && i + k < elements; k++) {
                r->nan += IS_NAN(to_acc(p[i + k]));
            }
        }
    }
#endif
}

// The answer

// Finds values by their bits: those whose bits, shifted left by `shift`, are in [first, first + span]. A shift by 1
// drops the sign.
typedef struct {
    uint shift;
    BITS first, span;
} Wanted;

// Sets `w` to find the values with this key or, if `nan` is set, all NaN.
INLINED void want(Wanted* w, int nan, KEY_T key)
{
#ifdef A_FLOAT
    // Without the sign, both zeros are 0, and NaN are beyond infinity.
    w->shift = nan || key == 0;
    w->first = nan ? ((BITS)AS_BITS(A_INFINITY) << 1) + 1 : (BITS)(key < 0 ? A_BITS_LOWEST - key : key);
    w->span = nan ? ~(BITS)0 - w->first : 0;
#else
    w->shift = 0;
    w->first = (BITS)key;
    w->span = 0;
#endif
}

INLINED bool is_wanted(A x, const Wanted* w)
{
    // The cast makes the difference wrap in BITS: C subtracts types narrower than int as int.
    return (BITS)((BITS)(BITS_OF(x) << w->shift) - w->first) <= w->span;
}

// Returns the first index in a tile of a key, or of a NaN; valid in every work-item. All call it, in uniform flow.
INLINED ulong find(__global const T* in, ulong tile, ulong n, int nan, KEY_T key, __local uint* first_found)
{
    const ulong first = tile * TILE;
    const uint elements = n - first >= TILE ? TILE : n - first, item = get_local_id(0);
    uint found = elements - 1;
    Wanted wanted;
    want(&wanted, nan, key);
    if (item == 0) {
        *first_found = found;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (IN_REGISTERS && elements == TILE) {
        const uint lane = item * ITEM_LANES;
        TV row[FIND_FLIGHT * ITEM_VECS];
        // Runs from the last element to the first one, so `found` ends as the first index.
        ROLLED
        for (uint start = TILE_ROWS; start > 0;) {
            start -= FIND_FLIGHT;
            load_rows(in + first + lane + start * LANES, row, FIND_FLIGHT);
            UNROLL
            for (uint i = FIND_FLIGHT * ITEM_VECS; i-- > 0;) {
                A x[VEC];
                unpack(row[i], x);
                UNROLL
                for (uint k = VEC; k-- > 0;) {
                    const uint at = (start + i / ITEM_VECS) * LANES + lane + i % ITEM_VECS * VEC + k;
                    found = is_wanted(x[k], &wanted) ? at : found;
                }
            }
        }
    } else {
        ROLLED
        for (uint i = item; i < elements; i += WG) {
            const A x = to_acc(in[first + i]);
            if (is_wanted(x, &wanted)) {
                found = min(found, i);
            }
        }
    }
    if (found < elements - 1) {
        atomic_min(first_found, found);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    found = *first_found;
    barrier(CLK_LOCAL_MEM_FENCE);
    return first + found;
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

// Merges the work-item's share of the records of all work-groups.
INLINED void merge_share(Record* r, __global const Record* records, const uint groups, const ulong n)
{
    // Tile numbers are below n, so a record of tile n loses to every other one.
    clear_record(r, n);
    ROLLED
    for (uint i = get_local_id(0); i < groups; i += WG) {
        const Record other = records[i];
        merge(r, &other);
    }
}

// The values of the answer if n is 0.
#ifdef LENGTH_T
#define EMPTY_PARAMS , const T first_empty, const T last_empty
#define EMPTY_ARGS , first_empty, last_empty
#else
#define EMPTY_PARAMS
#define EMPTY_ARGS
#endif

// Finds the indices of the extremes of a merged record, and writes the answer. With MOMENTS it writes 12 words to
// `out`. Without MOMENTS it writes the values to `out` and their indices to `indices_out`. `m` are the moments of
// floats. All work-items call it, in uniform flow.
INLINED void write_answer(
    __global const T* in, const ulong n, const Record* merged, const Moments* m, __global void* out,
    const ulong out_offset, __global ulong* indices_out, const ulong indices_offset,
    __local uint* first_found EMPTY_PARAMS)
{
#ifdef LENGTH_T
    if (n == 0) {
        for (uint end = 0; end < (ENDS == 3 ? 2 : 1) && get_local_id(0) == 0; end++) {
            ((__global T*)out)[out_offset + end] = end == 0 ? first_empty : last_empty;
            indices_out[indices_offset + end] = ~0ul;
        }
        return;
    }
#endif
    const Record r = *merged;
    const int nan = RECORD_NAN(r) != 0;
    ulong low_at = 0, high_at = 0;
    // One loop, since find has much code.
    ROLLED
    for (uint end = WANTS_LOW ? 0 : 1; end < (WANTS_HIGH ? 2 : 1); end++) {
        const ulong tile = nan ? RECORD_NAN_AT(r) : end == 0 ? RECORD_LOW_AT(r) : RECORD_HIGH_AT(r);
        const KEY_T key = (KEY_T)(end == 0 ? RECORD_LOW(r) : RECORD_HIGH(r));
        const ulong at = find(in, tile, n, nan, key, first_found);
        if (end == 0) {
            low_at = at;
        } else {
            high_at = at;
        }
    }
    if (get_local_id(0) != 0) {
        return;
    }
    if (MOMENTS) {
        __global ulong* words = (__global ulong*)out + out_offset;
        words[0] = n;
        words[1] = RECORD_NAN(r);
        words[2] = low_at;
        words[3] = high_at;
        words[4] = element_bits(in[low_at]);
        words[5] = element_bits(in[high_at]);
        store_moments(words + 6, moments_of(&r, m));
        words[11] = 0;
        return;
    }
    __global T* values = (__global T*)out + out_offset;
    __global ulong* indices = indices_out + indices_offset;
    if (WANTS_LOW) {
        values[0] = in[low_at];
        indices[0] = low_at;
    }
    if (WANTS_HIGH) {
        values[ENDS == 3] = in[high_at];
        indices[ENDS == 3] = high_at;
    }
}

#ifdef ONE_PASS
#define ANSWER_PARAMS                                                                                                  \
    , const uint ends, __global void *out, const ulong out_offset, __global ulong *indices_out,                        \
        const ulong indices_offset ENDED_PARAM EMPTY_PARAMS
#else
#define ANSWER_PARAMS
#endif

// Work-group g takes the tiles g, g + groups, ..., after those of earlier launches; the merged record becomes record g.
// An input may arrive in parts. Each part but the last has whole tiles, and n is the end of the launch's part. With
// ONE_PASS and if `ends` is not 0, the work-group that finishes last writes the answer.
KERNEL void statistics_tiles(
    __global const T* restrict in_base, const ulong in_offset, LENGTH_PARAMS, __global void* records,
    const ulong records_offset, __global void* moments, const ulong moments_offset ANSWER_PARAMS)
{
    __local uint tree[RECORD_WORDS * WG];
    __local A lanes[LANE_WORDS];
#ifdef ONE_PASS
    __local uint first_found;
#endif
    TAKE_LENGTH
    __global const T* in = in_base + in_offset;
    __global Moments* moments_of_tiles = (__global Moments*)moments + moments_offset;
    const OFFSET_T tiles = n / TILE + (n % TILE != 0), groups = get_num_groups(0);
    const OFFSET_T first = get_global_offset(0) / WG + get_group_id(0);
    Record all;
    clear_record(&all, first);
    for (OFFSET_T base = first; base < tiles; base += BATCH * groups) {
        for (uint t = 0; t < BATCH; t++) {
            const OFFSET_T tile = base + t * groups;
            if (tile < tiles) {
                Record r;
                Moments m;
                take(in + tile * TILE, elements_of(tile, n), tile, &r, &m);
                merge(&all, &r);
                put_tile(lanes, t, &m, moments_of_tiles + tile);
            }
        }
        join_batch(lanes, base, groups, tiles, n, moments_of_tiles);
    }
    // In the work-group that finishes last, a second round merges the records of all work-groups. Because of the loop,
    // the code of the merge exists only once.
    uint rounds = 1;
    ROLLED
    for (uint round = 0; round < rounds; round++) {
        merge_group(&all, tree);
        if (round == 0) {
            if (get_local_id(0) == 0) {
                ((__global Record*)records)[records_offset + get_group_id(0)] = all;
            }
#ifdef ONE_PASS
            if (ends && ends_last(ended, groups, &first_found)) {
                merge_share(&all, (__global const Record*)records, groups, n);
                rounds = 2;
            }
#endif
        }
    }
#ifdef ONE_PASS
    if (rounds == 2) {
        write_answer(in, n, &all, 0, out, out_offset, indices_out, indices_offset, &first_found EMPTY_ARGS);
    }
#endif
}

// One work-group: joins the last `count` moments, of `span` elements each, and writes the answer.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void statistics_last(
    __global const T* restrict in_base, const ulong in_offset, LENGTH_PARAMS, __global const void* restrict records,
    const uint groups, __global const void* restrict moments, const ulong moments_offset, const uint count,
    const ulong span, __global void* restrict out, const ulong out_offset, __global ulong* restrict indices_out,
    const ulong indices_offset EMPTY_PARAMS)
{
    __local uint tree[RECORD_WORDS * WG];
    __local A lanes[LANE_WORDS];
    __local uint first_found;
    TAKE_LENGTH
    Moments m;
    Record all;
    join_group((__global const Moments*)moments + moments_offset, 0, count, span, n, lanes, &m);
    merge_share(&all, (__global const Record*)records, groups, n);
    merge_group(&all, tree);
    write_answer(
        in_base + in_offset, n, &all, &m, out, out_offset, indices_out, indices_offset, &first_found EMPTY_ARGS);
}
