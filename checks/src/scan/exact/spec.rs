//! Cases of exact scans, and their programs.

use super::{super::shared::bench_of, Form, Plan, plan};
use crate::{
    Determinism, Device, ExactSum, Float, ProgramSpec,
    bench::Bench,
    bf16,
    check::{
        Case, Failure, Level, exact_sum, guarded,
        hard::{Hard, Numbers},
        same,
    },
    f16,
    op::Sum,
    scan::{Scan, in_scan},
    tuning::Tuned,
};

/// Variant of a scan.
#[derive(Clone, Copy, Debug)]
enum Variant {
    Inclusive,
    /// Exclusive, then the sum of all elements.
    Total,
    /// [`Total`](Self::Total), from the last element to the first.
    Reversed,
    InPlace,
}

/// The prefix sums of `x`: by the oracle or, for many numbers, by [`ExactSum`], which has cases of its own.
fn prefixes<T: Float>(x: &[T]) -> Vec<T> {
    if x.len() <= 300 {
        return (1..=x.len()).map(|end| exact_sum::<T, T>(&x[..end])).collect();
    }
    let mut sum = ExactSum::new();
    let add = |x: &T| {
        sum.add(*x);
        sum.round()
    };
    x.iter().map(add).collect()
}

fn check<T: Float>(device: &Device, x: &[T], variant: Variant) -> Result<(), Failure> {
    let initial = T::from_f64(5.0);
    let kind = match variant {
        Variant::Inclusive | Variant::InPlace => Scan::inclusive(),
        Variant::Total => Scan::exclusive(initial),
        Variant::Reversed => Scan::exclusive(initial).reversed(),
    };
    let kind = kind.with(Determinism::Exact);
    let (got, mut want) = match variant {
        Variant::Inclusive => {
            let run = |out: crate::ViewMut<'_, T>| Ok(device.scan_into(x, in_scan(Sum, kind), out)?);
            (guarded(device, x.len(), 1, run)?, prefixes(x))
        }
        Variant::InPlace => {
            let run = |mut out: crate::ViewMut<'_, T>| {
                out.write(x)?;
                Ok(device.scan_in_place(out, in_scan(Sum, kind))?)
            };
            (guarded(device, x.len(), 1, run)?, prefixes(x))
        }
        Variant::Total | Variant::Reversed => {
            let mut all: Vec<T> = x.to_vec();
            if kind.reversed {
                all.reverse();
            }
            all.insert(0, initial);
            let run = |out: crate::ViewMut<'_, T>| Ok(device.scan_into(x, in_scan(Sum, kind), out)?);
            (guarded(device, x.len() + 1, 1, run)?, prefixes(&all))
        }
    };
    if kind.reversed {
        want.reverse();
    }
    same(&got, &want, "prefixes")
}

fn cases_of<T: Float>(sizes: &[usize], variants: &[Variant], cases: &mut Vec<Case>) {
    for &variant in variants {
        let form = format!("sum exact {variant:?} of hard numbers").to_lowercase();
        for &n in sizes {
            for hard in Hard::all::<T>() {
                cases.push(Case::new(form.clone(), T::TYPE, format!("n = {n}"), hard.name(), n, move |device| {
                    check(device, &hard.generate::<T>(n, n as u64), variant)
                }));
            }
        }
    }
}

pub(in crate::scan) fn cases(level: Level, cases: &mut Vec<Case>) {
    use Variant::{InPlace, Inclusive, Reversed, Total};
    let (sizes, variants): (&[usize], &[Variant]) = match level {
        Level::Tiny => (&[4200], &[Inclusive, Reversed]),
        Level::Quick => (&[300, 9000], &[Inclusive, Total, Reversed, InPlace]),
        Level::Full => (&[300, 4096, 9000, 300_001], &[Inclusive, Total, Reversed, InPlace]),
    };
    cases_of::<f32>(sizes, variants, cases);
    cases_of::<f64>(sizes, variants, cases);
    cases_of::<f16>(&sizes[..1], &variants[..1], cases);
    cases_of::<bf16>(&sizes[..1], &variants[..1], cases);
}

fn bench<T: Float>(what: &str, numbers: Numbers) -> Bench {
    let kind = Scan::<T>::inclusive().with(Determinism::Exact);
    bench_of(format!("sum exact{what}"), kind, |n| n, numbers, None)
}

pub(in crate::scan) fn benches() -> Vec<Bench> {
    vec![
        bench::<f32>("", Numbers::Uniform),
        bench::<f64>("", Numbers::Uniform),
        bench::<f32>(", condition 1e32", Numbers::Condition32),
        bench::<f64>(", condition 1e32", Numbers::Condition32),
        bench::<f32>(", all exponents", Numbers::AllExponents),
        bench::<f64>(", all exponents", Numbers::AllExponents),
    ]
}

pub(in crate::scan) fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let mut programs = Vec::new();
    for (reversed, wide) in [(false, false), (true, true)] {
        let forms = [
            Form::of::<f16, f16>(reversed),
            Form::of::<bf16, bf16>(reversed),
            Form::of::<u8, f32>(reversed),
            Form::of::<f32, f32>(reversed),
            Form::of::<f32, f64>(reversed),
            Form::of::<f64, f64>(reversed),
        ];
        // A plan of one tile has no kernels for narrow tiles. A plan of many tiles can have them.
        let plans = forms.iter().flat_map(|form| [1, 1 << 20].map(|n| plan(n, form, caps, wide)));
        programs.extend(plans.flatten().flat_map(Plan::programs));
    }
    programs
}
