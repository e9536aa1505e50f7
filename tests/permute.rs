//! Permutations of axes: errors, and any shape in any order.

mod common;

use common::{
    gpu,
    memory::{Counting, allocated},
    random, tiny, tuned,
};
use oclprim::{Device, ErrorKind, Layout, NdView, NdViewMut};
use proptest::prelude::*;

/// Every device, in its own geometry and in that of a GPU, also with 64-bit offsets.
fn devices() -> Vec<(String, Device)> {
    tuned(&[("a GPU", gpu()), ("a wide GPU", gpu().wide_offsets())])
}

#[test]
fn invalid_axes_and_outputs_are_refused() {
    for (name, device) in devices() {
        let x = device.upload(&[1u16, 2, 3, 4, 5, 6]).unwrap();
        let view = x.nd(&[2, 3]).unwrap();
        let refused = |error: oclprim::Error, text: &str| {
            assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, text.to_string()), "{name}");
        };
        refused(view.permute(&[0]).unwrap_err(), "axes [0] do not name each of 2 axes once");
        refused(view.permute(&[1, 1]).unwrap_err(), "axes [1, 1] do not name each of 2 axes once");
        let mut out = device.zeroed::<u16>(6).unwrap();
        let error = device.copy(view.permute(&[1, 0]).unwrap(), out.nd_mut(&[2, 3]).unwrap()).unwrap_err();
        refused(error, "copying a shape of [3, 2] into one of [2, 3]");
        let error = device.transform(Device::cpu().upload(&[(); 3]).unwrap().nd(&[3]).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}");
    }
}

/// An element of more than 16 bytes is moved in smaller units, which are one more axis. On OpenCL devices, so is an element
/// whose size is not a power of two.
#[test]
fn the_maximum_number_of_axes_works_for_every_element_size() {
    fn check<T: bytemuck::Pod + PartialEq>(name: &str, device: &Device) {
        let (shape, axes) = ([2, 3, 2, 3, 2, 3, 2, 3], [7, 5, 3, 1, 0, 2, 4, 6]);
        let x: Vec<T> = random(1296, 5);
        let layout = Layout::contiguous(&shape).unwrap().reverse(2).unwrap();
        let view = NdView::new(&x, layout).unwrap();
        let want = view.permute(&axes).unwrap().to_vec().unwrap();
        let got = device.transform(view.permute(&axes).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(got.to_vec().unwrap() == want, "{name}: {} bytes", size_of::<T>());
    }
    for (name, device) in devices() {
        check::<u32>(&name, &device);
        check::<[u32; 3]>(&name, &device);
        check::<[u64; 5]>(&name, &device);
        check::<[u8; 7]>(&name, &device);
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The memory that the CPU backend needs to split the work among threads does not grow with the input.
#[test]
fn permuting_on_the_cpu_takes_little_memory() {
    let cases: [(&[usize], &[usize]); 3] =
        [(&[256, 32, 500], &[2, 1, 0]), (&[256, 500, 32], &[2, 1, 0]), (&[200_000, 2, 2], &[0, 2, 1])];
    for (shape, axes) in cases {
        let x: Vec<u8> = random(shape.iter().product(), 3);
        let view = NdView::new(&x, Layout::contiguous(shape).unwrap()).unwrap();
        let turned: Vec<_> = axes.iter().map(|&axis| shape[axis]).collect();
        let mut out = vec![0; x.len()];
        let taken = allocated(|| {
            let output = NdViewMut::new(&mut out, Layout::contiguous(&turned).unwrap()).unwrap();
            Device::cpu().copy(view.permute(axes).unwrap(), output).unwrap();
        });
        assert!(taken < 700_000, "{shape:?} by {axes:?}: {taken} bytes for {}", x.len());
        assert!(out == view.permute(axes).unwrap().to_vec().unwrap(), "{shape:?} by {axes:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if tiny() { 4 } else { 24 }))]

    /// The result equals the view's own iteration over its elements.
    #[test]
    fn any_shape_in_any_order_equals_the_view(
        shape in prop_oneof![prop::collection::vec(1usize..9, 1..6), prop::collection::vec(1usize..40, 2..4)],
        order in any::<prop::sample::Index>(),
        reversed in any::<u8>(),
    ) {
        let (mut rest, mut axes) = (order.index(720), (0..shape.len()).collect::<Vec<_>>());
        for i in (1..axes.len()).rev() {
            axes.swap(i, rest % (i + 1));
            rest /= i + 1;
        }
        let x: Vec<u32> = (0..shape.iter().product::<usize>() as u32).collect();
        let layout = (0..shape.len()).filter(|axis| reversed >> axis & 1 == 1).try_fold(
            Layout::contiguous(&shape).unwrap(),
            |layout, axis| layout.reverse(axis),
        );
        let view = NdView::new(&x, layout.unwrap()).unwrap();
        let want = view.permute(&axes).unwrap().to_vec().unwrap();
        for (name, device) in devices() {
            prop_assert_eq!(&device.transform(view.permute(&axes).unwrap()).unwrap().to_vec().unwrap(), &want, "{}", name);
        }
    }
}
