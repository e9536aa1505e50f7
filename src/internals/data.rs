//! Reproducible test data with difficult values.

use crate::{Element, parallel};
pub use crate::{element::bits, rng::Rng};

/// Elements that one task generates.
const CHUNK: usize = 1 << 16;

/// Kind of test data.
///
/// ```
/// use oclprim::internals::data::Data;
///
/// let ramp: Vec<f32> = Data::Ramp.generate(4, 0);
/// assert_eq!((Data::Ramp.name(), &ramp[..]), ("ramp", &[0.0, 1.0, 2.0, 3.0][..]));
/// assert_eq!(Data::Random.generate::<u64>(100, 1), Data::Random.generate::<u64>(100, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Data {
    /// Uniform over all bit patterns for integers; over [-1, 1) for floats.
    Random,
    /// Uniform over all bit patterns, so that floats include NaN, infinities and subnormals.
    Bits,
    /// 0, 1, 2, …, 119 in rotation, which every type holds exactly.
    Ramp,
    /// The same value for every element, which is not 0 and not 1.
    Constant,
    /// The type's highest value, its lowest and 0, in rotation.
    Extremes,
    /// Finite values with some -0, NaN and infinities; for integers, the lowest or the highest value at random.
    Special,
    /// Only NaN, of either sign and any payload; integers as [`Data::Special`].
    Nan,
}

impl Data {
    /// Every kind of test data.
    ///
    /// ```
    /// use oclprim::internals::data::Data;
    ///
    /// assert!(Data::ALL.iter().all(|data| data.generate::<f32>(100, 1).len() == 100));
    /// ```
    pub const ALL: [Self; 7] =
        [Self::Random, Self::Bits, Self::Ramp, Self::Constant, Self::Extremes, Self::Special, Self::Nan];

    /// The kind's name, such as `random`.
    ///
    /// ```
    /// assert_eq!(oclprim::internals::data::Data::Ramp.name(), "ramp");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Bits => "bits",
            Self::Ramp => "ramp",
            Self::Constant => "constant",
            Self::Extremes => "extremes",
            Self::Special => "special",
            Self::Nan => "NaN",
        }
    }

    /// `n` elements, the same for equal arguments on every machine.
    ///
    /// ```
    /// assert_eq!(oclprim::internals::data::Data::Ramp.generate::<f64>(4, 1), [0.0, 1.0, 2.0, 3.0]);
    /// ```
    pub fn generate<T: Element>(self, n: usize, seed: u64) -> Vec<T> {
        let mut all = vec![T::ZERO; n];
        parallel::chunks_mut(&mut all, CHUNK, &|chunk, part| self.write(part, chunk * CHUNK, seed));
        all
    }

    /// Writes the elements from index `first` on.
    fn write<T: Element>(self, part: &mut [T], first: usize, seed: u64) {
        let mut rng = Rng::new(seed).skip(first as u64);
        let float = T::TYPE.is_float();
        for (i, x) in (first..).zip(part) {
            let bits = rng.next();
            *x = match self {
                Self::Random if float => T::from_f64(unit(bits)),
                Self::Random | Self::Bits => T::from_bits_lossy(bits),
                Self::Ramp => T::from_f64((i % 120) as f64),
                Self::Constant => T::from_f64(3.0),
                Self::Extremes => [T::HIGHEST, T::LOWEST, T::ZERO][i % 3],
                Self::Special | Self::Nan if !float => [T::LOWEST, T::HIGHEST][(bits & 1) as usize],
                Self::Special => match bits % 97 {
                    0 => T::from_f64(f64::NAN),
                    1 => T::HIGHEST,
                    2 => T::LOWEST,
                    3..=20 => T::ADD_IDENTITY,
                    21..=40 => T::ZERO,
                    _ => T::from_f64(unit(bits)),
                },
                Self::Nan => nan(bits),
            };
        }
    }
}

/// A NaN with the sign and the payload of `bits`; its lowest payload bit is always 1.
fn nan<T: Element>(bits: u64) -> T {
    T::from_bits_lossy(self::bits(T::HIGHEST) | bits | 1)
}

/// `n` elements of random bits, for tests where only the size of elements matters.
pub fn random_bits<T: bytemuck::Pod>(n: usize, seed: u64) -> Vec<T> {
    let mut all: Vec<T> = bytemuck::zeroed_vec(n);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut all);
    parallel::chunks_mut(bytes, 8 * CHUNK, &|chunk, part| {
        let mut rng = Rng::new(seed).skip((chunk * CHUNK) as u64);
        part.chunks_mut(8).for_each(|word| word.copy_from_slice(&rng.next().to_le_bytes()[..word.len()]));
    });
    all
}

/// `n` elements. `element(i, rng)` makes element `i`, and may draw any number of random numbers.
pub fn random_by<T: bytemuck::Pod + Send>(
    n: usize,
    seed: u64,
    element: impl Fn(usize, &mut Rng) -> T + Sync,
) -> Vec<T> {
    let mut all = vec![T::zeroed(); n];
    parallel::chunks_mut(&mut all, CHUNK, &|chunk, part| {
        let mut rng = Rng::new(Rng::new(seed).skip(chunk as u64).next());
        (chunk * CHUNK..).zip(part).for_each(|(i, x)| *x = element(i, &mut rng));
    });
    all
}

/// The indices that sort `numbers` stably. The function is here because release builds compile `oclprim-checks` for
/// size.
pub fn sorted_indices(numbers: impl IntoIterator<Item = u128>) -> Vec<usize> {
    sorted(numbers.into_iter().zip(0..).collect())
}

fn sorted(mut pairs: Vec<(u128, usize)>) -> Vec<usize> {
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, index)| index).collect()
}

fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}
