//! The user a server runs as. As root that is one without rights of its own, so that a server that goes wrong harms
//! nothing but its own files.

use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::sql::{ServerError, if_this_process_lives};

/// Users that a server may run as, in this order.
const NAMES: [&str; 2] = ["mysql", "nobody"];

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub name: String,
    uid: u32,
    gid: u32,
}

impl Account {
    /// The user for servers that root starts; `None`: whoever runs this program.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`]: there is none.
    pub fn of_servers() -> Result<Option<Account>, ServerError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let users = std::fs::read_to_string("/etc/passwd")
            .map_err(|error| ServerError::failed("reading /etc/passwd", error))?;
        let mut found = NAMES.iter().filter_map(|name| account(&users, name));
        found.next().map(Some).ok_or_else(|| {
            ServerError::Unavailable(
                "the server must not run as root, and there is neither a user mysql nor nobody"
                    .to_owned(),
            )
        })
    }

    /// Gives it a file or directory.
    pub fn own(&self, path: &Path) -> Result<(), ServerError> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(|error| {
            ServerError::failed(format!("giving {} to {}", path.display(), self.name), error)
        })
    }

    /// Makes sure that it can come to a directory.
    ///
    /// # Errors
    /// [`ServerError::Failed`], with the directory that it cannot enter.
    pub fn can_reach(&self, path: &Path) -> Result<(), ServerError> {
        for directory in path.ancestors().skip(1) {
            let Ok(found) = std::fs::metadata(directory) else {
                continue;
            };
            let bit = match () {
                _ if found.uid() == self.uid => 0o100,
                _ if found.gid() == self.gid => 0o010,
                _ => 0o001,
            };
            if found.permissions().mode() & bit == 0 {
                return Err(ServerError::failed(
                    format!("running the server as {}", self.name),
                    format!(
                        "that user may not enter {}: choose a path that it may come to, or allow it with chmod o+x",
                        directory.display()
                    ),
                ));
            }
        }
        Ok(())
    }
}

fn account(users: &str, name: &str) -> Option<Account> {
    let mut lines = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let line = lines.find(|fields| fields.len() > 3 && fields[0] == name)?;
    Some(Account {
        name: name.to_owned(),
        uid: line[2].parse().ok()?,
        gid: line[3].parse().ok()?,
    })
}

/// A command that runs `program` as that user and that the kernel ends as soon as the thread that started it is gone,
/// by `setpriv` of util-linux. It is a process group of its own: what a terminal sends to this program is not for it.
pub(super) fn command(account: Option<&Account>, program: &Path) -> Command {
    let mut words: Vec<OsString> = Vec::new();
    if let Some(Account { uid, gid, .. }) = account {
        words.extend([
            format!("--reuid={uid}").into(),
            format!("--regid={gid}").into(),
            "--clear-groups".into(),
        ]);
    }
    words.extend(["--pdeathsig".into(), "KILL".into(), "--".into()]);
    words.extend(if_this_process_lives());
    words.push(program.into());
    let mut command = Command::new("setpriv");
    command.args(words).process_group(0);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/bash\nmysql:x:102:110:MySQL Server,,,:/nonexistent:/bin/false\n";

    #[test]
    fn users_are_found_by_their_names() {
        let found = account(USERS, "mysql").unwrap();
        assert_eq!((found.uid, found.gid), (102, 110));
        assert_eq!(account(USERS, "nobody"), None);
    }
}
