//! Traits that the public types promise.

use std::{error, fmt::Debug};

use oclprim::{
    Bins, Buffer, Capabilities, Device, DeviceInfo, ElementType, Error, ErrorKind, ExactSum, Input, Layout, NdView,
    NdViewMut, Order, Output, Rows, Timing, Tuning, View, ViewMut, f16, op::Sum,
};

fn is_shared<T: Send + Sync + Debug>() {}
fn is_cloned<T: Clone>() {}

#[test]
fn types_are_send_and_sync() {
    is_shared::<Device>();
    is_shared::<DeviceInfo>();
    is_shared::<Capabilities>();
    is_shared::<Tuning>();
    is_shared::<Timing>();
    is_shared::<Buffer<f32>>();
    is_shared::<View<'_, u8>>();
    is_shared::<ViewMut<'_, f16>>();
    is_shared::<Input<'_, i64>>();
    is_shared::<Output<'_, i64>>();
    is_shared::<NdView<'_, u8>>();
    is_shared::<NdViewMut<'_, u8>>();
    is_shared::<Layout>();
    is_shared::<Rows>();
    is_shared::<Order>();
    is_shared::<Bins<f64>>();
    is_shared::<Error>();
    is_shared::<ErrorKind>();
    is_shared::<ExactSum<f64>>();
    is_shared::<ElementType>();
    is_shared::<Sum>();
    is_cloned::<Device>();
    is_cloned::<ExactSum<f16>>();
    is_cloned::<Tuning>();
    is_cloned::<View<'_, u8>>();
    is_cloned::<Input<'_, u8>>();
    is_cloned::<NdView<'_, u8>>();
}

#[test]
fn errors_implement_the_error_trait() {
    fn is_error<T: error::Error + Send + Sync + 'static>() {}
    is_error::<Error>();

    let error = Device::open("no such device").expect_err("no device fits");
    let text = error.to_string();
    assert!(!text.contains('\n') && text.starts_with(char::is_lowercase), "{text}");
    assert_eq!(format!("{error:?}"), format!("NoDevice: {text}"));
    let boxed: Box<dyn error::Error + Send + Sync> = error.into();
    assert_eq!(boxed.downcast::<Error>().expect("it is one").kind(), ErrorKind::NoDevice);

    let missing = std::fs::read("/nonexistent").expect_err("not there");
    let error = Error::from(missing);
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error::Error::source(&error).is_some_and(|source| source.is::<std::io::Error>()));
}

/// An error is a pointer, or the two numbers of a failed allocation, so results stay small.
#[test]
fn errors_are_small() {
    assert_eq!(size_of::<Error>(), 3 * size_of::<usize>());
    assert_eq!(size_of::<oclprim::Result<()>>(), 3 * size_of::<usize>());
}
