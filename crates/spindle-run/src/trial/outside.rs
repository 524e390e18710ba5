//! A trial on a database in other processes than this one, or on another machine.

use spindle_engines::sql::server;

use super::aftermath::audit_of;
use super::protocol::{TrialDatabase, TrialOutcome};
use spindle_result::{
    Audit, CpuMicroseconds, CpuShares, IoCounts, IoPerTransaction, SystemSeries, TrialFigures,
};

/// Whether the clients are in another process than the database.
pub(super) fn is_apart(database: &TrialDatabase) -> bool {
    match database {
        TrialDatabase::Kernel(_) => false,
        TrialDatabase::Server(of) => !server(of.kind).is_library(),
        TrialDatabase::Remote(_) => true,
    }
}

/// What is known of the machine of an existing server.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ServerMachine {
    pub cpu: Option<CpuShares>,
    pub cpu_us_per_transaction: Option<CpuMicroseconds>,
    pub device: Option<IoCounts>,
    pub fetched_bytes: Option<u64>,
}

impl ServerMachine {
    /// The figures of a trial on such a server: those of its clients, and those of its machine.
    pub fn added_to(self, figures: TrialFigures) -> TrialFigures {
        // It has no disk groups of Spindle, so what was asked for is what should arrive at its devices.
        let tool = figures.audit.tool;
        TrialFigures {
            response_time: None,
            cpu: self.cpu,
            cpu_us_per_transaction: self.cpu_us_per_transaction,
            memory: None,
            audit: Audit {
                clients: figures.audit.clients,
                client_processors: figures.audit.client_processors,
                ..audit_of(tool, tool, self.device, self.fetched_bytes)
            },
            io: IoPerTransaction::of(figures.transactions, tool, self.device),
            ..figures
        }
    }
}

/// What a trial on an existing server can tell: what this machine did meanwhile says nothing of the server, not
/// even where it is this machine's.
pub(super) fn as_seen_from_outside(outcome: TrialOutcome) -> TrialOutcome {
    TrialOutcome {
        figures: ServerMachine::default().added_to(outcome.figures),
        system: SystemSeries::default(),
        ..outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_result::{ClientProcessors, sample};

    const TOOL: IoCounts = IoCounts {
        reads: 60,
        writes: 30,
        read_bytes: 1_000,
        write_bytes: 2_000,
    };

    /// Of a trial whose clients shared this machine's processors and devices with others.
    fn figures() -> TrialFigures {
        let mut figures = sample::trial(1, 600.0).figures;
        figures.transactions = 10;
        figures.audit = Audit {
            dirty_bytes_at_end: Some(1),
            dirty_buffer_bytes_at_end: Some(2),
            cached_pages_at_end: Some(3),
            flush_at_end_us: Some(4.0),
            page_cache_bytes_at_end: Some(5),
            client_processors: Some(ClientProcessors {
                running: 0.25,
                waiting: 0.5,
            }),
            ..Audit::of_counts(Some(TOOL), Some(TOOL))
        };
        figures
    }

    #[test]
    fn of_an_existing_server_only_its_clients_are_known() {
        let before = figures();
        let seen = ServerMachine::default().added_to(before.clone());
        let audit = Audit {
            clients: before.audit.clients,
            client_processors: before.audit.client_processors,
            ..Audit::of_counts(Some(TOOL), None)
        };
        assert_eq!(seen.audit, audit);
        assert_eq!(seen.io, IoPerTransaction::of(10, Some(TOOL), None));
        assert_eq!((seen.cpu, seen.memory), (None, None));
        assert_eq!(seen.cpu_us_per_transaction, None);
        assert_eq!(seen.response_time, None);
        assert_eq!((seen.tpm, seen.latency_us), (before.tpm, before.latency_us));
    }

    #[test]
    fn what_an_agent_saw_is_added() {
        let device = IoCounts {
            read_bytes: 500,
            write_bytes: 3_000,
            ..TOOL
        };
        let machine = ServerMachine {
            cpu: None,
            cpu_us_per_transaction: Some(CpuMicroseconds {
                user: 7.0,
                system: 8.0,
            }),
            device: Some(device),
            fetched_bytes: Some(100),
        };
        let unseen = ServerMachine::default().added_to(figures());
        let seen = machine.added_to(unseen);
        assert_eq!(seen.audit.device, Some(device));
        assert_eq!(seen.audit.read_ratio, Some(2.0));
        assert_eq!(seen.audit.page_cache_share, Some(0.9));
        assert!(seen.audit.client_processors.is_some());
        assert_eq!(seen.cpu_us_per_transaction.map(|us| us.user), Some(7.0));
        let io = seen.io.expect("there were transactions");
        assert_eq!(io.device_written_bytes, Some(300.0));
        assert_eq!(io.write_amplification, Some(1.5));
    }
}
