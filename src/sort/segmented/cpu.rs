//! Segmented sorts on the CPU. Tasks of several short segments run in parallel; then all threads sort each long
//! segment.

use bytemuck::Pod;

use crate::{
    Result,
    keys::Keys,
    memory, parallel,
    segments::Offsets,
    sort::{
        NARROW,
        cpu::{self, Word},
    },
};

/// Keys of a task. All threads together sort a segment with more keys.
const TASK: usize = 1 << 16;

/// A key that maps to a number; keys are ordered by that number under a mask.
trait Ranked: Pod + Send + Sync {
    type Rank: Copy + Ord;
    fn rank(self, keys: &Keys, mask: u128) -> Self::Rank;
    /// The ranks of zeros and of NaN, which keys with different bits share. Only for orders that compare all bits.
    fn shared(keys: &Keys) -> impl Iterator<Item = Self::Rank>;
}

impl<K: Word> Ranked for K {
    type Rank = u64;
    #[inline]
    fn rank(self, keys: &Keys, mask: u128) -> u64 {
        keys.ordered(self.into()) & mask as u64
    }

    fn shared(keys: &Keys) -> impl Iterator<Item = u64> {
        keys.shared()
    }
}

impl Ranked for u128 {
    type Rank = Self;
    #[inline]
    fn rank(self, keys: &Keys, mask: Self) -> Self {
        keys.ordered_wide(self) & mask
    }

    fn shared(_: &Keys) -> impl Iterator<Item = Self> {
        std::iter::empty()
    }
}

/// Data that moves with the keys.
trait With<V>: Sync {
    /// The datum of key `i` of the input.
    fn of(&self, i: usize) -> V;
    /// Sorts a segment that begins at index `begin`, with all threads.
    fn sort(&self, keys: &Keys, begin: usize, input: &[u8], output: Option<&mut [u8]>, values: &mut [V]) -> Result<()>;
}

/// Keys without values.
struct Alone;

impl With<()> for Alone {
    fn of(&self, _: usize) {}

    fn sort(&self, keys: &Keys, _: usize, input: &[u8], output: Option<&mut [u8]>, _: &mut [()]) -> Result<()> {
        output.map_or(Ok(()), |output| cpu::keys(keys, input, output))
    }
}

/// Keys with values.
struct Values<'a, V>(&'a [V]);

impl<V: Pod + Send + Sync> With<V> for Values<'_, V> {
    fn of(&self, i: usize) -> V {
        self.0[i]
    }

    fn sort(&self, keys: &Keys, begin: usize, input: &[u8], output: Option<&mut [u8]>, to: &mut [V]) -> Result<()> {
        // Values always come with an output of keys.
        let Some(output) = output else { return Ok(()) };
        let from = &self.0[begin..begin + to.len()];
        if cpu::pairs(keys, (input, &mut *output), (from, &mut *to))? {
            return Ok(());
        }
        if from.len() <= NARROW {
            gathered::<u32, V>(keys, (input, output), (from, to))
        } else {
            gathered::<u64, V>(keys, (input, output), (from, to))
        }
    }
}

/// Sorts indices and gathers the values by them.
fn gathered<I: crate::Offset, V: Pod + Send + Sync>(
    keys: &Keys,
    (input, output): (&[u8], &mut [u8]),
    (from, to): (&[V], &mut [V]),
) -> Result<()> {
    let mut places = memory::zeroed::<I>(from.len())?;
    cpu::places(keys, input, Some(output), &mut places)?;
    parallel::chunks_mut(to, TASK, &|chunk, part| {
        for (to, place) in part.iter_mut().zip(&places[chunk * TASK..]) {
            *to = from[place.to_i128() as usize];
        }
    });
    Ok(())
}

/// Indices of the keys in the whole input.
struct Places;

impl<I: crate::Offset> With<I> for Places {
    fn of(&self, i: usize) -> I {
        I::from_i128(i as i128)
    }

    fn sort(&self, keys: &Keys, begin: usize, input: &[u8], output: Option<&mut [u8]>, places: &mut [I]) -> Result<()> {
        cpu::places(keys, input, output, places)?;
        parallel::chunks_mut(places, TASK, &|_, part| {
            part.iter_mut().for_each(|place| *place = place.add(I::from_i128(begin as i128)));
        });
        Ok(())
    }
}

/// Sorts the segments of keys without values.
pub(super) fn keys(keys: &Keys, input: &[u8], offsets: Offsets<'_>, output: &mut [u8]) -> Result<()> {
    let n = input.len() / keys.bytes;
    by_size(keys, input, offsets, Some(output), &mut vec![(); n], &Alone)
}

/// Sorts the segments of keys with values.
pub(super) fn pairs<V: Pod + Send + Sync>(
    keys: &Keys,
    offsets: Offsets<'_>,
    (input, output): (&[u8], &mut [u8]),
    (values, values_out): (&[V], &mut [V]),
) -> Result<()> {
    by_size(keys, input, offsets, Some(output), values_out, &Values(values))
}

/// Writes the indices that sort the keys of each segment.
pub(super) fn places<I: crate::Offset>(
    keys: &Keys,
    input: &[u8],
    offsets: Offsets<'_>,
    output: &mut [I],
) -> Result<()> {
    by_size(keys, input, offsets, None, output, &Places)
}

fn by_size<V: Copy + Send + Sync>(
    keys: &Keys,
    input: &[u8],
    offsets: Offsets<'_>,
    output: Option<&mut [u8]>,
    values: &mut [V],
    with: &dyn With<V>,
) -> Result<()> {
    match keys.bytes {
        1 => of::<u8, V>(keys, input, offsets, output, values, with),
        2 => of::<u16, V>(keys, input, offsets, output, values, with),
        4 => of::<u32, V>(keys, input, offsets, output, values, with),
        8 => of::<u64, V>(keys, input, offsets, output, values, with),
        _ => of::<u128, V>(keys, input, offsets, output, values, with),
    }
}

/// A range of segments, and their outputs of keys and values.
struct Task<'a, K, V> {
    segments: std::ops::Range<usize>,
    begin: usize,
    output: Option<&'a mut [K]>,
    values: &'a mut [V],
}

/// Splits off the first `len` elements.
fn take<'a, T>(rest: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    rest.split_off_mut(..len).unwrap_or_default()
}

fn of<K: Ranked, V: Copy + Send + Sync>(
    keys: &Keys,
    input: &[u8],
    offsets: Offsets<'_>,
    output: Option<&mut [u8]>,
    mut values: &mut [V],
    with: &dyn With<V>,
) -> Result<()> {
    let input: &[K] = bytemuck::cast_slice(input);
    let (n, count) = (input.len(), offsets.len() - 1);
    let at = |i: usize| offsets.get(i).min(n);
    let mut output = output.map(bytemuck::cast_slice_mut::<u8, K>);
    // If an offset is beyond the next one, all elements keep their order.
    let sound = (0..count).all(|i| at(i) <= at(i + 1));
    let (first, last) = if sound { (at(0), at(count)) } else { (n, n) };
    let (mut tasks, mut long) = (Vec::new(), Vec::new());
    let mut task = |segments: std::ops::Range<usize>, begin: usize, end: usize| {
        let output = output.as_mut().map(|output| take(output, end - begin));
        let task = Task { segments, begin, output, values: take(&mut values, end - begin) };
        memory::push(if task.segments.len() == 1 && end - begin > TASK { &mut long } else { &mut tasks }, task)
    };
    task(0..0, 0, first)?;
    let mut segment = 0;
    while sound && segment < count {
        let begin = at(segment);
        // A task takes the segments that begin in its keys; a long segment gets its own task.
        let mut next = offsets.rank(begin + TASK).clamp(segment + 1, count);
        if next - segment > 1 && at(next) - at(next - 1) > TASK {
            next -= 1;
        }
        task(segment..next, begin, at(next))?;
        segment = next;
    }
    task(0..0, last, n)?;
    parallel::try_consume(tasks.into_iter(), &|task| sort_task(keys, input, &at, task, with))?;
    for Task { begin, output, values, .. } in long {
        let input = bytemuck::cast_slice(&input[begin..begin + values.len()]);
        with.sort(keys, begin, input, output.map(bytemuck::cast_slice_mut), values)?;
    }
    Ok(())
}

/// Sorts short segments one after another. A task without segments copies its keys.
fn sort_task<K: Ranked, V: Copy>(
    keys: &Keys,
    input: &[K],
    at: &dyn Fn(usize) -> usize,
    Task { segments, begin, mut output, values }: Task<'_, K, V>,
    with: &dyn With<V>,
) -> Result<()> {
    if let Some(output) = &mut output {
        output.copy_from_slice(&input[begin..begin + values.len()]);
    }
    if size_of::<V>() > 0 || segments.is_empty() {
        values.iter_mut().enumerate().for_each(|(i, value)| *value = with.of(begin + i));
    }
    let (mask, mut ranks) = (keys.mask(), Vec::<(K::Rank, u32)>::new());
    for segment in segments {
        let (start, end) = (at(segment), at(segment + 1));
        if end - start < 2 {
            continue;
        }
        let (from, part) = (&input[start..end], start - begin..end - begin);
        if size_of::<V>() == 0 && keys.whole() {
            if let Some(output) = &mut output {
                let (to, of) = (&mut output[part], |key: &K| key.rank(keys, mask));
                to.sort_unstable_by_key(of);
                // The order of equal keys is visible if their bits differ.
                for rank in K::shared(keys) {
                    let range = to.partition_point(|key| of(key) < rank)..to.partition_point(|key| of(key) <= rank);
                    let came = from.iter().filter(|key| of(key) == rank);
                    to[range].iter_mut().zip(came).for_each(|(to, &key)| *to = key);
                }
            }
            continue;
        }
        ranks.clear();
        memory::reserve(&mut ranks, from.len())?;
        ranks.extend(from.iter().map(|key| key.rank(keys, mask)).zip(0..));
        // The ranks include the index, so no two are equal.
        ranks.sort_unstable();
        for (&(_, place), to) in ranks.iter().zip(part) {
            if let Some(output) = &mut output {
                output[to] = from[place as usize];
            }
            values[to] = with.of(start + place as usize);
        }
    }
    Ok(())
}
