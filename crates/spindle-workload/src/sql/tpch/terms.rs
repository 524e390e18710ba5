//! The words of TPC-H that its SQL and its plans share: versions, kinds, and the workload itself, as far as it says
//! what a client does next and with which parameters.

use std::sync::Arc;
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use spindle_text::words;

use super::answers::{KeptAnswer, KeptAnswers, QueryAnswer};
use super::parameters::{self, Draw};
use super::{queries, streams};
use crate::sql::Dialect;
use crate::workload::{Acknowledged, Client};

/// What the queries and refresh functions are called, in the order of a transaction's kind.
pub const KINDS: [&str; 24] = [
    "Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8", "Q9", "Q10", "Q11", "Q12", "Q13", "Q14", "Q15",
    "Q16", "Q17", "Q18", "Q19", "Q20", "Q21", "Q22", "RF1", "RF2",
];
pub(super) const RF1: usize = 22;
pub(super) const RF2: usize = 23;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TpchVersion {
    /// TPC-H.
    H,
    /// TPC-D: the first 17 queries, the 13th of which was another.
    D,
}

impl TpchVersion {
    /// Its queries, by number.
    pub fn queries(self) -> std::ops::RangeInclusive<u8> {
        match self {
            TpchVersion::H => 1..=22,
            TpchVersion::D => 1..=17,
        }
    }
}

words! {
    /// Where the parameters of queries come from.
    pub enum Parameters {
        /// They are drawn by the standard's rules, for each stream its own; the same in every trial.
        Random = "random",
        /// They are those for which the standard has answers, in every stream.
        Validation = "validation",
    }
}

/// The workload.
pub struct Tpch {
    /// TPC-H or TPC-D.
    pub version: TpchVersion,
    /// Size of the data: 1 has about a gigabyte; from 0.01 up.
    pub scale: f64,
    /// The queries that are asked, by number; the others are left out of every stream.
    pub queries: Vec<u8>,
    /// Whether the refresh functions run.
    pub refresh: bool,
    /// Where parameters come from.
    pub parameters: Parameters,
    /// A query that takes longer is cancelled.
    pub query_limit: Option<Duration>,
    /// Where answers are kept, if they are.
    pub kept: Option<Arc<KeptAnswers>>,
    /// Where everything random starts from.
    pub seed: u64,
}

/// What a client does.
pub(super) enum Role {
    Power,
    Stream(usize),
    Refresh { streams: usize },
}

impl Tpch {
    /// Clients that are needed for this many streams.
    pub fn clients_of(streams: usize, refresh: bool) -> usize {
        streams + usize::from(refresh && streams > 1)
    }

    pub(super) fn role(&self, client: usize, clients: usize) -> Role {
        match clients {
            1 => Role::Power,
            _ if self.refresh && client + 1 == clients => Role::Refresh {
                streams: clients - 1,
            },
            _ => Role::Stream(client + 1),
        }
    }

    /// The kinds of what a client does, in order.
    pub(super) fn steps(&self, role: &Role) -> Vec<usize> {
        let queries = |stream| {
            let asked = |query: &u8| self.queries.contains(query);
            let order = streams::order(stream).into_iter().filter(asked);
            order.map(|query| usize::from(query) - 1)
        };
        match *role {
            Role::Power if self.refresh => {
                [RF1].into_iter().chain(queries(0)).chain([RF2]).collect()
            }
            Role::Power => queries(0).collect(),
            Role::Stream(stream) => queries(stream).collect(),
            Role::Refresh { streams } => [RF1, RF2].repeat(streams),
        }
    }

    /// The standard has answers for its own parameters at scale 1, before anything is refreshed.
    pub(super) fn right_answer(&self, query: u8) -> Option<QueryAnswer> {
        let is_known = self.version == TpchVersion::H
            && self.parameters == Parameters::Validation
            && self.scale == 1.0
            && !self.refresh;
        is_known.then(|| QueryAnswer::of_standard(query)).flatten()
    }

    /// The text of a query of a stream.
    pub fn query(&self, query: u8, stream: usize, dialect: Dialect) -> String {
        match self.values(query, stream) {
            Values::OfQuery(values) => queries::text(query, dialect, &values),
            Values::OfClerk(values) => queries::of_clerk(dialect, &values),
        }
    }

    /// The parameters of a query of a stream.
    pub(super) fn values(&self, query: u8, stream: usize) -> Values {
        // Streams and queries draw each from their own chance, so that leaving one out changes no other.
        let of_query = self.seed ^ (stream as u64 + 1) << 32 ^ u64::from(query) << 24;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(of_query);
        let mut draw = Draw(&mut rng);
        let is_clerk = self.version == TpchVersion::D && query == 13;
        match (self.parameters, is_clerk) {
            (Parameters::Validation, false) => {
                Values::OfQuery(parameters::validation(query, self.scale))
            }
            (Parameters::Validation, true) => Values::OfClerk(parameters::validation_of_clerk()),
            (Parameters::Random, false) => Values::OfQuery(draw.parameters(query, self.scale)),
            (Parameters::Random, true) => Values::OfClerk(draw.clerk(self.scale)),
        }
    }

    pub(super) fn word(&self) -> &'static str {
        match self.version {
            TpchVersion::H => "tpch",
            TpchVersion::D => "tpcd",
        }
    }

    /// What a client does next.
    pub(super) fn next_step(&self, client: &mut Client) -> NextStep {
        let role = self.role(client.number, client.clients);
        // A client has as many transactions as steps, and ends behind the last.
        let place = client.changes as usize;
        client.changes += 1;
        NextStep {
            kind: self.steps(&role)[place],
            set: match role {
                Role::Refresh { .. } => place as u32 / 2,
                Role::Power | Role::Stream(_) => 0,
            },
            stream: match role {
                Role::Stream(stream) => stream,
                Role::Power | Role::Refresh { .. } => 0,
            },
            is_settled: !self.refresh || matches!(role, Role::Power),
        }
    }

    pub(super) fn keeps(&self, next: &NextStep) -> Option<Keeps> {
        self.kept.as_ref().map(|kept| Keeps {
            kept: Arc::clone(kept),
            stream: next.stream,
            is_settled: next.is_settled,
        })
    }

    /// How many refresh functions of each kind were acknowledged.
    pub(super) fn refreshed(&self, acknowledged: &[Acknowledged]) -> [u64; 2] {
        let mut done = [0, 0];
        for (client, promised) in acknowledged.iter().enumerate() {
            let role = self.role(client, acknowledged.len());
            for &kind in self.steps(&role).iter().take(promised.last as usize) {
                done[0] += u64::from(kind == RF1);
                done[1] += u64::from(kind == RF2);
            }
        }
        done
    }

    pub(super) fn all_kept_answers(&self) -> Vec<KeptAnswer> {
        let mut kept = self.kept.as_ref().map_or_else(Vec::new, |kept| kept.all());
        for answer in &mut kept {
            let right = self.right_answer(answer.query);
            answer.standard = right.map(|right| answer.answer.compare(&right));
        }
        kept
    }
}

/// The parameters of a query.
pub(super) enum Values {
    /// Of one of the 22.
    OfQuery(Vec<String>),
    /// Of query 13 of TPC-D.
    OfClerk(Vec<String>),
}

/// What a client does next.
pub(super) struct NextStep {
    pub(super) kind: usize,
    /// Of a refresh function, which set.
    pub(super) set: u32,
    pub(super) stream: usize,
    /// No other client changes what it reads.
    pub(super) is_settled: bool,
}

/// What becomes of its answer.
pub(super) struct Keeps {
    pub(super) kept: Arc<KeptAnswers>,
    pub(super) stream: usize,
    pub(super) is_settled: bool,
}

impl Keeps {
    /// Without rows yet.
    pub(super) fn answer(&self, kind: usize) -> KeptAnswer {
        KeptAnswer {
            query: kind as u8 + 1,
            stream: self.stream,
            is_settled: self.is_settled,
            ..KeptAnswer::default()
        }
    }
}
