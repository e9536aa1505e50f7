// Decoupled look-back over counts (Merrill and Garland 2016): what precedes a tile, from what the tiles before it publish.
//
// A word has two bits of state over 62 of a count: nothing yet, the tile's own count, or that of all tiles up to it. State
// and count are one atomic access, so relaxed ones are enough; and counts add up to the same in any order. Word
// words[t * slots + slot] is tile t's, all of which are 0 at first: a radix sort has a slot for each digit.
//
// Work-groups take tiles by a ticket, publish their own count, look back, and publish that of all. A word that is not there
// after `spins` looks is computed by who needs it. For that the file that includes this one defines LOOK_CONTEXT, parameters
// in front of the others, LOOK_PASS, what to pass for them, and before it calls anything
//
//     ulong look_missing(LOOK_CONTEXT, OFFSET_T tile, uint slot)
//
// Needs types.cl and subgroup.cl, and 64-bit atomics.
#ifndef OCLPRIM_LOOKBACK_CL
#define OCLPRIM_LOOKBACK_CL

#define LOOK_OWN (1ul << 62)
#define LOOK_ALL (1ul << 63)
#define LOOK_COUNT(word) ((word) & (LOOK_OWN - 1))

static ulong look_missing(LOOK_CONTEXT, OFFSET_T tile, uint slot);

// `state` is LOOK_OWN or LOOK_ALL.
static inline void look_publish(volatile __global ulong* words, ulong at, ulong state, ulong count)
{
    store_relaxed_u64(words + at, state | count);
}

// A tile's word, or its own count.
static inline ulong look_at(
    LOOK_CONTEXT, volatile __global ulong* words, uint slots, uint slot, OFFSET_T tile, uint spins)
{
    ulong word = 0;
    for (uint turn = 0; turn < spins && word == 0; turn++) {
        word = load_relaxed_u64(words + (ulong)tile * slots + slot);
    }
    return word != 0 ? word : LOOK_OWN | look_missing(LOOK_PASS, tile, slot);
}

// The count of all tiles before `tile`. One item calls it.
static inline ulong look_back(
    LOOK_CONTEXT, volatile __global ulong* words, uint slots, uint slot, OFFSET_T tile, uint spins)
{
    ulong before = 0, word = 0;
    for (OFFSET_T end = tile; end > 0 && word < LOOK_ALL; end--) {
        word = look_at(LOOK_PASS, words, slots, slot, end - 1, spins);
        before += LOOK_COUNT(word);
    }
    return before;
}

// The same by all items of a sub-group, which call it in uniform flow: as many tiles at a time. Valid in every item. Not for
// sub-groups in local memory.
SG_INLINE ulong look_back_together(
    LOOK_CONTEXT, volatile __global ulong* words, uint slots, uint slot, OFFSET_T tile, uint spins,
    __local uint* sg_scratch)
{
    const uint lane = sg_lane(), lanes = sg_size();
    ulong before = 0, known = 0;
    for (OFFSET_T end = tile; known == 0; end -= lanes) {
        // Before the first tile there is nothing.
        ulong word = LOOK_ALL;
        if (lane < end) {
            word = look_at(LOOK_PASS, words, slots, slot, end - 1 - lane, spins);
        }
        known = sg_ballot(word >= LOOK_ALL, sg_scratch);
        // The nearest lane that knows all, and those up to it.
        const uint last = known != 0 ? (uint)popcount((known & (0ul - known)) - 1) : lanes - 1;
        ulong count = lane <= last ? LOOK_COUNT(word) : 0;
        for (uint d = 1; d < lanes; d *= 2) {
            count += sg_shuffle_xor_u64(count, d, sg_scratch);
        }
        before += count;
    }
    return before;
}

#endif
