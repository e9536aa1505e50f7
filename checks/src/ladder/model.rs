//! Cost of an access pattern, computed and not measured. It counts 32-byte sectors of global memory and bank conflicts
//! in local memory, for requests of 32 work-items.
//!
//! The model is that of NVIDIA's GPUs since Volta. A request of 32 lanes touches 32-byte sectors, and local memory has
//! 32 banks of 4 bytes. The model needs no hardware counters, so it gives the same numbers on every machine.

use serde::Serialize;

/// Number of lanes of a request.
///
/// ```
/// use oclprim_checks::ladder::model::{LANES, sectors};
///
/// assert_eq!(sectors(32, |lane| (lane < LANES).then_some(32 * lane)), LANES as f64); // a sector each
/// ```
pub const LANES: u64 = 32;
const SECTOR: u64 = 32;
const BANKS: u64 = 32;

/// Cost of one run of a step.
///
/// ```
/// use oclprim_checks::ladder::model::{Model, sectors};
///
/// let rows = sectors(4, |lane| Some(4 * lane));
/// let columns = sectors(4, |lane| Some(4096 * lane));
/// let transposed = Model { load_sectors: rows, store_sectors: columns, ..Model::default() };
/// assert_eq!(transposed.store_sectors / transposed.load_sectors, 8.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Model {
    /// Sectors read from global memory.
    pub load_sectors: f64,
    /// Sectors written to global memory; atomics count here.
    pub store_sectors: f64,
    /// Average number of passes over local memory that a request needs after the first.
    pub bank_conflicts: f64,
}

/// Number of sectors that one request touches. Lane `l` accesses `bytes` bytes at `address(l)`; lanes with `None` are
/// inactive.
///
/// ```
/// use oclprim_checks::ladder::model::sectors;
///
/// assert_eq!(sectors(4, |lane| Some(4 * lane)), 4.0); // neighbours
/// assert_eq!(sectors(4, |lane| Some(4096 * lane)), 32.0); // a column
/// ```
pub fn sectors(bytes: u64, address: impl Fn(u64) -> Option<u64>) -> f64 {
    sectors_of(bytes, &address)
}

/// [`sectors`], compiled once.
fn sectors_of(bytes: u64, address: &dyn Fn(u64) -> Option<u64>) -> f64 {
    let mut touched: Vec<u64> =
        (0..LANES).filter_map(address).flat_map(|start| start / SECTOR..=(start + bytes - 1) / SECTOR).collect();
    touched.sort_unstable();
    touched.dedup();
    touched.len() as f64
}

/// Extra passes of one request of 4-byte accesses to local memory: the largest number of distinct words in one bank,
/// minus one. Lanes that read the same word share the access.
///
/// ```
/// use oclprim_checks::ladder::model::bank_conflicts;
///
/// assert_eq!(bank_conflicts(|lane| Some(32 * lane)), 31.0); // a column of 32 words
/// assert_eq!(bank_conflicts(|lane| Some(33 * lane)), 0.0); // a column of 33
/// ```
pub fn bank_conflicts(word: impl Fn(u64) -> Option<u64>) -> f64 {
    bank_conflicts_of(&word)
}

/// [`bank_conflicts`], compiled once.
fn bank_conflicts_of(word: &dyn Fn(u64) -> Option<u64>) -> f64 {
    let mut words: Vec<u64> = (0..LANES).filter_map(word).collect();
    words.sort_unstable();
    words.dedup();
    let most = (0..BANKS).map(|bank| words.iter().filter(|&&word| word % BANKS == bank).count()).max();
    most.unwrap_or(0).saturating_sub(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_lanes_share_sectors_and_strided_lanes_do_not() {
        assert_eq!(sectors(4, |lane| Some(4 * lane)), 4.0);
        assert_eq!(sectors(4, |lane| Some(4 * lane + 4)), 5.0);
        assert_eq!(sectors(16, |lane| Some(16 * lane)), 16.0);
        assert_eq!(sectors(4, |lane| Some(4096 * lane)), 32.0);
        assert_eq!(sectors(4, |lane| (lane < 8).then_some(4 * lane)), 1.0);
    }

    #[test]
    fn padding_removes_bank_conflicts() {
        assert_eq!(bank_conflicts(Some), 0.0);
        assert_eq!(bank_conflicts(|lane| Some(32 * lane)), 31.0);
        assert_eq!(bank_conflicts(|lane| Some(33 * lane)), 0.0);
        assert_eq!(bank_conflicts(|_| Some(7)), 0.0);
    }
}
