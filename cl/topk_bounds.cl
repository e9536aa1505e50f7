// The first read of a selection (topk.cl): bounds of the threshold from a sample, and a list of the keys between them.

// Keys in the sample.
#ifndef SAMPLE
#define SAMPLE 4096
#endif
// Sampled keys that a work-item has in flight.
#define IN_FLIGHT (SAMPLE / WG < 16 ? SAMPLE / WG : 16)
#if SAMPLE % (IN_FLIGHT * WG) != 0
#error "each work-item takes the same number of sampled keys"
#endif

// Listed keys are written to global memory when there are FLUSH of them.
#define FLUSH 1024
#define LIST (WG == 1 ? FLUSH : FLUSH + TILE)

// A tile with at most FEW listed keys lists them without a prefix sum over the work-group. FEW is 0 for compilers that
// miscompile barriers in branches.
#ifndef FEW
#define FEW 0
#endif
#define FEW_WORDS (FEW > 0 ? FEW : 1)

// Words of a counter of the histogram: two if a row may have 2^32 keys.
#ifdef WIDE
#define COUNTER_WORDS 2
#else
#define COUNTER_WORDS 1
#endif

// Scrambles the bits of x (Appleby's MurmurHash3 finaliser).
INLINED uint mix(uint x)
{
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

// Returns sampled key i: one from each of SAMPLE pieces of equal length.
INLINED KEY sample_key(const Row* row, uint i, ulong piece)
{
    return row->keys[row->pad + i * piece + ((ulong)mix(i + 1) * piece >> 32)];
}

// Loads the numbers of the sampled keys: from the listed keys if other work-groups have put them there.
INLINED void load_sample(const Row* row, ulong piece, bool listed, SHARED WORD* sample)
{
    for (uint first = get_local_id(0); first < SAMPLE; first += IN_FLIGHT * WG) {
        KEY held[IN_FLIGHT];
        UNROLL
        for (uint r = 0; r < IN_FLIGHT; r++) {
            const uint i = first + r * WG;
            held[r] = listed ? row->listed_keys[i] : sample_key(row, i, piece);
        }
        UNROLL
        for (uint r = 0; r < IN_FLIGHT; r++) {
            sample[first + r * WG] = number_of(row, held[r]);
        }
    }
    sync_shared();
}

// Returns the sampled number that has rank `rank`, counted from 1. All work-items call it after a barrier.
INLINED WORD select_sample(
    const SHARED WORD* sample, uint rank, SHARED uint* counts, SHARED ulong* found, SHARED ulong2* sums,
    SHARED ulong2* totals)
{
    Digit digit;
    digit.prefix = 0;
    ulong need = rank;
    for (int left = WIDTH; left > 0; left -= RADIX_BITS) {
        digit.bits = min(left, RADIX_BITS);
        digit.shift = left - digit.bits;
        clear_counts(counts, RADIX);
        sync_shared();
        for (uint i = get_local_id(0); i < SAMPLE; i += WG) {
            count_digit(sample[i], &digit, counts);
        }
        sync_shared();
        append_digit(counts, digit.bits, &digit.prefix, &need, found, sums, totals);
    }
    return digit.prefix;
}

// Bounds of the threshold, as numbers. A missing lower bound is the lowest number, and a missing upper bound the
// highest.
typedef struct {
    WORD low, high;
    bool has_low, has_high;
} Bounds;

// Finds bounds of the `need`-th of `len` keys. About `middle` keys of the sample are at most the threshold; the bounds
// are five standard deviations and 8 sampled keys away. All work-items call it after a barrier.
INLINED void find_bounds(
    Bounds* bounds, const SHARED WORD* sample, ulong need, ulong len, SHARED uint* counts, SHARED ulong* found,
    SHARED ulong2* sums, SHARED ulong2* totals)
{
    const float middle = (float)need / (float)max(len, 1ul) * SAMPLE;
    const float off = 5 * sqrt(middle * max(0.0f, 1 - middle / SAMPLE)) + 8;
    const float first = floor(middle - off), last = ceil(middle + off);
    const bool has_low = first >= 1, has_high = last <= SAMPLE;
    WORD low = 0, high = ~(WORD)0;
    for (uint bound = has_low ? 0 : 1; bound < 2; bound++) {
        const float rank = clamp(bound == 0 ? first : last, 1.0f, (float)SAMPLE);
        const WORD number = select_sample(sample, (uint)rank, counts, found, sums, totals);
        if (bound == 0) {
            low = number;
        } else if (has_high) {
            high = number;
        }
    }
    bounds->low = low;
    bounds->high = high;
    bounds->has_low = has_low;
    bounds->has_high = has_high;
}

#if ONE_PASS
#define SAMPLERS_PARAM , const uint samplers ENDED_PARAM
#else
#define SAMPLERS_PARAM
#endif

// Writes the state of a row, and clears its histogram.
INLINED void write_state(const Row* row, const Bounds* bounds, ulong need)
{
    for (uint i = get_local_id(0); i < RADIX * COUNTER_WORDS; i += WG) {
        row->histogram[i] = 0;
    }
    if (get_local_id(0) == 0) {
        __global ulong* state = row->state;
        state[PREFIX] = 0;
        state[SHIFT] = 0;
        state[NEED] = need;
        state[FLAGS] = (bounds->has_low ? HAS_LOW : 0) | (bounds->has_high ? HAS_HIGH : 0);
        state[LOW] = bounds->low;
        state[HIGH] = bounds->high;
        state[LISTED] = 0;
        state[ENDED] = 0;
    }
}

// One work-group for each row; with ONE_PASS, `samplers` of them for a single row. Sampled keys lie in pages far apart,
// so one work-group waits long for them. H200, 2^28 keys, 65,536 sampled: 372 us with one work-group, 360 us with 16.
// Without PICK there are no bounds.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_start(
    ROW_PARAMS, const ulong k, __global const ulong* ranks, const uint given SAMPLERS_PARAM)
{
    TAKE_LENGTH
    Row row;
    Bounds bounds = {0, ~(WORD)0, false, false};
#if PICK
    SHARED WORD sample[SAMPLE];
    SHARED uint counts[RADIX * REPLICAS];
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[CHUNKS];
    SHARED ulong found[3];
#if !ONE_PASS
    const uint samplers = 1;
    volatile __global uint* ended = 0;
#endif
    const ulong piece = (ulong)n / SAMPLE;
    open_row(&row, in_base, in_offset, n, stride, scratch, region, flip, always, samplers > 1 ? 0 : get_group_id(0));
    const ulong need = rank_of_row(AT_MOST_N(k), ranks, given, row.index);
    if (samplers > 1) {
        for (uint i = get_global_id(0); i < SAMPLE; i += get_global_size(0)) {
            row.listed_keys[i] = sample_key(&row, i, piece);
        }
        if (!ends_last(ended, samplers, counts)) {
            return;
        }
    }
    load_sample(&row, piece, samplers > 1, sample);
    find_bounds(&bounds, sample, need, n, counts, found, sums, totals);
#else
    open_row(&row, in_base, in_offset, n, stride, scratch, region, flip, always, get_group_id(0));
    const ulong need = rank_of_row(AT_MOST_N(k), ranks, given, row.index);
#endif
    write_state(&row, &bounds, need);
}

#if PICK

// The work-item's own keys of each class; `between` is counted in List.
typedef struct {
    uint below, at_low, at_high;
} Classes;

// The list of a part: the numbers of keys in local memory, of keys listed so far, and of segments written so far. All
// work-items have the same values.
typedef struct {
    uint used, between, segments;
} List;

// Counts the class of a number that is at most `high`. Returns true if it is between the bounds.
INLINED bool classify(WORD number, const Bounds* bounds, Classes* classes)
{
    const bool under = bounds->has_low && number <= bounds->low;
    const bool over = !under && bounds->has_high && number == bounds->high;
    classes->below += under && number < bounds->low;
    classes->at_low += under && number == bounds->low;
    classes->at_high += over;
    return !under && !over;
}

// Writes the listed keys as a segment of the part if they are `least` or more. The list of a row has room for
// `capacity` keys; on overflow the segment is invalid. All work-items call it.
INLINED void flush_list(
    const Row* row, __global uint2* segments, OFFSET_T begin, uint capacity, uint least, List* own,
    const SHARED uint* list, SHARED uint* start)
{
    sync_shared();
    if (get_local_id(0) == 0 && own->used >= least) {
        volatile __global uint* listed = (volatile __global uint*)(row->state + LISTED);
        start[0] = ~0u;
        if (atomic_or(listed + 1, 0) == 0) {
            const uint next = atomic_add(listed, own->used);
            if (next <= capacity && own->used <= capacity - next) {
                start[0] = next;
            } else {
                atomic_or(listed + 1, 1);
            }
        }
        segments[own->segments] = (uint2)(start[0], own->used);
    }
    sync_shared();
    if (own->used >= least) {
        const uint first = start[0];
        for (uint i = get_local_id(0); i < own->used && first != ~0u; i += WG) {
            const OFFSET_T p = begin + list[i];
            row->listed_keys[first + i] = row->keys[p];
            if (PLACE_BYTES > 0) {
                row->listed_indices[first + i] = p - row->pad;
            }
        }
        own->used = 0;
        own->segments++;
    }
}

// Classifies the keys of a tile. Bit j of chosen[r] is set if key j of word r is between the bounds. Returns the counts
// of these keys, packed by word.
INLINED ulong classify_tile(
    const Row* row, const KeyWord* held, OFFSET_T base, OFFSET_T end, const Bounds* bounds, uint* chosen,
    Classes* classes)
{
    const bool whole = base >= row->pad && base + TILE <= end;
    ulong packed = 0;
    UNROLL
    for (uint r = 0; r < ROWS; r++) {
        uint bits = 0;
        UNROLL
        for (uint j = 0; j < WORD_KEYS; j++) {
            const WORD number = number_of(row, held[r].keys[j]);
            const OFFSET_T p = position_of(base, r) + j;
            if (number <= bounds->high && (whole || (p >= row->pad && p < end))) {
                bits |= classify(number, bounds, classes) ? 1u << j : 0;
            }
        }
        chosen[r] = bits;
        packed |= (ulong)popcount(bits) << (16 * r);
    }
    return packed;
}

// The distance of a chosen key, the lowest one in `bits`, from the part's first position.
INLINED uint distance_of(OFFSET_T base, uint r, OFFSET_T begin, uint bits)
{
    return (uint)(position_of(base, r) - begin) + 31 - clz(bits & -bits);
}

// Lists the chosen keys of a tile if they are at most FEW. It collects them in any order, then finds the rank of each
// key by counting the keys before it. Returns the number of chosen keys. met[tile % 3] is the tile's counter. It is 0
// before. Meanwhile one work-item clears the counter of the tile after the next one, which no other work-item uses.
INLINED uint list_few(
    const uint* chosen, bool any, OFFSET_T base, OFFSET_T begin, uint tile, List* own, SHARED uint* list,
    SHARED uint* met, SHARED uint* few)
{
    SHARED uint* own_few = few + tile % 2 * FEW;
    if (any) {
        UNROLL
        for (uint r = 0; r < ROWS; r++) {
            for (uint bits = chosen[r]; bits != 0; bits &= bits - 1) {
                const uint slot = shared_add(met + tile % 3, 1);
                if (slot < FEW) {
                    own_few[slot] = distance_of(base, r, begin, bits);
                }
            }
        }
    }
    sync_shared();
    const uint listed = met[tile % 3];
    const uint item = get_local_id(0);
    if (item == 0) {
        met[(tile + 2) % 3] = 0;
    }
    if (listed <= FEW) {
        if (item < listed) {
            const uint mine = own_few[item];
            uint to = own->used;
            for (uint q = 0; q < listed; q++) {
                to += own_few[q] < mine;
            }
            list[to] = mine;
        }
        own->used += listed;
        own->between += listed;
    }
    return listed;
}

// Lists the chosen keys of a tile at the offsets of a prefix sum. All work-items call it.
INLINED void list_many(
    const uint* chosen, ulong packed, OFFSET_T base, OFFSET_T begin, List* own, SHARED uint* list, SHARED ulong2* sums,
    SHARED ulong2* totals)
{
    ulong2 total;
    const ulong before = exclusive_prefix((ulong2)(packed, 0), sums, totals, &total).x;
    UNROLL
    for (uint r = 0; r < ROWS; r++) {
        uint to = own->used + (uint)packed_count(before, r);
        for (uint bits = chosen[r]; bits != 0; bits &= bits - 1) {
            list[to++] = distance_of(base, r, begin, bits);
        }
        const uint more = (uint)packed_count(total.x, r);
        own->used += more;
        own->between += more;
    }
}

// One work-group for each part of each row.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_filter(
    ROW_PARAMS, const uint segments, const uint list_room)
{
    SHARED uint list[LIST];
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[CHUNKS];
    SHARED uint counted[3];
    SHARED uint start[1];
    SHARED uint met[3];
    SHARED uint few[2 * FEW_WORDS];
    TAKE_LENGTH
    Row row;
    open_row(&row, in_base, in_offset, n, stride, scratch, region, flip, always, row_of_group(rows));
    const uint part = part_of_group(rows);
    const OFFSET_T begin = (OFFSET_T)part * share, end = end_of_part(&row, begin, share);
    __global uint2* own_segments = row.segments + part * segments;
    const uint flags = (uint)row.state[FLAGS];
    Bounds bounds;
    bounds.low = (WORD)row.state[LOW];
    bounds.high = (WORD)row.state[HIGH];
    bounds.has_low = (flags & HAS_LOW) != 0;
    bounds.has_high = (flags & HAS_HIGH) != 0;
    List own = {0, 0, 0};
    Classes classes = {0, 0, 0};
    for (uint i = get_local_id(0); i < 3; i += WG) {
        counted[i] = 0;
        if (FEW > 0) {
            met[i] = 0;
        }
    }
    sync_shared();
    if (WG == 1) {
        for (OFFSET_T p = max(begin, (OFFSET_T)row.pad); p < end; p++) {
            const WORD number = number_of(&row, row.keys[p]);
            if (number <= bounds.high && classify(number, &bounds, &classes)) {
                list[own.used++] = (uint)(p - begin);
                own.between++;
                flush_list(&row, own_segments, begin, list_room, FLUSH, &own, list, start);
            }
        }
    } else {
        KeyWord held[ROWS];
        load_tile(held, row.keys, begin, row.pad, end);
        uint tile = 0;
        for (OFFSET_T base = begin; base < end; base += TILE) {
            uint chosen[ROWS];
            const ulong packed = classify_tile(&row, held, base, end, &bounds, chosen, &classes);
            // Loads the next tile while this one is listed.
            if (end - base > TILE) {
                load_tile(held, row.keys, base + TILE, row.pad, end);
            }
            if (FEW > 0 && list_few(chosen, packed != 0, base, begin, tile++, &own, list, met, few) <= FEW) {
                if (own.used >= FLUSH) {
                    flush_list(&row, own_segments, begin, list_room, FLUSH, &own, list, start);
                }
                continue;
            }
            list_many(chosen, packed, base, begin, &own, list, sums, totals);
            flush_list(&row, own_segments, begin, list_room, FLUSH, &own, list, start);
        }
    }
    flush_list(&row, own_segments, begin, list_room, 1, &own, list, start);
    shared_add(counted, classes.below);
    shared_add(counted + 1, classes.at_low);
    shared_add(counted + 2, classes.at_high);
    sync_shared();
    if (get_local_id(0) == 0) {
        row.classes[part] = (uint4)(counted[0], counted[1], own.between, counted[2]);
        row.segment_counts[part] = own.segments;
    }
}

// One work-group for each row. A last-block reduction in `filter` instead is slower: 380 us instead of 356 on an H200,
// for k = 1,024 of 2^28 keys.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_settle(ROW_PARAMS)
{
    SHARED ulong2 sums[SUMS];
    SHARED ulong2 totals[CHUNKS];
    TAKE_LENGTH
    Row row;
    open_row(&row, in_base, in_offset, n, stride, scratch, region, flip, always, get_group_id(0));
    __global ulong* state = row.state;
    uint flags = (uint)state[FLAGS];
    ulong2 lower = (ulong2)(0), upper = (ulong2)(0), all_lower, all_upper;
    for (uint i = get_local_id(0); i < parts; i += WG) {
        const uint4 counts = row.classes[i];
        lower += convert_ulong2(counts.xy);
        upper += convert_ulong2(counts.zw);
    }
    exclusive_prefix(lower, sums, totals, &all_lower);
    exclusive_prefix(upper, sums, totals, &all_upper);
    sync_all();
    if (get_local_id(0) == 0) {
        const ulong below = all_lower.x, at_low = all_lower.y, at_high = all_upper.y;
        const ulong need = state[NEED], listed = below + at_low + all_upper.x;
        const int room = ((__global const uint*)(state + LISTED))[1] == 0;
        if (need > below && need <= below + at_low) {
            flags |= DONE | AT_LOW;
            state[PREFIX] = state[LOW];
            state[NEED] = need - below;
        } else if (need > below + at_low && need <= listed && room) {
            flags |= IN_LIST;
            state[NEED] = need - below - at_low;
        } else if (need > listed && need <= listed + at_high) {
            flags |= DONE | AT_HIGH;
            state[PREFIX] = state[HIGH];
            state[NEED] = need - listed;
        }
        state[FLAGS] = flags;
    }
}
#endif
