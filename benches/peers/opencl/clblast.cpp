// CLBlast: copies, sums, indices of minima, and transpositions (`omatcopy` with a factor of 1).
#include "harness.hpp"

#include <clblast.h>

#include <complex>

void check(clblast::StatusCode status)
{
    if (status == clblast::StatusCode::kNoDoublePrecision) {
        throw std::runtime_error("the device has no double precision");
    }
    if (status == clblast::StatusCode::kNoHalfPrecision) {
        throw std::runtime_error("the device has no half precision");
    }
    if (status != clblast::StatusCode::kSuccess) {
        throw std::runtime_error("CLBlast's status " + std::to_string((int)status));
    }
}

Outcome copied(size_t n)
{
    // The elements are copied as floats. They are neither NaN nor subnormal, which a copy may change.
    std::vector<float> all = made<float>(n, [](size_t i) { return mix(i) >> 41; });
    Buffer<float> in(all), out(n);
    Times times = measure([&](cl_command_queue queue) {
        check(clblast::Copy<float>(n, in.mem, 0, 1, out.mem, 0, 1, &queue));
    });
    return {8.0 * n, times, out.host() == all};
}

template <class T>
Outcome summed(size_t n)
{
    std::vector<T> all = made<T>(n, small<T>);
    Buffer<T> in(all), out(1);
    T got;
    Times times = measure([](cl_command_queue) {},
        [&](cl_command_queue queue) { check(clblast::Sum<T>(n, out.mem, 0, in.mem, 0, 1, &queue)); },
        [&](cl_command_queue queue) { out.read(queue, &got, 1); });
    int64_t sum = 0;
    for (T x : all) {
        sum += (int64_t)x;
    }
    return {(double)n * sizeof(T), times, got == (T)sum};
}

// If the minimum occurs several times, any of its indices is right.
template <class T>
Outcome place_of_least(size_t n)
{
    std::vector<T> all = made<T>(n, [](size_t i) { return (T)(int64_t)(mix(i) >> 44) - (1 << 19); });
    Buffer<T> in(all);
    Buffer<uint32_t> place(1);
    Times times = measure([&](cl_command_queue queue) {
        check(clblast::Min<T>(n, place.mem, 0, in.mem, 0, 1, &queue));
    });
    uint32_t found = place.host()[0];
    return {(double)n * sizeof(T), times, found < n && all[found] == *std::min_element(all.begin(), all.end())};
}

// Elements that a multiplication by 1 does not change: f16 values from 1 to 2, otherwise whole numbers.
template <class T>
T cell(size_t i)
{
    if constexpr (std::is_same<T, cl_half>::value) {
        return (T)(0x3c00 + mix(i) % 1024);
    } else {
        return T(mix(i) >> 41);
    }
}

template <class T>
Outcome transposed(size_t rows, size_t cols)
{
    std::vector<T> all = made<T>(rows * cols, cell<T>), want(rows * cols);
    Buffer<T> in(all), out(rows * cols);
    T one = T(1);
    if constexpr (std::is_same<T, cl_half>::value) {
        one = 0x3c00;
    }
    Times times = measure([&](cl_command_queue queue) {
        check(clblast::Omatcopy<T>(clblast::Layout::kRowMajor, clblast::Transpose::kYes, rows, cols, one,
            in.mem, 0, cols, out.mem, 0, rows, &queue));
    });
    // The loop takes 32 rows at a time, for the host's caches.
    for (size_t row = 0; row < rows; row += 32) {
        for (size_t col = 0; col < cols; col++) {
            for (size_t r = row; r < std::min(row + 32, rows); r++) {
                want[col * rows + r] = all[r * cols + col];
            }
        }
    }
    return {2.0 * rows * cols * sizeof(T), times, out.host() == want};
}

// Shapes of about `n` elements, as in the crate's benchmarks.
size_t near_root(size_t n)
{
    size_t rows = 1;
    while (4 * rows * rows <= n) {
        rows *= 2;
    }
    return rows;
}

template <class T>
Outcome near_square(size_t n)
{
    return transposed<T>(near_root(n), n / near_root(n));
}

Outcome three_times_as_wide(size_t n)
{
    size_t rows = 0;
    while (3 * (rows + 8) * (rows + 8) <= n) {
        rows += 8;
    }
    return transposed<float>(rows, 3 * rows);
}

Outcome odd_sides(size_t n)
{
    return transposed<float>(near_root(n) / 2 + 1, near_root(n) - 1);
}

int main(int count, char** arguments)
{
    Rows rows{
        {"copy aligned u32", copied},
        {"reduce sum f32", summed<float>},
        {"reduce sum f64", summed<double>},
        {"reduce sum to the host f32", summed<float>},
        {"reduce arg-min f32", place_of_least<float>},
        {"transpose 2-byte elements u16", near_square<cl_half>},
        {"transpose 4-byte elements u32", near_square<float>},
        {"transpose 8-byte elements u64", near_square<double>},
        {"transpose 16-byte elements u64", near_square<std::complex<double>>},
        {"transpose three times as wide f32", three_times_as_wide},
        {"transpose odd sides f32", odd_sides},
        {"transpose n / 3 x 3 f32", [](size_t n) { return transposed<float>(n / 3 / 16 * 16, 3); }},
        {"transpose 3 x n / 3 f32", [](size_t n) { return transposed<float>(3, n / 3 / 16 * 16); }},
    };
    std::string version = std::to_string(CLBLAST_VERSION_MAJOR);
    for (int part : {CLBLAST_VERSION_MINOR, CLBLAST_VERSION_PATCH}) {
        version += "." + std::to_string(part);
    }
    return measure_rows(("CLBlast " + version).c_str(), rows, count, arguments);
}
