// Scan on GPUs: one work-group scans a tile. Order and kernels: scan.cl; with LOOK_BACK: scan_look_back.cl.
//
//     load_tile:  each work-item loads its vectors, and their segment-head flags
//     scan_tile:  reduce each vector; a lane group scans the vectors of each of its chunks by a tree; then a tree scan
//                 of the chunks' aggregates
//     store_tile: for each vector: scan its elements from prefix(t) op (prefix(c) op prefix(v)) on; store
//
// The 64 chunks of a tile form ROWS = 8 rows of 8 contiguous chunks. A work-group has 8 lane groups of LANES = WG / 8
// work-items, so WG is at most 256.
//
//     lane group g:      chunk g of each row, so 8 chunks
//     lane l of it:      LANE_VECTORS contiguous vectors of each of these chunks, from vector l * LANE_VECTORS on
//     that work-item:    ITEM_VECTORS = ROWS * LANE_VECTORS vectors; vector k is vector k % LANE_VECTORS of its
//                        vectors in row k / LANE_VECTORS
//
// LANE_VECTORS is 32 / LANES. With WG == 256 it is 1, so neighbouring lanes have neighbouring vectors. With WG == 128
// it is 2, so neighbouring lanes access vectors that are 2 apart.
//
// Lanes load and store their vectors without an exchange in local memory. At a time a lane loads or stores:
//
//     load:   16 bytes, if all elements of the work-item exist; else one element
//     store:  16 bytes, if all results of the vector exist and OUT is not narrower than T; else one result
#define LANE_GROUPS 8
#define LANES (WG / LANE_GROUPS)
#define LANE_VECTORS (CHUNK_VECTORS / LANES)
#define ROWS (CHUNKS / LANE_GROUPS)
#define ITEM_VECTORS (ROWS * LANE_VECTORS)

// SHUFFLES: lanes exchange values by shuffles, if the compiler has one sub-group width for all kernels. Else they
// exchange values by EXCHANGE accumulators and WORDS words of local memory.
//
// UNROLL: on GPUs, private arrays are in registers only if loops over them are unrolled. On CPU drivers unrolling gains
// nothing, and compiling takes longer.
//
// choose_value() and choose_word() return where to store a value that a branch chooses. With SHUFFLES this is the
// variable itself. Else it is the work-item's entry of local memory, because PoCL may treat a private variable as
// uniform if a branch sets it.
#if SG_BACKEND == SG_PTX || SG_BACKEND == SG_AMDGCN
#define SHUFFLES 1
#define UNROLL _Pragma("unroll")
#define EXCHANGE 1
#define WORDS SG_SCRATCH_WORDS
#define CHOICE
static inline A* choose_value(A* value, __local A* exchange) { return value; }
static inline uint* choose_word(uint* word, __local uint* words) { return word; }
#else
#define SHUFFLES 0
#define UNROLL
#define EXCHANGE (ROWS * WG)
#define WORDS (SEGMENTED ? WG : SG_SCRATCH_WORDS)
#define CHOICE volatile __local
static inline volatile __local A* choose_value(A* value, __local A* exchange) { return exchange + get_local_id(0); }
static inline volatile __local uint* choose_word(uint* word, __local uint* words) { return words + get_local_id(0); }
#endif

// BATCH: the rows that are scanned at a time. The prefixes of a work-item's vectors stay in PREFIX_SPACE until the
// results are stored. They are PREFIX_STRIDE apart. On NVIDIA's GPUs PREFIX_SPACE is local memory, which leaves
// registers for more work-groups.
#if SG_BACKEND == SG_PTX
#define BATCH 2
#define PREFIX_SPACE __local
#define PREFIX_STRIDE WG
#else
#define BATCH ROWS
#define PREFIX_SPACE __private
#define PREFIX_STRIDE 1
#endif

// The vectors of a work-item, TILE_STRIDE apart, in private memory. With ASIDE they are copied asynchronously to local
// memory, without registers. The host defines ASIDE for scans of segments with look-back, if elements have at least 4
// bytes and are aligned. It does so only for NVIDIA's GPUs of compute capability 9.0 and above with enough local
// memory.
#ifdef ASIDE
#include "lib/aside.cl"
#define TILE_SPACE __local
#define TILE_STRIDE WG
static inline void start_load(TILE_SPACE TV* to, __global const T* from) { copy_async_16(to, from); }
static inline void await_loads(void) { await_copies(); }
#else
#define TILE_SPACE __private
#define TILE_STRIDE 1
static inline void start_load(TILE_SPACE TV* to, __global const T* from) { *to = load_vec(from); }
static inline void await_loads(void) {}
#endif

// The index of the work-item's entry k. Its entries are `stride` apart: 1 in its private array, WG in an array of local
// memory that the work-items share.
static inline size_t own_entry(uint k, uint stride) { return stride == 1 ? k : k * stride + get_local_id(0); }

// The segment-head flags of a work-item's vectors, VEC bits each. BITS_WORDS: local memory for the flags of a tile.
#define HEAD_WORDS (SEGMENTED ? (ITEM_VECTORS * VEC + 31) / 32 : 1)
#define VECTOR_HEADS(heads, k) (SEGMENTED ? (heads)[(k) * VEC / 32] >> (k) * VEC % 32 & ((1u << VEC) - 1) : 0u)
#define BITS_WORDS (SEARCHES_OFFSETS ? TILE / 32 : 1)

// The position in its tile of the work-item's vector k, and the position after its last one.
static inline uint position_of(uint k)
{
    return (k / LANE_VECTORS * (CHUNK_VECTORS * LANE_GROUPS) + (uint)get_local_id(0) * LANE_VECTORS +
            k % LANE_VECTORS) *
           VEC;
}
#define ITEM_END (position_of(ITEM_VECTORS - 1) + VEC)

// The elements of the vector that begins with the i-th element, in the order of memory.
INLINED TV vector_at(OFFSET_T i, OFFSET_T n, ELEMENT_PARAMS)
{
#ifdef SOURCE
    T vector[VEC];
    if (REVERSE) {
        // load_source() takes multiples of VEC.
        for (uint k = 0; k < VEC; k++) {
            vector[k] = source_at(VECTOR_AT(i, n) + k, ELEMENTS);
        }
    } else {
        load_source(i, vector, ELEMENTS);
    }
    return VLOAD(0, vector);
#else
    return load_vec(x + VECTOR_AT(i, n));
#endif
}

// Element i of the input. On GPUs every tile is full: after the end of the input come values on which no result
// depends. They need not be the identity. For SOURCE the value is the last element, since a caller's function may not
// accept other values. If a count in memory is 0, it is element 0, which exists.
static inline T element_or_padding(OFFSET_T i, OFFSET_T n, ELEMENT_PARAMS)
{
#if defined(SOURCE) && defined(LENGTH_T)
    return source_at(n == 0 ? 0 : AT(min(i, n - 1), n), ELEMENTS);
#elif defined(SOURCE)
    return source_at(AT(min(i, n - 1), n), ELEMENTS);
#elif defined(OPERATOR)
    return i < n ? x[AT(i, n)] : op_identity();
#else
    return i < n ? x[AT(i, n)] : (T)0;
#endif
}

// Loads the work-item's vectors of a tile; they are there after await_loads(). If one of the work-item's elements does
// not exist, it loads all of them one at a time, and never by asynchronous copies. Each work-item tests this for
// itself: PoCL sometimes miscompiles loops in a branch that all work-items take.
static inline void load_vectors(ELEMENT_PARAMS, OFFSET_T base, OFFSET_T n, TILE_SPACE TV* vectors)
{
    if (n - base >= ITEM_END) {
        UNROLL
        for (uint k = 0; k < ITEM_VECTORS; k++) {
#ifdef SOURCE
            vectors[own_entry(k, TILE_STRIDE)] = vector_at(base + position_of(k), n, ELEMENTS);
#else
            start_load(&vectors[own_entry(k, TILE_STRIDE)], x + VECTOR_AT(base + position_of(k), n));
#endif
        }
    } else {
        UNROLL
        for (uint k = 0; k < ITEM_VECTORS; k++) {
            T vector[VEC];
            for (uint j = 0; j < VEC; j++) {
                vector[IN_VECTOR(j)] = element_or_padding(base + position_of(k) + j, n, ELEMENTS);
            }
            vectors[own_entry(k, TILE_STRIDE)] = VLOAD(0, vector);
        }
    }
}

// Loads the segment-head flags of the work-item's vectors. All work-items call it, in uniform flow, after the last use
// of `words`; `bits` is free after the next barrier.
INLINED void load_heads(__local uint* bits, __local uint* words, uint* heads, OFFSET_T tile, OFFSET_T n HEAD_PARAMS)
{
#ifdef BY_OFFSETS
    UNROLL
    for (uint k = 0; k < HEAD_WORDS; k++) {
        heads[k] = 0;
    }
    for (uint k = get_local_id(0); k < BITS_WORDS; k += WG) {
        bits[k] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    set_head_bits(bits, tile, n HEAD_PASS);
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL
    for (uint k = 0; k < ITEM_VECTORS; k++) {
        const uint position = position_of(k);
        heads[k * VEC / 32] |= (bits[position / 32] >> position % 32 & ((1u << VEC) - 1)) << k * VEC % 32;
    }
#else
    if (!SEGMENTED) {
        return;
    }
    const uint word_vectors = ITEM_VECTORS / HEAD_WORDS;
    const OFFSET_T base = tile * TILE;
    UNROLL
    for (uint m = 0; m < HEAD_WORDS; m++) {
        CHOICE uint* word = choose_word(heads + m, words);
        *word = 0;
        if (n - base >= ITEM_END) {
            UNROLL
            for (uint k = m * word_vectors; k < (m + 1) * word_vectors; k++) {
                *word |= vector_heads(true, base, position_of(k), n HEAD_PASS) << k * VEC % 32;
            }
        } else {
            UNROLL
            for (uint k = m * word_vectors; k < (m + 1) * word_vectors; k++) {
                *word |= vector_heads(false, base, position_of(k), n HEAD_PASS) << k * VEC % 32;
            }
        }
        heads[m] = *word;
    }
#endif
}

// Loads the work-item's vectors of a tile and their segment-head flags. With offsets the elements are loaded first,
// since a search of the offsets waits for each of its loads. H200, 2^28 u32 in segments of 256: 812 us instead of 842.
// Loads of keys do not wait for one another, so the keys are loaded first: segments of 16, 902 us instead of 938.
INLINED void load_tile(
    ELEMENT_PARAMS, OFFSET_T tile, OFFSET_T n, TILE_SPACE TV* vectors, __local uint* bits, __local uint* words,
    uint* heads HEAD_PARAMS)
{
    if (SEARCHES_OFFSETS) {
        load_vectors(ELEMENTS, tile * TILE, n, vectors);
        load_heads(bits, words, heads, tile, n HEAD_PASS);
    } else {
        load_heads(bits, words, heads, tile, n HEAD_PASS);
        load_vectors(ELEMENTS, tile * TILE, n, vectors);
    }
    await_loads();
}

// The accumulators of a vector's elements, in the order of the scan.
static inline void take_vector(TV vector, A* a)
{
    A in_memory[VEC];
    unpack(vector, in_memory);
    for (uint j = 0; j < VEC; j++) {
        a[j] = in_memory[IN_VECTOR(j)];
    }
}

static inline A reduce_vector(TV vector, uint heads)
{
    A a[VEC];
    take_vector(vector, a);
    A total = a[0];
    for (uint j = 1; j < VEC; j++) {
        total = join_values(total, a[j], HEAD_BIT(heads, j));
    }
    return total;
}

// In the tree scans below a lane has `own` contiguous partials in each of `rows` rows. Partial k of row r has the value
// total[r * own + k] and the prefix prefix[r * own + k]. Its segment-head flag is bit r of heads[k], and that of its
// prefix is bit r of prefix_heads[k].

// The levels of the tree scans within a lane. Initialises the prefixes; the lane's aggregates go to total[r * own] and
// heads[0].
INLINED void scan_lane(const uint rows, const uint own, A* total, uint* heads, A* prefix, uint* prefix_heads)
{
    UNROLL
    for (uint k = 0; k < rows * own; k++) {
        prefix[k] = OP_IDENTITY;
    }
    if (SEGMENTED) {
        UNROLL
        for (uint k = 0; k < own; k++) {
            prefix_heads[k] = 0;
        }
    }
    UNROLL
    for (uint d = 1; d < own; d *= 2) {
        UNROLL
        for (uint k = 0; k < rows * own; k++) {
            if (k & d) {
                prefix[k] = join_values(total[k & ~(2 * d - 1)], prefix[k], HEAD_BIT(prefix_heads[k % own], k / own));
            }
        }
        UNROLL
        for (uint k = 0; k < rows * own; k += 2 * d) {
            total[k] = join_values(total[k], total[k + d], HEAD_BIT(heads[(k + d) % own], k / own));
        }
        if (SEGMENTED) {
            UNROLL
            for (uint k = 0; k < own; k++) {
                if (k & d) {
                    prefix_heads[k] |= heads[k & ~(2 * d - 1)];
                }
            }
            UNROLL
            for (uint k = 0; k < own; k += 2 * d) {
                heads[k] |= heads[k + d];
            }
        }
    }
}

// The aggregates and head flags of lane ^ d: by shuffles, or through local memory with two work-group barriers. This is
// for one tree level between lanes. Levels within a lane are in scan_lane(), without exchange or barrier. In
// scan_chunks() there are always levels within a lane, since a lane has CHUNKS / LANES >= 2 chunks. All work-items call
// it, in uniform flow; with SHUFFLES whole sub-groups are enough.
INLINED uint exchange_aggregates(
    const uint rows, const uint own, uint d, const A* total, uint heads, A* other, __local A* exchange,
    __local uint* words)
{
    uint other_heads = 0;
#if SHUFFLES
    UNROLL
    for (uint r = 0; r < rows; r++) {
        other[r] = shuffle_xor_acc(total[r * own], d, words);
    }
    if (SEGMENTED) {
        other_heads = sg_shuffle_xor_u32(heads, d, words);
    }
#else
    const uint item = get_local_id(0);
    for (uint r = 0; r < rows; r++) {
        exchange[r * WG + item] = total[r * own];
    }
    if (SEGMENTED) {
        words[item] = heads;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint r = 0; r < rows; r++) {
        other[r] = exchange[r * WG + (item ^ d)];
    }
    if (SEGMENTED) {
        other_heads = words[item ^ d];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    return other_heads;
}

// One level of the tree scans between lanes. `other` has the aggregates of the other half, and `upper` is true in lanes
// of the upper half.
INLINED void join_halves(
    const uint rows, const uint own, const bool upper, const A* other, const uint other_heads, A* total, uint* heads,
    A* prefix, uint* prefix_heads)
{
    UNROLL
    for (uint r = 0; r < rows; r++) {
        // The code computes both values and selects one, because PoCL may treat a value as uniform if a branch sets it.
        const A sum = total[r * own], more = other[r], after = OP(more, sum), before = OP(sum, more);
        UNROLL
        for (uint k = 0; k < own; k++) {
            const A old = prefix[r * own + k], both = OP(more, old), joined = HEAD_BIT(prefix_heads[k], r) ? old : both;
            prefix[r * own + k] = upper ? joined : old;
        }
        const A as_upper = HEAD_BIT(heads[0], r) ? sum : after, as_lower = HEAD_BIT(other_heads, r) ? more : before;
        total[r * own] = upper ? as_upper : as_lower;
    }
    if (SEGMENTED) {
        UNROLL
        for (uint k = 0; k < own; k++) {
            prefix_heads[k] |= upper ? other_heads : 0;
        }
        heads[0] |= other_heads;
    }
}

// Tree scans by a lane group. The aggregates are in total[r * own] and heads[0] of every lane afterwards. All
// work-items call it, in uniform flow.
INLINED void scan_lanes(
    const uint rows, const uint own, A* total, uint* heads, A* prefix, uint* prefix_heads, __local A* exchange,
    __local uint* words)
{
    scan_lane(rows, own, total, heads, prefix, prefix_heads);
    for (uint d = 1; d < LANES; d *= 2) {
        A other[ROWS];
        const uint other_heads = exchange_aggregates(rows, own, d, total, heads[0], other, exchange, words);
        join_halves(
            rows, own, ((uint)get_local_id(0) & d) != 0, other, other_heads, total, heads, prefix, prefix_heads);
    }
}

// Tree scan of the chunks of BATCH rows, from row r on: the prefixes of the work-item's vectors. The aggregates of the
// chunks go to chunks[0..CHUNKS), unless they are `known`. All work-items call it, in uniform flow.
INLINED void scan_rows(
    const TILE_SPACE TV* vectors, const uint* heads, const uint r, A* prefix, uint* prefix_heads, const bool known,
    __local Partial* chunks, __local A* exchange, __local uint* words)
{
    const uint item = get_local_id(0), lane = item % LANES, lane_group = item / LANES;
    A total[BATCH * LANE_VECTORS];
    uint total_heads[LANE_VECTORS];
    UNROLL
    for (uint k = 0; k < LANE_VECTORS; k++) {
        total_heads[k] = 0;
        prefix_heads[k] = 0;
    }
    UNROLL
    for (uint k = 0; k < BATCH * LANE_VECTORS; k++) {
        const uint own = r * LANE_VECTORS + k;
        total[k] = reduce_vector(vectors[own_entry(own, TILE_STRIDE)], VECTOR_HEADS(heads, own));
        if (SEGMENTED) {
            total_heads[k % LANE_VECTORS] |= (uint)(VECTOR_HEADS(heads, own) != 0) << k / LANE_VECTORS;
        }
    }
    scan_lanes(BATCH, LANE_VECTORS, total, total_heads, prefix, prefix_heads, exchange, words);
    if (lane == 0 && !known) {
        UNROLL
        for (uint q = 0; q < BATCH; q++) {
            const Partial chunk = partial(total[q * LANE_VECTORS], HEAD_BIT(total_heads[0], q));
            STORE_PARTIAL(chunks[(r + q) * LANE_GROUPS + lane_group], chunk);
        }
    }
}

// Tree scan of the tile's chunks. Each lane group scans all 64 chunks; lane group 0 stores the prefixes for all
// work-items. Returns the aggregate of the tile. All work-items call it, in uniform flow.
INLINED Partial scan_chunks(__local Partial* chunks, __local A* exchange, __local uint* words)
{
    const uint item = get_local_id(0), lane = item % LANES, own = CHUNKS / LANES;
    A total[CHUNKS / LANES], prefix[CHUNKS / LANES];
    uint heads[CHUNKS / LANES], prefix_heads[CHUNKS / LANES];
    for (uint k = 0; k < own; k++) {
        const Partial chunk = LOAD_PARTIAL(chunks[lane * own + k]);
        total[k] = value_of(chunk);
        heads[k] = head_of(chunk);
        prefix_heads[k] = 0;
    }
    scan_lanes(1, CHUNKS / LANES, total, heads, prefix, prefix_heads, exchange, words);
    if (item < LANES) {
        for (uint k = 0; k < own; k++) {
            const Partial chunk = partial(prefix[k], prefix_heads[k]);
            STORE_PARTIAL(chunks[CHUNKS + lane * own + k], chunk);
        }
    }
    return partial(total[0], heads[0]);
}

// Tree scans of a tile: of the vectors of each chunk, then of the chunks. Returns the aggregate of the tile. All
// work-items call it, in uniform flow.
//
//     prefix of the work-item's vector q in row r, among the vectors of its chunk:
//         value:      prefix[own_entry(r * LANE_VECTORS + q, PREFIX_STRIDE)]
//         head flag:  bit r of prefix_heads[q]
//     aggregate of chunk c:                     chunks[c]
//     prefix of chunk c, among all 64 chunks:   chunks[CHUNKS + c], after the next barrier
//
// If `known`, reduce_in_order() has already stored the aggregates and the prefixes of the chunks. Then the result is
// invalid.
INLINED Partial scan_tile(
    const TILE_SPACE TV* vectors, const uint* heads, PREFIX_SPACE A* prefix, uint* prefix_heads, const bool known,
    __local Partial* chunks, __local A* exchange, __local uint* words)
{
    UNROLL
    for (uint k = 0; k < LANE_VECTORS; k++) {
        prefix_heads[k] = 0;
    }
    UNROLL
    for (uint r = 0; r < ROWS; r += BATCH) {
        A row_prefix[BATCH * LANE_VECTORS];
        uint row_heads[LANE_VECTORS];
        scan_rows(vectors, heads, r, row_prefix, row_heads, known, chunks, exchange, words);
        UNROLL
        for (uint k = 0; k < BATCH * LANE_VECTORS; k++) {
            prefix[own_entry(r * LANE_VECTORS + k, PREFIX_STRIDE)] = row_prefix[k];
        }
        UNROLL
        for (uint k = 0; k < LANE_VECTORS; k++) {
            prefix_heads[k] |= row_heads[k] << r;
        }
    }
    if (known) {
        return identity_partial();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const Partial total = scan_chunks(chunks, exchange, words);
    if (!SHUFFLES) {
        // Without this barrier PoCL 5.0 (LLVM 16) loses aggregates of bytes in segments between here and the next
        // barrier.
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return total;
}

// Stores the results of a vector, from result `first` on. If the vector is not `whole`, stores only those that exist.
// Results go straight to global memory, without an exchange between lanes. A whole vector's results take vector stores
// of 16 bytes: several if OUT is wider than T. If OUT is narrower, or if the vector is not whole, each result is stored
// alone.
static inline void store_results(__global OUT* out, OFFSET_T first, OFFSET_T outputs, bool whole, const OUT* vector)
{
    if (whole) {
        store_run(out + VECTOR_AT(first, outputs), vector);
    } else {
        for (uint j = 0; j < VEC; j++) {
            if (first + j < outputs) {
                out[AT(first + j, outputs)] = vector[IN_VECTOR(j)];
            }
        }
    }
}

// Scans the elements of the work-item's vectors, from the exclusive prefix of the tile on, and stores the results.
static inline void store_tile(
    __global OUT* out, OFFSET_T base, OFFSET_T outputs, const TILE_SPACE TV* vectors, const uint* heads,
    const PREFIX_SPACE A* prefix, const uint* prefix_heads, __local const Partial* chunks, A initial, A tile_prefix,
    uint inclusive)
{
    const uint lane_group = (uint)get_local_id(0) / LANES;
    UNROLL
    for (uint k = 0; k < ITEM_VECTORS; k++) {
        A a[VEC];
        take_vector(vectors[own_entry(k, TILE_STRIDE)], a);
        OUT results[VEC];
        const uint row = k / LANE_VECTORS;
        const Partial own = partial(prefix[own_entry(k, PREFIX_STRIDE)], HEAD_BIT(prefix_heads[k % LANE_VECTORS], row));
        const Partial chunk = LOAD_PARTIAL(chunks[CHUNKS + row * LANE_GROUPS + lane_group]);
        A acc = extend(initial, tile_prefix, join(chunk, own));
        for (uint j = 0; j < VEC; j++) {
            acc = restart(initial, acc, HEAD_BIT(VECTOR_HEADS(heads, k), j));
            const A next = OP(acc, a[j]);
            results[IN_VECTOR(j)] = narrow_acc(inclusive ? next : acc);
            acc = next;
        }
        const uint position = position_of(k);
        store_results(out, base + position, outputs, outputs - base >= position + VEC, results);
    }
}

#ifdef LOOK_BACK
#include "scan_look_back.cl"
#else

// aggregates[t] for the whole tiles t < tiles.
KERNEL SG_KERNEL void scan_aggregates(
    INPUT_PARAMS, LENGTH_PARAMS, __global Partial* aggregates,
    const OFFSET_T tiles HEAD_PARAMS)
{
    __local Partial chunks[2 * CHUNKS];
    __local A exchange[EXCHANGE];
    __local uint words[WORDS];
    __local uint bits[BITS_WORDS];
    PREFIX_SPACE A prefix[ITEM_VECTORS * PREFIX_STRIDE];
    TAKE_LENGTH
#ifndef SOURCE
    __global const T* x = in_base + in_offset;
#endif
    for (OFFSET_T tile = first_tile(WHOLE_TILES); tile < end_tile(WHOLE_TILES); tile += TILE_STEP) {
        TV vectors[ITEM_VECTORS];
        uint heads[HEAD_WORDS], prefix_heads[LANE_VECTORS];
        load_tile(ELEMENTS, tile, n, vectors, bits, words, heads HEAD_PASS);
        const Partial total = scan_tile(vectors, heads, prefix, prefix_heads, false, chunks, exchange, words);
        if (get_local_id(0) == 0) {
            STORE_PARTIAL(aggregates[tile], total);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// There are n results. An exclusive scan without segments may have n + 1: the last one is `initial` op the aggregate of
// the whole input.
KERNEL SG_KERNEL void scan_tiles(
    INPUT_PARAMS, LENGTH_PARAMS, __global OUT* out_base, const ulong out_offset,
    const OFFSET_T outputs, __global const Partial* aggregates, const OFFSET_T tiles, const A initial,
    const uint inclusive HEAD_PARAMS)
{
    __local Partial chunks[2 * CHUNKS];
    __local A exchange[EXCHANGE];
    __local uint words[WORDS];
    __local uint bits[BITS_WORDS];
    PREFIX_SPACE A prefix[ITEM_VECTORS * PREFIX_STRIDE];
    TAKE_LENGTH
#ifndef SOURCE
    __global const T* x = in_base + in_offset;
#endif
    __global OUT* out = out_base + out_offset;
    for (OFFSET_T tile = first_tile(OWN_TILES); tile < end_tile(OWN_TILES); tile += TILE_STEP) {
        TV vectors[ITEM_VECTORS];
        uint heads[HEAD_WORDS], prefix_heads[LANE_VECTORS];
        load_tile(ELEMENTS, tile, n, vectors, bits, words, heads HEAD_PASS);
        scan_tile(vectors, heads, prefix, prefix_heads, false, chunks, exchange, words);
        barrier(CLK_LOCAL_MEM_FENCE);
        const A tile_prefix = exclusive_prefix(aggregates, tile, tiles, initial);
        store_tile(
            out, tile * TILE, OUTPUTS, vectors, heads, prefix, prefix_heads, chunks, initial, tile_prefix, inclusive);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif
