//! `oclprim`: checks and measures the primitives on the devices of this machine, and runs them on data files.
//!
//! The program is a library and a one-line `main`, because this shortens builds. Cargo can compile a library while it
//! still compiles `oclprim-checks`, but a program only after all its libraries.

mod bench;
mod chart;
mod check;
mod check_results;
mod check_workers;
mod devices;
mod dump;
mod itself;
mod ladder;
mod ladder_results;
mod npy;
mod options;
mod output;
mod progress;
mod report;
mod reserve;
mod run;
mod submission;
mod tune;
mod warm;

#[cfg(not(unix))]
use std::process;
#[cfg(unix)]
use std::sync::Arc;
use std::{
    io::{self, Write},
    panic,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use output::Stop;

const EXAMPLES: &str = "\
Examples:
  oclprim devices                                 the devices of this machine
  oclprim check                                   compare every result with a reference, on every device
  oclprim bench reduce --n 2^24                   bandwidth, in percent of the device's own copy
  oclprim ladder transpose --svg transpose.svg    the gain of each optimisation
  oclprim report -o report.html                   checks and measurements of a device as one page
  oclprim tune                                    search for the fastest geometry of this device
  oclprim run reduce samples.npy --op max         one primitive on a NumPy file
  oclprim warm                                    build kernels ahead of the first calls";

/// Check, measure and run data-parallel primitives on OpenCL devices and on the CPU.
#[derive(Parser)]
#[command(name = "oclprim", version, after_help = EXAMPLES, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Devices(devices::Devices),
    Check(check::Check),
    Bench(bench::Bench),
    Ladder(ladder::Ladder),
    Tune(tune::Tune),
    Report(report::Command),
    Run(run::Run),
    Warm(warm::Warm),
    Cache(warm::Cache),
    /// Write a shell's completion script to standard output.
    #[command(after_help = "Example:\n  oclprim completions bash > ~/.local/share/bash-completion/completions/oclprim")]
    Completions {
        /// The shell.
        shell: Shell,
    },
    #[command(hide = true)]
    DumpKernels(dump::DumpKernels),
}

impl Command {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        match self {
            Self::Devices(command) => command.run(out),
            Self::Check(command) => command.run(out),
            Self::Bench(command) => command.run(out),
            Self::Ladder(command) => command.run(out),
            Self::Tune(command) => command.run(out),
            Self::Report(command) => command.run(out),
            Self::Run(command) => command.run(out),
            Self::Warm(command) => command.run(out),
            Self::Cache(command) => command.run(out),
            Self::Completions { shell } => {
                // clap_complete panics if a write fails, so the script goes to a buffer first.
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Cli::command(), "oclprim", &mut script);
                Ok(out.write_all(&script)?)
            }
            Self::DumpKernels(command) => command.run(out),
        }
    }
}

/// Handles SIGXFSZ: a write beyond the file size limit fails with an error, and the signal does not end the process.
#[cfg(unix)]
fn limits_are_errors() {
    // If the handler cannot be set, the signal ends the process. The output is then still a temporary file, and the old
    // file is unchanged.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// A panic is a fault of the program. If panics abort, as in the workspace's release profile, the program prints one
/// line, which names the running check, and exits with code 101. A package does not contain that profile, so the
/// program that `cargo install oclprim-cli` builds unwinds, and a check that panics counts as failed.
fn faults_are_one_line() {
    static FIRST: AtomicBool = AtomicBool::new(true);
    if cfg!(panic = "abort") {
        panic::set_hook(Box::new(|fault| {
            // If several threads panic, only the first one reports. The others wait until it has ended the process,
            // because the process aborts when this hook returns.
            if FIRST.swap(false, Ordering::Relaxed) {
                let check = check::running().map_or(String::new(), |case| format!(" in the check {case}"));
                let text = fault.to_string().replace('\n', " ");
                // If standard error is closed, the message is lost.
                let _ = writeln!(io::stderr(), "\nerror: the program has a fault{check}: {text}");
                // This exit runs no `atexit` handlers: those of a driver could wait for threads that use the driver.
                #[cfg(unix)]
                signal_hook::low_level::exit(101);
                #[cfg(not(unix))]
                process::exit(101);
            }
            loop {
                thread::park();
            }
        }));
    }
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    reserve::keep();
    itself::keep_environment();
    faults_are_one_line();
    #[cfg(unix)]
    limits_are_errors();
    let mut out = output::Standard(io::stdout());
    let result = Cli::parse().command.run(&mut out).and_then(|()| Ok(out.flush()?));
    result.err().map_or(ExitCode::SUCCESS, Stop::report)
}
