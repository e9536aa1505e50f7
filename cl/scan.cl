// Scan: what the operator makes of the elements up to each, in one order that depends on the place and the types alone.
//
// A run is the VEC elements of 16 bytes, combined in their order. A chunk is 32 runs, a tile 64 chunks; of tiles 32 are a
// block, of those 32 likewise, and so on. The total of a chunk and of a tile is the tree of neighbours. With before() and the
// carry of lib/spine.cl, for element i of run r of chunk c of tile t:
//
//     out = ((carry(t) op (before(c) op before(r))) op x[0]) ... op x[i], without x[i] if exclusive
//
// So the number of work-items that share a tile, the sub-group width and the grid do not enter. Missing elements of the last
// tile are in no total that counts. With REVERSE the last element is the first one, and so is the last result.
//
// Three kinds of launches: the totals of the tiles; before() of them, level after level; the outputs. Of one tile, the last
// of them alone. `out` may be `x`: a tile is read before it is written.
//
// Segments start anew, from `initial` on, at the elements that lib/heads.cl marks. A total is then that of what comes last, from
// the last such element on, and whether there is one; two of them come to (a, f) op (b, g) = (g ? b : a op b, f or g), in the
// same order. What is added to a carry with such an element among it is added to `initial` instead. So the order depends on the
// place and on the segments alone.
//
// With LOOK_BACK one launch: work-groups take tiles in the order in which they start, publish their totals, where items have
// shuffles before anything else, and wait for those before theirs (Merrill & Garland 2016). before() needs totals alone, so no
// tile waits for what another waited for, but for the last ones of each block, which publish its total; of the blocks just before
// its own it makes them itself of their tiles'. A word that is not there after `spins` looks is computed by who needs it.
//
// Bytes: reads n elements twice, writes n, and 24 for each tile of 32 KiB; with LOOK_BACK reads them once. What marks segments is
// read as often.
#if defined(BY_KEYS) || defined(BY_FLAGS) || defined(BY_OFFSETS) || defined(BY_ROWS)
#define SEGMENTED
#endif
// CPU drivers make no vectors of an order: with VECTORS, where one is asked for, they are written out, of 16 runs at once.
#if defined(OPERATOR) || defined(MAPPED) || defined(T_F16) || defined(T_BF16) || defined(OUT_F16) || defined(OUT_BF16)
#undef VECTORS
#endif
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"
#include "lib/workgroup.cl"
#include "lib/outputs.cl"
#include "lib/ticket.cl"
#ifdef ASIDE
#include "lib/aside.cl"
#endif

// A total, as it is stored: TOTAL(value, head), of which VALUE and HEAD are parts. JOINED(a, b, head) is a op b, unless there is
// a head in b; RESTARTED(initial, carry, head) is what comes before that.
#ifdef SEGMENTED
typedef struct {
    A value;
    uint head;
} Total;
#define THING Total
#define TOTAL(value, head) ((Total){ value, head })
#define VALUE(total) ((total).value)
#define HEAD(total) ((total).head)
#define JOINED(a, b, head) ((head) ? (b) : OP(a, b))
#define RESTARTED(initial, carry, head) ((head) ? (initial) : (carry))
#define THING_OP(a, b) total_op(a, b)
#define THING_IDENTITY TOTAL(OP_IDENTITY, 0)
// Mesa 25 loses structs that are copied from and to shared memory as a whole.
#define THING_GET(place) TOTAL(VALUE(place), HEAD(place))
#define THING_PUT(place, thing) (VALUE(place) = VALUE(thing), HEAD(place) = HEAD(thing))
#define THING_CARRY(initial, carry, thing) OP(RESTARTED(initial, carry, HEAD(thing)), VALUE(thing))
static inline Total total_op(Total a, Total b)
{
    return TOTAL(JOINED(a.value, b.value, b.head), a.head | b.head);
}
#else
#define TOTAL(value, head) (value)
#define VALUE(total) (total)
#define HEAD(total) 0u
#define JOINED(a, b, head) OP(a, b)
#define RESTARTED(initial, carry, head) (carry)
#define HEAD_PARAMS
#define HEAD_PASS
#endif
#include "lib/spine.cl"

#define CHUNK_RUNS 32
#define CHUNKS 64
#define TILE_RUNS (CHUNKS * CHUNK_RUNS)
#define TILE (TILE_RUNS * VEC)

// Items exchange values by shuffles where sub-groups have one width; other compilers may choose another for each kernel.
#if SG_BACKEND == SG_PTX || SG_BACKEND == SG_AMDGCN
#define SHUFFLES
#endif

// NVIDIA's compiler keeps to a limit of registers only where the size of work-groups is open.
#if SG_BACKEND == SG_PTX
#define KERNEL __kernel
#else
#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif

// Where the i-th of `len` lies; where a run starts whose first is the i-th; the place of its j-th.
#ifdef REVERSE
#define AT(i, len) ((len) - 1 - (i))
#define RUN_AT(i, len) ((len) - VEC - (i))
#define IN_RUN(j) (VEC - 1 - (j))
#else
#define AT(i, len) (i)
#define RUN_AT(i, len) (i)
#define IN_RUN(j) (j)
#endif
#include "lib/heads.cl"

// The first tile of a work-group, the one after its last, and the step between them: a CPU walks contiguous memory.
#ifdef DEVICE_CPU
#define GROUP_TILES(tiles) (((tiles) - 1) / get_num_groups(0) + 1)
#define FIRST_TILE(tiles) ((OFFSET_T)(get_group_id(0) * GROUP_TILES(tiles)))
#define END_TILE(tiles) min((OFFSET_T)(tiles), (OFFSET_T)((get_group_id(0) + 1) * GROUP_TILES(tiles)))
#define NEXT_TILE 1
#else
#define FIRST_TILE(tiles) ((OFFSET_T)get_group_id(0))
#define END_TILE(tiles) (tiles)
#define NEXT_TILE ((OFFSET_T)get_num_groups(0))
#endif

#ifndef LOOK_BACK
// One level of the spine: lib/spine.cl.
KERNEL void scan_spine(__global THING* totals, const OFFSET_T first, const OFFSET_T count, const OFFSET_T above)
{
    spine_level(totals, first, count, above, get_global_id(0));
}
#endif

#ifdef BY_OFFSETS
// Which of `count` offsets are in each tile of n elements.
KERNEL void scan_ranks(
    __global const S* offsets_base, const ulong offsets_offset, const OFFSET_T count, const OFFSET_T n,
    const OFFSET_T tiles, __global OFFSET_T* ranks_base, const ulong ranks_at)
{
    for (OFFSET_T t = get_global_id(0); t <= tiles; t += get_global_size(0)) {
        ranks_base[ranks_at + t] = rank_of_tile(offsets_base + offsets_offset, count, t, n);
    }
}
#endif

#if WG == 1

// One item has the tile to itself. Where no order is asked for, it goes through the elements one by one.

// A bit for each element of a tile, where segments start.
#ifdef SEGMENTED
#define MARKS (TILE / 32)
#define MARKED(marks, at) ((marks)[(at) / 32] >> (at) % 32 & 1)
#else
#define MARKS 1
#define MARKED(marks, at) 0
#endif

static inline void mark_tile(uint* marks, OFFSET_T tile, OFFSET_T n HEAD_PARAMS)
{
    for (uint k = 0; k < MARKS; k++) {
        marks[k] = 0;
    }
#ifdef BY_OFFSETS
    mark_offsets(marks, tile, n HEAD_PASS);
#elif defined(SEGMENTED)
    const OFFSET_T base = tile * TILE;
    for (uint place = 0; place < TILE && place < n - base; place += VEC) {
        marks[place / 32] |= run_heads(n - base >= TILE, base, place, n HEAD_PASS) << place % 32;
    }
#endif
}

// The total of elements of a tile, from `place` on.
static inline THING run_total(
    __global const T* x, OFFSET_T base, uint place, uint count, OFFSET_T n, const uint* marks)
{
    THING total = TOTAL(TAKEN(x[AT(base + place, n)]), MARKED(marks, place));
    // What is exact has no sums of floats, and none by a user's operator.
#if defined(EXACT) && !defined(SEGMENTED)
    IN_VECTORS
#endif
    for (uint k = 1; k < count; k++) {
        const THING own = TOTAL(TAKEN(x[AT(base + place + k, n)]), MARKED(marks, place + k));
        total = THING_OP(total, own);
    }
    return total;
}

#ifdef VECTORS
#define UNROLL _Pragma("unroll")
#define OUT16 CAT(OUT, 16)
// Where 16 neighbours lie whose first is the i-th, and their order there.
#ifdef REVERSE
#define AT16(i, len) ((len) - 16 - (i))
#define IN_ORDER(v) (v).sfedcba9876543210
#else
#define AT16(i, len) (i)
#define IN_ORDER(v) (v)
#endif

// Puts the k-th elements of 16 runs, from element `at` on, into column[k].
static inline void take_runs(__global const T* x, OFFSET_T at, OFFSET_T n, A16* column)
{
    UNROLL
    for (uint k = 0; k < VEC; k++) {
        column[k] = IN_ORDER(TAKEN16(x + AT16(at + 16 * k, n)));
    }
    UNROLL
    for (uint d = 1; d < VEC; d *= 2) {
        A16 row[VEC];
        UNROLL
        for (uint k = 0; k < VEC; k++) {
            row[k] = column[k];
        }
        UNROLL
        for (uint k = 0; k < VEC / 2; k++) {
            column[k] = (A16)(row[2 * k].even, row[2 * k + 1].even);
            column[k + VEC / 2] = (A16)(row[2 * k].odd, row[2 * k + 1].odd);
        }
    }
}

// The way back, to the outputs from `at` on.
static inline void store_runs(__global OUT* out, OFFSET_T at, OFFSET_T outputs, A16* column)
{
    UNROLL
    for (uint d = 1; d < VEC; d *= 2) {
        A16 row[VEC];
        UNROLL
        for (uint k = 0; k < VEC; k++) {
            row[k] = column[k];
        }
        UNROLL
        for (uint k = 0; k < VEC / 2; k++) {
            column[2 * k].even = row[k].lo;
            column[2 * k].odd = row[k + VEC / 2].lo;
            column[2 * k + 1].even = row[k].hi;
            column[2 * k + 1].odd = row[k + VEC / 2].hi;
        }
    }
    UNROLL
    for (uint k = 0; k < VEC; k++) {
        vstore16(CAT(convert_, OUT16)(IN_ORDER(column[k])), 0, out + AT16(at + 16 * k, outputs));
    }
}

// A level of leaves_scan() in the lanes of a vector, each of which holds the total of its 2^b neighbours: with those of bit b of
// the lower and of the upper half of twice as many.
#define LEVEL(bit, lower, upper)                                               \
    for (uint h = 0; h < 2; h++) {                                             \
        const A16 low = total[h].lower;                                        \
        before[h] = select(before[h], OP16(low, before[h]), (lane & bit) != 0); \
        total[h] = OP16(low, total[h].upper);                                  \
    }

// leaves_scan() of a whole chunk's runs; the total of the chunk.
static inline A whole_chunk_scan(__global const T* x, OFFSET_T at, OFFSET_T n, A16* before)
{
    const CAT(A_BITS, 16) lane = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    A16 total[2];
    UNROLL
    for (uint h = 0; h < 2; h++) {
        A16 column[VEC];
        take_runs(x, at + h * 16 * VEC, n, column);
        total[h] = column[0];
        UNROLL
        for (uint k = 1; k < VEC; k++) {
            total[h] = OP16(total[h], column[k]);
        }
        before[h] = OP_IDENTITY;
    }
    LEVEL(1, s0022446688aaccee, s1133557799bbddff)
    LEVEL(2, s000044448888cccc, s22226666aaaaeeee)
    LEVEL(4, s0000000088888888, s44444444cccccccc)
    LEVEL(8, s0000000000000000, s8888888888888888)
    before[1] = OP16(total[0], before[1]);
    return OP(total[0].s0, total[1].s0);
}

// The results of a whole chunk.
static inline void store_chunk(
    __global const T* x, OFFSET_T at, OFFSET_T n, __global OUT* out, OFFSET_T outputs, A carry, A chunk, uint inclusive)
{
    A16 before[2];
    whole_chunk_scan(x, at, n, before);
    for (uint h = 0; h < 2; h++) {
        A16 column[VEC], acc = OP16((A16)carry, OP16((A16)chunk, before[h]));
        take_runs(x, at + h * 16 * VEC, n, column);
        UNROLL
        for (uint k = 0; k < VEC; k++) {
            const A16 next = OP16(acc, column[k]);
            column[k] = inclusive ? next : acc;
            acc = next;
        }
        store_runs(out, at + h * 16 * VEC, outputs, column);
    }
}
#endif

#ifndef EXACT
// What precedes each of the runs from `place` of the tile on in their chunk; the total of the chunk, if it is whole.
static inline THING chunk_scan(
    __global const T* x, OFFSET_T base, uint place, OFFSET_T n, const uint* marks, THING* before)
{
    THING total[CHUNK_RUNS];
    if (n - base - place >= CHUNK_RUNS * VEC) {
        for (uint q = 0; q < CHUNK_RUNS; q++) {
            total[q] = run_total(x, base, place + q * VEC, VEC, n, marks);
        }
    } else {
        for (uint q = 0; q < CHUNK_RUNS; q++) {
            const OFFSET_T run = base + place + q * VEC;
            total[q] = THING_IDENTITY;
            if (run < n) {
                total[q] = run_total(x, base, place + q * VEC, min((OFFSET_T)VEC, n - run), n, marks);
            }
        }
    }
    leaves_scan(total, before, CHUNK_RUNS);
    return total[0];
}

// The same of the chunks of a tile.
static inline THING tile_scan(__global const T* x, OFFSET_T base, OFFSET_T n, const uint* marks, THING* before)
{
    THING total[CHUNKS], unused[CHUNK_RUNS];
    for (uint c = 0; c < CHUNKS; c++) {
        const uint place = c * (CHUNK_RUNS * VEC);
        total[c] = THING_IDENTITY;
#ifdef VECTORS
        if (n - base >= place + CHUNK_RUNS * VEC) {
            A16 unused_runs[2];
            total[c] = whole_chunk_scan(x, base + place, n, unused_runs);
            continue;
        }
#endif
        if (base + place < n) {
            total[c] = chunk_scan(x, base, place, n, marks, unused);
        }
    }
    leaves_scan(total, before, CHUNKS);
    return total[0];
}
#endif

// totals[t] for the whole tiles t < tiles.
KERNEL void scan_totals(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global THING* totals,
    const OFFSET_T tiles HEAD_PARAMS)
{
    __global const T* x = in_base + in_offset;
    const OFFSET_T end = END_TILE(tiles);
    for (OFFSET_T tile = FIRST_TILE(tiles); tile < end; tile += NEXT_TILE) {
        uint marks[MARKS];
        mark_tile(marks, tile, n HEAD_PASS);
#ifdef EXACT
        const THING total = run_total(x, tile * TILE, 0, TILE, n, marks);
#else
        THING before[CHUNKS];
        const THING total = tile_scan(x, tile * TILE, n, marks, before);
#endif
        THING_PUT(totals[tile], total);
    }
}

// There are n results or, if exclusive, n + 1.
KERNEL void scan_tiles(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global OUT* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global const THING* totals, const OFFSET_T tiles, const A initial,
    const uint inclusive HEAD_PARAMS)
{
    __global const T* x = in_base + in_offset;
    __global OUT* out = out_base + out_offset;
    const OFFSET_T end = END_TILE(tiles);
    for (OFFSET_T tile = FIRST_TILE(tiles); tile < end; tile += NEXT_TILE) {
        const OFFSET_T base = tile * TILE;
        const uint stop = min((OFFSET_T)TILE, n - min(base, n));
        const A carry = carry_of(totals, tile, tiles, initial);
        A acc = carry;
        uint marks[MARKS];
        mark_tile(marks, tile, n HEAD_PASS);
#ifdef EXACT
        if (inclusive) {
            IN_EIGHTS
            for (uint i = 0; i < stop; i++) {
                acc = OP(RESTARTED(initial, acc, MARKED(marks, i)), TAKEN(x[AT(base + i, n)]));
                store_acc(out + AT(base + i, outputs), acc);
            }
        } else {
            IN_EIGHTS
            for (uint i = 0; i < stop; i++) {
                const A value = TAKEN(x[AT(base + i, n)]);
                acc = RESTARTED(initial, acc, MARKED(marks, i));
                store_acc(out + AT(base + i, outputs), acc);
                acc = OP(acc, value);
            }
        }
#else
        THING chunk[CHUNKS], before[CHUNK_RUNS];
        tile_scan(x, base, n, marks, chunk);
        for (uint c = 0; c * (CHUNK_RUNS * VEC) < stop; c++) {
            const uint first = c * (CHUNK_RUNS * VEC);
#ifdef VECTORS
            if (stop - first >= CHUNK_RUNS * VEC) {
                store_chunk(x, base + first, n, out, outputs, carry, chunk[c], inclusive);
                continue;
            }
#endif
            chunk_scan(x, base, first, n, marks, before);
            for (uint q = 0; q < CHUNK_RUNS && first + q * VEC < stop; q++) {
                const uint run = first + q * VEC, count = min((uint)VEC, stop - run);
                const THING preceding = THING_OP(chunk[c], before[q]);
                acc = THING_CARRY(initial, carry, preceding);
                for (uint k = 0; k < count; k++) {
                    const A value = TAKEN(x[AT(base + run + k, n)]);
                    acc = RESTARTED(initial, acc, MARKED(marks, run + k));
                    const A next = OP(acc, value);
                    store_acc(out + AT(base + run + k, outputs), inclusive ? next : acc);
                    acc = next;
                }
            }
        }
        // Behind a whole run starts another.
        if (outputs > n && stop < TILE && stop % VEC == 0) {
            const uint run = stop / VEC;
            if (run % CHUNK_RUNS == 0) {
                before[0] = THING_IDENTITY;
            }
            const THING preceding = THING_OP(chunk[run / CHUNK_RUNS], before[run % CHUNK_RUNS]);
            acc = THING_CARRY(initial, carry, preceding);
        }
#endif
        // The total, where it is asked for.
        if (outputs > n && stop < TILE) {
            store_acc(out + AT(n, outputs), acc);
        }
    }
}

#else

// Eight teams have a chunk each in every row of a tile; a team's item has OWN neighbours of 32 runs, or of tiles.
#define TEAMS 8
#define LANES (WG / TEAMS)
#define OWN (32 / LANES)
#define ROWS (CHUNKS / TEAMS)
#define RUNS (ROWS * OWN)

// Private arrays lie in registers where the loops over them are unrolled. CPU drivers would only take longer to compile.
// EXCHANGE: accumulators in local memory through which items exchange one in every row, if not by shuffles.
#ifdef SHUFFLES
#define UNROLL _Pragma("unroll")
#define EXCHANGE 1
#else
#define UNROLL
#define EXCHANGE (ROWS * WG)
#endif
#if defined(SEGMENTED) && !defined(SHUFFLES)
#define WORDS WG
#else
#define WORDS SG_SCRATCH_WORDS
#endif
#define SCRATCH __local A *exchange, __local uint *words

// Rows that are combined at a time, and where what precedes each run in its chunk waits: on NVIDIA's GPUs in local memory, so that
// registers for more work-groups are left.
#if SG_BACKEND == SG_PTX
#define BATCH 2
#define BEFORE __local A*
#define BEFORE_OF(before, k) (before)[(k) * WG + get_local_id(0)]
#define BEFORE_ARRAY(before) __local A before[RUNS * WG]
#else
#define BATCH ROWS
#define BEFORE A*
#define BEFORE_OF(before, k) (before)[k]
#define BEFORE_ARRAY(before) A before[RUNS]
#endif

// A bit for each element of an item's runs, and those of run k.
#ifdef SEGMENTED
#define MARKS ((RUNS * VEC + 31) / 32)
#define MARK_RUNS (RUNS / MARKS)
#define RUN_MARKS(marks, k) ((marks)[(k) * VEC / 32] >> (k) * VEC % 32 & ((1u << VEC) - 1))
#define MARKED(heads, j) ((heads) >> (j) & 1)
#else
#define MARKS 1
#define RUN_MARKS(marks, k) 0u
#define MARKED(heads, j) 0u
#endif
// What branches give goes by way of an item's word in local memory, where PoCL might take it for what all items have.
#ifdef SHUFFLES
#define OWN_MARKS(m) marks[m]
#else
#define OWN_WORD ((volatile __local uint*)words)[get_local_id(0)]
#define OWN_MARKS(m) OWN_WORD
#endif
// Words of local memory that have a bit for each element of a tile.
#ifdef BY_OFFSETS
#define TILE_WORDS (TILE / 32)
#else
#define TILE_WORDS 1
#endif

// One level between items: `other` has the totals of the other half, before the item's own if that is the upper one. Bit r of a
// word tells of row r whether a total has a head, or what precedes has one.
INLINED void join(
    const uint rows, const uint own, const bool upper, const A* other, const uint other_heads, A* total, uint* heads,
    A* before, uint* cut)
{
    UNROLL
    for (uint r = 0; r < rows; r++) {
        // Chosen of values that are there: of branches PoCL might take what they choose for what all items have.
        const A sum = total[r * own], more = other[r], front = OP(more, sum), back = OP(sum, more);
        UNROLL
        for (uint k = 0; k < own; k++) {
            const A old = before[r * own + k], both = OP(more, old), joined = MARKED(cut[k], r) ? old : both;
            before[r * own + k] = upper ? joined : old;
        }
        const A in_front = MARKED(heads[0], r) ? sum : front, behind = MARKED(other_heads, r) ? more : back;
        total[r * own] = upper ? in_front : behind;
    }
#ifdef SEGMENTED
    UNROLL
    for (uint k = 0; k < own; k++) {
        cut[k] |= upper ? other_heads : 0;
    }
    heads[0] |= other_heads;
#endif
}

// before() of each of a team's things, in `rows` rows of which every item has `own` neighbours; their total in
// total[r * own], in every item. All items of the work-group call it, in uniform flow. `heads` and `cut` have a word for each
// neighbour: on entry heads of the things, afterwards in the first one those of the totals, and in `cut` those of before().
INLINED void team_scan(const uint rows, const uint own, A* total, uint* heads, A* before, uint* cut, SCRATCH)
{
    UNROLL
    for (uint k = 0; k < rows * own; k++) {
        before[k] = OP_IDENTITY;
    }
#ifdef SEGMENTED
    UNROLL
    for (uint k = 0; k < own; k++) {
        cut[k] = 0;
    }
#endif
    UNROLL
    for (uint d = 1; d < own; d *= 2) {
        UNROLL
        for (uint k = 0; k < rows * own; k++) {
            if (k & d) {
                before[k] = JOINED(total[k & ~(2 * d - 1)], before[k], MARKED(cut[k % own], k / own));
            }
        }
        UNROLL
        for (uint k = 0; k < rows * own; k += 2 * d) {
            total[k] = JOINED(total[k], total[k + d], MARKED(heads[(k + d) % own], k / own));
        }
#ifdef SEGMENTED
        UNROLL
        for (uint k = 0; k < own; k++) {
            if (k & d) {
                cut[k] |= heads[k & ~(2 * d - 1)];
            }
        }
        UNROLL
        for (uint k = 0; k < own; k += 2 * d) {
            heads[k] |= heads[k + d];
        }
#endif
    }
    const uint item = get_local_id(0);
    for (uint d = 1; d < LANES; d *= 2) {
        A other[ROWS];
        uint other_heads = 0;
#ifdef SHUFFLES
        UNROLL
        for (uint r = 0; r < rows; r++) {
            other[r] = shuffle_xor_acc(total[r * own], d, words);
        }
#ifdef SEGMENTED
        other_heads = sg_shuffle_xor_u32(heads[0], d, words);
#endif
#else
        for (uint r = 0; r < rows; r++) {
            exchange[r * WG + item] = total[r * own];
        }
#ifdef SEGMENTED
        words[item] = heads[0];
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint r = 0; r < rows; r++) {
            other[r] = exchange[r * WG + (item ^ d)];
        }
#ifdef SEGMENTED
        other_heads = words[item ^ d];
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        join(rows, own, (item & d) != 0, other, other_heads, total, heads, before, cut);
    }
}

// The place of the item's run k in its tile.
static inline uint place_of(uint k)
{
    return (k / OWN * (32 * TEAMS) + (uint)get_local_id(0) * OWN + k % OWN) * VEC;
}

// Behind the item's last element in its tile. Each item decides for itself whether all of its elements are there: loops in
// branches that all take are what PoCL gets wrong, now and then.
#define ITEM_END (place_of(RUNS - 1) + VEC)

// Where an item keeps the elements of its runs: with ASIDE in local memory, past the registers.
#ifdef ASIDE
#define RAW __local TV*
#define RAW_OF(raw, k) (raw)[(k) * WG + get_local_id(0)]
#define RAW_ARRAY(raw) __local TV raw[RUNS * WG]
#else
#define RAW TV*
#define RAW_OF(raw, k) (raw)[k]
#define RAW_ARRAY(raw) TV raw[RUNS]
#endif

// With ASIDE the copies may still be on their way.
static inline void load_tile(__global const T* x, OFFSET_T base, OFFSET_T n, RAW raw)
{
    if (n - base >= ITEM_END) {
        UNROLL
        for (uint k = 0; k < RUNS; k++) {
#ifdef ASIDE
            copy_aside(&RAW_OF(raw, k), x + RUN_AT(base + place_of(k), n));
#else
            raw[k] = load_vec(x + RUN_AT(base + place_of(k), n));
#endif
        }
    } else {
        UNROLL
        for (uint k = 0; k < RUNS; k++) {
            T run[VEC];
            for (uint j = 0; j < VEC; j++) {
                const OFFSET_T i = base + place_of(k) + j;
                // A function of the caller's may not take any value.
#ifdef MAPPED
                run[IN_RUN(j)] = x[AT(min(i, n - 1), n)];
#elif defined(OPERATOR)
                run[IN_RUN(j)] = i < n ? x[AT(i, n)] : op_identity();
#else
                run[IN_RUN(j)] = i < n ? x[AT(i, n)] : (T)0;
#endif
            }
            RAW_OF(raw, k) = VLOAD(0, run);
        }
    }
}

// What is taken of a run's elements, the first one first.
static inline void take_run(TV raw, A* a)
{
#ifdef REVERSE
    A turned[VEC];
    unpack(raw, turned);
    for (uint j = 0; j < VEC; j++) {
        a[j] = turned[VEC - 1 - j];
    }
#else
    unpack(raw, a);
#endif
}

// Where segments start among the item's elements of the tile. All items call it, in uniform flow, when none reads `words` any
// more; `bits` may be used again after the next barrier.
INLINED void mark_tile(__local uint* bits, __local uint* words, uint* marks, OFFSET_T tile, OFFSET_T n HEAD_PARAMS)
{
#ifdef BY_OFFSETS
    UNROLL
    for (uint k = 0; k < MARKS; k++) {
        marks[k] = 0;
    }
    for (uint k = get_local_id(0); k < TILE_WORDS; k += WG) {
        bits[k] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    mark_offsets(bits, tile, n HEAD_PASS);
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL
    for (uint k = 0; k < RUNS; k++) {
        const uint place = place_of(k);
        marks[k * VEC / 32] |= (bits[place / 32] >> place % 32 & ((1u << VEC) - 1)) << k * VEC % 32;
    }
#elif defined(SEGMENTED)
    const OFFSET_T base = tile * TILE;
    UNROLL
    for (uint m = 0; m < MARKS; m++) {
        OWN_MARKS(m) = 0;
        if (n - base >= ITEM_END) {
            UNROLL
            for (uint k = m * MARK_RUNS; k < (m + 1) * MARK_RUNS; k++) {
                OWN_MARKS(m) |= run_heads(true, base, place_of(k), n HEAD_PASS) << k * VEC % 32;
            }
        } else {
            UNROLL
            for (uint k = m * MARK_RUNS; k < (m + 1) * MARK_RUNS; k++) {
                OWN_MARKS(m) |= run_heads(false, base, place_of(k), n HEAD_PASS) << k * VEC % 32;
            }
        }
        marks[m] = OWN_MARKS(m);
    }
#endif
}

// The elements of a tile, and its marks. Those by offsets take some loads, each of which waits for the one before: meanwhile the
// elements are on their way, H200, 2^28 u32 in segments of 256, 812 us for 842. Keys are loads like theirs, which go first: segments
// of 16, 902 us for 938.
INLINED void fetch_tile(
    __global const T* x, OFFSET_T tile, OFFSET_T n, RAW raw, __local uint* bits, __local uint* words,
    uint* marks HEAD_PARAMS)
{
#ifndef BY_OFFSETS
    mark_tile(bits, words, marks, tile, n HEAD_PASS);
#endif
    load_tile(x, tile * TILE, n, raw);
#ifdef BY_OFFSETS
    mark_tile(bits, words, marks, tile, n HEAD_PASS);
#endif
#ifdef ASIDE
    await_copies();
#endif
}

static inline A run_total(TV raw, uint heads)
{
    A a[VEC];
    take_run(raw, a);
    A total = a[0];
    for (uint j = 1; j < VEC; j++) {
        total = JOINED(total, a[j], MARKED(heads, j));
    }
    return total;
}

// The scan of BATCH rows of chunks from row r on: what precedes the item's runs in their chunks, with heads as team_scan has them;
// the chunks' totals go to `node`, unless they are `known`. All items call it, in uniform flow.
INLINED void rows_scan(
    const RAW raw, const uint* marks, const uint r, A* preceding, uint* cuts, const bool known, __local THING* node,
    SCRATCH)
{
    const uint item = get_local_id(0), lane = item % LANES, team = item / LANES;
    A total[BATCH * OWN];
    uint heads[OWN];
    UNROLL
    for (uint k = 0; k < OWN; k++) {
        heads[k] = 0;
        cuts[k] = 0;
    }
    UNROLL
    for (uint k = 0; k < BATCH * OWN; k++) {
        const uint run = r * OWN + k;
        total[k] = run_total(RAW_OF(raw, run), RUN_MARKS(marks, run));
#ifdef SEGMENTED
        heads[k % OWN] |= (uint)(RUN_MARKS(marks, run) != 0) << k / OWN;
#endif
    }
    team_scan(BATCH, OWN, total, heads, preceding, cuts, exchange, words);
    if (lane == 0 && !known) {
        UNROLL
        for (uint q = 0; q < BATCH; q++) {
            const THING chunk_total = TOTAL(total[q * OWN], MARKED(heads[0], q));
            THING_PUT(node[(r + q) * TEAMS + team], chunk_total);
        }
    }
}

// The scan of the tile's chunks, by all teams of a sub-group: what precedes those of the item, and the total of the tile.
INLINED THING chunks_scan(__local const THING* node, A* preceding, uint* preceding_heads, SCRATCH)
{
    const uint lane = (uint)get_local_id(0) % LANES;
    A chunk[2 * OWN];
    uint heads[2 * OWN];
    for (uint k = 0; k < 2 * OWN; k++) {
        const THING own = THING_GET(node[lane * 2 * OWN + k]);
        chunk[k] = VALUE(own);
        heads[k] = HEAD(own);
        preceding_heads[k] = 0;
    }
    team_scan(1, 2 * OWN, chunk, heads, preceding, preceding_heads, exchange, words);
    return TOTAL(chunk[0], heads[0]);
}

// What precedes each of the item's runs in its chunk, with heads as team_scan has them, and the total of the tile. What
// precedes the chunks is in node[CHUNKS] and on after the next barrier. All items call it, in uniform flow; `node` holds
// 2 * CHUNKS; the chunks' totals are there, if they are `known`.
INLINED void tile_scan(
    const RAW raw, const uint* marks, BEFORE before, uint* cut, THING* sum, const bool known, __local THING* node,
    SCRATCH)
{
    const uint item = get_local_id(0), lane = item % LANES, team = item / LANES;
    A preceding[2 * OWN];
    uint preceding_heads[2 * OWN];
    UNROLL
    for (uint k = 0; k < OWN; k++) {
        cut[k] = 0;
    }
    UNROLL
    for (uint r = 0; r < ROWS; r += BATCH) {
        A preceding_runs[BATCH * OWN];
        uint cuts[OWN];
        rows_scan(raw, marks, r, preceding_runs, cuts, known, node, exchange, words);
        UNROLL
        for (uint k = 0; k < BATCH * OWN; k++) {
            BEFORE_OF(before, r * OWN + k) = preceding_runs[k];
        }
        UNROLL
        for (uint k = 0; k < OWN; k++) {
            cut[k] |= cuts[k] << r;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    *sum = chunks_scan(node, preceding, preceding_heads, exchange, words);
    if (team == 0) {
        for (uint k = 0; k < 2 * OWN; k++) {
            const THING own = TOTAL(preceding[k], preceding_heads[k]);
            THING_PUT(node[CHUNKS + lane * 2 * OWN + k], own);
        }
    }
#ifndef SHUFFLES
    // Without it PoCL 5.0 (LLVM 16) loses totals of bytes in segments between here and the next one.
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

#if defined(LOOK_BACK) && defined(SHUFFLES)
// The total of the tile, in item 0, by less than its scan takes, since others wait for it. The chunks' totals are in `node`
// afterwards if CHUNKS_KNOWN. H200, 2^28 elements: u32 686 -> 628 us, u64 1.39 -> 1.22 ms, f32 693 -> 644 us. All items call it, in
// uniform flow; `sums` holds TEAMS.
#if defined(EXACT) && !defined(SEGMENTED)
#define CHUNKS_KNOWN 0
#else
#define CHUNKS_KNOWN 1
#endif
INLINED THING tile_total_first(
    const RAW raw, const uint* marks, __local THING* node, __local THING* sums, SCRATCH)
{
    const uint item = get_local_id(0);
#if !CHUNKS_KNOWN
    // In whatever order.
    A total = run_total(RAW_OF(raw, 0), 0);
    UNROLL
    for (uint k = 1; k < RUNS; k++) {
        total = OP(total, run_total(RAW_OF(raw, k), 0));
    }
    UNROLL
    for (uint d = 1; d < LANES; d *= 2) {
        total = OP(total, shuffle_xor_acc(total, d, words));
    }
    if (item % LANES == 0) {
        sums[item / LANES] = total;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        UNROLL
        for (uint t = 1; t < TEAMS; t++) {
            total = OP(total, sums[t]);
        }
    }
    return total;
#else
    UNROLL
    for (uint r = 0; r < ROWS; r += BATCH) {
        A unused[BATCH * OWN];
        uint unused_cuts[OWN];
        rows_scan(raw, marks, r, unused, unused_cuts, false, node, exchange, words);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    THING total = THING_IDENTITY;
    // A whole sub-group.
    if (item < max((uint)LANES, (uint)sg_size())) {
        A unused[2 * OWN];
        uint unused_heads[2 * OWN];
        total = chunks_scan(node, unused, unused_heads, exchange, words);
    }
    return total;
#endif
}
#endif

// Writes the item's results of the tile, `carry` being what precedes the tile.
static inline void store_tile(
    __global OUT* out, OFFSET_T base, OFFSET_T outputs, const RAW raw, const uint* marks, const BEFORE before,
    const uint* cut, __local const THING* node, A initial, A carry, uint inclusive)
{
    const uint team = (uint)get_local_id(0) / LANES;
    UNROLL
    for (uint k = 0; k < RUNS; k++) {
        A a[VEC];
        take_run(RAW_OF(raw, k), a);
        OUT run[VEC];
        const THING own = TOTAL(BEFORE_OF(before, k), MARKED(cut[k % OWN], k / OWN));
        const THING chunk = THING_GET(node[CHUNKS + k / OWN * TEAMS + team]), preceding = THING_OP(chunk, own);
        A acc = THING_CARRY(initial, carry, preceding);
        for (uint j = 0; j < VEC; j++) {
            acc = RESTARTED(initial, acc, MARKED(RUN_MARKS(marks, k), j));
            const A next = OP(acc, a[j]);
            run[IN_RUN(j)] = narrow_acc(inclusive ? next : acc);
            acc = next;
        }
        const OFFSET_T first = base + place_of(k);
        if (outputs - base >= place_of(k) + VEC) {
            store_run(out + RUN_AT(first, outputs), run);
        } else {
            for (uint j = 0; j < VEC; j++) {
                if (first + j < outputs) {
                    out[AT(first + j, outputs)] = run[IN_RUN(j)];
                }
            }
        }
    }
}

#ifdef LOOK_BACK

// A published total is a word, of eight bytes two: the low half is the value's, the other has the head in bit 0 and the launch's
// turn, which no word has before, in those above it.
#define TOTAL_WORDS (A_BYTES == 8 ? 2 : 1)

static inline ulong bits_of(A x)
{
#if A_BYTES == 8
#ifdef A_FLOAT
    return as_ulong(x);
#else
    return (ulong)x;
#endif
#elif defined(A_FLOAT)
    return as_uint(x);
#else
    return (A_UNSIGNED)x;
#endif
}

static inline A value_of(ulong bits)
{
#if A_BYTES == 8
#ifdef A_FLOAT
    return as_double(bits);
#else
    return (A)bits;
#endif
#elif defined(A_FLOAT)
    return as_float((uint)bits);
#else
    return (A)bits;
#endif
}

static inline void publish(volatile __global ulong* totals, OFFSET_T at, THING x, uint turn)
{
    const ulong bits = bits_of(VALUE(x)), there = (ulong)(turn << 1 | HEAD(x)) << 32;
    for (uint w = 0; w < TOTAL_WORDS; w++) {
        store_relaxed_u64(totals + at * TOTAL_WORDS + w, there | (bits >> (32 * w) & 0xffffffffu));
    }
}

// Whether a total is there; if so, it is put into `total`.
static inline bool look(volatile __global ulong* totals, OFFSET_T at, THING* total, uint turn)
{
    ulong found = 0, word = 0;
    bool there = true;
    for (uint w = 0; w < TOTAL_WORDS; w++) {
        word = load_relaxed_u64(totals + at * TOTAL_WORDS + w);
        there = there && word >> 33 == turn;
        found |= (word & 0xffffffffu) << (32 * w);
    }
    if (there) {
        *total = TOTAL(value_of(found), (uint)(word >> 32) & 1);
    }
    return there;
}

// Puts the total of a thing behind those of the k before it: stack[b] has that of the last 2^b, for the bits that are set in
// their number. The return value is that of the things that end with this one, as many as a power of two.
static inline THING push(THING* stack, uint k, THING total)
{
    uint b = 0;
    for (; k >> b & 1; b++) {
        total = THING_OP(stack[b], total);
    }
    stack[b] = total;
    return total;
}

// The total of a tile, from its elements if it is not published.
static inline THING tile_total(
    __global const T* x, OFFSET_T n, volatile __global ulong* totals, OFFSET_T tile, uint turn HEAD_PARAMS)
{
    THING stack[12], total = THING_IDENTITY;
    if (look(totals, tile, &total, turn)) {
        return total;
    }
    for (uint q = 0; q < TILE_RUNS; q++) {
#ifdef SEGMENTED
        const uint heads = run_heads(true, tile * TILE, q * VEC, n HEAD_PASS);
#else
        const uint heads = 0;
#endif
        const A run = run_total(load_vec(x + RUN_AT(tile * TILE + q * VEC, n)), heads);
        total = push(stack, q, TOTAL(run, heads != 0));
    }
    // In place, elements are results once their total is there.
    fence_device();
    if (!look(totals, tile, &total, turn)) {
        publish(totals, tile, total, turn);
    }
    return total;
}

// The total of thing `index` of a level, that is of 32^level tiles, where it is not published.
static __attribute__((noinline)) THING missing_total(
    __global const T* x, OFFSET_T n, volatile __global ulong* totals, OFFSET_T index, uint level, uint turn HEAD_PARAMS)
{
    THING stack[LEVELS * 5], total = THING_IDENTITY;
    const OFFSET_T first = index << (5 * level), count = (OFFSET_T)1 << (5 * level);
    for (OFFSET_T k = 0; k < count; k++) {
        total = tile_total(x, n, totals, first + k, turn HEAD_PASS);
        OFFSET_T q = k;
        uint l = 0;
        for (; l < level && q % 32 == 31; l++) {
            THING before = THING_IDENTITY;
            for (uint b = 0; b < 5; b++) {
                before = THING_OP(stack[l * 5 + b], before);
            }
            total = THING_OP(before, total);
            q /= 32;
        }
        if (l < level) {
            push(stack + l * 5, q % 32, total);
        }
    }
    return total;
}

// What an item finds goes to value[k] and heads[k], as above.
#ifdef SHUFFLES
#define KEEP(k, found) (value[k] = VALUE(found), heads[k] = HEAD(found))
#define KEPT(k)
#else
#ifdef SEGMENTED
#define OWN_HEAD OWN_WORD
#else
#define OWN_HEAD heads[0]
#endif
#define OWN_VALUE ((volatile __local A*)exchange)[item]
#define KEEP(k, found) (OWN_VALUE = VALUE(found), OWN_HEAD = HEAD(found))
#define KEPT(k) (value[k] = OWN_VALUE, heads[k] = OWN_HEAD)
#endif

// Of several tiles, `state` has 16 bytes for the ticket, then words as the spine has totals: all 0, or of other turns. There are
// n results or, if exclusive, n + 1.
KERNEL SG_KERNEL void scan_look_back(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global OUT* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global ulong* state, const OFFSET_T tiles, const A initial, const uint inclusive,
    const uint in_place, const uint spins, const uint turn HEAD_PARAMS)
{
    __local THING node[2 * CHUNKS];
    __local THING digit[TEAMS];
#ifdef SHUFFLES
    __local THING blocks_before[TEAMS];
#endif
    __local A exchange[EXCHANGE];
    __local uint words[WORDS];
    __local uint bits[TILE_WORDS];
    __local uint taken[1];
    BEFORE_ARRAY(before);
    __global const T* x = in_base + in_offset;
    __global OUT* out = out_base + out_offset;
    volatile __global ulong* totals = state + 2;
    const uint item = get_local_id(0), lane = item % LANES, team = item / LANES;
    const OFFSET_T tile = TAKE_TILE(state, taken, tiles);
    RAW_ARRAY(raw);
    uint marks[MARKS], cut[OWN];
    THING sum;
    fetch_tile(x, tile, n, raw, bits, words, marks HEAD_PASS);
#ifdef SHUFFLES
    sum = tile_total_first(raw, marks, node, digit, exchange, words);
#else
    tile_scan(raw, marks, before, cut, &sum, false, node, exchange, words);
#endif
    const bool speaks = !silent(tile);
    delay(tile, state);
    if (item == 0 && tile + 1 < tiles && speaks) {
        publish(totals, tile, sum, turn);
        if (in_place) {
            // Who misses it has read the elements before they are overwritten.
            fence_device();
        }
    }
#ifdef SHUFFLES
    tile_scan(raw, marks, before, cut, &sum, CHUNKS_KNOWN, node, exchange, words);
#endif

    // A team waits for the words of one level; one without a level, for the tiles of a block just before this one's, so that
    // nobody waits until that is told of.
    uint levels = 1;
    for (OFFSET_T above = (tiles - 1) / 32; above > 0; above /= 32) {
        levels++;
    }
#ifdef SHUFFLES
    const uint recent = min(TEAMS - levels, (uint)(tile / 32 % 32)), nth = team - levels;
    const bool helps = team >= levels && nth < recent;
#else
    const uint recent = 0, nth = 0;
    const bool helps = false;
#endif
    const uint own_level = helps ? 0 : min(team, levels);
    const OFFSET_T index = helps ? tile / 32 * 32 - nth * 32 : team < levels ? tile >> (5 * own_level) : 0;
    const uint own = helps ? 32 : index % 32, waits = own - (team == 1 ? recent : 0);
    OFFSET_T at = 0, count = tiles;
    for (uint l = 0; l < own_level; l++) {
        at += count;
        count = (count - 1) / 32 + 1;
    }
    A value[OWN], preceding[OWN];
    uint heads[OWN], preceding_heads[OWN];
    for (uint k = 0; k < OWN; k++) {
        const uint leaf = lane * OWN + k;
        THING found = THING_IDENTITY;
        KEEP(k, found);
        if (leaf < waits) {
            const OFFSET_T wanted = index - own + leaf;
            bool there = false;
            for (uint looks = 0; looks < SPINS(spins) && !there; looks++) {
                there = look(totals, at + wanted, &found, turn);
                if (there) {
                    KEEP(k, found);
                }
            }
            if (!there) {
                found = missing_total(x, n, totals, wanted, own_level, turn HEAD_PASS);
                KEEP(k, found);
            }
        }
        KEPT(k);
        preceding_heads[k] = 0;
    }
#ifdef SHUFFLES
    A sums[OWN];
    uint sum_heads[OWN];
    UNROLL
    for (uint k = 0; k < OWN; k++) {
        sums[k] = value[k];
        sum_heads[k] = heads[k];
    }
    team_scan(1, OWN, sums, sum_heads, preceding, preceding_heads, exchange, words);
    if (helps && lane == LANES - 1) {
        const THING before_last = TOTAL(preceding[OWN - 1], preceding_heads[OWN - 1]);
        const THING block = THING_OP(before_last, TOTAL(value[OWN - 1], heads[OWN - 1]));
        THING_PUT(blocks_before[nth], block);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < OWN; k++) {
        const uint leaf = lane * OWN + k;
        if (team == 1 && leaf >= waits && leaf < own) {
            const THING block = THING_GET(blocks_before[own - 1 - leaf]);
            KEEP(k, block);
        }
        preceding_heads[k] = 0;
    }
#endif
    team_scan(1, OWN, value, heads, preceding, preceding_heads, exchange, words);
    const OFFSET_T blocks = (tiles - 1) / 32 + 1;
    for (uint k = 0; k < OWN; k++) {
        if (team < levels && lane * OWN + k == own) {
            const THING found = TOTAL(preceding[k], preceding_heads[k]);
            THING_PUT(digit[team], found);
            // At once, since it is what others wait for.
            if (team == 0 && own == 31 && tile / 32 + 1 < blocks && speaks) {
                publish(totals, tiles + tile / 32, THING_OP(found, sum), turn);
            }
        }
    }
    // Of a silent tile in place, others cannot add up what is overwritten next.
    if (item == 0 && tile + 1 < tiles && in_place && !speaks) {
        publish(totals, tile, sum, turn);
        fence_device();
    }
    // In place, what was published goes before what overwrites the input.
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    A carry = initial;
    for (uint l = levels; l > 0; l--) {
        const THING own_digit = THING_GET(digit[l - 1]);
        carry = THING_CARRY(initial, carry, own_digit);
    }
    if (item == 0 && tile % 32 == 31 && speaks) {
        THING block = THING_OP(THING_GET(digit[0]), sum);
        OFFSET_T q = tile / 32;
        at = tiles;
        count = blocks;
        for (uint level = 1; level + 1 < LEVELS && q % 32 == 31; level++) {
            block = THING_OP(THING_GET(digit[level]), block);
            at += count;
            count = (count - 1) / 32 + 1;
            q /= 32;
            if (q + 1 < count) {
                publish(totals, at + q, block, turn);
            }
        }
    }
    store_tile(out, tile * TILE, outputs, raw, marks, before, cut, node, initial, carry, inclusive);
}

#else

// totals[t] for the whole tiles t < tiles.
KERNEL SG_KERNEL void scan_totals(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global THING* totals,
    const OFFSET_T tiles HEAD_PARAMS)
{
    __local THING node[2 * CHUNKS];
    __local A exchange[EXCHANGE];
    __local uint words[WORDS];
    __local uint bits[TILE_WORDS];
    BEFORE_ARRAY(before);
    __global const T* x = in_base + in_offset;
    for (OFFSET_T tile = FIRST_TILE(tiles); tile < END_TILE(tiles); tile += NEXT_TILE) {
        RAW_ARRAY(raw);
        uint marks[MARKS], cut[OWN];
        THING sum;
        fetch_tile(x, tile, n, raw, bits, words, marks HEAD_PASS);
        tile_scan(raw, marks, before, cut, &sum, false, node, exchange, words);
        if (get_local_id(0) == 0) {
            THING_PUT(totals[tile], sum);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// There are n results or, if exclusive, n + 1.
KERNEL SG_KERNEL void scan_tiles(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global OUT* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global const THING* totals, const OFFSET_T tiles, const A initial,
    const uint inclusive HEAD_PARAMS)
{
    __local THING node[2 * CHUNKS];
    __local A exchange[EXCHANGE];
    __local uint words[WORDS];
    __local uint bits[TILE_WORDS];
    BEFORE_ARRAY(before);
    __global const T* x = in_base + in_offset;
    __global OUT* out = out_base + out_offset;
    for (OFFSET_T tile = FIRST_TILE(tiles); tile < END_TILE(tiles); tile += NEXT_TILE) {
        RAW_ARRAY(raw);
        uint marks[MARKS], cut[OWN];
        THING sum;
        fetch_tile(x, tile, n, raw, bits, words, marks HEAD_PASS);
        tile_scan(raw, marks, before, cut, &sum, false, node, exchange, words);
        barrier(CLK_LOCAL_MEM_FENCE);
        const A carry = carry_of(totals, tile, tiles, initial);
        store_tile(out, tile * TILE, outputs, raw, marks, before, cut, node, initial, carry, inclusive);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif
#endif
