//! Files that outlive the process: built programs and self-test verdicts.
//!
//! An entry is trusted only if its SHA-256 fits; anything else counts as absent and is written anew. Writers
//! rename a finished temporary file into place, so that two processes may share the folder.

use std::{env, fs, io::Write, path::PathBuf};

use sha2::{Digest, Sha256};

use super::folders;

const MAGIC: &[u8; 16] = b"oclprim cache 1\n";

/// The folder, unless `OCLPRIM_CACHE_DIR` is set empty, which turns the cache off.
fn folder() -> Option<PathBuf> {
    match env::var_os("OCLPRIM_CACHE_DIR") {
        Some(dir) if dir.is_empty() => None,
        Some(dir) => Some(dir.into()),
        None => folders::own(|user| user.cache_dir()),
    }
}

/// A file name for what `parts` identify together.
pub(crate) fn key(kind: &str, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let hex: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{kind}-{hex}")
}

/// The entry's payload, if it is there and whole.
pub(crate) fn load(key: &str) -> Option<Vec<u8>> {
    let bytes = fs::read(folder()?.join(key)).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?;
    let (digest, payload) = rest.split_at_checked(32)?;
    (Sha256::digest(payload).as_slice() == digest).then(|| payload.to_owned())
}

/// Writes an entry. A cache that cannot be written is no error: the next process builds again.
pub(crate) fn store(key: &str, payload: &[u8]) {
    let write = || -> Option<()> {
        let folder = folder()?;
        fs::create_dir_all(&folder).ok()?;
        let mut file = tempfile::NamedTempFile::new_in(&folder).ok()?;
        file.write_all(MAGIC).ok()?;
        file.write_all(&Sha256::digest(payload)).ok()?;
        file.write_all(payload).ok()?;
        file.persist(folder.join(key)).ok()?;
        Some(())
    };
    let _ = write();
}

/// Removes an entry that turned out to be useless, such as a binary that the driver refuses.
pub(crate) fn remove(key: &str) {
    if let Some(folder) = folder() {
        let _ = fs::remove_file(folder.join(key));
    }
}
