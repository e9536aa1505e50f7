//! The crate's folders within the user's folders.

use std::path::PathBuf;

use etcetera::{BaseStrategy, choose_base_strategy};

/// The crate's folder within the folder that `choose` returns; `None` for a user without a home folder.
///
/// An empty or relative `HOME` counts as no home folder, since the folder would depend on the process's working directory.
pub(crate) fn own(choose: fn(&dyn BaseStrategy) -> PathBuf) -> Option<PathBuf> {
    let folder = choose(&choose_base_strategy().ok()?);
    folder.is_absolute().then(|| folder.join("oclprim"))
}
