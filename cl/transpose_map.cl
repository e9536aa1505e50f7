// Transposition of mapped elements: out[c * rows + r] = f(in[r * cols + c]).
//
// f converts T to A, as Rust's `as` does, and multiplies by `factor`; or it is the caller's function (MAPPED). The result is
// rounded to OUT.
//
//     map_blocks  work-groups on tiles of SIDE x SIDE blocks of 4 x 4 elements, each turned in the registers of one item, as
//                 in transpose_blocks: the host promises that rows, cols and both offsets are multiples of 4
//     map_tiles   work-groups on tiles of TILE elements, whose sides the host picks: any shape and offset
//     map_runs    one work-item a group, on a run of tiles: for CPU drivers (DEVICE_CPU), in place of the others
//
// Tiles cross local memory as A, and go along the rows of the output, as in transpose.cl. Bytes: reads and writes every element once.
//
// Compilers of CPU drivers do not transpose blocks in vectors by themselves. So if vectors convert as Rust's `as` does, a block
// is 16 vectors, transposed in registers.
#if defined(DEVICE_CPU) && !defined(MAPPED) && !defined(T_F16) && !defined(T_BF16) && !defined(OUT_F16) && \
    !defined(OUT_BF16) && (defined(A_FLOAT) || !defined(T_FLOAT))
#define VECTORS
#define OP_PRODUCT
#endif
#include "lib/types.cl"
#include "lib/op.cl"

#ifndef WG
#define WG 256
#endif

// x, of the type X that T is computed in, as an A.
static inline A converted(X x)
{
    // What does not fit has no defined result in C.
#if defined(T_FLOAT) && !defined(A_FLOAT) && A_BYTES < 4
    // By way of int, because Rusticl 25 crashes on selections among vectors of bytes.
    return (A)(int)(x != x ? (X)0 : fmin(fmax(x, (X)(A)A_LOWEST), (X)A_HIGHEST));
#elif defined(T_FLOAT) && !defined(A_FLOAT)
    // As floats the bounds are exact, or one more than the highest value.
    const bool high = x >= (X)A_HIGHEST, low = x <= (X)(A)A_LOWEST;
    const A inside = (A)(high || low || x != x ? (X)0 : x);
    return high ? (A)A_HIGHEST : low ? (A)A_LOWEST : inside;
#else
    return (A)x;
#endif
}

#ifdef MAPPED
#define RESULT(x) TAKEN(x)
#else
#define RESULT(x) MULTIPLY(factor, converted(widen(x)))
#endif

#ifdef DEVICE_CPU

// A block's side is about a cache line.
#define BLOCK 16
#define TILE (8 * BLOCK)

// A block of whole rows and columns.
static inline void map_block(__global const T* from, OFFSET_T cols, __global OUT* to, OFFSET_T rows, const A factor)
{
#ifdef VECTORS
    A16 row[BLOCK];
    _Pragma("unroll")
    for (uint k = 0; k < BLOCK; k++) {
        row[k] = OP16((A16)factor, TAKEN16(from + k * cols));
    }
    // Eight bits are an element's position in the block, those of the row first. Each step rotates them by one, so at the end
    // those of the column come first.
    _Pragma("unroll")
    for (uint d = 1; d < BLOCK; d *= 2) {
        A16 before[BLOCK];
        _Pragma("unroll")
        for (uint k = 0; k < BLOCK; k++) {
            before[k] = row[k];
        }
        _Pragma("unroll")
        for (uint k = 0; k < BLOCK / 2; k++) {
            row[k] = (A16)(before[2 * k].even, before[2 * k + 1].even);
            row[k + BLOCK / 2] = (A16)(before[2 * k].odd, before[2 * k + 1].odd);
        }
    }
    _Pragma("unroll")
    for (uint k = 0; k < BLOCK; k++) {
        vstore16(CAT(convert_, CAT(OUT, 16))(row[k]), 0, to + k * rows);
    }
#else
    // By way of a buffer, as in turn_block of transpose.cl.
    A block[BLOCK * BLOCK];
    for (uint k = 0; k < BLOCK; k++) {
        for (uint i = 0; i < BLOCK; i++) {
            block[k * BLOCK + i] = RESULT(from[k * cols + i]);
        }
    }
    for (uint i = 0; i < BLOCK; i++) {
        for (uint k = 0; k < BLOCK; k++) {
            store_acc(to + i * rows + k, block[k * BLOCK + i]);
        }
    }
#endif
}

// Group g takes the tiles g * run, g * run + 1, ..., which go along the rows of the output.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void map_runs(
    __global const T* restrict in_base, const ulong in_offset, __global OUT* restrict out_base, const ulong out_offset,
    const OFFSET_T rows, const OFFSET_T cols, const A factor, const OFFSET_T run)
{
    __global const T* in = in_base + in_offset;
    __global OUT* out = out_base + out_offset;
    const OFFSET_T down = rows / TILE + (rows % TILE != 0), tiles = down * (cols / TILE + (cols % TILE != 0));
    const OFFSET_T first = get_group_id(0) * run, end = tiles - first > run ? first + run : tiles;
    for (OFFSET_T t = first; t < end; t++) {
        const OFFSET_T col = t / down, r0 = (t - col * down) * TILE, c0 = col * TILE;
        for (OFFSET_T r = r0; r < r0 + TILE && r < rows; r += BLOCK) {
            for (OFFSET_T c = c0; c < c0 + TILE && c < cols; c += BLOCK) {
                __global const T* from = in + r * cols + c;
                __global OUT* to = out + c * rows + r;
                if (rows - r >= BLOCK && cols - c >= BLOCK) {
                    map_block(from, cols, to, rows, factor);
                } else {
                    for (uint i = 0; i < BLOCK && i < cols - c; i++) {
                        for (uint k = 0; k < BLOCK && k < rows - r; k++) {
                            store_acc(to + i * rows + k, RESULT(from[k * cols + i]));
                        }
                    }
                }
            }
        }
    }
}

#else

#define UNROLL _Pragma("unroll")

#ifdef SIDE

#define T4 CAT(T, 4)
#define A4 CAT(A, 4)
// Blocks of one item.
#define ITEM_BLOCKS (SIDE * SIDE / WG)

static inline void store_four(__global OUT* p, A4 x)
{
#if defined(OUT_F16)
    vstorea_half4_rte(x, 0, (__global half*)p);
#elif defined(OUT_BF16)
    store_acc(p, x.s0);
    store_acc(p + 1, x.s1);
    store_acc(p + 2, x.s2);
    store_acc(p + 3, x.s3);
#else
    *(__global A4*)p = x;
#endif
}

// Column k of the block whose rows are a, b, d, e; by components, because Oclgrind 21.10 crashes on vectors made of four.
#define COLUMN(k, s)                 \
    to[k * SIDE].s0 = RESULT(a.s);   \
    to[k * SIDE].s1 = RESULT(b.s);   \
    to[k * SIDE].s2 = RESULT(d.s);   \
    to[k * SIDE].s3 = RESULT(e.s);

// Vectors of the tile lie as in transpose_blocks.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void map_blocks(
    __global const T* restrict in_base, const ulong in_offset, __global OUT* restrict out_base, const ulong out_offset,
    const OFFSET_T rows, const OFFSET_T cols, const A factor)
{
    __local A4 tile[SIDE * 4 * SIDE];
    __global const T4* in = (__global const T4*)(in_base + in_offset);
    __global OUT* out = out_base + out_offset;
    const uint item = get_local_id(0);
    const OFFSET_T block_rows = rows / 4, block_cols = cols / 4;
    const OFFSET_T down = block_rows / SIDE + (block_rows % SIDE != 0);
    const OFFSET_T tiles = down * (block_cols / SIDE + (block_cols % SIDE != 0));
    for (OFFSET_T t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        const OFFSET_T col = t / down, c0 = col * SIDE, r0 = (t - col * down) * SIDE;
        T4 x[ITEM_BLOCKS * 4];
        UNROLL
        for (uint j = 0; j < ITEM_BLOCKS; j++) {
            const uint i = item + j * WG;
            const OFFSET_T r = r0 + i / SIDE, c = c0 + i % SIDE;
            if (r < block_rows && c < block_cols) {
                UNROLL
                for (uint k = 0; k < 4; k++) {
                    x[j * 4 + k] = in[(r * 4 + k) * block_cols + c];
                }
            }
        }
        UNROLL
        for (uint j = 0; j < ITEM_BLOCKS; j++) {
            const uint i = item + j * WG, r = i / SIDE, c = i % SIDE;
            if (r0 + r < block_rows && c0 + c < block_cols) {
                const T4 a = x[j * 4], b = x[j * 4 + 1], d = x[j * 4 + 2], e = x[j * 4 + 3];
                __local A4* to = tile + c * 4 * SIDE + (r ^ c);
                COLUMN(0, s0)
                COLUMN(1, s1)
                COLUMN(2, s2)
                COLUMN(3, s3)
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < ITEM_BLOCKS * 4; j++) {
            const uint i = item + j * WG, line = i / SIDE, r = i % SIDE;
            if (c0 * 4 + line < cols && r0 + r < block_rows) {
                store_four(out + (c0 * 4 + line) * rows + (r0 + r) * 4, tile[line * SIDE + (r ^ line / 4)]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif

#ifndef TILE
#define TILE 4096
#define LOG_PAD 5
#define PAD 1
#endif
// Elements that an item has in flight.
#if TILE / WG < 16
#define BATCH (TILE / WG)
#else
#define BATCH 16
#endif

// A tile has 1 << log_rows by 1 << log_cols elements, TILE in all, with padding as that of transpose_tiles.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void map_tiles(
    __global const T* restrict in_base, const ulong in_offset, __global OUT* restrict out_base, const ulong out_offset,
    const OFFSET_T rows, const OFFSET_T cols, const A factor, const uint log_rows, const uint log_cols)
{
    __local A tile[TILE + (TILE >> LOG_PAD) * PAD];
    __global const T* in = in_base + in_offset;
    __global OUT* out = out_base + out_offset;
    const uint item = get_local_id(0), log_pad = max(log_cols, (uint)LOG_PAD);
    const uint row_mask = (1u << log_rows) - 1, col_mask = (1u << log_cols) - 1;
    const OFFSET_T down = (rows >> log_rows) + ((rows & row_mask) != 0);
    const OFFSET_T tiles = down * ((cols >> log_cols) + ((cols & col_mask) != 0));
    for (OFFSET_T t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        const OFFSET_T col = t / down, c0 = col << log_cols, r0 = (t - col * down) << log_rows;
        for (uint first = item; first < TILE; first += BATCH * WG) {
            T x[BATCH];
            UNROLL
            for (uint j = 0; j < BATCH; j++) {
                const uint i = first + j * WG;
                const OFFSET_T r = r0 + (i >> log_cols), c = c0 + (i & col_mask);
                if (r < rows && c < cols) {
                    x[j] = in[r * cols + c];
                }
            }
            UNROLL
            for (uint j = 0; j < BATCH; j++) {
                const uint i = first + j * WG;
                if (r0 + (i >> log_cols) < rows && c0 + (i & col_mask) < cols) {
                    tile[i + (i >> log_pad) * PAD] = RESULT(x[j]);
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = item; i < TILE; i += WG) {
            const uint r = i & row_mask, c = i >> log_rows, from = (r << log_cols) + c;
            if (r0 + r < rows && c0 + c < cols) {
                store_acc(out + (c0 + c) * rows + r0 + r, tile[from + (from >> log_pad) * PAD]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif
