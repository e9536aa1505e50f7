//! The link shim: the crate builds without an OpenCL SDK and starts without a loader.

#[cfg(opencl_shim)]
mod library;
#[cfg(opencl_shim)]
pub(crate) mod opencl;
