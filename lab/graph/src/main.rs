//! Clocks and instructions per packet of the graph paths (work in progress).
use std::net::Ipv4Addr;
use std::rc::Rc;
use shoal_adj::*;
use shoal_buffer::*;
use shoal_graph::*;
use shoal_graph::process::Processes;
use shoal_interface::*;
use shoal_module::Control;
use shoal_wire::{MacAddress, Packet as Build};

struct Sink; 
impl FrameNode for Sink { const NAME: &'static str = "sink"; type Next = NoNext; type Error = NoError;
    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) { cx.free_frame(frame); } }
struct Dev; impl Device for Dev { fn class(&self) -> &'static str { "bench" } }

struct Source { template: Vec<u8>, dests: u32, burst: usize, seed: u32, rx: SwIfIndex, table: IfTable }
impl RxQueue for Source {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        let mut frame = cx.blank();
        let n = cx.cache().alloc(&mut frame, self.burst);
        let mem = cx.memory();
        for i in 0..n {
            let mut p = frame.packet(mem, i).unwrap();
            p.set_data(&self.template).unwrap();
            p.meta_mut().rx = self.rx;
            if self.dests > 1 {
                self.seed = self.seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let pick = ((u64::from(self.seed >> 8) * u64::from(self.dests)) >> 24) as u32;
                let d = p.data_mut();
                let dst = 0xc613_0000u32.wrapping_add(pick << 8) | 2;
                d[30..34].copy_from_slice(&dst.to_be_bytes());
                let ip: &mut [u8; 20] = (&mut d[14..34]).try_into().unwrap();
                ip[10] = 0; ip[11] = 0;
                let mut s: u32 = (0..10).map(|k| u32::from(u16::from_be_bytes([ip[2*k], ip[2*k+1]]))).sum();
                s = (s & 0xffff) + (s >> 16); s = (s & 0xffff) + (s >> 16);
                ip[10..12].copy_from_slice(&(!(s as u16)).to_be_bytes());
            }
        }
        cx.counters().rx.add(cx.thread(), self.rx.0 as usize, n as u64, n as u64 * 60);
        let next = self.table.get(self.rx, cx.guard()).rx_next(false);
        cx.forward(next, frame);
        n
    }
}

fn main() {
    let want: Vec<String> = std::env::args().skip(1).collect();
    let dests: u32 = want.get(1).map_or(1, |s| s.parse().unwrap());
    let burst: usize = want.get(2).map_or(256, |s| s.parse().unwrap());
    let superpath = want.first().is_none_or(|s| s != "nodes");
    let frames: usize = want.get(3).map_or(20_000, |s| s.parse().unwrap());
    let control = Rc::new(Control::new());
    let graph = control.put_rc(Graph::new(GraphConfig::default()).unwrap());
    control.put(Processes::new(graph.clock().clone()));
    eprintln!("buffers: {:?}", graph.pool().stats());
    for n in ["arp-input", "ip4-arp", "ip4-glean", "ip4-icmp-error", "ip4-icmp-input"] { graph.add_frame_named(n, Sink).unwrap(); }
    let modules = [&shoal_interface::MODULE, &shoal_adj::MODULE, &shoal_fib::MODULE, &shoal_ethernet::MODULE, &shoal_ip4::MODULE];
    shoal_module::init_all(&control, &modules).unwrap();
    shoal_module::start_all(&control, &modules).unwrap();
    let ifs = control.get::<Interfaces>().unwrap();
    let mac = MacAddress([2, 0xfe, 0, 0, 0, 1]);
    let make = |name: &str| {
        let c = Create { name, mac, mtu: 9000, flags: IfFlags::ETHERNET.set(IfFlags::LINK_UP, true), rx_next: "ethernet-input", device: Rc::new(Dev) };
        let i = ifs.create(&c, Sink).unwrap();
        ifs.set_admin(i, true).unwrap();
        ifs.set_ip4(i, true, 0).unwrap();
        i
    };
    let (a, b) = (make("pg0"), make("pg1"));
    ifs.enable_superpath(superpath).unwrap();
    let adjs = control.get::<Adjacencies>().unwrap();
    let edge = adjs.edge_to(b).unwrap();
    adjs.set_describe(Rc::new(move |i, nh: Ipv4Addr| { let mut adj = Adj::on(AdjKind::Rewrite, i, 9000).with_rewrite(&[2,0,0,0,0,2, 2,0xfe,0,0,0,2, 8,0], edge); adj.next_hop = nh.to_bits(); adj }));
    let fib = control.get::<shoal_fib::Fib>().unwrap();
    let path = shoal_fib::Path::next_hop(Ipv4Addr::new(10, 0, 1, 2), b);
    for k in 0..dests { fib.add(shoal_fib::FibIndex(0), format!("{}/24", Ipv4Addr::from_bits(0xc613_0000u32.wrapping_add(k << 8))).parse().unwrap(), shoal_fib::Source::Cli, &[path]).unwrap(); }
    let template = Build::ethernet(MacAddress([2, 0, 0, 0, 0, 9]), mac).ip4(Ipv4Addr::new(198, 18, 0, 2), Ipv4Addr::new(198, 19, 0, 2)).udp(1, 2).payload_len(18).build();
    assert_eq!(template.len(), 60);
    let node = graph.add_input::<NoNext, NoError>("pg-input").unwrap();
    let source = Source { template, dests, burst, seed: 1, rx: a, table: ifs.table() };
    ifs.add_queue(a, Queue { number: 0, node, queue: Box::new(source), thread: Some(0) }).unwrap();
    let c = graph.graph_counters();
    let nodes = graph.nodes();
    let mut best = vec![f64::MAX; nodes.len()];
    let mut best_total = f64::MAX;
    for _ in 0..15 {
        let before: Vec<(u64, u64, u64)> = nodes.iter().map(|n| { let i = n.index.number() as usize; (c.calls.sum(i), c.vectors.sum(i), c.clocks.sum(i)) }).collect();
        let mut main = graph.main();
        for _ in 0..frames / 15 { main.round(); }
        main.offline();
        drop(main);
        let mut total = 0.0;
        for (k, n) in nodes.iter().enumerate() {
            let i = n.index.number() as usize;
            let v = c.vectors.sum(i) - before[k].1;
            if v == 0 { continue; }
            let per = (c.clocks.sum(i) - before[k].2) as f64 / v as f64;
            best[k] = best[k].min(per);
            if n.name != "pg-input" { total += per; }
        }
        best_total = best_total.min(total);
    }
    for (k, n) in nodes.iter().enumerate() { if best[k] < f64::MAX { println!("{:20} {:6.1}", n.name, best[k]); } }
    println!("sum {best_total:.1}  tx {:?} err {:?}", c.tx.sum(b.0 as usize), c.drops.sum(a.0 as usize));
}
