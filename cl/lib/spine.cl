// What precedes each of many things, level after level of blocks of 32. Needs the type A, OP and OP_IDENTITY.
//
// Of 2^m things x_0, x_1, ..., with b over the bits that are set in k, the lowest first:
//
//     before(k) = ... op (total of the 2^b before those op (total of the 2^b before k op identity))
//
// where the total of 2^b neighbours is the tree of neighbours over them. The total of a block of 32 is before(31) op x_31.
// What precedes thing t, in block u, in block v ... is ((initial ... op before(v)) op before(u)) op before(t), each among the
// 32 of its own block.
#ifndef OCLPRIM_SPINE_CL
#define OCLPRIM_SPINE_CL

// Levels that there can be: 32^6 things.
#define LEVELS 6

// Puts before() of `count` neighbours, a power of two, into `before`; their total into total[0], the rest is used up.
static inline void leaves_scan(A* total, A* before, uint count)
{
    for (uint k = 0; k < count; k++) {
        before[k] = OP_IDENTITY;
    }
    for (uint d = 1; d < count; d *= 2) {
        for (uint q = 0; q < count; q += 2 * d) {
            const A low = total[q];
            for (uint k = q + d; k < q + 2 * d; k++) {
                before[k] = OP(low, before[k]);
            }
            total[q] = OP(low, total[q + d]);
        }
    }
}

// Of `count` totals from totals[first] on, the last of which is not there, those of one block become before() of each. Its
// own total, if it is whole, goes to totals[above + block]. One item calls it for each block, or for more.
static inline void spine_level(__global A* totals, OFFSET_T first, OFFSET_T count, OFFSET_T above, OFFSET_T block)
{
    const OFFSET_T own = block * 32;
    if (own < count) {
        __global A* p = totals + first + own;
        A total[32], before[32];
        for (uint k = 0; k < 32; k++) {
            total[k] = OP_IDENTITY;
            if (own + k + 1 < count) {
                total[k] = p[k];
            }
        }
        const A last = total[31];
        leaves_scan(total, before, 32);
        for (uint k = 0; k < 32 && own + k < count; k++) {
            p[k] = before[k];
        }
        if (own + 32 < count) {
            totals[above + block] = OP(before[31], last);
        }
    }
}

// What precedes thing `index` of `count`, from what the levels became.
static inline A carry_of(__global const A* totals, OFFSET_T index, OFFSET_T count, A initial)
{
    A digit[LEVELS], carry = initial;
    OFFSET_T at = 0;
    for (uint level = 0; level < LEVELS; level++) {
        digit[level] = OP_IDENTITY;
        if (count > 1) {
            digit[level] = totals[at + index];
            at += count;
            index /= 32;
            count = (count - 1) / 32 + 1;
        }
    }
    for (uint level = LEVELS; level > 0; level--) {
        carry = OP(carry, digit[level - 1]);
    }
    return carry;
}

#endif
