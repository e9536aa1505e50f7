#!/usr/bin/env python3
"""Times the first call of each operation: whole processes of `oclprim run`, beside a bare OpenCL program.

A cold process finds no built kernel. It finds the self-test's verdicts, and what the driver keeps for every program.
The next processes find the kernels. opencl/first_launch.c is the floor: it makes a context and launches one cached kernel, and
its runs are interleaved with those of `oclprim`. The columns cold_s and cached_s are the medians of what `oclprim` takes above the floor. The
caches of a user are left alone. With --peer, CuPy also computes a first sum: once with cold caches of its own, once with warm ones.
"""
import argparse
import csv
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
N = 1 << 20
TYPES = {"f32": "<f4", "f64": "<f8", "i32": "<i4", "u32": "<u4", "u64": "<u8"}
OPERATIONS = {
    "sum": "reduce x.npy",
    "arg-max": "reduce x.npy --op arg-max",
    "sum of columns": "reduce matrix.npy --axis 0",
    "sum of segments of 256": "reduce x.npy --segments offsets.npy",
    "count": "count x.npy",
    "statistics": "statistics x.npy",
    "statistics of columns": "statistics matrix.npy --axis 0",
    "scan": "scan x.npy",
    "scan of columns": "scan matrix.npy --axis 0",
    "sort": "sort x.npy",
    "merge": "merge sorted.npy --with sorted.npy",
    "search": "search sorted.npy --needles x.npy",
    "select": "select x.npy --above 500000",
    "unique": "unique runs.npy",
    "run-length encode": "rle runs.npy",
    "top 100": "topk x.npy --k 100",
    "median": "quantile x.npy --q 0.5",
    "histogram, 256 bins": "histogram x.npy --bins 256 --range 0 1e6",
    "transpose": "transpose matrix.npy",
    "permute": "permute matrix.npy --axes 1,0",
    "copy": "copy x.npy",
    "reverse": "reverse x.npy",
    "gather": "gather x.npy --indices indices.npy",
    "scatter": "scatter x.npy --indices indices.npy",
    "random": f"random {N}",
    "iota": f"iota {N}",
}
PEER = "import cupy, numpy; cupy.asarray(numpy.load('x.npy')).sum().get()"


def inputs(folder, dtype):
    """Writes the operations' inputs."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    x = (rng.random(N) * 1e6).astype(dtype)
    np.save(folder / "x.npy", x)
    np.save(folder / "matrix.npy", x.reshape(1024, -1))
    np.save(folder / "sorted.npy", np.sort(x))
    np.save(folder / "runs.npy", np.repeat(np.arange(N // 16), 16).astype(dtype))
    np.save(folder / "offsets.npy", np.arange(0, N + 1, 256).astype("<u4"))
    np.save(folder / "indices.npy", rng.permutation(N).astype("<u4"))


def caches(folder):
    """The environment of a process whose kernels are kept in `folder`."""
    places = {"OCLPRIM_CACHE_DIR": "oclprim", "CUDA_CACHE_PATH": "driver", "POCL_CACHE_DIR": "pocl", "CUPY_CACHE_DIR": "cupy"}
    return os.environ | {name: str(folder / place) for name, place in places.items()}


def seconds(command, environment, folder):
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return time.perf_counter() - start


def spread(times):
    return (max(times) - min(times)) / 2


def measure(options, folder):
    bare = folder / "first_launch"
    includes = [f"-I{path}" for path in options.include]
    subprocess.run(["cc", "-O1", *includes, HERE / "opencl/first_launch.c", "-o", bare, options.library], check=True)
    floor_of = [bare, options.platform]
    base = folder / "base"
    base.mkdir()
    seconds(floor_of, caches(base), folder)
    print(f"devices, no cache: {seconds([options.program, 'devices'], caches(base), folder):.3f} s", flush=True)
    count = 0

    def fresh():
        nonlocal count
        count += 1
        return shutil.copytree(base, folder / f"cache{count}")

    for name in options.types.split(","):
        data = folder / name
        inputs(data, TYPES[name])
        for operation, words in OPERATIONS.items():
            if options.only and options.only not in operation:
                continue
            command = [options.program, "run", *words.split(), "--device", options.device]
            floor, cold, cached = [], [], []
            for _ in range(options.runs):
                cache = fresh()
                floor.append(seconds(floor_of, caches(base), data))
                cold.append(seconds(command, caches(cache), data))
                for _ in range(2):
                    floor.append(seconds(floor_of, caches(base), data))
                    cached.append(seconds(command, caches(cache), data))
                shutil.rmtree(cache)
            least = statistics.median(floor)
            yield ["oclprim", operation, name, N, least, spread(floor), statistics.median(cold) - least, spread(cold),
                   statistics.median(cached) - least, spread(cached)]
        if options.peer:
            cache = fresh()
            command = [options.python, "-c", PEER]
            cold = seconds(command, caches(cache), data)
            cached = [seconds(command, caches(cache), data) for _ in range(options.runs)]
            yield ["CuPy", "sum", name, N, 0, 0, cold, 0, statistics.median(cached), spread(cached)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="oclprim", type=lambda path: shutil.which(path) or sys.exit(f"no program {path}"))
    parser.add_argument("--device", default="gpu", help="the device of `oclprim run`")
    parser.add_argument("--platform", default="", help="a part of the name of its platform")
    parser.add_argument("--types", default="f32,u32")
    parser.add_argument("--only", help="only operations whose name contains this text")
    parser.add_argument("--runs", default=3, type=int, help="cold processes of each operation")
    parser.add_argument("--library", default="-lOpenCL", help="the OpenCL loader, for the compiler")
    parser.add_argument("--include", action="append", default=[], help="a folder with CL/cl.h")
    parser.add_argument("--peer", action="store_true", help="also CuPy")
    parser.add_argument("--python", default=sys.executable, help="the Python that has CuPy")
    parser.add_argument("--out", help="the record, a .csv file")
    options = parser.parse_args()
    header = "library,operation,type,n,floor_s,floor_spread_s,cold_s,cold_spread_s,cached_s,cached_spread_s".split(",")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in measure(options, pathlib.Path(folder)):
            rows.append(row)
            print(f"{row[0]:8} {row[1]:24} {row[2]:4}", *(f"{x:8.3f}" for x in row[4:]), flush=True)
            if options.out:
                with open(options.out, "w", newline="") as file:
                    csv.writer(file).writerows([header, *([x if isinstance(x, (str, int)) else f"{x:.4f}" for x in row] for row in rows)])
    for column, what in ((6, "cold"), (8, "cached")):
        times = [row[column] for row in rows if row[0] == "oclprim"]
        print(f"{what}: median {statistics.median(times):.3f} s above the floor, most {max(times):.3f}")


if __name__ == "__main__":
    main()
