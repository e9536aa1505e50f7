//! Shared parts of the specs of histograms.

use super::{
    Accumulate, Bins, Counter,
    bins::{OUTSIDE, to_i128},
};
use crate::{
    Buffer, Device, DeviceClass, Element, Tuning,
    bench::Bench,
    check::{Failure, Level, data::Rng, guarded, keys::bits, poison, same},
    ladder::Climb,
};

/// Samples of Zipf's law: bin `k` with a probability proportional to `1 / (k + 1)^1.1`, by rejection-inversion
/// (Hörmann, Derflinger 1996).
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    bins: f64,
    low: f64,
    high: f64,
}

impl Zipf {
    const S: f64 = 1.1;

    pub(super) fn new(bins: usize) -> Self {
        let bins = bins as f64;
        Self { bins, low: Self::integral(1.5) - 1.0, high: Self::integral(bins + 0.5) }
    }

    /// An integral of `x^-S`.
    fn integral(x: f64) -> f64 {
        -x.powf(1.0 - Self::S) / (Self::S - 1.0)
    }

    fn inverse(y: f64) -> f64 {
        (-y * (Self::S - 1.0)).powf(1.0 / (1.0 - Self::S))
    }

    pub(super) fn sample(&self, rng: &mut Rng) -> usize {
        loop {
            let part = (rng.next() >> 11) as f64 / (1u64 << 53) as f64;
            let y = self.high + part * (self.low - self.high);
            let k = Self::inverse(y).round().clamp(1.0, self.bins);
            if y >= Self::integral(k + 0.5) - k.powf(-Self::S) {
                return k as usize - 1;
            }
        }
    }
}

/// `value` as an element of the integer type `T`.
pub(super) fn from_i128<T: Element>(value: i128) -> T {
    T::from_bits_lossy(value as u64)
}

/// The value that is `by` representable values away from `x`.
pub(super) fn neighbour<T: Element>(x: T, by: i32) -> T {
    if !T::TYPE.is_float() {
        return from_i128(to_i128(x) + i128::from(by));
    }
    // For floats, a positive step goes away from zero and a negative one goes towards it. From zero, a negative step
    // gives the smallest subnormal.
    let word = bits(x);
    let moved = if by < 0 && x == T::ZERO { 1 } else { word.wrapping_add(i64::from(by) as u64) };
    T::from_bits_lossy(moved)
}

/// Checks a histogram of `all[offset..]`. `obvious` returns the slot of a sample by definition.
pub(super) fn check<T: Element, C: Counter>(
    device: &Device,
    all: &[T],
    offset: usize,
    layout: &Bins<T>,
    obvious: &dyn Fn(T) -> usize,
    accumulate: Accumulate,
) -> Result<(), Failure> {
    let (input, bins) = (&all[offset..], layout.len());
    let on_device = device.upload(all)?;
    let mut outside = Vec::new();
    let counts = guarded::<C>(device, bins, offset, |counts| {
        outside = guarded::<u64>(device, OUTSIDE, offset, |outside| {
            let view = on_device.view(offset..)?;
            Ok(device.histogram_into(view, layout, counts, outside, accumulate)?)
        })?;
        Ok(())
    })?;
    // The outputs held poison before.
    let before = if accumulate == Accumulate::Add { 0xA5A5_A5A5_A5A5_A5A5u64 } else { 0 };
    let mut want = slots_of(device.is_cpu(), input, layout, obvious)?;
    want.iter_mut().for_each(|count| *count = count.wrapping_add(before));
    let (want, want_outside) = want.split_at_mut(bins);
    if size_of::<C>() == 4 {
        want.iter_mut().for_each(|count| *count = u64::from(*count as u32));
    }
    let mut wide = Vec::with_capacity(bins);
    for count in counts {
        wide.push(bits(count));
    }
    same(&wide, want, "counts")?;
    same(&outside, want_outside, "outside")
}

/// The number of samples in each slot. A device is checked against the CPU backend, and the CPU backend against
/// `obvious`.
fn slots_of<T: Element>(
    on_the_cpu: bool,
    input: &[T],
    layout: &Bins<T>,
    obvious: &dyn Fn(T) -> usize,
) -> crate::Result<Vec<u64>> {
    let bins = layout.len();
    let mut slots = vec![0u64; bins + OUTSIDE];
    if on_the_cpu {
        for &x in input {
            slots[obvious(x)] += 1;
        }
    } else {
        let found = Device::cpu().histogram(input, layout)?;
        slots[..bins].copy_from_slice(&found.counts);
        slots[bins..].copy_from_slice(&[found.outside.below, found.outside.above, found.outside.nan]);
    }
    Ok(slots)
}

/// Number of bins for which a GPU with little local memory partitions the samples by ranges of bins.
pub(super) const RANGED_BINS: usize = 9000;

/// Tuning of a GPU with little local memory.
pub(super) fn small_gpu() -> Tuning {
    Tuning::default().class(DeviceClass::Gpu).local_bytes(4096)
}

/// Numbers of samples. If there are fewer samples than a quarter of the bins, devices count them in global memory.
/// Otherwise devices partition them by ranges of bins.
pub(super) fn ranged_sizes(level: Level) -> &'static [usize] {
    match level {
        Level::Tiny => &[300, 6_011],
        Level::Quick => &[300, 6_011, 40_009],
        Level::Full => &[0, 1, 300, 2_249, 2_250, 6_011, 40_009, 262_147, 1_000_003],
    }
}

/// State of a benchmark case.
struct Measured<T: Element> {
    device: Device,
    x: Buffer<T>,
    layout: Bins<T>,
    counts: Buffer<u32>,
    outside: Buffer<u64>,
}

pub(super) fn bench_of<T: Element>(
    form: String,
    bins: usize,
    offset: usize,
    samples: impl Fn(usize) -> Vec<T> + 'static,
    layout: impl Fn() -> crate::Result<Bins<T>> + 'static,
) -> Bench {
    let bytes = move |n: usize| (n * size_of::<T>() + bins * size_of::<u32>()) as u64;
    Bench::new(form, T::TYPE, bytes, move |device, n| {
        let state = Measured {
            device: device.clone(),
            x: device.upload(&samples(n + offset))?,
            layout: layout()?,
            counts: device.zeroed(bins)?,
            outside: device.zeroed(OUTSIDE)?,
        };
        let run = move |this: &mut Measured<T>| {
            let Measured { device, x, layout, counts, outside } = this;
            device.histogram_into(x.view(offset..)?, layout, counts, outside, Accumulate::Overwrite)
        };
        let verify = move |this: &mut Measured<T>| {
            let want = Device::cpu().histogram(&this.x.to_vec()?[offset..], &this.layout)?;
            let want: Vec<u32> = want.counts.iter().map(|&count| count as u32).collect();
            same(&this.counts.to_vec()?, &want, "counts")
        };
        Ok(Climb::new(state, |this| this.counts.fill(poison()), run, verify))
    })
}
