//! `show vlib frame-allocation`: the frames packets travel in.

use std::fmt;

use serde::Serialize;
use shoal_interface::cli::column::{centre, line, number};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

pub(super) const SHOW: Command =
    Command::new("show vlib frame-allocation", "Show how many frames each thread has", show)
        .examples(&["show vlib frame-allocation"])
        .doc("`Alloc` hold packets now, `Free` are put aside for the next time. `Size` is in bytes.");

#[derive(Serialize)]
struct Row {
    thread: usize,
    size: usize,
    alloc: usize,
    free: usize,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Table(Vec<Row>);

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let counts = control.graph()?.frame_counts();
    let row = |(thread, counts): (usize, shoal_graph::FrameCounts)| Row {
        thread,
        size: counts.size,
        alloc: counts.used,
        free: counts.free,
    };
    Ok(Output::view(Table(counts.into_iter().map(row).collect())))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = [centre("Thread", 8), centre("Size", 6), centre("# Alloc", 12), centre("# Free", 12)];
        f.write_str(&line(&heads))?;
        self.0.iter().try_for_each(|row| {
            let Row { thread, size, alloc, free } = row;
            f.write_str(&line(&[number(thread, 8), number(size, 6), number(alloc, 12), number(free, 12)]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;

    #[test]
    fn frames_are_put_aside_when_their_packets_have_gone() {
        let router = Router::new();
        router.packets(100);
        let text = router.run("show vlib frame-allocation");
        let mut lines = text.lines();
        assert_eq!(
            lines.next().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap(),
            "Thread Size # Alloc # Free"
        );
        let words: Vec<usize> =
            lines.next().unwrap().split_whitespace().map(|w| w.parse().unwrap()).collect();
        assert_eq!((words[0], words[2]), (0, 0), "{text}");
        assert!(words[1] > 1024 && words[3] >= 32, "{text}");
        assert_eq!(lines.next(), None);
    }
}
