//! Devices, buffers and programs, on which every primitive builds. Only this module and `interop` name `ocl`.

// First, since rustdoc lists methods of `Device` in the order of modules.
mod device;

mod buffer;
pub(crate) mod cache;
mod capabilities;
pub(crate) mod folders;
mod info;
#[cfg(feature = "opencl")]
pub(crate) mod opencl;
#[cfg(not(feature = "opencl"))]
#[path = "absent.rs"]
pub(crate) mod opencl;
mod prepare;
mod program;

pub(crate) use buffer::{
    AnyInput, AnyOutput, Arriving, ClInput, ClOutput, Extent, Identity, Scratch, apart, extents_apart, on_device,
};
pub use buffer::{Buffer, Download, Input, MapMut, MapRef, Output, PinnedVec, Upload, View, ViewMut};
pub use capabilities::{Capabilities, DeviceClass, RefusedSubGroup, SubGroup, SubGroupBackend};
pub use device::{Backend, Device};
pub(crate) use info::MOST_PARTS;
pub use info::{DeviceInfo, DeviceType, Recorded, Timing, TransferFault, Transfers};
pub use prepare::Preparation;
pub(crate) use program::Text;
pub use program::{Code, ProgramSpec, kernel_in};
