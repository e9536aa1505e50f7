// The segments of a segmented sort, as its kernels know them; sort_segments_mark computes them. All of it is in scratch memory.
//
// The header has 32-bit words, and 64-bit words from FIRST on:
//
//     BAD                nonzero if an offset exceeds the next one, which makes all else invalid
//     LISTED, FEW, MANY  the lengths of the lists
//     TILES              the number of parts of the long segments
//     FIRST              start of the first segment
//     LAST_END           end of the last segment
//
// A work-group of sort_segments_small has a window of WINDOW keys, and a tile of TILE keys that begins with the window.
// It sorts the segments that start in the window and end in the tile. All other segments are in a list. If one has at
// most TILE keys, `listed` has its start and end. Else it is long, and sort.cl sorts it in parts (lib/radix.cl).
//
// Names in the code call these parts tiles, though they are no tiles of TILE keys. `bounds` has start and end of a long
// segment, and `tiles` the number of its first part and its number of parts. Long segments of at most FEW_TILES parts
// are listed from the front, the others from the back. `owners` has the segment of each part.

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
