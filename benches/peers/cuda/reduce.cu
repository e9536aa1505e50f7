// CUB's reductions, whole and segmented, and textbook sums in several steps.
#include "harness.cuh"

#include <cmath>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cuda/std/functional>
#include <cuda_fp16.h>

const size_t SIZES[] = {size_t(1) << 10, size_t(1) << 16, size_t(1) << 20, size_t(1) << 24, size_t(1) << 28};

// True if `value` occurs and no element is less.
template <class T>
bool least(const T* x, size_t n, T value)
{
    return total(n, [=] __device__(size_t i) { return x[i] < value; }) == 0
        && total(n, [=] __device__(size_t i) { return x[i] == value; }) > 0;
}

// The type in which a block sums its elements: integers wrap.
template <class T>
using Added = typename std::conditional<std::is_integral<T>::value, unsigned, T>::type;

// The textbooks' second-last step: four elements per thread, then a tree in shared memory, with shuffles at its last
// levels.
template <class T>
__global__ void by_blocks(const T* in, size_t n, T* out)
{
    constexpr unsigned BLOCK = 128;
    __shared__ Added<T> partial[BLOCK];
    unsigned id = threadIdx.x;
    Added<T> sum = 0;
    for (unsigned k = 0; k < 4; k++) {
        size_t i = blockIdx.x * (size_t)(4 * BLOCK) + k * BLOCK + id;
        sum += i < n ? (Added<T>)in[i] : (Added<T>)0;
    }
    partial[id] = sum;
    __syncthreads();
    for (unsigned half = BLOCK / 2; half >= 32; half /= 2) {
        if (id < half) {
            partial[id] += partial[id + half];
        }
        __syncthreads();
    }
    if (id < 32) {
        sum = partial[id];
        for (unsigned step = 16; step > 0; step /= 2) {
            sum += __shfl_down_sync(0xffffffff, sum, step);
        }
        if (id == 0) {
            out[blockIdx.x] = (T)sum;
        }
    }
}

// The last step: each thread strides over the whole input, so that one more small launch sums the results of a few
// blocks.
template <class T>
__global__ void by_strides(const T* in, size_t n, T* out)
{
    __shared__ Added<T> partial[32];
    Added<T> sum = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        sum += (Added<T>)in[i];
    }
    for (unsigned step = 16; step > 0; step /= 2) {
        sum += __shfl_down_sync(0xffffffff, sum, step);
    }
    if (threadIdx.x % 32 == 0) {
        partial[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : (Added<T>)0;
        for (unsigned step = 16; step > 0; step /= 2) {
            sum += __shfl_down_sync(0xffffffff, sum, step);
        }
        if (threadIdx.x == 0) {
            out[blockIdx.x] = (T)sum;
        }
    }
}

// Sums of blocks are summed again until one is left.
template <class T>
struct Passes {
    Buffer<T> first, second;
    explicit Passes(size_t n) : first((n + 511) / 512), second((n + 511) / 512) {}
    void operator()(const T* in, size_t n, T* out) {
        Buffer<T>* to = &first;
        while (true) {
            size_t blocks = (n + 511) / 512;
            by_blocks<<<(unsigned)blocks, 128>>>(in, n, blocks > 1 ? to->data : out);
            if (blocks <= 1) {
                return;
            }
            in = to->data;
            n = blocks;
            to = to == &first ? &second : &first;
        }
    }
};

template <class T>
struct Strides {
    static constexpr unsigned BLOCKS = 1024;
    Buffer<T> partial{BLOCKS};
    explicit Strides(size_t) {}
    void operator()(const T* in, size_t n, T* out) {
        by_strides<<<BLOCKS, 512>>>(in, n, partial.data);
        by_strides<<<1, 1024>>>(partial.data, BLOCKS, out);
    }
};

template <class T>
void reductions(const Wanted& wanted, const char* element)
{
    for (size_t n : SIZES) {
        // The wall time of a sum includes the copy of the result to the host.
        std::string sum = n <= 1 << 20 ? "reduce sum to the host" : "reduce sum";
        if (!wanted(sum, element, n) && !wanted("reduce min", element, n) && !wanted("reduce arg-min", element, n)) {
            continue;
        }
        // The elements are whole numbers, so integers give the exact sum.
        Buffer<T> in(n), out(1);
        fill(in, [] __device__(size_t i) { return (T)(int64_t)(mix(i) >> 44) - (T)(1 << 19); });
        const T* x = in.data;
        double bytes = (double)n * sizeof(T);
        T result;
        auto download = [&] { CHECK(cudaMemcpy(&result, out.data, sizeof(T), cudaMemcpyDeviceToHost)); };
        if (wanted(sum, element, n)) {
            int64_t exact = (int64_t)total(n, [=] __device__(size_t i) { return (unsigned long long)(long long)x[i]; });
            auto ok = [&] {
                double most = 1e-3 * std::sqrt((double)n) * (1 << 19);
                return std::is_integral<T>::value ? (uint32_t)(int64_t)result == (uint32_t)exact
                                                  : std::fabs((double)result - exact) <= most;
            };
            auto call = [&](void* t, size_t& b) { return cub::DeviceReduce::Sum(t, b, in.data, out.data, (int)n); };
            Prepared run(call);
            Times times = measure([&] { run(); }, download);
            report("CUB", sum, element, n, bytes, times, ok());
            Passes<T> passes(n);
            out.poison();
            times = measure([&] { passes(x, n, out.data); }, download);
            report("CUDA in shared memory, unrolled", sum, element, n, bytes, times, ok());
            Strides<T> strides(n);
            out.poison();
            times = measure([&] { strides(x, n, out.data); }, download);
            report("CUDA by shuffles", sum, element, n, bytes, times, ok());
        }
        if (wanted("reduce min", element, n)) {
            auto call = [&](void* t, size_t& b) { return cub::DeviceReduce::Min(t, b, in.data, out.data, (int)n); };
            Prepared run(call);
            Times times = measure([&] { run(); }, download);
            report("CUB", "reduce min", element, n, bytes, times, least(x, n, result));
        }
        if (wanted("reduce arg-min", element, n)) {
            Buffer<int64_t> place(1);
            auto call = [&](void* t, size_t& b) {
                return cub::DeviceReduce::ArgMin(t, b, in.data, out.data, place.data, (int64_t)n);
            };
            Prepared run(call);
            Times times = measure([&] { run(); }, download);
            size_t at = (size_t)place.host(1)[0];
            T value = result;
            bool ok = at < n && least(x, n, value) && total(at, [=] __device__(size_t i) { return x[i] == value; }) == 0
                && total(1, [=] __device__(size_t) { return x[at] != value; }) == 0;
            report("CUB", "reduce arg-min", element, n, bytes, times, ok);
        }
    }
}

#if CUB_VERSION >= 300100
// CUB's sum with the same bits on each GPU. It is not correctly rounded.
template <class T>
void reproducible(const Wanted& wanted, const char* element)
{
    size_t n = size_t(1) << 28;
    if (!wanted("reduce sum exact", element, n)) {
        return;
    }
    Buffer<T> in(n), out(1);
    fill(in, [] __device__(size_t i) { return (T)(int64_t)(mix(i) >> 44) - (T)(1 << 19); });
    const T* x = in.data;
    int64_t exact = (int64_t)total(n, [=] __device__(size_t i) { return (unsigned long long)(long long)x[i]; });
    auto how = ::cuda::execution::require(::cuda::execution::determinism::gpu_to_gpu);
    Times times = measure([&] { CHECK(cub::DeviceReduce::Sum(in.data, out.data, (int)n, how)); });
    bool ok = std::fabs((double)out.host(1)[0] - exact) <= 1e-7 * n * (1 << 19);
    report("CUB gpu_to_gpu", "reduce sum exact", element, n, (double)n * sizeof(T), times, ok);
}
#endif

// Sums in a wider type.
template <class T, class U>
void wider(const Wanted& wanted, const char* element, const char* sum_element)
{
    size_t n = size_t(1) << 28;
    std::string what = std::string("reduce sum in ") + sum_element;
    if (!wanted(what, element, n)) {
        return;
    }
    Buffer<T> in(n);
    Buffer<U> out(1);
    // Of each pair of neighbours, one is 1 and the other is 0, so the sum is known.
    fill(in, [] __device__(size_t i) { return (T)(float)(mix(i / 2) >> 63 ^ (i & 1)); });
    auto call = [&](void* t, size_t& b) {
        return cub::DeviceReduce::Reduce(t, b, in.data, out.data, (int)n, ::cuda::std::plus<U>{}, U{});
    };
    Prepared run(call);
    Times times = measure([&] { run(); });
    double half = n / 2.0;
    report("CUB", what, element, n, (double)n * sizeof(T), times, std::fabs((double)out.host(1)[0] - half) <= 1e-6 * half);
}

void segmented(const Wanted& wanted, const std::string& name, const std::vector<uint32_t>& host)
{
    size_t n = size_t(1) << 28;
    std::string what = "reduce sum of segments " + name;
    if (!wanted(what, "f32", n)) {
        return;
    }
    size_t count = host.size() - 1;
    Buffer<float> in(n), out(count);
    Buffer<uint32_t> offsets(host);
    fill(in, [] __device__(size_t i) { return random<float>(i); });
    const float *from = in.data, *to = out.data;
    const uint32_t* at = offsets.data;
    auto wrong = [=] __device__(size_t s) {
        double sum = 0;
        for (uint32_t i = at[s]; i < at[s + 1]; i++) {
            sum += from[i];
        }
        return !(fabs(to[s] - sum) <= 1e-4 * (at[s + 1] - at[s]));
    };
    {
        out.poison();
        auto call = [&](void* t, size_t& b) {
            return cub::DeviceSegmentedReduce::Sum(t, b, in.data, out.data, (int)count, offsets.data, offsets.data + 1);
        };
        Prepared run(call);
        Times times = measure([&] { run(); });
        report("CUB", what, "f32", n, 4.0 * n, times, total(count, wrong) == 0);
    }
#if CUB_VERSION >= 300100
    if (name != "by a power law") {
        out.poison();
        auto call = [&](void* t, size_t& b) {
            return cub::DeviceSegmentedReduce::Sum(t, b, in.data, out.data, (int64_t)count, (int)(n / count));
        };
        Prepared run(call);
        Times times = measure([&] { run(); });
        report("CUB fixed size", what, "f32", n, 4.0 * n, times, total(count, wrong) == 0);
    }
#endif
}

void segments(const Wanted& wanted)
{
    size_t n = size_t(1) << 28;
    for (size_t length : {16, 256, 65536}) {
        std::vector<uint32_t> offsets;
        for (size_t at = 0; at <= n; at += length) {
            offsets.push_back((uint32_t)at);
        }
        segmented(wanted, "of " + std::to_string(length), offsets);
    }
    if (wanted("reduce sum of segments by a power law", "f32", n)) {
        segmented(wanted, "by a power law", power_law(n));
    }
}

int main(int count, char** arguments)
{
    Wanted wanted(count, arguments);
    reductions<int>(wanted, "i32");
    reductions<float>(wanted, "f32");
    reductions<double>(wanted, "f64");
#if CUB_VERSION >= 300100
    reproducible<float>(wanted, "f32");
    reproducible<double>(wanted, "f64");
#endif
    wider<uint8_t, uint32_t>(wanted, "u8", "u32");
    wider<int16_t, int64_t>(wanted, "i16", "i64");
    wider<__half, float>(wanted, "f16", "f32");
    segments(wanted);
    return 0;
}
