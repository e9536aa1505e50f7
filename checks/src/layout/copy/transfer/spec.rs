//! Benchmark cases of transfers between the host and a device. The element type is `u8`, so n is a number of bytes.

use crate::{
    Buffer, Device, ElementType, PinnedVec, Result, Tuning,
    bench::Bench,
    check::{Failure, data::random_bits},
    ladder::Climb,
    tuning::Primitive,
};

/// A `min_bytes` or `min_read_bytes` that no transfer reaches, so that the driver moves every slice itself.
const NEVER: usize = 1 << 48;
/// Number of random bytes. The data repeats them, each time with another first byte, because random numbers for 4 GiB
/// take too long.
const BLOCK: usize = 1 << 20;

/// The kind of host memory of a benchmark.
#[derive(Clone, Copy)]
enum Memory {
    Slice,
    /// A slice at an odd address.
    Odd,
    Pinned,
}

/// Host memory of a benchmark.
enum Host {
    Slice(Vec<u8>),
    /// The slice begins at the first odd address.
    Odd(Vec<u8>, usize),
    Pinned(PinnedVec<u8>),
}

impl Host {
    fn new(device: &Device, n: usize, memory: Memory) -> Result<Self> {
        Ok(match memory {
            Memory::Slice => Self::Slice(vec![0; n]),
            Memory::Odd => Self::Odd(vec![0; n + 2], n),
            Memory::Pinned => Self::Pinned(device.pinned(n)?),
        })
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Slice(bytes) => bytes,
            Self::Odd(bytes, n) => {
                let first = 1 - bytes.as_ptr() as usize % 2;
                &mut bytes[first..][..*n]
            }
            Self::Pinned(bytes) => bytes,
        }
    }
}

fn fill(bytes: &mut [u8]) {
    let block: Vec<u8> = random_bits(BLOCK, 1);
    for (i, part) in bytes.chunks_mut(BLOCK).enumerate() {
        part.copy_from_slice(&block[..part.len()]);
        part[0] = i as u8;
    }
}

fn same(got: &[u8], want: &[u8], what: &str) -> Result<(), Failure> {
    if got == want {
        return Ok(());
    }
    let at = got.iter().zip(want).position(|(got, want)| got != want).unwrap_or(got.len().min(want.len()));
    Err(Failure::Mismatch(format!("{what}: byte {at} differs, of {}", want.len())))
}

/// The device as it is, or one whose driver moves every slice itself.
fn variant(device: &Device, by_the_driver: bool) -> Device {
    let tuning = Tuning::default().set(Primitive::Transfer, "min_bytes", NEVER).set(
        Primitive::Transfer,
        "min_read_bytes",
        NEVER,
    );
    // A device that shares the host's memory has no such parameter.
    if by_the_driver { device.with_tuning(tuning).unwrap_or_else(|_| device.clone()) } else { device.clone() }
}

fn bench(form: &str, prepare: impl Fn(&Device, usize) -> Result<Climb> + 'static) -> Bench {
    Bench {
        sizes: [10, 16, 20, 24, 28].map(|bits| 1 << bits).into(),
        ..Bench::new(form, ElementType::U8, |n| n as u64, prepare)
    }
}

/// Writes a buffer from host memory.
fn upload(form: &str, memory: Memory, by_the_driver: bool) -> Bench {
    bench(form, move |device, n| {
        let mut host = Host::new(device, n, memory)?;
        fill(host.bytes());
        let state = (variant(device, by_the_driver).zeroed::<u8>(n)?, host);
        Ok(Climb::new(
            state,
            |_| Ok(()),
            |(x, host)| x.write(host.bytes()),
            |(x, host)| same(&x.to_vec()?, host.bytes(), "upload"),
        ))
    })
}

fn filled(device: &Device, n: usize) -> Result<Buffer<u8>> {
    let mut bytes = vec![0; n];
    fill(&mut bytes);
    device.upload(&bytes)
}

/// Reads a buffer to host memory.
fn download(form: &str, memory: Memory, by_the_driver: bool) -> Bench {
    bench(form, move |device, n| {
        let device = variant(device, by_the_driver);
        let state = (filled(&device, n)?, Host::new(&device, n, memory)?);
        Ok(Climb::new(
            state,
            |_| Ok(()),
            |(x, host)| x.view(..)?.read(host.bytes()),
            move |(_, host)| {
                let mut want = vec![0; n];
                fill(&mut want);
                same(host.bytes(), &want, "download")
            },
        ))
    })
}

/// Reads a buffer to a new vector.
fn download_new(form: &str, by_the_driver: bool) -> Bench {
    bench(form, move |device, n| {
        Ok(Climb::new(
            (filled(&variant(device, by_the_driver), n)?, Vec::new()),
            |(_, out)| {
                *out = Vec::new();
                Ok(())
            },
            |(x, out)| {
                *out = x.to_vec()?;
                Ok(())
            },
            move |(_, out)| {
                let mut want = vec![0; n];
                fill(&mut want);
                same(out, &want, "download")
            },
        ))
    })
}

pub(crate) fn benches() -> Vec<Bench> {
    let new = bench("upload new", |device, n| {
        let mut bytes = vec![0; n];
        fill(&mut bytes);
        Ok(Climb::new(
            (device.clone(), bytes, None),
            |(.., x)| {
                *x = None;
                Ok(())
            },
            |(device, bytes, x)| {
                *x = Some(device.upload(bytes)?);
                Ok(())
            },
            |(_, bytes, x)| x.as_ref().map_or(Ok(()), |x: &Buffer<u8>| same(&x.to_vec()?, bytes, "upload")),
        ))
    });
    vec![
        upload("upload slice", Memory::Slice, false),
        upload("upload odd slice", Memory::Odd, false),
        new,
        upload("upload pinned", Memory::Pinned, false),
        upload("upload slice by the driver", Memory::Slice, true),
        upload("upload link", Memory::Pinned, true),
        download("download slice", Memory::Slice, false),
        download("download odd slice", Memory::Odd, false),
        download_new("download Vec", false),
        download("download pinned", Memory::Pinned, false),
        download("download slice by the driver", Memory::Slice, true),
        download_new("download Vec by the driver", true),
        download("download link", Memory::Pinned, true),
    ]
}
