// The reduction ladder: sums by the steps of "Professional CUDA C Programming", chapters 3 and 5, one kernel for each
// step.
//
// Work-group g reduces elements [g U B, (g + 1) U B) to partials[g]. B is the size of the work-group, and U the number
// of elements that a work-item adds up first. The crate's own reduction sums the partials. The host starts
// ceil(n / (U B)) work-groups. `block` is B. It equals WG, but it is a parameter, so that the compiler does not know
// it, as in the originals.
//
// Differences from the originals, whose results were wrong for some n or device:
// - the last work-group may be short: a work-item without an element takes no part in a step, but reaches every
//   barrier;
// - each of the U loads has its own bound;
// - the "warp" tails leave out work-group barriers only for steps within a sub-group whose width the compiler knows;
// - kernels that reduce in global memory destroy their input, so the host gives them a copy.
#include "lib/types.cl"
#include "lib/op.cl"
#include "lib/subgroup.cl"
#include "lib/workgroup.cl"

#define RUNG __kernel SG_KERNEL __attribute__((reqd_work_group_size(WG, 1, 1)))

// A step of a tree: work-item i < s combines its value with the value at i + s, if i + s is below `count`.
#define STEP(data, s, count)                                                                                           \
    if (item < (s) && item + (s) < (count)) data[item] = OP(data[item], data[item + (s)])

#define SYNC_GLOBAL(s) barrier(CLK_GLOBAL_MEM_FENCE)
#define SYNC_LOCAL(s) barrier(CLK_LOCAL_MEM_FENCE)

// Before a step that reads values of work-items below s. If the first sub-group holds all of these work-items, only
// sub-groups wait, each for itself. That needs a width that the compiler knows. If it is read at run time, the choice
// between two barriers crashes PoCL 6's compiler.
#if SG_BACKEND == SG_PTX || SG_BACKEND == SG_AMDGCN
// These sg_barriers order all memory.
#define WARP_SYNC_GLOBAL(s)                                                                                            \
    if ((s) <= sg_size()) {                                                                                            \
        sg_barrier();                                                                                                  \
    } else {                                                                                                           \
        barrier(CLK_GLOBAL_MEM_FENCE);                                                                                 \
    }
#define WARP_SYNC_LOCAL(s)                                                                                             \
    if ((s) <= sg_size()) {                                                                                            \
        sg_barrier();                                                                                                  \
    } else {                                                                                                           \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
    }
#else
#define WARP_SYNC_GLOBAL(s) SYNC_GLOBAL(s)
#define WARP_SYNC_LOCAL(s) SYNC_LOCAL(s)
#endif

// The last six steps, which the first warp takes in the originals.
#define WARP_TAIL(data, count, WARP_SYNC)                                                                              \
    STEP(data, 32, count);                                                                                             \
    WARP_SYNC(32);                                                                                                     \
    STEP(data, 16, count);                                                                                             \
    WARP_SYNC(16);                                                                                                     \
    STEP(data, 8, count);                                                                                              \
    WARP_SYNC(8);                                                                                                      \
    STEP(data, 4, count);                                                                                              \
    WARP_SYNC(4);                                                                                                      \
    STEP(data, 2, count);                                                                                              \
    WARP_SYNC(2);                                                                                                      \
    STEP(data, 1, count)

// All steps of a work-group of up to 8192 work-items, without a loop. The barriers are outside of the tests of `block`:
// where barriers are conditional, PoCL compiles the rest of the kernel once more for each.
#define UNROLLED_STEP(data, s, count, block, SYNC)                                                                     \
    if ((block) >= 2 * (s)) STEP(data, s, count);                                                                      \
    SYNC(s)
#if WG > 1024
#define LARGE_STEPS(data, count, block, SYNC)                                                                          \
    UNROLLED_STEP(data, 4096, count, block, SYNC);                                                                     \
    UNROLLED_STEP(data, 2048, count, block, SYNC);                                                                     \
    UNROLLED_STEP(data, 1024, count, block, SYNC);
#else
#define LARGE_STEPS(data, count, block, SYNC)
#endif
#define COMPLETE(data, count, block, PLACE)                                                                            \
    LARGE_STEPS(data, count, block, SYNC_##PLACE)                                                                      \
    UNROLLED_STEP(data, 512, count, block, SYNC_##PLACE);                                                              \
    UNROLLED_STEP(data, 256, count, block, SYNC_##PLACE);                                                              \
    UNROLLED_STEP(data, 128, count, block, SYNC_##PLACE);                                                              \
    UNROLLED_STEP(data, 64, count, block, SYNC_##PLACE);                                                               \
    WARP_TAIL(data, count, WARP_SYNC_##PLACE)

// Returns how many of a work-group's `most` elements exist: at most `left`.
static inline uint present(OFFSET_T left, uint most) { return left < most ? (uint)left : most; }

// Returns the aggregate of the work-item's elements among the work-group's unroll * block, of which the first `left`
// exist; the identity if it has none.
static inline A take(__global const T* data, uint item, uint block, OFFSET_T left, uint unroll)
{
    A x = OP_IDENTITY;
    if (left >= unroll * block) {
        x = data[item];
        for (uint k = 1; k < unroll; k++) {
            x = OP(x, data[item + k * block]);
        }
    } else {
        for (uint k = 0; k < unroll; k++) {
            if (item + k * block < left) {
                x = OP(x, data[item + k * block]);
            }
        }
    }
    return x;
}

// R1. Neighbours first; the active work-items are ever further apart.
RUNG void neighbored(__global T* data, const OFFSET_T n, __global T* partials, const uint block)
{
    const uint item = get_local_id(0);
    const OFFSET_T base = (OFFSET_T)get_group_id(0) * block;
    const uint count = present(n - base, block);
    data += base;
    for (uint s = 1; s < block; s *= 2) {
        if (item % (2 * s) == 0 && item + s < count) {
            data[item] = OP(data[item], data[item + s]);
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
    if (item == 0) {
        partials[get_group_id(0)] = data[0];
    }
}

// R2. The same pairs; the active work-items are contiguous.
RUNG void neighbored_less(__global T* data, const OFFSET_T n, __global T* partials, const uint block)
{
    const uint item = get_local_id(0);
    const OFFSET_T base = (OFFSET_T)get_group_id(0) * block;
    const uint count = present(n - base, block);
    data += base;
    for (uint s = 1; s < block; s *= 2) {
        const uint i = 2 * s * item;
        if (i + s < count) {
            data[i] = OP(data[i], data[i + s]);
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
    if (item == 0) {
        partials[get_group_id(0)] = data[0];
    }
}

// R3. Each step folds the upper half onto the lower one: neighbours access neighbours.
RUNG void interleaved(__global T* data, const OFFSET_T n, __global T* partials, const uint block)
{
    const uint item = get_local_id(0);
    const OFFSET_T base = (OFFSET_T)get_group_id(0) * block;
    const uint count = present(n - base, block);
    data += base;
    for (uint s = block / 2; s > 0; s /= 2) {
        STEP(data, s, count);
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
    if (item == 0) {
        partials[get_group_id(0)] = data[0];
    }
}

// The start of the unrolled kernels in global memory: finds the work-group's elements, and stores the work-items' first
// sums.
#define TAKE_GLOBAL(U, block)                                                                                          \
    const uint item = get_local_id(0);                                                                                 \
    const OFFSET_T base = (OFFSET_T)get_group_id(0) * ((U) * (block)), left = n - base;                                \
    const uint count = present(left, block);                                                                           \
    data += base;                                                                                                      \
    if (item < count) {                                                                                                \
        data[item] = take(data, item, block, left, U);                                                                 \
    }                                                                                                                  \
    barrier(CLK_GLOBAL_MEM_FENCE)

// R4, R5, R6. A work-item first adds up 2, 4 or 8 elements, a block apart: fewer work-items, more loads in flight.
#define UNROLLING(NAME, U)                                                                                             \
    RUNG void NAME(__global T* data, const OFFSET_T n, __global T* partials, const uint block) {                       \
        TAKE_GLOBAL(U, block);                                                                                         \
        for (uint s = block / 2; s > 0; s /= 2) {                                                                      \
            STEP(data, s, count);                                                                                      \
            barrier(CLK_GLOBAL_MEM_FENCE);                                                                             \
        }                                                                                                              \
        if (item == 0) {                                                                                               \
            partials[get_group_id(0)] = data[0];                                                                       \
        }                                                                                                              \
    }
UNROLLING(unrolling2, 2)
UNROLLING(unrolling4, 4)
UNROLLING(unrolling8, 8)

// R7. The last six steps wait for the sub-group alone.
RUNG void unroll_warps8(__global T* data, const OFFSET_T n, __global T* partials, const uint block)
{
    TAKE_GLOBAL(8, block);
    for (uint s = block / 2; s > 32; s /= 2) {
        STEP(data, s, count);
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
    WARP_TAIL(data, count, WARP_SYNC_GLOBAL);
    if (item == 0) {
        partials[get_group_id(0)] = data[0];
    }
}

// R8. No loop is left; each step is taken if the block is large enough.
RUNG void complete_unroll8(__global T* data, const OFFSET_T n, __global T* partials, const uint block)
{
    TAKE_GLOBAL(8, block);
    COMPLETE(data, count, block, GLOBAL);
    if (item == 0) {
        partials[get_group_id(0)] = data[0];
    }
}

#define TEMPLATE_STEP(s)                                                                                               \
    if (WG >= 2 * (s)) {                                                                                               \
        STEP(data, s, count);                                                                                          \
        barrier(CLK_GLOBAL_MEM_FENCE);                                                                                 \
    }

// R9. The compiler knows the block, as from a template parameter, and drops the steps for which the block is too small.
RUNG void template_unroll8(__global T* data, const OFFSET_T n, __global T* partials, const uint block)
{
    TAKE_GLOBAL(8, WG);
    TEMPLATE_STEP(4096)
    TEMPLATE_STEP(2048)
    TEMPLATE_STEP(1024)
    TEMPLATE_STEP(512)
    TEMPLATE_STEP(256)
    TEMPLATE_STEP(128)
    TEMPLATE_STEP(64)
    WARP_TAIL(data, count, WARP_SYNC_GLOBAL);
    if (item == 0) {
        partials[get_group_id(0)] = data[0];
    }
}

// S1. One element for each work-item, all steps unrolled, in global memory.
RUNG void gmem(__global T* data, const OFFSET_T n, __global T* partials, const uint block)
{
    const uint item = get_local_id(0);
    const OFFSET_T base = (OFFSET_T)get_group_id(0) * block;
    const uint count = present(n - base, block);
    data += base;
    COMPLETE(data, count, block, GLOBAL);
    if (item == 0) {
        partials[get_group_id(0)] = data[0];
    }
}

// S4. As S1, after adding up 4 elements.
RUNG void gmem_unroll(__global T* data, const OFFSET_T n, __global T* partials, const uint block)
{
    TAKE_GLOBAL(4, block);
    COMPLETE(data, count, block, GLOBAL);
    if (item == 0) {
        partials[get_group_id(0)] = data[0];
    }
}

// A work-item's first sum goes to local memory, and the tree stays there.
#define IN_LOCAL(U, smem)                                                                                              \
    const uint item = get_local_id(0);                                                                                 \
    const OFFSET_T base = (OFFSET_T)get_group_id(0) * ((U) * block);                                                   \
    smem[item] = take(in + base, item, block, n - base, U);                                                            \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                      \
    COMPLETE(smem, block, block, LOCAL);                                                                               \
    if (item == 0) {                                                                                                   \
        partials[get_group_id(0)] = smem[0];                                                                           \
    }

// S2. The tree in local memory.
RUNG void smem(__global const T* restrict in, const OFFSET_T n, __global T* restrict partials, const uint block)
{
    __local T tree[WG];
    IN_LOCAL(1, tree)
}

// S3. The same, with local memory that the host sizes.
RUNG void smem_dyn(__global const T* restrict in, const OFFSET_T n, __global T* restrict partials, const uint block,
                   __local T* tree)
{
    IN_LOCAL(1, tree)
}

// S5. As S2, after adding up 4 elements.
RUNG void smem_unroll(__global const T* restrict in, const OFFSET_T n, __global T* restrict partials, const uint block)
{
    __local T tree[WG];
    IN_LOCAL(4, tree)
}

// S6. As S5, with local memory that the host sizes.
RUNG void smem_unroll_dyn(__global const T* restrict in, const OFFSET_T n, __global T* restrict partials,
                          const uint block, __local T* tree)
{
    IN_LOCAL(4, tree)
}

#if SG_BACKEND != SG_NONE
// S7. Sub-groups reduce by shuffles. One value of each goes to local memory, until the value of a single sub-group is
// left. Needs sub-groups of at least two work-items.
RUNG void shuffle_xor(__global const T* restrict in, const OFFSET_T n, __global T* restrict partials, const uint block)
{
    __local T sums[WG / 2];
    __local uint sg_scratch[SG_SCRATCH_WORDS];
    const uint item = get_local_id(0), width = sg_size();
    const OFFSET_T base = (OFFSET_T)get_group_id(0) * block;
    A x = take(in + base, item, block, n - base, 1);
    uint count = block;
    while (1) {
        for (uint d = width / 2; d > 0; d /= 2) {
            x = OP(x, shuffle_xor_acc(x, d, sg_scratch));
        }
        // The values fill whole sub-groups, or they are in one sub-group whose other lanes hold identities.
        count = (count + width - 1) / width;
        if (count == 1) {
            break;
        }
        if (sg_lane() == 0 && item / width < count) {
            sums[item / width] = x;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        x = item < count ? sums[item] : OP_IDENTITY;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        partials[get_group_id(0)] = x;
    }
}
#endif
