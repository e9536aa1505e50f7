// The numbers of results, tiles and aggregates of a scan whose number of elements may be a count. Needs length.cl and
// TILE.
//
// With LENGTH_T the number of elements is in memory (lib/length.cl). The arguments `outputs` and `tiles` are those of
// the capacity, and `tiles` determines the offsets of aggregates and status words. OUTPUTS and OWN_TILES are those of n
// elements. In levels that n elements do not need, prefixes are identities, so results have the same bits. SPINE_COUNT
// is the number of entries of a level, and SPINE_PARAMS are the parameters that it needs.
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
