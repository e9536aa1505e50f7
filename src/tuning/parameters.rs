//! Parameters of primitives that `oclprim tune` searches for a device.

use serde::{Deserialize, Serialize};

use super::parameter::Parameter;
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

/// The parameters of a primitive for elements of that many bytes; empty if it is not in [`PRIMITIVES`].
///
/// ```
/// use oclprim::{Capabilities, tuning::parameters};
///
/// let (_, caps) = &Capabilities::samples()[0];
/// assert!(parameters("no such primitive", caps, 4).is_empty());
/// ```
pub fn parameters(primitive: &str, caps: &Capabilities, element_bytes: usize) -> Vec<Parameter> {
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

/// Element sizes that cover every parameter of every primitive.
#[cfg(any(test, feature = "opencl"))]
pub(super) const ELEMENT_SIZES: [usize; 5] = [1, 2, 4, 8, 16];

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
