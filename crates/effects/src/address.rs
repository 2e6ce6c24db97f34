//! Which addresses of the internet may be reached: those that anybody could reach from anywhere, and no others.
//!
//! Judged by the address alone. What stands for another address (an IPv4 address inside an IPv6 one) is judged as that
//! other address, or refused where it could end up anywhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Blocks that do not lead to the public internet, or to a machine of the cloud itself.
const NOT_PUBLIC_V4: &[(Ipv4Net, &str)] = &[
    (v4([0, 0, 0, 0], 8), "this network"),
    (v4([10, 0, 0, 0], 8), "a private network"),
    (v4([100, 64, 0, 0], 10), "a carrier's network"),
    (v4([127, 0, 0, 0], 8), "this machine"),
    (v4([168, 63, 129, 16], 32), "the cloud's own metadata"),
    (v4([169, 254, 0, 0], 16), "the local link, where clouds keep their metadata"),
    (v4([172, 16, 0, 0], 12), "a private network"),
    (v4([192, 0, 0, 0], 24), "reserved for protocols"),
    (v4([192, 0, 2, 0], 24), "reserved for documentation"),
    (v4([192, 88, 99, 0], 24), "a tunnel"),
    (v4([192, 168, 0, 0], 16), "a private network"),
    (v4([198, 18, 0, 0], 15), "reserved for benchmarks"),
    (v4([198, 51, 100, 0], 24), "reserved for documentation"),
    (v4([203, 0, 113, 0], 24), "reserved for documentation"),
    (v4([224, 0, 0, 0], 4), "multicast"),
    (v4([240, 0, 0, 0], 4), "reserved"),
];

/// Blocks inside the public part of IPv6 that are not public.
const NOT_PUBLIC_V6: &[(Ipv6Net, &str)] = &[
    (v6([0x2001, 0], 23), "reserved for protocols and tunnels such as Teredo"),
    (v6([0x2001, 0xdb8], 32), "reserved for documentation"),
    (v6([0x2002, 0], 16), "a tunnel (6to4)"),
    (v6([0x3fff, 0], 20), "reserved for documentation"),
];

/// Where all public IPv6 addresses are.
const PUBLIC_V6: Ipv6Net = v6([0x2000, 0], 3);
/// A translator to IPv4 that anybody may run: the last 32 bits are the address that is meant.
const NAT64: Ipv6Net = v6([0x64, 0xff9b], 96);

const fn v4([a, b, c, d]: [u8; 4], bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6([a, b]: [u16; 2], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), bits)
}

/// Why an address may not be reached; nothing where it is public.
pub(crate) fn not_public(address: IpAddr) -> Option<&'static str> {
    match meant(address) {
        IpAddr::V4(address) => {
            NOT_PUBLIC_V4.iter().find(|(block, _)| block.contains(&address)).map(|(_, what)| *what)
        }
        IpAddr::V6(address) if !PUBLIC_V6.contains(&address) => Some(kind_of(address)),
        IpAddr::V6(address) => {
            NOT_PUBLIC_V6.iter().find(|(block, _)| block.contains(&address)).map(|(_, what)| *what)
        }
    }
}

/// The address that packets would reach in the end.
pub(crate) fn meant(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) if NAT64.contains(&v6) => {
            let [.., a, b, c, d] = v6.octets();
            Ipv4Addr::new(a, b, c, d).into()
        }
        other => other.to_canonical(),
    }
}

/// For addresses outside of the public part.
fn kind_of(address: Ipv6Addr) -> &'static str {
    match address {
        _ if address.is_loopback() => "this machine",
        _ if address.is_unspecified() => "no address at all",
        _ if address.is_multicast() => "multicast",
        _ if address.is_unicast_link_local() => "the local link",
        _ if address.is_unique_local() => "a private network",
        _ => "not part of the public internet",
    }
}

/// A block of addresses, such as `10.0.0.0/8`; one address is a block too.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first and the last of every block that must never be reached, and both neighbours of it.
    #[test]
    fn the_edges_of_every_block() {
        for (inside, outside) in [
            (["0.0.0.0", "0.255.255.255"], vec!["1.0.0.0"]),
            (["10.0.0.0", "10.255.255.255"], vec!["9.255.255.255", "11.0.0.0"]),
            (["100.64.0.0", "100.127.255.255"], vec!["100.63.255.255", "100.128.0.0"]),
            (["127.0.0.0", "127.255.255.255"], vec!["126.255.255.255", "128.0.0.0"]),
            (["168.63.129.16", "168.63.129.16"], vec!["168.63.129.15", "168.63.129.17"]),
            (["169.254.0.0", "169.254.255.255"], vec!["169.253.255.255", "169.255.0.0"]),
            (["169.254.169.254", "169.254.170.2"], vec![]),
            (["172.16.0.0", "172.31.255.255"], vec!["172.15.255.255", "172.32.0.0"]),
            (["192.0.0.0", "192.0.0.255"], vec!["191.255.255.255", "192.0.1.0"]),
            (["192.0.2.0", "192.0.2.255"], vec!["192.0.1.255", "192.0.3.0"]),
            (["192.88.99.0", "192.88.99.255"], vec!["192.88.98.255", "192.88.100.0"]),
            (["192.168.0.0", "192.168.255.255"], vec!["192.167.255.255", "192.169.0.0"]),
            (["198.18.0.0", "198.19.255.255"], vec!["198.17.255.255", "198.20.0.0"]),
            (["198.51.100.0", "198.51.100.255"], vec!["198.51.99.255", "198.51.101.0"]),
            (["203.0.113.0", "203.0.113.255"], vec!["203.0.112.255", "203.0.114.0"]),
            (["224.0.0.0", "255.255.255.255"], vec!["223.255.255.255"]),
            (["::", "::1"], vec![]),
            (["::7f00:1", "::8.8.8.8"], vec![]),
            (["fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"], vec![]),
            (["fd00:ec2::254", "fd20:ce::254"], vec![]),
            (["fe80::", "febf:ffff::1"], vec![]),
            (["fec0::1", "feff::1"], vec![]),
            (["ff00::", "ff02::1"], vec![]),
            (["64:ff9b:1::", "64:ff9b:1:ffff::8.8.8.8"], vec![]),
            (["100::1", "5f00::1"], vec![]),
            (["::ffff:0:8.8.8.8", "::ffff:0:127.0.0.1"], vec![]),
            (["2001::", "2001:1ff:ffff::1"], vec!["2001:200::1"]),
            (["2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1"], vec![]),
            (["2001:db8::", "2001:db8:ffff:ffff::1"], vec!["2001:db7:ffff::1", "2001:db9::"]),
            (["2002::1", "2002:808:808::1"], vec!["2003::1"]),
            (["3fff::", "3fff:fff:ffff::1"], vec!["3fff:1000::1"]),
            (["1fff:ffff::1", "4000::1"], vec!["2606:4700::1111", "2a00:1450:4001::200e"]),
        ] {
            for bad in inside {
                assert!(not_public(bad.parse().unwrap()).is_some(), "{bad} was let through");
            }
            for good in outside {
                assert_eq!(not_public(good.parse().unwrap()), None, "{good} was refused");
            }
        }
    }

    #[test]
    fn an_address_inside_another_is_judged_as_itself() {
        for (text, public) in [
            ("::ffff:127.0.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:8.8.8.8", true),
            ("64:ff9b::127.0.0.1", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("64:ff9b::8.8.8.8", true),
        ] {
            assert_eq!(not_public(text.parse().unwrap()).is_none(), public, "{text}");
        }
    }

    #[test]
    fn networks_are_read_strictly() {
        for good in ["10.0.0.0/8", "127.0.0.1", "::1", "fd00::/8", "0.0.0.0/0", "::/0", "1.2.3.4/32"] {
            assert!(network(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "10/8",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/8/8",
            "x",
            "010.0.0.1",
        ] {
            assert!(network(bad).is_none(), "{bad}");
        }
    }

    proptest! {
        /// What the standard library knows to be special is never let through, in either spelling.
        #[test]
        fn nothing_special_is_public(bits: u32) {
            let v4 = Ipv4Addr::from_bits(bits);
            let special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_broadcast()
                || v4.is_documentation() || v4.is_unspecified() || v4.is_multicast();
            let refused = not_public(v4.into()).is_some();
            prop_assert!(!special || refused, "{}", v4);
            prop_assert_eq!(not_public(v4.to_ipv6_mapped().into()).is_some(), refused);
            let [a, b] = [(bits >> 16) as u16, bits as u16];
            prop_assert_eq!(not_public(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b).into()).is_some(), refused);
            prop_assert!(not_public(v4.to_ipv6_compatible().into()).is_some());
            prop_assert!(not_public(Ipv6Addr::new(0x2002, a, b, 0, 0, 0, 0, 1).into()).is_some());
        }

        #[test]
        fn public_addresses_of_version_six_are_in_the_public_part(bits: u128) {
            let v6 = Ipv6Addr::from_bits(bits);
            let mapped = v6.to_ipv4_mapped().is_some() || NAT64.contains(&v6);
            if not_public(v6.into()).is_none() && !mapped {
                prop_assert_eq!(v6.segments()[0] >> 13, 1);
            }
        }
    }
}
