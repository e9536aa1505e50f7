// Histogram: counts[b] = #{i : slot(in[i]) == b}.
//
// A table has a slot for each bin, then three for samples below, above and NaN, so that every sample has a slot
// (lib/bins.cl).
//
// Bytes: reads the samples once for each range of bins; writes and reads the tables.
//
//     zero:   tables = 0
//     local:  work-group g of range r:  tables[g][slots of r] = its samples, counted in local memory
//     global: tables[g mod count][slot] += 1 for each sample of work-group g, with atomics
//     merge:  counts[bin] (+)= sum over tables; outside[k] (+)= likewise
//
// With ONE_PASS the work-groups of `local` may add their counts to one table. The work-group that finishes last writes
// out this table.
//
// One launch counts at most 2^31 samples, so that counters and indices have 32 bits; the host splits longer inputs.
//
// The file is built in three ways. With ZERO it has the kernel that zeroes tables. With MERGE it needs C, the type of
// the caller's counters. Else it needs IN, the type of samples, and T and MAP of lib/bins.cl.
#include "lib/types.cl"

#ifndef WG
#define WG 256
#endif

#ifdef MERGE
#include "histogram_merge.cl"
#elif defined(ZERO)
#include "histogram_zero.cl"
#else
#include "histogram_count.cl"
#endif
