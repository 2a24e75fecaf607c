//! `show version`.

use std::fmt;
use std::time::SystemTime;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::clock::utc;

/// The release of VPP whose interfaces this router speaks.
const COMPATIBLE: &str = "26.06";

pub(super) const SHOW: Command =
    Command::new("show version [verbose] [cmdline]", "Show version and build", show)
        .examples(&["show version", "sh ver", "show version verbose", "show version cmdline"])
        .doc(
            "The first number is the release of VPP whose interfaces are spoken, the one behind `shoal` is this \
             router's own. Packagers set SHOAL_BUILD_USER, SHOAL_BUILD_HOST and SHOAL_BUILD_DATE when they build; \
             without, the date is that of the program file.",
        );

#[derive(Serialize)]
pub(crate) struct Build {
    pub(crate) version: String,
    shoal: &'static str,
    compatible_with: &'static str,
    built_by: &'static str,
    built_on: &'static str,
    pub(crate) built_at: String,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cmdline: Option<Vec<String>>,
    #[serde(skip)]
    verbose: bool,
}

impl Build {
    pub(crate) fn new() -> Self {
        let file = || std::fs::metadata("/proc/self/exe")?.modified();
        let date = || utc(file().unwrap_or(SystemTime::UNIX_EPOCH));
        Build {
            version: format!("{COMPATIBLE}-shoal-{}", env!("CARGO_PKG_VERSION")),
            shoal: env!("CARGO_PKG_VERSION"),
            compatible_with: COMPATIBLE,
            built_by: option_env!("SHOAL_BUILD_USER").unwrap_or("cargo"),
            built_on: option_env!("SHOAL_BUILD_HOST").unwrap_or("localhost"),
            built_at: option_env!("SHOAL_BUILD_DATE").map_or_else(date, str::to_owned),
            pid: std::process::id(),
            cmdline: None,
            verbose: false,
        }
    }

    fn line(&self) -> String {
        let Build { version, built_by, built_on, built_at, .. } = self;
        format!("vpp v{version} built by {built_by} on {built_on} at {built_at}")
    }
}

/// The first line of `show version`, for banners and `--version`.
pub fn version_line() -> String {
    Build::new().line()
}

fn show(_: &Control, args: &Args) -> Result<Output, CliError> {
    let cmdline = args.has("cmdline").then(|| std::env::args().collect());
    Ok(Output::view(Build { verbose: args.has("verbose"), cmdline, ..Build::new() }))
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.verbose {
            let pid = self.pid.to_string();
            let version = format!("v{}", self.version);
            for (label, value) in [
                ("Version:", version.as_str()),
                ("Compiled by:", self.built_by),
                ("Compile host:", self.built_on),
                ("Compile date:", &self.built_at),
                ("Compiler:", concat!("rustc, at least ", env!("CARGO_PKG_RUST_VERSION"))),
                ("Current PID:", &pid),
            ] {
                writeln!(f, "{label:<25} {value}")?;
            }
        } else {
            writeln!(f, "{}", self.line())?;
        }
        if let Some(words) = &self.cmdline {
            writeln!(f, "{:<25} {}", "Command line:", words.join(" "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;

    #[test]
    fn the_version_holds_vpps_release_and_our_own() {
        let router = Router::new();
        let text = router.run("sh ver");
        let start = format!("vpp v26.06-shoal-{} built by ", env!("CARGO_PKG_VERSION"));
        assert!(text.starts_with(&start), "{text}");
        assert_eq!(text, format!("{}\n", super::version_line()));
        assert!(router.run("show version verbose").contains("\nCurrent PID:              "));
        assert!(router.run("show version cmdline").contains("Command line:             "));
    }
}
