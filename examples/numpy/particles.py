import numpy
from common import numbers, shown, timed

PARTICLES = 200_000
CELLS = 64 * 64
PARTICLE = numpy.dtype([("position", numpy.float32, 2), ("velocity", numpy.float32, 2)])


def cells(particles):
    x, y = particles["position"].T
    cells = (y * 64).astype(numpy.uint32) * 64 + (x * 64).astype(numpy.uint32)
    order = numpy.argsort(cells, kind="stable")
    offsets = numpy.searchsorted(cells[order], numpy.arange(CELLS + 1))
    counts = numpy.diff(offsets)
    velocities = [numpy.bincount(cells, v, CELLS) / counts for v in particles["velocity"].T]
    return particles[order], offsets, numpy.float32(velocities)


number = (numbers(1, 4 * PARTICLES) >> 40).astype(numpy.float32) / 16_777_216
particles = (number.reshape(PARTICLES, 4) - numpy.float32([0, 0, 0.5, 0.5])).view(PARTICLE)[:, 0]
particles, offsets, velocities = timed(lambda: cells(particles))
print(f"offsets: {shown(offsets[1:9])}")
print(f"first position: {shown(particles['position'][0], 7)}")
print(f"mean velocities: {shown(velocities[0][:4], 6)} {shown(velocities[1][:4], 6)}")
