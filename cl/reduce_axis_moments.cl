// Moments along one axis: record o has the moments (lib/moments.cl) of the `len` elements of line o.
//
// Bytes: reads each element once, writes a record of 48 bytes for each output.
//
//     axis_moments: for each part of each line:
//         take:  the moments of each quad of each chunk
//         push:  joins those of the same quad in all chunks: 2i with 2i + 1, then their pairs, and so on
//         with one part: joins the quads, and writes the record; else writes the quads
//     axis_moments_parts: joins the same quads of all parts, then the quads, and writes the record
//
// A chunk is 16 rows of LANES lanes along the axis: lane j has the elements j, j + LANES, ... of its chunk. A quad is
// four neighbouring lanes. LANES is 32, or the smallest power of two, at least 4, for which a line is one chunk. So the
// order of floats depends on `len` alone.
//
// A work-group has `columns` outputs. Each work-item of an output has one quad of contiguous chunks. `across` is set if
// neighbouring outputs are closer in memory than neighbouring quads. Then neighbouring work-items have neighbouring
// outputs, else neighbouring quads. If outputs are few, or lines long, the axis is cut into parts of `run` chunks, a
// power of two.
//
// ALIGNED: the host promises that every four elements of a line, from a multiple of four on, are aligned as one vector.
#include "lib/types.cl"
#include "lib/lines.cl"
#include "lib/moments.cl"

#ifndef WG
#define WG 256
#define LANES 32
// Rows of a chunk, a power of two: fewer than 16 only with 4 lanes, or for integers, whose order does not matter.
#define ROWS 16
#endif
#define CHUNK (ROWS * LANES)
#define QUADS (LANES / 4)
#define UNROLL _Pragma("unroll")

#include "lib/moments_tree.cl"

#if WG == 1
#include "reduce_axis_moments_cpu.cl"
#else
#include "reduce_axis_moments_gpu.cl"
#endif
