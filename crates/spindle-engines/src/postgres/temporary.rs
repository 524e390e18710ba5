//! What a session's queries write to temporary files: the server tells of each file, with its size, as it removes it
//! (`ReportTemporaryFileUsage` in its `fd.c`, the function in which `pg_stat_database` counts, too). It tells the
//! session, for its parallel workers as well, and its own log.
//!
//! Files that parallel workers share are removed by the process that is the last to let go of them. Where that is a
//! worker, it has said its last word to the session by then, and what it tells is lost. So these files are taken from
//! the log: their names bear the process that began them, which is the session's, and a session continues when its
//! workers have ended.

use std::fs::File;
use std::io::{Error, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use crate::sql::child_server::ServerLog;

/// Has the server tell session and log ("Error Reporting and Logging", `log_temp_files`), the log without the
/// statements.
pub(super) const TELL: &str = "set log_temp_files = 0; set client_min_messages = log; \
     set log_min_messages = log; set log_min_error_statement = panic; set lc_messages = 'C'";

/// How the name of a directory of shared files ends.
const SHARED: &str = ".fileset/";

/// The server's log, read on from where one session began to watch it.
pub(super) struct SharedFiles {
    log: File,
    read_bytes: u64,
    /// What the directories of this session's shared files are called, up to their number.
    of_session: String,
}

impl SharedFiles {
    /// Begins to watch for the session that `process_id` serves.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn watch(log: &ServerLog, process_id: u32) -> Result<SharedFiles, Error> {
        let mut log = log.open()?;
        let read_bytes = log.seek(SeekFrom::End(0))?;
        Ok(SharedFiles {
            log,
            read_bytes,
            of_session: format!("pgsql_tmp{process_id}."),
        })
    }

    /// What was removed since this was asked last, in bytes.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn removed_bytes(&mut self) -> Result<u64, Error> {
        let end = self.log.metadata()?.len();
        let mut unread = vec![0; end.saturating_sub(self.read_bytes) as usize];
        self.log.read_exact_at(&mut unread, self.read_bytes)?;
        // The last line may be another session's, and not whole yet.
        let whole = unread.iter().rposition(|byte| *byte == b'\n');
        let whole = whole.map_or(0, |at| at + 1);
        self.read_bytes += whole as u64;
        let text = String::from_utf8_lossy(&unread[..whole]);
        let removed = text.lines().filter(|line| self.is_of_session(line));
        Ok(removed.filter_map(size_of).sum())
    }

    fn is_of_session(&self, line: &str) -> bool {
        let name = line.split_once(&self.of_session);
        name.is_some_and(|(_, rest)| rest.contains(SHARED))
    }
}

/// The size of a file of one process of which a message to the session tells, `None` when it tells of something else.
pub(super) fn own_bytes(routine: &str, message: &str) -> Option<u64> {
    let is_told = routine == "ReportTemporaryFileUsage" && !message.contains(SHARED);
    is_told.then(|| size_of(message)).flatten()
}

/// The size with which a line about a removed file ends.
fn size_of(line: &str) -> Option<u64> {
    let (_, file) = line.split_once("temporary file: path \"")?;
    let (_, size) = file.rsplit_once("\", size ")?;
    size.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    #[test]
    fn files_of_one_process_are_told_from_shared_ones_and_other_messages() {
        let told = |path: &str| format!("temporary file: path \"{path}\", size 14000000");
        let own = |path| own_bytes("ReportTemporaryFileUsage", &told(path));
        assert_eq!(own("base/pgsql_tmp/pgsql_tmp7.0"), Some(14_000_000));
        assert_eq!(own("base/pgsql_tmp/pgsql_tmp7.0.fileset/i1of2.p0.0"), None);
        let of_another = told("base/pgsql_tmp/pgsql_tmp7.0");
        assert_eq!(own_bytes("exec_simple_query", &of_another), None);
        assert_eq!(own_bytes("ReportTemporaryFileUsage", "removed"), None);
    }

    #[test]
    fn shared_files_are_read_from_the_log_once_and_only_those_of_the_session() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.log");
        let log = OpenOptions::new().create(true).append(true).open(&path);
        let mut log = log.unwrap();
        let line = |of: &str, size: u64| {
            format!(
                "2026-01-01 UTC [9] LOG:  temporary file: path \"pg_tblspc/1/pgsql_tmp/{of}\", size {size}\n"
            )
        };
        write!(log, "{}", line("pgsql_tmp7.0.fileset/before", 1)).unwrap();
        let server_log = ServerLog {
            path,
            account: None,
        };
        let mut shared = SharedFiles::watch(&server_log, 7).unwrap();
        assert_eq!(shared.removed_bytes().unwrap(), 0);
        write!(log, "{}", line("pgsql_tmp7.0.fileset/i0of2.p0.0", 10)).unwrap();
        write!(log, "{}", line("pgsql_tmp7.12.fileset/o1of2.p0.0", 200)).unwrap();
        write!(log, "{}", line("pgsql_tmp7.3", 3000)).unwrap();
        write!(log, "{}", line("pgsql_tmp77.0.fileset/of_another", 4000)).unwrap();
        let (begun, rest) = "pgsql_tmp7.1.fileset/half a line".split_at(12);
        write!(log, "LOG:  temporary file: path \"{begun}").unwrap();
        assert_eq!(shared.removed_bytes().unwrap(), 210);
        writeln!(log, "{rest}\", size 5000").unwrap();
        assert_eq!(shared.removed_bytes().unwrap(), 5000);
        assert_eq!(shared.removed_bytes().unwrap(), 0);
    }
}
