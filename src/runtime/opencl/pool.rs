//! Memory that a queue keeps from call to call: scratch, and the memory of dropped results.

/// Scratch of the calls on one queue: idle buffers for later calls.
///
/// A reservation consists of separate buffers, not of sub-buffers of one: NVIDIA's driver crashes if several threads
/// use sub-buffers of one buffer.
pub(super) struct Pool<M> {
    /// Idle buffers; the most recently used one is last.
    kept: Vec<Slot<M>>,
    /// Bytes of the idle buffers that are not reserved.
    bytes: usize,
    limit: usize,
    /// The sizes of the reserved buffers.
    reserved: Vec<usize>,
    /// The sizes that calls use now, largest first.
    used: Vec<usize>,
    /// `needed[i]` is the largest `used[i]` so far. Buffers of these sizes serve the same calls again, except for
    /// some rare orders of the calls.
    needed: Vec<usize>,
    pub(super) released: Released<M>,
}

/// Released memory: that of results that the user has dropped. It serves later results of about the same size.
///
/// A new allocation first drops about as many released bytes. So released memory hardly adds to the largest number of
/// bytes that were in use at once.
pub(super) struct Released<M> {
    /// Sizes and memory; the last one was released last.
    kept: Vec<(usize, M)>,
    bytes: usize,
    limit: usize,
    /// Bytes of new allocations for which no released bytes were dropped yet.
    owed: usize,
}

impl<M> Released<M> {
    /// Below this size, drivers allocate in a few microseconds.
    pub(super) const LEAST: usize = 64 << 10;
    const COUNT: usize = 8;

    /// Takes the smallest released memory of `size` to `size + size / 8` bytes, and returns it with its size.
    pub(super) fn take(&mut self, size: usize) -> Option<(usize, M)> {
        let fits = |&(_, &(kept, _)): &(usize, &(usize, M))| kept >= size && kept - size <= size / 8;
        let (index, _) = self.kept.iter().enumerate().filter(fits).min_by_key(|(_, (kept, _))| *kept)?;
        let found = self.kept.remove(index);
        self.bytes -= found.0;
        Some(found)
    }

    /// Drops the oldest memory before `size` bytes are allocated. Small allocations only add to `owed`, until that is
    /// an eighth of the oldest memory. So an allocation of a few bytes does not drop a large buffer.
    pub(super) fn make_room(&mut self, size: usize) {
        self.owed = self.owed.saturating_add(size);
        while self.kept.first().is_some_and(|&(oldest, _)| self.owed >= oldest / 8) {
            self.owed = self.owed.saturating_sub(self.drop_oldest());
        }
        if self.kept.is_empty() {
            self.owed = 0;
        }
    }

    /// Keeps memory, and drops the oldest while there is more than the limits allow.
    pub(super) fn put(&mut self, size: usize, mem: M) {
        if size > self.limit {
            return;
        }
        self.bytes += size;
        self.kept.push((size, mem));
        while self.kept.len() > Self::COUNT || self.bytes > self.limit {
            self.drop_oldest();
        }
    }

    /// Drops the oldest memory, and returns its size.
    fn drop_oldest(&mut self) -> usize {
        let (size, _) = self.kept.remove(0);
        self.bytes -= size;
        size
    }
}

/// A buffer of a pool.
pub(super) struct Slot<M> {
    pub(super) mem: M,
    pub(super) size: usize,
    /// The size that the call needs.
    asked: usize,
    is_reserved: bool,
}

impl<M> Pool<M> {
    const COUNT: usize = 8;
    /// A pool keeps at most the device's memory divided by `SHARE`, or `UNKNOWN` bytes if the driver does not report that
    /// memory.
    const SHARE: u64 = 16;
    const UNKNOWN: usize = 256 << 20;

    /// An empty pool for a device with `global_bytes` bytes of memory; 0 if unknown.
    pub(super) fn new(global_bytes: u64) -> Self {
        let limit = if global_bytes == 0 { Self::UNKNOWN } else { (global_bytes / Self::SHARE) as usize };
        let released = Released { kept: Vec::new(), bytes: 0, limit, owed: 0 };
        Self { kept: Vec::new(), bytes: 0, limit, reserved: Vec::new(), used: Vec::new(), needed: Vec::new(), released }
    }

    /// The sizes of buffers for the calls so far, largest first.
    pub(super) fn needed(&self) -> &[usize] {
        &self.needed
    }

    /// Best fit: takes the smallest idle buffer of `size` bytes or more. So a repeated call gets the same buffers. Only
    /// a reserved one may be larger than about `4 * max(size, 65536)` bytes.
    pub(super) fn take(&mut self, size: usize) -> Option<Slot<M>> {
        let fits = |slot: &Slot<M>| slot.size >= size && (slot.is_reserved || slot.size / 4 <= size.max(1 << 16));
        let fit = self.kept.iter().enumerate().filter(|(_, slot)| fits(slot)).min_by_key(|(_, slot)| slot.size);
        let slot = self.kept.remove(fit?.0);
        self.bytes -= if slot.is_reserved { 0 } else { slot.size };
        self.add_use(size);
        Some(Slot { asked: size, ..slot })
    }

    /// A new buffer of `size` bytes, which is in use.
    pub(super) fn add(&mut self, size: usize, mem: M) -> Slot<M> {
        self.add_use(size);
        Slot { mem, size, asked: size, is_reserved: false }
    }

    fn add_use(&mut self, size: usize) {
        self.used.insert(self.used.partition_point(|&used| used > size), size);
        self.needed.resize(self.needed.len().max(self.used.len()), 0);
        for (needed, &used) in self.needed.iter_mut().zip(&self.used) {
            *needed = used.max(*needed);
        }
    }

    /// Takes back a buffer. Drops it unless `keep`, and drops the oldest ones while the pool is over its limits.
    pub(super) fn put(&mut self, slot: Slot<M>, keep: bool) {
        if let Some(i) = self.used.iter().position(|&used| used == slot.asked) {
            self.used.remove(i);
        }
        if slot.is_reserved {
            return self.kept.push(slot);
        }
        if !keep || slot.size > self.limit {
            return;
        }
        self.bytes += slot.size;
        self.kept.push(slot);
        let mut count = self.kept.iter().filter(|slot| !slot.is_reserved).count();
        while (count > Self::COUNT || self.bytes > self.limit)
            && let Some(oldest) = self.kept.iter().position(|slot| !slot.is_reserved)
        {
            self.bytes -= self.kept.remove(oldest).size;
            count -= 1;
        }
    }

    /// Those of `sizes` for which no reserved buffer is left.
    pub(super) fn missing(&self, mut sizes: Vec<usize>) -> Vec<usize> {
        let mut reserved = self.reserved.clone();
        sizes.sort_unstable();
        // Each size takes the smallest reserved buffer that serves it. Larger sizes come first, because fewer buffers
        // serve them.
        sizes
            .into_iter()
            .rev()
            .filter(|&size| {
                let fit = (0..reserved.len()).filter(|&i| reserved[i] >= size).min_by_key(|&i| reserved[i]);
                fit.map(|i| reserved.swap_remove(i)).is_none()
            })
            .collect()
    }

    /// Adds a reserved buffer, which stays in the pool.
    pub(super) fn reserve(&mut self, size: usize, mem: M) {
        self.reserved.push(size);
        self.kept.push(Slot { mem, size, asked: size, is_reserved: true });
    }

    /// Drops all idle buffers but the reserved ones, and all released memory.
    pub(super) fn clear(&mut self) {
        self.released.make_room(usize::MAX);
        self.kept.retain(|slot| slot.is_reserved);
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

    fn put(pool: &mut Pool<char>, size: usize, name: char) {
        let slot = pool.add(size, name);
        pool.put(slot, true);
    }

    #[test]
    fn a_pool_keeps_at_most_a_share_of_the_memory() {
        let mut pool = Pool::new(16 << 20);
        put(&mut pool, (1 << 20) + 1, 'x');
        assert!(pool.take(1).is_none());
        for name in 'a'..='e' {
            put(&mut pool, 256 << 10, name);
        }
        assert_eq!((pool.bytes, pool.kept.len(), pool.kept[0].mem), (1 << 20, 4, 'b'));
        put(&mut pool, 1 << 20, 'f');
        assert_eq!((pool.bytes, pool.kept.len()), (1 << 20, 1));
        pool.clear();
        assert!(pool.bytes == 0 && pool.take(1).is_none());
    }

    #[test]
    fn a_pool_keeps_a_few_buffers_and_gives_them_once() {
        let mut pool = Pool::new(0);
        for name in 'a'..='t' {
            put(&mut pool, 256, name);
        }
        let mut taken: Vec<_> = std::iter::from_fn(|| pool.take(200)).map(|slot| slot.mem).collect();
        taken.sort();
        assert_eq!((taken, pool.bytes), (('m'..='t').collect::<Vec<_>>(), 0));
        // No large buffer for a small request, and no small buffer for a large one.
        put(&mut pool, 1 << 20, 'x');
        assert!(pool.take(1 << 10).is_none() && pool.take((1 << 20) + 1).is_none());
        assert_eq!(pool.take(1 << 19).map(|slot| (slot.size, slot.mem)), Some((1 << 20, 'x')));
    }

    /// First fit would give the large buffer to the small request.
    #[test]
    fn a_request_takes_the_smallest_buffer_that_serves_it() {
        let mut pool = Pool::new(0);
        put(&mut pool, 3 << 18, 'l');
        put(&mut pool, 1 << 18, 's');
        assert_eq!(pool.take(1 << 18).map(|slot| slot.mem), Some('s'));
        assert_eq!(pool.take(3 << 18).map(|slot| slot.mem), Some('l'));
    }

    #[test]
    fn released_memory_serves_results_of_about_its_size() {
        let released = &mut Pool::new(16 << 20).released;
        released.put(900, 'a');
        released.put(800, 'b');
        assert!(released.take(901).is_none() && released.take(711).is_none());
        assert_eq!((released.take(800), released.take(800)), (Some((800, 'b')), Some((900, 'a'))));
        assert_eq!((released.take(800), released.bytes), (None, 0));
        // At most a sixteenth of the memory, and eight buffers.
        released.put((1 << 20) + 1, 'c');
        assert_eq!((released.bytes, released.kept.len()), (0, 0));
        ('a'..='z').for_each(|name| released.put(100, name));
        assert_eq!((released.bytes, released.take(100)), (800, Some((100, 's'))));
    }

    #[test]
    fn allocations_drop_as_many_released_bytes() {
        let mut pool = Pool::new(16 << 20);
        ('a'..='d').for_each(|name| pool.released.put(100, name));
        pool.released.make_room(112);
        assert_eq!((pool.released.bytes, pool.released.kept[0].1), (200, 'c'));
        // 200 bytes were dropped for 112, so none are owed.
        pool.released.make_room(11);
        assert_eq!(pool.released.bytes, 200);
        pool.released.make_room(1);
        assert_eq!((pool.released.bytes, pool.released.kept[0].1), (100, 'd'));
        pool.clear();
        assert_eq!((pool.released.bytes, pool.released.kept.len(), pool.released.owed), (0, 0, 0));
    }

    #[test]
    fn needed_sizes_are_the_largest_at_each_place() {
        let mut pool = Pool::new(0);
        for sizes in [&[5, 1, 3][..], &[4, 4], &[2, 1, 1, 1]] {
            let slots: Vec<_> = sizes.iter().map(|&size| pool.add(size, 'x')).collect();
            slots.into_iter().for_each(|slot| pool.put(slot, false));
        }
        assert_eq!((pool.needed(), pool.used.len()), (&[5, 4, 1, 1][..], 0));
    }

    #[test]
    fn reserved_buffers_stay_and_serve_any_smaller_size() {
        let mut pool = Pool::new(16 << 20);
        assert_eq!(pool.missing(vec![10, 4 << 20]), [4 << 20, 10]);
        pool.reserve(4 << 20, 'l');
        pool.reserve(10, 's');
        // Each reserved buffer counts once.
        assert_eq!(pool.missing(vec![8, 1 << 20, 9, 11]), [11, 8]);
        assert_eq!(pool.missing(vec![5 << 20, 10]), [5 << 20]);
        for name in 'a'..='z' {
            put(&mut pool, 256, name);
        }
        assert_eq!(pool.kept.len(), 10);
        pool.clear();
        let (small, large) = (pool.take(1).unwrap(), pool.take(2).unwrap());
        assert_eq!((small.mem, large.mem, pool.take(1).is_none()), ('s', 'l', true));
        pool.put(large, true);
        pool.put(small, true);
        assert_eq!((pool.kept.len(), pool.bytes, pool.missing(vec![4 << 20, 10]).len()), (2, 0, 0));
    }
}
