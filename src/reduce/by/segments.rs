//! Reductions of structs in segments: a scan in segments that writes only the last result of each segment.

use bytemuck::Pod;

use crate::{
    Determinism, Device, Input, Offset, Output, Result,
    op::{Core, Operator, Scan},
    runtime::{Backend, extents_apart},
    segments::{Offsets, segments},
};

impl Device {
    /// All reductions of segments of structs, compiled once for each operator and type of offsets.
    #[inline(never)]
    pub(crate) fn reduce_structs<T, C, F>(
        &self,
        (op, level): (&Operator<T, F>, Determinism),
        input: Input<'_, T>,
        offsets: Input<'_, C>,
        output: Output<'_, T>,
    ) -> Result<()>
    where
        T: Pod + Send + Sync,
        C: Offset,
        F: Fn(T, T) -> T + Sync,
    {
        op.exactly(level)?;
        output.expect_len(segments(offsets.len())?, "reduce of segments")?;
        extents_apart(&[input.extent(), offsets.extent()], &[output.extent()])?;
        let n = input.len();
        let parts = self.parts_at(offsets, n, false)?;
        match self.backend() {
            Backend::Cpu => {
                let mut scanned = self.temporary(n)?;
                self.scan_structs(op, (input, None), Some(parts), Scan::inclusive(), Output::from(&mut scanned))?;
                let scanned = Input::from(&scanned);
                let (scanned, offsets) = (scanned.host()?, Offsets::of(offsets.host()?));
                for (s, out) in output.host()?.iter_mut().enumerate() {
                    let [start, end] = [s, s + 1].map(|at| offsets.get(at).min(n));
                    *out = if start < end { scanned[end - 1] } else { op.identity };
                }
                Ok(())
            }
            Backend::OpenCl(_) => self.reduce_structs_of(op, input, parts, output),
        }
    }
}
