//! N-dimensional views: the input or output of a primitive, with the layout of its elements.

use std::ops::RangeBounds;

use bytemuck::Pod;

use crate::{Buffer, Error, Input, Layout, Output, PinnedVec, Result, View, ViewMut, memory, runtime::Extent};

/// An N-dimensional array for reading: a host slice, a buffer or a view, with the [`Layout`] of its elements.
///
/// [`Buffer::nd`] and [`Buffer::with_layout`] return a view; [`View`] and [`Input`] have methods of the same names. Every
/// [`Input`] also converts to a view of one axis. Slicing, stepping, permuting, reversing and broadcasting move no
/// elements.
///
/// Methods take `impl Into<NdView<T>>`. An array of `ndarray` converts by `NdView::try_from(&array)?` or
/// `NdView::try_from(array.view())?`, with the feature `ndarray`.
///
/// ```
/// use oclprim::{Device, Layout, NdView};
///
/// let device = Device::best()?;
/// let x = device.upload(&[1u32, 2, 3, 4, 5, 6])?;
/// let rows = x.nd(&[2, 3])?;
/// assert_eq!(rows.permute(&[1, 0])?.to_vec()?, [1, 4, 2, 5, 3, 6]);
/// assert_eq!(rows.slice(1, 1..)?.reverse(0)?.to_vec()?, [5, 6, 2, 3]);
/// assert_eq!(rows.index(0, 1)?.insert_axis(0)?.broadcast_to(&[2, 3])?.to_vec()?, [4, 5, 6, 4, 5, 6]);
///
/// let ends = rows.step(1, 2)?.slice(0, ..1)?;
/// assert_eq!((ends.shape(), ends.ndim(), ends.len(), ends.is_empty()), (&[1, 2][..], 2, 2, false));
/// assert_eq!(ends.broadcast(0, 2)?.to_vec()?, [1, 3, 1, 3]);
/// assert_eq!(ends.remove_axis(0)?.layout().strides(), [2]);
/// assert_eq!(ends.input().len(), 6);
///
/// let on_host = NdView::new(&[1u8, 2, 3, 4], Layout::strided(&[2], &[2], 1)?)?;
/// assert_eq!(on_host.to_vec()?, [2, 4]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct NdView<'a, T: Pod> {
    input: Input<'a, T>,
    layout: Layout,
}

/// An N-dimensional array for writing: a host slice, a buffer or a view, with the [`Layout`] of its elements. Elements in the
/// gaps of the layout keep their values.
///
/// No two elements may share an offset, and no axis may run backwards: [`Layout::check_writable`].
///
/// Methods take `impl Into<NdViewMut<T>>`. An array of `ndarray` converts by `NdViewMut::try_from(&mut array)?`, with the
/// feature `ndarray`.
///
/// ```
/// use oclprim::{Device, Layout, NdViewMut};
///
/// let device = Device::best()?;
/// let mut x = device.zeroed::<u32>(12)?;
/// let block = x.nd_mut(&[3, 4])?.slice(1, 1..3)?;
/// assert_eq!((block.shape(), block.layout().strides()), (&[3, 2][..], &[4, 1][..]));
/// assert_eq!((block.ndim(), block.len(), block.is_empty()), (2, 6, false));
///
/// let corners = x.nd_mut(&[3, 4])?.step(0, 2)?.step(1, 3)?.permute(&[1, 0])?;
/// let column = corners.index(0, 1)?.insert_axis(1)?.remove_axis(1)?;
/// device.copy(oclprim::NdView::from(&[7, 8]), column)?;
/// assert_eq!(x.to_vec()?, [0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8]);
///
/// let error = NdViewMut::new(&mut [0u8; 4], Layout::contiguous(&[4])?.reverse(0)?).unwrap_err();
/// assert_eq!(error.to_string(), "axis 0 of 4 elements has a stride of -1, which is for reading only");
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Debug)]
pub struct NdViewMut<'a, T: Pod> {
    output: Output<'a, T>,
    layout: Layout,
}

/// Contiguous layout of `shape`; an error unless it has `len` elements.
fn shaped(shape: &[usize], len: usize) -> Result<Layout> {
    let layout = Layout::contiguous(shape)?;
    if layout.len() == len {
        Ok(layout)
    } else {
        Err(Error::invalid(format!("a shape of {shape:?} has {} elements, but the buffer has {len}", layout.len())))
    }
}

/// The first offset and the length of the memory that a layout spans, and the layout relative to that start.
fn crop(layout: &Layout) -> (usize, usize, Layout) {
    match layout.span() {
        Some((low, high)) => (low, high - low + 1, layout.moved_down(low)),
        None => (0, 0, *layout),
    }
}

/// Methods of both views.
macro_rules! layout_methods {
    ($view:ident) => {
        /// # Shape and parts
        ///
        /// These methods return the shape, and views of a part of the elements.
        impl<T: Pod> $view<'_, T> {
            /// The layout of the elements.
            ///
            /// ```
            /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]).nd(&[2, 3])?;
            /// assert_eq!(x.layout().strides(), [3, 1]);
            /// # Ok::<(), oclprim::Error>(())
            /// ```
            pub fn layout(&self) -> &Layout {
                &self.layout
            }

            /// The length of each axis.
            ///
            /// ```
            /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]).nd(&[2, 3])?;
            /// assert_eq!(x.shape(), [2, 3]);
            /// # Ok::<(), oclprim::Error>(())
            /// ```
            pub fn shape(&self) -> &[usize] {
                self.layout.shape()
            }

            /// The number of axes.
            ///
            /// ```
            /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]).nd(&[2, 3])?;
            /// assert_eq!(x.ndim(), 2);
            /// # Ok::<(), oclprim::Error>(())
            /// ```
            pub fn ndim(&self) -> usize {
                self.layout.ndim()
            }

            /// The number of elements.
            ///
            /// ```
            /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]).nd(&[2, 3])?;
            /// assert_eq!(x.len(), 6);
            /// # Ok::<(), oclprim::Error>(())
            /// ```
            pub fn len(&self) -> usize {
                self.layout.len()
            }

            /// Returns whether there are no elements.
            ///
            /// ```
            /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]).nd(&[2, 3])?;
            /// assert!(x.slice(1, 3..)?.is_empty());
            /// # Ok::<(), oclprim::Error>(())
            /// ```
            pub fn is_empty(&self) -> bool {
                self.layout.is_empty()
            }

            /// The same elements with permuted axes.
            ///
            /// # Errors
            ///
            /// Same as [`Layout::permute`].
            ///
            /// ```
            /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]).nd(&[2, 3])?;
            /// assert_eq!(x.permute(&[1, 0])?.to_vec()?, [1, 4, 2, 5, 3, 6]);
            /// # Ok::<(), oclprim::Error>(())
            /// ```
            pub fn permute(self, axes: &[usize]) -> Result<Self> {
                Ok(Self { layout: self.layout.permute(axes)?, ..self })
            }

            /// The elements whose index along `axis` is within `range`.
            ///
            /// # Errors
            ///
            /// Same as [`Layout::slice`].
            ///
            /// ```
            /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]).nd(&[2, 3])?;
            /// assert_eq!(x.slice(1, ..2)?.to_vec()?, [1, 2, 4, 5]);
            /// # Ok::<(), oclprim::Error>(())
            /// ```
            pub fn slice(self, axis: usize, range: impl RangeBounds<usize>) -> Result<Self> {
                Ok(Self { layout: self.layout.slice(axis, range)?, ..self })
            }

            /// Every `k`-th element along `axis`, beginning with the first.
            ///
            /// # Errors
            ///
            /// Same as [`Layout::step`].
            ///
            /// ```
            /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]).nd(&[2, 3])?;
            /// assert_eq!(x.step(1, 2)?.to_vec()?, [1, 3, 4, 6]);
            /// # Ok::<(), oclprim::Error>(())
            /// ```
            pub fn step(self, axis: usize, k: usize) -> Result<Self> {
                Ok(Self { layout: self.layout.step(axis, k)?, ..self })
            }

            /// The elements whose index along `axis` is `i`, without that axis.
            ///
            /// # Errors
            ///
            /// Same as [`Layout::index`].
            ///
            /// ```
            /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]).nd(&[2, 3])?;
            /// assert_eq!(x.index(0, 1)?.to_vec()?, [4, 5, 6]);
            /// # Ok::<(), oclprim::Error>(())
            /// ```
            pub fn index(self, axis: usize, i: usize) -> Result<Self> {
                Ok(Self { layout: self.layout.index(axis, i)?, ..self })
            }

            /// Inserts an axis of one element as axis `axis`.
            ///
            /// # Errors
            ///
            /// Same as [`Layout::insert_axis`].
            ///
            /// ```
            /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]).nd(&[2, 3])?;
            /// assert_eq!(x.insert_axis(0)?.shape(), [1, 2, 3]);
            /// # Ok::<(), oclprim::Error>(())
            /// ```
            pub fn insert_axis(self, axis: usize) -> Result<Self> {
                Ok(Self { layout: self.layout.insert_axis(axis)?, ..self })
            }

            /// Removes an axis of one element.
            ///
            /// # Errors
            ///
            /// Same as [`Layout::remove_axis`].
            ///
            /// ```
            /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]).nd(&[2, 3])?;
            /// assert_eq!(x.insert_axis(2)?.remove_axis(2)?.shape(), [2, 3]);
            /// # Ok::<(), oclprim::Error>(())
            /// ```
            pub fn remove_axis(self, axis: usize) -> Result<Self> {
                Ok(Self { layout: self.layout.remove_axis(axis)?, ..self })
            }
        }
    };
}

/// # Construction, repetition and reading
///
/// These methods return a view, reverse or repeat its axes, and read its elements.
impl<'a, T: Pod> NdView<'a, T> {
    /// The elements of `input` that `layout` selects.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if an element is outside `input`.
    ///
    /// ```
    /// use oclprim::{Layout, NdView};
    ///
    /// let x = NdView::new(&[1u8, 2, 3, 4], Layout::contiguous(&[2, 2])?.permute(&[1, 0])?)?;
    /// assert_eq!(x.to_vec()?, [1, 3, 2, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn new(input: impl Into<Input<'a, T>>, layout: Layout) -> Result<Self> {
        let input = input.into();
        layout.check(input.len())?;
        Ok(Self { input, layout })
    }

    /// Copies the elements to the host in row-major order; waits for all earlier commands.
    ///
    /// On an OpenCL device, the elements in the gaps are transferred too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) if a command failed;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the host cannot hold the elements.
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[1u8, 2, 3, 4])?;
    /// assert_eq!(x.nd(&[2, 2])?.reverse(1)?.to_vec()?, [2, 1, 4, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let (input, layout) = self.parts();
        let fetched;
        let data = match input {
            Input::Device(view) if !view.buffer().device().is_cpu() => {
                fetched = view.to_vec()?;
                if layout.is_contiguous() {
                    return Ok(fetched);
                }
                &fetched[..]
            }
            input => input.host()?,
        };
        let mut out = memory::with_capacity(layout.len())?;
        let rows = layout.rows();
        let (len, stride) = (rows.row_len(), rows.row_stride());
        for start in rows {
            match stride {
                1 => out.extend_from_slice(&data[start..start + len]),
                _ => out.extend((0..len as isize).map(|i| data[(start as isize + i * stride) as usize])),
            }
        }
        Ok(out)
    }

    /// The same elements with `axis` reversed.
    ///
    /// # Errors
    ///
    /// Same as [`Layout::reverse`].
    ///
    /// ```
    /// use oclprim::{Device, Input};
    ///
    /// let x = [1u8, 2, 3, 4, 5, 6];
    /// let upside_down = Input::from(&x).nd(&[2, 3])?.reverse(0)?;
    /// assert_eq!(Device::best()?.transform(upside_down)?.to_vec()?, [4, 5, 6, 1, 2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reverse(self, axis: usize) -> Result<Self> {
        Ok(Self { layout: self.layout.reverse(axis)?, ..self })
    }

    /// Repeats an axis of one element `n` times.
    ///
    /// # Errors
    ///
    /// Same as [`Layout::broadcast`].
    ///
    /// ```
    /// use oclprim::{Device, Input};
    ///
    /// let row = Input::from(&[1u8, 2]).nd(&[1, 2])?.broadcast(0, 3)?;
    /// assert_eq!(Device::best()?.transform(row)?.to_vec()?, [1, 2, 1, 2, 1, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn broadcast(self, axis: usize, n: usize) -> Result<Self> {
        Ok(Self { layout: self.layout.broadcast(axis, n)?, ..self })
    }

    /// Broadcasts to `shape`, as NumPy does.
    ///
    /// # Errors
    ///
    /// Same as [`Layout::broadcast_to`].
    ///
    /// ```
    /// use oclprim::{Device, Input};
    ///
    /// let column = Input::from(&[1u8, 2]).nd(&[2, 1])?.broadcast_to(&[2, 2, 2])?;
    /// assert_eq!(Device::best()?.transform(column)?.to_vec()?, [1, 1, 2, 2, 1, 1, 2, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn broadcast_to(self, shape: &[usize]) -> Result<Self> {
        Ok(Self { layout: self.layout.broadcast_to(shape)?, ..self })
    }

    /// The part of the input between the layout's lowest and highest offset, and the layout relative to that part. If
    /// the input is a host slice, a call copies only this part to the device.
    pub(crate) fn parts(&self) -> (Input<'a, T>, Layout) {
        let (start, len, layout) = crop(&self.layout);
        (self.input.part(start, len), layout)
    }

    /// The bytes from the first element to the last.
    pub(crate) fn extent(&self) -> Extent {
        self.parts().0.extent()
    }

    /// The whole input, which the layout's offsets refer to.
    ///
    /// ```
    /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]).nd(&[2, 3])?;
    /// assert_eq!(x.slice(0, 1..)?.input().len(), 6); // the layout selects 3 of them
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn input(&self) -> Input<'a, T> {
        self.input
    }
}

/// # Construction
///
/// This function returns a view for writing.
impl<'a, T: Pod> NdViewMut<'a, T> {
    /// The elements of `output` that `layout` selects.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if an element is outside `output`, or if
    /// [`Layout::check_writable`] fails.
    ///
    /// ```
    /// use oclprim::{Device, Layout, NdViewMut};
    ///
    /// let mut out = [0u8; 5];
    /// let odd = NdViewMut::new(&mut out, Layout::strided(&[2], &[2], 1)?)?;
    /// Device::best()?.copy(oclprim::NdView::from(&[1, 2]), odd)?;
    /// assert_eq!(out, [0, 1, 0, 2, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn new(output: impl Into<Output<'a, T>>, layout: Layout) -> Result<Self> {
        let output = output.into();
        layout.check_writable()?;
        layout.check(output.len())?;
        Ok(Self { output, layout })
    }

    /// The part of the output between the layout's lowest and highest offset, and the layout relative to that part.
    /// Unless the layout [is dense](Layout::is_dense), elements in its gaps must keep their values.
    pub(crate) fn parts(self) -> (Output<'a, T>, Layout) {
        let (start, len, layout) = crop(&self.layout);
        (self.output.part(start, len), layout)
    }
}

layout_methods!(NdView);
layout_methods!(NdViewMut);

/// # N-dimensional views
///
/// These methods give the elements a shape or a [`Layout`].
impl<'a, T: Pod> Input<'a, T> {
    /// All elements as a row-major array of shape `shape`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the shape and the input differ in the number of
    /// elements, or if [`Layout::contiguous`] fails.
    ///
    /// ```
    /// let x = oclprim::Input::from(&[1u8, 2, 3, 4, 5, 6]);
    /// assert_eq!(x.nd(&[2, 3])?.index(1, 2)?.to_vec()?, [3, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn nd(self, shape: &[usize]) -> Result<NdView<'a, T>> {
        Ok(NdView { layout: shaped(shape, self.len())?, input: self })
    }

    /// The elements that `layout` selects: [`NdView::new`].
    ///
    /// # Errors
    ///
    /// Same as [`NdView::new`].
    ///
    /// ```
    /// let every_other = oclprim::Layout::strided(&[2], &[2], 0)?;
    /// assert_eq!(oclprim::Input::from(&[1u8, 2, 3, 4]).with_layout(every_other)?.to_vec()?, [1, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with_layout(self, layout: Layout) -> Result<NdView<'a, T>> {
        NdView::new(self, layout)
    }
}

/// # N-dimensional views
///
/// These methods give the elements a shape or a [`Layout`].
impl<'a, T: Pod> Output<'a, T> {
    /// All elements as a row-major array of shape `shape`, for writing.
    ///
    /// # Errors
    ///
    /// Same as [`Input::nd`].
    ///
    /// ```
    /// let mut out = [0u8; 4];
    /// let columns = oclprim::Output::from(&mut out).nd(&[2, 2])?.permute(&[1, 0])?;
    /// oclprim::Device::best()?.copy(oclprim::Input::from(&[1, 2, 3, 4]).nd(&[2, 2])?, columns)?;
    /// assert_eq!(out, [1, 3, 2, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn nd(self, shape: &[usize]) -> Result<NdViewMut<'a, T>> {
        Ok(NdViewMut { layout: shaped(shape, self.len())?, output: self })
    }

    /// The elements that `layout` selects, for writing: [`NdViewMut::new`].
    ///
    /// # Errors
    ///
    /// Same as [`NdViewMut::new`].
    ///
    /// ```
    /// let mut out = [0u8; 4];
    /// let every_other = oclprim::Output::from(&mut out).with_layout(oclprim::Layout::strided(&[2], &[2], 0)?)?;
    /// oclprim::Device::best()?.copy(oclprim::NdView::from(&[1, 2]), every_other)?;
    /// assert_eq!(out, [1, 0, 2, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with_layout(self, layout: Layout) -> Result<NdViewMut<'a, T>> {
        NdViewMut::new(self, layout)
    }
}

/// # N-dimensional views
///
/// These methods give the elements a shape or a [`Layout`].
impl<T: Pod> Buffer<T> {
    /// All elements as a row-major array of shape `shape`.
    ///
    /// # Errors
    ///
    /// Same as [`Input::nd`].
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[1u8, 2, 3, 4])?;
    /// assert_eq!(x.nd(&[2, 2])?.index(1, 0)?.to_vec()?, [1, 3]);
    /// let error = x.nd(&[2, 3]).unwrap_err();
    /// assert_eq!(error.to_string(), "a shape of [2, 3] has 6 elements, but the buffer has 4");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn nd(&self, shape: &[usize]) -> Result<NdView<'_, T>> {
        Input::from(self).nd(shape)
    }

    /// The elements that `layout` selects.
    ///
    /// # Errors
    ///
    /// Same as [`NdView::new`].
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[1u8, 2, 3, 4])?;
    /// let windows = x.with_layout(oclprim::Layout::strided(&[3, 2], &[1, 1], 0)?)?;
    /// assert_eq!(windows.to_vec()?, [1, 2, 2, 3, 3, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with_layout(&self, layout: Layout) -> Result<NdView<'_, T>> {
        NdView::new(self, layout)
    }

    /// All elements as a row-major array of shape `shape`, for writing.
    ///
    /// # Errors
    ///
    /// Same as [`Input::nd`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let mut x = device.zeroed::<u8>(4)?;
    /// device.copy(oclprim::NdView::from(&[1, 2]), x.nd_mut(&[2, 2])?.index(1, 0)?)?;
    /// assert_eq!(x.to_vec()?, [1, 0, 2, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn nd_mut(&mut self, shape: &[usize]) -> Result<NdViewMut<'_, T>> {
        Output::from(self).nd(shape)
    }

    /// The elements that `layout` selects, for writing.
    ///
    /// # Errors
    ///
    /// Same as [`NdViewMut::new`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let mut x = device.zeroed::<u8>(4)?;
    /// device.copy(oclprim::NdView::from(&[1, 2]), x.with_layout_mut(oclprim::Layout::strided(&[2], &[3], 0)?)?)?;
    /// assert_eq!(x.to_vec()?, [1, 0, 0, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with_layout_mut(&mut self, layout: Layout) -> Result<NdViewMut<'_, T>> {
        NdViewMut::new(self, layout)
    }
}

/// # N-dimensional views
///
/// These methods give the elements a shape or a [`Layout`].
impl<'a, T: Pod> View<'a, T> {
    /// All elements as a row-major array of shape `shape`.
    ///
    /// # Errors
    ///
    /// Same as [`Input::nd`].
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[0u8, 1, 2, 3, 4])?;
    /// assert_eq!(x.view(1..)?.nd(&[2, 2])?.index(1, 0)?.to_vec()?, [1, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn nd(self, shape: &[usize]) -> Result<NdView<'a, T>> {
        Input::from(self).nd(shape)
    }

    /// The elements that `layout` selects.
    ///
    /// # Errors
    ///
    /// Same as [`NdView::new`].
    ///
    /// ```
    /// let x = oclprim::Device::best()?.upload(&[0u8, 1, 2, 3, 4])?;
    /// assert_eq!(x.view(1..)?.with_layout(oclprim::Layout::strided(&[2], &[3], 0)?)?.to_vec()?, [1, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with_layout(self, layout: Layout) -> Result<NdView<'a, T>> {
        NdView::new(self, layout)
    }
}

/// # N-dimensional views
///
/// These methods give the elements a shape or a [`Layout`].
impl<'a, T: Pod> ViewMut<'a, T> {
    /// All elements as a row-major array of shape `shape`, for writing.
    ///
    /// # Errors
    ///
    /// Same as [`Input::nd`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let mut x = device.zeroed::<u8>(5)?;
    /// device.copy(oclprim::NdView::from(&[1, 2]), x.view_mut(1..)?.nd(&[2, 2])?.index(1, 0)?)?;
    /// assert_eq!(x.to_vec()?, [0, 1, 0, 2, 0]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn nd(self, shape: &[usize]) -> Result<NdViewMut<'a, T>> {
        Output::from(self).nd(shape)
    }

    /// The elements that `layout` selects, for writing.
    ///
    /// # Errors
    ///
    /// Same as [`NdViewMut::new`].
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// let mut x = device.zeroed::<u8>(5)?;
    /// device.copy(oclprim::NdView::from(&[1, 2]), x.view_mut(1..)?.with_layout(oclprim::Layout::strided(&[2], &[3], 0)?)?)?;
    /// assert_eq!(x.to_vec()?, [0, 1, 0, 0, 2]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn with_layout(self, layout: Layout) -> Result<NdViewMut<'a, T>> {
        NdViewMut::new(self, layout)
    }
}

impl<'a, T: Pod> From<Input<'a, T>> for NdView<'a, T> {
    fn from(input: Input<'a, T>) -> Self {
        Self { layout: Layout::line(input.len()), input }
    }
}

impl<'a, T: Pod> From<Output<'a, T>> for NdViewMut<'a, T> {
    fn from(output: Output<'a, T>) -> Self {
        Self { layout: Layout::line(output.len()), output }
    }
}

/// Every type that converts to an input or output also converts to a view of one axis.
macro_rules! lines {
    ($($view:ident of $place:ident from $source:ty $(, $n:ident)?;)*) => {
        $(impl<'a, T: Pod $(, const $n: usize)?> From<$source> for $view<'a, T> {
            fn from(source: $source) -> Self {
                $place::from(source).into()
            }
        })*
    };
}

lines! {
    NdView of Input from &'a [T];
    NdView of Input from &'a [T; N], N;
    NdView of Input from &'a Vec<T>;
    NdView of Input from &'a PinnedVec<T>;
    NdView of Input from &'a Buffer<T>;
    NdView of Input from View<'a, T>;
    NdViewMut of Output from &'a mut [T];
    NdViewMut of Output from &'a mut [T; N], N;
    NdViewMut of Output from &'a mut Vec<T>;
    NdViewMut of Output from &'a mut PinnedVec<T>;
    NdViewMut of Output from &'a mut Buffer<T>;
    NdViewMut of Output from ViewMut<'a, T>;
}
