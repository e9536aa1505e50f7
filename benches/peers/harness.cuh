// What the CUDA peers share: data, timing by events and by the host's clock, one JSON line for each result.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(call)                                                                                       \
    do {                                                                                                  \
        cudaError_t error = (call);                                                                       \
        if (error != cudaSuccess) {                                                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error));     \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

// Device memory, freed with its owner.
template <class T>
struct Buffer {
    T* data = nullptr;
    size_t len;
    explicit Buffer(size_t n) : len(n) { CHECK(cudaMalloc(&data, std::max<size_t>(n, 1) * sizeof(T))); }
    ~Buffer() { cudaFree(data); }
    Buffer(const Buffer&) = delete;
    Buffer(Buffer&& other) : data(other.data), len(other.len) { other.data = nullptr; }
    std::vector<T> host(size_t n) const {
        std::vector<T> out(n);
        CHECK(cudaMemcpy(out.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
        return out;
    }
    void poison() { CHECK(cudaMemset(data, 0xA5, len * sizeof(T))); }
};

// SplitMix64 by its counter.
__host__ __device__ inline uint64_t mix(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

template <class T, class F>
__global__ void generate(T* out, size_t n, F f)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        out[i] = f(i);
    }
}

template <class T, class F>
void fill(Buffer<T>& buffer, F f)
{
    generate<<<1024, 256>>>(buffer.data, buffer.len, f);
    CHECK(cudaDeviceSynchronize());
}

struct Sample {
    double median, spread;
};

inline Sample sample(std::vector<double> seconds)
{
    std::sort(seconds.begin(), seconds.end());
    auto at = [&](double part) { return seconds[(size_t)((seconds.size() - 1) * part + 0.5)]; };
    return {at(0.5), (at(0.95) - at(0.05)) / 2 / at(0.5)};
}

// Reads twice the second-level cache, so that nothing of an earlier run is left in it.
struct Scrub {
    Buffer<uint32_t> other, sink;
    Scrub() : other((128 << 20) / 4), sink(1) { CHECK(cudaMemset(other.data, 1, other.len * 4)); }
    void run();
};

__global__ inline void read_all(const uint4* in, size_t n, uint32_t* sink)
{
    uint32_t all = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        all |= in[i].x ^ in[i].y ^ in[i].z ^ in[i].w;
    }
    if (all == 0xdeadbeef) {
        *sink = all;
    }
}

inline void Scrub::run() { read_all<<<1024, 256>>>((const uint4*)other.data, other.len / 4, sink.data); }

struct Times {
    Sample device, wall;
};

// As `oclprim bench` does: three runs to warm up, 25 timed, caches cold. `finish` ends what counts as wall time, such as
// a copy of the result to the host.
template <class Run, class Finish>
Times measure(Run run, Finish finish)
{
    static Scrub scrub;
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<double> device, wall;
    for (int round = 0; round < 28; round++) {
        scrub.run();
        CHECK(cudaDeviceSynchronize());
        auto start = std::chrono::steady_clock::now();
        CHECK(cudaEventRecord(begin));
        run();
        CHECK(cudaEventRecord(end));
        finish();
        CHECK(cudaDeviceSynchronize());
        double host = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        float milliseconds;
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        if (round >= 3) {
            device.push_back(milliseconds * 1e-3);
            wall.push_back(host);
        }
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return {sample(device), sample(wall)};
}

template <class Run>
Times measure(Run run)
{
    return measure(run, [] {});
}

// `what` is the crate's own name of the benchmark, so that the two lines meet.
inline void report(const char* peer, const std::string& what, const char* element, size_t n, double bytes, Times times, bool ok)
{
    printf("{\"peer\":\"%s\",\"what\":\"%s\",\"element\":\"%s\",\"n\":%zu,\"bytes\":%.0f,\"median\":%.4e,\"spread\":%.4f,"
           "\"wall\":%.4e,\"ok\":%s}\n",
        peer, what.c_str(), element, n, bytes, times.device.median, times.device.spread, times.wall.median, ok ? "true" : "false");
    fflush(stdout);
}
