// axis_short: lines of at most LANES contiguous elements (reduce_axis.cl). LT work-items have BATCH outputs. Each of
// them loads a vector of each output, and all these loads are in flight at once.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void axis_short(
    LINES, const OFFSET_T len, __global OUT* restrict out_base, const ulong out_offset)
{
    __local A tree[BATCH * WG];
    const uint item = get_local_id(0), share = item % LT, begin = share * VEC;
    const OFFSET_T first = (OFFSET_T)get_group_id(0) * (COLS * BATCH) + item / LT;
    A x[BATCH];
    if (begin + VEC <= len) {
        TV row[BATCH];
        for (uint b = 0; b < BATCH; b++) {
            row[b] = load_vec(LINE(min(first + b * COLS, (OFFSET_T)(outputs - 1))) + begin);
        }
        for (uint b = 0; b < BATCH; b++) {
            A lane[VEC];
            unpack(row[b], lane);
            for (uint k = 0; k < VEC; k++) {
                lane[k] = OP(OP_IDENTITY, lane[k]);
            }
            for (uint width = VEC; width > 1; width /= 2) {
                for (uint k = 0; k < width / 2; k++) {
                    lane[k] = OP(lane[2 * k], lane[2 * k + 1]);
                }
            }
            x[b] = lane[0];
        }
    } else {
        for (uint b = 0; b < BATCH; b++) {
            __global const T* in = LINE(min(first + b * COLS, (OFFSET_T)(outputs - 1)));
            A lane[VEC];
            for (uint k = 0; k < VEC; k++) {
                lane[k] = OP_IDENTITY;
                if (begin + k < len) {
                    lane[k] = OP(lane[k], TAKEN(in[begin + k]));
                }
            }
            for (uint width = VEC; width > 1; width /= 2) {
                for (uint k = 0; k < width / 2; k++) {
                    lane[k] = OP(lane[2 * k], lane[2 * k + 1]);
                }
            }
            x[b] = lane[0];
        }
    }
    for (uint d = 1; d < LT; d <<= 1) {
        // The right one of two neighbours passes its aggregate to the left one.
        const uint position = share & (2 * d - 1);
        if (position == d) {
            for (uint b = 0; b < BATCH; b++) {
                tree[b * WG + item] = x[b];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (position == 0) {
            for (uint b = 0; b < BATCH; b++) {
                x[b] = OP(x[b], tree[b * WG + item + d]);
            }
        }
    }
    if (share == 0) {
        for (uint b = 0; b < BATCH; b++) {
            if (first + b * COLS < outputs) {
                store_acc(out_base + out_offset + first + b * COLS, x[b]);
            }
        }
    }
}
