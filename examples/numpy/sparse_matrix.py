import numpy
from common import numbers, shown, timed

ROWS = 30_000


def product(lengths, columns, elements, vector):
    products = elements.astype(numpy.float64) * vector[columns]
    rows = numpy.repeat(numpy.arange(ROWS), lengths)
    return numpy.bincount(rows, products, ROWS).astype(numpy.float32)


def fractions(seed, n):
    return (numbers(seed, n) >> 48).astype(numpy.float32) / 65_536 - numpy.float32(0.5)


lengths = (numbers(1, ROWS) >> 59).astype(numpy.int64)
n = lengths.sum()
columns = numbers(2, n) % ROWS
elements, vector = fractions(3, n), fractions(4, ROWS)
found = timed(lambda: product(lengths, columns, elements, vector))
print(f"{n} elements, the largest row has the sum {found.max():.6f}")
print(f"product: {shown(found[:5], 6)}")
