//! Checks of arguments that several primitives share.

use crate::{Error, Result};

/// Returns an error unless an argument of `len` elements, such as flags or values, has `n` elements.
pub(crate) fn expect_beside(n: usize, len: usize, what: &str) -> Result<()> {
    if n == len {
        return Ok(());
    }
    Err(Error::invalid(format!("{n} {what}, got {len}")))
}
