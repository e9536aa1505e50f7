//! Selections on the CPU in one read, and partitions in two. Each task keeps the elements that it selects. One task
//! after another receives its offset in the output, and then copies its elements there.

use std::ops::Range;

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};

use crate::{Element, Offset, Result, element::equal, memory, parallel};

/// Maximum bytes and maximum elements of a list that a task keeps: the list stays in the L2 cache.
const TASK_BYTES: usize = 256 << 10;
const TASK: usize = 1 << 15;
/// Elements whose lists are found at once. The lists stay in the L1 cache.
const WINDOW: usize = 1024;

/// Writes the number of the list of each element of a range. An element of no list has the number of lists, or more.
///
/// This is the only code that is compiled for each element type and condition. All other code depends on the element
/// size alone.
pub(super) type Lists<'l> = dyn Fn(Range<usize>, &mut [u8]) + Sync + 'l;

/// Writes `list(x)` for each element `x` of `input`.
pub(super) fn list_each<T: Copy>(input: &[T], to: &mut [u8], list: impl Fn(T) -> usize) {
    for (to, &x) in to.iter_mut().zip(input) {
        *to = list(x) as u8;
    }
}

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

/// Calls `body` with the lists of each window of a range, and the index of its first element.
fn windows(range: Range<usize>, lists: &Lists<'_>, mut body: impl FnMut(usize, &[u8])) {
    let mut window = [0; WINDOW];
    for first in range.clone().step_by(WINDOW) {
        let window = &mut window[..WINDOW.min(range.end - first)];
        lists(first..first + window.len(), window);
        body(first, window);
    }
}

/// Writes items to the memory of their lists, which start at multiples of a task, and end at `ends`.
///
/// It is a function of its own, so that the compiler knows that `room` does not alias what `items` reads.
///
/// One store serves all lists. On one core, a `u32` takes 0.4 ns with one list and 0.8 ns with two. A store for each
/// list takes 0.45 and 0.9 ns; windows of 64 elements without bounds checks take 0.5 and 1.0 ns. A first pass that
/// finds the lists of a window takes 0.65 and 1.3 ns. A search for windows to skip gains no time.
#[inline(never)]
fn fill<R, const LISTS: usize>(
    items: impl ExactSizeIterator<Item = R>,
    lists: &[u8],
    ends: &mut [usize; LISTS],
    room: &mut [R],
) {
    let mut own = *ends;
    for (value, &list) in items.zip(lists) {
        let mut end = own[0];
        for other in 1..LISTS {
            end = if usize::from(list) == other { own[other] } else { end };
        }
        // An unconditional store, since half of the branches would be mispredicted. An item of no list goes to the next
        // free slot of the first list, which stays free.
        if let Some(to) = room.get_mut(end) {
            *to = value;
        }
        for (number, end) in own.iter_mut().enumerate() {
            *end += usize::from(usize::from(list) == number);
        }
    }
    *ends = own;
}

/// Items of a range, which are written to the memory of their lists. Returns the end of each list, which starts at a
/// multiple of the number of items.
type Items<'i, R, const LISTS: usize> = dyn Fn(Range<usize>, &mut [R]) -> [usize; LISTS] + Sync + 'i;

/// Elements as the items of lists.
fn elements<'i, R: Copy + Sync, const LISTS: usize>(
    values: &'i [R],
    lists: &'i Lists<'_>,
) -> impl Fn(Range<usize>, &mut [R]) -> [usize; LISTS] + Sync + 'i {
    move |range, room| {
        let mut ends = std::array::from_fn(|list| list * (room.len() / LISTS));
        windows(range, lists, |first, window| {
            fill(values[first..first + window.len()].iter().copied(), window, &mut ends, room);
        });
        ends
    }
}

/// Indices as the items of lists; the first is `base`.
fn indices<'i, const LISTS: usize>(
    base: usize,
    lists: &'i Lists<'_>,
) -> impl Fn(Range<usize>, &mut [usize]) -> [usize; LISTS] + Sync + 'i {
    move |range, room| {
        let mut ends = std::array::from_fn(|list| list * (room.len() / LISTS));
        windows(range, lists, |first, window| {
            fill(base + first..base + first + window.len(), window, &mut ends, room);
        });
        ends
    }
}

/// Keeps the items of each range in their lists.
///
/// Task after task, `turn` receives the lists that the task keeps, and returns the argument of `write`.
fn keep<R, W, const LISTS: usize>(
    n: usize,
    items: &Items<'_, R, LISTS>,
    turn: &mut (dyn FnMut([&[R]; LISTS]) -> W + Send),
    write: &(dyn Fn(W, [&[R]; LISTS]) + Sync),
) -> Result<()>
where
    R: Copy + Send + Sync + Zeroable,
    W: Send,
{
    let task = TASK.min(TASK_BYTES / size_of::<R>()).min(n);
    parallel::in_turn(
        n.div_ceil(task.max(1)),
        &|| Ok(Kept { task, room: memory::zeroed(LISTS * task)?, ends: [0; LISTS] }),
        &|number, kept: &mut Kept<R, LISTS>| {
            kept.ends = items(number * task..n.min((number + 1) * task), &mut kept.room);
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
fn write_lists<R, V, const LISTS: usize>(
    n: usize,
    items: &Items<'_, R, LISTS>,
    get: &(impl Fn(R) -> V + Sync),
    mut rest: [&mut [V]; LISTS],
) -> Result<[usize; LISTS]>
where
    R: Copy + Send + Sync + Zeroable,
    V: Send,
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

/// The lengths of lists that contain all of `n` elements.
fn lengths<const LISTS: usize>(n: usize, lists: &Lists<'_>) -> Result<[usize; LISTS]> {
    let counts = parallel::map(n.div_ceil(TASK), &|task| {
        let mut counts = [0; LISTS];
        windows(task * TASK..n.min((task + 1) * TASK), lists, |_, window| {
            for (list, count) in counts.iter_mut().enumerate() {
                *count += window.iter().map(|&own| u32::from(usize::from(own) == list)).sum::<u32>() as usize;
            }
        });
        counts
    })?;
    Ok(std::array::from_fn(|list| counts.iter().map(|counts| counts[list]).sum()))
}

/// [`write_lists`] for lists that contain all elements, one list after another in `out`.
fn parted<R, V, const LISTS: usize>(
    n: usize,
    lists: &Lists<'_>,
    items: &Items<'_, R, LISTS>,
    get: &(impl Fn(R) -> V + Sync),
    mut out: &mut [V],
) -> Result<[usize; LISTS]>
where
    R: Copy + Send + Sync + Zeroable,
    V: Send,
{
    let lengths = lengths::<LISTS>(n, lists)?;
    write_lists(n, items, get, std::array::from_fn(|list| next(&mut out, lengths[list])))
}

/// Runs an expression with `$R` bound to the unsigned type of an element's size.
macro_rules! with_bits {
    ($size:expr, $R:ident => $body:expr) => {
        match $size {
            1 => with_bits!(@ u8, $R, $body),
            2 => with_bits!(@ u16, $R, $body),
            4 => with_bits!(@ u32, $R, $body),
            _ => with_bits!(@ u64, $R, $body),
        }
    };
    (@ $bits:ty, $R:ident, $body:expr) => {{
        type $R = $bits;
        $body
    }};
}

/// Writes the elements of list 0, until `out` is full. Returns the length of the list. `size` is that of an element;
/// compiled once for each size.
pub(super) fn select(size: usize, input: &[u8], lists: &Lists<'_>, out: &mut [u8]) -> Result<usize> {
    with_bits!(size, R => {
        let input = cast_slice::<u8, R>(input);
        let [found] = write_lists(input.len(), &elements(input, lists), &|x| x, [cast_slice_mut(out)])?;
        Ok(found)
    })
}

/// Writes the elements of all lists, one list after another. Returns the lengths of the first two lists.
pub(super) fn partition(
    size: usize,
    input: &[u8],
    lists: &Lists<'_>,
    out: &mut [u8],
    parts: usize,
) -> Result<[usize; 2]> {
    with_bits!(size, R => {
        let (input, out) = (cast_slice::<u8, R>(input), cast_slice_mut(out));
        if parts == 3 {
            let [first, second, _] = parted::<R, R, 3>(input.len(), lists, &elements(input, lists), &|x| x, out)?;
            Ok([first, second])
        } else {
            parted::<R, R, 2>(input.len(), lists, &elements(input, lists), &|x| x, out)
        }
    })
}

/// Writes the indices of the elements of list 0, until `out` is full. Returns the length of the list.
pub(super) fn select_indices<I: Offset>(n: usize, lists: &Lists<'_>, out: &mut [I]) -> Result<usize> {
    let [found] = write_lists(n, &indices(0, lists), &|i| I::from_i128(i as i128), [out])?;
    Ok(found)
}

/// Writes the values whose flag is not 0; with `all`, the other values follow. Returns the number of the former.
pub(super) fn flagged<V: Pod + Send + Sync>(values: &[V], flags: &[u8], out: &mut [V], all: bool) -> Result<usize> {
    let (n, lists) =
        (flags.len(), |part: Range<usize>, to: &mut [u8]| list_each(&flags[part], to, |flag| usize::from(flag == 0)));
    // Wide values are not copied to the lists first.
    Ok(match (size_of::<V>() <= 16, all) {
        (true, true) => parted::<V, V, 2>(n, &lists, &elements(values, &lists), &|x| x, out)?[0],
        (true, false) => write_lists::<V, V, 1>(n, &elements(values, &lists), &|x| x, [out])?[0],
        (false, true) => parted::<_, V, 2>(n, &lists, &indices(0, &lists), &|i| values[i], out)?[0],
        (false, false) => write_lists::<_, V, 1>(n, &indices(0, &lists), &|i| values[i], [out])?[0],
    })
}

/// Lists of the elements from index 1 on. An element that differs from its predecessor starts a run and is in list 0.
pub(super) fn heads<T: Element>(input: &[T]) -> impl Fn(Range<usize>, &mut [u8]) + Sync {
    move |part, to| {
        let (before, own) = (&input[part.clone()], &input[part.start + 1..=part.end]);
        for ((to, &before), &x) in to.iter_mut().zip(before).zip(own) {
            *to = u8::from(equal(before, x));
        }
    }
}

/// The number of runs of equal elements among `n`, whose heads `heads` lists. Task after task, `turn` receives the
/// indices at which runs after the first start, and returns the argument of `write`.
pub(super) fn runs<W: Send>(
    n: usize,
    heads: &Lists<'_>,
    turn: &mut (dyn FnMut(&[usize]) -> W + Send),
    write: &(dyn Fn(W, &[usize]) + Sync),
) -> Result<usize> {
    let mut count = n.min(1);
    keep(
        n.saturating_sub(1),
        &indices(1, heads),
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
    // List 0 if a run starts at the middle one of three neighbours, list 1 if a run ends there.
    let lists = |part: Range<usize>, to: &mut [u8]| {
        for (to, three) in to.iter_mut().zip(input[part.start..part.end + 2].windows(3)) {
            let (goes_on, lasts) = (equal(three[0], three[1]), equal(three[1], three[2]));
            *to = if goes_on == lasts { 2 } else { u8::from(goes_on) };
        }
    };
    keep(
        n.saturating_sub(2),
        &indices(1, &lists),
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
