//! Benchmarks of every [`Spec`] by the host's clock: `cargo bench -p oclprim-checks -- "scan sum"`.
//!
//! They run on the device that `OCLPRIM_DEVICE` selects, or else on the best one.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use oclprim::Device;
use oclprim_checks::{check::Spec, registry};

/// Numbers of elements: large enough to show the rate, small enough to be quick.
const SIZES: [usize; 2] = [1 << 16, 1 << 20];

/// Measures one primitive: the host's time to enqueue its commands and wait for them. `oclprim bench` reads the device's clock.
fn run(device: &Device, spec: &dyn Spec) {
    let primitive = spec.name();
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
        .configure_from_args();
    for bench in spec.benches() {
        let mut group = criterion.benchmark_group(format!("{primitive} {} {}", bench.form, bench.element));
        for n in SIZES {
            let mut climb = match (bench.prepare)(device, n) {
                Ok(climb) => climb,
                Err(error) => {
                    eprintln!("{primitive} {} {} is skipped: {error}", bench.form, bench.element);
                    break;
                }
            };
            let mut round = || {
                climb.reset()?;
                climb.run()?;
                device.finish()
            };
            round().expect("the primitive runs");
            group.throughput(Throughput::Bytes((bench.bytes)(n)));
            group.bench_function(BenchmarkId::from_parameter(n), |bencher| {
                bencher.iter(|| round().expect("the primitive runs"));
            });
            climb.verify().unwrap_or_else(|failure| panic!("{primitive} {}: {failure:?}", bench.form));
        }
        group.finish();
    }
    criterion.final_summary();
}

fn main() {
    let device = Device::best().expect("OCLPRIM_DEVICE fits a device");
    for spec in registry::specs() {
        run(&device, *spec);
    }
}
