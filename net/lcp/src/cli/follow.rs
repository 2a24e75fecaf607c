//! How well Linux is followed: `show lcp netlink`, `show lcp pending`, `show lcp drift`, `lcp audit`.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;
use shoal_interface::ListingCause;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Output};

use crate::control::{Announced, Difference, FollowInfo, PendingRoute, Subject};
use crate::{Lcp, TablePair};

fn cause(cause: ListingCause) -> &'static str {
    match cause {
        ListingCause::Start => "start",
        ListingCause::Lost => "lost",
        ListingCause::LinkUp => "link-up",
        ListingCause::Audit => "audit",
    }
}

#[derive(Serialize)]
struct Listings {
    start: u64,
    lost: u64,
    link_up: u64,
    audit: u64,
}

#[derive(Serialize)]
struct LastListing {
    cause: &'static str,
    /// Seconds since it began.
    ago: f64,
    /// Seconds it took; null while it is under way.
    took: Option<f64>,
    entries: u64,
}

/// One namespace of `show lcp netlink`.
#[derive(Serialize)]
struct Namespace {
    netns: Option<String>,
    /// This router's table of IPv4 and that of IPv6 for Linux's main table.
    main_table: TablePair,
    announced: Announced,
    prefixes: usize,
    installed: usize,
    pending: usize,
    multicast_routes: usize,
    multicast_installed: usize,
    next_hops: usize,
    neighbors: usize,
    addresses: usize,
    vrfs: usize,
    vlans: usize,
    refused: u64,
    listings: Listings,
    last_listing: Option<LastListing>,
    differences: u64,
}

#[derive(Serialize)]
struct NetlinkView {
    /// Seconds between two audits; null if there are none.
    audit_interval: Option<u64>,
    namespaces: Vec<Namespace>,
}

pub(super) fn show_netlink(control: &Control, _: &Args) -> Result<Output, CliError> {
    let lcp = control.get::<Lcp>()?;
    let now = lcp.now();
    let namespace = |info: FollowInfo| {
        let count = |cause| info.listings.get(&cause).copied().unwrap_or(0);
        Namespace {
            main_table: info.main,
            announced: info.announced,
            prefixes: info.prefixes,
            installed: info.installed,
            pending: info.pending,
            multicast_routes: info.multicast_routes,
            multicast_installed: info.multicast_installed,
            next_hops: info.next_hops,
            neighbors: info.neighbors,
            addresses: info.addresses,
            vrfs: info.vrfs,
            vlans: info.vlans,
            refused: info.refusals,
            listings: Listings {
                start: count(ListingCause::Start),
                lost: count(ListingCause::Lost),
                link_up: count(ListingCause::LinkUp),
                audit: count(ListingCause::Audit),
            },
            last_listing: info.last.map(|last| LastListing {
                cause: cause(last.cause),
                ago: now.since(last.began).as_secs_f64(),
                took: last.took.map(|took| took.as_secs_f64()),
                entries: last.entries,
            }),
            differences: info.drifted,
            netns: info.netns,
        }
    };
    let audit_interval = Some(lcp.audit_interval().as_secs()).filter(|seconds| *seconds > 0);
    let namespaces = lcp.followed().into_iter().map(namespace).collect();
    Ok(Output::view(NetlinkView { audit_interval, namespaces }))
}

impl fmt::Display for NetlinkView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.audit_interval {
            Some(seconds) => writeln!(f, "audit: every {seconds} s")?,
            None => writeln!(f, "audit: off")?,
        }
        self.namespaces.iter().try_for_each(|one| write!(f, "{one}"))
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "netns {}", self.netns.as_deref().unwrap_or("<own>"))?;
        let TablePair { ip4, ip6 } = self.main_table;
        writeln!(f, "  main table: ip4 {ip4}, ip6 {ip6}")?;
        let Announced { links, addresses, neighbors, next_hops, routes, multicast_routes } = self.announced;
        writeln!(
            f,
            "  announced: {routes} routes, {multicast_routes} multicast routes, {next_hops} next hops, {neighbors} neighbors, {addresses} addresses, {links} links"
        )?;
        writeln!(
            f,
            "  prefixes: {} ({} installed, {} pending)",
            self.prefixes, self.installed, self.pending
        )?;
        writeln!(
            f,
            "  multicast routes: {} ({} installed)",
            self.multicast_routes, self.multicast_installed
        )?;
        writeln!(
            f,
            "  known: {} next hops, {} neighbors, {} addresses",
            self.next_hops, self.neighbors, self.addresses
        )?;
        writeln!(
            f,
            "  links: {} VRFs, {} VLANs with a sub-interface, {} times one could not be followed",
            self.vrfs, self.vlans, self.refused
        )?;
        let Listings { start, lost, link_up, audit } = self.listings;
        writeln!(f, "  listings: start {start}, lost {lost}, link-up {link_up}, audit {audit}")?;
        if let Some(LastListing { cause, ago, took, entries }) = &self.last_listing {
            write!(f, "  last: {cause}, {ago:.0} s ago, {entries} entries")?;
            match took {
                Some(took) => writeln!(f, " in {took:.3} s")?,
                None => writeln!(f, ", under way")?,
            }
        }
        writeln!(f, "  differences found after losses and by audits: {}", self.differences)
    }
}

fn prefix((address, len): (IpAddr, u8)) -> String {
    format!("{address}/{len}")
}

/// A row of `show lcp pending`.
#[derive(Serialize)]
struct PendingRow {
    netns: Option<String>,
    prefix: String,
    table: u32,
    metric: u32,
    waits_for: String,
}

impl fmt::Display for PendingRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(netns) = &self.netns {
            write!(f, "netns {netns} ")?;
        }
        let PendingRow { prefix, table, metric, waits_for, .. } = self;
        writeln!(f, "{prefix} table {table} metric {metric} waits for {waits_for}")
    }
}

pub(super) fn show_pending(control: &Control, _: &Args) -> Result<Output, CliError> {
    let lcp = control.get::<Lcp>()?;
    let mut last = None;
    let next = move || {
        let PendingRoute { netns, key, metric, waits_for } = lcp.next_pending(last.as_ref())?;
        last = Some((netns.clone(), key));
        Some(PendingRow { netns, prefix: prefix(key.1), table: key.0, metric, waits_for })
    };
    Ok(Output::rows("", std::iter::from_fn(next)))
}

/// A row of `show lcp drift`.
#[derive(Serialize)]
struct DriftRow {
    /// Seconds since the listing began.
    ago: f64,
    netns: Option<String>,
    cause: &'static str,
    what: String,
    difference: Difference,
}

impl fmt::Display for DriftRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} s ago, ", self.ago)?;
        if let Some(netns) = &self.netns {
            write!(f, "netns {netns}, ")?;
        }
        let difference = match self.difference {
            Difference::Missing => "was not known",
            Difference::Other => "was another",
            Difference::Gone => "was not there any more",
        };
        writeln!(f, "{}: {} {difference}", self.cause, self.what)
    }
}

pub(super) fn show_drift(control: &Control, _: &Args) -> Result<Output, CliError> {
    let lcp = control.get::<Lcp>()?;
    let now = lcp.now();
    let row = |(netns, drift): (Option<String>, crate::control::Drift)| {
        let on = |index| lcp.host_name(&netns, index);
        let what = match drift.subject {
            Subject::Route(table, to, Some(metric)) => {
                format!("route {} table {table} metric {metric}", prefix(to))
            }
            Subject::Route(table, to, None) => format!("route {} table {table}", prefix(to)),
            Subject::Address(index, address) => format!("address {} of {}", prefix(address), on(index)),
            Subject::Neighbor(index, address) => format!("neighbor {address} of {}", on(index)),
            Subject::NextHop(id) => format!("next hop {id}"),
            Subject::MulticastRoute(named) => {
                let (table, source, group) = *named;
                format!("multicast route ({source}, {group}) table {table}")
            }
            Subject::Link(index) => on(index),
        };
        DriftRow {
            ago: now.since(drift.found).as_secs_f64(),
            netns,
            cause: cause(drift.cause),
            what,
            difference: drift.difference,
        }
    };
    let rows: Vec<DriftRow> = lcp.drift().into_iter().map(row).collect();
    Ok(Output::rows("", rows.into_iter()))
}

pub(super) fn audit(control: &Control, _: &Args) -> Result<Output, CliError> {
    control.get::<Lcp>()?.audit();
    Ok(Output::none())
}
