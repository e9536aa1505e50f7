// CUB on runs of equal elements: unique, run-length encoding, reduction by key.
#include "harness.cuh"

#include <cmath>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_select.cuh>
#include <cuda/std/functional>

int main(int argc, char** argv)
{
    Wanted wanted(argc, argv);
    size_t n = size_t(1) << 28;
    for (uint64_t length : {2, 16, 256}) {
        std::string runs = ", runs of " + std::to_string(length);
        std::string unique = "select unique" + runs, encoded = "select run-length encoded" + runs, by_key = "select sum by key" + runs;
        if (!wanted(unique, "u32", n) && !wanted(encoded, "u32", n) && !wanted(by_key, "f32", n)) {
            continue;
        }
        // Runs of 1 to 2 * length - 1 elements, as in the crate.
        std::vector<uint32_t> host(n), want, lengths;
        uint32_t value = 0;
        for (size_t i = 0, run = 0; i < n; run++) {
            uint64_t bits = mix(run);
            size_t end = std::min<size_t>(n, i + 1 + (uint32_t)bits % (2 * length - 1));
            value = (value + 1 + (uint32_t)(bits >> 32) % 100) % 120;
            want.push_back(value);
            lengths.push_back((uint32_t)(end - i));
            while (i < end) {
                host[i++] = value;
            }
        }
        size_t found = want.size();
        Buffer<uint32_t> in(host), keys(n), counts(n);
        Buffer<int> count(1);
        auto right = [&](bool with_lengths) {
            return (size_t)count.host(1)[0] == found && keys.host(found) == want
                && (!with_lengths || counts.host(found) == lengths);
        };
        if (wanted(unique, "u32", n)) {
            keys.poison();
            auto call = [&](void* t, size_t& b) {
                return cub::DeviceSelect::Unique(t, b, in.data, keys.data, count.data, (int)n);
            };
            Prepared run(call);
            Times times = measure([&] { run(); });
            report("CUB", unique, "u32", n, 4.0 * (n + found), times, right(false));
        }
        if (wanted(encoded, "u32", n)) {
            keys.poison();
            counts.poison();
            auto call = [&](void* t, size_t& b) {
                return cub::DeviceRunLengthEncode::Encode(t, b, in.data, keys.data, counts.data, count.data, (int)n);
            };
            Prepared run(call);
            Times times = measure([&] { run(); });
            report("CUB", encoded, "u32", n, 4.0 * n + 8.0 * found, times, right(true));
        }
        if (wanted(by_key, "f32", n)) {
            Buffer<float> values(n), sums(n);
            fill(values, [] __device__(size_t i) { return random<float>(i); });
            keys.poison();
            sums.poison();
            auto call = [&](void* t, size_t& b) {
                return cub::DeviceReduce::ReduceByKey(
                    t, b, in.data, keys.data, values.data, sums.data, count.data, ::cuda::std::plus<>{}, (int)n);
            };
            Prepared run(call);
            Times times = measure([&] { run(); });
            bool ok = right(false);
            std::vector<float> got = sums.host(found), from = values.host(n);
            for (size_t run = 0, i = 0; run < found && ok; run++) {
                double sum = 0;
                for (size_t end = i + lengths[run]; i < end; i++) {
                    sum += from[i];
                }
                ok = std::fabs(got[run] - sum) <= 1e-3;
            }
            report("CUB", by_key, "f32", n, 8.0 * (n + found), times, ok);
        }
    }
    return 0;
}
