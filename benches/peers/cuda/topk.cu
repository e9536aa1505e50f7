// CUB's top-k, which versions after 3.1 have.
#include "harness.cuh"

#if __has_include(<cub/device/device_topk.cuh>)
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_topk.cuh>
#include <cuda/execution>
#include <functional>

int main(int argc, char** argv)
{
    Wanted wanted(argc, argv);
    size_t n = size_t(1) << 28;
    for (size_t k : {32, 1024, 65536}) {
        std::string what = "topk " + std::to_string(k) + ", random";
        if (!wanted(what, "f32", n)) {
            continue;
        }
        Buffer<float> in(n), all(n), out(k);
        fill(in, [] __device__(size_t i) { return random<float>(i); });
        out.poison();
        auto how = ::cuda::execution::require(
            ::cuda::execution::determinism::not_guaranteed, ::cuda::execution::output_ordering::unsorted);
        auto call = [&](void* t, size_t& b) { return cub::DeviceTopK::MaxKeys(t, b, in.data, out.data, (int)n, (int)k, how); };
        Prepared run(call);
        Times times = measure([&] { run(); });
        auto sort = [&](void* t, size_t& b) {
            return cub::DeviceRadixSort::SortKeysDescending(t, b, in.data, all.data, (int)n);
        };
        Prepared{sort}();
        std::vector<float> got = out.host(k);
        std::sort(got.begin(), got.end(), std::greater<float>());
        report("CUB", what, "f32", n, 4.0 * n, times, got == all.host(k));
    }
    return 0;
}
#else
int main()
{
    fprintf(stderr, "this CUB has no top-k\n");
    return 1;
}
#endif
