//! The tests of this crate that need more than one of its modules, in one program: it is built and linked once.

mod end_to_end;
mod experiment_errors;
mod full_disk;
mod layouts;
mod limits;
mod mariadb_run;
mod on_volumes;
mod postgres_run;
mod provision_commands;
mod random_bytes;
mod report;
mod report_damage;
mod report_page;
mod results;
mod server_by_url;
mod sqlite_run;
mod watch;
mod why;
