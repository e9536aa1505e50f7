//! The file of `oclprim check --report`, which the owner of a device sends in. It names no path, user or host.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs, io,
    path::Path,
    time::SystemTime,
};

use oclprim::Capabilities;
use serde::{Deserialize, Serialize};

use crate::{
    check_results::{Counts, FailedCase, Form, Report},
    devices::Description,
    output::{Stop, json, save, save_meanwhile},
};

/// The version of the file format. `scripts/checked` reads only this one.
const FORMAT: u32 = 1;

/// All results of one run of `oclprim check`.
#[derive(Serialize)]
pub(crate) struct Submission<'a> {
    format: u32,
    version: &'static str,
    commit: Option<&'static str>,
    /// The time of writing, in UTC.
    time: String,
    os: Os,
    #[serde(flatten)]
    run: Run,
    #[serde(flatten)]
    total: Counts,
    devices: Vec<Submitted<'a>>,
}

/// The options of a run, and its duration.
#[derive(Serialize)]
pub(crate) struct Run {
    pub(crate) level: &'static str,
    /// The options that select checks; empty if none was given. The level and `--device` are not among them.
    pub(crate) limits: BTreeMap<&'static str, String>,
    pub(crate) seconds: f64,
    /// True if the run was completed.
    pub(crate) complete: bool,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Os {
    family: String,
    architecture: String,
    /// The distribution; `None` if no file of the system names it.
    pub(crate) name: Option<String>,
    kernel: Option<String>,
}

#[derive(Serialize)]
struct Submitted<'a> {
    #[serde(flatten)]
    description: Description,
    /// The device's own geometry, then others.
    geometries: Vec<Geometry<'a>>,
}

#[derive(Serialize)]
struct Geometry<'a> {
    device: String,
    own: bool,
    level: &'a str,
    #[serde(flatten)]
    counts: &'a Counts,
    seconds: f64,
    skips: BTreeMap<String, usize>,
    failures: Vec<FailedCase>,
    forms: &'a [Form],
}

/// The current time in UTC, such as `2026-01-31T12:00:00Z`.
pub(crate) fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

impl Os {
    pub(crate) fn new() -> Self {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Self {
            family: env::consts::OS.into(),
            architecture: env::consts::ARCH.into(),
            name: name.map(|name| name.trim_matches('"').to_owned()),
            kernel: kernel.map(|kernel| kernel.trim().to_owned()),
        }
    }

    /// The system and the architecture in a line.
    pub(crate) fn line(&self) -> String {
        format!("{}, {}", self.name.as_deref().unwrap_or(&self.family), self.architecture)
    }
}

impl<'a> Submission<'a> {
    pub(crate) fn new(run: Run, descriptions: &[Description], reports: &'a [Report]) -> Self {
        let names = Names::of_this_machine();
        let mut total = Counts::default();
        reports.iter().for_each(|report| total.add_all(&report.counts));
        let device = |(index, description): (usize, &Description)| {
            let own = reports.iter().filter(|report| report.described == index);
            let geometries = own.map(|report| Geometry::new(report, &names)).collect();
            Submitted { description: names.without(description), geometries }
        };
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("OCLPRIM_COMMIT"),
            time: now(),
            os: Os::new(),
            run,
            total,
            devices: descriptions.iter().enumerate().map(device).collect(),
        }
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), Stop> {
        if self.run.complete {
            save(&[(path, &[json(self)?])], &mut io::sink())
        } else {
            save_meanwhile(path, || json(self))
        }
    }
}

impl<'a> Geometry<'a> {
    fn new(report: &'a Report, names: &Names) -> Self {
        let mut skips = BTreeMap::new();
        for (reason, count) in &report.skips {
            *skips.entry(names.clean(reason)).or_default() += count;
        }
        let failure = |case: &FailedCase| case.cleaned(|text| names.clean(text));
        Self {
            device: names.clean_paths(&report.device),
            own: report.own,
            level: &report.level,
            counts: &report.counts,
            seconds: report.seconds,
            skips,
            failures: report.failures.iter().map(failure).collect(),
            forms: &report.forms,
        }
    }
}

/// Texts that identify this machine or its user.
struct Names {
    words: BTreeSet<String>,
    /// The home folders; their paths may contain blanks.
    homes: Vec<String>,
}

impl Names {
    fn of_this_machine() -> Self {
        let variables = ["USER", "LOGNAME", "USERNAME", "HOSTNAME", "COMPUTERNAME", "USERDOMAIN"];
        let mut words: Vec<String> = variables.into_iter().filter_map(|name| env::var(name).ok()).collect();
        let folder = |name| env::var(name).ok().filter(|home| home.len() > 1);
        let homes: Vec<String> = ["HOME", "USERPROFILE"].into_iter().filter_map(folder).collect();
        words.extend(homes.iter().filter_map(|home| home.rsplit(['/', '\\']).next()).map(str::to_owned));
        for file in ["/proc/sys/kernel/hostname", "/etc/hostname"] {
            words.extend(fs::read_to_string(file).ok());
        }
        Self::new(words, homes)
    }

    fn new(words: impl IntoIterator<Item = String>, homes: Vec<String>) -> Self {
        let mut all = BTreeSet::new();
        for word in words {
            let word = word.trim().to_lowercase();
            // The host's name without its domain is also a name, and so is each part of a user's full name.
            all.extend(word.split_once('.').map(|(host, _)| host.to_owned()));
            all.extend(word.split(' ').filter(|part| part.len() > 2).map(str::to_owned));
            all.insert(word);
        }
        all.remove("");
        Self { words: all, homes }
    }

    /// The description, without the paths and names that drivers and compilers wrote.
    fn without(&self, description: &Description) -> Description {
        let Description { mut info, capabilities, error } = description.clone();
        for text in [&mut info.name, &mut info.platform, &mut info.vendor, &mut info.driver, &mut info.version] {
            *text = self.clean_paths(text);
        }
        let clean = |mut caps: Capabilities| {
            caps.notes.iter_mut().for_each(|note| *note = self.clean(note));
            caps.refused.iter_mut().for_each(|refused| refused.reason = self.clean(&refused.reason));
            caps
        };
        Description { info, capabilities: capabilities.map(clean), error: error.map(|error| self.clean(&error)) }
    }

    /// Text of a driver or a compiler, without paths and names.
    fn clean(&self, text: &str) -> String {
        self.clean_names(&self.clean_paths(text))
    }

    /// Replaces each absolute path, and each path in a home folder, by `PATH`.
    fn clean_paths(&self, text: &str) -> String {
        let text = self.homes.iter().fold(text.to_owned(), |text, home| {
            ['/', '\\'].iter().fold(text, |text, end| text.replace(&format!("{home}{end}"), &format!("~{end}")))
        });
        let mut out = String::with_capacity(text.len());
        let (mut before, mut option) = (' ', false);
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            // `a/b` is a division or a relative path; `-I/a` is an option with a path.
            option = first == '-' && before.is_whitespace() || option && !first.is_whitespace();
            let begins = option && first == '/' || !before.is_alphanumeric() && !"_./\\".contains(before);
            let length = if begins { path_length(rest) } else { 0 };
            if length > 0 {
                out.push_str("PATH");
                before = 'H';
                rest = &rest[length..];
            } else {
                out.push(first);
                before = first;
                rest = &rest[first.len_utf8()..];
            }
        }
        out
    }

    /// Replaces whole words that name the user or the host by `NAME`.
    fn clean_names(&self, text: &str) -> String {
        let inner = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        let lower = text.to_lowercase();
        // Case folding changes the length of a few letters; the search then respects case.
        let haystack = if lower.len() == text.len() { lower.as_str() } else { text };
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        'text: while at < text.len() {
            let free = !text[..at].chars().next_back().is_some_and(inner);
            // The longest match comes first: a host name with its domain before the host name alone.
            let mut hits: Vec<_> = self
                .words
                .iter()
                .filter(|word| free && haystack.as_bytes()[at..].starts_with(word.as_bytes()))
                .collect();
            hits.sort_by_key(|word| std::cmp::Reverse(word.len()));
            for word in hits {
                let end = at + word.len();
                if text.is_char_boundary(end) && !text[end..].chars().next().is_some_and(inner) {
                    out.push_str("NAME");
                    at = end;
                    continue 'text;
                }
            }
            let first = text[at..].chars().next().expect("not at the end");
            out.push(first);
            at += first.len_utf8();
        }
        out
    }
}

/// The length in bytes of the path at the start of a text; 0 if there is none. A lone `/` is a division.
fn path_length(text: &str) -> usize {
    let drive = |text: &str| {
        let bytes = text.as_bytes();
        bytes.len() > 3 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && matches!(bytes[2], b'\\' | b'/')
    };
    let starts = ["file://", "~/", "~\\", "\\\\"].iter().any(|start| text.starts_with(start)) || drive(text);
    let named = |c: char| c.is_alphanumeric() || "_.-+@".contains(c);
    let absolute = text.strip_prefix('/').is_some_and(|rest| rest.starts_with(named));
    if !starts && !absolute {
        return 0;
    }
    let skip = if drive(text) { 2 } else { text.find("://").map_or(0, |at| if at < 5 { at + 3 } else { 0 }) };
    // Line numbers of compilers stay: they follow a colon.
    let ends = |c: char| c.is_whitespace() || "\"'`<>()[]{},;:|*?".contains(c);
    text[skip..].find(ends).map_or(text.len(), |at| skip + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let words = ["Ada".into(), "builder.example.org\n".into(), String::new()];
        Names::new(words, vec!["C:\\Users\\Ada L".into()])
    }

    #[test]
    fn paths_are_replaced() {
        for (text, clean) in [
            ("/home/ada/.cache/pocl/x.cl:3:7: error", "PATH:3:7: error"),
            ("in \"C:\\Users\\Ada\\x.cl\", line 2", "in \"PATH\", line 2"),
            ("C:/Users/Ada/x.cl(3)", "PATH(3)"),
            ("file:///tmp/a.cl", "PATH"),
            ("-I/opt/rocm/include -I ../x", "-IPATH -I ../x"),
            ("C:\\Users\\Ada L\\x.cl: 2", "PATH: 2"),
            ("~/x and \\\\server\\share", "PATH and PATH"),
            ("Portable Computing Language / cpu-znver4", "Portable Computing Language / cpu-znver4"),
            ("3 / 4, 3/4, a/b and n/2", "3 / 4, 3/4, a/b and n/2"),
            ("é /ü/ñ: x", "é PATH: x"),
        ] {
            assert_eq!(names().clean_paths(text), clean, "{text}");
        }
    }

    #[test]
    fn names_of_users_and_hosts_are_replaced() {
        for (text, clean) in [
            ("ADA on builder.example.org, builder", "NAME on NAME, NAME"),
            ("adapter, canada, rebuilder, ada_x", "adapter, canada, rebuilder, ada_x"),
            ("é ada", "é NAME"),
            ("İ Ada ada", "İ Ada NAME"),
        ] {
            assert_eq!(names().clean_names(text), clean, "{text}");
        }
        assert_eq!(Names::new([], Vec::new()).clean("ada"), "ada");
    }
}
