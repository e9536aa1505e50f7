//! `oclprim dump-kernels`: kernels as files, for compilers of devices that this machine lacks.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use oclprim::{ProgramSpec, tuning::Tuned};
use oclprim_checks::registry;

use crate::{
    check::primitives,
    output::{Stop, of_file, save},
};

/// Write every program for every sample device as NAME.cl, with its build options in NAME.opts.
#[derive(Args)]
pub(crate) struct DumpKernels {
    /// The folder; it is created if it does not exist.
    dir: PathBuf,
    /// Write only the programs of this primitive. May be given several times.
    #[arg(long, value_name = "PRIMITIVE", value_parser = primitives())]
    only: Vec<String>,
}

impl DumpKernels {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        fs::create_dir_all(&self.dir).map_err(of_file(&self.dir))?;
        let mut seen = HashSet::new();
        for (sample, caps) in Tuned::samples() {
            let mut numbers = HashMap::new();
            for program in self.programs(&caps) {
                if seen.insert(program.clone()) {
                    let number: &mut usize = numbers.entry(program.name).or_default();
                    let file = program.name.trim_end_matches(".cl").replace('/', "-");
                    write(&self.dir.join(format!("{file}-{sample}-{number:03}")), &program, out)?;
                    *number += 1;
                }
            }
        }
        Ok(writeln!(out, "{} programs in {}", seen.len(), self.dir.display())?)
    }

    fn programs(&self, caps: &Tuned) -> Vec<ProgramSpec> {
        if self.only.is_empty() {
            return registry::programs(caps);
        }
        let chosen = registry::specs().iter().filter(|spec| self.only.iter().any(|name| name == spec.name()));
        chosen.flat_map(|spec| spec.programs(caps)).collect()
    }
}

fn write(stem: &Path, program: &ProgramSpec, out: &mut dyn Write) -> Result<(), Stop> {
    for (extension, text) in [("cl", program.source()), ("opts", format!("{}\n", program.options))] {
        save(&[(&stem.with_extension(extension), &[text])], out)?;
    }
    Ok(())
}
