//! Shared parts of the specs of scans.

use super::{Scan, cpu, in_scan};
use crate::{
    Buffer, Device, Element, Tuning,
    bench::Bench,
    check::{Level, hard::Numbers, poison, same},
    ladder::Climb,
    op::Sum,
};

/// Aggregates of every 2^b neighbours, for every b.
struct Blocks<A> {
    levels: Vec<Vec<A>>,
}

impl<A: Copy> Blocks<A> {
    fn of(aggregates: &[A], combine: &dyn Fn(A, A) -> A) -> Self {
        let mut levels = vec![aggregates.to_vec()];
        while levels[levels.len() - 1].len() > 1 {
            let below = &levels[levels.len() - 1];
            let above = below.chunks_exact(2).map(|pair| combine(pair[0], pair[1])).collect();
            levels.push(above);
        }
        Self { levels }
    }

    fn exclusive_prefix(&self, k: usize, identity: A, combine: &dyn Fn(A, A) -> A) -> A {
        let set = (0..usize::BITS).filter(|b| k >> b & 1 == 1);
        set.fold(identity, |before, b| combine(self.levels[b as usize][(k >> b) - 1], before))
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
    let aggregate = |run: &[P]| run[1..].iter().fold(run[0], |aggregate, &x| combine(aggregate, x));
    let chunks = |tile: &[P]| -> Vec<_> {
        let chunks = tile.chunks(cpu::CHUNK_RUNS * run);
        chunks.map(|chunk| Blocks::of(&chunk.chunks(run).map(aggregate).collect::<Vec<_>>(), combine)).collect()
    };
    let tiles: Vec<_> = values.chunks(cpu::TILE_RUNS * run).map(chunks).collect();
    // A tile's aggregates exclude an incomplete chunk.
    let whole = |tile: &Vec<Blocks<P>>| {
        let aggregates: Vec<_> =
            tile.iter().filter_map(|chunk| chunk.levels.get(5)).map(|aggregate| aggregate[0]).collect();
        Blocks::of(&aggregates, combine)
    };
    let tops: Vec<_> = tiles.iter().map(whole).collect();
    let aggregates: Vec<_> = tops.iter().filter_map(|tile| tile.levels.get(6)).map(|aggregate| aggregate[0]).collect();
    let levels = levels(combine, identity, aggregates);
    let each = |first: usize| {
        let (t, r) = (first / run / cpu::TILE_RUNS, first / run % cpu::TILE_RUNS);
        let (c, r) = (r / cpu::CHUNK_RUNS, r % cpu::CHUNK_RUNS);
        let chunk = tiles.get(t).and_then(|tile| tile.get(c));
        let of_run = chunk.map_or(identity, |chunk| chunk.exclusive_prefix(r, identity, combine));
        let of_chunk = tops.get(t).map_or(identity, |tile| tile.exclusive_prefix(c, identity, combine));
        (digits(combine, identity, &levels, t), combine(of_chunk, of_run))
    };
    (0..results).step_by(run).map(each).collect()
}

fn exclusive_prefix<P: Copy>(combine: &dyn Fn(P, P) -> P, identity: P, aggregates: &[P], k: usize) -> P {
    Blocks::of(aggregates, combine).exclusive_prefix(k, identity, combine)
}

/// Aggregates of tiles or chunks, of groups of 32 of them, of groups of 32 of these, and so on.
pub(super) fn levels<P: Copy>(combine: &dyn Fn(P, P) -> P, identity: P, aggregates: Vec<P>) -> Vec<Vec<P>> {
    let mut levels = vec![aggregates];
    while levels[levels.len() - 1].len() >= cpu::BLOCK {
        let below = levels[levels.len() - 1].chunks_exact(cpu::BLOCK);
        let above =
            below.map(|b| combine(exclusive_prefix(combine, identity, b, cpu::BLOCK - 1), b[cpu::BLOCK - 1])).collect();
        levels.push(above);
    }
    levels
}

/// Exclusive prefix of tile or chunk `t` at each level, the highest level first.
pub(super) fn digits<P: Copy>(combine: &dyn Fn(P, P) -> P, identity: P, levels: &[Vec<P>], mut t: usize) -> Vec<P> {
    let mut digits = Vec::new();
    for level in levels {
        let block = t / cpu::BLOCK * cpu::BLOCK;
        let aggregates = &level[block.min(level.len())..t.min(level.len())];
        digits.push(exclusive_prefix(combine, identity, aggregates, t % cpu::BLOCK));
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
