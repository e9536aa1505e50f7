//! Shared parts of the specs of scans.

use super::{Scan, cpu, in_scan};
use crate::{
    Buffer, Device, Element, Tuning,
    bench::Bench,
    check::{Level, hard::Numbers, poison, same},
    ladder::Climb,
    op::Sum,
};

/// Combines two values, each given by its number, and returns the number of the result. Value 0 is the identity, and
/// value 1 + i is input value i. Code that uses numbers in place of values is compiled once for all types.
type Join<'j> = dyn FnMut(usize, usize) -> usize + 'j;

/// Calls `body` with a [`Join`] over `values`, and returns all values in the order of their numbers.
fn numbered<P: Copy>(
    combine: &dyn Fn(P, P) -> P,
    identity: P,
    values: &[P],
    body: &mut dyn FnMut(&mut Join<'_>),
) -> Vec<P> {
    let mut all = vec![identity];
    all.extend_from_slice(values);
    body(&mut |a, b| {
        all.push(combine(all[a], all[b]));
        all.len() - 1
    });
    all
}

/// The values with these numbers.
fn values_of<P: Copy>(all: &[P], numbers: &[usize]) -> Vec<P> {
    let mut values = Vec::with_capacity(numbers.len());
    for &number in numbers {
        values.push(all[number]);
    }
    values
}

/// Aggregates of every 2^b neighbours, for every b.
struct Blocks {
    levels: Vec<Vec<usize>>,
}

impl Blocks {
    fn of(aggregates: Vec<usize>, join: &mut Join<'_>) -> Self {
        let mut levels = vec![aggregates];
        while levels[levels.len() - 1].len() > 1 {
            let below = &levels[levels.len() - 1];
            let above = below.chunks_exact(2).map(|pair| join(pair[0], pair[1])).collect();
            levels.push(above);
        }
        Self { levels }
    }

    fn exclusive_prefix(&self, k: usize, join: &mut Join<'_>) -> usize {
        let set = (0..usize::BITS).filter(|b| k >> b & 1 == 1);
        set.fold(0, |before, b| join(self.levels[b as usize][(k >> b) - 1], before))
    }
}

/// Exclusive prefixes by the definition in `cl/scan.cl`: one entry for each run of `run` among `results` results. The
/// first part of an entry has the prefixes over tile groups and tiles, the highest level first. The second part is the
/// run's prefix within its tile.
pub(super) fn exclusive_prefixes<P: Copy>(
    combine: &dyn Fn(P, P) -> P,
    identity: P,
    values: &[P],
    run: usize,
    results: usize,
) -> Vec<(Vec<P>, P)> {
    let mut found = Vec::new();
    let all = numbered(combine, identity, values, &mut |join| {
        found = numbered_prefixes(join, values.len(), run, results);
    });
    let mut prefixes = Vec::with_capacity(found.len());
    for (digits, own) in found {
        prefixes.push((values_of(&all, &digits), all[own]));
    }
    prefixes
}

fn numbered_prefixes(join: &mut Join<'_>, n: usize, run: usize, results: usize) -> Vec<(Vec<usize>, usize)> {
    let values: Vec<usize> = (1..=n).collect();
    let (mut tiles, mut tops) = (Vec::new(), Vec::new());
    for tile in values.chunks(cpu::TILE_RUNS * run) {
        let mut chunks = Vec::new();
        for chunk in tile.chunks(cpu::CHUNK_RUNS * run) {
            let runs = chunk.chunks(run);
            let aggregates = runs.map(|run| run[1..].iter().fold(run[0], |aggregate, &x| join(aggregate, x))).collect();
            chunks.push(Blocks::of(aggregates, join));
        }
        // A tile's aggregates exclude an incomplete chunk.
        let whole = chunks.iter().filter_map(|chunk| chunk.levels.get(5)).map(|aggregate| aggregate[0]);
        tops.push(Blocks::of(whole.collect(), join));
        tiles.push(chunks);
    }
    let aggregates = tops.iter().filter_map(|tile| tile.levels.get(6)).map(|aggregate| aggregate[0]).collect();
    let levels = levels(join, aggregates);
    let each = |first: usize| {
        let (t, r) = (first / run / cpu::TILE_RUNS, first / run % cpu::TILE_RUNS);
        let (c, r) = (r / cpu::CHUNK_RUNS, r % cpu::CHUNK_RUNS);
        let chunk = tiles.get(t).and_then(|tile| tile.get(c));
        let of_run = chunk.map_or(0, |chunk| chunk.exclusive_prefix(r, join));
        let of_chunk = tops.get(t).map_or(0, |tile| tile.exclusive_prefix(c, join));
        (digits(join, &levels, t), join(of_chunk, of_run))
    };
    (0..results).step_by(run).map(each).collect()
}

/// Exclusive prefixes of `count` chunks with these `aggregates`. Each chunk has one prefix for each level, the highest
/// level first. An incomplete last chunk needs no aggregate.
pub(super) fn chunk_prefixes<P: Copy>(
    combine: &dyn Fn(P, P) -> P,
    identity: P,
    aggregates: &[P],
    count: usize,
) -> Vec<Vec<P>> {
    let mut found = Vec::new();
    let all = numbered(combine, identity, aggregates, &mut |join| {
        let levels = levels(join, (1..=aggregates.len()).collect());
        found = (0..count).map(|chunk| digits(join, &levels, chunk)).collect();
    });
    let mut prefixes = Vec::with_capacity(count);
    for digits in found {
        prefixes.push(values_of(&all, &digits));
    }
    prefixes
}

fn exclusive_prefix(join: &mut Join<'_>, aggregates: &[usize], k: usize) -> usize {
    Blocks::of(aggregates.to_vec(), join).exclusive_prefix(k, join)
}

/// Aggregates of tiles or chunks, of groups of 32 of them, of groups of 32 of these, and so on.
fn levels(join: &mut Join<'_>, aggregates: Vec<usize>) -> Vec<Vec<usize>> {
    let mut levels = vec![aggregates];
    while levels[levels.len() - 1].len() >= cpu::BLOCK {
        let mut above = Vec::new();
        for block in levels[levels.len() - 1].chunks_exact(cpu::BLOCK) {
            let prefix = exclusive_prefix(join, block, cpu::BLOCK - 1);
            above.push(join(prefix, block[cpu::BLOCK - 1]));
        }
        levels.push(above);
    }
    levels
}

/// Exclusive prefix of tile or chunk `t` at each level, the highest level first.
fn digits(join: &mut Join<'_>, levels: &[Vec<usize>], mut t: usize) -> Vec<usize> {
    let mut digits = Vec::new();
    for level in levels {
        let block = t / cpu::BLOCK * cpu::BLOCK;
        let aggregates = &level[block.min(level.len())..t.min(level.len())];
        digits.push(exclusive_prefix(join, aggregates, t % cpu::BLOCK));
        t /= cpu::BLOCK;
    }
    digits.reverse();
    digits
}

/// Sizes at the edges of runs, chunks, rows, tiles and tile groups.
pub(super) fn sizes<T>(level: Level) -> Vec<usize> {
    let (run, tile) = (cpu::run::<T>(), cpu::tile::<T>());
    let mut sizes = vec![1, tile + 3, run + 1];
    if level >= Level::Quick {
        sizes.extend([0, 33 * run, 257 * run - 1, tile, 2 * tile - 1]);
    }
    if level >= Level::Full {
        sizes.extend([2, run, tile - 1, tile + 1, 3 * tile, 37 * tile + 5, 1_000_003]);
    }
    sizes
}

/// State of a benchmark case.
struct Measured<T: Element> {
    device: Device,
    host: Vec<T>,
    x: Buffer<T>,
    out: Buffer<T>,
}

/// `outputs` returns the number of results of n elements.
pub(in crate::scan) fn bench_of<T: Element>(
    name: String,
    kind: Scan<T>,
    outputs: impl Fn(usize) -> usize + Send + Sync + 'static,
    numbers: Numbers,
    tuning: Option<Tuning>,
) -> Bench {
    let bytes = |n: usize| 2 * (n * size_of::<T>()) as u64;
    Bench::new(name, T::TYPE, bytes, move |device, n| {
        let host = numbers.generate::<T>(n);
        let (x, out) = (device.upload(&host)?, device.zeroed(outputs(n))?);
        let device = tuning.clone().map_or_else(|| Ok(device.clone()), |tuning| device.with_tuning(tuning))?;
        let state = Measured { device, host, x, out };
        let run = move |this: &mut Measured<T>| {
            let Measured { device, x, out, .. } = this;
            device.scan_into(&*x, in_scan(Sum, kind), &mut *out)
        };
        let verify = move |this: &mut Measured<T>| {
            let mut want = vec![T::ZERO; this.out.len()];
            Device::cpu().scan_into(&this.host, in_scan(Sum, kind), &mut want)?;
            same(&this.out.to_vec()?, &want, "results")
        };
        Ok(Climb::new(state, |this| this.out.fill(poison()), run, verify))
    })
}
