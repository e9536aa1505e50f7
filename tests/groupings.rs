//! The table of `source::Grouped` agrees with the code on the inputs that each primitive takes. `Device` stays small.

use std::{marker::PhantomData, path::Path};

use oclprim::{
    NdView, Order,
    histogram::Samples,
    merge::Mergeable,
    op::NonZero,
    reduce::{Extremal, Reducible, axis::moments::MeasurableGroups, count::Countable, statistics::Measurable},
    scan::Scannable,
    select::{Selectable, runs::Distinct},
    sort::{Argsortable, Sortable},
    source::{Along, ByKey, Counted, Flagged, Indexed, Segments, Weighted, With},
    topk::{Divisible, Rankable},
};

type Whole = &'static [f32];
type First = Counted<'static, Whole>;
type InSegments = Segments<Whole, &'static [u32]>;
type InRuns = ByKey<Whole, &'static [u32]>;
type WithFlags = Flagged<Whole, &'static [u8]>;
type InLines = Along<NdView<'static, f32>, usize>;
type Values = &'static [u64];

/// True if a type implements a trait: then the inherent constant hides that of the trait `Otherwise`.
macro_rules! takes {
    ($input:ty, $($bound:tt)+) => {{
        struct Asked<T>(PhantomData<T>);
        #[allow(dead_code, reason = "unused where the type implements the trait")]
        trait Otherwise {
            const ANSWER: bool = false;
        }
        impl<T> Otherwise for Asked<T> {}
        #[allow(dead_code, reason = "unused where the type does not implement the trait")]
        impl<T: $($bound)+> Asked<T> {
            const ANSWER: bool = true;
        }
        <Asked<$input>>::ANSWER
    }};
}

macro_rules! row {
    ($name:literal, [$($bound:tt)+], $whole:ty, $first:ty, $segments:ty, $runs:ty, $flags:ty, $lines:ty) => {{
        let cells = [
            takes!($whole, $($bound)+),
            takes!($first, $($bound)+),
            takes!($segments, $($bound)+),
            takes!($runs, $($bound)+),
            takes!($flags, $($bound)+),
            takes!($lines, $($bound)+),
        ];
        let cells = cells.map(|taken| if taken { "yes" } else { "-" });
        format!("| {} | {} |\n", $name, cells.join(" | "))
    }};
    ($name:literal, $($bound:tt)+) => {
        row!($name, [$($bound)+], Whole, First, InSegments, InRuns, WithFlags, InLines)
    };
}

#[test]
fn the_table_of_the_documentation_is_that_of_the_code() {
    let rows = [
        row!("`reduce`", Reducible),
        row!("`count`, `any`, `all`", Countable),
        row!("`arg_min`, `arg_max`, `min_max`", Extremal),
        row!("`mean`, `variance`, `statistics`", Measurable),
        row!("`moments`", MeasurableGroups),
        row!("`scan`", Scannable),
        row!("`sort`", Sortable<Order>),
        row!(
            "`sort` with values",
            [Sortable<Order>],
            With<Whole, Values>,
            With<First, Values>,
            With<InSegments, Values>,
            With<InRuns, Values>,
            With<WithFlags, Values>,
            With<InLines, NdView<'static, u64>>
        ),
        row!("`argsort`", Argsortable<Order>),
        row!("`top_k`", Rankable),
        row!(
            "`top_k` with indices",
            [Rankable],
            Indexed<Whole, u32>,
            Indexed<First, u32>,
            Indexed<InSegments, u32>,
            Indexed<InRuns, u32>,
            Indexed<WithFlags, u32>,
            Indexed<InLines, u32>
        ),
        row!("`quantile`, `median`", Divisible),
        row!("`merge`", Mergeable),
        row!("`select`, `partition`", Selectable<NonZero>),
        row!("`unique`", Distinct),
        row!("`histogram`", Samples),
        row!(
            "`histogram` with weights",
            [Samples],
            Weighted<Whole, Values>,
            Weighted<First, Values>,
            Weighted<InSegments, Values>,
            Weighted<InRuns, Values>,
            Weighted<WithFlags, Values>,
            Weighted<InLines, NdView<'static, u64>>
        ),
    ];
    let head =
        "| | whole | `take(&count)` | `segments` | `by_key` | `flagged` | `along` |\n|---|---|---|---|---|---|---|\n";
    let table = format!("{head}{}", rows.concat());
    let page = include_str!("../src/source/groupings.md");
    assert!(page.contains(&table), "src/source/groupings.md needs this table:\n{table}");
}

/// The public methods of `Device`, in all files of the library.
fn methods_of_device(folder: &Path, found: &mut Vec<String>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            methods_of_device(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut inside = false;
            for line in text.lines() {
                inside = line.starts_with("impl Device {") || inside && line != "}";
                let name = ["    pub fn ", "    pub const fn "].iter().find_map(|start| line.strip_prefix(start));
                found.extend(name.filter(|_| inside).map(Into::into));
            }
        }
    }
}

#[test]
fn device_has_at_most_a_hundred_public_methods() {
    let mut found = Vec::new();
    methods_of_device(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.iter().any(|line| line.starts_with("reduce_into<")), "{found:?}");
    assert!(found.len() <= 100, "{} methods: {found:#?}", found.len());
}
