//! `oclprim bench`

use std::{collections::HashMap, fs::File, io::Write, path::PathBuf};

use clap::Args;
use comfy_table::Cell;
use oclprim::{
    Device, DeviceInfo, DeviceType, ElementType,
    bench::{Effort, Sample, copy_roof, measure},
    check::{Failure, registry},
};
use serde::Serialize;

use crate::{
    check::primitives,
    options::{DeviceChoice, has_room, positive},
    output::{Stop, Style, count, digits, json, of_file, percent, table, time},
};

const EXAMPLES: &str = "\
Examples:
  oclprim bench
  oclprim bench reduce --n 2^20,2^24 --type f32
  oclprim bench --device gpu --json bench.json --markdown > bench.md

GB/s counts the bytes that the primitive has to read and write at least, in 10^9 a second. The copy beside it moves as
many bytes, by the driver's own copy, in the same run. OpenCL devices are timed by their own clock, from the start of
the first kernel to the end of the last. Every result is compared with the CPU's; the exit code is 1 if one was wrong.";

/// Measure primitives against the device's copy bandwidth.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    /// What to measure; without it, everything.
    #[arg(value_parser = primitives())]
    primitives: Vec<String>,
    #[command(flatten)]
    device: DeviceChoice,
    /// Elements, such as 1000000, 2^24 or 64Mi; several with commas between. Without it 2^16, 2^20, 2^24 and, on GPUs,
    /// 2^28.
    #[arg(long, value_parser = positive, value_delimiter = ',')]
    n: Vec<usize>,
    /// Element types, such as f32; several with commas between.
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    element: Vec<ElementType>,
    /// Timed runs of each, at least.
    #[arg(long, default_value_t = Effort::default().runs)]
    runs: usize,
    /// Write the figures to this file as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print the table in Markdown.
    #[arg(long)]
    markdown: bool,
}

/// One form at one size.
#[derive(Serialize)]
struct Line {
    primitive: &'static str,
    form: String,
    element: ElementType,
    n: usize,
    bytes: u64,
    sample: Option<Sample>,
    gb_per_s: Option<f64>,
    copy_gb_per_s: Option<f64>,
    /// Why there are no figures, or what is wrong with the result.
    error: Option<String>,
    wrong: bool,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    device: DeviceInfo,
    lines: Vec<Line>,
}

impl Bench {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let device = self.device.open()?.profiled()?;
        let info = device.info();
        let effort = Effort { runs: self.runs.max(1), ..Effort::default() };
        let mut roofs = HashMap::new();
        let mut lines = Vec::new();
        for spec in registry().iter().filter(|spec| wanted(&self.primitives, &spec.name().to_owned())) {
            for bench in spec.benches().into_iter().filter(|bench| wanted(&self.element, &bench.element)) {
                let most = if info.ty == DeviceType::Cpu { 1 << 24 } else { usize::MAX };
                let usual: Vec<_> = bench.sizes.iter().copied().filter(|&n| n <= most).collect();
                for &n in if self.n.is_empty() { &usual } else { &self.n } {
                    let bytes = (bench.bytes)(n);
                    let mut line = Line::new(spec.name(), &bench, n, bytes);
                    match has_room(bytes).map(|()| measured(&device, &bench, n, effort)) {
                        Ok(Ok((sample, verdict))) => line.fill(sample, verdict),
                        Ok(Err(error)) => line.error = Some(error.to_string()),
                        Err(text) => line.error = Some(text),
                    }
                    if line.sample.is_some() {
                        let roof = roofs.entry(bytes).or_insert_with(|| copy_roof(&device, bytes, effort).ok());
                        line.copy_gb_per_s = roof.as_ref().map(|sample| sample.bandwidth(bytes));
                    }
                    lines.push(line);
                }
            }
        }
        if lines.is_empty() {
            return Err(Stop::usage("nothing to measure: no such primitive and type has a benchmark"));
        }
        let wrong = lines.iter().filter(|line| line.wrong).count();
        let report = Report { version: env!("CARGO_PKG_VERSION"), device: info, lines };
        match &self.json {
            Some(path) if path.as_os_str() == "-" => json(out, &report)?,
            Some(path) => {
                json(&mut File::create(path).map_err(of_file(path))?, &report)?;
                report.print(self.markdown, out)?;
            }
            None => report.print(self.markdown, out)?,
        }
        if wrong > 0 { Err(Stop::mismatch(format!("{wrong} results are wrong"))) } else { Ok(()) }
    }
}

fn wanted<T: PartialEq>(list: &[T], item: &T) -> bool {
    list.is_empty() || list.contains(item)
}

type Measured = (Sample, Result<(), Failure>);

fn measured(device: &Device, bench: &oclprim::bench::Bench, n: usize, effort: Effort) -> oclprim::Result<Measured> {
    let mut climb = (bench.prepare)(device, n)?;
    let sample = measure(device, effort, &mut climb.reset, &mut climb.run)?;
    Ok((sample, (climb.verify)()))
}

/// What a failure says.
pub(crate) fn failure_text(failure: Failure) -> String {
    match failure {
        Failure::Mismatch(text) => text,
        Failure::Error(error) => error.to_string(),
    }
}

impl Line {
    fn new(primitive: &'static str, bench: &oclprim::bench::Bench, n: usize, bytes: u64) -> Self {
        let (form, element) = (bench.form.clone(), bench.element);
        let (sample, gb_per_s, copy_gb_per_s) = (None, None, None);
        Self { primitive, form, element, n, bytes, sample, gb_per_s, copy_gb_per_s, error: None, wrong: false }
    }

    fn fill(&mut self, sample: Sample, verdict: Result<(), Failure>) {
        self.gb_per_s = Some(sample.bandwidth(self.bytes));
        self.sample = Some(sample);
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
        let header = ["primitive", "type", "n", "median", "spread", "GB/s", "of copy", ""];
        let mut table = table(style, &header, 2..7);
        for line in &self.lines {
            let sample = |text: &dyn Fn(&Sample) -> String| line.sample.as_ref().map_or("-".into(), text);
            let of_copy = line.gb_per_s.zip(line.copy_gb_per_s).map_or("-".into(), |(own, copy)| percent(own / copy));
            table.add_row([
                Cell::new(format!("{} {}", line.primitive, line.form)),
                Cell::new(line.element.name()),
                Cell::new(count(line.n)),
                Cell::new(sample(&|sample| time(sample.median))),
                Cell::new(sample(&|sample| format!("± {}", percent(sample.spread)))),
                Cell::new(line.gb_per_s.map_or("-".into(), digits)),
                Cell::new(of_copy),
                Cell::new(match &line.error {
                    Some(text) if line.wrong => format!("WRONG: {text}"),
                    Some(text) => text.clone(),
                    None => String::new(),
                }),
            ]);
        }
        Ok(writeln!(out, "{}", table.trim_fmt())?)
    }
}
