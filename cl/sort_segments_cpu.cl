// sort_segments_small with one work-item in each work-group: a merge sort of each segment in global memory.
//
//     for each segment [begin, end):
//         sort runs of RUN keys by insertion
//         for run = RUN, 2 * RUN, ...: merge pairs of runs, from `out` to `spare` and back; the last result is in `out`

#define RUN 16

// The first head from p on, or `stop`, whichever comes first.
static ulong next_head(__global const uint* heads, ulong p, const ulong stop, const ulong first, const ulong end)
{
    uint word = p < stop ? heads_of(heads, p / 32, first, end) >> (uint)(p % 32) << (uint)(p % 32) : 0;
    while (p < stop && word == 0) {
        p = p / 32 * 32 + 32;
        word = p < stop ? heads_of(heads, p / 32, first, end) : 0;
    }
    return p < stop ? min(p / 32 * 32 + lowest_bit(word), stop) : stop;
}

INLINED void move_key(
    __global KEY* to, __global VALUE* values_to, const ulong i, __global const KEY* from,
    __global const VALUE* values_from, const ulong j)
{
    to[i] = from[j];
    if (VALUE_BYTES > 0) {
        values_to[i] = values_from[j];
    }
}

INLINED void insert_keys(
    __global KEY* to, __global VALUE* values_to, __global const KEY* in, __global const VALUE* values_in,
    const uint mode, const ulong begin, const ulong end, const order_t* order)
{
    for (ulong first = begin; first < end; first += RUN) {
        for (ulong i = first; i < min(first + RUN, end); i++) {
            const KEY key = in[i];
            ulong at = i;
            for (; at > first && is_below(number_of(key, order), number_of(to[at - 1], order)); at--) {
                move_key(to, values_to, at, to, values_to, at - 1);
            }
            to[at] = key;
            if (VALUE_BYTES > 0) {
                values_to[at] = (mode & INDICES) != 0 ? (VALUE)i : values_in[i];
            }
        }
    }
}

// Merges pairs of runs of `run` keys.
INLINED void merge_runs(
    __global KEY* to, __global VALUE* values_to, __global const KEY* from, __global const VALUE* values_from,
    const ulong run, const ulong begin, const ulong end, const order_t* order)
{
    for (ulong first = begin; first < end; first += 2 * run) {
        const ulong mid = min(first + run, end), stop = min(first + 2 * run, end);
        ulong a = first, b = mid;
        for (ulong i = first; i < stop; i++) {
            if (a >= mid || (b < stop && is_below(number_of(from[b], order), number_of(from[a], order)))) {
                move_key(to, values_to, i, from, values_from, b);
                b++;
            } else {
                move_key(to, values_to, i, from, values_from, a);
                a++;
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void sort_segments_small(
    __global const KEY* in_base, const ulong in_offset, __global KEY* out_base, const ulong out_offset,
    __global uchar* scratch, const ulong spare_at, const ulong header_at, const ulong heads_at, const ulong listed_at,
    const OFFSET_T n, const uint windows, const WORD flip, const WORD always, const WORD sorted_by VALUE_PARAMS)
{
    const order_t order = {flip, always, sorted_by};
    __global const KEY* in = in_base + in_offset;
    __global KEY* out = out_base + out_offset;
    __global KEY* spare = (__global KEY*)(scratch + spare_at);
    __global const uint* header = (__global const uint*)(scratch + header_at);
    __global const ulong* ends = (__global const ulong*)(scratch + header_at);
    __global const uint* heads = (__global const uint*)(scratch + heads_at);
    __global const OFFSET_T* listed = (__global const OFFSET_T*)(scratch + listed_at);
    const uint jobs = windows != 0 ? windows : count_of(header, LISTED);
    for (uint job = get_group_id(0); job < jobs; job += get_num_groups(0)) {
        ulong begin, last, stop;
        if (windows != 0) {
            const ulong base = (ulong)job * WINDOW;
            last = min(base + WINDOW, (ulong)n);
            stop = base + TILE + 1;
            begin = next_head(heads, base, last, ends[FIRST], ends[LAST_END]);
        } else {
            begin = listed[2 * (ulong)job];
            stop = listed[2 * (ulong)job + 1];
            last = begin + 1;
        }
        while (begin < last) {
            const ulong end = windows != 0 ? next_head(heads, begin + 1, stop, ends[FIRST], ends[LAST_END]) : stop;
            if (windows != 0 && end == stop) {
                break;
            }
            uint odd = 0;
            for (ulong run = RUN; run < end - begin; run *= 2) {
                odd ^= 1;
            }
            __global KEY* to = odd ? spare : out;
            __global VALUE* values_to = odd ? VALUES_SPARE : VALUES_OUT;
            insert_keys(to, values_to, in, VALUES_IN, MODE, begin, end, &order);
            for (ulong run = RUN; run < end - begin; run *= 2) {
                __global KEY* from = to;
                to = from == out ? spare : out;
                __global VALUE* values_from = values_to;
                values_to = from == out ? VALUES_SPARE : VALUES_OUT;
                merge_runs(to, values_to, from, values_from, run, begin, end, &order);
            }
            begin = end;
        }
    }
}
