"""What the NumPy twins share: the random numbers of examples/common/mod.rs, and the time of a call."""

import time

import numpy


def numbers(seed, n):
    """The first n numbers of the generator SplitMix64."""
    z = numpy.uint64(seed) + numpy.arange(1, n + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return z ^ (z >> numpy.uint64(31))


def timed(f):
    """The result of f. Prints the time of its second call."""
    f()
    start = time.perf_counter()
    result = f()
    print(f"time: NumPy {(time.perf_counter() - start) * 1e3:.1f} ms")
    return result


def shown(values, digits=0):
    """A list as Rust prints it."""
    return "[" + ", ".join(f"{value:.{digits}f}" for value in values) + "]"
