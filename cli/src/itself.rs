//! Starts this program again, as another process.

use std::{env, ffi::OsString, io, process::Command, sync::OnceLock};

/// The environment at the start of this process.
static ENVIRONMENT: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// Keeps the environment for further processes. An OpenCL loader may change it. On Ubuntu with the drivers of NVIDIA
/// and PoCL, a process that inherited `OCL_ICD_FILENAMES` found only one driver.
pub(crate) fn keep_environment() {
    ENVIRONMENT.get_or_init(|| env::vars_os().collect());
}

/// A process of this program, with the environment that this process started with.
pub(crate) fn command() -> io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    if let Some(environment) = ENVIRONMENT.get() {
        command.env_clear().envs(environment.iter().cloned());
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_process_gets_the_environment_that_was_kept() {
        keep_environment();
        let command = command().expect("this program");
        let given: BTreeMap<_, _> =
            command.get_envs().map(|(name, value)| (name.to_owned(), value.map(OsString::from))).collect();
        assert_eq!(given, env::vars_os().map(|(name, value)| (name, Some(value))).collect());
    }
}
