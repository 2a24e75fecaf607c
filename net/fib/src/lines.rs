//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::cli::Args;
use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::System, "set adj counters enable", "", "set adj counters disable"),
    LineKind::item(Phase::Tables, "ip table add <id:u32> [<name:word>]", "ip table del <id>").key("id").makes("ip table <id>").recreates("the table"),
    LineKind::item(Phase::Tables, "ip6 table add <id:u32> [<name:word>]", "ip6 table del <id>").key("id").makes("ip6 table <id>").recreates("the table"),
    LineKind::setting(Phase::Tables, "set ip flow-hash table <table:u32> [src] [dst] [sport] [dport] [proto] [reverse] [symmetric]", "table", "set ip flow-hash table <table>").needs(&["ip table <table>"]),
    LineKind::setting(Phase::Tables, "set ip6 flow-hash table <table:u32> [src] [dst] [sport] [dport] [proto] [reverse] [symmetric] [flowlabel]", "table", "set ip6 flow-hash table <table>").needs(&["ip6 table <table>"]),
    LineKind::item(Phase::Routes, "ip route add <prefix:ip4-prefix> [table <table:u32>] <paths:rest>", "ip route del <prefix> [table <table>]").key("prefix table").needs(&["[ip table <table>]"]).changed_by(change_of_paths),
    LineKind::item(Phase::Routes, "ip route add <prefix:ip6-prefix> [table <table:u32>] <paths:rest>", "ip route del <prefix> [table <table>]").key("prefix table").needs(&["[ip6 table <table>]"]).changed_by(change_of_paths),
    LineKind::item(Phase::Policies, "set ip route counters enable [<prefix:ip-prefix>] [table <table:u32>]", "enable -> disable").needs(&["[ip table <table>]"]),
    LineKind::item(Phase::Policies, "set ip6 route counters enable [<prefix:ip-prefix>] [table <table:u32>]", "enable -> disable").needs(&["[ip6 table <table>]"]),
];

/// New paths come before old ones go, so that there is always one.
fn change_of_paths(old: &Args, new: &Args) -> Vec<String> {
    let paths = |args: &Args| -> Vec<String> {
        let text = args.text("paths").unwrap_or_default();
        text.split("via ").map(str::trim).filter(|path| !path.is_empty()).map(str::to_owned).collect()
    };
    let (before, after) = (paths(old), paths(new));
    let leads_there = |path: &String| after.iter().any(|other| way(other) == way(path));
    let come: Vec<&String> = after.iter().filter(|path| !before.contains(path)).collect();
    let go: Vec<&String> = before.iter().filter(|path| !leads_there(path)).collect();
    let prefix = new.text("prefix").unwrap_or_default();
    let table = new.text("table").map(|table| format!(" table {table}")).unwrap_or_default();
    let command = |verb: &str, paths: &[&String]| {
        let vias: String = paths.iter().flat_map(|path| [" via ", path.as_str()]).collect();
        (!paths.is_empty()).then(|| format!("ip route {verb} {prefix}{table}{vias}"))
    };
    command("add", &come).into_iter().chain(command("del", &go)).collect()
}

/// Where a path leads, without its share.
fn way(path: &str) -> String {
    let mut words = path.split(' ');
    let mut way = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "weight" | "preference" => drop(words.next()),
            "resilient" => {}
            word => way.push(word),
        }
    }
    way.join(" ")
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use shoal_module::Control;

    use super::*;

    #[test]
    fn new_paths_come_before_old_ones_go() {
        let line = |paths: &str| {
            Args::new(Rc::new(Control::new()), "").with("prefix", "10.0.0.0/8", 0..0).with(
                "paths",
                paths,
                0..0,
            )
        };
        let changes = |old, new| change_of_paths(&line(old), &line(new));
        assert_eq!(
            changes("via 10.1.0.1 loop0", "via 10.2.0.1 loop0"),
            ["ip route add 10.0.0.0/8 via 10.2.0.1 loop0", "ip route del 10.0.0.0/8 via 10.1.0.1 loop0"]
        );
        assert_eq!(
            changes("via a via b weight 2", "via b weight 3 via a"),
            ["ip route add 10.0.0.0/8 via b weight 3"]
        );
        assert_eq!(changes("via a via b", "via a"), ["ip route del 10.0.0.0/8 via b"]);
    }
}
