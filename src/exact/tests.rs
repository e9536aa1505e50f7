//! Exact sums against two oracles: a big integer written to be obvious, and the crate `xsum`.

use xsum::Xsum;

use super::{
    ExactSum, chunks,
    oracle::{Term, exact_sum, rounded_sum},
};
use crate::{ErrorKind, Float, bf16, f16, rng::Rng};

/// Random cases for each type: `OCLPRIM_EXACT_CASES`, by default a million in optimised code.
fn cases() -> u64 {
    let default = if cfg!(miri) {
        20
    } else if cfg!(debug_assertions) {
        10_000
    } else {
        1_000_000
    };
    std::env::var("OCLPRIM_EXACT_CASES").map_or(default, |text| text.parse().expect("OCLPRIM_EXACT_CASES is a number"))
}

fn shuffle<T>(x: &mut [T], rng: &mut Rng) {
    for i in (1..x.len()).rev() {
        x.swap(i, rng.below(i as u64 + 1) as usize);
    }
}

/// A finite number with random bits.
fn finite<T: Float>(rng: &mut Rng) -> T {
    loop {
        let x = T::from_bits_lossy(rng.next());
        if x.to_f64().is_finite() {
            return x;
        }
    }
}

/// The number `steps` numbers after `x`, in the direction of larger magnitudes.
fn after<T: Float>(x: T, steps: u64) -> T {
    T::from_bits_lossy(crate::element::bits(x) + steps)
}

/// A few numbers whose sum is hard to round.
fn hard_case<T: Float>(rng: &mut Rng) -> Vec<T> {
    let sign = |x: T, rng: &mut Rng| if rng.below(2) == 0 { x } else { T::ZERO.add(T::from_f64(-x.to_f64())) };
    let least = T::from_bits_lossy(1);
    let most = T::from_bits_lossy(T::TYPE.infinity().unwrap() - 1);
    let precision = T::TYPE.precision();
    let n = 1 + rng.below(9) as usize;
    let mut x: Vec<T> = match rng.below(6) {
        // All exponents.
        0 => (0..n).map(|_| finite(rng)).collect(),
        // Neighbouring exponents, and significands with few bits: many ties.
        1 => {
            let base: T = finite(rng);
            let scaled = |rng: &mut Rng| {
                let factor = (rng.below(5) as f64 - 2.0) * 2f64.powi(-(rng.below(precision as u64 + 4) as i32));
                T::from_f64(base.to_f64() * factor)
            };
            (0..n).map(|_| scaled(rng)).chain([base]).filter(|x| x.to_f64().is_finite()).collect()
        }
        // A number, half of its last place, and sometimes a little more or less.
        2 => {
            let base: T = finite(rng);
            let place = after(base, 1).to_f64() - base.to_f64();
            let mut x = vec![base, T::from_f64(place / 2.0)];
            match rng.below(3) {
                0 => {}
                1 => x.push(sign(least, rng)),
                _ => x.push(T::from_f64(place * 2f64.powi(-2 - rng.below(60) as i32))),
            }
            x.into_iter().filter(|x| x.to_f64().is_finite()).collect()
        }
        // Numbers that cancel, and small ones that remain.
        3 => {
            let large: Vec<T> = (0..n).map(|_| finite(rng)).collect();
            let small = (0..rng.below(4)).map(|_| T::from_bits_lossy(rng.below(1 << precision))).collect::<Vec<_>>();
            let negated = large.iter().map(|x| T::from_f64(-x.to_f64())).collect::<Vec<_>>();
            [large, negated, small].concat()
        }
        // The edges of the range.
        4 => {
            let half =
                T::from_f64((most.to_f64() - T::from_bits_lossy(T::TYPE.infinity().unwrap() - 2).to_f64()) / 2.0);
            let edges = [most, most, half, least, after(least, 1), T::from_bits_lossy(1 << (precision - 1)), half];
            let edge = |_| {
                let edge = edges[rng.below(7) as usize];
                sign(edge, rng)
            };
            (0..n).map(edge).collect()
        }
        // Zeros, infinities and NaN.
        _ => {
            let minus_zero = T::ADD_IDENTITY;
            let all = [minus_zero, minus_zero, T::ZERO, T::HIGHEST, T::LOWEST, T::from_f64(f64::NAN), least];
            let kinds = 1 + rng.below(7);
            (0..n).map(|_| all[rng.below(kinds) as usize]).collect()
        }
    };
    shuffle(&mut x, rng);
    x
}

/// The sum of parts of `x`, merged in a random order.
fn in_parts<T: Float>(x: &[T], rng: &mut Rng) -> ExactSum<T> {
    let (mut parts, mut rest) = (vec![ExactSum::new()], x);
    while !rest.is_empty() {
        let (part, after) = rest.split_at(1 + rng.below(rest.len() as u64) as usize);
        let mut sum = ExactSum::new();
        match rng.below(3) {
            0 => part.iter().for_each(|&x| sum.add(x)),
            1 => sum.add_slice(part),
            _ => sum.extend(part),
        }
        parts.push(sum);
        rest = after;
    }
    while parts.len() > 1 {
        let part = parts.swap_remove(rng.below(parts.len() as u64) as usize);
        let to = rng.below(parts.len() as u64) as usize;
        parts[to].merge(&part);
    }
    parts.remove(0)
}

fn same_bits<T: Float>(a: T, b: T) -> bool {
    crate::element::bits(a) == crate::element::bits(b)
}

fn random_cases<T: Float>(seed: u64) {
    let mut rng = Rng::new(seed);
    for case in 0..cases() {
        let mut x = hard_case::<T>(&mut rng);
        let mut sum = ExactSum::new();
        x.iter().for_each(|&x| sum.add(x));
        let want = exact_sum::<T, T>(&x);
        assert!(same_bits(sum.round(), want), "case {case}: {x:?}: {} instead of {want}", sum.round());
        let want = exact_sum::<T, f64>(&x);
        assert!(same_bits(sum.round_f64(), want), "case {case}: {x:?}: {} instead of {want}", sum.round_f64());
        let bytes = sum.to_bytes();
        shuffle(&mut x, &mut rng);
        assert_eq!(in_parts(&x, &mut rng).to_bytes(), bytes, "case {case}: {x:?}");
        assert_eq!(ExactSum::from_bytes(&bytes).unwrap(), sum, "case {case}: {x:?}");
    }
}

#[test]
fn sums_of_f16_equal_a_big_integer() {
    random_cases::<f16>(1);
}

#[test]
fn sums_of_bf16_equal_a_big_integer() {
    random_cases::<bf16>(2);
}

#[test]
fn sums_of_f32_equal_a_big_integer() {
    random_cases::<f32>(3);
}

#[test]
fn sums_of_f64_equal_a_big_integer() {
    random_cases::<f64>(4);
}

#[test]
fn sums_of_f64_equal_those_of_the_crate_xsum() {
    let mut rng = Rng::new(5);
    for case in 0..cases() {
        let mut x = hard_case::<f64>(&mut rng);
        let mut got = ExactSum::from_iter(&x).round();
        if got < 0.0 {
            // Version 0.1.6 rounds some negative ties to odd, such as -0x1.c5cc546f1fedcp-352 - 0x1p-405.
            x.iter_mut().for_each(|x| *x = -*x);
            got = -got;
        }
        let mut other = xsum::XsumSmall::new();
        other.add_list(&x);
        let want = other.sum();
        // The sign of a sum of 0 is a rule of its own.
        assert!(got == want || (got.is_nan() && want.is_nan()), "case {case}: {x:?}: {got} instead of {want}");
    }
}

fn random_products<T: Float>(seed: u64) {
    let mut rng = Rng::new(seed);
    for case in 0..cases() / 4 {
        let n = 1 + rng.below(5) as usize;
        let near = rng.below(2) == 0;
        let one = crate::element::bits(T::ONE);
        let any = |rng: &mut Rng| if near { T::from_bits_lossy(one + rng.below(1 << 7)) } else { finite::<T>(rng) };
        let mut pairs: Vec<[T; 2]> = (0..n).map(|_| [any(&mut rng), any(&mut rng)]).collect();
        if rng.below(2) == 0 {
            // All products but the first cancel.
            let negated: Vec<_> = pairs[1..].iter().map(|&[a, b]| [T::from_f64(-b.to_f64()), a]).collect();
            pairs.extend(negated);
        }
        let terms: Vec<Term> = pairs.iter().map(|[a, b]| Term::product(a.to_f64(), b.to_f64())).collect();
        let mut sum = ExactSum::new();
        pairs.iter().for_each(|&[a, b]| sum.add_product(a, b));
        let want = rounded_sum::<T>(&terms);
        assert!(sum.round() == want, "case {case}: {pairs:?}: {} instead of {want}", sum.round());
        let mut other = ExactSum::new();
        pairs.iter().rev().for_each(|&[a, b]| other.add_product(b, a));
        assert_eq!(other.to_bytes(), sum.to_bytes(), "case {case}: {pairs:?}");
        sum.subtract(&other);
        assert_eq!(sum.round_f64().to_bits(), 0, "case {case}: {pairs:?}");
    }
}

#[test]
fn sums_of_products_equal_a_big_integer() {
    random_products::<f16>(6);
    random_products::<bf16>(7);
    random_products::<f32>(8);
    random_products::<f64>(9);
}

/// A chunk whose exponents span `spread` binades. All but one of the elements have the exponent `top`; their
/// significands make the sum of the low parts as large as it can be. The first element has the exponent `top - spread`,
/// and its lowest bit is set.
fn widest<T: Float>(top: i32, spread: i32, low: u32) -> Vec<T> {
    let precision = T::TYPE.precision();
    let whole = (1i64 << precision) - 1;
    let size = if low == 0 { whole } else { whole ^ (1 << (low - 1)) };
    let float = |size: i64, exponent: i32| T::from_f64(size as f64 * 2f64.powi(exponent - precision + 1));
    let mut x = vec![float(size, top); chunks::LEN];
    x[0] = float((1 << (precision - 1)) + 1, top - spread);
    x
}

/// Sums of a chunk around a bound, by registers and by digits.
fn chunks_around<T: Float>(bound: i32, low: u32, plain_fails: bool) {
    for spread in bound - 2..=bound + 2 {
        for top in [0, 13, -3] {
            let x = widest::<T>(top, spread, low);
            let mut each = ExactSum::new();
            x.iter().for_each(|&x| each.add(x));
            assert_eq!(ExactSum::from_iter(&x), each, "{} spread {spread} at {top}", T::TYPE);
            let mut minus = ExactSum::new();
            minus.add_slice(&x.iter().map(|x| T::from_f64(-x.to_f64())).collect::<Vec<_>>());
            minus.merge(&each);
            assert_eq!(minus.round_f64().to_bits(), 0, "{} spread {spread} at {top}", T::TYPE);
            if plain_fails {
                let plain: f64 = x.iter().map(|x| x.to_f64()).sum();
                let mut of_plain = ExactSum::<f64>::new();
                of_plain.add(plain);
                let exact: ExactSum<f64> = x.iter().map(|x| x.to_f64()).collect();
                assert_eq!(of_plain == exact, spread <= bound, "{} spread {spread}: the bound is not tight", T::TYPE);
            }
        }
    }
}

#[test]
fn chunks_at_the_bound_of_one_register_are_exact_and_one_binade_more_is_not() {
    chunks_around::<f32>(20, 0, true);
    chunks_around::<bf16>(36, 0, true);
}

#[test]
fn chunks_at_the_bound_of_two_registers_are_exact() {
    // The high part of each large element lacks the 9 lowest bits. The low part is just below half of the high part's
    // last place.
    chunks_around::<f64>(36, 9, false);
    // The large elements are wholly in the high part, and the small one is in the low part. `low` clears one bit.
    for low in 0..=24 {
        chunks_around::<f32>(65, low, false);
    }
}

/// Random chunks: a spread of exponents, a length, zeros and a special value now and then.
fn random_chunks<T: Float>(seed: u64) {
    let mut rng = Rng::new(seed);
    let range = -T::TYPE.least_exponent() as u64;
    for _ in 0..cases() / 100 {
        let n = rng.below(3 * chunks::LEN as u64) as usize;
        let most = if rng.below(4) == 0 { 2 * range } else { 80 };
        let spread = 1 + rng.below(most);
        let base = rng.below(2 * range) as i32 - range as i32;
        let mut x: Vec<T> = (0..n)
            .map(|_| {
                let size = (rng.next() >> 11) as f64 * 2f64.powi(-53);
                let exponent = base + rng.below(spread) as i32;
                let x = T::from_f64(size * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2));
                let x = if x.to_f64().is_finite() { x } else { T::ONE };
                if rng.below(2) == 0 { x } else { T::from_f64(-x.to_f64()) }
            })
            .collect();
        if n > 0 && rng.below(4) == 0 {
            let special = [T::HIGHEST, T::LOWEST, T::from_f64(f64::NAN), T::ZERO, T::ADD_IDENTITY];
            x[rng.below(n as u64) as usize] = special[rng.below(5) as usize];
        }
        let mut each = ExactSum::new();
        x.iter().for_each(|&x| each.add(x));
        let mut sum = ExactSum::new();
        sum.add_slice(&x);
        assert_eq!(sum, each, "{} {n} elements", T::TYPE);
        shuffle(&mut x, &mut rng);
        assert_eq!(in_parts(&x, &mut rng).to_bytes(), each.to_bytes(), "{} {n} elements", T::TYPE);
    }
}

#[test]
fn chunks_of_random_spread_equal_sums_one_by_one() {
    random_chunks::<f16>(10);
    random_chunks::<bf16>(11);
    random_chunks::<f32>(12);
    random_chunks::<f64>(13);
}

/// A mean m of n numbers is the nearest float if |sum - m n| is at most n times half of the last place. On a tie, m is
/// even.
#[test]
fn means_are_correctly_rounded() {
    let mut rng = Rng::new(20);
    let mut ties = 0;
    for case in 0..cases() / 10 {
        let n = 1 + rng.below(if case % 2 == 0 { 8 } else { 1000 });
        let field = |rng: &mut Rng| (1023 + rng.below(60)) << 52;
        let sign = |rng: &mut Rng| rng.next() & 1 << 63;
        // All bits, or few, so that there are ties.
        let mask = [!0, 3, 1 << 51][rng.below(3) as usize];
        let mut sum: ExactSum<f64> = (0..3 + rng.below(3))
            .map(|_| f64::from_bits(sign(&mut rng) | field(&mut rng) | (rng.next() & mask & ((1 << 52) - 1))))
            .collect();
        let mean = sum.mean(n);
        sum.subtract(&{
            let mut product = ExactSum::new();
            product.add_product(mean, n as f64);
            product
        });
        // The last place below a power of two is half as large.
        let below = mean.to_bits() & ((1 << 52) - 1) == 0 && (sum.round() < 0.0) == (mean > 0.0);
        let place = (f64::from_bits(mean.abs().to_bits() + 1) - mean.abs()) / if below { 2.0 } else { 1.0 };
        sum.merge(&sum.clone());
        let mut most = ExactSum::new();
        most.add_product(place, n as f64);
        if sum.round() < 0.0 {
            most.merge(&sum);
        } else {
            most.subtract(&sum);
        }
        let left = most.round();
        ties += u32::from(left == 0.0);
        let even = mean.to_bits().is_multiple_of(2);
        assert!(left > 0.0 || (left == 0.0 && even) || mean == 0.0, "case {case}: {mean} of {n}");
    }
    assert!(ties > 0);
    for n in [1, 3, u64::MAX] {
        let mean = |x: &[f32]| ExactSum::from_iter(x).mean(n).to_bits();
        assert_eq!(mean(&[-0.0]), (-0f32).to_bits());
        assert_eq!(mean(&[1.0, -1.0]), 0);
        assert_eq!(mean(&[f32::NEG_INFINITY]), f32::NEG_INFINITY.to_bits());
    }
    // Half of the least number is a tie, and a third of it is below.
    assert_eq!(ExactSum::from_iter([f16::from_bits(1)]).mean(2).to_bits(), 0);
    assert_eq!(ExactSum::from_iter([f16::from_bits(3)]).mean(2).to_bits(), 2);
    assert_eq!(ExactSum::from_iter([f16::from_bits(0x8001)]).mean(3).to_bits(), 0x8000);
    assert_eq!(ExactSum::from_iter([1f64]).mean(u64::MAX), 2f64.powi(-64));
}

#[test]
fn zeros_have_one_sign_rule() {
    fn signs<T: Float>() {
        let sum = |x: &[T]| crate::element::bits(ExactSum::from_iter(x).round());
        let (plus, minus) = (T::ZERO, T::ADD_IDENTITY);
        let (zero, minus_zero) = (crate::element::bits(plus), crate::element::bits(minus));
        assert_eq!(sum(&[]), zero);
        assert_eq!(sum(&[minus]), minus_zero);
        assert_eq!(sum(&[minus; 2000]), minus_zero);
        assert_eq!(sum(&[minus, plus]), zero);
        assert_eq!(sum(&[plus]), zero);
        assert_eq!(sum(&[T::ONE, T::from_f64(-1.0)]), zero);
        // Differences.
        let difference = |x: &[T], y: &[T]| {
            let mut sum = ExactSum::from_iter(x);
            sum.subtract(&ExactSum::from_iter(y));
            crate::element::bits(sum.round())
        };
        assert_eq!(difference(&[minus], &[]), minus_zero);
        assert_eq!(difference(&[minus], &[minus]), zero);
        assert_eq!(difference(&[minus], &[plus]), zero);
        assert_eq!(difference(&[T::ONE], &[T::ONE]), zero);
    }
    signs::<f16>();
    signs::<bf16>();
    signs::<f32>();
    signs::<f64>();
    // A product below the range keeps its sign.
    let mut sum = ExactSum::new();
    sum.add_product(-f64::MIN_POSITIVE, f64::MIN_POSITIVE);
    assert_eq!(sum.round().to_bits(), (-0f64).to_bits());
}

#[test]
fn infinities_and_nan_win_in_any_order() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let sum = |x: &[f32]| ExactSum::from_iter(x);
    assert_eq!(sum(&[1.0, inf, -f32::MAX]).round(), inf);
    assert_eq!(sum(&[-inf, f32::MAX, 1.0]).round(), -inf);
    for x in [[inf, -inf, 0.0], [nan, inf, 0.0], [-f32::NAN, 1.0, 2.0]] {
        assert_eq!(sum(&x).round().to_bits(), f32::NAN.to_bits(), "{x:?}");
        assert_eq!(sum(&x).round_f64().to_bits(), f64::NAN.to_bits(), "{x:?}");
    }
    // Equal values have equal bytes, whatever the finite summands were.
    assert_eq!(sum(&[inf, 1.0]).to_bytes(), sum(&[2.0, inf, inf]).to_bytes());
    assert_eq!(sum(&[inf, -inf]).to_bytes(), sum(&[nan, 7.0]).to_bytes());
    let difference = |x: &[f32], y: &[f32]| {
        let mut all = sum(x);
        all.subtract(&sum(y));
        all.round()
    };
    assert_eq!(difference(&[1.0], &[inf]), -inf);
    assert_eq!(difference(&[-inf], &[inf]), -inf);
    assert!(difference(&[inf], &[inf]).is_nan() && difference(&[1.0], &[nan]).is_nan());
    let mut product = ExactSum::new();
    product.add_product(0.0f64, f64::INFINITY);
    assert!(product.round().is_nan());
}

#[test]
fn a_sum_that_is_subtracted_is_undone() {
    let mut rng = Rng::new(14);
    for _ in 0..cases() / 100 {
        let [x, y] = [(); 2].map(|()| (0..rng.below(20)).map(|_| finite::<f64>(&mut rng)).collect::<Vec<_>>());
        let (mut all, y) = (ExactSum::from_iter(&x), ExactSum::from_iter(&y));
        all.merge(&y);
        all.subtract(&y);
        let x = ExactSum::from_iter(&x);
        assert!(all == x || x == ExactSum::new(), "{} instead of {}", all.round(), x.round());
        assert_eq!(all.round().to_bits(), x.round().to_bits());
    }
}

/// 2^64 times the largest product, by merges of a sum with itself, then back to 0.
#[test]
fn doubled_sums_have_room_for_2_to_the_64_products() {
    let most = f64::MAX;
    let mut all = ExactSum::new();
    all.add_product(most, -most);
    let one = all.clone();
    for _ in 0..64 {
        all.merge(&all.clone());
    }
    assert_eq!(all.round(), f64::NEG_INFINITY);
    let mut left = all.clone();
    left.subtract(&one);
    left.subtract(&all);
    left.merge(&one);
    left.merge(&one);
    assert_eq!(left, one);
    // Beyond the range the value wraps, without a panic.
    for _ in 0..200 {
        all.merge(&all.clone());
    }
    assert_eq!(all.round(), 0.0);
}

#[test]
fn hostile_bytes_are_errors() {
    fn hostile<T: Float>(seed: u64) {
        let bytes = ExactSum::from_iter([T::ONE, T::ONE]).to_bytes();
        let refused = |bytes: &[u8], message: &str| {
            let error = ExactSum::<T>::from_bytes(bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(message), "{error}");
        };
        for len in 0..bytes.len() {
            refused(&bytes[..len], &format!("{len} bytes instead of {}", bytes.len()));
        }
        refused(&[&bytes[..], &[0]].concat(), "bytes instead of");
        for (at, value, message) in [
            (0, 0, "version 0"),
            (0, 2, "version 2"),
            (1, 0, "type 0"),
            (1, 5, "type 5"),
            (2, 6, "kind 6"),
            (2, 255, "kind 255"),
            (2, 0, "digits with kind 0"),
            (2, 5, "digits with kind 5"),
            (3, 1, "byte 3 is 1"),
        ] {
            let mut changed = bytes.clone();
            changed[at] = value;
            refused(&changed, message);
        }
        // Any digits are valid, and a sum has only one sequence of bytes.
        let mut rng = Rng::new(seed);
        for _ in 0..cases() / 100 {
            let mut random = bytes.clone();
            random[4..].iter_mut().for_each(|byte| *byte = rng.next() as u8);
            let sum = ExactSum::<T>::from_bytes(&random).unwrap();
            assert_eq!(sum.to_bytes(), random);
            let _ = (sum.round(), sum.round_f64());
            let mut twice = sum.clone();
            twice.merge(&sum);
            twice.subtract(&sum);
            assert_eq!(twice, sum);
        }
    }
    hostile::<f16>(15);
    hostile::<bf16>(16);
    hostile::<f32>(17);
    hostile::<f64>(18);
}

/// The format must not change: bytes that other programs have stored.
#[test]
fn bytes_of_version_1_are_stable() {
    let bytes = ExactSum::from_iter([f16::from_f32(-1.0)]).to_bytes();
    let mut want = [[1, 1, 2, 0].as_slice(), &[0; 6], &[0xff; 14]].concat();
    assert_eq!(bytes, want);
    want = [[1, 3, 2, 0].as_slice(), &[0; 37], &[4], &[0; 42]].concat();
    assert_eq!(ExactSum::from_iter([1.0f32]).to_bytes(), want);
    want = [[1, 4, 3, 0].as_slice(), &[0; 536]].concat();
    assert_eq!(ExactSum::from_iter([f64::INFINITY]).to_bytes(), want);
    want = [[1, 2, 1, 0].as_slice(), &[0; 76]].concat();
    assert_eq!(ExactSum::from_iter([bf16::NEG_ZERO]).to_bytes(), want);
}
