//! Random numbers on the CPU.

use super::{Draw, Philox};
use crate::{Element, ElementType, op::Arithmetic, parallel};

/// Elements per task.
const CHUNK: usize = parallel::SERIAL;

/// Philox4x32-10: a block of a stream, from a counter and a key.
pub(super) fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let ([mut x, mut y, mut z, mut w], [mut low, mut high]) = (counter, key);
    for _ in 0..10 {
        let (a, b) = (0xd251_1f53u64 * u64::from(x), 0xcd9e_8d57u64 * u64::from(z));
        (x, y, z, w) = ((b >> 32) as u32 ^ y ^ low, b as u32, (a >> 32) as u32 ^ w ^ high, a as u32);
        (low, high) = (low.wrapping_add(0x9e37_79b9), high.wrapping_add(0xbb67_ae85));
    }
    [x, y, z, w]
}

/// The 16 bytes of a block, as one number.
fn block(numbers: Philox, number: u64) -> u128 {
    let halves = |x: u64| [x as u32, (x >> 32) as u32];
    let ([a, b], [c, d]) = (halves(number), halves(numbers.stream));
    let words = philox([a, b, c, d], halves(numbers.seed));
    words.iter().rev().fold(0, |all, &word| all << 32 | u128::from(word))
}

pub(super) fn fill<T: Element>(numbers: Philox, draw: &Draw<T>, out: &mut [T]) {
    parallel::chunks_mut(out, CHUNK, &|chunk, part| {
        let draws = 16 / draw.bytes() as u64;
        let mut i = numbers.skipped + (chunk * CHUNK) as u64;
        let mut bits = block(numbers, i / draws);
        for x in part {
            if i.is_multiple_of(draws) {
                bits = block(numbers, i / draws);
            }
            *x = made(draw, bits >> (8 * draw.bytes() as u64 * (i % draws)));
            i = i.wrapping_add(1);
        }
    });
}

/// An element from its bytes of the stream, which are the lowest bytes of `bits`.
fn made<T: Element>(draw: &Draw<T>, bits: u128) -> T {
    match *draw {
        Draw::Whole if T::TYPE.is_float() => T::narrow(unit::<T>(bits)),
        Draw::Whole => T::from_bits_lossy(bits as u64),
        Draw::Integers { lower, span } => {
            let above = if size_of::<T>() < 8 {
                ((u128::from(bits as u64) * u128::from(span)) >> 64) as u64
            } else if span == 0 {
                (bits >> 64) as u64
            } else {
                let (low, high) = (u128::from(bits as u64), bits >> 64);
                ((high * u128::from(span) + ((low * u128::from(span)) >> 64)) >> 64) as u64
            };
            T::from_bits_lossy(lower.wrapping_add(above))
        }
        Draw::Floats { lower, width, scale, upper, last } => {
            let x = T::narrow(lower.add(unit::<T>(bits).mul(width)).mul(scale));
            if x.widen() >= upper { last } else { x }
        }
    }
}

/// The highest bits of a float's bytes as a fraction, which is exact in its type.
fn unit<T: Element>(bits: u128) -> T::Acc {
    let precision = match T::TYPE {
        ElementType::F16 => 11,
        ElementType::Bf16 => 8,
        ElementType::F32 => 24,
        _ => 53,
    };
    let (width, own) = (8 * size_of::<T>() as i32, bits as u64 & (u64::MAX >> (64 - 8 * size_of::<T>())));
    T::Acc::from_f64((own >> (width - precision)) as f64 * 2f64.powi(-precision))
}

#[cfg(test)]
mod tests {
    use super::philox;

    /// Known answers of Random123: counter, key, block.
    #[test]
    fn philox_gives_the_known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let answer = philox(pi, [0xa409_3822, 0x299f_31d0]);
        assert_eq!(answer, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }
}
