//! Exact sums and means of segments, along axes and by key: special numbers, and numbers at the bounds of the kernels.

mod common;
#[path = "common/hard.rs"]
mod hard;

use oclprim::{
    Device, ErrorKind, ExactSum, Float, Input, Layout, NdView, Source, Tuning, bf16, f16,
    internals::{
        data::Rng,
        oracle::{exact_mean, exact_product_sum, exact_sum},
    },
    op::{Max, Mean, Product, Sum, Usage},
    source::{constant, counting},
    tuning::Primitive,
};

use self::hard::{KINDS, bits, format_of, hard, same};

/// Every device in its own geometry, as a GPU with each kind of registers, as a small one, and with 64-bit offsets.
fn devices() -> Vec<(String, Device)> {
    let mut all = Vec::new();
    for (name, device) in common::devices() {
        let caps = device.capabilities().unwrap();
        let mut add = |kind: &str, tuning: Tuning| {
            all.push((format!("{name}{kind}"), device.with_tuning(tuning).unwrap()));
        };
        if let Some(caps) = caps {
            if caps.fp64 {
                let registers = |value| common::gpu().set(Primitive::Reduce, "exact_f64", value);
                add(" as a GPU, in f64", registers(1));
                if !common::tiny() {
                    add(" without f64", Tuning::default().set(Primitive::Reduce, "exact_f64", 0));
                }
                add(" as a GPU, without f64", registers(0));
            } else {
                add(" as a GPU", common::gpu());
            }
            if !common::tiny() {
                add(" as a small GPU", common::gpu().local_bytes(4096));
                add(" with 64-bit offsets", common::gpu().wide_offsets());
            }
        }
        all.push((name, device));
    }
    all
}

/// Segments of hard numbers, with their sums: short and longer ones, and empty ones.
fn segments<T: Float>(count: usize, most: u64, seed: u64) -> (Vec<T>, Vec<u32>, Vec<T>) {
    let mut rng = Rng::new(seed);
    let (mut x, mut offsets, mut sums) = (Vec::new(), vec![0], Vec::new());
    for _ in 0..count {
        let len = [0, rng.below(5), rng.below(40), rng.below(most)][rng.below(4) as usize] as usize;
        let segment = hard::<T>(rng.below(KINDS) as usize, len, &mut rng);
        sums.push(exact_sum::<T, T>(&segment));
        x.extend(segment);
        offsets.push(x.len() as u32);
    }
    (x, offsets, sums)
}

fn sums_of_segments<T: Float>(device: &Device, name: &str, sizes: &[(usize, u64)]) {
    for &(count, most) in sizes {
        let (x, offsets, want) = segments::<T>(count, most, count as u64);
        let got = device.reduce(x.segments(&offsets), Sum.exact()).unwrap().to_vec().unwrap();
        same(&got, &want, &format!("{name}: {count} segments of {}", T::TYPE));
        // Elements in another order, and other segments before them.
        let mut turned = vec![T::ONE; 3];
        for pair in offsets.windows(2) {
            turned.extend(x[pair[0] as usize..pair[1] as usize].iter().rev());
        }
        let moved: Vec<u64> = offsets.iter().map(|&at| u64::from(at) + 3).collect();
        let got = device.reduce(turned.segments(&moved), Sum.exact()).unwrap().to_vec().unwrap();
        same(&got, &want, &format!("{name}: {count} reversed segments of {}", T::TYPE));
    }
}

#[test]
fn sums_of_segments_are_correctly_rounded() {
    for (name, device) in devices() {
        // Teams of several sizes.
        let sizes = &[(300, 300), (40, 3000), (2000, 10), (1, 2000)];
        sums_of_segments::<f32>(&device, &name, sizes);
        sums_of_segments::<f16>(&device, &name, &sizes[..1]);
        sums_of_segments::<bf16>(&device, &name, &sizes[..1]);
        if common::has_doubles(&device) {
            sums_of_segments::<f64>(&device, &name, if common::tiny() { &sizes[..2] } else { sizes });
        }
    }
}

/// Segments that are divided into parts, between short and empty ones.
#[test]
fn sums_of_long_segments_are_correctly_rounded() {
    fn long<T: Float>(device: &Device, name: &str, kinds: &[usize]) {
        for &kind in kinds {
            let mut rng = Rng::new(kind as u64);
            let (mut x, mut offsets, mut want) = (Vec::new(), vec![0u32], Vec::new());
            for len in [3, 16_384, 0, 16_385, 100, 70_001, 33_000, 1] {
                let segment = hard::<T>(kind, len, &mut rng);
                want.push(ExactSum::from_iter(&segment).round());
                x.extend(segment);
                offsets.push(x.len() as u32);
            }
            want[2] = T::ZERO;
            let got = device.reduce(x.segments(&offsets), Sum.exact()).unwrap().to_vec().unwrap();
            same(&got, &want, &format!("{name}: long segments of {}, kind {kind}", T::TYPE));
        }
    }
    for (name, device) in devices() {
        long::<f32>(&device, &name, &[0, 1, 3, 7, 8, 10, 11, 13, 14]);
        long::<f16>(&device, &name, &[1]);
        if common::has_doubles(&device) {
            long::<f64>(&device, &name, &[0, 1, 13]);
        }
    }
}

/// One work-group reduces a long segment and short ones. They take different branches of the kernel.
#[test]
fn long_segments_among_short_ones_are_not_lost() {
    /// Just longer than a part.
    const LONG: usize = 16_400;
    fn all(device: &Device, name: &str) {
        let mut rng = Rng::new(7);
        for longs in [&[0][..], &[1], &[7], &[0, 1, 9]] {
            for &team in if common::tiny() { &[8][..] } else { &[4, 8, 32] } {
                // With this number of segments, their average length selects teams of `team` work-items.
                let count = longs.len() * LONG / (16 * team);
                let len = |at: usize| if longs.contains(&at) { LONG } else { 10 };
                let parts: Vec<_> = (0..count).map(|at| hard::<f32>(1, len(at), &mut rng)).collect();
                let mut offsets = vec![0u32];
                parts.iter().for_each(|part| offsets.push(offsets[offsets.len() - 1] + part.len() as u32));
                let want: Vec<f32> = parts.iter().map(|part| ExactSum::from_iter(part).round()).collect();
                let got = device.reduce(parts.concat().segments(&offsets), Sum.exact()).unwrap();
                same(&got.to_vec().unwrap(), &want, &format!("{name}: long segments at {longs:?} of {count}"));
            }
        }
    }
    for (name, device) in common::devices() {
        if let Some(caps) = device.capabilities().unwrap() {
            // Without fp64 all digits are integers.
            for registers in 0..if caps.fp64 { 2 } else { 1 } {
                let set = |tuning: Tuning, name, value| tuning.set(Primitive::Reduce, name, value);
                let small = if caps.max_work_group > 64 { set(common::gpu(), "work_group", 64) } else { common::gpu() };
                let small = if caps.fp64 { set(small, "exact_f64", registers) } else { small };
                all(&device.with_tuning(small).unwrap(), &format!("{name} in small work-groups, f64 {registers}"));
            }
        }
        all(&device, &name);
    }
}

fn sums_of_lines<T: Float>(device: &Device, name: &str, shape: [usize; 3], axis: usize) {
    let mut rng = Rng::new(shape[axis] as u64);
    let (len, outputs) = (shape[axis], shape.iter().product::<usize>() / shape[axis].max(1));
    let layout = Layout::contiguous(&shape).unwrap();
    let inner: usize = shape[axis + 1..].iter().product();
    let mut x = vec![T::ZERO; len * outputs];
    let mut want = Vec::new();
    for output in 0..outputs {
        let line = hard::<T>(rng.below(KINDS) as usize, len, &mut rng);
        want.push(ExactSum::from_iter(&line).round());
        let first = output / inner * inner * len + output % inner;
        line.into_iter().enumerate().for_each(|(i, value)| x[first + i * inner] = value);
    }
    let view = NdView::new(&x, layout).unwrap();
    let got = device.reduce(view.along(axis), Sum.exact()).unwrap().to_vec().unwrap();
    same(&got, &want, &format!("{name}: {shape:?} of {} along {axis}", T::TYPE));
    // Backwards along the axis.
    let got = device.reduce(view.reverse(axis).unwrap().along(axis), Sum.exact()).unwrap().to_vec().unwrap();
    same(&got, &want, &format!("{name}: {shape:?} of {} back along {axis}", T::TYPE));
}

#[test]
fn sums_along_axes_are_correctly_rounded() {
    let shapes = [
        ([1, 3, 700], 2),
        ([1, 700, 3], 1),
        ([5, 20, 1], 1),
        ([300, 8, 1], 0),
        ([2, 33, 70], 1),
        ([20, 1, 300], 0),
        ([1, 1, 30_000], 2),
        ([20_000, 1, 2], 0),
        ([1, 40, 132], 0),
        ([3, 5, 1], 2),
    ];
    for (name, device) in devices() {
        for (i, (shape, axis)) in shapes.into_iter().enumerate() {
            sums_of_lines::<f32>(&device, &name, shape, axis);
            if common::has_doubles(&device) && (i % 3 == 0 || !common::tiny()) {
                sums_of_lines::<f64>(&device, &name, shape, axis);
            }
        }
        sums_of_lines::<f16>(&device, &name, [2, 33, 70], 1);
        sums_of_lines::<bf16>(&device, &name, [2, 33, 70], 2);
        let nothing = device.zeroed::<f32>(0).unwrap();
        let sums = device.reduce(nothing.nd(&[0, 4]).unwrap().along(0), Sum.exact()).unwrap();
        assert_eq!(bits(&sums.to_vec().unwrap()), [0; 4], "{name}");
    }
}

#[test]
fn sums_by_key_are_correctly_rounded() {
    fn by_key<T: Float>(device: &Device, name: &str) {
        let (x, offsets, sums) = segments::<T>(400, 100, 5);
        let (mut keys, mut want_keys, mut want) = (Vec::new(), Vec::new(), Vec::new());
        for (s, pair) in offsets.windows(2).enumerate().filter(|(_, pair)| pair[0] < pair[1]) {
            keys.extend((pair[0]..pair[1]).map(|_| s as u16));
            want_keys.push(s as u16);
            want.push(sums[s]);
        }
        let (found, got) = device.reduce(x.by_key(&keys), Sum.exact()).unwrap();
        assert_eq!(found.to_vec().unwrap(), want_keys, "{name}");
        same(&got.to_vec().unwrap(), &want, &format!("{name}: {} by key", T::TYPE));
        // Outputs with room for more runs, and for fewer.
        for room in [want.len() + 5, want.len(), want.len() - 3] {
            let (mut keys_out, mut out) = (device.zeroed::<u16>(room).unwrap(), device.zeroed::<T>(room).unwrap());
            out.fill(T::ONE).unwrap();
            let mut count = device.zeroed::<u64>(1).unwrap();
            device.reduce_into(x.by_key(&keys), Sum.exact(), (&mut keys_out, &mut out, &mut count)).unwrap();
            assert_eq!(count.to_vec().unwrap(), [want.len() as u64], "{name}");
            let out = out.to_vec().unwrap();
            let there = room.min(want.len());
            same(&out[..there], &want[..there], &format!("{name}: {} by key, room for {room}", T::TYPE));
            assert!(out[there..].iter().all(|&x| x == T::ONE), "{name}: elements beyond the count");
        }
    }
    for (name, device) in devices() {
        by_key::<f32>(&device, &name);
        if common::has_doubles(&device) {
            by_key::<f64>(&device, &name);
        }
    }
}

#[test]
fn converted_elements_are_summed_exactly() {
    let mut rng = Rng::new(1);
    let offsets = [0u32, 700, 700, 5000];
    for (name, device) in devices() {
        let bytes: Vec<u8> = (0..5000).map(|_| rng.next() as u8).collect();
        let halves = hard::<f16>(1, 5000, &mut rng);
        let sum = |part: &[f32]| exact_sum::<f32, f32>(part);
        let parts = |x: &[f32]| [sum(&x[..700]), 0.0, sum(&x[700..])];
        let mut got = [0f32; 3];
        device.reduce_into(bytes.cast::<f32>().segments(&offsets), Sum.exact(), &mut got).unwrap();
        same(&got, &parts(&bytes.iter().map(|&x| f32::from(x)).collect::<Vec<_>>()), &format!("{name}: u8"));
        let signed: Vec<i8> = bytes.iter().map(|&x| x as i8).collect();
        device.reduce_into(signed.cast::<f32>().segments(&offsets), Sum.exact(), &mut got).unwrap();
        same(&got, &parts(&signed.iter().map(|&x| f32::from(x)).collect::<Vec<_>>()), &format!("{name}: i8"));
        device.reduce_into(halves.cast::<f32>().segments(&offsets), Sum.exact(), &mut got).unwrap();
        same(&got, &parts(&halves.iter().map(|x| x.to_f32()).collect::<Vec<_>>()), &format!("{name}: f16"));
        if common::has_doubles(&device) {
            for kind in [0, 5] {
                let floats = hard::<f32>(kind, 600, &mut rng);
                let mut got = [0f64; 2];
                let view = NdView::new(&floats, Layout::contiguous(&[300, 2]).unwrap()).unwrap();
                device.reduce_into(view.cast::<f64>().along(0), Sum.exact(), &mut got).unwrap();
                let line = |k: usize| floats[k..].iter().step_by(2).copied().collect::<Vec<f32>>();
                let want = [exact_sum::<f32, f64>(&line(0)), exact_sum::<f32, f64>(&line(1))];
                same(&got, &want, &format!("{name}: f32 in f64, kind {kind}"));
            }
        }
    }
}

/// [`devices`] except those named `without f64`. They would repeat others, since dot products of groups use integers on
/// every device.
fn product_devices() -> Vec<(String, Device)> {
    devices().into_iter().filter(|(name, _)| !name.ends_with("without f64")).collect()
}

/// Two factors for each element of some segments, and the sums of the products.
fn factors<T: Float>(lens: &[usize], kinds: &[usize], seed: u64) -> ([Vec<T>; 2], Vec<u32>, Vec<T>) {
    let mut rng = Rng::new(seed);
    let ([mut x, mut y], mut offsets, mut sums) = ([Vec::new(), Vec::new()], vec![0], Vec::new());
    for &len in lens {
        let [kind, other] = [0; 2].map(|_| kinds[rng.below(kinds.len() as u64) as usize]);
        let (a, b) = (hard::<T>(kind, len, &mut rng), hard::<T>(other, len, &mut rng));
        sums.push(exact_product_sum(&a, &b));
        x.extend(a);
        y.extend(b);
        offsets.push(x.len() as u32);
    }
    ([x, y], offsets, sums)
}

fn product_sum<T: Float>(x: &[T], y: &[T]) -> ExactSum<T> {
    let mut sum = ExactSum::new();
    x.iter().zip(y).for_each(|(&x, &y)| sum.add_product(x, y));
    sum
}

#[test]
fn dot_products_of_segments_and_keys_are_correctly_rounded() {
    fn all<T: Float>(device: &Device, name: &str) {
        let mut rng = Rng::new(9);
        for most in [10, 300] {
            let lens: Vec<usize> =
                (0..200).map(|_| [0, 1, rng.below(5), rng.below(most)][rng.below(4) as usize] as usize).collect();
            let kinds: Vec<usize> = (0..KINDS).map(|kind| kind as usize).collect();
            let ([x, y], offsets, mut want) = factors::<T>(&lens, &kinds, most);
            let what = format!("{name}: segments of up to {most} products of {}", T::TYPE);
            let got = device.reduce(x.times(&y).segments(&offsets), Sum.exact()).unwrap().to_vec().unwrap();
            same(&got, &want, &what);
            let (x, y) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
            let means = device.reduce(y.times(&x).segments(&offsets), Mean).unwrap().to_vec().unwrap();
            let (x, y) = (x.to_vec().unwrap(), y.to_vec().unwrap());
            let mean = |s: usize| {
                let part = offsets[s] as usize..offsets[s + 1] as usize;
                product_sum(&x[part.clone()], &y[part.clone()]).mean(part.len() as u64)
            };
            same(&means, &(0..lens.len()).map(mean).collect::<Vec<_>>(), &format!("{what}, means"));
            let keys: Vec<u16> = (0..).zip(&lens).flat_map(|(key, &len)| std::iter::repeat_n(key, len)).collect();
            let (_, got) = device.reduce(x.times(&y).by_key(&keys), Sum.exact()).unwrap();
            let mut lens = lens.iter();
            want.retain(|_| *lens.next().unwrap() > 0);
            same(&got.to_vec().unwrap(), &want, &format!("{what}, by key"));
            let mut count = device.zeroed::<u64>(1).unwrap();
            let (mut keys_out, mut out) = (vec![0u16; want.len()], vec![T::ZERO; want.len()]);
            let to = (&mut keys_out[..], &mut out[..], &mut count);
            device.reduce_into(x.times(&y).by_key(&keys), Sum.exact(), to).unwrap();
            same(&out, &want, &format!("{what}, by key into slices"));
        }
    }
    for (name, device) in product_devices() {
        all::<f32>(&device, &name);
        if !name.contains(" as a ") {
            all::<f16>(&device, &name);
        }
        if common::has_doubles(&device) {
            all::<f64>(&device, &name);
        }
    }
}

/// Sums of products along axes of two arrays of one shape. Each array has its axes in its own order in memory.
fn dots_along<T: Float, const N: usize>(
    device: &Device,
    name: &str,
    shape: &[usize],
    axes: [usize; N],
    orders: [&[usize]; 2],
) {
    let inverse = |order: &[usize]| {
        let mut back = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &axis)| back[axis] = at);
        back
    };
    let of = |order: &[usize]| order.iter().map(|&axis| shape[axis]).collect::<Vec<_>>();
    let by_lines: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).chain(axes).collect();
    let len: usize = axes.iter().map(|&axis| shape[axis]).product();
    let kinds: Vec<usize> = (0..KINDS).map(|kind| kind as usize).collect();
    let lens = vec![len; shape.iter().product::<usize>() / len];
    let (lines, _, want) = factors::<T>(&lens, &kinds, len as u64);
    let stored = [0, 1].map(|k| {
        let view = Input::from(&lines[k]).nd(&of(&by_lines)).unwrap().permute(&inverse(&by_lines)).unwrap();
        view.permute(orders[k]).unwrap().to_vec().unwrap()
    });
    let [x, y] =
        [0, 1].map(|k| Input::from(&stored[k]).nd(&of(orders[k])).unwrap().permute(&inverse(orders[k])).unwrap());
    let what = format!("{name}: {shape:?} of {} along {axes:?}, in memory {orders:?}", T::TYPE);
    let got = device.reduce(x.times(y).along(axes), Sum.exact()).unwrap().to_vec().unwrap();
    same(&got, &want, &what);
    // Another order of the summands.
    let [x, y] = [x, y].map(|view| view.reverse(axes[0]).unwrap());
    let mut got = vec![T::ONE; want.len()];
    device.reduce_into(x.times(y).along(axes), Sum.exact(), &mut got).unwrap();
    same(&got, &want, &format!("{what}, reversed"));
}

#[test]
fn dot_products_along_axes_are_correctly_rounded() {
    fn all<T: Float>(device: &Device, name: &str) {
        // Rows, columns, and one of each.
        dots_along::<T, 1>(device, name, &[7, 100], [1], [&[0, 1], &[0, 1]]);
        dots_along::<T, 1>(device, name, &[100, 7], [0], [&[0, 1], &[0, 1]]);
        dots_along::<T, 1>(device, name, &[100, 7], [0], [&[1, 0], &[0, 1]]);
        // First, axes that do not fold to one shape in both factors. Then one factor has lines that are copied.
        dots_along::<T, 1>(device, name, &[2, 100, 2, 2], [1], [&[0, 1, 2, 3], &[3, 0, 2, 1]]);
        dots_along::<T, 2>(device, name, &[2, 9, 4, 11], [1, 3], [&[0, 1, 2, 3], &[0, 2, 1, 3]]);
    }
    for (name, device) in product_devices() {
        all::<f32>(&device, &name);
        if common::has_doubles(&device) {
            all::<f64>(&device, &name);
        }
    }
}

/// Lines of products that are divided into parts.
#[test]
fn dot_products_along_long_axes_are_correctly_rounded() {
    for (name, device) in product_devices() {
        dots_along::<f32, 1>(&device, &name, &[2, 70_001], [1], [&[0, 1], &[0, 1]]);
        dots_along::<f32, 1>(&device, &name, &[70_001, 2], [0], [&[0, 1], &[0, 1]]);
        if common::has_doubles(&device) {
            dots_along::<f64, 1>(&device, &name, &[2, 70_001], [1], [&[0, 1], &[1, 0]]);
        }
    }
}

#[test]
fn products_along_axes_have_equal_shapes() {
    let mut rng = Rng::new(3);
    let (x, v) = (hard::<f32>(1, 12 * 50, &mut rng), hard::<f32>(1, 50, &mut rng));
    for (name, device) in product_devices() {
        let (there, v_there) = (device.upload(&x).unwrap(), device.upload(&v).unwrap());
        // Some rows of a matrix, times a vector.
        let rows = there.nd(&[12, 50]).unwrap().slice(0, 2..).unwrap();
        let vector = v_there.nd(&[50]).unwrap().broadcast_to(&[10, 50]).unwrap();
        let dots = x[100..].chunks(50).map(|row| product_sum(row, &v));
        let got = device.reduce(rows.times(vector).along(1), Sum.exact()).unwrap().to_vec().unwrap();
        same(&got, &dots.clone().map(|dot| dot.round()).collect::<Vec<_>>(), &format!("{name}: a vector"));
        let got = device.reduce(vector.times(rows).along(1), Mean).unwrap().to_vec().unwrap();
        same(&got, &dots.map(|dot| dot.mean(50)).collect::<Vec<_>>(), &format!("{name}: means"));
        // Not exact: the rounded products.
        let products: Vec<f32> = x[100..].iter().zip(v.iter().cycle()).map(|(x, y)| x * y).collect();
        let products = Input::from(&products).nd(&[10, 50]).unwrap();
        for axis in [0, 1] {
            let want = device.reduce(products.along(axis), Sum).unwrap().to_vec().unwrap();
            let got = device.reduce(rows.times(vector).along(axis), Sum).unwrap().to_vec().unwrap();
            same(&got, &want, &format!("{name}: rounded products along {axis}"));
            let mut got = vec![0.0; want.len()];
            device.reduce_into(rows.times(vector).along(axis), Sum, &mut got).unwrap();
            same(&got, &want, &format!("{name}: rounded products along {axis}, into a slice"));
        }
        let error = device.reduce(rows.times(rows.permute(&[1, 0]).unwrap()).along(1), Sum.exact()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        assert_eq!(error.to_string(), "times needs views of equal shapes, got [10, 50] and [50, 10]", "{name}");
        for axis in [0, 1] {
            let few = rows.slice(1, ..7).unwrap();
            let error = device.reduce(rows.times(few).along(axis), Max).unwrap_err();
            assert_eq!(error.to_string(), "times needs views of equal shapes, got [10, 50] and [10, 7]", "{name}");
        }
        let error = device.reduce_into(rows.times(rows).along(1), Sum.exact(), &mut [0f32; 9]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        let error = device.reduce(rows.times(rows).along(2), Sum.exact()).unwrap_err();
        assert_eq!(error.to_string(), "axis 2 is out of range for an array of shape [10, 50]", "{name}");
        // Lines without elements, and no lines.
        let none = rows.slice(0, ..0).unwrap();
        let sums = device.reduce(none.times(none).along(0), Sum.exact()).unwrap().to_vec().unwrap();
        assert_eq!(bits(&sums), [0; 50], "{name}");
        assert_eq!(device.reduce(none.times(none).along(1), Sum.exact()).unwrap().len(), 0, "{name}");
        let means = device.reduce(none.times(none).along([0]), Mean).unwrap().to_vec().unwrap();
        assert!(means.len() == 50 && means.iter().all(|mean| mean.is_nan()), "{name}");
        // Along all axes, and along none.
        let all = x[100..].iter().zip(v.iter().cycle()).map(|(x, y)| (*x, *y)).unzip::<_, _, Vec<_>, Vec<_>>();
        let got = device.reduce(rows.times(vector).along([0, 1]), Sum.exact()).unwrap().to_vec().unwrap();
        same(&got, &[product_sum(&all.0, &all.1).round()], &format!("{name}: all"));
        let got = device.reduce(rows.times(vector).along([]), Sum.exact()).unwrap().to_vec().unwrap();
        same(&got, &products.to_vec().unwrap(), &format!("{name}: each product"));
    }
}

/// Segments of products that are divided into parts.
#[test]
fn dot_products_of_long_segments_are_correctly_rounded() {
    fn long<T: Float>(device: &Device, name: &str, kinds: &[usize]) {
        for kind in kinds {
            let ([x, y], offsets, want) = factors::<T>(&[3, 16_385, 0, 70_001, 1], &[*kind], *kind as u64);
            let got = device.reduce(x.times(&y).segments(&offsets), Sum.exact()).unwrap().to_vec().unwrap();
            same(&got, &want, &format!("{name}: long segments of products of {}, kind {kind}", T::TYPE));
        }
    }
    for (name, device) in product_devices() {
        long::<f32>(&device, &name, if common::tiny() { &[1] } else { &[0, 1, 7, 10, 14] });
        if common::has_doubles(&device) {
            long::<f64>(&device, &name, if common::tiny() { &[1] } else { &[0, 1, 14] });
        }
    }
}

/// Products with full significands: if carries are resolved too late, words overflow. The products after the first 256 are
/// 2^`raise` times as large.
#[test]
fn dot_products_of_many_equal_numbers_resolve_their_carries() {
    fn all<T: Float>(device: &Device, name: &str, raise: i32) {
        let full = T::from_bits_lossy(bits(&[T::from_f64(2.0)])[0] - 1);
        for sign in [1.0, -1.0] {
            let mut x = vec![T::from_f64(sign * full.to_f64()); 16_384];
            x[256..].iter_mut().for_each(|x| *x = T::from_f64(x.to_f64() * 2f64.powi(raise)));
            let y = vec![full; x.len()];
            let offsets = [0u32, 16_384];
            let got = device.reduce(x.times(&y).segments(&offsets), Sum.exact()).unwrap().to_vec().unwrap();
            same(&got, &[product_sum(&x, &y).round()], &format!("{name}: {sign} times {}, raised by {raise}", T::TYPE));
        }
    }
    for (name, device) in product_devices() {
        for raise in [0, 14, 15, 16, 31, 47, 63, 90, 96] {
            all::<f32>(&device, &name, raise);
            if common::has_doubles(&device) {
                all::<f64>(&device, &name, raise);
            }
        }
    }
}

#[test]
fn factors_may_be_expressions() {
    let x: Vec<f32> = (0..1000).map(|i| (i as f32).sin()).collect();
    let offsets = [0u32, 400, 1000];
    for (name, device) in product_devices() {
        let want = |y: &dyn Fn(usize) -> f32| {
            [0..400, 400..1000].map(|part| {
                let y: Vec<f32> = part.clone().map(y).collect();
                product_sum(&x[part], &y).round()
            })
        };
        let mut got = [0f32; 2];
        // An endless factor, one of another type, and one in reverse.
        device.reduce_into(x.times(constant(0.1f32)).segments(&offsets), Sum.exact(), &mut got).unwrap();
        same(&got, &want(&|_| 0.1), &format!("{name}: a constant"));
        device.reduce_into(counting(0u16).cast::<f32>().times(&x).segments(&offsets), Sum.exact(), &mut got).unwrap();
        same(&got, &want(&|i| i as f32), &format!("{name}: indices"));
        // One factor is longer than the 1,000 products that `take` keeps.
        let more = vec![0.1f32; 1001];
        let products = counting(0u16).cast::<f32>().times(&more).take(1000);
        device.reduce_into(products.segments(&offsets), Sum.exact(), &mut got).unwrap();
        let product = |part: std::ops::Range<usize>| {
            product_sum(&part.clone().map(|i| i as f32).collect::<Vec<_>>(), &more[part]).round()
        };
        same(&got, &[product(0..400), product(400..1000)], &format!("{name}: the first products"));
        device.reduce_into(x.times(x.reversed()).segments(&offsets), Sum.exact(), &mut got).unwrap();
        same(&got, &want(&|i| x[999 - i]), &format!("{name}: reversed"));
        let error = device.reduce_into(x.times(&x[1..]).segments(&offsets), Sum.exact(), &mut got).unwrap_err();
        assert_eq!(error.to_string(), "times needs sources of equal length, got 1000 and 999 elements", "{name}");
        let endless = constant(1f32).times(constant(2f32));
        let error = device.reduce_into(endless.segments(&offsets), Sum.exact(), &mut got).unwrap_err();
        assert_eq!(error.to_string(), "an endless source needs a length: write `take(n)`", "{name}");
    }
}

/// A chunk has one number whose lowest bit is set, and large numbers whose exponent is `spread` higher. A second chunk cancels
/// the large ones. With one binade more than the bound, the sum of the first chunk is no `f64`.
#[test]
fn chunks_at_the_bound_of_one_register_are_exact() {
    fn around<T: Float>(device: &Device, name: &str, bound: i32) {
        let precision = format_of::<T>().0;
        let scaled = |size: i64, exponent: i32| T::from_f64(size as f64 * 2f64.powi(exponent - precision + 1));
        for spread in bound - 1..=bound + 1 {
            let large = scaled((1 << precision) - 1, 3);
            let small = scaled((1 << (precision - 1)) + 1, 3 - spread);
            // A team of 4, 8 and 32 work-items has one chunk of 16 elements for each of them, twice.
            for team in [4, 8, 32] {
                let mut x = vec![large; 16 * team];
                x[0] = small;
                x.extend(x.clone().iter().skip(1).map(|x| T::from_f64(-x.to_f64())));
                x.push(T::ADD_IDENTITY);
                let offsets = [0u32, x.len() as u32];
                let got = device.reduce(x.segments(&offsets), Sum.exact()).unwrap().to_vec().unwrap();
                same(&got, &[small], &format!("{name}: {} with a spread of {spread}, team of {team}", T::TYPE));
            }
        }
    }
    for (name, device) in devices() {
        around::<f32>(&device, &name, 53 - 24 - 4);
        around::<bf16>(&device, &name, 53 - 8 - 4);
    }
}

/// Numbers with full significands. Each work-item and each accumulator adds so many that digits and words overflow if their
/// carries wait for too long.
#[test]
fn rows_of_many_equal_numbers_resolve_their_carries() {
    fn all<T: Float>(device: &Device, name: &str, n: usize, first: u64, others: u64) {
        let mut x = vec![T::from_bits_lossy(others); n];
        // `x[0]` is the largest number of its chunk, so the window opens there. Then the others are shifted by 31 bits in a
        // digit.
        x[0] = T::from_bits_lossy(first);
        let view = NdView::new(&x, Layout::contiguous(&[1, n]).unwrap()).unwrap();
        let got = device.reduce(view.along(1), Sum.exact()).unwrap().to_vec().unwrap();
        same(&got, &[ExactSum::from_iter(&x).round()], &format!("{name}: {n} times {:?}", x[1]));
    }
    for (name, device) in devices() {
        let Some(caps) = device.capabilities().unwrap().filter(|caps| !caps.checker) else {
            common::skip(&name, "the CPU backend has tests of its own, and a checker takes too long");
            continue;
        };
        let units = caps.compute_units as usize;
        // Without fp64 all digits are integers.
        for registers in 0..if caps.fp64 { 2 } else { 1 } {
            // Few work-items, so that each has many elements.
            let set = |tuning: Tuning, name, value| tuning.set(Primitive::Reduce, name, value);
            let few = set(common::gpu(), "max_groups", units);
            let few = if caps.fp64 { set(few, "exact_f64", registers) } else { few };
            let few = if caps.max_work_group > 64 { set(few, "work_group", 64) } else { few };
            let device = device.with_tuning(few).unwrap();
            let field = |field: u64| field << 23 | 0x7f_ffff;
            all::<f32>(&device, &name, 400 * 64 * units, field(117), field(100));
            // Each subnormal number is deposited in the accumulator.
            all::<f32>(&device, &name, 40_000 * units, 0x7f_ffff, 0x7f_ffff);
            if !caps.fp64 {
                continue;
            }
            let (ones, field) = ((1 << 52) - 1, |field: u64| field << 52);
            all::<f64>(&device, &name, 2500 * 64 * units, field(927) | ones, field(910) | ones);
            all::<f64>(&device, &name, 40_000 * units, ones, ones);
        }
    }
}

/// The small numbers come first and open the window. Each large number adds to its highest digit, and carries exceed 32 bits.
#[test]
fn sums_of_many_numbers_far_above_the_first_are_correctly_rounded() {
    fn one<T: Float>(device: &Device, name: &str, large: f64) {
        for sign in [1.0, -1.0] {
            let mut x = vec![T::from_f64(sign); 2048];
            x.resize(16_384, T::from_f64(sign * large));
            let (want, offsets) = (ExactSum::from_iter(&x), [0u32, 16_384]);
            let what = format!("{name}: {:?}", x[16_383]);
            let sums = device.reduce(x.segments(&offsets), Sum.exact()).unwrap().to_vec().unwrap();
            same(&sums, &[want.round()], &what);
            let means = device.reduce(x.segments(&offsets), Mean).unwrap().to_vec().unwrap();
            same(&means, &[want.mean(16_384)], &format!("{what}: mean"));
        }
    }
    for (name, device) in devices() {
        one::<f32>(&device, &name, 65_504.0);
        for exponent in [40, 62, 63, 64] {
            one::<f32>(&device, &name, f64::exp2(f64::from(exponent)));
        }
        if common::has_doubles(&device) {
            for exponent in [60, 93, 94, 95, 96] {
                one::<f64>(&device, &name, f64::exp2(f64::from(exponent)));
            }
        }
    }
}

/// With unsorted offsets, results are unspecified, but accesses stay in bounds and the device stays usable.
#[test]
fn invalid_offsets_of_exact_sums_stay_in_bounds() {
    let (mut rng, n) = (Rng::new(3), 60_000);
    let x = vec![1f32; n];
    for (name, device) in devices() {
        // All segments are long, so the list is too short.
        let long: Vec<u32> = (0..400).map(|i| if i % 2 == 0 { 0 } else { n as u32 }).collect();
        let wild: Vec<u32> = (0..400).map(|_| (rng.next() >> (32 + rng.below(31))) as u32).collect();
        for offsets in [long, wild] {
            let mut out = device.zeroed::<f32>(401).unwrap();
            out.fill(-7.0).unwrap();
            let to = out.view_mut(1..400).unwrap();
            device.reduce_into(x.segments(&offsets), Sum.exact(), to).unwrap();
            let out = out.to_vec().unwrap();
            assert_eq!((out[0], out[400]), (-7.0, -7.0), "{name}");
        }
        let sums = device.reduce(x.segments(&[0u32, 30_000, 60_000]), Sum.exact()).unwrap();
        assert_eq!(sums.to_vec().unwrap(), [30_000.0; 2], "{name}");
    }
}

#[test]
fn exact_groups_are_for_float_sums() {
    let x = [1e30f32, 1.0, -1e30];
    for (name, device) in common::devices() {
        let error = device.reduce(x.segments(&[0u32, 3]), Product.exact()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}");
        assert_eq!(error.to_string(), "there is no exact product of floats", "{name}");
        let view = NdView::new(&x, Layout::contiguous(&[3]).unwrap()).unwrap();
        assert!(device.reduce(view.along(0), Product.exact()).is_err(), "{name}");
        assert!(device.reduce(x.by_key(&[1u8; 3]), Product.exact()).is_err(), "{name}");
        let most = device.reduce(x.segments(&[0u32, 3]), Max.exact()).unwrap();
        assert_eq!(most.to_vec().unwrap(), [1e30], "{name}");
        let sums = device.reduce([i32::MAX, 1].segments(&[0u32, 2]), Sum.exact()).unwrap();
        assert_eq!(sums.to_vec().unwrap(), [i32::MIN], "{name}");
        let fixed = device.reduce(x.segments(&[0u32, 3]), Sum.with(oclprim::Determinism::Fixed)).unwrap();
        assert_eq!(fixed.to_vec().unwrap(), device.reduce(x.segments(&[0u32, 3]), Sum).unwrap().to_vec().unwrap());
    }
}

/// Numbers whose mean is a tie or close to one; some means are subnormal. In the first 32 sets, large numbers of each sign
/// and parity have a tie as their mean. A number far below them is positive, negative or 0.
fn near_ties<T: Float>(i: usize, rng: &mut Rng) -> Vec<T> {
    let (_, infinity) = format_of::<T>();
    let (float, sign) = (T::from_bits_lossy, 1u64 << (8 * size_of::<T>() - 1));
    let bit = |k: usize| (i >> k & 1) as u64;
    // The sum is `count` times a number, plus `steps` units in its last place.
    let (large, small) = (infinity / 8 * 7, (infinity >> 3) & !(infinity >> 8));
    let mut count = [3, 4, 6, 7, 8, 16, 100, 256, 258, 1000][rng.below(10) as usize];
    let mut base = [rng.next() % infinity, rng.below(40), infinity - 1 - rng.below(40)][rng.below(3) as usize];
    let mut steps = [count / 2, count, count / 2 + 1, 1][rng.below(4) as usize];
    let mut least = ([1 + rng.below(3), small, 0][rng.below(3) as usize]) | (rng.next() & sign);
    let mut negative = sign * rng.below(2);
    if i < 32 {
        (count, base, steps) = (4, large + bit(0), 2);
        (negative, least) = (bit(1) * sign, (bit(2) * sign) | if bit(3) == 1 { small } else { bit(4) });
    }
    let mut x = vec![float(base | negative); count as usize];
    x[0] = float(Ord::min(base + steps, infinity - 1) | negative);
    if float(base).to_f64() < float(infinity - 1).to_f64() / 2.0 {
        x[1] = T::from_f64(2.0 * x[1].to_f64());
        x[2] = float(least);
    }
    for i in (1..x.len()).rev() {
        x.swap(i, rng.below(i as u64 + 1) as usize);
    }
    x
}

/// Groups of hard numbers and of numbers near ties, with their means.
fn groups_and_means<T: Float, U: Float>(count: usize, seed: u64) -> (Vec<T>, Vec<u32>, Vec<U>) {
    let mut rng = Rng::new(seed);
    let (mut x, mut offsets, mut means) = (Vec::new(), vec![0], Vec::new());
    for i in 0..count {
        let group = match i % 2 {
            0 => near_ties::<T>(i / 2, &mut rng),
            _ => {
                let len = [0, rng.below(5), rng.below(40), rng.below(300)][rng.below(4) as usize];
                hard::<T>(rng.below(KINDS) as usize, len as usize, &mut rng)
            }
        };
        means.push(exact_mean::<T, U>(&group));
        x.extend(group);
        offsets.push(x.len() as u32);
    }
    (x, offsets, means)
}

#[test]
fn means_of_segments_and_runs_are_correctly_rounded() {
    fn all<T: Float>(device: &Device, name: &str, count: usize) {
        let (x, offsets, want) = groups_and_means::<T, T>(count, count as u64);
        let got = device.reduce(x.segments(&offsets), Mean).unwrap().to_vec().unwrap();
        same(&got, &want, &format!("{name}: means of segments of {}", T::TYPE));
        let (mut keys, mut means) = (Vec::new(), Vec::new());
        for (s, pair) in offsets.windows(2).enumerate().filter(|(_, pair)| pair[0] < pair[1]) {
            keys.extend((pair[0]..pair[1]).map(|_| s as u16));
            means.push(want[s]);
        }
        let (_, got) = device.reduce(x.by_key(&keys), Mean).unwrap();
        same(&got.to_vec().unwrap(), &means, &format!("{name}: means by key of {}", T::TYPE));
    }
    for (name, device) in devices() {
        let count = if common::tiny() { 100 } else { 600 };
        all::<f32>(&device, &name, count);
        all::<f16>(&device, &name, count / 3);
        all::<bf16>(&device, &name, count / 3);
        let empty = device.reduce([0f32; 0].segments(&[0u32, 0]), Mean).unwrap().to_vec().unwrap();
        same(&empty, &[f32::NAN], &format!("{name}: mean of no element"));
        if common::has_doubles(&device) {
            all::<f64>(&device, &name, count);
            // Means of another type: f32 as f64.
            let (x, offsets, want) = groups_and_means::<f32, f64>(count / 3, 7);
            let mut got = vec![0f64; want.len()];
            device.reduce_into(x.cast::<f64>().segments(&offsets), Mean, &mut got).unwrap();
            same(&got, &want, &format!("{name}: means of f32 as f64"));
        }
    }
}

/// Groups of many parts, along both axes and in segments.
#[test]
fn means_of_long_groups_are_correctly_rounded() {
    fn all<T: Float>(device: &Device, name: &str, kinds: &[usize]) {
        for &kind in kinds {
            let mut rng = Rng::new(kind as u64);
            let (lines, len) = (3, 50_001);
            let x: Vec<T> = (0..lines).flat_map(|_| hard::<T>(kind, len, &mut rng)).collect();
            let want: Vec<T> = x.chunks(len).map(|x| ExactSum::from_iter(x).mean(len as u64)).collect();
            let what = |of: &str| format!("{name}: {of} of {}, kind {kind}", T::TYPE);
            let offsets = [0, len as u32, 2 * len as u32, 3 * len as u32];
            let got = device.reduce(x.segments(&offsets), Mean).unwrap().to_vec().unwrap();
            same(&got, &want, &what("long segments"));
            let view = NdView::new(&x, Layout::contiguous(&[lines, len]).unwrap()).unwrap();
            let got = device.reduce(view.along(1), Mean).unwrap().to_vec().unwrap();
            same(&got, &want, &what("rows"));
            let columns: Vec<T> = (0..len * lines).map(|i| x[i % lines * len + i / lines]).collect();
            let view = NdView::new(&columns, Layout::contiguous(&[len, lines]).unwrap()).unwrap();
            let got = device.reduce(view.along(0), Mean).unwrap().to_vec().unwrap();
            same(&got, &want, &what("columns"));
        }
    }
    for (name, device) in devices() {
        all::<f32>(&device, &name, if common::tiny() { &[1] } else { &[0, 1, 4, 8, 10] });
        if common::has_doubles(&device) {
            all::<f64>(&device, &name, if common::tiny() { &[1] } else { &[0, 1, 3] });
        }
        let nothing = device.zeroed::<f32>(0).unwrap();
        let means = device.reduce(nothing.nd(&[0, 4]).unwrap().along(0), Mean).unwrap().to_vec().unwrap();
        same(&means, &[f32::NAN; 4], &format!("{name}: means of no rows"));
    }
}
