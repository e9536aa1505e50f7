// The lists of segments that the kernels of a segmented sort share. sort_segments_mark writes them to scratch memory.
//
// The header has 32-bit words, and 64-bit words from FIRST on:
//
//     BAD                nonzero if an offset exceeds the next one, which makes all else invalid
//     LISTED, FEW, MANY  the lengths of the lists
//     PART_COUNT         the number of parts of the long segments
//     FIRST              start of the first segment
//     LAST_END           end of the last segment
//
// A work-group of sort_segments_small has a window of WINDOW keys, and a tile of TILE keys that begins with the window.
// Segments are sorted in three ways:
//
//     starts in the window, ends in the tile:       sort_segments_small sorts it with its window
//     at most TILE keys, but ends after that tile:  `listed` has start and end; a second launch of the kernel sorts it
//     more than TILE keys, a long segment:          sort.cl sorts it in parts (lib/radix.cl)
//
// For each long segment, `bounds` has start and end, and `parts` the number of its first part and its number of parts.
// `owners` has the segment of each part. Long segments of at most FEW_PARTS parts are listed from the front, the others
// from the back.

#define BAD 0
#define LISTED 1
#define FEW 2
#define MANY 3
#define PART_COUNT 4
// Indices of 64-bit words.
#define FIRST 3
#define LAST_END 4

#define FEW_PARTS 32

// The header's LISTED, FEW, MANY or PART_COUNT; 0 if the offsets are not sorted.
static inline uint count_of(__global const uint* header, const uint which)
{
    return header[BAD] != 0 ? 0 : header[which];
}
