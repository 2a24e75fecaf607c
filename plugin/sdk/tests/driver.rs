//! A driver and a command, called as the router calls them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::sync::Mutex;

use shoal_plugin_sdk::{Arm, Built, Burst, Driver, Link, Opened, Plugin, Setting, Words, abi};

/// Keeps what it is given, and gives it back.
struct Mirror(Mutex<Vec<Vec<u8>>>);

static MIRROR: Mirror = Mirror(Mutex::new(Vec::new()));

impl Driver for Mirror {
    const NAME: &'static str = "mirror";

    fn start(&self, settings: Option<&str>) -> Result<u32, String> {
        settings.map_or(Ok(0), |s| s.trim().parse().map_err(|_| format!("`{s}' is no number")))
    }

    fn open(&self, position: u32) -> Result<Opened, String> {
        let name = format!("mirror{position}");
        Ok(Opened { number: position, name, rx_workers: vec![None, Some(3)], mtu: 1500, ..Opened::default() })
    }

    fn attach(&self, words: &str) -> Result<Opened, String> {
        if words == "panic" { panic!("as asked") } else { Err(format!("no {words}")) }
    }

    fn close(&self, _: u32) {}

    fn set(&self, _: u32, setting: Setting) -> Result<(), String> {
        Err(format!("{setting:?}"))
    }

    fn link(&self, device: u32) -> Option<Link> {
        (device == 0).then_some(Link { up: true, speed: 10, gone: false, missed: 4 })
    }

    fn describe(&self, _: u32, detail: bool) -> String {
        if detail { "x".repeat(100) } else { "a mirror".to_owned() }
    }

    fn poll(&self, _: u32, _: u32, _: u32) -> u32 {
        self.0.lock().unwrap().iter().map(|p| p.len().div_ceil(4) as u32).sum()
    }

    fn receive(&self, burst: &mut Burst<'_>) {
        for packet in self.0.lock().unwrap().drain(..) {
            burst.put(&packet);
        }
    }

    fn send(&self, burst: &mut Burst<'_>) {
        let mut packet = Vec::new();
        burst.each(|bytes, more| {
            packet.extend_from_slice(bytes);
            if !more {
                self.0.lock().unwrap().push(std::mem::take(&mut packet));
            }
            true
        });
    }

    fn wait(&self, device: u32, queue: u32) -> Option<i32> {
        assert!(queue < 2, "as asked");
        (device == 0).then_some(40 + queue.cast_signed())
    }

    fn arm(&self, _: u32, queue: u32, _: u32) -> Arm {
        [Arm::Armed, Arm::Packets, Arm::Cannot][queue as usize]
    }
}

fn text(room: &mut [u8]) -> abi::Text {
    let (size, bytes) = (size_of::<abi::Text>() as u32, room.as_mut_ptr().cast());
    abi::Text { size, room: room.len() as u32, length: 0, reserved: 0, bytes }
}

fn slot(bytes: &mut [u8]) -> abi::Slot {
    // SAFETY: integers and a pointer.
    let empty: abi::Slot = unsafe { std::mem::zeroed() };
    abi::Slot { bytes: bytes.as_mut_ptr(), capacity: bytes.len() as u32, length: bytes.len() as u32, ..empty }
}

#[test]
fn a_driver_is_called_as_its_trait_says() {
    static BUILT: Built = Built::new();
    let make = || {
        Plugin::new("mirror", "1", "A test").driver(&MIRROR).command(
            "show mirror",
            "Show",
            Words::Rest,
            |w| {
                if w.is_empty() { Err("which?".to_owned()) } else { Ok(w.to_uppercase()) }
            },
        )
    };
    let plugin = BUILT.get(make);
    // SAFETY: descriptors stay, and functions get what the ABI says.
    unsafe {
        let driver = &**(*plugin).drivers;
        let command = &**(*plugin).commands;
        assert_eq!(((*plugin).driver_count, (*plugin).command_count, command.words), (1, 1, 1));
        let mut room = [0u8; 64];
        let mut said = text(&mut room);
        let mut count = 7;
        let start = driver.start.unwrap();
        assert_eq!(start(driver.context, c" 2 ".as_ptr(), 3, &raw mut count, &raw mut said), 0);
        assert_eq!((count, said.length), (2, 0));
        assert_eq!(start(driver.context, std::ptr::null(), 0, &raw mut count, &raw mut said), 0);
        assert_eq!(count, 0);
        assert_eq!(start(driver.context, c"x".as_ptr(), 1, &raw mut count, &raw mut said), 1);
        assert_eq!(&room[..said.length as usize], b"`x' is no number");
        let mut device: abi::Device = std::mem::zeroed();
        assert_eq!(driver.open.unwrap()(driver.context, 1, &raw mut device, &raw mut said), 0);
        assert_eq!(
            (device.number, device.rx_queues, device.rx_workers[..3].to_vec()),
            (1, 2, vec![0xffff, 3, 0xffff])
        );
        assert_eq!(
            (device.name[..8].to_vec(), device.name[63]),
            (b"mirror1\0".map(u8::cast_signed).to_vec(), 0)
        );
        for (words, why) in [(c"panic", "the plugin panicked"), (c"other", "no other")] {
            let n = words.count_bytes();
            let done =
                driver.attach.unwrap()(driver.context, words.as_ptr(), n, &raw mut device, &raw mut said);
            assert_eq!((done, &room[..said.length as usize]), (1, why.as_bytes()));
        }
        for (what, value, why) in [
            (abi::SHOAL_SET_MAC, 0x0203_0405_0607, "Mac([2, 3, 4, 5, 6, 7])"),
            (abi::SHOAL_SET_MTU, 9000, "Mtu(9000)"),
            (77, 0, "there is no setting 77, expected 1 to 4"),
        ] {
            assert_eq!(driver.set.unwrap()(driver.context, 0, what, value, &raw mut said), 1);
            assert_eq!(&room[..said.length as usize], why.as_bytes());
        }
        // More than there is room for is cut.
        assert_eq!(driver.describe.unwrap()(driver.context, 0, 1, &raw mut said), 0);
        assert_eq!(said.length, 64);
        let mut link: abi::Link = std::mem::zeroed();
        assert_eq!(driver.link.unwrap()(driver.context, 0, &raw mut link), 0);
        assert_eq!((link.up, link.speed, link.missed), (1, 10, 4));
        assert_eq!(driver.link.unwrap()(driver.context, 1, &raw mut link), 1);
        assert_eq!(command.run.unwrap()(command.context, c"".as_ptr(), 0, &raw mut said), 1);
        assert_eq!(command.run.unwrap()(command.context, c"ab".as_ptr(), 2, &raw mut said), 0);
        assert_eq!(&room[..said.length as usize], b"AB");
        // What panics has no descriptor, and wakes no thread.
        let wait = |device, queue| driver.wait.unwrap()(driver.context, device, queue);
        assert_eq!((wait(0, 0), wait(0, 1), wait(1, 0), wait(0, 2)), (40, 41, -1, -1));
        let arm = |queue| driver.arm.unwrap()(driver.context, 0, queue, 0);
        assert_eq!([arm(0), arm(1), arm(2), arm(3)], [abi::SHOAL_ARMED, abi::SHOAL_ARM_PACKETS, -1, -1]);
        driver.disarm.unwrap()(driver.context, 0, 0, 0);

        // Two packets out, the first in two parts; back in slots of four bytes, of which there is one too few.
        let (mut a, mut b, mut c) = (*b"12345", *b"678", *b"abcdef");
        let mut slots = [slot(&mut a), slot(&mut b), slot(&mut c)];
        slots[0].flags = abi::SHOAL_SLOT_MORE;
        let mut burst: abi::Burst = std::mem::zeroed();
        (burst.count, burst.slots) = (3, slots.as_mut_ptr());
        driver.send.unwrap()(driver.context, &raw mut burst);
        assert_eq!(burst.used, 2);
        assert_eq!(driver.poll.unwrap()(driver.context, 0, 0, 0), 4);
        let mut rooms = [[0u8; 4]; 3];
        let mut slots = rooms.each_mut().map(|room| slot(room));
        (burst.slots, burst.used) = (slots.as_mut_ptr(), 0);
        driver.receive.unwrap()(driver.context, &raw mut burst);
        assert_eq!((burst.used, burst.lost), (2, 1));
        assert_eq!((slots[0].flags, slots[1].flags, slots[1].length), (abi::SHOAL_SLOT_MORE, 0, 4));
        assert_eq!(rooms[..2].concat(), b"12345678");
    }
}
