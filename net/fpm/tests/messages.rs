//! Netlink messages as zebra writes them.

use std::net::IpAddr;

use shoal_fpm::wrap;
use shoal_wire::IpPrefix;

/// An attribute: its type and value.
pub type Attribute = (u16, Vec<u8>);

fn octets(address: &str) -> Vec<u8> {
    match address.parse().unwrap() {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

fn put(out: &mut Vec<u8>, attributes: &[Attribute]) {
    for (kind, value) in attributes {
        out.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
        out.extend_from_slice(&kind.to_ne_bytes());
        out.extend_from_slice(value);
        out.resize(out.len().next_multiple_of(4), 0);
    }
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut out = (16 + body.len() as u32).to_ne_bytes().to_vec();
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&0x401u16.to_ne_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(body);
    out
}

fn route(kind: u16, prefix: &str, attributes: &[Attribute]) -> Vec<u8> {
    let prefix: IpPrefix = prefix.parse().unwrap();
    let family = if prefix.addr().is_ipv4() { 2 } else { 10 };
    let mut body = vec![family, prefix.len(), 0, 0, 254, 186, 0, 1, 0, 0, 0, 0];
    put(&mut body, &[(1, octets(&prefix.addr().to_string())), (6, 20u32.to_ne_bytes().to_vec())]);
    put(&mut body, attributes);
    message(kind, &body)
}

/// RTM_NEWROUTE in table 254, by bgpd.
pub fn new_route(prefix: &str, attributes: &[Attribute]) -> Vec<u8> {
    route(24, prefix, attributes)
}

/// RTM_DELROUTE of the same.
pub fn del_route(prefix: &str) -> Vec<u8> {
    route(25, prefix, &[])
}

/// RTM_NEWNEXTHOP.
pub fn next_hop(id: u32, attributes: &[Attribute]) -> Vec<u8> {
    let mut body = vec![2, 0, 11, 0, 0, 0, 0, 0];
    put(&mut body, &[(1, id.to_ne_bytes().to_vec())]);
    put(&mut body, attributes);
    message(104, &body)
}

/// RTM_DELNEXTHOP.
pub fn no_next_hop(id: u32) -> Vec<u8> {
    let mut body = vec![0; 8];
    put(&mut body, &[(1, id.to_ne_bytes().to_vec())]);
    message(105, &body)
}

pub fn oif(n: u32) -> Attribute {
    (4, n.to_ne_bytes().to_vec())
}

pub fn gateway(address: &str) -> Attribute {
    (5, octets(address))
}

pub fn table(n: u32) -> Attribute {
    (15, n.to_ne_bytes().to_vec())
}

pub fn id(n: u32) -> Attribute {
    (30, n.to_ne_bytes().to_vec())
}

pub fn encap() -> Attribute {
    (21, 1u16.to_ne_bytes().to_vec())
}

/// An attribute that says nothing here.
pub fn blackhole() -> Attribute {
    (99, Vec::new())
}

/// Next hops: interface, weight less one, neighbour.
pub fn multipath(hops: &[(u32, u8, &str)]) -> Attribute {
    let mut out = Vec::new();
    for (interface, weight, next_hop) in hops {
        let mut inner = Vec::new();
        put(&mut inner, &[gateway(next_hop)]);
        out.extend_from_slice(&(8 + inner.len() as u16).to_ne_bytes());
        out.extend_from_slice(&[0, *weight]);
        out.extend_from_slice(&interface.to_ne_bytes());
        out.extend_from_slice(&inner);
    }
    (9, out)
}

pub fn nh_oif(n: u32) -> Attribute {
    (5, n.to_ne_bytes().to_vec())
}

pub fn nh_gateway(address: &str) -> Attribute {
    (6, octets(address))
}

pub fn nh_blackhole() -> Attribute {
    (4, Vec::new())
}

/// Members and their weights less one, in 16 bits.
pub fn nh_group(members: &[(u32, u16)]) -> Attribute {
    let mut out = Vec::new();
    for (id, weight) in members {
        out.extend_from_slice(&id.to_ne_bytes());
        out.extend_from_slice(&weight.to_le_bytes());
        out.extend_from_slice(&[0, 0]);
    }
    (2, out)
}

/// A frame of messages.
pub fn frame(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut out = messages.concat();
    wrap(&mut out, 0);
    out
}
