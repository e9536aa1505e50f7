import numpy
from common import numbers, timed

SAMPLES = 500_000
SAMPLE = numpy.dtype([("value", numpy.int32), ("time", numpy.uint32)])


def peaks(samples):
    values = numpy.maximum.accumulate(samples["value"])
    rises = numpy.diff(values, prepend=values[0] - 1) > 0
    indices = numpy.where(rises, numpy.arange(len(samples)), 0)
    return samples[numpy.maximum.accumulate(indices)]


i = numpy.arange(SAMPLES)
samples = numpy.empty(SAMPLES, SAMPLE)
samples["value"] = (numbers(1, SAMPLES) >> 52).astype(numpy.int32) + i // 50 - 4096
samples["time"] = 3 * i + 7
found = timed(lambda: peaks(samples))
rises = (found[1:] != found[:-1]).sum() + 1
print(f"{rises} peaks, the last one {found[-1]['value']} at {found[-1]['time']}")
print(f"sum of the running maximum: {found['value'].sum(dtype=numpy.int64)}")
