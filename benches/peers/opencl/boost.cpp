// Boost.Compute.
#include "harness.hpp"

#include <boost/compute/core.hpp>

#include <boost/compute/algorithm/copy.hpp>
#include <boost/compute/algorithm/copy_if.hpp>
#include <boost/compute/algorithm/exclusive_scan.hpp>
#include <boost/compute/algorithm/gather.hpp>
#include <boost/compute/algorithm/inclusive_scan.hpp>
#include <boost/compute/algorithm/merge.hpp>
#include <boost/compute/algorithm/min_element.hpp>
#include <boost/compute/algorithm/partition_copy.hpp>
#include <boost/compute/algorithm/reduce.hpp>
#include <boost/compute/algorithm/reduce_by_key.hpp>
#include <boost/compute/algorithm/sort.hpp>
#include <boost/compute/algorithm/stable_sort.hpp>
#include <boost/compute/algorithm/stable_sort_by_key.hpp>
#include <boost/compute/algorithm/unique_copy.hpp>
#include <boost/compute/functional.hpp>
#include <boost/compute/iterator/buffer_iterator.hpp>
#include <boost/compute/lambda.hpp>
#include <boost/version.hpp>

namespace compute = boost::compute;

template <class T>
compute::buffer_iterator<T> at(const Buffer<T>& buffer, size_t i = 0)
{
    return compute::make_buffer_iterator<T>(compute::buffer(buffer.mem), i);
}

template <class T>
compute::buffer_iterator<T> end(const Buffer<T>& buffer)
{
    return at(buffer, buffer.len);
}

// Runs with the library's own type of queue.
template <class F>
auto on(F f)
{
    return [f](cl_command_queue queue) {
        compute::command_queue wrapped(queue);
        f(wrapped);
    };
}

template <class T>
void need_fp64()
{
    if (std::is_same<T, double>::value && !opened().has("cl_khr_fp64")) {
        throw std::runtime_error("the device has no double precision");
    }
}

Outcome copied(size_t n)
{
    Buffer<uint32_t> in(made<uint32_t>(n, mix)), out(n);
    Times times = measure(on([&](compute::command_queue& queue) { compute::copy(at(in), end(in), at(out), queue); }));
    return {8.0 * n, times, out.host() == in.host()};
}

// Indices that rise by 1 on average.
Outcome gathered(size_t n)
{
    std::vector<uint32_t> all = made<uint32_t>(n, mix);
    auto place = [](size_t i) { return i / 4 * 4 + (i % 4 > 1 ? 2 : 0) + (mix(i / 2) >> 63); };
    std::vector<uint32_t> index = made<uint32_t>(n, place);
    Buffer<uint32_t> in(all), places(index), out(n);
    Times times = measure(on([&](compute::command_queue& queue) {
        compute::gather(at(places), end(places), at(in), at(out), queue);
    }));
    return {12.0 * n, times, out.host() == made<uint32_t>(n, [&](size_t i) { return all[index[i]]; })};
}

template <class T>
T total(const std::vector<T>& all)
{
    int64_t sum = 0;
    for (T x : all) {
        sum += (int64_t)x;
    }
    return (T)sum;
}

template <class T>
Outcome summed(size_t n)
{
    need_fp64<T>();
    std::vector<T> all = made<T>(n, small<T>);
    Buffer<T> in(all), out(1);
    Times times = measure(on([&](compute::command_queue& queue) { compute::reduce(at(in), end(in), at(out), queue); }));
    return {(double)n * sizeof(T), times, out.host()[0] == total(all)};
}

template <class T>
Outcome summed_to_host(size_t n)
{
    std::vector<T> all = made<T>(n, small<T>);
    Buffer<T> in(all);
    T got = 0;
    Times times = measure(on([&](compute::command_queue& queue) { compute::reduce(at(in), end(in), &got, queue); }));
    return {(double)n * sizeof(T), times, got == total(all)};
}

template <class T>
T rough(size_t i)
{
    return (T)(int64_t)(mix(i) >> 44) - (T)(1 << 19);
}

template <class T>
Outcome least(size_t n)
{
    need_fp64<T>();
    std::vector<T> all = made<T>(n, rough<T>);
    Buffer<T> in(all), out(1);
    Times times = measure(on([&](compute::command_queue& queue) {
        compute::reduce(at(in), end(in), at(out), compute::min<T>(), queue);
    }));
    return {(double)n * sizeof(T), times, out.host()[0] == *std::min_element(all.begin(), all.end())};
}

// If the minimum occurs several times, any of its indices is right.
template <class T>
Outcome place_of_least(size_t n)
{
    std::vector<T> all = made<T>(n, rough<T>);
    Buffer<T> in(all);
    size_t place = n;
    Times times = measure(on([&](compute::command_queue& queue) {
        place = (size_t)(compute::min_element(at(in), end(in), queue) - at(in));
    }));
    return {(double)n * sizeof(T), times, place < n && all[place] == *std::min_element(all.begin(), all.end())};
}

template <class T, bool INCLUSIVE>
Outcome scanned(size_t n)
{
    std::vector<T> all = made<T>(n, small<T>), want(n);
    Buffer<T> in(all), out(n);
    Times times = measure(on([&](compute::command_queue& queue) {
        if (INCLUSIVE) {
            compute::inclusive_scan(at(in), end(in), at(out), queue);
        } else {
            compute::exclusive_scan(at(in), end(in), at(out), queue);
        }
    }));
    T sum = 0;
    for (size_t i = 0; i < n; i++) {
        T before = sum;
        sum += all[i];
        want[i] = INCLUSIVE ? sum : before;
    }
    return {2.0 * n * sizeof(T), times, out.host() == want};
}

// Floats without NaN, because the library does not define their order.
template <class T>
T key(size_t i)
{
    return std::is_integral<T>::value ? (T)mix(i) : (T)((double)(mix(i) >> 40) / (1 << 23) - 1.0);
}

// Sorts in place, on a copy that is not timed.
template <class T>
Outcome sorted_keys(size_t n)
{
    std::vector<T> all = made<T>(n, key<T>);
    Buffer<T> in(all), out(n);
    Times times = measure([&](cl_command_queue queue) { out.copy_from(queue, in); },
        on([&](compute::command_queue& queue) { compute::sort(at(out), end(out), queue); }));
    return {2.0 * n * sizeof(T), times, sorted(all, out.host())};
}

Outcome sorted_pairs(size_t n)
{
    std::vector<uint32_t> all = made<uint32_t>(n, mix);
    Buffer<uint32_t> keys(all), values(made<uint32_t>(n, [](size_t i) { return i; })), keys_out(n), values_out(n);
    Times times = measure(
        [&](cl_command_queue queue) {
            keys_out.copy_from(queue, keys);
            values_out.copy_from(queue, values);
        },
        on([&](compute::command_queue& queue) {
            compute::stable_sort_by_key(at(keys_out), end(keys_out), at(values_out), queue);
        }));
    // The output is right if its pairs ascend strictly and each pair occurs in the input.
    std::vector<uint32_t> key = keys_out.host(), value = values_out.host();
    auto pair = [&](size_t i) { return (uint64_t)key[i] << 32 | value[i]; };
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        ok = ok && value[i] < n && all[value[i]] == key[i] && (i == 0 || pair(i - 1) < pair(i));
    }
    return {16.0 * n, times, ok};
}

BOOST_COMPUTE_FUNCTION(bool, before, (compute::uint_ a, compute::uint_ b), { return a < b; });

// Sorts by a custom comparison, because the library's own comparison gives a radix sort.
Outcome merge_sorted(size_t n)
{
    std::vector<uint32_t> all = made<uint32_t>(n, mix);
    Buffer<uint32_t> in(all), out(n);
    Times times = measure([&](cl_command_queue queue) { out.copy_from(queue, in); },
        on([&](compute::command_queue& queue) { compute::stable_sort(at(out), end(out), before, queue); }));
    return {8.0 * n, times, sorted(all, out.host())};
}

Outcome merged(size_t n)
{
    // Each half ascends: its element i is random, at least i * step and less than (i + 1) * step.
    size_t half = n / 2, step = (uint64_t(1) << 32) / std::max<size_t>(half, 1);
    std::vector<uint32_t> all = made<uint32_t>(2 * half, [&](size_t i) { return i % half * step + mix(i) % step; });
    Buffer<uint32_t> in(all), out(2 * half);
    Times times = measure(on([&](compute::command_queue& queue) {
        compute::merge(at(in), at(in, half), at(in, half), end(in), at(out), queue);
    }));
    return {16.0 * half, times, sorted(all, out.host())};
}

// An element has its index in the low bits and a selection bit.
constexpr uint32_t LIMIT = 1u << 31;

template <bool PARTED>
Outcome selected(size_t n, unsigned percent)
{
    auto element = [&](size_t i) { return (uint32_t)i | (mix(i) % 100 < percent ? 0 : LIMIT); };
    std::vector<uint32_t> all = made<uint32_t>(n, element);
    Buffer<uint32_t> in(all), out(n), rest(PARTED ? n : 1);
    size_t taken = 0;
    Times times = measure(on([&](compute::command_queue& queue) {
        auto below = compute::lambda::_1 < LIMIT;
        auto last = PARTED ? compute::partition_copy(at(in), end(in), at(out), at(rest), below, queue).first
                           : compute::copy_if(at(in), end(in), at(out), below, queue);
        taken = (size_t)(last - at(out));
    }));
    std::vector<uint32_t> want, others;
    for (uint32_t x : all) {
        (x < LIMIT ? want : others).push_back(x);
    }
    bool ok = taken == want.size() && out.host(taken) == want && (!PARTED || rest.host(others.size()) == others);
    return {4.0 * n + 4.0 * (PARTED ? n : taken), times, ok};
}

Outcome unique(size_t n, size_t length)
{
    Runs runs(n, length);
    Buffer<uint32_t> in(runs.all), out(n);
    size_t found = 0;
    Times times = measure(on([&](compute::command_queue& queue) {
        found = (size_t)(compute::unique_copy(at(in), end(in), at(out), queue) - at(out));
    }));
    return {4.0 * (n + runs.values.size()), times, found == runs.values.size() && out.host(found) == runs.values};
}

Outcome summed_by_key(size_t n, size_t length)
{
    Runs runs(n, length);
    std::vector<float> all = made<float>(n, small<float>), want;
    Buffer<uint32_t> keys(runs.all), keys_out(n);
    Buffer<float> values(all), sums(n);
    size_t found = 0;
    Times times = measure(on([&](compute::command_queue& queue) {
        auto last = compute::reduce_by_key(at(keys), end(keys), at(values), at(keys_out), at(sums), queue);
        found = (size_t)(last.first - at(keys_out));
    }));
    size_t i = 0;
    for (size_t end : runs.ends) {
        float sum = 0;
        while (i < end) {
            sum += all[i++];
        }
        want.push_back(sum);
    }
    bool ok = found == want.size() && keys_out.host(found) == runs.values && sums.host(found) == want;
    return {8.0 * (n + want.size()), times, ok};
}

int main(int count, char** arguments)
{
    Rows rows{
        {"copy aligned u32", copied},
        {"copy gather, sorted u32", gathered},
        {"reduce sum i32", summed<int32_t>},
        {"reduce sum f32", summed<float>},
        {"reduce sum f64", summed<double>},
        {"reduce sum to the host i32", summed_to_host<int32_t>},
        {"reduce sum to the host f32", summed_to_host<float>},
        {"reduce min i32", least<int32_t>},
        {"reduce min f32", least<float>},
        {"reduce min f64", least<double>},
        {"reduce arg-min i32", place_of_least<int32_t>},
        {"reduce arg-min f32", place_of_least<float>},
        {"scan sum inclusive u32", scanned<uint32_t, true>},
        {"scan sum inclusive f32", scanned<float, true>},
        {"scan sum inclusive u64", scanned<cl_ulong, true>},
        {"scan sum exclusive u32", scanned<uint32_t, false>},
        {"scan sum exclusive f32", scanned<float, false>},
        {"scan sum exclusive u64", scanned<cl_ulong, false>},
        {"sort keys, bits u32", sorted_keys<uint32_t>},
        {"sort keys, bits i32", sorted_keys<int32_t>},
        {"sort keys, bits f32", sorted_keys<float>},
        {"sort keys, bits u64", sorted_keys<cl_ulong>},
        {"sort pairs with u32, bits u32", sorted_pairs},
        {"merge merge sort u32", merge_sorted},
        {"merge merge u32", merged},
    };
    for (unsigned percent : {10, 50, 90}) {
        std::string share = ", " + std::to_string(percent) + " % u32";
        rows["select selected" + share] = [=](size_t n) { return selected<false>(n, percent); };
        rows["select partitioned" + share] = [=](size_t n) { return selected<true>(n, percent); };
    }
    for (size_t length : {2, 16, 256}) {
        std::string runs = ", runs of " + std::to_string(length);
        rows["select unique" + runs + " u32"] = [=](size_t n) { return unique(n, length); };
        rows["select sum by key" + runs + " f32"] = [=](size_t n) { return summed_by_key(n, length); };
    }
    std::string version = std::to_string(BOOST_VERSION / 100000) + "." + std::to_string(BOOST_VERSION / 100 % 1000);
    return measure_rows(("Boost.Compute " + version).c_str(), rows, count, arguments);
}
