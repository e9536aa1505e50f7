//! Cross-checks, benchmarks and ladders of the primitives of [`oclprim`].
//!
//! [`registry`] lists the specs, one per primitive, and the ladders. Tests and the program `oclprim` read nothing else.
//!
//! Each primitive has a cargo feature. `--no-default-features --features opencl,scan` builds one of them alone, in a
//! fraction of the time.

#![cfg_attr(
    not(feature = "all"),
    allow(
        dead_code,
        unused_imports,
        unused_variables,
        reason = "a build of one primitive uses only a part of the shared code"
    )
)]

pub mod bench;
pub mod check;
mod effort;
pub mod ladder;
pub mod registry;

pub(crate) use oclprim::{
    internals::{parallel, runtime, tuning},
    *,
};

mod op {
    pub(crate) use oclprim::internals::op::*;
}

#[cfg(feature = "histogram")]
mod histogram {
    pub(crate) use oclprim::internals::histogram::*;

    pub(crate) mod edges_spec;
    pub(crate) mod ladder;
    pub(crate) mod shared;
    pub(crate) mod spec;
    pub(crate) mod channels {
        pub(crate) use oclprim::internals::histogram::channels::*;

        pub(crate) mod spec;
    }
    pub(crate) mod groups {
        pub(crate) use oclprim::internals::histogram::groups::*;

        pub(crate) mod spec;
    }
    pub(crate) mod mapped {

        pub(crate) mod spec;
    }
    pub(crate) mod weighted {
        pub(crate) use oclprim::internals::histogram::weighted::*;

        pub(crate) mod spec;
    }
}

#[cfg(feature = "iota")]
mod iota {
    pub(crate) use oclprim::internals::iota::*;

    pub(crate) mod spec;
}

mod layout {
    #[cfg(feature = "copy")]
    pub(crate) mod copy {
        pub(crate) use oclprim::internals::layout::copy::*;

        pub(crate) mod ladder;
        pub(crate) mod shared;
        pub(crate) mod spec;
        pub(crate) mod gather {
            pub(crate) use oclprim::internals::layout::copy::gather::*;

            pub(crate) mod spec;
        }
        pub(crate) mod nd {
            pub(crate) mod spec;
        }
        pub(crate) mod ranges {
            pub(crate) use oclprim::internals::layout::copy::ranges::*;

            pub(crate) mod spec;
        }
        pub(crate) mod reverse {
            pub(crate) use oclprim::internals::layout::copy::reverse::*;

            pub(crate) mod spec;
        }
        pub(crate) mod transfer {
            pub(crate) mod spec;
        }
    }

    #[cfg(feature = "permute")]
    pub(crate) mod permute {
        pub(crate) use oclprim::internals::layout::permute::*;

        pub(crate) mod spec;
    }

    #[cfg(feature = "transpose")]
    pub(crate) mod transpose {
        pub(crate) use oclprim::internals::layout::transpose::*;

        pub(crate) mod ladder;
        pub(crate) mod shared;
        pub(crate) mod spec;
        pub(crate) mod in_place {
            pub(crate) use oclprim::internals::layout::transpose::in_place::*;

            pub(crate) mod spec;
        }
        pub(crate) mod mapped {
            pub(crate) use oclprim::internals::layout::transpose::mapped::*;

            pub(crate) mod spec;
        }
    }
}

#[cfg(feature = "large")]
mod large {
    pub(crate) mod spec;
}

#[cfg(feature = "merge")]
mod merge {
    pub(crate) use oclprim::internals::merge::*;

    pub(crate) mod shared;
    pub(crate) mod spec;
    pub(crate) mod search {
        pub(crate) use oclprim::internals::merge::search::*;

        pub(crate) mod spec;
    }
    pub(crate) mod set {
        pub(crate) use oclprim::internals::merge::set::*;

        pub(crate) mod spec;
    }
    pub(crate) mod sort {

        pub(crate) mod spec;
    }
}

#[cfg(feature = "random")]
mod random {
    pub(crate) use oclprim::internals::random::*;

    pub(crate) mod spec;
}

#[cfg(feature = "reduce")]
mod reduce {
    pub(crate) use oclprim::internals::reduce::*;

    pub(crate) mod ladder;
    pub(crate) mod shared;
    pub(crate) mod spec;
    pub(crate) mod axis {
        pub(crate) use oclprim::internals::reduce::axis::*;

        pub(crate) mod spec;
        pub(crate) mod extremes {
            pub(crate) use oclprim::internals::reduce::axis::extremes::*;

            pub(crate) mod spec;
        }
        pub(crate) mod moments {
            pub(crate) use oclprim::internals::reduce::axis::moments::*;

            pub(crate) mod spec;
        }
    }
    pub(crate) mod by {
        pub(crate) use oclprim::internals::reduce::by::*;

        pub(crate) mod spec;
    }
    pub(crate) mod count {
        pub(crate) use oclprim::internals::reduce::count::*;

        pub(crate) mod spec;
    }
    pub(crate) mod exact {
        pub(crate) use oclprim::internals::reduce::exact::*;

        pub(crate) mod spec;
    }
    pub(crate) mod exact_groups {
        pub(crate) use oclprim::internals::reduce::exact_groups::*;

        pub(crate) mod spec;
    }
    pub(crate) mod mapped {

        pub(crate) mod spec;
    }
    pub(crate) mod segmented {
        pub(crate) use oclprim::internals::reduce::segmented::*;

        pub(crate) mod moments {
            pub(crate) use oclprim::internals::reduce::segmented::moments::gpu;

            pub(crate) mod spec;
        }
        pub(crate) mod spec;
        pub(crate) mod extremes {
            pub(crate) use oclprim::internals::reduce::segmented::extremes::*;

            pub(crate) mod spec;
        }
    }
    pub(crate) mod statistics {
        pub(crate) use oclprim::internals::reduce::statistics::*;

        pub(crate) mod spec;
    }
}

#[cfg(feature = "scan")]
mod scan {
    pub(crate) use oclprim::internals::scan::*;

    pub(crate) mod shared;
    pub(crate) mod spec;
    pub(crate) mod axis {
        pub(crate) use oclprim::internals::scan::axis::*;

        pub(crate) mod spec;
    }
    pub(crate) mod exact {
        pub(crate) use oclprim::internals::scan::exact::*;

        pub(crate) mod spec;
    }
    pub(crate) mod segmented {

        pub(crate) mod spec;
    }
}

#[cfg(feature = "select")]
mod select {
    pub(crate) use oclprim::internals::select::*;

    pub(crate) mod shared;
    pub(crate) mod spec;
    pub(crate) mod adjacent {
        pub(crate) use oclprim::internals::select::adjacent::*;

        pub(crate) mod spec;
    }
    pub(crate) mod by_key {

        pub(crate) mod spec;
    }
    pub(crate) mod runs {

        pub(crate) mod spec;
    }
}

#[cfg(feature = "sort")]
mod sort {
    pub(crate) use oclprim::internals::sort::*;

    pub(crate) mod shared;
    pub(crate) mod spec;
    pub(crate) mod columns {

        pub(crate) mod spec;
    }
    pub(crate) mod in_place {
        pub(crate) use oclprim::internals::sort::in_place::*;

        pub(crate) mod spec;
    }
    pub(crate) mod segmented {
        pub(crate) use oclprim::internals::sort::segmented::*;

        pub(crate) mod spec;
    }
}

mod source {
    pub(crate) use oclprim::internals::source::*;

    #[cfg(feature = "source")]
    pub(crate) mod spec;
}

#[cfg(feature = "topk")]
mod topk {
    pub(crate) use oclprim::internals::topk::*;

    pub(crate) mod spec;
}
