//! Files at well-known paths: opening one neither hangs nor fills the memory, whatever lies there.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    path::Path,
};

/// Opens a plain file, at the end of a symbolic link only if `follow` is set. A FIFO is an error, and not waited for.
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
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a plain file")) }
}

/// All bytes of a file, `most` at most: a file of more, or one that grows meanwhile, is an error.
pub(crate) fn read(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let too_large = |bytes: u64| Err(io::Error::other(format!("it has {bytes} bytes, {most} are possible")));
    let len = file.metadata()?.len();
    if len > most {
        return too_large(len);
    }
    let mut bytes = Vec::with_capacity(len as usize);
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { too_large(bytes.len() as u64) } else { Ok(bytes) }
}
