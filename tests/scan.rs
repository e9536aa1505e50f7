//! Scans: all forms and operators, in place, and what they refuse.

mod common;

use oclprim::{
    Device, Element, ErrorKind, Scan, Scratch, bf16,
    check::{data::Data, guarded, same},
    f16,
    op::{And, Max, Min, Op, Or, Product, Sum, Xor},
};

/// At the edges of runs and tiles of 4-byte elements, and no powers of two.
const SIZES: [usize; 5] = [1, 3, 1000, 4096, 3 * 4096 + 5];

fn obvious<T: Element, O: Op<T>>(x: &[T], _: O, kind: Scan<T>) -> Vec<T> {
    let (mut acc, inclusive) = match kind {
        Scan::Inclusive => (O::identity(), true),
        Scan::Exclusive(initial) => (initial.widen(), false),
    };
    let mut out = Vec::new();
    for x in x {
        let next = O::combine(acc, x.widen());
        out.push(T::narrow(if inclusive { next } else { acc }));
        acc = next;
    }
    out
}

fn tries<T: Element, O: Op<T>>(op: O, n: usize) {
    let x: Vec<T> = Data::Random.generate(n, 7);
    for (name, device) in common::with_sub_groups() {
        for kind in [Scan::Inclusive, Scan::Exclusive(T::ONE)] {
            let got = device.scan(&x, op, kind).unwrap().to_vec().unwrap();
            let what = format!("{name}: {} {} {n} {kind:?}", T::TYPE, O::KIND.name());
            same(&got, &obvious(&x, op, kind), &what).unwrap();
        }
    }
}

#[test]
fn every_operator() {
    tries::<i32, _>(Sum, 10_007);
    tries::<i32, _>(And, 10_007);
    if !common::tiny() {
        tries::<i32, _>(Product, 10_007);
        tries::<f32, _>(Min, 10_007);
        tries::<u8, _>(Max, 40_001);
        tries::<i16, _>(Or, 20_001);
        tries::<u64, _>(Xor, 5_001);
    }
}

#[test]
fn sizes_and_offsets_within_canaries() {
    let mut scratch = Scratch::new();
    for (name, device) in common::with_sub_groups() {
        for n in SIZES {
            for offset in [0, 1, 3] {
                let all: Vec<u32> = Data::Random.generate(n + offset, 1);
                let x = device.upload(&all).unwrap();
                let want = obvious(&all[offset..], Sum, Scan::Exclusive(9));
                let got = guarded(&device, n, 2 * offset, |out| {
                    Ok(device.scan_into(x.view(offset..)?, Sum, Scan::Exclusive(9), out, &mut scratch)?)
                });
                assert_eq!(got.unwrap(), want, "{name}: {n} at {offset}");
            }
        }
    }
}

#[test]
fn the_total_comes_behind() {
    for (name, device) in common::with_sub_groups() {
        for n in SIZES {
            let lengths: Vec<u32> = Data::Random.generate(n, 2);
            let offsets = device.offsets_of::<u32, u64>(&lengths).unwrap().to_vec().unwrap();
            let mut want = vec![0u64];
            want.extend(lengths.iter().scan(0u64, |sum, &x| {
                *sum += u64::from(x);
                Some(*sum)
            }));
            assert_eq!(offsets, want, "{name}: {n}");
        }
        assert_eq!(device.offsets_of::<u32, u32>(&[]).unwrap().to_vec().unwrap(), [0], "{name}");
    }
}

#[test]
fn in_place() {
    for (name, device) in common::with_sub_groups() {
        for n in SIZES {
            let host: Vec<f32> = Data::Random.generate(n, 3);
            for kind in [Scan::Inclusive, Scan::Exclusive(0.5)] {
                let want = Device::cpu().scan(&host, Sum, kind).unwrap().to_vec().unwrap();
                let got = guarded(&device, n, 1, |mut x| {
                    x.write(&host)?;
                    Ok(device.scan_in_place(x, Sum, kind, &mut Scratch::new())?)
                });
                same(&got.unwrap(), &want, &format!("{name}: {n} {kind:?}")).unwrap();
                let mut slice = host.clone();
                device.scan_in_place(&mut slice, Sum, kind, &mut Scratch::new()).unwrap();
                same(&slice, &want, &format!("{name}: a slice of {n} {kind:?}")).unwrap();
            }
        }
    }
}

#[test]
fn nothing_gives_nothing() {
    for (name, device) in common::devices() {
        assert!(device.inclusive_scan::<f32, _>(&[], Sum).unwrap().is_empty(), "{name}");
        let mut out = [7u8];
        device.scan_into::<u8, u8, _>(&[], Max, Scan::Exclusive(3), &mut out, &mut Scratch::new()).unwrap();
        assert_eq!(out, [3], "{name}");
        device.scan_in_place::<i64, _>(&mut [], Sum, Scan::Inclusive, &mut Scratch::new()).unwrap();
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    for (name, device) in common::devices() {
        let mut out = device.zeroed::<u32>(4).unwrap();
        let mut refused = |kind, n: usize| {
            let x = vec![1u32; n];
            device.scan_into(&x, Sum, kind, &mut out, &mut Scratch::new()).unwrap_err()
        };
        for error in [refused(Scan::Inclusive, 3), refused(Scan::Inclusive, 5), refused(Scan::Exclusive(0), 2)] {
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
        }
        assert_eq!(refused(Scan::Inclusive, 3).to_string(), "scan needs an output of 3 elements, got 4");
    }
}

/// Of floats, to the bit: on every device what the CPU has, and the same again.
#[test]
fn floats_have_one_order() {
    fn of<T: Element>(n: usize, data: Data) {
        let x: Vec<T> = data.generate(n, 11);
        let sums = Device::cpu().inclusive_scan(&x, Sum).unwrap().to_vec().unwrap();
        for (name, device) in [common::with_sub_groups(), common::wide()].concat() {
            let buffer = device.upload(&x).unwrap();
            for round in 0..3 {
                let got = device.inclusive_scan(&buffer, Sum).unwrap().to_vec().unwrap();
                same(&got, &sums, &format!("{name}: {}, round {round}", T::TYPE)).unwrap();
            }
        }
    }
    of::<f32>(if common::tiny() { 9_001 } else { 300_007 }, Data::Random);
    if !common::tiny() {
        of::<f32>(50_001, Data::Special);
        of::<f16>(100_003, Data::Random);
        of::<bf16>(20_003, Data::Random);
    }
}

/// Small work-groups have many runs for each item, and few tiles are more than their spine takes at once.
#[test]
fn many_tiles_and_small_work_groups() {
    if common::tiny() {
        return;
    }
    let n = 300 * 4096 + 77;
    let x: Vec<u32> = Data::Random.generate(n, 5);
    let want = obvious(&x, Sum, Scan::Inclusive);
    let floats: Vec<f32> = Data::Random.generate(n, 6);
    let sums = Device::cpu().inclusive_scan(&floats, Sum).unwrap().to_vec().unwrap();
    for (name, device) in common::tuned(&[("a small GPU", common::gpu().local_bytes(2 << 10))]) {
        assert!(device.inclusive_scan(&x, Sum).unwrap().to_vec().unwrap() == want, "{name}");
        same(&device.inclusive_scan(&floats, Sum).unwrap().to_vec().unwrap(), &sums, &name).unwrap();
    }
}
