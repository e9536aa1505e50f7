// Stable radix sort of keys, and of values with them, by bits [begin, end) of each key's number `ordered`
// (lib/keys.cl):
//
//     out[j] = in[i],  where j = |{k : number[k] < number[i]}| + |{k < i : number[k] == number[i]}|
//
// Bytes: a pass reads the keys twice and writes them once; it reads and writes the values once. With LOOK_BACK a pass
// reads and writes the keys once. It also reads and writes status words (sort_scatter.cl). One further kernel reads the
// keys once.
//
// Passes sort by one digit of 8 bits each, from the least significant digit on; the last digit may have fewer. If begin
// == end, one pass copies the keys. Keys move unchanged, so that keys with equal numbers keep their bits. Here no
// number is stored, and not every kernel computes it:
//
//     sort_counts, sort_histograms:  compute the number of each key
//     sort_scatter:                  mostly takes the digit from the key alone (digit_of_key of lib/keys.cl)
//
// Other sorts do store numbers: sort_in_place.cl in the buffer that it sorts, and sort_segments_gpu.cl in local memory,
// there without FLOAT_KEYS.
//
// A pass reads keys from one of the buffers `in`, `out` and `spare`, and writes them to another. Its code
// (lib/radix.cl) names both, or skips the pass. Of several passes, each one whose digit is the same in all keys is
// skipped. If that holds for all passes, the first one runs. Even one tile of keys takes these kernels. Part g has
// `tiles` tiles of TILE keys, at least one. d is a digit:
//
//     for each pass p:
//         sort_counts:   table[d][g] = keys of part g with digit d
//         sort_passes:   only if there are several passes, after sort_counts of pass 0: which of them are needed
//         sort_offsets:  table[d][g] = sum of table[d][h] over h < g; totals[d] = sum over all parts
//         sort_scatter:  to[sum of totals below d + table[d][g] + rank within the part] = key
//
//     with LOOK_BACK, where a part is one tile:
//         sort_histograms:  totals[p][d] = keys whose digit of pass p is below d, for all passes; which passes are
//                           needed
//         for each pass p:
//             sort_scatter:  to[totals[p][d] + keys with digit d in earlier tiles + rank within the tile] = key
//
// With SEGMENTS, and without LOOK_BACK, these kernels sort the segments that are too long for sort_segments.cl. Each
// segment is sorted in its own range. Parts are then parts of a segment. Each segment has a table and totals of its
// own. A work-group of sort_offsets then scans rows of several tables (sort_offsets.cl).
//
// With LENGTH_T (lib/length.cl) the number of keys is a count in memory. The launches are those for the capacity, and
// the work-groups share the first n keys equally. Elements of the outputs from index n on do not change.
//
// All regions of scratch begin at multiples of 16 bytes.
//
// Merrill and Grimshaw 2011; Adinets and Merrill 2022 (Onesweep).
#include "lib/types.cl"
#include "lib/subgroup.cl"
#include "lib/aside.cl"
#include "lib/ticket.cl"
#include "lib/ended.cl"
#include "lib/keys.cl"
#include "lib/segments.cl"
#include "lib/length.cl"
#include "lib/radix.cl"

// The host sets DEVICE_CPU for CPU drivers. For this file and sort_segments.cl it also sets DEVICE_CPU for a GPU with
// too little local memory. In scan.cl such a GPU has WG == 1 instead, which selects scan_cpu.cl.
#ifdef DEVICE_CPU
#include "sort_cpu.cl"
#else
#if LOOK_BACK
#include "sort_histograms.cl"
#else
#include "sort_counts.cl"
#endif
#include "sort_scatter.cl"
#endif
#if !LOOK_BACK
#include "sort_offsets.cl"
#endif
