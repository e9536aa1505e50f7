//! Checks of arguments that several primitives share.

use crate::{Error, Result};

/// Returns an error unless `len`, the length of an argument such as flags or values, is `n`.
pub(crate) fn expect_beside(n: usize, len: usize, what: &str) -> Result<()> {
    if n == len {
        return Ok(());
    }
    Err(Error::invalid(format!("{n} {what}, got {len}")))
}
