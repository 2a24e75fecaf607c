//! `show features`: arcs and what may join them.

use std::fmt;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

pub(super) const SHOW: Command =
    Command::new("show features [verbose]", "Show feature arcs and their features in order", show)
        .examples(&["show features", "show features verbose"])
        .doc("`verbose` adds positions. `show interface IF features` tells which are enabled.");

#[derive(Serialize)]
struct Arc {
    arc: &'static str,
    features: Vec<String>,
}

#[derive(Serialize)]
struct Features {
    arcs: Vec<Arc>,
    #[serde(skip)]
    verbose: bool,
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let names = |list: Vec<(String, bool)>| list.into_iter().map(|(name, _)| name).collect();
    let arcs = control.graph()?.features(None).into_iter();
    let arcs = arcs.map(|(arc, list)| Arc { arc, features: names(list) }).collect();
    Ok(Output::view(Features { arcs, verbose: args.has("verbose") }))
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Available feature paths")?;
        for Arc { arc, features } in &self.arcs {
            writeln!(f, "\n{arc}:")?;
            for (at, feature) in features.iter().enumerate() {
                let position = if self.verbose { format!("[{at:2}]: ") } else { String::new() };
                writeln!(f, "  {position}{feature}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    #[test]
    fn arcs_are_listed_with_their_features() {
        let arc = Arc { arc: "ip4-unicast", features: vec!["acl".into(), "nat44-in2out".into()] };
        let mut features = Features { arcs: vec![arc], verbose: false };
        assert_eq!(features.to_string(), "Available feature paths\n\nip4-unicast:\n  acl\n  nat44-in2out\n");
        features.verbose = true;
        assert!(features.to_string().contains("  [ 1]: nat44-in2out\n"));
        assert!(Router::new().run("show features").contains("interface-output:"));
    }
}
