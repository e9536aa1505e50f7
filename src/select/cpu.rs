//! Selections on the CPU in one read, and partitions in two. Each task keeps the elements that it selects. One task
//! after another receives its offset in the output, and then copies its elements there.

use std::ops::Range;

use bytemuck::Zeroable;

use crate::{Element, Offset, Result, element::equal, memory, parallel};

/// Maximum bytes and maximum elements of a list that a task keeps: the list stays in the L2 cache.
const TASK_BYTES: usize = 256 << 10;
const TASK: usize = 1 << 15;

/// The items that a task keeps. Each list starts at a multiple of `task`, and stops before its entry in `ends`.
struct Kept<R, const LISTS: usize> {
    task: usize,
    room: Vec<R>,
    ends: [usize; LISTS],
}

impl<R, const LISTS: usize> Kept<R, LISTS> {
    fn lists(&self) -> [&[R]; LISTS] {
        std::array::from_fn(|list| &self.room[list * self.task..self.ends[list]])
    }
}

/// Writes items to the memory of their lists, which start at multiples of `task`. Returns the end of each list.
///
/// `fill` is a function of its own, so that the compiler knows that `room` does not alias what `items` reads.
///
/// One store serves all lists. On one core, a `u32` takes 0.4 ns with one list and 0.8 ns with two. A store for each
/// list takes 0.45 and 0.9 ns; windows of 64 elements without bounds checks take 0.5 and 1.0 ns. A first pass that
/// finds the lists of a window takes 0.65 and 1.3 ns. A search for windows to skip gains no time.
#[inline(never)]
fn fill<R, const LISTS: usize>(items: impl Iterator<Item = (usize, R)>, task: usize, room: &mut [R]) -> [usize; LISTS] {
    let mut ends = std::array::from_fn(|list| list * task);
    items.for_each(|(list, value)| {
        let end_of = |end, (other, &at)| if list == other { at } else { end };
        let end = ends.iter().enumerate().skip(1).fold(ends[0], end_of);
        // An unconditional store, since half of the branches would be mispredicted. An item of no list goes to the next
        // free slot of the first list, which stays free.
        if let Some(to) = room.get_mut(end) {
            *to = value;
        }
        ends.iter_mut().enumerate().for_each(|(own, end)| *end += usize::from(list == own));
    });
    ends
}

/// Keeps the items of each range in their lists. An item of no list has a list number of `LISTS` or more.
///
/// Task after task, `turn` receives the lists that the task keeps, and returns the argument of `write`.
pub(super) fn keep<R, W, I, const LISTS: usize>(
    n: usize,
    items: &(impl Fn(Range<usize>) -> I + Sync),
    turn: &mut (dyn FnMut([&[R]; LISTS]) -> W + Send),
    write: &(dyn Fn(W, [&[R]; LISTS]) + Sync),
) -> Result<()>
where
    R: Copy + Send + Sync + Zeroable,
    W: Send,
    I: Iterator<Item = (usize, R)>,
{
    let task = TASK.min(TASK_BYTES / size_of::<R>()).min(n);
    parallel::in_turn(
        n.div_ceil(task.max(1)),
        &|| Ok(Kept { task, room: memory::zeroed(LISTS * task)?, ends: [0; LISTS] }),
        &|number, kept: &mut Kept<R, LISTS>| {
            kept.ends = fill(items(number * task..n.min((number + 1) * task)), task, &mut kept.room);
        },
        &mut |_, kept| turn(kept.lists()),
        &|_, work, kept| write(work, kept.lists()),
    )
}

/// Splits off the next `count` elements of `rest`, or all if there are fewer.
pub(super) fn next<'o, V>(rest: &mut &'o mut [V], count: usize) -> &'o mut [V] {
    rest.split_off_mut(..count.min(rest.len())).expect("the count is at most the length")
}

/// Writes `get(x)` for each kept item `x` to the output of its list, until that output is full. Returns the length of
/// each list.
pub(super) fn lists<R, V, I, const LISTS: usize>(
    n: usize,
    items: &(impl Fn(Range<usize>) -> I + Sync),
    get: &(impl Fn(R) -> V + Sync),
    mut rest: [&mut [V]; LISTS],
) -> Result<[usize; LISTS]>
where
    R: Copy + Send + Sync + Zeroable,
    V: Send,
    I: Iterator<Item = (usize, R)>,
{
    let mut counts = [0; LISTS];
    keep(
        n,
        items,
        &mut |kept: [&[R]; LISTS]| {
            std::array::from_fn(|list| {
                counts[list] += kept[list].len();
                next(&mut rest[list], kept[list].len())
            })
        },
        &|own: [&mut [V]; LISTS], kept| {
            own.into_iter()
                .zip(kept)
                .for_each(|(own, kept)| own.iter_mut().zip(kept).for_each(|(to, &x)| *to = get(x)));
        },
    )?;
    Ok(counts)
}

/// [`lists`] for lists that contain all elements, one list after another in `out`.
pub(super) fn parted<R, V, I, const LISTS: usize>(
    n: usize,
    items: &(impl Fn(Range<usize>) -> I + Sync),
    get: &(impl Fn(R) -> V + Sync),
    mut out: &mut [V],
) -> Result<[usize; LISTS]>
where
    R: Copy + Send + Sync + Zeroable,
    V: Send,
    I: Iterator<Item = (usize, R)>,
{
    let counts = parallel::map(n.div_ceil(TASK), &|task| {
        let part = task * TASK..n.min((task + 1) * TASK);
        let count = |own| items(part.clone()).map(|(list, _)| u32::from(list == own)).sum::<u32>() as usize;
        let mut counts: [usize; LISTS] = std::array::from_fn(|own| if own + 1 < LISTS { count(own) } else { 0 });
        // The last list has all other elements.
        counts[LISTS - 1] = part.len() - counts.iter().sum::<usize>();
        counts
    })?;
    let total = |list: usize| counts.iter().map(|counts| counts[list]).sum();
    lists(n, items, get, std::array::from_fn(|list| next(&mut out, total(list))))
}

/// Writes the elements of list 0; with `all`, the elements of list 1 follow. Returns the length of list 0.
pub(super) fn flagged<R, V, I>(
    n: usize,
    items: &(impl Fn(Range<usize>) -> I + Sync),
    get: &(impl Fn(R) -> V + Sync),
    out: &mut [V],
    all: bool,
) -> Result<usize>
where
    R: Copy + Send + Sync + Zeroable,
    V: Send,
    I: Iterator<Item = (usize, R)>,
{
    Ok(if all { parted::<_, _, _, 2>(n, items, get, out)?[0] } else { lists(n, items, get, [out])?[0] })
}

/// The elements `part.start + 1..=part.end`, with their lists. An element that differs from its predecessor starts a
/// run and is in list 0.
pub(super) fn heads<T: Element>(input: &[T], part: Range<usize>) -> impl Iterator<Item = (usize, T)> {
    let (before, own) = (&input[part.clone()], &input[part.start + 1..=part.end]);
    before.iter().zip(own).map(|(&before, &x)| (usize::from(equal(before, x)), x))
}

/// The number of runs of equal elements. Task after task, `turn` receives the indices at which runs start, except index
/// 0. It returns the argument of `write`.
pub(super) fn runs<T: Element, W: Send>(
    input: &[T],
    turn: &mut (dyn FnMut(&[usize]) -> W + Send),
    write: &(dyn Fn(W, &[usize]) + Sync),
) -> Result<usize> {
    let mut count = input.len().min(1);
    keep(
        input.len().saturating_sub(1),
        &|part| part.clone().zip(heads(input, part)).map(|(i, (list, _))| (list, i + 1)),
        &mut |[places]: [&[usize]; 1]| {
            count += places.len();
            turn(places)
        },
        &|work, [places]| write(work, places),
    )?;
    Ok(count)
}

/// Copies the first element of `input`, if any, which starts the first run. Returns the rest of `out`.
pub(super) fn first<'o, V: Copy>(mut out: &'o mut [V], input: &[V]) -> &'o mut [V] {
    next(&mut out, 1).iter_mut().zip(input).for_each(|(to, &x)| *to = x);
    out
}

/// Writes the offset and the length of each run of at least two elements, until the outputs are full. Returns the
/// number of these runs.
pub(super) fn non_trivial<T: Element, C: Offset>(
    input: &[T],
    mut offsets: &mut [C],
    mut lengths: &mut [C],
) -> Result<usize> {
    let n = input.len();
    // `first` and `last` are true if the first two and the last two elements are equal. At all other elements, three
    // neighbours decide.
    let (first, last) = (n > 1 && equal(input[0], input[1]), n > 1 && equal(input[n - 2], input[n - 1]));
    let number = |i: usize| C::from_i128(i as i128);
    let (mut begun, mut count) = (None, usize::from(first));
    if first {
        begun = Some(0);
        next(&mut offsets, 1).fill(number(0));
    }
    keep(
        n.saturating_sub(2),
        // List 0 if a run starts at the middle one of three neighbours, list 1 if a run ends there.
        &|part: Range<usize>| {
            let threes = input[part.start..part.end + 2].windows(3);
            part.zip(threes).map(|(i, three)| {
                let (goes_on, lasts) = (equal(three[0], three[1]), equal(three[1], three[2]));
                (if goes_on == lasts { 2 } else { usize::from(goes_on) }, i + 1)
            })
        },
        &mut |[begins, ends]: [&[usize]; 2]| {
            count += begins.len();
            let before = begun;
            if begins.len() + ends.len() > 0 {
                begun = begins.last().copied().filter(|begin| ends.last().is_none_or(|end| begin > end));
            }
            (next(&mut offsets, begins.len()), next(&mut lengths, ends.len()), before)
        },
        &|(offsets, lengths, before), [begins, ends]| {
            offsets.iter_mut().zip(begins).for_each(|(to, &begin)| *to = number(begin));
            let begins = before.iter().chain(begins);
            lengths.iter_mut().zip(begins.zip(ends)).for_each(|(to, (begin, end))| *to = number(end + 1 - begin));
        },
    )?;
    if let (true, Some(begin)) = (last, begun) {
        next(&mut lengths, 1).fill(number(n - begin));
    }
    Ok(count)
}
