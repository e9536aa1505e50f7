//! How arrays are cut into segments.

use super::data::Rng;
use crate::Offset;

/// How the input is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// Segments of that length; the last one shorter.
    Every(usize),
    /// Lengths by a power law, from 0 on.
    PowerLaw,
    /// Runs of segments of that length, and of shorter, longer and empty ones, in turn.
    Mixed(usize),
    /// One segment of nearly everything among many empty ones.
    Huge,
    /// Nothing but empty segments, at one place.
    Empty,
    /// Gaps before the first and behind the last segment.
    Gaps,
    /// Short segments, and among them places with more empty ones than a tile has elements.
    Crowded,
}

impl Cut {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Every(len) => format!("of {len}"),
            Self::PowerLaw => "by a power law".into(),
            Self::Mixed(len) => format!("of {len} and others in turn"),
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
                    // 0 to 2 half of the time, then each next power of two half as often.
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
