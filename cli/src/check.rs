//! `oclprim check`

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write},
    panic,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use clap::{Args, builder::PossibleValuesParser};
use comfy_table::Cell;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use oclprim::{Capabilities, Device, DeviceClass, DeviceType, ElementType, RefusedSubGroup, SubGroupBackend, Tuning};
use oclprim_checks::{
    check::{Case, Level, Spec, Verdict, few_builds},
    registry::{self, A_FORM_OF_EACH_KERNEL},
};

use crate::{
    check_results::{Counts, Form, Report, level_name},
    check_workers::{self, All},
    devices::{Description, no_driver},
    output::{BOLD, RED, STDOUT, Standard, Stop, Style, digits, distinct, json, paint, table},
    submission::{Run, Submission},
};

const EXAMPLES: &str = "\
Examples:
  oclprim check                        every device, in about a minute
  oclprim check --full --device gpu    every size, type and data set on one device
  oclprim check --only reduce --json   JSON for other programs
  oclprim check --full --part 1/4      a quarter; other processes or machines do the rest
  oclprim check --full --report device.json    a file to send in, without paths, user names and host names

The CPU backend is compared with plain loops, and OpenCL devices are compared with the CPU backend. An OpenCL device \
that is a CPU also runs the tiny checks in the geometry of a GPU, each operation with one type. With each further \
sub-group back end it runs only operations whose work-items exchange values. With --full it runs the quick checks in \
that geometry, with every type and each sub-group back end. Checks of a back end that failed the self-test count as \
skipped. --quick ends in about a minute; several processes share its checks. If builds take too long, it skips \
checks and counts them, and a second run skips fewer. The exit code is 1 if a result is wrong, or if some processes of \
--quick end early; if all do, one process runs the checks again. If a check panics, it counts as failed. But a program \
that was built in the repository with --release ends at the panic, with the exit code 101.";

/// The name of the running check.
static RUNNING: Mutex<Option<String>> = Mutex::new(None);

/// Returns the name of the running check.
pub(crate) fn running() -> Option<String> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Runs checks, and prints no message for a panic: it is a failure, and the report has its message. If panics abort,
/// the first one ends the program, and the hook of `main` names the check.
fn panics_are_failures<R>(checks: impl FnOnce() -> R) -> R {
    if cfg!(panic = "abort") {
        return checks();
    }
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = checks();
    panic::set_hook(hook);
    result
}

/// Compare results with a reference, for every primitive and type, on every device.
#[derive(Args, Default)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {
    /// Check the edge cases of every operation and type, as many as a minute allows; the default.
    #[arg(long, group = "level")]
    quick: bool,
    /// Check every operation, type, size, data set and offset.
    #[arg(long, group = "level")]
    full: bool,
    /// Check few and small sizes, for interpreters such as Oclgrind.
    #[arg(long, group = "level")]
    tiny: bool,
    /// Device: an index of `oclprim devices`, `cpu`, `gpu`, `opencl`, or a part of its name. May be given several times; default:
    /// every device.
    #[arg(long, value_name = "SELECTOR")]
    device: Vec<String>,
    /// Check only this primitive. May be given several times.
    #[arg(long, value_name = "PRIMITIVE", value_parser = primitives())]
    only: Vec<String>,
    /// Leave out this primitive. May be given several times.
    #[arg(long, value_name = "PRIMITIVE", value_parser = primitives())]
    except: Vec<String>,
    /// Check only operations whose name contains this text, such as `segments`.
    #[arg(long, value_name = "TEXT")]
    form: Option<String>,
    /// Check only a few operations, chosen so that every kernel is launched at least once.
    #[arg(long)]
    each_kernel: bool,
    /// Check only the K-th of N parts, so that N processes or machines share the work. All checks of one operation with one type
    /// are in one part.
    #[arg(long, value_name = "K/N", value_parser = part)]
    part: Option<(usize, usize)>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Also write a report to this file: versions, devices, counts, reasons and failures. It has
    /// no paths, user names or host names, so you can send it in.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the operations and types that took longest, with their times.
    #[arg(long, hide = true)]
    times: bool,
    /// Run as a worker of another process, which started this many milliseconds ago.
    #[arg(long, hide = true)]
    worker: Option<u64>,
}

/// The names of all primitives, for clap.
pub(crate) fn primitives() -> PossibleValuesParser {
    primitive_names().into()
}

/// The names of all primitives, in the order of the registry.
pub(crate) fn primitive_names() -> Vec<&'static str> {
    registry::specs().iter().map(|spec| spec.name()).collect()
}

/// Parses `K/N`, for clap.
fn part(text: &str) -> Result<(usize, usize), String> {
    let part = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    part.filter(|(k, n)| (1..=*n).contains(k)).ok_or_else(|| "expected K/N with K from 1 to N, such as 2/4".to_owned())
}

/// A device in one geometry, and what to check on it.
struct Target {
    label: String,
    /// The device's index among the descriptions.
    described: usize,
    device: Device,
    level: Level,
    /// True for the device's own geometry; its report is printed in full.
    own: bool,
    /// True if the driver may be at fault, as in [`Report`].
    doubtful: bool,
    /// `Some` keeps only the cases of [`few_builds`], because a build takes up to 10 s. `Some(true)`, for the device's
    /// own geometry and the first sub-group back end, keeps more cases than `Some(false)`.
    few_builds: Option<bool>,
    /// The reason for which all checks are skipped: the sub-groups failed the self-test.
    refused: Option<String>,
}

/// The devices to check, the reports of devices that do not work, and a description of each device.
struct Targets {
    targets: Vec<Target>,
    unusable: Vec<Report>,
    descriptions: Vec<Description>,
}

/// `--quick` starts no check after this time, so that it ends in about a minute even if every kernel must be built.
const STARTED_WITHIN: Duration = Duration::from_secs(50);

/// The time after which no check starts, and the reason for skipping the others.
type Patience = (Instant, &'static str);

impl Check {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        // A worker counts from the start of the process that has started it.
        let spent = Duration::from_millis(self.worker.unwrap_or(0));
        let started = Instant::now().checked_sub(spent).unwrap_or_else(Instant::now);
        let Targets { targets, unusable, descriptions } = self.targets()?;
        if self.worker.is_none() && targets.iter().all(|target| self.cases(target).is_empty()) {
            return Err(Stop::usage("nothing to check: no operation of these primitives has such a name"));
        }
        let mut reports = unusable;
        if let Some(path) = &self.report {
            distinct(&[("standard output", Path::new(STDOUT)), ("--report", path)])?;
        }
        // Writes the report once before the checks: a file that cannot be written must not cost a full check.
        self.submit(&descriptions, &reports, started, false)?;
        let bar = self.progress(&targets);
        if let Some(shared) = self.share(&targets, started, &bar) {
            for report in shared {
                if !self.json {
                    bar.suspend(|| print(&report, self.times, out))?;
                }
                reports.push(report);
            }
            self.submit(&descriptions, &reports, started, true)?;
            bar.finish_and_clear();
            return self.conclude(reports, out);
        }
        panics_are_failures(|| -> Result<(), Stop> {
            for (index, target) in targets.iter().enumerate() {
                let patience = (self.level() == Level::Quick).then(|| {
                    // The devices' own geometries come first, and share the remaining time equally.
                    let sharing = targets[index..].iter().filter(|target| target.own).count().max(1);
                    let reason =
                        "not started: --quick ends in about a minute; if builds took the time, a second run does more";
                    let left = STARTED_WITHIN.saturating_sub(started.elapsed());
                    (Instant::now() + left / sharing as u32, reason)
                });
                let report = self.check(target, patience, &bar);
                if !self.json && self.worker.is_none() {
                    bar.suspend(|| print(&report, self.times, out))?;
                }
                reports.push(report);
                self.submit(&descriptions, &reports, started, index + 1 == targets.len())?;
                if self.report.is_none() && Standard::is_closed() {
                    break;
                }
            }
            Ok(())
        })?;
        bar.finish_and_clear();
        self.conclude(reports, out)
    }

    /// The number of processes that share the checks. Only `--quick` has several, since its time is limited. PoCL 5 and
    /// 6 may miscompile a kernel in one process and not in another, so one process checks them.
    fn processes(&self, targets: &[Target]) -> usize {
        let alone = self.level() != Level::Quick || self.part.is_some() || self.worker.is_some() || self.times;
        let infos = targets.iter().map(|target| target.device.info()).filter(|info| info.opencl);
        match infos.map(|info| info.global_bytes).min() {
            Some(bytes) if !alone && targets.iter().all(|target| !target.doubtful) => check_workers::processes(bytes),
            _ => 1,
        }
    }

    /// Runs the checks in several processes, and returns a report for each target. `None` if one process does better,
    /// or if none of the processes returned a report: some devices serve only one process.
    fn share(&self, targets: &[Target], started: Instant, bar: &ProgressBar) -> Option<Vec<Report>> {
        let processes = self.processes(targets);
        if processes == 1 {
            return None;
        }
        let mut arguments = vec!["--quick".to_owned(), format!("--worker={}", started.elapsed().as_millis())];
        let lists = [("--device", &self.device), ("--only", &self.only), ("--except", &self.except)];
        let lists = lists.iter().flat_map(|(name, values)| values.iter().map(move |value| (*name, value)));
        for (name, value) in lists.chain(self.form.iter().map(|text| ("--form", text))) {
            arguments.push(format!("{name}={value}"));
        }
        arguments.extend(self.each_kernel.then(|| "--each-kernel".to_owned()));
        let parts = check_workers::share(&arguments, processes, || bar.inc(1));
        if parts.iter().all(Result::is_err) {
            bar.reset();
            return None;
        }
        let reasons: Vec<_> = parts.iter().filter_map(|part| part.as_ref().err().cloned()).collect();
        Some(self.join(targets, parts.into_iter().flatten(), &reasons))
    }

    /// Joins the reports of several processes. If checks of a target are in no report, they count as one failure, for
    /// the given reasons.
    fn join(&self, targets: &[Target], parts: impl Iterator<Item = Vec<Report>>, reasons: &[String]) -> Vec<Report> {
        let mut reports: Vec<_> = targets.iter().map(Target::report).collect();
        for part in parts {
            // All processes report devices of equal names in the same order. If a device does not work in a process,
            // that process reports a failed self-test.
            let mut open: Vec<_> = reports.iter_mut().collect();
            for found in part {
                let same = |report: &&mut Report| report.device == found.device && report.level == found.level;
                let Some(index) = open.iter().position(same) else { continue };
                let report = open.remove(index);
                let seconds = report.seconds.max(found.seconds);
                report.merge(found);
                report.seconds = seconds;
            }
        }
        for (report, target) in reports.iter_mut().zip(targets) {
            let (mut order, mut expected) = (HashMap::new(), 0);
            for (primitive, case) in self.cases(target) {
                let next = order.len();
                order.entry(format!("{primitive} {}", case.form)).or_insert(next);
                expected += 1;
            }
            report.forms.sort_by_key(|form| order.get(&form.name).copied());
            let Counts { passed, failed, skipped } = report.counts;
            if passed + failed + skipped != expected {
                let lost = expected.abs_diff(passed + failed + skipped);
                let reason =
                    if reasons.is_empty() { "the device failed in a process".into() } else { reasons.join("; ") };
                let case = Case::new("processes", ElementType::U32, format!("{lost} checks"), "no", 0, |_| Ok(()));
                report.add("check", case, Verdict::Fail(reason), 0.0);
            }
        }
        reports
    }

    /// Writes the current results to the file of `--report`.
    fn submit(
        &self,
        descriptions: &[Description],
        reports: &[Report],
        started: Instant,
        complete: bool,
    ) -> Result<(), Stop> {
        let Some(path) = &self.report else { return Ok(()) };
        let mut limits = BTreeMap::new();
        for (name, values) in [("only", &self.only), ("except", &self.except)] {
            limits.extend((!values.is_empty()).then(|| (name, values.join(", "))));
        }
        limits.extend(self.form.as_ref().map(|text| ("form", text.clone())));
        limits.extend(self.each_kernel.then(|| ("each-kernel", "yes".to_owned())));
        limits.extend(self.part.map(|(k, n)| ("part", format!("{k}/{n}"))));
        let run = Run { level: level_name(self.level()), limits, seconds: started.elapsed().as_secs_f64(), complete };
        Submission::new(run, descriptions, reports).save(path)
    }

    /// Checks a device in its own geometry. After `seconds` no case starts.
    pub(crate) fn of_device(device: Device, level: Level, seconds: Duration, bar: &ProgressBar) -> Report {
        let check = Self { tiny: level == Level::Tiny, full: level == Level::Full, ..Self::default() };
        let target = Target::own(device.info().to_string(), 0, device, level);
        let patience = (Instant::now() + seconds, "not started: the time for checks was over");
        panics_are_failures(|| check.check(&target, Some(patience), bar))
    }

    fn level(&self) -> Level {
        match (self.tiny, self.full) {
            (true, _) => Level::Tiny,
            (_, true) => Level::Full,
            _ => Level::Quick,
        }
    }

    fn targets(&self) -> Result<Targets, Stop> {
        let (mut targets, mut unusable, mut descriptions) = (Vec::new(), Vec::new(), Vec::new());
        if self.device.is_empty() {
            for (index, info) in Device::list().iter().enumerate() {
                let device = Device::at(index).and_then(|device| device.capabilities().map(|_| device));
                descriptions.push(Description::new(info.clone(), &device));
                match device {
                    Ok(device) => self.add_targets(index, device, &mut targets)?,
                    Err(error) => unusable.push(Report::of_unusable(info.to_string(), index, &error)),
                }
            }
        } else {
            for (index, selector) in self.device.iter().enumerate() {
                let device = Device::open(selector)?;
                let info = device.info();
                let device = Ok(device);
                descriptions.push(Description::new(info, &device));
                self.add_targets(index, device?, &mut targets)?;
            }
        }
        targets.sort_by_key(|target| !target.own);
        Ok(Targets { targets, unusable, descriptions })
    }

    fn add_targets(&self, described: usize, device: Device, targets: &mut Vec<Target>) -> Result<(), Stop> {
        let level = self.level();
        let label = device.info().to_string();
        let caps = device.capabilities()?;
        targets.push(Target::own(label.clone(), described, device.clone(), level));
        let Some(caps) = caps else { return Ok(()) };
        if device.info().ty != DeviceType::Cpu {
            return Ok(());
        }
        let full = level == Level::Full;
        let level = if full { Level::Quick } else { Level::Tiny };
        let info = device.info();
        let doubtful = info.platform == "Portable Computing Language" && info.driver.starts_with(['5', '6']);
        for (index, (backend, refused)) in geometries(&caps).into_iter().enumerate() {
            let label = format!("{label}, as a GPU with sub-groups `{}`", backend.name());
            let device = match refused {
                Some(_) => device.clone(),
                None => device.with_tuning(Tuning::default().class(DeviceClass::Gpu).sub_groups(backend))?,
            };
            let few_builds = (!full).then_some(index == 0);
            targets.push(Target { label, described, device, level, own: false, doubtful, few_builds, refused });
        }
        Ok(())
    }

    /// The cases for a target, with their primitives.
    fn cases(&self, target: &Target) -> Vec<(&'static str, Case)> {
        let named = |list: &[String], name: &str| list.iter().any(|one| one == name);
        let wanted = |name| (self.only.is_empty() || named(&self.only, name)) && !named(&self.except, name);
        let cases = |spec: &&'static dyn Spec| {
            let mut cases = spec.cases(target.level);
            if let Some(first) = target.few_builds {
                few_builds(&mut cases, first);
            }
            cases.retain(|case| self.form.as_ref().is_none_or(|part| case.form.contains(part.as_str())));
            cases.retain(|case| !self.each_kernel || A_FORM_OF_EACH_KERNEL.contains(&&*case.form));
            cases.into_iter().map(|case| (spec.name(), case))
        };
        let cases: Vec<_> = registry::specs().iter().filter(|spec| wanted(spec.name())).flat_map(cases).collect();
        let cases = if let Some(part) = self.part { part_of(cases, part) } else { cases };
        if self.level() == Level::Quick { one_type_after_another(cases) } else { cases }
    }

    fn progress(&self, targets: &[Target]) -> ProgressBar {
        let total: usize = targets.iter().map(|target| self.cases(target).len()).sum();
        let template = "{bar:30} {pos}/{len} {elapsed} {wide_msg}";
        let style = ProgressStyle::with_template(template).expect("a constant template");
        // Draws on standard error, and only on a terminal.
        let bar = ProgressBar::new(total as u64).with_style(style);
        if self.worker.is_some() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar
    }

    /// After the time of `patience` no case starts.
    fn check(&self, target: &Target, patience: Option<Patience>, bar: &ProgressBar) -> Report {
        let start = Instant::now();
        let mut report = target.report();
        let mut last_drawn = Instant::now();
        for (primitive, case) in self.cases(target) {
            if last_drawn.elapsed() > Duration::from_millis(100) {
                bar.set_message(format!("{}: {primitive} {} {}", target.label, case.form, case.element));
                last_drawn = Instant::now();
            }
            if let Some(reason) = &target.refused {
                report.add(primitive, case, Verdict::Skip(reason.clone()), 0.0);
            } else if let Some((_, reason)) = patience.filter(|(until, _)| Instant::now() > *until) {
                report.add(primitive, case, Verdict::Skip(reason.into()), 0.0);
            } else {
                *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(format!("{primitive} {} {} {} on {}", case.form, case.element, case.shape, target.label));
                let outcome = case.run(&target.device);
                report.add(primitive, case, outcome.verdict, outcome.seconds);
            }
            if self.worker.is_some() && check_workers::tell(&mut io::stdout()).is_err() {
                // The parent process has ended, so no process reads the results.
                break;
            }
            bar.inc(1);
        }
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = None;
        report.seconds = start.elapsed().as_secs_f64();
        report
    }

    fn conclude(&self, reports: Vec<Report>, out: &mut dyn Write) -> Result<(), Stop> {
        let mut total = Counts::default();
        reports.iter().for_each(|report| total.add_all(&report.counts));
        if self.worker.is_some() {
            return check_workers::give(&All { total, devices: reports }, out);
        }
        if self.json {
            let wrong = total.failed;
            out.write_all(&json(&All { total, devices: reports })?)?;
            return if wrong == 0 { Ok(()) } else { Err(Stop::mismatch(format!("{wrong} checks failed"))) };
        }
        // The smallest failing case is printed first: it is the easiest to debug.
        let mut failures: Vec<_> = reports.iter().flat_map(|report| &report.failures).collect();
        failures.sort_by_key(|case| (case.n, case.element.size()));
        if let Some((smallest, rest)) = failures.split_first() {
            const SHOWN: usize = 10;
            let heading = paint("The smallest failing case:", RED, &io::stdout());
            writeln!(out, "{heading}\n  {}", smallest.line())?;
            for case in rest.iter().take(SHOWN) {
                writeln!(out, "  {}", case.line().lines().next().unwrap_or_default())?;
            }
            if rest.len() > SHOWN {
                writeln!(out, "  … and {} more; --json lists them all", rest.len() - SHOWN)?;
            }
            if reports.iter().all(|report| report.doubtful || report.counts.failed == 0) {
                writeln!(
                    out,
                    "  PoCL 5 and 6 sometimes miscompile kernels in the geometry of a GPU, differently in each process. Try again \
                     with an empty POCL_CACHE_DIR, or with scripts/keep-freed.c"
                )?;
            }
            writeln!(out)?;
        }
        if self.device.is_empty() && !Device::list().iter().any(|info| info.opencl) {
            writeln!(out, "{}", no_driver())?;
        }
        writeln!(out, "{}", total.line())?;
        if total.failed == 0 { Ok(()) } else { Err(Stop::mismatch(format!("{} checks failed", total.failed))) }
    }
}

impl Target {
    /// A target with the device's own geometry.
    fn own(label: String, described: usize, device: Device, level: Level) -> Self {
        let checker = device.capabilities().is_ok_and(|caps| caps.is_some_and(|caps| caps.checker));
        // A CPU's own geometry has one work-item per work-group, so a checker finds no races in it. One type of each
        // operation is enough there.
        let few_builds = (level == Level::Tiny && checker).then_some(true);
        Self { label, described, device, level, own: true, doubtful: false, few_builds, refused: None }
    }

    /// A report without results.
    fn report(&self) -> Report {
        let mut report = Report::new(self.label.clone(), self.level, self.own);
        report.described = self.described;
        report.doubtful = self.doubtful;
        report
    }
}

/// The sub-group back ends with which a CPU is checked in the geometry of a GPU. `Some` has the reason why the back end
/// failed the self-test.
fn geometries(caps: &Capabilities) -> Vec<(SubGroupBackend, Option<String>)> {
    let passed = caps.sub_groups.iter().map(|group| (group.backend, None));
    let refused = caps.refused.iter().map(|RefusedSubGroup { backend, reason, .. }| {
        (*backend, Some(format!("sub-groups `{}` failed the self-test {reason}", backend.name())))
    });
    passed.chain(refused).collect()
}

/// The cases of every `n`-th pair of operation and type, from the `k`-th on.
fn part_of(cases: Vec<(&'static str, Case)>, (k, n): (usize, usize)) -> Vec<(&'static str, Case)> {
    let mut known = HashMap::new();
    let mut mine = |primitive: &'static str, case: &Case| {
        let next = known.len();
        *known.entry((primitive, case.form.clone(), case.element)).or_insert(next) % n == k - 1
    };
    cases.into_iter().filter(|(primitive, case)| mine(primitive, case)).collect()
}

/// Sorts the cases: each operation with its first type, then each with its second type, and so on. So a check that runs
/// out of time covers as many operations as possible.
fn one_type_after_another(cases: Vec<(&'static str, Case)>) -> Vec<(&'static str, Case)> {
    let mut types: HashMap<(&str, String), Vec<ElementType>> = HashMap::new();
    let mut ranked = Vec::with_capacity(cases.len());
    for (primitive, case) in cases {
        let known = types.entry((primitive, case.form.clone())).or_default();
        let rank = known.iter().position(|element| *element == case.element).unwrap_or(known.len());
        if rank == known.len() {
            known.push(case.element);
        }
        ranked.push((rank, (primitive, case)));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, case)| case).collect()
}

fn print(report: &Report, times: bool, out: &mut dyn Write) -> Result<(), Stop> {
    let Report { device, level, seconds, .. } = report;
    let name = if report.own { paint(device, BOLD, &io::stdout()) } else { device.clone() };
    writeln!(out, "{name} ({level}, {} s): {}", digits(*seconds), report.counts.line())?;
    if report.own {
        let types: Vec<_> = ElementType::ALL.into_iter().map(ElementType::name).collect();
        let header: Vec<_> = [""].into_iter().chain(types).collect();
        let mut table = table(Style::Plain, &header, 1..header.len());
        for Form { name, types, .. } in &report.forms {
            let cell = |element| types.get(&element).map_or(Cell::new(""), Counts::cell);
            table.add_row([Cell::new(name)].into_iter().chain(ElementType::ALL.into_iter().map(cell)));
        }
        writeln!(out, "{}", table.trim_fmt())?;
    }
    for (reason, count) in &report.skips {
        writeln!(out, "  {count} skipped: {reason}")?;
    }
    if times {
        let mut slowest: Vec<_> = report.slowest.iter().collect();
        slowest.sort_by(|a, b| b.1.total_cmp(a.1));
        for (what, seconds) in slowest.into_iter().take(25) {
            writeln!(out, "  {seconds:7.3} s {what}")?;
        }
    }
    Ok(writeln!(out)?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn cases_run_one_type_after_another() {
        use ElementType::{F32, I32, U8};
        let case = |form: &str, element| ("reduce", Case::new(form, element, "", "", 0, |_: &Device| Ok(())));
        let cases = vec![case("sum", U8), case("sum", I32), case("sum", U8), case("max", F32), case("max", I32)];
        let order: Vec<_> =
            one_type_after_another(cases).into_iter().map(|(_, case)| (case.form, case.element)).collect();
        let wanted = [("sum", U8), ("sum", U8), ("max", F32), ("sum", I32), ("max", I32)];
        assert_eq!(order, wanted.map(|(form, element)| (form.to_owned(), element)));
    }

    #[test]
    fn parts_cover_all_cases() {
        use ElementType::{F32, I32, U8};
        let all = || {
            let case = |form: &str, element| ("reduce", Case::new(form, element, "", "", 0, |_: &Device| Ok(())));
            vec![case("sum", U8), case("sum", I32), case("sum", U8), case("max", F32)]
        };
        let part =
            |k| part_of(all(), (k, 2)).into_iter().map(|(_, case)| (case.form, case.element)).collect::<Vec<_>>();
        let named = |list: &[(&str, ElementType)]| list.iter().map(|(f, e)| ((*f).to_owned(), *e)).collect::<Vec<_>>();
        assert_eq!(part(1), named(&[("sum", U8), ("sum", U8), ("max", F32)]));
        assert_eq!(part(2), named(&[("sum", I32)]));
        assert!(super::part("0/2").is_err() && super::part("3/2").is_err() && super::part("2").is_err());
    }

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        check: Check,
    }

    #[test]
    fn refused_sub_groups_are_counted() {
        let check = Cli::parse_from(["", "--tiny", "--device", "cpu", "--only", "copy"]).check;
        let mut targets = check.targets().expect("the CPU").targets;
        let (_, mut caps) = Capabilities::samples().swap_remove(0);
        let refused = serde_json::json!([{ "backend": "khr", "reason": "with CL3.0: lanes are not in order" }]);
        caps.refused = serde_json::from_value(refused).expect("as it is kept");
        let reason = "sub-groups `khr` failed the self-test with CL3.0: lanes are not in order";
        let mut geometries = geometries(&caps);
        let (backend, refused) = geometries.pop().expect("those that were refused come last");
        assert_eq!((backend, refused.as_deref()), (SubGroupBackend::Khr, Some(reason)));
        assert!(geometries.iter().all(|(_, refused)| refused.is_none()), "{geometries:?}");
        targets[0].refused = refused;
        let report = check.check(&targets[0], None, &ProgressBar::hidden());
        let Counts { passed, failed, skipped } = report.counts;
        assert!(passed == 0 && failed == 0 && skipped == check.cases(&targets[0]).len(), "{}", report.counts.line());
        assert_eq!(report.skips, BTreeMap::from([(reason.to_owned(), skipped)]));
    }

    /// Each process checks a part of every target. A part that is lost is a failure.
    #[test]
    fn reports_of_processes_join_by_device() {
        use ElementType::{F32, U8};
        let check = Cli::parse_from(["", "--tiny", "--device", "cpu", "--only", "iota"]).check;
        let two = || {
            let mut targets = check.targets().expect("the CPU").targets;
            // Two devices of one name.
            targets.extend(check.targets().expect("the CPU").targets);
            targets
        };
        let targets = two();
        let all = check.cases(&targets[0]).len();
        let part = |passed: usize| -> Vec<Report> {
            let mut reports: Vec<_> = targets.iter().map(Target::report).collect();
            for (report, passed) in reports.iter_mut().zip([passed, all - passed]) {
                for i in 0..passed {
                    let case = Case::new("iota", if i % 2 == 0 { F32 } else { U8 }, "", "", i, |_| Ok(()));
                    report.add("iota", case, Verdict::Pass, 0.0);
                }
            }
            reports
        };
        let counts = |reports: &[Report]| reports.iter().map(|report| report.counts.line()).collect::<Vec<_>>();
        let joined = check.join(&targets, [part(all / 3), part(all - all / 3)].into_iter(), &[]);
        assert_eq!(counts(&joined), [all, all].map(|all| format!("{all} passed, 0 failed, 0 skipped")));
        let joined = check.join(&targets, [part(all / 3)].into_iter(), &["part 2/2 ended".into()]);
        assert_eq!(counts(&joined)[0], format!("{} passed, 1 failed, 0 skipped", all / 3));
        assert_eq!(joined[0].failures[0].what, "part 2/2 ended");
    }

    #[test]
    fn the_smallest_failing_case_comes_first() {
        let case = |n: usize| {
            let fails = || oclprim_checks::check::Failure::Mismatch("out[0] is 1 instead of 2".into());
            let panics = n == 100;
            Case::new("sum", ElementType::F32, format!("n = {n}"), "ramp", n, move |_| {
                assert!(!panics, "a panic in a case");
                Err(fails())
            })
        };
        let mut report = Report::new("a device".into(), Level::Quick, true);
        for n in [1000, 7, 100] {
            let case = case(n);
            let outcome = case.run(&Device::cpu());
            report.add("reduce", case, outcome.verdict, 0.0);
        }
        report.add("reduce", case(5), Verdict::Pass, 0.0);
        report.add("reduce", case(5), Verdict::Skip("no fp64".into()), 0.0);
        let mut out = Vec::new();
        print(&report, false, &mut out).expect("a vector");
        let stop =
            Cli::parse_from(["", "--device", "cpu"]).check.conclude(vec![report], &mut out).expect_err("3 failed");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(format!("{stop:?}").contains("3 checks failed") && format!("{stop:?}").contains("code: 1"), "{stop:?}");
        assert!(text.contains("a device (quick, 0.00 s): 1 passed, 3 failed, 1 skipped\n"), "{text}");
        assert!(text.contains("1, 3 FAIL, 1 skip") && text.contains("  1 skipped: no fp64\n"), "{text}");
        let positions = ["n = 7,", "n = 100,", "n = 1000,"].map(|shape| text.find(shape).expect("a failing case"));
        assert!(positions.is_sorted(), "{text}");
        assert!(
            text.contains("The smallest failing case:\n  reduce sum, f32, n = 7, ramp data, on a device: out[0]"),
            "{text}"
        );
        assert!(text.contains("panic: a panic in a case"), "{text}");
        assert!(text.ends_with("\n1 passed, 3 failed, 1 skipped\n") && !text.contains("POCL_CACHE_DIR"), "{text}");
        let mut report = Report::new("a device, as a GPU".into(), Level::Tiny, false);
        report.doubtful = true;
        report.add("reduce", case(7), Verdict::Fail("out[0] is 1 instead of 2".into()), 0.0);
        let mut out = Vec::new();
        Cli::parse_from(["", "--device", "cpu"]).check.conclude(vec![report], &mut out).expect_err("1 failed");
        assert!(String::from_utf8(out).expect("UTF-8").contains("empty POCL_CACHE_DIR"));
    }
}
