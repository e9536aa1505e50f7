//! Arguments that several subcommands share.

use std::{env, num::IntErrorKind};

use clap::Args;
use oclprim::{Device, DeviceInfo, DeviceType, Tuning};

use crate::output;

/// The device that a subcommand works on.
#[derive(Args, Debug)]
pub(crate) struct DeviceChoice {
    /// Device: an index of `oclprim devices`, `cpu`, `gpu`, `opencl`, or a part of its name. Default: the device in the
    /// variable OCLPRIM_DEVICE; else the first GPU that passes its self-test; else the CPU. GPUs with memory of their
    /// own are tried first, and larger memory before smaller.
    #[arg(long, value_name = "SELECTOR")]
    device: Option<String>,
}

impl DeviceChoice {
    /// The selector of `--device`.
    pub(crate) fn selector(&self) -> Option<&str> {
        self.device.as_deref()
    }

    pub(crate) fn open(&self) -> oclprim::Result<Device> {
        self.device.as_deref().map_or_else(Device::best, Device::open)
    }

    /// Opens a device for arrays from files. A mapped file can change during a call, so kernels read only copies of it.
    /// A CPU driver would read the slice in place; here it copies, like every other OpenCL device.
    pub(crate) fn open_for_files(&self) -> oclprim::Result<Device> {
        let device = self.open()?;
        let in_place = !device.is_cpu() && device.info().ty == DeviceType::Cpu;
        if in_place { device.with_tuning(Tuning::default().copied()) } else { Ok(device) }
    }

    /// Opens a device that runs kernels. If no device is named and there is no GPU, this is another OpenCL device.
    pub(crate) fn open_for_kernels(&self) -> oclprim::Result<Device> {
        let named = self.device.is_some() || env::var_os("OCLPRIM_DEVICE").is_some_and(|name| !name.is_empty());
        let device = self.open()?;
        Ok(if named || !device.is_cpu() { device } else { Device::open("opencl").unwrap_or(device) })
    }
}

/// Parses a number such as `1000000`, `1_000_000`, `2^24` or `64Mi`.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    number(text)?.ok_or_else(|| format!("too large: expected at most 2^{} - 1", usize::BITS))
}

/// Parses a [`size`]; `None` if it exceeds `usize`.
fn number(text: &str) -> Result<Option<usize>, String> {
    let text = text.replace('_', "");
    let digits = |digits: &str| match digits.parse::<usize>() {
        Ok(value) => Ok(Some(value)),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Ok(None),
        Err(_) => Err("expected a number such as 1000000, 2^24 or 64Mi".to_owned()),
    };
    if let Some((base, power)) = text.split_once('^') {
        let (base, power) = (digits(base)?, digits(power)?);
        return Ok(base.zip(power).and_then(|(base, power)| base.checked_pow(power.try_into().ok()?)));
    }
    let units = [("Ki", 10), ("Mi", 20), ("Gi", 30)];
    let unit = units.into_iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
    let (count, shift) = unit.unwrap_or((&text, 0));
    Ok(digits(count)?.and_then(|count| count.checked_mul(1 << shift)))
}

/// Returns an error if the host lacks memory for `bytes` bytes of inputs and outputs, and for the reference. Without
/// this check, a failed allocation would end the program. A device without enough memory returns an error itself.
pub(crate) fn has_room(info: &DeviceInfo, bytes: u64) -> Result<(), String> {
    oclprim_checks::check::host_memory().map_or(Ok(()), |there| fits(bytes, info.ty, there))
}

fn fits(bytes: u64, ty: DeviceType, there: u64) -> Result<(), String> {
    // One share is for input and output, and one for the reference and its copies. On the CPU a third one is for the
    // measured buffers.
    let needed = bytes.saturating_mul(if ty == DeviceType::Cpu { 3 } else { 2 });
    if needed > there {
        let (needed, there) = (output::bytes(needed), output::bytes(there));
        return Err(format!("about {needed} of the host's memory are needed, but {there} are free"));
    }
    Ok(())
}

/// Parses a [`size`] from 1 to 2^48. The lower limit excludes empty inputs. The upper limit keeps the number of bytes
/// from overflowing.
pub(crate) fn positive(text: &str) -> Result<usize, String> {
    match number(text)? {
        Some(0) => Err("expected at least 1".into()),
        Some(value) if value <= 1 << 48 => Ok(value),
        _ => Err("too large: expected at most 2^48".into()),
    }
}

#[cfg(test)]
mod tests {
    use oclprim::DeviceType;

    use super::{fits, positive, size};

    #[test]
    fn inputs_and_references_must_fit_host_memory() {
        assert!(fits(100, DeviceType::Gpu, 200).is_ok() && fits(101, DeviceType::Gpu, 200).is_err());
        assert!(fits(100, DeviceType::Cpu, 300).is_ok() && fits(101, DeviceType::Cpu, 300).is_err());
        assert!(fits(u64::MAX, DeviceType::Cpu, 1 << 60).is_err());
    }

    #[test]
    fn sizes_are_parsed_with_powers_and_suffixes() {
        assert_eq!(size("1_000"), Ok(1000));
        assert_eq!(size("2^24"), Ok(1 << 24));
        assert_eq!(size("5Mi"), Ok(5 << 20));
        assert_eq!(positive("2^48"), Ok(1 << 48));
        assert!(positive("0").is_err());
        for bad in ["", "x", "2^", "^2", "2^-1", "-1", "1.5", "Mi"] {
            assert!(size(bad).is_err_and(|text| text.contains("such as 1000000")), "{bad}");
        }
        for large in ["2^64", "2^70", "2^99999999999999999999", "99999999999Gi", "18446744073709551616"] {
            assert_eq!(size(large), Err("too large: expected at most 2^64 - 1".into()), "{large}");
            assert_eq!(positive(large), Err("too large: expected at most 2^48".into()), "{large}");
        }
        assert_eq!(positive("2^49"), Err("too large: expected at most 2^48".into()));
    }
}
