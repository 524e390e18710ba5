//! The tables of TPC-B and their rows, as `pgbench -i` makes them: balances of 0, and fillers of blanks in accounts
//! alone.

use super::{ACCOUNTS, TELLERS};
use crate::sql::connection::{LoadPart, MakeRows};
use crate::sql::dialect::Dialect;
use crate::sql::value::Value;

/// Accounts that one connection loads in one transaction.
const PART_ROWS: u64 = 500_000;
/// As long as the type, for databases that do not pad.
const ACCOUNT_FILLER: &str =
    "                                                                                    ";

/// A table: its name, its columns, its key.
const TABLES: [(&str, &str, &str); 3] = [
    (
        "branches",
        "bid integer not null, bbalance integer not null, filler char(88)",
        "bid",
    ),
    (
        "tellers",
        "tid integer not null, bid integer not null, tbalance integer not null, filler char(84)",
        "tid",
    ),
    (
        "accounts",
        "aid integer not null, bid integer not null, abalance integer not null, filler char(84)",
        "aid",
    ),
];

pub(super) fn create(dialect: Dialect) -> Vec<String> {
    let keyed = TABLES.iter();
    let keyed = keyed.map(|(name, columns, key)| dialect.create_table(name, columns, key));
    let history = format!(
        "create table history (tid integer not null, bid integer not null, aid integer not null, \
         delta integer not null, mtime {}, client integer not null, number bigint not null, filler char(22))",
        dialect.moment_type()
    );
    keyed.chain([history]).collect()
}

pub(super) fn add_keys(dialect: Dialect) -> Vec<String> {
    let tables = TABLES.iter();
    tables
        .filter_map(|(name, _, key)| dialect.add_key(name, key))
        .collect()
}

pub(super) fn load_parts(scale: u64) -> Vec<LoadPart> {
    let branches: MakeRows = Box::new(move |sink| {
        for branch in 1..=scale {
            sink.row(&[Value::Int(branch as i64), Value::Int(0)])?;
        }
        Ok(())
    });
    let tellers: MakeRows = Box::new(move |sink| {
        for teller in 0..scale * TELLERS {
            let (id, branch) = (teller as i64 + 1, (teller / TELLERS) as i64 + 1);
            sink.row(&[Value::Int(id), Value::Int(branch), Value::Int(0)])?;
        }
        Ok(())
    });
    let mut parts = vec![
        LoadPart {
            table: "branches",
            columns: &["bid", "bbalance"],
            rows: branches,
        },
        LoadPart {
            table: "tellers",
            columns: &["tid", "bid", "tbalance"],
            rows: tellers,
        },
    ];
    let firsts = (0..scale * ACCOUNTS).step_by(PART_ROWS as usize);
    parts.extend(firsts.map(|first| accounts(first, (first + PART_ROWS).min(scale * ACCOUNTS))));
    parts
}

fn accounts(first: u64, end: u64) -> LoadPart {
    LoadPart {
        table: "accounts",
        columns: &["aid", "bid", "abalance", "filler"],
        rows: Box::new(move |sink| {
            for account in first..end {
                sink.row(&[
                    Value::Int(account as i64 + 1),
                    Value::Int((account / ACCOUNTS) as i64 + 1),
                    Value::Int(0),
                    Value::text(ACCOUNT_FILLER),
                ])?;
            }
            Ok(())
        }),
    }
}
