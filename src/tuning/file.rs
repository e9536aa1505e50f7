//! The tuning file: parameter values that `oclprim tune` chose for the devices of a machine.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Primitive, SizeClass, row_bytes};
use crate::{
    Error, ErrorKind, Result,
    files::{self, Draft, folder, followed},
    runtime::{DeviceInfo, folders},
};

const FORMAT: u32 = 1;
/// A larger file is not a tuning file.
const MOST_BYTES: u64 = 4 << 20;

/// Parameter values for a primitive on a device. A row applies only to one driver and one version of the crate.
///
/// ```
/// use oclprim::{Device, tuning::{Primitive, Row, SizeClass}};
///
/// let row = Row::new(&Device::cpu().info(), Primitive::Reduce, 4, SizeClass::Large, [("max_groups", 64)]);
/// assert_eq!((row.primitive.as_str(), row.chosen["max_groups"]), ("reduce", 64));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Row {
    /// The platform's name.
    pub platform: String,
    /// The device's name.
    pub device: String,
    /// The driver's version.
    pub driver: String,
    /// The version of OpenCL, with the driver's details.
    pub version: String,
    /// The device's compute units.
    pub compute_units: u32,
    /// The crate's version.
    pub oclprim: String,
    /// The name of a [`Primitive`].
    pub primitive: String,
    /// Bytes of an element, as [`row_bytes`] returns them.
    pub element_bytes: usize,
    /// The size class of inputs.
    pub size: SizeClass,
    /// Values by parameter name.
    pub chosen: BTreeMap<String, usize>,
}

impl Row {
    /// A row for a device.
    ///
    /// ```
    /// use oclprim::{Device, tuning::{Primitive, Row, SizeClass}};
    ///
    /// let row = Row::new(&Device::cpu().info(), Primitive::Copy, 1, SizeClass::Large, [("max_groups", 64)]);
    /// assert_eq!((row.device.as_str(), row.size), ("CPU", SizeClass::Large));
    /// ```
    pub fn new<'a>(
        info: &DeviceInfo,
        primitive: Primitive,
        element_bytes: usize,
        size: SizeClass,
        chosen: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Self {
        Self {
            platform: info.platform.clone(),
            device: info.name.clone(),
            driver: info.driver.clone(),
            version: info.version.clone(),
            compute_units: info.compute_units,
            oclprim: env!("CARGO_PKG_VERSION").into(),
            primitive: primitive.name().into(),
            element_bytes: row_bytes(primitive, element_bytes),
            size,
            chosen: chosen.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        }
    }

    /// Returns whether both rows have the same device, crate version, primitive, element size and size class. A file
    /// has at most one row for each combination of these.
    ///
    /// ```
    /// use oclprim::{Device, tuning::{Primitive, Row, SizeClass}};
    ///
    /// let row = |size, groups| Row::new(&Device::cpu().info(), Primitive::Reduce, 4, size, [("max_groups", groups)]);
    /// assert!(row(SizeClass::Large, 64).same_place(&row(SizeClass::Large, 128)));
    /// assert!(!row(SizeClass::Large, 64).same_place(&row(SizeClass::Small, 64)));
    /// ```
    pub fn same_place(&self, other: &Self) -> bool {
        self.same_device(other)
            && (&self.oclprim, &self.primitive, self.element_bytes, self.size)
                == (&other.oclprim, &other.primitive, other.element_bytes, other.size)
    }

    fn same_device(&self, other: &Self) -> bool {
        (&self.platform, &self.device, &self.driver, &self.version, self.compute_units)
            == (&other.platform, &other.device, &other.driver, &other.version, other.compute_units)
    }
}

/// The rows of a tuning file. Rows that this version does not understand are kept, but not used.
///
/// ```
/// use oclprim::{Device, tuning::{Primitive, Row, SizeClass, TuningFile}};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("tuning.json");
/// let row = Row::new(&Device::cpu().info(), Primitive::Sort, 4, SizeClass::Small, [("items", 512)]);
/// let mut file = TuningFile::read(&path)?; // a missing file has no rows
/// file.put(&row);
/// file.write(&path)?;
/// assert_eq!(TuningFile::read(&path)?.rows(), [row]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TuningFile {
    format: u32,
    rows: Vec<Value>,
}

impl Default for TuningFile {
    fn default() -> Self {
        Self { format: FORMAT, rows: Vec::new() }
    }
}

impl TuningFile {
    /// The path of the tuning file: the value of `OCLPRIM_TUNING`, else a file in the user's configuration folder. `None` if
    /// the variable is empty, or if the user has no home folder.
    ///
    /// ```
    /// if let Some(path) = oclprim::tuning::TuningFile::path() {
    ///     println!("choices for devices are in {}", path.display());
    /// }
    /// ```
    pub fn path() -> Option<PathBuf> {
        match env::var_os("OCLPRIM_TUNING") {
            Some(path) if path.is_empty() => None,
            Some(path) => Some(path.into()),
            None => Some(folders::own(|user| user.config_dir())?.join("tuning.json")),
        }
    }

    /// Reads a file; a missing file has no rows.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the file cannot be read, [`ErrorKind::InvalidInput`] if the file is not a tuning file of
    /// this format.
    ///
    /// ```
    /// use oclprim::tuning::TuningFile;
    ///
    /// let folder = tempfile::tempdir()?;
    /// assert!(TuningFile::read(&folder.path().join("missing.json"))?.rows().is_empty());
    /// assert!(TuningFile::read(folder.path()).is_err()); // a folder
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn read(path: &Path) -> Result<Self> {
        let failed = failed(path);
        let refused = |what: String| Error::invalid(format!("{} is not a tuning file: {what}", path.display()));
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(failed(error)),
            // Opening a device file can have side effects.
            Ok(found) if !found.is_file() => return Err(refused("it is not a regular file".into())),
            Ok(found) if found.len() > MOST_BYTES => return Err(refused(format!("it has {} bytes", found.len()))),
            Ok(_) => {}
        }
        // Another file may have taken its place since the check.
        let bytes = files::open(path, File::options().read(true), true).and_then(|file| files::read(&file, MOST_BYTES));
        Self::parse(&bytes.map_err(failed)?).map_err(refused)
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let file: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if file.format == FORMAT { Ok(file) } else { Err(format!("its format is {}, not {FORMAT}", file.format)) }
    }

    /// The well-formed rows, for all devices.
    ///
    /// ```
    /// use oclprim::{Device, tuning::{Primitive, Row, SizeClass, TuningFile}};
    ///
    /// let row = Row::new(&Device::cpu().info(), Primitive::Copy, 1, SizeClass::Large, [("max_groups", 64)]);
    /// let mut file = TuningFile::default();
    /// file.put(&row);
    /// assert_eq!(file.rows(), [row]);
    /// ```
    pub fn rows(&self) -> Vec<Row> {
        self.rows.iter().filter_map(|row| Row::deserialize(row).ok()).collect()
    }

    /// Replaces the row for the same device, primitive, element size and size class. Removes rows of other crate
    /// versions for this device. A row without values is not stored: the crate's defaults apply.
    ///
    /// ```
    /// use oclprim::{Device, tuning::{Primitive, Row, SizeClass, TuningFile}};
    ///
    /// let row = Row::new(&Device::cpu().info(), Primitive::Copy, 1, SizeClass::Large, [("max_groups", 64)]);
    /// let mut file = TuningFile::default();
    /// file.put(&row);
    /// let mut nothing = row.clone();
    /// nothing.chosen.clear();
    /// file.put(&nothing);
    /// assert!(file.rows().is_empty());
    /// ```
    pub fn put(&mut self, row: &Row) {
        let goes = |old: Row| old.same_place(row) || (old.same_device(row) && old.oclprim != row.oclprim);
        self.rows.retain(|old| !Row::deserialize(old).is_ok_and(goes));
        if !row.chosen.is_empty() {
            self.rows.push(serde_json::to_value(row).expect("strings and numbers"));
        }
    }

    /// Writes the file, and creates its folder if needed. A concurrent reader sees the old file or the new one.
    /// Symbolic links are followed, and an old file's permissions are kept. A file has at most 4 MiB, the limit for
    /// reading. If it would be longer, the oldest rows are dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the file cannot be written.
    ///
    /// ```
    /// use oclprim::tuning::TuningFile;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("inner").join("tuning.json");
    /// TuningFile::default().write(&path)?;
    /// assert!(path.exists());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn write(&self, path: &Path) -> Result<()> {
        let write = || -> io::Result<()> {
            fs::create_dir_all(folder(&followed(path)?))?;
            let mut file = Draft::new(path)?;
            file.write_all(&self.text()?)?;
            file.sync()?;
            file.replace()
        };
        write().map_err(failed(path))
    }

    /// The text of the file: the newest rows, as many as fit into the size limit for reading.
    fn text(&self) -> io::Result<Vec<u8>> {
        let mut file = self.clone();
        loop {
            let mut text = serde_json::to_vec_pretty(&file)?;
            text.push(b'\n');
            if text.len() as u64 <= MOST_BYTES || file.rows.is_empty() {
                return Ok(text);
            }
            file.rows.drain(..file.rows.len().div_ceil(8));
        }
    }

    /// Reads a file, changes it and writes it, under a lock against other processes that do the same. The lock is an empty file
    /// in the same folder, whose name ends with `.lock`.
    ///
    /// # Errors
    ///
    /// As [`TuningFile::read`] and [`TuningFile::write`].
    ///
    /// ```
    /// use oclprim::{Device, tuning::{Primitive, Row, SizeClass, TuningFile}};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("tuning.json");
    /// for n in [512, 1024] {
    ///     let row = Row::new(&Device::cpu().info(), Primitive::Sort, 4, SizeClass::Small, [("items", n)]);
    ///     TuningFile::update(&path, |file| file.put(&row))?;
    /// }
    /// assert_eq!(TuningFile::read(&path)?.rows()[0].chosen["items"], 1024);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn update(path: &Path, change: impl FnOnce(&mut Self)) -> Result<()> {
        // Dropping the lock file unlocks it.
        let _locked = locked(path).map_err(failed(path))?;
        let mut file = Self::read(path)?;
        change(&mut file);
        file.write(path)
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.display().to_string();
    move |error| Error::new(ErrorKind::Io, format!("{path}: {error}")).with_source(error)
}

/// The lock of a file; waits until no other process holds it.
fn locked(path: &Path) -> io::Result<File> {
    let path = followed(path)?;
    fs::create_dir_all(folder(&path))?;
    let mut name = OsString::from(path);
    name.push(".lock");
    let lock = files::open(Path::new(&name), File::options().create(true).truncate(false).write(true), false)?;
    match lock.lock() {
        // A file system without locks.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(lock),
        done => done.map(|()| lock),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    fn info() -> DeviceInfo {
        DeviceInfo { driver: "1.2".into(), compute_units: 132, ..Device::cpu().info() }
    }

    #[test]
    fn damaged_files_and_rows_are_ignored() {
        for text in ["", "{", "[]", "{\"format\": 1}", "{\"format\": 2, \"rows\": []}", "{\"rows\": []}", "\u{0}\u{1}"]
        {
            assert!(TuningFile::parse(text.as_bytes()).is_err(), "{text}");
        }
        let row = Row::new(&info(), Primitive::Scan, 4, SizeClass::Small, [("max_groups", 4)]);
        let good = serde_json::to_value(&row).unwrap();
        for change in [("chosen", Value::from(3)), ("size", Value::from("huge")), ("element_bytes", Value::from(-1))] {
            let mut bad = good.clone();
            bad[change.0] = change.1;
            let file = TuningFile { format: FORMAT, rows: vec![bad.clone(), Value::Null, good.clone()] };
            assert_eq!(file.rows(), std::slice::from_ref(&row), "{bad}");
            // Such rows may belong to another version.
            let mut file = file;
            file.put(&row);
            assert_eq!(file.rows, [bad, Value::Null, good.clone()]);
        }
    }

    #[test]
    fn rows_replace_rows_with_the_same_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("tuning.json");
        let other = DeviceInfo { name: "other".into(), ..info() };
        let [small, large, others] =
            [(info(), SizeClass::Small), (info(), SizeClass::Large), (other, SizeClass::Small)]
                .map(|(info, size)| Row::new(&info, Primitive::Copy, 4, size, [("words", 2)]));
        let mut file = TuningFile::read(&path).unwrap();
        [&small, &large, &others].into_iter().for_each(|row| file.put(row));
        file.put(&Row { chosen: BTreeMap::from([("words".into(), 4)]), ..large.clone() });
        file.put(&Row { chosen: BTreeMap::new(), ..small });
        file.write(&path).unwrap();
        let rows = TuningFile::read(&path).unwrap().rows();
        assert_eq!((rows.len(), &rows[0], rows[1].chosen["words"]), (2, &others, 4));
        fs::write(&path, "no JSON").unwrap();
        assert_eq!(TuningFile::read(&path).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(TuningFile::read(folder.path()).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn rows_of_other_versions_are_removed_for_the_same_device() {
        let row = Row::new(&info(), Primitive::Scan, 4, SizeClass::Small, [("max_groups", 4)]);
        let elsewhere = Row { driver: "1.3".into(), oclprim: "0.0.0".into(), ..row.clone() };
        let old = [Primitive::Reduce, Primitive::Scan].map(|primitive| Row {
            oclprim: "0.0.0".into(),
            primitive: primitive.name().into(),
            ..row.clone()
        });
        let same = Row { primitive: "copy".into(), ..row.clone() };
        let all = old.iter().chain([&elsewhere, &same]);
        let mut file = TuningFile { format: FORMAT, rows: all.map(|row| serde_json::to_value(row).unwrap()).collect() };
        file.put(&row);
        assert_eq!(file.rows(), [elsewhere, same, row]);
    }

    #[test]
    fn written_files_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tuning.json");
        let row = |i| Row::new(&info(), Primitive::Copy, 4, SizeClass::Small, [("words", i)]);
        let n = 20_000;
        let rows = (0..n).map(|i| serde_json::to_value(row(i)).unwrap()).collect();
        TuningFile { format: FORMAT, rows }.write(&path).unwrap();
        let rows = TuningFile::read(&path).unwrap().rows();
        assert!(rows.len() > 5000 && rows.len() < n, "{}", rows.len());
        assert_eq!(rows.last().unwrap(), &row(n - 1));
    }

    #[test]
    fn concurrent_updates_keep_all_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("tuning.json");
        std::thread::scope(|scope| {
            use Primitive::{Copy, Gather, Permute, Reduce, Scan, Sort};
            for primitive in [Reduce, Scan, Copy, Gather, Sort, Permute] {
                let path = &path;
                scope.spawn(move || {
                    for size in [1, 2, 4, 8, 16] {
                        let row = Row::new(&info(), primitive, size, SizeClass::Large, [("max_groups", size)]);
                        TuningFile::update(path, |file| file.put(&row)).unwrap();
                    }
                });
            }
        });
        // All rows of copies have the element size 1.
        assert_eq!(TuningFile::read(&path).unwrap().rows().len(), 5 * 5 + 1);
    }

    #[cfg(unix)]
    #[test]
    fn updates_keep_links_and_permissions() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [path, other, link, far] =
            ["tuning.json", "other.json", "link", "far"].map(|name| folder.path().join(name));
        let row = |n| Row::new(&info(), Primitive::Copy, 4, SizeClass::Small, [("words", n)]);
        let put = |path: &Path, n| TuningFile::update(path, |file| file.put(&row(n)));
        let rows = |path: &Path| TuningFile::read(path).unwrap().rows();
        put(&path, 1).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("tuning.json", &link).unwrap();
        symlink(&link, &far).unwrap();
        put(&far, 2).unwrap();
        assert!([&link, &far].iter().all(|link| fs::symlink_metadata(link).unwrap().is_symlink()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!((rows(&path), rows(&far)), (vec![row(2)], vec![row(2)]));
        // A link to a file that does not exist yet, and a link to itself.
        fs::remove_file(&link).unwrap();
        symlink(&other, &link).unwrap();
        put(&far, 3).unwrap();
        assert_eq!(rows(&other), [row(3)]);
        fs::remove_file(&link).unwrap();
        symlink("link", &link).unwrap();
        let error = put(&link, 4).unwrap_err();
        assert_eq!((error.kind(), error.to_string().lines().count()), (ErrorKind::Io, 1));
    }
}
