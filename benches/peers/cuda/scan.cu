// CUB's scans.
#include "harness.cuh"

#include <cmath>
#include <cub/device/device_scan.cuh>

// True if each output follows from its predecessor, and the last one is the sum of all.
template <class T>
bool scanned(const T* in, const T* out, size_t n, bool inclusive)
{
    auto wrong = [=] __device__(size_t i) {
        T before = i > 0 ? out[i - 1] : (T)0;
        T added = inclusive ? in[i] : i > 0 ? in[i - 1] : (T)0;
        if constexpr (std::is_integral<T>::value) {
            return out[i] != (T)(before + added);
        } else {
            return !(fabs((double)out[i] - ((double)before + added)) <= 1e-4 * fabs((double)before) + 0.05);
        }
    };
    if (total(n, wrong) != 0) {
        return false;
    }
    if constexpr (!std::is_integral<T>::value) {
        // The sum is in fixed point, so that its order does not matter.
        size_t added = inclusive ? n : n - 1;
        auto fixed = [=] __device__(size_t i) { return (unsigned long long)(long long)((double)in[i] * (1 << 23)); };
        double sum = (double)(int64_t)total(added, fixed) / (1 << 23);
        T last;
        CHECK(cudaMemcpy(&last, out + n - 1, sizeof last, cudaMemcpyDeviceToHost));
        return std::fabs((double)last - sum) <= 1e-3 * std::sqrt((double)n) + 1;
    }
    return true;
}

template <class T>
void scans(const Wanted& wanted, const char* element)
{
    for (size_t n : {size_t(1) << 16, size_t(1) << 20, size_t(1) << 24, size_t(1) << 28}) {
        for (bool inclusive : {true, false}) {
            std::string what = inclusive ? "scan sum inclusive" : "scan sum exclusive";
            if (!wanted(what, element, n)) {
                continue;
            }
            Buffer<T> in(n), out(n);
            fill(in, [] __device__(size_t i) { return random<T>(i); });
            out.poison();
            auto call = [&](void* t, size_t& b) {
                return inclusive ? cub::DeviceScan::InclusiveSum(t, b, in.data, out.data, (int)n)
                                 : cub::DeviceScan::ExclusiveSum(t, b, in.data, out.data, (int)n);
            };
            Prepared run(call);
            Times times = measure([&] { run(); });
            bool ok = scanned(in.data, out.data, n, inclusive);
            report("CUB", what, element, n, 2.0 * n * sizeof(T), times, ok);
        }
    }
}

// Sums that restart where the key changes. Elements are small whole numbers, so floats are exact.
template <class T>
void by_key(const Wanted& wanted, const char* element, size_t length)
{
    size_t n = size_t(1) << 28;
    std::string what = "scan sum by key, segments " + (length > 0 ? "of " + std::to_string(length) : "by a power law");
    if (!wanted(what, element, n)) {
        return;
    }
    Buffer<uint32_t> keys(n);
    if (length > 0) {
        fill(keys, [=] __device__(size_t i) { return (uint32_t)(i / length); });
    } else {
        std::vector<uint32_t> offsets = power_law(n), host(n);
        for (size_t s = 0; s + 1 < offsets.size(); s++) {
            std::fill(host.begin() + offsets[s], host.begin() + offsets[s + 1], (uint32_t)s);
        }
        CHECK(cudaMemcpy(keys.data, host.data(), 4 * n, cudaMemcpyHostToDevice));
    }
    Buffer<T> in(n), out(n);
    fill(in, [] __device__(size_t i) { return (T)(mix(i) >> 60); });
    out.poison();
    auto call = [&](void* t, size_t& b) {
        return cub::DeviceScan::InclusiveSumByKey(t, b, keys.data, in.data, out.data, (int)n);
    };
    Prepared run(call);
    Times times = measure([&] { run(); });
    const uint32_t* key = keys.data;
    const T *from = in.data, *to = out.data;
    auto wrong = [=] __device__(size_t i) { return to[i] != from[i] + (i == 0 || key[i] != key[i - 1] ? (T)0 : to[i - 1]); };
    report("CUB", what, element, n, (4.0 + 2.0 * sizeof(T)) * n, times, total(n, wrong) == 0);
}

int main(int count, char** arguments)
{
    Wanted wanted(count, arguments);
    scans<uint32_t>(wanted, "u32");
    scans<float>(wanted, "f32");
    scans<uint64_t>(wanted, "u64");
    for (size_t length : {2, 16, 256, 1 << 20, 0}) {
        by_key<uint32_t>(wanted, "u32", length);
        by_key<float>(wanted, "f32", length);
    }
    return 0;
}
