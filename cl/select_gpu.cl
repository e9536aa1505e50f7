// Select for GPUs: a work-group takes a tile of ROWS rows of WG 16-byte vectors. A work-item has one vector of each
// row.
//
// Bytes: reads n elements, and once more if a launch counts first; reads the values of selected elements; writes the
// outputs.
//
//     for each tile, by one work-group:
//         load the tile; flag its elements: a bit mask for each list
//         count the elements of each list; publish the counts                            LOOK_BACK
//         rank each element within its list: a scan over the masks' bit counts
//         order the tile in local memory: list by list, elements or else positions
//         before = exclusive prefixes of the counts:
//             LOOK_BACK     decoupled look-back; stable partitions first run select_totals, to know where list 1 starts
//             UNORDERED     an atomic counter
//             otherwise     select_counts and select_spine, the launches before select_tiles
//         write each list contiguously from its output offset on
//
// Sources: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016; CUB's DeviceSelect
// and DevicePartition.
#include "lib/select.cl"
#include "lib/select_finish.cl"
#include "lib/aside.cl"
#define IN_PARTS 1
#include "lib/ticket.cl"
#include "lib/ended.cl"

// SHUFFLES: lanes exchange values by shuffles, where all kernels have one known sub-group width. Other compilers may
// choose a width for each kernel.
#define SHUFFLES (SG_BACKEND == SG_PTX || SG_BACKEND == SG_AMDGCN)
// Private arrays are in registers only if the loops over them are unrolled. Without SHUFFLES unrolling gains nothing,
// and compiling takes longer.
#if SHUFFLES
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

// Counts of several rows share a word. With PACK 4, a row has at most 4 * 32 elements in a sub-group. With PACK 2, it
// has at most 16 * WG elements in a work-group.
#define PACK (SG_BACKEND == SG_PTX && VEC <= 4 ? 4 : 2)
#define FIELD (32 / PACK)
#define COUNT_OF(words, k) ((words)[(k) / PACK] >> (k) % PACK * FIELD & ((1u << FIELD) - 1))
#define ROW_WORDS ((ROWS + PACK - 1) / PACK)
#define WORDS (MASKS * ROW_WORDS)
// Words of local memory to exchange counts: one for each row of each sub-group with shuffles, else two copies of all
// words.
#define EXCHANGE (SHUFFLES ? MASKS * ROWS * WG / 32 : 2 * WORDS * WG)
// Words from which row_rank() finds the ranks of a work-item's elements.
#define RANKS (SHUFFLES ? WORDS + MASKS : MASKS * ROWS)
// Each row of each sub-group has a count. LANE_ROWS: how many of these counts one lane adds up.
#define LANE_ROWS(sub_groups, lanes) max(ROWS * (sub_groups) / (lanes), 1u)

// A tile in order, and one vector after it that may be read; or the positions of a tile.
#define POSITIONS (VALUES || PLACES || LENGTHS)
#define MOVE_VECS (MOVE ? WG * ROWS + 1 : 0)
#define POSITION_VECS (POSITIONS ? WG * ROWS * VEC / 8 : 0)
#define POOL_VECS (MOVE_VECS > POSITION_VECS ? MOVE_VECS : POSITION_VECS)

// Values that a work-item has in flight.
#define IN_FLIGHT 4

// x[list], from registers.
#define OF_LIST(x, list)                                                                                               \
    (LISTS == 1 ? ((void)(list), (x)[0]) : (list) == 0 ? (x)[0] : LISTS == 2 || (list) == 1 ? (x)[1] : (x)[2])

// Returns the position in the tile of the work-item's vector k.
static inline uint position_of(uint k) { return (k * WG + (uint)get_local_id(0)) * VEC; }

// With one list, no element of a tile moves to a later position, so the tile is put in order where it was loaded. It
// takes local memory instead of registers, and more work-groups fit on a compute unit.
#if MOVE && LISTS == 1 && defined(COPIES_ASIDE) && (defined(LOOK_BACK) || defined(UNORDERED))
#define STAGED 1
typedef __local TV* Held;
#define VEC_OF(raw, k) (raw)[(k) * WG + get_local_id(0)]
// UNROLL_PART: the pragma before the loop over a tile that is not whole.
#define UNROLL_PART ROLLED
#define HELD_IN(pool, registers) ((void)(registers), (Held)(pool))

INLINED void load_vector(Held raw, uint k, __global const T* from)
{
#ifdef ALIGNED
    copy_async_16(&VEC_OF(raw, k), from);
#else
    VEC_OF(raw, k) = load_vec(from);
#endif
}

INLINED void await_tile(void)
{
    await_copies();
    if (HEADS) {
        // Work-items read their neighbours' elements.
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Returns the element before the work-item's vector k, which is at index `i`; at index 0, any element.
INLINED T element_before(__global const T* x, OFFSET_T base, OFFSET_T i, OFFSET_T n, const Held raw, uint k)
{
    const uint position = position_of(k);
    return position > 0 ? ((__local const T*)raw)[position - 1] : x[max(base, (OFFSET_T)1) - 1];
}
#else
#define STAGED 0
typedef TV* Held;
#define VEC_OF(raw, k) (raw)[k]
#define UNROLL_PART UNROLL
#define HELD_IN(pool, registers) (registers)

INLINED void load_vector(Held raw, uint k, __global const T* from) { VEC_OF(raw, k) = load_vec(from); }

INLINED void await_tile(void) {}

INLINED T element_before(__global const T* x, OFFSET_T base, OFFSET_T i, OFFSET_T n, const Held raw, uint k)
{
    return x[max(min(i, n), (OFFSET_T)1) - 1];
}
#endif

// Returns the number of elements of the tile that starts at `base`.
static inline uint tile_length(OFFSET_T base, OFFSET_T n) { return (uint)min((OFFSET_T)TILE, n - base); }

// Loads the work-item's vectors. All work-items call it, in uniform flow.
INLINED void load_tile(__global const T* x, OFFSET_T base, OFFSET_T n, Held raw)
{
    if (n - base >= position_of(ROWS - 1) + VEC) {
        UNROLL
        for (uint k = 0; k < ROWS; k++) {
            load_vector(raw, k, x + base + position_of(k));
        }
    } else {
        UNROLL_PART
        for (uint k = 0; k < ROWS; k++) {
            T run[VEC];
            for (uint j = 0; j < VEC; j++) {
                // The last element again, since a user's function may not accept every value.
                run[j] = x[min(base + position_of(k) + j, n - 1)];
            }
            VEC_OF(raw, k) = VLOAD(0, run);
        }
    }
    await_tile();
}

// Flags the heads of runs in the work-item's vector k, which is at index `i`. Bit j of `valid`: element j exists.
INLINED void flag_heads(
    __global const T* x, OFFSET_T base, OFFSET_T i, OFFSET_T n, const Held raw, uint k, uint valid, uint* mask)
{
    T run[VEC];
    VSTORE(VEC_OF(raw, k), 0, run);
    // Bit j: element j equals the one before it.
    uint continues = 0;
    const T before = element_before(x, base, i, n, raw, k);
    if (i > 0 && equal(before, run[0])) {
        continues = 1;
    }
    UNROLL
    for (uint j = 1; j < VEC; j++) {
        continues |= equal(run[j - 1], run[j]) ? 1u << j : 0;
    }
    if (NON_TRIVIAL) {
        const T after = x[i < n && n - i > VEC ? i + VEC : n - 1];
        if (i < n && n - i > VEC && equal(run[VEC - 1], after)) {
            continues |= 1u << VEC;
        }
        continues &= valid | (i < n && n - i > VEC ? 1u << VEC : 0);
        mask[k] = ~continues & (continues >> 1) & valid;
        mask[ROWS + k] = continues & ~(continues >> 1) & valid;
    } else {
        mask[k] = ~continues & valid;
    }
}

// Flags the elements of the work-item's vector k by the predicates.
INLINED void flag_by_predicates(const Held raw, uint k, uint valid, uint* mask CAPTURED_PARAMS)
{
    T run[VEC];
    VSTORE(VEC_OF(raw, k), 0, run);
    uint first = 0;
    UNROLL
    for (uint j = 0; j < VEC; j++) {
        first |= FIRST(run[j]) ? 1u << j : 0;
    }
    mask[k] = first & valid;
    if (CLASSES == 3) {
        uint second = 0;
        UNROLL
        for (uint j = 0; j < VEC; j++) {
            second |= SECOND(run[j]) ? 1u << j : 0;
        }
        mask[ROWS + k] = second & ~first & valid;
    }
}

// Sets bit j of mask[m * ROWS + k] if element j of the work-item's vector k goes to list m.
INLINED void flag_tile(__global const T* x, OFFSET_T base, OFFSET_T n, const Held raw, uint* mask CAPTURED_PARAMS)
{
    UNROLL
    for (uint k = 0; k < ROWS; k++) {
        const OFFSET_T i = base + position_of(k);
        const uint valid = i >= n ? 0 : n - i >= VEC ? (1u << VEC) - 1 : (1u << (uint)(n - i)) - 1;
        if (HEADS) {
            flag_heads(x, base, i, n, raw, k, valid, mask);
        } else {
            flag_by_predicates(raw, k, valid, mask CAPTURED_ARGS);
        }
    }
}

// Makes `sum` the inclusive scan of its words over the sub-group.
SG_INLINE void scan_lanes(uint* sum, uint words, __local uint* sg_scratch)
{
    UNROLL
    for (uint d = 1; d < sg_size(); d *= 2) {
        UNROLL
        for (uint w = 0; w < words; w++) {
            const uint other = sg_shuffle_up_u32(sum[w], d, sg_scratch);
            sum[w] += sg_lane() >= d ? other : 0;
        }
    }
}

// Leaves in `rank` the exclusive prefixes of the lane's counts in its sub-group. Then comes a word for each mask: how
// many elements precede one row of one sub-group. Row k of sub-group g has number k * sub_groups + g. The row of lane l
// has number l * LANE_ROWS + sub_group % LANE_ROWS.
INLINED void rank_by_shuffles(
    const uint* word, uint* rank, uint* count, __local uint* exchange, __local uint* sg_scratch)
{
    const uint item = get_local_id(0), lanes = sg_size(), lane = sg_lane(), sub_group = item / lanes,
               sub_groups = WG / lanes;
    uint sum[WORDS];
    UNROLL
    for (uint w = 0; w < WORDS; w++) {
        sum[w] = word[w];
    }
    scan_lanes(sum, WORDS, sg_scratch);
    if (lane == lanes - 1) {
        UNROLL
        for (uint k = 0; k < MASKS * ROWS; k++) {
            exchange[k * sub_groups + sub_group] = COUNT_OF(sum + k / ROWS * ROW_WORDS, k % ROWS);
        }
    }
    UNROLL
    for (uint w = 0; w < WORDS; w++) {
        rank[w] = sum[w] - word[w];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint share = LANE_ROWS(sub_groups, lanes);
    UNROLL
    for (uint m = 0; m < MASKS; m++) {
        // `before`: the part of `own` that precedes the sub-group's row.
        uint own = 0, before = 0;
        for (uint j = 0; j < share; j++) {
            const uint at = lane * share + j, found = at < ROWS * sub_groups ? exchange[m * ROWS * sub_groups + at] : 0;
            before += j < sub_group % share ? found : 0;
            own += found;
        }
        uint up_to = own;
        scan_lanes(&up_to, 1, sg_scratch);
        count[m] = sg_shuffle_u32(up_to, lanes - 1, sg_scratch);
        rank[WORDS + m] = up_to - own + before;
    }
}

// Leaves the ranks of the work-item's vectors in `rank`. It scans the words over the work-group, with two copies in
// local memory.
INLINED void rank_by_local_memory(const uint* word, uint* rank, uint* count, __local uint* exchange)
{
    const uint item = get_local_id(0);
    uint sum[WORDS], from = 0;
    for (uint w = 0; w < WORDS; w++) {
        sum[w] = word[w];
        exchange[w * WG + item] = word[w];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < WG; d *= 2) {
        for (uint w = 0; w < WORDS; w++) {
            sum[w] += item >= d ? exchange[(from + w) * WG + item - d] : 0;
            exchange[(WORDS - from + w) * WG + item] = sum[w];
        }
        from = WORDS - from;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint m = 0; m < MASKS; m++) {
        uint rows = 0, all[ROW_WORDS];
        for (uint w = 0; w < ROW_WORDS; w++) {
            all[w] = exchange[(from + m * ROW_WORDS + w) * WG + WG - 1];
        }
        for (uint k = 0; k < ROWS; k++) {
            const uint w = m * ROW_WORDS, own = COUNT_OF(word + w, k);
            rank[m * ROWS + k] = rows + COUNT_OF(sum + w, k) - own;
            rows += COUNT_OF(all, k);
        }
        count[m] = rows;
    }
}

// Fills `rank` for row_rank(), and counts the elements of each counted list. All work-items call it, in uniform flow;
// `exchange` has EXCHANGE words, which are free after the next barrier.
INLINED void rank_tile(const uint* mask, uint* rank, uint* count, __local uint* exchange, __local uint* sg_scratch)
{
    uint word[WORDS];
    UNROLL
    for (uint w = 0; w < WORDS; w++) {
        word[w] = 0;
    }
    UNROLL
    for (uint k = 0; k < MASKS * ROWS; k++) {
        word[k / ROWS * ROW_WORDS + k % ROWS / PACK] |= (uint)popcount(mask[k]) << k % ROWS % PACK * FIELD;
    }
    if (SHUFFLES) {
        rank_by_shuffles(word, rank, count, exchange, sg_scratch);
    } else {
        rank_by_local_memory(word, rank, count, exchange);
    }
}

// Returns how many elements of list m precede the work-item's vector k in the tile. All work-items call it, in uniform
// flow.
SG_INLINE uint row_rank(const uint* rank, uint m, uint k, __local uint* sg_scratch)
{
    if (SHUFFLES) {
        const uint lanes = sg_size(), sub_groups = WG / lanes, sub_group = (uint)get_local_id(0) / lanes;
        const uint rows =
            sg_shuffle_u32(rank[WORDS + m], (k * sub_groups + sub_group) / LANE_ROWS(sub_groups, lanes), sg_scratch);
        return rows + COUNT_OF(rank + m * ROW_WORDS, k);
    }
    return rank[m * ROWS + k];
}

// Returns the list of element j of the work-item's vector k, or LISTS; its rank in the list goes to `rank`. `before[m]`
// elements of list m precede the vector. The tile has `length` elements.
static inline uint find_list(const uint* mask, const uint* before, uint k, uint j, uint length, uint* rank)
{
    const uint bit = 1u << j, first = before[0] + (uint)popcount(mask[k] & (bit - 1));
    uint list = LISTS, second = 0, found = first;
    if (mask[k] & bit) {
        list = 0;
    }
    if (MASKS == 2) {
        second = before[1] + (uint)popcount(mask[ROWS + k] & (bit - 1));
        if (mask[ROWS + k] & bit) {
            list = 1;
            found = second;
        }
    }
    // With CLASSES > 1 each element is in one list: the last list has the elements that the others leave.
    if (CLASSES > 1) {
        const uint position = position_of(k) + j;
        if (list == LISTS && position < length) {
            list = CLASSES - 1;
            found = position - first - second;
        }
    }
    *rank = found;
    return list;
}

// Finds where each list of a tile in order starts in local memory.
static inline void list_starts(const uint* count, uint* start)
{
    start[0] = 0;
    UNROLL
    for (uint c = 1; c < LISTS; c++) {
        start[c] = start[c - 1] + count[c - 1];
    }
}

// Counts the last list: the elements that the others leave.
static inline void count_rest(uint* count, uint length)
{
    if (CLASSES == 2) {
        count[1] = length - count[0];
    } else if (CLASSES == 3) {
        count[2] = length - count[0] - count[1];
    }
}

// Lanes whose vectors start in the same bank of local memory start with different words, or halves, of their vectors.
SG_INLINE uint first_word(void) { return !SHUFFLES ? 0 : T_BYTES == 8 ? sg_lane() / 8 % 2 : sg_lane() / 8 % 4; }

// Element j of the rotated vector is element j ^ (word * WORD_ELEMENTS) of `own`.
#define WORD_ELEMENTS (T_BYTES == 8 ? 1 : 4 / T_BYTES)
static inline TV rotate_vector(TV own, uint word)
{
    uint4 words = as_uint4(own);
    if (T_BYTES == 8) {
        words = word ? words.zwxy : words;
    } else {
        words = word & 1 ? words.yxwz : words;
        words = word & 2 ? words.zwxy : words;
    }
    return CAT(as_, TV)(words);
}

// Puts the elements of a tile of `length` in order. All work-items call it, in uniform flow, after a barrier that
// follows the last use of `pool`.
INLINED void order_elements(
    uint length, const Held raw, const uint* mask, const uint* rank, const uint* count, __local uint4* pool,
    __local uint* sg_scratch)
{
    __local T* ordered = (__local T*)pool;
    uint start[LISTS];
    list_starts(count, start);
    const uint word = first_word();
    UNROLL
    for (uint k = 0; k < ROWS; k++) {
        const TV own = VEC_OF(raw, k);
        T run[VEC];
        VSTORE(SHUFFLES ? rotate_vector(own, word) : own, 0, run);
        uint before[MASKS];
        UNROLL
        for (uint m = 0; m < MASKS; m++) {
            before[m] = row_rank(rank, m, k, sg_scratch);
        }
        if (STAGED) {
            // All work-items have read this row; its elements move to no later position.
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        UNROLL
        for (uint j = 0; j < VEC; j++) {
            uint own_rank;
            const uint list = find_list(mask, before, k, j ^ (word * WORD_ELEMENTS), length, &own_rank);
            if (REVERSED) {
                own_rank = list == 1 ? count[1] - 1 - own_rank : own_rank;
            }
            if (list < LISTS) {
                ordered[OF_LIST(start, list) + own_rank] = run[j];
            }
        }
    }
}

// Puts the positions of the elements of a tile in order, likewise.
INLINED void order_positions(
    uint length, const uint* mask, const uint* rank, const uint* count, __local uint4* pool, __local uint* sg_scratch)
{
    __local ushort* positions = (__local ushort*)pool;
    uint start[LISTS];
    list_starts(count, start);
    UNROLL
    for (uint k = 0; k < ROWS; k++) {
        uint before[MASKS];
        UNROLL
        for (uint m = 0; m < MASKS; m++) {
            before[m] = row_rank(rank, m, k, sg_scratch);
        }
        UNROLL
        for (uint j = 0; j < VEC; j++) {
            uint own_rank;
            const uint list = find_list(mask, before, k, j, length, &own_rank);
            if (REVERSED) {
                own_rank = list == 1 ? count[1] - 1 - own_rank : own_rank;
            }
            if (list < LISTS) {
                positions[OF_LIST(start, list) + own_rank] = (ushort)(position_of(k) + j);
            }
        }
    }
}

// Puts a tile in order: its elements, or else their positions.
INLINED void order_tile(
    uint length, const Held raw, const uint* mask, const uint* rank, const uint* count, __local uint4* pool,
    __local uint* sg_scratch)
{
    if (MOVE) {
        order_elements(length, raw, mask, rank, count, pool, sg_scratch);
    } else {
        order_positions(length, mask, rank, count, pool, sg_scratch);
    }
}

// Copies ordered[start .. start + count) to out[at .. at + count). All work-items call it.
INLINED void write_list(__local const T* ordered, uint start, uint count, __global T* out_base, ulong at)
{
    __global T* out = out_base + at;
    if (T_BYTES >= 4) {
        for (uint i = get_local_id(0); i < count; i += WG) {
            out[i] = ordered[start + i];
        }
        return;
    }
    // By words of the output, which may start at any byte of the local words.
    const uint in_word = T_BYTES < 4 ? 4 / T_BYTES : 1, lead = (uint)(at % in_word), end = lead + count;
    __local const uint* words = (__local const uint*)ordered;
    for (uint i = (uint)get_local_id(0) * in_word; i < end; i += WG * in_word) {
        if (i >= lead && end - i >= in_word) {
            const uint byte = (start + i - lead) * T_BYTES, shift = byte % 4 * 8;
            const ulong both = words[byte / 4] | (ulong)words[byte / 4 + 1] << 32;
            *(__global uint*)(out - lead + i) = (uint)(both >> shift);
        } else {
            for (uint j = max(i, lead); j < min(i + in_word, end); j++) {
                out[j - lead] = ordered[start + j - lead];
            }
        }
    }
}

INLINED void write_elements(
    const uint* start, const uint* count, const ulong* at, __local const uint4* pool, const Outputs* outputs)
{
    UNROLL
    for (uint c = 0; c < LISTS; c++) {
        const ulong to = REVERSED && c == 1 ? at[c] - count[c] : at[c];
        const uint written = fitting(to, count[c], outputs->elements_room);
        write_list((__local const T*)pool, start[c], written, outputs->elements, outputs->elements_offset + to);
    }
}

INLINED void write_values(
    OFFSET_T base, const uint* start, const uint* count, const ulong* at, __local const ushort* positions,
    const Outputs* outputs)
{
    const uint units = (start[LISTS - 1] + count[LISTS - 1]) * VALUE_UNITS;
    __global const VALUE* values = outputs->values + outputs->values_offset + (ulong)base * VALUE_UNITS;
    __global VALUE* out = outputs->values_out + outputs->values_out_offset;
    const ulong room = outputs->values_room;
    for (uint q = get_local_id(0); q < units; q += IN_FLIGHT * WG) {
        VALUE held[IN_FLIGHT];
        UNROLL
        for (uint h = 0; h < IN_FLIGHT; h++) {
            const uint unit = min(q + h * WG, units - 1);
            held[h] = values[positions[unit / VALUE_UNITS] * VALUE_UNITS + unit % VALUE_UNITS];
        }
        UNROLL
        for (uint h = 0; h < IN_FLIGHT; h++) {
            const uint unit = q + h * WG, e = unit / VALUE_UNITS;
            uint list = 0;
            UNROLL
            for (uint c = 1; c < LISTS; c++) {
                list += e >= start[c];
            }
            const ulong first = OF_LIST(at, list) - (REVERSED && list == 1 ? count[1] : 0);
            const ulong to = first + (e - OF_LIST(start, list));
            if (unit < units && to < room) {
                out[to * VALUE_UNITS + unit % VALUE_UNITS] = held[h];
            }
        }
    }
}

// Writes the indices of the `count` elements at `positions`.
INLINED void write_indices(
    OFFSET_T base, __local const ushort* positions, uint count, ulong at, __global PLACE* out_base, ulong out_offset,
    ulong room)
{
    const uint written = fitting(at, count, room);
    __global PLACE* out = out_base + out_offset + at;
    for (uint q = get_local_id(0); q < written; q += WG) {
        out[q] = (PLACE)(base + positions[q]);
    }
}

// Writes the lengths of the runs that begin and end in the tile, and the tile's record.
INLINED void write_lengths(
    OFFSET_T base, OFFSET_T tile, __local const ushort* positions, uint count, ulong at, const Outputs* outputs)
{
    __global PLACE* out = outputs->lengths + outputs->lengths_offset + at;
    const uint written = fitting(at, count == 0 ? 0 : count - 1, outputs->lengths_room);
    for (uint q = get_local_id(0); q < written; q += WG) {
        out[q] = (PLACE)(positions[q + 1] - positions[q]);
    }
    if (get_local_id(0) == 0) {
        __global ulong* record = RECORD(outputs->records + outputs->records_at, tile);
        record[0] = at + count;
        if (count > 0) {
            record[1] = (ulong)base + positions[0];
            record[2] = (ulong)base + positions[count - 1];
        }
    }
}

// Writes the outputs of a tile in order; `at[c]` is the output offset of list c. All work-items call it, in uniform
// flow, after a barrier; it ends with one.
INLINED void write_tile(
    OFFSET_T base, OFFSET_T n, OFFSET_T tile, const uint* mask, const uint* rank, const uint* count, const ulong* at,
    __local uint4* pool, __local uint* sg_scratch, const Outputs* outputs)
{
    uint start[LISTS];
    list_starts(count, start);
    if (MOVE) {
        write_elements(start, count, at, pool, outputs);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (POSITIONS) {
        __local const ushort* positions = (__local const ushort*)pool;
        if (MOVE) {
            order_positions(tile_length(base, n), mask, rank, count, pool, sg_scratch);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (VALUES) {
            write_values(base, start, count, at, positions, outputs);
        }
        if (PLACES) {
            write_indices(
                base, positions, count[0], at[0], outputs->indices, outputs->indices_offset, outputs->indices_room);
        }
        if (NON_TRIVIAL) {
            write_indices(
                base, positions + count[0], count[1], at[1], outputs->lengths, outputs->lengths_offset,
                outputs->lengths_room);
        }
        if (RECORDS) {
            write_lengths(base, tile, positions, count[0], at[0], outputs);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#ifdef LENGTH_T
// If n is 0, no tile stores the counts, so the first work-group stores zeros.
static inline void store_no_counts(__global ulong* count, const OFFSET_T n)
{
    if (n == 0 && get_group_id(0) == 0 && get_local_id(0) < COUNTED) {
        count[get_local_id(0)] = 0;
    }
}
#endif

#ifdef LOOK_BACK

// Adds the number of elements of each counted list to `count`, which is 0. With ONE_PASS and if `ends` is not 0,
// work-groups add to the words of `ended` from byte COUNTERS_AT on. These are 0 before and after the launch. The
// work-group that finishes last moves the sums to `count`.
#ifdef ONE_PASS
#define ENDING_PARAMS , const uint ends ENDED_PARAM
#define ENDING_ARGS ends, ended
#else
#define ONE_PASS 0
#define COUNTERS_AT 0
#define ENDING_PARAMS
#define ENDING_ARGS 0, 0
#endif

#if NEEDS_ALL
INLINED void add_counts(
    const uint* own, __global ulong* counts, uint ends, volatile __global uint* ended, __local uint* sums,
    __local uint* last)
{
    const uint item = get_local_id(0);
    volatile __global ulong* totals = ends ? (volatile __global ulong*)(ended + COUNTERS_AT / 4) : counts;
    if (item < COUNTED) {
        sums[item] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint m = 0; m < COUNTED; m++) {
        atomic_add(sums + m, own[m]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < COUNTED) {
        atom_add(totals + item, (ulong)sums[item]);
    }
    if (ONE_PASS) {
        if (ends && ends_last(ended, get_num_groups(0), last) && item < COUNTED) {
            counts[item] = atom_xchg(totals + item, 0UL);
        }
    }
}

KERNEL SG_KERNEL void select_totals(
    INPUT_PARAMS, __global ulong* count_base, const ulong count_offset, const OFFSET_T tiles ENDING_PARAMS)
{
    __local uint sums[COUNTED], last;
    TAKE_LENGTH
    __global const T* x = in_base + in_offset;
    uint own[COUNTED];
    for (uint m = 0; m < COUNTED; m++) {
        own[m] = 0;
    }
    for (OFFSET_T tile = get_group_id(0); tile < OWN_TILES; tile += get_num_groups(0)) {
        TV raw[ROWS];
        uint mask[MASKS * ROWS];
        load_tile(x, tile * TILE, n, raw);
        flag_tile(x, tile * TILE, n, raw, mask CAPTURED_ARGS);
        UNROLL
        for (uint k = 0; k < MASKS * ROWS; k++) {
            own[k / ROWS] += (uint)popcount(mask[k]);
        }
    }
    add_counts(own, count_base + count_offset, ENDING_ARGS, sums, &last);
}
#endif

#define LOOK_CONTEXT __global const T *x, const OFFSET_T n CAPTURED_PARAMS
#define LOOK_PASS x, n CAPTURED_ARGS
#define LOOK_TURNS
#include "lib/lookback.cl"

// Recomputes a tile's count, if its status word is still invalid after the last poll.
static __attribute__((noinline)) ulong look_missing(LOOK_CONTEXT, OFFSET_T tile, uint slot)
{
    const OFFSET_T first = tile * TILE, end = first + min((OFFSET_T)TILE, n - first);
    ulong count = 0;
    ROLLED
    for (OFFSET_T i = first; i < end; i++) {
        count += list_of(x, i, n CAPTURED_ARGS) == slot;
    }
    return count;
}

// Counts the elements of each counted list in each sub-group. Counting takes less time than ranking, and other
// work-groups wait for the counts. H200, 10 % of 2^28 u32 selected 421 -> 399 us, partitioned 927 -> 893 us. All
// work-items call it, in uniform flow; it ends with a barrier. `sums` has COUNTED words for each sub-group.
SG_INLINE void count_sub_groups(const uint* mask, __local uint* sums, __local uint* sg_scratch)
{
    const uint lanes = sg_size();
    UNROLL
    for (uint m = 0; m < COUNTED; m++) {
        uint count = 0;
        UNROLL
        for (uint k = 0; k < ROWS; k++) {
            count += (uint)popcount(mask[m * ROWS + k]);
        }
        UNROLL
        for (uint d = 1; d < lanes; d *= 2) {
            count += sg_shuffle_xor_u32(count, d, sg_scratch);
        }
        if (sg_lane() == 0) {
            sums[m * (WG / lanes) + get_local_id(0) / lanes] = count;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Publishes the tile's own counts: the sums of the sub-groups or, without SHUFFLES, `count`. Work-item 0 publishes
// them; later it publishes the inclusive prefixes, too. One tile has no status words.
//
// The sums and the publish share one branch, which is too long for NVIDIA's compiler to predicate. When the publish had
// a branch of its own, the compiler moved it after the ranks. H200, 50 % of 2^28 u32 partitioned: 658 -> 641 us.
SG_INLINE void publish_counts(
    volatile __global ulong* words, OFFSET_T tile, bool several_tiles, const uint* count, __local const uint* sums,
    uint epoch)
{
    const uint sub_groups = WG / sg_size();
    if (get_local_id(0) == 0) {
        for (uint m = 0; m < COUNTED; m++) {
            uint sum = SHUFFLES ? 0 : count[m];
            for (uint t = 0; SHUFFLES && t < sub_groups; t++) {
                sum += sums[m * sub_groups + t];
            }
            if (several_tiles) {
                publish(words, COUNTED, m, tile, tile == 0 ? STATUS_PREFIX : STATUS_AGGREGATE, sum, epoch);
            }
        }
    }
}

// Leaves the exclusive prefixes of the tile's counts in `preceding`, after a barrier, and publishes the inclusive ones.
INLINED void look_back_lists(
    LOOK_CONTEXT, volatile __global ulong* words, OFFSET_T tile, const uint* count, uint spins, uint epoch,
    __local ulong* preceding, __local uint* sg_scratch)
{
    const uint item = get_local_id(0);
    for (uint m = 0; m < COUNTED; m++) {
        if (item < (SHUFFLES ? sg_size() : 1)) {
            const ulong found = SHUFFLES
                ? look_back_together(LOOK_PASS, words, COUNTED, m, tile, spins, epoch, sg_scratch)
                : look_back(LOOK_PASS, words, COUNTED, m, tile, spins, epoch);
            if (item == 0) {
                if (tile > 0) {
                    publish(words, COUNTED, m, tile, STATUS_PREFIX, found + count[m], epoch);
                }
                preceding[m] = found;
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// With several tiles, `state` has 16 bytes for the atomic tile counter, then a status word of each tile for each
// counted list. All of these words are 0, or of other epochs. If tiles need the counts over the whole input, `count`
// has them.
KERNEL SG_KERNEL void select_look_back(
    INPUT_PARAMS OUTPUT_PARAMS, __global ulong* count_base, const ulong count_offset, __global ulong* state,
    const OFFSET_T tiles, const uint spins, const uint epoch)
{
    __local uint4 pool[POOL_VECS];
    __local uint exchange[EXCHANGE], sg_scratch[SG_SCRATCH_WORDS], taken[1];
    __local uint sums[SHUFFLES ? COUNTED * WG / 32 : 1];
    __local ulong preceding[COUNTED];
    TAKE_LENGTH
    TV registers[STAGED ? 1 : ROWS];
    uint mask[MASKS * ROWS], rank[RANKS], count[3];
    const Held raw = HELD_IN(pool, registers);
    const Outputs outputs = {OUTPUT_ARGS};
    __global const T* x = in_base + in_offset;
    volatile __global ulong* words = state + 2;
    const OFFSET_T tile = take_tile(state, taken, tiles > 1), base = tile * TILE;
#ifdef LENGTH_T
    if (tile >= OWN_TILES) {
        store_no_counts(count_base + count_offset, n);
        return;
    }
#endif

    load_tile(x, base, n, raw);
    flag_tile(x, base, n, raw, mask CAPTURED_ARGS);
    if (SHUFFLES) {
        count_sub_groups(mask, sums, sg_scratch);
    } else {
        rank_tile(mask, rank, count, exchange, sg_scratch);
    }
    publish_counts(words, tile, tiles > 1, count, sums, epoch);
    if (SHUFFLES) {
        rank_tile(mask, rank, count, exchange, sg_scratch);
    }
    count_rest(count, tile_length(base, n));
    order_tile(tile_length(base, n), raw, mask, rank, count, pool, sg_scratch);
    look_back_lists(LOOK_PASS, words, tile, count, spins, epoch, preceding, sg_scratch);

    ulong before[COUNTED], all[COUNTED], at[LISTS];
    for (uint m = 0; m < COUNTED; m++) {
        before[m] = preceding[m];
        all[m] = NEEDS_ALL ? count_base[count_offset + m] : 0;
    }
    output_offsets(x, before, all, base, n, at);
    if (!NEEDS_ALL && get_local_id(0) == 0 && tile == OWN_TILES - 1) {
        store_counts(count_base + count_offset, before, all, count[0]);
    }
    write_tile(base, n, tile, mask, rank, count, at, pool, sg_scratch, &outputs);
}

#elif defined(UNORDERED)

// `count` is 0 before.
KERNEL SG_KERNEL void select_unordered(
    INPUT_PARAMS OUTPUT_PARAMS, __global ulong* count_base, const ulong count_offset, const OFFSET_T tiles,
    const OFFSET_T share)
{
    __local uint4 pool[POOL_VECS];
    __local uint exchange[EXCHANGE], sg_scratch[SG_SCRATCH_WORDS];
    __local ulong preceding[1];
    TAKE_LENGTH
    TV registers[STAGED ? 1 : ROWS];
    uint mask[MASKS * ROWS], rank[RANKS], count[3];
    const Held raw = HELD_IN(pool, registers);
    const Outputs outputs = {OUTPUT_ARGS};
    __global const T* x = in_base + in_offset;
    const OFFSET_T tile = get_group_id(0), base = tile * TILE;
#ifdef LENGTH_T
    if (base >= n) {
        return;
    }
#endif

    load_tile(x, base, n, raw);
    flag_tile(x, base, n, raw, mask CAPTURED_ARGS);
    rank_tile(mask, rank, count, exchange, sg_scratch);
    if (get_local_id(0) == 0) {
        *preceding = atom_add((volatile __global ulong*)(count_base + count_offset), (ulong)count[0]);
    }
    order_tile(tile_length(base, n), raw, mask, rank, count, pool, sg_scratch);
    barrier(CLK_LOCAL_MEM_FENCE);
    ulong at[LISTS];
    at[0] = *preceding;
    write_tile(base, n, tile, mask, rank, count, at, pool, sg_scratch, &outputs);
}

#else

// Stores counts[m * stride + t], how many elements of tile t are in list m.
KERNEL SG_KERNEL void select_counts(
    INPUT_PARAMS, __global ulong* counts, const ulong stride, const OFFSET_T tiles, const OFFSET_T share)
{
    __local uint exchange[EXCHANGE], sg_scratch[SG_SCRATCH_WORDS];
    TAKE_LENGTH
    TV raw[ROWS];
    uint mask[MASKS * ROWS], rank[RANKS], count[3];
    __global const T* x = in_base + in_offset;
#ifdef LENGTH_T
    // The multi-level scan reads a count for each tile of the capacity.
    for (OFFSET_T tile = OWN_TILES + get_global_id(0); tile < tiles; tile += get_global_size(0)) {
        for (uint m = 0; m < COUNTED; m++) {
            counts[m * stride + tile] = 0;
        }
    }
#endif
    for (OFFSET_T tile = get_group_id(0); tile < min(tiles, OWN_TILES); tile += get_num_groups(0)) {
        const OFFSET_T base = tile * TILE;
        load_tile(x, base, n, raw);
        flag_tile(x, base, n, raw, mask CAPTURED_ARGS);
        rank_tile(mask, rank, count, exchange, sg_scratch);
        if (get_local_id(0) == 0) {
            for (uint m = 0; m < COUNTED; m++) {
                counts[m * stride + tile] = count[m];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

KERNEL SG_KERNEL void select_tiles(
    INPUT_PARAMS OUTPUT_PARAMS, __global ulong* count_base, const ulong count_offset, __global const ulong* counts,
    const ulong stride, const OFFSET_T tiles, const OFFSET_T share)
{
    __local uint4 pool[POOL_VECS];
    __local uint exchange[EXCHANGE], sg_scratch[SG_SCRATCH_WORDS];
    TAKE_LENGTH
    TV raw[ROWS];
    uint mask[MASKS * ROWS], rank[RANKS], count[3];
    const Outputs outputs = {OUTPUT_ARGS};
    __global const T* x = in_base + in_offset;
#ifdef LENGTH_T
    store_no_counts(count_base + count_offset, n);
#endif
    for (OFFSET_T tile = get_group_id(0); tile < OWN_TILES; tile += get_num_groups(0)) {
        const OFFSET_T base = tile * TILE;
        load_tile(x, base, n, raw);
        flag_tile(x, base, n, raw, mask CAPTURED_ARGS);
        rank_tile(mask, rank, count, exchange, sg_scratch);
        count_rest(count, tile_length(base, n));
        ulong before[COUNTED], all[COUNTED], at[LISTS];
        load_prefixes(counts, stride, tile, tiles, before, all);
        output_offsets(x, before, all, base, n, at);
        if (get_local_id(0) == 0 && tile == OWN_TILES - 1) {
            store_counts(count_base + count_offset, before, all, count[0]);
        }
        order_tile(tile_length(base, n), raw, mask, rank, count, pool, sg_scratch);
        barrier(CLK_LOCAL_MEM_FENCE);
        write_tile(base, n, tile, mask, rank, count, at, pool, sg_scratch, &outputs);
    }
}

#endif
