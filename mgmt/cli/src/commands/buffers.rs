//! `show buffers`: packets' memory.

use std::fmt;

use serde::Serialize;
use shoal_buffer::PoolStats;
use shoal_interface::cli::column::{centre, left, line, number};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

pub(super) const SHOW: Command = Command::new("show buffers [detail]", "Show buffer pools", show)
    .examples(&["show buffers", "sh buffers", "show buffers detail"])
    .doc("While packets flow, `Used` is a moment's estimate. `detail` adds what memory it is and how far it may grow.");

#[derive(Serialize)]
pub(super) struct Pool {
    name: String,
    index: usize,
    numa: usize,
    size: usize,
    data_size: usize,
    total: usize,
    available: usize,
    cached: usize,
    used: usize,
    memory: String,
    most: usize,
    #[serde(skip)]
    detail: bool,
}

impl Pool {
    pub(super) fn new(stats: PoolStats, detail: bool) -> Self {
        let PoolStats { name, size, data_size, total, available, cached, used, backing, most } = stats;
        let memory = format!("{backing:?}").to_lowercase();
        Pool {
            name,
            index: 0,
            numa: 0,
            size,
            data_size,
            total,
            available,
            cached,
            used,
            memory,
            most,
            detail,
        }
    }
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Pool::new(control.graph()?.pool().stats(), args.has("detail"))))
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&line(&[
            left("Pool Name", 20),
            centre("Index", 6),
            centre("NUMA", 6),
            centre("Size", 6),
            centre("Data Size", 11),
            centre("Total", 6),
            centre("Avail", 8),
            centre("Cached", 8),
            centre("Used", 8),
        ]))?;
        f.write_str(&line(&[
            left(&self.name, 20),
            number(self.index, 6),
            number(self.numa, 6),
            number(self.size, 6),
            number(self.data_size, 11),
            number(self.total, 6),
            number(self.available, 8),
            number(self.cached, 8),
            number(self.used, 8),
        ]))?;
        if self.detail {
            writeln!(f, "  memory: {} pages, may grow to {} buffers", self.memory, self.most)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    #[test]
    fn the_last_word_is_the_number_of_used_buffers() {
        let pool = Pool {
            name: "default-numa-0".into(),
            index: 0,
            numa: 0,
            size: 2496,
            data_size: 2048,
            total: 16800,
            available: 16700,
            cached: 60,
            used: 40,
            memory: "huge".into(),
            most: 268_800,
            detail: false,
        };
        assert_eq!(
            pool.to_string(),
            "Pool Name            Index NUMA  Size  Data Size  Total  Avail  Cached   Used\n\
             default-numa-0         0     0   2496     2048    16800  16700    60      40\n"
        );
    }

    #[test]
    fn nothing_is_used_after_packets_were_dropped() {
        let router = Router::new();
        router.packets(100);
        assert!(router.run("sh buffers").trim_end().ends_with(" 0"));
        assert!(router.run("show buffers detail").contains("may grow to"));
    }
}
