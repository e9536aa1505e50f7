//! Running ladders, for the tests of ladders.

use oclprim::Device;
use oclprim_checks::{check::Failure, ladder::Request, registry};

use crate::common::skip;

/// Runs the steps of a ladder whose names fit. Verification of each step fails before the run and passes after each of two
/// runs; the second starts from the memory that the first wrote. At least one name must fit, and an OpenCL device must run one.
pub(crate) fn climb(
    ladder: &str,
    (name, device): &(String, Device),
    request: &Request,
    fits: impl Fn(&str) -> bool,
) -> usize {
    let ladder = registry::ladders().iter().find(|other| other.name() == ladder).expect("the registry has it");
    let rungs = ladder.rungs(request, device).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (mut chosen, mut climbed) = (0, 0);
    for rung in rungs.into_iter().filter(|rung| fits(rung.name)) {
        chosen += 1;
        if let Some(reason) = &rung.unavailable {
            if !device.is_cpu() {
                skip(&format!("{name}: {} ladder, {}", ladder.name(), rung.name), reason);
            }
            continue;
        }
        let what = || {
            let Request { n, shape: (rows, cols), block, element, bins, .. } = request;
            format!("{name}: {}, n = {n}, {rows} x {cols}, block {block:?}, {element}, {bins} bins", rung.name)
        };
        let mut climb = (rung.prepare)(device).unwrap_or_else(|error| panic!("{}: {error}", what()));
        for round in 0..2 {
            (climb.reset)().unwrap();
            assert!(matches!((climb.verify)(), Err(Failure::Mismatch(_))), "{}: passed before it ran", what());
            (climb.run)().unwrap_or_else(|error| panic!("{}: {error}", what()));
            (climb.verify)().unwrap_or_else(|failure| panic!("{}, round {round}: {failure:?}", what()));
        }
        climbed += 1;
    }
    assert!(chosen > 0, "the {} ladder has no such step", ladder.name());
    assert!(climbed > 0 || device.is_cpu(), "{name}: none of {chosen} steps ran");
    climbed
}
