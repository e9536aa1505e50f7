//! `oclprim report`

mod chart;
mod found;
mod page;
mod records;

use std::{
    collections::BTreeSet,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use indicatif::ProgressBar;
use oclprim::Device;
use oclprim_checks::{
    bench::{Bench, Effort},
    check::Level,
    ladder::{self, Request},
    registry,
};

use self::found::{Found, GROWING, Ladder, Series, operation, program, representatives};
use crate::{
    bench::{Copies, Line, progress},
    check::Check,
    devices::Description,
    ladder_results::Report as Steps,
    options::{DeviceChoice, positive},
    output::{STDOUT, Stop, count, distinct, is_writable, json, save, time},
    submission::{Os, now},
};

const EXAMPLES: &str = "\
Examples:
  oclprim report -o report.html
  oclprim report -o report.html --device gpu --quick
  oclprim report -o report.html --from bench.json --from ladder.json --from device.json

The page needs no network: it has no scripts, and contains its charts. No measurement starts after `--seconds`, but \
the last one may end later; the page names the measurements that were left out. With --from the page shows files \
instead of new measurements: those of `bench --json`, `ladder --json`, `check --report` and `report --json`, all of \
one device. Every result is compared with the CPU's; the exit code is 1 if one is wrong.";

/// Write a page with a device's capabilities, bandwidths, ladders and checks. Charts show how the bandwidth grows with
/// the number of elements.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Command {
    /// The page's file; `-` is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    #[command(flatten)]
    device: DeviceChoice,
    /// Measure few sizes and small ladders, and run the tiny checks, in about a minute.
    #[arg(long)]
    quick: bool,
    /// Time limit in seconds: no measurement or check starts after it. Default: 300, or 60 with --quick.
    #[arg(long, value_parser = positive)]
    seconds: Option<usize>,
    /// Also write the figures of the page to this file, for --from.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show the contents of this file instead of new measurements. The file is one of `bench --json`, `ladder --json`, `check
    /// --report` or `report --json`. May be given several times.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "seconds"])]
    from: Vec<PathBuf>,
}

impl Command {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let stdout = self.output.as_os_str() == STDOUT;
        // A file that cannot be written must not cost minutes of measurements.
        if !stdout {
            distinct(&[("standard output", Path::new(STDOUT)), ("--output", &self.output)])?;
            is_writable(&self.output)?;
        }
        if let Some(path) = &self.json {
            distinct(&[("--output", &self.output), ("--json", path)])?;
            if path.as_os_str() != STDOUT {
                is_writable(path)?;
            }
        }
        let found = if self.from.is_empty() {
            self.measure(&self.device.open()?.profiled()?, &progress())?
        } else {
            records::read(&self.from, self.device.selector())?
        };
        let record = self.json.as_deref().map(|path| Ok::<_, Stop>((path, json(&found)?))).transpose()?;
        let page = page::of(&found).into_string().into_bytes();
        let files = record.iter().map(|(path, text)| (*path, text)).chain([(self.output.as_path(), &page)]);
        let parts: Vec<_> = files.map(|(path, text)| (path, [text.as_slice()])).collect();
        save(&parts.iter().map(|(path, text)| (*path, &text[..])).collect::<Vec<_>>(), out)?;
        if !stdout && self.json.as_deref().is_none_or(|path| path.as_os_str() != STDOUT) {
            let checks = found.checks.as_ref().map_or("no checks".into(), |checks| checks.counts.line());
            writeln!(out, "{}: {checks}", self.output.display())?;
        }
        match found.wrong() {
            0 => Ok(()),
            wrong => Err(Stop::mismatch(format!("{wrong} results are wrong"))),
        }
    }

    fn measure(&self, device: &Device, bar: &ProgressBar) -> Result<Found, Stop> {
        let begin = Instant::now();
        let seconds = self.seconds.unwrap_or(if self.quick { 60 } else { 300 });
        // The sections that are left share the remaining time equally.
        let until = |sections_left: u32| {
            let left = Duration::from_secs(seconds as u64).saturating_sub(begin.elapsed());
            Instant::now() + left / sections_left
        };
        let effort = Effort { runs: if self.quick { 5 } else { 15 }, seconds: 0.5, cold: true, ..Effort::default() };
        let bandwidths = self.bandwidths(device, effort, until(4), bar);
        let growth = self.growth(device, Effort { cold: false, ..effort }, until(3), bar);
        let ladders = if device.is_cpu() { Vec::new() } else { self.ladders(device, effort, until(2), bar) };
        let level = if self.quick { Level::Tiny } else { Level::Quick };
        let left = until(1).saturating_duration_since(Instant::now());
        bar.set_message("checks");
        let checks = Check::of_device(device.clone(), level, left, &ProgressBar::hidden());
        bar.finish_and_clear();
        Ok(Found {
            programs: BTreeSet::from([program(env!("CARGO_PKG_VERSION"), option_env!("OCLPRIM_COMMIT"))]),
            origin: format!(
                "{} report of {} in {}",
                if self.quick { "quick" } else { "default" },
                now(),
                time(begin.elapsed().as_secs_f64())
            ),
            os: Some(Os::new()),
            description: Description::new(device.info(), &Ok(device.clone())),
            cold: Some(effort.cold),
            bandwidths,
            growth,
            ladders,
            checks: Some(checks),
        })
    }

    /// One benchmark case of each primitive, at one size.
    fn bandwidths(&self, device: &Device, effort: Effort, until: Instant, bar: &ProgressBar) -> Vec<Line> {
        let mut copies = Copies::new();
        let n = match (self.quick, device.is_cpu()) {
            (true, _) => 1 << 20,
            (false, true) => 1 << 22,
            (false, false) => 1 << 24,
        };
        let measure = |(primitive, bench): (&'static str, Bench)| {
            bar.set_message(format!("{primitive} {} {}", bench.form, count(n)));
            if Instant::now() > until {
                return Line::left_out(primitive, &bench, n, "not measured: the time for bandwidths was over");
            }
            Line::measure(device, primitive, &bench, n, effort, Some(&mut copies))
        };
        representatives().into_iter().map(measure).collect()
    }

    /// Every operation at one size, then at the next.
    fn growth(&self, device: &Device, effort: Effort, until: Instant, bar: &ProgressBar) -> Vec<Series> {
        let shifts: Vec<u32> = if self.quick { vec![10, 14, 18, 22] } else { (10..=28).step_by(2).collect() };
        let benches = representatives().into_iter().filter(|(primitive, _)| GROWING.contains(primitive));
        let mut all: Vec<_> = benches
            .map(|(primitive, bench)| {
                let name = operation(primitive, &bench.form, bench.element);
                (primitive, bench, Series { name, points: Vec::new(), stopped: None }, Duration::ZERO)
            })
            .collect();
        for n in shifts.into_iter().map(|shift| 1_usize << shift) {
            for (primitive, bench, series, last) in all.iter_mut().filter(|(_, _, series, _)| series.stopped.is_none())
            {
                bar.set_message(format!("{} {}", series.name, count(n)));
                // `last` is the time for data, measurement and comparison at the size before. Up to 500 ms, it counts
                // as constant. A longer time counts as proportional to n.
                let grown = series.points.last().map_or(1, |point| n / point.n) as u32;
                let expected = if *last > Duration::from_millis(500) { *last * grown } else { *last };
                if Instant::now() + expected > until {
                    let reason = format!(
                        "it would take about {}, more than is left for this chart",
                        time(expected.as_secs_f64())
                    );
                    series.stopped = Some((n, reason));
                    continue;
                }
                let begin = Instant::now();
                let point = Line::measure(device, primitive, bench, n, effort, None);
                *last = begin.elapsed();
                if point.sample.is_some() {
                    series.points.push(point);
                } else {
                    series.stopped = Some((n, point.error.unwrap_or_default()));
                }
            }
        }
        all.into_iter().map(|(_, _, series, _)| series).collect()
    }

    fn ladders(&self, device: &Device, effort: Effort, until: Instant, bar: &ProgressBar) -> Vec<Ladder> {
        let mut request = Request::default();
        if self.quick {
            (request.n, request.shape) = (1 << 20, (1 << 10, 1 << 10));
        }
        request.effort = Effort { cold: false, ..effort };
        let ladders = registry::ladders();
        let measure = |(index, ladder): (usize, &&'static dyn ladder::Ladder)| {
            bar.set_message(format!("{} ladder", ladder.name()));
            let now = Instant::now();
            let share = until.saturating_duration_since(now) / (ladders.len() - index) as u32;
            let name = ladder.name().to_owned();
            match Steps::measure(*ladder, &request, device, Some(now + share)) {
                Ok(steps) => Ladder { name, steps: Some(steps), reason: None },
                Err(stop) => Ladder { name, steps: None, reason: Some(stop.into_message()) },
            }
        };
        ladders.iter().enumerate().map(measure).collect()
    }
}
