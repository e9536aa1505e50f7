// Ranks among sorted offsets. S: the type of an offset. POS_T: a type that holds offsets and indices.

// Returns the number of offsets <= p. The caller knows that the first `low` offsets are at most p, and that those from
// `high` on are larger.
static inline OFFSET_T rank_within(__global const S* offsets, OFFSET_T low, OFFSET_T high, POS_T p)
{
    ROLLED
    while (low < high) {
        const OFFSET_T middle = low + (high - low) / 2;
        if (offsets[middle] <= p) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
