// set_tiles with one work-item for each tile, in global memory.

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void set_tiles(
    __global const T* a_base, const ulong a_offset, const OFFSET_T len_a, __global const T* b_base,
    const ulong b_offset, const OFFSET_T len_b, const uint tiles, __global OFFSET_T* scratch, __global T* to_base,
    const ulong to_offset, const OFFSET_T capacity, const uint writes)
{
    __global const T* a = a_base + a_offset;
    __global const T* b = b_base + b_offset;
    __global T* to = to_base + to_offset;
    for (uint t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        const part_t part = find_part(len_a, len_b, (OFFSET_T)t * TILE, scratch + t);
        OFFSET_T at_a = part.begin_a, at_b = part.begin_b;
        const OFFSET_T stop_a = at_a + part.count_a, stop_b = at_b + (part.count - part.count_a);
        OFFSET_T equals_a = EQUALS_A(scratch, tiles)[t], equals_b = EQUALS_B(scratch, tiles)[t];
        OFFSET_T count = 0, index = writes != 0 ? COUNTS(scratch, tiles)[t] : 0;
        for (uint k = 0; k < part.count; k++) {
            const int second = at_a >= stop_a || (at_b < stop_b && op_less(b[at_b], a[at_a]));
            const T x = second ? b[at_b] : a[at_a];
            int matched = 0;
            if (second) {
                const OFFSET_T rank = at_b - equals_b;
                if (WANTS_SECOND && at_a > rank) {
                    matched = !op_less(a[at_a - 1 - rank], x);
                }
                at_b++;
                if (at_b < stop_b && op_less(x, b[at_b])) {
                    equals_b = at_b;
                }
            } else {
                const OFFSET_T match = at_b + (at_a - equals_a);
                if (WANTS_FIRST && match < len_b) {
                    matched = !op_less(x, b[match]);
                }
                at_a++;
                if (at_a < stop_a && op_less(x, a[at_a])) {
                    equals_a = at_a;
                }
            }
            if (second ? WANTS_SECOND && !matched : SET == SET_UNION || (SET == SET_INTERSECTION) == matched) {
                if (writes != 0 && index < capacity) {
                    to[index] = x;
                }
                index++;
                count++;
            }
        }
        if (writes == 0) {
            COUNTS(scratch, tiles)[t] = count;
        }
    }
}
