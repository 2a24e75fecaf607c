//! How fast the binary API of a running router is: one client adds routes without waiting for answers, dumps them and
//! removes them, while another asks all the time whether anybody is there.
//!
//! ```text
//! cargo run --release -p shoal-api --example pace -- /run/shoal/api.sock 1000000
//! ```
#![allow(clippy::indexing_slicing, reason = "a message that is too short ends the program, as it should")]

use std::collections::HashMap;
use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

struct Client {
    stream: UnixStream,
    index: [u8; 4],
    numbers: HashMap<String, u16>,
    buffer: Vec<u8>,
    at: usize,
}

fn frame(to: &mut Vec<u8>, body: &[u8]) {
    to.extend([0; 8]);
    to.extend((body.len() as u32).to_be_bytes());
    to.extend([0; 4]);
    to.extend(body);
}

impl Client {
    fn connect(path: &str) -> Result<Self> {
        let stream = UnixStream::connect(path)?;
        let mut client = Client { stream, index: [0; 4], numbers: HashMap::new(), buffer: Vec::new(), at: 0 };
        let mut body = vec![0, 15, 0, 0, 0, 1];
        body.extend(b"pace");
        body.resize(70, 0);
        let mut first = Vec::new();
        frame(&mut first, &body);
        client.stream.write_all(&first)?;
        let reply = client.next()?;
        client.index.copy_from_slice(&reply[14..18]);
        for entry in reply[20..].chunks_exact(66) {
            let name = String::from_utf8_lossy(&entry[2..]).trim_end_matches('\0').to_owned();
            let name = name.rsplit_once('_').map(|(name, _)| name.to_owned()).unwrap_or(name);
            client.numbers.insert(name, u16::from_be_bytes([entry[0], entry[1]]));
        }
        Ok(client)
    }

    fn number(&self, name: &str) -> Result<u16> {
        self.numbers.get(name).copied().ok_or_else(|| format!("the router has no {name}").into())
    }

    fn request(&self, number: u16, context: u32, fields: &[u8]) -> Vec<u8> {
        [&number.to_be_bytes()[..], &self.index, &context.to_be_bytes(), fields].concat()
    }

    /// The next message.
    fn next(&mut self) -> Result<Vec<u8>> {
        loop {
            let rest = &self.buffer[self.at..];
            if rest.len() >= 16 {
                let length = u32::from_be_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
                if rest.len() >= 16 + length {
                    let body = rest[16..16 + length].to_vec();
                    self.at += 16 + length;
                    return Ok(body);
                }
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            let mut chunk = vec![0; 256 << 10];
            match self.stream.read(&mut chunk)? {
                0 => return Err("the router hung up".into()),
                n => self.buffer.extend(&chunk[..n]),
            }
        }
    }

    fn one(&mut self, number: u16, context: u32, fields: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        frame(&mut bytes, &self.request(number, context, fields));
        self.stream.write_all(&bytes)?;
        self.next()
    }
}

/// The fields of `ip_route_add_del`: the n-th /32 or /128, dropped.
fn route(is_add: bool, is_ip6: bool, n: u32) -> Vec<u8> {
    let mut to = vec![u8::from(is_add), 0, 0, 0, 0, 0, 0, 0, 0, 0, u8::from(is_ip6)];
    if is_ip6 {
        to.extend([0x20, 1, 0xd, 0xb8]);
        to.extend(n.to_be_bytes());
        to.extend([0; 8]);
        to.push(64);
    } else {
        to.extend((0x0b00_0000 + (n << 4)).to_be_bytes());
        to.extend([0; 12]);
        to.push(28);
    }
    // One path: no interface, type drop, weight 1.
    to.push(1);
    to.extend([0xff; 4]);
    to.extend([0; 8]);
    to.extend([1, 0]);
    to.extend(2u32.to_be_bytes());
    to.extend([0; 4]);
    to.extend(u32::from(is_ip6).to_be_bytes());
    to.resize(to.len() + 28 + 1 + 16 * 7, 0);
    to
}

/// Sends requests without waiting, and counts the answers that say that it was done; a second.
fn pipeline(path: &str, name: &str, count: u32, fields: impl Fn(u32) -> Vec<u8>) -> Result<f64> {
    let mut client = Client::connect(path)?;
    let number = client.number(name)?;
    let mut all = Vec::new();
    for n in 0..count {
        frame(&mut all, &client.request(number, n + 1, &fields(n)));
    }
    let mut writer = client.stream.try_clone()?;
    let begun = Instant::now();
    let sending = std::thread::spawn(move || writer.write_all(&all));
    for n in 0..count {
        let reply = client.next()?;
        let retval = i32::from_be_bytes([reply[6], reply[7], reply[8], reply[9]]);
        if retval != 0 || reply[2..6] != (n + 1).to_be_bytes() {
            return Err(format!("answer {n} of {name}: {retval}").into());
        }
    }
    let rate = f64::from(count) / begun.elapsed().as_secs_f64();
    sending.join().map_err(|_| "sending failed")??;
    Ok(rate)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "/run/shoal/api.sock".into());
    let count: u32 = arguments.next().map_or(Ok(100_000), |n| n.parse())?;
    let stop = Arc::new(AtomicBool::new(false));
    // Microseconds, since somebody looked.
    let slowest = Arc::new(AtomicU64::new(0));
    let pinging = std::thread::spawn({
        let (path, stop, slowest) = (path.clone(), Arc::clone(&stop), Arc::clone(&slowest));
        move || -> Result<u32> {
            let mut client = Client::connect(&path)?;
            let ping = client.number("control_ping")?;
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                let begun = Instant::now();
                client.one(ping, 1, &[])?;
                slowest.fetch_max(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
                count += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(count)
        }
    });
    let pings = pipeline(&path, "control_ping", count, |_| Vec::new())?;
    let tell = |what: &str, rate: f64| {
        let other = slowest.swap(0, Ordering::Relaxed) as f64 / 1e3;
        println!("{what:<27} {rate:>10.0} a second, another client's slowest ping {other:.1} ms");
    };
    tell("control_ping", pings);
    for is_ip6 in [false, true] {
        let family = if is_ip6 { "IPv6" } else { "IPv4" };
        let added = pipeline(&path, "ip_route_add_del", count, |n| route(true, is_ip6, n))?;
        tell(&format!("{family} routes added"), added);
        let mut client = Client::connect(&path)?;
        let dump = client.number("ip_route_dump")?;
        let mut table = vec![0, 0, 0, 0, u8::from(is_ip6)];
        table.resize(5 + 64, 0);
        let mut bytes = Vec::new();
        frame(&mut bytes, &client.request(dump, 7, &table));
        frame(&mut bytes, &client.request(client.number("control_ping")?, 8, &[]));
        let begun = Instant::now();
        client.stream.write_all(&bytes)?;
        let mut routes = 0u32;
        while client.next()?[2..6] != 8u32.to_be_bytes() {
            routes += 1;
        }
        let rate = f64::from(routes) / begun.elapsed().as_secs_f64();
        tell(&format!("{routes} {family} routes dumped"), rate);
        let removed = pipeline(&path, "ip_route_add_del", count, |n| route(false, is_ip6, n))?;
        tell(&format!("{family} routes removed"), removed);
    }
    stop.store(true, Ordering::Relaxed);
    let count = pinging.join().map_err(|_| "the other client failed")??;
    println!("the other client's pings    {count:>10}");
    Ok(())
}
