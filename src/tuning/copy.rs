//! Parameters of copies.

use super::{Parameter, Primitive, Tuned, of_units, work_groups};
use crate::runtime::DeviceClass;

/// Geometry of copies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Copy {
    /// One work-item in each group, with a contiguous range of at least `min_run` bytes.
    #[doc(hidden)]
    Runs { max_groups: usize, min_run: usize },
    /// Groups of `work_group` work-items, each with `words` 16-byte words.
    #[doc(hidden)]
    Words { work_group: usize, words: usize },
}

/// Parameters of copies by device class.
pub fn copy(caps: &Tuned) -> Copy {
    match caps.class {
        // 2^23 u32 on two cores, best of 25 runs on a busy machine: PoCL 3.1 takes 1.2 ms. Its clEnqueueCopyBuffer
        // takes 2.3 ms, since it uses one core. Intel's runtime takes 3.0 and 3.3 ms.
        DeviceClass::Cpu => Copy::Runs {
            max_groups: caps.chosen("max_groups", 4 * super::units(caps)),
            min_run: caps.chosen("min_run", 16 << 10),
        },
        // H200, 2^28 u32: groups of 128 with one word for each work-item reach 4,264 GB/s, clEnqueueCopyBuffer 4,219, a
        // grid-stride loop less.
        DeviceClass::Gpu => words(128, 1, caps),
    }
}

fn words(work_group: usize, words: usize, caps: &Tuned) -> Copy {
    let work_group = super::work_group(caps.chosen("work_group", work_group), caps);
    Copy::Words { work_group, words: caps.chosen("words", words) }
}

/// The parameters that `oclprim tune` searches, for copies and for copies of many ranges.
pub fn parameters(primitive: Primitive, caps: &Tuned) -> Vec<Parameter> {
    let many = primitive == Primitive::CopyRanges;
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
    /// On GPUs: number of groups of four neighbouring elements that each work-item moves, if elements have 1, 2 or 4
    /// bytes. For other elements, number of units.
    pub each: usize,
    /// On CPU drivers: maximum groups, of one work-item each, and minimum elements of each group.
    pub max_groups: usize,
    #[doc(hidden)]
    pub min_run: usize,
}

/// Parameters of gathers and scatters of elements of `size` bytes by device class.
pub fn gather(caps: &Tuned, size: usize) -> Gather {
    let max_groups = caps.chosen("max_groups", 8 * super::units(caps));
    let (work_group, each) = match caps.class {
        DeviceClass::Cpu => (1, 1),
        // Each work-item loads eight elements of 1, 2 or 4 bytes at once, or four units of other elements.
        DeviceClass::Gpu => {
            let each = caps.chosen("each", if matches!(size, 1 | 2 | 4) { 2 } else { 4 });
            (super::work_group(caps.chosen("work_group", 256), caps), each)
        }
    };
    Gather { work_group, each, max_groups, min_run: caps.chosen("min_run", 2048) }
}

/// The parameters of gathers and scatters that `oclprim tune` searches.
pub fn gather_parameters(caps: &Tuned, size: usize) -> Vec<Parameter> {
    let usual = gather(caps, size);
    match caps.class {
        DeviceClass::Cpu => runs(usual.max_groups, usual.min_run, caps),
        DeviceClass::Gpu => {
            let each = Parameter::new("each", usual.each, [1, 2, 4, 8]);
            work_groups(usual.work_group, 0, &[64, 128, 256, 512], caps).into_iter().chain([each]).collect()
        }
    }
}

/// The parameters by which CPU drivers divide an input into contiguous ranges.
fn runs(max_groups: usize, min_run: usize, caps: &Tuned) -> Vec<Parameter> {
    vec![
        Parameter::new("max_groups", max_groups, of_units(&[1, 2, 4, 8, 16, 32], caps)),
        Parameter::new("min_run", min_run, [1024, 2048, 4096, 16_384]),
    ]
}

/// Parameters of copies of many ranges and of rows, by device class. On CPU drivers, a tile has `min_run` bytes.
pub fn copy_ranges(caps: &Tuned) -> Copy {
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
    /// On CPU drivers: maximum groups, of one work-item each, and minimum elements of each group.
    pub max_groups: usize,
    #[doc(hidden)]
    pub min_run: usize,
}

/// Parameters of reversals by device class.
pub fn reverse(caps: &Tuned) -> Reverse {
    let max_groups = caps.chosen("max_groups", 4 * super::units(caps));
    let work_group = match caps.class {
        DeviceClass::Cpu => 1,
        DeviceClass::Gpu => super::work_group(caps.chosen("work_group", 256), caps),
    };
    Reverse { work_group, max_groups, min_run: caps.chosen("min_run", 4096) }
}

/// The parameters of reversals that `oclprim tune` searches.
pub fn reverse_parameters(caps: &Tuned) -> Vec<Parameter> {
    let usual = reverse(caps);
    match caps.class {
        DeviceClass::Cpu => runs(usual.max_groups, usual.min_run, caps),
        DeviceClass::Gpu => work_groups(usual.work_group, 0, &[64, 128, 256, 512], caps).into_iter().collect(),
    }
}
