// CUB's radix sorts of keys.
#include "harness.cuh"

#include <cub/device/device_radix_sort.cuh>

template <class T>
void keys(const Wanted& wanted, const char* element)
{
    std::string what = "sort keys, bits";
    for (int log : {16, 20, 24, 27, 28}) {
        size_t n = size_t(1) << log;
        if (!wanted(what, element, n)) {
            continue;
        }
        Buffer<T> in(n), out(n);
        fill(in, [] __device__(size_t i) {
            uint64_t bits = mix(i);
            T key;
            memcpy(&key, &bits, sizeof key);
            return key;
        });
        out.poison();
        auto call = [&](void* t, size_t& b) { return cub::DeviceRadixSort::SortKeys(t, b, in.data, out.data, (int)n); };
        Prepared run(call);
        Times times = measure([&] { run(); });
        report("CUB", what, element, n, 2.0 * n * sizeof(T), times, sorted(in.data, out.data, n));
    }
}

int main(int count, char** arguments)
{
    Wanted wanted(count, arguments);
    keys<uint32_t>(wanted, "u32");
    keys<int32_t>(wanted, "i32");
    keys<float>(wanted, "f32");
    keys<uint64_t>(wanted, "u64");
    return 0;
}
