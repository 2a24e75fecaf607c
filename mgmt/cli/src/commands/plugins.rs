//! `show plugins`: the modules this router is made of.

use std::fmt;

use serde::Serialize;
use shoal_interface::cli::column::{left, line};
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_module::{Control, Module, ModuleList};

pub(super) const SHOW: Command =
    Command::new("show plugins", "Show the modules this router is made of", show)
        .examples(&["show plugins"])
        .doc("All modules are built in; there is no path to load others from.");

#[derive(Serialize)]
struct Plugin {
    name: &'static str,
    version: &'static str,
    description: &'static str,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Plugins(Vec<Plugin>);

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let plugin =
        |m: &&Module| Plugin { name: m.name, version: env!("CARGO_PKG_VERSION"), description: m.description };
    Ok(Output::view(Plugins(control.get::<ModuleList>()?.0.iter().map(plugin).collect())))
}

impl fmt::Display for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, " Plugin path is: (built in), plugins shown in load order\n")?;
        f.write_str(&line(&[left("     Plugin", 41), left("Version", 33), "Description".into()]))?;
        self.0.iter().enumerate().try_for_each(|(at, p)| {
            let number = format!("{:>3}. ", at + 1);
            f.write_str(&line(&[number, left(p.name, 36), left(p.version, 33), p.description.into()]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    #[test]
    fn modules_are_listed_as_vpps_plugins() {
        let plugin = Plugin { name: "interface", version: "0.1.0", description: "Interfaces: state" };
        assert_eq!(
            Plugins(vec![plugin]).to_string(),
            format!(
                " Plugin path is: (built in), plugins shown in load order\n\n     Plugin{:30}Version{:26}Description\n\
                 \x20 1. interface{:27}0.1.0{:28}Interfaces: state\n",
                "", "", "", ""
            )
        );
        assert!(Router::new().run("show plugins").contains("  2. cli"));
    }
}
