// Work-group collectives on the accumulator A with the operator OP. Needs types.cl, op.cl and subgroup.cl.
//
// The shape of the tree is part of the contract of `Fixed` sums: neighbours first, (0,1) (2,3) ..., then neighbouring
// pairs, and so on. It does not depend on the sub-group width, so that all devices round alike.

#ifndef WG
#define WG 256
#endif

#if SG_BACKEND != SG_NONE
// Returns x of lane sg_lane() ^ mask.
SG_INLINE A shuffle_xor_acc(A x, uint mask, __local uint* s)
{
#if A_BYTES == 8
#ifdef A_FLOAT
    return as_double(sg_shuffle_xor_u64(as_ulong(x), mask, s));
#else
    return (A)sg_shuffle_xor_u64((ulong)x, mask, s);
#endif
#elif defined(A_FLOAT)
    return as_float(sg_shuffle_xor_u32(as_uint(x), mask, s));
#else
    return (A)sg_shuffle_xor_u32((uint)x, mask, s);
#endif
}
#endif

// Returns the tree reduction of x over the work-group, valid in work-item 0. All work-items call it, in uniform flow;
// WG is a power of two. `tree` has WG accumulators; it may be reused after the caller's next barrier.
SG_INLINE A wg_reduce(A x, __local A* tree, __local uint* sg_scratch)
{
#if WG == 1
    return x;
#else
    const uint item = get_local_id(0);
#if SG_BACKEND >= 1 && SG_BACKEND <= 4
    const uint width = sg_size();
    for (uint d = 1; d < width; d <<= 1) {
        x = OP(x, shuffle_xor_acc(x, d, sg_scratch));
    }
    if (sg_lane() == 0) {
        tree[item / width] = x;
    }
    const uint count = WG / width;
#else
    tree[item] = x;
    const uint count = WG;
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    ROLLED
    for (uint d = 1; d < count; d <<= 1) {
        const uint i = 2 * d * item;
        if (i + d < count) {
            tree[i] = OP(tree[i], tree[i + d]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return tree[0];
#endif
}
