//! Start-up text in, typed settings or the exact message out.
#![allow(clippy::panic, clippy::expect_used)] // helpers of tests

use proptest::prelude::*;
use shoal_config::{CliListen, Group, Machine, Source, StartUp, check, markdown};
use shoal_module::config::{Body, Effect, Key, Kind, PageSize, Section};
use std::path::PathBuf;
use std::time::Duration;

fn machine() -> Machine {
    Machine { cores: (0..4).collect(), allowed: vec![2, 3], numa_nodes: vec![0], uid: 0, as_vpp: false }
}

fn read(text: &str) -> StartUp {
    check(&[Source::file("f", text)], &[], &machine()).unwrap_or_else(|report| panic!("{report}"))
}

/// The mistakes of `text`, each on a line as the operator sees it, without source lines and carets.
#[track_caller]
fn wrong(text: &str, expected: &[&str]) {
    let report = check(&[Source::file("f", text)], &[], &machine()).expect_err("there is a mistake");
    let lines: Vec<_> =
        report.problems.iter().map(|p| format!("{}:{}: {}", p.at.line, p.at.column, p.message)).collect();
    assert_eq!(lines, expected);
}

#[test]
fn an_empty_text_gives_the_defaults() {
    let s = read("");
    assert_eq!(s.unix.cli_listen, CliListen::Path("/run/shoal/cli.sock".into()));
    assert_eq!(s.socksvr.socket, PathBuf::from("/run/shoal/api.sock"));
    assert_eq!(s.statseg.socket, PathBuf::from("/run/shoal/stats.sock"));
    assert_eq!((s.statseg.size, s.statseg.update_interval), (32 << 20, Duration::from_secs(10)));
    assert_eq!((s.unix.cli_history_limit, s.unix.nodaemon, s.unix.exec.clone()), (50, false, None));
    assert_eq!((s.cpu.main_core, s.cpu.workers.len()), (None, 0));
    assert_eq!((s.logging.size, s.logging.level.as_str()), (512, "notice"));
    assert!(s.plugins.enabled("ping"));
    assert_eq!(s.warning(), None);
}

#[test]
fn every_honoured_setting_arrives() {
    let s = read(
        r#"unix { interactive log /l exec /a startup-config /b cli-prompt "a b" cli-no-banner cli-no-pager
                  cli-history-limit 7 runtime-dir /r pidfile p gid 12 poll-sleep-usec 100 nocolor nobanner nosyslog
                  cli-listen localhost:5002 }
           cpu { main-core 1 corelist-workers 2,3 thread-prefix sh scheduler-policy fifo scheduler-priority 50 }
           buffers { buffers-per-numa 16384 default data-size 4096 page-size 2M preallocated numa 0 { buffers 1024 } }
           memory { }
           statseg { size 64m page-size default-hugepage per-node-counters on update-interval 0.5 }
           socksvr { socket-name /s/api.sock }
           logging { size 100 default-log-level error default-syslog-log-level crit class nat44 { level debug } }
           plugins { path /p add-path /q plugin default { disable } plugin ping_plugin.so {enable} }"#,
    );
    let u = &s.unix;
    assert!(
        u.interactive
            && u.nodaemon
            && u.cli_no_banner
            && u.cli_no_pager
            && u.nocolor
            && u.nobanner
            && u.nosyslog
    );
    assert_eq!((u.exec.clone(), u.log.clone()), (Some("/b".into()), Some("/l".into())));
    assert_eq!((u.pidfile.clone(), u.gid.clone()), (Some("/r/p".into()), Some(Group::Id(12))));
    assert_eq!(u.cli_listen, CliListen::Tcp("localhost:5002".into()));
    assert_eq!((u.cli_prompt.as_deref(), u.poll_sleep), (Some("a b"), Duration::from_micros(100)));
    assert_eq!((s.cpu.main_core, s.cpu.workers), (Some(1), vec![Some(2), Some(3)]));
    assert_eq!((s.cpu.scheduler_policy.as_deref(), s.cpu.scheduler_priority), (Some("fifo"), Some(50)));
    assert_eq!((s.buffers.per_numa, s.buffers.data_size), (Some(16_384), Some(4096)));
    assert_eq!((s.buffers.page_size, s.buffers.numa[&0]), (Some(PageSize::Bytes(2 << 20)), 1024));
    assert_eq!((s.statseg.size, s.statseg.page_size), (64 << 20, PageSize::DefaultHuge));
    assert_eq!((s.statseg.socket, s.socksvr.socket), ("/r/stats.sock".into(), "/s/api.sock".into()));
    assert_eq!(
        (s.logging.level.as_str(), s.logging.classes["nat44"].level.as_deref()),
        ("err", Some("debug"))
    );
    assert_eq!(s.plugins.paths, [PathBuf::from("/p"), "/q".into()]);
    assert!(s.plugins.enabled("ping") && !s.plugins.enabled("pg"));
}

#[test]
fn the_words_of_automation_are_understood() {
    let words = [
        "unix",
        "{",
        "nodaemon",
        "nosyslog",
        "",
        "full-coredump",
        "coredump-size unlimited",
        "runtime-dir",
        "/t",
        "cli-listen ",
        "/t/cli.sock",
        " ",
        "}",
        "api-trace",
        "{",
        "on",
        "}",
        "api-segment",
        "{",
        "prefix",
        "vpp-unittest-X",
        "}",
        "cpu",
        "{",
        "main-core",
        "1",
        "corelist-workers",
        "2,3",
        "}",
        "physmem",
        "{",
        "max-size",
        "32m",
        "}",
        "statseg",
        "{",
        "socket-name",
        "/t/stats.sock",
        "per-node-counters onupdate-interval 0.05",
        "}",
        "socksvr",
        "{",
        "socket-name",
        "/t/api.sock",
        "}",
        "node { ",
        "",
        "}",
        "api-fuzz {",
        "off",
        "}",
        "plugins",
        "{",
        "plugin",
        "dpdk_plugin.so",
        "{",
        "disable",
        "}",
        "plugin",
        "npt66_plugin.so",
        "{enable}",
        "plugin",
        "no_such_plugin.so",
        "{",
        "enable",
        "}",
        "}",
        "session",
        "{",
        "enable",
        "poll-main",
        "}",
        "cnat { session-cleanup-timeout 0.1 }",
        "quic { enable-vnet-crypto }",
    ];
    let s = check(&[Source::words(words)], &[], &machine()).unwrap();
    assert_eq!(s.unix.cli_listen, CliListen::Path("/t/cli.sock".into()));
    assert!(s.statseg.per_node_counters);
    assert_eq!(s.statseg.update_interval, Duration::from_millis(50));
    assert_eq!(s.cpu.workers, [Some(2), Some(3)]);
    assert_eq!(
        s.warning().unwrap(),
        "start-up settings without effect here: unix full-coredump, unix coredump-size, physmem, node, api-fuzz, session, cnat, quic"
    );
}

#[test]
fn white_space_between_a_word_and_the_next_may_be_missing() {
    let s = read(
        "unix{nodaemonnosyslogexec/a}cpu{workers2skip-cores1}statseg{per-node-countersoffupdate-interval0.5}",
    );
    assert!(s.unix.nodaemon && s.unix.nosyslog && !s.statseg.per_node_counters);
    assert_eq!(s.unix.exec, Some("/a".into()));
    assert_eq!((s.cpu.main_core, s.cpu.workers), (Some(1), vec![Some(2), Some(3)]));
    assert_eq!(s.statseg.update_interval, Duration::from_millis(500));
}

#[test]
fn a_very_long_word_is_a_mistake_at_once() {
    let long = "nodaemon".repeat(500_000);
    wrong(
        &format!("unix {{ {long} }}"),
        &[&format!("1:8: unix has no setting '{}...'; did you mean 'nodaemon'?", &long[..40])],
    );
}

#[test]
fn repeated_stanzas_are_joined_and_the_last_value_counts() {
    let s = read("unix { nodaemon log /a } cpu { workers 1 } unix { log /b }\n cpu { workers 2 }");
    assert!(s.unix.nodaemon);
    assert_eq!((s.unix.log, s.cpu.workers.len()), (Some("/b".into()), 2));
}

#[test]
fn later_sources_win_over_earlier_ones() {
    let sources = [Source::file("f", "cpu { workers 1 } # }"), Source::words(["cpu", "{ workers", "2 }"])];
    assert_eq!(check(&sources, &[], &machine()).unwrap().cpu.workers.len(), 2);
}

#[test]
fn single_values_stand_without_braces() {
    let s = read("heapsize 2G ip6 { heap-size 1g } unix nodaemon");
    assert!(s.unix.nodaemon);
    assert_eq!(s.section("heapsize").u64("heapsize"), Some(2 << 30));
    assert_eq!(s.warning().unwrap(), "start-up settings without effect here: heapsize, ip6");
}

#[test]
fn more_workers_than_free_cores_float() {
    let one = Machine { cores: vec![0], allowed: vec![0], numa_nodes: vec![0], uid: 1000, as_vpp: false };
    let s = check(&[Source::file("f", "cpu { workers 1 }")], &[], &one).unwrap();
    assert_eq!((s.cpu.main_core, s.cpu.workers), (None, vec![Some(0)]));
    assert_eq!(s.unix.runtime_dir, PathBuf::from("/run/user/1000/shoal"));
    let s = read("cpu { workers 4 skip-cores 2 main-core auto }");
    assert_eq!((s.cpu.main_core, s.cpu.workers), (Some(2), vec![Some(3), None, None, None]));
}

#[test]
fn relative_counts_the_cores_of_this_process() {
    let s = read("cpu { relative main-core 0 corelist-workers 1 }");
    assert_eq!((s.cpu.main_core, s.cpu.workers), (Some(2), vec![Some(3)]));
    wrong(
        "cpu { relative main-core 2 }",
        &["1:26: main-core names core 2, but this process may use only 2 cores"],
    );
}

#[test]
fn all_mistakes_are_in_one_message_with_line_and_caret() {
    let text = "unix {\n\tnodeamon\n}\ncpus { workers 1 }\nstatseg { size big }\n";
    let report = check(&[Source::file("startup.conf", text)], &[], &machine()).unwrap_err();
    let expected = "\
3 mistakes in the start-up configuration, nothing was started
startup.conf:2:2: unix has no setting 'nodeamon'; did you mean 'nodaemon'?
 2 |  nodeamon
   |  ^^^^^^^^
startup.conf:4:1: unknown section 'cpus'; did you mean 'cpu'?
 4 | cpus { workers 1 }
   | ^^^^
startup.conf:5:16: size needs a size such as 32m or 2g, not 'big'
 5 | statseg { size big }
   |                ^^^";
    assert_eq!(report.to_string(), expected);
}

#[test]
fn a_long_line_is_cut_around_the_mistake() {
    let words = std::iter::repeat_n("plugin x {enable}", 20).collect::<Vec<_>>().join(" ");
    let text = format!("plugins {{ {words} plugn y {words} }}");
    let report = check(&[Source::words([&text])], &[], &machine()).unwrap_err().to_string();
    let lines: Vec<_> = report.lines().collect();
    assert_eq!(lines[1], "command line:1:371: plugins has no setting 'plugn'; did you mean 'plugin'?");
    assert!(lines[2].len() < 120, "{report}");
    assert_eq!(lines[2].find("plugn"), lines[3].find("^^^^^"), "{report}");
}

#[test]
fn mistakes_of_form() {
    wrong("unix {", &["1:6: this brace is never closed"]);
    wrong("unix { } }", &["1:10: this brace closes nothing"]);
    wrong("{ nodaemon }", &["1:1: this block has no name before it"]);
    wrong("unix { cli-prompt \"a\n}", &["1:19: this quote is not closed on its line"]);
    wrong(&"a{".repeat(40), &["1:66: braces are nested deeper than 32"]);
    wrong("unix", &["1:1: unix needs a block { ... }"]);
    wrong("heapsize", &["1:1: heapsize needs a size such as 32m or 2g"]);
    wrong("heapsize { 1g 2g }", &["1:10: heapsize needs a size such as 32m or 2g"]);
    wrong("unix { { } }", &["1:8: this block stands where unix has a setting"]);
    let report = check(&[Source::file("f", b"unix {\n \xff }".to_vec())], &[], &machine()).unwrap_err();
    assert!(report.to_string().contains("f:2:2: this byte is not UTF-8 text"), "{report}");
}

#[test]
fn unknown_words_name_the_nearest_or_their_right_place() {
    wrong("nodaemon", &["1:1: unknown section 'nodaemon'; it is a setting of unix { ... }"]);
    wrong("zebra { a b } cpu { workers 1 }", &["1:1: unknown section 'zebra'"]);
    wrong("\"unix\" { }", &["1:1: unknown section 'unix'; did you mean 'unix'?"]);
    wrong(
        "unix { workers 2 nodaemon }",
        &["1:8: unix has no setting 'workers'; it is a setting of cpu { ... }"],
    );
    wrong("socksvr { off }", &["1:11: socksvr has no setting 'off'; it has socket-name, default"]);
    wrong(
        "plugins { plugin a { enabled } }",
        &["1:22: plugins plugin has no setting 'enabled'; did you mean 'enable'?"],
    );
    wrong("unix { workersx { a } b c nodaemonx }", &["1:8: unix has no setting 'workersx'"]);
    wrong("unix { nodaemon yes }", &["1:17: unix has no setting 'yes'"]);
}

#[test]
fn wrong_values_say_what_was_expected() {
    wrong("cpu { workers }", &["1:7: workers needs a number"]);
    wrong("cpu { workers two }", &["1:15: workers needs a number, not 'two'"]);
    wrong("cpu { workers main-core 1 }", &["1:15: workers needs a number, not 'main-core'"]);
    wrong("cpu { workers { 2 } }", &["1:15: workers needs a number, not a block"]);
    wrong("cpu { workers 256 }", &["1:15: workers must be at most 255, not 256"]);
    wrong("unix { nodaemon { } }", &["1:17: nodaemon takes no block"]);
    wrong("unix { log }", &["1:8: log needs a path"]);
    wrong("buffers { buffers-per-numa 1 }", &["1:28: buffers-per-numa must be from 512 to 268435456, not 1"]);
    wrong(
        "buffers { page-size 3k }",
        &["1:21: page-size needs a page size such as default, default-hugepage or 2m, not '3k'"],
    );
    wrong("statseg { size 1k }", &["1:16: size must be from 1m to 1t, not 1k"]);
    wrong("statseg { per-node-counters of }", &["1:29: per-node-counters needs on or off, not 'of'"]);
    wrong(
        "statseg { update-interval 0 }",
        &["1:27: update-interval must be from 0.001 to 86400 seconds, not 0"],
    );
    wrong(
        "statseg { update-interval nan }",
        &["1:27: update-interval needs a time in seconds such as 0.5, not 'nan'"],
    );
    wrong(
        "logging { default-log-level warning }",
        &[
            "1:29: default-log-level needs one of emerg, alert, crit, err, error, warn, notice, info, debug, disabled, not 'warning'; did you mean 'warn'?",
        ],
    );
    wrong(
        "cpu { corelist-workers 3-1 }",
        &["1:24: corelist-workers needs a list of cores such as 1,3-5, not '3-1'"],
    );
    wrong("cpu { main-core one }", &["1:17: main-core needs a core number or auto, not 'one'"]);
}

#[test]
fn settings_must_fit_each_other_and_the_machine() {
    wrong("cpu { main-core 9 }", &["1:17: main-core names core 9, but this machine has cores 0-3"]);
    wrong(
        "cpu { corelist-workers 2-5 }",
        &["1:24: corelist-workers names cores 4-5, but this machine has cores 0-3"],
    );
    wrong(
        "cpu { main-core 1 corelist-workers 1,2 }",
        &["1:36: core 1 is the main thread's (main-core), a worker cannot have it too"],
    );
    wrong(
        "cpu { workers 1 corelist-workers 1,2 }",
        &["1:15: workers 1 does not fit corelist-workers, which has 2; give one of them"],
    );
    wrong("cpu { workers 5 }", &["1:15: workers must be at most 4, as there are 4 cores, not 5"]);
    wrong("cpu { skip-cores 4 }", &["1:18: skip-cores 4 leaves none of 4 cores"]);
    wrong("cpu { scheduler-priority 5 }", &["1:26: scheduler-priority needs scheduler-policy fifo or rr"]);
    wrong("buffers { numa 1 { buffers 5 } }", &["1:16: numa '1' is not on this machine, which has node 0"]);
    wrong("plugins { plugin x { enable disable } }", &["1:18: plugin 'x' is both enabled and disabled"]);
}

static DECLARED: Section = Section {
    name: "nat",
    doc: "translation",
    effect: Effect::Honoured,
    body: Body::Keys(&[
        Key::new("max-sessions", Kind::U64 { min: 1, max: 100 }, "sessions"),
        Key::new("inside", Kind::Block(&[Key::new("address", Kind::Ip, "address")]), "inside"),
        Key::new("extra", Kind::Anything, "anything"),
        Key::new("core", Kind::Core, "a core"),
    ]),
};

#[test]
fn a_module_declares_its_own_section_and_gets_its_settings() {
    let text = "nat { inside { address 10.0.0.1 } extra a { b } c max-sessions 7 core 3 }";
    let s = check(&[Source::file("f", text)], &[&DECLARED], &machine()).unwrap();
    let nat = s.section("nat");
    assert_eq!(nat.u64("max-sessions"), Some(7));
    assert_eq!(nat.block("inside").unwrap().ip("address"), Some([10, 0, 0, 1].into()));
    assert_eq!((nat.u64("core"), s.warning()), (Some(3), None));
    let text = "nat { inside { address 10.0.0 } inside 3 core 4 }";
    let report = check(&[Source::file("f", text)], &[&DECLARED], &machine()).unwrap_err();
    let messages: Vec<_> = report.problems.iter().map(|p| p.message.as_str()).collect();
    let expected = [
        "address needs an IP address, not '10.0.0'",
        "inside needs a block { ... }",
        "nat has no setting '3'; it has max-sessions, inside, extra, core",
        "core names core 4, but this machine has cores 0-3",
    ];
    assert_eq!(messages, expected);
    assert!(markdown(&[&DECLARED]).contains("| `inside address` | an IP address | address |"));
}

/// The example that is installed must start as it is, and with every commented line taken in.
#[test]
fn the_example_file_is_right_in_every_line() {
    let text = include_str!("../../../share/startup.conf");
    assert_eq!(read(text).warning(), None);
    let settings: Vec<&str> = vec![
        "exec",
        "log",
        "gid",
        "workers",
        "main-core",
        "corelist-workers",
        "buffers-per-numa",
        "default data-size",
        "page-size",
        "socket-name",
        "size",
        "per-node-counters",
        "update-interval",
        "class",
        "plugin",
    ];
    let mut found = 0;
    let all: Vec<String> = text
        .lines()
        .map(|line| match line.trim_start().strip_prefix("# ") {
            Some(rest)
                if settings.iter().any(|s| rest.starts_with(&format!("{s} ")) && !rest.ends_with('.')) =>
            {
                found += 1;
                rest.to_owned()
            }
            _ => line.to_owned(),
        })
        .collect();
    assert_eq!(found, 16, "a commented setting is not recognised");
    assert_eq!(read(&all.join("\n")).warning(), None);
}

#[test]
fn a_stanza_that_a_plugin_reads_is_kept_as_it_stood() {
    let text = "dpdk {\n dev 0000:00:05.0 { name x\n num-rx-queues 2 }\n vdev \"a \\\"b\\\" }\" # no more\n}\ndpdk { no-pci }";
    let startup = check(&[Source::file("f", text)], &[&DECLARED], &machine()).unwrap();
    let section = startup.section("dpdk");
    let kept: Vec<_> = section.all(shoal_module::config::TEXT).map(|s| format!("{:?}", s.value)).collect();
    let first = "dev 0000:00:05.0 { name x\nnum-rx-queues 2 }\nvdev \"a \\\"b\\\" }\"";
    assert_eq!(kept, [format!("Text({first:?})"), "Text(\"no-pci\")".to_owned()]);
}

/// docs/reference/startup.md is generated; this is what `make gen` writes.
#[test]
fn the_reference_has_every_section_and_setting() {
    let page = markdown(&[]);
    for word in ["## unix", "`default data-size`", "`plugin NAME enable`", "| `dpdk` |", "from 1m to 1t"] {
        assert!(page.contains(word), "{word}");
    }
    assert!(
        !page.contains("## declared") && markdown(&[&DECLARED]).contains(&format!("## {}", DECLARED.name))
    );
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = check(&[Source::file("f", bytes.clone()), Source::words([bytes])], &[&DECLARED], &machine()).map_err(|r| r.to_string());
    }

    /// Words of the language in random order reach every part of the check.
    #[test]
    fn random_words_never_panic_and_always_have_an_answer(
        words in prop::collection::vec(prop::sample::select(vec![
            "unix", "cpu", "buffers", "statseg", "plugins", "nat", "heapsize", "{", "}", "{", "}", "nodaemon", "log",
            "workers", "main-core", "corelist-workers", "1", "0-3", "default", "data-size", "on", "onsize", "32m", "\"",
            "#", "\n", "plugin", "numa", "class", "inside", "address", "10.0.0.1", "ü€", "nodaemonexec", "workers2",
            "relative", "skip-cores", "99999999999999999999", "extra",
        ]), 0..60),
        glue in any::<bool>(),
    ) {
        let text = words.join(if glue { "" } else { " " });
        match check(&[Source::file("f", text)], &[&DECLARED], &machine()) {
            Ok(startup) => { startup.warning(); }
            Err(report) => prop_assert!(!report.problems.is_empty() && report.to_string().contains("f:")),
        }
    }
}
