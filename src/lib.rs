//! Data-parallel primitives on OpenCL devices, and on the CPU through the same API.
//!
//! ```
//! use oclprim::{Device, op::Sum};
//!
//! let device = Device::best()?; // a GPU that passes its self-test, else the CPU
//! let x = device.upload(&[1.0f32, 2.0, 3.5])?;
//! assert_eq!(device.reduce(&x, Sum)?, 6.5);
//! # Ok::<(), oclprim::Error>(())
//! ```
//!
//! The crate builds and starts without OpenCL. At run time it opens libOpenCL, OpenCL.dll or Apple's framework if one
//! is installed.
//!
//! # Primitives
//!
//! Nearly all primitives are methods of [`Device`]; `fill` and `copy_within` are methods of [`Buffer`], and
//! [`ExactSum`] is a type of its own. Primitives take host slices, [`Buffer`]s or [`View`]s ([`Input`]). Methods that
//! end in `_into` write to the caller's [`Output`]; temporary memory belongs to the device's queue
//! ([`Device::reserve`]).
//! Many methods also take expressions over slices, buffers and views: a [`Source`].
//!
//! | | |
//! |---|---|
//! | [`reduce`](Device::reduce), [`arg_min`](Device::arg_min), [`arg_max`](Device::arg_max) | one value from many: [`reduce`] |
//! | [`transform`](Device::transform) | the elements of an expression. Each of several expressions has an output of its own: [`source`] |
//! | [`min_max`](Device::min_max), [`statistics`](Device::statistics), [`mean`](Device::mean), [`variance`](Device::variance) | several statistics in one pass: [`reduce::statistics`] |
//! | [`count`](Device::count), [`any`](Device::any), [`all`](Device::all) | `count`: number of elements that meet a [condition](op::Condition). `any` and `all`: whether one element, or every element, meets it. Also of each group: [`reduce::count`] |
//! | [`reduce`](Device::reduce) with a user-defined [operator](op::Operator) | one value from many, over structs too; sums and products of [complex numbers](op::complex_sum): [`reduce::by`]. A [`scan`](Device::scan) of structs: [`scan::by`] |
//! | [`x.cast()`](Source::cast), [`x.map()`](Source::map), [`x.times()`](Source::times), ... | expressions as inputs: another type, a function of each element, products. `reduce`, `scan`, `transform` and `transpose` compute them as they read; [`source`] lists what they cost in other methods |
//! | [`x.take(&count)`](Source::take) | the first elements, by a count on the device. [`source::Grouped`] lists the primitives that take it |
//! | [`x.segments()`](Source::segments), [`x.by_key()`](Source::by_key), [`x.flagged()`](Source::flagged), [`view.along()`](NdView::along) | groups as inputs of `reduce` and `scan`: segments, runs of equal keys, flagged ranges (only `scan`), lines along axes. One value from each: [`reduce::segmented`], [`select::by_key`], [`reduce::axis`]; prefix scans of each: [`scan::segmented`], [`scan::axis`]. Most other primitives [take groups, too](source::Grouped); those [by key](select::by_key::groups) find the runs first |
//! | [`arg_min`](Device::arg_min), [`arg_max`](Device::arg_max), [`min_max`](Device::min_max) of [`x.segments()`](Source::segments), [`x.by_key()`](Source::by_key), [`view.along()`](NdView::along) | the extremes of each group, and their indices: [`reduce::segmented::extremes`], [`reduce::axis::extremes`] |
//! | [`moments`](Device::moments), [`mean`](Device::mean), [`variance`](Device::variance), [`statistics`](Device::statistics) of [`view.along()`](NdView::along), [`x.segments()`](Source::segments), [`x.by_key()`](Source::by_key) | mean and variance of each group, in one pass: [`reduce::axis::moments`], [`reduce::segmented::moments`]; also its extremes and the number of NaN: [`reduce::statistics::groups`] |
//! | [`reduce`](Device::reduce) with [`Sum.exact()`](op::Usage::exact), [`Mean`](op::Mean) | correctly rounded sums and means, also of groups: [`exact`] |
//! | [`scan`](Device::scan), [`offsets_of`](Device::offsets_of) | prefix scan: `out[i] = x[0] op ... op x[i]`, [exclusive](op::Usage::exclusive) and [reversed](op::Usage::reversed) too; offsets from counts: [`scan`] |
//! | [`select`](Device::select), [`select_indices`](Device::select_indices), [`partition`](Device::partition) | the elements that meet a [condition](op::Condition) or have a [flag](Source::flagged) that is set; or the indices of elements. In a partition, the other elements follow: [`select`], [`select::partition`]. `select` and `partition` of [segments](Source::segments): [`select::segmented`] |
//! | [`unique`](Device::unique), [`run_length_encode`](Device::run_length_encode), [`non_trivial_runs`](Device::non_trivial_runs) | runs of equal neighbours: [`select::runs`]. `unique` of [segments](Source::segments): [`select::segmented`] |
//! | [`adjacent_difference`](Device::adjacent_difference) | difference between each element and the one before it: [`select::adjacent`] |
//! | [`transpose`](Device::transpose) | rows become columns, of one matrix or of [many](Matrices): [`layout::transpose`]. Of an expression, in one pass: [`layout::transpose::mapped`] |
//! | [`transpose_in_place`](Device::transpose_in_place) | transpose of a square or rectangular matrix within its own memory: [`layout::transpose::in_place`] |
//! | [`transform`](Device::transform) or [`copy`](Device::copy) of [`view.permute()`](NdView::permute) | axes in another order: [`layout::permute`] |
//! | [`histogram`](Device::histogram) | number or total [weight](Source::weighted) of the samples in each bin, also of [channels](Source::channels) and of each group: [`histogram`], [`histogram::groups`] |
//! | [`copy`](Device::copy), [`copy_within`](Buffer::copy_within) | copies elements from any offset to any offset: [`layout::copy`] |
//! | [`filled`](Device::filled), [`zeroed`](Device::zeroed), [`Buffer::fill`] | the same value for every element |
//! | [`copy`](Device::copy) of an [`NdView`], of [`x.ranges()`](Source::ranges) | copies between N-dimensional views: [`layout::copy::nd`]; of many ranges at once: [`layout::copy::ranges`] |
//! | [`gather`](Device::gather), [`scatter`](Device::scatter) | `out[i] = x[index[i]]`, `out[index[i]] = x[i]`: [`layout::copy::gather`] |
//! | [`copy`](Device::copy) or [`transform`](Device::transform) of [`x.reversed()`](Source::reversed), [`reverse_in_place`](Device::reverse_in_place) | elements in reverse order: [`layout::copy::reverse`] |
//! | [`sort`](Device::sort), [`argsort`](Device::argsort) | sorted keys, also [with values](Source::with), or indices: [`sort`]. By a user's order, also of structs: [`merge::sort`] |
//! | [`sort`](Device::sort) of [`x.with_columns()`](Source::with_columns) | sorted keys with several columns of values: [`sort::columns`] |
//! | [`sort_in_place`](Device::sort_in_place) | sorts keys in their own memory: [`sort::in_place`] |
//! | [`sort`](Device::sort), [`argsort`](Device::argsort) of [`x.segments()`](Source::segments), [`x.by_key()`](Source::by_key), [`view.along()`](NdView::along) | sorts each group separately: [`sort::segmented`], [`sort::lines`] |
//! | [`merge`](Device::merge) | two sorted ranges as one, also [with values](Source::with): [`merge`] |
//! | [`set_operation`](Device::set_operation) | union, intersection, difference of sorted ranges: [`merge::set`] |
//! | [`search`](Device::search), [`first_unsorted`](Device::first_unsorted) | insertion indices of many needles in a sorted range; test for sorted order: [`merge::search`] |
//! | [`top_k`](Device::top_k) | the largest or smallest keys, also [with values](Source::with) or [indices](Source::indexed), of each row too: [`topk`]. Of each group: [`topk::groups`] |
//! | [`nth_element`](Device::nth_element), [`quantile`](Device::quantile), [`median`](Device::median) | the key at a given rank, and quantiles: [`topk`]; quantiles of each group: [`topk::quantiles`] |
//! | [`ExactSum`] | the exact sum of floats, as a value that can be merged, stored and sent: [`exact`] |
//! | [`iota`](Device::iota) | numbers from a start, with a step: [`iota`] |
//! | [`random`](Device::random) | random numbers by counter, over all values or [within a range](Philox::within): [`random`] |
//!
//! # N-dimensional arrays
//!
//! A [`Layout`] is a shape with strides. [`NdView`] and [`NdViewMut`] join a layout to memory, and [`Buffer::nd`] makes
//! such views. Slicing, permuting, reversing and broadcasting move no elements.
//!
//! # Waiting
//!
//! Commands run in the order in which they are enqueued. A call returns when its work is enqueued. It waits for earlier
//! commands only if
//!
//! - its result goes to the host: a value, a slice as output, [`Buffer::to_vec`];
//! - an input is a host slice, which is copied to the device first, as by [`Device::upload`];
//! - an argument belongs to another queue of the device (each [`Device::open`] makes a queue);
//! - a device is used for the first time, and its self-test runs;
//! - it allocates a result whose length the device finds: [`Device::select`], [`Device::select_indices`],
//!   [`Device::partition`], [`Device::unique`] and other [runs](select::runs), [`Device::reduce`] and others by key,
//!   [`Device::set_operation`];
//! - it allocates a result for the first elements [by a count](Source::take): [`Device::transform`],
//!   [`Device::scan`], [`Device::sort`], [`Device::argsort`], [`Device::top_k`];
//! - it checks data on the device: indices of [`Device::gather`], [`Device::scatter`] and
//!   [`gathered`](Source::gathered) sources, or offsets of [segments](Source::segments) in calls that allocate
//!   their result;
//! - its own documentation says so: [`Buffer::fill`] waits if an element does not have 1, 2, 4, 8 or 16 bytes.
//!
//! If all outputs are on the device, an `_into` method waits for a length in two cases. It reduces structs [by
//! key](Source::by_key), or it is one of [those that wait for a count](source::Grouped). It waits for a check in two
//! cases: a source has a [gather](Source::gathered), or the call is [`Device::top_k_into`] of segments or runs of keys.
//! [`Device::finish`] waits for all commands.
//!
//! # Determinism
//!
//! | | same on every run | same on every device and the CPU |
//! |---|---|---|
//! | integers; min, max, arg-min, arg-max, min-max; counts; exact sums, means and scans ([`ExactSum`], [`Determinism::Exact`]); histogram of integers, also with weights of any type; transpose, permute; copy, gather, scatter to different indices, reverse; sorts, also of segments and in place; selections, partitions, runs; merge, merge sort, set operations, searches; top-k, keys at given ranks, quantiles; iota of integers; random numbers | yes | yes |
//! | float sum and product, [`Determinism::Fixed`] (the default); scans of floats; statistics, also along an axis; reductions by key; adjacent differences; reductions and scans by a user-defined [`Operator`](op::Operator); histogram of floats, also with weights; transforms and transposes of expressions; iota of floats, random floats in a range | yes | yes, where the device keeps subnormals |
//! | float sum and product, [`Determinism::Fast`] (any order of additions); scatter to equal indices; the order of [`Unordered`](op::Unordered) selections | no promise | no |
//!
//! [`Capabilities::denormals`] reports whether a device keeps subnormals. On a device that flushes them, an exact sum
//! of [`x.map(f)`](Source::map) can differ if `f` computes a subnormal.
//!
//! # Errors
//!
//! Every failure but one is an [`Error`]. It has a [kind](ErrorKind), and a one-line message with the sizes or values
//! that caused it. The exception: the process aborts if a CPU driver cannot wait for a command that may still read a
//! host slice. If the call returned, the caller could free the slice too early. No call panics on bad input, a missing
//! driver, an unknown status code or a kernel that does not build. A user's function can panic on the CPU.
//!
//! # Threads and processes
//!
//! All threads of a process can use one [`Device`]. If a device has its own memory, threads of the process copy large
//! transfers. These are slices of 4 MiB or more to the device, and of 16 MiB or more back. The first such transfer
//! starts these threads, and the process keeps them. There are at most 15, unless a tuning file asks for more. `fork`
//! does not copy threads, so the child has neither the driver's threads, nor rayon's, nor those that copy. Python's
//! `multiprocessing` uses `fork` by default on some systems. After the parent has used any device, a call in the child
//! can wait forever, for example with PoCL. Fork before the first call, or start a new program as
//! [`std::process::Command`] does.
//!
//! # First calls
//!
//! The first use of a device runs its self-test, and the first call of an operation builds its kernels. On an H200, the
//! build of a call's kernels takes from 0.1 s (copies) to 1.3 s (statistics). The cache folder keeps the self-test's
//! result and the kernels, so later processes load them in milliseconds. PoCL keeps its kernels in its own cache.
//! Kernels depend on the device, the element types, the operator, the options, and the alignment and size class of the
//! data.
//!
//! To build kernels before the first call, call [`Device::prepare`], which builds in the background. Or run
//! `oclprim warm`: several processes build the kernels and fill the cache folder. A machine image can contain that
//! folder.
//!
//! # Builds without optimisation
//!
//! Cargo's profile `dev` does not optimise, and on the CPU backend calls then take about ten times as long. Put
//! `opt-level = 1` below `[profile.dev]` in your `Cargo.toml`. An option for `oclprim` alone has less effect, because
//! generic functions are compiled in the crate that calls them. Kernels of OpenCL devices do not depend on the profile.
//!
//! # Files
//!
//! The crate keeps built programs and self-test results in the folder that the environment variable `OCLPRIM_CACHE_DIR`
//! names. If the variable is empty, there is no cache. Without the variable, the folder is in the user's cache folder.
//! If the entries have more than `OCLPRIM_CACHE_BYTES` bytes, 256 MiB by default, the crate removes the least recently
//! used ones. Each process checks the size at its first write, and again whenever it has written a sixteenth of the
//! limit. Processes may share the folder. In memory, a context keeps the programs of its most recently used kernel
//! files. `OCLPRIM_CACHE_PROGRAMS` sets how many files, 128 by default. A file with two sets of options counts twice.
//! These bounds do not apply to a driver's own cache, such as PoCL's.
//!
//! An entry with a program is machine code that the driver runs in this process. So anyone who can write to the folder
//! gets the user's rights. The digest of an entry detects a damaged entry, and an entry that has another entry's name.
//! It does not detect forgery. The crate therefore creates the folder and its entries for the user alone. On Unix it
//! uses no folder and no entry that another user owns or can write to, and it follows no link to an entry. The crate
//! creates the folder with mode 0700. If others can write to your folder, `chmod go-w` makes it usable. On Windows the
//! crate checks none of this: the folder's permissions decide, and those of the default folder are safe.
//!
//! The [tuning file](tuning::TuningFile) has only names and numbers, which the crate checks; a wrong number only costs
//! time.
//!
//! # Checking and measuring
//!
//! [`op::laws`] checks the laws of a user-defined operator. The package `oclprim-checks` has the cross-checks of every
//! primitive, the benchmarks and the ladders. A ladder shows the steps by which a kernel became fast. The program
//! `oclprim` runs all three.
#![deny(unsafe_code)]

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The text of a kernel file, such as `kernel_text!("lib/op.cl")`, as `build.rs` shortens it.
macro_rules! kernel_text {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/cl/", $name))
    };
}

// rustdoc lists the methods of `Device` in the order of these modules: the devices first, then the primitives.
#[allow(unsafe_code, reason = "the boundary to OpenCL and to the processor; every block names its promise")]
mod runtime;
pub mod tuning;

pub mod reduce;
pub mod scan;
pub mod select;
pub mod sort;

pub mod merge;
pub mod topk;

pub mod histogram;

pub mod layout;

pub mod iota;
pub mod random;

mod arguments;
mod counted;
mod element;
mod error;
pub mod exact;
#[doc(hidden)]
pub mod files;
mod input;
#[doc(hidden)]
pub mod internals;
#[cfg(feature = "opencl")]
#[allow(unsafe_code, reason = "takes and gives OpenCL's own objects; every block names its promise")]
pub mod interop;
mod kept;
mod keys;
mod lookback;
mod memory;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod once;
pub mod op;
mod parallel;
mod ranges;
mod rng;
mod segments;
pub mod source;
#[allow(unsafe_code, reason = "the boundary to the loader")]
mod sys;
mod threads;

pub use element::{Element, ElementType, Float, Integer};
pub use error::{Error, ErrorKind, Result};
pub use exact::ExactSum;
pub use half::{bf16, f16};
pub use histogram::{
    Accumulate, Bins, Counter, Histogram, Histograms, Outside, Weight, WeightedHistogram, WeightedHistograms,
};
#[cfg(feature = "ndarray")]
pub use input::ndarray::NdCow;
pub use input::{
    layout::{Layout, Rows},
    nd::{NdView, NdViewMut},
};
pub use layout::transpose::Matrices;
pub use merge::{search::Bound, set::SetOp};
pub use num_complex::Complex;
/// Implements the trait [`SharedType`](trait@SharedType): the struct has the same memory layout in OpenCL C.
///
/// Functions, operators and orders for devices take such structs, and [`map!`] makes sources of their fields. Reductions
/// and scans take them, whole or in groups, with a user-defined operator. Counts, selections and partitions take them
/// with a function of the struct that returns `bool`.
///
/// The struct must be `#[repr(C)]`, and must derive `Pod` and `Zeroable` of the crate `bytemuck`. Its fields are `i8`
/// to `i64`, `u8` to `u64`, `f32`, `f64`, other such structs, and arrays of these. A kernel does not build if the size
/// or an offset differs on the device.
///
/// `Pod` allows no padding between fields or after them. Put large fields first, and fill what is left with a field of
/// your own: `sum: f64, count: u32, padding: u32`.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use oclprim::{Device, SharedType, map, operator};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
/// #[repr(C)]
/// struct Span {
///     from: i32,
///     to: i32,
/// }
///
/// #[operator(identity = Span { from: i32::MAX, to: i32::MIN })]
/// fn hull(a: Span, b: Span) -> Span {
///     Span { from: a.from.min(b.from), to: a.to.max(b.to) }
/// }
///
/// let (device, spans) = (Device::best()?, [Span { from: 3, to: 5 }, Span { from: -1, to: 2 }]);
/// assert_eq!(device.reduce(&spans, &hull())?, Span { from: -1, to: 5 });
///
/// let length = 2;
/// let long = map!(move |span: Span| span.to - span.from > length, length: i32);
/// assert_eq!((device.count(&spans, &long)?, device.select(&spans, &long)?.to_vec()?), (1, vec![spans[1]]));
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// Rust may reorder the fields of a struct without `#[repr(C)]`:
///
/// ```compile_fail
/// #[derive(Clone, Copy, oclprim::SharedType)]
/// struct Span {
///     from: i32,
///     to: i32,
/// }
/// ```
#[cfg(feature = "macros")]
pub use oclprim_macros::SharedType;
/// Makes a Rust function callable from functions with [`#[operator]`](operator), [`#[order]`](order) or `#[device]`,
/// and from [`map!`].
///
/// In Rust it stays an ordinary function, but its arithmetic follows [these rules](operator#arithmetic).
///
/// ```
/// use oclprim::{Device, Source, device, map, op::Sum};
///
/// #[device]
/// fn cube(x: f32) -> f32 {
///     x * x * x
/// }
///
/// assert_eq!(Device::best()?.reduce(vec![1.0f32, 2.0].map(map!(|x: f32| cube(x) + 1.0)), Sum)?, 11.0);
/// assert_eq!(cube(2.0), 8.0);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[cfg(feature = "macros")]
pub use oclprim_macros::device;
/// Returns an [`op::Map`] for a closure of one argument, or an [`op::CapturingMap`] if it captures variables.
///
/// The argument is a number, a struct with [`#[derive(SharedType)]`](derive@SharedType), or a tuple of arguments. The
/// result is a number or such a struct. Write the type of the result if the closure ends in a
/// number without a type, or has `return`. [The subset](operator#the-subset) and [the arithmetic](operator#arithmetic)
/// are those of operators.
///
/// ```
/// use oclprim::{Device, Source, map, op::Sum};
///
/// let squares = map!(|x: f32| x * x);
/// assert_eq!(Device::best()?.reduce(vec![1.0f32, 2.0, 3.0].map(&squares), Sum)?, 14.0);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// After the closure, name each captured variable with its type: `i8` to `i64`, `u8` to `u64`, `f32` or `f64`. Captured
/// variables become arguments of the kernel, so another value needs no new build:
///
/// ```
/// use oclprim::{Device, Source, map};
///
/// let (x, y, scale) = (vec![1.0f32, 2.0], vec![0.5f32, 0.25], 10.0f32);
/// let sum = x.zip(&y).map(map!(move |(a, b): (f32, f32)| scale * a + b, scale: f32));
/// assert_eq!(Device::best()?.transform(sum)?.to_vec()?, [10.5, 20.25]);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// A map of a struct makes its fields a source, and a map to a struct writes structs:
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use oclprim::{Device, SharedType, Source, map, op::Sum};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
/// #[repr(C)]
/// struct Body {
///     mass: f32,
///     speed: f32,
/// }
///
/// let device = Device::best()?;
/// let bodies = device.upload(&[Body { mass: 2.0, speed: 1.0 }, Body { mass: 4.0, speed: 0.5 }])?;
/// assert_eq!(device.reduce(bodies.map(map!(|it: Body| it.mass * it.speed)), Sum)?, 4.0);
/// let faster = device.transform(bodies.map(map!(|it: Body| Body { mass: it.mass, speed: 2.0 * it.speed })))?;
/// assert_eq!(faster.to_vec()?[1], Body { mass: 4.0, speed: 1.0 });
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// If the closure returns `bool` for a number or a struct, the map is a [condition](op::Condition).
///
/// ```
/// use oclprim::{Device, map};
///
/// let (device, x, limit) = (Device::best()?, [3u32, 9, 4, 7], 5u32);
/// let small = map!(move |x: u32| x < limit, limit: u32);
/// assert_eq!((device.select(&x, &small)?.to_vec()?, device.count(&x, &small)?), (vec![3, 4], 2));
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// A closure that uses a variable without naming it in this way does not compile:
///
/// ```compile_fail
/// let scale = 2.0f32;
/// let scaled = oclprim::map!(|x: f32| x * scale);
/// ```
#[cfg(feature = "macros")]
pub use oclprim_macros::map;
/// Turns a Rust function of two values into a function that returns an [`op::Operator`]: the same source runs on the
/// CPU and on OpenCL devices.
///
/// The user promises that `identity` is neutral, `f(identity, x) = f(x, identity) = x`, and that the function is
/// associative and commutative. Scans, segmented reductions and reductions by key need no commutative function.
/// [`op::laws`] checks these laws on values.
///
/// ```
/// use oclprim::{Device, operator};
///
/// #[operator(identity = 0)]
/// fn larger_magnitude(a: i32, b: i32) -> i32 {
///     if a.unsigned_abs() == b.unsigned_abs() {
///         a.max(b)
///     } else if a.unsigned_abs() > b.unsigned_abs() {
///         a
///     } else {
///         b
///     }
/// }
///
/// assert_eq!(Device::best()?.reduce(&[1, -7, 3], &larger_magnitude())?, -7);
/// # Ok::<(), oclprim::Error>(())
/// ```
///
/// The attribute also writes a test, `larger_magnitude_on_devices_equals_rust`. `cargo test` then compares the
/// results for 4,096 pairs on every OpenCL device. The values are NaN, infinities, subnormals, extremes and random
/// bits, also in fields of structs. `test = false` leaves out the test. Write `test = false` if an argument sets the
/// length of a loop, or if the function is inside another function.
///
/// # The subset
///
/// - Types: `i8` to `i64`, `u8` to `u64`, `f32`, `f64`, `bool`, and structs with
///   [`#[derive(SharedType)]`](derive@SharedType). `usize` is for indices: `x[i as usize]`, `0..4usize`.
/// - Statements: `let`, assignments, `if`, `match` on integers, `while`, `loop`, `for` over a range, `break`,
///   `continue`, `return`.
/// - Expressions: arithmetic, comparisons, `as`, fields, elements of arrays, struct literals, `if`, `match` and blocks.
/// - Calls of functions with [`#[device]`](device), but no recursion.
/// - Methods: `abs`, `abs_diff`, `clamp`, `count_ones`, `leading_zeros`, `max`, `min`, `rotate_left`, `rotate_right`,
///   `saturating_add`, `saturating_sub`, `signum`, `swap_bytes`, `trailing_zeros`, `unsigned_abs`, `wrapping_*`; of
///   floats also `ceil`, `copysign`, `floor`, `is_finite`, `is_infinite`, `is_nan`, `is_sign_negative`,
///   `is_sign_positive`, `mul_add`, `round_ties_even`, `sqrt`, `to_bits`, `trunc`; and `f32::from_bits`.
/// - Constants of types, such as `f32::MAX`.
///
/// The compiler refuses everything else, points at it, and says what to write. For example, it refuses a number whose
/// type is not written:
///
/// ```compile_fail
/// #[oclprim::operator(identity = 0)]
/// fn count(a: u32, b: u32) -> u32 {
///     let mut n = 0; // `let mut n: u32 = 0;` compiles
///     while n < a {
///         n += 1;
///     }
///     n + b
/// }
/// ```
///
/// # Arithmetic
///
/// Except where this section says otherwise, the function has the same result in every build, on the CPU and on
/// devices:
///
/// | | |
/// |---|---|
/// | `a + b`, `a - b`, `a * b`, `-a`, `a.abs()` of integers | wrap |
/// | `a / b`, `a % b` of integers | `0` and `a` if `b` is 0; `MIN / -1` wraps |
/// | `a << n`, `a >> n` | `n` counts modulo the number of bits |
/// | `min`, `max` of floats | a number is preferred to NaN, and -0 is less than 0 |
/// | `a.clamp(low, high)` | `low` if `a < low`, else `high` if `a > high`, else `a` |
/// | `x as i32` and so on | as in Rust: saturates, and NaN becomes 0 |
/// | `a / b`, `a.sqrt()` of `f32` | the nearest float, on devices with `f64`; elsewhere as the driver rounds |
/// | `a % b` of floats, `mul_add` | the driver's `fmod` and `fma`, which treat subnormals as zeros on Mesa |
///
/// Two more things can differ between the CPU and devices. An index out of range panics on the CPU, and counts as
/// 0 on a device. The bits of a computed NaN, and so its `to_bits`, are not specified.
///
/// A loop that does not end hangs everywhere. A multiplication is fused with an addition only by `mul_add`. Devices
/// that [treat subnormals as zeros](Capabilities::denormals) may give another result where an argument or Rust's result
/// is subnormal.
#[cfg(feature = "macros")]
pub use oclprim_macros::operator;
/// Turns a Rust function of two values into a function that returns an [`op::Less`]. The Rust function returns true if
/// `a` comes before `b`.
///
/// The function must be a strict weak order. The order of the example is one, unless a time is NaN. [The
/// subset](operator#the-subset) and [the arithmetic](operator#arithmetic) are those of operators.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use oclprim::{Device, SharedType, order};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, SharedType)]
/// #[repr(C)]
/// struct Event {
///     time: f32,
///     id: u32,
/// }
///
/// #[order]
/// fn by_time(a: Event, b: Event) -> bool {
///     a.time < b.time || (a.time == b.time && a.id < b.id)
/// }
///
/// let events = [Event { time: 2.5, id: 1 }, Event { time: 0.5, id: 9 }, Event { time: 0.5, id: 3 }];
/// let sorted = Device::best()?.sort(&events, &by_time())?.to_vec()?;
/// assert_eq!(sorted.iter().map(|event| event.id).collect::<Vec<_>>(), [3, 9, 1]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[cfg(feature = "macros")]
pub use oclprim_macros::order;
#[cfg(feature = "macros")]
pub use once::SharedType;
pub use random::Philox;
pub use reduce::{
    Determinism, Extreme, Extremes, Offset,
    axis::moments::MomentsRecord,
    moments::Moments,
    statistics::{MinMax, Statistics, StatisticsRecord},
};
pub(crate) use runtime::Scratch;
pub use runtime::{
    Buffer, Capabilities, Device, DeviceClass, DeviceInfo, DeviceType, Download, Input, MapMut, MapRef, Output,
    PinnedVec, Preparation, ProgramSpec, RefusedSubGroup, SubGroup, SubGroupBackend, Timing, Upload, View, ViewMut,
};
pub use sort::{
    Key, Order,
    columns::{Columns, Table},
};
pub use source::Source;
pub use topk::{Interpolation, Top};
pub use tuning::Tuning;
