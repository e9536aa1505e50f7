//! Sorts in place on OpenCL devices: the plan, then its launches.

use crate::sort::gpu::KEY_KINDS;
use crate::{
    Result,
    keys::{Keys, Numbers},
    runtime::{ClInput, DeviceClass, ProgramSpec, opencl::ClDevice},
    sort::gpu::{key_type, word},
    tuning::{self, Primitive, Tuned},
};

const TEXT: &str = kernel_text!("sort_in_place.cl");
/// Keys of a work-item, and their binary logarithm.
const HELD: usize = 16;
const HELD_BITS: u32 = 4;
/// Bytes of a tile that one work-item sorts.
const CPU_TILE_BYTES: usize = 16 << 10;
/// Mode bits of the kernel `sort_in_place_tiles`.
const FROM_KEYS: u32 = 1;
const TO_KEYS: u32 = 2;

/// One launch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Sorts each tile. If `merges`, makes only the comparisons of the last `tile_bits` distances, which complete a
    /// merge of more keys than a tile.
    Tiles { merges: bool },
    /// Compares keys at four distances, from 2^(low_bits + 3) down to 2^low_bits.
    Exchange { low_bits: u32, turned: bool },
}

/// The launches of a sort of n > 0 keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub program: ProgramSpec,
    pub work_group: usize,
    pub tile_bits: u32,
    steps: Vec<Step>,
}

pub fn plan(n: usize, key_bytes: usize, floats: bool, caps: &Tuned, wide: bool) -> Plan {
    let params = tuning::sort(caps, key_bytes, 0);
    let fits = |bits: u32, most: usize| {
        let keys = 1 << bits;
        keys * key_bytes <= most && (keys + keys / HELD) * key_bytes + tuning::RESERVED_BYTES <= caps.local_bytes
    };
    let (work_group, tile_bits) = if caps.class == DeviceClass::Cpu {
        // Even a few keys are padded to a whole tile. On a checker, tiles are smaller, since an interpreter is slow.
        let most = if caps.checker { 10 } else { 14 };
        (1, (HELD_BITS..=most).rev().find(|&bits| fits(bits, CPU_TILE_BYTES)).unwrap_or(HELD_BITS))
    } else {
        let most = params.work_group.ilog2();
        let bits = (0..=most).rev().find(|&bits| fits(bits + HELD_BITS, params.tile_bytes)).unwrap_or(0);
        (1 << bits, bits + HELD_BITS)
    };
    let mut steps = vec![Step::Tiles { merges: false }];
    for bits in tile_bits + 1..=n.next_power_of_two().ilog2() {
        let mut left = bits - HELD_BITS;
        steps.push(Step::Exchange { low_bits: left, turned: true });
        while left > tile_bits {
            left -= HELD_BITS;
            steps.push(Step::Exchange { low_bits: left, turned: false });
        }
        steps.push(Step::Tiles { merges: true });
    }
    let program = ProgramSpec::new("sort_in_place.cl", TEXT, caps)
        .define("KEY", key_type(key_bytes))
        .define("KEY_BYTES", key_bytes)
        .flag("FLOAT_KEYS", floats)
        .define("OFFSET_T", if wide { "ulong" } else { "uint" })
        .define("WG", work_group)
        .define("TILE_BITS", tile_bits)
        .flag("ALONE", !fits(HELD_BITS, usize::MAX));
    Plan { program, work_group, tile_bits, steps }
}

/// Sorts keys in place.
pub(crate) fn run(device: &ClDevice, keys: &Keys, data: &ClInput) -> Result<()> {
    let n = data.len();
    if n == 0 {
        return Ok(());
    }
    let caps = device.capabilities_for(Primitive::Sort, keys.bytes, n)?;
    let wide = device.wide(n);
    let plan = plan(n, keys.bytes, keys.floats, &caps, wide);
    let local = [plan.work_group, 1, 1];
    for (i, &step) in plan.steps.iter().enumerate() {
        let launch = |kernel| -> Result<_> {
            let launch = device.launch(&plan.program, kernel)?.mem(data.mem()).scalar(data.offset() as u64);
            Ok(launch.offset(n as u64, wide))
        };
        match step {
            Step::Tiles { merges } => {
                let mode = if i == 0 { FROM_KEYS } else { 0 } | if i + 1 == plan.steps.len() { TO_KEYS } else { 0 };
                let launch = launch("sort_in_place_tiles")?.scalar(u32::from(merges)).scalar(mode);
                let launch = word(word(launch, keys.flip, keys.bytes), keys.always, keys.bytes);
                launch.run([n.div_ceil(1 << plan.tile_bits), 1, 1], local)?;
            }
            Step::Exchange { low_bits, turned } => {
                let sets = n.div_ceil(1 << (low_bits + HELD_BITS)) << low_bits;
                let run = match caps.class {
                    DeviceClass::Cpu => sets.div_ceil(4 * caps.compute_units.max(1) as usize).clamp(256, 1 << 20),
                    DeviceClass::Gpu => 1,
                };
                let launch = launch("sort_in_place_exchange")?.offset(sets as u64, wide).scalar(run as u32);
                let launch = launch.scalar(low_bits).scalar(u32::from(turned));
                launch.run([sets.div_ceil(plan.work_group * run), 1, 1], local)?;
            }
        }
    }
    Ok(())
}

/// All programs that plans for `caps` use.
pub fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let wide = [false, true].into_iter();
    wide.flat_map(|wide| {
        KEY_KINDS.map(|(bytes, numbers)| plan(1 << 20, bytes, numbers != Numbers::Bits, caps, wide).program)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_fit_their_devices() {
        for (name, caps) in Tuned::samples() {
            for local_bytes in [caps.local_bytes, 0, 4096, 12_288] {
                let caps = caps.with(|facts| facts.local_bytes = local_bytes);
                for (n, key_bytes) in
                    [(1, 1), (4096, 4), (4097, 4), (1 << 28, 4), ((1 << 33) + 1, 8), (1 << 30, 16), (1 << 48, 1)]
                {
                    let plan = plan(n, key_bytes, false, &caps, n >= 1 << 31);
                    let what = format!("{name}, {local_bytes} bytes, n = {n}: {plan:?}");
                    let tile = 1usize << plan.tile_bits;
                    let alone = (HELD + 1) * key_bytes + tuning::RESERVED_BYTES > local_bytes;
                    assert!(alone || (tile + tile / HELD) * key_bytes <= local_bytes, "{what}");
                    assert!(!alone || plan.work_group == 1 && tile == HELD, "{what}");
                    assert!(plan.work_group == 1 || plan.work_group * HELD == tile, "{what}");
                    assert!(plan.work_group <= caps.max_work_group, "{what}");
                    assert_eq!(plan.steps.last(), Some(&Step::Tiles { merges: n > tile }), "{what}");
                }
            }
        }
    }

    #[test]
    fn steps_cover_every_distance() {
        let (_, caps) = &Tuned::samples()[0];
        let plan = plan(1 << 28, 4, false, caps, false);
        assert_eq!(plan.steps.len(), 57, "{plan:?}");
        let mut done = Vec::new();
        for step in &plan.steps {
            match *step {
                Step::Exchange { low_bits, turned } => {
                    assert_eq!(turned, done.is_empty(), "{plan:?}");
                    done.extend((low_bits..low_bits + HELD_BITS).rev());
                }
                Step::Tiles { .. } => {
                    assert!(done.windows(2).all(|pair| pair[0] == pair[1] + 1), "{plan:?}");
                    assert!(done.last().is_none_or(|&last| last <= plan.tile_bits), "{plan:?}");
                    done.clear();
                }
            }
        }
    }
}
