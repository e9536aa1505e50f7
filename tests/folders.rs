//! The user's configuration folder.

#![cfg(unix)]

#[path = "common/child.rs"]
mod child;

use std::{env, path::Path};

use oclprim::tuning::TuningFile;

const TEST: &str = "the_tuning_file_is_in_the_configuration_folder_and_never_in_the_current_one";
const CHILD: &str = "OCLPRIM_TEST_CHILD";

/// The default path of the tuning file in a process with these environment variables.
fn path_with(variables: &[(&str, &str)]) -> String {
    let mut child = child::command(env::current_exe().expect("a test has a path"));
    child.args(["--exact", TEST, "--nocapture"]).env(CHILD, "path");
    child.env_remove("OCLPRIM_TUNING").env_remove("XDG_CONFIG_HOME").env_remove("HOME");
    let output = child.envs(variables.iter().copied()).output().expect("a child starts");
    let text = String::from_utf8(output.stdout).expect("text");
    let path = text.lines().find_map(|line| line.split_once("path:"));
    path.unwrap_or_else(|| panic!("a child printed no path: {text}")).1.to_owned()
}

#[test]
fn the_tuning_file_is_in_the_configuration_folder_and_never_in_the_current_one() {
    if env::var_os(CHILD).is_some() {
        return println!("\npath:{}", TuningFile::path().unwrap_or_default().display());
    }
    assert_eq!(path_with(&[("HOME", "/home/me")]), "/home/me/.config/oclprim/tuning.json");
    let both = [("HOME", "/home/me"), ("XDG_CONFIG_HOME", "/etc/me")];
    assert_eq!(path_with(&both), "/etc/me/oclprim/tuning.json");
    // A relative path is ignored.
    let relative = [("HOME", "/home/me"), ("XDG_CONFIG_HOME", "etc")];
    assert_eq!(path_with(&relative), "/home/me/.config/oclprim/tuning.json");
    assert_eq!(path_with(&[("HOME", "/home/me"), ("OCLPRIM_TUNING", "")]), "");
    for home in [".", "me"] {
        assert_eq!(path_with(&[("HOME", home)]), "", "home {home:?}");
    }
    // If HOME is missing or empty, the system's list of users gives the home folder.
    for path in [path_with(&[]), path_with(&[("HOME", "")])] {
        assert!(path.is_empty() || Path::new(&path).is_absolute(), "{path}");
    }
}
