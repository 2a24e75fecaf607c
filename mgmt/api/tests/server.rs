//! Real clients of a real socket, with the router beside them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shoal_api::{Settings, memclnt};
use shoal_message::{Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request, Subscribers, Task};
use shoal_testkit::Router;

/// Asks for numbers from 0.
#[derive(Message)]
#[message(request, details = CountDetails)]
struct CountDump {
    to: u32,
}

/// A number.
#[derive(Message)]
#[message(reply)]
struct CountDetails {
    number: u32,
    padding: [u8; 32],
}

impl Dump for CountDump {
    fn dump(self, _: &Call) -> impl Iterator<Item = CountDetails> + 'static {
        (0..self.to).map(|number| CountDetails { number, padding: [0; 32] })
    }
}

/// An event.
#[derive(Message)]
#[message(event)]
struct SaidEvent {
    what: u32,
}

/// Asks for events.
#[derive(Message)]
#[message(request, events = SaidEvent)]
struct WantSaidEvents {
    enable: bool,
    pid: u32,
}

#[derive(Default)]
struct Listeners(Subscribers);

impl Request for WantSaidEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        call.get::<Listeners>().unwrap().0.set(call, self.pid, (), self.enable)
    }
}

/// Says something.
#[derive(Message)]
#[message(request)]
struct Say {
    what: u32,
    times: u32,
}

impl Request for Say {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        for _ in 0..self.times {
            call.get::<Listeners>().unwrap().0.publish(
                &call.control,
                |()| true,
                &SaidEvent { what: self.what },
            );
        }
        Ok(())
    }
}

/// Never ends.
#[derive(Message)]
#[message(request)]
struct EndlessReply {}

impl Task for EndlessReply {
    async fn run(self, _: Call) -> Result<(), Retval> {
        std::future::pending().await
    }
}

static PART: ApiPart = ApiPart {
    file: "test",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::dump::<CountDump>(),
        ApiMessage::sent::<CountDetails>(),
        ApiMessage::request::<WantSaidEvents>(),
        ApiMessage::sent::<SaidEvent>(),
        ApiMessage::request::<Say>(),
        ApiMessage::task::<EndlessReply>(),
    ],
};

const PING: u16 = 23;
const PING_REPLY: u16 = 24;

struct Client {
    stream: UnixStream,
    index: u32,
    /// Numbers of messages by their names without checksums.
    table: Vec<(String, u16)>,
}

impl Client {
    fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut client = Client { stream, index: 0, table: Vec::new() };
        // As vpp_papi and GoVPP send it: number, context, name in 64 bytes.
        let mut body = vec![0, 15, 0, 0, 0, 124];
        body.extend(b"test");
        body.resize(70, 0);
        client.send(&body);
        let reply = client.receive().unwrap();
        assert_eq!(reply[..6], [0, 16, 0, 0, 0, 0], "number, and no client's index");
        assert_eq!(reply[6..14], [0, 0, 0, 124, 0, 0, 0, 0], "the context as it came, and no error");
        client.index = u32::from_be_bytes(reply[14..18].try_into().unwrap());
        let count = u16::from_be_bytes([reply[18], reply[19]]);
        for entry in reply[20..].chunks(66) {
            let name = String::from_utf8(entry[2..].to_vec()).unwrap();
            let name = name.trim_end_matches('\0');
            client.table.push((name[..name.len() - 9].to_owned(), u16::from_be_bytes([entry[0], entry[1]])));
        }
        assert_eq!(client.table.len(), usize::from(count));
        client
    }

    fn number(&self, name: &str) -> u16 {
        self.table.iter().find(|(n, _)| n == name).unwrap().1
    }

    fn send(&mut self, body: &[u8]) {
        let mut frame = vec![0; 8];
        frame.extend((body.len() as u32).to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(body);
        self.stream.write_all(&frame).unwrap();
    }

    fn request(&mut self, id: u16, context: u32, fields: &[u8]) {
        let body =
            [&id.to_be_bytes()[..], &self.index.to_be_bytes(), &context.to_be_bytes(), fields].concat();
        self.send(&body);
    }

    /// The next message; `None` at the end of the connection.
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; 16];
        match self.stream.read_exact(&mut header) {
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                return None;
            }
            result => result.unwrap(),
        }
        let length = u32::from_be_bytes(header[8..12].try_into().unwrap());
        let mut body = vec![0; length as usize];
        // A client that is cut off may have half a message.
        self.stream.read_exact(&mut body).ok()?;
        Some(body)
    }

    fn ping(&mut self, context: u32) {
        self.request(PING, context, &[]);
        let reply = self.receive().unwrap();
        assert_eq!(reply[..2], PING_REPLY.to_be_bytes());
        assert_eq!(reply[2..6], context.to_be_bytes());
        assert_eq!(reply[10..14], self.index.to_be_bytes());
        assert_eq!(reply[14..18], std::process::id().to_be_bytes());
    }
}

/// Runs the router until the client, a thread of its own, is done.
fn with_client(client: impl FnOnce(PathBuf) + Send + 'static) -> Router {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("api.sock");
    let mut router = Router::new(&[&shoal_api::MODULE]);
    router.control().put(Listeners::default());
    let settings = Settings { socket: socket.clone(), gid: None, parts: vec![&PART] };
    shoal_api::serve(router.control(), &settings).unwrap();
    let client = std::thread::spawn(move || client(socket));
    while !client.is_finished() {
        router.run();
        std::thread::yield_now();
    }
    if let Err(panic) = client.join() {
        std::panic::resume_unwind(panic);
    }
    router
}

fn dropped(router: &mut Router, why: &str) -> u64 {
    let (control, mut count) = (router.control().clone(), None);
    let server = control.get::<shoal_api::Server>().unwrap();
    for (reason, n) in server.drops() {
        if reason == why {
            count = Some(n);
        }
    }
    count.unwrap_or_else(|| panic!("no reason '{why}'"))
}

#[test]
fn a_client_says_who_it_is_asks_and_leaves() {
    with_client(|socket| {
        let mut client = Client::connect(&socket);
        assert_eq!(client.index, 0x8000_0001, "as the first client of VPP");
        assert_eq!((client.number("sockclnt_create"), client.number("sockclnt_delete")), (15, 17));
        assert_eq!((client.number("control_ping"), client.number("get_api_json_reply")), (PING, 28));
        client.ping(7);
        client.ping(0xffff_ffff);
        client.request(17, 9, &client.index.to_be_bytes().clone());
        assert_eq!(client.receive().unwrap(), [0, 18, 0, 0, 0, 9, 0, 0, 0, 1]);
        assert_eq!(client.receive(), None, "closed");
        let mut second = Client::connect(&socket);
        assert_eq!(second.index, 0x8000_0002, "no number is given twice");
        second.ping(1);
    });
}

#[test]
fn a_message_may_come_byte_by_byte_and_many_at_once() {
    with_client(|socket| {
        let mut client = Client::connect(&socket);
        let mut bytes = Vec::new();
        for context in 0..500u32 {
            bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0]);
            bytes.extend(PING.to_be_bytes());
            bytes.extend(client.index.to_be_bytes());
            bytes.extend(context.to_be_bytes());
        }
        let (slowly, fast) = bytes.split_at(26 * 20 + 3);
        for byte in slowly {
            client.stream.write_all(&[*byte]).unwrap();
        }
        client.stream.write_all(fast).unwrap();
        for context in 0..500u32 {
            assert_eq!(client.receive().unwrap()[2..6], context.to_be_bytes(), "in order");
        }
    });
}

#[test]
fn a_dump_is_complete_before_the_next_answer_and_others_do_not_wait_for_it() {
    with_client(|socket| {
        let (mut one, mut other) = (Client::connect(&socket), Client::connect(&socket));
        let (dump, details) = (one.number("count_dump"), one.number("count_details"));
        one.request(dump, 5, &300_000u32.to_be_bytes());
        one.request(PING, 5, &[]);
        // Its socket is full by now: the dump waits, the other client does not.
        for context in 0..50 {
            other.ping(context);
        }
        for number in 0..300_000u32 {
            let answer = one.receive().unwrap();
            assert_eq!(answer[..2], details.to_be_bytes());
            assert_eq!(answer[2..6], [0, 0, 0, 5]);
            assert_eq!(answer[6..10], number.to_be_bytes());
        }
        assert_eq!(one.receive().unwrap()[..2], PING_REPLY.to_be_bytes());
        // A client that leaves in the middle.
        other.request(dump, 1, &u32::MAX.to_be_bytes());
        other.receive().unwrap();
        drop(other);
        one.ping(6);
    });
}

#[test]
fn events_come_to_those_who_want_them_until_they_leave() {
    with_client(|socket| {
        let (mut one, mut other) = (Client::connect(&socket), Client::connect(&socket));
        let (want, say, said) = (one.number("want_said_events"), one.number("say"), one.number("said_event"));
        let on = [&[1][..], &77u32.to_be_bytes()].concat();
        let retval = |client: &mut Client, context: u32, fields: &[u8]| {
            client.request(want, context, fields);
            i32::from_be_bytes(client.receive().unwrap()[6..10].try_into().unwrap())
        };
        assert_eq!(retval(&mut one, 1, &[0, 0, 0, 0, 0]), -31, "not there yet");
        assert_eq!(retval(&mut one, 2, &on), 0);
        assert_eq!(retval(&mut one, 3, &on), -31, "there already");
        other.request(say, 1, &[0, 0, 0, 42, 0, 0, 0, 1]);
        other.receive().unwrap();
        let event =
            [&said.to_be_bytes()[..], &one.index.to_be_bytes(), &77u32.to_be_bytes(), &42u32.to_be_bytes()];
        assert_eq!(one.receive().unwrap(), event.concat());
        drop(one);
        // Whether its end was seen or not, the next event harms no client, and the place is free.
        other.request(say, 2, &[0, 0, 0, 43, 0, 0, 0, 1]);
        other.receive().unwrap();
        assert_eq!(retval(&mut other, 3, &on), 0);
        other.request(say, 4, &[0, 0, 0, 44, 0, 0, 0, 1]);
        assert_eq!(other.receive().unwrap()[..2], said.to_be_bytes(), "before the answer");
        other.receive().unwrap();
    });
}

#[test]
fn a_client_that_does_not_read_its_events_is_cut_off_and_others_go_on() {
    with_client(|socket| {
        let (mut deaf, mut other) = (Client::connect(&socket), Client::connect(&socket));
        let (want, say) = (deaf.number("want_said_events"), deaf.number("say"));
        deaf.request(want, 1, &[1, 0, 0, 0, 0]);
        deaf.receive().unwrap();
        // An event takes 30 bytes; the bound is 16 MiB.
        for _ in 0..20 {
            other.request(say, 1, &[0, 0, 0, 1, 0, 0, 0xff, 0xff]);
            other.receive().unwrap();
        }
        let mut events = 0;
        while deaf.receive().is_some() {
            events += 1;
        }
        assert!(events < 20 * 0xffff, "{events}");
        other.ping(2);
    });
}

#[test]
fn what_is_no_message_is_counted_and_not_answered() {
    let mut router = with_client(|socket| {
        let mut client = Client::connect(&socket);
        let (say, index) = (client.number("say"), client.index);
        client.send(&[]);
        client.send(&[0]);
        client.request(say, 1, &[0; 7]);
        client.request(0, 1, &[]);
        client.request(9999, 1, &[]);
        client.request(PING_REPLY, 1, &[0; 12]);
        client.request(1, 1, &[0; 200]);
        client.index = index + 1;
        client.request(PING, 1, &[]);
        client.index = index;
        client.ping(2);
        // Before it has introduced itself.
        let mut stranger = UnixStream::connect(&socket).unwrap();
        stranger
            .write_all(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 23, 0, 0, 0, 0, 0, 0, 0, 0])
            .unwrap();
        // Half a message.
        stranger.write_all(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0]).unwrap();
        stranger.shutdown(Shutdown::Write).unwrap();
        assert_eq!(stranger.read(&mut [0; 1]).unwrap(), 0, "its end has been seen");
        // Four gigabytes.
        let mut liar = UnixStream::connect(&socket).unwrap();
        liar.write_all(&[0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0]).unwrap();
        assert_eq!(liar.read(&mut [0; 1]).unwrap(), 0, "hung up on");
        client.ping(3);
    });
    assert_eq!(dropped(&mut router, "shorter than its fields"), 3);
    assert_eq!(dropped(&mut router, "no message has its number"), 2);
    assert_eq!(dropped(&mut router, "not a request"), 2);
    assert_eq!(dropped(&mut router, "the client's index is none or another's"), 2);
    assert_eq!(dropped(&mut router, "longer than any message"), 1);
    assert_eq!(dropped(&mut router, "cut off by the end of the connection"), 1);
}

#[test]
fn what_takes_its_time_is_given_up_when_its_client_goes() {
    let mut router = with_client(|socket| {
        let (mut one, mut other) = (Client::connect(&socket), Client::connect(&socket));
        let endless = one.number("endless_reply");
        one.request(endless, 1, &[]);
        // Others are served.
        other.ping(1);
    });
    let server = router.control().get::<shoal_api::Server>().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while server.connections() > 0 {
        assert!(Instant::now() < deadline, "{} connections are left", server.connections());
        router.run();
        std::thread::yield_now();
    }
}

#[test]
fn a_thousand_clients_come_and_go() {
    let router = with_client(|socket| {
        let mut last = Client::connect(&socket);
        for round in 0..4 {
            let many: Vec<_> = (0..250).map(|_| UnixStream::connect(&socket).unwrap()).collect();
            last.ping(round);
            drop(many);
        }
        last.ping(9);
    });
    let server = router.control().get::<shoal_api::Server>().unwrap();
    assert!(server.connections() <= 1000);
}

#[test]
fn the_messages_of_the_server_are_those_of_vpp() {
    shoal_testkit::api::same_as_vpp(&[&memclnt::API]);
}

#[test]
fn random_bytes_to_every_message_do_no_harm() {
    let mut router = Router::new(&[&shoal_api::MODULE]);
    shoal_testkit::api::random_bytes_do_no_harm(&mut router, &[&memclnt::API], 300);
}

#[test]
fn halves_of_messages_are_bounded_together() {
    const HALF: usize = 3 << 20;
    let router = with_client(|socket| {
        let mut good = Client::connect(&socket);
        let mut bad: Vec<Client> = (0..8).map(|_| Client::connect(&socket)).collect();
        for client in &mut bad {
            let mut half = vec![0; 8];
            half.extend((4u32 << 20).to_be_bytes());
            half.resize(16 + HALF, 0);
            // One that is cut off cannot send all of it.
            let _ = client.stream.write_all(&half);
        }
        // Everybody else is served, and long messages are still taken.
        good.ping(1);
        let mut long = PING.to_be_bytes().to_vec();
        long.extend(good.index.to_be_bytes());
        long.extend([0; 4]);
        long.resize(3 << 20, 0);
        good.send(&long);
        assert_eq!(good.receive().unwrap()[..2], PING_REPLY.to_be_bytes());
        let cut = |client: &mut Client| {
            client.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            match client.stream.read(&mut [0]) {
                Ok(0) => true,
                Ok(_) => false,
                Err(error) => error.kind() == ErrorKind::ConnectionReset,
            }
        };
        let gone = bad.iter_mut().map(cut).filter(|gone| *gone).count();
        assert!((4..8).contains(&gone), "{gone} of 8 were cut off");
        // Many small ones take less than a few large ones.
        good.ping(2);
    });
    let server = router.get::<shoal_api::Server>();
    let count = |why: &str| server.drops().into_iter().find(|(text, _)| text.contains(why)).unwrap().1;
    assert!((4..8).contains(&count("of all clients together")), "{:?}", server.drops());
}

#[test]
fn a_client_that_is_silent_needs_no_room_and_one_that_sent_much_gives_it_back() {
    let router = with_client(|socket| {
        let mut all: Vec<Client> = (0..12).map(|_| Client::connect(&socket)).collect();
        // Each sends a long message without a handler: whole ones are not kept.
        for client in &mut all {
            let mut long = 9999u16.to_be_bytes().to_vec();
            long.resize(3 << 20, 0);
            client.send(&long);
            client.ping(1);
        }
        for client in &mut all {
            client.ping(2);
        }
    });
    let server = router.get::<shoal_api::Server>();
    assert!(server.drops().iter().all(|(why, count)| !why.contains("all clients together") || *count == 0));
}
