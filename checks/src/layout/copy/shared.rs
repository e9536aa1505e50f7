//! Shared parts of the specs of copies.

use bytemuck::Pod;

/// Plain element types of the cases.
pub(super) trait Plain: Pod + PartialEq + std::fmt::Debug + Send + Sync {}
impl<T: Pod + PartialEq + std::fmt::Debug + Send + Sync> Plain for T {}
