//! Tuning files: any bytes give rows or an error of one line, and rows survive writing.

use std::fs;

use arbitrary::{Result, Unstructured};
use oclprim::{
    Device,
    tuning::{Primitive, Row, SizeClass, TuningFile},
};

/// Pieces of valid and invalid files.
const PIECES: [&str; 24] = [
    r#"{"format":1,"rows":["#,
    "]}",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"format\"",
    "\"rows\"",
    "1",
    "2",
    "-1",
    "18446744073709551616",
    "1e999",
    "null",
    "true",
    "\"chosen\"",
    "\"size\":\"small\"",
    "\"element_bytes\"",
    "\"\\ud800\"",
    "\u{0}",
    "\"primitive\":\"reduce\"",
    "\"max_groups\":64",
];

fn row(u: &mut Unstructured) -> Result<String> {
    let text = |u: &mut Unstructured| {
        Ok(["CPU", "", "reduce", "scan", "\u{1f600}", "a\nb"][u.int_in_range(0..=5)?].to_owned())
    };
    let mut row = Row::new(&Device::cpu().info(), Primitive::Reduce, u.arbitrary()?, SizeClass::Small, []);
    row.primitive = text(u)?;
    row.device = text(u)?;
    row.chosen.insert(text(u)?, u.arbitrary()?);
    Ok(serde_json::to_string(&row).expect("strings and numbers"))
}

fn text(u: &mut Unstructured) -> Result<Vec<u8>> {
    if u.ratio(1, 8)? {
        return Ok(u.bytes(u.len())?.to_vec());
    }
    let mut text = Vec::new();
    let whole = u.ratio(7, 8)?;
    if whole {
        text.extend_from_slice(PIECES[0].as_bytes());
    }
    for _ in 0..u.int_in_range(0..=6)? {
        match u.int_in_range(0..=3)? {
            0 => text.extend_from_slice(u.choose(&PIECES)?.as_bytes()),
            1 => text.extend(std::iter::repeat_n(*u.choose(b"[{ \"")?, u.int_in_range(0..=300)?)),
            _ => {
                if text.len() > PIECES[0].len() {
                    text.push(b',');
                }
                text.extend_from_slice(row(u)?.as_bytes());
            }
        }
    }
    if whole {
        text.extend_from_slice(PIECES[1].as_bytes());
    }
    // This damages one byte.
    if u.ratio(1, 4)? && !text.is_empty() {
        let at = u.int_in_range(0..=text.len() - 1)?;
        text[at] = u.arbitrary()?;
    }
    Ok(text)
}

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = text(&mut Unstructured::new(bytes)) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("tuning.json");
    fs::write(&path, &text).expect("writable");
    let mut file = match TuningFile::read(&path) {
        Ok(file) => file,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    };
    let rows = file.rows();
    file.write(&path).expect("writable");
    assert_eq!(TuningFile::read(&path).expect("was written").rows(), rows);
    let row = Row::new(&Device::cpu().info(), Primitive::Scan, 4, SizeClass::Large, [("max_groups", 64)]);
    file.put(&row);
    file.write(&path).expect("writable");
    let now = TuningFile::read(&path).expect("was written").rows();
    assert_eq!(now.iter().filter(|now| now.same_place(&row)).collect::<Vec<_>>(), [&row]);
}
