//! The tests of this crate that need more than one of its modules, in one program: it is built and linked once.

mod check_scripts;
mod copies;
mod crashes;
mod dss;
mod dumps;
mod durability;
mod encrypted;
mod interrupted;
mod junk;
mod kill;
mod loads;
mod mariadb;
mod planted_postgres;
mod postgres;
mod power_cut;
mod progress;
mod promise;
mod reading;
mod scripts;
mod sessions;
mod small;
mod sql_workloads;
mod sqlite;
mod sqlite_devices;
mod tpch;
mod tpch_plans;
