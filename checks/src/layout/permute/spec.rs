//! Spec of permutations: cases, programs and benchmark cases.

use std::fmt::Debug;

use bytemuck::Pod;

use crate::{
    Device, ElementType, Layout, NdView, NdViewMut, ProgramSpec, Result,
    bench::Bench,
    check::{Case, Failure, Level, Spec, data::random_bits, everywhere, guarded, poison, same_bytes},
    ladder::Climb,
    tuning::Tuned,
};

/// The primitive's entry in the registry.
pub(crate) struct Permute;

/// Layout of an array in a buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LayoutKind {
    /// Without gaps.
    Dense,
    /// A part of an array that is three elements longer along each axis.
    Cut,
    /// Every second element along each axis.
    Stepped,
    /// All axes are reversed.
    Reversed,
    /// Only the first axis is reversed.
    Flipped,
    /// The first axis is broadcast.
    Repeated,
}

use LayoutKind::{Cut, Dense, Flipped, Repeated, Reversed, Stepped};

impl LayoutKind {
    fn layout(self, shape: &[usize]) -> Result<Layout> {
        let grown = |by: &dyn Fn(usize) -> usize| Layout::contiguous(&shape.iter().map(|&n| by(n)).collect::<Vec<_>>());
        let axes = 0..shape.len();
        match self {
            Dense => Layout::contiguous(shape),
            Cut => axes.clone().try_fold(grown(&|n| n + 3)?, |layout, axis| layout.slice(axis, 1..1 + shape[axis])),
            Stepped => axes.clone().try_fold(grown(&|n| 2 * n)?, |layout, axis| layout.step(axis, 2)),
            Reversed => axes.clone().try_fold(grown(&|n| n)?, |layout, axis| layout.reverse(axis)),
            Flipped => Layout::contiguous(shape)?.reverse(0),
            Repeated => {
                let mut one = shape.to_vec();
                one[0] = 1;
                Layout::contiguous(&one)?.broadcast(0, shape[0])
            }
        }
    }
}

/// Length of the shortest buffer that holds a layout.
fn end(layout: &Layout) -> usize {
    layout.span().map_or(0, |(_, last)| last + 1)
}

/// The permutation by definition, into `out`.
fn obvious<T: Pod>(input: &[T], from: &Layout, axes: &[usize], out: &mut [T], to: &Layout) -> Result<()> {
    let mut index = vec![0; axes.len()];
    for i in 0..to.len() {
        let mut rest = i;
        for (k, &n) in index.iter_mut().zip(to.shape()).rev() {
            (*k, rest) = (rest % n, rest / n);
        }
        let mut source = vec![0; axes.len()];
        axes.iter().zip(&index).for_each(|(&axis, &k)| source[axis] = k);
        out[to.offset_of(&index)?] = input[from.offset_of(&source)?];
    }
    Ok(())
}

/// A permutation, and the layouts of its arrays.
#[derive(Clone, Copy, Debug)]
struct Shot {
    shape: &'static [usize],
    axes: &'static [usize],
    layout_kinds: (LayoutKind, LayoutKind),
    /// Offsets into the buffers.
    at: (usize, usize),
}

impl Shot {
    fn check<T: Pod + PartialEq + Debug>(&self, device: &Device) -> std::result::Result<(), Failure> {
        let &Self { shape, axes, layout_kinds, at } = self;
        let from = layout_kinds.0.layout(shape)?;
        let permuted: Vec<_> = axes.iter().map(|&axis| shape[axis]).collect();
        let to = layout_kinds.1.layout(&permuted)?;
        let all = random_bits::<T>(at.0 + end(&from), (from.len() * 31 + at.0) as u64);
        let on_device = device.upload(&all)?;
        let input = on_device.view(at.0..)?.with_layout(from)?;
        let got = guarded(device, end(&to), at.1, |out| Ok(device.copy(input.permute(axes)?, out.with_layout(to)?)?))?;
        // `guarded` fills the output with poison first.
        let mut want = vec![poison::<T>(); end(&to)];
        if device.is_cpu() {
            obvious(&all[at.0..], &from, axes, &mut want, &to)?;
        } else {
            let input = NdView::new(&all[at.0..], from)?;
            Device::cpu().copy(input.permute(axes)?, NdViewMut::new(&mut want, to)?)?;
        }
        same_bytes(&got, &want, "out")
    }

    fn case<T: Pod + PartialEq + Debug>(self, element: ElementType) -> Case {
        let Self { shape, axes, layout_kinds, at } = self;
        let text =
            format!("{shape:?} by {axes:?}, {:?} at {} to {:?} at {}", layout_kinds.0, at.0, layout_kinds.1, at.1);
        let n = shape.iter().product();
        let form = format!("{}-byte elements", size_of::<T>());
        Case::new(form, element, text, "bits", n, move |device| everywhere(self.check::<T>(device)))
    }
}

/// Shapes and orders of axes: some fold to a copy, to a matrix or to a batch of matrices, and some do not.
const ORDERS: [(&[usize], &[usize]); 6] = [
    (&[3, 4, 5], &[0, 1, 2]),
    (&[9, 10, 33], &[2, 0, 1]),
    (&[5, 24, 40], &[0, 2, 1]),
    (&[30, 4, 36], &[2, 1, 0]),
    (&[6, 7, 8], &[1, 0, 2]),
    (&[3, 4, 5, 6], &[3, 1, 2, 0]),
];

const MORE_ORDERS: [(&[usize], &[usize]); 7] = [
    (&[17], &[0]),
    (&[7, 0, 3], &[2, 0, 1]),
    (&[70, 3, 90], &[1, 2, 0]),
    (&[2, 65, 2, 67], &[2, 3, 0, 1]),
    (&[1, 5, 1, 300], &[3, 2, 1, 0]),
    (&[2, 3, 2, 3, 2, 3, 2, 3], &[7, 5, 3, 1, 0, 2, 4, 6]),
    (&[4, 1100, 3], &[2, 1, 0]),
];

/// A shape and an order of axes for which the CPU backend can split rows of the output among tasks.
const LARGE_ORDERS: [(&[usize], &[usize]); 1] = [(&[300, 17, 70], &[2, 1, 0])];

/// Layouts that run different kernels.
const LAYOUT_KINDS: [(LayoutKind, LayoutKind); 8] = [
    (Dense, Dense),
    (Cut, Dense),
    (Dense, Cut),
    (Reversed, Stepped),
    (Stepped, Cut),
    (Repeated, Dense),
    (Reversed, Cut),
    (Flipped, Dense),
];

fn shots(level: Level) -> Vec<Shot> {
    let mut all = Vec::new();
    let ways = if level == Level::Tiny { 4 } else { LAYOUT_KINDS.len() };
    let more = MORE_ORDERS.into_iter().filter(|_| level >= Level::Quick);
    let large = LARGE_ORDERS.into_iter().filter(|_| level >= Level::Full);
    let orders = ORDERS.into_iter().chain(more).chain(large);
    for (i, (shape, axes)) in orders.enumerate() {
        for (k, &layout_kinds) in LAYOUT_KINDS[..ways].iter().enumerate() {
            // Below `Full`, each pair of an order and a layout runs with one pair of offsets: (0, 0) and (3, 1) take
            // turns.
            let offsets: &[_] = match level {
                Level::Full => &[(0, 0), (4, 8), (3, 1)],
                _ if (i + k) % 2 == 0 => &[(0, 0)],
                _ => &[(3, 1)],
            };
            if layout_kinds.0 != Repeated || shape[0] > 0 {
                all.extend(offsets.iter().map(|&at| Shot { shape, axes, layout_kinds, at }));
            }
        }
    }
    all
}

/// Benchmark case of a permutation of an array whose shape depends on the number of elements.
fn bench(form: &str, shape: fn(usize) -> Vec<usize>, axes: &'static [usize]) -> Bench {
    let cells = move |n| shape(n).iter().product::<usize>();
    let bytes = move |n| 8 * cells(n) as u64;
    Bench::new(form, ElementType::F32, bytes, move |device, n| {
        let x = device.upload(&random_bits::<u32>(cells(n), n as u64))?;
        let state = (device.clone(), x, device.zeroed::<u32>(cells(n))?);
        Ok(Climb::new(
            state,
            |(_, _, out)| out.fill(poison()),
            move |(device, x, out)| {
                let view = x.nd(&shape(n))?;
                let permuted: Vec<_> = axes.iter().map(|&axis| view.shape()[axis]).collect();
                device.copy(view.permute(axes)?, out.nd_mut(&permuted)?)
            },
            move |(_, x, out)| {
                let want = Device::cpu()
                    .transform((NdView::new(&x.to_vec()?, Layout::contiguous(&shape(n))?)?).permute(axes)?)?;
                same_bytes(&out.to_vec()?, &want.to_vec()?, "out")
            },
        ))
    })
}

/// Cube of about `n` elements with an even side.
fn cube(n: usize) -> Vec<usize> {
    let side = (n as f64).cbrt() as usize / 2 * 2;
    vec![side.max(2); 3]
}

impl Spec for Permute {
    fn name(&self) -> &'static str {
        "permute"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let shots = shots(level);
        let mut all: Vec<_> = shots.iter().map(|shot| shot.case::<u32>(ElementType::U32)).collect();
        let few = |every: usize| shots.iter().step_by(if level == Level::Full { 1 } else { every });
        all.extend(few(3).map(|shot| shot.case::<u8>(ElementType::U8)));
        all.extend(few(5).map(|shot| shot.case::<[u32; 3]>(ElementType::U32)));
        all.extend(few(7).map(|shot| shot.case::<[u64; 5]>(ElementType::U64)));
        if level >= Level::Full {
            all.extend(few(1).map(|shot| shot.case::<u16>(ElementType::U16)));
            all.extend(few(1).map(|shot| shot.case::<u64>(ElementType::U64)));
            all.extend(few(1).map(|shot| shot.case::<u128>(ElementType::U64)));
            all.extend(few(1).map(|shot| shot.case::<[u8; 7]>(ElementType::U8)));
        }
        all
    }

    fn benches(&self) -> Vec<Bench> {
        vec![
            bench("cube by (2, 0, 1)", cube, &[2, 0, 1]),
            bench("cube by (1, 2, 0)", cube, &[1, 2, 0]),
            bench("cube by (2, 1, 0)", cube, &[2, 1, 0]),
            bench("cube by (1, 0, 2)", cube, &[1, 0, 2]),
            bench("cube by (0, 2, 1)", cube, &[0, 2, 1]),
            bench("cubes of 4 by (0, 3, 2, 1)", |n| vec![n / 64, 4, 4, 4], &[0, 3, 2, 1]),
        ]
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        use super::{
            gpu::plan,
            job::{Axis, Job},
        };
        let job = |size| Job {
            size,
            axes: vec![Axis { n: 3, from: 1, to: 14 }, Axis { n: 7, from: 3, to: 2 }],
            from: 0,
            to: 0,
        };
        let of_size = |size| [false, true].map(|wide| plan(job(size), [0, 0], caps, |_| wide).program);
        [1, 2, 4, 8, 16].into_iter().flat_map(of_size).collect()
    }
}
