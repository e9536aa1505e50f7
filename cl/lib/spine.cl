// What precedes each of many things, level after level of blocks of 32. Needs the type A, OP and OP_IDENTITY; and THING, with
// what belongs to it, where things are no accumulators.
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

// The type of a thing, what two of them and none come to, what is carried beyond one, from `initial` on, and a thing's way out of
// shared memory and into it.
#ifndef THING
#define THING A
#define THING_OP(a, b) OP(a, b)
#define THING_IDENTITY OP_IDENTITY
#define THING_CARRY(initial, carry, thing) OP(carry, thing)
#define THING_GET(place) (place)
#define THING_PUT(place, thing) ((place) = (thing))
#endif

// Puts before() of `count` neighbours, a power of two, into `before`; their total into total[0], the rest is used up.
static inline void leaves_scan(THING* total, THING* before, uint count)
{
    for (uint k = 0; k < count; k++) {
        before[k] = THING_IDENTITY;
    }
    for (uint d = 1; d < count; d *= 2) {
        for (uint q = 0; q < count; q += 2 * d) {
            const THING low = total[q];
            for (uint k = q + d; k < q + 2 * d; k++) {
                before[k] = THING_OP(low, before[k]);
            }
            total[q] = THING_OP(low, total[q + d]);
        }
    }
}

// Of `count` totals from totals[first] on, the last of which is not there, those of one block become before() of each. Its
// own total, if it is whole, goes to totals[above + block]. One item calls it for each block, or for more.
static inline void spine_level(__global THING* totals, OFFSET_T first, OFFSET_T count, OFFSET_T above, OFFSET_T block)
{
    const OFFSET_T own = block * 32;
    if (own < count) {
        __global THING* p = totals + first + own;
        THING total[32], before[32];
        for (uint k = 0; k < 32; k++) {
            total[k] = THING_IDENTITY;
            if (own + k + 1 < count) {
                total[k] = THING_GET(p[k]);
            }
        }
        const THING last = total[31];
        leaves_scan(total, before, 32);
        for (uint k = 0; k < 32 && own + k < count; k++) {
            THING_PUT(p[k], before[k]);
        }
        if (own + 32 < count) {
            const THING whole = THING_OP(before[31], last);
            THING_PUT(totals[above + block], whole);
        }
    }
}

// What precedes thing `index` of `count`, from what the levels became.
static inline A carry_of(__global const THING* totals, OFFSET_T index, OFFSET_T count, A initial)
{
    THING digit[LEVELS];
    A carry = initial;
    OFFSET_T at = 0;
    for (uint level = 0; level < LEVELS; level++) {
        digit[level] = THING_IDENTITY;
        if (count > 1) {
            digit[level] = THING_GET(totals[at + index]);
            at += count;
            index /= 32;
            count = (count - 1) / 32 + 1;
        }
    }
    for (uint level = LEVELS; level > 0; level--) {
        carry = THING_CARRY(initial, carry, digit[level - 1]);
    }
    return carry;
}

#endif
