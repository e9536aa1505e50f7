//! Output of the subcommands: the error type, files, tables, and numbers with units.

use std::{
    env,
    fmt::Display,
    io::{self, IsTerminal, Write},
    path::Path,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use comfy_table::{
    Cell, CellAlignment, Color, ContentArrangement, Table,
    presets::{ASCII_MARKDOWN, NOTHING},
};
use oclprim::files::{self, Draft};

use crate::{
    npy::{Made, archive, mapped},
    progress,
};

/// The exit code and the message of a program that ends early.
#[derive(Debug)]
pub(crate) struct Stop {
    code: u8,
    message: Option<String>,
    /// A compiler's output, printed below the message.
    log: Option<String>,
}

impl Stop {
    /// An invalid argument or file.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, message: Some(message.into()), log: None }
    }

    /// A wrong result.
    pub(crate) fn mismatch(message: impl Into<String>) -> Self {
        Self { code: 1, message: Some(message.into()), log: None }
    }

    /// The message, for callers that continue.
    pub(crate) fn into_message(self) -> String {
        self.message.unwrap_or_default()
    }

    pub(crate) fn report(self) -> ExitCode {
        if let Some(message) = self.message {
            let mut text = format!("{} {message}\n", paint("error:", RED, &io::stderr()));
            if let Some(log) = self.log.filter(|log| !log.trim().is_empty()) {
                text.push_str(log.trim_end());
                text.push('\n');
            }
            // If standard error is closed, the message is lost.
            let _ = io::stderr().write_all(text.as_bytes());
        }
        ExitCode::from(self.code)
    }
}

impl From<oclprim::Error> for Stop {
    fn from(error: oclprim::Error) -> Self {
        Self { code: 2, message: Some(error.to_string()), log: error.build_log().map(Into::into) }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::usage(error.to_string())
    }
}

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Standard output. If the reader closes the pipe, as in `oclprim devices | head -1`, further text is dropped without
/// an error. So other outputs and the exit code do not depend on the reader.
pub(crate) struct Standard(pub(crate) io::Stdout);

impl Standard {
    /// Returns whether a reader has closed standard output, so that nobody reads what follows.
    pub(crate) fn is_closed() -> bool {
        CLOSED.load(Ordering::Relaxed)
    }

    fn without_reader<T>(result: io::Result<T>, lost: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                CLOSED.store(true, Ordering::Relaxed);
                Ok(lost)
            }
            result => result,
        }
    }
}

impl Write for Standard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::without_reader(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::without_reader(self.0.flush(), ())
    }
}

impl From<serde_json::Error> for Stop {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

/// Returns a function that puts the path before an error message.
pub(crate) fn of_file<E: Display>(path: &Path) -> impl Fn(E) -> Stop + '_ {
    move |error| Stop::usage(format!("{}: {error}", path.display()))
}

/// Standard output, as the path of a file.
pub(crate) const STDOUT: &str = "-";

/// Writes files, each from its parts; `-` goes to `out`. New files replace old ones only when all new ones are
/// complete.
pub(crate) fn save<P: AsRef<[u8]>>(files: &[(&Path, &[P])], out: &mut dyn Write) -> Result<(), Stop> {
    let mut drafts = Vec::new();
    for (path, parts) in files {
        // Bytes in a pipe cannot be taken back, so inputs are checked before each file.
        inputs_are_whole()?;
        if path.as_os_str() == STDOUT {
            // One large write to a file can take several times as long.
            let mut pieces = parts.iter().flat_map(|part| part.as_ref().chunks(1 << 20));
            whole(pieces.try_for_each(|piece| out.write_all(piece)))??;
            out.flush()?;
            continue;
        }
        let bytes = parts.iter().map(|part| part.as_ref().len() as u64).sum();
        let draft = Draft::new(path).and_then(|draft| draft.reserve(bytes).map(|()| draft)).map_err(of_file(path))?;
        let write = |file: &mut dyn Write| parts.iter().try_for_each(|part| file.write_all(part.as_ref()));
        drafts.push((of_file(path), filled(draft, path, bytes, write)?));
    }
    inputs_are_whole()?;
    drafts.into_iter().try_for_each(|(failed, draft)| draft.replace().map_err(failed))
}

/// [`save`] of a file that is written again and again during a long command. For a pipe, only checks that the pipe can
/// be written, because its reader would take the first document for the whole output. The caller writes the final
/// document with [`save`].
pub(crate) fn save_meanwhile(path: &Path, contents: impl FnOnce() -> Result<Vec<u8>, Stop>) -> Result<(), Stop> {
    if files::is_pipe(path) { is_writable(path) } else { save(&[(path, &[contents()?])], &mut io::sink()) }
}

/// Returns an error if the file at `path` cannot be written. Does not open a pipe: its reader would then see the end of
/// the file.
pub(crate) fn is_writable(path: &Path) -> Result<(), Stop> {
    let checked = if files::is_pipe(path) { files::may_write_pipe(path) } else { Draft::new(path).map(drop) };
    checked.map_err(of_file(path))
}

/// Writes an archive of arrays with these names. It replaces an old file only when it is complete.
pub(crate) fn save_archive(path: &Path, arrays: &[(&str, &Made<'_>)]) -> Result<(), Stop> {
    inputs_are_whole()?;
    let bytes = arrays.iter().map(|(_, array)| array.bytes() as u64).sum();
    let draft = Draft::new(path).map_err(of_file(path))?;
    let draft = filled(draft, path, bytes, |file| archive::write(file, arrays))?;
    inputs_are_whole()?;
    draft.replace().map_err(of_file(path))
}

/// Returns the draft once `write` has written its contents, about `bytes` bytes, and the disk has them.
fn filled(
    mut draft: Draft,
    path: &Path,
    bytes: u64,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Draft, Stop> {
    let written = write(&mut progress::writing(&mut draft, bytes));
    whole(written)?.and_then(|()| draft.sync()).map_err(of_file(path))?;
    Ok(draft)
}

/// Writes one array to a .npy file or to an archive, in which it has the name that `numpy.savez` gives it.
pub(crate) fn save_array(path: &Path, array: &Made<'_>, out: &mut dyn Write) -> Result<(), Stop> {
    if archive::is_archive(path) {
        save_archive(path, &[(archive::FIRST, array)])
    } else {
        save(&[(path, &array.parts())], out)
    }
}

/// The result of a write. A write of mapped memory fails if the input is cut short; then the error names the input.
fn whole(written: io::Result<()>) -> Result<io::Result<()>, Stop> {
    if written.is_err() {
        inputs_are_whole()?;
    }
    Ok(written)
}

/// Fails if a mapped input file has changed since it was opened.
pub(crate) fn inputs_are_whole() -> Result<(), Stop> {
    mapped::still_whole().map_err(|(path, why)| of_file(&path)(why))
}

/// Returns an error if two outputs are the same file. Each output has the name of its option; `-` is standard output.
pub(crate) fn distinct(outputs: &[(&str, &Path)]) -> Result<(), Stop> {
    let resolved = |path: &Path| if path.as_os_str() == STDOUT { Path::new("/dev/stdout") } else { path }.to_owned();
    for (i, (option, path)) in outputs.iter().enumerate() {
        for (earlier, other) in &outputs[..i] {
            if files::same(&resolved(path), &resolved(other)).map_err(of_file(path))? {
                return Err(Stop::usage(format!("{earlier} and {option} are the same file, {}", path.display())));
            }
        }
    }
    Ok(())
}

pub(crate) fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, Stop> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

pub(crate) const RED: u8 = 31;
pub(crate) const BOLD: u8 = 1;

/// Returns true for a terminal, unless `NO_COLOR` is set.
fn has_colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

pub(crate) fn paint(text: impl Display, style: u8, stream: &impl IsTerminal) -> String {
    if has_colours(stream) { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_string() }
}

/// The cell, in red if standard output shows colours.
pub(crate) fn alarm(cell: Cell) -> Cell {
    if has_colours(&io::stdout()) { cell.fg(Color::Red) } else { cell }
}

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Markdown,
}

/// An empty table; the columns in `numbers` are right-aligned.
pub(crate) fn table(style: Style, header: &[&str], numbers: std::ops::Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(if style == Style::Markdown { ASCII_MARKDOWN } else { NOTHING });
    // Files and pipes have no width. On a narrow terminal, wrapped lines read better than narrow columns.
    let fits = style == Style::Plain && table.width().is_some_and(|width| width >= 100);
    table.set_content_arrangement(if fits { ContentArrangement::Dynamic } else { ContentArrangement::Disabled });
    table.set_header(header);
    for index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A time with three significant digits and its unit.
pub(crate) fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "µs"),
        s => (s * 1e9, "ns"),
    };
    format!("{} {unit}", digits(value))
}

/// Three significant digits without an exponent; all digits of a larger integer part.
pub(crate) fn digits(value: f64) -> String {
    // This format rounds to three digits, so its exponent is that of the rounded number.
    let rounded = format!("{value:.2e}");
    let exponent: i32 = rounded.rsplit_once('e').map_or(0, |(_, exponent)| exponent.parse().unwrap_or(0));
    format!("{value:.*}", (2 - exponent).max(0) as usize)
}

pub(crate) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// Bytes in the binary unit that fits.
pub(crate) fn bytes(count: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| count >= 1 << shift) {
        Some((shift, unit)) if count.is_multiple_of(1 << shift) => format!("{} {unit}", count >> shift),
        Some((shift, unit)) => format!("{} {unit}", digits(count as f64 / f64::from(1 << shift))),
        None => format!("{count} B"),
    }
}

/// An element count. A power of two is written as `2^k` if it is at least 2^10.
pub(crate) fn count(n: usize) -> String {
    if n >= 1 << 10 && n.is_power_of_two() { format!("2^{}", n.trailing_zeros()) } else { n.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        for (value, text) in [
            (4367.4, "4367"),
            (442.0, "442"),
            (99.96, "100"),
            (12.34, "12.3"),
            (9.996, "10.0"),
            (1.0, "1.00"),
            (0.012, "0.0120"),
            (0.000_999_6, "0.00100"),
            (0.0, "0.00"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(digits(value), text);
        }
        assert_eq!([time(1.5), time(0.002), time(25e-9)], ["1.50 s", "2.00 ms", "25.0 ns"]);
    }
}
