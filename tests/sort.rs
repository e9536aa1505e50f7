//! Sorts: in every geometry, over several tiles and work-groups, and compared with the standard library.

mod common;

use common::{gpu, tuned};
use oclprim::{Device, Element, Key, Order, Source, SubGroupBackend, internals::testing::guarded};
use proptest::prelude::*;

/// Every device, in its own geometry and in that of GPUs with much, little and no local memory.
fn devices() -> Vec<(String, Device)> {
    let local = || gpu().sub_groups(SubGroupBackend::Local);
    tuned(&[
        ("a GPU", gpu()),
        ("a GPU without sub-groups", local()),
        ("a small GPU", local().local_bytes(12 << 10)),
        ("a GPU without local memory", gpu().local_bytes(1024)),
    ])
}

/// Every device, in its own geometry and in that of a GPU.
fn few_devices() -> Vec<(String, Device)> {
    tuned(&[("a GPU", gpu())])
}

/// A number of keys with several tiles per work-group, unless time is short.
fn many() -> usize {
    if common::tiny() { 1_300 } else { 70_003 }
}

fn bits<T: Element>(keys: &[T]) -> &[u8] {
    bytemuck::cast_slice(keys)
}

/// Compares with the standard library's stable sort by `compare`.
fn sorts<T: Element>(device: &(String, Device), keys: &[T], compare: impl Fn(&T, &T) -> std::cmp::Ordering) {
    sorts_by(device, keys, compare, |order| order);
}

/// Compares in an order derived from the ascending one.
fn sorts_by<T: Element>(
    (name, device): &(String, Device),
    keys: &[T],
    compare: impl Fn(&T, &T) -> std::cmp::Ordering,
    made: impl Fn(Order) -> Order,
) {
    let mut places: Vec<u32> = (0..keys.len() as u32).collect();
    let key = |place: &u32| &keys[*place as usize];
    for (order, down) in [(made(Order::ascending()), false), (made(Order::descending()), true)] {
        places.sort_unstable();
        places.sort_by(|a, b| if down { compare(key(b), key(a)) } else { compare(key(a), key(b)) });
        let want: Vec<T> = places.iter().map(|place| *key(place)).collect();
        let got = device.sort(keys, order.clone()).unwrap().to_vec().unwrap();
        assert!(bits(&got) == bits(&want), "{name}: {} keys {order:?}", keys.len());
        let found = device.argsort::<_, u32, _>(keys, order.clone()).unwrap().to_vec().unwrap();
        assert!(found == places, "{name}: argsort of {} keys {order:?}", keys.len());
        let numbers: Vec<u32> = (0..keys.len() as u32).collect();
        let (got, values) = device.sort(keys.with(&numbers), order.clone()).unwrap();
        assert!(bits(&got.to_vec().unwrap()) == bits(&want), "{name}: keys of {} pairs {order:?}", keys.len());
        assert!(values.to_vec().unwrap() == places, "{name}: values of {} pairs {order:?}", keys.len());
    }
}

#[test]
fn offsets_of_64_bits_give_the_same_results() {
    let keys: Vec<u32> = common::random(many() / 2, 6);
    for device in common::wide() {
        sorts(&device, &keys, Ord::cmp);
        sorts_segments(&device, &keys, &cut(keys.len()));
        sorts_in_place(&device, &keys);
    }
}

/// Segments with no, one, few and most of the keys, and keys outside of all segments.
fn cut(n: usize) -> Vec<u64> {
    let mut offsets: Vec<usize> = vec![2, 2, 2, 3, 5, 5, 36, 100];
    offsets.extend((1..9).map(|i| 100 + i * n / 200));
    offsets.extend([n - n / 300, n - n / 300, n - 1]);
    offsets.sort_unstable();
    offsets.into_iter().map(|offset| offset as u64).collect()
}

/// Sorts segments by every operation and compares with the standard library's stable sort.
fn sorts_segments<K: Key + Ord + std::fmt::Debug>((name, device): &(String, Device), keys: &[K], offsets: &[u64]) {
    let what = format!("{name}: {} keys of {} bytes in {} segments", keys.len(), size_of::<K>(), offsets.len() - 1);
    let values: Vec<[u8; 3]> = (0..keys.len()).map(|i| [i as u8, (i >> 8) as u8, (i >> 16) as u8]).collect();
    for (order, down) in [(Order::ascending(), false), (Order::descending(), true)] {
        let mut places: Vec<u32> = (0..keys.len() as u32).collect();
        for pair in offsets.windows(2) {
            let part = &mut places[pair[0] as usize..pair[1] as usize];
            let key = |place: &u32| &keys[*place as usize];
            part.sort_by(|a, b| if down { key(b).cmp(key(a)) } else { key(a).cmp(key(b)) });
        }
        let want: Vec<K> = places.iter().map(|place| keys[*place as usize]).collect();
        let got = device.sort(keys.segments(offsets), order.clone()).unwrap().to_vec().unwrap();
        assert!(got == want, "{what}, {order:?}");
        let found = device.argsort::<_, u32, _>(keys.segments(offsets), order.clone()).unwrap().to_vec().unwrap();
        assert!(found == places, "{what}, argsort, {order:?}");
        let (got, with) = device.sort(keys.segments(offsets).with(&values), order.clone()).unwrap();
        assert!(got.to_vec().unwrap() == want, "{what}, of pairs, {order:?}");
        let moved: Vec<_> = places.iter().map(|place| values[*place as usize]).collect();
        assert!(with.to_vec().unwrap() == moved, "{what}, values, {order:?}");
    }
}

#[test]
fn segments_of_any_length_are_sorted() {
    let n = many();
    let keys: Vec<u32> = common::random(n, 7);
    let few: Vec<u16> = common::random::<u16>(n / 3, 8).into_iter().map(|key| key & 0x70).collect();
    let wide: Vec<u128> = keys[..n / 5].iter().map(|&key| u128::from(key) << (key % 96)).collect();
    for device in devices() {
        sorts_segments(&device, &keys, &cut(n));
        sorts_segments(&device, &few, &cut(few.len()));
        sorts_segments(&device, &wide, &cut(wide.len()));
        sorts_segments(&device, &keys[..1], &[0, 0, 1]);
    }
}

fn sorts_in_place<K: Key + Ord + std::fmt::Debug>((name, device): &(String, Device), keys: &[K]) {
    let mut want = keys.to_vec();
    want.sort_unstable();
    let mut got = device.upload(keys).unwrap();
    device.sort_in_place(&mut got, Order::ascending()).unwrap();
    assert!(got.to_vec().unwrap() == want, "{name}: {} keys of {} bytes", keys.len(), size_of::<K>());
    want.reverse();
    device.sort_in_place(&mut got, Order::descending()).unwrap();
    assert!(got.to_vec().unwrap() == want, "{name}: {} keys of {} bytes, descending", keys.len(), size_of::<K>());
}

#[test]
fn sorts_in_place_equal_the_standard_library() {
    let n = many();
    let keys: Vec<u32> = common::random(n, 9);
    let pipe: Vec<u8> = (0..n).map(|i| (i.min(n - i) / 64) as u8).collect();
    let wide: Vec<i128> = keys[..n / 9].iter().map(|&key| i128::from(key as i32) << (key % 96)).collect();
    for device in devices() {
        sorts_in_place(&device, &keys);
        sorts_in_place(&device, &pipe);
        sorts_in_place(&device, &wide);
        sorts_in_place(&device, &vec![u32::MAX; 1000]);
    }
}

/// Keys of 16 bytes, sorted by bits of either half and of both.
#[test]
fn keys_of_16_bytes_are_sorted_by_any_bits() {
    let random: Vec<u64> = common::random(many() / 4, 10);
    let keys: Vec<u128> = random.windows(2).map(|x| u128::from(x[0]) << 64 | u128::from(x[1])).collect();
    for (name, device) in devices() {
        for bits in [0..128, 0..64, 60..70, 64..128, 57..65, 63..64, 120..121] {
            let mask = u128::MAX >> (128 - (bits.end - bits.start)) << bits.start;
            let mut want: Vec<u32> = (0..keys.len() as u32).collect();
            want.sort_by_key(|&place| keys[place as usize] & mask);
            let order = Order::ascending().bits(bits.clone());
            let got = device.argsort::<_, u32, _>(&keys, order).unwrap().to_vec().unwrap();
            assert!(got == want, "{name}: bits {bits:?}");
        }
    }
}

#[test]
fn sorts_of_many_tiles_and_groups_equal_the_standard_library() {
    let n = many();
    let random: Vec<u32> = common::random(n, 1);
    let few: Vec<u32> = random.iter().map(|x| x & 0x00f0_0000).collect();
    let skewed: Vec<u32> = random.iter().map(|x| x >> (x % 32)).collect();
    let pipe: Vec<u32> = (0..n).map(|i| i.min(n - i) as u32).collect();
    for device in devices() {
        for keys in [&random, &few, &skewed, &pipe, &vec![7; n]] {
            sorts(&device, keys, Ord::cmp);
        }
    }
}

/// Total order: NaN at both ends, and -0 before +0. tests/float_order.rs tests the default order.
#[test]
fn floats_are_sorted_by_total_order() {
    let n = many() / 3;
    let mut keys: Vec<f32> = common::random::<u32>(n, 2).into_iter().map(f32::from_bits).collect();
    keys.extend([f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE / 2.0]);
    for device in devices() {
        sorts_by(&device, &keys, f32::total_cmp, Order::total_order);
    }
}

/// A key of 8 bytes has 8 passes. Passes over digits that all keys share are skipped, so an odd or even number remains.
#[test]
fn keys_that_share_digits_are_sorted() {
    let n = many() / 7;
    let random: Vec<u64> = common::random(n, 3);
    for (name, device) in few_devices() {
        for mask in [0, 0xff, 0xff00_0000_0000_0000, 0x00ff_0000_0000_00ff, 0x0f00_f000_0000_0100] {
            let keys: Vec<u64> = random.iter().map(|x| x & mask | 0x1010_1010_1010_1010 & !mask).collect();
            let mut want = keys.clone();
            want.sort_unstable();
            let got = device.sort(&keys, Order::ascending()).unwrap().to_vec().unwrap();
            assert!(got == want, "{name}: bits {mask:x}");
        }
    }
}

/// One reservation serves every operation, repeatedly.
#[test]
fn one_reservation_serves_every_operation() {
    for ((name, device), (_, tried)) in few_devices().into_iter().zip(few_devices()) {
        let keys: Vec<i32> = common::random(many() / 9, 4);
        let n = keys.len();
        let mut want = keys.clone();
        want.sort_unstable();
        let values: Vec<i32> = keys.iter().map(|key| !key).collect();
        let run = |device: &Device| {
            let (mut got, order) = (vec![0i32; n], Order::ascending);
            device.sort_into(&keys, order(), &mut got).unwrap();
            assert!(got == want, "{name}");
            device.sort_into(keys.segments(&[0u32, n as u32]), order(), &mut got).unwrap();
            assert!(got == want, "{name}");
            let mut places = vec![0u32; n];
            device.argsort_into(&keys, order(), &mut places).unwrap();
            assert!(places.iter().map(|&place| keys[place as usize]).eq(want.iter().copied()), "{name}");
            let (mut got, mut with) = (vec![0i32; n], vec![0i32; n]);
            device.sort_into(keys.with(&values), order(), (&mut got, &mut with)).unwrap();
            assert!(got == want && with.iter().zip(&want).all(|(value, key)| *value == !key), "{name}");
        };
        common::reserve_and_repeat(&name, &tried, &device, run);
    }
}

#[test]
fn sorts_write_only_their_outputs() {
    for (name, device) in devices() {
        for offset in [0, 1, 3] {
            let keys: Vec<u32> = common::random(1000 + offset, 5);
            let x = device.upload(&keys).unwrap();
            let got = guarded::<u32>(&device, 1000, offset, |out| {
                Ok(device.sort_into(x.view(offset..)?, Order::ascending(), out)?)
            });
            let got = got.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
            let mut want = keys[offset..].to_vec();
            want.sort_unstable();
            assert!(got == want, "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_keys_are_sorted(keys in prop::collection::vec(any::<i64>(), 0..600), narrow in 0u32..64) {
        let keys: Vec<i64> = keys.into_iter().map(|key| key >> narrow).collect();
        for device in tested() {
            sorts(device, &keys, Ord::cmp);
        }
    }

    #[test]
    fn any_bit_ranges_are_sorted(keys in prop::collection::vec(any::<u16>(), 0..600), a in 0u32..=16, b in 0u32..=16) {
        let (begin, end) = if a < b { (a, b) } else { (b, a) };
        let mut want = keys.clone();
        want.sort_by_key(|&key| u32::from(key) >> begin & ((1 << (end - begin)) - 1));
        for (name, device) in tested() {
            let got = device.sort(&keys, Order::ascending().bits(begin..end)).unwrap().to_vec().unwrap();
            prop_assert!(got == want, "{name}: bits {begin}..{end} of {} keys", keys.len());
        }
    }
}

/// The devices in their own geometry, opened once.
fn tested() -> &'static [(String, Device)] {
    static DEVICES: std::sync::OnceLock<Vec<(String, Device)>> = std::sync::OnceLock::new();
    DEVICES.get_or_init(common::devices)
}

/// Sorts of lines along any axes have the order of the view, and indices count from the start of the line.
#[test]
fn lines_along_axes_are_sorted_in_the_order_of_the_view() {
    let shape = [3, 5, 4];
    let x: Vec<i16> = common::random::<i16>(60, 7).into_iter().map(|x| x % 5).collect();
    let at = |i: usize, j: usize, k: usize| (i * shape[1] + j) * shape[2] + k;
    for (name, device) in common::tuned(&[("a GPU", common::gpu())]) {
        let there = device.upload(&x).unwrap();
        let view = there.nd(&shape).unwrap();
        // The elements of each line, as indices.
        let last: Vec<Vec<usize>> = (0..15).map(|line| (line * 4..line * 4 + 4).collect()).collect();
        let middle: Vec<Vec<usize>> =
            (0..3).flat_map(|i| (0..4).map(move |k| (0..5).map(|j| at(i, j, k)).collect())).collect();
        let outer: Vec<Vec<usize>> =
            (0..5).map(|j| (0..3).flat_map(|i| (0..4).map(move |k| at(i, j, k))).collect()).collect();
        let check = |lines: &[Vec<usize>], sorted: Vec<i16>, indices: Vec<u32>| {
            let (mut want, mut want_indices) = (vec![0; 60], vec![0; 60]);
            for line in lines {
                let mut order: Vec<u32> = (0..line.len() as u32).collect();
                order.sort_by_key(|&at| std::cmp::Reverse(x[line[at as usize]]));
                for (&to, &from) in line.iter().zip(&order) {
                    (want[to], want_indices[to]) = (x[line[from as usize]], from);
                }
            }
            assert_eq!((sorted, indices), (want, want_indices), "{name}");
        };
        let down = Order::descending;
        let sorted = |found: oclprim::Buffer<i16>| found.to_vec().unwrap();
        let indices = |found: oclprim::Buffer<u32>| found.to_vec().unwrap();
        check(
            &last,
            sorted(device.sort(view.along(2), down()).unwrap()),
            indices(device.argsort(view.along(2), down()).unwrap()),
        );
        check(
            &middle,
            sorted(device.sort(view.along(1), down()).unwrap()),
            indices(device.argsort(view.along(1), down()).unwrap()),
        );
        check(
            &outer,
            sorted(device.sort(view.along([0, 2]), down()).unwrap()),
            indices(device.argsort(view.along([0, 2]), down()).unwrap()),
        );
        let wide = device.sort(view.cast::<i64>().along(2), down()).unwrap().to_vec().unwrap();
        assert_eq!(
            wide,
            sorted(device.sort(view.along(2), down()).unwrap()).into_iter().map(i64::from).collect::<Vec<_>>()
        );
        // Values move with their keys, whether their lines follow one another in memory or not.
        let numbers = device.upload(&(0..60u64).collect::<Vec<_>>()).unwrap();
        let values = numbers.nd(&shape).unwrap();
        let flipped = numbers.nd(&[4, 5, 3]).unwrap().permute(&[2, 1, 0]).unwrap();
        let number = |view: bool, at: usize| {
            let (i, j, k) = (at / 20, at / 4 % 5, at % 4);
            if view { at as u64 } else { ((k * 5 + j) * 3 + i) as u64 }
        };
        let with = |lines: &[Vec<usize>], found: [(oclprim::Buffer<i16>, oclprim::Buffer<u64>); 2]| {
            for ((keys, values), straight) in found.into_iter().zip([true, false]) {
                let (mut want, mut want_values) = (vec![0; 60], vec![0; 60]);
                for line in lines {
                    let mut order = line.clone();
                    order.sort_by_key(|&at| std::cmp::Reverse(x[at]));
                    for (&to, &from) in line.iter().zip(&order) {
                        (want[to], want_values[to]) = (x[from], number(straight, from));
                    }
                }
                assert_eq!((keys.to_vec().unwrap(), values.to_vec().unwrap()), (want, want_values), "{name}");
            }
        };
        with(&last, [values, flipped].map(|values| device.sort(view.along(2).with(values), down()).unwrap()));
        with(&middle, [values, flipped].map(|values| device.sort(view.along(1).with(values), down()).unwrap()));
        with(&outer, [values, flipped].map(|values| device.sort(view.along([0, 2]).with(values), down()).unwrap()));
        let other = device.sort(view.along(1).with(numbers.nd(&[5, 3, 4]).unwrap()), down()).unwrap_err();
        assert_eq!(other.to_string(), "keys of shape [3, 5, 4] need values of that shape, got [5, 3, 4]", "{name}");
        let (mut keys, mut few) = (device.zeroed::<i16>(60).unwrap(), device.zeroed::<u64>(59).unwrap());
        let short = device.sort_into(view.along(1).with(values), down(), (&mut keys, &mut few)).unwrap_err();
        assert_eq!(short.to_string(), "a sort of values along axes needs an output of 60 elements, got 59", "{name}");

        let nothing = device.upload::<i16>(&[]).unwrap();
        let (none, none_of) = (nothing.nd(&[0, 3]).unwrap(), numbers.view(..0).unwrap().nd(&[0, 3]).unwrap());
        assert_eq!(device.sort(none.along(0).with(none_of), down()).unwrap().1.len(), 0, "{name}");
        assert_eq!(device.sort(nothing.nd(&[0, 3]).unwrap().along(0), down()).unwrap().len(), 0, "{name}");
    }
}
