//! Types of OpenCL devices for a build without OpenCL. They have no values, so no method here is ever called.

use std::{any::Any, marker::PhantomData, mem::MaybeUninit, sync::Arc};

use super::{
    Capabilities, DeviceInfo, ProgramSpec, Timing,
    info::{Recorded, Transfers},
};
use crate::{Error, Result};

#[derive(Clone, Copy)]
enum Never {}

/// A device that does not exist.
#[derive(Clone)]
pub struct ClDevice(Never);

/// A buffer of no device.
#[derive(Clone)]
pub struct ClMem(Never);

/// Scratch of no device.
pub struct Pooled(Never);

/// The memory of a result of no device.
pub struct ResultMemory(Never);

/// A slice that no device reads.
pub struct Borrowed(Never);

/// Pinned memory of no device.
pub struct Pinned(Never);

/// A transfer of no device.
pub struct Transfer(Never);

/// A launch on no device.
pub struct Launch<'d>(Never, PhantomData<&'d ClDevice>);

/// An entry of the list of devices, which is empty.
pub(crate) struct Found {
    pub(crate) info: DeviceInfo,
    pub(crate) own_memory: bool,
    never: Never,
}

pub(crate) fn found() -> &'static [Found] {
    &[]
}

/// The reason why there is no device.
pub(crate) fn troubles() -> &'static [String] {
    static REASON: std::sync::LazyLock<[String; 1]> =
        std::sync::LazyLock::new(|| ["this build lacks the feature `opencl`".to_owned()]);
    &*REASON
}

#[doc(hidden)]
pub fn programs(_: &Capabilities) -> Vec<ProgramSpec> {
    Vec::new()
}

/// Methods with the names, receivers, arguments and results of those in `opencl/`.
macro_rules! never {
    ($receiver:ty: $($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            #[doc(hidden)]
            #[allow(unused_variables, reason = "no call can pass an argument")]
            pub fn $name(self: $receiver, $($argument: $type),*) -> $result {
                match self.0 {}
            }
        )*
    };
}

impl Found {
    pub(crate) fn open(&self) -> Result<ClDevice> {
        match self.never {}
    }
}

impl ClDevice {
    never! {
        &Self:
        info() -> &DeviceInfo;
        same_queue(other: &Self) -> bool;
        same_context(other: &Self) -> bool;
        capabilities() -> Result<Arc<Capabilities>>;
        probed() -> Result<&Arc<Capabilities>>;
        wide(n: usize) -> bool;
        assuming(caps: Capabilities, wide_offsets: bool, carried: impl Any + Send + Sync) -> Self;
        choose_transfers(choose: impl Fn(usize) -> Transfers + Send + Sync + 'static) -> ();
        profiled() -> Result<Self>;
        with_queue(profiled: bool) -> Result<Self>;
        build_ahead(spec: &ProgramSpec, kernels: &[&'static str]) -> Result<()>;
        launch(spec: &ProgramSpec, name: &'static str) -> Result<Launch<'_>>;
        record_only(what: Recorded) -> ();
        commands() -> usize;
        take_timings() -> Result<Vec<Timing>>;
        allocate(bytes: usize) -> Result<ClMem>;
        holding(data: &[u8]) -> Result<ClMem>;
        for_result(bytes: usize) -> Result<ResultMemory>;
        pooled(bytes: usize) -> Result<Pooled>;
        reserve(sizes: &[usize]) -> Result<()>;
        scratch_sizes() -> Vec<usize>;
        allocations() -> usize;
        kept(kind: &'static str, bytes: usize, most: u32, make: impl FnOnce() -> Result<ClMem>) -> Result<Option<(ClMem, u32)>>;
        read(mem: &ClMem, offset: usize, out: &mut [u8]) -> Result<()>;
        read_new(mem: &ClMem, offset: usize, out: &mut [MaybeUninit<u8>]) -> Result<()>;
        write(mem: &ClMem, offset: usize, data: &[u8]) -> Result<()>;
        has_parts(data: &[u8]) -> bool;
        write_in_parts(mem: &ClMem, data: &[u8], unit: usize, launch: &mut dyn FnMut(std::ops::Range<usize>) -> Result<()>) -> Result<()>;
        fill(mem: &ClMem, offset: usize, bytes: usize, pattern: &[u8]) -> Result<()>;
        copy(from: (&ClMem, usize), to: (&ClMem, usize), bytes: usize) -> Result<()>;
        map(mem: &ClMem, offset: usize, bytes: usize, write: bool) -> Result<*mut u8>;
        unmap(mem: &ClMem, address: *mut u8) -> Result<()>;
        transfer() -> Transfer;
        pin(bytes: usize) -> Result<Option<Pinned>>;
        flush() -> Result<()>;
        finish() -> Result<()>;
        owe(error: Error) -> ();
        overdue() -> Result<()>;
    }
}

impl ClDevice {
    pub(crate) fn carried<T: Any + Default + Send + Sync>(&self) -> &T {
        match self.0 {}
    }
}

impl Pinned {
    never! { &Self: address() -> std::ptr::NonNull<u8>; }
}

impl Transfer {
    never! { &Self: is_done() -> Result<bool>; overdue() -> Result<()>; owe(error: Error) -> (); }
    never! { &mut Self: wait() -> (Result<()>, bool); }
}

impl ResultMemory {
    never! { &Self: mem() -> &ClMem; never_keep() -> (); }
}

impl Borrowed {
    never! { &Self: mem() -> &ClMem; }
}

#[allow(unused_variables, clippy::missing_safety_doc, reason = "no call can pass an argument")]
impl ClDevice {
    pub(crate) unsafe fn borrow(&self, data: &[u8], size: usize) -> Option<(Borrowed, usize)> {
        match self.0 {}
    }
}

/// Functions that are `unsafe` in `opencl/`.
#[allow(unused_variables, clippy::missing_safety_doc, reason = "no call can pass an argument")]
impl Transfer {
    pub(crate) unsafe fn upload(&mut self, mem: &ClMem, from: *const u8, bytes: usize) -> Result<()> {
        match self.0 {}
    }

    pub(crate) unsafe fn download(&mut self, mem: &ClMem, offset: usize, to: *mut u8, bytes: usize) -> Result<()> {
        match self.0 {}
    }
}

impl ClMem {
    never! { &Self: as_ptr() -> *mut std::ffi::c_void; }
}

impl Pooled {
    never! {
        &Self:
        mem() -> &ClMem;
        serves(device: &ClDevice, bytes: usize) -> bool;
    }
}

impl<'d> Launch<'d> {
    never! {
        Self:
        mem(mem: &ClMem) -> Self;
        scalar(value: impl bytemuck::NoUninit) -> Self;
        plain(bytes: &[u8]) -> Self;
        eight_offsets(wide: bool, values: impl Iterator<Item = i64>) -> Self;
        offset(value: u64, wide: bool) -> Self;
        local(bytes: usize) -> Self;
        after(groups: usize) -> Self;
        run(groups: [usize; 3], local: [usize; 3]) -> Result<()>;
    }
}
