// CUB's histograms, and textbook histograms: in shared memory, and by atomics in global memory.
#include "harness.cuh"

#include <cub/device/device_histogram.cuh>

// True if the counts are right. The whole part of a sample is its bin's number.
template <class T>
bool counted(const T* in, size_t n, const int* counts, int bins)
{
    Buffer<int> other(bins);
    CHECK(cudaMemset(other.data, 0, 4 * (size_t)bins));
    int* want = other.data;
    total(n, [=] __device__(size_t i) { return atomicAdd(want + (size_t)in[i], 1) < 0; });
    return total(bins, [=] __device__(size_t i) { return counts[i] != want[i]; }) == 0;
}

// Each block counts in its shared memory, and writes its counts to row blockIdx.x of `counts`.
template <class T>
__global__ void count_in_blocks(const T* in, size_t n, int bins, unsigned* counts)
{
    extern __shared__ unsigned own[];
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) {
        own[bin] = 0;
    }
    __syncthreads();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        atomicAdd(own + (int)in[i], 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) {
        counts[blockIdx.x * (size_t)bins + bin] = own[bin];
    }
}

// One block per bin sums the counts of all blocks.
static __global__ void add_blocks(const unsigned* counts, int blocks, int bins, int* out)
{
    __shared__ unsigned sums[256];
    unsigned sum = 0;
    for (int block = threadIdx.x; block < blocks; block += 256) {
        sum += counts[block * (size_t)bins + blockIdx.x];
    }
    sums[threadIdx.x] = sum;
    for (unsigned half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        out[blockIdx.x] = (int)sums[0];
    }
}

template <class T>
__global__ void count_in_global(const T* in, size_t n, int* counts)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        atomicAdd(counts + (int)in[i], 1);
    }
}

// Counts in shared memory if the default size holds the bins, otherwise by atomics in global memory.
template <class T>
void by_hand(const std::string& what, const char* element, const Buffer<T>& in, Buffer<int>& counts)
{
    constexpr unsigned BLOCKS = 264;
    int bins = (int)counts.len;
    size_t n = in.len, held = 4 * counts.len;
    bool shared = held <= 48 << 10;
    Buffer<unsigned> parts(shared ? BLOCKS * counts.len : 0);
    counts.poison();
    Times times = measure([&] {
        if (shared) {
            count_in_blocks<<<BLOCKS, 1024, held>>>(in.data, n, bins, parts.data);
            add_blocks<<<bins, 256>>>(parts.data, BLOCKS, bins, counts.data);
        } else {
            CHECK(cudaMemsetAsync(counts.data, 0, held));
            count_in_global<<<(unsigned)((n + 1023) / 1024), 1024>>>(in.data, n, counts.data);
        }
    });
    CHECK(cudaGetLastError());
    bool ok = counted(in.data, n, counts.data, bins);
    const char* peer = shared ? "CUDA in shared memory" : "CUDA by atomics";
    report(peer, what, element, n, (double)n * sizeof(T) + held, times, ok);
}

template <class T, class Make, class Count>
void one(const Wanted& wanted, const std::string& what, const char* element, int bins, Make make, Count count)
{
    size_t n = size_t(1) << 28;
    if (!wanted(what, element, n)) {
        return;
    }
    Buffer<T> in(n);
    Buffer<int> counts(bins);
    fill(in, make);
    counts.poison();
    auto call = [&](void* t, size_t& b) { return count(t, b, in.data, counts.data, (int)n); };
    Prepared run(call);
    Times times = measure([&] { run(); });
    bool ok = counted(in.data, n, counts.data, bins);
    report("CUB", what, element, n, (double)n * sizeof(T) + 4.0 * bins, times, ok);
    // With even edges, the whole part of a sample is its bin, too.
    by_hand(what, element, in, counts);
}

template <class T, class Make>
void even(const Wanted& wanted, const std::string& what, const char* element, int bins, Make make)
{
    // Levels in the type that CUB expects.
    using Level = typename std::conditional<std::is_floating_point<T>::value, float, int>::type;
    auto count = [=](void* t, size_t& b, const T* in, int* counts, int n) {
        return cub::DeviceHistogram::HistogramEven(t, b, in, counts, bins + 1, (Level)0, (Level)bins, n);
    };
    one<T>(wanted, what, element, bins, make, count);
}

// The bin of sample i. The share of bin k falls about as 1 / (k + 1), because the logarithm of the bin plus 1 is uniform.
__host__ __device__ inline double zipf(size_t i, int bins)
{
    double share = (mix(i) >> 11) * (1.0 / (1ull << 53));
    double bin = exp(share * log(bins + 1.0)) - 1;
    return bin < bins ? (double)(int)bin : bins - 1;
}

template <class T>
void bins(const Wanted& wanted, const std::string& form, const char* element, int bins)
{
    std::string what = "histogram " + form + std::to_string(bins) + " bins, ";
    even<T>(wanted, what + "uniform", element, bins, [=] __device__(size_t i) { return (T)((mix(i) >> 32) * bins >> 32); });
    even<T>(wanted, what + "one bin", element, bins, [=] __device__(size_t) { return (T)(bins / 2); });
    even<T>(wanted, what + "zipf", element, bins, [=] __device__(size_t i) { return (T)zipf(i, bins); });
}

int main(int argc, char** argv)
{
    Wanted wanted(argc, argv);
    for (int count : {256, 1024, 4096, 16384, 65536, 5 << 20}) {
        bins<int>(wanted, "ids, ", "i32", count);
    }
    bins<uint8_t>(wanted, "ids, ", "u8", 256);
    bins<float>(wanted, "even, ", "f32", 256);
    // Histograms by given edges, which are even here.
    std::vector<float> levels;
    for (int i = 0; i <= 256; i++) {
        levels.push_back((float)i);
    }
    Buffer<float> edges(levels);
    auto count = [&](void* t, size_t& b, const float* in, int* counts, int n) {
        return cub::DeviceHistogram::HistogramRange(t, b, in, counts, 257, edges.data, n);
    };
    auto make = [] __device__(size_t i) { return (float)((mix(i) >> 40) * (256.0 / (1 << 24))); };
    one<float>(wanted, "histogram edges, 256 bins, even", "f32", 256, make, count);
    return 0;
}
