//! Lines in, answers out, without a socket.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::sample;

use sample::{cli, control};

fn text(line: &str) -> String {
    let reply = cli().execute_now(&control(), line);
    assert!(reply.is_ok(), "{}", reply.text());
    reply.text().trim_end().to_owned()
}

fn error(line: &str) -> String {
    let reply = cli().execute_now(&control(), line);
    assert!(!reply.is_ok(), "`{line}' was accepted: {}", reply.text());
    reply.text()
}

#[test]
fn every_word_may_be_shortened_to_a_unique_beginning() {
    assert_eq!(text("sh ver"), "shoal v1.2");
    assert_eq!(text("set int ip addr tap0 10.0.0.1/24"), "interface=tap0 ip4-prefix=10.0.0.1/24");
    assert_eq!(text("sh int addr"), "address=addr");
    assert_eq!(text("sh err"), "");
    assert_eq!(text("sh ip fib"), "");
}

#[test]
fn sub_commands_come_before_the_function_of_the_place() {
    assert_eq!(text("show interface rx"), "");
    assert_eq!(text("show interface tap0"), "interface=tap0");
}

#[test]
fn options_come_in_any_order_and_once() {
    let all = "create host-interface name eth0 num-rx-queues 2 hw-addr 02:00:00:00:00:01";
    assert_eq!(
        text(all),
        "host-if=eth0 num-rx-queues=num-rx-queues n=2 hw-addr=hw-addr mac=02:00:00:00:00:01"
    );
    assert_eq!(
        text("show int verbose tap0 address tap10"),
        "verbose=verbose interface=tap0 address=address interface=tap10"
    );
    assert!(error("show interface address address").contains("unknown input `address'"));
    assert!(text("create vxlan tunnel vni 5 dst 10.0.0.2 src 10.0.0.1").starts_with("vni=vni vni=5"));
    assert!(error("create vxlan tunnel vni 5 dst 10.0.0.2").contains("expected src or del"));
}

#[test]
fn words_beat_arguments_and_choices_are_tried_in_turn() {
    assert_eq!(text("set interface ip address del tap0 all"), "del=del interface=tap0 all=all");
}

#[test]
fn rest_and_blocks_take_raw_text() {
    assert_eq!(
        text("trace add tap-input 5 filter tcp port 80"),
        "node=tap-input count=5 filter=filter filter=tcp port 80"
    );
    assert_eq!(
        text("trace add tap-input 5 filter 'tcp port 80' verbose"),
        "node=tap-input count=5 filter=filter filter=tcp port 80 verbose=verbose"
    );
    assert_eq!(
        text("packet-generator new { name x\n data { hex 0x00 } }"),
        "stream=name x\n data { hex 0x00 }"
    );
    assert_eq!(text("packet-generator new name x"), "stream=name x");
    assert!(error("packet-generator new { name x").contains("a closing `}'"));
}

#[test]
fn braces_may_wrap_all_arguments() {
    assert_eq!(text("set interface state {tap0 up}"), "interface=tap0 up=up");
}

#[test]
fn groups_repeat() {
    assert_eq!(
        text("ip route add 10.0.0.0/8 via 10.0.0.1 tap0 weight 2 via drop"),
        "add=add ip4-prefix=10.0.0.0/8 via=via hop=10.0.0.1 interface=tap0 weight=weight w=2 via=via drop=drop"
    );
    assert!(error("ip route add 10.0.0.0/8").contains("missing via"));
    assert_eq!(
        text("set acl permit src 10.0.0.0/8, deny src 0.0.0.0/0"),
        "permit=permit src=src p=10.0.0.0/8 ,=, deny=deny src=src p=0.0.0.0/0"
    );
}

#[test]
fn an_unknown_word_is_pointed_at_with_a_suggestion() {
    assert_eq!(
        error("set interface stat tap0 upp"),
        "set interface state: unknown input `upp'\n  set interface stat tap0 upp\n                          \
         ^\n  expected up or down\n  did you mean `up'?\n"
    );
    let top = error("shw version");
    assert!(top.starts_with("unknown input `shw version'\n"), "{top}");
    assert!(top.contains("did you mean `show'?"), "{top}");
    let below = error("show versoin");
    assert!(below.starts_with("show: unknown input `versoin'\n"), "{below}");
}

#[test]
fn a_live_argument_suggests_what_exists() {
    let e = error("set interface state tpa0 up");
    assert!(e.contains("expected an interface for <interface>\n  did you mean `tap0'?"), "{e}");
}

#[test]
fn an_ambiguous_word_lists_the_candidates() {
    let e = error("s version");
    assert!(e.starts_with("ambiguous input `s version'"), "{e}");
    assert!(e.contains("could be set or show"), "{e}");
}

#[test]
fn a_missing_argument_is_named() {
    assert!(error("set interface state").starts_with("set interface state: missing <interface>\n"));
    assert!(error("set interface").starts_with("set interface: incomplete command\n"));
}

#[test]
fn a_function_that_fails_speaks_after_the_full_path() {
    assert_eq!(error("te sm 13"), "test small: thirteen is taken\n");
    let e = error("te sm 300");
    assert!(e.contains("300 does not fit, 0 to 255\n  te sm 300\n        ^\n"), "{e}");
}

#[test]
fn a_block_stops_at_its_first_failure() {
    let reply = cli().execute_now(&control(), "comment x {\ntest small 1\ntest small 13\ntest small 2");
    assert!(!reply.is_ok());
    assert_eq!(reply.text(), "1\ntest small: thirteen is taken\n");
}

/// A command like the one before takes a shorter way; the result is the same.
#[test]
fn a_line_of_many_answers_as_it_does_alone() {
    let lines = [
        "ip route add 10.0.0.0/8 via 10.0.0.1",
        "ip route add 10.1.0.0/16 via 10.0.0.2",
        "ip route add 10.1.0.0/16 via 10.0.0.2 --json",
        "--json ip route add 10.1.0.0/16 via 10.0.0.2",
        "ip route add 10.1.0.0/16 via 10.0.0.2 tap0",
        "ip route add 10.1.0.0/16 via 10.0.0.2 tap1",
        "ip route add 10.1.0.0/33 via 10.0.0.2",
        "ip route add \"10.1.0.0/16\" via 10.0.0.2",
        "ip route add 10.1.0.0/16 via ?",
        "ip route add 10.1.0.0/16\tvia   drop",
        "ip route del 10.1.0.0/16",
        "test small 1",
        "test small 1 --json",
        "test small 13",
        "test small 300",
        "test small 1 2",
        "show errors",
        "show version",
        "show interface tap0 tap10",
        "show interface tap0 tap11",
        "set acl permit src 10.0.0.0/8, deny src 10.0.0.0/9",
        "comment test small 1",
    ];
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lines.cli");
    let alone: Vec<_> = lines.iter().map(|line| cli().execute_now(&control(), line)).collect();
    for (first, before) in lines.iter().zip(&alone).filter(|(_, reply)| reply.is_ok()) {
        for (second, after) in lines.iter().zip(&alone) {
            let block = format!("{first}\n{first}\n{second}\n{second}\n");
            let reply = cli().execute_now(&control(), &block);
            let times = if after.is_ok() { 2 } else { 1 };
            let wanted = before.text().repeat(2) + &after.text().repeat(times);
            assert_eq!(reply.text(), wanted, "{block}");
            assert_eq!(reply.is_ok(), after.is_ok(), "{block}");
            std::fs::write(&file, &block).unwrap();
            let reply = cli().execute_now(&control(), &format!("exec {}", file.display()));
            assert_eq!(reply.is_ok(), after.is_ok(), "{block}");
            if after.is_ok() {
                assert_eq!(reply.text(), wanted, "{block}");
            }
        }
    }
}

#[test]
fn json_comes_before_or_after() {
    for line in ["show version --json", "--json show version"] {
        let value: serde_json::Value = serde_json::from_str(&text(line)).unwrap();
        assert_eq!(value["version"], "1.2");
    }
    let list: serde_json::Value = serde_json::from_str(&text("show cli --json")).unwrap();
    assert!(list.as_array().unwrap().iter().any(|c| c["path"] == "show ip fib"));
    let reply = cli().execute_now(&control(), "show nothing");
    assert_eq!(reply.json()["at"][0], 5);
}

#[test]
fn questions_list_what_may_follow() {
    let help = text("show ?");
    assert!(help.contains(&format!("  {:<30} Show error counters", "errors")), "{help}");
    assert!(text("set interface state ?").contains("tap10"));
    assert_eq!(text("show ip choices"), "show ip fib\nshow ip neighbors");
    assert!(text("help").contains("packet-generator"));
    assert!(text("show cli").contains("create vxlan tunnel"));
    assert!(error("shw ?").contains("did you mean `show'?"));
}

#[test]
fn a_slow_command_prints_into_the_reply_and_one_that_waits_cannot_run_at_once() {
    let (cli, control) = (cli(), control());
    let reply = futures_lite::future::block_on(cli.execute(&control, "test count 3"));
    assert_eq!(reply.text(), "0\n1\n2\ndone\n");
    assert_eq!(cli.execute_now(&control, "test count 3").text(), "0\n1\n2\ndone\n");
    assert!(!cli.execute_now(&control, "test forever").is_ok());
}

#[test]
fn a_file_runs_as_far_as_it_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("setup.cli");
    let name = file.display().to_string();
    std::fs::write(
        &file,
        "show nothing\ncreate loopback name loop0\nset interface state loop0 sideways\ntest small 13\nset int state loop0 up\n",
    )
    .unwrap();
    let (cli, control) = (cli(), control());
    let reply = cli.execute_now(&control, &format!("exec {name}"));
    let text = reply.text();
    assert!(!reply.is_ok());
    assert!(text.contains("3 of 5 lines failed, the others were run"), "{text}");
    assert!(text.contains(&format!("{name}:1: show: unknown input")), "{text}");
    assert!(text.contains(&format!("{name}:3: set interface state: unknown input")), "{text}");
    assert!(text.contains(&format!("{name}:4: test small: thirteen is taken")), "{text}");
    assert!(cli.execute_now(&control, "show interface loop0").is_ok());

    std::fs::write(&file, format!("exec {name}\n")).unwrap();
    assert!(cli.execute_now(&control, &format!("exec {name}")).text().contains("too deeply"));
    assert!(cli.execute_now(&control, "exec /no/such/file").text().contains("No such file"));
}

#[test]
fn a_strict_file_is_checked_before_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("setup.cli");
    let name = file.display().to_string();
    std::fs::write(&file, "create loopback name loop0\nshow nothing\nset interface state loop0 sideways\n")
        .unwrap();
    let (cli, control) = (cli(), control());
    let reply = cli.execute_now(&control, &format!("exec {name} strict"));
    let text = reply.text();
    assert!(text.contains("2 lines are wrong, nothing was run"), "{text}");
    assert!(text.contains(&format!("{name}:2: show: unknown input")), "{text}");
    assert!(!cli.execute_now(&control, "show interface loop0").is_ok());

    std::fs::write(&file, "create loopback name loop0\nset int state loop0 up\ntest small 13\nshow ver\n")
        .unwrap();
    let text = cli.execute_now(&control, &format!("exec {name} strict")).text();
    assert!(text.contains(&format!("{name}:3: test small: thirteen is taken")), "{text}");
    assert!(!text.contains("shoal v"), "{text}");
}

#[test]
fn lines_of_an_answer_are_chosen_and_counted() {
    let (cli, control) = (cli(), control());
    let say = |line: &str| cli_text(&cli, &control, line);
    assert_eq!(say("test rows 12 | include 0000001"), "row 00000000001\nrow 00000000010\nrow 00000000011\n");
    assert_eq!(say("test rows 12 | exclude 0000000000 | exclude rows"), "row 00000000010\nrow 00000000011\n");
    assert_eq!(say("test rows 12 | include row | count"), "13\n");
    assert_eq!(say("test count 3 | i 1|2"), "1\n2\n");
    assert!(say("show nothing | count").contains("unknown input"));
}

fn cli_text(cli: &shoal_cli::Cli, control: &std::rc::Rc<shoal_module::Control>, line: &str) -> String {
    futures_lite::future::block_on(cli.execute(control, line)).text()
}

#[test]
fn quit_is_asked_for() {
    for line in ["q", "quit", "exit"] {
        assert!(cli().execute_now(&control(), line).wants_to_quit(), "{line}");
    }
}

#[test]
fn every_example_parses() {
    let (cli, control) = (cli(), control());
    for command in sample::COMMANDS {
        for example in command.examples {
            assert_eq!(cli.check(&control, example), [], "{example}");
        }
    }
}

#[test]
fn the_reference_has_every_command() {
    let text = cli().reference();
    for command in sample::COMMANDS {
        assert!(text.contains(command.syntax), "{}", command.syntax);
    }
    assert!(text.contains("\n## show interface\n"));
}
