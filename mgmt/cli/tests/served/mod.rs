//! A command line of sample commands on a socket, and its clients.
#![allow(dead_code)] // each test file uses its part

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_cli::server::{Settings, Task, listen};
use tempfile::TempDir;

use crate::sample;

/// A server on a thread of its own, for the life of the test process.
pub struct Served {
    pub path: PathBuf,
    _dir: TempDir,
}

pub fn serve(change: impl FnOnce(&mut Settings) + Send + 'static) -> Served {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cli.sock");
    let mut settings = Settings::new(&path);
    settings.write_deadline = Duration::from_millis(300);
    change(&mut settings);
    let (ready, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let executor = Rc::new(async_executor::LocalExecutor::new());
        let listener = listen(settings).unwrap();
        ready.send(()).unwrap();
        let spawner = Rc::clone(&executor);
        let spawn = move |task: Task| spawner.spawn(task).detach();
        let server = listener.serve(Rc::new(sample::cli()), sample::control(), spawn);
        futures_lite::future::block_on(executor.run(server));
    });
    wait.recv_timeout(Duration::from_secs(10)).unwrap();
    Served { path, _dir: dir }
}

impl Served {
    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    pub fn json(&self) -> Json {
        let mut stream = self.connect();
        stream.write_all(b"{\"shoal\":1}\n").unwrap();
        let mut reader = BufReader::new(stream);
        let mut skipped = Vec::new();
        reader.read_until(b'{', &mut skipped).unwrap();
        let mut hello = String::from("{");
        reader.read_line(&mut hello).unwrap();
        let hello: Value = serde_json::from_str(&hello).unwrap();
        assert_eq!(hello["shoal"], 1);
        Json(reader)
    }

    /// Everybody is served as long as this is.
    pub fn still_works(&self) {
        let mut client = self.json();
        assert_eq!(client.ask(json!({"id": 9, "execute": "show version"}))["text"], "shoal v1.2\n");
    }
}

pub struct Json(pub BufReader<UnixStream>);

impl Json {
    pub fn tell(&mut self, request: Value) {
        self.0.get_mut().write_all(format!("{request}\n").as_bytes()).unwrap();
    }

    pub fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub fn ask(&mut self, request: Value) -> Value {
        self.tell(request);
        self.hear()
    }
}

/// Reads up to and including a byte sequence.
pub fn read_until(stream: &mut UnixStream, end: &[u8]) -> Vec<u8> {
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

pub const IS_VPPCTL: &[u8] = b"\xff\xfa\x18\x00vppctl\xff\xf0";
pub const IS_XTERM: &[u8] = b"\xff\xfa\x18\x00xterm\xff\xf0";
pub const GREETING_END: &[u8] = &[255, 250, 31, 1, 255, 240];
