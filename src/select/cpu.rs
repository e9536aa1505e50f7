//! Selections on the CPU: chunks in parallel, first counted, then moved.

use crate::{Offset, parallel};

/// Elements of a chunk, and of a part of it, which stays in the first-level cache.
const CHUNK: usize = 1 << 14;
const PART: usize = 1 << 10;
/// Lists at most.
const LISTS: usize = 3;
/// The mark of an element that goes to no list.
pub(super) const NONE: u8 = LISTS as u8;

/// Puts the lists of as many elements as there is room for, from one on, where it is told.
pub(super) type Mark<'m> = dyn Fn(usize, &mut [u8]) + Sync + 'm;

/// How many elements go to each list.
pub(super) struct Lists<'m> {
    n: usize,
    mark: &'m Mark<'m>,
    /// Those of each chunk.
    chunks: Vec<[usize; LISTS]>,
    pub(super) totals: [usize; LISTS],
}

/// The mark of an element that is taken, or of one that is not; by arithmetic, since branches would be guessed wrong.
pub(super) fn taken(is: bool) -> u8 {
    NONE * u8::from(!is)
}

/// A mark for each element on its own.
pub(super) fn each<T: Copy + Sync>(input: &[T], list: impl Fn(T) -> u8 + Sync) -> impl Fn(usize, &mut [u8]) + Sync {
    move |first, marks| marks.iter_mut().zip(&input[first..]).for_each(|(mark, &x)| *mark = list(x))
}

/// Where runs of equal elements begin.
pub(super) fn heads<T: PartialEq + Sync>(input: &[T]) -> impl Fn(usize, &mut [u8]) + Sync {
    move |first, marks| {
        let goes_on = |mark: &mut u8, a: &T, b: &T| *mark = taken(a != b);
        let own = &input[first..first + marks.len()];
        let marks = match (first, marks.split_first_mut()) {
            (0, Some((mark, marks))) => {
                *mark = 0;
                marks
            }
            _ => {
                goes_on(&mut marks[0], &input[first - 1], &own[0]);
                &mut marks[1..]
            }
        };
        marks.iter_mut().zip(own).zip(&own[1..]).for_each(|((mark, a), b)| goes_on(mark, a, b));
    }
}

/// Where runs of two elements at least begin, list 0, and end, list 1.
pub(super) fn ends<T: PartialEq + Sync>(input: &[T]) -> impl Fn(usize, &mut [u8]) + Sync {
    move |first, marks| {
        for (i, mark) in (first..).zip(marks) {
            let goes_on = i > 0 && input[i - 1] == input[i];
            let lasts = i + 1 < input.len() && input[i] == input[i + 1];
            *mark = if goes_on == lasts { NONE } else { u8::from(goes_on) };
        }
    }
}

/// How many of a part's marks are those of a list: of some at a time, whose number is a byte.
fn number_of(list: u8, marks: &[u8]) -> usize {
    let some = |marks: &[u8]| usize::from(marks.iter().map(|&mark| u8::from(mark == list)).sum::<u8>());
    marks.chunks(128).map(some).sum()
}

impl<'m> Lists<'m> {
    pub(super) fn of(n: usize, mark: &'m Mark<'m>) -> Self {
        let chunks = parallel::map(n.div_ceil(CHUNK), &|chunk| {
            let mut counts = [0; LISTS];
            Self::marks(n, mark, chunk, &mut |_, marks| {
                (0..).zip(&mut counts).for_each(|(list, count)| *count += number_of(list, marks));
            });
            counts
        });
        let mut totals = [0; LISTS];
        for counts in &chunks {
            totals.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
        }
        Self { n, mark, chunks, totals }
    }

    /// Tells the marks of the parts of a chunk, and where each begins.
    fn marks(n: usize, mark: &Mark<'_>, chunk: usize, take: &mut dyn FnMut(usize, &[u8])) {
        let end = n.min((chunk + 1) * CHUNK);
        let mut marks = [NONE; PART];
        for first in (chunk * CHUNK..end).step_by(PART) {
            let marks = &mut marks[..PART.min(end - first)];
            mark(first, marks);
            take(first, marks);
        }
    }

    /// Writes what `get` gives for the places of the elements of the lists in `from`, one list after the other, as far as
    /// there is room.
    pub(super) fn write<R: Copy + Send>(
        &self,
        from: std::ops::Range<usize>,
        out: &mut [R],
        get: impl Fn(usize) -> R + Sync,
    ) {
        let nothing = |chunk| -> (usize, [&mut [R]; LISTS]) { (chunk, [&mut [], &mut [], &mut []]) };
        let mut parts: Vec<_> = (0..self.chunks.len()).map(nothing).collect();
        let mut rest = out;
        for list in from.clone() {
            for ((_, lists), counts) in parts.iter_mut().zip(&self.chunks) {
                let (own, more) = rest.split_at_mut(counts[list].min(rest.len()));
                (lists[list], rest) = (own, more);
            }
        }
        parallel::consume(parts, &|(chunk, mut lists)| {
            let mut kept = vec![get(chunk * CHUNK); PART];
            let kept: &mut [R; PART] = kept.as_mut_slice().try_into().expect("it has as many");
            Self::marks(self.n, self.mark, chunk, &mut |first, marks| {
                for list in from.clone() {
                    let mut count = 0;
                    for (i, &mark) in (first..).zip(marks) {
                        // Written in any case, since half of the branches would be guessed wrong.
                        kept[count % PART] = get(i);
                        count += usize::from(usize::from(mark) == list);
                    }
                    let out = std::mem::take(&mut lists[list]);
                    let (own, rest) = out.split_at_mut(count.min(out.len()));
                    own.copy_from_slice(&kept[..own.len()]);
                    lists[list] = rest;
                }
            });
        });
    }
}

impl Lists<'_> {
    /// Where the elements of list 0 are, as far as `room` of them, and where what belongs to the last one ends.
    pub(super) fn offsets<C: Offset>(&self, room: usize) -> Vec<C> {
        let number = |i: usize| C::from_i128(i as i128);
        let mut offsets = vec![number(self.n); self.totals[0].min(room) + 1];
        self.write(0..1, &mut offsets, number);
        offsets
    }
}
