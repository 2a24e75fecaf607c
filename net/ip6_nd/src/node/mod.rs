//! The nodes of neighbour discovery.

mod advertisement;
mod ask;
mod discover;
mod failed;
mod glean;
mod listener_query;
mod listener_report;
mod mirror;
mod receive;
mod redirect;
mod router_advertisement;
mod router_solicitation;
mod solicitation;

pub(crate) use advertisement::Advertisement;
pub(crate) use ask::Solicitor;
pub(crate) use discover::Discover;
pub(crate) use failed::Failed;
pub(crate) use glean::Glean;
pub(crate) use listener_query::ListenerQuery;
pub(crate) use listener_report::ListenerReport;
pub(crate) use mirror::Mirror;
pub(crate) use receive::ReceiveContext;
pub(crate) use redirect::Ip6Redirect;
pub(crate) use router_advertisement::RouterAdvertisement;
pub(crate) use router_solicitation::RouterSolicitation;
pub(crate) use solicitation::Solicitation;
