// The output of a selection (topk.cl), after the thresholds of the rows are known.

// Listed keys of a work-item that `write` processes at a time.
#define LISTED_ROWS 4
// Maximum number of keys that `order` sorts.
#ifndef ORDER
#define ORDER 2048
#endif

// The threshold of a row. A key is selected if its number >> shift is below `prefix`. Of the keys where it equals
// `prefix`, the first `need` are selected.
typedef struct {
    WORD prefix;
    uint shift;
    ulong need;
} Threshold;

INLINED void load_threshold(Threshold* threshold, const Row* row)
{
    threshold->prefix = (WORD)row->state[PREFIX];
    threshold->shift = (uint)row->state[SHIFT];
    threshold->need = row->state[NEED];
}

// Numbers of keys below the threshold, and at it.
typedef struct {
    uint below, at;
} Tally;

INLINED void tally_key(const Row* row, const Threshold* threshold, KEY key, bool valid, Tally* tally)
{
    const WORD number = number_of(row, key) >> threshold->shift;
    tally->below += valid & (number < threshold->prefix);
    tally->at += valid & (number == threshold->prefix);
}

INLINED void tally_range(
    const Row* row, const Threshold* threshold, OFFSET_T begin, OFFSET_T end, Tally* tally)
{
    if (WG == 1) {
        for (OFFSET_T p = max(begin, (OFFSET_T)row->pad); p < end; p++) {
            tally_key(row, threshold, row->keys[p], true, tally);
        }
        return;
    }
    for (OFFSET_T base = begin; base < end; base += TILE) {
        KeyWord held[ROWS];
        load_tile(held, row->keys, base, row->pad, end);
        const bool whole = base >= row->pad && base + TILE <= end;
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                const OFFSET_T p = position_of(base, r) + j;
                tally_key(row, threshold, held[r].keys[j], whole || (p >= row->pad && p < end), tally);
            }
        }
    }
}

INLINED void tally_segments(
    const Row* row, const Threshold* threshold, __global const uint2* segments, uint count, Tally* tally)
{
    for (uint s = 0; s < count; s++) {
        const uint2 segment = segments[s];
        for (uint i = get_local_id(0); i < segment.y; i += WG) {
            tally_key(row, threshold, row->listed_keys[segment.x + i], true, tally);
        }
    }
}

// One work-group for each part of each row. All rows are done.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_tally(ROW_PARAMS, const uint segments)
{
    SHARED uint counted[2];
    TAKE_LENGTH
    Row row;
    open_row(&row, in_base, in_offset, n, stride, scratch, region, flip, always, row_of_group(rows));
    const uint part = part_of_group(rows), flags = (uint)row.state[FLAGS], item = get_local_id(0);
    Threshold threshold;
    load_threshold(&threshold, &row);
    for (uint i = item; i < 2; i += WG) {
        counted[i] = 0;
    }
    sync_shared();
    Tally tally = {0, 0};
    if (PICK && (flags & (AT_LOW | AT_HIGH))) {
        if (item == 0) {
            const uint4 counts = row.classes[part];
            tally.below = flags & AT_LOW ? counts.x : counts.x + counts.y + counts.z;
            tally.at = flags & AT_LOW ? counts.y : counts.w;
        }
    } else if (PICK && (flags & IN_LIST)) {
        if (item == 0) {
            const uint4 counts = row.classes[part];
            tally.below = counts.x + counts.y;
        }
        tally_segments(&row, &threshold, row.segments + part * segments, row.segment_counts[part], &tally);
    } else {
        const OFFSET_T begin = (OFFSET_T)part * share;
        tally_range(&row, &threshold, begin, end_of_part(&row, begin, share), &tally);
    }
    shared_add(counted, tally.below);
    shared_add(counted + 1, tally.at);
    sync_shared();
    if (item == 0) {
        row.tallies[part] = (uint2)(counted[0], counted[1]);
    }
}

// The output of a row: k keys and their indices, to which `first_index` is added.
typedef struct {
    __global KEY* keys;
    __global PLACE* indices;
    PLACE first_index;
} Output;

INLINED void open_output(
    Output* out, __global KEY* out_base, ulong out_offset, __global uchar* places_base, ulong places_offset,
    ulong place_base, ulong place_step, ulong k, ulong row)
{
    out->keys = out_base + out_offset + row * k;
    out->indices = (__global PLACE*)places_base + places_offset + row * k;
    out->first_index = (PLACE)(place_base + row * place_step);
}

INLINED void store(const Output* out, ulong to, KEY key, OFFSET_T index)
{
    out->keys[to] = key;
    if (PLACE_BYTES > 0) {
        out->indices[to] = out->first_index + (PLACE)index;
    }
}

// Exclusive prefix of the tallies.
typedef struct {
    ulong below, at;
} Prefix;

// Stores the key if it is selected, and counts it.
INLINED void put(
    const Row* row, const Threshold* threshold, const Output* out, KEY key, OFFSET_T index, Prefix* before)
{
    const WORD number = number_of(row, key) >> threshold->shift;
    const bool below = number < threshold->prefix, at = number == threshold->prefix;
    if (below || (at && before->at < threshold->need)) {
        store(out, before->below + min(before->at, threshold->need), key, index);
    }
    before->below += below;
    before->at += at;
}

// Adds count r of the packed counts.
INLINED void advance(Prefix* prefix, ulong2 packed, uint r)
{
    prefix->below += packed_count(packed.x, r);
    prefix->at += packed_count(packed.y, r);
}

// Writes the selected keys of [begin, end); `before` is the exclusive prefix. All work-items call it.
INLINED void write_range(
    const Row* row, const Threshold* threshold, const Output* out, OFFSET_T begin, OFFSET_T end, Prefix* before,
    SHARED ulong2* sums, SHARED ulong2* totals)
{
    if (WG == 1) {
        for (OFFSET_T p = max(begin, (OFFSET_T)row->pad); p < end; p++) {
            put(row, threshold, out, row->keys[p], p - row->pad, before);
        }
        return;
    }
    for (OFFSET_T base = begin; base < end; base += TILE) {
        KeyWord held[ROWS];
        load_tile(held, row->keys, base, row->pad, end);
        ulong2 packed = (ulong2)(0), total;
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            Tally tally = {0, 0};
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                const OFFSET_T p = position_of(base, r) + j;
                tally_key(row, threshold, held[r].keys[j], p >= row->pad && p < end, &tally);
            }
            packed |= (ulong2)(tally.below, tally.at) << (ulong2)(16 * r);
        }
        const ulong2 packed_before = exclusive_prefix(packed, sums, totals, &total);
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            Prefix own = *before;
            advance(&own, packed_before, r);
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                const OFFSET_T p = position_of(base, r) + j;
                if (p >= row->pad && p < end) {
                    put(row, threshold, out, held[r].keys[j], p - row->pad, &own);
                }
            }
            advance(before, total, r);
        }
    }
}

// The index of a listed key.
INLINED OFFSET_T listed_index(const Row* row, uint i)
{
    return PLACE_BYTES > 0 ? row->listed_indices[i] : 0;
}

// As write_range, for a segment of listed keys.
INLINED void write_segment(
    const Row* row, const Threshold* threshold, const Output* out, uint2 segment, Prefix* before, SHARED ulong2* sums,
    SHARED ulong2* totals)
{
    if (WG == 1) {
        for (uint i = segment.x; i < segment.x + segment.y; i++) {
            put(row, threshold, out, row->listed_keys[i], listed_index(row, i), before);
        }
        return;
    }
    for (uint base = 0; base < segment.y; base += LISTED_ROWS * WG) {
        KEY held[LISTED_ROWS];
        UNROLL
        for (uint r = 0; r < LISTED_ROWS; r++) {
            const uint i = base + r * WG + get_local_id(0);
            held[r] = i < segment.y ? row->listed_keys[segment.x + i] : 0;
        }
        ulong2 packed = (ulong2)(0), total;
        UNROLL
        for (uint r = 0; r < LISTED_ROWS; r++) {
            Tally tally = {0, 0};
            tally_key(row, threshold, held[r], base + r * WG + get_local_id(0) < segment.y, &tally);
            packed |= (ulong2)(tally.below, tally.at) << (ulong2)(16 * r);
        }
        const ulong2 packed_before = exclusive_prefix(packed, sums, totals, &total);
        UNROLL
        for (uint r = 0; r < LISTED_ROWS; r++) {
            const uint i = base + r * WG + get_local_id(0);
            Prefix own = *before;
            advance(&own, packed_before, r);
            if (i < segment.y) {
                put(row, threshold, out, held[r], listed_index(row, segment.x + i), &own);
            }
            advance(before, total, r);
        }
    }
}

// The sums of the tallies of the parts before `part`. All work-items call it.
INLINED void add_tallies(Prefix* prefix, const Row* row, uint part, SHARED ulong2* sums, SHARED ulong2* totals)
{
    ulong2 own = (ulong2)(0), all;
    for (uint i = get_local_id(0); i < part; i += WG) {
        own += convert_ulong2(row->tallies[i]);
    }
    exclusive_prefix(own, sums, totals, &all);
    prefix->below = all.x;
    prefix->at = all.y;
}

// One work-group for each part of each row, after `tally`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_write(
    ROW_PARAMS, const uint segments, const ulong k, __global KEY* out_base, const ulong out_offset,
    __global uchar* places_base, const ulong places_offset, const ulong place_base, const ulong place_step)
{
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[CHUNKS];
    TAKE_LENGTH
    Row row;
    open_row(&row, in_base, in_offset, n, stride, scratch, region, flip, always, row_of_group(rows));
    const uint part = part_of_group(rows), flags = (uint)row.state[FLAGS];
    const OFFSET_T begin = (OFFSET_T)part * share, end = end_of_part(&row, begin, share);
    Output out;
    open_output(
        &out, out_base, out_offset, places_base, places_offset, place_base, place_step, k, row.index);
    Threshold threshold;
    load_threshold(&threshold, &row);
    Prefix before;
    add_tallies(&before, &row, part, sums, totals);
    const uint2 own = row.tallies[part];
    const bool any = own.x > 0 || (own.y > 0 && before.at < threshold.need);
    // Keys below the lower bound are not listed.
    const bool listed = PICK && (flags & IN_LIST) != 0 && (flags & HAS_LOW) == 0;
    write_range(&row, &threshold, &out, begin, any && !listed ? end : begin, &before, sums, totals);
    const uint count = PICK && any && listed ? row.segment_counts[part] : 0;
    for (uint s = 0; s < count; s++) {
        write_segment(&row, &threshold, &out, row.segments[part * segments + s], &before, sums, totals);
    }
}

#ifdef FLOAT_KEYS

// Several keys have the threshold's number. Writes the `need`-th of them in [begin, end), counted from 1, if it exists.
// All work-items call it.
INLINED void write_threshold(
    const Row* row, OFFSET_T begin, OFFSET_T end, WORD number, ulong need, SHARED ulong2* sums, SHARED ulong2* totals,
    __global KEY* out)
{
    ulong at = 0;
    if (WG == 1) {
        for (OFFSET_T p = max(begin, (OFFSET_T)row->pad); p < end; p++) {
            at += number_of(row, row->keys[p]) == number;
            if (at == need) {
                *out = row->keys[p];
                need = 0;
            }
        }
        return;
    }
    for (OFFSET_T base = begin; base < end; base += TILE) {
        KeyWord held[ROWS];
        load_tile(held, row->keys, base, row->pad, end);
        bool is_at[ROWS * WORD_KEYS];
        ulong packed = 0;
        ulong2 total;
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            uint own = 0;
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                const OFFSET_T p = position_of(base, r) + j;
                is_at[r * WORD_KEYS + j] = p >= row->pad && p < end && number_of(row, held[r].keys[j]) == number;
                own += is_at[r * WORD_KEYS + j];
            }
            packed |= (ulong)own << (16 * r);
        }
        const ulong before = exclusive_prefix((ulong2)(packed, 0), sums, totals, &total).x;
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            ulong rank = at + packed_count(before, r);
            UNROLL
            for (uint j = 0; j < WORD_KEYS; j++) {
                rank += is_at[r * WORD_KEYS + j];
                if (is_at[r * WORD_KEYS + j] && rank == need) {
                    *out = held[r].keys[j];
                }
            }
            at += packed_count(total.x, r);
        }
    }
}

// One work-group for each part of each row, after `tally`: the part that contains the threshold writes it.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_values(
    ROW_PARAMS, __global KEY* out_base, const ulong out_offset)
{
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[CHUNKS];
    TAKE_LENGTH
    Row row;
    open_row(&row, in_base, in_offset, n, stride, scratch, region, flip, always, row_of_group(rows));
    const uint part = part_of_group(rows);
    const OFFSET_T begin = (OFFSET_T)part * share, end = end_of_part(&row, begin, share);
    Prefix before;
    add_tallies(&before, &row, part, sums, totals);
    const ulong need = row.state[NEED];
    const bool here = need > before.at && need <= before.at + row.tallies[part].y;
    write_threshold(
        &row, begin, here ? end : begin, (WORD)row.state[PREFIX], need - before.at, sums, totals,
        out_base + out_offset + row.index);
}

#else

// Writes the key of the threshold's number if the range is not empty.
INLINED void write_threshold(
    const Row* row, OFFSET_T begin, OFFSET_T end, WORD number, ulong need, SHARED ulong2* sums, SHARED ulong2* totals,
    __global KEY* out)
{
    if (begin < end && get_local_id(0) == 0) {
        *out = key_of_ordered(number, row->flip, row->always);
    }
}

// One work-item for each row, after the last digit.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_values(
    ROW_PARAMS, __global KEY* out_base, const ulong out_offset)
{
    TAKE_LENGTH
    const ulong index = get_global_id(0);
    if (index < rows) {
        Row row;
        open_row(&row, in_base, in_offset, n, stride, scratch, region, flip, always, index);
        out_base[out_offset + index] = key_of_ordered((WORD)row.state[PREFIX], flip, always);
    }
}

#endif

// One work-group for each row: selects from the whole row. If `given` is not 0, `out` receives the threshold.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_rows(
    ROW_PARAMS, __global const ulong* ranks, const uint given, const ulong k, __global KEY* out_base,
    const ulong out_offset, __global uchar* places_base, const ulong places_offset, const ulong place_base,
    const ulong place_step)
{
    SHARED uint counts[RADIX * REPLICAS];
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[CHUNKS];
    SHARED ulong found[3];
    TAKE_LENGTH
    Row row;
    open_row(&row, in_base, in_offset, n, stride, scratch, region, flip, always, get_group_id(0));
    Threshold threshold;
    threshold.shift = 0;
    threshold.prefix = 0;
    threshold.need = rank_of_row(AT_MOST_N(k), ranks, given, row.index);
    for (int left = WIDTH; left > 0; left -= RADIX_BITS) {
        Digit digit;
        digit.prefix = threshold.prefix;
        digit.bits = min(left, RADIX_BITS);
        digit.shift = left - digit.bits;
        clear_counts(counts, RADIX);
        sync_shared();
        for (OFFSET_T base = 0; base < row.end; base += TILE) {
            count_tile(&row, row.keys, base, row.pad, row.end, &digit, counts);
        }
        sync_shared();
        append_digit(counts, digit.bits, &threshold.prefix, &threshold.need, found, sums, totals);
    }
    write_threshold(
        &row, 0, given ? row.end : 0, threshold.prefix, threshold.need, sums, totals,
        out_base + out_offset + row.index);
    Output out;
    open_output(
        &out, out_base, out_offset, places_base, places_offset, place_base, place_step, k, row.index);
    Prefix before = {0, 0};
    write_range(&row, &threshold, &out, 0, given ? 0 : row.end, &before, sums, totals);
}

// Batcher's bitonic sort of (number, index) pairs, no two of which are equal. All work-items call it after a barrier.
INLINED void sort_pairs(SHARED WORD* numbers, SHARED uint* order, uint count)
{
    for (uint size = 2; size <= count; size *= 2) {
        for (uint far = size / 2; far > 0; far /= 2) {
            for (uint t = get_local_id(0); t < count / 2; t += WG) {
                const uint a = 2 * t - (t & (far - 1)), b = a + far;
                const WORD x = numbers[a], y = numbers[b];
                const uint i = order[a], j = order[b];
                const int above = x > y || (x == y && i > j);
                if (above == ((a & size) == 0)) {
                    numbers[a] = y;
                    numbers[b] = x;
                    order[a] = j;
                    order[b] = i;
                }
            }
            sync_shared();
        }
    }
}

// One work-group for each row: sorts the row's n selected keys and their indices from scratch into `out`. `most` is a
// power of two, at least n and at most ORDER.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_order(
    __global const uchar* scratch, const ulong keys_first, const ulong places_first, LENGTH_PARAMS, const uint most,
    const WORD flip, const WORD always, __global KEY* out_base, const ulong out_offset, __global uchar* places_base,
    const ulong places_offset)
{
    SHARED WORD numbers[ORDER];
    SHARED uint order[ORDER];
    TAKE_LENGTH
    const ulong first = (ulong)get_group_id(0) * n;
    __global const KEY* from = (__global const KEY*)scratch + keys_first + first;
    for (uint i = get_local_id(0); i < most; i += WG) {
        numbers[i] = i < n ? ordered(from[i], flip, always) : ~(WORD)0;
        order[i] = i;
    }
    sync_shared();
    sort_pairs(numbers, order, most);
    for (uint i = get_local_id(0); i < n; i += WG) {
        out_base[out_offset + first + i] = from[order[i]];
        if (PLACE_BYTES > 0) {
            ((__global PLACE*)places_base)[places_offset + first + i] =
                ((__global const PLACE*)scratch)[places_first + first + order[i]];
        }
    }
}
