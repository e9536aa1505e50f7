// Splits a finite float into parts: (-1)^negative * size * 2^position times the least positive float. Also rounds such
// a number to a float.
//
// REAL is the type, float unless REAL_BYTES is 8. Floats are taken apart as integers, since a device may flush
// subnormals.

#if REAL_BYTES == 8
#define REAL double
#define BITS ulong
#define AS_BITS_OF(x) as_ulong(x)
#define AS_REAL(x) as_double(x)
#define PRECISION 53
#define NO_NUMBER 0x7ff // exponent field of infinities and NaN
#else
#define REAL float
#define BITS uint
#define AS_BITS_OF(x) as_uint(x)
#define AS_REAL(x) as_float(x)
#define PRECISION 24
#define NO_NUMBER 0xff
#endif

#define EXPONENT(x) ((uint)(AS_BITS_OF(x) >> (PRECISION - 1)) & NO_NUMBER)

// The position of the lowest bit of a float, from its exponent field.
static inline uint position_of(const uint field)
{
    return max(field, 1u) - 1;
}

// The size of a finite float, in units of 2^position.
static inline BITS size_of(const REAL x, const uint field)
{
    const BITS first = (BITS)1 << (PRECISION - 1), fraction = AS_BITS_OF(x) & (first - 1);
    return field == 0 ? fraction : fraction | first;
}

static inline int is_negative(const REAL x)
{
    return (int)(AS_BITS_OF(x) >> (8 * sizeof(BITS) - 1));
}

// Returns the bits of the float nearest to top * 2^(above - 63) times the least positive float of a type, ties to even.
// The highest bit of `top` is set. Its lowest bit is also set if the exact number has a set bit below those of `top`.
static inline ulong nearest_bits(const ulong top, const int above, const int precision, const ulong infinity)
{
    const ulong half_unit = (ulong)1 << 63;
    if (above < 0) {
        // Half of the least float is a tie, and 0 is even.
        return above == -1 && top > half_unit;
    }
    // A subnormal has fewer bits.
    const int kept = min(precision, above + 1);
    const ulong whole = top >> (64 - kept), part = top << kept;
    const ulong up = part > half_unit || (part == half_unit && (whole & 1));
    // The leading bit of `whole` adds 1 to the exponent field, and so does the carry if `up` rounds to the next power
    // of two.
    const ulong field = min((ulong)(above + 1 - kept), infinity >> (precision - 1));
    return min((field << (precision - 1)) + whole + up, infinity);
}
