//! `ip_route_add_del`, `ip_route_lookup`: one route.

use shoal_adj::{AdjIndex, Family};
use shoal_message::{Count, FibPath, Message, Prefix, Retval, Value};
use shoal_module::api::{Call, Request};
use shoal_wire::IpPrefix;

use super::source::{number, source_of};
use super::table::tables;
use super::{from_path, path_of, retval};
use crate::{Covering, Fib, FibError, FibIndex, Path, Route, Source, address};

/// A route.
#[derive(Value, Clone, Debug, PartialEq)]
pub struct IpRoute {
    /// The number of its table.
    pub table_id: u32,
    /// Where its packets are counted under `/net/route/to`; all bits set if they are not.
    pub stats_index: u32,
    /// Where its packets go to.
    pub prefix: Prefix,
    pub n_paths: Count<u8>,
    /// The ways they take.
    #[counted_by(n_paths)]
    pub paths: Vec<FibPath>,
}

/// A route, and who it is from.
#[derive(Value, Clone, Debug, PartialEq)]
#[value(name = "ip_route_v2")]
pub struct IpRouteV2 {
    /// The number of its table.
    pub table_id: u32,
    /// Where its packets are counted under `/net/route/to`; all bits set if they are not.
    pub stats_index: u32,
    /// Where its packets go to.
    pub prefix: Prefix,
    pub n_paths: Count<u8>,
    /// The source, as `fib_source_dump` tells them; 0 for the API.
    pub src: u8,
    /// The ways they take.
    #[counted_by(n_paths)]
    pub paths: Vec<FibPath>,
}

/// Adds a route or takes it away, or some of its paths.
#[derive(Message)]
#[message(request, reply = IpRouteAddDelReply)]
pub struct IpRouteAddDel {
    /// Whether it is added.
    #[preset("true")]
    pub is_add: bool,
    /// Whether its other paths stay.
    pub is_multipath: bool,
    /// Which.
    pub route: IpRoute,
}

/// The same for any source.
#[derive(Message)]
#[message(request, name = "ip_route_add_del_v2", reply = IpRouteAddDelV2Reply)]
pub struct IpRouteAddDelV2 {
    /// Whether it is added.
    #[preset("true")]
    pub is_add: bool,
    /// Whether its other paths stay.
    pub is_multipath: bool,
    /// Which.
    pub route: IpRouteV2,
}

/// Where packets of the route are counted.
#[derive(Message)]
#[message(reply)]
pub struct IpRouteAddDelReply {
    pub retval: i32,
    /// The place under `/net/route/to`; all bits set if they are not counted.
    pub stats_index: u32,
}

/// The same.
#[derive(Message)]
#[message(reply, name = "ip_route_add_del_v2_reply")]
pub struct IpRouteAddDelV2Reply {
    pub retval: i32,
    /// The place under `/net/route/to`; all bits set if they are not counted.
    pub stats_index: u32,
}

/// Asks for the route of a prefix.
#[derive(Message)]
#[message(request, reply = IpRouteLookupReply)]
pub struct IpRouteLookup {
    pub table_id: u32,
    /// 0 for the longest that covers the prefix, otherwise the prefix itself.
    pub exact: u8,
    /// The prefix.
    pub prefix: Prefix,
}

/// The same, with who it is from.
#[derive(Message)]
#[message(request, name = "ip_route_lookup_v2", reply = IpRouteLookupV2Reply)]
pub struct IpRouteLookupV2 {
    pub table_id: u32,
    /// 0 for the longest that covers the prefix, otherwise the prefix itself.
    pub exact: u8,
    /// The prefix.
    pub prefix: Prefix,
}

/// The route that was found.
#[derive(Message)]
#[message(reply)]
pub struct IpRouteLookupReply {
    pub retval: i32,
    pub route: IpRoute,
}

/// The same.
#[derive(Message)]
#[message(reply, name = "ip_route_lookup_v2_reply")]
pub struct IpRouteLookupV2Reply {
    pub retval: i32,
    pub route: IpRouteV2,
}

/// A client's prefix.
fn prefix_of(prefix: &Prefix) -> Result<IpPrefix, Retval> {
    IpPrefix::new(prefix.address, prefix.len).map_err(|_| Retval::INVALID_PREFIX_LENGTH)
}

fn index_of(fib: &Fib, family: Family, table: u32) -> Result<FibIndex, Retval> {
    // Most routes are in this one.
    if table == 0 {
        return Ok(FibIndex::DEFAULT);
    }
    fib.index_of(family, table).map_err(|e| retval(&e))
}

/// The index of a route's counter as clients receive it.
pub(super) fn stats_index(counter: Option<AdjIndex>) -> u32 {
    counter.map_or(u32::MAX, |adj| adj.0)
}

/// What a client wants of a route.
struct Wanted<'a> {
    is_add: bool,
    is_multipath: bool,
    table: u32,
    prefix: &'a Prefix,
    paths: &'a [FibPath],
    source: Source,
}

impl Wanted<'_> {
    fn apply(&self, call: &Call) -> Result<u32, Retval> {
        let (fib, prefix) = (tables(call)?, prefix_of(self.prefix)?);
        let family = address::family(&prefix);
        let index = index_of(&fib, family, self.table)?;
        // Nearly all routes have one path.
        if let [only] = self.paths {
            return self.change(&fib, index, prefix, &[path_of(&fib, family, only)?]);
        }
        let paths: Result<Vec<Path>, Retval> =
            self.paths.iter().map(|given| path_of(&fib, family, given)).collect();
        self.change(&fib, index, prefix, &paths?)
    }

    fn change(&self, fib: &Fib, index: FibIndex, prefix: IpPrefix, paths: &[Path]) -> Result<u32, Retval> {
        if paths.is_empty() && (self.is_add || self.is_multipath) {
            return Err(Retval::NO_PATHS_IN_ROUTE);
        }
        let done = match (self.is_add, self.is_multipath) {
            (true, false) => fib.add(index, prefix, self.source, paths),
            (true, true) => fib.add_paths(index, [prefix], self.source, paths).map(drop),
            (false, false) => fib.remove(index, prefix, self.source),
            (false, true) => fib.remove_paths(index, [prefix], self.source, paths).map(drop),
        };
        match done {
            Ok(()) if self.is_add => Ok(stats_index(fib.counter(index, &prefix))),
            Ok(()) => Ok(u32::MAX),
            // What is to go and is not there is gone: VPP has nothing to say of it.
            Err(FibError::NoEntry { .. } | FibError::OtherSource { .. } | FibError::NoPath { .. }) => {
                Ok(u32::MAX)
            }
            Err(e) => Err(retval(&e)),
        }
    }
}

impl Request for IpRouteAddDel {
    fn handle(self, call: &Call) -> Result<IpRouteAddDelReply, Retval> {
        let IpRouteAddDel { is_add, is_multipath, route } = &self;
        let (table, source) = (route.table_id, Source::Api);
        let (is_add, is_multipath, prefix, paths) = (*is_add, *is_multipath, &route.prefix, &route.paths);
        let wanted = Wanted { is_add, is_multipath, table, prefix, paths, source };
        Ok(IpRouteAddDelReply { retval: 0, stats_index: wanted.apply(call)? })
    }
}

impl Request for IpRouteAddDelV2 {
    fn handle(self, call: &Call) -> Result<IpRouteAddDelV2Reply, Retval> {
        let IpRouteAddDelV2 { is_add, is_multipath, route } = &self;
        let source = match source_of(route.src) {
            Some(source @ (Source::Api | Source::Cli)) => source,
            Some(source) if tables(call)?.client_sources().iter().any(|client| client.source == source) => {
                source
            }
            _ if route.src == 0 => Source::Api,
            // The others are the router's own.
            _ => return Err(Retval::INVALID_VALUE),
        };
        let table = route.table_id;
        let (is_add, is_multipath, prefix, paths) = (*is_add, *is_multipath, &route.prefix, &route.paths);
        let wanted = Wanted { is_add, is_multipath, table, prefix, paths, source };
        Ok(IpRouteAddDelV2Reply { retval: 0, stats_index: wanted.apply(call)? })
    }
}

/// A route as clients receive it: its prefix and its paths.
pub(super) fn told(fib: &Fib, route: &Route) -> (Prefix, Vec<FibPath>) {
    let Route { prefix, paths, .. } = route;
    let family = address::family(prefix);
    let paths = paths.iter().map(|path| from_path(fib, family, Some(prefix), path)).collect();
    (Prefix { address: prefix.network(), len: prefix.len() }, paths)
}

fn look_up(call: &Call, table: u32, exact: u8, prefix: &Prefix) -> Result<(std::rc::Rc<Fib>, Route), Retval> {
    let (fib, prefix) = (tables(call)?, prefix_of(prefix)?);
    let index = index_of(&fib, address::family(&prefix), table)?;
    let of = if exact == 0 { Covering::Longest } else { Covering::Itself };
    let route = fib.route(index, prefix, of).map_err(|e| retval(&e))?;
    Ok((fib, route))
}

impl Request for IpRouteLookup {
    fn handle(self, call: &Call) -> Result<IpRouteLookupReply, Retval> {
        let (fib, route) = look_up(call, self.table_id, self.exact, &self.prefix)?;
        Ok(IpRouteLookupReply { retval: 0, route: IpRoute::new(&fib, self.table_id, &route) })
    }
}

impl Request for IpRouteLookupV2 {
    fn handle(self, call: &Call) -> Result<IpRouteLookupV2Reply, Retval> {
        let (fib, route) = look_up(call, self.table_id, self.exact, &self.prefix)?;
        Ok(IpRouteLookupV2Reply { retval: 0, route: IpRouteV2::new(&fib, self.table_id, &route) })
    }
}

impl IpRoute {
    pub(super) fn new(fib: &Fib, table_id: u32, route: &Route) -> Self {
        let (prefix, paths) = told(fib, route);
        let stats_index = stats_index(route.counter);
        IpRoute { table_id, stats_index, prefix, n_paths: Count::default(), paths }
    }
}

impl IpRouteV2 {
    pub(super) fn new(fib: &Fib, table_id: u32, route: &Route) -> Self {
        let (prefix, paths) = told(fib, route);
        let (stats_index, src) = (stats_index(route.counter), number(route.source));
        IpRouteV2 { table_id, stats_index, prefix, n_paths: Count::default(), src, paths }
    }
}
