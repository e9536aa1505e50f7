//! The page: one file, with its style and charts inside.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use oclprim::{Capabilities, ElementType};

use super::{
    chart::{Bar, Curve, bars, growth},
    found::{Found, Series, operation},
};
use crate::{
    bench::Line,
    check_results::{Counts, Report as Checks},
    devices::{capability_names, look_back},
    ladder_results::{Report as Steps, Step},
    output::{bytes, count, digits, percent, time},
};

/// The page loads nothing; styles within it are allowed.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub(super) fn of(found: &Found) -> Markup {
    let info = &found.description.info;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { "oclprim on " (info) }
                // The text of `page.css` cannot close the `style` element, because it has no `<`.
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                main {
                    h1 { "oclprim on " (info) }
                    (summary(found))
                    (device(found))
                    (bandwidths(found))
                    (growing(found))
                    (ladders(found))
                    (checks(found.checks.as_ref()))
                }
            }
        }
    }
}

/// A region that scrolls sideways, also by keys.
fn scroll(label: &str, inside: Markup) -> Markup {
    html! { div class="scroll" tabindex="0" role="region" aria-label=(label) { (inside) } }
}

/// The data of a chart, for readers who do not see the chart.
fn data(header: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        details {
            summary { "Data" }
            (scroll("Data", html! {
                table class="data" {
                    thead { tr { @for name in header { th scope="col" { (name) } } } }
                    tbody {
                        @for row in rows {
                            tr { @for (index, cell) in row.iter().enumerate() {
                                @if index == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            } }
                        }
                    }
                }
            }))
        }
    }
}

/// The text of a section without records.
fn absent(what: &str, command: &str) -> Markup {
    html! { p class="missing" { "The records have no " (what) ". " code { "oclprim " (command) } " writes them." } }
}

fn summary(found: &Found) -> Markup {
    let wrong = found.wrong();
    let programs = found.programs.iter().map(String::as_str);
    let os = found.os.as_ref().map(|os| os.line());
    let parts: Vec<_> = programs.chain(os.as_deref()).chain([found.origin.as_str()]).collect();
    html! {
        p class="soft" { (parts.join(" · ")) }
        p class=(if wrong == 0 { "verdict" } else { "verdict bad" }) {
            @if wrong == 0 { "Every result that was compared with the CPU's is right." }
            @else { (wrong) " results are wrong; the tables below name them." }
        }
    }
}

fn device(found: &Found) -> Markup {
    let (info, caps) = (&found.description.info, found.description.capabilities.as_ref());
    let mut facts = vec![("type", info.ty.name().to_owned())];
    let units = if info.opencl { "compute units" } else { "threads" };
    for (name, text) in [("vendor", &info.vendor), ("version", &info.version), ("driver", &info.driver)] {
        if info.opencl && !text.trim().is_empty() {
            facts.push((name, text.trim().to_owned()));
        }
    }
    facts.push((units, info.compute_units.to_string()));
    if info.global_bytes > 0 {
        let once = bytes(info.max_allocation_bytes);
        facts.push(("global memory", format!("{}, at most {once} in one allocation", bytes(info.global_bytes))));
    }
    facts.extend(caps.into_iter().flat_map(capabilities));
    facts.extend(found.description.error.iter().map(|error| ("error", error.clone())));
    html! {
        section id="device" {
            h2 { "Device" }
            dl { @for (name, text) in &facts { dt { (name) } dd { (text) } } }
            @if !info.opencl {
                p { "This is the CPU backend. It runs on threads of the host and needs no OpenCL driver." }
            }
        }
    }
}

fn capabilities(caps: &Capabilities) -> Vec<(&'static str, String)> {
    let groups: Vec<_> =
        caps.sub_groups.iter().map(|group| format!("{} of {}", group.backend.name(), group.width)).collect();
    let mut facts = vec![
        ("geometry", caps.class.name().to_owned()),
        ("work-group", format!("{} at most", caps.max_work_group)),
        ("local memory", bytes(caps.local_bytes as u64)),
        ("OpenCL C", caps.c_standard.clone()),
        (
            "sub-groups",
            format!("{} of {}; passed: {}", caps.sub_group.backend.name(), caps.sub_group.width, groups.join(", ")),
        ),
    ];
    for refused in &caps.refused {
        facts.push(("failed the self-test", format!("{} {}", refused.backend.name(), refused.reason)));
    }
    facts.push(("has", capability_names(caps, true)));
    facts.push(("lacks", capability_names(caps, false)));
    facts.push(("decoupled look-back", look_back(caps)));
    facts.extend(caps.notes.iter().map(|note| ("note", note.clone())));
    facts
}

fn figure(line: &Line) -> String {
    match (&line.error, line.gb_per_s) {
        (Some(error), _) if line.wrong => format!("WRONG: {error}"),
        (Some(error), _) => error.clone(),
        (None, Some(own)) => match line.copy_gb_per_s {
            Some(copy) => format!("{} GB/s, {}", digits(own), percent(own / copy)),
            None => format!("{} GB/s", digits(own)),
        },
        (None, None) => "-".into(),
    }
}

fn bandwidths(found: &Found) -> Markup {
    let name = |line: &Line| operation(&line.primitive, &line.form, line.element);
    let of_copy = |line: &Line| Some(100.0 * line.gb_per_s? / line.copy_gb_per_s?).filter(|_| !line.wrong);
    let bar = |line: &Line| {
        let value = of_copy(line);
        let text = match value {
            Some(_) => figure(line),
            None if line.wrong => "WRONG".into(),
            None => "not measured".into(),
        };
        Bar { label: name(line), value, text }
    };
    let all: Vec<_> = found.bandwidths.iter().map(bar).collect();
    if all.is_empty() {
        return html! {
            section id="bandwidth" { h2 { "Bandwidth against copy" } (absent("bandwidths", "bench --json")) }
        };
    }
    let (least, most) = found.bandwidths.iter().fold((usize::MAX, 0), |(a, b), line| (a.min(line.n), b.max(line.n)));
    let n = if least == most { count(least) } else { format!("{} to {}", count(least), count(most)) };
    let label = format!(
        "Bar chart: bandwidth of {} operations at {n} elements, in percent of the device's own copy, which is a line at 100",
        all.len()
    );
    let caches = match found.cold {
        Some(true) => " Caches are cold.",
        Some(false) => " Caches are warm.",
        None => "",
    };
    let rows: Vec<_> = found
        .bandwidths
        .iter()
        .map(|line| {
            let sample = line.sample.as_ref();
            let copy = line.copy_gb_per_s.map_or("-".into(), |copy| format!("{} GB/s", digits(copy)));
            let spread = sample.map_or("-".into(), |sample| format!("± {}", percent(sample.spread)));
            let wall = line.wall.as_ref().map_or("-".into(), |wall| time(wall.median));
            let median = sample.map_or("-".into(), |sample| time(sample.median));
            vec![name(line), count(line.n), median, spread, wall, copy, figure(line)]
        })
        .collect();
    html! {
        section id="bandwidth" {
            h2 { "Bandwidth against copy" }
            p {
                "One operation of each primitive at " (n) " elements. A bar is the bandwidth in percent of the device's own "
                "copy of as many bytes, measured in the same run. Bandwidth counts the bytes that an operation must at least read "
                "and write, so an operation of several passes is far below copy." (caches)
            }
            (scroll("Chart of bandwidths", bars(&label, "percent of the device's own copy", &all, (100.0, "copy"))))
            (data(&["operation", "n", "median", "spread", "wall", "copy", "bandwidth, of copy"], &rows))
        }
    }
}

fn growing(found: &Found) -> Markup {
    if found.growth.is_empty() {
        return html! { section id="growth" { h2 { "Growth" } (absent("sizes", "bench --n 2^10,2^16,2^22 --json")) } };
    }
    let points = |line: &Line| Some((line.n as f64, line.sample.as_ref()?.median));
    let curve = |series: &Series| Curve {
        label: series.name.clone(),
        points: series.points.iter().filter(|line| !line.wrong).filter_map(points).collect(),
    };
    let curves: Vec<_> = found.growth.iter().map(curve).collect();
    let sizes: BTreeMap<usize, ()> =
        found.growth.iter().flat_map(|series| &series.points).map(|line| (line.n, ())).collect();
    let ends = sizes.keys().next().zip(sizes.keys().next_back());
    let range = ends.map_or("no size".into(), |(least, most)| format!("{} to {}", count(*least), count(*most)));
    let label = format!("Line chart: time of {} operations over {range} elements, both axes logarithmic", curves.len());
    let names: Vec<_> = sizes.keys().map(|n| count(*n)).collect();
    let header: Vec<_> = ["operation"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let row = |series: &Series| {
        let cell = |n: &usize| {
            let line = series.points.iter().find(|line| line.n == *n);
            let sample = line.and_then(|line| line.sample.as_ref());
            let text = sample.map_or("-".into(), |sample| time(sample.median));
            if line.is_some_and(|line| line.wrong) { format!("WRONG, {text}") } else { text }
        };
        [series.name.clone()].into_iter().chain(sizes.keys().map(cell)).collect()
    };
    let rows: Vec<Vec<_>> = found.growth.iter().map(row).collect();
    let stopped: Vec<_> = found.growth.iter().filter_map(|s| Some((&s.name, s.stopped.as_ref()?))).collect();
    let clock = if found.description.info.opencl { "device's" } else { "host's" };
    html! {
        section id="growth" {
            h2 { "Growth" }
            p { "Time of one call by the " (clock) " clock, the median, over " (range) " elements. Both axes are logarithmic." }
            (scroll("Chart of growth", growth(&label, "elements", &curves)))
            (data(&header, &rows))
            @if !stopped.is_empty() {
                details {
                    summary { "Sizes that were left out" }
                    ul { @for (name, (n, reason)) in stopped { li { (name) ", from " (count(*n)) " on: " (reason) } } }
                }
            }
        }
    }
}

fn ladders(found: &Found) -> Markup {
    html! {
        section id="ladders" {
            h2 { "Ladders" }
            @if found.ladders.is_empty() && found.description.info.opencl {
                (absent("ladders", "ladder reduce --json"))
            } @else if found.ladders.is_empty() {
                p class="missing" {
                    "There are no ladders here. Their steps are OpenCL kernels, and this report is of the CPU backend, which runs "
                    "none. " code { "oclprim report --device opencl" } " measures them on an OpenCL device."
                }
            } @else {
                p { "Each ladder goes from a simple kernel to the crate's own, with one optimisation per step. The line is the device's own copy." }
                @for entry in &found.ladders {
                    h3 { (entry.name) }
                    @if let Some(steps) = &entry.steps { (ladder(steps)) }
                    @if let Some(reason) = &entry.reason { p class="missing" { "Not measured: " (reason) } }
                }
            }
        }
    }
}

fn ladder(report: &Steps) -> Markup {
    let text = |step: &Step| match (&step.wrong, step.gb_per_s) {
        (Some(_), _) => "WRONG".to_owned(),
        (None, Some(own)) => format!("{} GB/s", digits(own)),
        (None, None) => "not measured".into(),
    };
    let bar = |step: &Step| Bar { label: step.name.clone(), value: step.gb_per_s, text: text(step) };
    let all: Vec<_> = report.rungs.iter().map(bar).collect();
    let label = format!(
        "Bar chart: bandwidth of the {} steps of the ladder {}, {}, in GB/s, and the device's own copy as a line at {}",
        all.len(),
        report.ladder,
        report.request,
        digits(report.copy_gb_per_s)
    );
    html! {
        p class="soft" { (report.request) ", copy " (digits(report.copy_gb_per_s)) " GB/s" }
        @if let Some(warning) = &report.warning { p class="soft" { "Note: " (warning) "." } }
        (scroll("Chart of a ladder", bars(&label, "GB/s", &all, (report.copy_gb_per_s, "copy"))))
        details open {
            summary { "What each step changes" }
            (scroll("Steps", html! {
                table class="data" {
                    thead { tr {
                        @for name in ["step", "median", "GB/s", "of copy", "gain", "what it changes"] { th scope="col" { (name) } }
                    } }
                    tbody { @for step in &report.rungs { tr {
                        th scope="row" { (step.name) }
                        td class="number" { (step.sample.as_ref().map_or("-".into(), |sample| time(sample.median))) }
                        td class="number" { (step.gb_per_s.map_or("-".into(), digits)) }
                        td class="number" { (step.of_copy.map_or("-".into(), percent)) }
                        td class="number" { (step.gain.map_or("-".into(), |gain| format!("x {}", digits(gain)))) }
                        td class="wide" {
                            (step.step)
                            @if let Some(reason) = &step.unavailable { " [" (reason) "]" }
                            @if let Some(what) = &step.wrong { strong { " WRONG: " (what) } }
                        }
                    } } }
                }
            }))
        }
    }
}

/// Counts by primitive and type, over all operations, in the order of the registry.
fn by_primitive(checks: &Checks) -> Vec<(&str, BTreeMap<ElementType, Counts>)> {
    let mut all: Vec<(&str, BTreeMap<ElementType, Counts>)> = Vec::new();
    for form in &checks.forms {
        let index = all.iter().position(|(primitive, _)| *primitive == form.primitive).unwrap_or_else(|| {
            all.push((&form.primitive, BTreeMap::new()));
            all.len() - 1
        });
        for (element, counts) in &form.types {
            all[index].1.entry(*element).or_default().add_all(counts);
        }
    }
    all
}

fn cell(counts: Option<&Counts>, most: usize) -> Markup {
    let Some(Counts { passed, failed, skipped }) = counts else { return html! { td class="cell none" { "·" } } };
    let class = match (*failed, *passed) {
        (1.., _) => "cell fail",
        (_, 1..) => "cell pass",
        _ => "cell skip",
    };
    // The colour grows with the number of checks, on a logarithmic scale.
    let heat = 0.18 + 0.5 * ((1 + passed) as f64).ln() / ((1 + most) as f64).ln().max(1.0);
    html! {
        td class=(class) style={ "--heat:" (format!("{heat:.2}")) } {
            @if *failed > 0 { (failed) " failed" small { (passed) " passed" } }
            @else if *passed > 0 { (passed) }
            @if *skipped > 0 { small { (skipped) " skipped" } }
        }
    }
}

fn checks(checks: Option<&Checks>) -> Markup {
    let Some(checks) = checks else {
        return html! { section id="checks" { h2 { "Checks" } (absent("checks", "check --report")) } };
    };
    let all = by_primitive(checks);
    let most = all.iter().flat_map(|(_, types)| types.values()).map(|counts| counts.passed).max().unwrap_or(0);
    html! {
        section id="checks" {
            h2 { "Checks" }
            p {
                "Results of a check of level " (checks.level) " by primitive and element type: " (checks.counts.line()) ". A cell has the number "
                "of passed checks, and a stronger colour for more. Hatched cells were skipped, red ones have failures, and a dot means that "
                "there is no check."
            }
            (scroll("Checks by primitive and type", html! {
                table class="heat" aria-label="Number of passed checks by primitive and element type" {
                    thead { tr {
                        th scope="col" { "primitive" }
                        @for element in ElementType::ALL { th scope="col" { (element.name()) } }
                    } }
                    tbody { @for (primitive, types) in &all { tr {
                        th scope="row" { (primitive) }
                        @for element in ElementType::ALL { (cell(types.get(&element), most)) }
                    } } }
                }
            }))
            @if !checks.skips.is_empty() {
                details {
                    summary { "Reasons of skips" }
                    ul { @for (reason, count) in &checks.skips { li { (count) ": " (reason) } } }
                }
            }
            @if !checks.failures.is_empty() {
                h3 { "Failures" }
                ul { @for failure in checks.failures.iter().take(SHOWN) { li { (failure.line()) } } }
                @if checks.failures.len() > SHOWN {
                    p { "… and " (checks.failures.len() - SHOWN) " more; " code { "oclprim check --json" } " lists them all." }
                }
            }
        }
    }
}

/// Failures that the page lists.
const SHOWN: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_stand_out_and_skips_do_not_pass() {
        let of = |passed, failed, skipped| cell(Some(&Counts { passed, failed, skipped }), 10).into_string();
        assert!(of(3, 1, 0).contains("cell fail") && of(3, 1, 0).contains("1 failed"));
        assert!(of(3, 0, 2).contains("cell pass") && of(3, 0, 2).contains("2 skipped"));
        assert!(of(0, 0, 2).contains("cell skip"));
        assert!(cell(None, 10).into_string().contains("cell none"));
    }

    #[test]
    fn the_style_sheet_cannot_close_its_element() {
        assert!(!include_str!("page.css").contains('<'));
        assert!(!include_str!("page.css").contains("url(") && !include_str!("page.css").contains("@import"));
    }
}
