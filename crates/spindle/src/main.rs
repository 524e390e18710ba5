//! The program `spindle`. Everything it does is in the library beside it, so that tests can do it too.

use std::process::ExitCode;

use clap::Parser;
use spindle::cli;

fn main() -> ExitCode {
    cli::main(cli::Arguments::parse())
}
