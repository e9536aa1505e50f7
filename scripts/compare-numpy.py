"""Runs `oclprim run` on arrays that NumPy wrote, and compares the results with NumPy's: compare-numpy.py PROGRAM [DEVICE...]."""

import itertools
import math
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy

PROGRAM = sys.argv[1]
DEVICES = sys.argv[2:] or ["cpu", "opencl"]
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]
RANDOM = numpy.random.default_rng(1)

counts = {"passed": 0, "failed": 0}


def run(family, path, output, device, *options):
    """Runs the program. Returns (exit code, output)."""
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


POOL = ThreadPoolExecutor(os.cpu_count())
NUMBERS = itertools.count()
jobs = []
# On the OpenCL device, an operation runs only with its first type and with these types. `check` compares the device with the CPU
# for all types.
PREFERRED = ["i4", "f4"]
on_opencl = set()


def devices_for(name, options, array):
    element = re.search(r"\b[iuf][1248]\b", name)
    operation = (name.replace(element[0], "", 1) if element else name, tuple(o for o in options if "/" not in o), array.shape)
    if not element or element[0] in PREFERRED or operation not in on_opencl:
        on_opencl.add(operation)
        return DEVICES
    return DEVICES[:1]


def compare(folder, name, family, array, options, is_right, second=None, devices=None):
    """Runs `oclprim run FAMILY` on the devices for this operation. `is_right` judges its output, or the file of `second`."""
    path = folder / f"in{next(NUMBERS)}.npy"
    numpy.save(path, array)
    for device in devices or devices_for(name, options, array):
        output = path.with_suffix(f".{device}.npy")
        judged = path.with_suffix(f".{device}.2.npy") if second else output
        more = [second, str(judged)] if second else []
        job = POOL.submit(run, family, path, output, device, *options, *more)
        jobs.append((f"{name} on {device}", judged, job, is_right))


def judge():
    for label, output, job, is_right in jobs:
        code, text = job.result()
        if code != 0:
            record(label, False, f"exit code {code}: {text}")
            continue
        result = numpy.load(output)
        record(label, is_right(result), f"{result.dtype}{result.shape} {result.ravel()[:4]}…")
    jobs.clear()


def same(expected):
    return lambda result: (
        result.dtype == expected.dtype and result.shape == expected.shape and result.tobytes() == expected.tobytes()
    )


def one_value(expected):
    return lambda result: result.size == 1 and result.ravel()[0] == expected


def near_sum(array):
    """A test for the error bound of any order of n additions and one rounding of the result."""
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
            expected = same(numpy.array(numpy.sum(array)))
        compare(folder, f"reduce sum {dtype}", "reduce", array, ["--op", "sum"], expected)
        compare(folder, f"reduce min {dtype}", "reduce", array, ["--op", "min"], one_value(array.min()))
        compare(folder, f"reduce max {dtype}", "reduce", array, ["--op", "max"], one_value(array.max()))
    for dtype in ["i4", "u8", "u1"]:
        array = random_array(dtype, 100_003)
        for op, function in [("and", numpy.bitwise_and), ("or", numpy.bitwise_or), ("xor", numpy.bitwise_xor)]:
            # Over many elements, only the xor is neither 0 nor all ones.
            for count in [3, array.size]:
                expected = one_value(function.reduce(array[:count]))
                compare(folder, f"reduce {op} {dtype}", "reduce", array[:count], ["--op", op], expected)
        odd = array | numpy.array(1, dtype)
        expected = same(numpy.array(numpy.prod(odd)))
        compare(folder, f"reduce product {dtype}", "reduce", odd, ["--op", "product"], expected)
    # All exponents.
    array = RANDOM.integers(0, 1 << 64, 100_003, dtype="u8", endpoint=False).view("f8")
    array = numpy.ldexp(array[numpy.isfinite(array)], -20)
    compare(folder, "reduce sum exact", "reduce", array, ["--determinism", "exact"], one_value(math.fsum(array)))
    for dtype in ["f4", "f8"]:
        factors = (1 + RANDOM.uniform(-1, 1, 100_003) / 1024).astype(dtype)
        exact = float(numpy.prod(factors.astype("f8")))
        # The program rounds once per multiplication. For f8, NumPy rounds as often.
        bound = 2 * math.expm1(factors.size * float(numpy.finfo(dtype).eps) / 2) * abs(exact)

        def is_right(result, exact=exact, bound=bound):
            return result.size == 1 and abs(float(result.ravel()[0]) - exact) <= bound

        for order in ["fixed", "fast"]:
            options = ["--op", "product", "--determinism", order]
            compare(folder, f"reduce product {dtype} {order}", "reduce", factors, options, is_right)
    for dtype in ["i1", "i4", "u8", "f2", "f4", "f8"]:
        # Among equal elements, the first one, as in NumPy; -0 and 0 are equal.
        array = random_array(dtype, 100_003)
        for op, function in [("arg-min", numpy.argmin), ("arg-max", numpy.argmax)]:
            expected = same(numpy.array(function(array), dtype="i8"))
            compare(folder, f"{op} {dtype}", "reduce", array, ["--op", op], expected)


def more_reductions(folder):
    for dtype in ["c8", "c16"]:
        array = random_array("f8", (100_003, 2)).view("c16").ravel().astype(dtype)
        exact = complex(math.fsum(array.real.astype("f8")), math.fsum(array.imag.astype("f8")))
        bound = array.size * float(numpy.finfo(dtype).eps) * math.fsum(numpy.abs(array).astype("f8"))
        compare(folder, f"reduce sum {dtype}", "reduce", array, [], near(dtype, exact, bound))
        factors = numpy.exp(1j * RANDOM.uniform(0, 1, 1009)).astype(dtype)
        exact = complex(numpy.prod(factors.astype("c16")))
        # A few roundings per multiplication; the factors have magnitude 1.
        bound = 8 * factors.size * float(numpy.finfo(dtype).eps)
        compare(folder, f"reduce product {dtype}", "reduce", factors, ["--op", "product"], near(dtype, exact, bound))
    for dtype in INTEGERS + FLOATS:
        x, y = random_array(dtype, 100_003), random_array(dtype, 100_003)
        numpy.save(folder / f"dot-{dtype}.npy", y)
        options = ["--dot", str(folder / f"dot-{dtype}.npy")]
        if dtype in FLOATS:
            # Products and sums are rounded to the type of the computation.
            kind = "f8" if dtype == "f8" else "f4"
            products = x.astype(kind) * y.astype(kind)
            exact, magnitude = math.fsum(products.astype("f8")), math.fsum(numpy.abs(products).astype("f8"))
            bound = x.size * float(numpy.finfo(kind).eps) * magnitude + float(numpy.finfo(dtype).eps) * abs(exact)
            expected = near(dtype, exact, bound)
        else:
            # numpy.dot does not widen; numpy.sum does.
            wide = numpy.sum(x).dtype
            expected = same(numpy.array(numpy.dot(x.astype(wide), y.astype(wide))))
        compare(folder, f"dot {dtype}", "reduce", x, options, expected)
        ends = numpy.array([x.min(), x.max()])
        compare(folder, f"min-max {dtype}", "reduce", x, ["--op", "min-max"], same(ends))
    x, y = random_array("i4", 100_003), random_array("i4", 100_003)
    numpy.save(folder / "dot-wide.npy", y)
    options = ["--dot", str(folder / "dot-wide.npy"), "--as", "i32"]
    compare(folder, "dot i4 in i4", "reduce", x, options, same(numpy.array(numpy.dot(x, y))))
    array = random_array("u2", (23, 411, 57))
    for axis in range(-1, 2):
        expected = same(numpy.stack([array.min(axis), array.max(axis)]))
        compare(folder, f"min-max u2 along {axis}", "reduce", array, ["--op", "min-max", "--axis", str(axis)], expected)
    few = numpy.zeros(100_003, "f4")
    few[77_777] = numpy.nan
    for array in [few, few[:1000], few == 0, few[:1000] == 0]:
        for op, function in [("any", numpy.any), ("all", numpy.all)]:
            expected = same(numpy.array(function(array)))
            compare(folder, f"{op} {array.dtype} of {array.size}", "reduce", array, ["--op", op], expected)


def near(dtype, exact, bound):
    return lambda result: result.dtype == dtype and result.shape == () and abs(result.astype("c16") - exact) <= bound


def along_an_axis(folder):
    shape = (23, 41, 57)
    axes = range(-1, 2)
    for dtype in ["i4", "u1", "f2", "f4", "f8"]:
        array = random_array(dtype, shape)
        for axis in axes:
            if dtype in FLOATS:
                expected = near_sums(array, axis)
            else:
                expected = same(numpy.sum(array, axis=axis))
            options = ["--axis", str(axis)]
            compare(folder, f"reduce sum {dtype} along {axis}", "reduce", array, options, expected)
    for dtype, op, function in [("i2", "min", numpy.min), ("f4", "max", numpy.max)]:
        array = random_array(dtype, shape)
        expected = same(function(array, axis=1))
        compare(folder, f"reduce {op} {dtype} along 1", "reduce", array, ["--op", op, "--axis", "1"], expected)
    for dtype, op, function in [("f4", "arg-min", numpy.argmin), ("u1", "arg-max", numpy.argmax)]:
        array = random_array(dtype, shape)
        if dtype in FLOATS:
            array[3, 5, ::7] = numpy.nan
        for axis in axes:
            # Among equal elements, the first one; otherwise the first NaN.
            expected = same(function(array, axis=axis))
            compare(folder, f"{op} {dtype} along {axis}", "reduce", array, ["--op", op, "--axis", str(axis)], expected)
    bits = random_array("u2", (129, 511))
    for op, function in [("and", numpy.bitwise_and), ("or", numpy.bitwise_or), ("xor", numpy.bitwise_xor)]:
        # Over many elements, only the xor is neither 0 nor all ones.
        few = bits if op == "xor" else bits[:, :3]
        expected = same(function.reduce(few, axis=1))
        compare(folder, f"reduce {op} u2 along 1", "reduce", few, ["--op", op, "--axis", "1"], expected)
    odd = bits | numpy.array(1, "u2")
    expected = same(numpy.prod(odd, axis=0))
    compare(folder, "reduce product u2 along 0", "reduce", odd, ["--op", "product", "--axis", "0"], expected)


def near_sums(array, axis):
    """The test of near_sum for each line along an axis."""
    lines = numpy.moveaxis(array, axis, -1)
    lines = lines.reshape(-1, lines.shape[-1])
    each = [near_sum(line) for line in lines]
    shape = tuple(numpy.delete(array.shape, axis))
    return lambda result: (
        result.dtype == array.dtype
        and result.shape == shape
        and all(is_near(value) for is_near, value in zip(each, result.ravel()))
    )


def statistics(folder):
    for dtype in ["u8", "f4", "f8"]:
        array = random_array(dtype, 100_003)
        wide = array.astype("f8")
        rounding = 1e-5 if dtype == "f4" else 1e-12

        def is_right(result, wide=wide, rounding=rounding):
            count, nan, low, high, total, mean, variance = result
            if (count, nan, low, high) != (wide.size, 0, wide.min(), wide.max()):
                return False
            exact, off = math.fsum(wide), rounding * math.fsum(numpy.abs(wide))
            sums = abs(total - exact) <= off and abs(mean - exact / wide.size) <= off / wide.size
            return sums and abs(variance - wide.var()) <= rounding * wide.var()

        compare(folder, f"statistics {dtype}", "statistics", array, [], is_right)


def statistics_along_an_axis(folder):
    for dtype in ["u1", "i8", "f4", "f8"]:
        array = random_array(dtype, (23, 411, 57))
        rounding = 1e-5 if dtype == "f4" else 1e-12
        for axis in range(-1, 2):
            wide = array.astype("f8")
            off = rounding * numpy.abs(wide).mean(axis)

            def is_right(result, wide=wide, axis=axis, off=off, rounding=rounding):
                mean, variance = wide.mean(axis), wide.var(axis)
                if result.shape != (*mean.shape, 3):
                    return False
                near = numpy.abs(result[..., 1] - mean) <= off
                near &= numpy.abs(result[..., 0] / wide.shape[axis] - mean) <= off
                return bool((near & (numpy.abs(result[..., 2] - variance) <= rounding * variance)).all())

            options = ["--axis", str(axis)]
            compare(folder, f"statistics {dtype} along {axis}", "statistics", array, options, is_right)


def scan(folder):
    for dtype in INTEGERS + FLOATS:
        array = random_array(dtype, 100_003)
        if dtype in FLOATS:
            exact = numpy.cumsum(array, dtype="f8")
            # The bound has the roundings of the program's order, those of NumPy's order, and the rounding to the type.
            eps = float(numpy.finfo("f8" if dtype == "f8" else "f4").eps)
            bound = array.size * eps * numpy.cumsum(numpy.abs(array), dtype="f8")
            bound += float(numpy.finfo(dtype).eps) * numpy.abs(exact)

            def is_right(result, exact=exact, bound=bound, dtype=dtype):
                return result.dtype == dtype and bool((numpy.abs(result.astype("f8") - exact) <= bound).all())

            compare(folder, f"scan sum {dtype}", "scan", array, [], is_right)
        else:
            sums = numpy.cumsum(array)
            compare(folder, f"scan sum {dtype}", "scan", array, [], same(sums))
            offsets = numpy.concatenate([numpy.zeros(1, sums.dtype), sums])
            compare(folder, f"exclusive scan sum {dtype}", "scan", array, ["--exclusive"], same(offsets[:-1]))
            compare(folder, f"offsets {dtype}", "scan", array, ["--exclusive", "--total"], same(offsets))
            own = {"i": "i", "u": "u"}[dtype[0]] + str(8 * int(dtype[1:]))
            wrapped = numpy.cumsum(array, dtype=dtype)
            compare(folder, f"scan sum {dtype} in {own}", "scan", array, ["--as", own], same(wrapped))
            back = numpy.cumsum(array[::-1])[::-1]
            compare(folder, f"reverse scan sum {dtype}", "scan", array, ["--reverse"], same(back))
        for op, function in [("min", numpy.minimum), ("max", numpy.maximum)]:
            compare(folder, f"scan {op} {dtype}", "scan", array, ["--op", op], same(function.accumulate(array)))
    for op, function in [("and", numpy.bitwise_and), ("or", numpy.bitwise_or), ("xor", numpy.bitwise_xor)]:
        array = random_array("i4", 100_003)
        compare(folder, f"scan {op} i4", "scan", array, ["--op", op], same(function.accumulate(array)))
    array = random_array("i8", (211, 1013))
    for axis in (0, 1):
        options = ["--axis", str(axis)]
        compare(folder, f"scan i8 along {axis}", "scan", array, options, same(numpy.cumsum(array, axis=axis)))
    starts = numpy.unique(numpy.concatenate([[0], RANDOM.integers(0, array.size, 500)]))
    numpy.save(folder / "starts.npy", starts)
    parts = numpy.split(array.ravel(), starts[1:])
    for name, function in [("sum", numpy.cumsum), ("max", numpy.maximum.accumulate)]:
        options = ["--segments", str(folder / "starts.npy"), "--op", name]
        expected = numpy.concatenate([function(part) for part in parts]).reshape(array.shape)
        compare(folder, f"scan {name} i8 of segments", "scan", array, options, same(expected))
    odd = random_array("u4", (311, 97)) | numpy.array(1, "u4")
    expected = same(numpy.cumprod(odd).reshape(odd.shape))
    compare(folder, "scan product u4", "scan", odd, ["--op", "product"], expected)


def sort(folder):
    for dtype in INTEGERS + FLOATS:
        array = random_array(dtype, 100_003)
        # Some elements are equal, also among floats.
        array[::3] = array[1]
        expected = numpy.sort(array)
        compare(folder, f"sort {dtype}", "sort", array, [], same(expected))
        compare(folder, f"sort {dtype} down", "sort", array, ["--descending"], same(numpy.ascontiguousarray(expected[::-1])))
        indices = numpy.argsort(array, kind="stable").astype("i8")
        compare(folder, f"argsort {dtype}", "sort", array, ["--indices"], same(indices))
    array = random_array("f4", (100, 37))
    array[3, ::2] = numpy.nan
    compare(folder, "sort f4 with NaN", "sort", array, [], same(numpy.sort(array, axis=None)))


def merge(folder):
    for dtype in INTEGERS + FLOATS:
        # Many elements are in both.
        first, more = (numpy.sort(random_array(dtype, n)) for n in (70_001, 30_007))
        more[::3] = first[: more[::3].size]
        more.sort()
        numpy.save(folder / f"more-{dtype}.npy", more)
        options = ["--with", str(folder / f"more-{dtype}.npy")]
        expected = numpy.sort(numpy.concatenate([first, more]), kind="stable")
        compare(folder, f"merge {dtype}", "merge", first, options, same(expected))
        # NumPy has set operations, too, for sets without duplicates.
        sets = numpy.unique(first)
        numpy.save(folder / f"set-{dtype}.npy", numpy.unique(more))
        options = ["--with", str(folder / f"set-{dtype}.npy"), "--keep"]
        functions = {"union": numpy.union1d, "intersection": numpy.intersect1d, "difference": numpy.setdiff1d}
        for op, function in [*functions.items(), ("symmetric-difference", numpy.setxor1d)]:
            compare(folder, f"{op} {dtype}", "merge", sets, [*options, op], same(function(sets, numpy.unique(more))))
        needles = ["--needles", str(folder / f"more-{dtype}.npy")]
        for side, option in [("left", []), ("right", ["--upper"])]:
            expected = numpy.searchsorted(first, more, side).astype("i8")
            compare(folder, f"search {side} {dtype}", "search", first, [*needles, *option], same(expected))


def top_k(folder):
    for dtype in INTEGERS + FLOATS:
        array = random_array(dtype, 100_003)
        array[::3] = array[1]
        for k in [1, 7, 40_000]:
            largest = numpy.sort(numpy.partition(array, array.size - k)[array.size - k :])[::-1]
            options = ["--k", str(k), "--sorted"]
            compare(folder, f"top {k} {dtype}", "topk", array, options, same(numpy.ascontiguousarray(largest)))
            # Among equal elements, the first ones, in the order of the file.
            indices = numpy.sort(numpy.argsort(array, kind="stable")[:k]).astype("i8")
            options = ["--k", str(k), "--smallest", "--indices"]
            compare(folder, f"least {k} {dtype}", "topk", array, options, same(indices))
    array = random_array("f4", (57, 3001))
    indices = numpy.argsort(array, axis=-1, kind="stable")[:, :5].astype("i8")
    options = ["--k", "5", "--smallest", "--sorted", "--rows", "--indices"]
    compare(folder, "least 5 of rows f4", "topk", array, options, same(numpy.ascontiguousarray(indices)))


def runs(folder):
    for dtype in INTEGERS + FLOATS:
        array = numpy.repeat(RANDOM.integers(0, 5, 30_001), RANDOM.integers(1, 7, 30_001)).astype(dtype)
        begins = numpy.flatnonzero(numpy.concatenate([[True], array[1:] != array[:-1]]))
        lengths = numpy.diff(numpy.append(begins, array.size)).astype("u8")
        compare(folder, f"unique {dtype}", "unique", array, [], same(array[begins]))
        compare(folder, f"distinct {dtype}", "unique", numpy.sort(array), [], same(numpy.unique(array)))
        compare(folder, f"values of runs {dtype}", "rle", array, [], same(array[begins]))
        compare(folder, f"lengths of runs {dtype}", "rle", array, [], same(lengths), "--lengths")
        chosen = (array > 1) & (array < 4)
        compare(folder, f"select {dtype}", "select", array, ["--above", "1", "--below", "4"], same(array[chosen]))
        options = ["--above", "1", "--below", "4", "--indices"]
        compare(folder, f"indices {dtype}", "select", array, options, same(numpy.flatnonzero(chosen).astype("i8")))
        numpy.save(folder / f"flags-{dtype}.npy", chosen)
        options = ["--flags", str(folder / f"flags-{dtype}.npy"), "--others"]
        partitioned = numpy.concatenate([array[chosen], array[~chosen]])
        compare(folder, f"partition {dtype}", "select", array, options, same(partitioned))


def quantiles(folder):
    levels = numpy.array([0, 0.001, 0.25, 0.3, 0.5, 0.75, 0.999, 1])
    text = ",".join(str(level) for level in levels)
    for dtype, method in itertools.product(INTEGERS + FLOATS, ["linear", "lower", "higher", "nearest", "midpoint"]):
        for size in [100_003, 10]:
            array = random_array(dtype, size)
            expected = numpy.quantile(array.astype("f8"), levels, method=method)

            def is_right(result, expected=expected):
                return result.dtype == "f8" and numpy.allclose(result, expected, rtol=1e-15, atol=0)

            compare(folder, f"quantiles {dtype} {method}", "quantile", array, ["--q", text, "--method", method], is_right)
    array = random_array("f4", 1003)
    array[77] = numpy.nan
    compare(folder, "quantiles with NaN", "quantile", array, ["--q", text], same(numpy.full(len(levels), numpy.nan)))


def philox(count, seed, stream):
    """The words of `count` blocks of Philox4x32-10."""
    block = numpy.arange(count, dtype="u8")
    low, mask = numpy.uint64(32), numpy.uint64(0xFFFFFFFF)
    x = [block & mask, block >> low, numpy.full(count, stream & 0xFFFFFFFF, "u8"), numpy.full(count, stream >> 32, "u8")]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = x[0] * numpy.uint64(0xD2511F53), x[2] * numpy.uint64(0xCD9E8D57)
        k = [numpy.uint64(part) for part in key]
        x = [(b >> low) ^ x[1] ^ k[0], b & mask, (a >> low) ^ x[3] ^ k[1], a & mask]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return numpy.stack(x, 1).astype("u4").ravel()


def random(folder):
    n, seed, stream, skip = 100_003, 0x0123456789ABCDEF, 2**40 + 7, 1001
    words = philox(2 * n + 2000, seed, stream)
    options = ["--seed", str(seed), "--stream", str(stream), "--skip", str(skip)]
    taken = slice(skip, skip + n)
    for name, dtype in zip(["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"], INTEGERS):
        expected = words.view(dtype)[taken]
        compare_made(folder, f"random {dtype}", [str(n), "--type", name, *options], same(expected))
    bits = {"f2": ("u2", 5, -11), "f4": ("u4", 8, -24), "f8": ("u8", 11, -53)}
    for dtype, (own, shift, power) in bits.items():
        expected = numpy.ldexp((words.view(own)[taken] >> numpy.array(shift, own)).astype("f8"), power).astype(dtype)
        compare_made(folder, f"random {dtype}", [str(n), "--type", f"f{8 * int(dtype[1])}", *options], same(expected))
    wide = words.view("u8")[taken]
    expected = numpy.array([-3 + (int(x) * 10 >> 64) for x in wide], "i2")
    compare_made(folder, "random i2 of 10", [str(n), "--type", "i16", "--range", "-3", "6", *options], same(expected))


def compare_made(folder, name, options, is_right):
    """The same as compare, for a family without an input file."""
    number = next(NUMBERS)
    for device in DEVICES:
        output = folder / f"made{number}.{device}.npy"
        job = POOL.submit(run, "random", options[0], output, device, *options[1:])
        jobs.append((f"{name} on {device}", output, job, is_right))


def transpose(folder):
    for dtype in INTEGERS + FLOATS + ["c8", "c16"]:
        array = random_array("f8", (317, 1009)).astype(dtype) if dtype[0] == "c" else random_array(dtype, (317, 1009))
        compare(folder, f"transpose {dtype}", "transpose", array, [], same(numpy.ascontiguousarray(array.T)))


    for dtype in ["u1", "f4", "c16"]:
        array = random_array("f8", (11, 317, 101)).astype(dtype) if dtype[0] == "c" else random_array(dtype, (11, 317, 101))
        expected = same(numpy.ascontiguousarray(array.transpose(0, 2, 1)))
        compare(folder, f"transpose {dtype} of 3 dimensions", "transpose", array, [], expected)
    names = {"i1": "i8", "u8": "u64", "f2": "f16", "f4": "f32", "f8": "f64"}
    for dtype, to in itertools.product(["i2", "u4", "f4"], names):
        # Floats with few bits, whose values are exact in every type.
        array = RANDOM.integers(0, 100, (317, 1009)).astype(dtype)
        expected = same(numpy.ascontiguousarray(array.T.astype(to)))
        compare(folder, f"transpose {dtype} to {to}", "transpose", array, ["--cast", names[to]], expected)
        expected = same(numpy.ascontiguousarray(array.T.astype(to) * numpy.array(3, to)))
        options = ["--cast", names[to], "--scale", "3"]
        compare(folder, f"transpose {dtype} to {to} times 3", "transpose", array, options, expected)
    array = random_array("f4", (317, 1009))
    expected = same(numpy.ascontiguousarray(array.T * numpy.float32(-0.3)))
    compare(folder, "transpose f4 times -0.3", "transpose", array, ["--scale", "-0.3"], expected)


def permute(folder):
    for dtype, shape in [("f4", (29, 31, 37)), ("u1", (29, 31, 37)), ("i2", (16, 3, 8, 33)), ("c16", (7, 64, 11))]:
        array = random_array("f8", shape).astype(dtype) if dtype[0] == "c" else random_array(dtype, shape)
        orders = list(itertools.permutations(range(len(shape))))
        # All orders for one type. A negative number counts from the last axis.
        for order in orders if dtype == "f4" else orders[1 :: len(orders) // 3]:
            axes = [str(axis - len(shape) if order[0] > 0 else axis) for axis in order]
            expected = same(numpy.ascontiguousarray(array.transpose(order)))
            compare(folder, f"permute {dtype} {axes}", "permute", array, ["--axes", ",".join(axes)], expected)


def histogram(folder):
    for dtype in ["u1", "u2", "u4"]:
        array = RANDOM.integers(0, 200, 100_003).astype(dtype)
        expected = numpy.bincount(array, minlength=200)

        def is_right(result, expected=expected):
            return numpy.array_equal(result.astype("i8"), expected)

        compare(folder, f"histogram {dtype}", "histogram", array, ["--bins", "200"], is_right)
    for channels in range(1, 5):
        array = RANDOM.integers(0, 256, (77, 311, channels)).astype("u1")
        counts = [numpy.bincount(array[..., c].ravel(), minlength=256) for c in range(channels)]
        expected = same(numpy.stack(counts).astype("u8"))
        compare(folder, f"histogram of {channels} channels", "histogram", array, ["--channels"], expected)
    weights = RANDOM.integers(-4000, 4000, 100_003) / 8.0
    numpy.save(folder / "weights.npy", weights)
    for dtype in ["u1", "i4", "i8", "f2", "f4", "f8"]:
        array = random_array(dtype, 100_003)
        edges = numpy.sort(random_array(dtype, 100))
        numpy.save(folder / f"edges-{dtype}.npy", edges)
        by_edges = ["--edges", str(folder / f"edges-{dtype}.npy")]
        expected = numpy.histogram(array, edges)[0].astype("u8")
        compare(folder, f"histogram by edges {dtype}", "histogram", array, by_edges, same(expected))
        # The weights have few bits, so their sums are exact in any order.
        expected = numpy.histogram(array, edges, weights=weights)[0]
        by_edges += ["--weights", str(folder / "weights.npy")]
        compare(folder, f"histogram weighted {dtype}", "histogram", array, by_edges, same(expected))
    # Weights of other types, for bin numbers and for bins of equal width. Samples outside are in no bin.
    array = RANDOM.integers(-3, 20, 100_003).astype("i4")
    weights = RANDOM.integers(-100, 100, 100_003).astype("i2")
    numpy.save(folder / "whole.npy", weights)
    inside = (array >= 0) & (array < 16)
    expected = numpy.bincount(array[inside], weights[inside].astype("f8"), minlength=16).astype("i8")
    options = ["--bins", "16", "--weights", str(folder / "whole.npy")]
    compare(folder, "histogram weighted of numbers", "histogram", array, options, same(expected))
    array = random_array("f4", 100_003)
    expected = numpy.histogram(array.astype("f8"), 8, (-0.5, 0.5), weights=weights.astype("f8"))[0].astype("i8")
    options = ["--bins", "8", "--range", "-0.5", "0.5", "--closed", "--weights", str(folder / "whole.npy")]
    compare(folder, "histogram weighted of a range", "histogram", array, options, same(expected))
    # Sums of integer weights stay integers, also beyond the range of exact doubles.
    for dtype in ["i8", "u8"]:
        array = RANDOM.integers(0, 16, 100_003).astype("u1")
        weights = random_array(dtype, 100_003)
        numpy.save(folder / f"wide-{dtype}.npy", weights)
        expected = numpy.zeros(16, dtype)
        numpy.add.at(expected, array, weights)
        options = ["--bins", "16", "--weights", str(folder / f"wide-{dtype}.npy")]
        compare(folder, f"histogram weighted by {dtype}", "histogram", array, options, same(expected))


def near_edges(array, edges):
    """The number of samples so near to an inner edge that its rounding decides their bin."""
    eps = float(numpy.finfo("f8" if array.dtype == "f8" else "f4").eps)
    distance = 4 * eps * float(numpy.abs(edges).max())
    ordered = numpy.sort(array.astype("f8"))
    inner = edges[1:-1]
    return int((numpy.searchsorted(ordered, inner + distance, "right") - numpy.searchsorted(ordered, inner - distance)).sum())


def ranges(folder):
    """Bins of equal width. With exact edges, the counts equal NumPy's. Otherwise samples near an edge may differ."""
    # Ranges and numbers of bins: some for which all edges are exact, some for which few are.
    floats = [(-1.0, 1.0, 256), (0.0, 0.5, 64), (-0.75, 0.25, 1), (-0.7, 0.9, 37), (-1.0, 1.0, 1000)]
    for dtype, (low, high, bins) in itertools.product(FLOATS, floats):
        array = random_array(dtype, 100_003)
        # The bounds are rounded to the type, and NumPy gets the rounded ones, too.
        low, high = (float(numpy.array(bound, dtype)) for bound in (low, high))
        array[:7] = [high, low, high, -0.0, 0.0, (low + high) / 2, high]
        wide = array.astype("f8")
        closed, edges = numpy.histogram(wide, bins, (low, high))
        half_open = closed.copy()
        half_open[-1] -= numpy.count_nonzero(wide == high)
        exact = bins & (bins - 1) == 0
        slack = 0 if exact else 2 * near_edges(array, edges)
        for name, expected, options in [("", half_open, []), (" closed", closed, ["--closed"])]:

            def is_right(result, expected=expected, slack=slack):
                return result.shape == expected.shape and numpy.abs(result.astype("i8") - expected).sum() <= slack

            options = ["--bins", str(bins), "--range", repr(low), repr(high), *options]
            compare(folder, f"histogram {dtype} {low} to {high}, {bins} bins{name}", "histogram", array, options, is_right)
    for dtype, (low, high, bins) in itertools.product(["i2", "i4", "u8"], [(0, 200, 50), (40, 1064, 1024)]):
        array = RANDOM.integers(0, 1100, 100_003).astype(dtype)
        array[:2] = high
        closed = numpy.histogram(array, bins, (low, high))[0]
        half_open = closed.copy()
        half_open[-1] -= numpy.count_nonzero(array == high)
        for name, expected, options in [("", half_open, []), (" closed", closed, ["--closed"])]:

            def is_right(result, expected=expected):
                return numpy.array_equal(result.astype("i8"), expected)

            options = ["--bins", str(bins), "--range", str(low), str(high), *options]
            compare(folder, f"histogram {dtype} {low} to {high}, {bins} bins{name}", "histogram", array, options, is_right)
    # Without a range, bins reach from the smallest to the largest sample, which is in the last bin.
    for dtype in ["f4", "f8"]:
        array = random_array(dtype, 100_003)
        array[5], array[7] = -1, 1
        expected = numpy.histogram(array.astype("f8"), 128)[0]

        def is_right(result, expected=expected):
            return numpy.array_equal(result.astype("i8"), expected)

        compare(folder, f"histogram {dtype} of all", "histogram", array, ["--bins", "128"], is_right)


def copy(folder):
    for dtype in INTEGERS + FLOATS:
        array = random_array(dtype, 100_003)
        compare(folder, f"copy {dtype}", "copy", array, [], same(array))


def counts_of(folder):
    for dtype in ["u1", "i8", "f2", "f4"]:
        array = RANDOM.integers(0, 3, 100_003).astype(dtype)
        expected = same(numpy.array(numpy.count_nonzero(array), "u8"))
        compare(folder, f"count {dtype}", "count", array, [], expected)
        expected = same(numpy.array(numpy.count_nonzero(array == 2), "u8"))
        compare(folder, f"count of 2 {dtype}", "count", array, ["--value", "2"], expected)
    flags = RANDOM.integers(0, 2, 1003).astype(bool)
    compare(folder, "count of truths", "count", flags, [], same(numpy.array(numpy.count_nonzero(flags), "u8")))


def segments_and_wide_sums(folder):
    offsets = numpy.sort(RANDOM.integers(0, 100_003, 500))
    offsets[0], offsets[-1], offsets[7] = 0, 100_003, offsets[6]
    numpy.save(folder / "offsets.npy", offsets)
    parts = list(zip(offsets[:-1], offsets[1:]))
    by_offsets = ["--segments", str(folder / "offsets.npy")]
    for dtype in ["u1", "i4", "u8"]:
        array = random_array(dtype, 100_003)
        expected = numpy.array([array[a:b].sum() for a, b in parts])
        compare(folder, f"reduce sum {dtype} of segments", "reduce", array, by_offsets, same(expected))
    array = random_array("f4", 100_003)
    expected = numpy.array([array[a:b].max(initial=-numpy.inf) for a, b in parts], "f4")
    options = [*by_offsets, "--op", "max"]
    compare(folder, "reduce max f4 of segments", "reduce", array, options, same(expected))
    for dtype, wide in [("i4", "f8"), ("u1", "u1"), ("u4", "i8")]:
        array = random_array(dtype, 100_003)
        options = ["--as", {"f8": "f64", "u1": "u8", "i8": "i64"}[wide]]
        expected = same(numpy.array(array.sum(dtype=wide)))
        compare(folder, f"reduce sum {dtype} in {wide}", "reduce", array, options, expected)
    for dtype, wide in [("i2", "i8"), ("u1", "u8")]:
        array = random_array(dtype, 100_003)
        options = ["--as", {"i8": "i64", "u8": "u64"}[wide]]
        expected = same(numpy.array([array[a:b].sum(dtype=wide) for a, b in parts], wide))
        compare(folder, f"reduce sum {dtype} in {wide} of segments", "reduce", array, [*options, *by_offsets], expected)
        array = random_array(dtype, (23, 411, 57))
        for axis in range(-1, 2):
            expected = same(array.sum(axis, dtype=wide))
            name = f"reduce sum {dtype} in {wide} along {axis}"
            compare(folder, name, "reduce", array, [*options, "--axis", str(axis)], expected)
    array = random_array("f4", 100_003)
    wide = array.astype("f8")
    compare(folder, "reduce sum f4 in f8", "reduce", array, ["--as", "f64"], near_sum(wide))


def reversed_and_picked(folder):
    for dtype in INTEGERS + FLOATS + ["c8", "c16", "S3"]:
        if dtype[0] in "cS":
            array = random_array("u1", 48 * 1001).view(dtype).reshape(7, -1)
        else:
            array = random_array(dtype, (7, 1003))
        compare(folder, f"reverse {dtype}", "reverse", array, [], same(numpy.ascontiguousarray(numpy.flip(array))))
        indices = RANDOM.integers(0, array.size, (31, 107)).astype(["i8", "u4", "i4", "u8"][len(dtype) % 4])
        numpy.save(folder / f"indices-{dtype}.npy", indices)
        options = ["--indices", str(folder / f"indices-{dtype}.npy")]
        compare(folder, f"gather {dtype}", "gather", array, options, same(numpy.take(array, indices)))
        targets = RANDOM.permutation(array.size).astype(indices.dtype)
        numpy.save(folder / f"targets-{dtype}.npy", targets)
        options = ["--indices", str(folder / f"targets-{dtype}.npy"), "--len", str(array.size + 5)]
        put = numpy.zeros(array.size + 5, array.dtype)
        put[targets] = array.ravel()
        compare(folder, f"scatter {dtype}", "scatter", array, options, same(put))


def orders_and_types(folder):
    """Arrays of any layout and type: Fortran order, the other byte order, no axes or many, and booleans."""
    shapes = [(), (7,), (5, 3), (1, 4, 1), (4, 3, 5, 2), (2,) * 13, (1,) * 30 + (2, 3) + (1,) * 31 + (5,), (3, 0, 2)]
    types = [*INTEGERS, *FLOATS, "c8", "c16", "?", "S3", "U3", "U7", "V17", "M8[ns]", "m8[s]"]
    orders = itertools.cycle([("C", ">"), ("F", "<"), ("F", ">")])
    for dtype, shape in itertools.product(types, shapes):
        size = math.prod(shape)
        if dtype in INTEGERS + FLOATS:
            array = random_array(dtype, shape)
        elif dtype == "?":
            array = RANDOM.integers(0, 2, shape).astype(bool)
        elif dtype[0] == "U":
            array = numpy.array([chr(97 + i % 26) * (i % 7) for i in range(size)], dtype).reshape(shape)
        else:
            width = numpy.dtype(dtype).itemsize
            array = numpy.frombuffer(RANDOM.bytes(max(size, 1) * width), dtype)[:size].reshape(shape)
        array = numpy.asarray(array)
        axes, order = next(orders)
        stored = array.astype(array.dtype.newbyteorder(order), order=axes)
        compare(folder, f"copy {order}{dtype}{shape} in {axes} order", "copy", stored, [], same(array))
    for dtype in ["?", "f2", "i2", "f8"]:
        array = numpy.asfortranarray(random_array("i2", (23, 41)).astype(dtype))
        stored = array.astype(array.dtype.newbyteorder(">"), order="K")
        for axis in (0, 1):
            options = ["--axis", str(axis), "--op", "max"]
            compare(folder, f"max {dtype} along {axis} in Fortran order", "reduce", stored, options, same(array.max(axis)))
        compare(folder, f"sort {dtype} in Fortran order", "sort", stored, [], same(numpy.sort(array, axis=None)))
        turned = same(numpy.ascontiguousarray(array.T))
        compare(folder, f"transpose {dtype} in Fortran order", "transpose", stored, [], turned)
        compare(folder, f"permute {dtype} in Fortran order", "permute", stored, ["--axes", "1,0"], turned)
    truths = RANDOM.integers(0, 2, (31, 17)).astype(bool)
    compare(folder, "sum of truths", "reduce", truths, [], same(numpy.array(truths.sum())))
    compare(folder, "sums of truths along 0", "reduce", truths, ["--axis", "0"], same(truths.sum(0)))
    compare(folder, "scan of truths", "scan", truths.ravel(), [], same(numpy.cumsum(truths)))
    compare(folder, "sort of truths", "sort", truths, [], same(numpy.sort(truths, axis=None)))
    compare(folder, "product of truths", "reduce", truths, ["--op", "product"], same(numpy.array(truths.prod())))
    array = random_array("i4", (2,) * 12)
    for axis in (0, 5, 11):
        options = ["--axis", str(axis)]
        compare(folder, f"sums of 12 axes along {axis}", "reduce", array, options, same(array.sum(axis)))
        compare(folder, f"scan of 12 axes along {axis}", "scan", array, options, same(numpy.cumsum(array, axis)))
    for _ in range(5):
        axes = RANDOM.permutation(array.ndim)
        expected = same(numpy.ascontiguousarray(array.transpose(axes)))
        options = ["--axes", ",".join(map(str, axes))]
        compare(folder, f"permute of 12 axes by {axes}", "permute", array, options, expected)


def other_types(folder):
    """Edges and needles of other types than the array's, and bounds that may not be values of its type."""
    edges = numpy.linspace(-1, 1, 21)
    numpy.save(folder / "linspace.npy", edges)
    for dtype in ["i1", "f2", "f4", "f8"]:
        array = random_array(dtype, 100_003)
        by_edges = ["--edges", str(folder / "linspace.npy")]
        expected = numpy.histogram(array.astype("f8"), edges)[0].astype("u8")
        compare(folder, f"histogram {dtype} by f8", "histogram", array, by_edges, same(expected))
        array.sort()
        needles = ["--needles", str(folder / "linspace.npy")]
        expected = numpy.searchsorted(array.astype("f8"), edges).astype("i8")
        compare(folder, f"search {dtype} by f8", "search", array, needles, same(expected))
    for dtype in ["i1", "u1", "i4", "u8"]:
        array = random_array(dtype, 100_003)
        for bound in ["1.5", "-0.5", "300", "-1e30", "100.0"]:
            expected = same(array[array > float(bound)])
            compare(folder, f"select {dtype} above {bound}", "select", array, ["--above", bound], expected)
            expected = same(array[array < float(bound)])
            compare(folder, f"select {dtype} below {bound}", "select", array, ["--below", bound], expected)
    array = random_array("u1", 100_003)
    for low, high, bins in [(0, 256, 256), (0, 256, 7), (-10, 300, 31), (0.5, 200.5, 50)]:
        expected = numpy.histogram(array, bins, (low, high))[0].astype("u8")
        options = ["--bins", str(bins), "--range", str(low), str(high), "--closed"]
        compare(folder, f"histogram u1 from {low} to {high} in {bins}", "histogram", array, options, same(expected))
    for dtype in FLOATS:
        array = numpy.full(7, 2, dtype)
        expected = numpy.histogram(array, 4)[0].astype("u8")
        compare(folder, f"histogram of equal {dtype}", "histogram", array, ["--bins", "4"], same(expected))


def archives(folder):
    """Archives of named arrays, which NumPy loads."""
    labels = numpy.sort(RANDOM.integers(0, 9, 100_003, dtype="i4"))
    samples = RANDOM.uniform(-1, 1, 100_003)
    starts = numpy.flatnonzero(numpy.diff(labels, prepend=-1))
    runs = {"values": labels[starts], "lengths": numpy.diff(starts, append=labels.size).astype("u8")}
    order = numpy.argsort(samples, kind="stable")
    counts, edges = numpy.histogram(samples, 8, (-0.75, 0.5))
    outside = numpy.array([(samples < -0.75).sum(), (samples > 0.5).sum(), 0], "u8")
    figures = {"count": samples.size, "nan": 0, "min": samples.min(), "max": samples.max(), "arg_min": samples.argmin()}
    figures |= {"arg_max": samples.argmax(), "sum": math.fsum(samples), "mean": samples.mean(), "variance": samples.var()}
    for family, array, options, expected in [
        ("rle", labels, [], runs),
        ("sort", samples, ["--indices"], {"values": samples[order], "indices": order}),
        ("topk", samples, ["--k", "7", "--smallest", "--sorted"], {"values": samples[order[:7]], "indices": order[:7]}),
        ("histogram", samples, ["--bins", "8", "--range", "-0.75", "0.5", "--closed"], {"counts": counts.astype("u8"), "edges": edges, "outside": outside}),
        ("statistics", samples, [], figures),
        ("scan", labels, [], {"arr_0": labels.cumsum()}),
    ]:
        path = folder / "named.npy"
        numpy.save(path, array)
        for device in DEVICES:
            code, text = run(family, path, path.with_suffix(".npz"), device, *options)
            if code != 0:
                record(f"archive of {family} on {device}", False, f"exit code {code}: {text}")
                continue
            with numpy.load(path.with_suffix(".npz")) as found:
                good = list(found) == list(expected) and all(numpy.allclose(found[name], expected[name], 1e-12, 1e-12) for name in expected)
                record(f"archive of {family} on {device}", good, str({name: found[name] for name in found}))


def bad_files(folder):
    """A file that cannot be used is an error with a message, not a crash."""
    path, output = folder / "in.npy", folder / "out.npy"

    def refused(name, family="transpose", *options):
        for device in DEVICES:
            code, text = run(family, path, output, device, *options)
            good = code in (1, 2) and len(text.splitlines()) == 1 and "panicked" not in text
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
    numpy.save(path, numpy.zeros(3, [("a", "f4"), ("b", "i2")]))
    refused("records")
    numpy.save(path, random_array("f4", (3, 5)))
    refused("an axis too many", "reduce", "--axis", "2")
    refused("an axis twice", "permute", "--axes", "1,1")
    path.unlink()
    refused("no file")


def main():
    with tempfile.TemporaryDirectory() as folder:
        figures = (reduce, more_reductions, along_an_axis, statistics, statistics_along_an_axis)
        figures = (*figures, counts_of, segments_and_wide_sums)
        for family in (*figures, scan, sort, merge, top_k, runs, quantiles, random, transpose, permute, histogram, ranges, copy, reversed_and_picked, orders_and_types, other_types):
            family(Path(folder))
        judge()
        archives(Path(folder))
        bad_files(Path(folder))
    print(f"numpy: {counts['passed']} passed, {counts['failed']} failed")
    sys.exit(1 if counts["failed"] else 0)


main()
