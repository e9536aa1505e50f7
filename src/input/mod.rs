//! N-dimensional inputs and outputs: layouts, views, and arrays of `ndarray`.

pub(crate) mod layout;
pub(crate) mod nd;
#[cfg(feature = "ndarray")]
pub(crate) mod ndarray;
