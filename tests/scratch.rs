//! The functions that return scratch sizes are right: no operation needs more.

mod common;

use oclprim::{
    Accumulate, Bins, Buffer, Determinism, Device, MomentsRecord, Order, Result, Scan, Scratch, SetOp, Source,
    StatisticsRecord, Top,
    op::{Map, Max, Operator, Sum},
};

const N: usize = 20_001;

/// One device's inputs and outputs, and the operations that needed too much scratch.
struct Forms {
    name: String,
    device: Device,
    x: Buffer<u32>,
    y: Buffer<u64>,
    offsets: Buffer<u64>,
    short: Vec<String>,
    tried: usize,
}

impl Forms {
    fn new(name: String, device: Device) -> Result<Self> {
        let x: Vec<u32> = common::random(N, 1);
        let offsets: Vec<u64> = (0..=100).map(|i| i * N as u64 / 100).collect();
        let (x, y) = (device.upload(&x)?, device.filled(N, 5)?);
        let offsets = device.upload(&offsets)?;
        Ok(Self { name, device, x, y, offsets, short: Vec::new(), tried: 0 })
    }

    /// Runs an operation, and compares the scratch that it takes with the stated size.
    fn form(&mut self, form: &str, bytes: Result<usize>, run: impl FnOnce(&Self, &mut Scratch) -> Result<()>) {
        let what = format!("{}: {form}", self.name);
        let bytes = bytes.unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut scratch = Scratch::new();
        let ran = run(self, &mut scratch).and_then(|()| self.device.finish());
        ran.unwrap_or_else(|error| panic!("{what}: {error}"));
        if scratch.bytes() > bytes {
            self.short.push(format!("{what}: {bytes} bytes were stated, {} were used", scratch.bytes()));
        }
        self.tried += 1;
    }

    fn out<T: bytemuck::Pod>(&self, n: usize) -> Result<Buffer<T>> {
        self.device.zeroed(n)
    }
}

fn reductions(forms: &mut Forms) {
    let device = forms.device.clone();
    let fixed = Determinism::Fixed;
    forms.form("reduce", Ok(device.reduce_scratch::<u32>(N)), |it, s| {
        it.device.reduce_into(&it.x, Max, fixed, &mut it.out(1)?, s)
    });
    forms.form("reduce of a cast", Ok(device.reduce_scratch::<u64>(N)), |it, s| {
        it.device.reduce_into(it.x.cast::<u64>(), Sum, fixed, &mut it.out(1)?, s)
    });
    forms.form("reduce of products", Ok(device.reduce_scratch::<u64>(N)), |it, s| {
        it.device.reduce_into(it.x.cast::<u64>().times(it.x.cast()), Sum, fixed, &mut it.out(1)?, s)
    });
    forms.form("count", device.count_scratch(), |it, s| it.device.count_into(&it.x, &mut it.out(1)?, s));
    forms.form("statistics", device.statistics_scratch::<u32>(N), |it, s| {
        it.device.statistics_into(&it.x, &mut it.out::<StatisticsRecord<u32>>(1)?, s)
    });
    forms.form("min_max", device.statistics_scratch::<u32>(N), |it, s| {
        it.device.min_max_into(&it.x, &mut it.out(2)?, &mut it.out(2)?, s)
    });
    let largest = Operator::new("largest", 0u32, u32::max, "max(a, b)");
    forms.form("reduce_by", Ok(device.reduce_by_scratch::<u32>(N)), |it, s| {
        it.device.reduce_by_into(&it.x, &largest, &mut it.out(1)?, s)
    });
    forms.form("reduce_segments", device.reduce_segments_scratch::<u32>(N), |it, s| {
        it.device.reduce_segments_into(&it.x, &it.offsets, Sum, &mut it.out(100)?, s)
    });
    for shape in [[3, 6667], [6667, 3]] {
        for axis in 0..2 {
            let lines = N / shape[axis];
            let view = || forms.x.nd(&shape).unwrap();
            let bytes = [
                device.reduce_axis_scratch(view(), axis),
                device.reduce_axis_as_scratch::<u32, u64>(view(), axis),
                device.min_max_axis_scratch(view(), axis),
                device.moments_axis_scratch(view(), axis),
                device.scan_axis_scratch::<u32, u32>(view(), axis),
            ];
            let [plain, wider, ends, moments, scans] = bytes;
            let name = |form: &str| format!("{form} of {shape:?} along {axis}");
            forms.form(&name("reduce_axis"), plain, |it, s| {
                it.device.reduce_axis_into(it.x.nd(&shape)?, axis, Sum, &mut it.out(lines)?, s)
            });
            forms.form(&name("reduce_axis_as"), wider, |it, s| {
                it.device.reduce_axis_as_into(it.x.nd(&shape)?, axis, Sum, &mut it.out::<u64>(lines)?, s)
            });
            forms.form(&name("min_max_axis"), ends, |it, s| {
                let (mut values, mut indices) = (it.out(2 * lines)?, it.out(2 * lines)?);
                it.device.min_max_axis_into(it.x.nd(&shape)?, axis, &mut values, &mut indices, s)
            });
            forms.form(&name("moments_axis"), moments, |it, s| {
                let mut out = it.out::<MomentsRecord<u32>>(lines)?;
                it.device.moments_axis_into(it.x.nd(&shape)?, axis, &mut out, s)
            });
            forms.form(&name("scan_axis"), scans, |it, s| {
                it.device.scan_axis_into(it.x.nd(&shape)?, axis, Sum, Scan::inclusive(), &mut it.out::<u32>(N)?, s)
            });
        }
    }
}

fn scans_and_selections(forms: &mut Forms) {
    let device = forms.device.clone();
    forms.form("scan", Ok(device.scan_scratch::<u32, u64>(N)), |it, s| {
        it.device.scan_into(&it.x, Sum, Scan::inclusive(), &mut it.out::<u64>(N)?, s)
    });
    forms.form("scan_segments", Ok(device.scan_segments_scratch::<u32, u64>(N)), |it, s| {
        it.device.scan_segments_into(&it.x, &it.offsets, Sum, Scan::inclusive(), &mut it.out::<u64>(N)?, s)
    });
    forms.form("scan_by_key", Ok(device.scan_segments_scratch::<u32, u64>(N)), |it, s| {
        it.device.scan_by_key_into(&it.x, &it.x, Sum, Scan::inclusive(), &mut it.out::<u64>(N)?, s)
    });
    let odd = Map::new(|x: u32| x % 2 == 1, "x % 2 == 1");
    forms.form("select", device.select_scratch::<u32>(N), |it, s| {
        it.device.select_into(&it.x, &odd, &mut it.out(N)?, &mut it.out(1)?, s)
    });
    forms.form("unique", device.select_scratch::<u32>(N), |it, s| {
        it.device.unique_into(&it.x, &mut it.out(N)?, &mut it.out(1)?, s)
    });
    forms.form("reduce_by_key", device.reduce_by_key_scratch::<u32, u32>(N), |it, s| {
        let (mut keys, mut values, mut count) = (it.out(N)?, it.out(N)?, it.out(1)?);
        it.device.reduce_by_key_into(&it.x, &it.x, Sum, &mut keys, &mut values, &mut count, s)
    });
}

fn sorts(forms: &mut Forms) {
    let device = forms.device.clone();
    let ascending = Order::ascending;
    let order = ascending();
    forms.form("sort", device.sort_scratch::<u32>(N), |it, s| {
        it.device.sort_into(&it.x, &mut it.out(N)?, ascending(), s)
    });
    forms.form("sort_pairs", device.sort_pairs_scratch::<u32, u64>(N), |it, s| {
        it.device.sort_pairs_into(&it.x, &it.y, &mut it.out(N)?, &mut it.out(N)?, ascending(), s)
    });
    forms.form("argsort", device.argsort_scratch::<u32, u64>(N), |it, s| {
        it.device.argsort_into(&it.x, &mut it.out::<u64>(N)?, ascending(), s)
    });
    forms.form("sort_segments", device.sort_segments_scratch::<u32>(N), |it, s| {
        it.device.sort_segments_into(&it.x, &it.offsets, &mut it.out(N)?, ascending(), s)
    });
    forms.form("sort_segments_pairs", device.sort_segments_pairs_scratch::<u32, u64>(N), |it, s| {
        let (mut keys, mut values) = (it.out(N)?, it.out(N)?);
        it.device.sort_segments_pairs_into(&it.x, &it.y, &it.offsets, &mut keys, &mut values, ascending(), s)
    });
    forms.form("argsort_segments", device.argsort_segments_scratch::<u32, u64>(N), |it, s| {
        it.device.argsort_segments_into(&it.x, &it.offsets, &mut it.out::<u64>(N)?, ascending(), s)
    });
    forms.form("merge_sort", device.merge_sort_scratch::<u32, _>(N, &order), |it, s| {
        it.device.merge_sort_into(&it.x, &mut it.out(N)?, &order, s)
    });
    forms.form("merge_sort_pairs", device.merge_sort_pairs_scratch::<u32, u64, _>(N, &order), |it, s| {
        it.device.merge_sort_pairs_into(&it.x, &it.y, &mut it.out(N)?, &mut it.out(N)?, &order, s)
    });
    forms.form("merge", device.merge_scratch::<u32, _>(N, &order), |it, s| {
        it.device.merge_into(it.x.view(..7_000)?, it.x.view(7_000..)?, &mut it.out(N)?, &order, s)
    });
    forms.form("merge_pairs", device.merge_pairs_scratch::<u32, u64, _>(N, &order), |it, s| {
        let [a, b] = [(it.x.view(..7_000)?, it.y.view(..7_000)?), (it.x.view(7_000..)?, it.y.view(7_000..)?)];
        it.device.merge_pairs_into(a, b, (&mut it.out(N)?, &mut it.out(N)?), &order, s)
    });
    forms.form("set_operation", device.set_scratch::<u32, _>(N, &order), |it, s| {
        let (mut kept, mut count) = (it.out(N)?, it.out(1)?);
        let (a, b) = (it.x.view(..7_000)?, it.x.view(7_000..)?);
        it.device.set_operation_into(SetOp::Union, a, b, &mut kept, &mut count, &order, s)
    });
    for k in [10, 1_000, 15_000] {
        let top = Top::largest(k);
        forms.form(&format!("top_k {k}"), device.top_k_scratch::<u32>(N, top), |it, s| {
            it.device.top_k_into(&it.x, &mut it.out(k)?, top, s)
        });
        forms.form(&format!("top_k_places {k}"), device.top_k_places_scratch::<u32, u64>(N, top), |it, s| {
            it.device.top_k_places_into(&it.x, &mut it.out(k)?, &mut it.out::<u64>(k)?, top, s)
        });
    }
}

fn histograms_and_matrices(forms: &mut Forms) {
    let device = forms.device.clone();
    let replace = Accumulate::Overwrite;
    for count in [10, 3_000, 300_000] {
        let bins = Bins::<u32>::ids(count).unwrap();
        forms.form(&format!("histogram of {count}"), device.histogram_scratch(N, &bins), |it, s| {
            it.device.histogram_into(&it.x, &bins, &mut it.out::<u32>(count)?, &mut it.out(3)?, replace, s)
        });
        forms.form(
            &format!("weighted of {count}"),
            device.histogram_weighted_scratch::<u32, u64>(N, &bins),
            |it, s| {
                let (mut sums, mut outside) = (it.out(count)?, it.out(3)?);
                it.device.histogram_weighted_into(&it.x, &it.y, &bins, &mut sums, &mut outside, replace, s)
            },
        );
        let half = Map::new(|x: u32| x / 2, "x / 2");
        forms.form(&format!("mapped of {count}"), device.histogram_scratch(N, &bins), |it, s| {
            let (mut counts, mut outside) = (it.out::<u32>(count)?, it.out(3)?);
            it.device.histogram_into(it.x.map(&half), &bins, &mut counts, &mut outside, replace, s)
        });
    }
    let bins = vec![Bins::<u32>::ids(500).unwrap(); 3];
    forms.form("channels", device.histogram_channels_scratch(N, 3, &bins), |it, s| {
        let (mut counts, mut outside) = (it.out::<u64>(1_500)?, it.out(9)?);
        it.device.histogram_channels_into(&it.x, 3, &bins, &mut counts, &mut outside, replace, s)
    });
    for (rows, cols) in [(100, 100), (150, 60), (7, 2_000)] {
        let bytes = Ok(device.transpose_in_place_scratch::<u32>(rows, cols));
        forms.form(&format!("transpose_in_place {rows} x {cols}"), bytes, |it, s| {
            it.device.transpose_in_place(&mut it.out::<u32>(rows * cols)?, rows, cols, s)
        });
    }
}

#[test]
fn operations_need_no_more_scratch_than_stated() {
    const TEST: &str = "operations_need_no_more_scratch_than_stated";
    for (name, device) in common::opencl_devices_or_skip(TEST) {
        let gpu = device.with_tuning(common::gpu()).unwrap();
        for (name, device) in [(format!("{name} as a GPU"), gpu), (name, device)] {
            let mut forms = Forms::new(name, device).unwrap();
            reductions(&mut forms);
            scans_and_selections(&mut forms);
            sorts(&mut forms);
            histograms_and_matrices(&mut forms);
            assert!(forms.short.is_empty(), "{}", forms.short.join("\n"));
            println!("{}: {} forms", forms.name, forms.tried);
        }
    }
}
