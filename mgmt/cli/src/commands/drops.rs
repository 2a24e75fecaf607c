//! `show drops`: why packets were lost, and where they had come in.

use std::cmp::Reverse;
use std::fmt;

use serde::Serialize;
use shoal_graph::Severity;
use shoal_interface::cli::column::{left, line};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

pub(super) const SHOW: Command =
    Command::new("show drops", "Show why packets were dropped, most first, and where they came in", show)
        .examples(&["show drops"])
        .doc("`clear errors` resets the reasons, `clear interfaces` the interfaces.");

#[derive(Serialize)]
struct Cause {
    count: u64,
    node: String,
    reason: &'static str,
}

#[derive(Serialize)]
struct Interface {
    count: u64,
    name: String,
}

#[derive(Serialize)]
struct Drops {
    reasons: Vec<Cause>,
    interfaces: Vec<Interface>,
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let c = graph.graph_counters();
    let counters = graph.error_counters().into_iter().enumerate();
    let mut reasons: Vec<Cause> = counters
        .filter(|(at, (_, counter))| counter.severity == Severity::Error || graph.is_drop_reason(*at))
        .map(|(at, (node, counter))| Cause { count: c.errors.sum(at), node, reason: counter.description })
        .filter(|r| r.count > 0)
        .collect();
    reasons.sort_by_key(|r| Reverse(r.count));
    let names = graph.if_names().all().into_iter().enumerate();
    let mut interfaces: Vec<Interface> = names
        .map(|(at, name)| Interface { count: c.drops.sum(at), name: name.to_string() })
        .filter(|i| i.count > 0)
        .collect();
    interfaces.sort_by_key(|i| Reverse(i.count));
    Ok(Output::view(Drops { reasons, interfaces }))
}

impl fmt::Display for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reasons.is_empty() && self.interfaces.is_empty() {
            return writeln!(f, "No drops");
        }
        let width = self.reasons.iter().map(|r| r.node.len()).max().unwrap_or(0).max("Node".len()) + 2;
        f.write_str(&line(&["       Count  ".into(), left("Node", width), "Reason".into()]))?;
        for Cause { count, node, reason } in &self.reasons {
            f.write_str(&line(&[format!("{count:>12}  "), left(node, width), (*reason).into()]))?;
        }
        writeln!(f, "\n       Count  Received on")?;
        self.interfaces.iter().try_for_each(|i| writeln!(f, "{:>12}  {}", i.count, i.name))
    }
}

#[cfg(test)]
mod tests {
    use shoal_buffer::Packet;
    use shoal_graph::{Cx, ErrorCounter, ErrorCounters, NoNext, PacketNode, Severity};

    use super::super::testing::Router;

    /// Drops every packet, for a reason that is no error of this router.
    struct Warner;

    #[derive(Clone, Copy, Debug)]
    struct Strange;

    impl ErrorCounters for Strange {
        const COUNTERS: &'static [ErrorCounter] =
            &[ErrorCounter { name: "strange", description: "strange", severity: Severity::Warn, at: None }];

        fn index(self) -> u32 {
            0
        }
    }

    impl PacketNode for Warner {
        const NAME: &'static str = "warner";
        type Next = NoNext;
        type Error = Strange;
        type Trace = String;

        fn packet(&self, _: &mut Packet<'_>, _: &mut Cx<'_, Self>) -> Result<NoNext, Strange> {
            Err(Strange)
        }
    }

    #[test]
    fn a_warning_is_a_reason_where_packets_were_dropped_for_it() {
        let router = Router::new();
        router.graph().add_packet(Warner).unwrap();
        router.packets_to("warner", 2);
        assert_eq!(
            router.run("show drops"),
            "       Count  Node    Reason\n           2  warner  strange\n\
             \n       Count  Received on\n           2  local0\n"
        );
    }

    #[test]
    fn drops_have_reasons_and_interfaces_and_no_other_counters() {
        let router = Router::new();
        assert_eq!(router.run("show drops"), "No drops\n");
        router.packets(3);
        assert_eq!(
            router.run("show drops"),
            "       Count  Node   Reason\n           3  judge  first byte is odd\n\
             \n       Count  Received on\n           3  local0\n"
        );
    }
}
