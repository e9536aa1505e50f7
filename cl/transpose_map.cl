// Transposition of computed elements: out[c * rows + r] = element r * cols + c of a source.
//
//     map_blocks  work-groups on tiles of SIDE x SIDE blocks of 4 x 4 elements. A work-item transposes a block in its
//                 registers, as in transpose_blocks. The host promises that rows, cols and the output offset are
//                 multiples of 4
//     map_tiles   work-groups on tiles of TILE elements, whose sides the host picks: any shape and offset
//     map_runs    a work-group is one work-item, which takes a run of tiles: for CPU drivers (DEVICE_CPU)
//
// Computed elements pass through local memory. Tiles follow one another along the rows of the output, as in
// transpose.cl. Bytes: reads the arrays of the source once, writes every element once.
#include "lib/types.cl"
#include "lib/source.cl"

#ifndef WG
#define WG 256
#endif

#ifdef DEVICE_CPU

// A block's side is about a cache line.
#define BLOCK 16
#define TILE (8 * BLOCK)

// Transposes a block of whole rows and columns by way of a buffer, as turn_block of transpose.cl does.
static inline void map_block(
    const OFFSET_T from, const OFFSET_T cols, __global T* to, const OFFSET_T rows, SOURCE_PARAMS())
{
    T block[BLOCK * BLOCK];
    for (uint k = 0; k < BLOCK; k++) {
        for (uint i = 0; i < BLOCK; i++) {
            block[k * BLOCK + i] = source_at(from + k * cols + i, SOURCE_ARGS);
        }
    }
    for (uint i = 0; i < BLOCK; i++) {
        for (uint k = 0; k < BLOCK; k++) {
            to[i * rows + k] = block[k * BLOCK + i];
        }
    }
}

// Work-group g takes the tiles g * run, g * run + 1, ..., which go along the rows of the output.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void map_runs(
    SOURCE_PARAMS(restrict), __global T* restrict out_base, const ulong out_offset,
    const OFFSET_T rows, const OFFSET_T cols, const OFFSET_T run)
{
    __global T* out = out_base + out_offset;
    const OFFSET_T down = rows / TILE + (rows % TILE != 0), tiles = down * (cols / TILE + (cols % TILE != 0));
    const OFFSET_T first = get_group_id(0) * run, end = tiles - first > run ? first + run : tiles;
    for (OFFSET_T t = first; t < end; t++) {
        const OFFSET_T col = t / down, r0 = (t - col * down) * TILE, c0 = col * TILE;
        for (OFFSET_T r = r0; r < r0 + TILE && r < rows; r += BLOCK) {
            for (OFFSET_T c = c0; c < c0 + TILE && c < cols; c += BLOCK) {
                const OFFSET_T from = r * cols + c;
                __global T* to = out + c * rows + r;
                if (rows - r >= BLOCK && cols - c >= BLOCK) {
                    map_block(from, cols, to, rows, SOURCE_ARGS);
                } else {
                    for (uint i = 0; i < BLOCK && i < cols - c; i++) {
                        for (uint k = 0; k < BLOCK && k < rows - r; k++) {
                            to[i * rows + k] = source_at(from + k * cols + i, SOURCE_ARGS);
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
// Blocks of one work-item.
#define ITEM_BLOCKS (SIDE * SIDE / WG)

// Column k of the block whose rows are a, b, d, e; by components, because Oclgrind 21.10 crashes if one shuffle takes
// components of four vectors.
#define COLUMN(k, s)         \
    to[k * SIDE].s0 = a.s;   \
    to[k * SIDE].s1 = b.s;   \
    to[k * SIDE].s2 = d.s;   \
    to[k * SIDE].s3 = e.s;

// Vectors of the tile lie as in transpose_blocks.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void map_blocks(
    SOURCE_PARAMS(restrict), __global T* restrict out_base, const ulong out_offset,
    const OFFSET_T rows, const OFFSET_T cols)
{
    __local T4 tile[SIDE * 4 * SIDE];
    __global T* out = out_base + out_offset;
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
                    T four[4];
                    load_source_four((r * 4 + k) * cols + c * 4, four, SOURCE_ARGS);
                    x[j * 4 + k] = vload4(0, four);
                }
            }
        }
        UNROLL
        for (uint j = 0; j < ITEM_BLOCKS; j++) {
            const uint i = item + j * WG, r = i / SIDE, c = i % SIDE;
            if (r0 + r < block_rows && c0 + c < block_cols) {
                const T4 a = x[j * 4], b = x[j * 4 + 1], d = x[j * 4 + 2], e = x[j * 4 + 3];
                __local T4* to = tile + c * 4 * SIDE + (r ^ c);
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
                *(__global T4*)(out + (c0 * 4 + line) * rows + (r0 + r) * 4) = tile[line * SIDE + (r ^ line / 4)];
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
// Elements that a work-item has in flight.
#if TILE / WG < 16
#define BATCH (TILE / WG)
#else
#define BATCH 16
#endif

// A tile has 1 << log_rows by 1 << log_cols elements, TILE in all, with padding as that of transpose_tiles.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void map_tiles(
    SOURCE_PARAMS(restrict), __global T* restrict out_base, const ulong out_offset,
    const OFFSET_T rows, const OFFSET_T cols, const uint log_rows, const uint log_cols)
{
    __local T tile[TILE + (TILE >> LOG_PAD) * PAD];
    __global T* out = out_base + out_offset;
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
                    x[j] = source_at(r * cols + c, SOURCE_ARGS);
                }
            }
            UNROLL
            for (uint j = 0; j < BATCH; j++) {
                const uint i = first + j * WG;
                if (r0 + (i >> log_cols) < rows && c0 + (i & col_mask) < cols) {
                    tile[i + (i >> log_pad) * PAD] = x[j];
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = item; i < TILE; i += WG) {
            const uint r = i & row_mask, c = i >> log_rows, from = (r << log_cols) + c;
            if (r0 + r < rows && c0 + c < cols) {
                out[(c0 + c) * rows + r0 + r] = tile[from + (from >> log_pad) * PAD];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif
