//! Builds programs, and keeps them in memory and on disk.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use ocl::core::{Context, DeviceId, Program};

use super::cl;
use crate::{
    Result,
    runtime::{ProgramSpec, cache},
};

type Slot = Arc<OnceLock<Program>>;

/// The programs built in one context.
#[derive(Default)]
pub(super) struct Programs {
    slots: Mutex<HashMap<ProgramSpec, Slot>>,
    building: Mutex<()>,
}

impl Programs {
    /// The built program: from memory, else from disk, else from source.
    ///
    /// `identity` names platform, device and driver version: a binary is valid for exactly these.
    pub(super) fn get(
        &self,
        context: &Context,
        device: DeviceId,
        identity: &str,
        spec: &ProgramSpec,
    ) -> Result<Program> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            slots.entry(spec.clone()).or_default().clone()
        };
        if let Some(program) = slot.get() {
            return Ok(program.clone());
        }
        // One build at a time: some compilers are not safe to enter twice, and a second thread wants the same result.
        let _building = self.building.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(program) = slot.get() {
            return Ok(program.clone());
        }
        let program = load_or_build(context, device, identity, spec)?;
        Ok(slot.get_or_init(|| program).clone())
    }
}

fn load_or_build(context: &Context, device: DeviceId, identity: &str, spec: &ProgramSpec) -> Result<Program> {
    let source = spec.source();
    let options = spec.option_line();
    let key = cache::key("program", &[&source, &options, identity, env!("CARGO_PKG_VERSION")]);
    if let Some(binary) = cache::load(&key) {
        let loaded = cl::program_from_binary(context, device, &binary)
            .and_then(|program| cl::build(&program, device, &options, spec.name).map(|()| program));
        match loaded {
            Ok(program) => return Ok(program),
            Err(_) => cache::remove(&key),
        }
    }
    let program = cl::program_from_source(context, &source)?;
    cl::build(&program, device, &options, spec.name)?;
    if let Some(binary) = cl::binary(&program) {
        cache::store(&key, &binary);
    }
    Ok(program)
}
