//! Messages: `map.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Ip4Prefix, Ip6Prefix, Message, Retval, Text};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Get, Request};

use crate::domain::Parameters;
use crate::{Map, MapError, Mode, Shown};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "map",
    folder: Folder::Plugins,
    version: "4.2.1",
    messages: &[
        ApiMessage::request::<MapAddDomain>(),
        ApiMessage::sent::<MapAddDomainReply>(),
        ApiMessage::request::<MapDelDomain>(),
        ApiMessage::request::<MapAddDelRule>(),
        ApiMessage::get::<MapDomainsGet>(),
        ApiMessage::sent::<MapDomainsGetReply>(),
        ApiMessage::dump::<MapDomainDump>(),
        ApiMessage::sent::<MapDomainDetails>(),
        ApiMessage::dump::<MapRuleDump>(),
        ApiMessage::sent::<MapRuleDetails>(),
        ApiMessage::request::<MapIfEnableDisable>(),
        ApiMessage::request::<MapSummaryStats>(),
        ApiMessage::sent::<MapSummaryStatsReply>(),
        ApiMessage::request::<MapParamSetFragmentation>(),
        ApiMessage::request::<MapParamSetIcmp>(),
        ApiMessage::request::<MapParamSetIcmp6>(),
        ApiMessage::request::<MapParamAddDelPreResolve>(),
        ApiMessage::request::<MapParamSetSecurityCheck>(),
        ApiMessage::request::<MapParamSetTrafficClass>(),
        ApiMessage::request::<MapParamSetTcp>(),
        ApiMessage::request::<MapParamGet>(),
        ApiMessage::sent::<MapParamGetReply>(),
    ],
};

/// Domains that one answer has.
const PAGE: usize = 256;

impl From<MapError> for Retval {
    fn from(error: MapError) -> Self {
        match error {
            // VPP says no more of domains and rules.
            MapError::Unfit(_)
            | MapError::Rule(..)
            | MapError::Number(..)
            | MapError::Full(_)
            | MapError::NoDomain(_)
            | MapError::NoRule(..)
            | MapError::Taken(_) => Retval::UNSPECIFIED,
            MapError::OtherKind(_) => Retval::VALUE_EXIST,
            MapError::Interface(error) => error.into(),
            MapError::Fib(error) => shoal_fib::api::retval(&error),
            MapError::Reassembly(_) => Retval::INVALID_SW_IF_INDEX,
        }
    }
}

fn map(call: &Call) -> Result<Rc<Map>, Retval> {
    call.get::<Map>().map_err(|_| Retval::UNSPECIFIED)
}

/// Makes a domain.
#[derive(Message)]
#[message(request, reply = MapAddDomainReply)]
pub struct MapAddDomain {
    pub ip6_prefix: Ip6Prefix,
    pub ip4_prefix: Ip4Prefix,
    pub ip6_src: Ip6Prefix,
    pub ea_bits_len: u8,
    pub psid_offset: u8,
    pub psid_length: u8,
    #[preset(1280)]
    pub mtu: u16,
    pub tag: Text<64>,
}

/// Its number.
#[derive(Message)]
#[message(reply)]
pub struct MapAddDomainReply {
    pub index: u32,
    pub retval: i32,
}

impl Request for MapAddDomain {
    fn handle(self, call: &Call) -> Result<MapAddDomainReply, Retval> {
        let six = |prefix: Ip6Prefix| shoal_wire::Ip6Prefix::new(prefix.address, prefix.len);
        let four = shoal_wire::Ip4Prefix::new(self.ip4_prefix.address, self.ip4_prefix.len);
        let (Ok(ip4), Ok(ip6), Ok(ip6_src)) = (four, six(self.ip6_prefix), six(self.ip6_src)) else {
            return Err(Retval::INVALID_VALUE);
        };
        let index = map(call)?.add_domain(Parameters {
            ip4: ip4.normalized(),
            ip6: ip6.normalized(),
            ip6_src: ip6_src.normalized(),
            ea_bits: self.ea_bits_len,
            psid_offset: self.psid_offset,
            psid_length: self.psid_length,
            mtu: self.mtu,
            tag: self.tag.as_str().to_owned(),
        })?;
        Ok(MapAddDomainReply { index, retval: 0 })
    }
}

/// Deletes a domain.
#[derive(Message)]
#[message(request)]
pub struct MapDelDomain {
    pub index: u32,
}

impl Request for MapDelDomain {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(map(call)?.del_domain(self.index)?)
    }
}

/// Gives a port set an address of its own, or takes it away.
#[derive(Message)]
#[message(request)]
pub struct MapAddDelRule {
    pub index: u32,
    pub is_add: bool,
    pub ip6_dst: Ipv6Addr,
    pub psid: u16,
}

impl Request for MapAddDelRule {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let map = map(call)?;
        if self.is_add {
            return Ok(map.add_rule(self.index, self.psid, self.ip6_dst)?);
        }
        match map.del_rule(self.index, self.psid) {
            // As VPP: what is not there need not go.
            Err(MapError::NoRule(..)) => Ok(()),
            done => Ok(done?),
        }
    }
}

/// Asks for domains, page by page.
#[derive(Message)]
#[message(request, reply = MapDomainsGetReply, details = MapDomainDetails)]
pub struct MapDomainsGet {
    /// Where to go on; 0 to begin.
    pub cursor: u32,
}

/// Whether there are more.
#[derive(Message)]
#[message(reply)]
pub struct MapDomainsGetReply {
    pub retval: i32,
    /// Where to go on; all bits set at the end.
    pub cursor: u32,
}

/// A domain.
#[derive(Message)]
#[message(reply)]
pub struct MapDomainDetails {
    pub domain_index: u32,
    pub ip6_prefix: Ip6Prefix,
    pub ip4_prefix: Ip4Prefix,
    pub ip6_src: Ip6Prefix,
    pub ea_bits_len: u8,
    pub psid_offset: u8,
    pub psid_length: u8,
    pub flags: u8,
    pub mtu: u16,
    pub tag: Text<64>,
}

impl From<Shown> for MapDomainDetails {
    fn from(shown: Shown) -> Self {
        let Parameters { ip4, ip6, ip6_src, ea_bits, psid_offset, psid_length, mtu, tag } =
            &shown.domain.parameters;
        let six = |prefix: &shoal_wire::Ip6Prefix| Ip6Prefix { address: prefix.addr(), len: prefix.len() };
        MapDomainDetails {
            domain_index: shown.index,
            ip6_prefix: six(ip6),
            ip4_prefix: Ip4Prefix { address: ip4.addr(), len: ip4.len() },
            ip6_src: six(ip6_src),
            ea_bits_len: *ea_bits,
            psid_offset: *psid_offset,
            psid_length: *psid_length,
            flags: 0,
            mtu: *mtu,
            tag: tag.as_str().into(),
        }
    }
}

impl Get for MapDomainsGet {
    fn get(self, call: &Call) -> Result<(Vec<MapDomainDetails>, MapDomainsGetReply), Retval> {
        let from = if self.cursor == u32::MAX { 0 } else { self.cursor };
        let mut left = map(call)?.domains(from, PAGE + 1).into_iter();
        let details = left.by_ref().take(PAGE).map(MapDomainDetails::from).collect();
        let (retval, cursor) = left.next().map_or((0, u32::MAX), |next| (Retval::EAGAIN.0, next.index));
        Ok((details, MapDomainsGetReply { retval, cursor }))
    }
}

/// Asks for all domains.
#[derive(Message)]
#[message(request, details = MapDomainDetails)]
pub struct MapDomainDump {}

impl Dump for MapDomainDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = MapDomainDetails> + 'static {
        let all = map(call).map(|map| map.all()).unwrap_or_default();
        all.into_iter().map(MapDomainDetails::from)
    }
}

/// Asks for the rules of a domain.
#[derive(Message)]
#[message(request, details = MapRuleDetails)]
pub struct MapRuleDump {
    pub domain_index: u32,
}

/// A rule.
#[derive(Message)]
#[message(reply)]
pub struct MapRuleDetails {
    pub ip6_dst: Ipv6Addr,
    pub psid: u16,
}

impl Dump for MapRuleDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = MapRuleDetails> + 'static {
        let domain = map(call).ok().and_then(|map| map.domain(self.domain_index).ok());
        let rules = domain.map(|shown| BTreeMap::clone(&shown.rules)).unwrap_or_default();
        rules.into_iter().map(|(psid, ip6_dst)| MapRuleDetails { ip6_dst, psid })
    }
}

/// Does MAP on an interface, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct MapIfEnableDisable {
    pub sw_if_index: InterfaceIndex,
    pub is_enable: bool,
    pub is_translation: bool,
}

impl Request for MapIfEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let mode = if self.is_translation { Mode::Translate } else { Mode::Encapsulate };
        Ok(map(call)?.set_interface(SwIfIndex(self.sw_if_index.0), mode, self.is_enable)?)
    }
}

/// Asks for sums.
#[derive(Message)]
#[message(request, reply = MapSummaryStatsReply)]
pub struct MapSummaryStats {}

/// Sums: first of packets from customers, then of those to them.
#[derive(Message)]
#[message(reply)]
pub struct MapSummaryStatsReply {
    pub retval: i32,
    pub total_bindings: u64,
    pub total_pkts: [u64; 2],
    pub total_bytes: [u64; 2],
    pub total_ip4_fragments: u64,
    pub total_security_check: [u64; 2],
}

impl Request for MapSummaryStats {
    fn handle(self, call: &Call) -> Result<MapSummaryStatsReply, Retval> {
        let all = map(call)?.all();
        if all.is_empty() {
            return Err(Retval::UNSPECIFIED);
        }
        let sum = |of: fn(&Shown) -> u64| all.iter().map(of).sum::<u64>();
        Ok(MapSummaryStatsReply {
            retval: 0,
            total_bindings: all.len() as u64,
            total_pkts: [sum(|shown| shown.counts[0].0), sum(|shown| shown.counts[1].0)],
            total_bytes: [sum(|shown| shown.counts[0].1), sum(|shown| shown.counts[1].1)],
            total_ip4_fragments: 0,
            total_security_check: [0, 0],
        })
    }
}

/// Says how packets that are too large are fragmented.
#[derive(Message)]
#[message(request)]
pub struct MapParamSetFragmentation {
    pub inner: bool,
    pub ignore_df: bool,
}

impl Request for MapParamSetFragmentation {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        map(call)?.set(|settings| {
            (settings.frag_inner, settings.frag_ignore_df) = (self.inner, self.ignore_df);
        });
        Ok(())
    }
}

/// Sets the source of ICMP errors that are relayed.
#[derive(Message)]
#[message(request)]
pub struct MapParamSetIcmp {
    pub ip4_err_relay_src: Ipv4Addr,
}

impl Request for MapParamSetIcmp {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        map(call)?.set_icmp_source(self.ip4_err_relay_src);
        Ok(())
    }
}

/// Tells senders of packets that belong to no customer, or does not.
#[derive(Message)]
#[message(request)]
pub struct MapParamSetIcmp6 {
    pub enable_unreachable: bool,
}

impl Request for MapParamSetIcmp6 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        map(call)?.set(|settings| settings.icmp6_unreachables = self.enable_unreachable);
        Ok(())
    }
}

/// Sets where packets go that leave MAP.
#[derive(Message)]
#[message(request)]
pub struct MapParamAddDelPreResolve {
    pub is_add: bool,
    pub ip4_nh_address: Ipv4Addr,
    pub ip6_nh_address: Ipv6Addr,
}

impl Request for MapParamAddDelPreResolve {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let both: [IpAddr; 2] = [self.ip4_nh_address.into(), self.ip6_nh_address.into()];
        let hops: Vec<IpAddr> = both.into_iter().filter(|hop| !hop.is_unspecified()).collect();
        Ok(map(call)?.set_next_hops(&hops, self.is_add)?)
    }
}

/// Says whether packets of customers are checked.
#[derive(Message)]
#[message(request)]
pub struct MapParamSetSecurityCheck {
    pub enable: bool,
    pub fragments: bool,
}

impl Request for MapParamSetSecurityCheck {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        map(call)?.set(|settings| {
            (settings.security_check, settings.security_check_fragments) = (self.enable, self.fragments);
        });
        Ok(())
    }
}

/// Says which class packets get.
#[derive(Message)]
#[message(request)]
pub struct MapParamSetTrafficClass {
    pub copy: bool,
    pub tc_class: u8,
}

impl Request for MapParamSetTrafficClass {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        map(call)?.set(|settings| (settings.tc_copy, settings.tc_class) = (self.copy, self.tc_class));
        Ok(())
    }
}

/// Sets the largest segment of TCP.
#[derive(Message)]
#[message(request)]
pub struct MapParamSetTcp {
    pub tcp_mss: u16,
}

impl Request for MapParamSetTcp {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        map(call)?.set(|settings| settings.tcp_mss = self.tcp_mss);
        Ok(())
    }
}

/// Asks for parameters.
#[derive(Message)]
#[message(request, reply = MapParamGetReply)]
pub struct MapParamGet {}

/// Parameters.
#[derive(Message)]
#[message(reply)]
pub struct MapParamGetReply {
    pub retval: i32,
    pub frag_inner: u8,
    pub frag_ignore_df: u8,
    pub icmp_ip4_err_relay_src: Ipv4Addr,
    pub icmp6_enable_unreachable: bool,
    pub ip4_nh_address: Ipv4Addr,
    pub ip6_nh_address: Ipv6Addr,
    pub ip4_lifetime_ms: u16,
    pub ip4_pool_size: u16,
    pub ip4_buffers: u32,
    pub ip4_ht_ratio: f64,
    pub sec_check_enable: bool,
    pub sec_check_fragments: bool,
    pub tc_copy: bool,
    pub tc_class: u8,
}

impl Request for MapParamGet {
    fn handle(self, call: &Call) -> Result<MapParamGetReply, Retval> {
        let map = map(call)?;
        let (settings, hops) = (map.settings(), map.next_hops());
        Ok(MapParamGetReply {
            retval: 0,
            frag_inner: settings.frag_inner.into(),
            frag_ignore_df: settings.frag_ignore_df.into(),
            icmp_ip4_err_relay_src: settings.icmp_source.unwrap_or(Ipv4Addr::UNSPECIFIED),
            icmp6_enable_unreachable: settings.icmp6_unreachables,
            ip4_nh_address: hops.ip4.map_or(Ipv4Addr::UNSPECIFIED, |hop| hop.address),
            ip6_nh_address: hops.ip6.map_or(Ipv6Addr::UNSPECIFIED, |hop| hop.address),
            ip4_lifetime_ms: 0,
            ip4_pool_size: 0,
            ip4_buffers: 0,
            ip4_ht_ratio: 0.0,
            sec_check_enable: settings.security_check,
            sec_check_fragments: settings.security_check_fragments,
            tc_copy: settings.tc_copy,
            tc_class: settings.tc_class,
        })
    }
}
