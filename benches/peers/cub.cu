// CUB, cuBLAS and the driver's own copy, on what `oclprim bench` measures. Build: nvcc -O3 -std=c++17 -arch=native cub.cu
#include "harness.cuh"

#include <cmath>
#include <cub/cub.cuh>
#include <dlfcn.h>

// Asks CUB for its temporary storage once; then a call is one run.
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

template <class T>
void reductions(const char* element)
{
    for (size_t n : {size_t(1) << 10, size_t(1) << 16, size_t(1) << 20, size_t(1) << 24, size_t(1) << 28}) {
        Buffer<T> in(n), out(1);
        fill(in, [] __device__(size_t i) { return (T)(int64_t)(mix(i) >> 44) - (T)(1 << 19); });
        std::vector<T> host = in.host(n);
        double sum = 0;
        uint64_t exact = 0;
        for (T x : host) {
            sum += (double)x;
            exact += (uint64_t)(int64_t)x;
        }
        T least = *std::min_element(host.begin(), host.end());
        T result;
        auto download = [&] { CHECK(cudaMemcpy(&result, out.data, sizeof(T), cudaMemcpyDeviceToHost)); };
        double bytes = (double)n * sizeof(T);
        {
            auto call = [&](void* t, size_t& b) { return cub::DeviceReduce::Sum(t, b, in.data, out.data, (int64_t)n); };
            Prepared run(call);
            Times times = measure([&] { run(); }, download);
            bool ok = std::is_integral<T>::value ? (uint32_t)result == (uint32_t)exact
                                                 : std::fabs((double)result - sum) <= 1e-3 * std::sqrt((double)n) * (1 << 19);
            report("CUB", "reduce sum", element, n, bytes, times, ok);
        }
        {
            auto call = [&](void* t, size_t& b) { return cub::DeviceReduce::Min(t, b, in.data, out.data, (int64_t)n); };
            Prepared run(call);
            Times times = measure([&] { run(); }, download);
            report("CUB", "reduce min", element, n, bytes, times, result == least);
        }
        {
            Buffer<cub::KeyValuePair<int, T>> pair(1);
            cub::KeyValuePair<int, T> found;
            auto call = [&](void* t, size_t& b) { return cub::DeviceReduce::ArgMin(t, b, in.data, pair.data, (int)n); };
            Prepared run(call);
            Times times = measure([&] { run(); },
                [&] { CHECK(cudaMemcpy(&found, pair.data, sizeof found, cudaMemcpyDeviceToHost)); });
            report("CUB", "reduce arg-min", element, n, bytes, times, found.value == least && host[found.key] == least);
        }
    }
}

void segmented()
{
    size_t n = size_t(1) << 28;
    Buffer<int> in(n);
    fill(in, [] __device__(size_t i) { return (int)(mix(i) >> 40); });
    std::vector<int> host = in.host(n);
    for (size_t length : {16, 256, 65536}) {
        size_t count = n / length;
        Buffer<uint32_t> offsets(count + 1);
        Buffer<int> out(count);
        fill(offsets, [=] __device__(size_t i) { return (uint32_t)(i * length); });
        auto call = [&](void* t, size_t& b) {
            return cub::DeviceSegmentedReduce::Sum(t, b, in.data, out.data, (int64_t)count, offsets.data, offsets.data + 1);
        };
        Prepared run(call);
        Times times = measure([&] { run(); });
        std::vector<int> got = out.host(count);
        bool ok = true;
        for (size_t s = 0; s < count; s++) {
            uint32_t want = 0;
            for (size_t i = s * length; i < (s + 1) * length; i++) {
                want += (uint32_t)host[i];
            }
            ok = ok && (uint32_t)got[s] == want;
        }
        report("CUB", "segmented sum of " + std::to_string(length), "i32", n, 4.0 * n, times, ok);
    }
}

template <class T, class Level, class Make>
void histogram(const char* element, int bins, const char* data, Make make)
{
    size_t n = size_t(1) << 28;
    Buffer<T> in(n);
    Buffer<int> counts(bins);
    fill(in, make);
    std::vector<int> want(bins);
    for (T x : in.host(n)) {
        want[(size_t)x]++;
    }
    auto call = [&](void* t, size_t& b) {
        return cub::DeviceHistogram::HistogramEven(t, b, in.data, counts.data, bins + 1, (Level)0, (Level)bins, (int64_t)n);
    };
    Prepared run(call);
    Times times = measure([&] { run(); });
    bool ok = counts.host(bins) == want;
    report("CUB", "histogram " + std::to_string(bins) + " bins, " + data, element, n, (double)n * sizeof(T) + 4.0 * bins, times, ok);
}

void histograms()
{
    for (int bins : {256, 1024, 4096, 16384, 65536, 5 << 20}) {
        histogram<int, int>("i32", bins, "uniform", [=] __device__(size_t i) { return (int)((mix(i) >> 32) * bins >> 32); });
        histogram<int, int>("i32", bins, "constant", [=] __device__(size_t) { return bins / 2; });
    }
    histogram<uint8_t, int>("u8", 256, "uniform", [] __device__(size_t i) { return (uint8_t)(mix(i) >> 56); });
    histogram<float, float>("f32", 256, "uniform", [] __device__(size_t i) { return (float)((mix(i) >> 40) * (256.0 / (1 << 24))); });
}

void copies()
{
    for (int log = 10; log <= 30; log += 2) {
        size_t n = (size_t(1) << log) / 4;
        Buffer<uint32_t> from(n), to(n);
        fill(from, [] __device__(size_t i) { return (uint32_t)mix(i); });
        Times times = measure([&] { CHECK(cudaMemcpyAsync(to.data, from.data, 4 * n, cudaMemcpyDeviceToDevice)); });
        report("CUDA", "copy", "u32", n, 8.0 * n, times, to.host(n) == from.host(n));
    }
}

// By dlopen, so that neither header nor link line is needed.
struct Blas {
    using Handle = void*;
    int (*create)(Handle*) = nullptr;
    int (*sgeam)(Handle, int, int, int, int, const float*, const float*, int, const float*, const float*, int, float*, int) = nullptr;
    int (*dgeam)(Handle, int, int, int, int, const double*, const double*, int, const double*, const double*, int, double*, int) = nullptr;
    Handle handle = nullptr;
    bool open() {
        void* library = nullptr;
        for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}) {
            library = library ? library : dlopen(name, RTLD_NOW);
        }
        if (!library) {
            return false;
        }
        create = (decltype(create))dlsym(library, "cublasCreate_v2");
        sgeam = (decltype(sgeam))dlsym(library, "cublasSgeam");
        dgeam = (decltype(dgeam))dlsym(library, "cublasDgeam");
        return create && sgeam && dgeam && create(&handle) == 0;
    }
    int geam(int m, int n, const float* one, const float* in, const float* zero, float* out) {
        return sgeam(handle, 1, 0, m, n, one, in, n, zero, out, m, out, m);
    }
    int geam(int m, int n, const double* one, const double* in, const double* zero, double* out) {
        return dgeam(handle, 1, 0, m, n, one, in, n, zero, out, m, out, m);
    }
};

template <class T>
void transposition(Blas& blas, const char* element, size_t rows, size_t cols)
{
    size_t n = rows * cols;
    Buffer<T> in(n), out(n);
    fill(in, [] __device__(size_t i) { return (T)(mix(i) >> 41); });
    T one = 1, zero = 0;
    int status = 0;
    Times times = measure([&] { status |= blas.geam((int)rows, (int)cols, &one, in.data, &zero, out.data); });
    std::vector<T> from = in.host(n), to = out.host(n);
    bool ok = status == 0;
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < cols; c++) {
            ok = ok && to[c * rows + r] == from[r * cols + c];
        }
    }
    report("cuBLAS", "transpose " + std::to_string(rows) + " x " + std::to_string(cols), element, n, 2.0 * n * sizeof(T), times, ok);
}

int main()
{
    copies();
    reductions<int>("i32");
    reductions<float>("f32");
    reductions<double>("f64");
    segmented();
    histograms();
    Blas blas;
    if (!blas.open()) {
        fprintf(stderr, "no cuBLAS\n");
        return 0;
    }
    for (size_t side : {4096, 8192, 16384}) {
        transposition<float>(blas, "f32", side, side);
        transposition<double>(blas, "f64", side, side);
    }
    transposition<float>(blas, "f32", 10000, 30000);
    transposition<float>(blas, "f32", 4097, 8191);
    return 0;
}
