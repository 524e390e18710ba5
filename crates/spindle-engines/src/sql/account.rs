//! The user a server runs as, and how it is launched. For root that is a user without privileges, so that a server that
//! goes wrong harms nothing but its own files; PostgreSQL refuses root altogether. Servers are launched by `setpriv` of
//! util-linux, which also has the kernel end them with the thread that started them: changing the user afterwards would
//! undo that (PR_SET_PDEATHSIG(2const)).

use crate::EngineError;
use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// A user of this machine, as /etc/passwd has it (passwd(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub name: String,
    user_id: u32,
    group_id: u32,
}

impl Account {
    /// The first user of these names, for servers that root starts; `None`: the user who runs this program.
    ///
    /// # Errors
    /// `Unavailable` with `refusal`: there is none.
    pub fn of_servers(names: &[&str], refusal: &str) -> Result<Option<Account>, EngineError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let users = std::fs::read_to_string("/etc/passwd")
            .map_err(|error| EngineError::failed("reading /etc/passwd", error))?;
        let mut found = names.iter().filter_map(|name| Account::named(name, &users));
        let unavailable = || EngineError::unavailable(refusal.to_owned());
        found.next().map(Some).ok_or_else(unavailable)
    }

    fn named(name: &str, users: &str) -> Option<Account> {
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            if fields.next() != Some(name) {
                return None;
            }
            Some(Account {
                name: name.to_owned(),
                user_id: fields.nth(1)?.parse().ok()?,
                group_id: fields.next()?.parse().ok()?,
            })
        })
    }

    /// Has this thread do what it does as this user; the kernel takes root's rights for as long.
    fn take_rights(&self) -> std::io::Result<()> {
        let (user, group) = (Uid::from_raw(self.user_id), Gid::from_raw(self.group_id));
        set_thread_groups(&[])?;
        set_thread_res_gid(None, Some(group), None)?;
        set_thread_res_uid(None, Some(user), None)?;
        Ok(())
    }

    /// Gives it a file or directory.
    pub fn give(&self, path: &Path) -> Result<(), EngineError> {
        lchown(path, Some(self.user_id), Some(self.group_id)).map_err(|error| {
            let what = format!("giving {} to the user {}", path.display(), self.name);
            EngineError::failed(what, error)
        })
    }

    /// Makes sure that it gets to a directory.
    ///
    /// # Errors
    /// `Failed` that names the directory on the way which is closed to it.
    pub fn reach(&self, directory: &Path) -> Result<(), EngineError> {
        let mut from_the_root: Vec<&Path> = directory.ancestors().collect();
        from_the_root.reverse();
        for ancestor in from_the_root {
            if !self.is_open(ancestor)? {
                return Err(EngineError::failed(
                    format!("getting to {}", directory.display()),
                    format!(
                        "the server runs as the user {}, and {} is closed to it: open it (chmod o+x), or give the layout \
                         another path",
                        self.name,
                        ancestor.display()
                    ),
                ));
            }
        }
        Ok(())
    }

    fn is_open(&self, directory: &Path) -> Result<bool, EngineError> {
        let bit = match std::fs::metadata(directory) {
            Ok(found) if found.uid() == self.user_id => found.permissions().mode() & 0o100,
            Ok(found) if found.gid() == self.group_id => found.permissions().mode() & 0o010,
            Ok(found) => found.permissions().mode() & 0o001,
            Err(_) => 0,
        };
        if bit != 0 {
            return Ok(true);
        }
        // An access control list may open what the mode closes (acl(5)).
        let mut test = launch(Some(self), &["--"], ["test", "-x"]);
        let tested = test.arg(directory).stderr(Stdio::null()).status();
        tested
            .map(|status| status.success())
            .map_err(|error| not_launched("looking who may enter directories", error))
    }
}

/// Does what `work` does with the rights of the user that a server runs as. Whatever a server can write to it can fill
/// with links to files of root, and what SQL can tell it to do it can: root must not write or read there by a path. It
/// is done in a thread that ends: a change of the user would have the kernel forget with whom this one is to end.
///
/// # Errors
/// `Failed`: the kernel does not change the user.
pub(crate) fn with_rights_of<T: Send>(
    account: Option<&Account>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, EngineError> {
    let Some(account) = account else {
        return Ok(work());
    };
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("server's files".to_owned());
        let thread = thread.spawn_scoped(scope, || account.take_rights().map(|()| work()));
        thread?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    done.map_err(|error: std::io::Error| {
        EngineError::failed(format!("becoming the user {}", account.name), error)
    })
}

/// `setpriv`, as that user, with `words` as its options and then `program` with what follows it.
pub(crate) fn launch<P: Into<OsString>>(
    account: Option<&Account>,
    words: &[&str],
    program: impl IntoIterator<Item = P>,
) -> Command {
    let mut command = Command::new("setpriv");
    if let Some(account) = account {
        command
            .arg(format!("--reuid={}", account.user_id))
            .arg(format!("--regid={}", account.group_id))
            .arg("--clear-groups");
    }
    command.args(words).args(program.into_iter().map(P::into));
    command
}

/// The same for a program that gets `signal` when the thread that started it ends, and is run only if this process is
/// still there when the signal has been asked for: a parent that dies before that would leave a program that never gets
/// it.
pub(crate) fn launch_bound(account: Option<&Account>, signal: &str, program: &Path) -> Command {
    let alive = only_below(std::process::id());
    let program = alive.into_iter().chain([program.into()]);
    launch(account, &["--pdeathsig", signal, "--"], program)
}

/// Words that run what follows them only as a child of this process.
fn only_below(process: u32) -> [OsString; 4] {
    let script = "[ \"$PPID\" = \"$0\" ] && exec \"$@\"";
    ["sh", "-c", script, &process.to_string()].map(OsString::from)
}

/// Why `setpriv` could not be run.
pub(crate) fn not_launched(what: &str, error: std::io::Error) -> EngineError {
    match error.kind() {
        std::io::ErrorKind::NotFound => EngineError::unavailable(
            "servers are started by setpriv, which is not there: install the package util-linux"
                .to_owned(),
        ),
        _ => EngineError::failed(what, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_names() {
        let users = "root:x:0:0:root:/root:/bin/bash\nmysql:x:102:110:MySQL Server,,,:/nonexistent:/bin/false\n";
        let found = Account::named("mysql", users).unwrap();
        assert_eq!((found.user_id, found.group_id), (102, 110));
        assert_eq!(Account::named("mysq", users), None);
        assert_eq!(Account::named("nobody", users), None);
    }

    #[test]
    fn a_directory_that_only_root_may_enter_is_named() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let nobody = Account::of_servers(&["nobody"], "").unwrap().unwrap();
        let closed = tempfile::tempdir().unwrap();
        let mine_alone = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(closed.path(), mine_alone).unwrap();
        let within = closed.path().join("data");
        std::fs::create_dir(&within).unwrap();
        let said = nobody.reach(&within).unwrap_err().to_string();
        let named = format!("{} is closed to it", closed.path().display());
        assert!(said.contains(&named), "{said}");
        let open = std::fs::Permissions::from_mode(0o711);
        std::fs::set_permissions(closed.path(), open).unwrap();
        nobody.give(&within).unwrap();
        nobody.reach(&within).unwrap();
    }

    #[test]
    fn what_a_server_links_to_is_safe_from_root() {
        if !spindle_harness::is_root_or_skip("files of root") {
            return;
        }
        let nobody = Account::of_servers(&["nobody"], "").unwrap().unwrap();
        let place = tempfile::tempdir().unwrap();
        let of_root = place.path().join("of root");
        std::fs::write(&of_root, "root's").unwrap();
        std::fs::set_permissions(&of_root, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let link = place.path().join("server.log");
        std::os::unix::fs::symlink(&of_root, &link).unwrap();
        let by = |account| {
            let written = with_rights_of(account, || std::fs::write(&link, "x")).unwrap();
            let read = with_rights_of(account, || std::fs::read(&link)).unwrap();
            let made = with_rights_of(account, || std::fs::write(place.path().join("new"), ""));
            (written.is_ok(), read.is_ok(), made.unwrap().is_ok())
        };
        assert_eq!(by(Some(&nobody)), (false, false, false));
        assert_eq!(std::fs::read(&of_root).unwrap(), b"root's");
        assert_eq!(
            by(None),
            (true, true, true),
            "this thread is root's as before"
        );
    }

    #[test]
    fn nothing_is_run_for_a_parent_that_is_gone() {
        let runs = |words: [OsString; 4]| {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).args(["printf", "%s", "a b"]);
            let ended = command.output().unwrap();
            (ended.status.success(), ended.stdout)
        };
        let here = only_below(std::process::id());
        assert_eq!(runs(here), (true, b"a b".to_vec()));
        // A process that has lost its parent is a child of another one.
        assert_eq!(runs(only_below(1)), (false, Vec::new()));
    }
}
