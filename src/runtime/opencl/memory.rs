//! A device's memory: allocation, the pool of scratch, memory that stays between launches, and transfers.

use std::{
    error::Error as _,
    mem::MaybeUninit,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use ocl::ffi;

use super::{ClDevice, Mem, ProgramSpec, Queue, Released, Slot, cl, intel_cpu, lock};
use crate::{Error, ErrorKind, Result, memory};

/// Beyond this byte of a buffer, drivers' fills are unreliable. After a fill with 2^32 + 5 ones by NVIDIA's driver
/// (580.159), the sum of the buffer was 5. Fills in parts ended in CL_OUT_OF_RESOURCES, and a fill of 2^31 bytes did
/// not end.
const FILL_BYTES: usize = 1 << 30;
const FILL_WORK_GROUP: usize = 64;
/// Above this size a launch is faster than a fill by Intel's driver for CPUs, which writes one pattern after the other.
const SLOW_FILL_BYTES: usize = 1 << 20;
/// Up to this size, fills on a checker are launches, which the checker checks. Larger launches would take the
/// interpreter too long.
const CHECKED_FILL_BYTES: usize = 1 << 16;

pub(super) fn fill_spec() -> ProgramSpec {
    ProgramSpec::bare("fill.cl", kernel_text!("fill.cl"), "CL1.2").define("WG", FILL_WORK_GROUP)
}

/// Memory that a queue keeps for launches of one kind, and the number of its uses.
pub(super) struct Kept {
    mem: Mem,
    bytes: usize,
    uses: u32,
}

impl ClDevice {
    /// Checks that kernels can read and write `bytes` bytes of a user's buffer.
    pub(crate) fn check_user_buffer(&self, mem: &Mem, bytes: usize) -> Result<()> {
        const ONE_WAY: u64 = ffi::CL_MEM_WRITE_ONLY | ffi::CL_MEM_READ_ONLY;
        const ALIGNMENT: u64 = 16;
        let property = |name| cl::mem_number(mem, name);
        if property(ffi::CL_MEM_CONTEXT)? != Some(self.context().as_ptr() as u64) {
            return Err(Error::invalid(format!("the buffer belongs to another context than {}", self.info())));
        }
        if property(ffi::CL_MEM_TYPE)? != Some(ffi::CL_MEM_OBJECT_BUFFER.into()) {
            return Err(Error::invalid("the memory object is not a buffer"));
        }
        let size = property(ffi::CL_MEM_SIZE)?.unwrap_or(0);
        if (bytes as u64) > size {
            return Err(Error::invalid(format!("the buffer has {size} bytes, {bytes} are needed")));
        }
        if property(ffi::CL_MEM_FLAGS)?.is_some_and(|flags| flags & ONE_WAY != 0) {
            return Err(Error::invalid("the buffer was not created with CL_MEM_READ_WRITE"));
        }
        for (name, what) in [(ffi::CL_MEM_HOST_PTR, "host pointer"), (ffi::CL_MEM_OFFSET, "origin in its parent")] {
            let at = property(name)?.unwrap_or(0);
            if !at.is_multiple_of(ALIGNMENT) {
                return Err(Error::unsupported(format!(
                    "the buffer's {what} is {at:#x}, not a multiple of {ALIGNMENT}"
                )));
            }
        }
        Ok(())
    }

    /// Keeps memory as long as the device is open, so that no other memory gets its address.
    pub(super) fn keep(&self, mem: &Mem) {
        self.shared.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(mem.clone());
    }

    /// Runs an idempotent call, and repeats it once if memory is short. Before the second call, all queues release the scratch
    /// that they keep for later calls. Some drivers allocate when a buffer is first used, so any command may fail.
    ///
    /// A driver may report the shortage after it has run the command. So the call must be idempotent: it allocates, or it
    /// writes values that do not depend on its own output. Kernels that count, or that use an atomic tile counter, are not
    /// idempotent.
    ///
    /// A call that returns an error with a source is not repeated. Such an error comes from a transfer, and its source
    /// is an error of the queue, perhaps of an earlier command.
    pub(super) fn with_memory<R>(&self, mut call: impl FnMut() -> Result<R>) -> Result<R> {
        match call().inspect_err(|error| self.give_up_scratch(error)) {
            Err(error) if error.kind() == ErrorKind::OutOfMemory && error.source().is_none() => {
                // If an earlier command failed too, this returns that error.
                cl::finish(self.queue()).inspect_err(|_| self.forget())?;
                call()
            }
            result => result,
        }
    }

    /// If the error says that memory is short, releases the memory that queues keep for later calls, and the pinned
    /// memory of transfers. Reserved scratch stays.
    pub(super) fn give_up_scratch(&self, error: &Error) {
        if error.kind() == ErrorKind::OutOfMemory {
            lock(&self.shared.pools).iter().filter_map(Weak::upgrade).for_each(|pool| lock(&pool).clear());
            self.shared.staging.clear();
        }
    }

    /// Allocates `bytes` bytes, but at least one.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Mem> {
        self.allocate_with(bytes.max(1), None)
    }

    /// Memory with a copy of `data`, of at least one byte, for commands that are enqueued later. Unlike a write it uses no
    /// queue, and so waits for no command.
    pub(crate) fn holding(&self, data: &[u8]) -> Result<Mem> {
        self.allocate_with(data.len(), Some(data))
    }

    fn allocate_with(&self, bytes: usize, data: Option<&[u8]>) -> Result<Mem> {
        let (limit, global) = (self.info().max_allocation_bytes, self.info().global_bytes);
        let short = || {
            let name = &self.info().name;
            let message =
                format!("allocating {bytes} bytes: {name} allows {limit} in one allocation, of {global} in all");
            Error::new(ErrorKind::OutOfMemory, message)
        };
        // Some drivers over-commit and some abort, so the crate checks the limits; 0 means unknown.
        if bytes > isize::MAX as usize || (limit != 0 && bytes as u64 > limit) {
            return Err(short());
        }
        lock(&self.queue.pool).released.make_room(bytes);
        let result = self.with_memory(|| cl::create_buffer(self.context(), bytes, data));
        let mem = result.map_err(|error| match (error.kind(), error.status()) {
            (ErrorKind::OutOfMemory, Some(status)) => short().with_status(status).with_source(error),
            _ => error,
        })?;
        self.queue.allocations.fetch_add(1, Ordering::Relaxed);
        if self.checker() {
            self.keep(&mem);
        }
        Ok(mem)
    }

    /// A scratch buffer of at least `bytes` bytes, returned to the queue's pool when dropped.
    ///
    /// Reuse needs no wait: commands run in the order in which they are enqueued, so those of the next user run later.
    pub(crate) fn pooled(&self, bytes: usize) -> Result<Pooled> {
        let size = self.scratch_size(bytes);
        let kept = if self.checker() { None } else { lock(&self.queue.pool).take(size) };
        let slot = match kept {
            Some(found) => found,
            None => {
                let mem = self.allocate(size)?;
                lock(&self.queue.pool).add(size, mem)
            }
        };
        Ok(Pooled { queue: self.queue.clone(), slot: Some(slot), keep: !self.checker() })
    }

    /// Memory for a result of `bytes` bytes, which the queue keeps for later results when it is dropped.
    ///
    /// As with scratch, reuse needs no wait: all commands that use the result were enqueued before the drop. A call on
    /// another queue that uses the result ends only when its commands are done.
    pub(crate) fn for_result(&self, bytes: usize) -> Result<ResultMemory> {
        let keep = bytes >= Released::<Mem>::LEAST && !self.checker();
        let found = if keep { lock(&self.queue.pool).released.take(bytes) } else { None };
        let (size, mem) = match found {
            Some(found) => {
                self.queue.allocations.fetch_add(1, Ordering::Relaxed);
                found
            }
            None => (bytes, self.allocate(bytes)?),
        };
        Ok(ResultMemory { queue: self.queue.clone(), size, mem, keep: AtomicBool::new(keep) })
    }

    /// Adds buffers of these sizes to the queue's pool, except those that its reserved buffers already cover.
    pub(crate) fn reserve(&self, sizes: &[usize]) -> Result<()> {
        let sizes: Vec<usize> =
            sizes.iter().filter(|&&bytes| bytes > 0).map(|&bytes| self.scratch_size(bytes)).collect();
        let missing = lock(&self.queue.pool).missing(Vec::clone(&sizes));
        // After an error none is reserved.
        let mut made = missing.into_iter().map(|size| Ok((size, self.allocate(size)?))).collect::<Result<Vec<_>>>()?;
        // Each call on a checker gets new memory.
        if !self.checker() {
            let mut pool = lock(&self.queue.pool);
            // Another thread may have reserved some of these sizes.
            for size in pool.missing(sizes) {
                if let Some(i) = made.iter().position(|made| made.0 == size) {
                    let (size, mem) = made.swap_remove(i);
                    pool.reserve(size, mem);
                }
            }
        }
        Ok(())
    }

    /// The sizes of scratch buffers that serve the calls so far, largest first.
    pub(crate) fn scratch_sizes(&self) -> Vec<usize> {
        lock(&self.queue.pool).needed().to_vec()
    }

    /// The bytes that are allocated for `bytes` bytes of scratch. On a checker these are exactly `bytes`, so that it
    /// finds accesses beyond the end.
    fn scratch_size(&self, bytes: usize) -> usize {
        if self.checker() {
            return bytes.max(1);
        }
        // A size that cannot be rounded up is refused as too large.
        let step = self.shared.base_align.max(256).next_power_of_two();
        bytes.max(1).checked_next_multiple_of(step).unwrap_or(bytes)
    }

    /// Memory that the queue keeps for launches of one kind, and the number of this use, from 1 on.
    ///
    /// `make` returns memory of `bytes` bytes for the first use. It is called again if the memory has fewer bytes, after `most`
    /// uses, and after a failed launch, which can leave any value there. `None` on an out-of-order queue.
    pub(crate) fn kept(
        &self,
        kind: &'static str,
        bytes: usize,
        most: u32,
        make: impl FnOnce() -> Result<Mem>,
    ) -> Result<Option<(Mem, u32)>> {
        if self.queue.unordered {
            return Ok(None);
        }
        if let Some(kept) = lock(&self.queue.kept).get_mut(kind)
            && kept.bytes >= bytes
            && kept.uses < most
        {
            kept.uses += 1;
            return Ok(Some((kept.mem.clone(), kept.uses)));
        }
        // The lock is free here, since `forget` takes it after a failure. If two threads get here, the later one replaces the
        // memory.
        let (mem, uses) = (make()?, 1);
        lock(&self.queue.kept).insert(kind, Kept { mem: mem.clone(), bytes, uses });
        Ok(Some((mem, uses)))
    }

    pub(crate) fn read(&self, mem: &Mem, offset: usize, out: &mut [u8]) -> Result<()> {
        // SAFETY: every `u8` is a `MaybeUninit<u8>`, and a read writes nothing but bytes.
        let out = unsafe { &mut *(std::ptr::from_mut(out) as *mut [MaybeUninit<u8>]) };
        self.read_to(mem, offset, out, false)
    }

    /// Reads into new memory. If it returns no error, all of `out` is initialised.
    pub(crate) fn read_new(&self, mem: &Mem, offset: usize, out: &mut [MaybeUninit<u8>]) -> Result<()> {
        self.read_to(mem, offset, out, true)
    }

    fn read_to(&self, mem: &Mem, offset: usize, out: &mut [MaybeUninit<u8>], new: bool) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        self.with_memory(|| self.receive(mem, offset, out, new)).inspect_err(|_| self.forget())?;
        self.overdue()
    }

    pub(crate) fn write(&self, mem: &Mem, offset: usize, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let whole = if self.checker() { cl::mem_number(mem, ffi::CL_MEM_SIZE)?.unwrap_or(0) as usize } else { 0 };
        if data.len() < whole {
            let mut all = memory::zeroed(whole)?;
            self.read(mem, 0, &mut all)?;
            all[offset..offset + data.len()].copy_from_slice(data);
            return self.write(mem, 0, &all);
        }
        self.with_memory(|| self.send(mem, offset, data)).inspect_err(|_| self.forget())?;
        // Intel's runtime returns from a write of few bytes before the buffer has them. On an out-of-order queue, a
        // kernel could overtake the write.
        self.settle()?;
        self.overdue()
    }

    /// Enqueues a fill; the pattern has 1, 2, 4, 8 or 16 bytes.
    pub fn fill(&self, mem: &Mem, offset: usize, bytes: usize, pattern: &[u8]) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let caps = self.probed()?;
        if caps.checker && bytes > CHECKED_FILL_BYTES {
            let mut all = memory::with_capacity(bytes)?;
            all.extend(pattern.iter().cycle().take(bytes));
            return self.write(mem, offset, &all);
        }
        let slow = bytes > SLOW_FILL_BYTES && intel_cpu(self.info());
        // A handle that uses 64-bit offsets at every size (`wide(0)`) runs the kernel for large fills at every size,
        // too.
        if caps.checker || slow || offset + bytes > FILL_BYTES || self.wide(0) {
            return self.fill_large(mem, offset, bytes, pattern);
        }
        let mut slot = self.event_slot();
        self.with_memory(|| cl::fill(self.queue(), mem, offset, bytes, pattern, &mut slot))?;
        self.record("clEnqueueFillBuffer", slot)
    }

    fn fill_large(&self, mem: &Mem, offset: usize, bytes: usize, pattern: &[u8]) -> Result<()> {
        let mut word = [0u8; 16];
        word.chunks_mut(pattern.len()).for_each(|part| part.copy_from_slice(pattern));
        let groups = bytes.div_ceil(16 * FILL_WORK_GROUP).min(32 * self.info().compute_units.max(1) as usize);
        let launch =
            self.launch(&fill_spec(), "fill")?.mem(mem).scalar(offset as u64).scalar(bytes as u64).scalar(word);
        launch.repeatable().run([groups, 1, 1], [FILL_WORK_GROUP, 1, 1])
    }

    /// Enqueues a copy by the driver.
    pub fn copy(&self, from: (&Mem, usize), to: (&Mem, usize), bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if self.checker() {
            let mut data = memory::zeroed(bytes)?;
            self.read(from.0, from.1, &mut data)?;
            return self.write(to.0, to.1, &data);
        }
        let mut slot = self.event_slot();
        self.with_memory(|| cl::copy(self.queue(), from, to, bytes, &mut slot))?;
        self.record("clEnqueueCopyBuffer", slot)
    }

    /// Maps a range after all earlier commands. The caller checks for [`overdue`](Self::overdue) errors, and unmaps the range.
    pub(crate) fn map(&self, mem: &Mem, offset: usize, bytes: usize, write: bool) -> Result<*mut u8> {
        cl::map(self.queue(), mem, offset, bytes, write).inspect_err(|_| self.forget()).map(|address| address.cast())
    }

    /// Enqueues an unmap. An error means that the range is still mapped.
    pub(crate) fn unmap(&self, mem: &Mem, address: *mut u8) -> Result<()> {
        cl::unmap(self.queue(), mem, address.cast())?;
        if let Err(error) = self.settle() {
            self.owe(error);
        }
        Ok(())
    }
}

/// The location of memory: the handle of the memory object that contains it, and the first byte in that object. For a
/// sub-buffer, this object is the parent.
pub(crate) fn root(mem: &Mem) -> Result<(usize, usize)> {
    let number = |name| Ok::<_, Error>(cl::mem_number(mem, name)?.unwrap_or(0) as usize);
    match number(ffi::CL_MEM_ASSOCIATED_MEMOBJECT)? {
        0 => Ok((mem.as_ptr().addr(), 0)),
        parent => Ok((parent, number(ffi::CL_MEM_OFFSET)?)),
    }
}

/// A buffer from a queue's pool.
pub(crate) struct Pooled {
    queue: Arc<Queue>,
    /// Empty only while it is dropped.
    slot: Option<Slot<Mem>>,
    keep: bool,
}

impl Pooled {
    fn slot(&self) -> &Slot<Mem> {
        self.slot.as_ref().expect("taken only by drop")
    }

    pub(crate) fn mem(&self) -> &Mem {
        &self.slot().mem
    }

    /// Returns whether the buffer serves as `bytes` bytes of scratch for commands on the device's queue.
    pub(crate) fn serves(&self, device: &ClDevice, bytes: usize) -> bool {
        Arc::ptr_eq(&self.queue, &device.queue) && self.slot().size >= bytes
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            lock(&self.queue.pool).put(slot, self.keep);
        }
    }
}

/// Memory of a result, from [`ClDevice::for_result`].
pub(crate) struct ResultMemory {
    queue: Arc<Queue>,
    size: usize,
    mem: Mem,
    keep: AtomicBool,
}

impl ResultMemory {
    pub(crate) fn mem(&self) -> &Mem {
        &self.mem
    }

    /// Marks memory that others may use after the drop: the user has its handle, or it was mapped. The queue does not
    /// keep it.
    pub(crate) fn never_keep(&self) {
        self.keep.store(false, Ordering::Relaxed);
    }
}

impl Drop for ResultMemory {
    fn drop(&mut self) {
        if *self.keep.get_mut() {
            lock(&self.queue.pool).released.put(self.size, self.mem.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, runtime::Backend};

    #[test]
    fn the_memory_of_a_dropped_result_serves_the_next_one_unless_others_use_it() {
        const BYTES: usize = 1 << 20;
        for index in 0..Device::list().len() {
            let device = Device::at(index).unwrap();
            let Backend::OpenCl(cl) = device.backend() else { continue };
            let kept = || lock(&cl.queue.pool).released.take(BYTES).map(|(_, mem)| mem.as_ptr());
            let keeps = !cl.capabilities().unwrap().checker;
            let first = device.filled(BYTES, 7u8).unwrap();
            let address = first.mem().unwrap().as_ptr();
            drop(first);
            let second = device.zeroed::<u8>(BYTES).unwrap();
            assert_eq!(second.mem().unwrap().as_ptr() == address, keeps, "{}", device.info());
            assert!(second.to_vec().unwrap().iter().all(|&x| x == 0), "{}", device.info());
            drop(second);
            assert_eq!(kept(), keeps.then_some(address), "{}", device.info());
            let mapped = device.filled(BYTES, 7u8).unwrap();
            drop(mapped.map_memory().unwrap());
            drop(mapped);
            let given = device.filled(BYTES, 7u8).unwrap();
            given.never_keep();
            drop(given);
            assert_eq!(kept(), None, "{}", device.info());
            // A larger result frees the memory, and so does a shortage.
            for free in [&|| drop(cl.for_result(4 * BYTES).unwrap()), &|| {
                cl.give_up_scratch(&Error::new(ErrorKind::OutOfMemory, "no memory"));
            }] as [&dyn Fn(); 2]
            {
                drop(device.filled(BYTES, 7u8).unwrap());
                free();
                assert_eq!(kept(), None, "{}", device.info());
            }
        }
    }
}
