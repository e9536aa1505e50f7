// statistics.cl for all but the moments of floats: extremes, and with INTEGER_MOMENTS exact sums.

// Compares 16 elements at a time.
INLINED void take_vectors(__global const T* p, Extremes* e)
{
    CAT(A, 16) lows = HIGHEST, highs = LOWEST;
    NANS16 nans = 0;
    for (uint i = 0; i < TILE; i += 16) {
        const CAT(A, 16) x = CAT(convert_, CAT(A, 16))(vload16(0, p + i));
        lows = x < lows ? x : lows;
        highs = x > highs ? x : highs;
        nans |= UNORDERED(x, x);
    }
    A each_low[16], each_high[16];
    vstore16(lows, 0, each_low);
    vstore16(highs, 0, each_high);
    e->odd = any(nans);
    for (uint k = 0; k < 16; k++) {
        e->low = LESSER(e->low, each_low[k]);
        e->high = LARGER(e->high, each_high[k]);
    }
}

// Takes a whole tile, from the lane at `p` on.
INLINED void take_tile(__global const T* p, Extremes* e, Sums* sums)
{
    TV row[FLIGHT * ITEM_VECS];
    for (uint start = 0; start < TILE_ROWS; start += FLIGHT) {
        load_rows(p + start * LANES, row, FLIGHT);
        UNROLL
        for (uint i = 0; i < FLIGHT * ITEM_VECS; i++) {
            A x[VEC];
            unpack(row[i], x);
            UNROLL
            for (uint k = 0; k < VEC; k++) {
                add_element(e, x[k]);
            }
            UNROLL
            for (uint k = 0; k < VEC; k += 2) {
                e->odd |= UNORDERED(x[k], x[k + 1]);
                sums_add_two(sums, x[k], x[k + 1]);
            }
        }
    }
}

// Takes any tile: contiguous elements, which compilers of CPU drivers vectorise.
INLINED void take_rows(__global const T* p, uint elements, uint lane, Extremes* e, Sums* sums)
{
    const uint rows = (elements + LANES - 1) / LANES;
    ROLLED
    for (uint i = 0; i < rows; i++) {
        const uint count = elements_of_row(elements, lane, i);
        UNROLL
        for (uint k = 0; k < LANE_LOOP(count); k++) {
            if (k < count) {
                const A x = to_acc(p[lane + i * LANES + k]);
                add_element(e, x);
                e->odd |= IS_NAN(x);
                sums_add(sums, x);
            }
        }
    }
}

INLINED void take_elements(__global const T* p, uint elements, Extremes* e, Record* r, Moments* moments)
{
    const uint lane = get_local_id(0) * ITEM_LANES;
    Sums sums = {0};
    if (VECTORS && elements == TILE) {
        take_vectors(p, e);
    } else if (IN_REGISTERS && elements == TILE) {
        take_tile(p + lane, e, &sums);
    } else {
        take_rows(p, elements, lane, e, &sums);
    }
    put_sums(r, &sums);
}

// Only the moments of floats join by tiles.
#define BATCH 1
#define LANE_WORDS 1
static inline void put_tile(__local A* lanes, uint t, const Moments* m, __global Moments* moment) {}
static inline void join_batch(
    __local A* lanes, OFFSET_T base, OFFSET_T groups, OFFSET_T tiles, OFFSET_T n, __global Moments* moments)
{
}
static inline void join_group(
    __global const Moments* from, uint start, uint count, ulong span, ulong n, __local A* tree, Moments* m)
{
}
