//! Commands from a file or a pipe, one after the other, as `exec` runs a file: a line that fails is reported with its
//! place, and the others run all the same.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use crate::client::{Answer, Client, Error};
use crate::show;

/// Bytes read, and sent, at a time.
const BATCH: usize = 64 << 10;
/// A command of more bytes is sent as it is: the router will say what it thinks of it.
const MOST: usize = 512 << 10;

/// Runs the commands of a file; false if one failed.
pub fn run_file(client: &mut Client, file: &Path, json: bool) -> Result<bool, Error> {
    let open = File::open(file).map_err(|e| Error::File(file.to_owned(), e))?;
    run(client, open, &file.display().to_string(), json)
}

/// Runs the commands of a reader; false if one failed. As many lines go to the router at a time as are there to be
/// read, so that a large file is one conversation and not one for each line, and a person's line waits for no other.
pub fn run(client: &mut Client, input: impl Read, name: &str, json: bool) -> Result<bool, Error> {
    let mut input = BufReader::with_capacity(BATCH, input);
    // What was read and not sent yet, and the number of its first line.
    let (mut text, mut first) = (Vec::new(), 1);
    let mut ok = true;
    loop {
        let chunk = match input.fill_buf() {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            other => other.map_err(|e| Error::File(name.into(), e))?,
        };
        let (n, ended) = (chunk.len(), chunk.is_empty());
        text.extend_from_slice(chunk);
        input.consume(n);
        let end = if ended || text.len() > MOST { text.len() } else { whole_commands(&text) };
        if end > 0 {
            let rest = text.split_off(end);
            let batch = std::mem::replace(&mut text, rest);
            let batch = std::str::from_utf8(&batch)
                .map_err(|e| Error::File(name.into(), std::io::Error::new(ErrorKind::InvalidData, e)))?;
            let mut answered = |line: usize, answer: &Answer| {
                ok &= show::answer(answer, &format!("{name}:{}: ", first + line - 1));
            };
            let goes_on = client.batch(batch, json, &mut show::stream, &mut answered)?;
            if !goes_on {
                return Ok(ok);
            }
            first += batch.matches('\n').count();
        }
        if ended {
            return Ok(ok);
        }
    }
}

/// Where the last command ends that is whole: behind a line whose braces are all closed.
fn whole_commands(text: &[u8]) -> usize {
    let (mut depth, mut end, mut at) = (0, 0, 0);
    for line in text.split_inclusive(|b| *b == b'\n') {
        at += line.len();
        depth += if depth <= 0 && is_remark(line) { 0 } else { open_braces(line) };
        if depth <= 0 && line.ends_with(b"\n") {
            (depth, end) = (0, at);
        }
    }
    end
}

fn is_remark(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let word = line.split(u8::is_ascii_whitespace).next().unwrap_or(line);
    line.starts_with(b"#") || word == b"comment"
}

fn open_braces(line: &[u8]) -> i64 {
    line.iter().map(|b| i64::from(*b == b'{') - i64::from(*b == b'}')).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_whole_when_its_line_and_its_braces_are_closed() {
        for (text, whole) in [
            ("", ""),
            ("show version", ""),
            ("show version\nshow ip", "show version\n"),
            ("a {\n b\n", ""),
            ("a {\n b\n}\nc", "a {\n b\n}\n"),
            ("# {\ncomment {\nb {", "# {\ncomment {\n"),
            ("commentary {\nb\n", ""),
        ] {
            assert_eq!(whole_commands(text.as_bytes()), whole.len(), "{text}");
        }
    }
}
