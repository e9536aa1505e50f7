//! Cases and benchmark cases of sorts in place.

use crate::{
    Device, ElementType, Order,
    bench::Bench,
    check::{Case, Failure, Level, data::Data, everywhere, guarded, keys::Keys, same_bytes, sorted_indices},
    ladder::Climb,
    sort::shared::{Made, Way},
    with_element,
};

fn check<K: Made>(device: &Device, (n, at, keys, way): (usize, usize, Keys, Way)) -> Result<(), Failure> {
    let input = K::make(keys, n);
    let got = guarded(device, n, at, |mut out| {
        out.write(&input)?;
        Ok(device.sort_in_place(out, way.order())?)
    })?;
    let mut want = input.clone();
    if device.is_cpu() {
        // The first of two stable sorts orders keys that the second finds equal.
        for number in [K::number_among_equals, K::number] {
            want = sorted_indices(want.iter().map(|&key| number(key))).into_iter().map(|i| want[i]).collect();
        }
        if way == Way::Down {
            want.reverse();
        }
    } else {
        Device::cpu().sort_in_place(&mut want, way.order())?;
    }
    same_bytes(&got, &want, "keys")
}

/// Checks a host slice, and a refused call.
fn check_host(device: &Device) -> Result<(), Failure> {
    let mut x = [3i8, -1, 2, -1];
    device.sort_in_place(&mut x, Order::ascending())?;
    same_bytes(&x, &[-1, -1, 2, 3], "keys")?;
    let some = device.sort_in_place(&mut x, Order::ascending().bits(0..7)).map_err(|error| error.to_string());
    let text = "sorting in place takes all 8 bits of keys, not bits 0..7";
    match some {
        Err(error) if error == text => Ok(()),
        other => Err(Failure::Mismatch(format!("{other:?} instead of: {text}"))),
    }
}

fn cases_of<K: Made>(level: Level, cases: &mut Vec<Case>) {
    let any = Keys::As(Data::Bits);
    let mut all = vec![(1, 0, any, Way::Up), (300, 3, any, Way::Down), (4500, 1, Keys::Byte, Way::Up)];
    if level >= Level::Quick {
        all.extend([(0, 0, any, Way::Up), (20_011, 0, any, Way::Up), (33_000, 3, Keys::Two, Way::Down)]);
    }
    if level >= Level::Full {
        for n in [2, 3, 15, 16, 17, 255, 256, 257, 1024, 4095, 4096, 4097, 8192, 65_537, 262_144, 1_000_003] {
            all.extend([(n, n % 4, any, Way::Up), (n, 0, Keys::Signs, Way::Down)]);
        }
        all.extend(Keys::ALL.map(|keys| (20_011, 1, keys, Way::Up)));
    }
    for what in all {
        let (n, at, keys, way) = what;
        let form = format!("in place, {}-byte keys", size_of::<K>());
        let shape = format!("n = {n} at {at}, {}", way.text());
        let run = move |device: &Device| everywhere(check::<K>(device, what));
        cases.push(Case::new(form, K::ELEMENT, shape, keys.name(), n, run));
    }
}

pub(in crate::sort) fn cases(level: Level, cases: &mut Vec<Case>) {
    cases_of::<u32>(level, cases);
    if level >= Level::Quick {
        cases_of::<f64>(level, cases);
        cases_of::<i8>(level, cases);
    }
    if level >= Level::Full {
        for element in [ElementType::I16, ElementType::F16, ElementType::F32, ElementType::I64] {
            with_element!(element, T => cases_of::<T>(level, cases));
        }
        cases_of::<u128>(level, cases);
        cases_of::<i128>(level, cases);
    }
    cases.push(Case::new("host slice in place", ElementType::I8, "n = 4", "by hand", 4, check_host));
}

pub(in crate::sort) fn benches() -> Vec<Bench> {
    vec![bench::<u32>(), bench::<u64>()]
}

fn bench<K: Made>() -> Bench {
    let bytes = |n| 2 * (n * size_of::<K>()) as u64;
    Bench::new("keys in place, bits", K::ELEMENT, bytes, |device, n| {
        let keys = device.upload(&K::make(Keys::As(Data::Bits), n))?;
        let out = device.zeroed::<K>(n)?;
        Ok(Climb::new(
            (device.clone(), keys, out),
            |(device, keys, out)| device.copy(&*keys, out),
            |(device, _, out)| device.sort_in_place(out, Order::ascending()),
            |(_, keys, out)| {
                let want = Device::cpu().sort(&keys.to_vec()?, Order::ascending())?;
                same_bytes(&out.to_vec()?, &want.to_vec()?, "keys")
            },
        ))
    })
}
