//! Top-k: the k largest or smallest keys, [`Device::top_k`], also [with values](Source::with) or
//! [with indices](Source::indexed). Also the key of a rank ([`Device::nth_element`]), and quantiles
//! ([`Device::quantile`]). [`groups`] and [`quantiles`] have the keys and the quantiles of segments and lines.
//!
//! | property | |
//! |---|---|
//! | work | one read of the keys, and work for k keys; a second read, unless k is a small part of the input |
//! | work if many keys near the threshold are equal | one read for each 11 bits of a key, and two more |
//! | order of floats | as in [`sort`]: -0 equals +0, every NaN is the largest, and all NaN are equal; or the [total order](Top::total_order) |
//! | ties | of equal keys, the first are selected |
//! | determinism | same bits everywhere: the result is a function of the input |
//! | scratch | for a row or a rank, some KiB, and at most an eighth of its keys, with their indices if the call returns indices. If the selected keys are sorted, also a copy of the selected keys. Rows are processed in batches whose scratch fits both 1 GiB and one allocation of the device |
//! | limits | any n that fits the device |
//!
//! This is radix selection from the most significant digit on (Zhang, Naruse, Li and Wang 2023). The host reads no
//! results of a pass. A sample of the keys gives bounds for the threshold, so that one read of all keys leaves only the
//! keys between the bounds. If the bounds are wrong, all keys are searched. One work-group processes a whole short row.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;
pub mod groups;
pub(crate) mod quantile;
pub mod quantiles;

use bytemuck::Pod;

pub use quantile::{Divisible, Fractions, Interpolation};

use crate::{
    Buffer, Device, Element, Error, Input, Offset, Order, Output, Result, Scratch, Source,
    counted::{Firsts, on_device},
    keys::Keys,
    memory, parallel,
    runtime::Backend,
    sort::NARROW,
    source::{Counted, Indexed, PairOutput, Sequence, With, finite},
};
use crate::{runtime::ClInput, sort};

/// Maximum number of ranks for a selection; for more ranks, the keys are sorted.
const RANKS: usize = 16;

/// The keys that are selected, and their order.
///
/// ```
/// use oclprim::{Device, Top};
///
/// let device = Device::best()?;
/// let x = device.upload(&[5, 1, 4, 1, 3, 9])?;
/// let top = |top| device.top_k(&x, top)?.to_vec();
/// assert_eq!(top(Top::largest(3))?, [5, 4, 9]); // in the order of the input
/// assert_eq!(top(Top::largest(3).sorted())?, [9, 5, 4]);
/// assert_eq!(top(Top::smallest(2).sorted())?, [1, 1]);
/// assert_eq!(top(Top::largest(1).in_rows(3))?, [5, 9]); // of each row of 3
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Top {
    #[doc(hidden)]
    pub k: usize,
    #[doc(hidden)]
    pub largest: bool,
    #[doc(hidden)]
    pub sorted: bool,
    #[doc(hidden)]
    pub total: bool,
    row: Option<usize>,
}

impl Top {
    /// The k largest keys, in the order of the input.
    ///
    /// ```
    /// use oclprim::{Device, Top};
    ///
    /// let keys = Device::best()?.top_k(&[3, 9, 1, 7], Top::largest(2))?;
    /// assert_eq!(keys.to_vec()?, [9, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn largest(k: usize) -> Self {
        Self { k, largest: true, sorted: false, total: false, row: None }
    }

    /// The k smallest keys, in the order of the input.
    ///
    /// ```
    /// use oclprim::{Device, Top};
    ///
    /// let keys = Device::best()?.top_k(&[3, 9, 1, 7], Top::smallest(2))?;
    /// assert_eq!(keys.to_vec()?, [3, 1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn smallest(k: usize) -> Self {
        Self { k, largest: false, sorted: false, total: false, row: None }
    }

    /// Sorts the selected keys: from the largest down for the largest keys, or from the smallest up for the smallest
    /// keys. Equal keys stay in the order of the input.
    ///
    /// ```
    /// use oclprim::{Device, Top};
    ///
    /// let keys = Device::best()?.top_k(&[3, 9, 1, 7], Top::smallest(2).sorted())?;
    /// assert_eq!(keys.to_vec()?, [1, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn sorted(self) -> Self {
        Self { sorted: true, ..self }
    }

    /// The k keys of each row of `len` keys, where the input is a matrix in row-major order. Results are rows of k
    /// keys, and indices count from the start of their row.
    ///
    /// ```
    /// use oclprim::{Device, Top};
    ///
    /// let keys = Device::best()?.top_k(&[3, 9, 1, 7], Top::largest(1).in_rows(2))?;
    /// assert_eq!(keys.to_vec()?, [9, 7]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn in_rows(self, len: usize) -> Self {
        Self { row: Some(len), ..self }
    }

    /// Orders floats by the total order of IEEE 754, like [`Order::total_order`].
    ///
    /// ```
    /// use oclprim::{Device, Top};
    ///
    /// let (device, x) = (Device::best()?, [1.0f32, -f32::NAN, 2.0]);
    /// assert!(device.top_k(&x, Top::largest(1))?.to_vec()?[0].is_nan());
    /// assert_eq!(device.top_k(&x, Top::largest(1).total_order())?.to_vec()?, [2.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub const fn total_order(self) -> Self {
        Self { total: true, ..self }
    }

    fn keys<T: Element>(&self) -> Result<Keys> {
        let order = if self.largest { Order::descending() } else { Order::ascending() };
        Keys::of(T::TYPE, &if self.total { order.total_order() } else { order })
    }

    /// The number of rows, and of keys in each.
    fn shape(&self, n: usize) -> Result<(usize, usize)> {
        let len = self.row.unwrap_or(n);
        if self.row.is_some() && (len == 0 || !n.is_multiple_of(len)) {
            return Err(Error::invalid(format!("{n} keys are not a whole number of rows of {len}")));
        }
        if self.k > len {
            return Err(Error::invalid(self.too_few(len)));
        }
        Ok((n.checked_div(len).unwrap_or(0), len))
    }

    /// The message for fewer than k keys.
    fn too_few(&self, len: usize) -> String {
        let which = if self.largest { "largest" } else { "smallest" };
        format!("{len} keys are fewer than the {} {which} to select", self.k)
    }

    /// Returns an error for rows. Only a whole input has them; groups and the first elements by a count do not.
    fn alone(self) -> Result<Self> {
        match self.row {
            None => Ok(self),
            Some(len) => Err(Error::invalid(format!("rows of {len} keys are for a whole input"))),
        }
    }

    /// The number of keys that are selected from `n`.
    fn taken(&self, n: usize) -> Result<usize> {
        Ok(self.shape(n)?.0 * self.k)
    }

    fn form<'a>(&self, keys: &'a Keys, n: usize, place_bytes: usize) -> Result<gpu::Form<'a>> {
        let (rows, len) = self.shape(n)?;
        let want = gpu::Want::Keys { k: self.k, sorted: self.sorted };
        Ok(gpu::Form { keys, place_bytes, rows, len, want })
    }
}

/// A range of ranks in a sample of `sample` keys, as in `cl/topk_bounds.cl`. The key of rank k of all `n` keys, counted
/// from 1, is almost surely between the sampled keys of these ranks.
fn bounds(k: f64, n: f64, sample: f64) -> (f64, f64) {
    let middle = k / n * sample;
    let off = 5.0 * (middle * (1.0 - middle / sample).max(0.0)).sqrt() + 8.0;
    (middle - off, middle + off)
}

/// The output of the keys' indices. Row r adds `r * step` to its indices.
struct Places<'a, I: Offset> {
    to: Output<'a, I>,
    step: usize,
}

/// An input of [`Device::top_k`]: a [`Source`], also [with values](Source::with) or [with indices](Source::indexed);
/// its first elements [by a count](Source::take), also with indices; or [segments, lines](groups) or [runs of equal
/// keys](crate::select::by_key::groups), also with indices.
///
/// The crate alone implements this trait.
///
/// ```
/// use oclprim::{Buffer, Device, Top, topk::Rankable};
///
/// fn best<I: Rankable<Found = Buffer<u8>>>(input: I) -> oclprim::Result<Vec<u8>> {
///     Device::best()?.top_k(input, Top::largest(1))?.to_vec()
/// }
/// assert_eq!(best(&[3u8, 9, 4])?, [9]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an input of top-k",
    label = "expected a source, `keys.with(&values)`, or `keys.indexed::<u32>()`",
    note = "a `Vec`, an array or a `Buffer` is passed by reference",
    note = "for structs, pass a field: `x.map(map!(|p: Particle| p.mass))`, then the groups"
)]
pub trait Rankable: Sized {
    /// A buffer of keys; also one of values or indices, if there are any. By key, the keys of the runs, then these
    /// buffers.
    type Found;
    /// The outputs of keys, also of values or indices.
    type Out<'o>;

    #[doc(hidden)]
    fn top_k(self, device: &Device, top: Top) -> Result<Self::Found>;

    #[doc(hidden)]
    fn top_k_into(self, device: &Device, top: Top, output: Self::Out<'_>) -> Result<()>;
}

impl<S: Source<Item: Element>> Rankable for S {
    type Found = Buffer<S::Item>;
    type Out<'o> = Output<'o, S::Item>;

    fn top_k(self, device: &Device, top: Top) -> Result<Buffer<S::Item>> {
        let mut keys = device.uninit(top.taken(finite(&self)?)?)?;
        self.top_k_into(device, top, Output::from(&mut keys))?;
        Ok(keys)
    }

    fn top_k_into(self, device: &Device, top: Top, output: Output<'_, S::Item>) -> Result<()> {
        device.top::<_, u32>((self.held(device)?.input(), None), output, None, top, &mut Scratch::new())
    }
}

impl<S: Source<Item: Element>> Rankable for Counted<'_, S> {
    type Found = Buffer<S::Item>;
    type Out<'o> = Output<'o, S::Item>;

    fn top_k(self, device: &Device, top: Top) -> Result<Buffer<S::Item>> {
        self.known(device)?.top_k(device, top.alone()?)
    }

    fn top_k_into(self, device: &Device, top: Top, output: Output<'_, S::Item>) -> Result<()> {
        device.top_counted::<_, u32>(&self, output, None, top)
    }
}

impl<S: Source<Item: Element>, I: Offset> Rankable for Indexed<Counted<'_, S>, I> {
    type Found = (Buffer<S::Item>, Buffer<I>);
    type Out<'o> = PairOutput<'o, S::Item, I>;

    fn top_k(self, device: &Device, top: Top) -> Result<Self::Found> {
        self.keys.known(device)?.indexed::<I>().top_k(device, top.alone()?)
    }

    fn top_k_into(self, device: &Device, top: Top, to: Self::Out<'_>) -> Result<()> {
        device.top_counted(&self.keys, to.keys, Some(to.values), top)
    }
}

impl<S: Source<Item: Element>, I: Offset> Rankable for Indexed<S, I> {
    type Found = (Buffer<S::Item>, Buffer<I>);
    type Out<'o> = PairOutput<'o, S::Item, I>;

    fn top_k(self, device: &Device, top: Top) -> Result<Self::Found> {
        let taken = top.taken(finite(&self.keys)?)?;
        let (mut keys, mut indices) = (device.uninit(taken)?, device.uninit(taken)?);
        self.top_k_into(device, top, (&mut keys, &mut indices).into())?;
        Ok((keys, indices))
    }

    fn top_k_into(self, device: &Device, top: Top, to: Self::Out<'_>) -> Result<()> {
        let indices = Places { to: to.values, step: 0 };
        device.top((self.keys.held(device)?.input(), None), to.keys, Some(indices), top, &mut Scratch::new())
    }
}

impl<S: Source<Item: Element>, V: Source<Item: Pod>> Rankable for With<S, V> {
    type Found = (Buffer<S::Item>, Buffer<V::Item>);
    type Out<'o> = PairOutput<'o, S::Item, V::Item>;

    fn top_k(self, device: &Device, top: Top) -> Result<Self::Found> {
        let taken = top.taken(finite(&self.keys)?)?;
        let (mut keys, mut values) = (device.uninit(taken)?, device.uninit(taken)?);
        self.top_k_into(device, top, (&mut keys, &mut values).into())?;
        Ok((keys, values))
    }

    fn top_k_into(self, device: &Device, top: Top, to: Self::Out<'_>) -> Result<()> {
        let (keys, values) = (self.keys.held(device)?, self.values.held(device)?);
        device.top_pairs((keys.input(), values.input()), (to.keys, to.values), top, &mut Scratch::new())
    }
}

/// # Top-k and keys of ranks
///
/// These methods return the largest or smallest keys, or the key of a rank. Module: [`topk`](crate::topk).
impl Device {
    /// The k largest or smallest keys, in the order of the input unless [sorted](Top::sorted).
    ///
    /// For keys [with values](Source::with), returns the keys and their values, which are plain data of any size. For
    /// keys [with indices](Source::indexed), returns the keys and their indices. Of equal keys, those with the lowest
    /// indices are selected.
    ///
    /// For [segments](Source::segments) and [lines](crate::NdView::along), returns k keys of each: [`groups`]. Results
    /// are rows of k keys, a row for each group, and each group needs k keys. Indices of segments and runs count from
    /// the start of the whole input, those of lines from the start of the line. For [runs of equal
    /// keys](Source::by_key), returns the keys of the runs, then the rows. For the first elements [by a
    /// count](Source::take), the call waits for the count.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are fewer than k keys, in all or in one
    /// group, or if their number is not a multiple of the row length. The same error for rows of the first elements by
    /// a count. The same error if the numbers of keys and values differ, or if rows have more than 2^32 keys and
    /// indices are `u32`. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if values have no bytes.
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the device does not hold the result and the
    /// scratch.
    ///
    /// ```
    /// use oclprim::{Device, Source, Top};
    ///
    /// let device = Device::best()?;
    /// let x = device.upload(&[2.5f32, -0.0, f32::NAN, 0.0, -1.0])?;
    /// assert_eq!(device.top_k(&x, Top::smallest(2).sorted())?.to_vec()?, [-1.0, -0.0]);
    /// assert!(device.top_k(&x, Top::largest(1))?.to_vec()?[0].is_nan());
    /// let error = device.top_k(&x, Top::largest(6)).unwrap_err();
    /// assert_eq!(error.to_string(), "5 keys are fewer than the 6 largest to select");
    ///
    /// let (keys, indices) = device.top_k([30i16, -10, 20, 30, -10, 30].indexed::<u32>(), Top::largest(2))?;
    /// assert_eq!((keys.to_vec()?, indices.to_vec()?), (vec![30, 30], vec![0, 3]));
    /// let (ages, names) = (device.upload(&[41u8, 7, 41])?, device.upload(&[*b"Ida", *b"Bo ", *b"Lu "])?);
    /// let (ages, names) = device.top_k(ages.with(&names), Top::smallest(2).sorted())?;
    /// assert_eq!((ages.to_vec()?, names.to_vec()?), (vec![7, 41], vec![*b"Bo ", *b"Ida"]));
    ///
    /// let x = device.upload(&[5, 1, 4, 1, 3, 9])?;
    /// assert_eq!(device.top_k(x.segments(&[0u32, 2, 6]), Top::largest(1))?.to_vec()?, [5, 9]);
    /// assert_eq!(device.top_k(x.nd(&[2, 3])?.along(1), Top::smallest(2).sorted())?.to_vec()?, [1, 4, 1, 3]);
    /// let (runs, best) = device.top_k(x.by_key(&[7u8, 7, 2, 2, 2, 7]), Top::largest(1))?;
    /// assert_eq!((runs.to_vec()?, best.to_vec()?), (vec![7, 2, 7], vec![5, 4, 9]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn top_k<I: Rankable>(&self, input: I, top: Top) -> Result<I::Found> {
        input.top_k(self, top)
    }

    /// [`Device::top_k`] into a slice, buffer or view, which has k elements, or k for each row or group. For keys with
    /// values or indices, the output is a pair of these. For [runs of keys](Source::by_key), it is a tuple as in
    /// [`select::by_key::groups`](crate::select::by_key::groups).
    ///
    /// If a [count](Source::take) of elements is below k, all of them are selected. Elements of the outputs from the
    /// count on do not change.
    ///
    /// Waits for the result only if an output is a host slice, or if an input has a [gather](Source::gathered). For
    /// segments and runs, the call always waits: [`groups`]. Besides scratch, a call with values allocates the indices
    /// of the selected keys.
    ///
    /// # Errors
    ///
    /// Same as [`Device::top_k`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if a length
    /// differs, or if the arguments overlap in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::{Device, Source, Top};
    ///
    /// let device = Device::best()?;
    /// let mut best = device.zeroed(2)?;
    /// for x in [[5i32, -7, 3, 6], [2, 1, 0, 2]] {
    ///     device.top_k_into(&x, Top::largest(2), &mut best)?;
    /// }
    /// assert_eq!(best.to_vec()?, [2, 2]);
    /// let top = Top::smallest(2).in_rows(3).sorted();
    /// let (mut keys, mut indices) = ([0; 4], [0u64; 4]);
    /// device.top_k_into([3u8, 1, 2, 9, 8, 7].indexed::<u64>(), top, (&mut keys, &mut indices))?;
    /// assert_eq!((keys, indices), ([1, 2, 7, 8], [1, 2, 2, 1]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn top_k_into<'o, I: Rankable>(&self, input: I, top: Top, output: impl Into<I::Out<'o>>) -> Result<()> {
        input.top_k_into(self, top, output.into())
    }

    /// [`Device::top_k_into`] of keys with values, compiled once for each pair of types.
    #[inline(never)]
    fn top_pairs<K: Element, V: Pod>(
        &self,
        (keys, values): (Input<'_, K>, Input<'_, V>),
        (keys_out, values_out): (Output<'_, K>, Output<'_, V>),
        top: Top,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let n = keys.len();
        if n != values.len() {
            return Err(Error::invalid(format!("{n} keys need as many values, got {}", values.len())));
        }
        if size_of::<V>() == 0 {
            return Err(Error::unsupported("values must have at least 1 byte"));
        }
        let taken = top.taken(n)?;
        keys_out.expect_len(taken, "a selection of keys")?;
        values_out.expect_len(taken, "a selection of values")?;
        if taken == 0 {
            Ok(())
        } else if n <= NARROW {
            self.top_values::<K, V, u32>((keys, values), (keys_out, values_out), top, taken, scratch)
        } else {
            self.top_values::<K, V, u64>((keys, values), (keys_out, values_out), top, taken, scratch)
        }
    }

    /// Selects keys with their indices among all keys, then gathers the values.
    fn top_values<K: Element, V: Pod, I: Offset>(
        &self,
        (keys, values): (Input<'_, K>, Input<'_, V>),
        (keys_out, values_out): (Output<'_, K>, Output<'_, V>),
        top: Top,
        taken: usize,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut places = self.uninit::<I>(taken)?;
        let (to, step) = (Output::from(&mut places), top.row.unwrap_or(0));
        match self.backend() {
            Backend::Cpu => {
                self.top((keys, None), keys_out, Some(Places { to, step }), top, scratch)?;
                self.gather_into(values, &places, values_out, &mut [0])
            }
            Backend::OpenCl(device) => {
                let (kind, n) = (top.keys::<K>()?, keys.len());
                let form = top.form(&kind, n, size_of::<I>())?;
                let (keys, values) = (keys.cl(device)?, values.cl(device)?);
                let (keys_out, values_out) = (keys_out.cl(device, false)?, values_out.cl(device, false)?);
                crate::runtime::apart(&[&keys, &values], &[&keys_out, &values_out])?;
                let to = to.cl(device, false)?;
                gpu::run(device, &form, (&keys, None), &keys_out, (Some(&to), step), scratch)?;
                to.finish(device)?;
                self.gather_values(device, size_of::<V>(), &values, &places, &values_out)?;
                values_out.finish(device)?;
                keys_out.finish(device)
            }
        }
    }

    /// Selects from the first elements by a count. If there are fewer than k of them, selects all.
    fn top_counted<S: Source<Item: Element>, I: Offset>(
        &self,
        input: &Counted<'_, S>,
        output: Output<'_, S::Item>,
        places: Option<Output<'_, I>>,
        top: Top,
    ) -> Result<()> {
        let taken = top.alone()?.taken(input.most()?)?;
        output.expect_len(taken, "a selection of keys")?;
        places.iter().try_for_each(|to| to.expect_len(taken, "a selection of indices"))?;
        let (held, count) = input.held_on(self)?;
        let most = held.input().len().min(taken);
        let places = places.map(|to| Places { to: to.part(0, most), step: 0 });
        let top = Top { k: most, ..top };
        self.top((held.input(), count), output.part(0, most), places, top, &mut Scratch::new())
    }

    /// All selections of keys. Without `places`, the type `I` has no effect.
    #[inline(never)]
    fn top<T: Element, I: Offset>(
        &self,
        (input, count): Firsts<'_, T>,
        output: Output<'_, T>,
        places: Option<Places<'_, I>>,
        top: Top,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (rows, len) = top.shape(input.len())?;
        let taken = rows * top.k;
        output.expect_len(taken, "a selection of keys")?;
        if let Some(Places { to, step }) = &places {
            to.expect_len(taken, "a selection of indices")?;
            if size_of::<I>() == 4 && len.max(step * rows) > NARROW {
                return Err(Error::invalid(format!("the indices of {len} keys do not fit u32, which holds 2^32")));
            }
        }
        if taken == 0 {
            return Ok(());
        }
        let keys = top.keys::<T>()?;
        match self.backend() {
            Backend::Cpu => {
                let (input, output) = (input.host()?, output.host()?);
                let (to, step) = match places {
                    Some(Places { to, step }) => (to.host()?, step),
                    None => (<&mut [I]>::default(), 0),
                };
                // Each task has the results of some rows.
                let each = parallel::parts(rows, 1)[0].len();
                let of_tasks = to.chunks_mut(each * top.k).map(Some).chain(std::iter::repeat_with(|| None));
                let mut tasks = memory::with_capacity(rows.div_ceil(each))?;
                tasks.extend(output.chunks_mut(each * top.k).zip(of_tasks).enumerate());
                parallel::try_consume(tasks.into_iter(), &|(task, (out, mut to)): (
                    usize,
                    (&mut [T], Option<&mut [I]>),
                )| {
                    let mut room = cpu::Room::default();
                    for (i, out) in out.chunks_exact_mut(top.k).enumerate() {
                        let row = task * each + i;
                        let own = &input[row * len..(row + 1) * len];
                        let found = cpu::select(&keys, bytemuck::cast_slice(own), top.k, top.sorted, &mut room)?;
                        out.iter_mut().zip(found).for_each(|(key, &place)| *key = own[place]);
                        if let Some(to) = &mut to {
                            let numbers = found.iter().map(|place| I::from_bits_lossy((row * step + place) as u64));
                            to[i * top.k..].iter_mut().zip(numbers).for_each(|(to, place)| *to = place);
                        }
                    }
                    Ok(())
                })?;
            }
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, count.is_some())?);
                let form = top.form(&keys, input.len(), places.as_ref().map_or(0, |_| size_of::<I>()))?;
                match places {
                    Some(Places { to, step }) => {
                        let to = to.cl(device, count.is_some())?;
                        crate::runtime::apart(&[&input], &[&output, &to])?;
                        let count = on_device(device, count, &[&output, &to])?;
                        gpu::run(device, &form, (&input, count.as_ref()), &output, (Some(&to), step), scratch)?;
                        to.finish(device)?;
                    }
                    None => {
                        crate::runtime::apart(&[&input], &[&output])?;
                        let count = on_device(device, count, &[&output])?;
                        gpu::run(device, &form, (&input, count.as_ref()), &output, (None, 0), scratch)?;
                    }
                }
                output.finish(device)?;
            }
        }
        Ok(())
    }

    /// The key of a rank: `sort(x)[rank]`, bit for bit.
    ///
    /// Rank 0 is the smallest key, and rank n - 1 the largest. As in [`Device::sort`], equal keys stay in their order,
    /// and NaN come last.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there are at most `rank` keys.
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the device does not hold the scratch.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let x = device.upload(&[7u8, 3, 9, 3])?;
    /// assert_eq!((device.nth_element(&x, 1)?, device.nth_element(&x, 2)?), (3, 7));
    /// assert_eq!(device.nth_element(&x, 4).unwrap_err().to_string(), "rank 4 is out of range for 4 keys");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn nth_element<T: Element>(&self, input: impl Source<Item = T>, rank: usize) -> Result<T> {
        let mut value = [T::ZERO];
        self.nth(input.held(self)?.input(), &[rank], Output::from(&mut value), &mut Scratch::new())?;
        Ok(value[0])
    }

    /// The keys of several ranks into a slice, buffer or view: `output[i] = sort(x)[ranks[i]]`.
    ///
    /// Waits for the result only if `output` is a host slice, if the input has a [gather](Source::gathered), or if
    /// there are more than 16 ranks. Up to 16 ranks are selected at once. For more ranks, the call sorts the keys,
    /// waits for the sort, and gathers the ranks.
    ///
    /// # Errors
    ///
    /// Same as [`Device::nth_element`]; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) also if `output`
    /// does not have one element for each rank, or if it overlaps the input in imported OpenCL memory.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let mut ends = [0.0f32; 2];
    /// Device::best()?.nth_element_into(&[2.0f32, -1.0, 5.0], &[2, 0], &mut ends)?;
    /// assert_eq!(ends, [5.0, -1.0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn nth_element_into<'b, T: Element>(
        &self,
        input: impl Source<Item = T>,
        ranks: &[usize],
        output: impl Into<Output<'b, T>>,
    ) -> Result<()> {
        self.nth(input.held(self)?.input(), ranks, output.into(), &mut Scratch::new())
    }

    /// [`Device::nth_element_into`] without the conversions, so that it is compiled once for each type.
    #[inline(never)]
    fn nth<T: Element>(
        &self,
        input: Input<'_, T>,
        ranks: &[usize],
        output: Output<'_, T>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let n = input.len();
        output.expect_len(ranks.len(), "a selection by ranks")?;
        if let Some(rank) = ranks.iter().find(|&&rank| rank >= n) {
            return Err(Error::invalid(format!("rank {rank} is out of range for {n} keys")));
        }
        if ranks.is_empty() {
            return Ok(());
        }
        let ranks = memory::collect(ranks.iter().map(|&rank| rank as u64))?;
        let (keys, many) = (Keys::of(T::TYPE, &Order::ascending())?, ranks.len() > RANKS);
        match self.backend() {
            Backend::Cpu if many => {
                let mut sorted = self.temporary(n)?;
                self.sort_into(input, Order::ascending(), &mut sorted)?;
                self.gather_into(&sorted, &ranks, output, &mut [0])?;
            }
            Backend::Cpu => {
                let row = bytemuck::cast_slice(input.host()?);
                for (value, &rank) in output.host()?.iter_mut().zip(&ranks) {
                    *value = T::from_bits_lossy(cpu::value(&keys, row, rank as usize)?);
                }
            }
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                crate::runtime::apart(&[&input], &[&output])?;
                if many {
                    let sorted = ClInput::pooled(device, n * size_of::<T>(), size_of::<T>())?;
                    let caps = sort::gpu::capabilities(device, &keys, &input)?;
                    sort::gpu::run(device, &caps, &keys, (&input, None), Some(&sorted), None, scratch)?;
                    self.gather_values(device, size_of::<T>(), &sorted, &self.upload(&ranks)?, &output)?;
                } else {
                    let want = gpu::Want::Ranks(&ranks);
                    let form = gpu::Form { keys: &keys, place_bytes: 0, rows: ranks.len(), len: n, want };
                    gpu::run(device, &form, (&input, None), &output, (None, 0), scratch)?;
                }
                output.finish(device)?;
            }
        }
        Ok(())
    }
}
