//! `show_version`, `show_vpe_system_time`, and the messages by which clients learn how numbers with a fraction look.

use std::time::UNIX_EPOCH;

use shoal_message::{Message, Retval, Text, Timestamp};
use shoal_module::api::{Call, Request};

use crate::commands::version::Build;

/// Asks which program this is.
#[derive(Message)]
#[message(request, reply = ShowVersionReply)]
pub struct ShowVersion {}

/// Which program this is.
#[derive(Message)]
#[message(reply)]
pub struct ShowVersionReply {
    retval: i32,
    /// `vpe`, as of every program that speaks these messages.
    program: Text<32>,
    /// The release of VPP whose messages these are, and the router's own.
    version: Text<32>,
    build_date: Text<32>,
    build_directory: Text<256>,
}

impl Request for ShowVersion {
    fn handle(self, _: &Call) -> Result<ShowVersionReply, Retval> {
        let build = Build::new();
        Ok(ShowVersionReply {
            retval: 0,
            program: "vpe".into(),
            version: build.version.as_str().into(),
            build_date: build.built_at.as_str().into(),
            build_directory: Text::default(),
        })
    }
}

/// Asks for the time of day.
#[derive(Message)]
#[message(request, reply = ShowVpeSystemTimeReply)]
pub struct ShowVpeSystemTime {}

/// The time of day.
#[derive(Message)]
#[message(reply)]
pub struct ShowVpeSystemTimeReply {
    retval: i32,
    /// Since 1970 began.
    vpe_system_time: Timestamp,
}

impl Request for ShowVpeSystemTime {
    fn handle(self, call: &Call) -> Result<ShowVpeSystemTimeReply, Retval> {
        let graph = call.control.graph().map_err(|_| Retval::UNSPECIFIED)?;
        let clock = graph.clock();
        let since = clock.wall(clock.now()).duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(ShowVpeSystemTimeReply { retval: 0, vpe_system_time: Timestamp(since.as_secs_f64()) })
    }
}

/// Sends the number one.
#[derive(Message)]
#[message(request, reply = GetF64EndianValueReply)]
pub struct GetF64EndianValue {
    /// 1.0.
    #[preset(1.0)]
    f64_one: f64,
}

/// Whether the number one arrived as such.
#[derive(Message)]
#[message(reply)]
pub struct GetF64EndianValueReply {
    retval: u32,
    /// 1.0.
    f64_one_result: f64,
}

impl Request for GetF64EndianValue {
    fn handle(self, _: &Call) -> Result<GetF64EndianValueReply, Retval> {
        if self.f64_one.to_bits() == 1f64.to_bits() {
            Ok(GetF64EndianValueReply { retval: 0, f64_one_result: 1.0 })
        } else {
            Err(Retval::API_ENDIAN_FAILED)
        }
    }
}

/// Sends a number.
#[derive(Message)]
#[message(request, name = "get_f64_increment_by_one", reply = GetF64IncrementByOneReply)]
pub struct GetF64IncrementByOne {
    /// The number.
    #[preset(1.0)]
    f64_value: f64,
}

/// The number that is larger by one.
#[derive(Message)]
#[message(reply, name = "get_f64_increment_by_one_reply")]
pub struct GetF64IncrementByOneReply {
    retval: u32,
    /// The number.
    f64_value: f64,
}

impl Request for GetF64IncrementByOne {
    fn handle(self, _: &Call) -> Result<GetF64IncrementByOneReply, Retval> {
        Ok(GetF64IncrementByOneReply { retval: 0, f64_value: self.f64_value + 1.0 })
    }
}
