//! `show cli-sessions`: the sessions of the command line.

use std::fmt;

use serde::Serialize;
use shoal_interface::cli::column::{left, line};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::sessions::{Session, Sessions, Style};

pub(super) const SHOW: Command = Command::new("show cli-sessions", "Show open sessions of the command line", show)
    .examples(&["show cli-sessions"])
    .doc(
        "`PNI` counts sessions since the start. Flags are capital where they hold: i an interactive session, s a socket, l \
         whole lines are sent, p output waits for a key, a the client's terminal knows ANSI sequences; shoalctl's, which \
         speaks JSON, does so on its own side.",
    );

#[derive(Serialize)]
struct View {
    number: u32,
    fd: i32,
    name: String,
    flags: String,
}

#[derive(Serialize)]
struct Views(Vec<View>);

impl View {
    fn new(session: &Session) -> View {
        let style = session.style.get();
        let flag = |holds: bool, letter: char| if holds { letter.to_ascii_uppercase() } else { letter };
        let interactive = matches!(style, Style::Lines | Style::Screen);
        let flags = [
            flag(interactive, 'i'),
            flag(true, 's'),
            flag(style != Style::Screen, 'l'),
            flag(false, 'p'),
            flag(style == Style::Screen, 'a'),
        ];
        let Session { number, fd, peer, .. } = session;
        View {
            number: *number,
            fd: *fd,
            name: format!("unix-cli-{peer}:{fd}"),
            flags: flags.iter().collect(),
        }
    }
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let sessions = control.get::<Sessions>()?;
    Ok(Output::view(Views(sessions.list().iter().map(|session| View::new(session)).collect())))
}

impl fmt::Display for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|view| view.name.len()).max().unwrap_or(0).max(20) + 1;
        let row = |number: &str, fd: &str, name: &str, flags: &str| {
            line(&[left(number, 5), left(fd, 5), left(name, width), left(flags, 5)])
        };
        f.write_str(&row("PNI", "FD", "Name", "Flags"))?;
        self.0.iter().try_for_each(|view| {
            f.write_str(&row(&view.number.to_string(), &view.fd.to_string(), &view.name, &view.flags))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_what_the_client_is() {
        let sessions = Sessions::default();
        let local = sessions.open(26, "local".into(), "root".into());
        let far = sessions.open(27, "192.0.2.1:5002".into(), "192.0.2.1:5002".into());
        local.style.set(Style::Program);
        far.style.set(Style::Screen);
        let views = Views(sessions.list().iter().map(|session| View::new(session)).collect());
        assert_eq!(
            views.to_string(),
            "PNI  FD   Name                       Flags\n\
             1    26   unix-cli-local:26          iSLpa\n\
             2    27   unix-cli-192.0.2.1:5002:27 ISlpA\n"
        );
    }
}
