//! Parameters of copies.

use super::{Parameter, of_units, work_groups};
use crate::runtime::{Capabilities, DeviceClass};

/// Geometry of copies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Copy {
    /// One work-item a group, each with a contiguous run of at least `min_run` bytes.
    #[doc(hidden)]
    Runs { max_groups: usize, min_run: usize },
    /// Groups of `work_group` items with `words` 16-byte words each.
    #[doc(hidden)]
    Words { work_group: usize, words: usize },
}

/// Parameters of copies by device class.
pub fn copy(caps: &Capabilities) -> Copy {
    match caps.class {
        // 2^23 u32 on two cores, best of 25 runs on a busy machine: PoCL 3.1 1.2 ms, its clEnqueueCopyBuffer, which takes
        // one core, 2.3 ms; Intel's runtime 3.0 and 3.3 ms.
        DeviceClass::Cpu => Copy::Runs {
            max_groups: caps.chosen("max_groups", 4 * super::units(caps)),
            min_run: caps.chosen("min_run", 16 << 10),
        },
        // H200, 2^28 u32: one word an item in groups of 128 reaches 4,264 GB/s, clEnqueueCopyBuffer 4,219, a grid-stride
        // loop less.
        DeviceClass::Gpu => words(128, 1, caps),
    }
}

fn words(work_group: usize, words: usize, caps: &Capabilities) -> Copy {
    let work_group = super::work_group(caps.chosen("work_group", work_group), caps);
    Copy::Words { work_group, words: caps.chosen("words", words) }
}

/// What is searched for of copies, and of many at once.
pub fn parameters(primitive: &str, caps: &Capabilities) -> Vec<Parameter> {
    let many = primitive == "copy_ranges";
    match if many { copy_ranges(caps) } else { copy(caps) } {
        Copy::Runs { min_run, .. } if many => {
            vec![Parameter::new("min_run", min_run, [16 << 10, 64 << 10, 256 << 10])]
        }
        Copy::Runs { max_groups, min_run } => vec![
            Parameter::new("max_groups", max_groups, of_units(&[1, 2, 4, 8, 16], caps)),
            Parameter::new("min_run", min_run, [4 << 10, 16 << 10, 64 << 10]),
        ],
        Copy::Words { work_group, words } => {
            let words = Parameter::new("words", words, [1, 2, 4]);
            work_groups(work_group, 0, &[64, 128, 256, 512], caps).into_iter().chain([words]).collect()
        }
    }
}

/// Geometry of gathers and scatters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gather {
    #[doc(hidden)]
    pub work_group: usize,
    /// On GPUs, how many times four neighbours an item takes, or units of elements of more than 4 bytes.
    pub each: usize,
    /// On CPU drivers: groups, of one item each, at most, and elements of each at least.
    pub max_groups: usize,
    #[doc(hidden)]
    pub min_run: usize,
}

/// Parameters of gathers and scatters of elements of `size` bytes by device class.
pub fn gather(caps: &Capabilities, size: usize) -> Gather {
    let max_groups = caps.chosen("max_groups", 8 * super::units(caps));
    let (work_group, each) = match caps.class {
        DeviceClass::Cpu => (1, 1),
        // Eight elements of up to 4 bytes are on their way at once, four of more.
        DeviceClass::Gpu => {
            let each = caps.chosen("each", if matches!(size, 1 | 2 | 4) { 2 } else { 4 });
            (super::work_group(caps.chosen("work_group", 256), caps), each)
        }
    };
    Gather { work_group, each, max_groups, min_run: caps.chosen("min_run", 2048) }
}

/// What is searched for of gathers and scatters.
pub fn gather_parameters(caps: &Capabilities, size: usize) -> Vec<Parameter> {
    let usual = gather(caps, size);
    match caps.class {
        DeviceClass::Cpu => runs(usual.max_groups, usual.min_run, caps),
        DeviceClass::Gpu => {
            let each = Parameter::new("each", usual.each, [1, 2, 4, 8]);
            work_groups(usual.work_group, 0, &[64, 128, 256, 512], caps).into_iter().chain([each]).collect()
        }
    }
}

/// How CPU drivers share out a line.
fn runs(max_groups: usize, min_run: usize, caps: &Capabilities) -> Vec<Parameter> {
    vec![
        Parameter::new("max_groups", max_groups, of_units(&[1, 2, 4, 8, 16, 32], caps)),
        Parameter::new("min_run", min_run, [1024, 2048, 4096, 16_384]),
    ]
}

/// Parameters of many copies at once, and of rows, by device class: `min_run` bytes are a tile of CPU drivers.
pub fn copy_ranges(caps: &Capabilities) -> Copy {
    match caps.class {
        DeviceClass::Cpu => Copy::Runs { max_groups: usize::MAX, min_run: caps.chosen("min_run", 64 << 10) },
        DeviceClass::Gpu => words(256, 4, caps),
    }
}

/// Geometry of reversals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reverse {
    #[doc(hidden)]
    pub work_group: usize,
    /// On CPU drivers: groups, of one item each, at most, and elements of each at least.
    pub max_groups: usize,
    #[doc(hidden)]
    pub min_run: usize,
}

/// Parameters of reversals by device class.
pub fn reverse(caps: &Capabilities) -> Reverse {
    let max_groups = caps.chosen("max_groups", 4 * super::units(caps));
    let work_group = match caps.class {
        DeviceClass::Cpu => 1,
        DeviceClass::Gpu => super::work_group(caps.chosen("work_group", 256), caps),
    };
    Reverse { work_group, max_groups, min_run: caps.chosen("min_run", 4096) }
}

/// What is searched for of reversals.
pub fn reverse_parameters(caps: &Capabilities) -> Vec<Parameter> {
    let usual = reverse(caps);
    match caps.class {
        DeviceClass::Cpu => runs(usual.max_groups, usual.min_run, caps),
        DeviceClass::Gpu => work_groups(usual.work_group, 0, &[64, 128, 256, 512], caps).into_iter().collect(),
    }
}
