//! Elements in device memory during a call, as kernels take them.

use std::ops::{Deref, Range};

use super::{AnyInput, AnyOutput, Backend, ClDevice, ClMem, Device};
use crate::runtime::opencl::{Borrowed, Pooled};
use crate::{Error, Result};

/// The owner of device memory during a call.
pub(crate) enum Held {
    Buffer(ClMem),
    Pooled(Pooled),
    Borrowed(Borrowed),
}

impl Held {
    fn mem(&self) -> &ClMem {
        match self {
            Self::Buffer(mem) => mem,
            Self::Pooled(pooled) => pooled.mem(),
            Self::Borrowed(borrowed) => borrowed.mem(),
        }
    }
}

/// A call on one queue that uses a buffer of another queue. The owner's commands end before the call starts, and the
/// call's commands end before the owner's next ones.
struct Visit(ClDevice);

impl Visit {
    fn start(user: &ClDevice, owner: &ClDevice) -> Result<Option<Self>> {
        if user.same_queue(owner) {
            return Ok(None);
        }
        owner.finish()?;
        Ok(Some(Self(user.clone())))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Err(error) = self.0.finish() {
            self.0.owe(error);
        }
    }
}

/// Contiguous elements in device memory, as a kernel's arguments: a buffer and an offset.
pub struct ClInput {
    held: Held,
    #[allow(dead_code, reason = "kept for its drop")]
    visit: Option<Visit>,
    /// The location of the memory, as `opencl::root` returns it.
    root: (usize, usize),
    offset: usize,
    len: usize,
    size: usize,
}

impl ClInput {
    /// `bytes` bytes of the device's pool, for elements of `size` bytes.
    pub(crate) fn pooled(device: &ClDevice, bytes: usize, size: usize) -> Result<Self> {
        let held = Held::Pooled(device.pooled(bytes)?);
        let root = (held.mem().as_ptr().addr(), 0);
        Ok(Self { held, visit: None, root, offset: 0, len: bytes / size.max(1), size })
    }

    /// Writes `value`, the bytes of an element, to the first element, by fills. A fill, unlike a write, does not wait.
    pub(crate) fn set(&self, device: &ClDevice, value: &[u8]) -> Result<()> {
        // A fill's pattern has 1, 2, 4, 8 or 16 bytes.
        let size = (1 << value.len().trailing_zeros()).min(16);
        let mut parts = value.chunks(size).enumerate();
        parts.try_for_each(|(i, part)| device.fill(self.mem(), self.byte_offset() + i * size, size, part))
    }

    /// A host slice of `bytes` bytes that the driver reads in place, from byte `offset` of `borrowed` on. Both are multiples of
    /// `size`, which is not 0.
    pub(super) fn borrowed((borrowed, offset): (Borrowed, usize), bytes: usize, size: usize) -> Self {
        let root = (borrowed.mem().as_ptr().addr(), 0);
        let (offset, len) = (offset / size, bytes / size);
        Self { held: Held::Borrowed(borrowed), visit: None, root, offset, len, size }
    }

    /// `len` elements of a buffer that `owner` owns; `place` is the buffer's memory.
    pub(super) fn within(
        device: &ClDevice,
        owner: &Device,
        place: Option<(&ClMem, (usize, usize))>,
        offset: usize,
        len: usize,
        size: usize,
    ) -> Result<Self> {
        match (owner.backend(), place) {
            (Backend::OpenCl(owner), Some((mem, root))) if device.same_context(owner) => {
                let visit = Visit::start(device, owner)?;
                Ok(Self { held: Held::Buffer(mem.clone()), visit, root, offset, len, size })
            }
            _ => Err(foreign(owner, &device.info().to_string())),
        }
    }

    pub fn mem(&self) -> &ClMem {
        self.held.mem()
    }

    /// The `len` elements from index `start` on, which must exist, for a call that ends before `self` is dropped.
    pub(crate) fn part(&self, start: usize, len: usize) -> Self {
        let held = Held::Buffer(self.mem().clone());
        Self { held, visit: None, root: self.root, offset: self.offset + start, len, size: self.size }
    }

    /// The offset of the first element in the buffer.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of an element.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The byte offset of the first element in the buffer. Buffers themselves are at least 16-byte aligned.
    pub(crate) fn byte_offset(&self) -> usize {
        self.offset * self.size
    }

    fn extent(&self) -> Extent {
        Extent::new(self.root, self.byte_offset(), self.len * self.size)
    }

    /// Returns whether the first element is aligned for 16-byte accesses.
    pub(crate) fn aligned(&self) -> bool {
        self.byte_offset().is_multiple_of(16)
    }

    /// Returns whether the end of the last element is aligned for 16-byte accesses.
    pub(crate) fn ends_aligned(&self) -> bool {
        (self.byte_offset() + self.len * self.size).is_multiple_of(16)
    }
}

/// An input in device memory. The elements of a large host slice arrive there while kernels run on earlier ones.
#[derive(Clone, Copy)]
pub struct Arriving<'a> {
    place: &'a ClInput,
    /// The elements, if they are still on the host.
    host: Option<&'a [u8]>,
}

impl<'a> Arriving<'a> {
    /// An input from the two values that [`AnyInput::arriving`] returns.
    pub(crate) fn new(place: &'a ClInput, host: Option<&'a [u8]>) -> Self {
        Self { place, host }
    }

    /// Returns whether the elements are still on the host.
    pub(crate) fn in_parts(&self) -> bool {
        self.host.is_some()
    }

    /// Calls `launch` with consecutive ranges that cover the elements. Each range but the last ends at a multiple of
    /// `unit`. The commands that `launch` enqueues run after the range has arrived. If no elements are on
    /// the host, there is one range.
    pub(crate) fn arrive(
        &self,
        device: &ClDevice,
        unit: usize,
        mut launch: impl FnMut(Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let (len, size) = (self.len(), self.size());
        let Some(data) = self.host else { return launch(0..len) };
        let unit = unit.saturating_mul(size);
        device.write_in_parts(self.mem(), data, unit, &mut |bytes| launch(bytes.start / size..bytes.end / size))
    }
}

impl<'a> From<&'a ClInput> for Arriving<'a> {
    fn from(place: &'a ClInput) -> Self {
        Self { place, host: None }
    }
}

impl<'a> Deref for Arriving<'a> {
    type Target = ClInput;

    fn deref(&self) -> &ClInput {
        self.place
    }
}

/// Device memory that a primitive writes, and the host slice that receives a copy of it.
#[must_use = "a host slice is written by `finish`"]
pub struct ClOutput<'a> {
    pub(super) place: ClInput,
    pub(super) host: Option<&'a mut [u8]>,
}

/// The bytes of an argument in a memory object. A host slice has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    object: usize,
    bytes: Range<usize>,
}

impl Extent {
    /// The range of `bytes` bytes that starts at byte `offset` of a buffer. `root` is the buffer's location, from
    /// `opencl::root`.
    pub(super) fn new(root: (usize, usize), offset: usize, bytes: usize) -> Self {
        let first = root.1 + offset;
        Self { object: root.0, bytes: first..first + bytes }
    }
}

/// Returns an error if an output overlaps an input or another output, as a user's buffers can. Kernels read inputs
/// while they write outputs.
pub(crate) fn apart(inputs: &[&ClInput], outputs: &[&ClOutput<'_>]) -> Result<()> {
    let inputs: Vec<_> = inputs.iter().map(|input| input.extent()).collect();
    let outputs: Vec<_> = outputs.iter().map(|output| output.extent()).collect();
    extents_apart(&inputs, &outputs)
}

/// [`apart`] for calls of several launches, which check all arguments before the first one.
pub(crate) fn extents_apart(inputs: &[Extent], outputs: &[Extent]) -> Result<()> {
    for (i, output) in outputs.iter().enumerate() {
        for other in inputs.iter().chain(&outputs[i + 1..]) {
            let (from, to) = (&other.bytes, &output.bytes);
            if other.object == output.object && from.start.max(to.start) < from.end.min(to.end) {
                let text =
                    format!("an output overlaps another argument: bytes {to:?} and {from:?} of one memory object");
                return Err(Error::invalid(text));
            }
        }
    }
    Ok(())
}

/// Calls `launch` with inputs and outputs in the device's memory; no output overlaps another argument. Then copies
/// results to host slices. An output whose flag is set keeps the elements that `launch` does not write.
pub(crate) fn on_device<const I: usize, const O: usize>(
    device: &ClDevice,
    inputs: [AnyInput<'_>; I],
    outputs: [(AnyOutput<'_>, bool); O],
    launch: impl FnOnce([&ClInput; I], [&ClInput; O]) -> Result<()>,
) -> Result<()> {
    let inputs = inputs.into_iter().map(|input| input.cl(device)).collect::<Result<Vec<_>>>()?;
    let outputs = outputs.into_iter().map(|(output, keep)| output.cl(device, keep)).collect::<Result<Vec<_>>>()?;
    let (from, to) = (std::array::from_fn(|i| &inputs[i]), std::array::from_fn(|i| &outputs[i]));
    apart(&from, &to)?;
    launch(from, to.map(|output| &output.place))?;
    outputs.into_iter().try_for_each(|output| output.finish(device))
}

impl ClOutput<'_> {
    /// If the output is a host slice, copies the result there and waits. Also waits if the memory belongs to another
    /// queue, since that queue does not report failures of this one.
    pub(crate) fn finish(self, device: &ClDevice) -> Result<()> {
        match self.host {
            Some(host) => device.read(self.place.mem(), 0, host),
            None if self.place.visit.is_some() => device.finish(),
            None => Ok(()),
        }
    }
}

impl Deref for ClOutput<'_> {
    type Target = ClInput;

    fn deref(&self) -> &ClInput {
        &self.place
    }
}

pub(super) fn foreign(owner: &Device, user: &str) -> Error {
    Error::invalid(format!("a buffer of {} cannot be used on {user}", owner.info()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, DeviceClass, Input, Tuning, internals::testing::log_skip, tuning::Primitive};

    /// One thread launches the commands on a part, and then sends the chunks of later parts. So commands that waited
    /// for a later part would never end.
    #[test]
    fn commands_of_the_first_part_do_not_wait_for_the_last_one() {
        const PART: usize = 1 << 16;
        const UNIT: usize = 1000;
        let data: Vec<u32> = (0..4 * PART as u32 + 77).collect();
        let set = ["chunk_bytes", "min_bytes"];
        let tuning =
            set.into_iter().fold(Tuning::default().class(DeviceClass::Gpu).staged(None).parts(PART), |all, name| {
                all.set(Primitive::Transfer, name, PART)
            });
        for (index, info) in Device::list().iter().enumerate() {
            let device = Device::at(index).unwrap().with_tuning(tuning.clone()).unwrap();
            let Backend::OpenCl(cl) = device.backend() else { continue };
            let (place, host) = Input::from(&data).any().arriving(cl).unwrap();
            let input = Arriving::new(&place, host);
            if !input.in_parts() {
                assert!(cl.capabilities().unwrap().checker, "{info}: not in parts");
                log_skip(&info.to_string(), "a checker's transfers are not staged");
                continue;
            }
            cl.fill(input.mem(), 0, size_of_val(&data[..]), &[0xFF]).unwrap();
            let mut end = 0;
            let launch = |part: Range<usize>| {
                assert!(part.start == end && (part.end.is_multiple_of(UNIT) || part.end == data.len()), "{part:?}");
                end = part.end;
                let mut there = vec![0u32; data.len()];
                // A read on the queue of the call.
                cl.read(input.mem(), 0, bytemuck::cast_slice_mut(&mut there))?;
                assert!(there[..end] == data[..end], "{info}: {part:?} has not arrived");
                let last = there[data.len() - 1];
                assert!(part.start > 0 || last == u32::MAX, "{info}: the last element is there");
                Ok(())
            };
            input.arrive(cl, UNIT, launch).unwrap();
            assert_eq!(end, data.len(), "{info}");
        }
    }
}
