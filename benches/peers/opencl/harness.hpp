// Common code of the OpenCL peers: the device, data, timing by events and by the host's clock, and one JSON line per
// result.
#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

inline void check(cl_int status, const char* what)
{
    if (status != CL_SUCCESS) {
        throw std::runtime_error(std::string(what) + ": OpenCL status " + std::to_string(status));
    }
}

inline std::string trimmed(const std::string& text)
{
    const char* blank = " \t\n";
    size_t first = text.find_first_not_of(blank);
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(blank) + 1 - first);
}

template <class Id, class Info>
std::string text(cl_int (*get)(Id, Info, size_t, void*, size_t*), Id id, Info info)
{
    size_t len = 0;
    check(get(id, info, 0, nullptr, &len), "a name");
    std::vector<char> chars(len + 1);
    check(get(id, info, len, chars.data(), nullptr), "a name");
    return trimmed(chars.data());
}

template <class T>
T number(cl_device_id device, cl_device_info info)
{
    T value{};
    check(clGetDeviceInfo(device, info, sizeof value, &value, nullptr), "clGetDeviceInfo");
    return value;
}

// The device named `platform / device`, as the crate names it; the first device for an empty name.
inline cl_device_id find_device(const std::string& wanted)
{
    cl_platform_id platforms[16];
    cl_uint platform_count = 0;
    check(clGetPlatformIDs(16, platforms, &platform_count), "clGetPlatformIDs");
    for (cl_uint p = 0; p < std::min<cl_uint>(platform_count, 16); p++) {
        cl_device_id devices[64];
        cl_uint count = 0;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 64, devices, &count) != CL_SUCCESS) {
            continue;
        }
        for (cl_uint d = 0; d < std::min<cl_uint>(count, 64); d++) {
            std::string platform = text(clGetPlatformInfo, platforms[p], (cl_platform_info)CL_PLATFORM_NAME);
            std::string name = platform + " / " + text(clGetDeviceInfo, devices[d], (cl_device_info)CL_DEVICE_NAME);
            if (wanted.empty() || trimmed(wanted) == name) {
                return devices[d];
            }
        }
    }
    throw std::runtime_error("no device `" + wanted + "`");
}

// The largest cache that Linux lists for the first processor; 0 if it lists none.
inline uint64_t host_cache_bytes()
{
    uint64_t most = 0, kib = 0;
    for (int i = 0; std::ifstream("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/size") >> kib; i++) {
        most = std::max(most, kib);
    }
    return most << 10;
}

// Output `i` of SplitMix64, computed from the counter `i`.
inline uint64_t mix(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

template <class T, class F>
std::vector<T> made(size_t n, F f)
{
    std::vector<T> all(n);
    for (size_t i = 0; i < n; i++) {
        all[i] = (T)f(i);
    }
    return all;
}

// Whole numbers from -8 to 8. Sums of millions of them stay below 2^24, so floats are exact in any order.
template <class T>
T small(size_t i)
{
    return (T)((int)(mix(i) % 17) - 8);
}

// True if `out` has the keys of `in` in order.
template <class T>
bool sorted(const std::vector<T>& in, const std::vector<T>& out)
{
    auto hash = [](const std::vector<T>& keys) {
        uint64_t sum = 0;
        for (T key : keys) {
            uint64_t bits = 0;
            memcpy(&bits, &key, sizeof key);
            sum += mix(bits);
        }
        return sum;
    };
    return std::is_sorted(out.begin(), out.end()) && hash(in) == hash(out);
}

// Runs of 1 to 2 * length - 1 equal elements, as in the crate.
struct Runs {
    std::vector<uint32_t> all, values;
    std::vector<size_t> ends;
    Runs(size_t n, size_t length) : all(n) {
        uint32_t value = 0;
        for (size_t i = 0; i < n;) {
            uint64_t bits = mix(values.size());
            size_t end = std::min<size_t>(n, i + 1 + (uint32_t)bits % (2 * length - 1));
            value = (value + 1 + (uint32_t)(bits >> 32) % 100) % 120;
            values.push_back(value);
            ends.push_back(end);
            std::fill(all.begin() + i, all.begin() + end, value);
            i = end;
        }
    }
};

struct Sample {
    double median, spread;
};

inline Sample sample(std::vector<double> seconds)
{
    std::sort(seconds.begin(), seconds.end());
    auto at = [&](double part) { return seconds[(size_t)((seconds.size() - 1) * part + 0.5)]; };
    return {at(0.5), at(0.5) > 0 ? (at(0.95) - at(0.05)) / 2 / at(0.5) : 0.0};
}

struct Times {
    Sample device, wall;
};

// The result of a row: the bytes that must be read and written at least, the times, and whether the output is right.
struct Outcome {
    double bytes;
    Times times;
    bool ok;
};

// The device, with a queue that records events and one that does not.
struct Opened {
    cl_device_id device;
    cl_context context;
    cl_command_queue recorded, plain;
    cl_kernel read, last;
    cl_mem other, sink;
    size_t other_bytes;

    explicit Opened(const std::string& name) : device(find_device(name)) {
        cl_int status;
        context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
        check(status, "clCreateContext");
        recorded = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &status);
        check(status, "clCreateCommandQueue");
        plain = clCreateCommandQueue(context, device, 0, &status);
        check(status, "clCreateCommandQueue");
        const char* source =
            "kernel void read_all(global const uint4* in, uint n, global uint* sink)\n"
            "{\n"
            "    uint4 all = 0;\n"
            "    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) all ^= in[i];\n"
            "    if (all.x == 0xdeadbeefu && all.y + all.z + all.w == 1u) *sink = all.x;\n"
            "}\n"
            "kernel void last(global uint* sink) { *sink = 1; }\n";
        cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &status);
        check(status, "clCreateProgramWithSource");
        check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
        read = clCreateKernel(program, "read_all", &status);
        check(status, "clCreateKernel");
        last = clCreateKernel(program, "last", &status);
        check(status, "clCreateKernel");
        // As in the crate, this is twice the last-level cache, whose size drivers of GPUs may not report.
        bool cpu = number<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU;
        uint64_t cache = number<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
        cache = std::max<uint64_t>(cache, cpu ? host_cache_bytes() : 256 << 20);
        uint64_t most = std::min<uint64_t>(number<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE), 1 << 30);
        other_bytes = std::min(std::max<uint64_t>(2 * cache, 1 << 20), most) / 16 * 16;
        // The data is ones, because memory that was never written can be a single page that is mapped many times.
        std::vector<uint32_t> ones(other_bytes / 4, 1);
        other = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, other_bytes, ones.data(), &status);
        check(status, "clCreateBuffer");
        sink = clCreateBuffer(context, CL_MEM_READ_WRITE, 4, nullptr, &status);
        check(status, "clCreateBuffer");
        cl_uint vectors = (cl_uint)(other_bytes / 16);
        check(clSetKernelArg(read, 0, sizeof other, &other), "clSetKernelArg");
        check(clSetKernelArg(read, 1, sizeof vectors, &vectors), "clSetKernelArg");
        check(clSetKernelArg(read, 2, sizeof sink, &sink), "clSetKernelArg");
        check(clSetKernelArg(last, 0, sizeof sink, &sink), "clSetKernelArg");
    }

    // Fills the caches, so that they keep no data of an earlier run.
    void scrub(cl_command_queue queue, cl_event* event = nullptr) {
        size_t items = 1 << 18, group = 64;
        check(clEnqueueNDRangeKernel(queue, read, 1, nullptr, &items, &group, 0, nullptr, event), "scrub");
    }

    void mark(cl_command_queue queue, cl_event* event) {
        size_t one = 1;
        check(clEnqueueNDRangeKernel(queue, last, 1, nullptr, &one, &one, 0, nullptr, event), "mark");
    }

    bool has(const char* extension) const {
        return text(clGetDeviceInfo, device, (cl_device_info)CL_DEVICE_EXTENSIONS).find(extension) != std::string::npos;
    }
};

// The name that `measure_rows` was given. The first measured row opens the device.
inline std::string& device_name()
{
    static std::string name;
    return name;
}

inline Opened& opened()
{
    static Opened it(device_name());
    return it;
}

// Device memory, freed by its owner.
template <class T>
struct Buffer {
    cl_mem mem = nullptr;
    size_t len;
    explicit Buffer(size_t n) : len(n) {
        cl_int status;
        mem = clCreateBuffer(opened().context, CL_MEM_READ_WRITE, std::max<size_t>(n, 1) * sizeof(T), nullptr, &status);
        check(status, "clCreateBuffer");
        cl_uchar poison = 0xA5;
        check(clEnqueueFillBuffer(opened().plain, mem, &poison, 1, 0, n * sizeof(T), 0, nullptr, nullptr), "a fill");
        check(clFinish(opened().plain), "a fill");
    }
    explicit Buffer(const std::vector<T>& host) : Buffer(host.size()) {
        size_t bytes = len * sizeof(T);
        cl_command_queue queue = opened().plain;
        check(clEnqueueWriteBuffer(queue, mem, CL_TRUE, 0, bytes, host.data(), 0, nullptr, nullptr), "an upload");
    }
    ~Buffer() { clReleaseMemObject(mem); }
    Buffer(const Buffer&) = delete;
    std::vector<T> host(size_t n) const {
        std::vector<T> out(n);
        read(opened().plain, out.data(), n);
        return out;
    }
    std::vector<T> host() const { return host(len); }
    void read(cl_command_queue queue, T* to, size_t n) const {
        check(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, n * sizeof(T), to, 0, nullptr, nullptr), "a download");
    }
    void copy_from(cl_command_queue queue, const Buffer& from) {
        check(clEnqueueCopyBuffer(queue, from.mem, mem, 0, 0, len * sizeof(T), 0, nullptr, nullptr), "a copy");
    }
};

inline double nanoseconds(cl_event event, cl_profiling_info when)
{
    cl_ulong value = 0;
    check(clGetEventProfilingInfo(event, when, sizeof value, &value, nullptr), "clGetEventProfilingInfo");
    check(clReleaseEvent(event), "clReleaseEvent");
    return (double)value;
}

// Timing as in `oclprim bench`: three runs warm up, and at most 25 runs are timed. After a second, three timed runs are
// enough. Caches are cold. By the device's clock, a run begins when the kernel that fills the caches ends. It ends when
// the next kernel starts. The run's commands are queued after the first kernel. If launching them takes less time
// than that kernel, it does not count. If a library makes the device wait for the host, for a result or for memory, that
// time counts. Further runs are timed by the host's clock, each from an idle queue that records no events. `reset` runs
// before each run and is not timed; `finish` ends the wall time.
template <class Reset, class Run, class Finish>
Times measure(Reset reset, Run run, Finish finish)
{
    Opened& cl = opened();
    std::vector<double> device, wall;
    using Clock = std::chrono::steady_clock;
    auto since = [](Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); };
    auto first = Clock::now();
    for (int round = 0; round < 28 && (round < 6 || since(first) < 1); round++) {
        cl_event before, behind;
        reset(cl.recorded);
        cl.scrub(cl.recorded, &before);
        run(cl.recorded);
        cl.mark(cl.recorded, &behind);
        check(clFinish(cl.recorded), "a run");
        double begin = nanoseconds(before, CL_PROFILING_COMMAND_END);
        double end = nanoseconds(behind, CL_PROFILING_COMMAND_START);
        if (round >= 3) {
            device.push_back((end - begin) * 1e-9);
        }
    }
    first = Clock::now();
    for (int round = 0; round < 25 && (round < 3 || since(first) < 1); round++) {
        reset(cl.plain);
        cl.scrub(cl.plain);
        check(clFinish(cl.plain), "a run");
        auto start = Clock::now();
        run(cl.plain);
        finish(cl.plain);
        check(clFinish(cl.plain), "a run");
        wall.push_back(since(start));
    }
    return {sample(device), sample(wall)};
}

template <class Reset, class Run>
Times measure(Reset reset, Run run)
{
    return measure(reset, run, [](cl_command_queue) {});
}

template <class Run>
Times measure(Run run)
{
    return measure([](cl_command_queue) {}, run);
}

// The rows that a program can measure. The key is the crate's own name of the benchmark case and the element type. The
// value is a function of the number of elements.
using Rows = std::map<std::string, std::function<Outcome(size_t)>>;

// Measures those of the given rows that are known: `PROGRAM 'PLATFORM / DEVICE' 'scan sum inclusive u32 16777216' ...`.
// Without rows, it lists the known ones. It prints each row before measuring it. So the output shows which row ended the
// program.
inline int measure_rows(const char* peer, const Rows& known, int count, char** arguments)
{
    device_name() = count > 1 ? arguments[1] : "";
    for (auto& row : known) {
        if (count <= 2) {
            puts(row.first.c_str());
        }
    }
    for (int a = 2; a < count; a++) {
        std::string row = arguments[a];
        size_t last = row.rfind(' ');
        auto found = known.find(row.substr(0, last));
        if (found == known.end()) {
            continue;
        }
        printf("begin: %s\n", row.c_str());
        fflush(stdout);
        size_t n = std::stoull(row.substr(last + 1)), middle = found->first.rfind(' ');
        try {
            Outcome it = found->second(n);
            printf("{\"peer\":\"%s\",\"what\":\"%s\",\"element\":\"%s\",\"n\":%zu,\"bytes\":%.0f,"
                   "\"median\":%.4e,\"spread\":%.4f,\"wall\":%.4e,\"ok\":%s}\n",
                peer, row.substr(0, middle).c_str(), row.substr(middle + 1, last - middle - 1).c_str(), n, it.bytes,
                it.times.device.median, it.times.device.spread, it.times.wall.median, it.ok ? "true" : "false");
        } catch (const std::exception& error) {
            std::string why = error.what();
            std::replace(why.begin(), why.end(), '\n', ' ');
            printf("left out: %s: %s\n", row.c_str(), why.c_str());
        }
        fflush(stdout);
    }
    return 0;
}
