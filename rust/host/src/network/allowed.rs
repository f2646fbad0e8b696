//! The list of the operator: which servers programs may send requests to.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use pie_core::ErrorCode;
use pie_core::settings::Word;
use url::Host;

use super::address::{is_within, special};
use crate::Error;

/// The name of this machine, for itself.
const LOCALHOST: &str = "localhost";

/// A server, or several, that programs may send requests to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    host: AllowedHost,
    /// None: every one.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AllowedHost {
    /// Every public one.
    Any,
    /// Every name below this one.
    Below(String),
    Name(String),
    Net(IpNet),
}

impl Word for Allowed {
    const EXPECTED: &'static str = "HOST or HOST:PORT, as in api.example.com or api.example.com:443: a name, *.NAME for \
         all names below it, an address or a range as 10.0.0.0/8 ([::1] where it is of IPv6), or * for every public server";

    fn parse(text: &str) -> Option<Self> {
        // An address of IPv6 has colons of its own.
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let is_digits = port.bytes().all(|byte| byte.is_ascii_digit());
                let port = port.parse::<u16>().ok();
                (host, Some(port.filter(|port| is_digits && *port > 0)?))
            }
            _ => (text, None),
        };
        Some(Self {
            host: AllowedHost::parse(host)?,
            port,
        })
    }

    fn text(&self) -> String {
        match (&self.host, self.port) {
            (host, None) => host.to_string(),
            (AllowedHost::Net(net @ IpNet::V6(_)), Some(port)) => {
                format!("[{}]:{port}", plain(net))
            }
            (host, Some(port)) => format!("{host}:{port}"),
        }
    }
}

impl AllowedHost {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Any);
        }
        let bare = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let bare = bare.unwrap_or(text);
        if let Ok(net) = bare.parse::<IpNet>() {
            return Some(Self::Net(net.trunc()));
        }
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Some(Self::Net(address.into()));
        }
        let (name, is_below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        match Host::parse(name).ok()? {
            Host::Domain(name) if is_name(&name) => {
                let name = name.trim_end_matches('.').to_owned();
                Some(if is_below {
                    Self::Below(name)
                } else {
                    Self::Name(name)
                })
            }
            Host::Ipv4(address) if !is_below => Some(Self::Net(IpAddr::V4(address).into())),
            _ => None,
        }
    }

    fn is(&self, host: &Host<String>) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Name(name), Host::Domain(asked)) => asked.trim_end_matches('.') == name,
            (Self::Below(name), Host::Domain(asked)) => {
                let above = asked.trim_end_matches('.').strip_suffix(name.as_str());
                above.is_some_and(|above| above.ends_with('.') && above.len() > 1)
            }
            (Self::Net(net), Host::Ipv4(address)) => is_within(net, IpAddr::V4(*address)),
            (Self::Net(net), Host::Ipv6(address)) => is_within(net, IpAddr::V6(*address)),
            _ => false,
        }
    }

    /// Whether it names an address that is not of the public network.
    fn names(&self, address: IpAddr) -> bool {
        match self {
            Self::Net(net) => is_within(net, address),
            Self::Name(name) => name == LOCALHOST && address.to_canonical().is_loopback(),
            Self::Any | Self::Below(_) => false,
        }
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => formatter.write_str("*"),
            Self::Below(name) => write!(formatter, "*.{name}"),
            Self::Name(name) => formatter.write_str(name),
            Self::Net(net) => formatter.write_str(&plain(net)),
        }
    }
}

/// A range, as an address where it is but one.
fn plain(net: &IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() {
        net.addr().to_string()
    } else {
        net.to_string()
    }
}

fn is_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && name.len() <= 255 && !name.starts_with('.') && name.bytes().all(is_good)
}

/// Checks that a program may send a request to a host, as it is written.
///
/// # Errors
/// `net-denied`, which names the host and how to allow it.
pub(crate) fn check_host(list: &[Allowed], host: &Host<String>, port: u16) -> Result<(), Error> {
    let is_port = |allowed: &Allowed| allowed.port.is_none_or(|one| one == port);
    if list
        .iter()
        .any(|allowed| is_port(allowed) && allowed.host.is(host))
    {
        return Ok(());
    }
    let why = match list {
        [] => "the operator of this engine has allowed no server",
        _ => "the operator of this engine has not allowed it",
    };
    Err(Error::new(
        ErrorCode::NetDenied,
        format!(
            "no request goes to {host}:{port}: {why}; {}",
            remedy(&format!("{host}:{port}"))
        ),
    ))
}

/// Checks an address that a host has.
///
/// # Errors
/// `net-denied`, as above, where it is not of the public network and is not named.
pub(crate) fn check_address(
    list: &[Allowed],
    host: &Host<String>,
    address: IpAddr,
    port: u16,
) -> Result<(), Error> {
    let Some(what) = special(address) else {
        return Ok(());
    };
    let is_port = |allowed: &Allowed| allowed.port.is_none_or(|one| one == port);
    if list
        .iter()
        .any(|allowed| is_port(allowed) && allowed.host.names(address))
    {
        return Ok(());
    }
    let written = match address {
        IpAddr::V4(address) => format!("{address}:{port}"),
        IpAddr::V6(address) => format!("[{address}]:{port}"),
    };
    Err(Error::new(
        ErrorCode::NetDenied,
        format!(
            "no request goes to {host}:{port}: it has the address {address}, {what}, which has to be allowed by itself; {}",
            remedy(&written)
        ),
    ))
}

fn remedy(entry: &str) -> String {
    format!(
        "allow it with `pie run --allow-net {entry}`, or with allow_net = [\"{entry}\"] in [runtime] of the configuration"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Vec<Allowed> {
        texts
            .iter()
            .map(|text| Allowed::parse(text).unwrap())
            .collect()
    }

    #[test]
    fn entries_are_read_and_written() {
        for (text, written) in [
            ("*", "*"),
            ("*:443", "*:443"),
            ("api.example.com", "api.example.com"),
            ("API.Example.com.:80", "api.example.com:80"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("*.example.com:8080", "*.example.com:8080"),
            ("localhost:1", "localhost:1"),
            ("127.0.0.1:65535", "127.0.0.1:65535"),
            ("0x7f.1", "127.0.0.1"),
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("10.0.0.0/8:80", "10.0.0.0/8:80"),
            ("::1", "::1"),
            ("[::1]", "::1"),
            ("[::1]:80", "[::1]:80"),
            ("fd00::/8", "fd00::/8"),
        ] {
            assert_eq!(
                Allowed::parse(text).map(|one| one.text()).as_deref(),
                Some(written),
                "{text}"
            );
        }
        for text in [
            "",
            ":80",
            "a:",
            "a:0",
            "a:65536",
            "a:x",
            "a:+1",
            "http://a",
            "a/b",
            "a b",
            "*.",
            "*.1.2.3.4",
            "a*",
            ".a",
            "user@a",
            "[::1",
            "[::1]:",
            "1.2.3.4/33",
            "a:1:2",
        ] {
            assert_eq!(Allowed::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_host_is_allowed_by_name_and_port() {
        let allowed = list(&[
            "api.example.com",
            "*.b.example:443",
            "10.0.0.0/8",
            "[::1]:80",
        ]);
        for (host, port, is_allowed) in [
            ("api.example.com", 1, true),
            ("api.example.com.", 1, true),
            ("x.api.example.com", 1, false),
            ("example.com", 1, false),
            ("x.b.example", 443, true),
            ("x.y.b.example", 443, true),
            ("x.b.example", 80, false),
            ("b.example", 443, false),
            ("xb.example", 443, false),
            ("10.9.8.7", 1, true),
            ("11.0.0.1", 1, false),
            ("[::ffff:10.0.0.1]", 1, true),
            ("[::1]", 80, true),
            ("[::1]", 81, false),
            ("localhost", 80, false),
        ] {
            let host = Host::parse(host).unwrap();
            assert_eq!(
                check_host(&allowed, &host, port).is_ok(),
                is_allowed,
                "{host}:{port}"
            );
        }
        let error = check_host(&[], &Host::parse("a.example").unwrap(), 443).unwrap_err();
        assert_eq!(error.code, ErrorCode::NetDenied);
        for part in [
            "a.example:443",
            "has allowed no server",
            "--allow-net a.example:443",
            "allow_net = [\"a.example:443\"]",
        ] {
            assert!(error.message.contains(part), "{}", error.message);
        }
    }

    #[test]
    fn an_address_that_is_not_public_has_to_be_named() {
        let host = Host::parse("a.example").unwrap();
        let check = |entries: &[&str], address: &str| {
            check_address(&list(entries), &host, address.parse().unwrap(), 80)
        };
        for (entries, address, is_allowed) in [
            (&["*"][..], "1.1.1.1", true),
            (&["*"], "127.0.0.1", false),
            (&["*", "a.example"], "169.254.169.254", false),
            (&["127.0.0.1"], "127.0.0.1", true),
            (&["127.0.0.1:80"], "::ffff:127.0.0.1", true),
            (&["127.0.0.1:81"], "127.0.0.1", false),
            (&["localhost"], "127.0.0.1", true),
            (&["localhost"], "::1", true),
            (&["localhost"], "10.0.0.1", false),
            (&["10.0.0.0/8"], "10.0.0.1", true),
        ] {
            assert_eq!(
                check(entries, address).is_ok(),
                is_allowed,
                "{entries:?} {address}"
            );
        }
        let error = check(&["*"], "fe80::1").unwrap_err();
        for part in [
            "a.example:80",
            "fe80::1, a link-local address",
            "--allow-net [fe80::1]:80",
        ] {
            assert!(error.message.contains(part), "{}", error.message);
        }
    }
}
