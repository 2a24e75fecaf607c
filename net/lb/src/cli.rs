//! Commands: `lb ...`, `show lb`, `show lb vips`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;
use shoal_fib::PrefixArg;
use shoal_interface::InterfaceArg;
use shoal_message::Retval;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_wire::IpProtocol;

use crate::vip::{Encap, Policy, Service, Vip, VipKey};
use crate::{Counted, LbError, LoadBalancer, Look};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "lb conf [ip4-src-address <ip4-source:ip4-address>] [ip6-src-address <ip6-source:ip6-address>] \
         [buckets <buckets:u32>] [timeout <timeout:u32>]",
        "Set the source of tunnel packets, and how many flows a thread remembers for how long",
        conf,
    )
    .examples(&["lb conf ip4-src-address 192.0.2.1 timeout 40"])
    .doc(
        "Buckets are of four flows, 1024 if not set; a change of their number forgets flows. A flow is forgotten after 40 seconds \
         without a packet if not set.",
    ),
    Command::new(
        "lb vip <prefix:ip-prefix> [protocol {tcp | udp} port <port:u16>] [encap {gre4 | gre6 | l3dsr | nat4 | nat6}] \
         [dscp <dscp:u8>] [type {nodeport | clusterip}] [target_port <target-port:u16>] [node_port <node-port:u16>] \
         [new_len <new-length:u32>] [src_ip_sticky] [del]",
        "Spread packets for addresses over servers",
        vip,
    )
    .examples(&[
        "lb vip 192.0.2.80/32 encap gre4 new_len 1024",
        "lb vip 192.0.2.81/32 protocol udp port 53 encap nat4 type clusterip target_port 5353",
        "lb vip 192.0.2.82/32 encap l3dsr dscp 7",
        "lb vip 192.0.2.80/32 del",
    ])
    .doc(
        "`gre4` and `gre6` put packets into tunnels, `l3dsr` changes destination and class of service: such servers answer clients \
         themselves. `nat4` and `nat6` translate: answers pass by the router (`lb set interface`). `new_len` is the number of places \
         in the table of new flows, a power of two: a hundred times the servers is plenty. With `src_ip_sticky` all flows of a client \
         go to one server.",
    ),
    Command::new(
        "lb as <prefix:ip-prefix> [protocol {tcp | udp} port <port:u16>] [<server:ip-address>] ... [del] [flush]",
        "Give a virtual address servers",
        servers,
    )
    .examples(&["lb as 192.0.2.80/32 10.0.0.1 10.0.0.2", "lb as 192.0.2.80/32 10.0.0.1 del"])
    .doc("`del` gives servers no new flows; those they have go on until they end, or with `flush` get other servers now."),
    Command::new(
        "lb flush vip <prefix:ip-prefix> [protocol {tcp | udp} port <port:u16>]",
        "Spread all flows of a virtual address again",
        flush,
    )
    .examples(&["lb flush vip 192.0.2.80/32"]),
    Command::new(
        "lb set interface nat4 in <interface> [del]",
        "Translate answers of servers that come in by an interface",
        |control, args| return_path(control, args, false),
    )
    .examples(&["lb set interface nat4 in local0"]),
    Command::new(
        "lb set interface nat6 in <interface> [del]",
        "Translate IPv6 answers of servers that come in by an interface",
        |control, args| return_path(control, args, true),
    )
    .examples(&["lb set interface nat6 in local0"]),
    Command::new("test lb flowtable flush", "Forget which server each flow has", forget_flows)
        .examples(&["test lb flowtable flush"]),
    Command::new("show lb", "Show the load balancer's settings and flows", show).examples(&["show lb"]),
    Command::new("show lb vips [verbose]", "Show virtual addresses", show_vips)
        .examples(&["show lb vips", "show lb vips verbose"])
        .doc("`verbose`: with counters and servers."),
];

fn lb(control: &Control) -> Result<std::rc::Rc<LoadBalancer>, CliError> {
    Ok(control.get::<LoadBalancer>()?)
}

/// As VPP says it, and why.
fn failed(what: &str, error: LbError) -> CliError {
    let text = error.to_string();
    let number = Retval::from(error).0;
    CliError::failed(format!("{what} error {number}: {text}"))
}

fn key(args: &Args) -> Result<VipKey, CliError> {
    let prefix = args.get::<PrefixArg>("prefix")?.0;
    let protocol = if args.has("tcp") { IpProtocol::TCP } else { IpProtocol::UDP };
    let port = args.opt::<u16>("port")?.filter(|port| *port != 0);
    Ok(VipKey { prefix, port: port.map(|port| (protocol, port)) })
}

fn conf(control: &Control, args: &Args) -> Result<Output, CliError> {
    let lb = lb(control)?;
    let now = lb.settings();
    let new = crate::Settings {
        source4: args.opt::<Ipv4Addr>("ip4-source")?.unwrap_or(now.source4),
        source6: args.opt::<Ipv6Addr>("ip6-source")?.unwrap_or(now.source6),
        buckets: args.opt("buckets")?.unwrap_or(now.buckets),
        timeout: args.opt("timeout")?.unwrap_or(now.timeout),
    };
    lb.set(new).map_err(|e| failed("lb_conf", e))?;
    Ok(Output::none())
}

fn vip(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (lb, key) = (lb(control)?, key(args)?);
    if args.has("del") {
        lb.del_vip(key).map_err(|e| failed("lb_vip_find_index", e))?;
        return Ok(Output::none());
    }
    let usual = if key.is_ip6() { Encap::Gre6 } else { Encap::Gre4 };
    let encap = Encap::ALL.iter().find(|(_, word)| args.has(word)).map_or(usual, |(encap, _)| *encap);
    let target_port = args.opt("target-port")?.or(key.port.map(|(_, port)| port)).unwrap_or(0);
    let node_port = args.opt("node-port")?.unwrap_or(target_port);
    let policy = Policy {
        dscp: args.or("dscp", 0)?,
        service: if args.has("nodeport") { Service::NodePort(node_port) } else { Service::ClusterIp },
        target_port,
        new_length: args.or("new-length", Policy::new(encap).new_length)?,
        src_ip_sticky: args.has("src_ip_sticky"),
        encap,
    };
    let index = lb.add_vip(key, policy).map_err(|e| failed("lb_vip_add", e))?;
    Ok(Output::text(format!("lb_vip_add ok {index}\n")))
}

fn servers(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (lb, key) = (lb(control)?, key(args)?);
    let addresses: Vec<IpAddr> = args.all("server")?;
    if addresses.is_empty() {
        return Err(CliError::failed("No AS address provided"));
    }
    lb.vip(&key).map_err(|e| failed("lb_vip_find_index", e))?;
    if args.has("del") {
        lb.del_servers(&key, &addresses, args.has("flush")).map_err(|e| failed("lb_vip_del_ass", e))?;
    } else {
        lb.add_servers(&key, &addresses).map_err(|e| failed("lb_vip_add_ass", e))?;
    }
    Ok(Output::none())
}

fn flush(control: &Control, args: &Args) -> Result<Output, CliError> {
    lb(control)?.flush(&key(args)?).map_err(|e| failed("lb_flush_vip", e))?;
    Ok(Output::none())
}

fn forget_flows(control: &Control, _: &Args) -> Result<Output, CliError> {
    lb(control)?.forget_flows().map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::none())
}

fn return_path(control: &Control, args: &Args, is_ip6: bool) -> Result<Output, CliError> {
    let interface = args.get::<InterfaceArg>("interface")?.0;
    let done = lb(control)?.set_return_path(interface, is_ip6, !args.has("del"));
    done.map_err(|e| CliError::argument("interface", e.to_string()))?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Threads {
    thread: usize,
    timeout: u32,
    used: usize,
    room: u32,
}

#[derive(Serialize)]
struct SettingsView {
    ip4_src_address: Ipv4Addr,
    ip6_src_address: Ipv6Addr,
    vips: usize,
    servers: usize,
    threads: Vec<Threads>,
}

impl fmt::Display for SettingsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "lb_main ip4-src-address: {} ", self.ip4_src_address)?;
        writeln!(f, " ip6-src-address: {} ", self.ip6_src_address)?;
        writeln!(f, " #vips: {}", self.vips)?;
        writeln!(f, " #ass: {}", self.servers)?;
        for Threads { thread, timeout, used, room } in &self.threads {
            writeln!(f, "core {thread}\n  timeout: {timeout}s\n  usage: {used} / {room}")?;
        }
        Ok(())
    }
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let lb = lb(control)?;
    let (settings, vips) = (lb.settings(), lb.vips());
    let look = lb.look().map_err(|e| CliError::failed(e.to_string()))?;
    let threads = look.used.iter().map(|(thread, used)| Threads {
        thread: *thread,
        timeout: settings.timeout,
        used: *used,
        room: look.room,
    });
    Ok(Output::view(SettingsView {
        ip4_src_address: settings.source4,
        ip6_src_address: settings.source6,
        // VPP counts the one that stands for none.
        vips: vips.len() + 1,
        servers: vips.iter().map(|vip| vip.servers().count()).sum(),
        threads: threads.collect(),
    }))
}

#[derive(Serialize)]
struct ServerView {
    address: IpAddr,
    buckets: usize,
    flows: u64,
    used: bool,
}

#[derive(Serialize)]
struct VipView {
    index: u32,
    kind: String,
    prefix: String,
    protocol: Option<u8>,
    port: Option<u16>,
    new_size: u32,
    dscp: Option<u8>,
    service: Option<&'static str>,
    target_port: Option<u16>,
    node_port: Option<u16>,
    src_ip_sticky: bool,
    servers: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    verbose: Option<Verbose>,
}

#[derive(Serialize)]
struct Verbose {
    existing_sessions: u64,
    first_session_packets: u64,
    untracked_packets: u64,
    no_server_packets: u64,
    servers: Vec<ServerView>,
}

impl VipView {
    fn new(vip: &Vip) -> Self {
        let Policy { encap, dscp, service, target_port, new_length, src_ip_sticky } = vip.policy;
        let is_nat = encap.is_nat();
        VipView {
            index: vip.index,
            kind: vip.kind(),
            prefix: vip.key.prefix.to_string(),
            protocol: vip.key.port.map(|(protocol, _)| protocol.0),
            port: vip.key.port.map(|(_, port)| port),
            new_size: new_length,
            dscp: (encap == Encap::L3dsr).then_some(dscp),
            service: is_nat.then_some(if service == Service::ClusterIp { "clusterip" } else { "nodeport" }),
            target_port: is_nat.then_some(target_port),
            node_port: match service {
                Service::NodePort(port) => Some(port),
                Service::ClusterIp => None,
            },
            src_ip_sticky,
            servers: vip.servers().count(),
            verbose: None,
        }
    }

    fn verbose(vip: &Vip, counted: Counted, look: &Look) -> Self {
        let server = |server: &crate::vip::Server| ServerView {
            address: server.address,
            buckets: vip.buckets(server.id),
            flows: look.of_server.get(&server.id).copied().unwrap_or(0),
            used: server.used,
        };
        let verbose = Verbose {
            existing_sessions: counted.existing,
            first_session_packets: counted.first,
            untracked_packets: counted.untracked,
            no_server_packets: counted.no_server,
            servers: vip.servers().map(server).collect(),
        };
        VipView { verbose: Some(verbose), ..VipView::new(vip) }
    }

    /// Writes protocol, class and ports, each behind `between`.
    fn rest(&self, f: &mut fmt::Formatter<'_>, between: &str) -> fmt::Result {
        if let Some((protocol, port)) = self.protocol.zip(self.port) {
            write!(f, "{between}protocol:{protocol} port:{port}")?;
        }
        if let Some(dscp) = self.dscp {
            write!(f, "{between}dscp:{dscp}")?;
        }
        if let Some((service, target)) = self.service.zip(self.target_port) {
            write!(f, "{between}type:{service} target_port:{target}")?;
        }
        if let Some(port) = self.node_port {
            write!(f, " node_port:{port}")?;
        }
        if self.src_ip_sticky {
            write!(f, "{between}src_ip_sticky")?;
        }
        Ok(())
    }
}

impl fmt::Display for VipView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {} [{}] {}", self.kind, self.index, self.prefix)?;
        let Some(verbose) = &self.verbose else {
            write!(f, " new_size:{} #as:{}", self.new_size, self.servers)?;
            self.rest(f, " ")?;
            return writeln!(f);
        };
        write!(f, "\n  new_size:{}", self.new_size)?;
        self.rest(f, "\n  ")?;
        writeln!(f, "\n  counters:")?;
        writeln!(f, "    packet from existing sessions: {}", verbose.existing_sessions)?;
        writeln!(f, "    first session packet: {}", verbose.first_session_packets)?;
        writeln!(f, "    untracked packet: {}", verbose.untracked_packets)?;
        writeln!(f, "    no server configured: {}", verbose.no_server_packets)?;
        writeln!(f, "  #as:{}", self.servers)?;
        for ServerView { address, buckets, flows, used } in &verbose.servers {
            let state = if *used { "used" } else { "removed" };
            writeln!(f, "    {address} {buckets} buckets   {flows} flows  {state}")?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct VipsView(Vec<VipView>);

impl fmt::Display for VipsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|vip| vip.fmt(f))
    }
}

fn show_vips(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (lb, is_verbose) = (lb(control)?, args.has("verbose"));
    let look = lb.look().map_err(|e| CliError::failed(e.to_string()))?;
    let view = |vip: &std::sync::Arc<Vip>| {
        if is_verbose { VipView::verbose(vip, lb.counted(vip.index), &look) } else { VipView::new(vip) }
    };
    Ok(Output::view(VipsView(lb.vips().iter().map(view).collect())))
}
