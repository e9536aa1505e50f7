//! Sorts of tables: keys with several columns of values, each of its own type: [`Device::sort`] of
//! [`keys.with_columns(table)`](Source::with_columns).
//!
//! | property | |
//! |---|---|
//! | work | a [sort](crate::sort) of the keys with their indices, and a [gather](crate::layout::copy::gather) of each column |
//! | keys, determinism | as for `sort`; stable |
//! | values | any plain type, a different one in each column |
//! | scratch | as for `sort` with values of 4 bytes, or of 8 bytes for more than 2^32 keys. A call also allocates 4 or 8 bytes per key |
//! | limits | any n that fits the device |
//!
//! If values moved with the keys, each pass would read and write every column. From two columns on, it is cheaper to
//! move indices and to gather each value once. A device sorts a single column as [values](Source::with).

use bytemuck::Pod;

use super::gpu;
use super::{Key, NARROW, Order, Sortable, as_many, cpu};
use crate::keys::Keys;
use crate::runtime::{ClInput, ClOutput, opencl::ClDevice};
use crate::{
    Buffer, Device, Error, Input, Output, Result, Scratch, Source, memory, runtime::Backend, source::WithColumns,
};

/// Columns of values, and their outputs.
///
/// ```
/// use oclprim::{Columns, Device, Order, Source};
///
/// let device = Device::best()?;
/// let (people, mut keys, mut names) = ([*b"Ida", *b"Bo ", *b"Lu "], [0u8; 3], [*b"---"; 3]);
/// let mut sizes = device.zeroed::<f64>(3)?;
/// let columns = Columns::new().with(&people, &mut names).with(&[1.5, 2.5, 3.5], &mut sizes);
/// device.sort_into([41u8, 7, 41].with_columns(columns), Order::descending(), &mut keys)?;
/// assert_eq!((keys, names, sizes.to_vec()?), ([41, 41, 7], [*b"Ida", *b"Lu ", *b"Bo "], vec![1.5, 3.5, 2.5]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Default)]
pub struct Columns<'a> {
    all: Vec<Box<dyn Pair<'a> + 'a>>,
}

impl<'a> Columns<'a> {
    /// An empty list of columns.
    ///
    /// ```
    /// use oclprim::{Columns, Device, Order, Source};
    ///
    /// let mut keys = [0u8; 3]; // no columns: keys alone
    /// Device::best()?.sort_into([3, 1, 2].with_columns(Columns::new()), Order::ascending(), &mut keys)?;
    /// assert_eq!(keys, [1, 2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column and its output.
    ///
    /// ```
    /// use oclprim::{Columns, Device, Order, Source};
    ///
    /// let (mut keys, mut sizes) = ([0u8; 2], [0.0f32; 2]);
    /// let columns = Columns::new().with(&[1.5, 2.5], &mut sizes);
    /// Device::best()?.sort_into([9, 4].with_columns(columns), Order::ascending(), &mut keys)?;
    /// assert_eq!((keys, sizes), ([4, 9], [2.5, 1.5]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    #[must_use]
    pub fn with<V: Pod>(mut self, values: impl Into<Input<'a, V>>, values_out: impl Into<Output<'a, V>>) -> Self {
        self.all.push(Box::new((values.into(), values_out.into())));
        self
    }
}

impl std::fmt::Debug for Columns<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} columns", self.all.len())
    }
}

/// Sorted indices on the host.
enum Places {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

/// A column of any type, and its output.
trait Pair<'a> {
    fn size(&self) -> usize;
    fn check(&self, n: usize) -> Result<()>;
    /// Gathers the column on the host.
    fn gather(self: Box<Self>, device: &Device, places: &Places) -> Result<()>;
    fn cl(self: Box<Self>, device: &ClDevice) -> Result<(ClInput, ClOutput<'a>)>;
}

impl<'a, V: Pod> Pair<'a> for (Input<'a, V>, Output<'a, V>) {
    fn size(&self) -> usize {
        size_of::<V>()
    }

    fn check(&self, n: usize) -> Result<()> {
        as_many(n, self.0.len())?;
        self.1.expect_len(n, "a sort of values")?;
        if self.size() == 0 {
            return Err(Error::unsupported("values must have at least 1 byte"));
        }
        Ok(())
    }

    fn gather(self: Box<Self>, device: &Device, places: &Places) -> Result<()> {
        match places {
            Places::Narrow(places) => device.gather_into(self.0, places, self.1, &mut [0]),
            Places::Wide(places) => device.gather_into(self.0, places, self.1, &mut [0]),
        }
    }

    fn cl(self: Box<Self>, device: &ClDevice) -> Result<(ClInput, ClOutput<'a>)> {
        Ok((self.0.cl(device)?, self.1.cl(device, false)?))
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A tuple of up to eight columns, each a [`Source`], or [`Columns`] with outputs.
///
/// ```
/// use oclprim::{Buffer, Device, Order, Source, Table};
///
/// fn by_day<T: Table>(days: &Buffer<u16>, table: T) -> oclprim::Result<T::Sorted> {
///     Ok(Device::best()?.sort(days.with_columns(table), Order::ascending())?.1)
/// }
/// let days = Device::best()?.upload(&[3u16, 1])?;
/// let (names, sums) = by_day(&days, (&[*b"wed", *b"mon"], &[0.5f32, 0.25]))?;
/// assert_eq!((names.to_vec()?, sums.to_vec()?), (vec![*b"mon", *b"wed"], vec![0.25, 0.5]));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of columns",
    label = "expected a tuple of one to eight columns",
    note = "pass one column as `(&values,)`, and two as `(&names, &sizes)`"
)]
pub trait Table: sealed::Sealed + Sized {
    /// A buffer per column of a tuple; nothing for [`Columns`], which have outputs.
    type Sorted;
    /// The output of the keys, beside the outputs of [`Columns`]. A tuple has no outputs, so [`Device::sort_into`] does
    /// not take it.
    type Keys<'o, K: Pod>;
    /// Calls `sort` with these columns and new buffers, and returns the buffers.
    #[doc(hidden)]
    fn sorted(self, device: &Device, sort: &mut dyn FnMut(Columns<'_>) -> Result<()>) -> Result<Self::Sorted>;
    /// Calls `sort` with these columns and the output of keys.
    #[doc(hidden)]
    fn sorted_into<K: Pod>(
        self,
        keys: Self::Keys<'_, K>,
        sort: impl FnOnce(Columns<'_>, Output<'_, K>) -> Result<()>,
    ) -> Result<()>;
}

/// The outputs that a tuple of columns does not have: pass [`Columns`].
#[derive(Clone, Copy, Debug)]
pub enum NoOutputs {}

impl sealed::Sealed for Columns<'_> {}
impl Table for Columns<'_> {
    type Sorted = ();
    type Keys<'o, K: Pod> = Output<'o, K>;

    fn sorted(self, _: &Device, sort: &mut dyn FnMut(Columns<'_>) -> Result<()>) -> Result<()> {
        sort(self)
    }

    fn sorted_into<K: Pod>(
        self,
        keys: Output<'_, K>,
        sort: impl FnOnce(Columns<'_>, Output<'_, K>) -> Result<()>,
    ) -> Result<()> {
        sort(self, keys)
    }
}

macro_rules! tables {
    ($($($Column:ident $from:ident $to:ident),*;)*) => { $(
        impl<$($Column: Source<Item: Pod>),*> sealed::Sealed for ($($Column,)*) {}
        impl<$($Column: Source<Item: Pod>),*> Table for ($($Column,)*) {
            type Sorted = ($(Buffer<$Column::Item>,)*);
            type Keys<'o, K: Pod> = NoOutputs;

            fn sorted(self, device: &Device, sort: &mut dyn FnMut(Columns<'_>) -> Result<()>) -> Result<Self::Sorted> {
                let ($($from,)*) = self;
                $(let $from = $from.held(device)?;)*
                $(let mut $to = device.uninit($from.input().len())?;)*
                sort(Columns::new()$(.with($from.input(), &mut $to))*)?;
                Ok(($($to,)*))
            }

            fn sorted_into<K: Pod>(
                self,
                keys: NoOutputs,
                _: impl FnOnce(Columns<'_>, Output<'_, K>) -> Result<()>,
            ) -> Result<()> {
                match keys {}
            }
        }
    )* };
}
tables! {
    A a x;
    A a x, B b y;
    A a x, B b y, C c z;
    A a x, B b y, C c z, D d w;
    A a x, B b y, C c z, D d w, E e v;
    A a x, B b y, C c z, D d w, E e v, F f u;
    A a x, B b y, C c z, D d w, E e v, F f u, G g t;
    A a x, B b y, C c z, D d w, E e v, F f u, G g t, H h s;
}

impl<S: Source<Item: Key>, T: Table> Sortable<Order> for WithColumns<S, T> {
    type Sorted = (Buffer<S::Item>, T::Sorted);
    type Out<'o> = T::Keys<'o, S::Item>;

    fn sort(self, device: &Device, order: &Order) -> Result<Self::Sorted> {
        let keys = self.keys.held(device)?;
        let mut output = device.uninit(keys.input().len())?;
        let sorted = self.table.sorted(device, &mut |columns| {
            device.sort_columns_one(keys.input(), columns, Output::from(&mut output), order, &mut Scratch::new())
        })?;
        Ok((output, sorted))
    }

    fn sort_into(self, device: &Device, order: &Order, output: Self::Out<'_>) -> Result<()> {
        let keys = self.keys.held(device)?;
        self.table.sorted_into(output, |columns, output| {
            device.sort_columns_one(keys.input(), columns, output, order, &mut Scratch::new())
        })
    }
}

impl Device {
    /// A sort with columns, compiled once per type of keys.
    #[inline(never)]
    fn sort_columns_one<K: Key>(
        &self,
        input: Input<'_, K>,
        columns: Columns<'_>,
        output: Output<'_, K>,
        order: &Order,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let n = input.len();
        output.expect_len(n, "a sort of keys")?;
        columns.all.iter().try_for_each(|column| column.check(n))?;
        let keys = Keys::new::<K>(order)?;
        match self.backend() {
            Backend::Cpu => {
                let (input, output) = (bytemuck::cast_slice(input.host()?), bytemuck::cast_slice_mut(output.host()?));
                let places = if n <= NARROW {
                    let mut places = memory::zeroed(n)?;
                    cpu::places(&keys, input, Some(output), &mut places)?;
                    Places::Narrow(places)
                } else {
                    let mut places = memory::zeroed(n)?;
                    cpu::places(&keys, input, Some(output), &mut places)?;
                    Places::Wide(places)
                };
                columns.all.into_iter().try_for_each(|column| column.gather(self, &places))
            }
            Backend::OpenCl(device) => {
                let (input, output) = (input.cl(device)?, output.cl(device, false)?);
                let sizes: Vec<usize> = columns.all.iter().map(|column| column.size()).collect();
                let columns = columns.all.into_iter().map(|column| column.cl(device)).collect::<Result<Vec<_>>>()?;
                let inputs: Vec<_> = [&input].into_iter().chain(columns.iter().map(|(from, _)| from)).collect();
                let outputs: Vec<_> = [&output].into_iter().chain(columns.iter().map(|(_, to)| to)).collect();
                crate::runtime::apart(&inputs, &outputs)?;
                let caps = gpu::capabilities(device, &keys, &input)?;
                let mut sort = |with: Option<gpu::Values<'_>>| {
                    gpu::run(device, &caps, &keys, (&input, None), Some(&output), with, scratch)
                };
                match (&columns[..], &sizes[..]) {
                    ([], _) => sort(None)?,
                    ([(values, to)], &[size]) => {
                        self.with_values(device, size, n, (values, to), |with| sort(Some(with)))?;
                    }
                    _ if n <= NARROW => self.gather_columns::<u32>(device, n, &sizes, &columns, sort)?,
                    _ => self.gather_columns::<u64>(device, n, &sizes, &columns, sort)?,
                }
                for (_, to) in columns {
                    to.finish(device)?;
                }
                output.finish(device)
            }
        }
    }

    /// Sorts indices and gathers the columns by them.
    fn gather_columns<I: crate::Offset>(
        &self,
        device: &ClDevice,
        n: usize,
        sizes: &[usize],
        columns: &[(ClInput, ClOutput<'_>)],
        sort: impl FnOnce(Option<gpu::Values<'_>>) -> Result<()>,
    ) -> Result<()> {
        let places = self.places_by::<I>(device, n, |with| sort(Some(with)))?;
        columns
            .iter()
            .zip(sizes)
            .try_for_each(|((from, to), &size)| self.gather_values(device, size, from, &places, to))
    }
}
