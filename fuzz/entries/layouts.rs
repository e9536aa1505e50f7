//! Layouts and views: any shape, strides, offset and sequence of changes gives a right layout or an error of one line.

use std::ops::Bound;

use arbitrary::{Result, Unstructured};
use oclprim::{Device, Layout, NdView, NdViewMut, internals::testing::accepted, op::Sum};

/// Largest number of elements for which every index is checked.
const SMALL: usize = 512;
/// Number of elements in the buffer under a view.
const BUFFER: usize = 700;

/// A size: mostly small, sometimes extreme.
fn size(u: &mut Unstructured) -> Result<usize> {
    Ok(match u.int_in_range(0..=31)? {
        0 => usize::MAX,
        1 => isize::MAX as usize,
        2 => 1 << u.int_in_range(0..=63)?,
        3 => u.arbitrary()?,
        n => (n as usize - 4) % 9,
    })
}

fn stride(u: &mut Unstructured) -> Result<isize> {
    Ok(match u.int_in_range(0..=31)? {
        0 => isize::MIN,
        1 => isize::MAX,
        2 => (1 << u.int_in_range(0..=62)?) * if u.arbitrary()? { 1 } else { -1 },
        3 => u.arbitrary()?,
        n => n as isize - 16,
    })
}

fn list<T>(u: &mut Unstructured, n: usize, each: impl Fn(&mut Unstructured) -> Result<T>) -> Result<Vec<T>> {
    (0..n).map(|_| each(u)).collect()
}

/// Every index of a small layout, in row-major order.
fn indices(layout: &Layout) -> Vec<Vec<usize>> {
    if layout.is_empty() {
        return Vec::new();
    }
    let mut all = vec![vec![]];
    for &n in layout.shape() {
        all = all.iter().flat_map(|index| (0..n).map(|i| [&index[..], &[i]].concat())).collect();
    }
    all
}

fn offsets(layout: &Layout) -> Vec<usize> {
    indices(layout).iter().map(|index| layout.offset_of(index).expect("an index of the shape")).collect()
}

fn offsets_of_rows(layout: &Layout) -> Vec<usize> {
    let rows = layout.rows();
    let (len, stride) = (rows.row_len(), rows.row_stride());
    rows.flat_map(|first| (0..len).map(move |i| first.wrapping_add_signed(i as isize * stride))).collect()
}

/// Checks the properties of every layout.
fn check(layout: &Layout) {
    let rows = layout.rows();
    assert_eq!(rows.len() * rows.row_len(), layout.len());
    let len = layout.len();
    assert_eq!(layout.is_empty(), len == 0);
    let (folded, span) = (layout.fold(), layout.span());
    assert_eq!((folded.len(), folded.span()), (layout.len(), span));
    if let Some((low, high)) = span {
        assert!(low <= high && high <= isize::MAX as usize, "{layout:?}");
        assert!(layout.check(high).is_err());
        layout.check(high + 1).expect("the buffer has the last element");
    }
    let (injective, dense, writable) = (layout.is_injective(), layout.is_dense(), layout.check_writable().is_ok());
    assert!(injective || !writable && !dense);
    if layout.len() > SMALL {
        return;
    }
    let mut all = offsets(layout);
    assert_eq!(all, offsets_of_rows(layout));
    assert_eq!(all, offsets(&folded));
    let contiguous = all.iter().enumerate().all(|(i, &at)| at == layout.offset() + i);
    assert_eq!(layout.is_contiguous(), contiguous, "{layout:?}");
    all.sort_unstable();
    assert_eq!(span, all.first().copied().zip(all.last().copied()));
    // `is_injective` may be false for an injective layout, but is never true for one that is not injective.
    assert!(!injective || all.windows(2).all(|pair| pair[0] < pair[1]), "{layout:?}");
}

/// Checks that both layouts have the same elements: `of` maps a new index to the old one.
fn same(old: &Layout, new: &Layout, of: impl Fn(&[usize]) -> Vec<usize>) {
    if new.len() <= SMALL {
        for index in indices(new) {
            let old_index = of(&index);
            assert_eq!(new.offset_of(&index).ok(), old.offset_of(&old_index).ok(), "{old:?} {new:?} {index:?}");
        }
    }
}

/// The index with another value along one axis.
fn with(index: &[usize], axis: usize, of: impl Fn(usize) -> usize) -> Vec<usize> {
    index.iter().enumerate().map(|(k, &i)| if k == axis { of(i) } else { i }).collect()
}

fn change(u: &mut Unstructured, old: &Layout) -> Result<Option<Layout>> {
    let axis = u.int_in_range(0..=9)?;
    Ok(match u.int_in_range(0..=8)? {
        0 => {
            // `axes` is usually a permutation, with each axis once.
            let mut axes: Vec<_> = (0..old.ndim()).collect();
            for k in (1..axes.len()).rev() {
                axes.swap(k, u.int_in_range(0..=k)?);
            }
            if u.ratio(1, 8)? {
                axes.push(axis);
            } else if u.ratio(1, 8)? {
                axes.iter_mut().for_each(|other| *other = (*other).max(axis));
            }
            accepted(old.permute(&axes)).inspect(|new| {
                same(old, new, |index| {
                    let mut of = vec![0; index.len()];
                    index.iter().zip(&axes).for_each(|(&i, &axis)| of[axis] = i);
                    of
                });
            })
        }
        1 => {
            let bound = |u: &mut Unstructured| -> Result<Bound<usize>> {
                Ok(match u.int_in_range(0..=2)? {
                    0 => Bound::Unbounded,
                    1 => Bound::Included(size(u)?),
                    _ => Bound::Excluded(size(u)?),
                })
            };
            let range = (bound(u)?, bound(u)?);
            let start = match range.0 {
                Bound::Unbounded => 0,
                Bound::Included(start) => start,
                Bound::Excluded(start) => start.saturating_add(1),
            };
            accepted(old.slice(axis, range)).inspect(|new| same(old, new, |index| with(index, axis, |i| start + i)))
        }
        2 => {
            let k = size(u)?;
            accepted(old.step(axis, k)).inspect(|new| same(old, new, |index| with(index, axis, |i| i * k)))
        }
        3 => accepted(old.reverse(axis)).inspect(|new| {
            let n = old.shape()[axis];
            same(old, new, |index| with(index, axis, |i| n - 1 - i));
            assert_eq!(new.reverse(axis).ok(), Some(*old));
        }),
        4 => {
            let n = size(u)?;
            accepted(old.broadcast(axis, n)).inspect(|new| {
                same(old, new, |index| with(index, axis, |i| if old.shape()[axis] == 1 { 0 } else { i }));
            })
        }
        5 => {
            let added = list(u, axis, size)?;
            let shape = [added, old.shape().iter().map(|&n| if n == 1 { axis } else { n }).collect()].concat();
            accepted(old.broadcast_to(&shape)).inspect(|new| {
                same(old, new, |index| {
                    let of = &index[index.len() - old.ndim()..];
                    of.iter().zip(old.shape()).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect()
                });
            })
        }
        6 => accepted(old.insert_axis(axis)).inspect(|new| {
            same(old, new, |index| [&index[..axis], &index[axis + 1..]].concat());
            assert_eq!(new.remove_axis(axis).ok().map(|back| back.len()), Some(old.len()));
        }),
        7 => accepted(old.remove_axis(axis))
            .inspect(|new| same(old, new, |index| [&index[..axis], &[0], &index[axis..]].concat())),
        _ => {
            let i = size(u)?;
            accepted(old.index(axis, i))
                .inspect(|new| same(old, new, |index| [&index[..axis], &[i], &index[axis..]].concat()))
        }
    })
}

/// Checks that primitives give the same result on a view as on its elements in contiguous order.
fn views(u: &mut Unstructured, layout: &Layout) -> Result<()> {
    let device = Device::cpu();
    let data: Vec<u32> = (0..BUFFER as u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 20).collect();
    let view = accepted(NdView::new(&data[..], *layout));
    assert_eq!(view.is_some(), layout.check(BUFFER).is_ok());
    let mut written = data.clone();
    let writable = accepted(NdViewMut::new(&mut written[..], *layout)).is_some();
    assert_eq!(writable, view.is_some() && layout.check_writable().is_ok());
    let Some(view) = view.filter(|view| view.len() <= SMALL) else { return Ok(()) };
    let elements: Vec<u32> = offsets(layout).iter().map(|&at| data[at]).collect();
    assert_eq!(view.to_vec().ok().as_ref(), Some(&elements));
    let axis = u.int_in_range(0..=8)?;
    let (plain, shape) = (device.upload(&elements).expect("memory"), layout.shape());
    // A reduction along an empty axis has a result for each line. If the other axes are long, the results may not fit
    // memory.
    if axis < shape.len()
        && shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n.max(1))).is_none_or(|n| n > 1 << 20)
    {
        return Ok(());
    }
    let plain = plain.nd(shape).expect("the shape of as many elements");
    let of =
        |view: NdView<u32>| accepted(device.reduce(view.along(axis), Sum)).map(|sums| sums.to_vec().expect("memory"));
    assert_eq!(of(view), of(plain));
    let of = |view: NdView<u32>| {
        let found = accepted(device.min_max(view.along(axis)))?;
        Some((found.values.to_vec().expect("memory"), found.indices.to_vec().expect("memory")))
    };
    assert_eq!(of(view), of(plain));
    let of = |view: NdView<u32>| {
        let moments = accepted(device.moments(view.along(axis)))?.to_vec().expect("memory");
        Some(moments.iter().map(|moments| moments.get()).collect::<Vec<_>>())
    };
    let (a, b) = (of(view), of(plain));
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
    Ok(())
}

pub(crate) fn run(bytes: &[u8]) {
    let mut all = Unstructured::new(bytes);
    let tried = |u: &mut Unstructured| -> Result<()> {
        let ndim = u.int_in_range(0..=9)?;
        let shape = list(u, ndim, size)?;
        let mut layout = if u.arbitrary()? {
            let count = if u.ratio(15, 16)? { ndim } else { 3 };
            let strides = list(u, count, stride)?;
            let offset = if u.arbitrary()? { u.int_in_range(0..=600)? } else { size(u)? };
            accepted(Layout::strided(&shape, &strides, offset))
        } else {
            accepted(Layout::contiguous(&shape))
        };
        for _ in 0..8 {
            let Some(now) = layout else { break };
            check(&now);
            views(u, &now)?;
            layout = change(u, &now)?;
        }
        Ok(())
    };
    // A run ends early when no bytes are left.
    while !all.is_empty() && tried(&mut all).is_ok() {}
}
