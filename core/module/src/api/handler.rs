//! How requests are handled, by their kind.

use std::future::Future;
use std::pin::Pin;

use shoal_message::{Answered, Detailed, Input, Malformed, Message, Retval};

use super::{Answers, Call};

/// A request that is answered at once. It must not take longer than a fraction of a millisecond.
pub trait Request: Answered {
    /// Does what it asks for.
    ///
    /// # Errors
    /// Why it was not done.
    fn handle(self, call: &Call) -> Result<Self::Reply, Retval>;
}

/// A request that is answered by any number of messages, and no last one.
pub trait Dump: Detailed {
    /// All of them, made one by one while the client reads. What they are made of may change in between.
    fn dump(self, call: &Call) -> impl Iterator<Item = Self::Details> + 'static;
}

/// A request that is answered by some messages and a last one, which may say that there are more.
pub trait Get: Detailed + Answered {
    /// Some of them, no more than fit into a millisecond, and the last one.
    ///
    /// # Errors
    /// Why there are none.
    fn get(self, call: &Call) -> Result<(Vec<Self::Details>, Self::Reply), Retval>;
}

/// A request that takes its time. The client's next request waits for its answer; others do not.
pub trait Task: Answered {
    /// Does what it asks for.
    fn run(self, call: Call) -> impl Future<Output = Result<Self::Reply, Retval>> + 'static;
}

/// What is left to do after a request came.
pub enum Outcome {
    /// Nothing.
    Done,
    /// More answers.
    More(Rows),
    /// To wait for the answer.
    Wait(Later),
}

/// Writes the next answer; false when there is none.
pub type Rows = Box<dyn FnMut(&mut Answers<'_>) -> bool>;
/// Comes to something that writes the answer.
pub type Later = Pin<Box<dyn Future<Output = Box<dyn FnOnce(&mut Answers<'_>)>>>>;
/// Does what a request asks for; its fields are still bytes.
pub type Handler = fn(&Call, Input<'_>, &mut Answers<'_>) -> Result<Outcome, Malformed>;

/// A message whose bytes are there, but for a number that its type does not have: that is answered.
fn fields<M: Message>(mut input: Input<'_>) -> Result<Result<M, Retval>, Malformed> {
    match M::decode(&mut input) {
        Ok(message) => Ok(Ok(message)),
        Err(short @ Malformed::Short { .. }) => Err(short),
        Err(Malformed::NoSuchValue { .. } | Malformed::NoText) => Ok(Err(Retval::INVALID_VALUE)),
    }
}

pub(super) fn request<M: Request>(
    call: &Call,
    input: Input<'_>,
    answers: &mut Answers<'_>,
) -> Result<Outcome, Malformed> {
    let result = fields::<M>(input)?.and_then(|message| message.handle(call));
    answers.reply(&result);
    Ok(Outcome::Done)
}

pub(super) fn dump<M: Dump>(
    call: &Call,
    input: Input<'_>,
    _: &mut Answers<'_>,
) -> Result<Outcome, Malformed> {
    // No details say that there are none.
    let Ok(message) = fields::<M>(input)? else { return Ok(Outcome::Done) };
    let mut all = message.dump(call);
    Ok(Outcome::More(Box::new(move |answers| match all.next() {
        Some(details) => {
            answers.details(&details);
            true
        }
        None => false,
    })))
}

pub(super) fn get<M: Get>(
    call: &Call,
    input: Input<'_>,
    answers: &mut Answers<'_>,
) -> Result<Outcome, Malformed> {
    match fields::<M>(input)?.and_then(|message| message.get(call)) {
        Ok((all, reply)) => {
            for details in &all {
                answers.details(details);
            }
            answers.reply(&Ok(reply));
        }
        Err(retval) => answers.reply(&Err::<M::Reply, _>(retval)),
    }
    Ok(Outcome::Done)
}

pub(super) fn task<M: Task>(
    call: &Call,
    input: Input<'_>,
    answers: &mut Answers<'_>,
) -> Result<Outcome, Malformed> {
    let message = match fields::<M>(input)? {
        Ok(message) => message,
        Err(retval) => {
            answers.reply(&Err::<M::Reply, _>(retval));
            return Ok(Outcome::Done);
        }
    };
    let work = message.run(call.clone());
    Ok(Outcome::Wait(Box::pin(async move {
        let result = work.await;
        let write: Box<dyn FnOnce(&mut Answers<'_>)> = Box::new(move |answers| answers.reply(&result));
        write
    })))
}
