//! Finds the programs of MariaDB or MySQL on this machine, and which version they are.

use crate::EngineError;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of the server's program, MariaDB's own first: `mysqld` may be either.
const SERVER_NAMES: [&str; 2] = ["mariadbd", "mysqld"];
/// Names of the program that makes an empty database of MariaDB.
const INSTALL_NAMES: [&str; 2] = ["mariadb-install-db", "mysql_install_db"];
/// Names of the client that carries statements out.
const CLIENT_NAMES: [&str; 2] = ["mariadb", "mysql"];
/// Where they are when PATH does not say.
const USUAL_DIRECTORIES: [&str; 5] = [
    "/usr/sbin",
    "/usr/libexec",
    "/usr/bin",
    "/usr/local/mysql/bin",
    "/usr/local/sbin",
];
/// Folders of an installation, beside the one that is named as `bin_dir`.
const SISTERS: [&str; 4] = ["bin", "sbin", "libexec", "scripts"];

/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Make {
    MariaDb,
    MySql,
}

impl Make {
    fn name(self) -> &'static str {
        match self {
            Make::MariaDb => "MariaDB",
            Make::MySql => "MySQL",
        }
    }

    /// The oldest version that has what is used here.
    fn oldest(self) -> (u32, u32) {
        match self {
            Make::MariaDb => (10, 5),
            Make::MySql => (8, 0),
        }
    }
}

/// The programs of one installation.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    pub server: PathBuf,
    /// Makes an empty database; MySQL's server does so itself.
    pub install: Option<PathBuf>,
    /// The client, which dumps need.
    pub client: Option<PathBuf>,
    pub make: Make,
    /// The first two numbers of the version.
    pub version: (u32, u32),
    /// Name and version, in words.
    pub title: String,
    /// The installation's directory, where the experiment names it.
    pub base: Option<PathBuf>,
}

impl Programs {
    /// Looks in `bin_dir` and the folders beside it; without one along PATH, then where such programs usually are.
    ///
    /// # Errors
    /// `Unavailable`: not there, or too old.
    pub fn find(bin_dir: Option<&Path>) -> Result<Programs, EngineError> {
        let directories = directories(bin_dir);
        let server = find_one(&directories, &SERVER_NAMES).ok_or_else(|| {
            EngineError::unavailable(match bin_dir {
                Some(directory) => format!(
                    "there is neither mariadbd nor mysqld in {}",
                    directory.display()
                ),
                None => "MariaDB is not installed: there is neither mariadbd nor mysqld along PATH, in /usr/sbin or in \
                         /usr/libexec; install the package mariadb-server, or set bin_dir"
                    .to_owned(),
            })
        })?;
        let (make, version, number) = version_of(&server)?;
        let title = format!("{} {number}", make.name());
        if version < make.oldest() {
            let (major, minor) = make.oldest();
            return Err(EngineError::unavailable(format!(
                "{title} is too old: {}'s server must be {major}.{minor} or newer ({})",
                make.name(),
                server.display()
            )));
        }
        let install = find_one(&directories, &INSTALL_NAMES);
        if make == Make::MariaDb && install.is_none() {
            return Err(EngineError::unavailable(format!(
                "{} is there, but mariadb-install-db, which makes a database for it, is not",
                server.display()
            )));
        }
        let base = bin_dir.and_then(Path::parent).map(Path::to_path_buf);
        Ok(Programs {
            server,
            install,
            client: find_one(&directories, &CLIENT_NAMES),
            make,
            version,
            title,
            base,
        })
    }

    /// Whether the server was built with something, as names in its program tell.
    pub fn mentions(&self, name: &str) -> bool {
        let name = name.as_bytes();
        let bytes = std::fs::read(&self.server).unwrap_or_default();
        let first = |rest: &[u8]| rest.iter().position(|byte| *byte == name[0]);
        let mut rest = &bytes[..];
        while let Some(start) = first(rest) {
            rest = &rest[start..];
            if rest.starts_with(name) {
                return true;
            }
            rest = &rest[1..];
        }
        false
    }
}

fn directories(bin_dir: Option<&Path>) -> Vec<PathBuf> {
    let Some(directory) = bin_dir else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let usual = USUAL_DIRECTORIES.iter().map(PathBuf::from);
        return std::env::split_paths(&path).chain(usual).collect();
    };
    let sisters = SISTERS.iter().filter_map(|name| {
        let parent = directory.parent()?;
        Some(parent.join(name))
    });
    std::iter::once(directory.to_path_buf())
        .chain(sisters)
        .collect()
}

fn find_one(directories: &[PathBuf], names: &[&str]) -> Option<PathBuf> {
    let mut candidates = names.iter().flat_map(|name| {
        directories
            .iter()
            .map(move |directory| directory.join(name))
    });
    candidates.find(|path| path.is_file())
}

/// What `--version` answers, such as `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian
/// 12)` or `/usr/sbin/mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)`.
fn version_of(server: &Path) -> Result<(Make, (u32, u32), String), EngineError> {
    let strange = |reason: String| {
        let server = server.display();
        EngineError::unavailable(format!("{server} does not tell its version: {reason}"))
    };
    let answer = Command::new(server)
        .args(["--no-defaults", "--version"])
        .output();
    let answer = answer.map_err(|error| strange(error.to_string()))?;
    let text = String::from_utf8_lossy(&answer.stdout);
    parse_version(&text).ok_or_else(|| strange(text.trim().to_owned()))
}

fn parse_version(text: &str) -> Option<(Make, (u32, u32), String)> {
    let make = match text.contains("MariaDB") {
        true => Make::MariaDb,
        false => Make::MySql,
    };
    let word = text.split("Ver ").nth(1)?.split_whitespace().next()?;
    let number = word.split('-').next()?;
    let mut parts = number.split('.').map(str::parse);
    let version = (parts.next()?.ok()?, parts.next()?.ok()?);
    Some((make, version, number.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let of = |text| parse_version(text).map(|(make, version, _)| (make, version));
        assert_eq!(
            of(
                "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)"
            ),
            Some((Make::MariaDb, (10, 11)))
        );
        assert_eq!(
            of("/usr/sbin/mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)"),
            Some((Make::MySql, (8, 0)))
        );
        assert_eq!(of("a shell script"), None);
    }
}
