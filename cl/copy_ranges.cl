// Copies many byte ranges at once, each from an offset of one buffer to an offset of another.
//
// Range r is (from, to, bytes, first) of `ranges`; `from` and `to` are counted from the buffers' offsets. A range is
// cut into tiles, and `first` is the number of its first tile. After the `count` ranges, the same memory lists the
// range of each tile. Each work-group moves one tile.
//
//     copy_tiles       a tile is WG * WORDS words of the destination, as in copy.cl; the first tile of a range also
//                      moves the range's edges
//     copy_rows        the same for rows of one length, whose offsets are those of an N-dimensional array; short rows
//                      share a work-group
//     copy_tiles_runs  one work-item in a work-group copies TILE bytes: for CPU drivers (DEVICE_CPU)
//
// The host promises that no range is empty, and that no destination overlaps another or the source. Bytes: reads and
// writes all ranges once.
#include "lib/words.cl"

#ifdef DEVICE_CPU

#ifndef TILE
#define TILE 65536
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void copy_tiles_runs(
    __global const uchar* restrict in_base, const ulong in_offset, __global uchar* restrict out_base,
    const ulong out_offset, __global const ulong4* restrict ranges, const uint count)
{
    const ulong tile = get_group_id(0);
    const ulong4 range = ranges[((__global const uint*)(ranges + count))[tile]];
    const ulong first = (tile - range.w) * TILE, len = min((ulong)TILE, range.z - first);
    __global const uchar* in = in_base + (in_offset + range.x + first);
    __global uchar* out = out_base + (out_offset + range.y + first);
    for (ulong i = 0; i < len; i++) {
        out[i] = in[i];
    }
}

#else

#ifndef WG
#define WG 256
// Words of one work-item; all are read before the first is written.
#define WORDS 4
#endif

// Moves one tile of a range. The range has `bytes` bytes, and moves from byte `from` to byte `to`. Each of `lanes`
// work-items calls it with its own number, `lane`, and moves WORDS words that are `lanes` apart.
static inline void move_tile(
    __global const uchar* restrict in_base, ulong from, __global uchar* restrict out_base, ulong to, ulong bytes,
    ulong tile, uint lane, uint lanes)
{
    // `words` words of the destination, from byte `head` on, take their bytes from words that lie wholly within the
    // source. The host counts them in the same way.
    uint head = (uint)(16 - to % 16) % 16;
    const uint shift = (uint)((from + head) % 16);
    head += shift > head ? 16 : 0;
    ulong words = bytes + shift > head ? (bytes + shift - head) / 16 : 0;
    words -= shift > 0 && words > 0 ? 1 : 0;
    const ulong first = tile * (lanes * WORDS) + lane;
    __global const uint4* in = (__global const uint4*)(in_base + (from + head - shift));
    __global uint4* out = (__global uint4*)(out_base + (to + head));
    uint4 lo[WORDS], hi[WORDS];
    if (shift == 0) {
        _Pragma("unroll")
        for (uint k = 0; k < WORDS; k++) {
            if (first + k * lanes < words) {
                lo[k] = in[first + k * lanes];
            }
        }
        _Pragma("unroll")
        for (uint k = 0; k < WORDS; k++) {
            if (first + k * lanes < words) {
                out[first + k * lanes] = lo[k];
            }
        }
    } else {
        _Pragma("unroll")
        for (uint k = 0; k < WORDS; k++) {
            if (first + k * lanes < words) {
                lo[k] = in[first + k * lanes];
                hi[k] = in[first + k * lanes + 1];
            }
        }
        _Pragma("unroll")
        for (uint k = 0; k < WORDS; k++) {
            if (first + k * lanes < words) {
                out[first + k * lanes] = funnel(lo[k], hi[k], shift);
            }
        }
    }
    if (tile == 0) {
        for (ulong i = lane; i < bytes - 16 * words; i += lanes) {
            const ulong at = i < head ? i : i + 16 * words;
            out_base[to + at] = in_base[from + at];
        }
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void copy_tiles(
    __global const uchar* restrict in_base, const ulong in_offset, __global uchar* restrict out_base,
    const ulong out_offset, __global const ulong4* restrict ranges, const uint count)
{
    const ulong tile = get_group_id(0);
    const ulong4 range = ranges[((__global const uint*)(ranges + count))[tile]];
    const ulong from = in_offset + range.x, to = out_offset + range.y;
    move_tile(in_base, from, out_base, to, range.z, tile - range.w, get_local_id(0), WG);
}

// Copies `rows` rows of `bytes` bytes. A row has `tiles` tiles, and 1 << log_lanes work-items move a tile. Rows are
// counted along the output's axes. Row i has an index k along each of `dims` axes, the innermost first. It lies at the
// sum of k * from in the input, and of k * to in the output. There are fewer than 2^31 tiles; strides wrap where they
// are negative.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void copy_rows(
    __global const uchar* restrict in_base, const ulong in_offset, __global uchar* restrict out_base,
    const ulong out_offset, const ulong bytes, const uint rows, const uint tiles, const uint log_lanes, const uint dims,
    const uint8 length, const ulong8 from, const ulong8 to)
{
    const uint lanes = 1u << log_lanes, lane = get_local_id(0) % lanes;
    const uint slot = get_group_id(0) * (WG >> log_lanes) + (get_local_id(0) >> log_lanes);
    uint row = slot / tiles;
    if (row >= rows) {
        return;
    }
    ulong in_at = in_offset, out_at = out_offset;
    // After the last axis, a step leaves the loop. With one condition around each step instead, the compiler of PoCL 6
    // gives up.
#define STEP(d, s)                          \
    if (dims < d) {                         \
        break;                              \
    }                                       \
    const ulong k##d = row % length.s;      \
    in_at += k##d * from.s;                 \
    out_at += k##d * to.s;                  \
    row /= length.s;
    do {
    STEP(1, s0)
    STEP(2, s1)
    STEP(3, s2)
    STEP(4, s3)
    STEP(5, s4)
    STEP(6, s5)
    STEP(7, s6)
    STEP(8, s7)
    } while (0);
#undef STEP
    move_tile(in_base, in_at, out_base, out_at, bytes, slot % tiles, lane, lanes);
}

#endif
