//! `oclprim bench`

use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use clap::Args;
use comfy_table::Cell;
use indicatif::{ProgressBar, ProgressStyle};
use oclprim::{Device, DeviceInfo, DeviceType, ElementType, Tuning, tuning::Primitive};
use oclprim_checks::{
    bench::{Effort, Sample, Times, copy_roof, measure_case},
    check::Failure,
    registry,
};
use serde::{Deserialize, Serialize};

use crate::{
    check::primitives,
    options::{DeviceChoice, has_room, positive, size},
    output::{STDOUT, Stop, Style, count, digits, distinct, json, of_file, percent, save, save_meanwhile, table, time},
};

const EXAMPLES: &str = "\
Examples:
  oclprim bench
  oclprim bench reduce --n 2^20,2^24 --type f32
  oclprim bench --row 'scan sum inclusive u32 2^28' --row 'sort keys, bits u32 2^27'
  oclprim bench copy --form upload --device gpu --set transfer.chunk_bytes=64Mi
  oclprim bench --device gpu --json bench.json --markdown > bench.md
  oclprim bench --compare bench.json

GB/s counts the bytes that the primitive must at least read and write, in 10^9 bytes a second. `of copy` is this \
bandwidth in percent of the device's own copy of as many bytes, measured in the same run. OpenCL devices are timed by \
their own clock, from the start of the first command to the end of the last. `wall` is the host's time from the call to \
the end of the wait; it comes from other runs, without the cost of profiling. Before each run the caches are filled \
with other data, unless --hot is given. Every result is compared with the CPU's; the exit code is 1 if one is wrong. \
--compare needs a file of the same device and with the same state of the caches. A time is `faster` or `slower` if it \
differs by more than 2 % and more than the sum of both spreads.";

/// Measure primitives against the device's copy bandwidth.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    /// The primitives to measure; default: all.
    #[arg(value_parser = primitives())]
    primitives: Vec<String>,
    #[command(flatten)]
    device: DeviceChoice,
    /// Numbers of elements, such as 1000000, 2^24 or 64Mi, separated by commas. Default: 2^16, 2^20, 2^24, and 2^28
    /// except on CPUs. Sums whose result goes to the host: 2^10, 2^16 and 2^20.
    #[arg(long, value_parser = positive, allow_negative_numbers = true, value_delimiter = ',')]
    n: Vec<usize>,
    /// Element types, such as f32, separated by commas.
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    element: Vec<ElementType>,
    /// Maximum number of timed runs of each row. A row also ends after 2 s, if it has three runs.
    #[arg(long, default_value_t = Effort::default().runs)]
    runs: usize,
    /// Measure only operations whose name contains this text, such as `fixed`.
    #[arg(long)]
    form: Option<String>,
    /// Measure only this row of the table: primitive, operation, type and number of elements, such as `scan sum inclusive u32
    /// 2^24`. May be given several times.
    #[arg(long = "row", value_name = "ROW", conflicts_with_all = ["primitives", "n", "element", "form"])]
    rows: Vec<Row>,
    /// Use this value of a primitive's parameter, such as `transfer.chunk_bytes=64Mi`, on an OpenCL device. May be given several
    /// times.
    #[arg(long, value_name = "PRIMITIVE.PARAMETER=VALUE")]
    set: Vec<Set>,
    /// Keep the caches warm: do not fill them with other data before each run.
    #[arg(long)]
    hot: bool,
    /// Compare the times with those of a file that --json wrote.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Write the figures to this file as JSON, after each measurement. `-` is standard output, written after the last one.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print the table in Markdown.
    #[arg(long)]
    markdown: bool,
}

/// The row that an argument of --row names.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    name: String,
    element: ElementType,
    n: usize,
}

impl FromStr for Row {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.rsplitn(3, ' ');
        let (n, element) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let name = words.next().ok_or("expected a primitive, its operation, a type and a number of elements")?.into();
        Ok(Self { name, element: element.parse().map_err(|error| format!("{error}"))?, n: positive(n)? })
    }
}

/// The parameter that an argument of --set names, and its value.
#[derive(Clone, Debug)]
struct Set {
    primitive: Primitive,
    parameter: String,
    value: usize,
}

impl FromStr for Set {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = || {
            let (name, value) = text.split_once('=')?;
            let (primitive, parameter) = name.split_once('.')?;
            Some((primitive, parameter, value))
        };
        let (primitive, parameter, value) = parts().ok_or("expected PRIMITIVE.PARAMETER=VALUE")?;
        let primitive = primitive.parse().map_err(|error| format!("{error}"))?;
        Ok(Self { primitive, parameter: parameter.into(), value: size(value)? })
    }
}

/// One operation at one size.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) primitive: String,
    pub(crate) form: String,
    pub(crate) element: ElementType,
    pub(crate) n: usize,
    bytes: u64,
    pub(crate) sample: Option<Sample>,
    pub(crate) wall: Option<Sample>,
    pub(crate) gb_per_s: Option<f64>,
    pub(crate) copy_gb_per_s: Option<f64>,
    #[serde(skip_deserializing)]
    against: Option<Against>,
    /// The reason for missing figures, or the difference from the reference.
    pub(crate) error: Option<String>,
    pub(crate) wrong: bool,
}

/// The bandwidth of the device's own copy in GB/s, by number of bytes; `None` if the copy failed.
pub(crate) type Copies = HashMap<u64, Option<f64>>;

/// The file of `--json`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) version: String,
    /// The commit of the source that the program was built from, if known.
    pub(crate) commit: Option<String>,
    pub(crate) device: DeviceInfo,
    pub(crate) cold: bool,
    pub(crate) lines: Vec<Line>,
}

/// The parts of an earlier report that a comparison needs.
#[derive(Deserialize)]
struct Earlier {
    device: EarlierDevice,
    cold: bool,
    lines: Vec<EarlierLine>,
}

#[derive(Deserialize)]
struct EarlierDevice {
    platform: String,
    name: String,
}

#[derive(Deserialize)]
struct EarlierLine {
    primitive: String,
    form: String,
    element: ElementType,
    n: usize,
    sample: Option<Sample>,
}

/// The comparison of a time with an earlier one.
#[derive(Clone, Serialize)]
pub(crate) struct Against {
    /// The earlier time over the current one.
    pub(crate) ratio: f64,
    pub(crate) verdict: &'static str,
}

impl Against {
    pub(crate) fn new(before: &Sample, now: &Sample) -> Self {
        let ratio = if now.median > 0.0 { before.median / now.median } else { 1.0 };
        let noise = (before.spread + now.spread).max(0.02);
        let verdict = if ratio > 1.0 + noise {
            "faster"
        } else if ratio < 1.0 / (1.0 + noise) {
            "slower"
        } else {
            "same"
        };
        Self { ratio, verdict }
    }
}

impl Earlier {
    fn read(path: &Path, info: &DeviceInfo, cold: bool) -> Result<Self, Stop> {
        let refused = |text: String| Stop::usage(format!("{}: {text}", path.display()));
        let text = fs::read_to_string(path).map_err(of_file(path))?;
        let earlier: Self = serde_json::from_str(&text)
            .map_err(|error| refused(format!("not a report of `oclprim bench --json`: {error}")))?;
        let EarlierDevice { platform, name } = &earlier.device;
        if (platform, name) != (&info.platform, &info.name) {
            return Err(refused(format!("measured on {platform} / {name}, but this is {info}")));
        }
        if earlier.cold != cold {
            let how = |cold| if cold { "without --hot" } else { "with --hot" };
            return Err(refused(format!("measured {}, but this is {}", how(earlier.cold), how(cold))));
        }
        Ok(earlier)
    }

    fn sample(&self, line: &Line) -> Option<&Sample> {
        let alike = |old: &&EarlierLine| {
            (old.primitive.as_str(), &old.form, old.element, old.n)
                == (line.primitive.as_str(), &line.form, line.element, line.n)
        };
        self.lines.iter().find(alike)?.sample.as_ref()
    }
}

impl Bench {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let mut device = self.device.open()?.profiled()?;
        if !self.set.is_empty() {
            let set = |all: Tuning, Set { primitive, parameter, value }: &Set| all.set(*primitive, parameter, *value);
            device = device.with_tuning(self.set.iter().fold(Tuning::default(), set))?;
        }
        let info = device.info();
        let effort = Effort { runs: self.runs.max(1), cold: !self.hot, ..Effort::default() };
        if let Some(path) = self.file() {
            distinct(&[("standard output", Path::new(STDOUT)), ("--json", path)])?;
        }
        let earlier = self.compare.as_deref().map(|path| Earlier::read(path, &info, effort.cold)).transpose()?;
        let mut copies = Copies::new();
        let (version, commit) = (env!("CARGO_PKG_VERSION").into(), option_env!("OCLPRIM_COMMIT").map(Into::into));
        let mut report = Report { version, commit, device: info.clone(), cold: effort.cold, lines: Vec::new() };
        let bar = progress();
        for spec in registry::specs().iter().filter(|spec| wanted(&self.primitives, &spec.name().to_owned())) {
            for bench in spec.benches().into_iter().filter(|bench| wanted(&self.element, &bench.element)) {
                if self.form.as_ref().is_some_and(|part| !bench.form.contains(part.as_str())) {
                    continue;
                }
                for n in self.sizes(spec.name(), &bench, info.ty) {
                    bar.set_message(format!("{} {} {} {}", spec.name(), bench.form, bench.element, count(n)));
                    let mut line = Line::measure(&device, spec.name(), &bench, n, effort, Some(&mut copies));
                    let before = earlier.as_ref().and_then(|earlier| earlier.sample(&line));
                    line.against = before.zip(line.sample.as_ref()).map(|(before, now)| Against::new(before, now));
                    report.lines.push(line);
                    // A run that is interrupted leaves its measurements in the file.
                    self.file().map_or(Ok(()), |path| save_meanwhile(path, || json(&report)))?;
                }
            }
        }
        bar.finish_and_clear();
        if report.lines.is_empty() {
            return Err(Stop::usage("nothing to measure: no such primitive and type has a benchmark"));
        }
        if let Some(path) = self.file() {
            save(&[(path, &[json(&report)?])], &mut io::sink())?;
        }
        let wrong = report.lines.iter().filter(|line| line.wrong).count();
        match &self.json {
            Some(path) if path.as_os_str() == STDOUT => out.write_all(&json(&report)?)?,
            _ => report.print(self.markdown, out)?,
        }
        if wrong > 0 { Err(Stop::mismatch(format!("{wrong} results are wrong"))) } else { Ok(()) }
    }

    /// The numbers of elements at which an operation is measured.
    fn sizes(&self, primitive: &str, bench: &oclprim_checks::bench::Bench, ty: DeviceType) -> Vec<usize> {
        if !self.rows.is_empty() {
            let name = format!("{primitive} {}", bench.form);
            let asked = |row: &&Row| (&row.name, row.element) == (&name, bench.element);
            return self.rows.iter().filter(asked).map(|row| row.n).collect();
        }
        if !self.n.is_empty() {
            return self.n.clone();
        }
        let most = if ty == DeviceType::Cpu { 1 << 24 } else { usize::MAX };
        bench.sizes.iter().copied().filter(|&n| n <= most).collect()
    }

    /// The file of `--json`, if it is not standard output.
    fn file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|path| path.as_os_str() != STDOUT)
    }
}

/// A spinner on standard error; it shows only on a terminal.
pub(crate) fn progress() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}").expect("a constant template");
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

pub(crate) fn wanted<T: PartialEq>(list: &[T], item: &T) -> bool {
    list.is_empty() || list.contains(item)
}

type Measured = (Times, Result<(), Failure>);

fn measured(
    device: &Device,
    bench: &oclprim_checks::bench::Bench,
    n: usize,
    effort: Effort,
) -> oclprim::Result<Measured> {
    let mut prepared = (bench.prepare)(device, n)?;
    let times = measure_case(device, effort, &mut prepared)?;
    Ok((times, prepared.verify()))
}

/// The text of a failure.
pub(crate) fn failure_text(failure: Failure) -> String {
    match failure {
        Failure::Mismatch(text) => text,
        Failure::Error(error) => error.to_string(),
    }
}

impl Line {
    fn new(primitive: &'static str, bench: &oclprim_checks::bench::Bench, n: usize, bytes: u64) -> Self {
        let (primitive, form, element) = (primitive.into(), bench.form.clone(), bench.element);
        let (sample, wall, gb_per_s, copy_gb_per_s, against, error) = (None, None, None, None, None, None);
        Self { primitive, form, element, n, bytes, sample, wall, gb_per_s, copy_gb_per_s, against, error, wrong: false }
    }

    /// A line that has a reason instead of figures.
    pub(crate) fn left_out(
        primitive: &'static str,
        bench: &oclprim_checks::bench::Bench,
        n: usize,
        reason: &str,
    ) -> Self {
        Self { error: Some(reason.into()), ..Self::new(primitive, bench, n, (bench.bytes)(n)) }
    }

    /// Measures an operation at one size. With `copies` it also measures the device's own copy of as many bytes, once
    /// for each number of bytes.
    pub(crate) fn measure(
        device: &Device,
        primitive: &'static str,
        bench: &oclprim_checks::bench::Bench,
        n: usize,
        effort: Effort,
        copies: Option<&mut Copies>,
    ) -> Self {
        let bytes = (bench.bytes)(n);
        let mut line = Self::new(primitive, bench, n, bytes);
        match has_room(&device.info(), bytes).map(|()| measured(device, bench, n, effort)) {
            Ok(Ok((times, verdict))) => line.fill(times, verdict),
            Ok(Err(error)) => line.error = Some(error.to_string()),
            Err(text) => line.error = Some(text),
        }
        if let (Some(copies), true) = (copies, line.sample.is_some()) {
            let copy = || copy_roof(device, bytes, effort).ok().map(|times| times.device.bandwidth(bytes));
            line.copy_gb_per_s = *copies.entry(bytes).or_insert_with(copy);
        }
        line
    }

    fn fill(&mut self, times: Times, verdict: Result<(), Failure>) {
        self.gb_per_s = Some(times.device.bandwidth(self.bytes));
        self.sample = Some(times.device);
        self.wall = Some(times.wall);
        if let Err(failure) = verdict {
            self.error = Some(failure_text(failure));
            self.wrong = true;
        }
    }
}

impl Report {
    fn print(&self, markdown: bool, out: &mut dyn Write) -> Result<(), Stop> {
        let DeviceInfo { version, driver, .. } = &self.device;
        let details: Vec<_> = [version.trim(), driver].into_iter().filter(|text| !text.is_empty()).collect();
        writeln!(out, "{} ({})\n", self.device, details.join(", "))?;
        let style = if markdown { Style::Markdown } else { Style::Plain };
        let compared = self.lines.iter().any(|line| line.against.is_some());
        let mut header = vec!["primitive", "type", "n", "median", "spread", "wall", "GB/s", "of copy"];
        header.extend(compared.then_some("speedup"));
        header.push("");
        let mut table = table(style, &header, 2..8);
        for line in &self.lines {
            let sample = |text: &dyn Fn(&Sample) -> String| line.sample.as_ref().map_or("-".into(), text);
            let of_copy = line.gb_per_s.zip(line.copy_gb_per_s).map_or("-".into(), |(own, copy)| percent(own / copy));
            let mut row = vec![
                Cell::new(format!("{} {}", line.primitive, line.form)),
                Cell::new(line.element.name()),
                Cell::new(count(line.n)),
                Cell::new(sample(&|sample| time(sample.median))),
                Cell::new(sample(&|sample| format!("± {}", percent(sample.spread)))),
                Cell::new(line.wall.as_ref().map_or("-".into(), |wall| time(wall.median))),
                Cell::new(line.gb_per_s.map_or("-".into(), digits)),
                Cell::new(of_copy),
            ];
            let against =
                line.against.as_ref().map(|against| format!("{} x, {}", digits(against.ratio), against.verdict));
            row.extend(compared.then(|| Cell::new(against.unwrap_or("new".into()))));
            row.push(Cell::new(match &line.error {
                Some(text) if line.wrong => format!("WRONG: {text}"),
                Some(text) => text.clone(),
                None => String::new(),
            }));
            table.add_row(row);
        }
        Ok(writeln!(out, "{}", table.trim_fmt())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_name_existing_benchmarks() {
        let mut known = Vec::new();
        for spec in registry::specs() {
            known.extend(
                spec.benches().into_iter().map(|bench| (format!("{} {}", spec.name(), bench.form), bench.element)),
            );
        }
        for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../benches/peers/goals")).expect("a folder") {
            let text = fs::read_to_string(entry.expect("an entry").path()).expect("a file");
            let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            for line in rows {
                let fields: Vec<_> = line.split('|').map(str::trim).collect();
                let [family, name, elements, sizes, goal, _] = fields[..] else { panic!("not six fields: {line}") };
                assert!(sizes.split(' ').all(|n| positive(n).is_ok()), "{line}");
                let own = goal.split(" and ").filter_map(|goal| {
                    let (_, name) = goal.split_once(" of own ").or(goal.split_once(" of keys of "))?;
                    Some(name)
                });
                for name in own.chain((!family.ends_with('?')).then_some(name)) {
                    for element in elements.split_whitespace() {
                        let row = (name.to_owned(), element.parse().expect("an element type"));
                        assert!(known.contains(&row), "{row:?} is not measured");
                    }
                }
            }
        }
    }
}
