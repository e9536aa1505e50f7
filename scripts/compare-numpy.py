"""Sends arrays that numpy wrote through `oclprim run`, and compares with numpy's answers: compare-numpy.py PROGRAM."""

import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

PROGRAM = sys.argv[1]
DEVICES = ["cpu", "opencl"]
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]
RANDOM = numpy.random.default_rng(1)

counts = {"passed": 0, "failed": 0}


def run(family, path, output, device, *options):
    """Runs the program; returns (exit code, what it printed)."""
    command = [PROGRAM, "run", family, str(path), "-o", str(output), "--device", device, *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    return done.returncode, (done.stdout + done.stderr).strip()


def record(name, good, detail=""):
    counts["passed" if good else "failed"] += 1
    if not good:
        print(f"FAILED {name}: {detail}")


def random_array(dtype, shape):
    if dtype in FLOATS:
        return RANDOM.uniform(-1, 1, shape).astype(dtype)
    info = numpy.iinfo(dtype)
    return RANDOM.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def compare(folder, name, family, array, options, is_right):
    """Runs one family on every device; `is_right` judges the array that came out."""
    path, output = folder / "in.npy", folder / "out.npy"
    numpy.save(path, array)
    for device in DEVICES:
        output.unlink(missing_ok=True)
        label = f"{name} on {device}"
        code, text = run(family, path, output, device, *options)
        if code != 0:
            record(label, False, f"exit code {code}: {text}")
            continue
        result = numpy.load(output)
        record(label, is_right(result), f"{result.dtype}{result.shape} {result.ravel()[:4]}…")


def same(expected):
    return lambda result: (
        result.dtype == expected.dtype and result.shape == expected.shape and result.tobytes() == expected.tobytes()
    )


def one_value(expected):
    return lambda result: result.size == 1 and result.ravel()[0] == expected


def near_sum(array):
    """Within the error of any order of n additions, and of one rounding of the result."""
    exact = math.fsum(array.astype("f8"))
    magnitude = math.fsum(numpy.abs(array.astype("f8")))
    accumulator = "f8" if array.dtype == "f8" else "f4"
    bound = array.size * float(numpy.finfo(accumulator).eps) * magnitude + float(numpy.finfo(array.dtype).eps) * abs(exact)
    return lambda result: result.size == 1 and abs(float(result.ravel()[0]) - exact) <= bound


def reduce(folder):
    for dtype in INTEGERS + FLOATS:
        array = random_array(dtype, 100_003)
        if dtype in FLOATS:
            expected = near_sum(array)
        else:
            expected = one_value(numpy.sum(array, dtype=dtype))
        compare(folder, f"reduce sum {dtype}", "reduce", array, ["--op", "sum"], expected)
        compare(folder, f"reduce min {dtype}", "reduce", array, ["--op", "min"], one_value(array.min()))
        compare(folder, f"reduce max {dtype}", "reduce", array, ["--op", "max"], one_value(array.max()))


def transpose(folder):
    for dtype in INTEGERS + FLOATS + ["c8", "c16"]:
        array = random_array("f8", (317, 1009)).astype(dtype) if dtype[0] == "c" else random_array(dtype, (317, 1009))
        compare(folder, f"transpose {dtype}", "transpose", array, [], same(numpy.ascontiguousarray(array.T)))


def histogram(folder):
    for dtype in ["u1", "u2", "u4"]:
        array = RANDOM.integers(0, 200, 100_003).astype(dtype)
        expected = numpy.bincount(array, minlength=200)

        def is_right(result, expected=expected):
            return numpy.array_equal(result.astype("i8"), expected)

        compare(folder, f"histogram {dtype}", "histogram", array, ["--bins", "200"], is_right)


def copy(folder):
    for dtype in INTEGERS + FLOATS:
        array = random_array(dtype, 100_003)
        compare(folder, f"copy {dtype}", "copy", array, [], same(array))


def bad_files(folder):
    """A file that cannot be used is an error with a message, not a crash."""
    path, output = folder / "in.npy", folder / "out.npy"

    def refused(name, family="transpose"):
        for device in DEVICES:
            code, text = run(family, path, output, device)
            good = code in (1, 2) and text and "panicked" not in text
            record(f"{name} on {device}", good, f"exit code {code}: {text}")

    numpy.save(path, random_array("f4", (64, 64)))
    path.write_bytes(path.read_bytes()[:-100])
    refused("truncated file")
    path.write_bytes(b"not numpy's")
    refused("no .npy file")
    numpy.save(path, numpy.array([["a", "b"]]))
    refused("strings", "reduce")
    numpy.save(path, numpy.array([["a", None]], dtype=object), allow_pickle=True)
    refused("objects")
    numpy.save(path, numpy.asfortranarray(random_array("f4", (3, 5))))
    refused("Fortran order")
    path.unlink()
    refused("no file")


def main():
    with tempfile.TemporaryDirectory() as folder:
        for family in (reduce, transpose, histogram, copy, bad_files):
            family(Path(folder))
    print(f"numpy: {counts['passed']} passed, {counts['failed']} failed")
    sys.exit(1 if counts["failed"] else 0)


main()
