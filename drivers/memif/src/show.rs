//! The answer of `show memif`, in VPP's layout.

use std::fmt;

use serde::Serialize;

use crate::{Desc, MemifInfo, RingInfo, Role, SocketInfo};

#[derive(Serialize)]
pub(crate) struct Shown {
    sockets: Vec<SocketRow>,
    interfaces: Vec<Row>,
}

#[derive(Serialize)]
struct SocketRow {
    id: u32,
    listener: bool,
    filename: String,
    peers: usize,
    refused: u64,
    last_refusal: String,
}

#[derive(Serialize)]
struct Row {
    interface: String,
    sw_if_index: u32,
    socket_id: u32,
    id: u32,
    role: &'static str,
    mode: &'static str,
    admin_up: bool,
    connecting: bool,
    connected: bool,
    /// Why it is not connected.
    reason: Option<String>,
    connections: u64,
    remote_name: String,
    remote_interface: String,
    listener_fd: Option<i32>,
    conn_fd: Option<i32>,
    ring_size: u32,
    buffer_size: u16,
    regions: Vec<usize>,
    rings: Vec<RingRow>,
    interrupts: u64,
    interrupts_sent: u64,
    bad_descriptors: u64,
}

#[derive(Serialize)]
struct RingRow {
    direction: &'static str,
    ring: u16,
    region: u16,
    offset: u32,
    size: u32,
    interrupt_fd: i32,
    head: u16,
    tail: u16,
    flags: u16,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    descriptors: Vec<DescRow>,
}

#[derive(Serialize)]
struct DescRow {
    flags: u16,
    region: u16,
    length: u32,
    offset: u32,
}

impl Shown {
    pub(crate) fn new(sockets: Vec<SocketInfo>, memifs: Vec<MemifInfo>) -> Self {
        let socket = |s: SocketInfo| SocketRow {
            id: s.id,
            listener: s.listener,
            filename: s.filename,
            peers: s.peers,
            refused: s.refused,
            last_refusal: s.refusal,
        };
        Shown {
            sockets: sockets.into_iter().map(socket).collect(),
            interfaces: memifs.into_iter().map(Row::from).collect(),
        }
    }
}

impl From<MemifInfo> for Row {
    fn from(info: MemifInfo) -> Self {
        Row {
            interface: info.name,
            sw_if_index: info.index.0,
            socket_id: info.config.socket,
            id: info.config.id,
            role: info.config.role.name(),
            mode: info.config.mode.name(),
            admin_up: info.admin_up,
            connecting: info.connecting,
            connected: info.connected,
            reason: (!info.connected && !info.why.is_empty()).then_some(info.why),
            connections: info.connections,
            remote_name: info.remote,
            remote_interface: info.remote_interface,
            listener_fd: info.listener_fd,
            conn_fd: info.conn_fd,
            ring_size: info.config.ring_size,
            buffer_size: info.config.buffer_size,
            regions: info.regions,
            rings: info.rings.into_iter().map(RingRow::from).collect(),
            interrupts: info.interrupts,
            interrupts_sent: info.kicks,
            bad_descriptors: info.bad,
        }
    }
}

impl From<RingInfo> for RingRow {
    fn from(ring: RingInfo) -> Self {
        let row = |d: Desc| DescRow { flags: d.flags, region: d.region, length: d.length, offset: d.offset };
        RingRow {
            direction: if ring.s2m { "slave-to-master" } else { "master-to-slave" },
            ring: ring.index,
            region: ring.place.region,
            offset: ring.place.offset,
            size: 1 << ring.place.log2,
            interrupt_fd: ring.event,
            head: ring.head,
            tail: ring.tail,
            flags: ring.flags,
            descriptors: ring.descs.into_iter().map(row).collect(),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.sockets.is_empty() {
            writeln!(f, "sockets\n  {:<3} {:<11} filename", "id", "listener")?;
            for socket in &self.sockets {
                let listener = if socket.listener { "yes" } else { "no" };
                writeln!(f, "  {:<3} {listener:<11} {}", socket.id, socket.filename)?;
                if socket.refused > 0 {
                    writeln!(
                        f,
                        "      refused peers {}, the last one: {}",
                        socket.refused, socket.last_refusal
                    )?;
                }
            }
            writeln!(f)?;
        }
        self.interfaces.iter().try_for_each(|row| row.fmt(f))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "interface {}", self.interface)?;
        if self.connected {
            writeln!(f, "  remote-name \"{}\"", self.remote_name)?;
            writeln!(f, "  remote-interface \"{}\"", self.remote_interface)?;
        }
        writeln!(f, "  socket-id {} id {} mode {}", self.socket_id, self.id, self.mode)?;
        let flags = [
            (self.admin_up, " admin-up"),
            (self.role == Role::Slave.name(), " slave"),
            (self.connecting, " connecting"),
            (self.connected, " connected"),
        ];
        f.write_str("  flags")?;
        flags.iter().filter(|(on, _)| *on).try_for_each(|(_, word)| f.write_str(word))?;
        writeln!(f)?;
        if let Some(reason) = &self.reason {
            writeln!(f, "  not connected: {reason}")?;
        }
        let fd = |fd: Option<i32>| fd.unwrap_or(-1);
        writeln!(f, "  listener-fd {} conn-fd {}", fd(self.listener_fd), fd(self.conn_fd))?;
        let count = |direction| self.rings.iter().filter(|r| r.direction == direction).count();
        writeln!(
            f,
            "  num-s2m-rings {} num-m2s-rings {} buffer-size {} num-regions {}",
            count("slave-to-master"),
            count("master-to-slave"),
            self.buffer_size,
            self.regions.len()
        )?;
        writeln!(
            f,
            "  connections {} interrupts received {} sent {} bad descriptors {}",
            self.connections, self.interrupts, self.interrupts_sent, self.bad_descriptors
        )?;
        for (number, size) in self.regions.iter().enumerate() {
            writeln!(f, "  region {number} size {size}")?;
        }
        self.rings.iter().try_for_each(|ring| ring.fmt(f))
    }
}

impl fmt::Display for RingRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "    {} ring {}:", self.direction, self.ring)?;
        let RingRow { region, offset, size, interrupt_fd, head, tail, flags, .. } = self;
        writeln!(f, "      region {region} offset {offset} ring-size {size} int-fd {interrupt_fd}")?;
        writeln!(f, "      head {head} tail {tail} flags 0x{flags:04x}")?;
        if !self.descriptors.is_empty() {
            writeln!(
                f,
                "      descriptor table:\n      {:>5} {:>6} {:>6} {:>7} {:>10}",
                "slot", "flags", "region", "length", "offset"
            )?;
        }
        for (slot, d) in self.descriptors.iter().enumerate() {
            writeln!(
                f,
                "      {slot:>5} 0x{:04x} {:>6} {:>7} {:>10}",
                d.flags, d.region, d.length, d.offset
            )?;
        }
        Ok(())
    }
}
