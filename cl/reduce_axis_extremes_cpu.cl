// axis_extremes on CPU drivers: one work-item has several lines (reduce_axis_extremes.cl).

// Maximum number of outputs of a work-item.
#define COLS 64
// Elements whose smallest key is found first, and then its index.
#define CHUNK 256

// Takes the elements [start, end) of a line.
static inline void walk_chunks(
    __global const T* in, const long stride, const OFFSET_T start, const OFFSET_T end, Best* best)
{
    uint count;
    for (OFFSET_T i = start; i < end; i += count) {
        count = (uint)min((OFFSET_T)CHUNK, (OFFSET_T)(end - i));
        __global const T* chunk = in + (long)i * stride;
        for (uint e = 0; e < ENDS; e++) {
            KEY_T least = KEY_HIGHEST;
            for (uint k = 0; k < count; k++) {
                least = min(least, key_at(ALONG(chunk, k), e));
            }
            if (least < best->key[e]) {
                uint k = 0;
                while (key_at(ALONG(chunk, k), e) != least) {
                    k++;
                }
                best->key[e] = least;
                best->at[e] = i + k;
            }
        }
    }
}

// Replaces a winner by element x at index i if its key is smaller.
static inline void compare(KEY_T* key, OFFSET_T* found, const T x, const uint e, const OFFSET_T i)
{
    const KEY_T next = key_at(to_acc(x), e);
    const int wins = next < *key;
    *key = wins ? next : *key;
    *found = wins ? i : *found;
}

// Nothing to do, since an output has one work-item.
static inline void best_of_share(
    Best* best, const uint own, const uint share, const uint distance, __local KEY_T* keys, __local OFFSET_T* found)
{
}

// Work-group g has part g % parts of the `columns` outputs from columns * (g / parts) on. With one part it writes
// elements and indices. Those of the second end begin `outputs` further on. With several parts it writes only the index
// of the part's winner; the indices of an output are contiguous.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_extremes(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, const uint columns, const uint across,
    __global T* restrict values_base, const ulong values_offset, __global ulong* restrict indices_base,
    const ulong indices_offset)
{
    __global T* values = values_base + values_offset;
    __global ulong* indices = indices_base + indices_offset;
    const OFFSET_T part = (OFFSET_T)get_group_id(0) % parts;
    const OFFSET_T first = (OFFSET_T)get_group_id(0) / parts * columns;
    const OFFSET_T start = part * run, end = len - start > run ? start + run : len;
    const uint count = (uint)min((OFFSET_T)columns, (OFFSET_T)(outputs - first));
    if (!across) {
        for (uint c = 0; c < count; c++) {
            __global const T* in = LINE(first + c);
            Best best = nothing_yet(start);
            if (stride == 1) {
                walk_chunks(in, 1, start, end, &best);
            } else {
                walk_chunks(in, stride, start, end, &best);
            }
            store_best(&best, in, stride, first + c, outputs, part, parts, values, indices);
        }
        return;
    }
    long at[COLS];
    uint neighbours = count == COLS;
    for (uint c = 0; c < COLS; c++) {
        at[c] = line_offset(first + min(c, count - 1), shape, strides, dims);
        neighbours &= at[c] == at[0] + c;
    }
    KEY_T key[ENDS * COLS];
    OFFSET_T found[ENDS * COLS];
    for (uint c = 0; c < ENDS * COLS; c++) {
        key[c] = KEY_HIGHEST;
        found[c] = start;
    }
    for (OFFSET_T i = start; i < end; i++) {
        __global const T* row = in_base + in_offset + (long)i * stride;
        for (uint e = 0; e < ENDS; e++) {
            if (neighbours) {
                for (uint c = 0; c < COLS; c++) {
                    compare(&key[e * COLS + c], &found[e * COLS + c], row[at[0] + c], e, i);
                }
            } else {
                for (uint c = 0; c < count; c++) {
                    compare(&key[e * COLS + c], &found[e * COLS + c], row[at[c]], e, i);
                }
            }
        }
    }
    for (uint c = 0; c < count; c++) {
        Best best;
        for (uint e = 0; e < ENDS; e++) {
            best.key[e] = key[e * COLS + c];
            best.at[e] = found[e * COLS + c];
        }
        store_best(&best, in_base + in_offset + at[c], stride, first + c, outputs, part, parts, values, indices);
    }
}
