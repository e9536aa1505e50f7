//! Entries of the cache folder.
//!
//! An entry is used only if its SHA-256 matches. The digest covers the entry's key. A damaged or misnamed entry counts
//! as absent, and the crate writes it again. Writers rename a complete temporary file to the entry's name. A process
//! that finds the folder too large removes the least recently used entries. So processes may share the folder.
//!
//! The digest detects accidents. It is not a signature: this process would run a forged entry like any other.

use std::{
    fs,
    io::Write,
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use sha2::{Digest, Sha256};

use crate::{
    files,
    runtime::cache::{KINDS, folder, is_entry, of_this_user_alone, total_bytes},
};

const MAGIC: &[u8; 16] = b"oclprim cache 2\n";
const DIGEST_BYTES: usize = 32;
/// Bytes of an entry before its payload.
const HEADER_BYTES: usize = MAGIC.len() + DIGEST_BYTES;
/// A larger file is not an entry.
const ENTRY_BYTES: u64 = 64 << 20;
/// A process checks the folder's size at its first write, and after each `maximum / LOOK_SHARE` bytes.
const LOOK_SHARE: u64 = 16;
const TEMPORARY: &str = ".oclprim-";
/// A temporary file of this age is no longer in use.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The identity of an entry.
pub(crate) struct Key {
    /// The name of the entry's file.
    name: String,
    hash: [u8; DIGEST_BYTES],
}

impl Key {
    fn digest(&self, payload: &[u8]) -> [u8; DIGEST_BYTES] {
        Sha256::new().chain_update(MAGIC).chain_update(self.hash).chain_update(payload).finalize().into()
    }
}

/// The key for the combination of `parts`.
pub(crate) fn key(kind: &str, parts: &[&str]) -> Key {
    debug_assert!(KINDS.contains(&kind));
    let mut hash = Sha256::new();
    for part in [kind].iter().chain(parts) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let hash: [u8; DIGEST_BYTES] = hash.finalize().into();
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Key { name: format!("{kind}-{hex}"), hash }
}

/// The entry's payload, if the entry exists and is complete.
pub(crate) fn load(key: &Key) -> Option<Vec<u8>> {
    let path = folder(false)?.join(&key.name);
    let mut options = fs::File::options();
    options.read(true);
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        const GENERIC_READ: u32 = 0x8000_0000;
        const FILE_WRITE_ATTRIBUTES: u32 = 0x0100;
        options.access_mode(GENERIC_READ | FILE_WRITE_ATTRIBUTES);
    }
    let file = files::open(&path, &mut options, false).ok()?;
    if !of_this_user_alone(&file.metadata().ok()?) {
        return None;
    }
    let mut bytes = files::read(&file, ENTRY_BYTES).ok()?;
    let (digest, payload) = bytes.strip_prefix(MAGIC)?.split_at_checked(DIGEST_BYTES)?;
    if key.digest(payload).as_slice() != digest {
        return None;
    }
    // Marks the entry as used, since the least recently used ones are removed first. A failure has no effect.
    let _ = file.set_modified(SystemTime::now());
    Some(bytes.split_off(HEADER_BYTES))
}

/// Writes an entry. A failure is not an error: the next process builds the program again.
pub(crate) fn store(key: &Key, payload: &[u8]) {
    let (bytes, total) = ((HEADER_BYTES + payload.len()) as u64, total_bytes());
    if bytes > ENTRY_BYTES.min(total) {
        return;
    }
    let write = || -> Option<()> {
        let folder = folder(true)?;
        // The file has the mode 0600.
        let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&folder).ok()?;
        file.write_all(MAGIC).ok()?;
        file.write_all(&key.digest(payload)).ok()?;
        file.write_all(payload).ok()?;
        file.persist(folder.join(&key.name)).ok()?;
        if is_time_to_look(bytes, total) {
            keep_below(&folder, total);
        }
        Some(())
    };
    let _ = write();
}

/// Removes an entry that proved useless, such as a binary that the driver refuses.
pub(crate) fn remove(key: &Key) {
    if let Some(folder) = folder(false) {
        let _ = fs::remove_file(folder.join(&key.name));
    }
}

/// Returns whether to check the folder's size after an entry of `bytes` bytes. Between two checks, a process exceeds the
/// maximum by at most `total / LOOK_SHARE` bytes and one entry.
fn is_time_to_look(bytes: u64, total: u64) -> bool {
    static WRITTEN: Mutex<Option<u64>> = Mutex::new(None);
    let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    let look = written.is_none_or(|written| written + bytes > total / LOOK_SHARE);
    *written = Some(if look { 0 } else { written.unwrap_or(0) + bytes });
    look
}

/// Removes abandoned temporary files, and the least recently used entries if all entries have more than `total` bytes. Another
/// process may do the same at the same time.
fn keep_below(folder: &Path, total: u64) {
    let Ok(found) = fs::read_dir(folder) else { return };
    let (mut entries, now) = (Vec::new(), SystemTime::now());
    for file in found.flatten() {
        let name = file.file_name();
        let Some(name) = name.to_str() else { continue };
        // For a symbolic link this is the link's own metadata.
        let Ok(data) = file.metadata() else { continue };
        let Ok(modified) = data.modified() else { continue };
        let abandoned =
            name.starts_with(TEMPORARY) && now.duration_since(modified).is_ok_and(|unused| unused > ABANDONED);
        if data.is_file() && (abandoned || (is_entry(name) && data.len() > ENTRY_BYTES)) {
            let _ = fs::remove_file(file.path());
        } else if data.is_file() && is_entry(name) {
            // A time in the future does not keep an entry longer.
            entries.push((modified.min(now), data.len(), file.path()));
        }
    }
    let mut bytes: u64 = entries.iter().map(|(_, len, _)| len).sum();
    if bytes <= total {
        return;
    }
    // An eighth of the maximum stays free for the next entries.
    let wanted = total - total / 8;
    entries.sort();
    for (_, len, path) in entries {
        if bytes <= wanted {
            break;
        }
        if fs::remove_file(path).is_ok() {
            bytes -= len;
        }
    }
}
