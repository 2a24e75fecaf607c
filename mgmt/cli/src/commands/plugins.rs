//! `show plugins`: the modules this router is made of, and the plugins it has loaded.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use shoal_interface::cli::column::{left, line};
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_module::{Control, LoadedPlugins, Module, ModuleList};

pub(super) const SHOW: Command =
    Command::new("show plugins", "Show the modules and plugins this router is made of", show)
        .examples(&["show plugins"])
        .doc(
            "Modules are built in. Plugins are loaded at the start from the directories of `plugins { path DIR add-path \
             DIR }`, and stand behind them with their files. At the end stands why files were refused.",
        );

#[derive(Serialize)]
struct Plugin {
    name: String,
    version: String,
    description: String,
    /// None: built in.
    path: Option<PathBuf>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Plugins {
    all: Vec<Plugin>,
    #[serde(skip)]
    paths: Vec<PathBuf>,
    #[serde(skip)]
    refused: Vec<String>,
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let module = |m: &&Module| Plugin {
        name: m.name.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        description: m.description.to_owned(),
        path: None,
    };
    let mut all: Vec<Plugin> = control.get::<ModuleList>()?.0.iter().map(module).collect();
    let LoadedPlugins { paths, plugins, refused, .. } =
        control.get::<LoadedPlugins>().map(|p| (*p).clone()).unwrap_or_default();
    all.extend(plugins.into_iter().map(|p| Plugin {
        name: p.name,
        version: p.version,
        description: p.description,
        path: Some(p.path),
    }));
    Ok(Output::view(Plugins { all, paths, refused }))
}

impl fmt::Display for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<String> = self.paths.iter().map(|p| p.display().to_string()).collect();
        let paths = if paths.is_empty() { "(built in)".to_owned() } else { paths.join(":") };
        writeln!(f, " Plugin path is: {paths}, plugins shown in load order\n")?;
        f.write_str(&line(&[left("     Plugin", 41), left("Version", 33), "Description".into()]))?;
        for (at, p) in self.all.iter().enumerate() {
            let number = format!("{:>3}. ", at + 1);
            let path = p.path.as_ref().map_or(String::new(), |path| format!(" ({})", path.display()));
            let description = format!("{}{path}", p.description);
            f.write_str(&line(&[number, left(&p.name, 36), left(&p.version, 33), description]))?;
        }
        self.refused.iter().try_for_each(|why| writeln!(f, "     refused: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    fn plugin(name: &str, path: Option<&str>) -> Plugin {
        let (version, description) = ("0.1.0".to_owned(), "Interfaces: state".to_owned());
        Plugin { name: name.to_owned(), version, description, path: path.map(Into::into) }
    }

    #[test]
    fn modules_are_listed_as_vpps_plugins() {
        let all = vec![plugin("interface", None)];
        assert_eq!(
            Plugins { all, paths: Vec::new(), refused: Vec::new() }.to_string(),
            format!(
                " Plugin path is: (built in), plugins shown in load order\n\n     Plugin{:30}Version{:26}Description\n\
                 \x20 1. interface{:27}0.1.0{:28}Interfaces: state\n",
                "", "", "", ""
            )
        );
        assert!(Router::new().run("show plugins").contains("  2. cli"));
    }

    #[test]
    fn plugins_are_listed_with_their_files_and_what_was_refused() {
        let all = vec![plugin("interface", None), plugin("x_plugin.so", Some("/p/x_plugin.so"))];
        let refused = vec!["/p/y.so: why".to_owned()];
        let view = Plugins { all, paths: vec!["/p".into(), "/q".into()], refused };
        let text = view.to_string();
        assert!(text.starts_with(" Plugin path is: /p:/q, "), "{text}");
        assert!(text.contains("  2. x_plugin.so") && text.contains("Interfaces: state (/p/x_plugin.so)\n"));
        assert!(text.ends_with("     refused: /p/y.so: why\n"), "{text}");
        let json = serde_json::to_value(&view).unwrap();
        assert_eq!(json[1]["path"], "/p/x_plugin.so");
        assert!(json[0]["path"].is_null());
    }
}
