//! What the maps of free space say after a restart: where inserts of a table continue, and which leaves of an index
//! hold nothing.

use crate::block::space_map::Fill;
use crate::change::space::hear_maps;
use crate::error::Result;
use crate::index::Index;
use crate::sga::Sga;
use crate::table::Table;
use crate::wait_event::ProcessWaits;

/// Which blocks of a table have room, and which was the last that was used.
pub(super) async fn recall_table(sga: &Sga, waits: &ProcessWaits, table: &Table) -> Result<()> {
    if !table.free.is_mapped() {
        return Ok(());
    }
    let first_insert = table.loaded_rows() / table.rows_per_block() as u64;
    let (mut known, mut waiting, mut unused) = (Vec::new(), Vec::new(), Vec::new());
    let (mut number, mut next) = (0, first_insert);
    while let Some((first, count)) = table.space.run(number) {
        hear_maps(sga, waits, first, count, |address, fill| {
            match fill {
                Fill::Untold if number >= first_insert => unused.push(address),
                Fill::Untold => {}
                Fill::Full | Fill::Room => {
                    next = next.max(number + 1);
                    // Taken by sessions that never came to use them.
                    waiting.append(&mut unused);
                }
            }
            if fill == Fill::Room {
                known.push(address);
                waiting.push(address);
            }
            number += 1;
        })
        .await?;
    }
    table.free.recall(&known, &waiting, next);
    Ok(())
}

/// Which leaves of an index hold nothing.
pub(super) async fn recall_index(sga: &Sga, waits: &ProcessWaits, index: &Index) -> Result<()> {
    if !index.emptied.is_mapped() {
        return Ok(());
    }
    let (mut emptied, mut number) = (Vec::new(), 0);
    while let Some((first, count)) = index.space.run(number) {
        hear_maps(sga, waits, first, count, |address, fill| {
            if fill == Fill::Room {
                emptied.push(address);
            }
        })
        .await?;
        number += u64::from(count);
    }
    index.emptied.recall(&emptied, &emptied, number);
    Ok(())
}
