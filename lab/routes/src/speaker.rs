//! A BGP peer that announces what it is given and wants nothing back: the other end of a session with a routing daemon.
//!
//! It costs next to no processor time, because messages are made before: a daemon that is measured has the machine for itself.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::bgp::{self, KEEPALIVE, NOTIFICATION, Origin};

/// Seconds of silence after which the session is lost.
const HOLD: u16 = 240;
/// How often the other end hears that the session lives.
const LIFE_SIGN: Duration = Duration::from_secs(20);
/// How long the other end may take to take what is sent.
const STUCK: Duration = Duration::from_mins(5);
const HEADER: usize = 19;

/// A session that is established. Dropped, it is closed.
#[derive(Debug)]
pub struct Session {
    writer: Arc<Mutex<TcpStream>>,
    ended: Arc<Ended>,
    reader: Option<JoinHandle<()>>,
}

/// Why it is over.
#[derive(Debug, Default)]
struct Ended {
    closing: AtomicBool,
    why: Mutex<Option<String>>,
}

impl Session {
    /// Waits until a daemon connects and the session is established.
    ///
    /// # Errors
    /// None came in time, or it does not speak BGP.
    pub fn accept(listener: &TcpListener, origin: &Origin, limit: Duration) -> io::Result<Session> {
        let until = Instant::now() + limit;
        listener.set_nonblocking(true)?;
        let mut last = io::Error::new(ErrorKind::TimedOut, "the daemon does not connect");
        while Instant::now() < until {
            match listener.accept() {
                // A daemon whose other end was not ready may give up a connection and make another.
                Ok((stream, _)) => match establish(stream, origin, until) {
                    Ok(session) => return Ok(session),
                    Err(why) => last = why,
                },
                Err(why) if why.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(10)),
                Err(why) => return Err(why),
            }
        }
        Err(last)
    }

    /// Sends whole messages; returns when the kernel has taken the last.
    ///
    /// # Errors
    /// The session is over.
    pub fn send(&self, messages: &[u8]) -> io::Result<()> {
        self.alive()?;
        let sent = self.writer.lock().unwrap_or_else(PoisonError::into_inner).write_all(messages);
        // What the other end said before it closed is worth more than that it did.
        sent.or_else(|why| self.alive().and(Err(why)))
    }

    /// # Errors
    /// The session is over, and why.
    pub fn alive(&self) -> io::Result<()> {
        match &*self.ended.why.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(why) => Err(io::Error::new(ErrorKind::ConnectionAborted, why.clone())),
            None => Ok(()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.ended.closing.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn establish(mut stream: TcpStream, origin: &Origin, until: Instant) -> io::Result<Session> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(STUCK))?;
    let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
    stream.set_read_timeout(Some(left))?;
    stream.write_all(&bgp::open(origin, HOLD))?;
    // OPEN, then the first KEEPALIVE.
    for expected in [1, KEEPALIVE] {
        let (kind, body) = read(&mut stream)?;
        match kind {
            kind if kind == expected => {}
            NOTIFICATION => return Err(io::Error::other(notified(&body))),
            other => return Err(io::Error::other(format!("message {other} where {expected} was due"))),
        }
        if expected == 1 {
            stream.write_all(&bgp::message(KEEPALIVE, &[]))?;
        }
    }
    // Short, so that a session that is dropped is gone soon.
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    let (ended, writer) = (Arc::new(Ended::default()), Arc::new(Mutex::new(stream.try_clone()?)));
    let (of_reader, writing) = (ended.clone(), writer.clone());
    let reader = thread::Builder::new().name("lab-bgp".into()).spawn(move || {
        let why = listen(stream, &writing, &of_reader.closing);
        *of_reader.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    })?;
    Ok(Session { writer, ended, reader: Some(reader) })
}

/// Reads whatever comes and gives signs of life; why that ended.
fn listen(stream: TcpStream, writer: &Mutex<TcpStream>, closing: &AtomicBool) -> String {
    let mut stream = Patient { stream, closing };
    let mut next = Instant::now() + LIFE_SIGN;
    loop {
        match read(&mut stream) {
            Ok((NOTIFICATION, body)) => return notified(&body),
            Ok(_) => {}
            Err(why) if why.kind() == ErrorKind::TimedOut => {}
            Err(why) => return format!("the daemon closed the session: {why}"),
        }
        if closing.load(Ordering::Relaxed) {
            return "the session was closed".into();
        }
        // While a table is written the other end hears enough, and whole messages must not be torn apart.
        if Instant::now() > next
            && let Ok(mut writer) = writer.try_lock()
        {
            next = Instant::now() + LIFE_SIGN;
            let _ = writer.write_all(&bgp::message(KEEPALIVE, &[]));
        }
    }
}

/// A message of which a part has come is waited for; where nothing has, it is an error that the time is over.
struct Patient<'a> {
    stream: TcpStream,
    closing: &'a AtomicBool,
}

impl Read for Patient<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.stream.read(bytes) {
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                // `read` asks for a whole header first: only there nothing may have come.
                if bytes.len() == HEADER || self.closing.load(Ordering::Relaxed) {
                    Err(ErrorKind::TimedOut.into())
                } else {
                    Err(ErrorKind::Interrupted.into())
                }
            }
            other => other,
        }
    }
}

/// A message: its kind and its body.
fn read(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header)?;
    let [marker @ .., high, low, kind] = header;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if marker != [0xff; 16] || length < HEADER {
        return Err(io::Error::new(ErrorKind::InvalidData, "what came is no BGP"));
    }
    let mut body = vec![0; length - HEADER];
    stream.read_exact(&mut body)?;
    Ok((kind, body))
}

fn notified(body: &[u8]) -> String {
    let (code, subcode) = (body.first().copied().unwrap_or(0), body.get(1).copied().unwrap_or(0));
    // RFC 4271 4.5.
    let what = match code {
        1 => "message header error",
        2 => "OPEN error",
        3 => "UPDATE error",
        4 => "hold timer expired",
        5 => "state machine error",
        6 => "cease",
        _ => "unknown code",
    };
    format!("the daemon ended the session: {what} (code {code}, subcode {subcode})")
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const ORIGIN: Origin =
        Origin { system: 65_001, address4: Ipv4Addr::LOCALHOST, address6: Ipv6Addr::LOCALHOST, seed: 1 };

    fn listener() -> (TcpListener, std::net::SocketAddr) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        (listener, at)
    }

    /// The other end: answers OPEN, then does what it is told.
    fn daemon(at: std::net::SocketAddr, then: impl FnOnce(TcpStream) + Send + 'static) -> JoinHandle<()> {
        thread::spawn(move || {
            let mut stream = TcpStream::connect(at).unwrap();
            assert_eq!(read(&mut stream).unwrap().0, 1);
            stream.write_all(&bgp::open(&ORIGIN, 90)).unwrap();
            stream.write_all(&bgp::message(KEEPALIVE, &[])).unwrap();
            assert_eq!(read(&mut stream).unwrap().0, KEEPALIVE);
            then(stream);
        })
    }

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn messages_arrive_whole_and_in_order() {
        let (listener, at) = listener();
        let table = crate::table::ip4(5_000, 1);
        let messages = bgp::messages4(&table, &ORIGIN).announce;
        let wanted = messages.clone();
        let other = daemon(at, move |mut stream| {
            let mut got = Vec::new();
            while got.len() < wanted.len() {
                let (kind, body) = read(&mut stream).unwrap();
                got.extend(bgp::message(kind, &body));
            }
            assert!(got == wanted, "not what was sent");
        });
        let session = Session::accept(&listener, &ORIGIN, LIMIT).unwrap();
        session.send(&messages).unwrap();
        other.join().unwrap();
    }

    #[test]
    fn a_daemon_that_refuses_is_quoted() {
        let (listener, at) = listener();
        let other = daemon(at, |mut stream| stream.write_all(&bgp::message(NOTIFICATION, &[6, 2])).unwrap());
        let session = Session::accept(&listener, &ORIGIN, LIMIT).unwrap();
        other.join().unwrap();
        let until = Instant::now() + LIMIT;
        while session.alive().is_ok() {
            assert!(Instant::now() < until, "the end is not noticed");
            thread::sleep(Duration::from_millis(5));
        }
        let why = session.send(&[]).unwrap_err().to_string();
        assert!(why.contains("cease (code 6, subcode 2)"), "{why}");
    }

    #[test]
    fn who_speaks_no_bgp_or_does_not_come_is_an_error() {
        let (listener, at) = listener();
        let other = thread::spawn(move || {
            TcpStream::connect(at).unwrap().write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        });
        let why = Session::accept(&listener, &ORIGIN, Duration::from_millis(500)).unwrap_err().to_string();
        other.join().unwrap();
        assert!(why.contains("no BGP") || why.contains("reset"), "{why}");
        let why = Session::accept(&listener, &ORIGIN, Duration::from_millis(20)).unwrap_err().to_string();
        assert!(why.contains("does not connect"), "{why}");
    }
}
