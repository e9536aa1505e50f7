//! Parameters of transfers of host slices.

use super::{Parameter, Tuned};
use crate::runtime::{DeviceClass, Transfers};

/// The parameters of staged transfers. Devices that share the host's memory stage none.
pub(crate) fn transfer(caps: &Tuned) -> Transfers {
    let usual = Transfers::default();
    Transfers {
        chunk_bytes: caps.chosen("chunk_bytes", usual.chunk_bytes),
        chunks: caps.chosen("chunks", usual.chunks),
        threads: caps.chosen("threads", usual.threads),
        min_bytes: caps.chosen("min_bytes", usual.min_bytes),
        min_read_bytes: caps.chosen("min_read_bytes", usual.min_read_bytes),
        ..usual
    }
}

/// A `min_bytes` or `min_read_bytes` that no transfer reaches, so that the driver moves every slice itself.
const NEVER: usize = 1 << 48;

/// The parameters that `oclprim tune` searches.
pub(super) fn parameters(caps: &Tuned) -> Vec<Parameter> {
    if caps.class == DeviceClass::Cpu {
        return Vec::new();
    }
    let usual = transfer(caps);
    vec![
        Parameter::new("chunk_bytes", usual.chunk_bytes, [16, 18, 20, 22, 23, 24, 25, 26].map(|bits| 1 << bits)),
        Parameter::new("chunks", usual.chunks, [2, 3, 4, 6, 8]),
        Parameter::new("threads", usual.threads, [1, 2, 4, 8, 12, 16, 24, 32]),
        Parameter::new("min_bytes", usual.min_bytes, [1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, NEVER]),
        Parameter::new("min_read_bytes", usual.min_read_bytes, [1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, NEVER]),
    ]
}
