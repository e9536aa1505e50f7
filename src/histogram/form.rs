//! The programs of histograms by element type and bins, and the arguments that map a sample to its slot.

use super::{
    Bins,
    bins::{Edges, Map},
    edges::{List, Values, cell_room},
};
use crate::{
    Element, ElementType, Result,
    runtime::{
        ProgramSpec,
        opencl::{ClDevice, ClMem, Launch},
    },
    tuning::{self, Tuned},
};

pub(super) const TEXT: &str = kernel_text!("histogram.cl");

/// `MAP_EDGES` of `cl/lib/bins.cl`.
const EDGES: u32 = 3;

/// A histogram without its size: element type and bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form {
    pub element: ElementType,
    pub bins: usize,
    /// `MAP` of `cl/lib/bins.cl`.
    pub map: u32,
}

impl Form {
    pub fn of<T: Element>(bins: &Bins<T>) -> Self {
        Self { element: T::TYPE, bins: bins.len(), map: Self::map_of(bins.map()) }
    }

    /// `MAP` of `cl/lib/bins.cl`.
    pub fn map_of(map: &Map) -> u32 {
        match map {
            Map::Ids => 0,
            Map::Integers(_) => 1,
            Map::F32(_) | Map::F64(_) => 2,
            Map::List { .. } => EDGES,
        }
    }
}

impl Form {
    /// The program of `text` for samples in these bins, and the bytes of local memory that its edges take.
    pub fn program(self, name: &'static str, text: &'static str, caps: &Tuned) -> (ProgramSpec, usize) {
        let program = ProgramSpec::new(name, text, caps)
            .element("T", self.element)
            .element("A", self.element.accumulator())
            .define("MAP", self.map);
        let room = cell_room(self.bins).max(64);
        if self.map != EDGES || 4 * self.bins > room {
            return (program, 0);
        }
        // If local memory suffices, the cells also hold copies of edges of 4 bytes.
        let most = tuning::histogram(caps).edge_bytes;
        let edge = self.element.size().max(4);
        let [pairs, plain] = [8, 4].map(|cell| cell * (room + 1) + edge * (room / 4 + 1));
        if edge == 4 && pairs <= most {
            (program.define("EDGE_ROOM", room).flag("EDGE_PAIRS", true), pairs)
        } else if plain <= 2 * most {
            (program.define("EDGE_ROOM", room), plain)
        } else {
            (program, 0)
        }
    }
}

/// A function whose results are counted in place of the samples: its input type, and its OpenCL C text.
#[derive(Clone, Debug)]
pub struct Mapped {
    pub from: ElementType,
    pub prelude: String,
}

impl Mapped {
    pub fn apply(this: Option<&Self>, program: ProgramSpec) -> ProgramSpec {
        match this {
            Some(Self { from, prelude }) => program.element("IN", *from).flag("MAPPED", true).prelude(prelude.clone()),
            None => program,
        }
    }
}

pub fn zero_program(caps: &Tuned) -> ProgramSpec {
    ProgramSpec::new("histogram.cl", TEXT, caps).flag("ZERO", true).define("WG", tuning::histogram(caps).work_group)
}

/// Sets the first `words` words of `tables` to 0.
pub fn zero(device: &ClDevice, tables: &ClMem, words: usize, caps: &Tuned) -> Result<()> {
    let (params, program) = (tuning::histogram(caps), zero_program(caps));
    let per = words.div_ceil(8 * params.max_groups).max(1024);
    let launch = device.launch(&program, "histogram_zero")?.mem(tables).scalar(words as u32).scalar(per as u32);
    launch.run([words.div_ceil(per), 1, 1], [params.work_group, 1, 1])
}

/// Writes the edges and their table to memory of the device.
fn written(device: &ClDevice, list: &List) -> Result<(ClMem, ClMem)> {
    let edges = match &list.values {
        Values::Integers { edges, narrow: true, .. } => {
            let edges: Vec<u32> = edges.iter().map(|&edge| edge as u32).collect();
            device.holding(bytemuck::cast_slice(&edges))
        }
        Values::Integers { edges, .. } => device.holding(bytemuck::cast_slice(edges)),
        Values::F32(scaled) => device.holding(bytemuck::cast_slice(&scaled.edges)),
        Values::F64(scaled) => device.holding(bytemuck::cast_slice(&scaled.edges)),
    }?;
    Ok((edges, device.holding(bytemuck::cast_slice(&list.guide))?))
}

/// Adds the arguments of `MAP_PARAMS`.
pub fn map_arguments<'d>(device: &ClDevice, launch: Launch<'d>, map: &Map) -> Result<Launch<'d>> {
    fn even<'d, F: bytemuck::NoUninit>(launch: Launch<'d>, edges: &Edges<F>) -> Launch<'d> {
        let Edges { lower, upper, width, scale, slack, closed, .. } = *edges;
        let launch = launch.scalar(lower).scalar(upper).scalar(width).scalar(scale).scalar(slack);
        launch.scalar(u32::from(closed))
    }
    let (list, closed) = match map {
        Map::Ids => return Ok(launch),
        Map::Integers(steps) => {
            let launch = launch.scalar(steps.lower as u64).scalar(steps.extent).scalar(steps.reciprocal);
            return Ok(launch.scalar(steps.shift).scalar(u32::from(steps.closed)));
        }
        Map::F32(edges) => return Ok(even(launch, edges)),
        Map::F64(edges) => return Ok(even(launch, edges)),
        Map::List { edges, closed } => (edges, u32::from(*closed)),
    };
    let place = list.on_device.get(device, || written(device, list))?;
    let launch = launch.mem(&place.edges).mem(&place.guide).scalar(list.guide.len() as u32 - 1);
    let last = list.bins() as usize;
    Ok(match &list.values {
        Values::Integers { lower, edges, shift, .. } => {
            launch.scalar(*lower as u64).scalar(edges[last]).scalar(*shift).scalar(closed)
        }
        Values::F32(list) => {
            launch.scalar(list.edges[0]).scalar(list.edges[last]).scalar(list.anchor).scalar(list.scale).scalar(closed)
        }
        Values::F64(list) => {
            launch.scalar(list.edges[0]).scalar(list.edges[last]).scalar(list.anchor).scalar(list.scale).scalar(closed)
        }
    })
}
