// Joins the moments of work-items that share an output. Needs moments_tree.cl and WG.

// Joins the moments of the `share` work-items of an output, which are `distance` apart. Work-item `own` has quad
// own % QUADS of the `span` elements from span * (own / QUADS) on; `left` elements exist. First the moments of the same
// quad are joined: the results are valid if own < QUADS. With `whole` the quads are then joined: the result is valid if
// `own` is 0. All work-items call it, in uniform flow, with the same arguments except `own`.
INLINED void join_share(
    Moments* m, const uint own, const uint share, const uint distance, const ulong span, const OFFSET_T left,
    const uint whole, __local MOMENT_T* tree)
{
    const uint item = get_local_id(0);
    put_moments(tree, WG, item, m);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint quads = whole ? QUADS : 1;
    // One loop joins both, since joins have much code. `within` is set if it joins the quads, of all elements.
    bool within = false;
    ROLLED
    for (uint d = QUADS;; d *= 2) {
        if (!within && d >= share) {
            within = true;
            d = 1;
        }
        if (within && d >= quads) {
            return;
        }
        const ulong from = within ? 0 : own / QUADS * span, middle = within ? left : from + d / QUADS * span;
        const ulong next = within ? 0 : middle, to = within ? left : min(middle + d / QUADS * span, (ulong)left);
        // A mask replaces a division: d is a power of two.
        const bool first = within ? own < QUADS && (own & (2 * d - 1)) == 0 : (own / QUADS & (2 * d / QUADS - 1)) == 0;
        if (first && next < left) {
            const uint lane = own % QUADS * 4, width = within ? d * 4 : 4;
            Moments other;
            get_moments(tree, WG, item + d * distance, &other);
            join_moments(m, &other, between(from, middle, lane, width),
                between(next, to, lane + (within ? width : 0), width));
            put_moments(tree, WG, item, m);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
