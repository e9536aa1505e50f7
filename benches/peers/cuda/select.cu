// CUB's selections and partitions.
#include "harness.cuh"

#include <cub/device/device_partition.cuh>
#include <cub/device/device_select.cuh>

// An element has its index in the low bits and a selection bit. So the output shows whether it is right: indices ascend,
// and descend in the unstable tail of a partition.
constexpr uint32_t LIMIT = 1u << 31;

struct Below {
    __host__ __device__ bool operator()(uint32_t x) const { return x < LIMIT; }
};

bool right(const Buffer<uint32_t>& out, const Buffer<int>& count, size_t taken, size_t n)
{
    if ((size_t)count.host(1)[0] != taken) {
        return false;
    }
    const uint32_t* x = out.data;
    return total(n, [=] __device__(size_t i) {
        if (i < taken) {
            return x[i] >= LIMIT || (i > 0 && x[i - 1] >= x[i]);
        }
        return x[i] < LIMIT || (i > taken && x[i - 1] <= x[i]);
    }) == 0;
}

template <class Call>
void one(const Wanted& wanted, const std::string& what, size_t n, double bytes, Call call, Buffer<uint32_t>& out,
    const Buffer<int>& count, size_t taken, size_t written)
{
    if (!wanted(what, "u32", n)) {
        return;
    }
    out.poison();
    Prepared run(call);
    Times times = measure([&] { run(); });
    report("CUB", what, "u32", n, bytes, times, right(out, count, taken, written));
}

int main(int argc, char** argv)
{
    Wanted wanted(argc, argv);
    for (size_t n : {size_t(1) << 24, size_t(1) << 28}) {
        Buffer<uint32_t> in(n), out(n);
        Buffer<uint8_t> flags(n);
        Buffer<int> count(1);
        for (unsigned percent : {10, 50, 90}) {
            fill(in, [=] __device__(size_t i) { return (uint32_t)i | (mix(i) % 100 < percent ? 0 : LIMIT); });
            fill(flags, [=] __device__(size_t i) { return (uint8_t)(mix(i) % 100 < percent); });
            size_t taken = total(n, [=] __device__(size_t i) { return mix(i) % 100 < percent; });
            std::string share = ", " + std::to_string(percent) + " %";
            double written = 4.0 * taken;
            one(wanted, "select selected" + share, n, 4.0 * n + written, [&](void* t, size_t& b) {
                return cub::DeviceSelect::If(t, b, in.data, out.data, count.data, (int)n, Below{});
            }, out, count, taken, taken);
            one(wanted, "select flagged" + share, n, 5.0 * n + written, [&](void* t, size_t& b) {
                return cub::DeviceSelect::Flagged(t, b, in.data, flags.data, out.data, count.data, (int)n);
            }, out, count, taken, taken);
            // CUB writes rejected elements backwards from the end.
            for (const char* name : {"select partitioned", "select partitioned, unstable tail"}) {
                one(wanted, name + share, n, 8.0 * n, [&](void* t, size_t& b) {
                    return cub::DevicePartition::If(t, b, in.data, out.data, count.data, (int)n, Below{});
                }, out, count, taken, n);
            }
        }
    }
    return 0;
}
