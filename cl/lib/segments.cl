// What kernels know of the segments of a sort. `sort_segments_mark` finds it; all of it lies in scratch.
//
// The header: whether an offset is beyond the next one, so that nothing else here means anything; how many segments are in
// each list; the tiles of those that are long; where the first segment begins, and the last one ends.
//
// Segments that do not end within the tile of their window (cl/sort_segments.cl) are listed: those that fit a tile by where
// they begin and end, in `listed`; longer ones in `bounds`, likewise, and `tiles` has the number of the first of their tiles, and
// how many they have. Long ones of up to FEW_TILES tiles are listed from the front, others from the back. `owners` names the
// segment of each tile.
#ifndef OCLPRIM_SEGMENTS_CL
#define OCLPRIM_SEGMENTS_CL

#define BAD 0
#define LISTED 1
#define FEW 2
#define MANY 3
#define TILES 4
// As ulongs.
#define FIRST 3
#define LAST_END 4

#define FEW_TILES 32

// One of the counts.
static inline uint count_of(__global const uint* header, const uint which)
{
    return header[BAD] != 0 ? 0 : header[which];
}

#endif
