#!/usr/bin/env python3
"""The peers in pyopencl: `pyopencl_peers.py 'PLATFORM / DEVICE' 'scan sum inclusive u32 16777216' ...`

Measures and prints the same lines as harness.hpp. Without rows, it lists the known ones.
"""
import json
import pathlib
import statistics
import sys
import time

import numpy as np
import pyopencl as cl
import pyopencl.algorithm
import pyopencl.array
import pyopencl.reduction
import pyopencl.scan
import pyopencl.tools

C_NAMES = {"u32": "uint", "i32": "int", "f32": "float", "u64": "ulong", "f64": "double"}
TYPES = {"u32": np.uint32, "i32": np.int32, "f32": np.float32, "u64": np.uint64, "f64": np.float64}
KERNELS = """
kernel void read_all(global const uint4* in, uint n, global uint* sink)
{
    uint4 all = 0;
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) all ^= in[i];
    if (all.x == 0xdeadbeefu && all.y + all.z + all.w == 1u) *sink = all.x;
}
kernel void last(global uint* sink) { *sink = 1; }
"""


class Opened:
    """The device, with a queue that records events and one that does not."""

    def __init__(self, name):
        self.device = find_device(name)
        self.context = cl.Context([self.device])
        self.recorded = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self.plain = cl.CommandQueue(self.context)
        program = cl.Program(self.context, KERNELS).build()
        self.read_all, self.last = cl.Kernel(program, "read_all"), cl.Kernel(program, "last")
        # As in the crate, this is twice the last-level cache, whose size drivers of GPUs may not report.
        on_cpu = self.device.type & cl.device_type.CPU
        cache = max(self.device.global_mem_cache_size, host_cache_bytes() if on_cpu else 256 << 20)
        most = min(self.device.max_mem_alloc_size, 1 << 30)
        ones = np.ones(min(max(2 * cache, 1 << 20), most) // 16 * 4, np.uint32)
        self.other = cl.Buffer(self.context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=ones)
        self.sink = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, 4)
        self.read_all.set_args(self.other, np.uint32(len(ones) // 4), self.sink)
        self.last.set_args(self.sink)

    def scrub(self, queue):
        return cl.enqueue_nd_range_kernel(queue, self.read_all, (1 << 18,), (64,))

    def mark(self, queue):
        return cl.enqueue_nd_range_kernel(queue, self.last, (1,), (1,))

    def array(self, host):
        """An array on the device. Outputs come from a pool, so that they are allocated once."""
        pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(self.plain))
        return cl.array.to_device(self.plain, host, allocator=pool)


def find_device(name):
    for platform in cl.get_platforms():
        for device in platform.get_devices():
            if name in ("", f"{platform.name.strip()} / {device.name.strip()}"):
                return device
    raise RuntimeError(f"no device `{name}`")


def host_cache_bytes():
    """The largest cache that Linux lists for the first processor."""
    texts = [path.read_text() for path in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("*/size")]
    return max((int(text.strip().removesuffix("K")) << 10 for text in texts), default=0)


def measure(opened, run, finish=lambda result, queue: None):
    """Returns the last result, the median and spread by the device's clock, and the median by the host's."""

    def rounds(most, least):
        begin = time.perf_counter()
        for count in range(most):
            if count >= least and time.perf_counter() - begin > 1:
                return
            yield count

    device, wall = [], []
    for count in rounds(28, 6):
        before = opened.scrub(opened.recorded)
        result = run(opened.recorded)
        behind = opened.mark(opened.recorded)
        opened.recorded.finish()
        if count >= 3:
            device.append((behind.profile.start - before.profile.end) * 1e-9)
    for _ in rounds(25, 3):
        opened.scrub(opened.plain)
        opened.plain.finish()
        start = time.perf_counter()
        finish(run(opened.plain), opened.plain)
        opened.plain.finish()
        wall.append(time.perf_counter() - start)
    device.sort()
    middle = statistics.median_high(device)
    spread = (device[round((len(device) - 1) * 0.95)] - device[round((len(device) - 1) * 0.05)]) / 2 / middle
    return result, (middle, spread, statistics.median_high(wall))


def mix(i):
    """Output `i` of SplitMix64, computed from the counter `i`."""
    z = (i + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def random(n):
    return mix(np.arange(n, dtype=np.uint64))


def small(n, dtype):
    """Whole numbers from -8 to 8. Sums of millions of them stay below 2^24, so floats are exact in any order."""
    return ((random(n) % np.uint64(17)).astype(np.int64) - 8).astype(dtype)


def reduced(opened, n, element, expression, neutral, numpy):
    dtype, name = TYPES[element], C_NAMES[element]
    host = small(n, dtype) if expression == "a+b" else (random(n) >> np.uint64(44)).astype(dtype) - dtype(1 << 19)
    kernel = cl.reduction.ReductionKernel(
        opened.context, dtype, neutral=neutral, reduce_expr=expression, map_expr="x[i]", arguments=f"__global const {name} *x"
    )
    x, out = opened.array(host), opened.array(np.zeros((), dtype))
    result, times = measure(opened, lambda queue: kernel(x, out=out, queue=queue), lambda out, queue: out.get(queue))
    return host.nbytes, times, result.get(opened.plain) == numpy(host)


def summed(opened, n, element):
    dtype = TYPES[element]
    return reduced(opened, n, element, "a+b", "0", lambda host: dtype(host.astype(np.int64).sum()))


def least(opened, n, element):
    neutral = "INT_MAX" if element == "i32" else "INFINITY"
    return reduced(opened, n, element, "a < b ? a : b", neutral, np.min)


def scanned(opened, n, element, inclusive):
    dtype, name = TYPES[element], C_NAMES[element]
    host = small(n, dtype)
    kernel = cl.scan.GenericScanKernel(
        opened.context,
        dtype,
        arguments=f"__global const {name} *x, __global {name} *out",
        input_expr="x[i]",
        scan_expr="a+b",
        neutral="0",
        output_statement="out[i] = item;" if inclusive else "out[i] = prev_item;",
    )
    x, out = opened.array(host), opened.array(np.full(n, 1, dtype))
    _, times = measure(opened, lambda queue: kernel(x, out, queue=queue))
    want = np.cumsum(host, dtype=dtype)
    if not inclusive:
        want = np.concatenate([np.zeros(1, dtype), want[:-1]])
    return 2 * host.nbytes, times, np.array_equal(out.get(opened.plain), want)


def sorted_keys(opened, n, pairs):
    keys = random(n).astype(np.uint32)
    names = ["keys", "values"] if pairs else ["keys"]
    sort = cl.algorithm.RadixSort(
        opened.context,
        ", ".join(f"__global uint *{name}" for name in names),
        key_expr="keys[i]",
        sort_arg_names=names,
        key_dtype=np.uint32,
    )
    arrays = [opened.array(host) for host in [keys, np.arange(n, dtype=np.uint32)][: len(names)]]
    (out, _), times = measure(opened, lambda queue: sort(*arrays, key_bits=32, queue=queue))
    got = [array.get(opened.plain) for array in out]
    if pairs:
        # The output is right if its pairs ascend strictly and each pair occurs in the input.
        both = got[0].astype(np.uint64) << np.uint64(32) | got[1]
        ok = bool((both[:-1] < both[1:]).all()) and int(got[1].max()) < n and np.array_equal(keys[got[1]], got[0])
    else:
        ok = np.array_equal(got[0], np.sort(keys))
    return 8 * n * len(names), times, ok


# An element has its index in the low bits and a selection bit.
LIMIT = np.uint32(1 << 31)


def selected(opened, n, percent, partitioned):
    host = np.arange(n, dtype=np.uint32) | np.where(random(n) % np.uint64(100) < percent, np.uint32(0), LIMIT)
    x = opened.array(host)
    call = cl.algorithm.partition if partitioned else cl.algorithm.copy_if
    result, times = measure(opened, lambda queue: call(x, f"ary[i] < {LIMIT}u", queue=queue))
    *outs, count, _ = result
    lists = [host[host < LIMIT], host[host >= LIMIT]]
    ok = int(count.get(opened.plain)) == len(lists[0])
    ok = ok and all(np.array_equal(out.get(opened.plain)[: len(want)], want) for out, want in zip(outs, lists))
    return 4 * n + (4 * n if partitioned else 4 * len(lists[0])), times, ok


def runs(n, length):
    """Runs of 1 to 2 * length - 1 equal elements, as in the crate."""
    bits = random(2 * n // length + 1000)
    ends = np.cumsum(1 + (bits & np.uint64(0xFFFFFFFF)) % np.uint64(2 * length - 1))
    values = np.cumsum(1 + (bits >> np.uint64(32)) % np.uint64(100)) % np.uint64(120)
    found = int(np.searchsorted(ends, n)) + 1
    assert found <= len(ends)
    ends[found - 1] = n
    lengths = np.diff(ends[:found], prepend=np.uint64(0)).astype(np.int64)
    return np.repeat(values[:found], lengths).astype(np.uint32), values[:found].astype(np.uint32)


def unique(opened, n, length):
    host, want = runs(n, length)
    x = opened.array(host)
    (out, count, _), times = measure(opened, lambda queue: cl.algorithm.unique(x, queue=queue))
    found = int(count.get(opened.plain))
    return 4 * (n + len(want)), times, found == len(want) and np.array_equal(out.get(opened.plain)[:found], want)


def known():
    """The rows that can be measured: the crate's own name of the benchmark case and the element type."""
    rows = {}
    for element in ["i32", "f32", "f64"]:
        rows[f"reduce sum {element}"] = lambda opened, n, element=element: summed(opened, n, element)
        rows[f"reduce min {element}"] = lambda opened, n, element=element: least(opened, n, element)
    for element in ["i32", "f32"]:
        rows[f"reduce sum to the host {element}"] = rows[f"reduce sum {element}"]
    for element in ["u32", "f32", "u64"]:
        for name in ["inclusive", "exclusive"]:
            rows[f"scan sum {name} {element}"] = lambda opened, n, element=element, name=name: scanned(
                opened, n, element, name == "inclusive"
            )
    rows["sort keys, bits u32"] = lambda opened, n: sorted_keys(opened, n, False)
    rows["sort pairs with u32, bits u32"] = lambda opened, n: sorted_keys(opened, n, True)
    for percent in [10, 50, 90]:
        for name in ["selected", "partitioned"]:
            rows[f"select {name}, {percent} % u32"] = lambda opened, n, percent=percent, name=name: selected(
                opened, n, percent, name == "partitioned"
            )
    for length in [2, 16, 256]:
        rows[f"select unique, runs of {length} u32"] = lambda opened, n, length=length: unique(opened, n, length)
    return rows


def main():
    rows, opened = known(), None
    if len(sys.argv) <= 2:
        print("\n".join(rows))
    for row in sys.argv[2:]:
        name, n = row.rsplit(" ", 1)
        if name not in rows:
            continue
        print(f"begin: {row}", flush=True)
        what, element = name.rsplit(" ", 1)
        try:
            opened = opened or Opened(sys.argv[1])
            if element == "f64" and "cl_khr_fp64" not in opened.device.extensions:
                raise RuntimeError("the device has no double precision")
            size, (median, spread, wall), ok = rows[name](opened, int(n))
        except (cl.Error, RuntimeError, MemoryError) as error:
            print(f"left out: {row}: {' '.join(str(error).split())[:500]}", flush=True)
            continue
        line = {"peer": f"pyopencl {cl.VERSION_TEXT}", "what": what, "element": element, "n": int(n), "bytes": int(size)}
        line |= {"median": median, "spread": spread, "wall": wall, "ok": bool(ok)}
        print(json.dumps(line, separators=(",", ":")), flush=True)


main()
