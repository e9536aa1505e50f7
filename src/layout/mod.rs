//! Movement of elements to another layout: [copies](copy), [permutations of axes](permute) and
//! [transpositions](transpose).
//!
//! Most permutations are copies or transpositions, and a copy between N-dimensional views is a permutation.

pub mod copy;
pub mod permute;
pub mod transpose;
