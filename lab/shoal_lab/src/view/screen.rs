//! The full screen.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Gauge, Paragraph, Row, Sparkline, Table};

use super::{State, TrialRow, short};

/// The terminal, taken over until this is dropped.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    ending: bool,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Screen { terminal: ratatui::try_init()?, ending: false })
    }

    /// A terminal that cannot be written to shows nothing more; measuring goes on.
    pub(super) fn draw(&mut self, state: &State) {
        let _ = self.terminal.draw(|frame| draw(frame, state));
    }

    /// Whether `q` or Ctrl-C was pressed: in this mode the terminal sends no signal.
    pub(super) fn wants_to_end(&mut self) -> bool {
        while event::poll(Duration::ZERO).unwrap_or(false) {
            if let Ok(Event::Key(key)) = event::read() {
                let control_c =
                    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                self.ending |= control_c || key.code == KeyCode::Char('q');
            }
        }
        self.ending
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn draw(frame: &mut Frame<'_>, state: &State) {
    let [head, bar, rate, table, notes, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Length(6),
        Constraint::Min(5),
        Constraint::Length(state.notes.len().min(5) as u16),
        Constraint::Length(1),
    ])
    .areas(frame.area());

    let best = state.best.map_or_else(|| "none yet".into(), |best| format!("{}fps/dir", short(best)));
    let title = vec![
        Line::from(vec![
            "shoal-lab  ".bold(),
            state.test.clone().cyan().bold(),
            "  ".into(),
            state.case.clone().into(),
        ]),
        Line::from(format!("best without loss: {best}")),
    ];
    frame.render_widget(Paragraph::new(title), head);

    let spent = state.began.elapsed().as_secs_f64();
    let all = state.estimate.as_secs_f64().max(spent).max(1.0);
    let label = format!("case {} of {}, {}", state.cases.0, state.cases.1, state.left());
    frame.render_widget(
        Gauge::default().ratio((spent / all).clamp(0.0, 1.0)).label(label).gauge_style(Color::Blue),
        bar,
    );

    let now = state.received.last().copied().unwrap_or_default();
    let block = Block::bordered().title(format!(" received: {}fps ", short(now as f64)));
    let width = usize::from(rate.width.saturating_sub(2));
    let recent = state.received.get(state.received.len().saturating_sub(width)..).unwrap_or_default();
    frame.render_widget(Sparkline::default().data(recent).style(Color::Cyan).block(block), rate);

    frame.render_widget(trials(&state.trials), table);
    let said: Vec<Line<'_>> =
        state.notes.iter().rev().take(5).rev().map(|n| Line::from(n.as_str())).collect();
    frame.render_widget(Paragraph::new(said), notes);
    frame.render_widget(Paragraph::new("q: end; what was measured is kept".dim()), foot);
}

fn trials(rows: &[TrialRow]) -> Table<'_> {
    let header = Row::new(["run", "step", "fps/dir", "sent", "lost", "stalls", "bracket", "verdict"]).bold();
    let rows = rows.iter().map(|row| {
        let style = if row.passed { Style::from(Color::Green) } else { Style::default() };
        let bracket = row.bracket.map_or(String::new(), |(low, high)| format!("{low} .. {high}"));
        Row::new([
            Cell::from(row.run.to_string()),
            Cell::from(row.step.to_string()),
            Cell::from(short(row.rate)),
            Cell::from(row.sent.to_string()),
            Cell::from(row.lost.to_string()),
            Cell::from(row.stalls.to_string()),
            Cell::from(bracket),
            Cell::from(row.verdict.clone()),
        ])
        .style(style)
    });
    let widths = [
        Constraint::Length(4),
        Constraint::Length(4),
        Constraint::Length(10),
        Constraint::Length(12),
        Constraint::Length(12),
        Constraint::Length(7),
        Constraint::Length(22),
        Constraint::Min(10),
    ];
    Table::new(rows, widths).header(header).block(Block::bordered().title(" trials "))
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use shoal_lab_measure::Estimate;

    use super::*;

    fn state() -> State {
        let mut state = State::new(Estimate { trials: 100, time: Duration::from_mins(10) });
        state.test = "throughput".into();
        state.case = "shoal, ip4 64 B bi".into();
        state.cases = (1, 3);
        state.received = (0..300).collect();
        state.trials = vec![TrialRow {
            run: 1,
            step: 4,
            rate: 4_712_345.0,
            sent: 9_424_690,
            lost: 690,
            verdict: "lost 0.01 %".into(),
            passed: false,
            bracket: Some((4_000_000, 4_712_345)),
            stalls: 2,
        }];
        state
    }

    #[test]
    fn the_screen_shows_case_rate_and_trials() {
        let mut terminal = Terminal::new(TestBackend::new(110, 30)).unwrap();
        terminal.draw(|frame| draw(frame, &state())).unwrap();
        let text = terminal.backend().to_string();
        for part in [
            "throughput",
            "shoal, ip4 64 B bi",
            "case 1 of 3",
            "4.71 M",
            "690",
            "lost 0.01 %",
            "4000000 .. 4712345",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
    }

    #[test]
    fn a_tiny_terminal_is_no_reason_to_end() {
        for (width, height) in [(1, 1), (20, 3), (8, 40)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &state())).unwrap();
        }
    }
}
