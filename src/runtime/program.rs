//! Description of a program: a kernel file with its includes, and its options. The OpenCL runtime builds it.

use std::{
    borrow::Cow,
    env,
    fmt::{self, Debug, Display, Write},
    fs,
    hash::{Hash, Hasher},
    path::Path,
};

use super::{Capabilities, DeviceClass, SubGroup, SubGroupBackend};
use crate::ElementType;

/// The files that kernel files include, with their texts. `build.rs` finds them in `cl`.
const INCLUDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/included.rs"));

/// The OpenCL C source of an operator or of an order.
///
/// Opaque: the name of a macro in `cl/lib/op.cl`, or the text of a user's [`Operator`](crate::op::Operator) or
/// [`Less`](crate::op::Less).
///
/// ```
/// use oclprim::op::{Max, Op};
///
/// assert_eq!(<Max as Op<f32>>::source(), <Max as Op<u8>>::source());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub(crate) Text);

/// A macro that selects an operator of `cl/lib/op.cl`, or text that precedes a kernel file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Text {
    Option(&'static str),
    Prelude(String),
}

/// A program to build.
///
/// The following example assembles one:
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
/// assert!(program.options.ends_with("-DT=float -DALIGNED -DWG=64"));
/// assert_eq!(program.source(), "#define N 4\n#line 1 \"idle.cl\"\n__kernel void idle(void) {}\n");
/// ```
#[derive(Clone, Eq)]
pub struct ProgramSpec {
    /// The kernel file's name, such as `reduce.cl`.
    pub name: &'static str,
    /// The file's text before its includes are expanded.
    pub text: &'static str,
    /// Build options for the driver; those of the device come first. They are one `String`: every launch assembles them
    /// again, and one string needs fewer allocations than a list.
    pub options: String,
    /// Text that precedes the file: a user-defined operator.
    pub prelude: String,
    /// An included file, and text in its place. By default no file is replaced.
    pub replaced: (&'static str, String),
}

// Every launch looks up its program, so comparisons are cheap: texts at the same address are equal without a
// comparison. The hash leaves out the text, since the name determines it.
impl PartialEq for ProgramSpec {
    fn eq(&self, other: &Self) -> bool {
        let same_text = std::ptr::eq(self.text, other.text) || self.text == other.text;
        self.name == other.name
            && self.options == other.options
            && self.prelude == other.prelude
            && self.replaced == other.replaced
            && same_text
    }
}

impl Hash for ProgramSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.options.hash(state);
        self.prelude.hash(state);
        self.replaced.hash(state);
    }
}

/// Shows all fields except the file's text, which `name` determines.
impl Debug for ProgramSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, options, prelude, replaced, .. } = self;
        let mut shown = f.debug_struct("ProgramSpec");
        shown
            .field("name", name)
            .field("options", options)
            .field("prelude", prelude)
            .field("replaced", replaced)
            .finish_non_exhaustive()
    }
}

impl ProgramSpec {
    /// A program of `text` for a device; primitives add their own options. Its kernels use no sub-groups, so that one build
    /// serves every sub-group back end.
    ///
    /// ```
    /// use oclprim::{Capabilities, ProgramSpec};
    ///
    /// let (_, caps) = &Capabilities::samples()[0];
    /// let program = ProgramSpec::new("idle.cl", "__kernel void idle(void) {}\n", caps);
    /// assert_eq!((program.name, program.prelude.as_str()), ("idle.cl", ""));
    /// ```
    pub fn new(name: &'static str, text: &'static str, caps: &Capabilities) -> Self {
        Self::with_sub_group(name, text, caps, &SubGroup::NONE)
    }

    /// A program with the device's sub-group back end.
    pub fn with_sub_groups(name: &'static str, text: &'static str, caps: &Capabilities) -> Self {
        Self::with_sub_group(name, text, caps, &caps.sub_group)
    }

    /// A program with another sub-group back end of the device.
    pub(crate) fn with_sub_group(
        name: &'static str,
        text: &'static str,
        caps: &Capabilities,
        sub_group: &SubGroup,
    ) -> Self {
        let mut program = Self::bare(name, text, &caps.c_standard).define("SG_BACKEND", sub_group.backend.code());
        // Hardware determines its own width; only sub-groups in local memory have a chosen width.
        if sub_group.backend == SubGroupBackend::Local {
            program = program.define("SG_SIZE", sub_group.width);
        }
        if caps.ptx {
            program = program.define("INLINE_PTX", 1).define("PTX_SM", caps.compute_capability);
        }
        program
            .flag("HAS_FP64", caps.fp64)
            .flag("HAS_FP16", caps.fp16)
            .flag("HAS_INT64_ATOMICS", caps.int64_atomics)
            .flag("DEVICE_CPU", caps.class == DeviceClass::Cpu)
            .flag("EXPLICIT_VECTORS", caps.explicit_vectors && caps.class == DeviceClass::Cpu)
    }

    /// A program that needs only a version of OpenCL C.
    pub(crate) fn bare(name: &'static str, text: &'static str, standard: &str) -> Self {
        // Most option texts fit into this capacity.
        let mut program = Self {
            name,
            text,
            options: String::with_capacity(640),
            prelude: String::new(),
            replaced: Default::default(),
        };
        program.push(&["-cl-std=", standard]);
        program
    }

    /// Adds options, such as `-DT=float`.
    ///
    /// ```
    /// use oclprim::{Capabilities, ProgramSpec};
    ///
    /// let (_, caps) = &Capabilities::samples()[0];
    /// let program = ProgramSpec::new("idle.cl", "__kernel void idle(void) {}\n", caps).with(["-DWG=64", "-DITEMS=4"]);
    /// assert!(program.options.ends_with("-DWG=64 -DITEMS=4"));
    /// ```
    pub fn with<S: AsRef<str>>(mut self, options: impl IntoIterator<Item = S>) -> Self {
        options.into_iter().for_each(|option| self.push(&[option.as_ref()]));
        self
    }

    /// Adds one option, the concatenation of `parts`.
    fn push(&mut self, parts: &[&str]) {
        if !self.options.is_empty() {
            self.options.push(' ');
        }
        parts.iter().for_each(|part| self.options.push_str(part));
    }

    fn put(&mut self, name: [&str; 2], value: impl Display) {
        self.push(&["-D", name[0], name[1], "="]);
        // Writing to a `String` cannot fail.
        let _ = write!(self.options, "{value}");
    }

    /// Adds `-D{name}={value}`.
    ///
    /// ```
    /// use oclprim::{Capabilities, ProgramSpec};
    ///
    /// let (_, caps) = &Capabilities::samples()[0];
    /// let program = ProgramSpec::new("idle.cl", "__kernel void idle(void) {}\n", caps).define("WG", 64);
    /// assert!(program.options.ends_with("-DWG=64"));
    /// ```
    pub fn define(mut self, name: &str, value: impl Display) -> Self {
        self.put([name, ""], value);
        self
    }

    /// Adds the macros from which `cl/lib/types.cl` defines a type. The prefix is `T` for memory, `A` for the
    /// accumulator, `OUT` for the result.
    pub fn element(mut self, prefix: &str, element: ElementType) -> Self {
        self.put([prefix, ""], element.storage());
        self.put([prefix, "_BYTES"], element.size());
        match element {
            ElementType::F16 => self.push(&["-D", prefix, "_F16"]),
            ElementType::Bf16 => self.push(&["-D", prefix, "_BF16"]),
            _ => {}
        }
        if element.is_float() {
            self.push(&["-D", prefix, "_FLOAT"]);
            return self;
        }
        let (bits, suffix) = (8 * element.size(), if element.size() == 8 { "UL" } else { "U" });
        self.push(&["-D", prefix, "_UNSIGNED=u", element.storage().trim_start_matches('u')]);
        // The most negative value has no literal, so it is given by its bits.
        let ones = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let (lowest, highest) = if element.is_signed() { (ones / 2 + 1, ones / 2) } else { (0, ones) };
        for (which, value) in [("_LOWEST", lowest), ("_HIGHEST", highest)] {
            self.put([prefix, which], value);
            self.options.push_str(suffix);
        }
        self
    }

    /// Adds an operator. A user's text may use the names of existing macros, except those of the device. The macros are
    /// undefined before the text and defined again after it.
    pub(crate) fn operator(self, source: &Code) -> Self {
        let text = match &source.0 {
            Text::Option(name) => return self.flag(name, true),
            Text::Prelude(text) => text,
        };
        let mut program = self.flag("OPERATOR", true);
        let own = |option: &str| {
            let definition = option.strip_prefix("-D")?;
            let (name, value) = definition.split_once('=').unwrap_or((definition, "1"));
            let reserved = ["HAS_", "SG_", "PTX_", "DEVICE_", "INLINE_", "EXPLICIT_"]
                .iter()
                .any(|prefix| name.starts_with(prefix));
            (!reserved).then(|| (name.to_owned(), value.to_owned()))
        };
        let macros: Vec<_> = program.options.split(' ').filter_map(own).collect();
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
    /// assert!(program.options.ends_with("-DALIGNED"));
    /// ```
    pub fn flag(mut self, name: &str, on: bool) -> Self {
        if on {
            self.push(&["-D", name]);
        }
        self
    }

    /// Disables optimisations on a checker: Oclgrind 21.10 does not support some of clang's optimised code for this
    /// file.
    #[must_use]
    pub(crate) fn unoptimised_on_a_checker(self, caps: &Capabilities) -> Self {
        if caps.checker { self.with(["-cl-opt-disable"]) } else { self }
    }

    /// Puts text before the file.
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

    /// Adds functions before the file, and puts a text in place of an included file.
    pub(crate) fn replace(mut self, included: &'static str, text: String, functions: &str) -> Self {
        self.prelude += functions;
        self.replaced = (included, text);
        self
    }

    /// The value of a macro.
    #[cfg(test)]
    pub(crate) fn defined(&self, name: &str) -> Option<&str> {
        let options = self.options.split(' ').filter_map(|option| option.strip_prefix("-D")?.strip_prefix(name));
        options.filter_map(|rest| rest.strip_prefix('=')).next()
    }

    /// The full text: each included file replaces its first include, and `#line` keeps the line numbers of the files.
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
        expand(self.name, self.text, &self.replaced, &mut seen, &mut out);
        out
    }
}

/// The text of a file as compiled into the crate. In debug builds, a file of that name in the folder `OCLPRIM_KERNELS` replaces
/// it. So kernels can be changed, or broken on purpose, without a build.
fn current(name: &str, text: &'static str) -> Cow<'static, str> {
    let folder = env::var_os("OCLPRIM_KERNELS").filter(|_| cfg!(debug_assertions));
    match folder.and_then(|folder| fs::read_to_string(Path::new(&folder).join(name)).ok()) {
        Some(text) => text.into(),
        None => text.into(),
    }
}

fn expand(name: &str, text: &'static str, replaced: &(&str, String), seen: &mut Vec<&'static str>, out: &mut String) {
    for (number, line) in current(name, text).lines().enumerate() {
        let include = line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"'));
        match include.and_then(|path| INCLUDED.iter().find(|(known, _)| *known == path)) {
            Some(&(path, included)) => {
                if !seen.contains(&path) {
                    seen.push(path);
                    out.push_str(&format!("#line 1 \"{path}\"\n"));
                    if path == replaced.0 {
                        out.push_str(&replaced.1);
                    } else {
                        expand(path, included, replaced, seen, out);
                    }
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

/// The name of the kernel whose definition starts in this line. Definitions of kernels start and end in the first column.
pub fn kernel_in(line: &str) -> Option<&str> {
    let is_kernel = line.starts_with("__kernel ") || line.starts_with("KERNEL ");
    let (_, signature) = line.split_once(" void ").filter(|_| is_kernel)?;
    Some(signature.split_once('(')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the geometry of a GPU, kernels have no loops for the compiler to vectorise.
    #[test]
    fn only_cpu_geometry_has_explicit_vectors() {
        for (name, caps) in Capabilities::samples() {
            for explicit_vectors in [false, true] {
                let cpu = explicit_vectors && caps.class == DeviceClass::Cpu;
                let program = ProgramSpec::new("idle.cl", "", &Capabilities { explicit_vectors, ..caps.clone() });
                assert_eq!(program.options.contains("-DEXPLICIT_VECTORS"), cpu, "{name}");
            }
        }
    }
}
