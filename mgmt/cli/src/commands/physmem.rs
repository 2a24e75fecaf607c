//! `show physmem`: memory that devices and kernels may read and write.

use std::fmt;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

pub(super) const SHOW: Command =
    Command::new("show physmem [verbose | detail | map]", "Show the memory of packet buffers", show)
        .examples(&["show physmem"])
        .doc("In pages of 2 MB; a page is one of the kernel's huge pages, or 512 small ones. The other words are taken for VPP's sake.");

/// What pages are counted in.
const PAGE: usize = 2 << 20;

#[derive(Serialize)]
struct Arena {
    name: &'static str,
    pages: usize,
    reserved_pages: usize,
    page_size: usize,
    subpage_size: usize,
    numa_node: u32,
    base: String,
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let pool = std::sync::Arc::clone(control.graph()?.pool());
    let stats = pool.stats();
    let part = pool.part().map_err(|error| CliError::failed(format!("memory of buffers: {error}")))?;
    Ok(Output::view(Arena {
        name: "buffers-numa-0",
        pages: (stats.total * stats.size).div_ceil(PAGE),
        reserved_pages: (stats.most * stats.size).div_ceil(PAGE),
        page_size: PAGE,
        subpage_size: if part.is_huge() { PAGE } else { 4096 },
        numa_node: 0,
        base: format!("0x{:x}", part.address()),
    }))
}

impl fmt::Display for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Arena { name, pages, reserved_pages, subpage_size, numa_node, .. } = self;
        let subpage = if *subpage_size == PAGE { "2M" } else { "4K" };
        writeln!(
            f,
            " used-pages {pages} reserved-pages {reserved_pages} default-page-size 2M lookup-page-size 4K"
        )?;
        writeln!(f, "   arena '{name}' pages {pages} subpage-size {subpage} numa-node {numa_node} private")
    }
}
