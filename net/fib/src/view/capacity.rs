//! `show fib capacity` and `show fib check`.

use std::fmt;

use serde::Serialize;

use crate::Capacity;

#[derive(Serialize)]
struct Row {
    what: &'static str,
    used: usize,
    possible: Option<usize>,
}

/// `show fib capacity`.
#[derive(Serialize)]
pub(crate) struct CapacityView {
    limits: Vec<Row>,
    bytes: usize,
    bytes_per_route: usize,
}

impl CapacityView {
    pub fn new(c: &Capacity) -> Self {
        let ([tables4, tables6], [routes4, routes6], [plies4, plies6]) = (c.tables, c.routes, c.plies);
        let row = |what, used, possible| Row { what, used, possible: Some(possible) };
        let open = |what, used| Row { what, used, possible: None };
        let a = &c.adjacencies;
        let limits = vec![
            row("ip4 tables", tables4, c.most_tables),
            row("ip6 tables", tables6, c.most_tables),
            open("ip4 routes", routes4),
            open("ip6 routes", routes6),
            row("ip4 plies, table 0", plies4, c.most_plies),
            row("ip6 plies, table 0", plies6, c.most_plies),
            open("path lists", c.path_lists),
            open("recursive next hops", c.next_hops),
            row("adjacencies", a.adjacencies, a.most_adjacencies),
            open("  of them aliases", a.aliases),
            open("  of them balances", a.balances),
            row("balance buckets", a.buckets, a.most_buckets),
            row(
                "memory of tables, KiB",
                (c.memory >> 10) as usize,
                ((c.memory + c.left.bytes) >> 10) as usize,
            ),
        ];
        let bytes = c.bytes + a.bytes;
        let bytes_per_route = bytes.checked_div(routes4 + routes6).unwrap_or(0);
        CapacityView { limits, bytes, bytes_per_route }
    }
}

impl fmt::Display for CapacityView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24}{:>14}{:>14}{:>8}", "Resource", "Used", "Possible", "Used %")?;
        for Row { what, used, possible } in &self.limits {
            match possible {
                Some(possible) => {
                    let percent = *used as f64 * 100.0 / (*possible).max(1) as f64;
                    writeln!(f, "{what:<24}{used:>14}{possible:>14}{percent:>8.1}")?;
                }
                None => writeln!(f, "{what:<24}{used:>14}{:>14}{:>8}", "memory", "")?,
            }
        }
        writeln!(f, "{} bytes, {} for each route", self.bytes, self.bytes_per_route)
    }
}

/// `show fib check`.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct CheckView(pub Vec<String>);

impl fmt::Display for CheckView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "all is well");
        }
        self.0.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
