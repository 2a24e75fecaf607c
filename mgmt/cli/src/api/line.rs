//! `cli`, `cli_inband`: a line for the command line.

use shoal_message::{Message, Retval};
use shoal_module::api::{Call, Request, Task};

use crate::Cli as CommandLine;

/// A line in shared memory, which this router does not offer: always refused.
#[derive(Message)]
#[message(request, reply = CliReply)]
pub struct Cli {
    cmd_in_shmem: u64,
}

/// Would say where in shared memory the answer is.
#[derive(Message)]
#[message(reply)]
pub struct CliReply {
    retval: i32,
    reply_in_shmem: u64,
}

impl Request for Cli {
    fn handle(self, _: &Call) -> Result<CliReply, Retval> {
        Err(Retval::UNSUPPORTED)
    }
}

/// Runs lines of the command line.
#[derive(Message)]
#[message(request, reply = CliInbandReply)]
pub struct CliInband {
    /// The lines.
    cmd: String,
}

/// The answer of the command line.
#[derive(Message)]
#[message(reply)]
pub struct CliInbandReply {
    /// 0, or -1 if a command failed.
    retval: i32,
    /// The answer, with the error at its end. At most 1 MiB; a last line says it when there was more.
    reply: String,
}

impl Task for CliInband {
    async fn run(self, call: Call) -> Result<CliInbandReply, Retval> {
        let cli = call.get::<CommandLine>().map_err(|_| Retval::UNSPECIFIED)?;
        let (ok, reply) = cli.execute_bounded(&call.control, &self.cmd).await;
        // VPP says -1 for everything that its commands fail of.
        let retval = if ok { 0 } else { Retval::UNSPECIFIED.0 };
        Ok(CliInbandReply { retval, reply })
    }
}
