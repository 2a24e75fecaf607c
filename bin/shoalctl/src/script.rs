//! Commands from a file or a pipe, one after the other; the first failure ends the run.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::client::{Client, Error};
use crate::show;

/// Runs the commands of a file; false if one failed.
pub fn run_file(client: &mut Client, file: &Path, json: bool) -> Result<bool, Error> {
    let open = File::open(file).map_err(|e| Error::File(file.to_owned(), e))?;
    run(client, BufReader::new(open), &file.display().to_string(), json)
}

/// Runs the commands of a reader; false if one failed.
pub fn run(client: &mut Client, input: impl BufRead, name: &str, json: bool) -> Result<bool, Error> {
    let mut pending = String::new();
    let mut depth = 0;
    let mut first = 0;
    let mut lines = input.lines().zip(1..);
    loop {
        let next = lines.next();
        if let Some((line, number)) = next {
            let line = line.map_err(|e| Error::File(name.into(), e))?;
            if pending.is_empty() {
                first = number;
            }
            let remark = pending.is_empty() && is_remark(&line);
            depth += if remark { 0 } else { open_braces(&line) };
            pending.push_str(&line);
            pending.push('\n');
            // A command goes on until its braces are closed.
            if depth > 0 {
                continue;
            }
        } else if pending.is_empty() {
            return Ok(true);
        }
        depth = 0;
        let command = std::mem::take(&mut pending);
        if command.trim().is_empty() {
            continue;
        }
        let answer = client.execute(&command, json, &mut show::stream, None)?;
        if !show::answer(&answer, &format!("{name}:{first}: ")) {
            return Ok(false);
        }
        if answer.quit {
            return Ok(true);
        }
    }
}

fn is_remark(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('#') || line.split_whitespace().next() == Some("comment")
}

fn open_braces(line: &str) -> i64 {
    line.bytes().map(|b| i64::from(b == b'{') - i64::from(b == b'}')).sum()
}
