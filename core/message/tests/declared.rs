//! Messages are declared as VPP's are, and are the same bytes.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use shoal_message::{
    AddressUnion, Count, Described, Input, Malformed, Message, Module, Prefix, Reply, Service, Text, Value,
    crc, table_name,
};

/// Asks whether anybody is there.
#[derive(Message, Clone, Debug, PartialEq)]
#[message(request, reply = ControlPingReply)]
struct ControlPing {}

/// Somebody is.
#[derive(Message, Clone, Debug, PartialEq)]
#[message(reply)]
struct ControlPingReply {
    retval: i32,
    client_index: u32,
    vpe_pid: u32,
}

/// Index of an interface.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
#[value(alias)]
struct InterfaceIndex(u32);

/// What state an interface is in.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
#[value(open)]
#[entry("IF_STATUS_API_FLAG_ADMIN_UP", 1)]
#[entry("IF_STATUS_API_FLAG_LINK_UP", 2)]
struct IfStatusFlags(u32);

/// Changes the state of an interface.
#[derive(Message, Clone, Debug, PartialEq)]
#[message(request)]
struct SwInterfaceSetFlags {
    sw_if_index: InterfaceIndex,
    flags: IfStatusFlags,
}

/// The state of an interface has changed.
#[derive(Message, Clone, Debug, PartialEq)]
#[message(event)]
struct SwInterfaceEvent {
    sw_if_index: InterfaceIndex,
    flags: IfStatusFlags,
    deleted: bool,
}

/// Asks for events of changes.
#[derive(Message, Clone, Debug, PartialEq)]
#[message(request, events = SwInterfaceEvent)]
struct WantInterfaceEvents {
    enable_disable: u32,
    pid: u32,
}

/// Asks for the routes of a table.
#[derive(Message, Clone, Debug, PartialEq)]
#[message(request, details = IpRouteDetails)]
struct IpRouteDump {
    table: IpTable,
}

/// A table.
#[derive(Value, Clone, Debug, PartialEq)]
struct IpTable {
    table_id: u32,
    is_ip6: bool,
    name: Text<64>,
}

/// A route.
#[derive(Message, Clone, Debug, PartialEq)]
#[message(reply)]
struct IpRouteDetails {
    route: IpRoute,
}

/// A message and its number.
#[derive(Value, Clone, Debug, PartialEq)]
struct MessageTableEntry {
    index: u16,
    name: Text<64>,
}

/// All messages there are.
#[derive(Message, Clone, Debug, PartialEq)]
#[message(bare)]
struct SockclntCreateReply {
    client_index: u32,
    context: u32,
    response: i32,
    index: u32,
    count: Count<u16>,
    #[counted_by(count)]
    message_table: Vec<MessageTableEntry>,
}

/// What a path leads to.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
enum FibPathType {
    #[entry("FIB_API_PATH_TYPE_NORMAL")]
    Normal = 0,
    #[entry("FIB_API_PATH_TYPE_LOCAL")]
    Local = 1,
    #[entry("FIB_API_PATH_TYPE_DROP")]
    Drop = 2,
    #[entry("FIB_API_PATH_TYPE_UDP_ENCAP")]
    UdpEncap = 3,
    #[entry("FIB_API_PATH_TYPE_BIER_IMP")]
    BierImp = 4,
    #[entry("FIB_API_PATH_TYPE_ICMP_UNREACH")]
    IcmpUnreach = 5,
    #[entry("FIB_API_PATH_TYPE_ICMP_PROHIBIT")]
    IcmpProhibit = 6,
    #[entry("FIB_API_PATH_TYPE_SOURCE_LOOKUP")]
    SourceLookup = 7,
    #[entry("FIB_API_PATH_TYPE_DVR")]
    Dvr = 8,
    #[entry("FIB_API_PATH_TYPE_INTERFACE_RX")]
    InterfaceRx = 9,
    #[entry("FIB_API_PATH_TYPE_CLASSIFY")]
    Classify = 10,
}

/// How a path is resolved.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
enum FibPathFlags {
    #[entry("FIB_API_PATH_FLAG_NONE")]
    None = 0,
    #[entry("FIB_API_PATH_FLAG_RESOLVE_VIA_ATTACHED")]
    ViaAttached = 1,
    #[entry("FIB_API_PATH_FLAG_RESOLVE_VIA_HOST")]
    ViaHost = 2,
    #[entry("FIB_API_PATH_FLAG_POP_PW_CW")]
    PopPwCw = 4,
}

/// What a path's next hop speaks.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
enum FibPathNhProto {
    #[entry("FIB_API_PATH_NH_PROTO_IP4")]
    Ip4 = 0,
    #[entry("FIB_API_PATH_NH_PROTO_IP6")]
    Ip6 = 1,
    #[entry("FIB_API_PATH_NH_PROTO_MPLS")]
    Mpls = 2,
    #[entry("FIB_API_PATH_NH_PROTO_ETHERNET")]
    Ethernet = 3,
    #[entry("FIB_API_PATH_NH_PROTO_BIER")]
    Bier = 4,
}

/// A path's next hop.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
struct FibPathNh {
    address: AddressUnion,
    via_label: u32,
    obj_id: u32,
    classify_table_index: u32,
}

/// A label to put on a packet.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq)]
struct FibMplsLabel {
    is_uniform: u8,
    label: u32,
    ttl: u8,
    exp: u8,
}

/// A way to go.
#[derive(Value, Clone, Debug, PartialEq)]
struct FibPath {
    sw_if_index: u32,
    table_id: u32,
    rpf_id: u32,
    weight: u8,
    preference: u8,
    r#type: FibPathType,
    flags: FibPathFlags,
    proto: FibPathNhProto,
    nh: FibPathNh,
    n_labels: u8,
    label_stack: [FibMplsLabel; 16],
}

/// A prefix and the ways to it.
#[derive(Value, Clone, Debug, PartialEq)]
struct IpRoute {
    table_id: u32,
    stats_index: u32,
    prefix: Prefix,
    n_paths: Count<u8>,
    #[counted_by(n_paths)]
    paths: Vec<FibPath>,
}

/// Whether a route was added, and where it counts.
#[derive(Message, Clone, Debug, PartialEq)]
#[message(reply)]
struct IpRouteAddDelReply {
    retval: i32,
    stats_index: u32,
}

/// What the CLI says.
#[derive(Message, Clone, Debug, PartialEq)]
#[message(reply)]
struct CliInbandReply {
    retval: i32,
    reply: String,
}

/// Adds or removes a route.
#[derive(Message, Clone, Debug, PartialEq)]
#[message(request, reply = IpRouteAddDelReply)]
struct IpRouteAddDel {
    is_add: bool,
    is_multipath: bool,
    route: IpRoute,
}

/// A line for the CLI.
#[derive(Message, Clone, Debug, PartialEq)]
#[message(request, reply = CliInbandReply)]
struct CliInband {
    cmd: String,
}

fn path(address: IpAddr, weight: u8) -> FibPath {
    FibPath {
        sw_if_index: u32::MAX,
        table_id: 0,
        rpf_id: 0,
        weight,
        preference: 0,
        r#type: FibPathType::Normal,
        flags: FibPathFlags::None,
        proto: FibPathNhProto::Ip4,
        nh: FibPathNh { address: address.into(), via_label: 0, obj_id: 0, classify_table_index: 0 },
        n_labels: 0,
        label_stack: Default::default(),
    }
}

fn route(paths: Vec<FibPath>) -> IpRouteAddDel {
    let prefix = Prefix { address: Ipv4Addr::new(172, 16, 1, 0).into(), len: 24 };
    let route = IpRoute { table_id: 7, stats_index: 0, prefix, n_paths: Count::default(), paths };
    IpRouteAddDel { is_add: true, is_multipath: false, route }
}

fn bytes<M: Message>(message: &M) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

fn back<M: Message>(bytes: &[u8]) -> Result<M, Malformed> {
    M::decode(&mut Input::new(bytes))
}

#[test]
fn the_checksum_is_that_of_vpp() {
    assert_eq!(crc::<ControlPing>(), 0x5107_7d14);
    assert_eq!(crc::<ControlPingReply>(), 0xf6b0_b8ca);
    assert_eq!(crc::<SwInterfaceSetFlags>(), 0xf5ae_c1b8);
    assert_eq!(crc::<SwInterfaceEvent>(), 0x2d3d_95a7);
    assert_eq!(crc::<WantInterfaceEvents>(), 0x476f_5a08);
    assert_eq!(crc::<IpRouteDump>(), 0xb9d2_e09e);
    assert_eq!(crc::<IpRouteDetails>(), 0xbda8_f315);
    assert_eq!(crc::<SockclntCreateReply>(), 0x3516_6268);
    assert_eq!(crc::<IpRouteAddDel>(), 0xb8ec_fe0d);
    assert_eq!(table_name::<ControlPing>(), "control_ping_51077d14");
}

#[test]
fn a_request_says_how_it_is_answered() {
    let service = |reply, details, events| Some(Service { reply, details, events });
    assert_eq!(SwInterfaceSetFlags::SERVICE, service(Reply::Done, None, &[]));
    assert_eq!(ControlPing::SERVICE, service(Reply::Message("control_ping_reply"), None, &[]));
    assert_eq!(IpRouteDump::SERVICE, service(Reply::None, Some("ip_route_details"), &[]));
    assert_eq!(WantInterfaceEvents::SERVICE, service(Reply::Done, None, &["sw_interface_event"]));
    assert_eq!(ControlPingReply::SERVICE, None);
    assert_eq!(SockclntCreateReply::SERVICE, None);
}

#[test]
fn a_message_is_its_fields_without_gaps() {
    let address: IpAddr = "172.16.1.1".parse().unwrap();
    let mut to = vec![0xee];
    Prefix { address, len: 24 }.encode(&mut to);
    assert_eq!(to, [&[0xee, 0, 172, 16, 1, 1][..], &[0; 12], &[24]].concat());
    let flags = SwInterfaceSetFlags { sw_if_index: InterfaceIndex(1), flags: IfStatusFlags(3) };
    assert_eq!(bytes(&flags), [0, 0, 0, 1, 0, 0, 0, 3]);
    assert_eq!(bytes(&CliInband { cmd: "show".into() }), *b"\0\0\0\x04show");
    let entry = MessageTableEntry { index: 0x102, name: "ping".into() };
    let reply = SockclntCreateReply {
        client_index: 0,
        context: 9,
        response: 0,
        index: 1,
        count: Count::default(),
        message_table: vec![entry],
    };
    let sent = bytes(&reply);
    assert_eq!(sent.len(), 4 * 4 + 2 + 66);
    assert_eq!(sent[16..24], *b"\0\x01\x01\x02ping", "how many, and the first");
    assert_eq!(back::<SockclntCreateReply>(&sent).unwrap(), reply);
}

#[test]
fn what_lies_about_its_length_is_an_error_and_takes_no_memory() {
    let sent = bytes(&route(vec![path("10.0.0.1".parse().unwrap(), 1), path("::1".parse().unwrap(), 2)]));
    for n in 0..sent.len() {
        assert!(matches!(back::<IpRouteAddDel>(&sent[..n]), Err(Malformed::Short { .. })), "{n}");
    }
    let mut more = sent.clone();
    more.extend([0; 3]);
    assert_eq!(back::<IpRouteAddDel>(&more), back(&sent), "what is behind does not matter");
    let huge = [0xff; 4];
    assert_eq!(back::<CliInband>(&huge), Err(Malformed::Short { wanted: u32::MAX as usize, left: 0 }));
    let mut many = vec![0; 16];
    many.extend([0xff, 0xff, 0, 0]);
    assert_eq!(back::<SockclntCreateReply>(&many), Err(Malformed::Short { wanted: 65_535 * 66, left: 2 }));
}

#[test]
fn numbers_and_texts_that_are_none_are_errors() {
    let mut sent = bytes(&route(vec![path("10.0.0.1".parse().unwrap(), 1)]));
    let family = 2 + 8;
    sent[family] = 2;
    assert_eq!(back::<IpRouteAddDel>(&sent), Err(Malformed::NoSuchValue { of: "address_family", value: 2 }));
    assert_eq!(back::<CliInband>(&[0, 0, 0, 1, 0xff]), Err(Malformed::NoText));
}

#[test]
fn more_than_can_be_counted_is_cut() {
    let many = route(vec![path("10.0.0.1".parse().unwrap(), 1); 300]);
    let read: IpRouteAddDel = back(&bytes(&many)).unwrap();
    assert_eq!(read.route.paths.len(), 255);
}

#[test]
fn a_text_is_cut_at_a_character() {
    let text = Text::<4>::from("aéé");
    assert_eq!(text.as_str(), "aé");
    let mut to = Vec::new();
    text.encode(&mut to);
    assert_eq!(to, [b'a', 0xc3, 0xa9, 0]);
}

fn module() -> Module {
    Module {
        name: "some",
        version: "1.0.0",
        messages: vec![
            Described::of::<ControlPing>(),
            Described::of::<ControlPingReply>(),
            Described::of::<SwInterfaceSetFlags>(),
            Described::of::<WantInterfaceEvents>(),
            Described::of::<SwInterfaceEvent>(),
            Described::of::<SockclntCreateReply>(),
            Described::of::<IpRouteAddDel>(),
            Described::of::<IpRouteAddDelReply>(),
            Described::of::<IpRouteDump>(),
            Described::of::<IpRouteDetails>(),
            Described::of::<CliInband>(),
            Described::of::<CliInbandReply>(),
        ],
    }
}

/// Of the lists whose first item is a name, that of this name.
fn named<'a>(all: &'a Json, name: &str) -> Option<&'a Json> {
    all.as_array()?.iter().find(|one| one.get(0).and_then(Json::as_str) == Some(name))
}

#[test]
fn the_description_names_every_type_once_and_behind_its_parts() {
    let json = module().json();
    let of = |what: &str| -> Vec<&str> {
        json[what].as_array().unwrap().iter().map(|one| one[0].as_str().unwrap()).collect()
    };
    let wanted = [
        "message_table_entry",
        "address",
        "prefix",
        "fib_path_nh",
        "fib_mpls_label",
        "fib_path",
        "ip_route",
        "ip_table",
    ];
    assert_eq!(of("types"), wanted);
    assert_eq!(of("unions"), ["address_union"]);
    let enums = ["if_status_flags", "address_family", "fib_path_type", "fib_path_flags", "fib_path_nh_proto"];
    assert_eq!(of("enums"), enums);
    assert_eq!(json["aliases"]["ip6_address"], json!({ "type": "u8", "length": 16 }));
    assert_eq!(json["aliases"]["interface_index"], json!({ "type": "u32" }));
    assert_eq!(json["services"]["ip_route_dump"], json!({ "reply": "ip_route_details", "stream": true }));
    assert_eq!(json["services"]["cli_inband"], json!({ "reply": "cli_inband_reply" }));
    let reply = named(&json["messages"], "sw_interface_set_flags_reply").unwrap();
    assert_eq!(reply[4]["crc"], "0xe8d4e804");
}

/// VPP's own descriptions are not part of this project; where they lie beside it, ours are compared with them.
#[test]
fn what_is_declared_is_what_vpp_declares() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/api-json/core");
    let Ok(files) = std::fs::read_dir(&folder) else {
        println!("SKIP what_is_declared_is_what_vpp_declares: no {}", folder.display());
        return;
    };
    let text = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let theirs: Vec<Json> = text.map(|text| serde_json::from_str(&text).unwrap()).collect();
    let ours = module().json();
    // Options, comments and which arm of a union holds are not compared.
    let plain = |one: &Json| -> Vec<Json> {
        let parts =
            one.as_array().unwrap().iter().filter(|part| !part.is_object() || part.get("crc").is_some());
        parts
            .map(|part| part.get("crc").cloned().unwrap_or_else(|| part.clone()))
            .map(without_options)
            .collect()
    };
    let mut compared = 0;
    for what in ["messages", "types", "unions", "enums", "enumflags"] {
        for one in ours[what].as_array().unwrap() {
            let name = one[0].as_str().unwrap();
            let same = theirs.iter().find_map(|file| named(&file[what], name));
            let same = same.unwrap_or_else(|| panic!("VPP has no {name} among its {what}"));
            assert_eq!(plain(one), plain(same), "{name}");
            compared += 1;
        }
    }
    for (name, service) in ours["services"].as_object().unwrap() {
        let same = theirs.iter().find_map(|file| file["services"].get(name)).unwrap();
        assert_eq!(service, same, "{name}");
    }
    println!("{compared} compared");
    assert!(compared > 25);
}

fn without_options(part: Json) -> Json {
    match part {
        Json::Array(all) => all.into_iter().filter(|item| !item.is_object()).collect(),
        other => other,
    }
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        addresses in prop::collection::vec((any::<IpAddr>(), any::<u8>()), 0..20),
        table in any::<u32>(),
    ) {
        let mut sent = route(addresses.into_iter().map(|(a, weight)| path(a, weight)).collect());
        sent.route.table_id = table;
        prop_assert_eq!(back::<IpRouteAddDel>(&bytes(&sent)).unwrap(), sent);
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(any in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(read) = back::<IpRouteAddDel>(&any) {
            prop_assert!(any.starts_with(&bytes(&read)) || any[..2].iter().any(|flag| *flag > 1));
        }
        let _ = back::<SockclntCreateReply>(&any);
        let _ = back::<CliInband>(&any);
    }
}
