// Samples of a histogram that are loaded together. Needs types.cl, IN and VEC.

// 16 bytes of samples; bytes are extracted from words.
#if VEC == 16
#define BODY uint4
#else
#define BODY TV
#endif
typedef union {
    BODY all;
    uint words[4];
    IN one[VEC];
} Samples;

// Returns sample k. Where k is a constant, no sample leaves the registers.
INLINED IN sample_of(const Samples* samples, const uint k)
{
    return VEC == 16 ? (IN)(samples->words[k / 4] >> 8 * (k % 4)) : samples->one[k];
}
