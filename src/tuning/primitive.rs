//! The primitives that have parameters.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use crate::{Error, Result};

macro_rules! primitives {
    ($($(#[$doc:meta])* $primitive:ident $name:literal,)*) => {
        /// A primitive that has parameters.
        ///
        /// ```
        /// use oclprim::tuning::Primitive;
        ///
        /// assert_eq!("topk".parse::<Primitive>()?, Primitive::TopK);
        /// assert!(Primitive::ALL.iter().any(|primitive| primitive.to_string() == "reduce"));
        /// # Ok::<(), oclprim::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Primitive {
            $($(#[$doc])* $primitive,)*
        }

        impl Primitive {
            /// All primitives that have parameters.
            ///
            /// ```
            /// use oclprim::tuning::Primitive;
            ///
            /// for primitive in Primitive::ALL {
            ///     assert_eq!(primitive.name().parse::<Primitive>()?, primitive);
            /// }
            /// # Ok::<(), oclprim::Error>(())
            /// ```
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$primitive),*];

            /// The name in tuning files and on the command line.
            ///
            /// ```
            /// assert_eq!(oclprim::tuning::Primitive::CopyRanges.name(), "copy_ranges");
            /// ```
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$primitive => $name,)*
                }
            }
        }
    };
}
primitives! {
    /// Reductions, also along an axis, of segments and by key.
    Reduce "reduce",
    /// Scans.
    Scan "scan",
    /// Contiguous copies.
    Copy "copy",
    /// Copies of many ranges, and strided copies.
    CopyRanges "copy_ranges",
    /// Gathers and scatters.
    Gather "gather",
    /// Reversals.
    Reverse "reverse",
    /// Histograms.
    Histogram "histogram",
    /// Transpositions, also in place and of expressions.
    Transpose "transpose",
    /// Permutations of axes.
    Permute "permute",
    /// Radix sorts.
    Sort "sort",
    /// Merges, merge sorts, searches and set operations.
    Merge "merge",
    /// Selections, partitions and runs.
    Select "select",
    /// Top-k and quantiles.
    TopK "topk",
    /// Random numbers.
    Random "random",
    /// Arithmetic sequences.
    Iota "iota",
    /// Transfers of host slices to a device with memory of its own, and back.
    Transfer "transfer",
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Primitive {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|primitive| primitive.name() == name).ok_or_else(|| {
            let all = Self::ALL.map(Self::name).join(", ");
            Error::invalid(format!("primitive `{name}` has no parameters: expected one of {all}"))
        })
    }
}

impl Serialize for Primitive {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
