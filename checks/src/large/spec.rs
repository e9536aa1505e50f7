//! Cases of more than 2^31 and 2^32 elements, and cases of the errors of long sums, for devices with enough memory.
//!
//! Inputs are filled on the device with one value and a few marked elements, so that the right result needs no copy on
//! the host.

use crate::{
    Accumulate, Bins, Bound, Buffer, Determinism, Device, DeviceType, ElementType, Error, Matrices, Order, Philox,
    ProgramSpec, Result, SetOp, Source, Top,
    check::{Case, Failure, Level, Spec, bounds::stated_bound, close, data::Data, host_memory},
    op::{EqualTo, Map, Max, Min, NonZero, Operator, Sum, Usage},
    source::constant,
    tuning::Tuned,
};

/// Spec of all primitives at sizes that 32-bit offsets cannot reach.
pub(crate) struct Large;

/// More than 2^32, and odd.
const N: usize = (1 << 32) + 5;
/// More than 2^31, where signed 32-bit offsets overflow.
const N_WORDS: usize = (1 << 31) + 5;
/// Enough floats that a single f32 accumulator would lose most of their sum.
const N_FLOATS: usize = 1 << 28;
/// Rows and columns of a matrix of more than 2^32 elements.
const SHAPE: (usize, usize) = (65_539, 65_537);

/// Rows and columns with a common divisor, so that a transpose in place takes every step.
const IN_PLACE: (usize, usize) = (65_540, 65_536);
/// Side and number of square matrices that together have more than 2^32 elements.
const BATCH: (usize, usize) = (46_349, 2);
/// Shape of an array of more than 2^32 elements. [`permute_bytes`] swaps its first two axes, so rows stay contiguous.
const PLANES: [usize; 3] = [3, 65_539, 21_851];

/// Bytes of the device's memory; on a CPU device, at most the memory that the host can still give.
fn memory(device: &Device) -> u64 {
    let info = device.info();
    let own = if info.global_bytes == 0 { u64::MAX } else { info.global_bytes };
    match host_memory().filter(|_| info.ty == DeviceType::Cpu) {
        Some(bytes) => own.min(bytes),
        None => own,
    }
}

/// `n` elements of `fill`, except for the (index, value) pairs of `marks`. It is an error unless the device has memory
/// for `buffers` such buffers and one more.
fn marked<T: bytemuck::Pod>(
    device: &Device,
    (n, buffers): (usize, u64),
    fill: T,
    marks: &[(usize, T)],
) -> Result<Buffer<T>> {
    let bytes = (n * size_of::<T>()) as u64;
    let (has, most) = (memory(device), device.info().max_allocation_bytes);
    // 0 means that the limit is unknown.
    if has / (buffers + 1) < bytes || (most != 0 && most < bytes) {
        let text =
            format!("needs {buffers} buffers of {bytes} bytes; the device has {has}, at most {most} in one allocation");
        return Err(Error::unsupported(text));
    }
    let mut buffer = device.filled(n, fill)?;
    for &(i, value) in marks {
        buffer.view_mut(i..i + 1)?.write(&[value])?;
    }
    Ok(buffer)
}

fn equal<T: PartialEq + std::fmt::Debug>(got: T, want: T, what: &str) -> Result<(), Failure> {
    if got == want { Ok(()) } else { Err(Failure::Mismatch(format!("{what} is {got:?} instead of {want:?}"))) }
}

fn reduce_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 1), 1u8, &[(N - 1, 9)])?;
    equal(device.reduce(&x, Sum)?, (N - 1 + 9) as u8, "sum")?;
    equal(device.reduce(&x, Max)?, 9, "max")?;
    let most = device.arg_max(&x)?;
    equal((most.index, most.value), (N - 1, 9), "arg-max")?;
    let tail = device.arg_max(x.view(3..)?)?;
    equal((tail.index, tail.value), (N - 4, 9), "arg-max of a view")?;
    equal((device.count(&x, NonZero)? as usize, device.count(&x, EqualTo(9))? as usize), (N, 1), "counts")?;
    let ends = device.min_max(&x)?;
    equal((ends.min.index, ends.max.index), (0, N - 1), "min-max")?;
    let found = device.statistics(&x)?;
    equal((found.integer_sum, found.max.index), (Some(N as i128 + 8), N - 1), "statistics")?;
    let largest = Operator::new("largest", 0u8, u8::max, "max(a, b)");
    equal(device.reduce(&x, &largest)?, 9, "largest by the user's operator")
}

fn count_and_widen_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 1), 1u8, &[(N - 1, 9)])?;
    equal(device.reduce(x.cast::<u64>(), Sum)?, N as u64 + 8, "sum in u64")?;
    let ninth = Map::new(|x: u8| x / 9, "(uchar)(x / 9)");
    let found = device.histogram(x.map(&ninth), &Bins::ids(2)?)?;
    equal(found.counts, vec![N as u64 - 1, 1], "counts of a function")?;
    drop(x);
    // The last element decides the result.
    let ones = marked(device, (N, 1), 1u8, &[(N - 1, 0)])?;
    equal((device.all(&ones, NonZero)?, device.all(ones.view(..N - 1)?, NonZero)?), (false, true), "all")?;
    drop(ones);
    let zeros = marked(device, (N, 1), 0u8, &[(N - 1, 1)])?;
    equal((device.any(&zeros, NonZero)?, device.any(zeros.view(..N - 1)?, NonZero)?), (true, false), "any")
}

fn scan_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 2), 1u8, &[(N - 1, 9)])?;
    let sums = device.scan(&x, Sum)?;
    equal(sums.view(..3)?.to_vec()?, vec![1, 2, 3], "the first sums")?;
    equal(sums.view(N - 2..)?.to_vec()?, vec![(N - 1) as u8, (N + 8) as u8], "the last sums")?;
    // Each byte occurs equally often among the first 2^32 sums, and no later sum is 7.
    equal(device.count(&sums, EqualTo(7))?, 1 << 24, "sums that are 7")
}

fn reduce_words(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N_WORDS, 1), 1i32, &[(N_WORDS - 2, -7)])?;
    equal(device.reduce(&x, Sum)?, (N_WORDS as i64 - 8) as i32, "sum")?;
    equal(device.arg_min(&x)?.index, N_WORDS - 2, "arg-min")
}

fn reduce_floats(device: &Device) -> Result<(), Failure> {
    // Every partial sum is an integer that f64 holds exactly.
    let x = marked(device, (N_WORDS, 1), 1f64, &[])?;
    for determinism in [Determinism::Fixed, Determinism::Fast] {
        equal(device.reduce(&x, Sum.with(determinism))?, N_WORDS as f64, determinism.name())?;
    }
    Ok(())
}

/// Checks the documented error bound on sums whose errors all have one sign, and on sums of random elements.
fn reduce_within_bound(device: &Device) -> Result<(), Failure> {
    let within = |x: &Buffer<f32>, exact: f64, what: &str| {
        for determinism in [Determinism::Fixed, Determinism::Fast] {
            let bound = exact * stated_bound::<f32>(device, N_FLOATS, determinism)?;
            let got = device.reduce(x, Sum.with(determinism))?;
            close(got, exact, bound, &format!("{} sum of {what}", determinism.name()))?;
        }
        Ok(())
    };
    let mut x = marked(device, (N_FLOATS, 1), 0.1f32, &[])?;
    within(&x, N_FLOATS as f64 * f64::from(0.1f32), "0.1")?;
    let (part, scale) = (N_FLOATS / 64, 2f64.powi(52));
    let mut exact = 0;
    for start in (0..N_FLOATS).step_by(part) {
        let positive: Vec<f32> = Data::Random.generate(part, start as u64).into_iter().map(f32::abs).collect();
        // Random elements are multiples of 2^-52.
        exact += positive.iter().map(|&x| (f64::from(x) * scale) as i128).sum::<i128>();
        x.view_mut(start..start + part)?.write(&positive)?;
    }
    within(&x, exact as f64 / scale, "random elements")
}

fn reduce_products(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 1), 1u8, &[(N - 1, 9)])?;
    equal(device.reduce(x.cast::<u64>().times(x.cast()), Sum)?, N as u64 - 1 + 81, "dot")
}

fn reduce_rows(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (2 * N, 1), 1u8, &[(0, 5), (2 * N - 1, 9)])?;
    let rows = x.nd(&[2, N])?;
    let sums = device.reduce(rows.along(1), Sum)?.to_vec()?;
    equal(sums, vec![(N + 4) as u8, (N + 8) as u8], "sums of rows")?;
    let columns = device.reduce(rows.along(0), Max)?;
    let found = [columns.view(..2)?.to_vec()?, columns.view(N - 2..)?.to_vec()?];
    equal(found, [vec![5, 1], vec![1, 9]], "the first and last columns")?;
    let ends = device.min_max(rows.along(1))?;
    equal(ends.indices.to_vec()?, vec![1, 0, 0, N as u64 - 1], "indices of extremes of rows")?;
    equal(ends.values.to_vec()?, vec![1, 1, 5, 9], "extremes of rows")
}

fn reduce_columns(device: &Device) -> Result<(), Failure> {
    // The indices of the result are the largest allocation: 8 bytes for each column, against 2 bytes of the input.
    let x = marked(device, (2 * N, 6), 1u8, &[(0, 5), (2 * N - 1, 9)])?;
    let most = device.info().max_allocation_bytes;
    if most != 0 && most < 8 * N as u64 {
        return Err(
            Error::unsupported(format!("needs one allocation of {} bytes; the device allows {most}", 8 * N)).into()
        );
    }
    let found = device.arg_max(x.nd(&[2, N])?.along(0))?;
    let ends = [found.indices.view(..2)?.to_vec()?, found.indices.view(N - 2..)?.to_vec()?];
    equal(ends, [vec![0, 0], vec![0, 1]], "indices of the first and last columns")?;
    let ends = [found.values.view(..2)?.to_vec()?, found.values.view(N - 2..)?.to_vec()?];
    equal(ends, [vec![5, 1], vec![1, 9]], "the first and last columns")
}

fn reduce_segments(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 1), 1u8, &[(2, 5), (N - 1, 9)])?;
    let offsets = device.upload(&[0, 2, N as u64 - 2, N as u64])?;
    equal(device.reduce(x.segments(&offsets), Sum)?.to_vec()?, vec![2, N as u8, 10], "sums of segments")?;
    let wrong = device.upload(&[0, N as u64, N as u64 - 1])?;
    let error = device.check_segments(&wrong, N).err().map(|error| error.to_string());
    equal(error, Some(format!("offset 1 is {N}, beyond the next one, {}", N - 1)), "the check of offsets")
}

fn moments_of_rows(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (2 * N, 1), 1u8, &[(0, 5), (2 * N - 1, 9)])?;
    let found = device.moments(x.nd(&[2, N])?.along(1))?.to_vec()?;
    for (record, mark) in found.iter().zip([5.0, 9.0]) {
        let (found, n) = (record.get(), N as f64);
        equal(found.sum, n - 1.0 + mark, "the sum of a row")?;
        close(found.mean, found.sum / n, 1e-12, "the mean of a row")?;
        let (above, mean) = (mark - 1.0, (mark - 1.0) / n);
        close(found.variance, above * above / n - mean * mean, 1e-15, "the variance of a row")?;
    }
    equal(found.len(), 2, "the number of rows")
}

fn copy_nd(device: &Device) -> Result<(), Failure> {
    let [planes, rows, cols] = PLANES;
    let (p, r, c) = (planes - 1, 1, cols - 3);
    let n = planes * rows * cols;
    let x = marked(device, (n, 2), 0u8, &[((p * rows + r) * cols + c, 9)])?;
    let mut y = marked(device, (n, 2), 1u8, &[])?;
    device.copy(x.nd(&PLANES)?.reverse(1)?, y.nd_mut(&PLANES)?)?;
    equal(device.arg_max(&y)?.index, (p * rows + rows - 1 - r) * cols + c, "the mark's index")?;
    equal(device.reduce(&y, Sum)?, 9, "sum")
}

fn copy_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 2), 1u8, &[(3, 7), (N - 1, 9)])?;
    let mut y = marked(device, (N, 2), 0u8, &[])?;
    device.copy(x.view(3..)?, y.view_mut(1..N - 2)?)?;
    equal(device.reduce(&y, Sum)?, (N - 3 + 6 + 8) as u8, "sum of the copy")?;
    equal(device.arg_max(&y)?.index, N - 3, "the last mark's index")?;
    equal(y.view(..2)?.to_vec()?, vec![0, 7], "the copy's start")
}

fn copy_within(device: &Device) -> Result<(), Failure> {
    // Source and destination overlap. Their ends and their length do not fit in 32 bits.
    let mut x = marked(device, (N + 7, 1), 1u8, &[(2, 5), (N - 1, 9)])?;
    x.copy_within(..N, 7)?;
    equal(x.view(..10)?.to_vec()?, vec![1, 1, 5, 1, 1, 1, 1, 1, 1, 5], "the start")?;
    equal(x.view(N..)?.to_vec()?, vec![1, 1, 1, 1, 1, 1, 9], "the end")?;
    equal(device.reduce(&x, Sum)?, (N + 7 + 4 + 4 + 8) as u8, "sum")
}

fn copy_ranges(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 2), 1u8, &[(3, 7), (N - 1, 9)])?;
    let mut y = marked(device, (N, 2), 0u8, &[])?;
    device.copy(x.ranges(&[(N - 9..N, 0), (0..N - 9, 9)]), &mut y)?;
    equal(device.reduce(&y, Sum)?, (N + 6 + 8) as u8, "sum of the copies")?;
    equal(y.view(..13)?.to_vec()?, vec![1, 1, 1, 1, 1, 1, 1, 1, 9, 1, 1, 1, 7], "the start")
}

fn gather_scatter(device: &Device) -> Result<(), Failure> {
    let mut x = marked(device, (N, 1), 1u8, &[(3, 7), (N - 1, 9)])?;
    let far = device.upload(&[N as u64 - 1, 3, N as u64, 0])?;
    let (mut got, mut outside) = (device.filled(4, 5u8)?, device.zeroed::<u64>(1)?);
    device.gather_into(&x, &far, &mut got, &mut outside)?;
    equal((got.to_vec()?, outside.to_vec()?), (vec![9, 7, 5, 1], vec![2]), "gather")?;
    device.scatter_into(&[2u8, 3, 4, 5], &far, &mut x, &mut outside)?;
    equal((x.view(N - 2..)?.to_vec()?, outside.to_vec()?), (vec![1, 2], vec![2]), "scatter")?;
    equal(device.reduce(&x, Sum)?, (N - 3 + 2 + 3 + 5) as u8, "sum")
}

/// Gathers by more indices than one launch takes. The first index out of range is in the second launch.
fn gather_many(device: &Device) -> Result<(), Failure> {
    let by = marked(device, (N_WORDS, 2), 1u32, &[(N_WORDS - 1, 2), (N_WORDS - 3, 3)])?;
    let (mut y, mut outside) = (device.zeroed::<u8>(N_WORDS)?, device.zeroed::<u64>(1)?);
    device.gather_into(&[5u8, 6, 7], &by, &mut y, &mut outside)?;
    equal(outside.to_vec()?, vec![N_WORDS as u64 - 3], "outside")?;
    equal(device.reduce(&y, Sum)?, (6 * (N_WORDS - 2) + 7) as u8, "sum")?;
    equal(device.arg_max(&y)?.index, N_WORDS - 1, "the mark's index")
}

fn reverse_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 2), 1u8, &[(3, 9)])?;
    let mut y = device.transform(x.reversed())?;
    equal((device.reduce(&y, Sum)?, device.arg_max(&y)?.index), ((N + 8) as u8, N - 4), "reverse")?;
    device.reverse_in_place(&mut y)?;
    equal((device.reduce(&y, Sum)?, device.arg_max(&y)?.index), ((N + 8) as u8, 3), "reverse in place")
}

fn fill_words(device: &Device) -> Result<(), Failure> {
    // The fill runs from an odd offset to an offset of more than 2^32 bytes.
    let mut x = marked(device, (N_WORDS, 1), 1u32, &[])?;
    x.view_mut(3..N_WORDS - 3)?.fill(2)?;
    equal(device.reduce(&x, Sum)?, (2 * (N_WORDS - 6) + 6) as u32, "sum")?;
    for (at, want) in [(0, [1, 1, 1, 2]), (N_WORDS / 2, [2; 4]), (N_WORDS - 4, [2, 1, 1, 1])] {
        equal(x.view(at..at + 4)?.to_vec()?, want.to_vec(), "a part")?;
    }
    Ok(())
}

fn histogram_words(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N_WORDS, 1), 7i32, &[(0, 3), (N_WORDS - 1, 200)])?;
    let found = device.histogram(&x, &Bins::ids(100)?)?;
    equal((found.counts[7], found.counts[3]), (N_WORDS as u64 - 2, 1), "counts of 7 and 3")?;
    equal(found.outside.above, 1, "counts above")
}

fn histogram_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 1), 7u8, &[(0, 3), (N - 1, 200)])?;
    let (mut counts, mut outside) = ([0u64; 100], [0u64; 3]);
    let bins = Bins::ids(100)?;
    device.histogram_into(&x, &bins, &mut counts, &mut outside, Accumulate::Overwrite)?;
    equal((counts[7], counts[3]), (N as u64 - 2, 1), "counts of 7 and 3")?;
    equal(outside, [0, 1, 0], "counts outside")
}

fn histogram_of_ranges(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 1), 7u8, &[(0, 3), (N - 1, 200)])?;
    for bins in [Bins::even(0u8, 100, 25)?, Bins::edges(&[0u8, 4, 8, 100])?] {
        let found = device.histogram(&x, &bins)?;
        let outside = (found.outside.below, found.outside.above);
        equal((&found.counts[..2], outside), (&[1, N as u64 - 2][..], (0, 1)), "counts of 3 and 7, and outside")?;
    }
    Ok(())
}

fn transpose_products(device: &Device) -> Result<(), Failure> {
    let (rows, cols) = SHAPE;
    let (r, c) = (rows - 2, cols - 1);
    let x = marked(device, (rows * cols, 2), 0u8, &[(r * cols + c, 9)])?;
    let y = device.transpose(x.times(constant(3)), (rows, cols))?;
    equal(device.arg_max(&y)?.index, c * rows + r, "the mark's index")?;
    equal(device.reduce(&y, Sum)?, 27, "sum")
}

fn transpose_bytes(device: &Device) -> Result<(), Failure> {
    let (rows, cols) = SHAPE;
    let (r, c) = (rows - 2, cols - 1);
    let x = marked(device, (rows * cols, 2), 0u8, &[(r * cols + c, 9)])?;
    let y = device.transpose(&x, (rows, cols))?;
    equal(device.arg_max(&y)?.index, c * rows + r, "the mark's index")?;
    equal(device.reduce(&y, Sum)?, 9, "sum")
}

fn transpose_in_place_bytes(device: &Device) -> Result<(), Failure> {
    let (rows, cols) = IN_PLACE;
    let (r, c) = (rows - 2, cols - 1);
    let mut x = marked(device, (rows * cols, 1), 0u8, &[(r * cols + c, 9)])?;
    device.transpose_in_place(&mut x, rows, cols)?;
    equal(device.arg_max(&x)?.index, c * rows + r, "the mark's index")?;
    equal(device.reduce(&x, Sum)?, 9, "sum")
}

fn transpose_batch_bytes(device: &Device) -> Result<(), Failure> {
    let (side, count) = BATCH;
    let (r, c) = (side - 2, side - 1);
    let last = (count - 1) * side * side;
    let x = marked(device, (count * side * side, 2), 0u8, &[(last + r * side + c, 9)])?;
    let y = device.transpose(&x, &Matrices::new(side, side).count(count))?;
    equal(device.arg_max(&y)?.index, last + c * side + r, "the mark's index")?;
    equal(device.reduce(&y, Sum)?, 9, "sum")
}

fn permute_bytes(device: &Device) -> Result<(), Failure> {
    let [planes, rows, cols] = PLANES;
    let (p, r, c) = (planes - 1, rows - 2, cols - 3);
    let x = marked(device, (planes * rows * cols, 2), 0u8, &[((p * rows + r) * cols + c, 9)])?;
    let y = device.transform(x.nd(&PLANES)?.permute(&[1, 0, 2])?)?;
    equal(device.arg_max(&y)?.index, (r * planes + p) * cols + c, "the mark's index")?;
    equal(device.reduce(&y, Sum)?, 9, "sum")
}

fn sort_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 2), 7u8, &[(3, 200), (N - 1, 2), (N / 2, 0)])?;
    let y = device.sort(&x, Order::ascending())?;
    let ends = [y.view(..4)?.to_vec()?, y.view(N - 3..)?.to_vec()?];
    equal(ends, [vec![0, 2, 7, 7], vec![7, 7, 200]], "the smallest and the largest")?;
    equal(device.reduce(&y, Sum)?, (7 * (N - 3) + 202) as u8, "sum")
}

fn sort_segments_of_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 2), 7u8, &[(3, 200), (N - 1, 2), (N / 2, 0)])?;
    let offsets = [0, 5, N - 2, N].map(|offset| offset as u64);
    let y = device.sort(x.segments(&offsets), Order::ascending())?;
    let ends = [y.view(..6)?.to_vec()?, y.view(N - 3..)?.to_vec()?];
    equal(ends, [vec![7, 7, 7, 7, 200, 0], vec![7, 2, 7]], "where segments begin and end")?;
    equal(device.reduce(&y, Sum)?, (7 * (N - 3) + 202) as u8, "sum")
}

/// Few elements are selected, but from indices that exceed 32 bits.
fn select_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 1), 7u8, &[(3, 200), (N - 1, 2), (N / 2, 0)])?;
    let other = Map::new(|x: u8| x != 7, "x != 7");
    let (mut found, mut indices, mut count) = ([9u8; 4], [9u64; 4], [0]);
    device.select_into(&x, &other, &mut found, &mut count)?;
    equal((found, count), ([200, 0, 2, 9], [3]), "selected elements")?;
    device.select_indices_into(&x, &other, &mut indices, &mut count)?;
    equal((indices, count), ([3, N as u64 / 2, N as u64 - 1, 9], [3]), "selected indices")
}

fn runs_of_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 1), 7u8, &[(3, 200), (N - 1, 2), (N / 2, 0)])?;
    let n = N as u64;
    let (mut values, mut lengths, mut offsets, mut count) = ([9u8; 6], [9u64; 6], [9u64; 6], [0]);
    device.run_length_encode_into(&x, &mut values, &mut lengths, &mut count)?;
    equal((values, count), ([7, 200, 7, 0, 7, 2], [6]), "the runs")?;
    equal(lengths, [3, 1, n / 2 - 4, 1, n - n / 2 - 2, 1], "their lengths")?;
    device.non_trivial_runs_into(&x, &mut offsets, &mut lengths, &mut count)?;
    equal((&offsets[..3], count), (&[0, 4, n / 2 + 1][..], [3]), "the long runs")?;
    equal(&lengths[..3], &[3, n / 2 - 4, n - n / 2 - 2], "their lengths")
}

fn merge_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 3), 7u8, &[(0, 2), (N - 1, 200)])?;
    let (middle, order) = (N / 3, Order::ascending());
    let (a, b) = (x.view(..middle)?, x.view(middle..)?);
    // `b` is before `a`, so that the range with the smallest element comes second.
    let y = device.merge(b, a, &order)?;
    let ends = [y.view(..3)?.to_vec()?, y.view(N - 2..)?.to_vec()?];
    equal(ends, [vec![2, 7, 7], vec![7, 200]], "the smallest and the largest")?;
    equal(device.reduce(&y, Sum)?, (7 * (N - 2) + 202) as u8, "sum")?;
    drop(y);
    let indices: Buffer<u64> = device.search(&x, &[200, 7, 255], Bound::Lower, &order)?;
    equal(indices.to_vec()?, vec![N as u64 - 1, 1, N as u64], "lower bounds")?;
    equal(device.first_unsorted(&x, &order)?, None, "first unsorted element")?;
    equal(device.first_unsorted(&x, Order::descending())?, Some(1), "first unsorted element, descending")?;
    // The unsorted element comes after all elements that the first launch compares.
    equal(device.first_unsorted(x.view(1..)?, Order::descending())?, Some(N - 2), "the last unsorted element")?;
    let kept = device.set_operation(b, a, SetOp::Difference, &order)?;
    equal(kept.len(), N - 2 * middle + 1, "the difference")?;
    equal(kept.view(kept.len() - 2..)?.to_vec()?, vec![7, 200], "the difference's end")
}

fn iota_bytes(device: &Device) -> Result<(), Failure> {
    let mut x = marked(device, (N, 1), 9u8, &[])?;
    device.iota_into(250u8, 1, &mut x)?;
    for (at, want) in [(0, [250u8, 251, 252, 253]), (1 << 31, [250, 251, 252, 253]), (N - 4, [251, 252, 253, 254])] {
        equal(x.view(at..at + 4)?.to_vec()?, want.to_vec(), &format!("elements from {at} on"))?;
    }
    Ok(())
}

fn map_reduce_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 1), 3u8, &[(N - 1, 5)])?;
    let square = Map::new(|x: u8| u64::from(x) * u64::from(x), "(ulong)x * x");
    equal(device.reduce(x.map(&square), Sum)?, 9 * (N as u64 - 1) + 25, "the sum of squares")
}

fn histogram_weights(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 2), 7u8, &[(0, 3), (N - 1, 200)])?;
    let w = marked(device, (N, 2), 2u8, &[(0, 5), (N - 1, 9)])?;
    let found = device.histogram(x.weighted(&w), &Bins::ids(100)?)?;
    equal((found.sums[7], found.sums[3]), (2 * (N as u64 - 2), 5), "sums of 7 and 3")?;
    equal(found.outside.above, 9, "the sum above")
}

fn histogram_channels(device: &Device) -> Result<(), Failure> {
    // Each of the two channels has more than 2^31 samples.
    let x = marked(device, (N + 1, 1), 7u8, &[(0, 3), (N, 200)])?;
    let found = device.histogram(x.channels(2), &[Bins::ids(100)?, Bins::ids(100)?])?;
    let pixels = (N as u64).div_ceil(2);
    equal((found[0].counts[7], found[0].counts[3]), (pixels - 1, 1), "counts of the first channel")?;
    equal((found[1].counts[7], found[1].outside.above), (pixels - 1, 1), "counts of the second")
}

fn transpose_row(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 2), 1u8, &[(N - 1, 9)])?;
    let y = device.transpose(&x, (1, N))?;
    equal(device.reduce(&y, Sum)?, (N - 1 + 9) as u8, "sum")?;
    equal(device.arg_max(&y)?.index, N - 1, "the mark's index")
}

fn fill_triples(device: &Device) -> Result<(), Failure> {
    // OpenCL fills only with patterns whose number of bytes is a power of two, so patterns of 3 bytes are copied.
    let n = N / 3 + 1;
    let x = marked(device, (n, 1), [7u8, 5, 3], &[])?;
    for start in [0, (1 << 30) / 3 - 1, (1 << 31) / 3 - 1, (1usize << 32) / 3 - 1, n - 3] {
        equal(x.view(start..start + 3)?.to_vec()?, vec![[7, 5, 3]; 3], &format!("elements from {start} on"))?;
    }
    Ok(())
}

/// Checks that sorted random keys are in order, and that each key occurs as often as before.
fn sort_random_bytes(device: &Device) -> Result<(), Failure> {
    let mut x = marked(device, (N, 2), 0u8, &[])?;
    device.random_into(Philox::new(5), &mut x)?;
    let y = device.sort(&x, Order::ascending())?;
    equal(device.first_unsorted(&y, Order::ascending())?, None, "first unsorted element")?;
    let counts = |x: &Buffer<u8>| device.histogram(x, &Bins::ids(256)?).map(|found| found.counts);
    equal(counts(&y)?, counts(&x)?, "counts of keys")
}

/// Checks the indices of sorted random keys: `keys[i] == x[indices[i]]`, and indices of equal keys ascend.
fn sort_random_pairs(device: &Device) -> Result<(), Failure> {
    let mut x = marked(device, (N_WORDS, 17), 0u8, &[])?;
    device.random_into(Philox::new(6), &mut x)?;
    let (keys, indices) = device.sort(x.with(&device.iota(N_WORDS, 0u32, 1)?), Order::ascending())?;
    let found = device.gather(&x, &indices)?;
    equal(device.reduce(found.by_key(&keys), Max)?.1.to_vec()?, (0..=255).collect(), "the largest key of each run")?;
    equal(device.reduce(found.by_key(&keys), Min)?.1.to_vec()?, (0..=255).collect(), "the least key of each run")?;
    let mut at = 0;
    for count in device.histogram(&x, &Bins::ids(256)?)?.counts {
        let end = at + count as usize;
        equal(device.first_unsorted(indices.view(at..end)?, Order::ascending())?, None, "indices of equal keys")?;
        at = end;
    }
    Ok(())
}

fn scan_segments_of_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 4), 1u8, &[(N - 1, 9)])?;
    let keys = marked(device, (N, 4), 7u8, &[(N / 2, 8), (N - 2, 8)])?;
    let starts = [0, N / 2, N / 2 + 1, N - 2, N - 1];
    let ends = |sums: &Buffer<u8>| -> Result<Vec<u8>> {
        starts[1..].iter().chain([&N]).map(|&end| Ok(sums.view(end - 1..end)?.to_vec()?[0])).collect()
    };
    let wanted: Vec<u8> = starts.windows(2).map(|at| (at[1] - at[0]) as u8).chain([9]).collect();
    equal(ends(&device.scan(x.by_key(&keys), Sum)?)?, wanted.clone(), "sums by key")?;
    let offsets: Vec<u64> = starts.iter().chain([&N]).map(|&at| at as u64).collect();
    equal(ends(&device.scan(x.segments(&offsets), Sum)?)?, wanted, "sums of segments")
}

fn reduce_bytes_by_key(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 4), 1u8, &[(N - 1, 9)])?;
    let keys = marked(device, (N, 4), 7u8, &[(N / 2, 8), (N - 2, 8)])?;
    let (mut first, mut sums, mut count) = ([0u8; 5], [0u8; 5], [0]);
    device.reduce_into(x.by_key(&keys), Sum, (&mut first, &mut sums, &mut count))?;
    equal((first, count), ([7, 8, 7, 8, 7], [5]), "the runs' keys")?;
    equal(sums, [(N / 2) as u8, 1, (N - N / 2 - 3) as u8, 1, 9], "their sums")
}

fn partition_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 3), 7u8, &[(3, 200), (N - 1, 2), (N / 2, 0)])?;
    let seven = Map::new(|x: u8| x == 7, "x == 7");
    let (y, count) = device.partition(&x, &seven)?;
    equal((count, device.count(&y, EqualTo(7))? as usize), (N - 3, N - 3), "the count of the first part")?;
    equal(y.view(N - 4..)?.to_vec()?, vec![7, 200, 0, 2], "the second part")
}

fn top_of_bytes(device: &Device) -> Result<(), Failure> {
    let x = marked(device, (N, 1), 7u8, &[(3, 199), (N - 1, 200), (N / 2, 0)])?;
    let (keys, indices) = device.top_k(x.indexed::<u64>(), Top::largest(4).sorted())?;
    equal(keys.to_vec()?, vec![200, 199, 7, 7], "the largest")?;
    equal(indices.to_vec()?, vec![N as u64 - 1, 3, 0, 1], "their indices")?;
    let (keys, indices) = device.top_k(x.indexed::<u64>(), Top::smallest(2).sorted())?;
    equal((keys.to_vec()?, indices.to_vec()?), (vec![0, 7], vec![N as u64 / 2, 0]), "the smallest, and their indices")?;
    equal(device.nth_element(&x, N - 2)?, 199, "the second largest")
}

impl Spec for Large {
    fn name(&self) -> &'static str {
        "large"
    }

    fn cases(&self, level: Level) -> Vec<Case> {
        if level < Level::Full {
            return Vec::new();
        }
        let case = |form, element, n: usize, run: fn(&Device) -> Result<(), Failure>| {
            Case::new(form, element, format!("n = {n}"), "constant", n, run)
        };
        vec![
            case("reduce", ElementType::U8, N, reduce_bytes),
            case("reduce", ElementType::I32, N_WORDS, reduce_words),
            case("reduce", ElementType::F64, N_WORDS, reduce_floats),
            case("sum within its bound", ElementType::F32, N_FLOATS, reduce_within_bound),
            case("dot", ElementType::U8, N, reduce_products),
            case("any, all, in a wider type, of a function", ElementType::U8, N, count_and_widen_bytes),
            case("scan", ElementType::U8, N, scan_bytes),
            case("reduce along an axis", ElementType::U8, 2 * N, reduce_rows),
            case("arg-max of columns", ElementType::U8, 2 * N, reduce_columns),
            case("reduce of segments", ElementType::U8, N, reduce_segments),
            case("moments along an axis", ElementType::U8, 2 * N, moments_of_rows),
            case("copy", ElementType::U8, N, copy_bytes),
            case("strided copy", ElementType::U8, PLANES.iter().product(), copy_nd),
            case("copy within", ElementType::U8, N, copy_within),
            case("copy ranges", ElementType::U8, N, copy_ranges),
            case("gather and scatter", ElementType::U8, N, gather_scatter),
            case("gather", ElementType::U8, N_WORDS, gather_many),
            case("reverse", ElementType::U8, N, reverse_bytes),
            case("fill", ElementType::U32, N_WORDS, fill_words),
            case("histogram", ElementType::U8, N, histogram_bytes),
            case("histogram", ElementType::I32, N_WORDS, histogram_words),
            case("histogram, even and by edges", ElementType::U8, N, histogram_of_ranges),
            case("transpose", ElementType::U8, SHAPE.0 * SHAPE.1, transpose_bytes),
            case("transpose with a factor", ElementType::U8, SHAPE.0 * SHAPE.1, transpose_products),
            case("transpose in place", ElementType::U8, IN_PLACE.0 * IN_PLACE.1, transpose_in_place_bytes),
            case("transpose batch", ElementType::U8, BATCH.1 * BATCH.0 * BATCH.0, transpose_batch_bytes),
            case("permute", ElementType::U8, PLANES.iter().product(), permute_bytes),
            case("transpose 1 x n", ElementType::U8, N, transpose_row),
            case("sort", ElementType::U8, N, sort_bytes),
            case("sort of random keys", ElementType::U8, N, sort_random_bytes),
            case("sort of indices", ElementType::U8, N_WORDS, sort_random_pairs),
            case("sort of segments", ElementType::U8, N, sort_segments_of_bytes),
            case("scan of segments", ElementType::U8, N, scan_segments_of_bytes),
            case("reduce by key", ElementType::U8, N, reduce_bytes_by_key),
            case("partition", ElementType::U8, N, partition_bytes),
            case("top-k", ElementType::U8, N, top_of_bytes),
            case("select", ElementType::U8, N, select_bytes),
            case("runs", ElementType::U8, N, runs_of_bytes),
            case("merge, sets and searches", ElementType::U8, N, merge_bytes),
            case("iota", ElementType::U8, N, iota_bytes),
            case("map and reduce", ElementType::U8, N, map_reduce_bytes),
            case("weighted histogram", ElementType::U8, N, histogram_weights),
            case("histogram of channels", ElementType::U8, N + 1, histogram_channels),
            case("fill of 3 bytes", ElementType::U8, N, fill_triples),
        ]
    }

    fn programs(&self, _: &Tuned) -> Vec<ProgramSpec> {
        // The specs of the primitives list their programs with 64-bit offsets.
        Vec::new()
    }
}
