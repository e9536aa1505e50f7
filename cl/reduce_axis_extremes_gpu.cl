// axis_extremes for work-groups: several work-items share a line (reduce_axis_extremes.cl).

// Unrolled loops keep the loaded elements in registers.
#define UNROLL _Pragma("unroll")

// Loads in flight of a work-item: of 16 bytes, and of one element.
#define VECS (T_BYTES >= 4 ? 4 : 2)
#define SINGLES 8

// Defines NAME(x, i, step, best), which compares x[0 .. COUNT]; element k has the index
// i + k / WIDTH * step + k % WIDTH. New winners are rare, so the smallest key is found first, and then its index. COUNT
// is a constant, so that compilers unroll the loops.
#define COMPARE(NAME, COUNT, WIDTH)                                                                                    \
    INLINED void NAME(const A* x, const OFFSET_T i, const OFFSET_T step, Best* best)                                   \
    {                                                                                                                  \
        UNROLL                                                                                                         \
        for (uint e = 0; e < ENDS; e++) {                                                                              \
            KEY_T least = key_at(x[0], e);                                                                             \
            UNROLL                                                                                                     \
            for (uint k = 1; k < (COUNT); k++) {                                                                       \
                least = min(least, key_at(x[k], e));                                                                   \
            }                                                                                                          \
            if (least < best->key[e]) {                                                                                \
                best->key[e] = least;                                                                                  \
                UNROLL                                                                                                 \
                for (uint k = (COUNT); k-- > 0;) {                                                                     \
                    const OFFSET_T index = i + k / (WIDTH) * step + k % (WIDTH);                                       \
                    best->at[e] = key_at(x[k], e) == least ? index : best->at[e];                                      \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
COMPARE(compare_vectors, VECS * VEC, VEC)
COMPARE(compare_vector, VEC, VEC)
COMPARE(compare_singles, SINGLES, 1)
COMPARE(compare_one, 1, 1)

// Takes every `share`-th 16-byte vector of the elements [start, end) of a contiguous line, from vector `own` on.
static inline void walk_vectors(
    __global const T* in, const OFFSET_T start, const OFFSET_T end, const uint own, const uint share, Best* best)
{
    const OFFSET_T step = share * VEC;
    OFFSET_T i = start + own * VEC;
    for (; i < end && end - i >= (VECS - 1) * step + VEC; i += VECS * step) {
        TV v[VECS];
        UNROLL
        for (uint k = 0; k < VECS; k++) {
            v[k] = load_vec(in + i + k * step);
        }
        A x[VECS * VEC];
        UNROLL
        for (uint k = 0; k < VECS; k++) {
            unpack(v[k], x + k * VEC);
        }
        compare_vectors(x, i, step, best);
    }
    for (; i < end; i += step) {
        if (end - i >= VEC) {
            A x[VEC];
            unpack(load_vec(in + i), x);
            compare_vector(x, i, step, best);
        } else {
            for (OFFSET_T rest = i; rest < end; rest++) {
                const A x[1] = {to_acc(in[rest])};
                compare_one(x, rest, step, best);
            }
        }
    }
}

// Takes every `share`-th of the elements [start, end) of a line, from element start + own on.
static inline void walk(
    __global const T* in, const long stride, const OFFSET_T start, const OFFSET_T end, const uint own, const uint share,
    Best* best)
{
    const OFFSET_T step = share;
    OFFSET_T i = start + own;
    for (; i < end && end - i > (SINGLES - 1) * step; i += SINGLES * step) {
        A x[SINGLES];
        UNROLL
        for (uint k = 0; k < SINGLES; k++) {
            x[k] = ALONG(in, i + k * step);
        }
        compare_singles(x, i, step, best);
    }
    for (; i < end; i += step) {
        const A x[1] = {ALONG(in, i)};
        compare_one(x, i, step, best);
    }
}

// Finds the winner of the work-items of an output, which are `distance` apart; it is valid if `own` is 0. All
// work-items call it, in uniform flow; `share`, the same for all, is a power of two.
INLINED void best_of_share(
    Best* best, const uint own, const uint share, const uint distance, __local KEY_T* keys, __local OFFSET_T* found)
{
    const uint item = get_local_id(0);
    for (uint e = 0; e < ENDS; e++) {
        keys[e * WG + item] = best->key[e];
        found[e * WG + item] = best->at[e];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = share / 2; d > 0; d /= 2) {
        if (own < d) {
            for (uint e = 0; e < ENDS; e++) {
                const uint mine = e * WG + item, other = mine + d * distance;
                const KEY_T key = keys[other];
                const OFFSET_T at = found[other];
                if (key < best->key[e] || (key == best->key[e] && at < best->at[e])) {
                    keys[mine] = best->key[e] = key;
                    found[mine] = best->at[e] = at;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Work-group g has part g % parts of the `columns` outputs from columns * (g / parts) on. With one part it writes
// elements and indices. Those of the second end begin `outputs` further on. With several parts it writes only the index
// of the part's winner; the indices of an output are contiguous.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_extremes(
    LINES, const OFFSET_T len, const OFFSET_T run, const OFFSET_T parts, const uint columns, const uint across,
    __global T* restrict values_base, const ulong values_offset, __global ulong* restrict indices_base,
    const ulong indices_offset)
{
    __local KEY_T keys[ENDS * WG];
    __local OFFSET_T found[ENDS * WG];
    __global T* values = values_base + values_offset;
    __global ulong* indices = indices_base + indices_offset;
    const OFFSET_T part = (OFFSET_T)get_group_id(0) % parts;
    const OFFSET_T first = (OFFSET_T)get_group_id(0) / parts * columns;
    const OFFSET_T start = part * run, end = len - start > run ? start + run : len;
    const uint item = get_local_id(0), share = WG / columns;
    const uint column = across ? item % columns : item / share, own = across ? item / columns : item % share;
    const OFFSET_T output = first + column;
    // Work-items without an output process the last one, and write nothing.
    __global const T* in = LINE(min(output, (OFFSET_T)(outputs - 1)));
    Best best = nothing_yet(start);
    if (stride == 1) {
        walk_vectors(in, start, end, own, share, &best);
    } else {
        walk(in, stride, start, end, own, share, &best);
    }
    best_of_share(&best, own, share, across ? columns : 1, keys, found);
    if (own == 0 && output < outputs) {
        store_best(&best, in, stride, output, outputs, part, parts, values, indices);
    }
}
