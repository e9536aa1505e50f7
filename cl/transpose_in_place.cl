// Transposition in place.
//
//     swap_blocks, swap_tiles
//                    a square: a work-group swaps pairs of tiles, (a, b) and (b, a), through local memory; by whole
//                    vectors where the side and the offset are multiples of BLOCK, else by elements
//     turn_pairs     the same for CPU drivers (DEVICE_CPU): a work-group is one work-item, which takes a run of pairs
//     stage_columns, put_columns, spread_rows
//                    any matrix, by the decomposition of Catanzaro, Keller and Garland (2014): every column is rotated,
//                    every row permuted, every column permuted. A strip of columns or rows goes to scratch and back.
//
// With m rows, n columns, c their greatest common divisor, a = m / c, b = n / c, element (i, j)
//
//     rotate         comes from row (i + j / b) % m            not where c = 1
//     rows           goes to column ((i + j / b) % m + j * m) % n
//     columns        comes from row (j + i * n - i / a) % m
//
// stage_columns takes element (i, j) from row (i + j / div) % m. put_columns takes row i from row
// (i * step - i / a) % m of the strip. The first step has div = b, and puts the strip back unchanged: step = 1, a = m.
// The third step has div = 1 and step = n % m. Rows are put back by a copy.
//
// Bytes: a square is read and written once. Each of the three steps reads and writes every element twice, once in
// scratch, which is small enough for a cache.
#include "lib/turn.cl"

#ifndef OFFSET_T
#define OFFSET_T uint
#define WG 256
// Side of a tile that is moved element by element, a power of two; its elements are a multiple of WG. Not on CPU
// drivers.
#define TILE_SIDE 32
#endif

// Pair p of the pairs (a, b) with a <= b < tiles. A long row and a short row of that triangle together have `tiles | 1`
// pairs.
static inline void find_pair(OFFSET_T p, OFFSET_T tiles, OFFSET_T* a, OFFSET_T* b)
{
    const OFFSET_T length = tiles | 1, skip = length - tiles, y = p / length, x = p - y * length;
    if (x >= y + skip) {
        *a = y;
        *b = x - skip;
    } else {
        *a = tiles - y - skip;
        *b = tiles - 1 - x;
    }
}

#ifdef DEVICE_CPU

// A block's side is about a cache line, and a tile has several blocks, as in transpose.cl.
#ifndef BLOCK
#define BLOCK 16
#define SIDE 8
#endif
#define TILE (SIDE * BLOCK)

// Swaps the block at row r, column c with that at row c, column r. Whole blocks go by way of buffers. Their
// cache lines compete for the same sets of a cache, and so each line is used whole at once.
static inline void swap_blocks_at(__global E* data, const OFFSET_T n, const OFFSET_T r, const OFFSET_T c)
{
    if (n - r >= BLOCK && n - c >= BLOCK) {
        E above[BLOCK * BLOCK], below[BLOCK * BLOCK];
        for (uint i = 0; i < BLOCK; i++) {
            for (uint j = 0; j < BLOCK; j++) {
                above[i * BLOCK + j] = data[(r + i) * n + c + j];
                below[i * BLOCK + j] = data[(c + i) * n + r + j];
            }
        }
        for (uint i = 0; i < BLOCK; i++) {
            for (uint j = 0; j < BLOCK; j++) {
                data[(r + i) * n + c + j] = below[j * BLOCK + i];
                data[(c + i) * n + r + j] = above[j * BLOCK + i];
            }
        }
        return;
    }
    for (OFFSET_T i = r; i < n && i - r < BLOCK; i++) {
        for (OFFSET_T j = r == c ? i + 1 : c; j < n && j - c < BLOCK; j++) {
            const E x = data[i * n + j];
            data[i * n + j] = data[j * n + i];
            data[j * n + i] = x;
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void turn_pairs(
    __global UNIT* data_base, const ulong offset, const OFFSET_T n, const OFFSET_T pairs, const OFFSET_T run)
{
    __global E* data = (__global E*)data_base + offset;
    const OFFSET_T tiles = n / TILE + (n % TILE != 0);
    const OFFSET_T begin = get_group_id(0) * run, end = pairs - begin > run ? begin + run : pairs;
    for (OFFSET_T p = begin; p < end; p++) {
        OFFSET_T a, b;
        find_pair(p, tiles, &a, &b);
        const OFFSET_T r0 = a * TILE, c0 = b * TILE;
        for (OFFSET_T r = r0; r < n && r - r0 < TILE; r += BLOCK) {
            for (OFFSET_T c = a == b ? r : c0; c < n && c - c0 < TILE; c += BLOCK) {
                swap_blocks_at(data, n, r, c);
            }
        }
    }
}

// One work-item takes `run` contiguous rows of the `rows` rows.
#define OF_ITEM                                              \
    const OFFSET_T begin = get_group_id(0) * run;            \
    const OFFSET_T end = rows - begin > run ? begin + run : rows;

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void stage_columns(
    __global UNIT* data_base, const ulong offset, __global UNIT* scratch_base, const OFFSET_T rows,
    const OFFSET_T width, const OFFSET_T n, const OFFSET_T first, const OFFSET_T div, const OFFSET_T run)
{
    OF_ITEM
    __global const E* data = (__global const E*)data_base + offset;
    __global E* scratch = (__global E*)scratch_base;
    // This does not use first % div, for which compilers emit an operation that Oclgrind 21.10 does not know.
    const OFFSET_T turns = first / div, shift = turns % rows, left_of_first = (turns + 1) * div - first;
    for (OFFSET_T i = begin; i < end; i++) {
        OFFSET_T from = i + shift, left = left_of_first;
        from = from < rows ? from : from - rows;
        for (OFFSET_T c = 0; c < width; c++) {
            scratch[i * width + c] = data[from * n + first + c];
            if (--left == 0) {
                left = div;
                from = from + 1 < rows ? from + 1 : 0;
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void put_columns(
    __global UNIT* data_base, const ulong offset, __global UNIT* scratch_base, const OFFSET_T rows,
    const OFFSET_T width, const OFFSET_T n, const OFFSET_T first, const OFFSET_T step, const OFFSET_T a,
    const OFFSET_T run)
{
    OF_ITEM
    __global E* data = (__global E*)data_base + offset;
    __global const E* scratch = (__global const E*)scratch_base;
    for (OFFSET_T i = begin; i < end; i++) {
        const OFFSET_T from = (OFFSET_T)(((ulong)i * step + rows - i / a) % rows);
        for (OFFSET_T c = 0; c < width; c++) {
            data[i * n + first + c] = scratch[from * width + c];
        }
    }
}

// `rows` rows from row `first` of m on.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void spread_rows(
    __global UNIT* data_base, const ulong offset, __global UNIT* scratch_base, const OFFSET_T rows, const OFFSET_T n,
    const OFFSET_T first, const OFFSET_T m, const OFFSET_T b, const OFFSET_T run)
{
    OF_ITEM
    __global const E* data = (__global const E*)data_base + offset;
    __global E* scratch = (__global E*)scratch_base;
    const OFFSET_T step = m % n;
    for (OFFSET_T i = begin; i < end; i++) {
        // multiple = j * m % n, turn = (first + i + j / b) % m, turn_in_n = turn % n.
        OFFSET_T multiple = 0, turn = first + i, turn_in_n = turn % n, left = b;
        for (OFFSET_T j = 0; j < n; j++) {
            const OFFSET_T to = turn_in_n + multiple;
            scratch[i * n + (to < n ? to : to - n)] = data[(first + i) * n + j];
            multiple += step;
            multiple = multiple < n ? multiple : multiple - n;
            if (--left == 0) {
                left = b;
                turn = turn + 1 < m ? turn + 1 : 0;
                turn_in_n = turn == 0 || turn_in_n + 1 == n ? 0 : turn_in_n + 1;
            }
        }
    }
}

#else

#ifdef BLOCK

// Blocks of one work-item.
#define ITEM_BLOCKS (SIDE * SIDE / WG)

// Work-items read and write the vectors of a tile whose first block is (r0, c0), as transpose_blocks of transpose.cl.
static inline void load_blocks(__global const V* data, OFFSET_T words, OFFSET_T r0, OFFSET_T c0, V* x)
{
    UNROLL
    for (uint j = 0; j < ITEM_BLOCKS; j++) {
        const uint i = get_local_id(0) + j * WG;
        const OFFSET_T r = r0 + i / SIDE, c = c0 + i % SIDE;
        if (r < words && c < words) {
            UNROLL
            for (uint k = 0; k < BLOCK; k++) {
                x[j * BLOCK + k] = data[(r * BLOCK + k) * words + c];
            }
        }
    }
}

// Puts the blocks that load_blocks loaded from (r0, c0) into `tile`, transposed.
static inline void keep_turned(__local V* tile, OFFSET_T words, OFFSET_T r0, OFFSET_T c0, const V* x)
{
    UNROLL
    for (uint j = 0; j < ITEM_BLOCKS; j++) {
        const uint i = get_local_id(0) + j * WG, r = i / SIDE, c = i % SIDE;
        if (r0 + r < words && c0 + c < words) {
            store_transposed(tile + c * BLOCK * SIDE + (r ^ c), x + j * BLOCK);
        }
    }
}

static inline void store_blocks(__global V* data, OFFSET_T words, OFFSET_T r0, OFFSET_T c0, __local const V* tile)
{
    for (uint j = 0; j < ITEM_BLOCKS * BLOCK; j++) {
        const uint i = get_local_id(0) + j * WG, line = i / SIDE, r = i % SIDE;
        if (r0 + line / BLOCK < words && c0 + r < words) {
            data[(r0 * BLOCK + line) * words + c0 + r] = tile[line * SIDE + (r ^ line / BLOCK)];
        }
    }
}

// The side n and the offset are multiples of BLOCK. Both tiles lie in local memory: PoCL 3.1 loses arrays of a
// work-item that are needed on the other side of a barrier.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void swap_blocks(
    __global UNIT* data_base, const ulong offset, const OFFSET_T n, const OFFSET_T pairs)
{
    __local V upper[SIDE * BLOCK * SIDE], lower[SIDE * BLOCK * SIDE];
    __global V* data = (__global V*)(data_base + offset);
    const OFFSET_T words = n / BLOCK, tiles = words / SIDE + (words % SIDE != 0);
    for (OFFSET_T p = get_group_id(0); p < pairs; p += get_num_groups(0)) {
        OFFSET_T a, b;
        find_pair(p, tiles, &a, &b);
        const OFFSET_T r0 = a * SIDE, c0 = b * SIDE;
        V x[ITEM_BLOCKS * BLOCK], y[ITEM_BLOCKS * BLOCK];
        load_blocks(data, words, r0, c0, x);
        load_blocks(data, words, c0, r0, y);
        keep_turned(upper, words, r0, c0, x);
        keep_turned(lower, words, c0, r0, y);
        // Both are read before either is written.
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        store_blocks(data, words, c0, r0, upper);
        if (a != b) {
            store_blocks(data, words, r0, c0, lower);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif

// Elements of a tile that a work-item has.
#define TILE_EACH (TILE_SIDE * TILE_SIDE / WG)

static inline void load_tile(__global const E* data, OFFSET_T n, OFFSET_T r0, OFFSET_T c0, E* x)
{
    UNROLL
    for (uint j = 0; j < TILE_EACH; j++) {
        const uint i = get_local_id(0) + j * WG;
        const OFFSET_T r = r0 + i / TILE_SIDE, c = c0 + i % TILE_SIDE;
        if (r < n && c < n) {
            x[j] = data[r * n + c];
        }
    }
}

// Puts the elements that load_tile loaded from (r0, c0) into `tile`.
static inline void keep_tile(__local E* tile, OFFSET_T n, OFFSET_T r0, OFFSET_T c0, const E* x)
{
    UNROLL
    for (uint j = 0; j < TILE_EACH; j++) {
        const uint i = get_local_id(0) + j * WG, r = i / TILE_SIDE, c = i % TILE_SIDE;
        if (r0 + r < n && c0 + c < n) {
            tile[r * (TILE_SIDE + 1) + c] = x[j];
        }
    }
}

static inline void store_turned_tile(__global E* data, OFFSET_T n, OFFSET_T r0, OFFSET_T c0, __local const E* tile)
{
    UNROLL
    for (uint j = 0; j < TILE_EACH; j++) {
        const uint i = get_local_id(0) + j * WG, r = i / TILE_SIDE, c = i % TILE_SIDE;
        if (r0 + r < n && c0 + c < n) {
            data[(r0 + r) * n + c0 + c] = tile[c * (TILE_SIDE + 1) + r];
        }
    }
}

// Any side and offset.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void swap_tiles(
    __global UNIT* data_base, const ulong offset, const OFFSET_T n, const OFFSET_T pairs)
{
    __local E upper[TILE_SIDE * (TILE_SIDE + 1)], lower[TILE_SIDE * (TILE_SIDE + 1)];
    __global E* data = (__global E*)data_base + offset;
    const OFFSET_T tiles = n / TILE_SIDE + (n % TILE_SIDE != 0);
    for (OFFSET_T p = get_group_id(0); p < pairs; p += get_num_groups(0)) {
        OFFSET_T a, b;
        find_pair(p, tiles, &a, &b);
        const OFFSET_T r0 = a * TILE_SIDE, c0 = b * TILE_SIDE;
        E x[TILE_EACH], y[TILE_EACH];
        load_tile(data, n, r0, c0, x);
        load_tile(data, n, c0, r0, y);
        keep_tile(upper, n, r0, c0, x);
        keep_tile(lower, n, c0, r0, y);
        // Both are read before either is written.
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        store_turned_tile(data, n, c0, r0, upper);
        if (a != b) {
            store_turned_tile(data, n, r0, c0, lower);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Rows of one work-item. The source row is also computed for rows beyond the last one. LLVM 19 in PoCL 6 aborts if it
// is computed under a condition.
#define EACH 8

// A work-group takes 1 << log_cols columns of a strip's `width`. A work-item has column c of EACH rows from row i on.
// The source rows of neighbouring columns may differ by one, so their accesses overlap in a cache.
#define OF_ITEM                                                                                           \
    const OFFSET_T across = (width >> log_cols) + ((width & ((1u << log_cols) - 1)) != 0);                \
    const OFFSET_T down = (OFFSET_T)get_group_id(0) / across;                                             \
    const OFFSET_T c = (((OFFSET_T)get_group_id(0) - down * across) << log_cols) +                        \
                       (get_local_id(0) & ((1u << log_cols) - 1));                                        \
    const OFFSET_T i = (down * (WG >> log_cols) + (get_local_id(0) >> log_cols)) * EACH;                  \
    if (c >= width || i >= rows) {                                                                        \
        return;                                                                                           \
    }

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void stage_columns(
    __global UNIT* data_base, const ulong offset, __global UNIT* scratch_base, const OFFSET_T rows,
    const OFFSET_T width, const OFFSET_T n, const OFFSET_T first, const OFFSET_T div, const uint log_cols)
{
    OF_ITEM
    __global const E* data = (__global const E*)data_base + offset + first;
    __global E* scratch = (__global E*)scratch_base;
    OFFSET_T from = i + (first + c) / div % rows;
    from = from < rows ? from : from - rows;
    E x[EACH];
    UNROLL
    for (uint k = 0; k < EACH; k++) {
        if (i + k < rows) {
            x[k] = data[from * n + c];
        }
        from = from + 1 < rows ? from + 1 : 0;
    }
    UNROLL
    for (uint k = 0; k < EACH; k++) {
        if (i + k < rows) {
            scratch[(i + k) * width + c] = x[k];
        }
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void put_columns(
    __global UNIT* data_base, const ulong offset, __global UNIT* scratch_base, const OFFSET_T rows,
    const OFFSET_T width, const OFFSET_T n, const OFFSET_T first, const OFFSET_T step, const OFFSET_T a,
    const uint log_cols)
{
    OF_ITEM
    __global E* data = (__global E*)data_base + offset + first;
    __global const E* scratch = (__global const E*)scratch_base;
    // This does not use i % a, for which compilers emit an operation that Oclgrind 21.10 does not know.
    const OFFSET_T turns = i / a;
    OFFSET_T from = (OFFSET_T)(((ulong)i * step + rows - turns) % rows), left = (turns + 1) * a - i;
    E x[EACH];
    UNROLL
    for (uint k = 0; k < EACH; k++) {
        if (i + k < rows) {
            x[k] = scratch[from * width + c];
        }
        from += step;
        from = from < rows ? from : from - rows;
        if (--left == 0) {
            left = a;
            from = (from == 0 ? rows : from) - 1;
        }
    }
    UNROLL
    for (uint k = 0; k < EACH; k++) {
        if (i + k < rows) {
            data[(i + k) * n + c] = x[k];
        }
    }
}

// `rows` rows from row `first` of m on; `width` is n.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void spread_rows(
    __global UNIT* data_base, const ulong offset, __global UNIT* scratch_base, const OFFSET_T rows,
    const OFFSET_T width, const OFFSET_T first, const OFFSET_T m, const OFFSET_T b, const uint log_cols)
{
    OF_ITEM
    __global const E* data = (__global const E*)data_base + offset + first * width;
    __global E* scratch = (__global E*)scratch_base;
    E x[EACH];
    UNROLL
    for (uint k = 0; k < EACH; k++) {
        if (i + k < rows) {
            x[k] = data[(i + k) * width + c];
        }
    }
    // multiple = c * m % n, turn = (row + c / b) % m, turn_in_n = turn % n.
    const OFFSET_T multiple = (OFFSET_T)((ulong)c * (m % width) % width);
    OFFSET_T turn = first + i + c / b;
    turn = turn < m ? turn : turn - m;
    OFFSET_T turn_in_n = turn % width;
    UNROLL
    for (uint k = 0; k < EACH; k++) {
        if (i + k < rows) {
            const OFFSET_T to = turn_in_n + multiple;
            scratch[(i + k) * width + (to < width ? to : to - width)] = x[k];
            turn = turn + 1 < m ? turn + 1 : 0;
            turn_in_n = turn == 0 || turn_in_n + 1 == width ? 0 : turn_in_n + 1;
        }
    }
}

#endif
