// Sub-groups: one interface, six back ends. The file also has the fence and the atomic accesses by which work-groups
// communicate.
//
//   sg_size() sg_lane()                   the width; the work-item's lane, in the order of local ids
//   sg_id() sg_count()                    the sub-group's index in the work-group; the number of sub-groups
//   sg_shuffle_T(v, lane, s)              v of that lane, which is below sg_size(); T is u32 or u64
//   sg_shuffle_xor_T(v, mask, s)          v of lane sg_lane() ^ mask, which is below sg_size()
//   sg_shuffle_up_T(v, delta, s)          v of lane sg_lane() - delta; the lane's own v if there is no such lane
//   sg_shuffle_down_T(v, delta, s)        likewise for sg_lane() + delta
//   sg_ballot(pred, s)                    ulong: bit i is pred != 0 of lane i; needs sg_size() <= 64
//   sg_alike(pred, s)                     ulong: the lanes with this lane's pred != 0; bits from sg_size() on: 0
//   sg_any(pred, s) sg_all(pred, s)       pred != 0 in some lane; in all lanes
//   sg_match_u32(v, bits, s)              ulong: the lanes with the same low `bits` bits of v; needs sg_size() <= 64
//   sg_rank(mask)                         the number of bits of mask that are set below sg_lane()
//   sg_barrier()                          orders the sub-group's accesses to local memory
//
// The host chooses a back end and tests it with cl/selftest.cl. Callers guarantee:
// - Work-groups are one-dimensional, and their size is a multiple of sg_size(): all sub-groups are full.
// - All work-items of the work-group call sg_barrier and the functions with `s`, in the same order. Hardware needs only
//   the work-items of the sub-group. SG_LOCAL needs all, because it exchanges values in local memory between work-group
//   barriers.
// - `s` is the caller's `__local uint sg_scratch[SG_SCRATCH_WORDS];`, free for other use between the calls.
// Results are valid in every work-item.

#define SG_NONE 0   // a sub-group is one work-item: CPU drivers
#define SG_KHR 1    // cl_khr_subgroups or OpenCL C 3.0's, with cl_khr_subgroup_shuffle
#define SG_INTEL 2  // cl_intel_subgroups
#define SG_AMDGCN 3 // the compiler's amdgcn builtins
#define SG_PTX 4    // inline PTX
#define SG_LOCAL 5  // logical sub-groups of SG_SIZE work-items, through local memory
#ifndef SG_BACKEND
#define SG_BACKEND SG_LOCAL
// Work-items of a work-group. Only SG_LOCAL needs it: its scratch has a word for each.
#define WG 256
#endif

// The width: for SG_LOCAL a power of two up to 64; for SG_KHR and SG_INTEL the required width, if it is defined.
#if SG_BACKEND == SG_LOCAL && !defined(SG_SIZE)
#define SG_SIZE 32
#endif

// The attribute of a kernel that uses sub-groups: `__kernel SG_KERNEL void f(...)`.
#if defined(SG_SIZE) && (SG_BACKEND == SG_KHR || SG_BACKEND == SG_INTEL)
#define SG_KERNEL __attribute__((intel_reqd_sub_group_size(SG_SIZE)))
#else
#define SG_KERNEL
#endif

#if SG_BACKEND == SG_LOCAL
#define SG_SCRATCH_WORDS WG
#else
#define SG_SCRATCH_WORDS 1
#endif

// INLINE_PTX: inline PTX works, with any back end. PTX_SM: the compute capability times ten.
#ifndef INLINE_PTX
#define INLINE_PTX (SG_BACKEND == SG_PTX)
#define PTX_SM 50
#endif

// always_inline, since Mesa 25 crashes on a barrier two calls deep.
#define SG_INLINE static inline __attribute__((always_inline))

// Each back end defines sg_size, sg_lane, sg_barrier, sg_shuffle_u32 and sg_ballot. If a back end defines further
// functions itself, SG_OWN macros say which. The rest of the file composes the others.

#if SG_BACKEND == SG_NONE

SG_INLINE uint sg_size(void) { return 1; }
SG_INLINE uint sg_lane(void) { return 0; }
SG_INLINE void sg_barrier(void) {}
SG_INLINE uint sg_shuffle_u32(uint v, uint lane, __local uint* s) { return v; }
SG_INLINE ulong sg_ballot(int pred, __local uint* s) { return pred != 0; }

#elif SG_BACKEND == SG_KHR || SG_BACKEND == SG_INTEL

#if SG_BACKEND == SG_KHR && defined(cl_khr_subgroups)
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif
#define SG_OWN_IDS
#define SG_OWN_VOTES

SG_INLINE uint sg_size(void) { return get_sub_group_size(); }
SG_INLINE uint sg_lane(void) { return get_sub_group_local_id(); }
SG_INLINE uint sg_id(void) { return get_sub_group_id(); }
SG_INLINE uint sg_count(void) { return get_num_sub_groups(); }
SG_INLINE void sg_barrier(void) { sub_group_barrier(CLK_LOCAL_MEM_FENCE); }
SG_INLINE int sg_any(int pred, __local uint* s) { return sub_group_any(pred); }
SG_INLINE int sg_all(int pred, __local uint* s) { return sub_group_all(pred); }

// SG_NO_BALLOT: the extension is listed but does not link.
#if defined(cl_khr_subgroup_ballot) && !defined(SG_NO_BALLOT)
SG_INLINE ulong sg_ballot(int pred, __local uint* s)
{
    uint4 b = sub_group_ballot(pred != 0);
    return (ulong)b.y << 32 | b.x;
}
#else
SG_INLINE ulong sg_ballot(int pred, __local uint* s)
{
    return sub_group_reduce_add(pred ? 1ul << sg_lane() : 0ul);
}
#endif

#if SG_BACKEND == SG_INTEL
#define SG_OWN_XOR
#define SG_OWN_RELATIVE
#define SG_SHUFFLE(v, lane) intel_sub_group_shuffle(v, lane)
#define SG_SHUFFLE_XOR(v, mask) intel_sub_group_shuffle_xor(v, mask)
#define SG_SHUFFLE_UP(v, delta) intel_sub_group_shuffle_up(v, v, delta)
#define SG_SHUFFLE_DOWN(v, delta) intel_sub_group_shuffle_down(v, v, delta)
#else
#ifndef cl_khr_subgroup_shuffle
#error "SG_KHR needs cl_khr_subgroup_shuffle"
#endif
#define SG_OWN_XOR
#define SG_SHUFFLE(v, lane) sub_group_shuffle(v, lane)
#define SG_SHUFFLE_XOR(v, mask) sub_group_shuffle_xor(v, mask)
#ifdef cl_khr_subgroup_shuffle_relative
#define SG_OWN_RELATIVE
#define SG_SHUFFLE_UP(v, delta) sub_group_shuffle_up(v, delta)
#define SG_SHUFFLE_DOWN(v, delta) sub_group_shuffle_down(v, delta)
#endif
#endif

SG_INLINE uint sg_shuffle_u32(uint v, uint lane, __local uint* s) { return SG_SHUFFLE(v, lane); }
SG_INLINE uint sg_shuffle_xor_u32(uint v, uint mask, __local uint* s) { return SG_SHUFFLE_XOR(v, mask); }
#ifdef SG_OWN_RELATIVE
SG_INLINE uint sg_shuffle_up_u32(uint v, uint delta, __local uint* s)
{
    uint up = SG_SHUFFLE_UP(v, delta);
    return sg_lane() < delta ? v : up;
}
SG_INLINE uint sg_shuffle_down_u32(uint v, uint delta, __local uint* s)
{
    uint down = SG_SHUFFLE_DOWN(v, delta);
    return sg_lane() + delta < sg_size() ? down : v;
}
#endif

#elif SG_BACKEND == SG_AMDGCN

#if !__has_builtin(__builtin_amdgcn_ds_bpermute)
#error "SG_AMDGCN needs amdgcn builtins"
#endif
#define SG_OWN_RANK

#if __has_builtin(__builtin_amdgcn_wavefrontsize)
SG_INLINE uint sg_size(void) { return __builtin_amdgcn_wavefrontsize(); }
#else
SG_INLINE uint sg_size(void) { return __AMDGCN_WAVEFRONT_SIZE; }
#endif
SG_INLINE uint sg_rank(ulong mask)
{
    return __builtin_amdgcn_mbcnt_hi((uint)(mask >> 32), __builtin_amdgcn_mbcnt_lo((uint)mask, 0));
}
SG_INLINE uint sg_lane(void) { return sg_rank(~0ul); }
SG_INLINE void sg_barrier(void)
{
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
}
// Addresses are in bytes. If 64 lanes run on a unit of 32, bpermute stays within each half: the self-test detects that.
SG_INLINE uint sg_shuffle_u32(uint v, uint lane, __local uint* s)
{
    return (uint)__builtin_amdgcn_ds_bpermute((int)(lane << 2), (int)v);
}
SG_INLINE ulong sg_ballot(int pred, __local uint* s)
{
#if __has_builtin(__builtin_amdgcn_ballot_w64)
    return __builtin_amdgcn_ballot_w64(pred != 0);
#elif __has_builtin(__builtin_amdgcn_ballot_w32)
    return __builtin_amdgcn_ballot_w32(pred != 0);
#else
    return __builtin_amdgcn_uicmp((uint)pred, 0u, 33); // 33: not equal
#endif
}

#elif SG_BACKEND == SG_PTX

#define SG_OWN_XOR
#define SG_OWN_RELATIVE
#define SG_OWN_RANK
// The instruction set fixes the width. Instructions that communicate are volatile: the compiler must not move or merge
// them.
SG_INLINE uint sg_size(void) { return 32; }
SG_INLINE uint sg_lane(void)
{
    uint lane;
    __asm__("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}
SG_INLINE uint sg_rank(ulong mask)
{
    uint below;
    __asm__("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    return popcount((uint)mask & below);
}
SG_INLINE void sg_barrier(void) { __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
// CLAMP is the outermost lane that may be read. A work-item that would read beyond it keeps its own value.
#define SG_PTX_SHUFFLE(NAME, MODE, CLAMP)                                                                              \
    SG_INLINE uint NAME(uint v, uint lane, __local uint* s) {                                                          \
        uint r;                                                                                                        \
        __asm__ volatile("shfl.sync." MODE ".b32 %0, %1, %2, " CLAMP ", 0xffffffff;" : "=r"(r) : "r"(v), "r"(lane));   \
        return r;                                                                                                      \
    }
SG_PTX_SHUFFLE(sg_shuffle_u32, "idx", "0x1f")
SG_PTX_SHUFFLE(sg_shuffle_xor_u32, "bfly", "0x1f")
SG_PTX_SHUFFLE(sg_shuffle_up_u32, "up", "0x0")
SG_PTX_SHUFFLE(sg_shuffle_down_u32, "down", "0x1f")
SG_INLINE ulong sg_ballot(int pred, __local uint* s)
{
    uint b;
    __asm__ volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
                     : "=r"(b)
                     : "r"(pred));
    return b;
}
#define SG_OWN_ALIKE
SG_INLINE ulong sg_alike(int pred, __local uint* s)
{
    uint b;
    __asm__ volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; @!p not.b32 %0, %0; }"
                     : "=r"(b)
                     : "r"(pred));
    return b;
}
#if PTX_SM >= 70
#define SG_OWN_MATCH
SG_INLINE ulong sg_match_u32(uint v, uint bits, __local uint* s)
{
    uint m;
    __asm__ volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(m) : "r"(bits < 32 ? v & ((1u << bits) - 1) : v));
    return m;
}
#endif

#elif SG_BACKEND == SG_LOCAL

#define SG_OWN_MATCH
SG_INLINE uint sg_size(void) { return SG_SIZE; }
SG_INLINE uint sg_lane(void) { return (uint)get_local_id(0) % SG_SIZE; }
SG_INLINE void sg_barrier(void) { barrier(CLK_LOCAL_MEM_FENCE); }
SG_INLINE uint sg_shuffle_u32(uint v, uint lane, __local uint* s)
{
    uint l = get_local_id(0);
    s[l] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint r = s[l - l % SG_SIZE + lane];
    barrier(CLK_LOCAL_MEM_FENCE);
    return r;
}
// Returns the lanes whose `v` equals the `wanted` of this lane. All lanes of the sub-group read the same word at a
// time.
SG_INLINE ulong sg_lanes_with(uint v, uint wanted, __local uint* s)
{
    uint l = get_local_id(0), first = l - l % SG_SIZE;
    ulong m = 0;
    s[l] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < SG_SIZE; ++i) m |= (ulong)(s[first + i] == wanted) << i;
    barrier(CLK_LOCAL_MEM_FENCE);
    return m;
}
SG_INLINE ulong sg_ballot(int pred, __local uint* s) { return sg_lanes_with(pred != 0, 1, s); }
SG_INLINE ulong sg_match_u32(uint v, uint bits, __local uint* s)
{
    uint low = bits < 32 ? v & ((1u << bits) - 1) : v;
    return sg_lanes_with(low, low, s);
}

#else
#error "SG_BACKEND is 0 to 5"
#endif

#ifndef SG_OWN_IDS
SG_INLINE uint sg_id(void) { return (uint)get_local_id(0) / sg_size(); }
SG_INLINE uint sg_count(void) { return (uint)get_local_size(0) / sg_size(); }
#endif

#ifndef SG_OWN_VOTES
SG_INLINE int sg_any(int pred, __local uint* s) { return sg_ballot(pred, s) != 0; }
SG_INLINE int sg_all(int pred, __local uint* s) { return sg_ballot(!pred, s) == 0; }
#endif

#ifndef SG_OWN_RANK
SG_INLINE uint sg_rank(ulong mask) { return (uint)popcount(mask & ((1ul << sg_lane()) - 1)); }
#endif

#ifndef SG_OWN_ALIKE
SG_INLINE ulong sg_alike(int pred, __local uint* s)
{
    ulong lanes = sg_ballot(pred, s);
    return (pred != 0 ? lanes : ~lanes) & (~0ul >> (64 - sg_size()));
}
#endif

#ifndef SG_OWN_MATCH
SG_INLINE ulong sg_match_u32(uint v, uint bits, __local uint* s)
{
    ulong m = ~0ul;
    for (uint b = 0; b < bits; ++b) m &= sg_alike(v >> b & 1, s);
    return m;
}
#endif

#ifndef SG_OWN_XOR
SG_INLINE uint sg_shuffle_xor_u32(uint v, uint mask, __local uint* s)
{
    return sg_shuffle_u32(v, sg_lane() ^ mask, s);
}
#endif
#ifndef SG_OWN_RELATIVE
SG_INLINE uint sg_shuffle_up_u32(uint v, uint delta, __local uint* s)
{
    uint lane = sg_lane();
    return sg_shuffle_u32(v, lane < delta ? lane : lane - delta, s);
}
SG_INLINE uint sg_shuffle_down_u32(uint v, uint delta, __local uint* s)
{
    uint lane = sg_lane();
    return sg_shuffle_u32(v, lane + delta < sg_size() ? lane + delta : lane, s);
}
#endif

#define SG_SHUFFLE_U64(NAME)                                                                                           \
    SG_INLINE ulong NAME##_u64(ulong v, uint lane, __local uint* s) {                                                  \
        uint low = NAME##_u32((uint)v, lane, s);                                                                       \
        uint high = NAME##_u32((uint)(v >> 32), lane, s);                                                              \
        return (ulong)high << 32 | low;                                                                                \
    }
SG_SHUFFLE_U64(sg_shuffle)
SG_SHUFFLE_U64(sg_shuffle_xor)
SG_SHUFFLE_U64(sg_shuffle_up)
SG_SHUFFLE_U64(sg_shuffle_down)

// On some drivers a barrier or a mem_fence orders nothing between work-groups. So work-groups communicate like this:
//
//     publish:  work-items store the value; barrier(CLK_GLOBAL_MEM_FENCE); one of them calls fence_device() and
//               store_relaxed of a flag
//     read:     one work-item polls the flag by load_relaxed, a bounded number of times, and calls fence_device();
//               barrier(CLK_GLOBAL_MEM_FENCE); work-items load the value
//
// If flag and value share a word, load_relaxed and store_relaxed are enough.
#if INLINE_PTX
#define DEVICE_SCOPE_PTX
#elif defined(__opencl_c_atomic_order_acq_rel) && defined(__opencl_c_atomic_scope_device)
#define DEVICE_SCOPE_C11
#elif defined(__OPENCL_C_VERSION__) && __OPENCL_C_VERSION__ == 200
#define DEVICE_SCOPE_C11
#endif

// Orders accesses to global memory across the device: the work-item's own, and those of its work-group before the last
// barrier.
SG_INLINE void fence_device(void)
{
#if defined(DEVICE_SCOPE_PTX) && PTX_SM >= 70
    __asm__ volatile("fence.acq_rel.gpu;" ::: "memory");
#elif defined(DEVICE_SCOPE_PTX)
    __asm__ volatile("membar.gl;" ::: "memory");
#elif defined(DEVICE_SCOPE_C11)
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);
#else
    mem_fence(CLK_GLOBAL_MEM_FENCE);
#endif
}

// load_relaxed_T(p), store_relaxed_T(p, v): access a word that other work-groups may access at the same time. They
// order no other accesses. T is u32, or u64 with 64-bit atomics.
#if defined(DEVICE_SCOPE_PTX)

#if PTX_SM >= 70
#define PTX_RELAXED "relaxed.gpu.global"
#else
#define PTX_RELAXED "volatile.global"
#endif
#define DEVICE_SCOPE(SUFFIX, T, ATOMIC_T, F, REG)                                                                      \
    SG_INLINE T load_relaxed_##SUFFIX(volatile __global T* p) {                                                        \
        T v;                                                                                                           \
        __asm__ volatile("ld." PTX_RELAXED "." #SUFFIX " %0, [%1];" : "=" REG(v) : "l"(p) : "memory");                 \
        return v;                                                                                                      \
    }                                                                                                                  \
    SG_INLINE void store_relaxed_##SUFFIX(volatile __global T* p, T v) {                                               \
        __asm__ volatile("st." PTX_RELAXED "." #SUFFIX " [%0], %1;" ::"l"(p), REG(v) : "memory");                      \
    }

#elif defined(DEVICE_SCOPE_C11)

#define DEVICE_SCOPE(SUFFIX, T, ATOMIC_T, F, REG)                                                                      \
    SG_INLINE T load_relaxed_##SUFFIX(volatile __global T* p) {                                                        \
        return atomic_load_explicit((volatile __global ATOMIC_T*)p, memory_order_relaxed, memory_scope_device);        \
    }                                                                                                                  \
    SG_INLINE void store_relaxed_##SUFFIX(volatile __global T* p, T v) {                                               \
        atomic_store_explicit((volatile __global ATOMIC_T*)p, v, memory_order_relaxed, memory_scope_device);           \
    }

#else

#define DEVICE_SCOPE(SUFFIX, T, ATOMIC_T, F, REG)                                                                      \
    SG_INLINE T load_relaxed_##SUFFIX(volatile __global T* p) { return F##_add(p, (T)0); }                             \
    SG_INLINE void store_relaxed_##SUFFIX(volatile __global T* p, T v) { F##_xchg(p, v); }

#endif

DEVICE_SCOPE(u32, uint, atomic_uint, atomic, "r")
#if defined(cl_khr_int64_base_atomics) && defined(cl_khr_int64_extended_atomics)
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
DEVICE_SCOPE(u64, ulong, atomic_ulong, atom, "l")
#endif
