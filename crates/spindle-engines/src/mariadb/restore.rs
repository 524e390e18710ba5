//! Restores dumps of `mariadb-dump` and `mysqldump` by the client of the server's own installation.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::AtomicBool;

use spindle_text::load_file::Dump;

use super::programs::Programs;
use crate::EngineError;
use crate::sql::account::{Account, launch_bound};
use crate::sql::restore::{open, run};

/// How the client connects to a server of Spindle's own.
pub(super) struct Client {
    program: PathBuf,
    account: Option<Account>,
    password: String,
    database: String,
}

impl Client {
    /// The client of an installation.
    ///
    /// # Errors
    /// `Unavailable`: there is none.
    pub fn of(
        programs: &Programs,
        account: Option<&Account>,
        password: &str,
        database: &str,
    ) -> Result<Client, EngineError> {
        let missing = || {
            EngineError::unavailable(format!(
                "dumps are restored by the client mariadb or mysql, which is not beside {}: install it",
                programs.server.display()
            ))
        };
        Ok(Client {
            program: programs.client.clone().ok_or_else(missing)?,
            account: account.cloned(),
            password: password.to_owned(),
            database: database.to_owned(),
        })
    }

    /// Restores a dump by the socket `socket` in the directory `data`. The client runs as the server's user: it would
    /// do what a dump says.
    ///
    /// # Errors
    /// `Failed`, in the client's own words.
    pub fn restore(
        &self,
        (data, socket): (&Path, &str),
        dump: &Dump,
        interrupted: &AtomicBool,
    ) -> Result<(), EngineError> {
        let mut tool = launch_bound(self.account.as_ref(), "KILL", &self.program);
        tool.args(["--no-defaults", "--batch", "--binary-mode"])
            .args(["--user=root", "--max-allowed-packet=1G"])
            // A path without a directory is never too long for a socket.
            .arg(format!("--socket={socket}"))
            .arg(&self.database)
            .current_dir(data)
            .env("MYSQL_PWD", &self.password)
            .stdin(Stdio::from(open(dump)?))
            .stdout(Stdio::null());
        run(tool, dump, interrupted)
    }
}
