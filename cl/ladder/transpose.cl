// The transposition ladder: the kernels of "Professional CUDA C Programming" (chapters 4 and 5), of a port to SYCL and
// of a well-known CUDA sample. Each kernel is a step, and moves rows x cols elements of T, stored row by row. The
// copies show the upper bound of the throughput; the others put element (r, c) at out[c * rows + r].
//
// A work-group is DIM_X x DIM_Y work-items in the first two families, where DIM_X is 16 and 32, and TILE_DIM x
// BLOCK_ROWS in the others. Work-groups beyond the limit of the grid's second dimension go to the third, because some
// devices allow few work-groups in the second.
//
// Differences from the originals, whose results were wrong for some shapes:
// - every access has its own bound, and both matrices have their own row length, so any rows x cols work;
// - unrolled kernels have as many work-groups as there are tiles to unroll over, and drop no columns;
// - the diagonal order is a bijection on every grid, not only on square ones;
// - work-items that are out of bounds skip their accesses, not the barrier;
// - in the SYCL kernels neighbouring work-items lie along a row. In SYCL dimension 0 varies slowest, but the originals
//   took it for x.
#ifndef T
#define T uint
#endif
#ifndef OFFSET_T
#define OFFSET_T uint
#endif
#ifndef BLOCK_PLAIN
#define BLOCK_PLAIN 256
#define BLOCK_LOCAL 512
#define BLOCK_TILE 256
#endif

#define ARGS __global const T* restrict in, __global T* restrict out, const OFFSET_T rows, const OFFSET_T cols
#define GROUP_X ((OFFSET_T)get_group_id(0))
#define GROUP_Y ((OFFSET_T)(get_group_id(1) + get_group_id(2) * get_num_groups(1)))
#define LOCAL_X ((uint)get_local_id(0))
#define LOCAL_Y ((uint)get_local_id(1))
// A tracing build has 32-bit elements, and moves work-item numbers. The lower half of an element has the work-item that
// loads it, the upper half the work-item that stores it.
#ifdef TRACE
#define GROUP ((get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0))
#define ITEM ((uint)((GROUP * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0)))
#define LOAD(i) ITEM
#define STORE(i, x) out[i] = (x) | ITEM << 16
#else
#define LOAD(i) in[i]
#define STORE(i, x) out[i] = (x)
#endif

// ---- chapter 4: 16 work-items across, no local memory

#define DIM_X 16
#define DIM_Y (BLOCK_PLAIN / DIM_X)
#define RUNG __kernel __attribute__((reqd_work_group_size(DIM_X, DIM_Y, 1)))

RUNG void copy_row(ARGS)
{
    const OFFSET_T c = GROUP_X * DIM_X + LOCAL_X, r = GROUP_Y * DIM_Y + LOCAL_Y;
    if (r < rows && c < cols) {
        STORE(r * cols + c, LOAD(r * cols + c));
    }
}

RUNG void copy_col(ARGS)
{
    const OFFSET_T r = GROUP_X * DIM_X + LOCAL_X, c = GROUP_Y * DIM_Y + LOCAL_Y;
    if (r < rows && c < cols) {
        STORE(r * cols + c, LOAD(r * cols + c));
    }
}

RUNG void naive_row(ARGS)
{
    const OFFSET_T c = GROUP_X * DIM_X + LOCAL_X, r = GROUP_Y * DIM_Y + LOCAL_Y;
    if (r < rows && c < cols) {
        STORE(c * rows + r, LOAD(r * cols + c));
    }
}

RUNG void naive_col(ARGS)
{
    const OFFSET_T r = GROUP_X * DIM_X + LOCAL_X, c = GROUP_Y * DIM_Y + LOCAL_Y;
    if (r < rows && c < cols) {
        STORE(c * rows + r, LOAD(r * cols + c));
    }
}

RUNG void unroll4_row(ARGS)
{
    const OFFSET_T c0 = GROUP_X * (4 * DIM_X) + LOCAL_X, r = GROUP_Y * DIM_Y + LOCAL_Y;
    for (uint k = 0; k < 4; k++) {
        const OFFSET_T c = c0 + k * DIM_X;
        if (r < rows && c < cols) {
            STORE(c * rows + r, LOAD(r * cols + c));
        }
    }
}

RUNG void unroll4_col(ARGS)
{
    const OFFSET_T r0 = GROUP_X * (4 * DIM_X) + LOCAL_X, c = GROUP_Y * DIM_Y + LOCAL_Y;
    for (uint k = 0; k < 4; k++) {
        const OFFSET_T r = r0 + k * DIM_X;
        if (r < rows && c < cols) {
            STORE(c * rows + r, LOAD(r * cols + c));
        }
    }
}

// Blocks in diagonal order: block b, counted along x, moves to y = b mod down, x = (b / down + y) mod across.
#define DIAGONAL(extent)                                                                                               \
    const OFFSET_T across = get_num_groups(0), down = (extent) / DIM_Y + ((extent) % DIM_Y != 0);                      \
    const OFFSET_T b = GROUP_Y * across + GROUP_X, turn = b / down, y = b - turn * down, sum = turn + y;               \
    const OFFSET_T x = sum - sum / across * across;

RUNG void diagonal_row(ARGS)
{
    DIAGONAL(rows)
    const OFFSET_T c = x * DIM_X + LOCAL_X, r = y * DIM_Y + LOCAL_Y;
    if (GROUP_Y < down && r < rows && c < cols) {
        STORE(c * rows + r, LOAD(r * cols + c));
    }
}

RUNG void diagonal_col(ARGS)
{
    DIAGONAL(cols)
    const OFFSET_T r = x * DIM_X + LOCAL_X, c = y * DIM_Y + LOCAL_Y;
    if (GROUP_Y < down && r < rows && c < cols) {
        STORE(c * rows + r, LOAD(r * cols + c));
    }
}

// ---- chapter 5: 32 work-items across, then local memory

#undef DIM_X
#undef DIM_Y
#define DIM_X 32
#define DIM_Y (BLOCK_LOCAL / DIM_X)
#define PAD 2

RUNG void copy_gmem(ARGS)
{
    const OFFSET_T c = GROUP_X * DIM_X + LOCAL_X, r = GROUP_Y * DIM_Y + LOCAL_Y;
    if (r < rows && c < cols) {
        STORE(r * cols + c, LOAD(r * cols + c));
    }
}

RUNG void naive_gmem(ARGS)
{
    const OFFSET_T c = GROUP_X * DIM_X + LOCAL_X, r = GROUP_Y * DIM_Y + LOCAL_Y;
    if (r < rows && c < cols) {
        STORE(c * rows + r, LOAD(r * cols + c));
    }
}

// Moves TILES neighbouring tiles of DIM_Y rows of DIM_X elements through `tile`, whose rows are `pitch` apart. The
// work-items are counted along the tile's rows to read and along its columns to write.
#define THROUGH_LOCAL(TILES, pitch)                                                                                    \
    const OFFSET_T r0 = GROUP_Y * DIM_Y, c0 = GROUP_X * (TILES * DIM_X);                                               \
    const uint item = LOCAL_Y * DIM_X + LOCAL_X, across = item / DIM_Y, down = item - across * DIM_Y;                  \
    for (uint k = 0; k < TILES; k++) {                                                                                 \
        const OFFSET_T r = r0 + LOCAL_Y, c = c0 + k * DIM_X + LOCAL_X;                                                 \
        if (r < rows && c < cols) tile[LOCAL_Y * (pitch) + k * DIM_X + LOCAL_X] = LOAD(r * cols + c);                  \
    }                                                                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                      \
    for (uint k = 0; k < TILES; k++) {                                                                                 \
        const OFFSET_T r = r0 + down, c = c0 + k * DIM_X + across;                                                     \
        if (r < rows && c < cols) STORE(c * rows + r, tile[down * (pitch) + k * DIM_X + across]);                      \
    }

RUNG void smem(ARGS)
{
    __local T tile[DIM_Y * DIM_X];
    THROUGH_LOCAL(1, DIM_X)
}

RUNG void smem_pad(ARGS)
{
    __local T tile[DIM_Y * (DIM_X + PAD)];
    THROUGH_LOCAL(1, DIM_X + PAD)
}

RUNG void smem_unroll_pad(ARGS)
{
    __local T tile[DIM_Y * (2 * DIM_X + PAD)];
    THROUGH_LOCAL(2, 2 * DIM_X + PAD)
}

// The host gives `tile` as many elements as it has in smem_unroll_pad.
RUNG void smem_unroll_pad_dyn(ARGS, __local T* tile)
{
    THROUGH_LOCAL(2, 2 * DIM_X + PAD)
}

// ---- tiles of 32 x 32: 32 work-items across, each on several rows

#undef RUNG
#define TILE_DIM 32
#define BLOCK_ROWS (BLOCK_TILE / TILE_DIM)
#define RUNG __kernel __attribute__((reqd_work_group_size(TILE_DIM, BLOCK_ROWS, 1)))

// Work-item i has column i mod cols of four rows.
__kernel __attribute__((reqd_work_group_size(BLOCK_TILE, 1, 1))) void sycl_naive(ARGS)
{
    const OFFSET_T i = get_global_id(0), strip = i / cols, c = i - strip * cols;
    for (uint k = 0; k < 4; k++) {
        const OFFSET_T r = 4 * strip + k;
        if (r < rows) {
            STORE(c * rows + r, LOAD(r * cols + c));
        }
    }
}

#define TILE_ORIGIN const OFFSET_T r0 = GROUP_Y * TILE_DIM, c0 = GROUP_X * TILE_DIM;
#define LOAD_TILE(pitch)                                                                                               \
    for (uint j = LOCAL_Y; j < TILE_DIM; j += BLOCK_ROWS) {                                                            \
        if (r0 + j < rows && c0 + LOCAL_X < cols) {                                                                    \
            tile[j * (pitch) + LOCAL_X] = LOAD((r0 + j) * cols + c0 + LOCAL_X);                                        \
        }                                                                                                              \
    }                                                                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);
// Rows of the output from columns of the tile.
#define STORE_TURNED(pitch)                                                                                            \
    for (uint j = LOCAL_Y; j < TILE_DIM; j += BLOCK_ROWS) {                                                            \
        if (c0 + j < cols && r0 + LOCAL_X < rows) {                                                                    \
            STORE((c0 + j) * rows + r0 + LOCAL_X, tile[LOCAL_X * (pitch) + j]);                                        \
        }                                                                                                              \
    }

RUNG void sycl_local_naive(ARGS)
{
    __local T tile[TILE_DIM * TILE_DIM];
    TILE_ORIGIN
    LOAD_TILE(TILE_DIM)
    for (uint j = LOCAL_Y; j < TILE_DIM; j += BLOCK_ROWS) {
        if (r0 + j < rows && c0 + LOCAL_X < cols) {
            STORE((c0 + LOCAL_X) * rows + r0 + j, tile[j * TILE_DIM + LOCAL_X]);
        }
    }
}

RUNG void sycl_local_coalesced(ARGS)
{
    __local T tile[TILE_DIM * TILE_DIM];
    TILE_ORIGIN
    LOAD_TILE(TILE_DIM)
    STORE_TURNED(TILE_DIM)
}

RUNG void sycl_local_pad(ARGS)
{
    __local T tile[TILE_DIM * (TILE_DIM + 1)];
    TILE_ORIGIN
    LOAD_TILE(TILE_DIM + 1)
    STORE_TURNED(TILE_DIM + 1)
}

RUNG void tile_copy(ARGS)
{
    TILE_ORIGIN
    for (uint j = LOCAL_Y; j < TILE_DIM; j += BLOCK_ROWS) {
        const OFFSET_T i = (r0 + j) * cols + c0 + LOCAL_X;
        if (r0 + j < rows && c0 + LOCAL_X < cols) {
            STORE(i, LOAD(i));
        }
    }
}

RUNG void tile_copy_shared(ARGS)
{
    __local T tile[TILE_DIM * TILE_DIM];
    TILE_ORIGIN
    LOAD_TILE(TILE_DIM)
    for (uint j = LOCAL_Y; j < TILE_DIM; j += BLOCK_ROWS) {
        if (r0 + j < rows && c0 + LOCAL_X < cols) {
            STORE((r0 + j) * cols + c0 + LOCAL_X, tile[j * TILE_DIM + LOCAL_X]);
        }
    }
}

RUNG void tile_naive(ARGS)
{
    TILE_ORIGIN
    for (uint j = LOCAL_Y; j < TILE_DIM; j += BLOCK_ROWS) {
        if (r0 + j < rows && c0 + LOCAL_X < cols) {
            STORE((c0 + LOCAL_X) * rows + r0 + j, LOAD((r0 + j) * cols + c0 + LOCAL_X));
        }
    }
}

RUNG void tile_coalesced(ARGS)
{
    __local T tile[TILE_DIM * TILE_DIM];
    TILE_ORIGIN
    LOAD_TILE(TILE_DIM)
    STORE_TURNED(TILE_DIM)
}

RUNG void tile_no_conflicts(ARGS)
{
    __local T tile[TILE_DIM * (TILE_DIM + 1)];
    TILE_ORIGIN
    LOAD_TILE(TILE_DIM + 1)
    STORE_TURNED(TILE_DIM + 1)
}
