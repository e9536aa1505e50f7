//! Memory that a queue keeps between launches, so that launches need not clear it.

use crate::{
    Result,
    runtime::opencl::{ClDevice, ClMem},
};

/// Byte offset of the counters in the memory that [`ClDevice::ended`] returns; a word precedes them.
pub(crate) const COUNTERS_AT: usize = 64;
/// Bytes of these counters: 16 digits with 256 values each, and 8 bytes for each value.
pub(crate) const COUNTER_BYTES: usize = 16 * 256 * 8;

/// Maximum bytes of status words that a queue keeps; a fill of that size costs little compared to the launch that needs
/// the words.
const KEPT_WORD_BYTES: usize = 4 << 20;
/// The last epoch that fits into a status word (`cl/lib/status_word.cl`).
const LAST_EPOCH: u32 = (1 << 20) - 1;

impl ClDevice {
    /// A word for last-block reductions (`cl/lib/ended.cl`), and counters. All are 0 before and after each launch. An
    /// out-of-order queue cannot keep this promise and gets `None`.
    pub(crate) fn ended(&self) -> Result<Option<ClMem>> {
        const BYTES: usize = COUNTERS_AT + COUNTER_BYTES;
        self.kept_zeros("ended", BYTES)
    }

    /// Memory that is 0 before and after each launch that uses it; `None` on an out-of-order queue.
    pub(crate) fn kept_zeros(&self, kind: &'static str, bytes: usize) -> Result<Option<ClMem>> {
        let kept = self.kept(kind, bytes, u32::MAX, || self.holding(&vec![0; bytes]))?;
        Ok(kept.map(|(mem, _)| mem))
    }

    /// Status words for one launch, and the launch's epoch: a positive number that no word of the buffer has yet. So
    /// the buffer is not cleared between launches. `None` for more than `KEPT_WORD_BYTES`, or on an out-of-order queue.
    pub(crate) fn words(&self, bytes: usize) -> Result<Option<(ClMem, u32)>> {
        if bytes > KEPT_WORD_BYTES {
            return Ok(None);
        }
        let bytes = bytes.next_power_of_two().max(1 << 16);
        self.kept("status words", bytes, LAST_EPOCH, || {
            let mem = self.allocate(bytes)?;
            self.fill(&mem, 0, bytes, &[0; 8])?;
            Ok(mem)
        })
    }
}
