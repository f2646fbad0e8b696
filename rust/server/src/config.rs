//! What a server is made with. Every value is checked when the server starts.

use std::path::PathBuf;
use std::time::Duration;

use pie_host::settings::{Setting, Value, Word, find};
use pie_host::{Error, HttpInstance, HttpService, Launch, settings};

use crate::AuthConfig;

const SHORTEST: Duration = Duration::from_millis(1);
/// Ten years, so that deadlines can be computed.
const LONGEST: Duration = Duration::from_secs(300_000_000);

/// Users who take everything that may be installed, at their most, where nothing else is said.
const USERS_TO_FILL_DISK: u64 = 8;

/// Bytes that installed programs may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskShares {
    /// Those of all users.
    pub(crate) all: u64,
    pub(crate) of_user: u64,
}

settings! {
    /// The configuration of a server.
    pub struct ServerConfig in "server" {
        /// The address to serve on.
        host "host": String = "127.0.0.1".to_owned(), 1 => 255;
        /// The port to serve on; 0: a free one.
        port "port": u16 = 8080, 0 => u16::MAX;
        /// Origins of web pages that may connect, beside those of the own port on this machine.
        allowed_origins "allowed_origins": Vec<Origin> = Vec::new();
        /// Clients that may be connected at once.
        max_connections "max_connections": usize = 1024, 1 => 100_000;
        /// Clients of one user that may be connected at once.
        max_user_connections "max_user_connections": usize = 256, 1 => 100_000;
        /// Clients of one address that may be connected at once; an IPv6 network of 64 bits is one. Behind a proxy, all
        /// clients may have one address.
        max_address_connections "max_address_connections": usize = 512, 1 => 100_000;
        /// How long a client may take until it has said hello.
        handshake_timeout "handshake_timeout_s": Duration = Duration::from_secs(10), SHORTEST => LONGEST;
        /// Time between two pings of the server.
        ping_interval "ping_interval_s": Duration = Duration::from_secs(20), SHORTEST => LONGEST;
        /// How long a client may be silent, pongs included, before it is disconnected.
        idle_timeout "idle_timeout_s": Duration = Duration::from_secs(60), SHORTEST => LONGEST;
        /// How long a message of a client may take from its first byte to its last.
        frame_timeout "frame_timeout_s": Duration = Duration::from_secs(60), SHORTEST => LONGEST;
        /// Bytes of one message of a client.
        max_frame_bytes "max_frame_bytes": usize = 16 << 20, 4 << 10 => 1 << 30;
        /// Bytes of one upload, and of all that one connection holds.
        max_upload_bytes "max_upload_bytes": usize = 64 << 20, 1 << 10 => 1 << 30;
        /// Bytes of all uploads that the connections of one user hold.
        max_user_upload_bytes "max_user_upload_bytes": usize = 256 << 20, 1 << 10 => 1 << 40;
        /// Bytes of all uploads that the clients of one address hold, where clients may give themselves any name.
        max_address_upload_bytes "max_address_upload_bytes": usize = 512 << 20, 1 << 10 => 1 << 40;
        /// Installs of the clients of one address that are looked at, or wait for it, where clients may give themselves
        /// any name.
        max_address_installs "max_address_installs": usize = 32, 1 => 100_000;
        /// How long an upload may stand still before it is given up.
        upload_timeout "upload_timeout_s": Duration = Duration::from_secs(60), SHORTEST => LONGEST;
        /// Bytes of all installed programs.
        max_installed_bytes "max_installed_bytes": u64 = 16 << 30, 1 << 10 => 1 << 50;
        /// Bytes of the installed programs of one user; 0: an eighth of `max_installed_bytes`.
        max_user_installed_bytes "max_user_installed_bytes": u64 = 0, 0 => 1 << 50;
        /// Processes of one user that may live at once.
        max_processes_per_user "max_processes_per_user": usize = 64, 1 => 20_000;
        /// How long a process that is not detached outlives the connection of its client.
        grace "grace_s": Duration = Duration::from_secs(60), SHORTEST => LONGEST;
        /// How long a detached process may stand still while no client of its user is connected: it computes nothing,
        /// takes and writes no token, and has no children that live. Then it ends; none: never.
        detached "detached_s": Option<Duration> = Some(Duration::from_secs(86_400)), SHORTEST => LONGEST;
        /// How long processes may go on when the server is told to end.
        drain "drain_s": Duration = Duration::from_secs(30), SHORTEST => LONGEST;
        /// How long the events of an ended process wait for somebody to attach.
        retention "retention_s": Duration = Duration::from_secs(3600), SHORTEST => LONGEST;
        /// Ended processes that are kept at most; the oldest go first.
        max_ended_processes "max_ended_processes": usize = 1000, 0 => 100_000;
        /// Bytes of events and logs of ended processes that are kept; the oldest go first.
        max_ended_bytes "max_ended_bytes": usize = 256 << 20, 0 => 1 << 40;
        /// Bytes of events that are kept for a process to which nobody is attached.
        kept_bytes "kept_bytes": usize = 256 << 10, 0 => 1 << 30;
        /// Bytes of output of a process that `pie logs` can show.
        log_bytes "log_bytes": usize = 64 << 10, 0 => 1 << 30;
        /// Bytes of events that are sent ahead of what a client has acknowledged, for each process.
        window_bytes "window_bytes": usize = 1 << 20, 1 => 1 << 30;
        /// Requests by HTTP to programs that are under way at once.
        http_requests "http_requests": usize = 1024, 1 => 1 << 16;
        /// Requests by HTTP to the programs of one user that are under way at once.
        http_user_requests "http_user_requests": usize = 256, 1 => 1 << 16;
        /// Requests by HTTP to one program that are under way at once.
        http_program_requests "http_program_requests": usize = 128, 1 => 1 << 16;
        /// Requests by HTTP that a program with one instance for all has not taken yet.
        http_queue "http_queue": usize = 64, 1 => 1 << 16;
        /// Bytes of the head of a request by HTTP: its path and all headers.
        http_header_bytes "http_header_bytes": usize = 32 << 10, 8 << 10 => 1 << 20;
        /// Bytes of the body of a request by HTTP.
        http_body_bytes "http_body_bytes": u64 = 16 << 20, 0 => 1 << 40;
        /// Time until a program begins to answer a request by HTTP.
        http_answer "http_answer_s": Duration = Duration::from_secs(120), SHORTEST => LONGEST;
        /// Time that a client may take for the head of a request by HTTP and between two requests of a connection, that
        /// may pass between two parts of a body, and for which a client may take nothing of an answer.
        http_idle "http_idle_s": Duration = Duration::from_secs(60), SHORTEST => LONGEST;
        /// Time of a request by HTTP in all, its answer included; none: without limit.
        http_whole "http_s": Option<Duration> = Some(Duration::from_secs(3600)), SHORTEST => LONGEST;
        /// Whether browsers give pages of programs at `/http/~USER/` an origin of their own, so that their scripts
        /// reach neither other programs, nor the server as its visitor. Without, all programs of a server are of one
        /// origin.
        http_sandbox "http_sandbox": bool = true;
    }
    beside {
        /// The folder under which installed programs are kept.
        data_dir: PathBuf = PathBuf::new();
        /// Who may come in.
        auth: AuthConfig = AuthConfig::default();
        /// The program that every request by HTTP is for; none: paths name programs, and clients may connect.
        mount: Option<MountedProgram> = None;
    }
}

/// The one program of a server that serves nothing else.
#[derive(Clone, Debug)]
pub struct MountedProgram {
    /// What it is called in lists and logs.
    pub label: String,
    /// How an instance of it is launched.
    pub launch: Launch,
    /// What answers a request.
    pub instance: HttpInstance,
}

impl MountedProgram {
    /// How it serves: whoever reaches the server may ask.
    pub(crate) const fn service(&self) -> HttpService {
        HttpService {
            instance: self.instance,
            public: true,
        }
    }
}

/// The origin of web pages, as browsers send it: a scheme, a host, and a port that is not the scheme's own; nothing
/// after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    pub(crate) fn is(&self, sent: &str) -> bool {
        self.0 == sent
    }
}

impl Word for Origin {
    const EXPECTED: &'static str = "origins of the form https://example.org or http://example.org:8080, in lower \
                                    case and without a path";

    fn parse(text: &str) -> Option<Self> {
        let host = ["http://", "https://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))?;
        let is_plain =
            |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b':' | b'[' | b']');
        (!host.is_empty() && host.bytes().all(is_plain)).then(|| Self(text.to_owned()))
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

impl ServerConfig {
    /// The defaults, with installed programs under `data_dir`.
    pub fn new(data_dir: PathBuf) -> Self {
        Self {
            data_dir,
            ..Self::default()
        }
    }

    /// Every setting of the section, those of [`AuthConfig`] included.
    pub fn section() -> Vec<Setting> {
        [Self::settings(), AuthConfig::settings()].concat()
    }

    /// Sets one of the section by its key.
    ///
    /// # Errors
    /// `invalid-config` for a key that there is not, and for a value of another kind or out of its range.
    pub fn set_in_section(&mut self, key: &str, value: Value) -> Result<(), Error> {
        find(&Self::section(), "server", key)?;
        if AuthConfig::settings()
            .iter()
            .any(|setting| setting.name == key)
        {
            self.auth.set(key, value)
        } else {
            self.set(key, value)
        }
    }

    /// Bytes that programs may take on the disk.
    pub(crate) const fn disk_shares(&self) -> DiskShares {
        let all = self.max_installed_bytes;
        let of_user = match self.max_user_installed_bytes {
            0 => all / USERS_TO_FILL_DISK,
            of_user => of_user,
        };
        DiskShares { all, of_user }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// `invalid-config` for the first that is out of its range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_settings()?;
        self.auth.check_settings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pie_host::ErrorCode;

    fn set(key: &str, value: Value) -> Result<ServerConfig, String> {
        let mut config = ServerConfig::new(PathBuf::new());
        match config.set_in_section(key, value) {
            Ok(()) => Ok(config),
            Err(error) => {
                assert_eq!(error.code, ErrorCode::InvalidConfig);
                Err(error.message)
            }
        }
    }

    fn texts(texts: &[&str]) -> Value {
        Value::Texts(texts.iter().map(|&text| text.to_owned()).collect())
    }

    #[test]
    fn settings_have_names_and_ranges() {
        let config = set("max_connections", Value::Integer(7)).unwrap();
        assert_eq!(config.max_connections, 7);
        let config = set("grace_s", Value::Seconds(0.5)).unwrap();
        assert_eq!(config.grace, Duration::from_millis(500));
        assert!(
            set("allow_anonymous", Value::Flag(true))
                .unwrap()
                .auth
                .allow_anonymous
        );
        for (key, value, part) in [
            (
                "speed",
                Value::Integer(1),
                "no setting \"speed\" in [server]; there are host",
            ),
            ("speed", Value::Integer(1), "audit_log"),
            (
                "max_connections",
                Value::Integer(0),
                "server.max_connections = 0 is outside 1 to 100000",
            ),
            (
                "max_connections",
                Value::Seconds(1.5),
                "max_connections is a whole number",
            ),
            (
                "port",
                Value::Integer(65536),
                "server.port = 65536 is outside 0 to 65535",
            ),
            (
                "grace_s",
                Value::Seconds(-1.0),
                "-1 is outside 0.001 to 300000000; give a number of seconds",
            ),
            ("grace_s", Value::Seconds(f64::INFINITY), "inf is outside"),
            ("idle_timeout_s", Value::Integer(0), "0 is outside"),
            (
                "host",
                Value::Text(String::new()),
                "server.host = \"\" is outside 1 to 255",
            ),
        ] {
            let message = set(key, value).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn origins_are_as_browsers_send_them() {
        for origin in [
            "*",
            "example.org",
            "https://",
            "https://example.org/",
            "https://Example.org",
        ] {
            let message = set("allowed_origins", texts(&[origin])).unwrap_err();
            assert!(
                message.contains("server.allowed_origins holds"),
                "{message}"
            );
        }
        let config = set(
            "allowed_origins",
            texts(&["https://example.org:8443", "http://[::1]:80"]),
        )
        .unwrap();
        assert!(config.allowed_origins[1].is("http://[::1]:80"));
    }

    #[test]
    fn what_was_put_into_a_field_is_checked_at_the_start() {
        ServerConfig::default().check().unwrap();
        let fault = |change: fn(&mut ServerConfig)| {
            let mut config = ServerConfig::default();
            change(&mut config);
            config.check().unwrap_err().message
        };
        assert!(fault(|config| config.window_bytes = 0).contains("server.window_bytes = 0"));
        assert!(fault(|config| config.max_installed_bytes = 1).contains("max_installed_bytes = 1"));
        assert!(fault(|config| config.grace = Duration::MAX).contains("server.grace_s"));
    }
}
