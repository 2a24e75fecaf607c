//! Commands: `ip6 nd`, `show ip6 interface`, `show ip6 dad`.

use std::net::Ipv6Addr;

use shoal_interface::{InterfaceArg, Interfaces, SwIfIndex};
use shoal_ip6::Ip6;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_wire::Ip6Prefix;
use shoal_wire::nd::PrefixFlags;

use crate::show::{DadView, InterfaceView, InterfacesView};
use crate::{Advertise, Autoconfigure, DefaultRoute, Nd, NdError, Prefix, Proxy, RaConfig};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "ip6 nd <interface> [no] [ra-managed-config-flag] [ra-other-config-flag] [ra-suppress] \
         [ra-suppress-link-layer] [ra-send-unicast] [ra-cease] [ra-lifetime <lifetime:u16>] \
         [ra-initial <count:u32> <initial-interval:u32>] [ra-interval <longest:u32> [<shortest:u32>]] \
         [prefix <prefix:ip6-prefix> [<valid:u32> <preferred:u32>]] [infinite] [default] [no-advertise] \
         [off-link] [no-autoconfig] [no-onlink]",
        "Set what hosts on a link are told by router advertisements",
        advertise,
    )
    .doc(
        "With `no`, what is named goes back to what it is without the command. Times are in seconds. A prefix is \
         valid for 30 days and preferred for 7 unless it says otherwise; `off-link` and `no-onlink` are the same.",
    )
    .examples(&[
        "ip6 nd loop0 ra-interval 30 20 ra-lifetime 90",
        "ip6 nd loop0 ra-managed-config-flag ra-other-config-flag",
        "ip6 nd loop0 no ra-suppress",
        "ip6 nd loop0 prefix 2001:db8:1::/64 infinite",
        "ip6 nd loop0 prefix 2001:db8:1::/64 3600 1800 off-link no-autoconfig",
        "ip6 nd loop0 no prefix 2001:db8:1::/64",
    ]),
    Command::new(
        "ip6 nd proxy [del] <address:ip6-address> <interface>",
        "Answer solicitations for the address of a host on another link",
        proxy,
    )
    .examples(&["ip6 nd proxy 2001:db8:1::9 loop0", "ip6 nd proxy del 2001:db8:1::9 loop0"]),
    Command::new(
        "set interface ip6-nd proxy <interface> [{enable | disable}]",
        "Answer the solicitations of an interface's hosts for everybody",
        mirror,
    )
    .doc(
        "For hosts behind an unnumbered interface that have an address of the router as their own: they reach everybody \
         through the router.",
    )
    .examples(&["set interface ip6-nd proxy loop0 enable", "set interface ip6-nd proxy loop0 disable"]),
    Command::new(
        "ip6 nd address autoconfig <interface> [{default-route | disable}]",
        "Let routers of a link give an interface its addresses (SLAAC)",
        autoconfig,
    )
    .doc(
        "IPv6 runs on the interface, routers are asked, and addresses are made of what they advertise and of the MAC \
         address. With `default-route` those that advertise themselves share the default route. `disable` takes away \
         all that was made.",
    )
    .examples(&[
        "ip6 nd address autoconfig loop0",
        "ip6 nd address autoconfig loop0 default-route",
        "ip6 nd address autoconfig loop0 disable",
    ]),
    Command::new(
        "set ip6 dad {enable | disable | transmits <transmits:u32>}",
        "Ask for new addresses before they are used, so many times, or not",
        set_dad,
    )
    .doc("`enable` asks once, `transmits 0` never. What is set holds for addresses that come.")
    .examples(&["set ip6 dad enable", "set ip6 dad transmits 2", "set ip6 dad disable"]),
    Command::new("show ip6 dad", "Show addresses and whether another station has them", show_dad)
        .examples(&["show ip6 dad"]),
    Command::new(
        "show ip6 interface [<interface>]",
        "Show IPv6 on interfaces: addresses, groups, what is advertised and heard",
        show_interface,
    )
    .examples(&["show ip6 interface", "show ip6 interface local0"]),
];

fn failed(e: NdError) -> CliError {
    CliError::failed(e.to_string())
}

fn advertise(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nd = control.get::<Nd>()?;
    let InterfaceArg(interface) = args.get("interface")?;
    let mut config = nd.ra_config(interface);
    let no = args.has("no");
    let default = RaConfig::default();
    let said = if no { Advertise::No } else { Advertise::Yes };
    let unsaid = if no { Advertise::Yes } else { Advertise::No };
    for (word, value, to) in [
        ("ra-managed-config-flag", said, &mut config.managed),
        ("ra-other-config-flag", said, &mut config.other),
        ("ra-suppress", unsaid, &mut config.send),
        ("ra-suppress-link-layer", unsaid, &mut config.link_layer),
        ("ra-send-unicast", said, &mut config.unicast),
    ] {
        if args.has(word) {
            *to = value;
        }
    }
    if args.has("ra-interval") {
        let longest = args.or("longest", default.interval.1)?;
        let shortest = args.or("shortest", (longest.saturating_mul(3) / 4).max(3))?;
        config.interval = if no { default.interval } else { (shortest, longest) };
    }
    if args.has("ra-lifetime") {
        config.lifetime_secs = if no { default.lifetime_secs } else { args.get("lifetime")? };
    }
    if args.has("ra-initial") {
        let initial = (args.get("count")?, args.get("initial-interval")?);
        config.initial = if no { default.initial } else { initial };
    }
    if let Some(prefix) = args.opt::<Ip6Prefix>("prefix")? {
        let prefix = prefix.normalized();
        let before = config.prefixes.len();
        config.prefixes.retain(|(old, _)| *old != prefix);
        if !no {
            config.prefixes.push((prefix, prefix_of(args)?));
        } else if config.prefixes.len() == before {
            let name = control.get::<Interfaces>()?.name(interface).unwrap_or_default();
            return Err(failed(NdError::Unknown(prefix, name)));
        }
    }
    nd.set_ra_config(interface, config).map_err(failed)?;
    if args.has("ra-cease") {
        nd.cease(interface).map_err(failed)?;
    }
    Ok(Output::none())
}

fn prefix_of(args: &Args) -> Result<Prefix, CliError> {
    let mut prefix = Prefix::default();
    if args.has("infinite") {
        (prefix.valid_secs, prefix.preferred_secs) = (u32::MAX, u32::MAX);
    }
    if let (Some(valid), Some(preferred)) = (args.opt("valid")?, args.opt("preferred")?) {
        (prefix.valid_secs, prefix.preferred_secs) = (valid, preferred);
    }
    let mut flags = PrefixFlags::default();
    if !args.has("off-link") && !args.has("no-onlink") {
        flags = flags | PrefixFlags::ON_LINK;
    }
    if !args.has("no-autoconfig") {
        flags = flags | PrefixFlags::AUTONOMOUS;
    }
    prefix.flags = flags;
    if args.has("no-advertise") {
        prefix.advertise = Advertise::No;
    }
    Ok(prefix)
}

fn proxy(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    let address = args.get::<Ipv6Addr>("address")?;
    let on = if args.has("del") { Proxy::Ignore } else { Proxy::Answer };
    control.get::<Nd>()?.set_proxy(interface, address, on).map_err(failed)?;
    Ok(Output::none())
}

fn mirror(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    let on = if args.has("disable") { Proxy::Ignore } else { Proxy::Answer };
    control.get::<Nd>()?.set_mirror(interface, on).map_err(failed)?;
    Ok(Output::none())
}

fn set_dad(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nd = control.get::<Nd>()?;
    nd.set_dad_transmits(match args.opt("transmits")? {
        Some(transmits) => transmits,
        // As many as were set before.
        None if args.has("enable") => nd.dad_transmits().max(1),
        None => 0,
    });
    Ok(Output::none())
}

fn show_dad(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (nd, interfaces) = (control.get::<Nd>()?, control.get::<Interfaces>()?);
    Ok(Output::view(DadView::new(&nd, &interfaces)))
}

fn autoconfig(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    let on = if args.has("disable") {
        Autoconfigure::No
    } else if args.has("default-route") {
        Autoconfigure::Yes(DefaultRoute::Wanted)
    } else {
        Autoconfigure::Yes(DefaultRoute::Unwanted)
    };
    control.get::<Nd>()?.set_autoconfigure(interface, on).map_err(failed)?;
    Ok(Output::none())
}

fn show_interface(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (nd, interfaces, ip6) = (control.get::<Nd>()?, control.get::<Interfaces>()?, control.get::<Ip6>()?);
    let wanted = match args.opt::<InterfaceArg>("interface")? {
        Some(interface) => vec![interface.0],
        None => ip6.interfaces(),
    };
    let one = |i: SwIfIndex| InterfaceView::new(&nd, &interfaces, &ip6, i);
    Ok(Output::view(InterfacesView(wanted.into_iter().filter_map(one).collect())))
}
