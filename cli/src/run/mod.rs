//! `oclprim run`

mod common;
mod copy;
mod histogram;
mod made;
mod merge;
mod reduce;
mod scan;
mod select;
mod sort;
mod statistics;
mod topk;
mod transpose;

use std::io::Write;

use clap::{Args, Subcommand};

use self::{
    copy::{Copy, Gather, Reverse, Scatter},
    histogram::HistogramOf,
    made::{Iota, Random},
    merge::{Merge, Search},
    reduce::Reduce,
    scan::ScanOf,
    select::{Rle, Select, Unique},
    sort::Sort,
    statistics::{Count, StatisticsOf},
    topk::{Quantile, TopK},
    transpose::{Permute, Transpose},
};
use crate::{output::Stop, progress};

const EXAMPLES: &str = "\
Examples:
  oclprim run reduce samples.npy --op arg-max --device gpu --verify
  oclprim run reduce matrix.npy --axis 0 -o sums.npy
  oclprim run count flags.npy
  oclprim run statistics matrix.npy --axis -1 -o figures.npy
  oclprim run scan lengths.npy --exclusive --total -o offsets.npy
  oclprim run reduce samples.npy --segments offsets.npy
  oclprim run sort samples.npy --descending -o sorted.npy
  oclprim run select samples.npy --above 1.5 -o large.npy
  oclprim run unique labels.npy -o runs.npy
  oclprim run rle labels.npy -o values.npy --lengths lengths.npy
  oclprim run rle labels.npy -o runs.npz
  oclprim run topk scores.npy --k 100 --sorted -o best.npy
  oclprim run quantile samples.npy --q 0.25,0.5,0.75
  oclprim run transpose matrix.npy -o transposed.npy
  oclprim run permute volume.npy --axes 2,0,1 -o permuted.npy
  oclprim run histogram heights.npy --bins 20 --range 1.5 2.0 -o counts.npy
  oclprim run histogram energies.npy --edges edges.npy --weights charges.npy
  oclprim run copy samples.npy -o copy.npy
  oclprim run reverse samples.npy -o reversed.npy
  oclprim run gather samples.npy --indices order.npy -o picked.npy
  oclprim run scatter picked.npy --indices order.npy --len 5 -o samples.npy
  oclprim run merge sorted.npy --with more.npy -o all.npy
  oclprim run search sorted.npy --needles samples.npy -o indices.npy
  oclprim run random 1000000 --type f32 --seed 7 -o uniform.npy
  oclprim run iota 1000000 --type u32 -o indices.npy

Files are .npy files, as numpy.save writes them, in any byte order and in C or Fortran order. `-` is standard input, or \
with -o standard output. A result goes to a new file, which replaces the old one when it is complete; so -o may name \
the input. Booleans are the numbers 0 and 1. To sort values by keys, write `sort keys.npy --indices`, then `gather`.

If -o names a .npz file, the results go to an archive of named arrays, as numpy.savez writes it. The help of rle, sort, topk, \
histogram and statistics lists their arrays; a command with one result names it arr_0.

A command that takes more than a second shows the elapsed time on a terminal, and the bytes and the rate of a file that it \
writes. It shows nothing if standard error is redirected.";

/// Run a primitive on a .npy file.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    #[command(subcommand)]
    primitive: Primitive,
}

#[derive(Subcommand)]
enum Primitive {
    #[command(visible_alias = "sum")]
    Reduce(Reduce),
    Count(Count),
    Statistics(StatisticsOf),
    #[command(visible_alias = "cumsum")]
    Scan(ScanOf),
    Sort(Sort),
    Select(Select),
    Unique(Unique),
    #[command(visible_alias = "run-length-encode")]
    Rle(Rle),
    #[command(visible_alias = "top-k")]
    Topk(TopK),
    Quantile(Quantile),
    Transpose(Transpose),
    Permute(Permute),
    Histogram(HistogramOf),
    Copy(Copy),
    Reverse(Reverse),
    #[command(visible_alias = "take")]
    Gather(Gather),
    Scatter(Scatter),
    Merge(Merge),
    #[command(visible_alias = "searchsorted")]
    Search(Search),
    Random(Random),
    #[command(visible_alias = "arange")]
    Iota(Iota),
}

impl Run {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        progress::start();
        let result = self.primitive.run(&mut progress::Last(out));
        progress::end();
        result
    }
}

impl Primitive {
    fn run(self, out: &mut dyn Write) -> Result<(), Stop> {
        match self {
            Self::Reduce(reduce) => reduce.run(out),
            Self::Count(count) => count.run(out),
            Self::Statistics(statistics) => statistics.run(out),
            Self::Scan(scan) => scan.run(out),
            Self::Sort(sort) => sort.run(out),
            Self::Select(select) => select.run(out),
            Self::Unique(unique) => unique.run(out),
            Self::Rle(rle) => rle.run(out),
            Self::Topk(top) => top.run(out),
            Self::Quantile(quantile) => quantile.run(out),
            Self::Transpose(transpose) => transpose.run(out),
            Self::Permute(permute) => permute.run(out),
            Self::Histogram(histogram) => histogram.run(out),
            Self::Copy(copy) => copy.run(out),
            Self::Reverse(reverse) => reverse.run(out),
            Self::Gather(gather) => gather.run(out),
            Self::Scatter(scatter) => scatter.run(out),
            Self::Merge(merge) => merge.run(out),
            Self::Search(search) => search.run(out),
            Self::Random(random) => random.run(out),
            Self::Iota(iota) => iota.run(out),
        }
    }
}
