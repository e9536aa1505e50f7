// Scan: what the operator makes of the elements up to each, in one order that depends on the place and the types alone.
//
// A run is the VEC elements of 16 bytes, combined in their order. A tile is TILE_RUNS runs. The total of 2^b neighbouring
// runs that start at a multiple of 2^b is the tree of neighbours over them; of tiles likewise. Then, for element k of run q
// of tile t, with b over the bits that are set in q or t, the lowest first:
//
//     before(q) = ... op (total of the 2^b runs before them op (... op identity)),  before(t) likewise
//     out = (((initial op before(t)) op before(q)) op x[0]) ... op x[k], without x[k] if exclusive
//
// So the number of work-items that share a tile, the sub-group width and the grid do not enter. Missing elements of the last
// tile are in no total that counts.
//
// Three launches: the totals of the tiles, what precedes each of them, the outputs. Of one tile, the last of them alone.
// `out` may be `x`: a tile is read before it is written.
//
// Bytes: reads n elements twice, writes n, and 24 for each tile of 16 KiB.
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"
#include "lib/workgroup.cl"

#define TILE_ROWS 4
#define ROW_RUNS 256
#define TILE_RUNS (TILE_ROWS * ROW_RUNS)
#define TILE (TILE_RUNS * VEC)
// Neighbouring runs of an item in a row.
#define ITEM_RUNS (ROW_RUNS / WG)
// Neighbouring totals of an item on the spine.
#define SPINE_ITEM 8
#define SPINE (WG * SPINE_ITEM)
// Above the bits of any number of tiles.
#define SPINE_LEVELS 48

#if SG_BACKEND >= 1 && SG_BACKEND <= 4
#define SHUFFLES
#endif

#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1)))

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

#if WG == 1

// One item has the tile to itself. Where no order is asked for, it goes through the elements one by one.
static inline A run_total(__global const T* x, OFFSET_T first, uint count)
{
    A total = TAKEN(x[first]);
    for (uint k = 1; k < count; k++) {
        total = OP(total, TAKEN(x[first + k]));
    }
    return total;
}

#ifndef EXACT
// What precedes each of the runs from `base` on, below n, in their tile; the total of the tile, if it is whole.
static inline A tile_tree(__global const T* x, OFFSET_T base, OFFSET_T n, A* before)
{
    A total[TILE_RUNS];
    for (uint q = 0; q < TILE_RUNS; q++) {
        before[q] = OP_IDENTITY;
        total[q] = OP_IDENTITY;
    }
    if (n - base >= TILE) {
        for (uint q = 0; q < TILE_RUNS; q++) {
            total[q] = run_total(x, base + q * VEC, VEC);
        }
    } else {
        for (uint q = 0; q * VEC < n - base; q++) {
            total[q] = run_total(x, base + q * VEC, min((OFFSET_T)VEC, n - base - q * VEC));
        }
    }
    for (uint d = 1; d < TILE_RUNS; d *= 2) {
        for (uint q = 0; q < TILE_RUNS; q += 2 * d) {
            const A low = total[q];
            for (uint k = q + d; k < q + 2 * d; k++) {
                before[k] = OP(low, before[k]);
            }
            total[q] = OP(low, total[q + d]);
        }
    }
    return total[0];
}
#endif

KERNEL void scan_totals(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global A* totals, const OFFSET_T tiles)
{
    __global const T* x = in_base + in_offset;
    const OFFSET_T end = END_TILE(tiles);
    for (OFFSET_T tile = FIRST_TILE(tiles); tile < end; tile += NEXT_TILE) {
#ifdef EXACT
        totals[tile] = run_total(x, tile * TILE, TILE);
#else
        A before[TILE_RUNS];
        totals[tile] = tile_tree(x, tile * TILE, n, before);
#endif
    }
}

KERNEL void scan_spine(__global A* totals, const OFFSET_T tiles, const A initial)
{
    // block[b]: the total of the last 2^b tiles that start at a multiple of 2^b, for the bits that are set in `tile`.
    A block[SPINE_LEVELS];
    for (OFFSET_T tile = 0; tile < tiles; tile++) {
        A before = OP_IDENTITY;
        for (uint b = 0; tile >> b != 0; b++) {
            if (tile >> b & 1) {
                before = OP(block[b], before);
            }
        }
        // Of the last tile nothing is taken, and there is no total.
        if (tile + 1 < tiles) {
            A total = totals[tile];
            uint b = 0;
            for (; tile >> b & 1; b++) {
                total = OP(block[b], total);
            }
            block[b] = total;
        }
        totals[tile] = OP(initial, before);
    }
}

KERNEL void scan_tiles(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global OUT* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global const A* carries, const OFFSET_T tiles, const A initial, const uint inclusive)
{
    __global const T* x = in_base + in_offset;
    __global OUT* out = out_base + out_offset;
    const OFFSET_T end = END_TILE(tiles);
    for (OFFSET_T tile = FIRST_TILE(tiles); tile < end; tile += NEXT_TILE) {
        const OFFSET_T base = tile * TILE, stop = min(base + TILE, n);
        const A carry = tiles == 1 ? initial : carries[tile];
        A acc = carry;
#ifdef EXACT
        if (inclusive) {
            for (OFFSET_T i = base; i < stop; i++) {
                acc = OP(acc, TAKEN(x[i]));
                store_acc(out + i, acc);
            }
        } else {
            for (OFFSET_T i = base; i < stop; i++) {
                const A value = TAKEN(x[i]);
                store_acc(out + i, acc);
                acc = OP(acc, value);
            }
        }
#else
        A before[TILE_RUNS];
        tile_tree(x, base, n, before);
        for (uint q = 0; base + q * VEC < stop; q++) {
            const OFFSET_T first = base + q * VEC;
            const uint count = min((OFFSET_T)VEC, stop - first);
            acc = OP(carry, before[q]);
            for (uint k = 0; k < count; k++) {
                const A value = TAKEN(x[first + k]), next = OP(acc, value);
                store_acc(out + first + k, inclusive ? next : acc);
                acc = next;
            }
        }
        if (stop == n && (n - base) % VEC == 0 && n - base < TILE) {
            acc = OP(carry, before[(n - base) / VEC]);
        }
#endif
        // The total, where it is asked for.
        if (outputs > n && n - base < TILE) {
            store_acc(out + n, acc);
        }
    }
}

#else

// What precedes each of the item's runs in the tree, and the tree's total. The runs are `rows` rows of WG * runs, of which the
// item has neighbours; `total` has theirs, and is used up. `node` holds 2 * WG accumulators for each row; it may be reused
// after the caller's next barrier. All items call it, in uniform flow.
INLINED A tree_of(const uint rows, const uint runs, A* total, A* before, __local A* node, __local uint* sg_scratch)
{
    const uint item = get_local_id(0);
    A sum[TILE_ROWS];
    for (uint k = 0; k < rows * runs; k++) {
        before[k] = OP_IDENTITY;
    }
    // Within the item.
    for (uint d = 1; d < runs; d *= 2) {
        for (uint k = 0; k < rows * runs; k++) {
            if (k & d) {
                before[k] = OP(total[k & ~(2 * d - 1)], before[k]);
            }
        }
        for (uint k = 0; k < rows * runs; k += 2 * d) {
            total[k] = OP(total[k], total[k + d]);
        }
    }
    for (uint r = 0; r < rows; r++) {
        sum[r] = total[r * runs];
    }
    // Within the sub-group, then between what `node` has as leaves: sub-groups, or items.
#ifdef SHUFFLES
    const uint width = sg_size(), lane = sg_lane(), leaf = item / width, leaves = WG / width;
    for (uint d = 1; d < width; d <<= 1) {
        const bool upper = (lane & d) != 0;
        for (uint r = 0; r < rows; r++) {
            const A other = shuffle_xor_acc(sum[r], d, sg_scratch);
            for (uint k = r * runs; k < (r + 1) * runs; k++) {
                before[k] = upper ? OP(other, before[k]) : before[k];
            }
            sum[r] = upper ? OP(other, sum[r]) : OP(sum[r], other);
        }
    }
    const bool first = lane == 0;
#else
    const uint leaf = item, leaves = WG;
    const bool first = true;
#endif
    if (first) {
        for (uint r = 0; r < rows; r++) {
            node[r * 2 * leaves + leaf] = sum[r];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Level after level, each behind the one below it.
    uint from = 0;
    for (uint count = leaves / 2; count > 0; count /= 2) {
        for (uint i = item; i < rows * count; i += WG) {
            const uint row = i / count * 2 * leaves, j = i % count;
            node[row + from + 2 * count + j] = OP(node[row + from + 2 * j], node[row + from + 2 * j + 1]);
        }
        from += 2 * count;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint r = 0; r < rows; r++) {
        sum[r] = node[r * 2 * leaves + from];
    }
    uint level = 0;
    for (uint d = 1; d < leaves; d *= 2) {
        if (leaf & d) {
            for (uint r = 0; r < rows; r++) {
                const A other = node[r * 2 * leaves + level + leaf / d - 1];
                for (uint k = r * runs; k < (r + 1) * runs; k++) {
                    before[k] = OP(other, before[k]);
                }
            }
        }
        level += leaves / d;
    }
    // Between rows.
    for (uint d = 1; d < rows; d *= 2) {
        for (uint k = 0; k < rows * runs; k++) {
            if (k / runs & d) {
                before[k] = OP(sum[k / runs & ~(2 * d - 1)], before[k]);
            }
        }
        for (uint r = 0; r < rows; r += 2 * d) {
            sum[r] = OP(sum[r], sum[r + d]);
        }
    }
    return sum[0];
}

// The place of the item's run k in its tile.
static inline uint place_of(uint k)
{
    return (k / ITEM_RUNS * ROW_RUNS + (uint)get_local_id(0) * ITEM_RUNS + k % ITEM_RUNS) * VEC;
}

static inline void load_tile(__global const T* x, OFFSET_T base, OFFSET_T n, TV* raw)
{
    if (n - base >= TILE) {
        for (uint k = 0; k < TILE_ROWS * ITEM_RUNS; k++) {
            raw[k] = load_vec(x + base + place_of(k));
        }
    } else {
        for (uint k = 0; k < TILE_ROWS * ITEM_RUNS; k++) {
            T run[VEC];
            for (uint j = 0; j < VEC; j++) {
                const OFFSET_T i = base + place_of(k) + j;
                run[j] = i < n ? x[i] : (T)0;
            }
            raw[k] = VLOAD(0, run);
        }
    }
}

static inline void run_totals(const TV* raw, A* total)
{
    for (uint k = 0; k < TILE_ROWS * ITEM_RUNS; k++) {
        A a[VEC];
        unpack(raw[k], a);
        total[k] = a[0];
        for (uint j = 1; j < VEC; j++) {
            total[k] = OP(total[k], a[j]);
        }
    }
}

// Writes the item's results of the tile, `carry` being what precedes the tile.
static inline void store_tile(
    __global OUT* out, OFFSET_T base, OFFSET_T outputs, const TV* raw, const A* before, A carry, uint inclusive)
{
    for (uint k = 0; k < TILE_ROWS * ITEM_RUNS; k++) {
        A a[VEC];
        unpack(raw[k], a);
        OUT run[VEC];
        A acc = OP(carry, before[k]);
        for (uint j = 0; j < VEC; j++) {
            const A next = OP(acc, a[j]);
            run[j] = narrow_acc(inclusive ? next : acc);
            acc = next;
        }
        const OFFSET_T first = base + place_of(k);
        if (outputs - base >= TILE) {
            for (uint v = 0; v < OUT_RUN; v++) {
#ifdef ALIGNED
                ((__global OUTV*)(out + first))[v] = OUT_VLOAD(v, run);
#else
                OUT_VSTORE(OUT_VLOAD(v, run), v, out + first);
#endif
            }
        } else {
            for (uint j = 0; j < VEC; j++) {
                if (first + j < outputs) {
                    out[first + j] = run[j];
                }
            }
        }
    }
}

#ifdef SHUFFLES
#define NODES (SG_BACKEND == SG_PTX ? WG / 32 : WG)
#else
#define NODES WG
#endif

// totals[t] for the whole tiles t < tiles.
KERNEL SG_KERNEL void scan_totals(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global A* totals, const OFFSET_T tiles)
{
    __local A node[TILE_ROWS * 2 * NODES];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    __global const T* x = in_base + in_offset;
    for (OFFSET_T tile = FIRST_TILE(tiles); tile < END_TILE(tiles); tile += NEXT_TILE) {
        TV raw[TILE_ROWS * ITEM_RUNS];
        A total[TILE_ROWS * ITEM_RUNS], before[TILE_ROWS * ITEM_RUNS];
        load_tile(x, tile * TILE, n, raw);
        run_totals(raw, total);
        const A sum = tree_of(TILE_ROWS, ITEM_RUNS, total, before, node, sg_scratch);
        if (get_local_id(0) == 0) {
            totals[tile] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Puts what precedes tile t, `initial` first, in the place of its total. The last of the tiles has no total.
KERNEL SG_KERNEL void scan_spine(__global A* totals, const OFFSET_T tiles, const A initial)
{
    __local A node[2 * NODES];
    __local A block[SPINE_LEVELS];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    const OFFSET_T chunks = (tiles - 1) / SPINE + 1;
    // block[b]: the total of the last 2^b chunks that start at a multiple of 2^b, for the bits that are set in `chunk`.
    for (OFFSET_T chunk = 0; chunk < chunks; chunk++) {
        const OFFSET_T own = chunk * SPINE + get_local_id(0) * SPINE_ITEM;
        A total[SPINE_ITEM], before[SPINE_ITEM];
        for (uint k = 0; k < SPINE_ITEM; k++) {
            total[k] = own + k + 1 < tiles ? totals[own + k] : OP_IDENTITY;
        }
        A sum = tree_of(1, SPINE_ITEM, total, before, node, sg_scratch);
        for (uint b = 0; chunk >> b != 0; b++) {
            if (chunk >> b & 1) {
                for (uint k = 0; k < SPINE_ITEM; k++) {
                    before[k] = OP(block[b], before[k]);
                }
            }
        }
        for (uint k = 0; k < SPINE_ITEM; k++) {
            if (own + k < tiles) {
                totals[own + k] = OP(initial, before[k]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) == 0) {
            uint b = 0;
            for (; chunk >> b & 1; b++) {
                sum = OP(block[b], sum);
            }
            block[b] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// carries[t] is what precedes tile t; of one tile, `initial`. There are n results or, if exclusive, n + 1.
KERNEL SG_KERNEL void scan_tiles(
    __global const T* in_base, const ulong in_offset, const OFFSET_T n, __global OUT* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global const A* carries, const OFFSET_T tiles, const A initial, const uint inclusive)
{
    __local A node[TILE_ROWS * 2 * NODES];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    __global const T* x = in_base + in_offset;
    __global OUT* out = out_base + out_offset;
    for (OFFSET_T tile = FIRST_TILE(tiles); tile < END_TILE(tiles); tile += NEXT_TILE) {
        TV raw[TILE_ROWS * ITEM_RUNS];
        A total[TILE_ROWS * ITEM_RUNS], before[TILE_ROWS * ITEM_RUNS];
        load_tile(x, tile * TILE, n, raw);
        run_totals(raw, total);
        tree_of(TILE_ROWS, ITEM_RUNS, total, before, node, sg_scratch);
        store_tile(out, tile * TILE, outputs, raw, before, tiles == 1 ? initial : carries[tile], inclusive);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif
