#!/usr/bin/env python3
"""Times copies of bytes from host memory to a device and back. Writes CSV to standard output.

It runs `oclprim bench copy --form load`, NumPy's copies in memory, and CuPy's transfers where CuPy is installed.

usage: transfers.py PROGRAM DEVICE...

At each size, the script times each device and then each library. Times are by the host's clock, and caches stay warm. A
row has the median of nine runs, or of at least three within two seconds. Its spread is half the distance between the
fastest and the slowest run, as a share of the median. For the program, it is half the distance between the 5th and the
95th percentile. The variable TRANSFER_SIZES selects sizes: `10 20` are 2^10 and 2^20 bytes.
"""

import csv
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

try:
    import cupy
    import cupyx
except ImportError:
    cupy = None

SIZES = [1 << int(bits) for bits in os.environ.get("TRANSFER_SIZES", "10 14 18 20 22 24 26 28 30 32").split()]


def row(library, operation, size, seconds, spread, commit):
    return [library, operation, size, f"{seconds:.4e}", f"{spread:.4f}", f"{size / seconds / 1e9:.3g}", commit]


def program(path, device, size):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        words = ["copy", "--form", "load", "--type", "u8", "--runs", "9", "--hot", "--n", str(size), "--device", device]
        done = subprocess.run([path, "bench", *words, "--json", out.name], stdout=subprocess.DEVNULL)
        yield from reported(json.load(open(out.name)))
    if done.returncode != 0:
        print(f"{device}: exit code {done.returncode}", file=sys.stderr)


def reported(report):
    """The rows of a file that `oclprim bench --json` wrote."""
    opencl = report["device"]["opencl"]
    name = "oclprim on " + (report["device"]["platform"] if opencl else "CPU backend")
    for line in report["lines"]:
        if not opencl and re.search("driver|link", line["form"]):
            continue
        if line["error"] or line["wrong"]:
            print(f"{name}: {line['form']} of {line['n']} bytes: {line['error'] or 'wrong'}", file=sys.stderr)
        else:
            yield row(name, line["form"], line["n"], line["wall"]["median"], line["wall"]["spread"], report["commit"])


def timed(library, operation, size, run):
    """Times `run`, which returns its result. Freeing the result is not timed."""
    run()
    times, end = [], time.perf_counter() + 2
    while len(times) < 9 and (len(times) < 3 or time.perf_counter() < end):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
        del result
    median = statistics.median(times)
    return row(library, operation, size, median, (max(times) - min(times)) / 2 / median, "")


def with_numpy(size):
    version = f"NumPy {numpy.__version__}"
    x, y = numpy.ones(size + 2, "u1"), numpy.zeros(size + 2, "u1")
    odd, other = (a[1 - a.ctypes.data % 2:][:size] for a in (x, y))
    x, y = x[:size], y[:size]
    yield timed(version, "copyto", size, lambda: numpy.copyto(y, x))
    yield timed(version, "copyto, odd addresses", size, lambda: numpy.copyto(other, odd))
    yield timed(version, "copy to a new array", size, x.copy)


def with_cupy(size):
    version = f"CuPy {cupy.__version__}"
    wait = cupy.cuda.Stream.null.synchronize
    x, y = numpy.ones(size, "u1"), numpy.zeros(size, "u1")
    there = cupy.zeros(size, "u1")

    def up(host):
        there.set(host)
        wait()

    yield timed(version, "upload slice", size, lambda: up(x))
    yield timed(version, "download slice", size, lambda: there.get(out=y))
    yield timed(version, "download new", size, there.get)
    del x, y
    pinned = cupyx.empty_pinned(size, "u1")
    pinned[:] = 1
    yield timed(version, "upload pinned", size, lambda: up(pinned))
    yield timed(version, "download pinned", size, lambda: there.get(out=pinned))


def main():
    path, devices = sys.argv[1], sys.argv[2:]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["library", "operation", "bytes", "wall_s", "spread", "gb_per_s", "commit"])
    for size in SIZES:
        for device in devices:
            writer.writerows(program(path, device, size))
        writer.writerows(with_numpy(size))
        if cupy:
            writer.writerows(with_cupy(size))
            cupy.get_default_memory_pool().free_all_blocks()
            cupy.get_default_pinned_memory_pool().free_all_blocks()
        sys.stdout.flush()


if __name__ == "__main__":
    main()
