//! What a server is made with. Every value is checked when the server starts.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use pie_host::{Error, ErrorCode};

use crate::AuthConfig;

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The address or name to listen on.
    pub host: String,
    /// The port to listen on; 0: a free one.
    pub port: u16,
    /// The folder under which installed programs are kept.
    pub data_dir: PathBuf,
    /// Who may come in.
    pub auth: AuthConfig,
    /// Origins of web pages that may connect, beside those of this host and port, as in `https://example.org`.
    pub allowed_origins: Vec<String>,
    /// Clients that may be connected at once.
    pub max_connections: usize,
    /// Clients of one user that may be connected at once.
    pub max_user_connections: usize,
    /// Clients of one address (of IPv6, of one network of 64 bits) that may be connected at once.
    pub max_address_connections: usize,
    /// Time from the connection to the hello.
    pub handshake_timeout: Duration,
    /// Time between two pings.
    pub ping_interval: Duration,
    /// Time without any frame after which a connection is closed.
    pub idle_timeout: Duration,
    /// Time from the first byte of a message of a client to its last, all its frames included.
    pub frame_timeout: Duration,
    /// Bytes of one message of a client.
    pub max_frame_bytes: usize,
    /// Bytes of one upload, and of all that one connection holds.
    pub max_upload_bytes: usize,
    /// Bytes of all uploads that the connections of one user hold.
    pub max_user_upload_bytes: usize,
    /// Time that an upload may stand still before it is given up.
    pub upload_timeout: Duration,
    /// Bytes of all installed programs.
    pub max_installed_bytes: u64,
    /// Processes of one user that may live at once.
    pub max_processes_per_user: usize,
    /// Time that a process without a client has until it is ended, unless it is detached.
    pub grace: Duration,
    /// Time that processes have to end when the server drains; then they are cancelled.
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
    /// Bytes of events that are sent ahead of what a client has acknowledged, for each process: the default and the
    /// most.
    pub window_bytes: usize,
}

impl ServerConfig {
    /// The defaults, with installed programs under `data_dir`.
    pub fn new(data_dir: PathBuf) -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8080,
            data_dir,
            auth: AuthConfig::default(),
            allowed_origins: Vec::new(),
            max_connections: 1024,
            max_user_connections: 256,
            max_address_connections: 512,
            handshake_timeout: Duration::from_secs(10),
            ping_interval: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(60),
            frame_timeout: Duration::from_secs(60),
            max_frame_bytes: 16 << 20,
            max_upload_bytes: 64 << 20,
            max_user_upload_bytes: 256 << 20,
            upload_timeout: Duration::from_secs(60),
            max_installed_bytes: 16 << 30,
            max_processes_per_user: 64,
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
    /// `invalid-config` for a name that is not a setting, and for a value out of its range.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), Error> {
        let setting = self
            .settings()
            .into_iter()
            .find(|setting| setting.0 == name);
        let Some((_, setting)) = setting else {
            let message = format!("server.{name} is no setting of the server");
            return Err(Error::new(ErrorCode::InvalidConfig, message));
        };
        match setting {
            Setting::Count(count, low, high) => *count = checked_count(name, value, low, high)?,
            Setting::Bytes(bytes, low, high) => {
                *bytes = checked_count(name, value, low, high)? as u64;
            }
            Setting::Time(time) => *time = checked_time(name, value)?,
        }
        Ok(())
    }

    /// Checks every value.
    ///
    /// # Errors
    /// `invalid-config` for the first that is out of its range or of another form.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (name, setting) in self.clone().settings() {
            match setting {
                Setting::Count(count, low, high) => {
                    check_count(name, *count as u64, low, high)?;
                }
                Setting::Bytes(bytes, low, high) => check_count(name, *bytes, low, high)?,
                Setting::Time(time) => drop(checked_time(name, time.as_secs_f64())?),
            }
        }
        self.allowed_origins
            .iter()
            .try_for_each(|origin| check_origin(origin))
    }

    /// The numbers with their names and ranges.
    fn settings(&mut self) -> [(&'static str, Setting<'_>); 21] {
        use Setting::{Bytes, Count, Time};
        [
            (
                "max_connections",
                Count(&mut self.max_connections, 1, 100_000),
            ),
            (
                "max_user_connections",
                Count(&mut self.max_user_connections, 1, 100_000),
            ),
            (
                "max_address_connections",
                Count(&mut self.max_address_connections, 1, 100_000),
            ),
            ("handshake_timeout_s", Time(&mut self.handshake_timeout)),
            ("ping_interval_s", Time(&mut self.ping_interval)),
            ("idle_timeout_s", Time(&mut self.idle_timeout)),
            ("frame_timeout_s", Time(&mut self.frame_timeout)),
            (
                "max_frame_bytes",
                Count(&mut self.max_frame_bytes, 4 << 10, 1 << 30),
            ),
            (
                "max_upload_bytes",
                Count(&mut self.max_upload_bytes, 1 << 10, 1 << 30),
            ),
            (
                "max_user_upload_bytes",
                Count(&mut self.max_user_upload_bytes, 1 << 10, 1 << 40),
            ),
            ("upload_timeout_s", Time(&mut self.upload_timeout)),
            (
                "max_installed_bytes",
                Bytes(&mut self.max_installed_bytes, 1 << 10, 1 << 50),
            ),
            (
                "max_processes_per_user",
                Count(&mut self.max_processes_per_user, 1, 20_000),
            ),
            ("grace_s", Time(&mut self.grace)),
            ("drain_s", Time(&mut self.drain)),
            ("retention_s", Time(&mut self.retention)),
            (
                "max_ended_processes",
                Count(&mut self.max_ended_processes, 0, 100_000),
            ),
            (
                "max_ended_bytes",
                Count(&mut self.max_ended_bytes, 0, 1 << 40),
            ),
            ("kept_bytes", Count(&mut self.kept_bytes, 0, 1 << 30)),
            ("log_bytes", Count(&mut self.log_bytes, 0, 1 << 30)),
            ("window_bytes", Count(&mut self.window_bytes, 1, 1 << 30)),
        ]
    }
}

/// One number of the configuration, with the least and the most that it may be.
enum Setting<'a> {
    Count(&'a mut usize, u64, u64),
    Bytes(&'a mut u64, u64, u64),
    /// All times have one range.
    Time(&'a mut Duration),
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the value is a whole number within the bounds, all below 2^53"
)]
fn checked_count(name: &str, value: f64, low: u64, high: u64) -> Result<usize, Error> {
    if value.fract() == 0.0 && (low as f64..=high as f64).contains(&value) {
        return Ok(value as usize);
    }
    Err(outside(name, value, &whole(low, high)))
}

fn check_count(name: &str, value: u64, low: u64, high: u64) -> Result<(), Error> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(outside(name, value, &whole(low, high)))
}

/// Origins are compared as browsers send them: a scheme, a host, and a port that is not the scheme's own; nothing after
/// that.
fn check_origin(origin: &str) -> Result<(), Error> {
    let host = ["http://", "https://"]
        .iter()
        .find_map(|scheme| origin.strip_prefix(scheme));
    let is_plain =
        |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b':' | b'[' | b']');
    if host.is_some_and(|host| !host.is_empty() && host.bytes().all(is_plain)) {
        return Ok(());
    }
    let shown: String = origin.chars().take(200).collect();
    let message = format!(
        "server.allowed_origins holds {shown:?}; an origin has the form https://example.org or http://example.org:8080, in lower case and without a path"
    );
    Err(Error::new(ErrorCode::InvalidConfig, message))
}

fn whole(low: u64, high: u64) -> String {
    format!("{low} to {high} (a whole number)")
}

/// A time of up to ten years, so that deadlines can be computed.
fn checked_time(name: &str, value: f64) -> Result<Duration, Error> {
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

fn outside(name: &str, value: impl Display, range: &str) -> Error {
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

    #[test]
    fn what_was_set_without_a_check_is_checked_at_the_start() {
        let config = || ServerConfig::new(PathBuf::new());
        config().check().unwrap();
        let fault = |change: fn(&mut ServerConfig)| {
            let mut config = config();
            change(&mut config);
            config.check().unwrap_err().message
        };
        assert!(fault(|config| config.window_bytes = 0).contains("server.window_bytes = 0"));
        assert!(fault(|config| config.max_installed_bytes = 1).contains("max_installed_bytes = 1"));
        assert!(fault(|config| config.grace = Duration::MAX).contains("server.grace_s"));
        for origin in [
            "*",
            "example.org",
            "https://",
            "https://example.org/",
            "https://Example.org",
        ] {
            let mut config = config();
            config.allowed_origins = vec![origin.to_owned()];
            assert!(
                config
                    .check()
                    .unwrap_err()
                    .message
                    .contains("allowed_origins"),
                "{origin}"
            );
        }
        let mut config = config();
        config.allowed_origins = vec![
            "https://example.org:8443".to_owned(),
            "http://[::1]:80".to_owned(),
        ];
        config.check().unwrap();
    }
}
