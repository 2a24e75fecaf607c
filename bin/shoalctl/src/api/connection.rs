//! A connection to the router's binary API.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value as Json;

use super::codec::{self, CodecError};
use super::description::{Count, Description, Field, Message};

/// How long the router may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// No message of a router is longer.
const MOST: u32 = 64 << 20;
/// Numbers that are the same everywhere.
const CREATE: u16 = 15;

/// What went wrong.
#[derive(Debug)]
pub enum Error {
    /// No socket could be connected to.
    Connect(PathBuf, io::Error),
    /// The connection broke, or no answer came.
    Broken(io::Error),
    /// What was asked for is no message, or what came is none.
    Message(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Connect(path, error) => write!(f, "cannot connect to {}: {error}", path.display()),
            Error::Broken(error) => write!(f, "the router does not answer: {error}"),
            Error::Message(text) => f.write_str(text),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Broken(error)
    }
}

impl From<CodecError> for Error {
    fn from(CodecError(text): CodecError) -> Self {
        Error::Message(text)
    }
}

/// A connection.
pub struct Connection {
    stream: UnixStream,
    index: u32,
    /// Numbers by name, `_` and checksum.
    numbers: BTreeMap<String, u16>,
    /// The messages.
    pub messages: Description,
    context: u32,
}

/// A message that came.
pub struct ReceivedMessage {
    /// Its name.
    pub name: String,
    /// What it answers, if it is an answer.
    pub context: Option<u32>,
    /// Its fields, without the numbers of connection and request.
    pub fields: Json,
}

fn field(name: &str, of: &str, count: Count) -> Field {
    Field { name: name.into(), of: of.into(), count, default: None }
}

impl Connection {
    /// Connects to the first of these sockets that answers.
    pub fn open(candidates: &[PathBuf]) -> Result<Self, Error> {
        let mut last = None;
        for path in candidates {
            match UnixStream::connect(path) {
                Ok(stream) => return Self::greet(stream),
                Err(error) => last = last.or(Some(Error::Connect(path.clone(), error))),
            }
        }
        Err(last.unwrap_or_else(|| Error::Message("no socket is named".into())))
    }

    fn greet(stream: UnixStream) -> Result<Self, Error> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let (numbers, messages) = (BTreeMap::new(), Description::default());
        let mut connection = Connection { stream, index: 0, numbers, messages, context: 0 };
        let mut body = CREATE.to_be_bytes().to_vec();
        body.extend(1u32.to_be_bytes());
        body.extend(b"shoalctl");
        body.resize(6 + 64, 0);
        connection.send(&body)?;
        let reply = connection.receive()?;
        let cut = || Error::Message("the router's greeting is cut off".into());
        let (head, table) = reply.split_at_checked(20).ok_or_else(cut)?;
        let number = |at: usize| head.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
        connection.index = number(14).ok_or_else(cut)?;
        for entry in table.chunks_exact(66) {
            let (number, name) = entry.split_first_chunk::<2>().ok_or_else(cut)?;
            let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
            connection.numbers.insert(name, u16::from_be_bytes(*number));
        }
        connection.describe()?;
        Ok(connection)
    }

    /// Asks the router what its messages are made of.
    fn describe(&mut self) -> Result<(), Error> {
        let number = |name: &str| self.numbers.get(name).copied();
        let none =
            || Error::Message("the router does not describe its messages: it has no get_api_json".into());
        let ask = number("get_api_json_51077d14").ok_or_else(none)?;
        self.request(ask, &[])?;
        let reply = self.receive()?;
        let mut input = reply.get(6..).unwrap_or_default();
        let fields = [field("retval", "i32", Count::One), field("json", "string", Count::Open)];
        let answer = codec::decode(&Description::default(), &fields, &mut input)?;
        let files: Json = serde_json::from_str(answer.get("json").and_then(Json::as_str).unwrap_or_default())
            .map_err(|e| Error::Message(format!("the router's description is no JSON: {e}")))?;
        self.messages = Description::new(&files);
        Ok(())
    }

    /// The description of a message that this router has, or which it may have been meant for.
    pub fn message(&self, name: &str) -> Result<Message, Error> {
        if let Some(message) = self.messages.message(name) {
            return Ok(message.clone());
        }
        let alike: Vec<&str> =
            self.messages.messages().map(|(n, _)| n).filter(|n| n.contains(name)).take(8).collect();
        let hint =
            if alike.is_empty() { String::new() } else { format!("; there are: {}", alike.join(", ")) };
        Err(Error::Message(format!("there is no message '{name}'{hint}")))
    }

    /// Sends a request; tells its context.
    pub fn ask(&mut self, name: &str, fields: &Json) -> Result<u32, Error> {
        let message = self.message(name)?;
        let key = format!("{name}_{}", message.crc);
        let number = self.numbers.get(&key).copied();
        let number = number.ok_or_else(|| Error::Message(format!("{key} is not in the router's table")))?;
        let own = |f: &&Field| !matches!(f.name.as_str(), "client_index" | "context");
        let described: Vec<Field> = message.fields.iter().filter(own).cloned().collect();
        let mut body = Vec::new();
        codec::encode(&self.messages, &described, fields, &mut body)
            .map_err(|CodecError(why)| Error::Message(format!("{name}: {why}")))?;
        self.request(number, &body)?;
        Ok(self.context)
    }

    fn request(&mut self, number: u16, fields: &[u8]) -> Result<(), Error> {
        self.context += 1;
        let mut body = number.to_be_bytes().to_vec();
        body.extend(self.index.to_be_bytes());
        body.extend(self.context.to_be_bytes());
        body.extend(fields);
        self.send(&body)
    }

    /// Waits for events without end.
    pub fn wait_for_ever(&self) -> Result<(), Error> {
        Ok(self.stream.set_read_timeout(None)?)
    }

    /// The next message.
    pub fn next(&mut self) -> Result<ReceivedMessage, Error> {
        let body = self.receive()?;
        let unknown = || Error::Message("a message came that is not in the router's table".into());
        let (number, mut input) = body.split_first_chunk::<2>().ok_or_else(unknown)?;
        let number = u16::from_be_bytes(*number);
        let key = self.numbers.iter().find(|(_, n)| **n == number).map(|(key, _)| key).ok_or_else(unknown)?;
        let name = key.rsplit_once('_').map_or(key.as_str(), |(name, _)| name).to_owned();
        let message = self.message(&name)?;
        let mut fields = codec::decode(&self.messages, &message.fields, &mut input)?;
        let mut context = None;
        if let Some(object) = fields.as_object_mut() {
            context = object.remove("context").and_then(|c| c.as_u64()).map(|c| c as u32);
            object.remove("client_index");
        }
        Ok(ReceivedMessage { name, context, fields })
    }

    fn send(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut frame = vec![0; 8];
        frame.extend((body.len() as u32).to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(body);
        Ok(self.stream.write_all(&frame)?)
    }

    fn receive(&mut self) -> Result<Vec<u8>, Error> {
        let mut header = [0; 16];
        self.stream.read_exact(&mut header)?;
        let [_, _, _, _, _, _, _, _, a, b, c, d, ..] = header;
        let length = u32::from_be_bytes([a, b, c, d]);
        if length > MOST {
            return Err(Error::Message(format!("the router sends a message of {length} bytes")));
        }
        let mut body = vec![0; length as usize];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }
}
