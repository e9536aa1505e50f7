//! The log of tests that did not run on this machine.

use std::{collections::HashSet, sync::Mutex};

/// Logs, once per reason, that a test or a part of it did not run.
pub(crate) fn skip(test: &str, reason: &str) {
    static SEEN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut seen = SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if seen.get_or_insert_default().insert(format!("{test}: {reason}")) {
        eprintln!("skipped {test}: {reason}");
        oclprim::internals::testing::log_skip(test, reason);
    }
}
