// Scan by single work-items, each of which scans a tile. It is for CPUs, and for GPUs with little local memory or with
// fewer than 8 work-items in a work-group. Order and kernels: scan.cl.
//
//     tile of scan_aggregates:
//         EXACT: aggregates[t] = x[0] op x[1] op ..., in any order without segments
//         else:  for each chunk: tree scan of its vectors' aggregates
//                aggregates[t] = tree scan of the chunks' aggregates
//     tile of scan_tiles:
//         EXACT: prefix = prefix(t); for each element: prefix = prefix op x[i], before or after out[i] = prefix
//         else:  tree scan as above
//                for each chunk: tree scan of its vectors' aggregates again
//                    for each vector: as for EXACT, from prefix(t) op (prefix(c) op prefix(v)) on
//
// scan_tiles without EXACT makes the tree scan of a chunk twice: first for the chunk's aggregate, then for the prefixes
// of its vectors. So no array holds the prefixes of all vectors of a tile. Each element is loaded three times, the last
// time for its result. A tile that is not full has no filler elements here: loops end at the end of the input.

// Words of a tile's segment-head flags, and the flag of an element.
#define HEAD_WORDS (SEGMENTED ? TILE / 32 : 1)
#define HEAD_AT(heads, position) HEAD_BIT((heads)[(position) / 32], (position) % 32)
#define CHUNK (CHUNK_VECTORS * VEC)

// Loads the segment-head flags of a tile.
static inline void load_heads(uint* heads, OFFSET_T tile, OFFSET_T n HEAD_PARAMS)
{
    for (uint k = 0; k < HEAD_WORDS; k++) {
        heads[k] = 0;
    }
#ifdef BY_OFFSETS
    set_head_bits(heads, tile, n HEAD_PASS);
#else
    if (!SEGMENTED) {
        return;
    }
    const OFFSET_T base = tile * TILE;
    for (uint position = 0; position < TILE && position < n - base; position += VEC) {
        heads[position / 32] |= vector_heads(n - base >= TILE, base, position, n HEAD_PASS) << position % 32;
    }
#endif
}

// The aggregate of `count` elements of a tile, from `position` on, one after another.
static inline Partial reduce_elements(
    ELEMENT_PARAMS, OFFSET_T base, uint position, uint count, OFFSET_T n, const uint* heads)
{
    Partial total = partial(element_at(AT(base + position, n), ELEMENTS), HEAD_AT(heads, position));
    // EXACT allows any order, so the compiler may use vectors.
#if EXACT && !SEGMENTED
    IN_VECTORS
#endif
    for (uint k = 1; k < count; k++) {
        const Partial own = partial(element_at(AT(base + position + k, n), ELEMENTS), HEAD_AT(heads, position + k));
        total = join(total, own);
    }
    return total;
}

#ifdef VECTORS
#include "scan_cpu_vectors.cl"
#endif

// Tree scan of a chunk's vectors: their prefixes, and the aggregate of the chunk if it is whole.
static inline Partial scan_chunk(
    ELEMENT_PARAMS, OFFSET_T base, uint position, OFFSET_T n, const uint* heads, Partial* prefix)
{
    Partial total[CHUNK_VECTORS];
    if (n - base - position >= CHUNK) {
        for (uint q = 0; q < CHUNK_VECTORS; q++) {
            total[q] = reduce_elements(ELEMENTS, base, position + q * VEC, VEC, n, heads);
        }
    } else {
        for (uint q = 0; q < CHUNK_VECTORS; q++) {
            const OFFSET_T first = base + position + q * VEC;
            total[q] = identity_partial();
            if (first < n) {
                total[q] = reduce_elements(ELEMENTS, base, position + q * VEC, min((OFFSET_T)VEC, n - first), n, heads);
            }
        }
    }
    tree_scan(total, prefix, CHUNK_VECTORS);
    return total[0];
}

// Tree scan of a tile's chunks: their prefixes, and the aggregate of the tile if it is whole.
static inline Partial scan_chunks(ELEMENT_PARAMS, OFFSET_T base, OFFSET_T n, const uint* heads, Partial* prefix)
{
    Partial total[CHUNKS], unused[CHUNK_VECTORS];
    for (uint c = 0; c < CHUNKS; c++) {
        const uint position = c * CHUNK;
        total[c] = identity_partial();
#ifdef VECTORS
        if (n - base >= position + CHUNK) {
            A16 unused_vectors[2];
            total[c] = scan_whole_chunk(ELEMENTS, base + position, n, unused_vectors);
            continue;
        }
#endif
        if (base + position < n) {
            total[c] = scan_chunk(ELEMENTS, base, position, n, heads, unused);
        }
    }
    tree_scan(total, prefix, CHUNKS);
    return total[0];
}

static inline Partial reduce_tile(ELEMENT_PARAMS, OFFSET_T base, OFFSET_T n, const uint* heads)
{
    if (EXACT) {
        return reduce_elements(ELEMENTS, base, 0, TILE, n, heads);
    }
    Partial unused[CHUNKS];
    return scan_chunks(ELEMENTS, base, n, heads, unused);
}

// aggregates[t] for the whole tiles t < tiles.
KERNEL void scan_aggregates(
    INPUT_PARAMS, const OFFSET_T n, __global Partial* aggregates,
    const OFFSET_T tiles HEAD_PARAMS)
{
#ifndef SOURCE
    __global const T* x = in_base + in_offset;
#endif
    const OFFSET_T end = end_tile(tiles);
    for (OFFSET_T tile = first_tile(tiles); tile < end; tile += TILE_STEP) {
        uint heads[HEAD_WORDS];
        load_heads(heads, tile, n HEAD_PASS);
        const Partial total = reduce_tile(ELEMENTS, tile * TILE, n, heads);
        STORE_PARTIAL(aggregates[tile], total);
    }
}

// Scans the first `stop` elements of a tile one by one, from `prefix` on. Returns the prefix after them.
static inline A scan_elements(
    ELEMENT_PARAMS, OFFSET_T base, uint stop, OFFSET_T n, __global OUT* out, OFFSET_T outputs, const uint* heads,
    A initial, A prefix, uint inclusive)
{
    if (inclusive) {
        IN_EIGHTS
        for (uint i = 0; i < stop; i++) {
            prefix = OP(restart(initial, prefix, HEAD_AT(heads, i)), element_at(AT(base + i, n), ELEMENTS));
            store_acc(out + AT(base + i, outputs), prefix);
        }
    } else {
        IN_EIGHTS
        for (uint i = 0; i < stop; i++) {
            const A value = element_at(AT(base + i, n), ELEMENTS);
            prefix = restart(initial, prefix, HEAD_AT(heads, i));
            store_acc(out + AT(base + i, outputs), prefix);
            prefix = OP(prefix, value);
        }
    }
    return prefix;
}

// Scans the `count` elements of a vector, from `prefix` on. Returns the prefix after them.
static inline A scan_vector(
    ELEMENT_PARAMS, OFFSET_T base, uint position, uint count, OFFSET_T n, __global OUT* out, OFFSET_T outputs,
    const uint* heads, A initial, A prefix, uint inclusive)
{
    for (uint k = 0; k < count; k++) {
        const A value = element_at(AT(base + position + k, n), ELEMENTS);
        prefix = restart(initial, prefix, HEAD_AT(heads, position + k));
        const A next = OP(prefix, value);
        store_acc(out + AT(base + position + k, outputs), inclusive ? next : prefix);
        prefix = next;
    }
    return prefix;
}

// Scans the first `stop` elements of a tile in the order of scan.cl, from the tile's `prefix` on. Returns the prefix
// after them.
static inline A scan_in_order(
    ELEMENT_PARAMS, OFFSET_T base, uint stop, OFFSET_T n, __global OUT* out, OFFSET_T outputs, const uint* heads,
    A initial, A prefix, uint inclusive)
{
    A after = prefix;
    Partial chunk[CHUNKS], vector[CHUNK_VECTORS];
    scan_chunks(ELEMENTS, base, n, heads, chunk);
    for (uint c = 0; c * CHUNK < stop; c++) {
        const uint first = c * CHUNK;
#ifdef VECTORS
        if (stop - first >= CHUNK) {
            store_whole_chunk(ELEMENTS, base + first, n, out, outputs, prefix, chunk[c], inclusive);
            continue;
        }
#endif
        scan_chunk(ELEMENTS, base, first, n, heads, vector);
        for (uint q = 0; q < CHUNK_VECTORS && first + q * VEC < stop; q++) {
            const uint position = first + q * VEC, count = min((uint)VEC, stop - position);
            const A before = extend(initial, prefix, join(chunk[c], vector[q]));
            after = scan_vector(ELEMENTS, base, position, count, n, out, outputs, heads, initial, before, inclusive);
        }
    }
    // There may be n + 1 results. Result n is the one that an exclusive scan would store for a further element n:
    //
    //     elements n - 1 and n are in one vector:   the prefix after element n - 1, which is `after`
    //     element n is the first of a vector v:     prefix(t) op (prefix(c) op prefix(v)), in the order of scan.cl
    //
    // The second value may have other bits than `after`, so it replaces `after`. If n is a multiple of TILE, element n
    // is in a last tile without elements, where `stop` is 0.
    if (outputs > n && stop < TILE && stop % VEC == 0) {
        const uint next = stop / VEC;
        if (next % CHUNK_VECTORS == 0) {
            vector[0] = identity_partial();
        }
        after = extend(initial, prefix, join(chunk[next / CHUNK_VECTORS], vector[next % CHUNK_VECTORS]));
    }
    return after;
}

// There are n results. An exclusive scan without segments may have n + 1: the last one is `initial` op the aggregate of
// the whole input.
KERNEL void scan_tiles(
    INPUT_PARAMS, const OFFSET_T n, __global OUT* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global const Partial* aggregates, const OFFSET_T tiles, const A initial,
    const uint inclusive HEAD_PARAMS)
{
#ifndef SOURCE
    __global const T* x = in_base + in_offset;
#endif
    __global OUT* out = out_base + out_offset;
    const OFFSET_T end = end_tile(tiles);
    for (OFFSET_T tile = first_tile(tiles); tile < end; tile += TILE_STEP) {
        const OFFSET_T base = tile * TILE;
        const uint stop = min((OFFSET_T)TILE, n - min(base, n));
        const A prefix = exclusive_prefix(aggregates, tile, tiles, initial);
        uint heads[HEAD_WORDS];
        load_heads(heads, tile, n HEAD_PASS);
        const A after = EXACT ? scan_elements(ELEMENTS, base, stop, n, out, outputs, heads, initial, prefix, inclusive)
                              : scan_in_order(ELEMENTS, base, stop, n, out, outputs, heads, initial, prefix, inclusive);
        if (outputs > n && stop < TILE) {
            store_acc(out + AT(n, outputs), after);
        }
    }
}
