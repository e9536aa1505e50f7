//! Contents of a report, measured or read from records.

use std::collections::BTreeSet;

use oclprim::ElementType;
use oclprim_checks::{bench::Bench, check::Spec, registry};
use serde::{Deserialize, Serialize};

use crate::{
    bench::Line, check_results::Report as Checks, devices::Description, ladder_results::Report as Steps, submission::Os,
};

/// The primitives of the chart of growth; each has one benchmark case there.
pub(super) const GROWING: [&str; 8] = ["reduce", "scan", "select", "copy", "histogram", "transpose", "sort", "merge"];

/// Everything that the page shows. A section without figures is empty or `None`.
#[derive(Serialize, Deserialize)]
pub(super) struct Found {
    /// The program and its commit, if known. Records may come from several.
    pub(super) programs: BTreeSet<String>,
    /// The way and the time of the measurements, in a few words.
    pub(super) origin: String,
    pub(super) os: Option<Os>,
    pub(super) description: Description,
    /// True if caches were cold for the bandwidths; `None` without bandwidths.
    pub(super) cold: Option<bool>,
    pub(super) bandwidths: Vec<Line>,
    pub(super) growth: Vec<Series>,
    pub(super) ladders: Vec<Ladder>,
    pub(super) checks: Option<Checks>,
}

impl Found {
    /// The number of results that differ from the CPU's.
    pub(super) fn wrong(&self) -> usize {
        let measured = self.bandwidths.iter().chain(self.growth.iter().flat_map(|series| &series.points));
        let steps = self.ladders.iter().filter_map(|ladder| ladder.steps.as_ref()).flat_map(|steps| &steps.rungs);
        measured.filter(|line| line.wrong).count()
            + steps.filter(|step| step.wrong.is_some()).count()
            + self.checks.as_ref().map_or(0, |checks| checks.counts.failed)
    }
}

/// A ladder with its report, or the reason for the lack of one.
#[derive(Serialize, Deserialize)]
pub(super) struct Ladder {
    pub(super) name: String,
    pub(super) steps: Option<Steps>,
    pub(super) reason: Option<String>,
}

/// One operation at growing sizes.
#[derive(Serialize, Deserialize)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<Line>,
    /// The first size that was left out, and the reason.
    pub(super) stopped: Option<(usize, String)>,
}

/// One benchmark case of each primitive that has any: the first with elements of four bytes, or else the first of all.
pub(super) fn representatives() -> Vec<(&'static str, Bench)> {
    let first = |spec: &&'static dyn Spec| {
        let mut benches = spec.benches();
        let index = benches.iter().position(|bench| bench.element.size() == 4).unwrap_or(0);
        (index < benches.len()).then(|| (spec.name(), benches.swap_remove(index)))
    };
    registry::specs().iter().filter_map(first).collect()
}

/// An operation in words. Its primitive is not repeated if the operation starts with it.
pub(super) fn operation(primitive: &str, form: &str, element: ElementType) -> String {
    if form.starts_with(primitive) { format!("{form} {element}") } else { format!("{primitive} {form} {element}") }
}

/// A program in words.
pub(super) fn program(version: &str, commit: Option<&str>) -> String {
    format!("oclprim {version}{}", commit.map(|commit| format!(", commit {commit}")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitives_of_the_growth_chart_have_benchmarks() {
        let known: Vec<_> = representatives().into_iter().map(|(primitive, _)| primitive).collect();
        assert!(GROWING.iter().all(|primitive| known.contains(primitive)), "{known:?}");
    }

    #[test]
    fn operations_name_their_primitive_once() {
        assert_eq!(operation("iota", "iota", ElementType::U32), "iota u32");
        assert_eq!(operation("merge", "merge sort", ElementType::F32), "merge sort f32");
        assert_eq!(operation("copy", "aligned", ElementType::U32), "copy aligned u32");
    }

    #[test]
    fn every_primitive_with_benchmark_cases_has_a_bar() {
        let with = registry::specs().iter().filter(|spec| !spec.benches().is_empty()).count();
        assert!(with > 8 && representatives().len() == with);
    }
}
