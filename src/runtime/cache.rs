//! The folder of built programs and self-test results, which outlives the process.
//!
//! A stored program runs with the user's rights. So on Unix the folder and each entry must belong to this process's user,
//! and no other user may have write permission. On Windows only the folder's permissions keep other users out; the
//! default folder belongs to the user alone.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::folders;
use crate::{Error, ErrorKind, Result};

/// Maximum bytes of all entries, unless `OCLPRIM_CACHE_BYTES` is set.
const TOTAL_BYTES: u64 = 256 << 20;
/// The kinds of entries. An entry's name begins with its kind.
pub(super) const KINDS: [&str; 2] = ["program", "selftest"];

/// The contents of the cache folder.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Contents {
    /// The folder.
    pub folder: PathBuf,
    /// The number of built programs.
    pub programs: usize,
    /// The number of self-test results.
    pub self_tests: usize,
    /// The size of all entries.
    pub bytes: u64,
    /// Maximum bytes of all entries.
    pub limit: u64,
}

/// The contents of the cache folder; `None` without a folder.
pub fn contents() -> Option<Contents> {
    let mut all = Contents { folder: folder(false)?, limit: total_bytes(), ..Contents::default() };
    for (name, _, len) in entries(&all.folder) {
        let of_kind = if name.starts_with(KINDS[0]) { &mut all.programs } else { &mut all.self_tests };
        *of_kind += 1;
        all.bytes += len;
    }
    Some(all)
}

/// Removes all entries, and returns their number.
///
/// # Errors
///
/// [`ErrorKind::Io`] if an entry cannot be removed.
pub fn clear() -> Result<usize> {
    let Some(folder) = folder(false) else { return Ok(0) };
    let mut removed = 0;
    for (_, path, _) in entries(&folder) {
        match fs::remove_file(&path) {
            Ok(()) => removed += 1,
            // Another process has already removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::new(ErrorKind::Io, format!("{}: {error}", path.display()))),
        }
    }
    Ok(removed)
}

/// Name, path and size of each entry.
fn entries(folder: &Path) -> impl Iterator<Item = (String, PathBuf, u64)> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    found.filter_map(|file| {
        let name = file.file_name().into_string().ok().filter(|name| is_entry(name))?;
        let data = file.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((name, file.path(), data.len()))
    })
}

/// The cache folder, if no other user can write to it; `create` makes a missing folder. `OCLPRIM_CACHE_DIR` names the
/// folder; an empty value disables the cache.
pub(super) fn folder(create: bool) -> Option<PathBuf> {
    let named = env::var_os("OCLPRIM_CACHE_DIR");
    let folder = match &named {
        Some(dir) if dir.is_empty() => return None,
        Some(dir) => dir.into(),
        None => folders::own(|user| user.cache_dir())?,
    };
    let found = match fs::metadata(&folder) {
        // The crate corrects the permissions of its default folder: a lax umask must not disable the cache for good. This
        // is safe, since each entry is checked, too.
        #[cfg(unix)]
        Ok(found) if named.is_none() && found.is_dir() && of_this_user(&found) && !of_this_user_alone(&found) => {
            fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).ok()?;
            fs::metadata(&folder).ok()?
        }
        Ok(found) => found,
        Err(_) if create => {
            let mut builder = fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.recursive(true).create(&folder).ok()?;
            fs::metadata(&folder).ok()?
        }
        Err(_) => return None,
    };
    (found.is_dir() && of_this_user_alone(&found)).then_some(folder)
}

/// Returns whether this process's user owns a file or a folder, and no other user has write permission.
#[cfg(unix)]
pub(super) fn of_this_user_alone(found: &fs::Metadata) -> bool {
    const OTHERS_WRITE: u32 = 0o022;
    of_this_user(found) && std::os::unix::fs::MetadataExt::mode(found) & OTHERS_WRITE == 0
}

#[cfg(unix)]
fn of_this_user(found: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(found) == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
pub(super) fn of_this_user_alone(_: &fs::Metadata) -> bool {
    true
}

/// Maximum bytes of all entries.
pub(super) fn total_bytes() -> u64 {
    let set = env::var("OCLPRIM_CACHE_BYTES").ok().and_then(|text| text.trim().parse().ok());
    set.unwrap_or(TOTAL_BYTES)
}

/// Returns whether `name` is the name of an entry. The crate removes only entries and its own temporary files.
pub(super) fn is_entry(name: &str) -> bool {
    let hex = KINDS.iter().find_map(|kind| name.strip_prefix(kind)?.strip_prefix('-'));
    hex.is_some_and(|hex| hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
