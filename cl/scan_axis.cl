// Scan along an axis whose neighbours lie apart: of outer x len x inner elements, one after another, each line of `len` that
// are `inner` apart.
//
// A line is cut into chunks of CHUNK elements, whose totals are taken one after another. With the carry of lib/spine.cl over
// the totals of its line, for element i of chunk c:
//
//     out = ((carry(c) op x[first]) op ...) op x[i], without x[i] if exclusive
//
// So the order depends on the place in the line alone. With REVERSE the last element of a line is the first one.
//
// Launches: the totals of all chunks but the last; before() of them, level after level; the results. Of one chunk, the last of
// them alone. Neighbouring items have neighbouring lines, of which each has COLUMNS: one, or a vector of 16 bytes of them; on
// CPU drivers some that fill cache lines. Columns are the same chunk of as many lines.
//
// Bytes: reads n elements, twice where there are several chunks, and writes n.
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/spine.cl"
#include "lib/outputs.cl"

#ifndef WG
#define WG 256
#endif
// Lines of an item; WHOLE: none of them is ever missing.
#ifndef COLUMNS
#define COLUMNS 1
#define WHOLE
#endif
#define CHUNK 512
// Elements of a line that are asked for at once.
#define AHEAD 8

#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1)))

// Where the i-th of `len` elements lies in its line.
#ifdef REVERSE
#define AT(i, len) ((len) - 1 - (i))
#else
#define AT(i, len) (i)
#endif

#if COLUMNS == VEC && defined(WHOLE)
#define RAW TV
#define LOAD(p) load_vec(p)
#define TAKE(raw, a) unpack(raw, a)
#elif COLUMNS == 1
#define RAW T
#define LOAD(p) (*(p))
#define TAKE(raw, a) ((a)[0] = TAKEN(raw))
#endif

// The columns of piece `w`, of which an outer place has `pieces`: where they start, their number, their chunk and their first
// line.
#define COLUMNS_OF(w, pieces, chunks)                                                                                  \
    const OFFSET_T rest = (w) / (pieces), piece = (w) - rest * (pieces), outer = rest / (chunks);                      \
    const OFFSET_T chunk = rest - outer * (chunks), line = outer * inner + piece * COLUMNS;                            \
    const OFFSET_T base = outer * len * inner + piece * COLUMNS, first = chunk * CHUNK

#ifdef WHOLE
#define COUNT COLUMNS
#else
#define COUNT min((OFFSET_T)COLUMNS, inner - piece * COLUMNS)
#endif

// totals[line * stride + chunk] for the chunks below `chunks`, which are whole.
KERNEL void axis_totals(
    __global const T* in_base, const ulong in_offset, const OFFSET_T len, const OFFSET_T inner, const OFFSET_T pieces,
    const OFFSET_T chunks, const OFFSET_T work, __global A* totals, const OFFSET_T stride)
{
    for (OFFSET_T w = get_global_id(0); w < work; w += get_global_size(0)) {
        COLUMNS_OF(w, pieces, chunks);
        const uint count = COUNT;
        __global const T* x = in_base + in_offset + base;
        A total[COLUMNS];
        for (uint j = 0; j < count; j++) {
            total[j] = TAKEN(x[AT(first, len) * inner + j]);
        }
#ifdef RAW
        for (uint i = 1; i < CHUNK; i += AHEAD) {
            RAW raw[AHEAD];
            for (uint k = 0; k < AHEAD; k++) {
                // The last ones are read again.
                raw[k] = LOAD(x + AT(first + min(i + k, (uint)CHUNK - 1), len) * inner);
            }
            for (uint k = 0; k < AHEAD; k++) {
                if (i + k < CHUNK) {
                    A a[COLUMNS];
                    TAKE(raw[k], a);
                    for (uint j = 0; j < COLUMNS; j++) {
                        total[j] = OP(total[j], a[j]);
                    }
                }
            }
        }
#else
        for (uint i = 1; i < CHUNK; i++) {
            __global const T* row = x + AT(first + i, len) * inner;
            for (uint j = 0; j < count; j++) {
                total[j] = OP(total[j], TAKEN(row[j]));
            }
        }
#endif
        for (uint j = 0; j < count; j++) {
            totals[(line + j) * stride + chunk] = total[j];
        }
    }
}

// One level of the spines of all lines: lib/spine.cl.
KERNEL void axis_spine(
    __global A* totals, const OFFSET_T stride, const OFFSET_T first, const OFFSET_T count, const OFFSET_T above,
    const OFFSET_T blocks, const OFFSET_T work)
{
    for (OFFSET_T w = get_global_id(0); w < work; w += get_global_size(0)) {
        const OFFSET_T line = w / blocks;
        spine_level(totals + line * stride, first, count, above, w - line * blocks);
    }
}

static inline void store_columns(__global OUT* p, const A* a, uint count)
{
#if COLUMNS == VEC && defined(WHOLE)
    OUT run[VEC];
    for (uint j = 0; j < VEC; j++) {
        run[j] = narrow_acc(a[j]);
    }
    store_run(p, run);
#else
    for (uint j = 0; j < count; j++) {
        store_acc(p + j, a[j]);
    }
#endif
}

KERNEL void axis_results(
    __global const T* in_base, const ulong in_offset, const OFFSET_T len, const OFFSET_T inner, const OFFSET_T pieces,
    const OFFSET_T chunks, const OFFSET_T work, __global const A* totals, const OFFSET_T stride, __global OUT* out_base,
    const ulong out_offset, const A initial, const uint inclusive)
{
    for (OFFSET_T w = get_global_id(0); w < work; w += get_global_size(0)) {
        COLUMNS_OF(w, pieces, chunks);
        const uint count = COUNT, stop = min((OFFSET_T)CHUNK, len - first);
        __global const T* x = in_base + in_offset + base;
        __global OUT* out = out_base + out_offset + base;
        A acc[COLUMNS];
        for (uint j = 0; j < count; j++) {
            acc[j] = carry_of(totals + (line + j) * stride, chunk, chunks, initial);
        }
#ifdef RAW
        for (uint i = 0; i < stop; i += AHEAD) {
            RAW raw[AHEAD];
            for (uint k = 0; k < AHEAD; k++) {
                raw[k] = LOAD(x + AT(first + min(i + k, stop - 1), len) * inner);
            }
            for (uint k = 0; k < AHEAD; k++) {
                if (i + k < stop) {
                    A a[COLUMNS], next[COLUMNS];
                    TAKE(raw[k], a);
                    for (uint j = 0; j < COLUMNS; j++) {
                        next[j] = OP(acc[j], a[j]);
                        a[j] = inclusive ? next[j] : acc[j];
                        acc[j] = next[j];
                    }
                    store_columns(out + AT(first + i + k, len) * inner, a, count);
                }
            }
        }
#else
        for (uint i = 0; i < stop; i++) {
            const OFFSET_T row = AT(first + i, len) * inner;
            for (uint j = 0; j < count; j++) {
                const A next = OP(acc[j], TAKEN(x[row + j]));
                store_acc(out + row + j, inclusive ? next : acc[j]);
                acc[j] = next;
            }
        }
#endif
    }
}
