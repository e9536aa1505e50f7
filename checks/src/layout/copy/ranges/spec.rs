//! Cases and benchmark cases of copies of many ranges.

use std::ops::Range;

use crate::{
    Device, ElementType, Source,
    bench::Bench,
    check::{
        Case, Failure, Level,
        data::{Rng, random_bits},
        everywhere, guarded, poison, same_bytes,
    },
    ladder::Climb,
    layout::copy::shared::Plain,
};
use crate::{ProgramSpec, tuning::Tuned};

/// Pairs of a range and its destination.
type Ranges = Vec<(Range<usize>, usize)>;

fn below(rng: &mut Rng, bound: usize) -> usize {
    rng.below(bound as u64) as usize
}

/// `count` ranges of up to `longest` elements in any order, and the length of the output. Gaps of up to 20 elements lie
/// between destinations. Sources overlap.
fn ranges(count: usize, longest: usize, input: usize) -> (Ranges, usize) {
    let mut rng = Rng::new((count + longest) as u64);
    let (mut ranges, mut end) = (Vec::with_capacity(count), 0);
    for i in 0..count {
        // Every third range is short, and some are empty.
        let most = if i % 3 == 0 { longest.min(40) } else { longest };
        let len = below(&mut rng, most + 1);
        let from = below(&mut rng, input - len + 1);
        let to = end + below(&mut rng, 21);
        ranges.push((from..from + len, to));
        end = to + len;
    }
    for i in (1..count).rev() {
        ranges.swap(i, below(&mut rng, i + 1));
    }
    (ranges, end + 5)
}

fn check<T: Plain>(device: &Device, count: usize, longest: usize, offset: usize) -> Result<(), Failure> {
    let all: Vec<T> = random_bits(offset + longest + 100, 1);
    let (on_device, input) = (device.upload(&all)?, &all[offset..]);
    let (ranges, len) = ranges(count, longest, input.len());
    let got = guarded(device, len, offset, |out| Ok(device.copy(on_device.view(offset..)?.ranges(&ranges), out)?))?;
    let mut want: Vec<T> = vec![poison(); len];
    for (from, to) in &ranges {
        for (i, x) in input[from.clone()].iter().enumerate() {
            want[to + i] = *x;
        }
    }
    same_bytes(&got, &want, "copies")
}

fn check_host(device: &Device) -> Result<(), Failure> {
    let mut out = [9u32; 6];
    device.copy([1u32, 2, 3].ranges(&[(1..3, 4), (0..1, 1)]), &mut out)?;
    same_bytes(&out, &[9, 1, 9, 9, 2, 3], "copies")?;
    device.copy([1u32, 2, 3].ranges(&[]), &mut out)?;
    let overlap = device.copy([1u32, 2, 3].ranges(&[(0..2, 0), (1..3, 1)]), &mut out);
    match overlap {
        Err(error)
            if error.to_string()
                == "the destination of 2 elements from index 0 overlaps the next one, from index 1" => {}
        other => return Err(Failure::Mismatch(format!("an overlap gave {other:?}"))),
    }
    same_bytes(&out, &[9, 1, 9, 9, 2, 3], "after a refusal")
}

fn cases_of<T: Plain>(level: Level, name: &str, element: ElementType, cases: &mut Vec<Case>) {
    let shapes: &[(usize, usize)] = match level {
        Level::Tiny => &[(1, 9000), (20, 300)],
        Level::Quick => &[(1, 100_000), (30, 3000), (300, 50)],
        Level::Full => &[(0, 1), (1, 10), (1, 300_000), (7, 70_000), (100, 5000), (3000, 50), (500, 1000)],
    };
    for &(count, longest) in shapes {
        for offset in [0, 3] {
            let shape = format!("{count} of up to {longest} at {offset}");
            let n = count * longest;
            cases.push(Case::new(format!("copy ranges {name}"), element, shape, "random", n, move |device| {
                everywhere(check::<T>(device, count, longest, offset))
            }));
        }
    }
}

pub(in crate::layout::copy) fn cases(level: Level) -> Vec<Case> {
    let mut cases = Vec::new();
    cases_of::<u8>(level, "1 byte", ElementType::U8, &mut cases);
    cases_of::<u32>(level, "4 bytes", ElementType::U32, &mut cases);
    if level >= Level::Quick {
        cases_of::<[u8; 3]>(level, "3 bytes", ElementType::U8, &mut cases);
        cases_of::<u128>(level, "16 bytes", ElementType::U64, &mut cases);
    }
    cases.push(Case::new("copy ranges on the host", ElementType::U32, "n = 3", "by hand", 3, check_host));
    cases
}

/// Ranges of 0 to 128 KiB, 64 KiB on average. Destinations are contiguous, and sources are in reverse order.
fn bench_ranges<T: Plain>(element: ElementType) -> Bench {
    Bench::new(
        "ranges of 64 KiB",
        element,
        |n| 2 * (n * size_of::<T>()) as u64,
        |device, n| {
            let mut rng = Rng::new(n as u64);
            let mean = (64 << 10) / size_of::<T>();
            let (mut ranges, mut end) = (Ranges::new(), 0);
            while end < n {
                let len = below(&mut rng, 2 * mean).min(n - end);
                ranges.push((n - end - len..n - end, end));
                end += len;
            }
            let state = (device.clone(), device.upload(&random_bits::<T>(n, 1))?, device.zeroed::<T>(n)?, ranges);
            Ok(Climb::new(
                state,
                |(_, _, to, _)| to.fill(poison()),
                |(device, from, to, ranges)| device.copy(from.ranges(ranges), to),
                |(_, from, to, ranges)| {
                    let from = from.to_vec()?;
                    let want: Vec<T> = ranges.iter().flat_map(|(range, _)| from[range.clone()].to_vec()).collect();
                    same_bytes(&to.to_vec()?, &want, "copies")
                },
            ))
        },
    )
}

pub(in crate::layout::copy) fn benches() -> Vec<Bench> {
    vec![bench_ranges::<u32>(ElementType::U32), bench_ranges::<u8>(ElementType::U8)]
}

pub(in crate::layout::copy) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    vec![super::gpu::plan(caps).program]
}
