import numpy
from common import numbers, shown, timed

SHAPE = (60, 50, 40)


def statistics(matrix):
    means = matrix.mean(axis=0, dtype=numpy.float64)
    variances = matrix.var(axis=0, dtype=numpy.float64)
    smallest = matrix.min(axis=0)
    largest = matrix.max(axis=0)
    return means, variances, smallest, largest


def layers(volume):
    return volume.sum(axis=(0, 2), dtype=numpy.uint64)


matrix = ((numbers(1, 10_000 * 300) >> 40).astype(numpy.float32) / 16_777_216).reshape(10_000, 300)
means, variances, smallest, largest = timed(lambda: statistics(matrix))
print(f"means: {shown(means[:5], 4)}")
print(f"variances: {shown(variances[:5], 4)}")
print(f"smallest: {shown(smallest[:5], 7)}")
print(f"largest: {shown(largest[:5], 7)}")

volume = (numbers(2, 60 * 50 * 40) >> 48).astype(numpy.uint16).reshape(SHAPE)
print(f"sums: {shown(timed(lambda: layers(volume))[:5])}")
