//! Results of checks.

use std::collections::BTreeMap;

use comfy_table::{Cell, CellAlignment};
use oclprim::ElementType;
use oclprim_checks::check::{Case, Level, Verdict};
use serde::{Deserialize, Serialize};

use crate::output::alarm;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail(_) => self.failed += 1,
            Verdict::Skip(_) => self.skipped += 1,
        }
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    pub(crate) fn line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }

    /// The counts that are not 0, in few characters; failures stand out.
    pub(crate) fn cell(&self) -> Cell {
        let parts = [(self.passed, ""), (self.failed, " FAIL"), (self.skipped, " skip")];
        let parts: Vec<_> = parts.iter().filter(|part| part.0 > 0).map(|(n, what)| format!("{n}{what}")).collect();
        let cell = Cell::new(parts.join(", ")).set_alignment(CellAlignment::Right);
        if self.failed > 0 { alarm(cell) } else { cell }
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct FailedCase {
    pub(crate) device: String,
    primitive: String,
    form: String,
    pub(crate) element: ElementType,
    shape: String,
    data: String,
    pub(crate) n: usize,
    pub(crate) what: String,
}

impl FailedCase {
    /// The same case, in which `clean` has changed each text that can come from a driver.
    pub(crate) fn cleaned(&self, clean: impl Fn(&str) -> String) -> Self {
        Self { device: clean(&self.device), what: clean(&self.what), ..self.clone() }
    }

    pub(crate) fn line(&self) -> String {
        let Self { device, primitive, form, element, shape, data, what, .. } = self;
        format!("{primitive} {form}, {element}, {shape}, {data} data, on {device}: {what}")
    }
}

/// One operation of a primitive, with the counts of each type.
#[derive(Serialize, Deserialize)]
pub(crate) struct Form {
    pub(crate) primitive: String,
    /// The primitive and the operation.
    pub(crate) name: String,
    pub(crate) types: BTreeMap<ElementType, Counts>,
}

/// The results of one target.
#[derive(Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) device: String,
    pub(crate) level: String,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    pub(crate) seconds: f64,
    pub(crate) skips: BTreeMap<String, usize>,
    pub(crate) failures: Vec<FailedCase>,
    pub(crate) forms: Vec<Form>,
    #[serde(skip)]
    pub(crate) slowest: BTreeMap<String, f64>,
    #[serde(skip)]
    pub(crate) own: bool,
    /// The device's index among the descriptions.
    #[serde(skip)]
    pub(crate) described: usize,
    /// True if the driver may be at fault: PoCL 5 or 6 in the geometry of a GPU.
    #[serde(skip)]
    pub(crate) doubtful: bool,
}

/// The name of a level, as on the command line.
pub(crate) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Tiny => "tiny",
        Level::Full => "full",
        _ => "quick",
    }
}

impl Report {
    pub(crate) fn new(device: String, level: Level, own: bool) -> Self {
        Self {
            device,
            level: level_name(level).into(),
            counts: Counts::default(),
            seconds: 0.0,
            skips: BTreeMap::new(),
            failures: Vec::new(),
            forms: Vec::new(),
            slowest: BTreeMap::new(),
            own,
            described: 0,
            doubtful: false,
        }
    }

    /// A device that is listed but does not work counts as one failed check.
    pub(crate) fn of_unusable(device: String, described: usize, error: &oclprim::Error) -> Self {
        let mut report = Self::new(device, Level::Quick, true);
        report.described = described;
        let case = Case::new("self-test", ElementType::U32, "none", "no", 0, |_| Ok(()));
        report.add("device", case, Verdict::Fail(error.to_string()), 0.0);
        report
    }

    /// Adds the results of the same device in another geometry.
    pub(crate) fn merge(&mut self, other: Self) {
        self.counts.add_all(&other.counts);
        self.seconds += other.seconds;
        for (reason, count) in other.skips {
            *self.skips.entry(reason).or_default() += count;
        }
        self.failures.extend(other.failures);
        for form in other.forms {
            let Some(known) = self.forms.iter_mut().find(|known| known.name == form.name) else {
                self.forms.push(form);
                continue;
            };
            for (element, counts) in form.types {
                known.types.entry(element).or_default().add_all(&counts);
            }
        }
    }

    pub(crate) fn add(&mut self, primitive: &'static str, case: Case, verdict: Verdict, seconds: f64) {
        let name = format!("{primitive} {}", case.form);
        *self.slowest.entry(format!("{name} {}", case.element)).or_default() += seconds;
        let index = self.forms.iter().position(|form| form.name == name).unwrap_or_else(|| {
            self.forms.push(Form { primitive: primitive.into(), name, types: BTreeMap::new() });
            self.forms.len() - 1
        });
        self.forms[index].types.entry(case.element).or_default().add(&verdict);
        self.counts.add(&verdict);
        match verdict {
            Verdict::Pass => {}
            Verdict::Skip(reason) => *self.skips.entry(reason).or_default() += 1,
            Verdict::Fail(what) => {
                let Case { form, element, shape, data, n, .. } = case;
                let device = self.device.clone();
                let primitive = primitive.into();
                self.failures.push(FailedCase { device, primitive, form, element, shape, data, n, what });
            }
        }
    }
}
