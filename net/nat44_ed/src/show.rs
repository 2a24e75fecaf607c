//! Sessions as operators read them.

use std::fmt;
use std::net::Ipv4Addr;

use shoal_nat::Tuple;
use shoal_nat::tuple::{ICMP, TCP, UDP};

use crate::sessions::Session;

/// A protocol: by name, if it has ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proto(pub u8);

impl fmt::Display for Proto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            TCP => f.pad("TCP"),
            UDP => f.pad("UDP"),
            ICMP => f.pad("ICMP"),
            other => write!(f, "{other}"),
        }
    }
}

/// One direction: what it matches, and what it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// What packets come with.
    pub from: Tuple,
    /// What they leave with.
    pub to: Tuple,
    /// TCP, UDP, ICMP or another.
    pub protocol: u8,
    /// The table they come by.
    pub table: u32,
    /// The table they are looked up in.
    pub to_table: u32,
}

impl Flow {
    /// From inside.
    pub fn i2o(session: &Session) -> Flow {
        let Session { inside, inside_table, outside, outside_table, protocol, .. } = *session;
        Flow { from: inside, to: outside, protocol, table: inside_table, to_table: outside_table }
    }

    /// From outside.
    pub fn o2i(session: &Session) -> Flow {
        let Session { inside, inside_table, outside, outside_table, protocol, .. } = *session;
        Flow {
            from: outside.reversed(),
            to: inside.reversed(),
            protocol,
            table: outside_table,
            to_table: inside_table,
        }
    }
}

fn ip(address: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(address)
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Flow { from, to, protocol, table, to_table } = *self;
        write!(f, "match: saddr {} sport {} ", ip(from.src), from.sport)?;
        write!(f, "daddr {} dport {} ", ip(from.dst), from.dport)?;
        write!(f, "proto {} fib_idx {table} rewrite: ", Proto(protocol))?;
        write!(f, "saddr {} ", ip(to.src))?;
        let is_query = protocol == ICMP;
        if to.sport != from.sport && !is_query {
            write!(f, "sport {} ", to.sport)?;
        }
        write!(f, "daddr {} ", ip(to.dst))?;
        if to.dport != from.dport && !is_query {
            write!(f, "dport {} ", to.dport)?;
        }
        if is_query {
            write!(f, "icmp-id {} ", to.sport)?;
        }
        write!(f, "txfib {to_table} ")
    }
}
