//! Ways to divide arrays into segments.

use super::data::Rng;
use crate::Offset;

/// Way to divide an input into segments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// Segments of this length; the last one may be shorter.
    Every(usize),
    /// Lengths by a power law, including 0.
    PowerLaw,
    /// Series of segments of this length, between series of shorter, longer and empty ones.
    Mixed(usize),
    /// One segment of almost all elements among many empty ones.
    Huge,
    /// Only empty segments, all at one offset.
    Empty,
    /// Gaps before the first segment and after the last.
    Gaps,
    /// Short segments. At two offsets there are more empty segments than a GPU's tile has elements.
    Crowded,
}

impl Cut {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Every(len) => format!("of {len}"),
            Self::PowerLaw => "by a power law".into(),
            Self::Mixed(len) => format!("of {len} between others"),
            Self::Huge => "one huge".into(),
            Self::Empty => "all empty".into(),
            Self::Gaps => "between gaps".into(),
            Self::Crowded => "among very many empty ones".into(),
        }
    }

    pub(crate) fn offsets<C: Offset>(self, n: usize) -> Vec<C> {
        let mut offsets = vec![0];
        match self {
            Self::Every(len) => offsets.extend((1..=n.div_ceil(len)).map(|i| n.min(i * len))),
            Self::PowerLaw => {
                let mut rng = Rng::new(n as u64);
                let mut end = 0;
                while end < n {
                    // Half of the lengths are drawn below 2, a quarter below 4, and so on.
                    let scale = 2u64 << (rng.next().trailing_ones() as usize).min(17);
                    end = n.min(end + rng.below(scale) as usize);
                    offsets.push(end);
                }
            }
            Self::Mixed(len) => {
                let runs = [(len, 24), (100 * len, 1), (len, 40), (7, 30), (0, 3), (len, 9), (2 * len, 12)];
                let mut end = 0;
                for (len, count) in runs.into_iter().cycle() {
                    if end == n {
                        break;
                    }
                    offsets.extend((1..=count).map(|i| n.min(end + i * len)));
                    end = n.min(end + len * count);
                }
            }
            Self::Huge => {
                offsets.extend(vec![0; 500]);
                offsets.extend(vec![n - n / 100; 700]);
                offsets.extend(vec![n; 9]);
            }
            Self::Empty => offsets = vec![n / 2; 300],
            Self::Gaps => offsets = vec![n / 3, n / 3 + n / 7, n - n / 5],
            Self::Crowded => {
                offsets.extend((0..n / 3).step_by(7));
                offsets.extend(vec![n / 3; 40_000]);
                offsets.extend((n / 3..n).step_by(5));
                offsets.extend(vec![n; 20_000]);
            }
        }
        offsets.into_iter().map(|x: usize| C::from_i128(x as i128)).collect()
    }
}
