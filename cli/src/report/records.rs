//! A page of saved records, instead of new measurements.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use oclprim::{DeviceInfo, ElementType};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::found::{Found, GROWING, Ladder, Series, operation, program, representatives};
use crate::{
    bench::{self, Line},
    check, check_results,
    devices::Description,
    ladder_results,
    output::{Stop, of_file},
    submission::Os,
};

/// The parts of a file of `oclprim check --report` that the page shows.
#[derive(Deserialize)]
struct Submission {
    version: String,
    commit: Option<String>,
    time: String,
    os: Os,
    devices: Vec<Submitted>,
}

#[derive(Deserialize)]
struct Submitted {
    #[serde(flatten)]
    description: Description,
    /// The device's own geometry is the first.
    geometries: Vec<check_results::Report>,
}

/// A file, by the command that wrote it.
enum Record {
    Found(Box<Found>),
    Bench(bench::Report),
    Ladder(ladder_results::Report),
    Checks(Submission),
}

const WRITERS: &str = "`bench --json`, `ladder --json`, `check --report` or `report --json`";

impl Record {
    fn read(path: &Path) -> Result<Self, Stop> {
        let text = fs::read_to_string(path).map_err(of_file(path))?;
        let refused = |error: String| Stop::usage(format!("{}: not a file of {WRITERS}: {error}", path.display()));
        let value: Value = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        fn parse<T: DeserializeOwned>(value: Value) -> Result<T, String> {
            serde_json::from_value(value).map_err(|error| error.to_string())
        }
        let has = |key: &str| value.get(key).is_some();
        let record = if has("bandwidths") {
            parse(value).map(Box::new).map(Self::Found)
        } else if has("lines") {
            parse(value).map(Self::Bench)
        } else if has("rungs") {
            parse(value).map(Self::Ladder)
        } else if has("devices") && has("format") {
            parse(value).map(Self::Checks)
        } else {
            Err("expected the key `bandwidths`, `lines` or `rungs`, or both `format` and `devices`".into())
        };
        record.map_err(refused)
    }

    /// The devices in it.
    fn devices(&self) -> Vec<&DeviceInfo> {
        match self {
            Self::Found(found) => vec![&found.description.info],
            Self::Bench(report) => vec![&report.device],
            Self::Ladder(report) => vec![&report.device],
            Self::Checks(submission) => submission.devices.iter().map(|device| &device.description.info).collect(),
        }
    }
}

/// Returns the records of one device: the one whose name contains `selector`, or the only one in all files.
pub(super) fn read(paths: &[PathBuf], selector: Option<&str>) -> Result<Found, Stop> {
    let mut records = Vec::new();
    for path in paths {
        records.push((path.as_path(), Record::read(path)?));
    }
    let info = device_of(&records, selector)?;
    let mut found = Found {
        programs: BTreeSet::new(),
        origin: String::new(),
        os: None,
        description: Description { info: info.clone(), capabilities: None, error: None },
        cold: None,
        bandwidths: Vec::new(),
        growth: Vec::new(),
        ladders: Vec::new(),
        checks: None,
    };
    let (mut lines, mut times) = (Vec::new(), BTreeSet::new());
    for (path, record) in records {
        match record {
            Record::Found(record) => {
                found.programs.extend(record.programs);
                times.insert(record.origin);
                found.os = record.os.or(found.os);
                found.description = record.description;
                found.set_cold(record.cold, path)?;
                found.bandwidths.extend(record.bandwidths);
                found.growth.extend(record.growth);
                found.ladders.extend(record.ladders);
                found.add_checks(record.checks.into_iter().collect(), path)?;
            }
            Record::Bench(report) => {
                found.programs.insert(program(&report.version, report.commit.as_deref()));
                found.set_cold(Some(report.cold), path)?;
                lines.extend(report.lines);
            }
            Record::Ladder(report) => {
                found.programs.insert(program(&report.version, None));
                found.ladders.push(Ladder { name: report.ladder.clone(), steps: Some(report), reason: None });
            }
            Record::Checks(submission) => {
                found.programs.insert(program(&submission.version, submission.commit.as_deref()));
                times.insert(format!("checks of {}", submission.time));
                found.os = Some(submission.os);
                // A machine may have several devices of the same kind.
                for device in submission.devices {
                    if same(&device.description.info, &info) {
                        found.description = device.description;
                        found.add_checks(device.geometries, path)?;
                    }
                }
            }
        }
    }
    found.bandwidths.extend(bandwidths(&lines));
    found.growth.extend(growth(&lines));
    let times: Vec<_> = times.into_iter().collect();
    found.origin = if times.is_empty() { "from records".into() } else { format!("from records: {}", times.join(", ")) };
    Ok(found)
}

impl Found {
    fn set_cold(&mut self, cold: Option<bool>, path: &Path) -> Result<(), Stop> {
        if let (Some(cold), Some(known)) = (cold, self.cold)
            && cold != known
        {
            let how = |cold| if cold { "cold" } else { "warm" };
            let (path, cold, known) = (path.display(), how(cold), how(known));
            return Err(Stop::usage(format!(
                "{path}: measured with {cold} caches, but the files before it with {known} caches"
            )));
        }
        self.cold = cold.or(self.cold);
        Ok(())
    }

    /// Adds the results of all `geometries` to those of earlier files. Fails if the level of the first geometry, which
    /// is the device's own, differs from the level of the earlier files. The other geometries may have a lower level.
    fn add_checks(&mut self, geometries: Vec<check_results::Report>, path: &Path) -> Result<(), Stop> {
        let level = geometries.first().map(|own| own.level.clone());
        if let (Some(level), Some(known)) = (level, &self.checks)
            && level != known.level
        {
            let (path, known) = (path.display(), &known.level);
            return Err(Stop::usage(format!(
                "{path}: checks of level {level}, but the files before it have level {known}"
            )));
        }
        for checks in geometries {
            match &mut self.checks {
                Some(known) => known.merge(checks),
                none => *none = Some(checks),
            }
        }
        Ok(())
    }
}

fn same(a: &DeviceInfo, b: &DeviceInfo) -> bool {
    (&a.platform, &a.name) == (&b.platform, &b.name)
}

/// The device that all records have, and whose name contains `selector`. An error if there is none, or more than one.
fn device_of(records: &[(&Path, Record)], selector: Option<&str>) -> Result<DeviceInfo, Stop> {
    let wanted = selector.unwrap_or_default().to_lowercase();
    let in_all = |info: &&DeviceInfo| records.iter().all(|(_, record)| record.devices().iter().any(|d| same(d, info)));
    let mut all: Vec<DeviceInfo> = Vec::new();
    for info in records.iter().flat_map(|(_, record)| record.devices()).filter(in_all) {
        if info.to_string().to_lowercase().contains(&wanted) && !all.iter().any(|known| same(known, info)) {
            all.push(info.clone());
        }
    }
    let names = |devices: &[&DeviceInfo]| devices.iter().map(|info| info.to_string()).collect::<Vec<_>>().join("; ");
    match &all[..] {
        [one] => Ok(one.clone()),
        [] => {
            let of = |(path, record): &(&Path, Record)| format!("{} has {}", path.display(), names(&record.devices()));
            let of: Vec<_> = records.iter().map(of).collect();
            let what = selector.map(|text| format!(" whose name contains `{text}`")).unwrap_or_default();
            Err(Stop::usage(format!("the files have no device in common{what}: {}", of.join(", "))))
        }
        several => {
            let names = names(&several.iter().collect::<Vec<_>>());
            Err(Stop::usage(format!("the files have {} devices, choose one by --device: {names}", several.len())))
        }
    }
}

/// The operation and type that represent a primitive: those of [`representatives`] if they were measured, or else the
/// first in `lines` that were.
fn representative<'a>(primitive: &str, lines: &'a [Line]) -> Option<(&'a str, ElementType)> {
    let measured = || lines.iter().filter(|line| line.primitive == primitive && line.sample.is_some());
    let usual = representatives().into_iter().find(|(name, _)| *name == primitive).map(|(_, bench)| bench);
    let usual =
        measured().find(|line| usual.as_ref().is_some_and(|it| (&it.form, it.element) == (&line.form, line.element)));
    usual.or_else(|| measured().next()).map(|line| (line.form.as_str(), line.element))
}

/// The measured lines of the operation and type that represent a primitive: one for each size, in ascending order.
fn sizes_of(primitive: &str, lines: &[Line]) -> Vec<Line> {
    let Some(of) = representative(primitive, lines) else { return Vec::new() };
    let is_of = |line: &&Line| line.primitive == primitive && (line.form.as_str(), line.element) == of;
    let mut sizes: Vec<Line> = lines.iter().filter(is_of).filter(|line| line.sample.is_some()).cloned().collect();
    sizes.sort_by_key(|line| line.n);
    sizes.dedup_by_key(|line| line.n);
    sizes
}

/// One line for each primitive, at its largest measured size.
fn bandwidths(lines: &[Line]) -> Vec<Line> {
    let primitives = check::primitive_names();
    primitives.into_iter().filter_map(|primitive| sizes_of(primitive, lines).pop()).collect()
}

/// A series for each primitive of the chart of growth, if its operation was measured at two sizes or more.
fn growth(lines: &[Line]) -> Vec<Series> {
    let series = |primitive: &str| {
        let points = sizes_of(primitive, lines);
        let last = points.last().filter(|_| points.len() > 1)?;
        let name = operation(primitive, &last.form, last.element);
        Some(Series { name, points, stopped: None })
    };
    GROWING.into_iter().filter_map(series).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(primitive: &str, form: &str, n: usize, median: Option<f64>) -> Line {
        let sample =
            median.map(|median| serde_json::json!({ "median": median, "spread": 0.01, "min": median, "runs": 3 }));
        let bytes = 4 * n as u64;
        serde_json::from_value(serde_json::json!({
            "primitive": primitive, "form": form, "element": "f32", "n": n, "bytes": bytes, "sample": sample, "wall": null,
            "gb_per_s": median.map(|median| bytes as f64 / median / 1e9), "copy_gb_per_s": 10.0, "error": null, "wrong": false,
        }))
        .expect("a line")
    }

    #[test]
    fn bars_are_of_the_largest_size_and_curves_rise() {
        let lines = [
            line("reduce", "other", 4096, Some(1e-6)),
            line("reduce", "other", 1024, Some(2e-6)),
            line("reduce", "other", 1 << 20, None),
            line("scan", "other", 1024, Some(3e-6)),
            line("unknown", "other", 1024, Some(3e-6)),
        ];
        let bars: Vec<_> = bandwidths(&lines).iter().map(|line| (line.primitive.clone(), line.n)).collect();
        assert_eq!(bars.len(), 2, "{bars:?}");
        assert!(bars.contains(&("reduce".into(), 4096)) && bars.contains(&("scan".into(), 1024)), "{bars:?}");
        let curves = growth(&lines);
        let sizes: Vec<_> = curves[0].points.iter().map(|line| line.n).collect();
        assert_eq!((curves.len(), curves[0].name.as_str(), sizes), (1, "reduce other f32", vec![1024, 4096]));
    }

    #[test]
    fn the_usual_form_stands_for_a_primitive() {
        let (primitive, bench) = representatives().swap_remove(0);
        let mut usual = line(primitive, &bench.form, 1024, Some(1e-6));
        usual.element = bench.element;
        let lines = [line(primitive, "other", 4096, Some(1e-6)), usual];
        assert_eq!(representative(primitive, &lines), Some((bench.form.as_str(), bench.element)));
        assert_eq!(representative(primitive, &lines[..1]), Some(("other", ElementType::F32)));
        assert_eq!(representative(primitive, &[line(primitive, "other", 4096, None)]), None);
    }
}
