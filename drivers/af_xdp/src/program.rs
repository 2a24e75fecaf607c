//! The XDP program: which frames go to the router and which to the host.
//!
//! ```text
//! settings: take? --no--> host            own MAC: for the router? -----------> router
//!    | pinhole? --no--> router                      for another station? others, host -> host
//!    v
//! Ethernet, up to two tags -> ARP | IPv4 | IPv6 with extension headers -> keys on the stack -> judge:
//!    host's address?  to?  from?  port of a host's address? --yes--> host, else router
//! ```
//!
//! A frame is never dropped here: what cannot be read, because it is cut short or makes no sense, is the router's, which
//! counts it. Where there is no socket for a queue, the host has the frame (the fallback of `bpf_redirect_map`).

use crate::asm::Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use crate::asm::{Asm, AsmError, Helper, Insn, JumpCondition, Label, Op, Size};

/// The router takes frames.
pub(crate) const TAKE: u32 = 1;
/// There is a rule at all.
pub(crate) const ANY: u32 = 1 << 1;
/// The router has a MAC address of its own.
pub(crate) const OWN_MAC: u32 = 1 << 2;
/// Rule `others`.
pub(crate) const OTHERS: u32 = 1 << 3;
/// Rule `host`.
pub(crate) const HOST: u32 = 1 << 4;
/// Rule `arp`.
pub(crate) const ARP: u32 = 1 << 5;
/// Router advertisements are the host's.
pub(crate) const ADVERTISEMENTS: u32 = 1 << 6;
/// There are rules `to`.
pub(crate) const TO: u32 = 1 << 7;
/// There are rules `from`.
pub(crate) const FROM: u32 = 1 << 8;
/// There are rules with ports.
pub(crate) const PORTS: u32 = 1 << 9;
/// Found out on the way: it is ARP or neighbour discovery.
const IS_DISCOVERY: u32 = 1 << 16;
/// Found out on the way: it is for an address of the kernel's.
const IS_HOST: u32 = 1 << 17;
/// Found out on the way: it is a fragment, but not the first, and so has no ports.
const IS_FRAGMENT: u32 = 1 << 18;
/// Found out on the way: its port is known.
const HAS_PORT: u32 = 1 << 19;

/// Counters, by their place in the map.
pub(crate) const PASSED: u32 = 0;
/// Frames to the router.
pub(crate) const REDIRECTED: u32 = 1;
/// Frames of queues without a socket.
pub(crate) const NO_SOCKET: u32 = 2;
/// How many counters there are.
pub(crate) const COUNTERS: u32 = 3;

/// Value of a port that counts for every destination.
pub(crate) const ANYWHERE: u8 = 2;
/// Value of a port that counts for the kernel's addresses.
pub(crate) const HERE: u8 = 1;

/// Bytes of a key of the kernel's addresses: family and address.
pub(crate) const ADDRESS_KEY: usize = 20;
/// Bytes of a key of prefixes: length, family and address.
pub(crate) const PREFIX_KEY: usize = 24;
/// Bits of the family in front of an address, as prefixes count them.
pub(crate) const FAMILY_BITS: u32 = 32;

/// `XDP_PASS`.
pub(crate) const TO_HOST: u32 = 2;
/// `XDP_REDIRECT`.
pub(crate) const TO_ROUTER: u32 = 4;

/// Descriptors of the maps the program reads and counts in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Maps {
    /// One entry: flags, nothing, the router's MAC address, the kernel's.
    pub(crate) settings: i32,
    pub(crate) hosts: i32,
    pub(crate) to: i32,
    pub(crate) from: i32,
    pub(crate) ports: i32,
    pub(crate) sockets: i32,
    pub(crate) counters: i32,
}

// The stack. A key of the destination, that of the source behind it, a port and an index. The addresses of a prefix key
// without its length are the key of the kernel's addresses.
const DST: i16 = -24;
const SRC: i16 = -48;
const PORT: i16 = -56;
const INDEX: i16 = -64;

const SETTING_ROUTER_MAC: i16 = 8;
const SETTING_KERNEL_MAC: i16 = 16;

/// Bits of a 16-bit field as they lie in memory.
const fn net16(value: u16) -> i32 {
    value.to_be() as i32
}

struct Places {
    host: Label,
    router: Label,
    judge: Label,
}

/// The program over these maps.
pub(crate) fn program(maps: &Maps) -> Result<Vec<Insn>, AsmError> {
    let mut asm = Asm::default();
    let a = &mut asm;
    let to = Places { host: a.label(), router: a.label(), judge: a.label() };
    let (ip4, ip6) = (a.label(), a.label());
    settings(a, maps, &to);
    link_layer(a, &to, ip4, ip6);
    arp(a, &to);
    a.place(ip4);
    internet_4(a, &to);
    a.place(ip6);
    internet_6(a, &to);
    judge(a, maps, &to);
    verdicts(a, maps, &to);
    asm.finish()
}

/// `if R9 has bits goto label`
fn on(a: &mut Asm, bits: u32, label: Label) {
    a.jump_if(JumpCondition::AnyOf, R9, bits as i32, label);
}

fn set(a: &mut Asm, bits: u32) {
    a.op(Op::Or, R9, bits as i32);
}

/// Unless `len` bytes lie at `R7`, on to `otherwise`.
fn need(a: &mut Asm, len: i32, otherwise: Label) {
    a.mov(R1, R7);
    a.op(Op::Add, R1, len);
    a.jump_if(JumpCondition::Above, R1, R8, otherwise);
}

/// `R0 = map[R10 + key]`
fn lookup(a: &mut Asm, map: i32, key: i16) {
    a.map(R1, map);
    a.mov(R2, R10);
    a.op(Op::Add, R2, i32::from(key));
    a.call(Helper::MapLookup);
}

/// The settings: flags to R9, and at once what they decide.
fn settings(a: &mut Asm, maps: &Maps, to: &Places) {
    let l3 = a.label();
    a.mov(R6, R1);
    a.load(Size::U32, R7, R6, 0);
    a.load(Size::U32, R8, R6, 4);
    a.store(Size::U32, R10, INDEX, 0);
    lookup(a, maps.settings, INDEX);
    a.jump_if(JumpCondition::Equal, R0, 0, to.host);
    a.load(Size::U32, R9, R0, 0);
    let (taken, ruled) = (a.label(), a.label());
    on(a, TAKE, taken);
    a.jump(to.host);
    a.place(taken);
    on(a, ANY, ruled);
    a.jump(to.router);
    a.place(ruled);
    need(a, 14, to.router);
    // By MAC address, if the router has one.
    let own = a.label();
    on(a, OWN_MAC, own);
    a.jump(l3);
    a.place(own);
    a.load(Size::U32, R1, R7, 0);
    a.load(Size::U16, R2, R7, 4);
    a.op(Op::Shl, R2, 32);
    a.op(Op::Or, R1, R2);
    a.load(Size::U64, R2, R0, SETTING_ROUTER_MAC);
    a.jump_if(JumpCondition::Equal, R1, R2, to.router);
    a.load(Size::U8, R2, R7, 0);
    a.jump_if(JumpCondition::AnyOf, R2, 1, l3);
    on(a, OTHERS, to.host);
    let kernel = a.label();
    on(a, HOST, kernel);
    a.jump(l3);
    a.place(kernel);
    a.load(Size::U64, R2, R0, SETTING_KERNEL_MAC);
    a.jump_if(JumpCondition::Equal, R1, R2, to.host);
    a.place(l3);
}

/// From the Ethernet header, past up to two tags, to the network header at R7.
fn link_layer(a: &mut Asm, to: &Places, ip4: Label, ip6: Label) {
    let network = a.label();
    a.load(Size::U16, R3, R7, 12);
    a.op(Op::Add, R7, 14);
    for _ in 0..2 {
        let tagged = a.label();
        a.jump_if(JumpCondition::Equal, R3, net16(0x8100), tagged);
        a.jump_if(JumpCondition::Equal, R3, net16(0x88a8), tagged);
        a.jump(network);
        a.place(tagged);
        need(a, 4, to.router);
        a.load(Size::U16, R3, R7, 2);
        a.op(Op::Add, R7, 4);
    }
    a.place(network);
    a.jump_if(JumpCondition::Equal, R3, net16(0x0800), ip4);
    a.jump_if(JumpCondition::Equal, R3, net16(0x86dd), ip6);
    a.jump_if(JumpCondition::Not, R3, net16(0x0806), to.router);
}

/// A key from the IPv4 address at `R7 + offset`.
fn key_4(a: &mut Asm, key: i16, offset: i16) {
    a.load(Size::U32, R1, R7, offset);
    a.store(Size::U32, R10, key, FAMILY_BITS as i32 + 32);
    a.store(Size::U32, R10, key + 4, 4);
    a.store(Size::U32, R10, key + 8, R1);
    a.store(Size::U32, R10, key + 12, 0);
    a.store(Size::U64, R10, key + 16, 0);
}

/// A key from the IPv6 address at `R7 + offset`. Its halves lie on multiples of eight of the stack.
fn key_6(a: &mut Asm, key: i16, offset: i16) {
    a.load(Size::U64, R1, R7, offset);
    a.load(Size::U64, R2, R7, offset + 8);
    a.store(Size::U32, R10, key, FAMILY_BITS as i32 + 128);
    a.store(Size::U32, R10, key + 4, 6);
    a.store(Size::U64, R10, key + 8, R1);
    a.store(Size::U64, R10, key + 16, R2);
}

/// RFC 826: the target and the sender of a request or reply.
fn arp(a: &mut Asm, to: &Places) {
    need(a, 28, to.router);
    // Ethernet and IPv4, addresses of six and four bytes.
    a.load(Size::U16, R1, R7, 0);
    a.jump_if(JumpCondition::Not, R1, net16(1), to.router);
    a.load(Size::U16, R1, R7, 2);
    a.jump_if(JumpCondition::Not, R1, net16(0x0800), to.router);
    a.load(Size::U16, R1, R7, 4);
    a.jump_if(JumpCondition::Not, R1, net16(0x0604), to.router);
    key_4(a, SRC, 14);
    key_4(a, DST, 24);
    set(a, IS_DISCOVERY);
    a.jump(to.judge);
}

fn internet_4(a: &mut Asm, to: &Places) {
    need(a, 20, to.router);
    a.load(Size::U8, R3, R7, 0);
    a.mov(R1, R3);
    a.op(Op::Shr, R1, 4);
    a.jump_if(JumpCondition::Not, R1, 4, to.router);
    a.op(Op::And, R3, 15);
    a.jump_if(JumpCondition::Below, R3, 5, to.router);
    a.op(Op::Shl, R3, 2);
    key_4(a, SRC, 12);
    key_4(a, DST, 16);
    let ports = a.label();
    on(a, PORTS, ports);
    a.jump(to.judge);
    a.place(ports);
    a.load(Size::U16, R1, R7, 6);
    let (whole, icmp) = (a.label(), a.label());
    a.op(Op::And, R1, net16(0x1fff));
    a.jump_if(JumpCondition::Equal, R1, 0, whole);
    set(a, IS_FRAGMENT);
    a.jump(to.judge);
    a.place(whole);
    a.load(Size::U8, R4, R7, 9);
    a.op(Op::Add, R7, R3);
    a.jump_if(JumpCondition::Equal, R4, 1, icmp);
    port(a, to, 2);
    // RFC 792: an error about a packet of the host's, which is quoted behind eight bytes.
    a.place(icmp);
    need(a, 8 + 20, to.judge);
    a.load(Size::U8, R1, R7, 0);
    let error = a.label();
    for kind in [3, 11, 12] {
        a.jump_if(JumpCondition::Equal, R1, kind, error);
    }
    a.jump(to.judge);
    a.place(error);
    a.op(Op::Add, R7, 8);
    a.load(Size::U8, R3, R7, 0);
    a.op(Op::And, R3, 15);
    a.jump_if(JumpCondition::Below, R3, 5, to.judge);
    a.op(Op::Shl, R3, 2);
    a.load(Size::U8, R4, R7, 9);
    a.load(Size::U16, R1, R7, 6);
    a.op(Op::And, R1, net16(0x1fff));
    a.jump_if(JumpCondition::Not, R1, 0, to.judge);
    a.op(Op::Add, R7, R3);
    port(a, to, 0);
}

/// The port at `R7 + offset` of protocol R4, and on to the judge.
fn port(a: &mut Asm, to: &Places, offset: i16) {
    let known = a.label();
    a.jump_if(JumpCondition::Equal, R4, 6, known);
    a.jump_if(JumpCondition::Not, R4, 17, to.judge);
    a.place(known);
    need(a, 4, to.judge);
    a.load(Size::U16, R1, R7, offset);
    a.big_endian_16(R1);
    a.op(Op::Shl, R4, 16);
    a.op(Op::Or, R4, R1);
    a.store(Size::U32, R10, PORT, R4);
    set(a, HAS_PORT);
    a.jump(to.judge);
}

fn internet_6(a: &mut Asm, to: &Places) {
    need(a, 40, to.router);
    a.load(Size::U8, R1, R7, 0);
    a.op(Op::Shr, R1, 4);
    a.jump_if(JumpCondition::Not, R1, 6, to.router);
    key_6(a, SRC, 8);
    key_6(a, DST, 24);
    a.load(Size::U8, R4, R7, 6);
    a.op(Op::Add, R7, 40);
    extensions(a, to);
    let icmp = a.label();
    a.jump_if(JumpCondition::Equal, R4, 58, icmp);
    port(a, to, 2);
    a.place(icmp);
    need(a, 8, to.judge);
    a.load(Size::U8, R1, R7, 0);
    let (advertisement, solicitation, neighbor, error) = (a.label(), a.label(), a.label(), a.label());
    a.jump_if(JumpCondition::Equal, R1, 134, advertisement);
    a.jump_if(JumpCondition::Equal, R1, 135, solicitation);
    a.jump_if(JumpCondition::Equal, R1, 136, neighbor);
    a.jump_if(JumpCondition::Equal, R1, 0, to.judge);
    a.jump_if(JumpCondition::Below, R1, 5, error);
    a.jump(to.judge);
    a.place(advertisement);
    on(a, ADVERTISEMENTS, to.host);
    a.jump(to.judge);
    // RFC 4861, 4.3: the target stands behind eight bytes, and the destination is a group.
    a.place(solicitation);
    need(a, 24, to.judge);
    key_6(a, DST, 8);
    a.place(neighbor);
    set(a, IS_DISCOVERY);
    a.jump(to.judge);
    // RFC 4443, 2.4 (c): as much as fits of the packet it is about.
    a.place(error);
    need(a, 8 + 40, to.judge);
    a.load(Size::U8, R4, R7, 8 + 6);
    a.op(Op::Add, R7, 48);
    port(a, to, 0);
}

/// RFC 8200, 4: past extension headers, to the transport header at R7 and its protocol in R4.
fn extensions(a: &mut Asm, to: &Places) {
    let transport = a.label();
    for _ in 0..8 {
        let (options, fragment, authentication, next) = (a.label(), a.label(), a.label(), a.label());
        for kind in [0, 43, 60] {
            a.jump_if(JumpCondition::Equal, R4, kind, options);
        }
        a.jump_if(JumpCondition::Equal, R4, 44, fragment);
        a.jump_if(JumpCondition::Equal, R4, 51, authentication);
        a.jump(transport);
        a.place(options);
        need(a, 8, to.judge);
        a.load(Size::U8, R4, R7, 0);
        a.load(Size::U8, R3, R7, 1);
        a.op(Op::Add, R3, 1);
        a.op(Op::Shl, R3, 3);
        a.op(Op::Add, R7, R3);
        a.jump(next);
        // RFC 4302, 2.2: in words, and two fewer.
        a.place(authentication);
        need(a, 8, to.judge);
        a.load(Size::U8, R4, R7, 0);
        a.load(Size::U8, R3, R7, 1);
        a.op(Op::Add, R3, 2);
        a.op(Op::Shl, R3, 2);
        a.op(Op::Add, R7, R3);
        a.jump(next);
        a.place(fragment);
        need(a, 8, to.judge);
        a.load(Size::U8, R4, R7, 0);
        a.load(Size::U16, R1, R7, 2);
        a.op(Op::Add, R7, 8);
        a.op(Op::And, R1, net16(0xfff8));
        a.jump_if(JumpCondition::Equal, R1, 0, next);
        set(a, IS_FRAGMENT);
        a.jump(to.judge);
        a.place(next);
    }
    a.place(transport);
}

/// The rules, over the keys on the stack.
fn judge(a: &mut Asm, maps: &Maps, to: &Places) {
    let (prefixes, not_host, from, ports) = (a.label(), a.label(), a.label(), a.label());
    a.place(to.judge);
    let ask = a.label();
    on(a, HOST | ARP | PORTS, ask);
    a.jump(prefixes);
    a.place(ask);
    lookup(a, maps.hosts, DST + 4);
    a.jump_if(JumpCondition::Equal, R0, 0, prefixes);
    on(a, HOST, to.host);
    set(a, IS_HOST);
    let discovery = a.label();
    on(a, ARP, discovery);
    a.jump(prefixes);
    a.place(discovery);
    on(a, IS_DISCOVERY, to.host);
    a.place(prefixes);
    let ask = a.label();
    on(a, TO, ask);
    a.jump(from);
    a.place(ask);
    lookup(a, maps.to, DST);
    a.jump_if(JumpCondition::Not, R0, 0, to.host);
    a.place(from);
    let ask = a.label();
    on(a, FROM, ask);
    a.jump(ports);
    a.place(ask);
    lookup(a, maps.from, SRC);
    a.jump_if(JumpCondition::Not, R0, 0, to.host);
    a.place(ports);
    let fragment = a.label();
    on(a, IS_FRAGMENT, fragment);
    let ask = a.label();
    on(a, HAS_PORT, ask);
    a.jump(to.router);
    a.place(ask);
    lookup(a, maps.ports, PORT);
    a.jump_if(JumpCondition::Equal, R0, 0, to.router);
    a.load(Size::U8, R1, R0, 0);
    a.jump_if(JumpCondition::Equal, R1, i32::from(ANYWHERE), to.host);
    // A fragment of what may have been for a port: with the first one, which has it.
    a.place(not_host);
    a.place(fragment);
    let ruled = a.label();
    on(a, PORTS, ruled);
    a.jump(to.router);
    a.place(ruled);
    on(a, IS_HOST, to.host);
    a.jump(to.router);
}

/// Adds one to the counter whose index is on the stack.
fn count(a: &mut Asm, maps: &Maps) {
    let lost = a.label();
    lookup(a, maps.counters, INDEX);
    a.jump_if(JumpCondition::Equal, R0, 0, lost);
    a.load(Size::U64, R1, R0, 0);
    a.op(Op::Add, R1, 1);
    a.store(Size::U64, R0, 0, R1);
    a.place(lost);
}

fn verdicts(a: &mut Asm, maps: &Maps, to: &Places) {
    a.place(to.router);
    a.map(R1, maps.sockets);
    a.load(Size::U32, R2, R6, 16);
    a.mov(R3, TO_HOST as i32);
    a.call(Helper::RedirectMap);
    a.mov(R7, R0);
    let (there, counted) = (a.label(), a.label());
    a.store(Size::U32, R10, INDEX, REDIRECTED as i32);
    a.jump_if(JumpCondition::Equal, R7, TO_ROUTER as i32, there);
    a.store(Size::U32, R10, INDEX, NO_SOCKET as i32);
    a.place(there);
    a.jump(counted);
    a.place(to.host);
    a.mov(R7, TO_HOST as i32);
    a.store(Size::U32, R10, INDEX, PASSED as i32);
    a.place(counted);
    count(a, maps);
    a.mov(R0, R7);
    a.exit();
}
