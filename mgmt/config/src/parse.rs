//! Tokens to a tree: words and the blocks in braces between them.

use crate::lex::{Source, Token, Word, lex};
use crate::report::Problem;
use shoal_module::config::At;
use std::collections::VecDeque;

/// Deeper nesting than any section has is a mistake, and would cost stack.
const MAX_DEPTH: usize = 32;

/// What stands in a text or in a block.
pub type Items = VecDeque<Item>;

/// A word, or a block in braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A word.
    Word(Word),
    /// `{ ... }`, with the place of its opening brace.
    Block(At, Items),
}

/// Reads every source, one after the other. A brace may not stay open from one to the next.
pub fn parse(sources: &[Source]) -> Result<Items, Vec<Problem>> {
    let (mut items, mut problems) = (Items::new(), Vec::new());
    for (index, source) in sources.iter().enumerate() {
        let (tokens, bad) = lex(source, index);
        if bad.is_empty() {
            tree(tokens, &mut items, &mut problems);
        }
        problems.extend(bad);
    }
    if problems.is_empty() { Ok(items) } else { Err(problems) }
}

fn tree(tokens: Vec<Token>, items: &mut Items, problems: &mut Vec<Problem>) {
    // Blocks that are open: the brace, and what stood before it.
    let mut open: Vec<(At, Items)> = Vec::new();
    let mut current = Items::new();
    for token in tokens {
        match token {
            Token::Word(word) => current.push_back(Item::Word(word)),
            Token::Open(at) if open.len() == MAX_DEPTH => {
                problems.push(Problem::new(at, format!("braces are nested deeper than {MAX_DEPTH}")));
                return;
            }
            Token::Open(at) => open.push((at, std::mem::take(&mut current))),
            Token::Close(at) => match open.pop() {
                Some((start, before)) => {
                    let block = std::mem::replace(&mut current, before);
                    current.push_back(Item::Block(start, block));
                }
                None => problems.push(Problem::new(at, "this brace closes nothing".into())),
            },
        }
    }
    problems.extend(open.iter().map(|(at, _)| Problem::new(*at, "this brace is never closed".into())));
    items.append(&mut current);
}
