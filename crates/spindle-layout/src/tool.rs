//! Runs the system's own tools (`mkfs.xfs`, `losetup`, `lvcreate`, ...): directly, without a shell, in the C locale,
//! apart from the terminal's signals. What a tool said is kept for the person who has to put it right. Steps and the
//! guard call this; nothing else in the crate starts processes.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spindle_system::{DeviceMapper, SystemTree};

use crate::file_system;
use crate::moment;

/// Where administrators' tools are, also when an ordinary user's `PATH` leaves it out.
const ADMINISTRATORS_DIRECTORIES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The last of a tool's words that are kept.
const SAID_LENGTH_MAX: usize = 2000;

/// Why a tool did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It is not installed.
    #[error("{program} is not installed{}", package(program))]
    Missing {
        /// Its name.
        program: String,
    },
    /// It could not be started, or spoken with.
    #[error("cannot run {program}: {source}")]
    NotRun {
        /// Its name.
        program: String,
        /// The system's answer.
        source: io::Error,
    },
    /// It failed.
    #[error("{program} ended with code {code} and said: {said}")]
    Failed {
        /// Its name.
        program: String,
        /// Its exit code; -1 when it was killed.
        code: i32,
        /// Its own words.
        said: String,
    },
    /// Something that was to be looked at cannot be read.
    #[error("cannot read {what}: {source}")]
    Unreadable {
        /// What.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl ToolError {
    pub(crate) fn failed(program: &str, code: i32, said: String) -> ToolError {
        ToolError::Failed {
            program: program.to_owned(),
            code,
            said,
        }
    }

    pub(crate) fn unreadable(what: &'static str, source: io::Error) -> ToolError {
        ToolError::Unreadable { what, source }
    }
}

/// The package that brings a tool, by its name in Debian, Fedora and SUSE alike as far as they agree.
pub fn package_of(program: &str) -> Option<&'static str> {
    if let Some(type_name) = program.strip_prefix("mkfs.") {
        return file_system::kind(type_name).map(|kind| kind.package);
    }
    Some(match program {
        "lvm" => "lvm2",
        "dmsetup" => "dmsetup",
        "sfdisk" => "fdisk (Debian) or util-linux",
        "losetup" | "mount" => "mount (Debian) or util-linux",
        "blkid" | "wipefs" | "blkdiscard" | "blockdev" | "partx" => "util-linux",
        _ => return None,
    })
}

fn package(program: &str) -> String {
    package_of(program).map_or_else(String::new, |package| format!("; it comes with {package}"))
}

/// Finds a tool by its name.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let listed = std::env::split_paths(&path);
    let all = listed.chain(ADMINISTRATORS_DIRECTORIES.iter().map(PathBuf::from));
    all.map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

/// What a tool answered.
#[derive(Debug)]
pub(crate) struct ToolAnswer {
    /// Its exit code; -1 when it was killed.
    pub code: i32,
    /// Its standard output.
    pub printed: Vec<u8>,
    /// Its standard error.
    pub said: Vec<u8>,
}

/// The means to run tools. Each holds the lock of the run's ledger, so that a run is not taken for dead while a tool
/// that it started is still at work.
#[derive(Debug, Default)]
pub struct Tools {
    lock: Option<File>,
}

impl Tools {
    /// Tools that hold no lock: for looking only.
    pub fn new() -> Tools {
        Tools::default()
    }

    /// Tools that share the lock of this open file.
    pub(crate) fn holding(lock: File) -> Tools {
        Tools { lock: Some(lock) }
    }

    /// Has device-mapper loaded if it is not. Whether that worked is seen when it is used.
    pub(crate) fn load_device_mapper(&self, tree: &SystemTree) {
        if tree.device_mapper() == DeviceMapper::Loadable {
            let _ = self.run("modprobe", &["dm-mod"]);
        }
    }

    /// Runs a tool that must succeed; returns what it printed.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String, ToolError> {
        let stdin = match &self.lock {
            // LVM closes every other descriptor that it was not meant to have.
            Some(lock) => Stdio::from(lock.try_clone().map_err(|error| not_run(program, error))?),
            None => Stdio::null(),
        };
        succeeded(program, self.answer(program, arguments, stdin, b"")?)
    }

    /// Runs a tool that must succeed, with `input` as its standard input.
    pub(crate) fn run_with(
        &self,
        program: &str,
        arguments: &[&str],
        input: &str,
    ) -> Result<String, ToolError> {
        let answer = self.answer(program, arguments, Stdio::piped(), input.as_bytes())?;
        succeeded(program, answer)
    }

    /// Runs a tool that must succeed, with an open device as its standard input.
    pub(crate) fn run_on(
        &self,
        program: &str,
        arguments: &[&str],
        device: &File,
    ) -> Result<String, ToolError> {
        succeeded(program, self.ask(program, arguments, device)?)
    }

    /// Asks a tool about an open device, which is its standard input.
    pub(crate) fn ask(
        &self,
        program: &str,
        arguments: &[&str],
        device: &File,
    ) -> Result<ToolAnswer, ToolError> {
        let device = device
            .try_clone()
            .map_err(|error| not_run(program, error))?;
        self.answer(program, arguments, Stdio::from(device), b"")
    }

    fn answer(
        &self,
        program: &str,
        arguments: &[&str],
        stdin: Stdio,
        input: &[u8],
    ) -> Result<ToolAnswer, ToolError> {
        let file = find(program).ok_or_else(|| ToolError::Missing {
            program: program.to_owned(),
        })?;
        moment::reached(program);
        let run = || -> io::Result<ToolAnswer> {
            // A descriptor that is not closed when the tool starts, so that it holds the lock.
            let inherited = self.lock.as_ref().map(rustix::io::dup).transpose()?;
            let mut command = Command::new(file);
            if program.starts_with("mkfs.") {
                // Where no name without a directory is a device or a file.
                command.current_dir(SystemTree::default().without_user_files());
            }
            let mut child = command
                .args(arguments)
                .env("LC_ALL", "C")
                .env("LVM_SUPPRESS_FD_WARNINGS", "1")
                .stdin(stdin)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                // Ctrl-C is for Spindle, which then undoes its steps in order.
                .process_group(0)
                .spawn()?;
            drop(inherited);
            if let Some(mut pipe) = child.stdin.take() {
                // A tool that does not read it to the end says itself why.
                let _ = pipe.write_all(input);
            }
            let output = child.wait_with_output()?;
            Ok(ToolAnswer {
                code: output.status.code().unwrap_or(-1),
                printed: output.stdout,
                said: output.stderr,
            })
        };
        run().map_err(|error| not_run(program, error))
    }
}

fn not_run(program: &str, source: io::Error) -> ToolError {
    ToolError::NotRun {
        program: program.to_owned(),
        source,
    }
}

fn succeeded(program: &str, answer: ToolAnswer) -> Result<String, ToolError> {
    if answer.code == 0 {
        return Ok(String::from_utf8_lossy(&answer.printed).trim().to_owned());
    }
    let words = [answer.said, answer.printed].concat();
    Err(ToolError::failed(program, answer.code, last_words(&words)))
}

/// The end of a tool's words, on one line.
fn last_words(words: &[u8]) -> String {
    let text = String::from_utf8_lossy(words);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let line = lines.join("; ");
    let start = line.chars().count().saturating_sub(SAID_LENGTH_MAX);
    let end: String = line.chars().skip(start).collect();
    if end.is_empty() {
        "nothing".to_owned()
    } else {
        end
    }
}

/// A path as an argument. Paths of devices and files that tools are given are texts by then.
pub(crate) fn argument(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_failed_tool_are_kept() {
        let error = Tools::new()
            .run("mount", &["-t", "nonsense", "/dev/null", "/nowhere"])
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("mount ended with code ") && text.contains("/nowhere"),
            "{text}"
        );
    }

    #[test]
    fn a_missing_tool_names_its_package() {
        let error = ToolError::Missing {
            program: "mkfs.xfs".to_owned(),
        };
        assert_eq!(
            error.to_string(),
            "mkfs.xfs is not installed; it comes with xfsprogs"
        );
        assert!(matches!(
            Tools::new().run("no-such-tool-here", &[]),
            Err(ToolError::Missing { .. })
        ));
    }

    #[test]
    fn input_reaches_a_tool_and_its_answer_returns() {
        assert_eq!(
            Tools::new().run_with("cat", &[], "label: gpt\n").unwrap(),
            "label: gpt"
        );
    }
}
