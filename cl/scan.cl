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
// With LOOK_BACK one launch: work-groups take tiles in the order in which they start, publish their totals, and wait for
// those before theirs (Merrill & Garland 2016). before() needs totals alone, so no tile waits for what another waited for,
// but for the last ones of each block, which publish its total. A word that is not there after `spins` looks is computed by
// who needs it.
//
// Bytes: reads n elements twice, writes n, and 24 for each tile of 32 KiB; with LOOK_BACK reads them once.
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"
#include "lib/workgroup.cl"
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

// OUT_RUN: vectors of 16 bytes that a run's results fill.
#ifndef OUT_BYTES
#define OUT_BYTES T_BYTES
#endif
#define OUT_RUN (OUT_BYTES / T_BYTES)
#if OUT_BYTES == 1
#define OUTV CAT(OUT, 16)
#define OUT_VLOAD vload16
#define OUT_VSTORE vstore16
#elif OUT_BYTES == 2
#define OUTV CAT(OUT, 8)
#define OUT_VLOAD vload8
#define OUT_VSTORE vstore8
#elif OUT_BYTES == 4
#define OUTV CAT(OUT, 4)
#define OUT_VLOAD vload4
#define OUT_VSTORE vstore4
#else
#define OUTV CAT(OUT, 2)
#define OUT_VLOAD vload2
#define OUT_VSTORE vstore2
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
KERNEL void scan_spine(__global A* totals, const OFFSET_T first, const OFFSET_T count, const OFFSET_T above)
{
    spine_level(totals, first, count, above, get_global_id(0));
}
#endif

#if WG == 1

// One item has the tile to itself. Where no order is asked for, it goes through the elements one by one.
static inline A run_total(__global const T* x, OFFSET_T first, uint count, OFFSET_T n)
{
    A total = TAKEN(x[AT(first, n)]);
    for (uint k = 1; k < count; k++) {
        total = OP(total, TAKEN(x[AT(first + k, n)]));
    }
    return total;
}

#ifndef EXACT
// What precedes each of the runs from `first` on, below n, in their chunk; the total of the chunk, if it is whole.
static inline A chunk_scan(__global const T* x, OFFSET_T first, OFFSET_T n, A* before)
{
    A total[CHUNK_RUNS];
    if (n - first >= CHUNK_RUNS * VEC) {
        for (uint q = 0; q < CHUNK_RUNS; q++) {
            total[q] = run_total(x, first + q * VEC, VEC, n);
        }
    } else {
        for (uint q = 0; q < CHUNK_RUNS; q++) {
            const OFFSET_T run = first + q * VEC;
            total[q] = run < n ? run_total(x, run, min((OFFSET_T)VEC, n - run), n) : OP_IDENTITY;
        }
    }
    leaves_scan(total, before, CHUNK_RUNS);
    return total[0];
}

// The same of the chunks of a tile.
static inline A tile_scan(__global const T* x, OFFSET_T base, OFFSET_T n, A* before)
{
    A total[CHUNKS], unused[CHUNK_RUNS];
    for (uint c = 0; c < CHUNKS; c++) {
        const OFFSET_T first = base + c * (CHUNK_RUNS * VEC);
        total[c] = first < n ? chunk_scan(x, first, n, unused) : OP_IDENTITY;
    }
    leaves_scan(total, before, CHUNKS);
    return total[0];
}
#endif

// totals[t] for the whole tiles t < tiles.
KERNEL void scan_totals(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global A* totals, const OFFSET_T tiles)
{
    __global const T* x = in_base + in_offset;
    const OFFSET_T end = END_TILE(tiles);
    for (OFFSET_T tile = FIRST_TILE(tiles); tile < end; tile += NEXT_TILE) {
#ifdef EXACT
        totals[tile] = run_total(x, tile * TILE, TILE, n);
#else
        A before[CHUNKS];
        totals[tile] = tile_scan(x, tile * TILE, n, before);
#endif
    }
}

// There are n results or, if exclusive, n + 1.
KERNEL void scan_tiles(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global OUT* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global const A* totals, const OFFSET_T tiles, const A initial, const uint inclusive)
{
    __global const T* x = in_base + in_offset;
    __global OUT* out = out_base + out_offset;
    const OFFSET_T end = END_TILE(tiles);
    for (OFFSET_T tile = FIRST_TILE(tiles); tile < end; tile += NEXT_TILE) {
        const OFFSET_T base = tile * TILE, stop = min(base + TILE, n);
        const A carry = carry_of(totals, tile, tiles, initial);
        A acc = carry;
#ifdef EXACT
        if (inclusive) {
            for (OFFSET_T i = base; i < stop; i++) {
                acc = OP(acc, TAKEN(x[AT(i, n)]));
                store_acc(out + AT(i, outputs), acc);
            }
        } else {
            for (OFFSET_T i = base; i < stop; i++) {
                const A value = TAKEN(x[AT(i, n)]);
                store_acc(out + AT(i, outputs), acc);
                acc = OP(acc, value);
            }
        }
#else
        A chunk[CHUNKS], before[CHUNK_RUNS];
        tile_scan(x, base, n, chunk);
        for (uint c = 0; base + c * (CHUNK_RUNS * VEC) < stop; c++) {
            const OFFSET_T first = base + c * (CHUNK_RUNS * VEC);
            chunk_scan(x, first, n, before);
            for (uint q = 0; q < CHUNK_RUNS && first + q * VEC < stop; q++) {
                const OFFSET_T run = first + q * VEC;
                const uint count = min((OFFSET_T)VEC, stop - run);
                acc = OP(carry, OP(chunk[c], before[q]));
                for (uint k = 0; k < count; k++) {
                    const A value = TAKEN(x[AT(run + k, n)]), next = OP(acc, value);
                    store_acc(out + AT(run + k, outputs), inclusive ? next : acc);
                    acc = next;
                }
            }
        }
        // Behind a whole run starts another.
        const uint count = n - base;
        if (outputs > n && n - base < TILE && count % VEC == 0) {
            const uint run = count / VEC;
            if (run % CHUNK_RUNS == 0) {
                before[0] = OP_IDENTITY;
            }
            acc = OP(carry, OP(chunk[run / CHUNK_RUNS], before[run % CHUNK_RUNS]));
        }
#endif
        // The total, where it is asked for.
        if (outputs > n && n - base < TILE) {
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
#define SCRATCH __local A *exchange, __local uint *sg_scratch

// One level between items: `other` has the totals of the other half, before the item's own if that is the upper one.
INLINED void join(const uint rows, const uint own, const bool upper, const A* other, A* total, A* before)
{
    UNROLL
    for (uint r = 0; r < rows; r++) {
        const A sum = total[r * own];
        UNROLL
        for (uint k = r * own; k < (r + 1) * own; k++) {
            before[k] = upper ? OP(other[r], before[k]) : before[k];
        }
        total[r * own] = upper ? OP(other[r], sum) : OP(sum, other[r]);
    }
}

// before() of each of a team's things, in `rows` rows of which every item has `own` neighbours; their total in
// total[r * own], in every item. All items of the work-group call it, in uniform flow.
INLINED void team_scan(const uint rows, const uint own, A* total, A* before, SCRATCH)
{
    UNROLL
    for (uint k = 0; k < rows * own; k++) {
        before[k] = OP_IDENTITY;
    }
    UNROLL
    for (uint d = 1; d < own; d *= 2) {
        UNROLL
        for (uint k = 0; k < rows * own; k++) {
            if (k & d) {
                before[k] = OP(total[k & ~(2 * d - 1)], before[k]);
            }
        }
        UNROLL
        for (uint k = 0; k < rows * own; k += 2 * d) {
            total[k] = OP(total[k], total[k + d]);
        }
    }
    const uint item = get_local_id(0);
    for (uint d = 1; d < LANES; d *= 2) {
        A other[ROWS];
#ifdef SHUFFLES
        UNROLL
        for (uint r = 0; r < rows; r++) {
            other[r] = shuffle_xor_acc(total[r * own], d, sg_scratch);
        }
#else
        for (uint r = 0; r < rows; r++) {
            exchange[r * WG + item] = total[r * own];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint r = 0; r < rows; r++) {
            other[r] = exchange[r * WG + (item ^ d)];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        join(rows, own, (item & d) != 0, other, total, before);
    }
}

// The place of the item's run k in its tile.
static inline uint place_of(uint k)
{
    return (k / OWN * (32 * TEAMS) + (uint)get_local_id(0) * OWN + k % OWN) * VEC;
}

static inline void load_tile(__global const T* x, OFFSET_T base, OFFSET_T n, TV* raw)
{
    if (n - base >= TILE) {
        UNROLL
        for (uint k = 0; k < RUNS; k++) {
            raw[k] = load_vec(x + RUN_AT(base + place_of(k), n));
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
            raw[k] = VLOAD(0, run);
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

static inline A run_total(TV raw)
{
    A a[VEC];
    take_run(raw, a);
    A total = a[0];
    for (uint j = 1; j < VEC; j++) {
        total = OP(total, a[j]);
    }
    return total;
}

// What precedes each of the item's runs in its chunk, and the total of the tile. What precedes the chunks is in
// node[CHUNKS] and on after the next barrier. All items call it, in uniform flow; `node` holds 2 * CHUNKS.
INLINED A tile_scan(const TV* raw, A* before, __local A* node, SCRATCH)
{
    const uint item = get_local_id(0), lane = item % LANES, team = item / LANES;
    A total[RUNS], chunk[2 * OWN], preceding[2 * OWN];
    UNROLL
    for (uint k = 0; k < RUNS; k++) {
        total[k] = run_total(raw[k]);
    }
    team_scan(ROWS, OWN, total, before, exchange, sg_scratch);
    if (lane == 0) {
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            node[r * TEAMS + team] = total[r * OWN];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < 2 * OWN; k++) {
        chunk[k] = node[lane * 2 * OWN + k];
    }
    // Every team does it, since they can be of one sub-group.
    team_scan(1, 2 * OWN, chunk, preceding, exchange, sg_scratch);
    if (team == 0) {
        for (uint k = 0; k < 2 * OWN; k++) {
            node[CHUNKS + lane * 2 * OWN + k] = preceding[k];
        }
    }
    return chunk[0];
}

// Writes the item's results of the tile, `carry` being what precedes the tile.
static inline void store_tile(
    __global OUT* out, OFFSET_T base, OFFSET_T outputs, const TV* raw, const A* before, __local const A* node, A carry,
    uint inclusive)
{
    const uint team = (uint)get_local_id(0) / LANES;
    UNROLL
    for (uint k = 0; k < RUNS; k++) {
        A a[VEC];
        take_run(raw[k], a);
        OUT run[VEC];
        A acc = OP(carry, OP(node[CHUNKS + k / OWN * TEAMS + team], before[k]));
        for (uint j = 0; j < VEC; j++) {
            const A next = OP(acc, a[j]);
            run[IN_RUN(j)] = narrow_acc(inclusive ? next : acc);
            acc = next;
        }
        const OFFSET_T first = base + place_of(k);
        if (outputs - base >= TILE) {
            __global OUT* p = out + RUN_AT(first, outputs);
#if OUT_BYTES < T_BYTES
            for (uint j = 0; j < VEC; j++) {
                p[j] = run[j];
            }
#else
            for (uint v = 0; v < OUT_RUN; v++) {
#ifdef ALIGNED
                ((__global OUTV*)p)[v] = OUT_VLOAD(v, run);
#else
                OUT_VSTORE(OUT_VLOAD(v, run), v, p);
#endif
            }
#endif
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

// A published total is a word, of eight bytes two: the low half is the value's, the other is not 0.
#define WORDS (A_BYTES == 8 ? 2 : 1)

// Tiles that publish nothing, as a test wants it, so that others have to do without.
static inline bool silent(OFFSET_T tile)
{
#ifdef STALL
    return tile % 5 == 2;
#else
    return false;
#endif
}

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

static inline void publish(volatile __global ulong* words, OFFSET_T at, A x)
{
    const ulong bits = bits_of(x);
    for (uint w = 0; w < WORDS; w++) {
        store_relaxed_u64(words + at * WORDS + w, 1ul << 32 | (bits >> (32 * w) & 0xffffffffu));
    }
}

// Whether a total is there; if so, its bits.
static inline bool look(volatile __global ulong* words, OFFSET_T at, ulong* bits)
{
    ulong found = 0;
    bool there = true;
    for (uint w = 0; w < WORDS; w++) {
        const ulong word = load_relaxed_u64(words + at * WORDS + w);
        there = there && word >> 32 != 0;
        found |= (word & 0xffffffffu) << (32 * w);
    }
    *bits = found;
    return there;
}

// Puts the total of a thing behind those of the k before it: stack[b] has that of the last 2^b, for the bits that are set in
// their number. The return value is that of the things that end with this one, as many as a power of two.
static inline A push(A* stack, uint k, A total)
{
    uint b = 0;
    for (; k >> b & 1; b++) {
        total = OP(stack[b], total);
    }
    stack[b] = total;
    return total;
}

// The total of a tile, from its elements if it is not published.
static inline A tile_total(__global const T* x, OFFSET_T n, volatile __global ulong* words, OFFSET_T tile)
{
    ulong bits;
    if (look(words, tile, &bits)) {
        return value_of(bits);
    }
    A stack[12], total = OP_IDENTITY;
    for (uint q = 0; q < TILE_RUNS; q++) {
        total = push(stack, q, run_total(load_vec(x + RUN_AT(tile * TILE + q * VEC, n))));
    }
    // In place, elements are results once their total is there.
    fence_device();
    if (look(words, tile, &bits)) {
        return value_of(bits);
    }
    publish(words, tile, total);
    return total;
}

// The total of thing `index` of a level, that is of 32^level tiles, where it is not published.
static __attribute__((noinline)) A missing_total(
    __global const T* x, OFFSET_T n, volatile __global ulong* words, OFFSET_T index, uint level)
{
    A stack[LEVELS * 5], total = OP_IDENTITY;
    const OFFSET_T first = index << (5 * level), count = (OFFSET_T)1 << (5 * level);
    for (OFFSET_T k = 0; k < count; k++) {
        total = tile_total(x, n, words, first + k);
        OFFSET_T q = k;
        uint l = 0;
        for (; l < level && q % 32 == 31; l++) {
            A before = OP_IDENTITY;
            for (uint b = 0; b < 5; b++) {
                before = OP(stack[l * 5 + b], before);
            }
            total = OP(before, total);
            q /= 32;
        }
        if (l < level) {
            push(stack + l * 5, q % 32, total);
        }
    }
    return total;
}

// Of several tiles, `state` is 0: 16 bytes for the ticket, then words as the spine has totals. There are n results or, if
// exclusive, n + 1.
KERNEL SG_KERNEL void scan_look_back(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global OUT* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global ulong* state, const OFFSET_T tiles, const A initial, const uint inclusive,
    const uint in_place, const uint spins)
{
    __local A node[2 * CHUNKS];
    __local A digit[TEAMS];
    __local A exchange[EXCHANGE];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    __local uint taken[1];
    __global const T* x = in_base + in_offset;
    __global OUT* out = out_base + out_offset;
    volatile __global ulong* words = state + 2;
    const uint item = get_local_id(0), lane = item % LANES, team = item / LANES;
    if (item == 0) {
        *taken = tiles > 1 ? atomic_inc((volatile __global uint*)state) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const OFFSET_T tile = *taken;
    TV raw[RUNS];
    A before[RUNS];
    load_tile(x, tile * TILE, n, raw);
    const A sum = tile_scan(raw, before, node, exchange, sg_scratch);
    const bool speaks = !silent(tile);
    if (item == 0 && tile + 1 < tiles && speaks) {
        publish(words, tile, sum);
        if (in_place) {
            // Who misses it has read the elements before they are overwritten.
            fence_device();
        }
    }

    // A team waits for the words of one level.
    const OFFSET_T index = team < LEVELS ? tile >> (5 * team) : 0;
    const uint own = index % 32;
    OFFSET_T at = 0, count = tiles;
    for (uint level = 0; level < team; level++) {
        at += count;
        count = (count - 1) / 32 + 1;
    }
    A word[OWN], preceding[OWN];
    for (uint k = 0; k < OWN; k++) {
        const uint leaf = lane * OWN + k;
        word[k] = OP_IDENTITY;
        if (leaf < own) {
            const OFFSET_T wanted = index - own + leaf;
            ulong bits = 0;
            bool there = false;
            for (uint turn = 0; turn < spins && !there; turn++) {
                there = look(words, at + wanted, &bits);
            }
            word[k] = there ? value_of(bits) : missing_total(x, n, words, wanted, team);
        }
    }
    team_scan(1, OWN, word, preceding, exchange, sg_scratch);
    const OFFSET_T blocks = (tiles - 1) / 32 + 1;
    for (uint k = 0; k < OWN; k++) {
        if (lane * OWN + k == own) {
            digit[team] = preceding[k];
            // At once, since it is what others wait for.
            if (team == 0 && own == 31 && tile / 32 + 1 < blocks && speaks) {
                publish(words, tiles + tile / 32, OP(preceding[k], sum));
            }
        }
    }
    // In place, what was published goes before what overwrites the input.
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    A carry = initial;
    UNROLL
    for (uint level = LEVELS; level > 0; level--) {
        carry = OP(carry, digit[level - 1]);
    }
    if (item == 0 && tile % 32 == 31 && speaks) {
        A block = OP(digit[0], sum);
        OFFSET_T q = tile / 32;
        at = tiles;
        count = blocks;
        for (uint level = 1; level + 1 < LEVELS && q % 32 == 31; level++) {
            block = OP(digit[level], block);
            at += count;
            count = (count - 1) / 32 + 1;
            q /= 32;
            if (q + 1 < count) {
                publish(words, at + q, block);
            }
        }
    }
    store_tile(out, tile * TILE, outputs, raw, before, node, carry, inclusive);
}

#else

// totals[t] for the whole tiles t < tiles.
KERNEL SG_KERNEL void scan_totals(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global A* totals, const OFFSET_T tiles)
{
    __local A node[2 * CHUNKS];
    __local A exchange[EXCHANGE];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    __global const T* x = in_base + in_offset;
    for (OFFSET_T tile = FIRST_TILE(tiles); tile < END_TILE(tiles); tile += NEXT_TILE) {
        TV raw[RUNS];
        A before[RUNS];
        load_tile(x, tile * TILE, n, raw);
        const A sum = tile_scan(raw, before, node, exchange, sg_scratch);
        if (get_local_id(0) == 0) {
            totals[tile] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// There are n results or, if exclusive, n + 1.
KERNEL SG_KERNEL void scan_tiles(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global OUT* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global const A* totals, const OFFSET_T tiles, const A initial, const uint inclusive)
{
    __local A node[2 * CHUNKS];
    __local A exchange[EXCHANGE];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    __global const T* x = in_base + in_offset;
    __global OUT* out = out_base + out_offset;
    for (OFFSET_T tile = FIRST_TILE(tiles); tile < END_TILE(tiles); tile += NEXT_TILE) {
        TV raw[RUNS];
        A before[RUNS];
        load_tile(x, tile * TILE, n, raw);
        tile_scan(raw, before, node, exchange, sg_scratch);
        barrier(CLK_LOCAL_MEM_FENCE);
        store_tile(
            out, tile * TILE, outputs, raw, before, node, carry_of(totals, tile, tiles, initial), inclusive);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif
#endif
