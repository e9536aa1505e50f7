//! Outputs of which the device finds out how much of them it fills.

use crate::{Error, Output, Result};

/// Runs `call`, which writes what there is `room` for, and to `count` how many there are. Where that comes back to the host, more
/// are an error.
pub(crate) fn in_room(
    what: &str,
    room: usize,
    count: Output<'_, u64>,
    call: impl FnOnce(Output<'_, u64>) -> Result<()>,
) -> Result<()> {
    count.expect_len(1, "a count")?;
    match count {
        Output::Host(count) => {
            call(Output::Host(&mut *count))?;
            expect_room(what, room, count[0])
        }
        count => call(count),
    }
}

/// An output with `room` holds what was found.
pub(crate) fn expect_room(what: &str, room: usize, found: u64) -> Result<()> {
    if found <= room as u64 {
        return Ok(());
    }
    Err(Error::invalid(format!("the {what} has {found} elements, the output has room for {room}")))
}
