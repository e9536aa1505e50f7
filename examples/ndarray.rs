//! Primitives on `ndarray` arrays and views. Only views with gaps between their rows need a copy on the host.
//!
//! `cargo run --release --features ndarray --example ndarray`

use ndarray::{Array2, Axis, s};
use oclprim::{Device, Input, NdCow, NdView, Output, op::Sum};

fn main() -> Result<(), oclprim::Error> {
    let device = Device::best()?;
    println!("device: {}", device.info());

    let image = Array2::from_shape_fn((480, 640), |(r, c)| (r * c % 50) as f32);
    let total = device.reduce(Input::try_from(&image)?, Sum)?;
    println!("sum of a {} x {} image: {total}", image.nrows(), image.ncols());
    assert_eq!(total, image.sum());

    // Whole rows are contiguous, so a band of rows needs no copy.
    let band = image.slice(s![100..110, ..]);
    assert_eq!(device.reduce(Input::try_from(&band)?, Sum)?, band.sum());

    // A view of some columns is not contiguous. It needs a copy in standard layout first.
    let block = image.slice(s![.., 100..110]);
    let refused = Input::try_from(&block).unwrap_err();
    println!("refused: {refused}");
    let block = block.as_standard_layout();
    assert_eq!(device.reduce(Input::try_from(&block)?, Sum)?, block.sum());

    // A view of the whole array can be sliced, permuted and reversed without a copy.
    let columns = NdView::try_from(&image)?.slice(1, 100..110)?;
    assert_eq!(columns.to_array()?, block.to_owned().into_dyn());

    // A view of some columns alone is copied once, because it has gaps between its rows.
    let columns = NdCow::try_from(image.slice(s![.., 100..110]))?;
    assert_eq!(device.reduce(NdView::from(&columns).along(0), Sum)?.to_vec()?, block.sum_axis(Axis(0)).to_vec());

    let mut turned = Array2::zeros((640, 480));
    device.transpose_into(Input::try_from(&image)?, (480, 640), Output::try_from(&mut turned)?)?;
    assert_eq!(turned, image.t());
    println!("transposed to {} x {}", turned.nrows(), turned.ncols());
    Ok(())
}
