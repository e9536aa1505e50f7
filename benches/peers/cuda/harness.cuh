// Common code of the CUDA peers: data, checks on the device, timing by events and by the host's clock, and one JSON
// line per result.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <type_traits>
#include <vector>
#if __has_include(<cub/version.cuh>)
#include <cub/version.cuh>
#endif

#define CHECK(call)                                                                                       \
    do {                                                                                                  \
        cudaError_t error = (call);                                                                       \
        if (error != cudaSuccess) {                                                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error));     \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

// Device memory, freed by its owner.
template <class T>
struct Buffer {
    T* data = nullptr;
    size_t len;
    explicit Buffer(size_t n) : len(n) { CHECK(cudaMalloc(&data, std::max<size_t>(n, 1) * sizeof(T))); }
    explicit Buffer(const std::vector<T>& host) : Buffer(host.size()) {
        CHECK(cudaMemcpy(data, host.data(), len * sizeof(T), cudaMemcpyHostToDevice));
    }
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

// Output `i` of SplitMix64, computed from the counter `i`.
__host__ __device__ inline uint64_t mix(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// Random data as in the crate: integers of all bits, floats in [-1, 1).
template <class T>
__host__ __device__ inline T random(uint64_t i)
{
    if constexpr (std::is_integral<T>::value) {
        return (T)mix(i);
    } else {
        return (T)(float)((double)(mix(i) >> 40) / (1 << 23) - 1.0);
    }
}

// Offsets of segments as in the crate. Lengths are uniform below 2^k. Half of the segments have k = 1, and each next k
// is half as frequent.
inline std::vector<uint32_t> power_law(size_t n)
{
    std::vector<uint32_t> offsets{0};
    for (size_t end = 0; end < n;) {
        uint64_t bits = mix(offsets.size());
        int ones = 0;
        while (ones < 17 && bits >> ones & 1) {
            ones++;
        }
        end = std::min<size_t>(n, end + (bits >> 32) % (size_t(2) << ones));
        offsets.push_back((uint32_t)end);
    }
    return offsets;
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

template <class F>
__global__ void add_up(size_t n, unsigned long long* sum, F f)
{
    unsigned long long own = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        own += (unsigned long long)f(i);
    }
    atomicAdd(sum, own);
}

// The sum of f(0) to f(n - 1) modulo 2^64: the number of errors, or a hash that does not depend on the order.
template <class F>
uint64_t total(size_t n, F f)
{
    Buffer<unsigned long long> sum(1);
    CHECK(cudaMemset(sum.data, 0, 8));
    if (n > 0) {
        add_up<<<1024, 256>>>(n, sum.data, f);
        CHECK(cudaGetLastError());
    }
    return sum.host(1)[0];
}

// A number that orders the keys. Both zeros of floats have the number of the positive zero, because CUB treats them as
// equal.
template <class T>
__host__ __device__ inline uint64_t ordered(T x)
{
    if constexpr (std::is_floating_point<T>::value) {
        static_assert(sizeof(T) == 4, "floats of 4 bytes");
        uint32_t bits;
        memcpy(&bits, &x, 4);
        bits = bits == 1u << 31 ? 0 : bits;
        return bits >> 31 ? ~bits : bits | 1u << 31;
    } else {
        using U = typename std::make_unsigned<T>::type;
        return (U)((U)x ^ (std::is_signed<T>::value ? (U)1 << (8 * sizeof(T) - 1) : 0));
    }
}

// True if `out` has the keys of `in` in order.
template <class T>
bool sorted(const T* in, const T* out, size_t n)
{
    bool order = total(n - 1, [=] __device__(size_t i) { return ordered(out[i]) > ordered(out[i + 1]); }) == 0;
    uint64_t before = total(n, [=] __device__(size_t i) { return mix(ordered(in[i])); });
    return order && before == total(n, [=] __device__(size_t i) { return mix(ordered(out[i])); });
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

static __global__ void read_all(const uint4* in, size_t n, uint32_t* sink)
{
    uint32_t all = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        all |= in[i].x ^ in[i].y ^ in[i].z ^ in[i].w;
    }
    if (all == 0xdeadbeef) {
        *sink = all;
    }
}

// Reads 128 MiB, more than twice the L2 cache of an H200, so that the cache keeps no data of an earlier run.
inline void scrub()
{
    static Buffer<uint32_t> other = [] {
        Buffer<uint32_t> ones((128 << 20) / 4);
        CHECK(cudaMemset(ones.data, 1, ones.len * 4));
        return ones;
    }();
    static Buffer<uint32_t> sink(1);
    read_all<<<1024, 256>>>((const uint4*)other.data, other.len / 4, sink.data);
}

struct Times {
    Sample device, wall;
};

// Timing as in `oclprim bench`: three runs warm up, and at most 25 runs are timed. After a second, three timed runs are
// enough. Caches are cold. Runs by the device's clock are queued after the kernel that fills the caches, so the host's
// time to launch them does not count. Further runs are timed by the host's clock, each from an idle device. `finish` ends
// the wall time, for example by a copy of the result to the host.
template <class Run, class Finish>
Times measure(Run run, Finish finish)
{
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<double> device, wall;
    using Clock = std::chrono::steady_clock;
    auto since = [](Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); };
    auto first = Clock::now();
    for (int round = 0; round < 28 && (round < 6 || since(first) < 1); round++) {
        scrub();
        CHECK(cudaEventRecord(begin));
        run();
        CHECK(cudaEventRecord(end));
        CHECK(cudaDeviceSynchronize());
        float milliseconds;
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        if (round >= 3) {
            device.push_back(milliseconds * 1e-3);
        }
    }
    first = Clock::now();
    for (int round = 0; round < 25 && (round < 3 || since(first) < 1); round++) {
        scrub();
        CHECK(cudaDeviceSynchronize());
        auto start = Clock::now();
        run();
        finish();
        CHECK(cudaDeviceSynchronize());
        wall.push_back(since(start));
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

// Asks CUB once for the size of its temporary storage. Then each call is one run.
template <class F>
struct Prepared {
    F call;
    size_t bytes = 0;
    Buffer<uint8_t> storage;
    static size_t ask(F& f) {
        size_t bytes = 0;
        CHECK(f(nullptr, bytes));
        return bytes;
    }
    explicit Prepared(F f) : call(f), bytes(ask(f)), storage(bytes) {}
    void operator()() {
        size_t held = bytes;
        CHECK(call(storage.data, held));
    }
};

// The rows to measure: those of the arguments, such as `scan sum inclusive u32 16777216`, or else all.
struct Wanted {
    std::set<std::string> rows;
    Wanted(int count, char** arguments) : rows(arguments + 1, arguments + count) {}
    bool operator()(const std::string& what, const char* element, size_t n) const {
        return rows.empty() || rows.count(what + " " + element + " " + std::to_string(n));
    }
};

// `what` is the crate's own name of the benchmark case, so that both results are matched.
inline void report(std::string peer, const std::string& what, const char* element, size_t n, double bytes, Times times, bool ok)
{
#ifdef CUB_VERSION
    if (peer.compare(0, 3, "CUB") == 0) {
        auto part = [](int digits) { return std::to_string(digits); };
        peer.insert(3, " " + part(CUB_VERSION / 100000) + "." + part(CUB_VERSION / 100 % 1000) + "." + part(CUB_VERSION % 100));
    }
#endif
    printf("{\"peer\":\"%s\",\"what\":\"%s\",\"element\":\"%s\",\"n\":%zu,\"bytes\":%.0f,\"median\":%.4e,\"spread\":%.4f,"
           "\"wall\":%.4e,\"ok\":%s}\n",
        peer.c_str(), what.c_str(), element, n, bytes, times.device.median, times.device.spread, times.wall.median, ok ? "true" : "false");
    fflush(stdout);
}
