// A keyed bijection on 0 .. n, by which sources shuffle (Mitchell, Stokes, Frank and Holmes 2022).
//
//     shuffled(i) = the first of b(i), b(b(i)), ... that is below n
//
// b is a bijection on numbers of `bits` bits, where 2^bits is the smallest power of two that is at least n. It has 24
// rounds. A round changes one half of the bits by XOR with a function of the other half and of a key. So it is a
// bijection. The key advances from round to round as in Philox. Fewer than half of the numbers are n or more, so b runs
// less than twice on average.

// Mixes by the last steps of MurmurHash3 (Appleby 2011).
static inline uint shuffle_mix(uint x, uint key)
{
    x ^= key;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

static inline ulong source_shuffled(ulong i, const ulong n, const ulong bits, const ulong seed)
{
    const uint low_bits = (uint)(bits / 2), high_bits = (uint)bits - low_bits;
    const uint low_mask = (uint)((1ul << low_bits) - 1), high_mask = (uint)((1ul << high_bits) - 1);
    do {
        uint low = (uint)i & low_mask, high = (uint)(i >> low_bits) & high_mask;
        uint even = (uint)seed, odd = (uint)(seed >> 32);
        for (uint round = 0; round < 12; round++) {
            high ^= shuffle_mix(low, even) & high_mask;
            low ^= shuffle_mix(high, odd) & low_mask;
            even += 0x9e3779b9u;
            odd += 0xbb67ae85u;
        }
        i = (ulong)high << low_bits | low;
    } while (i >= n);
    return i;
}
