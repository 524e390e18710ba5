//! Runs on existing servers, as people start them: here a server of the test's own, come to by its port and by
//! its socket. Without such a server installed a test says so and does nothing.

mod agent;
mod catalogue;
mod distance;
mod load;
mod mariadb;
mod port;
mod postgres;
pub mod scene;
mod sshd;
mod template;
