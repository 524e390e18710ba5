//! What the program says of itself: the help of every command, as a reader of 80 columns has it. A change of a word is
//! seen in review.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The help that these arguments ask for.
fn help_of(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .arg("--help")
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("help is text")
}

/// The commands that a help lists; `help` itself is clap's.
fn commands_of(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let is_named = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names = lines
        .filter(is_named)
        .filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// The same as a terminal of so many columns shows it.
fn help_on_terminal(arguments: &[&str], columns: u16) -> String {
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
    command.args(arguments).arg("--help").stdin(Stdio::null());
    let mut child = command.stdout(terminal).spawn().unwrap();
    // Or the terminal would never end.
    drop(command);
    let mut shown = Vec::new();
    // A terminal that nobody writes to any more ends with an error.
    let _ = File::from(screen).read_to_end(&mut shown);
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8(shown).expect("help is text");
    let mut parts = shown.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let unstyled = parts.map(|part| part.split_once('m').map_or("", |(_, text)| text));
    first + &unstyled.collect::<String>()
}

#[test]
fn help_fits_the_terminal() {
    for columns in [80, 120] {
        let help = help_on_terminal(&["calibrate"], columns);
        let widest = help.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns.into()), "{widest:?}: {help}");
        assert!(widest > Some(usize::from(columns) - 10), "{help}");
    }
    let whole = help_of(&["calibrate"]);
    assert!(whole.lines().any(|line| line.chars().count() > 200));
}

#[test]
fn help_of_every_command() {
    let top = help_of(&[]);
    let commands = commands_of(&top);
    assert!(commands.len() > 10, "{commands:?}");
    let mut all = format!("$ spindle --help\n{top}");
    for command in &commands {
        let help = help_of(&[command]);
        all += &format!("\n$ spindle {command} --help\n{help}");
        for below in commands_of(&help) {
            let help = help_of(&[command, &below]);
            all += &format!("\n$ spindle {command} {below} --help\n{help}");
        }
    }
    insta::assert_snapshot!(all);
}
