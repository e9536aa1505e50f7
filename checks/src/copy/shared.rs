//! What the specs of copies share.

use bytemuck::Pod;

/// Any plain type that checks can handle.
pub(super) trait Plain: Pod + PartialEq + std::fmt::Debug + Send + Sync {}
impl<T: Pod + PartialEq + std::fmt::Debug + Send + Sync> Plain for T {}
