// The digits of the threshold of a selection (topk.cl), from the most significant one on.

// Adds to a counter of the histogram, which has two words if a row may have 2^32 keys.
INLINED void histogram_add(volatile __global uint* counter, uint count)
{
    const uint old = atomic_add(counter, count);
    if (COUNTER_WORDS == 2 && old + count < old) {
        atomic_inc(counter + 1);
    }
}

INLINED ulong histogram_count(volatile __global uint* counter)
{
    return COUNTER_WORDS == 2 ? (ulong)counter[1] << 32 | counter[0] : counter[0];
}

// Appends a digit to the threshold of a row and clears the histogram. All work-items of one work-group call it after
// `count`. With `exact`, a row is done only after its last digit.
INLINED void append_digit_of_row(
    const Row* row, uint flags, uint shift, uint bits, uint exact, SHARED ulong* found, SHARED ulong2* sums,
    SHARED ulong2* totals)
{
    __global ulong* state = row->state;
    volatile __global uint* histogram = row->histogram;
    const ulong need = state[NEED], prefix = state[PREFIX];
    ulong own[OWN];
    for (uint o = 0; o < OWN; o++) {
        own[o] = histogram_count(histogram + (get_local_id(0) * OWN + o) * COUNTER_WORDS);
    }
    find_digit(own, need, found, sums, totals);
    sync_all();
    ROLLED
    for (uint i = get_local_id(0); i < RADIX * COUNTER_WORDS; i += WG) {
        histogram[i] = 0;
    }
    if (get_local_id(0) == 0 && (flags & DONE) == 0) {
        state[PREFIX] = prefix << bits | found[0];
        state[SHIFT] = shift;
        state[NEED] = need - found[1];
        // If all keys with these digits are selected, no further digit is needed. But if `write` reads keys that are
        // not listed, some of them may have the same digits.
        const int others = PICK && (flags & IN_LIST) != 0 && (flags & HAS_LOW) != 0;
        if (shift == 0 || (!others && found[2] == need - found[1] && !exact)) {
            state[FLAGS] = flags | DONE;
        }
    }
}

// With ONE_PASS, the work-group of a row that finishes `count` last appends the digit.
#if ONE_PASS
#define EXACT_PARAM , const uint exact
#else
#define EXACT_PARAM

// One work-group for each row, after `count`.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_find(
    ROW_PARAMS, const uint shift, const uint bits, const uint exact)
{
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[CHUNKS];
    SHARED ulong found[3];
    TAKE_LENGTH
    Row row;
    open_row(&row, in_base, in_offset, n, stride, scratch, region, flip, always, get_group_id(0));
    append_digit_of_row(&row, (uint)row.state[FLAGS], shift, bits, exact, found, sums, totals);
}
#endif

// One work-group for each part of each row: adds the digits of `bits` bits from bit `shift` on to the histogram.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_count(
    ROW_PARAMS, const uint shift, const uint bits EXACT_PARAM)
{
    SHARED uint counts[RADIX * REPLICAS];
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[CHUNKS];
    SHARED ulong found[3];
#if !ONE_PASS
    const uint exact = 0;
#endif
    TAKE_LENGTH
    Row row;
    open_row(&row, in_base, in_offset, n, stride, scratch, region, flip, always, row_of_group(rows));
    const uint part = part_of_group(rows), flags = (uint)row.state[FLAGS];
    const bool listed = PICK && (flags & IN_LIST) != 0, done = (flags & DONE) != 0;
    const OFFSET_T begin = listed ? 0 : row.pad;
    const OFFSET_T end = done ? 0 : listed ? ((__global const uint*)(row.state + LISTED))[0] : row.end;
    __global const KEY* keys = listed ? row.listed_keys : row.keys;
    Digit digit;
    digit.prefix = (WORD)row.state[PREFIX];
    digit.shift = shift;
    digit.bits = bits;
    // Without keys a work-group has no counters.
    const uint digits = part * TILE < end ? RADIX : 0;
    clear_counts(counts, digits);
    sync_shared();
    ROLLED
    for (OFFSET_T base = part * TILE; base < end; base += parts * TILE) {
        count_tile(&row, keys, base, begin, end, &digit, counts);
    }
    sync_shared();
    ROLLED
    for (uint d = get_local_id(0); d < digits; d += WG) {
        uint sum = 0;
        for (uint r = 0; r < REPLICAS; r++) {
            sum += counts[d * REPLICAS + r];
        }
        if (sum != 0) {
            histogram_add(row.histogram + d * COUNTER_WORDS, sum);
        }
    }
    // The flags are written after all work-groups of the row have read them.
    if (ONE_PASS && !done && ends_last((volatile __global uint*)(row.state + ENDED), parts, counts)) {
        append_digit_of_row(&row, flags, shift, bits, exact, found, sums, totals);
    }
}
