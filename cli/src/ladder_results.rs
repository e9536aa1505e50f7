//! Measurements of the steps of a ladder.

use std::time::Instant;

use oclprim::{Device, DeviceInfo};
use oclprim_checks::{
    bench::{Effort, Sample, cache_bytes, copy_roof, measure_case},
    check::Failure,
    ladder::{Model, Request, Rung},
};
use serde::{Deserialize, Serialize};

use crate::{
    bench::failure_text,
    options::has_room,
    output::{Stop, bytes, count},
};

/// A measured step.
#[derive(Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) step: String,
    pub(crate) bytes: u64,
    pub(crate) sample: Option<Sample>,
    pub(crate) gb_per_s: Option<f64>,
    pub(crate) of_copy: Option<f64>,
    /// Time of the last measured step before this one, over the time of this one.
    pub(crate) gain: Option<f64>,
    #[serde(skip_deserializing)]
    pub(crate) model: Option<Model>,
    pub(crate) unavailable: Option<String>,
    pub(crate) wrong: Option<String>,
}

/// A measured ladder.
#[derive(Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) version: String,
    pub(crate) ladder: String,
    pub(crate) device: DeviceInfo,
    pub(crate) request: String,
    pub(crate) copy_gb_per_s: f64,
    pub(crate) warning: Option<String>,
    pub(crate) rungs: Vec<Step>,
}

/// Describes the parts of the request that this ladder uses.
fn describe(ladder: &str, request: &Request) -> String {
    let mut words = vec![match ladder {
        "transpose" => format!("{} x {} {}", request.shape.0, request.shape.1, request.element),
        "histogram" => {
            let (n, bins) = (count(request.n), count(request.bins));
            format!("{n} samples in {bins} bins, {}", request.distribution.name())
        }
        _ => format!("{} {}", count(request.n), request.element),
    }];
    words.extend(request.block.map(|block| format!("work-groups of {block}")));
    words.join(", ")
}

impl Step {
    fn new(rung: &Rung) -> Self {
        let (name, step, bytes, model) = (rung.name.into(), rung.step.into(), rung.bytes, rung.model);
        let (sample, gb_per_s, of_copy, gain, unavailable) = (None, None, None, None, rung.unavailable.clone());
        Self { name, step, bytes, sample, gb_per_s, of_copy, gain, model, unavailable, wrong: None }
    }

    fn measure(rung: Rung, device: &Device, effort: Effort, roof: f64, before: Option<f64>) -> Self {
        let mut this = Self::new(&rung);
        if this.unavailable.is_some() {
            return this;
        }
        let measured = (rung.prepare)(device).map_err(Failure::from).and_then(|mut prepared| {
            // A comparison before the timed runs keeps a wrong kernel from running again and again.
            prepared.reset()?;
            prepared.run()?;
            prepared.verify()?;
            let sample = measure_case(device, effort, &mut prepared)?.device;
            prepared.verify()?;
            Ok(sample)
        });
        match measured {
            Ok(sample) => {
                let bandwidth = sample.bandwidth(this.bytes);
                this.gb_per_s = Some(bandwidth);
                this.of_copy = Some(bandwidth / roof);
                this.gain = before.map(|before| before / sample.median);
                this.sample = Some(sample);
            }
            Err(Failure::Error(error)) if is_refusal(&error) => this.unavailable = Some(error.to_string()),
            Err(failure) => this.wrong = Some(failure_text(failure)),
        }
        this
    }
}

/// Returns true if the device lacks a capability or the memory for a step.
fn is_refusal(error: &oclprim::Error) -> bool {
    matches!(error.kind(), oclprim::ErrorKind::Unsupported | oclprim::ErrorKind::OutOfMemory)
}

impl Report {
    /// Measures the steps of a ladder, in order. After `until` no further step starts.
    pub(crate) fn measure(
        ladder: &dyn oclprim_checks::ladder::Ladder,
        request: &Request,
        device: &Device,
        until: Option<Instant>,
    ) -> Result<Self, Stop> {
        let rungs = ladder.rungs(request, device)?;
        let working_set = rungs.iter().map(|rung| rung.bytes).max().unwrap_or(0);
        has_room(&device.info(), working_set).map_err(Stop::usage)?;
        let copy = copy_roof(device, working_set, request.effort)?.device.bandwidth(working_set);
        let cache = cache_bytes(device);
        let warning = (working_set < 4 * cache).then(|| {
            format!(
                "the working set of {} is less than four times the last-level cache of {}: cache hits raise the bandwidths",
                bytes(working_set),
                bytes(cache)
            )
        });
        let mut report = Self {
            version: env!("CARGO_PKG_VERSION").into(),
            ladder: ladder.name().to_owned(),
            device: device.info(),
            request: describe(ladder.name(), request),
            copy_gb_per_s: copy,
            warning,
            rungs: Vec::new(),
        };
        for rung in rungs {
            if until.is_some_and(|until| Instant::now() > until) {
                let reason = "not measured: the time for ladders was over";
                report.rungs.push(Step { unavailable: Some(reason.into()), ..Step::new(&rung) });
                continue;
            }
            let before = report.rungs.iter().rev().find_map(|step| step.sample.as_ref()).map(|sample| sample.median);
            report.rungs.push(Step::measure(rung, device, request.effort, copy, before));
        }
        Ok(report)
    }
}
