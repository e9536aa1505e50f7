// Multi-level scan of tile aggregates, in groups of 32.
//
// Tree scan of 2^m partials x[0], x[1], ...: let b1 < b2 < ... be the bits that are set in k. tree1 has the 2^b1
// partials just before k. tree2 has the 2^b2 partials just before tree1, and so on, down to x[0]. The nearest and
// smallest tree is combined first; each further tree is a left operand:
//
//     prefix(k) = ... op (tree2 op (tree1 op identity))
//     prefix(6) = tree(x[0], x[1], x[2], x[3]) op (tree(x[4], x[5]) op identity)
//
// A tree over 2^b partials combines neighbours, then pairs of neighbours, and so on.
//
// Level 0 has a partial for each tile. Level l + 1 has one for each group of 32 partials of level l: the group's
// prefix(31) op x[31]. With the tree-scan prefixes p0, p1, p2, ... of entries t, t / 32, t / 32^2, ... within their groups:
//
//     exclusive prefix of tile t = ((initial ... op p2) op p1) op p0
//
// Launches: scan_level() of level 0, 1, ..., then exclusive_prefix(). Needs types.cl and op.cl.

#include "lib/partial.cl"

// Maximum number of levels, enough for 32^6 tiles.
#define LEVELS 6

// Tree scan of `count` partials, a power of two. Their aggregate goes to total[0]; the rest of `total` is overwritten.
static inline void tree_scan(Partial* total, Partial* prefix, uint count)
{
    for (uint k = 0; k < count; k++) {
        prefix[k] = identity_partial();
    }
    for (uint d = 1; d < count; d *= 2) {
        for (uint q = 0; q < count; q += 2 * d) {
            const Partial low = total[q];
            for (uint k = q + d; k < q + 2 * d; k++) {
                prefix[k] = join(low, prefix[k]);
            }
            total[q] = join(low, total[q + d]);
        }
    }
}

// Replaces the aggregates of one group of 32 entries of a level by their prefixes. The level has `count` entries from
// totals[first] on. The last entry of the level, count - 1, has no aggregate yet: it is not read, but its prefix is
// written. If another group follows this one, the aggregate of this group goes to totals[above + group]. One work-item
// calls it for each group; it does nothing for groups beyond the last.
static inline void scan_level(__global Partial* totals, OFFSET_T first, OFFSET_T count, OFFSET_T above, OFFSET_T group)
{
    const OFFSET_T own = group * 32;
    if (own < count) {
        __global Partial* p = totals + first + own;
        Partial total[32], prefix[32];
        for (uint k = 0; k < 32; k++) {
            total[k] = identity_partial();
            if (own + k + 1 < count) {
                total[k] = LOAD_PARTIAL(p[k]);
            }
        }
        const Partial last = total[31];
        tree_scan(total, prefix, 32);
        for (uint k = 0; k < 32 && own + k < count; k++) {
            STORE_PARTIAL(p[k], prefix[k]);
        }
        if (own + 32 < count) {
            const Partial whole = join(prefix[31], last);
            STORE_PARTIAL(totals[above + group], whole);
        }
    }
}

// The exclusive prefix of entry `index` of `count` of level 0, after scan_level() of all levels.
static inline A exclusive_prefix(__global const Partial* totals, OFFSET_T index, OFFSET_T count, A initial)
{
    Partial own[LEVELS];
    A prefix = initial;
    OFFSET_T at = 0;
    for (uint level = 0; level < LEVELS; level++) {
        own[level] = identity_partial();
        if (count > 1) {
            own[level] = LOAD_PARTIAL(totals[at + index]);
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
