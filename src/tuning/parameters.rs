//! Parameters of primitives that `oclprim tune` searches for a device.

use serde::{Deserialize, Serialize};

use super::{Primitive, Tuned, parameter::Parameter};
use crate::runtime::Capabilities;

/// The parameters of a primitive for elements of that many bytes.
///
/// ```
/// use oclprim::{Capabilities, tuning::{Primitive, parameters}};
///
/// let (_, caps) = &Capabilities::samples()[0];
/// assert!(parameters(Primitive::Reduce, caps, 4).iter().any(|parameter| parameter.name == "max_groups"));
/// ```
pub fn parameters(primitive: Primitive, caps: &Capabilities, element_bytes: usize) -> Vec<Parameter> {
    let caps = &Tuned::from(caps.clone());
    let size = element_bytes.clamp(1, MOST_ELEMENT_BYTES);
    match primitive {
        Primitive::Reduce => super::reduce::parameters(caps),
        Primitive::Scan => super::scan::parameters(caps),
        Primitive::Copy | Primitive::CopyRanges => super::copy::parameters(primitive, caps),
        Primitive::Gather => super::copy::gather_parameters(caps, size),
        Primitive::Reverse => super::copy::reverse_parameters(caps),
        Primitive::Histogram => super::histogram::parameters(caps),
        Primitive::Transpose => super::transpose::parameters(caps, size),
        Primitive::Permute => super::permute::parameters(caps, size),
        Primitive::Sort => super::sort::parameters(caps, element_bytes),
        Primitive::Merge => super::merge::parameters(caps),
        Primitive::Select => super::select::parameters(caps),
        Primitive::TopK => super::topk::parameters(caps),
        Primitive::Random => super::random::parameters(caps),
        Primitive::Iota => super::iota::parameters(caps),
        Primitive::Transfer => super::transfer::parameters(caps),
    }
}

/// Element sizes that cover every parameter of every primitive.
pub(super) const ELEMENT_SIZES: [usize; 5] = [1, 2, 4, 8, 16];

/// Larger elements use the parameters of this size.
pub(super) const MOST_ELEMENT_BYTES: usize = 16;

/// The element size in rows for a primitive: 1 for copies and transfers, which move bytes, else `element_bytes`.
///
/// ```
/// use oclprim::tuning::{Primitive, row_bytes};
///
/// assert_eq!((row_bytes(Primitive::Reduce, 4), row_bytes(Primitive::Copy, 4)), (4, 1));
/// ```
pub fn row_bytes(primitive: Primitive, element_bytes: usize) -> usize {
    if matches!(primitive, Primitive::Copy | Primitive::CopyRanges | Primitive::Transfer) { 1 } else { element_bytes }
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
