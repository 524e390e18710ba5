//! The exit codes of the program. Commands end with them.

use std::process::ExitCode;

/// The exit codes, as docs/runs-and-trials.md tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// All was done.
    Done,
    /// Something failed. Of `compare`: a regression.
    Failed,
    /// It was asked for what cannot be, and nothing was made.
    Refused,
    /// There is no answer, or less than is needed.
    NoAnswer,
    /// There is an answer, and it may have missed something.
    Unsure,
    /// A person ended it.
    Interrupted,
}

impl From<Code> for u8 {
    fn from(code: Code) -> u8 {
        match code {
            Code::Done => 0,
            Code::Failed => 1,
            Code::Refused => 2,
            Code::NoAnswer => 3,
            Code::Unsure => 4,
            // As a shell has it of a program that Ctrl-C ended.
            Code::Interrupted => 130,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(u8::from(code))
    }
}
