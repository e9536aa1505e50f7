//! Parameters of transpositions.

use super::{Parameter, Tuned, of_units, work_groups};
use crate::runtime::{Capabilities, DeviceClass};

/// Geometry of transpositions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transpose {
    pub work_group: usize,
    /// Elements of a block's side; 0 if elements of this size have no blocks.
    pub block: usize,
    /// Blocks of a tile's side.
    pub side: usize,
    /// Elements of a tile that is moved element by element; a power of two. 0 on CPU drivers, which use only blocks.
    pub tile: usize,
    /// Maximum groups; beyond that each group processes several tiles.
    pub max_groups: usize,
}

/// Minimum blocks of a tile's side.
const MIN_SIDE: usize = 8;

/// Bytes of local memory for tiles.
fn room(caps: &Capabilities) -> usize {
    caps.local_bytes.saturating_sub(super::RESERVED_BYTES)
}

/// Parameters of transpositions of elements of `size` bytes by device class.
pub fn transpose(caps: &Tuned, size: usize) -> Transpose {
    match caps.class {
        // Each group is one work-item. Tiles are as wide as eight cache lines. On PoCL, that is 1.13 to 1.35 times as
        // fast as four lines for elements of 2 to 8 bytes.
        DeviceClass::Cpu => {
            let block = (64 / size).next_power_of_two();
            let (side, max_groups) = (caps.chosen("side", 8), caps.chosen("max_groups", 8 * super::units(caps)));
            Transpose { work_group: 1, block, side, tile: 0, max_groups }
        }
        DeviceClass::Gpu => {
            let work_group = super::work_group(caps.chosen("work_group", 256), caps);
            // A row of a block has 8 bytes for elements of 1 and 2 bytes, since 16 bytes take twice the local memory.
            // Tiles have 8 to 16 KiB. H200, 10,000 x 30,000, and u64: 8 blocks a side take 670 µs and 1.25 ms; 16
            // blocks 661 µs and 1.14 ms; 32 blocks 659 µs and 1.16 ms.
            let (block, side): (usize, usize) = match size {
                1 => (8, 16),
                2 | 4 => (4, 16),
                8 => (2, 16),
                16 => (1, 32),
                _ => (0, 0),
            };
            let side = if block > 0 { caps.chosen("side", side) } else { side };
            let fits = (side * block).pow(2) * size <= room(caps);
            // A work-item has at least one block.
            let work_group = if block > 0 { work_group.min(side * side) } else { work_group };
            // H200, odd sides: tiles of 8, 32 and 64 KiB take 116, 119 and 103 µs, tiles of 16 KiB 96.
            let mut tile = 1 << ((16 << 10) / size).ilog2();
            while tile > 1 && padded_bytes(tile, size) > room(caps) {
                tile /= 2;
            }
            // A work-item has at least one element of a tile.
            let work_group = work_group.min(tile);
            Transpose {
                work_group,
                block: if fits { block } else { 0 },
                side,
                tile,
                max_groups: caps.chosen("max_groups", 1 << 22),
            }
        }
    }
}

/// The parameters that `oclprim tune` searches, for both kinds of transposition.
pub(super) fn parameters(caps: &Tuned, size: usize) -> Vec<Parameter> {
    let usual = transpose(caps, size);
    match caps.class {
        DeviceClass::Cpu => vec![
            Parameter::new("side", usual.side, [1, 2, 4, 8]),
            Parameter::new("max_groups", usual.max_groups, of_units(&[1, 2, 4, 8, 16, 32], caps)),
        ],
        DeviceClass::Gpu => {
            let fits = |&side: &usize| (side * usual.block).pow(2) * size <= room(caps);
            let sides = [8, 16, 32].into_iter().filter(fits);
            let side = (usual.block > 0).then(|| Parameter::new("side", usual.side, sides));
            let max_groups = Parameter::new("max_groups", usual.max_groups, of_units(&[8, 16, 32], caps));
            let work_group = work_groups(usual.work_group, 0, &[64, 128, 256], caps);
            work_group.into_iter().chain(side).chain([max_groups]).collect()
        }
    }
}

/// Geometry of transpositions in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InPlace {
    #[doc(hidden)]
    pub work_group: usize,
    /// The same as for a transposition into another buffer.
    pub block: usize,
    #[doc(hidden)]
    pub side: usize,
    /// On GPUs: side of a tile that is moved element by element, in elements; local memory holds two tiles. On CPU drivers:
    /// side of a tile that is moved by blocks.
    pub tile_side: usize,
    /// Maximum groups; beyond that each group processes several pairs of tiles, and on CPU drivers also several rows of a
    /// strip.
    pub max_groups: usize,
}

/// Parameters of transpositions in place of elements of `size` bytes by device class.
pub fn in_place(caps: &Tuned, size: usize) -> InPlace {
    let Transpose { work_group, block, side, max_groups, .. } = transpose(caps, size);
    match caps.class {
        DeviceClass::Cpu => InPlace { work_group, block, side, tile_side: block * side, max_groups },
        DeviceClass::Gpu => {
            let mut tile_side: usize = if size <= 4 { 64 } else { 32 };
            while tile_side > 1 && 2 * tile_side * (tile_side + 1) * size > room(caps) {
                tile_side /= 2;
            }
            // Local memory holds two tiles, so a tile may be smaller than that of a transposition into another buffer.
            let fits = |side: &usize| 2 * (side * block).pow(2) * size <= room(caps);
            let smaller = [side, side / 2].into_iter().filter(|&side| side >= MIN_SIDE).find(fits);
            let (block, side) = smaller.map_or((0, side), |side| (block, side));
            let blocks = if block > 0 { side * side } else { usize::MAX };
            let work_group = work_group.min(tile_side * tile_side).min(blocks);
            InPlace { work_group, block, side, tile_side, max_groups }
        }
    }
}

/// The unit of an element of `size` bytes: the largest power of two that divides `size`.
pub const fn unit(size: usize) -> usize {
    1 << size.trailing_zeros()
}

/// The OpenCL C type of a unit of 1, 2, 4, 8 or 16 bytes.
pub const fn unit_type(bytes: usize) -> &'static str {
    ["uchar", "ushort", "uint", "ulong", "uint4"][bytes.ilog2() as usize]
}

/// The work-group for matrices of `short` by `long` elements of `size` bytes, where `short` > 1 is the short side. `None` if
/// they use the general tiles.
///
/// A work-item has a 16-byte word of each long line. Up to four lines have 256 work-items, and so at most 16 KiB. With
/// more lines the work-group is smaller, so that a tile has no more bytes.
pub fn narrow(caps: &Capabilities, size: usize, short: usize, long: usize) -> Option<usize> {
    const WORD: usize = 16;
    let work_group = match short {
        2..=4 => 256,
        5..=8 => 128,
        9..=16 => 64,
        _ => return None,
    };
    let cells = work_group * WORD / size * short;
    let few = long < work_group * WORD / size;
    let fits = work_group <= caps.max_work_group && padded_bytes(cells, size) <= room(caps);
    (matches!(size, 1 | 2 | 4 | 8) && !few && fits).then_some(work_group)
}

/// Padding of local memory: `(log_pad, pad)`. After each `1 << log_pad` elements, which fill all banks, `pad` elements (one
/// bank) are skipped.
pub fn padding(size: usize) -> (u32, usize) {
    (128usize.div_ceil(size).next_power_of_two().ilog2(), 4 / unit(size).min(4))
}

/// Bytes of local memory of a tile.
pub fn padded_bytes(tile: usize, size: usize) -> usize {
    let (log_pad, pad) = padding(size);
    (tile + (tile >> log_pad) * pad) * size
}
