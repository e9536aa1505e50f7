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
pub mod oracle {
    pub use crate::exact::oracle::*;
}
pub mod parallel {
    pub use crate::parallel::*;
}

pub mod histogram {
    pub use crate::histogram::*;
    pub mod gpu {
        pub use crate::histogram::{form::*, gpu::*};
    }
    pub mod bins {
        pub use crate::histogram::{bins::*, edges::*, slots::*};
    }
    pub mod channels {
        pub mod gpu {
            pub use crate::histogram::channels::gpu::*;
        }
    }
    pub mod groups {
        pub mod gpu {
            pub use crate::histogram::groups::gpu::*;
        }
    }
    pub mod weighted {
        pub use crate::histogram::weighted::*;
        pub mod gpu {
            pub use crate::histogram::weighted::gpu::*;
        }
    }
}

pub mod iota {
    pub mod gpu {
        pub use crate::iota::gpu::*;
    }
}

pub mod layout {
    pub mod copy {
        pub mod gpu {
            pub use crate::layout::copy::gpu::*;
        }
        pub mod gather {
            pub mod gpu {
                pub use crate::layout::copy::gather::gpu::*;
            }
        }
        pub mod nd {
            pub mod gpu {
                pub use crate::layout::copy::nd::gpu::*;
            }
        }
        pub mod ranges {
            pub mod gpu {
                pub use crate::layout::copy::ranges::gpu::*;
            }
        }
        pub mod reverse {
            pub mod gpu {
                pub use crate::layout::copy::reverse::gpu::*;
            }
        }
    }
    pub mod permute {
        pub mod gpu {
            pub use crate::layout::permute::gpu::*;
        }
        pub mod job {
            pub use crate::layout::permute::job::*;
        }
    }
    pub mod transpose {
        pub use crate::layout::transpose::*;
        pub mod gpu {
            pub use crate::layout::transpose::gpu::*;
        }
        pub mod batch {
            pub use crate::layout::transpose::matrices::*;
        }
        pub mod in_place {
            pub use crate::layout::transpose::in_place::*;
            pub mod gpu {
                pub use crate::layout::transpose::in_place::gpu::*;
            }
        }
        pub mod mapped {
            pub mod gpu {
                pub use crate::layout::transpose::mapped::gpu::*;
            }
        }
    }
}

pub mod merge {
    pub use crate::merge::*;
    pub mod gpu {
        pub use crate::merge::gpu::*;
    }
    pub mod search {
        pub use crate::merge::search::*;
        pub mod gpu {
            pub use crate::merge::search::gpu::*;
        }
    }
    pub mod set {
        pub use crate::merge::set::*;
        pub mod gpu {
            pub use crate::merge::set::gpu::*;
        }
    }
}

pub mod random {
    pub use crate::random::*;
    pub mod gpu {
        pub use crate::random::gpu::*;
    }
}

pub mod reduce {
    pub use crate::reduce::*;
    pub mod exact {
        pub use crate::reduce::exact::*;
    }
    pub mod exact_groups {
        pub use crate::reduce::exact_groups::{Exact, gpu::*};
    }
    pub mod gpu {
        pub use crate::reduce::gpu::*;
    }
    pub mod cpu {
        pub use crate::reduce::cpu::*;
    }
    pub mod axis {
        pub use crate::reduce::axis::*;
        pub mod gpu {
            pub use crate::reduce::axis::gpu::*;
        }
        pub mod exact {
            pub use crate::reduce::axis::exact::*;
        }
        pub mod extremes {
            pub mod gpu {
                pub use crate::reduce::axis::extremes::gpu::*;
            }
        }
        pub mod moments {
            pub use crate::reduce::axis::moments::*;
            pub mod gpu {
                pub use crate::reduce::axis::moments::gpu::*;
            }
        }
    }
    pub mod by {
        pub use crate::reduce::by::*;
        pub mod gpu {
            pub use crate::reduce::by::gpu::*;
        }
    }
    pub mod count {
        pub mod gpu {
            pub use crate::reduce::count::gpu::*;
        }
    }
    pub mod segmented {
        pub use crate::reduce::segmented::*;
        pub mod gpu {
            pub use crate::reduce::segmented::gpu::*;
        }
        pub mod extremes {
            pub mod gpu {
                pub use crate::reduce::segmented::extremes::gpu::*;
            }
        }
        pub mod moments {
            pub mod gpu {
                pub use crate::reduce::segmented::moments::gpu::*;
            }
        }
    }
    pub mod statistics {
        pub use crate::reduce::statistics::*;
        pub mod gpu {
            pub use crate::reduce::statistics::gpu::*;
        }
    }
}

pub mod scan {
    pub use crate::scan::*;
    pub mod gpu {
        pub use crate::scan::gpu::*;
    }
    pub mod cpu {
        pub use crate::scan::cpu::*;
    }
    pub mod axis {
        pub use crate::scan::axis::*;
        pub mod gpu {
            pub use crate::scan::axis::gpu::*;
        }
    }
    pub mod by {
        pub use crate::scan::by::*;
        pub mod gpu {
            pub use crate::scan::by::gpu::*;
        }
    }
    pub mod exact {
        pub use crate::scan::exact::*;
    }
}

pub mod select {
    pub use crate::select::*;
    pub mod gpu {
        pub use crate::select::gpu::*;
    }
    pub mod adjacent {
        pub mod gpu {
            pub use crate::select::adjacent::gpu::*;
        }
    }
}

pub mod sort {
    pub use crate::sort::*;
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
        pub mod gpu {
            pub use crate::sort::in_place::gpu::*;
        }
    }
    pub mod segmented {
        pub mod gpu {
            pub use crate::sort::segmented::gpu::*;
        }
    }
}

pub mod source {
    pub use crate::source::{converted::Converted, *};
    pub mod gpu {
        pub use crate::source::gpu::*;
    }
    pub mod load {
        pub use crate::source::load::*;
    }
}

pub mod topk {
    pub use crate::topk::*;
    pub mod gpu {
        pub use crate::topk::gpu::*;
    }
    pub mod quantile {
        pub use crate::topk::quantile::*;
    }
    pub mod quantiles {
        pub mod gpu {
            pub use crate::topk::quantiles::gpu::*;
        }
    }
}

pub mod op {
    pub use crate::op::*;
    pub mod gpu {
        pub use crate::op::gpu::*;
    }
}

pub mod tuning {
    pub use crate::tuning::*;
}

pub mod runtime {
    pub use crate::runtime::*;
    pub mod opencl {
        pub use crate::runtime::opencl::*;
    }
}

/// The kernels of the ladders.
pub mod kernels {
    pub const COPY: &str = kernel_text!("ladder/copy.cl");
    pub const HISTOGRAM: &str = kernel_text!("ladder/histogram.cl");
    pub const REDUCE: &str = kernel_text!("ladder/reduce.cl");
    pub const TRANSPOSE: &str = kernel_text!("ladder/transpose.cl");
}
