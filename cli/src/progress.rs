//! The progress of a command that takes more than a second, on standard error if that is a terminal.

use std::{
    io::{self, IsTerminal, Write},
    sync::Mutex,
    thread,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Commands that take less time show nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(200);

static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn bar() -> Option<ProgressBar> {
    BAR.lock().ok()?.clone()
}

/// Returns whether this process may write to its terminal. A job in the background would draw over the shell's prompt.
#[cfg(unix)]
fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stderr()).is_ok_and(|group| group == rustix::process::getpgrp())
}

#[cfg(not(unix))]
fn in_foreground() -> bool {
    true
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a constant template")
}

/// Shows a spinner with the elapsed time after [`PATIENCE`], until [`end`].
pub(crate) fn start() {
    if !io::stderr().is_terminal() || !in_foreground() {
        return;
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    bar.set_style(style("{spinner} {elapsed}"));
    if let Ok(mut shared) = BAR.lock() {
        *shared = Some(bar.clone());
    }
    // If the system grants no thread, nothing is shown.
    let _ = thread::Builder::new().spawn(move || {
        thread::sleep(PATIENCE);
        if bar.is_finished() {
            return;
        }
        bar.set_draw_target(ProgressDrawTarget::stderr());
        // indicatif's own ticker panics if the system grants no thread.
        while !bar.is_finished() {
            bar.tick();
            thread::sleep(TICK);
        }
    });
}

/// Removes the spinner or bar. Other text for a terminal must follow this call.
pub(crate) fn end() {
    if let Some(bar) = BAR.lock().ok().and_then(|mut shared| shared.take()) {
        bar.finish_and_clear();
    }
}

/// Prints a line on standard error. If that is closed, the line is lost.
pub(crate) fn notice(text: &str) {
    let print = || drop(writeln!(io::stderr(), "{text}"));
    match bar() {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// A file of `bytes` bytes that is written in pieces: the spinner becomes a bar with the rate.
pub(crate) fn writing<'a>(file: &'a mut dyn Write, bytes: u64) -> impl Write + 'a {
    let bar = bar().unwrap_or_else(ProgressBar::hidden);
    bar.set_style(style(
        "{spinner} {elapsed} writing {bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}",
    ));
    bar.set_length(bytes);
    bar.set_position(0);
    bar.reset_eta();
    bar.wrap_write(file)
}

/// A writer for a terminal, which first removes the spinner.
pub(crate) struct Last<'a>(pub(crate) &'a mut dyn Write);

impl Write for Last<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        end();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
