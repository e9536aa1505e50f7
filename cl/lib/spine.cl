// Multi-level scan of tile aggregates, in groups of 32.
//
// Tree scan of 2^m partials x[0], x[1], ...: prefix(k) combines x[0], ..., x[k - 1]. These k partials are divided into
// balanced trees. There is one for each bit that is set in k: bit b stands for a tree of 2^b partials. The largest tree
// begins at x[0], and the smallest one ends at x[k - 1]. The smallest tree is combined with the identity first. Then
// each larger tree becomes a left operand. So for 6 = 4 + 2 and 7 = 4 + 2 + 1:
//
//     prefix(6) = tree(x[0], x[1], x[2], x[3]) op (tree(x[4], x[5]) op identity)
//     prefix(7) = tree(x[0], x[1], x[2], x[3]) op (tree(x[4], x[5]) op (x[6] op identity))
//
// A tree over 2^b partials combines neighbours, then pairs of neighbours, and so on.
//
// Level 0 has a partial for each tile. Level l + 1 has one for each group of 32 partials of level l: the group's
// prefix(31) op x[31]. With the tree-scan prefixes p0, p1, p2, ... of entries t, t / 32, t / 32^2, ... within their
// groups:
//
//     exclusive prefix of tile t = ((initial ... op p2) op p1) op p0
//
// A prefix p is the identity if its entry is the first of its group. exclusive_prefix() always combines LEVELS
// prefixes. For a level that does not exist, it takes the identity. scan_look_back.cl combines only the levels that
// exist. Both give the same bits, since an identity is neutral. For sums of floats the identity is -0, since an
// identity of 0 would turn a prefix of -0 into 0.
//
// Launches: scan_level() of level 0, 1, ..., then exclusive_prefix(). Needs types.cl and op.cl.

#include "lib/partial.cl"

// Maximum number of levels, enough for 32^6 tiles.
#define LEVELS 6

// Tree scan of `count` partials, a power of two. Their aggregate goes to total[0]; the rest of `total` is overwritten.
static inline void tree_scan(Partial* total, Partial* prefix, uint count)
{
    // Mesa 25 loses the result if a function that returns a struct is assigned to an array element.
    const Partial identity = identity_partial();
    ROLLED
    for (uint k = 0; k < count; k++) {
        prefix[k] = identity;
    }
    ROLLED
    for (uint d = 1; d < count; d *= 2) {
        ROLLED
        for (uint q = 0; q < count; q += 2 * d) {
            const Partial low = total[q];
            ROLLED
            for (uint k = q + d; k < q + 2 * d; k++) {
                prefix[k] = join(low, prefix[k]);
            }
            total[q] = join(low, total[q + d]);
        }
    }
}

// Replaces the aggregates of one group of 32 entries of a level by their prefixes. The level has `count` entries from
// aggregates[first] on. The last entry of the level, count - 1, has no aggregate yet: it is not read, but its prefix is
// written. If another group follows this one, this group's aggregate goes to aggregates[above + group]. One work-item
// calls it for each group; it does nothing for groups beyond the last.
static inline void scan_level(
    __global Partial* aggregates, OFFSET_T first, OFFSET_T count, OFFSET_T above, OFFSET_T group)
{
    const OFFSET_T own = group * 32;
    if (own < count) {
        __global Partial* p = aggregates + first + own;
        const Partial identity = identity_partial();
        Partial total[32], prefix[32];
        _Pragma("unroll 8")
        for (uint k = 0; k < 32; k++) {
            total[k] = identity;
            if (own + k + 1 < count) {
                total[k] = LOAD_PARTIAL(p[k]);
            }
        }
        const Partial last = total[31];
        tree_scan(total, prefix, 32);
        ROLLED
        for (uint k = 0; k < 32 && own + k < count; k++) {
            STORE_PARTIAL(p[k], prefix[k]);
        }
        if (own + 32 < count) {
            const Partial whole = join(prefix[31], last);
            STORE_PARTIAL(aggregates[above + group], whole);
        }
    }
}

// The exclusive prefix of entry `index` of `count` of level 0, after scan_level() of all levels.
static inline A exclusive_prefix(__global const Partial* aggregates, OFFSET_T index, OFFSET_T count, A initial)
{
    const Partial identity = identity_partial();
    Partial own[LEVELS];
    A prefix = initial;
    OFFSET_T at = 0;
    for (uint level = 0; level < LEVELS; level++) {
        own[level] = identity;
        if (count > 1) {
            own[level] = LOAD_PARTIAL(aggregates[at + index]);
            at += count;
            index /= 32;
            count = (count - 1) / 32 + 1;
        }
    }
    for (uint level = LEVELS; level > 0; level--) {
        prefix = extend(initial, prefix, own[level - 1]);
    }
    return prefix;
}
