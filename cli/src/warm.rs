//! `oclprim warm` and `oclprim cache`

use std::{
    io::{self, BufRead, BufReader, Write},
    process::{Child, Stdio},
    str::FromStr,
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

use clap::{Args, Subcommand, ValueEnum};
use oclprim::{
    Bins, Device, Element, ElementType, Order, Source, Top,
    internals::{cache, with_element},
    op::{NonZero, Sum},
};

use crate::{
    itself,
    options::DeviceChoice,
    output::{Stop, bytes, json},
};

const EXAMPLES: &str = "\
Examples:
  oclprim warm                              every primitive of the list above, for f32 and u32
  oclprim warm sort topk --type u64         two primitives, for another type

The kernels are those of a call with 2^20 aligned elements. Other operations, such as those along axes and in segments, have kernels of their own.";

/// Elements of each call.
const N: usize = 1 << 20;

/// Build kernels ahead, so that the first calls of a program need not.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Warm {
    /// The primitives. Default: all of them.
    primitives: Vec<Primitive>,
    /// The element type. May be given several times.
    #[arg(long = "type", value_name = "TYPE", default_values = ["f32", "u32"])]
    types: Vec<ElementType>,
    #[command(flatten)]
    device: DeviceChoice,
    /// The number of processes that build in parallel. Default: one for each thread of the host. Drivers build few programs at a
    /// time in one process.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// Run the calls that standard input names, and write a line after each.
    #[arg(long, hide = true)]
    worker: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Primitive {
    Gather,
    Histogram,
    Merge,
    Reduce,
    Scan,
    Select,
    Sort,
    Statistics,
    Topk,
    Transpose,
    Unique,
}

impl Primitive {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Calls the most common operations of the primitive, such as `sort` and `argsort`.
    fn call<T: Element>(self, device: &Device) -> oclprim::Result<()> {
        let x: Vec<T> = (0..N).map(|i| T::from_f64((i % 97) as f64)).collect();
        let input = device.upload(&x)?;
        match self {
            Self::Gather => {
                let indices = device.iota(N, 0u32, 1)?;
                drop(device.gather(&input, &indices)?);
            }
            Self::Histogram => {
                device.histogram(&input, &Bins::even(T::ZERO, T::from_f64(97.0), 97)?)?;
            }
            Self::Merge => drop(device.merge(&input, &input, Order::ascending())?),
            Self::Reduce => {
                device.reduce(&input, Sum)?;
            }
            Self::Scan => drop(device.scan(&input, Sum)?),
            Self::Select => {
                let flags = device.filled(N, 1u8)?;
                drop(device.select(input.flagged(&flags), NonZero)?);
            }
            Self::Sort => {
                drop(device.sort(&input, Order::ascending())?);
                drop(device.argsort::<_, u32, _>(&input, Order::ascending())?);
            }
            Self::Statistics => {
                device.statistics(&input)?;
            }
            Self::Topk => drop(device.top_k(&input, Top::largest(100))?),
            Self::Transpose => drop(device.transpose(&input, (N / 1024, 1024))?),
            Self::Unique => drop(device.unique(&input)?),
        }
        device.finish()
    }
}

/// A primitive and a type, which one process builds.
#[derive(Clone, Copy)]
struct Task(Primitive, ElementType);

impl Task {
    fn run(self, device: &Device) -> oclprim::Result<()> {
        let Self(primitive, element) = self;
        with_element!(element, T => primitive.call::<T>(device))
    }

    fn line(self) -> String {
        format!("{} {}", self.0.name(), self.1)
    }

    fn parse(line: &str) -> Option<Self> {
        let (primitive, element) = line.trim().split_once(' ')?;
        Some(Self(Primitive::from_str(primitive, true).ok()?, ElementType::from_str(element).ok()?))
    }
}

impl Warm {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        // The self-test runs once, before the workers start.
        let device = self.device.open_for_kernels()?;
        let capabilities = device.capabilities()?;
        let Some(capabilities) = capabilities else {
            return Err(Stop::usage(format!(
                "{} has no kernels: `oclprim devices` lists the OpenCL devices",
                device.info()
            )));
        };
        if self.worker {
            return serve(&device, out);
        }
        let Some(before) = cache::contents() else {
            return Err(Stop::usage("there is no cache folder: OCLPRIM_CACHE_DIR is empty or cannot be used"));
        };
        let primitives = if self.primitives.is_empty() { Primitive::value_variants() } else { &self.primitives };
        let types: Vec<_> = self.types.iter().filter(|element| capabilities.supports(**element).is_ok()).collect();
        let tasks: Vec<Task> = primitives
            .iter()
            .flat_map(|&primitive| types.iter().map(move |&&element| Task(primitive, element)))
            .collect();
        let jobs = self.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
        let (start, processes) = (Instant::now(), jobs.min(tasks.len()));
        // The longest builds are not known, so each worker takes the next task when it is free.
        let (waiting, failures) = (Mutex::new(tasks.iter()), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for _ in 0..processes {
                scope.spawn(|| {
                    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next().copied();
                    if let Err(error) = self.work(next) {
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                    }
                });
            }
        });
        let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        let after = cache::contents().unwrap_or_default();
        let new = after.programs.saturating_sub(before.programs);
        let kept = match after.programs {
            // PoCL has a cache of its own.
            0 => "the crate keeps no programs of this driver".to_owned(),
            all => format!("{new} new programs, {all} in all ({})", bytes(after.bytes)),
        };
        writeln!(
            out,
            "{}: {} calls in {:.1} s by {processes} processes; {kept}",
            device.info(),
            tasks.len(),
            start.elapsed().as_secs_f64()
        )?;
        match &failures[..] {
            [] => Ok(()),
            [first, ..] => Err(Stop::usage(format!("{} of {processes} processes failed: {first}", failures.len()))),
        }
    }

    /// Gives tasks to a process, one after another.
    fn work(&self, next: impl Fn() -> Option<Task>) -> Result<(), String> {
        let Some(mut task) = next() else { return Ok(()) };
        let mut command = itself::command().map_err(|error| error.to_string())?;
        command.args(["warm", "--worker"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(device) = self.device.selector() {
            command.args(["--device", device]);
        }
        let mut worker = command.spawn().map_err(|error| format!("a process did not start: {error}"))?;
        let (Some(mut input), Some(output)) = (worker.stdin.take(), worker.stdout.take()) else {
            return Err("a process has no pipes".into());
        };
        let mut lines = BufReader::new(output).lines();
        loop {
            let answer = writeln!(input, "{}", task.line()).ok().and_then(|()| lines.next()).and_then(Result::ok);
            if answer.as_deref() != Some("built") {
                drop(input);
                return Err(format!("{}: {}", task.line(), last_words(worker)));
            }
            match next() {
                Some(other) => task = other,
                None => break,
            }
        }
        drop(input);
        let _ = worker.wait();
        Ok(())
    }
}

/// The last line that a process wrote to standard error, or how it ended.
fn last_words(worker: Child) -> String {
    match worker.wait_with_output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            text.lines().rfind(|line| !line.trim().is_empty()).map_or_else(|| output.status.to_string(), str::to_owned)
        }
        Err(error) => error.to_string(),
    }
}

/// Runs the calls that standard input names.
fn serve(device: &Device, out: &mut dyn Write) -> Result<(), Stop> {
    for line in io::stdin().lock().lines() {
        let line = line?;
        let task =
            Task::parse(&line).ok_or_else(|| Stop::usage(format!("expected a primitive and a type, got `{line}`")))?;
        task.run(device)?;
        writeln!(out, "built")?;
        out.flush()?;
    }
    Ok(())
}

const CACHE_EXAMPLES: &str = "\
Examples:
  oclprim cache
  oclprim cache clear      the next calls build their kernels again

OCLPRIM_CACHE_DIR names the folder, and OCLPRIM_CACHE_BYTES limits its size. Drivers have caches of their own.";

/// Show or clear the cache of built programs and self-test results.
#[derive(Args)]
#[command(after_help = CACHE_EXAMPLES)]
pub(crate) struct Cache {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Subcommand)]
enum Action {
    /// Remove all entries.
    Clear,
}

impl Cache {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let Some(found) = cache::contents() else {
            return Ok(writeln!(out, "no cache: OCLPRIM_CACHE_DIR is empty, or there is no such folder yet")?);
        };
        if let Some(Action::Clear) = self.action {
            let removed = cache::clear()?;
            return Ok(writeln!(out, "{removed} entries removed from {}", found.folder.display())?);
        }
        if self.json {
            return Ok(out.write_all(&json(&found)?)?);
        }
        writeln!(out, "folder      {}", found.folder.display())?;
        writeln!(out, "programs    {}", found.programs)?;
        writeln!(out, "self-tests  {}", found.self_tests)?;
        writeln!(out, "size        {} of {} at most", bytes(found.bytes), bytes(found.limit))?;
        Ok(())
    }
}
