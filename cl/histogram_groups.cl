// Histograms of groups: counts[g][bin] = #{i in group g : slot(in[i]) == bin}. outside[g][k] has the counts of the
// three slots after the bins.
//
// Group g has the samples [start(g), start(g + 1)), where start(g) is offsets[g], or g * length with LINES. Starts are
// clamped to [start(0), n], so that reads stay inside for any offsets.
//
// A sample costs 1. A group costs `row_cost` more, for its row of counters. Group g begins at this cost:
//
//     before(g) = start(g) - start(0) + g * row_cost
//
// Work-group p of P processes the samples at the costs [p * part, (p + 1) * part), where part = before(count) / P,
// rounded up. So the work-groups are balanced for any groups. A group is split if its costs belong to several parts.
//
//     split: counters of split groups = 0
//     count: for each tile of a part, which has at most `rows` neighbouring groups:
//                table[group][slot] = its samples, counted in local memory
//                counts[group][bin] (+)= table[group][bin], by atomics if the group is split; outside likewise
//
// For weights, `keys` numbers the slots of all groups, so that histogram_weighted.cl sums them as those of one input:
//
//     keys: keys[i] = g * (bins + 3) + slot(in[i]) for each sample of group g
//
// Bytes: reads the samples once for each range of slots; writes each counter once, those of split groups once more for
// each of their parts.
//
// If a row does not fit local memory, work-group (p, r) counts only the `range` slots from r * range on. With
// GLOBAL_TABLES, `in` is read once: samples in the bins are added to `counts`, which are zeroed before. Only the three
// slots after the bins are counted in local memory, since atomics on so few words of global memory would collide.
//
// The host limits a part to 2^31 samples, so that indices inside a part have 32 bits. Built for IN, T and MAP of
// lib/bins.cl; C is the type of the caller's counters, S that of offsets.
#include "lib/bins.cl"

#ifndef WG
#define WG 256
#endif
// Words of a tile's table, and the maximum number of groups of a tile.
#ifndef LOCAL_WORDS
#define LOCAL_WORDS 1024
#define ROWS 16
#endif
#ifndef C
#define C uint
#define C_BYTES 4
#endif
#ifndef S
#define S uint
#endif
// Neighbouring samples that a work-item counts if a tile has several groups.
#define RUN 4

#ifdef LINES
#define GROUP_PARAMS const ulong length
#define GROUP_ARGS length
#else
#define GROUP_PARAMS __global const S *offsets_base, const ulong offsets_offset
#define GROUP_ARGS offsets_base, offsets_offset
#endif

typedef struct {
#ifdef LINES
    ulong length;
#else
    __global const S* offsets;
    ulong first;
#endif
    ulong n, count, row_cost;
} Groups;

INLINED void open_groups(Groups* groups, const ulong n, const ulong count, const ulong row_cost, GROUP_PARAMS)
{
    groups->n = n;
    groups->count = count;
    groups->row_cost = row_cost;
#ifdef LINES
    groups->length = length;
#else
    groups->offsets = offsets_base + offsets_offset;
    groups->first = min((ulong)groups->offsets[0], n);
#endif
}

INLINED ulong start_of(const Groups* groups, const ulong group)
{
#ifdef LINES
    return group * groups->length;
#else
    return min(max((ulong)groups->offsets[group], groups->first), groups->n);
#endif
}

INLINED ulong cost_before(const Groups* groups, const ulong group)
{
#ifdef LINES
    return group * (groups->length + groups->row_cost);
#else
    return start_of(groups, group) - groups->first + group * groups->row_cost;
#endif
}

// The last group that begins at `cost` or before, where cost < cost_before(count).
INLINED ulong group_at(const Groups* groups, const ulong cost)
{
#ifdef LINES
    return cost / (groups->length + groups->row_cost);
#else
    // cost_before(low) <= cost < cost_before(high)
    ulong low = 0, high = groups->count;
    while (high - low > 1) {
        const ulong middle = low + (high - low) / 2;
        if (cost_before(groups, middle) <= cost) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
#endif
}

// The index of the sample at `cost`, which is in `group` or at its end.
INLINED ulong sample_at(const Groups* groups, const ulong group, const ulong cost)
{
    const ulong over = cost - cost_before(groups, group);
    return start_of(groups, group) + (over > groups->row_cost ? over - groups->row_cost : 0);
}

INLINED ulong part_of(const ulong total, const ulong parts)
{
    return (total + parts - 1) / parts;
}

// Adds to a counter that other work-items may change. The low word of a ulong comes first.
INLINED void add_wide(__global ulong* counter, const uint count)
{
    volatile __global uint* words = (volatile __global uint*)counter;
    if (atomic_add(words, count) + count < count) {
        atomic_inc(words + 1);
    }
}

INLINED void add_counter(__global C* counter, const uint count)
{
#if C_BYTES == 8
    add_wide(counter, count);
#else
    atomic_add((volatile __global uint*)counter, count);
#endif
}

// The table of a tile. Slots [low, low + len) are in local memory, with 2^replica_bits replicas. Those of a slot are
// neighbours, so that 32 of them are in different banks.
typedef struct {
    __local uint* words; // At the work-item's replica.
    uint low, len, replica_bits;
#ifdef GLOBAL_TABLES
    // The counters of the tile's first group; `shared` if other work-items may change them. A run of `length` samples
    // with counter `held` is added at once.
    __global C* counts;
    uint shared, length;
    ulong held;
#endif
} Table;

// Adds the run of samples that the work-item holds.
INLINED void flush_run(Table* table)
{
#ifdef GLOBAL_TABLES
    if (table->length != 0) {
        if (table->shared) {
            add_counter(table->counts + table->held, table->length);
        } else {
            table->counts[table->held] += table->length;
        }
    }
    table->length = 0;
#endif
}

INLINED void count_sample(Table* table, const uint row, const IN x, const uint bins SLOT_PARAMS)
{
    const uint slot = SLOT(x), at = slot - table->low;
    if (at < table->len) {
        __local uint* word = table->words + ((row * table->len + at) << table->replica_bits);
        if (WG == 1) {
            *word += 1;
        } else {
            atomic_inc(word);
        }
    }
#ifdef GLOBAL_TABLES
    else {
        const ulong counter = (ulong)row * bins + slot;
        if (counter != table->held) {
            flush_run(table);
            table->held = counter;
        }
        table->length++;
    }
#endif
}

#include "lib/samples.cl"

INLINED void count_vector(Table* table, const Samples* samples, const uint bins SLOT_PARAMS)
{
#pragma unroll
    for (uint k = 0; k < VEC; k++) {
        const IN x = sample_of(samples, k);
        count_sample(table, 0, x, bins MAP_ARGS);
    }
}

// Counts n samples of one group by the work-group. Work-items take vectors, four of them in flight, and then the few
// samples around the vectors; `head` samples are before the first 16-byte boundary.
INLINED void count_group(
    Table* table, __global const IN* in, const uint n, const uint head, const uint bins SLOT_PARAMS)
{
    const uint vecs = (n - head) / VEC;
    __global const BODY* body = (__global const BODY*)(in + head);
    uint v = get_local_id(0);
    for (; v < vecs && vecs - v > 3 * WG; v += 4 * WG) {
        Samples four[4];
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            four[k].all = body[v + k * WG];
        }
#pragma unroll
        for (uint k = 0; k < 4; k++) {
            count_vector(table, &four[k], bins MAP_ARGS);
        }
    }
    for (; v < vecs; v += WG) {
        __global const IN* samples = (__global const IN*)(body + v);
        ROLLED
        for (uint k = 0; k < VEC; k++) {
            count_sample(table, 0, samples[k], bins MAP_ARGS);
        }
    }
    for (uint i = get_local_id(0); i < n - vecs * VEC; i += WG) {
        count_sample(table, 0, in[i < head ? i : i + vecs * VEC], bins MAP_ARGS);
    }
}

// Counts the samples of a tile by the work-group. Group k of the tile has the samples from bounds[k] to bounds[k + 1].
INLINED void count_groups(
    Table* table, __global const IN* in, __local const uint* bounds, const uint tile, const uint bins SLOT_PARAMS)
{
    const uint end = bounds[tile];
    for (uint i = bounds[0] + RUN * get_local_id(0); i < end; i += RUN * WG) {
        // The last group that begins at i or before.
        uint row = 0;
        for (uint above = tile; above - row > 1;) {
            const uint middle = (row + above) / 2;
            if (bounds[middle] <= i) {
                row = middle;
            } else {
                above = middle;
            }
        }
        ROLLED
        for (uint k = i; k < i + RUN && k < end; k++) {
            while (row + 1 < tile && bounds[row + 1] <= k) {
                row++;
            }
            count_sample(table, row, in[k], bins MAP_ARGS);
        }
    }
    flush_run(table);
}

// Stores a count of a group, or adds it.
INLINED void put_count(
    __global C* counts, __global ulong* outside, const ulong group, const uint slot, const uint bins, const uint count,
    const uint split, const uint add)
{
    if (split && count == 0) {
        return;
    }
    if (slot < bins) {
        __global C* counter = counts + group * bins + slot;
        if (split) {
            add_counter(counter, count);
        } else {
            *counter = (C)(count + (add ? *counter : 0));
        }
    } else {
        __global ulong* counter = outside + group * 3 + (slot - bins);
        if (split) {
            add_wide(counter, count);
        } else {
            *counter = count + (add ? *counter : 0);
        }
    }
}

// Zeroes the counters of split groups. Work-group p takes the group at the end of part p, if the group begins in this
// part.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_groups_split(
    const ulong n, const ulong count, const ulong row_cost, const uint bins, __global C* counts_base,
    const ulong counts_offset, __global ulong* outside_base, const ulong outside_offset, GROUP_PARAMS)
{
    Groups groups;
    open_groups(&groups, n, count, row_cost, GROUP_ARGS);
    const ulong total = cost_before(&groups, count), part = part_of(total, get_num_groups(0) + 1);
    const ulong from = (ulong)get_group_id(0) * part, end = from + part;
    if (end < total) {
        const ulong group = group_at(&groups, end), before = cost_before(&groups, group);
        if (before >= from && before < end) {
            __global C* counts = counts_base + counts_offset + group * bins;
            __global ulong* outside = outside_base + outside_offset + group * 3;
            for (uint k = get_local_id(0); k < bins; k += WG) {
                counts[k] = 0;
            }
            for (uint k = get_local_id(0); k < 3; k += WG) {
                outside[k] = 0;
            }
        }
    }
}

// A group of `many` samples or more is a tile of its own, with 2^replica_bits replicas of its row.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_groups_count(
    __global const IN* restrict in_base, const ulong in_offset, const ulong n, const ulong count, const ulong row_cost,
    const uint bins, __global C* counts_base, const ulong counts_offset, __global ulong* outside_base,
    const ulong outside_offset, const uint add, const uint range, const uint rows, const uint replica_bits,
    const uint many, GROUP_PARAMS MAP_PARAMS)
{
    __local uint words[LOCAL_WORDS];
    __local uint bounds[ROWS + 1];
    __local uint most; // The groups of the next tile, if fewer than `rows`.
    MAP_SETUP(get_local_id(0), WG)
    const uint item = get_local_id(0);
    __global C* counts = counts_base + counts_offset;
    __global ulong* outside = outside_base + outside_offset;
    Table table;
#ifdef GLOBAL_TABLES
    table.low = bins;
    table.len = 3;
    table.shared = 1;
    table.length = 0;
#else
    table.low = get_group_id(1) * range;
    table.len = min(range, bins + 3 - table.low);
#endif
    if (item == 0) {
        most = UINT_MAX;
    }
    LOCAL_BARRIER;
    Groups groups;
    open_groups(&groups, n, count, row_cost, GROUP_ARGS);
    const ulong total = cost_before(&groups, count), part = part_of(total, get_num_groups(0));
    const ulong from = min(total, (ulong)get_group_id(0) * part), to = min(total, from + part);
    // The part has groups [group, end) and samples [begin, stop).
    ulong group = 0, end = 0, begin = 0, stop = 0, split_first = ULONG_MAX, split_last = ULONG_MAX;
    if (from < to) {
        group = group_at(&groups, from);
        const ulong last = group_at(&groups, to - 1);
        end = last + 1;
        begin = sample_at(&groups, group, from);
        stop = min(start_of(&groups, end), sample_at(&groups, last, to));
        split_first = cost_before(&groups, group) < from ? group : ULONG_MAX;
        split_last = cost_before(&groups, end) > to ? last : ULONG_MAX;
    }
    __global const IN* in = in_base + in_offset + begin;
    while (group < end) {
        const uint room = (uint)min((ulong)rows, end - group);
        for (uint k = item; k <= room; k += WG) {
            const ulong start = min(max(start_of(&groups, group + k), begin), max(begin, stop));
            bounds[k] = (uint)(start - begin);
            if (k < room) {
                const ulong next = min(max(start_of(&groups, group + k + 1), begin), max(begin, stop));
                if (next - start >= many) {
                    atomic_min(&most, max(k, 1u));
                }
            }
        }
        LOCAL_BARRIER;
        const uint tile = min(room, most), bits = tile == 1 ? replica_bits : 0, replicas = 1u << bits;
        for (uint k = item; k < (tile * table.len) << bits; k += WG) {
            words[k] = 0;
        }
        LOCAL_BARRIER;
        if (item == 0) {
            most = UINT_MAX;
        }
        table.words = words + (item & (replicas - 1));
        table.replica_bits = bits;
#ifdef GLOBAL_TABLES
        table.counts = counts + group * bins;
        table.held = ULONG_MAX;
#endif
        if (WG == 1) {
            for (uint row = 0; row < tile; row++) {
#ifdef GLOBAL_TABLES
                table.shared = group + row == split_first || group + row == split_last;
#endif
                for (uint i = bounds[row]; i < bounds[row + 1]; i++) {
                    count_sample(&table, row, in[i], bins MAP_ARGS);
                }
                flush_run(&table);
            }
        } else if (tile == 1) {
            const uint first = bounds[0], len = max(first, bounds[1]) - first;
            // The samples between the last 16-byte boundary and the group's first sample. Buffers themselves are
            // aligned.
            const uint past = (uint)(in_offset + begin + first) & (VEC - 1);
            count_group(&table, in + first, len, min(len, (VEC - past) & (VEC - 1)), bins MAP_ARGS);
            flush_run(&table);
        } else {
            count_groups(&table, in, bounds, tile, bins MAP_ARGS);
        }
        LOCAL_BARRIER;
        for (uint k = item; k < tile * table.len; k += WG) {
            uint sum = 0;
            for (uint r = 0; r < replicas; r++) {
                // Each work-item starts at another replica, and so in another bank.
                sum += words[(k << bits) + ((r + k) & (replicas - 1))];
            }
            const uint row = k / table.len, slot = table.low + (k - row * table.len);
            const uint split = group + row == split_first || group + row == split_last;
            put_count(counts, outside, group + row, slot, bins, sum, split, add);
        }
        group += tile;
    }
}

// Numbers the slots of `few` groups from `first` on; writes UINT_MAX for other samples. A work-item takes `run`
// neighbouring samples at a time. row_cost is 0.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void histogram_groups_keys(
    __global const IN* restrict in_base, const ulong in_offset, const ulong n, const ulong count, const uint bins,
    const ulong first, const ulong few, const ulong run, __global uint* restrict keys, GROUP_PARAMS MAP_PARAMS)
{
    MAP_SETUP(get_local_id(0), WG)
    LOCAL_BARRIER;
    Groups groups;
    open_groups(&groups, n, count, 0, GROUP_ARGS);
    __global const IN* in = in_base + in_offset;
    const ulong begin = start_of(&groups, 0), stop = start_of(&groups, count);
    for (ulong base = run * get_global_id(0); base < n; base += run * get_global_size(0)) {
        const ulong last = min(n, base + run);
        ulong group = 0, end = 0;
        for (ulong i = base; i < last; i++) {
            uint key = UINT_MAX;
            if (i >= begin && i < stop) {
                if (i >= end) {
                    group = group_at(&groups, i - begin);
                    end = start_of(&groups, group + 1);
                }
                if (group - first < few) {
                    key = (uint)(group - first) * (bins + 3) + SLOT(in[i]);
                }
            }
            keys[i] = key;
        }
    }
}
