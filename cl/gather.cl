// Gather, line[i] = table[index[i]], and scatter, table[index[i]] = line[i], of n elements.
//
// Indices that are not below `table_len` read and write nothing; they are added to the 64-bit number `outside`, which the
// host has set to 0. An element is PARTS units, each the largest power of two of bytes that divides the element.
//
//     gather, scatter            an item takes VECTORS times four neighbours, WG apart: indices in whole 16-byte words,
//                                and the line's elements too where they lie `whole`. All is read before the first write.
//                                Indices before the first aligned one, `head` of them, and those behind the last four
//                                are the edges, taken one by one.
//     gather_runs, scatter_runs  one item a group, on `run` neighbours: for CPU drivers (DEVICE_CPU)
//
// The host promises that table and line do not overlap. Bytes: reads n indices; reads and writes n elements, and as much of
// the table's cache lines as the indices touch.
#ifndef UNIT
#define UNIT uint
#define UNIT_BYTES 4
#endif
#ifndef PARTS
#define PARTS 1
#endif
#ifndef INDEX
#define INDEX uint
#define INDEX_BYTES 4
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

// Two words of 32 bits, so that no 64-bit atomics are needed. Any item may call it.
static inline void add_outside(__global uint* outside, uint count)
{
    if (count > 0) {
        const uint before = atomic_add(outside, count);
        if (before + count < before) {
            atomic_inc(outside + 1);
        }
    }
}

static inline void copy_element(__global const UNIT* from, __global UNIT* to)
{
    for (uint p = 0; p < PARTS; p++) {
        to[p] = from[p];
    }
}

#ifdef DEVICE_CPU

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gather_runs(
    __global const UNIT* restrict table, const ulong table_offset, const ulong table_len,
    __global const INDEX* restrict index, const ulong index_offset, const ulong n, __global UNIT* restrict line,
    const ulong line_offset, __global uint* restrict outside, const ulong outside_offset, const ulong run)
{
    const ulong first = get_group_id(0) * run, end = n - first > run ? first + run : n;
    uint missed = 0;
    table += table_offset * PARTS;
    index += index_offset;
    line += line_offset * PARTS;
    for (ulong i = first; i < end; i++) {
        const ulong at = index[i];
        if (at < table_len) {
            copy_element(table + at * PARTS, line + i * PARTS);
        } else {
            missed++;
        }
    }
    add_outside(outside + 2 * outside_offset, missed);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void scatter_runs(
    __global UNIT* restrict table, const ulong table_offset, const ulong table_len,
    __global const INDEX* restrict index, const ulong index_offset, const ulong n, __global const UNIT* restrict line,
    const ulong line_offset, __global uint* restrict outside, const ulong outside_offset, const ulong run)
{
    const ulong first = get_group_id(0) * run, end = n - first > run ? first + run : n;
    uint missed = 0;
    table += table_offset * PARTS;
    index += index_offset;
    line += line_offset * PARTS;
    for (ulong i = first; i < end; i++) {
        const ulong at = index[i];
        if (at < table_len) {
            copy_element(line + i * PARTS, table + at * PARTS);
        } else {
            missed++;
        }
    }
    add_outside(outside + 2 * outside_offset, missed);
}

#else

#ifndef WG
#define WG 256
#endif
#ifndef VECTORS
#define VECTORS 2
#endif

// Four neighbouring indices, the first of them 16-byte aligned.
static inline void load_indices(__global const INDEX* from, INDEX* at)
{
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
}

// Four neighbours of the line, in words of up to 16 bytes where they are `whole`.
static inline void load_four(__global const UNIT* from, UNIT* x, uint whole)
{
#if PARTS == 1 && UNIT_BYTES <= 4
    if (whole) {
        const CAT(UNIT, 4) word = *(__global const CAT(UNIT, 4)*)from;
        x[0] = word.x;
        x[1] = word.y;
        x[2] = word.z;
        x[3] = word.w;
        return;
    }
#elif PARTS == 1 && UNIT_BYTES == 8
    if (whole) {
        const ulong2 low = ((__global const ulong2*)from)[0], high = ((__global const ulong2*)from)[1];
        x[0] = low.x;
        x[1] = low.y;
        x[2] = high.x;
        x[3] = high.y;
        return;
    }
#endif
    for (uint k = 0; k < 4 * PARTS; k++) {
        x[k] = from[k];
    }
}

static inline void store_four(__global UNIT* to, const UNIT* x)
{
#if PARTS == 1 && UNIT_BYTES <= 4
    *(__global CAT(UNIT, 4)*)to = (CAT(UNIT, 4))(x[0], x[1], x[2], x[3]);
#elif PARTS == 1 && UNIT_BYTES == 8
    ((__global ulong2*)to)[0] = (ulong2)(x[0], x[1]);
    ((__global ulong2*)to)[1] = (ulong2)(x[2], x[3]);
#else
    for (uint k = 0; k < 4 * PARTS; k++) {
        to[k] = x[k];
    }
#endif
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void gather(
    __global const UNIT* restrict table, const ulong table_offset, const ulong table_len,
    __global const INDEX* restrict index, const ulong index_offset, const ulong n, __global UNIT* restrict line,
    const ulong line_offset, __global uint* restrict outside, const ulong outside_offset, const uint head,
    const uint whole)
{
    const ulong fours = (n - head) / 4, first = get_group_id(0) * (ulong)(WG * VECTORS) + get_local_id(0);
    uint missed = 0;
    table += table_offset * PARTS;
    index += index_offset;
    line += line_offset * PARTS;
    INDEX at[VECTORS][4];
    UNIT x[VECTORS][4 * PARTS];
    for (uint v = 0; v < VECTORS; v++) {
        if (first + v * WG < fours) {
            load_indices(index + head + 4 * (first + v * WG), at[v]);
        }
    }
    for (uint v = 0; v < VECTORS; v++) {
        if (first + v * WG < fours) {
            for (uint k = 0; k < 4; k++) {
                for (uint p = 0; p < PARTS && at[v][k] < table_len; p++) {
                    x[v][k * PARTS + p] = table[(ulong)at[v][k] * PARTS + p];
                }
            }
        }
    }
    for (uint v = 0; v < VECTORS; v++) {
        if (first + v * WG < fours) {
            __global UNIT* to = line + (head + 4 * (first + v * WG)) * PARTS;
            uint good = 0;
            for (uint k = 0; k < 4; k++) {
                good += at[v][k] < table_len;
            }
            if (whole && good == 4) {
                store_four(to, x[v]);
            } else {
                for (uint k = 0; k < 4; k++) {
                    for (uint p = 0; p < PARTS && at[v][k] < table_len; p++) {
                        to[k * PARTS + p] = x[v][k * PARTS + p];
                    }
                }
            }
            missed += 4 - good;
        }
    }
    for (ulong e = get_global_id(0); e < n - 4 * fours; e += get_global_size(0)) {
        const ulong i = e < head ? e : e + 4 * fours, from = index[i];
        if (from < table_len) {
            copy_element(table + from * PARTS, line + i * PARTS);
        } else {
            missed++;
        }
    }
    add_outside(outside + 2 * outside_offset, missed);
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void scatter(
    __global UNIT* restrict table, const ulong table_offset, const ulong table_len,
    __global const INDEX* restrict index, const ulong index_offset, const ulong n, __global const UNIT* restrict line,
    const ulong line_offset, __global uint* restrict outside, const ulong outside_offset, const uint head,
    const uint whole)
{
    const ulong fours = (n - head) / 4, first = get_group_id(0) * (ulong)(WG * VECTORS) + get_local_id(0);
    uint missed = 0;
    table += table_offset * PARTS;
    index += index_offset;
    line += line_offset * PARTS;
    INDEX at[VECTORS][4];
    UNIT x[VECTORS][4 * PARTS];
    for (uint v = 0; v < VECTORS; v++) {
        if (first + v * WG < fours) {
            load_indices(index + head + 4 * (first + v * WG), at[v]);
            load_four(line + (head + 4 * (first + v * WG)) * PARTS, x[v], whole);
        }
    }
    for (uint v = 0; v < VECTORS; v++) {
        if (first + v * WG < fours) {
            for (uint k = 0; k < 4; k++) {
                for (uint p = 0; p < PARTS && at[v][k] < table_len; p++) {
                    table[(ulong)at[v][k] * PARTS + p] = x[v][k * PARTS + p];
                }
                missed += at[v][k] >= table_len;
            }
        }
    }
    for (ulong e = get_global_id(0); e < n - 4 * fours; e += get_global_size(0)) {
        const ulong i = e < head ? e : e + 4 * fours, to = index[i];
        if (to < table_len) {
            copy_element(line + i * PARTS, table + to * PARTS);
        } else {
            missed++;
        }
    }
    add_outside(outside + 2 * outside_offset, missed);
}

#endif
