//! `oclprim run select`, `unique` and `rle`

use std::{io::Write, path::PathBuf};

use clap::Args;
use oclprim::{Device, Element, ElementType, Source, op};
use oclprim_checks::check::{same, same_bytes};

use super::common::{Common, flags, in_words, matches, neighbours, print, with_number};
use crate::{
    npy::{Array, Made, archive::is_archive},
    output::{STDOUT, Stop, distinct, save},
};

const SELECT_EXAMPLES: &str = "\
Examples:
  oclprim run select samples.npy --above 1.5 -o large.npy
  oclprim run select samples.npy --above 0 --below 4 --indices --verify
  oclprim run select bytes.npy --flags flags.npy --device opencl
  oclprim run select labels.npy --others -o partitioned.npy";

/// Select elements of an array, of any shape, in their order.
///
/// Without a condition, elements that are not 0 are selected; with several conditions, elements that meet all of them. NaN is
/// neither above nor below a bound. The result has one dimension; with -o, indices are written as int64.
#[derive(Args)]
#[command(after_help = SELECT_EXAMPLES)]
pub(super) struct Select {
    #[command(flatten)]
    common: Common,
    /// Select elements above this value.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    above: Option<String>,
    /// Select elements below this value.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    below: Option<String>,
    /// Select elements whose flags are not 0. The flags are bytes or booleans, one for each element.
    #[arg(long, value_name = "FLAGS.npy", conflicts_with_all = ["above", "below"])]
    flags: Option<PathBuf>,
    /// Write the indices of the elements instead of the elements.
    #[arg(long)]
    indices: bool,
    /// Write the other elements after the selected ones, also in their order.
    #[arg(long, conflicts_with = "indices")]
    others: bool,
}

/// The selected elements, or their indices.
enum Selected<T: Element> {
    Elements(Vec<T>),
    Indices(Vec<u64>),
}

/// An OpenCL C expression for a value, by its bits.
fn literal<T: Element>(value: T) -> String {
    let mut bits = [0; 8];
    bits[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    let bits = u64::from_le_bytes(bits);
    let (name, unsigned) = match T::TYPE {
        ElementType::F32 => ("float", "uint"),
        ElementType::F64 => ("double", "ulong"),
        ElementType::I8 | ElementType::U8 => (if T::TYPE.is_signed() { "char" } else { "uchar" }, "uchar"),
        ElementType::I16 | ElementType::U16 => (if T::TYPE.is_signed() { "short" } else { "ushort" }, "ushort"),
        ElementType::I32 | ElementType::U32 => (if T::TYPE.is_signed() { "int" } else { "uint" }, "uint"),
        _ => (if T::TYPE.is_signed() { "long" } else { "ulong" }, "ulong"),
    };
    format!("as_{name}(({unsigned}){bits:#x})")
}

impl Select {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        let element = self.common.element(&array, "select")?;
        let flags = self.flags.as_deref().map(|path| flags(path, &array)).transpose()?;
        let flags = flags.as_ref().map(Array::elements);
        let device = self.common.device.open_for_files()?;
        with_number!(element, T => self.select::<T>(&array, array.elements(), flags, &device, out))
    }

    fn select<T: Element>(
        &self,
        array: &Array,
        input: &[T],
        flags: Option<&[u8]>,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let bounds = |option, text: &Option<String>| -> Result<_, Stop> {
            text.as_deref().map_or(Ok((None, None)), |text| neighbours::<T>(option, text))
        };
        // An integer is above 1.5 if it is above 1. `None` means that all values of the type meet the condition.
        let above = bounds("--above", &self.above)?.0.map(T::widen);
        let below = bounds("--below", &self.below)?.1.map(T::widen);
        let either = self.above.is_some() || self.below.is_some();
        let conditions = [
            above.map(|bound| format!("x > {}", literal(bound))),
            below.map(|bound| format!("x < {}", literal(bound))),
        ];
        let conditions: Vec<_> = conditions.into_iter().flatten().collect();
        let text = match (either, conditions.is_empty()) {
            (false, _) => "x != 0".into(),
            (true, true) => "x == x".into(),
            (true, false) => conditions.join(" && "),
        };
        let holds = |x: T::Acc| {
            let within = above.is_none_or(|bound| x > bound) && below.is_none_or(|bound| x < bound);
            if either { within } else { x != <T::Acc as Element>::ZERO }
        };
        let map = op::Map::new(holds, text);
        let run = |device: &Device| -> oclprim::Result<Selected<T>> {
            Ok(match (flags, self.indices, self.others) {
                (None, false, false) => Selected::Elements(device.select(input, &map)?.into_vec()?),
                (None, false, true) => Selected::Elements(device.partition(input, &map)?.0.into_vec()?),
                (None, true, _) => Selected::Indices(device.select_indices::<T, u64, _>(input, &map)?.into_vec()?),
                (Some(flags), false, false) => {
                    Selected::Elements(device.select(input.flagged(flags), op::NonZero)?.into_vec()?)
                }
                (Some(flags), false, true) => {
                    Selected::Elements(device.partition(input.flagged(flags), op::NonZero)?.0.into_vec()?)
                }
                (Some(flags), true, _) => {
                    Selected::Indices(device.select_indices::<_, u64, _>(flags, op::NonZero)?.into_vec()?)
                }
            })
        };
        let found = run(device)?;
        if self.common.verify {
            matches(match (&found, &run(&Device::cpu())?) {
                (Selected::Elements(found), Selected::Elements(want)) => same_bytes(found, want, "element "),
                (Selected::Indices(found), Selected::Indices(want)) => same_bytes(found, want, "index "),
                _ => unreachable!("both are of one kind"),
            })?;
        }
        match found {
            Selected::Elements(found) => {
                self.common.finish_line(&array.like(&[found.len()], &found), &found, device, out)
            }
            Selected::Indices(indices) => {
                self.common.finish_line(&Made::of("<i8", &[indices.len()], &indices), &indices, device, out)
            }
        }
    }
}

const UNIQUE_EXAMPLES: &str = "\
Examples:
  oclprim run unique labels.npy
  oclprim run unique samples.npy --device opencl --verify -o runs.npy";

/// Take the first element of each run of equal neighbours in an array of any shape.
///
/// -0 equals 0, and all NaN are equal. The result for a sorted array has its distinct elements.
#[derive(Args)]
#[command(after_help = UNIQUE_EXAMPLES)]
pub(super) struct Unique {
    #[command(flatten)]
    common: Common,
}

impl Unique {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        let array = self.common.read()?;
        let element = self.common.element(&array, "unique")?;
        let device = self.common.device.open_for_files()?;
        with_number!(element, T => {
            let input = array.elements::<T>();
            let found = device.unique(input)?.into_vec()?;
            if self.common.verify {
                matches(same_bytes(&found, &Device::cpu().unique(input)?.into_vec()?, "element "))?;
            }
            self.common.finish_line(&array.like(&[found.len()], &found), &found, &device, out)
        })
    }
}

const RLE_EXAMPLES: &str = "\
Examples:
  oclprim run rle labels.npy
  oclprim run rle labels.npy -o values.npy --lengths lengths.npy --verify
  oclprim run rle labels.npy -o runs.npz";

/// Run-length encode an array of any shape: the first element of each run of equal neighbours, and the length of the run.
///
/// -0 equals 0, and all NaN are equal. An archive has the arrays values and lengths.
#[derive(Args)]
#[command(after_help = RLE_EXAMPLES)]
pub(super) struct Rle {
    #[command(flatten)]
    common: Common,
    /// Write the lengths to this .npy file, as uint64, instead of printing them; `-` writes to standard output.
    #[arg(long, value_name = "LENGTHS.npy")]
    lengths: Option<PathBuf>,
}

impl Rle {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        if self.common.to_archive() && self.lengths.is_some() {
            return Err(Stop::usage("--lengths: the archive of -o has the lengths"));
        }
        if self.lengths.as_deref().is_some_and(is_archive) {
            return Err(Stop::usage("--lengths writes a .npy file; -o writes an archive"));
        }
        if !self.common.to_archive() && (self.common.output.is_some() || self.lengths.is_some()) {
            let path = |path: &Option<PathBuf>| path.clone().unwrap_or(STDOUT.into());
            distinct(&[("-o", &path(&self.common.output)), ("--lengths", &path(&self.lengths))])?;
        }
        let array = self.common.read()?;
        let element = self.common.element(&array, "rle")?;
        let device = self.common.device.open_for_files()?;
        with_number!(element, T => {
            let input = array.elements::<T>();
            let encode = |device: &Device| -> oclprim::Result<_> {
                let (values, lengths) = device.run_length_encode::<T, u64>(input)?;
                Ok((values.into_vec()?, lengths.into_vec()?))
            };
            let (values, lengths) = encode(&device)?;
            if self.common.verify {
                let want = encode(&Device::cpu())?;
                matches(same_bytes(&values, &want.0, "value "))?;
                matches(same(&lengths, &want.1, "length "))?;
            }
            let shape = [values.len()];
            let (encoded, counted) = (array.like(&shape, &values), Made::of("<u8", &shape, &lengths));
            if self.common.to_archive() {
                return self.common.finish_archive(&[("values", &encoded), ("lengths", &counted)]);
            }
            let texts = [
                (&self.common.output, in_words(&values, &shape, &encoded.type_name(), &device)),
                (&self.lengths, in_words(&lengths, &shape, "<u8", &device)),
            ];
            let (encoded, counted) = (encoded.parts(), counted.parts());
            let files = [(&self.common.output, &encoded), (&self.lengths, &counted)];
            let files = files.into_iter().filter_map(|(path, parts)| Some((path.as_deref()?, &parts[..])));
            save(&files.collect::<Vec<_>>(), out)?;
            texts.iter().filter(|(path, _)| path.is_none()).try_for_each(|(_, text)| print(text, out))
        })
    }
}
