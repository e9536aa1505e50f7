// The driver's copies, a copy by vectors of four, CUB's batched copy, and a gather by Thrust.
#include "harness.cuh"

#include <cub/device/device_memcpy.cuh>
#include <thrust/execution_policy.h>
#include <thrust/gather.h>

const size_t SIZES[] = {size_t(1) << 16, size_t(1) << 20, size_t(1) << 24, size_t(1) << 28};

template <class T>
void plain(const Wanted& wanted, const std::string& what, const char* element, size_t first, size_t second)
{
    for (size_t n : SIZES) {
        if (!wanted(what, element, n)) {
            continue;
        }
        Buffer<T> from(n + first), to(n + second);
        fill(from, [] __device__(size_t i) { return (T)mix(i); });
        to.poison();
        size_t bytes = n * sizeof(T);
        Times times = measure([&] {
            CHECK(cudaMemcpyAsync(to.data + second, from.data + first, bytes, cudaMemcpyDeviceToDevice));
        });
        const T *a = from.data + first, *b = to.data + second;
        bool ok = total(n, [=] __device__(size_t i) { return a[i] != b[i]; }) == 0;
        report("CUDA", what, element, n, 2.0 * bytes, times, ok);
    }
}

// Copies four elements at once, and the rest one by one.
static __global__ void by_fours(const uint32_t* in, uint32_t* out, size_t n)
{
    size_t first = blockIdx.x * (size_t)blockDim.x + threadIdx.x, step = gridDim.x * (size_t)blockDim.x;
    for (size_t i = first; i < n / 4; i += step) {
        ((uint4*)out)[i] = ((const uint4*)in)[i];
    }
    for (size_t i = n / 4 * 4 + first; i < n; i += step) {
        out[i] = in[i];
    }
}

void vectors(const Wanted& wanted)
{
    std::string what = "copy aligned";
    for (size_t n : SIZES) {
        if (!wanted(what, "u32", n)) {
            continue;
        }
        Buffer<uint32_t> from(n), to(n);
        fill(from, [] __device__(size_t i) { return (uint32_t)mix(i); });
        to.poison();
        unsigned blocks = (unsigned)std::min<size_t>((n / 4 + 255) / 256, 65535);
        Times times = measure([&] { by_fours<<<blocks, 256>>>(from.data, to.data, n); });
        const uint32_t *a = from.data, *b = to.data;
        bool ok = total(n, [=] __device__(size_t i) { return a[i] != b[i]; }) == 0;
        report("CUDA by vectors of 4", what, "u32", n, 8.0 * n, times, ok);
    }
}

// Rows of 1,024 elements, `gap` elements apart.
void rows(const Wanted& wanted, const std::string& what, size_t gap)
{
    size_t n = size_t(1) << 28, pitch = 1024 + gap;
    if (!wanted(what, "u32", n)) {
        return;
    }
    Buffer<uint32_t> from(n / 1024 * pitch), to(n);
    fill(from, [] __device__(size_t i) { return (uint32_t)mix(i); });
    to.poison();
    Times times = measure([&] {
        CHECK(cudaMemcpy2DAsync(to.data, 4096, from.data, 4 * pitch, 4096, n / 1024, cudaMemcpyDeviceToDevice));
    });
    const uint32_t *a = from.data, *b = to.data;
    bool ok = total(n, [=] __device__(size_t i) { return a[i / 1024 * pitch + i % 1024] != b[i]; }) == 0;
    report("CUDA", what, "u32", n, 8.0 * n, times, ok);
}

// Ranges of 0 to 128 KiB, the last one first.
void ranges(const Wanted& wanted)
{
    size_t n = size_t(1) << 28;
    std::string what = "copy ranges of 64 KiB";
    if (!wanted(what, "u32", n)) {
        return;
    }
    Buffer<uint32_t> from(n), to(n);
    fill(from, [] __device__(size_t i) { return (uint32_t)mix(i); });
    to.poison();
    std::vector<const void*> sources;
    std::vector<void*> targets;
    std::vector<uint32_t> sizes;
    std::vector<uint32_t> want(n), all = from.host(n);
    for (size_t end = 0; end < n;) {
        size_t len = std::min<size_t>(n - end, mix(sizes.size()) % 32768);
        size_t source = n - end - len;
        sources.push_back(from.data + source);
        targets.push_back(to.data + end);
        sizes.push_back((uint32_t)(4 * len));
        std::copy_n(all.begin() + source, len, want.begin() + end);
        end += len;
    }
    Buffer<const void*> in(sources);
    Buffer<void*> out(targets);
    Buffer<uint32_t> bytes(sizes);
    auto call = [&](void* t, size_t& b) {
        return cub::DeviceMemcpy::Batched(t, b, in.data, out.data, bytes.data, (uint32_t)sizes.size());
    };
    Prepared run(call);
    Times times = measure([&] { run(); });
    report("CUB", what, "u32", n, 8.0 * n, times, to.host(n) == want);
}

// Indices that rise by 1 on average.
void gather(const Wanted& wanted)
{
    size_t n = size_t(1) << 28;
    std::string what = "copy gather, sorted";
    if (!wanted(what, "u32", n)) {
        return;
    }
    Buffer<uint32_t> from(n), index(n), to(n);
    fill(from, [] __device__(size_t i) { return (uint32_t)mix(i); });
    fill(index, [] __device__(size_t i) { return (uint32_t)(i / 4 * 4 + (i % 4 > 1 ? 2 : 0) + (mix(i / 2) >> 63)); });
    to.poison();
    Times times = measure([&] { thrust::gather(thrust::cuda::par_nosync, index.data, index.data + n, from.data, to.data); });
    const uint32_t *a = from.data, *at = index.data, *b = to.data;
    bool ok = total(n, [=] __device__(size_t i) { return a[at[i]] != b[i]; }) == 0;
    report("Thrust", what, "u32", n, 12.0 * n, times, ok);
}

int main(int count, char** arguments)
{
    Wanted wanted(count, arguments);
    plain<uint32_t>(wanted, "copy aligned", "u32", 0, 0);
    vectors(wanted);
    plain<uint32_t>(wanted, "copy from element 1", "u32", 1, 0);
    plain<uint32_t>(wanted, "copy to element 1", "u32", 0, 1);
    plain<uint8_t>(wanted, "copy from element 1", "u8", 1, 0);
    plain<uint8_t>(wanted, "copy to element 1", "u8", 0, 1);
    rows(wanted, "copy strided rows", 32);
    rows(wanted, "copy strided rows, odd", 1);
    ranges(wanted);
    gather(wanted);
    return 0;
}
