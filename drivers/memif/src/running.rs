//! What rebuilds memifs and their sockets.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};
use shoal_wire::MacAddress;

use crate::{BUFFER_SIZE, CreateMemif, Detail, Memifs, Mode, RING_SIZE, Role};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(memifs), Some(interfaces)) =
        (running.part::<Memifs>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    for socket in memifs.sockets() {
        if socket.id != 0 {
            let line = format!("create memif socket id {} filename {}", socket.id, word(&socket.asked));
            running.line(Phase::System, line);
        }
    }
    for info in memifs.list(None, Detail::Brief).unwrap_or_default() {
        let mac = interfaces.data(info.index).map(|data| data.mac()).unwrap_or_default();
        interfaces.write_create(running, info.index, line(&info.config, mac), &info.config.name());
    }
}

fn line(memif: &CreateMemif, mac: MacAddress) -> String {
    let mut line = format!("create interface memif id {}", memif.id);
    let mut say = |said: bool, text: String| {
        if said {
            let _ = write!(line, " {text}");
        }
    };
    say(memif.socket != 0, format!("socket-id {}", memif.socket));
    say(memif.role == Role::Master, "master".into());
    say(memif.ring_size != RING_SIZE, format!("ring-size {}", memif.ring_size));
    say(memif.buffer_size != BUFFER_SIZE, format!("buffer-size {}", memif.buffer_size));
    // Also one that was drawn: hosts that know the router by it still do after a restart.
    say(!mac.is_zero(), format!("hw-addr {mac}"));
    say(!memif.secret.is_empty(), format!("secret {}", word(&memif.secret)));
    say(memif.rx_queues != 1, format!("rx-queues {}", memif.rx_queues));
    say(memif.tx_queues != 1, format!("tx-queues {}", memif.tx_queues));
    say(memif.mode == Mode::Ip, "mode ip".into());
    say(!memif.zero_copy, "no-zero-copy".into());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memif_is_written_with_everything_that_was_asked_for() {
        let mac = MacAddress([2, 0xfe, 0, 0, 0, 1]);
        assert_eq!(
            line(&CreateMemif::default(), mac),
            "create interface memif id 0 hw-addr 02:fe:00:00:00:01"
        );
        let memif = CreateMemif {
            id: 3,
            socket: 1,
            role: Role::Master,
            mode: Mode::Ip,
            ring_size: 64,
            buffer_size: 4096,
            rx_queues: 2,
            tx_queues: 4,
            mac: None,
            secret: "two words".into(),
            zero_copy: false,
        };
        assert_eq!(
            line(&memif, MacAddress::ZERO),
            "create interface memif id 3 socket-id 1 master ring-size 64 buffer-size 4096 secret \"two words\" \
             rx-queues 2 tx-queues 4 mode ip no-zero-copy"
        );
    }
}
