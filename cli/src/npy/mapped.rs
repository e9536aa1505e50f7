//! Input files in memory: mapped, so that their bytes are read where the page cache has them.
//!
//! Another program can cut a file short while it is mapped. A page beyond the new end raises a signal, which ends this program
//! with an error. The rest of the last page reads as zeros, so [`still_whole`] compares the lengths before a result is written.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use memmap2::Mmap;

/// A mapped file: its path, itself, and the bytes that it had.
type Input = (PathBuf, File, u64);

static INPUTS: Mutex<Vec<Input>> = Mutex::new(Vec::new());

/// Maps a plain file of `len` bytes.
pub(crate) fn map(path: &Path, file: &File, len: u64) -> io::Result<Mmap> {
    #[cfg(unix)]
    cut_files_are_errors();
    let kept = file.try_clone()?;
    // SAFETY: the mapping is read alone. If another program changes the file meanwhile, bytes of either state are read, as by
    // `read`, and every pattern of bits is an element. If it cuts the file short, see above.
    let map = unsafe { Mmap::map(file)? };
    INPUTS.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), kept, len));
    Ok(map)
}

/// Fails with the path of a mapped file that is shorter than it was.
pub(crate) fn still_whole() -> Result<(), (PathBuf, String)> {
    for (path, file, len) in &*INPUTS.lock().unwrap_or_else(PoisonError::into_inner) {
        let now = file.metadata().map_err(|error| (path.clone(), error.to_string()))?.len();
        if now < *len {
            return Err((path.clone(), format!("cut short while it was read, from {len} bytes to {now}")));
        }
    }
    Ok(())
}

/// Makes the signal of a page beyond a file's end an error in one line.
#[cfg(unix)]
fn cut_files_are_errors() {
    use std::sync::Once;

    static ONCE: Once = Once::new();
    const MESSAGE: &[u8] = b"error: an input file was cut short while it was read\n";
    ONCE.call_once(|| {
        let end = || {
            // With no standard error left there is nobody to tell.
            let _ = rustix::io::write(rustix::stdio::stderr(), MESSAGE);
            signal_hook::low_level::exit(2);
        };
        // SAFETY: the handler makes two system calls, which a handler may make, and does not return.
        // Where it cannot be set, the signal ends the process by itself.
        let _ = unsafe { signal_hook::low_level::register(signal_hook::consts::SIGBUS, end) };
    });
}
