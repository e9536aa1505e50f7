// Status words: the messages of decoupled look-back from a tile to the tiles after it; and the faults that tests
// inject.
//
// A status word is valid only in the launch of its epoch. One atomic access reads or writes the state, the epoch and
// the payload of a word, so relaxed loads and stores are enough. A value of 8 bytes takes two words, each with the
// epoch: it is valid if both are. Only scans in place need fences, too: a work-group that read a result in place of an
// element must find the status word valid afterwards. recompute_tile() of scan_look_back.cl calls its fence in every
// scan.
//
// The macros STATUS_VALUES and LOOK_TURNS select one of three layouts. Fields and their bits, from the highest to the
// lowest:
//
//     defined          in words of                                fields
//     STATUS_VALUES    scans: an aggregate                        epoch: 31, segment-head flag: 1, payload: 32
//     LOOK_TURNS       selections, reductions by key: a count     state: 2, epoch: 20, count: 42
//     neither macro    radix sorts: a count                       (state + 2 * epoch) % 4: 2, count: 30 or 62
//
// The layouts differ for two reasons. A value fills its 32 bits, whereas a count leaves room for a state. A radix sort
// has a word for each digit of a tile. So its words have LOOK_BYTES = 4 if n < 2^30 and OFFSET_T is uint, else 8.
//
// - Scans: a word of another epoch is invalid. So launches without a tile counter may share a buffer, which is not
//   cleared between them. Before any other launch the host clears the words. Aggregates of tiles and of groups have
//   words of their own, so no state tells them apart. All publishes of a word within a launch store the same bits, so
//   two words of one value cannot disagree.
// - Selections and reductions by key: likewise for epochs. The state says whether the count is the tile's aggregate or
//   its inclusive prefix.
// - Radix sorts: a launch is a pass. Its epoch is 0 in the first active pass, 1 in the second, 0 in the third, and so
//   on. State and epoch share the two highest bits of a word:
//
//       state            epoch 0    epoch 1
//       0: invalid       0          2
//       1: aggregate     1          3
//       2: prefix        2          0
//
//   An active pass leaves each word as a prefix. In the next active pass, of the other epoch, the same bits mean
//   invalid. So no pass clears words: sort_histograms sets all of them to 0 once, before the first pass. A skipped pass
//   changes neither words nor epoch. One word may end a pass with other bits: that of the last tile's highest digit,
//   whose count may overflow (load_keys of sort_scatter.cl). No tile reads it.
//
// publish() stores a word, and poll_limit() is the maximum number of polls of a word. Fault injection changes both.
// Needs types.cl and subgroup.cl, and 64-bit atomics for words of 8 bytes. STATUS_VALUES needs partial.cl,
// bits_of_value() and value_of_bits().

// Fault injection: STALL disturbs the tiles t with t % 5 == 2. The other tiles must get the right results without the
// status words of these tiles.
//
//     DROP_PUBLISH:   scans, selections, reductions by key: the tile publishes neither its aggregate nor prefixes, nor
//                     aggregates of groups; but a scan in place publishes the tile's aggregate late (publish_dropped)
//                     radix sorts: the tile publishes only prefixes, since each word must end as one
//     DELAY_PUBLISH:  work-item 0 publishes aggregates late; by then others may have recomputed them, and in a scan
//                     published them, too
//
// DELAY_PUBLISH delays work-item 0 alone. In a scan with LANES > 1, another work-item publishes the aggregates of tile
// groups: they are not late. sort_scatter makes all work-items wait for work-item 0, so those of all digits are late.
#define DROP_PUBLISH 1
#define DELAY_PUBLISH 2
#ifndef STALL
#define STALL 0
#endif

// The maximum number of polls of one status word; few under fault injection.
static inline uint poll_limit(uint polls) { return STALL != 0 ? 3 : polls; }

static inline bool is_faulty(ulong tile) { return STALL != 0 && tile % 5 == 2; }

static inline bool is_dropped(ulong tile) { return STALL == DROP_PUBLISH && is_faulty(tile); }

// Delays a publish of `word`. From tile to tile, the delay varies from less than the time in which others read the tile
// to much more.
static inline void delay_publish(ulong tile, volatile __global void* word)
{
    if (STALL == DELAY_PUBLISH && is_faulty(tile) && get_local_id(0) == 0) {
        for (uint poll = 0; poll < 1024u << tile / 5 % 8; poll++) {
            load_relaxed_u32((volatile __global uint*)word);
        }
    }
}

#ifdef STATUS_VALUES

// Status words of a partial result.
#define STATUS_WORDS (A_BYTES == 8 ? 2 : 1)

// Stores partial `at` of `words`, without injected faults: for a work-group that stores it in place of another.
static inline void store_status(volatile __global ulong* words, OFFSET_T at, Partial x, uint epoch)
{
    const ulong bits = bits_of_value(value_of(x)), tag = (ulong)(epoch << 1 | head_of(x)) << 32;
    for (uint w = 0; w < STATUS_WORDS; w++) {
        store_relaxed_u64(words + at * STATUS_WORDS + w, tag | (bits >> (32 * w) & 0xffffffffu));
    }
}

// Publishes partial `at`, on behalf of `tile`.
static inline void publish(volatile __global ulong* words, OFFSET_T at, Partial x, OFFSET_T tile, uint epoch)
{
    delay_publish(tile, words + at * STATUS_WORDS);
    if (!is_dropped(tile)) {
        store_status(words, at, x, epoch);
    }
}

// Publishes what publish() dropped: for a tile that overwrites its elements, so that no other can recompute it.
static inline void publish_dropped(volatile __global ulong* words, OFFSET_T at, Partial x, OFFSET_T tile, uint epoch)
{
    if (is_dropped(tile)) {
        store_status(words, at, x, epoch);
        fence_device();
    }
}

// Polls once: true if partial `at` is valid; then *x receives it.
static inline bool poll_status(volatile __global ulong* words, OFFSET_T at, Partial* x, uint epoch)
{
    ulong bits = 0, word = 0;
    bool valid = true;
    for (uint w = 0; w < STATUS_WORDS; w++) {
        word = load_relaxed_u64(words + at * STATUS_WORDS + w);
        valid = valid && word >> 33 == epoch;
        bits |= (word & 0xffffffffu) << (32 * w);
    }
    if (valid) {
        *x = partial(value_of_bits(bits), (uint)(word >> 32) & 1);
    }
    return valid;
}

#else

#ifndef LOOK_BYTES
#define LOOK_BYTES 8
#endif
#if LOOK_BYTES == 4
#define LOOK_WORD uint
#define LOAD_STATUS load_relaxed_u32
#define STORE_STATUS store_relaxed_u32
#else
#define LOOK_WORD ulong
#define LOAD_STATUS load_relaxed_u64
#define STORE_STATUS store_relaxed_u64
#endif
#ifdef LOOK_TURNS
#define HAS_EPOCH 1
#else
#define HAS_EPOCH 0
#endif
#define COUNT_BITS (8 * LOOK_BYTES - 2)
#define EPOCH_SHIFT 42

// A status: a state over a count, whatever the layout. It is invalid if it is below STATUS_AGGREGATE.
#define STATUS_AGGREGATE (1ul << 62)
#define STATUS_PREFIX (1ul << 63)
#define STATUS_COUNT(status) ((status) & (STATUS_AGGREGATE - 1))

// Stores word `at`, without injected faults. `state` is STATUS_AGGREGATE or STATUS_PREFIX.
static inline void store_status(volatile __global LOOK_WORD* words, ulong at, ulong state, ulong count, uint epoch)
{
    if (HAS_EPOCH) {
        STORE_STATUS(words + at, (LOOK_WORD)(state | (ulong)epoch << EPOCH_SHIFT | count));
    } else {
        const LOOK_WORD bits = (LOOK_WORD)(((uint)(state >> 62) + 2 * epoch) & 3);
        STORE_STATUS(words + at, bits << COUNT_BITS | (LOOK_WORD)count);
    }
}

// Publishes word `slot` of the `slots` of `tile`. Without HAS_EPOCH no fault drops a prefix: each word must end as one.
static inline void publish(
    volatile __global LOOK_WORD* words, uint slots, uint slot, ulong tile, ulong state, ulong count, uint epoch)
{
    const ulong at = tile * slots + slot;
    if (state == STATUS_AGGREGATE) {
        delay_publish(tile, words + at);
    }
    const bool may_be_missing = HAS_EPOCH ? true : state == STATUS_AGGREGATE;
    if (!(is_dropped(tile) && may_be_missing)) {
        store_status(words, at, state, count, epoch);
    }
}

// The status in a word.
static inline ulong status_of(LOOK_WORD word, uint epoch)
{
    if (HAS_EPOCH) {
        const ulong status = word - ((ulong)epoch << EPOCH_SHIFT);
        return STATUS_COUNT(status) >> EPOCH_SHIFT == 0 ? status : 0;
    }
    const uint bits = ((uint)(word >> COUNT_BITS) - 2 * epoch) & 3;
    return (ulong)bits << 62 | (word & (((LOOK_WORD)1 << COUNT_BITS) - 1));
}

#endif
