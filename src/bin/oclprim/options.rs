//! Arguments that several subcommands share.

use clap::Args;
use oclprim::{Device, DeviceInfo, DeviceType};

use crate::output;

/// The device that a subcommand works on.
#[derive(Args, Debug)]
pub(crate) struct DeviceChoice {
    /// Device: an index of `oclprim devices`, `cpu`, `gpu`, `opencl`, or a part of its name. Without it, what the variable
    /// OCLPRIM_DEVICE selects, else the GPU with the most memory, else the CPU.
    #[arg(long, value_name = "SELECTOR")]
    device: Option<String>,
}

impl DeviceChoice {
    pub(crate) fn open(&self) -> oclprim::Result<Device> {
        self.device.as_deref().map_or_else(Device::best, Device::open)
    }
}

/// A number such as `1000000`, `1_000_000`, `2^24` or `64Mi`.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let text = text.replace('_', "");
    let number = |digits: &str| digits.parse::<usize>().ok();
    let value = match text.split_once('^') {
        Some((base, power)) => number(base).zip(power.parse().ok()).and_then(|(base, power)| base.checked_pow(power)),
        None => {
            let units = [("Ki", 10), ("Mi", 20), ("Gi", 30)];
            let unit = units.into_iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
            let (digits, shift) = unit.unwrap_or((&text, 0));
            number(digits).and_then(|value| value.checked_mul(1 << shift))
        }
    };
    value.ok_or_else(|| "expected a number such as 1000000, 2^24 or 64Mi".into())
}

/// Whether the host has room for `bytes` bytes of inputs and outputs and what they are compared with: where it has not,
/// allocating ends the program. What a device has no room for is an error of its own.
pub(crate) fn has_room(info: &DeviceInfo, bytes: u64) -> Result<(), String> {
    oclprim::check::host_memory().map_or(Ok(()), |there| fits(bytes, info.ty, there))
}

fn fits(bytes: u64, ty: DeviceType, there: u64) -> Result<(), String> {
    // Copies of input and output, and the reference with a copy of its own; on the CPU also what is measured.
    let needed = bytes.saturating_mul(if ty == DeviceType::Cpu { 3 } else { 2 });
    if needed > there {
        let (needed, there) = (output::bytes(needed), output::bytes(there));
        return Err(format!("about {needed} of the host's memory are needed, {there} are free"));
    }
    Ok(())
}

/// A [`size`] that a loop can have: at least 1, and so small that its bytes can be counted.
pub(crate) fn positive(text: &str) -> Result<usize, String> {
    match size(text)? {
        0 => Err("expected at least 1".into()),
        value if value > 1 << 48 => Err("expected at most 2^48".into()),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use oclprim::DeviceType;

    use super::{fits, positive, size};

    #[test]
    fn room_for_what_is_compared() {
        assert!(fits(100, DeviceType::Gpu, 200).is_ok() && fits(101, DeviceType::Gpu, 200).is_err());
        assert!(fits(100, DeviceType::Cpu, 300).is_ok() && fits(101, DeviceType::Cpu, 300).is_err());
        assert!(fits(u64::MAX, DeviceType::Cpu, 1 << 60).is_err());
    }

    #[test]
    fn sizes() {
        assert_eq!(size("1_000"), Ok(1000));
        assert_eq!(size("2^24"), Ok(1 << 24));
        assert_eq!(size("5Mi"), Ok(5 << 20));
        assert_eq!(positive("2^48"), Ok(1 << 48));
        assert!(positive("0").is_err() && positive("2^49").is_err());
        for bad in ["", "x", "2^", "^2", "2^64", "-1", "1.5", "99999999999Gi", "Mi"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
