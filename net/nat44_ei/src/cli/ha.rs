//! Another router that learns of sessions.

use std::fmt::Write;

use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::{Endpoint, nat, refused, text};
use crate::{Failover, Listener};

pub(super) const LISTENER: Command = Command::new(
    "nat44 ei ha listener <listener:word> [path-mtu <path-mtu:u32>]",
    "Hear of another router's sessions, at an address and port of this one",
    listener,
)
.examples(&["nat44 ei ha listener 192.0.2.1:1234 path-mtu 1400"])
.doc("Port 0: no more. The path MTU is 512 by default; no packet is longer than 1500 bytes.");

pub(super) const FAILOVER: Command = Command::new(
    "nat44 ei ha failover <failover:word> [refresh-interval <refresh-interval:u32>]",
    "Tell another router of sessions",
    failover,
)
.examples(&["nat44 ei ha failover 192.0.2.2:1234 refresh-interval 10"])
.doc(
    "It hears of sessions that begin and end within a second, and every `refresh-interval` seconds, 10 by default, of those \
     that are used. Only its address is heard then. Port 0: no more.",
);

pub(super) const FLUSH: Command =
    Command::new("nat44 ei ha flush", "Tell the other router what it was not told yet", flush);

pub(super) const RESYNC: Command =
    Command::new("nat44 ei ha resync", "Tell the other router of all sessions", resync);

pub(super) const SHOW: Command =
    Command::new("show nat44 ei ha", "Show which routers know each other's sessions", show)
        .examples(&["show nat44 ei ha"]);

fn listener(control: &Control, args: &Args) -> Result<Output, CliError> {
    let Endpoint(address, port) = args.get("listener")?;
    let path_mtu = args.or("path-mtu", Listener::PATH_MTU)?;
    nat(control)?.set_listener(Listener { address, port, path_mtu }).map_err(refused)?;
    Ok(Output::none())
}

fn failover(control: &Control, args: &Args) -> Result<Output, CliError> {
    let Endpoint(address, port) = args.get("failover")?;
    let refresh = args.or("refresh-interval", Failover::REFRESH)?;
    nat(control)?.set_failover(Failover { address, port, refresh });
    Ok(Output::none())
}

fn flush(control: &Control, _: &Args) -> Result<Output, CliError> {
    nat(control)?.flush();
    Ok(Output::none())
}

fn resync(control: &Control, _: &Args) -> Result<Output, CliError> {
    nat(control)?.resync(None).map_err(refused)?;
    Ok(Output::none())
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let (listener, failover, resyncs) = (nat.listener(), nat.failover(), nat.is_resyncing());
    text(|f| {
        let Some(Listener { address, port, path_mtu }) = listener else {
            return writeln!(f, "NAT HA disabled");
        };
        writeln!(f, "LISTENER:")?;
        writeln!(f, "  {address}:{port} path-mtu {path_mtu}")?;
        writeln!(f, "FAILOVER:")?;
        match failover {
            Some(Failover { address, port, refresh }) => {
                writeln!(f, "  {address}:{port} refresh-interval {refresh} sec")?;
            }
            None => writeln!(f, "  NA")?,
        }
        if resyncs { writeln!(f, "resync in progress") } else { Ok(()) }
    })
}
