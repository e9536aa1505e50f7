//! Scratch buffers that are kept from call to call.

/// Scratch of the calls on one queue: idle buffers for later calls, and a buffer that the user has reserved.
pub(super) struct Pool<M> {
    /// Idle buffers; the most recently used one is last.
    kept: Vec<Slot<M>>,
    /// Bytes of the idle buffers that are not parts of a reservation.
    bytes: usize,
    limit: usize,
    reserved: Option<Reserved<M>>,
    /// Parts and reservations that commands may still use, though nothing else does.
    ended: Vec<M>,
    /// Bytes of all buffers, idle or in use, with the reservation.
    held: usize,
    most: usize,
}

/// A buffer, or a part of the reservation.
pub(super) struct Slot<M> {
    pub(super) mem: M,
    pub(super) size: usize,
    /// For a part: the number of its reservation, and its first byte in it.
    part: Option<(usize, usize)>,
}

/// A buffer whose parts serve calls.
struct Reserved<M> {
    mem: M,
    size: usize,
    number: usize,
    /// The first byte and the size of each part in use, in order.
    parts: Vec<(usize, usize)>,
    /// The first byte and the size of idle parts; the most recently used one is last. Other parts may have the same bytes.
    idle: Vec<(usize, usize, M)>,
}

impl<M> Reserved<M> {
    /// The first byte of the first gap of `size` bytes, and the index of the part after it.
    fn gap(&self, size: usize) -> Option<(usize, usize)> {
        let mut start = 0;
        for (i, &(first, bytes)) in self.parts.iter().enumerate() {
            if first - start >= size {
                return Some((start, i));
            }
            start = first + bytes;
        }
        (self.size - start >= size).then_some((start, self.parts.len()))
    }
}

impl<M> Pool<M> {
    const COUNT: usize = 8;
    /// Idle parts of a reservation, and parts that are released together.
    const PARTS: usize = 32;
    /// A pool keeps at most the device's memory divided by `SHARE`, or `UNKNOWN` bytes if the driver does not report that
    /// memory.
    const SHARE: u64 = 16;
    const UNKNOWN: usize = 256 << 20;

    /// An empty pool for a device with `global_bytes` bytes of memory; 0 if unknown.
    pub(super) fn new(global_bytes: u64) -> Self {
        let limit = if global_bytes == 0 { Self::UNKNOWN } else { (global_bytes / Self::SHARE) as usize };
        Self { kept: Vec::new(), bytes: 0, limit, reserved: None, ended: Vec::new(), held: 0, most: 0 }
    }

    /// Peak bytes of the pool's buffers, idle or in use.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Best fit: takes the smallest idle buffer of `bytes` to about `4 * max(bytes, 65536)` bytes. So a repeated call
    /// gets the same buffers.
    ///
    /// If there is none, takes a part of `size` bytes of the reservation. `cut(mem, first)` makes the sub-buffer that
    /// starts at byte `first`.
    pub(super) fn take(
        &mut self,
        bytes: usize,
        size: usize,
        mut cut: impl FnMut(&M, usize) -> Option<M>,
    ) -> Option<Slot<M>> {
        let fits = |slot: &Slot<M>| slot.size >= bytes && slot.size / 4 <= bytes.max(1 << 16);
        let fit = self.kept.iter().enumerate().filter(|(_, slot)| fits(slot)).min_by_key(|(_, slot)| slot.size);
        if let Some(i) = fit.map(|(i, _)| i) {
            let slot = self.kept.remove(i);
            self.bytes -= slot.size;
            return Some(slot);
        }
        let reserved = self.reserved.as_mut()?;
        let (first, i) = reserved.gap(size)?;
        let mem = match reserved.idle.iter().position(|part| (part.0, part.1) == (first, size)) {
            Some(idle) => reserved.idle.remove(idle).2,
            None => cut(&reserved.mem, first)?,
        };
        reserved.parts.insert(i, (first, size));
        Some(Slot { mem, size, part: Some((reserved.number, first)) })
    }

    /// A new buffer of `size` bytes, which is in use.
    pub(super) fn add(&mut self, size: usize, mem: M) -> Slot<M> {
        self.hold(size);
        Slot { mem, size, part: None }
    }

    /// Keeps a buffer, and drops older ones if needed.
    pub(super) fn put(&mut self, slot: Slot<M>) {
        if slot.part.is_some() || slot.size > self.limit {
            return self.drop_slot(slot);
        }
        self.bytes += slot.size;
        self.kept.push(slot);
        while self.kept.len() > Self::COUNT || self.bytes > self.limit {
            let slot = self.kept.remove(0);
            self.bytes -= slot.size;
            self.drop_slot(slot);
        }
    }

    /// Releases a buffer that is not among the idle ones. The bytes of a part are free again.
    pub(super) fn drop_slot(&mut self, slot: Slot<M>) {
        match (slot.part, &mut self.reserved) {
            (None, _) => self.held -= slot.size,
            (Some((number, first)), Some(reserved)) if reserved.number == number => {
                reserved.parts.retain(|part| part.0 != first);
                reserved.idle.push((first, slot.size, slot.mem));
                if reserved.idle.len() > Self::PARTS {
                    self.ended.push(reserved.idle.remove(0).2);
                }
            }
            // The part's reservation was replaced. Its memory is freed with its last part.
            _ => self.ended.push(slot.mem),
        }
    }

    /// The parts and reservations that may be released once all commands so far have ended; none until there are many.
    pub(super) fn ended(&mut self) -> Vec<M> {
        if self.ended.len() < Self::PARTS { Vec::new() } else { std::mem::take(&mut self.ended) }
    }

    /// Returns whether the queue has ever reserved memory.
    pub(super) fn has_parts(&self) -> bool {
        self.reserved.is_some()
    }

    /// Returns whether `size` bytes are reserved.
    pub(super) fn has_reserved(&self, size: usize) -> bool {
        self.reserved.as_ref().is_some_and(|reserved| reserved.size >= size)
    }

    /// Reserves a buffer of `size` bytes in place of a smaller one. Parts in use of the smaller one live until they are returned.
    pub(super) fn reserve(&mut self, size: usize, mem: M) {
        if self.has_reserved(size) {
            return;
        }
        let number = self.reserved.take().map_or(0, |old| {
            self.held -= old.size;
            self.ended.extend(old.idle.into_iter().map(|part| part.2).chain([old.mem]));
            old.number + 1
        });
        self.reserved = Some(Reserved { mem, size, number, parts: Vec::new(), idle: Vec::new() });
        self.hold(size);
    }

    fn hold(&mut self, size: usize) {
        self.held += size;
        self.note(self.held);
    }

    /// Counts `size` bytes as held at this time.
    pub(super) fn note(&mut self, size: usize) {
        self.most = self.most.max(size);
    }

    /// Drops all idle buffers. The reservation stays.
    pub(super) fn clear(&mut self) {
        for slot in std::mem::take(&mut self.kept) {
            self.drop_slot(slot);
        }
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::{Pool, Slot};

    /// A pool whose memory is its first byte and its name. Takes buffers as the device does, in steps of 256 bytes.
    fn take(pool: &mut Pool<(usize, char)>, bytes: usize) -> Option<Slot<(usize, char)>> {
        pool.take(bytes, bytes.next_multiple_of(256), |&(_, name), first| Some((first, name)))
    }

    fn put(pool: &mut Pool<(usize, char)>, size: usize, name: char) {
        let slot = pool.add(size, (0, name));
        pool.put(slot);
    }

    #[test]
    fn a_pool_keeps_at_most_a_share_of_the_memory() {
        let mut pool = Pool::new(16 << 20);
        put(&mut pool, (1 << 20) + 1, 'x');
        assert!(take(&mut pool, 1).is_none());
        assert_eq!(pool.held, 0);
        for name in 'a'..='e' {
            put(&mut pool, 256 << 10, name);
        }
        assert_eq!((pool.bytes, pool.kept.len(), pool.kept[0].mem.1), (1 << 20, 4, 'b'));
        put(&mut pool, 1 << 20, 'f');
        assert_eq!((pool.bytes, pool.held, pool.kept.len()), (1 << 20, 1 << 20, 1));
        pool.clear();
        assert!(pool.bytes == 0 && pool.held == 0 && take(&mut pool, 1).is_none());
        assert_eq!(pool.most(), 2 << 20);
    }

    #[test]
    fn a_pool_keeps_a_few_buffers_and_gives_them_once() {
        let mut pool = Pool::new(0);
        for name in 'a'..='t' {
            put(&mut pool, 256, name);
        }
        let mut taken: Vec<_> = std::iter::from_fn(|| take(&mut pool, 200)).map(|slot| slot.mem.1).collect();
        taken.sort();
        assert_eq!(taken, ('m'..='t').collect::<Vec<_>>());
        assert_eq!((pool.bytes, pool.held), (0, 8 * 256));
        // No large buffer for a small request, and no small buffer for a large one.
        put(&mut pool, 1 << 20, 'x');
        assert!(take(&mut pool, 1 << 10).is_none() && take(&mut pool, (1 << 20) + 1).is_none());
        assert_eq!(take(&mut pool, 1 << 19).map(|slot| (slot.size, slot.mem)), Some((1 << 20, (0, 'x'))));
    }

    /// First fit would give the large buffer to the small request.
    #[test]
    fn a_request_takes_the_smallest_buffer_that_serves_it() {
        let mut pool = Pool::new(0);
        put(&mut pool, 3 << 18, 'l');
        put(&mut pool, 1 << 18, 's');
        let small = take(&mut pool, 1 << 18).unwrap();
        let large = take(&mut pool, 3 << 18).unwrap();
        assert_eq!((small.mem.1, large.mem.1), ('s', 'l'));
    }

    fn range(slot: &Slot<(usize, char)>) -> Range<usize> {
        slot.mem.0..slot.mem.0 + slot.size
    }

    #[test]
    fn parts_of_a_reservation_are_disjoint_and_serve_any_sizes_again() {
        let mut pool = Pool::new(0);
        pool.reserve(1 << 20, (0, 'r'));
        assert!(pool.has_reserved(1 << 20) && !pool.has_reserved((1 << 20) + 1));
        let mut random = crate::rng::Rng::new(1);
        let mut used: Vec<Slot<_>> = Vec::new();
        for _ in 0..10_000 {
            if used.len() < 5 && random.below(2) == 0 {
                if let Some(slot) = take(&mut pool, 1 + random.below(1 << 18) as usize) {
                    assert!(range(&slot).end <= 1 << 20);
                    assert!(used.iter().all(|other| range(other).end <= slot.mem.0 || range(&slot).end <= other.mem.0));
                    used.push(slot);
                }
            } else if !used.is_empty() {
                let slot = used.swap_remove(random.below(used.len() as u64) as usize);
                pool.put(slot);
            }
        }
        used.into_iter().for_each(|slot| pool.put(slot));
        // Idle parts give way to a request of all bytes.
        assert_eq!(take(&mut pool, 1 << 20).map(|slot| range(&slot)), Some(0..1 << 20));
        assert_eq!((pool.bytes, pool.held, pool.most()), (0, 1 << 20, 1 << 20));
    }

    #[test]
    fn a_reservation_outlives_a_shortage_and_yields_to_a_larger_one() {
        let mut pool = Pool::new(16 << 20);
        pool.reserve(2 << 20, (0, 'a'));
        put(&mut pool, 1 << 10, 'x');
        let old = take(&mut pool, 1 << 19).unwrap();
        pool.clear();
        assert_eq!((pool.held, take(&mut pool, 1 << 10).unwrap().mem), (2 << 20, (1 << 19, 'a')));
        pool.reserve(1 << 20, (0, 'b'));
        pool.reserve(4 << 20, (0, 'c'));
        let new = take(&mut pool, 1 << 19).unwrap();
        assert_eq!((old.mem.1, new.mem), ('a', (0, 'c')));
        // The old part has the offset of the new one. Its drop must leave the new one in use.
        pool.drop_slot(old);
        assert_eq!(take(&mut pool, 1 << 19).unwrap().mem, (1 << 19, 'c'));
        assert_eq!(pool.held, 4 << 20);
    }
    /// Commands may still use a part that was returned.
    #[test]
    fn idle_parts_serve_again_and_are_released_in_batches() {
        let mut pool = Pool::new(0);
        pool.reserve(1 << 20, (0, 'r'));
        let mut cuts = 0;
        let mut use_once = |pool: &mut Pool<(usize, char)>, size: usize| {
            let cut = |&(_, name): &(usize, char), first| {
                cuts += 1;
                Some((first, name))
            };
            let slot = pool.take(size, size, cut).unwrap();
            pool.put(slot);
            cuts
        };
        for _ in 0..100 {
            assert_eq!(use_once(&mut pool, 512), 1);
        }
        let (most, mut released) = (Pool::<()>::PARTS, 0);
        for i in 0..1000 {
            assert_eq!(use_once(&mut pool, 256 * (3 + i)), i + 2);
            let ended = pool.ended().len();
            assert!(ended == 0 || ended == most, "{ended}");
            released += ended;
        }
        // The parts that were not released are idle, or wait for the next batch.
        assert_eq!(released, (1001 - most) / most * most);
        pool.reserve(2 << 20, (0, 's'));
        assert_eq!(pool.ended().len(), 1001 - released + 1);
    }
}
