//! Spec of copies: cases, programs and benchmark cases.

use super::shared::Plain;
use crate::{
    Device, ElementType, ErrorKind, ProgramSpec,
    bench::Bench,
    check::{Case, Failure, Level, Spec, data::random_bits, everywhere, guarded, poison, same_bytes},
    ladder::Climb,
    tuning::Tuned,
};

/// The primitive's entry in the registry.
pub(crate) struct Copy;

fn obvious<T: Plain>(from: &[T]) -> Vec<T> {
    let mut to = Vec::new();
    for &x in from {
        to.push(x);
    }
    to
}

/// Numbers of elements at the edges of words, groups of words and runs.
fn sizes<T>(level: Level) -> Vec<usize> {
    let of = |bytes: usize| bytes / size_of::<T>();
    let mut sizes = vec![0, 1, 2, 17, of(2048) + 1];
    if level >= Level::Quick {
        sizes.extend([3, 15, 16, 33, of(2048) - 1, of(16 << 10) + 1, of(300 << 10) + 3]);
    }
    if level >= Level::Full {
        sizes.extend([31, 32, 63, 64, 65, of(2048), 513, 1000, 1025, 1026, 1027, 2049, of(64 << 10) + 5, 1_000_003]);
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn check<T: Plain>(device: &Device, n: usize, from: usize, to: usize) -> Result<(), Failure> {
    let all: Vec<T> = random_bits(from + n + 3, n as u64);
    let input = device.upload(&all)?;
    let got = guarded(device, n, to, |out| Ok(device.copy(input.view(from..from + n)?, out)?))?;
    same_bytes(&got, &obvious(&all[from..from + n]), "copy")?;
    same_bytes(&input.to_vec()?, &all, "the input afterwards")
}

fn cases_of<T: Plain>(level: Level, name: &str, element: ElementType, cases: &mut Vec<Case>) {
    let offsets: &[(usize, usize)] = match level {
        Level::Tiny => &[(0, 0), (1, 0)],
        Level::Quick => &[(0, 0), (3, 0), (1, 1)],
        Level::Full => &[(0, 0), (3, 0), (1, 1), (0, 5), (7, 2)],
    };
    for n in sizes::<T>(level) {
        for &(from, to) in offsets {
            let shape = format!("n = {n} from {from} to {to}");
            cases.push(Case::new(format!("copy {name}"), element, shape, "random", n, move |device| {
                everywhere(check::<T>(device, n, from, to))
            }));
        }
        if n <= 1 << 16 {
            cases.push(Case::new(format!("host {name}"), element, format!("n = {n}"), "random", n, move |device| {
                check_host::<T>(device, n)
            }));
        }
    }
}

/// Checks uploads and downloads by the same call.
fn check_host<T: Plain>(device: &Device, n: usize) -> Result<(), Failure> {
    let data: Vec<T> = random_bits(n, 1);
    let up = guarded(device, n, 1, |out| Ok(device.copy(&data, out)?))?;
    same_bytes(&up, &data, "upload")?;
    let buffer = device.upload(&data)?;
    let mut down: Vec<T> = bytemuck::zeroed_vec(n);
    device.copy(&buffer, &mut down)?;
    same_bytes(&down, &data, "download")?;
    down.fill(bytemuck::Zeroable::zeroed());
    device.copy(&data, &mut down)?;
    same_bytes(&down, &data, "from slice to slice")
}

/// Checks every alignment of the destination for one alignment of the source, at sizes around one and several words.
fn check_alignments(device: &Device, from: usize, sizes: &[usize]) -> Result<(), Failure> {
    for to in 0..16 {
        for &n in sizes {
            check::<u8>(device, n, from, to).map_err(|failure| match failure {
                Failure::Mismatch(text) => Failure::Mismatch(format!("{n} bytes to {to}: {text}")),
                error => error,
            })?;
        }
    }
    Ok(())
}

fn check_within<T: Plain>(device: &Device, all: usize, n: usize, from: usize, to: usize) -> Result<(), Failure> {
    let mut data: Vec<T> = random_bits(all, n as u64);
    let mut buffer = device.upload(&data)?;
    buffer.copy_within(from..from + n, to)?;
    data.copy_within(from..from + n, to);
    same_bytes(&buffer.to_vec()?, &data, "copy within")
}

/// Checks a fill of a part of a buffer, with a value that the buffer is unlikely to hold.
fn check_fill<T: Plain>(device: &Device, n: usize, offset: usize) -> Result<(), Failure> {
    let value: T = random_bits(1, 7)[0];
    let got = guarded(device, n, offset, |mut out| Ok(out.fill(value)?))?;
    same_bytes(&got, &vec![value; n], "fill")
}

fn fills_of<T: Plain>(level: Level, name: &str, element: ElementType, cases: &mut Vec<Case>) {
    for n in sizes::<T>(level) {
        for offset in [0, 5] {
            let shape = format!("n = {n} at {offset}");
            cases.push(Case::new(format!("fill {name}"), element, shape, "constant", n, move |device| {
                everywhere(check_fill::<T>(device, n, offset))
            }));
        }
    }
}

fn check_errors(device: &Device) -> Result<(), Failure> {
    let x = device.upload(&[1u32, 2, 3])?;
    let mut y = device.zeroed::<u32>(2)?;
    let refused = |result: crate::Result<()>, want: &str| match result {
        Err(error) if error.kind() == ErrorKind::InvalidInput && error.to_string() == want => Ok(()),
        other => Err(Failure::Mismatch(format!("{other:?} instead of `{want}`"))),
    };
    refused(device.copy(&x, &mut y), "copying 3 elements into 2")?;
    refused(device.copy(&x, &mut [0; 4]), "copying 3 elements into 4")?;
    refused(device.copy(&[1, 2, 3], &mut y), "copying 3 elements into 2")?;
    let mut x = x;
    refused(x.copy_within(1.., 2), "range 2..4 is not within a buffer of 3 elements")?;
    let far = format!("range {0}..{0} is not within a buffer of 3 elements", usize::MAX);
    refused(x.copy_within(.., usize::MAX), &far)?;
    same_bytes(&x.to_vec()?, &[1, 2, 3], "after refusals")?;
    same_bytes(&y.to_vec()?, &[0, 0], "after refusals")
}

/// A fill of `n` elements from element `offset` on.
fn bench_fill<T: Plain>(element: ElementType, offset: usize) -> Bench {
    let form = if offset > 0 { format!("fill, from element {offset}") } else { "fill".into() };
    Bench::new(
        form,
        element,
        |n| (n * size_of::<T>()) as u64,
        move |device, n| {
            let value: T = random_bits(1, 7)[0];
            Ok(Climb::new(
                device.zeroed::<T>(n + offset)?,
                |to| to.fill(poison()),
                move |to| to.view_mut(offset..)?.fill(value),
                move |to| same_bytes(&to.view(offset..)?.to_vec()?, &vec![value; to.len() - offset], "fill"),
            ))
        },
    )
}

/// A copy of `n` elements from element `first` on, to another buffer from element `second` on.
fn bench<T: Plain>(form: &str, element: ElementType, first: usize, second: usize) -> Bench {
    Bench::new(
        form,
        element,
        |n| 2 * (n * size_of::<T>()) as u64,
        move |device, n| {
            let from = device.upload(&random_bits::<T>(n + first, n as u64))?;
            let state = (device.clone(), from, device.zeroed::<T>(n + second)?);
            Ok(Climb::new(
                state,
                |(_, _, to)| to.fill(poison()),
                move |(device, from, to)| device.copy(from.view(first..)?, to.view_mut(second..)?),
                move |(_, from, to)| same_bytes(&to.view(second..)?.to_vec()?, &from.view(first..)?.to_vec()?, "copy"),
            ))
        },
    )
}

/// A copy of `n` elements within one buffer, from offset 0 to offset `shift(n)`.
fn bench_within<T: Plain>(form: &str, element: ElementType, shift: fn(usize) -> usize) -> Bench {
    Bench::new(
        form,
        element,
        |n| 2 * (n * size_of::<T>()) as u64,
        move |device, n| {
            let from = device.upload(&random_bits::<T>(n + shift(n), n as u64))?;
            let state = (device.clone(), device.zeroed::<T>(from.len())?, from);
            Ok(Climb::new(
                state,
                |(device, x, from)| device.copy(&*from, x),
                move |(_, x, _)| x.copy_within(..n, shift(n)),
                move |(_, x, from)| {
                    same_bytes(&x.view(shift(n)..)?.to_vec()?, &from.view(..n)?.to_vec()?, "copy within")
                },
            ))
        },
    )
}

impl Spec for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut cases = Vec::new();
        cases_of::<u8>(level, "1 byte", ElementType::U8, &mut cases);
        cases_of::<u16>(level, "2 bytes", ElementType::U16, &mut cases);
        cases_of::<u32>(level, "4 bytes", ElementType::U32, &mut cases);
        cases_of::<u64>(level, "8 bytes", ElementType::U64, &mut cases);
        cases_of::<u128>(level, "16 bytes", ElementType::U64, &mut cases);
        cases_of::<[u8; 3]>(level, "3 bytes", ElementType::U8, &mut cases);
        cases_of::<[u32; 3]>(level, "12 bytes", ElementType::U32, &mut cases);

        fills_of::<u32>(level, "4 bytes", ElementType::U32, &mut cases);
        if level >= Level::Quick {
            fills_of::<u8>(level, "1 byte", ElementType::U8, &mut cases);
            fills_of::<u128>(level, "16 bytes", ElementType::U64, &mut cases);
            fills_of::<[u8; 3]>(level, "3 bytes", ElementType::U8, &mut cases);
        }
        if level == Level::Full {
            fills_of::<u16>(level, "2 bytes", ElementType::U16, &mut cases);
            fills_of::<u64>(level, "8 bytes", ElementType::U64, &mut cases);
            fills_of::<[u32; 3]>(level, "12 bytes", ElementType::U32, &mut cases);
        }

        let (sources, lengths): (Vec<usize>, &'static [usize]) = match level {
            Level::Tiny => (vec![5], &[40]),
            Level::Quick => (vec![0, 1, 6, 15], &[15, 47, 100]),
            Level::Full => ((0..16).collect(), &[1, 15, 16, 17, 31, 32, 33, 47, 48, 63, 100, 2100]),
        };
        for from in sources {
            let shape = format!("from byte {from} to each of 0..16");
            cases.push(Case::new("alignments", ElementType::U8, shape, "random", 100, move |device| {
                check_alignments(device, from, lengths)
            }));
        }

        let mut moves = vec![(100, 40, 0, 60), (100, 90, 10, 0), (100, 90, 0, 10), (100, 100, 0, 0), (100, 0, 3, 100)];
        if level >= Level::Quick {
            moves.extend([(20_000, 12_345, 7_000, 11), (20_000, 12_345, 11, 7_001), (20_000, 19_999, 1, 0)]);
        }
        if level >= Level::Full {
            // These copies are larger than the scratch, so they take several rounds.
            let all = 44 << 20;
            moves.extend([(all, all - 5, 5, 0), (all, all - 5, 0, 5), (all, 24 << 20, 0, 20 << 20)]);
        }
        for (all, n, from, to) in moves {
            let shape = format!("{n} of {all} from {from} to {to}");
            cases.push(Case::new("copy within", ElementType::U8, shape, "random", n, move |device| {
                check_within::<u8>(device, all, n, from, to)
            }));
            if all <= 20_000 {
                let shape = format!("{n} of {all} from {from} to {to}");
                cases.push(Case::new("copy within, 12 bytes", ElementType::U32, shape, "random", n, move |device| {
                    check_within::<[u32; 3]>(device, all, n, from, to)
                }));
            }
        }
        cases.push(Case::new("wrong lengths", ElementType::U32, "n = 3", "constant", 3, check_errors));
        cases.extend(super::gather::spec::cases(level));
        cases.extend(super::nd::spec::cases(level));
        cases.extend(super::ranges::spec::cases(level));
        cases.extend(super::reverse::spec::cases(level));
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        let mut benches = vec![
            bench::<u32>("aligned", ElementType::U32, 0, 0),
            bench::<u32>("from element 1", ElementType::U32, 1, 0),
            bench::<u32>("to element 1", ElementType::U32, 0, 1),
            bench::<u8>("from element 1", ElementType::U8, 1, 0),
            bench::<u8>("to element 1", ElementType::U8, 0, 1),
            bench_within::<u32>("within, beside", ElementType::U32, |n| n),
            bench_within::<u32>("within, 1 element on", ElementType::U32, |_| 1),
            bench_fill::<u32>(ElementType::U32, 0),
            bench_fill::<u8>(ElementType::U8, 1),
        ];
        benches.extend(super::gather::spec::benches());
        benches.extend(super::nd::spec::benches());
        benches.extend(super::ranges::spec::benches());
        benches.extend(super::reverse::spec::benches());
        benches.extend(super::transfer::spec::benches());
        benches
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        let own = [1 << 20, 1 << 40].map(|bytes| super::gpu::plan(bytes, 0, 0, caps, |n| n >= 1 << 31).program);
        let forms = [
            super::gather::spec::programs(caps),
            super::ranges::spec::programs(caps),
            super::reverse::spec::programs(caps),
        ];
        own.into_iter().chain(forms.concat()).chain(super::ladder::device::programs(caps)).collect()
    }
}
