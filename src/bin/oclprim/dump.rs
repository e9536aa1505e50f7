//! `oclprim dump-kernels`, for compile-only checks by the compilers of devices that are not here.

use std::{
    collections::HashSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use oclprim::{Capabilities, ProgramSpec, check};

use crate::output::{Stop, of_file};

/// Write every program for every sample device as NAME.cl, with its build options in NAME.opts.
#[derive(Args)]
pub(crate) struct DumpKernels {
    /// The folder, which is created.
    dir: PathBuf,
}

impl DumpKernels {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        fs::create_dir_all(&self.dir).map_err(of_file(&self.dir))?;
        let mut seen = HashSet::new();
        for (sample, caps) in Capabilities::samples() {
            for spec in check::registry() {
                let mut number = 0;
                for program in spec.programs(&caps) {
                    if seen.insert(program.clone()) {
                        write(&self.dir.join(format!("{}-{sample}-{number:03}", spec.name())), &program)?;
                        number += 1;
                    }
                }
            }
        }
        Ok(writeln!(out, "{} programs in {}", seen.len(), self.dir.display())?)
    }
}

fn write(stem: &Path, program: &ProgramSpec) -> Result<(), Stop> {
    for (extension, text) in [("cl", program.source()), ("opts", program.option_line() + "\n")] {
        let path = stem.with_extension(extension);
        fs::write(&path, text).map_err(of_file(&path))?;
    }
    Ok(())
}
