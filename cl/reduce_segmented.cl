// Segmented reduction: out[s] = x[offsets[s]] op ... op x[offsets[s + 1] - 1]. With KEYED the segments are the runs of
// equal keys.
//
// lib/segment_nodes.cl defines the order of the operations, which is the same for all variants.
#include "lib/segment_nodes.cl"
#ifndef KEYED
#include "lib/segment_offsets.cl"
#endif

#if WG == 1
#include "reduce_segmented_cpu.cl"
#else
#include "lib/segment_tiles.cl"
#ifdef KEYED
#include "reduce_segmented_keys.cl"
#else
#include "reduce_segmented_gpu.cl"
#endif
#endif
