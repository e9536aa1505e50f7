//! Layouts and N-dimensional views, compared with plain loops over every index.

mod common;

use oclprim::{ErrorKind, Input, Layout, NdView, NdViewMut, Output};
use proptest::prelude::*;

/// Every index of a shape in row-major order.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &n in shape {
        all = all.into_iter().flat_map(|head| (0..n).map(move |i| [&head[..], &[i]].concat())).collect();
    }
    all
}

/// The offset of each element in logical order, by definition.
fn positions(layout: &Layout) -> Vec<usize> {
    let place = |index: Vec<usize>| {
        let steps = index.iter().zip(layout.strides()).map(|(&i, &stride)| i as isize * stride);
        usize::try_from(layout.offset() as isize + steps.sum::<isize>()).unwrap()
    };
    indices(layout.shape()).into_iter().map(place).collect()
}

/// The offset of each element in logical order, by rows.
fn by_rows(layout: &Layout) -> Vec<usize> {
    let rows = layout.rows();
    let (len, stride) = (rows.row_len(), rows.row_stride());
    rows.flat_map(|start| (0..len).map(move |i| (start as isize + i as isize * stride) as usize)).collect()
}

#[derive(Clone, Debug)]
enum Move {
    Permute(u64),
    Slice(usize, usize, usize),
    Step(usize, usize),
    Reverse(usize),
    Index(usize, usize),
    Insert(usize),
    Broadcast(usize, usize),
}

fn moves() -> impl Strategy<Value = Move> {
    let axis = 0usize..8;
    prop_oneof![
        3 => any::<u64>().prop_map(Move::Permute),
        3 => (axis.clone(), 0usize..5, 0usize..5).prop_map(|(axis, a, b)| Move::Slice(axis, a, b)),
        2 => (axis.clone(), 1usize..4).prop_map(|(axis, k)| Move::Step(axis, k)),
        2 => axis.clone().prop_map(Move::Reverse),
        1 => (axis.clone(), 0usize..4).prop_map(|(axis, i)| Move::Index(axis, i)),
        2 => axis.clone().prop_map(Move::Insert),
        1 => (axis, 0usize..4).prop_map(|(axis, n)| Move::Broadcast(axis, n)),
    ]
}

fn shapes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1 => Just(0usize), 3 => Just(1), 20 => 2usize..5], 0..5)
}

/// Maps an index after a change of the layout to the index before it.
type Source = Box<dyn Fn(Vec<usize>) -> Vec<usize>>;

/// Applies a change to the layout and to the offsets of its elements; `None` if the change is invalid.
fn apply(layout: &Layout, step: &Move) -> Option<(Layout, Vec<usize>)> {
    let (shape, ndim) = (layout.shape(), layout.ndim());
    let at = |index: &[usize]| layout.offset_of(index).unwrap();
    let (moved, source): (Layout, Source) = match *step {
        Move::Permute(seed) => {
            let mut axes: Vec<usize> = (0..ndim).collect();
            axes.sort_by_key(|&axis| seed.wrapping_mul(2 * axis as u64 + 3).rotate_left(17 * axis as u32));
            let moved = layout.permute(&axes).unwrap();
            (
                moved,
                Box::new(move |to| {
                    let mut from = vec![0; to.len()];
                    axes.iter().zip(&to).for_each(|(&axis, &i)| from[axis] = i);
                    from
                }),
            )
        }
        Move::Slice(axis, a, b) => {
            let Some(&n) = shape.get(axis) else {
                assert!(layout.slice(axis, ..).is_err());
                return None;
            };
            if a > b || b > n {
                assert_eq!(layout.slice(axis, a..b).unwrap_err().kind(), ErrorKind::InvalidInput);
                return None;
            }
            (
                layout.slice(axis, a..b).unwrap(),
                Box::new(move |mut index| {
                    index[axis] += a;
                    index
                }),
            )
        }
        Move::Step(axis, k) => {
            if axis >= ndim {
                assert!(layout.step(axis, k).is_err());
                return None;
            }
            (
                layout.step(axis, k).unwrap(),
                Box::new(move |mut index| {
                    index[axis] *= k;
                    index
                }),
            )
        }
        Move::Reverse(axis) => {
            let Some(&n) = shape.get(axis) else {
                assert!(layout.reverse(axis).is_err());
                return None;
            };
            (
                layout.reverse(axis).unwrap(),
                Box::new(move |mut index| {
                    index[axis] = n - 1 - index[axis];
                    index
                }),
            )
        }
        Move::Index(axis, i) => {
            if axis >= ndim || i >= shape[axis] {
                assert!(layout.index(axis, i).is_err());
                return None;
            }
            (
                layout.index(axis, i).unwrap(),
                Box::new(move |mut index| {
                    index.insert(axis, i);
                    index
                }),
            )
        }
        Move::Insert(axis) => {
            if axis > ndim || ndim == Layout::MAX_DIMS {
                assert!(layout.insert_axis(axis).is_err());
                return None;
            }
            let moved = layout.insert_axis(axis).unwrap();
            assert_eq!(moved.remove_axis(axis).unwrap(), *layout);
            (
                moved,
                Box::new(move |mut index| {
                    index.remove(axis);
                    index
                }),
            )
        }
        Move::Broadcast(axis, n) => {
            if axis >= ndim || (shape[axis] != 1 && shape[axis] != n) {
                assert!(layout.broadcast(axis, n).is_err());
                return None;
            }
            let repeats = shape[axis] == 1;
            (
                layout.broadcast(axis, n).unwrap(),
                Box::new(move |mut index| {
                    if repeats {
                        index[axis] = 0;
                    }
                    index
                }),
            )
        }
    };
    let want = indices(moved.shape()).into_iter().map(|index| at(&source(index))).collect();
    Some((moved, want))
}

/// Compares all properties of a layout with the offsets of its elements.
fn examine(layout: &Layout) -> Result<(), TestCaseError> {
    let all = positions(layout);
    prop_assert_eq!(layout.len(), all.len());
    prop_assert_eq!(layout.is_empty(), all.is_empty());
    let span = all.iter().min().map(|&low| (low, *all.iter().max().unwrap()));
    prop_assert_eq!(layout.span(), span);
    let needed = span.map_or(0, |(_, high)| high + 1);
    prop_assert!(layout.check(needed).is_ok());
    prop_assert_eq!(needed > 0 && layout.check(needed - 1).is_ok(), false);
    prop_assert_eq!(Layout::strided(layout.shape(), layout.strides(), layout.offset()).unwrap(), *layout);

    let mut distinct = all.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let forwards = layout.shape().iter().zip(layout.strides()).all(|(&n, &stride)| n <= 1 || stride > 0);
    if layout.is_injective() {
        prop_assert_eq!(distinct.len(), all.len());
    }
    prop_assert_eq!(layout.check_writable().is_ok(), layout.is_injective() && (forwards || all.is_empty()));
    prop_assert_eq!(layout.is_contiguous(), all.windows(2).all(|pair| pair[1] == pair[0] + 1));
    let gapless = distinct.windows(2).all(|pair| pair[1] == pair[0] + 1);
    prop_assert_eq!(layout.is_dense(), layout.is_injective() && gapless);

    let folded = layout.fold();
    prop_assert_eq!(&positions(&folded), &all);
    prop_assert_eq!(folded.fold(), folded);
    prop_assert!(all.is_empty() || !folded.shape().contains(&1), "{:?}", folded);
    prop_assert!(folded.shape().windows(2).zip(folded.strides().windows(2)).all(|(n, s)| s[0] != s[1] * n[1] as isize));

    prop_assert_eq!(&by_rows(layout), &all);
    let starts: Vec<usize> = layout.rows().collect();
    prop_assert_eq!(layout.rows().len(), starts.len());
    for first in 0..starts.len() + 1 {
        prop_assert_eq!(layout.rows().skip(first).collect::<Vec<_>>(), &starts[first..]);
        let mut rows = layout.rows();
        prop_assert_eq!((rows.next(), rows.nth(first)), (starts.first().copied(), starts.get(first + 1).copied()));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn layout_changes_follow_their_index_maps(shape in shapes(), steps in prop::collection::vec(moves(), 0..7)) {
        let mut layout = Layout::contiguous(&shape).unwrap();
        prop_assert_eq!(positions(&layout), (0..layout.len()).collect::<Vec<_>>());
        prop_assert!(layout.is_contiguous() && layout.is_dense());
        examine(&layout)?;
        let mut repeated = false;
        for step in &steps {
            if let Some((moved, want)) = apply(&layout, step) {
                prop_assert_eq!(positions(&moved), want, "{:?} of {:?}", step, layout);
                repeated |= matches!(step, Move::Broadcast(_, n) if *n > 1);
                prop_assert!(repeated || moved.is_injective(), "{:?}", moved);
                examine(&moved)?;
                layout = moved;
            }
        }
        let values: Vec<u32> = (0..200_000).collect();
        let want: Vec<u32> = positions(&layout).into_iter().map(|at| at as u32).collect();
        prop_assert_eq!(NdView::new(&values, layout).unwrap().to_vec().unwrap(), want);
    }

    #[test]
    fn any_strides_give_a_sound_layout_or_an_error(axes in prop::collection::vec((0usize..5, -9isize..10), 0..5), offset in 0usize..150) {
        let (shape, strides): (Vec<_>, Vec<_>) = axes.into_iter().unzip();
        let mut reach = offset as isize;
        for (&n, &stride) in shape.iter().zip(&strides) {
            reach += ((n as isize - 1) * stride).min(0);
        }
        let layout = Layout::strided(&shape, &strides, offset);
        prop_assert_eq!(layout.is_ok(), reach >= 0 || shape.contains(&0));
        if let Ok(layout) = layout {
            examine(&layout)?;
        }
    }

    #[test]
    fn two_layouts_fold_to_one_shape(shape in shapes(), a in any::<u64>(), b in any::<u64>()) {
        let order = |seed| apply(&Layout::contiguous(&shape).unwrap(), &Move::Permute(seed)).unwrap().0;
        // The second layout takes the shape of the first one.
        let one = order(a);
        let other = Layout::contiguous(one.shape()).unwrap();
        let other = if b % 2 == 0 { other } else { other.reverse(0).unwrap_or(other) };
        let (x, y) = one.fold_with(&other).unwrap();
        prop_assert_eq!(x.shape(), y.shape());
        prop_assert_eq!(positions(&x), positions(&one));
        prop_assert_eq!(positions(&y), positions(&other));
        prop_assert!(x.ndim() >= one.fold().ndim().max(other.fold().ndim()));
    }

    #[test]
    fn broadcasts_match_numpy(shape in shapes(), front in shapes(), ones in any::<u8>(), n in 0usize..4) {
        let source: Vec<usize> =
            shape.iter().enumerate().map(|(axis, &n)| if ones >> axis & 1 == 1 { 1 } else { n }).collect();
        let target: Vec<usize> = [&front[..], &shape[..]].concat();
        let layout = Layout::contiguous(&source).unwrap();
        let wide = layout.broadcast_to(&target).unwrap();
        let want: Vec<usize> = indices(&target).into_iter().map(|index| {
            let own = index[front.len()..].iter().zip(&source).map(|(&i, &n)| if n == 1 { 0 } else { i });
            layout.offset_of(&own.collect::<Vec<_>>()).unwrap()
        }).collect();
        prop_assert_eq!(positions(&wide), want);
        examine(&wide)?;
        if source.last().is_some_and(|&last| last != 1 && last != n) {
            let mut other = source.clone();
            *other.last_mut().unwrap() = n;
            prop_assert!(layout.broadcast_to(&other).is_err());
            prop_assert!(layout.broadcast_to(&source[1..]).is_err());
        }
    }

    /// For any numbers the result is a sound layout or an error.
    #[test]
    fn extreme_numbers_give_a_sound_layout_or_an_error(
        axes in prop::collection::vec((
            prop_oneof![Just(0), Just(1), Just(2), Just(usize::MAX), Just(1 << 31), Just(isize::MAX as usize), any::<usize>()],
            prop_oneof![Just(0), Just(1), Just(-1), Just(isize::MAX), Just(isize::MIN), Just(1 << 31), any::<isize>()],
        ), 0..10),
        offset in prop_oneof![Just(0), Just(usize::MAX), Just(isize::MAX as usize), any::<usize>()],
        steps in prop::collection::vec(moves(), 0..6),
        huge in any::<usize>(),
    ) {
        let (shape, strides): (Vec<_>, Vec<_>) = axes.into_iter().unzip();
        let made = [Layout::contiguous(&shape), Layout::strided(&shape, &strides, offset)];
        for layout in made.into_iter().flatten() {
            let mut layout = layout;
            for step in &steps {
                let moved = match *step {
                    Move::Permute(_) => layout.permute(&(0..layout.ndim()).rev().collect::<Vec<_>>()),
                    Move::Slice(axis, a, 0) => layout.slice(axis, a..),
                    Move::Slice(axis, a, b) => layout.slice(axis, a..huge >> b),
                    Move::Step(axis, k) => layout.step(axis, huge / k),
                    Move::Reverse(axis) => layout.reverse(axis),
                    Move::Index(axis, i) => layout.index(axis, i),
                    Move::Insert(axis) => layout.insert_axis(axis),
                    Move::Broadcast(axis, n) => layout.broadcast(axis, huge >> n),
                };
                layout = moved.unwrap_or(layout);
                prop_assert!(layout.len() <= isize::MAX as usize);
                prop_assert!(layout.span().is_none_or(|(low, high)| low <= high && high <= isize::MAX as usize));
                let _ = (layout.is_contiguous(), layout.is_dense(), layout.check_writable().is_ok());
                prop_assert_eq!(layout.fold().len(), layout.len());
                let (mut rows, folded) = (layout.rows(), layout.fold());
                prop_assert_eq!(rows.len() * rows.row_len(), layout.len());
                prop_assert_eq!(rows.next().is_some(), !folded.is_empty());
                let _ = rows.nth(huge);
            }
        }
    }
}

#[test]
fn errors_give_the_numbers() {
    let x = Layout::contiguous(&[2, 3]).unwrap();
    let cases = [
        (
            Layout::contiguous(&[1 << 40, 1 << 40]),
            "a shape of [1099511627776, 1099511627776] overflows the address space",
        ),
        (Layout::contiguous(&[1; 9]), "a layout of 9 axes, at most 8 are possible"),
        (Layout::strided(&[2], &[1, 1], 0), "2 strides for 1 axes"),
        (
            Layout::strided(&[2, 2], &[4, -5], 2),
            "shape [2, 2] with strides [4, -5] and offset 2 covers the offsets -3 to 6",
        ),
        (x.permute(&[0, 0]), "axes [0, 0] do not name each of 2 axes once"),
        (x.permute(&[0]), "axes [0] do not name each of 2 axes once"),
        (x.slice(1, 2..4), "range 2..4 is not within axis 1 of 3 elements"),
        (x.slice(1, 7..), "range 7.. is not within axis 1 of 3 elements"),
        (x.slice(2, ..), "axis 2 is out of range for a layout of 2 axes"),
        (x.step(1, 0), "the step along axis 1 must not be 0"),
        (x.broadcast(1, 5), "axis 1 has 3 elements and cannot be broadcast to 5"),
        (x.broadcast_to(&[3]), "shape [2, 3] cannot be broadcast to [3]"),
        (x.broadcast_to(&[3, 3]), "shape [2, 3] cannot be broadcast to [3, 3]"),
        (x.insert_axis(3), "no axis can be inserted at 3 of a layout of 2 axes; the last possible index is 2"),
        (
            Layout::contiguous(&[1; 8]).unwrap().insert_axis(0),
            "no axis can be inserted into a layout of 8 axes, the maximum",
        ),
        (x.remove_axis(1), "axis 1 has 3 elements; only an axis of 1 element can be removed"),
        (x.index(0, 2), "index 2 is out of range for axis 0 of 2 elements"),
    ];
    for (result, message) in cases {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, message.into()));
    }
    let say = |result: oclprim::Result<()>| result.unwrap_err().to_string();
    assert_eq!(say(x.offset_of(&[2, 0]).map(drop)), "index [2, 0] is out of range for an array of shape [2, 3]");
    let repeated = x.insert_axis(0).unwrap().broadcast(0, 4).unwrap();
    assert_eq!(say(repeated.check_writable()), "axis 0 of 4 elements has a stride of 0, which is for reading only");
    let overlapping = Layout::strided(&[3, 3], &[2, 1], 0).unwrap();
    assert_eq!(say(overlapping.check_writable()), "an output of shape [3, 3] overlaps itself with strides [2, 1]");

    let huge = Layout::strided(&[1], &[0], 0).unwrap().broadcast(0, isize::MAX as usize).unwrap();
    let error = NdView::new(&[1u8], huge).unwrap().to_vec().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(huge.insert_axis(0).unwrap().broadcast(0, 2).is_err());
}

#[test]
fn views_stay_within_their_layout() {
    for (name, device) in common::devices() {
        let data: Vec<u16> = (0..60).collect();
        let mut x = device.upload(&data).unwrap();
        let view = x.nd(&[3, 4, 5]).unwrap().slice(1, 1..3).unwrap().permute(&[2, 0, 1]).unwrap();
        let want: Vec<u16> = positions(view.layout()).iter().map(|&at| data[at]).collect();
        assert_eq!(view.to_vec().unwrap(), want, "{name}");
        assert_eq!(view.reverse(0).unwrap().index(0, 4).unwrap().to_vec().unwrap(), [5, 10, 25, 30, 45, 50], "{name}");
        let part = x.view(7..27).unwrap().nd(&[4, 5]).unwrap();
        assert_eq!(part.slice(0, 2..3).unwrap().to_vec().unwrap(), [17, 18, 19, 20, 21], "{name}");
        assert!(part.slice(0, 2..2).unwrap().to_vec().unwrap().is_empty(), "{name}");
        assert_eq!(NdView::from(x.view(58..).unwrap()).to_vec().unwrap(), [58, 59], "{name}");

        let outside = Layout::strided(&[3], &[10], 1).unwrap();
        let error = x.view(..21).unwrap().with_layout(outside).unwrap_err();
        assert_eq!(error.to_string(), "a shape of [3] reaches element 21, the buffer has 21 elements", "{name}");
        assert!(x.view_mut(..21).unwrap().with_layout(outside).is_err(), "{name}");
        assert_eq!(x.view_mut(..22).unwrap().with_layout(outside).unwrap().len(), 3, "{name}");
        assert_eq!(x.nd_mut(&[60, 1]).unwrap().remove_axis(1).unwrap().ndim(), 1, "{name}");
        assert!(x.nd_mut(&[59]).is_err() && x.nd(&[61]).is_err(), "{name}");
        assert!(x.with_layout_mut(Layout::contiguous(&[60]).unwrap().reverse(0).unwrap()).is_err(), "{name}");
        assert!(x.view_mut(..).unwrap().nd(&[0]).is_err(), "{name}");
        assert!(device.zeroed::<u16>(0).unwrap().nd(&[5, 0]).unwrap().is_empty(), "{name}");
    }
}

#[test]
fn slices_are_views_of_one_axis() {
    let mut data = vec![1i8, 2, 3];
    assert_eq!(NdView::from(&data).shape(), [3]);
    assert_eq!(NdView::from(&[1i8, 2]).shape(), [2]);
    assert_eq!(NdView::from(&data[1..]).to_vec().unwrap(), [2, 3]);
    assert_eq!(Input::from(&data).nd(&[1, 3]).unwrap().shape(), [1, 3]);
    assert_eq!(Output::from(&mut data).nd(&[3, 1]).unwrap().shape(), [3, 1]);
    assert_eq!(NdViewMut::from(&mut data).shape(), [3]);
    assert_eq!(NdViewMut::from(&mut [0u8; 0]).layout(), &Layout::contiguous(&[0]).unwrap());
}

#[cfg(feature = "ndarray")]
mod arrays {
    use ndarray::{Array1, Array3, ArrayD, ArrayViewD, ArrayViewMutD, Axis, IxDyn, Slice, s};
    use oclprim::{NdCow, op::Sum};

    use super::*;

    fn cube() -> Array3<u32> {
        Array3::from_shape_fn((3, 4, 5), |(i, j, k)| (100 * i + 10 * j + k) as u32)
    }

    /// Converts to a view and back without a copy; the elements are in order.
    fn agree(array: ArrayViewD<'_, u32>) {
        let view = NdView::try_from(array.view()).unwrap();
        assert_eq!(view.shape(), array.shape());
        assert_eq!(view.to_array().unwrap(), array);
        let back = ArrayViewD::try_from(view).unwrap();
        assert_eq!(back, array);
        if let (Some(x), Some(y)) = (array.first(), back.first()) {
            assert!(std::ptr::eq(x, y));
        }
    }

    #[test]
    fn dense_arrays_convert_both_ways() {
        let cube = cube();
        agree(cube.view().into_dyn());
        agree(cube.view().reversed_axes().into_dyn());
        agree(cube.slice(s![..;-1, .., ..;-1]).into_dyn());
        agree(cube.slice(s![1..2, .., ..]).permuted_axes([2, 0, 1]).into_dyn());
        agree(cube.slice(s![1, 2, ..;-1]).into_dyn());
        agree(cube.slice(s![.., 1..1, ..;2]).into_dyn());
        agree(cube.slice(s![2, 3, 4]).into_dyn());
        agree(cube.broadcast((6, 3, 4, 5)).unwrap().permuted_axes([2, 0, 3, 1]).into_dyn());
        agree(Array1::from_elem(1, 7).broadcast((4, 3)).unwrap().into_dyn());
        agree(cube.slice(s![.., 2, ..]).as_standard_layout().view().into_dyn());
    }

    #[test]
    fn arrays_with_gaps_are_refused_and_views_slice_the_whole() {
        let mut cube = cube();
        let want = cube.slice(s![.., 1..3, ..;2]).to_owned();
        assert_eq!(NdView::try_from(cube.slice(s![.., 1..3, ..])).unwrap_err().kind(), ErrorKind::InvalidInput);
        let view = NdView::try_from(&cube).unwrap().slice(1, 1..3).unwrap().step(2, 2).unwrap();
        assert_eq!(view.to_array().unwrap(), want.into_dyn());

        // Two interleaved halves must not become two overlapping slices.
        let (left, right) = cube.view_mut().split_at(Axis(2), 2);
        assert!(NdViewMut::try_from(left).is_err() && NdViewMut::try_from(right).is_err());
        assert!(NdViewMut::try_from(cube.slice_mut(s![..;-1, .., ..])).is_err());
        assert!(NdView::try_from(&ArrayD::<u8>::zeros(IxDyn(&[1; 9]))).is_err());
    }

    /// The array view after a change, or unchanged if the change is invalid.
    fn moved<'a>(mut array: ArrayViewD<'a, u32>, step: &Move) -> ArrayViewD<'a, u32> {
        let (shape, ndim) = (array.shape().to_vec(), array.ndim());
        match *step {
            Move::Permute(seed) => {
                let mut axes: Vec<usize> = (0..ndim).collect();
                axes.sort_by_key(|&axis| seed.rotate_left(17 * axis as u32));
                array = array.permuted_axes(IxDyn(&axes));
            }
            Move::Slice(axis, a, b) if axis < ndim && a <= b && b <= shape[axis] => {
                array.slice_axis_inplace(Axis(axis), (a..b).into());
            }
            Move::Step(axis, k) if axis < ndim => {
                array.slice_axis_inplace(Axis(axis), Slice::new(0, None, k as isize));
            }
            Move::Reverse(axis) if axis < ndim => array.invert_axis(Axis(axis)),
            Move::Index(axis, i) if axis < ndim && i < shape[axis] => array = array.index_axis_move(Axis(axis), i),
            Move::Insert(axis) if axis <= ndim && ndim + 1 < Layout::MAX_DIMS => array = array.insert_axis(Axis(axis)),
            _ => {}
        }
        array
    }

    /// Borrows the array if possible, and otherwise copies each element once. The elements differ from one another.
    fn comes_by_either_way(array: ArrayViewD<'_, u32>) -> Result<(), TestCaseError> {
        let found = NdCow::try_from(array.view()).unwrap();
        prop_assert_eq!(&found.view().to_array().unwrap(), &array);
        prop_assert_eq!(found.is_copied(), NdView::try_from(array.view()).is_err());
        let mut elements: Vec<u32> = array.iter().copied().collect();
        elements.sort_unstable();
        elements.dedup();
        prop_assert_eq!(found.view().input().len(), elements.len());
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_array_is_borrowed_or_copied(
            shape in shapes(), steps in prop::collection::vec(moves(), 0..7), n in 1usize..4, seed in any::<u64>(),
        ) {
            let mut counter = 0;
            let whole = ArrayD::from_shape_simple_fn(IxDyn(&shape), || { counter += 1; counter });
            let array = steps.iter().fold(whole.view(), moved);
            comes_by_either_way(array.view())?;
            let repeated = array.broadcast([&[n], array.shape()].concat()).unwrap();
            comes_by_either_way(moved(repeated, &Move::Permute(seed)))?;
        }
    }

    #[test]
    fn arrays_are_written_in_place() {
        let mut cube = cube();
        let view = NdViewMut::try_from(cube.view_mut().permuted_axes([2, 0, 1])).unwrap();
        let inner = view.slice(0, 1..4).unwrap().step(2, 2).unwrap();
        ArrayViewMutD::try_from(inner).unwrap().fill(7);
        let mut want = self::cube();
        want.slice_mut(s![.., ..;2, 1..4]).fill(7);
        assert_eq!(cube, want);
        let empty = NdViewMut::try_from(cube.slice_mut(s![.., 0..0, ..])).unwrap();
        assert_eq!(empty.shape(), [3, 0, 5]);
    }

    #[test]
    fn device_results_convert_to_arrays() {
        for (name, device) in common::devices() {
            let cube = cube();
            let x = device.upload(cube.as_slice().unwrap()).unwrap();
            let turned = x.nd(cube.shape()).unwrap().permute(&[2, 1, 0]).unwrap();
            assert_eq!(turned.to_array().unwrap(), cube.t().into_dyn(), "{name}");
            assert_eq!(ArrayViewD::try_from(turned).is_ok(), device.is_cpu(), "{name}");
            let block = cube.slice(s![..;-1, 1.., ..;2]);
            let sums =
                device.reduce(NdView::from(&NdCow::try_from(&block).unwrap()).along(1), Sum).unwrap().to_vec().unwrap();
            assert_eq!(sums, block.sum_axis(Axis(1)).into_raw_vec_and_offset().0, "{name}");
        }
    }
}
