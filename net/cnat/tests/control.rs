//! What is refused, what follows interfaces, what is shown, what is saved.

use shoal_adj::Family;
use shoal_cnat::policy::{List, PolicyKind};
use shoal_cnat::translation::{Flags, LbType};
use shoal_cnat::{AddressSource, CnatError, Endpoint, MODULE, NO_NAT, PathSpec, SnatSpec, Spec, flags};
use shoal_fib::FlowFields;
use shoal_interface::SwIfIndex;
use shoal_ip4::Ip4;
use shoal_message::Retval;
use shoal_module::Running;

use crate::bed::*;

fn lines(bed: &Bed) -> Vec<String> {
    let mut running = Running::default();
    (MODULE.running)(bed.nat.router.control(), &mut running);
    let all = running.pieces().collect::<String>();
    all.lines().filter(|line| line.contains("cnat")).map(str::to_owned).collect()
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let bed = bed();
    let good = spec(vip(false), TCP, &[backend(false, 2)]);
    let with = |path: PathSpec| Spec { paths: vec![path], ..good.clone() };
    let path = to(backend(false, 2));
    let at = |address: &str, port| Endpoint::new(address.parse().unwrap(), port);
    let bad = [
        (Spec { protocol: 1, ..good.clone() }, Retval::INVALID_PROTOCOL),
        (Spec { protocol: 132, ..good.clone() }, Retval::INVALID_PROTOCOL),
        (Spec { vip: at("198.51.100.1", 0), ..good.clone() }, Retval::INVALID_VALUE),
        (Spec { vip: at("0.0.0.0", 80), ..good.clone() }, Retval::INVALID_ARGUMENT),
        (Spec { vip: at("224.0.0.1", 80), ..good.clone() }, Retval::INVALID_ARGUMENT),
        (Spec { vip: at("192.0.2.1", 80), ..good.clone() }, Retval::INVALID_ARGUMENT),
        (Spec { flags: Flags(2), ..good.clone() }, Retval::INVALID_VALUE),
        (with(PathSpec { destination: at("10.0.0.2", 0), ..path }), Retval::INVALID_VALUE),
        (with(PathSpec { destination: at("2001:db8::1", 9), ..path }), Retval::INVALID_ADDRESS_FAMILY),
        (with(PathSpec { destination: at("0.0.0.0", 9), ..path }), Retval::INVALID_ADDRESS_FAMILY),
        (with(PathSpec { source: at("2001:db8::1", 9), ..path }), Retval::INVALID_ADDRESS_FAMILY),
        (with(PathSpec { destination: good.vip, ..path }), Retval::INVALID_ARGUMENT),
        (with(PathSpec { flags: 1, ..path }), Retval::INVALID_VALUE),
    ];
    for (spec, retval) in bad {
        let error = bed.cnat.update(spec.clone()).unwrap_err();
        assert_eq!(Retval::from(error), retval, "{spec:?}");
    }
    let nowhere = AddressSource::Interface(SwIfIndex(99), Family::Ip4);
    let strange = Spec { vip: Endpoint { from: nowhere, port: 80 }, ..good.clone() };
    assert!(matches!(bed.cnat.update(strange), Err(CnatError::Interface(_))));
    assert!(bed.cnat.translations().is_empty() && bed.cnat.clients().is_empty());
    let error = bed.cnat.del(9).unwrap_err();
    assert_eq!(error.to_string(), "there is no translation 9");
    assert_eq!(bed.cnat.update(good.clone()), Ok(0));
    assert_eq!(bed.cnat.del(9).unwrap_err().to_string(), "there is no translation 9, nearest 0");
    let none = SnatSpec::NONE;
    assert_eq!(bed.cnat.set_snat(SnatSpec { table: 7, ..none }), Err(CnatError::NoTable(7)));
    assert!(bed.cnat.set_snat(SnatSpec { flags: 8, ..none }).is_err());
    assert!(bed.cnat.set_snat(SnatSpec { ip4: [224, 0, 0, 1].into(), ..none }).is_err());
    assert!(bed.cnat.set_snat(SnatSpec { interface: Some(SwIfIndex(99)), ..none }).is_err());
    assert!(bed.cnat.set_feature(SwIfIndex(99), true).is_err());
    assert!(bed.cnat.set_policy_interface(SwIfIndex(99), List::Pod, true).is_err());
    assert!(bed.cnat.set_excluded("10.0.0.0/8".parse().unwrap(), false).is_err());
    assert!(bed.cnat.snats().is_empty() && bed.cnat.features().is_empty());
}

#[test]
fn numbers_are_used_again_and_routes_come_and_go_with_the_last_one() {
    let bed = bed();
    let port = |port| spec((vip(false).0, port), TCP, &[backend(false, 2)]);
    assert_eq!([80, 81, 82].map(|n| bed.cnat.update(port(n)).unwrap()), [0, 1, 2]);
    assert_eq!(bed.cnat.clients(), [(vip(false).0, 3, false)]);
    bed.cnat.del(1).unwrap();
    assert_eq!(bed.cnat.update(port(83)), Ok(1));
    for id in [0, 1, 2] {
        bed.cnat.del(id).unwrap();
    }
    assert!(bed.cnat.clients().is_empty());
    let flags = Flags(Flags::NO_CLIENT);
    bed.cnat.update(Spec { flags, ..port(80) }).unwrap();
    assert!(bed.cnat.clients().is_empty());
}

#[test]
fn endpoints_follow_the_addresses_of_interfaces() {
    let mut bed = bed();
    bed.features();
    let outside = bed.nat.outside.index();
    let vip = Endpoint { from: AddressSource::Interface(outside, Family::Ip4), port: 80 };
    let real = Spec { vip, is_real: true, ..spec(vip_end(), TCP, &[backend(false, 2)]) };
    let id = bed.cnat.update(real.clone()).unwrap();
    let client = client(false, 1000);
    let to_router = |address: &str, port| end(address, port);
    assert_eq!(bed.comes((client, to_router("192.0.2.1", 80)), TCP, 2), Some((client, backend(false, 2))));
    // What else is for the router reaches it.
    let frame = bed.packet(false, (client, to_router("192.0.2.1", 7)), PING, 0);
    bed.send_in(frame);
    assert_eq!(bed.nat.outside.received().len(), 1);
    let ip4 = bed.nat.router.get::<Ip4>();
    ip4.del_address(outside, "192.0.2.1/24".parse().unwrap()).unwrap();
    ip4.add_address(outside, "192.0.2.99/24".parse().unwrap()).unwrap();
    let other = crate::bed::client(false, 1001);
    assert_eq!(bed.comes((other, to_router("192.0.2.99", 80)), TCP, 2), Some((other, backend(false, 2))));
    assert_eq!(bed.cnat.update(real), Ok(id), "the same translation");
}

fn vip_end() -> End {
    vip(false)
}

#[test]
fn the_configuration_is_saved_and_read_again() {
    let bed = bed();
    let inside = bed.nat.inside.index();
    let source = Endpoint::new("10.0.0.9".parse().unwrap(), 0);
    let of = Spec {
        lb: LbType::Maglev,
        fields: FlowFields::SRC.with(FlowFields::SPORT),
        flags: Flags(Flags::ALLOC_PORT | Flags::NO_RETURN_SESSION),
        paths: vec![
            PathSpec { source, ..to(backend(false, 2)) },
            PathSpec { flags: NO_NAT, ..to(backend(false, 3)) },
        ],
        ..spec(vip(false), UDP, &[])
    };
    bed.cnat.update(of).unwrap();
    let six = Endpoint { from: AddressSource::Interface(inside, Family::Ip6), port: 53 };
    bed.cnat.update(Spec { vip: six, is_real: true, ..spec(vip(true), TCP, &[backend(true, 2)]) }).unwrap();
    let ip4 = [203, 0, 113, 9].into();
    bed.cnat.set_snat(SnatSpec { ip4, interface: Some(inside), ..SnatSpec::NONE }).unwrap();
    bed.cnat.set_excluded("10.1.2.3/8".parse().unwrap(), true).unwrap();
    bed.cnat.set_policy_interface(inside, List::Host, true).unwrap();
    bed.cnat.set_policy(PolicyKind::K8s).unwrap();
    bed.cnat.set_feature(inside, true).unwrap();
    let saved = lines(&bed);
    assert_eq!(
        saved,
        [
            "cnat translation add proto UDP vip 198.51.100.1 80 lb maglev flow-hash 0x5 alloc-port no-return-session \
             to 10.0.0.9->10.0.0.2 8080 to ->10.0.0.3 8080 no-nat",
            "cnat translation add proto TCP real pg0 v6 53 to ->2001:db8:1::2 8080",
            "set cnat snat-policy addr 203.0.113.9 pg0",
            "set cnat snat-policy prefix 10.0.0.0/8",
            "set cnat snat-policy if table host pg0",
            "set cnat snat-policy k8s",
            "set cnat feature pg0 enable",
        ]
    );
    let again = crate::bed::bed();
    for line in saved.iter().filter_map(|line| line.strip_prefix("cnat translation add ")) {
        assert_eq!(again.add(line), Ok(String::new()), "{line}");
    }
    assert_eq!(lines(&again), saved[..2]);
}

#[test]
fn commands_answer_as_vpps_do() {
    let mut bed = bed();
    let none = || Ok(String::new());
    assert_eq!(bed.run("show cnat client", &[]), Ok("0 clients\n".to_owned()));
    let sessions = bed.run("show cnat session", &[]).unwrap();
    assert!(sessions.starts_with("CNat Sessions: now:"), "{sessions}");
    assert!(sessions.ends_with("\nHash table 'CNat Session DB'\n    empty, uninitialized\n"), "{sessions}");
    assert_eq!(bed.run("show cnat snat-policy", &[]), Err("no default snat policy".to_owned()));
    assert_eq!(bed.run("show cnat translation", &[]), none());
    assert_eq!(bed.add("proto TCP vip 40.0.0.1 80 to ->10.0.0.5 8080 to ->172.16.0.6 8080"), none());
    for (line, why) in [
        ("bogus", "unknown input 'bogus'"),
        ("proto SCTP vip 40.0.0.1 80", "no protocol 'SCTP', nearest TCP, UDP"),
        ("proto UDP vip 40.0.0.1", "1 to 65535"),
        ("proto UDP vip 40.0.0.1 53 to", "unknown input ''"),
        ("proto UDP vip 40.0.0.1 53 to 10.0.0.5 53 -> nope", "unknown input 'nope'"),
        ("vip 40.0.0.1 53 lb best", "unknown input 'best'"),
        ("vip 40.0.0.1 53 flow-hash 256", "unknown input '256'"),
        ("proto UDP to ->10.0.0.5 53", "a translation and its back ends have a port"),
    ] {
        let error = bed.add(line).unwrap_err();
        assert!(error.contains(why), "{line}: {error}");
    }
    assert!(bed.run("cnat translation del", &["id=9"]).unwrap_err().contains("nearest 0"));
    assert_eq!(bed.run("set cnat snat-policy addr", &["ip4=20.0.0.1"]), none());
    assert_eq!(bed.run("set cnat snat-policy {none", &["if-pfx"]), none());
    assert_eq!(bed.run("set cnat snat-policy if [del]", &["include-v4", "interface=pg0"]), none());
    assert_eq!(bed.run("set cnat snat-policy prefix", &["prefix=10.0.0.0/8"]), none());
    assert_eq!(
        bed.run("show cnat client", &[]).unwrap(),
        "[0] cnat-client:[40.0.0.1] tr:1 sess:0 locks:3 flags: 10 exclusive\n\
         [1] cnat-client:[20.0.0.1] tr:0 sess:0 locks:2 flags: 30 exclusive return\n2 clients\n"
    );
    let policy = bed.run("show cnat snat-policy", &[]).unwrap();
    assert!(policy.starts_with("Source NAT\n  ip4: 20.0.0.1;0\n  ip6: local0 (ip4);0\n"), "{policy}");
    assert!(policy.contains("Policy: if-pfx") && policy.contains("  10.0.0.0/8"), "{policy}");
    assert!(policy.contains("Included v4 interfaces:\n  pg0\n"), "{policy}");
    assert_eq!(
        bed.run("show cnat translation", &[]).unwrap(),
        "[0] 40.0.0.1;80 TCP lb:default fhc:0x9f(default)\n0.0.0.0;0->10.0.0.5;8080\n  resolved\n\
         0.0.0.0;0->172.16.0.6;8080\n  unresolved\n"
    );
    assert_eq!(bed.run("show cnat translation", &["id=1"]), Err("Invalid policy ID:1".to_owned()));
    assert_eq!(bed.run("set cnat feature", &["interface=pg1", "enable"]), none());
    assert!(bed.run("set cnat feature", &["interface=nope", "enable"]).is_err());
    let frame = bed.packet(false, (end("192.0.2.9", 5555), end("40.0.0.1", 80)), TCP, 2);
    bed.nat.router.trace_add("pg-input", 10);
    bed.send_in(frame);
    let trace = bed.nat.router.trace();
    let told =
        "new session\n  TCP [192.0.2.9;5555 -> 40.0.0.1;80] => [192.0.2.9;5555 -> 10.0.0.5;8080] fib:0";
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat(&trace).contains(&flat(told)), "{trace}");
    let sessions = bed.run("show cnat session", &["level=1"]).unwrap();
    assert!(sessions.contains("    1 active elements\n"), "{sessions}");
    assert!(
        sessions.contains("TCP [192.0.2.9;5555 -> 40.0.0.1;80] => [192.0.2.9;5555 -> 10.0.0.5;8080]\n"),
        "{sessions}"
    );
    assert!(sessions.contains(" lifetime:30 ref:1\n"), "{sessions}");
}

#[test]
fn an_interface_that_goes_takes_its_part_along() {
    let mut bed = bed();
    let gone = bed.nat.router.pg(2);
    let index = gone.index();
    bed.cnat.set_feature(index, true).unwrap();
    bed.cnat.set_policy_interface(index, List::Pod, true).unwrap();
    bed.cnat.set_snat(SnatSpec { interface: Some(index), ..SnatSpec::NONE }).unwrap();
    let endpoint = Endpoint { from: AddressSource::Interface(index, Family::Ip4), port: 80 };
    bed.cnat.update(Spec { vip: endpoint, is_real: true, ..spec(vip(false), TCP, &[]) }).unwrap();
    bed.nat.router.generator().delete_interface(index).unwrap();
    assert!(bed.cnat.features().is_empty() && bed.cnat.policy_interfaces().is_empty());
    assert_eq!(bed.cnat.snats()[0].interface, None);
    assert_eq!(flags::ALL, 7);
}
