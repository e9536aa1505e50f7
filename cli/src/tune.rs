//! `oclprim tune`

use std::{
    collections::BTreeMap,
    io::Write,
    iter,
    path::{Path, PathBuf},
    time::Instant,
};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use comfy_table::Cell;
use indicatif::ProgressBar;
use oclprim::{
    Capabilities, Device, DeviceInfo, DeviceType, ElementType, ErrorKind, Tuning,
    tuning::{Parameter, Primitive, Row, SizeClass, TuningFile, parameters, row_bytes},
};
use oclprim_checks::{
    bench::{Bench, Effort, Sample, measure_in_turns},
    check::{Failure, Level, Verdict},
    ladder::Climb,
    registry,
};
use serde::Serialize;

use crate::{
    bench::{Against, failure_text, progress},
    options::{DeviceChoice, has_room, positive},
    output::{STDOUT, Stop, Style, digits, distinct, json, save, table, time},
};

const EXAMPLES: &str = "\
Examples:
  oclprim tune                                  everything, on the best device
  oclprim tune reduce --type f32 --dry-run      the gain, without writing a file
  oclprim tune sort --n 2^26 --seconds 60 --verbose

The search tries the parameters of each primitive's geometry one after another. It times each combination of values \
with up to four operations. Inputs have 256 KiB, 16 MiB and 256 MiB (96 MiB on CPUs), or --n elements. Before a \
combination is timed, its results are compared with the CPU's. The best combination and the default are measured \
again, interleaved, with every operation that `oclprim bench` has for this primitive and element size. The \
combination is kept if it passes three tests. No operation is slower. Of the operations that the search timed, at \
least one is faster, and the mean gain is more than 2 %. All tiny checks of this element size pass. `Faster` and \
`slower` mean a difference of more than 2 % and of more than the sum of both spreads. Kept values go to `tuning.json` \
in the user's configuration folder, or to the file in the variable OCLPRIM_TUNING. Every program with this crate \
reads that file. A search that fails or runs out of time replaces no row of the file; a wrong result restores the \
default. Tuning changes only three results, which are not specified: the rounding of `fast` float sums, the choice of a \
scatter among equal indices, and the order of an unordered selection. The exit code is 1 if a result is wrong.";

/// Search for the fastest geometry of a device, and keep it if it is faster than the default.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Tune {
    /// The primitives to tune; default: all.
    #[arg(value_parser = names())]
    primitives: Vec<Primitive>,
    #[command(flatten)]
    device: DeviceChoice,
    /// Element types whose sizes are tuned, such as f32, separated by commas.
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    element: Vec<ElementType>,
    /// Numbers of elements, such as 1000000, 2^24 or 64Mi, separated by commas. Each must be in a different size class. The
    /// classes are: less than 1 MiB, less than 64 MiB, and the rest.
    #[arg(long, value_parser = positive, allow_negative_numbers = true, value_delimiter = ',')]
    n: Vec<usize>,
    /// Seconds for the search of each primitive, element size and size class. No new combination of values is measured
    /// after that time.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Keep the caches warm: do not fill them with other data before each run.
    #[arg(long)]
    hot: bool,
    /// Write no tuning file.
    #[arg(long)]
    dry_run: bool,
    /// Print a line for each combination of values that the search tries.
    #[arg(long)]
    verbose: bool,
    /// Write the results to this file as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The operations of one primitive on elements of one size.
struct Subject {
    primitive: Primitive,
    element_bytes: usize,
    benches: Vec<Bench>,
}

/// Values by parameter name; an absent parameter has its default value.
type Chosen = BTreeMap<&'static str, usize>;

/// The result for a primitive, element size and size class.
#[derive(Serialize)]
struct Line {
    primitive: Primitive,
    element_bytes: usize,
    size: SizeClass,
    /// Bytes of the inputs that were measured.
    bytes: usize,
    /// The operation to which `default` and `tuned` belong.
    form: String,
    chosen: Chosen,
    default: Option<Sample>,
    tuned: Option<Sample>,
    /// The default's time over the tuned time: the geometric mean over the operations of the search.
    gain: f64,
    kept: bool,
    /// True if the search and the final measurement are complete.
    ended: bool,
    /// The reason why no variant was kept.
    note: String,
    tried: Vec<Tried>,
    wrong: bool,
}

/// A variant of the search.
#[derive(Serialize)]
struct Tried {
    chosen: Chosen,
    /// The time of the best variant so far, divided by the time of this one: the geometric mean over the operations. If
    /// an operation's ratio is below 0.7, the value is that ratio. `None` if the variant was not measured.
    ratio: Option<f64>,
    what: String,
    wrong: bool,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    /// The commit of the source that the program was built from, if known.
    commit: Option<&'static str>,
    device: DeviceInfo,
    cold: bool,
    lines: Vec<Line>,
}

impl Tune {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        // The baseline is the crate's own tuning, without a tuning file.
        let device = self.device.open()?.with_tuning(shipped())?.profiled()?;
        let info = device.info();
        let Some(caps) = device.capabilities()? else {
            return Err(Stop::usage(format!("{info} has no geometry to tune: choose --device opencl")));
        };
        let path = if self.dry_run { None } else { TuningFile::path() };
        if path.is_none() && !self.dry_run {
            return Err(Stop::usage("there is no folder for a tuning file: set OCLPRIM_TUNING, or use --dry-run"));
        }
        let named = [("the tuning file", path.as_deref()), ("--json", self.json.as_deref())];
        let named = named.into_iter().filter_map(|(name, path)| Some((name, path?)));
        let named: Vec<_> = iter::once(("standard output", Path::new(STDOUT)))
            .chain(named.filter(|(_, path)| path.as_os_str() != STDOUT))
            .collect();
        distinct(&named)?;
        // An unreadable file is an error now, not after an hour of search.
        path.as_deref().map(TuningFile::read).transpose()?;
        let (version, commit) = (env!("CARGO_PKG_VERSION"), option_env!("OCLPRIM_COMMIT"));
        let mut report = Report { version, commit, device: info.clone(), cold: !self.hot, lines: Vec::new() };
        let bar = progress();
        for subject in self.subjects(&caps) {
            for bytes in self.sizes(&subject, &info)? {
                let class = SizeClass::of(bytes);
                bar.set_message(format!("{} of {} bytes, {}", subject.primitive, subject.element_bytes, class.name()));
                let site = Site { tune: &self, device: &device, caps: &caps, subject: &subject, bytes, bar: &bar };
                let mut line = site.tune();
                if self.verbose {
                    bar.suspend(|| line.print_tried(out))?;
                }
                if let Some(path) = &path {
                    line.store(path, &info)?;
                }
                report.lines.push(line);
            }
        }
        bar.finish_and_clear();
        if report.lines.is_empty() {
            return Err(Stop::usage("nothing to tune: no such primitive and type has parameters on this device"));
        }
        let wrong = report.lines.iter().filter(|line| line.wrong).count();
        match &self.json {
            Some(path) if path.as_os_str() == STDOUT => out.write_all(&json(&report)?)?,
            file => {
                if let Some(file) = file {
                    save(&[(file, &[json(&report)?])], out)?;
                }
                report.print(out)?;
                let kept = report.lines.iter().filter(|line| line.kept).count();
                match &path {
                    Some(path) => writeln!(out, "\n{kept} kept in {}", path.display())?,
                    None => writeln!(out, "\n{kept} would be kept")?,
                }
            }
        }
        if wrong > 0 { Err(Stop::mismatch(format!("{wrong} searches found wrong results"))) } else { Ok(()) }
    }

    /// The primitives and element sizes that have parameters on this device.
    fn subjects(&self, caps: &Capabilities) -> Vec<Subject> {
        let mut subjects: Vec<Subject> = Vec::new();
        for primitive in
            Primitive::ALL.into_iter().filter(|primitive| crate::bench::wanted(&self.primitives, primitive))
        {
            let benches =
                registry::specs().iter().flat_map(|spec| spec.benches().into_iter().map(move |it| (spec.name(), it)));
            for (_, bench) in benches.filter(|(spec, bench)| is_of(primitive, spec, &bench.form)) {
                let size = row_bytes(primitive, bench.element.size());
                let same = |subject: &&mut Subject| subject.primitive == primitive && subject.element_bytes == size;
                match subjects.iter_mut().find(same) {
                    Some(subject) => subject.benches.push(bench),
                    None => subjects.push(Subject { primitive, element_bytes: size, benches: vec![bench] }),
                }
            }
        }
        let wanted = |bench: &Bench| crate::bench::wanted(&self.element, &bench.element);
        subjects.retain(|subject| {
            let some = parameters(subject.primitive, caps, subject.element_bytes).iter().any(|it| it.values.len() > 1);
            some && subject.benches.iter().any(wanted)
        });
        subjects
    }

    /// Bytes of the inputs, one for each size class.
    fn sizes(&self, subject: &Subject, info: &DeviceInfo) -> Result<Vec<usize>, Stop> {
        if self.n.is_empty() {
            let large = if info.ty == DeviceType::Cpu { 96 << 20 } else { 256 << 20 };
            return Ok(vec![256 << 10, 16 << 20, large]);
        }
        let size = subject.benches[0].element.size();
        let mut sizes: Vec<_> = self.n.iter().map(|n| n.saturating_mul(size)).collect();
        sizes.sort_unstable();
        let twice = sizes.windows(2).find(|pair| SizeClass::of(pair[0]) == SizeClass::of(pair[1]));
        match twice {
            Some(pair) => {
                let (a, b, class) = (pair[0] / size, pair[1] / size, SizeClass::of(pair[0]).name());
                Err(Stop::usage(format!("{a} and {b} elements of {size} bytes are both {class}: give one of them")))
            }
            None => Ok(sizes),
        }
    }
}

fn names() -> impl TypedValueParser<Value = Primitive> {
    PossibleValuesParser::new(Primitive::ALL.map(Primitive::name)).try_map(|name| name.parse())
}

fn shipped() -> Tuning {
    Tuning::default().without_file()
}

/// The spec that contains a primitive.
fn spec_of(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::CopyRanges | Primitive::Gather | Primitive::Reverse | Primitive::Transfer => Primitive::Copy.name(),
        _ => primitive.name(),
    }
}

/// Returns true if an operation of `spec` uses the parameters of `primitive`.
fn is_of(primitive: Primitive, spec: &str, form: &str) -> bool {
    let starts = |names: &[&str]| names.iter().any(|name| form.starts_with(name));
    match (primitive, spec) {
        (Primitive::Copy, "copy") => starts(&["aligned", "from element"]),
        (Primitive::CopyRanges, "copy") => starts(&["ranges", "strided rows"]),
        (Primitive::Gather, "copy") => starts(&["gather", "scatter"]),
        (Primitive::Reverse, "copy") => starts(&["reverse"]),
        (Primitive::Transfer, "copy") => matches!(form, "upload slice" | "download slice" | "download Vec"),
        // These use the parameters of reductions.
        (Primitive::Reduce, "scan") => form.contains("of lines"),
        (Primitive::Reduce, "select") => form.contains("by key"),
        (Primitive::Scan, "scan") => !form.contains("of lines"),
        _ => primitive.name() == spec,
    }
}

/// One search.
struct Site<'a> {
    tune: &'a Tune,
    device: &'a Device,
    caps: &'a Capabilities,
    subject: &'a Subject,
    bytes: usize,
    bar: &'a ProgressBar,
}

/// The reason for which a variant has no time.
enum Lost {
    Error(String),
    Wrong(String),
}

impl From<oclprim::Error> for Lost {
    fn from(error: oclprim::Error) -> Self {
        Self::Error(error.to_string())
    }
}

impl Site<'_> {
    fn tune(&self) -> Line {
        let &Subject { primitive, element_bytes, ref benches } = self.subject;
        let mut line = Line {
            primitive,
            element_bytes,
            size: SizeClass::of(self.bytes),
            bytes: self.bytes,
            form: format!("{} {}", benches[0].form, benches[0].element),
            chosen: Chosen::new(),
            default: None,
            tuned: None,
            gain: 1.0,
            kept: false,
            ended: false,
            note: String::new(),
            tried: Vec::new(),
            wrong: false,
        };
        let benches = self.possible();
        let leads = leads(&benches);
        let searched = self.search(&mut line, &leads);
        let result = searched.and_then(|ended| self.confirm(&mut line, &benches, &leads).map(|()| ended));
        match result {
            Ok(ended) => line.ended = ended,
            Err(lost) => line.lose(lost),
        }
        // A device with a wrong result in one variant is not trusted in another.
        if let Some(tried) = line.tried.iter().find(|tried| tried.wrong) {
            line.lose(Lost::Wrong(format!("{}, {}", chosen_text(&tried.chosen), tried.what)));
        }
        line
    }

    /// The operations that the device supports and that fit memory.
    fn possible(&self) -> Vec<&Bench> {
        let all = self.subject.benches.iter();
        all.filter(|bench| self.has_room(bench) && !self.is_unsupported(bench)).collect()
    }

    fn elements(&self, bench: &Bench) -> usize {
        (self.bytes / bench.element.size()).max(1)
    }

    fn has_room(&self, bench: &Bench) -> bool {
        has_room(&self.device.info(), 8 * (bench.bytes)(self.elements(bench))).is_ok()
    }

    /// Prepares an operation with a variant, and compares its result with the CPU's.
    fn verified(&self, bench: &Bench, chosen: &Chosen) -> Result<Climb, Lost> {
        let mut prepared = (bench.prepare)(&self.variant(chosen)?, self.elements(bench))?;
        prepared.reset()?;
        prepared.run()?;
        match prepared.verify() {
            Ok(()) => Ok(prepared),
            Err(Failure::Error(error)) => Err(error.into()),
            Err(failure) => Err(Lost::Wrong(format!("{}: {}", bench.form, failure_text(failure)))),
        }
    }

    fn effort(&self, runs: usize, seconds: f64) -> Effort {
        Effort { warm_up: 1, runs, seconds, cold: !self.tune.hot }
    }

    /// Tries the values of one parameter after another, and repeats this while it helps. Returns false if time ran out.
    fn search(&self, line: &mut Line, leads: &[&Bench]) -> Result<bool, Lost> {
        let begin = Instant::now();
        if leads.is_empty() {
            return Err(Lost::Error("there is no memory for such inputs, or the device supports no operation".into()));
        }
        let mut best = self.verified_all(leads, &line.chosen)?;
        let all = parameters(self.subject.primitive, self.caps, self.subject.element_bytes);
        let mut again = true;
        while std::mem::take(&mut again) {
            for Parameter { name, usual, values, .. } in &all {
                let before = line.chosen.get(name).copied().unwrap_or(*usual);
                for &value in values.iter().filter(|&&value| value != before) {
                    if begin.elapsed().as_secs_f64() > self.tune.seconds {
                        line.note = format!("incomplete after {} s", self.tune.seconds);
                        return Ok(false);
                    }
                    let mut chosen = line.chosen.clone();
                    chosen.insert(name, value);
                    chosen.retain(|name, value| all.iter().any(|it| it.name == *name && it.usual != *value));
                    if line.tried.iter().any(|tried| tried.chosen == chosen) || chosen.is_empty() {
                        continue;
                    }
                    self.bar.set_message(format!("{} {name} {value}", line.what()));
                    let mut wrong = false;
                    let (ratio, what) = match self.verified_all(leads, &chosen) {
                        Ok(mut tried) => {
                            let ratio = self.compare(&mut best, &mut tried)?;
                            if ratio > 1.02 {
                                (line.chosen, best) = (chosen.clone(), tried);
                                // Other parameters may have better values now.
                                again = all.len() > 1;
                            }
                            (Some(ratio), String::new())
                        }
                        Err(Lost::Error(text)) => (None, text),
                        Err(Lost::Wrong(text)) => {
                            wrong = true;
                            (None, text)
                        }
                    };
                    line.tried.push(Tried { chosen, ratio, what, wrong });
                }
            }
        }
        Ok(true)
    }

    fn verified_all(&self, benches: &[&Bench], chosen: &Chosen) -> Result<Vec<Climb>, Lost> {
        benches.iter().map(|bench| self.verified(bench, chosen)).collect()
    }

    /// Returns the geometric mean of the ratios of `old` times to `new` times. A ratio below `FAR_WORSE` ends the
    /// comparison, because such a variant is never the best one.
    fn compare(&self, old: &mut [Climb], new: &mut [Climb]) -> Result<f64, Lost> {
        const FAR_WORSE: f64 = 0.7;
        let (mut sum, count) = (0.0, old.len());
        for (old, new) in old.iter_mut().zip(new) {
            let times = measure_in_turns(self.device, self.effort(7, 0.4), &mut [old, new])?;
            let ratio = times[0].device.median / times[1].device.median;
            if ratio < FAR_WORSE {
                return Ok(ratio);
            }
            sum += if ratio.is_finite() { ratio.ln() } else { 0.0 };
        }
        Ok((sum / count as f64).exp())
    }

    /// Measures the best variant and the default, interleaved, with every operation.
    fn confirm(&self, line: &mut Line, benches: &[&Bench], leads: &[&Bench]) -> Result<(), Lost> {
        if line.chosen.is_empty() {
            if line.note.is_empty() {
                line.note = "the default is best".into();
            }
            return Ok(());
        }
        let leads: Vec<_> = leads.iter().map(|bench| (&bench.form, bench.element)).collect();
        let (mut logarithms, mut faster) = (Vec::new(), false);
        for bench in benches {
            self.bar.set_message(format!("{} against the default: {} {}", line.what(), bench.form, bench.element));
            let (mut old, mut new) = (self.verified(bench, &Chosen::new())?, self.verified(bench, &line.chosen)?);
            let mut times = measure_in_turns(self.device, self.effort(21, 2.0), &mut [&mut old, &mut new])?;
            let mut against = Against::new(&times[0].device, &times[1].device);
            if against.verdict == "slower" {
                // Measures again, because one of many operations can be slow by chance.
                times = measure_in_turns(self.device, self.effort(41, 4.0), &mut [&mut old, &mut new])?;
                against = Against::new(&times[0].device, &times[1].device);
            }
            if against.verdict == "slower" {
                let (form, ratio) = (&bench.form, digits(1.0 / against.ratio));
                line.note = format!("{form} {} takes {ratio} times as long", bench.element);
                return Ok(());
            }
            if leads.contains(&(&bench.form, bench.element)) {
                logarithms.push(against.ratio.ln());
                faster |= against.verdict == "faster";
                if line.default.is_none() {
                    let [old, new] = [0, 1].map(|i| Some(times[i].device.clone()));
                    (line.default, line.tuned) = (old, new);
                    line.form = format!("{} {}", bench.form, bench.element);
                }
            }
        }
        line.gain = (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp();
        line.kept = faster && line.gain > 1.02;
        if !line.kept {
            line.note = "not faster than the default beyond the noise".into();
            return Ok(());
        }
        self.bar.set_message(format!("{} checks of every operation", line.what()));
        self.check(&line.chosen)
    }

    /// Checks all operations and types of this element size, including those without a benchmark case.
    fn check(&self, chosen: &Chosen) -> Result<(), Lost> {
        let &Subject { primitive, element_bytes, .. } = self.subject;
        let device = self.variant(chosen)?;
        let cases = registry::specs().iter().flat_map(|spec| {
            let own = spec.name() == spec_of(primitive);
            let cases = spec.cases(Level::Tiny).into_iter();
            cases.filter(move |case| own || is_of(primitive, spec.name(), &case.form))
        });
        for case in cases {
            let fails = |device| matches!(case.run(device).verdict, Verdict::Fail(_));
            let concerned = row_bytes(primitive, case.element.size()) == element_bytes;
            if concerned && fails(&device) && !fails(self.device) {
                let (form, shape, data) = (&case.form, &case.shape, &case.data);
                return Err(Lost::Wrong(format!("{form} {}, {shape}, {data} data", case.element)));
            }
        }
        Ok(())
    }

    fn variant(&self, chosen: &Chosen) -> oclprim::Result<Device> {
        let set = |tuning: Tuning, (name, value): (&&str, &usize)| tuning.set(self.subject.primitive, name, *value);
        self.device.with_tuning(chosen.iter().fold(shipped(), set))
    }

    fn is_unsupported(&self, bench: &Bench) -> bool {
        /// The largest number of elements to try.
        const FEW: usize = 1 << 12;
        let n = self.elements(bench).min(FEW);
        let done = (bench.prepare)(self.device, n).and_then(|mut prepared| prepared.run());
        done.is_err_and(|error| error.kind() == ErrorKind::Unsupported)
    }
}

/// Returns at most four operations that represent all of them: every n-th one, for a variety of kernels.
fn leads<'a>(benches: &[&'a Bench]) -> Vec<&'a Bench> {
    const LEADS: usize = 4;
    let step = benches.len().div_ceil(LEADS).max(1);
    benches.iter().step_by(step).copied().collect()
}

fn chosen_text(chosen: &Chosen) -> String {
    let values: Vec<_> = chosen.iter().map(|(name, value)| format!("{name} {value}")).collect();
    if values.is_empty() { "default".into() } else { values.join(", ") }
}

impl Line {
    fn what(&self) -> String {
        format!("{} of {} bytes, {}:", self.primitive, self.element_bytes, self.size.name())
    }

    /// Writes the kept values to the file, or a row that keeps the default. A failed or incomplete search does not
    /// replace an earlier row; a search with a wrong result does.
    fn store(&mut self, path: &Path, info: &DeviceInfo) -> Result<(), Stop> {
        if !self.ended && !self.wrong && !self.kept {
            return Ok(());
        }
        let chosen = if self.kept { self.chosen.clone() } else { Chosen::new() };
        let row = Row::new(info, self.primitive, self.element_bytes, self.size, chosen);
        let mut earlier = false;
        TuningFile::update(path, |file| {
            earlier = !self.ended && !self.wrong && file.rows().iter().any(|old| old.same_place(&row));
            if !earlier {
                file.put(&row);
            }
        })?;
        if earlier {
            self.kept = false;
            self.note = format!("{}: the row of an earlier search stays", self.note);
        }
        Ok(())
    }

    fn lose(&mut self, lost: Lost) {
        self.kept = false;
        self.note = match lost {
            Lost::Error(text) => text,
            Lost::Wrong(text) => {
                self.wrong = true;
                format!("WRONG: {text}")
            }
        };
    }

    fn print_tried(&self, out: &mut dyn Write) -> Result<(), Stop> {
        for Tried { chosen, ratio, what, wrong } in &self.tried {
            let what = if *wrong { format!("WRONG: {what}") } else { what.clone() };
            let ratio = ratio.map_or(what, |ratio| format!("{} x", digits(ratio)));
            writeln!(out, "{} {}: {ratio}", self.what(), chosen_text(chosen))?;
        }
        Ok(())
    }
}

impl Report {
    fn print(&self, out: &mut dyn Write) -> Result<(), Stop> {
        writeln!(out, "{} ({})\n", self.device, self.device.driver)?;
        let header = ["primitive", "bytes", "inputs", "operation", "default", "tuned", "gain", "parameters", ""];
        let mut table = table(Style::Plain, &header, 4..7);
        for line in &self.lines {
            let sample = |sample: &Option<Sample>| Cell::new(sample.as_ref().map_or("-".into(), |it| time(it.median)));
            let gain = if line.default.is_some() { format!("{} x", digits(line.gain)) } else { "-".into() };
            table.add_row(vec![
                Cell::new(line.primitive),
                Cell::new(line.element_bytes),
                Cell::new(line.size.name()),
                Cell::new(&line.form),
                sample(&line.default),
                sample(&line.tuned),
                Cell::new(gain),
                Cell::new(chosen_text(&line.chosen)),
                Cell::new(if line.kept { "kept" } else { &line.note }),
            ]);
        }
        Ok(writeln!(out, "{}", table.trim_fmt())?)
    }
}
