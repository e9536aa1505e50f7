//! `oclprim devices`

use std::{
    env,
    io::{self, Write},
};

use clap::Args;
use oclprim::{Capabilities, Device, DeviceClass, DeviceInfo, SubGroup, tuning::TuningFile};
use serde::{Deserialize, Serialize};

use crate::output::{BOLD, RED, Stop, bytes, json, paint};

const EXAMPLES: &str = "\
Examples:
  oclprim devices
  oclprim devices --json | jq '.[] | select(.opencl) | .capabilities.sub_group'

The number before a device selects it: `oclprim bench --device 1`, or OCLPRIM_DEVICE=1.";

/// List the devices, with the capabilities that the self-test found.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Devices {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry {
    #[serde(flatten)]
    info: DeviceInfo,
    capabilities: Option<Capabilities>,
    /// Rows of the tuning file that apply to this device.
    tuned: usize,
    error: Option<String>,
}

impl Entry {
    fn new(index: usize, info: DeviceInfo) -> Self {
        let probed = Device::at(index).and_then(|device| Ok((device.capabilities()?, device.tuned()?)));
        let (capabilities, tuned, error) = match probed {
            Ok((capabilities, tuned)) => (capabilities, tuned, None),
            Err(error) => (None, 0, Some(error.to_string())),
        };
        Self { info, capabilities, tuned, error }
    }
}

/// A device with its capabilities, or with the error that it returned.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Description {
    #[serde(flatten)]
    pub(crate) info: DeviceInfo,
    pub(crate) capabilities: Option<Capabilities>,
    pub(crate) error: Option<String>,
}

impl Description {
    pub(crate) fn new(info: DeviceInfo, device: &oclprim::Result<Device>) -> Self {
        let (capabilities, error) = match device.as_ref().map(Device::capabilities) {
            Ok(Ok(capabilities)) => (capabilities, None),
            Ok(Err(error)) => (None, Some(error.to_string())),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { info, capabilities, error }
    }
}

impl Devices {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let entries: Vec<_> = Device::list().into_iter().enumerate().map(|(i, info)| Entry::new(i, info)).collect();
        if self.json {
            return Ok(out.write_all(&json(&entries)?)?);
        }
        for (index, entry) in entries.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            describe(index, entry, out)?;
        }
        if !entries.iter().any(|entry| entry.info.opencl) {
            writeln!(out, "\n{}", no_driver())?;
        }
        Ok(())
    }
}

/// The reason why there is no OpenCL device, and the way to install a driver.
pub(crate) fn no_driver() -> String {
    let reason = Device::open("opencl").err().map(|error| error.to_string()).unwrap_or_default();
    let mut text = format!("No OpenCL device: {reason}.");
    if cfg!(feature = "opencl") && env::var_os("OPENCL_LIBRARY").is_none() {
        text += " Install your GPU vendor's driver";
        text += if cfg!(target_os = "linux") {
            " or, for the CPU, run `apt install ocl-icd-libopencl1 pocl-opencl-icd` on Debian."
        } else {
            "."
        };
    }
    text
}

fn describe(index: usize, entry: &Entry, out: &mut dyn Write) -> Result<(), Stop> {
    let info = &entry.info;
    writeln!(out, "{}", paint(format!("{index}: {info}"), BOLD, &io::stdout()))?;
    let mut line = |name: &str, value: &str| writeln!(out, "   {name:<17} {value}");
    line("type", info.ty.name())?;
    if !info.opencl {
        line("threads", &info.compute_units.to_string())?;
        return Ok(());
    }
    line("vendor", &info.vendor)?;
    line("version", info.version.trim())?;
    line("driver", &info.driver)?;
    line("compute units", &info.compute_units.to_string())?;
    line(
        "global memory",
        &format!("{}, at most {} in one allocation", bytes(info.global_bytes), bytes(info.max_allocation_bytes)),
    )?;
    if let Some(error) = &entry.error {
        line("error", &paint(error, RED, &io::stdout()))?;
    }
    let Some(caps) = &entry.capabilities else { return Ok(()) };
    line("geometry", caps.class.name())?;
    if let (1.., Some(path)) = (entry.tuned, TuningFile::path()) {
        line("tuned", &format!("{} rows of {}", entry.tuned, path.display()))?;
    }
    line("work-group", &format!("{} at most", caps.max_work_group))?;
    line("local memory", &bytes(caps.local_bytes as u64))?;
    if caps.cache_bytes > 0 {
        line("cache, reported", &bytes(caps.cache_bytes))?;
    }
    line("OpenCL C", &caps.c_standard)?;
    line("sub-groups", &sub_group(&caps.sub_group))?;
    let others = caps.sub_groups.iter().filter(|group| group.backend != caps.sub_group.backend);
    for other in others {
        line("", &format!("also {}", sub_group(other)))?;
    }
    for refused in &caps.refused {
        line("", &format!("{} failed the self-test {}", refused.backend.name(), refused.reason))?;
    }
    line("has", &capability_names(caps, true))?;
    line("lacks", &capability_names(caps, false))?;
    line("look-back", &look_back(caps))?;
    for note in &caps.notes {
        line("note", note)?;
    }
    Ok(())
}

/// The names of the capabilities that the device has; with `wanted == false`, of those that it lacks.
pub(crate) fn capability_names(caps: &Capabilities, wanted: bool) -> String {
    let claims = [
        (caps.fp64, "fp64"),
        (caps.fp16, "fp16"),
        (caps.int64_atomics, "64-bit atomics"),
        (caps.denormals, "denormals"),
        (caps.forward_progress, "forward progress"),
        (caps.device_fence, "device fence"),
        (caps.ptx, "PTX"),
    ];
    let names: Vec<_> = claims.iter().filter(|(has, _)| *has == wanted).map(|(_, name)| *name).collect();
    if names.is_empty() { "none of these".into() } else { names.join(", ") }
}

/// Describes whether decoupled look-back is on, with the reason if it is off.
pub(crate) fn look_back(caps: &Capabilities) -> String {
    let lacks: Vec<_> = caps.lacks_for_look_back().collect();
    match lacks.is_empty() {
        true if caps.class == DeviceClass::Cpu => "allowed, but CPU drivers use several launches instead".into(),
        true => "on".into(),
        false => format!("off, lacks {}", lacks.join(", ")),
    }
}

fn sub_group(group: &SubGroup) -> String {
    let ballot = if group.ballot { "" } else { ", no ballots" };
    format!("{} of {}{ballot}", group.backend.name(), group.width)
}
