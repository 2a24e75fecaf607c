//! What IPv4 says of itself to nodes that both families have.

use std::fmt::{self, Display};

use shoal_adj::{Family, Link};
use shoal_buffer::Packet;
use shoal_graph::{ErrorCounter, Severity};
use shoal_interface::{Event, SwIfIndex};
use shoal_ip::{ArcNames, IpFamily, NodeNames, Unreachable};

use crate::{DROP_ARC, IcmpError, LOCAL_ARC, MULTICAST_ARC, OUTPUT_ARC, PUNT_ARC, UNICAST_ARC};

/// IPv4.
#[derive(Clone, Copy, Debug)]
pub struct Ip4Family;

impl IpFamily for Ip4Family {
    const FAMILY: Family = Family::Ip4;
    const LINK: Link = Link::Ip4;
    const ARCS: ArcNames = ArcNames {
        unicast: UNICAST_ARC,
        multicast: MULTICAST_ARC,
        output: OUTPUT_ARC,
        local: LOCAL_ARC,
        punt: PUNT_ARC,
        drop: DROP_ARC,
    };
    const NODES: NodeNames = NodeNames {
        input: "ip4-input",
        options: "ip4-options",
        lookup: "ip4-lookup",
        load_balance: "ip4-load-balance",
        rewrite: "ip4-rewrite",
        local: "ip4-local",
        local_end: "ip4-local-end-of-arc",
        punt: "ip4-punt",
        drop: "ip4-drop",
        not_enabled: "ip4-not-enabled",
        interface_rx: "interface-rx-dpo-ip4",
        icmp_error: "ip4-icmp-error",
    };
    const RECEIVED: &'static str = "/if/ip4";
    const NOT_ENABLED: &'static [ErrorCounter] = &[ErrorCounter {
        name: "not_enabled",
        description: "ip4 is not enabled on the interface",
        severity: Severity::Error,
        at: None,
    }];
    const ICMP_ERROR_NEXT: &'static [&'static str] = &[Self::NODES.icmp_error];
    const INPUT_NEXT: &'static [&'static str] = &[Self::NODES.input];

    fn describe(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        shoal_wire::describe_ip4(bytes).fmt(f)
    }

    fn ask_unreachable(why: Unreachable, pkt: &mut Packet<'_>) {
        let message = match why {
            Unreachable::NoRoute => IcmpError::NET,
            Unreachable::Route | Unreachable::Address => IcmpError::HOST,
            Unreachable::Prohibited => IcmpError::HOST_PROHIBITED,
        };
        message.ask(pkt);
    }

    fn enabled(event: Event) -> Option<(SwIfIndex, bool)> {
        match event {
            Event::Ip4(interface, enabled) => Some((interface, enabled)),
            _ => None,
        }
    }
}
