// CUB's reductions, of all and of segments.
#include "harness.cuh"

#include <cmath>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cuda/std/functional>
#include <cuda_fp16.h>

const size_t SIZES[] = {size_t(1) << 10, size_t(1) << 16, size_t(1) << 20, size_t(1) << 24, size_t(1) << 28};

// Whether a value is there, and nothing less.
template <class T>
bool least(const T* x, size_t n, T value)
{
    return total(n, [=] __device__(size_t i) { return x[i] < value; }) == 0
        && total(n, [=] __device__(size_t i) { return x[i] == value; }) > 0;
}

template <class T>
void reductions(const Wanted& wanted, const char* element)
{
    for (size_t n : SIZES) {
        // The wall time of a sum includes the copy of the result to the host.
        std::string sum = n <= 1 << 20 ? "reduce sum to the host" : "reduce sum";
        if (!wanted(sum, element, n) && !wanted("reduce min", element, n) && !wanted("reduce arg-min", element, n)) {
            continue;
        }
        // Whole numbers, whose sum does not depend on the order.
        Buffer<T> in(n), out(1);
        fill(in, [] __device__(size_t i) { return (T)(int64_t)(mix(i) >> 44) - (T)(1 << 19); });
        const T* x = in.data;
        double bytes = (double)n * sizeof(T);
        T result;
        auto download = [&] { CHECK(cudaMemcpy(&result, out.data, sizeof(T), cudaMemcpyDeviceToHost)); };
        if (wanted(sum, element, n)) {
            auto call = [&](void* t, size_t& b) { return cub::DeviceReduce::Sum(t, b, in.data, out.data, (int)n); };
            Prepared run(call);
            Times times = measure([&] { run(); }, download);
            int64_t exact = (int64_t)total(n, [=] __device__(size_t i) { return (unsigned long long)(long long)x[i]; });
            bool ok = std::is_integral<T>::value ? (uint32_t)(int64_t)result == (uint32_t)exact
                                                 : std::fabs((double)result - exact) <= 1e-3 * std::sqrt((double)n) * (1 << 19);
            report("CUB", sum, element, n, bytes, times, ok);
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
    // Of each two neighbours one is 1, so that the sum is known.
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
    wider<uint8_t, uint32_t>(wanted, "u8", "u32");
    wider<int16_t, int64_t>(wanted, "i16", "i64");
    wider<__half, float>(wanted, "f16", "f32");
    segments(wanted);
    return 0;
}
