//! `ip_route_dump`: all routes of a table, told while it changes.

use std::collections::VecDeque;
use std::rc::Rc;

use shoal_message::Message;
use shoal_module::api::{Call, Dump};

use super::route::{IpRoute, IpRouteV2};
use super::source::source_of;
use super::table::IpTable;
use crate::{Fib, Route, Source, Walk};

/// Asks for all routes of a table.
#[derive(Message)]
#[message(request, details = IpRouteDetails)]
pub struct IpRouteDump {
    pub table: IpTable,
}

/// A route of a table.
#[derive(Message)]
#[message(reply)]
pub struct IpRouteDetails {
    pub route: IpRoute,
}

/// Asks for all routes of a table, or those from one source.
#[derive(Message)]
#[message(request, name = "ip_route_v2_dump", details = IpRouteV2Details)]
pub struct IpRouteV2Dump {
    /// The source, as `fib_source_dump` tells them; 0 for all.
    pub src: u8,
    pub table: IpTable,
}

/// A route of a table, and who it is from.
#[derive(Message)]
#[message(reply, name = "ip_route_v2_details")]
pub struct IpRouteV2Details {
    pub route: IpRouteV2,
}

/// Routes of a table, fetched some dozens at a time.
struct Routes {
    fib: Rc<Fib>,
    walk: Walk,
    source: Option<Source>,
    ready: VecDeque<Route>,
}

impl Iterator for Routes {
    type Item = Route;

    fn next(&mut self) -> Option<Route> {
        while self.ready.is_empty() && self.walk.goes_on() {
            self.fib.walk_on(&mut self.walk, self.source, |route| self.ready.push_back(route));
        }
        self.ready.pop_front()
    }
}

/// All routes of a table, which there are none of if it is not there.
fn routes(call: &Call, table: &IpTable, source: Option<Source>) -> Option<(Rc<Fib>, Routes)> {
    let fib = call.get::<Fib>().ok()?;
    let index = fib.index_of(table.family(), table.table_id).ok()?;
    let walk = fib.walk(table.family(), index).ok()?;
    Some((Rc::clone(&fib), Routes { fib, walk, source, ready: VecDeque::new() }))
}

impl Dump for IpRouteDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpRouteDetails> + 'static {
        let table_id = self.table.table_id;
        let all = routes(call, &self.table, None).into_iter();
        all.flat_map(move |(fib, routes)| {
            routes.map(move |route| IpRouteDetails { route: IpRoute::new(&fib, table_id, &route) })
        })
    }
}

impl Dump for IpRouteV2Dump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpRouteV2Details> + 'static {
        let table_id = self.table.table_id;
        let source = source_of(self.src);
        // Of a source that there is not there are no routes.
        let known = self.src == 0 || source.is_some();
        let all = if known { routes(call, &self.table, source) } else { None };
        all.into_iter().flat_map(move |(fib, routes)| {
            routes.map(move |route| IpRouteV2Details { route: IpRouteV2::new(&fib, table_id, &route) })
        })
    }
}
