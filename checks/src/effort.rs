//! Effort of a measurement.

/// Number of runs, time limit, and state of the caches.
///
/// ```
/// let thorough = oclprim_checks::bench::Effort { runs: 100, seconds: 10.0, cold: true, ..Default::default() };
/// assert_eq!(thorough.warm_up, 3);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of untimed runs before timing, for compilers, caches and clocks.
    pub warm_up: usize,
    /// Largest number of timed runs; 0 counts as 1.
    pub runs: usize,
    /// Seconds after which no further run starts, once three runs are timed.
    pub seconds: f64,
    /// If true, other data replaces the contents of the last-level cache before each run.
    pub cold: bool,
}

impl Default for Effort {
    fn default() -> Self {
        Self { warm_up: 3, runs: 25, seconds: 2.0, cold: false }
    }
}
