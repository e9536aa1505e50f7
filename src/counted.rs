//! Counts in the memory of a device: of the elements that a call such as a selection wrote, or of an input's elements.

use crate::{
    Device, ElementType, Error, Input, Offset, Output, Result, View,
    runtime::{
        AnyInput, Backend, ClInput, ClOutput, ProgramSpec, apart,
        opencl::{ClDevice, Launch},
    },
};

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

/// A number of elements in memory: one `u32` or `u64`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Count<'c> {
    U32(Input<'c, u32>),
    U64(Input<'c, u64>),
}

/// Elements and, for `take(&count)`, the number of valid ones.
pub(crate) type Firsts<'a, T> = (Input<'a, T>, Option<Count<'a>>);

impl<'c> Count<'c> {
    pub(crate) fn of<C: Offset>(view: View<'c, C>) -> Self {
        let input = Input::from(view);
        match input.of_type() {
            Some(count) => Self::U64(count),
            None => Self::U32(input.of_type().expect("an offset is `u32` or `u64`")),
        }
    }

    pub(crate) fn expect_one(self) -> Result<Self> {
        match self {
            Self::U32(count) if count.len() != 1 => Err(no_count(count.len())),
            Self::U64(count) if count.len() != 1 => Err(no_count(count.len())),
            _ => Ok(self),
        }
    }

    /// `min(count, most)`. On an OpenCL device, waits for earlier calls.
    pub(crate) fn read(self, device: &Device, most: usize) -> Result<usize> {
        let count = match (device.backend(), self.expect_one()?) {
            (Backend::Cpu, Self::U32(count)) => count.host()?[0].into(),
            (Backend::Cpu, Self::U64(count)) => count.host()?[0],
            (Backend::OpenCl(device), count) => return count.cl(device)?.read(device, most),
        };
        Ok(clamped(count, most))
    }

    /// The value of a count, as [`Self::read`] returns it; `n` if there is no count.
    pub(crate) fn known(count: Option<Self>, device: &Device, n: usize) -> Result<usize> {
        count.map_or(Ok(n), |count| count.read(device, n))
    }

    /// The number as an argument of kernels.
    pub(crate) fn cl(self, device: &ClDevice) -> Result<ClCount> {
        match self.expect_one()? {
            Self::U32(count) => Ok(ClCount { place: count.cl(device)?, element: ElementType::U32, taken: 0 }),
            Self::U64(count) => Ok(ClCount { place: count.cl(device)?, element: ElementType::U64, taken: 0 }),
        }
    }
}

fn no_count(len: usize) -> Error {
    Error::invalid(format!("`take` needs a count of 1 element, got {len}"))
}

fn clamped(count: u64, most: usize) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).min(most)
}

/// A number of elements in the memory of a device, as kernels with [`with_length`] read it.
pub(crate) struct ClCount {
    place: ClInput,
    element: ElementType,
    /// Elements that earlier launches have taken.
    taken: usize,
}

impl ClCount {
    pub(crate) fn place(&self) -> &ClInput {
        &self.place
    }

    /// The number of the elements that follow the first `taken` ones, within the same call.
    pub(crate) fn after(&self, taken: usize) -> Self {
        Self { place: self.place.part(0, 1), element: self.element, taken }
    }

    /// The type of the number, for [`with_length`].
    pub(crate) fn element(&self) -> ElementType {
        self.element
    }

    /// `min(count, most)`. Waits for earlier calls.
    pub(crate) fn read(&self, device: &ClDevice, most: usize) -> Result<usize> {
        let (mut bytes, size) = ([0; 8], self.element.size());
        device.read(self.place.mem(), self.place.byte_offset(), &mut bytes[..size])?;
        let [a, b, c, d, ..] = bytes;
        let count = if size == 8 { u64::from_ne_bytes(bytes) } else { u32::from_ne_bytes([a, b, c, d]).into() };
        Ok(clamped(count, most))
    }
}

/// [`AnyInput::arriving`] of an input. With a count, all elements arrive before the launches.
pub(crate) fn arriving<'a>(
    device: &ClDevice,
    input: AnyInput<'a>,
    count: Option<Count<'_>>,
) -> Result<(ClInput, Option<&'a [u8]>)> {
    if count.is_some() { Ok((input.cl(device)?, None)) } else { input.arriving(device) }
}

/// A count as an argument of kernels. Returns an error if an output overlaps it.
pub(crate) fn on_device(
    device: &ClDevice,
    count: Option<Count<'_>>,
    outputs: &[&ClOutput<'_>],
) -> Result<Option<ClCount>> {
    let count = count.map(|count| count.cl(device)).transpose()?;
    apart_from(count.as_ref(), outputs)?;
    Ok(count)
}

/// Returns an error if an output overlaps the count of the input, which work-groups read until the launch ends.
pub(crate) fn apart_from(count: Option<&ClCount>, outputs: &[&ClOutput<'_>]) -> Result<()> {
    count.map_or(Ok(()), |count| outputs.iter().try_for_each(|output| apart(&[count.place()], &[output])))
}

/// The program. If there is a count in memory, of type `count`, kernels read their length from it.
pub(crate) fn with_length(program: ProgramSpec, count: Option<ElementType>) -> ProgramSpec {
    match count {
        Some(count) => program.define("LENGTH_T", count.storage()),
        None => program,
    }
}

/// Sets the arguments for `LENGTH_PARAMS` of `cl/lib/length.cl`. Without a count, the kernel reads `n` elements. With a
/// count, it reads at most `n`, each of which stands for 2^`log_each` of the counted elements.
pub(crate) fn length<'l>(
    launch: Launch<'l>,
    n: usize,
    wide: bool,
    count: Option<&ClCount>,
    log_each: u32,
) -> Launch<'l> {
    let launch = launch.offset(n as u64, wide);
    match count {
        Some(ClCount { place, taken, .. }) => {
            launch.mem(place.mem()).scalar(place.offset() as u64).scalar(*taken as u64).scalar(log_each)
        }
        None => launch,
    }
}
