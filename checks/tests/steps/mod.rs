//! Running ladders, for the tests of ladders.

use oclprim::Device;
use oclprim_checks::{check::Failure, ladder::Request, registry};

use crate::common::skip;

/// Runs the steps of a ladder whose names fit. Verification of each step fails before the run and passes after each of
/// two runs; the second starts from the memory that the first wrote. At least one name must fit, and an OpenCL device
/// must run one.
pub(crate) fn run_steps(
    ladder: &str,
    (name, device): &(String, Device),
    request: &Request,
    fits: impl Fn(&str) -> bool,
) -> usize {
    let ladder = registry::ladders().iter().find(|other| other.name() == ladder).expect("the registry has it");
    let steps = ladder.rungs(request, device).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (mut chosen, mut ran) = (0, 0);
    for step in steps.into_iter().filter(|step| fits(step.name)) {
        chosen += 1;
        if let Some(reason) = &step.unavailable {
            if !device.is_cpu() {
                skip(&format!("{name}: {} ladder, {}", ladder.name(), step.name), reason);
            }
            continue;
        }
        let what = || {
            let Request { n, shape: (rows, cols), block, element, bins, .. } = request;
            format!("{name}: {}, n = {n}, {rows} x {cols}, block {block:?}, {element}, {bins} bins", step.name)
        };
        let mut case = (step.prepare)(device).unwrap_or_else(|error| panic!("{}: {error}", what()));
        for round in 0..2 {
            case.reset().unwrap();
            assert!(matches!(case.verify(), Err(Failure::Mismatch(_))), "{}: passed before it ran", what());
            case.run().unwrap_or_else(|error| panic!("{}: {error}", what()));
            case.verify().unwrap_or_else(|failure| panic!("{}, round {round}: {failure:?}", what()));
        }
        ran += 1;
    }
    assert!(chosen > 0, "the {} ladder has no such step", ladder.name());
    assert!(ran > 0 || device.is_cpu(), "{name}: none of {chosen} steps ran");
    ran
}
