//! Parameters of primitives that `oclprim tune` searches for a device.

use serde::{Deserialize, Serialize};

use crate::runtime::Capabilities;

/// The primitives that have parameters.
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

/// A parameter of a primitive's geometry. Its value never changes a result, except those that [`tuning`](crate::tuning) lists
/// as unspecified.
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
    /// The parameter's name within the primitive, such as `max_groups`.
    pub name: &'static str,
    /// The crate's default for devices of this class.
    pub usual: usize,
    /// The allowed values in ascending order, the default among them.
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

/// The parameters of a primitive for elements of that many bytes; empty if it is not in [`PRIMITIVES`].
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

/// Larger elements use the parameters of this size.
pub(super) const MOST_ELEMENT_BYTES: usize = 16;

/// The element size in rows for a primitive: 1 for copies, which move bytes, else `element_bytes`.
///
/// ```
/// use oclprim::tuning::row_bytes;
///
/// assert_eq!((row_bytes("reduce", 4), row_bytes("copy", 4)), (4, 1));
/// ```
pub fn row_bytes(primitive: &str, element_bytes: usize) -> usize {
    if matches!(primitive, "copy" | "copy_ranges") { 1 } else { element_bytes }
}

/// A class of input sizes; each class can have its own row in a tuning file.
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
    /// All classes in ascending order.
    ///
    /// ```
    /// use oclprim::tuning::SizeClass;
    ///
    /// assert!(SizeClass::ALL.is_sorted());
    /// ```
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// The class of an input of that many bytes.
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

    /// The class's name, such as `small`.
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

/// The parameter `work_group`, with the `values` that fit the device; each work-item needs `bytes` bytes of local memory.
/// `None` if there is no choice.
#[cfg(feature = "opencl")]
pub(super) fn work_groups(usual: usize, bytes: usize, values: &[usize], caps: &Capabilities) -> Option<Parameter> {
    let fits = |&items: &usize| super::work_group_of(items, bytes.max(1), caps) == items;
    let fitting = values.iter().copied().filter(fits);
    // A work-group of one work-item is the geometry of a CPU.
    (usual > 1).then(|| Parameter::new("work_group", usual, fitting))
}
