//! The copy ladder: the kernels of `cl/ladder/copy.cl`, the driver's own copy, then the crate's.

use crate::{
    Buffer, Device, Element, Error, Result,
    check::{data::Data, poison, same_bytes},
    ladder::{
        Climb, GUARD, Ladder, Model, Request, Rung, Shared, intact,
        model::{LANES, sectors},
    },
    with_element,
};

/// The ladder's entry in the registry.
pub(crate) struct CopyLadder;

/// Default work-group size.
const BLOCK: usize = 256;
/// Largest number of work-groups of a grid-stride kernel.
const MAX_GROUPS: usize = 4096;
/// Bytes of the widest access of a work-item; a wider vector takes several accesses.
const WIDEST: u64 = 16;

/// A kernel of `cl/ladder/copy.cl`.
#[derive(Debug)]
struct Kernel {
    name: &'static str,
    step: &'static str,
    /// Elements per vector.
    width: usize,
    /// True if the grid is capped and its work-items loop.
    strides: bool,
}

impl Kernel {
    const fn new(name: &'static str, width: usize, strides: bool, step: &'static str) -> Self {
        Self { name, step, width, strides }
    }
}

#[rustfmt::skip]
const KERNELS: [Kernel; 10] = [
    Kernel::new("copy_scalar", 1, true, "a grid-stride loop, one element per work-item and iteration"),
    Kernel::new("copy_vector2", 2, true, "2 elements per access: half as many requests for as many bytes"),
    Kernel::new("copy_vector4", 4, true, "4 elements per access: 16 bytes if an element has 4, the widest access"),
    Kernel::new("copy_vector8", 8, true, "8 elements: 32 bytes if an element has 4, two accesses; each leaves gaps between neighbouring work-items"),
    Kernel::new("copy_vector16", 16, true, "16 elements: 64 bytes if an element has 4, four accesses"),
    Kernel::new("copy_item1", 1, false, "no loop: a work-item for each element"),
    Kernel::new("copy_item2", 2, false, "a work-item for each vector of 2"),
    Kernel::new("copy_item4", 4, false, "a work-item for each vector of 4"),
    Kernel::new("copy_item8", 8, false, "a work-item for each vector of 8"),
    Kernel::new("copy_item16", 16, false, "a work-item for each vector of 16"),
];

/// Cost of copying `bytes` bytes in contiguous vectors of `vector` bytes. Each access to a vector is a request.
fn model(bytes: u64, vector: u64) -> Model {
    let access = Ord::min(vector, WIDEST);
    let request = |at: u64| sectors(access, |lane| Some(lane * vector + at));
    let touched: f64 = (0..vector).step_by(access as usize).map(request).sum();
    let all = touched * bytes as f64 / (LANES * vector) as f64;
    Model { load_sectors: all, store_sectors: all, bank_conflicts: 0.0 }
}

/// Data of a step.
struct State<T: Element> {
    x: Buffer<T>,
    /// The output, and a guard after it.
    out: Buffer<T>,
}

fn prepare<T: Element>(
    device: &Device,
    shared: &Shared<Vec<T>>,
    n: usize,
    run: impl FnMut(&mut State<T>) -> Result<()> + 'static,
) -> Result<Climb> {
    let state = State { x: device.upload(shared.get()?)?, out: device.uninit(n + GUARD)? };
    let shared = shared.clone();
    let verify = move |state: &mut State<T>| {
        let out = state.out.to_vec()?;
        same_bytes(&out[..n], shared.get()?, "out")?;
        intact(&out[n..])
    };
    Ok(Climb::new(state, |state| state.out.fill(poison()), run, verify))
}

impl Ladder for CopyLadder {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn rungs(&self, request: &Request, device: &Device) -> Result<Vec<Rung>> {
        request.addressable(Some(request.n))?;
        if request.n == 0 {
            return Err(Error::invalid("the copy ladder needs 1 element at least, got 0"));
        }
        if request.block == Some(0) {
            return Err(Error::invalid("a block of 0 work-items: the copy ladder takes 1 at least"));
        }
        with_element!(request.element, T => steps::<T>(request, device))
    }
}

fn steps<T: Element>(request: &Request, device: &Device) -> Result<Vec<Rung>> {
    let (n, size) = (request.n, size_of::<T>() as u64);
    let shared = Shared::new(move || Ok(Data::Bits.generate::<T>(n, n as u64)));
    let bytes = 2 * n as u64 * size;
    let most = device.capabilities()?.map_or(usize::MAX, |caps| caps.max_work_group);
    let block = request.block.unwrap_or(BLOCK.min(most));
    let no_device = || device.is_cpu().then(|| "a kernel needs an OpenCL device".to_owned());
    let too_large = || (block > most).then(|| format!("needs work-groups of {block}, the device allows {most}"));
    let mut steps: Vec<Rung> = KERNELS
        .iter()
        .map(|kernel| {
            let shared = shared.clone();
            Rung {
                name: kernel.name,
                step: kernel.step,
                bytes,
                model: Some(model(bytes / 2, kernel.width as u64 * size)),
                unavailable: no_device().or_else(too_large),
                prepare: Box::new(move |device| prepare_kernel(device, kernel, &shared, n, block)),
            }
        })
        .collect();
    let driver = shared.clone();
    steps.push(Rung {
        name: "clEnqueueCopyBuffer",
        step: "the driver's own copy",
        bytes,
        model: None,
        unavailable: no_device(),
        prepare: Box::new(move |device| prepare_driver(device, &driver, n)),
    });
    steps.push(Rung {
        name: "copy",
        step: "the crate's own: one 16-byte word per work-item for any element, work-groups of 128, any alignment",
        bytes,
        model: own_model(device, bytes / 2)?,
        unavailable: None,
        prepare: Box::new(move |device| {
            let own = device.clone();
            prepare(device, &shared, n, move |state| own.copy(&state.x, state.out.view_mut(..n)?))
        }),
    });
    Ok(steps)
}

/// Cost of the crate's own kernel; `None` unless neighbouring work-items copy neighbouring words.
fn own_model(device: &Device, bytes: u64) -> Result<Option<Model>> {
    let words =
        |caps: crate::Capabilities| matches!(crate::tuning::copy(&caps.into()), crate::tuning::Copy::Words { .. });
    Ok(device.capabilities()?.is_some_and(words).then(|| model(bytes, WIDEST)))
}

use device::{prepare_driver, prepare_kernel};

pub(super) mod device {
    //! Steps on OpenCL devices.

    use super::*;
    use crate::runtime::{Backend, Capabilities, ProgramSpec};

    use oclprim::internals::kernels::COPY as TEXT;

    /// One program for all kernels; only the element size matters.
    fn program(size: usize, wide: bool, caps: &Capabilities) -> ProgramSpec {
        ProgramSpec::new("ladder/copy.cl", TEXT, caps)
            .define("T", ["uchar", "ushort", "uint", "ulong"][size.ilog2() as usize])
            .define("OFFSET_T", if wide { "ulong" } else { "uint" })
    }

    /// All programs that the ladder may build.
    pub(in crate::layout::copy) fn programs(caps: &Capabilities) -> Vec<ProgramSpec> {
        [1, 2, 4, 8].into_iter().flat_map(|size| [false, true].map(|wide| program(size, wide, caps))).collect()
    }

    pub(super) fn prepare_kernel<T: Element>(
        device: &Device,
        kernel: &'static Kernel,
        shared: &Shared<Vec<T>>,
        n: usize,
        block: usize,
    ) -> Result<Climb> {
        let Backend::OpenCl(cl) = device.backend() else {
            return Err(Error::unsupported("a kernel needs an OpenCL device"));
        };
        let (cl, wide) = (cl.clone(), cl.wide(n));
        let program = program(size_of::<T>(), wide, &*cl.capabilities()?);
        let groups = (n / kernel.width).div_ceil(block).max(1);
        let groups = if kernel.strides { groups.min(MAX_GROUPS) } else { groups };
        prepare(device, shared, n, move |state| {
            let x = oclprim::View::from(&state.x).cl(&cl)?;
            let out = crate::Output::from(&mut state.out).cl(&cl, false)?;
            let launch = cl.launch(&program, kernel.name)?.mem(x.mem()).mem(out.mem()).offset(n as u64, wide);
            launch.run([groups, 1, 1], [block, 1, 1])
        })
    }

    pub(super) fn prepare_driver<T: Element>(device: &Device, shared: &Shared<Vec<T>>, n: usize) -> Result<Climb> {
        let Backend::OpenCl(cl) = device.backend() else {
            return Err(Error::unsupported("the driver's copy needs an OpenCL device"));
        };
        let cl = cl.clone();
        prepare(device, shared, n, move |state| {
            let x = oclprim::View::from(&state.x).cl(&cl)?;
            let out = crate::Output::from(&mut state.out).cl(&cl, false)?;
            cl.copy((x.mem(), 0), (out.mem(), 0), n * size_of::<T>())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_beyond_16_bytes_touch_sectors_twice() {
        assert_eq!(model(1 << 20, 4).load_sectors, f64::from(1 << 15));
        assert_eq!(model(1 << 20, 16).store_sectors, f64::from(1 << 15));
        assert_eq!(model(1 << 20, 32).load_sectors, f64::from(1 << 16));
        assert_eq!(model(1 << 20, 64).load_sectors, f64::from(1 << 16));
    }
}
