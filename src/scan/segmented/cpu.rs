//! Segment heads on the CPU.

use crate::{Element, element::equal, segments::Offsets};

/// Marks the segment heads: each element whose key differs from the key before it in the order of the scan.
pub(super) fn keys<K: Element>(keys: &[K], reversed: bool) -> impl Fn(usize, &mut [bool]) + Sync {
    move |first, heads| {
        // The first element has none before it.
        let skipped = usize::from(first == 0);
        let (none, heads) = heads.split_at_mut(skipped.min(heads.len()));
        none.fill(false);
        let (first, differ) = (first + skipped, |(head, (&a, &b)): (&mut bool, (&K, &K))| *head = !equal(a, b));
        if reversed {
            let end = keys.len() - first;
            heads.iter_mut().zip(keys[..end].iter().zip(&keys[1..=end]).rev()).for_each(differ);
        } else {
            heads.iter_mut().zip(keys[first..].iter().zip(&keys[first - 1..])).for_each(differ);
        }
    }
}

/// Marks the segment heads: each element whose flag is set; if reversed, the element after it in the order of the scan.
pub(super) fn flags(flags: &[u8], reversed: bool) -> impl Fn(usize, &mut [bool]) + Sync {
    move |first, heads| {
        let put = |(head, flag): (&mut bool, &u8)| *head = *flag != 0;
        if reversed {
            // In the order of the scan, the first element has no flag before it.
            let skipped = usize::from(first == 0);
            let (none, heads) = heads.split_at_mut(skipped.min(heads.len()));
            none.fill(false);
            heads.iter_mut().zip(flags[..=flags.len() - first - skipped].iter().rev()).for_each(put);
        } else {
            heads.iter_mut().zip(&flags[first..]).for_each(put);
        }
    }
}

/// Marks the segment heads: the elements at the offsets. If offsets are not in order, heads are unspecified, but in
/// bounds.
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

/// Marks the segment heads: each multiple of a row's length.
pub(super) fn rows(len: usize) -> impl Fn(usize, &mut [bool]) + Sync {
    move |first, heads| {
        heads.fill(false);
        let next = first.next_multiple_of(len) - first;
        heads.iter_mut().skip(next).step_by(len).for_each(|head| *head = true);
    }
}
