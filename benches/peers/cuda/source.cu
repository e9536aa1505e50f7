// Sums, counts and transforms of expressions, by Thrust and by CUB with an iterator.
#include "harness.cuh"

#include <cmath>
#include <cub/device/device_reduce.cuh>
#include <cuda/std/functional>
#include <thrust/execution_policy.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>

const size_t SIZES[] = {size_t(1) << 16, size_t(1) << 20, size_t(1) << 24, size_t(1) << 28};

struct Square {
    __host__ __device__ float operator()(float x) const { return x * x; }
};
struct Cube {
    __host__ __device__ float operator()(float x) const { return fabsf(x - 0.5f) * ((x - 0.5f) * (x - 0.5f)); }
};
struct Low {
    __host__ __device__ uint32_t operator()(float x) const { return x < 0.5f; }
};
struct Product {
    __host__ __device__ float operator()(thrust::tuple<float, float> x) const { return thrust::get<0>(x) * thrust::get<1>(x); }
};

// The sum of `n` elements of an iterator, by both libraries. The wall time of Thrust includes the copy to the host.
template <class R, class Iterator>
void sums(const std::string& what, size_t n, double bytes, Iterator begin, double expected)
{
    Buffer<R> out(1);
    auto close = [&](double got) { return std::fabs(got - expected) <= 1e-3 * (std::fabs(expected) + std::sqrt((double)n)); };
    auto call = [&](void* t, size_t& b) {
        return cub::DeviceReduce::Reduce(t, b, begin, out.data, (int)n, ::cuda::std::plus<R>{}, R{});
    };
    Prepared run(call);
    Times times = measure([&] { run(); });
    report("CUB", what, "f32", n, bytes, times, close((double)out.host(1)[0]));
    R sum{};
    times = measure([&] { sum = thrust::reduce(thrust::cuda::par, begin, begin + n, R{}); });
    report("Thrust", what, "f32", n, bytes, times, close((double)sum));
}

// The sum of f(0) to f(n - 1), right to about six digits, because each is cut to a multiple of 2^-20.
template <class F>
double exact(size_t n, F f)
{
    auto scaled = [=] __device__(size_t i) { return (unsigned long long)(long long)((double)f(i) * (1 << 20)); };
    return (double)(long long)total(n, scaled) / (1 << 20);
}

void all(const Wanted& wanted)
{
    for (size_t n : SIZES) {
        Buffer<float> in(n), other(n);
        fill(in, [] __device__(size_t i) { return random<float>(i); });
        fill(other, [] __device__(size_t i) { return random<float>(i + 77); });
        const float *x = in.data, *y = other.data;
        auto pairs = thrust::make_zip_iterator(thrust::make_tuple(x, y));
        if (wanted("source sum of x * x", "f32", n)) {
            sums<float>("source sum of x * x", n, 4.0 * n, thrust::make_transform_iterator(x, Square{}),
                        exact(n, [=] __device__(size_t i) { return x[i] * x[i]; }));
        }
        if (wanted("source dot", "f32", n)) {
            sums<float>("source dot", n, 8.0 * n, thrust::make_transform_iterator(pairs, Product{}),
                        exact(n, [=] __device__(size_t i) { return x[i] * y[i]; }));
        }
        if (wanted("source sum of cubed distances", "f32", n)) {
            sums<float>("source sum of cubed distances", n, 4.0 * n, thrust::make_transform_iterator(x, Cube{}),
                        exact(n, [=] __device__(size_t i) { return Cube{}(x[i]); }));
        }
        if (wanted("source count of x < 0.5", "f32", n)) {
            sums<uint32_t>("source count of x < 0.5", n, 4.0 * n, thrust::make_transform_iterator(x, Low{}),
                           exact(n, [=] __device__(size_t i) { return x[i] < 0.5f ? 1.0f : 0.0f; }));
        }
        if (wanted("source sum of a gather, sorted", "f32", n)) {
            Buffer<uint32_t> index(n);
            fill(index, [=] __device__(size_t i) { return (uint32_t)(mix(i) % n); });
            thrust::sort(thrust::device, index.data, index.data + n);
            const uint32_t* at = index.data;
            sums<float>("source sum of a gather, sorted", n, 8.0 * n, thrust::make_permutation_iterator(x, at),
                        exact(n, [=] __device__(size_t i) { return x[at[i]]; }));
        }
        Buffer<float> out(n);
        float* to = out.data;
        if (wanted("source transform of x * x", "f32", n)) {
            out.poison();
            Times times = measure([&] { thrust::transform(thrust::cuda::par_nosync, x, x + n, to, Square{}); });
            bool ok = total(n, [=] __device__(size_t i) { return to[i] != x[i] * x[i]; }) == 0;
            report("Thrust", "source transform of x * x", "f32", n, 8.0 * n, times, ok);
        }
        if (wanted("source transform of x * y", "f32", n)) {
            out.poison();
            Times times = measure(
                [&] { thrust::transform(thrust::cuda::par_nosync, x, x + n, y, to, ::cuda::std::multiplies<float>{}); });
            bool ok = total(n, [=] __device__(size_t i) { return to[i] != x[i] * y[i]; }) == 0;
            report("Thrust", "source transform of x * y", "f32", n, 12.0 * n, times, ok);
        }
    }
}

int main(int count, char** arguments)
{
    Wanted wanted(count, arguments);
    all(wanted);
    return 0;
}
