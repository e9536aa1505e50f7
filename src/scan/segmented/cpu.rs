//! Where segments start, on the CPU.

use crate::reduce::segmented::Offsets;

/// Element i in the order of a scan of n is the one at this place.
fn at(i: usize, n: usize, reversed: bool) -> usize {
    if reversed { n - 1 - i } else { i }
}

/// Where a key differs from the one before it.
pub(super) fn keys<K: PartialEq + Sync>(keys: &[K], reversed: bool) -> impl Fn(usize, &mut [bool]) + Sync {
    move |first, heads| {
        let key = |i: usize| &keys[at(i, keys.len(), reversed)];
        for (i, head) in (first..).zip(heads) {
            *head = i > 0 && key(i - 1) != key(i);
        }
    }
}

/// Where a flag is set; if reversed, behind it.
pub(super) fn flags<K: PartialEq + Sync>(flags: &[K], unset: K, reversed: bool) -> impl Fn(usize, &mut [bool]) + Sync {
    move |first, heads| {
        for (i, head) in (first..).zip(heads) {
            *head = if reversed { i > 0 && flags[flags.len() - i] != unset } else { flags[i] != unset };
        }
    }
}

/// At the offsets among n elements, which may be in no order.
pub(super) fn offsets(offsets: Offsets<'_>, n: usize, reversed: bool) -> impl Fn(usize, &mut [bool]) + Sync {
    move |first, heads| {
        heads.fill(false);
        let end = first + heads.len();
        let mut set = |i: Option<usize>| {
            if let Some(head) = i.and_then(|i| i.checked_sub(first)).and_then(|i| heads.get_mut(i)) {
                *head = true;
            }
        };
        if reversed {
            let ranks = (0..offsets.rank(n - first)).rev().map(|rank| offsets.get(rank));
            ranks.take_while(|&offset| offset > n - end).for_each(|offset| set(n.checked_sub(offset)));
        } else {
            let ranks = (offsets.below(first)..offsets.len()).map(|rank| offsets.get(rank));
            ranks.take_while(|&offset| offset < end).for_each(|offset| set(Some(offset)));
        }
    }
}

/// At each multiple of a row's length.
pub(super) fn rows(len: usize) -> impl Fn(usize, &mut [bool]) + Sync {
    move |first, heads| {
        heads.fill(false);
        let next = first.next_multiple_of(len) - first;
        heads.iter_mut().skip(next).step_by(len).for_each(|head| *head = true);
    }
}
