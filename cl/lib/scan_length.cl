// The tiles of a scan whose number of elements may be in memory. Needs length.cl and TILE.
//
// With LENGTH_T the number of elements is in memory (lib/length.cl). The arguments `outputs` and `tiles` are those of
// the capacity, and `tiles` determines the offsets of aggregates and status words. OUTPUTS and OWN_TILES are those of n
// elements. For more levels than n elements need, prefixes are identities, so results have the same bits. SPINE_PARAMS
// and SPINE_COUNT: the entries of a level.
#ifdef LENGTH_T
#define OUTPUTS (n + (outputs - capacity))
#define OWN_TILES tiles_of(OUTPUTS)
#define WHOLE_TILES min(tiles, (OFFSET_T)(n / TILE))
#define SPINE_PARAMS , LENGTH_PARAMS, const OFFSET_T outputs, const uint level
#define SPINE_COUNT entries_of(OWN_TILES, level)
static inline OFFSET_T tiles_of(const OFFSET_T outputs) { return outputs / TILE + (outputs % TILE != 0); }
static inline OFFSET_T entries_of(const OFFSET_T tiles, const uint level)
{
    return tiles == 0 ? 0 : ((tiles - 1) >> (5 * level)) + 1;
}
#else
#define OUTPUTS outputs
#define OWN_TILES tiles
#define WHOLE_TILES tiles
#define SPINE_PARAMS
#define SPINE_COUNT count
#endif
