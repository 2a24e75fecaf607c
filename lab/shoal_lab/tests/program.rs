//! The program as its users call it: what it prints, how it ends, what it leaves behind.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const LAB: &str = env!("CARGO_BIN_EXE_shoal-lab");

fn lab(results: &Path, arguments: &str) -> Command {
    let mut command = Command::new(LAB);
    command.arg("--results").arg(results).args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

fn run(results: &Path, arguments: &str) -> (i32, String) {
    ended(lab(results, arguments).output().unwrap())
}

fn ended(output: Output) -> (i32, String) {
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code().unwrap_or(-1), text)
}

/// Whether namespaces can be made; says why not.
fn is_root(test: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("SKIP {test}: needs root");
    }
    root
}

/// The router beside this program, if the workspace has been built whole.
fn router(test: &str) -> Option<PathBuf> {
    let shoal = Path::new(LAB).with_file_name("shoal");
    let there = shoal.exists() && Path::new(LAB).with_file_name("shoalctl").exists();
    if !there {
        println!("SKIP {test}: {} is not built", shoal.display());
    }
    there.then_some(shoal)
}

/// Namespaces that a lab of this process's made and left.
fn left_by(pid: u32) -> Vec<String> {
    let names = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    names
        .map(|n| n.file_name().to_string_lossy().into_owned())
        .filter(|n| n.contains(&format!("-{pid}-")) || n.contains(&format!("{pid:x}")))
        .filter(|n| n.starts_with("shoallab"))
        .collect()
}

fn folder_of(results: &Path) -> PathBuf {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(results).unwrap().map(|f| f.unwrap().path()).collect();
    folders.sort();
    folders.pop().unwrap()
}

#[test]
fn what_makes_no_sense_is_answered_with_what_would() {
    let results = tempfile::tempdir().unwrap();
    for (arguments, code, words) in [
        ("run thruput", 2, "the nearest is throughput"),
        ("run throughput --dut shaol --plain", 2, "shoal"),
        ("run throughput --size 20", 2, "the nearest is 64"),
        ("run throughput --size imix:clasic", 2, "imix:classic"),
        ("run throughput --ip 5", 2, "4, 6"),
        ("run throughput --preset fast", 2, "nearest"),
        ("run throughput --duration tomorrow", 2, "2s, 500ms or 30m"),
        ("run throughput --preset strict --budget 1m", 2, "--yes"),
        ("run throughput --when-disturbed ignore", 2, "mark, repeat or refuse"),
        ("selftest --when-disturbed refuze", 2, "the nearest is refuse"),
        ("suite quick --when-disturbed", 2, "--when-disturbed"),
        ("run throughput --energy watts", 2, "must be none, rapl"),
        ("run stl", 2, "needs a profile"),
        ("run address-capacity --dut linux-route", 2, "these are shoal, linux-bridge, ovs, ovs-dpdk, vpp"),
        ("run address-capacity --flows 2M", 2, "the nearest is 1048576"),
        ("run address-learning-rate --direction bi", 2, "on the left: fwd"),
        ("run broadcast --dut linux-route", 2, "these are shoal, linux-bridge, testpmd-io"),
        ("run forwarding-rat", 2, "the nearest is forwarding-rate"),
        ("suite papr", 2, "the nearest is paper"),
        ("run replay --size 1518", 2, "frames of 64 bytes"),
        ("run replay --base-replay /nowhere/graph", 2, "--base-replay /nowhere/graph is no program"),
        ("run throughput --base /bin/sh", 2, "no other test compares builds"),
        ("run revisions", 2, "needs another build"),
        ("suite quick --base /bin/sh", 2, "suite quick compares no builds"),
        ("suite ci --base /nowhere/shoal", 2, "/nowhere/shoal is no program"),
        ("run convergence --daemon quagga", 2, "these are frr, frr-fpm, bird, netlink, fpm; the nearest is"),
        ("run convergence --dut ovs", 2, "these are shoal, linux-route, none"),
        ("run convergence --dut linux-route --daemon fpm", 2, "nothing else here speaks FPM"),
        ("run convergence --routes4 0", 2, "nothing to announce"),
        ("run convergence --routes4 many", 2, "is no number"),
        ("run convergence --phase anounce", 2, "the nearest is announce"),
        ("run convergence --transport memif", 2, "by af-packet"),
        ("run throughput --routes6 5", 2, "are for convergence"),
        ("list everything", 2, "possible values"),
        ("show /nowhere", 2, "/nowhere"),
        ("resume /nowhere", 2, "/nowhere"),
        ("report /nowhere", 2, "/nowhere"),
    ] {
        let (got, text) = run(results.path(), arguments);
        assert_eq!(got, code, "{arguments}: {text}");
        assert!(text.contains(words), "{arguments}: {text}");
    }
}

#[test]
fn settings_are_shown_and_wrong_ones_named() {
    let results = tempfile::tempdir().unwrap();
    let (code, text) = run(results.path(), "config show --origin");
    assert!(code == 0 && text.contains("# default"), "{text}");
    let file = results.path().join("lab.toml");
    for (settings, words) in [
        ("[traffic]\nnetworks = 300\n", "1 to 256"),
        ("[tester]\nmost_taken = 1.5\n", "0.0 to 1.0"),
        ("[tester]\nmost_taken = \"much\"\n", "line 2"),
        ("[test]\nwhen_disturbed = \"ignore\"\n", "`mark`, `repeat`, `refuse`"),
    ] {
        std::fs::write(&file, settings).unwrap();
        let (code, text) = run(results.path(), &format!("--config {} config show", file.display()));
        assert!(code == 2 && text.contains(words), "{code}: {text}");
    }
}

#[test]
fn a_dry_run_starts_nothing_and_tells_frames_and_time() {
    let results = tempfile::tempdir().unwrap();
    let (code, text) = run(results.path(), "suite paper --preset strict --dry-run");
    assert_eq!(code, 0, "{text}");
    // The first 12 bytes of a frame are addresses; then IPv4 and IPv6.
    assert!(
        text.contains(", at most ") && text.contains("take more than 2.0 % of a processor: refuse"),
        "{text}"
    );
    assert!(text.contains(" h ") && text.contains("08 00 45") && text.contains("86 dd 6"), "{text}");
    assert_eq!(std::fs::read_dir(results.path()).unwrap().count(), 0, "a folder was made");
}

#[test]
fn a_dry_run_of_a_bridges_tests_shows_what_teaches_and_what_asks() {
    let results = tempfile::tempdir().unwrap();
    let (code, text) = run(results.path(), "run address-capacity --dry-run");
    assert_eq!(code, 0, "{text}");
    // A frame from a taught address, one to it, and one to the tester's other port.
    assert!(text.contains("linux-bridge (bridge)") && text.contains("learn (64 B"), "{text}");
    assert!(
        text.contains("ask (64 B with FCS): 02 5a") && text.contains("through (64 B with FCS): 02 00"),
        "{text}"
    );
    let (code, text) = run(results.path(), "run broadcast --dut ovs --dry-run");
    assert!(code == 0 && text.contains("ff ff ff ff ff ff"), "{text}");
}

/// Whether Open vSwitch can be measured; says why not.
fn has_switch(test: &str) -> bool {
    let there = Path::new("/usr/share/openvswitch/vswitch.ovsschema").exists();
    if !there {
        println!("SKIP {test}: openvswitch-switch is not installed");
    }
    is_root(test) && there
}

#[test]
fn a_full_table_of_open_vswitch_is_seen() {
    if !has_switch("a_full_table_of_open_vswitch_is_seen") {
        return;
    }
    let results = tempfile::tempdir().unwrap();
    // Its table has 8,192 entries unless it is told otherwise.
    let arguments = "run address-capacity --dut ovs --runs 1 --rate 8k --plain --flows";
    for (most, found, words) in [(8_192, 8_192.0, "at least (no more was tried)"), (8_200, 8_192.0, "")] {
        let into = results.path().join(most.to_string());
        let (code, text) = run(&into, &format!("{arguments} {most}"));
        assert!([0, 5].contains(&code), "{code}: {text}");
        // On a busy machine frames that teach are lost, and the program says so instead of guessing.
        if text.contains("not all frames") {
            println!("SKIP a_full_table_of_open_vswitch_is_seen: {text}");
            return;
        }
        let summary = std::fs::read_to_string(folder_of(&into).join("summary.json")).unwrap();
        let rows: Vec<serde_json::Value> = serde_json::from_str(&summary).unwrap();
        // Others had the processors each time: the program gives no figure then.
        let Some(row) = rows.iter().find(|row| row["metric"] == "address capacity") else {
            assert_eq!(code, 5, "{text}");
            println!("SKIP a_full_table_of_open_vswitch_is_seen: {text}");
            return;
        };
        assert_eq!(row["values"][0].as_f64(), Some(found), "{most}: {row}");
        assert!(row["note"].as_str().unwrap().contains(words), "{most}: {row}");
    }
}

#[test]
fn programs_get_lists_as_json() {
    let results = tempfile::tempdir().unwrap();
    for what in ["duts", "ports", "tests", "profiles", "figures", "suites"] {
        let (code, text) = run(results.path(), &format!("--json list {what}"));
        let all: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(code == 0 && all.as_array().is_some_and(|a| !a.is_empty()), "{what}: {text}");
    }
}

#[test]
fn siitperfs_programs_go_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("siitperf-tp");
    std::os::unix::fs::symlink(LAB, &link).unwrap();
    let arguments = ["84", "1000", "1", "100", "2", "2"];
    let call = || ended(Command::new(&link).args(arguments).current_dir(folder.path()).output().unwrap());
    let (code, text) = call();
    assert!(code == 2 && text.contains("siitperf.conf"), "{code}: {text}");
    std::fs::write(folder.path().join("siitperf.conf"), "IP-L-Vers 4\nIP-R-Vers 4\n").unwrap();
    let (code, text) = call();
    assert!(code == 4 && text.contains("ports.left"), "{code}: {text}");
}

#[test]
fn ports_of_dpdk_without_the_plugin_are_refused_with_the_way_to_build_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("siitperf.conf"), "IP-L-Vers 4\nIP-R-Vers 4\n").unwrap();
    // Other tests run beside this one, and `doctor` would say so by its exit code.
    let settings = "[test]\nwhen_disturbed = \"mark\"\n[tester]\ndpdk_plugin = \"nowhere.so\"\n[ports]\nleft = \"dpdk net_null0\"\nright = \"dpdk net_null1\"\n";
    std::fs::write(folder.path().join("lab.toml"), settings).unwrap();
    let call = |arguments: &str| {
        let words = arguments.split_whitespace();
        let command = ["--config", "lab.toml"].into_iter().chain(words);
        ended(Command::new(LAB).args(command).current_dir(folder.path()).output().unwrap())
    };
    for (arguments, exit) in [
        ("siitperf-tp 84 1000 1 100 2 2", 4),
        ("selftest --transport dpdk", 4),
        ("doctor", 0),
        ("list ports", 0),
    ] {
        let (code, text) = call(arguments);
        assert!(text.contains("nowhere.so") && text.contains("make dpdk"), "{arguments}: {text}");
        assert_eq!(code, exit, "{arguments}: {text}");
    }
}

#[test]
fn the_kernel_passes_the_gates_and_nothing_is_left() {
    if !is_root("the_kernel_passes_the_gates_and_nothing_is_left") {
        return;
    }
    let results = tempfile::tempdir().unwrap();
    let junit = results.path().join("junit.xml");
    let into = results.path().join("r");
    let child = lab(
        &into,
        &format!("run gates --dut linux-route --preset quick --plain --junit {}", junit.display()),
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let pid = child.id();
    let (code, text) = ended(child.wait_with_output().unwrap());
    assert_eq!(code, 0, "{text}");
    assert_eq!(left_by(pid), Vec::<String>::new());
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains("failures=\"0\"") && junit.contains("ip6 1518 B bi"), "{junit}");
    let folder = folder_of(&into);
    for file in ["record.json", "trials.jsonl", "summary.csv", "summary.json", "report.html", "campaign.json"]
    {
        assert!(folder.join(file).exists(), "{file}");
    }
    let (code, text) = run(&into, &format!("show {}", folder.display()));
    assert_eq!(code, 0, "{text}");
}

#[test]
fn the_router_passes_the_gates_over_memif() {
    const NAME: &str = "the_router_passes_the_gates_over_memif";
    let (true, Some(_)) = (is_root(NAME), router(NAME)) else { return };
    let results = tempfile::tempdir().unwrap();
    let (code, text) = run(results.path(), "run gates --dut shoal --transport memif --preset quick --plain");
    // What the router counted says where frames went.
    let record =
        || std::fs::read_to_string(folder_of(results.path()).join("record.json")).unwrap_or_default();
    assert_eq!(code, 0, "{text}\n{}", record());
    assert!(
        text.contains("ok gates shoal: ip4 64 B bi") && text.contains("ok gates shoal: ip6 1518 B bi"),
        "{text}"
    );
}

#[test]
fn a_dry_run_of_convergence_tells_tables_and_phases() {
    let results = tempfile::tempdir().unwrap();
    let (code, text) =
        run(results.path(), "run convergence --routes4 1M --routes6 200k --dry-run --budget 1s");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("linux-route, bird, 1000000+200000 routes"), "{text}");
    assert!(text.contains("announce, failure, withdraw; 20000 frames a second to 4000 of them"), "{text}");
    let (code, text) = run(results.path(), "run convergence --routes4 1M --budget 1s");
    assert!(code == 2 && text.contains("--yes"), "{code}: {text}");
}

/// The value of a metric in the results, if it is there.
fn value(rows: &[serde_json::Value], dut: &str, daemon: &str, metric: &str) -> Option<f64> {
    let row = rows.iter().find(|row| {
        row["dut"] == dut && row["metric"] == metric && row["variant"].as_str().unwrap().starts_with(daemon)
    });
    row?["values"][0].as_f64()
}

#[test]
fn a_small_table_converges_through_the_kernel_and_through_the_router() {
    const NAME: &str = "a_small_table_converges_through_the_kernel_and_through_the_router";
    let (true, Some(_)) = (is_root(NAME), router(NAME)) else { return };
    let bird = ["/usr/sbin/bird", "/usr/bin/bird"].iter().any(|program| Path::new(program).exists());
    if !bird {
        println!("SKIP {NAME}: bird is not installed");
        return;
    }
    let results = tempfile::tempdir().unwrap();
    let arguments = "run convergence --dut shoal,linux-route --daemon bird,netlink,fpm --routes4 600 --routes6 200 --flows 200 \
                     --rate 1000 --plain --when-disturbed mark --assert last_lost_packet>=0";
    let child = lab(results.path(), arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let (code, text) = ended(child.wait_with_output().unwrap());
    let folder = folder_of(results.path());
    let record = || std::fs::read_to_string(folder.join("record.json")).unwrap_or_default();
    assert_eq!(code, 0, "{text}\n{}", record());
    assert_eq!(left_by(pid), Vec::<String>::new());
    let summary = std::fs::read_to_string(folder.join("summary.json")).unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_str(&summary).unwrap();
    for (dut, daemon) in [
        ("shoal", "bird"),
        ("shoal", "netlink"),
        ("shoal", "fpm"),
        ("linux-route", "bird"),
        ("linux-route", "netlink"),
    ] {
        for metric in ["last lost packet", "last packet to a withdrawn prefix"] {
            assert!(value(&rows, dut, daemon, metric).is_some(), "{dut}, {daemon}: no {metric}: {text}");
        }
        let has_failure = value(&rows, dut, daemon, "outage by failure").is_some();
        assert_eq!(has_failure, daemon == "bird", "{dut}, {daemon}: {text}");
    }
    // A route reaches the router by FPM without the kernel.
    assert_eq!(value(&rows, "shoal", "fpm", "kernel's table, announce"), None, "{text}");
    assert!(value(&rows, "linux-route", "netlink", "kernel's table, announce").is_some(), "{text}");
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("% of prefixes reached against seconds since the peer began to announce"));
}

#[test]
fn an_interrupted_run_is_kept_and_goes_on() {
    if !is_root("an_interrupted_run_is_kept_and_goes_on") {
        return;
    }
    let results = tempfile::tempdir().unwrap();
    let arguments =
        "run mrr --dut linux-route --runs 4 --duration 1s --max 2000 --plain --when-disturbed mark";
    let child = lab(results.path(), arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    let trials = || -> usize {
        let folder = std::fs::read_dir(results.path()).ok().and_then(|mut f| f.next()?.ok());
        let text = folder.and_then(|f| std::fs::read_to_string(f.path().join("trials.jsonl")).ok());
        text.map_or(0, |t| t.lines().filter(|l| l.contains("\"test\":\"mrr\"")).count())
    };
    wait_until(|| trials() >= 2);
    let code = interrupt(child);
    assert_eq!(code, 130);
    assert_eq!(left_by(pid), Vec::<String>::new());
    let before = trials();
    assert!((2..4).contains(&before), "{before}");
    let folder = folder_of(results.path());
    assert!(folder.join("report.html").exists());
    let kept = std::fs::read_to_string(folder.join("trials.jsonl")).unwrap();
    let (code, text) = run(results.path(), &format!("resume {}", folder.display()));
    // On a busy machine trials are disturbed and made again, and their result is marked.
    assert!([0, 5].contains(&code), "{code}: {text}");
    let all = std::fs::read_to_string(folder.join("trials.jsonl")).unwrap();
    assert!(all.starts_with(&kept), "what was recorded is left as it is");
    assert!(trials() >= 4 && text.contains("report:"), "{text}");
}

fn wait_until(condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(90);
    while !condition() {
        assert!(Instant::now() < end, "not in 90 s");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn interrupt(mut child: Child) -> i32 {
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    child.wait().unwrap().code().unwrap_or(-1)
}

#[test]
fn results_that_cannot_be_written_end_the_run() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (code, text) = run(&file.path().join("below-a-file"), "run gates --dut linux-route --plain");
    assert_eq!(code, 2, "{text}");
}

#[test]
fn a_device_that_is_not_there_is_skipped_with_its_reason() {
    let results = tempfile::tempdir().unwrap();
    let config = results.path().join("lab.toml");
    std::fs::write(&config, "[dut]\nshoal = \"/nowhere/shoal\"\n").unwrap();
    let into = results.path().join("r");
    let (code, text) = run(&into, &format!("--config {} run gates --dut shoal --plain", config.display()));
    assert_eq!(code, 6, "{text}");
    assert!(text.contains("/nowhere/shoal"), "{text}");
}

/// A stand-in for the program of replays: it says so many clocks and instructions of each scenario it is asked for.
fn stand_in(folder: &Path, name: &str, clocks: f64, instructions: f64) -> PathBuf {
    let program = folder.join(name);
    let script = format!(
        r#"#!/bin/sh
json=$2 all='{{"name":"ruler-fused","clocks_min":20,"clocks_median":21,"nodes":{{"fused":20}}}}'
while [ $# -gt 0 ]; do
  case $1=$2 in
    --scenario=ip*)
      echo "$2: 15 windows ..." >&2
      all="$all,{{\"name\":\"$2\",\"clocks_min\":{clocks},\"clocks_median\":{clocks},\"instructions\":{instructions},
        \"nodes\":{{\"$2-superpath\":{clocks}}}}}"
      ;;
  esac
  shift
done
echo "{{\"instructions_by\":\"nobody\",\"scenarios\":[$all]}}" > "$json"
"#
    );
    // Another process writes it: what this one has open, children of other tests have open for a moment, too, and a program
    // that is open for writing cannot be started.
    let write = r#"printf '%s' "$2" > "$1" && chmod 755 "$1""#;
    let status = Command::new("sh").args(["-c", write, "sh"]).arg(&program).arg(script).status();
    assert!(status.unwrap().success());
    program
}

#[test]
fn a_replay_needs_no_root_and_leaves_rows_and_a_plot_by_node() {
    let results = tempfile::tempdir().unwrap();
    let program = stand_in(results.path(), "graph", 30.0, 100.0);
    let into = results.path().join("r");
    let arguments = format!("run replay --runs 2 --ip 4 --plain --replay {}", program.display());
    let (code, text) = run(&into, &arguments);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("change 2 of 2: ip4-1: 15 windows") && text.contains("clocks/packet"), "{text}");
    let folder = folder_of(&into);
    for file in ["bench.json", "replay/change-1.json", "replay/change-2.json", "summary.csv"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    let summary = std::fs::read_to_string(folder.join("summary.csv")).unwrap();
    for row in
        ["in-process; ip4-1,1,", ",ratio to the ruler,1.5,", ",instructions,100,", "ip4-1 ip4-1-superpath,"]
    {
        assert!(summary.contains(row), "{row}: {summary}");
    }
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("Clocks a packet by node") && page.contains("ip4-1-nodes-superpath"));
}

#[test]
fn a_replay_that_takes_more_than_its_base_fails() {
    let results = tempfile::tempdir().unwrap();
    let base = stand_in(results.path(), "base", 30.0, 100.0);
    for (clocks, instructions, wanted) in [(30.3, 101.0, 0), (30.3, 106.0, 1), (33.0, 100.0, 1)] {
        let program = stand_in(results.path(), "graph", clocks, instructions);
        let junit = results.path().join("junit.xml");
        let arguments = format!(
            "run replay --runs 3 --plain --replay {} --base-replay {} --junit {}",
            program.display(),
            base.display(),
            junit.display()
        );
        let (code, text) = run(&results.path().join("r"), &arguments);
        assert_eq!(code, wanted, "{text}");
        let failures = format!("failures=\"{}\"", 4 * wanted);
        assert!(std::fs::read_to_string(junit).unwrap().contains(&failures), "{text}");
    }
}

#[test]
fn without_its_program_a_replay_is_skipped_with_what_builds_it() {
    let results = tempfile::tempdir().unwrap();
    let into = results.path().join("r");
    let (code, text) = run(&into, "run replay --plain --replay /nowhere/graph");
    assert_eq!(code, 6, "{text}");
    assert!(text.contains("skipped: /nowhere/graph is no program") && text.contains("make bench"), "{text}");
    let page = std::fs::read_to_string(folder_of(&into).join("report.html")).unwrap();
    assert!(page.contains("/nowhere/graph is no program"));
}

#[test]
fn a_base_that_fails_costs_the_comparison_and_not_the_figures() {
    let results = tempfile::tempdir().unwrap();
    let program = stand_in(results.path(), "graph", 30.0, 100.0);
    let into = results.path().join("r");
    let arguments =
        format!("run replay --runs 2 --plain --replay {} --base-replay /bin/false", program.display());
    let (code, text) = run(&into, &arguments);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("/bin/false ended with exit status: 1"), "{text}");
    assert!(folder_of(&into).join("bench.json").exists());
}
