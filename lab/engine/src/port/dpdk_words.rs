//! The words that name a port of DPDK's, and what they leave to the tester.
//!
//! They are those of the router's `dpdk attach`: a device with its arguments, and settings behind it, in a block or not:
//! `0000:03:00.0`, `net_af_packet0,iface=left mtu 1500`, `"net_pcap0,rx_pcap=a b.pcap" { num-rx-desc 512 }`.

/// Descriptors of each ring, if the words do not say; a device that has fewer takes what it has.
pub(super) const RING: u32 = 2048;
/// What is asked for before what the words say, which so comes last and counts.
const BEFORE: &str = "num-rx-queues 1 num-tx-queues 1 num-rx-desc 2048 num-tx-desc 2048";

/// The device, with its arguments and quotes, and what follows.
fn split(words: &str) -> (&str, &str) {
    let words = words.trim();
    let mut quoted = false;
    let end = words.find(|c: char| {
        quoted ^= c == '"';
        !quoted && (c.is_whitespace() || c == '{')
    });
    let (device, rest) = words.split_at(end.unwrap_or(words.len()));
    (device, rest.trim_start())
}

/// Names and arguments of the device, without quotes.
fn parts(words: &str) -> impl Iterator<Item = &str> {
    split(words).0.trim_matches('"').split(',')
}

/// The device's name without arguments: `0000:03:00.0`, `net_memif0`.
pub(super) fn device(words: &str) -> &str {
    parts(words).next().unwrap_or_default()
}

/// Whether the device is one of DPDK's own making, not one on a bus.
pub(super) fn is_virtual(words: &str) -> bool {
    !device(words).contains(':')
}

/// The words behind the device, one by one.
fn settings(words: &str) -> impl Iterator<Item = &str> {
    split(words).1.split(|c: char| c.is_whitespace() || c == '{' || c == '}').filter(|word| !word.is_empty())
}

/// What a setting is, if the words say so with a number; the last counts.
pub(super) fn setting(words: &str, key: &str) -> Option<u32> {
    let values = settings(words).zip(settings(words).skip(1)).filter(|(name, _)| *name == key);
    values.last()?.1.parse().ok()
}

fn argument(words: &str, key: &str) -> Option<u32> {
    let values = parts(words).filter_map(|part| part.strip_prefix(key)?.strip_prefix('='));
    values.last()?.parse().ok()
}

/// Frames that the receive ring holds: descriptors as asked for, of devices of DPDK's own making what their arguments or
/// their documentation say. A NIC with a smaller limit has fewer; DPDK does not tell.
pub(super) fn ring(words: &str) -> u32 {
    let of = |kind: &str| device(words).starts_with(kind);
    let asked = setting(words, "num-rx-desc").unwrap_or(RING);
    if of("net_memif") {
        1u32.checked_shl(argument(words, "rsize").unwrap_or(10)).unwrap_or(RING)
    } else if of("net_af_packet") {
        argument(words, "framecnt").unwrap_or(512)
    } else if of("net_ring") {
        1024
    } else {
        asked
    }
}

/// All that the plugin is told.
pub(super) fn complete(words: &str) -> String {
    let (device, rest) = split(words);
    match rest.strip_prefix('{') {
        Some(block) => format!("{device} {{ {BEFORE} {block}"),
        None => format!("{device} {BEFORE} {rest}"),
    }
}

/// The inside of the stanza that DPDK is started with, if the settings have none: the bus is looked at only if a device on
/// it is wanted, and then only those are taken. Frames are the tester's as they are: no device completes or checks sums.
pub(super) fn stanza(all: [&str; 2]) -> String {
    let named: Vec<String> = all
        .into_iter()
        .filter(|words| !is_virtual(words))
        .map(|words| format!("dev {}", device(words)))
        .collect();
    let bus = if named.is_empty() { "no-pci num-mbufs 8192".to_owned() } else { named.join(" ") };
    format!("{bus} no-tx-checksum-offload no-rx-checksum-offload")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_words_say_comes_behind_what_is_asked_for_by_itself() {
        assert_eq!(complete("0000:03:00.0"), format!("0000:03:00.0 {BEFORE} "));
        assert_eq!(complete(" net_ring0  mtu 9000 "), format!("net_ring0 {BEFORE} mtu 9000"));
        assert_eq!(complete("net_ring0 { mtu 9000 }"), format!("net_ring0 {{ {BEFORE}  mtu 9000 }}"));
        assert_eq!(complete("net_ring0{ mtu 9000 }"), format!("net_ring0 {{ {BEFORE}  mtu 9000 }}"));
        assert_eq!(
            complete("\"net_pcap0,rx_pcap=a b\" name x"),
            format!("\"net_pcap0,rx_pcap=a b\" {BEFORE} name x")
        );
    }

    #[test]
    fn rings_are_what_devices_say() {
        for (words, frames) in [
            ("0000:03:00.0", 2048),
            ("0000:03:00.0 num-rx-desc 512", 512),
            ("0000:03:00.0 { num-rx-desc 512 num-rx-desc 4096 }", 4096),
            ("net_memif0,role=client", 1024),
            ("net_memif0,rsize=12,role=client num-rx-desc 64", 4096),
            ("net_memif0,rsize=99", 2048),
            ("net_af_packet0,iface=a", 512),
            ("net_af_packet0,iface=a,framecnt=1024", 1024),
            ("net_ring0", 1024),
            ("", 2048),
        ] {
            assert_eq!(ring(words), frames, "{words}");
        }
        assert_eq!(
            (setting("net_null0 mtu 9000", "mtu"), setting("net_null0 mtu", "mtu")),
            (Some(9000), None)
        );
    }

    #[test]
    fn the_bus_is_looked_at_only_for_devices_on_it() {
        assert!(is_virtual("net_memif0,socket=/run/a:b.sock") && !is_virtual("0000:03:00.0,x=1"));
        assert!(stanza(["net_ring0", "net_ring1"]).starts_with("no-pci "));
        let bus = stanza(["0000:03:00.0 mtu 9000", "03:00.1"]);
        assert!(bus.starts_with("dev 0000:03:00.0 dev 03:00.1 no-tx"), "{bus}");
    }
}
