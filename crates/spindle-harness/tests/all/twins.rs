//! One word per thing: no two enums have the same words, within a crate or across crates, and no two crates declare a
//! struct with the same fields. A setting is declared once, by the crate that obeys it, and the others use that.

use std::collections::BTreeMap;

use crate::sources::{code, product};

/// Two of them, each as its crate and its name, and why they are no twins.
type Different = (&'static str, &'static str, &'static str);

/// How the kernel says what rows and keys are made of: bytes or columns.
const BY_COLUMNS: &str = "how rows lie, what a caller asks for, and what the dictionary stores";

/// Enums that have the same words and mean different things.
const NO_TWINS: [Different; 5] = [
    (
        "spindle-kernel IndexKey",
        "spindle-kernel StoredKey",
        BY_COLUMNS,
    ),
    (
        "spindle-kernel RowsOf",
        "spindle-kernel StoredKey",
        BY_COLUMNS,
    ),
    (
        "spindle-kernel RowsOf",
        "spindle-kernel IndexKey",
        BY_COLUMNS,
    ),
    (
        "spindle-system StoragePlace",
        "spindle-io StorageIdentity",
        "what is known of a place before it is opened, and while it is open",
    ),
    (
        "spindle-experiment DatabaseEngine",
        "spindle-run Files",
        "the database that is asked for, and what its files come to",
    ),
];

/// Why results have forms of their own for what other crates look at: they are read without those crates, and in years.
const RECORDED: &str = "what was looked at, and its form in results";

/// Structs that have the same fields and mean different things.
const NO_TWIN_STRUCTS: [Different; 8] = [
    (
        "spindle-result Throughput",
        "spindle-stats Estimate",
        "a form of results, in transactions per minute, and an interval of whatever was counted",
    ),
    (
        "spindle-system MachineLoad",
        "spindle-result Busy",
        RECORDED,
    ),
    (
        "spindle-system GroupLimits",
        "spindle-result ControlGroupLimits",
        RECORDED,
    ),
    (
        "spindle-system DataPath",
        "spindle-result DataPath",
        RECORDED,
    ),
    (
        "spindle-system Processor",
        "spindle-result Processor",
        RECORDED,
    ),
    (
        "spindle-system Virtualisation",
        "spindle-result Virtualisation",
        RECORDED,
    ),
    (
        "spindle-system MachineSettings",
        "spindle-result MachineSettings",
        RECORDED,
    ),
    (
        "spindle-experiment LeftOut",
        "spindle-result LeftOut",
        RECORDED,
    ),
];

/// What is declared somewhere: the content, and who has it, each as its crate and its name.
type Everywhere = BTreeMap<Vec<String>, Vec<String>>;

/// What a file declares of some kind: names, each with what it holds.
type Declared = Vec<(String, Vec<String>)>;

#[test]
fn no_enum_has_the_words_of_another() {
    assert_no_twins(&everywhere(enums, 1), &NO_TWINS, |_, _| true);
}

#[test]
fn no_struct_has_the_fields_of_another_crates() {
    let twins = |one: &str, other: &str| crate_of(one) != crate_of(other);
    assert_no_twins(&everywhere(structs, 2), &NO_TWIN_STRUCTS, twins);
}

fn crate_of(name: &str) -> &str {
    name.split(' ').next().unwrap_or(name)
}

/// All declarations of a kind that hold at least so much.
fn everywhere(declared: fn(&str) -> Declared, least: usize) -> Everywhere {
    let mut by_content = Everywhere::new();
    for source in product() {
        let crate_name = source.path.split('/').nth(1).expect("a crate").to_owned();
        for (name, content) in declared(&code(&source.text)) {
            if content.len() >= least {
                let alike = by_content.entry(content).or_default();
                alike.push(format!("{crate_name} {name}"));
            }
        }
    }
    by_content
}

/// Demands that no two are alike which may not be, and that each excuse is still needed.
fn assert_no_twins(
    everywhere: &Everywhere,
    different: &[Different],
    may_not: impl Fn(&str, &str) -> bool,
) {
    let mut excused = Vec::new();
    let mut twins = Vec::new();
    for (content, alike) in everywhere {
        for (number, name) in alike.iter().enumerate() {
            let others = alike[..number].iter();
            for other in others.filter(|other| may_not(name, other)) {
                let is_excuse = |(a, b, _): &&Different| {
                    [(*a, *b), (*b, *a)].contains(&(name.as_str(), other.as_str()))
                };
                match different.iter().find(is_excuse) {
                    Some(excuse) => excused.push(excuse),
                    None => twins.push(format!("{name}, {other} ({})", content.join(", "))),
                }
            }
        }
    }
    assert!(
        twins.is_empty(),
        "declared twice; keep the one of the crate that obeys it:\n{}",
        twins.join("\n")
    );
    let needless: Vec<_> = different
        .iter()
        .filter(|excuse| !excused.contains(excuse))
        .collect();
    assert!(needless.is_empty(), "are no longer alike: {needless:?}");
}

/// The declarations behind a keyword, each with what stands behind its first brace. `is_head` knows what may stand
/// before that.
fn declarations<'a>(
    code: &'a str,
    keyword: &str,
    is_head: fn(&str) -> bool,
) -> Vec<(String, &'a str)> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(keyword) {
        let is_word = rest[..at].ends_with(|last: char| last.is_alphanumeric() || last == '_');
        rest = &rest[at + keyword.len()..];
        let declared = rest.split_once('{');
        let Some((head, body)) = declared.filter(|(head, _)| !is_word && is_head(head)) else {
            continue;
        };
        let name: String = head
            .chars()
            .take_while(|each| each.is_alphanumeric())
            .collect();
        if !name.is_empty() {
            found.push((name, body));
        }
    }
    found
}

/// The enums of a file, each with its words in order of the alphabet.
fn enums(code: &str) -> Declared {
    let found = declarations(code, "enum ", |_| true).into_iter();
    let sorted = found.map(|(name, body)| {
        let mut words = variants(body);
        words.sort();
        (name, words)
    });
    sorted.collect()
}

/// The structs of a file that have named fields, each with these and their types in order of the alphabet.
fn structs(code: &str) -> Declared {
    let found = declarations(code, "struct ", |head| !head.contains([';', '('])).into_iter();
    let sorted = found.map(|(name, body)| {
        let mut fields = fields(body);
        fields.sort();
        (name, fields)
    });
    sorted.collect()
}

/// The names that stand at the beginning of a variant, up to the brace that closes the enum.
fn variants(body: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut depth = 0;
    let mut is_at_begin = true;
    let mut characters = body.chars().peekable();
    while let Some(each) = characters.next() {
        match each {
            '{' | '(' | '[' => depth += 1,
            '}' if depth == 0 => break,
            '}' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => is_at_begin = true,
            first if depth == 0 && is_at_begin && first.is_ascii_uppercase() => {
                let mut word = first.to_string();
                while let Some(next) = characters.next_if(|next| next.is_alphanumeric()) {
                    word.push(next);
                }
                words.push(word);
                is_at_begin = false;
            }
            _ => {}
        }
    }
    words
}

/// The fields with their types, up to the brace that closes the struct; without attributes, and whoever sees them.
fn fields(body: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let (mut field, mut depth, mut before) = (String::new(), 0, ' ');
    for each in body.chars() {
        match each {
            '}' if depth == 0 => break,
            '{' | '(' | '[' | '<' => depth += 1,
            '>' if before == '-' => {}
            '}' | ')' | ']' | '>' => depth -= 1,
            _ => {}
        }
        before = each;
        match each {
            ',' if depth == 0 => fields.push(std::mem::take(&mut field)),
            // The end of an attribute.
            ']' if depth == 0 && field.trim_start().starts_with('#') => field.clear(),
            _ => field.push(each),
        }
    }
    fields.push(field);
    let bare = fields.iter().filter_map(|field| {
        let words = field.split_whitespace().collect::<Vec<_>>().join(" ");
        let (name, of) = words.split_once(": ")?;
        Some(format!("{}: {of}", name.rsplit(' ').next()?))
    });
    bare.collect()
}

/// Declarations of two crates that are alike.
fn alike() -> Everywhere {
    let named = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let words = |word: &str| vec![word.to_owned()];
    [
        (words("D"), named(["a B", "a C"])),
        (words("E"), named(["a F", "b F"])),
    ]
    .into()
}

#[test]
#[should_panic(expected = "a C, a B (D)")]
fn twins_of_one_word_and_of_one_crate_are_found() {
    assert_no_twins(&alike(), &[("b F", "a F", "")], |_, _| true);
}

#[test]
#[should_panic(expected = "a H")]
fn an_excuse_that_nobody_needs_is_found() {
    let excuses = [("a B", "a C", ""), ("a F", "b F", ""), ("a G", "a H", "")];
    assert_no_twins(&alike(), &excuses, |_, _| true);
}

#[test]
fn the_words_of_an_enum_are_found() {
    let code = "pub enum A { #[x(Y)] B(Vec<C>), D { e: F }, G, }\nwords! { enum H { I = \"\", J = \"\", } }\n";
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    assert_eq!(
        enums(code),
        [
            ("A".to_owned(), words(&["B", "D", "G"])),
            ("H".to_owned(), words(&["I", "J"]))
        ]
    );
}

#[test]
fn the_fields_of_a_struct_are_found() {
    let code = "struct A(u8);\nstruct B;\npub struct C<'a> {\n    #[serde(default)]\n    pub e: Map<u8, F>,\n    \
                pub(crate) d: fn(u8) -> G,\n}\nstruct H { i: J }\n";
    let fields = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect();
    assert_eq!(
        structs(code),
        [
            ("C".to_owned(), fields(&["d: fn(u8) -> G", "e: Map<u8, F>"])),
            ("H".to_owned(), fields(&["i: J"]))
        ]
    );
}
