// The segments of a segmented sort, as its kernels know them; sort_segments_mark computes them. All of it is in scratch memory.
//
// 32-bit words of the header: BAD, nonzero if an offset exceeds the next one, which makes all else invalid; LISTED, FEW and MANY,
// the lengths of the lists; TILES, the number of tiles of the long segments. 64-bit words: FIRST, the begin of the first segment,
// and LAST_END, the end of the last one.
//
// A segment that does not end in the tile of its window (cl/sort_segments.cl) is in a list. If it fits a tile, `listed` has its
// begin and end. Else it is long: `bounds` has its begin and end, and `tiles` the number of its first tile and of its tiles. Long
// segments of at most FEW_TILES tiles are listed from the front, the others from the back. `owners` has the segment of each tile.
#ifndef OCLPRIM_SEGMENTS_CL
#define OCLPRIM_SEGMENTS_CL

#define BAD 0
#define LISTED 1
#define FEW 2
#define MANY 3
#define TILES 4
// Indices of 64-bit words.
#define FIRST 3
#define LAST_END 4

#define FEW_TILES 32

// The header's LISTED, FEW, MANY or TILES; 0 if the offsets are not sorted.
static inline uint count_of(__global const uint* header, const uint which)
{
    return header[BAD] != 0 ? 0 : header[which];
}

#endif
