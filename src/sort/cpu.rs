//! Radix sort on the CPU. The most significant digits split the keys into buckets, in parallel, until a bucket fits a
//! thread's cache. Within a bucket, the least significant digit is sorted first. `rdst` sorts keys without values by
//! all bits; afterwards, zeros and NaN return to the order of the input. Merges sort keys of 16 bytes.

use std::slice::IterMut;

use bytemuck::{Pod, try_cast_slice, try_cast_slice_mut};
use rdst::{RadixKey, RadixSort};

use crate::{
    Offset, Result,
    keys::{Digit, Keys},
    memory,
    merge::sort::cpu as merges,
    parallel, threads,
};

const RADIX: usize = 256;
/// Minimum keys of a part that is worth its own counters.
const SERIAL: usize = 1 << 14;
/// Bytes of keys and values in a bucket that one thread sorts.
const BUCKET_BYTES: usize = 256 << 10;
/// Maximum bytes that `rdst` allocates per thread, besides a copy of all keys: a thread copies up to 200,000 keys to
/// sort them.
const RDST_THREAD_BYTES: usize = 4 << 20;
/// Maximum number of keys that insertion sort takes.
const FEW: usize = 24;

/// An unsigned integer that holds the bits of a key.
pub(crate) trait Word: Pod + Into<u64> + Ord + Send + Sync + RadixKey {
    /// Truncates `bits` to this type.
    fn of(bits: u64) -> Self;
}

macro_rules! words {
    ($($word:ty),*) => { $(
        impl Word for $word {
            #[inline]
            fn of(bits: u64) -> Self {
                bits as Self
            }
        }
    )* };
}
words!(u8, u16, u32, u64);

/// Data that moves with a key: a value, an index, or `()`.
trait With: Pod + Send + Sync {}
impl<T: Pod + Send + Sync> With for T {}

/// Keys and their values.
type Pairs<'p, K, V> = (&'p mut [K], &'p mut [V]);

/// Sorts keys without values.
pub(super) fn keys(keys: &Keys, input: &[u8], output: &mut [u8]) -> Result<()> {
    // If all bits count, equal keys are identical, so their order is not visible. Zeros and NaN are exceptions.
    if keys.whole() {
        return match keys.bytes {
            1 => by_rdst::<u8>(keys, input, output),
            2 => by_rdst::<u16>(keys, input, output),
            4 => by_rdst::<u32>(keys, input, output),
            8 => by_rdst::<u64>(keys, input, output),
            _ => wide(keys, input, Some(output), &mut vec![(); input.len() / keys.bytes]),
        };
    }
    let n = input.len() / keys.bytes;
    by_size(keys, input, Some(output), &mut vec![(); n])
}

/// Sorts keys with values. Returns false if values of this size or alignment cannot move with the keys.
pub(super) fn pairs<T: Pod>(
    keys: &Keys,
    (input, output): (&[u8], &mut [u8]),
    (values, values_out): (&[T], &mut [T]),
) -> Result<bool> {
    fn with<T: Pod, V: With>(
        keys: &Keys,
        (input, output): (&[u8], &mut [u8]),
        (values, values_out): (&[T], &mut [T]),
    ) -> Result<bool> {
        let (Ok(from), Ok(to)) = (try_cast_slice::<T, V>(values), try_cast_slice_mut(values_out)) else {
            return Ok(false);
        };
        to.copy_from_slice(from);
        by_size(keys, input, Some(output), to).map(|()| true)
    }
    let (x, v) = ((input, output), (values, values_out));
    match size_of::<T>() {
        1 => with::<T, u8>(keys, x, v),
        2 => with::<T, u16>(keys, x, v),
        4 => with::<T, u32>(keys, x, v),
        8 => with::<T, u64>(keys, x, v),
        16 => with::<T, [u64; 2]>(keys, x, v),
        _ => Ok(false),
    }
}

/// Writes the indices that sort the keys to `places`, and the sorted keys to `output`, if any.
pub(crate) fn places<I: Offset>(keys: &Keys, input: &[u8], output: Option<&mut [u8]>, places: &mut [I]) -> Result<()> {
    parallel::chunks_mut(places, SERIAL, &|chunk, part| {
        for (place, number) in (chunk * SERIAL..).zip(part) {
            *number = I::from_i128(place as i128);
        }
    });
    by_size(keys, input, output, places)
}

/// Sorts keys, and `values` with them.
fn by_size<V: With>(keys: &Keys, input: &[u8], output: Option<&mut [u8]>, values: &mut [V]) -> Result<()> {
    match keys.bytes {
        1 => of::<u8, V>(keys, input, output, values),
        2 => of::<u16, V>(keys, input, output, values),
        4 => of::<u32, V>(keys, input, output, values),
        8 => of::<u64, V>(keys, input, output, values),
        _ => wide(keys, input, output, values),
    }
}

/// Sorts keys by all bits, in place.
pub(super) fn in_place(keys: &Keys, data: &mut [u8]) {
    fn of<K: Word>(keys: &Keys, data: &mut [u8]) {
        let data: &mut [K] = bytemuck::cast_slice_mut(data);
        // Numbers replace the keys before the sort, so that comparisons need no conversion.
        let make = |data: &mut [K], number: &(dyn Fn(u64) -> u64 + Sync)| {
            parallel::chunks_mut(data, SERIAL, &|_, part| {
                part.iter_mut().for_each(|x| *x = K::of(number((*x).into())))
            });
        };
        make(data, &|key| keys.distinct(key));
        parallel::sort_unstable_by_key(data, &|&number| -> u64 { number.into() });
        make(data, &|number| keys.of_distinct(number));
    }
    match keys.bytes {
        1 => of::<u8>(keys, data),
        2 => of::<u16>(keys, data),
        4 => of::<u32>(keys, data),
        8 => of::<u64>(keys, data),
        _ => parallel::sort_unstable_by_key(bytemuck::cast_slice_mut(data), &|key| keys.ordered_wide(*key)),
    }
}

/// Sorts keys of 16 bytes, and `values` with them.
fn wide<V: With>(keys: &Keys, input: &[u8], output: Option<&mut [u8]>, values: &mut [V]) -> Result<()> {
    let input: &[u128] = bytemuck::cast_slice(input);
    let (n, mask) = (input.len(), keys.mask());
    let mut own;
    let output: &mut [u128] = match output {
        Some(output) => bytemuck::cast_slice_mut(output),
        None => {
            own = memory::zeroed::<u128>(n)?;
            &mut own
        }
    };
    let mut from = memory::zeroed::<V>(n)?;
    from.copy_from_slice(values);
    let less = |a: &u128, b: &u128| keys.ordered_wide(*a) & mask < keys.ordered_wide(*b) & mask;
    merges::sort((input, &from), (output, values), &less)
}

/// Maps keys to numbers of the same order, sorts the numbers, and maps them back.
fn by_rdst<K: Word>(keys: &Keys, input: &[u8], output: &mut [u8]) -> Result<()> {
    let (input, output): (&[K], &mut [K]) = (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(output));
    parallel::chunks_mut(output, SERIAL, &|chunk, part| {
        for (to, &key) in part.iter_mut().zip(&input[chunk * SERIAL..]) {
            *to = K::of(keys.distinct(key.into()));
        }
    });
    // `rdst` allocates a copy of the keys and a buffer per thread. `rdst` aborts the process if memory or threads are
    // missing.
    let bytes = size_of_val(output).saturating_add(parallel::threads() * RDST_THREAD_BYTES);
    if threads::ready() && memory::probe(bytes).is_ok() {
        output.radix_sort_unstable();
    } else {
        parallel::sort_unstable_by_key(output, &|&key| key);
    }
    if !keys.plain() {
        parallel::chunks_mut(output, SERIAL, &|_, part| {
            part.iter_mut().for_each(|to| *to = K::of(keys.of_distinct((*to).into())));
        });
    }
    for number in keys.shared() {
        in_order_of_input(keys, number, input, output)?;
    }
    Ok(())
}

/// Restores the input order of the keys whose number is `number`, if their bits differ.
fn in_order_of_input<K: Word>(keys: &Keys, number: u64, input: &[K], output: &mut [K]) -> Result<()> {
    let of = |key: &K| keys.ordered((*key).into());
    let (begin, end) =
        (output.partition_point(|key| of(key) < number), output.partition_point(|key| of(key) <= number));
    let mut there = &mut output[begin..end];
    // These keys are sorted by their bits: if the first and the last are identical, all are.
    if there.first().copied().map(K::into) == there.last().copied().map(K::into) {
        return Ok(());
    }
    let parts = parallel::parts(input.len(), SERIAL);
    let counts =
        parallel::map(parts.len(), &|i| input[parts[i].clone()].iter().filter(|key| of(key) == number).count())?;
    let tasks = counts.iter().zip(&parts).map(|(&count, part)| (there.split_off_mut(..count), part));
    parallel::consume(tasks, &|(to, part): (Option<&mut [K]>, &std::ops::Range<usize>)| {
        let from = input[part.clone()].iter().filter(|key| of(key) == number);
        to.into_iter().flatten().zip(from).for_each(|(to, &key)| *to = key);
    })
}

/// Sorts keys, and `values` with them.
fn of<K: Word, V: With>(keys: &Keys, input: &[u8], output: Option<&mut [u8]>, values: &mut [V]) -> Result<()> {
    let input: &[K] = bytemuck::cast_slice(input);
    let n = input.len();
    let mut own;
    let output: &mut [K] = match output {
        Some(output) => bytemuck::cast_slice_mut(output),
        None => {
            own = memory::zeroed::<K>(n)?;
            &mut own
        }
    };
    let (mut spare, mut between) = (memory::zeroed::<K>(n)?, memory::zeroed::<V>(n)?);
    let digits = active(keys, input)?;
    match digits.split_last() {
        Some((&highest, lower)) if n > bucket::<K, V>() => {
            let ends = partition(keys, highest, (input, values), (&mut spare, &mut between))?;
            sort_buckets(keys, lower, &ends, (&mut spare, &mut between), (output, values), true)?;
        }
        _ => {
            output.copy_from_slice(input);
            sort_bucket(keys, &digits, (output, values), (&mut spare, &mut between), false)?;
        }
    }
    Ok(())
}

/// Maximum keys that one thread sorts: the keys, the values and their copies fit the second-level cache.
const fn bucket<K, V>() -> usize {
    BUCKET_BYTES / (size_of::<K>() + size_of::<V>())
}

/// Sorts each bucket of `from` in place, or into `to` if `over`. Bucket `i` ends at `ends[i]`, where the next one
/// begins.
fn sort_buckets<K: Word, V: With>(
    keys: &Keys,
    digits: &[Digit],
    ends: &[usize],
    (mut from, mut from_values): Pairs<'_, K, V>,
    (mut to, mut to_values): Pairs<'_, K, V>,
    over: bool,
) -> Result<()> {
    let (mut tasks, mut begin) = (memory::with_capacity(ends.len())?, 0);
    for &end in ends {
        let len = end - begin;
        let parts = (from.split_at_mut(len), from_values.split_at_mut(len));
        let others = (to.split_at_mut(len), to_values.split_at_mut(len));
        tasks.push(((parts.0.0, parts.1.0), (others.0.0, others.1.0)));
        (from, from_values, to, to_values, begin) = (parts.0.1, parts.1.1, others.0.1, others.1.1, end);
    }
    parallel::try_consume(tasks.into_iter(), &|(from, to)| sort_bucket(keys, digits, from, to, over))
}

/// Sorts `from` by `digits` in place, or into `to` if `over`.
fn sort_bucket<K: Word, V: With>(
    keys: &Keys,
    digits: &[Digit],
    from: Pairs<'_, K, V>,
    to: Pairs<'_, K, V>,
    over: bool,
) -> Result<()> {
    let n = from.0.len();
    match digits.split_last() {
        Some((&highest, lower)) if n > bucket::<K, V>() => {
            let ends = partition(keys, highest, (from.0, from.1), (&mut *to.0, &mut *to.1))?;
            sort_buckets(keys, lower, &ends, to, from, !over)
        }
        _ => {
            let moved = if n <= FEW {
                insert(keys, digits, from.0, from.1);
                false
            } else {
                move_by_digits(keys, digits, (&mut *from.0, &mut *from.1), (&mut *to.0, &mut *to.1))?
            };
            match (moved, over) {
                (false, true) => {
                    to.0.copy_from_slice(from.0);
                    to.1.copy_from_slice(from.1);
                }
                (true, false) => {
                    from.0.copy_from_slice(to.0);
                    from.1.copy_from_slice(to.1);
                }
                _ => {}
            }
            Ok(())
        }
    }
}

/// Insertion sort for few keys.
fn insert<K: Word, V: With>(keys: &Keys, digits: &[Digit], x: &mut [K], values: &mut [V]) {
    let mask = digits.iter().fold(0, |mask, digit| mask | u64::from(digit.mask) << digit.shift);
    for i in 1..x.len() {
        let (key, value) = (x[i], values[i]);
        let rank = keys.ordered(key.into()) & mask;
        let mut at = i;
        while at > 0 && keys.ordered(x[at - 1].into()) & mask > rank {
            (x[at], values[at]) = (x[at - 1], values[at - 1]);
            at -= 1;
        }
        (x[at], values[at]) = (key, value);
    }
}

/// Sorts by `digits`, the least significant one first, and moves keys between `a` and `b`. Returns true if the result
/// is in `b`.
fn move_by_digits<K: Word, V: With>(
    keys: &Keys,
    digits: &[Digit],
    a: Pairs<'_, K, V>,
    b: Pairs<'_, K, V>,
) -> Result<bool> {
    let (mut from, mut to) = (a, b);
    let mut counts = memory::zeroed::<[u32; RADIX]>(digits.len())?;
    for &key in &*from.0 {
        let bits = keys.ordered(key.into());
        for (digit, counts) in digits.iter().zip(&mut counts) {
            counts[digit.of(bits)] += 1;
        }
    }
    let mut moved = false;
    for (digit, mut places) in digits.iter().zip(counts) {
        if places.iter().any(|&count| count as usize == from.0.len()) {
            continue;
        }
        let mut before = 0;
        for place in &mut places {
            (*place, before) = (before, before + *place);
        }
        for (&key, &value) in from.0.iter().zip(&*from.1) {
            let place = &mut places[digit.of(keys.ordered(key.into()))];
            (to.0[*place as usize], to.1[*place as usize]) = (key, value);
            *place += 1;
        }
        (from, to) = (to, from);
        moved = !moved;
    }
    Ok(moved)
}

/// The digits that are not the same in all keys.
fn active<K: Word>(keys: &Keys, input: &[K]) -> Result<Vec<Digit>> {
    let parts = parallel::parts(input.len(), SERIAL);
    let seen = parallel::map(parts.len(), &|i| {
        let bits = input[parts[i].clone()].iter().map(|&key| keys.ordered(key.into()));
        bits.fold((0, u64::MAX), |(any, all), bits| (any | bits, all & bits))
    })?;
    let (any, all) = seen.into_iter().fold((0, u64::MAX), |a, b| (a.0 | b.0, a.1 & b.1));
    let mut digits = keys.digits();
    digits.retain(|digit| (any & !all) >> digit.shift & u64::from(digit.mask) != 0);
    Ok(digits)
}

/// Stable partition by one digit: smaller digits first. Returns the end of each digit's bucket.
fn partition<K: Word, V: With>(
    keys: &Keys,
    digit: Digit,
    (from, with): (&[K], &[V]),
    (mut to, mut with_to): Pairs<'_, K, V>,
) -> Result<Vec<usize>> {
    let parts = parallel::parts(from.len(), SERIAL);
    let of = |key: K| digit.of(keys.ordered(key.into()));
    let counts: Vec<[usize; RADIX]> = parallel::map(parts.len(), &|i| {
        let mut counts = [0; RADIX];
        from[parts[i].clone()].iter().for_each(|&key| counts[of(key)] += 1);
        counts
    })?;
    // Each part has an output range per digit.
    let mut places: Vec<Vec<(IterMut<'_, K>, IterMut<'_, V>)>> = memory::with_capacity(counts.len())?;
    for _ in &counts {
        places.push(memory::with_capacity(RADIX)?);
    }
    let (mut ends, mut end) = (memory::with_capacity(RADIX)?, 0);
    for d in 0..RADIX {
        for (counts, places) in counts.iter().zip(&mut places) {
            let (keys, rest) = to.split_at_mut(counts[d]);
            let (values, more) = with_to.split_at_mut(counts[d]);
            (to, with_to) = (rest, more);
            places.push((keys.iter_mut(), values.iter_mut()));
            end += counts[d];
        }
        ends.push(end);
    }
    parallel::consume(places.into_iter().enumerate(), &|(i, mut places)| {
        for (&key, &value) in from[parts[i].clone()].iter().zip(&with[parts[i].clone()]) {
            let (keys, values) = &mut places[of(key)];
            if let (Some(to), Some(with_to)) = (keys.next(), values.next()) {
                *to = key;
                *with_to = value;
            }
        }
    })?;
    Ok(ends)
}
