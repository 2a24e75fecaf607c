//! The things that are turned. A record names one of these, never a path: what stands in a file decides nothing else.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::TuneError;
use crate::machine::chosen;
use crate::root::Root;

/// Values of [`TunableSetting::Module`].
pub(super) const LOADED: &str = "loaded";
pub(super) const ABSENT: &str = "absent";
/// Modules that may be named.
const MODULES: [&str; 3] = ["vfio", "vfio-pci", "vhost-net"];

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "knob")]
pub(crate) enum TunableSetting {
    /// Pages of 2 MB.
    Hugepages,
    TransparentPages,
    Governor {
        policy: u32,
    },
    NapiDefer {
        interface: String,
    },
    GroFlush {
        interface: String,
    },
    Noiommu,
    Module {
        name: String,
    },
}

impl fmt::Display for TunableSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TunableSetting::Hugepages => f.write_str("vm.nr_hugepages"),
            TunableSetting::TransparentPages => f.write_str("transparent_hugepage/enabled"),
            TunableSetting::Governor { policy } => write!(f, "policy{policy}/scaling_governor"),
            TunableSetting::NapiDefer { interface } => write!(f, "{interface}/napi_defer_hard_irqs"),
            TunableSetting::GroFlush { interface } => write!(f, "{interface}/gro_flush_timeout"),
            TunableSetting::Noiommu => f.write_str("vfio/enable_unsafe_noiommu_mode"),
            TunableSetting::Module { name } => write!(f, "module {name}"),
        }
    }
}

impl TunableSetting {
    /// Whether it is one that we make, and the value one that it takes: records are read from a file.
    pub fn is_sound(&self, value: &str) -> bool {
        let number = value.parse::<u64>().is_ok();
        let word = !value.is_empty() && value.len() <= 32 && value.bytes().all(|b| b.is_ascii_graphic());
        let name = |n: &str| {
            let good = n.bytes().all(|b| b.is_ascii_graphic() && b != b'/' && b != b'\\');
            !n.is_empty() && n.len() < 16 && n != "." && n != ".." && good
        };
        match self {
            TunableSetting::Hugepages => number,
            TunableSetting::TransparentPages => matches!(value, "always" | "madvise" | "never"),
            TunableSetting::Governor { .. } => word,
            TunableSetting::NapiDefer { interface } | TunableSetting::GroFlush { interface } => {
                number && name(interface)
            }
            TunableSetting::Noiommu => matches!(value, "Y" | "N"),
            TunableSetting::Module { name } => {
                MODULES.contains(&name.as_str()) && matches!(value, LOADED | ABSENT)
            }
        }
    }

    fn path(&self) -> PathBuf {
        let net = |interface: &str, file: &str| Path::new("sys/class/net").join(interface).join(file);
        match self {
            TunableSetting::Hugepages => "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages".into(),
            TunableSetting::TransparentPages => "sys/kernel/mm/transparent_hugepage/enabled".into(),
            TunableSetting::Governor { policy } => {
                format!("sys/devices/system/cpu/cpufreq/policy{policy}/scaling_governor").into()
            }
            TunableSetting::NapiDefer { interface } => net(interface, "napi_defer_hard_irqs"),
            TunableSetting::GroFlush { interface } => net(interface, "gro_flush_timeout"),
            TunableSetting::Noiommu => "sys/module/vfio/parameters/enable_unsafe_noiommu_mode".into(),
            TunableSetting::Module { name } => Path::new("sys/module").join(name.replace('-', "_")),
        }
    }

    /// Whether a governor can be had.
    pub fn offers(&self, root: &Root, value: &str) -> bool {
        let list = root.text(self.path().with_file_name("scaling_available_governors")).unwrap_or_default();
        list.split_whitespace().any(|word| word == value)
    }

    /// The value now, in words that `write` takes.
    pub fn read(&self, root: &Root) -> Result<String, String> {
        let path = self.path();
        if let TunableSetting::Module { .. } = self {
            return Ok(if root.is_folder(path) { LOADED } else { ABSENT }.to_owned());
        }
        let text = root.text(&path).ok_or_else(|| format!("{self} cannot be read"))?;
        let value =
            if *self == TunableSetting::TransparentPages { chosen(&text).unwrap_or(text) } else { text };
        if self.is_sound(&value) { Ok(value) } else { Err(format!("{self} has a strange value")) }
    }

    pub fn write(&self, root: &Root, value: &str) -> Result<(), TuneError> {
        if let TunableSetting::Module { name } = self {
            return modprobe(root, name, value == LOADED);
        }
        let path = root.at(self.path());
        let error = |e| TuneError::file(path.clone(), &e);
        let mut file = OpenOptions::new().write(true).truncate(true).open(&path).map_err(error)?;
        // One write: the kernel takes what one call brings as the whole value.
        file.write_all(value.as_bytes()).map_err(error)
    }
}

/// Runs the machine's own modprobe, which knows what a module needs and what is forbidden.
fn modprobe(root: &Root, name: &str, load: bool) -> Result<(), TuneError> {
    let places = ["usr/sbin/modprobe", "sbin/modprobe", "usr/bin/modprobe", "bin/modprobe"];
    let program = places.iter().map(|place| root.at(place)).find(|path| path.exists());
    let Some(program) = program else {
        return Err(TuneError::Modprobe(format!(
            "{name}: there is no modprobe here; it is in the package kmod"
        )));
    };
    let mut command = Command::new(program);
    if !load {
        command.arg("-r");
    }
    let output = command.arg(name).current_dir(root.path()).stdin(Stdio::null()).output();
    let output = output.map_err(|e| TuneError::Modprobe(format!("{name}: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().map(|line| crate::root::plain(line.as_bytes())).unwrap_or_default();
    let way = if load { "" } else { "-r " };
    Err(TuneError::Modprobe(format!("{way}{name} failed: {said}")))
}

/// Whether an error of reading means that there is nothing any more.
pub(super) fn is_gone(root: &Root, knob: &TunableSetting) -> bool {
    let missing = |e: std::io::Error| e.kind() == ErrorKind::NotFound;
    !matches!(knob, TunableSetting::Module { .. })
        && root.at(knob.path()).symlink_metadata().is_err_and(missing)
}
