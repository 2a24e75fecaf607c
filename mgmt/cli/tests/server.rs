//! The socket: both protocols, and clients that misbehave.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::io::{BufRead, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use serde_json::json;
use shoal_cli::server::{ListenError, Settings, listen};
use shoal_module::door::FileError;

use crate::served::{GREETING_END, IS_VPPCTL, IS_XTERM, read_until, serve};

#[test]
fn vppctl_gets_a_nul_after_each_line_and_no_prompt() {
    let server = serve(|_| {});
    let mut c = server.connect();
    read_until(&mut c, GREETING_END);
    c.write_all(IS_VPPCTL).unwrap();
    c.write_all(b"show version\n").unwrap();
    assert_eq!(read_until(&mut c, b"\0"), b"shoal v1.2\n\0");
    c.write_all(b"show errors\n").unwrap();
    assert_eq!(read_until(&mut c, b"\0"), b"\0");
    // Telnet's commands, control characters and carriage returns are no part of a line, wherever they stand.
    c.write_all(b"show ver\xff\xf1sion\0\r\n").unwrap();
    assert_eq!(read_until(&mut c, b"\0"), b"shoal v1.2\n\0");
    c.write_all(b"packet-generator new {\n name x\n}\n").unwrap();
    assert_eq!(read_until(&mut c, b"\0"), b"stream=name x\n\0");
    c.write_all(b"packet-generator new {\n").unwrap();
    assert!(String::from_utf8_lossy(&read_until(&mut c, b"\0")).contains("a closing `}'"));
    c.write_all(b"quit\n").unwrap();
    let mut rest = Vec::new();
    c.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
}

#[test]
fn a_silent_client_gets_banner_and_prompt() {
    let server = serve(|s| s.banner = "hello\n".into());
    let mut c = server.connect();
    let text = read_until(&mut c, b"shoal# ");
    assert!(text.ends_with(b"hello\r\nshoal# "));
    c.write_all(b"sh ver\r\n").unwrap();
    assert_eq!(read_until(&mut c, b"shoal# "), b"shoal v1.2\r\nshoal# ");
}

#[test]
fn a_terminal_gets_echo_and_completion() {
    let server = serve(|_| {});
    let mut c = server.connect();
    read_until(&mut c, GREETING_END);
    c.write_all(IS_XTERM).unwrap();
    read_until(&mut c, b"shoal# ");
    c.write_all(b"sh\t").unwrap();
    read_until(&mut c, b"show ");
    c.write_all(b"ver\r\0").unwrap();
    assert_eq!(read_until(&mut c, b"# "), b"ver\r\nshoal v1.2\r\nshoal# ");
}

#[test]
fn what_was_asked_before_the_end_of_input_is_answered() {
    let server = serve(|_| {});
    let mut c = server.connect();
    c.write_all(b"show version\nshow version").unwrap();
    c.shutdown(std::net::Shutdown::Write).unwrap();
    let mut all = Vec::new();
    c.read_to_end(&mut all).unwrap();
    assert_eq!(String::from_utf8_lossy(&all).matches("shoal v1.2").count(), 2);
}

#[test]
fn programs_execute_complete_and_ask_for_help() {
    let server = serve(|_| {});
    let mut c = server.json();
    let reply = c.ask(json!({"id": 1, "execute": "show version", "json": true}));
    assert_eq!(reply, json!({"id": 1, "ok": true, "quit": false, "json": {"version": "1.2"}}));
    let reply = c.ask(json!({"id": 2, "execute": "show vesion"}));
    assert_eq!(reply["error"]["nearest"], "version");
    let reply = c.ask(json!({"id": 3, "complete": "set int state t", "cursor": 15}));
    assert_eq!(reply["start"], 14);
    assert_eq!(reply["candidates"][1]["text"], "tap10");
    assert!(c.ask(json!({"id": 4, "help": "show"}))["text"].as_str().unwrap().contains("errors"));
    assert_eq!(c.ask(json!({"id": 5}))["ok"], false);
    c.tell(json!({"id": 6, "execute": "test count 2"}));
    assert_eq!(c.hear(), json!({"id": 6, "stream": "0\n"}));
    assert_eq!(c.hear(), json!({"id": 6, "stream": "1\n"}));
    assert_eq!(c.hear()["text"], "done\n");
    assert_eq!(c.ask(json!({"id": 7, "execute": "quit"}))["quit"], true);
}

#[test]
fn a_batch_answers_where_there_is_something_to_say_and_runs_on_behind_a_failure() {
    let served = serve(|_| {});
    let mut client = served.json();
    let lines = "show errors\n# remark\nshow version\ntest count 2\n\ntest small 13\nshow version\n";
    client.tell(json!({"id": 7, "batch": lines}));
    let version = client.hear();
    assert_eq!(
        (&version["id"], &version["line"], &version["text"]),
        (&json!(7), &json!(3), &json!("shoal v1.2\n"))
    );
    assert_eq!(client.hear()["stream"], "0\n");
    assert_eq!(client.hear()["stream"], "1\n");
    assert_eq!(client.hear()["line"], 4);
    let failed = client.hear();
    assert_eq!((&failed["line"], &failed["ok"]), (&json!(6), &json!(false)));
    assert_eq!(client.hear()["line"], 7);
    assert_eq!(client.hear(), json!({"id": 7, "done": true, "ended": false}));
    // Silent commands are answered, too, where JSON is asked for.
    client.tell(json!({"id": 8, "batch": "show errors\nquit\nshow version\n", "json": true}));
    assert_eq!(client.hear(), json!({"id": 8, "line": 1, "ok": true, "quit": false, "json": null}));
    assert_eq!(client.hear()["quit"], true);
    assert_eq!(client.hear()["done"], true);
    served.still_works();
}

#[test]
fn a_long_file_delays_no_client() {
    let served = serve(|_| {});
    let file = served.path.with_file_name("long.cli");
    std::fs::write(&file, "set interface state tap0 up\n".repeat(300_000)).unwrap();
    let mut long = served.json();
    long.tell(json!({"id": 1, "execute": format!("exec {}", file.display())}));
    let mut other = served.json();
    let (mut answers, mut line) = (0, String::new());
    let begun = Instant::now();
    long.0.get_ref().set_nonblocking(true).unwrap();
    // As long as the file runs, others are answered between its lines. What its lines say comes meanwhile.
    while begun.elapsed() < Duration::from_mins(1) {
        match long.0.read_line(&mut line) {
            Ok(_) if line.contains("\"ok\"") => break,
            Ok(_) => {
                assert!(line.contains("\"stream\"") || line.contains("\"progress\""), "{line}");
                line.clear();
                continue;
            }
            Err(_) => {}
        }
        let asked = Instant::now();
        assert_eq!(other.ask(json!({"id": 2, "execute": "show version"}))["ok"], true);
        assert!(asked.elapsed() < Duration::from_secs(1), "answered after {:?}", asked.elapsed());
        answers += 1;
    }
    assert!(line.contains("\"ok\":true"), "not done after {:?}: {line}", begun.elapsed());
    assert!(answers > 2, "{answers} answers in {:?}", begun.elapsed());
}

#[test]
fn a_slow_command_can_be_interrupted_and_does_not_hold_others() {
    let server = serve(|_| {});
    let mut c = server.json();
    c.tell(json!({"id": 1, "execute": "test forever"}));
    assert_eq!(c.hear()["stream"], "waiting\n");
    server.still_works();
    c.tell(json!({"interrupt": true}));
    assert_eq!(c.hear()["text"], "stopped\n");
    assert_eq!(c.ask(json!({"id": 2, "execute": "show version"}))["ok"], true);

    let mut t = server.connect();
    read_until(&mut t, b"shoal# ");
    t.write_all(b"test forever\n").unwrap();
    read_until(&mut t, b"waiting\r\n");
    t.write_all(&[3]).unwrap();
    read_until(&mut t, b"stopped\r\nshoal# ");
}

#[test]
fn what_a_client_is_is_seen_also_when_the_server_was_held_up() {
    let server = serve(|_| {});
    let mut busy = server.json();
    let mut late = server.connect();
    // It is known, and has a moment to say what it is.
    read_until(&mut late, GREETING_END);
    busy.tell(json!({"id": 1, "execute": "test hold"}));
    std::thread::sleep(Duration::from_millis(50));
    late.write_all(b"{\"shoal\":1}\n").unwrap();
    let mut hello = String::new();
    std::io::BufReader::new(late).read_line(&mut hello).unwrap();
    let hello: serde_json::Value = serde_json::from_str(&hello).unwrap();
    assert_eq!(hello["shoal"], 1);
    assert_eq!(busy.hear()["text"], "held\n");
}

#[test]
fn a_program_that_says_late_what_it_is_is_understood() {
    let server = serve(|_| {});
    let mut late = server.connect();
    // It had no processor, and was taken for a person.
    let prompt = read_until(&mut late, b"shoal# ");
    assert!(!prompt.contains(&b'{'), "a program skips what comes before the first brace");
    late.write_all(b"{\"shoal\":1}\n").unwrap();
    let mut reader = std::io::BufReader::new(late);
    let mut hello = String::new();
    reader.read_line(&mut hello).unwrap();
    let hello: serde_json::Value = serde_json::from_str(&hello).unwrap();
    assert_eq!(hello["shoal"], 1);
    // A client that has typed something is a person, and goes on.
    let mut person = server.connect();
    read_until(&mut person, b"shoal# ");
    person.write_all(b"\n").unwrap();
    read_until(&mut person, b"shoal# ");
    person.write_all(b"{\"shoal\":1}\n").unwrap();
    let answer = read_until(&mut person, b"shoal# ");
    assert!(String::from_utf8_lossy(&answer).contains("unknown"), "{answer:?}");
}

#[test]
fn garbage_does_no_harm() {
    let server = serve(|_| {});
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..20 {
        let mut c = server.connect();
        let mut bytes = Vec::new();
        for _ in 0..4096 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.push((seed >> 40) as u8);
        }
        if round % 3 == 0 {
            bytes[0] = b'{';
        }
        bytes.extend(b"\xff\xfa\x18\x00");
        // The server may close first, which is fine.
        let _ = c.write_all(&bytes);
        let _ = c.shutdown(std::net::Shutdown::Write);
        let mut all = Vec::new();
        let _ = c.read_to_end(&mut all);
    }
    server.still_works();
}

#[test]
fn a_line_of_a_megabyte_is_refused_and_ends_the_session() {
    let server = serve(|_| {});
    for first in [b"x", b"{"] {
        let mut c = server.connect();
        let _ = c.write_all(first);
        let _ = c.write_all(&vec![b'a'; (1 << 20) + 10]);
        let mut all = Vec::new();
        let _ = c.read_to_end(&mut all);
        let text = String::from_utf8_lossy(&all);
        assert!(text.contains("input line longer than 1048576 bytes, closing the session"), "{text}");
    }
    server.still_works();
}

#[test]
fn a_long_answer_reaches_a_client_that_reads() {
    let server = serve(|_| {});
    let mut c = server.json();
    let reply = c.ask(json!({"id": 1, "execute": "test big 1000000"}));
    assert_eq!(reply["text"].as_str().unwrap().len(), 16_000_000);
}

#[test]
fn a_client_that_stops_reading_is_disconnected() {
    let server = serve(|_| {});
    let mut c = server.connect();
    c.write_all(b"test big 1000000\n").unwrap();
    let start = Instant::now();
    server.still_works();
    // The server hangs up once its deadline has passed: writing fails, whatever we have not read.
    while c.write_all(b"comment x\n").is_ok() {
        assert!(start.elapsed() < Duration::from_mins(1), "still connected");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.still_works();
}

#[test]
fn one_client_too_many_is_told_so() {
    let server = serve(|s| s.max_sessions = 3);
    let clients: Vec<_> = (0..3).map(|_| server.json()).collect();
    let mut c = server.connect();
    let mut text = String::new();
    c.read_to_string(&mut text).unwrap();
    assert_eq!(text, "all 3 sessions of the command line are in use, try again later\n");
    drop(clients);
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let mut c = server.connect();
        let mut first = [0];
        c.read_exact(&mut first).unwrap();
        if first[0] == 255 {
            break;
        }
        assert!(Instant::now() < deadline, "seats are never given back");
    }
}

#[test]
fn sessions_that_say_nothing_give_way_to_new_ones() {
    let server = serve(|s| (s.max_sessions, s.idle_limit) = (3, Duration::from_millis(200)));
    let mut json = server.json();
    let mut silent = server.connect();
    read_until(&mut silent, b"shoal# ");
    // Half a line is no command, and is not run.
    silent.write_all(b"show version").unwrap();
    let mut busy = server.json();
    busy.tell(json!({"id": 1, "execute": "test forever"}));
    assert_eq!(busy.hear()["stream"], "waiting\n");
    // The one that has been idle for longest goes first, the one whose command runs never.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(json.ask(json!({"id": 2, "execute": "show version"}))["ok"], true);
    let mut third = server.json();
    let mut said = String::new();
    silent.read_to_string(&mut said).unwrap();
    assert!(said.contains("closed after 0 s without input: another client needs the session"), "{said}");
    assert!(!said.contains("shoal v1.2"), "{said}");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(third.ask(json!({"id": 3, "execute": "show version"}))["ok"], true);
    let _fourth = server.json();
    let closed = json.hear();
    assert_eq!((&closed["ok"], &closed["id"]), (&json!(false), &json!(null)));
    assert!(closed["text"].as_str().unwrap().contains("another client needs the session"), "{closed}");
    busy.tell(json!({"interrupt": true}));
    assert_eq!(busy.hear()["text"], "stopped\n");
}

#[test]
fn the_socket_is_for_owner_and_group_and_replaces_only_a_dead_one() {
    let server = serve(|_| {});
    let meta = std::fs::metadata(&server.path).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o660);
    assert!(matches!(listen(Settings::new(&server.path)), Err(ListenError::File(FileError::InUse(_)))));
    server.still_works();

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dead.sock");
    drop(UnixListener::bind(&path).unwrap());
    let listener = listen(Settings::new(&path)).unwrap();
    assert!(std::fs::metadata(&path).unwrap().file_type().is_socket());
    drop(listener);
    assert!(!path.exists());

    let file = dir.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    assert!(matches!(listen(Settings::new(&file)), Err(ListenError::File(FileError::NotASocket(_)))));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}
