//! The registry: specs of all primitives, and all ladders. Tests, benches and the program `oclprim` read nothing else.

use crate::{ProgramSpec, check::Spec, ladder::Ladder, tuning::Tuned};

/// Specs of all primitives.
///
/// ```
/// use oclprim::Device;
/// use oclprim_checks::{check::{Level, Verdict}, registry};
///
/// let spec = registry::specs().iter().find(|spec| spec.name() == "reduce").unwrap();
/// for case in spec.cases(Level::Tiny).iter().take(10) {
///     assert_eq!(case.run(&Device::cpu()).verdict, Verdict::Pass);
/// }
/// ```
pub fn specs() -> &'static [&'static dyn Spec] {
    &[
        #[cfg(feature = "reduce")]
        &crate::reduce::spec::Reduce,
        #[cfg(feature = "source")]
        &crate::source::spec::Sources,
        #[cfg(feature = "scan")]
        &crate::scan::spec::ScanSpec,
        #[cfg(feature = "select")]
        &crate::select::spec::Select,
        #[cfg(feature = "copy")]
        &crate::layout::copy::spec::Copy,
        #[cfg(feature = "iota")]
        &crate::iota::spec::Iota,
        #[cfg(feature = "histogram")]
        &crate::histogram::spec::Histogram,
        #[cfg(feature = "transpose")]
        &crate::layout::transpose::spec::Transpose,
        #[cfg(feature = "permute")]
        &crate::layout::permute::spec::Permute,
        #[cfg(feature = "sort")]
        &crate::sort::spec::Sort,
        #[cfg(feature = "merge")]
        &crate::merge::spec::Merge,
        #[cfg(feature = "topk")]
        &crate::topk::spec::TopK,
        #[cfg(feature = "random")]
        &crate::random::spec::Random,
        #[cfg(feature = "large")]
        &crate::large::spec::Large,
    ]
}

/// All programs that a device with these capabilities may build: those of the primitives and of the runtime.
///
/// ```
/// use oclprim::tuning::Tuned;
/// use oclprim_checks::registry::programs;
///
/// for (name, caps) in Tuned::samples() {
///     println!("{name}: {} programs", programs(&caps).len());
/// }
/// ```
pub fn programs(caps: &Tuned) -> Vec<ProgramSpec> {
    let own = specs().iter().flat_map(|spec| spec.programs(caps));
    let own = own.chain(oclprim::internals::runtime::opencl::programs(caps));
    own.collect()
}

/// Operations that together launch every kernel. Short runs check only these.
///
/// ```
/// use oclprim_checks::registry::A_FORM_OF_EACH_KERNEL;
///
/// assert!(A_FORM_OF_EACH_KERNEL.contains(&"merge sort"));
/// ```
pub const A_FORM_OF_EACH_KERNEL: &[&str] = &[
    "sum fixed",
    "sum exact",
    "sum exact of segments of hard numbers",
    "arg-max",
    "count",
    "statistics",
    "statistics of segments",
    "by vector sum",
    "by vector sum in groups",
    "sum of segments",
    "arg-min by key",
    "min-max of segments",
    "sum along an axis",
    "min-max along an axis",
    "moments along an axis",
    "moments of segments",
    "sum inclusive",
    "sum, without look-back",
    "sum exact inclusive of hard numbers",
    "partitioned, without look-back",
    "segmented sum by key",
    "segmented sum at offsets",
    "segmented max flagged",
    "sum of lines",
    "ids",
    "ids in many ranges",
    "edges",
    "edges weighted f32",
    "channels even",
    "ids of segments",
    "ids of segments in global memory",
    "ids along axes",
    "weighted f32 of segments",
    "4-byte elements",
    "batch, 4-byte elements",
    "in place, 4-byte elements",
    "in place by strips, 4-byte elements",
    "cast in f16",
    "copy 4 bytes",
    "fill 4 bytes",
    "gather 4 bytes by u32",
    "gather 3 bytes by u64",
    "scatter 4 bytes by u32",
    "scatter 3 bytes by u64",
    "strided copy 1 byte",
    "copy ranges 4 bytes",
    "reverse 4 bytes",
    "selected",
    "selected unordered",
    "partitioned",
    "run-length encoded",
    "non-trivial runs",
    "adjacent difference",
    "4-byte keys",
    "pairs of 4 and 4 bytes",
    "16-byte keys",
    "segments of 4-byte keys",
    "in place, 4-byte keys",
    "merge pairs with 4 bytes",
    "merge sort",
    "union",
    "lower bound",
    "first unsorted",
    "top-k of 4-byte keys",
    "top-k with indices",
    "top-k with indices, of many groups",
    "keys at given ranks",
    "key of a rank, of many groups",
    "quantiles of segments",
    "random",
    "random of few",
    "iota",
    "map of memory",
    "components of gathered",
    "components with structs",
];

/// All ladders.
///
/// ```
/// use oclprim::Device;
/// use oclprim_checks::{ladder::Request, registry};
///
/// let device = Device::best()?;
/// for ladder in registry::ladders() {
///     for step in ladder.rungs(&Request::default(), &device)? {
///         println!("{}: {}", step.name, step.step);
///     }
/// }
/// # Ok::<(), oclprim::Error>(())
/// ```
pub fn ladders() -> &'static [&'static dyn Ladder] {
    &[
        #[cfg(feature = "reduce")]
        &crate::reduce::ladder::ReduceLadder,
        #[cfg(feature = "transpose")]
        &crate::layout::transpose::ladder::TransposeLadder,
        #[cfg(feature = "histogram")]
        &crate::histogram::ladder::HistogramLadder,
        #[cfg(feature = "copy")]
        &crate::layout::copy::ladder::CopyLadder,
    ]
}

#[cfg(test)]
mod tests {
    use super::ladders;
    use crate::{Device, ErrorKind, ladder::Request};

    #[test]
    fn sizes_beyond_the_address_space_are_refused() {
        for ladder in ladders() {
            for shape in [(1 << 31, 1 << 32), (1 << 32, 1 << 32), (usize::MAX, 1), (1 << 60, 1)] {
                let request = Request { shape, n: shape.0.saturating_mul(shape.1), ..Request::default() };
                let steps = ladder.rungs(&request, &Device::cpu());
                let error = steps.err().unwrap_or_else(|| panic!("{} takes {shape:?}", ladder.name()));
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            }
        }
    }
}
