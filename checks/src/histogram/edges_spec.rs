//! Cases and benchmark cases of bins between given edges.

use super::{
    Accumulate, Bins,
    bins::{ABOVE, BELOW, NAN},
    shared::{RANGED_BINS, bench_of, check, neighbour, ranged_sizes, small_gpu},
};
use crate::{
    Element, ElementType,
    bench::Bench,
    check::{
        Case, Level,
        data::{Data, Rng},
        keys::by_rank,
    },
    with_element,
};

/// Data set of edges.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pattern {
    /// At about equal distances.
    Even,
    /// Most of them close to the lowest.
    Cubes,
    Random,
    /// Each edge occurs twice, so every other bin is empty.
    Twice,
    /// All edges are equal, so all bins are empty except a closed last one.
    Equal,
    /// From the type's lowest value to its highest, which are infinite for floats.
    Everything,
}

const PATTERNS: [Pattern; 6] =
    [Pattern::Even, Pattern::Cubes, Pattern::Random, Pattern::Twice, Pattern::Everything, Pattern::Equal];

impl Pattern {
    fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Cubes => "cubes",
            Self::Random => "random",
            Self::Twice => "each twice",
            Self::Equal => "equal",
            Self::Everything => "everything",
        }
    }

    /// `bins + 1` ascending edges.
    fn edges<T: Element>(self, bins: usize) -> Vec<T> {
        // Integers of few bits have fewer values than edges, so some edges are equal.
        let (low, span) = if T::TYPE.is_float() { (-1.0, 2.0) } else { (3.0, f64::max(100.0, 7.0 * bins as f64)) };
        let at = |part: f64| T::from_f64(low + part * span);
        let part = |k: usize| k as f64 / bins as f64;
        let mut edges: Vec<T> = match self {
            Self::Even => (0..=bins).map(|k| at(part(k))).collect(),
            Self::Cubes => (0..=bins).map(|k| at(part(k).powi(3))).collect(),
            Self::Random | Self::Everything => Data::Random.generate(bins + 1, bins as u64),
            Self::Twice => (0..=bins).map(|k| at(part(k / 2 * 2))).collect(),
            Self::Equal => vec![at(0.5); bins + 1],
        };
        edges = by_rank(&edges);
        if self == Self::Everything {
            (edges[0], edges[bins]) = (T::LOWEST, T::HIGHEST);
        }
        edges
    }
}

/// Samples at edges, next to edges, and of random bits.
fn samples<T: Element>(edges: &[T], n: usize) -> Vec<T> {
    let mut rng = Rng::new(n as u64);
    let mut sample = || match rng.below(4) {
        0 => T::from_bits_lossy(rng.next()),
        1 => [T::LOWEST, T::HIGHEST, T::ZERO, T::from_f64(f64::NAN)][rng.below(4) as usize],
        _ => {
            let edge = edges[rng.below(edges.len() as u64) as usize];
            // Infinity has a neighbour on one side only.
            if edge == T::LOWEST || edge == T::HIGHEST { edge } else { neighbour(edge, rng.below(3) as i32 - 1) }
        }
    };
    (0..n).map(|_| sample()).collect()
}

/// The slot of a sample by definition.
fn obvious_slot<T: Element>(x: T, edges: &[T], closed: bool) -> usize {
    let bins = edges.len() - 1;
    match x {
        _ if x.is_nan() => bins + NAN as usize,
        _ if x < edges[0] => bins + BELOW as usize,
        _ if x == edges[bins] && closed => bins - 1,
        _ if x >= edges[bins] => bins + ABOVE as usize,
        _ if bins <= 300 => edges.iter().rposition(|&edge| edge <= x).expect("the lowest edge is not above x"),
        _ => edges.partition_point(|&edge| edge <= x) - 1,
    }
}

/// Numbers of bins for a type. Each number costs a build per driver.
fn bin_counts(level: Level, element: ElementType) -> &'static [usize] {
    match (level, element) {
        (Level::Tiny, ElementType::F32 | ElementType::I32) => &[7, 257],
        (Level::Tiny, ElementType::U8 | ElementType::I64) => &[7],
        (Level::Tiny, _) => &[],
        (Level::Quick, ElementType::F32) => &[1, 16, 257, 9000],
        (Level::Quick, ElementType::I32) => &[16, 70_000],
        (Level::Quick, ElementType::U8 | ElementType::F16 | ElementType::I64 | ElementType::F64) => &[16],
        (Level::Quick, _) => &[],
        // 2^20 bins have more edges than the lookup table of `src/histogram/edges.rs` has cells.
        (Level::Full, ElementType::F32 | ElementType::I64) => &[1, 2, 16, 255, 256, 257, 5000, 70_000, 1 << 20],
        (Level::Full, _) => &[1, 2, 16, 255, 256, 257, 5000, 70_000],
    }
}

pub(super) fn cases(level: Level, cases: &mut Vec<Case>) {
    for element in ElementType::ALL {
        with_element!(element, T => type_cases::<T>(level, cases));
    }
    if level == Level::Full {
        cases.push(case::<f32>(70_001, 1, 1 << 24, Pattern::Random, true));
    }
    for &n in ranged_sizes(level) {
        let case = case::<f32>(n, 1, RANGED_BINS, Pattern::Random, true);
        cases.push(case.tuned("edges in many ranges", small_gpu()));
    }
}

fn case<T: Element>(n: usize, offset: usize, bins: usize, pattern: Pattern, closed: bool) -> Case {
    let form = if closed { "edges closed" } else { "edges" };
    Case::new(form, T::TYPE, format!("n = {n} at {offset}, {bins} bins"), pattern.name(), n, move |device| {
        let edges = pattern.edges::<T>(bins);
        let layout = Bins::edges(&edges)?;
        let layout = if closed { layout.closed() } else { layout };
        let all = samples(&edges, n + offset);
        let obvious = |x| obvious_slot(x, &edges, closed);
        check::<T, u32>(device, &all, offset, &layout, &obvious, Accumulate::Overwrite)
    })
}

fn type_cases<T: Element>(level: Level, cases: &mut Vec<Case>) {
    let n = if level == Level::Tiny { 200 } else { 5003 };
    for &bins in bin_counts(level, T::TYPE) {
        for (i, pattern) in PATTERNS.into_iter().enumerate() {
            for closed in [false, true] {
                if level < Level::Full && closed != (i % 2 == 0) {
                    continue;
                }
                cases.push(case::<T>(n, i % 4, bins, pattern, closed));
            }
        }
    }
}

pub(super) fn benches(benches: &mut Vec<Bench>) {
    for (pattern, bins) in
        [(Pattern::Even, 256), (Pattern::Cubes, 256), (Pattern::Random, 256), (Pattern::Random, 4096)]
    {
        let form = format!("edges, {bins} bins, {}", pattern.name());
        let samples = |n| Data::Random.generate::<f32>(n, n as u64);
        benches.push(bench_of(form, bins, 0, samples, move || Bins::edges(&pattern.edges::<f32>(bins))));
    }
}
