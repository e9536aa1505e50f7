//! What to build: a kernel file, expanded, and its options. Pure; the OpenCL runtime builds it.

use std::{
    borrow::Cow,
    env, fs,
    hash::{Hash, Hasher},
    path::Path,
};

use super::{Capabilities, SubGroup};
use crate::op::{Source, Text};

/// `cl/lib`, by the names under which kernel files include it.
const LIBRARY: &[(&str, &str)] = &[
    ("lib/types.cl", include_str!("../../cl/lib/types.cl")),
    ("lib/op.cl", include_str!("../../cl/lib/op.cl")),
    ("lib/subgroup.cl", include_str!("../../cl/lib/subgroup.cl")),
    ("lib/workgroup.cl", include_str!("../../cl/lib/workgroup.cl")),
    ("lib/spine.cl", include_str!("../../cl/lib/spine.cl")),
    ("lib/ended.cl", include_str!("../../cl/lib/ended.cl")),
    ("lib/aside.cl", include_str!("../../cl/lib/aside.cl")),
    ("lib/ticket.cl", include_str!("../../cl/lib/ticket.cl")),
    ("lib/lookback.cl", include_str!("../../cl/lib/lookback.cl")),
    ("lib/lines.cl", include_str!("../../cl/lib/lines.cl")),
    ("lib/moments.cl", include_str!("../../cl/lib/moments.cl")),
    ("lib/bins.cl", include_str!("../../cl/lib/bins.cl")),
    ("lib/turn.cl", include_str!("../../cl/lib/turn.cl")),
    ("lib/words.cl", include_str!("../../cl/lib/words.cl")),
    ("lib/first.cl", include_str!("../../cl/lib/first.cl")),
    ("lib/merge.cl", include_str!("../../cl/lib/merge.cl")),
    ("lib/keys.cl", include_str!("../../cl/lib/keys.cl")),
    ("lib/segments.cl", include_str!("../../cl/lib/segments.cl")),
    ("lib/equal.cl", include_str!("../../cl/lib/equal.cl")),
    ("lib/ranks.cl", include_str!("../../cl/lib/ranks.cl")),
    ("lib/heads.cl", include_str!("../../cl/lib/heads.cl")),
    ("lib/outputs.cl", include_str!("../../cl/lib/outputs.cl")),
];

/// A program as the driver gets it.
///
/// With the feature `checks` every program of the crate is listed:
///
/// ```
/// # #[cfg(feature = "checks")]
/// # {
/// use oclprim::{Capabilities, check::registry};
///
/// let (_, caps) = &Capabilities::samples()[0];
/// for program in registry().iter().flat_map(|spec| spec.programs(caps)).take(3) {
///     println!("{}: {}, {} bytes of source", program.name, program.option_line(), program.source().len());
/// }
/// # }
/// ```
///
/// How one is put together:
///
/// ```
/// use oclprim::{Capabilities, ProgramSpec};
///
/// let (_, caps) = &Capabilities::samples()[0];
/// let program = ProgramSpec::new("idle.cl", "__kernel void idle(void) {}\n", caps)
///     .define("T", "float")
///     .flag("ALIGNED", true)
///     .with(["-DWG=64"])
///     .prelude("#define N 4\n".into());
/// assert!(program.option_line().ends_with("-DT=float -DALIGNED -DWG=64"));
/// assert_eq!(program.source(), "#define N 4\n#line 1 \"idle.cl\"\n__kernel void idle(void) {}\n");
/// ```
#[derive(Clone, Debug, Eq)]
pub struct ProgramSpec {
    /// The kernel file's name, such as `reduce.cl`.
    pub name: &'static str,
    /// The file's text, its includes not yet expanded.
    pub text: &'static str,
    /// Build options, those of the device first.
    pub options: Vec<String>,
    /// What goes in front of the file: the text of a user's operator.
    pub prelude: String,
}

// Every launch looks its program up, so a text is not compared with itself, and left out of the hash, since the name stands for it.
impl PartialEq for ProgramSpec {
    fn eq(&self, other: &Self) -> bool {
        let same_text = std::ptr::eq(self.text, other.text) || self.text == other.text;
        self.name == other.name && self.options == other.options && self.prelude == other.prelude && same_text
    }
}

impl Hash for ProgramSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.options.hash(state);
        self.prelude.hash(state);
    }
}

impl ProgramSpec {
    /// A program of `text` for a device; primitives add their own options. Its kernels know no sub-groups, so that one build
    /// serves every back end of these.
    ///
    /// ```
    /// use oclprim::{Capabilities, ProgramSpec};
    ///
    /// let (_, caps) = &Capabilities::samples()[0];
    /// let program = ProgramSpec::new("idle.cl", "__kernel void idle(void) {}\n", caps);
    /// assert_eq!((program.name, program.prelude.as_str()), ("idle.cl", ""));
    /// ```
    pub fn new(name: &'static str, text: &'static str, caps: &Capabilities) -> Self {
        Self { name, text, options: caps.options(&SubGroup::NONE), prelude: String::new() }
    }

    /// The same with the back end of sub-groups that the device has.
    pub(crate) fn with_sub_groups(name: &'static str, text: &'static str, caps: &Capabilities) -> Self {
        Self { name, text, options: caps.options(&caps.sub_group), prelude: String::new() }
    }

    /// Adds options, such as `-DT=float`.
    ///
    /// ```
    /// use oclprim::{Capabilities, ProgramSpec};
    ///
    /// let (_, caps) = &Capabilities::samples()[0];
    /// let program = ProgramSpec::new("idle.cl", "__kernel void idle(void) {}\n", caps).with(["-DWG=64", "-DITEMS=4"]);
    /// assert!(program.option_line().ends_with("-DWG=64 -DITEMS=4"));
    /// ```
    pub fn with<S: Into<String>>(mut self, options: impl IntoIterator<Item = S>) -> Self {
        self.options.extend(options.into_iter().map(Into::into));
        self
    }

    /// Adds `-D{name}={value}`.
    ///
    /// ```
    /// use oclprim::{Capabilities, ProgramSpec};
    ///
    /// let (_, caps) = &Capabilities::samples()[0];
    /// let program = ProgramSpec::new("idle.cl", "__kernel void idle(void) {}\n", caps).define("WG", 64);
    /// assert!(program.option_line().ends_with("-DWG=64"));
    /// ```
    pub fn define(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.options.push(format!("-D{name}={value}"));
        self
    }

    /// Adds an operator. A user's text may use the names of macros that are there, but for those that the device brings:
    /// they are defined again behind it.
    pub(crate) fn operator(self, source: &Source) -> Self {
        let text = match &source.0 {
            Text::Option(option) => return self.with([option]),
            Text::Prelude(text) => text,
        };
        let mut program = self.flag("OPERATOR", true);
        let own = |option: &str| {
            let definition = option.strip_prefix("-D")?;
            let (name, value) = definition.split_once('=').unwrap_or((definition, "1"));
            let reserved = ["HAS_", "SG_", "PTX_", "DEVICE_", "INLINE_"].iter().any(|prefix| name.starts_with(prefix));
            (!reserved).then(|| (name.to_owned(), value.to_owned()))
        };
        let macros: Vec<_> = program.options.iter().filter_map(|option| own(option)).collect();
        let before: String = macros.iter().map(|(name, _)| format!("#undef {name}\n")).collect();
        let behind: String = macros.iter().map(|(name, value)| format!("#define {name} {value}\n")).collect();
        program.prelude = format!("{before}{text}{behind}");
        program
    }

    /// Adds `-D{name}` if `on`.
    ///
    /// ```
    /// use oclprim::{Capabilities, ProgramSpec};
    ///
    /// let (_, caps) = &Capabilities::samples()[0];
    /// let program = ProgramSpec::new("idle.cl", "__kernel void idle(void) {}\n", caps).flag("ALIGNED", true).flag("FAR", false);
    /// assert!(program.option_line().ends_with("-DALIGNED"));
    /// ```
    pub fn flag(mut self, name: &str, on: bool) -> Self {
        if on {
            self.options.push(format!("-D{name}"));
        }
        self
    }

    /// As it is written: Oclgrind 21.10 does not know some of what clang makes of this file.
    #[must_use]
    pub(crate) fn unoptimised_on_a_checker(self, caps: &Capabilities) -> Self {
        if caps.checker { self.with(["-cl-opt-disable"]) } else { self }
    }

    /// Puts text in front of the file.
    ///
    /// ```
    /// use oclprim::{Capabilities, ProgramSpec};
    ///
    /// let (_, caps) = &Capabilities::samples()[0];
    /// let program = ProgramSpec::new("idle.cl", "__kernel void idle(void) {}\n", caps).prelude("#define N 4\n".into());
    /// assert!(program.source().starts_with("#define N 4\n"));
    /// ```
    pub fn prelude(mut self, text: String) -> Self {
        self.prelude = text;
        self
    }

    /// The options as the driver takes them.
    ///
    /// ```
    /// use oclprim::{Capabilities, ProgramSpec};
    ///
    /// let (_, caps) = &Capabilities::samples()[0];
    /// let program = ProgramSpec::new("idle.cl", "__kernel void idle(void) {}\n", caps).with(["-DWG=64"]);
    /// assert_eq!(program.option_line(), program.options.join(" "));
    /// ```
    pub fn option_line(&self) -> String {
        self.options.join(" ")
    }

    /// The text with each file of `cl/lib` in place of its first include, and lines numbered as in the files.
    ///
    /// ```
    /// use oclprim::{Capabilities, ProgramSpec};
    ///
    /// let (_, caps) = &Capabilities::samples()[0];
    /// let program = ProgramSpec::new("words.cl", "#include \"lib/words.cl\"\n", caps);
    /// assert!(program.source().contains("#line 1 \"lib/words.cl\""));
    /// ```
    pub fn source(&self) -> String {
        let mut seen = Vec::new();
        let mut out = format!("{}#line 1 \"{}\"\n", self.prelude, self.name);
        expand(self.name, self.text, &mut seen, &mut out);
        out
    }
}

/// A file's text as it was compiled in; in debug builds that of the same file in the folder `OCLPRIM_KERNELS`, so that
/// kernels are tried, and broken on purpose, without a build.
fn current(name: &str, text: &'static str) -> Cow<'static, str> {
    let folder = env::var_os("OCLPRIM_KERNELS").filter(|_| cfg!(debug_assertions));
    match folder.and_then(|folder| fs::read_to_string(Path::new(&folder).join(name)).ok()) {
        Some(text) => text.into(),
        None => text.into(),
    }
}

fn expand(name: &str, text: &'static str, seen: &mut Vec<&'static str>, out: &mut String) {
    for (number, line) in current(name, text).lines().enumerate() {
        let include = line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"'));
        match include.and_then(|path| LIBRARY.iter().find(|(known, _)| *known == path)) {
            Some(&(path, library)) => {
                if !seen.contains(&path) {
                    seen.push(path);
                    out.push_str(&format!("#line 1 \"{path}\"\n"));
                    expand(path, library, seen, out);
                }
                out.push_str(&format!("#line {} \"{name}\"\n", number + 2));
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
}
