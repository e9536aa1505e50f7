// The tree of chunks for devices with work-groups (reduce_axis.cl).

// Adds aggregate `number`: joins it with each earlier aggregate that now has its right neighbour.
static inline void push(A* carry, uint* carries, OFFSET_T number, A x)
{
    for (; number & 1; number >>= 1) {
        x = OP(carry[--*carries], x);
    }
    carry[(*carries)++] = x;
}

// Returns the result of the aggregates that are left.
static inline A fold(const A* carry, uint carries)
{
    A x = carry[--carries];
    while (carries > 0) {
        x = OP(carry[--carries], x);
    }
    return x;
}
