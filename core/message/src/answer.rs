//! What a request is answered with.

use crate::definition::Header;
use crate::retval::Retval;
use crate::value::{Message, Value};

/// A request with one answer, the last or only one.
pub trait Answered: Message {
    /// The answer; `()` where it says no more than that it was done.
    type Reply: Answer + 'static;
}

/// A request that is answered by any number of messages.
pub trait Detailed: Message {
    /// One of them.
    type Details: Message;
}

/// The fields of an answer.
pub trait Answer {
    /// What stands in front of them.
    const HEADER: Header = Header::Reply;

    /// Writes them behind what is there.
    fn encode_answer(&self, to: &mut Vec<u8>);

    /// Writes why there is no answer: the number, and no other field has a value. The answer is as long as a good one.
    fn encode_refusal(retval: Retval, to: &mut Vec<u8>);
}

impl Answer for () {
    fn encode_answer(&self, to: &mut Vec<u8>) {
        0i32.encode(to);
    }

    fn encode_refusal(retval: Retval, to: &mut Vec<u8>) {
        retval.0.encode(to);
    }
}

impl<M: Message> Answer for M {
    const HEADER: Header = M::HEADER;

    fn encode_answer(&self, to: &mut Vec<u8>) {
        self.encode(to);
    }

    fn encode_refusal(retval: Retval, to: &mut Vec<u8>) {
        let end = to.len() + M::LEAST;
        retval.0.encode(to);
        to.resize(end.max(to.len()), 0);
    }
}
