// Gather, line[i] = table[index[i]], and scatter, table[index[i]] = line[i], of n elements.
//
// An element has PARTS units. The size of a unit is the largest power of two, up to 16 bytes, that divides the
// element's size. An index that is not below `table_len` reads and writes nothing. The least i with such an index goes
// to `outside`, 64 bits that are all ones before the first launch.
//
//     gather, scatter            elements of 1, 2 and 4 bytes: a work-item takes EACH fours, WG fours apart. A four is
//                                four neighbouring elements of the line, and is one access. The `head` elements before
//                                the first aligned four, and those after the last four, are the edges, taken one by
//                                one. With `whole`, indices are read in 16-byte words. Other elements: a work-item
//                                takes EACH units, WG apart. Except for edges, all reads come before the first write.
//     gather_runs, scatter_runs  a work-group is one work-item, which takes `run` neighbours: for CPU drivers
//
// A launch takes at most 2^31 units. Its elements begin at `first`, a multiple of a power of two that is at least n. So
// their indices share the high 32 bits. Launches come in the order of their elements. The host promises that no two of
// the arrays overlap. Bytes: reads n indices; reads and writes n elements, and the cache lines of the table that the
// indices touch.

#include "lib/first.cl"

#ifndef UNIT
#define UNIT uint
#define UNIT_BYTES 4
#define PARTS 1
#define INDEX uint
#define INDEX_BYTES 4
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

#ifdef DEVICE_CPU

static inline void copy_element(__global const UNIT* from, __global UNIT* to)
{
    for (uint p = 0; p < PARTS; p++) {
        to[p] = from[p];
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gather_runs(
    __global const UNIT* restrict table, const ulong table_offset, const ulong table_len,
    __global const INDEX* restrict index, const ulong index_offset, __global UNIT* restrict line,
    const ulong line_offset, __global uint* restrict outside, const ulong outside_offset, const ulong first,
    const uint n, const uint run)
{
    const uint begin = get_group_id(0) * run, end = n - begin > run ? begin + run : n;
    uint wrong = NONE;
    table += table_offset * PARTS;
    index += index_offset;
    line += line_offset * PARTS;
    for (uint i = begin; i < end; i++) {
        const ulong at = index[i];
        if (at < table_len) {
            copy_element(table + at * PARTS, line + (ulong)i * PARTS);
        } else {
            wrong = min(wrong, i);
        }
    }
    note_first(outside + 2 * outside_offset, first, wrong);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void scatter_runs(
    __global UNIT* restrict table, const ulong table_offset, const ulong table_len,
    __global const INDEX* restrict index, const ulong index_offset, __global const UNIT* restrict line,
    const ulong line_offset, __global uint* restrict outside, const ulong outside_offset, const ulong first,
    const uint n, const uint run)
{
    const uint begin = get_group_id(0) * run, end = n - begin > run ? begin + run : n;
    uint wrong = NONE;
    table += table_offset * PARTS;
    index += index_offset;
    line += line_offset * PARTS;
    for (uint i = begin; i < end; i++) {
        const ulong at = index[i];
        if (at < table_len) {
            copy_element(line + (ulong)i * PARTS, table + at * PARTS);
        } else {
            wrong = min(wrong, i);
        }
    }
    note_first(outside + 2 * outside_offset, first, wrong);
}

#else

#ifndef WG
#define WG 256
#define EACH 2
#endif

#if PARTS == 1 && UNIT_BYTES <= 4

#define UNIT4 CAT(UNIT, 4)

// Loads four neighbouring indices; if `whole`, the first of them is 16-byte aligned.
static inline void load_indices(__global const INDEX* from, INDEX* at, uint whole)
{
    if (whole) {
#if INDEX_BYTES == 4
        const uint4 word = *(__global const uint4*)from;
        at[0] = word.x;
        at[1] = word.y;
        at[2] = word.z;
        at[3] = word.w;
#else
        const ulong2 low = ((__global const ulong2*)from)[0], high = ((__global const ulong2*)from)[1];
        at[0] = low.x;
        at[1] = low.y;
        at[2] = high.x;
        at[3] = high.y;
#endif
    } else {
        for (uint k = 0; k < 4; k++) {
            at[k] = from[k];
        }
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void gather(
    __global const UNIT* restrict table, const ulong table_offset, const ulong table_len,
    __global const INDEX* restrict index, const ulong index_offset, __global UNIT* restrict line,
    const ulong line_offset, __global uint* restrict outside, const ulong outside_offset, const ulong first,
    const uint n, const uint head, const uint whole)
{
    const uint fours = (n - head) / 4, begin = get_group_id(0) * (WG * EACH) + get_local_id(0);
    uint wrong = NONE;
    table += table_offset;
    index += index_offset;
    line += line_offset;
    INDEX at[EACH][4];
    UNIT x[EACH][4];
    _Pragma("unroll")
    for (uint v = 0; v < EACH; v++) {
        if (begin + v * WG < fours) {
            load_indices(index + (head + 4ul * (begin + v * WG)), at[v], whole);
        }
    }
    _Pragma("unroll")
    for (uint v = 0; v < EACH; v++) {
        if (begin + v * WG < fours) {
            _Pragma("unroll")
            for (uint k = 0; k < 4; k++) {
                if (at[v][k] < table_len) {
                    x[v][k] = table[at[v][k]];
                }
            }
        }
    }
    _Pragma("unroll")
    for (uint v = 0; v < EACH; v++) {
        if (begin + v * WG < fours) {
            const uint i = head + 4 * (begin + v * WG);
            uint good = 0;
            _Pragma("unroll")
            for (uint k = 0; k < 4; k++) {
                good += at[v][k] < table_len;
            }
            if (good == 4) {
                *(__global UNIT4*)(line + i) = (UNIT4)(x[v][0], x[v][1], x[v][2], x[v][3]);
            } else {
                for (uint k = 0; k < 4; k++) {
                    if (at[v][k] < table_len) {
                        line[i + k] = x[v][k];
                    } else {
                        wrong = min(wrong, i + k);
                    }
                }
            }
        }
    }
    for (uint e = get_global_id(0); e < n - 4 * fours; e += get_global_size(0)) {
        const uint i = e < head ? e : e + 4 * fours;
        const ulong from = index[i];
        if (from < table_len) {
            line[i] = table[from];
        } else {
            wrong = min(wrong, i);
        }
    }
    note_first(outside + 2 * outside_offset, first, wrong);
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void scatter(
    __global UNIT* restrict table, const ulong table_offset, const ulong table_len,
    __global const INDEX* restrict index, const ulong index_offset, __global const UNIT* restrict line,
    const ulong line_offset, __global uint* restrict outside, const ulong outside_offset, const ulong first,
    const uint n, const uint head, const uint whole)
{
    const uint fours = (n - head) / 4, begin = get_group_id(0) * (WG * EACH) + get_local_id(0);
    uint wrong = NONE;
    table += table_offset;
    index += index_offset;
    line += line_offset;
    INDEX at[EACH][4];
    UNIT4 x[EACH];
    _Pragma("unroll")
    for (uint v = 0; v < EACH; v++) {
        if (begin + v * WG < fours) {
            const uint i = head + 4 * (begin + v * WG);
            load_indices(index + i, at[v], whole);
            x[v] = *(__global const UNIT4*)(line + i);
        }
    }
    _Pragma("unroll")
    for (uint v = 0; v < EACH; v++) {
        if (begin + v * WG < fours) {
            const uint i = head + 4 * (begin + v * WG);
            const UNIT parts[4] = {x[v].x, x[v].y, x[v].z, x[v].w};
            _Pragma("unroll")
            for (uint k = 0; k < 4; k++) {
                if (at[v][k] < table_len) {
                    table[at[v][k]] = parts[k];
                } else {
                    wrong = min(wrong, i + k);
                }
            }
        }
    }
    for (uint e = get_global_id(0); e < n - 4 * fours; e += get_global_size(0)) {
        const uint i = e < head ? e : e + 4 * fours;
        const ulong to = index[i];
        if (to < table_len) {
            table[to] = line[i];
        } else {
            wrong = min(wrong, i);
        }
    }
    note_first(outside + 2 * outside_offset, first, wrong);
}

#else

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void gather(
    __global const UNIT* restrict table, const ulong table_offset, const ulong table_len,
    __global const INDEX* restrict index, const ulong index_offset, __global UNIT* restrict line,
    const ulong line_offset, __global uint* restrict outside, const ulong outside_offset, const ulong first,
    const uint n, const uint head, const uint whole)
{
    const uint units = n * PARTS, begin = get_group_id(0) * (WG * EACH) + get_local_id(0);
    uint wrong = NONE;
    table += table_offset * PARTS;
    index += index_offset;
    line += line_offset * PARTS;
    INDEX at[EACH];
    UNIT x[EACH];
    _Pragma("unroll")
    for (uint v = 0; v < EACH; v++) {
        if (begin + v * WG < units) {
            at[v] = index[(begin + v * WG) / PARTS];
        }
    }
    _Pragma("unroll")
    for (uint v = 0; v < EACH; v++) {
        if (begin + v * WG < units && at[v] < table_len) {
            x[v] = table[(ulong)at[v] * PARTS + (begin + v * WG) % PARTS];
        }
    }
    _Pragma("unroll")
    for (uint v = 0; v < EACH; v++) {
        if (begin + v * WG < units) {
            if (at[v] < table_len) {
                line[begin + v * WG] = x[v];
            } else {
                wrong = min(wrong, (begin + v * WG) / PARTS);
            }
        }
    }
    note_first(outside + 2 * outside_offset, first, wrong);
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void scatter(
    __global UNIT* restrict table, const ulong table_offset, const ulong table_len,
    __global const INDEX* restrict index, const ulong index_offset, __global const UNIT* restrict line,
    const ulong line_offset, __global uint* restrict outside, const ulong outside_offset, const ulong first,
    const uint n, const uint head, const uint whole)
{
    const uint units = n * PARTS, begin = get_group_id(0) * (WG * EACH) + get_local_id(0);
    uint wrong = NONE;
    table += table_offset * PARTS;
    index += index_offset;
    line += line_offset * PARTS;
    INDEX at[EACH];
    UNIT x[EACH];
    _Pragma("unroll")
    for (uint v = 0; v < EACH; v++) {
        if (begin + v * WG < units) {
            at[v] = index[(begin + v * WG) / PARTS];
            x[v] = line[begin + v * WG];
        }
    }
    _Pragma("unroll")
    for (uint v = 0; v < EACH; v++) {
        if (begin + v * WG < units) {
            if (at[v] < table_len) {
                table[(ulong)at[v] * PARTS + (begin + v * WG) % PARTS] = x[v];
            } else {
                wrong = min(wrong, (begin + v * WG) / PARTS);
            }
        }
    }
    note_first(outside + 2 * outside_offset, first, wrong);
}

#endif

#endif
