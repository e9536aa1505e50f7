//! Internals that `oclprim-checks` needs besides the public API: plans, tile sizes, launches. Internals are not part of
//! the API and may change at any time.

pub mod data;
#[cfg(feature = "instances")]
pub mod instances;
pub mod testing;

pub use crate::{with_element, with_integer};
pub mod cache {
    pub use crate::runtime::cache::{Contents, clear, contents};
}
pub mod parallel {
    pub use crate::parallel::*;
}

pub mod copy {
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::copy::gpu::*;
    }
    pub mod gather {
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::copy::gather::gpu::*;
        }
    }
    pub mod nd {
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::copy::nd::gpu::*;
        }
    }
    pub mod ranges {
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::copy::ranges::gpu::*;
        }
    }
    pub mod reverse {
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::copy::reverse::gpu::*;
        }
    }
}

pub mod histogram {
    pub use crate::histogram::*;
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::histogram::{form::*, gpu::*};
    }
    pub mod bins {
        pub use crate::histogram::{bins::*, edges::*, slots::*};
    }
    pub mod channels {
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::histogram::channels::gpu::*;
        }
    }
    pub mod weighted {
        pub use crate::histogram::weighted::*;
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::histogram::weighted::gpu::*;
        }
    }
}

pub mod iota {
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::iota::gpu::*;
    }
}

pub mod merge {
    #[cfg(feature = "opencl")]
    pub use crate::merge::*;
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::merge::gpu::*;
    }
    pub mod search {
        pub use crate::merge::search::*;
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::merge::search::gpu::*;
        }
    }
    pub mod set {
        pub use crate::merge::set::*;
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::merge::set::gpu::*;
        }
    }
    pub mod sort {
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::merge::sort::gpu::*;
        }
    }
}

pub mod permute {
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::permute::gpu::*;
    }
    pub mod job {
        pub use crate::permute::job::*;
    }
}

pub mod random {
    pub use crate::random::*;
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::random::gpu::*;
    }
}

pub mod reduce {
    pub use crate::reduce::*;
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::reduce::gpu::*;
    }
    pub mod cpu {
        pub use crate::reduce::cpu::*;
    }
    pub mod axis {
        pub use crate::reduce::axis::*;
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::reduce::axis::gpu::*;
        }
        pub mod extremes {
            pub use crate::reduce::axis::extremes::*;
            #[cfg(feature = "opencl")]
            pub mod gpu {
                pub use crate::reduce::axis::extremes::gpu::*;
            }
        }
        pub mod moments {
            pub use crate::reduce::axis::moments::*;
            #[cfg(feature = "opencl")]
            pub mod gpu {
                pub use crate::reduce::axis::moments::gpu::*;
            }
        }
    }
    pub mod by {
        pub use crate::reduce::by::*;
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::reduce::by::gpu::*;
        }
    }
    pub mod count {
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::reduce::count::gpu::*;
        }
    }
    pub mod segmented {
        pub use crate::reduce::segmented::*;
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::reduce::segmented::gpu::*;
        }
    }
    pub mod statistics {
        pub use crate::reduce::statistics::*;
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::reduce::statistics::gpu::*;
        }
    }
}

pub mod scan {
    pub use crate::scan::*;
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::scan::gpu::*;
    }
    pub mod cpu {
        pub use crate::scan::cpu::*;
    }
    pub mod axis {
        pub use crate::scan::axis::*;
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::scan::axis::gpu::*;
        }
    }
}

pub mod select {
    pub use crate::select::*;
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::select::gpu::*;
    }
    pub mod adjacent {
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::select::adjacent::gpu::*;
        }
    }
}

pub mod sort {
    pub use crate::sort::*;
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::sort::gpu::*;
    }
    pub mod keys {
        pub use crate::keys::*;
    }
    pub mod columns {
        pub use crate::sort::columns::*;
    }
    pub mod in_place {
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::sort::in_place::gpu::*;
        }
    }
    pub mod segmented {
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::sort::segmented::gpu::*;
        }
    }
}

pub mod topk {
    pub use crate::topk::*;
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::topk::gpu::*;
    }
    pub mod quantile {
        pub use crate::topk::quantile::*;
    }
}

pub mod transpose {
    pub use crate::transpose::*;
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::transpose::gpu::*;
    }
    pub mod batch {
        pub use crate::transpose::batch::*;
    }
    pub mod in_place {
        pub use crate::transpose::in_place::*;
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::transpose::in_place::gpu::*;
        }
    }
    pub mod mapped {
        #[cfg(feature = "opencl")]
        pub mod gpu {
            pub use crate::transpose::mapped::gpu::*;
        }
    }
}

pub mod op {
    pub use crate::op::*;
    #[cfg(feature = "opencl")]
    pub mod gpu {
        pub use crate::op::gpu::*;
    }
}

pub mod tuning {
    pub use crate::tuning::*;
}

pub mod runtime {
    pub use crate::runtime::*;
    #[cfg(feature = "opencl")]
    pub mod opencl {
        pub use crate::runtime::opencl::*;
    }
}

/// The kernels of the ladders.
pub mod kernels {
    pub const COPY: &str = include_str!("../../cl/ladder/copy.cl");
    pub const HISTOGRAM: &str = include_str!("../../cl/ladder/histogram.cl");
    pub const REDUCE: &str = include_str!("../../cl/ladder/reduce.cl");
    pub const TRANSPOSE: &str = include_str!("../../cl/ladder/transpose.cl");
}
