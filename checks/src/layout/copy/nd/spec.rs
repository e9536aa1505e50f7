//! Cases and benchmark cases of strided copies that the permutations do not cover.

use crate::{
    Device, ElementType, ErrorKind, Layout, NdView, NdViewMut, Result,
    bench::Bench,
    check::{Case, Failure, Level, data::random_bits, everywhere, guarded, poison, same_bytes},
    ladder::Climb,
    layout::copy::shared::Plain,
};

/// Layout of the last `cols` elements of each row of `pitch` elements. In memory, one row that the layout leaves out
/// precedes the rows of each plane.
fn pitched(planes: usize, rows: usize, cols: usize, pitch: usize) -> Result<Layout> {
    Layout::contiguous(&[planes, rows + 1, pitch])?.slice(1, 1..)?.slice(2, pitch - cols..)
}

fn end(layout: &Layout) -> usize {
    layout.span().map_or(0, |(_, last)| last + 1)
}

/// Layout of the input.
#[derive(Clone, Copy, Debug)]
enum Read {
    Rows,
    /// Rows in reverse order.
    Backwards,
    /// Each row reversed.
    Mirrored,
    /// One plane, broadcast.
    Repeated,
}

impl Read {
    fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Backwards => "rows backwards",
            Self::Mirrored => "rows mirrored",
            Self::Repeated => "a plane repeated",
        }
    }

    fn layout(self, [planes, rows, cols]: [usize; 3], pitch: usize) -> Result<Layout> {
        match self {
            Self::Rows => pitched(planes, rows, cols, pitch),
            Self::Backwards => pitched(planes, rows, cols, pitch)?.reverse(1),
            Self::Mirrored => pitched(planes, rows, cols, pitch)?.reverse(2),
            Self::Repeated => pitched(1, rows, cols, pitch)?.broadcast(0, planes),
        }
    }
}

fn check<T: Plain>(device: &Device, shape: [usize; 3], pitches: [usize; 2], read: Read) -> Result<(), Failure> {
    let [planes, rows, cols] = shape;
    let (from, to) = (read.layout(shape, pitches[0])?, pitched(planes, rows, cols, pitches[1])?);
    let data: Vec<T> = random_bits(end(&from), 1);
    let x = device.upload(&data)?;
    let len = end(&to);
    let got =
        guarded(device, len, pitches[1] % 5, |out| Ok(device.copy(NdView::new(&x, from)?, NdViewMut::new(out, to)?)?))?;
    let mut want: Vec<T> = vec![poison(); len];
    for p in 0..planes {
        for r in 0..rows {
            for c in 0..cols {
                want[to.offset_of(&[p, r, c])?] = data[from.offset_of(&[p, r, c])?];
            }
        }
    }
    same_bytes(&got, &want, "strided copy")
}

/// Checks calls on host slices, and refused calls.
fn check_host(device: &Device) -> Result<(), Failure> {
    let mut out = [9u16; 8];
    let to = Layout::contiguous(&[2, 4])?.slice(1, 1..3)?;
    device.copy(NdView::new(&[1u16, 2, 3, 4], Layout::contiguous(&[2, 2])?)?, NdViewMut::new(&mut out, to)?)?;
    same_bytes(&out, &[9, 1, 2, 9, 9, 3, 4, 9], "strided copy")?;
    let x = device.upload(&[1u8; 6])?;
    let mut y = device.zeroed::<u8>(6)?;
    match device.copy(x.nd(&[2, 3])?, y.nd_mut(&[3, 2])?) {
        Err(error) if error.to_string() == "copying a shape of [2, 3] into one of [3, 2]" => {}
        other => return Err(Failure::Mismatch(format!("another shape gave {other:?}"))),
    }
    let (x, mut y) = ([(); 3], [(); 3]);
    match device.copy(NdView::from(&x), NdViewMut::new(&mut y, Layout::contiguous(&[3])?)?) {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(()),
        other => Err(Failure::Mismatch(format!("elements of 0 bytes gave {other:?}"))),
    }
}

fn cases_of<T: Plain>(level: Level, name: &str, element: ElementType, cases: &mut Vec<Case>) {
    let row = 2100 / size_of::<T>();
    let short = 300 / size_of::<T>();
    let mut shapes = vec![([2, 3, row], [row + 3, row + 1]), ([2, 3, 5], [7, 6])];
    if level >= Level::Quick {
        shapes.extend([
            ([2, 41, short], [short + 1, short + 2]),
            ([1, 2, 9 * row], [9 * row + 1, 9 * row]),
            ([3, 5, 16], [32, 16]),
        ]);
    }
    if level >= Level::Full {
        shapes.extend([
            ([3, 0, row], [row, row + 2]),
            ([3, 7, 3 * row + 1], [3 * row + 9, 3 * row + 2]),
            ([5, 40, 64], [64, 80]),
            ([1, 1, row], [row; 2]),
            ([7, 100, short], [short + 3, short]),
        ]);
    }
    for (shape, pitches) in shapes {
        for read in [Read::Rows, Read::Backwards, Read::Mirrored, Read::Repeated] {
            let text = format!("{shape:?} by {pitches:?}");
            let n = shape.iter().product();
            cases.push(Case::new(format!("strided copy {name}"), element, text, read.name(), n, move |device| {
                everywhere(check::<T>(device, shape, pitches, read))
            }));
        }
    }
}

pub(in crate::layout::copy) fn cases(level: Level) -> Vec<Case> {
    let mut cases = Vec::new();
    cases_of::<u8>(level, "1 byte", ElementType::U8, &mut cases);
    if level >= Level::Quick {
        cases_of::<u32>(level, "4 bytes", ElementType::U32, &mut cases);
    }
    if level >= Level::Full {
        cases_of::<[u8; 3]>(level, "3 bytes", ElementType::U8, &mut cases);
        cases_of::<u64>(level, "8 bytes", ElementType::U64, &mut cases);
        cases_of::<u128>(level, "16 bytes", ElementType::U64, &mut cases);
        cases_of::<[u64; 5]>(level, "40 bytes", ElementType::U64, &mut cases);
    }
    cases.push(Case::new("strided copy on the host", ElementType::U16, "[2, 2]", "by hand", 4, check_host));
    cases
}

/// Copies rows of 1,024 elements, with gaps of `gap` elements between them in the input, to contiguous rows.
fn bench<T: Plain>(form: &str, element: ElementType, gap: usize) -> Bench {
    Bench::new(
        form,
        element,
        |n| 2 * (n.div_ceil(1024) * 1024 * size_of::<T>()) as u64,
        move |device, n| {
            let (rows, pitch) = (n.div_ceil(1024), 1024 + gap);
            let state =
                (device.clone(), device.upload(&random_bits::<T>(rows * pitch, 1))?, device.zeroed::<T>(rows * 1024)?);
            Ok(Climb::new(
                state,
                |(_, _, to)| to.fill(poison()),
                move |(device, from, to)| {
                    device.copy(from.nd(&[rows, pitch])?.slice(1, ..1024)?, to.nd_mut(&[rows, 1024])?)
                },
                move |(_, from, to)| {
                    let from = from.to_vec()?;
                    let want: Vec<T> = from.chunks(pitch).flat_map(|row| row[..1024].to_vec()).collect();
                    same_bytes(&to.to_vec()?, &want, "strided copy")
                },
            ))
        },
    )
}

pub(in crate::layout::copy) fn benches() -> Vec<Bench> {
    vec![
        bench::<u32>("strided rows", ElementType::U32, 32),
        bench::<u32>("strided rows, odd", ElementType::U32, 1),
        bench::<u8>("strided rows, odd", ElementType::U8, 1),
    ]
}
