//! Arrays of `ndarray` as inputs and outputs.

use std::borrow::Cow;

use ::ndarray::{
    ArrayBase, ArrayD, ArrayView, ArrayViewD, ArrayViewMut, ArrayViewMutD, Axis, Data, DataMut, Dimension, IxDyn,
    ShapeBuilder, ShapeError, StrideShape,
};
use bytemuck::Pod;

use crate::{Error, Input, Layout, NdView, NdViewMut, Output, Result, memory};

/// The elements of a row-major array, without a copy on the host. An array in another memory layout, such as a
/// transposed or strided view, is an error. `as_standard_layout` converts such an array, and copies it if needed.
///
/// ```
/// use ndarray::{array, s};
/// use oclprim::{Device, Input, op::Sum};
///
/// let device = Device::best()?;
/// let x = array![[1u32, 2, 3], [4, 5, 6]];
/// assert_eq!(device.reduce(Input::try_from(&x)?, Sum)?, 21);
/// assert_eq!(device.reduce(Input::try_from(&x.row(1))?, Sum)?, 15);
///
/// let columns = x.slice(s![.., 1..]);
/// assert!(Input::try_from(&columns).is_err());
/// assert_eq!(device.reduce(Input::try_from(&columns.as_standard_layout())?, Sum)?, 16);
/// # Ok::<(), oclprim::Error>(())
/// ```
impl<'a, T: Pod, S: Data<Elem = T>, D: Dimension> TryFrom<&'a ArrayBase<S, D>> for Input<'a, T> {
    type Error = Error;

    fn try_from(array: &'a ArrayBase<S, D>) -> Result<Self> {
        array.as_slice().map(Self::Host).ok_or_else(|| strided(array.shape(), array.strides()))
    }
}

/// The elements of a row-major array, for writing. An array in another memory layout is an error.
///
/// ```
/// use ndarray::{Array2, array};
/// use oclprim::{Device, Input, Output};
///
/// let (x, mut y) = (array![[1u8, 2, 3], [4, 5, 6]], Array2::zeros((3, 2)));
/// Device::best()?.transpose_into(Input::try_from(&x)?, (2, 3), Output::try_from(&mut y)?)?;
/// assert_eq!(y, x.t());
/// # Ok::<(), oclprim::Error>(())
/// ```
impl<'a, T: Pod, S: DataMut<Elem = T>, D: Dimension> TryFrom<&'a mut ArrayBase<S, D>> for Output<'a, T> {
    type Error = Error;

    fn try_from(array: &'a mut ArrayBase<S, D>) -> Result<Self> {
        let error = strided(array.shape(), array.strides());
        array.as_slice_mut().map(Self::Host).ok_or(error)
    }
}

fn strided(shape: &[usize], strides: &[isize]) -> Error {
    Error::invalid(format!("an array of shape {shape:?} with strides {strides:?} is not row-major"))
}

/// The layout of an array relative to its lowest element in memory.
fn layout(shape: &[usize], strides: &[isize]) -> Result<Layout> {
    let mut first = 0;
    if !shape.contains(&0) {
        // Axes that run backwards reach below the first element.
        let axes = shape.iter().zip(strides).filter(|&(&n, &stride)| n > 1 && stride < 0);
        first = axes.map(|(n, stride)| (n - 1) * stride.unsigned_abs()).sum();
    }
    Layout::strided(shape, strides, first)
}

/// Another view may mutably borrow the gaps between an array's elements, so no slice may cover them.
fn gaps(shape: &[usize], strides: &[isize]) -> Error {
    Error::invalid(format!(
        "an array of shape {shape:?} with strides {strides:?} has gaps; slice an NdView of the whole array instead"
    ))
}

/// A view of an array, without a copy on the host. Permuted, reversed and broadcast arrays convert too.
///
/// An array with gaps between its elements, such as a slice of its columns, is an error: another view may mutably
/// borrow the gaps. Slice the view of the whole array instead, or use [`NdCow`], which copies the elements.
///
/// ```
/// use ndarray::{array, s};
/// use oclprim::NdView;
///
/// let x = array![[1u32, 2, 3], [4, 5, 6]];
/// let turned = x.t();
/// assert_eq!(NdView::try_from(&turned)?.to_vec()?, [1, 4, 2, 5, 3, 6]);
/// assert!(NdView::try_from(x.slice(s![.., 1..])).is_err());
///
/// let columns = NdView::try_from(&x)?.slice(1, 1..)?;
/// assert_eq!(columns.to_array()?, x.slice(s![.., 1..]).into_dyn());
/// # Ok::<(), oclprim::Error>(())
/// ```
impl<'a, T: Pod, D: Dimension> TryFrom<ArrayView<'a, T, D>> for NdView<'a, T> {
    type Error = Error;

    fn try_from(array: ArrayView<'a, T, D>) -> Result<Self> {
        read(array.into_dyn())
    }
}

fn read<'a, T: Pod>(array: ArrayViewD<'a, T>) -> Result<NdView<'a, T>> {
    let (layout, once) = once(array)?;
    let data = once.to_slice_memory_order().ok_or_else(|| gaps(layout.shape(), layout.strides()))?;
    NdView::new(data, layout)
}

/// The layout of an array, and the array with one element along each broadcast axis: `ndarray` does not treat broadcast
/// axes as contiguous.
fn once<'a, T: Pod>(mut array: ArrayViewD<'a, T>) -> Result<(Layout, ArrayViewD<'a, T>)> {
    let layout = layout(array.shape(), array.strides())?;
    if layout.is_empty() {
        let nothing = ArrayView::from_shape(IxDyn(layout.shape()), &[]).map_err(refused)?;
        return Ok((layout, nothing));
    }
    for axis in 0..layout.ndim() {
        if layout.strides()[axis] == 0 {
            array.collapse_axis(Axis(axis), 0);
        }
    }
    Ok((layout, array))
}

/// Converts like an [`ArrayView`].
impl<'a, T: Pod, S: Data<Elem = T>, D: Dimension> TryFrom<&'a ArrayBase<S, D>> for NdView<'a, T> {
    type Error = Error;

    fn try_from(array: &'a ArrayBase<S, D>) -> Result<Self> {
        read(array.view().into_dyn())
    }
}

/// The elements of any array: borrowed if the array converts to an [`NdView`], otherwise copied.
///
/// One thread copies the elements in row-major order. An element that a broadcast repeats is copied once. The copy
/// reads no element in the gaps of the array, so other code may borrow the gaps, even mutably. For an output with gaps,
/// slice an [`NdViewMut`] of the whole array instead.
///
/// ```
/// use ndarray::{array, s};
/// use oclprim::{Device, NdCow, op::Sum};
///
/// let x = array![[1u32, 2, 3], [4, 5, 6]];
/// let (turned, columns) = (x.t(), x.slice(s![.., 1..]));
/// let (turned, columns) = (NdCow::try_from(&turned)?, NdCow::try_from(&columns)?);
/// assert!(!turned.is_copied() && columns.is_copied());
/// assert_eq!(Device::best()?.reduce(columns.view().along(1), Sum)?.to_vec()?, [5, 11]);
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NdCow<'a, T: Pod> {
    data: Cow<'a, [T]>,
    layout: Layout,
}

impl<T: Pod> NdCow<'_, T> {
    /// The elements as a view.
    ///
    /// ```
    /// use ndarray::{array, s};
    /// use oclprim::NdCow;
    ///
    /// let x = array![[1u8, 2, 3], [4, 5, 6]];
    /// let odd = NdCow::try_from(x.slice(s![..;-1, ..;2]))?;
    /// assert_eq!((odd.view().shape(), odd.view().to_vec()?), (&[2, 2][..], vec![4, 6, 1, 3]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn view(&self) -> NdView<'_, T> {
        NdView::new(&*self.data, self.layout).expect("a layout of these elements")
    }

    /// Returns whether the elements were copied.
    ///
    /// ```
    /// use ndarray::{array, s};
    /// use oclprim::NdCow;
    ///
    /// let x = array![[1u8, 2, 3], [4, 5, 6]];
    /// assert!(!NdCow::try_from(x.slice(s![1.., ..]))?.is_copied());
    /// assert!(NdCow::try_from(x.slice(s![.., 1..]))?.is_copied());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_copied(&self) -> bool {
        matches!(self.data, Cow::Owned(_))
    }
}

/// Returns an error only for an array of more than [`Layout::MAX_DIMS`] axes, or if the host has no memory for a copy.
impl<'a, T: Pod, D: Dimension> TryFrom<ArrayView<'a, T, D>> for NdCow<'a, T> {
    type Error = Error;

    fn try_from(array: ArrayView<'a, T, D>) -> Result<Self> {
        borrowed_or_copied(array.into_dyn())
    }
}

/// Converts like an [`ArrayView`].
impl<'a, T: Pod, S: Data<Elem = T>, D: Dimension> TryFrom<&'a ArrayBase<S, D>> for NdCow<'a, T> {
    type Error = Error;

    fn try_from(array: &'a ArrayBase<S, D>) -> Result<Self> {
        borrowed_or_copied(array.view().into_dyn())
    }
}

fn borrowed_or_copied<'a, T: Pod>(array: ArrayViewD<'a, T>) -> Result<NdCow<'a, T>> {
    let (layout, once) = once(array)?;
    if let Some(data) = once.to_slice_memory_order() {
        return Ok(NdCow { data: Cow::Borrowed(data), layout });
    }
    let copied = Layout::contiguous(once.shape())?.broadcast_to(layout.shape())?;
    let data = memory::collect(once.iter().copied())?;
    Ok(NdCow { data: Cow::Owned(data), layout: copied })
}

impl<'a, T: Pod> From<&'a NdCow<'_, T>> for NdView<'a, T> {
    fn from(elements: &'a NdCow<'_, T>) -> Self {
        elements.view()
    }
}

/// A view of an array for writing; permuted arrays convert too. An array with gaps, or with an axis that runs
/// backwards, is an error.
///
/// ```
/// use ndarray::{Array2, s};
/// use oclprim::NdViewMut;
///
/// let mut y = Array2::<f32>::zeros((4, 6));
/// let turned = NdViewMut::try_from(y.view_mut().reversed_axes())?;
/// assert_eq!((turned.shape(), turned.layout().strides()), (&[6, 4][..], &[1, 6][..]));
/// assert!(NdViewMut::try_from(y.slice_mut(s![.., 1..])).is_err());
///
/// let columns = NdViewMut::try_from(&mut y)?.slice(1, 1..)?;
/// assert_eq!(columns.shape(), [4, 5]);
/// # Ok::<(), oclprim::Error>(())
/// ```
impl<'a, T: Pod, D: Dimension> TryFrom<ArrayViewMut<'a, T, D>> for NdViewMut<'a, T> {
    type Error = Error;

    fn try_from(array: ArrayViewMut<'a, T, D>) -> Result<Self> {
        write(array.into_dyn())
    }
}

fn write<'a, T: Pod>(array: ArrayViewMutD<'a, T>) -> Result<NdViewMut<'a, T>> {
    let layout = layout(array.shape(), array.strides())?;
    if layout.is_empty() {
        return NdViewMut::new(&mut [], layout);
    }
    let data = array.into_slice_memory_order().ok_or_else(|| gaps(layout.shape(), layout.strides()))?;
    NdViewMut::new(data, layout)
}

/// Converts like an [`ArrayViewMut`].
impl<'a, T: Pod, S: DataMut<Elem = T>, D: Dimension> TryFrom<&'a mut ArrayBase<S, D>> for NdViewMut<'a, T> {
    type Error = Error;

    fn try_from(array: &'a mut ArrayBase<S, D>) -> Result<Self> {
        write(array.view_mut().into_dyn())
    }
}

fn refused(error: ShapeError) -> Error {
    Error::invalid(format!("ndarray refuses the layout: {error}")).with_source(error)
}

/// The array shape with absolute strides, and the axes that run backwards.
fn unsigned(layout: &Layout) -> (StrideShape<IxDyn>, Vec<Axis>) {
    let axes = || layout.shape().iter().zip(layout.strides());
    let strides: Vec<usize> = axes().map(|(&n, stride)| if n > 1 { stride.unsigned_abs() } else { 1 }).collect();
    let backwards = axes().enumerate().filter(|(_, (n, stride))| **n > 1 && **stride < 0);
    let backwards = backwards.map(|(axis, _)| Axis(axis)).collect();
    (IxDyn(layout.shape()).strides(IxDyn(&strides)), backwards)
}

/// The view as a view of `ndarray`, without a copy; an error unless the elements are in host memory.
///
/// ```
/// use ndarray::{ArrayViewD, array};
/// use oclprim::{Layout, NdView};
///
/// let x = NdView::new(&[1u8, 2, 3, 4, 5, 6], Layout::contiguous(&[2, 3])?.permute(&[1, 0])?)?;
/// assert_eq!(ArrayViewD::try_from(x.reverse(0)?)?, array![[3, 6], [2, 5], [1, 4]].into_dyn());
/// # Ok::<(), oclprim::Error>(())
/// ```
impl<'a, T: Pod> TryFrom<NdView<'a, T>> for ArrayViewD<'a, T> {
    type Error = Error;

    fn try_from(view: NdView<'a, T>) -> Result<Self> {
        let (input, layout) = view.parts();
        let (shape, backwards) = unsigned(&layout);
        let mut array = ArrayView::from_shape(shape, input.host()?).map_err(refused)?;
        backwards.into_iter().for_each(|axis| array.invert_axis(axis));
        Ok(array)
    }
}

/// The view as a mutable view of `ndarray`; an error unless the elements are in host memory.
impl<'a, T: Pod> TryFrom<NdViewMut<'a, T>> for ArrayViewMutD<'a, T> {
    type Error = Error;

    fn try_from(view: NdViewMut<'a, T>) -> Result<Self> {
        let (output, layout) = view.parts();
        ArrayViewMut::from_shape(unsigned(&layout).0, output.host()?).map_err(refused)
    }
}

/// # Arrays of `ndarray`
///
/// This method needs the feature `ndarray`.
impl<T: Pod> NdView<'_, T> {
    /// Copies the elements to a host array; waits for all earlier commands.
    ///
    /// # Errors
    ///
    /// Same as [`NdView::to_vec`].
    ///
    /// ```
    /// use ndarray::{Ix2, array};
    ///
    /// let x = oclprim::Device::best()?.upload(&[1u8, 2, 3, 4, 5, 6])?;
    /// let turned = x.nd(&[2, 3])?.permute(&[1, 0])?.to_array()?;
    /// assert_eq!(turned.into_dimensionality::<Ix2>().unwrap(), array![[1, 4], [2, 5], [3, 6]]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn to_array(&self) -> Result<ArrayD<T>> {
        ArrayD::from_shape_vec(self.shape(), self.to_vec()?).map_err(refused)
    }
}
