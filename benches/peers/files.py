#!/usr/bin/env python3
"""Times `oclprim run` on .npy files in the page cache, beside NumPy. Writes CSV to standard output.

usage: files.py FOLDER NAME=PROGRAM...

A time of a program is that of the whole process. A time of NumPy is that of load, operation and save in a new process,
without the start of Python. The runs of all programs and of NumPy are interleaved. A row has the median wall time and
the median processor time. Its spread is half the distance between the fastest and the slowest run, as a share of the
median. Its memory is the maximum over all runs, without the page cache; the script reads it from /proc every 10 ms.
The variables FILES_SIZES, FILES_TYPES, FILES_COMMANDS and FILES_DEVICES select rows; `cpu opencl` are the CPU backend
and the first OpenCL device.
"""

import csv
import functools
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy

RUNS = 5
SIZES = [int(size) for size in os.environ.get("FILES_SIZES", f"{1 << 30} {1 << 28} {1 << 24} {1 << 20}").split()]
TYPES = os.environ.get("FILES_TYPES", "f4 f8").split()
DEVICES = os.environ.get("FILES_DEVICES", "cpu").split()
# The arguments of oclprim, and the operation of NumPy: x is the input, and y is saved if there is an output.
COMMANDS = {
    "reduce": (["reduce", "IN"], "y = x.sum()"),
    "copy": (["copy", "IN", "-o", "OUT"], "y = x"),
    "scan": (["scan", "IN", "-o", "OUT"], "y = x.cumsum()"),
    "select": (["select", "IN", "--above", "0.5", "-o", "OUT"], "y = x[x > 0.5]"),
    "nonzero": (["select", "IN", "-o", "OUT"], "y = x[x != 0]"),
    "sort": (["sort", "IN"], "y = numpy.sort(x)"),
    "sort-to-file": (["sort", "IN", "-o", "OUT"], "y = numpy.sort(x)"),
}
NUMPY = """
import sys, time, numpy
start, cpu = time.perf_counter(), time.process_time()
x = numpy.load(sys.argv[1], mmap_mode={mode!r})
{operation}
if len(sys.argv) > 2:
    numpy.save(sys.argv[2], y)
print(time.perf_counter() - start, time.process_time() - cpu)
"""


def watched(words, stdout):
    """Runs a command. Returns its wall time, processor time and memory, and its output."""
    most, done = 0, threading.Event()

    def watch():
        nonlocal most
        while not done.wait(0.01):
            try:
                status = Path(f"/proc/{child.pid}/status").read_text()
            except OSError:
                return
            most = max([most, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))])

    start = time.perf_counter()
    child = subprocess.Popen(words, stdout=stdout, text=True)
    watcher = threading.Thread(target=watch)
    watcher.start()
    output = child.stdout.read() if child.stdout else ""
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{words}: exit code {child.returncode}")
    return seconds, usage.ru_utime + usage.ru_stime, most, output


def program(path, device, words, source, target):
    words = [{"IN": str(source), "OUT": str(target)}.get(word, word) for word in words]
    return watched([path, "run", *words, "--device", device], subprocess.DEVNULL)[:3]


def with_numpy(mode, operation, source, target, saves):
    words = [sys.executable, "-c", NUMPY.format(mode=mode, operation=operation), str(source)]
    *_, most, output = watched(words + [str(target)] * saves, subprocess.PIPE)
    seconds, cpu = (float(number) for number in output.split())
    return seconds, cpu, most


def memory_copy(size):
    """A copy in memory by one thread; both arrays were touched before."""
    x, y = numpy.ones(size, "u1"), numpy.zeros(size, "u1")
    numpy.copyto(y, x)
    start, cpu = time.perf_counter(), time.process_time()
    numpy.copyto(y, x)
    return time.perf_counter() - start, time.process_time() - cpu, 0


def row(what, dtype, size, who, times):
    seconds = [wall for wall, *_ in times]
    median = statistics.median(seconds)
    spread = (max(seconds) - min(seconds)) / 2 / median
    cpu = statistics.median(cpu for _, cpu, _ in times)
    memory = max(most for *_, most in times) >> 10
    return [what, dtype, size, who, len(times), f"{median:.5f}", f"{min(seconds):.5f}", f"{spread:.2f}", f"{cpu:.5f}", memory]


def main():
    folder, programs = Path(sys.argv[1]), dict(argument.split("=", 1) for argument in sys.argv[2:])
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["what", "type", "bytes", "program", "runs", "median_s", "fastest_s", "spread", "cpu_s", "memory_mib"])
    source, target = folder / "in.npy", folder / "out.npy"
    for size in SIZES:
        writer.writerow(row("copy in memory", "u1", size, "numpy", [memory_copy(size) for _ in range(RUNS)]))
    for size in SIZES:
        for dtype in TYPES:
            numpy.save(source, numpy.random.default_rng(1).random(size // int(dtype[1]), dtype))
            os.sync()
            for what, (words, operation) in COMMANDS.items():
                if what not in os.environ.get("FILES_COMMANDS", " ".join(COMMANDS)).split():
                    continue
                saves = "OUT" in words
                each = {
                    name if device == "cpu" else f"{name}, {device}": functools.partial(
                        program, path, device, words, source, target
                    )
                    for name, path in programs.items()
                    for device in DEVICES
                }
                each["numpy"] = lambda: with_numpy(None, operation, source, target, saves)
                each["numpy mapped"] = lambda: with_numpy("r", operation, source, target, saves)
                times = {name: [] for name in each}
                for _ in range(RUNS):
                    for name, run in each.items():
                        target.unlink(missing_ok=True)
                        times[name].append(run())
                target.unlink(missing_ok=True)
                writer.writerows(row(what, dtype, size, name, found) for name, found in times.items())
                sys.stdout.flush()
            source.unlink()


if __name__ == "__main__":
    main()
