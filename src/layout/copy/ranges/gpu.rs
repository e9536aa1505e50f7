//! Many copies at once on OpenCL devices: the plan, then its launch.

use super::Piece;
use crate::{
    Error, Result,
    layout::copy::gpu::Body,
    memory,
    runtime::{ClInput, ProgramSpec, opencl::ClDevice},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("copy_ranges.cl");
/// Bytes of a word.
const WORD: usize = 16;

/// The launch of copies of at least one byte each.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    /// Bytes of a tile.
    pub tile: usize,
    /// True if tiles have whole words only.
    pub words: bool,
}

pub fn plan(caps: &Tuned) -> Plan {
    let program = ProgramSpec::new("copy_ranges.cl", TEXT, caps).unoptimised_on_a_checker(caps);
    match tuning::copy_ranges(caps) {
        tuning::Copy::Runs { min_run, .. } => {
            Plan { program: program.define("TILE", min_run), work_group: 1, tile: min_run, words: false }
        }
        tuning::Copy::Words { work_group, words } => Plan {
            program: program.define("WG", work_group).define("WORDS", words),
            work_group,
            tile: work_group * words * WORD,
            words: true,
        },
    }
}

/// The `ranges` of `cl/copy_ranges.cl`, and the range of each tile. `begin` has the byte offsets of the buffers.
fn tables(plan: &Plan, pieces: &[Piece], begin: [usize; 2]) -> Result<(Vec<[u64; 4]>, Vec<u32>)> {
    let (mut ranges, mut owner) = (memory::with_capacity(pieces.len())?, Vec::new());
    for piece in pieces {
        let tiled = match plan.words {
            true => WORD * Body::of(piece.bytes, begin[0] + piece.from, begin[1] + piece.to).words,
            false => piece.bytes,
        };
        let number = u32::try_from(ranges.len())
            .map_err(|_| Error::invalid(format!("{} ranges: fewer than 2^32 can be copied", pieces.len())))?;
        ranges.push([piece.from, piece.to, piece.bytes, owner.len()].map(|x| x as u64));
        let tiles = tiled.div_ceil(plan.tile).max(1);
        memory::reserve(&mut owner, tiles)?;
        owner.resize(owner.len() + tiles, number);
    }
    Ok((ranges, owner))
}

/// Enqueues the copies; there is at least one.
pub(crate) fn copy(device: &ClDevice, from: &ClInput, to: &ClInput, pieces: &[Piece]) -> Result<()> {
    let bytes = pieces.iter().map(|piece| piece.bytes).sum();
    let plan = plan(device.capabilities_for(Primitive::CopyRanges, 1, bytes)?.as_ref());
    let (ranges, owner) = tables(&plan, pieces, [from.byte_offset(), to.byte_offset()])?;
    let parts: [&[u8]; 2] = [bytemuck::cast_slice(&ranges), bytemuck::cast_slice(&owner)];
    let mut table = memory::with_capacity(parts[0].len() + parts[1].len())?;
    parts.into_iter().for_each(|part| table.extend_from_slice(part));
    let table = device.holding(&table)?;
    device
        .launch(&plan.program, if plan.words { "copy_tiles" } else { "copy_tiles_runs" })?
        .mem(from.mem())
        .scalar(from.byte_offset() as u64)
        .mem(to.mem())
        .scalar(to.byte_offset() as u64)
        .mem(&table)
        .scalar(ranges.len() as u32)
        .run([owner.len(), 1, 1], [plan.work_group, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_byte() {
        for (name, caps) in Tuned::samples() {
            let plan = plan(&caps);
            let lengths = [1, 15, 16, 47, plan.tile - 1, plan.tile, plan.tile + 1, plan.tile + 40, 5 * plan.tile + 3];
            for begin in [[0, 0], [3, 5], [8, 0], [1, 1]] {
                let piece = |(i, &bytes): (usize, &usize)| Piece { from: i, to: i * 6 * plan.tile, bytes };
                let pieces: Vec<_> = lengths.iter().enumerate().map(piece).collect();
                let (ranges, owner) = tables(&plan, &pieces, begin).unwrap();
                for (i, range) in ranges.iter().enumerate() {
                    let tiles = owner.iter().filter(|&&owner| owner as usize == i).count();
                    assert_eq!(owner.iter().position(|&owner| owner as usize == i), Some(range[3] as usize));
                    let edges = if plan.words { 4 * WORD } else { 0 };
                    assert!(tiles * plan.tile + edges >= lengths[i], "{name}: {}", lengths[i]);
                }
            }
        }
    }
}
