//! The servers that the operator configures, and what all of them share: settings of `[mcp.NAME]` and `[runtime]`.

use std::path::PathBuf;
use std::time::Duration;

use pie_core::settings::Word;
use pie_core::{ErrorCode, settings};

use crate::Error;
use crate::network::target::Target;

/// The longest part of a command, or variable, or header.
const MAX_PART_BYTES: usize = 32 << 10;
/// The longest name of a server.
const MAX_NAME_BYTES: usize = 64;
/// The most servers that are configured, or that one client registers.
pub(crate) const MAX_SERVERS: usize = 256;

settings! {
    /// What all servers of MCP share.
    pub struct McpConfig in "runtime" {
        /// Sessions with MCP servers that the programs of one user have open at once.
        user_sessions "mcp_user_sessions": usize = 128, 1 => 1 << 16;
        /// Calls of MCP servers of the programs of one user that are under way at once.
        user_calls "mcp_user_calls": usize = 128, 1 => 1 << 16;
        /// How often one MCP server is started, or connected to, within a minute; beyond that its calls are refused for
        /// the rest of it.
        starts_per_minute "mcp_starts_per_minute": usize = 10, 1 => 1 << 16;
    }
}

settings! {
    /// An MCP server that the operator configures.
    pub struct McpServerConfig in "mcp" {
        /// The command of a server that is a process, and its arguments; the server is spoken to by its standard input
        /// and output. It is started when it is first asked, and ends with the engine.
        command "command": Vec<Part> = Vec::new();
        /// Variables that the process has beside those of the engine, each as `NAME=VALUE`.
        env "env": Vec<Variable> = Vec::new();
        /// The folder in which the process runs; empty: that of the engine.
        cwd "cwd": PathBuf = PathBuf::new();
        /// The address of a server that is spoken to by HTTP (the transport "streamable HTTP" of MCP), in the place of
        /// `command`. It need not stand in `runtime.allow_net`, which is for what programs ask for themselves.
        url "url": String = String::new(), 0 => 2048;
        /// Headers that requests to `url` have, each as `NAME: VALUE`.
        headers "headers": Vec<HeaderLine> = Vec::new();
        /// Users whose programs may use it; none: all.
        users "users": Vec<Part> = Vec::new();
        /// How long it may take to start, or to connect to, and to say hello.
        start "start_s": Duration = Duration::from_secs(30), Duration::from_millis(10) => Duration::from_secs(86_400);
    }
}

impl McpServerConfig {
    /// Whether the programs of a user may use it.
    pub(crate) fn allows(&self, user: &str) -> bool {
        self.users.is_empty() || self.users.iter().any(|one| one.0 == user)
    }

    /// Checks what is configured under that name.
    ///
    /// # Errors
    /// `invalid-config`.
    pub(crate) fn check(&self, name: &str) -> Result<(), Error> {
        self.check_settings()?;
        let invalid =
            |why: String| Error::new(ErrorCode::InvalidConfig, format!("mcp.{name}: {why}"));
        if !is_server_name(name) {
            let why = format!(
                "{name:?} cannot be the name of a server; give 1 to {MAX_NAME_BYTES} letters, digits, '.', '_' and '-'"
            );
            return Err(invalid(why));
        }
        match (self.command.is_empty(), self.url.is_empty()) {
            (true, true) => Err(invalid(
                "it has neither a command nor a url; give one of them".to_owned(),
            )),
            (false, false) => Err(invalid(
                "it has a command and a url; give one of them".to_owned(),
            )),
            (false, true) => Ok(()),
            (true, false) => Target::parse(&self.url)
                .map(drop)
                .map_err(|error| invalid(error.message)),
        }
    }
}

/// Whether a server can be called so.
pub(crate) fn is_server_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_good)
}

/// A text that stands for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part(pub(crate) String);

impl Word for Part {
    const EXPECTED: &'static str = "a text of at most 32768 bytes without the character 0";

    fn parse(text: &str) -> Option<Self> {
        is_part(text).then(|| Self(text.to_owned()))
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// A variable of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Word for Variable {
    const EXPECTED: &'static str = "NAME=VALUE, as in LANG=C";

    fn parse(text: &str) -> Option<Self> {
        let (name, value) = text.split_once('=')?;
        (is_part(text) && !name.is_empty()).then(|| Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }

    fn text(&self) -> String {
        format!("{}={}", self.name, self.value)
    }
}

/// A header of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderLine {
    pub(crate) name: http::HeaderName,
    pub(crate) value: http::HeaderValue,
}

impl Word for HeaderLine {
    const EXPECTED: &'static str = "NAME: VALUE, as in Authorization: Bearer abc";

    fn parse(text: &str) -> Option<Self> {
        let (name, value) = text.split_once(':')?;
        Some(Self {
            name: name.trim().parse().ok()?,
            value: value.trim().parse().ok()?,
        })
    }

    fn text(&self) -> String {
        let value = String::from_utf8_lossy(self.value.as_bytes());
        format!("{}: {value}", self.name)
    }
}

fn is_part(text: &str) -> bool {
    text.len() <= MAX_PART_BYTES && !text.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> McpServerConfig {
        McpServerConfig {
            command: vec![Part("server".to_owned())],
            ..McpServerConfig::default()
        }
    }

    #[test]
    fn a_server_has_a_command_or_an_address() {
        command().check("files").unwrap();
        let web = McpServerConfig {
            url: "http://localhost:1/mcp".to_owned(),
            ..McpServerConfig::default()
        };
        web.check("web-1.x").unwrap();
        let both = McpServerConfig {
            url: web.url.clone(),
            ..command()
        };
        let foreign = McpServerConfig {
            url: "ftp://localhost".to_owned(),
            ..web
        };
        for (config, name, part) in [
            (McpServerConfig::default(), "a", "neither a command nor"),
            (both, "a", "a command and a url"),
            (foreign, "a", "neither http nor https"),
            (command(), "", "cannot be the name"),
            (command(), "a b", "cannot be the name"),
        ] {
            let error = config.check(name).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidConfig);
            assert!(error.message.contains(part), "{}", error.message);
        }
    }

    #[test]
    fn users_may_be_named() {
        let mut config = command();
        assert!(config.allows("ada"));
        config.users = vec![Part("ada".to_owned())];
        assert!(config.allows("ada") && !config.allows("bob"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["A=b=c", "A="] {
            assert_eq!(Variable::parse(text).unwrap().text(), text);
        }
        for text in ["", "=b", "A", "A=\0"] {
            assert_eq!(Variable::parse(text), None, "{text:?}");
        }
        let header = HeaderLine::parse("Authorization:  Bearer x ").unwrap();
        assert_eq!(header.text(), "authorization: Bearer x");
        for text in ["", "a", ": b", "a b: c", "a: b\nc: d"] {
            assert_eq!(HeaderLine::parse(text), None, "{text:?}");
        }
    }
}
