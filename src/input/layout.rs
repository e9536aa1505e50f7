//! Memory layout of N-dimensional arrays: shape, strides and offset.

use std::{fmt, iter::FusedIterator, ops::RangeBounds};

use crate::{Error, Result, ranges::within};

const MAX: usize = Layout::MAX_DIMS;

/// The memory layout of an N-dimensional array: a length and a stride for each axis, and the offset of the first element. All
/// are counted in elements.
///
/// The offset of element `[i, j, …]` is `offset + i * strides[0] + j * strides[1] + …`. A stride of 0 repeats an axis, and a
/// negative stride runs through it backwards; both are for reading only. The logical order of elements is that of their
/// indices, with the last axis fastest.
///
/// Every layout is valid: its length and all offsets fit without overflow, and no offset is negative. Layouts are small, hold
/// no memory and move no elements. [`NdView`](crate::NdView) and [`NdViewMut`](crate::NdViewMut) join them to memory.
///
/// ```
/// use oclprim::Layout;
///
/// let rows = Layout::contiguous(&[2, 3])?;
/// assert_eq!((rows.shape(), rows.strides(), rows.len()), (&[2, 3][..], &[3, 1][..], 6));
/// assert_eq!((rows.ndim(), rows.offset(), rows.is_empty()), (2, 0, false));
///
/// let turned = rows.permute(&[1, 0])?;
/// assert_eq!((turned.shape(), turned.strides()), (&[3, 2][..], &[1, 3][..]));
/// assert_eq!(turned.offset_of(&[2, 1])?, 5);
/// assert!(rows.is_contiguous() && !turned.is_contiguous());
///
/// let every_other = rows.step(1, 2)?.reverse(0)?;
/// assert_eq!((every_other.shape(), every_other.strides(), every_other.offset()), (&[2, 2][..], &[-3, 2][..], 3));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    ndim: usize,
    /// Lengths of the axes; 0 beyond `ndim`, as are the strides.
    shape: [usize; MAX],
    /// Strides and offset are 0 if there are no elements.
    strides: [isize; MAX],
    offset: usize,
}

/// The number of elements of a shape, or an error if no layout can have it.
fn count(shape: &[usize]) -> Result<usize> {
    if shape.len() > MAX {
        return Err(Error::invalid(format!("a layout of {} axes, at most {MAX} are possible", shape.len())));
    }
    if shape.contains(&0) {
        return Ok(0);
    }
    let product = shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
    product
        .filter(|&product| product <= isize::MAX as usize)
        .ok_or_else(|| Error::invalid(format!("a shape of {shape:?} overflows the address space")))
}

/// # Constructors
///
/// These functions make a layout of a shape.
impl Layout {
    /// The maximum number of axes.
    ///
    /// ```
    /// use oclprim::Layout;
    ///
    /// assert!(Layout::contiguous(&[2; Layout::MAX_DIMS]).is_ok());
    /// assert!(Layout::contiguous(&[2; Layout::MAX_DIMS + 1]).is_err());
    /// ```
    pub const MAX_DIMS: usize = 8;

    /// The layout of contiguous elements, with the last axis fastest.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the number of elements overflows, or there are more
    /// than [`MAX_DIMS`](Self::MAX_DIMS) axes.
    ///
    /// ```
    /// assert_eq!(oclprim::Layout::contiguous(&[2, 3, 4])?.strides(), [12, 4, 1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn contiguous(shape: &[usize]) -> Result<Self> {
        let mut layout = Self::sized(shape, 0)?;
        if !layout.is_empty() {
            let mut stride = 1;
            for axis in (0..layout.ndim).rev() {
                layout.strides[axis] = stride as isize;
                stride *= shape[axis];
            }
        }
        Ok(layout)
    }

    /// A layout with any strides, whose element `[0, 0, …]` has the offset `offset`.
    ///
    /// If there are no elements, strides and offset become 0.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is not one stride for each axis, or if there are
    /// more than [`MAX_DIMS`](Self::MAX_DIMS) axes. It also fails if an offset is negative, or if an offset or the number of
    /// elements overflows.
    ///
    /// ```
    /// use oclprim::Layout;
    ///
    /// // The last two columns of three rows that are 10 elements apart.
    /// let columns = Layout::strided(&[3, 2], &[10, 1], 8)?;
    /// assert_eq!(columns.span(), Some((8, 29)));
    ///
    /// let error = Layout::strided(&[3], &[-1], 1).unwrap_err();
    /// assert_eq!(error.to_string(), "shape [3] with strides [-1] and offset 1 covers the offsets -1 to 1");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn strided(shape: &[usize], strides: &[isize], offset: usize) -> Result<Self> {
        if shape.len() != strides.len() {
            return Err(Error::invalid(format!("{} strides for {} axes", strides.len(), shape.len())));
        }
        let mut layout = Self::sized(shape, offset)?;
        if layout.is_empty() {
            return Ok(layout.settled());
        }
        let (mut low, mut high) = (offset as i128, offset as i128);
        for (&n, &stride) in shape.iter().zip(strides) {
            let reach = (n as i128 - 1) * stride as i128;
            low = low.saturating_add(reach.min(0));
            high = high.saturating_add(reach.max(0));
        }
        if low < 0 || high > isize::MAX as i128 {
            return Err(Error::invalid(format!(
                "shape {shape:?} with strides {strides:?} and offset {offset} covers the offsets {low} to {high}"
            )));
        }
        layout.strides[..strides.len()].copy_from_slice(strides);
        Ok(layout)
    }

    /// One axis of `len` elements.
    pub(crate) fn line(len: usize) -> Self {
        // Only a slice of zero-sized elements can be longer.
        let len = len.min(isize::MAX as usize);
        let mut layout = Self { ndim: 1, shape: [0; MAX], strides: [0; MAX], offset: 0 };
        (layout.shape[0], layout.strides[0]) = (len, isize::from(len > 0));
        layout
    }

    /// A layout of `shape` with strides of 0.
    fn sized(shape: &[usize], offset: usize) -> Result<Self> {
        count(shape)?;
        let mut layout = Self { ndim: shape.len(), shape: [0; MAX], strides: [0; MAX], offset };
        layout.shape[..shape.len()].copy_from_slice(shape);
        Ok(layout)
    }

    /// Sets strides and offset to 0 if there are no elements, so that no offset is computed from them.
    fn settled(mut self) -> Self {
        if self.is_empty() {
            (self.strides, self.offset) = ([0; MAX], 0);
        }
        self
    }
}

/// # Shape and memory
///
/// These methods return the shape, the strides and the offsets of a layout.
impl Layout {
    /// The length of each axis.
    ///
    /// ```
    /// assert_eq!(oclprim::Layout::contiguous(&[4, 5])?.permute(&[1, 0])?.shape(), [5, 4]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn shape(&self) -> &[usize] {
        &self.shape[..self.ndim]
    }

    /// The number of axes.
    ///
    /// ```
    /// assert_eq!(oclprim::Layout::contiguous(&[4, 5])?.ndim(), 2);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// The number of elements.
    ///
    /// ```
    /// assert_eq!(oclprim::Layout::contiguous(&[4, 5])?.len(), 20);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        // The product of the other axes may overflow.
        if self.is_empty() { 0 } else { self.shape().iter().product() }
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// assert!(oclprim::Layout::contiguous(&[4, 0])?.is_empty());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// Distance in memory between neighbours along each axis.
    ///
    /// ```
    /// assert_eq!(oclprim::Layout::contiguous(&[4, 5])?.reverse(0)?.strides(), [-5, 1]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn strides(&self) -> &[isize] {
        &self.strides[..self.ndim]
    }

    /// The offset of element `[0, 0, …]`.
    ///
    /// ```
    /// assert_eq!(oclprim::Layout::contiguous(&[4, 5])?.slice(0, 2..)?.offset(), 10);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The offset of the element at `index`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is no such element.
    ///
    /// ```
    /// let columns = oclprim::Layout::contiguous(&[4, 5])?.slice(1, 2..)?;
    /// assert_eq!(columns.offset_of(&[3, 1])?, 18);
    /// assert!(columns.offset_of(&[3, 3]).is_err());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn offset_of(&self, index: &[usize]) -> Result<usize> {
        if index.len() != self.ndim || index.iter().zip(self.shape()).any(|(&i, &n)| i >= n) {
            return Err(Error::invalid(format!(
                "index {index:?} is out of range for an array of shape {:?}",
                self.shape()
            )));
        }
        let mut layout = *self;
        for (axis, &i) in index.iter().enumerate() {
            layout.advance(axis, i);
        }
        Ok(layout.offset)
    }

    /// The lowest and the highest offset of an element, or `None` if there is no element.
    ///
    /// ```
    /// let rows = oclprim::Layout::contiguous(&[4, 5])?;
    /// assert_eq!((rows.slice(0, 1..3)?.span(), rows.slice(1, 2..2)?.span()), (Some((5, 14)), None));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn span(&self) -> Option<(usize, usize)> {
        if self.is_empty() {
            return None;
        }
        let (mut low, mut high) = (self.offset as isize, self.offset as isize);
        for (&n, &stride) in self.shape().iter().zip(self.strides()) {
            let reach = (n - 1) as isize * stride;
            low += reach.min(0);
            high += reach.max(0);
        }
        Some((low as usize, high as usize))
    }

    /// Returns whether the elements are contiguous in their logical order, at any offset.
    ///
    /// ```
    /// let rows = oclprim::Layout::contiguous(&[4, 5])?;
    /// assert!(rows.slice(0, 1..3)?.is_contiguous() && !rows.slice(1, 1..3)?.is_contiguous());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_contiguous(&self) -> bool {
        let mut next = 1;
        self.is_empty()
            || (0..self.ndim).rev().filter(|&axis| self.shape[axis] != 1).all(|axis| {
                let fits = self.strides[axis] == next as isize;
                next *= self.shape[axis];
                fits
            })
    }

    /// Returns whether each offset from the lowest to the highest belongs to exactly one element.
    ///
    /// ```
    /// let rows = oclprim::Layout::contiguous(&[4, 5])?;
    /// assert!(rows.permute(&[1, 0])?.is_dense() && !rows.slice(1, 1..3)?.is_dense());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_dense(&self) -> bool {
        self.is_injective() && self.span().is_none_or(|(low, high)| high - low + 1 == self.len())
    }

    /// Returns whether the strides prove that no two elements share an offset: each stride exceeds the span of all
    /// smaller strides. Every layout that is sliced, stepped, reversed or permuted from contiguous elements has such
    /// strides.
    ///
    /// Interleaved strides, such as 2 and 3 for a shape of `[3, 2]`, count as overlapping even if no two elements meet.
    ///
    /// ```
    /// use oclprim::Layout;
    ///
    /// assert!(Layout::contiguous(&[2, 3])?.reverse(0)?.is_injective());
    /// assert!(!Layout::strided(&[2, 3], &[1, 1], 0)?.is_injective());
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn is_injective(&self) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut axes = [(0, 1); MAX];
        for (axis, (&n, &stride)) in axes.iter_mut().zip(self.shape().iter().zip(self.strides())) {
            *axis = (stride.unsigned_abs(), n);
        }
        axes.sort_unstable();
        let mut reach = 0;
        axes.iter().filter(|&&(_, n)| n > 1).all(|&(stride, n)| {
            let nests = stride > reach;
            reach += stride * (n - 1);
            nests
        })
    }
}

/// # Other layouts of the same memory
///
/// These methods select, reorder or repeat elements, and move none.
impl Layout {
    /// The elements whose index along `axis` is within `range`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is no such axis, or the range exceeds it.
    ///
    /// ```
    /// let inner = oclprim::Layout::contiguous(&[4, 5])?.slice(0, 1..3)?.slice(1, 2..)?;
    /// assert_eq!((inner.shape(), inner.strides(), inner.offset()), (&[2, 3][..], &[5, 1][..], 7));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn slice(&self, axis: usize, range: impl RangeBounds<usize>) -> Result<Self> {
        self.axis(axis)?;
        let (start, len) = within(range, self.shape[axis], format_args!("axis {axis}"))?;
        let mut layout = *self;
        layout.shape[axis] = len;
        if len > 0 {
            layout.advance(axis, start);
        }
        Ok(layout.settled())
    }

    /// Every `k`-th element along `axis`, beginning with the first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is no such axis, or `k` is 0.
    ///
    /// ```
    /// let third = oclprim::Layout::contiguous(&[10])?.step(0, 3)?;
    /// assert_eq!((third.shape(), third.strides()), (&[4][..], &[3][..]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn step(&self, axis: usize, k: usize) -> Result<Self> {
        self.axis(axis)?;
        if k == 0 {
            return Err(Error::invalid(format!("the step along axis {axis} must not be 0")));
        }
        let mut layout = *self;
        layout.shape[axis] = self.shape[axis].div_ceil(k);
        // With at most one element the stride has no meaning, and its product could overflow.
        if layout.shape[axis] > 1 {
            layout.strides[axis] *= k as isize;
        }
        Ok(layout)
    }

    /// The elements whose index along `axis` is `i`, without that axis.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is no such axis, or `i` is not an index of it.
    ///
    /// ```
    /// let column = oclprim::Layout::contiguous(&[2, 3])?.index(1, 2)?;
    /// assert_eq!((column.shape(), column.strides(), column.offset()), (&[2][..], &[3][..], 2));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn index(&self, axis: usize, i: usize) -> Result<Self> {
        self.axis(axis)?;
        if i >= self.shape[axis] {
            let n = self.shape[axis];
            return Err(Error::invalid(format!("index {i} is out of range for axis {axis} of {n} elements")));
        }
        let mut layout = *self;
        layout.advance(axis, i);
        layout.ndim -= 1;
        (layout.shape[axis], layout.strides[axis]) = (0, 0);
        layout.shape[axis..].rotate_left(1);
        layout.strides[axis..].rotate_left(1);
        Ok(layout)
    }

    /// The same elements with permuted axes: axis `k` of the result is axis `axes[k]` of this layout.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `axes` does not name each axis once.
    ///
    /// ```
    /// let planes = oclprim::Layout::contiguous(&[4, 5, 3])?.permute(&[2, 0, 1])?;
    /// assert_eq!((planes.shape(), planes.strides()), (&[3, 4, 5][..], &[1, 15, 3][..]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        let once = |axis| axes.iter().filter(|&&other| other == axis).count() == 1;
        if axes.len() != self.ndim || !(0..self.ndim).all(once) {
            return Err(Error::invalid(format!("axes {axes:?} do not name each of {} axes once", self.ndim)));
        }
        let mut layout = *self;
        for (to, &from) in axes.iter().enumerate() {
            layout.shape[to] = self.shape[from];
            layout.strides[to] = self.strides[from];
        }
        Ok(layout)
    }

    /// The same elements with `axis` reversed; the result is for reading only.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is no such axis.
    ///
    /// ```
    /// let back = oclprim::Layout::contiguous(&[10])?.reverse(0)?;
    /// assert_eq!((back.offset(), back.strides()), (9, &[-1][..]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn reverse(&self, axis: usize) -> Result<Self> {
        self.axis(axis)?;
        let mut layout = *self;
        if self.shape[axis] > 1 {
            layout.advance(axis, self.shape[axis] - 1);
            layout.strides[axis] = -layout.strides[axis];
        }
        Ok(layout)
    }

    /// The layout with an axis of one element repeated `n` times, for reading only. An axis that already has `n`
    /// elements does not change.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is no such axis, if it has neither 1 nor `n`
    /// elements, or if the number of elements overflows.
    ///
    /// ```
    /// let row = oclprim::Layout::contiguous(&[1, 3])?.broadcast(0, 4)?;
    /// assert_eq!((row.shape(), row.strides()), (&[4, 3][..], &[0, 1][..]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn broadcast(&self, axis: usize, n: usize) -> Result<Self> {
        self.axis(axis)?;
        if self.shape[axis] == n {
            return Ok(*self);
        }
        if self.shape[axis] != 1 {
            let own = self.shape[axis];
            return Err(Error::invalid(format!("axis {axis} has {own} elements and cannot be broadcast to {n}")));
        }
        let mut layout = *self;
        (layout.shape[axis], layout.strides[axis]) = (n, 0);
        count(layout.shape())?;
        Ok(layout.settled())
    }

    /// Broadcasts to `shape`, as NumPy does. Axes are matched from the last one. Axes of one element are repeated, and missing
    /// axes are added before the first. If an axis is repeated, the result is for reading only.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if an axis has neither 1 nor the wanted number of
    /// elements, or if there are more axes than wanted. It also fails if the number of elements overflows.
    ///
    /// ```
    /// let column = oclprim::Layout::contiguous(&[3, 1])?;
    /// let cube = column.broadcast_to(&[2, 3, 4])?;
    /// assert_eq!((cube.shape(), cube.strides()), (&[2, 3, 4][..], &[0, 1, 0][..]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Self> {
        let mut layout = Self::sized(shape, self.offset)?;
        let refused = || Error::invalid(format!("shape {:?} cannot be broadcast to {shape:?}", self.shape()));
        let added = shape.len().checked_sub(self.ndim).ok_or_else(refused)?;
        for axis in 0..self.ndim {
            if self.shape[axis] == shape[added + axis] {
                layout.strides[added + axis] = self.strides[axis];
            } else if self.shape[axis] != 1 {
                return Err(refused());
            }
        }
        Ok(layout.settled())
    }

    /// Inserts an axis of one element as axis `axis`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `axis` is larger than the number of axes, or there are
    /// [`MAX_DIMS`](Self::MAX_DIMS) axes already.
    ///
    /// ```
    /// assert_eq!(oclprim::Layout::contiguous(&[2, 3])?.insert_axis(1)?.shape(), [2, 1, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn insert_axis(&self, axis: usize) -> Result<Self> {
        if self.ndim == MAX {
            return Err(Error::invalid(format!("no axis can be inserted into a layout of {MAX} axes, the maximum")));
        }
        if axis > self.ndim {
            let n = self.ndim;
            return Err(Error::invalid(format!(
                "no axis can be inserted at {axis} of a layout of {n} axes; the last possible index is {n}"
            )));
        }
        let mut layout = *self;
        layout.ndim += 1;
        layout.shape[axis..].rotate_right(1);
        layout.strides[axis..].rotate_right(1);
        (layout.shape[axis], layout.strides[axis]) = (1, 0);
        Ok(layout)
    }

    /// Removes an axis of one element.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is no such axis, or it does not have one element.
    ///
    /// ```
    /// assert_eq!(oclprim::Layout::contiguous(&[2, 1, 3])?.remove_axis(1)?.shape(), [2, 3]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn remove_axis(&self, axis: usize) -> Result<Self> {
        self.axis(axis)?;
        if self.shape[axis] != 1 {
            let n = self.shape[axis];
            return Err(Error::invalid(format!(
                "axis {axis} has {n} elements; only an axis of 1 element can be removed"
            )));
        }
        self.index(axis, 0)
    }

    fn axis(&self, axis: usize) -> Result<()> {
        if axis < self.ndim {
            Ok(())
        } else {
            Err(Error::invalid(format!("axis {axis} is out of range for a layout of {} axes", self.ndim)))
        }
    }

    /// Moves the first element to index `i < shape[axis]` along an axis.
    fn advance(&mut self, axis: usize, i: usize) {
        self.offset = (self.offset as isize + i as isize * self.strides[axis]) as usize;
    }

    /// The same layout with all offsets reduced by `by`.
    pub(crate) fn moved_down(&self, by: usize) -> Self {
        Self { offset: self.offset - by, ..*self }
    }
}

/// # Checks
///
/// These methods check a layout. The error states the sizes or strides that do not fit.
impl Layout {
    /// Checks that every element lies within a buffer of `len` elements.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) with both numbers if an element is outside.
    ///
    /// ```
    /// let error = oclprim::Layout::contiguous(&[2, 3])?.check(5).unwrap_err();
    /// assert_eq!(error.to_string(), "a shape of [2, 3] reaches element 5, the buffer has 5 elements");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn check(&self, len: usize) -> Result<()> {
        match self.span() {
            Some((_, high)) if high >= len => Err(Error::invalid(format!(
                "a shape of {:?} reaches element {high}, the buffer has {len} elements",
                self.shape()
            ))),
            _ => Ok(()),
        }
    }

    /// Checks that elements can be written. No two elements may share an offset, and an axis of several elements needs
    /// a positive stride. An empty layout passes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) with the axis or the strides that forbid writing.
    ///
    /// ```
    /// let row = oclprim::Layout::contiguous(&[1, 3])?;
    /// assert!(row.check_writable().is_ok());
    /// let error = row.broadcast(0, 4)?.check_writable().unwrap_err();
    /// assert_eq!(error.to_string(), "axis 0 of 4 elements has a stride of 0, which is for reading only");
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn check_writable(&self) -> Result<()> {
        for (axis, (&n, &stride)) in self.shape().iter().zip(self.strides()).enumerate() {
            if n > 1 && stride <= 0 && !self.is_empty() {
                return Err(Error::invalid(format!(
                    "axis {axis} of {n} elements has a stride of {stride}, which is for reading only"
                )));
            }
        }
        if self.is_injective() {
            Ok(())
        } else {
            Err(Error::invalid(format!(
                "an output of shape {:?} overlaps itself with strides {:?}",
                self.shape(),
                self.strides()
            )))
        }
    }
}

/// # Loops over elements
///
/// These methods reduce a layout to few axes, or to rows with a constant stride.
impl Layout {
    /// The offsets of the folded layout's rows in logical order, with the length and the stride of every row.
    ///
    /// ```
    /// let rows = oclprim::Layout::contiguous(&[2, 3, 4])?.slice(1, ..2)?.rows();
    /// assert_eq!((rows.row_len(), rows.row_stride()), (8, 1));
    /// assert_eq!(rows.collect::<Vec<_>>(), [0, 12]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn rows(&self) -> Rows {
        let mut outer = self.fold();
        let (mut row_len, mut row_stride) = (usize::from(!outer.is_empty()), 1);
        if let Some(inner) = outer.ndim.checked_sub(1) {
            (row_len, row_stride) = (outer.shape[inner], outer.strides[inner]);
            outer.ndim = inner;
        }
        let rows = if row_len == 0 { 0 } else { outer.len() };
        Rows { outer, row_len, row_stride, rows, next: 0, index: [0; MAX], position: outer.offset as isize }
    }

    /// The layout of the same offsets in the same order with the fewest axes. Axes of one element are dropped, and
    /// neighbouring axes are merged if their strides allow it.
    ///
    /// ```
    /// let rows = oclprim::Layout::contiguous(&[4, 1, 5, 6])?;
    /// assert_eq!(rows.fold().shape(), [120]);
    /// let part = rows.slice(2, 1..3)?.fold();
    /// assert_eq!((part.shape(), part.strides()), (&[4, 12][..], &[30, 1][..]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn fold(&self) -> Self {
        let [folded] = Self::fold_all([self]);
        folded
    }

    /// [`fold`](Self::fold) for two layouts of one shape, such as a copy's input and output. Both results have the same shape,
    /// so one loop can still visit both.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the shapes differ.
    ///
    /// ```
    /// use oclprim::Layout;
    ///
    /// let to = Layout::contiguous(&[2, 3, 4])?;
    /// let from = Layout::contiguous(&[3, 4, 2])?.permute(&[2, 0, 1])?;
    /// let (from, to) = from.fold_with(&to)?;
    /// assert_eq!((from.shape(), from.strides()), (&[2, 12][..], &[1, 2][..]));
    /// assert_eq!((to.shape(), to.strides()), (&[2, 12][..], &[12, 1][..]));
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn fold_with(&self, other: &Self) -> Result<(Self, Self)> {
        if self.shape() != other.shape() {
            return Err(Error::invalid(format!("shapes of {:?} and {:?} differ", self.shape(), other.shape())));
        }
        let [a, b] = Self::fold_all([self, other]);
        Ok((a, b))
    }

    /// Folds layouts of one shape together.
    fn fold_all<const N: usize>(layouts: [&Self; N]) -> [Self; N] {
        let mut folded = layouts.map(|layout| Self { offset: layout.offset, ..Self::line(0) });
        if layouts[0].is_empty() {
            return folded;
        }
        let mut dims = 0;
        for (axis, &n) in layouts[0].shape().iter().enumerate().filter(|&(_, &n)| n != 1) {
            let merges = dims > 0
                && folded.iter().zip(layouts).all(|(folded, layout)| {
                    layout.strides[axis].checked_mul(n as isize) == Some(folded.strides[dims - 1])
                });
            if !merges {
                dims += 1;
            }
            for (folded, layout) in folded.iter_mut().zip(layouts) {
                folded.shape[dims - 1] = if merges { folded.shape[dims - 1] * n } else { n };
                folded.strides[dims - 1] = layout.strides[axis];
            }
        }
        folded.map(|layout| Self { ndim: dims, ..layout })
    }

    /// The folded layout as kernel arguments.
    #[allow(dead_code, reason = "for the primitives that take layouts")]
    pub(crate) fn cl(&self) -> ClLayout {
        let folded = self.fold();
        let mut cl = ClLayout { ndim: folded.ndim, shape: [1; MAX], strides: [0; MAX], offset: folded.offset as u64 };
        for axis in 0..folded.ndim {
            cl.shape[axis] = folded.shape[axis] as u64;
            cl.strides[axis] = folded.strides[axis] as i64;
        }
        cl
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout")
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .field("offset", &self.offset)
            .finish()
    }
}

/// A folded layout in the types of kernel arguments: `ulong8`, `long8`, `ulong`. Axes beyond `ndim` have one element.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(dead_code, reason = "for the primitives that take layouts")]
pub(crate) struct ClLayout {
    pub(crate) ndim: usize,
    pub(crate) shape: [u64; MAX],
    pub(crate) strides: [i64; MAX],
    pub(crate) offset: u64,
}

/// The offsets of the first elements of a [`Layout`]'s rows, in logical order.
///
/// A row runs along the innermost axis of the [folded](Layout::fold) layout. `skip` and `nth` take constant time for each axis.
///
/// ```
/// let mut rows = oclprim::Layout::contiguous(&[5, 4])?.slice(1, 1..3)?.reverse(1)?.rows();
/// assert_eq!((rows.len(), rows.row_len(), rows.row_stride()), (5, 2, -1));
/// assert_eq!((rows.next(), rows.nth(2), rows.len()), (Some(2), Some(14), 1));
/// # Ok::<(), oclprim::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rows {
    outer: Layout,
    row_len: usize,
    row_stride: isize,
    rows: usize,
    next: usize,
    /// Index and offset of the next row.
    index: [usize; MAX],
    position: isize,
}

impl Rows {
    /// The number of elements of each row.
    ///
    /// ```
    /// assert_eq!(oclprim::Layout::contiguous(&[4, 5])?.slice(1, 1..3)?.rows().row_len(), 2);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn row_len(&self) -> usize {
        self.row_len
    }

    /// Distance in memory between neighbours in a row; negative if rows run backwards, 0 if they repeat an element.
    ///
    /// ```
    /// assert_eq!(oclprim::Layout::contiguous(&[4, 5])?.slice(1, 1..3)?.reverse(1)?.rows().row_stride(), -1);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn row_stride(&self) -> isize {
        self.row_stride
    }

    fn jump(&mut self, row: usize) {
        (self.next, self.position) = (row, self.outer.offset as isize);
        let mut rest = row;
        for axis in (0..self.outer.ndim).rev() {
            self.index[axis] = rest % self.outer.shape[axis];
            rest /= self.outer.shape[axis];
            self.position += self.index[axis] as isize * self.outer.strides[axis];
        }
    }
}

impl Iterator for Rows {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.next == self.rows {
            return None;
        }
        let position = self.position;
        self.next += 1;
        for axis in (0..self.outer.ndim).rev() {
            let (n, stride) = (self.outer.shape[axis], self.outer.strides[axis]);
            if self.index[axis] + 1 < n {
                self.index[axis] += 1;
                self.position += stride;
                break;
            }
            self.index[axis] = 0;
            self.position -= (n - 1) as isize * stride;
        }
        Some(position as usize)
    }

    fn nth(&mut self, n: usize) -> Option<usize> {
        if n >= self.rows - self.next {
            self.next = self.rows;
            return None;
        }
        self.jump(self.next + n);
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.rows - self.next, Some(self.rows - self.next))
    }
}

impl ExactSizeIterator for Rows {}
impl FusedIterator for Rows {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_get_folded_axes() {
        let layout = Layout::strided(&[4, 1, 5, 6], &[-60, 7, 6, 1], 200).unwrap();
        let cl = layout.cl();
        assert_eq!((cl.ndim, cl.offset), (2, 200));
        assert_eq!((cl.shape, cl.strides), ([4, 30, 1, 1, 1, 1, 1, 1], [-60, 1, 0, 0, 0, 0, 0, 0]));

        let one = Layout::contiguous(&[]).unwrap().cl();
        assert_eq!((one.ndim, one.shape, one.strides), (0, [1; 8], [0; 8]));
        let none = Layout::contiguous(&[3, 0]).unwrap().cl();
        assert_eq!((none.ndim, none.shape[0]), (1, 0));
    }
}
