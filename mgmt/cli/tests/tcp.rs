//! The TCP port: the same server as on the socket, for unknown clients.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::sample;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use shoal_cli::server::{Address, ListenError, Settings, Task, listen};

const IS_VPPCTL: &[u8] = b"\xff\xfa\x18\x00vppctl\xff\xf0";
const GREETING_END: &[u8] = &[255, 250, 31, 1, 255, 240];

/// A server on a thread of its own, for the life of the test process.
fn serve(change: impl FnOnce(&mut Settings) + Send + 'static) -> SocketAddr {
    let (ready, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut settings = Settings::at(Address::Tcp("127.0.0.1:0".parse().unwrap()));
        settings.write_deadline = Duration::from_millis(300);
        change(&mut settings);
        let executor = Rc::new(async_executor::LocalExecutor::new());
        let listener = listen(settings).unwrap();
        ready.send(listener.tcp_address().unwrap()).unwrap();
        let spawner = Rc::clone(&executor);
        let spawn = move |task: Task| spawner.spawn(task).detach();
        let server = listener.serve(Rc::new(sample::cli()), sample::control(), spawn);
        futures_lite::future::block_on(executor.run(server));
    });
    wait.recv_timeout(Duration::from_secs(10)).unwrap()
}

fn connect(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Reads up to and including a byte sequence.
fn read_until(stream: &mut TcpStream, end: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut byte = [0];
    while !all.ends_with(end) {
        match stream.read(&mut byte) {
            Ok(1) => all.push(byte[0]),
            other => panic!("{other:?} after {:?}", String::from_utf8_lossy(&all)),
        }
    }
    all
}

/// Reads until the server hangs up. A connection that is reset has ended, too.
fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return all,
            Ok(n) => all.extend_from_slice(&chunk[..n]),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return all,
            Err(e) => panic!("the server does not hang up: {e}"),
        }
    }
}

/// Everybody is served as long as this is.
fn still_works(server: SocketAddr) {
    let mut client = connect(server);
    read_until(&mut client, GREETING_END);
    client.write_all(IS_VPPCTL).unwrap();
    client.write_all(b"show version\n").unwrap();
    assert_eq!(read_until(&mut client, b"\0"), b"shoal v1.2\n\0");
}

#[test]
fn telnet_gets_a_prompt_and_programs_get_a_nul() {
    let server = serve(|_| {});
    let mut telnet = connect(server);
    read_until(&mut telnet, b"shoal# ");
    telnet.write_all(b"show version\r\n").unwrap();
    let answer = String::from_utf8_lossy(&read_until(&mut telnet, b"shoal# ")).into_owned();
    assert!(answer.contains("shoal v1.2\r\n"), "{answer}");
    telnet.write_all(b"quit\r\n").unwrap();
    assert!(read_to_end(&mut telnet).is_empty());
    still_works(server);
}

#[test]
fn a_client_that_speaks_http_is_hung_up_on_and_none_of_its_lines_is_run() {
    let server = serve(|_| {});
    for request in [
        "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nshow version\r\n",
        "\r\nGET /?x=1 HTTP/1.1\r\n\r\nshow version\r\n",
    ] {
        let mut browser = connect(server);
        // A write may find that the server has hung up.
        let _ = browser.write_all(request.as_bytes());
        let answer = String::from_utf8_lossy(&read_to_end(&mut browser)).into_owned();
        assert!(!answer.contains("v1.2"), "{answer}");
    }
    still_works(server);
}

#[test]
fn rubbish_an_endless_line_and_silence_harm_no_client() {
    let server = serve(|_| {});
    let mut rubbish = connect(server);
    let bytes: Vec<u8> = (0..64u32 << 10).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let _ = rubbish.write_all(&bytes);
    let mut endless = connect(server);
    let line = vec![b'x'; 64 << 10];
    let mut sent = 0;
    while sent < 64 << 20 && endless.write_all(&line).is_ok() {
        sent += line.len();
    }
    assert!(sent < 64 << 20, "a line without end was taken");
    let silent = connect(server);
    still_works(server);
    drop((rubbish, silent));
}

#[test]
fn one_client_too_many_is_told_so() {
    let server = serve(|settings| settings.max_sessions = 2);
    let mut seated: Vec<TcpStream> = (0..2).map(|_| connect(server)).collect();
    for client in &mut seated {
        read_until(client, GREETING_END);
    }
    let refusal = read_to_end(&mut connect(server));
    assert!(String::from_utf8_lossy(&refusal).contains("all 2 sessions"), "{refusal:?}");
    drop(seated);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = listen(Settings::at(Address::Tcp(address))).map(|_| ()).unwrap_err();
    assert!(matches!(error, ListenError::Port(..)));
    assert!(error.to_string().starts_with(&address.to_string()), "{error}");
}
