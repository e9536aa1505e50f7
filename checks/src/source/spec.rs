//! Spec of sources: each expression against the array that it stands for, written and reduced.
//!
//! Expressions of two nodes cover each pair of nodes once, for one type. Single nodes cover the types. Each primitive
//! reads each inner node.

use super::{constant, counting, gpu, load::Load, zip};
use crate::{
    Bins, Buffer, Determinism, Device, Element, ElementType, ErrorKind, Input, Interpolation, Order, ProgramSpec,
    Result, Source, Top, View, ViewMut,
    bench::Bench,
    bf16,
    check::{
        Case, Failure, Level, Spec,
        data::{Data, Rng, random_bits},
        guarded, poison, same, same_bytes, stands_for_its_size,
    },
    f16,
    ladder::Climb,
    op::{Map, NonZero, Op, Sum, Usage},
    tuning::Tuned,
    with_element,
};

use oclprim::internals::reduce::gpu::{self as reduction, Form, Origin};

/// The entry in the registry.
pub(crate) struct Sources;

/// The device that evaluates a case's expression, and the offset of the output in its buffer.
#[derive(Clone, Copy)]
struct Place<'a> {
    device: &'a Device,
    offset: usize,
}

impl Place<'_> {
    /// Compares a source with the array `want`: its elements, and their sum.
    fn check<S: Source<Item: Element> + Copy>(self, source: S, want: &[S::Item]) -> Result<(), Failure> {
        let (device, op) = (self.device, Sum.with(Determinism::Fixed));
        self.check_results(want, &|out| device.transform_into(source, out), &|out| device.reduce_into(source, op, out))
    }

    /// [`Self::check`] of the functions that write the elements and their sum, compiled once for each type.
    fn check_results<T: Element>(
        self,
        want: &[T],
        elements: &Write<'_, T>,
        total: &Write<'_, T>,
    ) -> Result<(), Failure> {
        let Self { device, offset } = self;
        let got = guarded(device, want.len(), offset, |out| Ok(elements(out)?))?;
        same(&got, want, "elements")?;
        let got = guarded(device, 1, offset, |out| Ok(total(out)?))?;
        same(&got, &[sum(want)?], "sum")
    }
}

/// Writes results to a view.
type Write<'w, T> = dyn Fn(ViewMut<'_, T>) -> Result<()> + 'w;

#[inline(never)]
fn sum<T: Element>(x: &[T]) -> Result<T> {
    Device::cpu().reduce(x, Sum)
}

/// The inner nodes, whose items are `f32`.
const INNER: [&str; 9] =
    ["memory", "slice", "map", "zip", "cast", "gathered", "reversed", "strided", "counting and constant"];
/// The nodes over them.
const OUTER: [&str; 7] = ["map", "zip", "cast", "gathered", "reversed", "strided", "take"];
/// The inner nodes of a [`Use`]. Each further node would cost compile time and program size.
const FEW: [&str; 3] = ["memory", "map", "gathered"];

fn scaled(x: f32) -> f32 {
    x * 0.75 + 1.0
}

/// The expression `outer` of `inner`.
fn pair(place: Place<'_>, outer: &str, inner: &str, n: usize, data: Data) -> Result<(), Failure> {
    let Place { device, offset } = place;
    let all = data.generate::<f32>(n + offset, n as u64);
    let bytes = Data::Random.generate::<u8>(n, n as u64 + 1);
    let (buffer, narrow) = (device.upload(&all)?, device.upload(&bytes)?);
    let (x, y) = (&all[offset..], &all[..n]);
    let (a, b) = (buffer.view(offset..)?, buffer.view(..n)?);
    let map = Map::new(scaled as fn(f32) -> f32, "x * 0.75f + 1.0f");
    let product = Map::new(multiply as fn((f32, f32)) -> f32, "a * b");
    let each = |f: &dyn Fn(usize) -> f32| (0..n).map(f).collect::<Vec<f32>>();
    match inner {
        "memory" => outside(place, outer, a, x.to_vec()),
        "slice" => outside(place, outer, x, x.to_vec()),
        "map" => outside(place, outer, a.map(&map), each(&|i| scaled(x[i]))),
        "zip" => outside(place, outer, a.zip(b).map(&product), each(&|i| x[i] * y[i])),
        "cast" => outside(place, outer, narrow.cast::<f32>(), each(&|i| bytes[i].into())),
        "gathered" => {
            let indices = indices(n);
            let index = device.upload(&indices)?;
            outside(place, outer, a.gathered(&index), each(&|i| x[indices[i] as usize]))
        }
        "reversed" => outside(place, outer, a.reversed(), each(&|i| x[n - 1 - i])),
        "strided" => outside(place, outer, a.strided(3), x.iter().step_by(3).copied().collect()),
        _ => {
            let source = zip((counting(-3i32).cast::<f32>(), constant(0.3f32))).map(&product).take(n);
            outside(place, outer, source, each(&|i| (i as f32 - 3.0) * 0.3))
        }
    }
}

/// The use that a case makes of an expression of [`FEW`].
#[derive(Clone, Copy)]
enum Use {
    Neighbours,
    Shuffled,
    /// Reads it by this primitive.
    Read(&'static str),
}

fn use_one(place: Place<'_>, using: Use, inner: &str, n: usize, data: Data) -> Result<(), Failure> {
    let Place { device, offset } = place;
    let all = data.generate::<f32>(n + offset, n as u64);
    let (buffer, x) = (device.upload(&all)?, &all[offset..]);
    let a = buffer.view(offset..)?;
    match inner {
        "memory" => used(place, using, a, x.to_vec()),
        "map" => {
            let map = Map::new(scaled as fn(f32) -> f32, "x * 0.75f + 1.0f");
            used(place, using, a.map(&map), x.iter().map(|x| scaled(*x)).collect())
        }
        _ => {
            let indices = indices(n);
            let index = device.upload(&indices)?;
            used(place, using, a.gathered(&index), indices.iter().map(|&i| x[i as usize]).collect())
        }
    }
}

fn used<S: Source<Item = f32> + Copy>(place: Place<'_>, using: Use, x: S, of: Vec<f32>) -> Result<(), Failure> {
    match using {
        Use::Neighbours => {
            let difference = Map::new(difference as fn((f32, f32)) -> f32, "b - a");
            place.check(x.neighbours::<2>().map(&difference), &differences(&of))
        }
        Use::Shuffled => place.check(x.shuffled(of.len() as u64), &shuffled(&of)?),
        Use::Read(primitive) => {
            let cpu = Device::cpu();
            let (got, want) = (read(place.device, primitive, x)?, read(&cpu, primitive, &of)?);
            same(&got, &want, "results")
        }
    }
}

fn difference((a, b): (f32, f32)) -> f32 {
    b - a
}

fn differences(of: &[f32]) -> Vec<f32> {
    of.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The elements `of` in shuffled order. The CPU backend shuffles their indices with the seed `of.len()`.
fn shuffled(of: &[f32]) -> Result<Vec<f32>> {
    let order = Device::cpu().transform(counting(0u64).take(of.len()).shuffled(of.len() as u64))?.to_vec()?;
    Ok(order.into_iter().map(|i| of[i as usize]).collect())
}

fn positive(x: f32) -> bool {
    x > 0.25
}

fn third(i: u32) -> u32 {
    i / 3
}

/// Primitives other than sums and transforms.
const PRIMITIVES: [&str; 16] = [
    "scan",
    "counted",
    "statistics",
    "min-max",
    "arg-max",
    "count",
    "histogram",
    "weighted histogram",
    "top k",
    "quantiles",
    "select",
    "partition",
    "unique",
    "segments",
    "by key",
    "components",
];

/// The results of a primitive, as bits.
fn read<S: Source<Item = f32> + Copy>(device: &Device, primitive: &str, x: S) -> Result<Vec<u64>> {
    let n = x.length()?.unwrap_or(0);
    let positive = Map::new(positive as fn(f32) -> bool, "x > 0.25f");
    Ok(match primitive {
        "scan" => bits(device.scan(x, Sum)?.to_vec()?),
        "counted" => {
            let (count, mut out) = (device.upload(&[n as u32 / 2])?, device.zeroed::<f32>(n)?);
            device.transform_into(x.take(&count), &mut out)?;
            let mut found = bits(out.to_vec()?);
            found.extend(bits(vec![device.reduce(x.take(&count), Sum)?]));
            found.extend(bits(vec![device.reduce(x.take(&count), Sum.exact())?]));
            found.push(device.count(x.take(&count), NonZero)?);
            device.scan_into(x.take(&count), Sum, &mut out)?;
            found.extend(bits(out.to_vec()?));
            found.extend(device.histogram(x.take(&count), &Bins::even(-2.0, 2.0, 7)?)?.counts);
            found
        }
        _ if n == 0 => Vec::new(),
        "statistics" => {
            let found = device.statistics(x)?;
            vec![found.nan as u64, found.min.index as u64, found.max.index as u64, found.mean.to_bits()]
        }
        "min-max" => {
            let found = device.min_max(x)?;
            vec![found.min.index as u64, found.max.index as u64, found.max.value.to_bits().into()]
        }
        "arg-max" => vec![device.arg_max(x)?.index as u64],
        "count" => vec![device.count(x, NonZero)?, device.any(x, NonZero)?.into(), device.all(x, NonZero)?.into()],
        "histogram" => device.histogram(x, &Bins::even(-2.0, 2.0, 7)?)?.counts,
        "weighted histogram" => bits(device.histogram(x.weighted(x), &Bins::even(-2.0, 2.0, 7)?)?.sums),
        "top k" => bits(device.top_k(x, Top::largest(n.min(5)))?.to_vec()?),
        "quantiles" => wide_bits(device.quantile(x, &[0.0, 0.3, 1.0], Interpolation::Lower)?),
        "select" => bits(device.select(x, &positive)?.to_vec()?),
        "partition" => {
            let (out, count) = device.partition(x, &positive)?;
            let mut found = bits(out.to_vec()?);
            found.push(count as u64);
            found
        }
        "unique" => bits(device.unique(x)?.to_vec()?),
        "segments" => {
            let offsets = counting(0u32).strided(2).take(n / 2 + 1);
            bits(device.reduce(x.take(n / 2 * 2).segments(offsets), Sum)?.to_vec()?)
        }
        "components" => {
            let (first, second) = device.transform(x.zip(counting(0u16)))?;
            let mut found = bits(first.to_vec()?);
            found.extend(second.to_vec()?.into_iter().map(u64::from));
            found
        }
        _ => {
            let keys = counting(0u32).map(Map::new(third as fn(u32) -> u32, "x / 3u")).take(n);
            bits(device.scan(x.by_key(keys), Sum)?.to_vec()?)
        }
    })
}

fn bits(x: Vec<f32>) -> Vec<u64> {
    x.into_iter().map(|x| x.to_bits().into()).collect()
}

fn wide_bits(x: Vec<f64>) -> Vec<u64> {
    x.into_iter().map(f64::to_bits).collect()
}

fn outside<S: Source<Item = f32> + Copy>(place: Place<'_>, outer: &str, x: S, of: Vec<f32>) -> Result<(), Failure> {
    let (n, want) = (of.len(), wanted(outer, &of));
    match outer {
        "map" => place.check(x.map(&Map::new(scaled as fn(f32) -> f32, "x * 0.75f + 1.0f")), &want),
        "zip" => {
            let of_even = Map::new(of_even as fn((f32, u16)) -> f32, "(b & 1) == 0 ? a : 0.5f");
            place.check(x.zip(counting(0u16)).map(&of_even), &want)
        }
        "cast" => place.check(x.cast::<f16>(), &casted::<f32, f16>(&want)),
        "gathered" => place.check(x.gathered(&indices(n)), &want),
        "reversed" => place.check(x.reversed(), &want),
        "strided" => place.check(x.strided(2), &want),
        _ => place.check(x.take(n / 2), &want),
    }
}

fn of_even((a, b): (f32, u16)) -> f32 {
    if b & 1 == 0 { a } else { 0.5 }
}

/// The elements of the node `outer` over an expression with the elements `of`. For a cast, the elements before the
/// cast.
fn wanted(outer: &str, of: &[f32]) -> Vec<f32> {
    let n = of.len();
    match outer {
        "map" => of.iter().map(|x| scaled(*x)).collect(),
        "zip" => of.iter().zip(0..).map(|(x, i)| of_even((*x, i as u16))).collect(),
        "gathered" => indices(n).into_iter().map(|i| of[i as usize]).collect(),
        "reversed" => of.iter().rev().copied().collect(),
        "strided" => of.iter().step_by(2).copied().collect(),
        "take" => of[..n / 2].to_vec(),
        _ => of.to_vec(),
    }
}

/// Indices of `n` elements, in random order.
fn indices(n: usize) -> Vec<u32> {
    let mut rng = Rng::new(n as u64);
    (0..n).map(|_| (rng.next() % n as u64) as u32).collect()
}

/// The nodes that take every type.
fn typed<T: Element>(place: Place<'_>, node: &str, n: usize) -> Result<(), Failure> {
    let Place { device, offset } = place;
    let all = Data::Special.generate::<T>(n + offset, n as u64);
    let (buffer, x) = (device.upload(&all)?, &all[offset..]);
    let view = buffer.view(offset..)?;
    match node {
        "reversed" => {
            let mut want = x.to_vec();
            want.reverse();
            place.check(view.reversed(), &want)
        }
        "gathered" => {
            let (small, mut want) = (small_indices(n), Vec::with_capacity(n));
            for i in &small {
                want.push(x[usize::from(*i)]);
            }
            place.check(view.gathered(&small), &want)
        }
        "constant" => place.check(constant(T::HIGHEST).take(n), &vec![T::HIGHEST; n]),
        _ => {
            cast::<T, i16>(place, view, x)?;
            cast::<T, u64>(place, view, x)?;
            cast::<T, f32>(place, view, x)
        }
    }
}

/// `n` random indices below 256 and below `n`.
fn small_indices(n: usize) -> Vec<u8> {
    let mut indices = Data::Random.generate::<u8>(n, 1);
    indices.iter_mut().for_each(|i| *i = (usize::from(*i) % n.clamp(1, 256)) as u8);
    indices
}

fn cast<T: Element, U: Element>(place: Place<'_>, view: View<'_, T>, x: &[T]) -> Result<(), Failure> {
    place.check(view.cast::<U>(), &casted(x))
}

fn casted<T: Element, U: Element>(x: &[T]) -> Vec<U> {
    let mut all = Vec::with_capacity(x.len());
    for x in x {
        all.push(x.cast());
    }
    all
}

/// Compares selections, sorts, extremes and the largest elements by a count on the device with those of the CPU.
fn by_count(device: &Device, n: usize) -> Result<(), Failure> {
    let x = Data::Special.generate::<f32>(n, 3);
    for count in [0, 1, n as u32 / 2, n as u32, u32::MAX] {
        same(&of_count(device, &x, count)?, &of_count(&Device::cpu(), &x, count)?, &format!("the first {count}"))?;
    }
    Ok(())
}

fn of_count(device: &Device, x: &[f32], count: u32) -> Result<Vec<u64>> {
    let (x, count) = (device.upload(x)?, device.upload(&[count])?);
    let (mut out, mut indices) = (device.zeroed::<f32>(x.len())?, device.zeroed::<u32>(x.len())?);
    let (mut values, mut found) = (device.zeroed::<f32>(2)?, device.zeroed::<u64>(2)?);
    let positive = Map::new(positive as fn(f32) -> bool, "x > 0.25f");
    let first = || x.take(&count);
    let mut all = bits(device.select(first(), &positive)?.to_vec()?);
    device.partition_into(first(), &positive, &mut out, found.view_mut(..1)?)?;
    all.extend(bits(out.to_vec()?));
    all.extend(bits(device.unique(first())?.to_vec()?));
    device.sort_into(first(), Order::ascending(), &mut out)?;
    all.extend(bits(out.to_vec()?));
    device.argsort_into(first(), Order::descending(), &mut indices)?;
    all.extend(indices.to_vec()?.into_iter().map(u64::from));
    device.top_k_into(first(), Top::largest(x.len().min(10)).sorted(), out.view_mut(..x.len().min(10))?)?;
    all.extend(bits(out.to_vec()?));
    all.extend(found.to_vec()?);
    device.min_max_into(first(), &mut values, &mut found)?;
    all.extend(bits(values.to_vec()?).into_iter().chain(found.to_vec()?));
    Ok(all)
}

fn sizes(level: Level) -> &'static [usize] {
    match level {
        Level::Tiny => &[1027],
        Level::Quick => &[0, 1, 1027, 16_385],
        Level::Full => &[0, 1, 3, 255, 1023, 1024, 1025, 16_383, 16_384, 16_385, 100_003],
    }
}

/// Writes structs and numbers in one launch.
fn components_with_structs(device: &Device, n: usize) -> Result<(), Failure> {
    let structs: Vec<[u16; 3]> = random_bits(n, n as u64);
    let on_device = device.upload(&structs)?;
    let (found, numbers) = device.transform(on_device.reversed().zip(counting(7u32)))?;
    same_bytes(&found.to_vec()?, &structs.into_iter().rev().collect::<Vec<_>>(), "structs")?;
    same_bytes(&numbers.to_vec()?, &(7..7 + n as u32).collect::<Vec<_>>(), "numbers")
}

impl Spec for Sources {
    fn name(&self) -> &'static str {
        "source"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        let mut cases = Vec::new();
        let data_sets = if level == Level::Full { &[Data::Random, Data::Special][..] } else { &[Data::Special] };
        for (i, outer) in OUTER.into_iter().enumerate() {
            for (k, inner) in INNER.into_iter().enumerate() {
                // Each pair costs two builds. Short runs have each outer and each inner node.
                if level == Level::Tiny && (i != k % OUTER.len()) {
                    continue;
                }
                for &n in sizes(level) {
                    for &data in data_sets {
                        let (name, shape) = (format!("{outer} of {inner}"), format!("n = {n}"));
                        cases.push(Case::new(name, ElementType::F32, shape, data.name(), n, move |device| {
                            pair(Place { device, offset: n % 4 }, outer, inner, n, data)
                        }));
                    }
                }
            }
        }
        let others = [("neighbours", Use::Neighbours), ("shuffled", Use::Shuffled)];
        let others = others.into_iter().chain(PRIMITIVES.map(|primitive| (primitive, Use::Read(primitive))));
        for (i, (outer, using)) in others.enumerate() {
            for (k, inner) in FEW.into_iter().enumerate() {
                if level == Level::Tiny && k != i % FEW.len() {
                    continue;
                }
                for &n in sizes(level).iter().filter(|&&n| n % 4 == 3 || !matches!(using, Use::Read(_))) {
                    let (name, shape) = (format!("{outer} of {inner}"), format!("n = {n}"));
                    let data = Data::Random;
                    cases.push(Case::new(name, ElementType::F32, shape, data.name(), n, move |device| {
                        use_one(Place { device, offset: n % 4 }, using, inner, n, data)
                    }));
                }
            }
        }
        for element in ElementType::ALL.into_iter().filter(|&element| stands_for_its_size(level, element)) {
            for node in ["reversed", "gathered", "constant", "cast"] {
                for &n in sizes(level).iter().filter(|&&n| n % 2 == 1) {
                    with_element!(element, T => cases.push(Case::new(
                        node, element, format!("n = {n}"), Data::Special.name(), n,
                        move |device| typed::<T>(Place { device, offset: 3 }, node, n),
                    )));
                }
            }
        }
        for &n in sizes(level).iter().filter(|&&n| n % 2 == 1) {
            let (shape, data) = (format!("n = {n}"), Data::Special.name());
            let check = move |device: &Device| by_count(device, n);
            cases.push(Case::new("by a count", ElementType::F32, shape, data, n, check));
            let (shape, data) = (format!("n = {n}"), Data::Random.name());
            let check = move |device: &Device| components_with_structs(device, n);
            cases.push(Case::new("components with structs", ElementType::U16, shape, data, n, check));
        }
        cases
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        let (floats, bytes) = (Input::<f32>::Host(&[]), Input::<u8>::Host(&[]));
        let product = Map::new(multiply as fn((f32, f32)) -> f32, "a * b");
        let mut programs = Vec::new();
        for (aligned, wide) in [(false, false), (true, false), (true, true)] {
            add(&mut programs, caps, floats.zip(floats).map(&product), aligned, wide);
            add(&mut programs, caps, bytes.cast::<f64>(), aligned, wide);
            add(&mut programs, caps, floats.cast::<f16>(), aligned, wide);
            add(&mut programs, caps, floats.gathered(counting(0u32).take(0).reversed()), aligned, wide);
            add(&mut programs, caps, bytes.strided(2), aligned, wide);
            add(&mut programs, caps, bytes.cast::<bf16>(), aligned, wide);
            add(&mut programs, caps, floats.cast::<i8>(), aligned, wide);
            add(&mut programs, caps, floats.take(0).shuffled(1), aligned, wide);
            let structs = Load::without_device(&Input::<[u16; 3]>::Host(&[]).strided(2), aligned);
            let plan = supported(gpu::plan(1 << 20, &structs.expect("the source has a load"), None, caps, wide));
            programs.extend(plan.map(|plan| plan.program));
            add(&mut programs, caps, floats.neighbours::<2>().map(&product), aligned, wide);
            let structs = Input::<[u16; 3]>::Host(&[]).reversed();
            for several in [
                Load::several_without_device(&zip((floats, bytes, floats.reversed())), aligned),
                Load::several_without_device(&zip((floats, structs)), aligned),
            ] {
                let load = several.expect("the source has a load");
                let plan = supported(gpu::plan_several(1 << 20, &load, caps, wide));
                programs.extend(plan.map(|plan| plan.program));
            }
        }
        programs
    }

    fn benches(&self) -> Vec<Bench> {
        vec![
            bench("sum of x * x", 4, Some(1), |this, out| {
                this.sum(this.x.map(&Map::new(square as fn(f32) -> f32, "x * x")), out)
            }),
            bench("dot", 8, Some(1), |this, out| {
                this.sum(this.x.zip(&this.y).map(&Map::new(multiply as fn((f32, f32)) -> f32, "a * b")), out)
            }),
            bench("sum of cubed distances", 4, Some(1), |this, out| {
                let text = "fabs(x - 0.5f) * ((x - 0.5f) * (x - 0.5f))";
                this.sum(this.x.map(&Map::new(cube as fn(f32) -> f32, text)), out)
            }),
            bench("count of x < 0.5", 4, Some(1), |this, out| {
                this.sum(this.x.map(&Map::new(low as fn(f32) -> u32, "x < 0.5f ? 1u : 0u")), out)
            }),
            bench("sum of a gather, sorted", 8, Some(1), |this, out| this.sum(this.x.gathered(&this.index), out)),
            bench("transform of x * x", 8, None, |this, out| {
                this.device.transform_into(this.x.map(&Map::new(square as fn(f32) -> f32, "x * x")), out)
            }),
            bench("transform of x * y", 12, None, |this, out| {
                let product = Map::new(multiply as fn((f32, f32)) -> f32, "a * b");
                this.device.transform_into(this.x.zip(&this.y).map(&product), out)
            }),
        ]
    }
}

fn square(x: f32) -> f32 {
    x * x
}

fn cube(x: f32) -> f32 {
    (x - 0.5).abs() * ((x - 0.5) * (x - 0.5))
}

fn low(x: f32) -> u32 {
    u32::from(x < 0.5)
}

fn multiply((a, b): (f32, f32)) -> f32 {
    a * b
}

/// Adds the programs that write and that add up a source.
fn add<S: Source<Item: Element>>(programs: &mut Vec<ProgramSpec>, caps: &Tuned, source: S, aligned: bool, wide: bool)
where
    Sum: Op<S::Item>,
{
    let load = Load::without_device(&source, aligned).expect("the source has a load");
    let form = Form::of::<S::Item, Sum>(Determinism::Fixed);
    // One program with a count stands for all programs with one.
    let counts: &[_] = if aligned && !wide { &[None, Some(ElementType::U64)] } else { &[None] };
    for &count in counts {
        let form = Form { count, ..form.clone() };
        let plan = supported(gpu::plan(1 << 20, &load, count, caps, wide));
        programs.extend(plan.map(|plan| plan.program));
        let plan = supported(reduction::plan(1 << 20, &form, Origin::Source(&load), caps, &|_| wide));
        programs.extend(plan.into_iter().flat_map(|plan| plan.passes).map(|pass| pass.program));
    }
}

/// The plan, unless the device lacks what it needs, such as fp64.
fn supported<P>(plan: Result<P>) -> Option<P> {
    match plan {
        Err(error) if error.kind() == ErrorKind::Unsupported => None,
        plan => Some(plan.expect("the device has what the plan needs")),
    }
}

/// The inputs of a benchmark: two arrays, and sorted indices.
struct Inputs {
    device: Device,
    x: Buffer<f32>,
    y: Buffer<f32>,
    index: Buffer<u32>,
}

impl Inputs {
    fn new(device: &Device, n: usize) -> Result<Self> {
        let mut index: Vec<u32> = Data::Random.generate(n, 1);
        index.iter_mut().for_each(|index| *index %= n.max(1) as u32);
        let index = device.sort(&index, Order::ascending())?;
        let [x, y] = [2, 3].map(|seed| device.upload(&Data::Random.generate::<f32>(n, seed)));
        Ok(Self { device: device.clone(), x: x?, y: y?, index })
    }

    fn sum<S: Source<Item: Element>>(&self, source: S, out: &mut Buffer<S::Item>) -> Result<()>
    where
        Sum: Op<S::Item>,
    {
        self.device.reduce_into(source, Sum, out)
    }
}

/// A benchmark of a source that reads and writes `bytes` bytes for each element, with as many outputs as elements by
/// default.
fn bench<R: Element>(
    name: &str,
    bytes: u64,
    outputs: Option<usize>,
    run: fn(&Inputs, &mut Buffer<R>) -> Result<()>,
) -> Bench {
    Bench::new(
        name,
        ElementType::F32,
        move |n| bytes * n as u64,
        move |device, n| {
            Ok(Climb::new(
                (Inputs::new(device, n)?, device.zeroed::<R>(outputs.unwrap_or(n))?),
                |(_, out)| out.fill(poison()),
                move |(inputs, out)| run(inputs, out),
                move |(_, out)| {
                    let cpu = Inputs::new(&Device::cpu(), n)?;
                    let mut want = cpu.device.zeroed::<R>(outputs.unwrap_or(n))?;
                    run(&cpu, &mut want)?;
                    same(&out.to_vec()?, &want.to_vec()?, "elements")
                },
            ))
        },
    )
}
