//! Reading an experiment file: a regular file of some size at most, in UTF-8.

use std::io::ErrorKind;
use std::path::Path;

use super::error::ExperimentError;
use spindle_text::files;

/// No experiment is larger, bytes.
const BYTES_MAX: u64 = 4 << 20;

/// The text of the experiment file.
///
/// # Errors
/// It cannot be read, is no regular file, is too large, or is not UTF-8.
pub(super) fn read(path: &Path) -> Result<String, ExperimentError> {
    let bytes = files::read_named(path, BYTES_MAX).map_err(|error| {
        let help = match error.kind() {
            ErrorKind::NotFound => "name an existing file; `spindle examples` lists files to copy, `spindle init` writes one",
            _ => "an experiment is a text file of at most 4 MiB; `spindle examples` lists files to copy",
        };
        let path = path.display();
        ExperimentError::new(format!("cannot read the experiment file {path}: {error}")).help(help)
    })?;
    String::from_utf8(bytes)
        .map_err(|error| not_utf8(path, error.as_bytes(), error.utf8_error().valid_up_to()))
}

fn not_utf8(path: &Path, bytes: &[u8], at: usize) -> ExperimentError {
    // All before the place is UTF-8 and stays as it is.
    let text = String::from_utf8_lossy(bytes);
    let end = at + char::REPLACEMENT_CHARACTER.len_utf8();
    let encoding = match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16",
        _ => "LATIN1",
    };
    let path = path.display();
    ExperimentError::new("the experiment file is not UTF-8 text")
        .mark(
            0,
            &path.to_string(),
            &text,
            at..end,
            format!("the byte 0x{:02X} does not belong here", bytes[at]),
        )
        .help(format!(
            "save it as UTF-8, for example: iconv -f {encoding} -t UTF-8 {path} > new.toml"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_utf8_is_shown_with_line_and_column() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("e.toml");
        for (bytes, place) in [
            (&b"name = \"x\"\nseed = 1 # \xe4\n"[..], (2, 12)),
            (&b"\xff\xfen\0a\0"[..], (1, 1)),
            (&b"caf\xc3\xa9 \xff"[..], (1, 6)),
            (&b"\xe2\x82"[..], (1, 1)),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = read(&path).unwrap_err();
            let (_, line, column) = error.place().unwrap();
            assert_eq!((line, column), place);
        }
    }

    #[test]
    fn what_is_too_large_or_no_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let large = directory.path().join("large");
        std::fs::File::create(&large)
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        for (path, word) in [
            (large.as_path(), "more than 4 MiB"),
            (Path::new("/dev/zero"), "a device"),
            (directory.path(), "a directory"),
        ] {
            let error = read(path).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
