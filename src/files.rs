//! File access. Opening a file never hangs or fills the memory; writing replaces a file completely or not at all.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// Bytes of one write. On a virtual machine, one write of 256 MiB often takes several times as long as 256 such writes.
const PIECE: usize = 1 << 20;
/// Start and end of the name of a temporary file.
const PREFIX: &str = ".oclprim-";
const SUFFIX: &str = ".tmp";
/// Largest number of symbolic links that are followed.
const MOST_LINKS: usize = 40;

/// New contents of a file. They go to a temporary file in the same folder, which takes the file's name when it is complete.
///
/// Until then the old file is unchanged, and a dropped draft leaves no file. On Linux, most file systems support files
/// without a name. There a killed process leaves a file only if it is killed after it has named the complete file and
/// before it has renamed it. Symbolic links are followed, and the old file's owner and permissions are kept. A target
/// that is not a regular file, such as a pipe, `/dev/null` or `/dev/stdout`, is written in place.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Beside { file: Temporary, replaces: bool },
    Here(File),
}

/// A temporary file.
#[derive(Debug)]
enum Temporary {
    Named(NamedTempFile),
    /// A file that is in no folder yet.
    #[cfg(target_os = "linux")]
    Nameless(File),
}

impl Temporary {
    fn file(&self) -> &File {
        match self {
            Self::Named(file) => file.as_file(),
            #[cfg(target_os = "linux")]
            Self::Nameless(file) => file,
        }
    }

    /// Gives the file this name; replaces an old file.
    fn rename(self, target: &Path) -> io::Result<()> {
        let file = match self {
            Self::Named(file) => file,
            #[cfg(target_os = "linux")]
            Self::Nameless(file) => named(&file, folder(target))?,
        };
        Ok(file.persist(target).map(drop)?)
    }
}

impl Draft {
    /// An empty draft of the file at `path`, which need not exist.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written, or if its folder accepts no new file.
    pub fn new(path: &Path) -> io::Result<Self> {
        let (target, in_place) = target(path)?;
        if is_device(&target) {
            return Ok(Self { place: Place::Here(File::options().write(true).open(path)?), path: target });
        }
        let old = match fs::metadata(&target) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if in_place || old.as_ref().is_some_and(|old| !old.is_file()) {
            // A link in `/proc`, such as `/dev/stdout`, may name a regular file to which a shell redirects: append to
            // it.
            let append = old.is_some_and(|old| old.is_file());
            let file = File::options().write(true).append(append).open(path)?;
            return Ok(Self { path: target, place: Place::Here(file) });
        }
        if old.is_some() {
            // A file without write permission is not replaced.
            File::options().write(true).open(&target)?;
        }
        let file = beside(&target)?;
        if let Some(old) = &old {
            keep(file.file(), old)?;
        }
        Ok(Self { path: target, place: Place::Beside { file, replaces: old.is_some() } })
    }

    /// Allocates room for contents of `bytes` bytes, if the file system can. So a full disk is an error before the first write,
    /// and the writes take less time. The contents must then have this length.
    ///
    /// # Errors
    ///
    /// Fails if the disk, a quota or the limit of a file's size has no room.
    pub fn reserve(&self, bytes: u64) -> io::Result<()> {
        match &self.place {
            Place::Beside { file, .. } if bytes > PIECE as u64 => reserve(file.file(), bytes),
            Place::Beside { .. } | Place::Here(_) => Ok(()),
        }
    }

    /// If the contents replace an old file, or if the file system is remote, waits until they are on the disk. An old
    /// file then survives a crash, and a remote file system reports that it is full. Otherwise returns at once, since
    /// the wait can take long.
    ///
    /// # Errors
    ///
    /// Fails if the disk does not accept the contents.
    pub fn sync(&self) -> io::Result<()> {
        match &self.place {
            Place::Beside { file, replaces } if *replaces || is_remote(file.file()) => file.file().sync_all(),
            Place::Beside { .. } | Place::Here(_) => Ok(()),
        }
    }

    /// Replaces the old file by the new contents.
    ///
    /// # Errors
    ///
    /// Fails if the old file cannot be replaced.
    pub fn replace(self) -> io::Result<()> {
        if let Place::Beside { file, .. } = self.place {
            file.rename(&self.path)?;
        }
        Ok(())
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PIECE)];
        match &mut self.place {
            Place::Beside { file, .. } => file.file().write(bytes),
            Place::Here(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.place {
            Place::Beside { file, .. } => file.file().flush(),
            Place::Here(file) => file.flush(),
        }
    }
}

/// Returns an error unless the pipe can be written. Does not open the pipe, because the later close would end the
/// reader's input.
pub fn may_write_pipe(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Returns whether a path names a pipe. The reader of a pipe sees one document for each time that a writer opens and
/// closes it.
pub fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// Returns whether two paths name the same file, which need not exist. Devices such as `/dev/null` store no data and do not
/// count.
///
/// # Errors
///
/// Fails for a path with more symbolic links than the limit, such as a circle of links.
pub fn same(a: &Path, b: &Path) -> io::Result<bool> {
    if is_device(a) || is_device(b) {
        return Ok(false);
    }
    if let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b))
        && let Some(same) = one_inode(&a, &b)
    {
        return Ok(same);
    }
    Ok(real(a)? == real(b)?)
}

/// The folder of a file.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The target of `path` after all symbolic links; the target need not exist.
pub(crate) fn followed(path: &Path) -> io::Result<PathBuf> {
    Ok(target(path)?.0)
}

/// [`followed`], and whether one of the links is in `/proc`, where links name open files.
fn target(path: &Path) -> io::Result<(PathBuf, bool)> {
    let (mut path, mut in_proc) = (path.to_owned(), false);
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(to) => {
                in_proc |= fs::canonicalize(folder(&path)).is_ok_and(|folder| folder.starts_with("/proc"));
                path = folder(&path).join(to);
            }
            // Not a link, or no such file.
            Err(_) => return Ok((path, in_proc)),
        }
    }
    Err(io::Error::other(format!("more than {MOST_LINKS} symbolic links")))
}

/// Returns whether a path names a device of Windows, such as `NUL`, in any folder. Devices have no metadata.
fn is_device(path: &Path) -> bool {
    cfg!(windows)
        && !fs::metadata(path).is_ok_and(|found| found.is_file())
        && std::path::absolute(path).is_ok_and(|path| path.as_os_str().as_encoded_bytes().starts_with(br"\\.\"))
}

/// The canonical spelling of a path.
#[cfg(windows)]
fn real(path: &Path) -> io::Result<PathBuf> {
    // The canonical path of an existing file has the letter case of the folder's entries. A new name is compared
    // without case.
    let path = std::path::absolute(followed(path)?)?;
    Ok(match (fs::canonicalize(&path), path.file_name()) {
        (Ok(path), _) => path,
        (Err(_), Some(name)) => {
            let folder = fs::canonicalize(folder(&path)).unwrap_or_else(|_| folder(&path).to_owned());
            folder.join(name.to_string_lossy().to_lowercase())
        }
        (Err(_), None) => path,
    })
}

/// The canonical spelling of a path.
#[cfg(not(windows))]
fn real(path: &Path) -> io::Result<PathBuf> {
    let path = followed(path)?;
    Ok(match path.file_name() {
        Some(name) => fs::canonicalize(folder(&path)).unwrap_or_else(|_| folder(&path).to_owned()).join(name),
        None => path,
    })
}

#[cfg(unix)]
fn one_inode(a: &Metadata, b: &Metadata) -> Option<bool> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let one = (a.dev(), a.ino()) == (b.dev(), b.ino());
    Some(one && !a.file_type().is_char_device())
}

#[cfg(not(unix))]
fn one_inode(_: &Metadata, _: &Metadata) -> Option<bool> {
    None
}

/// A new file in the folder of `target`, with the permissions of a new file.
fn beside(target: &Path) -> io::Result<Temporary> {
    #[cfg(target_os = "linux")]
    if let Some(file) = nameless(folder(target)) {
        return Ok(Temporary::Nameless(file));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder.tempfile_in(folder(target)).map(Temporary::Named).map_err(without_name)
}

/// The error without the name of the temporary file, which the user does not know.
fn without_name(error: io::Error) -> io::Error {
    error.raw_os_error().map_or(error, io::Error::from_raw_os_error)
}

/// A new file without a name, or `None` if it cannot be made or get a name later.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let flags = rustix::fs::OFlags::TMPFILE.bits() as _;
    let file = File::options().read(true).write(true).mode(0o666).custom_flags(flags).open(folder).ok()?;
    if !open_file(&file).exists() {
        return None;
    }
    // Some older kernels do not apply the umask to such files, so this code does. If a default ACL of the folder has
    // changed the permissions, they stay.
    let mut permissions = file.metadata().ok()?.permissions();
    if permissions.mode() & 0o777 == 0o666 {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let mask = status.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("Umask:")?.trim(), 8).ok())?;
        permissions.set_mode(0o666 & !mask);
        file.set_permissions(permissions).ok()?;
    }
    Some(file)
}

/// The name in `/proc` of a file that this process has open.
#[cfg(target_os = "linux")]
fn open_file(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Gives a temporary name in `folder` to a file without a name. If the system refuses the link, for example by a
/// security rule, the contents are copied to a file with a name.
#[cfg(target_os = "linux")]
fn named(file: &File, folder: &Path) -> io::Result<NamedTempFile> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    let link = |path: &Path| {
        // Clone the handle before the link is made: if the clone failed afterwards, nothing would remove the link.
        let handle = file.try_clone()?;
        linkat(CWD, open_file(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?;
        Ok(handle)
    };
    builder.make_in(folder, link).or_else(|_| copied(file, builder.tempfile_in(folder)?)).map_err(without_name)
}

/// Copies the contents, the owner and the permissions of a file.
#[cfg(target_os = "linux")]
fn copied(mut file: &File, mut to: NamedTempFile) -> io::Result<NamedTempFile> {
    use std::io::Seek;
    file.rewind()?;
    io::copy(&mut file, to.as_file_mut())?;
    keep(to.as_file(), &file.metadata()?)?;
    to.as_file().sync_all()?;
    Ok(to)
}

/// Allocates room for `bytes` bytes of an empty file.
#[cfg(target_os = "linux")]
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::{
        fs::{FallocateFlags, FsWord, fallocate, fstatfs},
        io::{Errno, retry_on_intr},
    };
    /// Btrfs does not compress data that is written to preallocated room.
    const BTRFS: FsWord = 0x9123_683e;
    if fstatfs(file).is_ok_and(|system| system.f_type == BTRFS) {
        return Ok(());
    }
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, bytes)) {
        Err(error @ (Errno::NOSPC | Errno::FBIG | Errno::DQUOT)) => Err(error.into()),
        // Not every file system can preallocate.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns whether a file is on a network or FUSE file system. Such a system may buffer writes, and report their
/// failure only when the file is synced or closed.
#[cfg(target_os = "linux")]
fn is_remote(file: &File) -> bool {
    // `f_type` of NFS, SMB, CIFS, SMB2, FUSE, 9P, AFS (both numbers of `linux/magic.h`), Ceph, Coda, Lustre, GPFS,
    // BeeGFS, OCFS2 and GFS2.
    const REMOTE: [u32; 15] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x6573_5546,
        0x0102_1997,
        0x5346_414f,
        0x6b41_4653,
        0x00c3_6400,
        0x7375_7245,
        0x0bd0_0bd0,
        0x4750_4653,
        0x1983_0326,
        0x7461_636f,
        0x0116_1970,
    ];
    rustix::fs::fstatfs(file).is_ok_and(|system| REMOTE.contains(&(system.f_type as u32)))
}

/// Always false: the check exists only on Linux.
#[cfg(not(target_os = "linux"))]
fn is_remote(_: &File) -> bool {
    false
}

/// Other systems allocate as the file is written.
#[cfg(not(target_os = "linux"))]
fn reserve(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}

/// Gives `file` the permissions of an old file and, if the system allows it, its owner.
fn keep(file: &File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            // Only the superuser may change a file's owner.
            let _ = fchown(file, Some(old.uid()), Some(old.gid()));
        }
    }
    file.set_permissions(old.permissions())
}

/// Opens a regular file. Follows a final symbolic link only if `follow` is set. A FIFO is an error; the call does not
/// wait for it.
pub(crate) fn open(path: &Path, options: &mut OpenOptions, follow: bool) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let links = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY | links).bits() as _);
    }
    #[cfg(windows)]
    if !follow {
        use std::os::windows::fs::OpenOptionsExt;
        const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
        options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// All bytes of a file. A file of more than `most` bytes is an error, also if it grows during the call.
pub(crate) fn read(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let too_large = |bytes: u64| Err(io::Error::other(format!("it has {bytes} bytes, at most {most} are possible")));
    let len = file.metadata()?.len();
    if len > most {
        return too_large(len);
    }
    let mut bytes = Vec::with_capacity(len as usize);
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { too_large(bytes.len() as u64) } else { Ok(bytes) }
}
