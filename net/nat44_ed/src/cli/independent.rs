//! Shared addresses whose mappings do not depend on the remote host.

use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::{nat, refused};
use crate::bindings::Filtering;

pub(super) const SET: Command = Command::new(
    "set nat44 mapping endpoint-independent {address <first:ip4-address> [- <last:ip4-address>] | interface <interface>} \
     [filtering {endpoint-independent | address-dependent | address-and-port-dependent}] [del]",
    "Have a host's port keep one outside port towards all remote hosts",
    set,
)
.examples(&[
    "set nat44 mapping endpoint-independent address 192.0.2.1",
    "set nat44 mapping endpoint-independent address 192.0.2.10 - 192.0.2.20 filtering address-dependent",
])
.doc(
    "For shared addresses that are there already. No other host has the port then (RFC 4787, REQ-1 and 3). `filtering` says which \
     remote hosts may send to it: all, those that the host has sent something to, or those from the port it has sent to.",
);

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    // The word of the default is in the line's first part, too.
    let others = [Filtering::AddressDependent, Filtering::AddressAndPortDependent];
    let named = others.into_iter().find(|filtering| args.has(filtering.name()));
    let filtering = (!args.has("del")).then_some(named.unwrap_or_default());
    let done = if let Some(InterfaceArg(interface)) = args.opt("interface")? {
        nat.set_interface_independent(interface, filtering)
    } else {
        let first = args.get("first")?;
        nat.set_independent((first, args.or("last", first)?), filtering)
    };
    done.map_err(refused)?;
    Ok(Output::none())
}
