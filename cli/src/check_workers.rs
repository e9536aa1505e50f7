//! Runs the checks of `check --quick` in several processes. In one process a driver builds only one or two programs at
//! a time.

use std::{
    io::{self, BufRead, BufReader, Write},
    process::Stdio,
    thread,
};

use oclprim_checks::check::host_memory;
use serde::{Deserialize, Serialize};

use crate::{
    check_results::{Counts, Report},
    itself,
    output::Stop,
};

/// The line that a worker writes after each check.
const CHECKED: &str = "oclprim checked";
/// The text that a worker writes before its results. A driver may write to standard output, too.
const RESULTS: &str = "oclprim results ";
/// Maximum number of processes. Each process has a context on every checked device.
const MAX_PROCESSES: usize = 16;
/// Bytes of a device's and of the host's memory for each process.
const PROCESS_BYTES: u64 = 2 << 30;

/// The results of `check`.
#[derive(Serialize, Deserialize)]
pub(crate) struct All {
    #[serde(flatten)]
    pub(crate) total: Counts,
    pub(crate) devices: Vec<Report>,
}

/// The number of processes for a device with this much memory.
pub(crate) fn processes(device_bytes: u64) -> usize {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let bytes = device_bytes.min(host_memory().unwrap_or(u64::MAX));
    threads.min(MAX_PROCESSES).min((bytes / PROCESS_BYTES) as usize).max(1)
}

/// Splits a check with these arguments into `processes` parts, and runs each part in its own process. Returns the
/// reports of each part, or how its process ended without them. Calls `checked` after each check.
pub(crate) fn share(
    arguments: &[String],
    processes: usize,
    checked: impl Fn() + Sync,
) -> Vec<Result<Vec<Report>, String>> {
    let part = |k: usize| of_part(arguments, &format!("{k}/{processes}"), &checked);
    let part = &part;
    thread::scope(|scope| {
        let parts: Vec<_> = (1..=processes).map(|k| scope.spawn(move || part(k))).collect();
        parts.into_iter().map(|part| part.join().expect("a thread that does not panic")).collect()
    })
}

fn of_part(arguments: &[String], part: &str, checked: impl Fn()) -> Result<Vec<Report>, String> {
    let failed = |error: io::Error| format!("the process of part {part}: {error}");
    let mut command = itself::command().map_err(failed)?;
    command.arg("check").args(arguments).args(["--part", part]);
    let mut worker = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut results = None;
    let mut output = BufReader::new(worker.stdout.take().expect("a pipe"));
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        let text = String::from_utf8_lossy(&line);
        if text.trim_end() == CHECKED {
            checked();
        } else if let Some(text) = text.strip_prefix(RESULTS) {
            results = serde_json::from_str::<All>(text).ok();
        }
        line.clear();
    }
    let status = worker.wait().map_err(failed)?;
    results.map(|all| all.devices).ok_or_else(|| format!("the process of part {part} ended without results: {status}"))
}

/// Reports to the parent process that one check has ended. Returns an error if the parent has ended.
pub(crate) fn tell(out: &mut dyn Write) -> Result<(), Stop> {
    writeln!(out, "{CHECKED}")?;
    Ok(out.flush()?)
}

/// Gives the results to the parent process.
pub(crate) fn give(results: &All, out: &mut dyn Write) -> Result<(), Stop> {
    Ok(writeln!(out, "{RESULTS}{}", serde_json::to_string(results)?)?)
}
