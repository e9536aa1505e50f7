//! Shortens the kernel files, and lists those that others include. Makes the build-time part of the link shim: an empty
//! OpenCL library on the linker's search path, so that no OpenCL SDK is needed.
//!
//! `cl-sys` asks the linker for `-lOpenCL`. An empty archive satisfies it, and `src/sys` exports the entry points. On
//! macOS, `cl-sys` asks for the framework, which every SDK of macOS has. The linker finds the entry points of `src/sys`
//! first.
use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

/// The member that begins an archive in Microsoft's format: a header, and a symbol table. The table is four bytes, a
/// symbol count of 0.
const NO_SYMBOLS: &str = "/               0           0     0     0       4         `\n\0\0\0\0";

/// A line of code without the spaces that separate no tokens. Directives and strings keep theirs.
fn tight(line: &str) -> String {
    if line.starts_with('#') || line.contains('"') {
        return line.to_owned();
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    // Two of these beside each other may be another token.
    let is_operator = |c: char| "+-*/%&|^<>=!?:".contains(c);
    let mut tight = String::with_capacity(line.len());
    let mut next = line.chars().peekable();
    while let Some(c) = next.next() {
        let apart = match (tight.chars().next_back(), next.peek()) {
            (Some(a), Some(&b)) => (is_word(a) && is_word(b)) || (is_operator(a) && is_operator(b)) || a == ')',
            _ => true,
        };
        if c != ' ' || apart {
            tight.push(c);
        }
    }
    tight
}

/// The text of a kernel file without comments, indentation and most spaces, which are more than a third of it. Each line keeps
/// its number, and lines that start in the first column, such as those of kernels, remain the only ones that do.
fn shortened(text: &str) -> String {
    let short = |line: &str| match line.trim_start() {
        code if code.starts_with("//") && !code.ends_with('\\') => "\n".to_owned(),
        code => {
            let indent = if code.len() < line.len() { " " } else { "" };
            match code.strip_suffix('\\') {
                Some(code) => format!("{indent}{} \\\n", tight(code.trim_end())),
                None => format!("{indent}{}\n", tight(code)),
            }
        }
    };
    text.lines().map(short).collect()
}

/// Writes the kernel files of a folder to `out`. Adds the files that they include to `names`.
fn write_kernels(folder: &Path, out: &Path, names: &mut BTreeSet<String>) {
    fs::create_dir_all(out).expect("OUT_DIR is writable");
    for entry in fs::read_dir(folder).expect("the package has kernels") {
        let path = entry.expect("the folder is readable").path();
        let out = out.join(path.file_name().expect("a file has a name"));
        if path.is_dir() {
            write_kernels(&path, &out, names);
        } else if path.extension().is_some_and(|extension| extension == "cl") {
            let text = fs::read_to_string(path).expect("a kernel file is text");
            let included = |line: &str| Some(line.strip_prefix("#include \"")?.strip_suffix('"')?.to_owned());
            names.extend(text.lines().filter_map(included));
            fs::write(out, shortened(&text)).expect("OUT_DIR is writable");
        }
    }
}

/// Writes the kernel files, and an expression: the name of each file that others include, with its text.
fn write_included(out: &Path) {
    println!("cargo:rerun-if-changed=cl");
    let mut names = BTreeSet::new();
    write_kernels(Path::new("cl"), &out.join("cl"), &mut names);
    let entry = |name| format!("({name:?}, include_str!(concat!(env!(\"OUT_DIR\"), \"/cl/{name}\"))),\n");
    let entries: String = names.iter().map(entry).collect();
    fs::write(out.join("included.rs"), format!("&[\n{entries}]\n")).expect("OUT_DIR is writable");
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    write_included(&out);
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let has_loader = env::var_os("CARGO_CFG_UNIX").is_some() || env::var_os("CARGO_CFG_WINDOWS").is_some();
    let shim = env::var_os("CARGO_FEATURE_OPENCL").is_some()
        && env::var_os("CARGO_FEATURE_SYSTEM_OPENCL").is_none()
        && has_loader;
    println!("cargo:rustc-check-cfg=cfg(opencl_shim)");
    if shim {
        let (name, members) = if target("ENV") == "msvc" { ("OpenCL.lib", NO_SYMBOLS) } else { ("libOpenCL.a", "") };
        if target("OS") != "macos" {
            fs::write(out.join(name), format!("!<arch>\n{members}")).expect("OUT_DIR is writable");
            println!("cargo:rustc-link-search=native={}", out.display());
        }
        println!("cargo:rustc-cfg=opencl_shim");
    }
}
