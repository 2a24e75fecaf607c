//! `show pci`: devices on the PCI bus, and who drives them.

use std::fmt;
use std::fs;
use std::path::Path;

use serde::Serialize;
use shoal_interface::cli::column::{left, line};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

pub(super) const SHOW: Command = Command::new("show pci [all]", "Show network cards on the PCI bus, and their drivers", show)
    .examples(&["show pci", "show pci all"])
    .doc(
        "Network cards alone, unless it is `all`. A card whose driver is the kernel's can be used by `create interface \
         af_xdp` or `create host-interface`; one with `vfio-pci` by the DPDK plugin. `shoalctl doctor` says more.",
    );

/// PCI's class of network controllers.
const NETWORK: &str = "0x02";

#[derive(Serialize)]
struct Card {
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    numa_node: Option<u32>,
    vendor_id: String,
    device_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_speed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interfaces: Vec<String>,
}

#[derive(Serialize)]
struct Cards(Vec<Card>);

fn show(_: &Control, args: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Cards(cards(Path::new("/sys/bus/pci/devices"), args.has("all")))))
}

/// The devices in a folder of sysfs; none where there is no such bus.
fn cards(folder: &Path, all: bool) -> Vec<Card> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut devices: Vec<Card> = entries.filter_map(|entry| card(&entry.path(), all)).collect();
    devices.sort_by(|a, b| a.address.cmp(&b.address));
    devices
}

fn card(path: &Path, all: bool) -> Option<Card> {
    let text = |file: &str| fs::read_to_string(path.join(file)).ok().map(|text| text.trim().to_owned());
    let hex = |file| Some(text(file)?.trim_start_matches("0x").to_owned());
    if !all && !text("class")?.starts_with(NETWORK) {
        return None;
    }
    let named = |link: &Path| Some(link.file_name()?.to_string_lossy().into_owned());
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    // A virtio device stands below the PCI device, and the interface below it.
    let below = names(path).into_iter().filter(|name| name.starts_with("virtio")).map(|name| path.join(name));
    let interfaces =
        std::iter::once(path.to_owned()).chain(below).flat_map(|at| names(&at.join("net"))).collect();
    // Devices of guests have neither: their files say `Unknown' and 0 or 255 lanes.
    let speed = text("current_link_speed").and_then(|speed| Some(speed.strip_suffix(" PCIe")?.to_owned()));
    let width = text("current_link_width").filter(|width| !["0", "255"].contains(&width.as_str()));
    Some(Card {
        address: named(path)?,
        numa_node: text("numa_node").and_then(|node| node.parse().ok()),
        vendor_id: hex("vendor")?,
        device_id: hex("device")?,
        link_speed: speed.zip(width).map(|(speed, width)| format!("{speed} x{width}")),
        driver: fs::read_link(path.join("driver")).ok().and_then(|link| named(&link)),
        interfaces,
    })
}

impl fmt::Display for Cards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |cells: [&str; 7]| {
            let [address, sock, id, speed, driver, product, data] = cells;
            let cells = [
                left(address, 13),
                left(sock, 5),
                left(id, 12),
                left(speed, 14),
                left(driver, 16),
                left(product, 32),
                left(data, 20),
            ];
            line(&cells)
        };
        let head =
            ["Address", "Sock", "VID:PID", "Link Speed", "Driver", "Product Name", "Vital Product Data"];
        f.write_str(&row(head))?;
        self.0.iter().try_for_each(|device| {
            let sock = device.numa_node.map_or(String::new(), |node| format!("{node:>3}"));
            f.write_str(&row([
                &device.address,
                &sock,
                &format!("{}:{}", device.vendor_id, device.device_id),
                device.link_speed.as_deref().unwrap_or("unknown"),
                device.driver.as_deref().unwrap_or(""),
                &device.interfaces.join(" "),
                "",
            ]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_cards_are_shown_with_their_driver_and_others_on_request() {
        let root = tempfile::tempdir().unwrap();
        let at = |file: &str| root.path().join(file);
        for (address, class) in [("0000:03:00.0", "0x020000"), ("0000:00:1f.0", "0x060100")] {
            fs::create_dir_all(at(&format!("{address}/net/eth7"))).unwrap();
            let files = [
                ("class", class),
                ("vendor", "0x8086"),
                ("device", "0x1572"),
                ("numa_node", "1"),
                ("current_link_speed", "8.0 GT/s PCIe"),
                ("current_link_width", "8"),
            ];
            for (file, text) in files {
                fs::write(at(&format!("{address}/{file}")), format!("{text}\n")).unwrap();
            }
        }
        std::os::unix::fs::symlink("../../../bus/pci/drivers/i40e", at("0000:03:00.0/driver")).unwrap();
        fs::create_dir_all(at("broken")).unwrap();
        assert_eq!(
            Cards(cards(root.path(), false)).to_string(),
            "Address      Sock VID:PID     Link Speed    Driver          Product Name                    Vital Product Data\n\
             0000:03:00.0   1  8086:1572   8.0 GT/s x8   i40e            eth7\n"
        );
        assert_eq!(cards(root.path(), true).len(), 2);
        assert!(cards(&at("nowhere"), true).is_empty());
    }
}
