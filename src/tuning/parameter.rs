//! A parameter, and the geometry that a device allows.

use crate::runtime::Capabilities;

/// A parameter of a primitive's geometry. The value never changes a result, except for results that
/// [`tuning`](crate::tuning) lists as unspecified.
///
/// ```
/// use oclprim::{Capabilities, tuning::{Primitive, parameters}};
///
/// for (name, caps) in Capabilities::samples() {
///     for parameter in parameters(Primitive::Transpose, &caps, 4) {
///         println!("{name}: {} is {}, or one of {:?}", parameter.name, parameter.usual, parameter.values);
///         assert!(parameter.values.contains(&parameter.usual));
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// The parameter's name within the primitive, such as `max_groups`.
    pub name: &'static str,
    /// The crate's default for devices of this class.
    pub usual: usize,
    /// The allowed values in ascending order, the default among them.
    pub values: Vec<usize>,
}

impl Parameter {
    pub(super) fn new(name: &'static str, usual: usize, values: impl IntoIterator<Item = usize>) -> Self {
        let mut values: Vec<_> = values.into_iter().chain([usual]).collect();
        values.sort_unstable();
        values.dedup();
        Self { name, usual, values }
    }
}

/// Local memory reserved for a few words of the kernels and for additions by compilers.
pub(crate) const RESERVED_BYTES: usize = 64;

pub(super) fn units(caps: &Capabilities) -> usize {
    caps.compute_units.max(1) as usize
}

/// The largest power of two that is at most `most` work-items and that the device allows. Kernels halve groups of lanes, and
/// devices may report any maximum.
pub(crate) fn work_group(most: usize, caps: &Capabilities) -> usize {
    1 << most.min(caps.max_work_group.max(1)).ilog2()
}

/// Returns whether a work-group can have `bytes` bytes of local memory.
pub(crate) fn fits_locally(bytes: usize, caps: &Capabilities) -> bool {
    bytes + RESERVED_BYTES <= caps.local_bytes
}

/// [`work_group`] if each work-item has `bytes` bytes of local memory.
pub(crate) fn work_group_of(most: usize, bytes: usize, caps: &Capabilities) -> usize {
    work_group(most.min((caps.local_bytes.saturating_sub(RESERVED_BYTES) / bytes).max(1)), caps)
}

/// Multiples of a device's compute units.
pub(super) fn of_units(factors: &[usize], caps: &Capabilities) -> impl Iterator<Item = usize> {
    factors.iter().map(|factor| factor * units(caps))
}

/// The parameter `work_group`, with the `values` that fit the device; each work-item needs `bytes` bytes of local memory.
/// `None` if there is no choice.
pub(super) fn work_groups(usual: usize, bytes: usize, values: &[usize], caps: &Capabilities) -> Option<Parameter> {
    let fits = |&items: &usize| work_group_of(items, bytes.max(1), caps) == items;
    let fitting = values.iter().copied().filter(fits);
    // A work-group of one work-item is the geometry of a CPU.
    (usual > 1).then(|| Parameter::new("work_group", usual, fitting))
}
