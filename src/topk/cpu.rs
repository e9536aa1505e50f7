//! Selection on the CPU: radix selection in parallel.

use crate::{
    Result,
    keys::Keys,
    memory, parallel,
    sort::cpu::{Word, places},
};

/// Bits of a digit; the last digit may have fewer.
const DIGIT: u32 = 11;
/// Maximum keys of a row for which pairs of key and index replace counters.
const SMALL: usize = 1 << 10;

/// Selects the keys whose numbers are below `number`, and the first `need` keys whose numbers equal it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Threshold {
    number: u64,
    need: usize,
}

/// Runs `$body` with `$row` bound to the keys in `$bytes`.
macro_rules! with_keys {
    ($keys:expr, $bytes:expr, $row:ident => $body:expr) => {
        match $keys.bytes {
            1 => {
                let $row: &[u8] = $bytes;
                $body
            }
            2 => {
                let $row: &[u16] = bytemuck::cast_slice($bytes);
                $body
            }
            4 => {
                let $row: &[u32] = bytemuck::cast_slice($bytes);
                $body
            }
            _ => {
                let $row: &[u64] = bytemuck::cast_slice($bytes);
                $body
            }
        }
    };
}

/// Buffers that a task reuses from row to row.
#[derive(Default)]
pub(super) struct Room {
    pairs: Vec<(u64, usize)>,
    places: Vec<usize>,
}

/// The indices of the first k keys of a row in the order of `keys`: sorted by key if `sorted`, else ascending. `row`
/// has the bytes of at least k keys, and k > 0.
pub(super) fn select<'a>(keys: &Keys, row: &[u8], k: usize, sorted: bool, room: &'a mut Room) -> Result<&'a [usize]> {
    with_keys!(keys, row, row => {
        if row.len() <= SMALL {
            of_few(keys, row, k, sorted, room)?;
        } else {
            room.places = taken(keys, row, threshold(keys, row, k)?)?;
            if sorted {
                let found = memory::collect(room.places.iter().map(|&place| row[place]))?;
                let mut order = memory::zeroed::<u64>(found.len())?;
                places(keys, bytemuck::cast_slice(&found), None, &mut order)?;
                room.places = memory::collect(order.into_iter().map(|i| room.places[i as usize]))?;
            }
        }
    });
    Ok(&room.places)
}

/// [`select`] for a row of few keys.
fn of_few<K: Word>(keys: &Keys, row: &[K], k: usize, sorted: bool, Room { pairs, places }: &mut Room) -> Result<()> {
    pairs.clear();
    memory::reserve(pairs, row.len())?;
    pairs.extend(row.iter().map(|&key| keys.ordered(key.into())).zip(0..));
    pairs.select_nth_unstable(k - 1);
    pairs.truncate(k);
    if sorted {
        pairs.sort_unstable();
    } else {
        pairs.sort_unstable_by_key(|&(_, place)| place);
    }
    places.clear();
    memory::reserve(places, k)?;
    places.extend(pairs.iter().map(|&(_, place)| place));
    Ok(())
}

/// The bits of the key of a rank, counted from 0.
pub(super) fn value(keys: &Keys, row: &[u8], rank: usize) -> Result<u64> {
    with_keys!(keys, row, row => {
        let Threshold { number, need } = threshold(keys, row, rank + 1)?;
        #[allow(clippy::useless_conversion, reason = "keys have four sizes, one of which is that of `u64`")]
        let mut there = row.iter().map(|&key| key.into()).filter(|&key: &u64| keys.ordered(key) == number);
        Ok(there.nth(need - 1).expect("the threshold is a key's number"))
    })
}

fn threshold<K: Word>(keys: &Keys, row: &[K], k: usize) -> Result<Threshold> {
    let as_they_are = Keys { bytes: 8, flip: 0, always: 0, bits: 0..64, floats: false };
    let (mut number, mut need, mut left) = (0, k, 8 * keys.bytes as u32);
    // The numbers whose higher digits equal those of the threshold, once few are left.
    let mut few: Option<Vec<u64>> = None;
    while left > 0 {
        let bits = left.min(DIGIT);
        left -= bits;
        let counts = match &few {
            Some(few) => counts(&as_they_are, few, number, left, bits)?,
            None => counts(keys, row, number, left, bits)?,
        };
        let mut found = 0;
        while need > counts[found] {
            need -= counts[found];
            found += 1;
        }
        number = number << bits | found as u64;
        if few.is_none() && left > 0 && counts[found] <= row.len() / 4 {
            let parts = parallel::parts(row.len(), parallel::SERIAL);
            let numbers = |i: usize| {
                let numbers = row[parts[i].clone()].iter().map(|&key| keys.ordered(key.into()));
                numbers.filter(|&x| x >> left == number)
            };
            let mut own = memory::with_capacity(counts[found])?;
            for numbers in parallel::try_map(parts.len(), &|i| {
                let mut own = memory::with_capacity(numbers(i).count())?;
                own.extend(numbers(i));
                Ok(own)
            })? {
                own.extend(numbers);
            }
            few = Some(own);
        }
    }
    Ok(Threshold { number, need })
}

/// The histogram of one digit: the `bits` bits above the lowest `left` bits. Counts only keys whose bits above that
/// digit equal `number`.
fn counts<K: Word>(keys: &Keys, row: &[K], number: u64, left: u32, bits: u32) -> Result<Vec<usize>> {
    let parts = parallel::parts(row.len(), parallel::SERIAL);
    let own = parallel::try_map(parts.len(), &|i| {
        let mut counts = memory::zeroed::<usize>(1 << bits)?;
        for &key in &row[parts[i].clone()] {
            let above = keys.ordered(key.into()) >> left;
            if above >> bits == number {
                counts[above as usize & ((1 << bits) - 1)] += 1;
            }
        }
        Ok(counts)
    })?;
    memory::collect((0..1usize << bits).map(|d| own.iter().map(|counts| counts[d]).sum()))
}

/// The indices of the selected keys, in the order of the row.
fn taken<K: Word>(keys: &Keys, row: &[K], Threshold { number, need }: Threshold) -> Result<Vec<usize>> {
    let parts = parallel::parts(row.len(), parallel::SERIAL);
    let ordered = |key: K| keys.ordered(key.into());
    let at =
        parallel::map(parts.len(), &|i| row[parts[i].clone()].iter().filter(|&&key| ordered(key) == number).count())?;
    let before: Vec<usize> = at.iter().scan(0, |sum, &count| Some(std::mem::replace(sum, *sum + count))).collect();
    let own = parallel::try_map(parts.len(), &|i| {
        let (mut places, mut at) = (Vec::new(), before[i]);
        for place in parts[i].clone() {
            let x = ordered(row[place]);
            if x < number || (x == number && at < need) {
                memory::push(&mut places, place)?;
            }
            at += usize::from(x == number);
        }
        Ok(places)
    })?;
    let mut all = memory::with_capacity(own.iter().map(Vec::len).sum())?;
    own.iter().for_each(|places| all.extend_from_slice(places));
    Ok(all)
}
