// Stable sort of each segment of an array. Keys outside of all segments count as segments of one key.
//
// Bytes, if segments are short: keys and values are read once and written once. The segment-head flags, n / 8 bytes,
// are cleared, set and read.
//
//     sort_segments_mark:    set a segment-head flag for each segment; list the long segments
//     sort_segments_owners:  the segment of each part of the longest ones (lib/segments.cl)
//     sort_segments_small:   each work-group sorts the segments that begin in its window of WINDOW keys, and end in the
//                            tile of TILE keys that begins with the window; launched once more, it sorts the listed
//                            segments
//
// Segments of more than TILE keys are sorted by sort.cl.
//
// On GPUs sort_segments_small sorts in local memory (sort_segments_gpu.cl). On CPU drivers, and on GPUs with too little
// local memory, it sorts in global memory (sort_segments_cpu.cl).
#include "lib/types.cl"
#include "lib/keys.cl"
#include "lib/segments.cl"

// The type of the offsets. OFFSET_T is ulong from 2^31 keys or 2^31 segments on.
#ifndef S
#define S uint
#endif
// VALUE_BYTES == 0: there are no values.
#ifndef VALUE_BYTES
#define VALUE_BYTES 0
#define VALUE uint
#endif
// ITEMS: keys of a work-item; odd on GPUs, so that the first keys of neighbouring work-items are in different banks of
// local memory. WINDOW: a multiple of 32 below TILE.
#ifndef WG
#define WG 256
#define ITEMS 15
#define WINDOW (TILE * 4 / 5 / 32 * 32)
#endif
#define TILE (WG * ITEMS)
#define UNROLL _Pragma("unroll")
// NVIDIA's compiler obeys a register limit only if the kernel does not fix its work-group size. The host defines
// INLINE_PTX for this compiler alone. lib/subgroup.cl would define it for all others, too, but this file does not
// include it.
#ifdef INLINE_PTX
#define GROUP
#else
#define GROUP __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif

// The order of keys: the sort compares those bits of their numbers that are set in `sorted_by`. `flip` and `always` are
// those of lib/keys.cl.
typedef struct {
    WORD flip, always, sorted_by;
} order_t;

INLINED WORD number_of(const KEY key, const order_t* order)
{
    return ordered(key, order->flip, order->always) & order->sorted_by;
}

// Lists a segment of at most TILE keys.
INLINED void list_segment(
    volatile __global uint* header, __global OFFSET_T* listed, const uint listed_room, const OFFSET_T begin,
    const OFFSET_T end)
{
    const uint slot = atomic_inc(header + LISTED);
    if (slot < listed_room) {
        listed[2 * (ulong)slot] = begin;
        listed[2 * (ulong)slot + 1] = end;
    }
}

// Lists a segment of `count` parts. If it has few parts, it is listed from the front, and the owners of its parts are
// set. Else it is listed from the back.
INLINED void list_long_segment(
    volatile __global uint* header, __global OFFSET_T* bounds, __global uint* parts, __global uint* owners,
    const uint long_room, const uint part_room, const OFFSET_T begin, const OFFSET_T end, const uint count)
{
    const int few = count <= FEW_PARTS;
    const uint index = atomic_inc(header + (few ? FEW : MANY));
    const uint first = atomic_add(header + PART_COUNT, count);
    if (index < long_room) {
        const uint slot = few ? index : long_room - 1 - index;
        bounds[2 * (ulong)slot] = begin;
        bounds[2 * (ulong)slot + 1] = end;
        parts[2 * (ulong)slot] = first;
        parts[2 * (ulong)slot + 1] = count;
        for (uint j = 0; j < (few ? count : 0); j++) {
            if (first < part_room && j < part_room - first) {
                owners[first + j] = slot;
            }
        }
    }
}

// Segment i is [offsets[i], offsets[i + 1]). Parts of long segments have `share` keys; the last part may have fewer. If
// the offsets are sorted, the lists have room for all segments that they get.
__kernel GROUP void sort_segments_mark(
    __global const S* offsets_base, const ulong offsets_offset, const OFFSET_T segments, const OFFSET_T n,
    __global uchar* scratch, const ulong header_at, const ulong heads_at, const ulong listed_at, const ulong bounds_at,
    const ulong parts_at, const ulong owners_at, const uint listed_room, const uint long_room, const uint part_room,
    const uint share)
{
    __global const S* offsets = offsets_base + offsets_offset;
    volatile __global uint* header = (volatile __global uint*)(scratch + header_at);
    volatile __global uint* heads = (volatile __global uint*)(scratch + heads_at);
    __global OFFSET_T* listed = (__global OFFSET_T*)(scratch + listed_at);
    __global OFFSET_T* bounds = (__global OFFSET_T*)(scratch + bounds_at);
    __global uint* parts = (__global uint*)(scratch + parts_at);
    __global uint* owners = (__global uint*)(scratch + owners_at);
    if (get_global_id(0) == 0) {
        __global ulong* ends = (__global ulong*)(scratch + header_at);
        ends[FIRST] = min((ulong)offsets[0], (ulong)n);
        ends[LAST_END] = min((ulong)offsets[segments], (ulong)n);
    }
    for (OFFSET_T i = get_global_id(0); i < segments; i += get_global_size(0)) {
        const OFFSET_T begin = (OFFSET_T)min((ulong)offsets[i], (ulong)n);
        const OFFSET_T end = (OFFSET_T)min((ulong)offsets[i + 1], (ulong)n);
        if (begin > end) {
            atomic_or(header + BAD, 1u);
        }
        if (begin < end) {
            const OFFSET_T len = end - begin;
            atomic_or(heads + begin / 32, 1u << (uint)(begin % 32));
            if (begin % WINDOW + len > TILE) {
                if (len <= TILE) {
                    list_segment(header, listed, listed_room, begin, end);
                } else {
                    list_long_segment(
                        header, bounds, parts, owners, long_room, part_room, begin, end, (uint)((len - 1) / share) + 1);
                }
            }
        }
    }
}

// Sets the owners of the parts of segments with more than FEW_PARTS parts.
__kernel GROUP void sort_segments_owners(
    __global uchar* scratch, const ulong header_at, const ulong parts_at, const ulong owners_at, const uint long_room)
{
    const uint many = count_of((__global const uint*)(scratch + header_at), MANY);
    __global const uint* parts = (__global const uint*)(scratch + parts_at);
    __global uint* owners = (__global uint*)(scratch + owners_at);
    for (uint k = get_group_id(0); k < many; k += get_num_groups(0)) {
        const uint slot = long_room - 1 - k;
        const uint first = parts[2 * (ulong)slot], count = parts[2 * (ulong)slot + 1];
        for (uint j = get_local_id(0); j < count; j += WG) {
            owners[first + j] = slot;
        }
    }
}

// Bits of `mode`. INDICES: the values are the indices of the keys in `in`. NO_KEYS: the sorted keys are not an output.
#define INDICES 1
#define NO_KEYS 2
#if VALUE_BYTES > 0
#define VALUE_PARAMS                                                                                                   \
    , __global const VALUE *values_in_base, const ulong values_in_offset, __global VALUE *values_out_base,             \
        const ulong values_out_offset, const ulong values_spare_at, const uint mode
#define VALUES_IN (values_in_base + values_in_offset)
#define VALUES_OUT (values_out_base + values_out_offset)
#define VALUES_SPARE ((__global VALUE*)(scratch + values_spare_at))
#define MODE mode
#else
#define VALUE_PARAMS
#define VALUES_IN ((__global const VALUE*)0)
#define VALUES_OUT ((__global VALUE*)0)
#define VALUES_SPARE ((__global VALUE*)0)
#define MODE 0
#endif

// Word i of the segment-head flags. The segments are in [first, end); all keys outside of this range have flags, too.
static inline uint heads_of(__global const uint* heads, const ulong i, const ulong first, const ulong end)
{
    const ulong from = 32 * i;
    uint word = heads[i];
    if (from < first) {
        word |= first - from < 32 ? (1u << (uint)(first - from)) - 1 : ~0u;
    }
    if (from + 32 > end) {
        word |= from < end ? ~0u << (uint)(end - from) : ~0u;
    }
    return word;
}

static inline uint lowest_bit(const uint x)
{
    return 31 - clz(x & (0 - x));
}

#ifdef DEVICE_CPU
#include "sort_segments_cpu.cl"
#else
#include "sort_segments_gpu.cl"
#endif
