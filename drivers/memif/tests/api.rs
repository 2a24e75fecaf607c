//! Messages and commands of memifs.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use crate::support;

use shoal_memif::api::*;
use shoal_memif::{CreateMemif, Memifs};
use shoal_message::{InterfaceIndex, MacAddress, Retval, Text};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};
use shoal_testkit::{Router, api};
use support::*;

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API]);
}

/// But for those that listen somewhere.
static REPEATABLE: ApiPart = ApiPart {
    file: "memif",
    folder: Folder::Plugins,
    version: "3.1.0",
    messages: &[
        ApiMessage::request::<MemifSocketFilenameAddDel>(),
        ApiMessage::request::<MemifSocketFilenameAddDelV2>(),
        ApiMessage::request::<MemifDelete>(),
        ApiMessage::dump::<MemifSocketFilenameDump>(),
        ApiMessage::dump::<MemifDump>(),
    ],
};

#[test]
fn random_bytes_do_no_harm() {
    let mut router = Router::new(MODULES);
    api::random_bytes_do_no_harm(&mut router, &[&REPEATABLE], 300);
}

fn plain(id: u32, socket_id: u32) -> MemifCreateV2 {
    MemifCreateV2 {
        role: MemifRole::Slave,
        mode: MemifMode::Ethernet,
        rx_queues: 0,
        tx_queues: 0,
        id,
        socket_id,
        ring_size: 0,
        buffer_size: 0,
        no_zero_copy: false,
        use_dma: false,
        hw_addr: MacAddress::default(),
        secret: Text::from(""),
    }
}

#[test]
fn sockets_and_interfaces_come_and_go_by_message() {
    let router = Router::new(MODULES);
    let call = Call::local(router.control());
    let add = |socket_id, name: &str| {
        let add = MemifSocketFilenameAddDelV2 { is_add: true, socket_id, socket_filename: name.into() };
        add.handle(&call).map(|reply| reply.socket_id)
    };
    let (one, two) = (socket_name("api1"), socket_name("api2"));
    assert_eq!(add(u32::MAX, &one), Ok(1));
    // The same once more is no error; another file for the number is, as is another number for the file.
    assert_eq!(add(1, &one), Ok(1));
    assert_eq!(add(1, &two), Err(Retval::ENTRY_ALREADY_EXISTS));
    assert_eq!(add(5, &one), Err(Retval::ENTRY_ALREADY_EXISTS));
    assert_eq!(add(7, ""), Err(Retval::INVALID_ARGUMENT));
    assert_eq!(add(7, &"x".repeat(200)), Err(Retval::INVALID_ARGUMENT));
    let old = |is_add, socket_id, name: &str| {
        MemifSocketFilenameAddDel { is_add, socket_id, socket_filename: Text::from(name) }.handle(&call)
    };
    assert_eq!(old(true, 9, &two), Ok(()));
    assert_eq!(old(false, 9, ""), Ok(()));
    assert_eq!(old(false, 9, ""), Err(Retval::INVALID_ARGUMENT));
    assert_eq!(old(false, 0, ""), Err(Retval::INVALID_ARGUMENT));

    let created = plain(3, 1).handle(&call).unwrap();
    assert_eq!(plain(3, 1).handle(&call).map(|_| ()), Err(Retval::SUBIF_ALREADY_EXISTS));
    let wrong = |change: fn(&mut MemifCreateV2)| {
        let mut wish = plain(4, 1);
        change(&mut wish);
        wish.handle(&call).map(|_| ()).unwrap_err()
    };
    assert_eq!(wrong(|m| m.role = MemifRole::Master), Retval::SUBIF_ALREADY_EXISTS);
    assert_eq!(wrong(|m| m.mode = MemifMode::PuntInject), Retval::UNIMPLEMENTED);
    assert_eq!(wrong(|m| m.ring_size = 1000), Retval::INVALID_ARGUMENT);
    assert_eq!(wrong(|m| m.buffer_size = 1), Retval::INVALID_ARGUMENT);
    assert_eq!(wrong(|m| m.rx_queues = 65), Retval::INVALID_ARGUMENT);
    assert_eq!(wrong(|m| m.socket_id = 77), Retval::INVALID_ARGUMENT);
    assert_eq!(old(false, 1, ""), Err(Retval::INVALID_INTERFACE));

    let all: Vec<_> = MemifDump {}.dump(&call).collect();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].id, all[0].socket_id, all[0].ring_size, all[0].buffer_size), (3, 1, 1, 0));
    assert_eq!((all[0].if_name.as_str(), all[0].role, all[0].flags.0), ("memif1/3", MemifRole::Slave, 0));
    assert_ne!(all[0].hw_addr, MacAddress::default());
    let sockets: Vec<_> = MemifSocketFilenameDump {}.dump(&call).collect();
    assert_eq!(sockets.len(), 2);
    assert_eq!((sockets[1].socket_id, sockets[1].socket_filename.as_str()), (1, one.as_str()));

    let delete = |index| MemifDelete { sw_if_index: index }.handle(&call);
    assert_eq!(delete(InterfaceIndex(0)), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(delete(InterfaceIndex(99)), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(delete(created.sw_if_index), Ok(()));
    assert_eq!(MemifDump {}.dump(&call).count(), 0);
}

#[test]
fn errors_name_what_is_there() {
    let router = Router::new(MODULES);
    let memifs = router.get::<Memifs>();
    let said = |create: CreateMemif| memifs.create(&create).unwrap_err().to_string();
    assert_eq!(said(CreateMemif { socket: 5, ..CreateMemif::default() }), "no memif socket 5; there are: 0");
    assert_eq!(
        memifs.delete(shoal_interface::SwIfIndex(0)).unwrap_err().to_string(),
        "local0 is no memif; there are: none"
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("plain");
    std::fs::write(&file, "").unwrap();
    memifs.add_socket(Some(5), file.to_str().unwrap()).unwrap();
    let master = CreateMemif { socket: 5, role: shoal_memif::Role::Master, ..CreateMemif::default() };
    assert!(said(master.clone()).ends_with("exists and is not a socket"));
    // Two that want to listen at one place; one that has died does not keep it.
    let path = dir.path().join("sock");
    memifs.add_socket(Some(6), path.to_str().unwrap()).unwrap();
    let master = CreateMemif { socket: 6, ..master };
    let index = memifs.create(&master).unwrap();
    let other = Router::new(MODULES);
    let others = other.get::<Memifs>();
    others.add_socket(Some(6), path.to_str().unwrap()).unwrap();
    assert!(others.create(&master).unwrap_err().to_string().contains("another process serves this socket"));
    memifs.delete(index).unwrap();
    assert!(!path.exists());
    others.create(&master).unwrap();
    assert!(path.exists());
    // One without a listener.
    let stale = dir.path().join("stale");
    let dead = shoal_memif::listen(&shoal_memif::Place::File(dir.path().join("dead"))).unwrap();
    std::fs::hard_link(dir.path().join("dead"), &stale).unwrap();
    drop(dead);
    assert!(stale.exists() && !dir.path().join("dead").exists());
    memifs.add_socket(Some(7), stale.to_str().unwrap()).unwrap();
    memifs.create(&CreateMemif { socket: 7, ..master }).unwrap();
}
