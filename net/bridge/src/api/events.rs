//! Clients that want to know of stations that come, move and go, and of ARP requests.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use shoal_graph::process::Processes;
use shoal_message::{Count, InterfaceIndex, MacAddress, Message, Retval, Value};
use shoal_module::api::{Call, Request, Subscribers};
use shoal_module::{Control, InitError};

use super::bridges;
use crate::{Bridges, MacNews, NewsKind};

/// The clients that want events.
#[derive(Default)]
struct Watchers {
    /// One at most, as in VPP.
    macs: Subscribers,
    most: Cell<usize>,
    arp: Subscribers,
}

/// The client that hears of stations: its number of its own, and most stations of one event.
pub(crate) fn news_client(bridges: &Bridges) -> Option<(u32, usize)> {
    bridges.news_client.get()
}

pub(crate) fn follow(control: &Rc<Control>, processes: &Rc<Processes>) -> Result<(), InitError> {
    let watchers = control.put(Watchers::default());
    let bridges = control.get::<Bridges>()?;
    let Some(heard) = bridges.heard() else { return Ok(()) };
    let weak = Rc::downgrade(control);
    processes.spawn("l2-arp-term-publisher", async move {
        while let Ok(heard) = heard.recv().await {
            let Some(control) = weak.upgrade() else { return };
            let event = L2ArpTermEvent {
                ip: heard.address,
                sw_if_index: InterfaceIndex(heard.interface.0),
                mac: MacAddress(heard.mac.0),
            };
            watchers.arp.publish(&control, |()| true, &event);
            if watchers.arp.is_empty() {
                bridges.table().tell_asked(false);
            }
        }
    });
    Ok(())
}

/// Tells the client of stations, so many at a time.
fn report(control: &Rc<Control>, bridges: &Rc<Bridges>, watchers: &Rc<Watchers>) {
    let (weak, bridges_of) = (Rc::downgrade(control), Rc::downgrade(bridges));
    let watchers = Rc::clone(watchers);
    bridges.report(Some(Rc::new(move |news: &[MacNews]| {
        let (Some(control), Some(bridges)) = (weak.upgrade(), bridges_of.upgrade()) else { return };
        for some in news.chunks(watchers.most.get().max(1)) {
            let mac = some.iter().map(MacEntry::from).collect();
            watchers.macs.publish(&control, |()| true, &L2MacsEvent { n_macs: Count::default(), mac });
        }
        // The client has gone.
        if watchers.macs.is_empty() {
            end(&bridges);
        }
    })));
}

fn end(bridges: &Bridges) {
    bridges.news_client.set(None);
    bridges.set_learn_limit_of_all(bridges.all_limit);
    bridges.report(None);
}

/// What became of a station.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacEventAction {
    /// It was learned.
    #[entry("MAC_EVENT_ACTION_API_ADD")]
    Add = 0,
    /// It was forgotten.
    #[entry("MAC_EVENT_ACTION_API_DELETE")]
    Delete = 1,
    /// It is elsewhere.
    #[entry("MAC_EVENT_ACTION_API_MOVE")]
    Move = 2,
}

/// A station and what became of it.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct MacEntry {
    pub sw_if_index: InterfaceIndex,
    pub mac_addr: MacAddress,
    pub action: MacEventAction,
    pub flags: u8,
}

impl From<&MacNews> for MacEntry {
    fn from(news: &MacNews) -> Self {
        MacEntry {
            sw_if_index: InterfaceIndex(news.interface.0),
            mac_addr: MacAddress(news.mac.0),
            action: match news.kind {
                NewsKind::Added => MacEventAction::Add,
                NewsKind::Deleted => MacEventAction::Delete,
                NewsKind::Moved => MacEventAction::Move,
            },
            flags: 0,
        }
    }
}

/// Stations came, went or moved.
#[derive(Message)]
#[message(event)]
pub struct L2MacsEvent {
    pub n_macs: Count<u32>,
    #[counted_by(n_macs)]
    pub mac: Vec<MacEntry>,
}

/// What a client asks for.
struct Wanted {
    enable: bool,
    pid: u32,
    most: u8,
    /// How many stations may be learned meanwhile, and how often is looked for news, in units of 10 ms.
    limits: Option<(u32, u8)>,
}

fn want(call: &Call, wanted: &Wanted) -> Result<(), Retval> {
    let bridges = bridges(call)?;
    let watchers = call.get::<Watchers>().map_err(|_| Retval::UNSPECIFIED)?;
    let other = watchers.macs.list().into_iter().find(|(client, ..)| *client != call.client);
    let clients = call.clients().map_err(|_| Retval::INVALID_REGISTRATION)?;
    if wanted.enable && other.is_some_and(|(client, ..)| clients.is_there(client)) {
        return Err(Retval::L2_MACS_EVENT_CLINET_PRESENT);
    }
    // A client that has it already may ask again.
    if wanted.enable && watchers.macs.list().iter().any(|(client, ..)| *client == call.client) {
        watchers.macs.set(call, wanted.pid, (), false)?;
    }
    watchers.macs.set(call, wanted.pid, (), wanted.enable)?;
    if !wanted.enable {
        end(&bridges);
        return Ok(());
    }
    let most = usize::from(wanted.most) * 10;
    watchers.most.set(most);
    bridges.news_client.set(Some((wanted.pid, most)));
    if let Some((limit, delay)) = wanted.limits {
        bridges.set_learn_limit_of_all(limit);
        bridges.set_scan_delay(Duration::from_millis(u64::from(delay.max(1)) * 10));
    }
    report(&call.control, &bridges, &watchers);
    Ok(())
}

/// Wants to know of stations that come, go and move, or no longer.
#[derive(Message)]
#[message(request, events = L2MacsEvent)]
pub struct WantL2MacsEvents {
    /// So many are learned meanwhile.
    #[preset(1000)]
    pub learn_limit: u32,
    /// How often is looked, in units of 10 ms.
    #[preset(10)]
    pub scan_delay: u8,
    /// In units of 10.
    #[preset(10)]
    pub max_macs_in_event: u8,
    #[preset("true")]
    pub enable_disable: bool,
    pub pid: u32,
}

impl Request for WantL2MacsEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (enable, pid, most) = (self.enable_disable, self.pid, self.max_macs_in_event);
        let limits = Some((self.learn_limit, self.scan_delay));
        want(call, &Wanted { enable, pid, most, limits })
    }
}

/// Wants to know of stations that come, go and move, or no longer; limits stay as they are.
#[derive(Message)]
#[message(request, name = "want_l2_macs_events2")]
pub struct WantL2MacsEvents2 {
    /// In units of 10.
    #[preset(10)]
    pub max_macs_in_event: u8,
    #[preset("true")]
    pub enable_disable: bool,
    pub pid: u32,
}

impl Request for WantL2MacsEvents2 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (enable, pid, most) = (self.enable_disable, self.pid, self.max_macs_in_event);
        want(call, &Wanted { enable, pid, most, limits: None })
    }
}

/// Wants to know who says in ARP and neighbour discovery which address it has, or no longer.
#[derive(Message)]
#[message(request, events = L2ArpTermEvent)]
pub struct WantL2ArpTermEvents {
    pub enable: bool,
    pub pid: u32,
}

impl Request for WantL2ArpTermEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let watchers = call.get::<Watchers>().map_err(|_| Retval::UNSPECIFIED)?;
        watchers.arp.set(call, self.pid, (), self.enable)?;
        bridges(call)?.table().tell_asked(!watchers.arp.is_empty());
        Ok(())
    }
}

/// A station claimed an address.
#[derive(Message)]
#[message(event)]
pub struct L2ArpTermEvent {
    pub ip: IpAddr,
    pub sw_if_index: InterfaceIndex,
    pub mac: MacAddress,
}
