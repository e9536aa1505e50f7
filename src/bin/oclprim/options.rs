//! Arguments that several subcommands share.

use clap::Args;
use oclprim::{Device, Result};

/// The device that a subcommand works on.
#[derive(Args, Debug)]
pub(crate) struct DeviceChoice {
    /// Device: an index of `oclprim devices`, `cpu`, `gpu`, `opencl`, or a part of its name. Without it, the fastest
    /// GPU, else the CPU.
    #[arg(long, value_name = "SELECTOR")]
    device: Option<String>,
}

impl DeviceChoice {
    pub(crate) fn open(&self) -> Result<Device> {
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

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes() {
        assert_eq!(size("1_000"), Ok(1000));
        assert_eq!(size("2^24"), Ok(1 << 24));
        assert_eq!(size("5Mi"), Ok(5 << 20));
        for bad in ["", "x", "2^", "^2", "2^64", "-1", "1.5", "99999999999Gi", "Mi"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
