//! What a client shows of itself before it says hello: its address, and the headers of its upgrade.
//!
//! The header that names a user is believed of a proxy that the configuration names. From anybody else it is refused
//! and not passed over: whoever sends it expects something of it.

use std::net::IpAddr;

use pie_host::{Error, ErrorCode};
use tungstenite::http::{HeaderMap, header};

use super::AuthConfig;
use super::api_key::MAX_KEY_BYTES;
use crate::names;

/// The header in which proxies say whom they forward.
const FORWARDED_FOR: &str = "x-forwarded-for";
/// Addresses of that header that are looked at, from its end.
const MAX_HOPS: usize = 16;
/// Bytes of the name of a host that are kept.
const MAX_HOST_BYTES: usize = 256;

/// What a client shows before its hello.
#[derive(Clone, Debug)]
pub(crate) struct Presented {
    /// Where it is; what a trusted proxy says that it is.
    pub(crate) address: IpAddr,
    /// What it called this server.
    pub(crate) host: String,
    /// The user that a trusted proxy names.
    pub(super) user: Option<String>,
    /// The key of `Authorization: Bearer`.
    pub(super) bearer: Option<String>,
}

impl Presented {
    /// What a client of an address shows with these headers.
    ///
    /// # Errors
    /// `untrusted-header` for the header of a user from anybody but a trusted proxy, `invalid-name` for a name that is
    /// none.
    pub(crate) fn read(
        peer: IpAddr,
        headers: &HeaderMap,
        config: &AuthConfig,
    ) -> Result<Self, Error> {
        let peer = peer.to_canonical();
        let is_proxy = config.trusts(peer);
        Ok(Self {
            address: if is_proxy {
                forwarded_for(headers, config).unwrap_or(peer)
            } else {
                peer
            },
            host: text_of(headers, header::HOST.as_str())
                .filter(|host| host.len() <= MAX_HOST_BYTES)
                .unwrap_or_default()
                .to_owned(),
            user: named_user(headers, config, is_proxy, peer)?,
            bearer: text_of(headers, header::AUTHORIZATION.as_str())
                .and_then(|value| value.strip_prefix("Bearer "))
                .map(|key| key.chars().take(MAX_KEY_BYTES).collect()),
        })
    }
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn named_user(
    headers: &HeaderMap,
    config: &AuthConfig,
    is_proxy: bool,
    peer: IpAddr,
) -> Result<Option<String>, Error> {
    let name = config.user_header.lower();
    let mut values = headers.get_all(&name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if !is_proxy {
        let message = format!(
            "the header {name} names a user, and {peer} is not a proxy that server.trusted_proxies names; prove who you are with a key, or add the proxy there"
        );
        return Err(Error::new(ErrorCode::UntrustedHeader, message));
    }
    if values.next().is_some() {
        let message = format!(
            "the header {name} is there twice; have the proxy remove the one of its client and set its own"
        );
        return Err(Error::new(ErrorCode::UntrustedHeader, message));
    }
    let user = value.to_str().unwrap_or("?");
    names::check_user(user)?;
    Ok(Some(user.to_owned()))
}

/// Whom a trusted proxy forwards: the last address in the header that is not another trusted proxy. What stands before
/// that one is said by nobody we know.
fn forwarded_for(headers: &HeaderMap, config: &AuthConfig) -> Option<IpAddr> {
    let values = headers
        .get_all(FORWARDED_FOR)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let hops: Vec<&str> = values.flat_map(|value| value.split(',')).collect();
    let mut hops = hops
        .into_iter()
        .rev()
        .take(MAX_HOPS)
        .map(|hop| hop.trim().parse::<IpAddr>().ok());
    hops.find(|hop| hop.is_none_or(|address| !config.trusts(address)))
        .flatten()
        .map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pie_host::Value;
    use tungstenite::http::{HeaderName, HeaderValue};

    fn read(peer: &str, headers: &[(&str, &str)]) -> Result<Presented, ErrorCode> {
        let mut config = AuthConfig::default();
        let proxies = Value::Texts(vec!["10.0.0.0/8".to_owned(), "::1".to_owned()]);
        config.set("trusted_proxies", proxies).unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        Presented::read(peer.parse().unwrap(), &map, &config).map_err(|error| error.code)
    }

    #[test]
    fn only_a_trusted_proxy_names_a_user() {
        for proxy in ["10.1.2.3", "::ffff:10.1.2.3", "::1"] {
            let shown = read(
                proxy,
                &[
                    ("x-pie-user", "alice"),
                    ("x-forwarded-for", "6.6.6.6, 1.2.3.4, 10.0.0.9"),
                ],
            )
            .unwrap();
            assert_eq!(shown.user.as_deref(), Some("alice"));
            assert_eq!(shown.address, IpAddr::from([1, 2, 3, 4]), "{proxy}");
        }
        for other in ["11.0.0.1", "127.0.0.1", "::2"] {
            assert_eq!(
                read(other, &[("X-Pie-User", "alice")]).unwrap_err(),
                ErrorCode::UntrustedHeader
            );
            let shown = read(other, &[("x-forwarded-for", "1.2.3.4")]).unwrap();
            assert_eq!(shown.address, other.parse::<IpAddr>().unwrap());
        }
        assert_eq!(
            read("10.0.0.1", &[("x-pie-user", "a"), ("x-pie-user", "b")]).unwrap_err(),
            ErrorCode::UntrustedHeader
        );
        assert_eq!(
            read("10.0.0.1", &[("x-pie-user", "../x")]).unwrap_err(),
            ErrorCode::InvalidName
        );
        assert_eq!(read("10.0.0.1", &[]).unwrap().user, None);
        assert_eq!(
            read("10.0.0.1", &[("x-forwarded-for", "nonsense")])
                .unwrap()
                .address,
            IpAddr::from([10, 0, 0, 1])
        );
    }

    #[test]
    fn a_bearer_is_read_and_other_schemes_are_not() {
        assert_eq!(
            read("1.1.1.1", &[("authorization", "Bearer pie_x")])
                .unwrap()
                .bearer
                .as_deref(),
            Some("pie_x")
        );
        assert_eq!(
            read("1.1.1.1", &[("authorization", "Basic YTpi")])
                .unwrap()
                .bearer,
            None
        );
        let long = "x".repeat(4000);
        let shown = read(
            "1.1.1.1",
            &[
                ("authorization", &format!("Bearer {long}")),
                ("host", "h:1"),
            ],
        )
        .unwrap();
        assert_eq!(
            (shown.bearer.unwrap().len(), shown.host.as_str()),
            (MAX_KEY_BYTES, "h:1")
        );
    }
}
