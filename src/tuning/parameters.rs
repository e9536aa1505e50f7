//! The numbers of primitives' geometry that are searched for a device.

use serde::{Deserialize, Serialize};

use crate::runtime::Capabilities;

/// The primitives that have such numbers.
///
/// ```
/// assert!(oclprim::tuning::PRIMITIVES.contains(&"reduce"));
/// ```
pub const PRIMITIVES: [&str; 15] = [
    "reduce",
    "scan",
    "copy",
    "copy_ranges",
    "gather",
    "reverse",
    "histogram",
    "transpose",
    "permute",
    "sort",
    "merge",
    "select",
    "topk",
    "random",
    "iota",
];

/// A number of a primitive's geometry: results are the same with each of its values, but for what is open anyway, as
/// [`tuning`](crate::tuning) says.
///
/// ```
/// use oclprim::{Capabilities, tuning::parameters};
///
/// for (name, caps) in Capabilities::samples() {
///     for parameter in parameters("transpose", &caps, 4) {
///         println!("{name}: {} is {}, or one of {:?}", parameter.name, parameter.usual, parameter.values);
///         assert!(parameter.values.contains(&parameter.usual));
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name within the primitive, such as `max_groups`.
    pub name: &'static str,
    /// What the crate takes for devices of this class.
    pub usual: usize,
    /// What it may be, rising, the usual value among them.
    pub values: Vec<usize>,
}

impl Parameter {
    #[cfg(feature = "opencl")]
    pub(super) fn new(name: &'static str, usual: usize, values: impl IntoIterator<Item = usize>) -> Self {
        let mut values: Vec<_> = values.into_iter().chain([usual]).collect();
        values.sort_unstable();
        values.dedup();
        Self { name, usual, values }
    }
}

/// The numbers that can be chosen for a primitive on elements of so many bytes. None for what is not among [`PRIMITIVES`].
///
/// ```
/// use oclprim::{Capabilities, tuning::parameters};
///
/// let (_, caps) = &Capabilities::samples()[0];
/// assert!(parameters("no such primitive", caps, 4).is_empty());
/// ```
#[cfg_attr(not(feature = "opencl"), allow(clippy::missing_const_for_fn))]
pub fn parameters(primitive: &str, caps: &Capabilities, element_bytes: usize) -> Vec<Parameter> {
    #[cfg(feature = "opencl")]
    {
        let caps = &Capabilities { chosen: Default::default(), ..caps.clone() };
        let size = element_bytes.clamp(1, MOST_ELEMENT_BYTES);
        match primitive {
            "reduce" => super::reduce::parameters(caps),
            "scan" => super::scan::parameters(caps),
            "copy" | "copy_ranges" => super::copy::parameters(primitive, caps),
            "gather" => super::copy::gather_parameters(caps, size),
            "reverse" => super::copy::reverse_parameters(caps),
            "histogram" => super::histogram::parameters(caps),
            "transpose" => super::transpose::parameters(caps, size),
            "permute" => super::permute::parameters(caps, size),
            "sort" => super::sort::parameters(caps, element_bytes),
            "merge" => super::merge::parameters(caps),
            "select" => super::select::parameters(caps),
            "topk" => super::topk::parameters(caps),
            "random" => super::random::parameters(caps),
            "iota" => super::iota::parameters(caps),
            _ => Vec::new(),
        }
    }
    #[cfg(not(feature = "opencl"))]
    Vec::new()
}

/// Elements beyond this have no numbers of their own.
pub(super) const MOST_ELEMENT_BYTES: usize = 16;

/// The element size by which choices for a primitive are told apart: copies are of bytes, whatever these are.
///
/// ```
/// use oclprim::tuning::row_bytes;
///
/// assert_eq!((row_bytes("reduce", 4), row_bytes("copy", 4)), (4, 1));
/// ```
pub fn row_bytes(primitive: &str, element_bytes: usize) -> usize {
    if matches!(primitive, "copy" | "copy_ranges") { 1 } else { element_bytes }
}

/// Sizes of inputs that have choices of their own.
///
/// ```
/// use oclprim::tuning::SizeClass;
///
/// assert_eq!([0, 1 << 20, 1 << 26].map(SizeClass::of), SizeClass::ALL);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SizeClass {
    /// Below 1 MiB.
    Small,
    /// Below 64 MiB.
    Medium,
    /// From 64 MiB on.
    Large,
}

impl SizeClass {
    /// All, rising.
    ///
    /// ```
    /// use oclprim::tuning::SizeClass;
    ///
    /// assert!(SizeClass::ALL.is_sorted());
    /// ```
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// That of an input of so many bytes.
    ///
    /// ```
    /// use oclprim::tuning::SizeClass;
    ///
    /// assert_eq!(SizeClass::of(1 << 20), SizeClass::Medium);
    /// ```
    pub const fn of(bytes: usize) -> Self {
        match bytes >> 20 {
            0 => Self::Small,
            1..64 => Self::Medium,
            _ => Self::Large,
        }
    }

    /// The name, such as `small`.
    ///
    /// ```
    /// assert_eq!(oclprim::tuning::SizeClass::Small.name(), "small");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

/// Multiples of a device's compute units.
#[cfg(feature = "opencl")]
pub(super) fn of_units(factors: &[usize], caps: &Capabilities) -> impl Iterator<Item = usize> {
    factors.iter().map(|factor| factor * super::units(caps))
}

/// The work-groups of these that a device takes, with `bytes` bytes of local memory an item; `None` where there is no
/// choice.
#[cfg(feature = "opencl")]
pub(super) fn work_groups(usual: usize, bytes: usize, values: &[usize], caps: &Capabilities) -> Option<Parameter> {
    let fits = |&items: &usize| super::work_group_of(items, bytes.max(1), caps) == items;
    let fitting = values.iter().copied().filter(fits);
    // One item is the geometry of a CPU.
    (usual > 1).then(|| Parameter::new("work_group", usual, fitting))
}
