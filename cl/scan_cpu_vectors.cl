// A chunk of the scan on CPUs in vectors of 16 lanes, in the order of scan.cl. It is only for scans with VECTORS, which
// is defined if all of this holds:
//
//     device:      a CPU driver, but not Oclgrind
//     operator:    a built-in one without EXACT, so a sum or product with accumulators of f32 or f64
//     elements:    in memory, and not 16-bit floats; results are not 16-bit floats either
//     segments:    none
//
// Needs OP16 and TAKEN16 of lib/op.cl.
//
// Lane l of half h of a chunk is vector 16 h + l of the chunk: element k of it is lane l of column[k].
//
//     take_vectors:      load 16 vectors and transpose them: column[k] = element k of each
//     scan_whole_chunk:  reduce the columns, then a tree scan of 5 levels: 4 by permutations of lanes within each half,
//                        then 1 that joins the halves, without a permutation
//     store_whole_chunk: scan the columns from each lane's prefix on, transpose back, store
#define UNROLL _Pragma("unroll")
#define OUT16 CAT(OUT, 16)
// AT16: the lowest index of the 16 contiguous elements that begin with the i-th. REVERSED16: these elements in the
// order of memory.
#define AT16(i, len) (REVERSE ? (len) - 16 - (i) : (i))
#define REVERSED16(v) (REVERSE ? (v).sfedcba9876543210 : (v))

// Loads 16 vectors of elements, from element `at` on: the k-th elements go to column[k].
static inline void take_vectors(ELEMENT_PARAMS, OFFSET_T at, OFFSET_T n, A16* column)
{
    UNROLL
    for (uint k = 0; k < VEC; k++) {
        column[k] = REVERSED16(TAKEN16(ELEMENTS + AT16(at + 16 * k, n)));
    }
    UNROLL
    for (uint d = 1; d < VEC; d *= 2) {
        A16 row[VEC];
        UNROLL
        for (uint k = 0; k < VEC; k++) {
            row[k] = column[k];
        }
        UNROLL
        for (uint k = 0; k < VEC / 2; k++) {
            column[k] = (A16)(row[2 * k].even, row[2 * k + 1].even);
            column[k + VEC / 2] = (A16)(row[2 * k].odd, row[2 * k + 1].odd);
        }
    }
}

// The inverse of take_vectors(): stores results, from result `at` on.
static inline void store_vectors(__global OUT* out, OFFSET_T at, OFFSET_T outputs, A16* column)
{
    UNROLL
    for (uint d = 1; d < VEC; d *= 2) {
        A16 row[VEC];
        UNROLL
        for (uint k = 0; k < VEC; k++) {
            row[k] = column[k];
        }
        UNROLL
        for (uint k = 0; k < VEC / 2; k++) {
            column[2 * k].even = row[k].lo;
            column[2 * k].odd = row[k + VEC / 2].lo;
            column[2 * k + 1].even = row[k].hi;
            column[2 * k + 1].odd = row[k + VEC / 2].hi;
        }
    }
    UNROLL
    for (uint k = 0; k < VEC; k++) {
        vstore16(CAT(convert_, OUT16)(REVERSED16(column[k])), 0, out + AT16(at + 16 * k, outputs));
    }
}

// One level of the tree scan in the lanes of a vector. Each lane holds the aggregate of its 2^b neighbours. In each
// lane, `low` and `high` have the aggregates of the lower and the upper half of its 2^(b + 1) neighbours. `upper` is
// set in the lanes of the upper half.
static inline void scan_lanes(A16 low, A16 high, CAT(A_BITS, 16) upper, A16* total, A16* prefix)
{
    *prefix = select(*prefix, OP16(low, *prefix), upper);
    *total = OP16(low, high);
}

// Tree scan of a whole chunk's vectors: their prefixes; returns the aggregate of the chunk.
static inline A scan_whole_chunk(ELEMENT_PARAMS, OFFSET_T at, OFFSET_T n, A16* prefix)
{
    const CAT(A_BITS, 16) lane = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    A16 total[2];
    UNROLL
    for (uint h = 0; h < 2; h++) {
        A16 column[VEC];
        take_vectors(ELEMENTS, at + h * 16 * VEC, n, column);
        A16 t = column[0];
        UNROLL
        for (uint k = 1; k < VEC; k++) {
            t = OP16(t, column[k]);
        }
        A16 p = OP_IDENTITY;
        scan_lanes(t.s0022446688aaccee, t.s1133557799bbddff, (lane & 1) != 0, &t, &p);
        scan_lanes(t.s000044448888cccc, t.s22226666aaaaeeee, (lane & 2) != 0, &t, &p);
        scan_lanes(t.s0000000088888888, t.s44444444cccccccc, (lane & 4) != 0, &t, &p);
        scan_lanes(t.s0000000000000000, t.s8888888888888888, (lane & 8) != 0, &t, &p);
        total[h] = t;
        prefix[h] = p;
    }
    prefix[1] = OP16(total[0], prefix[1]);
    return OP(total[0].s0, total[1].s0);
}

// Stores the results of a whole chunk, from the tile's `prefix` and the prefix of the chunk on.
static inline void store_whole_chunk(
    ELEMENT_PARAMS, OFFSET_T at, OFFSET_T n, __global OUT* out, OFFSET_T outputs, A prefix, A chunk, uint inclusive)
{
    A16 vector[2];
    scan_whole_chunk(ELEMENTS, at, n, vector);
    for (uint h = 0; h < 2; h++) {
        A16 column[VEC], acc = OP16((A16)prefix, OP16((A16)chunk, vector[h]));
        take_vectors(ELEMENTS, at + h * 16 * VEC, n, column);
        UNROLL
        for (uint k = 0; k < VEC; k++) {
            const A16 next = OP16(acc, column[k]);
            column[k] = inclusive ? next : acc;
            acc = next;
        }
        store_vectors(out, at + h * 16 * VEC, outputs, column);
    }
}
