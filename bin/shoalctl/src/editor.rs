//! Completion, hints and prompt of the line editor; all knowledge comes from the router.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use reedline::{
    Color, Completer, CompletionResult, DefaultHinter, DescriptionMode, Emacs, FileBackedHistory, Hinter,
    History, IdeMenu, KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch,
    Reedline, ReedlineEvent, ReedlineMenu, Span, Suggestion, default_emacs_keybindings,
};

use crate::client::{Candidate, Client};

/// The session's connection. The editor asks for completion through it, between commands only.
pub type Shared = Arc<Mutex<Client>>;

const MENU: &str = "completion";

/// A line editor that asks the router.
pub fn editor(client: &Shared) -> Reedline {
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.into()), ReedlineEvent::MenuNext]),
    );
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    let menu = IdeMenu::default().with_name(MENU).with_description_mode(DescriptionMode::PreferRight);
    let mut editor = Reedline::create()
        .with_completer(Box::new(FromRouter(Arc::clone(client))))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_hinter(Box::new(Hints {
            client: Arc::clone(client),
            history: DefaultHinter::default(),
            hint: None,
        }))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_edit_mode(Box::new(Emacs::new(keys)));
    match history_file().map(|file| FileBackedHistory::with_file(10_000, file)) {
        Some(Ok(history)) => editor = editor.with_history(Box::new(history)),
        Some(Err(error)) => eprintln!("shoalctl: no history: {error}"),
        None => {}
    }
    editor
}

/// `$XDG_STATE_HOME/shoal/history`, by default below `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("shoal/history"))
}

fn ask(client: &Shared, line: &str, at: usize) -> (usize, Vec<Candidate>) {
    // A router that has gone offers nothing; running the line will say so.
    let found = client.lock().ok().and_then(|mut client| client.complete(line, at).ok());
    found.unwrap_or((at, Vec::new()))
}

struct FromRouter(Shared);

impl Completer for FromRouter {
    fn complete(&mut self, line: &str, at: usize) -> CompletionResult {
        let (start, candidates) = ask(&self.0, line, at);
        let typed = line.get(start..at).unwrap_or("");
        let suggestion = |c: Candidate| Suggestion {
            // A hint names an argument: choosing it leaves what was typed.
            value: if c.hint { typed.to_owned() } else { c.text.clone() },
            display_override: c.hint.then_some(c.text),
            description: Some(c.help).filter(|h| !h.is_empty()),
            span: Span::new(start.min(at), at),
            append_whitespace: !c.hint,
            ..Suggestion::default()
        };
        CompletionResult::fresh(candidates.into_iter().map(suggestion).collect::<Vec<_>>())
    }
}

/// Behind the cursor: a line of the history that begins like this, or else what comes next.
struct Hints {
    client: Shared,
    history: DefaultHinter,
    /// What may be inserted; `None` while the history's hint is shown.
    hint: Option<String>,
}

impl Hinter for Hints {
    fn handle(&mut self, line: &str, at: usize, history: &dyn History, color: bool, cwd: &str) -> String {
        self.hint = None;
        let from_history = self.history.handle(line, at, history, color, cwd);
        if !from_history.is_empty() || line.is_empty() || at != line.len() {
            return from_history;
        }
        let (start, candidates) = ask(&self.client, line, at);
        let typed = line.get(start..).unwrap_or("");
        let shown = match candidates.as_slice() {
            [one] if !one.hint => {
                let rest = one.text.strip_prefix(typed).unwrap_or("").to_owned();
                self.hint = Some(rest.clone());
                rest
            }
            [one] if typed.is_empty() => {
                self.hint = Some(String::new());
                one.text.clone()
            }
            _ => return String::new(),
        };
        if color && !shown.is_empty() { format!("\x1b[90m{shown}\x1b[0m") } else { shown }
    }

    fn complete_hint(&self) -> String {
        self.hint.clone().unwrap_or_else(|| self.history.complete_hint())
    }

    fn next_hint_token(&self) -> String {
        self.hint.clone().unwrap_or_else(|| self.history.next_hint_token())
    }
}

/// The router's own prompt.
pub struct RouterPrompt(pub String);

impl Prompt for RouterPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("... ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(search `{}') ", search.term))
    }

    fn get_prompt_color(&self) -> Color {
        Color::Default
    }
}
