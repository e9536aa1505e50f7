from concurrent.futures import ThreadPoolExecutor

import numpy
from common import numbers, shown, timed

THREADS = 4
SAMPLES = 400_000


def medians(samples):
    def find(part):
        # Without the conversion, the median of f32 is an f32.
        return numpy.median(part.astype(numpy.float64)), part.sum(dtype=numpy.float64)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(find, numpy.split(samples, THREADS)))


samples = (numbers(1, SAMPLES) >> 40).astype(numpy.float32) / 16_777_216
parts = timed(lambda: medians(samples))
total = numpy.float32(sum(part for _, part in parts))
print(f"medians: {shown([median for median, _ in parts], 7)}, total {total:.2f}")
