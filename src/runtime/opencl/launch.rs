//! Sets a kernel's arguments and enqueues it.

use std::{ffi::c_void, sync::Arc};

use super::{
    ClDevice,
    cl::{self, Mem},
    program::{Built, Limits, Prepared},
};
use crate::{Error, ErrorKind, Result, runtime::ProgramSpec};

/// One launch of one kernel: set the arguments in the kernel's order, then call [`run`](Launch::run).
///
/// The launch owns its kernel object, which still holds the scalars of its previous launch.
pub struct Launch<'d> {
    device: &'d ClDevice,
    name: &'static str,
    built: Arc<Built>,
    prepared: Prepared,
    limits: Limits,
    /// Bytes of local memory, including `__local` arguments.
    local_bytes: usize,
    next: u32,
    status: i32,
    first_group: usize,
    repeatable: bool,
}

impl<'d> Launch<'d> {
    pub fn new(device: &'d ClDevice, spec: &ProgramSpec, name: &'static str) -> Result<Self> {
        let built = device.program(spec, name)?;
        let (prepared, limits) = built.take(device.id(), device.max_work_group(), name)?;
        let local_bytes = limits.local_bytes;
        let (next, status, first_group, repeatable) = (0, cl::SUCCESS, 0, false);
        Ok(Self { device, name, built, prepared, limits, local_bytes, next, status, first_group, repeatable })
    }

    /// Sets the next argument, unless the kernel already holds the same `bytes`.
    fn set(mut self, size: usize, value: *const c_void, bytes: &[u8]) -> Self {
        let index = self.next as usize;
        let held = &mut self.prepared.arguments;
        if held.len() <= index {
            held.resize(index + 1, Vec::new());
        }
        if self.status == cl::SUCCESS {
            if bytes.is_empty() || held[index] != bytes {
                // SAFETY: the typed methods below pass a null pointer, or a pointer to a live value of `size` bytes.
                self.status = unsafe { cl::set_arg(&self.prepared.kernel, self.next, size, value) };
                held[index].clear();
                held[index].extend_from_slice(bytes);
            }
            self.next += 1;
        }
        self
    }

    /// A `__global` pointer, set at each launch, since a new object may have the address of a released one.
    pub fn mem(self, mem: &Mem) -> Self {
        let raw = mem.as_ptr();
        self.set(size_of_val(&raw), (&raw const raw).cast(), &[])
    }

    /// A scalar of the plain type that the kernel declares.
    pub fn scalar<T: bytemuck::NoUninit>(self, value: T) -> Self {
        self.plain(bytemuck::bytes_of(&value))
    }

    /// A scalar given by its bytes.
    pub fn plain(self, bytes: &[u8]) -> Self {
        self.set(bytes.len(), bytes.as_ptr().cast(), bytes)
    }

    /// Eight `OFFSET_T` as one argument; negative numbers wrap, missing ones are 0.
    pub fn eight_offsets(self, wide: bool, values: impl Iterator<Item = i64>) -> Self {
        let mut all = [0i64; 8];
        all.iter_mut().zip(values).for_each(|(to, value)| *to = value);
        if wide { self.scalar(all) } else { self.scalar(all.map(|value| value as i32)) }
    }

    /// An `OFFSET_T`: `ulong` in wide builds, else `uint`.
    pub fn offset(self, value: u64, wide: bool) -> Self {
        if wide { self.scalar(value) } else { self.scalar(value as u32) }
    }

    /// A `__local` pointer to `bytes` bytes.
    pub fn local(mut self, bytes: usize) -> Self {
        self.local_bytes = self.local_bytes.saturating_add(bytes);
        // Some drivers refuse an argument of 0 bytes.
        self.set(bytes.max(1), std::ptr::null(), &[])
    }

    /// Allows a second launch if memory is short. The kernel must be idempotent: the driver may report the shortage after it
    /// has run the kernel.
    pub(super) fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Sets the number of work-groups before those of this launch, along the first axis. Kernels get it as
    /// `get_global_offset(0)`, in work-items.
    pub fn after(mut self, groups: usize) -> Self {
        self.first_group = groups;
        self
    }

    /// Enqueues `groups` work-groups of `local` work-items each.
    pub fn run(self, groups: [usize; 3], local: [usize; 3]) -> Result<()> {
        let Self { device, name, built, prepared, limits, local_bytes, first_group, repeatable, .. } = self;
        cl::check(self.status, format_args!("setting argument {} of `{name}`", self.next.saturating_sub(1)))?;
        let items: usize = local.iter().product();
        // PoCL ends the process on an oversized launch, so such a launch must not reach the driver. Plans respect the
        // device's limits, so the error is a fault of the plan or the driver.
        if limits.work_group != 0 && items > limits.work_group {
            let limit = limits.work_group;
            let message = format!("`{name}` needs work-groups of {items}, the device allows {limit}");
            return Err(Error::new(ErrorKind::Driver, message));
        }
        let limit = device.local_limit();
        if local_bytes > limit {
            let message = format!("`{name}` needs {local_bytes} bytes of local memory, the device has {limit}");
            return Err(Error::new(ErrorKind::Driver, message));
        }
        if groups.contains(&0) {
            return Ok(());
        }
        let mut global = [0; 3];
        for axis in 0..3 {
            global[axis] = groups[axis].checked_mul(local[axis]).ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidInput,
                    format!("`{name}`: {} groups of {} overflow", groups[axis], local[axis]),
                )
            })?;
        }
        let first = [first_group * local[0], 0, 0];
        let mut slot = device.event_slot();
        let mut enqueue = || {
            // SAFETY: the kernels are the crate's own. Their callers pass buffers and lengths that were checked against each
            // other, and every argument was set in order. Local memory and work-group fit the device.
            match unsafe { cl::enqueue(device.queue(), &prepared.kernel, first, global, local, &mut slot) } {
                cl::SUCCESS => Ok(()),
                status => Err(cl::failure(status, format_args!("launching `{name}` over {global:?} by {local:?}"))),
            }
        };
        let enqueued = if repeatable {
            device.with_memory(enqueue)
        } else {
            // The launch is not repeated; the released scratch is available to the user's next call.
            enqueue().inspect_err(|error| device.give_up_scratch(error))
        };
        enqueued.inspect_err(|_| device.forget())?;
        built.put(name, prepared);
        device.record(name, slot)
    }
}
