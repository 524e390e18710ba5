//! The access path: how blocks travel between the database and storage, as `io` and `redo_io` say it.
//!
//! Two words, caching and method; or Oracle's one word for both, `filesystemio_options`.

pub use spindle_io::real::{AccessPath, AccessPathSettings, Caching, Method};
use spindle_text::section::Section;

use super::reader::Reader;

/// The keys of an `io` table.
pub(super) const IO_KEYS: [&str; 4] = ["caching", "method", "filesystemio_options", "slaves"];

/// Reads an `io` table; whatever it leaves out is as in `default`.
pub(super) fn read_access_path(reader: &mut Reader<'_>, default: AccessPath) -> AccessPath {
    let AccessPathSettings {
        caching,
        method,
        slaves,
        filesystemio_options: oracle,
    } = Section::read(reader);
    reader.finish();

    if oracle.is_some() && (reader.has("caching") || reader.has("method")) {
        let refused = reader.conflict(
            &["filesystemio_options"],
            "the access path is given twice",
            "it says both caching and method",
            "keep filesystemio_options, or caching and method",
        );
        // Which of them counts is not known.
        reader.note(refused.doubting(reader.keys(["caching", "method"])));
    }
    let mut path = match oracle {
        Some(word) => word.access_path(),
        None => {
            let method = method.unwrap_or(default.method);
            let caching_default = if method.identifies_files() {
                Caching::Direct
            } else {
                default.caching
            };
            AccessPath::new(caching.unwrap_or(caching_default), method)
        }
    };
    if path.method.identifies_files() && path.caching == Caching::Buffered {
        reader.refuse(
            &["caching"],
            "ODM is never buffered",
            "\"direct\" is what method = \"odm\" implies",
            "leave caching out, or compare with caching = \"buffered\", method = \"async\"",
        );
        path.caching = Caching::Direct;
    }
    if path.method.has_slaves() {
        path.slaves = slaves.unwrap_or(AccessPath::SLAVES_DEFAULT);
    } else if reader.has("slaves") {
        let refused = reader.conflict(
            &["slaves"],
            format!("I/O slaves have nothing to do with {path} I/O"),
            "allowed only with method = \"slaves\"",
            "leave slaves out, or set method = \"slaves\"",
        );
        let given = reader.keys(["method", "filesystemio_options"]);
        reader.note(refused.given(given));
    }
    path
}
