//! The values that hold on one device: the caller's, else those of the tuning file.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use super::{
    Primitive, SizeClass, Tuned, Tuning,
    file::{Row, TuningFile},
    parameters,
    parameters::{ELEMENT_SIZES, MOST_ELEMENT_BYTES},
    row_bytes,
};
use crate::{
    Error, Result,
    runtime::{Capabilities, DeviceInfo},
};

impl Tuning {
    /// Returns whether the tuning file applies: its values are for a device without other overrides.
    fn asks_file(&self) -> bool {
        let as_it_is = self.class.is_none() && self.sub_groups.is_none() && self.local_bytes.is_none();
        as_it_is && !self.no_look_back && !self.without_file
    }

    /// The values chosen for each primitive: those of [`Tuning::set`], else those of the tuning file.
    /// [`apply`](Self::apply) has checked the values of `set` for these capabilities.
    pub(super) fn choices(&self, info: &DeviceInfo, caps: &Tuned) -> Vec<Choice> {
        self.choices_of(if self.asks_file() { loaded() } else { &[] }, info, caps)
    }

    fn choices_of(&self, rows: &[Row], info: &DeviceInfo, caps: &Tuned) -> Vec<Choice> {
        let with = |chosen| Arc::new(Tuned { chosen, ..caps.clone() });
        let mut choices = Vec::new();
        for primitive in Primitive::ALL {
            let set = self.set.iter().filter(|(of, ..)| *of == primitive);
            let known = set.flat_map(|(_, name, value)| {
                let all = ELEMENT_SIZES.into_iter().flat_map(|size| parameters(primitive, caps, size));
                let name = all.map(|parameter| parameter.name).find(|known| known == name);
                name.map(|name| (name, *value))
            });
            let chosen: BTreeMap<_, _> = known.collect();
            if !chosen.is_empty() {
                choices.push(Choice { primitive, place: None, caps: with(chosen) });
                continue;
            }
            for row in rows.iter().filter(|row| row.primitive == primitive.name()) {
                if let Some(chosen) = row.fitting(info, caps) {
                    let place = Some((row.element_bytes, row.size));
                    choices.push(Choice { primitive, place, caps: with(chosen) });
                }
            }
        }
        choices
    }

    /// The device's capabilities without choices for a primitive.
    pub(super) fn usual(&self, caps: Arc<Capabilities>) -> Tuned {
        Tuned::from(caps).stalled(self.stall)
    }

    pub(super) fn apply(&self, caps: &mut Capabilities) -> Result<()> {
        caps.class = self.class.unwrap_or(caps.class);
        caps.local_bytes = caps.local_bytes.min(self.local_bytes.unwrap_or(usize::MAX));
        caps.forward_progress &= !self.no_look_back;
        if let Some(backend) = self.sub_groups {
            let found = caps.sub_groups.iter().find(|group| group.backend == backend);
            caps.sub_group = *found.ok_or_else(|| {
                Error::unsupported(format!("sub-group back end `{}` did not pass the self-test", backend.name()))
            })?;
        }
        self.set.iter().try_for_each(|(primitive, name, value)| check(*primitive, name, *value, caps))
    }
}

impl Row {
    /// The chosen values, if the row is for this device. Tuning files are untrusted input: a value outside a parameter's
    /// allowed set invalidates its row.
    fn fitting(&self, info: &DeviceInfo, caps: &Capabilities) -> Option<BTreeMap<&'static str, usize>> {
        let primitive = self.primitive.parse().ok()?;
        let device = Self::new(info, primitive, self.element_bytes, self.size, []);
        if self.chosen.is_empty()
            || !self.same_place(&device)
            || !(1..=MOST_ELEMENT_BYTES).contains(&self.element_bytes)
        {
            return None;
        }
        let parameters = parameters(primitive, caps, self.element_bytes);
        let named = |(name, value): (&String, &usize)| {
            let parameter = parameters.iter().find(|parameter| parameter.name == name)?;
            parameter.values.contains(value).then_some((parameter.name, *value))
        };
        self.chosen.iter().map(named).collect()
    }
}

/// The rows of this machine's file, read once; none if it is missing or damaged.
fn loaded() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    let read = || TuningFile::read(&TuningFile::path()?).ok().map(|file| file.rows());
    ROWS.get_or_init(|| read().unwrap_or_default())
}

/// Returns an error unless `value` is a value of the parameter for some element size.
fn check(primitive: Primitive, name: &str, value: usize, caps: &Capabilities) -> Result<()> {
    let all: Vec<_> = ELEMENT_SIZES.into_iter().flat_map(|size| parameters(primitive, caps, size)).collect();
    let mut values: Vec<_> =
        all.iter().filter(|parameter| parameter.name == name).flat_map(|parameter| parameter.values.clone()).collect();
    if values.is_empty() {
        let mut names: Vec<_> = all.iter().map(|parameter| parameter.name).collect();
        names.sort_unstable();
        names.dedup();
        let names = if names.is_empty() { "none here".into() } else { names.join(", ") };
        return Err(Error::invalid(format!("{primitive} has no parameter `{name}`: there are {names}")));
    }
    values.sort_unstable();
    values.dedup();
    if !values.contains(&value) {
        return Err(Error::invalid(format!("{name} of {primitive} is one of {values:?} here, not {value}")));
    }
    Ok(())
}

/// Values chosen for one primitive.
pub(super) struct Choice {
    primitive: Primitive,
    /// The element size and the size class to which the choice applies; `None` for all.
    place: Option<(usize, SizeClass)>,
    /// The device's capabilities with these values.
    pub(super) caps: Arc<Tuned>,
}

impl Choice {
    pub(super) fn is_for(&self, primitive: Primitive, element_bytes: usize, bytes: usize) -> bool {
        let place = || (row_bytes(primitive, element_bytes), SizeClass::of(bytes));
        self.primitive == primitive && self.place.is_none_or(|only| only == place())
    }

    /// Returns whether the choice is for this size class and primitive. All rows of the primitive have the element size
    /// 1, as those of transfers do.
    pub(super) fn is_of(&self, primitive: Primitive, class: SizeClass) -> bool {
        self.primitive == primitive && self.place.is_none_or(|only| only == (row_bytes(primitive, 1), class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, DeviceClass, SubGroupBackend};

    fn info() -> DeviceInfo {
        DeviceInfo { driver: "1.2".into(), compute_units: 132, ..Device::cpu().info() }
    }

    fn nvidia() -> Capabilities {
        Capabilities::samples().pop().expect("samples").1
    }

    #[test]
    fn rows_fit_one_device_driver_and_version() {
        let (info, caps) = (info(), nvidia());
        let row =
            Row::new(&info, Primitive::Reduce, 4, SizeClass::Large, [("max_groups", 2 * 132), ("work_group", 128)]);
        let chosen = row.fitting(&info, &caps).expect("a row of this device");
        assert_eq!(chosen, BTreeMap::from([("max_groups", 264), ("work_group", 128)]));
        let stale: [fn(&mut Row); 11] = [
            |row| row.driver = "1.3".into(),
            |row| row.device = "another".into(),
            |row| row.platform = "another".into(),
            |row| row.version = "OpenCL 9".into(),
            |row| row.compute_units = 131,
            |row| row.oclprim = "0.0.0".into(),
            |row| row.primitive = "dance".into(),
            |row| row.chosen = BTreeMap::new(),
            |row| row.chosen = BTreeMap::from([("no_such_name".into(), 1), ("work_group".into(), 128)]),
            // A device could run work-groups of this size, but the value is outside the parameter's allowed set.
            |row| row.chosen = BTreeMap::from([("work_group".into(), 96)]),
            |row| row.element_bytes = 0,
        ];
        for change in stale {
            let mut row = row.clone();
            change(&mut row);
            assert_eq!(row.fitting(&info, &caps), None, "{row:?}");
        }
    }

    #[test]
    fn choices_apply_to_their_size_class() {
        let (info, (_, caps)) = (Device::cpu().info(), Tuned::samples().pop().expect("samples"));
        let rows = [
            Row::new(&info, Primitive::Reduce, 4, SizeClass::Large, [("max_groups", 2 * 132)]),
            Row::new(&info, Primitive::Reduce, 4, SizeClass::Small, [("max_groups", 132)]),
            Row::new(&info, Primitive::Copy, 4, SizeClass::Medium, [("words", 4)]),
            Row::new(&info, Primitive::Sort, 4, SizeClass::Medium, [("items", 5)]),
        ];
        let choices = Tuning::default().choices_of(&rows, &info, &caps);
        let chosen = |primitive, size, bytes| {
            let choice = choices.iter().find(|choice| choice.is_for(primitive, size, bytes))?;
            choice.caps.chosen.values().next().copied()
        };
        assert_eq!(chosen(Primitive::Reduce, 4, 1 << 26), Some(264));
        assert_eq!(chosen(Primitive::Reduce, 4, (1 << 26) - 1), None);
        assert_eq!(chosen(Primitive::Reduce, 4, 1 << 20), None);
        assert_eq!(chosen(Primitive::Reduce, 4, (1 << 20) - 1), Some(132));
        assert_eq!(chosen(Primitive::Reduce, 8, 1 << 26), None);
        assert_eq!(chosen(Primitive::Scan, 4, 1 << 26), None);
        assert_eq!(chosen(Primitive::Copy, 1, 1 << 20), Some(4));
        assert_eq!(chosen(Primitive::Copy, 16, 1 << 20), Some(4));
        assert_eq!(chosen(Primitive::Sort, 4, 1 << 20), None);
        // A set value applies to all sizes, and replaces the file's rows of the primitive.
        let set = Tuning::default().set(Primitive::Reduce, "work_group", 64);
        let choices = set.choices_of(&rows, &info, &caps);
        let of_reduce: Vec<_> = choices.iter().filter(|choice| choice.primitive == Primitive::Reduce).collect();
        assert!(of_reduce.len() == 1 && of_reduce[0].is_for(Primitive::Reduce, 8, 0));
        assert_eq!(of_reduce[0].caps.chosen, [("work_group", 64)].into());
        assert!(choices.iter().any(|choice| choice.is_for(Primitive::Copy, 1, 1 << 20)));
    }

    #[test]
    fn explicit_tuning_ignores_the_file() {
        let all = Tuning::default();
        assert!(all.asks_file() && all.clone().wide_offsets().asks_file());
        let others = [
            all.clone().class(DeviceClass::Gpu),
            all.clone().sub_groups(SubGroupBackend::Local),
            all.clone().local_bytes(1 << 14),
            all.clone().without_look_back(),
            all.without_file(),
        ];
        for tuning in others {
            assert!(!tuning.asks_file() && tuning.choices(&Device::cpu().info(), &Tuned::samples()[0].1).is_empty());
        }
    }

    #[test]
    fn unknown_parameters_and_values_are_refused() {
        let refused = |primitive, name, value| {
            let mut caps = Capabilities::samples().pop().expect("samples").1;
            Tuning::default().set(primitive, name, value).apply(&mut caps).map_err(|error| error.to_string())
        };
        assert_eq!(refused(Primitive::Transpose, "side", 32), Ok(()));
        let error = "dance".parse::<Primitive>().expect_err("no primitive").to_string();
        assert!(error.starts_with("primitive `dance` has no parameters: expected one of reduce, scan, "), "{error}");
        let text = "transpose has no parameter `words`: there are max_groups, side, work_group";
        assert_eq!(refused(Primitive::Transpose, "words", 1), Err(text.into()));
        let mut checker = Capabilities { checker: true, ..Capabilities::samples().pop().expect("samples").1 };
        let none =
            Tuning::default().set(Primitive::Sort, "words", 1).apply(&mut checker).map_err(|error| error.to_string());
        assert_eq!(none, Err("sort has no parameter `words`: there are none here".into()));
        let text = "words of copy is one of [1, 2, 4] here, not 3";
        assert_eq!(refused(Primitive::Copy, "words", 3), Err(text.into()));
    }
}
