// The tree over the chunks of a line or of a segment, and its records. Needs types.cl and moments.cl, and LANES, ROWS
// and QUADS of reduce_axis_moments.cl.

// Moments of a work-item that wait for their right neighbours: one for each bit set in the number of chunks or parts so
// far. A work-item has at most 512 chunks, and any number of parts.
#define CHUNKS_DEPTH 10
#define PARTS_DEPTH 34

#ifdef A_FLOAT
#define NOTHING {0, 0, 0, 0}
#else
#define NOTHING {0, 0, 0, 0, 0}
#endif

// Returns how many of the elements [from, to) are in the `width` lanes from `lane` on; `from` starts a chunk.
static inline OFFSET_T between(OFFSET_T from, OFFSET_T to, uint lane, uint width)
{
    return to > from ? in_lanes(to - from, LANES, lane, width) : 0;
}

#ifdef A_FLOAT
// Joins the moments of a quad's four lanes, which begin at `lane`, into of[0]. The chunk has `count` elements.
static inline void join_quad(Moments* of, const uint count, const uint lane)
{
    join_lanes(&of[0], &of[1], count, LANES, lane, 1);
    join_lanes(&of[2], &of[3], count, LANES, lane + 2, 1);
    join_lanes(&of[0], &of[2], count, LANES, lane, 2);
}
#endif

// Adds the moments x[0 .. values] of unit `number`. The `left` elements are divided into units of `unit` elements.
// Every `columns` consecutive values belong to one quad; the first quad begins at lane `lane`.
static inline void push(
    Moments* carry, uint* depth, uint number, Moments* x, OFFSET_T unit, OFFSET_T left, uint lane, uint values,
    uint columns)
{
    const OFFSET_T end = min((OFFSET_T)(left - number * unit), unit) + number * unit;
#ifdef A_FLOAT
    uint width = 1;
    for (uint bits = number; (bits & 1) != 0; bits >>= 1) {
        --*depth;
        const OFFSET_T middle = (number + 1 - width) * unit;
        for (uint v = 0; v < values; v++) {
            const uint first = lane + v / columns * 4;
            Moments* a = &carry[*depth * values + v];
            join_moments(a, &x[v], width * unit / QUADS, between(middle, end, first, 4));
            x[v] = *a;
        }
        width *= 2;
    }
    for (uint v = 0; v < values; v++) {
        carry[*depth * values + v] = x[v];
    }
    ++*depth;
#else
    for (uint v = 0; v < values; v++) {
        if (number == 0) {
            carry[v] = x[v];
        } else {
            join_moments(&carry[v], &x[v], unit, end);
        }
    }
    *depth = 1;
#endif
}

// Joins the moments that remain after `number` units into the first `values` of `carry`.
static inline void fold(
    Moments* carry, uint depth, uint number, OFFSET_T unit, OFFSET_T left, uint lane, uint values, uint columns)
{
    const OFFSET_T end = min((OFFSET_T)(left - (number - 1) * unit), unit) + (number - 1) * unit;
    for (; depth > 1; depth--) {
        number -= number & -number;
        const OFFSET_T middle = number * unit;
        for (uint v = 0; v < values; v++) {
            const uint first = lane + v / columns * 4;
            Moments* a = &carry[(depth - 2) * values + v];
            const OFFSET_T n = (number & -number) * unit / QUADS;
            join_moments(a, &carry[(depth - 1) * values + v], n, between(middle, end, first, 4));
        }
    }
}

// Writes the record of an output: its length and its moments.
static inline void store_record(__global void* out, ulong offset, OFFSET_T output, OFFSET_T len, const Moments* m)
{
    __global ulong* words = (__global ulong*)out + offset + (ulong)output * 6;
    words[0] = len;
    store_moments(words + 1, m);
}
