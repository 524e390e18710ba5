//! Servers of the bench's own, each in a directory of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{
    Purpose, RunningServer, ServerKind, ServerRequest, ServerStop, SqlUnderTest, server,
};
use spindle_layout::TreeDirectories;
use spindle_workload::sql::SqlWorkload;

/// A server of the bench's own; killed when dropped.
pub struct Private {
    pub running: Arc<dyn RunningServer>,
    pub directories: TreeDirectories,
    has_ended: bool,
}

impl Private {
    /// What is asked of it; says why, when there is no server.
    pub fn request(
        kind: ServerKind,
        clients: usize,
        buffer_cache_bytes: u64,
        data_bytes: u64,
    ) -> Option<ServerRequest> {
        let request = ServerRequest {
            settings: Default::default(),
            bin_dir: None,
            buffer_cache_bytes,
            data_bytes,
            clients: 2 * clients as u32,
            io: None,
            database: None,
        };
        let examined = server(kind).examine(&request);
        examined
            .inspect_err(|reason| eprintln!("  skipped: {reason}"))
            .ok()?;
        Some(request)
    }

    /// Empty directories for a server that runs as another user.
    pub fn directories(directory: &Path) -> TreeDirectories {
        let place = directory.parent().expect("the bench's place");
        for path in [place, directory] {
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, open).expect("our own directory");
        }
        let directories = TreeDirectories::within(|_| directory.to_path_buf());
        directories.make().expect("an empty directory");
        directories
    }

    pub fn start(
        kind: ServerKind,
        request: &ServerRequest,
        directories: TreeDirectories,
        purpose: Purpose,
    ) -> Private {
        let started = server(kind).start(request, &directories, purpose);
        Private {
            running: started.expect("the server starts"),
            directories,
            has_ended: false,
        }
    }

    /// Ends it in order.
    pub fn end(mut self) {
        self.running
            .stop(ServerStop::Clean)
            .expect("the server ends");
        self.has_ended = true;
    }

    pub fn create_database(&self, name: &str) {
        let mut connection = self.running.connect().expect("a connection");
        let created = connection.run(&format!("create database {name}"));
        created.expect("a database of the peer's own");
    }

    pub fn engine(&self, workload: impl SqlWorkload + 'static) -> Arc<dyn RunningEngine> {
        self.engine_of(Arc::new(workload))
    }

    pub fn engine_of(&self, workload: Arc<dyn SqlWorkload>) -> Arc<dyn RunningEngine> {
        Arc::new(SqlUnderTest::new(
            Arc::clone(&self.running),
            workload,
            self.directories.clone(),
        ))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        if let Err(error) = self.running.stop(ServerStop::Kill) {
            eprintln!("  the server did not stop: {error}");
        }
    }
}
