//! Requests of the binary API in tests, by their bytes.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use shoal_message::{Input, Retval};
use shoal_module::Control;
use shoal_module::api::handler::Outcome;
use shoal_module::api::{Answers, ApiPart, Call};

/// Asks handlers of some parts.
pub struct ApiAsker<'a> {
    call: Call,
    parts: &'a [&'a ApiPart],
}

/// Bytes of an answer in front of its context: the frame and the message's number.
const HEAD: usize = 18;

impl<'a> ApiAsker<'a> {
    /// A client that is not connected.
    pub fn new(control: &Rc<Control>, parts: &'a [&'a ApiPart]) -> Self {
        ApiAsker { call: Call::local(control), parts }
    }

    /// The fields of all answers to a request of these fields.
    ///
    /// # Panics
    /// There is no such request, or it is longer than that.
    pub fn ask(&self, name: &str, fields: &[u8]) -> Vec<Vec<u8>> {
        let mut all = self.parts.iter().flat_map(|part| part.messages);
        let message = all.find(|message| message.described.name == name);
        let handler = message.and_then(|message| message.handler);
        let handler = handler.unwrap_or_else(|| panic!("no request {name}"));
        let mut to = Vec::new();
        let outcome = handler(&self.call, Input::new(fields), &mut Answers::new(&mut to, 7, 1, 2));
        match outcome.unwrap_or_else(|e| panic!("{name}: {e}")) {
            Outcome::Done => {}
            Outcome::More(mut rows) => while rows(&mut Answers::new(&mut to, 7, 1, 2)) {},
            Outcome::Wait(later) => wait(later)(&mut Answers::new(&mut to, 7, 1, 2)),
        }
        split(&to)
    }

    /// The number a request is answered with.
    ///
    /// # Panics
    /// As [`ask`](Self::ask), or it is answered more than once.
    pub fn retval(&self, name: &str, fields: &[u8]) -> Retval {
        let answers = self.ask(name, fields);
        assert_eq!(answers.len(), 1, "answers to {name}");
        let number = answers.first().and_then(|answer| answer.first_chunk::<4>());
        Retval(i32::from_be_bytes(*number.unwrap_or_else(|| panic!("{name} is answered without a number"))))
    }
}

/// Waits for something that needs no other task.
fn wait<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut cx) {
            return done;
        }
    }
}

/// The fields of messages that follow each other: what is behind their contexts.
fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(length) = bytes.get(8..12).and_then(|length| length.first_chunk::<4>()) {
        let (one, rest) = bytes.split_at(16 + u32::from_be_bytes(*length) as usize);
        all.push(one.get(HEAD + 4..).unwrap_or_default().to_vec());
        bytes = rest;
    }
    all
}
