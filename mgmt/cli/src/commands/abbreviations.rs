//! Operators' short forms must find their commands, and examples must parse.

use shoal_interface as interface;

use super::testing::Router;

#[test]
fn the_short_forms_in_use_are_unique() {
    let router = Router::new();
    router.run("create loopback interface");
    for line in [
        "sh int",
        "show int",
        "sh int addr",
        "sh int feat",
        "sh int rx",
        "show hardware",
        "sh hard loop0 detail",
        "show run",
        "sh run",
        "show err",
        "sh errors",
        "show error",
        "sh node counters",
        "show buffers",
        "sh thr",
        "show thread",
        "show trace",
        "sh tr",
        "show trace max 100",
        "cl tr",
        "cl err",
        "cl run",
        "clear int",
        "sh ver",
        "show mem",
        "show cpu",
        "sh clock",
        "show plug",
        "sh feat",
        "sh cap",
        "sh drops",
        "sh graph",
        "show vlib graph",
        "sh ev",
        "event clear",
        "set int state loop0 up",
        "set int mtu ip4 1400 loop0",
        "set int mtu packet 1500 loop0",
        "set int mtu 1500 loop0",
        "set int mac addr loop0 02:fe:00:00:00:07",
        "set int promisc on loop0",
        "set int tag loop0 lab",
        "set int rx-mode loop0 polling",
        "set superpath off",
        "sh superpath",
        "del loop int intfc loop0",
    ] {
        router.run(line);
    }
}

#[test]
fn every_example_parses() {
    let router = Router::new();
    for command in interface::MODULE.commands.iter().chain(super::COMMANDS) {
        for example in command.examples {
            assert_eq!(router.cli.check(&router.control, example), [], "{example}");
        }
    }
}

#[test]
fn interfaces_live_through_their_commands() {
    let router = Router::new();
    assert_eq!(router.run("create loopback interface"), "loop0\n");
    assert_eq!(router.run("create loopback interface mac 02:fe:00:00:00:05 instance 5"), "loop5\n");
    router.run("set interface state loop5 up");
    let row: Vec<String> = router
        .run("show interface loop5")
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .map(Into::into)
        .collect();
    assert_eq!(row, ["loop5", "2", "up", "9000/0/0/0"]);
    assert!(router.run("show hardware-interfaces loop5").contains("  Ethernet address 02:fe:00:00:00:05\n"));
    router.run("set interface name loop5 core");
    assert!(router.refused("show interface coer").contains("core"), "the nearest name is offered");
    assert_eq!(router.json("show interface core")[0]["state"], "up");
    assert!(router.refused("set interface rx-placement core main").contains("core has no receive queue 0"));
    assert!(router.refused("set interface feature core nat arc ip4-unicast").contains("a feature"));
    router.run("delete loopback interface intfc core");
    assert!(router.refused("delete loopback interface intfc local0").contains("is not a loopback interface"));
}
