//! What the configuration says of who may come in.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use pie_host::{Error, ErrorCode};

use crate::names;

/// The most proxies and operators that may be named.
const MAX_NAMED: usize = 1000;

/// Whether clients have to prove who they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthMode {
    /// They have to, but on loopback without a trusted proxy.
    #[default]
    Auto,
    /// They have to.
    On,
    /// Whoever comes is who they say.
    Off,
}

/// What the configuration says of who may come in.
#[derive(Clone, Debug)]
pub struct AuthConfig {
    /// Whether clients have to prove who they are.
    pub mode: AuthMode,
    /// Lets `Off` stand on an address that others reach.
    pub allow_anonymous: bool,
    /// The proxies whose header names a user.
    pub trusted_proxies: Vec<IpNet>,
    /// That header, in lower case.
    pub user_header: String,
    /// Users that are operators where no key says what they are.
    pub operators: Vec<String>,
    /// What clients call the server, beside its address, as in their `Host` header: `pie.example.org` or
    /// `pie.example.org:8443`.
    pub host_names: Vec<String>,
    /// The file of the audit lines; none: they go to the log.
    pub audit_log: Option<PathBuf>,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            mode: AuthMode::Auto,
            allow_anonymous: false,
            trusted_proxies: Vec::new(),
            user_header: "x-pie-user".to_owned(),
            operators: Vec::new(),
            host_names: Vec::new(),
            audit_log: None,
        }
    }
}

impl AuthConfig {
    /// Sets a text by its name: `auth`, `user_header` or `audit_log`. False for another name.
    ///
    /// # Errors
    /// `invalid-config` for a value that cannot be.
    pub fn set_text(&mut self, name: &str, value: &str) -> Result<bool, Error> {
        match name {
            "auth" => {
                self.mode = match value {
                    "auto" => AuthMode::Auto,
                    "on" => AuthMode::On,
                    "off" => AuthMode::Off,
                    _ => return Err(refused(name, value, "auto, on or off")),
                }
            }
            "user_header" => {
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                if !(1..=64).contains(&value.len()) || !value.bytes().all(is_name) {
                    return Err(refused(
                        name,
                        value,
                        "the name of a header, of letters, digits and hyphens",
                    ));
                }
                self.user_header = value.to_ascii_lowercase();
            }
            "audit_log" => self.audit_log = (!value.is_empty()).then(|| PathBuf::from(value)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets a list by its name: `trusted_proxies`, `operators` or `host_names`. False for another name.
    ///
    /// # Errors
    /// `invalid-config` for a value that cannot be.
    pub fn set_list(&mut self, name: &str, values: Vec<String>) -> Result<bool, Error> {
        if values.len() > MAX_NAMED {
            return Err(refused(name, "a list", &format!("at most {MAX_NAMED}")));
        }
        match name {
            "trusted_proxies" => {
                let network = |value: &String| {
                    let parsed = value
                        .parse::<IpNet>()
                        .or_else(|_| value.parse::<IpAddr>().map(IpNet::from));
                    parsed.map_err(|_| {
                        refused(
                            name,
                            value,
                            "addresses and networks, as in 10.0.0.7 and 10.1.0.0/16",
                        )
                    })
                };
                self.trusted_proxies = values.iter().map(network).collect::<Result<_, _>>()?;
            }
            "operators" => {
                for user in &values {
                    names::check_user(user).map_err(|_| refused(name, user, "names of users"))?;
                }
                self.operators = values;
            }
            "host_names" => {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
                if let Some(value) = values
                    .iter()
                    .find(|value| value.is_empty() || !value.bytes().all(is_plain))
                {
                    let expected = "names of hosts, as in pie.example.org and pie.example.org:8443";
                    return Err(refused(name, value, expected));
                }
                self.host_names = values;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// True for a `Host` header by which clients call a server at `address`. What a client signs names its server by
    /// that header, so another server cannot have it sign for this one.
    pub(super) fn is_called(&self, host: &str, address: SocketAddr) -> bool {
        if self
            .host_names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(host))
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

    /// True for a proxy whose word is taken.
    pub(super) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted_proxies
            .iter()
            .any(|network| network.contains(&address))
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

fn refused(name: &str, value: &str, expected: &str) -> Error {
    let shown: String = value.chars().take(80).collect();
    Error::new(
        ErrorCode::InvalidConfig,
        format!("server.{name} holds {shown:?}; give {expected}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let names = vec!["Pie.example.org".to_owned()];
        assert!(config.set_list("host_names", names).unwrap());
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
        let refused = config.set_list("host_names", vec!["a/b".to_owned()]);
        assert!(refused.unwrap_err().message.contains("names of hosts"));
    }

    #[test]
    fn only_loopback_goes_without() {
        const HOME: [u8; 4] = [127, 0, 0, 1];
        const PUBLIC: [u8; 4] = [0, 0, 0, 0];
        let proxy = |config: &mut AuthConfig| {
            assert!(
                config
                    .set_list("trusted_proxies", vec!["10.0.0.1".to_owned()])
                    .unwrap()
            )
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
            config
                .set_list("operators", vec!["ada".to_owned()])
                .unwrap();
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
        assert!(config.set_text("auth", "on").unwrap());
        assert!(
            config
                .set_text("user_header", "X-Auth-Request-User")
                .unwrap()
        );
        assert!(config.set_text("audit_log", "/tmp/a").unwrap());
        assert!(!config.set_text("host", "x").unwrap());
        assert!(!config.set_list("allowed_origins", Vec::new()).unwrap());
        assert_eq!(
            (config.mode, config.user_header.as_str()),
            (AuthMode::On, "x-auth-request-user")
        );
        for (name, value) in [
            ("auth", "yes"),
            ("user_header", ""),
            ("user_header", "a b"),
            ("user_header", "a:"),
        ] {
            assert!(
                config
                    .set_text(name, value)
                    .unwrap_err()
                    .message
                    .contains(name)
            );
        }
        for (name, value) in [
            ("trusted_proxies", "localhost"),
            ("trusted_proxies", "10.0.0.0/33"),
            ("operators", "../x"),
        ] {
            assert!(
                config
                    .set_list(name, vec![value.to_owned()])
                    .unwrap_err()
                    .message
                    .contains(value)
            );
        }
    }
}
