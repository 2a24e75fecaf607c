//! How answers get their bytes: a header, the message's number, the client's context, the fields.

use shoal_message::{Answer, Header, Message, Retval};

/// Bytes in front of a message on a socket: 8 unused, its length in 4, 4 unused.
pub const FRAME: usize = 16;

/// Where the answers to one request go.
pub struct Answers<'a> {
    to: &'a mut Vec<u8>,
    context: u32,
    reply: u16,
    details: u16,
}

impl<'a> Answers<'a> {
    /// Answers to a request of this context, under these numbers, behind what is there.
    pub fn new(to: &'a mut Vec<u8>, context: u32, reply: u16, details: u16) -> Self {
        Answers { to, context, reply, details }
    }

    /// The last or only answer.
    pub fn reply<A: Answer>(&mut self, result: &Result<A, Retval>) {
        let (id, context) = (self.reply, self.context);
        frame(self.to, |to| {
            header(to, A::HEADER, id, context);
            match result {
                Ok(answer) => answer.encode_answer(to),
                Err(retval) => A::encode_refusal(*retval, to),
            }
        });
    }

    /// One of several.
    pub fn details<M: Message>(&mut self, message: &M) {
        let (id, context) = (self.details, self.context);
        frame(self.to, |to| {
            header(to, M::HEADER, id, context);
            message.encode(to);
        });
    }

    /// Bytes so far, those of earlier answers among them.
    pub fn len(&self) -> usize {
        self.to.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.to.is_empty()
    }
}

/// What stands in front of an answer's fields.
fn header(to: &mut Vec<u8>, of: Header, id: u16, context: u32) {
    to.extend(id.to_be_bytes());
    if of == Header::Indexed {
        to.extend([0; 4]);
    }
    to.extend(context.to_be_bytes());
}

/// Writes a message with its frame.
pub fn frame(to: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = to.len();
    to.extend([0; FRAME]);
    body(to);
    let length = (to.len() - start - FRAME) as u32;
    if let Some(place) = to.get_mut(start + 8..start + 12) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}
