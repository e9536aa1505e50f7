//! What is checked and measured of scans.

use super::{Scan, cpu};
use crate::{
    Buffer, Capabilities, Device, Element, ElementType, Integer, ProgramSpec, Scratch,
    bench::Bench,
    check::{Case, Failure, Level, Spec, close, data::Data, guarded, poison, same},
    f16,
    ladder::Climb,
    op::{And, Max, Min, Op, OpKind, Or, Product, Sum, Xor},
    reduce::spec::sum_error,
    with_element, with_integer,
};

/// The primitive's entry in the registry.
pub(crate) struct ScanSpec;

/// Additions that a value passes through at most: of a run, twice, and up and down the trees of a tile and of the tiles.
const DEPTH: f64 = 2.0 * (8.0 + 10.0 + 32.0);

/// What is asked of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Inclusive,
    Exclusive,
    /// Exclusive, with the total behind.
    Total,
    InPlace,
}

impl Form {
    const ALL: [Self; 4] = [Self::Inclusive, Self::Exclusive, Self::Total, Self::InPlace];

    const fn name(self) -> &'static str {
        match self {
            Self::Inclusive => "inclusive",
            Self::Exclusive => "exclusive",
            Self::Total => "with the total",
            Self::InPlace => "in place",
        }
    }

    fn kind<U: Element>(self) -> Scan<U> {
        match self {
            Self::Inclusive | Self::InPlace => Scan::Inclusive,
            Self::Exclusive | Self::Total => Scan::Exclusive(U::from_f64(5.0)),
        }
    }

    fn outputs(self, n: usize) -> usize {
        n + usize::from(self == Self::Total)
    }
}

/// The definition in `cl/scan.cl`: the total of every block of 2^b runs, or of tiles, and of those what precedes the q-th.
struct Blocks<A> {
    levels: Vec<Vec<A>>,
}

impl<A: Copy> Blocks<A> {
    fn of(totals: Vec<A>, combine: impl Fn(A, A) -> A) -> Self {
        let mut levels = vec![totals];
        while levels[levels.len() - 1].len() > 1 {
            let below = &levels[levels.len() - 1];
            let above = below.chunks_exact(2).map(|pair| combine(pair[0], pair[1])).collect();
            levels.push(above);
        }
        Self { levels }
    }

    fn before(&self, q: usize, identity: A, combine: impl Fn(A, A) -> A) -> A {
        let set = (0..usize::BITS).filter(|b| q >> b & 1 == 1);
        set.fold(identity, |before, b| combine(self.levels[b as usize][(q >> b) - 1], before))
    }
}

/// The results that the definition gives for what is taken of the elements.
fn obvious<U: Element, O: Op<U>>(values: &[U::Acc], run: usize, kind: Scan<U>, outputs: usize) -> Vec<U> {
    let (initial, inclusive) = match kind {
        Scan::Inclusive => (O::identity(), true),
        Scan::Exclusive(initial) => (initial.widen(), false),
    };
    let mut out = Vec::with_capacity(outputs);
    if !cpu::ordered::<U, O>() {
        let mut acc = initial;
        for i in 0..outputs {
            let next = values.get(i).map_or(acc, |&x| O::combine(acc, x));
            out.push(U::narrow(if inclusive { next } else { acc }));
            acc = next;
        }
        return out;
    }
    let total = |run: &[U::Acc]| run[1..].iter().fold(run[0], |total, &x| O::combine(total, x));
    let blocks = |tile: &[U::Acc]| Blocks::of(tile.chunks(run).map(total).collect(), O::combine);
    let tiles: Vec<_> = values.chunks(cpu::TILE_RUNS * run).map(blocks).collect();
    // Of an incomplete tile nothing is taken.
    let whole = tiles.iter().filter_map(|tile| tile.levels.get(cpu::TILE_RUNS.ilog2() as usize)).map(|top| top[0]);
    let between = Blocks::of(whole.collect(), O::combine);
    for first in (0..outputs).step_by(run) {
        let (t, q) = (first / run / cpu::TILE_RUNS, first / run % cpu::TILE_RUNS);
        let carry = O::combine(initial, between.before(t, O::identity(), O::combine));
        let before = tiles.get(t).map_or(O::identity(), |tile| tile.before(q, O::identity(), O::combine));
        let mut acc = O::combine(carry, before);
        for i in first..outputs.min(first + run) {
            let next = values.get(i).map_or(acc, |&x| O::combine(acc, x));
            out.push(U::narrow(if inclusive { next } else { acc }));
            acc = next;
        }
    }
    out
}

/// What the definition gives for the CPU backend, or the CPU backend for a device.
fn check<T: Element, U: Element + From<T>, O: Op<U> + Default>(
    device: &Device,
    all: &[T],
    offset: usize,
    form: Form,
) -> Result<(), Failure> {
    let input = &all[offset..];
    let (outputs, kind) = (form.outputs(input.len()), form.kind::<U>());
    let on_device = device.upload(all)?;
    // Input and output are not aligned alike.
    let got = guarded(device, outputs, 2 * offset, |out| {
        Ok(device.scan_into(on_device.view(offset..)?, O::default(), kind, out, &mut Scratch::new())?)
    })?;
    if !device.is_cpu() {
        let mut want = vec![U::ZERO; outputs];
        Device::cpu().scan_into(input, O::default(), kind, &mut want, &mut Scratch::new())?;
        return same(&got, &want, form.name());
    }
    let values: Vec<_> = input.iter().map(|&x| U::from(x).widen()).collect();
    same(&got, &obvious::<U, O>(&values, cpu::run::<T>(), kind, outputs), form.name())?;
    let Some(last) = got.last().filter(|_| form == Form::Inclusive && O::KIND == OpKind::Sum && U::TYPE.is_float())
    else {
        return Ok(());
    };
    // Where partial sums are beyond the range, the order is all there is.
    let input: Vec<U> = input.iter().map(|&x| U::from(x)).collect();
    let want: f64 = input.iter().map(|x| x.to_f64()).sum();
    if want.is_finite() && last.to_f64().is_finite() {
        return close(*last, want, sum_error(&input, DEPTH), "the last sum");
    }
    Ok(())
}

fn check_in_place<T: Element, O: Op<T> + Default>(device: &Device, all: &[T], offset: usize) -> Result<(), Failure> {
    let input = &all[offset..];
    let kind = if offset == 0 { Scan::Inclusive } else { Scan::Exclusive(T::ONE) };
    let got = guarded(device, input.len(), offset, |mut x| {
        x.write(input)?;
        Ok(device.scan_in_place(x, O::default(), kind, &mut Scratch::new())?)
    })?;
    let want = Device::cpu().scan(input, O::default(), kind)?.to_vec()?;
    same(&got, &want, "in place")
}

/// Sizes at the edges of runs, rows and tiles.
fn sizes<T>(level: Level) -> Vec<usize> {
    let (run, tile) = (cpu::run::<T>(), cpu::tile::<T>());
    let mut sizes = vec![1, run + 1, tile + 3];
    if level >= Level::Quick {
        sizes.extend([0, 257 * run, tile, 2 * tile - 1]);
    }
    if level >= Level::Full {
        sizes.extend([2, run, tile - 1, tile + 1, 3 * tile, 37 * tile + 5, 1_000_003]);
    }
    sizes
}

/// Each form and type costs a driver a build of up to half a second.
fn tried(level: Level, element: ElementType, op: OpKind) -> bool {
    use ElementType::{F16, F32, I32, I64, U8, U32};
    match (level, op) {
        (Level::Full, _) => true,
        (Level::Quick, OpKind::Sum) => matches!(element, U8 | U32 | I64 | F16 | F32),
        (Level::Quick, OpKind::Min) => element == F32,
        (Level::Quick, OpKind::Xor) => element == I32,
        (Level::Tiny, OpKind::Sum) => matches!(element, U32 | F32),
        (_, OpKind::Max) => element == I64,
        _ => false,
    }
}

fn op_cases<T: Element, O: Op<T> + Default + 'static>(level: Level, cases: &mut Vec<Case>) {
    if !tried(level, T::TYPE, O::KIND) {
        return;
    }
    for (i, n) in sizes::<T>(level).into_iter().enumerate() {
        let data_sets: &[Data] = match level {
            Level::Full if n < 100_000 => &Data::ALL,
            Level::Tiny => &[Data::Random],
            _ => &[[Data::Random, Data::Special][i % 2]],
        };
        let all = level == Level::Full || O::KIND == OpKind::Sum;
        for form in Form::ALL.into_iter().enumerate().filter(|&(k, _)| all || k == i % 4).map(|(_, form)| form) {
            for &data in data_sets {
                let offset = [0, 1][(i + usize::from(form == Form::InPlace)) % 2];
                let (name, shape) = (format!("{} {}", O::KIND.name(), form.name()), format!("n = {n} at {offset}"));
                cases.push(Case::new(name, T::TYPE, shape, data.name(), n, move |device| {
                    let all = data.generate::<T>(n + offset, n as u64);
                    match form {
                        Form::InPlace => check_in_place::<T, O>(device, &all, offset),
                        _ => check::<T, T, O>(device, &all, offset, form),
                    }
                }));
            }
        }
    }
}

/// To a wider type.
fn wide_cases<T: Element, U: Element + From<T>>(level: Level, cases: &mut Vec<Case>) {
    for (i, n) in sizes::<T>(level).into_iter().enumerate() {
        for form in [Form::Inclusive, Form::Total] {
            let (offset, shape) = (i % 2, format!("n = {n} at {}", i % 2));
            let name = format!("sum as {} {}", U::TYPE, form.name());
            cases.push(Case::new(name, T::TYPE, shape, Data::Random.name(), n, move |device| {
                check::<T, U, Sum>(device, &Data::Random.generate::<T>(n + offset, n as u64), offset, form)
            }));
        }
    }
}

fn bit_cases<T: Integer<Acc: Integer>>(level: Level, cases: &mut Vec<Case>) {
    op_cases::<T, And>(level, cases);
    op_cases::<T, Or>(level, cases);
    op_cases::<T, Xor>(level, cases);
}

/// What a benchmark runs on.
struct Measured<T: Element> {
    device: Device,
    host: Vec<T>,
    x: Buffer<T>,
    out: Buffer<T>,
    scratch: Scratch,
}

fn bench<T: Element>(form: Form) -> Bench {
    let bytes = |n: usize| 2 * (n * size_of::<T>()) as u64;
    Bench::new(format!("sum {}", form.name()), T::TYPE, bytes, move |device, n| {
        let host = Data::Random.generate::<T>(n, n as u64);
        let (x, out) = (device.upload(&host)?, device.zeroed(form.outputs(n))?);
        let state = Measured { device: device.clone(), host, x, out, scratch: Scratch::new() };
        let run = move |this: &mut Measured<T>| {
            let Measured { device, x, out, scratch, .. } = this;
            device.scan_into(&*x, Sum, form.kind(), &mut *out, scratch)
        };
        let verify = move |this: &mut Measured<T>| {
            let mut want = vec![T::ZERO; this.out.len()];
            Device::cpu().scan_into(&this.host, Sum, form.kind(), &mut want, &mut Scratch::new())?;
            same(&this.out.to_vec()?, &want, form.name())
        };
        Ok(Climb::new(state, |this| this.out.fill(poison()), run, verify))
    })
}

impl Spec for ScanSpec {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut cases = Vec::new();
        for element in ElementType::ALL {
            with_element!(element, T => {
                op_cases::<T, Sum>(level, &mut cases);
                op_cases::<T, Product>(level, &mut cases);
                op_cases::<T, Min>(level, &mut cases);
                op_cases::<T, Max>(level, &mut cases);
            });
            with_integer!(element, T => bit_cases::<T>(level, &mut cases), ());
        }
        wide_cases::<u32, u64>(level, &mut cases);
        if level >= Level::Quick {
            wide_cases::<u8, u32>(level, &mut cases);
            wide_cases::<f16, f32>(level, &mut cases);
        }
        if level >= Level::Full {
            wide_cases::<f32, f64>(level, &mut cases);
            wide_cases::<i8, i64>(level, &mut cases);
        }
        cases
    }

    fn benches(&self) -> Vec<Bench> {
        vec![
            bench::<u32>(Form::Inclusive),
            bench::<u32>(Form::Exclusive),
            bench::<f32>(Form::Inclusive),
            bench::<f32>(Form::Exclusive),
            bench::<u64>(Form::Inclusive),
            bench::<u64>(Form::Exclusive),
        ]
    }

    #[cfg(feature = "opencl")]
    fn programs(&self, caps: &Capabilities) -> Vec<ProgramSpec> {
        use super::gpu;
        let mut forms = vec![
            gpu::Form::of::<u32, u64, Sum>(),
            gpu::Form::of::<u8, u32, Sum>(),
            gpu::Form::of::<i8, i64, Sum>(),
            gpu::Form::of::<f16, f32, Sum>(),
            gpu::Form::of::<f32, f64, Sum>(),
        ];
        for element in ElementType::ALL {
            with_element!(element, T => forms.extend([
                gpu::Form::of::<T, T, Sum>(),
                gpu::Form::of::<T, T, Product>(),
                gpu::Form::of::<T, T, Min>(),
                gpu::Form::of::<T, T, Max>(),
            ]));
            with_integer!(element, T => forms.extend([
                gpu::Form::of::<T, T, And>(),
                gpu::Form::of::<T, T, Or>(),
                gpu::Form::of::<T, T, Xor>(),
            ]), ());
        }
        let mut programs = Vec::new();
        for form in &forms {
            for (aligned, wide) in [(false, false), (true, false), (true, true)] {
                programs.extend(gpu::plan(1 << 20, form, aligned, caps, wide).map(|plan| plan.program));
            }
        }
        programs
    }

    #[cfg(not(feature = "opencl"))]
    fn programs(&self, _: &Capabilities) -> Vec<ProgramSpec> {
        Vec::new()
    }
}
