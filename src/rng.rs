//! The generator of test data.

/// The constant that SplitMix64 adds to its state for each number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea, Flood 2014): one word of state, and the same numbers on every machine.
///
/// ```
/// use oclprim::internals::data::Rng;
///
/// let mut rng = Rng::new(1);
/// assert!(rng.below(10) < 10);
/// let mut third = Rng::new(2).skip(2);
/// let mut all = Rng::new(2);
/// assert_eq!([all.next(), all.next(), all.next()][2], third.next());
/// ```
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator; equal seeds give equal sequences.
    ///
    /// ```
    /// use oclprim::internals::data::Rng;
    ///
    /// assert_eq!(Rng::new(7).next(), Rng::new(7).next());
    /// ```
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator after `count` numbers.
    ///
    /// ```
    /// use oclprim::internals::data::Rng;
    ///
    /// let mut rng = Rng::new(7);
    /// rng.next();
    /// assert_eq!(rng.next(), Rng::new(7).skip(1).next());
    /// ```
    #[must_use]
    pub fn skip(self, count: u64) -> Self {
        Self(self.0.wrapping_add(count.wrapping_mul(STEP)))
    }

    /// The next 64 bits.
    ///
    /// ```
    /// let mut rng = oclprim::internals::data::Rng::new(7);
    /// assert_ne!(rng.next(), rng.next());
    /// ```
    #[allow(clippy::should_implement_trait, reason = "an endless stream needs no Option")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, nearly uniform.
    ///
    /// ```
    /// let mut rng = oclprim::internals::data::Rng::new(7);
    /// assert!((0..100).all(|_| rng.below(6) < 6));
    /// ```
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}
