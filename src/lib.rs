//! Data-parallel primitives on OpenCL devices, and on the CPU through the same API.
//!
//! ```
//! use oclprim::{Device, op::Sum};
//!
//! let device = Device::best()?; // the fastest usable OpenCL device, else the CPU
//! let x = device.upload(&[1.0f32, 2.0, 3.5])?;
//! assert_eq!(device.reduce(&x, Sum)?, 6.5);
//! # Ok::<(), oclprim::Error>(())
//! ```
#![deny(unsafe_code)]
#![cfg_attr(
    not(feature = "opencl"),
    allow(dead_code, unused_variables, unused_mut, reason = "the CPU backend alone needs less of the runtime")
)]

pub mod bench;
pub mod check;
mod copy;
mod element;
mod error;
pub mod histogram;
pub mod ladder;
pub mod op;
pub mod reduce;
#[allow(unsafe_code, reason = "the boundary to OpenCL; every block names its promise")]
mod runtime;
#[allow(unsafe_code, reason = "the boundary to the loader")]
mod sys;
pub mod transpose;
mod tuning;

pub use element::{Element, ElementType, Float, Integer};
pub use error::{Error, ErrorKind, Result};
pub use half::{bf16, f16};
pub use histogram::{Accumulate, Bins, Counter, Histogram, Outside};
pub use reduce::{Determinism, Extreme};
pub use runtime::{
    Buffer, Capabilities, Device, DeviceClass, DeviceInfo, DeviceType, Input, MapMut, MapRef, Output, ProgramSpec,
    Scratch, SubGroup, SubGroupBackend, Timing, View, ViewMut,
};
pub use tuning::Tuning;
