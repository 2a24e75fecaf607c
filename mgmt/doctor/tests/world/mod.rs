//! Machines as small trees in temporary folders.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;
use shoal_doctor::{Build, Outcome, Surroundings, doctor, tune};

/// Everything this build could have.
pub const ALL: Build = Build { af_packet: true, af_xdp: true, tap: true, memif: true, dpdk: false };
/// A build of today's drivers.
pub const PLAIN: Build = Build { af_packet: true, af_xdp: false, tap: true, memif: false, dpdk: false };

pub struct World {
    pub dir: tempfile::TempDir,
    pub around: Surroundings,
    ports: u32,
}

impl World {
    /// A kernel with two cores and 4 GB, nothing more.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let around =
            Surroundings { root: dir.path().to_owned(), ssh_connection: None, build: ALL, terminal: false };
        let world = Self { dir, around, ports: 0 };
        world.write("proc/sys/kernel/osrelease", "6.12.9-amd64\n");
        world.write("proc/net/protocols", "protocol  size\nPACKET 1600\nXDP 1088\n");
        world.write("proc/sys/net/core/bpf_jit_enable", "1\n");
        world.write("proc/sys/kernel/unprivileged_bpf_disabled", "2\n");
        world
            .write("proc/meminfo", "MemTotal:  4194304 kB\nMemFree: 1000000 kB\nMemAvailable:  2097152 kB\n");
        world.status(0, 0x1ff_ffff_ffff, "0-1");
        world.write(
            "proc/self/limits",
            "Limit  Soft  Hard Units\nMax locked memory   unlimited  unlimited  bytes\n",
        );
        world.write("proc/cpuinfo", "processor : 0\nflags\t\t: fpu vme\n");
        world.write("sys/devices/system/cpu/online", "0-1\n");
        world.write("sys/devices/system/cpu/isolated", "\n");
        world.hugepages("2048", 0, 0);
        world.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        world.write("dev/net/tun", "");
        world.folder("sys/bus/pci/devices");
        world.folder("sys/kernel/iommu_groups");
        world.write(
            "proc/net/route",
            "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n",
        );
        world
    }

    pub fn path(&self, inner: &str) -> PathBuf {
        self.dir.path().join(inner)
    }

    pub fn write(&self, inner: &str, text: impl AsRef<[u8]>) {
        let path = self.path(inner);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, inner: &str) -> String {
        fs::read_to_string(self.path(inner)).unwrap().trim().to_owned()
    }

    pub fn folder(&self, inner: &str) {
        fs::create_dir_all(self.path(inner)).unwrap();
    }

    pub fn link(&self, inner: &str, to: &str) {
        let path = self.path(inner);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    pub fn program(&self, inner: &str, text: &str) {
        self.write(inner, text);
        fs::set_permissions(self.path(inner), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn status(&self, uid: u32, capabilities: u64, cores: &str) {
        let text = format!(
            "Name:\tshoal\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{capabilities:016x}\nCpus_allowed_list:\t{cores}\n"
        );
        self.write("proc/self/status", text);
    }

    pub fn hugepages(&self, size: &str, total: u64, free: u64) {
        let dir = format!("sys/kernel/mm/hugepages/hugepages-{size}kB");
        self.write(&format!("{dir}/nr_hugepages"), format!("{total}\n"));
        self.write(&format!("{dir}/free_hugepages"), format!("{free}\n"));
    }

    /// An interface without a device; `name` may be anything a folder can be called.
    pub fn port(&mut self, name: impl AsRef<std::ffi::OsStr>) -> PathBuf {
        self.ports += 1;
        let dir = self.path("sys/class/net").join(name.as_ref());
        fs::create_dir_all(dir.join("queues/rx-0")).unwrap();
        fs::create_dir_all(dir.join("queues/tx-0")).unwrap();
        let index = self.ports.to_string();
        let files =
            [("type", "1"), ("flags", "0x1003"), ("operstate", "up"), ("mtu", "1500"), ("uevent", "")];
        for (file, text) in files.into_iter().chain([("ifindex", index.as_str()), ("iflink", index.as_str())])
        {
            fs::write(dir.join(file), text).unwrap();
        }
        fs::write(dir.join("address"), "02:00:00:00:00:01").unwrap();
        dir
    }

    /// A network card: its PCI device, driver and interface. `below` is what stands between (a virtio device).
    pub fn card(&mut self, name: &str, bus: &str, ids: (u32, u32), driver: &str, below: &str) -> PathBuf {
        let device = format!("sys/devices/pci0000:00/{bus}");
        self.write(&format!("{device}/vendor"), format!("0x{:04x}\n", ids.0));
        self.write(&format!("{device}/device"), format!("0x{:04x}\n", ids.1));
        self.write(&format!("{device}/class"), "0x020000\n");
        self.link(&format!("sys/bus/pci/devices/{bus}"), &format!("../../../devices/pci0000:00/{bus}"));
        let of_net = format!("{device}{below}");
        self.folder(&format!("sys/bus/drivers/{driver}"));
        if !driver.is_empty() {
            let up = "../".repeat(of_net.split('/').count() - 1);
            self.link(&format!("{of_net}/driver"), &format!("{up}bus/drivers/{driver}"));
        }
        let port = self.port(name);
        let home = self.path(&format!("{of_net}/net/{name}"));
        fs::create_dir_all(home.parent().unwrap()).unwrap();
        fs::rename(&port, &home).unwrap();
        symlink(format!("../../{}/net/{name}", of_net.trim_start_matches("sys/")), &port).unwrap();
        symlink("../..", home.join("device")).unwrap();
        port
    }

    /// An IPv4 default route, and the network of the interface.
    pub fn default4(&self, name: &str) {
        let text = format!(
            "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
             {name} 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n\
             {name} 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"
        );
        self.write("proc/net/route", text);
    }

    pub fn default6(&self, name: &str) {
        let zero = "0".repeat(32);
        let gateway = "fe80000000000000000000000000000a";
        self.write(
            "proc/net/ipv6_route",
            format!(
                "{zero} 00 {zero} 00 {gateway} 00000400 00000003 00000000 00000003 {name}\n\
                 {zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 lo\n"
            ),
        );
    }

    pub fn doctor(&self) -> String {
        let outcome = doctor(&[], &self.around);
        assert_eq!((outcome.code, outcome.error.as_str()), (0, ""));
        for line in outcome.out.lines() {
            assert!(line.chars().count() <= 100, "too long: {line}");
            assert!(line.bytes().all(|b| (b' '..=b'~').contains(&b)), "not plain: {line:?}");
        }
        outcome.out
    }

    pub fn json(&self) -> Value {
        let outcome = doctor(&["--json".into()], &self.around);
        assert_eq!((outcome.code, outcome.error.as_str()), (0, ""));
        serde_json::from_str(&outcome.out).unwrap()
    }

    pub fn tune(&self, words: &str) -> Outcome {
        let words: Vec<OsString> = words.split_whitespace().map(Into::into).collect();
        let outcome = tune(&words, &self.around);
        for line in outcome.out.lines() {
            assert!(words.iter().any(|w| w == "--json") || line.chars().count() <= 100, "too long: {line}");
        }
        outcome
    }
}

pub fn with_speed(port: &Path, mbit: i32) {
    fs::write(port.join("speed"), format!("{mbit}\n")).unwrap();
}

pub fn with_queues(port: &Path, count: u32) {
    for i in 0..count {
        fs::create_dir_all(port.join(format!("queues/rx-{i}"))).unwrap();
        fs::create_dir_all(port.join(format!("queues/tx-{i}"))).unwrap();
    }
}

/// The port of a name in a report.
pub fn port<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["ports"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

/// The command of a way that begins so.
pub fn way<'a>(port: &'a Value, name: &str) -> &'a Value {
    port["ways"].as_array().unwrap().iter().find(|w| w["name"].as_str().unwrap().starts_with(name)).unwrap()
}

/// A finding by its name.
pub fn finding<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

/// The lines of a report from one that has `start` on.
pub fn lines_from(text: &str, start: &str, count: usize) -> Vec<String> {
    text.lines().skip_while(|line| !line.contains(start)).take(count).map(|l| l.trim().to_owned()).collect()
}
