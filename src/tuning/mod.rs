//! Parameters for a device. The values come from the device's class, from a file that `oclprim tune` wrote, or from the
//! caller who opens the device.
//!
//! The crate has default values for each class of devices. `oclprim tune` measures other values on a device, and writes
//! the faster ones to a file. Every program that uses the crate reads that file once. [`Tuning`] overrides both.
//!
//! Tuning never changes a result, except for results that are documented as unspecified:
//! - the rounding of float sums with [`Determinism::Fast`](crate::Determinism::Fast), which allows any order;
//! - the element that [`scatter`](crate::Device::scatter) writes for equal indices;
//! - the order of [`Unordered`](crate::op::Unordered) selections.

mod choice;
#[doc(hidden)]
pub mod copy;
mod device;
mod file;
mod histogram;
mod iota;
mod merge;
mod parameter;
mod parameters;
mod permute;
mod primitive;
mod random;
mod reduce;
mod scan;
mod select;
mod sort;
mod topk;
mod transfer;
mod transpose;
mod tuned;

#[doc(hidden)]
pub use copy::{Copy, Gather, copy, copy_ranges, gather, reverse};
pub(crate) use histogram::histogram;
pub(crate) use iota::{Iota, iota};
pub(crate) use merge::merge;
pub(crate) use parameter::{RESERVED_BYTES, fits_locally, work_group, work_group_of};
use parameter::{of_units, units, work_groups};
pub(crate) use permute::permute;
pub(crate) use random::{Random, random};
pub(crate) use reduce::{ends_at_once, has_large_local_memory, reduce};
pub(crate) use scan::scan;
pub(crate) use select::select;
pub(crate) use sort::sort;
pub(crate) use topk::{TopK, top_k};
pub(crate) use transfer::transfer;
#[doc(hidden)]
pub use transpose::{InPlace, in_place, narrow, padded_bytes, padding, transpose, unit, unit_type};
#[doc(hidden)]
pub use tuned::Tuned;

pub use file::{Row, TuningFile};
pub use parameter::Parameter;
pub use parameters::{SizeClass, parameters, row_bytes};
pub use primitive::Primitive;

#[doc(hidden)]
pub use crate::runtime::TransferFault;
use crate::runtime::{DeviceClass, SubGroupBackend};

/// Overrides the crate's choices for a device; every unset field keeps the crate's choice.
///
/// A `Tuning` can run the geometry of a GPU on a CPU driver, or select any sub-group back end that passed its self-test.
///
/// ```
/// use oclprim::{Device, DeviceClass, SubGroupBackend, Tuning, op::Sum};
///
/// let as_gpu = Tuning::default().class(DeviceClass::Gpu).sub_groups(SubGroupBackend::Local).wide_offsets();
/// let device = Device::best()?.with_tuning(as_gpu.local_bytes(16 << 10))?;
/// assert_eq!(device.reduce(&[1u8, 2, 3], Sum)?, 6);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Tuning {
    class: Option<DeviceClass>,
    sub_groups: Option<SubGroupBackend>,
    local_bytes: Option<usize>,
    wide_offsets: bool,
    no_look_back: bool,
    without_file: bool,
    stall: Option<Stall>,
    staged: bool,
    part_bytes: Option<usize>,
    copied: bool,
    transfer_fault: Option<TransferFault>,
    set: Vec<(Primitive, String, usize)>,
}

impl Tuning {
    /// Uses the geometry of `class` instead of that of the device's own class.
    ///
    /// ```
    /// use oclprim::{Device, DeviceClass, Tuning, op::Sum};
    ///
    /// let device = Device::best()?.with_tuning(Tuning::default().class(DeviceClass::Gpu))?;
    /// assert_eq!(device.reduce(&[1u8, 2, 3], Sum)?, 6);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn class(mut self, class: DeviceClass) -> Self {
        self.class = Some(class);
        self
    }

    /// Sets the sub-group back end, which must have passed the device's self-test.
    ///
    /// ```
    /// use oclprim::{Device, SubGroupBackend, Tuning, op::Sum};
    ///
    /// let device = Device::best()?.with_tuning(Tuning::default().sub_groups(SubGroupBackend::None))?;
    /// assert_eq!(device.reduce(&[1u8, 2, 3], Sum)?, 6);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn sub_groups(mut self, backend: SubGroupBackend) -> Self {
        self.sub_groups = Some(backend);
        self
    }

    /// Limits local memory, to run the code paths of small devices.
    ///
    /// ```
    /// use oclprim::{Device, Tuning, op::Sum};
    ///
    /// let device = Device::best()?.with_tuning(Tuning::default().local_bytes(16 << 10))?;
    /// assert_eq!(device.reduce(&[1u8, 2, 3], Sum)?, 6);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn local_bytes(mut self, bytes: usize) -> Self {
        self.local_bytes = Some(bytes);
        self
    }

    /// Uses 64-bit offsets at every size; by default kernels use them from 2^31 elements.
    ///
    /// ```
    /// use oclprim::{Device, Tuning, op::Sum};
    ///
    /// let device = Device::best()?.with_tuning(Tuning::default().wide_offsets())?;
    /// assert_eq!(device.reduce(&[1u8, 2, 3], Sum)?, 6);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn wide_offsets(mut self) -> Self {
        self.wide_offsets = true;
        self
    }

    /// Disables decoupled look-back: scans, sorts and selections then take more launches.
    ///
    /// ```
    /// use oclprim::{Device, Tuning, op::Sum};
    ///
    /// let device = Device::best()?.with_tuning(Tuning::default().without_look_back())?;
    /// assert_eq!(device.reduce(&[1u8, 2, 3], Sum)?, 6);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn without_look_back(mut self) -> Self {
        self.no_look_back = true;
        self
    }

    /// Ignores the [tuning file](TuningFile), and uses the crate's defaults for the device's class.
    ///
    /// ```
    /// use oclprim::{Device, Tuning, op::Sum};
    ///
    /// let device = Device::best()?.with_tuning(Tuning::default().without_file())?;
    /// assert_eq!(device.reduce(&[1u8, 2, 3], Sum)?, 6);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn without_file(mut self) -> Self {
        self.without_file = true;
        self
    }

    /// Fault injection: some tiles drop or delay their publish.
    #[doc(hidden)]
    pub fn stall(mut self, stall: Stall) -> Self {
        self.stall = Some(stall);
        self
    }

    /// Sets the minimum bytes of a part of an input slice: kernels start on a part while later parts arrive.
    #[doc(hidden)]
    pub fn parts(mut self, bytes: usize) -> Self {
        self.part_bytes = Some(bytes);
        self
    }

    /// Stages transfers even where host and device share memory, so that tests need no GPU. `fault` is the fault to
    /// inject.
    #[doc(hidden)]
    pub fn staged(mut self, fault: Option<TransferFault>) -> Self {
        (self.staged, self.transfer_fault) = (true, fault);
        self
    }

    /// Copies slices even where a driver for CPUs could read them in place. Some kernels count in one pass and write in
    /// the next. If the slice changed in between, as a mapped file can, they would write beyond their buffers.
    #[doc(hidden)]
    pub fn copied(mut self) -> Self {
        self.copied = true;
        self
    }

    /// Sets one of the [`parameters`] of a primitive, for elements and inputs of all sizes. The tuning file is then ignored for
    /// this primitive.
    ///
    /// An unknown name, or a value outside the parameter's set, is an error of
    /// [`Device::with_tuning`](crate::Device::with_tuning).
    ///
    /// ```
    /// use oclprim::{Device, ErrorKind, Tuning, op::Sum, tuning::Primitive};
    ///
    /// let device = Device::best()?;
    /// let wide = Tuning::default().set(Primitive::Reduce, "max_groups", 16 * device.info().compute_units as usize);
    /// assert_eq!(device.with_tuning(wide)?.reduce(&[1u32, 2, 3], Sum)?, 6);
    /// if !device.is_cpu() {
    ///     let error = device.with_tuning(Tuning::default().set(Primitive::Reduce, "colour", 3)).unwrap_err();
    ///     assert_eq!(error.kind(), ErrorKind::InvalidInput);
    /// }
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn set(mut self, primitive: Primitive, parameter: &str, value: usize) -> Self {
        self.set.push((primitive, parameter.into(), value));
        self
    }
}

/// Fault injection in tiles that others look back at, as in `cl/lib/status_word.cl`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stall {
    /// Dropped publish: scans in place publish a tile's aggregate late, radix sorts publish only prefixes, and other
    /// look-backs publish nothing.
    Silent,
    /// Delayed publish.
    Late,
}

#[cfg(test)]
mod tests {
    use super::{parameters::ELEMENT_SIZES, *};

    /// The work-groups of every primitive. Also checks the local memory of transpositions.
    fn work_groups(caps: &Tuned) -> Vec<usize> {
        let mut groups = vec![reduce(caps).work_group, scan(caps, 0).work_group];
        groups.extend([histogram(caps).work_group, histogram(caps).large_work_group]);
        for size in [1, 2, 3, 4, 8, 16] {
            let (apart, within) = (transpose(caps, size), in_place(caps, size));
            groups.extend([apart.work_group, within.work_group]);
            for (tiles, block, side, work_group) in
                [(1, apart.block, apart.side, apart.work_group), (2, within.block, within.side, within.work_group)]
            {
                let bytes = tiles * (block * side).pow(2) * size;
                let fits = bytes == 0 || fits_locally(bytes, caps);
                assert!(caps.class == DeviceClass::Cpu || fits, "{bytes} bytes of {caps:?}");
                let blocks = side * side;
                let whole = block == 0 || caps.class == DeviceClass::Cpu || blocks.is_multiple_of(work_group);
                assert!(whole, "{blocks} blocks of {caps:?}");
            }
        }
        groups.extend([gather(caps, 4).work_group, self::reverse(caps).work_group, sort(caps, 4, 0).work_group]);
        groups.push(permute(caps, 4).work_group);
        groups.extend(top_k(caps).iter().map(|shape| shape.work_group));
        groups.extend([
            select(caps).work_group,
            merge(caps).work_group,
            random(caps).work_group,
            iota(caps).work_group,
        ]);
        for copy in [copy(caps), copy_ranges(caps)] {
            if let Copy::Words { work_group, .. } = copy {
                groups.push(work_group);
            }
        }
        groups
    }

    #[test]
    fn work_groups_are_powers_of_two_on_every_device() {
        for (name, caps) in Tuned::samples() {
            for max_work_group in [0, 1, 3, 64, 100, 255, 256, 300, 1000, 4096] {
                let caps = caps.with(|facts| facts.max_work_group = max_work_group);
                let most = max_work_group.max(1);
                let lawful = |caps: &Tuned| {
                    for group in work_groups(caps) {
                        let what = format!("{name}: {group} of {max_work_group}, {:?}", caps.chosen);
                        assert!(group.is_power_of_two() && group <= most, "{what}");
                    }
                };
                lawful(&caps);
                for primitive in Primitive::ALL {
                    for parameter in ELEMENT_SIZES.into_iter().flat_map(|size| parameters(primitive, &caps, size)) {
                        for value in parameter.values {
                            lawful(&caps.clone().choosing(parameter.name, value));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_candidate_is_used_as_chosen() {
        for (name, caps) in Tuned::samples() {
            for primitive in Primitive::ALL {
                let all = parameters(primitive, &caps, 4);
                for parameter in &all {
                    let what = format!("{name}: {primitive}, {parameter:?}");
                    assert!(parameter.values.contains(&parameter.usual), "{what}");
                    // An optional feature has the value 0 when it is off.
                    let optional =
                        ["look_back", "one_pass", "exact_f64", "aside", "segment_registers"].contains(&parameter.name);
                    let lawful = optional || !parameter.values.contains(&0);
                    assert!(parameter.values.is_sorted() && lawful, "{what}");
                    assert_eq!(all.iter().filter(|other| other.name == parameter.name).count(), 1, "{what}");
                    let taken = |value| {
                        let taken = parameters_of(primitive, &caps.clone().choosing(parameter.name, value));
                        taken.into_iter().find(|(name, _)| *name == parameter.name).expect("its name").1
                    };
                    for &value in &parameter.values {
                        assert_eq!(taken(value), value, "{what}");
                    }
                }
            }
        }
    }

    /// The value that a primitive on 4-byte elements uses for each of its parameters.
    fn parameters_of(primitive: Primitive, caps: &Tuned) -> Vec<(&'static str, usize)> {
        let of_copy = |copy| match copy {
            Copy::Runs { max_groups, min_run } => vec![("max_groups", max_groups), ("min_run", min_run)],
            Copy::Words { work_group, words } => vec![("work_group", work_group), ("words", words)],
        };
        match primitive {
            Primitive::Reduce => {
                let it = reduce(caps);
                let one_pass = usize::from(it.one_pass);
                vec![
                    ("work_group", it.work_group),
                    ("max_groups", it.max_groups),
                    ("one_pass", one_pass),
                    ("exact_f64", usize::from(it.exact_f64)),
                    ("segment_registers", it.segment_registers),
                    ("key_registers", it.key_registers),
                ]
            }
            Primitive::Scan => {
                let it = scan(caps, 0);
                vec![
                    ("work_group", it.work_group),
                    ("max_groups", it.max_groups),
                    ("registers", it.registers),
                    ("segment_registers", it.segment_registers),
                    ("aside", usize::from(it.aside)),
                ]
            }
            Primitive::Copy => of_copy(copy(caps)),
            Primitive::CopyRanges => of_copy(copy_ranges(caps)),
            Primitive::Gather => {
                let Gather { work_group, each, max_groups, min_run } = gather(caps, 4);
                vec![("work_group", work_group), ("each", each), ("max_groups", max_groups), ("min_run", min_run)]
            }
            Primitive::Reverse => {
                let it = self::reverse(caps);
                vec![("work_group", it.work_group), ("max_groups", it.max_groups), ("min_run", it.min_run)]
            }
            Primitive::Histogram => {
                let it = histogram(caps);
                vec![
                    ("work_group", it.work_group),
                    ("large_work_group", it.large_work_group),
                    ("max_groups", it.max_groups),
                    ("max_replicas", it.max_replicas),
                    ("few_ranges", it.few_ranges),
                    ("min_bytes", it.min_bytes),
                    ("one_pass", usize::from(it.one_pass_slots > 0)),
                ]
            }
            Primitive::Transpose => {
                let it = transpose(caps, 4);
                // A smaller side limits the work-group.
                let work_group = it.work_group;
                vec![("work_group", work_group), ("side", it.side), ("max_groups", it.max_groups)]
            }
            Primitive::Permute => {
                let it = permute(caps, 4);
                let run = [("max_groups", it.max_groups), ("min_run", it.min_run)];
                [("work_group", it.work_group), ("each", it.each)].into_iter().chain(run).collect()
            }
            Primitive::Sort => {
                let it = sort(caps, 4, 0);
                vec![
                    ("items", it.items),
                    ("tile_bytes", it.tile_bytes),
                    ("max_groups", it.max_groups),
                    ("offsets_work_group", it.offsets_work_group),
                    ("registers", it.registers),
                    ("look_back", usize::from(it.look_back)),
                ]
            }
            Primitive::Merge => {
                let it = merge(caps);
                let registers = [("registers", it.registers), ("most_registers", it.most_registers)];
                let others = [
                    ("work_group", it.work_group),
                    ("items", it.items),
                    ("items_with_values", it.items_with_values),
                    ("most_items", it.most_items),
                    ("max_groups", it.max_groups),
                    ("max_search_groups", it.max_search_groups),
                ];
                others.into_iter().chain(registers.map(|(name, value)| (name, value.unwrap_or(0)))).collect()
            }
            Primitive::Select => {
                let it = select(caps);
                vec![
                    ("work_group", it.work_group),
                    ("rows", it.rows),
                    ("max_groups", it.max_groups),
                    ("min_run", it.min_run),
                    ("registers", it.registers),
                    ("partition_registers", it.partition_registers),
                ]
            }
            Primitive::TopK => {
                let it = top_k(caps)[0];
                vec![
                    ("work_group", it.work_group),
                    ("replicas", it.replicas),
                    ("sample", it.sample),
                    ("each", it.each),
                    ("max_groups", it.max_groups),
                ]
            }
            Primitive::Random => {
                let it = random(caps);
                vec![("work_group", it.work_group), ("max_groups", it.max_groups), ("min_run", it.min_run)]
            }
            Primitive::Iota => {
                let it = iota(caps);
                vec![("work_group", it.work_group), ("max_groups", it.max_groups), ("min_run", it.min_run)]
            }
            Primitive::Transfer => {
                let it = transfer(caps);
                vec![
                    ("chunk_bytes", it.chunk_bytes),
                    ("chunks", it.chunks),
                    ("threads", it.threads),
                    ("min_bytes", it.min_bytes),
                    ("min_read_bytes", it.min_read_bytes),
                ]
            }
        }
    }
}
