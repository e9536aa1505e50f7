//! Opens a shared library at run time and finds its entry points.
use core::ffi::{CStr, c_void};
use std::ffi::{OsStr, OsString};

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

/// Names of the OpenCL loader, in the order in which they are tried.
pub(super) const NAMES: &[&str] = if cfg!(target_os = "macos") {
    &["/System/Library/Frameworks/OpenCL.framework/OpenCL"]
} else if cfg!(windows) {
    &["OpenCL.dll"]
} else {
    &["libOpenCL.so.1", "libOpenCL.so"]
};

/// The handle of an open library, which is never closed.
#[derive(Clone, Copy)]
pub(super) struct Library(usize);

impl Library {
    /// Opens the first library of `names` that opens. If none opens, the error is the one for the first name.
    pub(super) fn first(names: &[&str]) -> Result<Self, String> {
        let (first, others) = names.split_first().expect("a name");
        let other = |reason| others.iter().find_map(|name| Self::open(OsStr::new(name)).ok()).ok_or(reason);
        Self::open(OsStr::new(first)).or_else(other)
    }

    /// Opens the library that `OPENCL_LIBRARY` names, and no other. If it does not open, the program runs without
    /// OpenCL.
    pub(super) fn named(name: OsString) -> Result<Self, String> {
        let which = format!("OPENCL_LIBRARY is `{}`", name.to_string_lossy());
        // `dlopen` of an empty name opens the program itself.
        if name.is_empty() {
            return Err(format!("{which}, which opens no library"));
        }
        Self::open(&name).map_err(|reason| format!("{which}: {reason}"))
    }

    fn open(name: &OsStr) -> Result<Self, String> {
        let library =
            Self(system::open(name).map_err(|reason| format!("the library does not open: {reason}"))? as usize);
        if library.find(c"clGetPlatformIDs").is_null() {
            return Err(format!("{} has no clGetPlatformIDs", name.to_string_lossy()));
        }
        Ok(library)
    }

    /// The address of an entry point; null if the library lacks it.
    pub(super) fn find(self, name: &CStr) -> *mut c_void {
        system::find(self.0 as *mut c_void, name)
    }
}

#[cfg(unix)]
mod unix {
    use core::ffi::{CStr, c_char, c_int, c_void};
    use std::{
        ffi::{CString, OsStr},
        os::unix::ffi::OsStrExt,
    };

    unsafe extern "C" {
        fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
        fn dlerror() -> *const c_char;
    }
    const RTLD_NOW: c_int = 2;

    pub(super) fn open(name: &OsStr) -> Result<*mut c_void, String> {
        let name = CString::new(name.as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the name is a C string. The driver answers for the code that its library runs when it is opened.
        let handle = unsafe { dlopen(name.as_ptr(), RTLD_NOW) };
        if handle.is_null() {
            // SAFETY: `dlerror` returns null or a C string that stays until this thread's next call.
            let reason = unsafe { dlerror() };
            let reason = if reason.is_null() { c"no reason is known" } else { unsafe { CStr::from_ptr(reason) } };
            return Err(reason.to_string_lossy().replace('\n', " "));
        }
        Ok(handle)
    }

    pub(super) fn find(handle: *mut c_void, name: &CStr) -> *mut c_void {
        // SAFETY: the handle is open, and the name is a C string.
        unsafe { dlsym(handle, name.as_ptr()) }
    }
}

#[cfg(windows)]
mod windows {
    use core::ffi::{CStr, c_char, c_void};
    use std::{ffi::OsStr, io, os::windows::ffi::OsStrExt, path::Path};

    unsafe extern "system" {
        fn LoadLibraryExW(name: *const u16, file: *mut c_void, flags: u32) -> *mut c_void;
        fn GetProcAddress(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    const LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR: u32 = 0x100;
    /// The program's folder and the system's, but neither the current folder nor `PATH`.
    const LOAD_LIBRARY_SEARCH_DEFAULT_DIRS: u32 = 0x1000;

    pub(super) fn open(name: &OsStr) -> Result<*mut c_void, String> {
        let (mut path, mut flags) = (name.to_owned(), LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
        // With these flags a path must be absolute. The library's own dependencies may lie beside the library.
        if Path::new(name).parent().is_some_and(|folder| !folder.as_os_str().is_empty()) {
            path = std::path::absolute(name).map_err(|error| error.to_string())?.into_os_string();
            flags |= LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR;
        }
        let wide: Vec<u16> = path.encode_wide().chain([0]).collect();
        if wide.iter().position(|&unit| unit == 0) != Some(wide.len() - 1) {
            return Err("the name has a zero in it".into());
        }
        // SAFETY: the name ends with a zero. The driver answers for the code that its library runs when it is opened.
        let handle = unsafe { LoadLibraryExW(wide.as_ptr(), core::ptr::null_mut(), flags) };
        // The system's own message does not name the library.
        let reason = |error: io::Error| format!("{}: {error}", Path::new(name).display());
        if handle.is_null() { Err(reason(io::Error::last_os_error())) } else { Ok(handle) }
    }

    pub(super) fn find(handle: *mut c_void, name: &CStr) -> *mut c_void {
        // SAFETY: the handle is open, and the name is a C string.
        unsafe { GetProcAddress(handle, name.as_ptr()) }
    }
}
