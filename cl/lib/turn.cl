// Elements of any type, moved as units; and blocks of elements, transposed in registers.
//
// E: an element: UNITS units of type UNIT, of UNIT_BYTES bytes each.
// With BLOCK, on GPUs: a block is BLOCK x BLOCK elements, and BLOCK elements fill a vector V. SIDE x SIDE blocks are a
// tile in local memory.

#ifndef UNIT
#define UNIT uint
#define UNIT_BYTES 4
#define UNITS 1
#endif

#if UNITS == 1
typedef UNIT E;
#else
typedef struct {
    UNIT unit[UNITS];
} E;
#endif

// An array that is indexed by a loop counter is in registers only if the loop is unrolled.
#define UNROLL _Pragma("unroll")

#if defined(BLOCK) && !defined(DEVICE_CPU)

// BLOCK elements. 8 bytes are a scalar, since the transpose computes with them.
#if BLOCK * UNIT_BYTES == 8
#define V ulong
#else
#define V uint4
#endif

// store_transposed(to, x) stores the columns of the block whose rows are x[0..BLOCK): column c goes to to[c * SIDE].
// The lowest byte of a word is its first.
#if UNIT_BYTES == 1

// The columns of 4 x 4 bytes, with the rows a, b, c, d.
static inline void transpose_bytes(uint a, uint b, uint c, uint d, uint* to)
{
    const uint even_ab = (a & 0x00ff00ffu) | (b & 0x00ff00ffu) << 8,
               odd_ab = (a >> 8 & 0x00ff00ffu) | (b & 0xff00ff00u);
    const uint even_cd = (c & 0x00ff00ffu) | (d & 0x00ff00ffu) << 8,
               odd_cd = (c >> 8 & 0x00ff00ffu) | (d & 0xff00ff00u);
    to[0] = (even_ab & 0xffffu) | even_cd << 16;
    to[1] = (odd_ab & 0xffffu) | odd_cd << 16;
    to[2] = even_ab >> 16 | (even_cd & 0xffff0000u);
    to[3] = odd_ab >> 16 | (odd_cd & 0xffff0000u);
}

static inline void store_transposed(__local V* to, const V* x)
{
    for (uint part = 0; part < 2; part++) {
        uint low[4], high[4];
        const uint shift = 32 * part;
        transpose_bytes(x[0] >> shift, x[1] >> shift, x[2] >> shift, x[3] >> shift, low);
        transpose_bytes(x[4] >> shift, x[5] >> shift, x[6] >> shift, x[7] >> shift, high);
        for (uint k = 0; k < 4; k++) {
            to[(4 * part + k) * SIDE] = (ulong)high[k] << 32 | low[k];
        }
    }
}

#elif UNIT_BYTES == 2

static inline void store_transposed(__local V* to, const V* x)
{
    for (uint part = 0; part < 2; part++) {
        const uint shift = 32 * part, a = x[0] >> shift, b = x[1] >> shift, c = x[2] >> shift, d = x[3] >> shift;
        const uint even_ab = (a & 0xffffu) | b << 16, even_cd = (c & 0xffffu) | d << 16;
        const uint odd_ab = a >> 16 | (b & 0xffff0000u), odd_cd = c >> 16 | (d & 0xffff0000u);
        to[2 * part * SIDE] = (ulong)even_cd << 32 | even_ab;
        to[(2 * part + 1) * SIDE] = (ulong)odd_cd << 32 | odd_ab;
    }
}

#elif UNIT_BYTES == 4

static inline void store_transposed(__local V* to, const V* x)
{
    const V a = x[0], b = x[1], c = x[2], d = x[3];
    // Vectors are put together from pairs, because Oclgrind 21.10 crashes if one shuffle takes components of four
    // vectors.
    to[0] = (V)((uint2)(a.x, b.x), (uint2)(c.x, d.x));
    to[SIDE] = (V)((uint2)(a.y, b.y), (uint2)(c.y, d.y));
    to[2 * SIDE] = (V)((uint2)(a.z, b.z), (uint2)(c.z, d.z));
    to[3 * SIDE] = (V)((uint2)(a.w, b.w), (uint2)(c.w, d.w));
}

#elif UNIT_BYTES == 8

static inline void store_transposed(__local V* to, const V* x)
{
    to[0] = (V)(x[0].xy, x[1].xy);
    to[SIDE] = (V)(x[0].zw, x[1].zw);
}

#else

static inline void store_transposed(__local V* to, const V* x) { to[0] = x[0]; }

#endif

#endif
