//! What the configuration says of who may come in.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use pie_host::settings::{Field, Kind, Refusal, Value, Word};
use pie_host::{Error, ErrorCode, settings};

use crate::names;

settings! {
    /// What the configuration says of who may come in.
    pub struct AuthConfig in "server" {
        /// Whether clients have to prove who they are: `on`, by a key or a proxy; `off`, they are who they say; `auto`,
        /// on but on loopback without a trusted proxy.
        mode "auth": AuthMode = AuthMode::Auto;
        /// Lets `auth = "off"` stand on an address that others reach: they may say that they are any user.
        allow_anonymous "allow_anonymous": bool = false;
        /// Addresses or networks (`10.0.0.7`, `10.1.0.0/16`) of the proxies whose `user_header` names the user.
        trusted_proxies "trusted_proxies": Vec<Network> = Vec::new();
        /// The header in which they do; from anybody else it is refused.
        user_header "user_header": HeaderName = HeaderName("X-Pie-User".to_owned()), 1 => 64;
        /// Users who see and end what is anybody's, where no key says what they may do.
        operators "operators": Vec<UserName> = Vec::new();
        /// What clients call the server beside its address, as in `pie.example.org` or `pie.example.org:8443`: those
        /// who sign their hello sign that name.
        host_names "host_names": Vec<HostName> = Vec::new();
        /// The file in which a line of JSON stands for each thing that a client changed or was refused; empty: they go
        /// to the log, as `info` of `audit`.
        audit_log "audit_log": PathBuf = PathBuf::new();
    }
}

/// Whether clients have to prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// They have to, but on loopback without a trusted proxy.
    Auto,
    /// They have to.
    On,
    /// Whoever comes is who they say.
    Off,
}

impl AuthMode {
    const WORDS: [(&'static str, Self); 3] =
        [("auto", Self::Auto), ("on", Self::On), ("off", Self::Off)];
}

impl Field for AuthMode {
    const KIND: Kind = Kind::Choice(&["auto", "on", "off"]);
    type Bound = usize;

    fn bound(bound: usize) -> Value {
        bound.to_value()
    }

    fn to_value(&self) -> Value {
        let word = Self::WORDS.iter().find(|(_, mode)| mode == self);
        Value::Text(word.map_or_else(String::new, |(word, _)| (*word).to_owned()))
    }

    fn from_value(value: Value) -> Result<Self, Refusal> {
        let text = String::from_value(value)?;
        let mode = Self::WORDS.iter().find(|(word, _)| *word == text);
        mode.map(|(_, mode)| *mode).ok_or(Refusal {
            found: text,
            expected: "auto, on or off",
        })
    }
}

/// A proxy, or a network of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl Word for Network {
    const EXPECTED: &'static str = "addresses and networks, as in 10.0.0.7 and 10.1.0.0/16";

    fn parse(text: &str) -> Option<Self> {
        let network = text.parse::<IpNet>();
        let network = network.or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.ok().map(Self)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// The name of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderName(String);

impl HeaderName {
    /// In lower case, as headers are looked up.
    pub(crate) fn lower(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl Field for HeaderName {
    const KIND: Kind = Kind::Text;
    type Bound = usize;

    fn bound(bound: usize) -> Value {
        bound.to_value()
    }

    fn to_value(&self) -> Value {
        self.0.to_value()
    }

    fn from_value(value: Value) -> Result<Self, Refusal> {
        let text = String::from_value(value)?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if text.bytes().all(is_name) {
            return Ok(Self(text));
        }
        Err(Refusal {
            found: text,
            expected: "the name of a header, of letters, digits and hyphens",
        })
    }
}

/// The name of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserName(String);

impl UserName {
    pub(super) fn is(&self, user: &str) -> bool {
        self.0 == user
    }
}

impl Word for UserName {
    const EXPECTED: &'static str = "names of users";

    fn parse(text: &str) -> Option<Self> {
        names::check_user(text).ok()?;
        Some(Self(text.to_owned()))
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// What clients call a server, as in their `Host` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

impl Word for HostName {
    const EXPECTED: &'static str = "names of hosts, as in pie.example.org and pie.example.org:8443";

    fn parse(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
        (!text.is_empty() && text.bytes().all(is_plain)).then(|| Self(text.to_owned()))
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

impl AuthConfig {
    /// The file of the audit lines; none: they go to the log.
    pub(crate) fn audit_file(&self) -> Option<&Path> {
        Some(self.audit_log.as_path()).filter(|path| !path.as_os_str().is_empty())
    }

    /// True for a `Host` header by which clients call a server at `address`. What a client signs names its server by
    /// that header, so another server cannot have it sign for this one.
    pub(super) fn is_called(&self, host: &str, address: SocketAddr) -> bool {
        if self
            .host_names
            .iter()
            .any(|name| name.0.eq_ignore_ascii_case(host))
        {
            return true;
        }
        let own = match address.port() {
            80 => Some(host.to_ascii_lowercase()),
            port => host
                .strip_suffix(&format!(":{port}"))
                .map(str::to_ascii_lowercase),
        };
        let Some(own) = own else {
            return false;
        };
        let is_loopback = address.ip().to_canonical().is_loopback();
        let literal = own.trim_start_matches('[').trim_end_matches(']');
        let is_own = |ip: IpAddr| ip == address.ip() || (is_loopback && ip.is_loopback());
        (is_loopback && own == "localhost") || literal.parse().is_ok_and(is_own)
    }

    /// True for a `Host` header that no web page of elsewhere can have a browser send to this machine: its own names,
    /// and those of the configuration. The port is left out: clients come through tunnels.
    pub(super) fn is_local_name(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let own = name.trim_end_matches('.').to_ascii_lowercase();
        let literal = own.trim_start_matches('[').trim_end_matches(']');
        let ip = literal.parse::<IpAddr>();
        own == "localhost"
            || own.ends_with(".localhost")
            || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
            || self.host_names.iter().any(|known| {
                known.0.eq_ignore_ascii_case(host) || known.0.eq_ignore_ascii_case(name)
            })
    }

    /// True for a proxy whose word is taken.
    pub(super) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted_proxies
            .iter()
            .any(|network| network.0.contains(&address))
    }

    /// Whether clients have to prove who they are at an address, where `n_keys` may be used.
    ///
    /// # Errors
    /// `invalid-config` where nobody could, and where everybody could be anybody on an address that others reach.
    pub(crate) fn is_on(&self, address: IpAddr, n_keys: usize) -> Result<bool, Error> {
        let is_public = !address.to_canonical().is_loopback();
        let is_on = match self.mode {
            AuthMode::Off => false,
            AuthMode::On => true,
            AuthMode::Auto => is_public || !self.trusted_proxies.is_empty(),
        };
        let fault = if is_on && n_keys == 0 && self.trusted_proxies.is_empty() {
            format!(
                "clients at {address} have to prove who they are, and none could; add a key with `pie key add NAME --user USER`, name a proxy that \
                 knows your users with server.trusted_proxies, or serve on 127.0.0.1"
            )
        } else if !is_on && is_public && !self.allow_anonymous {
            format!(
                "server.auth = \"off\" lets whoever reaches {address} be anybody; leave it out and add keys with `pie key add`, or set \
                 server.allow_anonymous = true if nobody but you reaches that address"
            )
        } else if !is_on && is_public && !self.operators.is_empty() {
            format!(
                "server.operators names who sees and ends everything, and with server.auth = \"off\" whoever reaches {address} may take such a name; \
                 leave server.operators out, or server.auth"
            )
        } else {
            return Ok(is_on);
        };
        Err(Error::new(ErrorCode::InvalidConfig, fault))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Value {
        Value::Texts(texts.iter().map(|&text| text.to_owned()).collect())
    }

    fn is_on(
        mode: AuthMode,
        address: [u8; 4],
        n_keys: usize,
        change: impl FnOnce(&mut AuthConfig),
    ) -> Result<bool, String> {
        let mut config = AuthConfig {
            mode,
            ..AuthConfig::default()
        };
        change(&mut config);
        config
            .is_on(address.into(), n_keys)
            .map_err(|error| error.message)
    }

    #[test]
    fn a_server_is_called_by_its_address_and_its_names() {
        let mut config = AuthConfig::default();
        config
            .set("host_names", texts(&["Pie.example.org"]))
            .unwrap();
        let called = |host, address: &str| config.is_called(host, address.parse().unwrap());
        for (host, address) in [
            ("localhost:8080", "127.0.0.1:8080"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::1]:8080", "127.0.0.1:8080"),
            ("10.0.0.7:8080", "10.0.0.7:8080"),
            ("10.0.0.7", "10.0.0.7:80"),
            ("pie.example.org", "0.0.0.0:8080"),
        ] {
            assert!(called(host, address), "{host} {address}");
        }
        for (host, address) in [
            ("", "127.0.0.1:8080"),
            ("localhost:8081", "127.0.0.1:8080"),
            ("localhost", "127.0.0.1:8080"),
            ("localhost:8080", "10.0.0.7:8080"),
            ("evil.example:8080", "127.0.0.1:8080"),
            ("10.0.0.8:8080", "10.0.0.7:8080"),
            ("pie.example.org:8080", "0.0.0.0:8080"),
        ] {
            assert!(!called(host, address), "{host} {address}");
        }
        let refused = config.set("host_names", texts(&["a/b"]));
        assert!(refused.unwrap_err().message.contains("names of hosts"));
    }

    #[test]
    fn a_name_that_leads_here_from_elsewhere_is_not_local() {
        let mut config = AuthConfig::default();
        config
            .set("host_names", texts(&["pie.example.org", "box:8443"]))
            .unwrap();
        for host in [
            "localhost",
            "LOCALHOST:9000",
            "localhost.:80",
            "app.localhost:80",
            "127.0.0.1:8080",
            "127.1.2.3",
            "[::1]",
            "[::1]:8080",
            "pie.example.org",
            "Pie.example.org:1",
            "box:8443",
        ] {
            assert!(config.is_local_name(host), "{host}");
        }
        for host in [
            "",
            ":80",
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example:8080",
            "localhost.evil.example",
            "notlocalhost",
            "0.0.0.0:8080",
            "10.0.0.7",
            "box",
            "box:1",
        ] {
            assert!(!config.is_local_name(host), "{host}");
        }
    }

    #[test]
    fn only_loopback_goes_without() {
        const HOME: [u8; 4] = [127, 0, 0, 1];
        const PUBLIC: [u8; 4] = [0, 0, 0, 0];
        let proxy = |config: &mut AuthConfig| {
            config.set("trusted_proxies", texts(&["10.0.0.1"])).unwrap();
        };
        assert_eq!(is_on(AuthMode::Auto, HOME, 0, |_| ()), Ok(false));
        assert_eq!(is_on(AuthMode::Auto, HOME, 1, |_| ()), Ok(false));
        assert_eq!(is_on(AuthMode::Auto, HOME, 0, proxy), Ok(true));
        assert_eq!(is_on(AuthMode::Auto, PUBLIC, 1, |_| ()), Ok(true));
        assert_eq!(is_on(AuthMode::Auto, PUBLIC, 0, proxy), Ok(true));
        assert_eq!(is_on(AuthMode::On, HOME, 1, |_| ()), Ok(true));
        assert_eq!(is_on(AuthMode::Off, HOME, 0, |_| ()), Ok(false));
        assert_eq!(
            is_on(AuthMode::Off, PUBLIC, 1, |config| config.allow_anonymous =
                true),
            Ok(false)
        );
        for (mode, address, n_keys, part) in [
            (AuthMode::Auto, PUBLIC, 0, "pie key add"),
            (AuthMode::On, HOME, 0, "server.trusted_proxies"),
            (AuthMode::Off, PUBLIC, 1, "server.allow_anonymous = true"),
        ] {
            assert!(
                is_on(mode, address, n_keys, |_| ())
                    .unwrap_err()
                    .contains(part)
            );
        }
        assert!(
            is_on(AuthMode::Auto, PUBLIC, 0, |config| config.allow_anonymous =
                true)
            .is_err()
        );
        let anonymous_operators = |config: &mut AuthConfig| {
            config.allow_anonymous = true;
            config.set("operators", texts(&["ada"])).unwrap();
        };
        let message = is_on(AuthMode::Off, PUBLIC, 0, anonymous_operators).unwrap_err();
        assert!(message.contains("server.operators"), "{message}");
        assert_eq!(
            is_on(AuthMode::Off, HOME, 0, anonymous_operators),
            Ok(false)
        );
    }

    #[test]
    fn values_are_checked() {
        let mut config = AuthConfig::default();
        let text = |text: &str| Value::Text(text.to_owned());
        config.set("auth", text("on")).unwrap();
        config
            .set("user_header", text("X-Auth-Request-User"))
            .unwrap();
        config.set("audit_log", text("/tmp/a")).unwrap();
        assert_eq!(config.mode, AuthMode::On);
        assert_eq!(config.user_header.lower(), "x-auth-request-user");
        assert_eq!(config.audit_file(), Some(Path::new("/tmp/a")));
        for (key, value) in [
            ("auth", text("yes")),
            ("user_header", text("")),
            ("user_header", text(&"a".repeat(65))),
            ("user_header", text("a b")),
            ("user_header", text("a:")),
            ("trusted_proxies", texts(&["localhost"])),
            ("trusted_proxies", texts(&["10.0.0.0/33"])),
            ("operators", texts(&["../x"])),
        ] {
            let found = match &value {
                Value::Texts(texts) => texts[0].clone(),
                value => value.to_string(),
            };
            let message = config.set(key, value).unwrap_err().message;
            let named = message.contains(key) && message.contains(&found);
            assert!(named, "{message}");
        }
    }
}
