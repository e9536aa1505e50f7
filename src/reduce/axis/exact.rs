//! Exact sums along an axis. The module [`exact_groups`](crate::reduce::exact_groups) has the algorithm.

use std::ops::Range;

use super::{Lines, gpu::OnDevice};
use crate::{
    Element, ExactSum, Float, Result, exact, memory, parallel,
    reduce::{
        cpu,
        exact::{MOST_GROUPS, words},
        exact_groups::{
            Exact,
            cpu::{BLOCK, TASK, line, value},
            gpu::{Form, ITEM, Kind, Shape, WAVES, log_chunk, round, shape, team_of},
        },
    },
    runtime::{AnyInput, AnyOutput, ClInput, on_device, opencl::ClDevice},
    tuning::{self, Tuned},
};

/// Neighbouring lines that the CPU reads at once.
const COLUMNS: usize = 32;
/// Maximum work-items of a team on GPUs, if groups are neighbours in memory and fill the device.
const MOST_ROWS: usize = 8;

/// The sums or means of the lines; `U` is a float. For other types nothing is compiled.
pub(super) fn on_the_cpu<T, U>(of: Exact, input: &[T], lines: &Lines, out: &mut [U]) -> Result<()>
where
    T: Element,
    U: Element + From<T>,
{
    if const { !U::TYPE.is_float() } {
        unreachable!("exact sums are floats");
    }
    if lines.len == 0 {
        out.fill(ExactSum::<f32>::new().rounded_quotient(of.divisor(0)));
        return Ok(());
    }
    if const { U::TYPE.needs_fp64() } {
        lines_in::<T, U, f64>(of, input, lines, out)
    } else {
        lines_in::<T, U, f32>(of, input, lines, out)
    }
}

fn lines_in<T: Element, U: Element + From<T>, F: Float>(
    of: Exact,
    input: &[T],
    lines: &Lines,
    out: &mut [U],
) -> Result<()> {
    let columns = if lines.across() { COLUMNS } else { 1 };
    let at = |place: usize, i: usize| input[place.wrapping_add_signed(i as isize * lines.stride)];
    let whole = lines.len * out.len() <= TASK;
    if whole || out.len().div_ceil(columns) >= 4 * parallel::threads() || lines.len <= TASK / columns {
        let each = (TASK / lines.len).next_multiple_of(columns).max(columns);
        let body = |task: usize, out: &mut [U]| {
            if columns > 1 {
                return columns_of::<T, U, F>(of, input, lines, task * each, out);
            }
            for (output, out) in (task * each..).zip(out) {
                let place = lines.place(output);
                *out = line::<T, U, F>(of, lines.len, (0..lines.len).map(|i| at(place, i)));
            }
            Ok(())
        };
        return if whole {
            out.chunks_mut(each).enumerate().try_for_each(|(i, out)| body(i, out))
        } else {
            parallel::try_chunks_mut(out, each, &body)
        };
    }
    // Few outputs: threads share the parts of the axis.
    let parts = lines.len.div_ceil(TASK / columns);
    for (block, out) in out.chunks_mut(columns).enumerate() {
        let places = lines.places(block * columns..block * columns + out.len());
        let sums = parallel::try_map(parts, &|part| {
            let rows = part * (TASK / columns)..lines.len.min((part + 1) * (TASK / columns));
            sums_of::<T, U, F>(input, lines.stride, &places, rows)
        })?;
        for (column, out) in out.iter_mut().enumerate() {
            let mut all = ExactSum::<F>::new();
            sums.iter().for_each(|part| all.merge(&part[column]));
            *out = all.rounded_quotient(of.divisor(lines.len));
        }
    }
    Ok(())
}

/// The sums or means of the products of two arrays of lines. `T` is a float; for other types nothing is compiled.
pub(super) fn products_on_the_cpu<T: Element>(of: Exact, factors: [(&[T], &Lines); 2], out: &mut [T]) -> Result<()> {
    if const { !T::TYPE.is_float() } {
        unreachable!("exact sums are floats");
    }
    if const { T::TYPE.needs_fp64() } {
        products_in::<T, f64>(of, factors, out)
    } else {
        products_in::<T, f32>(of, factors, out)
    }
}

/// Threads share the outputs, or the parts of each line if outputs are few.
fn products_in<T: Element, F: Float>(of: Exact, factors: [(&[T], &Lines); 2], out: &mut [T]) -> Result<()> {
    let len = factors[0].1.len;
    let add = |sum: &mut ExactSum<F>, output: usize, part: Range<usize>| {
        let [x, y] = factors.map(|(values, lines)| {
            let place = lines.place(output);
            move |i: usize| value::<T, T, F>(values[place.wrapping_add_signed(i as isize * lines.stride)])
        });
        part.for_each(|i| sum.add_product(x(i), y(i)));
    };
    if len > TASK && out.len() < 4 * parallel::threads() {
        for (output, out) in out.iter_mut().enumerate() {
            let sum = cpu::exact(len, &|sum: &mut ExactSum<F>, part| {
                add(sum, output, part);
                Ok(())
            })?;
            *out = sum.rounded_quotient(of.divisor(len));
        }
        return Ok(());
    }
    let each = (TASK / len.max(1)).max(1);
    let body = |task: usize, out: &mut [T]| {
        for (output, out) in (task * each..).zip(out) {
            let mut sum = ExactSum::<F>::new();
            add(&mut sum, output, 0..len);
            *out = sum.rounded_quotient(of.divisor(len));
        }
    };
    if out.len() <= each {
        body(0, out);
    } else {
        parallel::chunks_mut(out, each, &body);
    }
    Ok(())
}

/// Copies some rows of the lines that start at `places`. The copy of each line takes [`BLOCK`] elements of `block`.
fn copy_rows<T: Element, U: Element + From<T>, F: Float>(
    input: &[T],
    stride: isize,
    places: &[usize],
    rows: Range<usize>,
    block: &mut [F],
) {
    for (r, row) in rows.enumerate() {
        let along = row as isize * stride;
        for (line, &place) in block.chunks_mut(BLOCK).zip(places) {
            line[r] = value::<T, U, F>(input[place.wrapping_add_signed(along)]);
        }
    }
}

/// The sums of some rows of the lines that start at `places`.
fn sums_of<T: Element, U: Element + From<T>, F: Float>(
    input: &[T],
    stride: isize,
    places: &[usize],
    rows: Range<usize>,
) -> Result<Vec<ExactSum<F>>> {
    let mut sums = memory::filled(places.len(), ExactSum::<F>::new())?;
    let mut block = memory::filled(places.len() * BLOCK, F::ZERO)?;
    for start in rows.clone().step_by(BLOCK) {
        let end = rows.end.min(start + BLOCK);
        copy_rows::<T, U, F>(input, stride, places, start..end, &mut block);
        sums.iter_mut().zip(block.chunks(BLOCK)).for_each(|(sum, line)| sum.add_slice(&line[..end - start]));
    }
    Ok(sums)
}

/// The sums or means of neighbouring lines, from the output `first` on.
fn columns_of<T: Element, U: Element + From<T>, F: Float>(
    of: Exact,
    input: &[T],
    lines: &Lines,
    first: usize,
    out: &mut [U],
) -> Result<()> {
    let padded = lines.len.next_multiple_of(exact::LANES);
    for (block, out) in out.chunks_mut(COLUMNS).enumerate() {
        let start = first + block * COLUMNS;
        let places = lines.places(start..start + out.len());
        if lines.len > BLOCK {
            let sums = sums_of::<T, U, F>(input, lines.stride, &places, 0..lines.len)?;
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum.rounded_quotient(of.divisor(lines.len)));
            continue;
        }
        let mut block = memory::filled(places.len() * BLOCK, F::ADD_IDENTITY)?;
        copy_rows::<T, U, F>(input, lines.stride, &places, 0..lines.len, &mut block);
        for (out, line) in out.iter_mut().zip(block.chunks(BLOCK)) {
            *out = exact::rounded_block(&line[..padded], lines.len, of.divisor(lines.len));
        }
    }
    Ok(())
}

/// The launches for lines of at least one element, and at least one output.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub sums: Shape,
    pub groups: usize,
    /// Elements of a part, and the parts of each line.
    pub part: usize,
    pub parts: usize,
    pub wide: bool,
}

/// `other` are the lines of the other factors of products.
pub fn plan(lines: &Lines, other: Option<&Lines>, form: &Form, caps: &Tuned, wide: bool) -> Result<Plan> {
    caps.supports(form.element)?;
    caps.supports(form.acc)?;
    let params = tuning::reduce(caps);
    let (len, outputs) = (lines.len, lines.outputs);
    let across = lines.across() || other.is_some_and(Lines::across);
    let unit = lines.stride == 1 && other.is_none_or(|other| other.stride == 1);
    let (kind, team) = if across {
        let fewest = params.work_group / outputs.next_power_of_two().min(params.work_group);
        (Kind::Columns, if len <= ITEM { 1 } else { MOST_ROWS }.max(fewest))
    } else {
        (Kind::Rows { unit }, team_of(len))
    };
    let whole = shape(kind, team, false, form, caps, wide);
    let blocks = outputs.div_ceil(whole.work_group / whole.team);
    // If there are two work-groups for each compute unit, lines stay whole. Otherwise there are enough parts to occupy
    // the device, each with enough work.
    let wanted = if blocks >= params.max_groups.div_ceil(3) { 1 } else { params.max_groups / blocks };
    let team = if across { whole.team } else { whole.work_group };
    let parts = wanted.min(len / (team << (log_chunk(form.acc) + 1))).clamp(1, MOST_GROUPS);
    let part = len.div_ceil(parts);
    let parts = len.div_ceil(part);
    let sums = if parts == 1 { whole } else { shape(kind, team, true, form, caps, wide) };
    let blocks = outputs.div_ceil(sums.work_group / sums.team) * parts;
    let groups = blocks.min(WAVES * params.max_groups);
    Ok(Plan { sums, groups, part, parts, wide })
}

/// Sums of lines.
pub(super) fn on_a_device(
    device: &ClDevice,
    form: &Form,
    input: AnyInput<'_>,
    lines: &Lines,
    output: AnyOutput<'_>,
) -> Result<()> {
    on_device(device, [input], [(output, false)], |[input], [out]| run_lines(device, form, (input, lines), None, out))
}

/// Sums of the products of two arrays of lines.
pub(super) fn products_on_a_device(
    device: &ClDevice,
    form: &Form,
    [(x, x_lines), (y, y_lines)]: [(AnyInput<'_>, &Lines); 2],
    output: AnyOutput<'_>,
) -> Result<()> {
    on_device(device, [x, y], [(output, false)], |[x, y], [out]| {
        run_lines(device, form, (x, x_lines), Some((y, y_lines)), out)
    })
}

fn run_lines(
    device: &ClDevice,
    form: &Form,
    (input, lines): (&ClInput, &Lines),
    other: Option<(&ClInput, &Lines)>,
    out: &ClInput,
) -> Result<()> {
    if lines.outputs == 0 {
        return Ok(());
    }
    if lines.len == 0 {
        let bytes = lines.outputs * form.out.size();
        return device.fill(out.mem(), out.byte_offset(), bytes, &form.empty);
    }
    let there = OnDevice::new(device, lines, form.element)?;
    let (first, _) = there.first(input, form.element, 1);
    let plan = plan(lines, other.map(|(_, lines)| lines), form, &there.caps, there.wide)?;
    let accumulator = 4 * (words(form.acc) + 1);
    let count = if plan.parts > 1 { lines.outputs } else { 1 };
    let sums = ClInput::pooled(device, accumulator * count, 4)?;
    if plan.parts > 1 {
        device.fill(sums.mem(), 0, accumulator * count, &[0; 4])?;
    }
    let launch = there.launch(&plan.sums.program, "exact_groups", input, first)?;
    let launch = match other {
        Some((other, lines)) => there.other(launch, other, lines),
        None => launch,
    };
    there
        .parts(launch, plan.part, plan.parts)
        .mem(sums.mem())
        .mem(out.mem())
        .scalar(out.offset() as u64)
        .run([plan.groups, 1, 1], [plan.sums.work_group, 1, 1])?;
    if plan.parts == 1 {
        return Ok(());
    }
    round(device, &plan.sums, (&sums, count), (None, lines.len), plan.groups, out)
}
