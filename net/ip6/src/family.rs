//! What IPv6 says of itself to nodes that both families have.

use std::fmt::{self, Display};

use shoal_adj::{Family, Link};
use shoal_buffer::Packet;
use shoal_graph::{ErrorCounter, Severity};
use shoal_interface::{Event, SwIfIndex};
use shoal_ip::{ArcNames, IpFamily, NodeNames, Unreachable};

use crate::{DROP_ARC, IcmpError, LOCAL_ARC, MULTICAST_ARC, OUTPUT_ARC, PUNT_ARC, UNICAST_ARC};

/// IPv6.
#[derive(Clone, Copy, Debug)]
pub struct Ip6Family;

impl IpFamily for Ip6Family {
    const FAMILY: Family = Family::Ip6;
    const LINK: Link = Link::Ip6;
    const ARCS: ArcNames = ArcNames {
        unicast: UNICAST_ARC,
        multicast: MULTICAST_ARC,
        output: OUTPUT_ARC,
        local: LOCAL_ARC,
        punt: PUNT_ARC,
        drop: DROP_ARC,
    };
    const NODES: NodeNames = NodeNames {
        input: "ip6-input",
        options: "ip6-hop-by-hop",
        lookup: "ip6-lookup",
        load_balance: "ip6-load-balance",
        rewrite: "ip6-rewrite",
        local: "ip6-local",
        local_end: "ip6-local-end-of-arc",
        punt: "ip6-punt",
        drop: "ip6-drop",
        not_enabled: "ip6-not-enabled",
        interface_rx: "interface-rx-dpo-ip6",
        icmp_error: "ip6-icmp-error",
    };
    const RECEIVED: &'static str = "/if/ip6";
    const NOT_ENABLED: &'static [ErrorCounter] = &[ErrorCounter {
        name: "not_enabled",
        description: "ip6 is not enabled on the interface",
        severity: Severity::Error,
        at: None,
    }];
    const ICMP_ERROR_NEXT: &'static [&'static str] = &[Self::NODES.icmp_error];
    const INPUT_NEXT: &'static [&'static str] = &[Self::NODES.input];

    fn describe(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        shoal_wire::describe_ip6(bytes).fmt(f)
    }

    fn ask_unreachable(why: Unreachable, pkt: &mut Packet<'_>) {
        let message = match why {
            Unreachable::NoRoute | Unreachable::Route => IcmpError::NO_ROUTE,
            Unreachable::Address => IcmpError::ADDRESS,
            Unreachable::Prohibited => IcmpError::PROHIBITED,
        };
        message.ask(pkt);
    }

    fn enabled(event: Event) -> Option<(SwIfIndex, bool)> {
        match event {
            Event::Ip6(interface, enabled) => Some((interface, enabled)),
            _ => None,
        }
    }
}
