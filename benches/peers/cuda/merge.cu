// CUB's merge sort and merge.
#include "harness.cuh"

#include <cub/device/device_merge.cuh>
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cuda/std/functional>

int main(int argc, char** argv)
{
    Wanted wanted(argc, argv);
    for (int log : {20, 24, 27}) {
        size_t n = size_t(1) << log;
        if (!wanted("merge merge sort", "u32", n)) {
            continue;
        }
        Buffer<uint32_t> in(n), out(n);
        fill(in, [] __device__(size_t i) { return (uint32_t)mix(i); });
        out.poison();
        auto call = [&](void* t, size_t& b) {
            return cub::DeviceMergeSort::SortKeysCopy(t, b, in.data, out.data, (int)n, ::cuda::std::less<>{});
        };
        Prepared run(call);
        Times times = measure([&] { run(); });
        report("CUB", "merge merge sort", "u32", n, 8.0 * n, times, sorted(in.data, out.data, n));
    }
    for (int log : {24, 28}) {
        size_t n = size_t(1) << log;
        if (!wanted("merge merge", "u32", n)) {
            continue;
        }
        Buffer<uint32_t> random(n), in(n), out(n);
        fill(random, [] __device__(size_t i) { return (uint32_t)mix(i); });
        for (size_t half : {size_t(0), n / 2}) {
            auto call = [&](void* t, size_t& b) {
                return cub::DeviceRadixSort::SortKeys(t, b, random.data + half, in.data + half, (int)(n / 2));
            };
            Prepared{call}();
        }
        out.poison();
        auto call = [&](void* t, size_t& b) {
            int64_t half = (int64_t)(n / 2);
            return cub::DeviceMerge::MergeKeys(t, b, in.data, half, in.data + half, half, out.data, ::cuda::std::less<>{});
        };
        Prepared run(call);
        Times times = measure([&] { run(); });
        report("CUB", "merge merge", "u32", n, 8.0 * n, times, sorted(in.data, out.data, n));
    }
    return 0;
}
