//! The crate's folders among those of the user.

use std::path::PathBuf;

use etcetera::{BaseStrategy, choose_base_strategy};

/// The crate's folder in the one that `choose` returns; `None` for a user without a home.
///
/// An empty or relative `HOME` counts as none: the folder would depend on where the process runs.
pub(crate) fn own(choose: fn(&dyn BaseStrategy) -> PathBuf) -> Option<PathBuf> {
    let folder = choose(&choose_base_strategy().ok()?);
    folder.is_absolute().then(|| folder.join("oclprim"))
}
