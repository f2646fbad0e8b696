//! A server with its host, and the programs that the tests launch.

use std::sync::Arc;

use pie_host::{Host, HostConfig};
use pie_server::{Server, ServerConfig};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::client::Client;
use crate::guest;

/// Returns `true` at once.
pub(crate) fn quick() -> Vec<u8> {
    guest::plain_bytes(
        r#"(func (export "run") (param i32 i32) (result i32) (call $ok (i32.const 1024) (i32.const 4)))"#,
    )
}

/// Returns its input.
pub(crate) fn returning() -> Vec<u8> {
    guest::plain_bytes(
        r#"(func (export "run") (param i32 i32) (result i32) (call $ok (local.get 0) (local.get 1)))"#,
    )
}

/// Returns a number of so many digits.
pub(crate) fn long(n_digits: u32) -> Vec<u8> {
    guest::plain_bytes(&format!(
        r#"(func (export "run") (param i32 i32) (result i32)
          (drop (memory.grow (i32.const 128)))
          (memory.fill (i32.const 65536) (i32.const 49) (i32.const {n_digits}))
          (call $ok (i32.const 65536) (i32.const {n_digits})))"#
    ))
}

/// Fails with an error of a kind of so many letters.
pub(crate) fn failing(n_letters: u32) -> Vec<u8> {
    guest::plain_bytes(&format!(
        r#"(func (export "run") (param i32 i32) (result i32)
          (memory.fill (i32.const 2048) (i32.const 107) (i32.const {n_letters}))
          (memory.fill (i32.const 0) (i32.const 0) (i32.const 64))
          (i32.store (i32.const 0) (i32.const 1))
          (i32.store (i32.const 4) (i32.const 2048))
          (i32.store (i32.const 8) (i32.const {n_letters}))
          (i32.const 0))"#
    ))
}

/// Never ends.
pub(crate) fn spinning() -> Vec<u8> {
    guest::plain_bytes(
        r#"(func (export "run") (param i32 i32) (result i32) (loop $again (br $again)) (unreachable))"#,
    )
}

/// Waits for a message, sends it back and returns `true`.
pub(crate) fn echoing() -> Vec<u8> {
    guest::talking_bytes(guest::ECHO)
}

/// Sends `hello` so many times and returns `true`.
pub(crate) fn chatty(n_times: u32) -> Vec<u8> {
    guest::talking_bytes(&format!(
        r#"(func (export "run") (param i32 i32) (result i32)
            (local $n i32)
            (loop $again
              (call $send (i32.const 1039) (i32.const 5))
              (local.set $n (i32.add (local.get $n) (i32.const 1)))
              (br_if $again (i32.lt_u (local.get $n) (i32.const {n_times}))))
            (call $ok (i32.const 1024) (i32.const 4)))"#
    ))
}

/// A server on a free port, its folder, and the threads of the test's clients.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) host: Arc<Host>,
    pub(crate) folder: Arc<TempDir>,
    runtime: Runtime,
}

impl World {
    /// A server with the default configuration.
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    /// A server whose configuration `change` has changed.
    pub(crate) fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::over(
            Arc::new(tempfile::tempdir().unwrap()),
            HostConfig::default(),
            change,
        )
    }

    /// A server over a folder and a host of the test's own.
    pub(crate) fn over(
        folder: Arc<TempDir>,
        host: HostConfig,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        let mut config = ServerConfig::new(folder.path().to_owned());
        config.port = 0;
        change(&mut config);
        let host = Arc::new(Host::new(host).unwrap());
        Self {
            server: Server::start(host.clone(), config).unwrap(),
            host,
            folder,
            runtime: Runtime::new().unwrap(),
        }
    }

    /// Runs clients.
    pub(crate) fn run<T>(&self, clients: impl Future<Output = T>) -> T {
        self.runtime.block_on(clients)
    }

    /// A client of a user that has said hello.
    pub(crate) async fn client(&self, user: &str) -> Client {
        Client::connect(self.server.address(), user).await
    }
}
