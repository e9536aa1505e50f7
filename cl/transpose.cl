// Transposition: out[c * rows + r] = in[r * cols + c], for rows x cols elements of 1 to 16 bytes.
//
// An element is UNITS units of type UNIT, the largest power of two of bytes that divides its size. Only its size counts.
//
//     transpose_blocks  work-groups on tiles of SIDE x SIDE blocks; a block of BLOCK x BLOCK elements is turned in the
//                       registers of one item and crosses local memory as BLOCK vectors. Every access to global
//                       memory is a whole vector: the host promises that rows, cols and both offsets are multiples of BLOCK.
//     transpose_tiles   work-groups on tiles of TILE elements, element by element: any shape and offset. The host picks
//                       the tile's sides, so that a matrix with a short side fills its tiles too.
//     transpose_runs    one work-item a group, on a run of tiles: for CPU drivers (DEVICE_CPU), in place of the others.
//
// Neighbouring items read neighbouring elements of a row and write neighbouring elements of a row of the output. Tiles
// go along the rows of the input. Groups take the tiles t, t + groups, ...; every item reaches every barrier.
// Bytes: reads and writes every element once.
#ifndef UNIT
#define UNIT uint
#define UNIT_BYTES 4
#define UNITS 1
#endif
#ifndef OFFSET_T
#define OFFSET_T uint
#endif
#ifndef WG
#define WG 256
#endif

#if UNITS == 1
typedef UNIT E;
#else
typedef struct {
    UNIT unit[UNITS];
} E;
#endif

#ifdef DEVICE_CPU

// A block's side is a cache line, about; a tile has several, so that neighbouring lines are used while their page is at
// hand.
#ifndef BLOCK
#define BLOCK 16
#define SIDE 4
#endif
#define TILE (SIDE * BLOCK)

// BLOCK x BLOCK elements, by way of a buffer: the lines of a matrix whose row is a power of two long compete for the same
// places of a cache, so each is used whole at once.
static inline void turn_block(__global const E* in, OFFSET_T cols, __global E* out, OFFSET_T rows)
{
    E block[BLOCK * BLOCK];
    for (uint r = 0; r < BLOCK; r++) {
        for (uint c = 0; c < BLOCK; c++) {
            block[r * BLOCK + c] = in[r * cols + c];
        }
    }
    for (uint c = 0; c < BLOCK; c++) {
        for (uint r = 0; r < BLOCK; r++) {
            out[c * rows + r] = block[r * BLOCK + c];
        }
    }
}

// Group g takes the tiles g * run, g * run + 1, ..., which go along the rows of the output.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void transpose_runs(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const OFFSET_T rows, const OFFSET_T cols, const OFFSET_T run)
{
    __global const E* in = (__global const E*)in_base + in_offset;
    __global E* out = (__global E*)out_base + out_offset;
    const OFFSET_T down = rows / TILE + (rows % TILE != 0), tiles = down * (cols / TILE + (cols % TILE != 0));
    const OFFSET_T first = get_group_id(0) * run, end = tiles - first > run ? first + run : tiles;
    for (OFFSET_T tile = first; tile < end; tile++) {
        const OFFSET_T col = tile / down, r0 = (tile - col * down) * TILE, c0 = col * TILE;
        for (OFFSET_T r = r0; r < r0 + TILE && r < rows; r += BLOCK) {
            for (OFFSET_T c = c0; c < c0 + TILE && c < cols; c += BLOCK) {
                __global const E* from = in + r * cols + c;
                __global E* to = out + c * rows + r;
                if (rows - r >= BLOCK && cols - c >= BLOCK) {
                    turn_block(from, cols, to, rows);
                } else {
                    for (uint i = 0; i < BLOCK && i < cols - c; i++) {
                        for (uint k = 0; k < BLOCK && k < rows - r; k++) {
                            to[i * rows + k] = from[k * cols + i];
                        }
                    }
                }
            }
        }
    }
}

#else

// Arrays that are indexed by the counter of a loop lie in registers only where the loop is unrolled.
#define UNROLL _Pragma("unroll")

#ifdef BLOCK

// The vector of BLOCK elements. Scalars where that is 8 bytes, because they are computed.
#if BLOCK * UNIT_BYTES == 8
#define V ulong
#else
#define V uint4
#endif
// Blocks of one item.
#define ITEM_BLOCKS (SIDE * SIDE / WG)

#if UNIT_BYTES == 1
// Puts the columns of 4 x 4 bytes into `to`. The rows are a, b, c, d; the lowest byte of a word is its first.
static inline void turn_bytes(uint a, uint b, uint c, uint d, uint* to)
{
    const uint even_ab = (a & 0x00ff00ffu) | (b & 0x00ff00ffu) << 8, odd_ab = (a >> 8 & 0x00ff00ffu) | (b & 0xff00ff00u);
    const uint even_cd = (c & 0x00ff00ffu) | (d & 0x00ff00ffu) << 8, odd_cd = (c >> 8 & 0x00ff00ffu) | (d & 0xff00ff00u);
    to[0] = (even_ab & 0xffffu) | even_cd << 16;
    to[1] = (odd_ab & 0xffffu) | odd_cd << 16;
    to[2] = even_ab >> 16 | (even_cd & 0xffff0000u);
    to[3] = odd_ab >> 16 | (odd_cd & 0xffff0000u);
}
#endif

// Stores the columns of the block whose rows are x[0..BLOCK], SIDE vectors apart.
static inline void put_turned(__local V* to, const V* x)
{
#if UNIT_BYTES == 1
    for (uint part = 0; part < 2; part++) {
        uint low[4], high[4];
        const uint shift = 32 * part;
        turn_bytes(x[0] >> shift, x[1] >> shift, x[2] >> shift, x[3] >> shift, low);
        turn_bytes(x[4] >> shift, x[5] >> shift, x[6] >> shift, x[7] >> shift, high);
        for (uint k = 0; k < 4; k++) {
            to[(4 * part + k) * SIDE] = (ulong)high[k] << 32 | low[k];
        }
    }
#elif UNIT_BYTES == 2
    for (uint part = 0; part < 2; part++) {
        const uint shift = 32 * part, a = x[0] >> shift, b = x[1] >> shift, c = x[2] >> shift, d = x[3] >> shift;
        const uint even_ab = (a & 0xffffu) | b << 16, even_cd = (c & 0xffffu) | d << 16;
        const uint odd_ab = a >> 16 | (b & 0xffff0000u), odd_cd = c >> 16 | (d & 0xffff0000u);
        to[2 * part * SIDE] = (ulong)even_cd << 32 | even_ab;
        to[(2 * part + 1) * SIDE] = (ulong)odd_cd << 32 | odd_ab;
    }
#elif UNIT_BYTES == 4
    const V a = x[0], b = x[1], c = x[2], d = x[3];
    // In pairs, because Oclgrind 21.10 crashes on the shuffles of four vectors.
    to[0] = (V)((uint2)(a.x, b.x), (uint2)(c.x, d.x));
    to[SIDE] = (V)((uint2)(a.y, b.y), (uint2)(c.y, d.y));
    to[2 * SIDE] = (V)((uint2)(a.z, b.z), (uint2)(c.z, d.z));
    to[3 * SIDE] = (V)((uint2)(a.w, b.w), (uint2)(c.w, d.w));
#elif UNIT_BYTES == 8
    to[0] = (V)(x[0].xy, x[1].xy);
    to[SIDE] = (V)(x[0].zw, x[1].zw);
#else
    to[0] = x[0];
#endif
}

// The tile's line l, a row of the output, has SIDE vectors; the one of block row b is at b ^ (l / BLOCK), so that both the
// items that write a column of vectors and those that read a row of them meet no bank twice.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void transpose_blocks(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const OFFSET_T rows, const OFFSET_T cols)
{
    __local V tile[SIDE * BLOCK * SIDE];
    __global const V* in = (__global const V*)(in_base + in_offset);
    __global V* out = (__global V*)(out_base + out_offset);
    const uint item = get_local_id(0);
    const OFFSET_T block_rows = rows / BLOCK, block_cols = cols / BLOCK;
    const OFFSET_T across = block_cols / SIDE + (block_cols % SIDE != 0);
    const OFFSET_T tiles = across * (block_rows / SIDE + (block_rows % SIDE != 0));
    for (OFFSET_T t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        const OFFSET_T row = t / across, r0 = row * SIDE, c0 = (t - row * across) * SIDE;
        V x[ITEM_BLOCKS * BLOCK];
        UNROLL
        for (uint j = 0; j < ITEM_BLOCKS; j++) {
            const uint i = item + j * WG;
            const OFFSET_T r = r0 + i / SIDE, c = c0 + i % SIDE;
            if (r < block_rows && c < block_cols) {
                UNROLL
                for (uint k = 0; k < BLOCK; k++) {
                    x[j * BLOCK + k] = in[(r * BLOCK + k) * block_cols + c];
                }
            }
        }
        UNROLL
        for (uint j = 0; j < ITEM_BLOCKS; j++) {
            const uint i = item + j * WG, r = i / SIDE, c = i % SIDE;
            if (r0 + r < block_rows && c0 + c < block_cols) {
                put_turned(tile + c * BLOCK * SIDE + (r ^ c), x + j * BLOCK);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < ITEM_BLOCKS * BLOCK; j++) {
            const uint i = item + j * WG, line = i / SIDE, r = i % SIDE;
            if (c0 * BLOCK + line < cols && r0 + r < block_rows) {
                out[(c0 * BLOCK + line) * block_rows + r0 + r] = tile[line * SIDE + (r ^ line / BLOCK)];
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

// A tile has 1 << log_rows by 1 << log_cols elements, TILE in all. Local memory skips PAD elements, one bank, after each
// row, or after each 1 << LOG_PAD elements (all banks) where rows are shorter: so columns meet no bank twice.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void transpose_tiles(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const OFFSET_T rows, const OFFSET_T cols, const uint log_rows, const uint log_cols)
{
    __local E tile[TILE + (TILE >> LOG_PAD) * PAD];
    __global const E* in = (__global const E*)in_base + in_offset;
    __global E* out = (__global E*)out_base + out_offset;
    const uint item = get_local_id(0), log_pad = max(log_cols, (uint)LOG_PAD);
    const uint row_mask = (1u << log_rows) - 1, col_mask = (1u << log_cols) - 1;
    const OFFSET_T across = (cols >> log_cols) + ((cols & col_mask) != 0);
    const OFFSET_T tiles = across * ((rows >> log_rows) + ((rows & row_mask) != 0));
    for (OFFSET_T t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        const OFFSET_T row = t / across, r0 = row << log_rows, c0 = (t - row * across) << log_cols;
        for (uint first = item; first < TILE; first += BATCH * WG) {
            E x[BATCH];
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
