//! Cases and benchmark cases of gather and scatter.

use crate::{
    Device, ElementType, Offset,
    bench::Bench,
    check::{
        Case, Failure, Level,
        data::{Rng, random_bits, random_by},
        everywhere, guarded, poison, same_bytes,
    },
    ladder::Climb,
    layout::copy::shared::Plain,
    parallel,
};
use crate::{ProgramSpec, tuning::Tuned};

/// Data set of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Ascending, with repeats.
    Sorted,
    /// Anywhere in range.
    Random,
    /// In the second half, every third one is out of range, by one or by far.
    Wild,
}

impl Order {
    const ALL: [Self; 3] = [Self::Sorted, Self::Random, Self::Wild];

    fn name(self) -> &'static str {
        match self {
            Self::Sorted => "sorted",
            Self::Random => "random",
            Self::Wild => "out of range",
        }
    }

    /// `n` indices into a table of `len` elements. If the table is empty, all are out of range.
    fn indices<I: Offset>(self, n: usize, len: usize) -> Vec<I> {
        let mut rng = Rng::new((n + len) as u64);
        let mut all: Vec<u64> = (0..n).map(|_| rng.below(len.max(1) as u64)).collect();
        match self {
            Self::Sorted => all.sort_unstable(),
            Self::Random => {}
            Self::Wild => {
                for (i, x) in all.iter_mut().enumerate().skip(n / 2).step_by(3) {
                    *x = if i % 2 == 0 { len as u64 } else { u64::MAX };
                }
            }
        }
        all.into_iter().map(I::from_bits_lossy).collect()
    }
}

/// The index into a table of `len` elements, or `None` if it is out of range.
fn named<I: Offset>(index: I, len: usize) -> Option<usize> {
    usize::try_from(index.to_i128()).ok().filter(|&at| at < len)
}

/// Compares `outside` with its definition: the position of the first index out of range.
fn check_outside<I: Offset>(outside: &[u64], index: &[I], len: usize) -> Result<(), Failure> {
    let first = index.iter().position(|&i| named(i, len).is_none());
    same_bytes(outside, &[first.map_or(u64::MAX, |first| first as u64)], "outside")
}

fn check_gather<T: Plain, I: Offset>(
    device: &Device,
    n: usize,
    len: usize,
    offset: usize,
    order: Order,
) -> Result<(), Failure> {
    let table: Vec<T> = random_bits(offset + len, 1);
    let index = [vec![I::HIGHEST; offset], order.indices(n, len)].concat();
    let (on_device, by) = (device.upload(&table)?, device.upload(&index)?);
    let (table, index) = (&table[offset..], &index[offset..]);
    let mut outside = Vec::new();
    let got = guarded(device, n, offset, |out| {
        outside = guarded(device, 1, offset, |outside| {
            Ok(device.gather_into(on_device.view(offset..)?, by.view(offset..)?, out, outside)?)
        })?;
        Ok(())
    })?;
    let want: Vec<T> = index.iter().map(|&i| named(i, len).map_or(poison(), |at| table[at])).collect();
    same_bytes(&got, &want, "gather")?;
    check_outside(&outside, index, len)
}

fn check_scatter<T: Plain, I: Offset>(
    device: &Device,
    n: usize,
    len: usize,
    offset: usize,
    order: Order,
) -> Result<(), Failure> {
    let line: Vec<T> = random_bits(offset + n, 1);
    let mut index = [vec![I::HIGHEST; offset], order.indices(n, len)].concat();
    let mut taken = vec![false; len];
    for i in &mut index[offset..] {
        // Each index in range occurs once. A repeated one is replaced by an index out of range.
        match named(*i, len) {
            Some(at) if taken[at] => *i = I::HIGHEST,
            Some(at) => taken[at] = true,
            None => {}
        }
    }
    let (on_device, by) = (device.upload(&line)?, device.upload(&index)?);
    let (line, index) = (&line[offset..], &index[offset..]);
    let mut outside = Vec::new();
    let got = guarded(device, len, offset, |out| {
        outside = guarded(device, 1, offset, |outside| {
            Ok(device.scatter_into(on_device.view(offset..)?, by.view(offset..)?, out, outside)?)
        })?;
        Ok(())
    })?;
    let mut want: Vec<T> = vec![poison(); len];
    for (&i, x) in index.iter().zip(line) {
        if let Some(at) = named(i, len) {
            want[at] = *x;
        }
    }
    same_bytes(&got, &want, "scatter")?;
    check_outside(&outside, index, len)
}

/// Checks equal indices: each output element is one of the candidates for its index.
fn check_equal(device: &Device, n: usize, len: usize) -> Result<(), Failure> {
    let line: Vec<u32> = (0..n as u32).collect();
    let index: Vec<u32> = Order::Random.indices(n, len);
    let got = device.scatter(&line, &index, len)?.to_vec()?;
    for (at, &x) in got.iter().enumerate() {
        let named = index.contains(&(at as u32));
        let right = if named { index[x as usize] == at as u32 } else { x == 0 };
        if !right {
            return Err(Failure::Mismatch(format!("element {at} is {x}, which is not a candidate for it")));
        }
    }
    Ok(())
}

/// Checks calls on host slices, and refused calls.
fn check_host(device: &Device) -> Result<(), Failure> {
    let (mut out, mut outside) = ([9u16; 3], [7u64]);
    device.scatter_into(&[3u16, 4], &[2u64, 1], &mut out, &mut outside)?;
    same_bytes(&out, &[9, 4, 3], "scatter")?;
    device.gather_into(&[1u16, 2], &[1u32, 0, 1], &mut out, &mut outside)?;
    same_bytes(&out, &[2, 1, 2], "gather")?;
    same_bytes(&outside, &[u64::MAX], "outside")?;
    let refused = |result: crate::Result<()>, text: &str| match result {
        Err(error) if error.to_string() == text => Ok(()),
        other => Err(Failure::Mismatch(format!("{other:?} instead of: {text}"))),
    };
    let wild = device.gather_into(&[5u16, 6], &[0u32, 2, 1], &mut out, &mut outside);
    refused(wild, "index 1 is 2, beyond the 2 elements")?;
    let wild = device.scatter_into(&[7u16, 8], &[1u64, 1 << 40], &mut out, &mut outside);
    refused(wild, "index 1 is 1099511627776, beyond the 3 elements")?;
    same_bytes(&out, &[5, 7, 6], "elements at indices in range")?;
    let by = device.upload(&[0u32, 2, 7])?;
    refused(device.gather(&[1u8, 2], &by).map(drop), "index 1 is 2, beyond the 2 elements")?;
    refused(device.scatter(&[1u8, 2], by.view(1..)?, 7).map(drop), "index 1 is 7, beyond the 7 elements")?;
    refused(device.scatter(&[1u8, 2], &[0u32], 2).map(drop), "a scatter of 2 elements needs 2 indices, got 1")?;
    let short = device.gather_into(&[1u16, 2], &[1u32, 0], &mut out, &mut outside);
    refused(short, "a gather by 2 indices needs an output of 2 elements, got 3")?;
    let none = device.gather_into(&[1u16, 2], &[1u32, 0, 0], &mut out, &mut [0u64; 0]);
    refused(none, "the output for the first index out of range needs 1 element, got 0")?;
    refused(device.gather(&[()], &[0u32]).map(drop), "elements must have at least 1 byte")
}

fn cases_of<T: Plain, I: Offset>(level: Level, name: &str, element: ElementType, cases: &mut Vec<Case>) {
    let sizes: &[(usize, usize)] = match level {
        Level::Tiny => &[(0, 3), (7, 5), (2100, 900)],
        Level::Quick => &[(0, 3), (3, 0), (9, 5), (2100, 900), (40_000, 70_000)],
        Level::Full => &[
            (0, 0),
            (1, 1),
            (3, 0),
            (4, 9),
            (9, 5),
            (1023, 2000),
            (2047, 10),
            (2100, 900),
            (8200, 1 << 20),
            (300_001, 70_000),
        ],
    };
    for &(n, len) in sizes {
        for order in Order::ALL {
            let offset = if order == Order::Random { 0 } else { n % 5 + 1 };
            let shape = format!("{n} of {len} at {offset}");
            let form = format!("gather {name}");
            cases.push(Case::new(form, element, shape.clone(), order.name(), n, move |device| {
                everywhere(check_gather::<T, I>(device, n, len, offset, order))
            }));
            if order != Order::Sorted {
                let form = format!("scatter {name}");
                cases.push(Case::new(form, element, shape, order.name(), n, move |device| {
                    everywhere(check_scatter::<T, I>(device, n, len, offset, order))
                }));
            }
        }
    }
}

pub(in crate::layout::copy) fn cases(level: Level) -> Vec<Case> {
    let mut cases = Vec::new();
    cases_of::<u32, u32>(level, "4 bytes by u32", ElementType::U32, &mut cases);
    cases_of::<[u8; 3], u64>(level, "3 bytes by u64", ElementType::U8, &mut cases);
    if level >= Level::Quick {
        cases_of::<u8, u32>(level, "1 byte by u32", ElementType::U8, &mut cases);
        cases_of::<u64, u64>(level, "8 bytes by u64", ElementType::U64, &mut cases);
        cases_of::<u128, u32>(level, "16 bytes by u32", ElementType::U64, &mut cases);
        cases_of::<[u64; 5], u32>(level, "40 bytes by u32", ElementType::U64, &mut cases);
    }
    if level >= Level::Full {
        cases_of::<u8, u64>(level, "1 byte by u64", ElementType::U8, &mut cases);
        cases_of::<u16, u32>(level, "2 bytes by u32", ElementType::U16, &mut cases);
        cases_of::<u16, u64>(level, "2 bytes by u64", ElementType::U16, &mut cases);
        cases_of::<u32, u64>(level, "4 bytes by u64", ElementType::U32, &mut cases);
        cases_of::<u64, u32>(level, "8 bytes by u32", ElementType::U64, &mut cases);
        cases_of::<u128, u64>(level, "16 bytes by u64", ElementType::U64, &mut cases);
        cases_of::<[u8; 3], u32>(level, "3 bytes by u32", ElementType::U8, &mut cases);
        cases_of::<[u16; 3], u32>(level, "6 bytes by u32", ElementType::U16, &mut cases);
        cases_of::<[u32; 3], u64>(level, "12 bytes by u64", ElementType::U32, &mut cases);
    }
    // `Tiny` leaves these cases out: any of several writers may win, and checkers report that as a race.
    if level >= Level::Quick {
        for (n, len) in [(100, 7), (3000, 1000)] {
            let shape = format!("{n} of {len}");
            cases.push(Case::new("scatter, equal indices", ElementType::U32, shape, "random", n, move |device| {
                check_equal(device, n, len)
            }));
        }
    }
    cases.push(Case::new("gather and scatter on the host", ElementType::U16, "n = 3", "by hand", 3, check_host));
    cases
}

/// `n` indices into `n` elements. Each chunk of `block` indices is random within its own range; if there are several
/// chunks, each one is sorted.
fn bench_indices(n: usize, block: usize) -> Vec<u32> {
    let mut index = random_by(n, n as u64, |i, rng| {
        let first = i / block * block;
        (first as u64 + rng.below(block.min(n - first) as u64)) as u32
    });
    if block < n {
        parallel::chunks_mut(&mut index, block, &|_, part| part.sort_unstable());
    }
    index
}

fn bench_gather<T: Plain>(form: &str, element: ElementType, block: usize) -> Bench {
    Bench::new(
        form,
        element,
        |n| (n * (4 + 2 * size_of::<T>())) as u64,
        move |device, n| {
            let index = device.upload(&bench_indices(n, block.min(n)))?;
            let from = device.upload(&random_bits::<T>(n, n as u64))?;
            let state = (device.clone(), from, index, device.zeroed::<T>(n)?, device.zeroed::<u64>(1)?);
            Ok(Climb::new(
                state,
                |(_, _, _, out, _)| out.fill(poison()),
                |(device, from, index, out, outside)| device.gather_into(&*from, &*index, out, outside),
                |(_, from, index, out, outside)| {
                    let from = from.to_vec()?;
                    let want: Vec<T> = index.to_vec()?.into_iter().map(|i| from[i as usize]).collect();
                    same_bytes(&out.to_vec()?, &want, "gather")?;
                    same_bytes(&outside.to_vec()?, &[u64::MAX], "outside")
                },
            ))
        },
    )
}

/// Scatters by a permutation within every 64 elements. Each index occurs once, and no two neighbours stay together.
fn bench_scatter(form: &str) -> Bench {
    Bench::new(
        form,
        ElementType::U32,
        |n| 12 * n as u64,
        |device, n| {
            let to = |i: usize| if (i | 63) < n { (i & !63) | ((i * 37 + 11) & 63) } else { i };
            let index: Vec<u32> = (0..n).map(|i| to(i) as u32).collect();
            let state = (device.clone(), device.upload(&index)?, device.zeroed::<u32>(n)?, device.zeroed::<u64>(1)?);
            Ok(Climb::new(
                state,
                |(_, _, out, _)| out.fill(poison()),
                |(device, index, out, outside)| device.scatter_into(&*index, &*index, out, outside),
                |(_, _, out, outside)| {
                    let want: Vec<u32> = (0..out.len() as u32).collect();
                    same_bytes(&out.to_vec()?, &want, "scatter")?;
                    same_bytes(&outside.to_vec()?, &[u64::MAX], "outside")
                },
            ))
        },
    )
}

pub(in crate::layout::copy) fn benches() -> Vec<Bench> {
    vec![
        bench_gather::<u32>("gather, sorted", ElementType::U32, 1 << 12),
        bench_gather::<u64>("gather, sorted", ElementType::U64, 1 << 12),
        bench_gather::<u32>("gather, random", ElementType::U32, usize::MAX),
        bench_scatter("scatter, near"),
    ]
}

pub(in crate::layout::copy) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    super::gpu::programs(caps, &[1, 2, 3, 4, 6, 8, 12, 16, 40])
}
