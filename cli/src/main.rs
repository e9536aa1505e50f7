//! `oclprim`: checks and measures the primitives on the devices of this machine, and runs them on data files.

mod bench;
mod chart;
mod check;
mod checked;
mod climbed;
mod devices;
mod dump;
mod ladder;
mod npy;
mod options;
mod output;
mod report;
mod run;
mod submission;
mod tune;

#[cfg(unix)]
use std::sync::Arc;
use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use output::Stop;

const EXAMPLES: &str = "\
Examples:
  oclprim devices                                 what there is to run on
  oclprim check                                   is every answer right, on every device
  oclprim bench reduce --n 2^24                   how fast, against the device's own copy
  oclprim ladder transpose --svg transpose.svg    what each step of an optimisation buys
  oclprim report -o report.html                   checks and measurements of a device as one page
  oclprim tune                                    the geometry that suits this device
  oclprim run reduce samples.npy --op max         one primitive on a file written by numpy";

/// Data-parallel primitives on OpenCL devices and on the CPU: checked, measured, and run on files.
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
            Self::Completions { shell } => {
                // clap_complete panics where a write fails, so a buffer comes between.
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Cli::command(), "oclprim", &mut script);
                Ok(out.write_all(&script)?)
            }
            Self::DumpKernels(command) => command.run(out),
        }
    }
}

/// Makes a file that grows beyond the limit for files an error of the write, instead of a signal that ends the process.
#[cfg(unix)]
fn limits_are_errors() {
    // Where it cannot be caught, it ends the process, and what was written is no file yet.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

fn main() -> ExitCode {
    #[cfg(unix)]
    limits_are_errors();
    let mut out = io::stdout();
    let result = Cli::parse().command.run(&mut out).and_then(|()| Ok(out.flush()?));
    result.err().map_or(ExitCode::SUCCESS, Stop::report)
}
