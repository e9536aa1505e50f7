// statistics.cl for the moments of floats: of lanes, then of tiles, then of FAN tiles, as a tree of neighbours.

// Tiles whose lanes join at once: with one, most work-items would wait for the few that join.
#define BATCH (IN_REGISTERS ? 16 / A_BYTES : 1)
// Moments in local memory, and their words.
#define SLOTS (BATCH * WG)
#define LANE_WORDS (3 * SLOTS)
// Moments that one work-group joins.
#define FAN 1024
#define ITEM_MOMENTS (FAN / WG)
#define INVERSE_ROWS ((A)(1.0f / TILE_ROWS))

// For each lane of the work-item: the mean; then the sums of the distances to it, and of their squares.
typedef struct {
    A mean[ITEM_LANES], rest[ITEM_LANES], m2[ITEM_LANES];
} Lanes;

// Takes a whole tile, which stays in registers for the second pass. Returns false if a lane's sum is not finite: then
// the work-item takes the tile again.
INLINED bool take_tile(__global const T* p, Extremes* e, Lanes* lanes)
{
    TV row[TILE_ROWS * ITEM_VECS];
    load_rows(p, row, TILE_ROWS);
    UNROLL
    for (uint i = 0; i < TILE_ROWS * ITEM_VECS; i++) {
        A x[VEC];
        unpack(row[i], x);
        UNROLL
        for (uint k = 0; k < VEC; k++) {
            add_element(e, x[k]);
            lanes->mean[i % ITEM_VECS * VEC + k] += x[k];
        }
    }
    int far = 0;
    UNROLL
    for (uint k = 0; k < ITEM_LANES; k++) {
        lanes->mean[k] *= INVERSE_ROWS;
        far |= !IS_FINITE(lanes->mean[k]);
    }
    if (far) {
        return false;
    }
    UNROLL
    for (uint i = 0; i < TILE_ROWS * ITEM_VECS; i++) {
        A x[VEC];
        unpack(row[i], x);
        UNROLL
        for (uint k = 0; k < VEC; k++) {
            const uint at = i % ITEM_VECS * VEC + k;
            const A d = x[k] - lanes->mean[at];
            lanes->rest[at] += d;
            lanes->m2[at] += d * d;
        }
    }
    return true;
}

// Takes any tile, in two passes over memory. Compilers of CPU drivers vectorise the loops, since the elements of a row
// are contiguous. An element has the weight `more` in the first `longer` lanes of the work-item, else `less`.
INLINED void take_rows(
    __global const T* p, uint elements, uint lane, uint longer, A less, A more, Extremes* e, Lanes* lanes)
{
    const uint rows = (elements + LANES - 1) / LANES;
    UNROLL
    for (uint k = 0; k < ITEM_LANES; k++) {
        lanes->mean[k] = lanes->rest[k] = lanes->m2[k] = 0;
    }
    ROLLED
    for (uint i = 0; i < rows; i++) {
        const uint count = elements_of_row(elements, lane, i);
        UNROLL
        for (uint k = 0; k < LANE_LOOP(count); k++) {
            if (k < count) {
                const A x = to_acc(p[lane + i * LANES + k]);
                add_element(e, x);
                e->odd |= IS_NAN(x);
                lanes->mean[k] += x;
            }
        }
    }
    UNROLL
    for (uint k = 0; k < ITEM_LANES; k++) {
        const A part = k < longer ? more : less;
        lanes->mean[k] *= part;
        if (!IS_FINITE(lanes->mean[k])) {
            lanes->mean[k] = far_mean(p, 1, elements, LANES, lane + k, part);
        }
    }
    ROLLED
    for (uint i = 0; i < rows; i++) {
        const uint count = elements_of_row(elements, lane, i);
        UNROLL
        for (uint k = 0; k < LANE_LOOP(count); k++) {
            if (k < count) {
                const A d = to_acc(p[lane + i * LANES + k]) - lanes->mean[k];
                lanes->rest[k] += d;
                lanes->m2[k] += d * d;
            }
        }
    }
}

INLINED void take_elements(__global const T* p, uint elements, Extremes* e, Record* r, Moments* moments)
{
    const uint lane = get_local_id(0) * ITEM_LANES;
    Lanes lanes;
    UNROLL
    for (uint k = 0; k < ITEM_LANES; k++) {
        lanes.mean[k] = lanes.rest[k] = lanes.m2[k] = 0;
    }
    // The first `longer` lanes of the work-item have one element more than the others. The weight of an element is
    // `more` in these lanes, else `less`.
    A less = INVERSE_ROWS, more = INVERSE_ROWS;
    uint longer = 0;
    if (elements != TILE) {
        const uint few = elements / LANES, rest = elements % LANES;
        less = few > 0 ? ratio(1, few) : 0;
        more = ratio(1, few + 1);
        longer = rest > lane ? rest - lane : 0;
    }
    if (!IN_REGISTERS || elements != TILE || !take_tile(p + lane, e, &lanes)) {
        take_rows(p, elements, lane, longer, less, more, e, &lanes);
    }
    Moments of[ITEM_LANES];
    // `all` is not finite if an m2 is not, since no sum with an infinity or a NaN is finite.
    A all = 0;
    UNROLL
    for (uint k = 0; k < ITEM_LANES; k++) {
        lane_moments(&of[k], lanes.mean[k], lanes.rest[k], lanes.m2[k], k < longer ? more : less);
        all += of[k].m2;
    }
    if (!IS_FINITE(all)) {
        UNROLL
        for (uint k = 0; k < ITEM_LANES; k++) {
            replace_far_squares(&of[k], k < longer ? more : less, p, 1, elements, LANES, lane + k);
        }
    }
    UNROLL
    for (uint width = 1; width < ITEM_LANES; width *= 2) {
        UNROLL
        for (uint k = 0; k < ITEM_LANES / (2 * width); k++) {
            of[k] = of[2 * k];
            join_lanes(&of[k], &of[2 * k + 1], elements, LANES, lane + 2 * k * width, width);
        }
    }
    *moments = of[0];
}

// Puts the work-item's moments of tile t of the batch into local memory. A single work-item (WG is 1) has those of the
// whole tile, and stores them.
INLINED void put_tile(__local A* lanes, uint t, const Moments* m, __global Moments* moments_of_tile)
{
    if (WG > 1) {
        put_moments(lanes, SLOTS, t * WG + get_local_id(0), m);
    } else {
        *moments_of_tile = *m;
    }
}

// Joins the work-items' moments of each tile of the batch. In each step four neighbours become one. All work-items call
// it.
INLINED void join_batch(
    __local A* lanes, OFFSET_T base, OFFSET_T groups, OFFSET_T tiles, OFFSET_T n, __global Moments* moments)
{
    const uint item = get_local_id(0);
    uint width = ITEM_LANES;
    ROLLED
    for (uint left = WG; left > 1;) {
        // `next` moments of each tile remain.
        const uint fan = left >= 4 ? 4 : 2, next = left / fan;
        const uint t = item / next, i = item % next;
        const OFFSET_T tile = base + t * groups;
        const int mine = t < BATCH && tile < tiles;
        Moments m;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (mine) {
            const uint elements = elements_of(tile, n), from = t * WG + i * fan, lane = i * fan * width;
            Moments b;
            get_moments(lanes, SLOTS, from, &m);
            get_moments(lanes, SLOTS, from + 1, &b);
            join_lanes(&m, &b, elements, LANES, lane, width);
            if (fan == 4) {
                Moments c;
                get_moments(lanes, SLOTS, from + 2, &b);
                get_moments(lanes, SLOTS, from + 3, &c);
                join_lanes(&b, &c, elements, LANES, lane + 2 * width, width);
                join_lanes(&m, &b, elements, LANES, lane, 2 * width);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (mine && next > 1) {
            put_moments(lanes, SLOTS, t * WG + i, &m);
        } else if (mine) {
            moments[tile] = m;
        }
        left = next;
        width *= fan;
    }
}

// Joins to `a` the moments of up to `width` of the n elements, from element `first` on. `a` has the moments of the
// `width` elements before them. `width` is 2^k tiles, which a float holds exactly.
static inline void join_tiles(Moments* a, const Moments* b, ulong first, ulong width, ulong n)
{
    join_moments(a, b, width, first < n ? min(width, n - first) : 0);
}

// Joins the moments from[first..first + taken], of `span` elements each, in a tree of neighbours. `kept` has the
// moments of complete subtrees, and `starts` their first tiles.
INLINED void join_own_tiles(
    __global const Moments* from, uint first, uint taken, ulong span, ulong n, Moments* m)
{
    Moments kept[12];
    uint starts[12], depth = 0;
    kept[0] = from[0];
    ROLLED
    for (uint i = 0; i < taken; i++) {
        kept[depth] = from[first + i];
        starts[depth++] = i;
        // After the last tile, subtrees that are not complete join too.
        ROLLED
        while (depth > 1) {
            const uint middle = starts[depth - 1], width = middle - starts[depth - 2];
            if (i + 1 - middle < width && i + 1 < taken) {
                break;
            }
            depth--;
            join_tiles(&kept[depth - 1], &kept[depth], (first + middle) * span, width * span, n);
        }
    }
    *m = kept[0];
}

// Joins up to FAN of `count` moments, from moment `start` on. Each has `span` elements. The result is valid in
// work-item 0. All call it, in uniform flow.
INLINED void join_group(
    __global const Moments* from, uint start, uint count, ulong span, ulong n, __local A* tree, Moments* m)
{
    const uint item = get_local_id(0), first = start + item * ITEM_MOMENTS;
    join_own_tiles(from, first, first < count ? min((uint)ITEM_MOMENTS, count - first) : 0, span, n, m);
    if (WG == 1) {
        return;
    }
    put_moments(tree, SLOTS, item, m);
    barrier(CLK_LOCAL_MEM_FENCE);
    ulong width = ITEM_MOMENTS * span;
    ROLLED
    for (uint left = WG / 2; left > 0; left /= 2) {
        if (item < left) {
            Moments b;
            get_moments(tree, SLOTS, 2 * item, m);
            get_moments(tree, SLOTS, 2 * item + 1, &b);
            join_tiles(m, &b, start * span + (2 * item + 1) * width, width, n);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < left) {
            put_moments(tree, SLOTS, item, m);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        width *= 2;
    }
}

// The input is the `count` moments from index `from` on. Work-group g joins FAN of them, from number g * FAN on, to the
// moments at index to + g.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void statistics_moments(
    __global void* moments, const ulong from, const uint count, const ulong span, const ulong n, const ulong to)
{
    __local A lanes[LANE_WORDS];
    __global Moments* all = (__global Moments*)moments;
    Moments m;
    join_group(all + from, get_group_id(0) * FAN, count, span, n, lanes, &m);
    if (get_local_id(0) == 0) {
        all[to + get_group_id(0)] = m;
    }
}
