//! Subnormals on drivers that may flush them, because kernels are built with `-cl-denorms-are-zero`.
#![cfg(feature = "opencl")]

mod common;

use common::{devices, has_doubles, skip};
use oclprim::{
    Device, DeviceClass, Source, bf16,
    internals::testing::flushing,
    op::{Max, Min, Sum, Usage},
};

/// Each OpenCL device, with kernels of each class.
fn flushing_devices(mistaken: bool) -> Vec<(String, Device)> {
    let mut all = Vec::new();
    for (name, device) in devices() {
        for class in [DeviceClass::Cpu, DeviceClass::Gpu] {
            if let Some(flushing) = flushing(&device, class, mistaken).unwrap() {
                all.push((format!("{name}, {class:?}"), flushing));
            }
        }
    }
    all
}

/// Drivers may flush subnormals that they convert.
#[test]
fn subnormals_become_f64_on_devices_that_flush() {
    let x: Vec<f32> = (1..3000).map(f32::from_bits).collect();
    let y: Vec<bf16> = (1..100).map(bf16::from_bits).collect();
    let ones = vec![1f32; x.len()];
    let unit = 2f64.powi(-149);
    let (want, want_y) = (f64::from(2999 * 3000 / 2) * unit, f64::from(99 * 100 / 2) * 65_536.0 * unit);
    for (name, device) in flushing_devices(false) {
        if !has_doubles(&device) {
            skip(&name, "it has no fp64");
            continue;
        }
        let mut out = [0f64];
        let (wide, wide_y) = ((&x).cast::<f64>(), (&y).cast::<f64>());
        assert_eq!(device.reduce(wide, Sum.exact()).unwrap(), want, "{name}");
        assert_eq!(device.reduce(wide_y, Sum.exact()).unwrap(), want_y, "{name}: bf16");
        let products = (&x).cast::<f64>().times((&ones).cast());
        assert_eq!(device.reduce(products, Sum.exact()).unwrap(), want, "{name}: dot product");
        let offsets = [0u32, x.len() as u32];
        device.reduce_into(x.cast::<f64>().segments(&offsets), Sum.exact(), &mut out).unwrap();
        assert_eq!(out, [want], "{name}: segment");
        let reversed = (&x).cast::<f64>().reversed();
        assert_eq!(device.reduce(reversed, Sum.exact()).unwrap(), want, "{name}: reversed");
        // A sum that is subnormal itself.
        let sum = device.reduce(x.segments(&offsets), Sum.exact()).unwrap().to_vec().unwrap();
        assert_eq!(sum, [f32::from_bits(2999 * 3000 / 2)], "{name}: f32");
    }
}

/// Compilers may compare floats like a device that flushes subnormals.
#[test]
fn extremes_keep_subnormals_that_compilers_treat_as_zeros() {
    let x: Vec<f32> = (0..5000).map(|i| f32::from_bits(5000 - i)).collect();
    let minus: Vec<f32> = x.iter().map(|x| -x).collect();
    for (name, device) in flushing_devices(false) {
        let (least, most) = (device.reduce(&x, Min).unwrap(), device.reduce(&x, Max).unwrap());
        assert_eq!((least.to_bits(), most.to_bits()), (1, 5000), "{name}");
        let (least, most) = (device.reduce(&minus, Min).unwrap(), device.reduce(&minus, Max).unwrap());
        assert_eq!(((-least).to_bits(), (-most).to_bits()), (5000, 1), "{name}");
        assert_eq!(device.arg_min(&x).unwrap().index, 4999, "{name}");
        assert_eq!(device.arg_max(&minus).unwrap().index, 4999, "{name}");
        let (ends, found) = (device.min_max(&x).unwrap(), device.statistics(&minus).unwrap());
        assert_eq!((ends.min.index, ends.max.index), (4999, 0), "{name}");
        assert_eq!((ends.min.value.to_bits(), ends.max.value.to_bits()), (1, 5000), "{name}");
        assert_eq!((found.min.index, found.max.index), (0, 4999), "{name}");
    }
    // If the self-test wrongly finds that subnormals are kept, indices may be wrong, but are within bounds.
    for (name, device) in flushing_devices(true) {
        let ends = device.min_max(&x).unwrap();
        assert!(ends.min.index < x.len() && ends.max.index < x.len(), "{name}: {ends:?}");
    }
}
