//! Which addresses are not of the public network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Where the cloud of Azure answers its machines, at an address that looks public.
const AZURE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Ranges of IPv4 that are not public, with what they are (IANA's registry of special-purpose addresses).
const SPECIAL_V4: [(Ipv4Net, &str); 16] = [
    (v4(0, 0, 0, 0, 8), "an address of this machine"),
    (v4(10, 0, 0, 0, 8), "a private address"),
    (
        v4(100, 64, 0, 0, 10),
        "an address of a provider's own network",
    ),
    (v4(127, 0, 0, 0, 8), "an address of this machine"),
    (v4(169, 254, 0, 0, 16), "a link-local address"),
    (v4(172, 16, 0, 0, 12), "a private address"),
    (v4(192, 0, 0, 0, 24), "an address with a special purpose"),
    (v4(192, 0, 2, 0, 24), "an address for documentation"),
    (v4(192, 88, 99, 0, 24), "an address of a relay"),
    (v4(192, 168, 0, 0, 16), "a private address"),
    (v4(198, 18, 0, 0, 15), "an address for measurements"),
    (v4(198, 51, 100, 0, 24), "an address for documentation"),
    (v4(203, 0, 113, 0, 24), "an address for documentation"),
    (v4(224, 0, 0, 0, 4), "a multicast address"),
    (v4(240, 0, 0, 0, 4), "a reserved address"),
    (
        Ipv4Net::new_assert(AZURE, 32),
        "an address of a cloud's own services",
    ),
];

/// The same of IPv6, where no address of IPv4 stands inside.
const SPECIAL_V6: [(Ipv6Net, &str); 10] = [
    (v6([0, 0, 0, 0], 96), "an address of this machine"),
    (v6([0x64, 0xff9b, 1, 0], 48), "an address of a translator"),
    (v6([0x100, 0, 0, 0], 64), "a reserved address"),
    (
        v6([0x2001, 0, 0, 0], 23),
        "an address with a special purpose",
    ),
    (
        v6([0x2001, 0xdb8, 0, 0], 32),
        "an address for documentation",
    ),
    (v6([0x3fff, 0, 0, 0], 20), "an address for documentation"),
    (v6([0xfc00, 0, 0, 0], 7), "a private address"),
    (v6([0xfe80, 0, 0, 0], 10), "a link-local address"),
    (v6([0xfec0, 0, 0, 0], 10), "a private address"),
    (v6([0xff00, 0, 0, 0], 8), "a multicast address"),
];

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6([a, b, c, d]: [u16; 4], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), bits)
}

/// The address that is meant: that of IPv4 which stands inside one of IPv6 (mapped, compatible, translated, 6to4).
pub(crate) fn meant(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let inner = match [a, b, c, d, e, f] {
        // `::` and `::1` are no addresses of IPv4.
        [0, 0, 0, 0, 0, 0] if g != 0 => Some((g, h)),
        [0, 0, 0, 0, 0, 0xffff] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0] => {
            Some((g, h))
        }
        [0x2002, b, c, ..] => Some((b, c)),
        _ => None,
    };
    inner.map_or(address, |(high, low)| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    })
}

/// What an address is that is not of the public network; none where it is.
pub(crate) fn special(address: IpAddr) -> Option<&'static str> {
    match meant(address) {
        IpAddr::V4(address) => find(&SPECIAL_V4, |net| net.contains(&address)),
        IpAddr::V6(address) => find(&SPECIAL_V6, |net| net.contains(&address)),
    }
}

fn find<N>(ranges: &[(N, &'static str)], contains: impl Fn(&N) -> bool) -> Option<&'static str> {
    let found = ranges.iter().find(|(net, _)| contains(net));
    found.map(|(_, what)| *what)
}

/// Whether a range holds an address, as it is meant.
pub(crate) fn is_within(net: &IpNet, address: IpAddr) -> bool {
    net.contains(&meant(address)) || net.contains(&address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_public_are_known_in_every_disguise() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "2001:db8::1",
        ] {
            assert!(special(text.parse().unwrap()).is_some(), "{text}");
        }
        for text in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "128.0.0.1",
            "172.32.0.1",
            "192.169.0.1",
            "223.255.255.255",
            "2606:4700::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::",
        ] {
            assert_eq!(special(text.parse().unwrap()), None, "{text}");
        }
    }

    #[test]
    fn a_range_holds_an_address_whatever_its_disguise() {
        let net: IpNet = "127.0.0.0/8".parse().unwrap();
        for (text, is_in) in [
            ("127.1.2.3", true),
            ("::ffff:127.0.0.1", true),
            ("::1", false),
            ("10.0.0.1", false),
        ] {
            assert_eq!(is_within(&net, text.parse().unwrap()), is_in, "{text}");
        }
        let all: IpNet = "::1/128".parse().unwrap();
        assert!(is_within(&all, "::1".parse().unwrap()));
    }
}
