//! The files of the workspace, and Rust code without its comments, texts and tests.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file, named by its path from the root of the workspace.
pub struct Source {
    pub path: String,
    pub text: String,
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace is there")
}

/// All files below these directories (or these files) whose names end so, in order.
pub fn sources(places: &[&str], extension: &str) -> Vec<Source> {
    let root = root();
    let mut paths = Vec::new();
    for place in places {
        collect(&root.join(place), &mut paths);
    }
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    let read = |path: PathBuf| Source {
        text: fs::read_to_string(&path).expect("a text"),
        path: path
            .strip_prefix(&root)
            .expect("below the root")
            .to_string_lossy()
            .into_owned(),
    };
    paths.into_iter().map(read).collect()
}

fn collect(place: &Path, paths: &mut Vec<PathBuf>) {
    if place.is_file() {
        paths.push(place.to_owned());
        return;
    }
    for entry in fs::read_dir(place).expect("a directory of the workspace") {
        let path = entry.expect("an entry").path();
        let is_ours = path
            .file_name()
            .is_none_or(|name| name != "target" && name != "corpus");
        if is_ours {
            collect(&path, paths);
        }
    }
}

/// The code of the crates' `src`, without modules that only tests see.
pub fn product() -> Vec<Source> {
    let mut found = sources(&["crates"], "rs");
    found.retain(|source| {
        source.path.contains("/src/") && !source.path.starts_with("crates/spindle-harness")
    });
    let for_tests: Vec<String> = found.iter().flat_map(modules_for_tests).collect();
    found.retain(|source| {
        !for_tests
            .iter()
            .any(|module| source.path.starts_with(module.as_str()))
    });
    found
}

/// How the paths begin of modules that a file declares for tests only.
fn modules_for_tests(source: &Source) -> Vec<String> {
    let (directory, file) = source.path.rsplit_once('/').expect("a file in a folder");
    let within = match file.strip_suffix(".rs") {
        Some("mod" | "lib" | "main") | None => directory.to_owned(),
        Some(name) => format!("{directory}/{name}"),
    };
    let lines = source.text.lines().zip(source.text.lines().skip(1));
    let declared = lines.filter(|(attribute, _)| is_for_tests(attribute));
    let names = declared.filter_map(|(_, line)| {
        line.trim_start()
            .trim_start_matches("pub(crate) ")
            .strip_prefix("mod ")?
            .strip_suffix(';')
    });
    names
        .flat_map(|name| [format!("{within}/{name}.rs"), format!("{within}/{name}/")])
        .collect()
}

/// True for the attribute of what only tests see, with whatever feature.
fn is_for_tests(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test, ")
}

/// The code with comments and the insides of texts left out, and without what stands behind `#[cfg(test)]`. Line breaks
/// stay.
pub fn code(text: &str) -> String {
    without_tests(&without_texts(text))
}

/// The code with comments and the insides of texts left out. Line breaks stay.
pub fn without_texts(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            out.push_str("\"\"");
            quoted(rest)
        } else if let Some(length) = raw_text(rest).filter(|_| !ends_in_word(&out)) {
            out.push_str("\"\"");
            length
        } else if let Some(length) = character(rest) {
            out.push_str("' '");
            length
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        out.extend(rest[..length].chars().filter(|&each| each == '\n'));
        rest = &rest[length..];
    }
    out
}

fn ends_in_word(out: &str) -> bool {
    out.ends_with(|last: char| last.is_alphanumeric() || last == '_')
}

/// The length of a text in quotation marks.
fn quoted(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, each) in rest.char_indices().skip(1) {
        match each {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a raw text, `r"..."` or `r#"..."#`.
fn raw_text(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(1 + hashes + 1 + length)
}

/// The length of a character in quotation marks; `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('\'')?;
    if let Some(escaped) = body.strip_prefix('\\') {
        return escaped[1..].find('\'').map(|at| 1 + 1 + 1 + at + 1);
    }
    let first = body.chars().next()?.len_utf8();
    body[first..].starts_with('\'').then_some(first + 2)
}

fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        if !is_for_tests(line) {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        out.push('\n');
        skip_item(line, &mut lines, &mut out);
    }
    out
}

/// Leaves out the item behind an attribute: to its semicolon, or to the brace that closes it.
fn skip_item<'a>(attribute: &str, lines: &mut impl Iterator<Item = &'a str>, out: &mut String) {
    let indent = &attribute[..attribute.len() - attribute.trim_start().len()];
    let closing = format!("{indent}}}");
    let mut is_open = false;
    for line in lines {
        out.push('\n');
        is_open |= line.ends_with('{');
        if line == closing || (!is_open && line.ends_with([';', ',', '}'])) {
            return;
        }
    }
}

#[test]
fn code_has_neither_comments_nor_texts_nor_tests() {
    let text = "fn a() { b(\"x // {\", 'c', r#\"\"q\"#) } // d\n#[cfg(test)]\nmod tests {\n    fn e() {}\n}\nfn f<'a>() {}\n\
        #[cfg(all(test, feature = \"g\"))]\nmod h {\n    fn i() {}\n}\n";
    assert_eq!(
        code(text),
        "fn a() { b(\"\", ' ', \"\") } \n\n\n\n\nfn f<'a>() {}\n\n\n\n\n"
    );
}
