import sys

import numpy
from common import numbers, shown, timed

LINES = 500_000


def slowest(services, times, threshold):
    slow = times >= threshold
    services, group = numpy.unique(services[slow], return_inverse=True)
    sums = numpy.bincount(group, times[slow])
    largest = numpy.argsort(-sums, kind="stable")[:10]
    return services[largest], sums[largest]


def product(x):
    return (x >> 52) * (x >> 40 & 4095)


threshold = int(sys.argv[1]) if len(sys.argv) > 1 else 500
services = (product(numbers(1, LINES)) >> 12).astype(numpy.uint32) * numpy.uint32(2_654_435_769)
times = (product(numbers(2, LINES)) >> 14).astype(numpy.uint32)
services, sums = timed(lambda: slowest(services, times, threshold))
print(f"services: {shown(services)}")
print(f"sums: {shown(sums)}")
