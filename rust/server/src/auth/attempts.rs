//! Failed attempts to prove who one is, counted by address, so that nobody tries keys at the speed of the network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Failures that an address may have at once.
const BURST: u32 = 10;
/// Time after which one of them is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(6);
/// Addresses that are remembered. Whoever has more than these has other means; the oldest gives way.
const MAX_ADDRESSES: usize = 4096;

/// The failures of all addresses. Time is an argument.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// When the failures of an address will all be forgotten.
    by_address: HashMap<IpAddr, Instant>,
}

impl Attempts {
    /// How long an address has to wait until its next attempt is looked at; none: not at all.
    pub(crate) fn wait(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let until = *self.by_address.get(&network(address))?;
        let room = FORGOTTEN_AFTER * (BURST - 1);
        until
            .checked_duration_since(now + room)
            .filter(|wait| !wait.is_zero())
    }

    /// An attempt of an address failed.
    pub(crate) fn fail(&mut self, address: IpAddr, now: Instant) {
        let address = network(address);
        if self.by_address.len() >= MAX_ADDRESSES && !self.by_address.contains_key(&address) {
            self.by_address.retain(|_, until| *until > now);
            if self.by_address.len() >= MAX_ADDRESSES
                && let Some(oldest) = self
                    .by_address
                    .iter()
                    .min_by_key(|(_, until)| **until)
                    .map(|(address, _)| *address)
            {
                self.by_address.remove(&oldest);
            }
        }
        let until = self.by_address.entry(address).or_insert(now);
        *until = (*until).max(now) + FORGOTTEN_AFTER;
    }
}

/// What one party has: an address of IPv4, a network of 64 bits of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_fails_often_waits_and_others_do_not() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        let (one, other): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        for n in 0..BURST {
            assert_eq!(attempts.wait(one, now), None, "{n}");
            attempts.fail(one, now);
        }
        assert_eq!(attempts.wait(one, now), Some(FORGOTTEN_AFTER));
        assert_eq!(attempts.wait(other, now), None);
        assert_eq!(attempts.wait(one, now + FORGOTTEN_AFTER), None);
        attempts.fail(one, now + FORGOTTEN_AFTER);
        assert!(attempts.wait(one, now + FORGOTTEN_AFTER).is_some());
    }

    #[test]
    fn a_network_of_ipv6_is_one_party() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        for n in 0..BURST {
            attempts.fail(format!("2001:db8::{n:x}").parse().unwrap(), now);
        }
        assert!(
            attempts
                .wait("2001:db8::ffff".parse().unwrap(), now)
                .is_some()
        );
        assert!(
            attempts
                .wait("2001:db8:0:1::1".parse().unwrap(), now)
                .is_none()
        );
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        for n in 0..2 * MAX_ADDRESSES as u32 {
            attempts.fail(IpAddr::from(n.to_be_bytes()), now);
        }
        assert!(attempts.by_address.len() <= MAX_ADDRESSES);
    }
}
