// Permutation: moves elements from one N-dimensional layout to another, with the axes in any order.
//
// Elements are counted along the output's axes. Element i has an index k along each of `dims` axes. It lies at the sum
// of k * from in the input, and of k * to in the output. Axes come innermost first. A UNIT is an element, a part of
// one, or several that are neighbours on both sides: the host takes the widest that fits.
//
//     permute_gather  a work-item moves EACH units, WG apart, so that neighbouring work-items write neighbours
//     permute_runs    a work-group is one work-item, which moves a run of units, row by row: for CPU drivers
//
// Negative strides wrap; `first_in` is the offset of the first unit. The host promises that no two units have the same
// offset in the output, and that input and output do not overlap. Bytes: reads and writes every unit once.
#ifndef UNIT
#define UNIT uint
#define OFFSET_T uint
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define OFFSET8 CAT(OFFSET_T, 8)
// The axes. i / length is mul_hi(i, magic) >> shift, for i below 2^31, or 2^63 where offsets are wide.
#define AXES \
    const uint dims, const OFFSET_T first_in, const OFFSET8 length, const OFFSET8 magic, const uint8 shift, \
    const OFFSET8 from, const OFFSET8 to

// Adds the offsets of unit i from the first one to *in and *out.
static inline void find_unit(
    OFFSET_T i, uint dims, OFFSET8 length, OFFSET8 magic, uint8 shift, OFFSET8 from, OFFSET8 to, OFFSET_T* in,
    OFFSET_T* out)
{
    OFFSET_T q, k;
#define STEP(d, s)                     \
    if (dims == d) {                   \
        *in += i * from.s;             \
        *out += i * to.s;              \
        return;                        \
    }                                  \
    q = mul_hi(i, magic.s) >> shift.s; \
    k = i - q * length.s;              \
    *in += k * from.s;                 \
    *out += k * to.s;                  \
    i = q;
    STEP(1, s0)
    STEP(2, s1)
    STEP(3, s2)
    STEP(4, s3)
    STEP(5, s4)
    STEP(6, s5)
    STEP(7, s6)
    *in += i * from.s7;
    *out += i * to.s7;
#undef STEP
}

#ifdef DEVICE_CPU

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void permute_runs(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const OFFSET_T n, const OFFSET_T run, AXES)
{
    const OFFSET_T first = get_group_id(0) * run, end = n - first > run ? first + run : n;
    const OFFSET_T row = length.s0, step_in = from.s0, step_out = to.s0;
    for (OFFSET_T i = first; i < end;) {
        OFFSET_T in_at = first_in, out_at = 0;
        find_unit(i, dims, length, magic, shift, from, to, &in_at, &out_at);
        const OFFSET_T rest = row - i % row, count = min(rest, end - i);
        __global const UNIT* in = in_base + in_offset;
        __global UNIT* out = out_base + out_offset;
        if (step_in == 1 && step_out == 1) {
            in += in_at;
            out += out_at;
            for (OFFSET_T k = 0; k < count; k++) {
                out[k] = in[k];
            }
        } else {
            for (OFFSET_T k = 0; k < count; k++) {
                out[(OFFSET_T)(out_at + k * step_out)] = in[(OFFSET_T)(in_at + k * step_in)];
            }
        }
        i += count;
    }
}

#else

#ifndef WG
#define WG 256
// Units of one work-item; all are read before the first is written.
#define EACH 4
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void permute_gather(
    __global const UNIT* restrict in_base, const ulong in_offset, __global UNIT* restrict out_base,
    const ulong out_offset, const OFFSET_T n, AXES)
{
    __global const UNIT* in = in_base + in_offset;
    __global UNIT* out = out_base + out_offset;
    const OFFSET_T first = (OFFSET_T)get_group_id(0) * (WG * EACH) + get_local_id(0);
    UNIT x[EACH];
    OFFSET_T out_at[EACH];
    _Pragma("unroll")
    for (uint j = 0; j < EACH; j++) {
        if (first + j * WG < n) {
            OFFSET_T in_at = first_in;
            out_at[j] = 0;
            find_unit(first + j * WG, dims, length, magic, shift, from, to, &in_at, out_at + j);
            x[j] = in[in_at];
        }
    }
    _Pragma("unroll")
    for (uint j = 0; j < EACH; j++) {
        if (first + j * WG < n) {
            out[out_at[j]] = x[j];
        }
    }
}

#endif
