import numpy
from common import numbers, shown, timed

SAMPLES = 300_000
BINS = 32


def spectrum(energies, weights):
    # Without the conversion, NumPy rounds the sums of f32 weights after each block.
    weights = weights.astype(numpy.float64)
    sums, _ = numpy.histogram(energies, BINS, (0, 1), weights=weights)
    return sums.astype(numpy.float32), numpy.float32(weights[energies >= 1].sum())


energies = (numbers(1, SAMPLES) >> 40).astype(numpy.float32) / numpy.float32(15e6)
weights = (numbers(2, SAMPLES) >> 40).astype(numpy.float32) / numpy.float32(16_777_216)
sums, above = timed(lambda: spectrum(energies, weights))
print(f"sums: {shown(sums[:5], 6)}, above {above:.6f}")
