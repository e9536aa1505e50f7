// The keys of arg-min and arg-max. If ENDS is 1, the smallest element is wanted, or with ARG_MAX the largest. If ENDS
// is 2, both are wanted, the smallest first. Needs types.cl.
//
// The element with the smallest key wins. NaN has the lowest key. Keys of ARG_MAX, and of the second of two ENDS, are
// complements.

#ifdef A_FLOAT
#define KEY_LOWEST A_BITS_LOWEST
#define KEY_HIGHEST A_BITS_HIGHEST
#else
#ifndef A_HIGHEST
#define A_HIGHEST 0
#endif
#define KEY_HIGHEST ((KEY_T)A_HIGHEST)
#endif

#if ENDS == 2
#define END_KEY(key, e) ((e) == 0 ? (key) : (KEY_T)~(key))
#elif defined(ARG_MAX)
#define END_KEY(key, e) ((KEY_T)~(key))
#else
#define END_KEY(key, e) (key)
#endif

// The key of an element at end e: the smallest wins. Among floats, only NaN has the lowest key, and none has the
// highest.
static inline KEY_T key_at(const A x, const uint e)
{
#ifdef A_FLOAT
    return x != x ? KEY_LOWEST : END_KEY(key_of(x), e);
#else
    return END_KEY(x, e);
#endif
}
