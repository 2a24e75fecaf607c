//! On, off, and what holds for all sessions.

use shoal_message::{Count, Message, Retval, Text, Value};
use shoal_module::api::{Call, Dump, Request};
use shoal_nat::{NatLogLevel, NatTimeouts};
use shoal_nat44::workers::{WorkerInfo, check_mask};

use super::{all, nat};
use crate::Enable;
use crate::config::Timeouts;

/// Kinds of NAT44 that older versions had.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("NAT44_IS_ENDPOINT_INDEPENDENT", 0)]
#[entry("NAT44_IS_ENDPOINT_DEPENDENT", 1)]
#[entry("NAT44_IS_STATIC_MAPPING_ONLY", 2)]
#[entry("NAT44_IS_CONNECTION_TRACKING", 4)]
#[entry("NAT44_IS_OUT2IN_DPO", 8)]
pub struct Nat44ConfigFlags(pub u8);

/// Switches NAT44 on or off.
#[derive(Message)]
#[message(request)]
pub struct Nat44EdPluginEnableDisable {
    pub inside_vrf: u32,
    pub outside_vrf: u32,
    /// Sessions of a worker; 0 for 64512.
    pub sessions: u32,
    /// Not used.
    pub session_memory: u32,
    pub enable: bool,
    pub flags: Nat44ConfigFlags,
}

impl Request for Nat44EdPluginEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let nat = nat(call)?;
        if !self.enable {
            return Ok(nat.disable_nat()?);
        }
        // Mappings without sessions are the endpoint-independent NAT's.
        if self.flags.0 & 6 != 0 {
            return Err(Retval::UNSUPPORTED);
        }
        let Nat44EdPluginEnableDisable { inside_vrf, outside_vrf, sessions, .. } = self;
        Ok(nat.enable_nat(Enable { inside_vrf, outside_vrf, sessions })?)
    }
}

/// Lets packets pass that belong to no session, or drops them.
#[derive(Message)]
#[message(request)]
pub struct Nat44ForwardingEnableDisable {
    pub enable: bool,
}

impl Request for Nat44ForwardingEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(nat(call)?.set_forwarding(self.enable)?)
    }
}

/// Says how long sessions live without a packet.
#[derive(Message)]
#[message(request)]
pub struct NatSetTimeouts {
    pub udp: u32,
    pub tcp_established: u32,
    pub tcp_transitory: u32,
    pub icmp: u32,
}

impl Request for NatSetTimeouts {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let NatSetTimeouts { udp, tcp_established, tcp_transitory, icmp } = self;
        Ok(nat(call)?.set_timeouts(Timeouts { udp, tcp_established, tcp_transitory, icmp })?)
    }
}

/// Limits the sessions of a VRF's hosts.
#[derive(Message)]
#[message(request)]
pub struct Nat44SetSessionLimit {
    pub session_limit: u32,
    pub vrf_id: u32,
}

impl Request for Nat44SetSessionLimit {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(nat(call)?.set_limit(self.vrf_id, self.session_limit)?)
    }
}

/// Asks what holds for all sessions.
#[derive(Message)]
#[message(request, reply = Nat44ShowRunningConfigReply)]
pub struct Nat44ShowRunningConfig {}

/// What holds for all sessions.
#[derive(Message)]
#[message(reply)]
pub struct Nat44ShowRunningConfigReply {
    pub retval: i32,
    pub inside_vrf: u32,
    pub outside_vrf: u32,
    /// Always 0.
    pub users: u32,
    /// Sessions of a worker at most.
    pub sessions: u32,
    /// Always 0.
    pub user_sessions: u32,
    /// Always 0.
    pub user_buckets: u32,
    pub translation_buckets: u32,
    pub forwarding_enabled: bool,
    pub ipfix_logging_enabled: bool,
    pub timeouts: NatTimeouts,
    pub log_level: NatLogLevel,
    pub flags: Nat44ConfigFlags,
}

impl Request for Nat44ShowRunningConfig {
    fn handle(self, call: &Call) -> Result<Nat44ShowRunningConfigReply, Retval> {
        let nat = nat(call)?;
        let on = nat.enabled();
        let Enable { inside_vrf, outside_vrf, sessions } =
            on.unwrap_or(Enable { inside_vrf: 0, outside_vrf: 0, sessions: 0 });
        Ok(Nat44ShowRunningConfigReply {
            retval: 0,
            inside_vrf,
            outside_vrf,
            users: 0,
            sessions,
            user_sessions: 0,
            user_buckets: 0,
            translation_buckets: shoal_nat44::sizes::buckets(sessions),
            forwarding_enabled: nat.forwarding(),
            ipfix_logging_enabled: nat.ipfix().is_some(),
            timeouts: nat.timeouts().into(),
            log_level: NatLogLevel(0),
            flags: Nat44ConfigFlags(u8::from(on.is_some())),
        })
    }
}

/// Tells IPFIX exporters of sessions, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct NatIpfixEnableDisable {
    /// The observation domain; 0: 1.
    pub domain_id: u32,
    /// The port records come from; 0: 4739.
    pub src_port: u16,
    pub enable: bool,
}

impl Request for NatIpfixEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let stream = self.enable.then_some((self.domain_id, self.src_port));
        nat(call)?.set_ipfix(stream);
        Ok(())
    }
}

/// Says which workers translate. All of them do.
#[derive(Message)]
#[message(request)]
pub struct NatSetWorkers {
    pub worker_mask: u64,
}

impl Request for NatSetWorkers {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let workers = nat(call)?.threads().into_iter().filter(|thread| *thread > 0).count();
        check_mask(workers, self.worker_mask)
    }
}

/// Asks for the workers that have sessions.
#[derive(Message)]
#[message(request, details = NatWorkerDetails)]
pub struct NatWorkerDump {}

/// A worker that has sessions.
#[derive(Message)]
#[message(reply)]
pub struct NatWorkerDetails {
    pub worker_index: u32,
    pub lcore_id: u32,
    pub name: Text<64>,
}

impl Dump for NatWorkerDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = NatWorkerDetails> + 'static {
        all(call, |nat| {
            let details = |worker: WorkerInfo| NatWorkerDetails {
                worker_index: worker.index,
                lcore_id: worker.cpu,
                name: Text::from(worker.name.as_str()),
            };
            nat.workers().into_iter().map(details).collect()
        })
    }
}

/// Has destinations of a VRF's hosts looked for in VRFs that are named, or as always.
#[derive(Message)]
#[message(request)]
pub struct Nat44EdAddDelVrfTable {
    pub table_vrf_id: u32,
    pub is_add: bool,
}

impl Request for Nat44EdAddDelVrfTable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(nat(call)?.set_vrf_table(self.table_vrf_id, self.is_add)?)
    }
}

/// Names a VRF in which they are looked for, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct Nat44EdAddDelVrfRoute {
    pub table_vrf_id: u32,
    pub vrf_id: u32,
    pub is_add: bool,
}

impl Request for Nat44EdAddDelVrfRoute {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(nat(call)?.set_vrf_route(self.table_vrf_id, self.vrf_id, self.is_add)?)
    }
}

/// Asks for VRFs whose hosts' destinations are looked for elsewhere.
#[derive(Message)]
#[message(request, details = Nat44EdVrfTablesDetails)]
pub struct Nat44EdVrfTablesDump {}

/// A VRF and where its hosts' destinations are looked for.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EdVrfTablesDetails {
    pub table_vrf_id: u32,
    pub n_vrf_ids: Count<u32>,
    #[counted_by(n_vrf_ids)]
    pub vrf_ids: Vec<u32>,
}

impl Dump for Nat44EdVrfTablesDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44EdVrfTablesDetails> + 'static {
        let n_vrf_ids = Count::default();
        all(call, super::super::control::Nat44::vrf_tables)
            .map(move |(table_vrf_id, vrf_ids)| Nat44EdVrfTablesDetails { table_vrf_id, n_vrf_ids, vrf_ids })
    }
}

/// Asks for VRFs whose hosts' destinations are looked for elsewhere.
#[derive(Message)]
#[message(request, details = Nat44EdVrfTablesV2Details)]
pub struct Nat44EdVrfTablesV2Dump {}

/// A VRF and where its hosts' destinations are looked for.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EdVrfTablesV2Details {
    pub table_vrf_id: u32,
    pub n_vrf_ids: Count<u32>,
    #[counted_by(n_vrf_ids)]
    pub vrf_ids: Vec<u32>,
}

impl Dump for Nat44EdVrfTablesV2Dump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44EdVrfTablesV2Details> + 'static {
        let n_vrf_ids = Count::default();
        all(call, super::super::control::Nat44::vrf_tables).map(move |(table_vrf_id, vrf_ids)| {
            Nat44EdVrfTablesV2Details { table_vrf_id, n_vrf_ids, vrf_ids }
        })
    }
}

/// Says how large a connection's segments may be.
#[derive(Message)]
#[message(request)]
pub struct NatSetMssClamping {
    pub mss_value: u16,
    pub enable: bool,
}

impl Request for NatSetMssClamping {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(nat(call)?.set_mss(if self.enable { self.mss_value } else { 0 })?)
    }
}

/// Asks how large they may be.
#[derive(Message)]
#[message(request, reply = NatGetMssClampingReply)]
pub struct NatGetMssClamping {}

/// How large a connection's segments may be.
#[derive(Message)]
#[message(reply)]
pub struct NatGetMssClampingReply {
    pub retval: i32,
    pub mss_value: u16,
    pub enable: bool,
}

impl Request for NatGetMssClamping {
    fn handle(self, call: &Call) -> Result<NatGetMssClampingReply, Retval> {
        let mss_value = nat(call)?.mss();
        Ok(NatGetMssClampingReply { retval: 0, mss_value, enable: mss_value > 0 })
    }
}
