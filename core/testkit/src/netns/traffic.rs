//! Traffic between two namespaces: pings that count, and TCP whose every byte is checked.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Namespace;

/// Longest wait of one end for the other.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends echo requests and waits for each answer: on a busy machine one comes late, which `ping` counts as lost at its end.
const PATIENT_PING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/netns/patient_ping.py");

/// Whether so many pings, 10 ms apart, are all answered.
pub fn pings(from: &Namespace, count: u32, to: &str) -> bool {
    // A few are those that a test sends until one gets through.
    let wait = if count > 3 { "10" } else { "1" };
    pings_with(from, &["-i", "0.01", "-W", wait, "-c", &count.to_string(), to])
}

/// Whether pings with these options, those of `patient_ping.py`, are all answered.
pub fn pings_with(from: &Namespace, options: &[&str]) -> bool {
    let answer = from.run(&[&["python3", PATIENT_PING, "-q"], options].concat());
    println!("{}", answer.as_ref().unwrap_or_else(|e| e));
    answer.is_ok_and(|text| text.contains(" 0% packet loss"))
}

/// Pings 1 ms apart while other things happen; what `patient_ping.py` says in the end, as `ping` does.
pub fn pings_meanwhile(from: &Namespace, count: u32, to: &str) -> JoinHandle<String> {
    let (ns, count, to) = (from.name().to_owned(), count.to_string(), to.to_owned());
    std::thread::spawn(move || {
        let ping = ["netns", "exec", &ns, "python3", PATIENT_PING, "-q", "-i", "0.001", "-c", &count, &to];
        let out = Command::new("ip").args(ping).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    })
}

/// Listens, when the port is free: a child of this process that has not started its program yet may have a copy of the
/// socket of an earlier call.
fn listen(at: &str) -> TcpListener {
    let until = Instant::now() + PATIENCE;
    loop {
        match TcpListener::bind(at) {
            Err(e) if e.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(2));
            }
            bound => return bound.unwrap(),
        }
    }
}

/// Megabits a second of one TCP connection from `a` to `b`, which has this address and port; default offloads. Every byte
/// is checked.
pub fn tcp(a: &Namespace, b: &Namespace, at: &'static str, bytes: usize) -> f64 {
    let (ready, bound) = std::sync::mpsc::channel();
    let server = b.spawn(move || {
        let listener = listen(at);
        ready.send(()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut buffer, mut at) = (vec![0; 1 << 16], 0);
        let pattern: Vec<u8> = (0..buffer.len() + 251).map(|i| (i % 251) as u8).collect();
        loop {
            let n = stream.read(&mut buffer).unwrap();
            if n == 0 {
                return at;
            }
            let expected = &pattern[at % 251..][..n];
            assert!(buffer[..n] == *expected, "another byte among those from {at} on, {n} of them");
            at += n;
        }
    });
    bound.recv_timeout(PATIENCE).unwrap();
    let start = Instant::now();
    a.inside(move || {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let chunk: Vec<u8> = (0..251 * 261).map(|i| (i % 251) as u8).collect();
        let mut sent = 0;
        while sent < bytes {
            let n = chunk.len().min(bytes - sent);
            stream.write_all(&chunk[..n]).unwrap();
            sent += n;
        }
    });
    assert_eq!(server.join().unwrap(), bytes);
    bytes as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e6
}
