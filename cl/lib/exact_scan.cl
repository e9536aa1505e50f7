// Parts of exact scans: records of tiles, elements as integers of a window, and accumulators.
//
// A tile has TILE elements, and a record: the accumulator of its sum, and the marks of its elements. LEVEL records form
// a group, and each group has one record of the next level. The exclusive prefix of a tile is the sum of the initial
// value and of one record of each level.
//
// Needs types.cl, parts.cl with the REAL of A, and exact.cl.

// Records in a group of a level.
#define LEVEL 64
#define TILE 4096
#define LOG_TILE 12
// Words of a record: the accumulator, and the marks.
#define RECORD (EXACT_WORDS + 1)
// The exponent of the least positive float of A. A bit's position is its exponent minus this one.
#define A_LEAST (EXACT_LEAST / 2)
// Accumulator words that one number can change.
#define PIECES (A_BYTES == 4 ? 3 : 5)
#ifdef REVERSE
#define IN_INDEX(i, n) ((n) - 1 - (i))
#else
#define IN_INDEX(i, n) (i)
#endif

// A two's complement number of 128 bits in units of the window, and the marks of its summands.
typedef struct {
    ulong high, low;
    uint marks;
} Sum;

static inline Sum sum_of(const Sum a, const Sum b)
{
    Sum sum;
    sum.low = a.low + b.low;
    sum.high = a.high + b.high + (sum.low < a.low);
    sum.marks = a.marks | b.marks;
    return sum;
}

static inline Sum difference(const Sum a, const Sum b)
{
    Sum sum;
    sum.low = a.low - b.low;
    sum.high = a.high - b.high - (a.low < b.low);
    sum.marks = 0;
    return sum;
}

static inline Sum no_sum(void)
{
    Sum sum;
    sum.high = 0;
    sum.low = 0;
    sum.marks = 0;
    return sum;
}

// An element in units of 2^low, rounded down. Sets *rest if bits are lost.
static inline Sum window_of(const A x, const int low, uint* rest)
{
    Sum sum = no_sum();
    const uint field = EXPONENT(x);
    sum.marks = marks_of(x, field);
    const ulong size = field == NO_NUMBER ? 0 : (ulong)size_of(x, field);
    const int shift = (int)position_of(field) - low;
    if (shift >= 64) {
        sum.high = size << (shift - 64);
    } else if (shift >= 0) {
        sum.low = size << shift;
        sum.high = size >> 1 >> (63 - shift);
    } else {
        sum.low = shift > -64 ? size >> -shift : 0;
        const int is_cut = (shift > -64 ? sum.low << -shift : 0) != size;
        *rest |= is_cut;
        // A negative number is rounded down, so its magnitude is rounded up.
        sum.low += is_cut && is_negative(x);
    }
    if (is_negative(x)) {
        const uint marks = sum.marks;
        sum = difference(no_sum(), sum);
        sum.marks = marks;
    }
    return sum;
}

static inline A load_element(__global const T* in, const OFFSET_T n, const OFFSET_T i)
{
    const A element = element_to_acc(in[IN_INDEX(min(i, n - 1), n)]);
    return i < n ? element : (A)-0.0f;
}

// Adds a finite number to an accumulator.
INLINED void deposit(EXACT_TABLE words, const A x)
{
    const uint field = EXPONENT(x);
    if (field != NO_NUMBER) {
        add_exact(words, size_of(x, field), (int)position_of(field) + EXACT_ONE, is_negative(x), PIECES);
    }
}

INLINED void deposit_sum(EXACT_TABLE words, Sum sum, const int low)
{
    const int negative = (int)(sum.high >> 63);
    sum = negative ? difference(no_sum(), sum) : sum;
    add_exact(words, sum.low, low + EXACT_ONE, negative, 5);
    add_exact(words, sum.high, low + EXACT_ONE + 64, negative, 5);
}

// The lowest position of a window for elements below 2^most and a prefix below 2^bits.
static inline int window_for(const uint most, const int bits)
{
    return max(max(most == 0 ? 0 : (int)most + LOG_TILE, bits) + 2 - 127, 0);
}

// Word w of the exclusive prefix of a tile: the sum over its records at all levels.
static inline int prefix_word(__global const int* records, OFFSET_T tile, const OFFSET_T tiles, const uint w)
{
    int sum = 0;
    OFFSET_T first = 0, count = tiles;
    while (count > 1) {
        const int word = records[(ulong)(first + tile) * RECORD + w];
        sum = w == EXACT_WORDS ? sum | word : sum + word;
        first += count;
        count = count / LEVEL + (count % LEVEL != 0);
        tile /= LEVEL;
    }
    return sum;
}
