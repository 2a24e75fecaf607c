//! Which packets get a shared source address: the policy that `cnat-output` asks about connections that begin.

use std::fmt;

use shoal_interface::SwIfIndex;

use crate::prefixes::Prefixes;

/// The kind of policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PolicyKind {
    /// No packet.
    #[default]
    None,
    /// Packets that came by interfaces of a list, to addresses beyond the excluded ones.
    IfPfx,
    /// As Kubernetes asks for: see [`Policy::wants`].
    K8s,
    /// Packets whose destination became a back end.
    Dnat,
}

impl PolicyKind {
    /// All, with VPP's words.
    pub const ALL: [(PolicyKind, &'static str); 4] = [
        (PolicyKind::None, "none"),
        (PolicyKind::IfPfx, "if-pfx"),
        (PolicyKind::K8s, "k8s"),
        (PolicyKind::Dnat, "dnat"),
    ];
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(PolicyKind::ALL.iter().find(|(kind, _)| kind == self).map_or("", |(_, word)| word))
    }
}

/// A list of interfaces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum List {
    /// IPv4 connections of what is there are translated.
    IncludeV4,
    /// IPv6 connections of what is there are translated.
    IncludeV6,
    /// Pods are there.
    Pod,
    /// The host itself is there.
    Host,
}

impl List {
    /// All, with VPP's words, in the order of its numbers.
    pub const ALL: [(List, &'static str); 4] = [
        (List::IncludeV4, "include-v4"),
        (List::IncludeV6, "include-v6"),
        (List::Pod, "k8s"),
        (List::Host, "host"),
    ];

    /// The word of a list.
    pub fn word(self) -> &'static str {
        List::ALL.iter().find(|(list, _)| *list == self).map_or("", |(_, word)| word)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A packet that the policy is asked about: how it looks on its way out, its destination translated already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question {
    /// Whether it is IPv6's.
    pub is_ip6: bool,
    /// Where it came in.
    pub rx: SwIfIndex,
    /// Where it goes out.
    pub tx: SwIfIndex,
    /// Its source.
    pub src: u128,
    /// Its destination.
    pub dst: u128,
    /// Its destination became this one by a translation.
    pub translated: bool,
}

/// The policy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// Its kind.
    pub kind: PolicyKind,
    /// Lists that each interface is on, a bit each.
    lists: Vec<u8>,
    /// Destinations that are never the reason for a translation.
    pub excluded: Prefixes,
}

impl Policy {
    /// A policy whose lists are empty.
    pub fn new(kind: PolicyKind, excluded: Prefixes) -> Self {
        Policy { kind, lists: Vec::new(), excluded }
    }

    /// Puts an interface on a list, or takes it off.
    pub fn set(&mut self, interface: SwIfIndex, list: List, on: bool) {
        let at = interface.0 as usize;
        if self.lists.len() <= at {
            self.lists.resize(at + 1, 0);
        }
        if let Some(lists) = self.lists.get_mut(at) {
            *lists = if on { *lists | list.bit() } else { *lists & !list.bit() };
        }
    }

    /// Whether an interface is on a list.
    #[inline(always)]
    pub fn has(&self, interface: SwIfIndex, list: List) -> bool {
        self.lists.get(interface.0 as usize).is_some_and(|lists| lists & list.bit() != 0)
    }

    /// Whether connections of what is behind an interface may be translated because of where they begin.
    #[inline(always)]
    pub fn includes(&self, is_ip6: bool, interface: SwIfIndex) -> bool {
        let list = if is_ip6 { List::IncludeV6 } else { List::IncludeV4 };
        matches!(self.kind, PolicyKind::IfPfx | PolicyKind::K8s) && self.has(interface, list)
    }

    fn leaves(&self, asked: &Question) -> bool {
        self.includes(asked.is_ip6, asked.rx) && !self.excluded.has(asked.is_ip6, asked.dst)
    }

    /// Whether a connection gets a shared source. With [`K8s`](PolicyKind::K8s): never if it goes to the host; if it leaves the
    /// cluster (as [`IfPfx`](PolicyKind::IfPfx)); if it was for a service and neither comes from a pod nor goes to one of this node,
    /// so that the answer comes back here; if a pod is its own back end, which would not answer itself.
    pub fn wants(&self, asked: &Question) -> bool {
        match self.kind {
            PolicyKind::None => false,
            PolicyKind::IfPfx => self.leaves(asked),
            PolicyKind::Dnat => asked.translated,
            PolicyKind::K8s if self.has(asked.tx, List::Host) => false,
            PolicyKind::K8s => {
                let no_pods = !self.has(asked.rx, List::Pod) && !self.has(asked.tx, List::Pod);
                self.leaves(asked) || (asked.translated && (no_pods || asked.src == asked.dst))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: SwIfIndex = SwIfIndex(1);
    const OTHER_POD: SwIfIndex = SwIfIndex(2);
    const UPLINK: SwIfIndex = SwIfIndex(3);
    const HOST: SwIfIndex = SwIfIndex(4);

    fn policy(kind: PolicyKind) -> Policy {
        let excluded = ["10.0.0.0/8".parse().unwrap()];
        let mut policy = Policy::new(kind, Prefixes::new(excluded.iter()));
        for pod in [POD, OTHER_POD] {
            policy.set(pod, List::IncludeV4, true);
            policy.set(pod, List::Pod, true);
        }
        policy.set(HOST, List::Host, true);
        policy
    }

    fn asked(rx: SwIfIndex, tx: SwIfIndex, dst: u128) -> Question {
        Question { is_ip6: false, rx, tx, src: 0x0a00_0001, dst, translated: false }
    }

    const OUTSIDE: u128 = 0xc000_0201;
    const INSIDE: u128 = 0x0a00_0002;

    #[test]
    fn interfaces_and_prefixes_decide() {
        let policy = policy(PolicyKind::IfPfx);
        assert!(policy.wants(&asked(POD, UPLINK, OUTSIDE)));
        assert!(!policy.wants(&asked(POD, UPLINK, INSIDE)), "excluded");
        assert!(!policy.wants(&asked(UPLINK, POD, OUTSIDE)), "not on the list");
        assert!(!policy.wants(&Question { is_ip6: true, ..asked(POD, UPLINK, OUTSIDE) }), "other family");
    }

    #[test]
    fn kubernetes_has_four_rules() {
        let policy = policy(PolicyKind::K8s);
        assert!(policy.wants(&asked(POD, UPLINK, OUTSIDE)));
        assert!(!policy.wants(&asked(POD, HOST, OUTSIDE)), "to the host");
        let service = |rx, tx, dst| Question { translated: true, ..asked(rx, tx, dst) };
        assert!(!policy.wants(&service(POD, OTHER_POD, INSIDE)));
        assert!(policy.wants(&service(UPLINK, UPLINK, INSIDE)), "a node port whose pod is elsewhere");
        assert!(!policy.wants(&service(UPLINK, POD, INSIDE)), "a node port whose pod is here");
        assert!(policy.wants(&service(POD, POD, 0x0a00_0001)), "a pod that asks itself");
        assert!(!policy.wants(&asked(UPLINK, UPLINK, INSIDE)), "no service");
    }

    #[test]
    fn none_and_dnat_ask_no_lists() {
        assert!(!policy(PolicyKind::None).wants(&asked(POD, UPLINK, OUTSIDE)));
        let dnat = policy(PolicyKind::Dnat);
        assert!(!dnat.wants(&asked(POD, UPLINK, OUTSIDE)));
        assert!(dnat.wants(&Question { translated: true, ..asked(UPLINK, POD, INSIDE) }));
    }
}
