//! The program on a pseudo-terminal of so many columns: what a person there reads.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// What the program shows with these arguments, without colours: on standard output, and on standard error if that is
/// asked for, too.
pub fn shown(arguments: &[&str], columns: u16, directory: &Path, is_error_shown: bool) -> String {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let screen = openpt(flags).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().write(true).open(name).unwrap();
    let size = Winsize {
        ws_row: 50,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal, size).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    command.args(arguments).current_dir(directory);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    if is_error_shown {
        command.stderr(terminal.try_clone().unwrap());
    }
    let mut child = command.stdout(terminal).spawn().unwrap();
    // Or the terminal would never end.
    drop(command);
    let mut shown = Vec::new();
    // A terminal that nobody writes to any more ends with an error.
    let _ = File::from(screen).read_to_end(&mut shown);
    child.wait().unwrap();
    let shown = String::from_utf8(shown)
        .expect("it is text")
        .replace('\r', "");
    without_colours(&shown)
}

/// A text without the codes of colours.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let unstyled = parts.map(|part| part.split_once('m').map_or("", |(_, text)| text));
    first + &unstyled.collect::<String>()
}

/// Lines that are wider than a terminal, and could be broken: those of one long word, such as a path, cannot.
pub fn too_wide(text: &str, columns: u16) -> Vec<&str> {
    let is_wide = |line: &&str| line.chars().count() > usize::from(columns);
    let has_several = |line: &&str| line.split_whitespace().count() > 1;
    text.lines().filter(is_wide).filter(has_several).collect()
}
