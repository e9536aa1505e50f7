// Transposition in place.
//
//     swap_tiles     a square matrix: work-groups on pairs of tiles, (a, b) and (b, a), which cross local memory and
//                    change places
//     turn_pairs     the same for CPU drivers (DEVICE_CPU): one work-item a group, on a run of pairs
//     stage, turn_columns, turn_rows
//                    any matrix, by the decomposition of Catanzaro, Keller and Garland (2014): every column is rotated, then
//                    every row is permuted, then every column. A strip of columns or rows is copied to scratch by `stage`,
//                    and written back by one of the others, each element from where it is to come from.
//
// An element is UNITS units of type UNIT. With m rows, n columns, c their greatest common divisor, a = m / c, b = n / c:
//
//     rotate    (i, j) comes from row (i + j / b) % m
//     rows      (i, j) comes from the column k with (k / b + i) % m + k * m = j, modulo n
//     columns   (i, j) comes from row (j + i * n - i / a) % m
//
// Bytes: swap_tiles reads and writes every element once, each of the three steps twice, once in scratch.
#ifndef UNIT
#define UNIT uint
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

// Side of a tile, a power of two; its elements are a multiple of WG.
#ifndef SIDE
#define SIDE 32
#endif

// Pair p of the pairs (a, b) with a <= b < tiles: two rows of the triangle, a long and a short one, make one of `odd`,
// which is `tiles` or one more.
static inline void find_pair(OFFSET_T p, OFFSET_T tiles, OFFSET_T* a, OFFSET_T* b)
{
    const OFFSET_T odd = tiles | 1, y = p / odd, x = p - y * odd, skip = odd - tiles;
    if (x >= y + skip) {
        *a = y;
        *b = x - skip;
    } else {
        *a = tiles - 1 - y + (1 - skip);
        *b = tiles - 1 - x;
    }
}

#ifdef DEVICE_CPU

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void turn_pairs(
    __global UNIT* data_base, const ulong offset, const OFFSET_T n, const OFFSET_T run)
{
    __global E* data = (__global E*)data_base + offset;
    const OFFSET_T tiles = n / SIDE + (n % SIDE != 0), odd = tiles | 1, pairs = odd * ((tiles + 1) / 2);
    const OFFSET_T first = get_group_id(0) * run, end = pairs - first > run ? first + run : pairs;
    for (OFFSET_T p = first; p < end; p++) {
        OFFSET_T a, b;
        find_pair(p, tiles, &a, &b);
        const OFFSET_T r0 = a * SIDE, c0 = b * SIDE, r1 = min(r0 + SIDE, n), c1 = min(c0 + SIDE, n);
        for (OFFSET_T r = r0; r < r1; r++) {
            for (OFFSET_T c = a == b ? r + 1 : c0; c < c1; c++) {
                const E x = data[r * n + c];
                data[r * n + c] = data[c * n + r];
                data[c * n + r] = x;
            }
        }
    }
}

#else

#define EACH (SIDE * SIDE / WG)

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void swap_tiles(
    __global UNIT* data_base, const ulong offset, const OFFSET_T n)
{
    __local E tile[SIDE * (SIDE + 1)];
    __global E* data = (__global E*)data_base + offset;
    const uint item = get_local_id(0);
    const OFFSET_T tiles = n / SIDE + (n % SIDE != 0), odd = tiles | 1, pairs = odd * ((tiles + 1) / 2);
    for (OFFSET_T p = get_group_id(0); p < pairs; p += get_num_groups(0)) {
        OFFSET_T a, b;
        find_pair(p, tiles, &a, &b);
        const OFFSET_T r0 = a * SIDE, c0 = b * SIDE;
        E x[EACH], y[EACH];
        _Pragma("unroll")
        for (uint j = 0; j < EACH; j++) {
            const uint i = item + j * WG, r = i / SIDE, c = i % SIDE;
            if (r0 + r < n && c0 + c < n) {
                x[j] = data[(r0 + r) * n + c0 + c];
            }
            if (c0 + r < n && r0 + c < n) {
                y[j] = data[(c0 + r) * n + r0 + c];
            }
        }
        _Pragma("unroll")
        for (uint j = 0; j < EACH; j++) {
            const uint i = item + j * WG, r = i / SIDE, c = i % SIDE;
            if (r0 + r < n && c0 + c < n) {
                tile[r * (SIDE + 1) + c] = x[j];
            }
        }
        // Both tiles are read before either is written.
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        _Pragma("unroll")
        for (uint j = 0; j < EACH; j++) {
            const uint i = item + j * WG, r = i / SIDE, c = i % SIDE;
            if (c0 + r < n && r0 + c < n) {
                data[(c0 + r) * n + r0 + c] = tile[c * (SIDE + 1) + r];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        _Pragma("unroll")
        for (uint j = 0; j < EACH; j++) {
            const uint i = item + j * WG, r = i / SIDE, c = i % SIDE;
            if (a != b && c0 + r < n && r0 + c < n) {
                tile[r * (SIDE + 1) + c] = y[j];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        _Pragma("unroll")
        for (uint j = 0; j < EACH; j++) {
            const uint i = item + j * WG, r = i / SIDE, c = i % SIDE;
            if (a != b && r0 + r < n && c0 + c < n) {
                data[(r0 + r) * n + c0 + c] = tile[c * (SIDE + 1) + r];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif

// Elements of a strip are counted row by row: an item takes `each` of them, `step` apart, from its own first one on.
#ifdef DEVICE_CPU
#define FIRST ((OFFSET_T)get_global_id(0) * each)
#define STEP 1
#else
#define FIRST ((OFFSET_T)get_group_id(0) * WG * each + get_local_id(0))
#define STEP WG
#endif

// `width` columns from column `first` on, of rows of n elements, to scratch.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void stage(
    __global const UNIT* restrict data_base, const ulong offset, __global UNIT* restrict scratch_base, const OFFSET_T cells,
    const OFFSET_T each, const OFFSET_T n, const OFFSET_T first, const OFFSET_T width)
{
    __global const E* data = (__global const E*)data_base + offset;
    __global E* scratch = (__global E*)scratch_base;
    OFFSET_T i = FIRST;
    for (OFFSET_T k = 0; k < each && i < cells; k++, i += STEP) {
        const OFFSET_T r = i / width, c = i - r * width;
        scratch[i] = data[r * n + first + c];
    }
}

// Back from scratch: rotated if `rotate`, else permuted.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void turn_columns(
    __global UNIT* restrict data_base, const ulong offset, __global const UNIT* restrict scratch_base, const OFFSET_T cells,
    const OFFSET_T each, const OFFSET_T n, const OFFSET_T first, const OFFSET_T width, const OFFSET_T m, const OFFSET_T a,
    const OFFSET_T b, const uint rotate)
{
    __global E* data = (__global E*)data_base + offset;
    __global const E* scratch = (__global const E*)scratch_base;
    OFFSET_T i = FIRST;
    for (OFFSET_T k = 0; k < each && i < cells; k++, i += STEP) {
        const OFFSET_T r = i / width, c = i - r * width, j = first + c;
        const OFFSET_T from = rotate ? (r + j / b) % m : (OFFSET_T)((j + (ulong)r * n - r / a) % m);
        data[r * n + j] = scratch[from * width + c];
    }
}

// Rows from row `first` on back from scratch. `inverse` is that of a modulo b.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void turn_rows(
    __global UNIT* restrict data_base, const ulong offset, __global const UNIT* restrict scratch_base, const OFFSET_T cells,
    const OFFSET_T each, const OFFSET_T n, const OFFSET_T first, const OFFSET_T m, const OFFSET_T b, const OFFSET_T c,
    const OFFSET_T inverse)
{
    __global E* data = (__global E*)data_base + offset;
    __global const E* scratch = (__global const E*)scratch_base;
    OFFSET_T i = FIRST;
    for (OFFSET_T k = 0; k < each && i < cells; k++, i += STEP) {
        const OFFSET_T line = i / n, j = i - line * n, r = first + line;
        const OFFSET_T q = (j % c + c - r % c) % c, s = (r + q) % m % n;
        const ulong multiple = (j >= s ? j - s : j + n - s) / c;
        const OFFSET_T from = q * b + (OFFSET_T)(multiple * inverse % b);
        data[(OFFSET_T)(first * n + i)] = scratch[line * n + from];
    }
}
