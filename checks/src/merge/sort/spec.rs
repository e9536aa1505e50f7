//! Cases and benchmark cases of merge sorts.

use crate::{
    Device, Element, Order, Source,
    bench::Bench,
    check::{Case, Failure, Level, data::Data, guarded, keys::Keys, poison, same_bytes},
    ladder::Climb,
    merge::shared::{Tried, Value, Visit, numbers, tiles, visit_all},
    op::Compare,
    sort::Merging,
};

/// Input of a case.
#[derive(Clone, Copy, Debug)]
struct What {
    n: usize,
    offset: usize,
    keys: Keys,
}

fn inputs(level: Level, size: usize) -> Vec<What> {
    let any = Keys::As(Data::Bits);
    let mut all = vec![(0, 0, any), (1, 1, any), (300, 3, any), (1000, 0, Keys::Zipf)];
    if level >= Level::Quick {
        all.extend([
            (257, 0, Keys::As(Data::Constant)),
            (5000, 1, Keys::Two),
            (12_289, 0, any),
            (4097, 3, Keys::Signs),
            (1025, 1, Keys::As(Data::Nan)),
        ]);
    }
    if level >= Level::Full {
        for tile in tiles(size) {
            for n in [tile - 1, tile, tile + 1, 2 * tile, 2 * tile + 3, 5 * tile + 7] {
                all.push((n, n % 3, any));
            }
        }
        all.extend([2, 3, 15, 16, 17, 31, 33, 255, 1023].map(|n| (n, n % 4, any)));
        // 2,300,003 elements have large tiles on a GPU of 132 compute units.
        all.extend([(262_147, 1, any), (1_000_003, 0, any)]);
        all.extend((size == 4).then_some((2_300_003, 0, any)));
        all.extend(Keys::ALL.map(|keys| (50_021, 1, keys)));
    }
    all.into_iter().map(|(n, offset, keys)| What { n, offset, keys }).collect()
}

fn check<T: Value, C: Compare<T>>(device: &Device, tried: &Tried<T, C>, what: What) -> Result<(), Failure> {
    let What { n, offset, keys } = what;
    let all = tried.make(keys, n, offset);
    let (there, input) = (device.upload(&all)?, &all[offset..]);
    let got =
        guarded(device, n, offset, |out| Ok(device.sort_into(there.view(offset..)?, Merging(&tried.order), out)?))?;
    let want = if device.is_cpu() {
        tried.argsort(input).into_iter().map(|i| input[i]).collect()
    } else {
        Device::cpu().sort(input, Merging(&tried.order))?.to_vec()?
    };
    same_bytes(&got, &want, "sorted")
}

fn check_pairs<T: Value, C: Compare<T>, V: Value>(
    device: &Device,
    tried: &Tried<T, C>,
    what: What,
) -> Result<(), Failure> {
    let What { n, offset, keys } = what;
    let (all, values): (_, Vec<V>) = (tried.make(keys, n, offset), numbers(n + offset, 0));
    let (there, values_there) = (device.upload(&all)?, device.upload(&values)?);
    let (input, values) = (&all[offset..], &values[offset..]);
    let mut got_values = Vec::new();
    let got = guarded(device, n, offset, |out| {
        got_values = guarded(device, n, offset, |values_out| {
            let (keys, values) = (there.view(offset..)?, values_there.view(offset..)?);
            Ok(device.sort_into(keys.with(values), Merging(&tried.order), (out, values_out))?)
        })?;
        Ok(())
    })?;
    let (want, want_values) = if device.is_cpu() {
        tried.argsort(input).into_iter().map(|i| (input[i], values[i])).unzip()
    } else {
        let (keys, values) = Device::cpu().sort(input.with(values), Merging(&tried.order))?;
        (keys.to_vec()?, values.to_vec()?)
    };
    same_bytes(&got, &want, "keys")?;
    same_bytes(&got_values, &want_values, "values")
}

struct Cases {
    level: Level,
    cases: Vec<Case>,
}

type Check<T, C> = fn(&Device, &Tried<T, C>, What) -> Result<(), Failure>;

impl Cases {
    fn push<T: Value, C: Compare<T> + Clone + Send + 'static>(
        &mut self,
        tried: &Tried<T, C>,
        form: &str,
        check: Check<T, C>,
    ) {
        for what in inputs(self.level, size_of::<T>()) {
            let (tried, form) = (tried.clone(), tried.form(form));
            let shape = format!("n = {} at {}", what.n, what.offset);
            self.cases.push(Case::new(form, tried.element, shape, what.keys.name(), what.n, move |device| {
                check(device, &tried, what)
            }));
        }
    }
}

impl Visit for Cases {
    fn visit<T: Value, C: Compare<T> + Clone + Send + 'static>(&mut self, tried: Tried<T, C>) {
        self.push(&tried, "merge sort", check);
        // Keys of each size have values of one size.
        match const { size_of::<T>() } {
            1 | 4 => self.push(&tried, "merge sort of pairs with 4 bytes", check_pairs::<T, C, u32>),
            2 if self.level > Level::Tiny => {
                self.push(&tried, "merge sort of pairs with 8 bytes", check_pairs::<T, C, u64>);
            }
            8 if self.level > Level::Tiny => {
                self.push(&tried, "merge sort of pairs with 12 bytes", check_pairs::<T, C, [u32; 3]>);
            }
            16 => self.push(&tried, "merge sort of pairs with 1 byte", check_pairs::<T, C, u8>),
            _ => {}
        }
    }
}

pub(in crate::merge) fn cases(level: Level) -> Vec<Case> {
    let mut cases = Cases { level, cases: Vec::new() };
    visit_all(level, &mut cases);
    cases.cases
}

fn bench<T: Element>() -> Bench {
    let bytes = |n| 2 * (n * size_of::<T>()) as u64;
    Bench::new("merge sort", T::TYPE, bytes, |device, n| {
        let x = device.upload(&Data::Bits.generate::<T>(n, n as u64))?;
        let state = (device.clone(), x, device.zeroed::<T>(n)?);
        Ok(Climb::new(
            state,
            |(_, _, out)| out.fill(poison()),
            |(device, x, out)| device.sort_into(&*x, Merging(Order::ascending()), out),
            |(_, x, out)| {
                let want = Device::cpu().sort(&x.to_vec()?, Order::ascending())?;
                same_bytes(&out.to_vec()?, &want.to_vec()?, "sorted")
            },
        ))
    })
}

fn bench_pairs() -> Bench {
    let bytes = |n| 16 * n as u64;
    Bench::new("merge sort of pairs with u32", u32::TYPE, bytes, |device, n| {
        let keys = device.upload(&Data::Bits.generate::<u32>(n, n as u64))?;
        let (values, outputs) = (device.iota(n, 0u32, 1)?, (device.zeroed::<u32>(n)?, device.zeroed::<u32>(n)?));
        Ok(Climb::new(
            (device.clone(), keys, values, outputs),
            |(_, _, _, (keys, values))| {
                keys.fill(poison())?;
                values.fill(poison())
            },
            |(device, keys, values, (keys_out, values_out))| {
                device.sort_into(keys.with(&*values), Merging(Order::ascending()), (keys_out, values_out))
            },
            |(_, keys, values, (keys_out, values_out))| {
                let want = Device::cpu().sort(keys.to_vec()?.with(&values.to_vec()?), Order::ascending())?;
                same_bytes(&keys_out.to_vec()?, &want.0.to_vec()?, "keys")?;
                same_bytes(&values_out.to_vec()?, &want.1.to_vec()?, "values")
            },
        ))
    })
}

pub(in crate::merge) fn benches() -> Vec<Bench> {
    vec![bench::<u32>(), bench::<u64>(), bench::<f32>(), bench_pairs()]
}
