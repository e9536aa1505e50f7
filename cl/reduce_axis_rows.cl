// axis_rows: lines of at most LANES elements, for whole vectors of outputs (reduce_axis.cl). A work-item has all of the
// lines of one vector.

#define OWN (VEC * A_BYTES > 16 ? 4 : 8)
// Vectors in flight.
#define HELD (LANES < OWN ? LANES : OWN)
#define UNROLL _Pragma("unroll")
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_rows(
    LINES, const OFFSET_T len, __global OUT* restrict out_base, const ulong out_offset)
{
    const OFFSET_T output = get_global_id(0) * VEC;
    if (output >= outputs) {
        return;
    }
    __global const T* in = LINE(output);
    A total[VEC * (LANES / HELD)];
    UNROLL
    for (uint part = 0; part < LANES / HELD; part++) {
        TV held[HELD];
        UNROLL
        for (uint k = 0; k < HELD; k++) {
            held[k] = load_vec(in + (long)min((OFFSET_T)(part * HELD + k), (OFFSET_T)(len - 1)) * stride);
        }
        A lane[HELD * VEC];
        UNROLL
        for (uint k = 0; k < HELD; k++) {
            A x[VEC];
            unpack(held[k], x);
            UNROLL
            for (uint c = 0; c < VEC; c++) {
                lane[k * VEC + c] = part * HELD + k < len ? OP(OP_IDENTITY, x[c]) : OP_IDENTITY;
            }
        }
        UNROLL
        for (uint width = HELD; width > 1; width /= 2) {
            UNROLL
            for (uint k = 0; k < width / 2; k++) {
                UNROLL
                for (uint c = 0; c < VEC; c++) {
                    lane[k * VEC + c] = OP(lane[2 * k * VEC + c], lane[(2 * k + 1) * VEC + c]);
                }
            }
        }
        UNROLL
        for (uint c = 0; c < VEC; c++) {
            total[part * VEC + c] = lane[c];
        }
    }
    UNROLL
    for (uint width = LANES / HELD; width > 1; width /= 2) {
        UNROLL
        for (uint k = 0; k < width / 2; k++) {
            UNROLL
            for (uint c = 0; c < VEC; c++) {
                total[k * VEC + c] = OP(total[2 * k * VEC + c], total[(2 * k + 1) * VEC + c]);
            }
        }
    }
    OUT run[VEC];
    UNROLL
    for (uint c = 0; c < VEC; c++) {
        run[c] = narrow_acc(total[c]);
    }
    store_run(out_base + out_offset + output, run);
}
