//! Memory layouts of arrays.

use super::Level;
use crate::{Layout, Result};

/// Memory layout of an array of a given shape.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LayoutKind {
    Contiguous,
    /// Every axis is reversed.
    Backwards,
    /// Every second element of a last axis that is twice as long.
    Stepped,
    /// The axes are in reverse order in memory.
    Transposed,
    /// The first axis is broadcast.
    Repeated,
}

impl LayoutKind {
    /// The layouts that a level checks.
    pub(crate) fn of(level: Level) -> &'static [Self] {
        match level {
            Level::Tiny => &[Self::Contiguous],
            Level::Quick => &[Self::Contiguous, Self::Transposed],
            Level::Full => &[Self::Contiguous, Self::Backwards, Self::Stepped, Self::Transposed, Self::Repeated],
        }
    }

    pub(crate) fn layout(self, shape: &[usize]) -> Result<Layout> {
        let plain = Layout::contiguous(shape)?;
        let axes = 0..shape.len();
        match self {
            Self::Contiguous => Ok(plain),
            Self::Backwards => axes.into_iter().try_fold(plain, |layout, axis| layout.reverse(axis)),
            Self::Stepped => {
                let mut wide = shape.to_vec();
                wide[shape.len() - 1] *= 2;
                Layout::contiguous(&wide)?.step(shape.len() - 1, 2)
            }
            Self::Transposed => {
                let transposed: Vec<usize> = shape.iter().rev().copied().collect();
                Layout::contiguous(&transposed)?.permute(&axes.rev().collect::<Vec<_>>())
            }
            Self::Repeated => {
                let one = [&[1], &shape[1..]].concat();
                Layout::contiguous(&one)?.broadcast(0, shape[0])
            }
        }
    }
}
