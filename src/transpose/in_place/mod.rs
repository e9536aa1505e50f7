//! Transposition within a matrix's own memory.

mod cpu;
#[cfg(feature = "opencl")]
pub(crate) mod gpu;
pub(crate) mod spec;

use bytemuck::Pod;

use crate::{Device, Error, Output, Result, Scratch, runtime::Backend};

/// Bytes of a strip that goes through scratch, unless a row or a column is longer.
const STRIP_BYTES: usize = 16 << 20;

/// The numbers of the decomposition of a matrix of m rows and n columns (Catanzaro, Keller and Garland, 2014).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Steps {
    m: usize,
    n: usize,
    /// The greatest common divisor, and what it leaves of m and n.
    c: usize,
    a: usize,
    b: usize,
    /// The inverse of a modulo b.
    inverse: usize,
}

impl Steps {
    fn new(m: usize, n: usize) -> Self {
        let (mut c, mut rest) = (m, n);
        while rest > 0 {
            (c, rest) = (rest, c % rest);
        }
        let (a, b) = (m / c, n / c);
        // Euclid's algorithm on (b, a): x * a is the remainder, modulo b.
        let (mut old, mut new, mut x, mut next) = (b as i128, (a % b) as i128, 0i128, 1i128);
        while new > 0 {
            let q = old / new;
            (old, new) = (new, old - q * new);
            (x, next) = (next, x - q * next);
        }
        Self { m, n, c, a, b, inverse: x.rem_euclid(b as i128) as usize }
    }

    /// Bytes of scratch of strips of elements of `size` bytes, of which one is a row or a column at least.
    fn scratch(&self, size: usize) -> usize {
        self.m.max(self.n).max((STRIP_BYTES / size).min(self.m * self.n)) * size
    }
}

impl Device {
    /// Transposes a matrix of `rows` x `cols` elements within its own memory: afterwards `data` has `cols` rows of `rows`
    /// elements.
    ///
    /// A square matrix needs no scratch, and is read and written once. Any other goes through `scratch` in strips, three
    /// times: out of place is faster, where there is memory for it. Does not wait for the result, unless `data` is a host
    /// slice.
    ///
    /// # Errors
    ///
    /// As [`Device::transpose`]; [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the device does not hold the
    /// scratch: [`Device::transpose_in_place_scratch`].
    ///
    /// ```
    /// use oclprim::{Device, Scratch};
    ///
    /// let device = Device::best()?;
    /// let mut x = device.upload(&[1, 2, 3, 4, 5, 6])?;
    /// device.transpose_in_place(&mut x, 2, 3, &mut Scratch::new())?;
    /// assert_eq!(x.to_vec()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transpose_in_place<'a, T: Pod>(
        &self,
        data: impl Into<Output<'a, T>>,
        rows: usize,
        cols: usize,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let data = data.into();
        let size = size_of::<T>();
        super::check_size(size)?;
        let len = rows.checked_mul(cols).ok_or_else(|| {
            Error::invalid(format!("transpose of {rows} x {cols} elements overflows the address space"))
        })?;
        if data.len() != len {
            let text = format!("transpose of {rows} x {cols} needs {len} elements, got {}", data.len());
            return Err(Error::invalid(text));
        }
        match self.backend() {
            Backend::Cpu => cpu::transpose(bytemuck::cast_slice_mut(data.host()?), rows, cols, size),
            #[cfg(feature = "opencl")]
            Backend::OpenCl(device) => {
                let data = data.cl(device, true)?;
                gpu::transpose(device, &data, (rows, cols), size, scratch)?;
                data.finish(device)?;
            }
        }
        Ok(())
    }

    /// The bytes of scratch that [`Device::transpose_in_place`] uses at most: none for a square matrix, else 16 MiB, or one
    /// row or column where that is more.
    ///
    /// ```
    /// let device = oclprim::Device::best()?;
    /// assert_eq!(device.transpose_in_place_scratch::<f32>(1000, 1000), 0);
    /// assert!(device.transpose_in_place_scratch::<f32>(10_000, 30_000) <= 16 << 20);
    /// # Ok::<(), oclprim::Error>(())
    /// ```
    pub fn transpose_in_place_scratch<T: Pod>(&self, rows: usize, cols: usize) -> usize {
        if self.is_cpu() || rows == cols || rows <= 1 || cols <= 1 || size_of::<T>() == 0 {
            return 0;
        }
        if rows.checked_mul(cols).is_none() {
            return 0;
        }
        Steps::new(rows, cols).scratch(size_of::<T>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_are_inverse() {
        for m in 1..50 {
            for n in 1..50 {
                let Steps { c, a, b, inverse, .. } = Steps::new(m, n);
                assert_eq!((a * c, b * c), (m, n));
                assert_eq!(a * inverse % b, 1 % b, "{m} x {n}");
                assert!(inverse < b);
            }
        }
    }
}
