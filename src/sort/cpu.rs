//! Radix sort on the CPU: each pass counts the digits of parts of the keys, then moves the parts in parallel.

use std::{ops::Range, slice::IterMut};

use bytemuck::Pod;

use super::keys::{Digit, Keys, Pass, Place, route};
use crate::{Error, ErrorKind, Result, parallel};

const RADIX: usize = 256;
/// Keys below which a part is not worth its counters.
const SERIAL: usize = 1 << 14;

/// A key by its bits.
pub(crate) trait Word: Pod + Into<u64> + Send + Sync {}
impl<T: Pod + Into<u64> + Send + Sync> Word for T {}

/// What goes with a key: nothing, or a number.
trait With: Pod + Send + Sync {}
impl<T: Pod + Send + Sync> With for T {}

/// Sorts keys alone.
pub(super) fn keys(keys: &Keys, input: &[u8], output: &mut [u8]) -> Result<()> {
    let none = |n| -> Result<Vec<()>> { Ok(vec![(); n]) };
    match keys.bytes {
        1 => of::<u8, ()>(keys, input, Some(output), &none).map(drop),
        2 => of::<u16, ()>(keys, input, Some(output), &none).map(drop),
        4 => of::<u32, ()>(keys, input, Some(output), &none).map(drop),
        _ => of::<u64, ()>(keys, input, Some(output), &none).map(drop),
    }
}

/// The places of the keys in their order; the keys in `output`, if they are wanted.
pub(crate) fn places<I: Pod + Send + Sync + TryFrom<usize> + Default>(
    keys: &Keys,
    input: &[u8],
    output: Option<&mut [u8]>,
) -> Result<Vec<I>> {
    let numbers = |n| {
        let mut numbers = room::<I>(n)?;
        parallel::chunks_mut(&mut numbers, SERIAL, &|chunk, part| {
            for (place, number) in (chunk * SERIAL..).zip(part) {
                *number = I::try_from(place).unwrap_or_default();
            }
        });
        Ok(numbers)
    };
    match keys.bytes {
        1 => of::<u8, I>(keys, input, output, &numbers),
        2 => of::<u16, I>(keys, input, output, &numbers),
        4 => of::<u32, I>(keys, input, output, &numbers),
        _ => of::<u64, I>(keys, input, output, &numbers),
    }
}

/// `n` zeroed elements, or an error where there is not enough memory.
fn room<T: Pod>(n: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(n).map_err(|()| {
        let bytes = n * size_of::<T>();
        Error::new(ErrorKind::OutOfMemory, format!("allocating {bytes} bytes of host memory failed"))
    })
}

/// Sorts keys, and what `with` makes for them, which is returned.
fn of<K: Word, V: With>(
    keys: &Keys,
    input: &[u8],
    output: Option<&mut [u8]>,
    with: &dyn Fn(usize) -> Result<Vec<V>>,
) -> Result<Vec<V>> {
    let input: &[K] = bytemuck::cast_slice(input);
    let n = input.len();
    let part = n.div_ceil(2 * parallel::threads()).max(SERIAL);
    let active = active(keys, input, part);
    let mut own;
    let output: &mut [K] = match output {
        Some(output) => bytemuck::cast_slice_mut(output),
        None => {
            own = room::<K>(n)?;
            &mut own
        }
    };
    let several = active.len() > 1;
    let mut spare: Vec<K> = if several { room(n)? } else { Vec::new() };
    let given = with(n)?;
    let mut wanted: Vec<V> = room(n)?;
    let mut between: Vec<V> = if several { room(n)? } else { Vec::new() };
    for (digit, Pass { from, to, .. }) in active.iter().zip(route(active.len())) {
        let pass = |from: (&[K], &[V]), to: (&mut [K], &mut [V])| move_keys(keys, *digit, part, from, to);
        match (from, to) {
            (Place::In, Place::Spare) => pass((input, &given), (&mut spare, &mut between)),
            (Place::In, _) => pass((input, &given), (output, &mut wanted)),
            (Place::Out, _) => pass((output, &wanted), (&mut spare, &mut between)),
            (Place::Spare, _) => pass((&spare, &between), (output, &mut wanted)),
        }
    }
    Ok(wanted)
}

/// The parts of `n` keys, `part` each.
fn parts(n: usize, part: usize) -> usize {
    n.div_ceil(part)
}

fn range(i: usize, part: usize, n: usize) -> Range<usize> {
    i * part..n.min((i + 1) * part)
}

/// The digits that differ; the first one where none does.
fn active<K: Word>(keys: &Keys, input: &[K], part: usize) -> Vec<Digit> {
    let seen = parallel::map(parts(input.len(), part), &|i| {
        let bits = input[range(i, part, input.len())].iter().map(|&key| keys.ordered(key.into()));
        bits.fold((0, u64::MAX), |(any, all), bits| (any | bits, all & bits))
    });
    let (any, all) = seen.into_iter().fold((0, u64::MAX), |a, b| (a.0 | b.0, a.1 & b.1));
    let mut digits = keys.digits();
    let first = digits[0];
    digits.retain(|digit| (any & !all) >> digit.shift & u64::from(digit.mask) != 0);
    if digits.is_empty() { vec![first] } else { digits }
}

/// A pass: each key goes behind those with lower digits, and those before it with the same.
fn move_keys<K: Word, V: With>(
    keys: &Keys,
    digit: Digit,
    part: usize,
    (from, with): (&[K], &[V]),
    (to, with_to): (&mut [K], &mut [V]),
) {
    let n = from.len();
    let of = |key: K| (keys.ordered(key.into()) >> digit.shift) as usize & digit.mask as usize;
    let counts: Vec<Vec<usize>> = parallel::map(parts(n, part), &|i| {
        let mut counts = vec![0; RADIX];
        from[range(i, part, n)].iter().for_each(|&key| counts[of(key)] += 1);
        counts
    });
    // Each part has a place of its own for each digit.
    let mut places: Vec<Vec<(IterMut<'_, K>, IterMut<'_, V>)>> = counts.iter().map(|_| Vec::new()).collect();
    let (mut to, mut with_to) = (to, with_to);
    for d in 0..RADIX {
        for (counts, places) in counts.iter().zip(&mut places) {
            let (keys, rest) = to.split_at_mut(counts[d]);
            let (values, more) = with_to.split_at_mut(counts[d]);
            (to, with_to) = (rest, more);
            places.push((keys.iter_mut(), values.iter_mut()));
        }
    }
    parallel::consume(places.into_iter().enumerate().collect(), &|(i, mut places)| {
        let range = range(i, part, n);
        for (&key, &value) in from[range.clone()].iter().zip(&with[range]) {
            let (keys, values) = &mut places[of(key)];
            if let (Some(to), Some(with_to)) = (keys.next(), values.next()) {
                *to = key;
                *with_to = value;
            }
        }
    });
}
