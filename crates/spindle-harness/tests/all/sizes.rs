//! Lengths of lines, functions and files.

use crate::sources::{code, product, sources, without_texts};

const LINE_MAX: usize = 120;
const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;

/// Where code and documents are.
const CODE: [&str; 2] = ["crates", "fuzz"];
const DOCUMENTS: [&str; 3] = ["README.md", "CONTRIBUTING.md", "docs"];

/// Fails when anything was found that breaks a rule.
fn none(found: &[String], what: &str) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn lines_of_code_are_narrow() {
    let mut wide = Vec::new();
    for source in sources(&CODE, "rs") {
        // A text that people read is not broken for the sake of the code around it, nor is an address.
        let code = without_texts(&source.text);
        for (number, (line, code)) in source.text.lines().zip(code.lines()).enumerate() {
            let comment = line.trim_start().strip_prefix("//");
            let is_free = comment.is_some_and(|text| text.contains("http") || text.contains("| "));
            let is_wide = line.chars().count() > LINE_MAX;
            if is_wide && !is_free && (comment.is_some() || code.chars().count() > LINE_MAX) {
                wide.push(format!("{}:{}", source.path, number + 1));
            }
        }
    }
    none(&wide, &format!("lines of more than {LINE_MAX} characters"));
}

#[test]
fn lines_of_documents_are_narrow() {
    let mut wide = Vec::new();
    for source in sources(&DOCUMENTS, "md") {
        let mut is_verbatim = false;
        for (number, line) in source.text.lines().enumerate() {
            is_verbatim ^= line.trim_start().starts_with("```");
            let is_free = is_verbatim || line.trim_start().starts_with('|') || line.contains("](");
            if line.chars().count() > LINE_MAX && !is_free {
                wide.push(format!("{}:{}", source.path, number + 1));
            }
        }
    }
    none(&wide, &format!("lines of more than {LINE_MAX} characters"));
}

#[test]
fn files_can_be_read_in_one_sitting() {
    let long: Vec<String> = sources(&CODE, "rs")
        .iter()
        .filter(|source| source.text.lines().count() > FILE_LINES_MAX)
        .map(|source| source.path.clone())
        .collect();
    none(&long, &format!("files of more than {FILE_LINES_MAX} lines"));
}

#[test]
fn functions_fit_a_screen() {
    let mut long = Vec::new();
    for source in product() {
        for (name, lines) in functions(&code(&source.text)) {
            if lines > FUNCTION_LINES_MAX {
                long.push(format!("{} {name}: {lines}", source.path));
            }
        }
    }
    none(
        &long,
        &format!("functions of more than {FUNCTION_LINES_MAX} lines"),
    );
}

/// The functions of formatted code, and how many lines each has from its first to its closing brace.
fn functions(code: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let Some(name) = name_of_function(line) else {
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let closing = format!("{}}}", " ".repeat(indent));
        let body = lines[first..].iter().take_while(|each| **each != closing);
        let is_declaration = lines[first..]
            .iter()
            .take_while(|each| !each.ends_with('{'))
            .any(|each| each.ends_with(';') || each.ends_with('}'));
        if !is_declaration {
            found.push((name, body.count() + 1));
        }
    }
    found
}

fn name_of_function(line: &str) -> Option<String> {
    let words = line.trim_start();
    let (before, after) = words.split_once("fn ")?;
    let is_start = before.split_whitespace().all(|word| {
        word.starts_with("pub")
            || ["async", "const", "unsafe", "crate)", "extern", "super)"].contains(&word)
    });
    let end = after.find(|each: char| !each.is_alphanumeric() && each != '_')?;
    (is_start && end > 0).then(|| after[..end].to_owned())
}

#[test]
fn functions_are_measured_from_end_to_end() {
    let code = "fn short() {}\ntrait T {\n    fn declared(\n        &self,\n    );\n}\npub(crate) async fn long(\n    a: u8,\n) {\n    b();\n}\n";
    assert_eq!(functions(code), [("long".to_owned(), 5)]);
}
