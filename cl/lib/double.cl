// Doubles as bits in a ulong, computed with integers. The results are those of IEEE 754 with ties to even. So they are
// the same on devices that lack fp64 or flush subnormals. No argument is NaN. Arguments are finite unless the function
// states otherwise.

#define DOUBLE_SIGN 0x8000000000000000ul
#define DOUBLE_INFINITY 0x7ff0000000000000ul
#define DOUBLE_NAN 0x7ff8000000000000ul
#define DOUBLE_ONE 0x3ff0000000000000ul
#define DOUBLE_HALF 0x3fe0000000000000ul

// A double without its sign is double_digits(x) * 2^double_exponent(x).
static inline int double_exponent(const ulong x)
{
    return max((int)(x >> 52 & 0x7ff), 1) - 1075;
}

static inline ulong double_digits(const ulong x)
{
    return (x & 0xffffffffffffful) | (ulong)((x >> 52 & 0x7ff) != 0) << 52;
}

// Returns the double nearest to m * 2^e, with a sign. The highest bit of m is set. The lowest bit of m may stand for
// all bits after it.
static inline ulong double_rounded(const ulong sign, ulong m, const int e)
{
    int field = e + 63 + 1023;
    if (field < 1) {
        const int shift = 1 - field;
        m = shift > 63 ? 1 : m >> shift | ((m & ((1ul << shift) - 1)) != 0);
        field = 1;
    }
    const ulong kept = m >> 11, rest = m & 0x7ff;
    const ulong up = rest > 0x400 || (rest == 0x400 && (kept & 1) != 0);
    // The highest bit of `kept` adds 1 to the exponent.
    const ulong bits = ((ulong)(field - 1) << 52) + kept + up;
    return sign | (field > 2046 ? DOUBLE_INFINITY : bits);
}

// Returns the double nearest to m * 2^e, with a sign.
static inline ulong double_of(const ulong sign, const ulong m, const int e)
{
    if (m == 0) {
        return sign;
    }
    const int zeros = (int)clz(m);
    return double_rounded(sign, m << zeros, e - zeros);
}

// Returns the double nearest to (high * 2^64 + low) * 2^e, with a sign.
static inline ulong double_of_wide(const ulong sign, const ulong high, const ulong low, const int e)
{
    if (high == 0) {
        return double_of(sign, low, e);
    }
    const int zeros = (int)clz(high);
    const ulong m = high << zeros | low >> 1 >> (63 - zeros);
    return double_rounded(sign, m | ((low << zeros) != 0), e + 64 - zeros);
}

static inline ulong double_product(const ulong a, const ulong b)
{
    const ulong sign = (a ^ b) & DOUBLE_SIGN, m = double_digits(a), n = double_digits(b);
    if (m == 0 || n == 0) {
        return sign;
    }
    const int zeros = (int)clz(m), more = (int)clz(n);
    const ulong x = m << zeros, y = n << more;
    const int e = double_exponent(a) - zeros + double_exponent(b) - more + 64;
    const ulong high = mul_hi(x, y), after = x * y != 0;
    return high >> 63 != 0 ? double_rounded(sign, high | after, e) : double_rounded(sign, high << 1 | after, e - 1);
}

static inline ulong double_sum(const ulong a, const ulong b)
{
    const int ordered = (a & ~DOUBLE_SIGN) >= (b & ~DOUBLE_SIGN);
    const ulong large = ordered ? a : b, small = ordered ? b : a;
    const int e = double_exponent(large) - 10, shift = e + 10 - double_exponent(small);
    // Ten more bits, of which the last stands for all bits after it.
    const ulong m = double_digits(large) << 10, all = double_digits(small) << 10;
    const ulong n = shift > 63 ? all != 0 : all >> shift | ((all & ((1ul << shift) - 1)) != 0);
    const int same = ((a ^ b) & DOUBLE_SIGN) == 0;
    const ulong sum = same ? m + n : m - n;
    return double_of(sum != 0 || same ? large & DOUBLE_SIGN : 0, sum, e);
}

// Returns a number that has the order of a double: -0 equals 0. The double may be infinite.
static inline long double_order(const ulong x)
{
    return x >> 63 != 0 ? -(long)(x & ~DOUBLE_SIGN) : (long)x;
}
