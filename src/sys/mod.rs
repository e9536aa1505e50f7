//! What the crate uses of the processor and the system: cache lines, large pages, and the link shim. With the shim, the
//! crate builds without an OpenCL SDK and starts without a loader.

#[cfg(opencl_shim)]
mod library;
pub(crate) mod lines;
#[cfg(opencl_shim)]
pub(crate) mod opencl;
pub(crate) mod pages;
