//! Answers as long as a table: made while the client reads, and no longer.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::io::{BufRead, Read, Write};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::sample::{self, MADE};
use crate::served::{self, GREETING_END, IS_VPPCTL, read_until, serve};

/// Waits until a condition holds.
fn until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn made() -> usize {
    MADE.load(Ordering::Relaxed)
}

/// Waits until no more rows are made for a while, and tells how many were.
fn paused() -> usize {
    loop {
        let now = made();
        std::thread::sleep(Duration::from_millis(100));
        if now == made() {
            return now;
        }
    }
}

/// The only test that makes rows that are counted.
#[test]
fn a_listing_is_made_while_its_client_reads() {
    let server = serve(|s| s.write_deadline = Duration::from_secs(20));

    // One that does not read: what is made is bounded, and nothing more is made for it.
    let before = made();
    let mut client = server.json();
    client.tell(json!({"id": 1, "execute": "test counted 100000000"}));
    until("rows are made", || made() > before);
    server.still_works();
    // 16 bytes a row: what the socket's buffers hold, the link's and one piece.
    let last = paused();
    assert!((last - before) * 16 < 2 << 20, "{} rows for a client that does not read", last - before);
    // It reads again: the rows go on where they were.
    let mut row = 0;
    while row < 300_000 {
        let message = client.hear();
        assert_eq!(message["listing"], true);
        let text = message["stream"].as_str().unwrap();
        for line in text.lines().filter(|line| *line != "rows:") {
            assert_eq!(line, format!("row {row:011}"));
            row += 1;
        }
    }
    // It leaves in the middle.
    drop(client);
    assert!(paused() - before < 1_000_000);
    server.still_works();
}

#[test]
fn a_client_that_never_reads_is_cut_off_after_a_while() {
    let server = serve(|_| {});
    let mut c = server.connect();
    c.write_all(b"test rows 100000000\n").unwrap();
    let start = Instant::now();
    while c.write_all(b"comment x\n").is_ok() {
        assert!(start.elapsed() < Duration::from_mins(1), "still connected");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.still_works();
}

#[test]
fn short_listings_are_like_any_answer_and_long_ones_come_in_pieces() {
    let server = serve(|_| {});
    let mut client = server.json();
    let short = client.ask(json!({"id": 1, "execute": "test rows 2"}));
    assert_eq!(short["text"], "rows:\nrow 00000000000\nrow 00000000001\n");
    let short = client.ask(json!({"id": 1, "execute": "test rows 2", "json": true}));
    assert_eq!(short["json"], json!([{"row": 0}, {"row": 1}]));
    let short = client.ask(json!({"id": 1, "execute": "test rows 1 --json"}));
    assert_eq!(short["text"], "[\n  {\n    \"row\": 0\n  }\n]\n");

    let long = |client: &mut served::Json, request: Value, piece: &str| {
        client.tell(request);
        let mut all = String::new();
        loop {
            let message = client.hear();
            match message[piece].as_str() {
                Some(text) => all.push_str(text),
                None => return (all, message),
            }
        }
    };
    let (text, end) = long(&mut client, json!({"id": 2, "execute": "test rows 9000"}), "stream");
    assert_eq!(text.lines().count(), 9001);
    assert_eq!(end, json!({"id": 2, "ok": true, "quit": false, "text": ""}));
    let (text, end) = long(&mut client, json!({"id": 3, "execute": "test rows 9000", "json": true}), "piece");
    assert_eq!(end, json!({"id": 3, "ok": true, "quit": false, "pieces": true}));
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!((rows.len(), &rows[8999]), (9000, &json!({"row": 8999})));
    let (text, _) = long(&mut client, json!({"id": 4, "execute": "test rows 9000 --json"}), "stream");
    assert_eq!(text, format!("{:#}\n", Value::from(rows)));
    // Among other answers one has its place, before those behind it and behind those before.
    let lines = "show version\ntest rows 9000\nshow version";
    let (text, end) = long(&mut client, json!({"id": 5, "execute": lines}), "stream");
    assert!(text.starts_with("shoal v1.2\nrows:\n") && text.ends_with("row 00000008999\n"));
    assert_eq!(end["text"], "shoal v1.2\n");
    // One value of several answers has a bound.
    let values = client.ask(json!({"id": 6, "execute": lines, "json": true}));
    assert_eq!(values["json"][1].as_array().unwrap().len(), 9000);
    let lines = "test rows 200000\nshow version";
    let refused = client.ask(json!({"id": 7, "execute": lines, "json": true}));
    assert!(refused["text"].as_str().unwrap().contains("ask for it alone"), "{refused}");
}

#[test]
fn a_listing_can_be_interrupted() {
    let server = serve(|_| {});
    let mut client = server.json();
    client.tell(json!({"id": 1, "execute": "test rows 100000000"}));
    assert_eq!(client.hear()["listing"], true);
    client.tell(json!({"interrupt": true}));
    let end = loop {
        let message = client.hear();
        if message["listing"].is_null() {
            break message;
        }
    };
    assert_eq!((&end["ok"], &end["text"]), (&json!(false), &json!("interrupted\n")));
    assert_eq!(client.ask(json!({"id": 2, "execute": "show version"}))["ok"], true);
}

#[test]
fn vppctl_and_terminals_get_all_rows_of_a_listing() {
    let server = serve(|_| {});
    let mut c = server.connect();
    read_until(&mut c, GREETING_END);
    c.write_all(IS_VPPCTL).unwrap();
    c.write_all(b"test rows 20000\n").unwrap();
    let mut all = Vec::new();
    let mut reader = std::io::BufReader::new(&mut c);
    reader.read_until(0, &mut all).unwrap();
    assert_eq!(String::from_utf8_lossy(&all).lines().count(), 20_002);
    assert!(all.ends_with(b"row 00000019999\n\0"));

    let mut t = server.connect();
    t.write_all(b"test rows 20000\n").unwrap();
    t.shutdown(std::net::Shutdown::Write).unwrap();
    let mut all = String::new();
    let mut bytes = Vec::new();
    t.read_to_end(&mut bytes).unwrap();
    all.push_str(&String::from_utf8_lossy(&bytes));
    assert_eq!(all.matches("\r\n").count(), 20_001, "{}", &all[all.len() - 200..]);
}

#[test]
fn a_file_of_long_listings_is_shown_as_it_runs() {
    let server = serve(|_| {});
    let file = server.path.with_file_name("rows.cli");
    std::fs::write(&file, "show version\ntest rows 9000\n".repeat(20)).unwrap();
    let mut client = server.json();
    client.tell(json!({"id": 1, "execute": format!("exec {}", file.display())}));
    let mut all = String::new();
    let end = loop {
        let message = client.hear();
        match message["stream"].as_str() {
            Some(text) => all.push_str(text),
            None => break message,
        }
    };
    assert_eq!((&end["ok"], &end["text"]), (&json!(true), &json!("")));
    assert_eq!(
        (all.matches("shoal v1.2\nrows:\nrow 00000000000\n").count(), all.lines().count()),
        (20, 20 * 9002)
    );
}

#[test]
fn one_message_of_the_binary_api_holds_a_bounded_answer() {
    let (cli, control) = (sample::cli(), sample::control());
    let ask = |line: &str| futures_lite::future::block_on(cli.execute_bounded(&control, line));
    let (ok, text) = ask("show version\ntest rows 2");
    assert_eq!((ok, text.as_str()), (true, "shoal v1.2\nrows:\nrow 00000000000\nrow 00000000001\n"));
    let (ok, text) = ask("test rows 100000000");
    assert!(ok && text.len() <= (1 << 20) + 200);
    let mut lines = text.lines().rev();
    assert!(lines.next().unwrap().starts_with("... more than 1 MiB"));
    assert!(lines.next().unwrap().starts_with("row "));
    let (ok, text) = ask("test big 1000000");
    assert!(ok && text.len() <= (1 << 20) + 200 && text.contains("... more than 1 MiB"));
    let (ok, text) = ask("test small 13");
    assert!(!ok && text.contains("thirteen"));
}
