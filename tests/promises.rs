//! Promises of the documentation and of the lists of dependencies.

use std::{fs, path::Path};

fn text(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Each public function of a file: its documentation, and its name and parameters.
fn functions(file: &str) -> Vec<(String, String)> {
    let (mut found, mut documentation, all) = (Vec::new(), String::new(), text(file));
    let mut lines = all.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(more) = line.strip_prefix("///") {
            documentation += more;
        } else if line.starts_with("pub fn ") || line.starts_with("pub const fn ") {
            let mut signature = line.to_owned();
            while !signature.ends_with('{') && !signature.ends_with(';') {
                signature += lines.next().expect("the function's body");
            }
            found.push((std::mem::take(&mut documentation), signature));
        } else if !line.starts_with("#[") {
            documentation.clear();
        }
    }
    found
}

#[test]
fn each_function_that_takes_opencl_c_says_that_text_is_code() {
    let mut count = 0;
    for file in ["src/op/mod.rs", "src/op/less.rs", "src/op/operator.rs"] {
        for (documentation, signature) in functions(file) {
            let takes_text = ["expression:", "text:", "types:"].iter().any(|name| signature.contains(name));
            if takes_text {
                let said = documentation.contains("must never come from untrusted input")
                    && documentation.contains("crate::op#text-is-code");
                assert!(said, "{file}: {signature}");
                count += 1;
            }
        }
    }
    assert!(count >= 7, "{count} functions");
}

/// A queue that the crate does not know could write such memory between two kernels of a call.
#[test]
fn each_function_that_takes_or_returns_a_memory_object_is_unsafe() {
    let source = text("src/interop.rs");
    let signatures = source.split("\npub ").skip(1).filter_map(|item| item.split_once(" {\n")).map(|(head, _)| head);
    let shares = |head: &&str| head.contains("ocl::Buffer<") || head.contains("core::Mem");
    let (safe, other): (Vec<&str>, Vec<&str>) = signatures.filter(shares).partition(|head| head.starts_with("fn "));
    assert_eq!(safe, [""; 0]);
    assert_eq!(other.len(), 3, "{other:?}");
}

#[test]
fn the_documentation_of_the_crate_and_of_devices_warns_of_fork() {
    for file in ["src/lib.rs", "src/runtime/device.rs"] {
        assert!(text(file).lines().any(|line| line.trim().starts_with("//") && line.contains("`fork`")), "{file}");
    }
}

#[test]
fn dependencies_of_ocl_are_documented_and_licences_are_checked() {
    let written = text("docs/dependencies.md");
    for name in ["futures", "nodrop", "enum_primitive", "bitflags", "qutex"] {
        assert!(written.contains(name), "docs/dependencies.md does not name {name}");
    }
    assert!(!text("Cargo.lock").contains("name = \"option-ext\""));
    for table in ["[advisories]", "[licenses]", "[bans]", "[sources]"] {
        assert!(text("deny.toml").contains(table), "deny.toml has no {table}");
    }
}
