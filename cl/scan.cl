// Scan: each result combines the elements up to one index, in an order that depends on that index and the types alone.
//
//     inclusive: out[i] = initial op x[0] op ... op x[i]
//     exclusive: out[i] = initial op x[0] op ... op x[i - 1]; without segments also out[n], if there are n + 1 results
//
// With REVERSE i counts from the last element, in the input and in the output. With BY_* the input has segments: a scan
// restarts from `initial` at each segment head. REVERSE changes which element of a segment is its head (lib/heads.cl).
//
// Order: a vector is VEC elements, 16 bytes, combined one after another. A chunk is 32 vectors; a tile is 64 chunks. A
// balanced tree of neighbours reduces the vectors of a chunk, and another one the chunks of a tile. 32 tiles form a
// tile group, 32 tile groups form a group of the next level, and so on. For element i of vector v of chunk c of tile t:
//
//     inclusive: out[i] = ((prefix(t) op (prefix(c) op prefix(v))) op x[first of v]) ... op x[i]
//     exclusive: the same without op x[i]
//
// prefix(v) is the tree-scan prefix of v among the 32 vectors of its chunk. prefix(c) is that of c among the 64 chunks
// of its tile. prefix(t) is the tile's exclusive prefix (lib/spine.cl), which combines aggregates of tiles and of
// groups. A group has 32 members, with the aggregates a[0], ..., a[31]. Its own aggregate is no balanced tree:
//
//     aggregate of a group = prefix(31) op a[31], with the tree-scan prefix(31) of a[0], ..., a[30]
//
// With LOOK_BACK the last tile in the group has both operands.
//
// So the results depend on no work-group size, sub-group width, grid or look-back. Two exceptions are the bits of a
// NaN, and subnormals on a device that flushes them.
//
// EXACT: the host promises that every order gives the same results. It does so for built-in operators, except sums and
// products of floats. EXACT changes the order in three places; all other code keeps the order above:
//
//     scan_cpu.cl, scan_tiles:       combines the elements of a tile one after another
//     scan_cpu.cl, scan_aggregates:  likewise; but without segments the compiler may change the order (IN_VECTORS)
//     scan_look_back.cl, SHUFFLES:   without segments, a tile publishes the aggregate of reduce_in_any_order()
//
// In place, `out` is `x`. Each element is used before a result replaces it. scan_gpu.cl loads a whole tile before it
// stores a result. scan_cpu.cl loads each element for the last time before it stores the result with the same index.
// The host scans in place only if there are n results. With n + 1 and REVERSE result i would replace element i - 1.
// With LOOK_BACK recompute_tile() may read results of another tile, but detects it.
//
// Global memory, for each kernel:
//
//     scan_aggregates:  reads the elements of all tiles but the last; writes the aggregates of these tiles
//     scan_spine:       for each level: reads the aggregates; writes prefixes in their place, and aggregates of groups
//     scan_tiles:       reads n elements, and for each tile one prefix of each level; writes the results
//     scan_look_back:   reads n elements; writes and polls status words; writes the results
//
// Keys, flags or offsets of segments are read as often as elements. In scan_tiles, scan_cpu.cl without EXACT loads each
// element three times. This counts as one read, since a tile of 32 KiB fits most caches.
//
// `aggregates` has an entry for each tile and for each group. Only an entry that would be alone on its level is left
// out. Status words have the same entries, of 8 bytes each, or of 16 if A has 8 bytes. No tile needs the aggregate of
// the last entry of a level. scan_spine does not read this entry, but writes its prefix. Its status word is not
// written. scan_look_back.cl has the number of polls.
//
//     with BY_OFFSETS: scan_ranks, before the others: the rank of each tile among the offsets (lib/heads.cl)
//     with LOOK_BACK: scan_look_back
//     else:           scan_aggregates:  aggregates[t] = aggregate of tile t, for all tiles but the last
//                     scan_spine:       prefixes of the aggregates, one launch per level
//                     scan_tiles:       results of tile t
//
// Without LOOK_BACK one tile needs only scan_tiles, and with BY_OFFSETS scan_ranks before it. If WG == 1, a work-item
// scans a tile (scan_cpu.cl), always without LOOK_BACK; else a work-group does (scan_gpu.cl). The look-back is in
// scan_look_back.cl. The host sets WG to 1 in three cases:
//
//     a CPU driver, for which it also defines DEVICE_CPU
//     a GPU with little local memory
//     a GPU with fewer than 8 work-items in a work-group
//
// DEVICE_CPU changes two things in a scan. The tiles of a work-group are contiguous, and f16_to_float() of lib/types.cl
// computes with integers and floats instead of loading a half.
#if defined(BY_KEYS) || defined(BY_FLAGS) || defined(BY_OFFSETS) || defined(BY_ROWS)
#define SEGMENTED 1
#endif
// VECTORS selects code for vectors of 16 lanes (scan_cpu_vectors.cl), since CPU drivers do not vectorise the order
// above. The host defines it for CPU drivers, except Oclgrind, without EXACT and without segments. It is undefined here
// for the caller's operators, for sources, and for elements or results of 16 bits that are floats. So only
// built-in sums and products of other elements keep it, with accumulators of f32 or f64.
#if defined(OPERATOR) || defined(SOURCE) || defined(T_F16) || defined(T_BF16) || defined(OUT_F16) || defined(OUT_BF16)
#undef VECTORS
#endif
#ifndef REVERSE
#define REVERSE 0
#endif
#ifndef EXACT
#define EXACT 0
#endif
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"
#include "lib/workgroup.cl"
#include "lib/outputs.cl"
#include "lib/spine.cl"
#include "lib/length.cl"

#define CHUNK_VECTORS 32
#define CHUNKS 64
#define TILE_VECTORS (CHUNKS * CHUNK_VECTORS)
#define TILE (TILE_VECTORS * VEC)
#include "lib/scan_length.cl"

// NVIDIA's compiler obeys a register limit only if the kernel does not fix its work-group size.
#if SG_BACKEND == SG_PTX
#define KERNEL __kernel
#else
#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif

// AT: the index of the i-th of `len` elements. VECTOR_AT: the lowest index in the vector that begins with the i-th
// element. IN_VECTOR: the position in memory of a vector's j-th element. Without segments these macros, and similar
// ones in scan_cpu_vectors.cl, are all that REVERSE changes. With flags or offsets of segments, it also changes how
// lib/heads.cl finds heads.
#define AT(i, len) (REVERSE ? (len) - 1 - (i) : (i))
#define VECTOR_AT(i, len) (REVERSE ? (len) - VEC - (i) : (i))
#define IN_VECTOR(j) (REVERSE ? VEC - 1 - (j) : (j))
#include "lib/heads.cl"

// The input: memory, or with SOURCE computed elements. INPUT_PARAMS are a kernel's first parameters. ELEMENT_PARAMS are
// the parameters of a function that reads elements, and ELEMENTS are the arguments for them.
#ifdef SOURCE
#include "lib/source.cl"
#define INPUT_PARAMS SOURCE_PARAMS()
#define ELEMENT_PARAMS SOURCE_PARAMS()
#define ELEMENTS SOURCE_ARGS
INLINED A element_at(OFFSET_T i, ELEMENT_PARAMS) { return to_acc(source_at(i, ELEMENTS)); }
#else
#define INPUT_PARAMS __global const T *in_base, const ulong in_offset
#define ELEMENT_PARAMS __global const T* x
#define ELEMENTS x
INLINED A element_at(OFFSET_T i, ELEMENT_PARAMS) { return to_acc(x[i]); }
#endif

// Bit j of a word of segment-head flags.
#define HEAD_BIT(word, j) (SEGMENTED ? (word) >> (j) & 1 : 0u)

// A work-group has the tiles from first_tile() on, below end_tile(), TILE_STEP apart: contiguous ones on a CPU.
#ifdef DEVICE_CPU
#define TILE_STEP 1
static inline size_t tiles_of_group(OFFSET_T tiles) { return (tiles - 1) / get_num_groups(0) + 1; }
static inline OFFSET_T first_tile(OFFSET_T tiles) { return (OFFSET_T)(get_group_id(0) * tiles_of_group(tiles)); }
static inline OFFSET_T end_tile(OFFSET_T tiles)
{
    return min(tiles, (OFFSET_T)((get_group_id(0) + 1) * tiles_of_group(tiles)));
}
#else
#define TILE_STEP ((OFFSET_T)get_num_groups(0))
static inline OFFSET_T first_tile(OFFSET_T tiles) { return (OFFSET_T)get_group_id(0); }
static inline OFFSET_T end_tile(OFFSET_T tiles) { return tiles; }
#endif

#ifndef LOOK_BACK
// Scans one level of the tile aggregates.
KERNEL void scan_spine(
    __global Partial* aggregates, const OFFSET_T first, const OFFSET_T count, const OFFSET_T above SPINE_PARAMS)
{
    TAKE_LENGTH
    scan_level(aggregates, first, SPINE_COUNT, above, get_global_id(0));
}
#endif

#ifdef BY_OFFSETS
// ranks[t] of lib/heads.cl, of `count` offsets, for the tiles of n elements and for the end.
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
#include "scan_cpu.cl"
#else
#include "scan_gpu.cl"
#endif
