//! Commands: `bfd key`, `bfd udp`, `show bfd`.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output, nearest};

use crate::api::retval;
use crate::{AuthType, Bfd, BfdError, Hop, Parameters, SessionInfo, SessionKey};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "bfd key set {conf-key-id <conf-key-id:u32> & type <type:word> & secret <secret:word>}",
        "Add a key with which BFD packets are signed",
        key_set,
    )
    .examples(&["bfd key set conf-key-id 7 type keyed-sha1 secret 0123456789abcdef"])
    .doc("Types are keyed-sha1 and meticulous-keyed-sha1 (RFC 5880, 6.7.4). The secret is 1 to 20 bytes in hexadecimal."),
    Command::new("bfd key del {conf-key-id <conf-key-id:u32>}", "Delete a key that no session uses", key_del)
        .examples(&["bfd key del conf-key-id 7"]),
    Command::new(
        "bfd udp session add {[multihop] & [interface <interface:interface>] & local-addr <local-addr:ip-address> \
         & peer-addr <peer-addr:ip-address> & desired-min-tx <desired-min-tx:u32> & required-min-rx <required-min-rx:u32> \
         & detect-mult <detect-mult:u8> & [conf-key-id <conf-key-id:u32>] & [bfd-key-id <bfd-key-id:u8>]}",
        "Watch the path to a neighbour, or to a router several hops away",
        add,
    )
    .examples(&[
        "bfd udp session add interface local0 local-addr 192.0.2.1 peer-addr 192.0.2.2 desired-min-tx 50000 \
         required-min-rx 50000 detect-mult 3",
    ])
    .doc("Times are in microseconds. Routes do not use a next hop whose session is not up."),
    Command::new(
        "bfd udp session mod {[multihop] & [interface <interface:interface>] & local-addr <local-addr:ip-address> \
         & peer-addr <peer-addr:ip-address> & desired-min-tx <desired-min-tx:u32> & required-min-rx <required-min-rx:u32> \
         & detect-mult <detect-mult:u8>}",
        "Give a BFD session other times",
        modify,
    ),
    Command::new(
        "bfd udp session del {[multihop] & [interface <interface:interface>] & local-addr <local-addr:ip-address> \
         & peer-addr <peer-addr:ip-address>}",
        "Delete a BFD session",
        del,
    ),
    Command::new(
        "bfd udp session set-flags {admin {up | down} & [multihop] & [interface <interface:interface>] \
         & local-addr <local-addr:ip-address> & peer-addr <peer-addr:ip-address>}",
        "Switch a BFD session on or off",
        set_flags,
    ),
    Command::new(
        "bfd udp session auth activate {[multihop] & [interface <interface:interface>] & local-addr <local-addr:ip-address> \
         & peer-addr <peer-addr:ip-address> & conf-key-id <conf-key-id:u32> & bfd-key-id <bfd-key-id:u8> \
         & [delayed <delayed:word>]}",
        "Sign the packets of a BFD session",
        activate,
    )
    .doc("With `delayed yes` as soon as those of the other end are signed so."),
    Command::new(
        "bfd udp session auth deactivate {[multihop] & [interface <interface:interface>] \
         & local-addr <local-addr:ip-address> & peer-addr <peer-addr:ip-address> & [delayed <delayed:word>]}",
        "Sign the packets of a BFD session no more",
        deactivate,
    ),
    Command::new(
        "bfd udp echo-source set interface <interface:interface>",
        "Have BFD's echo packets seem to come from the network of an interface",
        echo_set,
    )
    .examples(&["bfd udp echo-source set interface local0"])
    .doc("The address is the one next to the interface's own. Neighbours that send echo packets back are watched by these."),
    Command::new("bfd udp echo-source del", "Send no BFD echo packets", echo_del),
    Command::new("bfd udp tos <tos:u8>", "Set the type of service of BFD packets", tos)
        .examples(&["bfd udp tos 192"]),
    Command::new("show bfd [keys | sessions | echo-source]", "Show BFD's keys, sessions, source of echo packets", show)
        .examples(&["show bfd", "show bfd sessions", "show bfd keys", "show bfd echo-source"]),
];

fn bfd(control: &Control) -> Result<Rc<Bfd>, CliError> {
    Ok(control.get::<Bfd>()?)
}

/// As VPP says that a call failed.
fn failed(call: &str, error: &BfdError) -> CliError {
    CliError::failed(format!("`{call}' API call failed, rv={}:{error}", retval(error).0))
}

fn key(args: &Args) -> Result<SessionKey, CliError> {
    let multi = args.has("multihop");
    let interface = args.text("interface").map(|_| args.get::<InterfaceArg>("interface")).transpose()?;
    let hop = match (multi, interface) {
        (true, None) => Hop::Multi,
        (false, Some(InterfaceArg(interface))) => Hop::Single(interface),
        (true, Some(_)) => {
            return Err(CliError::failed(
                "Incompatible parameter combination, interface cannot be specified when multihop is enabled",
            ));
        }
        (false, None) => {
            return Err(CliError::failed(
                "Incompatible parameter combination, interface must be set if not multihop",
            ));
        }
    };
    let (local, peer): (IpAddr, IpAddr) = (args.get("local-addr")?, args.get("peer-addr")?);
    Ok(SessionKey { hop, local, peer })
}

fn parameters(args: &Args) -> Result<Parameters, CliError> {
    Ok(Parameters {
        desired_min_tx: args.get("desired-min-tx")?,
        required_min_rx: args.get("required-min-rx")?,
        detect_mult: args.get("detect-mult")?,
    })
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.len().is_multiple_of(2) && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    if digits { (0..text.len()).step_by(2).map(byte).collect() } else { None }
}

fn key_set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let text = args.text("type").unwrap_or_default();
    let kinds = [AuthType::KeyedSha1, AuthType::MeticulousKeyedSha1];
    let kind = kinds.into_iter().find(|kind| kind.word() == text).ok_or_else(|| {
        let near = nearest(text, kinds.iter().map(|kind| kind.word())).map(str::to_owned);
        CliError::failed(format!("invalid type `{text}'")).nearest(near)
    })?;
    let secret = args.text("secret").and_then(bytes).ok_or_else(|| {
        CliError::argument("secret", "1 to 20 bytes in hexadecimal, such as 0123456789abcdef")
    })?;
    bfd(control)?
        .set_key(args.get("conf-key-id")?, kind, &secret)
        .map_err(|e| failed("bfd_auth_set_key", &e))?;
    Ok(Output::none())
}

fn key_del(control: &Control, args: &Args) -> Result<Output, CliError> {
    bfd(control)?.del_key(args.get("conf-key-id")?).map_err(|e| failed("bfd_auth_del_key", &e))?;
    Ok(Output::none())
}

fn add(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (key, parameters) = (key(args)?, parameters(args)?);
    let auth = match (args.text("conf-key-id"), args.text("bfd-key-id")) {
        (None, None) => None,
        (Some(_), Some(_)) => Some((args.get("conf-key-id")?, args.get("bfd-key-id")?)),
        _ => {
            return Err(CliError::failed(
                "Incompatible parameter combination, `conf-key-id' and `bfd-key-id' must be both set or both unset",
            ));
        }
    };
    bfd(control)?.add(key, parameters, auth).map_err(|e| failed("bfd_add_add_session", &e))?;
    Ok(Output::none())
}

fn modify(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (key, parameters) = (key(args)?, parameters(args)?);
    bfd(control)?.modify(key, parameters).map_err(|e| failed("bfd_udp_mod_session", &e))?;
    Ok(Output::none())
}

fn del(control: &Control, args: &Args) -> Result<Output, CliError> {
    bfd(control)?.del(key(args)?).map_err(|e| failed("bfd_udp_del_session", &e))?;
    Ok(Output::none())
}

fn set_flags(control: &Control, args: &Args) -> Result<Output, CliError> {
    let key = key(args)?;
    bfd(control)?.set_admin(key, args.has("up")).map_err(|e| failed("bfd_udp_session_set_flags", &e))?;
    Ok(Output::none())
}

fn delayed(args: &Args) -> Result<bool, CliError> {
    match args.text("delayed") {
        None | Some("no") => Ok(false),
        Some("yes") => Ok(true),
        Some(other) => Err(CliError::argument("delayed", format!("yes or no, not {other}"))),
    }
}

fn activate(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (key, delayed) = (key(args)?, delayed(args)?);
    let auth = Some((args.get("conf-key-id")?, args.get("bfd-key-id")?));
    bfd(control)?.set_auth(key, auth, delayed).map_err(|e| failed("bfd_udp_auth_activate", &e))?;
    Ok(Output::none())
}

fn deactivate(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (key, delayed) = (key(args)?, delayed(args)?);
    bfd(control)?.set_auth(key, None, delayed).map_err(|e| failed("bfd_udp_auth_deactivate", &e))?;
    Ok(Output::none())
}

fn echo_set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    bfd(control)?.set_echo_source(Some(interface)).map_err(|e| failed("bfd_udp_set_echo_source", &e))?;
    Ok(Output::none())
}

fn echo_del(control: &Control, _: &Args) -> Result<Output, CliError> {
    bfd(control)?.set_echo_source(None).map_err(|e| failed("bfd_udp_del_echo_source", &e))?;
    Ok(Output::none())
}

fn tos(control: &Control, args: &Args) -> Result<Output, CliError> {
    bfd(control)?.set_tos(args.get("tos")?);
    Ok(Output::none())
}

#[derive(Serialize)]
struct KeyRow {
    conf_key_id: u32,
    r#type: String,
    use_count: usize,
}

impl fmt::Display for KeyRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<10} {:<25} {:<10}", self.conf_key_id, self.r#type, self.use_count)
    }
}

#[derive(Serialize)]
struct SessionRow {
    index: u32,
    interface: Option<String>,
    local: IpAddr,
    peer: IpAddr,
    multihop: bool,
    state: String,
    remote_state: String,
    diag: String,
    remote_diag: String,
    detect_mult: u8,
    remote_detect_mult: u8,
    required_min_rx: u32,
    remote_required_min_rx: u32,
    desired_min_tx: u32,
    remote_desired_min_tx: u32,
    transmit_interval: u64,
    detection_time: u64,
    last_tx_seconds: Option<f64>,
    last_rx_seconds: Option<f64>,
    echoing: bool,
    authenticated: bool,
    rx_packets: u64,
    tx_packets: u64,
    echo_rx_packets: u64,
    echo_tx_packets: u64,
}

impl SessionRow {
    fn of(interfaces: &Interfaces, info: &SessionInfo, now: u64) -> SessionRow {
        let SessionInfo { index, key, session, counts, .. } = info;
        let [rx, tx, echo_rx, echo_tx] = counts.map(|(packets, _)| packets);
        let ago = |at: Option<u64>| at.map(|at| now.saturating_sub(at) as f64 / 1e9);
        let interface = match key.hop {
            Hop::Single(interface) => interfaces.name(interface).ok(),
            Hop::Multi => None,
        };
        SessionRow {
            index: *index,
            interface,
            local: key.local,
            peer: key.peer,
            multihop: key.hop == Hop::Multi,
            state: session.state.to_string(),
            remote_state: session.remote.state.to_string(),
            diag: session.diag.to_string(),
            remote_diag: session.remote.diag.to_string(),
            detect_mult: session.parameters.detect_mult,
            remote_detect_mult: session.remote.detect_mult,
            required_min_rx: session.parameters.required_min_rx,
            remote_required_min_rx: session.remote.min_rx,
            desired_min_tx: session.parameters.desired_min_tx,
            remote_desired_min_tx: session.remote.desired_min_tx,
            transmit_interval: session.interval() / 1_000,
            detection_time: session.detection().unwrap_or(0) / 1_000,
            last_tx_seconds: ago(session.last_tx),
            last_rx_seconds: ago(session.last_rx),
            echoing: session.echoing,
            authenticated: session.auth.is_some(),
            rx_packets: rx,
            tx_packets: tx,
            echo_rx_packets: echo_rx,
            echo_tx_packets: echo_tx,
        }
    }
}

/// A property of a session: what it is called, and its values at both ends.
fn line(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    here: impl fmt::Display,
    there: impl fmt::Display,
) -> fmt::Result {
    writeln!(f, "{:>10} {name:<32} {here:>20.20} {there:>20.20}", "")
}

impl fmt::Display for SessionRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hop = if self.multihop { "BFD_HOP_TYPE_MULTI" } else { "BFD_HOP_TYPE_SINGLE" };
        line(f, "Hop Type", hop, "")?;
        let family = if self.local.is_ipv4() { "IPv4 address" } else { "IPv6 address" };
        writeln!(
            f,
            "{:>10} {family:<32} {:>20} {:>20}",
            self.index,
            self.local.to_string(),
            self.peer.to_string()
        )?;
        line(f, "Session state", &self.state, &self.remote_state)?;
        line(f, "Diagnostic code", &self.diag, &self.remote_diag)?;
        line(f, "Detect multiplier", self.detect_mult.to_string(), self.remote_detect_mult.to_string())?;
        line(f, "Detection Time (usec)", self.detection_time.to_string(), "")?;
        line(
            f,
            "Required Min Rx Interval (usec)",
            self.required_min_rx.to_string(),
            self.remote_required_min_rx.to_string(),
        )?;
        line(
            f,
            "Desired Min Tx Interval (usec)",
            self.desired_min_tx.to_string(),
            self.remote_desired_min_tx.to_string(),
        )?;
        line(f, "Transmit interval", self.transmit_interval.to_string(), "")?;
        let ago = |at: Option<f64>| at.map_or("N/A".to_owned(), |ago| format!("{ago:.2}s ago"));
        line(f, "Last control frame tx", ago(self.last_tx_seconds), "")?;
        line(f, "Last control frame rx", ago(self.last_rx_seconds), "")?;
        line(f, "Control frames received", self.rx_packets.to_string(), "")?;
        line(f, "Control frames sent", self.tx_packets.to_string(), "")?;
        line(f, "Echo function active", if self.echoing { "yes" } else { "no" }, "")?;
        line(f, "SHA1 auth", if self.authenticated { "yes" } else { "no" }, "")
    }
}

#[derive(Serialize)]
struct Shown {
    #[serde(skip)]
    which: ShowTarget,
    keys: Vec<KeyRow>,
    sessions: Vec<SessionRow>,
    echo_source: Option<String>,
    echo_ip4: Option<String>,
    echo_ip6: Option<String>,
    tos: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ShowTarget {
    Summary,
    Keys,
    Sessions,
    EchoSource,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.which {
            ShowTarget::Keys => {
                writeln!(f, "{:<10} {:<25} {:<10}", "Config Key ID", "Type", "Use Count")?;
                self.keys.iter().try_for_each(|key| key.fmt(f))?;
                writeln!(f, "Number of configured BFD keys: {}", self.keys.len())
            }
            ShowTarget::Sessions => {
                writeln!(
                    f,
                    "{:>10} {:<32} {:>20} {:>20}",
                    "Index", "Property", "Local value", "Remote value"
                )?;
                self.sessions.iter().try_for_each(|session| session.fmt(f))?;
                writeln!(f, "Number of configured BFD sessions: {}", self.sessions.len())
            }
            ShowTarget::EchoSource => match &self.echo_source {
                None => writeln!(f, "UDP echo source is not set."),
                Some(name) => {
                    let or_none = |address: &Option<String>| address.clone().unwrap_or("none".to_owned());
                    writeln!(f, "UDP echo source is: {name}")?;
                    writeln!(f, "IPv4 address usable as echo source: {}", or_none(&self.echo_ip4))?;
                    writeln!(f, "IPv6 address usable as echo source: {}", or_none(&self.echo_ip6))
                }
            },
            ShowTarget::Summary => {
                writeln!(f, "Number of configured BFD sessions: {}", self.sessions.len())?;
                writeln!(f, "Number of configured BFD keys: {}", self.keys.len())
            }
        }
    }
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (bfd, interfaces) = (bfd(control)?, control.get::<Interfaces>()?);
    let words = [
        ("keys", ShowTarget::Keys),
        ("sessions", ShowTarget::Sessions),
        ("echo-source", ShowTarget::EchoSource),
    ];
    let which =
        words.iter().find(|(word, _)| args.has(word)).map_or(ShowTarget::Summary, |(_, which)| *which);
    let source = bfd.echo_source();
    let key = |(conf_key_id, key, use_count): (u32, crate::Key, usize)| KeyRow {
        conf_key_id,
        r#type: key.kind.to_string(),
        use_count,
    };
    let now = bfd.clock();
    Ok(Output::view(Shown {
        which,
        keys: bfd.keys().into_iter().map(key).collect(),
        sessions: bfd.list().iter().map(|info| SessionRow::of(&interfaces, info, now)).collect(),
        echo_source: source.and_then(|source| interfaces.name(source.interface).ok()),
        echo_ip4: source.and_then(|source| source.ip4).map(|address| address.to_string()),
        echo_ip6: source.and_then(|source| source.ip6).map(|address| address.to_string()),
        tos: bfd.tos(),
    }))
}
