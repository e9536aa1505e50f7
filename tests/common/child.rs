//! Child processes of tests.
#![allow(dead_code, reason = "each test file uses only a part")]

use std::{
    env,
    ffi::OsStr,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

/// The value of cargo's variable `setting` for programs of this processor on Linux.
pub(crate) fn of_target(setting: &str) -> Option<String> {
    env::var(format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_{setting}", env::consts::ARCH.to_uppercase())).ok()
}

/// A command that runs `program` through cargo's runner, if one is set. For drivers of another Linux distribution, the
/// runner is the dynamic loader of that distribution. For another processor, the runner is an emulator.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let runner = of_target("RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let Some(first) = words.next() else { return Command::new(program) };
    let mut command = Command::new(first);
    command.args(words).arg(program);
    command
}

/// The variable that makes a test run as a child. Its value, the part, says what the child does.
const CHILD: &str = "OCLPRIM_TEST_CHILD";

/// The argument `part` of [`child`], if this process is the child of a test.
pub(crate) fn part() -> Option<String> {
    env::var(CHILD).ok()
}

/// A command that runs only the test `test` of this file in a new process, where [`part`] returns `part`.
pub(crate) fn child(test: &str, part: &str) -> Command {
    let this = env::args_os().next().expect("a process has a name");
    let mut command = command(this);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, part);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The text that a successful child printed after `value:`.
pub(crate) fn value_of(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "a child failed ({}):\n{out}{err}", output.status);
    let value = out.lines().find_map(|line| line.split_once("value:"));
    value.unwrap_or_else(|| panic!("a child printed no value:\n{out}{err}")).1.trim().to_owned()
}

/// Runs a child; returns the value that it printed, and its run time.
pub(crate) fn run(command: &mut Command) -> (String, Duration) {
    let start = Instant::now();
    let output = command.output().expect("a child process starts");
    (value_of(&output), start.elapsed())
}

/// Passes a value from a child to its parent.
pub(crate) fn answer(value: impl std::fmt::Display) {
    println!("\nvalue: {value}");
}
