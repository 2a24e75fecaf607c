//! Commands: `arping`.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Later, Output, Sink};

use crate::arping::{Arping, INTERVALS, Question};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[Command::later(
    "arping <what:rest>",
    "Ask a link for an address, or announce one",
    arping,
)
.doc(
    "`arping [gratuitous] ADDRESS INTERFACE [repeat COUNT] [interval SECONDS]` sends ARP requests, for an IPv6 address \
     neighbour solicitations, and prints who answers. With `gratuitous` the address is announced as this router's.",
)
.examples(&["arping 10.0.0.2 loop0 repeat 3 interval 0.1", "arping gratuitous 10.0.0.1 loop0"])];

/// The words of the command. As in VPP, the blanks behind `gratuitous` and the address may be missing.
fn read(interfaces: &Interfaces, text: &str) -> Result<Arping, CliError> {
    let text = text.trim();
    let (question, text) = match text.strip_prefix("gratuitous") {
        Some(rest) => (Question::Announce, rest.trim_start()),
        None => (Question::WhoHas, text),
    };
    // An interface's name may begin with a digit of an IPv6 address, so the longest address that is followed by one wins.
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect::<Vec<_>>();
    let split = ends.into_iter().rev().find_map(|at| {
        let (address, rest) = text.split_at_checked(at)?;
        let address = address.parse::<IpAddr>().ok()?;
        let mut words = rest.split_whitespace();
        let interface = interfaces.by_name(words.next()?)?;
        Some((address, interface, words.collect::<Vec<_>>()))
    });
    let Some((address, interface, words)) = split else {
        let message = format!("expected [gratuitous] an address and an interface, not `{text}'");
        return Err(CliError::argument("what", message));
    };
    let mut arping = Arping { interface, address, question, repeat: 1, interval: Duration::from_secs(1) };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        let wrong = || CliError::argument("what", format!("`{word} {value}' is not understood here"));
        match word {
            "repeat" => arping.repeat = value.parse().map_err(|_| wrong())?,
            "interval" => {
                let seconds = value.parse().ok().filter(|s| INTERVALS.contains(s)).ok_or_else(wrong)?;
                arping.interval = Duration::from_secs_f64(seconds);
            }
            _ => return Err(wrong()),
        }
    }
    Ok(arping)
}

fn arping(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let text: String = args.get("what")?;
        let arping = read(&*control.get::<Interfaces>()?, &text)?;
        let SwIfIndex(_) = arping.interface;
        let counted = arping.run(control, Some(&sink)).await.map_err(|e| CliError::failed(e.to_string()))?;
        sink.line(format_args!("Sending {} {} Request to {}", arping.repeat, kind(&arping), arping.address))?;
        sink.line(format_args!("\nSent {}, received {}", counted.sent, counted.received))?;
        Ok(Output::none())
    })
}

fn kind(arping: &Arping) -> &'static str {
    match (arping.address, arping.question) {
        (IpAddr::V4(_), Question::WhoHas) => "ARP",
        (IpAddr::V4(_), Question::Announce) => "gratuitous ARP",
        (IpAddr::V6(_), Question::WhoHas) => "neighbor solicitation",
        (IpAddr::V6(_), Question::Announce) => "unsolicited neighbor advertisement",
    }
}
