//! Mapped input files: elements are read from the page cache, without a copy.
//!
//! Another program can cut a file short while it is mapped. A page beyond the new end raises a signal, which ends this
//! program with an error. The rest of the last page reads as zeros, or as other bytes if the file grows again. So
//! [`still_whole`] compares length and time of modification before a result is written. It misses changes that leave
//! the time as it is. Examples: a second write in the same tick of the file system's clock, and a store through a
//! mapping whose page was already dirty.

#[cfg(unix)]
use std::sync::{
    Once,
    atomic::{AtomicBool, Ordering},
};
use std::{
    fs::{File, Metadata},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use memmap2::{Mmap, MmapOptions};

/// A mapped file, and its state before it was mapped.
struct Input {
    path: PathBuf,
    file: File,
    len: u64,
    modified: SystemTime,
}

static INPUTS: Mutex<Vec<Input>> = Mutex::new(Vec::new());

/// Maps a regular file. `metadata` is its state before, which [`still_whole`] compares.
pub(crate) fn map(path: &Path, file: &File, metadata: &Metadata) -> io::Result<Mmap> {
    #[cfg(unix)]
    cut_files_are_errors();
    let (kept, len, modified) = (file.try_clone()?, metadata.len(), metadata.modified()?);
    // SAFETY: the mapping is only read. If another program changes the file meanwhile, reads return old or new bytes,
    // like `read`, and every bit pattern is an element. The CPU backend checks each index that it computes, so a
    // changed file causes no access out of bounds, at worst a panic. `DeviceChoice::open_for_files` keeps kernels from
    // reading the mapping. The comment of this module covers files that become shorter.
    let map = unsafe { MmapOptions::new().len(len as usize).map(file)? };
    let input = Input { path: path.to_owned(), file: kept, len, modified };
    INPUTS.lock().unwrap_or_else(PoisonError::into_inner).push(input);
    Ok(map)
}

/// Fails with the path of a mapped file that has changed.
pub(crate) fn still_whole() -> Result<(), (PathBuf, String)> {
    for Input { path, file, len, modified } in &*INPUTS.lock().unwrap_or_else(PoisonError::into_inner) {
        let failed = |error: io::Error| (path.clone(), error.to_string());
        let metadata = file.metadata().map_err(failed)?;
        if metadata.len() < *len {
            let now = metadata.len();
            return Err((path.clone(), format!("cut short while it was read, from {len} bytes to {now}")));
        }
        if metadata.modified().map_err(failed)? != *modified {
            return Err((path.clone(), "changed while it was read".into()));
        }
    }
    Ok(())
}

/// Turns the signal of a page beyond a file's end into an error of one line.
///
/// The standard library's own handler restores the default action at the first fault. Then a fault of a second thread would
/// end the process by a signal before the error is written. So this handler replaces it.
#[cfg(unix)]
fn cut_files_are_errors() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let handler = report_cut_file as extern "C" fn(libc::c_int);
        // SAFETY: the handler makes only system calls that are safe in a signal handler, and does not return.
        // If the handler cannot be set, the signal ends the process by itself.
        unsafe { libc::signal(libc::SIGBUS, handler as libc::sighandler_t) };
    });
}

/// Only the first thread writes the error. Others wait until it has ended the process.
#[cfg(unix)]
extern "C" fn report_cut_file(_signal: libc::c_int) {
    static FIRST: AtomicBool = AtomicBool::new(true);
    const MESSAGE: &[u8] = b"error: a read of memory failed, most likely because an input file was cut short\n";
    if FIRST.swap(false, Ordering::Relaxed) {
        // If standard error is closed, the message is lost.
        let _ = rustix::io::write(rustix::stdio::stderr(), MESSAGE);
        signal_hook::low_level::exit(2);
    }
    loop {
        // SAFETY: it waits for a signal, and is safe in a signal handler.
        unsafe { libc::pause() };
    }
}
