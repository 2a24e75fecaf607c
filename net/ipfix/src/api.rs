//! Messages: `ipfix_export.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::IpAddr;
use std::rc::Rc;

use shoal_datagram::Checksum;
use shoal_message::{AddressFamily, IpProto, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Get, Request};

use crate::{Exporter, Ipfix, IpfixError};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "ipfix_export",
    folder: Folder::Core,
    version: "2.0.3",
    messages: &[
        ApiMessage::request::<SetIpfixExporter>(),
        ApiMessage::dump::<IpfixExporterDump>(),
        ApiMessage::sent::<IpfixExporterDetails>(),
        ApiMessage::request::<IpfixExporterCreateDelete>(),
        ApiMessage::sent::<IpfixExporterCreateDeleteReply>(),
        ApiMessage::get::<IpfixAllExporterGet>(),
        ApiMessage::sent::<IpfixAllExporterGetReply>(),
        ApiMessage::sent::<IpfixAllExporterDetails>(),
        ApiMessage::request::<SetIpfixClassifyStream>(),
        ApiMessage::dump::<IpfixClassifyStreamDump>(),
        ApiMessage::sent::<IpfixClassifyStreamDetails>(),
        ApiMessage::request::<IpfixClassifyTableAddDel>(),
        ApiMessage::dump::<IpfixClassifyTableDump>(),
        ApiMessage::sent::<IpfixClassifyTableDetails>(),
        ApiMessage::request::<IpfixFlush>(),
    ],
};

impl From<IpfixError> for Retval {
    fn from(error: IpfixError) -> Self {
        match error {
            IpfixError::Fib(error) => shoal_fib::api::retval(&error),
            IpfixError::NoExporter(_) => Retval::NO_SUCH_ENTRY,
            _ => Retval::INVALID_VALUE,
        }
    }
}

fn ipfix(call: &Call) -> Result<Rc<Ipfix>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// The settings of a message; all bits set stand for what is usual.
macro_rules! exporter {
    ($message:expr) => {{
        let message = $message;
        Exporter {
            collector: message.collector_address,
            port: message.collector_port,
            source: message.src_address,
            vrf: (message.vrf_id != u32::MAX).then_some(message.vrf_id),
            path_mtu: message.path_mtu,
            template_interval: message.template_interval,
            checksum: if message.udp_checksum { Checksum::Computed } else { Checksum::Zero },
        }
        .with_usual()
    }};
}

/// The details of an exporter.
macro_rules! details {
    ($details:ident, $exporter:expr) => {{
        let exporter: Exporter = $exporter;
        $details {
            collector_address: exporter.collector,
            collector_port: exporter.port,
            src_address: exporter.source,
            vrf_id: exporter.vrf.unwrap_or(u32::MAX),
            path_mtu: exporter.path_mtu,
            template_interval: exporter.template_interval,
            udp_checksum: exporter.checksum == Checksum::Computed,
        }
    }};
}

/// Says where the first exporter sends; the address of no host for nowhere.
#[derive(Message)]
#[message(request)]
pub struct SetIpfixExporter {
    pub collector_address: IpAddr,
    pub collector_port: u16,
    pub src_address: IpAddr,
    pub vrf_id: u32,
    pub path_mtu: u32,
    pub template_interval: u32,
    pub udp_checksum: bool,
}

impl Request for SetIpfixExporter {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(ipfix(call)?.set(exporter!(self))?)
    }
}

/// Asks for the first exporter.
#[derive(Message)]
#[message(request, details = IpfixExporterDetails)]
pub struct IpfixExporterDump {}

/// The first exporter.
#[derive(Message)]
#[message(reply)]
pub struct IpfixExporterDetails {
    pub collector_address: IpAddr,
    pub collector_port: u16,
    pub src_address: IpAddr,
    pub vrf_id: u32,
    pub path_mtu: u32,
    pub template_interval: u32,
    pub udp_checksum: bool,
}

impl Dump for IpfixExporterDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpfixExporterDetails> + 'static {
        let all = ipfix(call).map(|ipfix| ipfix.exporters(0)).unwrap_or_default();
        all.into_iter().take(1).map(|(_, exporter)| details!(IpfixExporterDetails, exporter))
    }
}

/// Adds an exporter or changes the one to this collector, or removes it.
#[derive(Message)]
#[message(request, reply = IpfixExporterCreateDeleteReply)]
pub struct IpfixExporterCreateDelete {
    pub is_create: bool,
    pub collector_address: IpAddr,
    pub collector_port: u16,
    pub src_address: IpAddr,
    pub vrf_id: u32,
    pub path_mtu: u32,
    pub template_interval: u32,
    pub udp_checksum: bool,
}

/// The exporter's number.
#[derive(Message)]
#[message(reply)]
pub struct IpfixExporterCreateDeleteReply {
    pub retval: i32,
    /// Its place in the counters `/ipfix/messages`, `/ipfix/records` and `/ipfix/lost`.
    pub stat_index: u32,
}

impl Request for IpfixExporterCreateDelete {
    fn handle(self, call: &Call) -> Result<IpfixExporterCreateDeleteReply, Retval> {
        let ipfix = ipfix(call)?;
        let collector = self.collector_address;
        let stat_index =
            if self.is_create { ipfix.add(exporter!(self))? } else { ipfix.remove(collector)? };
        Ok(IpfixExporterCreateDeleteReply { retval: 0, stat_index })
    }
}

/// Asks for all exporters.
#[derive(Message)]
#[message(request, reply = IpfixAllExporterGetReply, details = IpfixAllExporterDetails)]
pub struct IpfixAllExporterGet {
    /// The exporter to go on with: 0 at first.
    pub cursor: u32,
}

/// Whether that was all.
#[derive(Message)]
#[message(reply)]
pub struct IpfixAllExporterGetReply {
    pub retval: i32,
    pub cursor: u32,
}

/// An exporter.
#[derive(Message)]
#[message(reply)]
pub struct IpfixAllExporterDetails {
    pub collector_address: IpAddr,
    pub collector_port: u16,
    pub src_address: IpAddr,
    pub vrf_id: u32,
    pub path_mtu: u32,
    pub template_interval: u32,
    pub udp_checksum: bool,
}

impl Get for IpfixAllExporterGet {
    fn get(self, call: &Call) -> Result<(Vec<IpfixAllExporterDetails>, IpfixAllExporterGetReply), Retval> {
        // There are five at most: one answer has them all.
        let all = ipfix(call)?.exporters(self.cursor);
        let details = all.into_iter().map(|(_, exporter)| details!(IpfixAllExporterDetails, exporter));
        Ok((details.collect(), IpfixAllExporterGetReply { retval: 0, cursor: u32::MAX }))
    }
}

/// Says in which stream records of classifier tables are to be.
#[derive(Message)]
#[message(request)]
pub struct SetIpfixClassifyStream {
    /// The observation domain; 0 for 1.
    pub domain_id: u32,
    /// The port; 0 for 4739.
    pub src_port: u16,
}

impl Request for SetIpfixClassifyStream {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let domain = if self.domain_id == 0 { 1 } else { self.domain_id };
        let port = if self.src_port == 0 { crate::exporter::PORT } else { self.src_port };
        ipfix(call)?.set_classify_stream(domain, port);
        Ok(())
    }
}

/// Asks in which stream they are to be.
#[derive(Message)]
#[message(request, details = IpfixClassifyStreamDetails)]
pub struct IpfixClassifyStreamDump {}

/// In which stream they are to be; zeros by default.
#[derive(Message)]
#[message(reply)]
pub struct IpfixClassifyStreamDetails {
    pub domain_id: u32,
    pub src_port: u16,
}

impl Dump for IpfixClassifyStreamDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpfixClassifyStreamDetails> + 'static {
        let stream = ipfix(call).ok().map(|ipfix| ipfix.classify_stream().unwrap_or_default());
        stream.into_iter().map(|(domain_id, src_port)| IpfixClassifyStreamDetails { domain_id, src_port })
    }
}

/// Has a classifier table's sessions reported. This router has no such tables: none is found.
#[derive(Message)]
#[message(request)]
pub struct IpfixClassifyTableAddDel {
    pub table_id: u32,
    pub ip_version: AddressFamily,
    pub transport_protocol: IpProto,
    pub is_add: bool,
}

impl Request for IpfixClassifyTableAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        ipfix(call)?.classify_stream().ok_or(Retval::UNSPECIFIED)?;
        Err(if self.is_add { Retval::NO_SUCH_TABLE } else { Retval::NO_SUCH_ENTRY })
    }
}

/// Asks for classifier tables whose sessions are reported.
#[derive(Message)]
#[message(request, details = IpfixClassifyTableDetails)]
pub struct IpfixClassifyTableDump {}

/// A classifier table whose sessions are reported.
#[derive(Message)]
#[message(reply)]
pub struct IpfixClassifyTableDetails {
    pub table_id: u32,
    pub ip_version: AddressFamily,
    pub transport_protocol: IpProto,
}

impl Dump for IpfixClassifyTableDump {
    fn dump(self, _: &Call) -> impl Iterator<Item = IpfixClassifyTableDetails> + 'static {
        std::iter::empty()
    }
}

/// Sends templates and records that wait.
#[derive(Message)]
#[message(request)]
pub struct IpfixFlush {}

impl Request for IpfixFlush {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        ipfix(call)?.flush();
        Ok(())
    }
}
