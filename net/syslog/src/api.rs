//! Messages: `syslog.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_message::{Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use crate::{Sender, Severity, Syslog, SyslogError};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "syslog",
    folder: Folder::Core,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<SyslogSetSender>(),
        ApiMessage::request::<SyslogGetSender>(),
        ApiMessage::sent::<SyslogGetSenderReply>(),
        ApiMessage::request::<SyslogSetFilter>(),
        ApiMessage::request::<SyslogGetFilter>(),
        ApiMessage::sent::<SyslogGetFilterReply>(),
    ],
};

/// How bad it is.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as their names say")]
pub enum SyslogSeverity {
    #[entry("SYSLOG_API_SEVERITY_EMERG")]
    Emerg = 0,
    #[entry("SYSLOG_API_SEVERITY_ALERT")]
    Alert = 1,
    #[entry("SYSLOG_API_SEVERITY_CRIT")]
    Crit = 2,
    #[entry("SYSLOG_API_SEVERITY_ERR")]
    Err = 3,
    #[entry("SYSLOG_API_SEVERITY_WARN")]
    Warn = 4,
    #[entry("SYSLOG_API_SEVERITY_NOTICE")]
    Notice = 5,
    #[entry("SYSLOG_API_SEVERITY_INFO")]
    Info = 6,
    #[entry("SYSLOG_API_SEVERITY_DBG")]
    Dbg = 7,
}

impl From<SyslogSeverity> for Severity {
    fn from(severity: SyslogSeverity) -> Self {
        match severity {
            SyslogSeverity::Emerg => Severity::Emergency,
            SyslogSeverity::Alert => Severity::Alert,
            SyslogSeverity::Crit => Severity::Critical,
            SyslogSeverity::Err => Severity::Error,
            SyslogSeverity::Warn => Severity::Warning,
            SyslogSeverity::Notice => Severity::Notice,
            SyslogSeverity::Info => Severity::Informational,
            SyslogSeverity::Dbg => Severity::Debug,
        }
    }
}

impl From<Severity> for SyslogSeverity {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Emergency => SyslogSeverity::Emerg,
            Severity::Alert => SyslogSeverity::Alert,
            Severity::Critical => SyslogSeverity::Crit,
            Severity::Error => SyslogSeverity::Err,
            Severity::Warning => SyslogSeverity::Warn,
            Severity::Notice => SyslogSeverity::Notice,
            Severity::Informational => SyslogSeverity::Info,
            Severity::Debug => SyslogSeverity::Dbg,
        }
    }
}

impl From<SyslogError> for Retval {
    fn from(error: SyslogError) -> Self {
        match error {
            SyslogError::Fib(error) => shoal_fib::api::retval(&error),
            _ => Retval::INVALID_VALUE,
        }
    }
}

fn syslog(call: &Call) -> Result<Rc<Syslog>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// Says where messages go.
#[derive(Message)]
#[message(request)]
pub struct SyslogSetSender {
    pub src_address: Ipv4Addr,
    pub collector_address: Ipv4Addr,
    #[preset(514)]
    pub collector_port: u16,
    /// All bits set, as VPP's clients may send: the default table.
    pub vrf_id: u32,
    #[preset(480)]
    pub max_msg_size: u32,
}

impl Request for SyslogSetSender {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let sender = Sender {
            collector: self.collector_address,
            port: self.collector_port,
            source: self.src_address,
            vrf: if self.vrf_id == u32::MAX { 0 } else { self.vrf_id },
            max_size: self.max_msg_size,
        };
        Ok(syslog(call)?.set_sender(sender)?)
    }
}

/// Asks where messages go.
#[derive(Message)]
#[message(request, reply = SyslogGetSenderReply)]
pub struct SyslogGetSender {}

/// Where messages go; all zero if nowhere.
#[derive(Message)]
#[message(reply)]
pub struct SyslogGetSenderReply {
    pub retval: i32,
    pub src_address: Ipv4Addr,
    pub collector_address: Ipv4Addr,
    pub collector_port: u16,
    pub vrf_id: u32,
    pub max_msg_size: u32,
}

impl Request for SyslogGetSender {
    fn handle(self, call: &Call) -> Result<SyslogGetSenderReply, Retval> {
        let usual = Sender::new(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
        let sender = syslog(call)?.sender().unwrap_or(Sender { vrf: u32::MAX, ..usual });
        Ok(SyslogGetSenderReply {
            retval: 0,
            src_address: sender.source,
            collector_address: sender.collector,
            collector_port: sender.port,
            vrf_id: sender.vrf,
            max_msg_size: sender.max_size,
        })
    }
}

/// Sends only messages of a severity and worse ones.
#[derive(Message)]
#[message(request)]
pub struct SyslogSetFilter {
    pub severity: SyslogSeverity,
}

impl Request for SyslogSetFilter {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        syslog(call)?.set_filter(self.severity.into());
        Ok(())
    }
}

/// Asks for the least severity of messages that are sent.
#[derive(Message)]
#[message(request, reply = SyslogGetFilterReply)]
pub struct SyslogGetFilter {}

/// The least severity of messages that are sent.
#[derive(Message)]
#[message(reply)]
pub struct SyslogGetFilterReply {
    pub retval: i32,
    pub severity: SyslogSeverity,
}

impl Request for SyslogGetFilter {
    fn handle(self, call: &Call) -> Result<SyslogGetFilterReply, Retval> {
        Ok(SyslogGetFilterReply { retval: 0, severity: syslog(call)?.filter().into() })
    }
}
