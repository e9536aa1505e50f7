// Transposition: out[c * rows + r] = in[r * cols + c], for rows x cols elements of 1 to 16 bytes.
//
// An element is UNITS units of type UNIT. The size of a unit is the largest power of two that divides the element's
// size. Of the element's type, only the size matters.
//
//     transpose_blocks  work-groups on tiles of SIDE x SIDE blocks. A block of BLOCK x BLOCK elements is transposed in
//                       the registers of one work-item, and crosses local memory as BLOCK vectors. Every access to
//                       global memory is a whole vector: the host promises that rows, cols and both offsets are
//                       multiples of BLOCK.
//     transpose_tiles   work-groups on tiles of TILE elements, element by element: any shape and offset. The host picks
//                       the tile's sides, so that a matrix with a short side fills its tiles too.
//     transpose_narrow  work-groups on chunks of a matrix with NARROW columns or rows, in whole 16-byte words of VEC
//                       elements on both sides: arrays of small structs become one array for each member, and back.
//     transpose_runs    a work-group is one work-item, which takes a run of tiles: for CPU drivers (DEVICE_CPU), in
//                       place of the others.
//
// Rows are ld_in elements apart in the input and ld_out in the output. There are `count` matrices, at the offsets that
// MATRICES describes: up to six axes, the innermost one first, with their strides. Negative strides wrap.
//
// Neighbouring work-items read neighbouring elements of a row and write neighbouring elements of a row of the output.
// Tiles go along the rows of the output, so that stores at about the same time are close together. H200, tiles along
// the rows of the input -> along the rows of the output:
//
//     16,384 x 16,384 u16    289 -> 271 us
//     16,384 x 16,384 f32    534 -> 522 us
//     16,384 x 16,384 u64    1.15 -> 1.08 ms
//     10,000 x 30,000        662 -> 607 us
//
// Work-groups take the tiles t, t + groups, ...; every work-item reaches every barrier. Bytes: reads and writes every
// element once, except that a tile reads LEAD rows more.
#include "lib/turn.cl"

#ifndef OFFSET_T
#define OFFSET_T uint
#define WG 256
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define OFFSET8 CAT(OFFSET_T, 8)
// The last arguments of every kernel: the number of matrices, and their offsets. `first_in` is the first one's offset.
#define MATRICES                                                                                                       \
    const OFFSET_T count, const OFFSET_T first_in, const OFFSET8 lengths, const OFFSET8 steps_in,                      \
        const OFFSET8 steps_out

// Adds the offsets of matrix b from the first one to *in and *out.
static inline void find_matrix(
    OFFSET_T b, OFFSET8 lengths, OFFSET8 steps_in, OFFSET8 steps_out, OFFSET_T* in, OFFSET_T* out)
{
    OFFSET_T q, k;
#define STEP(s)                       \
    q = b < lengths.s ? 0 : b / lengths.s; \
    k = b - q * lengths.s;            \
    *in += k * steps_in.s;            \
    *out += k * steps_out.s;          \
    b = q;                            \
    if (b == 0) {                     \
        return;                       \
    }
    STEP(s0)
    STEP(s1)
    STEP(s2)
    STEP(s3)
    STEP(s4)
    STEP(s5)
#undef STEP
}

#ifdef DEVICE_CPU

// A block's side is about a cache line. A tile has several blocks, so that neighbouring cache lines of a page are used
// at about the same time.
#ifndef BLOCK
#define BLOCK 16
#define SIDE 4
#endif
#define TILE (SIDE * BLOCK)

// Transposes BLOCK x BLOCK elements by way of a buffer. If the rows' length is a power of two, their cache lines
// compete for the same sets of the cache. So each line is used whole at once. VECTORS, if it is defined, is the type of
// 16 elements that are moved at once.
static inline void turn_block(__global const E* in, OFFSET_T ld_in, __global E* out, OFFSET_T ld_out)
{
    E block[BLOCK * BLOCK];
#ifdef VECTORS
    for (uint r = 0; r < BLOCK; r++) {
        for (uint c = 0; c < BLOCK; c += 16) {
            vstore16(vload16(0, in + r * ld_in + c), 0, block + r * BLOCK + c);
        }
    }
    for (uint c = 0; c < BLOCK; c++) {
        for (uint r = 0; r < BLOCK; r += 16) {
#define ROW(k) block[(r + (k)) * BLOCK + c]
            const VECTORS column = (VECTORS)(
                ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8), ROW(9), ROW(10), ROW(11),
                ROW(12), ROW(13), ROW(14), ROW(15));
#undef ROW
            vstore16(column, 0, out + c * ld_out + r);
        }
    }
#else
    for (uint r = 0; r < BLOCK; r++) {
        for (uint c = 0; c < BLOCK; c++) {
            block[r * BLOCK + c] = in[r * ld_in + c];
        }
    }
    for (uint c = 0; c < BLOCK; c++) {
        for (uint r = 0; r < BLOCK; r++) {
            out[c * ld_out + r] = block[r * BLOCK + c];
        }
    }
#endif
}

// Work-group g takes the tiles g * run, g * run + 1, ..., which go along the rows of the output.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void transpose_runs(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const OFFSET_T rows, const OFFSET_T cols, const OFFSET_T ld_in, const OFFSET_T ld_out,
    const OFFSET_T run, MATRICES)
{
    const OFFSET_T down = rows / TILE + (rows % TILE != 0), tiles = down * (cols / TILE + (cols % TILE != 0));
    const OFFSET_T first = get_group_id(0) * run, end = tiles * count - first > run ? first + run : tiles * count;
    for (OFFSET_T t = first; t < end; t++) {
        OFFSET_T from_first = first_in, to_first = 0;
        const OFFSET_T matrix = t / tiles, tile = t - matrix * tiles;
        find_matrix(matrix, lengths, steps_in, steps_out, &from_first, &to_first);
        __global const E* in = (__global const E*)in_base + in_offset + from_first;
        __global E* out = (__global E*)out_base + out_offset + to_first;
        const OFFSET_T col = tile / down, r0 = (tile - col * down) * TILE, c0 = col * TILE;
        for (OFFSET_T r = r0; r < r0 + TILE && r < rows; r += BLOCK) {
            for (OFFSET_T c = c0; c < c0 + TILE && c < cols; c += BLOCK) {
                __global const E* from = in + r * ld_in + c;
                __global E* to = out + c * ld_out + r;
                if (rows - r >= BLOCK && cols - c >= BLOCK) {
                    turn_block(from, ld_in, to, ld_out);
                } else {
                    for (uint i = 0; i < BLOCK && i < cols - c; i++) {
                        for (uint k = 0; k < BLOCK && k < rows - r; k++) {
                            to[i * ld_out + k] = from[k * ld_in + i];
                        }
                    }
                }
            }
        }
    }
}

#else

#ifdef BLOCK

// Blocks of one work-item.
#define ITEM_BLOCKS (SIDE * SIDE / WG)

// Line l of the tile, a row of the output, has SIDE vectors: that of block row b is at b ^ (l / BLOCK). So neither
// work-items that write a column of vectors nor those that read a row of them have bank conflicts.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void transpose_blocks(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const OFFSET_T rows, const OFFSET_T cols, const OFFSET_T ld_in, const OFFSET_T ld_out,
    MATRICES)
{
    __local V tile[SIDE * BLOCK * SIDE];
    const uint item = get_local_id(0);
    const OFFSET_T block_rows = rows / BLOCK, block_cols = cols / BLOCK;
    const OFFSET_T down = block_rows / SIDE + (block_rows % SIDE != 0);
    const OFFSET_T tiles = down * (block_cols / SIDE + (block_cols % SIDE != 0));
    const OFFSET_T words_in = ld_in / BLOCK, words_out = ld_out / BLOCK;
    for (OFFSET_T t = get_group_id(0); t < tiles * count; t += get_num_groups(0)) {
        OFFSET_T from_first = first_in, to_first = 0;
        const OFFSET_T matrix = t / tiles, of_matrix = t - matrix * tiles;
        find_matrix(matrix, lengths, steps_in, steps_out, &from_first, &to_first);
        __global const V* in = (__global const V*)(in_base + in_offset) + from_first / BLOCK;
        __global V* out = (__global V*)(out_base + out_offset) + to_first / BLOCK;
        const OFFSET_T col = of_matrix / down, c0 = col * SIDE, r0 = (of_matrix - col * down) * SIDE;
        V x[ITEM_BLOCKS * BLOCK];
        UNROLL
        for (uint j = 0; j < ITEM_BLOCKS; j++) {
            const uint i = item + j * WG;
            const OFFSET_T r = r0 + i / SIDE, c = c0 + i % SIDE;
            if (r < block_rows && c < block_cols) {
                UNROLL
                for (uint k = 0; k < BLOCK; k++) {
                    x[j * BLOCK + k] = in[(r * BLOCK + k) * words_in + c];
                }
            }
        }
        UNROLL
        for (uint j = 0; j < ITEM_BLOCKS; j++) {
            const uint i = item + j * WG, r = i / SIDE, c = i % SIDE;
            if (r0 + r < block_rows && c0 + c < block_cols) {
                store_transposed(tile + c * BLOCK * SIDE + (r ^ c), x + j * BLOCK);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < ITEM_BLOCKS * BLOCK; j++) {
            const uint i = item + j * WG, line = i / SIDE, r = i % SIDE;
            if (c0 * BLOCK + line < cols && r0 + r < block_rows) {
                out[(c0 * BLOCK + line) * words_out + r0 + r] = tile[line * SIDE + (r ^ line / BLOCK)];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif

#ifndef LOG_PAD
#define LOG_PAD 5
#define PAD 1
#endif

#ifndef NARROW

#ifndef TILE
#define TILE 4096
#endif
// LEAD: the elements of a sector of memory; rows of the output may begin anywhere in a sector. In each row a tile then
// writes from the start of a sector on, up to LEAD - 1 elements before its own. So no two work-groups write to one
// sector of a row. The tile reads LEAD rows more. H200, 4,097 x 8,191 f32: 99 us without LEAD, 91 with LEAD, 79 if the
// tile's sides are also known at build time.
#ifdef LEAD
#define READ (TILE + (LEAD << LOG_COLS))
#else
#define LEAD 0
#define LOG_ROWS log_rows
#define LOG_COLS log_cols
#define READ TILE
#endif
// Is 1 if i is one of the READ elements that the tile reads. A work-item's last batch may have fewer than BATCH of
// them.
#define IS_READ(i) (READ % (BATCH * WG) == 0 || (i) < READ)
// Is 1 if element (r, c) is read. Element (r, c) may be beyond the matrix; rows before the first one wrap, so they are
// beyond it, too. With LEAD an element of the last row or column is read in its place, without a branch. Without LEAD
// nothing is read in its place, since a matrix may be much smaller than a tile.
#define IS_READ_AT(r, c) (LEAD > 0 || ((r) < rows && (c) < cols))
// Elements that a work-item has in flight.
#if READ / WG <= 20
#define BATCH (READ / WG)
#elif READ / WG % 20 == 0
#define BATCH 20
#elif READ / WG % 16 == 0
#define BATCH 16
#elif READ / WG % 8 == 0
#define BATCH 8
#else
#define BATCH 4
#endif

// H200, times by how the loop is unrolled:
//
//                                    not        wholly     by four
//     odd sides                      84 us      85 us      79 us
//     u8, 16,383 rows and columns    363 us     864 us     363 us
#define UNROLL_SOME _Pragma("unroll 4")

// A tile has 1 << LOG_ROWS by 1 << LOG_COLS elements, TILE in all. Local memory skips PAD elements, one bank, after
// each row. If a row is shorter than 1 << LOG_PAD elements, which fill all banks, it skips them after each 1 << LOG_PAD
// elements instead. So the elements of a column are in different banks.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void transpose_tiles(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const OFFSET_T rows, const OFFSET_T cols, const OFFSET_T ld_in, const OFFSET_T ld_out,
    const uint log_rows, const uint log_cols, MATRICES)
{
    __local E tile[READ + (READ >> LOG_PAD) * PAD];
    const uint item = get_local_id(0), log_pad = max((uint)LOG_COLS, (uint)LOG_PAD);
    const uint row_mask = (1u << LOG_ROWS) - 1, col_mask = (1u << LOG_COLS) - 1;
    // With LEAD up to LEAD - 1 last rows are left for one more tile.
    const OFFSET_T end = rows + (LEAD > 0 ? LEAD - 1 : 0), down = (end >> LOG_ROWS) + ((end & row_mask) != 0);
    const OFFSET_T tiles = down * ((cols >> LOG_COLS) + ((cols & col_mask) != 0));
    for (OFFSET_T t = get_group_id(0); t < tiles * count; t += get_num_groups(0)) {
        OFFSET_T from_first = first_in, to_first = 0;
        const OFFSET_T matrix = t / tiles, of_matrix = t - matrix * tiles;
        find_matrix(matrix, lengths, steps_in, steps_out, &from_first, &to_first);
        __global const E* in = (__global const E*)in_base + in_offset + from_first;
        __global E* out = (__global E*)out_base + out_offset + to_first;
        const OFFSET_T col = of_matrix / down, c0 = col << LOG_COLS, r0 = (of_matrix - col * down) << LOG_ROWS;
        for (uint first = item; first < READ; first += BATCH * WG) {
            E x[BATCH];
            UNROLL
            for (uint j = 0; j < BATCH; j++) {
                const uint i = first + j * WG;
                const OFFSET_T r = r0 - LEAD + (i >> LOG_COLS), c = c0 + (i & col_mask);
                if (IS_READ(i) && IS_READ_AT(r, c)) {
                    x[j] = in[min(r, rows - 1) * ld_in + min(c, cols - 1)];
                }
            }
            UNROLL
            for (uint j = 0; j < BATCH; j++) {
                const uint i = first + j * WG;
                if (IS_READ(i) && IS_READ_AT(r0 + (i >> LOG_COLS), c0 + (i & col_mask))) {
                    tile[i + (i >> log_pad) * PAD] = x[j];
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL_SOME
        for (uint j = 0; j < TILE / WG; j++) {
            const uint i = item + j * WG, line = i >> LOG_ROWS;
            const OFFSET_T c = c0 + line;
#if LEAD > 0
            const uint early = (uint)(out_offset + to_first + c * ld_out) % LEAD;
#else
            const uint early = 0;
#endif
            const OFFSET_T r = r0 + (i & row_mask) - early;
            const uint from = (((i & row_mask) + LEAD - early) << LOG_COLS) + line;
            if (r < rows && c < cols) {
                out[c * ld_out + r] = tile[from + (from >> log_pad) * PAD];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#else

// Elements of a 16-byte word.
#define VEC (16 / UNIT_BYTES)
typedef union {
    uint4 word;
    UNIT element[VEC];
} Word;

// The position of element e of the chunk in local memory: one bank is skipped after each round of all banks.
static inline uint padded(uint e)
{
    return e + (e >> LOG_PAD) * PAD;
}

// The matrix has NARROW columns if `tall`, else NARROW rows; `length` is its long side. Either the input or the output
// has long lines, `ld` elements apart; in the other, elements lie without gaps. A chunk has a word of each long line
// for each work-item. The host promises that length, ld and all offsets are multiples of VEC.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void transpose_narrow(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const OFFSET_T length, const OFFSET_T ld, const uint tall, MATRICES)
{
    __local UNIT chunk[WG * VEC * NARROW + (WG * VEC * NARROW >> LOG_PAD) * PAD];
    const uint item = get_local_id(0);
    const OFFSET_T words = length / VEC, line = ld / VEC, chunks = words / WG + (words % WG != 0);
    for (OFFSET_T t = get_group_id(0); t < chunks * count; t += get_num_groups(0)) {
        OFFSET_T from_first = first_in, to_first = 0;
        const OFFSET_T matrix = t / chunks, first = (t - matrix * chunks) * WG;
        find_matrix(matrix, lengths, steps_in, steps_out, &from_first, &to_first);
        __global const uint4* in = (__global const uint4*)(in_base + in_offset) + from_first / VEC;
        __global uint4* out = (__global uint4*)(out_base + out_offset) + to_first / VEC;
        // The number of the chunk's words in each long line, and in all long lines together.
        const uint line_words = min(words - first, (OFFSET_T)WG), packed_words = line_words * NARROW;
        Word x[NARROW];
        UNROLL
        for (uint j = 0; j < NARROW; j++) {
            const uint i = item + j * WG;
            if (tall) {
                if (i < packed_words) {
                    x[j].word = in[first * NARROW + i];
                }
            } else if (item < line_words) {
                x[j].word = in[j * line + first + item];
            }
        }
        UNROLL
        for (uint j = 0; j < NARROW; j++) {
            const uint i = item + j * WG;
            if (tall ? i < packed_words : item < line_words) {
                UNROLL
                for (uint k = 0; k < VEC; k++) {
                    chunk[padded(tall ? i * VEC + k : (item * VEC + k) * NARROW + j)] = x[j].element[k];
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL
        for (uint j = 0; j < NARROW; j++) {
            const uint i = item + j * WG;
            if (tall ? item < line_words : i < packed_words) {
                Word y;
                UNROLL
                for (uint k = 0; k < VEC; k++) {
                    y.element[k] = chunk[padded(tall ? (item * VEC + k) * NARROW + j : i * VEC + k)];
                }
                out[tall ? j * line + first + item : first * NARROW + i] = y.word;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif

#endif
