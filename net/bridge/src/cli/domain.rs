//! `create bridge-domain`, `set bridge-domain ...`.

use std::net::IpAddr;

use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_wire::MacAddress;

use super::{domain_of, refused};
use crate::{Bridges, Settings, Switch};

pub(super) const CREATE: Command = Command::new(
    "create bridge-domain [<number:u32>] [learn <learn:u8>] [forward <forward:u8>] [uu-flood <uu-flood:u8>] \
     [flood <flood:u8>] [arp-term <arp-term:u8>] [arp-ufwd <arp-ufwd:u8>] [mac-age <mac-age:u32>] [bd-tag <bd-tag:word>] [del]",
    "Create a bridge domain, or delete it; tells its number",
    create,
)
.examples(&["create bridge-domain 20 learn 1 forward 1 uu-flood 1 flood 1 arp-term 0 mac-age 5 bd-tag lab"])
.doc(
    "1 switches something on, 0 off; by default all but `arp-term` and `arp-ufwd` is on, and stations are never \
     forgotten. `mac-age` is in minutes. Without a number the first that is free is taken.",
);

pub(super) const LEARN: Command = Command::new(
    "set bridge-domain learn <domain:bridge-domain> [disable]",
    "Learn where stations are",
    learn,
);

pub(super) const FORWARD: Command = Command::new(
    "set bridge-domain forward <domain:bridge-domain> [disable]",
    "Forward frames to where their stations are",
    forward,
);

pub(super) const FLOOD: Command = Command::new(
    "set bridge-domain flood <domain:bridge-domain> [disable]",
    "Flood frames for groups and for everybody",
    flood,
);

pub(super) const UU_FLOOD: Command = Command::new(
    "set bridge-domain uu-flood <domain:bridge-domain> [disable]",
    "Flood frames for stations that are not known",
    uu_flood,
);

pub(super) const ARP_TERM: Command = Command::new(
    "set bridge-domain arp term <domain:bridge-domain> [disable]",
    "Answer questions for stations whose address is known, ARP and neighbour discovery",
    arp_term,
)
.doc("The addresses are those of `set bridge-domain arp entry`.");

pub(super) const ARP_UFWD: Command = Command::new(
    "set bridge-domain arp-ufwd <domain:bridge-domain> [disable]",
    "Send ARP requests only to the interface for unknown stations",
    arp_ufwd,
);

pub(super) const MAC_AGE: Command = Command::new(
    "set bridge-domain mac-age <domain:bridge-domain> <minutes:u32>",
    "Forget stations that are silent for so many minutes; 0: never",
    mac_age,
);

pub(super) const LEARN_LIMIT: Command = Command::new(
    "set bridge-domain learn-limit <domain:bridge-domain> {<limit:u32> | default}",
    "Learn no more than so many stations in a bridge domain",
    learn_limit,
);

pub(super) const DEFAULT_LEARN_LIMIT: Command = Command::new(
    "set bridge-domain default-learn-limit <limit:u32>",
    "Learn no more than so many stations in each bridge domain that has no limit of its own",
    default_learn_limit,
)
.examples(&["set bridge-domain default-learn-limit 1000"]);

pub(super) const ARP_ENTRY: Command = Command::new(
    "set bridge-domain arp entry <domain:bridge-domain> {<address:ip-address> <mac> [del] | del-all}",
    "Say which station has an address, for those who ask",
    arp_entry,
);

fn switch_of(args: &Args, switch: Switch) -> Result<Option<bool>, CliError> {
    match args.opt::<u8>(switch.word())? {
        None => Ok(None),
        Some(on @ 0..=1) => Ok(Some(on == 1)),
        Some(_) => Err(CliError::argument(switch.word(), "0 or 1 is possible").nearest(Some("1".into()))),
    }
}

fn age_of(minutes: u32, name: &'static str, text: &str) -> Result<u8, CliError> {
    u8::try_from(minutes).map_err(|_| CliError::argument(name, text).nearest(Some("255".into())))
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let bridges = control.get::<Bridges>()?;
    let number = args.opt::<u32>("number")?;
    if args.has("del") {
        let number = number.ok_or_else(|| CliError::failed("which bridge domain? Its number is missing"))?;
        bridges.delete(number).map_err(refused)?;
        return Ok(Output::none());
    }
    let mut settings = Settings::default();
    for switch in Switch::ALL {
        if let Some(on) = switch_of(args, switch)? {
            settings.set(switch, on);
        }
    }
    if let Some(minutes) = args.opt::<u32>("mac-age")? {
        settings.mac_age = age_of(minutes, "mac-age", "mac age must be less than 256")?;
    }
    args.text("bd-tag").unwrap_or_default().clone_into(&mut settings.tag);
    let number = number.unwrap_or_else(|| bridges.free_number());
    bridges.create(number, settings).map_err(refused)?;
    Ok(Output::text(format!("bridge-domain {number}\n")))
}

fn set(control: &Control, args: &Args, switch: Switch) -> Result<Output, CliError> {
    let (bridges, number) = (control.get::<Bridges>()?, domain_of(args)?);
    bridges.switch(number, switch, !args.has("disable")).map_err(refused)?;
    Ok(Output::none())
}

fn learn(control: &Control, args: &Args) -> Result<Output, CliError> {
    set(control, args, Switch::Learn)
}

fn forward(control: &Control, args: &Args) -> Result<Output, CliError> {
    set(control, args, Switch::Forward)
}

fn flood(control: &Control, args: &Args) -> Result<Output, CliError> {
    set(control, args, Switch::Flood)
}

fn uu_flood(control: &Control, args: &Args) -> Result<Output, CliError> {
    set(control, args, Switch::UnknownFlood)
}

fn arp_term(control: &Control, args: &Args) -> Result<Output, CliError> {
    set(control, args, Switch::ArpTerm)
}

fn arp_ufwd(control: &Control, args: &Args) -> Result<Output, CliError> {
    set(control, args, Switch::ArpForward)
}

fn mac_age(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (bridges, number) = (control.get::<Bridges>()?, domain_of(args)?);
    let minutes = age_of(args.get("minutes")?, "minutes", "mac aging time cannot be bigger than 255")?;
    bridges.set_age(number, minutes).map_err(refused)?;
    Ok(Output::none())
}

fn learn_limit(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (bridges, number) = (control.get::<Bridges>()?, domain_of(args)?);
    bridges.set_learn_limit(number, args.opt("limit")?).map_err(refused)?;
    Ok(Output::none())
}

fn default_learn_limit(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Bridges>()?.set_default_learn_limit(args.get("limit")?);
    Ok(Output::none())
}

fn arp_entry(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (bridges, number) = (control.get::<Bridges>()?, domain_of(args)?);
    let (address, mac) = (args.opt::<IpAddr>("address")?, args.opt::<MacAddress>("mac")?);
    let done = match (address, mac) {
        (Some(address), Some(mac)) if args.has("del") => bridges.unbind(number, address, mac),
        (Some(address), Some(mac)) => bridges.bind(number, address, mac),
        _ => bridges.unbind_all(number),
    };
    done.map_err(refused)?;
    Ok(Output::none())
}
