//! Whole machines: what the doctor says of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a test's failure, told at once"
)]

use crate::world;

use world::*;

/// A virtual machine in a cloud: one virtio port, by which everything goes.
fn cloud() -> World {
    let mut world = World::new();
    world.card("eth0", "0000:00:03.0", (0x1af4, 0x1041), "virtio_net", "/virtio0");
    let lo = world.port("lo");
    std::fs::write(lo.join("type"), "772").unwrap();
    world.default4("eth0");
    world.default6("eth0");
    world.write("proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor\n");
    world.around.ssh_connection = Some("198.51.100.7 51234 192.0.2.5 22".into());
    world
}

#[test]
fn a_cloud_machine_keeps_its_only_port() {
    let world = cloud();
    let report = world.json();
    let eth0 = port(&report, "eth0");
    assert_eq!(eth0["state"], "left-alone");
    assert_eq!(eth0["bus"], "0000:00:03.0");
    assert_eq!(eth0["driver"], "virtio_net");
    let carries: Vec<_> = eth0["carries"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(carries, ["default-route4", "default-route6", "ssh"]);
    assert_eq!(eth0["share"], "create interface af_xdp host-if eth0 pinhole host,dhcp");
    assert_eq!(way(eth0, "AF_PACKET")["command"], serde_json::Value::Null);
    assert_eq!(port(&report, "lo")["state"], "not-for-us");
    assert_eq!(finding(&report, "iommu")["verdict"], "fine");
    assert_eq!(report["next"], "sudo shoal unix { interactive }, and there: create tap");

    let text = world.doctor();
    let said = lines_from(&text, "eth0", 3);
    assert_eq!(said[0], "eth0             left alone virtio_net, 0000:00:03.0");
    assert_eq!(said[1], "carries the default route (IPv4, IPv6) and your SSH session");
    assert_eq!(said[2], "share it:           create interface af_xdp host-if eth0 pinhole host,dhcp");
    assert!(!text.contains("create host-interface name eth0"), "{text}");
}

#[test]
fn without_af_xdp_the_port_is_shared_by_a_packet_socket() {
    let mut world = cloud();
    world.around.build = PLAIN;
    let report = world.json();
    assert_eq!(port(&report, "eth0")["share"], "create host-interface name eth0");
    assert!(world.doctor().contains("shared: the kernel goes on with all packets"));
}

#[test]
fn sessions_to_port_22_are_found_without_the_environment() {
    let mut world = cloud();
    world.around.ssh_connection = None;
    world.port("eth1");
    world.default4("eth0");
    // 203.0.113.9 <- 203.0.113.1, on eth1's network.
    let mut routes = std::fs::read_to_string(world.path("proc/net/route")).unwrap();
    routes.push_str("eth1 007100CB 00000000 0001 0 0 0 00FFFFFF 0 0 0\n");
    world.write("proc/net/route", routes);
    let tcp = "  sl  local_address rem_address   st\n   0: 097100CB:0016 017100CB:C822 01 00000000\n\
               1: 00000000:0016 00000000:0000 0A 0000\n   2: 050200C0:01BB 017100CB:0016 01 0000\n";
    world.write("proc/net/tcp", tcp);
    let report = world.json();
    assert!(port(&report, "eth1")["carries"].get("ssh").is_some());
    assert!(port(&report, "eth0")["carries"].get("ssh").is_none());
    assert_eq!(port(&report, "eth1")["state"], "left-alone");
}

#[test]
fn an_ipv6_session_holds_the_port_of_its_address_and_of_its_way_back() {
    let mut world = World::new();
    for name in ["eth0", "eth1", "eth2"] {
        world.port(name);
    }
    world.write("proc/net/if_inet6", "20010db8000000000000000000000005 02 40 00 80     eth1\n");
    world.default6("eth2");
    let tcp = "  sl  local_address remote_address st\n   0: B80D0120000000000000000005000000:0016 B80D0120010000000000000001000000:1234 01 0\n";
    world.write("proc/net/tcp6", tcp);
    world.around.ssh_connection = Some("fe80::1%eth0 1234 fe80::2%eth0 22".into());
    let report = world.json();
    for name in ["eth0", "eth1", "eth2"] {
        assert!(port(&report, name)["carries"].get("ssh").is_some(), "{name}");
    }
    assert_eq!(port(&report, "eth1")["networks"][0], "2001:db8::5/64");
}

#[test]
fn what_lies_under_the_default_route_is_left_alone_too() {
    let mut world = World::new();
    world.card("eth0", "0000:01:00.0", (0x8086, 0x1533), "igb", "");
    let bridge = world.port("br0");
    std::fs::create_dir(bridge.join("bridge")).unwrap();
    let vlan = world.port("br0.7");
    std::fs::write(vlan.join("uevent"), "DEVTYPE=vlan\nINTERFACE=br0.7\n").unwrap();
    world.link("sys/class/net/br0.7/lower_br0", "../br0");
    world.link("sys/class/net/br0/lower_eth0", "../eth0");
    world.link("sys/class/net/eth0/master", "../br0");
    // A circle must not go round for ever.
    world.link("sys/class/net/eth0/lower_br0.7", "../br0.7");
    world.default4("br0.7");
    let report = world.json();
    assert_eq!(port(&report, "eth0")["carries"]["default-route4"], "br0.7");
    assert_eq!(port(&report, "br0.7")["carries"]["default-route4"], serde_json::Value::Null);
    assert_eq!(port(&report, "eth0")["state"], "left-alone");
    assert!(world.doctor().contains("carries the default route (IPv4) through br0.7"));
}

/// A box at home: two ports on the board, a card with two, IOMMU off in the BIOS.
fn home() -> World {
    let mut world = World::new();
    for (name, bus, speed) in [("enp2s0", "0000:02:00.0", 1000), ("enp3s0", "0000:03:00.0", 2500)] {
        let port = world.card(name, bus, (0x8086, 0x125c), "igc", "");
        with_speed(&port, speed);
        with_queues(&port, 4);
    }
    for (name, bus) in [("enp4s0f0", "0000:04:00.0"), ("enp4s0f1", "0000:04:00.1")] {
        let port = world.card(name, bus, (0x8086, 0x1572), "i40e", "");
        with_speed(&port, 10_000);
        with_queues(&port, 8);
    }
    world.default4("enp2s0");
    world.write("sys/devices/system/cpu/online", "0-7\n");
    for cpu in 0..8 {
        let pair = cpu % 4;
        world.write(
            &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"),
            format!("{pair},{}\n", pair + 4),
        );
        let policy = format!("sys/devices/system/cpu/cpufreq/policy{cpu}");
        world.write(&format!("{policy}/scaling_governor"), "powersave\n");
        world.write(&format!("{policy}/scaling_available_governors"), "performance powersave\n");
    }
    world.write(
        "lib/modules/6.12.9-amd64/modules.dep",
        "kernel/drivers/vfio/pci/vfio-pci.ko.xz: kernel/drivers/vfio/vfio.ko.xz\n",
    );
    world.write("lib/modules/6.12.9-amd64/modules.builtin", "kernel/fs/ext4/ext4.ko\n");
    world
}

#[test]
fn a_box_at_home_is_told_what_each_port_can() {
    let world = home();
    let report = world.json();
    let i226 = port(&report, "enp3s0");
    assert_eq!((i226["model"].as_str(), i226["speed"].as_u64()), (Some("I226-V"), Some(2500)));
    assert_eq!(i226["state"], "free");
    let xdp = way(i226, "AF_XDP");
    assert_eq!(xdp["name"], "AF_XDP, zero-copy");
    assert_eq!(xdp["command"], "create interface af_xdp host-if enp3s0");
    assert_eq!(way(i226, "AF_PACKET")["command"], "create host-interface name enp3s0");
    let dpdk = way(port(&report, "enp4s0f1"), "DPDK");
    assert_eq!(dpdk["now"], false);
    assert_eq!(
        dpdk["note"],
        "with dpdk_plugin.so, in the start-up file: dpdk { dev ... }; vfio-pci wants the IOMMU: off in the firmware, or missing"
    );
    assert_eq!(port(&report, "enp2s0")["state"], "left-alone");
    assert_eq!(finding(&report, "governor")["command"], "sudo shoal tune apply governor");
    assert_eq!(finding(&report, "hugepages")["command"], "sudo shoal tune apply hugepages");
    assert_eq!(finding(&report, "iommu")["verdict"], "better");
    assert!(
        finding(&report, "cores")["value"].as_str().unwrap().contains("threads of one core: 0,4 1,5 2,6 3,7")
    );
    assert_eq!(
        report["next"],
        "sudo shoal unix { interactive }, and there: create interface af_xdp host-if enp3s0"
    );
    let said = lines_from(&world.doctor(), "enp3s0", 2);
    assert_eq!(
        said[0],
        "enp3s0           free       igc, I226-V, 0000:03:00.0, 2.5 Gbit/s, 4 rx, 4 tx queues"
    );
    assert_eq!(said[1], "AF_XDP, zero-copy   create interface af_xdp host-if enp3s0");
}

#[test]
fn an_old_kernel_offers_what_it_has() {
    let world = home();
    world.write("proc/sys/kernel/osrelease", "5.10.0-9\n");
    let report = world.json();
    let xdp = way(port(&report, "enp3s0"), "AF_XDP");
    assert_eq!(xdp["name"], "AF_XDP, generic");
    assert!(xdp["note"].as_str().unwrap().contains("the driver can from Linux 5.13"));
    assert_eq!(way(port(&report, "enp4s0f0"), "AF_XDP")["name"], "AF_XDP, zero-copy");
    // Generic XDP comes after the packet socket.
    assert_eq!(port(&report, "enp3s0")["ways"][0]["name"], "AF_PACKET");
    world.write("proc/net/protocols", "protocol\nPACKET 1\n");
    let report = world.json();
    assert_eq!(way(port(&report, "enp4s0f0"), "AF_XDP")["now"], false);
    assert_eq!(finding(&report, "kernel")["verdict"], "better");
}

#[test]
fn a_jumbo_mtu_and_addresses_of_the_kernel_are_told() {
    let world = home();
    std::fs::write(world.path("sys/class/net/enp3s0/mtu"), "9000").unwrap();
    let mut routes = std::fs::read_to_string(world.path("proc/net/route")).unwrap();
    routes.push_str("enp3s0 0000000A 00000000 0001 0 0 0 000000FF 0 0 0\n");
    world.write("proc/net/route", routes);
    let report = world.json();
    let enp3s0 = port(&report, "enp3s0");
    assert_eq!(enp3s0["before"], "ip address flush dev enp3s0");
    assert_eq!(enp3s0["networks"][0], "10.0.0.0/8");
    assert!(way(enp3s0, "AF_XDP")["note"].as_str().unwrap().contains("MTU 9000"));
}

#[test]
fn a_card_without_an_interface_is_told_with_the_reason() {
    let world = home();
    for (bus, driver) in [("0000:05:00.0", "vfio-pci"), ("0000:05:00.1", "")] {
        let device = format!("sys/bus/pci/devices/{bus}");
        world.write(&format!("{device}/class"), "0x020000");
        world.write(&format!("{device}/vendor"), "0x8086");
        world.write(&format!("{device}/device"), "0x1592");
        if !driver.is_empty() {
            world.link(&format!("{device}/driver"), &format!("../../drivers/{driver}"));
        }
    }
    world.write("sys/bus/pci/devices/0000:00:1f.0/class", "0x060100");
    let report = world.json();
    let cards = report["cards"].as_array().unwrap();
    assert_eq!(cards.len(), 2, "{cards:?}");
    assert_eq!(
        (cards[0]["bus"].as_str(), cards[0]["model"].as_str()),
        (Some("0000:05:00.0"), Some("E810-C"))
    );
    assert_eq!(cards[0]["before"], "echo 0000:05:00.0 > /sys/bus/pci/devices/0000:05:00.0/driver/unbind");
    assert_eq!(cards[1]["before"], "echo 0000:05:00.1 > /sys/bus/pci/drivers_probe");
    assert!(world.doctor().contains("E810-C  0000:05:00.0  no interface"));
}

#[test]
fn a_container_without_capabilities_is_told_what_to_add() {
    let mut world = World::new();
    let eth0 = world.port("eth0");
    std::fs::write(eth0.join("iflink"), "77").unwrap();
    world.write(".dockerenv", "");
    world.status(0, 0xa804_05fb & !(1 << 13), "0");
    std::fs::remove_file(world.path("dev/net/tun")).unwrap();
    world.write("proc/self/limits", "Max locked memory  65536  65536  bytes\n");
    world.write("proc/self/cgroup", "0::/\n");
    world.write("sys/fs/cgroup/memory.max", "134217728\n");
    world.write("sys/fs/cgroup/cpu.max", "150000 100000\n");
    world.default4("eth0");
    let report = world.json();
    assert_eq!(port(&report, "eth0")["kind"], "veth");
    let capabilities = finding(&report, "capabilities");
    assert_eq!(capabilities["verdict"], "missing");
    assert_eq!(capabilities["command"], "docker run --cap-add NET_ADMIN --cap-add NET_RAW ...");
    assert_eq!(finding(&report, "container")["value"], "docker: memory 128 MB, 1.50 processors");
    assert_eq!(finding(&report, "memory")["verdict"], "better");
    assert_eq!(finding(&report, "memlock")["value"], "this process may lock 64 kB");
    assert_eq!(finding(&report, "tap")["command"], "docker run --device /dev/net/tun ...");
    assert_eq!(report["findings"][0]["name"], "capabilities", "the gravest comes first");
    assert_eq!(report["next"], "docker run --cap-add NET_ADMIN --cap-add NET_RAW ...");
}

#[test]
fn somebody_who_is_not_root_is_told_to_use_sudo() {
    let world = World::new();
    world.status(1000, 0, "0-1");
    let report = world.json();
    assert_eq!(finding(&report, "capabilities")["command"], "sudo shoal ...");
}

#[test]
fn root_of_a_user_namespace_is_not_root_of_the_machine() {
    let world = home();
    world.write("proc/self/uid_map", "         0          0 4294967295\n");
    assert_eq!(way(port(&world.json(), "enp3s0"), "AF_XDP")["now"], true);
    world.write("proc/self/uid_map", "         0       1000          1\n");
    let report = world.json();
    assert_eq!(way(port(&report, "enp3s0"), "AF_XDP")["now"], false);
    assert_eq!(port(&report, "enp2s0")["share"], "create host-interface name enp2s0");
    assert!(finding(&report, "capabilities")["value"].as_str().unwrap().contains("user namespace"));
}

#[test]
fn control_groups_of_version_1_limit_too() {
    let world = World::new();
    world.write("proc/self/cgroup", "4:memory:/a/b\n2:cpu,cpuacct:/a\n1:name=systemd:/../../x\n");
    world.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "268435456");
    world.write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712");
    world.write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1");
    let report = world.json();
    assert_eq!(report["machine"]["memory"]["limit"], 268_435_456);
    assert_eq!(report["machine"]["process"]["cpu_quota"], serde_json::Value::Null);
}

/// Two sockets, isolated cores, huge pages, IOMMU on.
fn server() -> World {
    let mut world = home();
    world.write("sys/devices/system/cpu/isolated", "2-3,6-7\n");
    world.write("sys/devices/system/cpu/nohz_full", "2-3,6-7\n");
    world.write("sys/devices/system/node/online", "0-1\n");
    for (node, cores) in [(0, "0-3"), (1, "4-7")] {
        world.write(&format!("sys/devices/system/node/node{node}/cpulist"), cores);
        let pages = format!("sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/free_hugepages");
        world.write(&pages, format!("{}\n", 400 + node));
    }
    world.hugepages("2048", 1024, 801);
    world.hugepages("1048576", 4, 3);
    world.folder("sys/kernel/iommu_groups/17");
    world.link("sys/devices/pci0000:00/0000:04:00.0/iommu_group", "../../../kernel/iommu_groups/17");
    world.write("sys/devices/pci0000:00/0000:04:00.0/numa_node", "1\n");
    let mlx = world.card("ens1np0", "0000:81:00.0", (0x15b3, 0x101d), "mlx5_core", "");
    with_speed(&mlx, 100_000);
    for cpu in 0..8 {
        let policy = format!("sys/devices/system/cpu/cpufreq/policy{cpu}/scaling_governor");
        world.write(&policy, "performance\n");
    }
    world
}

#[test]
fn a_server_that_was_tuned_is_fine() {
    let world = server();
    let report = world.json();
    for name in ["hugepages", "isolation", "governor", "iommu", "thp", "kernel", "capabilities"] {
        assert_eq!(finding(&report, name)["verdict"], "fine", "{name}");
    }
    let huge = finding(&report, "hugepages")["value"].as_str().unwrap().to_owned();
    assert_eq!(
        huge,
        "801 of 1024 pages of 2 MB are free (node 0: 400, node 1: 401); 3 of 4 of 1 GB (not used)"
    );
    assert_eq!(finding(&report, "isolation")["command"], "shoal cpu { corelist-workers 2-3,6-7 }");
    assert!(finding(&report, "numa")["value"].as_str().unwrap().contains("enp4s0f0 on node 1"));
    assert_eq!(finding(&report, "vfio")["command"], "sudo shoal tune apply vfio");
    let dpdk = way(port(&report, "enp4s0f0"), "DPDK");
    assert!(dpdk["note"].as_str().unwrap().contains("through vfio-pci"));
    let mlx = port(&report, "ens1np0");
    assert_eq!(mlx["model"], "ConnectX-6 Dx");
    assert!(way(mlx, "DPDK")["note"].as_str().unwrap().contains("the kernel's driver stays"));
    assert!(world.doctor().contains("100 Gbit/s"));
}

#[test]
fn a_router_that_runs_is_spoken_to_by_its_client() {
    let world = server();
    world.write("run/shoal/cli.sock", "");
    let next = world.json()["next"].as_str().unwrap().to_owned();
    assert!(next.starts_with("sudo shoalctl create interface af_xdp host-if "), "{next}");
}

#[test]
fn interfaces_of_all_kinds_are_told_apart() {
    let mut world = World::new();
    for (name, file, text) in [
        ("tap0", "tun_flags", "0x1002"),
        ("tun0", "tun_flags", "0x1001"),
        ("bond0", "uevent", "DEVTYPE=bond\n"),
        ("wlan0", "uevent", "DEVTYPE=wlan\n"),
        ("wg0", "uevent", "DEVTYPE=wireguard\n"),
        ("ve0", "iflink", "99"),
        ("dummy0", "mtu", "1500"),
    ] {
        let port = world.port(name);
        std::fs::write(port.join(file), text).unwrap();
    }
    for name in ["tun0", "wg0"] {
        std::fs::write(world.path(&format!("sys/class/net/{name}/type")), "65534").unwrap();
    }
    std::fs::create_dir_all(world.path("sys/class/net/br0/bridge")).unwrap();
    // A file that stands among the interfaces, as bonding's does.
    world.write("sys/class/net/bonding_masters", "bond0\n");
    let report = world.json();
    let kinds = [
        ("tap0", "tap"),
        ("tun0", "tun"),
        ("bond0", "bond"),
        ("wlan0", "wireless"),
        ("wg0", "virtual"),
        ("ve0", "veth"),
        ("dummy0", "virtual"),
        ("br0", "bridge"),
    ];
    assert_eq!(report["ports"].as_array().unwrap().len(), kinds.len());
    for (name, kind) in kinds {
        assert_eq!(port(&report, name)["kind"], kind, "{name}");
    }
    let tun = port(&report, "tun0");
    assert_eq!(way(tun, "AF_PACKET")["command"], "create host-interface name tun0 mode ip");
    assert!(tun["ways"].as_array().unwrap().iter().all(|w| w["name"] != "AF_XDP, native"));
    assert_eq!(way(port(&report, "ve0"), "AF_XDP")["name"], "AF_XDP, native");
    world.doctor();
}

#[test]
fn another_namespaces_sys_is_not_taken_for_ours() {
    let mut world = cloud();
    world.port("eth9");
    world.write("proc/net/dev", "Inter-|\n face |\n    lo: 0 0\n veth0: 12 3\n");
    let report = world.json();
    let names: Vec<_> =
        report["ports"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["veth0", "lo"]);
    assert_eq!(port(&report, "veth0")["kind"], "unknown");
    assert_eq!(way(port(&report, "veth0"), "AF_PACKET")["command"], "create host-interface name veth0");
    assert!(world.doctor().contains("/sys shows another network namespace"));
}

#[test]
fn colours_are_for_terminals() {
    let mut world = home();
    assert!(!world.doctor().contains('\x1b'));
    world.around.terminal = true;
    let outcome = shoal_doctor::doctor(&[], &world.around);
    assert!(outcome.out.contains("\x1b[32mfree\x1b[0m"));
}
