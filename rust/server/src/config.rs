//! What a server is made with. Every value is checked when the server starts.

use std::path::PathBuf;
use std::time::Duration;

use pie_host::{Error, ErrorCode};

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The address or name to listen on.
    pub host: String,
    /// The port to listen on; 0: a free one.
    pub port: u16,
    /// The folder under which installed programs are kept.
    pub data_dir: PathBuf,
    /// Origins of web pages that may connect, beside those of this host and port, as in `https://example.org`.
    pub allowed_origins: Vec<String>,
    /// Clients that may be connected at once.
    pub max_connections: usize,
    /// Time from the connection to the hello.
    pub handshake_timeout: Duration,
    /// Time between two pings.
    pub ping_interval: Duration,
    /// Time without any frame after which a connection is closed.
    pub idle_timeout: Duration,
    /// Bytes of one message of a client.
    pub max_frame_bytes: usize,
    /// Bytes of one upload, and of all that one connection holds.
    pub max_upload_bytes: usize,
    /// Bytes of all installed programs.
    pub max_installed_bytes: u64,
    /// Processes of one user that may live at once.
    pub max_processes_per_user: usize,
    /// Time that a process without a client has until it is ended, unless it is detached.
    pub grace: Duration,
    /// Time that processes have to end when the server drains.
    pub drain: Duration,
    /// Time that ended processes are kept.
    pub retention: Duration,
    /// Ended processes that are kept.
    pub max_ended_processes: usize,
    /// Bytes of events and logs of ended processes that are kept; the oldest processes go first.
    pub max_ended_bytes: usize,
    /// Bytes of events kept for a process to which nobody is attached.
    pub kept_bytes: usize,
    /// Bytes of output kept as the log of a process.
    pub log_bytes: usize,
    /// Bytes of events that are sent ahead of what a client has acknowledged, for each process: the default and the most.
    pub window_bytes: usize,
}

impl ServerConfig {
    /// The defaults, with installed programs under `data_dir`.
    pub fn new(data_dir: PathBuf) -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8080,
            data_dir,
            allowed_origins: Vec::new(),
            max_connections: 1024,
            handshake_timeout: Duration::from_secs(10),
            ping_interval: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(60),
            max_frame_bytes: 16 << 20,
            max_upload_bytes: 64 << 20,
            max_installed_bytes: 16 << 30,
            max_processes_per_user: 256,
            grace: Duration::from_secs(60),
            drain: Duration::from_secs(30),
            retention: Duration::from_secs(3600),
            max_ended_processes: 1000,
            max_ended_bytes: 256 << 20,
            kept_bytes: 256 << 10,
            log_bytes: 64 << 10,
            window_bytes: 1 << 20,
        }
    }

    /// Sets the number of a name, as in `max_connections` or `grace_s` (times in seconds).
    ///
    /// # Errors
    /// `invalid-config` for a name that is no setting, and for a value out of its range.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), Error> {
        match name {
            "max_connections" => self.max_connections = count(name, value, 1, 100_000)?,
            "handshake_timeout_s" => self.handshake_timeout = time(name, value)?,
            "ping_interval_s" => self.ping_interval = time(name, value)?,
            "idle_timeout_s" => self.idle_timeout = time(name, value)?,
            "max_frame_bytes" => self.max_frame_bytes = count(name, value, 4 << 10, 1 << 30)?,
            "max_upload_bytes" => self.max_upload_bytes = count(name, value, 1 << 10, 1 << 30)?,
            "max_installed_bytes" => {
                self.max_installed_bytes = count(name, value, 1 << 10, 1 << 50)? as u64;
            }
            "max_processes_per_user" => {
                self.max_processes_per_user = count(name, value, 1, 20_000)?;
            }
            "grace_s" => self.grace = time(name, value)?,
            "drain_s" => self.drain = time(name, value)?,
            "retention_s" => self.retention = time(name, value)?,
            "max_ended_processes" => self.max_ended_processes = count(name, value, 0, 100_000)?,
            "max_ended_bytes" => self.max_ended_bytes = count(name, value, 0, 1 << 40)?,
            "kept_bytes" => self.kept_bytes = count(name, value, 0, 1 << 30)?,
            "log_bytes" => self.log_bytes = count(name, value, 0, 1 << 30)?,
            "window_bytes" => self.window_bytes = count(name, value, 1, 1 << 30)?,
            _ => {
                let message = format!("server.{name} is no setting of the server");
                return Err(Error::new(ErrorCode::InvalidConfig, message));
            }
        }
        Ok(())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the value is a whole number within the bounds, all below 2^53"
)]
fn count(name: &str, value: f64, low: u64, high: u64) -> Result<usize, Error> {
    if value.fract() == 0.0 && (low as f64..=high as f64).contains(&value) {
        return Ok(value as usize);
    }
    Err(outside(
        name,
        value,
        &format!("{low} to {high} (a whole number)"),
    ))
}

/// A time of up to ten years, so that deadlines can be computed.
fn time(name: &str, value: f64) -> Result<Duration, Error> {
    const SHORTEST_S: f64 = 0.001;
    const LONGEST_S: f64 = 300_000_000.0;
    if (SHORTEST_S..=LONGEST_S).contains(&value) {
        return Ok(Duration::from_secs_f64(value));
    }
    Err(outside(
        name,
        value,
        &format!("{SHORTEST_S} to {LONGEST_S} (seconds)"),
    ))
}

fn outside(name: &str, value: f64, range: &str) -> Error {
    Error::new(
        ErrorCode::InvalidConfig,
        format!("server.{name} = {value} is outside {range}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: f64) -> Result<ServerConfig, String> {
        let mut config = ServerConfig::new(PathBuf::new());
        match config.set(name, value) {
            Ok(()) => Ok(config),
            Err(error) => {
                assert_eq!(error.code, ErrorCode::InvalidConfig);
                Err(error.message)
            }
        }
    }

    #[test]
    fn settings_have_names_and_ranges() {
        assert_eq!(set("max_connections", 7.0).unwrap().max_connections, 7);
        assert_eq!(
            set("grace_s", 0.5).unwrap().grace,
            Duration::from_millis(500)
        );
        for (name, value, part) in [
            ("port", 1.0, "server.port is no setting"),
            ("max_connections", 0.0, "is outside 1 to 100000"),
            (
                "max_connections",
                1.5,
                "1.5 is outside 1 to 100000 (a whole number)",
            ),
            ("max_connections", f64::NAN, "NaN is outside"),
            (
                "grace_s",
                -1.0,
                "-1 is outside 0.001 to 300000000 (seconds)",
            ),
            ("grace_s", f64::INFINITY, "inf is outside"),
            ("idle_timeout_s", 0.0, "0 is outside"),
        ] {
            let message = set(name, value).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
