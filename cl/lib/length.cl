// The number n of elements that a kernel reads: an argument or, with LENGTH_T, a count in memory.
//
//     LENGTH_PARAMS            parameters of a kernel, in place of `const OFFSET_T n`
//     TAKE_LENGTH              at the start of the kernel: declares n
//     WORKING_GROUPS(tiles)    the number of work-groups that have a tile, if there are `tiles`; at least 1
//     END_IF_IDLE(tiles)       after TAKE_LENGTH: ends all other work-groups
//
// With LENGTH_T, which is uint or ulong, `capacity` is the most that n can be, and the host starts work-groups for that
// many elements. Earlier launches have taken the first `length_taken` elements that the count counts. If the kernel
// reads partials, each of them stands for the 2^log_each elements of a tile. Else log_each is 0.
//
//     n = min(capacity, ceil(max(count - length_taken, 0) / 2^log_each))

#ifdef LENGTH_T

#define LENGTH_PARAMS                                                                                                  \
    const OFFSET_T capacity, __global const LENGTH_T *lengths, const ulong length_offset, const ulong length_taken,    \
        const uint log_each
#define TAKE_LENGTH const OFFSET_T n = length_of(capacity, lengths[length_offset], length_taken, log_each);
#define WORKING_GROUPS(tiles) working_groups(tiles)
#define END_IF_IDLE(tiles)                                                                                             \
    if (get_group_id(0) >= working_groups(tiles)) {                                                                    \
        return;                                                                                                        \
    }

static inline OFFSET_T length_of(const OFFSET_T capacity, const ulong count, const ulong taken, const uint log_each)
{
    // Not `count > taken ? count - taken : 0`, for which Oclgrind 21.10 lacks an instruction.
    const ulong left = count - min(count, taken);
    const ulong whole = left >> log_each, n = whole + ((whole << log_each) != left);
    return n < capacity ? (OFFSET_T)n : capacity;
}

static inline uint working_groups(const OFFSET_T tiles)
{
    const uint groups = get_num_groups(0);
    return tiles == 0 ? 1 : tiles < groups ? (uint)tiles : groups;
}

#else

#define LENGTH_PARAMS const OFFSET_T n
#define TAKE_LENGTH
#define WORKING_GROUPS(tiles) get_num_groups(0)
#define END_IF_IDLE(tiles)

#endif
