//! What the program says of itself: the help of every command, as a reader of 80 columns has it. A change of a word is
//! seen in review.

use std::path::Path;
use std::process::Command;

use crate::terminal::{shown, too_wide};

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

#[test]
fn help_fits_the_terminal() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let top = help_of(&[]);
    let mut commands = vec![Vec::new()];
    for command in commands_of(&top) {
        let below = commands_of(&help_of(&[&command]));
        commands.push(vec![command.clone()]);
        commands.extend(below.into_iter().map(|below| vec![command.clone(), below]));
    }
    assert!(commands.len() > 20, "{commands:?}");
    for columns in [80, 120] {
        for command in &commands {
            let mut asked: Vec<&str> = command.iter().map(String::as_str).collect();
            asked.push("--help");
            let help = shown(&asked, columns, here, false);
            assert_eq!(too_wide(&help, columns), Vec::<&str>::new(), "{asked:?}");
            if asked.len() == 1 {
                insta::assert_snapshot!(format!("help_of_{columns}_columns"), help);
            }
        }
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
