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
    ROLLED
    for (uint d = QUADS; d < share; d *= 2) {
        if ((own / QUADS * QUADS) % (2 * d) == 0) {
            const ulong middle = (own + d) / QUADS * span, most = middle + d / QUADS * span;
            if (middle < left) {
                const OFFSET_T to = min(most, (ulong)left);
                Moments other;
                get_moments(tree, WG, item + d * distance, &other);
                join_moments(m, &other, d / QUADS * span / QUADS, between(middle, to, own % QUADS * 4, 4));
                put_moments(tree, WG, item, m);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const uint quads = whole ? QUADS : 1;
    ROLLED
    for (uint d = 1; d < quads; d *= 2) {
        if (own < QUADS && own % (2 * d) == 0) {
            Moments other;
            get_moments(tree, WG, item + d * distance, &other);
            join_moments(m, &other, between(0, left, own * 4, d * 4), between(0, left, (own + d) * 4, d * 4));
            put_moments(tree, WG, item, m);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
