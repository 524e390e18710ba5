//! `spindle doctor`: what this machine can do, and what makes its results noisy, each with what it means and a remedy.
//! `abilities` and `noise` find, this module shows. Everything is read through [`SystemTree`]; nothing is changed. With
//! an address it tells of that server: `server`.

use std::fmt::Write;

mod abilities;
mod finding;
mod noise;
mod server;

use spindle_engines::EngineError;
use spindle_engines::sql::{Address, remote_server};
use spindle_system::SystemTree;

use finding::{Finding, Health};

/// Looks at this machine for about half a second and tells what was found.
pub fn report() -> String {
    let files = SystemTree::default();
    let here = std::env::current_dir().unwrap_or_default();
    let abilities = abilities::find(&files, &here);
    let noise = noise::find(&files, &noise::Sampled::over_half_a_second(&files));
    show(&[
        ("What this machine can do", abilities),
        ("What may make results noisy", noise),
    ])
}

/// Why nothing is said of a server.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The address is wrong, in words.
    #[error("{0}")]
    Address(String),
    /// The server does not answer, or refuses the login.
    #[error(transparent)]
    Server(#[from] EngineError),
}

/// Looks at an existing server and tells what was found.
///
/// # Errors
/// The address is wrong, or the server does not answer or refuses the login.
pub fn report_of(url: &str, password_env: Option<&str>) -> Result<String, ReportError> {
    let address = Address::complete(url).map_err(|error| {
        ReportError::Address(format!(
            "the address of a server cannot be used: {error}. Write it as postgres://USER@HOST:PORT/DATABASE or \
             mariadb://USER@HOST:PORT/DATABASE; without one, `spindle doctor` looks at this machine"
        ))
    })?;
    let password = address.find_password(password_env)?;
    let survey = remote_server(address.scheme).survey(&address, password.as_ref())?;
    Ok(show(&server::find(&survey)))
}

fn show(sections: &[(&str, Vec<Finding>)]) -> String {
    let mut text = String::new();
    for (heading, findings) in sections {
        let _ = writeln!(text, "{heading}");
        for finding in findings {
            let word = match finding.health {
                Health::Ok => "ok",
                Health::Warn => "warn",
                Health::Missing => "missing",
            };
            let _ = writeln!(text, "  {word:<8} {}", finding.what);
            if !finding.advice.is_empty() {
                let _ = writeln!(text, "           {}", finding.advice);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_line_for_each_finding_and_one_for_its_advice() {
        let findings = vec![
            Finding::ok("io_uring"),
            Finding::warn("load 3.0", "stop other programs"),
            Finding::missing("lvm", "install lvm2"),
        ];
        let expected = "Here\n  ok       io_uring\n  warn     load 3.0\n           stop other programs\n  missing  lvm\n           install lvm2\n";
        assert_eq!(show(&[("Here", findings)]), expected);
    }

    #[test]
    fn this_machine_is_reported() {
        let text = report();
        for word in [
            "io_uring",
            "root",
            "device-mapper",
            "governor",
            "load",
            "swap",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}
