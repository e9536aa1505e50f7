//! Description of a permutation by sizes and strides, without the element type.

use crate::{Error, Layout, Result};

/// An axis: its length, and the distance of neighbours in the input and in the output, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    pub n: usize,
    pub from: isize,
    pub to: isize,
}

impl Axis {
    /// Distance of the last element from the first, in the input and in the output.
    pub(crate) fn reach(&self) -> (isize, isize) {
        ((self.n as isize - 1) * self.from, (self.n as isize - 1) * self.to)
    }
}

/// Elements of at most 16 bytes, and their layouts in input and output.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Bytes of an element.
    pub size: usize,
    /// The axes in the order of the output, with descending strides; as few as possible.
    pub axes: Vec<Axis>,
    /// Offsets of the first element in input and output.
    pub from: usize,
    pub to: usize,
}

/// A matrix among the axes of a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    /// The axis of the row index: neighbours along it are contiguous in the output. Along `cols`, the axis of the
    /// column index, they are contiguous in the input.
    pub(crate) rows: Axis,
    pub(crate) cols: Axis,
    /// Index of `cols` among the axes.
    pub(crate) at: usize,
}

impl Job {
    /// Maximum bytes of an element that is moved whole. A larger element is an axis of parts.
    pub(crate) const MAX_BYTES: usize = 16;

    /// The job that moves elements of `size` > 0 bytes between two layouts of the same shape. Elements of `to` do not
    /// overlap.
    pub(crate) fn new(size: usize, from: &Layout, to: &Layout) -> Result<Self> {
        let mut order: Vec<usize> = (0..to.ndim()).collect();
        order.sort_by_key(|&axis| std::cmp::Reverse(to.strides()[axis]));
        if from.shape() != to.shape() {
            return Err(Error::invalid(format!("shapes of {:?} and {:?} differ", from.shape(), to.shape())));
        }
        let (from, to) = from.permute(&order)?.fold_with(&to.permute(&order)?)?;
        let strides = from.strides().iter().zip(to.strides());
        let axes = from.shape().iter().zip(strides).map(|(&n, (&from, &to))| Axis { n, from, to }).collect();
        let job = Self { size, axes, from: from.offset(), to: to.offset() };
        let unit = (1 << size.trailing_zeros()).min(Self::MAX_BYTES);
        Ok(if size > Self::MAX_BYTES { job.in_units(unit) } else { job })
    }

    /// The job that transposes a matrix without gaps between its rows.
    pub(crate) fn matrix(size: usize, rows: usize, cols: usize) -> Self {
        let axis = |n, from: usize, to: usize| Axis { n, from: from as isize, to: to as isize };
        let axes = match (rows, cols) {
            (0 | 1, _) | (_, 0 | 1) => vec![axis(rows * cols, 1, 1)],
            _ => vec![axis(cols, 1, rows), axis(rows, cols, 1)],
        };
        Self { size, axes, from: 0, to: 0 }
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        self.axes.iter().map(|axis| axis.n).product()
    }

    /// The same bytes in units of `unit` bytes, which divide all sizes and strides. The innermost axis has units
    /// without gaps.
    fn in_units(self, unit: usize) -> Self {
        let Self { size, mut axes, from, to } = self;
        let run = match axes.last() {
            Some(&Axis { n, from: 1, to: 1 }) => {
                axes.pop();
                n * size
            }
            _ => size,
        };
        let scaled = |stride: isize| stride * size as isize / unit as isize;
        for axis in &mut axes {
            (axis.from, axis.to) = (scaled(axis.from), scaled(axis.to));
        }
        if run > unit {
            axes.push(Axis { n: run / unit, from: 1, to: 1 });
        }
        Self { size: unit, axes, from: from * size / unit, to: to * size / unit }
    }

    /// The same bytes in the widest units of 2^k bytes that divide every offset. `bases` has the byte offsets of the
    /// buffers' first elements.
    pub(crate) fn widened(self, bases: [usize; 2]) -> Self {
        let size = self.size;
        let (run, outer) = match self.axes.split_last() {
            Some((&Axis { n, from: 1, to: 1 }, outer)) => (n * size, outer),
            _ => (size, &self.axes[..]),
        };
        let places = [run, self.from * size, self.to * size, bases[0], bases[1]].into_iter();
        let steps = outer.iter().flat_map(|axis| [axis.from.unsigned_abs() * size, axis.to.unsigned_abs() * size]);
        let bits = places.chain(steps).fold(Self::MAX_BYTES, |bits, bytes| bits | bytes);
        self.in_units(1 << bits.trailing_zeros())
    }

    /// Jobs of at most `most` axes that together move the same elements. Splits the shortest axis first, but not the
    /// innermost, so that there are few jobs.
    pub(crate) fn split(self, most: usize) -> Vec<Self> {
        let outer = self.axes.len().saturating_sub(1);
        let Some(at) = (0..outer).min_by_key(|&at| self.axes[at].n).filter(|_| self.axes.len() > most) else {
            return vec![self];
        };
        let Self { size, mut axes, from, to } = self;
        let axis = axes.remove(at);
        let place = |first: usize, stride: isize, k: usize| (first as isize + k as isize * stride) as usize;
        let part = |k| Self { size, axes: axes.clone(), from: place(from, axis.from, k), to: place(to, axis.to, k) };
        (0..axis.n).flat_map(|k| part(k).split(most)).collect()
    }

    /// The matrix to transpose, if neighbours in the input are not neighbours in the output.
    pub(crate) fn turn(&self) -> Option<Turn> {
        let (&rows, outer) = self.axes.split_last()?;
        let at = outer.iter().position(|axis| axis.from == 1)?;
        (rows.to == 1 && rows.from > 1).then(|| Turn { rows, cols: outer[at], at })
    }

    /// The axes other than those of the matrix.
    pub(crate) fn batch(&self, turn: &Turn) -> Vec<Axis> {
        let mut axes = self.axes.clone();
        axes.pop();
        axes.remove(turn.at);
        axes
    }

    /// One more than the highest offset, in the input and in the output.
    pub(crate) fn ends(&self) -> (usize, usize) {
        let reaches = || self.axes.iter().map(Axis::reach);
        let from = reaches().map(|(from, _)| from.max(0) as usize).sum::<usize>();
        let to = reaches().map(|(_, to)| to.max(0) as usize).sum::<usize>();
        (self.from + from + 1, self.to + to + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(size: usize, shape: &[usize], axes: &[usize]) -> Job {
        let from = Layout::contiguous(shape).unwrap().permute(axes).unwrap();
        Job::new(size, &from, &Layout::contiguous(from.shape()).unwrap()).unwrap()
    }

    #[test]
    fn axes_fold_to_a_matrix() {
        let turn = |shape: &[usize], axes: &[usize]| {
            let job = job(4, shape, axes);
            let turn = job.turn().unwrap();
            (turn.rows.n, turn.cols.n, job.batch(&turn).iter().map(|axis| axis.n).collect::<Vec<_>>())
        };
        assert_eq!(turn(&[5, 6, 7], &[2, 0, 1]), (30, 7, vec![]));
        assert_eq!(turn(&[5, 6, 7], &[1, 2, 0]), (5, 42, vec![]));
        assert_eq!(turn(&[5, 6, 7], &[0, 2, 1]), (6, 7, vec![5]));
        assert_eq!(turn(&[5, 6, 7], &[2, 1, 0]), (5, 7, vec![6]));
        assert_eq!(job(4, &[5, 6, 7], &[1, 0, 2]).turn(), None);
        assert_eq!(job(4, &[5, 6, 7], &[0, 1, 2]).axes, [Axis { n: 210, from: 1, to: 1 }]);
        assert_eq!(job(4, &[1, 1], &[1, 0]).axes, []);
    }

    #[test]
    fn units_are_as_wide_as_offsets_allow() {
        let axes = |job: Job| (job.size, job.axes.iter().map(|axis| (axis.n, axis.from, axis.to)).collect::<Vec<_>>());
        assert_eq!(
            axes(job(4, &[5, 6, 8], &[1, 0, 2]).widened([0, 16])),
            (16, vec![(6, 2, 10), (5, 12, 2), (2, 1, 1)])
        );
        assert_eq!(axes(job(4, &[5, 6, 8], &[1, 0, 2]).widened([8, 16])).0, 8);
        assert_eq!(axes(job(1, &[5, 6, 7], &[1, 0, 2]).widened([0, 0])).0, 1);
        assert_eq!(axes(job(12, &[5, 6], &[1, 0]).widened([0, 0])), (4, vec![(6, 3, 15), (5, 18, 3), (3, 1, 1)]));
        assert_eq!(axes(job(40, &[5, 6], &[1, 0])), (8, vec![(6, 5, 25), (5, 30, 5), (5, 1, 1)]));
    }

    #[test]
    fn parts_of_a_job_move_the_same_elements() {
        fn moves(job: &Job) -> Vec<(isize, isize)> {
            job.axes.iter().fold(vec![(job.from as isize, job.to as isize)], |places, axis| {
                let along = |(from, to)| (0..axis.n as isize).map(move |k| (from + k * axis.from, to + k * axis.to));
                places.into_iter().flat_map(along).collect()
            })
        }
        let shape = [3, 2, 3, 2, 3, 2, 3, 2];
        let order = [7, 5, 3, 1, 0, 2, 4, 6];
        let from = Layout::contiguous(&shape).unwrap().reverse(1).unwrap().permute(&order).unwrap();
        let whole = Job::new(12, &from, &Layout::contiguous(from.shape()).unwrap()).unwrap().widened([0, 0]);
        assert_eq!(whole.axes.len(), 9);
        let mut want = moves(&whole);
        want.sort_unstable();
        for (most, count) in [(9, 1), (8, 2), (7, 4), (5, 16), (1, 1296)] {
            let parts = whole.clone().split(most);
            assert!(parts.iter().all(|part| part.axes.len() <= most && part.axes.last() == whole.axes.last()));
            let mut got: Vec<_> = parts.iter().flat_map(moves).collect();
            got.sort_unstable();
            assert_eq!((parts.len(), got == want), (count, true), "{most} axes");
        }
        assert_eq!(job(4, &[1, 1], &[1, 0]).split(8).len(), 1);
    }
}
