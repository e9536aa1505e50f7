//! Cases and benchmark cases of histograms of channels.

use crate::{
    Buffer, Device, Element, ElementType, Source,
    bench::Bench,
    check::{Case, Failure, Level, data::Data, guarded, poison, same},
    histogram::{Accumulate, Bins, Counter, bins::OUTSIDE},
    ladder::Climb,
    tuning::Tuned,
    with_element,
};

/// Kinds of bins of the channels.
#[derive(Clone, Copy, Debug)]
enum Kinds {
    Even,
    /// Even bins and edges alternate.
    Mixed,
}

fn layout<T: Element>(kinds: Kinds, active: usize, bins: usize) -> crate::Result<Vec<Bins<T>>> {
    let channel = |c: usize| {
        let bins = bins + 3 * c;
        let (low, high) = if T::TYPE.is_float() { (-0.8, 0.9 - 0.1 * c as f64) } else { (5.0 + c as f64, 110.0) };
        let even = Bins::even(T::from_f64(low), T::from_f64(high), bins)?;
        match kinds {
            Kinds::Mixed if c % 2 == 1 => {
                let edge = |k: usize| T::from_f64(low + (high - low) * (k as f64 / bins as f64).powi(2));
                Bins::edges(&(0..=bins).map(edge).collect::<Vec<T>>())
            }
            _ => Ok(if c.is_multiple_of(2) { even } else { even.closed() }),
        }
    };
    (0..active).map(channel).collect()
}

fn check<T: Element, C: Counter>(
    device: &Device,
    pixels: usize,
    offset: usize,
    channels: usize,
    bins: &[Bins<T>],
    accumulate: Accumulate,
) -> Result<(), Failure> {
    let all = Data::Random.generate::<T>(pixels * channels + offset, pixels as u64);
    let on_device = device.upload(&all)?;
    let total = bins.iter().map(Bins::len).sum();
    let mut outside = Vec::new();
    let counts = guarded::<C>(device, total, offset, |counts| {
        outside = guarded::<u64>(device, OUTSIDE * bins.len(), offset, |outside| {
            let view = on_device.view(offset..)?;
            Ok(device.histogram_into(view.channels(channels), bins, counts, outside, accumulate)?)
        })?;
        Ok(())
    })?;
    // The outputs held poison before. Each channel alone is a plain histogram.
    let before = if accumulate == Accumulate::Add { poison::<u64>() } else { 0 };
    let (mut want, mut want_outside) = (Vec::new(), Vec::new());
    for (c, bins) in bins.iter().enumerate() {
        let samples: Vec<T> = all[offset..].iter().skip(c).step_by(channels).copied().collect();
        let found = Device::cpu().histogram(&samples, bins)?;
        want.extend(found.counts.iter().map(|&count| C::from_bits_lossy(before).add(C::from_bits_lossy(count))));
        let outside = [found.outside.below, found.outside.above, found.outside.nan];
        want_outside.extend(outside.map(|count| before.wrapping_add(count)));
    }
    same(&counts, &want, "counts")?;
    same(&outside, &want_outside, "outside")
}

fn type_cases<T: Element>(level: Level, shapes: &'static [(Kinds, usize, usize, usize)], cases: &mut Vec<Case>) {
    let sizes: &[usize] = match level {
        Level::Tiny => &[0, 150],
        Level::Quick => &[0, 1, 2003],
        Level::Full => &[0, 1, 2, 255, 1025, 20_011, 100_003],
    };
    for &(kinds, channels, active, bins) in shapes {
        for &pixels in sizes {
            // An offset of `channels` samples keeps vectors of pixels aligned; an offset of 1 does not.
            for offset in if pixels > 2 { vec![0, channels, 1] } else { vec![0] } {
                let form = if matches!(kinds, Kinds::Even) { "channels even" } else { "channels mixed" };
                let text = format!("{pixels} pixels at {offset}, {active} of {channels} channels, {bins} bins");
                let wide = (pixels + offset) % 2 == 0;
                cases.push(Case::new(form, T::TYPE, text, "random", pixels * channels, move |device| {
                    let bins = layout::<T>(kinds, active, bins)?;
                    if wide {
                        check::<T, u64>(device, pixels, offset, channels, &bins, Accumulate::Add)
                    } else {
                        check::<T, u32>(device, pixels, offset, channels, &bins, Accumulate::Overwrite)
                    }
                }));
            }
        }
    }
}

pub(crate) fn cases(level: Level, cases: &mut Vec<Case>) {
    use Kinds::{Even, Mixed};
    type_cases::<u8>(level, &[(Even, 4, 3, 60), (Even, 3, 3, 60)], cases);
    if level >= Level::Quick {
        type_cases::<f32>(level, &[(Mixed, 2, 2, 30), (Even, 2, 2, 30_000)], cases);
    }
    if level == Level::Full {
        for element in ElementType::ALL {
            with_element!(element, T => {
                const SHAPES: &[(Kinds, usize, usize, usize)] =
                    &[(Even, 1, 1, 7), (Even, 2, 1, 40), (Mixed, 3, 3, 20), (Even, 4, 4, 50), (Mixed, 4, 2, 9)];
                type_cases::<T>(level, SHAPES, cases);
            });
        }
    }
}

/// State of a benchmark case on pixels.
struct Measured<T: Element> {
    device: Device,
    x: Buffer<T>,
    bins: Vec<Bins<T>>,
    counts: Buffer<u32>,
    outside: Buffer<u64>,
}

fn bench<T: Element>(channels: usize) -> Bench {
    let form = format!("channels, 3 of {channels}, 256 bins each");
    let bytes = |n: usize| (n * size_of::<T>() + 3 * 256 * size_of::<u32>()) as u64;
    Bench::new(form, T::TYPE, bytes, move |device, n| {
        let n = n / channels * channels;
        let (low, high) = if T::TYPE.is_float() { (-1.0, 1.0) } else { (0.0, 255.0) };
        let state = Measured::<T> {
            device: device.clone(),
            x: device.upload(&Data::Random.generate::<T>(n, 1))?,
            bins: vec![Bins::even(T::from_f64(low), T::from_f64(high), 256)?.closed(); 3],
            counts: device.zeroed(3 * 256)?,
            outside: device.zeroed(3 * OUTSIDE)?,
        };
        let run = move |this: &mut Measured<T>| {
            let Measured { device, x, bins, counts, outside } = this;
            device.histogram_into(x.channels(channels), bins, counts, outside, Accumulate::Overwrite)
        };
        let verify = move |this: &mut Measured<T>| {
            let want = Device::cpu().histogram(this.x.to_vec()?.channels(channels), &this.bins)?;
            let want: Vec<u32> = want.iter().flat_map(|found| &found.counts).map(|&count| count as u32).collect();
            same(&this.counts.to_vec()?, &want, "counts")
        };
        Ok(Climb::new(state, |this| this.counts.fill(poison()), run, verify))
    })
}

pub(crate) fn benches(benches: &mut Vec<Bench>) {
    benches.extend([bench::<u8>(4), bench::<u8>(3), bench::<f32>(4)]);
}

pub(crate) fn programs(caps: &Tuned, programs: &mut Vec<crate::ProgramSpec>) {
    for element in ElementType::ALL {
        for (map, channels, active) in [(0, 4, 4), (1, 3, 3), (2, 4, 3), (3, 2, 1)] {
            if element.is_float() == (map < 2) && map != 3 {
                continue;
            }
            for bins in [256, 70_000] {
                let types = (element, ElementType::U32);
                let plan = super::gpu::plan(1 << 26, types, map, channels, &vec![bins; active], true, caps);
                programs.extend(plan.into_iter().map(|plan| plan.count));
            }
        }
    }
}
