//! Tuning parameters: every device and element size has values for each, and the default is one of them.

use arbitrary::{Result, Unstructured};
use oclprim::{
    Capabilities,
    tuning::{Primitive, parameters},
};

fn tried(u: &mut Unstructured) -> Result<()> {
    let samples = Capabilities::samples();
    let mut caps = u.choose(&samples)?.1.clone();
    let size = |u: &mut Unstructured| -> Result<usize> {
        Ok(match u.int_in_range(0..=3)? {
            0 => u.arbitrary()?,
            1 => 1 << u.int_in_range(0..=63)?,
            _ => u.int_in_range(1..=4096)?,
        })
    };
    if u.arbitrary()? {
        caps.compute_units = size(u)? as u32;
    }
    if u.arbitrary()? {
        caps.max_work_group = size(u)?.max(1);
    }
    if u.arbitrary()? {
        caps.local_bytes = size(u)?;
    }
    if u.arbitrary()? {
        caps.global_bytes = size(u)? as u64;
    }
    let bytes = size(u)?;
    for primitive in Primitive::ALL {
        for parameter in parameters(primitive, &caps, bytes) {
            let rising = parameter.values.windows(2).all(|pair| pair[0] < pair[1]);
            assert!(rising && parameter.values.contains(&parameter.usual), "{primitive} {parameter:?} {caps:?}");
        }
    }
    Ok(())
}

pub(crate) fn run(bytes: &[u8]) {
    let mut all = Unstructured::new(bytes);
    while !all.is_empty() && tried(&mut all).is_ok() {}
}
