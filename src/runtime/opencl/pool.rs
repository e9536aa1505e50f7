//! Scratch buffers that are kept from call to call.

/// Idle buffers of the calls on one queue, for later calls.
pub(super) struct Pool<M> {
    /// Each buffer with its bytes; the most recently used one is last.
    kept: Vec<(usize, M)>,
    bytes: usize,
    limit: usize,
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
        Self { kept: Vec::new(), bytes: 0, limit }
    }

    /// Takes a buffer of at least `bytes` bytes, and of at most about `4 * max(bytes, 65536)`.
    pub(super) fn take(&mut self, bytes: usize) -> Option<(usize, M)> {
        let fit = self.kept.iter().position(|&(size, _)| size >= bytes && size / 4 <= bytes.max(1 << 16))?;
        let taken = self.kept.remove(fit);
        self.bytes -= taken.0;
        Some(taken)
    }

    /// Keeps a buffer of `size` bytes, and drops older ones if needed.
    pub(super) fn put(&mut self, size: usize, mem: M) {
        if size > self.limit {
            return;
        }
        self.kept.push((size, mem));
        self.bytes += size;
        while self.kept.len() > Self::COUNT || self.bytes > self.limit {
            self.bytes -= self.kept.remove(0).0;
        }
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn a_pool_keeps_at_most_a_share_of_the_memory() {
        let mut pool = Pool::new(16 << 20);
        pool.put((1 << 20) + 1, 'x');
        assert_eq!(pool.take(1), None);
        for mem in 'a'..='e' {
            pool.put(256 << 10, mem);
        }
        assert_eq!((pool.bytes, pool.kept.len(), pool.kept[0].1), (1 << 20, 4, 'b'));
        pool.put(1 << 20, 'f');
        assert_eq!((pool.bytes, pool.kept.len()), (1 << 20, 1));
        pool.clear();
        assert_eq!((pool.bytes, pool.take(1)), (0, None));
    }

    #[test]
    fn a_pool_keeps_a_few_buffers_and_gives_them_once() {
        let mut pool = Pool::new(0);
        for mem in 0..20 {
            pool.put(256, mem);
        }
        let mut taken: Vec<_> = std::iter::from_fn(|| pool.take(200)).collect();
        taken.sort();
        assert_eq!(taken, (12..20).map(|mem| (256, mem)).collect::<Vec<_>>());
        assert_eq!(pool.bytes, 0);
        // No large buffer for a small request, and no small buffer for a large one.
        pool.put(1 << 20, 0);
        assert_eq!((pool.take(1 << 10), pool.take((1 << 20) + 1)), (None, None));
        assert_eq!(pool.take(1 << 19), Some((1 << 20, 0)));
    }
}
