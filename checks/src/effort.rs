//! How often a measurement runs.

/// How often to run, and on what caches.
///
/// ```
/// let thorough = oclprim_checks::bench::Effort { runs: 100, seconds: 10.0, cold: true, ..Default::default() };
/// assert_eq!(thorough.warm_up, 3);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Runs before timing, for compilers, caches and clocks.
    pub warm_up: usize,
    /// Timed runs, at most; one at least.
    pub runs: usize,
    /// Seconds after which no further run starts, once there are three.
    pub seconds: f64,
    /// Whether the last-level cache is filled with other data before each run.
    pub cold: bool,
}

impl Default for Effort {
    fn default() -> Self {
        Self { warm_up: 3, runs: 25, seconds: 2.0, cold: false }
    }
}
