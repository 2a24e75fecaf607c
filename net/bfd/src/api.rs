//! Messages: `bfd.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_message::{IfStatusFlags, InterfaceIndex, Message, Retval, Value};
use shoal_module::Control;
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request, Subscribers};

use crate::{AuthType, Bfd, BfdError, Hop, Parameters, Session, SessionKey, State};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "bfd",
    folder: Folder::Core,
    version: "2.0.0",
    messages: &[
        ApiMessage::request::<BfdUdpSetEchoSource>(),
        ApiMessage::request::<BfdUdpDelEchoSource>(),
        ApiMessage::request::<BfdUdpGetEchoSource>(),
        ApiMessage::sent::<BfdUdpGetEchoSourceReply>(),
        ApiMessage::request::<BfdUdpAdd>(),
        ApiMessage::request::<BfdUdpUpd>(),
        ApiMessage::sent::<BfdUdpUpdReply>(),
        ApiMessage::request::<BfdUdpMod>(),
        ApiMessage::request::<BfdUdpDel>(),
        ApiMessage::dump::<BfdUdpSessionDump>(),
        ApiMessage::sent::<BfdUdpSessionDetails>(),
        ApiMessage::request::<BfdUdpSessionSetFlags>(),
        ApiMessage::request::<WantBfdEvents>(),
        ApiMessage::sent::<BfdUdpSessionEvent>(),
        ApiMessage::request::<BfdAuthSetKey>(),
        ApiMessage::request::<BfdAuthDelKey>(),
        ApiMessage::dump::<BfdAuthKeysDump>(),
        ApiMessage::sent::<BfdAuthKeysDetails>(),
        ApiMessage::request::<BfdUdpAuthActivate>(),
        ApiMessage::request::<BfdUdpAuthDeactivate>(),
        ApiMessage::request::<BfdUdpEnableMultihop>(),
        ApiMessage::request::<BfdUdpSetTos>(),
        ApiMessage::request::<BfdUdpGetTos>(),
        ApiMessage::sent::<BfdUdpGetTosReply>(),
    ],
};

/// The state of a session.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BfdState {
    /// Switched off.
    #[entry("BFD_STATE_API_ADMIN_DOWN")]
    AdminDown = 0,
    /// Nothing is heard.
    #[entry("BFD_STATE_API_DOWN")]
    Down = 1,
    /// The other end is heard.
    #[entry("BFD_STATE_API_INIT")]
    Init = 2,
    /// Both hear each other.
    #[entry("BFD_STATE_API_UP")]
    Up = 3,
}

impl From<State> for BfdState {
    fn from(state: State) -> Self {
        match state {
            State::AdminDown => BfdState::AdminDown,
            State::Down => BfdState::Down,
            State::Init => BfdState::Init,
            State::Up => BfdState::Up,
        }
    }
}

impl From<BfdError> for Retval {
    fn from(error: BfdError) -> Self {
        match error {
            BfdError::Exists => Retval::BFD_EEXIST,
            BfdError::None => Retval::BFD_ENOENT,
            BfdError::InUse => Retval::BFD_EINUSE,
            BfdError::NotSupported => Retval::BFD_NOTSUPP,
            BfdError::Addresses(..) | BfdError::Zero(_) | BfdError::Secret => Retval::INVALID_ARGUMENT,
            BfdError::TooMany(_) | BfdError::Adjacency(_) => Retval::BFD_EAGAIN,
            BfdError::Interface(error) => error.into(),
        }
    }
}

/// VPP's number of what went wrong.
pub(crate) fn retval(error: &BfdError) -> Retval {
    error.clone().into()
}

fn bfd(call: &Call) -> Result<Rc<Bfd>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

fn key(interface: InterfaceIndex, local: IpAddr, peer: IpAddr) -> SessionKey {
    let hop =
        if interface == InterfaceIndex::NONE { Hop::Multi } else { Hop::Single(SwIfIndex(interface.0)) };
    SessionKey { hop, local, peer }
}

fn interface(key: SessionKey) -> InterfaceIndex {
    match key.hop {
        Hop::Single(interface) => InterfaceIndex(interface.0),
        Hop::Multi => InterfaceIndex::NONE,
    }
}

/// Has echo packets seem to come from the network of an interface.
#[derive(Message)]
#[message(request)]
pub struct BfdUdpSetEchoSource {
    pub sw_if_index: InterfaceIndex,
}

impl Request for BfdUdpSetEchoSource {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(bfd(call)?.set_echo_source(Some(SwIfIndex(self.sw_if_index.0)))?)
    }
}

/// Sends no echo packets any more.
#[derive(Message)]
#[message(request)]
pub struct BfdUdpDelEchoSource {}

impl Request for BfdUdpDelEchoSource {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(bfd(call)?.set_echo_source(None)?)
    }
}

/// Asks from where echo packets seem to come.
#[derive(Message)]
#[message(request, reply = BfdUdpGetEchoSourceReply)]
pub struct BfdUdpGetEchoSource {}

/// From where they do.
#[derive(Message)]
#[message(reply)]
pub struct BfdUdpGetEchoSourceReply {
    pub retval: i32,
    pub sw_if_index: InterfaceIndex,
    pub is_set: bool,
    pub have_usable_ip4: bool,
    pub ip4_addr: Ipv4Addr,
    pub have_usable_ip6: bool,
    pub ip6_addr: Ipv6Addr,
}

impl Request for BfdUdpGetEchoSource {
    fn handle(self, call: &Call) -> Result<BfdUdpGetEchoSourceReply, Retval> {
        let source = bfd(call)?.echo_source();
        let (ip4, ip6) = source.map_or((None, None), |source| (source.ip4, source.ip6));
        Ok(BfdUdpGetEchoSourceReply {
            retval: 0,
            sw_if_index: source.map_or(InterfaceIndex::NONE, |source| InterfaceIndex(source.interface.0)),
            is_set: source.is_some(),
            have_usable_ip4: ip4.is_some(),
            ip4_addr: ip4.unwrap_or(Ipv4Addr::UNSPECIFIED),
            have_usable_ip6: ip6.is_some(),
            ip6_addr: ip6.unwrap_or(Ipv6Addr::UNSPECIFIED),
        })
    }
}

/// Makes a session; over several hops without an interface.
#[derive(Message)]
#[message(request)]
pub struct BfdUdpAdd {
    pub sw_if_index: InterfaceIndex,
    pub desired_min_tx: u32,
    pub required_min_rx: u32,
    pub local_addr: IpAddr,
    pub peer_addr: IpAddr,
    pub detect_mult: u8,
    pub is_authenticated: bool,
    pub bfd_key_id: u8,
    pub conf_key_id: u32,
}

impl Request for BfdUdpAdd {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let key = key(self.sw_if_index, self.local_addr, self.peer_addr);
        let parameters = Parameters {
            desired_min_tx: self.desired_min_tx,
            required_min_rx: self.required_min_rx,
            detect_mult: self.detect_mult,
        };
        let auth = self.is_authenticated.then_some((self.conf_key_id, self.bfd_key_id));
        bfd(call)?.add(key, parameters, auth)?;
        Ok(())
    }
}

/// Makes a session, or gives the one that there is other parameters.
#[derive(Message)]
#[message(request, reply = BfdUdpUpdReply)]
pub struct BfdUdpUpd {
    pub sw_if_index: InterfaceIndex,
    pub desired_min_tx: u32,
    pub required_min_rx: u32,
    pub local_addr: IpAddr,
    pub peer_addr: IpAddr,
    pub detect_mult: u8,
    pub is_authenticated: bool,
    pub bfd_key_id: u8,
    pub conf_key_id: u32,
}

/// Where the session is counted.
#[derive(Message)]
#[message(reply)]
pub struct BfdUdpUpdReply {
    pub retval: i32,
    pub stats_index: u32,
}

impl Request for BfdUdpUpd {
    fn handle(self, call: &Call) -> Result<BfdUdpUpdReply, Retval> {
        let (bfd, key) = (bfd(call)?, key(self.sw_if_index, self.local_addr, self.peer_addr));
        let parameters = Parameters {
            desired_min_tx: self.desired_min_tx,
            required_min_rx: self.required_min_rx,
            detect_mult: self.detect_mult,
        };
        let auth = self.is_authenticated.then_some((self.conf_key_id, self.bfd_key_id));
        let stats_index = match bfd.modify(key, parameters) {
            Err(BfdError::None) => bfd.add(key, parameters, auth)?,
            done => done?,
        };
        Ok(BfdUdpUpdReply { retval: 0, stats_index })
    }
}

/// Gives a session other parameters.
#[derive(Message)]
#[message(request)]
pub struct BfdUdpMod {
    pub sw_if_index: InterfaceIndex,
    pub desired_min_tx: u32,
    pub required_min_rx: u32,
    pub local_addr: IpAddr,
    pub peer_addr: IpAddr,
    pub detect_mult: u8,
}

impl Request for BfdUdpMod {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let parameters = Parameters {
            desired_min_tx: self.desired_min_tx,
            required_min_rx: self.required_min_rx,
            detect_mult: self.detect_mult,
        };
        bfd(call)?.modify(key(self.sw_if_index, self.local_addr, self.peer_addr), parameters)?;
        Ok(())
    }
}

/// Deletes a session.
#[derive(Message)]
#[message(request)]
pub struct BfdUdpDel {
    pub sw_if_index: InterfaceIndex,
    pub local_addr: IpAddr,
    pub peer_addr: IpAddr,
}

impl Request for BfdUdpDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(bfd(call)?.del(key(self.sw_if_index, self.local_addr, self.peer_addr))?)
    }
}

/// Asks for all sessions.
#[derive(Message)]
#[message(request, details = BfdUdpSessionDetails)]
pub struct BfdUdpSessionDump {}

/// A session.
#[derive(Message)]
#[message(reply)]
pub struct BfdUdpSessionDetails {
    pub sw_if_index: InterfaceIndex,
    pub local_addr: IpAddr,
    pub peer_addr: IpAddr,
    pub state: BfdState,
    pub is_authenticated: bool,
    pub bfd_key_id: u8,
    pub conf_key_id: u32,
    pub required_min_rx: u32,
    pub desired_min_tx: u32,
    pub detect_mult: u8,
}

impl Dump for BfdUdpSessionDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = BfdUdpSessionDetails> + 'static {
        let all = bfd(call).map(|bfd| bfd.list()).unwrap_or_default();
        let one = |info: crate::SessionInfo| {
            let BfdUdpSessionEvent {
                sw_if_index,
                local_addr,
                peer_addr,
                state,
                is_authenticated,
                bfd_key_id,
                conf_key_id,
                required_min_rx,
                desired_min_tx,
                detect_mult,
            } = event(info.key, &info.session);
            BfdUdpSessionDetails {
                sw_if_index,
                local_addr,
                peer_addr,
                state,
                is_authenticated,
                bfd_key_id,
                conf_key_id,
                required_min_rx,
                desired_min_tx,
                detect_mult,
            }
        };
        all.into_iter().map(one)
    }
}

/// Switches a session on or off.
#[derive(Message)]
#[message(request)]
pub struct BfdUdpSessionSetFlags {
    pub sw_if_index: InterfaceIndex,
    pub local_addr: IpAddr,
    pub peer_addr: IpAddr,
    pub flags: IfStatusFlags,
}

impl Request for BfdUdpSessionSetFlags {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let up = self.flags.0 & IfStatusFlags::ADMIN_UP != 0;
        Ok(bfd(call)?.set_admin(key(self.sw_if_index, self.local_addr, self.peer_addr), up)?)
    }
}

/// Wants to know of each change of a session's state, or no longer.
#[derive(Message)]
#[message(request, events = BfdUdpSessionEvent)]
pub struct WantBfdEvents {
    pub enable_disable: bool,
    pub pid: u32,
}

/// The state of a session has changed.
#[derive(Message)]
#[message(event)]
pub struct BfdUdpSessionEvent {
    pub sw_if_index: InterfaceIndex,
    pub local_addr: IpAddr,
    pub peer_addr: IpAddr,
    pub state: BfdState,
    pub is_authenticated: bool,
    pub bfd_key_id: u8,
    pub conf_key_id: u32,
    pub required_min_rx: u32,
    pub desired_min_tx: u32,
    pub detect_mult: u8,
}

/// What clients receive about a session. A key that waits for the other end is the session's for them.
fn event(key: SessionKey, session: &Session) -> BfdUdpSessionEvent {
    let auth = session.next_auth.unwrap_or(session.auth);
    BfdUdpSessionEvent {
        sw_if_index: interface(key),
        local_addr: key.local,
        peer_addr: key.peer,
        state: session.state.into(),
        is_authenticated: auth.is_some(),
        bfd_key_id: auth.map_or(0, |auth| auth.key_id),
        conf_key_id: auth.map_or(0, |auth| auth.conf_key),
        required_min_rx: session.parameters.required_min_rx,
        desired_min_tx: session.parameters.desired_min_tx,
        detect_mult: session.parameters.detect_mult,
    }
}

/// The clients that want events.
#[derive(Default)]
struct Watchers(Subscribers);

pub(crate) fn follow(control: &Rc<Control>, bfd: &Bfd) {
    let watchers = control.put(Watchers::default());
    let weak = Rc::downgrade(control);
    bfd.observe(move |key, session| {
        if let Some(control) = weak.upgrade() {
            watchers.0.publish(&control, |()| true, &event(key, session));
        }
    });
}

impl Request for WantBfdEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let watchers = call.get::<Watchers>().map_err(|_| Retval::UNSPECIFIED)?;
        watchers.0.set(call, self.pid, (), self.enable_disable)
    }
}

/// Adds a key, or gives one that no session uses another secret.
#[derive(Message)]
#[message(request)]
pub struct BfdAuthSetKey {
    pub conf_key_id: u32,
    pub key_len: u8,
    /// 4: keyed SHA1, 5: meticulous keyed SHA1.
    pub auth_type: u8,
    pub key: [u8; 20],
}

impl Request for BfdAuthSetKey {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let kind = AuthType::of(self.auth_type).ok_or(Retval::BFD_NOTSUPP)?;
        let secret = self.key.get(..usize::from(self.key_len)).ok_or(Retval::INVALID_ARGUMENT)?;
        Ok(bfd(call)?.set_key(self.conf_key_id, kind, secret)?)
    }
}

/// Deletes a key.
#[derive(Message)]
#[message(request)]
pub struct BfdAuthDelKey {
    pub conf_key_id: u32,
}

impl Request for BfdAuthDelKey {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(bfd(call)?.del_key(self.conf_key_id)?)
    }
}

/// Asks for all keys.
#[derive(Message)]
#[message(request, details = BfdAuthKeysDetails)]
pub struct BfdAuthKeysDump {}

/// A key, without its secret.
#[derive(Message)]
#[message(reply)]
pub struct BfdAuthKeysDetails {
    pub conf_key_id: u32,
    /// How many times sessions use it.
    pub use_count: u32,
    pub auth_type: u8,
}

impl Dump for BfdAuthKeysDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = BfdAuthKeysDetails> + 'static {
        let all = bfd(call).map(|bfd| bfd.keys()).unwrap_or_default();
        let one = |(conf_key_id, key, uses): (u32, crate::Key, usize)| BfdAuthKeysDetails {
            conf_key_id,
            use_count: uses as u32,
            auth_type: key.kind as u8,
        };
        all.into_iter().map(one)
    }
}

/// Has packets of a session be signed.
#[derive(Message)]
#[message(request)]
pub struct BfdUdpAuthActivate {
    pub sw_if_index: InterfaceIndex,
    pub local_addr: IpAddr,
    pub peer_addr: IpAddr,
    /// As soon as the other end's are.
    pub is_delayed: bool,
    pub bfd_key_id: u8,
    pub conf_key_id: u32,
}

impl Request for BfdUdpAuthActivate {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let key = key(self.sw_if_index, self.local_addr, self.peer_addr);
        Ok(bfd(call)?.set_auth(key, Some((self.conf_key_id, self.bfd_key_id)), self.is_delayed)?)
    }
}

/// Has packets of a session not be signed any more.
#[derive(Message)]
#[message(request)]
pub struct BfdUdpAuthDeactivate {
    pub sw_if_index: InterfaceIndex,
    pub local_addr: IpAddr,
    pub peer_addr: IpAddr,
    /// As soon as the other end's are not.
    pub is_delayed: bool,
}

impl Request for BfdUdpAuthDeactivate {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let key = key(self.sw_if_index, self.local_addr, self.peer_addr);
        Ok(bfd(call)?.set_auth(key, None, self.is_delayed)?)
    }
}

/// Takes packets of sessions over several hops from now on.
#[derive(Message)]
#[message(request)]
pub struct BfdUdpEnableMultihop {}

impl Request for BfdUdpEnableMultihop {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        bfd(call)?.enable_multi_hop();
        Ok(())
    }
}

/// Sets the type of service of packets.
#[derive(Message)]
#[message(request)]
pub struct BfdUdpSetTos {
    pub tos: u8,
}

impl Request for BfdUdpSetTos {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        bfd(call)?.set_tos(self.tos);
        Ok(())
    }
}

/// Asks for the type of service of packets.
#[derive(Message)]
#[message(request, reply = BfdUdpGetTosReply)]
pub struct BfdUdpGetTos {}

/// The type of service.
#[derive(Message)]
#[message(reply)]
pub struct BfdUdpGetTosReply {
    pub retval: i32,
    pub tos: u8,
}

impl Request for BfdUdpGetTos {
    fn handle(self, call: &Call) -> Result<BfdUdpGetTosReply, Retval> {
        Ok(BfdUdpGetTosReply { retval: 0, tos: bfd(call)?.tos() })
    }
}
