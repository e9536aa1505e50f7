//! Permutations: errors, and any shape in any order.

mod common;

use common::{gpu, tiny, tuned};
use oclprim::{Device, ErrorKind, Layout, NdView};
use proptest::prelude::*;

/// Every device, in its own geometry and in that of a GPU.
fn devices() -> Vec<(String, Device)> {
    tuned(&[("a wide GPU", gpu().wide_offsets())])
}

#[test]
fn what_does_not_fit_is_refused() {
    for (name, device) in devices() {
        let x = device.upload(&[1u16, 2, 3, 4, 5, 6]).unwrap();
        let view = x.nd(&[2, 3]).unwrap();
        let refused = |error: oclprim::Error, text: &str| {
            assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, text.to_string()), "{name}");
        };
        refused(device.permute(view, &[0]).unwrap_err(), "axes [0] do not name each of 2 axes once");
        refused(device.permute(view, &[1, 1]).unwrap_err(), "axes [1, 1] do not name each of 2 axes once");
        let mut out = device.zeroed::<u16>(6).unwrap();
        let error = device.permute_into(view, &[1, 0], out.nd_mut(&[2, 3]).unwrap()).unwrap_err();
        refused(error, "permute needs an output of shape [3, 2], got [2, 3]");
        let error = device.permute(Device::cpu().upload(&[(); 3]).unwrap().nd(&[3]).unwrap(), &[0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if tiny() { 4 } else { 24 }))]

    /// As the view's own walk over its elements.
    #[test]
    fn any_shape_in_any_order(
        shape in prop::collection::vec(1usize..9, 1..6),
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
            prop_assert_eq!(&device.permute(view, &axes).unwrap().to_vec().unwrap(), &want, "{}", name);
        }
    }
}
