//! What several primitives ask of their arguments.

use crate::{Error, Result};

/// Flags, or values, for each of `n`.
pub(crate) fn expect_beside(n: usize, len: usize, what: &str) -> Result<()> {
    if n == len {
        return Ok(());
    }
    Err(Error::invalid(format!("{n} {what}, got {len}")))
}
