//! `oclprim ladder`

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, builder::PossibleValuesParser};
use comfy_table::Cell;
use oclprim::{DeviceInfo, ElementType};
use oclprim_checks::{
    bench::{Effort, Sample},
    ladder::{Distribution, Model, Request},
    registry,
};

use crate::{
    chart,
    ladder_results::{Report, Step},
    options::{DeviceChoice, positive},
    output::{RED, STDOUT, Stop, Style, alarm, digits, distinct, json, paint, percent, save, table, time},
};

const EXAMPLES: &str = "\
Examples:
  oclprim ladder reduce --n 2^28 --block 512
  oclprim ladder transpose --rows 4096 --cols 4096 --device gpu --svg transpose.svg
  oclprim ladder histogram --bins 5Mi --distribution zipf --markdown

GB/s is (bytes read + bytes written) / time, in 10^9 bytes a second. `of copy` is this bandwidth in percent of the \
device's own copy of as many bytes, measured in the same run. A sector is 32 bytes of global memory; bank conflicts \
are the extra passes of a request to local memory. Both are counted from the access pattern, not measured. Every \
step's result is compared with the CPU's; the exit code is 1 if one is wrong.";

/// Check and measure the optimisation steps of a kernel.
///
/// The steps are OpenCL kernels. If no device is named and there is no GPU, another OpenCL device is used.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ladder {
    /// The ladder.
    #[arg(value_parser = ladders())]
    ladder: String,
    #[command(flatten)]
    device: DeviceChoice,
    /// Number of elements, such as 1000000, 2^24 or 64Mi. Default: 2^24, or that of --rows and --cols.
    #[arg(long, value_parser = positive, allow_negative_numbers = true, conflicts_with_all = ["rows", "cols"])]
    n: Option<usize>,
    /// Rows of a transpose; default: 4096.
    #[arg(long, value_parser = positive, allow_negative_numbers = true, requires = "cols")]
    rows: Option<usize>,
    /// Columns of a transpose; default: 4096.
    #[arg(long, value_parser = positive, allow_negative_numbers = true, requires = "rows")]
    cols: Option<usize>,
    /// Bins of a histogram; default: 256.
    #[arg(long, value_parser = positive, allow_negative_numbers = true)]
    bins: Option<usize>,
    /// Distribution of the samples of a histogram over the bins; default: uniform.
    #[arg(long, value_parser = PossibleValuesParser::new(Distribution::ALL.map(Distribution::name)))]
    distribution: Option<String>,
    /// Work-items of a work-group, for steps that do not fix their number.
    #[arg(long, value_parser = positive, allow_negative_numbers = true)]
    block: Option<usize>,
    /// The element type; default: i32.
    #[arg(long = "type", value_name = "TYPE")]
    element: Option<ElementType>,
    /// Maximum number of timed runs of each step. A step also ends after 2 s, if it has three runs.
    #[arg(long, default_value_t = Effort::default().runs)]
    runs: usize,
    /// Print JSON.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print the table in Markdown.
    #[arg(long)]
    markdown: bool,
    /// Draw the ladder's bandwidths as a chart, to this SVG file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

fn ladders() -> PossibleValuesParser {
    registry::ladders().iter().map(|ladder| ladder.name()).collect::<Vec<_>>().into()
}

impl Ladder {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let device = self.device.open_for_kernels()?.profiled()?;
        if device.is_cpu() {
            let info = device.info();
            let text = format!("ladders are OpenCL kernels, which {info} does not run: choose --device opencl");
            return Err(Stop::usage(text));
        }
        if let Some(path) = &self.svg {
            distinct(&[("standard output", Path::new(STDOUT)), ("--svg", path)])?;
        }
        let ladder =
            registry::ladders().iter().find(|ladder| ladder.name() == self.ladder).expect("clap checked the name");
        let report = Report::measure(*ladder, &self.request(), &device, None)?;
        if let Some(path) = &self.svg {
            save(&[(path, &[chart::draw(path, &report)?])], out)?;
        }
        if self.json {
            out.write_all(&json(&report)?)?;
        } else {
            report.print(if self.markdown { Style::Markdown } else { Style::Plain }, out)?;
        }
        match report.rungs.iter().filter(|step| step.wrong.is_some()).count() {
            0 => Ok(()),
            wrong => Err(Stop::mismatch(format!("{wrong} steps are wrong"))),
        }
    }

    fn request(&self) -> Request {
        let mut request = Request::default();
        if let Some(n) = self.n {
            request.n = n;
            // For a transpose, the number of rows is the largest power of two that is not above the square root of `n`.
            let rows = 1 << (n.max(1).ilog2() / 2);
            request.shape = (rows, n / rows);
        }
        if let Some((rows, cols)) = self.rows.zip(self.cols) {
            request.shape = (rows, cols);
            request.n = rows.saturating_mul(cols);
        }
        request.block = self.block;
        request.element = self.element.unwrap_or(request.element);
        request.bins = self.bins.unwrap_or(request.bins);
        if let Some(name) = &self.distribution {
            let named = Distribution::ALL.into_iter().find(|distribution| distribution.name() == name);
            request.distribution = named.expect("clap checked the name");
        }
        request.effort.runs = self.runs.max(1);
        request
    }
}

impl Report {
    fn print(&self, style: Style, out: &mut dyn Write) -> Result<(), Stop> {
        let DeviceInfo { version, driver, .. } = &self.device;
        let details: Vec<_> = [version.trim(), driver].into_iter().filter(|text| !text.is_empty()).collect();
        writeln!(out, "{} ladder: {}", self.ladder, self.request)?;
        if style == Style::Markdown {
            writeln!(out)?;
        }
        writeln!(out, "{} ({}), copy {} GB/s", self.device, details.join(", "), digits(self.copy_gb_per_s))?;
        if let Some(warning) = &self.warning {
            if style == Style::Markdown {
                writeln!(out)?;
            }
            writeln!(out, "{} {warning}", paint("warning:", RED, &io::stdout()))?;
        }
        let header = [
            "step",
            "median",
            "spread",
            "GB/s",
            "of copy",
            "gain",
            "sectors loaded",
            "sectors stored",
            "bank conflicts",
            "what it changes",
        ];
        let mut table = table(style, &header, 1..9);
        for step in &self.rungs {
            table.add_row(step.row());
        }
        Ok(writeln!(out, "\n{}", table.trim_fmt())?)
    }
}

impl Step {
    fn row(&self) -> Vec<Cell> {
        let sample = |text: &dyn Fn(&Sample) -> String| self.sample.as_ref().map_or(String::new(), text);
        let model = |text: &dyn Fn(&Model) -> String| self.model.as_ref().map_or(String::new(), text);
        let mut median = sample(&|sample| time(sample.median));
        let mut last = self.step.to_owned();
        if let Some(reason) = &self.unavailable {
            median = "unavailable".into();
            last = format!("{last} [{reason}]");
        }
        if let Some(what) = &self.wrong {
            median = "WRONG".into();
            last = format!("{last} [{what}]");
        }
        let cells = [
            self.name.to_owned(),
            median,
            sample(&|sample| format!("± {}", percent(sample.spread))),
            self.gb_per_s.map_or(String::new(), digits),
            self.of_copy.map_or(String::new(), percent),
            self.gain.map_or(String::new(), |gain| format!("x {}", digits(gain))),
            model(&|model| sectors(model.load_sectors)),
            model(&|model| sectors(model.store_sectors)),
            model(&|model| digits(model.bank_conflicts)),
            last,
        ];
        let cells = cells.into_iter().map(Cell::new);
        if self.wrong.is_some() { cells.map(alarm).collect() } else { cells.collect() }
    }
}

/// A number of sectors, in thousands or millions if it is large.
fn sectors(count: f64) -> String {
    match count {
        c if c >= 1e6 => format!("{} M", digits(c / 1e6)),
        c if c >= 1e4 => format!("{} k", digits(c / 1e3)),
        c => format!("{c:.0}"),
    }
}
