//! Bins between given edges, and the table that shortens the search among the edges.

use std::fmt;

use super::held::Held;
use super::slots::{ABOVE, BELOW, NAN, Real, check_count, to_i128};
use crate::{Element, ElementType, Error, Result, memory};

/// The table has room for at least 4 cells per bin, but at most 2^20 in all. If there are few bins, it has room for 16
/// cells per bin, up to 4096 in all. A cell with at most one edge needs at most one comparison.
const CELLS_PER_BIN: usize = 4;
const CELLS_PER_FEW: usize = 16;
const FEW_CELLS: usize = 4096;
const MAX_CELLS: usize = 1 << 20;
/// The low bits of a table entry count the edges in earlier cells. From this bit on, the entry counts the edges in its
/// own cell, up to `MANY`.
const COUNT_BIT: u32 = 24;
const MANY: u32 = 255;

/// The maximum number of cells for `bins` bins; a power of two.
pub(crate) fn cell_room(bins: usize) -> usize {
    let many = (CELLS_PER_FEW * bins).next_power_of_two().min(FEW_CELLS);
    (CELLS_PER_BIN * bins).next_power_of_two().clamp(many, MAX_CELLS)
}

/// Edges in ascending order.
pub struct List {
    bins: u32,
    pub(crate) values: Values,
    /// An entry per cell, and one more.
    pub(crate) guide: Vec<u32>,
    pub(crate) on_device: Held,
}

/// The edges, in the type in which samples are compared with them, and the parameters that map a sample to its cell.
#[derive(Debug, PartialEq)]
pub(crate) enum Values {
    /// Edges as distances from the lowest edge.
    Integers {
        lower: i128,
        edges: Vec<u64>,
        shift: u32,
        narrow: bool,
    },
    F32(Scaled<f32>),
    F64(Scaled<f64>),
}

/// Edges of floats. Cells divide the range from the first finite edge to the last one.
#[derive(Debug, PartialEq)]
pub(crate) struct Scaled<F> {
    pub(crate) edges: Vec<F>,
    pub(crate) anchor: F,
    /// Cells per two units of distance: the mapping multiplies half the distance by this factor.
    pub(crate) scale: F,
}

impl<F: Real> Scaled<F> {
    /// The scaled edges, and the number of cells.
    fn new(edges: Vec<F>) -> (Self, usize) {
        let finite = |x: &&F| x.wide().is_finite();
        let ends = edges.iter().find(finite).zip(edges.iter().rev().find(finite));
        let (anchor, extent) = ends.map_or((F::ZERO, F::ZERO), |(&a, &b)| (a, b * F::HALF - a * F::HALF));
        let cells = cell_room(edges.len() - 1);
        let scale = F::of(cells as u32) / extent;
        // The mapping to cells must not depend on whether a device keeps subnormals.
        if extent.wide() > 1e-30 && scale.wide().is_finite() {
            (Self { edges, anchor, scale }, cells)
        } else {
            (Self { edges, anchor: F::ZERO, scale: F::ZERO }, 1)
        }
    }

    #[inline]
    fn cell(&self, x: F, cells: usize) -> usize {
        let guess = (x * F::HALF - self.anchor * F::HALF) * self.scale;
        (guess.whole() as usize).min(cells - 1)
    }

    #[inline]
    fn slot(&self, guide: &[u32], closed: bool, x: F) -> u32 {
        let bins = self.edges.len() - 1;
        let (lower, upper) = (self.edges[0], self.edges[bins]);
        if x < lower {
            bins as u32 + BELOW
        } else if x >= upper {
            if x == upper && closed { bins as u32 - 1 } else { bins as u32 + ABOVE }
        } else if x.nan() {
            bins as u32 + NAN
        } else {
            search(&self.edges, guide, self.cell(x, guide.len() - 1), x)
        }
    }
}

/// The table for the mapping `cell`, which returns the cell of an edge. Entries count all edges but the first and the
/// last.
fn guide(bins: usize, cells: usize, cell: impl Fn(usize) -> usize) -> Result<Vec<u32>> {
    let mut counts = memory::zeroed::<u32>(cells)?;
    (1..bins).for_each(|k| counts[cell(k)] += 1);
    let mut before = 0;
    let mut entries: Vec<u32> = memory::with_capacity(cells + 1)?;
    for count in counts {
        entries.push(before | Ord::min(count, MANY) << COUNT_BIT);
        before += count;
    }
    entries.push(before);
    Ok(entries)
}

/// The bin of a sample in this cell, by the arithmetic of `cl/lib/bins.cl`. The sample is neither below nor above the
/// range.
fn search<E: Copy + PartialOrd>(edges: &[E], guide: &[u32], cell: usize, x: E) -> u32 {
    const BEFORE: u32 = (1 << COUNT_BIT) - 1;
    let entry = guide[cell];
    let (mut bin, mut left) = (entry & BEFORE, entry >> COUNT_BIT);
    if left == MANY {
        left = (guide[cell + 1] & BEFORE) - bin;
    }
    while left > 0 {
        let step = left.div_ceil(2);
        let reached = x >= edges[(bin + step) as usize];
        bin += if reached { step } else { 0 };
        left = if reached { left - step } else { step - 1 };
    }
    bin
}

impl List {
    /// Edge `k`, rounded to `f64`.
    pub(crate) fn edge(&self, k: usize) -> f64 {
        match &self.values {
            Values::Integers { lower, edges, .. } => (lower + i128::from(edges[k])) as f64,
            Values::F32(scaled) => scaled.edges[k].into(),
            Values::F64(scaled) => scaled.edges[k],
        }
    }

    pub(crate) fn new<T: Element>(edges: &[T]) -> Result<Self> {
        if edges.len() < 2 {
            return Err(Error::invalid(format!("bins need at least 2 edges, got {}", edges.len())));
        }
        let bins = check_count(edges.len() - 1)?;
        if let Some(k) = edges.iter().position(|edge| edge.is_nan()) {
            return Err(Error::invalid(format!("edge {k} of {} is NaN", edges.len())));
        }
        if let Some(k) = edges.windows(2).position(|pair| pair[0] > pair[1]) {
            let (a, b) = (edges[k], edges[k + 1]);
            return Err(Error::invalid(format!("edges must not decrease: edge {k} is {a:?}, edge {} is {b:?}", k + 1)));
        }
        let last = bins as usize;
        let (values, guide) = if !T::TYPE.is_float() {
            let lower = to_i128(edges[0]);
            let edges = memory::collect(edges.iter().map(|&edge| (to_i128(edge) - lower) as u64))?;
            let most = edges[last].saturating_sub(1);
            let room = cell_room(last) as u64;
            let shift = (0..64).find(|&shift| most >> shift < room).unwrap_or(63);
            let guide = guide(last, (most >> shift) as usize + 1, |k| (Ord::min(edges[k], most) >> shift) as usize)?;
            (Values::Integers { lower, edges, shift, narrow: size_of::<T>() <= 4 }, guide)
        } else if T::Acc::TYPE == ElementType::F64 {
            let (scaled, cells) = Scaled::new(memory::collect(edges.iter().map(|edge| edge.to_f64()))?);
            let guide = guide(last, cells, |k| scaled.cell(scaled.edges[k], cells))?;
            (Values::F64(scaled), guide)
        } else {
            let (scaled, cells) = Scaled::new(memory::collect(edges.iter().map(|edge| edge.to_f64() as f32))?);
            let guide = guide(last, cells, |k| scaled.cell(scaled.edges[k], cells))?;
            (Values::F32(scaled), guide)
        };
        Ok(Self { bins, values, guide, on_device: Default::default() })
    }

    /// The number of bins.
    pub(crate) fn bins(&self) -> u32 {
        self.bins
    }

    /// Writes the slot of each sample.
    pub(crate) fn slots<T: Element>(&self, closed: bool, input: &[T], out: &mut [u32]) {
        let pairs = input.iter().zip(out);
        match &self.values {
            Values::Integers { lower, edges, shift, .. } => {
                let (lower, extent, bins) = (*lower, edges[self.bins as usize], self.bins);
                for (&x, slot) in pairs {
                    let x = to_i128(x);
                    let distance = x.wrapping_sub(lower) as u64;
                    *slot = if x < lower {
                        bins + BELOW
                    } else if distance >= extent {
                        if distance == extent && closed { bins - 1 } else { bins + ABOVE }
                    } else {
                        search(edges, &self.guide, (distance >> shift) as usize, distance)
                    };
                }
            }
            Values::F32(scaled) => {
                pairs.for_each(|(&x, slot)| *slot = scaled.slot(&self.guide, closed, x.to_f64() as f32));
            }
            Values::F64(scaled) => pairs.for_each(|(&x, slot)| *slot = scaled.slot(&self.guide, closed, x.to_f64())),
        }
    }
}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_give_the_numbers() {
        let text = |edges: &[f32]| List::new(edges).unwrap_err().to_string();
        assert_eq!(text(&[]), "bins need at least 2 edges, got 0");
        assert_eq!(text(&[1.0]), "bins need at least 2 edges, got 1");
        assert_eq!(text(&[1.0, f32::NAN, 2.0]), "edge 1 of 3 is NaN");
        assert_eq!(text(&[1.0, 3.0, 2.5, 4.0]), "edges must not decrease: edge 1 is 3.0, edge 2 is 2.5");
        assert!(List::new(&vec![0u8; (1 << 24) + 2]).unwrap_err().to_string().contains("16777217"));
    }

    #[test]
    fn slots_follow_their_edges() {
        let edges: Vec<f32> = (0..1001).map(|k| (k * k) as f32).collect();
        let list = List::new(&edges).unwrap();
        assert_eq!(list.guide.len(), cell_room(1000) + 1);
        let Values::F32(scaled) = &list.values else { unreachable!() };
        for (k, &edge) in edges.iter().enumerate().take(1000) {
            assert_eq!(scaled.slot(&list.guide, false, edge), k as u32);
            assert_eq!(scaled.slot(&list.guide, false, edges[k + 1].next_down()), k as u32);
        }
    }
}
