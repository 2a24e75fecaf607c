//! `shoal tune` on small machines: what is turned, recorded, taken back and left alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a test's failure, told at once"
)]

use crate::world;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use world::*;

const RECORD: &str = "var/lib/shoal/tune.json";
const PAGES: &str = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";

fn governors(world: &World, count: u32) {
    for cpu in 0..count {
        let policy = format!("sys/devices/system/cpu/cpufreq/policy{cpu}");
        world.write(
            &format!("{policy}/scaling_governor"),
            if cpu == 1 { "schedutil\n" } else { "powersave\n" },
        );
        world.write(&format!("{policy}/scaling_available_governors"), "performance powersave schedutil\n");
    }
}

fn governor(world: &World, cpu: u32) -> String {
    world.read(&format!("sys/devices/system/cpu/cpufreq/policy{cpu}/scaling_governor"))
}

/// A modprobe that makes and removes the module's folder, and refuses what is named `refused`.
fn modprobe(world: &World) {
    let script = "#!/bin/sh\nremove=no\n[ \"$1\" = -r ] && { remove=yes; shift; }\nname=$(echo \"$1\" | tr - _)\n\
                  [ -e refused ] && { echo \"modprobe: ERROR: no $1 today\" >&2; exit 1; }\n\
                  if [ $remove = yes ]; then rm -r sys/module/$name; else mkdir -p sys/module/$name; fi\n\
                  if [ $name = vfio ] && [ $remove = no ]; then mkdir -p sys/module/vfio/parameters; echo N > sys/module/vfio/parameters/enable_unsafe_noiommu_mode; fi\n";
    world.program("usr/sbin/modprobe", script);
    let modules = "kernel/drivers/vfio/pci/vfio-pci.ko:\nkernel/drivers/vfio/vfio.ko.zst:\nkernel/drivers/vhost/vhost_net.ko:\n";
    world.write("lib/modules/6.12.9-amd64/modules.dep", modules);
}

#[test]
fn without_words_the_subsets_are_listed_and_nothing_is_written() {
    let world = World::new();
    let outcome = world.tune("");
    assert_eq!(outcome.code, 0);
    assert!(
        outcome.out.contains("hugepages     available  reserve 74 pages of 2 MB: vm.nr_hugepages 0 -> 74")
    );
    assert!(outcome.out.contains("thp           fine       transparent huge pages: madvise"));
    assert!(
        outcome.out.contains("governor      not here   no processor here lets its frequency be governed")
    );
    assert!(outcome.out.ends_with("next: sudo shoal tune apply hugepages\n"), "{}", outcome.out);
    let json: serde_json::Value = serde_json::from_str(&world.tune("--json").out).unwrap();
    assert_eq!(json["hugepages"]["state"], "available");
    assert!(!world.path("var").exists());
}

#[test]
fn what_is_applied_is_recorded_and_undone_exactly() {
    let world = World::new();
    world.hugepages("2048", 5, 2);
    world.write(THP, "always madvise [never]\n");
    governors(&world, 3);
    let outcome = world.tune("apply hugepages governor thp");
    assert_eq!((outcome.code, outcome.error.as_str()), (0, ""));
    // Two of five are free, so 72 more make 74.
    assert_eq!(world.read(PAGES), "77");
    assert_eq!(world.read(THP), "madvise");
    assert_eq!(governor(&world, 1), "performance");
    let record: serde_json::Value = serde_json::from_str(&world.read(RECORD)).unwrap();
    assert_eq!(record["entries"][0]["before"], "5");
    assert!(
        world
            .tune("")
            .out
            .contains("governor      applied    policy0/scaling_governor powersave -> performance")
    );

    let outcome = world.tune("undo governor");
    assert_eq!((outcome.code, outcome.error.as_str()), (0, ""));
    assert_eq!((governor(&world, 0), governor(&world, 1)), ("powersave".into(), "schedutil".into()));
    assert_eq!(world.read(PAGES), "77");
    assert_eq!(world.tune("undo").code, 0);
    assert_eq!((world.read(PAGES), world.read(THP)), ("5".into(), "never".into()));
    assert!(!world.path(RECORD).exists(), "nothing is left to undo");
    assert!(world.tune("undo").out.contains("nothing to undo"));
    let twice = world.tune("undo thp");
    assert_eq!(
        (twice.code, twice.error.as_str()),
        (1, "'thp' was not applied by shoal tune: nothing to undo")
    );
}

#[test]
fn a_dry_run_says_and_does_nothing() {
    let world = World::new();
    let outcome = world.tune("apply hugepages --dry-run");
    assert!(outcome.out.contains("would"), "{}", outcome.out);
    assert_eq!(world.read(PAGES), "0");
    assert!(!world.path("var").exists());
    world.tune("apply hugepages");
    let outcome = world.tune("undo --dry-run");
    assert!(outcome.out.contains("vm.nr_hugepages 74 -> 0"), "{}", outcome.out);
    assert_eq!(world.read(PAGES), "74");
    assert!(world.path(RECORD).exists());
}

#[test]
fn never_more_than_a_quarter_of_free_memory_is_taken() {
    let world = World::new();
    world.write("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 81920 kB\n");
    let outcome = world.tune("apply hugepages");
    assert!(
        outcome.out.contains("reserve 10 pages of 2 MB (of 74: a quarter of the free memory)"),
        "{}",
        outcome.out
    );
    assert_eq!(world.read(PAGES), "10");
    world.write("proc/self/cgroup", "0::/\n");
    world.write("sys/fs/cgroup/memory.max", "4194304\n");
    world.tune("undo");
    let outcome = world.tune("apply hugepages");
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.error.contains("a quarter of the free memory is less than one page"),
        "{}",
        outcome.error
    );
}

#[test]
fn what_somebody_else_has_changed_since_is_left_alone() {
    let world = World::new();
    world.tune("apply hugepages");
    world.write(PAGES, "512\n");
    assert!(
        world
            .tune("")
            .out
            .contains("hugepages     changed    vm.nr_hugepages 0 -> 512 (by somebody else since)")
    );
    let outcome = world.tune("undo");
    assert_eq!(outcome.code, 0);
    assert!(outcome.out.contains("left alone"), "{}", outcome.out);
    assert!(outcome.out.contains("vm.nr_hugepages is 512, not our 74"), "{}", outcome.out);
    assert_eq!(world.read(PAGES), "512");
    assert!(!world.path(RECORD).exists());
}

#[test]
fn what_was_before_the_first_of_ours_is_what_comes_back() {
    let world = World::new();
    world.tune("apply hugepages");
    world.hugepages("2048", 74, 10);
    world.tune("apply hugepages");
    assert_eq!(world.read(PAGES), "138");
    world.tune("undo");
    assert_eq!(world.read(PAGES), "0");
    // But what somebody set in between is what was before the second.
    world.hugepages("2048", 0, 0);
    world.tune("apply hugepages");
    world.hugepages("2048", 30, 30);
    world.tune("apply hugepages");
    world.tune("undo");
    assert_eq!(world.read(PAGES), "30");
}

#[test]
fn a_step_that_fails_takes_back_those_before_it() {
    let world = World::new();
    governors(&world, 2);
    modprobe(&world);
    world.write("refused", "");
    let outcome = world.tune("apply governor hugepages vhost-net");
    assert_eq!(outcome.code, 1);
    assert_eq!(
        outcome.error,
        "modprobe vhost-net failed: modprobe: ERROR: no vhost-net today; what was changed before was taken back"
    );
    assert_eq!((governor(&world, 0), governor(&world, 1)), ("powersave".into(), "schedutil".into()));
    assert_eq!(world.read(PAGES), "0");
    assert!(!world.path(RECORD).exists());
}

#[test]
fn a_step_that_fails_leaves_what_was_applied_before() {
    let world = World::new();
    governors(&world, 2);
    modprobe(&world);
    world.tune("apply hugepages");
    world.write("refused", "");
    assert_eq!(world.tune("apply governor vhost-net").code, 1);
    assert_eq!(world.read(PAGES), "74");
    assert_eq!(world.tune("undo").code, 0);
    assert_eq!(world.read(PAGES), "0");
}

#[test]
fn one_impossible_subset_stops_all_before_anything_is_touched() {
    let world = World::new();
    let outcome = world.tune("apply hugepages vfio");
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.error.starts_with("vfio cannot be applied: vfio-pci needs the IOMMU"),
        "{}",
        outcome.error
    );
    assert_eq!(world.read(PAGES), "0");
    assert!(!world.path("var").exists());
}

#[test]
fn modules_are_loaded_and_unloaded_by_the_machines_modprobe() {
    let world = World::new();
    modprobe(&world);
    world.folder("sys/kernel/iommu_groups/1");
    assert_eq!(world.tune("apply vfio vhost-net").error, "");
    assert!(world.path("sys/module/vfio_pci").is_dir() && world.path("sys/module/vhost_net").is_dir());
    let refused = world.tune("apply vfio-noiommu");
    assert!(refused.error.contains("the IOMMU is on"), "{}", refused.error);
    assert_eq!(world.tune("undo").code, 0);
    assert!(!world.path("sys/module/vfio_pci").exists());
}

#[test]
fn no_iommu_is_asked_for_by_name_and_warns() {
    let world = World::new();
    modprobe(&world);
    assert!(!world.tune("").out.lines().last().unwrap().contains("noiommu"), "never proposed");
    let outcome = world.tune("apply vfio-noiommu");
    assert_eq!(outcome.error, "");
    assert!(outcome.out.contains("can write all memory"), "{}", outcome.out);
    assert_eq!(world.read("sys/module/vfio/parameters/enable_unsafe_noiommu_mode"), "Y");
    assert!(world.path("sys/module/vfio_pci").is_dir());
    assert_eq!(world.tune("undo vfio-noiommu").code, 0);
    assert!(!world.path("sys/module/vfio").exists() && !world.path("sys/module/vfio_pci").exists());
}

#[test]
fn only_ports_that_are_not_left_alone_are_polled() {
    let mut world = World::new();
    for (name, bus) in [("eth0", "0000:01:00.0"), ("eth1", "0000:02:00.0")] {
        let port = world.card(name, bus, (0x8086, 0x125c), "igc", "");
        fs::write(port.join("napi_defer_hard_irqs"), "0").unwrap();
        fs::write(port.join("gro_flush_timeout"), "0").unwrap();
    }
    world.default4("eth0");
    assert_eq!(world.tune("apply busy-poll").error, "");
    assert_eq!(world.read("sys/class/net/eth1/gro_flush_timeout"), "200000");
    assert_eq!(world.read("sys/class/net/eth1/napi_defer_hard_irqs"), "2");
    assert_eq!(world.read("sys/class/net/eth0/gro_flush_timeout"), "0");
    // The card is pulled out: nothing is left to put back.
    fs::remove_dir_all(world.path("sys/devices/pci0000:00/0000:02:00.0")).unwrap();
    let outcome = world.tune("undo");
    assert_eq!(outcome.code, 0);
    assert!(outcome.out.contains("is not there any more"), "{}", outcome.out);
    assert!(!world.path(RECORD).exists());
}

#[test]
fn files_for_the_boot_are_written_when_asked_and_removed_by_undo() {
    const SYSCTL: &str = "etc/sysctl.d/90-shoal-hugepages.conf";
    let world = World::new();
    let refused = world.tune("apply thp --persist");
    assert!(refused.error.starts_with("thp cannot be kept over a boot"), "{}", refused.error);
    let outcome = world.tune("apply hugepages --persist");
    assert!(
        outcome.out.contains("at each boot, by /etc/sysctl.d/90-shoal-hugepages.conf"),
        "{}",
        outcome.out
    );
    assert!(world.read(SYSCTL).ends_with("vm.nr_hugepages = 74"));
    assert_eq!(world.tune("undo").code, 0);
    assert!(!world.path(SYSCTL).exists());
    // One that somebody has edited stays.
    world.tune("apply hugepages --persist");
    let edited = world.read(SYSCTL) + "\nvm.swappiness = 1\n";
    world.write(SYSCTL, &edited);
    let outcome = world.tune("undo");
    assert!(outcome.out.contains("was changed since: left alone"), "{}", outcome.out);
    assert!(world.path(SYSCTL).exists());
    // And one that was never ours is not written over.
    world.write(SYSCTL, "vm.nr_hugepages = 9\n");
    let outcome = world.tune("apply hugepages --persist");
    assert!(outcome.error.contains("is not ours"), "{}", outcome.error);
    assert_eq!(world.read(PAGES), "0");
}

#[test]
fn a_file_for_the_boot_that_cannot_be_written_takes_back_the_rest() {
    const SYSCTL: &str = "etc/sysctl.d/90-shoal-hugepages.conf";
    let world = World::new();
    world.write("etc/sysctl.d", "a file, not a folder");
    let outcome = world.tune("apply hugepages --persist");
    assert_eq!(outcome.code, 1);
    assert_eq!(world.read(PAGES), "0");
    assert!(!world.path(RECORD).exists(), "{}", outcome.error);
    fs::remove_file(world.path("etc/sysctl.d")).unwrap();
    // One of an earlier run comes back as it was.
    assert_eq!(world.tune("apply hugepages --persist").code, 0);
    let before = world.read(SYSCTL);
    modprobe(&world);
    world.hugepages("2048", 74, 10);
    world.folder("etc/modules-load.d/shoal-vhost-net.conf.new");
    assert_eq!(world.tune("apply hugepages vhost-net --persist").code, 1);
    assert_eq!((world.read(SYSCTL), world.read(PAGES)), (before, "74".into()));
    assert!(!world.path("sys/module/vhost_net").exists());
    assert_eq!(world.tune("undo").code, 0);
    assert!(!world.path(SYSCTL).exists());
    assert_eq!(world.read(PAGES), "0");
}

#[test]
fn a_run_that_died_half_way_can_be_undone() {
    let world = World::new();
    world.write(PAGES, "31\n");
    world.write(
        RECORD,
        r#"{"version":1,"entries":[{"subset":"hugepages","knob":"hugepages","before":"0","wanted":"74","reached":null}]}"#,
    );
    assert!(world.tune("").out.contains("hugepages     applied"));
    assert_eq!(world.tune("undo").code, 0);
    assert_eq!(world.read(PAGES), "0");
}

#[test]
fn a_record_that_is_not_ours_stops_everything() {
    let world = World::new();
    let bad = [
        "",
        "{",
        "[]",
        "\u{0}\u{1}",
        r#"{"version":2,"entries":[]}"#,
        r#"{"version":1,"entries":[{"subset":"thp","knob":"file","before":"a","wanted":"b","reached":null}]}"#,
        r#"{"version":1,"entries":[{"subset":"busy-poll","knob":"napi-defer","interface":"../../etc","before":"0","wanted":"2","reached":"2"}]}"#,
        r#"{"version":1,"entries":[{"subset":"vfio","knob":"module","name":"evil","before":"absent","wanted":"loaded","reached":"loaded"}]}"#,
        r#"{"version":1,"entries":[{"subset":"thp","knob":"transparent-pages","before":"rm","wanted":"madvise","reached":"madvise"}]}"#,
    ];
    for text in bad {
        world.write(RECORD, text);
        for words in ["", "apply hugepages", "undo"] {
            let outcome = world.tune(words);
            assert_eq!(outcome.code, 1, "{words}: {text}");
            assert!(outcome.error.contains("is no record of ours"), "{}", outcome.error);
        }
        assert_eq!(world.read(PAGES), "0");
        world.doctor();
    }
    fs::remove_file(world.path(RECORD)).unwrap();
    world.folder(RECORD);
    assert!(world.tune("undo").error.contains("it is not a file"));
}

#[test]
fn two_at_once_do_not_meet() {
    let world = World::new();
    world.folder("var/lib/shoal");
    let folder = fs::File::open(world.path("var/lib/shoal")).unwrap();
    folder.lock().unwrap();
    assert_eq!(world.tune("apply hugepages").error, "another `shoal tune` is at work");
    assert_eq!(world.read(PAGES), "0");
}

#[test]
fn whoever_may_not_write_is_told_and_nothing_is_half_done() {
    let world = World::new();
    world.folder("var/lib/shoal");
    fs::set_permissions(world.path("var/lib/shoal"), fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(world.path("var/lib/shoal/probe"), "").is_ok() {
        println!("SKIP whoever_may_not_write_is_told_and_nothing_is_half_done: root may write everywhere");
        return;
    }
    let outcome = world.tune("apply hugepages");
    assert!(outcome.error.contains("needs root: sudo shoal tune"), "{}", outcome.error);
    assert_eq!(world.read(PAGES), "0");
}

#[test]
fn mistakes_in_the_words_are_named() {
    let world = World::new();
    for (words, said) in [
        ("aply", "unknown word 'aply'; shoal tune --help lists them"),
        ("apply", "apply needs the name of a subset: hugepages, thp"),
        ("apply hugepage", "did you mean 'hugepages'?"),
        ("undo x", "'x' is no subset, which are hugepages, thp"),
        ("--persist", "--persist goes with apply"),
        ("apply thp --force", "unknown word '--force'"),
        ("apply \x1b[2Jé", "\\x1b[2J\\xc3\\xa9"),
    ] {
        let outcome = world.tune(words);
        assert_eq!((outcome.code, outcome.out.as_str()), (2, ""), "{words}");
        assert!(outcome.error.contains(said), "{}", outcome.error);
    }
    assert!(world.tune("--help").out.contains("usage: shoal tune"));
}
