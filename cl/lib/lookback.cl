// Decoupled look-back over counts: the exclusive prefix of a tile, from the status words of the tiles before it.
//
//     look_back(t) = count[0] + ... + count[t - 1]
//
// A tile publishes its aggregate, looks back, and publishes its inclusive prefix; tile 0 publishes its prefix at once.
// Counts are integers, so the order of the additions does not matter. Status words: lib/status_word.cl. Tile t owns the
// words from t * slots on; a radix sort has a slot for each digit.
//
//     prefix = 0
//     for p = t - 1, t - 2, ..., 0:
//         poll the word of tile p; if it is still invalid after `spins` or `spins` + 1 polls, recompute the aggregate
//         of tile p
//         prefix += its count; stop at an inclusive prefix
//
// Since a work-group recomputes a missing count, no result depends on the progress of other work-groups. The running
// time depends on it, so the host uses look-back only where a self-test saw that progress. The file that includes this
// one defines LOOK_CONTEXT, the first parameters of the functions below, and LOOK_PASS, the arguments for them. It also
// defines the recomputation:
//
//     ulong look_missing(LOOK_CONTEXT, OFFSET_T tile, uint slot)
//
// Source: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016.

#include "lib/status_word.cl"

static ulong look_missing(LOOK_CONTEXT, OFFSET_T tile, uint slot);

// The status of a tile: its word, or after too many polls its recomputed aggregate.
static inline ulong wait_for_status(
    LOOK_CONTEXT, volatile __global LOOK_WORD* words, uint slots, uint slot, OFFSET_T tile, uint spins, uint epoch)
{
    ulong status = 0;
    ROLLED
    for (uint poll = 0; poll < poll_limit(spins) && status < STATUS_AGGREGATE; poll++) {
        status = status_of(LOAD_STATUS(words + (ulong)tile * slots + slot), epoch);
    }
    return status >= STATUS_AGGREGATE ? status : STATUS_AGGREGATE | look_missing(LOOK_PASS, tile, slot);
}

// Status words that a work-item loads at once, so that their latencies overlap.
#ifndef LOOK_AHEAD
#define LOOK_AHEAD 4
#endif

// The exclusive prefix of `tile`. A work-item calls it by itself; several may call it at once, each for its own slot.
static inline ulong look_back(
    LOOK_CONTEXT, volatile __global LOOK_WORD* words, uint slots, uint slot, OFFSET_T tile, uint spins, uint epoch)
{
    ulong prefix = 0, status = 0;
    ROLLED
    for (OFFSET_T end = tile; end > 0 && status < STATUS_PREFIX; end -= min(end, (OFFSET_T)LOOK_AHEAD)) {
        LOOK_WORD loaded[LOOK_AHEAD];
        _Pragma("unroll")
        for (uint k = 0; k < LOOK_AHEAD; k++) {
            loaded[k] = LOAD_STATUS(words + (ulong)(end - 1 - min(end - 1, (OFFSET_T)k)) * slots + slot);
        }
        // Each round moves the loaded words forward by one, so that the code of the polls exists once.
        ROLLED
        for (uint k = 0; k < LOOK_AHEAD && k < end && status < STATUS_PREFIX; k++) {
            status = status_of(loaded[0], epoch);
            if (status < STATUS_AGGREGATE) {
                status = wait_for_status(LOOK_PASS, words, slots, slot, end - 1 - k, spins, epoch);
            }
            prefix += STATUS_COUNT(status);
            _Pragma("unroll")
            for (uint i = 1; i < LOOK_AHEAD; i++) {
                loaded[i - 1] = loaded[i];
            }
        }
    }
    return prefix;
}

// look_back() by all work-items of a sub-group, in uniform flow: each lane reads the word of one tile. The result is
// valid in all. Not for SG_LOCAL, whose exchange needs all work-items of the work-group.
SG_INLINE ulong look_back_together(
    LOOK_CONTEXT, volatile __global LOOK_WORD* words, uint slots, uint slot, OFFSET_T tile, uint spins, uint epoch,
    __local uint* sg_scratch)
{
    const uint lane = sg_lane(), lanes = sg_size();
    ulong prefix = 0, known = 0;
    ROLLED
    for (OFFSET_T end = tile; known == 0; end -= lanes) {
        // The prefix before tile 0 is 0.
        ulong status = STATUS_PREFIX;
        if (lane < end) {
            status = wait_for_status(LOOK_PASS, words, slots, slot, end - 1 - lane, spins, epoch);
        }
        known = sg_ballot(status >= STATUS_PREFIX, sg_scratch);
        // Adds only the counts of the lanes up to the nearest prefix.
        const uint last = known != 0 ? (uint)popcount((known & (0ul - known)) - 1) : lanes - 1;
        ulong count = lane <= last ? STATUS_COUNT(status) : 0;
        ROLLED
        for (uint d = 1; d < lanes; d *= 2) {
            count += sg_shuffle_xor_u64(count, d, sg_scratch);
        }
        prefix += count;
    }
    return prefix;
}
