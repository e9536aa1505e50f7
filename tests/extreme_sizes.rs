//! Extreme sizes, lengths, offsets, counts and ranges: each public function that takes one gives a result or an error.

use std::{
    fmt::Debug,
    ops::{Bound, Range},
    panic::{AssertUnwindSafe, catch_unwind},
};

use oclprim::{
    Bins, Device, Interpolation, Layout, Matrices, NdView, NdViewMut, Order, Philox, Result, Source, Top, Tuning,
    op::Sum,
};

/// Numbers at which arithmetic on sizes overflows or rounds.
const SIZES: [usize; 34] = [
    0,
    1,
    2,
    3,
    255,
    256,
    257,
    65_535,
    65_536,
    (1 << 24) + 1,
    (1 << 30) - 1,
    1 << 30,
    (1 << 31) - 1,
    1 << 31,
    (1 << 31) + 1,
    (1 << 32) - 1,
    1 << 32,
    (1 << 32) + 1,
    1 << 33,
    1 << 40,
    (1 << 48) + 1,
    (1 << 56) - 1,
    isize::MAX as usize / 8,
    usize::MAX / 16,
    usize::MAX / 16 + 1,
    usize::MAX / 8,
    usize::MAX / 8 + 1,
    usize::MAX / 4,
    usize::MAX / 4 + 1,
    isize::MAX as usize,
    isize::MAX as usize + 1,
    usize::MAX / 3 * 2,
    usize::MAX - 1,
    usize::MAX,
];

/// Small sizes, and sizes beyond any memory; those between would be allocated and filled.
fn small_or_absurd() -> impl Iterator<Item = usize> {
    SIZES.into_iter().filter(|n| !(1 << 17..1 << 47).contains(n))
}

/// Failures of all calls, so that one run reports all of them.
#[derive(Default)]
struct Account {
    tried: usize,
    wrong: Vec<String>,
}

impl Account {
    /// The result of a call, if it succeeds. A panic or an error of more than one line is a failure.
    fn of<R>(&mut self, what: impl Debug, call: impl FnOnce() -> Result<R>) -> Option<R> {
        self.tried += 1;
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(Ok(result)) => return Some(result),
            Ok(Err(error)) => {
                let line = error.to_string();
                if line.lines().count() != 1 {
                    self.wrong.push(format!("{what:?}: an error of more than a line: {line}"));
                }
            }
            Err(_) => self.wrong.push(format!("{what:?} panicked")),
        }
        None
    }

    fn close(self) {
        assert!(self.wrong.is_empty(), "{} of {} calls: {:#?}", self.wrong.len(), self.tried, self.wrong);
        assert!(self.tried > 0);
    }
}

/// Every device. OpenCL devices are listed in the geometry of a GPU, too, with and without 64-bit offsets.
fn devices() -> Vec<Device> {
    let mut all = Vec::new();
    for index in 0..Device::list().len() {
        let device = Device::at(index).expect("a device that is listed opens");
        if !device.is_cpu() {
            let gpu = Tuning::default().class(oclprim::DeviceClass::Gpu);
            all.push(device.with_tuning(gpu.clone()).expect("any device takes a class"));
            all.push(device.with_tuning(gpu.wide_offsets()).expect("any device takes wide offsets"));
        }
        all.push(device);
    }
    all
}

#[test]
fn a_reserve_of_any_size_is_made_or_refused() {
    let mut account = Account::default();
    for device in devices() {
        for bytes in small_or_absurd() {
            account.of((device.info().name, "reserve", bytes), || device.reserve(&[bytes]));
        }
        let absurd = device.reserve(&[usize::MAX]);
        assert_eq!(absurd.is_ok(), device.is_cpu(), "the CPU backend takes no scratch");
    }
    account.close();
}

#[test]
fn buffers_of_any_length_are_allocated_or_refused() {
    fn of<T: bytemuck::Pod>(device: &Device, value: T, account: &mut Account) {
        let what = |call| (device.info().name, std::any::type_name::<T>(), call);
        for n in small_or_absurd() {
            // Zero-sized elements take no memory.
            let made = account.of((what("zeroed"), n), || device.zeroed::<T>(n)).is_some();
            if made && size_of::<T>() > 0 && n > 1 << 47 {
                account.wrong.push(format!("{:?}: an allocation of {n} elements succeeded", what("zeroed")));
            }
            account.of((what("filled"), n), || device.filled(n, value));
        }
    }
    let mut account = Account::default();
    for device in devices() {
        of(&device, 1u8, &mut account);
        of(&device, 1u32, &mut account);
        of(&device, 1u64, &mut account);
        of(&device, [1u8; 3], &mut account);
        of(&device, [1u64; 8], &mut account);
    }
    account.close();
}

#[test]
fn results_of_any_length_are_made_or_refused() {
    let mut account = Account::default();
    let x = [5u32, 1, 4, 2];
    for device in devices() {
        let name = device.info().name;
        for n in small_or_absurd() {
            account.of((&name, "iota", n), || device.iota(n, 7u64, 1));
            account.of((&name, "iota of floats", n), || device.iota(n, 0.5f32, 2.0));
            account.of((&name, "scatter", n), || device.scatter(&x, &[0u64, 1, 2, 3], n));
            account.of((&name, "random", n), || device.random::<u32>(n, Philox::new(1)));
            for at in [0, 1, u64::MAX / 2, u64::MAX - 3, u64::MAX] {
                let numbers = Philox::new(u64::MAX).stream(u64::MAX).skip(at);
                account.of((&name, "random", n, at), || device.random::<u8>(n, numbers));
                account.of((&name, "random", n, at), || device.random(n, numbers.within(i64::MIN..=i64::MAX)));
                account.of((&name, "random", n, at), || device.random(n, numbers.within(0.0f32..1.0)));
            }
        }
    }
    account.close();
}

/// Ranges between two numbers, with bounds of every kind.
fn ranges() -> impl Iterator<Item = (Bound<usize>, Bound<usize>)> {
    let bounds = || {
        let of = |n| [Bound::Included(n), Bound::Excluded(n)];
        SIZES.into_iter().flat_map(of).chain([Bound::Unbounded])
    };
    bounds().flat_map(move |start| bounds().map(move |end| (start, end)))
}

#[test]
fn ranges_of_any_numbers_are_views_or_refused() {
    let mut account = Account::default();
    for device in devices() {
        let mut x = device.upload(&[1u32, 2, 3, 4]).expect("four elements");
        for range in ranges() {
            let found = account.of(("view", range), || x.view(range)?.to_vec());
            let want = [1u32, 2, 3, 4].get(range).map(<[u32]>::to_vec);
            if found != want {
                account.wrong.push(format!("view of {range:?} is {found:?}, not {want:?}"));
            }
            account.of(("view_mut", range), || x.view_mut(range)?.fill(1));
            x.write(&[1, 2, 3, 4]).expect("as many");
        }
        for dest in SIZES {
            for range in [0..0, 0..2, 4..4, 0..usize::MAX, usize::MAX..usize::MAX] {
                account.of(("copy_within", range.clone(), dest), || x.copy_within(range, dest));
            }
        }
        x.truncate(usize::MAX);
        assert_eq!(x.len(), 4);
    }
    account.close();
}

#[test]
fn copies_between_any_ranges_are_made_or_refused() {
    let mut account = Account::default();
    for device in devices() {
        let (x, mut y) = ([1u64, 2, 3, 4], [0u64; 4]);
        for (start, end) in SIZES.into_iter().flat_map(|start| SIZES.map(|end| (start, end))) {
            for to in [0, 1, 4, usize::MAX / 8, usize::MAX] {
                let ranges: [(Range<usize>, usize); 2] = [(start..end, to), (0..1, end)];
                account.of(("copy_ranges", &ranges), || device.copy(x.ranges(&ranges), &mut y));
            }
        }
    }
    account.close();
}

#[test]
fn layouts_of_any_numbers_are_sound_or_refused() {
    fn walk(account: &mut Account, what: impl Debug, layout: Layout) {
        account.of((&what, "walked"), || {
            let _ = (layout.len(), layout.span(), layout.is_dense(), layout.is_contiguous(), layout.is_injective());
            let _ = (layout.check(usize::MAX), layout.check(0), layout.check_writable(), layout.fold());
            let mut rows = layout.rows();
            let _ = (rows.len(), rows.next(), rows.nth(usize::MAX), rows.next());
            let _ = (layout.fold_with(&layout)?, layout.offset_of(&[0, 0]), layout.offset_of(&[usize::MAX; 2]));
            Ok(())
        });
        for axis in [0, 1, 2, usize::MAX] {
            for n in SIZES {
                account.of((&what, axis, n), || layout.step(axis, n)?.check(1));
                account.of((&what, axis, n), || layout.broadcast(axis, n)?.check(1));
                account.of((&what, axis, n), || layout.slice(axis, n..)?.check(1));
                account.of((&what, axis, n), || layout.slice(axis, ..=n)?.reverse(axis)?.check(1));
                account.of((&what, axis, n), || layout.index(axis, n)?.check(1));
                account.of((&what, axis, n), || layout.broadcast_to(&[n, 1, 1])?.check(1));
            }
            account.of((&what, axis), || layout.reverse(axis)?.check(1));
            account.of((&what, axis), || layout.insert_axis(axis)?.check(1));
            account.of((&what, axis), || layout.remove_axis(axis)?.check(1));
            account.of((&what, axis), || layout.permute(&[axis, 0])?.check(1));
        }
    }
    let mut account = Account::default();
    for (a, b) in SIZES.into_iter().flat_map(|a| SIZES.map(|b| (a, b))) {
        if let Some(layout) = account.of(("contiguous", a, b), || Layout::contiguous(&[a, b])) {
            walk(&mut account, ("contiguous", a, b), layout);
        }
        for offset in [0, 1, isize::MAX as usize, usize::MAX] {
            for strides in [[1, 1], [isize::MIN, 1], [isize::MAX, isize::MAX], [-1, 0], [a as isize, b as isize]] {
                let what = ("strided", a, b, strides, offset);
                if let Some(layout) = account.of(what, || Layout::strided(&[a, b], &strides, offset)) {
                    walk(&mut account, what, layout);
                }
            }
        }
    }
    account.close();
}

#[test]
fn views_of_any_shape_are_sound_or_refused() {
    let mut account = Account::default();
    let x = [1u32, 2, 3, 4, 5, 6];
    for device in devices() {
        for (a, b) in SIZES.into_iter().flat_map(|a| SIZES.map(|b| (a, b))) {
            let what = (device.info().name, a, b);
            let mut out = [0u32; 6];
            account.of((&what, "view"), || NdView::new(&x, Layout::contiguous(&[a, b])?)?.to_vec());
            account.of((&what, "view_mut"), || NdViewMut::new(&mut out, Layout::contiguous(&[a, b])?).map(drop));
            account.of((&what, "transpose"), || device.transpose(&x, (a, b)));
            account.of((&what, "transpose_into"), || device.transpose_into(&x, (a, b), &mut out));
            account.of((&what, "transpose of a cast"), || device.transpose(x.cast::<f32>(), (a, b)));
            account.of((&what, "in place"), || device.transpose_in_place(&mut out, a, b));
            for c in [0, 1, 2, usize::MAX / 2 + 1, usize::MAX] {
                let batches = [
                    Matrices::new(a, b).count(c),
                    Matrices::new(2, 3).leading(a, b).count(c),
                    Matrices::new(2, 3).strides(a, b).count(c),
                    Matrices::new(c, 1).leading(a, b),
                ];
                for batch in batches {
                    account.of((&what, &batch), || device.transpose_into(&x, &batch, &mut out));
                }
            }
            let top = Top::largest(a).in_rows(b);
            account.of((&what, "top_k"), || device.top_k(&x, top)?.to_vec());
            account.of((&what, "top_k sorted"), || device.top_k(x.indexed::<u64>(), top.sorted()).map(drop));
        }
        for n in SIZES {
            let what = (device.info().name, n);
            account.of((&what, "nth_element"), || device.nth_element(&x, n));
            account.of((&what, "nth_elements"), || device.nth_element_into(&x, &[0, n], &mut [0, 0]));
            account.of((&what, "reduce_axis"), || {
                device.reduce(NdView::new(&x, Layout::contiguous(&[2, 3])?)?.along(n), Sum)
            });
            account.of((&what, "permute"), || {
                device.transform((NdView::new(&x, Layout::contiguous(&[2, 3])?)?).permute(&[1, n])?)
            });
            account.of((&what, "segments"), || device.reduce(x.segments(&[0, n as u64]), Sum));
            account.of((&what, "segments"), || device.reduce(x.segments(&[n as u64, 6]), Sum));
            account.of((&what, "check_segments"), || device.check_segments(&[0, n as u64], n));
            account.of((&what, "sort_segments"), || device.sort(x.segments(&[0, n as u64]), Order::ascending()));
            account.of((&what, "sort_segments"), || device.sort(x.segments(&[n as u64, 6]), Order::ascending()));
            account.of((&what, "scan_segments"), || device.scan(x.segments(&[n as u64, 6]), Sum));
            account.of((&what, "gather"), || device.gather(&x, &[0, n as u64]));
            account.of((&what, "scatter"), || device.scatter(&x[..2], &[0, n as u64], 6));
            account.of((&what, "selected"), || device.selected(&[n as u64], n));
            account.of((&what, "selected"), || device.selected(&[u64::MAX], n));
            account.of((&what, "quantile"), || device.quantile(&x, n as f64, Interpolation::Linear));
        }
    }
    account.close();
}

#[test]
fn bins_of_any_number_and_range_are_made_or_refused() {
    let mut account = Account::default();
    let counts = || SIZES.into_iter().chain([(1 << 24) - 1, 1 << 24, 1 << 23]);
    for n in counts() {
        account.of(("ids", n), || Bins::<u32>::ids(n));
        account.of(("ids", n), || Bins::<u8>::ids(n));
        account.of(("ids", n), || Bins::<i64>::ids(n));
        for (lower, upper) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (0, 0), (-1, 1), (i64::MIN, i64::MIN)] {
            if let Some(bins) = account.of(("even", n, lower, upper), || Bins::even(lower, upper, n)) {
                let x = [i64::MIN, -1, 0, 1, i64::MAX];
                account.of(("even", n, lower, upper), || Device::cpu().histogram(&x, &bins));
                account.of(("closed", n, lower, upper), || Device::cpu().histogram(&x, &bins.closed()));
            }
        }
        for (lower, upper) in [(f64::MIN, f64::MAX), (0.0, 5e-324), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            if let Some(bins) = account.of(("even", n, lower, upper), || Bins::even(lower, upper, n)) {
                account.of(("even", n, lower, upper), || Device::cpu().histogram(&[0.0, f64::MAX, f64::NAN], &bins));
            }
        }
    }
    account.close();
}

#[test]
fn bit_ranges_of_any_numbers_sort_or_are_refused() {
    let mut account = Account::default();
    let bits = [0, 1, 7, 8, 31, 32, 33, 63, 64, 127, 128, 129, u32::MAX - 1, u32::MAX];
    for device in devices() {
        for (first, last) in bits.into_iter().flat_map(|first| bits.map(|last| (first, last))) {
            let order = Order::ascending().bits(first..last);
            let what = (device.info().name, first, last);
            account.of(&what, || device.sort(&[3u8, 1, 2], order.clone()));
            account.of(&what, || device.sort(&[3u64, 1, 2], order.clone()));
            account.of(&what, || device.sort(&[3.0f32, 1.0, 2.0], order.clone()));
            account.of(&what, || device.argsort::<_, u32, _>(&[3i32, 1, 2], order.clone()));
            account.of(&what, || device.sort_in_place(&mut [3u16, 1, 2], order.clone()));
        }
    }
    account.close();
}
