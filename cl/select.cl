// Select: some of the elements, side by side and in their order; partitions; the runs of equal neighbours.
//
// Every form marks elements and moves what belongs to them. A mark puts an element into a list, or into none:
//
//     predicates      list 0 if FIRST(x), else 1 if SECOND(x), else the last one, if there are CLASSES > 1 lists
//     HEADS           list 0 if the element differs from the one before it: where a run of equal ones begins
//     NON_TRIVIAL     list 0 where a run of two at least begins, list 1 where it ends
//
// Floats are equal as lib/floats.cl has it, by their bits: all NaN are, and -0 equals +0; so T is an unsigned integer, and
// INFINITY_BITS those of its infinity. What moves is any of
//
//     MOVE            the elements
//     VALUE           values beside them, of VALUE_UNITS units each
//     PLACES          the elements' places, as PLACE
//     LENGTHS         the lengths of the runs, as PLACE
//
// A tile's marks are counted and it is put in order in local memory, while the tiles before it are counted, too; then what
// precedes it in each list is found, and it is written side by side. Nothing is written at or beyond an output's `room`; the
// count is that of all the same.
//
// With REVERSED the second of two lists begins at the output's end and goes backwards, so that nobody needs to know where the
// first one ends.
//
// Launches: counts of tiles, the levels of lib/spine.cl over them, tiles; or with LOOK_BACK one that finds what precedes by
// lib/lookback.cl, before which, with several lists and not REVERSED, one counts them; or with UNORDERED one, whose tiles take
// their places from a counter. The lengths of runs that end in a later tile than they begin need one more. On CPU drivers (WG == 1)
// a tile is the share of a work-group of one item.
//
// Bytes: reads n elements, and once more where there are counts; writes what is moved.
#define A ulong
#define A_BYTES 8
#define A_UNSIGNED ulong
#ifndef T
#define T uint
#define T_BYTES 4
#endif
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"
#include "lib/spine.cl"
#include "lib/aside.cl"
#include "lib/ticket.cl"
#ifdef ONE_PASS
#include "lib/ended.cl"
#endif

#ifndef WG
#define WG 256
#endif
// Vectors of an item in a tile; even.
#ifndef ROWS
#define ROWS 4
#endif
#ifndef CLASSES
#define CLASSES 1
#endif
// The functions come in front of the file; flags have none.
#ifdef PREDICATES
#define FIRST(x) first_kind(widen(x))
#define SECOND(x) second_kind(widen(x))
#else
#define FIRST(x) ((x) != 0)
#define SECOND(x) ((x) != 1)
#endif
#ifdef NON_TRIVIAL
#define HEADS
#endif
#if !defined(VALUE) && !defined(PLACES) && !defined(LENGTHS) && !defined(MOVE)
#define MOVE
#endif
#if defined(VALUE) || defined(PLACES) || defined(LENGTHS)
#define POSITIONS
#endif
#ifndef PLACE
#define PLACE uint
#endif
#ifndef VALUE_UNITS
#define VALUE_UNITS 1
#endif

// Lists that elements go to; masks that tell them; those that are counted over all tiles.
#ifdef NON_TRIVIAL
#define LISTS 2
#define MASKS 2
#define COUNTED 1
#else
#define LISTS CLASSES
#define MASKS (CLASSES == 3 ? 2 : 1)
#define COUNTED MASKS
#endif
#define TILE (WG * ROWS * VEC)
#define AS_VEC CAT(as_, TV)

// NVIDIA's compiler keeps to a limit of registers only where the size of work-groups is open.
#if SG_BACKEND == SG_PTX
#define KERNEL __kernel
#else
#define KERNEL __kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif

#define INPUT_PARAMS __global const T *in_base, const ulong in_offset, const OFFSET_T n
#ifdef MOVE
#define MOVE_PARAMS , __global T *out_base, const ulong out_offset, const ulong out_room
#define MOVE_PASS , out_base, out_offset, out_room
#else
#define MOVE_PARAMS
#define MOVE_PASS
#endif
#ifdef VALUE
#define VALUE_PARAMS                                                                                                   \
    , __global const VALUE *values_base, const ulong values_offset, __global VALUE *values_out_base,                   \
        const ulong values_out_offset, const ulong values_room
#define VALUE_PASS , values_base, values_offset, values_out_base, values_out_offset, values_room
#else
#define VALUE_PARAMS
#define VALUE_PASS
#endif
#ifdef PLACES
#define PLACES_PARAMS , __global PLACE *places_base, const ulong places_offset, const ulong places_room
#define PLACES_PASS , places_base, places_offset, places_room
#else
#define PLACES_PARAMS
#define PLACES_PASS
#endif
// RECORD(tile): the heads of runs up to the tile's end, and the first and the last place of one in it, if there are any.
#define RECORD(tile) (scratch + records_at + 3 * (ulong)(tile))
#ifdef NON_TRIVIAL
#define LENGTHS_PARAMS , __global PLACE *lengths_base, const ulong lengths_offset, const ulong lengths_room
#define LENGTHS_PASS , lengths_base, lengths_offset, lengths_room
#elif defined(LENGTHS)
#define LENGTHS_PARAMS                                                                                                 \
    , __global PLACE *lengths_base, const ulong lengths_offset, const ulong lengths_room, __global ulong *scratch,     \
        const ulong records_at
#define LENGTHS_PASS , lengths_base, lengths_offset, lengths_room, scratch, records_at
#else
#define LENGTHS_PARAMS
#define LENGTHS_PASS
#endif
#define OUTPUT_PARAMS MOVE_PARAMS VALUE_PARAMS PLACES_PARAMS LENGTHS_PARAMS
#define OUTPUT_PASS MOVE_PASS VALUE_PASS PLACES_PASS LENGTHS_PASS

#ifdef HEADS
#define KEY T
#define KEY_BYTES T_BYTES
#include "lib/equal.cl"
#endif

// The list of element i, or LISTS; of any but the first.
static inline uint list_behind(__global const T* x, OFFSET_T i, OFFSET_T n)
{
#ifdef HEADS
    const bool goes_on = equal(x[i - 1], x[i]);
#ifdef NON_TRIVIAL
    const bool lasts = i + 1 < n && equal(x[i], x[i + 1]);
    return goes_on == lasts ? LISTS : goes_on ? 1 : 0;
#else
    return goes_on ? LISTS : 0;
#endif
#elif CLASSES == 3
    const T value = x[i];
    return FIRST(value) ? 0 : SECOND(value) ? 1 : 2;
#else
    return FIRST(x[i]) ? 0 : 1;
#endif
}

// Of any: a run may begin at the first one, and may not end there.
static inline uint list_of(__global const T* x, OFFSET_T i, OFFSET_T n)
{
#ifdef HEADS
    if (i == 0) {
#ifdef NON_TRIVIAL
        return n > 1 && equal(x[0], x[1]) ? 0 : LISTS;
#else
        return 0;
#endif
    }
#endif
    return list_behind(x, i, n);
}

// Whether tiles need to know how many elements each counted list has in all.
#if CLASSES > 1 && !defined(REVERSED)
#define NEEDS_ALL
#endif

// How many of `total` elements from `at` on there is room for.
static inline uint within(ulong at, uint total, ulong room)
{
    return at >= room ? 0 : (uint)min((ulong)total, room - at);
}

// Where the elements of the tile that begins at `base` go in the lists, of which before[m] elements of list m precede it and
// all[m] are there in all. With REVERSED the tile's second list ends there.
static inline void places_of(
    __global const T* x, const ulong* before, const ulong* all, OFFSET_T base, OFFSET_T n, ulong* at)
{
    at[0] = before[0];
#ifdef NON_TRIVIAL
    // A run that began before the tile has ended before it, or ends in it or later.
    at[1] = at[0] - (base > 0 && equal(x[base - 1], x[base]) ? 1 : 0);
#elif defined(REVERSED)
    at[1] = n - (base - before[0]);
#elif CLASSES == 2
    at[1] = all[0] + (base - before[0]);
#elif CLASSES == 3
    at[1] = all[0] + before[1];
    at[2] = all[0] + all[1] + (base - before[0] - before[1]);
#endif
}

// What the spine is of: tiles, and where they need to know it all of them together, which is what precedes one more.
#ifdef NEEDS_ALL
#define THINGS(tiles) ((tiles) + 1)
#else
#define THINGS(tiles) (tiles)
#endif

// What precedes tile `tile`, and where tiles need to know it all there are, from what the spine made of the totals.
static inline void found_of(
    __global const ulong* totals, ulong stride, OFFSET_T tile, OFFSET_T tiles, ulong* before, ulong* all)
{
    for (uint m = 0; m < COUNTED; m++) {
        before[m] = carry_of(totals + m * stride, tile, THINGS(tiles), 0);
#ifdef NEEDS_ALL
        all[m] = carry_of(totals + m * stride, tiles, THINGS(tiles), 0);
#endif
    }
}

// The last tile's part: the counts of all, of which `last` are in that tile's list 0.
static inline void store_counts(__global ulong* count, const ulong* before, const ulong* all, ulong last)
{
#ifdef NEEDS_ALL
    for (uint m = 0; m < COUNTED; m++) {
        count[m] = all[m];
    }
#else
    *count = before[0] + last;
#endif
}

#if WG == 1

// Elements that the item marks before it moves them.
#define BLOCK 1024

// Adds up the lists of the `len` elements from `base` on, and notes where in there their elements are.
static inline void block_lists(__global const T* x, OFFSET_T base, uint len, OFFSET_T n, ushort* positions, uint* total)
{
    for (uint c = 0; c < LISTS; c++) {
        total[c] = 0;
    }
    uint i = 0;
#ifdef HEADS
    // The first element of all by itself, so that the loop does not ask for it.
    if (base == 0) {
        positions[0] = 0;
        total[0] = list_of(x, 0, n) == 0;
        i = 1;
    }
#endif
    IN_EIGHTS
    for (; i < len; i++) {
        // Written in any case, since half of the branches would be guessed wrong.
        const uint list = list_behind(x, base + i, n);
#if CLASSES > 1
        // The last list has what the others leave.
        uint left = i;
        for (uint c = 0; c + 1 < LISTS; c++) {
            positions[c * BLOCK + total[c]] = i;
            left -= total[c];
            total[c] += list == c;
        }
        positions[(LISTS - 1) * BLOCK + left] = i;
#else
        for (uint c = 0; c < LISTS; c++) {
            positions[c * BLOCK + total[c]] = i;
            total[c] += list == c;
        }
#endif
    }
#if CLASSES > 1
    total[LISTS - 1] = len;
    for (uint c = 0; c + 1 < LISTS; c++) {
        total[LISTS - 1] -= total[c];
    }
#endif
}

// `at` moves on, and `last`, the place of the last head of a run, 0 where there is none yet in this tile.
static inline void write_block(
    __global const T* x, OFFSET_T base, OFFSET_T tile, const ushort* positions, const uint* total, ulong* at,
    ulong* last OUTPUT_PARAMS)
{
    for (uint c = 0; c < LISTS; c++) {
        const ushort* mine = positions + c * BLOCK;
#ifdef MOVE
#ifdef REVERSED
        if (c == 1) {
            // There is room for all elements.
            for (uint q = 0; q < total[c]; q++) {
                out_base[out_offset + at[c] - 1 - q] = x[base + mine[q]];
            }
            at[c] -= total[c];
            continue;
        }
#endif
        __global T* out = out_base + out_offset + at[c];
        const uint moved = within(at[c], total[c], out_room);
        IN_EIGHTS
        for (uint q = 0; q < moved; q++) {
            out[q] = x[base + mine[q]];
        }
#endif
#ifdef VALUE
        __global VALUE* values_out = values_out_base + values_out_offset + at[c] * VALUE_UNITS;
        const uint with_values = within(at[c], total[c], values_room);
        for (uint q = 0; q < with_values; q++) {
            for (uint u = 0; u < VALUE_UNITS; u++) {
                values_out[q * VALUE_UNITS + u] =
                    values_base[values_offset + ((ulong)base + mine[q]) * VALUE_UNITS + u];
            }
        }
#endif
#ifdef NON_TRIVIAL
        __global PLACE* places =
            c == 0 ? places_base + places_offset + at[0] : lengths_base + lengths_offset + at[1];
        const uint placed = within(at[c], total[c], c == 0 ? places_room : lengths_room);
        for (uint q = 0; q < placed; q++) {
            places[q] = (PLACE)(base + mine[q]);
        }
#else
#ifdef PLACES
        __global PLACE* places = places_base + places_offset + at[c];
        const uint placed = within(at[c], total[c], places_room);
        for (uint q = 0; q < placed; q++) {
            places[q] = (PLACE)(base + mine[q]);
        }
#endif
#ifdef LENGTHS
        __global PLACE* lengths = lengths_base + lengths_offset;
        if (total[0] > 0) {
            if (*last == 0) {
                RECORD(tile)[1] = (ulong)base + mine[0];
            } else if (at[0] - 1 < lengths_room) {
                lengths[at[0] - 1] = (PLACE)((ulong)base + mine[0] + 1 - *last);
            }
            const uint measured = within(at[0], total[0] - 1, lengths_room);
            for (uint q = 0; q < measured; q++) {
                lengths[at[0] + q] = (PLACE)(mine[q + 1] - mine[q]);
            }
            *last = (ulong)base + mine[total[0] - 1] + 1;
        }
#endif
#endif
        at[c] += total[c];
    }
}

#ifdef UNORDERED

KERNEL void select_unordered(
    INPUT_PARAMS OUTPUT_PARAMS, __global ulong* count_base, const ulong count_offset, const OFFSET_T tiles,
    const OFFSET_T share)
{
    __global const T* x = in_base + in_offset;
    const OFFSET_T first = get_group_id(0) * share, end = first + min(share, n - first);
    for (OFFSET_T base = first; base < end; base += BLOCK) {
        ushort positions[LISTS * BLOCK];
        uint total[LISTS];
        ulong at[LISTS], last = 0;
        block_lists(x, base, min((OFFSET_T)BLOCK, end - base), n, positions, total);
        at[0] = atom_add((volatile __global ulong*)(count_base + count_offset), (ulong)total[0]);
        write_block(x, base, 0, positions, total, at, &last OUTPUT_PASS);
    }
}

#else

// totals[m * stride + t] is what tile t has of list m.
KERNEL void select_counts(
    INPUT_PARAMS, __global ulong* totals, const ulong stride, const OFFSET_T tiles, const OFFSET_T share)
{
    __global const T* x = in_base + in_offset;
    const OFFSET_T tile = get_group_id(0), first = tile * share, end = first + min(share, n - first);
    OFFSET_T count[COUNTED];
    for (uint m = 0; m < COUNTED; m++) {
        count[m] = 0;
    }
    OFFSET_T i = first;
#ifdef HEADS
    if (first == 0) {
        count[0] = list_of(x, 0, n) == 0;
        i = 1;
    }
#endif
    IN_VECTORS
    for (; i < end; i++) {
        const uint list = list_behind(x, i, n);
        for (uint m = 0; m < COUNTED; m++) {
            count[m] += list == m;
        }
    }
    for (uint m = 0; m < COUNTED; m++) {
        totals[m * stride + tile] = count[m];
    }
}

KERNEL void select_tiles(
    INPUT_PARAMS OUTPUT_PARAMS, __global ulong* count_base, const ulong count_offset, __global const ulong* totals,
    const ulong stride, const OFFSET_T tiles, const OFFSET_T share)
{
    __global const T* x = in_base + in_offset;
    const OFFSET_T tile = get_group_id(0), first = tile * share, end = first + min(share, n - first);
    ulong before[COUNTED], all[COUNTED], at[LISTS], last = 0;
    found_of(totals, stride, tile, tiles, before, all);
    places_of(x, before, all, first, n, at);
    for (OFFSET_T base = first; base < end; base += BLOCK) {
        ushort positions[LISTS * BLOCK];
        uint total[LISTS];
        block_lists(x, base, min((OFFSET_T)BLOCK, end - base), n, positions, total);
        write_block(x, base, tile, positions, total, at, &last OUTPUT_PASS);
    }
#if defined(LENGTHS) && !defined(NON_TRIVIAL)
    RECORD(tile)[0] = at[0];
    RECORD(tile)[2] = last - 1;
#endif
    if (tile == tiles - 1) {
        store_counts(count_base + count_offset, before, all, at[0] - before[0]);
    }
}

#endif

#else

// Items exchange values by shuffles where sub-groups have one width; other compilers may choose another for each kernel.
#if SG_BACKEND == SG_PTX || SG_BACKEND == SG_AMDGCN
#define SHUFFLES
#endif

// Private arrays lie in registers where the loops over them are unrolled. CPU drivers would only take longer to compile.
#ifdef SHUFFLES
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

// One list is put in order where the tile lies: of what is there, nothing goes to a higher place. So it takes local memory
// instead of registers, and more work-groups fit a multiprocessor.
#if defined(MOVE) && LISTS == 1 && defined(COPIES_ASIDE) && (defined(LOOK_BACK) || defined(UNORDERED))
#define STAGED
typedef __local TV* Held;
#define VEC_OF(raw, k) (raw)[(k) * WG + get_local_id(0)]
#else
typedef TV* Held;
#define VEC_OF(raw, k) (raw)[k]
#endif

// Counts of some rows of vectors share a word. A row has no more than 128 elements of 4 bytes in 32 lanes, and no more than
// 16 WG in a work-group.
#if SG_BACKEND == SG_PTX && VEC <= 4
#define PACK 4
#else
#define PACK 2
#endif
#define FIELD (32 / PACK)
#define COUNT_OF(words, k) ((words)[(k) / PACK] >> (k) % PACK * FIELD & ((1u << FIELD) - 1))
#define ROW_WORDS ((ROWS + PACK - 1) / PACK)
#define WORDS (MASKS * ROW_WORDS)
// Words of local memory for exchanging them, or one for each row of each sub-group, where items have the others by shuffles.
#ifdef SHUFFLES
#define EXCHANGE (MASKS * ROWS * WG / 32)
#else
#define EXCHANGE (2 * WORDS * WG)
#endif
// What tells the ranks of an item's elements: row_rank().
#ifdef SHUFFLES
#define RANKS (WORDS + MASKS)
#else
#define RANKS (MASKS * ROWS)
#endif
// Rows of sub-groups that a lane has: as many, or so many sub-groups' of one row.
#define LANE_ROWS(teams, lanes) max(ROWS * (teams) / (lanes), 1u)
// 16-byte words of a tile in order, and one behind it that may be read; or of its positions.
#ifdef MOVE
#define MOVE_WORDS (WG * ROWS + 1)
#else
#define MOVE_WORDS 0
#endif
#ifdef POSITIONS
#define POSITION_WORDS (WG * ROWS * VEC / 8)
#else
#define POSITION_WORDS 0
#endif
#if MOVE_WORDS > POSITION_WORDS
#define POOL_WORDS MOVE_WORDS
#else
#define POOL_WORDS POSITION_WORDS
#endif

// The place of the item's vector k in its tile.
static inline uint place_of(uint k) { return (k * WG + (uint)get_local_id(0)) * VEC; }

// All items call it, in uniform flow.
INLINED void load_tile(__global const T* x, OFFSET_T base, OFFSET_T n, Held raw)
{
    if (n - base >= place_of(ROWS - 1) + VEC) {
        UNROLL
        for (uint k = 0; k < ROWS; k++) {
#if defined(STAGED) && defined(ALIGNED)
            copy_aside(&VEC_OF(raw, k), x + base + place_of(k));
#else
            VEC_OF(raw, k) = load_vec(x + base + place_of(k));
#endif
        }
    } else {
        UNROLL
        for (uint k = 0; k < ROWS; k++) {
            T run[VEC];
            for (uint j = 0; j < VEC; j++) {
                // A function of the caller's may not take any value.
                run[j] = x[min(base + place_of(k) + j, n - 1)];
            }
            VEC_OF(raw, k) = VLOAD(0, run);
        }
    }
#ifdef STAGED
    await_copies();
#ifdef HEADS
    // Items look at their neighbours' elements.
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
#endif
}

// Bit j of mask[m * ROWS + k] tells whether element j of the item's vector k goes to list m.
static inline void marks(__global const T* x, OFFSET_T base, OFFSET_T n, const Held raw, uint* mask)
{
    UNROLL
    for (uint k = 0; k < ROWS; k++) {
        const OFFSET_T i = base + place_of(k);
        // Of the vector's elements those that there are.
        const uint there = i >= n ? 0 : n - i >= VEC ? (1u << VEC) - 1 : (1u << (uint)(n - i)) - 1;
        T run[VEC];
        VSTORE(VEC_OF(raw, k), 0, run);
#ifdef HEADS
        // Bit j: whether element j equals the one before it.
        uint goes_on = 0;
#ifdef STAGED
        const uint place = place_of(k);
        const T before = place > 0 ? ((__local const T*)raw)[place - 1] : x[max(base, (OFFSET_T)1) - 1];
#else
        const T before = x[max(min(i, n), (OFFSET_T)1) - 1];
#endif
        if (i > 0 && equal(before, run[0])) {
            goes_on = 1;
        }
        UNROLL
        for (uint j = 1; j < VEC; j++) {
            goes_on |= equal(run[j - 1], run[j]) ? 1u << j : 0;
        }
#ifdef NON_TRIVIAL
        const T after = x[i < n && n - i > VEC ? i + VEC : n - 1];
        if (i < n && n - i > VEC && equal(run[VEC - 1], after)) {
            goes_on |= 1u << VEC;
        }
        goes_on &= there | (i < n && n - i > VEC ? 1u << VEC : 0);
        mask[k] = ~goes_on & (goes_on >> 1) & there;
        mask[ROWS + k] = goes_on & ~(goes_on >> 1) & there;
#else
        mask[k] = ~goes_on & there;
#endif
#else
        uint first = 0;
        UNROLL
        for (uint j = 0; j < VEC; j++) {
            first |= FIRST(run[j]) ? 1u << j : 0;
        }
        mask[k] = first & there;
#if CLASSES == 3
        uint second = 0;
        UNROLL
        for (uint j = 0; j < VEC; j++) {
            second |= SECOND(run[j]) ? 1u << j : 0;
        }
        mask[ROWS + k] = second & ~first & there;
#endif
#endif
    }
}

// Makes `rank`, for row_rank(), and counts the elements of list m: total[m]. All items call it, in uniform flow; `exchange`
// holds EXCHANGE words, which are free after the next barrier.
INLINED void tile_ranks(
    const uint* mask, uint* rank, uint* total, __local uint* exchange, __local uint* sg_scratch)
{
    const uint item = get_local_id(0);
    // Counts, and their sums over the items up to this one.
    uint word[WORDS], sum[WORDS];
    UNROLL
    for (uint w = 0; w < WORDS; w++) {
        word[w] = 0;
    }
    UNROLL
    for (uint k = 0; k < MASKS * ROWS; k++) {
        word[k / ROWS * ROW_WORDS + k % ROWS / PACK] |= (uint)popcount(mask[k]) << k % ROWS % PACK * FIELD;
    }
    UNROLL
    for (uint w = 0; w < WORDS; w++) {
        sum[w] = word[w];
    }
#ifdef SHUFFLES
    const uint lanes = sg_size(), lane = sg_lane(), team = item / lanes, teams = WG / lanes;
    UNROLL
    for (uint d = 1; d < lanes; d *= 2) {
        UNROLL
        for (uint w = 0; w < WORDS; w++) {
            const uint more = sg_shuffle_up_u32(sum[w], d, sg_scratch);
            sum[w] += lane >= d ? more : 0;
        }
    }
    if (lane == lanes - 1) {
        UNROLL
        for (uint k = 0; k < MASKS * ROWS; k++) {
            exchange[k * teams + team] = COUNT_OF(sum + k / ROWS * ROW_WORDS, k % ROWS);
        }
    }
    UNROLL
    for (uint w = 0; w < WORDS; w++) {
        rank[w] = sum[w] - word[w];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Every sub-group adds up all rows of all sub-groups, of which a lane has as many neighbours.
    const uint share = LANE_ROWS(teams, lanes);
    UNROLL
    for (uint m = 0; m < MASKS; m++) {
        uint own = 0, front = 0;
        for (uint j = 0; j < share; j++) {
            const uint at = lane * share + j, count = at < ROWS * teams ? exchange[m * ROWS * teams + at] : 0;
            front += j < team % share ? count : 0;
            own += count;
        }
        uint up_to = own;
        UNROLL
        for (uint d = 1; d < lanes; d *= 2) {
            const uint more = sg_shuffle_up_u32(up_to, d, sg_scratch);
            up_to += lane >= d ? more : 0;
        }
        total[m] = sg_shuffle_u32(up_to, lanes - 1, sg_scratch);
        rank[WORDS + m] = up_to - own + front;
    }
#else
    uint from = 0;
    for (uint w = 0; w < WORDS; w++) {
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
        total[m] = rows;
    }
#endif
}

// How many elements of list m precede those of the item's vector k in the tile. All items call it, in uniform flow.
SG_INLINE uint row_rank(const uint* rank, uint m, uint k, __local uint* sg_scratch)
{
#ifdef SHUFFLES
    const uint lanes = sg_size(), teams = WG / lanes, team = (uint)get_local_id(0) / lanes;
    const uint rows = sg_shuffle_u32(rank[WORDS + m], (k * teams + team) / LANE_ROWS(teams, lanes), sg_scratch);
    return rows + COUNT_OF(rank + m * ROW_WORDS, k);
#else
    return rank[m * ROWS + k];
#endif
}

// The list of element j of the item's vector k, or LISTS; its rank there goes to `place`. `before` are those of the vector. The
// tile has `len` elements.
static inline uint find_list(const uint* mask, const uint* before, uint k, uint j, uint len, uint* place)
{
    const uint bit = 1u << j, first = before[0] + (uint)popcount(mask[k] & (bit - 1));
    uint list = LISTS, there = first;
    if (mask[k] & bit) {
        list = 0;
    }
#if MASKS == 2
    const uint second = before[1] + (uint)popcount(mask[ROWS + k] & (bit - 1));
    if (mask[ROWS + k] & bit) {
        list = 1;
        there = second;
    }
#endif
#if CLASSES > 1
    const uint at = place_of(k) + j;
    if (list == LISTS && at < len) {
        list = CLASSES - 1;
#if MASKS == 2
        there = at - first - second;
#else
        there = at - first;
#endif
    }
#endif
    *place = there;
    return list;
}

// x[list], in registers.
#if LISTS == 1
#define OF_LIST(x, list) ((void)(list), (x)[0])
#elif LISTS == 2
#define OF_LIST(x, list) ((list) == 0 ? (x)[0] : (x)[1])
#else
#define OF_LIST(x, list) ((list) == 0 ? (x)[0] : (list) == 1 ? (x)[1] : (x)[2])
#endif

#ifdef MOVE
// Copies local[start .. start + count) to out[at .. at + count). All items call it.
static inline void write_list(
    __local const T* local_tile, uint start, uint count, __global T* out_base, ulong at)
{
    __global T* out = out_base + at;
#if T_BYTES >= 4
    for (uint i = get_local_id(0); i < count; i += WG) {
        out[i] = local_tile[start + i];
    }
#else
    // By words of the output, which may begin at any byte of the local ones.
    const uint in_word = 4 / T_BYTES, lead = (uint)(at % in_word), end = lead + count;
    __local const uint* words = (__local const uint*)local_tile;
    for (uint i = (uint)get_local_id(0) * in_word; i < end; i += WG * in_word) {
        if (i >= lead && end - i >= in_word) {
            const uint byte = (start + i - lead) * T_BYTES, shift = byte % 4 * 8;
            const ulong both = words[byte / 4] | (ulong)words[byte / 4 + 1] << 32;
            *(__global uint*)(out - lead + i) = (uint)(both >> shift);
        } else {
            for (uint j = max(i, lead); j < min(i + in_word, end); j++) {
                out[j - lead] = local_tile[start + j - lead];
            }
        }
    }
#endif
}
#endif

#ifdef VALUE
// Values that an item has on their way at once.
#define HELD 4
#endif

// Where each list of a tile in order begins in local memory.
static inline void list_starts(const uint* total, uint* start)
{
    start[0] = 0;
    UNROLL
    for (uint c = 1; c < LISTS; c++) {
        start[c] = start[c - 1] + total[c - 1];
    }
}

#ifdef MOVE
// Puts the elements of a tile of `len` in order. All items call it, in uniform flow, after a barrier behind the last use of
// `pool`.
INLINED void order_elements(
    uint len, const Held raw, const uint* mask, const uint* rank, const uint* total, __local uint4* pool,
    __local uint* sg_scratch)
{
    __local T* local_tile = (__local T*)pool;
    uint start[LISTS];
    list_starts(total, start);
    // Lanes whose vectors begin in the same bank of local memory begin with another word of theirs.
#if defined(SHUFFLES) && T_BYTES == 8
    const uint turn = sg_lane() / 8 % 2, flip = turn;
#elif defined(SHUFFLES)
    const uint turn = sg_lane() / 8 % 4, flip = turn * (4 / T_BYTES);
#else
    const uint flip = 0;
#endif
    UNROLL
    for (uint k = 0; k < ROWS; k++) {
        const TV own = VEC_OF(raw, k);
        T run[VEC];
#ifdef SHUFFLES
        uint4 words = as_uint4(own);
#if T_BYTES == 8
        words = turn ? words.zwxy : words;
#else
        words = turn & 1 ? words.yxwz : words;
        words = turn & 2 ? words.zwxy : words;
#endif
        VSTORE(AS_VEC(words), 0, run);
#else
        VSTORE(own, 0, run);
#endif
        uint before[MASKS];
        UNROLL
        for (uint m = 0; m < MASKS; m++) {
            before[m] = row_rank(rank, m, k, sg_scratch);
        }
#ifdef STAGED
        // All have taken theirs of this row, behind which nothing goes.
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        UNROLL
        for (uint j = 0; j < VEC; j++) {
            uint place;
            const uint list = find_list(mask, before, k, j ^ flip, len, &place);
#ifdef REVERSED
            place = list == 1 ? total[1] - 1 - place : place;
#endif
            if (list < LISTS) {
                local_tile[OF_LIST(start, list) + place] = run[j];
            }
        }
    }
}
#endif

#ifdef POSITIONS
// The same of their positions in the tile.
INLINED void order_positions(
    uint len, const uint* mask, const uint* rank, const uint* total, __local uint4* pool, __local uint* sg_scratch)
{
    __local ushort* positions = (__local ushort*)pool;
    uint start[LISTS];
    list_starts(total, start);
    UNROLL
    for (uint k = 0; k < ROWS; k++) {
        uint before[MASKS];
        UNROLL
        for (uint m = 0; m < MASKS; m++) {
            before[m] = row_rank(rank, m, k, sg_scratch);
        }
        UNROLL
        for (uint j = 0; j < VEC; j++) {
            uint place;
            const uint list = find_list(mask, before, k, j, len, &place);
            if (list < LISTS) {
                positions[OF_LIST(start, list) + place] = (ushort)(place_of(k) + j);
            }
        }
    }
}
#endif

// Puts a tile in order, elements or else positions, as above.
INLINED void order_tile(
    uint len, const Held raw, const uint* mask, const uint* rank, const uint* total, __local uint4* pool,
    __local uint* sg_scratch)
{
#ifdef MOVE
    order_elements(len, raw, mask, rank, total, pool, sg_scratch);
#else
    order_positions(len, mask, rank, total, pool, sg_scratch);
#endif
}

// Writes what belongs to the elements of a tile in order; `at` says where those of each list go. All items call it, in uniform
// flow, after a barrier; there is one behind it.
INLINED void write_tile(
    OFFSET_T base, OFFSET_T n, OFFSET_T tile, const uint* mask, const uint* rank, const uint* total, const ulong* at,
    __local uint4* pool, __local uint* sg_scratch OUTPUT_PARAMS)
{
    uint first[LISTS];
    list_starts(total, first);
#ifdef MOVE
    UNROLL
    for (uint c = 0; c < LISTS; c++) {
#ifdef REVERSED
        const ulong start = c == 1 ? at[c] - total[c] : at[c];
#else
        const ulong start = at[c];
#endif
        const uint count = within(start, total[c], out_room);
        write_list((__local const T*)pool, first[c], count, out_base, out_offset + start);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
#ifdef POSITIONS
    const uint item = get_local_id(0);
    __local ushort* positions = (__local ushort*)pool;
#ifdef MOVE
    order_positions((uint)min((OFFSET_T)TILE, n - base), mask, rank, total, pool, sg_scratch);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
#ifdef VALUE
    const uint kept = first[LISTS - 1] + total[LISTS - 1];
    __global const VALUE* values = values_base + values_offset + (ulong)base * VALUE_UNITS;
    __global VALUE* values_out = values_out_base + values_out_offset;
    for (uint q = item; q < kept * VALUE_UNITS; q += HELD * WG) {
        VALUE held[HELD];
        UNROLL
        for (uint h = 0; h < HELD; h++) {
            const uint unit = min(q + h * WG, kept * VALUE_UNITS - 1);
            held[h] = values[positions[unit / VALUE_UNITS] * VALUE_UNITS + unit % VALUE_UNITS];
        }
        UNROLL
        for (uint h = 0; h < HELD; h++) {
            const uint unit = q + h * WG, e = unit / VALUE_UNITS;
            uint list = 0;
            UNROLL
            for (uint c = 1; c < LISTS; c++) {
                list += e >= first[c];
            }
            const ulong to = OF_LIST(at, list) + (e - OF_LIST(first, list));
            if (unit < kept * VALUE_UNITS && to < values_room) {
                values_out[to * VALUE_UNITS + unit % VALUE_UNITS] = held[h];
            }
        }
    }
#endif
#ifdef PLACES
    __global PLACE* places = places_base + places_offset + at[0];
    const uint placed = within(at[0], total[0], places_room);
    for (uint q = item; q < placed; q += WG) {
        places[q] = (PLACE)(base + positions[q]);
    }
#endif
#ifdef NON_TRIVIAL
    __global PLACE* ends = lengths_base + lengths_offset + at[1];
    const uint ended = within(at[1], total[1], lengths_room);
    for (uint q = item; q < ended; q += WG) {
        ends[q] = (PLACE)(base + positions[total[0] + q]);
    }
#elif defined(LENGTHS)
    __global PLACE* lengths = lengths_base + lengths_offset + at[0];
    const uint measured = within(at[0], total[0] == 0 ? 0 : total[0] - 1, lengths_room);
    for (uint q = item; q < measured; q += WG) {
        lengths[q] = (PLACE)(positions[q + 1] - positions[q]);
    }
    if (item == 0) {
        __global ulong* record = RECORD(tile);
        record[0] = at[0] + total[0];
        if (total[0] > 0) {
            record[1] = (ulong)base + positions[0];
            record[2] = (ulong)base + positions[total[0] - 1];
        }
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

// What every kernel has of a tile.
#define TILE_LOCAL                                                                                                     \
    __local uint4 pool[POOL_WORDS];                                                                                    \
    __local uint exchange[EXCHANGE];                                                                                   \
    __local uint sg_scratch[SG_SCRATCH_WORDS];
#ifdef STAGED
#define TILE_RAW const Held raw = (Held)pool;
#else
#define TILE_RAW TV raw[ROWS];
#endif
#define TILE_PRIVATE                                                                                                   \
    TILE_RAW                                                                                                           \
    uint mask[MASKS * ROWS], rank[RANKS], total[3];

// The last list has what the others leave.
static inline void last_total(uint* total, OFFSET_T base, OFFSET_T n)
{
#if CLASSES == 2
    total[1] = (uint)min((OFFSET_T)TILE, n - base) - total[0];
#elif CLASSES == 3
    total[2] = (uint)min((OFFSET_T)TILE, n - base) - total[0] - total[1];
#endif
}

#ifdef LOOK_BACK

#define LOOK_CONTEXT __global const T *x, const OFFSET_T n
#define LOOK_PASS x, n
#define LOOK_TURNS
#include "lib/lookback.cl"

static __attribute__((noinline)) ulong look_missing(LOOK_CONTEXT, OFFSET_T tile, uint slot)
{
    const OFFSET_T first = tile * TILE, end = first + min((OFFSET_T)TILE, n - first);
    ulong count = 0;
    for (OFFSET_T i = first; i < end; i++) {
        count += list_of(x, i, n) == slot;
    }
    return count;
}

#ifdef SHUFFLES
// How many elements of the tile each counted list has, in item 0, by less than the ranks take, since others wait for it. H200, 10 %
// of 2^28 u32 selected 421 -> 399 us, parted 927 -> 893 us. All items call it, in uniform flow; `sums` holds COUNTED for each
// sub-group.
SG_INLINE void tile_counts(const uint* mask, uint* count, __local uint* sums, __local uint* sg_scratch)
{
    const uint item = get_local_id(0), lanes = sg_size(), teams = WG / lanes;
    UNROLL
    for (uint m = 0; m < COUNTED; m++) {
        count[m] = 0;
        UNROLL
        for (uint k = 0; k < ROWS; k++) {
            count[m] += (uint)popcount(mask[m * ROWS + k]);
        }
        UNROLL
        for (uint d = 1; d < lanes; d *= 2) {
            count[m] += sg_shuffle_xor_u32(count[m], d, sg_scratch);
        }
        if (sg_lane() == 0) {
            sums[m * teams + item / lanes] = count[m];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        for (uint m = 0; m < COUNTED; m++) {
            for (uint t = 1; t < teams; t++) {
                count[m] += sums[m * teams + t];
            }
        }
    }
}
#endif

#ifdef NEEDS_ALL
#ifdef ONE_PASS
#define ENDING_PARAMS , const uint ends ENDED_PARAM
#else
#define ENDING_PARAMS
#endif

// Adds how many elements each counted list has to `count`, which is 0; with ONE_PASS, where `ends` is not 0, to words of `ended`
// from COUNTERS_AT on, which are 0 before and after: the group that ends last moves them to `count`.
KERNEL SG_KERNEL void select_totals(
    INPUT_PARAMS, __global ulong* count_base, const ulong count_offset, const OFFSET_T tiles ENDING_PARAMS)
{
    __local uint total[COUNTED];
    __global ulong* counts = count_base + count_offset;
    volatile __global ulong* sums = counts;
#ifdef ONE_PASS
    __local uint last;
    if (ends) {
        sums = (volatile __global ulong*)(ended + COUNTERS_AT / 4);
    }
#endif
    __global const T* x = in_base + in_offset;
    const uint item = get_local_id(0);
    uint own[COUNTED];
    for (uint m = 0; m < COUNTED; m++) {
        own[m] = 0;
    }
    for (OFFSET_T tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        TV raw[ROWS];
        uint mask[MASKS * ROWS];
        load_tile(x, tile * TILE, n, raw);
        marks(x, tile * TILE, n, raw, mask);
        UNROLL
        for (uint k = 0; k < MASKS * ROWS; k++) {
            own[k / ROWS] += (uint)popcount(mask[k]);
        }
    }
    if (item < COUNTED) {
        total[item] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint m = 0; m < COUNTED; m++) {
        atomic_add(total + m, own[m]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < COUNTED) {
        atom_add(sums + item, (ulong)total[item]);
    }
#ifdef ONE_PASS
    if (ends && ends_last(ended, get_num_groups(0), &last) && item < COUNTED) {
        counts[item] = atom_xchg(sums + item, 0UL);
    }
#endif
}
#endif

// Of several tiles, `state` has 16 bytes for the ticket, then a word of each tile for each counted list: all 0, or of other
// turns. Where tiles need to know the counts, they are there.
KERNEL SG_KERNEL void select_look_back(
    INPUT_PARAMS OUTPUT_PARAMS, __global ulong* count_base, const ulong count_offset, __global ulong* state,
    const OFFSET_T tiles, const uint spins, const uint turn)
{
    TILE_LOCAL
    __local ulong preceding[COUNTED];
    __local uint taken[1];
#ifdef SHUFFLES
    __local uint counted[COUNTED * WG / 32];
#endif
    TILE_PRIVATE
    __global const T* x = in_base + in_offset;
    volatile __global ulong* words = state + 2;
    const uint item = get_local_id(0);
    const OFFSET_T tile = TAKE_TILE(state, taken, tiles), base = tile * TILE;
    load_tile(x, base, n, raw);
    marks(x, base, n, raw, mask);
    const bool speaks = tiles > 1 && !silent(tile);
#ifdef SHUFFLES
    tile_counts(mask, total, counted, sg_scratch);
#else
    tile_ranks(mask, rank, total, exchange, sg_scratch);
#endif
    delay(tile, state);
    // The item that publishes them anew later on.
    if (item == 0 && speaks) {
        for (uint m = 0; m < COUNTED; m++) {
            look_publish(words, (ulong)tile * COUNTED + m, tile == 0 ? LOOK_ALL : LOOK_OWN, total[m], turn);
        }
    }
#ifdef SHUFFLES
    tile_ranks(mask, rank, total, exchange, sg_scratch);
#endif
    last_total(total, base, n);
    order_tile((uint)min((OFFSET_T)TILE, n - base), raw, mask, rank, total, pool, sg_scratch);
    for (uint m = 0; m < COUNTED; m++) {
#ifdef SHUFFLES
        if (item < sg_size()) {
            const ulong found = look_back_together(x, n, words, COUNTED, m, tile, spins, turn, sg_scratch);
#else
        if (item == 0) {
            const ulong found = look_back(x, n, words, COUNTED, m, tile, spins, turn);
#endif
            if (item == 0) {
                if (tile > 0 && speaks) {
                    look_publish(words, (ulong)tile * COUNTED + m, LOOK_ALL, found + total[m], turn);
                }
                preceding[m] = found;
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ulong before[COUNTED], all[COUNTED], at[LISTS];
    for (uint m = 0; m < COUNTED; m++) {
        before[m] = preceding[m];
#ifdef NEEDS_ALL
        all[m] = count_base[count_offset + m];
#endif
    }
    places_of(x, before, all, base, n, at);
#ifndef NEEDS_ALL
    if (item == 0 && tile == tiles - 1) {
        store_counts(count_base + count_offset, before, all, total[0]);
    }
#endif
    write_tile(base, n, tile, mask, rank, total, at, pool, sg_scratch OUTPUT_PASS);
}

#elif defined(UNORDERED)

// The count is 0.
KERNEL SG_KERNEL void select_unordered(
    INPUT_PARAMS OUTPUT_PARAMS, __global ulong* count_base, const ulong count_offset, const OFFSET_T tiles,
    const OFFSET_T share)
{
    TILE_LOCAL
    __local ulong preceding[1];
    TILE_PRIVATE
    __global const T* x = in_base + in_offset;
    const OFFSET_T tile = get_group_id(0), base = tile * TILE;
    load_tile(x, base, n, raw);
    marks(x, base, n, raw, mask);
    tile_ranks(mask, rank, total, exchange, sg_scratch);
    if (get_local_id(0) == 0) {
        *preceding = atom_add((volatile __global ulong*)(count_base + count_offset), (ulong)total[0]);
    }
    order_tile((uint)min((OFFSET_T)TILE, n - base), raw, mask, rank, total, pool, sg_scratch);
    barrier(CLK_LOCAL_MEM_FENCE);
    ulong at[LISTS];
    at[0] = *preceding;
    write_tile(base, n, tile, mask, rank, total, at, pool, sg_scratch OUTPUT_PASS);
}

#else

// totals[m * stride + t] is what tile t has of list m.
KERNEL SG_KERNEL void select_counts(
    INPUT_PARAMS, __global ulong* totals, const ulong stride, const OFFSET_T tiles, const OFFSET_T share)
{
    __local uint exchange[EXCHANGE];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    TILE_PRIVATE
    __global const T* x = in_base + in_offset;
    for (OFFSET_T tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        const OFFSET_T base = tile * TILE;
        load_tile(x, base, n, raw);
        marks(x, base, n, raw, mask);
        tile_ranks(mask, rank, total, exchange, sg_scratch);
        if (get_local_id(0) == 0) {
            for (uint m = 0; m < COUNTED; m++) {
                totals[m * stride + tile] = total[m];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

KERNEL SG_KERNEL void select_tiles(
    INPUT_PARAMS OUTPUT_PARAMS, __global ulong* count_base, const ulong count_offset, __global const ulong* totals,
    const ulong stride, const OFFSET_T tiles, const OFFSET_T share)
{
    TILE_LOCAL
    TILE_PRIVATE
    __global const T* x = in_base + in_offset;
    for (OFFSET_T tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        const OFFSET_T base = tile * TILE;
        load_tile(x, base, n, raw);
        marks(x, base, n, raw, mask);
        tile_ranks(mask, rank, total, exchange, sg_scratch);
        last_total(total, base, n);
        ulong before[COUNTED], all[COUNTED], at[LISTS];
        found_of(totals, stride, tile, tiles, before, all);
        places_of(x, before, all, base, n, at);
        if (get_local_id(0) == 0 && tile == tiles - 1) {
            store_counts(count_base + count_offset, before, all, total[0]);
        }
        order_tile((uint)min((OFFSET_T)TILE, n - base), raw, mask, rank, total, pool, sg_scratch);
        barrier(CLK_LOCAL_MEM_FENCE);
        write_tile(base, n, tile, mask, rank, total, at, pool, sg_scratch OUTPUT_PASS);
    }
}

#endif
#endif

#if !defined(LOOK_BACK) && !defined(UNORDERED)
// One level of the spine: lib/spine.cl.
KERNEL void select_spine(__global ulong* totals, const OFFSET_T first, const OFFSET_T count, const OFFSET_T above)
{
    spine_level(totals, first, count, above, get_global_id(0));
}
#endif

#ifdef NON_TRIVIAL
// Of the `count` runs, as far as there is room, `lengths` has the last places: they become lengths.
KERNEL void select_run_ends(
    __global const ulong* count_base, const ulong count_offset, __global const PLACE* places_base,
    const ulong places_offset, __global PLACE* lengths_base, const ulong lengths_offset, const ulong room)
{
    const ulong runs = min(count_base[count_offset], room);
    __global const PLACE* places = places_base + places_offset;
    __global PLACE* lengths = lengths_base + lengths_offset;
#ifdef DEVICE_CPU
    const ulong share = (runs + get_global_size(0) - 1) / get_global_size(0), first = get_global_id(0) * share;
    for (ulong k = first; k < min(first + share, runs); k++) {
#else
    for (ulong k = get_global_id(0); k < runs; k += get_global_size(0)) {
#endif
        lengths[k] += 1 - places[k];
    }
}
#elif defined(LENGTHS)
// The length of the last run that begins in each tile: it ends where the first one of a later tile begins, or at n.
KERNEL void select_last_runs(
    __global const ulong* scratch, const ulong records_at, const OFFSET_T tiles, const ulong n,
    __global PLACE* lengths_base, const ulong lengths_offset, const ulong room)
{
    for (OFFSET_T tile = get_global_id(0); tile < tiles; tile += get_global_size(0)) {
        const ulong heads = RECORD(tile)[0];
        if (heads == (tile == 0 ? 0ul : RECORD(tile - 1)[0]) || heads > room) {
            continue;
        }
        // The first tile that has more than `heads` up to its end.
        OFFSET_T low = tile + 1, high = tiles;
        while (low < high) {
            const OFFSET_T middle = low + (high - low) / 2;
            if (RECORD(middle)[0] > heads) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        const ulong end = low < tiles ? RECORD(low)[1] : n;
        lengths_base[lengths_offset + heads - 1] = (PLACE)(end - RECORD(tile)[2]);
    }
}
#endif
