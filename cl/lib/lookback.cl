// Decoupled look-back over counts (Merrill and Garland 2016): what precedes a tile, from what the tiles before it publish.
//
// A word of LOOK_BYTES has two bits of state over the count: nothing yet, the tile's own count, or that of all tiles up to it.
// State and count are one atomic access, so relaxed ones are enough; and counts add up to the same in any order. Word
// words[t * slots + slot] is tile t's: a radix sort has a slot for each digit. All are 0 at first. Words that all
// end as that of all tiles are words without anything in the next turn: with turn 1, where it was 0, and so on. With LOOK_TURNS a
// word has its turn beside the count, and those of any other turn are without anything: in turn 0 all are to be 0.
//
// Work-groups take tiles by a ticket, publish their own count, look back, and publish that of all. A word that is not there
// after `spins` looks is computed by who needs it. For that the file that includes this one defines LOOK_CONTEXT, parameters
// in front of the others, LOOK_PASS, what to pass for them, and before it calls anything
//
//     ulong look_missing(LOOK_CONTEXT, OFFSET_T tile, uint slot)
//
// Needs types.cl and subgroup.cl, and 64-bit atomics for words of 8 bytes.
#ifndef OCLPRIM_LOOKBACK_CL
#define OCLPRIM_LOOKBACK_CL

#ifndef LOOK_BYTES
#define LOOK_BYTES 8
#endif
#if LOOK_BYTES == 4
#define LOOK_WORD uint
#define LOOK_LOAD load_relaxed_u32
#define LOOK_STORE store_relaxed_u32
#else
#define LOOK_WORD ulong
#define LOOK_LOAD load_relaxed_u64
#define LOOK_STORE store_relaxed_u64
#endif
#define LOOK_BITS (8 * LOOK_BYTES - 2)
#ifdef LOOK_TURNS
#define LOOK_TURN_AT 42
#endif

// What is read: a state over a count.
#define LOOK_OWN (1ul << 62)
#define LOOK_ALL (1ul << 63)
#define LOOK_COUNT(found) ((found) & (LOOK_OWN - 1))

static ulong look_missing(LOOK_CONTEXT, OFFSET_T tile, uint slot);

// `state` is LOOK_OWN or LOOK_ALL.
static inline void look_publish(volatile __global LOOK_WORD* words, ulong at, ulong state, ulong count, uint turn)
{
#ifdef LOOK_TURNS
    LOOK_STORE(words + at, state | (ulong)turn << LOOK_TURN_AT | count);
#else
    const LOOK_WORD bits = (LOOK_WORD)(((uint)(state >> 62) + 2 * turn) & 3);
    LOOK_STORE(words + at, bits << LOOK_BITS | (LOOK_WORD)count);
#endif
}

// A word as a state over a count.
static inline ulong look_state(LOOK_WORD word, uint turn)
{
#ifdef LOOK_TURNS
    const ulong found = word - ((ulong)turn << LOOK_TURN_AT);
    return (found & (LOOK_OWN - 1)) >> LOOK_TURN_AT == 0 ? found : 0;
#else
    const uint bits = ((uint)(word >> LOOK_BITS) - 2 * turn) & 3;
    return (ulong)bits << 62 | (word & (((LOOK_WORD)1 << LOOK_BITS) - 1));
#endif
}

// What a tile has published, or its own count.
static inline ulong look_at(
    LOOK_CONTEXT, volatile __global LOOK_WORD* words, uint slots, uint slot, OFFSET_T tile, uint spins, uint turn)
{
    ulong found = 0;
    for (uint look = 0; look < SPINS(spins) && found < LOOK_OWN; look++) {
        found = look_state(LOOK_LOAD(words + (ulong)tile * slots + slot), turn);
    }
    return found >= LOOK_OWN ? found : LOOK_OWN | look_missing(LOOK_PASS, tile, slot);
}

// Tiles at which an item looks at a time, so that it does not wait for one after the other.
#ifndef LOOK_AHEAD
#define LOOK_AHEAD 4
#endif

// The count of all tiles before `tile`. One item calls it.
static inline ulong look_back(
    LOOK_CONTEXT, volatile __global LOOK_WORD* words, uint slots, uint slot, OFFSET_T tile, uint spins, uint turn)
{
    ulong before = 0, found = 0;
    for (OFFSET_T end = tile; end > 0 && found < LOOK_ALL; end -= min(end, (OFFSET_T)LOOK_AHEAD)) {
        LOOK_WORD seen[LOOK_AHEAD];
        _Pragma("unroll")
        for (uint k = 0; k < LOOK_AHEAD; k++) {
            seen[k] = LOOK_LOAD(words + (ulong)(end - 1 - min(end - 1, (OFFSET_T)k)) * slots + slot);
        }
        _Pragma("unroll")
        for (uint k = 0; k < LOOK_AHEAD; k++) {
            if (k < end && found < LOOK_ALL) {
                found = look_state(seen[k], turn);
                if (found < LOOK_OWN) {
                    found = look_at(LOOK_PASS, words, slots, slot, end - 1 - k, spins, turn);
                }
                before += LOOK_COUNT(found);
            }
        }
    }
    return before;
}

// The same by all items of a sub-group, which call it in uniform flow: as many tiles at a time. Valid in every item. Not for
// sub-groups in local memory.
SG_INLINE ulong look_back_together(
    LOOK_CONTEXT, volatile __global LOOK_WORD* words, uint slots, uint slot, OFFSET_T tile, uint spins, uint turn,
    __local uint* sg_scratch)
{
    const uint lane = sg_lane(), lanes = sg_size();
    ulong before = 0, known = 0;
    for (OFFSET_T end = tile; known == 0; end -= lanes) {
        // Before the first tile there is nothing.
        ulong found = LOOK_ALL;
        if (lane < end) {
            found = look_at(LOOK_PASS, words, slots, slot, end - 1 - lane, spins, turn);
        }
        known = sg_ballot(found >= LOOK_ALL, sg_scratch);
        // The nearest lane that knows all, and those up to it.
        const uint last = known != 0 ? (uint)popcount((known & (0ul - known)) - 1) : lanes - 1;
        ulong count = lane <= last ? LOOK_COUNT(found) : 0;
        for (uint d = 1; d < lanes; d *= 2) {
            count += sg_shuffle_xor_u64(count, d, sg_scratch);
        }
        before += count;
    }
    return before;
}

#endif
