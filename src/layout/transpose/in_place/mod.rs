//! Transposition of a matrix in its own memory ([`Device::transpose_in_place`]).
//!
//! | property | |
//! |---|---|
//! | work | a square: one read and one write of each element. Other matrices: two or three passes, or one if scratch holds the matrix. In each pass, every element moves to scratch and back |
//! | elements | any plain type of 1 to 16 bytes; only its size counts |
//! | determinism | same bits everywhere: elements are moved, not computed |
//! | scratch | none for a square; otherwise at most 16 MiB, or one row or column if that is larger |
//! | limits | matrices without gaps between their rows |
//!
//! Rectangles are decomposed as by Catanzaro, Keller and Garland (2014): columns are rotated, rows are permuted,
//! columns are permuted. Each step goes through scratch in strips. If scratch holds the whole matrix, it is transposed
//! there and copied back.

#[doc(hidden)]
pub(crate) mod cpu;
#[doc(hidden)]
pub(crate) mod gpu;

use bytemuck::Pod;

use crate::{Device, Error, Output, Result, Scratch, runtime::Backend};

/// Bytes of a strip in scratch, unless a row or a column is larger.
#[doc(hidden)]
pub const STRIP_BYTES: usize = 16 << 20;

/// The shape of a matrix of m rows and n columns, with c = gcd(m, n), a = m / c and b = n / c.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Steps {
    m: usize,
    n: usize,
    c: usize,
    a: usize,
    b: usize,
}

impl Steps {
    fn new(m: usize, n: usize) -> Self {
        let (mut c, mut rest) = (m, n);
        while rest > 0 {
            (c, rest) = (rest, c % rest);
        }
        Self { m, n, c, a: m / c, b: n / c }
    }
}

/// Bytes of scratch for strips of `strip` bytes, where a strip has at least one row or column. A matrix of at most
/// `strip` bytes fits whole.
fn scratch_bytes((rows, cols): (usize, usize), size: usize, strip: usize) -> usize {
    if rows == cols || rows <= 1 || cols <= 1 {
        return 0;
    }
    (strip / size).max(rows).max(cols).saturating_mul(size).min(rows.saturating_mul(cols).saturating_mul(size))
}

/// Transposes in strips of `strip` bytes.
#[doc(hidden)]
pub fn transpose<T: Pod>(
    device: &Device,
    data: Output<'_, T>,
    (rows, cols): (usize, usize),
    strip: usize,
) -> Result<()> {
    let size = size_of::<T>();
    super::matrices::check_size(size)?;
    let overflow = || Error::invalid(format!("transpose of {rows} x {cols} elements overflows the address space"));
    let len = rows.checked_mul(cols).ok_or_else(overflow)?;
    if data.len() != len {
        let text = format!("transpose of {rows} x {cols} needs {len} elements, got {}", data.len());
        return Err(Error::invalid(text));
    }
    match device.backend() {
        Backend::Cpu => cpu::transpose(bytemuck::cast_slice_mut(data.host()?), (rows, cols), size, strip)?,
        Backend::OpenCl(device) => {
            let data = data.cl(device, true)?;
            gpu::transpose(device, &data, (rows, cols), size, strip, &mut Scratch::new())?;
            data.finish(device)?;
        }
    }
    Ok(())
}

/// # Transpositions in place
///
/// This method transposes a matrix in its own memory. Module:
/// [`layout::transpose::in_place`](crate::layout::transpose::in_place).
impl Device {
    /// Transposition in place: `data[c * rows + r]` becomes `data[r * cols + c]`, so `data` has `cols` rows of `rows`
    /// elements.
    ///
    /// A square needs no scratch, and is as fast as [`Device::transpose`]. Other matrices take several times as
    /// long: two or three passes through scratch, or one if the matrix fits in it. Waits for the result only if
    /// `data` is a host slice.
    ///
    /// # Errors
    ///
    /// Same as [`Device::transpose`]; [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the
    /// scratch does not fit the device.
    ///
    /// ```
    /// use oclprim::Device;
    ///
    /// let device = Device::best()?;
    /// let mut x = device.upload(&[1, 2, 3, 4, 5, 6])?;
    /// device.transpose_in_place(&mut x, 2, 3)?;
    /// assert_eq!(x.to_vec()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transpose_in_place<'a, T: Pod>(
        &self,
        data: impl Into<Output<'a, T>>,
        rows: usize,
        cols: usize,
    ) -> Result<()> {
        transpose(self, data.into(), (rows, cols), STRIP_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceClass, Tuning};

    fn obvious(input: &[u16], rows: usize, cols: usize) -> Vec<u16> {
        (0..cols).flat_map(|c| (0..rows).map(move |r| input[r * cols + c])).collect()
    }

    /// Strips of one column or row, and of several.
    #[test]
    fn small_matrices_of_every_shape_are_transposed_in_strips() {
        let own = (0..Device::list().len()).map(|index| Device::at(index).unwrap());
        let as_gpu = |device: &Device| device.with_tuning(Tuning::default().class(DeviceClass::Gpu)).unwrap();
        let devices: Vec<_> = own.flat_map(|device| [as_gpu(&device), device]).collect();
        for (rows, cols) in (0..14usize).flat_map(|rows| (0..14usize).map(move |cols| (rows, cols))) {
            let x: Vec<u16> = (0..(rows * cols) as u16).collect();
            for device in &devices {
                for strip in [0, 60] {
                    let mut data = device.upload(&x).unwrap();
                    transpose(device, (&mut data).into(), (rows, cols), strip).unwrap();
                    let got = data.to_vec().unwrap();
                    assert_eq!(got, obvious(&x, rows, cols), "{device:?}: {rows} x {cols} by {strip} bytes");
                }
            }
        }
    }

    #[test]
    fn scratch_is_bounded() {
        assert_eq!(scratch_bytes((1 << 20, 1 << 20), 4, STRIP_BYTES), 0);
        assert_eq!(scratch_bytes((1, 1 << 40), 4, STRIP_BYTES), 0);
        assert_eq!(scratch_bytes((3, 5), 4, STRIP_BYTES), 60);
        assert_eq!(scratch_bytes((10_000, 30_000), 4, STRIP_BYTES), STRIP_BYTES);
        assert_eq!(scratch_bytes((10_000, 30_000), 12, STRIP_BYTES), STRIP_BYTES / 12 * 12);
        assert_eq!(scratch_bytes((3, 1 << 30), 4, STRIP_BYTES), 4 << 30);
        assert_eq!(scratch_bytes((usize::MAX, 2), 16, STRIP_BYTES), usize::MAX);
    }
}
