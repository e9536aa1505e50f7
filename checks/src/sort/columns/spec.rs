//! Cases and benchmark cases of sorts of columns.

use crate::{
    Columns, Device, ElementType, Order, Source,
    bench::Bench,
    check::{Case, Failure, Level, data::Data, everywhere, guarded, keys::Keys, poison, same_bytes},
    ladder::Climb,
    sort::shared::{Made, Way, numbered},
};

/// Checks three columns of different element sizes.
fn check<K: Made>(device: &Device, (n, at, keys, way): (usize, usize, Keys, Way)) -> Result<(), Failure> {
    let all = K::make(keys, n + at);
    let (a, b, c) = (numbered::<u8>(n + at), numbered::<[u32; 3]>(n + at), numbered::<u64>(n + at));
    let there = (device.upload(&all)?, device.upload(&a)?, device.upload(&b)?, device.upload(&c)?);
    let (mut got_a, mut got_b, mut got_c) = (Vec::new(), Vec::new(), Vec::new());
    let got = guarded(device, n, at, |out| {
        got_a = guarded(device, n, at, |to_a| {
            got_b = guarded(device, n, 1, |to_b| {
                got_c = guarded(device, n, at, |to_c| {
                    let columns = Columns::new().with(there.1.view(at..)?, to_a).with(there.2.view(at..)?, to_b);
                    let columns = columns.with(there.3.view(at..)?, to_c);
                    let x = there.0.view(at..)?;
                    Ok(device.sort_into(x.with_columns(columns), way.order(), out)?)
                })?;
                Ok(())
            })?;
            Ok(())
        })?;
        Ok(())
    })?;
    // Other cases check the indices.
    let indices: Vec<usize> = if device.is_cpu() {
        way.argsort(&all[at..])
    } else {
        let indices = Device::cpu().argsort::<_, u32, _>(&all[at..], way.order())?.to_vec()?;
        indices.into_iter().map(|index| index as usize).collect()
    };
    same_bytes(&got, &indices.iter().map(|&index| all[at + index]).collect::<Vec<_>>(), "keys")?;
    same_bytes(&got_a, &indices.iter().map(|&index| a[at + index]).collect::<Vec<_>>(), "the first column")?;
    same_bytes(&got_b, &indices.iter().map(|&index| b[at + index]).collect::<Vec<_>>(), "the second column")?;
    same_bytes(&got_c, &indices.iter().map(|&index| c[at + index]).collect::<Vec<_>>(), "the third column")
}

/// Checks no column and one column, and refused calls.
fn check_few(device: &Device) -> Result<(), Failure> {
    let (x, mut keys, mut values) = ([3i32, -1, 2], [0; 3], [0u16; 3]);
    device.sort_into(x.with_columns(Columns::new()), Order::descending(), &mut keys)?;
    same_bytes(&keys, &[3, 2, -1], "keys alone")?;
    let one = Columns::new().with(&[7u16, 8, 9], &mut values);
    device.sort_into(x.with_columns(one), Order::ascending(), &mut keys)?;
    same_bytes(&values, &[8, 9, 7], "one column")?;
    let short = Columns::new().with(&[7u16, 8, 9], &mut values[..2]);
    let short = device.sort_into(x.with_columns(short), Order::ascending(), &mut keys).map_err(|e| e.to_string());
    let unequal = device.sort(x.with_columns((&[1u8; 3], &[1u8; 2])), Order::ascending()).map_err(|e| e.to_string());
    match (short, unequal) {
        (Err(short), Err(unequal)) => {
            same_bytes(short.as_bytes(), b"a sort of values needs an output of 3 elements, got 2", "error")?;
            same_bytes(unequal.as_bytes(), b"sorting 3 keys needs as many values, got 2", "error")
        }
        other => Err(Failure::Mismatch(format!("{:?} instead of errors", other.0))),
    }
}

pub(in crate::sort) fn cases(level: Level, cases: &mut Vec<Case>) {
    fn form<K: Made>(level: Level, cases: &mut Vec<Case>) {
        let any = Keys::As(Data::Bits);
        let mut all = vec![(300, 3, any, Way::Up), (700, 0, Keys::Two, Way::Down)];
        if level >= Level::Quick {
            all.extend([(0, 0, any, Way::Up), (20_011, 1, Keys::Byte, Way::UpBy(1, 8 * size_of::<K>() as u32))]);
        }
        if level >= Level::Full {
            all.extend([(1, 0, any, Way::Up), (262_147, 3, any, Way::Down), (1_000_003, 0, Keys::Zipf, Way::Up)]);
        }
        for what in all {
            let (n, at, keys, way) = what;
            let (form, shape) =
                (format!("columns by {}-byte keys", size_of::<K>()), format!("n = {n} at {at}, {}", way.text()));
            cases.push(Case::new(form, K::ELEMENT, shape, keys.name(), n, move |device| {
                everywhere(check::<K>(device, what))
            }));
        }
    }
    form::<u32>(level, cases);
    if level >= Level::Quick {
        form::<f64>(level, cases);
    }
    if level >= Level::Full {
        form::<i8>(level, cases);
        form::<u128>(level, cases);
    }
    cases.push(Case::new("few columns", ElementType::I32, "n = 3", "by hand", 3, check_few));
}

pub(in crate::sort) fn benches() -> Vec<Bench> {
    let bytes = |n| (2 * 4 * 4 * n) as u64;
    vec![Bench::new("three columns, bits", ElementType::U32, bytes, |device, n| {
        let keys = device.upload(&Data::Bits.generate::<u32>(n, n as u64))?;
        let column = || device.iota(n, 0u32, 1);
        let columns = [column()?, column()?, column()?];
        let out = [device.zeroed::<u32>(n)?, device.zeroed(n)?, device.zeroed(n)?, device.zeroed(n)?];
        Ok(Climb::new(
            (device.clone(), keys, columns, out),
            |(_, _, _, out)| out.iter_mut().try_for_each(|out| out.fill(poison())),
            |(device, keys, [a, b, c], [out, to_a, to_b, to_c])| {
                let columns = Columns::new().with(&*a, to_a).with(&*b, to_b).with(&*c, to_c);
                device.sort_into(keys.with_columns(columns), Order::ascending(), out)
            },
            |(_, keys, _, out)| {
                let want = Device::cpu().argsort::<_, u32, _>(&keys.to_vec()?, Order::ascending())?.to_vec()?;
                out[1..].iter().try_for_each(|out| same_bytes(&out.to_vec()?, &want, "a column"))
            },
        ))
    })]
}
