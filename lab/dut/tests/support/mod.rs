//! A lab of one test: a prefix of its own, so that tests beside it are not seen, and a look for what is left.
#![allow(dead_code, reason = "not every test file needs all of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_lab_dut::{Settings, device};
use shoal_lab_plan::{Addresses, Attachment, Device, Forwarding, Ports, Scenario};

/// Datagrams of a probe.
pub const PROBE: u32 = 320;

pub struct Lab {
    settings: Settings,
    folder: tempfile::TempDir,
}

impl Lab {
    /// `None`, and the test is named as skipped, without the power to make namespaces.
    pub fn begin(test: &str) -> Option<Lab> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        if !nix::unistd::geteuid().is_root() {
            println!("SKIP {test}: needs root, or `scripts/in-namespace.sh`");
            return None;
        }
        let prefix = format!("slldut{}x{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
        let probe = Command::new("ip").args(["netns", "add", &format!("{prefix}-try")]).output();
        if !probe.is_ok_and(|out| out.status.success()) {
            println!("SKIP {test}: no network namespaces here");
            return None;
        }
        ip_raw(&["netns", "delete", &format!("{prefix}-try")]);
        let folder = tempfile::Builder::new().prefix("slldut").tempdir().unwrap();
        let settings = Settings {
            prefix,
            folder: folder.path().to_owned(),
            probe: PROBE,
            shoal: std::env::var_os("SHOAL").map(PathBuf::from),
            ..Settings::default()
        };
        Some(Lab { settings, folder })
    }

    pub fn device(&self, name: &str) -> Box<dyn Device> {
        device(name, &self.settings).unwrap()
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn prefix(&self) -> &str {
        &self.settings.prefix
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Fails if a namespace or a file of this lab is left.
    pub fn left_nothing(&self) {
        let names = |folder: &Path| -> Vec<String> {
            std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|e| e.file_name().into_string().ok())
                .collect()
        };
        let namespaces: Vec<String> = names(Path::new("/run/netns"))
            .into_iter()
            .filter(|n| n.starts_with(&self.settings.prefix))
            .collect();
        assert_eq!(namespaces, [] as [&str; 0]);
        assert_eq!(names(self.folder.path()), [] as [&str; 0]);
        for folder in ["/dev/hugepages", "/run/dpdk", "/var/run/dpdk"] {
            let files: Vec<String> =
                names(Path::new(folder)).into_iter().filter(|n| n.contains(&self.settings.prefix)).collect();
            assert_eq!(files, [] as [&str; 0], "in {folder}");
        }
        assert_eq!(processes(&self.settings.prefix), [] as [&str; 0]);
    }
}

/// Command lines of processes that name this prefix.
pub fn processes(prefix: &str) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().chars().all(|c| c.is_ascii_digit()))
        .filter_map(|e| std::fs::read(e.path().join("cmdline")).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        .filter(|line| line.contains(prefix))
        .collect()
}

pub fn scenario(forwarding: Forwarding) -> Scenario {
    Scenario { forwarding, addresses: Addresses::default(), networks: 1, routes: 0, workers: 1, mtu: 1500 }
}

/// The probe's notes: all that was sent arrived, in as many directions as there are.
pub fn assert_all_passed(notes: &[String]) {
    let probes: Vec<&String> = notes.iter().filter(|n| n.starts_with("probe: IP")).collect();
    assert_eq!(probes.len(), 4, "{notes:#?}");
    for probe in probes {
        assert!(probe.contains(&format!(": {PROBE} of {PROBE} arrived")), "{probe}");
    }
}

/// The namespace of the tester's left end.
pub fn namespace_of(ports: &Ports) -> String {
    match &ports.left.attachment {
        Attachment::Interface { namespace: Some(path), .. } => {
            path.file_name().unwrap().to_str().unwrap().to_owned()
        }
        other => panic!("{other:?}"),
    }
}

/// What `ip` says in a namespace.
pub fn ip(namespace: &str, words: &str) -> String {
    let mut all = vec!["-n", namespace];
    all.extend(words.split_whitespace());
    ip_raw(&all)
}

pub fn ip_raw(words: &[&str]) -> String {
    let out = Command::new("ip").args(words).output().unwrap();
    assert!(out.status.success(), "ip {words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}
