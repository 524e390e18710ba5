//! Stock level (clause 2.8): how many of the items last ordered in a district run short. One statement, which changes
//! nothing.

use super::random::uniform;
use super::statements::LOW_STOCK;
use super::terms::{DISTRICTS, STOCK_LEVEL, Tpcc, int};
use crate::session::SessionError;
use crate::sql::SqlTransaction;
use crate::sql::connection::SqlConnection;
use crate::workload::Client;

/// The inputs.
pub struct StockLevel {
    pub(super) warehouse: u64,
    pub(super) district: u64,
    pub(super) threshold: u64,
    procedure: bool,
}

impl StockLevel {
    pub fn draw(tpcc: &Tpcc, client: &mut Client) -> StockLevel {
        // A terminal has its own district (clause 2.8.1.1).
        let district = client.number as u64 / u64::from(tpcc.warehouses) % DISTRICTS + 1;
        StockLevel {
            warehouse: tpcc.home(client),
            district,
            threshold: uniform(&mut client.rng, 10, 20),
            procedure: tpcc.procedures,
        }
    }
}

impl SqlTransaction for StockLevel {
    fn kind(&self) -> usize {
        STOCK_LEVEL
    }

    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        let statement = if self.procedure {
            STOCK_LEVEL
        } else {
            LOW_STOCK
        };
        let parameters = [int(self.warehouse), int(self.district), int(self.threshold)];
        let rows = connection.query(statement, &parameters, &mut |row| row.int(0).map(drop))?;
        match rows {
            1 => Ok(()),
            _ => Err(SessionError::Failed(format!(
                "{rows} answers to one question"
            ))),
        }
    }
}
