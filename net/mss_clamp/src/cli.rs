//! Commands: `set interface tcp-mss-clamp`, `show interface tcp-mss-clamp`.

use std::fmt;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{Directions, MssClamp, MssError, Setting};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set interface tcp-mss-clamp [rx | tx] <interface> \
         [ip4 [enable | disable | rx | tx] [ip4-mss <ip4-mss:u16>]] \
         [ip6 [enable | disable | rx | tx] [ip6-mss <ip6-mss:u16>]]",
        "Lower the maximum segment size that TCP connections ask for",
        set,
    )
    .examples(&[
        "set interface tcp-mss-clamp local0 ip4 enable ip4-mss 1400 ip6 enable ip6-mss 1380",
        "set interface tcp-mss-clamp local0 ip4 rx ip4-mss 1400",
        "set interface tcp-mss-clamp tx local0 ip6 enable ip6-mss 1380",
        "set interface tcp-mss-clamp local0 ip4 disable",
    ])
    .doc(
        "Only SYN packets that ask for more are changed. `rx` is for packets that come in by the interface, `tx` for \
         those that go out by it; `enable` for both, or the one that stands in front. A family that is not named stays \
         as it is, and so does a size.",
    ),
    Command::new("show interface tcp-mss-clamp [<interface>]", "Show where TCP segment sizes are lowered", show)
        .examples(&["show interface tcp-mss-clamp", "show interface tcp-mss-clamp local0"]),
];

/// Settings of one family.
#[derive(Clone, Copy)]
struct FamilySettings {
    directions: Directions,
    mss: Option<u16>,
}

const FAMILIES: [&str; 2] = ["ip4", "ip6"];

/// The words of a family follow its name.
fn said(args: &Args) -> Result<[Option<FamilySettings>; 2], CliError> {
    let (mut all, mut current, mut both) = ([None; 2], None, Directions::BOTH);
    for item in args.items().iter().filter(|item| item.word) {
        let directions = match item.name {
            "rx" => Directions::RX,
            "tx" => Directions::TX,
            "enable" => both,
            "disable" => Directions::NONE,
            name => {
                if let Some(family) = FAMILIES.iter().position(|f| *f == name) {
                    current = all.get_mut(family);
                    if let Some(slot) = &mut current {
                        **slot = Some(FamilySettings { directions: both, mss: None });
                    }
                }
                continue;
            }
        };
        match &mut current {
            Some(Some(said)) => said.directions = directions,
            _ => both = directions,
        }
    }
    for (said, name) in all.iter_mut().zip(["ip4-mss", "ip6-mss"]) {
        if let Some(said) = said {
            said.mss = args.opt(name)?;
        }
    }
    Ok(all)
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (clamp, InterfaceArg(interface)) = (control.get::<MssClamp>()?, args.get("interface")?);
    let said = said(args)?;
    if said.iter().all(Option::is_none) {
        return Err(CliError::argument("interface", "neither `ip4' nor `ip6' was given"));
    }
    let old = clamp.settings().into_iter().find(|(i, _)| *i == interface).map(|(_, s)| s).unwrap_or_default();
    let mut wanted = [None; 2];
    for (((said, old), wanted), name) in
        said.into_iter().zip(old).zip(&mut wanted).zip(["ip4-mss", "ip6-mss"])
    {
        let Some(FamilySettings { directions, mss }) = said else { continue };
        let mss = mss.unwrap_or(old.mss);
        if directions != Directions::NONE && mss < MssError::LEAST {
            let error = if mss == 0 {
                CliError::argument("interface", format!("`{name}' is missing"))
            } else {
                let nearest = Some(MssError::LEAST.to_string());
                CliError::argument(name, MssError::TooSmall(mss).to_string()).nearest(nearest)
            };
            return Err(error);
        }
        *wanted = Some(Setting { directions, mss });
    }
    clamp.set(interface, wanted).map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Family {
    directions: String,
    /// None where nothing is lowered.
    mss: Option<u16>,
}

impl Family {
    fn new(setting: Setting) -> Self {
        let on = setting.directions != Directions::NONE;
        Family { directions: setting.directions.to_string(), mss: on.then_some(setting.mss) }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.directions)?;
        self.mss.map_or(Ok(()), |mss| write!(f, " mss {mss}"))
    }
}

#[derive(Serialize)]
struct Row {
    interface: String,
    ip4: Family,
    ip6: Family,
}

#[derive(Serialize)]
#[serde(transparent)]
struct View(Vec<Row>);

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (clamp, interfaces) = (control.get::<MssClamp>()?, control.get::<Interfaces>()?);
    let only = args.opt::<InterfaceArg>("interface")?.map(|i| i.0);
    let settings = clamp.settings().into_iter().filter(|(i, _)| only.is_none_or(|only| only == *i));
    let row = |(interface, [ip4, ip6]): (_, [Setting; 2])| Row {
        interface: interfaces.name(interface).unwrap_or_default(),
        ip4: Family::new(ip4),
        ip6: Family::new(ip6),
    };
    Ok(Output::view(View(settings.map(row).collect())))
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|Row { interface, ip4, ip6 }| writeln!(f, "{interface}: ip4: {ip4} ip6: {ip6}"))
    }
}
