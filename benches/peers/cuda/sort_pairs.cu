// CUB's radix sort of pairs, and its sorts of segments.
#include "harness.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>

void pairs(const Wanted& wanted)
{
    std::string what = "sort pairs with u32, bits";
    for (int log : {16, 20, 24, 27, 28}) {
        size_t n = size_t(1) << log;
        if (!wanted(what, "u32", n)) {
            continue;
        }
        Buffer<uint32_t> keys(n), values(n), keys_out(n), values_out(n);
        fill(keys, [] __device__(size_t i) { return (uint32_t)mix(i); });
        fill(values, [] __device__(size_t i) { return (uint32_t)i; });
        keys_out.poison();
        values_out.poison();
        auto call = [&](void* t, size_t& b) {
            return cub::DeviceRadixSort::SortPairs(t, b, keys.data, keys_out.data, values.data, values_out.data, (int)n);
        };
        Prepared run(call);
        Times times = measure([&] { run(); });
        // The output is right if its pairs ascend strictly and each pair occurs in the input.
        const uint32_t *in = keys.data, *key = keys_out.data, *value = values_out.data;
        auto wrong = [=] __device__(size_t i) {
            auto pair = [=](size_t i) { return (uint64_t)key[i] << 32 | value[i]; };
            return value[i] >= n || in[value[i]] != key[i] || (i > 0 && pair(i - 1) >= pair(i));
        };
        report("CUB", what, "u32", n, 16.0 * n, times, total(n, wrong) == 0);
    }
}

// Segments of 0 to 512 keys.
void segments(const Wanted& wanted)
{
    size_t n = size_t(1) << 28;
    std::string what = "sort keys of segments of 256";
    if (!wanted(what, "u32", n)) {
        return;
    }
    std::vector<uint32_t> host{0};
    for (size_t end = 0; end < n;) {
        end = std::min(n, end + mix(host.size()) % 513);
        host.push_back((uint32_t)end);
    }
    size_t count = host.size() - 1;
    Buffer<uint32_t> offsets(host), keys(n), out(n);
    fill(keys, [] __device__(size_t i) { return (uint32_t)mix(i); });
    auto ok = [&] {
        const uint32_t *at = offsets.data, *in = keys.data, *to = out.data;
        auto wrong = [=] __device__(size_t s) {
            uint64_t before = 0, after = 0;
            bool falls = false;
            for (uint32_t i = at[s]; i < at[s + 1]; i++) {
                falls = falls || (i > at[s] && to[i] < to[i - 1]);
                before += mix(in[i]);
                after += mix(to[i]);
            }
            return falls || before != after;
        };
        return total(count, wrong) == 0;
    };
    {
        out.poison();
        auto call = [&](void* t, size_t& b) {
            return cub::DeviceSegmentedSort::SortKeys(
                t, b, keys.data, out.data, (int64_t)n, (int64_t)count, offsets.data, offsets.data + 1);
        };
        Prepared run(call);
        Times times = measure([&] { run(); });
        report("CUB segmented", what, "u32", n, 8.0 * n, times, ok());
    }
    {
        out.poison();
        auto call = [&](void* t, size_t& b) {
            return cub::DeviceSegmentedRadixSort::SortKeys(
                t, b, keys.data, out.data, (int)n, (int)count, offsets.data, offsets.data + 1);
        };
        Prepared run(call);
        Times times = measure([&] { run(); });
        report("CUB segmented radix", what, "u32", n, 8.0 * n, times, ok());
    }
}

int main(int count, char** arguments)
{
    Wanted wanted(count, arguments);
    pairs(wanted);
    segments(wanted);
    return 0;
}
