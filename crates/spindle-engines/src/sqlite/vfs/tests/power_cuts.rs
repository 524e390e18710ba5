//! The power is cut at an I/O of the device: of what was not flushed there, any part may be gone. Journal and log are
//! then as they were at that moment, and the database is opened again.

use super::*;

const TRANSACTIONS: i64 = 8;
const CUTS: u64 = 25;
const BEGIN: &str = "pragma page_size = 1024; pragma auto_vacuum = full;
    create table promised (n integer); insert into promised values (0);
    create table rows (n integer primary key, b blob);";

/// Rows come and go, so that the database grows and shrinks; the last transaction that was acknowledged.
fn work(connection: &Connection, device: &TestDevice) -> i64 {
    let transaction = |number: i64| -> rusqlite::Result<()> {
        connection.execute_batch("begin immediate")?;
        let (first, last) = (number * 100, number * 100 + number % 5 * 9);
        for row in first..=last {
            connection.execute(
                "insert into rows values (?1, zeroblob(?2))",
                [row, 200 + row % 7 * 150],
            )?;
        }
        connection.execute("delete from rows where n < ?1", [(number - 1) * 100])?;
        connection.execute("update promised set n = ?1", [number])?;
        connection.execute_batch("commit")
    };
    // The log is no part of the device: it would go on taking commits.
    let is_done = |number: &i64| transaction(*number).is_ok() && !device.is_cut();
    let done = (1..=TRANSACTIONS).take_while(is_done);
    done.last().unwrap_or(0)
}

/// What a recovered database has lost of what was acknowledged, or otherwise wrong.
fn judge(connection: &Connection, acknowledged: i64) -> Result<(), String> {
    integrity(connection)?;
    let told = |error: rusqlite::Error| error.to_string();
    let kept = number(connection, "select n from promised").map_err(told)?;
    if kept < acknowledged || kept > acknowledged + 1 {
        return Err(format!("{kept} kept of {acknowledged} acknowledged"));
    }
    let rows = number(connection, "select count(*) from rows").map_err(told)?;
    let wanted: i64 = [kept - 1, kept]
        .iter()
        .filter(|number| **number > 0)
        .map(|number| number % 5 * 9 + 1)
        .sum();
    match rows == wanted {
        true => Ok(()),
        false => Err(format!("{rows} rows after transaction {kept}")),
    }
}

/// One run that is cut, its I/Os, and what was found after it; `None` if it ended before it came so far.
fn cut(
    mode: &str,
    cut_at: Option<u64>,
    seed: u64,
    flush_does_nothing: bool,
) -> (u64, Option<Result<(), String>>) {
    let (directory, frozen) = (directory(), directory());
    let node = node(directory.path());
    let beside = ["spindle.db-journal", "spindle.db-wal"];
    let both = |name| (directory.path().join(name), frozen.path().join(name));
    let medium = Medium {
        cut_at,
        flush_does_nothing,
        seed,
        ..Medium::default()
    };
    let device = TestDevice::new(medium, &made(BEGIN), beside.map(both).into());
    let attached = attach(&node, &device);
    let acknowledged = match connect(&attached, mode) {
        Ok(connection) => {
            let _ = connection.pragma_update(None, "wal_autocheckpoint", 12);
            work(&connection, &device)
        }
        Err(_) => 0,
    };
    drop(attached);
    let ios = device.ios();
    if !device.is_cut() {
        assert_eq!(acknowledged, TRANSACTIONS);
        return (ios, None);
    }
    for (now, then) in beside.map(both) {
        let _ = std::fs::remove_file(&now);
        if then.exists() {
            std::fs::copy(&then, &now).unwrap();
        }
    }
    let recovered = TestDevice::new(Medium::default(), &device.bytes(), Vec::new());
    let attached = attach(&node, &recovered);
    let found = connect(&attached, mode).map_err(|error| error.to_string());
    let found = found.and_then(|connection| judge(&connection, acknowledged));
    (ios, Some(found))
}

/// Cuts spread over a run; what was wrong after the first of them that shows something. Connections of one process
/// share their memory for pages, so that what other tests do makes a run a little shorter or longer.
fn cuts(mode: &str, flush_does_nothing: bool) -> Result<(), String> {
    let (ios, _) = cut(mode, None, 0, flush_does_nothing);
    let mut reached = 0;
    for seed in 0..CUTS {
        let at = 2 + seed * (ios - 2) / CUTS;
        let (_, found) = cut(mode, Some(at), seed, flush_does_nothing);
        reached += u64::from(found.is_some());
        let found = found.unwrap_or(Ok(()));
        found.map_err(|wrong| format!("{mode}, cut at {at} of {ios}: {wrong}"))?;
    }
    assert!(reached > CUTS / 2, "{mode}: {reached} cuts of {CUTS}");
    Ok(())
}

#[test]
fn a_database_keeps_what_was_acknowledged() {
    for mode in ["delete", "truncate", "persist", "wal"] {
        cuts(mode, false).unwrap();
    }
}

#[test]
fn a_flush_that_does_nothing_is_found() {
    cuts("delete", true).unwrap_err();
    cuts("wal", true).unwrap_err();
}
