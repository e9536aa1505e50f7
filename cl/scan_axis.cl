// Scan of outer x len x inner elements along the axis of length `len`, whose stride is `inner`: each line by itself.
//
//     inclusive: out[i] = initial op x[0] op ... op x[i];  exclusive: without op x[i]      i: index in the line
//
// With REVERSE i counts from the last element of the line. A line has chunks of CHUNK elements. For element i of chunk
// c, with the exclusive prefix of c over the aggregates of the line's chunks (lib/spine.cl):
//
//     out[i] = ((prefix(c) op x[first of c]) op ...) op x[i]
//
// So the order depends on the index in the line alone.
//
// Bytes: axis_results reads n elements and writes n results. If a line has several chunks, axis_aggregates also reads
// all of them but the last. There is no look-back.
//
//     axis_aggregates:  aggregates[line][c] = aggregate of chunk c, for all chunks but the last
//     axis_spine:       prefixes of aggregates[line], per level
//     axis_results:     for each chunk: acc = prefix(c); for each element: acc = acc op x[i]; out[i] = acc
//
// If lines have one chunk, axis_results alone is launched. A work-item scans one chunk of each of COLUMNS contiguous
// lines. COLUMNS is 1, or the elements of a vector of 16 bytes; on CPUs it is as many as fill cache lines. Neighbouring
// work-items have neighbouring lines.
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/spine.cl"
#include "lib/outputs.cl"

#ifndef WG
#define WG 256
// Lines of a work-item; WHOLE: no work-item has fewer.
#define COLUMNS 1
#define WHOLE 1
#endif
#ifndef WHOLE
#define WHOLE 0
#endif
#ifndef REVERSE
#define REVERSE 0
#endif
#define CHUNK 512
// Loads in flight along a line.
#define AHEAD 8

#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1)))

// The index in its line of the i-th of `len` elements.
#define AT(i, len) (REVERSE ? (len) - 1 - (i) : (i))

// The lines of a work-item and its chunk of them.
typedef struct {
    OFFSET_T line;  // the first line
    uint count;     // their number
    OFFSET_T base;  // the index of the first line's first element
    OFFSET_T chunk; // the chunk
    OFFSET_T first; // the index of its first element in the line
} Columns;

// Returns unit w: one chunk of a group of lines. Each outer index has `pieces` groups, of `chunks` chunks each.
static inline Columns columns_of(OFFSET_T w, OFFSET_T len, OFFSET_T inner, OFFSET_T pieces, OFFSET_T chunks)
{
    const OFFSET_T rest = w / pieces, piece = w - rest * pieces, outer = rest / chunks;
    Columns own;
    own.line = outer * inner + piece * COLUMNS;
    own.count = WHOLE ? COLUMNS : min((OFFSET_T)COLUMNS, inner - piece * COLUMNS);
    own.base = outer * len * inner + piece * COLUMNS;
    own.chunk = rest - outer * chunks;
    own.first = own.chunk * CHUNK;
    return own;
}

// A row: the elements of one index of all lines of a work-item. Rows of fixed size are loaded AHEAD at a time.
#if COLUMNS == VEC && WHOLE
#define ROW TV
static inline TV load_row(__global const T* p) { return load_vec(p); }
static inline void take_row(TV row, A* a) { unpack(row, a); }
static inline void store_row(__global OUT* p, const A* a)
{
    OUT results[VEC];
    for (uint j = 0; j < VEC; j++) {
        results[j] = narrow_acc(a[j]);
    }
    store_run(p, results);
}
#elif COLUMNS == 1
#define ROW T
static inline T load_row(__global const T* p) { return *p; }
static inline void take_row(T row, A* a) { a[0] = TAKEN(row); }
static inline void store_row(__global OUT* p, const A* a) { store_acc(p, a[0]); }
#endif

#ifdef ROW
static inline void add_row(ROW row, A* total)
{
    A a[COLUMNS];
    take_row(row, a);
    for (uint j = 0; j < COLUMNS; j++) {
        total[j] = OP(total[j], a[j]);
    }
}

// Stores the results of a row, and advances the prefixes acc[j] of the lines.
static inline void scan_row(ROW row, A* acc, uint inclusive, __global OUT* out)
{
    A a[COLUMNS], next[COLUMNS];
    take_row(row, a);
    for (uint j = 0; j < COLUMNS; j++) {
        next[j] = OP(acc[j], a[j]);
        a[j] = inclusive ? next[j] : acc[j];
        acc[j] = next[j];
    }
    store_row(out, a);
}
#endif

// aggregates[line * stride + chunk], for the chunks below `chunks`, which are whole.
KERNEL void axis_aggregates(
    __global const T* in_base, const ulong in_offset, const OFFSET_T len, const OFFSET_T inner, const OFFSET_T pieces,
    const OFFSET_T chunks, const OFFSET_T work, __global A* aggregates, const OFFSET_T stride)
{
    for (OFFSET_T w = get_global_id(0); w < work; w += get_global_size(0)) {
        const Columns own = columns_of(w, len, inner, pieces, chunks);
        __global const T* x = in_base + in_offset + own.base;
        A total[COLUMNS];
        for (uint j = 0; j < own.count; j++) {
            total[j] = TAKEN(x[AT(own.first, len) * inner + j]);
        }
#ifdef ROW
        for (uint i = 1; i < CHUNK; i += AHEAD) {
            ROW rows[AHEAD];
            for (uint k = 0; k < AHEAD; k++) {
                // Beyond the chunk the last row is loaded again.
                rows[k] = load_row(x + AT(own.first + min(i + k, (uint)CHUNK - 1), len) * inner);
            }
            for (uint k = 0; k < AHEAD; k++) {
                if (i + k < CHUNK) {
                    add_row(rows[k], total);
                }
            }
        }
#else
        for (uint i = 1; i < CHUNK; i++) {
            __global const T* row = x + AT(own.first + i, len) * inner;
            for (uint j = 0; j < own.count; j++) {
                total[j] = OP(total[j], TAKEN(row[j]));
            }
        }
#endif
        for (uint j = 0; j < own.count; j++) {
            aggregates[(own.line + j) * stride + own.chunk] = total[j];
        }
    }
}

// Scans one level of the aggregates of all lines.
KERNEL void axis_spine(
    __global A* aggregates, const OFFSET_T stride, const OFFSET_T first, const OFFSET_T count, const OFFSET_T above,
    const OFFSET_T groups, const OFFSET_T work)
{
    for (OFFSET_T w = get_global_id(0); w < work; w += get_global_size(0)) {
        const OFFSET_T line = w / groups;
        scan_level(aggregates + line * stride, first, count, above, w - line * groups);
    }
}

KERNEL void axis_results(
    __global const T* in_base, const ulong in_offset, const OFFSET_T len, const OFFSET_T inner, const OFFSET_T pieces,
    const OFFSET_T chunks, const OFFSET_T work, __global const A* aggregates, const OFFSET_T stride,
    __global OUT* out_base, const ulong out_offset, const A initial, const uint inclusive)
{
    for (OFFSET_T w = get_global_id(0); w < work; w += get_global_size(0)) {
        const Columns own = columns_of(w, len, inner, pieces, chunks);
        const uint stop = min((OFFSET_T)CHUNK, len - own.first);
        __global const T* x = in_base + in_offset + own.base;
        __global OUT* out = out_base + out_offset + own.base;
        A acc[COLUMNS];
        for (uint j = 0; j < own.count; j++) {
            acc[j] = exclusive_prefix(aggregates + (own.line + j) * stride, own.chunk, chunks, initial);
        }
#ifdef ROW
        for (uint i = 0; i < stop; i += AHEAD) {
            ROW rows[AHEAD];
            for (uint k = 0; k < AHEAD; k++) {
                rows[k] = load_row(x + AT(own.first + min(i + k, stop - 1), len) * inner);
            }
            for (uint k = 0; k < AHEAD; k++) {
                if (i + k < stop) {
                    scan_row(rows[k], acc, inclusive, out + AT(own.first + i + k, len) * inner);
                }
            }
        }
#else
        for (uint i = 0; i < stop; i++) {
            const OFFSET_T row = AT(own.first + i, len) * inner;
            for (uint j = 0; j < own.count; j++) {
                const A next = OP(acc[j], TAKEN(x[row + j]));
                store_acc(out + row + j, inclusive ? next : acc[j]);
                acc[j] = next;
            }
        }
#endif
    }
}
