//! On, off, and what holds for all sessions.

use shoal_message::{Message, Retval, Text};
use shoal_module::api::{Call, Dump, Request};
use shoal_nat::{NatLogLevel, NatTimeouts};
use shoal_nat44::sizes::buckets;
use shoal_nat44::workers::{WorkerInfo, check_mask};

use super::{Nat44EiConfigFlags, all, nat};
use crate::Enable;
use crate::config::{Algorithm, Mode, Timeouts};

/// Switches NAT44 on or off.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiPluginEnableDisable {
    pub inside_vrf: u32,
    pub outside_vrf: u32,
    /// Hosts of a worker; 0 for 1024.
    pub users: u32,
    /// Not used.
    pub user_memory: u32,
    /// Sessions of a worker; 0 for 10240.
    pub sessions: u32,
    /// Not used.
    pub session_memory: u32,
    /// Sessions of a host; 0 for as many as a worker has.
    pub user_sessions: u32,
    pub enable: bool,
    pub flags: Nat44EiConfigFlags,
}

fn mode(flags: Nat44EiConfigFlags) -> Mode {
    match (
        flags.has(Nat44EiConfigFlags::STATIC_MAPPING_ONLY),
        flags.has(Nat44EiConfigFlags::CONNECTION_TRACKING),
    ) {
        (true, true) => Mode::StaticTracked,
        (true, false) => Mode::Static,
        (false, _) => Mode::Dynamic,
    }
}

fn flags(on: &Enable) -> u8 {
    let mode = match on.mode {
        Mode::Dynamic => 0,
        Mode::StaticTracked => {
            Nat44EiConfigFlags::STATIC_MAPPING_ONLY | Nat44EiConfigFlags::CONNECTION_TRACKING
        }
        Mode::Static => Nat44EiConfigFlags::STATIC_MAPPING_ONLY,
    };
    mode | if on.out2in_dpo { Nat44EiConfigFlags::OUT2IN_DPO } else { 0 }
}

impl Request for Nat44EiPluginEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let nat = nat(call)?;
        if !self.enable {
            return Ok(nat.disable()?);
        }
        let Nat44EiPluginEnableDisable { inside_vrf, outside_vrf, users, sessions, user_sessions, .. } = self;
        let (mode, out2in_dpo) = (mode(self.flags), self.flags.has(Nat44EiConfigFlags::OUT2IN_DPO));
        Ok(nat.enable(Enable {
            inside_vrf,
            outside_vrf,
            users,
            sessions,
            user_sessions,
            mode,
            out2in_dpo,
        })?)
    }
}

/// Asks what holds for all sessions.
#[derive(Message)]
#[message(request, reply = Nat44EiShowRunningConfigReply)]
pub struct Nat44EiShowRunningConfig {}

/// What holds for all sessions.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiShowRunningConfigReply {
    pub retval: i32,
    pub inside_vrf: u32,
    pub outside_vrf: u32,
    pub users: u32,
    pub sessions: u32,
    pub user_sessions: u32,
    pub user_buckets: u32,
    pub translation_buckets: u32,
    pub forwarding_enabled: bool,
    pub ipfix_logging_enabled: bool,
    pub timeouts: NatTimeouts,
    pub log_level: NatLogLevel,
    pub flags: Nat44EiConfigFlags,
}

impl Request for Nat44EiShowRunningConfig {
    fn handle(self, call: &Call) -> Result<Nat44EiShowRunningConfigReply, Retval> {
        let nat = nat(call)?;
        let on =
            nat.enabled().unwrap_or(Enable { users: 0, sessions: 0, user_sessions: 0, ..Enable::default() });
        Ok(Nat44EiShowRunningConfigReply {
            retval: 0,
            inside_vrf: on.inside_vrf,
            outside_vrf: on.outside_vrf,
            users: on.users,
            sessions: on.sessions,
            user_sessions: on.user_sessions,
            user_buckets: buckets(on.users),
            translation_buckets: buckets(on.sessions),
            forwarding_enabled: nat.forwarding(),
            ipfix_logging_enabled: nat.ipfix().is_some(),
            timeouts: nat.timeouts().into(),
            log_level: NatLogLevel(0),
            flags: Nat44EiConfigFlags(flags(&on)),
        })
    }
}

/// Says how much is logged: as much as the router's log says, whatever the level here.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiSetLogLevel {
    pub log_level: NatLogLevel,
}

impl Request for Nat44EiSetLogLevel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        nat(call).map(drop)
    }
}

/// Says which workers translate. All of them do.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiSetWorkers {
    pub worker_mask: u64,
}

impl Request for Nat44EiSetWorkers {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let workers = nat(call)?.threads().into_iter().filter(|thread| *thread > 0).count();
        check_mask(workers, self.worker_mask)
    }
}

/// Asks for the workers that have sessions.
#[derive(Message)]
#[message(request, details = Nat44EiWorkerDetails)]
pub struct Nat44EiWorkerDump {}

/// A worker that has sessions.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiWorkerDetails {
    pub worker_index: u32,
    pub lcore_id: u32,
    pub name: Text<64>,
}

impl Dump for Nat44EiWorkerDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44EiWorkerDetails> + 'static {
        all(call, |nat| {
            let details = |worker: WorkerInfo| Nat44EiWorkerDetails {
                worker_index: worker.index,
                lcore_id: worker.cpu,
                name: Text::from(worker.name.as_str()),
            };
            nat.workers().into_iter().map(details).collect()
        })
    }
}

/// Tells IPFIX exporters of sessions, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiIpfixEnableDisable {
    /// The observation domain; 0: 1.
    pub domain_id: u32,
    /// The port records come from; 0: 4739.
    pub src_port: u16,
    pub enable: bool,
}

impl Request for Nat44EiIpfixEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let stream = self.enable.then_some((self.domain_id, self.src_port));
        nat(call)?.set_ipfix(stream);
        Ok(())
    }
}

/// Says how long sessions live without a packet.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiSetTimeouts {
    pub udp: u32,
    pub tcp_established: u32,
    pub tcp_transitory: u32,
    pub icmp: u32,
}

impl Request for Nat44EiSetTimeouts {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let Nat44EiSetTimeouts { udp, tcp_established, tcp_transitory, icmp } = self;
        Ok(nat(call)?.set_timeouts(Timeouts { udp, tcp_established, tcp_transitory, icmp })?)
    }
}

/// Says how ports are chosen.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiSetAddrAndPortAllocAlg {
    /// 0: any, 1: MAP-E, 2: of a range.
    pub alg: u8,
    pub psid_offset: u8,
    pub psid_length: u8,
    pub psid: u16,
    pub start_port: u16,
    pub end_port: u16,
}

impl Request for Nat44EiSetAddrAndPortAllocAlg {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let algorithm = match self.alg {
            0 => Algorithm::Default,
            1 => Algorithm::MapE {
                psid: self.psid,
                offset: self.psid_offset,
                length: self.psid_length,
                rfc7597: false,
            },
            2 => Algorithm::Range { first: self.start_port, last: self.end_port },
            _ => return Err(Retval::INVALID_VALUE),
        };
        Ok(nat(call)?.set_algorithm(algorithm)?)
    }
}

/// Asks how ports are chosen.
#[derive(Message)]
#[message(request, reply = Nat44EiGetAddrAndPortAllocAlgReply)]
pub struct Nat44EiGetAddrAndPortAllocAlg {}

/// How ports are chosen.
#[derive(Message, Default)]
#[message(reply)]
pub struct Nat44EiGetAddrAndPortAllocAlgReply {
    pub retval: i32,
    pub alg: u8,
    pub psid_offset: u8,
    pub psid_length: u8,
    pub psid: u16,
    pub start_port: u16,
    pub end_port: u16,
}

impl Request for Nat44EiGetAddrAndPortAllocAlg {
    fn handle(self, call: &Call) -> Result<Nat44EiGetAddrAndPortAllocAlgReply, Retval> {
        let none = Nat44EiGetAddrAndPortAllocAlgReply::default();
        Ok(match nat(call)?.algorithm() {
            Algorithm::Default => none,
            Algorithm::MapE { psid, offset, length, .. } => Nat44EiGetAddrAndPortAllocAlgReply {
                alg: 1,
                psid,
                psid_offset: offset,
                psid_length: length,
                ..none
            },
            // VPP has no number for it.
            Algorithm::Blocks { .. } => Nat44EiGetAddrAndPortAllocAlgReply { alg: u8::MAX, ..none },
            Algorithm::Range { first, last } => {
                Nat44EiGetAddrAndPortAllocAlgReply { alg: 2, start_port: first, end_port: last, ..none }
            }
        })
    }
}

/// Says how large a connection's segments may be.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiSetMssClamping {
    pub mss_value: u16,
    pub enable: bool,
}

impl Request for Nat44EiSetMssClamping {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        nat(call)?.set_mss(if self.enable { self.mss_value } else { 0 });
        Ok(())
    }
}

/// Asks how large they may be.
#[derive(Message)]
#[message(request, reply = Nat44EiGetMssClampingReply)]
pub struct Nat44EiGetMssClamping {}

/// How large a connection's segments may be.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiGetMssClampingReply {
    pub retval: i32,
    pub mss_value: u16,
    pub enable: bool,
}

impl Request for Nat44EiGetMssClamping {
    fn handle(self, call: &Call) -> Result<Nat44EiGetMssClampingReply, Retval> {
        let mss_value = nat(call)?.mss();
        Ok(Nat44EiGetMssClampingReply { retval: 0, mss_value, enable: mss_value > 0 })
    }
}

/// Lets packets pass that belong to no session, or drops them.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiForwardingEnableDisable {
    pub enable: bool,
}

impl Request for Nat44EiForwardingEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        nat(call)?.set_forwarding(self.enable);
        Ok(())
    }
}

/// Says how many frames may wait between two workers. Queues between workers are as long as they need to be here, so that the number
/// is remembered and nothing else.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiSetFqOptions {
    pub frame_queue_nelts: u32,
}

impl Request for Nat44EiSetFqOptions {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(nat(call)?.set_queue_length(self.frame_queue_nelts)?)
    }
}

/// Asks how many frames may wait.
#[derive(Message)]
#[message(request, reply = Nat44EiShowFqOptionsReply)]
pub struct Nat44EiShowFqOptions {}

/// How many frames may wait.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiShowFqOptionsReply {
    pub retval: i32,
    pub frame_queue_nelts: u32,
}

impl Request for Nat44EiShowFqOptions {
    fn handle(self, call: &Call) -> Result<Nat44EiShowFqOptionsReply, Retval> {
        Ok(Nat44EiShowFqOptionsReply { retval: 0, frame_queue_nelts: nat(call)?.queue_length() })
    }
}
