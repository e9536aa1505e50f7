//! Archives of named arrays, as `numpy.savez` writes them: .npz files, which are .zip files of .npy files without
//! compression.

use std::{
    io::{self, Write},
    path::Path,
};

use rawzip::{Error, ErrorKind, ZipArchiveWriter};

use super::Made;

/// The name of the single array in an archive, as `numpy.savez` names it.
pub(crate) const FIRST: &str = "arr_0";

/// Returns whether the name of a file is that of an archive.
pub(crate) fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npz"))
}

/// Writes an archive of arrays with these names. It needs no seeking, so `to` can be a pipe.
pub(crate) fn write(to: &mut dyn Write, arrays: &[(&str, &Made<'_>)]) -> io::Result<()> {
    let mut archive = ZipArchiveWriter::new(to);
    for (name, array) in arrays {
        let (mut entry, config) = archive.new_file(format!("{name}.npy")).start().map_err(cause)?;
        let mut writer = config.wrap(&mut entry);
        array.parts().iter().try_for_each(|part| writer.write_all(part))?;
        let (_, sizes) = writer.finish().map_err(cause)?;
        entry.finish(sizes).map_err(cause)?;
    }
    archive.finish().map_err(cause)?;
    Ok(())
}

fn cause(error: Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::IO(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
