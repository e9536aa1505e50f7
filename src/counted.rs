//! Outputs whose number of results only the device knows, such as those of selections.

use crate::{Error, Output, Result};

/// Runs `call`, which fills at most `room` elements of an output and writes the number found to `count`. If `count` is on the
/// host, a number above `room` is an error.
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

/// Returns an error if an output has room for fewer than `found` elements.
pub(crate) fn expect_room(what: &str, room: usize, found: u64) -> Result<()> {
    if found <= room as u64 {
        return Ok(());
    }
    Err(Error::invalid(format!("the {what} has {found} elements, the output has room for {room}")))
}
