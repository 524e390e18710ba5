//! The tests of this crate that need more than one of its modules, in one program: it is built and linked once.

#![allow(clippy::disallowed_methods)]

mod by_turns;
mod calibrate;
mod calibrate_fio;
mod calibrate_kept;
mod calibrate_layouts;
mod calibrate_writes;
mod clients_counted;
mod directories;
mod end_to_end;
mod experiment_errors;
mod few_resources;
mod flush_honesty;
mod full_disk;
mod fuse_server;
mod help;
mod hostile_directory;
mod hostile_text;
mod import;
mod interrupted;
mod layouts;
mod limits;
mod mariadb_run;
mod old_run;
mod on_volumes;
mod outputs_and_signals;
mod postgres_run;
mod provision_commands;
mod random_bytes;
mod rates;
mod reckoning;
mod report;
mod report_damage;
mod report_page;
mod results;
mod results_database;
mod server_by_url;
mod several_runs;
mod silent_servers;
mod sqlite_run;
mod standstill;
mod turned_devices;
mod watch;
mod why;
mod without_a_file;
