// Stores contiguous results: VEC elements of type OUT, one for each element in a 16-byte vector of T. Needs types.cl.

// OUT_RUN: 16-byte vectors of these results.
#ifndef OUT_BYTES
#define OUT_BYTES T_BYTES
#endif
#define OUT_RUN (OUT_BYTES / T_BYTES)
#if OUT_BYTES == 1
#define OUTV CAT(OUT, 16)
#define OUT_VLOAD vload16
#define OUT_VSTORE vstore16
#elif OUT_BYTES == 2
#define OUTV CAT(OUT, 8)
#define OUT_VLOAD vload8
#define OUT_VSTORE vstore8
#elif OUT_BYTES == 4
#define OUTV CAT(OUT, 4)
#define OUT_VLOAD vload4
#define OUT_VSTORE vstore4
#else
#define OUTV CAT(OUT, 2)
#define OUT_VLOAD vload2
#define OUT_VSTORE vstore2
#endif

// Stores run[0 .. VEC] from p on.
static inline void store_run(__global OUT* p, const OUT* run)
{
#if OUT_BYTES < T_BYTES
    for (uint j = 0; j < VEC; j++) {
        p[j] = run[j];
    }
#else
    for (uint v = 0; v < OUT_RUN; v++) {
#ifdef ALIGNED
        ((__global OUTV*)p)[v] = OUT_VLOAD(v, run);
#else
        OUT_VSTORE(OUT_VLOAD(v, run), v, p);
#endif
    }
#endif
}
