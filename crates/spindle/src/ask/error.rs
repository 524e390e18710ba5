//! Why a question cannot be asked as it was put: by `spindle try` or `spindle init`.

use std::io;
use std::path::PathBuf;

use spindle_text::quantity::size_free;
use spindle_text::remedy::with_remedy;

/// How one place is compared with itself on purpose.
const AGAIN: &str = "How much trials of one place differ is told with --set plan.noise_check=true, or noise_check = true in \
                     [plan]";

/// What is wrong with a question or an answer, and what to write instead.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// `--set` without a value.
    #[error("--set {0} sets nothing: write KEY=VALUE, such as plan.measure=5s")]
    NothingSet(String),
    /// `--set` of what `try` does not take.
    #[error(
        "--set {0}: the layouts of `try` are its directories and what is varied. Keep the file with --save FILE, change it, \
         and `spindle run` it"
    )]
    NotOfTry(String),
    /// `--set` of a section that is nearly one.
    #[error("--set {set}: there is no such section; did you mean {near:?}?")]
    Misspelt {
        /// What was to be set.
        set: String,
        /// The section that there is.
        near: &'static str,
    },
    /// Directories beside the arguments.
    #[error(
        "--vary {0}: the directories of `try` are its arguments, and these would take their place. Name all of them there: \
         spindle try DIR DIR"
    )]
    PathsVaried(String),
    /// A path that a terminal would obey.
    #[error(
        "{0:?} has characters in its name that cannot be shown, such as a new line. Rename it, or make a link to it with a \
         plain name and give that"
    )]
    NotPlain(String),
    /// `--set` of what has an option.
    #[error("--set {set}: `try` has an option for this: {option}")]
    HasOption {
        /// What was to be set.
        set: String,
        /// The option.
        option: &'static str,
    },
    /// A variable of scripts without its name or value.
    #[error(
        "allowed: NAME=VALUE, such as scale=10, with a value that is not empty and can be shown"
    )]
    NotDefined,
    /// Variables of scripts in two ways.
    #[error("--set {0}: -D defines variables, too. Give all of them by -D NAME=VALUE")]
    DefinedTwice(String),
    /// `--vary` without values.
    #[error("--vary {0} names no values: write KEY=A,B, such as io.method=sync,async")]
    NothingVaried(String),
    /// One directory, and nothing that varies.
    #[error(
        "one directory has nothing to be compared with. Add another directory, or vary a setting, such as:\n  --vary {vary}"
    )]
    NothingToCompare {
        /// What could be varied.
        vary: String,
    },
    /// A comparison of directories with one of them.
    #[error(
        "comparing directories takes two or more: --where DIR --where DIR. A device counts as one"
    )]
    OneDirectory,
    /// A directory is named twice by one name.
    #[error("{0} is given twice: name another directory to compare it with. {AGAIN}")]
    Twice(String),
    /// A directory is named twice.
    #[error("{other} and {path} are one place: name another to compare it with. {AGAIN}")]
    OnePlace {
        /// The first name.
        other: String,
        /// The second.
        path: String,
    },
    /// A place is not there, or may not be looked at.
    #[error(
        "{}: {source}. Name an existing directory, or ask its owner to let you in",
        match path.as_str() { "" => "\"\"", path => path }
    )]
    NotThere {
        /// The place.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
    /// `try` erases nothing.
    #[error(
        "{0} is a device, and `try` takes directories only: it never erases anything. Mount a file system on it, or write an \
         experiment whose layout says devices and erase (`spindle examples`)"
    )]
    IsDevice(String),
    /// A place is a file.
    #[error("{0} is not a directory. Name the directory it is in")]
    NotADirectory(String),
    /// A place may not be written.
    #[error(
        "no file can be made in {path}: {source}. Name a directory of yours, or run as its owner"
    )]
    NotWritable {
        /// The place.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A file system is full.
    #[error(
        "there is no free room in {path} ({kind}). Name a directory on a file system with room"
    )]
    Full {
        /// The place.
        path: String,
        /// The file system's type.
        kind: String,
    },
    /// A place has too little room.
    #[error("there are {} free: too little for a database and its copy; name a place with more room", size_free(*.0))]
    TooLittleRoom(u64),
    /// A device cannot be taken.
    #[error(
        "{place} cannot be offered here: {why}. Name an empty device, or write an experiment file by hand \
         (docs/experiment-file.md)"
    )]
    NotOffered {
        /// The device.
        place: String,
        /// Why.
        why: String,
    },
    /// There is no such database.
    #[error("Spindle does not measure {word:?}; {allowed}")]
    NoEngine {
        /// What was written.
        word: String,
        /// What is allowed.
        allowed: UnknownEngine,
    },
    /// An answer that is not among the choices.
    #[error("{word:?} is not among {}", words.join(", "))]
    NotAmong {
        /// The answer.
        word: String,
        /// The choices.
        words: Vec<String>,
    },
    /// An answer that is no time.
    #[error("{0:?} is not a time from 1m to 240h")]
    NotATime(String),
    /// One place, where directories are compared.
    #[error("two places are needed, or more, with commas between them")]
    OneAnswer,
    /// Directories are to be compared, and there is no second one to take by default.
    #[error(
        "there is no second place to take by default: this machine has one file system with room. Name two directories, or \
         more: --where DIR --where DIR"
    )]
    NoSecondPlace,
    /// Answers cannot be read.
    #[error("standard input: {0}")]
    Input(io::Error),
    /// The path of the file has no last part that is a text.
    #[error("{} cannot be the name of an experiment file: name one in UTF-8, such as experiment.toml", .0.display())]
    NamesNoFile(PathBuf),
    /// The file would be overwritten.
    #[error("{} is there already: name another file", .0.display())]
    AlreadyThere(PathBuf),
    /// The file cannot be written.
    #[error(
        "cannot write {}: {}. Name a file in a directory where you may write",
        path.display(), with_remedy(source)
    )]
    NotWritten {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The shell stands in a directory that was removed.
    #[error("there is no current directory: {0}; cd to an existing one")]
    NoCurrentDirectory(io::Error),
    /// The machine is too small for what was written.
    #[error("{} is written, but {refusal}", file.display())]
    TooLittle {
        /// The file.
        file: PathBuf,
        /// What is too little.
        refusal: String,
    },
    /// Settings that the database does not have, or values that it does not take.
    #[error("{0}")]
    Settings(String),
    /// All but one candidate, or all, are refused here.
    #[error(transparent)]
    TooFew(#[from] spindle_experiment::TooFewLeft),
}

/// There is no engine of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("allowed: kernel, {}", servers.join(", "))]
pub struct UnknownEngine {
    /// The others that there are.
    pub servers: Vec<&'static str>,
}
